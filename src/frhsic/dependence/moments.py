r"""Sums over two Gram matrices for tests of independence, computed tile by tile in O(n) memory.

One pass over the pairs gives the joint sum, the row sums, the sums of squares and the diagonals of K and L,
both up to a constant that centring removes. Trace and squares of :math:`\tilde K = HKH` follow without a second pass:

.. math::
    \operatorname{tr} \tilde K = \sum_i K_{ii} - \tfrac1n \sum_i a_i, \qquad
    \operatorname{tr} \tilde K^2 = \sum_{ij} K_{ij}^2 - \tfrac2n \sum_i a_i^2 + \tfrac{1}{n^2} \Big(\sum_i a_i\Big)^2,
    \qquad \tilde K_{ii} = K_{ii} - \tfrac2n a_i + \tfrac{1}{n^2} \sum_j a_j,

where :math:`a_i` are the row sums. All sums are in float64; counts are Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.dependence._tiles import add_rows, entries, over_tiles, pairs
from frhsic.dependence.grams import unbiased_from_sums
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.kernels import Kernel

if TYPE_CHECKING:
    from frhsic.dependence._gpu.matrices import One as OnGPU

THIN = 64
"""Largest number of columns of a factor that replaces its Gram matrix."""

FEW_ROWS = 512
"""Up to this many rows a pass over the pairs is quicker than a search for a factor."""

HELD_ROWS = 2048
"""Up to this many rows a Gram matrix is computed once and held whole (32 MiB); above it memory is O(n)."""

CUBE_ROWS, VECTORS = 2048, 64
"""Rows above which the trace of a cube is estimated, and the number of random vectors for it."""

PANEL = 256
"""Rows of a Gram matrix that :func:`cubic_sums` multiplies at once; of two panels' products one is needed."""


