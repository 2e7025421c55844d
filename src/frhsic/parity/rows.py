"""Rows of scores, validated once and sorted by s, from which gaps and curves are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frhsic import _arrays
from frhsic._arrays import effective_number

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Rows sorted by s, then by scores and weights, so that results do not depend on the input
    order.

    Attributes
    ----------
    scores
        The scores, (rows, columns).
    s
        The attribute, (rows,), increasing.
    weights
        Weights of the rows, with mean one.
    clusters
        Cluster of each row, or None if rows are independent.
    strata
        Stratum of each row (no stratum is empty); None if all rows are compared with each other.
    """

    scores: Array
    s: Array
    weights: Array
    clusters: Integers | None
    strata: Integers | None = None

    @property
    def effective(self) -> float:
        """Effective number of rows, or of clusters: the square of the sum of weights over the sum
        of squares.
        """
        sums = self.weights if self.clusters is None else np.bincount(self.clusters, self.weights)
        return effective_number(sums)

    @property
    def stratum_means(self) -> Array:
        """Mean scores in each stratum, or of all rows without strata, (strata, columns)."""
        if self.strata is None:
            return weighted_mean(self.weights, self.scores)[None]
        total = np.bincount(self.strata, self.weights)
        sums = [np.bincount(self.strata, self.weights * column) for column in self.scores.T]
        return np.stack(sums, axis=1) / total[:, None]


def check_rows(
    scores: Any,
    s: Any,
    where: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    strata: Integers | None = None,
) -> ScoreRows:
    """Convert and check the inputs, and keep the rows that `where` selects; see
    :func:`score_rows`.
    """
    _arrays.require_same_rows((scores, "scores"), (where, "where"), (clusters, "groups"))
    given = [(scores, "scores"), (s, "s")]
    if sample_weight is not None:
        given.append((sample_weight, "sample_weight"))
    f, *columns = (x.astype(np.float64) for x in _arrays.paired_matrices(*given))
    values, *weighted = (_arrays.only_column(x, name) for x, (_, name) in zip(columns, given[1:]))
    weights = weighted[0] if weighted else None
    if weights is not None and weights.min() < 0:
        raise ValueError("sample_weight contains negative numbers; pass nonnegative weights.")
    labels = None if clusters is None else np.asarray(clusters)
    if labels is not None and labels.shape != values.shape:
        raise ValueError(
            f"groups has shape {labels.shape}; pass one label for each of the {len(f)} rows."
        )
    if strata is not None and strata.shape != values.shape:
        raise ValueError(
            f"lengths differ: control_features has {len(strata)} rows, scores has {len(f)}."
        )
    if where is not None:
        kept = _arrays.subset_mask(where, len(f))
        f = f[kept]
        values = values[kept]
        weights = None if weights is None else weights[kept]
        labels = None if labels is None else labels[kept]
        strata = None if strata is None else strata[kept]
    return score_rows(f, values, weights, labels, strata)


def score_rows(
    f: Array,
    s: Array,
    weights: Array | None = None,
    labels: NDArray[Any] | None = None,
    strata: Integers | None = None,
) -> ScoreRows:
    """Sort validated rows, and drop those with weight zero; raise an error if no gap can be
    computed from the remaining rows.
    """
    if weights is None:
        weights = np.ones(len(f))
    kept = weights > 0
    f = f[kept]
    s = s[kept]
    weights = weights[kept]
    _arrays.require_rows(len(f), 2, "a gap in mean scores")
    _arrays.require_varying(s, "s")
    order = np.lexsort((weights, *f.T, s))
    clusters = None
    if labels is not None:
        clusters = np.unique(labels[kept], return_inverse=True)[1][order]
        if clusters.max() == 0:
            raise ValueError("groups is the same in all rows; pass at least two groups.")
    return ScoreRows(
        scores=np.ascontiguousarray(f[order]),
        s=s[order],
        weights=weights[order] / weights.mean(),
        clusters=clusters,
        strata=None if strata is None else np.unique(strata[kept], return_inverse=True)[1][order],
    )


def one_column(rows: ScoreRows) -> ScoreRows:
    """Return the rows; raise an error if the scores have several columns."""
    if rows.scores.shape[1] > 1:
        raise ValueError(f"scores has {rows.scores.shape[1]} columns; pass one class at a time.")
    return rows


def levels(s: Array) -> Integers:
    """Return the index of the first row with each distinct value in a sorted sample."""
    return np.flatnonzero(np.concatenate([[True], s[1:] != s[:-1]]))


def weighted_mean(weights: Array, values: Array) -> Array:
    """Return the weighted mean of each column."""
    return np.asarray(weights @ values / weights.sum())
