"""Boosted trees as plain arrays: they predict without the library that grew them, and a file can hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

MOST_LEAVES = 32
"""Largest number of leaves of a tree: each is one bit of a 32-bit number."""

CHUNK_ROWS = 256
"""Number of rows that pass through the trees at once; their intermediate results fit into a processor's cache."""

ALL = np.uint32(2**32 - 1)


@dataclass(frozen=True, eq=False)
class Trees:
    r"""A sum of regression trees, :math:`f(x) = b + \sum_t v_t[\ell_t(x)]`, with T trees of at most N + 1 leaves.

    Leaves are numbered from left to right. A row that goes right at a node cannot end in a leaf to its left below that
    node. So the leaf of a row is the first one that no node excludes, and the order of the nodes does not matter
    (Lucchese et al., QuickScorer, SIGIR 2015). Trees with fewer nodes are filled up with nodes where every row goes
    left.

    Attributes
    ----------
    feature : ndarray of int64, (N, T)
        Column that a node looks at.
    threshold : ndarray of float64, (N, T)
        A row goes right if its value is larger.
    missing_left : ndarray of bool, (N, T)
        Whether a row without a value goes left.
    kept : ndarray of uint32, (N, T)
        Leaves that stay possible for a row that goes right, one bit for each.
    value : ndarray of float64, (T, N + 1)
        Value of each leaf.
    baseline : ndarray of float64, (outputs,)
        Value before the first tree. Tree t adds to output t modulo the number of outputs.
    """

    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    kept: np.ndarray
    value: np.ndarray
    baseline: np.ndarray

    def check(self, columns: int) -> None:
        """Raise unless the arrays fit each other and a table of so many columns."""
        inner, count = self.feature.shape if self.feature.ndim == 2 else (-1, -1)
        shapes = [self.threshold.shape, self.missing_left.shape, self.kept.shape]
        if any(shape != (inner, count) for shape in shapes) or self.value.shape != (count, inner + 1):
            raise ValueError("the arrays of the trees do not fit each other.")
        if self.baseline.ndim != 1 or not len(self.baseline) or inner >= MOST_LEAVES:
            raise ValueError("the trees have no baseline, or too many leaves.")
        if inner and count and not 0 <= int(self.feature.min()) <= int(self.feature.max()) < columns:
            raise ValueError(f"the trees look at columns that the table of {columns} does not have.")
        leaves = np.uint32((1 << (inner + 1)) - 1)
        if not (np.bitwise_and.reduce(self.kept, axis=0, initial=ALL) & leaves).all():
            raise ValueError("the trees have rows that end in no leaf.")
        if not (np.isfinite(self.value).all() and np.isfinite(self.baseline).all()):
            raise ValueError("the trees hold values that are not finite.")

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the trees of scikit-learn's histogram boosting. No other function reads its private attributes."""
        nodes = [tree.nodes for iteration in model._predictors for tree in iteration]
        inner = max((int((one["is_leaf"] == 0).sum()) for one in nodes), default=0)
        if inner >= MOST_LEAVES:
            raise ValueError(f"a tree has {inner + 1} leaves; {MOST_LEAVES} are the most. Set max_leaf_nodes.")
        shape = (inner, len(nodes))
        trees = cls(
            np.zeros(shape, np.int64),
            np.full(shape, np.inf),
            np.ones(shape, bool),
            np.full(shape, ALL),
            np.zeros((len(nodes), inner + 1)),
            np.asarray(model._baseline_prediction, np.float64).reshape(-1),
        )
        for t, one in enumerate(nodes):
            is_leaf = one["is_leaf"] == 1
            splits = one[~is_leaf]
            before = np.concatenate([[0], np.cumsum(is_leaf)])  # leaves before a node; nodes are stored in preorder
            below_left = [(1 << int(before[node["right"]])) - (1 << int(before[node["left"]])) for node in splits]
            k = len(splits)
            trees.feature[:k, t] = splits["feature_idx"]
            trees.threshold[:k, t] = splits["num_threshold"]
            trees.missing_left[:k, t] = splits["missing_go_to_left"] == 1
            trees.kept[:k, t] = ~np.array(below_left, dtype=np.uint32)
            trees.value[t, : k + 1] = one["value"][is_leaf]
        return trees

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the sum of the trees, float64 (n, outputs), for rows (n, d) that may lack values."""
        parts = [self._sums(np.ascontiguousarray(x[i : i + CHUNK_ROWS].T)) for i in range(0, len(x), CHUNK_ROWS)]
        return np.asarray(np.concatenate(parts, axis=1).T + self.baseline)

    def _sums(self, columns: np.ndarray) -> np.ndarray:
        possible = np.full((len(self.value), columns.shape[1]), ALL)  # leaves, one bit for each
        values, right = np.empty(possible.shape), np.empty(possible.shape, bool)
        some_missing = bool(np.isnan(columns).any())
        for k in range(len(self.feature)):
            np.take(columns, self.feature[k], axis=0, out=values, mode="clip")
            np.greater(values, self.threshold[k][:, None], out=right)
            if some_missing:
                right |= np.isnan(values) & ~self.missing_left[k][:, None]
            kept = np.subtract(right, 1, dtype=np.uint32, casting="unsafe")  # all bits for a row that goes left
            kept |= self.kept[k][:, None]
            possible &= kept
        first = possible & (~possible + np.uint32(1))  # the lowest bit alone
        leaf = np.bitwise_count(first - np.uint32(1)).astype(np.intp)
        sums = np.take_along_axis(self.value, leaf, axis=1)
        return np.asarray(sums.reshape(-1, len(self.baseline), columns.shape[1]).sum(axis=0))
