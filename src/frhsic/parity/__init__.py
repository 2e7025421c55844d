"""Generalized demographic parity: how much the mean score varies with a continuous sensitive
attribute.
"""

from frhsic.parity.curve import ParityCurve, gdp_curve
from frhsic.parity.explained import correlation_ratio
from frhsic.parity.gap import (
    ParityResult,
    equal_opportunity_gdp,
    gdp,
    gdp_difference,
    rank_gap,
    standardized_gdp,
)

__all__ = [
    "ParityCurve",
    "ParityResult",
    "correlation_ratio",
    "equal_opportunity_gdp",
    "gdp",
    "gdp_curve",
    "gdp_difference",
    "rank_gap",
    "standardized_gdp",
]
