"""Measures of dependence between a representation and a sensitive attribute."""

from frhsic.dependence.binned import binned_mean_difference, binned_mmd
from frhsic.dependence.conditional import eipm
from frhsic.dependence.distance import (
    distance_correlation,
    distance_correlation_unbiased,
    distance_covariance,
    distance_covariance_unbiased,
)
from frhsic.dependence.exact import hsic, hsic_summed, hsic_unbiased, minority_weights
from frhsic.dependence.features import Estimate, FeatureMaps, FeatureSums, draw_feature_maps, hsic_features
from frhsic.dependence.hgr import kernel_hgr
from frhsic.dependence.information import mutual_information

__all__ = [
    "Estimate",
    "FeatureMaps",
    "FeatureSums",
    "binned_mean_difference",
    "binned_mmd",
    "distance_correlation",
    "distance_correlation_unbiased",
    "distance_covariance",
    "distance_covariance_unbiased",
    "draw_feature_maps",
    "eipm",
    "hsic",
    "hsic_features",
    "hsic_summed",
    "hsic_unbiased",
    "kernel_hgr",
    "minority_weights",
    "mutual_information",
]
