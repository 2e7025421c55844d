r"""The statistic of GDP: scores averaged with the soft sign of the conditional mean, taken from the other rows.

.. math:: T = \frac1n \sum_i g_i (f_i - \bar f), \qquad
    g_i = 2\Phi\Bigl(\frac{\hat m_{-i}(u_i) - \bar f_{-i}}{c\,\hat\tau(u_i)}\Bigr) - 1

where u are the mid-ranks of s, :math:`\hat m` a local mean on them and :math:`\hat\tau` its standard error. A row's own
share in the mean is taken out to first order, which is exact in expectation for normal noise (Stein's identity). So T
is centred at zero when the mean does not depend on s, and its expectation is never above the gap.

The local mean has one idea of resolution. It starts with the Nadaraya–Watson mean at a bandwidth h, and moves to the
means at h/8, h/64, ... and last to those of single values of s, as far as these differ from it by more than their
noise. The share of a move is that of James and Stein, from the squared differences nearby or over all of s.
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from frhsic import _arrays
from frhsic.parity._rows import Array
from frhsic.parity._sums import LEAST_ROWS, Sums

SOFTNESS = 0.5
"""The c of the soft sign: a mean that is c standard errors away from the overall mean has the sign 0.68."""

NEAR = 2.0
"""Within this many standard errors of the overall mean, the sign of a gap counts as uncertain."""

STEP = 8
"""Ratio of one bandwidth to the next."""

NEARBY, OVERALL = 3.0, 2.0
"""Standard deviations by which squared differences nearby, and over all of s, must exceed their noise."""

MISSED = 1.5
"""Standard deviations beyond which squared differences may be more than noise, and widen the interval."""

TINY = 1e-300
WORST = 0.7518
"""Where x Φ(-x) is largest."""


class Curve(NamedTuple):
    """Local means of shape (nodes, resamples), with their standard errors.

    `own` is the share of a row in the mean at its node. `cross` is what rows of the same clusters at other nodes add to
    the product of the rows of a node with their share. `hidden` is the variance of finer means that may be more than
    noise but to which the mean did not move.
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
            least = LEAST_ROWS / (2 * math.sqrt(math.pi) * sums.effective)  # bandwidth with so many rows in its window
            finer = max(self.resolution / STEP, least)
            while finer >= least and finer * len(counts) > 0.5:
                widths.append(finer)
                finer /= STEP
        self.kernels = [np.exp(-(((self.u[:, None] - self.u) / width) ** 2) / 2) for width in widths]
        alone = counts**2 / squares >= LEAST_ROWS
        if resolution is None and alone.any():
            last = self.kernels[-1] * ~(alone[:, None] | alone)
            last[np.diag_indices(len(last))] = 1
            if np.abs(last - self.kernels[-1]).max() > 1e-3:
                widths.append(min(widths[-1], float(counts[alone].min() / self.n)))
                self.kernels.append(last)
        self.totals = [kernel @ counts for kernel in self.kernels]
        self.averages = [kernel / total[:, None] for kernel, total in zip(self.kernels, self.totals)]
        ratios = [(kernel**2 @ squares) / total**2 for kernel, total in zip(self.kernels, self.totals)]
        self.per_spread = [ratio[:, None] for ratio in ratios]
        self.bessel = (1 / np.maximum(1 - ratios[-1], 0.5))[:, None]
        self.spread = self.kernels[0] / (self.kernels[0] @ squares)[:, None]
        self.windows = [(b / a, max(min(1 / (3.5 * a), len(counts)), 1)) for a, b in zip(widths, [1.0, *widths])]
        self.own = [(1 / total)[:, None] for total in self.totals]
        self.cross = [np.zeros((len(counts), 1))] * len(widths)
        self.drawn: dict[tuple[int, ...], Array] = {}

    def normals(self, sums: Sums, resamples: int, *seed: int) -> Array:
        """Return normal numbers for the nodes, or for the clusters, of shape (nodes, resamples); drawn once."""
        size = len(self.counts) if sums.clusters is None else sums.clusters[0].shape[1]
        key = (size, resamples, *seed)
        if key not in self.drawn:
            self.drawn[key] = np.random.default_rng(seed).standard_normal((size, resamples))
        return self.drawn[key]

    def with_clusters(self, sums: Sums) -> Smoother:
        """Return a copy whose errors and left-out rows count rows that a cluster has at several nodes as dependent."""
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
            clustered.cross.append(((kernel * joint).sum(axis=1) / total - joint.sum(axis=1) / self.n)[:, None])
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
            nearby, overall = (self.averages[k - 1] * self.counts) @ energy, self.counts @ energy / self.n
            errors = [math.sqrt(2 / windows) for windows in self.windows[k]]
            kept = 1 / np.maximum(np.maximum(nearby / (1 + NEARBY * errors[0]), overall / (1 + OVERALL * errors[1])), 1)
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
        squares = squares - 2 * center * self.share * totals + center**2 * self.weight_squares[:, None]
        totals = totals - center * self.counts[:, None]
        return self.signed(self.curve(totals, squares), totals, squares)

    def signed(self, curve: Curve, totals: Array, squares: Array) -> Array:
        """Return the statistic, given the local means."""
        scale = np.maximum(SOFTNESS * curve.error, TINY)
        x = np.clip(curve.mean / scale, -40, 40)  # a sign beyond is certain
        slope = 2 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) / scale
        left_out = (squares - curve.mean * self.share * totals) * curve.own - squares / self.n + curve.cross
        return np.asarray(((2 * ndtr(x) - 1) * totals - slope * left_out).sum(axis=0) / self.n)

    @property
    def alone(self) -> Array:
        """One over the effective number of rows of each node: 1 for a single row."""
        return np.asarray(self.weight_squares / self.counts**2)

    def resampled(self, sums: Sums, curve: Array, at: Array, drawn: Array, alone: Array | float = 0.0) -> Array:
        """Return the statistic of `curve`, by nodes, plus noise `drawn` with the spread of scores about `at`.

        `alone` is the share of the squares of a node that its own sum fixes.
        """
        spread, cubes = (part[:, None] for part in sums.residuals(at)[:2])
        base = (curve * self.counts)[:, None]
        squares = (curve**2 * self.weight_squares)[:, None] + 2 * curve[:, None] * self.share * drawn
        # given the sum of a node, its squares lie about this line if rows are many, and are its square for one row
        alone = np.reshape(alone, (-1, 1))
        line = np.maximum(spread + cubes / np.maximum(spread, TINY) * drawn, 0.1 * spread)
        squares = squares + (1 - alone) * line + alone * drawn**2
        return self.statistic(base + drawn, squares)


