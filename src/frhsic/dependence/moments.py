r"""Sums over two Gram matrices that tests of independence need, tile by tile: O(n) memory.

One pass over the pairs gives the joint sum, the row sums, the sums of squares and the diagonals of K and L,
both less a constant that centring removes (:meth:`frhsic.kernels.Kernel.shifted`). Everything that is
known of :math:`\tilde K = HKH` from them follows without a second pass:

.. math::
    \operatorname{tr} \tilde K = \sum_i K_{ii} - \tfrac1n \sum_i a_i, \qquad
    \operatorname{tr} \tilde K^2 = \sum_{ij} K_{ij}^2 - \tfrac2n \sum_i a_i^2 + \tfrac{1}{n^2} \Big(\sum_i a_i\Big)^2,
    \qquad \tilde K_{ii} = K_{ii} - \tfrac2n a_i + \tfrac{1}{n^2} \sum_j a_j,

where :math:`a_i` are the row sums. All arithmetic is in float64 and, for counts, in Python's own numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from frhsic.dependence._tiles import pairs
from frhsic.kernels import Kernel

__all__ = ["CenteredGram", "PairSums", "centered_products", "centered_tile", "cubic_sums", "pair_sums"]

PANEL = 1024
"""Rows of a Gram matrix that are multiplied with one another at once in :func:`cubic_sums`."""


class GramSums(NamedTuple):
    """What one pass keeps of a Gram matrix: row sums (n,), diagonal (n,), and the sum of squares (0-d)."""

    rows: Tensor
    diagonal: Tensor
    squares: Tensor


class CenteredGram(NamedTuple):
    r"""What is known of :math:`\tilde K = HKH`: its diagonal (n,), trace, and the sum of its squares (0-d)."""

    diagonal: Tensor
    trace: Tensor
    squares: Tensor

    @property
    def diagonal_squares(self) -> Tensor:
        r"""The sum :math:`\sum_i \tilde K_{ii}^2`."""
        return self.diagonal.square().sum()


class PairSums(NamedTuple):
    r"""What one pass keeps of two Gram matrices: :math:`\sum_{ij} K_{ij} L_{ij}` and the sums of each."""

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
        """The U-statistic of HSIC, from the same sums less their diagonals (Song et al. 2012, Theorem 2)."""
        n = self.n
        a, b = self.k.rows - self.k.diagonal, self.l.rows - self.l.diagonal
        joint = (self.joint - self.k.diagonal @ self.l.diagonal) / (n * (n - 3))
        product = (a.sum() / (n * (n - 1))) * (b.sum() / ((n - 2) * (n - 3)))
        return joint - 2 * (a @ b) / (n * (n - 2) * (n - 3)) + product

    @property
    def centered_k(self) -> CenteredGram:
        r"""Diagonal, trace and sum of squares of :math:`\tilde K`."""
        return _centered(self.k)

    @property
    def centered_l(self) -> CenteredGram:
        r"""Diagonal, trace and sum of squares of :math:`\tilde L`."""
        return _centered(self.l)


def pair_sums(x: Tensor, y: Tensor, k: Kernel, l: Kernel) -> PairSums:
    """Return the sums of the Gram matrices of x under k and of y under l, both less their offsets, in one pass.

    Parameters
    ----------
    x, y
        Working copies (float64, off the graph), of shapes (n, d) and (n, q).
    """
    n = len(x)
    joint, k_squares, l_squares = (x.new_zeros(()) for _ in range(3))
    k_rows, l_rows = x.new_zeros(n), x.new_zeros(n)
    for rows, columns in pairs(n, x.device):
        k_tile, l_tile = k.shifted(x[rows], x[columns]), l.shifted(y[rows], y[columns])
        k_rows[rows] += k_tile.sum(1)
        l_rows[rows] += l_tile.sum(1)
        times = 1
        if rows != columns:  # the mirror image of the tile
            k_rows[columns] += k_tile.sum(0)
            l_rows[columns] += l_tile.sum(0)
            times = 2
        joint += times * _inner(k_tile, l_tile)
        k_squares += times * _inner(k_tile, k_tile)
        l_squares += times * _inner(l_tile, l_tile)
    return PairSums(
        joint,
        GramSums(k_rows, k.diagonal(x) - k.offset, k_squares),
        GramSums(l_rows, l.diagonal(y) - l.offset, l_squares),
    )


def centered_products(x: Tensor, y: Tensor, k: Kernel, l: Kernel, sums: PairSums) -> tuple[Tensor, Tensor]:
    r"""Return :math:`\sum_j \tilde K_{ij} \tilde L_{ij}` and :math:`\sum_{i \ne j} \tilde K_{ij}^2 \tilde L_{ij}^2`.

    The first is of shape (n,), the other 0-d. This is the second pass over the pairs: both matrices are centred tile
    by tile, by the row sums of the first.
    """
    n = len(x)
    of_rows, squares = x.new_zeros(n), x.new_zeros(())
    for rows, columns in pairs(n, x.device):
        product = centered_tile(x, k, sums.k.rows, rows, columns) * centered_tile(y, l, sums.l.rows, rows, columns)
        of_rows[rows] += product.sum(1)
        if rows == columns:
            squares += _inner(product, product) - product.diagonal().square().sum()
        else:
            of_rows[columns] += product.sum(0)
            squares += 2 * _inner(product, product)
    return of_rows, squares


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


def cubic_sums(x: Tensor, k: Kernel, sums: GramSums) -> CubicSums:
    r"""Return the sums of degree three of :math:`\tilde K`: O(n) memory and, for the trace of its cube, O(n³) time.

    Panels of rows are multiplied with one another, and recomputed rather than kept.
    """
    n = len(x)
    d = _centered(sums).diagonal
    trace, entries, weighted, quadratic = (x.new_zeros(()) for _ in range(4))
    panels = [slice(i, min(i + PANEL, n)) for i in range(0, n, PANEL)]
    everything = slice(0, n)
    for first, rows in enumerate(panels):
        left = centered_tile(x, k, sums.rows, rows, everything)
        entries += _inner(left * left, left)
        weighted += d[rows] @ left.square().sum(1)
        quadratic += d[rows] @ (left @ d)
        for columns in panels[first:]:
            right = left if columns == rows else centered_tile(x, k, sums.rows, columns, everything)
            trace += (1 if columns == rows else 2) * _inner(left @ right.mT, left[:, columns])
    return CubicSums(trace, entries, (d * d) @ d, weighted, quadratic)


def _centered(sums: GramSums) -> CenteredGram:
    n = len(sums.rows)
    mean = sums.rows.sum() / n
    diagonal = sums.diagonal - 2 * sums.rows / n + mean / n
    squares = sums.squares - 2 * sums.rows.square().sum() / n + mean.square()
    return CenteredGram(diagonal, diagonal.sum(), squares.clamp_min(0))


def centered_tile(x: Tensor, k: Kernel, sums: Tensor, rows: slice, columns: slice) -> Tensor:
    n = len(x)
    tile = k.shifted(x[rows], x[columns]) - (sums[rows] / n)[:, None]
    return tile - (sums[columns] / n - sums.sum() / n**2)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Sum of products of all entries, without the matrix of products."""
    return torch.dot(a.reshape(-1), b.reshape(-1))
