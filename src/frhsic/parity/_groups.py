"""Groups of rows along s that never split ties, and intervals of their mean scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import stats

from frhsic.parity._rows import Array, Integers, levels
from frhsic.parity._sums import Sums, group_levels

TINY = 1e-300


def group_starts(s: Array, most: int) -> Integers:
    """Return the first row of each group of a sorted sample; see :func:`group_levels`."""
    first = levels(s)
    return first[group_levels(np.diff(np.append(first, len(s))), most)]


def group_ends(sums: Sums, confidence: float) -> tuple[Array, Array, Array]:
    """Return the mean of each group, and the ends of its interval at a confidence for each.

    0/1 decisions get the ends of Clopper and Pearson (1934), where rows of a cluster count as one. Other scores get
    those of Student's t, corrected for the skewness of all groups together (Johnson, 1978; Hall, 1992). Where scores
    have heavy tails, the variance of a group is no less than its mean with that of all groups, each weighted by its
    degrees of freedom; those of the latter are fewer, the more the variances differ between groups.
    """
    tail, weight = (1 - confidence) / 2, sums.counts
    mean = sums.powers[0, 1] / weight
    count = weight**2 / sums.own_squares(0)
    if sums.decisions:
        low, high = sums.ends
        size = high - low
        share = np.clip((mean - low) / size, 0, 1)
        below = np.where(share > 0, stats.beta.ppf(tail, np.maximum(count * share, TINY), count * (1 - share) + 1), 0)
        above = np.where(
            share < 1, stats.beta.ppf(1 - tail, count * share + 1, np.maximum(count * (1 - share), TINY)), 1
        )
        return mean, low + size * below, low + size * above
    squares, cubes, fourths = sums.residuals(mean)
    several = count > 1 + 1e-9
    rest = np.where(several, count - 1, 1)
    variance = squares / weight**2 * count * count / rest  # of one row
    spread = float(squares.sum())
    pooled = float(weight @ np.where(several, variance, 0) / weight[several].sum()) if several.any() else 0.0
    skew = tails = 0.0
    if spread > 0:
        skew = float(cubes.sum()) / spread**1.5 * math.sqrt(float(count.sum()))
        tails = max(float(fourths.sum()) / spread**2 * float(count.sum()) - 3, 0.0)
    quantile, skewness = stats.t.ppf(1 - tail, rest), skew / np.sqrt(count)
    borrowed: Array = np.zeros(len(count))
    if tails > 0 and several.sum() > 1:
        freedom = 2 * count / (tails + 2)
        excess = float(variance[several].var() / pooled**2 - (2 / freedom[several]).mean())
        prior = min(2 / max(excess, TINY), 1e3)
        borrowed = prior / (freedom + prior)
        variance = np.maximum(variance, variance + borrowed * (pooled - variance))
    error = np.sqrt(variance / count)
    below, above = skewed_reach(error, skewness, quantile)
    # a variance that is not the group's own does not grow with its mean, whose skewness then counts itself
    more = error * borrowed * skewness * (quantile**2 - 1) / 6
    below, above = below + np.maximum(more, 0), above + np.maximum(-more, 0)
    return mean, np.where(several, mean - below, -np.inf), np.where(several, mean + above, np.inf)


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval lie below and above a mean of known skewness.

    The end on the side of the longer tail is moved out by the first term of Edgeworth's expansion of Student's t (Hall,
    1992); the other is not moved in.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))
