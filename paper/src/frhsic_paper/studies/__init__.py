"""The studies, one module each. A module of this package with a `STUDY` is found: to add a study is to add a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from frhsic_paper.study import Study

__all__ = ["PAGE", "STUDIES", "collected", "in_order", "modules"]

PAGE = (
    "convergence",
    "agreement",
    "tradeoff",
    "significance",
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
    "rank",
    "high-dimensional",
    "ablation-kernel",
    "ablation-dimension",
    "weight-selection",
    "frem-anchors",
    "bandwidth-sensitivity",
    "evaluator-bandwidth",
    "activation",
    "kernels-on-z",
    "full-batch",
    "theorems",
)
"""Order of the sections of the page; a study that is not named comes last."""

ALL = (
    "convergence",
    "significance",  # before the studies that read fewer repeats of the same sweep: so "all" trains it once
    "tradeoff",
    "agreement",
    "pareto",
    "pareto-summary",
    "mutual-information",
    "metrics-side-by-side",
    "leak",
    "transfer",
    *PAGE[PAGE.index("runtime") : PAGE.index("full-batch")],
    "theorems",
    "untuned",
    "same-terms",
    "dense",
    "full-batch",
    "leaky-scaling",
)
"""Order in which "all" runs the studies; a study that is not named comes last."""


def modules() -> Iterator[ModuleType]:
    """Import and yield the modules of this package."""
    return (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))


def collected(modules: Iterable[ModuleType]) -> tuple[Study, ...]:
    """Return the studies of some modules, in the order in which "all" runs them: each `STUDY` and its `ALIASES`."""
    studies = [
        study
        for module in modules
        if hasattr(module, "STUDY")
        for study in (module.STUDY, *getattr(module, "ALIASES", ()))
    ]
    return in_order(studies, ALL)


def in_order(studies: Iterable[Study], names: tuple[str, ...]) -> tuple[Study, ...]:
    """Return studies in the order of some names, others last.

    Examples
    --------
    >>> a, b, c = Study("a", ""), Study("b", ""), Study("c", "")
    >>> [study.name for study in in_order([a, b, c], ("c", "b"))]
    ['c', 'b', 'a']
    """
    return tuple(sorted(studies, key=lambda s: names.index(s.name) if s.name in names else len(names)))


STUDIES = collected(modules())
