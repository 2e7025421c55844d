"""Kernels written in Triton, which is imported only where :mod:`frhsic.dependence._device` chooses them."""

from __future__ import annotations

from typing import NamedTuple


class Weights(NamedTuple):
    """Factors of the linear and the Gaussian kernel on whitened rows and of the head, and how whitening is bounded.

    Whitened rows are divided by the root of twice their number of columns. `rate` is 1 / bandwidth² of the Gaussian.
    Variances below `least` count as that, and `ridge` is added to each eigenvalue of the correlation matrix.
    """

    linear: float
    gaussian: float
    rate: float
    head: float
    ridge: float
    least: float
