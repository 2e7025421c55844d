r"""Generalized demographic parity (GDP), with an interval and a test that the mean score does not move with s."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import stats

from frhsic import _arrays
from frhsic.parity import _signs
from frhsic.parity._rows import Array, Rows, rows_of, weighted_mean
from frhsic.parity._signs import NEAR, Signs, lost_to_wrong_signs

RESAMPLES = 999


@dataclass(frozen=True)
class ParityResult:
    """A gap in mean scores, with its uncertainty and settings. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population; NaN without resamples.
    standard_error
        Standard error of the value; NaN without resamples.
    expected_under_independence
        Mean of the value in samples like this one whose mean score does not depend on s; NaN without resamples.
    pvalue
        p-value of the hypothesis that the mean score does not depend on s; NaN without resamples. The spread of the
        scores may depend on s.
    per_column
        The gap of each column of scores.
    column
        Number of the column with the largest gap.
    n
        Number of rows.
    resolution
        Bandwidth on the ranks of s, as a share of the population. Where the conditional mean crosses the overall mean
        more often than this resolves, the gap is estimated too low.
    confidence, resamples, seed
        Settings of the computation; the seed reproduces it.
    unit
        ``"score"``, or ``"standard deviation of the score"``.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    column: int
    n: int
    resolution: float
    confidence: float
    resamples: int
    seed: int
    unit: str

    def __float__(self) -> float:
        return self.value


