"""scikit-learn estimators that learn representations independent of continuous sensitive attributes.

The names below are imported when they are first used, so that the names of penalties can be listed without PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from frhsic.estimators.names import PENALTIES, PENALTY_NAMES, penalty_named

if TYPE_CHECKING:
    from frhsic.estimators.base import MissingSensitiveFeaturesWarning
    from frhsic.estimators.classifier import ParityClassifier
    from frhsic.estimators.encoder import ParityEncoder
    from frhsic.estimators.metrics import equal_opportunity_gdp, gdp_difference, standardized_gdp_difference
    from frhsic.estimators.path import fit_path
    from frhsic.estimators.regressor import ParityRegressor
    from frhsic.estimators.tables import TableEncoding

__all__ = [
    "PENALTIES",
    "PENALTY_NAMES",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityEncoder",
    "ParityRegressor",
    "TableEncoding",
    "equal_opportunity_gdp",
    "fit_path",
    "gdp_difference",
    "penalty_named",
    "standardized_gdp_difference",
]

_HOMES = {
    "MissingSensitiveFeaturesWarning": "base",
    "ParityClassifier": "classifier",
    "ParityEncoder": "encoder",
    "ParityRegressor": "regressor",
    "TableEncoding": "tables",
    "equal_opportunity_gdp": "metrics",
    "fit_path": "path",
    "gdp_difference": "metrics",
    "standardized_gdp_difference": "metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'frhsic.estimators' has no attribute {name!r}")
    return getattr(import_module(f"frhsic.estimators.{_HOMES[name]}"), name)
