"""scikit-learn estimators: predictors with a parity limit, fitted in closed form; tables and
representations that are independent of S; and networks.

Networks, and with them torch, are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic._lazy import lazy_attributes
from frhsic.estimators.coupling import ParityCoupling
from frhsic.estimators.distilled import Distilled, DistilledClassifier
from frhsic.estimators.encoder import ParityEncoder
from frhsic.estimators.frontier import Choice, Frontier, IndistinctGapWarning, UnmetLimitWarning
from frhsic.estimators.inputs import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning
from frhsic.estimators.parity import ParityClassifier, ParityRegressor
from frhsic.estimators.predictor import JoinedStrataWarning, LeakingEstimatorWarning

if TYPE_CHECKING:
    from frhsic.estimators.network import FRHSICClassifier, FRHSICRegressor

__all__ = [
    "Choice",
    "Distilled",
    "DistilledClassifier",
    "FRHSICClassifier",
    "FRHSICRegressor",
    "Frontier",
    "IndistinctGapWarning",
    "JoinedStrataWarning",
    "LeakingEstimatorWarning",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityCoupling",
    "ParityEncoder",
    "ParityRegressor",
    "UnlabelledRowsWarning",
    "UnmetLimitWarning",
]

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "FRHSICClassifier": "network",
        "FRHSICRegressor": "network",
    },
)
