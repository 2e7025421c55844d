"""A base model under the penalty: fitted without S, its cross-fitted scores join the columns of X."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from frhsic.estimators.base_scores import BasePerformance, raw_scores, row_losses
from frhsic.estimators.boosted import BoostedTrees, BoostedTreesClassifier, BoostedTreesRegressor
from frhsic.estimators.folds import dealt, row_keys
from frhsic.estimators.targets import Target

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

log = logging.getLogger(__name__)

MIN_ROWS = 100
"""Fewest rows for ``base="boosted"``: a tree cannot learn from fewer, and the model is trained without base."""

MIN_CLASS_ROWS = 5
"""Fewest rows in each of two classes for ``base="boosted"``."""

TAIL = 0.001
"""Share of the scores at each end that does not count for centre and spread."""

CLIP = 8.0
"""Scores further than this many spreads from the centre are moved there."""

LEAK_ERRORS = 4.0
"""Paired standard errors by which a frozen model's loss may be below that of its cross-fitted clone."""

PREDICTS = ("predict_proba", "decision_function", "predict")


class LeakingBaseWarning(UserWarning):
    """A frozen base model seems to have been trained on the rows that the estimator is fitted on.

    Its scores then know y, the encoder trusts them too much, and predictions on other rows are worse. Fit on rows that
    the frozen model has not seen, or pass the model without ``FrozenEstimator``, so that it is fitted out of fold here.
    """


@dataclass(frozen=True)
class BaseRows:
    """Rows to fit a base on: the table as it came, its matrix, and y as it came, or None; no `classes` for numbers."""

    X: Any
    x: np.ndarray
    y: Any
    classes: np.ndarray | None
    sample_weight: np.ndarray | None = None
    groups: Any = None

    def at(self, rows: np.ndarray) -> BaseRows:
        """Return some of the rows."""
        y, weights, groups = (
            None if values is None else _safe_indexing(values, rows)
            for values in (self.y, self.sample_weight, self.groups)
        )
        return BaseRows(_safe_indexing(self.X, rows), self.x[rows], y, self.classes, weights, groups)


@dataclass(frozen=True, eq=False)
class FittedBase:
    """A base model fitted on all rows, and the scale of its scores.

    Attributes
    ----------
    model
        The deployed model: fitted on all rows, or the one that was passed.
    classes
        Labels that its scores are ordered by; None for a regression.
    center, spread
        Mean and standard deviation of each column of scores on the training rows.
    performance
        What it reaches alone.
    keys, columns
        Training rows and their scaled out-of-fold scores: rows that come again in a later call get these, since the
        deployed model knows their y. Not saved.
    """

    model: Any
    classes: np.ndarray | None
    center: np.ndarray
    spread: np.ndarray
    performance: BasePerformance
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0))
    columns: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.center)

    def __call__(self, X: Any) -> np.ndarray:
        """Return the scaled scores of the deployed model, (n, width)."""
        scores = raw_scores(self.model, X, self.classes).values
        if scores.shape[1] != self.width:
            raise ValueError(
                f"the base gives {scores.shape[1]} columns of scores, and was fitted with {len(self.center)}."
            )
        return scaled(scores, self.center, self.spread)

    def again(self, X: Any, x: np.ndarray) -> np.ndarray:
        """Return the scaled scores of rows to train on: out of fold for rows of the first call, deployed for others."""
        columns = self(X)
        if len(self.keys):
            keys = row_keys(x)
            at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            known = self.keys[at] == keys
            columns[known] = self.columns[at[known]]
        return columns


