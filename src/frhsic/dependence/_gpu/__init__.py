"""Kernels written in Triton, which is imported only where :mod:`frhsic.dependence.exact` chooses
them.
"""
