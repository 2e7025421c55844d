r"""Whitening of a batch, with its gradient in closed form.

Automatic differentiation of the Cholesky factor takes six triangular solves, which are slow for the small matrices of a
training step. Here the factor is inverted once, and everything else is a matrix product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

RIDGE = 0.1
"""Added to the variance of each direction when z is whitened, in units of the variance of a coordinate."""


def whitened(z: Tensor, w: Tensor, *, smallest: float) -> Tensor:
    r"""Columns of mean 0, uncorrelated and of variance 1 under the weights, up to the ridge.

    :math:`u L^{-\top}` with u standardized and :math:`L L^\top = R + \varepsilon I`, R the correlation matrix. Kernels
    of distances and inner products give the same for every root. A direction of variance v is left with variance
    :math:`v / (v + \varepsilon)`, which limits the noise of directions that hardly vary. Standard deviations below
    `smallest` count as that. Safe under ``vmap`` and ``torch.func.grad``, to any order; the weights get no gradient.

    Examples
    --------
    Two equal coordinates, with variance 2 along their mean, and a third.

    >>> z = torch.tensor([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 9.0], [2.0, 2.0, 9.0]])
    >>> white = whitened(z, torch.full((4,), 0.25), smallest=1e-6)
    >>> (white.mT @ white / 4).trace()  # 2 / 2.1 and 1 / 1.1
    tensor(1.8615)
    """
    wide = z.to(torch.promote_types(z.dtype, torch.float32))  # torch has no Cholesky in half precision
    white: Tensor
    white, *_ = _Whitened.apply(wide, w.to(wide), smallest**2)  # type: ignore[no-untyped-call]  # untyped in torch
    return white.to(z.dtype)


class _Parts(NamedTuple):
    """Whitened rows c T, centred rows c (..., m, d), the map T (..., d, d), and variances (..., d) before clamping."""

    white: Tensor
    centered: Tensor
    map: Tensor
    variance: Tensor


def _parts(z: Tensor, w: Tensor, least: float) -> _Parts:
    centered = z - w[..., None, :] @ z
    covariance = centered.mT @ (w[..., None] * centered)
    variance = covariance.diagonal(dim1=-2, dim2=-1).clone()
    scale = variance.clamp_min(least).rsqrt()
    eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    correlation = covariance * scale[..., None] * scale[..., None, :] + RIDGE * eye
    factor, _ = torch.linalg.cholesky_ex(correlation)  # cholesky would wait for the GPU
    inverse: Tensor = torch.linalg.solve_triangular(factor, eye.expand(factor.shape), upper=False)
    mapping = scale[..., None] * inverse.mT
    return _Parts(centered @ mapping, centered, mapping, variance)


class _Whitened(torch.autograd.Function):
    """Takes leading batch dimensions, so that vmap costs no more than one call on stacked tensors."""

    @staticmethod
    def forward(z: Tensor, w: Tensor, least: float) -> tuple[Tensor, ...]:
        return tuple(_parts(z, w, least))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:2], *output)
        ctx.least = inputs[2]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, None, None]:
        z, w, *saved = ctx.saved_tensors
        if upstream is None:
            return None, None, None
        white, centered, mapping, variance = _parts(z, w, ctx.least) if torch.is_grad_enabled() else saved
        # The change of the factor L is L times the lower half of L⁻¹ dA L⁻ᵀ, its diagonal halved. Its adjoint takes
        # the upper half of whiteᵀ · upstream, mirrored.
        inner = white.mT @ upstream
        inner = inner.triu() + inner.triu(1).mT
        slope = (upstream - (w[..., None] * white) @ inner) @ mapping.mT
        weighted = w[..., None] * centered
        of_scale = torch.where(variance > ctx.least, (slope * centered).sum(-2) / variance, 0)
        slope = slope - weighted * of_scale[..., None, :]
        return slope - w[..., None] * slope.sum(-2, keepdim=True), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, int | None, None], z: Tensor, w: Tensor, least: float) -> Any:
        """Move the batch of z and w to the front; what z has in addition shares w."""
        z = z.expand(info.batch_size, *z.shape) if in_dims[0] is None else z.movedim(in_dims[0], 0)
        if in_dims[1] is not None:
            w = w.movedim(in_dims[1], 0)
            w = w[(slice(None), *[None] * (z.ndim - 1 - w.ndim))]
        parts = _Whitened.apply(z, w, least)  # type: ignore[no-untyped-call]  # untyped in torch
        return parts, (0, 0, 0, 0)
