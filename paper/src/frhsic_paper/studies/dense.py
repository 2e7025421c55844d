"""The sweep on a grid twice as dense; the page of penalty tables shows it."""

from __future__ import annotations

from functools import partial

from frhsic_paper.reproduction import trained
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="dense",
    about="the sweep on a grid twice as dense",
    train=(partial(trained, "dense"),),
    published=False,
)
