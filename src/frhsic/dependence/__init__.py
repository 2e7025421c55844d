"""Measures of dependence between a representation and a sensitive attribute.

Names are imported on first use; torch is imported only with the names that need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic._lazy import lazy_attributes

if TYPE_CHECKING:
    from frhsic.dependence.distance import distance_correlation, distance_covariance
    from frhsic.dependence.exact import hsic, hsic_unbiased
    from frhsic.dependence.features import hsic_features
    from frhsic.dependence.information import mutual_information

__all__ = [
    "distance_correlation",
    "distance_covariance",
    "hsic",
    "hsic_features",
    "hsic_unbiased",
    "mutual_information",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "distance_correlation": "distance",
        "distance_covariance": "distance",
        "hsic": "exact",
        "hsic_features": "features",
        "hsic_unbiased": "exact",
        "mutual_information": "information",
    },
)
