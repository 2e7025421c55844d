"""Generalized demographic parity (GDP) and the gap of ranks, with an interval and a test that s
does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from frhsic import _arrays
from frhsic.parity.local_means import (
    FEW_ROWS,
    MISSED,
    NEAR,
    NODES,
    SOFTNESS,
    TINY,
    Array,
    Cells,
    Rows,
    Smoother,
    Sums,
    group_levels,
    lost_to_wrong_signs,
    noise_like,
    one_column,
    rows_of,
    skewed_reach,
)

RESAMPLES = 999
ENOUGH = 199
"""Resamples that the variance of a gap needs; more serve its p-value."""

ROWS_OF_LEVELS = 4
"""Rows of a value of s, on average, from which the means of the values say what the local means
miss of them.
"""

FEW = 8
"""Rows of the rarer decision, or clusters, below which the upper end of a gap is the largest that
their rate allows.
"""

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
        Largest bandwidth on the ranks of s, as a share of the population.
    bound
        Upper bound of the gap beside the interval, :math:`\sqrt{\mathrm{Var}\,E[f | G]}` at its
        upper end; NaN without resamples. It assumes nothing of the shape of the conditional mean,
        but is wider than the interval.
    bound_resolution
        What the bound assumes: 0 if G is s, so that it holds for every shape; otherwise the share
        of the rows in a group G of neighbouring values of s, and the bound is for the gap between
        such groups.
    trusted
        Whether the interval can be used. False where scores vary between the groups G by more than
        the local means show and the interval allows for, or where fewer than 250 rows could not
        show it: the mean then oscillates, or may oscillate, too fast for the interval, and the
        bound counts.
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
    bound: float
    bound_resolution: float
    trusted: bool
    confidence: float
    seed: int

    def __float__(self) -> float:
        return self.value


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
        One fixed bandwidth on the ranks of s, a share between 0 and 1. None begins with
        :math:`n^{-1/4} / 2` for n (effective) rows or clusters, 0.13 for 200 rows and 0.05 for
        10,000, and refines it where the scores show more.
    confidence
        Confidence of the interval.
    resamples
        Number of resamples; 0 gives the value alone.
    random_state
        Seed of the resamples. The value does not depend on it.

    Notes
    -----
    The sign is estimated from the other rows, by a local mean on mid-ranks of s, and replaced by
    the soft sign :math:`2\Phi(2x) - 1`, where x is the estimated gap at the row in standard errors.
    The local mean begins with a Nadaraya–Watson mean at the stated resolution. It moves to means at
    an eighth of that bandwidth, and so on down to the means of single values of s with five rows or
    more, as far as these differ from it by more than their noise, nearby or over all of s (James
    and Stein). So levels of a discrete s are not smoothed together where their means differ, and
    jumps are found; a smooth mean is smoothed. More than 256 distinct values of s are replaced by
    as many groups of equal size, and the upper end is raised by what a mean that bends within them
    loses.

    The standard error adds to that of a mean of :math:`g (f - \bar f)` what resamples find where
    signs are uncertain. In expectation a wrong sign can only lower the estimate, so the upper end
    of the interval is raised by a bound on that loss, by what finer means show beyond 1.5 standard
    deviations of their noise, and where values of s have four rows or more on average, by what
    their means show beyond the local means. The interval is conservative near independence. Ends on
    the side of the longer tail of skewed scores are moved out (Hall, 1992). If fewer than eight 0/1
    decisions, or clusters, are of one kind, the upper end is the largest gap that their rate
    allows, :math:`2\mu(1 - \mu)` at the upper end of Clopper and Pearson (1934). A mean that
    oscillates faster than the local means resolve is not covered: `trusted` of the result is then
    False wherever it shows, and `bound` is the number to use. With several columns the error
    probability is divided among them (Bonferroni).

    The p-value compares with resamples whose mean does not move with s and whose sums over each
    value of s have the spread and skewness of the scores there (with clusters, random multiples of
    their sums). Beyond the resamples an exponential tail is fitted, so that every level can be
    reached.

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
    rows: Rows, resolution: float | None = None, smoother: Smoother | None = None
) -> list[ColumnGap]:
    """Return the gap of each column of scores; a smoother of the same rows can be used again."""
    cells = Cells.of_rows(rows)
    every = [sums.over(cells.nodes) for sums in cells.sums_of(rows)]
    smoother = Smoother(every[0], resolution) if smoother is None else smoother
    # columns of clusters share the multipliers of the clusters, others draw their own noise
    return [
        ColumnGap(sums, smoother, number * (rows.clusters is None))
        for number, sums in enumerate(every)
    ]


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


class Ends(NamedTuple):
    """The interval of one column, its standard error, the bound beside it, and whether the two
    agree.
    """

    low: float = math.nan
    high: float = math.nan
    error: float = math.nan
    bound: float = math.nan
    trusted: bool = True


def largest_gap(columns: Sequence[ColumnGap | RankGap], options: GapOptions) -> ParityResult:
    """Return the largest gap of some columns with its interval and its test."""
    tail = (1 - options.confidence) / 2 / len(columns)
    largest = int(np.argmax([column.value for column in columns]))
    value, expected, pvalue = columns[largest].value, math.nan, math.nan
    every = [column.ends(options, tail) if options.resamples else Ends() for column in columns]
    if options.resamples and options.test:
        null = np.max([column.null(options) for column in columns], axis=0)
        slack = 100 * float(np.finfo(np.float64).eps) * max(column.magnitude for column in columns)
        expected = float(np.maximum(null, 0).mean())
        pvalue = tail_share(null, value - slack)
    return ParityResult(
        value=max(value, 0.0),
        interval=(max(ends.low for ends in every), max(ends.high for ends in every)),
        standard_error=every[largest].error,
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(max(column.value, 0.0) for column in columns),
        n=columns[0].n,
        resolution=columns[largest].resolution,
        bound=max(ends.bound for ends in every),
        bound_resolution=columns[largest].bound_resolution,
        trusted=all(ends.trusted for ends in every),
        confidence=options.confidence,
        seed=options.seed,
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


class ColumnGap:
    """The gap of one column of centred scores, in units of the score or of its standard
    deviation.
    """

    def __init__(self, sums: Sums, smoother: Smoother, number: int = 0) -> None:
        self.sums, self.number, self.n = sums, number, round(sums.n)
        self.smoother = smoother = smoother.with_clusters(sums)
        self.resolution = smoother.resolution
        rows = sums.counts**2 / sums.own_squares(0)
        self.groups = group_levels(np.maximum(np.rint(rows), 1).astype(np.int64), 2 * NODES, 2)
        self.bound_resolution = (
            0.0 if len(self.groups) == len(rows) < NODES else 1 / len(self.groups)
        )
        totals, squares = sums.powers[0, 1][:, None], sums.own_squares(1)[:, None]
        curve = smoother.curve(totals, squares)
        self.gap = float(smoother.signed(curve, totals, squares)[0])
        self.mean, self.error, self.hidden = curve.mean[:, 0], curve.error[:, 0], curve.hidden[:, 0]
        self.own = curve.own[:, 0]
        self.soft = 2 * ndtr(self.mean / np.maximum(SOFTNESS * self.error, TINY)) - 1
        self.standardize, self.scale = False, 1.0
        self.value, self.magnitude = self.gap, max(-sums.ends[0], sums.ends[1])
        self.drawn: dict[str, Array] = {}

    def standardized(self) -> ColumnGap:
        """Return the gap in standard deviations of the scores; resamples that were drawn are used
        again.
        """
        scaled = copy(self)
        scaled.standardize, scaled.scale = True, math.sqrt(self.sums.variance)
        scaled.value, scaled.magnitude = self.gap / scaled.scale, self.magnitude / scaled.scale
        return scaled

    def null(self, options: GapOptions) -> Array:
        """Return values of resamples whose mean does not depend on s."""
        if "null" not in self.drawn:
            center = self.precise_mean()
            drawn = self._noise(center, options.resamples, options.seed)
            values = self.smoother.resampled(self.sums, np.zeros(len(center)), center, drawn)
            # the spread is an estimate, which a few large scores may decide: tails are those of
            # Student's t, with the n degrees of freedom of normal scores, and fewer for heavier
            # tails
            squares, _, fourths = self.sums.residuals(center)
            degrees = max(3 * squares.sum() ** 2 / max(fourths.sum(), TINY), 1.0)
            chance = np.random.default_rng((options.seed, self.number, 1)).chisquare(
                degrees, options.resamples
            )
            self.drawn["null"] = values * np.sqrt(degrees / chance)
        return self.drawn["null"] / self.scale

    def _noise(self, at: Array, resamples: int, seed: int) -> Array:
        size = len(at) if self.sums.clusters is None else self.sums.clusters[0].shape[1]
        return noise_like(
            self.sums,
            at,
            np.random.default_rng((seed, self.number)).standard_normal((size, resamples)),
        )

    def precise_mean(self) -> Array:
        """Return, at every node, the mean that weights rows by the inverse of the spread near
        them.
        """
        sums = self.sums
        spread = self.smoother.kernels[0] @ sums.powers[0, 2] / self.smoother.totals[0]
        weights = (
            1 / np.maximum(spread, 1e-12 * spread.max())
            if spread.max() > 0
            else np.ones(len(spread))
        )
        return np.full(len(spread), weights @ sums.powers[0, 1] / (weights @ sums.counts))

    def ends(self, options: GapOptions, tail: float) -> Ends:
        """Return the interval at a probability of error on each side."""
        sums, counts = self.sums, self.sums.counts
        slope = self.soft - counts @ self.soft / sums.n
        extra, lost = self.uncertain_signs(options)
        quantile = student(tail, sums.effective)
        variance, third = sums.influence(np.full(len(counts), -self.gap), slope)
        error = math.sqrt(variance + extra)
        below, above = skewed_reach(error, third / max(error**3, TINY), quantile)
        value = max(self.gap, 0.0)  # the gap itself is never negative
        low = max(self.gap - below, 0.0)
        if self.standardize:
            # the standard deviation is estimated too, but where the gap may be zero, its ratio may
            # be zero as well
            variance, third = sums.influence(
                np.full(len(counts), -self.gap / 2), slope, -self.gap / (2 * sums.variance)
            )
            error = math.sqrt(variance + extra)
            below, above = skewed_reach(error, third / max(error**3, TINY), quantile)
            low = max(self.gap - below, 0.0) if low > 0 else 0.0
        bound, missed, doubtful = self.beside(tail)
        high = value + above + lost + missed + self.within_nodes()
        if sums.decisions:
            most, few = rarity(sums, tail)
            low, high, bound = (
                (0.0, max(high, most), most) if few else (low, high, min(bound, most))
            )
        if self.standardize:
            low, high, bound = (min(end / self.scale, 1.0) for end in (low, high, bound))
            error, doubtful, value = (number / self.scale for number in (error, doubtful, value))
        return Ends(float(low), float(high), error, bound, doubtful <= (high - value) / 2)

    def beside(self, tail: float) -> tuple[float, float, float]:
        r"""Return an upper bound of the gap for every shape, and two numbers for what the local
        means miss of it.

        The bound is :math:`\sqrt{\mathrm{Var}\,E[f | G]} \ge E|E[f | G] - E f|` for values of s, or
        for groups G of two rows or more where values are rarer. Means that oscillate about the
        local means with a variance v add about :math:`E(\sqrt v - |m|)_+` to the gap. The second
        number, which raises the upper end, is that where values of s have several rows each, and
        else 0: the estimate of v less 1.5 standard errors, or with few rows, which do not show an
        oscillation, plus half of one. The third, which decides on trust, has three of them there.
        """
        starts = self.groups
        sums = self.sums.joined(starts)
        counts, n = sums.counts, sums.n
        mean, own, ones = sums.powers[0, 1] / counts, sums.own_squares(1), sums.own_squares(0)
        pairs = np.maximum(counts**2 - ones, 0)
        usable = pairs > 1e-6 * counts**2
        weights = np.where(usable, counts, 0) / max(float(counts[usable].sum()), TINY)
        pairs = np.where(usable, pairs, 1)
        between = float(weights @ ((sums.powers[0, 1] ** 2 - own) / pairs))
        noise = np.maximum(own - mean**2 * ones, 0) * counts**2 / pairs  # of the sum over a group
        chance = 2 * float((weights**2 * (noise / counts**2) ** 2).sum())
        # the variance of the estimate grows with what it estimates, so the upper end is solved for
        # it
        z, value, unit = (
            float(ndtri(1 - tail)),
            max(between, 0.0),
            4 * sums.variance / sums.effective,
        )
        # noise of the means themselves adds twice the variance by chance to that of the influence
        linear = max(sums.influence(-(mean**2) - between, 2 * mean)[0] - 2 * chance, 0.0)
        growth = z * (linear + unit**2) / max(value + unit, TINY)
        high = value + z * growth / 2 + z * math.sqrt(growth * value / z + chance + growth**2 / 4)
        bound = math.sqrt(min(high, sums.variance * n / max(n - 1, 1)))

        def joined(values: Array) -> Array:
            return np.add.reduceat(self.sums.counts * values, starts) / counts

        smooth, share = joined(self.mean), joined(self.own) * counts
        expected = np.maximum(noise / counts**2 * (1 - 2 * share) + joined(self.error**2), 0)
        missed = float(weights @ ((mean - smooth) ** 2 - expected))
        error = math.sqrt(2 * float((weights**2 * expected**2).sum()))
        few = sums.effective < FEW_ROWS

        def unseen(variance: float) -> float:
            size = math.sqrt(max(variance, 0.0)) - np.abs(self.mean)
            return float(self.sums.counts @ np.maximum(size, 0)) / n

        repeated = sums.effective >= ROWS_OF_LEVELS * len(self.mean)
        levels = unseen(missed + (0.5 if few else -MISSED) * error) if repeated else 0.0
        return bound, levels, unseen(missed + (3 if few else -3) * error)

    def within_nodes(self) -> float:
        """Return what a curve loses where it bends within nodes of several values: its second
        differences / 24.
        """
        return float(np.abs(np.diff(self.mean, 2)).mean()) / 24 if len(self.mean) >= NODES else 0.0

    def uncertain_signs(self, options: GapOptions) -> tuple[float, float]:
        """Return what uncertain signs add to the variance of the gap, and a bound on what they take
        away from it.
        """
        sums, counts = self.sums, self.sums.counts
        if "extra" not in self.drawn:
            near = np.abs(self.mean) <= NEAR * self.error
            fixed = np.where(near, self.soft, np.sign(self.mean))
            drawn = self._noise(self.mean, min(options.resamples, ENOUGH), options.seed)
            resampled = self.smoother.resampled(
                sums, np.where(near, 0, self.mean), self.mean, drawn
            )
            linear = (fixed - counts @ fixed / sums.n) @ drawn / sums.n
            self.drawn["extra"] = np.stack([resampled, linear])
        resampled, linear = self.drawn["extra"]
        extra = max(float(resampled.var() - linear.var()), 0)
        return extra, lost_to_wrong_signs(counts, self.mean, np.sqrt(self.error**2 + self.hidden))


def student(tail: float, effective: float) -> float:
    """Return the quantile of Student's t."""
    return float(stdtrit(max(effective - 1, 1), 1 - tail))


