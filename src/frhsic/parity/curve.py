"""The mean score along s: in groups of rows with a simultaneous band, and near one value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from frhsic import _arrays
from frhsic.parity._groups import group_means, group_starts, two_values
from frhsic.parity._rows import Array, Rows, rows_of, weighted_mean
from frhsic.parity._signs import Signs

ROWS_PER_GROUP = 100
FEWEST_GROUPS, MOST_GROUPS = 5, 40


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
        *Simultaneous* band: with the stated confidence it holds the means :math:`E[f | start \le S \le end]` of all
        groups at once.
    rows
        Number of rows of each group.
    overall
        The overall mean score.
    smoothed
        The smoothed mean at the centre of each group, at the resolution of :func:`gdp`. It is for the eye: the band
        is not for it.
    confidence, resolution, n
        Settings and the number of rows.
    """

    at: Array
    start: Array
    end: Array
    mean: Array
    lower: Array
    upper: Array
    rows: Array
    overall: float
    smoothed: Array
    confidence: float
    resolution: float
    n: int


def gdp_curve(
    scores: Any,
    s: Any,
    *,
    groups: int | None = None,
    where: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    confidence: float = 0.95,
) -> ParityCurve:
    r"""Mean score of groups of rows along s, with a band that holds all of them at once.

    The means are equal, up to noise, when the mean score does not depend on s. Use them to see at which values of s
    scores are too high or too low; :func:`gdp` summarizes them in one number.

    Parameters
    ----------
    scores
        One column. Call it once for each class if there are several.
    groups
        Largest number of groups, of about equal counts. None is one for each hundred rows, from 5 to 40. If s has no
        more values than that, each value with five or more rows is a group.
    s, where, sample_weight, clusters, confidence
        As in :func:`gdp`.

    Notes
    -----
    The ends are those of Student's t, or of Clopper and Pearson (1934) for 0/1 decisions, at the confidence
    :math:`(1 - \alpha)^{1/G}` for G groups (Šidák). Means of groups have no bias of smoothing.

    Examples
    --------
    >>> curve = gdp_curve([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10)
    >>> curve.at, curve.mean.round(3), curve.rows
    (array([1., 9.]), array([0.1, 0.9]), array([30., 30.]))
    """
    return curve_of(rows_of(scores, s, where, sample_weight, clusters), confidence, groups)


def curve_of(rows: Rows, confidence: float, groups: int | None = None) -> ParityCurve:
    """:func:`gdp_curve` of rows that other measures use as well."""
    _arrays.require_fraction(confidence, "confidence")
    rows = _one_column(rows)
    n = len(rows.s)
    if groups is None:
        groups = groups_for(n)
    _arrays.require_integer(groups, "groups", 2)
    starts = group_starts(rows.s, groups)
    mean, lower, upper, counts = group_means(rows, starts, confidence ** (1 / len(starts)), two_values(rows))
    ends = np.append(starts[1:], n)
    signs = Signs(rows)
    f = rows.weights * rows.scores[:, 0]
    smooth = (signs.kernel @ signs.sums(f) / signs.total)[signs.node]
    middle = (starts + ends - 1) // 2
    return ParityCurve(
        at=np.asarray([np.median(part) for part in np.split(rows.s, starts[1:])]),
        start=rows.s[starts],
        end=rows.s[ends - 1],
        mean=mean,
        lower=lower,
        upper=upper,
        rows=counts,
        overall=float(weighted_mean(rows.weights, rows.scores[:, 0])),
        smoothed=smooth[middle],
        confidence=confidence,
        resolution=signs.resolution,
        n=n,
    )


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
    clusters: Any = None,
    confidence: float = 0.95,
) -> LocalMean:
    """Mean score of the rows nearest to a value of s, less the overall mean score.

    Zero in the population when the mean score does not depend on s. As many rows count as near as a group of
    :func:`gdp_curve` has, half of them on either side; rows with equal s are not separated.

    Parameters
    ----------
    at
        A value of s, within its range.
    scores, s, where, sample_weight, clusters, confidence
        As in :func:`gdp_curve`.

    Examples
    --------
    >>> near = local_mean([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 10, [1.0, 1.0, 1.0, 9.0, 9.0, 9.0] * 10, 9.0)
    >>> round(near.value, 6), near.rows
    (0.4, 30)
    """
    _arrays.require_fraction(confidence, "confidence")
    rows = _one_column(rows_of(scores, s, where, sample_weight, clusters))
    n, values = len(rows.s), rows.s
    if not values[0] <= at <= values[-1]:
        raise ValueError(f"at is {at}; s lies between {values[0]:g} and {values[-1]:g}. Pass a value inside.")
    size = n / groups_for(n)
    left, right = (int(i) for i in (np.searchsorted(values, at), np.searchsorted(values, at, side="right")))
    missing = max(size - (right - left), 0) / 2
    low = values[max(int(left - missing), 0)]
    high = values[min(int(np.ceil(right + missing)), n) - 1]
    near = (values >= low) & (values <= high)
    f, weights = rows.scores[:, 0], rows.weights
    inside = weights * near
    mean, overall = inside @ f / inside.sum(), weighted_mean(weights, f)
    labels = None if rows.clusters is None else rows.clusters[near]
    nearby = Rows(rows.scores[near], values[near], weights[near], labels)
    (center,), (lower,), (upper,), _ = group_means(nearby, np.zeros(1, dtype=np.int64), confidence, two_values(rows))
    # the two means are positively correlated, so adding their variances is conservative
    extra = math.sqrt(rows.square_of_sums(weights * (f - overall))) / weights.sum()
    extra *= float(stats.norm.ppf((1 + confidence) / 2))
    return LocalMean(
        at=float(at),
        start=float(low),
        end=float(high),
        value=float(mean - overall),
        interval=(
            float(mean - overall - math.hypot(center - lower, extra)),
            float(mean - overall + math.hypot(upper - center, extra)),
        ),
        rows=int(near.sum()),
        confidence=confidence,
    )


def groups_for(n: int) -> int:
    """Return the largest number of groups of a curve of n rows."""
    return int(np.clip(n // ROWS_PER_GROUP, FEWEST_GROUPS, MOST_GROUPS))


def _one_column(rows: Rows) -> Rows:
    if rows.scores.shape[1] > 1:
        raise ValueError(f"scores has {rows.scores.shape[1]} columns; a curve is of one. Pass one class at a time.")
    return rows
