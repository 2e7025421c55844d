r"""Sums of scores over nodes along s: all that the gap, its error and its resamples need to know of the rows.

A node is a value of s, or a group of neighbouring values where there are many. The sums are those of
:math:`w^p (f - \bar f)^j` over the rows of each node, which add up over parts of the data; with clusters, also the sums
over the rows that a cluster has in a node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from frhsic.parity._rows import Array, Integers, Rows, levels, weighted_mean

NODES = 256
"""Groups of equal counts that replace the values of s where there are more."""


def node_levels(weights: Array, most: int) -> Integers:
    """Return which of the distinct values of s, given their weights, begin a node: all, or `most` of equal weight."""
    if len(weights) <= most:
        return np.arange(len(weights))
    middle = np.cumsum(weights) - weights / 2
    group = np.minimum((middle * most / weights.sum()).astype(np.int64), most - 1)
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))


def node_starts(rows: Rows) -> Integers:
    """Return the first row of each node."""
    starts = levels(rows.s)
    return starts[node_levels(np.add.reduceat(rows.weights, starts), NODES)]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of one column of centred scores over some groups of rows along s.

    Attributes
    ----------
    powers
        Sums of w^p f^j, of shape (3, 5, groups): p from 1 to 3, j from 0 to 4.
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

    def residuals(self, at: Array) -> tuple[Array, Array, Array]:
        """Return the sums over each group of the powers 2 to 4 of w (f - at), summed over a cluster before."""
        if self.clusters is not None:
            parts = self.cluster_residuals(at)
            squares = parts.multiply(parts)
            each = squares, squares.multiply(parts), squares.multiply(squares)
            return tuple(np.asarray(part.sum(axis=1)).ravel() for part in each)  # type: ignore[return-value]  # three
        _, two, three = self.powers  # fourth powers only say how heavy the tails are: w³ is enough
        squares = two[2] - 2 * at * two[1] + at**2 * two[0]
        cubes = three[3] - 3 * at * three[2] + 3 * at**2 * three[1] - at**3 * three[0]
        fourths = three[4] - 4 * at * three[3] + 6 * at**2 * three[2] - 4 * at**3 * three[1] + at**4 * three[0]
        return np.maximum(squares, 0), cubes, np.maximum(fourths, 0)

    def own_squares(self, j: int) -> Array:
        """Return the sums over each group of squares of w f^j, summed over a cluster before they are squared."""
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
        """Return the variance and the third central moment of the mean of w (constant + slope f + bend f²)."""
        bessel, n = self.bessel, self.n
        if self.clusters is not None:
            terms = zip(self.clusters, (constant, slope, np.full(len(slope), bend)))
            each = sum(part.T @ factor for part, factor in terms)
            return bessel * float(each @ each) / n**2, float((each**3).sum()) / n**3
        _, two, three = self.powers
        square = constant**2 * two[0] + 2 * constant * slope * two[1] + (slope**2 + 2 * constant * bend) * two[2]
        square = square + 2 * slope * bend * two[3] + bend**2 * two[4]
        # the bend is left out of the skewness, which would need the sixth powers
        cube = constant**3 * three[0] + 3 * constant**2 * slope * three[1]
        cube = cube + 3 * constant * slope**2 * three[2] + slope**3 * three[3]
        return bessel * float(square.sum()) / n**2, float(cube.sum()) / n**3


def ends_of(low: float, high: float, mean: float) -> tuple[float, float]:
    """Return the ends of centred scores. Scores that are all 0, or all 1, could have been the other."""
    return (
        (-low, 1 - low)
        if low == high and low in (0.0, 1.0)
        else (low - mean, high - mean)
        if low < high
        else (0.0, 0.0)
    )


def sums_of(rows: Rows, starts: Integers) -> list[Sums]:
    """Return the sums of each column of scores over groups of rows that begin at `starts`."""
    weights = rows.weights
    weighted = bool((weights != 1).any())
    columns = []
    for column in rows.scores.T:
        f = column - weighted_mean(weights, column) if (column != column[0]).any() else np.zeros(len(column))
        powers = []
        power = weights
        for _ in range(3 if weighted else 1):
            terms = [power]
            for _ in range(4):
                terms.append(terms[-1] * f)
            powers.append(np.stack([np.add.reduceat(term, starts) for term in terms]))
            power = power * weights
        clusters = None
        if rows.clusters is not None:
            group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(weights))))
            shape = len(starts), int(rows.clusters.max()) + 1
            clusters = tuple(sparse.csr_matrix((weights * f**j, (group, rows.clusters)), shape=shape) for j in range(3))
        low, high = float(column.min()), float(column.max())
        ends = ends_of(low, high, float(weighted_mean(weights, column)))
        two = ends[0] < ends[1] and bool(((column == low) | (column == high)).all())
        columns.append(Sums(np.stack(powers if weighted else powers * 3), rows.effective, clusters, ends, two))
    return columns
