"""Choose the weight of the penalty on validation rows, by a limit, from models of a whole grid of
weights.
"""

from frhsic.selection.weights import LowGainWarning, Selection, select_weight

__all__ = ["LowGainWarning", "Selection", "select_weight"]
