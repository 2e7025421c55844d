"""Choose the weight of the penalty on validation rows, by a stated rule."""

from frhsic.selection.choosing import Evaluation, LowGainWarning, Selection, UnmetTargetWarning, select_weight
from frhsic.selection.rules import Candidate, Rule

__all__ = ["Candidate", "Evaluation", "LowGainWarning", "Rule", "Selection", "UnmetTargetWarning", "select_weight"]
