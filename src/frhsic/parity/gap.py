"""Generalized demographic parity (GDP) and the gap of ranks, with an interval and a test that s
does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from frhsic import _arrays
from frhsic._pictures import card
from frhsic.formatting import chance, figure, percent, ranged
from frhsic.intervals import agreed_low
from frhsic.parity.local_means import LocalMeans, Windows
from frhsic.parity.sums import TINY, Array, Cells, Rows, Sums, one_column, rows_of, skewed_reach

RESAMPLES = 999
ENOUGH = 199
"""Resamples that the variance of a gap needs; more serve its p-value."""

SOFTNESS = 0.5
"""The c of the soft sign: a mean that is c standard errors away from the overall mean has the sign
0.68.
"""

NEAR = 2.0
"""Within this many standard errors of the overall mean, the sign of a gap counts as uncertain."""

WORST = 0.7518
"""Where x Φ(-x) is largest."""

FEW = 7.5
"""Up to so many rows of the rarer decision, or clusters, the upper end of a gap is at least the
largest that their rate allows; between two whole numbers, so that rounding decides nothing.
"""

NOTHING = 1e-12
"""Share of a variance that is left by rounding."""

DECILES = np.arange(1, 10) / 10
NEAR_DECILE = 0.05
"""Rows whose rank is this close to a decile say how the gap changes with it."""


@dataclass(frozen=True)
class ParityResult:
    r"""A gap in mean scores, with its uncertainty and settings. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population; NaN without resamples.
    standard_error
        Standard error of the value; NaN without resamples.
    expected_under_independence
        Mean of the value in samples like this one whose mean score does not depend on s; NaN
        without resamples.
    pvalue
        p-value of the hypothesis that the mean score does not depend on s; NaN without resamples.
        The spread of the scores may depend on s.
    per_column
        The gap of each column of scores.
    n
        Number of rows.
    resolution
        Share of the people over whom the mean score is averaged along s; the value and the
        interval are for such means. 0 if the values of s are few and are compared themselves.
    confidence, seed
        Settings of the computation; the seed reproduces it.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    n: int
    resolution: float
    confidence: float
    seed: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        ends = ", ".join(f"{end:.4g}" for end in self.interval)
        return (
            f"ParityResult(value={self.value:.4g}, interval=({ends}), pvalue={self.pvalue:.3g},"
            f" n={self.n}, resolution={self.resolution:.3g})"
        )

    def _repr_html_(self) -> str:
        over = f", over the nearest {percent(self.resolution)} of people" if self.resolution else ""
        ends = f"{percent(self.confidence)} confidence, {self.n:,} rows{over}"
        size = f"gap {figure(self.value)}"
        if self.pvalue == self.pvalue:  # else there were no resamples
            size = f"gap {ranged(self.value, *self.interval)}, p {chance(self.pvalue)}"
        return card([size, ends])


