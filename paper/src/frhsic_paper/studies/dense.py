"""The sweep on a grid twice as dense; the page of penalty tables shows it."""

from __future__ import annotations

from frhsic_paper.grid import Grid, by_name, held_out
from frhsic_paper.protocol import DATASETS, METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

BETWEEN = (0.03, 0.2, 0.7, 2.0, 7.0, 20.0, 70.0, 200.0)
"""Weights between those of the paper."""


def grid(protocol: Protocol) -> Grid:
    """The sweep with a weight between each two, to see how much of an area is where nine weights happen to lie."""
    weights = tuple(sorted((*PAPER_WEIGHTS, *BETWEEN)))
    return Grid("dense", DATASETS, by_name(*METHODS, OWN, protocol=protocol), weights, 5, held_out(protocol))


STUDY = Study(
    name="dense",
    about="the sweep on a grid twice as dense",
    train=(Training(grid),),
    published=False,
)
