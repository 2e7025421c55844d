r"""Exact HSIC of two samples in O(n) memory, on CPU and GPU, differentiable by hand.

The V-statistic is three sums over pairs of rows,

.. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L w),

with :math:`w_i = 1/n`, and is computed from tiles of K and L. Its gradient with respect to K is
:math:`w_i w_j (L_{ij} - (Lw)_i - (Lw)_j + w^\top L w)`: one more pass over the tiles, with the row sums of the forward
pass, gives the gradient with respect to the rows. No n × n matrix is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence import _device
from frhsic.dependence._gram import Gram
from frhsic.dependence._inputs import kernel_or_median, paired_rows, working_copy
from frhsic.dependence.grams import unbiased_from_sums
from frhsic.dependence.moments import pair_sums, pull_back, weighted_sums
from frhsic.kernels import Kernel


def hsic(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    weights: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""HSIC of two samples as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`, exactly and in O(n) memory.

    Zero in the population exactly when z and s are independent, if both kernels are characteristic. The value on a
    sample is never negative and exceeds the population value by O(1/n) on average; use :func:`hsic_unbiased` to
    compare samples of different size. A small HSIC alone does not show fairness: HSIC also falls when z shrinks under
    a fixed bandwidth.

    Parameters
    ----------
    z, s
        One row per observation: NumPy, pandas, polars, torch or lists. Several columns of s share one kernel
        (:func:`frhsic.kernels.per_column_gaussians` gives each column its own bandwidth).
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance of that variable.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    weights
        Weights of the rows, not negative; they are scaled to sum to one. They enter both the joint law and the product
        of its marginals, so the value still vanishes under independence.
    device
        Where to compute: "auto" is the GPU if there is one, None the device of the inputs.

    Returns
    -------
    Tensor
        A 0-d tensor in the wider dtype of the inputs. Sums are in float64; those of float32 inputs and Gaussian kernels
        on a GPU with Triton are computed by kernels of its own, with relative errors below 1e-5. Differentiable once,
        with respect to z and s, but not to the weights or the kernels' bandwidths.

    References
    ----------
    The paper, Definition "Mean embeddings and HSIC" and the equation of the biased empirical statistic.

    Examples
    --------
    With linear kernels HSIC is the squared covariance, here 1.25 ** 2.

    >>> from frhsic.kernels import Linear
    >>> hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], Linear(), Linear())
    tensor(1.5625, dtype=torch.float64)
    """
    w = None if weights is None else _weights(weights, z, where)
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="HSIC")
    w = torch.full((len(z),), 1 / len(z), dtype=torch.float64, device=z.device) if w is None else w
    return _hsic(z, s, kernel_z, kernel_s, w, unbiased=False).clamp_min(0)  # rounding


