"""The gap of one column of scores: the soft signs of the local means, the estimate computed with
these signs, its standard error, and random draws of the estimate under independence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import erf, ndtr

from frhsic import _arrays
from frhsic.parity.interval import GapEstimate
from frhsic.parity.local_means import LocalMeans, Windows
from frhsic.parity.rows import Array, ScoreRows
from frhsic.parity.sums import TINY, Cells, CenteredSums, ScoreSums

ENOUGH = 199
"""Largest number of draws used for the variance of a gap; the p-value uses more."""

SOFTNESS = 0.5
"""The c of the soft sign: a mean c standard errors away from the overall mean has the sign 0.68."""

UNCERTAIN = 2.0
"""Within this many standard errors of the overall mean, the sign of a gap is treated as
uncertain.
"""

WORST = 0.7518
"""The x at which x Φ(-x) is largest."""

NO_VARIANCE = 1e-12
"""A remainder below this share of a variance is a rounding error."""


@dataclass(frozen=True)
class GapOptions:
    """Settings for computing a gap. Without `test`, there is no p-value and no expected value under
    independence.
    """

    confidence: float
    resamples: int
    seed: int
    test: bool = True

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        _arrays.require_integer(self.resamples, "resamples", 0)


@dataclass(frozen=True, eq=False)
class Signs:
    """Soft signs of the gap at the nodes, and the gap computed with these signs.

    Attributes
    ----------
    shrinkage
        How far the means whose signs are used are shrunk from the local means towards means over
        more people, as a share, (…); 0 if the signs are those of the local means themselves.
    mean
        The means whose signs are used, (…, nodes).
    error
        Standard errors of these means.
    soft
        Soft signs of these means.
    gap
        The estimate, in the unit of the scores, (…).
    slope
        Derivative of the gap with respect to the score of a row at each node, times the weight of
        all rows.
    """

    shrinkage: Array
    mean: Array
    error: Array
    soft: Array
    gap: Array
    slope: Array


class ColumnGap:
    """The gap of one column of scores, or of each column of a batch, from its local means.

    Means over more people have more certain signs, unless the mean score changes too fast for such
    means to follow. `signs` come from means smoothed as much as the scores allow, and determine the
    value and the lower end; `fine_signs` are the signs of the local means themselves. The upper end
    is the higher of the ends computed with each of them.

    Attributes
    ----------
    value
        The reported gap, (…).
    scale
        The number that the gap was divided by, (…).
    most
        Largest possible value of the gap.
    drawn
        Results computed from random draws, keyed by kind, so that each is drawn only once.
    more_variance
        Amount added to the variance if the shares of the nodes were estimated from other rows.
    """

    def __init__(self, sums: CenteredSums, windows: Windows, numbers: Sequence[int] = (0,)) -> None:
        self.sums = sums
        self.windows = windows
        self.n = round(sums.n)
        self.resolution = windows.share
        self.means = LocalMeans(sums, windows)
        shape = self.means.freedom.shape
        self.numbers = np.broadcast_to(numbers, shape or 1).ravel().tolist()
        self.shares = sums.counts / sums.n
        mean = self.means.mean[..., None]
        wide = self.means.wide[..., None]
        self.signs = self._signs(self.means.shrinkage(mean, wide))
        self.fine_signs = self._signs(np.zeros((*shape, 1)))
        self.standardize = False
        self.scale: Array = np.ones(shape)
        self.most = math.inf
        self.value = self.signs.gap
        self.magnitude = float(np.maximum(-sums.ends[0], sums.ends[1]).max())
        self.drawn: dict[Any, Any] = {}
        self.more_variance = 0.0

    def standardized_gap(self) -> ColumnGap:
        """Return the gap in standard deviations of the scores, reusing the random draws."""
        scaled = copy(self)
        scaled.standardize = True
        scaled.scale = np.sqrt(self.sums.variance)
        scaled.most = 1.0
        scaled.value = self.value / scaled.scale
        low, high = self.sums.ends
        scaled.magnitude = float((np.maximum(-low, high) / scaled.scale).max())
        return scaled

    def _signs(self, shrinkage: Array) -> Signs:
        mean = self.means.mean[..., None]
        signed, error, covariance = self._signed_means(mean, self.means.wide[..., None], shrinkage)
        soft, steepness = soft_signs(signed, error)
        weights = self.shares * soft[..., 0]
        return Signs(
            shrinkage=shrinkage[..., 0],
            mean=signed[..., 0],
            error=error[..., 0],
            soft=soft[..., 0],
            gap=(soft * mean - steepness * covariance)[..., 0] @ self.shares,
            slope=self.sums.n * (weights @ self.windows.deviations),
        )

    def _signed_means(
        self, mean: Array, wide: Array, shrinkage: Array | float
    ) -> tuple[Array, Array, Array]:
        """Return the means whose signs are used, of shape (…, nodes, draws), their standard errors,
        and their covariances with the local means. The shrinkage is given for each draw or once for
        all draws.
        """
        shrinkage = np.atleast_1d(shrinkage)[..., None, :]
        variance = self.means.variance[..., None]
        shared = self.means.step_covariance[..., None]
        noise = self.means.step_variance[..., None]
        square = variance - 2 * shrinkage * shared + shrinkage**2 * noise
        # the mean over everyone is the overall mean: only rounding errors remain, which have no
        # sign
        kept = (square > NO_VARIANCE * variance) | (variance <= 0)
        signed = kept * (mean - shrinkage * (mean - wide))
        error = kept * np.sqrt(np.maximum(square, 0))
        covariance = kept * (variance - shrinkage * shared)
        return signed, np.asarray(error), covariance

    def statistic(self, mean: Array, wide: Array, shrinkage: Array | float) -> Array:
        """Return the estimate for each draw of local means, of shape (…, nodes, draws)."""
        signed, error, covariance = self._signed_means(mean, wide, shrinkage)
        soft, steepness = soft_signs(signed, error)
        return np.asarray(self.shares @ (soft * mean - steepness * covariance))

    def noise_statistics(self, mean: Array, wide: Array) -> Array:
        """Return the estimate for each draw of noise, using signs of means smoothed as much as the
        noise allows.
        """
        return self.statistic(mean, wide, self.means.shrinkage(mean, wide))

    def _noise(self, options: GapOptions, draws: int) -> tuple[Array, Array]:
        """Draw the noise of the local means, and of the means over more people."""
        return self.means.draw([(options.seed, number) for number in self.numbers], draws)

    def null(self, options: GapOptions) -> Array:
        """Return estimates for random draws in which the mean does not depend on s, (…, draws).

        The estimates have the tails of Student's t, because their spread is estimated. The draws
        use the same seed as those of :meth:`uncertain_variance`, but the two are never compared.
        """
        if options not in self.drawn:
            values = self.noise_statistics(*self._noise(options, options.resamples))
            self.drawn[options] = values * chi_factor(self.means.freedom, options)
        return np.asarray(self.drawn[options] / self.scale[..., None])

    def estimates(self, options: GapOptions) -> tuple[GapEstimate, GapEstimate]:
        """Return what the lower and the upper end are computed from, in the unit of the scores."""
        fine = self._estimate(self.fine_signs, options)
        lost = wrong_sign_loss(self.shares, self.fine_signs)
        return self._estimate(self.signs, options), replace(fine, lost=lost)

    def _estimate(self, signs: Signs, options: GapOptions) -> GapEstimate:
        sums = self.sums
        constant = -signs.gap
        bend = np.zeros_like(constant)
        if self.standardize:  # the standard deviation is estimated, too
            constant = constant / 2
            bend = -signs.gap / (2 * sums.variance)
        constants = np.broadcast_to(constant[..., None], signs.slope.shape)
        variance, third = sums.influence(constants, signs.slope, bend)
        if not self.standardize:
            # the spread that local means borrow may exceed that of the residuals
            load = signs.slope[..., None, :] / sums.n
            variance = np.maximum(variance, self.means.variances(load, load**2)[..., 0])
        variance = np.maximum(variance + self.more_variance, 0.0)
        error = np.sqrt(variance + self.uncertain_variance(signs, options))
        return GapEstimate(
            value=signs.gap,
            error=error,
            skewness=third / np.maximum(error**3, TINY),
            freedom=self.means.freedom,
            decisions=sums,
        )

    def uncertain_variance(self, signs: Signs, options: GapOptions) -> Array:
        """Return the amount that uncertain signs add to the variance of the gap, (…)."""
        key = signs, options
        if key not in self.drawn:
            near = np.abs(signs.mean) <= UNCERTAIN * signs.error
            middle = np.where(near, 0, signs.mean)[..., None]
            noise = "noise", options
            if noise not in self.drawn:
                self.drawn[noise] = self._noise(options, min(options.resamples, ENOUGH))
            mean, wide = self.drawn[noise]
            values = self.statistic(middle + mean, middle + wide, signs.shrinkage[..., None])
            steps = self.shares * np.where(near, signs.soft, np.sign(signs.mean))
            linear = (steps[..., None, :] @ mean)[..., 0, :]
            self.drawn[key] = np.maximum(values.var(axis=-1) - linear.var(axis=-1), 0.0)
        return np.asarray(self.drawn[key])


def soft_signs(mean: Array, error: Array) -> tuple[Array, Array]:
    """Return the soft signs of means, given their standard errors, and the derivatives of the soft
    signs, which approach −1 and 1 far from 0.
    """
    softness = np.maximum(SOFTNESS * error, TINY)
    x = np.clip(mean / softness, -40, 40)
    slope = np.exp(-(x**2) / 2) * (math.sqrt(2 / math.pi) / softness)
    return np.asarray(erf(x / math.sqrt(2))), slope


def chi_factor(freedom: Array, options: GapOptions) -> Array:
    """Return random factors that turn normal draws into draws of Student's t, (…, draws)."""
    seed = options.seed, 1, 1
    squares = [
        np.random.default_rng(seed).chisquare(own, options.resamples) for own in np.ravel(freedom)
    ]
    return np.sqrt(freedom[..., None] / np.reshape(squares, (*freedom.shape, -1)))


