"""GPU kernels of a training step; :mod:`frhsic.dependence._gpu.step` has their mathematics."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _product(a, b):
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def _single(x):
    """Return a number of the caller in single precision: torch.compile passes Python's floats as doubles."""
    return tl.cast(x, tl.float32)


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
def factor(z, mean, scale, factor, m, d, ridge, least, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Mean and 1 / standard deviation of the columns, and the inverse Cholesky factor of their correlations."""
    ridge, least = _single(ridge), _single(least)
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
def whiten(
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
def pairs(
    white, half, of_s, of_scores, s, slope, shares, partial,
    m, q, together, stride_group, stride_member, linear, gaussian, rate, weight,
    SCORED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, PIECE: tl.constexpr,
):  # fmt: skip
    """HSIC of a block of rows with all rows, and what its gradient needs."""
    linear, gaussian, rate, weight = _single(linear), _single(gaussian), _single(rate), _single(weight)
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
def pull_back(
    z, white, factor, mean, scale, slope, shares, head, upstream, to_z, to_scores,
    m, d, columns, blocks, ridge, least, weight,
    HEAD: tl.constexpr, SCORED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gradient of a block of rows."""
    ridge, least, weight = _single(ridge), _single(least), _single(weight)
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


@triton.jit
def gaussian_inner(
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
