"""Where sums over pairs of rows are computed: by GPU kernels, or by PyTorch.

:func:`usable` is the one place that decides. GPU kernels are for rows in float32 on a GPU with Triton, and for Gaussian
kernels. Where they do not apply, functions here return None, and the caller goes on with PyTorch, in float64 for
statistics.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from frhsic.kernels import Kernel

if TYPE_CHECKING:  # Triton is not everywhere
    from frhsic.dependence._gpu.pairs import One, Pair

# Rows from which the GPU kernels of statistics are quicker, and columns that they take.
FEWEST_ROWS, MOST_COLUMNS = 1024, 512

# Columns up to which a training step's Gram matrix is never written to memory.
INNER_COLUMNS = 128


def usable(x: Tensor, *, rows: int = FEWEST_ROWS, columns: int = MOST_COLUMNS) -> bool:
    """Return whether x (..., m, d) may go to GPU kernels that take this many rows or more, and columns or fewer."""
    return x.is_cuda and x.shape[-2] >= rows and x.shape[-1] <= columns and _has_triton()


def pair(x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel, w: Tensor) -> Pair | None:
    """Return the two Gram matrices for the GPU kernels, under weights w of shape (n,), or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import Pair

    return Pair.of(x, y, kernel_k, kernel_l, w)


def one(x: Tensor, kernel: Kernel) -> One | None:
    """Return one Gram matrix for the GPU kernels, or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import One

    return One.of(x, kernel)


def gaussian_inner(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return Σ G ∘ K of centred rows z (..., m, d) under a Gaussian of bandwidth 1, and half its gradient; or None."""
    if not (z.dtype == g.dtype == torch.float32 and usable(z, rows=1, columns=INNER_COLUMNS)):
        return None
    from frhsic.dependence._gpu.pairs import gaussian_inner as on_gpu

    return on_gpu(z, g)


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None
