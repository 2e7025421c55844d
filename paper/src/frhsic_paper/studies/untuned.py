"""Two datasets on which nothing was tuned; the page of penalty tables shows it."""

from __future__ import annotations

from functools import partial

from frhsic_paper.reproduction import trained
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="untuned",
    about="two datasets on which nothing was tuned",
    train=(partial(trained, "untuned"),),
    published=False,
)
