"""scikit-learn estimators: predictors under parity in closed form, tables and representations
without S, networks.
"""

from frhsic.estimators.coupling import ParityCoupling
from frhsic.estimators.distilling import Distilled, distill
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.inputs import MissingSensitiveFeaturesWarning
from frhsic.estimators.network import (
    FRHSICClassifier,
    FRHSICRegressor,
    UnlabelledRowsWarning,
    fit_path,
)
from frhsic.estimators.parity import LeakingEstimatorWarning, ParityClassifier, ParityRegressor
from frhsic.estimators.tradeoffs import Choice, IndistinctGapWarning, TradeOffs, UnmetLimitWarning

__all__ = [
    "Choice",
    "Distilled",
    "FRHSICClassifier",
    "FRHSICRegressor",
    "IndistinctGapWarning",
    "LeakingEstimatorWarning",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityCoupling",
    "ParityEncoder",
    "ParityRegressor",
    "TradeOffs",
    "UnlabelledRowsWarning",
    "UnmetLimitWarning",
    "distill",
    "fit_path",
]