def fitted_base(base: Any, rows: BaseRows, seed: int) -> tuple[FittedBase | None, np.ndarray]:
    """Fit a base; return it and the scaled scores of its training rows. Without base, return None and no columns."""
    check_base(base)
    nothing = np.zeros((len(rows.x), 0))
    if base is None or (rows.y is None and isinstance(base, str)):
        return None, nothing
    if rows.y is None:
        raise ValueError("base was passed, but no y: a base model predicts y. Pass y, or leave base out.")
    if isinstance(base, str):
        if not _enough_rows(rows):
            log.info("no base model: boosted trees need %d rows, and two classes with %d.", MIN_ROWS, MIN_CLASS_ROWS)
            return None, nothing
        base = BoostedTreesRegressor() if rows.classes is None else BoostedTreesClassifier()
    if is_given(base):
        model, scores = base, raw_scores(base, rows.X, rows.classes)
        folds = 0
        if isinstance(base, FrozenEstimator):
            _warn_if_leaking(base, row_losses(scores, rows), rows, seed)
    else:
        model, scores, folds = _cross_fitted(base, rows, seed)
    center, spread = _scale(scores.values)
    columns = scaled(scores.values, center, spread)
    name = type(base.estimator if isinstance(base, FrozenEstimator) else base).__name__
    performance = scores.performance(rows, name, folds)
    log.info("base model %s", performance)
    keys = row_keys(rows.x) if folds else np.zeros(0)
    order = np.argsort(keys, kind="stable")
    return FittedBase(model, rows.classes, center, spread, performance, keys[order], columns[order]), columns


def base_classes(estimator: ParityBase, target: Target) -> np.ndarray | None:
    """Return the labels that the scores of a base are ordered by, or None for numbers."""
    return None if target.task == "regression" else getattr(estimator, "classes_", None)


def with_base(estimator: ParityBase, rows: BaseRows, held_out: np.ndarray | None) -> np.ndarray:
    """Return the columns of rows to train on with the scores of the base, which the first call fits.

    Rows held out for early stopping are scored by the deployed base, as new rows will be.
    """
    if hasattr(estimator, "base_"):
        base = estimator.base_
        return rows.x if base is None else np.concatenate([rows.x, base.again(rows.X, rows.x)], axis=1)
    kept = None if held_out is None else np.flatnonzero(~held_out)
    base, scores = fitted_base(estimator.base, rows if kept is None else rows.at(kept), estimator.random_seed_)
    estimator.base_, estimator.base_performance_ = base, None if base is None else base.performance
    if base is None:
        return rows.x
    if kept is not None:
        columns = base(rows.X)
        columns[kept] = scores
        scores = columns
    return np.concatenate([rows.x, scores], axis=1)


def check_base(base: Any) -> None:
    """Raise if a base cannot be used: an unknown name, an object that does not predict, or one that needs S."""
    if base is None or (isinstance(base, str) and base == "boosted"):
        return
    if isinstance(base, (str, type)) or not (callable(base) or any(hasattr(base, name) for name in PREDICTS)):
        raise ValueError(
            f"base={base!r}; pass 'boosted', None, a scikit-learn estimator, FrozenEstimator(model) or a function of X "
            "that returns scores."
        )
    inner = getattr(base, "estimator", base) if isinstance(base, FrozenEstimator) else base
    methods = [getattr(inner, name, None) for name in PREDICTS] if hasattr(inner, "predict") else [inner]
    if any(_takes(method, "sensitive_features") for method in methods):
        raise ValueError(
            f"base {type(inner).__name__} needs sensitive_features to predict. A base never sees them: the model must "
            "predict without. Pass a model that predicts from X alone."
        )
    if not is_given(base) and _takes(base.fit, "sensitive_features", required=True):
        raise ValueError(
            f"base {type(inner).__name__} needs sensitive_features to fit, which a base never sees. Fit it on other "
            "rows and pass FrozenEstimator(model)."
        )


def is_given(base: Any) -> bool:
    """Return whether a base is used without fitting: frozen estimators, functions and other objects that predict."""
    return isinstance(base, FrozenEstimator) or not (hasattr(base, "fit") and hasattr(base, "get_params"))


