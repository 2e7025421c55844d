"""scikit-learn estimators that learn representations independent of continuous sensitive attributes."""

from frhsic.estimators.attributes import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning
from frhsic.estimators.base_scores import BasePerformance
from frhsic.estimators.bases import LeakingBaseWarning
from frhsic.estimators.boosted import BoostedTreesClassifier, BoostedTreesRegressor
from frhsic.estimators.classifier import ParityClassifier
from frhsic.estimators.coupling import ParityCoupling
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.path import fit_path
from frhsic.estimators.persistence import describe, load, save
from frhsic.estimators.regressor import ParityRegressor
from frhsic.penalty_names import PENALTIES, PENALTY_NAMES, penalty_named

__all__ = [
    "PENALTIES",
    "PENALTY_NAMES",
    "BasePerformance",
    "BoostedTreesClassifier",
    "BoostedTreesRegressor",
    "LeakingBaseWarning",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityCoupling",
    "ParityEncoder",
    "ParityRegressor",
    "UnlabelledRowsWarning",
    "describe",
    "fit_path",
    "load",
    "penalty_named",
    "save",
]
