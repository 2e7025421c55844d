"""The sweep with the same weight decay and variance floor for every method; the page of penalty tables shows it."""

from __future__ import annotations

from frhsic_paper.grid import Grid, by_name, held_out
from frhsic_paper.protocol import DATASETS, METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """The sweep with weight decay and variance floor of this library's own method for all, to tell them from it."""
    methods = by_name(*METHODS, OWN, protocol=protocol)
    return Grid("same-terms", DATASETS, methods, PAPER_WEIGHTS, 10, held_out(protocol), like=OWN)


STUDY = Study(
    name="same-terms",
    about="every method with weight decay and variance floor of ours",
    train=(Training(grid),),
    published=False,
)
