"""The paper's own statistics. To measure, use :mod:`frhsic.dependence` and :mod:`frhsic.parity`."""

from frhsic_paper.statistics.conditional import binned_mmd, eipm
from frhsic_paper.statistics.hgr import kernel_hgr
from frhsic_paper.statistics.smoothed import SmoothedGap, smoothed_gdp

__all__ = ["SmoothedGap", "binned_mmd", "eipm", "kernel_hgr", "smoothed_gdp"]
