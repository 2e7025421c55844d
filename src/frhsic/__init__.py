"""Train and audit predictors and representations that barely depend on a continuous sensitive
attribute.

Names and modules are imported on first use, so ``import frhsic`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from frhsic._lazy import attribute
from frhsic._version import __version__

if TYPE_CHECKING:
    from frhsic.auditing import audit
    from frhsic.datasets import load_dataset
    from frhsic.dependence import hsic
    from frhsic.distilling import distill
    from frhsic.estimators import (
        FRHSICClassifier,
        FRHSICRegressor,
        ParityClassifier,
        ParityCoupling,
        ParityEncoder,
        ParityRegressor,
    )
    from frhsic.heads import probe_heads
    from frhsic.parity import gdp
    from frhsic.persistence import load, save
    from frhsic.selection import select_weight

__all__ = [
    "FRHSICClassifier",
    "FRHSICRegressor",
    "ParityClassifier",
    "ParityCoupling",
    "ParityEncoder",
    "ParityRegressor",
    "__version__",
    "audit",
    "distill",
    "gdp",
    "hsic",
    "load",
    "load_dataset",
    "probe_heads",
    "save",
    "select_weight",
]

_MODULES = (
    "auditing",
    "datasets",
    "dependence",
    "distributed",
    "estimators",
    "independence",
    "kernels",
    "parity",
    "penalties",
    "report",
    "selection",
    "tables",
    "training",
)
_HOMES = {
    "audit": "auditing",
    "gdp": "parity",
    "distill": "distilling",
    "hsic": "dependence",
    "load": "persistence",
    "load_dataset": "datasets",
    "save": "persistence",
    "select_weight": "selection",
    "probe_heads": "heads",
}
"""The module of each name that is not an estimator."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"frhsic.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'frhsic' has no attribute {name!r}")
    home = _HOMES.get(name, "estimators")
    return globals().setdefault(name, attribute(f"frhsic.{home}", name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
