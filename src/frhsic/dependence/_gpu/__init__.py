"""GPU kernels, written in Triton, which is imported only when a kernel is used. The kernels are
used for float32 rows on a GPU if Triton is installed, and only for Gaussian kernels. Otherwise,
PyTorch is used, and statistics are computed in float64.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from frhsic.kernels import Kernel

if TYPE_CHECKING:  # Triton is optional
    from frhsic.dependence._gpu.pairs import KernelPair, One


# Fewest rows for which GPU kernels compute statistics faster, and most columns that they support.
FEWEST_ROWS = 1024
WIDEST = 512


def usable(x: Tensor, *, rows: int = FEWEST_ROWS, columns: int = WIDEST) -> bool:
    """Return whether x (..., m, d) can be passed to GPU kernels that require at least this many
    rows and at most this many columns.
    """
    return (
        x.is_cuda
        and x.shape[-2] >= rows
        and x.shape[-1] <= columns
        and find_spec("triton") is not None
    )


def pair(x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel) -> KernelPair | None:
    """Return the two Gram matrices for the GPU kernels, or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import KernelPair

    return KernelPair.from_rows(x, y, kernel_k, kernel_l)


def gram(x: Tensor, kernel: Kernel) -> One | None:
    """Return a Gram matrix for the GPU kernels, or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import One

    return One.from_rows(x, kernel)


def step_kernels(z: Tensor, columns: int) -> Any:
    """Return the module of GPU kernels for a training step on rows z (..., m, d) with at most the
    given number of columns, or None.
    """
    if not (z.dtype == torch.float32 and usable(z, rows=1, columns=columns)):
        return None
    from frhsic.dependence._gpu import step

    return step
