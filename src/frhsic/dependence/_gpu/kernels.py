"""GPU kernels: sums over pairs of rows under Gaussian kernels, and products of a Gram matrix with a
thin matrix.

Distances in many columns are computed by the GPU's matrix units. Each coordinate is the sum of two
float16 numbers, with 22 bits in total; all but the smallest of the four products are summed in
float32. This is as exact as three tf32 passes, at half the cost. Entries are float32. Entries minus
their mean are summed in float32 within a tile. Across tiles, sums are 64-bit integers, whose sum
does not depend on the order, or float64 in a fixed order.

Measured on an H200 against float64, d = 50: relative errors of HSIC are below 1e-7 for dependent
rows and 5e-7 for independent ones at n = 2¹⁷, where HSIC is 1e-6 times as large as its sums.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _exponential(m, FAST: tl.constexpr):
    """Return 2 to the power m. Denormal results are 0 in the fast version, which saves three
    instructions per pair.
    """
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [m], dtype=tl.float32, is_pure=True, pack=1
        )
    return tl.exp2(m)


@triton.jit
def _entries(
    product,
    x,
    stride,
    constant,
    scale,
    i,
    j,
    COLUMNS: tl.constexpr,
    SHIFTED: tl.constexpr,
    SCALED: tl.constexpr,
    MATRIX: tl.constexpr,
    FAST: tl.constexpr,
):
    """Return entries minus their constant. With MATRIX, `product` contains minus the squared
    distances; otherwise, x contains coordinates.

    Every instruction here is executed for each pair of rows: there is no multiplication by a scale
    of one, and the constant and the scale are loaded before the loop over tiles, because the atomic
    additions in the loop prevent the compiler from moving loads out of the loop.
    """
    m = product
    if not MATRIX:
        m = product * 0.0  # in the layout of the product, so that no tile changes its layout
        for c in range(COLUMNS):
            difference = tl.load(x + c * stride + i)[:, None] - tl.load(x + c * stride + j)[None, :]
            m -= difference * difference
    if SCALED:
        m = m * scale
    if SHIFTED:
        u = m * 0.6931471805599453
        series = 1 + u / 6 * (1 + u / 7 * (1 + u / 8))
        series = u * (1 + u / 2 * (1 + u / 3 * (1 + u / 4 * (1 + u / 5 * series))))
        return tl.where(tl.abs(u) < 0.5, series, _exponential(m, FAST) - 1) - constant
    return _exponential(m, FAST) - constant


@triton.jit
def halve(
    x,
    center,
    high,
    low,
    half,
    n,
    d,
    stride_row,
    stride_column,
    factor,
    WIDTH: tl.constexpr,
    SPAN: tl.constexpr,
    BI: tl.constexpr,
):
    """Center and scale rows, and write each coordinate as the sum of two float16 numbers."""
    i = tl.program_id(0).to(tl.int64) * BI + tl.arange(0, BI)
    c = tl.arange(0, SPAN)
    there = (i[:, None] < n) & (c[None, :] < d)
    rows = tl.load(
        x + i[:, None] * stride_row + c[None, :] * stride_column, mask=there, other=0.0
    ).to(tl.float64)
    rows = tl.where(
        there, (rows - tl.load(center + c, mask=c < d, other=0.0)[None, :]) * factor, 0.0
    )
    upper = rows.to(tl.float32).to(tl.float16)
    lower = (rows - upper.to(tl.float64)).to(tl.float32).to(tl.float16)
    place = i[:, None] * WIDTH + c[None, :]
    tl.store(high + place, upper, mask=c[None, :] < WIDTH)
    tl.store(low + place, lower, mask=c[None, :] < WIDTH)
    # of the product that the matrix units compute, so that equal rows are at distance 0
    product = upper.to(tl.float64) * (upper.to(tl.float64) + 2 * lower.to(tl.float64))
    tl.store(half + i, (-0.5 * tl.sum(product, 1)).to(tl.float32))


@triton.jit
def _minus_distances(
    high_i,
    low_i,
    half_i,
    high_j,
    low_j,
    half_j,
    r,
    c,
    MATRIX: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
):
    """Return minus the squared distances between rows r and c, computed from coordinates in two
    halves; 0 without MATRIX. `half_j` is a vector, because it is the same for every tile of a
    program.
    """
    total = tl.zeros([r.shape[0], c.shape[0]], tl.float32)
    if MATRIX:
        total = tl.load(half_i + r)[:, None] + half_j[None, :]
        k = tl.arange(0, STEP)
        for start in range(0, WIDTH, STEP):
            left = r[:, None] * WIDTH + start + k[None, :]
            right = c[None, :] * WIDTH + start + k[:, None]
            upper_i, lower_i = tl.load(high_i + left), tl.load(low_i + left)
            upper_j, lower_j = tl.load(high_j + right), tl.load(low_j + right)
            total = tl.dot(lower_i, upper_j, total)
            total = tl.dot(upper_i, lower_j, total)
            total = tl.dot(upper_i, upper_j, total)
    return total


@triton.jit
def _segment(first_i, first_j, blocks_i, BI: tl.constexpr, BJ: tl.constexpr, SEGMENT: tl.constexpr):
    """Return the first and the last block of rows of a program: the blocks that have a pair i < j
    with the program's block of columns.
    """
    start = tl.program_id(1) * SEGMENT
    stop = tl.minimum(start + SEGMENT, blocks_i)
    if first_i == first_j:
        stop = tl.minimum(stop, ((tl.program_id(0) + 1) * BJ + BI - 1) // BI)
    return start, stop


@triton.jit
def pair_sums_kernel(
    high_i,
    low_i,
    half_i,
    high_j,
    low_j,
    half_j,
    x,
    stride_x,
    numbers_k,
    y,
    stride_y,
    numbers_l,
    rows_k,
    rows_l,
    partial,
    first_i,
    first_j,
    n,
    blocks_i,
    fixed_k,
    fixed_l,
    K_COLUMNS: tl.constexpr,
    K_SHIFTED: tl.constexpr,
    L_COLUMNS: tl.constexpr,
    L_SHIFTED: tl.constexpr,
    SCALED: tl.constexpr,
    MATRIX: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
    SQUARES: tl.constexpr,
    FAST: tl.constexpr,
    BI: tl.constexpr,
    BJ: tl.constexpr,
    SEGMENT: tl.constexpr,
):
    """Compute the sums over pairs i < j with j in a block of columns and i in a segment of the
    blocks of rows.
    """
    start, stop = _segment(first_i, first_j, blocks_i, BI, BJ, SEGMENT)
    if start >= stop:
        return
    block = tl.program_id(0)
    c = block * BJ + tl.arange(0, BJ)
    j = first_j + c
    columns_k = tl.zeros([BI, BJ], tl.float32)
    columns_l = tl.zeros([BI, BJ], tl.float32)
    joint = tl.zeros([BI], tl.float64)
    squares_k = tl.zeros([BI], tl.float64)
    squares_l = tl.zeros([BI], tl.float64)
    own_half_j = tl.zeros([BJ], tl.float32)
    if MATRIX:
        own_half_j = tl.load(half_j + c)
    constant_k, scale_k = tl.load(numbers_k), tl.load(numbers_k + 1)
    constant_l, scale_l = tl.load(numbers_l), tl.load(numbers_l + 1)
    for b in tl.range(start, stop):
        r = b * BI + tl.arange(0, BI)
        i = first_i + r
        product = _minus_distances(
            high_i, low_i, half_i, high_j, low_j, own_half_j, r, c, MATRIX, WIDTH, STEP
        )
        k = _entries(
            product,
            x,
            stride_x,
            constant_k,
            scale_k,
            i,
            j,
            K_COLUMNS,
            K_SHIFTED,
            SCALED,
            MATRIX,
            FAST,
        )
        l = _entries(
            product,
            y,
            stride_y,
            constant_l,
            scale_l,
            i,
            j,
            L_COLUMNS,
            L_SHIFTED,
            False,
            False,
            FAST,
        )
        if (first_i + b * BI + BI > first_j + block * BJ) | (first_j + block * BJ + BJ > n):
            counts = (i[:, None] < j[None, :]) & (j[None, :] < n)
            k = tl.where(counts, k, 0.0)
            l = tl.where(counts, l, 0.0)
        columns_k += k
        columns_l += l
        joint += tl.sum(k * l, 1).to(tl.float64)
        if SQUARES:
            squares_k += tl.sum(k * k, 1).to(tl.float64)
            squares_l += tl.sum(l * l, 1).to(tl.float64)
        _add(rows_k + i, tl.sum(k, 1), fixed_k)
        _add(rows_l + i, tl.sum(l, 1), fixed_l)
    _add(rows_k + j, tl.sum(columns_k, 0), fixed_k)
    _add(rows_l + j, tl.sum(columns_l, 0), fixed_l)
    place = partial + 3 * (tl.program_id(1) * tl.num_programs(0) + block)
    tl.store(place, tl.sum(joint, 0))
    if SQUARES:
        tl.store(place + 1, tl.sum(squares_k, 0))
        tl.store(place + 2, tl.sum(squares_l, 0))


@triton.jit
def _add(place, value, fixed):
    """Add a value as a 64-bit integer: such sums are exact, and do not depend on the order."""
    tl.atomic_add(place, (value.to(tl.float64) * fixed).to(tl.int64), sem="relaxed")


@triton.jit
def gram_products(
    high_i,
    low_i,
    half_i,
    high_b,
    low_b,
    y,
    stride_y,
    numbers_k,
    numbers_l,
    shift,
    out,
    n,
    columns,
    blocks,
    boost,
    factor,
    K_SHIFTED: tl.constexpr,
    L_COLUMNS: tl.constexpr,
    L_SHIFTED: tl.constexpr,
    GRADIENT: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
    THIN: tl.constexpr,
    GROUP: tl.constexpr,
    FAST: tl.constexpr,
    BI: tl.constexpr,
    BJ: tl.constexpr,
):
    """Compute the product of K with a thin matrix b in halves, or the gradient of Σ G ∘ K, times a
    factor.

    For the gradient, b contains the rows, and G = L + shift_i + shift_j. The gradient is the
    product of (G ∘ slopes of K) with b, minus each row times its row sum.
    """
    r = tl.program_id(0) * BI + tl.arange(0, BI)
    group = tl.program_id(1) * GROUP + tl.arange(0, GROUP)
    total = tl.zeros([BI, GROUP], tl.float32)
    of_rows = tl.zeros([BI], tl.float64)
    shift_i = tl.zeros([BI], tl.float32)
    if GRADIENT:
        shift_i = tl.load(shift + r)
    constant, scale = tl.load(numbers_k), tl.load(numbers_k + 1)
    constant_l, scale_l = tl.load(numbers_l), tl.load(numbers_l + 1)
    for b in tl.range(0, blocks):
        c = b * BJ + tl.arange(0, BJ)
        half_j = tl.load(half_i + c)
        product = _minus_distances(
            high_i, low_i, half_i, high_i, low_i, half_j, r, c, True, WIDTH, STEP
        )
        if GRADIENT:
            g = _entries(
                product,
                y,
                stride_y,
                constant_l,
                scale_l,
                r,
                c,
                L_COLUMNS,
                L_SHIFTED,
                False,
                False,
                FAST,
            )
            g = (g + shift_i[:, None] + tl.load(shift + c)[None, :]) * boost
            matrix = g * (_exponential(product * scale, FAST) * (0.6931471805599453 * scale))
        else:
            entries = _entries(
                product, y, stride_y, constant, scale, r, c, 0, K_SHIFTED, True, True, FAST
            )
            matrix = entries * boost
        if b == blocks - 1:
            matrix = tl.where(c[None, :] < n, matrix, 0.0)
        if GRADIENT:
            of_rows += tl.sum(matrix, 1).to(tl.float64)
        upper = matrix.to(tl.float16)
        lower = (matrix - upper.to(tl.float32)).to(tl.float16)
        place = c[:, None] * THIN + group[None, :]
        upper_b, lower_b = tl.load(high_b + place), tl.load(low_b + place)
        # A new sum for each tile: the matrix units truncate, and over many tiles that would add up.
        piece = tl.dot(lower, upper_b)
        piece = tl.dot(upper, lower_b, piece)
        piece = tl.dot(upper, upper_b, piece)
        total += piece
    total = total.to(tl.float64)
    if GRADIENT:
        place = r[:, None] * THIN + group[None, :]
        base = tl.load(high_b + place).to(tl.float64) + tl.load(low_b + place).to(tl.float64)
        total -= base * of_rows[:, None]
    there = (r[:, None] < n) & (group[None, :] < columns)
    tl.store(
        out + r[:, None] * columns + group[None, :],
        (total * factor).to(out.dtype.element_ty),
        mask=there,
    )


@triton.jit
def pair_cubes(
    high_i,
    low_i,
    half_i,
    high_j,
    low_j,
    half_j,
    x,
    stride_x,
    numbers,
    means,
    diagonal,
    partial,
    first_i,
    first_j,
    n,
    blocks_i,
    COLUMNS: tl.constexpr,
    SHIFTED: tl.constexpr,
    SCALED: tl.constexpr,
    MATRIX: tl.constexpr,
    WIDTH: tl.constexpr,
    STEP: tl.constexpr,
    FAST: tl.constexpr,
    BI: tl.constexpr,
    BJ: tl.constexpr,
    SEGMENT: tl.constexpr,
):
    """Compute the sums over i < j of A³, A² (d_i + d_j) and A d_i d_j, where A is centered by row
    and column means, each of which includes half of the grand mean.
    """
    start, stop = _segment(first_i, first_j, blocks_i, BI, BJ, SEGMENT)
    if start >= stop:
        return
    block = tl.program_id(0)
    c = block * BJ + tl.arange(0, BJ)
    j = first_j + c
    mean_j = tl.load(means + j)
    diagonal_j = tl.load(diagonal + j)
    cubes = tl.zeros([BI], tl.float64)
    weighted = tl.zeros([BI], tl.float64)
    quadratic = tl.zeros([BI], tl.float64)
    own_half_j = tl.zeros([BJ], tl.float32)
    if MATRIX:
        own_half_j = tl.load(half_j + c)
    constant, scale = tl.load(numbers), tl.load(numbers + 1)
    for b in tl.range(start, stop):
        r = b * BI + tl.arange(0, BI)
        i = first_i + r
        product = _minus_distances(
            high_i, low_i, half_i, high_j, low_j, own_half_j, r, c, MATRIX, WIDTH, STEP
        )
        a = _entries(
            product, x, stride_x, constant, scale, i, j, COLUMNS, SHIFTED, SCALED, MATRIX, FAST
        )
        a = a - tl.load(means + i)[:, None] - mean_j[None, :]
        if (first_i + b * BI + BI > first_j + block * BJ) | (first_j + block * BJ + BJ > n):
            a = tl.where((i[:, None] < j[None, :]) & (j[None, :] < n), a, 0.0)
        diagonal_i = tl.load(diagonal + i)
        squares = a * a
        cubes += tl.sum(squares * a, 1).to(tl.float64)
        weighted += (tl.sum(squares, 1) * diagonal_i + tl.sum(squares * diagonal_j[None, :], 1)).to(
            tl.float64
        )
        quadratic += (tl.sum(a * diagonal_j[None, :], 1) * diagonal_i).to(tl.float64)
    place = partial + 3 * (tl.program_id(1) * tl.num_programs(0) + block)
    tl.store(place, tl.sum(cubes, 0))
    tl.store(place + 1, tl.sum(weighted, 0))
    tl.store(place + 2, tl.sum(quadratic, 0))


@triton.jit
def table_kernel(
    x,
    stride,
    numbers,
    out,
    COLUMNS: tl.constexpr,
    SHIFTED: tl.constexpr,
    FAST: tl.constexpr,
    BI: tl.constexpr,
    BJ: tl.constexpr,
):
    """Compute the entries of a kernel minus its constant, exactly as the sums over pairs do."""
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)
    nothing = tl.zeros([BI, BJ], tl.float32)
    constant, scale = tl.load(numbers), tl.load(numbers + 1)
    entries = _entries(
        nothing, x, stride, constant, scale, i, j, COLUMNS, SHIFTED, False, False, FAST
    )
    tl.store(out + i[:, None] * stride + j[None, :], entries)


@triton.jit
def _load_rows(x, i, m, d, WIDTH: tl.constexpr):
    """Load rows i of a matrix with m rows and d columns, padded with zeros."""
    c = tl.arange(0, WIDTH)
    there = (i[:, None] < m) & (c[None, :] < d)
    return tl.load(x + i[:, None] * d + c[None, :], mask=there, other=0.0)


@triton.jit
def _store_rows(x, values, i, m, d, WIDTH: tl.constexpr):
    c = tl.arange(0, WIDTH)
    there = (i[:, None] < m) & (c[None, :] < d)
    tl.store(x + i[:, None] * d + c[None, :], values, mask=there)


@triton.jit
def _dot(a, b):
    return tl.dot(a, b, input_precision="tf32x3")


@triton.jit
def _single(x):
    """Convert a number to float32, because torch.compile passes Python's floats as float64."""
    return tl.cast(x, tl.float32)


