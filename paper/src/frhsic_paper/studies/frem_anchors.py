"""FREM with more and fewer anchors."""

from __future__ import annotations

from functools import partial

from frhsic.penalties import EIPM
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.grid import Grid, Method, held_out
from frhsic_paper.protocol import PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """Return FREM with each number of anchors."""
    methods = tuple(Method(f"{a} anchors", partial(EIPM, anchors=a)) for a in (8, 32, 128, 256))
    return Grid("frem-anchors", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, held_out(protocol))


STUDY = Study(
    name="frem-anchors",
    about="FREM: number of anchors",
    title="FREM: number of anchors",
    words="What the paper leaves for later: 8 to all 256 anchors a batch.",
    train=(Training(grid),),
    tables=tables_of_variants("frem-anchors"),
    published=False,
)
