"""Held-out rows: how they are split off, and the scores of a model on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from frhsic import splits

__all__ = ["rows_held_out", "rows_of", "scores_of", "split"]


def split(
    X: Any, y: Any, s: Any, *, held_out: float | tuple[Any, Any, Any], name: str, seed: int
) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Split rows into a part to fit on and a part to measure on.

    Parameters
    ----------
    X, y, s
        Rows.
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
        (X, y, s) of the rows to fit on, and of those held out.
    """
    if not isinstance(held_out, (int, float)):
        return (X, y, s), held_out
    fit, held = rows_held_out(len(y), held_out, name=name, seed=seed)
    return (rows_of(X, fit), rows_of(y, fit), rows_of(s, fit)), (rows_of(X, held), rows_of(y, held), rows_of(s, held))


def rows_held_out(
    n: int, share: float, *, name: str, seed: int, groups: Any = None, order: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the rows to fit on and of those held out.

    Parameters
    ----------
    n
        Number of rows.
    share
        Share of the rows to hold out: at random, unless `groups` or `order` is given.
    name, seed
        As in :func:`split`.
    groups
        Group of each row, such as a person: no group is in both parts.
    order
        Key of each row, such as a date: the last rows are held out. See :func:`frhsic.splits.held_out_rows`.
    """
    if not 0 < share < 1:
        raise ValueError(f"{name}={share}; pass a share of the rows between 0 and 1, or (X, y, sensitive_features).")
    if groups is not None or order is not None:
        return splits.held_out_rows(n, share, seed=seed, groups=groups, order=order)
    fit, held = train_test_split(np.arange(n), test_size=float(share), random_state=seed)
    return fit, held


def rows_of(part: Any, rows: np.ndarray) -> Any:
    """Return these rows of an array or a frame of any kind."""
    return _safe_indexing(part, rows)


def scores_of(model: Any, X: Any, s: Any = None) -> np.ndarray:
    """Return the scores of a fitted model: probabilities (of the second of two classes), or predictions.

    `s` holds the attributes of the rows, which a model with ``uses_sensitive`` needs.
    """
    more = {"sensitive_features": s} if getattr(model, "uses_sensitive", False) else {}
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X, **more))
    probabilities = np.asarray(model.predict_proba(X, **more))
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
