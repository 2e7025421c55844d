"""From an estimate to the interval of a gap: the ends of a normal interval, moved by named
corrections.

``GapEstimate → normal_ends → CORRECTIONS, one after another → Ends``, each of single numbers. To
add a correction, write a function that moves the ends, add a :class:`Correction` to `CORRECTIONS`,
and test its amount in ``tests/test_parity_definitions.py``. ``benchmarks/corrections.py`` measures
its effect, ``benchmarks/laws.py`` the coverage of intervals, and ``docs/intervals.md`` derives
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from frhsic.parity.sums import CenteredSums

FEW_DECISIONS = 7.5
"""Up to so many rows of the rarer decision, or clusters, the upper end of a gap is at least the
largest that their rate allows; between two whole numbers, so that rounding decides nothing.
"""


@dataclass(frozen=True)
class GapEstimate:
    """The ingredients of the interval of a gap.

    Attributes
    ----------
    value
        The estimate.
    error
        Its standard error.
    skewness
        Its skewness.
    freedom
        Degrees of freedom of the standard error.
    lost
        Bound on what uncertain signs take away from the estimate, in expectation; 0 for the
        estimate that gives the lower end, whose upper end counts if it is the higher one.
    decisions
        The sums of 0/1 decisions, whose rate limits their gap; None for other scores and for ranks.
    """

    value: float
    error: float
    skewness: float
    freedom: float
    lost: float = 0.0
    decisions: CenteredSums | None = None


@dataclass(frozen=True)
class Ends:
    """The two ends of an interval."""

    low: float
    high: float


def normal_ends(estimate: GapEstimate, tail: float) -> Ends:
    """Return the ends of a normal interval; the gap itself is never negative."""
    reach = float(ndtri(1 - tail)) * estimate.error
    return Ends(estimate.value - reach, max(estimate.value, 0.0) + reach)


def students_t(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Move both ends out to those of Student's t."""
    more = (_t_quantile(estimate, tail) - float(ndtri(1 - tail))) * estimate.error
    return Ends(ends.low - more, ends.high + more)


def skewness(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Move the end on the side of the longer tail out."""
    quantile = _t_quantile(estimate, tail)
    below, above = skewed_reach(estimate.error, estimate.skewness, quantile)
    usual = quantile * estimate.error
    return Ends(ends.low - (below - usual), ends.high + (above - usual))


def skewed_reach(error: Any, skewness: Any, quantile: Any) -> tuple[Any, Any]:
    """Return how far the ends of an interval lie below and above a mean of known skewness.

    The end on the side of the longer tail is moved out by the first term of Edgeworth's expansion
    of Student's t (Hall, 1992); the other is not moved in.
    """
    shift = np.clip(skewness * (2 * quantile**2 + 1) / 6, -1.5 * quantile, 1.5 * quantile)
    return error * (quantile + np.maximum(-shift, 0)), error * (quantile + np.maximum(shift, 0))


def _t_quantile(estimate: GapEstimate, tail: float) -> float:
    return float(stdtrit(max(estimate.freedom, 1), 1 - tail))


def uncertain_signs(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Raise the upper end by what the estimate may lack."""
    return Ends(ends.low, ends.high + estimate.lost)


def decision_rates(ends: Ends, estimate: GapEstimate, tail: float) -> Ends:
    """Raise the upper end to the largest gap 2μ(1 - μ) of 0/1 decisions if few are of the rarer
    kind, else lower it to this gap.

    μ is the upper end of Clopper and Pearson (1934) of the rarer rate; rows of a cluster count as
    one.
    """
    sums = estimate.decisions
    if sums is None:
        return ends
    low, high = sums.ends
    size = high - low
    rare = min(-low, high) / size * sums.effective
    rate = min(float(betaincinv(rare + 1, sums.effective - rare, 1 - tail)), 0.5)
    most = size * 2 * rate * (1 - rate)
    if rare < FEW_DECISIONS:
        return Ends(ends.low, max(ends.high, most))
    return Ends(ends.low, min(ends.high, max(most, estimate.value)))


@dataclass(frozen=True)
class Correction:
    """A change of the ends of a normal interval, with its reason.

    Attributes
    ----------
    name
        Its name.
    amount
        By how much it moves the ends.
    reason
        Why.
    benchmark
        Laws that it is for, on which ``benchmarks/corrections.py`` counts how often the truth lies
        outside with it and without it.
    test
        Test of ``tests/test_parity_definitions.py`` that has its amount.
    applied
        Returns the ends after it, from those before it, the estimate, and the probability of error
        on each side.
    """

    name: str
    amount: str
    reason: str
    benchmark: str
    test: str
    applied: Callable[[Ends, GapEstimate, float], Ends]


CORRECTIONS = (
    Correction(
        name="Student's t",
        amount="the quantile of Student's t less the normal one, in standard errors, at both ends",
        reason="the standard error is estimated, from few effective rows if weights, clusters or"
        " tails are heavy",
        benchmark="scores: heavy tails",
        test="test_each_correction_moves_the_ends_by_its_own_amount",
        applied=students_t,
    ),
    Correction(
        name="skewness",
        amount="γ(2q² + 1)/6 standard errors, at most 1.5 q, at the end of the longer tail",
        reason="the mean of skewed scores errs more often on the side of the longer tail",
        benchmark="scores: heavy tails",
        test="test_each_correction_moves_the_ends_by_its_own_amount",
        applied=skewness,
    ),
    Correction(
        name="uncertain signs",
        amount="the bound on the expected loss, at the upper end",
        reason="where the sign of a local mean is uncertain, the estimate is too small in"
        " expectation",
        benchmark="curve: up to 12 waves",
        test="test_each_correction_moves_the_ends_by_its_own_amount",
        applied=uncertain_signs,
    ),
    Correction(
        name="decision rates",
        amount="to the largest gap 2μ(1 - μ) at the upper end μ of the rarer rate",
        reason="too few decisions of one kind show no gap, but their rate bounds it",
        benchmark="scores: 0/1, rate below .1",
        test="test_few_decisions_of_a_kind_allow_the_gap_of_their_largest_rate",
        applied=decision_rates,
    ),
)
"""Corrections of the ends of a normal interval, in this order."""


def corrected_ends(
    estimate: GapEstimate, tail: float, corrections: Sequence[Correction] = CORRECTIONS
) -> Ends:
    """Return the ends of the interval at a probability of error on each side."""
    ends = normal_ends(estimate, tail)
    for correction in corrections:
        ends = correction.applied(ends, estimate, tail)
    return Ends(float(max(ends.low, 0.0)), float(ends.high))
