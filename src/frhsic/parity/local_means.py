r"""Local means of scores along s, averaged over a fixed share of the people, and their noise.

Everything starts from sums over the *nodes* (a value of s, or several neighbouring ones where there
are many) and is a matrix or a vector over them:

1. counts of rows → `Windows`: which people are averaged with those at each node;
2. sums of scores → local means less that of all, or of the stratum, :math:`\hat m = D t`, shape
   (nodes,);
3. residuals about them → noise of the sums, of independent rows or of clusters;
4. both → the variance of each local mean, and draws of all of them, shape (nodes, draws).

:mod:`frhsic.parity.gap` lists the steps before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from frhsic import _arrays
from frhsic.parity.rows import Array
from frhsic.parity.sums import ALL_NODES, FINEST, TINY, CenteredSums, window_share

FEW_VALUES = 20
"""Up to this many values of s are compared on their own, unless a resolution was passed; more if
the share of the people is small.
"""

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


class Windows:
    """Which people are averaged with those at each node.

    They are all of its stratum whose rank is within half a share of its own, a node in part where
    only a part of its ranks is. A value of s with a larger share than that stands alone, and so do
    all values if they are few (`FEW_VALUES`).

    Attributes
    ----------
    shares
        Share of the people of each stratum who are averaged; 0 if every value of s stands alone.
    share
        The largest of these.
    weights
        Share of each node in each window, of shape (nodes, nodes).
    deviations
        Matrix that gives local means less the mean of their stratum from the sums over the nodes.
    """

    def __init__(self, sums: CenteredSums, share: float | None = None) -> None:
        if share is not None:
            _arrays.require_fraction(share, "resolution")
        self.counts = sums.counts
        self.blocks = sums.blocks
        # the same four nodes in a window at least, however many strata share the nodes
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
            if len(counts) <= max(FEW_VALUES, 1 / wanted) and share is None:
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

    @property
    def count(self) -> float:
        """Number of windows that do not overlap."""
        nodes = np.diff(np.append(self.blocks, len(self.counts)))
        return sum(1 / share if share else each for share, each in zip(self.shares, nodes))


def node_shares(counts: Array, share: float) -> Array:
    """Return which part of each node lies within a share of the people about each node."""
    ends = np.cumsum(counts) / counts.sum()
    starts = np.append(0.0, ends[:-1])
    middle = (starts + ends) / 2
    last = np.minimum(ends, middle[:, None] + share / 2)
    first = np.maximum(starts, middle[:, None] - share / 2)
    inside: Array = np.maximum((last - first) / (ends - starts), 0)
    np.fill_diagonal(inside, 1)
    return inside


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
    """Local means less the mean of their stratum at the nodes, of shape (nodes,), and their noise.

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
        self.freedom = max(min(heavy, sums.effective - len(sums.blocks)), 1.0)
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
        chance = 1 + CHANCE * np.sqrt(2 / self.windows.count)
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
        overall = (self.windows.stratum_means @ part) / (self.windows.stratum_means @ count)
        nearby = (wide @ part) / (wide @ count)
        return np.asarray((rows * nearby + BORROWED_ROWS * overall) / (rows + BORROWED_ROWS))
