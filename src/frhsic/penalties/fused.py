r"""The inner product of a Gaussian Gram matrix with a fixed one, with its gradient in closed form.

A training step spends most of its time here. Differentiated operation by operation, an m × m matrix is passed over
a dozen times; in closed form the gradient needs one product with the matrix that the value has already made.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic.kernels import Gaussian

__all__ = ["gaussian_inner"]


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
    value, _ = _GaussianInner.apply(z, g)  # type: ignore[no-untyped-call]  # torch gives apply no types
    return value


class _GaussianInner(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
        w = _weighted(z, g)
        return w.sum(), w

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor, Tensor | None]:
        z, g, w = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative may be asked for: W must be a function of z again
            w = _weighted(z, g)
        z = z - z.detach().mean(0)  # only differences matter, and far from zero they would lose digits
        slope = 2 * upstream * (w @ z - w.sum(-1, keepdim=True) * z)
        return slope, upstream * Gaussian(1.0)(z, z) if ctx.needs_input_grad[1] else None


def _weighted(z: Tensor, g: Tensor) -> Tensor:
    return Gaussian(1.0)(z, z) * g
