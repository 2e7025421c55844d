"""HSIC and FREM on all rows at once."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="full-batch",
    about="HSIC and FREM on all rows at once",
    title="HSIC and FREM on all rows at once",
    words="Crime, one batch of all training rows, 1,000 epochs.",
    train=tuple(map(Training, GRIDS["full-batch"])),
    tables=tables_of_variants("full-batch"),
    published=False,
)
