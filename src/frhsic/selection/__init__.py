"""Choose the weight of the penalty by a limit on validation rows, from models fitted on a grid of
weights.
"""

from frhsic.selection.weights import LowGainWarning, Selection, select_weight

__all__ = ["LowGainWarning", "Selection", "select_weight"]
