"""Rules that choose a weight from performance and dependence on validation rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from frhsic.formatting import did_you_mean, figure, percent

Measure = Literal["gdp", "hsic", "gain", "p"]

EXAMPLES = "0.02, 'gdp <= 0.02', 'hsic <= 0.001', 'gain >= 90%', 'p > 0.05'"
_WRITTEN = re.compile(r"\s*([^\W\d]\w*)\s*(<=|>=|≤|≥|<|>|=)\s*([-+.\w]+)\s*(%?)\s*")
_DIRECTIONS = {"gdp": "at most", "hsic": "at most", "gain": "at least", "p": "at least"}


@dataclass(frozen=True)
class Candidate:
    """One weight of the grid, measured on validation rows.

    Attributes
    ----------
    weight
        λ.
    performance
        Value of the scorer, which is better when larger: minus log loss or minus the mean squared error by default.
    gain
        Share of the unpenalised model's gain over a constant predictor that is kept, in log loss or squared error: 1
        for weight 0, 0 for a constant. NaN if the unpenalised model does not beat the constant.
    gdp, gdp_upper
        GDP of the scores for the worst attribute, in probabilities or in the unit of y, and its one-sided upper
        confidence bound: the end of the interval where it is trusted, else the wider bound that allows for every shape
        of the conditional mean (see :class:`frhsic.parity.ParityResult`).
    hsic, hsic_upper
        Biased HSIC between Z or the scores, as the rule says, and the attributes, with Gaussian kernels at median
        bandwidths; and its upper bound by the normal approximation, NaN if the rule does not use HSIC.
    pvalue
        p-value of the gamma test of independence.
    accepted
        Whether the rule admits this weight.
    """

    weight: float
    performance: float
    gain: float
    gdp: float
    gdp_upper: float
    hsic: float
    hsic_upper: float
    pvalue: float
    accepted: bool = False


@dataclass(frozen=True)
class Rule:
    r"""How a weight is chosen among candidates.

    Parameters
    ----------
    measure
        ``"gdp"`` or ``"hsic"``: the best performance among the weights whose upper bound on the validation rows is at
        most the limit, searched from the largest weight down; the first weight that misses it ends the search
        (fixed-sequence testing). ``"gain"``: the least GDP among the models that keep this share of the unpenalised
        model's gain over a constant. ``"p"``: the paper's rule, the smallest λ at which a test of this level does not
        reject independence.
    limit
        The limit: a GDP, an HSIC, a share of the gain, or a level.
    confidence
        Confidence of the upper bounds; 0.5 compares the values themselves.
    epsilon
        With ``"p"``, an HSIC below which dependence is negligible although it is rejected: with many rows a test
        rejects any dependence, however small.
    of
        What HSIC and its test look at: ``"representation"``, for any head, or ``"scores"``, also taken for a model
        without `transform`.
    """

    measure: Measure
    limit: float
    confidence: float = 0.95
    epsilon: float | None = None
    of: Literal["representation", "scores"] = "representation"

    def __post_init__(self) -> None:
        if self.measure not in _DIRECTIONS:
            raise ValueError(f"measure={self.measure!r}; pass one of {', '.join(_DIRECTIONS)}.")
        most = 1 if self.measure in ("gain", "p") else math.inf
        if not 0 < self.limit <= most or self.limit == math.inf:
            raise ValueError(f"limit={self.limit!r}; pass a positive number{'' if most > 1 else ' of at most 1'}.")

    @classmethod
    def of_text(cls, rule: Any) -> Rule:
        """Return a rule as it is, or the one that a number or a text means; None keeps 80 % of the gain.

        Examples
        --------
        >>> Rule.of_text(0.02) == Rule.of_text("gdp <= 0.02") == Rule.of_text("GDP ≤ 2%") == Rule("gdp", 0.02)
        True
        """
        if rule is None or isinstance(rule, Rule):
            return rule or cls("gain", 0.8)
        if isinstance(rule, (int, float)) and not isinstance(rule, bool):
            return cls("gdp", float(rule))
        parts = _WRITTEN.fullmatch(rule) if isinstance(rule, str) else None
        if parts is None:
            raise ValueError(f"rule={rule!r} is not understood; pass a Rule, or for example {EXAMPLES}.")
        name, sign, digits, per_cent = parts.groups()
        measure: Any = name.lower()
        if measure not in _DIRECTIONS:
            raise ValueError(f"rule={rule!r} limits {name!r}, which is not known.{did_you_mean(measure, _DIRECTIONS)}")
        try:
            limit = float(digits) / (100 if per_cent else 1)
        except ValueError:
            limit = math.nan
        if math.isnan(limit) or (sign in "<=≤") != (_DIRECTIONS[measure] == "at most"):
            raise ValueError(
                f"rule={rule!r}: {measure} is {_DIRECTIONS[measure]} a number; pass for example {EXAMPLES}."
            )
        return cls(measure, limit)

    def choose(self, candidates: Sequence[Candidate]) -> tuple[list[bool], int]:
        """Return which candidates, in order of increasing weight, are admitted, and the index of the one to take."""
        indices, performance = range(len(candidates)), [c.performance for c in candidates]
        if self.measure == "p":
            small = math.nan if self.epsilon is None else self.epsilon
            admitted = [c.pvalue > self.limit or c.hsic < small for c in candidates]
            return admitted, admitted.index(True) if True in admitted else int(np.argmin([c.hsic for c in candidates]))
        if self.measure == "gain":
            admitted = [c.gain >= self.limit for c in candidates]
            inside = [i for i in indices if admitted[i]]
            return admitted, min(inside, key=lambda i: candidates[i].gdp) if inside else int(np.argmax(performance))
        bounds = [self.bound(c) for c in candidates]
        # from the largest weight down: the order is fixed beforehand, so the confidence is that of all admitted ones
        admitted = [all(bound <= self.limit for bound in bounds[i:]) for i in indices]
        inside = [i for i in indices if admitted[i]]
        best = max(inside, key=lambda i: (performance[i], -candidates[i].gdp)) if inside else int(np.argmin(bounds))
        return admitted, best

    def bound(self, candidate: Candidate) -> float:
        """Return the upper bound that a limit on GDP or HSIC is compared with."""
        return candidate.hsic_upper if self.measure == "hsic" else candidate.gdp_upper

    def reason(self, taken: Candidate, admitted: bool) -> str:
        """Say in a sentence why a weight was taken."""
        limit = figure(self.limit)
        if self.measure == "p":
            test = f"(p = {figure(taken.pvalue)}, HSIC {figure(taken.hsic)})"
            if admitted:
                return (
                    f"the smallest weight at which independence of the {self.of} is not rejected at level {limit}, or "
                    f"HSIC is negligible {test}; this does not show independence"
                )
            return f"independence of the {self.of} is rejected at every weight; this one has the least HSIC {test}"
        if self.measure == "gain":
            share, keeps = percent(self.limit), percent(taken.gain) if taken.gain == taken.gain else "no share"
            of = f"{share} of the unpenalised model's gain over a constant; this one keeps {keeps}"
            return f"the least GDP among models that keep {of}" if admitted else f"no weight keeps {of}"
        bound = f"{self.measure.upper()} {figure(self.bound(taken))} is the upper bound on the validation rows"
        if admitted:
            return f"the best performance among weights within the limit {limit}; {bound}"
        return f"no weight is within the limit {limit} on {self.measure.upper()}; this one is the nearest: {bound}"
