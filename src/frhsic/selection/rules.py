"""Rules that choose a weight from performance and dependence on validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from frhsic.frontier import best_in_band, within_band
from frhsic.sentences import REASONS


@dataclass(frozen=True)
class Candidate:
    """One weight of the grid, measured on validation rows.

    Attributes
    ----------
    weight
        λ.
    performance
        Accuracy or mean squared error, or the metric of `scoring`.
    gdp, gdp_upper
        GDP of the scores for the worst attribute, in probabilities or in the unit of y, and its one-sided upper
        confidence bound.
    hsic, hsic_upper
        Biased HSIC between Z or the scores, as the rule says, and the attributes, with Gaussian kernels at median
        bandwidths; and its upper bound, NaN if the rule does not use HSIC.
    pvalue
        p-value of the gamma test of independence.
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
    """How a weight is chosen among candidates in order of increasing weight."""

    @property
    def of(self) -> Literal["representation", "scores"]:
        """What HSIC is measured on."""

    @property
    def confidence(self) -> float:
        """Confidence of the upper bounds."""

    @property
    def epsilon(self) -> float | None:
        """HSIC to compare the candidates with, or None."""

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Return which candidates are admitted, the index of the one to take, and why."""


@dataclass(frozen=True)
class IndependenceRule:
    r"""Rule of the paper: the smallest λ at which independence is not rejected, or HSIC is below ε.

    Parameters
    ----------
    level
        Level of the test.
    epsilon
        HSIC below which dependence counts as negligible, or None. With many rows a test rejects any dependence,
        however small.
    of
        ``"representation"`` tests Z, for any head; ``"scores"`` tests the scores of the deployed head alone.
    """

    level: float = 0.05
    epsilon: float | None = None
    of: Literal["representation", "scores"] = "representation"
    confidence: float = 0.95

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Choose the smallest weight that is not rejected."""
        admitted = [c.pvalue > self.level or (self.epsilon is not None and c.hsic < self.epsilon) for c in candidates]
        if True in admitted:
            at = admitted.index(True)
            key = "not_rejected" if candidates[at].pvalue > self.level else "below_epsilon"
        else:
            at, key = int(np.argmin([c.hsic for c in candidates])), "rejected"
        reason = REASONS[key].format(of=self.of, level=self.level, epsilon=self.epsilon, candidate=candidates[at])
        return admitted, at, reason


@dataclass(frozen=True)
class TargetRule:
    r"""The best performance subject to a limit on dependence, GDP ≤ target or HSIC ≤ target.

    Parameters
    ----------
    target
        The limit: GDP in probabilities (or in the unit of y), or HSIC.
    measure
        ``"gdp"`` of the scores, or ``"hsic"``.
    confidence
        Confidence that all admitted weights keep the limit. The one-sided upper bound of this confidence on the
        validation rows is compared with the limit, from the largest weight down, and the first weight that misses it
        ends the search (fixed-sequence testing). 0.5 is no margin.
    of
        What HSIC is measured on: ``"representation"`` or ``"scores"``.
    """

    target: float
    measure: Literal["gdp", "hsic"] = "gdp"
    confidence: float = 0.95
    of: Literal["representation", "scores"] = "representation"

    @property
    def epsilon(self) -> float | None:
        """The target, if it limits HSIC."""
        return self.target if self.measure == "hsic" else None

    def __post_init__(self) -> None:
        if not 0 < self.target < np.inf:
            raise ValueError(f"target={self.target!r}; pass a positive number.")
        if self.measure not in ("gdp", "hsic"):
            raise ValueError(f"measure={self.measure!r}; pass 'gdp' or 'hsic'.")

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Choose the best performance among the weights that keep the limit, as do all larger ones."""
        bounds = [c.gdp_upper if self.measure == "gdp" else c.hsic_upper for c in candidates]
        # from the largest weight down: the order is fixed beforehand, so the confidence holds for all that are admitted
        admitted = [all(bound <= self.target for bound in bounds[i:]) for i in range(len(bounds))]
        if True in admitted:
            sign = 1 if higher_is_better else -1
            inside = [i for i, ok in enumerate(admitted) if ok]
            at = max(inside, key=lambda i: (sign * candidates[i].performance, -candidates[i].gdp))
        else:
            at = int(np.argmin(bounds))
        reason = REASONS["within_target" if admitted[at] else "above_target"].format(
            measure=self.measure, target=self.target, confidence=self.confidence, bound=bounds[at]
        )
        return admitted, at, reason


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
        """Choose the least GDP among those within the loss."""
        baseline = candidates[0].performance
        admitted = [within_band(c.performance, baseline, self.loss, higher_is_better) for c in candidates]
        at, inside = best_in_band(
            [c.performance for c in candidates],
            [c.gdp for c in candidates],
            baseline=baseline,
            band=self.loss,
            higher_is_better=higher_is_better,
        )
        key = "within_band" if inside else "outside_band"
        return admitted, at, REASONS[key].format(loss=self.loss, baseline=baseline)
