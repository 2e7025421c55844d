r"""HSIC of a whitened batch under linear and Gaussian kernels, with its gradient in closed form, on a GPU.

A training step of the default penalty is many small operations, and on a GPU their number is what it costs. Here they
are four kernels. :func:`composed` is the definition, by the operations that a CPU takes.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.dependence._gpu import Weights
from frhsic.dependence.grams import centered
from frhsic.kernels import Gaussian
from frhsic.penalties.fused import gaussian_inner
from frhsic.penalties.whitening import whitened


def whitened_hsic(z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> Tensor:
    r"""HSIC of z (m, d), whitened, and of scores (m, c), with s (m, q) under a Gaussian of bandwidth 1.

    Biased, and all rows count alike. Safe under ``vmap`` and ``torch.func.grad``, to any order. Only for rows that
    :func:`frhsic.dependence._gpu.fits_step` admits.
    """
    value: Tensor
    value, *_ = _WhitenedHSIC.apply(z, scores, s, weights)  # type: ignore[no-untyped-call]  # untyped in torch
    return value


class _WhitenedHSIC(torch.autograd.Function):
    """Takes leading batch dimensions, so that vmap costs no more than one call on stacked tensors."""

    @staticmethod
    def forward(z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> tuple[Tensor, ...]:
        value, parts = _gpu.whitened_hsic(z, scores, s, weights)
        return value, *(part.view(*z.shape[:-2], *part.shape[1:]) for part in parts)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Weights], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:3], *output[1:])
        ctx.weights = inputs[3]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
        z, scores, s, *parts = ctx.saved_tensors
        if upstream is None:
            return None, None, None, None
        if torch.is_grad_enabled() or ctx.needs_input_grad[2]:  # second derivatives, and those in s
            pull_back = torch.func.vjp(lambda z, scores, s: composed(z, scores, s, ctx.weights), z, scores, s)[1]
            return *pull_back(upstream), None
        gradients = _gpu.whitened_gradient(z, scores, ctx.weights, parts, upstream)
        return *gradients, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> Any:
        """Move the batch to the front; s is shared by what z has in addition."""
        z, scores = (
            rows.expand(info.batch_size, *rows.shape) if dim is None else rows.movedim(dim, 0)
            for rows, dim in zip((z, scores), in_dims)
        )
        if in_dims[2] is not None:
            s = s.movedim(in_dims[2], 0)
            s = s[(slice(None), *[None] * (z.ndim - s.ndim))]
        outputs = _WhitenedHSIC.apply(z, scores, s, weights)  # type: ignore[no-untyped-call]  # untyped in torch
        return outputs, (0,) * len(outputs)


def composed(z: Tensor, scores: Tensor, s: Tensor, weights: Weights) -> Tensor:
    """Return the same by PyTorch's operations, for leading batch dimensions too."""
    m, d = z.shape[-2:]
    l = centered(Gaussian(1.0)(s, s))
    shares = torch.full((m,), 1 / m, dtype=z.dtype, device=z.device)
    white = whitened(z, shares, smallest=math.sqrt(weights.least)) / math.sqrt(2 * d)
    scores = scores - scores.mean(-2, keepdim=True)
    value = weights.head * (scores * (l @ scores)).sum((-2, -1)) + weights.linear * (white * (l @ white)).sum((-2, -1))
    return (value + weights.gaussian * gaussian_inner(white * math.sqrt(weights.rate), l)) / m**2
