r"""Local means of scores along s, from sums over cells, and the statistic of GDP that they give.

The cells are fine enough for the nodes of GDP (a value of s, or a group of neighbouring values
where there are many) and for the groups of its curve. The sums are those of :math:`w^p (f - c)^j`
over the rows of each cell, which add up over parts of the data; with clusters, also the sums over
the rows that a cluster has in a cell. Parts give the same numbers as all rows together, except that
if s has many values, the borders of their cells come from a sample.

The statistic averages scores with the soft sign of the conditional mean, taken from the other rows:

.. math:: T = \frac1n \sum_i g_i (f_i - \bar f), \qquad
    g_i = 2\Phi\Bigl(\frac{\hat m_{-i}(u_i) - \bar f_{-i}}{c\,\hat\tau(u_i)}\Bigr) - 1

where u are the mid-ranks of s, :math:`\hat m` a local mean on them and :math:`\hat\tau` its
standard error. A row's own share in the mean is taken out to first order, which is exact in
expectation for normal noise (Stein's identity). So T is centred at zero when the mean does not
depend on s, and its expectation is never above the gap.

The local mean has one idea of resolution. It starts with the Nadaraya–Watson mean at a bandwidth h,
and moves to the means at h/8, h/64, ... and last to those of single values of s, as far as these
differ from it by more than their noise. The share of a move is that of James and Stein, from the
squared differences nearby or over all of s.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr

from frhsic import _arrays

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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

FEW_ROWS = 250
"""Rows below which an oscillation of the mean that would matter need not show."""

LEAST_ROWS = 5
"""Fewest rows of a value of s whose mean can stand alone, and of the narrowest window where values
are rarer.
"""

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
        both, ends = np.union1d(node, group), np.append(group[1:], len(values))
        medians = [
            np.median(np.repeat(values[start:end], counts[start:end]))
            for start, end in zip(group, ends)
        ]
        return cls(
            values[both],
            np.searchsorted(both, node),
            np.searchsorted(both, group),
            np.asarray(medians),
        )

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
        for _ in range(3 if (weights != 1).any() else 1):
            term = power
            for _ in range(5):
                powers.append(np.bincount(cell, term, minlength=size))
                term = term * (f - center)
            power = power * weights
        stacked = np.broadcast_to(
            np.reshape(np.asarray(powers, np.float64), (-1, 5, size)), (3, 5, size)
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
        Sums of w^p (f - center)^j, of shape (3, 5, cells): p from 1 to 3, j from 0 to 4.
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
        """Return the sums over each group of the powers 2 to 4 of w (f - at), summed over a cluster
        before.
        """
        if self.clusters is not None:
            parts = self.cluster_residuals(at)
            squares = parts.multiply(parts)
            each = squares, squares.multiply(parts), squares.multiply(squares)
            sums = (np.asarray(part.sum(axis=1)).ravel() for part in each)
            return tuple(sums)  # type: ignore[return-value]  # three
        _, two, three = self.powers  # fourth powers only say how heavy the tails are: w³ is enough
        squares = two[2] - 2 * at * two[1] + at**2 * two[0]
        cubes = three[3] - 3 * at * three[2] + 3 * at**2 * three[1] - at**3 * three[0]
        fourths = (
            three[4]
            - 4 * at * three[3]
            + 6 * at**2 * three[2]
            - 4 * at**3 * three[1]
            + at**4 * three[0]
        )
        return np.maximum(squares, 0), cubes, np.maximum(fourths, 0)

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
        _, two, three = self.powers
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


SOFTNESS = 0.5
"""The c of the soft sign: a mean that is c standard errors away from the overall mean has the sign
0.68.
"""

NEAR = 2.0
"""Within this many standard errors of the overall mean, the sign of a gap counts as uncertain."""

STEP = 8
"""Ratio of one bandwidth to the next."""

NEARBY, OVERALL = 3.0, 2.0
"""Standard deviations by which squared differences nearby, and over all of s, must exceed their
noise.
"""

MISSED = 1.5
"""Standard deviations beyond which squared differences may be more than noise, and widen the
interval.
"""

TINY = 1e-300
WORST = 0.7518
"""Where x Φ(-x) is largest."""


class Curve(NamedTuple):
    """Local means of shape (nodes, resamples), with their standard errors.

    `own` is the share of a row in the mean at its node. `cross` is what rows of the same clusters
    at other nodes add to the product of the rows of a node with their share. `hidden` is the
    variance of finer means that may be more than noise but to which the mean did not move.
    """

    mean: Array
    error: Array
    own: Array
    cross: Array
    hidden: Array


class Smoother:
    """Kernels between the nodes of some sums, from the coarsest to the finest."""

    def __init__(self, sums: Sums, resolution: float | None = None) -> None:
        counts, squares = sums.counts, sums.own_squares(0)
        self.counts, self.weight_squares, self.n = counts, squares, float(counts.sum())
        self.share = (squares / counts)[:, None]
        self.u = (np.cumsum(counts) - counts / 2) / self.n
        if resolution is not None:
            _arrays.require_fraction(resolution, "resolution")
        self.resolution = 0.5 * sums.effective**-0.25 if resolution is None else resolution
        widths = [self.resolution]
        if resolution is None:
            least = LEAST_ROWS / (
                2 * math.sqrt(math.pi) * sums.effective
            )  # bandwidth with so many rows in its window
            finer = max(self.resolution / STEP, least)
            while finer >= least and finer * len(counts) > 0.5:
                widths.append(finer)
                finer /= STEP
        self.kernels = [
            np.exp(-(((self.u[:, None] - self.u) / width) ** 2) / 2) for width in widths
        ]
        alone = counts**2 / squares >= LEAST_ROWS
        if resolution is None and alone.any():
            last = self.kernels[-1] * ~(alone[:, None] | alone)
            last[np.diag_indices(len(last))] = 1
            if np.abs(last - self.kernels[-1]).max() > 1e-3:
                widths.append(min(widths[-1], float(counts[alone].min() / self.n)))
                self.kernels.append(last)
        self.totals = [kernel @ counts for kernel in self.kernels]
        self.averages = [
            kernel / total[:, None] for kernel, total in zip(self.kernels, self.totals)
        ]
        ratios = [
            (kernel**2 @ squares) / total**2 for kernel, total in zip(self.kernels, self.totals)
        ]
        self.per_spread = [ratio[:, None] for ratio in ratios]
        self.bessel = (1 / np.maximum(1 - ratios[-1], 0.5))[:, None]
        self.spread = self.kernels[0] / (self.kernels[0] @ squares)[:, None]
        self.windows = [
            (b / a, max(min(1 / (3.5 * a), len(counts)), 1)) for a, b in zip(widths, [1.0, *widths])
        ]
        self.own = [(1 / total)[:, None] for total in self.totals]
        self.cross = [np.zeros((len(counts), 1))] * len(widths)

    def with_clusters(self, sums: Sums) -> Smoother:
        """Return a copy whose errors and left-out rows count rows that a cluster has at several
        nodes as dependent.
        """
        if sums.clusters is None:
            return self
        clustered = copy(self)
        residuals = sums.cluster_residuals(self.kernels[-1] @ sums.powers[0, 1] / self.totals[-1])
        joint = (residuals @ residuals.T).toarray()
        alone = joint.diagonal().copy()
        np.fill_diagonal(joint, 0)
        clustered.cross, clustered.per_spread = [], []
        for k, (kernel, total) in enumerate(zip(self.kernels, self.totals)):
            apart, more = kernel**2 @ alone, ((kernel @ joint) * kernel).sum(axis=1)
            inflation = np.where(apart > 1e-9 * apart.max(), 1 + more / np.maximum(apart, TINY), 1)
            clustered.per_spread.append(self.per_spread[k] * np.maximum(inflation, 1)[:, None])
            clustered.cross.append(
                ((kernel * joint).sum(axis=1) / total - joint.sum(axis=1) / self.n)[:, None]
            )
        return clustered

    def curve(self, totals: Array, squares: Array) -> Curve:
        """Return local means from the sums over nodes of w f and w² f², of centred scores."""
        means = [average @ totals for average in self.averages]
        last = means[-1]
        residual = squares - 2 * last * self.share * totals + last**2 * self.weight_squares[:, None]
        spread = self.spread @ (np.maximum(residual, 0) * self.bessel)  # of one row near each node
        mean, square = means[0], spread * self.per_spread[0]
        own: Array = np.broadcast_to(self.own[0], mean.shape)
        cross = self.cross[0]
        hidden = np.zeros_like(mean)
        for k in range(1, len(means)):
            step, finer = means[k] - mean, spread * self.per_spread[k]
            noise = np.maximum(finer - square, 0.1 * finer)
            energy = step**2 / np.maximum(noise, TINY)
            nearby, overall = (
                (self.averages[k - 1] * self.counts) @ energy,
                self.counts @ energy / self.n,
            )
            errors = [math.sqrt(2 / windows) for windows in self.windows[k]]
            kept = 1 / np.maximum(
                np.maximum(nearby / (1 + NEARBY * errors[0]), overall / (1 + OVERALL * errors[1])),
                1,
            )
            excess = np.maximum(nearby - MISSED * errors[0], overall - MISSED * errors[1]) - 1
            hidden = hidden + kept**2 * np.maximum(excess, 0) * noise
            moved = 1 - kept
            mean, square = mean + moved * step, square + moved**2 * noise
            own = own + moved * (self.own[k] - own)
            cross = cross + moved * (self.cross[k] - cross)
        return Curve(mean, np.sqrt(square), own, cross, hidden)

    def statistic(self, totals: Array, squares: Array) -> Array:
        """Return the statistic from sums over nodes of w f and w² f²."""
        center = totals.sum(axis=0) / self.n
        squares = (
            squares - 2 * center * self.share * totals + center**2 * self.weight_squares[:, None]
        )
        totals = totals - center * self.counts[:, None]
        return self.signed(self.curve(totals, squares), totals, squares)

    def signed(self, curve: Curve, totals: Array, squares: Array) -> Array:
        """Return the statistic, given the local means."""
        scale = np.maximum(SOFTNESS * curve.error, TINY)
        x = np.clip(curve.mean / scale, -40, 40)  # a sign beyond is certain
        slope = 2 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / scale
        left_out = (
            (squares - curve.mean * self.share * totals) * curve.own
            - squares / self.n
            + curve.cross
        )
        return np.asarray(((2 * ndtr(x) - 1) * totals - slope * left_out).sum(axis=0) / self.n)

    @property
    def alone(self) -> Array:
        """One over the effective number of rows of each node: 1 for a single row."""
        return np.asarray(self.weight_squares / self.counts**2)

    def resampled(
        self, sums: Sums, curve: Array, at: Array, drawn: Array, alone: Array | float = 0.0
    ) -> Array:
        """Return the statistic of `curve`, by nodes, plus noise `drawn` with the spread of scores
        about `at`.

        `alone` is the share of the squares of a node that its own sum fixes.
        """
        spread, cubes = (part[:, None] for part in sums.residuals(at)[:2])
        base = (curve * self.counts)[:, None]
        squares = (curve**2 * self.weight_squares)[:, None] + 2 * curve[
            :, None
        ] * self.share * drawn
        # given the sum of a node, its squares lie about this line if rows are many, and are its
        # square for one row
        alone = np.reshape(alone, (-1, 1))
        line = np.maximum(spread + cubes / np.maximum(spread, TINY) * drawn, 0.1 * spread)
        squares = squares + (1 - alone) * line + alone * drawn**2
        return self.statistic(base + drawn, squares)


def noise_like(sums: Sums, at: Array, normals: Array) -> Array:
    r"""Return sums over nodes, of shape (nodes, resamples), with the variance v and third moment c
    of w (f - at).

    They are :math:`\sqrt v \bigl(\sqrt{1 - 2b^2}\,x + b (x^2 - 1)\bigr)` of normal numbers x, where
    b solves :math:`6b - 4b^3 = c / v^{3/2}`; no sum of independent terms has more skewness than
    one. With clusters, such numbers of skewness one multiply their sums.
    """
    if sums.clusters is not None:
        return np.asarray(
            math.sqrt(sums.bessel) * (sums.cluster_residuals(at) @ skewed(normals, np.ones(1)))
        )
    spread, cubes = sums.residuals(at)[:2]
    return np.sqrt(spread * sums.bessel)[:, None] * skewed(
        normals, cubes / np.maximum(spread**1.5, TINY)
    )


def skewed(normals: Array, skewness: Array) -> Array:
    """Return numbers with mean 0, variance 1 and a skewness for each row; the opposite skewness
    gives the negative.
    """
    bend = (
        math.sqrt(2)
        * np.sin(np.arcsin(np.minimum(np.abs(skewness), 1) / math.sqrt(8)) / 3)[:, None]
    )
    side = np.where(skewness < 0, -1, 1)[:, None]
    return np.asarray(side * (np.sqrt(1 - 2 * bend**2) * normals + bend * (normals**2 - 1)))


def lost_to_wrong_signs(counts: Array, mean: Array, error: Array) -> float:
    """Return a bound on what the statistic loses in expectation where the sign of the gap is
    uncertain.
    """
    spread = math.sqrt(1 + SOFTNESS**2)
    size = np.abs(mean) / np.maximum(error, TINY)
    worst = np.clip(WORST * spread, np.maximum(size - NEAR, 0), size + NEAR)
    return float((counts * 2 * worst * ndtr(-worst / spread) * error).sum() / counts.sum())


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval lie below and above a mean of known skewness.

    The end on the side of the longer tail is moved out by the first term of Edgeworth's expansion
    of Student's t (Hall, 1992); the other is not moved in.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))
