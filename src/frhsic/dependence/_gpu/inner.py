"""Inner product of Gaussian Gram matrices of many batches with fixed matrices, and its gradient, in one GPU kernel.

Products take three passes of the matrix units in tf32, so that the result is that of PyTorch in float32 up to rounding.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

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
    _inner[(-(-m // BLOCK), batches)](
        z, g, rows, slope, m, d, together, group, member,
        WIDTH=max(16, triton.next_power_of_2(d)), BLOCK=BLOCK, num_warps=4, num_stages=1,
    )  # fmt: skip
    return rows.sum(-1), slope


@triton.jit
def _inner(
    z, g, rows, slope, m, d, together, stride_group, stride_member, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Row sums of G ∘ K for a Gaussian of bandwidth 1, and half the gradient of their sum, of one batch."""
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, WIDTH)
    batch = z + b * m * d
    own = tl.load(batch + i[:, None] * d + c[None, :], mask=(i[:, None] < m) & (c[None, :] < d), other=0.0)
    half = tl.sum(own * own, 1) * -0.5
    fixed = g + (b // together) * stride_group + (b % together) * stride_member
    of_rows = tl.zeros([BLOCK], tl.float32)
    total = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        j = start + tl.arange(0, BLOCK)
        other = tl.load(batch + j[:, None] * d + c[None, :], mask=(j[:, None] < m) & (c[None, :] < d), other=0.0)
        exponent = tl.dot(own, tl.trans(other), input_precision="tf32x3")
        exponent += half[:, None] + (tl.sum(other * other, 1) * -0.5)[None, :]
        there = (i[:, None] < m) & (j[None, :] < m)
        w = tl.exp(exponent) * tl.load(fixed + i[:, None] * m + j[None, :], mask=there, other=0.0)
        of_rows += tl.sum(w, 1)
        total += tl.dot(w, other, input_precision="tf32x3")
    tl.store(rows + b * m + i, of_rows, mask=i < m)
    place = slope + b * m * d + i[:, None] * d + c[None, :]
    tl.store(place, total - of_rows[:, None] * own, mask=(i[:, None] < m) & (c[None, :] < d))