def wrong_sign_loss(shares: Array, signs: Signs) -> Any:
    """Return a bound on the expected loss of the statistic due to uncertain signs of the curve."""
    spread = math.sqrt(1 + SOFTNESS**2)
    size = np.abs(signs.mean) / np.maximum(signs.error, TINY)
    worst = np.clip(WORST * spread, np.maximum(size - UNCERTAIN, 0), size + UNCERTAIN)
    return (2 * worst * ndtr(-worst / spread) * signs.error) @ shares


def stratified_covariance(
    sums: ScoreSums, cells: Cells, whole: ColumnGap, within: ColumnGap
) -> float:
    """Return the covariance between the gap of all rows and the gap within strata."""
    cell = np.arange(len(sums.rows))
    size = len(cells.starts)
    slope = _slopes(sums, cells, whole)
    inner = within.signs.slope[np.searchsorted(cells.stratum_nodes, cell, side="right") - 1]
    # within strata, the mean of the stratum is subtracted from scores; here, that of all rows
    every = sums.group_sums(cell, np.full(sums.strata, sums.mean))
    constant = np.full(len(cell), -whole.signs.gap)
    moved = -within.signs.gap - inner * np.repeat(sums.stratum_means - sums.mean, size)
    one, _ = every.influence(constant, slope)
    other, _ = every.influence(moved, inner)
    difference, _ = every.influence(moved - constant, inner - slope)
    return float(one + other - difference) / 2


