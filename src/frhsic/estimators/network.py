"""Networks with a penalty on their representation: a classifier and a regressor, each of which is
trained as a fleet of one model.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy.special import expit, softmax
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.model_selection import GroupShuffleSplit
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted
from torch import Tensor, nn
from torch.nn import functional

from frhsic import _arrays
from frhsic.datasets.dataset import Task
from frhsic.estimators.inputs import (
    estimator_seed,
    known_table,
    named_arguments,
    named_columns,
    require_scores,
    require_variation,
    sensitive_values,
    target_column,
    warn_of_suspicions,
    warn_of_unlabelled,
    warn_without_attributes,
)
from frhsic.penalties import Adversary, BinnedAdversary, NoPenalty, Penalty, make_penalty
from frhsic.splits import take_rows
from frhsic.tables.columns import is_frame, to_pandas
from frhsic.tables.encoding import Scale, Scaling, TableEncoding
from frhsic.tables.schema import Schema
from frhsic.training import MLP, Fleet, Member, Recipe, Training, TrainingData, train
from frhsic.training.data import Purpose, fork_generators, stream_seed
from frhsic.training.recipe import output_width
from frhsic.training.result import Bottleneck, has_enough_rows

# Number of rows in a block of predictions. All blocks have this size, so that the score of a row
# doesn't depend on other rows.
PREDICTION_ROWS = 256

# Maximum number of bytes of encoded rows in memory at once during prediction.
ENCODED_BYTES = 64 * 2**20

# Share of the rows held out for early stopping.
HELD_OUT = 0.1

# "auto" holds out rows if the number of rows is at least the first and less than the second of
# these numbers. Without a penalty, small tables overfit after a few steps; with a penalty, they
# need more steps. Large tables don't overfit in the number of steps of ``epochs="auto"``, and very
# small ones have no rows to spare.
AUTO_ROWS = (500, 10_000)


@dataclass(frozen=True)
class FitArguments:
    """Arguments passed to ``fit`` or ``partial_fit``."""

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any = None
    groups: Any = None

    def rows(self, chosen: np.ndarray) -> FitArguments:
        """Return the arguments for the given rows."""
        parts = {
            name: None if part is None else take_rows(part, chosen)
            for name, part in vars(self).items()
        }
        return FitArguments(**parts)


@dataclass(frozen=True)
class EncodedRows:
    """Rows encoded for training, the task, and whether there is a penalty."""

    data: TrainingData
    task: Task
    penalized: bool


@dataclass(frozen=True)
class Trained:
    """Trained models, and whether the encoder keeps the bottleneck from an earlier call because a
    new bottleneck would need more rows.
    """

    fleet: Fleet
    through_bottleneck: bool


class NetworkEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """Constructor and training of the estimators, whose docstrings describe the parameters.

    A call learns the fitted attributes that aren't set yet: `fit` starts without any, and
    `partial_fit` starts with those of the last call.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [str, Penalty],
        "penalty_weight": [Interval(Real, 0, None, closed="left")],
        "encoder": [callable, None],
        "training": [Training, None],
        "scaling": [StrOptions({"quantile", "range"})],
        "handle_unknown": [StrOptions({"ignore", "error"})],
        "device": [str, torch.device],
    }

    schema_: Schema
    feature_encoding_: TableEncoding
    encoder_: nn.Module
    head_: Any
    penalty_: Penalty
    sensitive_names_in_: np.ndarray
    classes_: np.ndarray
    best_epoch_: int | None
    validation_curve_: np.ndarray | None

    def __init__(
        self,
        penalty: str | Penalty = "frhsic",
        penalty_weight: float = 10.0,
        *,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        training: Training | None = None,
        scaling: Scaling = "range",
        handle_unknown: Literal["error", "ignore"] = "ignore",
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.penalty_weight = penalty_weight
        self.encoder = encoder
        self.training = training
        self.scaling = scaling
        self.handle_unknown = handle_unknown
        self.device = device
        self.random_state = random_state

    @named_arguments
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the encoder and the head.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Features, which may be numbers and booleans or, in a DataFrame, also text, categories,
            dates and durations. Missing values are allowed.
        y : array of shape (n,)
            Target: labels of at least two classes for a classifier, numbers for a regressor.
        sensitive_features : array, Series, DataFrame or names of columns of X, optional
            Numeric attributes of shape (n,) or (n, q). Columns passed by name are removed from the
            features. A Series or DataFrame may also contain bands such as "30-39" and ordered
            categories, which are converted to numbers with a warning. Without attributes, the model
            is trained without a penalty, with a warning unless `penalty_weight` is 0. Rows in which
            an attribute is NaN contribute to the task loss but not to the penalty, and `fit` warns.
            Such rows are spread evenly over the batches, and scales are learned from the other
            rows. If many rows lack an attribute, increase the batch size: a penalty weight has a
            different effect if the penalty uses fewer rows per batch.
        sample_weight : array of shape (n,), optional
            Weights of the rows in the task loss; the penalty ignores weights.
        groups : array of shape (n,) or the name of a column of X, optional
            Rows of one group, such as those of one person, are either all held out for early
            stopping or all used for training.
        """
        given = FitArguments(X, y, sensitive_features, sample_weight, groups)
        return self._fit(given, whole=True)

    def partial_fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train for one epoch on a part of the data, continuing from the last call.

        The first call determines scales, levels and classes, and prepares the penalty. Each call
        resets Adam's moments, so pass parts that contain many batches. No rows are held out, and
        training does not stop early. The parameters are those of :meth:`fit`.
        """
        return self._fit(FitArguments(X, y, sensitive_features, sample_weight))

    def _fit(self, given: FitArguments, classes: Any = None, *, whole: bool = False) -> Self:
        """Fit a copy from scratch, or for one more epoch, so that the estimator is unchanged if
        training fails.
        """
        given = FitArguments(**named_columns(**vars(given)))
        fitted = copy.copy(self)
        if whole:  # discards everything from an earlier fit
            fitted = clone(self).set_params(**self.get_params(deep=False))
        fitted._adopt(fitted._train(given, classes, whole=whole), 0)
        # scikit-learn sets private attributes while it fits a pipeline
        not_learned = {name: value for name, value in vars(self).items() if name[-1] != "_"}
        self.__dict__ = vars(fitted) | not_learned
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the representation Z = h(X) as float64, of shape (n, representation size)."""
        return self._evaluated(X, with_head=False)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def representation_rank_(self) -> int:
        """Number of directions of Z above the variance floor."""
        check_is_fitted(self)
        if not self.has_bottleneck_:
            return self.representation_size_
        *_, bottleneck = self.encoder_.children()
        assert isinstance(bottleneck, Bottleneck)
        return bottleneck.rank

    @property
    def _n_features_out(self) -> int:
        return int(self.representation_size_)

    @abstractmethod
    def _target(self, y: Any, classes: Any) -> tuple[np.ndarray, Task]:
        """Check y and convert it for training. The first call learns the scale or classes of y."""

    # Training

    def _encoder_maker(self) -> Callable[[int], nn.Module]:
        """Return a function that creates the encoder for a given number of columns."""
        encoder = MLP() if self.encoder is None else self.encoder
        return (lambda _: copy.deepcopy(encoder)) if isinstance(encoder, nn.Module) else encoder

    def _asked_penalty(self) -> Penalty:
        """Return the penalty that the parameters specify."""
        if isinstance(self.penalty, Penalty):
            return self.penalty
        return make_penalty(self.penalty, getattr(self, "representation_size_", 1))

    def _train(
        self,
        given: FitArguments,
        classes: Any = None,
        *,
        whole: bool = True,
        path: Sequence[float] = (),
    ) -> Trained:
        """Check all arguments, and train one model for each weight of a path or, by default, one
        model with `penalty_weight`.

        The first call starts from new initial weights. A later call continues from the last one,
        with the same scales and classes, and the penalty keeps its state unless a different penalty
        is requested.
        """
        first = not self.__sklearn_is_fitted__()
        if first:
            self.random_seed_ = estimator_seed(self.random_state)
            self.n_fits_ = 0
        rows = self._rows(given, classes, whole)
        if first:
            self.representation_size_ = self._encoder_width(rows.data)
        recipe = self._recipe(rows, whole)
        through_bottleneck = False
        if first:
            seed = self.random_seed_
            recipe = self._from_scratch(recipe)
        else:
            seed_sequence = np.random.SeedSequence([self.random_seed_, self.n_fits_])
            seed = int(seed_sequence.generate_state(1)[0])  # other batches in each call
            through_bottleneck = (
                self.has_bottleneck_
                and rows.penalized
                and recipe.floor(self._asked_penalty()) > 0
                and not has_enough_rows(rows.data.rows, self.representation_size_)
            )
            recipe = self._continued(recipe, through_bottleneck)
        weights = path or [float(self.penalty_weight)]
        members = [Member(weight if rows.penalized else 0.0, seed) for weight in weights]
        return Trained(train(rows.data, members, recipe, device=self.device), through_bottleneck)

    def _encoder_width(self, data: TrainingData) -> int:
        """Return the width of a new encoder's representation."""
        with fork_generators():
            module = self._encoder_maker()(data.columns)
        if not isinstance(module, nn.Module):
            raise TypeError(
                f"encoder returned {type(module).__name__}; pass a function that returns a"
                " torch.nn.Module."
            )
        return output_width(module.to(data.x.dtype), data)

    def _recipe(self, rows: EncodedRows, whole: bool) -> Recipe:
        """Return the recipe without an encoder and a head, which are added later."""
        training = self.training or Training()
        if not whole:
            training = replace(training, epochs=1, early_stopping=False)
        penalty = self._asked_penalty()
        if rows.penalized and penalty.condition == "positive" and rows.task != "binary":
            raise ValueError(
                "the penalty has condition='positive', which needs two classes, but the task is"
                f" {rows.task}. Pass a penalty without a condition."
            )
        asked = penalty.unprepared() if rows.penalized else NoPenalty()
        recipe = Recipe(rows.task, asked, **vars(training))
        return replace(
            recipe, weight_decay=recipe.decay(penalty), variance_floor=recipe.floor(penalty)
        )

    def _from_scratch(self, recipe: Recipe) -> Recipe:
        """Return the recipe with a new encoder and head."""
        # a part of the rows may not contain the last classes
        outputs = len(self.classes_) if recipe.task == "multiclass" else 1
        return replace(
            recipe,
            encoder=self._encoder_maker(),
            head=lambda width, least: nn.Linear(width, max(least, outputs)),
        )

    def _continued(self, recipe: Recipe, through_bottleneck: bool) -> Recipe:
        """Return the recipe with the encoder, head and penalty of the last call."""
        cut = self.has_bottleneck_ and not through_bottleneck
        encoder = next(self.encoder_.children()) if cut else self.encoder_
        asked = recipe.penalty
        assert isinstance(asked, Penalty)
        same = type(asked) is type(self.penalty_) and asked.arguments() == self.penalty_.arguments()
        return replace(
            recipe,
            penalty=self.penalty_ if same else asked,
            encoder=lambda _: copy.deepcopy(encoder),
            head=lambda *_: copy.deepcopy(self.head_),
        )

    def _rows(self, given: FitArguments, classes: Any, whole: bool) -> EncodedRows:
        """Check the parameters and the rows, and encode the rows."""
        self._validate_params()
        first = not hasattr(self, "feature_encoding_")
        others = {name: value for name, value in vars(given).items() if name != "X"}
        X = known_table(self, given.X, first=first, **others)
        codes = self._codes(X)
        if first:
            columns = self.schema_.columns if is_frame(X) else None
            self.feature_encoding_ = TableEncoding.fit(codes, columns, self.scaling)
        x = self.feature_encoding_(codes)
        weights = given.sample_weight
        if weights is not None:
            weights = _check_sample_weight(weights, x, ensure_non_negative=True)
        attributes = self._attributes(given.sensitive_features, len(x))
        values, task = self._target(given.y, classes)
        check_consistent_length(x, values)
        if first:
            names = list(getattr(self, "sensitive_names_in_", ()))
            warn_of_suspicions(self, X, values, attributes, names)
        held_out = self._held_out(values, task, attributes, given.groups) if whole else None
        known = np.zeros((len(x), 1)) if attributes is None else attributes

        def chosen(rows: Any, others: TrainingData | None = None) -> TrainingData:
            w = None if weights is None else weights[rows]
            return TrainingData.of(
                x[rows], values[rows], known[rows], sample_weight=w, held_out=others
            )

        data = chosen(slice(None)) if held_out is None else chosen(~held_out, chosen(held_out))
        return EncodedRows(data, task, attributes is not None)

    def _codes(self, X: Any) -> np.ndarray:
        """Return a checked table as an array of numbers, (n, d)."""
        if not is_frame(X):
            return np.asarray(X, dtype=np.float64)
        frame = to_pandas(X)
        if self.handle_unknown == "error":
            self.schema_.require_levels(frame)
        return self.schema_.codes(frame)

    def _attributes(self, values: Any, rows: int) -> np.ndarray | None:
        """Return the scaled sensitive attributes, (n, q), or None if training uses no penalty.

        If any attribute of a row is missing, all attributes of the row are set to NaN. The first
        call learns the names and, from rows without missing attributes, the scales: the range, as
        in the paper, or ranks, which don't change under increasing transformations.
        """
        # without a penalty, the attributes are checked but not used
        off = self.penalty_weight == 0 or isinstance(self._asked_penalty(), NoPenalty)
        if values is None:
            if not off:
                warn_without_attributes(self, "penalty_weight=0")
            return None
        s, names = sensitive_values(values, rows, getattr(self, "sensitive_names_in_", None))
        known = ~np.isnan(s).any(axis=1)
        if not hasattr(self, "sensitive_names_in_"):
            require_variation(s[known], names)
            self.sensitive_encoding_ = TableEncoding(
                tuple(Scale.fit(n, c, self.scaling) for n, c in zip(names, s[known].T))
            )
            self.sensitive_names_in_ = np.array(names, dtype=object)
        scaled = np.full(s.shape, np.nan)
        scaled[known] = self.sensitive_encoding_(s[known])
        if off:
            return None
        warn_of_unlabelled(
            known,
            "they are used for the task loss but not for the penalty, which uses fewer rows of each"
            " batch. Choose penalty_weight on held-out rows, or raise batch_size",
        )
        return scaled

    def _held_out(
        self, y: np.ndarray, task: Task, s: np.ndarray | None, groups: Any
    ) -> np.ndarray | None:
        """Return a mask of the held-out rows, (n,), or None if training does not stop early.

        A tenth of the rows is held out, stratified by class and by whether S is known. With
        `groups`, a tenth of the groups is held out instead, and no group is split. The random draw
        depends only on the random state.
        """
        n = len(y)
        wanted = (self.training or Training()).early_stopping
        if wanted == "auto":
            learning = isinstance(self._asked_penalty(), (Adversary, BinnedAdversary))
            wanted = AUTO_ROWS[0] <= n < AUTO_ROWS[1] and not learning
        if not wanted:
            return None
        known = np.ones(n, dtype=bool) if s is None else ~np.isnan(s).any(axis=1)
        seed = stream_seed(self.random_seed_, 0, Purpose.HELD_OUT, 1)
        held_out = np.zeros(n, dtype=bool)
        if groups is not None and len(set(np.asarray(groups).tolist())) > 1:
            split = GroupShuffleSplit(1, test_size=HELD_OUT, random_state=seed % 2**32)
            held_out[next(split.split(known, groups=groups))[1]] = True
        elif groups is None:
            strata = known.astype(np.int64)
            if task in ("binary", "multiclass"):
                strata += 2 * y.astype(np.int64)
            draw = np.random.default_rng(seed)
            for stratum in np.unique(strata):
                rows = np.flatnonzero(strata == stratum)
                held_out[draw.choice(rows, int(HELD_OUT * len(rows) + 0.5), replace=False)] = True
        if not known[held_out].any() or not known[~held_out].any():
            raise ValueError(
                "early stopping needs rows with sensitive_features among both the training and the"
                " held-out rows. Pass more rows, or turn off early stopping."
            )
        return held_out

    def _adopt(self, trained: Trained, index: int) -> None:
        """Store one trained model. The library's default encoder is stored in float64 and makes
        predictions in float64.
        """
        fleet = trained.fleet
        modules = nn.ModuleList(fleet.module(index)).cpu()
        if self.encoder is None or isinstance(self.encoder, MLP):
            modules.double()
        self.encoder_, self.head_ = modules
        self.has_bottleneck_ = trained.through_bottleneck or fleet.cuts(index)
        self.penalty_ = copy.deepcopy(fleet.penalty).cpu()
        state = {
            name: values[index].detach().clone().cpu()
            for name, values in fleet.penalty_state.items()
        }
        set_state(self.penalty_, state)
        history = fleet.history
        last = None
        self.best_epoch_ = None
        self.validation_curve_ = None
        if history.best_epoch is not None and history.held_out_objective is not None:
            last = int(fleet.epochs_done[index])
            self.best_epoch_ = int(history.best_epoch[index])
            self.validation_curve_ = _arrays.to_numpy(history.held_out_objective[index, :last])
        self.loss_curve_ = _arrays.to_numpy(history.task_loss[index, :last])
        self.penalty_curve_ = _arrays.to_numpy(history.penalty[index, :last])
        self.n_fits_ += 1

    def _evaluated(self, X: Any, *, with_head: bool) -> np.ndarray:
        """Return Z or the raw output of the head for rows, in float64, computed on the CPU in
        blocks of equal size.
        """
        check_is_fitted(self)
        X = known_table(self, X, first=False)
        block_bytes = 8 * PREDICTION_ROWS * self.feature_encoding_.width
        rows = PREDICTION_ROWS * max(1, ENCODED_BYTES // block_bytes)
        parts = []
        with torch.no_grad():
            for start in range(0, _num_samples(X), rows):
                part = _safe_indexing(X, slice(start, start + rows))
                x = torch.from_numpy(self.feature_encoding_(self._codes(part)))
                for block in torch.split(x.to(self.head_.weight.dtype), PREDICTION_ROWS):
                    missing = PREDICTION_ROWS - len(block)
                    values = self.encoder_(functional.pad(block, (0, 0, 0, missing)))
                    if with_head:
                        values = self.head_(values)
                    parts.append(values[: len(block)].to(torch.float64))
        return require_scores(_arrays.to_numpy(torch.cat(parts)), probabilities=False)


class FRHSICClassifier(ClassifierMixin, NetworkEstimator):
    r"""Classifier whose representation is trained to be independent of continuous sensitive
    attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot
        \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2,

    with an encoder h, an affine head f, the cross-entropy :math:`\ell`, the `penalty_weight` λ, and
    the weight decay w of the encoder's matrices W. The defaults are the method of the paper. Use
    this classifier to learn representations; if only the score matters, use
    :class:`ParityClassifier`. To choose λ, use :func:`frhsic.select_weight`. The attributes are
    required by `fit`, but not by `predict`.

    Parameters
    ----------
    penalty : str or Penalty
        "frhsic", the method of the paper; one of the competing methods "frem", "reg-gdp", "adv",
        "mmd", "laftr" and "dcor"; "hsic", whose kernel includes the head; "none"; or an object from
        :mod:`frhsic.penalties`.
    penalty_weight : float
        The weight λ, which must be at least zero.
    encoder : module, callable or None
        A module, which is copied, or a function that returns one for a given number of encoded
        columns, such as ``frhsic.training.MLP(hidden=(64,))``. None uses ``MLP()``, as in the
        paper.
    training : Training, optional
        Epochs, batches, optimizer and early stopping; see :class:`frhsic.training.Training`. None
        uses the paper's settings.
    scaling : {"quantile", "range"}
        Whether numbers and attributes are scaled by rank, or by minimum and maximum, as in the
        paper.
    handle_unknown : {"ignore", "error"}
        Whether `predict` encodes unseen categories as missing or raises an error for them.
    device, random_state
        Device to train on ("auto" uses a GPU if one is available); and seed for initial weights,
        batches and held-out rows.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    encoder_ : Module
        The trained encoder, from encoded columns to Z.
    head_ : Module
        The trained head, from Z to raw scores.
    penalty_ : Penalty
        The penalty, with its state at the end of training.
    feature_encoding_
        How columns of X are converted to numbers.
    sensitive_encoding_
        How attributes are converted to numbers.
    has_bottleneck_ : bool
        Whether `encoder_` drops directions of Z below the variance floor.
    representation_rank_ : int
        Number of directions of Z above the variance floor.
    loss_curve_ : ndarray
        Task loss in each epoch.
    penalty_curve_ : ndarray
        Penalty in each epoch.
    validation_curve_ : ndarray or None
        Task loss + λ · penalty on the held-out rows after each epoch; None without early stopping.
    best_epoch_ : int or None
        The best epoch, whose weights are kept; None without early stopping.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> model = FRHSICClassifier(penalty_weight=1.0, random_state=0).fit(
    ...     X, X[:, 1] > 0, sensitive_features=s
    ... )
    >>> model.score(X, X[:, 1] > 0) > 0.9
    True
    """

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train for one epoch on a part of the data, continuing from the last call.

        The first call determines scales, levels and classes, and prepares the penalty. Each call
        resets Adam's moments, so pass parts that contain many batches. All other parameters are
        those of :meth:`fit`.

        Parameters
        ----------
        classes : array, optional
            All labels, which are required in the first call unless y contains all of them.
        """
        return self._fit(FitArguments(X, y, sensitive_features, sample_weight), classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the raw output of the head: the log-odds of the second class, of shape (n,), or
        one column per class for more than two classes.
        """
        scores = self._evaluated(X, with_head=True)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, of shape (n, number of classes)."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the most probable class of each row."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(scores > 0).astype(int)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def _target(self, y: Any, classes: Any) -> tuple[np.ndarray, Task]:
        """Return the labels as codes of `classes_`, which the first call learns from y or copies
        from `classes`.
        """
        column = target_column(self, y)
        check_classification_targets(column)
        labels = unique_labels(column)
        asked = labels if classes is None else unique_labels(classes)
        if not hasattr(self, "classes_"):
            self.classes_ = asked
        known = self.classes_
        if classes is not None and not np.array_equal(known, asked):
            raise ValueError(
                f"classes={asked.tolist()} differs from the classes of the first call,"
                f" {known.tolist()}. Pass the same classes in each call."
            )
        unseen = np.setdiff1d(labels, known)
        if len(unseen):
            raise ValueError(
                f"y has new labels, {unseen.tolist()!r}; pass all labels in the first call:"
                " classes=[...]."
            )
        if len(known) < 2:
            raise ValueError(
                f"y has only one class, {known.tolist()[0]!r}; pass at least two classes."
            )
        task: Task = "binary" if len(known) == 2 else "multiclass"
        return np.searchsorted(known, column).astype(np.float64), task


class FRHSICRegressor(RegressorMixin, NetworkEstimator):
    r"""Regressor whose representation is trained to be independent of continuous sensitive
    attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i (f(h(x_i)) - \tilde y_i)^2 + \lambda \cdot
        \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2, \qquad \tilde y = (y - \bar y) / \mathrm{sd}(y).

    The target is standardized on the training rows, so that λ doesn't depend on the unit of y;
    predictions have the unit of y. Use this regressor to learn representations; if only the
    prediction matters, use :class:`ParityRegressor`.

    Parameters
    ----------
    penalty, penalty_weight, encoder, training, scaling, handle_unknown, device, random_state
        As in :class:`FRHSICClassifier`, which also describes the attributes.

    Attributes
    ----------
    target_mean_ : float
        Mean of y in the training rows.
    target_scale_ : float
        Standard deviation of y in the training rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> y = 1000 + 50 * X[:, 1]
    >>> model = FRHSICRegressor(penalty_weight=1.0, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y) > 0.9
    True
    """

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each row, in the unit of y."""
        raw = self._evaluated(X, with_head=True)[:, 0]
        return np.asarray(self.target_mean_ + self.target_scale_ * raw)

    def _target(self, y: Any, classes: Any) -> tuple[np.ndarray, Task]:
        """Return y, standardized with the mean and standard deviation of the first call."""
        values = _arrays.vector(target_column(self, y).astype(np.float64), "y")
        if not hasattr(self, "target_scale_"):
            self.target_mean_ = float(values.mean())
            self.target_scale_ = float(values.std()) or 1.0
        return (values - self.target_mean_) / self.target_scale_, "regression"


def set_state(penalty: Penalty, state: dict[str, Tensor]) -> None:
    """Set the tensors of a penalty, including buffers that are None before it is prepared."""
    for name, values in state.items():
        owner, _, last = name.rpartition(".")
        buffers = penalty.get_submodule(owner)._buffers
        if last in buffers:
            buffers[last] = values
    penalty.load_state_dict(state)


def fit_path(
    estimator: NetworkEstimator,
    X: Any,
    y: Any = None,
    *,
    penalty_weights: Sequence[float],
    sensitive_features: Any,
    sample_weight: Any = None,
    groups: Any = None,
) -> list[Any]:
    """Fit one copy of an estimator for each penalty weight, with all copies trained together as one
    fleet.

    All copies start from the same initial weights and are trained on the same batches. Up to
    rounding, each copy is equal to an estimator that is fitted separately.

    Parameters
    ----------
    estimator : FRHSICClassifier or FRHSICRegressor
        The estimator to copy, which is not changed.
    X, y, sensitive_features, sample_weight, groups
        As in the ``fit`` method of the estimator.
    penalty_weights : sequence of float
        Penalty weights, one for each copy.

    Returns
    -------
    list of fitted estimators, in the order of `penalty_weights`

    Examples
    --------
    >>> s = np.linspace(0, 1, 40)
    >>> model = FRHSICRegressor(training=Training(epochs=1), random_state=0)
    >>> [
    ...     one.penalty_weight
    ...     for one in fit_path(model, s[:, None], s, penalty_weights=[0, 1], sensitive_features=s)
    ... ]
    [0.0, 1.0]
    """
    if not isinstance(estimator, NetworkEstimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; pass an FRHSICClassifier or FRHSICRegressor."
        )
    path = [float(weight) for weight in penalty_weights]
    if not path or sensitive_features is None:
        raise ValueError(
            "pass at least one penalty weight, and sensitive_features, without which the weights"
            " have no effect."
        )
    lead = clone(estimator).set_params(penalty_weight=max(path))
    given = FitArguments(X, y, sensitive_features, sample_weight, groups)
    trained = lead._train(given, path=path)
    models = []
    for i, weight in enumerate(path):
        model = copy.copy(lead).set_params(penalty_weight=weight)
        model._adopt(trained, i)
        models.append(model)
    return models
