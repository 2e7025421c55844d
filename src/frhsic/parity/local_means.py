r"""Local means of scores along s, averaged over a fixed share of the people, and their noise.

A *node* is a value of s, or several neighboring values if there are many. Everything is computed
from sums over nodes, as a vector or a matrix with an entry per node:

1. counts of rows → `Windows`: the people who are averaged with those at each node; 2. sums of
scores → local means minus the mean of all rows, or of the stratum, :math:`\hat m = D t`, shape
   (nodes,);
3. residuals from the local means → noise of the sums, for independent rows or for clusters; 4.
local means and noise → the variance of each local mean, and draws of all local means, shape (nodes,
draws).

Windows, and arrays computed from windows alone, are shared by all columns of a batch; the other
arrays have leading axes (…) for the columns.

:mod:`frhsic.parity.gap` lists the previous and the following steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from frhsic import _arrays
from frhsic.parity.rows import Array
from frhsic.parity.sums import ALL_NODES, FINEST, TINY, CenteredSums, window_share

FEW_VALUES = 20
"""Unless a resolution is passed, up to this many values of s are compared on their own; more if the
share of the people averaged is small, fewer with few rows.
"""

ROWS_PER_VALUE = 5.0
"""Smallest average number of rows per value if values are compared on their own. A single row has
no spread, so the noise of its mean would appear to be small.
"""

WIDE = 4.0
"""Number of people used to estimate the spread of the scores, as a multiple of the number of people
whose scores are averaged. The sign of a gap is also estimated from this many people if the gap
doesn't change significantly among them.
"""

CHANCE = 2.0
"""Number of standard deviations by which the differences between means over few and over many
people must exceed their noise before the signs of the means over few people are used.
"""

BORROWED_ROWS = 10.0
"""Number of rows with the spread of all scores that are added to the spread near a node."""

TREND_STEPS = 25
"""Most steps in the search for the trend of the spread along s; usually, six are enough."""

STEEPEST = (-10.0, 10.0)
"""Range of slopes of the log variance along the ranks of s; with a slope of 10, the spread grows
150-fold.
"""


class Windows:
    """The people whose scores are averaged with those at each node: everyone in the node's stratum
    whose rank is within half a share of the node's rank. If only some of the ranks in another node
    are that close, this other node counts partially. A value of s shared by more people is not
    averaged with other values, and no values are averaged if there are only a few (`FEW_VALUES`).

    Attributes
    ----------
    shares
        Share of the people in each stratum whose scores are averaged; 0 if no values of s are
        merged.
    share
        The largest of these shares.
    weights
        Share of each node in each window, of shape (nodes, nodes).
    deviations
        Matrix that maps sums over the nodes to local means, each minus the mean of its stratum.
    """

    def __init__(self, sums: CenteredSums, share: float | None = None) -> None:
        if share is not None:
            _arrays.require_fraction(share, "resolution")
        self.counts = sums.counts
        self.blocks = sums.blocks
        # at least four nodes per window, regardless of how many strata share the nodes
        finest = max(FINEST, 4 * len(sums.strata) / ALL_NODES)
        self.shares: list[float] = []
        narrow = []
        wide = []
        everybody = []
        for stratum in sums.strata:
            counts = self.counts[stratum]
            wanted = share
            if wanted is None:
                wanted = max(window_share(sums.stratum_effective(stratum)), finest)
            inside = node_shares(counts, wanted)
            alone = counts >= wanted * counts.sum()
            few = min(FEW_VALUES, sums.stratum_effective(stratum) / ROWS_PER_VALUE)
            if len(counts) <= max(few, 1 / wanted, 2) and share is None:
                alone[:] = True
            inside[alone | alone[:, None]] = 0
            np.fill_diagonal(inside, 1)
            self.shares.append(0.0 if alone.all() else wanted)
            narrow.append(inside)
            wide.append(node_shares(counts, min(WIDE * wanted, 1)))
            everybody.append(np.full((len(counts), len(counts)), 1 / counts.sum()))
        self.share = max(self.shares)
        self.weights = block_diag(*narrow)
        self.wide_weights = block_diag(*wide)
        self.stratum_means = block_diag(*everybody)
        self.totals = self.weights @ self.counts
        self.deviations = self.weights / self.totals[:, None] - self.stratum_means
        totals = self.wide_weights @ self.counts
        self.wide_deviations = self.wide_weights / totals[:, None] - self.stratum_means
        # columns share windows, so that squares of matrices are computed once
        self.squared_weights = self.weights**2
        self.squared_wide_weights = self.wide_weights**2
        steps = self.deviations - self.wide_deviations
        self.loads = np.concatenate([self.deviations, self.wide_deviations, steps])
        self.squared_loads = self.loads**2

    @property
    def count(self) -> float:
        """Number of windows that do not overlap."""
        nodes = np.diff(np.append(self.blocks, len(self.counts)))
        return sum(1 / share if share else each for share, each in zip(self.shares, nodes))


def node_shares(counts: Array, share: float) -> Array:
    """Return the part of each node that lies within a share of the people around each node."""
    ends = np.cumsum(counts) / counts.sum()
    starts = np.append(0.0, ends[:-1])
    middle = (starts + ends) / 2
    last = np.minimum(ends, middle[:, None] + share / 2)
    first = np.maximum(starts, middle[:, None] - share / 2)
    inside: Array = np.maximum((last - first) / (ends - starts), 0)
    np.fill_diagonal(inside, 1)
    return inside


def spread_trend(counts: Array, squares: Array) -> Array:
    """Return the variance at the nodes relative to a common level, given counts and sums of
    squares, (…, nodes): the exponential of a linear trend along the ranks (Harvey, 1976), which is
    shrunk according to its noise.

    Without a trend, a spread that grows 55-fold along s would appear half as large as it is at the
    end where most of the noise is, because the spread is averaged over many people.
    """
    if len(counts) < 3:
        return np.ones_like(squares)
    rows = float(counts.sum())
    ranks = (np.cumsum(counts) - counts / 2) / rows
    ranks = ranks - counts @ ranks / rows
    information = float(counts @ ranks**2)
    spread = squares.sum(axis=-1, keepdims=True) > 0
    squares = np.where(spread, squares, counts)  # without a spread there is no trend
    slope = np.zeros(spread.shape)
    left = np.zeros_like(squares)
    moving = spread
    for _ in range(TREND_STEPS):
        curve = np.exp(slope * ranks)
        flat = squares / curve
        flat *= rows / flat.sum(axis=-1, keepdims=True)
        left = np.where(moving, flat - counts, left)
        tilt = flat @ ranks
        curvature = flat @ ranks**2 - tilt**2 / rows
        step = np.clip(tilt / np.maximum(curvature, TINY), -1, 1)
        before = slope
        slope = np.where(moving, np.clip(slope + step[..., None], *STEEPEST), slope)
        moving = np.abs(slope - before) >= 1e-9
        if not moving.any():
            break
    error = (left**2 @ ranks**2)[..., None] / information**2
    shrunk = slope * np.maximum(1 - CHANCE**2 * error / np.maximum(slope**2, TINY), 0.0)
    return np.asarray(np.exp(shrunk * ranks))


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise in the sums over nodes if rows are independent: the variance and the skewness of each
    sum, (…, nodes).
    """

    variance: Array
    skewness: Array

    def draw(self, seeds: Sequence[Any], draws: int) -> Array:
        """Draw the sums, of shape (…, nodes, draws), as gamma variables with this variance and
        skewness, with one seed for each column.
        """
        *columns, nodes = self.variance.shape
        shape = 4 / np.maximum(np.abs(self.skewness), 0.01)[..., None] ** 2
        draw = np.stack(
            [
                np.random.default_rng(seed).standard_gamma(own, (nodes, draws))
                for seed, own in zip(seeds, shape.reshape(-1, nodes, 1), strict=True)
            ]
        ).reshape(*columns, nodes, draws)
        side = np.where(self.skewness < 0, -1, 1)[..., None]
        scale = np.sqrt(self.variance)[..., None]
        return np.asarray(side * scale * (draw - shape) / np.sqrt(shape))


