"""Choose the weight of the penalty on validation rows, by a stated rule."""

from frhsic.selection.choosing import LowGainWarning, Selection, UnmetTargetWarning, select_weight
from frhsic.selection.rules import Rule

__all__ = ["LowGainWarning", "Rule", "Selection", "UnmetTargetWarning", "select_weight"]