def scaled(scores: np.ndarray, center: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return scores in units of their spread, clipped.

    Examples
    --------
    >>> scaled(np.array([[3.0], [1e9]]), np.array([1.0]), np.array([2.0])).tolist()
    [[1.0], [8.0]]
    """
    return np.asarray(np.clip((scores - center) / spread, -CLIP, CLIP))


def _scale(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column after its tails are moved to their quantiles."""
    share = min(max(TAIL, 1 / len(scores)), 0.5)
    low, high = np.quantile(scores, [share, 1 - share], axis=0)
    inner = np.clip(scores, low, high)
    spread = inner.std(axis=0)
    return inner.mean(axis=0), np.where(spread > 1e-12 * (1 + np.abs(high)), spread, 1.0)


def _enough_rows(rows: BaseRows) -> bool:
    if rows.classes is None:
        return len(rows.y) >= MIN_ROWS
    counts = np.sort(np.unique(rows.y, return_counts=True)[1])
    return bool(len(rows.y) >= MIN_ROWS and len(counts) > 1 and counts[-2] >= MIN_CLASS_ROWS)


def _cross_fitted(base: Any, rows: BaseRows, seed: int) -> tuple[Any, Any, int]:
    """Fit a clone on all rows, and one on all folds but one for the scores of each fold.

    Rows are brought into an order that depends on their content alone, so that the order of the table does not matter.
    """
    kind = "regressor" if rows.classes is None else "classifier"
    if not (is_regressor(base) if rows.classes is None else is_classifier(base)):
        raise ValueError(f"base is {type(base).__name__}, which is no {kind}; the target needs one.")
    order, fold = dealt(rows.x, rows.y, rows.classes, rows.groups, seed)
    model = _fit(_seeded(base, seed), rows, order)
    again = _seeded(base, seed)
    if isinstance(model, BoostedTrees):
        again.set_params(n_iter=model.n_iter_)  # chosen once, on all rows
    parts: list[Any] = []
    for k in range(fold.max() + 1):
        one = _fit(clone(again), rows, order[fold[order] != k])
        parts.append((fold == k, raw_scores(one, _safe_indexing(rows.X, np.flatnonzero(fold == k)), rows.classes)))
    scores = parts[0][1].spread_over(parts)
    return model, scores, len(parts)


def _seeded(base: Any, seed: int) -> Any:
    """Return a clone whose random states that are None are set, so that the same seed gives the same model."""
    model = clone(base)
    parameters = model.get_params(deep=True)
    unset = [n for n, value in parameters.items() if n.split("__")[-1] == "random_state" and value is None]
    return model.set_params(**dict.fromkeys(unset, seed % 2**31))


def _fit(model: Any, rows: BaseRows, at: np.ndarray) -> Any:
    more = {}
    if rows.sample_weight is not None:
        more[_weight_name(model)] = rows.sample_weight[at]
    return model.fit(_safe_indexing(rows.X, at), rows.y[at], **more)


def _weight_name(model: Any) -> str:
    last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    if not has_fit_parameter(last[1], "sample_weight"):
        raise ValueError(
            f"base {type(model).__name__} takes no sample_weight, which was passed to fit. Pass another base, or "
            "base=None."
        )
    return f"{last[0]}__sample_weight" if last[0] else "sample_weight"


def _warn_if_leaking(base: FrozenEstimator, losses: np.ndarray | None, rows: BaseRows, seed: int) -> None:
    """Warn if a frozen model predicts these rows better than its clone does out of fold, beyond chance."""
    inner = base.estimator
    if losses is None or not (hasattr(inner, "fit") and hasattr(inner, "get_params")):
        return
    try:
        _, scores, _ = _cross_fitted(inner, rows, seed)
    except (TypeError, ValueError) as error:
        log.info("whether the frozen base leaks y could not be checked: %s", error)
        return
    clone_losses = row_losses(scores, rows)
    assert clone_losses is not None  # a clone gives scores of the same kind
    gain = clone_losses - losses
    standard_error = gain.std() / np.sqrt(len(gain))
    if gain.mean() > LEAK_ERRORS * standard_error:
        warnings.warn(
            f"the frozen base {type(inner).__name__} has a mean loss of {losses.mean():.4g} on these rows, its clone "
            f"fitted out of fold {clone_losses.mean():.4g}: it was trained on them, or on many more. If on them, its "
            "scores know y: fit on other rows, or pass the model without FrozenEstimator so that it is fitted out of "
            "fold here.",
            LeakingBaseWarning,
            stacklevel=8,  # the caller of fit
        )


def _takes(method: Callable[..., Any] | None, name: str, *, required: bool = False) -> bool:
    if method is None:
        return False
    try:
        parameter = inspect.signature(method).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and (not required or parameter.default is inspect.Parameter.empty)
