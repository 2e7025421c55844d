"""Two datasets on which nothing was tuned; the page of penalty tables shows it."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="untuned",
    about="two datasets on which nothing was tuned",
    train=tuple(map(Training, GRIDS["untuned"])),
    published=False,
)
