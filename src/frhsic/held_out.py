"""Held-out rows: how they are split off, and the scores of a model on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

__all__ = ["scores_of", "split"]


def split(
    X: Any, y: Any, s: Any, sample_weight: Any = None, *, held_out: float | tuple[Any, Any, Any], name: str, seed: int
) -> tuple[tuple[Any, Any, Any, Any], tuple[Any, Any, Any]]:
    """Split rows into a part to fit on and a part to measure on.

    Parameters
    ----------
    X, y, s, sample_weight
        Rows; `sample_weight` may be None.
    held_out
        Share of the rows to hold out, drawn at random; or such rows themselves as (X, y, s), and all others are fitted
        on.
    name
        Name of the argument `held_out` in the caller's signature, for the error message.
    seed
        Seed of the split.

    Returns
    -------
    tuple
        (X, y, s, sample_weight) of the rows to fit on, and (X, y, s) of those held out.
    """
    if not isinstance(held_out, (int, float)):
        return (X, y, s, sample_weight), held_out
    if not 0 < held_out < 1:
        raise ValueError(f"{name}={held_out}; pass a share of the rows between 0 and 1, or (X, y, sensitive_features).")
    arrays = [X, y, s] + ([] if sample_weight is None else [sample_weight])
    parts = train_test_split(*arrays, test_size=float(held_out), random_state=seed)
    return (parts[0], parts[2], parts[4], None if sample_weight is None else parts[6]), (parts[1], parts[3], parts[5])


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Return the scores of a fitted model: probabilities (of the second of two classes), or predictions."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X))
    probabilities = np.asarray(model.predict_proba(X))
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
