"""The scores of any fitted model, the AUC of scores, and means with standard errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "auc_and_influence",
    "mean_and_error",
    "model_outputs",
    "model_scores",
    "weighted_moments",
]


def model_scores(model: Any, X: Any, s: Any = None, controls: Any = None) -> np.ndarray:
    """Return the scores of a fitted model: probabilities (for two classes, of the second), or
    predictions.

    Pass the sensitive attributes as `s` for a model with ``uses_sensitive``, and the control
    features as `controls` if the model needs them and X does not contain them.
    """
    more = {"sensitive_features": s} if getattr(model, "uses_sensitive", False) else {}
    if controls is not None:
        more["control_features"] = controls
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X, **more))
    probabilities = np.asarray(model.predict_proba(X, **more))
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities


def model_outputs(model: Any, X: pd.DataFrame, s: Any = None) -> pd.DataFrame:
    """Return the output of a fitted model for a table as columns: "score" and "predicted" for two
    classes, one "score_CLASS" for each class and "predicted" for more classes, "predicted" for a
    regressor, and the columns of Z for an encoder.
    """
    import pandas as pd

    if not hasattr(model, "predict"):
        known = {"sensitive_features": s} if getattr(model, "uses_sensitive", False) else {}
        z = model.transform(X, **known)
        return pd.DataFrame(np.asarray(z), X.index, model.get_feature_names_out())
    scores = model_scores(model, X, s)
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({"predicted": scores.astype(np.float64)}, X.index)
    names = ["score"]
    label = scores > getattr(model, "threshold_", 0.5)
    if scores.ndim == 2:
        names = [f"score_{name}" for name in model.classes_]
        label = scores.argmax(axis=1)
    predicted = model.classes_[label.astype(np.int64)].astype(object)
    return pd.DataFrame(scores, X.index, names).assign(predicted=predicted)


def auc_and_influence(
    scores: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Return the AUC of scores for y in {0, 1}, with ties counted as one half, and the influence of
    each row on the AUC (DeLong et al., 1988); both are NaN unless both classes occur.

    Examples
    --------
    >>> auc_and_influence(np.array([0.2, 0.5, 0.5]), np.array([0, 0, 1]), np.array([1.0, 2.0, 1.0]))
    (0.6666666666666666, array([ 0.44444444, -0.22222222,  0.        ]))
    """
    w = np.ones(len(y)) if weights is None else weights
    if not (w[y == 1].any() and w[y == 0].any()):
        return np.nan, np.full(len(y), np.nan)
    # the weight of each label below each distinct score, plus half of the ties at it
    _, place = np.unique(scores, return_inverse=True)
    masses = np.stack([np.bincount(place, w * (y == label)) for label in (0, 1)])
    below = (np.cumsum(masses, axis=1) - masses / 2) / masses.sum(axis=1, keepdims=True)
    # the share of rows with the other label relative to which a row is ranked correctly
    beaten = np.where(y == 1, below[0, place], 1 - below[1, place])
    auc = float(np.average(beaten[y == 1], weights=w[y == 1]))
    share = np.where(y == 1, w[y == 1].sum(), w[y == 0].sum()) / w.sum()
    influence = (beaten - auc) / share
    return auc, influence


def weighted_moments(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the sums over rows of w, w f, w², w² f and w² f², of shape (5,), for
    :func:`mean_and_error`.
    """
    squares = weights**2
    return np.array(
        [weights.sum(), weights @ values, squares.sum(), squares @ values, squares @ values**2]
    )


def mean_and_error(name: str, moments: np.ndarray, center: float = 0.0) -> dict[str, float]:
    """Return a weighted mean with its standard error, from moments about a nearby center."""
    total, first, squares, cross, second = moments
    mean = first / total
    error = np.sqrt(max(second - 2 * mean * cross + mean**2 * squares, 0.0)) / total
    return {name: float(center + mean), f"{name}_error": float(error)}
