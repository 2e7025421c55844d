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

import triton
import triton.language as tl
from torch import Tensor

from frhsic.dependence._gpu import Weights

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
    _factor[(batches,)](z, mean, scale, factor, m, d, weights.ridge, weights.least, **sizes)
    _whiten[(blocks, batches)](
        z, mean, scale, factor, scores, s, white, half, of_s, head, of_scores,
        m, d, c, q, together, group, member, HEAD=HEAD, SCORED=c > 0, **sizes,
    )  # fmt: skip
    _pairs[(blocks, batches)](
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
    _pull_back[(blocks, batches)](
        z.contiguous(), *parts, upstream.contiguous(), to_z, to_scores, m, d, scores.shape[-1], blocks,
        weights.ridge, weights.least, weights.head,
        HEAD=HEAD, SCORED=scores.shape[-1] > 0, WIDTH=width, BLOCK=BLOCK, num_warps=WARPS, num_stages=1,
    )  # fmt: skip
    return to_z, to_scores


@triton.jit
def _product(a, b):
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def _tile(x, i, WIDTH: tl.constexpr):
    """Place of rows i of a padded matrix."""
    return x + i[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]


@triton.jit
def _square(x, b, WIDTH: tl.constexpr):
    """Place of the b-th of many square matrices."""
    return _tile(x + b * WIDTH * WIDTH, tl.arange(0, WIDTH), WIDTH)


@triton.jit
def _attribute(s, i, j, m, q):
    """Gaussian of bandwidth 1 on rows of s."""
    square = tl.zeros([i.shape[0], j.shape[0]], tl.float32)
    for c in range(q):
        left = tl.load(s + i * q + c, mask=i < m, other=0.0)
        right = tl.load(s + j * q + c, mask=j < m, other=0.0)
        difference = left[:, None] - right[None, :]
        square += difference * difference
    return tl.exp(square * -0.5)


@triton.jit
def _factor(z, mean, scale, factor, m, d, ridge, least, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and 1 / standard deviation of the columns, and the inverse Cholesky factor of their correlations."""
    b = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, WIDTH)
    batch = z + b * m * d
    total = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        there = (i[:, None] < m) & (c[None, :] < d)
        total += tl.load(batch + i[:, None] * d + c[None, :], mask=there, other=0.0)
    center = tl.sum(total, 0) / m
    matrix = tl.zeros([WIDTH, WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        there = (i[:, None] < m) & (c[None, :] < d)
        rows = tl.load(batch + i[:, None] * d + c[None, :], mask=there, other=0.0)
        rows = tl.where(there, rows - center[None, :], 0.0)
        matrix += _product(tl.trans(rows), rows)
    matrix = matrix / m
    r = tl.arange(0, WIDTH)
    diagonal = r[:, None] == c[None, :]
    of_columns = tl.rsqrt(tl.maximum(tl.sum(tl.where(diagonal, matrix, 0.0), 0), least))
    of_rows = tl.rsqrt(tl.maximum(tl.sum(tl.where(diagonal, matrix, 0.0), 1), least))
    matrix = matrix * of_rows[:, None] * of_columns[None, :] + tl.where(diagonal, ridge, 0.0)
    # Eliminate below the pivots. Where a column becomes 0, the inverse of the unit lower factor takes its place.
    for k in tl.range(0, d):
        row = tl.sum(tl.where(r[:, None] == k, matrix, 0.0), 0)
        column = tl.sum(tl.where(c[None, :] == k, matrix, 0.0), 1)
        pivot = tl.sum(tl.where(r == k, column, 0.0), 0)
        times = tl.where(r > k, column / pivot, 0.0)
        below = (r[:, None] > k) & (c[None, :] == k)
        matrix = tl.where(below, -times[:, None], matrix - times[:, None] * row[None, :])
    pivots = tl.sum(tl.where(diagonal, matrix, 0.0), 1)
    matrix = tl.where(diagonal, 1.0, tl.where(r[:, None] > c[None, :], matrix, 0.0)) * tl.rsqrt(pivots)[:, None]
    matrix = tl.where((r[:, None] < d) & (c[None, :] < d), matrix, 0.0)
    tl.store(_square(factor, b, WIDTH), matrix)
    tl.store(mean + b * WIDTH + c, center)
    tl.store(scale + b * WIDTH + c, of_columns)


@triton.jit
def _standardized(z, mean, scale, b, i, m, d, WIDTH: tl.constexpr):
    c = tl.arange(0, WIDTH)
    there = (i[:, None] < m) & (c[None, :] < d)
    rows = tl.load(z + b * m * d + i[:, None] * d + c[None, :], mask=there, other=0.0)
    rows = (rows - tl.load(mean + b * WIDTH + c)[None, :]) * tl.load(scale + b * WIDTH + c)[None, :]
    return tl.where(there, rows, 0.0)


@triton.jit
def _whiten(
    z, mean, scale, factor, scores, s, white, half, of_s, head, of_scores,
    m, d, columns, q, together, stride_group, stride_member,
    HEAD: tl.constexpr, SCORED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Whitened rows, half their squared norms, row means of L, L times centred scores, and its share of HSIC."""
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    padded = tl.num_programs(0) * BLOCK
    own = _standardized(z, mean, scale, b, i, m, d, WIDTH)
    own = _product(own, tl.trans(tl.load(_square(factor, b, WIDTH))))
    tl.store(_tile(white + b * padded * WIDTH, i, WIDTH), own)
    tl.store(half + b * padded + i, 0.5 * tl.sum(own * own, 1))
    attribute = s + (b // together) * stride_group + (b % together) * stride_member
    total = tl.zeros([BLOCK], tl.float32)
    of_head = tl.zeros([BLOCK, HEAD], tl.float32)
    k = tl.arange(0, HEAD)
    batch = scores + b * m * columns
    center = tl.zeros([HEAD], tl.float32)
    if SCORED:
        sums = tl.zeros([BLOCK, HEAD], tl.float32)
        for start in tl.range(0, m, BLOCK):
            j = start + tl.arange(0, BLOCK)
            inside = (j[:, None] < m) & (k[None, :] < columns)
            sums += tl.load(batch + j[:, None] * columns + k[None, :], mask=inside, other=0.0)
        center = tl.sum(sums, 0) / m
    for start in tl.range(0, m, BLOCK):
        j = start + tl.arange(0, BLOCK)
        l = tl.where(j[None, :] < m, _attribute(attribute, i, j, m, q), 0.0)
        total += tl.sum(l, 1)
        if SCORED:
            inside = (j[:, None] < m) & (k[None, :] < columns)
            other = tl.load(batch + j[:, None] * columns + k[None, :], mask=inside, other=0.0)
            of_head += _product(l, tl.where(inside, other - center[None, :], 0.0))
    tl.store(of_s + b * padded + i, tl.where(i < m, total / m, 0.0))
    if SCORED:
        inside = (i[:, None] < m) & (k[None, :] < columns)
        score = tl.load(batch + i[:, None] * columns + k[None, :], mask=inside, other=0.0)
        score = tl.where(inside, score - center[None, :], 0.0)
        of_head = tl.where(inside, of_head, 0.0)
        tl.store(_tile(head + b * padded * HEAD, i, HEAD), of_head)
        tl.store(of_scores + b * padded + i, tl.sum(of_head * score, 1))


@triton.jit
def _pairs(
    white, half, of_s, of_scores, s, slope, shares, partial,
    m, q, together, stride_group, stride_member, linear, gaussian, rate, weight,
    SCORED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """HSIC of a block of rows with all rows, and what its gradient needs."""
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    padded = tl.num_programs(0) * BLOCK
    white += b * padded * WIDTH
    half += b * padded
    of_s += b * padded
    attribute = s + (b // together) * stride_group + (b % together) * stride_member
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, m, BLOCK):
        total += tl.load(of_s + start + tl.arange(0, BLOCK))
    mean_i = tl.load(of_s + i) - tl.sum(total, 0) / m
    half_i = tl.load(half + i)
    own = tl.load(_tile(white, i, WIDTH))
    value = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    product = tl.zeros([BLOCK, WIDTH], tl.float32)
    for start in tl.range(0, m, PIECE):
        j = start + tl.arange(0, PIECE)
        l = _attribute(attribute, i, j, m, q) - mean_i[:, None] - tl.load(of_s + j)[None, :]
        l = tl.where((i[:, None] < m) & (j[None, :] < m), l, 0.0)
        other = tl.load(_tile(white, j, WIDTH))
        inner = _product(own, tl.trans(other))
        w = l * tl.exp((inner - half_i[:, None] - tl.load(half + j)[None, :]) * rate) * gaussian
        of_rows = tl.sum(w, 1)
        value += tl.sum(l * inner, 1) * linear + of_rows
        sums += of_rows
        product += _product(l * linear + w * rate, other)
    product -= (sums * rate)[:, None] * own
    tl.store(_tile(slope + b * padded * WIDTH, i, WIDTH), product)
    place = b * tl.num_programs(0) + tl.program_id(0)
    tl.store(_square(shares, place, WIDTH), _product(tl.trans(own), product))
    if SCORED:
        value += tl.load(of_scores + b * padded + i) * weight
    tl.store(partial + place, tl.sum(value, 0) / m / m)


@triton.jit
def _pull_back(
    z, white, factor, mean, scale, slope, shares, head, upstream, to_z, to_scores,
    m, d, columns, blocks, ridge, least, weight,
    HEAD: tl.constexpr, SCORED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradient of a block of rows."""
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, WIDTH)
    padded = tl.num_programs(0) * BLOCK
    times = tl.load(upstream + b) * 2 / m / m
    spread = tl.load(scale + b * WIDTH + c)
    matrix = tl.load(_square(factor, b, WIDTH))
    share = tl.zeros([WIDTH, WIDTH], tl.float32)
    for block in tl.range(0, blocks):
        share += tl.load(_square(shares, b * blocks + block, WIDTH))
    product = tl.load(_tile(slope + b * padded * WIDTH, i, WIDTH))
    product -= _product(tl.load(_tile(white + b * padded * WIDTH, i, WIDTH)), share) / m
    product = _product(product, matrix)
    # Variances that count as `least` do not change.
    of_ridge = ridge * tl.sum(matrix * _product(share, matrix), 0)
    of_ridge = tl.where(spread < tl.rsqrt(least + spread * 0.0), of_ridge / m, 0.0)
    product -= _standardized(z, mean, scale, b, i, m, d, WIDTH) * of_ridge[None, :]
    place = to_z + b * m * d + i[:, None] * d + c[None, :]
    tl.store(place, product * spread[None, :] * times, mask=(i[:, None] < m) & (c[None, :] < d))
    if SCORED:
        k = tl.arange(0, HEAD)
        place = to_scores + b * m * columns + i[:, None] * columns + k[None, :]
        head += b * padded * HEAD
        total = tl.zeros([BLOCK, HEAD], tl.float32)
        for block in tl.range(0, blocks):
            total += tl.load(_tile(head, block * BLOCK + tl.arange(0, BLOCK), HEAD))
        of_head = tl.load(_tile(head, i, HEAD)) - (tl.sum(total, 0) / m)[None, :]
        tl.store(place, of_head * (times * weight), mask=(i[:, None] < m) & (k[None, :] < columns))
