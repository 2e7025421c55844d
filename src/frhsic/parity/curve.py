"""The mean score in bins along s, with a simultaneous band."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from frhsic import _arrays
from frhsic._pictures import Line, card, curve_svg
from frhsic.formatting import percent
from frhsic.parity.interval import skewed_reach
from frhsic.parity.local_means import BORROWED_ROWS, spread_trend
from frhsic.parity.rows import Array, Integers, check_rows, one_column
from frhsic.parity.sums import TINY, Cells, CenteredSums, ScoreSums, bin_levels

WIDE_WINDOWS = 5
"""Largest number of wide windows of a curve."""

MOST_VALUES = 20
"""Most values of s for which each value with enough rows has its own bin."""

LEAST_VALUE_ROWS = 30
"""Fewest rows with which such a value is not merged with its neighbor; audits call groups with
fewer rows unreliable.
"""

TREND_ROWS = 5
"""The prior weight against a trend in the spread is this multiple of the number of borrowed rows in
all bins.
"""

NEARBY = 10
"""The spread near a bin is computed over a tenth of all bins on each side, at least one. With a
single spread for all bins, an error of nine standard errors could be missed where scores hardly
vary.
"""


@dataclass(frozen=True, eq=False)
class ParityCurve:
    r"""Mean scores in bins along s.

    Attributes
    ----------
    at
        Median of s in each bin.
    start
        Smallest s of each bin.
    end
        Largest s of each bin. No value of s is in two bins.
    mean
        Mean score of each bin.
    lower
        Lower end of the *simultaneous* band: with the stated confidence, the band covers the means
        :math:`E[f | start \le S \le end]` of all bins at once.
    upper
        Upper end of the band.
    rows
        Number of rows in each bin.
    overall
        The overall mean score.
    confidence
        Confidence of the band.
    n
        Number of rows.

    Examples
    --------
    >>> age = np.repeat(np.arange(20.0, 60.0), 25)
    >>> curve = gdp_curve(age / 100, age, bins=2)
    >>> curve.start.tolist(), curve.end.tolist(), curve.mean.round(3).tolist()
    ([20.0, 40.0], [39.0, 59.0], [0.295, 0.495])
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
            f"ParityCurve(bins={len(self.at)}, overall={self.overall:.4g}, n={self.n},"
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
    r"""Mean score in bins along s, with a band that covers the means of all bins at once.

    The means are equal, up to noise, when the mean score does not depend on s. They show at which
    values of s scores are too high or too low; :func:`gdp` summarizes them in one number.

    Parameters
    ----------
    scores
        One column. With several classes, call the function once for each class.
    bins
        Largest number of bins, with about equal counts. None uses one bin for each hundred rows,
        from 5 to 40. If s has no more distinct values than this, each value with five or more rows
        is a bin; for None, if s has at most 20 values, each value with 30 or more rows.
    s, where, sample_weight, groups, confidence
        As in :func:`gdp`.

    Notes
    -----
    The ends come from Student's t with a correction for the skewness of the scores in all bins
    together (Johnson, 1978; Hall, 1992), or from Clopper and Pearson (1934) for 0/1 decisions, at
    the confidence :math:`(1 - \alpha)^{1/G}` for G bins (Šidák). If scores have heavy tails, the
    variance in a bin is combined with the variance in all bins, both relative to the spread nearby.
    The means of bins have no smoothing bias.

    Examples
    --------
    >>> curve = gdp_curve([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10)
    >>> curve.at, curve.mean.round(3), curve.rows
    (array([1., 9.]), array([0.1, 0.9]), array([30., 30.]))
    """
    if bins is not None:
        _arrays.require_integer(bins, "bins", 2)
    rows = one_column(check_rows(scores, s, where, sample_weight, groups))
    cells = Cells.from_rows(rows, bins)
    sums = cells.score_sums(rows, rows.scores[:, 0])
    if bins is None:
        cells = value_cells(cells, sums.rows)
    return curve_from_sums(sums, cells, confidence)


