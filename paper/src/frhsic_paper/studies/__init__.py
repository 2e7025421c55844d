"""The studies, one module each. To add a study, add a file to this package that defines `STUDY`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from frhsic_paper.study import Study

__all__ = ["PAGE", "STUDIES", "collect_studies", "modules"]

PAGE = (
    "convergence",
    "tradeoff",
    "leak",
    "leaky-scaling",
    "transfer",
    "mutual-information",
    "runtime",
    "scaling",
    "synthetic",
    "equal-opportunity",
    "multi-attribute",
    "bound",
    "bandwidth-scaling",
    "high-dimensional",
    "ablation-kernel",
    "ablation-dimension",
    "weight-selection",
    "baseline-settings",
    "theorems",
)
"""Order of the pages, in which "all" also runs the studies; studies that aren't listed come
last.
"""


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of this package."""
    return (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))


def collect_studies(modules: Iterable[ModuleType]) -> tuple[Study, ...]:
    """Return the studies of the given modules, in page order."""
    studies = [module.STUDY for module in modules if hasattr(module, "STUDY")]
    return tuple(sorted(studies, key=lambda s: PAGE.index(s.name) if s.name in PAGE else len(PAGE)))


STUDIES = collect_studies(modules())
