r"""The statistic of GDP: scores averaged with the soft sign of the conditional mean, taken from the other rows.

.. math:: T = \frac1n \sum_i g_i (f_i - \bar f), \qquad
    g_i = 2\Phi\Bigl(\frac{\hat m_{-i}(u_i) - \bar f_{-i}}{c\,\hat\tau(u_i)}\Bigr) - 1

where u are the mid-ranks of s, :math:`\hat m` the Nadaraya–Watson mean on them and :math:`\hat\tau` its standard error.
Since the sign does not see its own row, T is centred at zero when the mean does not depend on s. A soft sign has a
smaller error than a hard one where the sign is uncertain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from scipy import sparse
from scipy.special import ndtr

from frhsic.parity._rows import Array, Integers, Rows, levels, weighted_mean

SOFTNESS = 0.5
"""The c of the soft sign: a mean that is c standard errors away from the overall mean has the sign 0.68."""

NEAR = 2.0
"""Within this many standard errors of the overall mean, the sign of a gap counts as uncertain."""

NODES = 256
"""Groups of equal counts that replace the values of s where there are more."""

FEW_NODES = 64
MOST_PAIRS = 30_000_000
"""Pairs of nodes within clusters above which :data:`FEW_NODES` are used."""

LARGE = 10_000
"""Rows above which resamples are drawn as normal sums over nodes, unless rows are clustered."""

CHUNK_ENTRIES = 1 << 16
"""Entries of the matrix of resampled rows held at once."""

TINY = 1e-300
WORST = 0.7518
"""Where x Φ(-x) is largest."""


def node_levels(weights: Array, most: int) -> Integers:
    """Return which of the distinct values of s, given their weights, begin a node: all, or `most` of equal weight."""
    if len(weights) <= most:
        return np.arange(len(weights))
    middle = np.cumsum(weights) - weights / 2
    group = np.minimum((middle * most / weights.sum()).astype(np.int64), most - 1)
    return np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))


class Smoother:
    """Nodes along s, the smoothing weights between their mid-ranks, and the statistic from sums over the nodes.

    `counts` and `weight_squares` are sums over the rows of each node of w and w².
    """

    def __init__(self, counts: Array, weight_squares: Array, resolution: float) -> None:
        self.counts, self.weight_squares, self.resolution = counts, weight_squares, resolution
        self.u = (np.cumsum(counts) - counts / 2) / counts.sum()
        self.kernel = np.exp(-(((self.u[:, None] - self.u) / resolution) ** 2) / 2)
        self.squares = self.kernel**2
        self.total = self.kernel @ counts  # weight within reach of each node
        self.inflation: Array | float = 1.0

    def at_nodes(self, totals: Array, squares: Array, singles: Array) -> tuple[Array, Array]:
        """Return the smoothed means and their standard errors, of shape (nodes, resamples).

        `totals`, `squares` and `singles` are sums over the rows of each node of w f, w² f² and w² f.
        """
        mean = self.kernel @ totals / self.total[:, None]
        residual = squares - 2 * mean * singles + mean**2 * self.weight_squares[:, None]
        error = np.sqrt(np.maximum(self.squares @ residual, 0)) / self.total[:, None]
        return mean, error * self.inflation

    def statistic_of_sums(self, totals: Array, squares: Array) -> Array:
        """Return the statistic from sums over nodes; leaving a row out enters to first order."""
        n, counts = self.counts.sum(), self.counts[:, None]
        share = (self.weight_squares / self.counts)[:, None]
        center = totals.sum(axis=0) / n
        squares = squares - 2 * center * share * totals + center**2 * self.weight_squares[:, None]
        totals = totals - center * counts
        singles = share * totals
        mean, error = self.at_nodes(totals, squares, singles)
        scale = np.maximum(SOFTNESS * error, TINY)
        slope = 2 * np.exp(-((mean / scale) ** 2) / 2) / math.sqrt(2 * math.pi) / scale
        left_out = (squares - mean * singles) / self.total[:, None] - squares / n
        return np.asarray(((2 * ndtr(mean / scale) - 1) * totals - slope * left_out).sum(axis=0) / n)

    def resampled_sums(self, curve: Array, spread: Array, resamples: int, rng: np.random.Generator) -> Array:
        """Return the statistic of `curve` plus normal noise; `spread` has the sums of its squares over each node."""
        base, spread = (curve * self.counts)[:, None], spread[:, None]
        drawn = np.sqrt(spread) * rng.standard_normal((len(spread), resamples))
        share = (curve * self.weight_squares / self.counts)[:, None]
        squares = (curve**2 * self.weight_squares)[:, None] + 2 * share * drawn + spread
        return self.statistic_of_sums(base + drawn, squares)

    def precision(self, squares: Array) -> Array:
        """Return weights of the nodes, the inverse of the spread of the scores near each; `squares` sums w f²."""
        spread = self.kernel @ squares / self.total
        return np.asarray(1 / np.maximum(spread, 1e-12 * spread.max())) if spread.max() > 0 else np.ones(len(spread))


class Signs(Smoother):
    """Ranks of a sample of s, and the statistic of any scores on its rows."""

    def __init__(self, rows: Rows, resolution: float | None = None) -> None:
        self.rows, self.weights = rows, rows.weights
        resolution = 0.5 * rows.effective**-0.25 if resolution is None else resolution
        self._set_nodes(NODES, resolution)
        self.own = _Own(rows, self.node, self.kernel)
        if self.own.pairs > MOST_PAIRS:
            self._set_nodes(FEW_NODES, resolution)
            self.own = _Own(rows, self.node, self.kernel)
        self.own.build()
        rest = self.total[self.node] - self.own.weight
        self.per_rest = np.where(rest > 1e-3, 1 / np.maximum(rest, 1e-3), 0)[:, None]
        self.per_other = 1 / self.own.others[:, None]
        self.weighted = bool((self.weights != 1).any())

    def _set_nodes(self, most: int, resolution: float) -> None:
        starts = levels(self.rows.s)
        self.starts = starts[node_levels(np.add.reduceat(self.weights, starts), most)]
        self.sizes = np.diff(np.append(self.starts, len(self.weights)))
        self.node = np.repeat(np.arange(len(self.starts)), self.sizes)
        super().__init__(self.sums(self.weights), self.sums(self.weights**2), resolution)

    def sums(self, values: Array) -> Array:
        """Return sums over the rows of each node: of shape (nodes, ...) from (rows, ...)."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    def signs(self, f: Array) -> tuple[Array, Array, Array]:
        """Return the soft signs of centred scores of shape (rows, resamples), smoothed means and standard errors."""
        weights = self.weights[:, None]
        weighted = weights * f
        squares = weights * weighted
        totals = self.sums(weighted)
        singles = self.sums(squares) if self.weighted else totals
        mean, error = self.at_nodes(totals, self.sums(squares * f), singles)
        own, around = self.own.sums(weighted)
        scale = np.maximum(SOFTNESS * math.sqrt(2) * error, TINY)
        away = (mean * self.total[:, None])[self.node]
        away -= own
        away *= self.per_rest
        away += around * self.per_other
        away /= scale[self.node]
        return torch.from_numpy(away).erf_().numpy(), mean, error

    def statistic(self, f: Array) -> Array:
        """Return the statistic of scores of shape (rows, resamples)."""
        f = f - weighted_mean(self.weights, f)
        return weighted_mean(self.weights, self.signs(f)[0] * f)

    def precise_mean(self, f: Array) -> float:
        """Return the mean of centred scores, weighted by the inverse of their spread around zero near each row."""
        weights = self.weights * self.precision(self.sums(self.weights * f**2))[self.node]
        return float(weights @ f / weights.sum())

    def resampled(self, curve: Array, noise: Array, resamples: int, rng: np.random.Generator) -> Array:
        """Return the statistic of `curve`, by nodes, plus the noise of each row times random signs (wild bootstrap)."""
        n = len(noise)
        if n > LARGE and self.rows.clusters is None:
            return self.resampled_sums(curve, self.sums((self.weights * noise) ** 2), resamples, rng)
        base = curve[self.node][:, None]
        values = [
            self.statistic(base + noise[:, None] * signs)
            for signs in _multipliers(rng, self.rows.clusters, n, resamples)
        ]
        return np.concatenate(values)

    def adopt_clusters(self, residuals: Array) -> None:
        """Let standard errors count rows of a cluster as dependent, by the ratio that the residuals show."""
        clusters = self.rows.clusters
        assert clusters is not None
        shape = (len(self.counts), int(clusters.max()) + 1)
        by_cluster = sparse.csr_matrix((self.weights * residuals, (self.node, clusters)), shape=shape).tocsc()
        joint = np.zeros(shape[0])
        for start in range(0, shape[1], 4096):
            joint += ((self.kernel @ by_cluster[:, start : start + 4096].toarray()) ** 2).sum(axis=1)
        alone = self.squares @ self.sums((self.weights * residuals) ** 2)
        self.inflation = np.sqrt(joint / np.maximum(alone, TINY))[:, None]