def curve_from_sums(
    sums: ScoreSums,
    cells: Cells,
    confidence: float,
    *,
    chances: ScoreSums | None = None,
    beside: int = 0,
) -> ParityCurve:
    """Return the result of :func:`gdp_curve`, computed from sums over rows.

    With `chances`, the sums contain 0/1 outcomes minus these chances. The band is wide enough to
    also cover `beside` other means that are reported with the curve.
    """
    _arrays.require_fraction(confidence, "confidence")
    bins = sums.group_sums(cells.bins)
    overall = sums.mean
    each = confidence ** (1 / (len(bins.counts) + beside))
    if chances is None:
        mean, lower, upper = bin_ends(bins, each)
    else:
        scored = chances.group_sums(cells.bins)
        scores = chances.mean + scored.powers[0, 1] / scored.counts
        mean, lower, upper = error_ends(bins, scores, overall, each)
    rows = np.add.reduceat(sums.rows, cells.bins, dtype=np.float64)
    return ParityCurve(
        at=cells.medians,
        start=np.minimum.reduceat(sums.low, cells.bins),
        end=np.maximum.reduceat(sums.high, cells.bins),
        mean=overall + mean,
        lower=overall + lower,
        upper=overall + upper,
        rows=rows,
        overall=overall,
        confidence=confidence,
        n=int(rows.sum()),
    )


def bin_ends(sums: CenteredSums, confidence: float) -> tuple[Array, Array, Array]:
    """Return the mean of each bin, and the ends of its interval, each with the given confidence.

    The rows of a cluster count as one row.
    """
    tail = (1 - confidence) / 2
    mean = sums.powers[0, 1] / sums.counts
    count = sums.counts**2 / sums.squared_weights
    if sums.decisions:
        low, high = map(float, sums.ends)
        return mean, *rate_ends(mean, count, (low, high), tail)
    below, above = reaches(sums, mean, count, tail)
    return mean, mean - below, mean + above


def rate_ends(
    mean: Array, count: Array, ends: tuple[float, float], tail: float
) -> tuple[Array, Array]:
    """Return the ends of the Clopper–Pearson interval (1934) for means of 0/1 decisions."""
    low, high = ends
    size = high - low
    share = np.clip((mean - low) / size, 0, 1)
    ones = count * share
    zeros = count * (1 - share)
    below = np.where(share > 0, betaincinv(np.maximum(ones, TINY), zeros + 1, tail), 0)
    above = np.where(share < 1, betaincinv(ones + 1, np.maximum(zeros, TINY), 1 - tail), 1)
    return low + size * below, low + size * above


def error_ends(
    sums: CenteredSums, scores: Array, overall: float, confidence: float
) -> tuple[Array, Array, Array]:
    """Return the mean of the outcome minus the score in each bin, and the ends of its interval: the
    ends of the Clopper–Pearson interval for the share of outcomes, minus the mean score.

    The interval excludes 0 if and only if the exact test rejects, with the variance expected under
    the scores. A standard error estimated from the outcomes would be far off where few outcomes are
    1. The effective number of rows is reduced if errors vary more than those of independent
    outcomes, in the bin or in all bins together, and if the number of clusters or of effective rows
    is small (Korn and Graubard, 1998).
    """
    tail = (1 - confidence) / 2
    weight = sums.counts
    mean = sums.powers[0, 1] / weight
    share = np.clip(scores + overall + mean, 0, 1)
    squared = sums.powers[1, 0]
    expected = squared * np.maximum(share * (1 - share), scores * (1 - scores))
    clusters = weight**2 / sums.squared_weights
    several = clusters > 1 + 1e-9
    rest = np.where(several, clusters - 1, 1)
    squares = np.maximum(sums.moment(2, 2, mean), 0)
    more = _excess(squares, expected)
    if sums.clusters is not None or not np.allclose(squared, weight):
        more = more * _excess(sums.residuals(mean)[0] * clusters / rest, squares)
        more = more * (stdtrit(rest, tail) / ndtri(tail)) ** 2
    count = weight**2 / squared
    low, high = rate_ends(share, np.where(several, count / more, 0), (0.0, 1.0), tail)
    return mean, low - scores - overall, high - scores - overall


def _excess(sums: Array, expected: Array) -> Array:
    """Return the factor, at least 1, by which sums are larger than expected, each separately or all
    together.
    """
    together = float(sums.sum()) / max(float(expected.sum()), TINY)
    return np.maximum(sums / np.maximum(expected, TINY), max(together, 1))


def value_cells(cells: Cells, counts: Integers) -> Cells:
    """Return cells with a bin for each value of s, if there are few values; values with few rows
    are merged with a neighbor. If that does not make more bins, the cells are returned unchanged.
    """
    if len(counts) > MOST_VALUES:
        return cells
    first = [*range(len(counts))]
    rows = counts.tolist()
    while len(rows) > 1 and min(rows) < LEAST_VALUE_ROWS:
        i = rows.index(min(rows))
        beside = [j for j in (i - 1, i + 1) if 0 <= j < len(rows)]
        left = min(i, min(beside, key=rows.__getitem__))
        rows[left] += rows.pop(left + 1)
        first.pop(left + 1)
    if len(first) <= len(cells.bins):
        return cells
    ends = np.cumsum(counts)
    middle = np.cumsum(rows) - np.array(rows) / 2
    two = [np.searchsorted(ends, middle, side=side) for side in ("left", "right")]
    return replace(cells, bins=np.array(first), medians=cells.starts[two].mean(axis=0))


