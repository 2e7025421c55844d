"""Sums over pairs of rows on a GPU, by kernels written in Triton, for rows given in float32.

:func:`usable` is the one place that decides. :func:`pair` and :func:`one` return None if the rows are not on a GPU, if
Triton is missing, or if a kernel is none of those that the GPU kernels know. The caller then goes on with PyTorch in
float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from frhsic.kernels import Kernel

if TYPE_CHECKING:
    from frhsic.dependence._gpu.matrices import One, Pair
    from frhsic.dependence._gpu.step import Parts

FEW_COLUMNS = 128
"""Columns up to which a training step's Gram matrix is never written to memory."""

FEW_WHITENED = 64
"""Columns up to which all of a whitened training step is done at once: its inverse then fits one multiprocessor."""

FEW_SCORES = 16

FEWEST_ROWS = 1024
"""Rows from which the GPU kernels are quicker."""


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


def pair(x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel, w: Tensor) -> Pair | None:
    """Return the two Gram matrices for the GPU kernels, under weights w of shape (n,); None if they do not apply."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.matrices import Pair

    return Pair.of(x, y, kernel_k, kernel_l, w)


def one(x: Tensor, kernel: Kernel) -> One | None:
    """Return one Gram matrix for the GPU kernels; None if they do not apply."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.matrices import One

    return One.of(x, kernel)


def gaussian_inner(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return Σ G ∘ K of centred rows z (..., m, d) under a Gaussian of bandwidth 1, and half its gradient; or None."""
    if not (z.is_cuda and z.dtype == g.dtype == torch.float32 and z.shape[-1] <= FEW_COLUMNS and _has_triton()):
        return None
    from frhsic.dependence._gpu import inner

    return inner.gaussian_inner(z, g)


def fits_step(z: Tensor, scores: int) -> bool:
    """Return whether whitened batches (..., m, d) with this number of scores may go to :func:`whitened_hsic`."""
    few = z.shape[-1] <= FEW_WHITENED and scores <= FEW_SCORES
    return z.is_cuda and z.dtype == torch.float32 and few and _has_triton()


def whitened_hsic(z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> tuple[Tensor, Parts]:
    """Return HSIC (...) of batches z (..., m, d), whitened, with scores and s, and what its gradient needs."""
    from frhsic.dependence._gpu import step

    return step.value(z, scores, s, weights)


def whitened_gradient(
    z: Tensor, scores: Tensor, weights: Weights, parts: Sequence[Tensor], upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients of :func:`whitened_hsic` with respect to z and scores, times upstream (...)."""
    from frhsic.dependence._gpu import step

    return step.gradient(z, scores, weights, parts, upstream)


def usable(x: Tensor) -> bool:
    """Return whether rows like these may go to the GPU kernels."""
    return x.is_cuda and len(x) >= FEWEST_ROWS and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
