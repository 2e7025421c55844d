"""Sums over pairs of rows on a GPU, by kernels written in Triton, for rows given in float32.

:func:`usable` is the one place that decides. :func:`pair` and :func:`one` return None if the rows are not on a GPU, if
Triton is missing, or if a kernel is none of those that the GPU kernels know. The caller then goes on with PyTorch in
float64.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from frhsic.kernels import Kernel

if TYPE_CHECKING:
    from frhsic.dependence._gpu.matrices import One, Pair

FEW_COLUMNS = 128
"""Columns up to which a training step's Gram matrix is never written to memory."""

FEWEST_ROWS = 1024
"""Rows from which the GPU kernels are quicker."""


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


def usable(x: Tensor) -> bool:
    """Return whether rows like these may go to the GPU kernels."""
    return x.is_cuda and len(x) >= FEWEST_ROWS and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
