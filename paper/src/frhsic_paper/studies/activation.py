"""An activation after the encoder's second layer, which the paper's text leaves open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from torch import nn

from frhsic.training import MLP
from frhsic_paper.frontiers import variants_table
from frhsic_paper.grid import REPRESENTATION, Grid, by_name, held_out
from frhsic_paper.protocol import CORRECTED, METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.results import Results
from frhsic_paper.steps import Training
from frhsic_paper.study import Study
from frhsic_paper.table import Listed

ACTIVATIONS = {"none": None, "selu": "selu", "tanh": "tanh"}
"""Activations after the second layer; the reference code has none."""


def encoder(final: str | None, d: int) -> nn.Module:
    """Return the paper's encoder with an activation at its end."""
    return MLP(size=REPRESENTATION, final_activation=final)(d)


def grid(name: str, protocol: Protocol) -> Grid:
    """Return all methods with one activation."""
    methods = by_name(*METHODS, OWN, protocol=protocol)
    sweep = Grid("activation", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, held_out(protocol))
    return replace(sweep, encoder=partial(encoder, ACTIVATIONS[name]), part=name)


def tables(results: Results) -> Iterable[Listed]:
    """Return areas of all methods under each activation."""
    return [
        Listed(f"nAUP with {name} after the second layer", variants_table(records, CORRECTED.gdp))
        for name in ACTIVATIONS
        if (records := results.of(f"activation/{name}", CORRECTED.name))
    ]


STUDY = Study(
    name="activation",
    about="an activation after the second layer",
    title="An activation after the second layer",
    words="""
        The text says “with SELU activations”; the reference code has none after the second layer.
        Crime and COMPAS, five splits, every method.
    """,
    train=tuple(Training(partial(grid, name)) for name in ACTIVATIONS),
    tables=lambda results: list(tables(results)),
    published=False,
)
