"""Assign the rows of a table to folds."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _num_samples

from frhsic.formatting import printable

# Types of the parameter `cv`.
ADMITTED_FOLDS = [Interval(Integral, 2, None, closed="left"), HasMethods("split"), "array-like"]
# A distinct row with at least this share of the weight counts as frequent.
FREQUENT = 0.001


def fold_of_rows(
    X: Any, cv: Any, labels: np.ndarray | None, groups: np.ndarray | None, seed: int
) -> np.ndarray:
    """Return the fold of each row of X, given a number of folds, a splitter, or pairs of row
    indices (train, test). With a number, folds are stratified by the labels, if there are any, and
    each group is in only one fold.

    Examples
    --------
    >>> fold_of_rows(np.zeros(4), 2, None, np.array(["a", "a", "b", "b"]), 0).tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """
    if isinstance(cv, Integral):
        if labels is None:
            kind: Any = KFold if groups is None else GroupKFold
        else:
            kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(cv, shuffle=True, random_state=seed % 2**32)
    rows = np.arange(_num_samples(X))
    pairs = cv if np.iterable(cv) else cv.split(X, labels, groups)
    try:
        parts = [(rows[pair[0]], rows[pair[1]]) for pair in pairs if hasattr(pair, "__len__")]
    except IndexError:  # these folds are for different rows
        parts = []
    parts = [part for part in parts if len(part[1])]  # with groups, a fold can be empty
    fold = np.full(len(rows), -1)
    for j, (_, held_out) in enumerate(parts):
        fold[held_out] = j
    once = (fold >= 0).all() and sum(len(held_out) for _, held_out in parts) == len(rows)
    if not once or not all(
        len(train) and np.array_equal(np.sort(train), rows[fold != j])
        for j, (train, _) in enumerate(parts)
    ):
        raise ValueError(
            f"cv is {printable(repr(cv), 80)}, but each of these {len(rows):,} rows must be in"
            " exactly one test set, with all other rows used for training. Pass a number of folds,"
            " a splitter such as GroupKFold, or PredefinedSplit(folds) with the fold of each row."
        )
    if groups is not None and pd.Series(fold).groupby(groups).nunique().max() > 1:
        raise ValueError(
            f"cv is {printable(repr(cv), 80)}, which assigns rows of one group to several folds."
            " Pass GroupKFold, or fit without groups."
        )
    return fold


def row_hashes(codes: np.ndarray) -> np.ndarray:
    """Return a hash of each row of a numeric table, (n,). A hash depends only on the row's values:
    not on the platform, the sign of a zero, or the bits of a NaN.

    Examples
    --------
    >>> row_hashes(np.array([[0.0, np.nan], [-0.0, -np.nan]])).tolist()
    [10600692446000027267, 10600692446000027267]
    """
    values = np.where(np.isnan(codes), np.nan, codes + 0.0).astype("<f8", order="C")
    content = [blake2b(row.tobytes(), digest_size=8).digest() for row in values]
    return np.frombuffer(b"".join(content), dtype="<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class HashedFolds:
    """Folds that depend on the content of rows, so that identical rows, including new ones, are in
    the same fold.

    The hash of a row determines its fold. Only frequent rows are assigned individually, in
    decreasing order of weight, to the fold with the smallest total weight so far.

    Attributes
    ----------
    n_folds
        Number of folds.
    frequent
        Hashes of the frequent rows, in increasing order.
    places
        Folds of the frequent rows.
    """

    n_folds: int
    frequent: np.ndarray
    places: np.ndarray

    @classmethod
    def fit(cls, codes: np.ndarray, n_folds: int, weights: np.ndarray) -> HashedFolds:
        """Find the frequent rows of a numeric table (n, d), taking weights into account, and assign
        them to folds.
        """
        hashes, cell = np.unique(row_hashes(codes), return_inverse=True)
        if len(hashes) < n_folds:
            raise ValueError(
                f"X has {len(hashes)} distinct rows, which cannot be split into {n_folds} folds."
                " Pass fewer folds as cv, or more rows."
            )
        mass = np.bincount(cell, weights)
        heavy = np.flatnonzero(mass >= FREQUENT * mass.sum())
        light = np.ones(len(mass), dtype=bool)
        light[heavy] = False
        fold = (hashes % np.uint64(n_folds)).astype(np.int64)
        sums = np.bincount(fold[light], mass[light], minlength=n_folds)
        for one in heavy[np.argsort(-mass[heavy], kind="stable")]:
            fold[one] = sums.argmin()
            sums[fold[one]] += mass[one]
        return cls(n_folds, hashes[heavy], fold[heavy])

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Return the fold of each row."""
        hashes = row_hashes(codes)
        fold = (hashes % np.uint64(self.n_folds)).astype(np.int64)
        place = np.searchsorted(self.frequent, hashes)
        known = np.flatnonzero(place < len(self.frequent))
        known = known[self.frequent[place[known]] == hashes[known]]
        fold[known] = self.places[place[known]]
        return fold
