"""The rule that chooses a weight: which candidates meet the limits, which candidate is chosen, and
why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from frhsic.formatting import figure, percent, rows_needed_phrase
from frhsic.parity.limits import Limit, rows_to_settle

# Measures that can be limited; plain numbers and shares apply to the first.
LIMITED_MEASURES = ("gdp", "hsic", "gain", "p")


@dataclass(frozen=True)
class Candidate:
    """One weight in the grid, measured on validation rows.

    Attributes
    ----------
    penalty_weight
        The weight λ.
    performance
        Value of the scorer, for which larger is better: minus log loss or minus the mean squared
        error by default.
    gain
        Share of the unpenalized model's gain over a constant predictor, in log loss or squared
        error, that the model keeps: 1 for weight 0, 0 for a constant. NaN if the unpenalized model
        is not better than the constant.
    gaps
        For each attribute, GDP of the scores, in probabilities or in the unit of y.
    gap_bounds
        For each attribute, the upper end of the interval of GDP (see
        :class:`frhsic.parity.ParityResult`).
    hsic
        Biased HSIC between Z, or the scores of a model without `transform`, and the attributes,
        with Gaussian kernels at median bandwidths.
    hsic_upper
        Upper end of the interval of HSIC (:func:`frhsic.independence.hsic_interval`); NaN without a
        limit on HSIC.
    pvalue
        p-value of the gamma test of independence.
    accepted
        Whether this weight meets the limits.
    """

    penalty_weight: float
    performance: float
    gain: float
    gaps: dict[str, float]
    gap_bounds: dict[str, float]
    hsic: float
    hsic_upper: float
    pvalue: float
    accepted: bool = False

    @property
    def gdp(self) -> float:
        """The largest GDP of any attribute."""
        return max(self.gaps.values())

    @property
    def gdp_upper(self) -> float:
        """The largest upper bound on GDP of any attribute."""
        return max(self.gap_bounds.values())


def choose(candidates: Sequence[Candidate], limits: Sequence[Limit]) -> tuple[list[bool], int]:
    """Return which candidates, in order of increasing weight, meet all limits, and the index of the
    candidate to choose. Among candidates that meet all limits, the candidate with the smallest GDP
    is chosen if there is a limit on the gain, the candidate with the smallest weight if there is a
    limit on the p-value, and otherwise the candidate with the best performance. If no candidate
    meets all limits, the candidate closest to the first limit is chosen; candidates whose estimates
    meet this limit are preferred.
    """
    admitted = [True] * len(candidates)
    for limit in limits:
        kept = _admitted(candidates, limit)
        admitted = [before and now for before, now in zip(admitted, kept)]
    inside = [i for i, kept in enumerate(admitted) if kept]
    if not inside:
        return admitted, _nearest(candidates, limits[0])
    best, _ = _preferred(limits)
    return admitted, max(inside, key=lambda i: best(candidates[i]))


def _preferred(limits: Sequence[Limit]) -> tuple[Callable[[Candidate], Any], str]:
    """Return the quantity to maximize among the candidates that meet the limits, and its name."""
    measures = {limit.measure for limit in limits}
    if "gain" in measures:
        return lambda candidate: -candidate.gdp, "the smallest GDP"
    if "p" in measures:
        return lambda candidate: -candidate.penalty_weight, "the smallest weight"
    return lambda candidate: (candidate.performance, -candidate.gdp), "the best performance"


def _admitted(candidates: Sequence[Candidate], limit: Limit) -> list[bool]:
    """Return which candidates meet one limit."""
    if limit.measure == "gain":
        return [candidate.gain >= limit.value for candidate in candidates]
    if limit.measure == "p":
        return [candidate.pvalue > limit.value for candidate in candidates]
    if limit.measure == "gdp" and limit.is_aim:
        gaps = [_estimate(candidate, limit) for candidate in candidates]
        aim = min(gaps) if limit.value == 0 else limit.bound(gap=gaps[0])
        return [gap <= aim for gap in gaps]
    bounds = [_bound(candidate, limit) for candidate in candidates]
    # from the largest weight down: the order is fixed beforehand, so the confidence holds for all
    # admitted candidates
    return [all(bound <= limit.value for bound in bounds[i:]) for i in range(len(bounds))]


def _bound(candidate: Candidate, limit: Limit) -> float:
    """Return the upper bound that a limit on GDP or HSIC is compared with."""
    if limit.measure == "hsic":
        return candidate.hsic_upper
    if limit.attribute is None:
        return candidate.gdp_upper
    return candidate.gap_bounds[limit.attribute]


def _estimate(candidate: Candidate, limit: Limit) -> float:
    """Return the estimate that a limit on GDP or HSIC applies to."""
    if limit.measure == "hsic":
        return candidate.hsic
    return candidate.gdp if limit.attribute is None else candidate.gaps[limit.attribute]


def _nearest(candidates: Sequence[Candidate], limit: Limit) -> int:
    """Return the index of the candidate closest to a limit that no candidate meets."""
    if limit.measure == "gain":
        return int(np.argmax([candidate.performance for candidate in candidates]))
    if limit.measure == "p":
        return int(np.argmin([candidate.hsic for candidate in candidates]))
    if limit.is_aim:
        return int(np.argmin([_estimate(candidate, limit) for candidate in candidates]))
    places = range(len(candidates))
    keeping = [i for i in places if _estimate(candidates[i], limit) <= limit.value]
    return min(keeping or places, key=lambda i: _bound(candidates[i], limit))


def _rows_needed(taken: Candidate, limits: Sequence[Limit], rows: int) -> int | None:
    """Return the approximate number of validation rows with which a candidate's upper bounds would
    also meet the limits; None unless its estimates meet all limits.
    """
    if any(limit.measure in ("gain", "p") or limit.is_aim for limit in limits):
        return None
    each = [
        rows_to_settle(rows, _estimate(taken, limit), _bound(taken, limit), limit.value)
        for limit in limits
    ]
    known = [count for count in each if count is not None]
    return max(known) if known and len(known) == len(each) else None


def reason(taken: Candidate, limits: Sequence[Limit], admitted: bool, rows: int) -> str:
    """Return a sentence on why a weight was chosen, given the number of validation rows."""
    if not limits:
        return "the best performance; there is no limit"
    asked = " and ".join(_asked(limit) for limit in limits)
    if not admitted and (count := _rows_needed(taken, limits, rows)) is not None:
        probably = (
            f"{asked} is probable, but not certain; {rows_needed_phrase(count, 'validation rows')}"
        )
        return f"{probably}: {_measured_values(taken, limits)}"
    if not admitted:
        return f"no weight gives {asked}; this one comes closest: {_measured_values(taken, limits)}"
    _, which = _preferred(limits)
    return f"{which} among weights with {asked}: {_measured_values(taken, limits)}"


def _asked(limit: Limit) -> str:
    by = "" if limit.attribute is None else f" by {limit.attribute}"
    if limit.measure == "gain":
        return f"{percent(limit.value)} of the unpenalized model's gain over a constant"
    if limit.measure == "p":
        return f"p above {figure(limit.value)}, which does not show independence"
    if limit.value == 0:
        return f"the smallest GDP{by}"
    if limit.base == "gap":
        return f"{percent(limit.value)} of the unpenalized model's GDP{by}"
    return f"{limit.measure.upper()}{by} at most {figure(limit.value)}"


def _measured_values(taken: Candidate, limits: Sequence[Limit]) -> str:
    """Return the numbers of a candidate that its limits apply to."""
    gain = "no gain" if math.isnan(taken.gain) else f"{percent(taken.gain)} of the gain"
    numbers = {
        "gdp": f"GDP {figure(taken.gdp)}, at most {figure(taken.gdp_upper)}",
        "hsic": f"HSIC {figure(taken.hsic)}, at most {figure(taken.hsic_upper)}",
        "gain": gain,
        "p": f"p = {figure(taken.pvalue)}, HSIC {figure(taken.hsic)}",
    }
    return "; ".join(
        numbers[measure] for measure in dict.fromkeys(limit.measure for limit in limits)
    )
