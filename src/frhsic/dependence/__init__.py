"""Measures of dependence between a representation and a sensitive attribute."""

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
