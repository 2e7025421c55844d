"""Kernels written in Triton, which is imported only where :mod:`frhsic.dependence._device` chooses them."""
