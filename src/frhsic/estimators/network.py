"""What the three estimators with networks share: constructor, training as a fleet of one, representations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted
from torch import Tensor, nn

from frhsic import _arrays
from frhsic.estimators.attributes import scaled_attributes
from frhsic.estimators.checks import (
    check_continues,
    check_parameters,
    later_seed,
    restored_on_failure,
    seed_of,
    warn_shared_columns,
    width_of,
)
from frhsic.estimators.ensemble import joined, member_seeds, rank
from frhsic.estimators.features import checked_table, encoded_features
from frhsic.estimators.length import number_of_epochs, training_data, validation_rows
from frhsic.estimators.persistence import save, set_state
from frhsic.estimators.plain import to_json
from frhsic.estimators.problem import FitCall, Problem, encoder_maker
from frhsic.estimators.targets import Target
from frhsic.penalties import NoPenalty, Penalty
from frhsic.penalty_names import penalty_named
from frhsic.tables import TableEncoding
from frhsic.training import (
    Execution,
    Fleet,
    Member,
    Recipe,
    Task,
    TrainingData,
    affine_head,
    enough_rows,
    train,
)
from frhsic.training.recipe import Schedule

CHUNK_ROWS = 65_536
"""Number of rows that are encoded at once."""

SIZE, SIZE_WITHOUT_TARGET = 16, 50
"""Widths of Z if none is asked for. A score needs few directions; a reconstruction needs many."""


class NetworkEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped in sklearn
    """Constructor, with the settings of the paper, and training of the estimators, which document the parameters.

    Fitted attributes are learned by the call that finds them missing: :meth:`_start` removes them all first, while
    :meth:`_resume` keeps them.
    """

    encoder_: nn.Module
    head_: nn.Module
    penalty_: Penalty
    feature_encoding_: TableEncoding
    sensitive_encoding_: TableEncoding
    sensitive_names_in_: np.ndarray
    classes_: np.ndarray
    target_mean_: float
    target_scale_: float
    representation_size_: int
    has_bottleneck_: bool
    random_seed_: int
    n_fits_: int
    best_epochs_: tuple[int, ...] | None
    validation_curve_: np.ndarray | None

    def __init__(
        self,
        penalty: str | Penalty = "frhsic",
        penalty_weight: float = 10.0,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        *,
        hidden_layer_sizes: Sequence[int] = (50,),
        representation_size: int | None = 50,
        activation: str = "selu",
        epochs: int | str = 200,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        schedule: Schedule = "constant",
        weight_decay: float | None = None,
        variance_floor: float | None = None,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        ensemble: int = 1,
        scaling: str = "range",
        handle_unknown: str = "ignore",
        feature_encoding: TableEncoding | None = None,
        sensitive_encoding: TableEncoding | None = None,
        warm_start: bool = False,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.penalty = penalty
        self.penalty_weight = penalty_weight
        self.encoder = encoder
        self.hidden_layer_sizes = hidden_layer_sizes
        self.representation_size = representation_size
        self.activation = activation
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.variance_floor = variance_floor
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.ensemble = ensemble
        self.scaling = scaling
        self.handle_unknown = handle_unknown
        self.feature_encoding = feature_encoding
        self.sensitive_encoding = sensitive_encoding
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit encoder and head.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Features: numbers, booleans, and in a DataFrame also text, categories, dates and durations. Missing values
            are taken.
        y : array of shape (n,)
            Target: labels of two or more classes for a classifier, numbers for a regressor, either or None for an
            encoder.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q), optional
            Numeric attributes; in a Series or DataFrame also bands such as "30-39" and ordered categories, which are
            turned into numbers with a warning. Without them the model is trained without penalty, with a warning unless
            `penalty_weight` is 0. Rows with NaN in one of them train the task and skip the penalty, with a
            warning: batches hold such rows and others in even shares, and scales are those of the others. If many rows
            lack them, raise `batch_size`: on few rows of a batch the same weight does not do the same.
        sample_weight : array of shape (n,), optional
            Weights of the rows in the task loss; the penalty does not use them.
        groups : array of shape (n,), optional
            Rows of one group, such as those of one person, are held out together for early stopping, or not at all.
        """
        set_up = self._resume if self.warm_start and self.__sklearn_is_fitted__() else self._start
        return self._train(set_up, FitCall(X, y, sensitive_features, sample_weight, self.epochs, groups=groups))

    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch on a part of the data, continuing from the last call.

        The first call fixes scales, levels, classes and what the penalty fits in advance; pass `feature_encoding` and
        `sensitive_encoding` to set the scales of the whole data. Adam's moments start anew in each call, so pass parts
        of many batches. It does not stop early and holds out no rows. The parameters are those of :meth:`fit`.
        """
        check_continues(self)
        set_up = self._resume if self.__sklearn_is_fitted__() else self._start
        return self._train(set_up, FitCall(X, y, sensitive_features, sample_weight, 1))

    def transform(self, X: Any) -> np.ndarray:
        """Return the representation Z = h(X), of shape (n, representation size), float64."""
        return self._evaluated(X, with_head=False)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file; :func:`frhsic.load` reads it."""
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    @property
    def representation_rank_(self) -> int:
        """Number of directions of Z that are left above the variance floor; of an ensemble, the sum of its members'."""
        check_is_fitted(self)
        return rank(self.encoder_) if self.has_bottleneck_ else self.representation_size_

    @property
    def _n_features_out(self) -> int:
        return int(self.representation_size_)

    def _target(self, y: Any, classes: Any = None) -> Target:
        """Check y and turn it into what training takes; the first call learns its scale or its classes."""
        raise TypeError(f"{type(self).__name__} has no target.")

    def _completed(self, target: Target, x: np.ndarray, sensitive_features: Any, weights: Any) -> Target:
        """Return the target, once the columns of x are known."""
        return target

    def _train(self, set_up: Callable[[FitCall], Problem], call: FitCall) -> Self:
        """Set up a problem and train on it; on failure the estimator is left as it was."""
        with restored_on_failure(self):
            problem = set_up(call)
            weight = 0.0 if isinstance(problem.penalty, NoPenalty) else float(self.penalty_weight)
            self._adopt(self._trained(problem, [weight], call.epochs), 0, through_bottleneck=problem.through_bottleneck)
        self.n_fits_ += 1
        return self

    def _learned(self) -> dict[str, Any]:
        """Return the fitted attributes, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.endswith("__")}

    def _start(self, call: FitCall) -> Problem:
        """Check all arguments and set up training from new initial weights."""
        for name in self._learned():
            delattr(self, name)
        self.random_seed_, self.n_fits_ = seed_of(self.random_state), 0
        data, target, penalized = self._rows(call)
        size = self.representation_size
        if size is None:
            size = SIZE_WITHOUT_TARGET if target.task == "reconstruction" else SIZE
        encoder = encoder_maker(self.encoder, data.columns, self.hidden_layer_sizes, size, self.activation)
        width = width_of(encoder, data)
        self.representation_size_ = self.ensemble * width
        return Problem(
            data,
            target.task,
            encoder,
            partial(affine_head, width, target.outputs),
            self._unprepared_penalty(target.task) if penalized else NoPenalty(),
            self.random_seed_,
        )

    def _resume(self, call: FitCall) -> Problem:
        """Check all arguments and set up training that continues from the last call, on its scales and classes.

        The penalty keeps its state unless another one is asked for than in the last call.
        """
        data, target, penalized = self._rows(call)
        penalty: Penalty = self._unprepared_penalty(target.task) if penalized else NoPenalty()
        if type(penalty) is type(self.penalty_) and to_json(penalty) == to_json(self.penalty_):
            penalty = self.penalty_
        few = penalized and self._floor(target.task) > 0 and not enough_rows(data.rows, self.representation_size_)
        through_bottleneck = few and self.has_bottleneck_
        encoder = self.encoder_
        if self.has_bottleneck_ and not through_bottleneck:
            encoder = next(self.encoder_.children())
        return Problem(
            data,
            target.task,
            partial(copy.deepcopy, encoder),
            partial(copy.deepcopy, self.head_),
            penalty,
            later_seed(self.random_seed_, self.n_fits_),
            through_bottleneck,
        )

    def _rows(self, call: FitCall) -> tuple[TrainingData, Target, bool]:
        """Check parameters and rows; return the rows encoded, the target, and whether there is a penalty."""
        check_parameters(self)
        X = checked_table(self, call.X, first=not hasattr(self, "feature_encoding_"))
        x = encoded_features(self, X)
        target = self._target(call.y, call.classes)
        if target.values is not None and len(target.values) != len(x):
            raise ValueError(f"lengths differ: X has {len(x)} rows, y has {len(target.values)}.")
        weights = call.sample_weight
        weights = None if weights is None else _check_sample_weight(weights, x, ensure_non_negative=True)
        s = scaled_attributes(self, call.sensitive_features, len(x))
        warn_shared_columns(self)
        held_out = None if call.epochs == 1 else validation_rows(self, target, s, len(x), call.groups)
        target = self._completed(target, x, call.sensitive_features, weights)
        return training_data(x, target, s, weights, held_out), target, s is not None

    def _trained(
        self, problem: Problem, weights: Sequence[float], epochs: int | str, *, sequential: bool = False
    ) -> Fleet:
        learned = Recipe(
            problem.task,
            problem.penalty,
            problem.encoder,
            problem.head,
            epochs=number_of_epochs(epochs, problem.data.rows, self.batch_size),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self._decay(problem.task),
            variance_floor=self._floor(problem.task),
            schedule=self.schedule,
            patience=None if problem.data.held_out is None else int(self.n_iter_no_change),
        )
        fleet = train(
            problem.data,
            [Member(weight, seed) for weight in weights for seed in member_seeds(problem.seed, self.ensemble)],
            learned,
            device=self.device,
            progress=bool(self.verbose),
            execution=Execution(sequential=sequential),
        )
        if fleet.interrupted:
            raise KeyboardInterrupt
        return fleet

    def _decay(self, task: Task) -> float:
        if self.weight_decay is not None:
            return float(self.weight_decay)
        return 0.0 if task == "reconstruction" else self._penalty(task).default_weight_decay

    def _floor(self, task: Task) -> float:
        return self._penalty(task).default_variance_floor if self.variance_floor is None else float(self.variance_floor)

    def _adopt(self, fleet: Fleet, index: int, *, through_bottleneck: bool = False) -> None:
        """Take over the model of one weight, which was trained through a bottleneck or may have got one afterwards."""
        places = list(range(index * self.ensemble, (index + 1) * self.ensemble))
        encoder, head = joined([fleet.module(i) for i in places])
        self.has_bottleneck_ = through_bottleneck or fleet.cuts(places[0])
        self.encoder_, self.head_ = encoder.cpu(), head.cpu()
        self.penalty_ = copy.deepcopy(fleet.penalty)
        state = {name: values[places[0]].detach().clone() for name, values in fleet.penalty_state.items()}
        set_state(self.penalty_, state)
        self.penalty_ = self.penalty_.cpu()
        history, epochs = fleet.history.select(places), None
        self.best_epochs_ = self.validation_curve_ = None
        if history.best_epoch is not None and history.held_out_objective is not None:
            epochs = int(fleet.epochs_done[places].max())
            self.best_epochs_ = tuple(history.best_epoch.tolist())
            self.validation_curve_ = _mean(history.held_out_objective[:, :epochs])
        self.loss_curve_, self.penalty_curve_ = (_mean(c[:, :epochs]) for c in (history.task_loss, history.penalty))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _penalty(self, task: Task) -> Penalty:
        """Return the penalty that the parameters ask for."""
        if isinstance(self.penalty, Penalty):
            return self.penalty
        return penalty_named(self.penalty, self.representation_size_ // self.ensemble, head=task != "reconstruction")

    def _unprepared_penalty(self, task: Task) -> Penalty:
        penalty = self._penalty(task).unprepared()
        if penalty.condition == "positive" and task != "binary":
            raise ValueError(
                f"the penalty is for Equal Opportunity (condition='positive'), which needs two classes; the task is "
                f"{task}. Pass condition='all'."
            )
        return penalty

    def _evaluated(self, X: Any, *, with_head: bool) -> np.ndarray:
        """Return Z, or the head's raw output, of rows: float64.

        The library's own encoder runs in float64, in which the result of a row does not depend on the other rows; a
        user's encoder runs in float32, in which it was trained.
        """
        check_is_fitted(self)
        X = checked_table(self, X, first=False)
        x = torch.from_numpy(encoded_features(self, X))
        dtype = torch.float64 if self.encoder is None else torch.float32
        device = _arrays.resolve_device(self.device)
        modules = [self.encoder_, self.head_] if with_head else [self.encoder_]
        model = copy.deepcopy(nn.Sequential(*modules)).to(device=device, dtype=dtype).eval()
        with torch.no_grad():
            parts = [
                model(rows.to(device=device, dtype=dtype)).to(torch.float64).cpu()
                for rows in torch.split(x, CHUNK_ROWS)
            ]
        return _arrays.to_numpy(torch.cat(parts))


def _mean(curves: Tensor) -> np.ndarray:
    """Return the mean of the members' curves (K, epochs), over those that were trained in an epoch."""
    return _arrays.to_numpy(curves[0] if len(curves) == 1 else curves.nanmean(0))
