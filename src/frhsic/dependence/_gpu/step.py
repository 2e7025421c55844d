r"""HSIC of many whitened batches with a Gaussian attribute, and its gradient, in four GPU kernels.

Rows v are whitened by the inverse Cholesky factor of their correlation matrix R plus a ridge,
:math:`v = u L^{-\top}` with standardized rows u. They enter linear and Gaussian kernels through their inner products
alone. With the derivatives M of HSIC with respect to those, whose rows sum to 0, the gradient in u is
:math:`2 (M v - v v^\top M v / m) L^{-1}`, and the standard deviations add a multiple of u to it, as the ridge is one of
their squares. No m × m matrix is written to memory. Products take three passes of the matrix units in tf32, so that
results are those of PyTorch in float32 up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from frhsic.dependence._gpu import Weights, step_kernels

BLOCK = 64
HEAD = 16
"""Columns of scores, padded with zeros."""

PIECE = 32
"""Columns of a tile of pairs: more do not fit the registers."""

WARPS = 4


class Parts(NamedTuple):
    """What the gradient needs, for B batches of m rows, padded to blocks of rows and to a power of two of columns."""

    white: Tensor  # (B, M, W)
    factor: Tensor  # (B, W, W) inverse Cholesky factor of the correlation matrix plus ridge
    mean: Tensor  # (B, W)
    scale: Tensor  # (B, W) 1 / standard deviation
    slope: Tensor  # (B, M, W) M v
    shares: Tensor  # (B, blocks, W, W) vᵀ M v, by blocks of rows
    head: Tensor  # (B, M, 16) L times centred scores


def value(z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> tuple[Tensor, Parts]:
    """Return HSIC (...) of z (..., m, d), scores (..., m, c) and s (..., m, q), which broadcast, and the parts."""
    *lead, m, d = z.shape
    c, q = scores.shape[-1], s.shape[-1]
    z, scores = z.contiguous(), scores.expand(*lead, m, c).contiguous()
    s = s.expand(*lead, m, q)
    strides = s.stride()[:-2]
    if len(lead) > 2 or s.stride()[-2:] != (q, 1):
        s = s.contiguous()
        lead, strides = [s.shape[:-2].numel()], (m * q,)
    together = lead[-1] if lead else 1
    group, member = ((0, 0, *strides))[-2:]
    batches, blocks, width = z.shape[:-2].numel(), -(-m // BLOCK), max(16, triton.next_power_of_2(d))
    padded = blocks * BLOCK
    white, slope = (z.new_empty(batches, padded, width) for _ in range(2))
    factor, shares = z.new_empty(batches, width, width), z.new_empty(batches, blocks, width, width)
    mean, scale = z.new_empty(2, batches, width)
    half, of_s, of_scores = z.new_empty(3, batches, padded)
    head = z.new_empty(batches, padded if c else 0, HEAD)
    partial = z.new_empty(batches, blocks)
    sizes = {"WIDTH": width, "BLOCK": BLOCK, "num_warps": WARPS, "num_stages": 1}
    step_kernels.factor[(batches,)](z, mean, scale, factor, m, d, weights.ridge, weights.least, **sizes)
    step_kernels.whiten[(blocks, batches)](
        z, mean, scale, factor, scores, s, white, half, of_s, head, of_scores,
        m, d, c, q, together, group, member, HEAD=HEAD, SCORED=c > 0, **sizes,
    )  # fmt: skip
    step_kernels.pairs[(blocks, batches)](
        white, half, of_s, of_scores, s, slope, shares, partial, m, q, together, group, member,
        weights.linear / (2 * d), weights.gaussian, weights.rate / (2 * d), weights.head,
        SCORED=c > 0, PIECE=PIECE, **sizes,
    )  # fmt: skip
    return partial.sum(-1).view(z.shape[:-2]), Parts(white, factor, mean, scale, slope, shares, head)


def gradient(
    z: Tensor, scores: Tensor, weights: Weights, parts: Sequence[Tensor], upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the gradients with respect to z and scores, times upstream (...)."""
    m, d = z.shape[-2:]
    blocks, width, _ = Parts(*parts).shares.shape[-3:]
    batches = z.shape[:-2].numel()
    to_z, to_scores = z.new_empty(z.shape), z.new_empty(scores.shape)
    step_kernels.pull_back[(blocks, batches)](
        z.contiguous(), *parts, upstream.contiguous(), to_z, to_scores, m, d, scores.shape[-1], blocks,
        weights.ridge, weights.least, weights.head,
        HEAD=HEAD, SCORED=scores.shape[-1] > 0, WIDTH=width, BLOCK=BLOCK, num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    return to_z, to_scores


def gaussian_inner(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return Σ G ∘ K (...) under a Gaussian of bandwidth 1, and half its gradient (..., m, d).

    Rows z (..., m, d) are centred, and g broadcasts.
    """
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