def noise_like(sums: Sums, at: Array, normals: Array) -> Array:
    r"""Return sums over nodes, of shape (nodes, resamples), with the variance v and third moment c of w (f - at).

    They are :math:`\sqrt v \bigl(\sqrt{1 - 2b^2}\,x + b (x^2 - 1)\bigr)` of normal numbers x, where b solves
    :math:`6b - 4b^3 = c / v^{3/2}`; no sum of independent terms has more skewness than one. With clusters, such numbers
    of skewness one multiply their sums.
    """
    if sums.clusters is not None:
        return np.asarray(math.sqrt(sums.bessel) * (sums.cluster_residuals(at) @ skewed(normals, np.ones(1))))
    spread, cubes = sums.residuals(at)[:2]
    return np.sqrt(spread * sums.bessel)[:, None] * skewed(normals, cubes / np.maximum(spread**1.5, TINY))


def skewed(normals: Array, skewness: Array) -> Array:
    """Return numbers with mean 0, variance 1 and a skewness for each row; the opposite skewness gives the negative."""
    bend = math.sqrt(2) * np.sin(np.arcsin(np.minimum(np.abs(skewness), 1) / math.sqrt(8)) / 3)[:, None]
    side = np.where(skewness < 0, -1, 1)[:, None]
    return np.asarray(side * (np.sqrt(1 - 2 * bend**2) * normals + bend * (normals**2 - 1)))


def lost_to_wrong_signs(counts: Array, mean: Array, error: Array) -> float:
    """Return a bound on what the statistic loses in expectation where the sign of the gap is uncertain."""
    spread = math.sqrt(1 + SOFTNESS**2)
    size = np.abs(mean) / np.maximum(error, TINY)
    worst = np.clip(WORST * spread, np.maximum(size - NEAR, 0), size + NEAR)
    return float((counts * 2 * worst * ndtr(-worst / spread) * error).sum() / counts.sum())


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval lie below and above a mean of known skewness.

    The end on the side of the longer tail is moved out by the first term of Edgeworth's expansion of Student's t (Hall,
    1992); the other is not moved in.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))
