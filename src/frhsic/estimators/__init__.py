"""scikit-learn's face: estimators that learn representations independent of continuous sensitive attributes."""

from frhsic.estimators.base import MissingSensitiveFeaturesWarning
from frhsic.estimators.classifier import ParityClassifier
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.metrics import equal_opportunity_gdp, gdp_difference, standardized_gdp_difference
from frhsic.estimators.names import PENALTY_NAMES, PenaltyName, penalty_named, variance_floor_of, weight_decay_of
from frhsic.estimators.path import fit_path
from frhsic.estimators.persistence import describe, load, save
from frhsic.estimators.regressor import ParityRegressor
from frhsic.tables import Category, Number, TableEncoding

__all__ = [
    "PENALTY_NAMES",
    "Category",
    "MissingSensitiveFeaturesWarning",
    "Number",
    "ParityClassifier",
    "ParityEncoder",
    "ParityRegressor",
    "PenaltyName",
    "TableEncoding",
    "describe",
    "equal_opportunity_gdp",
    "fit_path",
    "gdp_difference",
    "load",
    "penalty_named",
    "save",
    "standardized_gdp_difference",
    "variance_floor_of",
    "weight_decay_of",
]
