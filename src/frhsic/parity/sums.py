r"""Rows sorted along s, and sums of their scores over cells along s, which add up over parts of
the data.

The cells are fine enough for the nodes of GDP (a value of s, or a group of neighbouring values
where there are many) and for the groups of its curve. The sums are those of :math:`w^p (f - c)^j`
over the rows of each cell; with clusters, also the sums over the rows that a cluster has in a cell.
Parts give the same numbers as all rows together, except that if s has many values, the borders of
their cells come from a sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from frhsic import _arrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows sorted by s, then by their scores and weights, so that no result depends on the order
    they came in.

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
        """Effective number of rows, or of clusters: the square of the sum of weights over the sum
        of squares.
        """
        sums = self.weights if self.clusters is None else np.bincount(self.clusters, self.weights)
        return float(sums.sum() ** 2 / (sums**2).sum())


def rows_of(
    scores: Any, s: Any, where: Any = None, sample_weight: Any = None, clusters: Any = None
) -> Rows:
    """Check the inputs and keep the rows of `where` that have a positive weight."""
    _arrays.require_same_rows((scores, "scores"), (where, "where"), (clusters, "groups"))
    weighted = () if sample_weight is None else ((sample_weight, "sample_weight"),)
    together = _arrays.paired((scores, "scores"), (s, "s"), *weighted)
    f, values, *given = (x.astype(np.float64, copy=False) for x in together)
    n, weights = len(f), given[0] if given else np.ones((len(f), 1))
    for x, name in ((values, "s"), (weights, "sample_weight")):
        if x.shape[1] > 1:
            raise ValueError(f"{name} has {x.shape[1]} columns; pass one column.")
    if weights.min() < 0:
        raise ValueError("sample_weight must not be negative.")
    kept = weights[:, 0] > 0
    if where is not None:
        kept &= _arrays.subset_mask(where, n)
    f, values, weights = f[kept], values[kept, 0], weights[kept, 0]
    _arrays.require_rows(len(f), 2, "a gap in mean scores")
    _arrays.require_varying(values, "s")
    order = np.lexsort((weights, *f.T, values))
    labels = None if clusters is None else np.asarray(clusters)
    if labels is not None:
        if labels.shape != (n,):
            raise ValueError(
                f"groups has shape {labels.shape}; pass one label for each of the {n} rows."
            )
        labels = np.unique(labels[kept][order], return_inverse=True)[1]
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


NODES = 256
"""Groups of equal counts that replace the values of s where there are more."""

LEAST_ROWS = 5
"""Fewest rows of a value of s that is a group of a curve by itself."""

ROWS_PER_GROUP = 100
FEWEST_GROUPS, MOST_GROUPS = 5, 40


def groups_for(n: int) -> int:
    """Return the largest number of groups of a curve of n rows."""
    return int(np.clip(n // ROWS_PER_GROUP, FEWEST_GROUPS, MOST_GROUPS))


def node_levels(weights: Array, most: int) -> Integers:
    """Return which of the distinct values of s, given their weights, begin a node: all, or `most`
    of equal weight.
    """
    if len(weights) <= most:
        return np.arange(len(weights))
    middle = np.cumsum(weights) - weights / 2
    group = np.minimum((middle * most / weights.sum()).astype(np.int64), most - 1)
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))


def group_levels(counts: Integers, most: int, least: int = LEAST_ROWS) -> Integers:
    """Return which distinct values of s, given their numbers of rows, begin a group.

    There are at most `most` groups, of about equal counts. If s has no more than `most` distinct
    values, each is a group, unless it has fewer than `least` rows.
    """
    n = int(counts.sum())
    smallest = min(least, n // 2) if len(counts) <= most else n / most
    starts, begin = [0], 0
    for level, end in enumerate(np.cumsum(counts)[:-1].tolist(), start=1):
        if end - begin >= smallest:
            starts.append(level)
            begin = end
    if len(starts) > 1 and n - begin < smallest / 2:
        starts.pop()
    return np.asarray(starts, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells along s, fine enough for the nodes of GDP and for the groups of its curve.

    Attributes
    ----------
    starts
        Smallest s of each cell, increasing; rows below the first belong to it.
    nodes, groups
        First cell of each node and of each group.
    medians
        Median of s in each group.
    """

    starts: Array
    nodes: Integers
    groups: Integers
    medians: Array

    @classmethod
    def of(
        cls,
        values: Array,
        counts: Integers,
        rows: int,
        weights: Array | None = None,
        groups: int | None = None,
    ) -> Cells:
        """Return the cells for distinct values of s in increasing order, how often each occurs, and
        its weight.

        `values` are those of all rows, of which there are `rows`, or of a sample of them.
        """
        node = node_levels(counts.astype(np.float64) if weights is None else weights, NODES)
        group = group_levels(counts, groups or groups_for(rows))
        both = np.union1d(node, group)
        below = np.append(0, np.cumsum(counts))
        middle = below[group] + below[np.append(group[1:], len(values))] - 1
        two = np.searchsorted(below, [middle // 2, (middle + 1) // 2], side="right") - 1
        medians = values[two].mean(axis=0)
        return cls(values[both], np.searchsorted(both, node), np.searchsorted(both, group), medians)

    @classmethod
    def of_rows(cls, rows: Rows, groups: int | None = None) -> Cells:
        """Return the cells of sorted rows."""
        first = levels(rows.s)
        counts = np.diff(np.append(first, len(rows.s)))
        return cls.of(
            rows.s[first], counts, len(rows.s), np.add.reduceat(rows.weights, first), groups
        )

    def place(self, s: Array) -> Integers:
        """Return the cell of each row."""
        return np.maximum(np.searchsorted(self.starts, s, side="right") - 1, 0)

    def sums_of(self, rows: Rows) -> list[ScoreSums]:
        """Return the sums of each column of scores."""
        result = []
        for column in rows.scores.T:
            ends = float(column.min()), float(column.max())
            center = ends[0] if ends[0] == ends[1] else float(weighted_mean(rows.weights, column))
            sums = self.sums(column, rows.s, center, ends, rows.weights)
            clusters = None
            if rows.clusters is not None:
                shape, f = (len(self.starts), int(rows.clusters.max()) + 1), column - center
                place = self.place(rows.s), rows.clusters
                clusters = tuple(
                    sparse.csr_matrix((rows.weights * f**j, place), shape=shape) for j in range(3)
                )
            result.append(replace(sums, effective=rows.effective, clusters=clusters))
        return result

    def sums(
        self,
        f: Array,
        s: Array,
        center: float,
        ends: tuple[float, float],
        weights: Array | None = None,
    ) -> ScoreSums:
        """Return the sums over some rows; `center` is near the mean of all scores, `ends` are their
        extremes.
        """
        cell, size = self.place(s), len(self.starts)
        weights = np.ones(len(f)) if weights is None else weights
        powers, power = [], weights
        for _ in range(4 if (weights != 1).any() else 1):
            term = power
            for _ in range(5):
                powers.append(np.bincount(cell, term, minlength=size))
                term = term * (f - center)
            power = power * weights
        stacked = np.broadcast_to(
            np.reshape(np.asarray(powers, np.float64), (-1, 5, size)), (4, 5, size)
        )
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, cell, s)
        np.maximum.at(high, cell, s)
        at_ends = int(((f == ends[0]) | (f == ends[1])).sum())
        return ScoreSums(
            stacked,
            np.bincount(cell, minlength=size),
            low,
            high,
            center,
            ends,
            at_ends,
            float(len(f)),
        )


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums of scores over the cells; ``+`` joins parts of the data.

    Attributes
    ----------
    powers
        Sums of w^p (f - center)^j, of shape (4, 5, cells): p from 1 to 4, j from 0 to 4.
    rows, low, high
        Number of rows, smallest and largest s of each cell.
    center, ends
        The number near the mean score, and the smallest and largest score of all rows.
    at_ends
        Number of rows whose score is one of `ends`.
    effective
        Effective number of rows, or of clusters.
    clusters
        Sums of w (f - center)^j, j from 0 to 2, of shape (cells, clusters); None if rows are
        independent.
    """

    powers: Array
    rows: Integers
    low: Array
    high: Array
    center: float
    ends: tuple[float, float]
    at_ends: int
    effective: float
    clusters: tuple[sparse.csr_matrix, ...] | None = None

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return replace(
            self,
            powers=self.powers + other.powers,
            rows=self.rows + other.rows,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            at_ends=self.at_ends + other.at_ends,
            effective=self.effective + other.effective,
        )

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.center + float(self.powers[0, 1].sum() / self.powers[0, 0].sum())

    def over(self, starts: Integers) -> Sums:
        """Return the sums of centred scores over unions of cells."""
        mean = self.mean
        shift, (low, high) = self.center - mean, self.ends
        powers = np.stack(
            [
                sum(math.comb(k, j) * shift ** (k - j) * self.powers[:, j] for j in range(k + 1))
                for k in range(self.powers.shape[1])
            ],
            axis=1,
        )
        # scores that are all 0, or all 1, could have been the other
        binary = low == high and low in (0.0, 1.0)
        ends = (
            (-low, 1 - low) if binary else (low - mean, high - mean) if low < high else (0.0, 0.0)
        )
        decisions = self.at_ends == self.rows.sum() and ends[0] < ends[1]
        return Sums(powers, self.effective, self.clusters, ends, bool(decisions)).joined(starts)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of one column of centred scores over some groups of rows along s.

    Attributes
    ----------
    powers
        Sums of w^p f^j, of shape (4, 5, groups): p from 1 to 4, j from 0 to 4.
    effective
        Effective number of rows, or of clusters.
    clusters
        Sums of w f^j, j from 0 to 2, of shape (groups, clusters); None if rows are independent.
    ends
        Smallest and largest centred score that is possible.
    decisions
        Whether scores have two values, such as 0 and 1.
    """

    powers: Array
    effective: float
    clusters: tuple[sparse.csr_matrix, ...] | None
    ends: tuple[float, float]
    decisions: bool

    @property
    def counts(self) -> Array:
        """Weight of each group."""
        return np.asarray(self.powers[0, 0])

    @property
    def n(self) -> float:
        """Weight of all rows."""
        return float(self.powers[0, 0].sum())

    @property
    def variance(self) -> float:
        """Variance of the scores."""
        return float(self.powers[0, 2].sum() / self.n)

    @property
    def bessel(self) -> float:
        """Factor that makes a variance unbiased."""
        return self.effective / max(self.effective - 1, 1)

    def cluster_residuals(self, at: Array) -> sparse.csr_matrix:
        """Return the sums of w (f - at) over the rows of each cluster in each group."""
        assert self.clusters is not None
        return self.clusters[1] - sparse.diags(at) @ self.clusters[0]

    def moment(self, power: int, order: int, at: Array) -> Array:
        """Return the sums over each group of w to a power times f - at to an order, up to 4."""
        terms = (
            math.comb(order, j) * (-at) ** (order - j) * self.powers[power - 1, j]
            for j in range(order + 1)
        )
        return np.asarray(sum(terms))

    def residuals(self, at: Array) -> tuple[Array, Array, Array]:
        """Return the sums over each group of the powers 2 to 4 of w (f - at), summed over a cluster
        before.
        """
        if self.clusters is None:
            squares = np.maximum(self.moment(2, 2, at), 0)
            return squares, self.moment(3, 3, at), np.maximum(self.moment(4, 4, at), 0)
        parts = self.cluster_residuals(at)
        squares = parts.multiply(parts)
        each = squares, squares.multiply(parts), squares.multiply(squares)
        sums = (np.asarray(part.sum(axis=1)).ravel() for part in each)
        return tuple(sums)  # type: ignore[return-value]  # three

    def own_squares(self, j: int) -> Array:
        """Return the sums over each group of squares of w f^j, summed over a cluster before they
        are squared.
        """
        if self.clusters is None:
            return np.asarray(self.powers[1, 2 * j])
        return np.asarray(self.clusters[j].multiply(self.clusters[j]).sum(axis=1)).ravel()

    def joined(self, starts: Integers) -> Sums:
        """Return the sums over unions of groups, which begin at `starts`."""
        clusters = None
        if self.clusters is not None:
            union = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(self.counts))))
            adding = sparse.csr_matrix((np.ones(len(union)), (union, np.arange(len(union)))))
            clusters = tuple(adding @ part for part in self.clusters)
        return replace(self, powers=np.add.reduceat(self.powers, starts, axis=2), clusters=clusters)

    def influence(self, constant: Array, slope: Array, bend: float = 0.0) -> tuple[float, float]:
        """Return the variance and the third central moment of the mean of w (constant + slope f +
        bend f²).
        """
        bessel, n = self.bessel, self.n
        if self.clusters is not None:
            terms = zip(self.clusters, (constant, slope, np.full(len(slope), bend)))
            each = sum(part.T @ factor for part, factor in terms)
            return bessel * float(each @ each) / n**2, float((each**3).sum()) / n**3
        _, two, three, _ = self.powers
        square = (
            constant**2 * two[0]
            + 2 * constant * slope * two[1]
            + (slope**2 + 2 * constant * bend) * two[2]
        )
        square = square + 2 * slope * bend * two[3] + bend**2 * two[4]
        # the bend is left out of the skewness, which would need the sixth powers
        cube = constant**3 * three[0] + 3 * constant**2 * slope * three[1]
        cube = cube + 3 * constant * slope**2 * three[2] + slope**3 * three[3]
        return bessel * float(square.sum()) / n**2, float(cube.sum()) / n**3


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval lie below and above a mean of known skewness.

    The end on the side of the longer tail is moved out by the first term of Edgeworth's expansion
    of Student's t (Hall, 1992); the other is not moved in.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))
