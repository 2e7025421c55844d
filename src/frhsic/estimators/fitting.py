"""Regressions fitted out of fold, so that every row is predicted by a model that has not seen it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from frhsic._warnings import warn
from frhsic.estimators.inputs import Sample
from frhsic.tables.columns import is_frame

# Standard errors by which a frozen model may be better on these rows than its clone on rows that it has not seen.
LEAK_ERRORS = 4.0


class LeakingEstimatorWarning(UserWarning):
    """A frozen model seems to have been trained on the rows that are passed to fit.

    Its scores then know y, so that loss and gaps are understated. Fit on rows that it has not seen, or pass the model
    without ``FrozenEstimator``, so that it is fitted out of fold here.
    """


def cross_fitted(
    fold: np.ndarray, fit: Callable[[np.ndarray], Any], predict: Callable[[Any, np.ndarray], np.ndarray]
) -> tuple[list[Any], np.ndarray]:
    """Return what `fit` makes of the rows outside of each fold, and what `predict` makes of that in the fold.

    `fit` takes the rows as booleans, (n,), and `predict` as their positions.
    """
    held_out = [np.flatnonzero(fold == j) for j in range(fold.max() + 1)]
    models = [fit(fold != j) for j in range(len(held_out))]
    parts = [predict(model, rows) for model, rows in zip(models, held_out)]
    return models, np.concatenate(parts)[np.argsort(np.concatenate(held_out))]


def fit_with_weights(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fit a model or a pipeline with weights of the rows."""
    if weights is None:
        return model.fit(X, y)
    prefix, last = (f"{model.steps[-1][0]}__", model[-1]) if isinstance(model, Pipeline) else ("", model)
    inner = last.estimator if isinstance(last, MultiOutputRegressor) else last
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(f"{type(inner).__name__} takes no sample_weight, which was passed to fit.")
    return model.fit(X, y, **{f"{prefix}sample_weight": weights})


def with_seed(model: Any, seed: int) -> Any:
    """Return a clone of a model in which every random state that is None is the seed."""
    model = clone(model)
    seeds = [k for k, value in model.get_params().items() if k.split("__")[-1] == "random_state" and value is None]
    return model.set_params(**dict.fromkeys(seeds, seed % 2**31))


def is_given(estimator: Any) -> bool:
    """Return whether a model is used as it is: frozen, a function, or an object that only predicts."""
    fits = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    return estimator is not None and (isinstance(estimator, FrozenEstimator) or not fits)


def require_columns(model: Any, X: Any) -> None:
    """Raise if a frame lacks columns that a model was fitted on, and name them; LightGBM would only count them."""
    names = getattr(model, "feature_names_in_", ()) if is_frame(X) else ()
    if lacking := [str(name) for name in names if name not in X.columns]:
        raise ValueError(f"X lacks {', '.join(map(repr, lacking))}, which the model was fitted on. Pass them, too.")


def warn_if_leaking(frozen: Any, sample: Sample, losses: Callable[[Any, np.ndarray], np.ndarray]) -> None:
    """Warn if a frozen model is better on a fold than its clone that was fitted on the others, beyond chance.

    `losses` returns the losses of a model on some rows.
    """
    model = frozen.estimator if isinstance(frozen, FrozenEstimator) else None
    if model is None or is_given(model):
        return
    train, held_out = np.flatnonzero(sample.fold != 0), np.flatnonzero(sample.fold == 0)
    try:
        X = _safe_indexing(sample.X, train)
        again = fit_with_weights(clone(model), X, sample.labels[train], sample.at(train)[0])
        gain = losses(again, held_out) - losses(frozen, held_out)
    except (TypeError, ValueError):  # a model that cannot be fitted on these rows was not fitted on them
        return
    if gain.mean() > LEAK_ERRORS * gain.std() / np.sqrt(len(gain)):
        warn(
            f"the frozen {type(model).__name__} predicts these rows better than its clone that was fitted without "
            "them: it seems to have been trained on them. Fit on other rows, or pass it without FrozenEstimator.",
            LeakingEstimatorWarning,
        )
