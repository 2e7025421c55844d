"""Choose the weight of the penalty that meets a limit on validation rows, among models fitted with
a grid of weights.
"""

from frhsic.selection.weights import LowGainWarning, Selection, select_weight

__all__ = ["LowGainWarning", "Selection", "select_weight"]