def wide_cells(sums: ScoreSums, cells: Cells) -> Cells | None:
    """Return cells with wide bins, which are unions of neighboring bins with about equal numbers of
    rows; None if there are too few bins to merge.
    """
    if len(cells.bins) <= WIDE_WINDOWS:
        return None
    counts = np.add.reduceat(sums.rows, cells.bins)
    first = bin_levels(counts, WIDE_WINDOWS)
    last = np.append(first[1:], len(counts)) - 1
    return replace(cells, bins=cells.bins[first], medians=cells.medians[(first + last) // 2])


def reaches(sums: CenteredSums, mean: Array, count: Array, tail: float) -> tuple[Array, Array]:
    """Return how far the ends of the t interval are below and above the means of bins, corrected
    for the skewness in all bins together (Johnson, 1978; Hall, 1992). The distances are infinite
    for a bin with one row.

    Variances and skewness are relative to the spread near each bin, since the spread may depend on
    s. If scores have heavy tails, the relative variance of a bin is at least the geometric mean,
    weighted by degrees of freedom, of the bin's variance after adding rows with the average spread,
    and the pooled variance. The more the relative variances differ between bins, the fewer degrees
    of freedom the pooled variance has.
    """
    weight = sums.counts
    squares, cubes, fourths = sums.residuals(mean)
    several = count > 1 + 1e-9
    rest = np.where(several, count - 1, 1)
    scale = count * count / rest / weight**2
    own = squares * scale
    heavy = float((fourths * (count / weight) ** 4).sum()) / max(float(count @ own**2), TINY) - 3
    few = 1 + max(heavy, 0.0) / 2  # rows as informative about a variance as one normal row
    spread = nearby_spread(np.where(several, count, 0), own, BORROWED_ROWS * few)
    squares = squares / spread
    cubes = cubes / spread**1.5
    fourths = fourths / spread**2
    total = float(squares.sum())
    variance = squares * scale  # of one row
    skew = 0.0
    tails = 0.0
    if total > 0:
        skew = float(cubes.sum()) / total**1.5 * math.sqrt(float(count.sum()))
        tails = max(float(fourths.sum()) / total**2 * float(count.sum()) - 3, 0.0)
    quantile = stdtrit(rest, 1 - tail)
    skewness = skew / np.sqrt(count)
    borrowed: Array = np.zeros(len(count))
    if tails > 0 and several.sum() > 1:
        pooled = float(weight @ np.where(several, variance, 0) / weight[several].sum())
        freedom = 2 * count / (tails + 2)
        excess = float(variance[several].var() / pooled**2 - (2 / freedom).mean())
        prior = min(2 / max(excess, TINY), 1e3)
        borrowed = prior / (freedom + prior)
        own = (rest * variance + few * pooled) / (rest + few)
        variance = np.maximum(variance, own ** (1 - borrowed) * pooled**borrowed)
    error = np.sqrt(spread * variance / count)
    below, above = skewed_reach(error, skewness, quantile)
    # a borrowed variance does not grow with the bin's mean, so the full skewness of the mean counts
    more = error * borrowed * skewness * (quantile**2 - 1) / 6
    below = np.where(several, below + np.maximum(more, 0), np.inf)
    above = np.where(several, above + np.maximum(-more, 0), np.inf)
    return below, above


def nearby_spread(count: Array, variance: Array, borrowed: float) -> Array:
    """Return the variance of one row near each bin: the geometric mean of the variance in
    neighboring bins and, with the weight of the borrowed rows, the variance in all bins, which
    follows the trend of the spread.
    """
    total = float(count.sum())
    if not float(count @ variance) > 0:
        return np.ones_like(variance)
    trend = spread_trend(count, count * variance) ** (total / (total + TREND_ROWS * borrowed))
    squares = count * variance / trend
    place = np.arange(len(count))
    near = np.abs(place[:, None] - place) <= max(1, len(count) // NEARBY)
    rows = near @ count
    overall = float(squares.sum()) / total
    nearby = near @ squares / np.maximum(rows, TINY)
    share = rows / (rows + borrowed)
    level = np.where(nearby > 0, nearby**share * overall ** (1 - share), overall)
    return np.asarray(trend * level)
