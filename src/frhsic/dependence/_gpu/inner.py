"""Inner product of Gaussian Gram matrices of many batches with fixed matrices, and its gradient, in one GPU kernel.

Products take three passes of the matrix units in tf32, so that the result is that of PyTorch in float32 up to rounding.
"""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from frhsic.dependence._gpu import step_kernels

BLOCK = 64


def gaussian_inner(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value (...) and half its gradient (..., m, d), for centred z (..., m, d) and g that broadcasts."""
    *lead, m, d = z.shape
    g = g.expand(*lead, m, m)
    strides = g.stride()[:-2]
    if len(lead) > 2 or g.stride()[-2:] != (m, 1):
        g = g.contiguous()
        lead, strides = [g.shape[:-2].numel()], (m * m,)
    together = lead[-1] if lead else 1
    group, member = ((0, 0, *strides))[-2:]
    z = z.contiguous()
    rows, slope = torch.empty_like(z[..., 0]), torch.empty_like(z)
    batches = z.shape[:-2].numel()
    step_kernels.gaussian_inner[(-(-m // BLOCK), batches)](
        z, g, rows, slope, m, d, together, group, member,
        WIDTH=max(16, triton.next_power_of_2(d)), BLOCK=BLOCK, num_warps=4, num_stages=1,
    )  # fmt: skip
    return rows.sum(-1), slope
