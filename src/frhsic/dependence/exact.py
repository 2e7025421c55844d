r"""Exact HSIC of two samples in O(n) memory, on CPU and GPU, with a gradient in closed form.

The V-statistic consists of three sums over pairs of rows,

.. math:: \frac{1}{n^2} \sum_{ij} K_{ij} L_{ij} - \frac{2}{n^3} \sum_i a_i b_i
    + \frac{1}{n^4} \sum_i a_i \sum_i b_i,

where a and b are the row sums of K and L. It is computed from tiles of both matrices. Its gradient
with respect to K is :math:`n^{-2} (L_{ij} - b_i/n - b_j/n + \sum_k b_k/n^2)`: one more pass over
the tiles, with the row sums of the forward pass, gives the gradient with respect to the rows. No n
× n matrix is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence import _gpu
from frhsic.dependence.formulas import biased_from_sums, unbiased_from_sums
from frhsic.dependence.inputs import kernel_or_median, paired_rows, working_copy
from frhsic.dependence.sums import add_product, pair_sums
from frhsic.dependence.tiles import Gram, sum_over_tiles
from frhsic.kernels import Gaussian, Kernel


def hsic(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor | float:
    r"""HSIC of two samples as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`, computed
    exactly in O(n) memory.

    Zero in the population exactly when z and s are independent, if both kernels are characteristic.
    The value for a sample is never negative and exceeds the population value by O(1/n) on average;
    use :func:`hsic_unbiased` to compare samples of different sizes. A small HSIC alone does not
    show fairness: HSIC also falls when z shrinks under a fixed bandwidth.

    Parameters
    ----------
    z, s
        One row per observation, as NumPy arrays, pandas or polars frames, torch tensors or lists.
        Several columns of s share one kernel (:func:`frhsic.kernels.per_column_gaussians` gives
        each column its own bandwidth).
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the variable's median distance as bandwidth.
    where
        Rows to keep: a boolean mask, or a 0/1 target for equal opportunity.
    device
        Device to compute on: "auto" uses the GPU if there is one, None the device of the inputs.

    Returns
    -------
    float or Tensor
        A float or, for tensors, a 0-d tensor in the wider dtype of the inputs. Sums are in float64;
        for float32 inputs and Gaussian kernels on a GPU with Triton, they are computed by the
        library's own GPU kernels, with relative errors below 1e-5. Differentiable once with respect
        to z and s, but not with respect to the kernels' bandwidths.

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
    rows_z, rows_s = paired_rows(z, s, where=where, device=device, least=2, what="HSIC")
    return _tensors.to_input_type(hsic_from_rows(rows_z, rows_s, kernel_z, kernel_s), z, s)


def hsic_unbiased(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor | float:
    r"""HSIC of two samples as a U-statistic, the mean over quadruples of distinct rows, computed in
    O(n) memory.

    .. math:: \frac{1}{n(n-1)(n-2)(n-3)} \sum_{(i, j, q, r)} K_{ij} (L_{ij} + L_{qr} - 2 L_{iq}).

    The expectation is the population value, so under independence the statistic is zero on average
    and often negative. Use it to compare samples of different sizes. The parameters and
    differentiability are those of :func:`hsic`; at least four rows are required. The formula is
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
    rows_z, rows_s = paired_rows(z, s, where=where, device=device, least=4, what="unbiased HSIC")
    return _tensors.to_input_type(
        hsic_from_rows(rows_z, rows_s, kernel_z, kernel_s, unbiased=True), z, s
    )


def hsic_from_rows(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    unbiased: bool = False,
) -> Tensor:
    """Return HSIC of validated rows, as a tensor."""
    _arrays.require_varying(s, "s")
    kernels = (kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s"))
    # torch does not annotate `apply` of its autograd functions
    value: Tensor = _TiledHSIC.apply(z, s, kernels, unbiased)  # type: ignore[no-untyped-call]
    return value if unbiased else value.clamp_min(0)  # negative only by rounding


def _from_sums(sums: Tensor, n: int, unbiased: bool) -> Tensor:
    """Return HSIC from the joint sum, the cross sum, and the totals of K and L."""
    joint, cross, k_total, l_total = sums
    formula = unbiased_from_sums if unbiased else biased_from_sums
    value: Tensor = formula(joint, cross, k_total, l_total, n)
    return value


class _TiledHSIC(torch.autograd.Function):
    """The forward pass computes the sums by tiles. The backward pass computes their gradient in
    closed form, in one more pass over the tiles.
    """

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], unbiased: bool
    ) -> Tensor:
        on_gpu = None
        if z.dtype == s.dtype == torch.float32:
            on_gpu = _gpu.pair(z, s, *kernels)
        if on_gpu is None:
            joint, a, b = _tile_sums(z, s, kernels, unbiased)
        else:
            joint, a, b = on_gpu.sums(skip_diagonal=unbiased)
        ctx.save_for_backward(z, s, joint, a, b)
        ctx.kernels = kernels
        ctx.unbiased = unbiased
        ctx.on_gpu = on_gpu
        sums = torch.stack([joint, a @ b, a.sum(), b.sum()])
        return _from_sums(sums, len(z), unbiased).to(z.dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            # create_graph=True: a second derivative would silently be wrong
            raise RuntimeError(
                "exact HSIC by tiles is differentiable only once. For second derivatives, apply "
                "frhsic.dependence.grams.hsic_biased or hsic_unbiased to the Gram matrices."
            )
        z, s, joint, a, b = ctx.saved_tensors
        on_gpu = ctx.on_gpu
        by_kernels = on_gpu is not None and on_gpu.has_gradient and not ctx.needs_input_grad[1]
        if on_gpu is not None and not by_kernels:
            # tiles in float64, whose constants and centers differ
            joint, a, b = _tile_sums(z, s, ctx.kernels, ctx.unbiased)
        with torch.enable_grad():
            sums = torch.stack([joint, a @ b, a.sum(), b.sum()]).requires_grad_()
            slopes = torch.autograd.grad(_from_sums(sums, len(z), ctx.unbiased), sums)[0]
        to_z = None
        to_s = None
        if by_kernels:
            to_z = upstream * on_gpu.gradient(b, *slopes[:3]).to(z.dtype)
        else:
            k = _gram(z, ctx.kernels[0])
            l = _gram(s, ctx.kernels[1])
            if ctx.needs_input_grad[0]:
                to_k = _cotangent(l, b, slopes[:3], ctx.unbiased)
                to_z = upstream * pull_back(k, to_k).to(z.dtype)
            if ctx.needs_input_grad[1]:
                to_l = _cotangent(k, a, slopes[[0, 1, 3]], ctx.unbiased)
                to_s = upstream * pull_back(l, to_l).to(s.dtype)
        return to_z, to_s, None, None


def _gram(x: Tensor, kernel: Kernel) -> Gram:
    return Gram.without_factor(working_copy(x, kernel), kernel)


def _tile_sums(
    z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], skip_diagonal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ K_ij L_ij and the row sums of K and L; a constant may be added to each kernel, which
    does not change HSIC.
    """
    k = Gram.from_rows(working_copy(z, kernels[0]), kernels[0])
    l = Gram.from_rows(working_copy(s, kernels[1]), kernels[1])
    sums = pair_sums(k, l)
    if not skip_diagonal:
        return sums.joint, sums.k.rows, sums.l.rows
    joint = sums.joint - sums.k.diagonal @ sums.l.diagonal
    return joint, sums.k.off_diagonal_rows, sums.l.off_diagonal_rows


def _cotangent(
    l: Gram, b: Tensor, slopes: Tensor, skip_diagonal: bool
) -> Callable[[slice, slice], Tensor]:
    """Return tiles of the gradient with respect to K, given the matrix L and its row sums b.

    `slopes` are the derivatives of the statistic with respect to the joint sum, the cross sum and
    the total of K.
    """
    joint, cross, total = slopes
    shift = cross / 2 * b + total / 2  # half for each row of a pair

    def tile(rows: slice, columns: slice) -> Tensor:
        outer = l.tile(rows, columns).mul_(joint).add_(shift[rows, None]).add_(shift[columns])
        return outer.fill_diagonal_(0) if skip_diagonal and rows == columns else outer

    return tile


def pull_back(k: Gram, cotangent: Callable[[slice, slice], Tensor]) -> Tensor:
    r"""Return the gradient, with respect to the rows, of a symmetric function of their Gram matrix.

    `cotangent(rows, columns)` returns a tile of the function's gradient C with respect to K. Each
    tile of K is recomputed, so memory is O(n) plus one tile. The gradient of a Gaussian is twice
    :math:`\sum_j C_{ij} K_{ij} (x_j - x_i) / \sigma^2`. For other kernels, each tile is
    differentiated separately.
    """
    x = k.x
    ones = x.new_ones(k.n)

    def add(rows: slice, columns: slice, gradient: Tensor) -> None:
        outer = cotangent(rows, columns)
        with torch.enable_grad():
            left = x[rows].requires_grad_()
            right = x[columns].requires_grad_()
            tile = k.kernel(left, right)
        to_left, to_right = torch.autograd.grad(tile, (left, right), outer)
        times = 1 if rows == columns else 2  # the tile and its mirror image
        gradient[rows] += times * to_left
        gradient[columns] += times * to_right

    def add_gaussian(rows: slice, columns: slice, gradient: Tensor, total: Tensor) -> None:
        outer = cotangent(rows, columns).mul_(k.tile(rows, columns).add_(k.offset))
        add_product(total, outer, ones, rows, columns)
        add_product(gradient, outer, x, rows, columns)

    if not isinstance(k.kernel, Gaussian) or k.exponents is None:
        return sum_over_tiles(k.n, x.device, lambda: (torch.zeros_like(x),), add)[0]
    gradient, total = sum_over_tiles(
        k.n, x.device, lambda: (torch.zeros_like(x), x.new_zeros(k.n)), add_gaussian
    )
    return (gradient - total[:, None] * x) * (2 / k.kernel.bandwidth**2)
