"""scikit-learn estimators: predictors under parity in closed form, tables and representations
without S, networks.
"""

from frhsic.estimators.coupling import ParityCoupling
from frhsic.estimators.distilling import distill
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.frontier import Choice, Frontier, IndistinctGapWarning, UnmetLimitWarning
from frhsic.estimators.inputs import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning
from frhsic.estimators.network import FRHSICClassifier, FRHSICRegressor
from frhsic.estimators.parity import LeakingEstimatorWarning, ParityClassifier, ParityRegressor

__all__ = [
    "Choice",
    "FRHSICClassifier",
    "FRHSICRegressor",
    "Frontier",
    "IndistinctGapWarning",
    "LeakingEstimatorWarning",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityCoupling",
    "ParityEncoder",
    "ParityRegressor",
    "UnlabelledRowsWarning",
    "UnmetLimitWarning",
    "distill",
]
