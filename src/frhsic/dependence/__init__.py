"""Measures of dependence between a representation and a sensitive attribute."""

from frhsic.dependence.conditional import binned_mmd, eipm
from frhsic.dependence.distance import distance_correlation, distance_covariance
from frhsic.dependence.exact import hsic, hsic_unbiased
from frhsic.dependence.features import hsic_features
from frhsic.dependence.hgr import kernel_hgr
from frhsic.dependence.information import mutual_information

__all__ = [
    "binned_mmd",
    "distance_correlation",
    "distance_covariance",
    "eipm",
    "hsic",
    "hsic_features",
    "hsic_unbiased",
    "kernel_hgr",
    "mutual_information",
]