def hsic_unbiased(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""HSIC of two samples as a U-statistic, the mean over distinct quadruples of rows, in O(n) memory.

    .. math:: \frac{1}{n(n-1)(n-2)(n-3)} \sum_{(i, j, q, r)} K_{ij} (L_{ij} + L_{qr} - 2 L_{iq}).

    Its expectation is the population value, so under independence it is zero on average and often negative. Use it to
    compare samples of different size. Parameters and differentiability are those of :func:`hsic`; at least four rows
    are needed. Computed by :func:`frhsic.dependence.grams.unbiased_from_sums`.

    Examples
    --------
    Two tight pairs, far apart: 8/4 - 2 * 16/8 + 64/24, as K - 1 is -1 across the pairs and 0 within.

    >>> from frhsic.kernels import Gaussian
    >>> x = [0.0, 0.0, 100.0, 100.0]
    >>> hsic_unbiased(x, x, Gaussian(1.0), Gaussian(1.0))
    tensor(0.6667, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=4, what="unbiased HSIC")
    w = torch.ones(len(z), dtype=torch.float64, device=z.device)
    return _hsic(z, s, kernel_z, kernel_s, w, unbiased=True)


def _hsic(
    z: Tensor, s: Tensor, kernel_z: Kernel | None, kernel_s: Kernel | None, w: Tensor, *, unbiased: bool
) -> Tensor:
    _arrays.require_varying(s, "s")
    kernels = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    value: Tensor = _TiledHSIC.apply(z, s, kernels, w.to(z.device), unbiased)  # type: ignore[no-untyped-call]  # untyped
    return value


def _from_sums(sums: Tensor, n: int, unbiased: bool) -> Tensor:
    """Return HSIC from the joint sum, the cross sum, and the totals of K and L."""
    joint, cross, k_total, l_total = sums
    return unbiased_from_sums(joint, cross, k_total, l_total, n) if unbiased else joint - 2 * cross + k_total * l_total


class _TiledHSIC(torch.autograd.Function):
    """The sums by tiles forward; their gradient in closed form, by one more pass over the tiles, backward."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], w: Tensor, unbiased: bool) -> Tensor:
        on_gpu = _device.pair(z, s, *kernels, w) if z.dtype == s.dtype == torch.float32 else None
        if on_gpu is None:
            joint, a, b = _tile_sums(z, s, kernels, w, unbiased)
        else:
            joint, a, b = on_gpu.sums(skip_diagonal=unbiased)
        ctx.save_for_backward(z, s, w, joint, a, b)
        ctx.kernels, ctx.unbiased, ctx.on_gpu = kernels, unbiased, on_gpu
        return _from_sums(torch.stack([joint, (w * a) @ b, w @ a, w @ b]), len(z), unbiased).to(z.dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # create_graph=True: a second derivative would silently be wrong
            raise RuntimeError(
                "exact HSIC by tiles is differentiable once. For second derivatives apply "
                "frhsic.dependence.grams.hsic_biased or hsic_unbiased to the Gram matrices."
            )
        z, s, w, joint, a, b = ctx.saved_tensors
        by_kernels = ctx.on_gpu is not None and ctx.on_gpu.has_gradient and not ctx.needs_input_grad[1]
        if ctx.on_gpu is not None and not by_kernels:  # tiles in float64, whose constants and centres are others
            joint, a, b = _tile_sums(z, s, ctx.kernels, w, ctx.unbiased)
        with torch.enable_grad():
            sums = torch.stack([joint, (w * a) @ b, w @ a, w @ b]).requires_grad_()
            slopes = torch.autograd.grad(_from_sums(sums, len(z), ctx.unbiased), sums)[0]
        if by_kernels:
            return upstream * ctx.on_gpu.gradient(b, *slopes[:3]).to(z.dtype), None, None, None, None
        k, l = (_gram(x, kernel) for x, kernel in zip((z, s), ctx.kernels))
        to_z = to_s = None
        if ctx.needs_input_grad[0]:
            to_z = upstream * pull_back(k, _cotangent(l, b, w, slopes[:3], ctx.unbiased)).to(z.dtype)
        if ctx.needs_input_grad[1]:
            to_s = upstream * pull_back(l, _cotangent(k, a, w, slopes[[0, 1, 3]], ctx.unbiased)).to(s.dtype)
        return to_z, to_s, None, None, None


def _gram(x: Tensor, kernel: Kernel) -> Gram:
    return Gram.without_factor(working_copy(x, kernel), kernel)


def _tile_sums(
    z: Tensor, s: Tensor, kernels: tuple[Kernel, Kernel], w: Tensor, skip_diagonal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return Σ w_i w_j K_ij L_ij, Kw and Lw, up to constants that are added to the kernels and that HSIC ignores."""
    if bool((w != w[0]).any()):
        return weighted_sums(_gram(z, kernels[0]), _gram(s, kernels[1]), w)
    k, l = (Gram.of(working_copy(x, kernel), kernel) for x, kernel in zip((z, s), kernels))
    sums = pair_sums(k, l)
    joint, a, b = sums.joint, sums.k.rows, sums.l.rows
    if skip_diagonal:
        joint, a, b = joint - sums.k.diagonal @ sums.l.diagonal, sums.k.off_diagonal_rows, sums.l.off_diagonal_rows
    return joint * w[0] ** 2, a * w[0], b * w[0]


def _cotangent(l: Gram, b: Tensor, w: Tensor, slopes: Tensor, skip_diagonal: bool) -> Callable[[slice, slice], Tensor]:
    """Return tiles of the gradient with respect to K, given the matrix L and its row sums b.

    `slopes` are the derivatives of the statistic with respect to the joint sum, the cross sum and the total of K.
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
    _arrays.paired((z, "z"), (weights, "weights"))  # raises unless there are as many
    w = _arrays.vector(weights, "weights").detach().to(torch.float64)
    w = w if where is None else w[_arrays.subset_mask(where, len(w)).to(w.device)]
    if bool((w < 0).any()) or not bool(w.sum() > 0):
        raise ValueError("weights are negative, or zero in all rows that count; pass weights of zero or more.")
    return w / w.sum()
