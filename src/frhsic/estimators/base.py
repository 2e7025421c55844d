"""What the three estimators have in common: constructor, training as a fleet, representations."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import nn

from frhsic import _arrays
from frhsic.estimators.checks import check_parameters, check_same_names, later_seed, seed_of, width_of
from frhsic.estimators.continued import Continued
from frhsic.estimators.names import penalty_named, variance_floor_of, weight_decay_of
from frhsic.estimators.persistence import save, set_state, to_json
from frhsic.fleet import Bottleneck, Fleet, Member, TrainingData, affine_head, enough_rows, mlp_encoder, train
from frhsic.fleet.losses import Task
from frhsic.penalties import NoPenalty, Penalty
from frhsic.tables import Number, TableEncoding

__all__ = ["MissingSensitiveFeaturesWarning", "ParityBase", "Target"]

CHUNK_ROWS = 65_536
"""Rows that are encoded at once."""


class MissingSensitiveFeaturesWarning(UserWarning):
    """An estimator with `penalty_weight` above 0 was fitted without `sensitive_features`, hence without penalty.

    To make it an error: ``warnings.simplefilter("error", MissingSensitiveFeaturesWarning)``.
    """


@dataclass(frozen=True)
class Target:
    """A target as training takes it: values (n,) or None, the task, and how many outputs the head has."""

    values: np.ndarray | None
    task: Task
    outputs: int


@dataclass(frozen=True)
class Problem:
    """Everything that training needs, apart from the weight of the penalty."""

    data: TrainingData
    task: Task
    encoder: Callable[[], nn.Module]
    head: Callable[[], nn.Module]
    penalty: Penalty
    seed: int
    narrowed: bool
    """Whether the encoder starts with the cut of an earlier call, for want of rows for another."""


class ParityBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped in sklearn
    """Constructor and training of the three estimators; their documentation stands there."""

    encoder_: nn.Module
    head_: nn.Module
    penalty_: Penalty
    feature_encoding_: TableEncoding
    sensitive_encoding_: TableEncoding
    sensitive_names_in_: np.ndarray
    classes_: np.ndarray
    representation_size_: int
    narrowed_: bool
    random_seed_: int
    n_fits_: int

    def __init__(
        self,
        penalty: str | Penalty = "hsic",
        penalty_weight: float = 10.0,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        *,
        hidden_layer_sizes: Sequence[int] = (50,),
        representation_size: int = 50,
        epochs: int = 200,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float | None = None,
        variance_floor: float | None = None,
        handle_unknown: str = "error",
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
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.variance_floor = variance_floor
        self.handle_unknown = handle_unknown
        self.feature_encoding = feature_encoding
        self.sensitive_encoding = sensitive_encoding
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any) -> np.ndarray:
        """Return the representation Z = h(X), of shape (n, representation size), float64."""
        check_is_fitted(self)
        return self._evaluated(self._features(X), with_head=False)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file; :func:`frhsic.load` reads it."""
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "encoder_")

    @property
    def representation_rank_(self) -> int:
        """How many directions of Z are left by the floor under their variance."""
        check_is_fitted(self)
        if not self.narrowed_:
            return self.representation_size_
        *_, cut = self.encoder_.children()
        assert isinstance(cut, Bottleneck)
        return cut.rank

    @property
    def _n_features_out(self) -> int:
        return int(self.representation_size_)

    def _target(self, y: Any, *, fresh: bool, classes: Any = None) -> Target:
        """Check y and turn it into what training takes; remember how when `fresh`."""
        raise TypeError(f"{type(self).__name__} has no target.")

    def _fit(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        *,
        fresh: bool,
        epochs: int | None = None,
        classes: Any = None,
    ) -> Self:
        before = dict(vars(self))
        try:
            problem = self._problem(X, y, sensitive_features, sample_weight, fresh=fresh, classes=classes)
            weight = 0.0 if isinstance(problem.penalty, NoPenalty) else float(self.penalty_weight)
            fleet = self._trained(problem, [weight], self.epochs if epochs is None else epochs)
            self._adopt(fleet, 0, narrowed=problem.narrowed)
        except BaseException:  # a model that was fitted before stays whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        self.n_fits_ = 1 if fresh else self.n_fits_ + 1
        return self

    def _problem(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, *, fresh: bool, classes: Any = None
    ) -> Problem:
        """Check everything that came before anything is trained."""
        check_parameters(self)
        x = self._features(X, reset=fresh)
        target = self._target(y, fresh=fresh, classes=classes)
        if target.values is not None and len(target.values) != len(x):
            raise ValueError(f"lengths differ: X has {len(x)} rows, y has {len(target.values)}.")
        weighted = None if sample_weight is None else _check_sample_weight(sample_weight, x, ensure_non_negative=True)
        if fresh:
            self.random_seed_ = seed_of(self.random_state)
        s = self._sensitive(sensitive_features, len(x), fresh=fresh)
        data = TrainingData.of(x, target.values, np.zeros((len(x), 1)) if s is None else s, sample_weight=weighted)
        encoder = self._encoder_factory(x.shape[1], fresh=fresh)
        size = width_of(encoder, x.shape[1])
        if fresh:
            self.representation_size_ = size
        few = s is not None and self._floor() > 0 and not enough_rows(len(x), size)
        narrowed = few and not fresh and self.narrowed_
        if narrowed:
            encoder = partial(copy.deepcopy, self.encoder_)
        return Problem(
            data,
            target.task,
            encoder,
            partial(affine_head, size, target.outputs) if fresh else partial(copy.deepcopy, self.head_),
            self._penalty(target.task, size, fresh=fresh) if s is not None else NoPenalty(),
            self.random_seed_ if fresh else later_seed(self.random_seed_, self.n_fits_),
            narrowed,
        )

    def _trained(self, problem: Problem, weights: Sequence[float], epochs: int, *, sequential: bool = False) -> Fleet:
        decay = weight_decay_of(self.penalty, problem.task) if self.weight_decay is None else self.weight_decay
        fleet = train(
            problem.data,
            [Member(weight, problem.seed) for weight in weights],
            task=problem.task,
            penalty=problem.penalty,
            encoder=problem.encoder,
            head=problem.head,
            epochs=epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=decay,
            variance_floor=self._floor(),
            device=self.device,
            progress=bool(self.verbose),
            sequential=sequential,
        )
        if fleet.interrupted:
            raise KeyboardInterrupt
        return fleet

    def _floor(self) -> float:
        return variance_floor_of(self.penalty) if self.variance_floor is None else float(self.variance_floor)

    def _adopt(self, fleet: Fleet, index: int, *, narrowed: bool = False) -> None:
        """Take over one model of a fleet; `narrowed` if it was trained through the cut of an earlier call."""
        encoder, head = fleet.module(index)
        self.narrowed_ = narrowed or fleet.cuts(index)
        self.encoder_, self.head_ = encoder.cpu(), head.cpu()
        penalty = copy.deepcopy(fleet.penalty)
        set_state(penalty, {name: values[index].detach().clone() for name, values in fleet.penalty_state.items()})
        penalty = penalty.cpu()
        self.penalty_ = penalty.inner if isinstance(penalty, Continued) else penalty
        self.loss_curve_ = _arrays.to_numpy(fleet.history.task_loss[index])
        self.penalty_curve_ = _arrays.to_numpy(fleet.history.penalty[index])

    def _features(self, X: Any, *, reset: bool = False) -> np.ndarray:
        """Return X encoded, float64 (n, width), after scikit-learn's checks of columns and their names."""
        if hasattr(X, "columns") and hasattr(X, "dtypes"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset and self.feature_encoding is not None:
                self.feature_encoding.check_names(X)
        else:
            X = validate_data(self, X, reset=reset, dtype="numeric")
        if reset:
            self.feature_encoding_ = self.feature_encoding or TableEncoding.fit(X)
        return self.feature_encoding_(X, "ignore" if self.handle_unknown == "ignore" else "error")

    def _sensitive(self, values: Any, rows: int, *, fresh: bool) -> np.ndarray | None:
        """Return the sensitive attributes scaled, (n, q), or None where there is no penalty to train with."""
        off = self.penalty_weight == 0 or self.penalty == "none" or isinstance(self.penalty, NoPenalty)
        if values is None:
            if not off:
                warnings.warn(
                    f"{type(self).__name__} was given no sensitive_features, so it is trained without penalty although "
                    f"penalty_weight={self.penalty_weight:g}. Pass sensitive_features=..., or penalty_weight=0.",
                    MissingSensitiveFeaturesWarning,
                    stacklevel=5,
                )
            return None
        s = _arrays.to_numpy(_arrays.matrix(values, "sensitive_features")).astype(np.float64)
        if len(s) != rows:
            raise ValueError(f"lengths differ: X has {rows} rows, sensitive_features has {len(s)}.")
        names = _arrays.column_names(values, "sensitive", s.shape[1])
        if not fresh and hasattr(self, "sensitive_names_in_"):
            check_same_names(names, [str(name) for name in self.sensitive_names_in_])
        if fresh or not hasattr(self, "sensitive_encoding_"):
            found = TableEncoding(tuple(Number(n, float(c.min()), float(c.max())) for n, c in zip(names, s.T)))
            self.sensitive_encoding_ = self.sensitive_encoding or found
            self.sensitive_names_in_ = np.array(names, dtype=object)
            for column in self.sensitive_encoding_.columns:
                if isinstance(column, Number) and column.low == column.high:
                    raise ValueError(
                        f"sensitive attribute {column.name!r} is {column.low:g} in every row; nothing can depend on "
                        "it. Leave it out."
                    )
        scaled = self.sensitive_encoding_(s, name="sensitive_features")
        return None if off else scaled

    def _encoder_factory(self, columns: int, *, fresh: bool) -> Callable[[], nn.Module]:
        if not fresh:  # what was trained, without its cut
            return partial(copy.deepcopy, next(self.encoder_.children()) if self.narrowed_ else self.encoder_)
        if self.encoder is None:
            return partial(mlp_encoder, columns, list(self.hidden_layer_sizes), self.representation_size)
        if isinstance(self.encoder, nn.Module):
            return partial(copy.deepcopy, self.encoder)
        return partial(self.encoder, columns)

    def _penalty(self, task: Task, size: int, *, fresh: bool) -> Penalty:
        asked = self.penalty
        if isinstance(asked, str):
            asked = penalty_named(asked, size, head=task != "reconstruction")
        if not fresh and type(asked) is type(self.penalty_) and to_json(asked) == to_json(self.penalty_):
            return Continued(self.penalty_)
        if asked.condition == "positive" and task != "binary":
            raise ValueError(
                f"the penalty is for Equal Opportunity (condition='positive'), which needs two classes; the task is "
                f"{task}. Pass condition='all'."
            )
        return copy.deepcopy(asked)

    def _evaluated(self, x: np.ndarray, *, with_head: bool) -> np.ndarray:
        """Return Z, or the head's raw output, of encoded rows: float64.

        The library's own encoder runs in float64, in which a row's result does not depend on the rows beside it; an
        encoder of the user's runs in float32, in which it was trained.
        """
        width = torch.float64 if self.encoder is None else torch.float32
        place = _arrays.resolve_device(self.device)
        modules = [self.encoder_, self.head_] if with_head else [self.encoder_]
        model = copy.deepcopy(nn.Sequential(*modules)).to(device=place, dtype=width).eval()
        rows = torch.from_numpy(x)
        with torch.no_grad():
            parts = [
                model(rows[i : i + CHUNK_ROWS].to(device=place, dtype=width)).to(torch.float64).cpu()
                for i in range(0, len(rows), CHUNK_ROWS)
            ]
        return _arrays.to_numpy(torch.cat(parts))
