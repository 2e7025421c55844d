"""The sweep on a grid twice as dense; the page of penalty tables shows it."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="dense",
    about="the sweep on a grid twice as dense",
    train=tuple(map(Training, GRIDS["dense"])),
    published=False,
)
