"""scikit-learn's face: estimators that learn representations independent of continuous sensitive attributes."""

from frhsic.estimators.base import MissingSensitiveFeaturesWarning
from frhsic.estimators.classifier import ParityClassifier
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.names import PENALTY_NAMES, PenaltyName, penalty_named, variance_floor_of, weight_decay_of
from frhsic.estimators.path import fit_path
from frhsic.estimators.regressor import ParityRegressor
from frhsic.estimators.tables import TableEncoding

__all__ = [
    "PENALTY_NAMES",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityEncoder",
    "ParityRegressor",
    "PenaltyName",
    "TableEncoding",
    "fit_path",
    "penalty_named",
    "variance_floor_of",
    "weight_decay_of",
]
