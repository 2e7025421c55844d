"""The paper's own statistics. To measure, use :mod:`frhsic.dependence` and :mod:`frhsic.parity`."""

from frhsic_paper.statistics.conditional import eipm
from frhsic_paper.statistics.hgr import kernel_hgr

__all__ = ["eipm", "kernel_hgr"]
