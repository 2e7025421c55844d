"""HSIC with every kernel on the representation."""

from __future__ import annotations

from functools import partial

from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.reproduction import trained
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="kernels-on-z",
    about="HSIC: every kernel on Z",
    title="HSIC: every kernel on the representation",
    words="The same statistic with other kernels on Z, and with the head's output in the kernel.",
    train=(partial(trained, "kernels-on-z"),),
    tables=tables_of_variants("kernels-on-z"),
    published=False,
)
