"""HSIC and FREM on all rows at once."""

from __future__ import annotations

from functools import partial

from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.reproduction import trained
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="full-batch",
    about="HSIC and FREM on all rows at once",
    title="HSIC and FREM on all rows at once",
    words="Crime, one batch of all training rows, 1,000 epochs.",
    train=(partial(trained, "full-batch"),),
    tables=tables_of_variants("full-batch"),
    published=False,
)
