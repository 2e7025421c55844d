"""Checked inputs of the measures of parity: scores, one attribute, weights and clusters, in a fixed order of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from frhsic import _arrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows sorted by s, then by their scores and weights, so that no result depends on the order they came in.

    Attributes
    ----------
    scores
        Of shape (rows, columns).
    s
        Of shape (rows,), increasing.
    weights
        Weights of the rows, with mean one.
    clusters
        Number of the cluster of each row, or None if rows are independent.
    """

    scores: Array
    s: Array
    weights: Array
    clusters: Integers | None

    @property
    def effective(self) -> float:
        """Effective number of rows, or of clusters: the square of the sum of weights over the sum of squares."""
        sums = self.weights if self.clusters is None else np.bincount(self.clusters, self.weights)
        return float(sums.sum() ** 2 / (sums**2).sum())


def rows_of(scores: Any, s: Any, where: Any = None, sample_weight: Any = None, clusters: Any = None) -> Rows:
    """Check the inputs and keep the rows of `where` that have a positive weight."""
    _arrays.require_same_rows(
        (scores, "scores"), (where, "where"), (sample_weight, "sample_weight"), (clusters, "groups")
    )
    f, values = (_arrays.to_numpy(x.to(torch.float64)) for x in _arrays.paired((scores, "scores"), (s, "s")))
    n = len(f)
    if values.shape[1] > 1:
        raise ValueError(f"s has {values.shape[1]} columns; a gap is along one attribute. Pass one column.")
    kept = np.ones(n, dtype=bool) if where is None else _arrays.to_numpy(_arrays.subset_mask(where, n))
    weights = np.ones(n) if sample_weight is None else _weights(sample_weight, n)
    labels = None if clusters is None else _labels(clusters, n)
    kept = kept & (weights > 0)
    f, values, weights = f[kept], values[kept, 0], weights[kept]
    _arrays.require_rows(len(f), 2, "a gap in mean scores")
    _arrays.require_varying(torch.from_numpy(values), "s")
    order = np.lexsort((weights, *f.T, values))
    if labels is not None:
        labels = np.unique(labels[kept][order], return_inverse=True)[1].ravel()
        if labels.max() == 0:
            raise ValueError("groups has one value in all rows; at least two groups are needed.")
    f, weights = f[order], weights[order] / weights.mean()
    return Rows(np.ascontiguousarray(f), values[order], weights, labels)


def one_column(rows: Rows) -> Rows:
    """Return the rows; raise if their scores have several columns."""
    if rows.scores.shape[1] > 1:
        raise ValueError(f"scores has {rows.scores.shape[1]} columns; pass one class at a time.")
    return rows


def levels(s: Array) -> Integers:
    """Return the first row of each distinct value of a sorted sample."""
    return np.flatnonzero(np.concatenate([[True], s[1:] != s[:-1]]))


def weighted_mean(weights: Array, values: Array) -> Array:
    """Return the mean over rows of each column."""
    return np.asarray(weights @ values / weights.sum())


def _weights(sample_weight: Any, n: int) -> Array:
    weights = _arrays.to_numpy(_arrays.vector(sample_weight, "sample_weight").to(torch.float64))
    if len(weights) != n:
        raise ValueError(f"lengths differ: sample_weight has {len(weights)} rows, the data have {n}.")
    if weights.min() < 0 or not math.isfinite(weights.sum()):
        raise ValueError("sample_weight must be finite and not negative.")
    return weights


def _labels(clusters: Any, n: int) -> Integers:
    labels = np.asarray(clusters)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}; pass one label for each of the {n} rows.")
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)
