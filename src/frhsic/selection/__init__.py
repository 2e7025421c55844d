"""Fit models with a grid of penalty weights, and choose a weight whose model meets a limit on
validation rows.
"""

from frhsic.selection.weights import LowGainWarning, Selection, select_weight

__all__ = ["LowGainWarning", "Selection", "select_weight"]
