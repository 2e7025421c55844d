"""The interval of a gap, computed from an estimate: the ends of Student's t interval, moved by
corrections.

``GapEstimate → student_ends → CORRECTIONS, one after another → Ends``. A correction is a function
that moves the ends; its docstring says why and by how much. ``benchmarks/corrections.py`` measures
the effect of each correction, ``benchmarks/laws.py`` measures how often intervals cover the true
value, and ``docs/intervals.md`` derives the corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtrit

from frhsic.parity.sums import CenteredSums

FEW_DECISIONS = 7.5
"""With at most this many rows (or clusters) with the rarer decision, the upper end of a gap is at
least the largest gap that the rate of this decision allows. The number is not whole, so that
rounding has no effect.
"""


@dataclass(frozen=True)
class GapEstimate:
    """What the interval of a gap, or of each gap of a batch, (…), is computed from.

    Attributes
    ----------
    value
        The estimate.
    error
        Standard error of the estimate.
    skewness
        Skewness of the estimate.
    freedom
        Degrees of freedom of the standard error.
    lost
        Bound on the expected loss of the estimate due to uncertain signs; 0 for the estimate that
        determines the lower end.
    decisions
        The sums of scores; if the scores are 0/1 decisions or all equal, their rate bounds the gap.
        None for ranks.
    """

    value: Any
    error: Any
    skewness: Any
    freedom: Any
    lost: Any = 0.0
    decisions: CenteredSums | None = None


@dataclass(frozen=True)
class Ends:
    """The two ends of an interval, or of several intervals."""

    low: Any
    high: Any


def student_ends(estimate: GapEstimate, tail: float) -> Ends:
    """Return the ends of Student's t interval, because the standard error is estimated. If the
    estimate is negative, the upper end is measured from 0, because gaps are never negative.
    """
    reach = _t_quantile(estimate, tail) * estimate.error
    return Ends(estimate.value - reach, np.maximum(estimate.value, 0.0) + reach)


def skewness(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Move the end on the side of the longer tail out by γ(2q² + 1)/6 standard errors, at most 1.5
    q, because an interval for the mean of skewed scores misses more often on that side.
    """
    quantile = _t_quantile(estimate, tail)
    below, above = skewed_reach(estimate.error, estimate.skewness, quantile)
    usual = quantile * estimate.error
    return Ends(ends.low - (below - usual), ends.high + (above - usual))


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval are below and above a mean with the given skewness.

    The end on the side of the longer tail is moved out by the first term of the Edgeworth expansion
    of Student's t (Hall, 1992); the other end is not moved.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))


def _t_quantile(estimate: GapEstimate, tail: float) -> Any:
    return stdtrit(np.maximum(estimate.freedom, 1), 1 - tail)


def uncertain_signs(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Raise the upper end by the largest expected loss of the estimate due to uncertain signs of
    local means.
    """
    return Ends(ends.low, ends.high + estimate.lost)


def decision_rates(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Bound the upper end by the largest possible gap 2μ(1 - μ) of 0/1 decisions: raise it to that
    gap if there are too few of the rarer decisions to estimate a gap; otherwise, lower it to that
    gap if it is larger.

    μ is the upper end of the Clopper–Pearson interval (1934) for the rate of the rarer decision;
    the rows of a cluster count as one row. If all scores are the same number from 0 to 1, μ is the
    rate of a different score, as far away as possible. For equal scores outside this range, there
    is no such bound.
    """
    sums = estimate.decisions
    if sums is None:
        return ends
    low, high = sums.ends
    size = high - low
    bounded = (sums.decisions | (low == 0) | (high == 0)) & (size > 0)
    rare = np.minimum(-low, high) / np.where(bounded, size, 1) * sums.effective
    rate = np.minimum(betaincinv(rare + 1, sums.effective - rare, 1 - tail), 0.5)
    most = size * 2 * rate * (1 - rate)
    high = np.where(
        rare < FEW_DECISIONS,
        np.maximum(ends.high, most),
        np.minimum(ends.high, np.maximum(most, estimate.value)),
    )
    return Ends(ends.low, np.where(bounded, high, ends.high))


CORRECTIONS = (skewness, uncertain_signs, decision_rates)
"""The corrections, in the order in which they are applied."""


def corrected_ends(
    estimate: GapEstimate,
    tail: float,
    corrections: Sequence[Callable[[Ends, GapEstimate, float], Ends]] = CORRECTIONS,
) -> Ends:
    """Return the corrected ends of the interval, with error probability `tail` on each side."""
    ends = student_ends(estimate, tail)
    for correction in corrections:
        ends = correction(ends, estimate, tail)
    return Ends(np.maximum(ends.low, 0.0), ends.high)