@triton.jit
def inner_kernel(
    z,
    g,
    rows,
    slope,
    m,
    d,
    together,
    stride_group,
    stride_member,
    linear,
    gaussian,
    WIDTH: tl.constexpr,
    BI: tl.constexpr,
    BJ: tl.constexpr,
):
    """Compute the row sums of G ∘ K for one batch, and the gradient of their sum."""
    b = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    z += b * m * d
    g += (b // together) * stride_group + (b % together) * stride_member
    linear, gaussian = _single(linear), _single(gaussian)
    rows_i = _load_rows(z, i, m, d, WIDTH)
    half = tl.sum(rows_i * rows_i, 1) * -0.5
    of_rows = tl.zeros([BI], tl.float32)
    of_gaussian = tl.zeros([BI], tl.float32)
    total = tl.zeros([BI, WIDTH], tl.float32)
    for start in tl.range(0, m, BJ):
        j = start + tl.arange(0, BJ)
        other = _load_rows(z, j, m, d, WIDTH)
        products = _dot(rows_i, tl.trans(other))
        exponent = products + half[:, None] + (tl.sum(other * other, 1) * -0.5)[None, :]
        there = (i[:, None] < m) & (j[None, :] < m)
        weights = tl.load(g + i[:, None] * m + j[None, :], mask=there, other=0.0)
        of_rows += tl.sum(weights * products, 1) * linear
        weighted = weights * tl.exp(exponent) * gaussian
        of_gaussian += tl.sum(weighted, 1)
        total += _dot(weighted + weights * linear, other)
    tl.store(rows + b * m + i, of_rows + of_gaussian, mask=i < m)
    _store_rows(slope + b * m * d, 2 * (total - of_gaussian[:, None] * rows_i), i, m, d, WIDTH)


@triton.jit
def whiten_kernel(
    z,
    w,
    white,
    centered,
    mapping,
    variance,
    m,
    d,
    ridge,
    least,
    length,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Whiten the rows of one batch."""
    ridge, least, length = _single(ridge), _single(least), _single(length)
    b = tl.program_id(0).to(tl.int64)
    z += b * m * d
    w += b * m
    c = tl.arange(0, WIDTH)
    mean = tl.zeros([WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        weight = tl.load(w + i, mask=i < m, other=0.0)
        mean += tl.sum(_load_rows(z, i, m, d, WIDTH) * weight[:, None], 0)
    matrix = tl.zeros([WIDTH, WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        weight = tl.load(w + i, mask=i < m, other=0.0)
        rows = _load_rows(z, i, m, d, WIDTH) - mean[None, :]
        _store_rows(centered + b * m * d, rows, i, m, d, WIDTH)
        matrix += _dot(tl.trans(rows), rows * weight[:, None])
    r = tl.arange(0, WIDTH)
    diagonal = r[:, None] == c[None, :]
    spread = tl.sum(tl.where(diagonal, matrix, 0.0), 0)
    tl.store(variance + b * d + c, spread, mask=c < d)
    scale = tl.rsqrt(tl.maximum(spread, least))
    of_rows = tl.rsqrt(tl.maximum(tl.sum(tl.where(diagonal, matrix, 0.0), 1), least))
    matrix = matrix * of_rows[:, None] * scale[None, :] + tl.where(diagonal, ridge, 0.0)
    # Eliminate below the pivots. Where a column becomes 0, the inverse of the unit lower factor
    # takes its place.
    for k in tl.range(0, d):
        row = tl.sum(tl.where(r[:, None] == k, matrix, 0.0), 0)
        column = tl.sum(tl.where(c[None, :] == k, matrix, 0.0), 1)
        pivot = tl.sum(tl.where(r == k, column, 0.0), 0)
        times = tl.where(r > k, column / pivot, 0.0)
        below = (r[:, None] > k) & (c[None, :] == k)
        matrix = tl.where(below, -times[:, None], matrix - times[:, None] * row[None, :])
    pivots = tl.sum(tl.where(diagonal, matrix, 0.0), 1)
    inverse = tl.where(diagonal, 1.0, tl.where(r[:, None] > c[None, :], matrix, 0.0))
    inverse *= (tl.rsqrt(pivots) * length)[:, None]
    matrix = tl.trans(inverse * scale[None, :])
    _store_rows(mapping + b * d * d, matrix, r, d, d, WIDTH)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        rows = _load_rows(z, i, m, d, WIDTH) - mean[None, :]
        _store_rows(white + b * m * d, _dot(rows, matrix), i, m, d, WIDTH)


@triton.jit
def whiten_backward_kernel(
    upstream,
    w,
    white,
    centered,
    mapping,
    variance,
    slope,
    m,
    d,
    least,
    square,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute the gradient for one batch with respect to the rows before whitening."""
    least, square = _single(least), _single(square)
    b = tl.program_id(0).to(tl.int64)
    upstream += b * m * d
    w += b * m
    white += b * m * d
    centered += b * m * d
    slope += b * m * d
    r = tl.arange(0, WIDTH)
    c = tl.arange(0, WIDTH)
    inner = tl.zeros([WIDTH, WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        rows = _load_rows(white, i, m, d, WIDTH)
        inner += _dot(tl.trans(rows), _load_rows(upstream, i, m, d, WIDTH))
    inner = tl.where(r[:, None] <= c[None, :], inner, tl.trans(inner)) * square
    matrix = tl.trans(_load_rows(mapping + b * d * d, r, d, d, WIDTH))
    of_scale = tl.zeros([WIDTH], tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        weight = tl.load(w + i, mask=i < m, other=0.0)
        rows = _dot(_load_rows(white, i, m, d, WIDTH) * weight[:, None], inner)
        rows = _dot(_load_rows(upstream, i, m, d, WIDTH) - rows, matrix)
        of_scale += tl.sum(rows * _load_rows(centered, i, m, d, WIDTH), 0)
        total += tl.sum(rows, 0)
        _store_rows(slope, rows, i, m, d, WIDTH)
    spread = tl.load(variance + b * d + c, mask=c < d, other=1.0)
    of_scale = tl.where(spread > least, of_scale / tl.maximum(spread, least), 0.0)
    tl.debug_barrier()  # other threads may have stored what is read now
    for start in tl.range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        weight = tl.load(w + i, mask=i < m, other=0.0)
        rows = _load_rows(centered, i, m, d, WIDTH) * of_scale[None, :] + total[None, :]
        rows = _load_rows(slope, i, m, d, WIDTH) - weight[:, None] * rows
        _store_rows(slope, rows, i, m, d, WIDTH)
