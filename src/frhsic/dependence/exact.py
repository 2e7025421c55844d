r"""Exact HSIC of two samples in O(n) memory, on CPU and GPU, differentiable by hand.

The V-statistic is three sums over pairs of rows,

.. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L w),

with :math:`w_i = 1/n`, and is computed from tiles of K and L. Its gradient with respect to K is
:math:`w_i w_j (L_{ij} - (Lw)_i - (Lw)_j + w^\top L w)`: one more pass over the tiles, with the row
sums of the forward pass, gives the gradient with respect to the rows. No n × n matrix is held.

Tests of independence take more from one pass over the pairs: the joint sum, the row sums, the sums
of squares and the diagonals of K and L, both up to a constant that centring removes. Trace and
squares of :math:`\tilde K = HKH` follow without a second pass:

.. math::
    \operatorname{tr} \tilde K = \sum_i K_{ii} - \tfrac1n \sum_i a_i, \qquad
    \operatorname{tr} \tilde K^2 = \sum_{ij} K_{ij}^2 - \tfrac2n \sum_i a_i^2 + \tfrac{1}{n^2}
    \Big(\sum_i a_i\Big)^2, \qquad \tilde K_{ii} = K_{ii} - \tfrac2n a_i + \tfrac{1}{n^2} \sum_j
    a_j,

where :math:`a_i` are the row sums. All sums are in float64; counts are Python integers.

:func:`usable` decides where sums are computed. GPU kernels are for rows in float32 on a GPU with
Triton, and for Gaussian kernels; otherwise PyTorch computes them, in float64 for statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.grams import (
    THIN,
    Gram,
    kernel_or_median,
    over_tiles,
    paired_rows,
    unbiased_from_sums,
    working_copy,
)
from frhsic.kernels import Gaussian, Kernel

if TYPE_CHECKING:  # Triton is not everywhere
    from frhsic.dependence._gpu.pairs import One, Pair


def hsic(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    sample_weight: Any = None,
    device: torch.device | str | None = None,
) -> Tensor | float:
    r"""HSIC of two samples as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`, exactly and in
    O(n) memory.

    Zero in the population exactly when z and s are independent, if both kernels are characteristic.
    The value on a sample is never negative and exceeds the population value by O(1/n) on average;
    use :func:`hsic_unbiased` to compare samples of different size. A small HSIC alone does not show
    fairness: HSIC also falls when z shrinks under a fixed bandwidth.

    Parameters
    ----------
    z, s
        One row per observation: NumPy, pandas, polars, torch or lists. Several columns of s share
        one kernel (:func:`frhsic.kernels.per_column_gaussians` gives each column its own
        bandwidth).
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance of that variable.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    sample_weight
        Weights of the rows, not negative; they are scaled to sum to one. They enter both the joint
        law and the product of its marginals, so the value still vanishes under independence.
    device
        Where to compute: "auto" is the GPU if there is one, None the device of the inputs.

    Returns
    -------
    float or Tensor
        A float; of tensors, a 0-d tensor in the wider dtype of the inputs. Sums are in float64;
        those of float32 inputs and Gaussian kernels on a GPU with Triton are computed by kernels of
        its own, with relative errors below 1e-5. Differentiable once, with respect to z and s, but
        not to the weights or the kernels' bandwidths.

    References
    ----------
    The paper, Definition "Mean embeddings and HSIC" and the equation of the biased empirical
    statistic.

    Examples
    --------
    With linear kernels HSIC is the squared covariance, here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], Linear(), Linear())
    1.5625
    """
    w = None if sample_weight is None else _weights(sample_weight, z, where)
    rows = paired_rows(z, s, where=where, device=device, least=2, what="HSIC")
    return _tensors.as_given(hsic_of_rows(*rows, kernel_z, kernel_s, w), z, s)


def hsic_unbiased(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor | float:
    r"""HSIC of two samples as a U-statistic, the mean over distinct quadruples of rows, in O(n)
    memory.

    .. math:: \frac{1}{n(n-1)(n-2)(n-3)} \sum_{(i, j, q, r)} K_{ij} (L_{ij} + L_{qr} - 2 L_{iq}).

    Its expectation is the population value, so under independence it is zero on average and often
    negative. Use it to compare samples of different size. Parameters and differentiability are
    those of :func:`hsic`; at least four rows are needed. Computed by
    :func:`frhsic.dependence.grams.unbiased_from_sums`.

    Examples
    --------
    Two tight pairs, far apart: 8/4 - 2 * 16/8 + 64/24, as K - 1 is -1 across the pairs and 0
    within.

    >>> from frhsic.kernels import Gaussian
    >>> x = [0.0, 0.0, 100.0, 100.0]
    >>> round(hsic_unbiased(x, x, Gaussian(1.0), Gaussian(1.0)), 4)
    0.6667
    """
    rows = paired_rows(z, s, where=where, device=device, least=4, what="unbiased HSIC")
    w = torch.ones(len(rows[0]), dtype=torch.float64, device=rows[0].device)
    return _tensors.as_given(_hsic(*rows, kernel_z, kernel_s, w, unbiased=True), z, s)


def hsic_of_rows(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    w: Tensor | None = None,
) -> Tensor:
    """Return HSIC of rows that were checked, as a tensor; the weights sum to one."""
    if w is None:
        w = torch.full((len(z),), 1 / len(z), dtype=torch.float64, device=z.device)
    return _hsic(z, s, kernel_z, kernel_s, w, unbiased=False).clamp_min(0)  # rounding


def _hsic(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    w: Tensor,
    *,
    unbiased: bool,
) -> Tensor:
    _arrays.require_varying(s, "s")
    kernels = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    w = w.to(z.device)
    # torch gives `apply` of its autograd functions no types
    value: Tensor = _TiledHSIC.apply(z, s, kernels, w, unbiased)  # type: ignore[no-untyped-call]
    return value


def _from_sums(sums: Tensor, n: int, unbiased: bool) -> Tensor:
    """Return HSIC from the joint sum, the cross sum, and the totals of K and L."""
    joint, cross, k_total, l_total = sums
    return (
        unbiased_from_sums(joint, cross, k_total, l_total, n)
        if unbiased
        else joint - 2 * cross + k_total * l_total
    )


class _TiledHSIC(torch.autograd.Function):
    """The sums by tiles forward; their gradient in closed form, by one more pass over the tiles,
    backward.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], w: Tensor, unbiased: bool
    ) -> Tensor:
        on_gpu = gpu_pair(z, s, *kernels, w) if z.dtype == s.dtype == torch.float32 else None
        if on_gpu is None:
            joint, a, b = _tile_sums(z, s, kernels, w, unbiased)
        else:
            joint, a, b = on_gpu.sums(skip_diagonal=unbiased)
        ctx.save_for_backward(z, s, w, joint, a, b)
        ctx.kernels, ctx.unbiased, ctx.on_gpu = kernels, unbiased, on_gpu
        return _from_sums(torch.stack([joint, (w * a) @ b, w @ a, w @ b]), len(z), unbiased).to(
            z.dtype
        )

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if (
            torch.is_grad_enabled()
        ):  # create_graph=True: a second derivative would silently be wrong
            raise RuntimeError(
                "exact HSIC by tiles is differentiable once. For second derivatives apply "
                "frhsic.dependence.grams.hsic_biased or hsic_unbiased to the Gram matrices."
            )
        z, s, w, joint, a, b = ctx.saved_tensors
        by_kernels = (
            ctx.on_gpu is not None and ctx.on_gpu.has_gradient and not ctx.needs_input_grad[1]
        )
        if (
            ctx.on_gpu is not None and not by_kernels
        ):  # tiles in float64, whose constants and centres are others
            joint, a, b = _tile_sums(z, s, ctx.kernels, w, ctx.unbiased)
        with torch.enable_grad():
            sums = torch.stack([joint, (w * a) @ b, w @ a, w @ b]).requires_grad_()
            slopes = torch.autograd.grad(_from_sums(sums, len(z), ctx.unbiased), sums)[0]
        if by_kernels:
            return (
                upstream * ctx.on_gpu.gradient(b, *slopes[:3]).to(z.dtype),
                None,
                None,
                None,
                None,
            )
        k, l = (_gram(x, kernel) for x, kernel in zip((z, s), ctx.kernels))
        to_z = to_s = None
        if ctx.needs_input_grad[0]:
            to_z = upstream * pull_back(k, _cotangent(l, b, w, slopes[:3], ctx.unbiased)).to(
                z.dtype
            )
        if ctx.needs_input_grad[1]:
            to_s = upstream * pull_back(l, _cotangent(k, a, w, slopes[[0, 1, 3]], ctx.unbiased)).to(
                s.dtype
            )
        return to_z, to_s, None, None, None


def _gram(x: Tensor, kernel: Kernel) -> Gram:
    return Gram.without_factor(working_copy(x, kernel), kernel)


def _tile_sums(
    z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], w: Tensor, skip_diagonal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ w_i w_j K_ij L_ij, Kw and Lw, up to constants that are added to the kernels and that
    HSIC ignores.
    """
    if bool((w != w[0]).any()):
        return weighted_sums(_gram(z, kernels[0]), _gram(s, kernels[1]), w)
    k, l = (Gram.of(working_copy(x, kernel), kernel) for x, kernel in zip((z, s), kernels))
    sums = pair_sums(k, l)
    joint, a, b = sums.joint, sums.k.rows, sums.l.rows
    if skip_diagonal:
        joint, a, b = (
            joint - sums.k.diagonal @ sums.l.diagonal,
            sums.k.off_diagonal_rows,
            sums.l.off_diagonal_rows,
        )
    return joint * w[0] ** 2, a * w[0], b * w[0]


def _cotangent(
    l: Gram, b: Tensor, w: Tensor, slopes: Tensor, skip_diagonal: bool
) -> Callable[[slice, slice], Tensor]:
    """Return tiles of the gradient with respect to K, given the matrix L and its row sums b.

    `slopes` are the derivatives of the statistic with respect to the joint sum, the cross sum and
    the total of K.
    """
    joint, cross, total = slopes
    shift = cross / 2 * b + total / 2  # half for either row of a pair

    def tile(rows: slice, columns: slice) -> Tensor:
        outer = l.tile(rows, columns).mul_(joint).add_(shift[rows, None]).add_(shift[columns])
        outer = outer.mul_(w[rows, None]).mul_(w[columns])
        return outer.fill_diagonal_(0) if skip_diagonal and rows == columns else outer

    return tile


def _weights(weights: Any, z: Any, where: Any) -> Tensor:
    """Return the weights of the rows of z that `where` keeps, summing to one."""
    _tensors.paired((z, "z"), (weights, "sample_weight"))  # raises unless there are as many
    w = _tensors.vector(weights, "sample_weight").detach().to(torch.float64)
    w = w if where is None else w[_tensors.subset_mask(where, len(w)).to(w.device)]
    if bool((w < 0).any()) or not bool(w.sum() > 0):
        raise ValueError(
            "sample_weight is negative, or zero in all rows that count; pass weights of zero or"
            " more."
        )
    return w / w.sum()


# Rows above which the trace of a cube is estimated, and the number of random vectors for it.
CUBE_ROWS, VECTORS = 2048, 16

# Rows of a Gram matrix that are multiplied at once for a trace; of two panels' products one is
# needed.
PANEL = 256


class GramSums(NamedTuple):
    """Sums over a Gram matrix: row sums (n,), diagonal (n,), and the sum of squares (0-d).

    `signed` is the product with random signs, of shape (n, VECTORS), where :func:`pair_sums` was
    asked for it.
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
        r"""The trace :math:`\operatorname{tr}(\tilde K \tilde L)`, which is :math:`n^2` times the
        biased HSIC.
        """
        a, b, n = self.k.rows, self.l.rows, self.n
        return (self.joint - 2 * (a @ b) / n + (a.sum() / n) * (b.sum() / n)).clamp_min(0)

    @property
    def unbiased(self) -> Tensor:
        """The U-statistic of HSIC, from the same sums without the diagonals."""
        a, b = self.k.off_diagonal_rows, self.l.off_diagonal_rows
        joint = self.joint - self.k.diagonal @ self.l.diagonal
        return unbiased_from_sums(joint, a @ b, a.sum(), b.sum(), self.n)


def pair_sums(k: Gram, l: Gram, *, third: bool = False) -> PairSums:
    """Return the sums of two Gram matrices on the same rows, both minus their offsets, in one pass
    over the pairs.

    A matrix with a thin factor needs no pass. With `third` the pass prepares :func:`own_sums`,
    which then needs one pass less.
    """
    if k.factor is not None and l.factor is not None:
        joint = (k.factor.mT @ l.factor).square().sum()
        return PairSums(joint, _sums_of_factor(k, k.factor), _sums_of_factor(l, l.factor))
    on_gpu = (
        gpu_pair(k.x, l.x, k.kernel, l.kernel, torch.ones_like(k.x[:, 0]))
        if k.single and l.single
        else None
    )
    if on_gpu is not None:
        joint, k_rows, l_rows, k_squares, l_squares = on_gpu.sums_with_squares((k.offset, l.offset))
        return PairSums(
            joint,
            GramSums(k_rows, k.diagonal(), k_squares),
            GramSums(l_rows, l.diagonal(), l_squares),
        )
    if k.factor is not None:
        joint, l_sums, k_sums = pair_sums(l, k, third=third)
        return PairSums(joint, k_sums, l_sums)
    ones = torch.cat(
        [k.x.new_ones(k.n, 1), _signs(k) if third and k.n > CUBE_ROWS else k.x.new_zeros(k.n, 0)],
        dim=1,
    )
    if (
        l.factor is not None
    ):  # Σ K_ij (FFᵀ)_ij is the sum of fᵀKf over the columns f of the factor F
        product, squares = _product_and_squares(k, torch.cat([ones, l.factor], dim=1))
        products, with_factor = torch.split(product, [ones.shape[1], l.factor.shape[1]], dim=1)
        joint = (with_factor * l.factor).sum()
        return PairSums(joint, _gram_sums(k, products, squares), _sums_of_factor(l, l.factor))

    def start() -> tuple[Tensor, ...]:
        return k.x.new_zeros(3), torch.zeros_like(ones), torch.zeros_like(ones)

    def add(rows: slice, columns: slice, products: Tensor, of_k: Tensor, of_l: Tensor) -> None:
        k_tile, l_tile = k.tile(rows, columns), l.tile(rows, columns)
        times = _add_product(of_k, k_tile, ones, rows, columns)
        _add_product(of_l, l_tile, ones, rows, columns)
        for total, (a, b) in zip(products, ((k_tile, l_tile), (k_tile, k_tile), (l_tile, l_tile))):
            total += times * _inner(a, b)

    (joint, k_squares, l_squares), of_k, of_l = over_tiles(k.n, k.x.device, start, add)
    return PairSums(joint, _gram_sums(k, of_k, k_squares), _gram_sums(l, of_l, l_squares))


def _gram_sums(gram: Gram, products: Tensor, squares: Tensor) -> GramSums:
    """Return the sums, given the products with ones (first column) and with random signs, if
    any.
    """
    signed = products[:, 1:] if products.shape[1] > 1 else None
    return GramSums(products[:, 0].clone(), gram.diagonal(), squares, signed)


def _sums_of_factor(gram: Gram, factor: Tensor) -> GramSums:
    return GramSums(factor @ factor.sum(0), gram.diagonal(), (factor.mT @ factor).square().sum())


def weighted_sums(k: Gram, l: Gram, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""Return :math:`\sum_{ij} w_i w_j K_{ij} L_{ij}`, :math:`Kw` and :math:`Lw` in one pass over
    the pairs.
    """

    def start() -> tuple[Tensor, ...]:
        return w.new_zeros(()), torch.zeros_like(w), torch.zeros_like(w)

    def add(rows: slice, columns: slice, joint: Tensor, k_rows: Tensor, l_rows: Tensor) -> None:
        k_tile, l_tile = k.tile(rows, columns), l.tile(rows, columns)
        times = _add_product(k_rows, k_tile, w, rows, columns)
        _add_product(l_rows, l_tile, w, rows, columns)
        joint += times * (w[rows] @ (k_tile.mul_(l_tile) @ w[columns]))

    joint, k_rows, l_rows = over_tiles(k.n, k.x.device, start, add)
    return joint, k_rows, l_rows


def pull_back(k: Gram, cotangent: Callable[[slice, slice], Tensor]) -> Tensor:
    r"""Return the gradient with respect to the rows of a symmetric function of their Gram matrix.

    `cotangent(rows, columns)` gives a tile of the function's gradient C with respect to K. Each
    tile of K is computed again, so memory is O(n) plus one tile. The gradient of a Gaussian is
    :math:`\sum_j C_{ij} K_{ij} (x_j - x_i) / \sigma^2`, twice. Other tiles are differentiated by
    themselves.
    """
    x, ones = k.x, k.x.new_ones(k.n)

    def add(rows: slice, columns: slice, gradient: Tensor) -> None:
        outer = cotangent(rows, columns)
        with torch.enable_grad():
            left, right = x[rows].requires_grad_(), x[columns].requires_grad_()
            tile = k.kernel(left, right)
        to_left, to_right = torch.autograd.grad(tile, (left, right), outer)
        times = 1 if rows == columns else 2  # the tile and its mirror image
        gradient[rows] += times * to_left
        gradient[columns] += times * to_right

    def add_gaussian(rows: slice, columns: slice, gradient: Tensor, total: Tensor) -> None:
        outer = cotangent(rows, columns).mul_(k.tile(rows, columns).add_(k.offset))
        _add_product(total, outer, ones, rows, columns)
        _add_product(gradient, outer, x, rows, columns)

    if not isinstance(k.kernel, Gaussian) or k.exponents is None:
        return over_tiles(k.n, x.device, lambda: (torch.zeros_like(x),), add)[0]
    gradient, total = over_tiles(
        k.n, x.device, lambda: (torch.zeros_like(x), x.new_zeros(k.n)), add_gaussian
    )
    return (gradient - total[:, None] * x) * (2 / k.kernel.bandwidth**2)


def product_rows(k: Gram, l: Gram, sums: PairSums) -> Tensor:
    r"""Return :math:`\sum_j \tilde K_{ij} \tilde L_{ij}`, of shape (n,).

    With a thin factor G of one matrix this is the diagonal of :math:`\tilde K \tilde G \tilde
    G^\top`. Otherwise it takes a second pass over the pairs, which centres both matrices tile by
    tile.
    """
    thin, other = (k, l) if l.factor is None else (l, k)
    if thin.factor is not None:
        factor = _centered(thin.factor)
        return (_centered(_times(other, factor)) * factor).sum(1)
    of_k, of_l, ones = sums.k.centers, sums.l.centers, k.x.new_ones(k.n)

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        product = k.centered_tile(of_k, rows, columns).mul_(l.centered_tile(of_l, rows, columns))
        _add_product(total, product, ones, rows, columns)

    return over_tiles(k.n, k.x.device, lambda: (k.x.new_zeros(k.n),), add)[0]


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


class OwnSums(NamedTuple):
    r"""Sums over one centred matrix: its :class:`CubicSums`, and :math:`\sum_j \tilde K_{ij}^2` of
    shape (n,).

    The second is None where the GPU has summed, without the pass over the pairs that gives it.
    """

    cubes: CubicSums
    square_rows: Tensor | None


def own_sums(k: Gram, sums: GramSums) -> OwnSums:
    r"""Return sums over one centred matrix :math:`\tilde K`, in O(n) memory.

    With a thin factor of r columns they take O(n r³) time. Otherwise the trace of the cube
    multiplies panels of rows up to :data:`CUBE_ROWS` rows, O(n³); above, random signs of a fixed
    seed estimate it (:func:`_estimated_trace`), O(n²). The other sums take one pass over the pairs.
    """
    on_gpu = gpu_gram(k.x, k.kernel) if k.single else None
    if on_gpu is not None:
        return OwnSums(_cubic_sums_on_gpu(k, on_gpu, sums), None)
    if k.factor is not None:
        return _own_sums_of_factor(_centered(k.factor), sums.centered.diagonal)
    d, centers, ones = sums.centered.diagonal, sums.centers, k.x.new_ones(k.n)
    few = k.n <= CUBE_ROWS
    once = (
        d.new_zeros(k.n, 0)
        if few
        else _centered(_times(k, _signs(k)) if sums.signed is None else sums.signed)
    )
    vectors = torch.cat([d[:, None], once], dim=1)

    def start() -> tuple[Tensor, ...]:
        return k.x.new_zeros(()), k.x.new_zeros(k.n), k.x.new_zeros(vectors.shape[1])

    def add(rows: slice, columns: slice, cubes: Tensor, of_squares: Tensor, forms: Tensor) -> None:
        tile = k.centered_tile(centers, rows, columns)
        squares = tile * tile
        times = _add_product(of_squares, squares, ones, rows, columns)
        cubes += times * _inner(squares, tile)
        forms += times * ((tile @ vectors[columns]) * vectors[rows]).sum(0)

    cubes, of_squares, forms = over_tiles(k.n, k.x.device, start, add)
    trace = (
        _trace_of_cube(k, centers)
        if few
        else _estimated_trace(_signs(k), once, forms[1:], sums.centered)
    )
    return OwnSums(CubicSums(trace, cubes, (d * d) @ d, d @ of_squares, forms[0]), of_squares)


def _estimated_trace(signs: Tensor, once: Tensor, cubed: Tensor, centered: CenteredGram) -> Tensor:
    r"""Estimate :math:`\operatorname{tr} A^3` from random signs g, their products Ag, and
    :math:`g^\top A^3 g`.

    The mean of :math:`g^\top A^3 g` over the signs is corrected by regression on :math:`g^\top A g`
    and :math:`g^\top A^2 g`, whose expectations :math:`\operatorname{tr} A` and
    :math:`\operatorname{tr} A^2` are known. This removes most of the error of the mean
    (docs/evidence/tests_evidence.md).
    """
    known = torch.stack([centered.trace, centered.squares])
    scale = torch.where(known > 0, known, 1)
    excess = (
        torch.stack([(signs * once).sum(0), once.square().sum(0)], dim=1) / scale - known / scale
    )
    slopes = torch.linalg.pinv(_centered(excess), rtol=1e-5) @ _centered(
        cubed
    )  # float32 on a GPU keeps six digits
    estimate: Tensor = cubed.mean() - excess.mean(dim=0) @ slopes
    return estimate.clamp(
        known[1] ** 2 / scale[0], known[1] ** 1.5
    )  # no eigenvalue is negative: Cauchy and Schwarz


def _own_sums_of_factor(f: Tensor, d: Tensor) -> OwnSums:
    r"""Return the sums for :math:`A = FF^\top`; :math:`\sum A_{ij}^3 = \sum_{abc} (\sum_i f_{ia}
    f_{ib} f_{ic})^2`.
    """
    small = f.mT @ f
    triples = f.new_zeros(f.shape[1] ** 2, f.shape[1])
    for part in torch.split(f, max(1, PANEL * THIN // max(1, f.shape[1]))):
        triples += (part[:, :, None] * part[:, None, :]).flatten(1).mT @ part
    trace, cubes, of_squares = (
        _inner(small @ small, small),
        _inner(triples, triples),
        ((f @ small) * f).sum(1),
    )
    return OwnSums(
        CubicSums(trace, cubes, (d * d) @ d, d @ of_squares, (f.mT @ d).square().sum()), of_squares
    )


def _cubic_sums_on_gpu(k: Gram, on_gpu: One, sums: GramSums) -> CubicSums:
    d = sums.centered.diagonal
    cubes, weighted, quadratic = on_gpu.cubes(sums.centers + k.offset / 2, d)
    if k.factor is not None:
        trace = _own_sums_of_factor(_centered(k.factor), d).cubes.trace
    elif k.n <= CUBE_ROWS:
        trace = _trace_of_cube(k, sums.centers)
    else:
        times, signs = on_gpu.times if on_gpu.multiplies else partial(_times, k), _signs(k)
        once = _centered(times(signs))
        trace = _estimated_trace(signs, once, (once * times(once)).sum(0), sums.centered)
    cubed = (d * d) @ d  # of the diagonal: each sum above is over distinct rows
    return CubicSums(trace, cubes + cubed, cubed, weighted + cubed, quadratic + cubed)


def _centered(b: Tensor) -> Tensor:
    return b - b.mean(dim=0)


def _trace_of_cube(k: Gram, centers: Tensor) -> Tensor:
    trace = k.x.new_zeros(())
    panels = [slice(i, min(i + PANEL, k.n)) for i in range(0, k.n, PANEL)]
    for first, rows in enumerate(panels):
        left = k.centered_tile(centers, rows, slice(0, k.n))
        for columns in panels[first:]:
            right = left if columns == rows else k.centered_tile(centers, columns, slice(0, k.n))
            trace += (1 if columns == rows else 2) * _inner(left @ right.mT, left[:, columns])
    return trace


def _signs(k: Gram) -> Tensor:
    """Return random signs of a fixed seed, less their means, of shape (n, :data:`VECTORS`)."""
    signs = torch.randint(
        2, (k.n, VECTORS), generator=torch.Generator().manual_seed(0), device="cpu"
    )
    return _centered(signs.to(k.x) * 2)


def _add_product(product: Tensor, tile: Tensor, b: Tensor, rows: slice, columns: slice) -> int:
    """Add to a product with b what a tile and its mirror image give; return how often the tile
    counts.
    """
    product[rows] += tile @ b[columns]
    if rows == columns:
        return 1
    product[columns] += tile.mT @ b[rows]
    return 2


def _product_and_squares(k: Gram, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the Gram matrix minus its offset, times b, and the sum of its squares, by tiles."""

    def add(rows: slice, columns: slice, product: Tensor, squares: Tensor) -> None:
        tile = k.tile(rows, columns)
        squares += _add_product(product, tile, b, rows, columns) * _inner(tile, tile)

    product, squares = over_tiles(
        k.n, k.x.device, lambda: (torch.zeros_like(b), b.new_zeros(())), add
    )
    return product, squares


def _times(k: Gram, b: Tensor) -> Tensor:
    """Return the Gram matrix minus its offset, times b."""
    return _product_and_squares(k, b)[0] if k.factor is None else k.factor @ (k.factor.mT @ b)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Sum of the products of all entries, without the matrix of products."""
    return torch.dot(a.reshape(-1), b.reshape(-1))


# Rows from which the GPU kernels of statistics are quicker, and columns that they take.
FEWEST_ROWS, MOST_COLUMNS = 1024, 512


def usable(x: Tensor, *, rows: int = FEWEST_ROWS, columns: int = MOST_COLUMNS) -> bool:
    """Return whether x (..., m, d) may go to GPU kernels that take this many rows or more, and
    columns or fewer.
    """
    return (
        x.is_cuda
        and x.shape[-2] >= rows
        and x.shape[-1] <= columns
        and find_spec("triton") is not None
    )


def gpu_pair(x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel, w: Tensor) -> Pair | None:
    """Return the two Gram matrices for the GPU kernels, under weights w of shape (n,), or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import Pair

    return Pair.of(x, y, kernel_k, kernel_l, w)


def gpu_gram(x: Tensor, kernel: Kernel) -> One | None:
    """Return one Gram matrix for the GPU kernels, or None."""
    if not usable(x):
        return None
    from frhsic.dependence._gpu.pairs import One

    return One.of(x, kernel)


def step_kernels(z: Tensor, columns: int) -> Any:
    """Return the module of GPU kernels for a training step on rows z (..., m, d) of at most so many
    columns, or None.
    """
    if not (z.dtype == torch.float32 and usable(z, rows=1, columns=columns)):
        return None
    from frhsic.dependence._gpu import step

    return step