def gdp(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity: the mean distance of the conditional mean score from the
    mean score.

    .. math:: \Delta = \mathbb E_S \bigl| \mathbb E[f | S] - \mathbb E f \bigr|
        = \mathbb E \bigl[ \operatorname{sign}(\mathbb E[f | S] - \mathbb E f) \, (f - \mathbb E f)
        \bigr]

    Zero in the population when the mean score does not depend on s, even if other properties of the
    scores do. Like its definition, the estimate does not change under increasing maps of s, such as
    the logarithm. It scales with the scores; use :func:`standardized_gdp` to compare models whose
    scores differ in scale.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or
        predictions. With several columns (classes) the value is the largest gap.
    s
        One sensitive attribute.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    sample_weight
        Weights of the rows, such as those of a survey.
    groups
        Labels of rows that belong together, such as several rows of one person. Clusters are left
        out and resampled as a whole.
    resolution
        Share of the people over whom the mean score is averaged along s, between 0 and 1. None is
        5 % at 1,000 (effective) rows or clusters, 3.4 % at 10,000, and 23 % at 100. It is fixed
        before the scores are looked at.
    confidence
        Confidence of the interval.
    resamples
        Number of resamples; 0 gives the value alone.
    random_state
        Seed of the resamples. The value does not depend on it.

    Notes
    -----
    The mean score at s is averaged over the people whose rank along s is within half of the
    resolution, and the gap is that of these means: what oscillates faster is averaged out. A value
    of s that more people share is compared by itself, and so are all values if they are at most
    20. More than 256 distinct values are replaced by as many groups of equal size.

    The sign is estimated by the soft sign :math:`g = 2\Phi(2x) - 1`, where x is the mean over the
    people nearby, less the overall mean, in standard errors. These are four times as many people,
    as far as their means do not differ from the local ones by more than noise (James and Stein).
    Each local mean m adds :math:`g m` less the covariance of the two by noise, so that its
    expectation is :math:`m\,E g` (Stein's identity): zero where the mean does not depend on s, and
    never more than the gap. The upper end takes the signs of the local means themselves.

    The interval is that of a normal estimate with named corrections (`CORRECTIONS`): Student's t,
    with few degrees of freedom where few rows carry the weight; skewness (Hall, 1992); what
    uncertain signs take away from the estimate; and, where one of two decisions is rare, the
    largest gap :math:`2\mu(1 - \mu)` that its rate allows (Clopper and Pearson, 1934). With several
    columns the error probability is divided among them (Bonferroni).

    The p-value compares with resamples whose mean does not move with s and whose sums over the
    values of s have the spread and skewness of the scores nearby (with clusters, random multiples
    of their sums). Beyond the resamples an exponential tail is fitted, so that every level can be
    reached. The lower end of the interval is above 0 exactly where the p-value is at most one minus
    the confidence.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its
    equation of GDP. Hall (1992), *On the removal of skewness by transformation*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = gdp([0.1, 0.2, 0.3, 0.6] * 50, [0.0, 0.0, 0.0, 1.0] * 50)
    >>> round(float(result), 4)
    0.15
    """
    columns = columns_of(rows_of(scores, s, where, sample_weight, groups), resolution)
    return largest_gap(columns, GapOptions(confidence, resamples, _arrays.seed_of(random_state)))


def standardized_gdp(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity in standard deviations of the scores, :math:`\Delta /
    \mathrm{sd}(f)`.

    It does not change when the scores are shifted or scaled, whereas :func:`gdp` falls when the
    scores shrink. It is at most one. The standard deviation divides by n and uses the rows that
    `where` keeps; the standard error allows for it (delta method).

    Parameters
    ----------
    scores, s, where, sample_weight, groups, resolution, confidence, resamples, random_state
        As in :func:`gdp`. Each column is divided by its own standard deviation.

    Examples
    --------
    Scores that are a function of two equally large groups: the gap is one standard deviation.

    >>> round(float(standardized_gdp([0.2, 0.2, 0.6, 0.6] * 25, [0.0, 0.0, 1.0, 1.0] * 25)), 4)
    1.0
    """
    columns = columns_of(rows_of(scores, s, where, sample_weight, groups), resolution)
    if any(column.sums.variance == 0 for column in columns):
        raise ValueError(
            "scores are constant: their standard deviation is 0. Use gdp, whose value is then 0."
        )
    options = GapOptions(confidence, resamples, _arrays.seed_of(random_state))
    return largest_gap([column.standardized() for column in columns], options)


def gdp_difference(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""Mean distance of the conditional mean prediction from the mean, :math:`E_S |E[f | S] - E
    f|`; worst attribute.

    Zero in the population when the mean prediction does not depend on s. Use it in scorers and
    searches; :func:`frhsic.parity.gdp` adds an interval and the value under independence.

    Parameters
    ----------
    y_true
        Not used; metrics are called with it.
    y_pred
        Probabilities, decisions 0/1, or predictions. With several columns, the worst counts.
    sensitive_features
        One or several numeric attributes.

    Examples
    --------
    >>> round(
    ...     gdp_difference(
    ...         None, [0.1, 0.2, 0.3, 0.6] * 50, sensitive_features=[0.0, 0.0, 0.0, 1.0] * 50
    ...     ),
    ...     4,
    ... )
    0.15

    A scorer for a search, better when smaller:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(
    ...     gdp_difference, greater_is_better=False, response_method="predict_proba"
    ... )
    """
    s = _arrays.matrix(sensitive_features, "sensitive_features")
    return max(float(gdp(y_pred, column, resamples=0)) for column in s.T)


def equal_opportunity_gdp(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""As :func:`gdp_difference`, among the rows with y = 1: :math:`E |E[f | S, Y=1] - E[f |
    Y=1]|`.

    Examples
    --------
    >>> s, y = [0.0, 0.0, 1.0, 1.0] * 25, [1, 1, 1, 0] * 25
    >>> round(equal_opportunity_gdp(y, [0.2, 0.2, 0.8, 0.0] * 25, sensitive_features=s), 4)
    0.2667
    """
    s = _arrays.matrix(sensitive_features, "sensitive_features")
    return max(float(gdp(y_pred, column, where=y_true, resamples=0)) for column in s.T)


def columns_of(
    rows: Rows,
    resolution: float | None = None,
    cells: Cells | None = None,
    windows: Windows | None = None,
) -> list[ColumnGap]:
    """Return the gap of each column of scores; cells and windows of the same rows can be used
    again.
    """
    if cells is None:
        cells = Cells.of_rows(rows)
    every = [sums.over(cells.nodes) for sums in cells.sums_of(rows)]
    if windows is None:
        windows = Windows(every[0], resolution)
    # columns of clusters share the multipliers of the clusters, others draw their own noise
    numbers = range(len(every)) if rows.clusters is None else [0] * len(every)
    return [ColumnGap(sums, windows, number) for sums, number in zip(every, numbers)]


@dataclass(frozen=True)
class GapOptions:
    """Settings of a gap. Without `test` there is neither p-value nor value under independence."""

    confidence: float
    resamples: int
    seed: int
    test: bool = True

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        _arrays.require_integer(self.resamples, "resamples", 0)


@dataclass(frozen=True)
class Estimate:
    """All that the interval of a gap is made of.

    Attributes
    ----------
    value, error, skewness
        The estimate, its standard error and its skewness.
    freedom
        Degrees of freedom of the standard error.
    lost
        Bound on what uncertain signs take away from the estimate, in expectation; 0 for an
        estimate that gives no upper end.
    decisions
        The sums of 0/1 decisions, whose rate limits their gap; None for other scores.
    """

    value: float
    error: float
    skewness: float
    freedom: float
    lost: float = 0.0
    decisions: Sums | None = None


@dataclass(frozen=True)
class Ends:
    """The two ends of an interval."""

    low: float
    high: float

    def scaled(self, scale: float, most: float) -> Ends:
        """Return the ends divided by a number, up to the largest that is possible."""
        return Ends(float(min(self.low / scale, most)), float(min(self.high / scale, most)))


@dataclass(frozen=True)
class Correction:
    """A change of the ends of a normal interval, with its reason."""

    name: str
    reason: str
    applied: Callable[[Ends, Estimate, float], Ends]


def normal_ends(estimate: Estimate, tail: float) -> Ends:
    """Return the ends of a normal interval; the gap itself is never negative."""
    reach = float(ndtri(1 - tail)) * estimate.error
    return Ends(estimate.value - reach, max(estimate.value, 0.0) + reach)


def _students_t(ends: Ends, estimate: Estimate, tail: float) -> Ends:
    more = (student(tail, estimate.freedom) - float(ndtri(1 - tail))) * estimate.error
    return Ends(ends.low - more, ends.high + more)


def _skewness(ends: Ends, estimate: Estimate, tail: float) -> Ends:
    quantile = student(tail, estimate.freedom)
    below, above = skewed_reach(estimate.error, estimate.skewness, quantile)
    usual = quantile * estimate.error
    return Ends(ends.low - (below - usual), ends.high + (above - usual))


def _uncertain_signs(ends: Ends, estimate: Estimate, tail: float) -> Ends:
    return Ends(ends.low, ends.high + estimate.lost)


def _decision_rates(ends: Ends, estimate: Estimate, tail: float) -> Ends:
    if estimate.decisions is None:
        return ends
    most, rare = rarity(estimate.decisions, tail)
    if rare < FEW:
        return Ends(ends.low, max(ends.high, most))
    return Ends(ends.low, min(ends.high, max(most, estimate.value)))


CORRECTIONS = (
    Correction(
        "Student's t",
        "the standard error is estimated, from few rows where weights, clusters or tails are heavy",
        _students_t,
    ),
    Correction(
        "skewness",
        "the mean of skewed scores errs more often on the side of the longer tail",
        _skewness,
    ),
    Correction(
        "uncertain signs",
        "where the sign of a local mean is uncertain, the estimate is too small in expectation",
        _uncertain_signs,
    ),
    Correction(
        "decision rates",
        "too few decisions of a kind show no gap, and their rate limits it",
        _decision_rates,
    ),
)
"""What is done to the ends of a normal interval, in this order."""


def corrected_ends(estimate: Estimate, tail: float) -> Ends:
    """Return the ends of the interval at a probability of error on each side."""
    ends = normal_ends(estimate, tail)
    for correction in CORRECTIONS:
        ends = correction.applied(ends, estimate, tail)
    return Ends(max(ends.low, 0.0), ends.high)


def largest_gap(columns: Sequence[ColumnGap | RankGap], options: GapOptions) -> ParityResult:
    """Return the largest gap of some columns with its interval and its test."""
    largest = int(np.argmax([column.value for column in columns]))
    result = ParityResult(
        value=max(columns[largest].value, 0.0),
        interval=(math.nan, math.nan),
        standard_error=math.nan,
        expected_under_independence=math.nan,
        pvalue=math.nan,
        per_column=tuple(max(column.value, 0.0) for column in columns),
        n=columns[0].n,
        resolution=columns[largest].resolution,
        confidence=options.confidence,
        seed=options.seed,
    )
    if options.resamples == 0:
        return result
    estimates = [column.estimates(options) for column in columns]
    tail = (1 - options.confidence) / 2 / len(columns)
    ends = []
    for column, pair in zip(columns, estimates):
        lower, upper = (corrected_ends(estimate, tail) for estimate in pair)
        both = Ends(lower.low, max(lower.high, upper.high))
        ends.append(both.scaled(column.scale, column.most))
    low = max(one.low for one in ends)
    high = max(one.high for one in ends)
    error = estimates[largest][0].error / columns[largest].scale
    result = replace(result, interval=(low, high), standard_error=error)
    if not options.test:
        return result
    null = np.max([column.null(options) for column in columns], axis=0)
    slack = 100 * float(np.finfo(np.float64).eps) * max(column.magnitude for column in columns)
    pvalue = 1.0  # of an estimate that is not above 0
    if columns[largest].value > 0:
        pvalue = tail_share(null, columns[largest].value - slack)
    return replace(
        result,
        interval=(agreed_low(low, result.value, pvalue, options.confidence), high),
        expected_under_independence=float(np.maximum(null, 0).mean()),
        pvalue=pvalue,
    )


def tail_share(null: Array, value: float) -> float:
    r"""Return the p-value of a value: the share of resamples that reach it, the sample included.

    If fewer than ten reach it, the largest tenth of the resamples gives an exponential tail, whose
    mean excess is estimated: :math:`\frac{k + 1}{B + 1} (1 + x / k \bar x)^{-k}`. The null has
    lighter tails than that.
    """
    count, resamples = int((null >= value).sum()), len(null)
    k = resamples // 10
    if count >= 10 or k < 5:
        return (1 + count) / (1 + resamples)
    top = np.sort(null)[-k - 1 :]
    start, excess = float(top[0]), float(top[1:].mean() - top[0])
    if excess <= 0 or value <= start:
        return (1 + count) / (1 + resamples)
    beyond: float = (k + 1) / (resamples + 1) * (1 + (value - start) / (k * excess)) ** -k
    return beyond  # the smaller of the two shares would reject a tenth too often


@dataclass(frozen=True, eq=False)
class Signs:
    """Soft signs of the gap at the nodes, and the gap that they give.

    Attributes
    ----------
    kept
        Share of the steps from means over more people to the local means that is left out of the
        means whose signs are taken; 0 for the signs of the local means themselves.
    mean, error
        These means and their standard errors.
    soft
        Their soft signs.
    gap
        The estimate, in the unit of the scores.
    slope
        What a unit of the score of a row at each node adds to the gap, times the weight of all
        rows.
    """

    kept: float
    mean: Array
    error: Array
    soft: Array
    gap: float
    slope: Array


class ColumnGap:
    """The gap of one column of scores, from its local means.

    The signs of means over more people are more certain, where the mean score does not change
    faster. `signs` are as coarse as the scores allow, and give the value and the lower end; `fine`
    are those of the local means themselves, and give the upper end, which must hold for all.

    Attributes
    ----------
    value, scale, most
        The gap that is reported, the number by which it was divided, and the largest it can be.
    """

    def __init__(self, sums: Sums, windows: Windows, number: int = 0) -> None:
        self.sums = sums
        self.number = number
        self.n = round(sums.n)
        self.resolution = windows.share
        self.means = LocalMeans(sums, windows)
        self.shares = sums.counts / sums.n
        self.signs = self._signs(float(self.means.kept(self.means.mean, self.means.wide)))
        self.standardize = False
        self.scale = 1.0
        self.most = math.inf
        self.value = self.signs.gap
        self.magnitude = max(-sums.ends[0], sums.ends[1])
        self.drawn: dict[str, Any] = {}

    @cached_property
    def fine(self) -> Signs:
        """The signs of the local means themselves."""
        return self._signs(0.0)

    def standardized(self) -> ColumnGap:
        """Return the gap in standard deviations of the scores; resamples that were drawn are used
        again.
        """
        scaled = copy(self)
        scaled.standardize = True
        scaled.scale = math.sqrt(self.sums.variance)
        scaled.most = 1.0
        scaled.value = self.value / scaled.scale
        scaled.magnitude = self.magnitude / scaled.scale
        return scaled

    def _signs(self, kept: float) -> Signs:
        means = self.means
        mean, wide = means.mean[:, None], means.wide[:, None]
        signed, error, _ = self._signed(mean, wide, kept)
        soft = 2 * ndtr(in_errors(signed, error)[:, 0]) - 1
        return Signs(
            kept=kept,
            mean=signed[:, 0],
            error=error[:, 0],
            soft=soft,
            gap=float(self.statistic(mean, wide, kept)[0]),
            slope=self.sums.n * ((self.shares * soft) @ means.windows.deviations),
        )

    def _signed(self, mean: Array, wide: Array, kept: Array | float) -> tuple[Array, Array, Array]:
        """Return the means whose signs are taken, of shape (nodes, resamples), their errors, and
        their covariances with the local means.
        """
        variance = self.means.variance[:, None]
        shared = self.means.step_covariance[:, None]
        square = variance - 2 * kept * shared + kept**2 * self.means.step_variance[:, None]
        signed = mean - kept * (mean - wide)
        covariance = variance - kept * shared
        # the mean over everybody is the overall mean: only rounding is left, which has no sign
        empty = (square <= NOTHING * variance) & (variance > 0)
        parts = signed, np.sqrt(np.maximum(square, 0)), covariance
        # as many parts as came in, which a tuple of a generator does not tell
        return tuple(np.where(empty, 0.0, part) for part in parts)  # type: ignore[return-value]

    def statistic(self, mean: Array, wide: Array, kept: Array | float) -> Array:
        """Return the estimate of each column of local means, of shape (nodes, resamples)."""
        signed, error, covariance = self._signed(mean, wide, kept)
        x = in_errors(signed, error)
        density = 2 * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
        slope = density / np.maximum(SOFTNESS * error, TINY)
        return np.asarray(self.shares @ ((2 * ndtr(x) - 1) * mean - slope * covariance))

    def of_noise(self, mean: Array, wide: Array) -> Array:
        """Return the estimate of each column of drawn noise, whose signs are as coarse as it
        allows.
        """
        return self.statistic(mean, wide, self.means.kept(mean, wide))

    def null(self, options: GapOptions) -> Array:
        """Return values of resamples whose mean does not depend on s.

        Their spread is an estimate, so that they have the tails of Student's t.
        """
        if "null" not in self.drawn:
            random = np.random.default_rng((options.seed, self.number))
            values = self.of_noise(*self.means.draw(random, options.resamples))
            self.drawn["null"] = values * chi_factor(self.means.freedom, options)
        return np.asarray(self.drawn["null"] / self.scale)

    def estimates(self, options: GapOptions) -> tuple[Estimate, Estimate]:
        """Return what the lower end, and what the upper end is made of, in the unit of the
        scores.
        """
        fine = self._estimate(self.fine, options)
        lost = lost_to_wrong_signs(self.shares, self.fine.mean, self.fine.error)
        return self._estimate(self.signs, options), replace(fine, lost=lost)

    def _estimate(self, signs: Signs, options: GapOptions) -> Estimate:
        sums = self.sums
        constant = np.full(len(signs.slope), -signs.gap)
        bend = 0.0
        if self.standardize:  # the standard deviation is estimated, too
            constant = constant / 2
            bend = -signs.gap / (2 * sums.variance)
        variance, third = sums.influence(constant, signs.slope, bend)
        if not self.standardize:
            # the spread that local means borrow may be larger than that of the residuals
            borrowed = self.means.variances(signs.slope[None] / sums.n)
            variance = max(variance, float(borrowed[0]))
        error = math.sqrt(variance + self.uncertain_variance(signs, options))
        return Estimate(
            value=signs.gap,
            error=error,
            skewness=third / max(error**3, TINY),
            freedom=self.means.freedom,
            decisions=sums if sums.decisions else None,
        )

    def uncertain_variance(self, signs: Signs, options: GapOptions) -> float:
        """Return what uncertain signs add to the variance of the gap."""
        key = f"uncertain {signs.kept}"
        if key not in self.drawn:
            near = np.abs(signs.mean) <= NEAR * signs.error
            middle = np.where(near, 0, signs.mean)[:, None]
            random = np.random.default_rng((options.seed, self.number))
            mean, wide = self.means.draw(random, min(options.resamples, ENOUGH))
            resampled = self.statistic(middle + mean, middle + wide, signs.kept)
            linear = (self.shares * np.where(near, signs.soft, np.sign(signs.mean))) @ mean
            self.drawn[key] = max(float(resampled.var() - linear.var()), 0.0)
        return float(self.drawn[key])


def in_errors(mean: Array, error: Array) -> Array:
    """Return means in units of the softness of their signs; a sign beyond the ends is certain."""
    return np.asarray(np.clip(mean / np.maximum(SOFTNESS * error, TINY), -40, 40))


def chi_factor(freedom: float, options: GapOptions) -> Array:
    """Return random numbers that turn normal resamples into those of Student's t."""
    random = np.random.default_rng((options.seed, 1, 1))
    return np.asarray(np.sqrt(freedom / random.chisquare(freedom, options.resamples)))


def lost_to_wrong_signs(shares: Array, mean: Array, error: Array) -> float:
    """Return a bound on what the statistic loses in expectation where the sign of the gap is
    uncertain.
    """
    spread = math.sqrt(1 + SOFTNESS**2)
    size = np.abs(mean) / np.maximum(error, TINY)
    worst = np.clip(WORST * spread, np.maximum(size - NEAR, 0), size + NEAR)
    return float(shares @ (2 * worst * ndtr(-worst / spread) * error))


def student(tail: float, freedom: float) -> float:
    """Return the quantile of Student's t."""
    return float(stdtrit(max(freedom, 1), 1 - tail))


def rarity(sums: Sums, tail: float) -> tuple[float, float]:
    """Return the largest gap 2μ(1 - μ) of 0/1 decisions, μ at its upper end, and how many are of
    the rarer kind.

    The end is that of Clopper and Pearson (1934); rows of a cluster count as one.
    """
    low, high = sums.ends
    size = high - low
    rare = min(-low, high) / size * sums.effective
    rate = float(betaincinv(rare + 1, sums.effective - rare, 1 - tail))
    if rate > 0.5:
        return size / 2, rare
    return size * 2 * rate * (1 - rate), rare


def rank_gap(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Mean generalized demographic parity of the decisions at the score's own deciles.

    .. math:: \frac19 \sum_{k=1}^9 \mathbb E_S \bigl| P(f > q_k | S) - P(f > q_k) \bigr|

    where :math:`q_k` is the k-th decile of the scores, the smallest score that at least a share
    k/10 of the rows does not exceed. Deciles that coincide count as often as they occur; a decile
    that no score exceeds counts zero. Zero in the population when the score is independent of s. It
    depends on the order of the scores alone, so no strictly increasing map of them, such as a logit
    or a contraction towards one half, changes it. Compare models by it at equal AUC.

    Parameters
    ----------
    scores
        One column.
    groups
        Labels of rows that belong together, as in :func:`gdp`.
    s, where, sample_weight, confidence, resamples, random_state
        As in :func:`gdp`. With ``resamples=0`` the value alone is computed.

    Notes
    -----
    Each of the nine gaps is estimated as in :func:`gdp`; `per_column` of the result holds them. The
    standard error counts that the deciles are estimated: moving a decile moves the gap by the mean
    sign of the rows near it.

    Examples
    --------
    A score with one value in each of two equally large groups. Five deciles are the lower value,
    with a gap of 0.5 each; no score exceeds the other four.

    >>> result = rank_gap([0.2] * 50 + [0.7] * 50, [0.0] * 50 + [1.0] * 50)
    >>> round(float(result), 4)
    0.2778
    """
    column = RankGap(one_column(rows_of(scores, s, where, sample_weight, groups)))
    result = largest_gap([column], GapOptions(confidence, resamples, _arrays.seed_of(random_state)))
    return replace(result, per_column=tuple(np.maximum(column.gaps, 0.0).tolist()))


def gap_of_each(
    scores: Any,
    s: Any,
    *,
    ranks: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> list[ParityResult]:
    """Return :func:`gdp` (or :func:`rank_gap`) of each column of scores alone, without the test of
    no gap.

    The columns share their windows and their random numbers, so that many scores of the same rows
    cost little more than one; `expected_under_independence` and `pvalue` are NaN.
    """
    rows = rows_of(scores, s, None, sample_weight, groups)
    cells = Cells.of_rows(rows)
    first = cells.sums_of(replace(rows, scores=rows.scores[:, :1]))[0]
    windows = Windows(first.over(cells.nodes))
    options = GapOptions(confidence, resamples, _arrays.seed_of(random_state), test=False)
    results = []
    for column in rows.scores.T:
        one = replace(rows, scores=column[:, None])
        gap = RankGap(one, cells, windows) if ranks else columns_of(one, None, cells, windows)[0]
        results.append(largest_gap([gap], options))
    return results


class RankGap:
    """The mean gap of the decisions at nine deciles."""

    scale = 1.0
    most = 1.0
    magnitude = 1.0

    def __init__(
        self, rows: Rows, cells: Cells | None = None, windows: Windows | None = None
    ) -> None:
        score = rows.scores[:, 0]
        weights = rows.weights
        order = np.argsort(score, kind="stable")
        below = np.cumsum(weights[order])
        self.rank = np.empty(len(order))
        self.rank[order] = below / below[-1]
        deciles = score[order][np.searchsorted(below, DECILES * below[-1] * (1 - 1e-12))]
        self.thresholds, which = np.unique(deciles, return_inverse=True)
        self.rows = replace(rows, scores=(score[:, None] > self.thresholds).astype(np.float64))
        self.at = score[:, None] == self.thresholds
        self.cells = Cells.of_rows(rows) if cells is None else cells
        self.columns = columns_of(self.rows, cells=self.cells, windows=windows)
        self.shares = np.bincount(which) / 9
        self.gaps = np.array([column.value for column in self.columns])[which]
        self.n = len(rows.s)
        self.value = float(self.gaps.mean())
        self.resolution = self.columns[0].resolution

    def null(self, options: GapOptions) -> Array:
        """Return values of resamples in which no decision depends on s."""
        if self.rows.clusters is not None:
            draws = [column.null(options) for column in self.columns]
            return np.asarray(self.shares @ np.stack(draws))
        noise = self._joint_noise(options)
        draws = [
            column.of_noise(*column.means.of_sums(drawn))
            for column, drawn in zip(self.columns, noise)
        ]
        factor = chi_factor(self.columns[0].means.freedom, options)
        return np.asarray(self.shares @ np.stack(draws) * factor)

    def _joint_noise(self, options: GapOptions) -> Array:
        """Draw sums over nodes for all decisions together, of shape (decisions, nodes, resamples).

        Where the score is independent of s, decisions have the same covariance at every node. Rows
        above the higher of two thresholds are above the lower one too: the product of both
        decisions is the first.
        """
        rate = np.array([-column.sums.ends[0] for column in self.columns])
        covariance = np.minimum.outer(rate, rate) - np.outer(rate, rate)
        values, vectors = np.linalg.eigh(covariance * self.columns[0].sums.bessel)
        root = vectors * np.sqrt(np.maximum(values, 0))
        spread = np.sqrt(self.columns[0].sums.powers[1, 0])
        normal = np.random.default_rng([options.seed, 1]).standard_normal(
            (len(rate), len(spread) * options.resamples)
        )
        drawn = (root @ normal).reshape(len(rate), len(spread), options.resamples)
        return np.asarray(spread[:, None] * drawn)

    def terms(self, signs: list[Signs]) -> Array:
        """Return what each row adds to the gap, with what it adds by moving the deciles."""
        rows = self.rows
        weights = rows.weights
        n = float(weights.sum())
        cells = self.cells
        node = np.searchsorted(cells.nodes, cells.place(rows.s), side="right") - 1
        influence = np.zeros(len(weights))
        for j, (share, column, own) in enumerate(zip(self.shares, self.columns, signs)):
            at = self.at[:, j]
            slope = own.slope[node]
            near = weights
            if float(weights[at].sum()) / n <= NEAR_DECILE:  # inside a large tie it does not move
                near = weights * (np.abs(self.rank - self.rank[at].mean()) <= NEAR_DECILE)
            decided = rows.scores[:, j] + column.sums.ends[0]
            influence += share * ((slope - near @ slope / near.sum()) * decided - own.gap)
        return np.asarray(weights * influence / n)

    def estimates(self, options: GapOptions) -> tuple[Estimate, Estimate]:
        """Return what the lower end, and what the upper end is made of."""
        fine = [column.fine for column in self.columns]
        lost = [
            lost_to_wrong_signs(column.shares, own.mean, own.error)
            for column, own in zip(self.columns, fine)
        ]
        lower = self._estimate([column.signs for column in self.columns], options)
        upper = self._estimate(fine, options)
        return lower, replace(upper, lost=float(self.shares @ lost))

    def _estimate(self, signs: list[Signs], options: GapOptions) -> Estimate:
        rows = self.rows
        terms = self.terms(signs)
        if rows.clusters is not None:
            terms = np.bincount(rows.clusters, weights=terms).astype(np.float64)
        extra = [
            math.sqrt(column.uncertain_variance(own, options))
            for column, own in zip(self.columns, signs)
        ]
        bessel = rows.effective / max(rows.effective - 1, 1)
        error = math.sqrt(bessel * float(terms @ terms) + float(self.shares @ extra) ** 2)
        return Estimate(
            value=float(self.shares @ [own.gap for own in signs]),
            error=error,
            skewness=float((terms**3).sum()) / max(error**3, TINY),
            freedom=min(column.means.freedom for column in self.columns),
        )
