"""Measures of dependence between a representation and a sensitive attribute."""

from frhsic.dependence.exact import hsic, hsic_summed, hsic_unbiased, minority_weights
from frhsic.dependence.features import Estimate, FeatureMaps, FeatureSums, draw_feature_maps, hsic_features

__all__ = [
    "Estimate",
    "FeatureMaps",
    "FeatureSums",
    "draw_feature_maps",
    "hsic",
    "hsic_features",
    "hsic_summed",
    "hsic_unbiased",
    "minority_weights",
]