def rarity(sums: Sums, tail: float) -> tuple[float, bool]:
    """Return the largest gap 2μ(1 - μ) of 0/1 decisions, μ at its upper end, and whether decisions
    of a kind are few.

    The end is that of Clopper and Pearson (1934); rows of a cluster count as one.
    """
    low, high = sums.ends
    size = high - low
    rare = min(-low, high) / size * sums.effective
    rate = float(betaincinv(rare + 1, sums.effective - rare, 1 - tail))
    return size * (0.5 if rate > 0.5 else 2 * rate * (1 - rate)), rare < FEW


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

    The columns share their smoother and their random numbers, so that many scores of the same rows
    cost little more than one; `expected_under_independence` and `pvalue` are NaN.
    """
    rows = rows_of(scores, s, None, sample_weight, groups)
    cells = Cells.of_rows(rows)
    smoother = Smoother(
        cells.sums_of(replace(rows, scores=rows.scores[:, :1]))[0].over(cells.nodes)
    )
    options = GapOptions(confidence, resamples, _arrays.seed_of(random_state), test=False)
    each = (replace(rows, scores=column[:, None]) for column in rows.scores.T)
    columns = [
        RankGap(one, smoother) if ranks else columns_of(one, None, smoother)[0] for one in each
    ]
    return [largest_gap([column], options) for column in columns]


class RankGap:
    """The mean gap of the decisions at nine deciles."""

    def __init__(self, rows: Rows, smoother: Smoother | None = None) -> None:
        score, weights = rows.scores[:, 0], rows.weights
        order = np.argsort(score, kind="stable")
        below = np.cumsum(weights[order])
        self.rank = np.empty(len(order))
        self.rank[order] = below / below[-1]
        deciles = score[order][np.searchsorted(below, DECILES * below[-1] * (1 - 1e-12))]
        self.thresholds, which = np.unique(deciles, return_inverse=True)
        self.rows = replace(rows, scores=(score[:, None] > self.thresholds).astype(np.float64))
        self.at = score[:, None] == self.thresholds
        self.columns = columns_of(self.rows, None, smoother)
        self.shares = np.bincount(which) / 9
        self.gaps = np.array([column.value for column in self.columns])[which]
        self.n, self.value, self.magnitude = len(rows.s), float(self.gaps.mean()), 1.0
        self.resolution, self.bound_resolution = (
            self.columns[0].resolution,
            self.columns[0].bound_resolution,
        )

    def null(self, options: GapOptions) -> Array:
        """Return values of resamples in which no decision depends on s."""
        if self.rows.clusters is not None:
            draws = [column.null(options) for column in self.columns]
        else:
            noise = self._normal_noise(options)
            flat = np.zeros(noise.shape[1])
            draws = [
                column.smoother.resampled(column.sums, flat, flat, drawn, column.smoother.alone)
                for column, drawn in zip(self.columns, noise)
            ]
        return np.asarray(self.shares @ np.stack(draws))

    def _normal_noise(self, options: GapOptions) -> Array:
        """Draw sums over nodes for all decisions together, of shape (decisions, nodes, resamples).

        Rows above the higher of two thresholds are above the lower one too: the product of both
        decisions is the first.
        """
        mean = np.array([-column.sums.ends[0] for column in self.columns])
        above = np.stack(
            [c.sums.powers[1, 1] + m * c.sums.powers[1, 0] for c, m in zip(self.columns, mean)],
            axis=1,
        )
        later = np.maximum.outer(np.arange(len(mean)), np.arange(len(mean)))
        weights = self.columns[0].sums.powers[1, 0][:, None, None]
        cross = above[:, :, None] * mean
        covariance = (
            above[:, later] - cross - cross.transpose(0, 2, 1) + weights * np.outer(mean, mean)
        )
        values, vectors = np.linalg.eigh(covariance * self.columns[0].sums.bessel)
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        normal = np.random.default_rng([options.seed, 1]).standard_normal(
            (*root.shape[:2], options.resamples)
        )
        return np.asarray((root @ normal).transpose(1, 0, 2))

    def ends(self, options: GapOptions, tail: float) -> Ends:
        """Return the interval at a probability of error on each side."""
        rows, weights, n = self.rows, self.rows.weights, float(self.rows.weights.sum())
        cells = Cells.of_rows(rows)
        node = np.searchsorted(cells.nodes, cells.place(rows.s), side="right") - 1
        influence, extra, beside = np.zeros(len(weights)), 0.0, np.zeros(4)
        for j, (share, column) in enumerate(zip(self.shares, self.columns)):
            at, soft = self.at[:, j], column.soft[node]
            # a decile inside a large tie does not move
            tied = float(weights[at].sum()) / n > NEAR_DECILE
            near = weights * (
                1.0 if tied else np.abs(self.rank - self.rank[at].mean()) <= NEAR_DECILE
            )
            decided = rows.scores[:, j] + column.sums.ends[0]
            influence += share * ((soft - near @ soft / near.sum()) * decided - column.gap)
            own_extra, own_lost = column.uncertain_signs(options)
            extra += share * math.sqrt(own_extra)
            beside += share * np.array(
                [own_lost + column.within_nodes(), *column.beside(tail / len(self.columns))]
            )
        sums: Array = weights * influence / n
        if rows.clusters is not None:
            sums = np.bincount(rows.clusters, weights=sums).astype(np.float64)
        bessel = rows.effective / max(rows.effective - 1, 1)
        error = math.sqrt(bessel * float(sums @ sums) + extra**2)
        skewness = float((sums**3).sum()) / max(error**3, TINY)
        below, above = skewed_reach(error, skewness, student(tail, rows.effective))
        lost, bound, missed, doubtful = beside.tolist()
        value = max(self.value, 0.0)
        high = value + float(above) + lost + missed
        return Ends(
            max(self.value - float(below), 0.0), high, error, bound, doubtful <= (high - value) / 2
        )
