"""Rules: which weight is taken, given what each did on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

__all__ = ["Candidate", "IndependenceRule", "PerformanceRule", "Rule", "TargetRule"]


@dataclass(frozen=True)
class Candidate:
    """One weight of the grid, measured on validation rows.

    Attributes
    ----------
    weight
        λ.
    performance
        Accuracy or mean squared error, or what `scoring` says.
    gdp, gdp_upper
        GDP of the scores for the worst attribute, in probabilities or in the unit of y, and its one-sided upper
        confidence bound.
    hsic, hsic_upper
        Biased HSIC of what the rule looks at (Z, or the scores) and the attributes, Gaussians at median bandwidths,
        and its upper bound, NaN where the rule does not ask for HSIC.
    pvalue
        Of the gamma test of independence.
    accepted
        Whether the rule admits this weight.
    """

    weight: float
    performance: float
    gdp: float
    gdp_upper: float
    hsic: float
    hsic_upper: float
    pvalue: float
    accepted: bool = False


class Rule(Protocol):
    """How a weight is chosen among candidates, which come by increasing weight."""

    @property
    def of(self) -> Literal["representation", "scores"]:
        """What HSIC is measured on."""

    @property
    def confidence(self) -> float:
        """Confidence of the upper bounds."""

    @property
    def epsilon(self) -> float | None:
        """HSIC that the candidates' is held against, or None."""

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Return which candidates are admitted, the index of the one to take, and why."""


@dataclass(frozen=True)
class IndependenceRule:
    r"""The paper's: the smallest λ at which independence is not rejected, or HSIC is below ε.

    Parameters
    ----------
    level
        Of the test.
    epsilon
        HSIC below which dependence counts as negligible, or None. With many rows a test rejects anything; ε says
        what matters.
    of
        ``"representation"``: Z, for any head; ``"scores"``: the deployed head's alone.
    """

    level: float = 0.05
    epsilon: float | None = None
    of: Literal["representation", "scores"] = "representation"
    confidence: float = 0.95

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Take the smallest weight that is not rejected."""
        admitted = [c.pvalue > self.level or (self.epsilon is not None and c.hsic < self.epsilon) for c in candidates]
        if True in admitted:
            at = admitted.index(True)
            why = f"not rejected at level {self.level:g} (p = {candidates[at].pvalue:.3g})"
            if candidates[at].pvalue <= self.level:
                why = f"HSIC {candidates[at].hsic:.3g} is below epsilon = {self.epsilon:g}"
            return admitted, at, f"the smallest weight at which independence of the {self.of} holds: {why}"
        at = int(np.argmin([c.hsic for c in candidates]))
        return admitted, at, f"independence of the {self.of} is rejected at every weight; this one has the least HSIC"


@dataclass(frozen=True)
class TargetRule:
    r"""The best performance subject to a limit on dependence, GDP ≤ target or HSIC ≤ target.

    Parameters
    ----------
    target
        The limit: GDP in probabilities (or in the unit of y), or HSIC.
    measure
        ``"gdp"`` of the scores or ``"hsic"`` of what `of` says.
    confidence
        What must keep the limit is the one-sided upper bound of this confidence on the validation rows, because the
        best of a grid that keeps it by a hair there is as likely as not to miss it on other rows. 0.5 is no margin.
    of
        What HSIC is measured on: ``"representation"`` or ``"scores"``.
    """

    target: float
    measure: Literal["gdp", "hsic"] = "gdp"
    confidence: float = 0.95
    of: Literal["representation", "scores"] = "representation"

    @property
    def epsilon(self) -> float | None:
        """The target, where it is one of HSIC."""
        return self.target if self.measure == "hsic" else None

    def __post_init__(self) -> None:
        if not 0 < self.target < np.inf:
            raise ValueError(f"target={self.target!r}; pass a positive number.")
        if self.measure not in ("gdp", "hsic"):
            raise ValueError(f"measure={self.measure!r}; pass 'gdp' or 'hsic'.")

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Take the best performance among those within the limit."""
        bounds = [c.gdp_upper if self.measure == "gdp" else c.hsic_upper for c in candidates]
        admitted = [bound <= self.target for bound in bounds]
        if True not in admitted:
            at = int(np.argmin(bounds))
            why = (
                f"no weight keeps {self.measure} at {self.target:g} with confidence {self.confidence:g}; this one "
                f"has the least upper bound, {bounds[at]:.4g}"
            )
            return admitted, at, why
        at = _best([i for i, ok in enumerate(admitted) if ok], candidates, higher_is_better)
        why = (
            f"the best performance among weights whose {self.measure} is at most {self.target:g} with confidence "
            f"{self.confidence:g} (upper bound {bounds[at]:.4g})"
        )
        return admitted, at, why


@dataclass(frozen=True)
class PerformanceRule:
    r"""The least GDP within a loss of performance, relative to the unpenalised model.

    Parameters
    ----------
    loss
        Share of the unpenalised performance that may be given up: accuracy at least (1 − loss) times it, or an error
        at most (1 + loss) times it.
    """

    loss: float = 0.01
    of: Literal["representation", "scores"] = "representation"
    confidence: float = 0.95
    epsilon: None = None

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss={self.loss!r}; pass a share from 0 to 1, such as 0.01 for 1 %.")

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Take the least GDP among those within the loss."""
        base = candidates[0].performance
        floor = base * (1 - self.loss) if higher_is_better else base * (1 + self.loss)
        admitted = [c.performance >= floor if higher_is_better else c.performance <= floor for c in candidates]
        at = min((i for i, ok in enumerate(admitted) if ok), key=lambda i: candidates[i].gdp)
        return admitted, at, f"the least GDP with performance within {self.loss:.1%} of {base:.4g}, that of weight 0"


def _best(among: list[int], candidates: Sequence[Candidate], higher_is_better: bool) -> int:
    """Return the best performance's index; of equal ones the least GDP's."""
    sign = 1 if higher_is_better else -1
    return max(among, key=lambda i: (sign * candidates[i].performance, -candidates[i].gdp))
