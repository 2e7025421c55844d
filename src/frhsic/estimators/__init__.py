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
    from frhsic.estimators.path import fit_path
    from frhsic.estimators.persistence import describe, load, save
    from frhsic.estimators.regressor import ParityRegressor

__all__ = [
    "PENALTIES",
    "PENALTY_NAMES",
    "MissingSensitiveFeaturesWarning",
    "ParityClassifier",
    "ParityEncoder",
    "ParityRegressor",
    "describe",
    "fit_path",
    "load",
    "penalty_named",
    "save",
]

_HOMES = {
    "MissingSensitiveFeaturesWarning": "base",
    "ParityClassifier": "classifier",
    "ParityEncoder": "encoder",
    "ParityRegressor": "regressor",
    "describe": "persistence",
    "fit_path": "path",
    "load": "persistence",
    "save": "persistence",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'frhsic.estimators' has no attribute {name!r}")
    return getattr(import_module(f"frhsic.estimators.{_HOMES[name]}"), name)
