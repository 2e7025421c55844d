r"""Sums of scores over cells along s; the sums of parts of the data can be added.

The cells are fine enough for the nodes of GDP (a value of s, or several neighboring values if there
are many) and for the bins of the curve. The sums are those of :math:`w^p (f - c)^j` over the rows
in each cell and, with clusters, over the rows of each cluster in a cell. With strata, the cells of
the first stratum come first, then those of the second stratum, and so on. All strata have the same
ranges of s, so adding their sums gives the sums of all rows. Computing the sums in parts does not
change the results, except that if s has many values, the edges of the cells come from a sample.

Several columns of scores of the same rows are a batch: arrays that depend on the scores have
leading axes (…) for the columns; arrays that depend only on s, weights and clusters do not. A
single column has no leading axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from frhsic.parity.rows import Array, Integers, ScoreRows, levels

TINY = 1e-300


MOST_NODES = 256
"""Number of nodes of equal weight that replace the values of s if there are more values than
this.
"""

ALL_NODES = 1024
"""Largest number of nodes of all strata together."""

SHARE = 0.05
"""Share of the people whose scores are averaged, at `SHARE_ROWS` rows."""

SHARE_ROWS = 1000

FINEST = 1 / 64
"""Smallest share of the people whose scores are averaged: four of 256 nodes."""

LEAST_BIN_ROWS = 5
"""Fewest rows with which a value of s forms its own bin of a curve."""

ROWS_PER_BIN = 100
FEWEST_CURVE_BINS = 5
MOST_CURVE_BINS = 40


def window_share(effective: float) -> float:
    """Return the share of the people whose scores are averaged, given the effective number of rows.

    The share does not depend on the scores. It is 5 % at 1,000 rows; it falls with the sixth root
    of n for more rows, and rises faster for fewer rows, to 23 % at 100 rows.
    """
    power = 1 / 6 if effective > SHARE_ROWS else 2 / 3
    return float(np.clip(SHARE * (SHARE_ROWS / effective) ** power, FINEST, 1))


def max_nodes(rows: int, strata: int) -> int:
    """Return the largest number of nodes in a stratum: four per window, but more than the number of
    values that are compared on their own, and at most an equal part of all nodes.
    """
    if strata == 1:
        return MOST_NODES
    return min(max(math.ceil(4 / window_share(rows)), 32), ALL_NODES // strata)


def max_bins(n: int) -> int:
    """Return the largest number of bins in a curve computed from n rows."""
    return int(np.clip(n // ROWS_PER_BIN, FEWEST_CURVE_BINS, MOST_CURVE_BINS))


def node_levels(weights: Array, most: int) -> Integers:
    """Return the indices of the distinct values of s that start a node, given the weights of the
    values: all indices, or those that start `most` nodes of equal weight.
    """
    if len(weights) <= most:
        return np.arange(len(weights))
    middle = np.cumsum(weights) - weights / 2
    node = np.minimum((middle * most / weights.sum()).astype(np.int64), most - 1)
    return np.flatnonzero(np.concatenate([[True], node[1:] != node[:-1]]))


def bin_levels(counts: Integers, most: int) -> Integers:
    """Return the indices of the distinct values of s that start a bin, given the number of rows
    with each value.

    There are at most `most` bins, with about equal counts. If s has no more than `most` distinct
    values, each value with at least five rows is a bin.
    """
    n = int(counts.sum())
    smallest = min(LEAST_BIN_ROWS, n // 2) if len(counts) <= most else n / most
    starts = [0]
    begin = 0
    for level, end in enumerate(np.cumsum(counts)[:-1].tolist(), start=1):
        if end - begin >= smallest:
            starts.append(level)
            begin = end
    if n - begin < smallest / 2:
        starts.pop()
    return np.asarray(starts, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells along s, fine enough for the nodes of GDP and for the bins of the curve.

    Attributes
    ----------
    starts
        Smallest s in each cell, increasing; rows below the first start belong to the first cell.
    nodes
        First cell of each node.
    bins
        First cell of each bin.
    medians
        Median of s in each bin.
    strata
        For each stratum, the same cells with the nodes and bins of the stratum.
    """

    starts: Array
    nodes: Integers
    bins: Integers
    medians: Array
    strata: tuple[Cells, ...] = ()

    @classmethod
    def from_values(
        cls,
        values: Array,
        counts: Integers,
        rows: int,
        weights: Array | None = None,
        bins: int | None = None,
        strata: int = 1,
    ) -> Cells:
        """Create the cells for distinct values of s in increasing order, given the counts and
        weights of the values.

        `values` are the values of all rows, whose number is `rows`, or of a sample of the rows;
        `strata` is the number of strata.
        """
        if weights is None:
            weights = counts.astype(np.float64)
        node = node_levels(weights, max_nodes(rows, strata))
        first = bin_levels(counts, bins or max_bins(rows))
        both = np.union1d(node, first)
        below = np.append(0, np.cumsum(counts))
        middle = below[first] + below[np.append(first[1:], len(values))] - 1
        two = np.searchsorted(below, [middle // 2, (middle + 1) // 2], side="right") - 1
        return cls(
            starts=values[both],
            nodes=np.searchsorted(both, node),
            bins=np.searchsorted(both, first),
            medians=values[two].mean(axis=0),
        )

    @classmethod
    def from_rows(cls, rows: ScoreRows, bins: int | None = None) -> Cells:
        """Create the cells for sorted rows."""
        whole = cls._from_sorted(rows.s, rows.weights, bins, 1)
        if rows.strata is None:
            return whole
        strata = [rows.strata == number for number in range(int(rows.strata.max()) + 1)]
        return whole.with_strata(
            [cls._from_sorted(rows.s[x], rows.weights[x], bins, len(strata)) for x in strata]
        )

    @classmethod
    def _from_sorted(cls, s: Array, weights: Array, bins: int | None, strata: int) -> Cells:
        first = levels(s)
        counts = np.diff(np.append(first, len(s)))
        weights = np.add.reduceat(weights, first)
        return cls.from_values(s[first], counts, len(s), weights, bins, strata)

    def with_strata(self, parts: Sequence[Cells]) -> Cells:
        """Return cells that are also fine enough for the nodes and bins of each stratum."""
        starts = np.unique(np.concatenate([cells.starts for cells in (self, *parts)]))
        whole, *strata = (cells._refined(starts) for cells in (self, *parts))
        return replace(whole, strata=tuple(strata))

    def _refined(self, starts: Array) -> Cells:
        nodes = np.searchsorted(starts, self.starts[self.nodes])
        bins = np.searchsorted(starts, self.starts[self.bins])
        nodes[0] = bins[0] = 0  # cells below belong to the first
        return Cells(starts, nodes, bins, self.medians)

    @property
    def stratum_nodes(self) -> Integers:
        """First cell of each node in each stratum, as an index into the cells of all strata."""
        size = len(self.starts)
        return np.concatenate([i * size + cells.nodes for i, cells in enumerate(self.strata)])

    def place(self, s: Array, strata: Integers | None = None) -> Integers:
        """Return the cell of each row, within the row's stratum if there are strata."""
        cell = np.maximum(np.searchsorted(self.starts, s, side="right") - 1, 0)
        return cell if strata is None else strata * len(self.starts) + cell

    def node(self, s: Array, strata: Integers | None = None) -> Integers:
        """Return the node of each row, within the row's stratum if there are strata."""
        nodes = self.nodes if strata is None else self.stratum_nodes
        return np.searchsorted(nodes, self.place(s, strata), side="right") - 1

    def score_sums(self, rows: ScoreRows, scores: Array) -> ScoreSums:
        """Return the sums of scores of the rows, (…, rows)."""
        low = scores.min(axis=-1)
        high = scores.max(axis=-1)
        center = np.where(low == high, low, scores @ rows.weights / rows.weights.sum())
        sums = self.sums(scores, rows.s, center, (low, high), rows.weights, rows.strata)
        clusters = None
        if rows.clusters is not None:
            size = len(sums.rows)
            each = np.arange(max(low.size, 1))
            cell = self.place(rows.s, rows.strata) + size * each[:, None]
            cluster = np.broadcast_to(rows.clusters, cell.shape)
            away = scores - center[..., None]
            clusters = tuple(
                sparse.csr_matrix(
                    (np.ravel(rows.weights * away**j), (cell.ravel(), cluster.ravel())),
                    shape=(low.size * size, int(rows.clusters.max()) + 1),
                )
                for j in range(3)
            )
        return replace(sums, effective=rows.effective, clusters=clusters)

    def sums(
        self,
        f: Array,
        s: Array,
        center: Array | float,
        ends: tuple[Array | float, Array | float],
        weights: Array | None = None,
        strata: Integers | None = None,
    ) -> ScoreSums:
        """Return the sums over the given rows; `center` is near the mean of all scores, and `ends`
        are the smallest and the largest score.
        """
        cell = self.place(s, strata)
        size = len(self.starts) * max(len(self.strata), 1)
        if weights is None:
            weights = np.ones(len(s))
        columns = f.shape[:-1]
        place = cell + size * np.arange(math.prod(columns)).reshape(*columns, 1)

        def in_cells(values: Array) -> Array:
            values = np.broadcast_to(values, place.shape).ravel()
            found = np.bincount(place.ravel(), values, minlength=size * math.prod(columns))
            return found.reshape(*columns, size).astype(np.float64)

        away = f - np.expand_dims(center, -1)
        powers = np.empty((*columns, 4 if (weights != 1).any() else 1, 5, size))
        power = weights
        for p in range(powers.shape[-3]):  # all powers of 1 are the same
            term = power
            for j in range(5):
                powers[..., p, j, :] = in_cells(term)
                term = term * away
            power = power * weights
        low = np.full(size, np.inf)
        high = np.full(size, -np.inf)
        np.minimum.at(low, cell, s)
        np.maximum.at(high, cell, s)
        at_end = [f == np.expand_dims(end, -1) for end in ends]
        return ScoreSums(
            powers=np.broadcast_to(powers, (*columns, 4, 5, size)),
            rows=np.bincount(cell, minlength=size),
            low=low,
            high=high,
            center=center,
            ends=ends,
            at_ends=in_cells(at_end[0] | at_end[1]),
            effective=float(len(s)),
            strata=max(len(self.strata), 1),
        )


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums of scores over the cells; ``+`` adds the sums of parts of the data if rows are
    independent and have weight 1.

    Attributes
    ----------
    powers
        Sums of w^p (f - center)^j, of shape (…, 4, 5, cells): p from 1 to 4, j from 0 to 4.
    rows
        Number of rows in each cell.
    low
        Smallest s in each cell.
    high
        Largest s in each cell.
    center
        A number near the mean score, (…).
    ends
        Smallest and largest score of all rows, (…).
    at_ends
        Number of rows in each cell whose score is one of `ends`, (…, cells).
    effective
        Effective number of rows, or of clusters.
    clusters
        Sums of w (f - center)^j, j from 0 to 2, of shape (cells, clusters), with columns stacked
        vertically; None if rows are independent.
    strata
        Number of strata, each with the same number of cells.
    """

    powers: Array
    rows: Integers
    low: Array
    high: Array
    center: Any
    ends: tuple[Any, Any]
    at_ends: Array
    effective: float
    clusters: tuple[sparse.csr_matrix, ...] | None = None
    strata: int = 1

    @classmethod
    def stacked(cls, columns: Sequence[ScoreSums]) -> ScoreSums:
        """Combine the sums of several columns, computed on the same independent rows, into a
        batch.
        """
        low, high = np.transpose([one.ends for one in columns])
        return replace(
            columns[0],
            powers=np.stack([one.powers for one in columns]),
            center=np.array([one.center for one in columns]),
            ends=(low, high),
            at_ends=np.stack([one.at_ends for one in columns]),
        )

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
    def mean(self) -> Any:
        """The mean score, (…)."""
        totals = self.powers[..., 0, :2, :].sum(axis=-1)
        return self.center + totals[..., 1] / totals[..., 0]

    def pooled(self) -> ScoreSums:
        """Return the sums of one column over the rows of all strata together."""
        if self.strata == 1:
            return self
        shape = self.strata, -1
        clusters = None
        if self.clusters is not None:
            adding = sparse.hstack([sparse.identity(len(self.rows) // self.strata)] * self.strata)
            clusters = tuple((adding @ part).tocsr() for part in self.clusters)
        return replace(
            self,
            powers=self.powers.reshape(4, 5, *shape).sum(axis=2),
            rows=self.rows.reshape(shape).sum(axis=0),
            low=self.low.reshape(shape).min(axis=0),
            high=self.high.reshape(shape).max(axis=0),
            at_ends=self.at_ends.reshape(shape).sum(axis=0),
            clusters=clusters,
            strata=1,
        )

    def take(self, strata: Sequence[int]) -> ScoreSums:
        """Return the sums of one column over the rows of the given strata."""
        cells = np.arange(len(self.rows)).reshape(self.strata, -1)[strata].ravel()
        clusters = None
        if self.clusters is not None:
            clusters = tuple(part[cells] for part in self.clusters)
        return replace(
            self,
            powers=self.powers[:, :, cells],
            rows=self.rows[cells],
            low=self.low[cells],
            high=self.high[cells],
            at_ends=self.at_ends[cells],
            effective=summed_effective_rows(self.powers[:, :, cells], clusters),
            clusters=clusters,
            strata=len(strata),
        )

    @property
    def stratum_means(self) -> Array:
        """The mean score of each stratum, (…, strata)."""
        weights = self.powers[..., 0, :2, :]
        totals = weights.reshape(*weights.shape[:-1], self.strata, -1).sum(axis=-1)
        center = np.expand_dims(self.center, -1)
        return np.asarray(center + totals[..., 1, :] / totals[..., 0, :])

    def group_sums(self, starts: Integers, means: Array | None = None) -> CenteredSums:
        """Return the sums over unions of cells, with the scores centered at the mean of their
        stratum or at given means of the strata.
        """
        mean = self.mean
        if means is None:
            means = mean[..., None] if self.strata == 1 else self.stratum_means
        size = len(self.rows) // self.strata
        shift = np.repeat(np.expand_dims(self.center, -1) - means, size, axis=-1)
        clusters = self.clusters
        if clusters is not None:
            weights, scores, squares = clusters
            moved = sparse.diags(shift.ravel())
            scores = scores + moved @ weights
            clusters = weights, scores, squares + moved @ (clusters[1] + scores)
        steps = shift[..., None, :]
        powers = np.stack(
            [
                sum(
                    math.comb(k, j) * steps ** (k - j) * self.powers[..., j, :]
                    for j in range(k + 1)
                )
                for k in range(self.powers.shape[-2])
            ],
            axis=-2,
        )
        low, high = self.ends
        # if all are equal, a different value is possible: for shares, the one farthest away
        other = np.where((low >= 0) & (low <= 1), low < 0.5, low) - low
        ends = (
            np.where(low == high, np.minimum(other, 0.0), low - mean),
            np.where(low == high, np.maximum(other, 0.0), high - mean),
        )
        two = (low < high) | (low == 0) | (low == 1)
        decisions = two & (self.at_ends.sum(axis=-1) == self.rows.sum())
        sums = CenteredSums(powers, self.effective, clusters, ends, decisions)
        return replace(sums.merge(starts), blocks=np.flatnonzero(starts % size == 0))


@dataclass(frozen=True, eq=False)
class CenteredSums:
    """Sums of centered scores over ranges of s, such as cells, nodes or bins.

    Attributes
    ----------
    powers
        Sums of w^p f^j, of shape (…, 4, 5, ranges): p from 1 to 4, j from 0 to 4.
    effective
        Effective number of rows, or of clusters.
    clusters
        Sums of w f^j, j from 0 to 2, of shape (ranges, clusters), with columns stacked vertically;
        None if rows are independent.
    ends
        Smallest and largest possible centered score, (…); one of them is 0 if all scores are equal.
    decisions
        Whether scores have exactly two values, such as 0 and 1, (…).
    blocks
        First range of each stratum.
    """

    powers: Array
    effective: float
    clusters: tuple[sparse.csr_matrix, ...] | None
    ends: tuple[Array, Array]
    decisions: NDArray[np.bool_]
    blocks: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @property
    def strata(self) -> list[slice]:
        """The slice of ranges in each stratum."""
        ends = np.append(self.blocks[1:], len(self.counts))
        return [slice(start, end) for start, end in zip(self.blocks.tolist(), ends.tolist())]

    def stratum_effective(self, ranges: slice) -> float:
        """Return the effective number of rows, or of clusters, in the ranges of a stratum."""
        if len(self.blocks) == 1:
            return self.effective
        clusters = None
        if self.clusters is not None:
            clusters = tuple(part[: len(self.counts)][ranges] for part in self.clusters)
        return summed_effective_rows(self.weight_powers[:, None, ranges], clusters)

    @property
    def weight_powers(self) -> Array:
        """Sums of the powers 1 to 4 of the weights in each range, which are the same for all
        columns.
        """
        columns = self.powers[..., 0, :].reshape(-1, 4, self.powers.shape[-1])
        return np.asarray(columns[0])

    @property
    def counts(self) -> Array:
        """Total weight of each range."""
        return np.asarray(self.weight_powers[0])

    @property
    def n(self) -> float:
        """Total weight of all rows."""
        return float(self.counts.sum())

    @property
    def variance(self) -> Array:
        """Variance of the scores, (…)."""
        return np.asarray(self.powers[..., 0, 2, :].sum(axis=-1) / self.n)

    @property
    def bessel(self) -> float:
        """Factor that makes a variance unbiased."""
        return self.effective / max(self.effective - 1, 1)

    def cluster_residuals(self, at: Array) -> sparse.csr_matrix:
        """Return the sum of w (f - at) over the rows of each cluster in each range, with columns
        stacked vertically.
        """
        assert self.clusters is not None
        return self.clusters[1] - sparse.diags(at.ravel()) @ self.clusters[0]

    def moment(self, power: int, order: int, at: Array) -> Array:
        """Return the sum of w^power (f - at)^order over each range, with an order of at most 4."""
        terms = (
            math.comb(order, j) * (-at) ** (order - j) * self.powers[..., power - 1, j, :]
            for j in range(order + 1)
        )
        return np.asarray(sum(terms))

    def residuals(self, at: Array) -> tuple[Array, Array, Array]:
        """Return the sums over each range of the powers 2 to 4 of w (f - at), where w (f - at) is
        first summed over each cluster.
        """
        if self.clusters is None:
            squares = np.maximum(self.moment(2, 2, at), 0)
            return squares, self.moment(3, 3, at), np.maximum(self.moment(4, 4, at), 0)
        parts = self.cluster_residuals(at)
        squares = parts.multiply(parts)
        powers = (squares, squares.multiply(parts), squares.multiply(squares))
        second, third, fourth = (_cluster_sums(part).reshape(at.shape) for part in powers)
        return second, third, fourth

    @property
    def squared_weights(self) -> Array:
        """Sum of the squared weights of each range, after adding up the weights of each cluster."""
        if self.clusters is None:
            return np.asarray(self.weight_powers[1])
        weights = self.clusters[0][: len(self.counts)]
        return _cluster_sums(weights.multiply(weights))

    def merge(self, starts: Integers) -> CenteredSums:
        """Return the sums over unions of ranges, given the first range of each union."""
        clusters = None
        if self.clusters is not None:
            union = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(self.counts))))
            adding = sparse.csr_matrix((np.ones(len(union)), (union, np.arange(len(union)))))
            columns = sparse.identity(math.prod(self.powers.shape[:-3]))
            adding = sparse.kron(columns, adding, format="csr")
            clusters = tuple(adding @ part for part in self.clusters)
        powers = np.add.reduceat(self.powers, starts, axis=-1)
        return replace(self, powers=powers, clusters=clusters)

    def influence(
        self, constant: Array, slope: Array, bend: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """Return the variance and the third central moment of the mean of w (constant + slope f +
        bend f²), with constants and slopes of shape (…, ranges) and bends of shape (…).
        """
        bessel = self.bessel
        n = self.n
        bend = np.expand_dims(bend, -1)
        if self.clusters is not None:
            terms = zip(self.clusters, (constant, slope, bend + np.zeros_like(slope)))
            *columns, ranges = slope.shape
            adding = sparse.kron(sparse.identity(math.prod(columns)), np.ones(ranges), format="csr")
            sums = sum(adding @ sparse.diags(factor.ravel()) @ part for part, factor in terms)
            each = sums.toarray().reshape(*columns, -1)
            return bessel * (each**2).sum(axis=-1) / n**2, (each**3).sum(axis=-1) / n**3
        two = np.moveaxis(self.powers[..., 1, :, :], -2, 0)
        three = np.moveaxis(self.powers[..., 2, :, :], -2, 0)
        square = (
            constant**2 * two[0]
            + 2 * constant * slope * two[1]
            + (slope**2 + 2 * constant * bend) * two[2]
        )
        square = square + 2 * slope * bend * two[3] + bend**2 * two[4]
        # the bend is left out of the skewness, which would need the sixth powers
        cube = constant**3 * three[0] + 3 * constant**2 * slope * three[1]
        cube = cube + 3 * constant * slope**2 * three[2] + slope**3 * three[3]
        return bessel * square.sum(axis=-1) / n**2, cube.sum(axis=-1) / n**3


def summed_effective_rows(powers: Array, clusters: tuple[sparse.csr_matrix, ...] | None) -> float:
    """Return the effective number of rows, or of clusters, given sums over them."""
    squares = float(powers[1, 0].sum())
    if clusters is not None:
        squares = float((np.asarray(clusters[0].sum(axis=0)) ** 2).sum())
    return float(powers[0, 0].sum()) ** 2 / squares


def _cluster_sums(parts: sparse.csr_matrix) -> Array:
    """Return the sum over clusters in each range."""
    return np.asarray(parts.sum(axis=1)).ravel()