def strata_part(sums: ScoreSums, cells: Cells, whole: ColumnGap) -> float:
    """Return the between-strata part of the gap of all rows: the gap in stratum means, with the
    signs of the overall gap.
    """
    apart = np.repeat(sums.stratum_means - sums.mean, len(cells.starts))
    weight = sums.powers[0, 0]
    return float((weight * _slopes(sums, cells, whole)) @ apart / weight.sum())


def _slopes(sums: ScoreSums, cells: Cells, whole: ColumnGap) -> Array:
    """Return the derivatives of the gap of all rows with respect to scores in the cells of each
    stratum.
    """
    cell = np.arange(len(sums.rows)) % len(cells.starts)
    return np.asarray(whole.signs.slope[np.searchsorted(cells.nodes, cell, side="right") - 1])


def column_from_sums(sums: ScoreSums, cells: Cells) -> ColumnGap:
    """Return the gap, computed from sums over rows; if there are strata, return the gap within
    strata.
    """
    nodes = sums.group_sums(cells.stratum_nodes if sums.strata > 1 else cells.nodes)
    return ColumnGap(nodes, Windows(nodes))


def column_gap(
    rows: ScoreRows,
    scores: Array,
    resolution: float | None = None,
    cells: Cells | None = None,
    windows: Windows | None = None,
    numbers: Sequence[int] = (0,),
) -> ColumnGap:
    """Return the gap for scores of the rows, (…, rows). Cells and windows computed for the same
    rows can be reused. Columns with the same entry in `numbers` use the same random numbers.
    """
    cells = Cells.from_rows(rows) if cells is None else cells
    nodes = cells.stratum_nodes if cells.strata else cells.nodes
    sums = cells.score_sums(rows, scores).group_sums(nodes)
    return ColumnGap(sums, Windows(sums, resolution) if windows is None else windows, numbers)
