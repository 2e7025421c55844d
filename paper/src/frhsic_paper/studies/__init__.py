"""The studies, one module each. A module of this package with a `STUDY` is found: to add a study is
to add a file.
"""

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
"""Order of the pages, in which "all" runs the studies; a study that is not named comes last."""


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of this package."""
    return (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))


def collect_studies(modules: Iterable[ModuleType]) -> tuple[Study, ...]:
    """Return the studies of some modules, in the order of the pages."""
    studies = [module.STUDY for module in modules if hasattr(module, "STUDY")]
    return tuple(sorted(studies, key=lambda s: PAGE.index(s.name) if s.name in PAGE else len(PAGE)))


STUDIES = collect_studies(modules())
