r"""The inner product of a Gaussian Gram matrix with a fixed one, with its gradient in closed form.

A training step spends most of its time here. Automatic differentiation passes over an m × m matrix a dozen times; in
closed form the gradient needs one product with the matrix that the value has already computed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.kernels import Gaussian


def gaussian_inner(z: Tensor, g: Tensor) -> Tensor:
    r"""Inner product with the Gaussian Gram matrix of bandwidth 1, :math:`\sum_{ij} G_{ij} \exp(-\|z_i - z_j\|^2 / 2)`.

    For a symmetric G of shape (m, m). With :math:`W_{ij} = G_{ij} k(z_i, z_j)` the gradient in z is
    :math:`2 (W - \operatorname{diag}(W 1)) z`. Safe under ``vmap`` and ``torch.func.grad``, to any order.

    Examples
    --------
    >>> gaussian_inner(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0, 2.0], [2.0, 1.0]]))
    tensor(4.4261)
    """
    value: Tensor
    value, *_ = _GaussianInner.apply(z, g)  # type: ignore[no-untyped-call]  # torch gives apply no types
    return value


class _GaussianInner(torch.autograd.Function):
    """Takes leading batch dimensions, so that vmap costs no more than one call on stacked tensors."""

    @staticmethod
    def forward(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        return _gpu.gaussian_inner(_centered(z), g) or _value_and_slope(z, g)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)  # else a matrix of zeros is made for the slope, only to be ignored
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        z, g, slope = ctx.saved_tensors
        if upstream is None:
            return None, None
        if torch.is_grad_enabled():  # for a second derivative the slope must be a function of z again
            slope = _value_and_slope(z, g)[1]
        slope = slope * (2 * upstream)[..., None, None]
        if not ctx.needs_input_grad[1]:
            return slope, None
        return slope, (upstream[..., None, None] * Gaussian(1.0)(z, z)).sum_to_size(g.shape)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None], z: Tensor, g: Tensor) -> Any:
        """Move the batch of z, and of g if it has one, to the front; g is shared by what z has in addition."""
        z = z.expand(info.batch_size, *z.shape) if in_dims[0] is None else z.movedim(in_dims[0], 0)
        if in_dims[1] is not None:
            g = g.movedim(in_dims[1], 0)
            g = g[(slice(None), *[None] * (z.ndim - g.ndim))]
        return _GaussianInner.apply(z, g), (0, 0)  # type: ignore[no-untyped-call]  # torch gives apply no types


def _value_and_slope(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and half its gradient."""
    centered = _centered(z)
    w = _weighted(centered, g)
    rows = w.sum(-1)
    return rows.sum(-1), w @ centered - rows[..., None] * centered


def _centered(z: Tensor) -> Tensor:
    """Return z minus its mean: only differences matter, and far from zero they would lose digits."""
    return z - z.detach().mean(-2, keepdim=True)


def _weighted(z: Tensor, g: Tensor) -> Tensor:
    """Return W; the exponent z·z' − |z|²/2 − |z'|²/2 is one matrix product."""
    half, one = (z * z).sum(-1, keepdim=True) / -2, torch.ones_like(z[..., :1])
    exponent = torch.cat([z, half, one], dim=-1) @ torch.cat([z, one, half], dim=-1).mT
    if torch.is_grad_enabled():
        return exponent.exp() * g
    return exponent.exp_().mul_(g)  # in place, to save a pass over the matrix
