"""Rules that choose a weight from performance and dependence on validation rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from frhsic.formatting import chance, figure, percent, stated, upper_figure
from frhsic.selection.reasons import REASONS

LEAST_GAIN = 0.25
"""Share of the unpenalised model's gain over a constant that a chosen model should keep at least."""


@dataclass(frozen=True)
class Candidate:
    """One weight of the grid, measured on validation rows.

    Attributes
    ----------
    weight
        λ.
    performance
        Log loss or mean squared error, or the metric of `scoring`.
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
    gain
        Share of the unpenalised model's gain over a constant predictor that is kept, by `performance`: 1 for weight 0,
        0 for a constant. NaN if the unpenalised model does not beat the constant.
    beats_constant
        Whether log loss, or the mean squared error of a regressor, is below that of the constant.
    accuracy, auc, calibration_error
        As in :class:`Performance`.
    """

    weight: float
    performance: float
    gdp: float
    gdp_upper: float
    hsic: float
    hsic_upper: float
    pvalue: float
    accepted: bool = False
    gain: float = math.nan
    beats_constant: bool = True
    accuracy: float = math.nan
    auc: float = math.nan
    calibration_error: float = math.nan


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

    @property
    def least_gain(self) -> float:
        """Share of the unpenalised gain below which a chosen model is not taken without a warning."""

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
        ``"representation"`` tests Z, for any head; ``"scores"`` tests the scores of the deployed head alone, as is
        done for a model without `transform`.
    least_gain
        A chosen model that keeps less than this share of the unpenalised model's gain over a constant does not count
        as satisfying, and gives a warning.
    """

    level: float = 0.05
    epsilon: float | None = None
    of: Literal["representation", "scores"] = "representation"
    confidence: float = 0.95
    least_gain: float = LEAST_GAIN

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Choose the smallest weight that is not rejected."""
        admitted = [c.pvalue > self.level or (self.epsilon is not None and c.hsic < self.epsilon) for c in candidates]
        if True in admitted:
            at = admitted.index(True)
            key = "not_rejected" if candidates[at].pvalue > self.level else "below_epsilon"
        else:
            at, key = int(np.argmin([c.hsic for c in candidates])), "rejected"
        reason = REASONS[key].format(
            of=self.of,
            level=stated(self.level),
            epsilon="" if self.epsilon is None else stated(self.epsilon),
            hsic=figure(candidates[at].hsic),
            pvalue=chance(candidates[at].pvalue),
        )
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
    least_gain
        As in :class:`IndependenceRule`: a limit that only a near-constant model keeps is not met silently.
    """

    target: float
    measure: Literal["gdp", "hsic"] = "gdp"
    confidence: float = 0.95
    of: Literal["representation", "scores"] = "representation"
    least_gain: float = LEAST_GAIN

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
            measure=self.measure.upper(),
            target=stated(self.target),
            confidence=percent(self.confidence),
            bound=upper_figure(bounds[at]),
        )
        return admitted, at, reason


@dataclass(frozen=True)
class PerformanceRule:
    r"""The least GDP within a loss of performance, counted from a constant predictor up.

    A weight is admitted if its model keeps at least the share 1 − loss of the unpenalised model's gain over a constant
    (:attr:`Candidate.gain`). A share of the performance itself would not do: where one outcome is rare, a constant has
    nearly the accuracy of the best model.

    Parameters
    ----------
    loss
        Share of the unpenalised model's gain that may be given up.
    """

    loss: float = 0.2
    of: Literal["representation", "scores"] = "representation"
    confidence: float = 0.95
    epsilon: None = None

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss={self.loss!r}; pass a share from 0 to 1, such as 0.2 for 20 % of the gain.")

    @property
    def least_gain(self) -> float:
        """The share of the gain that is to be kept."""
        return 1 - self.loss

    def choose(self, candidates: Sequence[Candidate], higher_is_better: bool) -> tuple[list[bool], int, str]:
        """Choose the least GDP among those within the loss; if there is none, the best performance."""
        admitted = [c.gain >= self.least_gain for c in candidates]
        if True in admitted:
            at = min((i for i, ok in enumerate(admitted) if ok), key=lambda i: candidates[i].gdp)
        else:
            sign = 1 if higher_is_better else -1
            at = max(range(len(candidates)), key=lambda i: sign * candidates[i].performance)
        within = "within_loss" if candidates[at].weight > 0 else "unpenalised"
        reason = REASONS[within if admitted[at] else "outside_loss"]
        return admitted, at, reason.format(keep=percent(self.least_gain), gain=percent(candidates[at].gain))
