"""Two datasets on which nothing was tuned; the page of penalty tables shows it."""

from __future__ import annotations

from functools import partial

from frhsic_paper.grid import Grid, by_name, held_out, small_table
from frhsic_paper.protocol import METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """Two datasets on which nothing was tuned, 10,000 rows of each."""
    methods, source = by_name(*METHODS, OWN, protocol=protocol), partial(small_table, 10_000)
    return Grid("untuned", ("bank", "credit"), methods, PAPER_WEIGHTS, 10, held_out(protocol), source=source)


STUDY = Study(
    name="untuned",
    about="two datasets on which nothing was tuned",
    train=(Training(grid),),
    published=False,
)
