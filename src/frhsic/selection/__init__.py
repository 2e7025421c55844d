"""Choose the weight of the penalty on validation rows, by a stated rule."""

from frhsic.selection.rules import Candidate, IndependenceRule, PerformanceRule, Rule, TargetRule
from frhsic.selection.select import (
    WEIGHTS,
    Evaluation,
    Selection,
    UnmetTargetWarning,
    select_weight,
)

__all__ = [
    "WEIGHTS",
    "Candidate",
    "Evaluation",
    "IndependenceRule",
    "PerformanceRule",
    "Rule",
    "Selection",
    "TargetRule",
    "UnmetTargetWarning",
    "select_weight",
]
