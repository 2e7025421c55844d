"""The mean score along s: in groups of rows with a simultaneous band, near one value, and changes
that GDP misses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from frhsic import _arrays
from frhsic._pictures import Line, card, curve_svg
from frhsic.formatting import percent
from frhsic.parity.sums import (
    TINY,
    Array,
    Cells,
    Integers,
    Rows,
    ScoreSums,
    Sums,
    groups_for,
    levels,
    one_column,
    rows_of,
    skewed_reach,
    weighted_mean,
)


@dataclass(frozen=True, eq=False)
class ParityCurve:
    r"""Mean scores of groups of rows along s.

    Attributes
    ----------
    at
        Median of s in each group.
    start, end
        Smallest and largest s of each group. No value of s is in two groups.
    mean
        Mean score of each group.
    lower, upper
        *Simultaneous* band: with the stated confidence it holds the means :math:`E[f | start \le S
        \le end]` of all groups at once.
    rows
        Number of rows of each group.
    overall
        The overall mean score.
    confidence, n
        Confidence of the band, and the number of rows.
    """

    at: Array
    start: Array
    end: Array
    mean: Array
    lower: Array
    upper: Array
    rows: Array
    overall: float
    confidence: float
    n: int

    def __repr__(self) -> str:
        return (
            f"ParityCurve(groups={len(self.at)}, overall={self.overall:.4g}, n={self.n},"
            f" confidence={self.confidence:g})"
        )

    def _repr_html_(self) -> str:
        line = Line(
            "after",
            *(part.tolist() for part in (self.at, self.mean, self.lower, self.upper)),
        )
        band = f"{percent(self.confidence)} band, {self.n:,} rows"
        return card([f"mean score along s, {band}"], curve_svg(line, self.overall, ("s", "mean")))


def gdp_curve(
    scores: Any,
    s: Any,
    *,
    bins: int | None = None,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
) -> ParityCurve:
    r"""Mean score of groups of rows along s, with a band that holds all of them at once.

    The means are equal, up to noise, when the mean score does not depend on s. Use them to see at
    which values of s scores are too high or too low; :func:`gdp` summarizes them in one number.

    Parameters
    ----------
    scores
        One column. Call it once for each class if there are several.
    bins
        Largest number of groups, of about equal counts. None is one for each hundred rows, from 5
        to 40. If s has no more values than that, each value with five or more rows is a group.
    s, where, sample_weight, groups, confidence
        As in :func:`gdp`.

    Notes
    -----
    The ends are those of Student's t with a correction for the skewness of the scores in all groups
    together (Johnson, 1978; Hall, 1992), or those of Clopper and Pearson (1934) for 0/1 decisions,
    at the confidence :math:`(1 - \alpha)^{1/G}` for G groups (Šidák). Where scores have heavy
    tails, a group borrows from the variance of all groups. Means of groups have no bias of
    smoothing.

    Examples
    --------
    >>> curve = gdp_curve([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10)
    >>> curve.at, curve.mean.round(3), curve.rows
    (array([1., 9.]), array([0.1, 0.9]), array([30., 30.]))
    """
    if bins is not None:
        _arrays.require_integer(bins, "bins", 2)
    rows = one_column(rows_of(scores, s, where, sample_weight, groups))
    cells = Cells.of_rows(rows, bins)
    return curve_of_sums(cells.sums_of(rows)[0], cells, confidence)


def curve_of_sums(sums: ScoreSums, cells: Cells, confidence: float) -> ParityCurve:
    """:func:`gdp_curve` of rows that are known by their sums."""
    _arrays.require_fraction(confidence, "confidence")
    groups, overall = sums.over(cells.groups), sums.mean
    mean, lower, upper = group_ends(groups, confidence ** (1 / len(groups.counts)))
    rows = np.add.reduceat(sums.rows, cells.groups)
    return ParityCurve(
        at=cells.medians,
        start=np.minimum.reduceat(sums.low, cells.groups),
        end=np.maximum.reduceat(sums.high, cells.groups),
        mean=overall + mean,
        lower=overall + lower,
        upper=overall + upper,
        rows=rows.astype(np.float64),
        overall=overall,
        confidence=confidence,
        n=int(rows.sum()),
    )


def group_ends(sums: Sums, confidence: float) -> tuple[Array, Array, Array]:
    """Return the mean of each group, and the ends of its interval at a confidence for each.

    0/1 decisions get the ends of Clopper and Pearson (1934), where rows of a cluster count as one.
    Other scores get those of Student's t, corrected for the skewness of all groups together
    (Johnson, 1978; Hall, 1992). Where scores have heavy tails, the variance of a group is no less
    than its mean with that of all groups, each weighted by its degrees of freedom; those of the
    latter are fewer, the more the variances differ between groups.
    """
    tail, weight = (1 - confidence) / 2, sums.counts
    mean = sums.powers[0, 1] / weight
    count = weight**2 / sums.own_squares(0)
    if sums.decisions:
        low, high = sums.ends
        size = high - low
        share = np.clip((mean - low) / size, 0, 1)
        below = np.where(
            share > 0,
            betaincinv(np.maximum(count * share, TINY), count * (1 - share) + 1, tail),
            0,
        )
        above = np.where(
            share < 1,
            betaincinv(count * share + 1, np.maximum(count * (1 - share), TINY), 1 - tail),
            1,
        )
        return mean, low + size * below, low + size * above
    squares, cubes, fourths = sums.residuals(mean)
    several = count > 1 + 1e-9
    rest = np.where(several, count - 1, 1)
    variance = squares / weight**2 * count * count / rest  # of one row
    spread = float(squares.sum())
    pooled = (
        float(weight @ np.where(several, variance, 0) / weight[several].sum())
        if several.any()
        else 0.0
    )
    skew = tails = 0.0
    if spread > 0:
        skew = float(cubes.sum()) / spread**1.5 * math.sqrt(float(count.sum()))
        tails = max(float(fourths.sum()) / spread**2 * float(count.sum()) - 3, 0.0)
    quantile, skewness = stdtrit(rest, 1 - tail), skew / np.sqrt(count)
    borrowed: Array = np.zeros(len(count))
    if tails > 0 and several.sum() > 1:
        freedom = 2 * count / (tails + 2)
        excess = float(variance[several].var() / pooled**2 - (2 / freedom[several]).mean())
        prior = min(2 / max(excess, TINY), 1e3)
        borrowed = prior / (freedom + prior)
        variance = np.maximum(variance, variance + borrowed * (pooled - variance))
    error = np.sqrt(variance / count)
    below, above = skewed_reach(error, skewness, quantile)
    # a variance that is not the group's own does not grow with its mean, whose skewness then counts
    # itself
    more = error * borrowed * skewness * (quantile**2 - 1) / 6
    below, above = below + np.maximum(more, 0), above + np.maximum(-more, 0)
    return mean, np.where(several, mean - below, -np.inf), np.where(several, mean + above, np.inf)


@dataclass(frozen=True)
class LocalMean:
    r"""Mean score of the rows nearest to one value of s, less the overall mean.

    Attributes
    ----------
    at
        The value of s.
    start, end
        Smallest and largest s of the rows that count as near.
    value
        Mean score of these rows less the overall mean score.
    interval
        Confidence interval of :math:`E[f | start \le S \le end] - E f`; slightly conservative.
    rows
        Number of these rows.
    confidence
        Confidence of the interval.
    """

    at: float
    start: float
    end: float
    value: float
    interval: tuple[float, float]
    rows: int
    confidence: float

    def __float__(self) -> float:
        return self.value


def local_mean(
    scores: Any,
    s: Any,
    at: float,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
) -> LocalMean:
    """Mean score of the rows nearest to a value of s, less the overall mean score.

    Zero in the population when the mean score does not depend on s. As many rows count as near as a
    group of :func:`gdp_curve` has, half of them on either side; rows with equal s are not
    separated.

    Parameters
    ----------
    at
        A value of s, within its range.
    scores, s, where, sample_weight, groups, confidence
        As in :func:`gdp_curve`.

    Examples
    --------
    >>> near = local_mean(
    ...     [0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10, 9.0
    ... )
    >>> round(near.value, 6), near.rows
    (0.4, 30)
    """
    _arrays.require_fraction(confidence, "confidence")
    rows = one_column(rows_of(scores, s, where, sample_weight, groups))
    n, values = len(rows.s), rows.s
    if not values[0] <= at <= values[-1]:
        raise ValueError(
            f"at is {at}; s lies between {values[0]:g} and {values[-1]:g}. Pass a value inside."
        )
    size = n / groups_for(n)
    left, right = (
        int(i) for i in (np.searchsorted(values, at), np.searchsorted(values, at, side="right"))
    )
    missing = max(size - (right - left), 0) / 2
    low = values[max(int(left - missing), 0)]
    high = values[min(int(np.ceil(right + missing)), n) - 1]
    first, last = (
        int(i) for i in (np.searchsorted(values, low), np.searchsorted(values, high, side="right"))
    )
    starts = np.unique([i for i in (0, first, last) if i < n])
    parts = np.arange(len(starts))
    sums = Cells(values[starts], parts, parts, values[starts]).sums_of(rows)[0].over(parts)
    inside = int(np.searchsorted(starts, first))
    mean, lower, upper = (float(part[inside]) for part in group_ends(sums, confidence))
    # the two means are positively correlated, so adding the squares of their errors is conservative
    _, whole_lower, whole_upper = (
        float(part[0]) for part in group_ends(sums.joined(np.zeros(1, np.int64)), confidence)
    )
    return LocalMean(
        at=float(at),
        start=float(low),
        end=float(high),
        value=mean,
        interval=(
            mean - math.hypot(mean - lower, whole_upper),
            mean + math.hypot(upper - mean, whole_lower),
        ),
        rows=last - first,
        confidence=confidence,
    )


LEAST_ROWS = 8
FEW_ROWS = 250
"""Rows below which an oscillation of the mean between neighbouring rows need not show."""


@dataclass(frozen=True)
class CorrelationRatio:
    """Share of the variance of the scores that s explains. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The estimate; below zero it is set to zero.
    interval
        Confidence interval for the share in the population.
    standard_error
        Standard error of the value.
    trusted
        False where most values of s occur once and there are fewer than 250 rows: a mean that
        oscillates between neighbouring rows would not show, and the interval would miss it.
    n, confidence
        Number of rows, and the confidence of the interval.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    trusted: bool
    n: int
    confidence: float

    def __float__(self) -> float:
        return self.value


def correlation_ratio(
    scores: Any, s: Any, *, where: Any = None, sample_weight: Any = None, confidence: float = 0.95
) -> CorrelationRatio:
    r"""Share of the variance of the scores that s explains, :math:`\mathrm{Var}(E[f | S]) /
    \mathrm{Var} f`.

    Zero exactly when the mean score does not depend on s, one when the score is a function of s. It
    is the square of the largest correlation of the score with any function of s. It needs no
    bandwidth and sees a mean that oscillates with s, which :func:`gdp` at its resolution does not;
    its standard error is larger, about :math:`1 / \sqrt n`.

    Parameters
    ----------
    scores
        One column.
    s, where, sample_weight, confidence
        As in :func:`gdp`. Increasing maps of s do not change the value.

    Returns
    -------
    CorrelationRatio
        The share as `value` and ``float(...)``, its `standard_error` and `interval`. `trusted` is
        False where most values of s occur once and there are fewer than 250 rows: the interval
        would miss a mean that oscillates between neighbouring rows.

    Notes
    -----
    The variance within a value of s is that of its rows. Where a value has one row, it is estimated
    by differences from the rows next to it, :math:`(f_{(i)} - f_{(i+1)})^2 / 2` (von Neumann). The
    interval is that of the normal distribution; neighbouring differences are correlated, and its
    standard error allows for it. A mean that moves between neighbours lowers the estimate; the
    upper end is raised by half of what rows two apart differ more than neighbours. An oscillation
    with fewer than about ten rows is not covered. If most values of s are repeated, the variance of
    the estimate falls with the share, and the interval is solved for it.

    References
    ----------
    von Neumann (1941), *Distribution of the ratio of the mean square successive difference to the
    variance*. Rice (1984), *Bandwidth choice for nonparametric regression*.

    Examples
    --------
    A score that oscillates forty times along s is a function of s.

    >>> s = np.linspace(0, 1, 2000)
    >>> round(float(correlation_ratio(np.cos(80 * np.pi * s), s)), 2)
    0.99
    """
    _arrays.require_fraction(confidence, "confidence")
    rows = one_column(rows_of(scores, s, where, sample_weight))
    _arrays.require_rows(len(rows.s), LEAST_ROWS, "the share of variance that s explains")
    weights = rows.weights
    f = rows.scores[:, 0] - weighted_mean(weights, rows.scores[:, 0])
    n = len(f)
    if not (f != f[0]).any():
        raise ValueError("scores are constant: they have no variance that s could explain.")
    within, starts = _within(rows, f)
    factor = rows.effective / (rows.effective - 1)
    square = factor * f**2
    rest, variance = float(weighted_mean(weights, within)), float(weighted_mean(weights, square))
    value = max(1 - rest / variance, 0.0)  # an estimate below zero says no more than one of zero
    terms = weights * (within - (rest / variance) * square) / variance
    squared = terms**2
    # the degrees of freedom of the variance of these terms (Satterthwaite), few where few rows
    # carry it
    carried = float(squared @ squared) / max(float(squared.sum()) ** 2, TINY) - 1 / n
    freedom = min(rows.effective / 4, 2 / max(carried, TINY))
    z = float(stdtrit(max(freedom, 1), (1 + confidence) / 2))
    alone = len(starts) > n / 2
    if alone:
        error = _error_of_differences(terms)
        squares = np.diff(f) ** 2 / 2
        products = float(squares[2:] @ squares[:-2]) / (
            n * variance**2
        )  # of the noise of neighbours
        error = max(error, math.sqrt(products / rows.effective))
        # a mean that moves between neighbours moves three times as much, squared, between rows two
        # apart
        moved = float(np.mean((f[2:] - f[:-2]) ** 2) / 2 - squares.mean()) / 2
        low, high = value - z * error, value + z * error + max(moved, 0.0) / variance
    else:
        # the variance is about a·share + b: 4/n times the share, and what is left when s has no
        # effect
        b = _variance_without_effect(weights, within, starts) / variance**2
        a = (float(terms @ terms) / n**2 + (4 / n) ** 2) / (value + 4 / n)
        error = math.sqrt(a * value + b)
        middle, root = value + z**2 * a / 2, z * math.sqrt(error**2 + z**2 * a**2 / 4)
        low, high = middle - root, middle + root
    trusted = not alone or rows.effective >= FEW_ROWS
    return CorrelationRatio(value, (max(low, 0.0), min(high, 1.0)), error, trusted, n, confidence)


def _variance_without_effect(weights: Array, within: Array, starts: Integers) -> float:
    r"""Return the variance of the estimated variance of means that are all equal, for normal
    scores.

    It is :math:`\frac{2}{n^2} \sum_l \frac{w_l^2}{n_l (n_l - 1)} \sigma_l^4` over values of s of
    weight :math:`w_l` with :math:`n_l \ge 2` (effective) rows. A value with one row adds at most
    :math:`w_l^2 \sigma^4 / n^2`, the share of a difference between neighbours.
    """
    total = np.add.reduceat(weights, starts)
    sizes = total**2 / np.add.reduceat(weights**2, starts)
    spread = np.add.reduceat(weights * within, starts) / total
    several = sizes > 1 + 1e-9
    freedom = np.where(several, sizes - 1, 1)
    fourth = spread**2 * freedom / (freedom + 2)  # without bias for normal scores
    mean = float(weights @ within / weights.sum())
    excess = 2 * float((fourth * total**2 / (sizes * freedom))[several].sum())
    excess += mean**2 * float((total[~several] ** 2).sum())
    return excess / len(weights) ** 2


def _error_of_differences(terms: Array) -> float:
    """Return the standard error of a mean of terms sorted by s, which share rows with their
    neighbours (lags 1, 2).

    What lag 3 has too is a change of the mean of the terms along s, not noise that is shared.
    """
    n = len(terms)
    lags = [float(terms[lag:] @ terms[: n - lag]) for lag in range(4)]
    return math.sqrt(max(lags[0] + 2 * (lags[1] + lags[2] - 2 * lags[3]), 0.1 * lags[0])) / n


def _within(rows: Rows, f: Array) -> tuple[Array, Integers]:
    """Return an unbiased estimate of the variance of f given s for each row, and the first row of
    each value of s.
    """
    weights, starts = rows.weights, levels(rows.s)
    sizes = np.diff(np.append(starts, len(f)))
    total = np.add.reduceat(weights, starts)
    effective = total**2 / np.add.reduceat(weights**2, starts)
    mean = np.add.reduceat(weights * f, starts) / total
    several = effective > 1 + 1e-9
    factor = np.where(several, effective / np.where(several, effective - 1, 1), 0)
    within = (f - np.repeat(mean, sizes)) ** 2 * np.repeat(factor, sizes)
    step = np.diff(mean) ** 2
    to_next = np.append(step / (1 + 1 / effective[1:]), np.nan)
    to_last = np.insert(step / (1 + 1 / effective[:-1]), 0, np.nan)
    single = ~np.repeat(several, sizes)
    within[single] = np.nanmean([to_next, to_last], axis=0)[~several]
    return within, starts
