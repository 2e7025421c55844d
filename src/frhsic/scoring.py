"""The scores of a fitted model, whatever kind it is."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["scores_of"]


def scores_of(model: Any, X: Any, s: Any = None) -> np.ndarray:
    """Return the scores of a fitted model: probabilities (of the second of two classes), or
    predictions.

    `s` holds the attributes of the rows, which a model with ``uses_sensitive`` needs.
    """
    more = {"sensitive_features": s} if getattr(model, "uses_sensitive", False) else {}
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X, **more))
    probabilities = np.asarray(model.predict_proba(X, **more))
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
