"""HSIC and FREM on all rows at once."""

from __future__ import annotations

from functools import partial

from frhsic.penalties import EIPM
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.grid import Grid, Method, by_name, held_out
from frhsic_paper.protocol import OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """Return HSIC and FREM with one batch of all training rows."""
    methods = (*by_name("frhsic", OWN), Method("frem, all anchors", partial(EIPM, anchors=None)))
    return Grid("full-batch", ("crime",), methods, PAPER_WEIGHTS, 5, held_out(protocol), epochs=1000, batch_size=None)


STUDY = Study(
    name="full-batch",
    about="HSIC and FREM on all rows at once",
    title="HSIC and FREM on all rows at once",
    words="Crime, one batch of all training rows, 1,000 epochs.",
    train=(Training(grid),),
    tables=tables_of_variants("full-batch"),
    published=False,
)
