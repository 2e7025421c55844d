"""Folds for cross-fitting: stratified, within groups, and independent of the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

FOLDS = 5
"""Largest number of folds."""


def row_keys(x: np.ndarray) -> np.ndarray:
    """Return one number for each row of a matrix, equal for equal rows and practically never for others.

    Examples
    --------
    >>> keys = row_keys(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    weights = np.random.default_rng(0).uniform(1.0, 2.0, size=x.shape[1])
    return np.asarray((np.nan_to_num(x, nan=np.pi) * weights).sum(axis=1))


def dealt(
    x: np.ndarray, y: np.ndarray, classes: np.ndarray | None, groups: Any, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of the rows that depends on their content alone, and the fold of each row.

    Parameters
    ----------
    x, y
        Rows; equal rows are interchangeable.
    classes
        Labels of y, which every fold gets its share of; None for a regression.
    groups
        Rows of one group share a fold; None if each row is its own.
    seed
        Seed of the shuffle.
    """
    codes = np.unique(y, return_inverse=True)[1]
    order = np.lexsort((codes, row_keys(x)))
    order = order[np.random.default_rng(seed).permutation(len(order))]
    k = _folds(y, classes)
    fold = np.empty(len(y), dtype=np.int64)
    if groups is None:
        by_class = order if classes is None else order[np.argsort(codes[order], kind="stable")]
        fold[by_class] = np.arange(len(y)) % k
        return order, fold
    groups = column_or_1d(groups)
    check_consistent_length(y, groups)
    k = min(k, len(np.unique(groups)))
    if k < 2:
        raise ValueError("groups has one group only, so no fold can be left out. Pass base=None, or other groups.")
    splitter = GroupKFold(k) if classes is None else StratifiedGroupKFold(k, shuffle=True, random_state=seed % 2**31)
    for i, (_, held_out) in enumerate(splitter.split(order, codes[order], groups[order])):
        fold[order[held_out]] = i
    return order, fold


def _folds(y: np.ndarray, classes: np.ndarray | None) -> int:
    """Return the number of folds: at most as many as the second most frequent class has rows."""
    if classes is None:
        if len(y) < 4:
            raise ValueError(f"X has {len(y)} rows; a base needs 4 to be fitted out of fold. Pass base=None.")
        return min(FOLDS, len(y) // 2)
    labels, counts = np.unique(y, return_counts=True)
    second = int(np.sort(counts)[-2]) if len(labels) > 1 else 0
    if second < 2:
        rare = {label: int(n) for label, n in zip(labels.tolist(), counts)}
        raise ValueError(
            f"the rows of each class are {rare}; a base needs two classes with at least 2 rows each to be fitted out "
            "of fold. Pass base=None, or FrozenEstimator(model) with a model fitted elsewhere."
        )
    return min(FOLDS, second)
