"""Choosing the weight of the penalty: on validation rows, from one fleet, by a rule that is said."""

from frhsic.selection.rules import Candidate, IndependenceRule, PerformanceRule, Rule, TargetRule
from frhsic.selection.select import (
    WEIGHTS,
    Evaluation,
    Selection,
    UnmetTargetWarning,
    scores_of,
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
    "scores_of",
    "select_weight",
]
