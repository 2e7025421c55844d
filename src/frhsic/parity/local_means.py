r"""Local means of scores along s, averaged over a fixed share of the people, and their noise.

Everything starts from sums over the *nodes* (a value of s, or several neighbouring ones where there
are many) and is a matrix or a vector over them:

1. counts of rows → `Windows`: which people are averaged with those at each node;
2. sums of scores → local means less the overall mean, :math:`\hat m = D t`, shape (nodes,);
3. residuals about them → noise of the sums, of independent rows or of clusters;
4. both → the variance of each local mean, and draws of all of them, shape (nodes, draws).

:mod:`frhsic.parity.gap` says what comes before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from frhsic import _arrays
from frhsic.parity.rows import Array
from frhsic.parity.sums import TINY, CenteredSums

SHARE = 0.05
"""People who are averaged together, as a share of all, at `SHARE_ROWS` rows."""

SHARE_ROWS = 1000

FEW_VALUES = 20
"""Values of s that are compared themselves if there are no more, and if no resolution was asked
for; more if more shares of the people add up to all.
"""

FINEST = 1 / 64
"""Smallest share of the people that are averaged together: four of 256 nodes."""

WIDE = 4.0
"""The spread of the scores, and the sign of a gap that is not seen to change faster, are taken from
this many times the people whose scores are averaged.
"""

CHANCE = 2.0
"""Standard deviations by which the differences between means over few and over many people must
exceed their noise, before signs follow the means over few.
"""

BORROWED_ROWS = 10.0
"""The spread near a node counts as many rows with the spread of all scores."""


def window_share(effective: float) -> float:
    """Return the share of the people who are averaged together, from the effective number of rows.

    It depends on nothing else, so that it cannot follow the scores: 5 % at 1,000 rows, falling as
    the sixth root of the rows beyond and growing faster below, 23 % at 100 rows.
    """
    power = 1 / 6 if effective > SHARE_ROWS else 2 / 3
    return float(np.clip(SHARE * (SHARE_ROWS / effective) ** power, FINEST, 1))


class Windows:
    """Which people are averaged with those at each node.

    They are all whose rank is within half a share of its own, a node in part where only a part of
    its ranks is. A value of s with a larger share than that stands alone, and so do all values if
    they are few (`FEW_VALUES`).

    Attributes
    ----------
    share
        Share of the people who are averaged; 0 if every value of s stands alone.
    weights
        Share of each node in each window, of shape (nodes, nodes).
    deviations
        Matrix that gives local means less the overall mean from the sums over the nodes.
    """

    def __init__(self, sums: CenteredSums, share: float | None = None) -> None:
        if share is not None:
            _arrays.require_fraction(share, "resolution")
        self.counts = sums.counts
        self.wanted = window_share(sums.effective) if share is None else share
        self.share = self.wanted
        self.weights = self.node_shares(self.wanted)
        alone = self.counts >= self.wanted * sums.n
        if len(self.counts) <= max(FEW_VALUES, 1 / self.wanted) and share is None:
            alone[:] = True
        if alone.all():
            self.share = 0.0
        self.weights[alone | alone[:, None]] = 0
        np.fill_diagonal(self.weights, 1)
        self.totals = self.weights @ self.counts
        self.deviations = self.weights / self.totals[:, None] - 1 / sums.n

    def node_shares(self, share: float) -> Array:
        """Return which part of each node lies within a share of the people about each node."""
        ends = np.cumsum(self.counts) / self.counts.sum()
        starts = np.append(0.0, ends[:-1])
        middle = (starts + ends) / 2
        last = np.minimum(ends, middle[:, None] + share / 2)
        first = np.maximum(starts, middle[:, None] - share / 2)
        inside: Array = np.maximum((last - first) / (ends - starts), 0)
        np.fill_diagonal(inside, 1)
        return inside

    @cached_property
    def wide_weights(self) -> Array:
        """Windows of more people, each value of s with its neighbours."""
        return self.node_shares(min(WIDE * self.wanted, 1))

    @cached_property
    def wide_deviations(self) -> Array:
        """As `deviations`, for the windows of more people."""
        total = self.wide_weights @ self.counts
        return np.asarray(self.wide_weights / total[:, None] - 1 / self.counts.sum())


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of the sums over nodes where rows are independent: variance and skewness of each
    sum.
    """

    variance: Array
    skewness: Array

    def variances(self, weights: Array) -> Array:
        """Return the variances of weighted sums, for each row of `weights`."""
        return np.asarray(weights**2 @ self.variance)

    def draw(self, random: np.random.Generator, draws: int) -> Array:
        """Draw the sums, of shape (nodes, draws), as gamma variables with these moments."""
        shape = 4 / np.maximum(np.abs(self.skewness), 0.01)[:, None] ** 2
        draw = random.standard_gamma(shape, (len(shape), draws))
        side = np.where(self.skewness < 0, -1, 1)[:, None]
        scale = np.sqrt(self.variance)[:, None]
        return np.asarray(side * scale * (draw - shape) / np.sqrt(shape))


