"""FREM with more and fewer anchors."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="frem-anchors",
    about="FREM: number of anchors",
    title="FREM: number of anchors",
    words="What the paper leaves for later: 8 to all 256 anchors a batch.",
    train=tuple(map(Training, GRIDS["frem-anchors"])),
    tables=tables_of_variants("frem-anchors"),
    published=False,
)