def lost_to_wrong_signs(counts: Array, mean: Array, error: Array) -> float:
    """Return a bound on what the statistic loses in expectation where the sign of the gap is uncertain."""
    spread = math.sqrt(1 + SOFTNESS**2)
    size = np.abs(mean) / np.maximum(error, TINY)
    worst = np.clip(WORST * spread, np.maximum(size - NEAR, 0), size + NEAR)
    return float((counts * 2 * worst * ndtr(-worst / spread) * error).sum() / counts.sum())


class _Own:
    """Part of each smoothed mean that comes from a row's own cluster; without clusters, from the row itself."""

    def __init__(self, rows: Rows, node: Integers, kernel: Array) -> None:
        self.rows, self.kernel, self.pairs = rows, kernel, 0
        if rows.clusters is None:
            return
        cells, self.cell = np.unique(rows.clusters * len(kernel) + node, return_inverse=True)
        self.cluster, self.cell_node = np.divmod(cells, len(kernel))
        self.widths = np.bincount(self.cluster)
        self.pairs = int((self.widths.astype(np.float64) ** 2).sum())

    def build(self) -> None:
        """Set up the weights of a row's own cluster."""
        weights, clusters = self.rows.weights, self.rows.clusters
        n = weights.sum()
        if clusters is None:
            self.weight, self.others = weights, n - weights
            return
        rows = np.arange(len(weights))
        ones = np.ones(len(weights))
        self.in_cell = sparse.csr_matrix((ones, (self.cell, rows)), shape=(len(self.cluster), len(weights)))
        self.in_cluster = sparse.csr_matrix((ones, (clusters, rows)), shape=(len(self.widths), len(weights)))
        repeats = self.widths[self.cluster]
        first = np.repeat(np.arange(len(self.cluster)), repeats)
        begin = np.concatenate([[0], np.cumsum(self.widths)])[self.cluster]
        second = np.arange(len(first)) - np.repeat(np.cumsum(repeats) - repeats, repeats) + np.repeat(begin, repeats)
        entries = self.kernel[self.cell_node[first], self.cell_node[second]]
        self.near = sparse.csr_matrix((entries, (first, second)), shape=(len(self.cluster),) * 2)
        self.weight = (self.near @ (self.in_cell @ weights))[self.cell]
        self.others = n - (self.in_cluster @ weights)[clusters]

    def sums(self, weighted: Array) -> tuple[Array, Array]:
        """Return, for each row, the sum of w f over its cluster weighted by nearness, and the plain sum."""
        if self.rows.clusters is None:
            return weighted, weighted
        near = np.asarray(self.near @ (self.in_cell @ weighted))[self.cell]
        return near, np.asarray(self.in_cluster @ weighted)[self.rows.clusters]


def _multipliers(rng: np.random.Generator, clusters: Integers | None, n: int, resamples: int) -> Iterator[Array]:
    """Yield random signs, one for each row or cluster, in blocks of shape (rows, some resamples)."""
    count = n if clusters is None else int(clusters.max()) + 1
    step = max(1, CHUNK_ENTRIES // n)
    for start in range(0, resamples, step):
        bits = rng.integers(2, size=(count, min(step, resamples - start)), dtype=np.int8)
        signs = bits.astype(np.float64) * 2 - 1
        yield signs if clusters is None else signs[clusters]
