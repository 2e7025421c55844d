r"""Sums over the entries of two Gram matrices, from one pass over their tiles.

The joint sum, the row sums, the sums of squares and the diagonals of K and L, both up to a constant
that centering removes, are enough for HSIC and its null variance. The trace and the squares of
:math:`\tilde K = HKH` follow without a second pass:

.. math::
    \operatorname{tr} \tilde K = \sum_i K_{ii} - \tfrac1n \sum_i a_i, \qquad
    \operatorname{tr} \tilde K^2 = \sum_{ij} K_{ij}^2 - \tfrac2n \sum_i a_i^2 + \tfrac{1}{n^2}
    \Big(\sum_i a_i\Big)^2, \qquad \tilde K_{ii} = K_{ii} - \tfrac2n a_i + \tfrac{1}{n^2} \sum_j
    a_j,

where :math:`a_i` are the row sums. All sums are in float64; counts are Python integers.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.dependence.formulas import biased_from_sums, unbiased_from_sums
from frhsic.dependence.tiles import Gram, sum_over_tiles


class GramSums(NamedTuple):
    """Sums over a Gram matrix: the row sums (n,), the diagonal (n,), and the sum of squares (0-d).

    `signed` is the product of the matrix with the signs passed to :func:`pair_sums`, or None.
    """

    rows: Tensor
    diagonal: Tensor
    squares: Tensor
    signed: Tensor | None = None

    @property
    def off_diagonal_rows(self) -> Tensor:
        """Row sums without the diagonal, of shape (n,)."""
        return self.rows - self.diagonal

    @property
    def centers(self) -> Tensor:
        r"""The :math:`c_i` of :math:`\tilde K_{ij} = K_{ij} - c_i - c_j`, of shape (n,)."""
        means = self.rows / len(self.rows)
        return means - means.mean() / 2

    @property
    def centered_gram(self) -> CenteredGram:
        r"""The diagonal, trace and sum of squares of the centered matrix :math:`\tilde K = HKH`."""
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
    r"""Sums over two Gram matrices: :math:`\sum_{ij} K_{ij} L_{ij}` and the sums over each
    matrix.
    """

    joint: Tensor
    k: GramSums
    l: GramSums

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.k.rows)

    @property
    def biased_hsic(self) -> Tensor:
        """The V-statistic of HSIC."""
        a = self.k.rows
        b = self.l.rows
        return biased_from_sums(self.joint, a @ b, a.sum(), b.sum(), self.n).clamp_min(0)

    @property
    def unbiased_hsic(self) -> Tensor:
        """The U-statistic of HSIC, from the same sums without the diagonals."""
        a = self.k.off_diagonal_rows
        b = self.l.off_diagonal_rows
        joint = self.joint - self.k.diagonal @ self.l.diagonal
        return unbiased_from_sums(joint, a @ b, a.sum(), b.sum(), self.n)


def pair_sums(k: Gram, l: Gram, *, signs: Tensor | None = None) -> PairSums:
    """Return the sums over two Gram matrices of the same rows, both minus their offsets, in one
    pass over the pairs.

    A matrix with a thin factor needs no pass. With `signs`, of shape (n, vectors), the pass also
    computes the products with the signs; see :func:`frhsic.dependence.cubes.own_sums`.
    """
    if k.factor is not None and l.factor is not None:
        joint = (k.factor.mT @ l.factor).square().sum()
        return PairSums(joint, _sums_of_factor(k, k.factor), _sums_of_factor(l, l.factor))
    on_gpu = None
    if k.single and l.single:
        on_gpu = _gpu.pair(k.x, l.x, k.kernel, l.kernel)
    if on_gpu is not None:
        joint, k_rows, l_rows, k_squares, l_squares = on_gpu.sums_with_squares((k.offset, l.offset))
        return PairSums(
            joint,
            GramSums(k_rows, k.diagonal(), k_squares),
            GramSums(l_rows, l.diagonal(), l_squares),
        )
    if k.factor is not None:
        swapped = pair_sums(l, k, signs=signs)
        return PairSums(swapped.joint, swapped.l, swapped.k)
    ones = k.x.new_ones(k.n, 1)
    if signs is not None:
        ones = torch.cat([ones, signs], dim=1)
    if l.factor is not None:
        # Σ K_ij (FFᵀ)_ij is the sum of fᵀKf over the columns f of the factor F
        product, squares = _product_and_squares(k, torch.cat([ones, l.factor], dim=1))
        products, with_factor = torch.split(product, [ones.shape[1], l.factor.shape[1]], dim=1)
        joint = (with_factor * l.factor).sum()
        return PairSums(joint, _gram_sums(k, products, squares), _sums_of_factor(l, l.factor))

    def start() -> tuple[Tensor, ...]:
        return k.x.new_zeros(3), torch.zeros_like(ones), torch.zeros_like(ones)

    def add(rows: slice, columns: slice, products: Tensor, of_k: Tensor, of_l: Tensor) -> None:
        k_tile = k.tile(rows, columns)
        l_tile = l.tile(rows, columns)
        times = add_product(of_k, k_tile, ones, rows, columns)
        add_product(of_l, l_tile, ones, rows, columns)
        products[0] += times * inner_product(k_tile, l_tile)
        products[1] += times * inner_product(k_tile, k_tile)
        products[2] += times * inner_product(l_tile, l_tile)

    (joint, k_squares, l_squares), of_k, of_l = sum_over_tiles(k.n, k.x.device, start, add)
    return PairSums(joint, _gram_sums(k, of_k, k_squares), _gram_sums(l, of_l, l_squares))


def _gram_sums(gram: Gram, products: Tensor, squares: Tensor) -> GramSums:
    """Return the sums, given the products of the matrix with ones (first column) and with random
    signs, if any.
    """
    signed = products[:, 1:] if products.shape[1] > 1 else None
    return GramSums(products[:, 0].clone(), gram.diagonal(), squares, signed)


def _sums_of_factor(gram: Gram, factor: Tensor) -> GramSums:
    return GramSums(factor @ factor.sum(0), gram.diagonal(), (factor.mT @ factor).square().sum())


def product_rows(k: Gram, l: Gram, sums: PairSums) -> Tensor:
    r"""Return :math:`\sum_j \tilde K_{ij} \tilde L_{ij}`, of shape (n,).

    With a thin factor G of one matrix, this is the diagonal of :math:`\tilde K \tilde G \tilde
    G^\top`. Otherwise, a second pass over the pairs centers both matrices tile by tile.
    """
    thin, other = (k, l) if l.factor is None else (l, k)
    if thin.factor is not None:
        factor = centered_columns(thin.factor)
        return (centered_columns(times(other, factor)) * factor).sum(1)
    of_k = sums.k.centers
    of_l = sums.l.centers
    ones = k.x.new_ones(k.n)

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        product = k.centered_tile(of_k, rows, columns).mul_(l.centered_tile(of_l, rows, columns))
        add_product(total, product, ones, rows, columns)

    return sum_over_tiles(k.n, k.x.device, lambda: (k.x.new_zeros(k.n),), add)[0]


def centered_columns(b: Tensor) -> Tensor:
    """Return b minus the mean of each column."""
    return b - b.mean(dim=0)


def times(k: Gram, b: Tensor) -> Tensor:
    """Return the Gram matrix minus its offset, times b."""
    if k.factor is not None:
        return k.factor @ (k.factor.mT @ b)
    product, _ = _product_and_squares(k, b)
    return product


def _product_and_squares(k: Gram, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Gram matrix minus its offset, times b, and the sum of its squared entries,
    computed by tiles.
    """

    def add(rows: slice, columns: slice, product: Tensor, squares: Tensor) -> None:
        tile = k.tile(rows, columns)
        squares += add_product(product, tile, b, rows, columns) * inner_product(tile, tile)

    product, squares = sum_over_tiles(
        k.n, k.x.device, lambda: (torch.zeros_like(b), b.new_zeros(())), add
    )
    return product, squares


def add_product(product: Tensor, tile: Tensor, b: Tensor, rows: slice, columns: slice) -> int:
    """Add the contributions of a tile and its mirror image to a product with b; return how many
    times the tile occurs in the matrix.
    """
    product[rows] += tile @ b[columns]
    if rows == columns:
        return 1
    product[columns] += tile.mT @ b[rows]
    return 2


def inner_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of the products of all entries, without storing the matrix of products."""
    return torch.dot(a.reshape(-1), b.reshape(-1))
