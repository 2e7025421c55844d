"""Choose the weight of the penalty on validation rows, by a stated rule."""

from frhsic.calibration import calibration_error
from frhsic.selection.performance import Performance, Scoring
from frhsic.selection.results import Evaluation, Selection
from frhsic.selection.rules import Candidate, IndependenceRule, PerformanceRule, Rule, TargetRule
from frhsic.selection.select import WEIGHTS, LowGainWarning, UnmetTargetWarning, select_weight

__all__ = [
    "WEIGHTS",
    "Candidate",
    "Evaluation",
    "IndependenceRule",
    "LowGainWarning",
    "Performance",
    "PerformanceRule",
    "Rule",
    "Scoring",
    "Selection",
    "TargetRule",
    "UnmetTargetWarning",
    "calibration_error",
    "select_weight",
]
