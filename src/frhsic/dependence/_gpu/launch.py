"""Launches of the GPU kernels: rows in halves, chunks that bound the memory, sums as integers of fixed point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from frhsic.dependence._gpu import kernels
from frhsic.dependence._gpu.plan import LINEAR, Plan, fixed_point

CHUNK = 1 << 17
"""Rows whose coordinates are held in halves at a time."""

BLOCK_I, BLOCK_J, SEGMENT = 64, 64, 64
"""Rows and columns of a tile, and tiles of a program; the quickest of those tried on an H200."""
OPTIONS: dict[str, Any] = {"num_warps": 4, "num_stages": 3}

STEP = 64
"""Coordinates of one product of tiles, and columns of a thin matrix that one program multiplies."""

INTERPRETED = not isinstance(kernels.halve, triton.JITFunction)


class Halves(NamedTuple):
    """Coordinates of some rows as two float16 matrices (m, width), and minus half their squared norms (m,)."""

    high: Tensor
    low: Tensor
    half: Tensor

    @classmethod
    def of(cls, x: Tensor, rows: int, factor: float, center: Tensor | None = None) -> Halves:
        """Return the halves of (x - center) · factor, padded with zeros to a number of rows."""
        d = x.shape[1]
        width = max(16, triton.next_power_of_2(d)) if d <= STEP else -(-d // STEP) * STEP
        high, low = torch.empty(2, rows, width, dtype=torch.float16, device=x.device)
        half = torch.empty(rows, dtype=torch.float32, device=x.device)
        center = torch.zeros(d, dtype=torch.float64, device=x.device) if center is None else center
        kernels.halve[(rows // BLOCK_I,)](
            x, center, high, low, half, len(x), d, x.stride(0), x.stride(1), factor,
            WIDTH=width, SPAN=triton.next_power_of_2(width), BI=BLOCK_I,
        )  # fmt: skip
        return cls(high, low, half)


class OffDiagonal(NamedTuple):
    """Sums over i ≠ j of K and L minus their constants: joint sum, row sums (n,) each, and sums of squares."""

    joint: Tensor
    k_rows: Tensor
    l_rows: Tensor
    k_squares: Tensor
    l_squares: Tensor


def pair_sums(x: Tensor, y: Tensor, k: Plan, l: Plan, w: Tensor | None, *, squares: bool = False) -> OffDiagonal:
    """Return the sums over pairs of distinct rows; the weights have mean 1, and None is all 1."""
    n = len(x)
    padded = _padded(n)
    of_x, of_y = _coordinates(x, k, padded), l.coordinates(y, padded)
    weights = of_y if w is None else torch.nn.functional.pad(w, (0, padded - n)).float()
    rows = torch.zeros(2, padded, dtype=torch.int64, device=x.device)
    fixed = fixed_point(k.bound, n), fixed_point(l.bound, n)
    totals = []
    for left, right, first_i, first_j, blocks_i, grid in _chunks(x, k, padded):
        partial = torch.zeros(grid[0] * grid[1], 3, dtype=torch.float64, device=x.device)
        kernels.pair_sums[grid](
            *left, *right, of_x, padded, k.numbers, of_y, padded, l.numbers, weights,
            rows[0], rows[1], partial, first_i, first_j, n, blocks_i, *fixed,
            K_CODES=k.codes, K_VIEWS=k.views, K_SHIFTED=k.shifted,
            L_CODES=l.codes, L_VIEWS=l.views, L_SHIFTED=l.shifted,
            MATRIX=k.unit > 0, WEIGHTED=w is not None, SQUARES=squares, SEGMENT=SEGMENT, **_tiling(left),
        )  # fmt: skip
        totals.append(partial.sum(0))
    joint, k_squares, l_squares = 2 * torch.stack(totals).sum(0)
    k_rows, l_rows = (of.double() / scale for of, scale in zip(rows[:, :n], fixed))
    return OffDiagonal(joint, k_rows, l_rows, k_squares, l_squares)


def gradient(x: Tensor, y: Tensor, k: Plan, l: Plan, shift: Tensor, w: Tensor | None, scale: float) -> Tensor:
    r"""Return the gradient with respect to x of a scale times :math:`\sum_{ij} w_j G_{ij} K_{ij}`, in float32.

    G is symmetric, and row i has no factor w_i.

    :math:`G_{ij} = L_{ij} + g_i + g_j` with the entries of L minus its constant and the shifts g, of shape (n,). The
    plan of k must use matrix products.
    """
    n, d = x.shape
    padded = _padded(n)
    halves = Halves.of(x, padded, (2 * k.unit) ** 0.5, k.center)
    of_y = l.coordinates(y, padded)
    slope = float((k.numbers[1::2] * k.numbers[2::2]).max())
    boost = _power(1 / (slope * float((2 * shift.std()).clamp_min(l.spread))))
    linear = any(code & 3 == LINEAR for code in k.codes)
    factor = 4 * (k.unit / 2) ** 0.5 / boost * scale
    out = torch.empty(n, d, dtype=torch.float32, device=x.device)
    return _products(
        halves, halves, k, boost, out, factor, of_y=of_y, l=l, linear=linear,
        shift=_fitted(shift, padded), w=None if w is None else _fitted(w, padded),
    )  # fmt: skip


def times(x: Tensor, k: Plan, b: Tensor) -> Tensor:
    """Return the product of K minus its constant with b, of shape (n, c); the plan must use matrix products."""
    n = len(x)
    padded = _padded(n)
    halves = Halves.of(x, padded, (2 * k.unit) ** 0.5, k.center)
    scale, boost = _power(1 / float(b.abs().max())), _power(1 / k.spread)
    out = torch.empty(b.shape, dtype=torch.float64, device=x.device)
    return _products(halves, Halves.of(b, padded, scale), k, boost, out, 1 / (scale * boost))


def pair_cubes(x: Tensor, k: Plan, means: Tensor, diagonal: Tensor) -> Tensor:
    """Return the sums over i ≠ j of A³, A² d_i and d_i A d_j, where A_ij = K_ij - constant - m_i - m_j."""
    n = len(x)
    padded = _padded(n)
    of_x = _coordinates(x, k, padded)
    vectors = _fitted(means, padded), _fitted(diagonal, padded)
    totals = []
    for left, right, first_i, first_j, blocks_i, grid in _chunks(x, k, padded):
        partial = torch.zeros(grid[0] * grid[1], 3, dtype=torch.float64, device=x.device)
        kernels.pair_cubes[grid](
            *left, *right, of_x, padded, k.numbers, *vectors, partial, first_i, first_j, n, blocks_i,
            CODES=k.codes, VIEWS=k.views, SHIFTED=k.shifted, MATRIX=k.unit > 0, SEGMENT=SEGMENT, **_tiling(left),
        )  # fmt: skip
        totals.append(partial.sum(0))
    return torch.stack(totals).sum(0) * torch.tensor([2.0, 1.0, 2.0], dtype=torch.float64, device=x.device)


def table(x: Tensor, k: Plan) -> Tensor:
    """Return the matrix of a plan without matrix products, minus its constant, in float32."""
    n, padded = len(x), _padded(len(x))
    out = torch.empty(padded, padded, dtype=torch.float32, device=x.device)
    kernels.table[(padded // BLOCK_I, padded // BLOCK_J)](
        k.coordinates(x, padded), padded, k.numbers, out, CODES=k.codes, VIEWS=k.views, SHIFTED=k.shifted,
        FAST=not INTERPRETED, BI=BLOCK_I, BJ=BLOCK_J, num_warps=OPTIONS["num_warps"],
    )  # fmt: skip
    return out[:n, :n]


def _products(
    halves: Halves,
    b: Halves,
    k: Plan,
    boost: float,
    out: Tensor,
    factor: float,
    *,
    of_y: Tensor | None = None,
    l: Plan | None = None,
    linear: bool = False,
    shift: Tensor | None = None,
    w: Tensor | None = None,
) -> Tensor:
    """Write a product to `out`, of shape (n, columns), and return it."""
    padded, thin = b.high.shape
    group = min(thin, STEP)
    unused = halves.half
    kernels.gram_products[(padded // BLOCK_I, thin // group)](
        *halves, b.high, b.low, unused if of_y is None else of_y, padded, k.numbers,
        k.numbers if l is None else l.numbers, unused if shift is None else shift, unused if w is None else w,
        out, *out.shape, padded // BLOCK_J, boost, factor,
        K_CODES=k.codes, K_SHIFTED=k.shifted,
        L_CODES=() if l is None else l.codes, L_VIEWS=() if l is None else l.views,
        L_SHIFTED=l is not None and l.shifted,
        GRADIENT=l is not None, LINEAR=linear, WEIGHTED=w is not None, THIN=thin, GROUP=group, **_tiling(halves),
    )  # fmt: skip
    return out


def _chunks(x: Tensor, k: Plan, padded: int) -> Iterator[tuple[Halves, Halves, int, int, int, tuple[int, int]]]:
    """Yield pairs of chunks on and above the diagonal: halves, first rows, blocks of rows, and the grid."""
    size = min(CHUNK, padded) if k.unit else padded
    for first_i in range(0, padded, size):
        left = _halves(x, k, first_i, min(size, padded - first_i))
        for first_j in range(first_i, padded, size):
            wide = min(size, padded - first_j)
            right = left  # also frees the former one
            if first_i != first_j:
                right = _halves(x, k, first_j, wide)
            blocks_i = min(size, padded - first_i) // BLOCK_I
            yield left, right, first_i, first_j, blocks_i, (wide // BLOCK_J, -(-blocks_i // SEGMENT))


def _halves(x: Tensor, k: Plan, first: int, rows: int) -> Halves:
    if not k.unit:
        nothing = x.new_zeros(1)
        return Halves(nothing, nothing, nothing)
    return Halves.of(x[first : first + rows], rows, (2 * k.unit) ** 0.5, k.center)


def _coordinates(x: Tensor, k: Plan, padded: int) -> Tensor:
    return x.new_zeros(1) if k.unit else k.coordinates(x, padded)


def _padded(n: int) -> int:
    step = max(BLOCK_I, BLOCK_J)
    return -(-n // step) * step


def _fitted(values: Tensor, padded: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, padded - len(values))).float()


def _power(value: float) -> float:
    """Return the power of two just below a positive number: products with it do not round."""
    return 2.0 ** (torch.tensor(value).frexp().exponent.item() - 1)


def _tiling(halves: Halves) -> dict[str, Any]:
    width = halves.high.shape[-1]
    sizes = {"WIDTH": width, "STEP": min(width, STEP), "BI": BLOCK_I, "BJ": BLOCK_J}
    return {**sizes, "FAST": not INTERPRETED, **OPTIONS}