@dataclass(frozen=True, eq=False)
class ClusterNoise:
    """Noise of the sums over nodes where rows of a cluster belong together: what each cluster adds
    to each sum, of shape (nodes, clusters).
    """

    parts: sparse.csr_matrix

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the sums, of shape (nodes, nodes)."""
        return np.asarray((self.parts @ self.parts.T).toarray())

    def variances(self, weights: Array) -> Array:
        """Return the variances of weighted sums, for each row of `weights`."""
        return np.asarray(((weights @ self.covariance) * weights).sum(axis=1))

    def draw(self, random: np.random.Generator, draws: int) -> Array:
        """Draw the sums, of shape (nodes, draws): what clusters add, times normal numbers."""
        return np.asarray(self.parts @ random.standard_normal((self.parts.shape[1], draws)))


class LocalMeans:
    """Local means less the overall mean at the nodes, of shape (nodes,), and their noise.

    Attributes
    ----------
    mean
        The local means.
    wide
        Means over more people.
    variance
        Variances of the local means.
    step_variance
        Variances of the steps from the means over more people to the local ones.
    step_covariance
        Covariances of local means and steps.
    freedom
        Degrees of freedom of the variances (Satterthwaite): few where few rows or clusters carry
        them, because of their weights, their sizes or heavy tails of the scores.
    """

    def __init__(self, sums: CenteredSums, windows: Windows) -> None:
        self.sums = sums
        self.windows = windows
        self.mean = windows.deviations @ sums.powers[0, 1]
        self.wide = windows.wide_deviations @ sums.powers[0, 1]
        self.squares, _, fourths = sums.residuals(self.mean)
        heavy = 3 * float(self.squares.sum()) ** 2 / max(float(fourths.sum()), TINY)
        self.freedom = max(min(heavy, sums.effective - 1), 1.0)
        self.rows = self._row_noise()
        self.noise: RowNoise | ClusterNoise = self.rows
        if sums.clusters is not None:
            self.noise = ClusterNoise(sums.cluster_residuals(self.mean))
        self.variance = self.variances(windows.deviations)
        self.step_variance = self.variances(windows.deviations - windows.wide_deviations)
        wide_variance = self.variances(windows.wide_deviations)
        self.step_covariance = (self.variance + self.step_variance - wide_variance) / 2
        self.scale = np.ones((len(self.mean), 1))  # of drawn means, to their errors
        if sums.clusters is not None:
            variances = self.noise.variances(windows.deviations)
            self.scale = np.sqrt(self.variance / np.maximum(variances, TINY))[:, None]

    def variances(self, loads: Array) -> Array:
        """Return the variances of weighted sums over the nodes, for each row of `loads`.

        Rows of a cluster at several nodes widen them by what they share there; those that seem to
        cancel each other count as independent.
        """
        variance = self.rows.variances(loads)
        if self.sums.clusters is None:
            return variance
        alone = loads**2 @ self.squares
        shared = self.noise.variances(loads) / np.maximum(alone, TINY)
        return np.asarray(variance * np.maximum(shared, 1))

    def draw(self, random: np.random.Generator, draws: int) -> tuple[Array, Array]:
        """Draw the noise of the means, and of those over more people, of shape (nodes,
        draws).
        """
        return self.means_from_sums(self.noise.draw(random, draws))

    def means_from_sums(self, sums: Array) -> tuple[Array, Array]:
        """Return the means, and those over more people, of drawn sums over the nodes."""
        mean = self.scale * (self.windows.deviations @ sums)
        wide = self.scale * (self.windows.wide_deviations @ sums)
        return mean, wide

    def shrinkage(self, mean: Array, wide: Array) -> Array:
        """Return which share of the steps from the means over more people is taken for noise, for
        each column (James and Stein).
        """
        step = mean - wide
        noise = float(self.sums.counts @ self.step_variance)
        energy = (self.sums.counts @ step**2) / max(noise, TINY)
        windows = len(self.mean) if self.windows.share == 0 else 1 / self.windows.share
        chance = 1 + CHANCE * np.sqrt(2 / windows)
        return np.asarray(1 / np.maximum(energy / chance, 1))

    def _row_noise(self) -> RowNoise:
        """Return the noise of independent sums, each from the spread of the rows nearby.

        Rows of a cluster at one node count as one. Heavy rows pull the local mean towards
        themselves, so that their own residuals are small; the spread is therefore the larger of
        those of persons and of their weights.
        """
        sums = self.sums
        units = sums.squared_weights
        leverage = (self.windows.weights**2 @ units) / self.windows.totals**2
        left = np.maximum(
            1 - leverage, 0.5
        )  # what the local mean leaves of the squares of its rows
        spread = np.maximum(
            self._nearby(sums.moment(1, 2, self.mean) / left, sums.counts),
            self._nearby(sums.residuals(self.mean)[0] / left, units),
        )
        cubes = self._nearby(sums.moment(1, 3, self.mean) / left**2, sums.counts)
        variance = np.maximum(spread, 0) * units
        skewness = cubes * sums.powers[2, 0] / np.maximum(variance**1.5, TINY)
        return RowNoise(variance, np.where(variance > 0, skewness, 0))

    def _nearby(self, part: Array, count: Array) -> Array:
        """Return the mean of what rows have, over the rows near each node and some of all rows."""
        wide = self.windows.wide_weights
        rows = (wide @ self.sums.counts) ** 2 / (wide**2 @ self.sums.squared_weights)
        overall = part.sum() / count.sum()
        nearby = (wide @ part) / (wide @ count)
        return np.asarray((rows * nearby + BORROWED_ROWS * overall) / (rows + BORROWED_ROWS))