def gdp(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity: the mean distance of the conditional mean score from the mean score.

    .. math:: \Delta = \mathbb E_S \bigl| \mathbb E[f | S] - \mathbb E f \bigr|
        = \mathbb E \bigl[ \operatorname{sign}(\mathbb E[f | S] - \mathbb E f) \, (f - \mathbb E f) \bigr]

    Zero in the population when the mean score does not depend on s, even if other properties of the scores do. Like its
    definition, the estimate does not change under increasing maps of s, such as the logarithm. It scales with the
    scores; use :func:`standardized_gdp` to compare models whose scores differ in scale.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or predictions. With several
        columns (classes) the value is the largest gap.
    s
        One sensitive attribute; for several see :func:`gdp_by_attribute`.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    sample_weight
        Weights of the rows, such as those of a survey.
    clusters
        Labels of rows that belong together, such as several rows of one person. Clusters are left out and resampled
        as a whole.
    resolution
        Bandwidth on the ranks of s, a share between 0 and 1. None is :math:`n^{-1/4} / 2` for n (effective) rows or
        clusters: 0.13 for 200 rows, 0.09 for 1,000, 0.05 for 10,000.
    confidence
        Confidence of the interval.
    resamples
        Number of resamples of the wild bootstrap; 0 gives the value alone.
    random_state
        Seed of the resamples. The value does not depend on it.

    Notes
    -----
    The sign is estimated from the other rows, by a Nadaraya–Watson mean on mid-ranks of s at the stated resolution. The
    estimate replaces it by the soft sign :math:`2\Phi(2x) - 1`, where x is the estimated gap at the row in standard
    errors. More than 256 distinct values of s are replaced by as many groups of equal size.

    The standard error adds to that of a mean of :math:`g (f - \bar f)` what the wild bootstrap finds where signs are
    uncertain. In expectation a wrong sign can only lower the estimate, so the upper end of the interval is raised by a
    bound on that loss: the interval is conservative near independence. Where the mean jumps at a value of a continuous
    s, rows within the resolution of the jump get uncertain signs and the estimate is low: 0.289 at 1,000 rows and 0.305
    at 25,000 for a gap of 0.32. No estimate sees a conditional mean that oscillates faster than its resolution;
    :func:`correlation_ratio` resolves more. With several columns the error probability is divided among them
    (Bonferroni).

    The p-value compares with resamples :math:`\mu + \xi_i (f_i - \mu)` with random signs :math:`\xi_i`, which keep the
    spread of the scores at each value of s. The common mean :math:`\mu` weights rows by the inverse of that spread.
    Above 10,000 rows without clusters the resampled sums over the groups are drawn from the normal distribution.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its equation of GDP. Wu (1986),
    *Jackknife, bootstrap and other resampling methods in regression analysis* (wild bootstrap).

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = gdp([0.1, 0.2, 0.3, 0.6] * 50, [0.0, 0.0, 0.0, 1.0] * 50)
    >>> round(float(result), 4)
    0.15
    """
    rows = rows_of(scores, s, where, sample_weight, clusters)
    return _measured(rows, resolution, confidence, resamples, random_state, standardize=False)


def standardized_gdp(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity in standard deviations of the scores, :math:`\Delta / \mathrm{sd}(f)`.

    It does not change when the scores are shifted or scaled, whereas :func:`gdp` falls when the scores shrink. It is at
    most one. The standard deviation divides by n and uses the rows that `where` keeps; the standard error allows for it
    (delta method).

    Parameters
    ----------
    scores, s, where, sample_weight, clusters, resolution, confidence, resamples, random_state
        As in :func:`gdp`. Each column is divided by its own standard deviation.

    Examples
    --------
    Scores that are a function of two equally large groups: the gap is one standard deviation.

    >>> round(float(standardized_gdp([0.2, 0.2, 0.6, 0.6] * 25, [0.0, 0.0, 1.0, 1.0] * 25)), 4)
    1.0
    """
    rows = rows_of(scores, s, where, sample_weight, clusters)
    if bool((rows.scores == rows.scores[0]).all(axis=0).any()):
        raise ValueError("scores are constant: their standard deviation is 0. Use gdp, whose value is then 0.")
    return _measured(rows, resolution, confidence, resamples, random_state, standardize=True)


def gdp_by_attribute(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> dict[str, ParityResult]:
    """:func:`gdp` along each column of s, in a dictionary by column name (or s, or s_1, s_2, ...).

    It does not measure dependence on several attributes jointly, and the p-values are not adjusted for their number.

    Parameters
    ----------
    scores, s, where, sample_weight, clusters, resolution, confidence, resamples, random_state
        As in :func:`gdp`; s may have several columns.

    Examples
    --------
    >>> by = gdp_by_attribute([0.0, 0.0, 1.0, 1.0] * 25, [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 25)
    >>> {name: round(float(result), 4) for name, result in by.items()}
    {'s_1': 0.5, 's_2': 0.0}
    """
    columns = _arrays.matrix(s, "s")
    names = _arrays.column_names(s, "s", columns.shape[1])
    if len(set(names)) < len(names):
        raise ValueError(f"the columns of s are named {names}; give each its own name.")
    seed = _arrays.seed_of(random_state)
    each = (rows_of(scores, column, where, sample_weight, clusters) for column in columns.T)
    options = resolution, confidence, resamples, seed
    return {name: _measured(rows, *options, standardize=False) for name, rows in zip(names, each)}


def _measured(
    rows: Rows,
    resolution: float | None,
    confidence: float,
    resamples: int,
    random_state: _arrays.RandomState,
    *,
    standardize: bool,
) -> ParityResult:
    """Return the largest gap over the columns of scores, with its interval and its test."""
    columns = _columns(rows, resolution)
    options = GapOptions(columns[0].signs.resolution, confidence, resamples, _arrays.seed_of(random_state), standardize)
    if standardize:
        columns = [column.standardized() for column in columns]
    return largest_gap(columns, len(rows.s), rows.effective, options)


def gap_and_standardized(
    rows: Rows, confidence: float, resamples: int, random_state: _arrays.RandomState
) -> tuple[ParityResult, ParityResult | None]:
    """:func:`gdp` and :func:`standardized_gdp`, which share their resamples; no second if scores are constant."""
    columns = _columns(rows, None)
    options = GapOptions(columns[0].signs.resolution, confidence, resamples, _arrays.seed_of(random_state), False)
    n, effective = len(rows.s), rows.effective
    gap = largest_gap(columns, n, effective, options)
    if any(column.variance == 0 for column in columns):
        return gap, None
    scaled = [column.standardized() for column in columns]
    return gap, largest_gap(scaled, n, effective, replace(options, standardize=True))


def gap_value(rows: Rows, resolution: float) -> float:
    """Return the value of :func:`gdp` at a resolution."""
    return max(0.0, *(column.value for column in _columns(rows, resolution)))


def _columns(rows: Rows, resolution: float | None) -> list[_Column]:
    if resolution is not None:
        _arrays.require_fraction(resolution, "resolution")
    return centred_columns(rows, Signs(rows, resolution))


def centred_columns(rows: Rows, signs: Signs) -> list[_Column]:
    """Return the gap of each column of scores."""
    varies = (rows.scores != rows.scores[0]).any(axis=0)
    f = np.where(varies, rows.scores - weighted_mean(rows.weights, rows.scores), 0.0)
    return [_Column(signs, column) for column in f.T]


@dataclass(frozen=True)
class GapOptions:
    """Settings of a gap."""

    resolution: float
    confidence: float
    resamples: int
    seed: int
    standardize: bool

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        _arrays.require_integer(self.resamples, "resamples", 0)


class GapColumn(Protocol):
    """The gap of one column of scores, its error and its values under independence."""

    value: float
    magnitude: float

    def null(self, resamples: int, rng: np.random.Generator) -> Array: ...

    def uncertainty(self, resamples: int, rng: np.random.Generator) -> tuple[float, float]: ...


def largest_gap(columns: Sequence[GapColumn], n: int, effective: float, options: GapOptions) -> ParityResult:
    """Return the largest gap of some columns with its interval and its test; `effective` counts rows or clusters."""
    tail = (1 - options.confidence) / 2 / len(columns)
    quantile = float(stats.t.ppf(1 - tail, max(effective - 1, 1)))
    largest = int(np.argmax([column.value for column in columns]))
    value, error, expected, pvalue = columns[largest].value, math.nan, math.nan, math.nan
    interval = (math.nan, math.nan)
    resamples, seed = options.resamples, options.seed
    if resamples:
        bounds, null = [], []
        for i, column in enumerate(columns):
            # sums over nodes are drawn independently for each column, which can only raise their maximum
            keys = [seed, i] if n > _signs.LARGE else [seed]
            own_error, lost = column.uncertainty(resamples, np.random.default_rng([*keys, 0]))
            reach, above = quantile * own_error, max(column.value, 0.0)  # the gap itself is never negative
            bounds.append((column.value - reach, above + reach + lost))
            null.append(column.null(resamples, np.random.default_rng([*keys, 1])))
            error = own_error if i == largest else error
        interval = max(0.0, *(low for low, _ in bounds)), max(0.0, *(high for _, high in bounds))
        most = np.max(null, axis=0)
        slack = 100 * np.finfo(np.float64).eps * max(column.magnitude for column in columns)
        expected = float(np.maximum(most, 0).mean())
        pvalue = float((1 + (most >= value - slack).sum()) / (1 + resamples))
    return ParityResult(
        value=max(value, 0.0),
        interval=interval,
        standard_error=error,
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(max(column.value, 0.0) for column in columns),
        column=largest,
        n=n,
        resolution=options.resolution,
        confidence=options.confidence,
        resamples=resamples,
        seed=seed,
        unit="standard deviation of the score" if options.standardize else "score",
    )


class _Column:
    """The gap of one column of centred scores."""

    def __init__(self, signs: Signs, f: Array) -> None:
        self.signs, self.f, self.weights = signs, f, signs.weights
        soft, mean, error = signs.signs(f[:, None])
        if signs.rows.clusters is not None:
            signs.inflation = 1.0
            signs.adopt_clusters(f - mean[signs.node, 0])
            soft, mean, error = signs.signs(f[:, None])
        self.inflation = signs.inflation
        self.soft, self.mean, self.error = soft[:, 0], mean[:, 0], error[:, 0]
        self.gap = float(weighted_mean(self.weights, self.soft * f))
        self.variance = float(weighted_mean(self.weights, f**2))
        self.standardize, self.scale = False, 1.0
        self.value, self.magnitude = self.gap, float(np.abs(f).max())
        self.unscaled_null: Array | None = None
        self.unscaled_extra: tuple[float, float] | None = None

    def standardized(self) -> _Column:
        """Return the gap in standard deviations of the scores; resamples that were drawn are used again."""
        scaled = copy(self)
        scaled.standardize, scaled.scale = True, math.sqrt(self.variance)
        scaled.value, scaled.magnitude = self.value / scaled.scale, self.magnitude / scaled.scale
        return scaled

    def null(self, resamples: int, rng: np.random.Generator) -> Array:
        """Return values of resamples whose mean does not depend on s."""
        if self.unscaled_null is None:
            self.signs.inflation = self.inflation
            flat = np.zeros(len(self.mean))
            noise = self.f - self.signs.precise_mean(self.f)
            self.unscaled_null = self.signs.resampled(flat, noise, resamples, rng)
        return self.unscaled_null / self.scale

    def uncertainty(self, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the standard error, and a bound on what uncertain signs take away from the value."""
        weights, rows = self.weights, self.signs.rows
        n = weights.sum()
        influence = (self.soft - weighted_mean(weights, self.soft)) * self.f - self.gap
        if self.standardize:
            influence -= self.gap * (self.f**2 / self.variance - 1) / 2
        factor = rows.effective / max(rows.effective - 1, 1)
        variance = factor * rows.square_of_sums(weights * influence) / n**2
        if self.unscaled_extra is None:
            self.unscaled_extra = self.uncertain_signs(resamples, rng)
        extra, lost = self.unscaled_extra
        return math.sqrt(variance + extra) / self.scale, lost / self.scale

    def uncertain_signs(self, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return what uncertain signs add to the variance of the gap, and a bound on what they take away from it."""
        signs, weights, rows = self.signs, self.weights, self.signs.rows
        signs.inflation = self.inflation
        leverage = signs.own.weight / signs.total[signs.node]
        residual = (self.f - self.mean[signs.node]) / np.sqrt(np.maximum(1 - leverage, 0.1))
        near = np.abs(self.mean) <= NEAR * self.error
        resampled = signs.resampled(np.where(near, 0, self.mean), residual, resamples, rng)
        fixed = np.where(near[signs.node], self.soft, np.sign(self.mean)[signs.node])
        noise = weights * (fixed - weighted_mean(weights, fixed)) * residual
        linear = rows.square_of_sums(noise) / weights.sum() ** 2
        extra = max(float(resampled.var(ddof=1)) - linear, 0) if resamples > 1 else 0.0
        return extra, lost_to_wrong_signs(signs.counts, self.mean, self.error)
