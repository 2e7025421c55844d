"""The sweep with the same weight decay and variance floor for every method; the page of penalty tables shows it."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="same-terms",
    about="every method with weight decay and variance floor of ours",
    train=tuple(map(Training, GRIDS["same-terms"])),
    published=False,
)