@dataclass(frozen=True)
class Gram:
    r"""A Gram matrix of which only tiles are computed.

    Attributes
    ----------
    x
        Rows in float64, detached, of shape (n, d).
    kernel
        The kernel.
    shifted
        Whether k − 1 is summed in place of k; centring removes the constant. This keeps digits where the kernel is
        nearly constant, and only takes longer elsewhere (``expm1``, not ``exp``).
    factor
        A matrix G of at most :data:`THIN` columns with :math:`K = GG^\top` up to rounding, or None. It exists in one
        dimension, for linear kernels and for few distinct values; sums then take O(n) time.
    single
        Whether the rows were given in float32, so that a GPU may sum entries of that precision.
    """

    x: Tensor
    kernel: Kernel
    shifted: bool
    factor: Tensor | None
    single: bool = False

    @classmethod
    def of(cls, x: Tensor, kernel: Kernel, *, single: bool = False) -> Gram:
        """Return the Gram matrix of the rows of x, which are in float64 and detached."""
        flat = entries(x, kernel) is not kernel
        return cls(x, kernel, flat, None if flat or len(x) <= FEW_ROWS else _thin_factor(x, kernel), single)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.x)

    @property
    def offset(self) -> float:
        """The constant that :meth:`tile` and :meth:`diagonal` subtract."""
        return self.kernel.offset if self.shifted else 0.0

    @cached_property
    def held(self) -> Tensor | None:
        """The whole matrix minus the offset, up to :data:`HELD_ROWS` rows."""
        return self._entries(slice(None), slice(None)) if self.n <= HELD_ROWS else None

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Return a block of the matrix minus the offset, not to be written to."""
        return self._entries(rows, columns) if self.held is None else self.held[rows, columns]

    def _entries(self, rows: slice, columns: slice) -> Tensor:
        return (self.kernel.shifted if self.shifted else self.kernel)(self.x[rows], self.x[columns])

    def times(self, b: Tensor) -> Tensor:
        r"""Return :math:`\tilde K b`, of shape (n, columns)."""
        b = _centered(b)
        if self.held is not None:
            return _centered(self.held @ b)
        product = torch.zeros_like(b)
        for rows, columns in pairs(self.n, self.x.device):
            tile = self.tile(rows, columns)
            product[rows] += tile @ b[columns]
            if rows != columns:
                product[columns] += tile.mT @ b[rows]
        return _centered(product)

    def centered_tile(self, row_sums: Tensor, rows: slice, columns: slice) -> Tensor:
        r"""Return a block of :math:`HKH`, given the row sums of the matrix minus its offset."""
        if self.held is not None:
            return self._held_centered[rows, columns]
        means = row_sums / self.n
        return self.tile(rows, columns) - means[rows][:, None] - (means[columns] - means.mean())

    @cached_property
    def _held_centered(self) -> Tensor:
        assert self.held is not None
        means = self.held.mean(0)
        return (self.held - means[:, None]).sub_(means - means.mean())

    def diagonal(self) -> Tensor:
        """Return the diagonal minus the offset."""
        return self.kernel.diagonal(self.x) - self.offset


class GramSums(NamedTuple):
    """Sums over a Gram matrix: row sums (n,), diagonal (n,), and the sum of squares (0-d)."""

    rows: Tensor
    diagonal: Tensor
    squares: Tensor

    @property
    def off_diagonal_rows(self) -> Tensor:
        """Row sums without the diagonal, of shape (n,)."""
        return self.rows - self.diagonal

    @property
    def centered(self) -> CenteredGram:
        r"""Diagonal, trace and sum of squares of the centred matrix :math:`\tilde K = HKH`."""
        n = len(self.rows)
        mean = self.rows.sum() / n
        diagonal = self.diagonal - 2 * self.rows / n + mean / n
        squares = self.squares - 2 * self.rows.square().sum() / n + mean.square()
        return CenteredGram(diagonal, diagonal.sum(), squares.clamp_min(0))


class CenteredGram(NamedTuple):
    r"""Diagonal (n,), trace and sum of squares (0-d) of :math:`\tilde K = HKH`."""

    diagonal: Tensor
    trace: Tensor
    squares: Tensor


class PairSums(NamedTuple):
    r"""Sums over two Gram matrices: :math:`\sum_{ij} K_{ij} L_{ij}` and the sums of each."""

    joint: Tensor
    k: GramSums
    l: GramSums

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.k.rows)

    @property
    def centered_joint(self) -> Tensor:
        r"""The trace :math:`\operatorname{tr}(\tilde K \tilde L)`, which is :math:`n^2` times the biased HSIC."""
        a, b, n = self.k.rows, self.l.rows, self.n
        return (self.joint - 2 * (a @ b) / n + (a.sum() / n) * (b.sum() / n)).clamp_min(0)

    @property
    def unbiased(self) -> Tensor:
        """The U-statistic of HSIC, from the same sums without the diagonals."""
        a, b = self.k.off_diagonal_rows, self.l.off_diagonal_rows
        joint = self.joint - self.k.diagonal @ self.l.diagonal
        return unbiased_from_sums(joint, a @ b, a.sum(), b.sum(), self.n)


def pair_sums(k: Gram, l: Gram) -> PairSums:
    """Return the sums of two Gram matrices on the same rows, both minus their offsets, in one pass over the pairs.

    A matrix with a thin factor needs no pass.
    """
    if k.factor is not None and l.factor is not None:
        joint = (k.factor.mT @ l.factor).square().sum()
        return PairSums(joint, _sums_of_factor(k, k.factor), _sums_of_factor(l, l.factor))
    on_gpu = _gpu.pair(k.x, l.x, k.kernel, l.kernel, torch.ones_like(k.x[:, 0])) if k.single and l.single else None
    if on_gpu is not None:
        joint, k_rows, l_rows, k_squares, l_squares = on_gpu.sums_with_squares((k.offset, l.offset))
        return PairSums(joint, GramSums(k_rows, k.diagonal(), k_squares), GramSums(l_rows, l.diagonal(), l_squares))
    if l.factor is not None:
        joint, k_sums = _sums_beside_factor(k, l.factor)
        return PairSums(joint, k_sums, _sums_of_factor(l, l.factor))
    if k.factor is not None:
        joint, l_sums = _sums_beside_factor(l, k.factor)
        return PairSums(joint, _sums_of_factor(k, k.factor), l_sums)

    _ = k.held, l.held  # before threads ask for them

    def start() -> tuple[Tensor, ...]:
        return k.x.new_zeros(3), k.x.new_zeros(k.n), k.x.new_zeros(k.n)

    def add(rows: slice, columns: slice, products: Tensor, k_rows: Tensor, l_rows: Tensor) -> None:
        k_tile, l_tile = k.tile(rows, columns), l.tile(rows, columns)
        times = add_rows(k_rows, k_tile, rows, columns)
        add_rows(l_rows, l_tile, rows, columns)
        for total, (a, b) in zip(products, ((k_tile, l_tile), (k_tile, k_tile), (l_tile, l_tile))):
            total += times * _inner(a, b)

    (joint, k_squares, l_squares), k_rows, l_rows = over_tiles(k.n, k.x.device, start, add)
    return PairSums(joint, GramSums(k_rows, k.diagonal(), k_squares), GramSums(l_rows, l.diagonal(), l_squares))


def product_rows(k: Gram, l: Gram, sums: PairSums) -> Tensor:
    r"""Return :math:`\sum_j \tilde K_{ij} \tilde L_{ij}`, of shape (n,).

    It takes O(n) time if both matrices have a thin factor; otherwise a second pass over the pairs, which centres both
    matrices with the row sums of the first pass.
    """
    thin, other = (l, k) if l.factor is not None else (k, l)
    if thin.factor is not None:
        factor = _centered(thin.factor)
        if other.factor is None:
            return (factor * other.times(factor)).sum(1)
        wide = _centered(other.factor)
        return (wide @ (wide.mT @ factor) * factor).sum(1)

    def add(rows: slice, columns: slice, of_rows: Tensor) -> None:
        tiles = k.centered_tile(sums.k.rows, rows, columns), l.centered_tile(sums.l.rows, rows, columns)
        add_rows(of_rows, tiles[0] * tiles[1], rows, columns)

    return over_tiles(k.n, k.x.device, lambda: (k.x.new_zeros(k.n),), add)[0]


def squared_products(k: Gram, l: Gram, sums: PairSums) -> Tensor:
    r"""Return :math:`\sum_{i \ne j} \tilde K_{ij}^2 \tilde L_{ij}^2` (0-d), in a second pass over the pairs."""

    def add(rows: slice, columns: slice, squares: Tensor) -> None:
        product = k.centered_tile(sums.k.rows, rows, columns) * l.centered_tile(sums.l.rows, rows, columns)
        squares += (1 if rows == columns else 2) * _inner(product, product)
        if rows == columns:
            squares -= product.diagonal().square().sum()

    return over_tiles(k.n, k.x.device, lambda: (k.x.new_zeros(()),), add)[0]


class CubicSums(NamedTuple):
    r"""Sums of degree three of :math:`A = \tilde K` with diagonal d, each 0-d.

    :math:`\operatorname{tr} A^3`, :math:`\sum_{ij} A_{ij}^3`, :math:`\sum_i d_i^3`,
    :math:`\sum_i d_i (A^2)_{ii}` and :math:`d^\top A d`.
    """

    trace: Tensor
    entries: Tensor
    diagonal: Tensor
    diagonal_squares: Tensor
    quadratic: Tensor


def cubic_sums(k: Gram, sums: GramSums) -> CubicSums:
    """Return the sums of degree three of the centred matrix; see :func:`own_sums`."""
    return own_sums(k, sums).cubes


class OwnSums(NamedTuple):
    r"""Sums over one centred matrix: its :class:`CubicSums`, and :math:`\sum_j \tilde K_{ij}^2` of shape (n,).

    The second is None where the GPU has summed, without the pass over the pairs that gives it.
    """

    cubes: CubicSums
    square_rows: Tensor | None


def own_sums(k: Gram, sums: GramSums) -> OwnSums:
    r"""Return sums over one centred matrix :math:`\tilde K`, in O(n) memory.

    The trace of the cube takes O(n) time with a thin factor. Up to :data:`CUBE_ROWS` rows it multiplies panels of rows,
    O(n³); above, it is the mean of :math:`g^\top A^3 g` over random signs g of a fixed seed, O(n²). The other sums take
    one pass over the pairs.
    """
    d = sums.centered.diagonal
    on_gpu = _gpu.one(k.x, k.kernel) if k.single else None
    if on_gpu is not None:
        return OwnSums(_cubic_sums_on_gpu(k, on_gpu, sums), None)
    estimated = k.factor is None and k.n > CUBE_ROWS
    drawn = k.times(_random_signs(k)) if estimated else None
    of_rows, cubes, quadratic, trace = k.x.new_zeros(k.n), *(k.x.new_zeros(()) for _ in range(3))
    for rows, columns in pairs(k.n, k.x.device):
        tile = k.centered_tile(sums.rows, rows, columns)
        squares = tile * tile
        times = add_rows(of_rows, squares, rows, columns)
        cubes += times * _inner(squares, tile)
        quadratic += times * (d[rows] @ (tile @ d[columns]))
        if drawn is not None:
            trace += times * _inner(drawn[rows], tile @ drawn[columns])
    trace = trace / VECTORS if estimated else _trace_of_cube(k, sums)
    return OwnSums(CubicSums(trace, cubes, (d * d) @ d, d @ of_rows, quadratic), of_rows)


def _cubic_sums_on_gpu(k: Gram, on_gpu: OnGPU, sums: GramSums) -> CubicSums:
    d = sums.centered.diagonal
    a = sums.rows / k.n
    cubes, weighted, quadratic = on_gpu.cubes(a - a.mean() / 2 + k.offset / 2, d)
    if k.factor is None and k.n > CUBE_ROWS:
        times = (lambda b: _centered(on_gpu.times(_centered(b)))) if on_gpu.multiplies else k.times
        once = times(_random_signs(k))
        trace = _inner(once, times(once)) / VECTORS
    else:
        trace = _trace_of_cube(k, sums)
    cubed = (d * d) @ d  # of the diagonal: each sum above is over distinct rows
    return CubicSums(trace, cubes + cubed, cubed, weighted + cubed, quadratic + cubed)


def _centered(b: Tensor) -> Tensor:
    return b - b.mean(dim=0)


def _random_signs(k: Gram) -> Tensor:
    return torch.randint(2, (k.n, VECTORS), generator=torch.Generator().manual_seed(0)).to(k.x) * 2 - 1


def _trace_of_cube(k: Gram, sums: GramSums) -> Tensor:
    if k.factor is not None:
        centered = _centered(k.factor)
        small = centered.mT @ centered
        return _inner(small @ small, small)
    trace = k.x.new_zeros(())
    panels = [slice(i, min(i + PANEL, k.n)) for i in range(0, k.n, PANEL)]
    for first, rows in enumerate(panels):
        left = k.centered_tile(sums.rows, rows, slice(0, k.n))
        for columns in panels[first:]:
            right = left if columns == rows else k.centered_tile(sums.rows, columns, slice(0, k.n))
            trace += (1 if columns == rows else 2) * _inner(left @ right.mT, left[:, columns])
    return trace


def _thin_factor(x: Tensor, kernel: Kernel) -> Tensor | None:
    """Return a factor of the Gram matrix, complete up to rounding, if it has few columns."""
    some = x[:: max(1, len(x) // FEW_ROWS)]
    _, left = pivoted_cholesky(kernel, some, tolerance=1e-15, max_rank=16)
    if left > 1e-3:  # many columns are missing
        return None
    factor, _ = pivoted_cholesky(kernel, x, tolerance=1e-15, max_rank=THIN)
    return factor if factor.shape[1] < THIN else None


def _sums_of_factor(gram: Gram, factor: Tensor) -> GramSums:
    return GramSums(factor @ factor.sum(0), gram.diagonal(), (factor.mT @ factor).square().sum())


def _sums_beside_factor(gram: Gram, factor: Tensor) -> tuple[Tensor, GramSums]:
    r"""Return :math:`\sum_{ij} K_{ij} (FF^\top)_{ij} = \sum_c f_c^\top K f_c` and the sums of K."""

    def start() -> tuple[Tensor, ...]:
        return gram.x.new_zeros(()), gram.x.new_zeros(()), gram.x.new_zeros(gram.n)

    def add(rows: slice, columns: slice, joint: Tensor, squares: Tensor, of_rows: Tensor) -> None:
        tile = gram.tile(rows, columns)
        times = add_rows(of_rows, tile, rows, columns)
        joint += times * _inner(tile @ factor[columns], factor[rows])
        squares += times * _inner(tile, tile)

    joint, squares, of_rows = over_tiles(gram.n, gram.x.device, start, add)
    return joint, GramSums(of_rows, gram.diagonal(), squares)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Sum of the products of all entries, without the matrix of products."""
    return torch.dot(a.reshape(-1), b.reshape(-1))