@dataclass(frozen=True, eq=False)
class ClusterNoise:
    """Noise in the sums over nodes if rows are clustered: the contribution of each cluster to each
    sum, of shape (nodes, clusters), with columns of scores stacked vertically, and the shape of the
    sums.
    """

    parts: sparse.csr_matrix
    shape: tuple[int, ...]

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the sums, of shape (…, nodes, nodes)."""
        nodes = self.shape[-1]
        starts = range(0, self.parts.shape[0], nodes)
        columns = (self.parts[start : start + nodes] for start in starts)
        covariances = [(part @ part.T).toarray() for part in columns]
        return np.reshape(covariances, (*self.shape, nodes))

    def variances(self, weights: Array) -> Array:
        """Return the variances of weighted sums, for each row of `weights`, (…, sums, nodes)."""
        columns = self.shape[:-1]
        weights = np.broadcast_to(weights, (*columns, *weights.shape[-2:]))
        # one column at a time, since products are as large as all weights
        each = [
            ((weights[i] @ self.covariance[i]) * weights[i]).sum(axis=-1)
            for i in np.ndindex(columns)
        ]
        return np.reshape(each, (*columns, -1))

    def draw(self, seeds: Sequence[Any], draws: int) -> Array:
        """Draw the sums, of shape (…, nodes, draws), as contributions of clusters times normal
        random numbers; all columns share the random numbers.
        """
        normal = np.random.default_rng(seeds[0]).standard_normal((self.parts.shape[1], draws))
        return np.reshape(self.parts @ normal, (*self.shape, draws))


class LocalMeans:
    """Local means at the nodes, each minus the mean of its stratum, (…, nodes), and their noise.

    Attributes
    ----------
    mean
        The local means.
    wide
        Means over more people.
    variance
        Variances of the local means.
    step_variance
        Variances of the steps from the means over more people to the local means.
    step_covariance
        Covariances of local means and steps.
    freedom
        Degrees of freedom of the variances (Satterthwaite), (…): small if a few rows or clusters
        dominate, because of their weights, their sizes or heavy tails of the scores.
    """

    def __init__(self, sums: CenteredSums, windows: Windows) -> None:
        self.sums = sums
        self.windows = windows
        scores = sums.powers[..., 0, 1, :]
        self.mean = scores @ windows.deviations.T
        self.wide = scores @ windows.wide_deviations.T
        self.squares, _, fourths = sums.residuals(self.mean)
        heavy = 3 * self.squares.sum(axis=-1) ** 2 / np.maximum(fourths.sum(axis=-1), TINY)
        most = sums.effective - len(sums.blocks)
        self.freedom = np.maximum(np.minimum(heavy, most), 1.0)
        self.rows = self._row_noise()
        self.noise: RowNoise | ClusterNoise = self.rows
        if sums.clusters is not None:
            self.noise = ClusterNoise(sums.cluster_residuals(self.mean), self.mean.shape)
        variances = self.variances(windows.loads, windows.squared_loads)
        self.variance, wide_variance, self.step_variance = np.split(variances, 3, axis=-1)
        self.step_covariance = (self.variance + self.step_variance - wide_variance) / 2
        self.scale = np.ones((*self.mean.shape, 1))  # of drawn means, to their errors
        if isinstance(self.noise, ClusterNoise):
            drawn = self.noise.variances(windows.deviations)
            self.scale = np.sqrt(self.variance / np.maximum(drawn, TINY))[..., None]

    def variances(self, loads: Array, squared_loads: Array) -> Array:
        """Return the variances of weighted sums over the nodes, for each row of `loads`, (…, loads,
        nodes).

        Correlated rows of a cluster at different nodes increase the variances; rows that appear to
        cancel each other are treated as independent.
        """
        variance = np.matmul(squared_loads, self.rows.variance[..., None])[..., 0]
        if isinstance(self.noise, RowNoise):
            return np.asarray(variance)
        alone = np.matmul(squared_loads, self.squares[..., None])[..., 0]
        shared = self.noise.variances(loads) / np.maximum(alone, TINY)
        return np.asarray(variance * np.maximum(shared, 1))

    def draw(self, seeds: Sequence[Any], draws: int) -> tuple[Array, Array]:
        """Draw the noise of the local means and of the means over more people, of shape (…, nodes,
        draws), with one seed for each column.
        """
        return self.means_from_sums(self.noise.draw(seeds, draws))

    def means_from_sums(self, sums: Array) -> tuple[Array, Array]:
        """Return the local means and the means over more people, computed from drawn sums over the
        nodes.
        """
        windows = self.windows
        mean, wide = (
            self.scale * np.tensordot(sums, loads, (-2, -1)).swapaxes(-1, -2)
            for loads in (windows.deviations, windows.wide_deviations)
        )
        return mean, wide

    def shrinkage(self, mean: Array, wide: Array) -> Array:
        """For each draw, return the share of the steps from the means over more people to the local
        means that is treated as noise (James and Stein).
        """
        noise = (self.step_variance @ self.sums.counts)[..., None]
        energy = (self.sums.counts @ (mean - wide) ** 2) / np.maximum(noise, TINY)
        chance = 1 + CHANCE * np.sqrt(2 / self.windows.count)
        return np.asarray(1 / np.maximum(energy / chance, 1))

    def _row_noise(self) -> RowNoise:
        """Return the noise of independent sums, estimated from the spread of the rows nearby.

        Rows of a cluster at one node count as one row. Rows with large weights pull the local mean
        towards themselves, so their residuals are small. Therefore, the larger of the unweighted
        and the weighted spread is used.
        """
        sums = self.sums
        windows = self.windows
        counts = sums.counts
        units = sums.squared_weights
        leverage = (windows.squared_weights @ units) / windows.totals**2
        # share of the rows' squares that remains after subtracting the local mean
        left = np.maximum(1 - leverage, 0.5)
        squares = sums.moment(1, 2, self.mean)
        trend = np.concatenate(
            [spread_trend(counts[one], squares[..., one]) for one in sums.strata], axis=-1
        )
        rows = (windows.wide_weights @ counts) ** 2 / (windows.squared_wide_weights @ units)

        def averaged(values: Array, by: Array) -> Array:
            # over the rows near each node, plus a few with the spread of all rows
            nearby = values @ windows.wide_weights.T / (windows.wide_weights @ by)
            overall = values @ windows.stratum_means.T / (windows.stratum_means @ by)
            return np.asarray((rows * nearby + BORROWED_ROWS * overall) / (rows + BORROWED_ROWS))

        persons = averaged(squares / (left * trend), counts)
        weights = averaged(self.squares / (left * trend), units)
        cubes = averaged(sums.moment(1, 3, self.mean) / (left**2 * trend**1.5), counts)
        variance = np.maximum(np.maximum(persons, weights) * trend, 0) * units
        skewness = cubes * trend**1.5 * sums.weight_powers[2] / np.maximum(variance**1.5, TINY)
        return RowNoise(variance, np.where(variance > 0, skewness, 0))
