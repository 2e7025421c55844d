"""Generalized demographic parity: how far the mean score moves with a continuous sensitive attribute."""

from frhsic.parity.curve import ParityCurve, gdp_curve
from frhsic.parity.gap import ParityResult, gdp, gdp_by_attribute, standardized_gdp
from frhsic.parity.metrics import equal_opportunity_gdp, gdp_difference, standardized_gdp_difference
from frhsic.parity.smoothing import Weighting, evaluation_points, gdp_value, nadaraya_watson_weights

__all__ = [
    "ParityCurve",
    "ParityResult",
    "Weighting",
    "equal_opportunity_gdp",
    "evaluation_points",
    "gdp",
    "gdp_by_attribute",
    "gdp_curve",
    "gdp_difference",
    "gdp_value",
    "nadaraya_watson_weights",
    "standardized_gdp",
    "standardized_gdp_difference",
]
