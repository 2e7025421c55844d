"""HSIC with every kernel on the representation."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="kernels-on-z",
    about="HSIC: every kernel on Z",
    title="HSIC: every kernel on the representation",
    words="The same statistic with other kernels on Z, and with the head's output in the kernel.",
    train=tuple(map(Training, GRIDS["kernels-on-z"])),
    tables=tables_of_variants("kernels-on-z"),
    published=False,
)
