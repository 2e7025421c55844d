"""Groups of rows along s that never split ties, and intervals of their mean scores."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from frhsic.parity._rows import Array, Integers, Rows, levels

LEAST_ROWS = 5
"""Fewest rows of a group that is one value of s."""


def group_starts(s: Array, most: int) -> Integers:
    """Return the first row of each group of a sorted sample: at most `most` groups of about equal counts.

    If s has no more than `most` distinct values, each is a group, unless it has fewer than `LEAST_ROWS` rows.
    """
    first = levels(s)
    return first[group_levels(np.diff(np.append(first, len(s))), most)]


def group_levels(counts: Integers, most: int) -> Integers:
    """Return which distinct values of s, given their numbers of rows, begin a group; see :func:`group_starts`."""
    n = int(counts.sum())
    smallest = min(LEAST_ROWS, n // 2) if len(counts) <= most else n / most
    starts, begin = [0], 0
    for level, end in enumerate(np.cumsum(counts)[:-1].tolist(), start=1):
        if end - begin >= smallest:
            starts.append(level)
            begin = end
    if len(starts) > 1 and n - begin < smallest / 2:
        starts.pop()
    return np.asarray(starts, dtype=np.int64)


def two_values(rows: Rows) -> tuple[float, float] | None:
    """Return the two values of scores that have only two, such as decisions."""
    low, high = float(rows.scores.min()), float(rows.scores.max())
    both = bool(((rows.scores == low) | (rows.scores == high)).all())
    return (low, high) if both and low < high and rows.clusters is None else None


def group_means(
    rows: Rows, starts: Integers, confidence: float, decisions: tuple[float, float] | None
) -> tuple[Array, Array, Array, Array]:
    """Return mean, lower and upper end, and rows of each group; the ends have the stated confidence each.

    Scores with the two values of `decisions` get the ends of Clopper and Pearson (1934), others those of Student's t.
    """
    groups = np.split(np.arange(len(rows.s)), starts[1:])
    ends = [_ends(rows, members, confidence, decisions) for members in groups]
    mean, lower, upper = (np.asarray(values) for values in zip(*ends))
    return mean, lower, upper, np.asarray([len(members) for members in groups], dtype=np.float64)


def _ends(
    rows: Rows, members: NDArray[np.int64], confidence: float, decisions: tuple[float, float] | None
) -> tuple[float, float, float]:
    weights, f = rows.weights[members], rows.scores[members, 0]
    total = weights.sum()
    mean = float(weights @ f / total)
    part = Rows(rows.scores[members], rows.s[members], weights, None)
    if rows.clusters is not None:
        labels = np.unique(rows.clusters[members], return_inverse=True)[1].ravel()
        part = Rows(part.scores, part.s, weights, labels)
    variance = part.square_of_sums(weights * (f - mean)) / total**2
    return mean, *ends_of_mean(mean, variance, part.effective, confidence, decisions)


def ends_of_mean(
    mean: float, variance: float, count: float, confidence: float, decisions: tuple[float, float] | None
) -> tuple[float, float]:
    """Return the ends of the interval of a mean of `count` rows; the variance of the mean is not yet corrected."""
    tail = (1 - confidence) / 2
    if decisions is not None:
        low, high = decisions
        share = (mean - low) / (high - low)
        below = float(stats.beta.ppf(tail, count * share, count * (1 - share) + 1)) if share > 0 else 0.0
        above = float(stats.beta.ppf(1 - tail, count * share + 1, count * (1 - share))) if share < 1 else 1.0
        return low + (high - low) * below, low + (high - low) * above
    if count < 1 + 1e-9:
        return -math.inf, math.inf
    reach = float(stats.t.ppf(1 - tail, count - 1)) * math.sqrt(variance * count / (count - 1))
    return mean - reach, mean + reach
