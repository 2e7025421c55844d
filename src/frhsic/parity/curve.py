"""The mean score along s: in groups of rows with a simultaneous band, and near one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from frhsic import _arrays
from frhsic._pictures import Line, card, curve_svg
from frhsic.formatting import percent
from frhsic.parity.interval import skewed_reach
from frhsic.parity.rows import Array, one_column, rows_of
from frhsic.parity.sums import (
    TINY,
    Cells,
    CenteredSums,
    ScoreSums,
    groups_for,
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
            self.at.tolist(),
            self.mean.tolist(),
            self.lower.tolist(),
            self.upper.tolist(),
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
    groups = sums.over(cells.groups)
    overall = sums.mean
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


def group_ends(sums: CenteredSums, confidence: float) -> tuple[Array, Array, Array]:
    """Return the mean of each group, and the ends of its interval at a confidence for each.

    Rows of a cluster count as one.
    """
    tail = (1 - confidence) / 2
    mean = sums.powers[0, 1] / sums.counts
    count = sums.counts**2 / sums.squared_weights
    if sums.decisions:
        return mean, *rate_ends(mean, count, sums.ends, tail)
    below, above = reaches(sums, mean, count, tail)
    return mean, mean - below, mean + above


def rate_ends(
    mean: Array, count: Array, ends: tuple[float, float], tail: float
) -> tuple[Array, Array]:
    """Return the ends of Clopper and Pearson (1934) for means of 0/1 decisions."""
    low, high = ends
    size = high - low
    share = np.clip((mean - low) / size, 0, 1)
    ones = count * share
    zeros = count * (1 - share)
    below = np.where(share > 0, betaincinv(np.maximum(ones, TINY), zeros + 1, tail), 0)
    above = np.where(share < 1, betaincinv(ones + 1, np.maximum(zeros, TINY), 1 - tail), 1)
    return low + size * below, low + size * above


def reaches(sums: CenteredSums, mean: Array, count: Array, tail: float) -> tuple[Array, Array]:
    """Return how far the ends of Student's t lie below and above the means of groups, corrected for
    the skewness of all groups together (Johnson, 1978; Hall, 1992); infinite for one row.

    Where scores have heavy tails, the variance of a group is no less than its mean with that of all
    groups, each weighted by its degrees of freedom; those of the latter are fewer, the more the
    variances differ between groups.
    """
    weight = sums.counts
    squares, cubes, fourths = sums.residuals(mean)
    several = count > 1 + 1e-9
    rest = np.where(several, count - 1, 1)
    variance = squares / weight**2 * count * count / rest  # of one row
    spread = float(squares.sum())
    skew = 0.0
    tails = 0.0
    if spread > 0:
        skew = float(cubes.sum()) / spread**1.5 * math.sqrt(float(count.sum()))
        tails = max(float(fourths.sum()) / spread**2 * float(count.sum()) - 3, 0.0)
    quantile = stdtrit(rest, 1 - tail)
    skewness = skew / np.sqrt(count)
    borrowed: Array = np.zeros(len(count))
    if tails > 0 and several.sum() > 1:
        pooled = float(weight @ np.where(several, variance, 0) / weight[several].sum())
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
    below = np.where(several, below + np.maximum(more, 0), np.inf)
    above = np.where(several, above + np.maximum(-more, 0), np.inf)
    return below, above


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
    values = rows.s
    n = len(values)
    if not values[0] <= at <= values[-1]:
        raise ValueError(
            f"at is {at}; s lies between {values[0]:g} and {values[-1]:g}. Pass a value inside."
        )
    left, right = _span(values, at, at)
    missing = max(n / groups_for(n) - (right - left), 0) / 2
    low = values[max(int(left - missing), 0)]
    high = values[min(int(np.ceil(right + missing)), n) - 1]
    first, last = _span(values, low, high)
    starts = np.unique([i for i in (0, first, last) if i < n])
    parts = np.arange(len(starts))
    sums = Cells(values[starts], parts, parts, values[starts]).sums_of(rows)[0].over(parts)
    inside = int(np.searchsorted(starts, first))
    mean, lower, upper = (float(part[inside]) for part in group_ends(sums, confidence))
    # the two means are positively correlated, so adding the squares of their errors is conservative
    everybody = sums.joined(np.zeros(1, np.int64))
    _, whole_lower, whole_upper = (float(part[0]) for part in group_ends(everybody, confidence))
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


def _span(values: Array, low: float, high: float) -> tuple[int, int]:
    """Return the first row that is at least `low`, and the first that is above `high`."""
    first = int(np.searchsorted(values, low))
    last = int(np.searchsorted(values, high, side="right"))
    return first, last
