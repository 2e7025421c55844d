r"""Parts of a training step, with gradients in closed form: whitening, and inner products with Gram
matrices.

A training step spends most of its time on these parts. Automatic differentiation would pass over an
m × m matrix a dozen times, and need six triangular solves for the Cholesky factor in whitening. In
closed form, one product with a matrix from the forward pass is enough. The functions are safe under
``vmap`` and ``torch.func.grad``, to any order. They accept leading batch dimensions, so that
``vmap`` costs no more than one call on stacked tensors.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from frhsic.dependence import _gpu
from frhsic.kernels import Gaussian

# Added to the variance of each direction when z is whitened, in units of the variance of a
# coordinate.
RIDGE = 0.1

# Most columns for which a GPU uses one kernel for inner products, and for whitening, whose matrix
# must fit into one multiprocessor.
INNER_COLUMNS = 128
WHITENED_COLUMNS = 64


def whiten_rows(z: Tensor, w: Tensor, *, smallest: float) -> Tensor:
    r"""Return uncorrelated columns with weighted mean 0 and weighted variance 1/2d, up to the
    ridge.

    The result is :math:`u L^{-\top} / \sqrt{2d}`, where u is standardized and :math:`L L^\top = R +
    \varepsilon I`, with the correlation matrix R. Kernels that depend on distances and inner
    products have the same values for every root L. A direction with variance v ends up with
    variance :math:`v / (v + \varepsilon) / 2d`, which limits the noise in directions that hardly
    vary; without the ridge, the root mean square distance would be 1. Standard deviations below
    `smallest` are raised to `smallest`. The weights get no gradient.

    Examples
    --------
    Two equal coordinates, with variance 2 along their mean, and a third coordinate.

    >>> z = torch.tensor([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 9.0], [2.0, 2.0, 9.0]])
    >>> white = whiten_rows(z, torch.full((4,), 0.25), smallest=1e-6)
    >>> (white.mT @ white / 4).trace()  # (2 / 2.1 + 1 / 1.1) / 6
    tensor(0.3102)
    """
    # torch has no Cholesky in half precision
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    white: Tensor  # torch does not annotate `apply` of its autograd functions
    white, *_ = _Whitened.apply(wide, w.to(wide), smallest**2)  # type: ignore[no-untyped-call]
    return white.to(z.dtype)


class _Parts(NamedTuple):
    """The whitened rows c T, the centered rows c (..., m, d), the map T (..., d, d), and the
    variances (..., d) before clamping.
    """

    white: Tensor
    centered: Tensor
    map: Tensor
    variance: Tensor


def _whitening(z: Tensor, w: Tensor, least: float) -> _Parts:
    centered = z - w[..., None, :] @ z
    covariance = centered.mT @ (w[..., None] * centered)
    variance = covariance.diagonal(dim1=-2, dim2=-1).clone()
    scale = variance.clamp_min(least).rsqrt()
    eye = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
    correlation = covariance * scale[..., None] * scale[..., None, :] + RIDGE * eye
    factor, _ = torch.linalg.cholesky_ex(correlation)  # cholesky would wait for the GPU
    inverse: Tensor = torch.linalg.solve_triangular(factor, eye.expand(factor.shape), upper=False)
    mapping = scale[..., None] * inverse.mT * _length(z)
    return _Parts(centered @ mapping, centered, mapping, variance)


def _length(z: Tensor) -> float:
    """Return the length of whitened directions."""
    return float((2 * z.shape[-1]) ** -0.5)


class _Whitened(torch.autograd.Function):
    @staticmethod
    def forward(z: Tensor, w: Tensor, least: float) -> tuple[Tensor, ...]:
        step = _gpu.step_kernels(z, WHITENED_COLUMNS)
        if step is None:
            return tuple(_whitening(z, w, least))
        return tuple(step.whiten(z, w, RIDGE, least, _length(z)))

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, float], output: tuple[Tensor, ...]
    ) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:2], *output)
        ctx.least = inputs[2]

    @staticmethod
    def backward(
        ctx: Any, upstream: Tensor | None, *_: Tensor | None
    ) -> tuple[Tensor | None, None, None]:
        z, w, *saved = ctx.saved_tensors
        if upstream is None:
            return None, None, None
        if torch.is_grad_enabled():
            white, centered, mapping, variance = _whitening(z, w, ctx.least)
        elif (step := _gpu.step_kernels(z, WHITENED_COLUMNS)) is not None:
            return step.whiten_backward(upstream, w, saved, ctx.least, _length(z)), None, None
        else:
            white, centered, mapping, variance = saved
        # The change of the factor L is L times the lower half of L⁻¹ dA L⁻ᵀ, its diagonal halved.
        # Its adjoint takes the upper half of whiteᵀ · upstream, mirrored.
        inner = white.mT @ upstream
        inner = (inner.triu() + inner.triu(1).mT) / _length(z) ** 2
        slope = (upstream - (w[..., None] * white) @ inner) @ mapping.mT
        weighted = w[..., None] * centered
        of_scale = torch.where(variance > ctx.least, (slope * centered).sum(-2) / variance, 0)
        slope = slope - weighted * of_scale[..., None, :]
        return slope - w[..., None] * slope.sum(-2, keepdim=True), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, int | None, None], z: Tensor, w: Tensor, least: float
    ) -> Any:
        z = _in_front(z, in_dims[0], info.batch_size)
        w = _align_batch(w, in_dims[1], z.ndim - 1)
        parts = _Whitened.apply(z, w, least)  # type: ignore[no-untyped-call]
        return parts, (0, 0, 0, 0)


def gram_inner_product(z: Tensor, g: Tensor, linear: float, gaussian: float) -> Tensor:
    r"""Inner product with a Gram matrix, :math:`\sum_{ij} G_{ij} (a\, z_i^\top z_j + b
    \exp(-\|z_i - z_j\|^2 / 2))`.

    G is symmetric, of shape (m, m), and its rows sum to 0; a is `linear` and b is `gaussian`. The
    rows z should be near zero, because differences between rows far from zero lose digits. With
    :math:`W_{ij} = b\, G_{ij} \exp(-\|z_i - z_j\|^2 / 2)`, the gradient with respect to z is
    :math:`2 (a G + W - \operatorname{diag}(W 1)) z`.

    Examples
    --------
    >>> g = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    >>> gram_inner_product(
    ...     torch.tensor([[0.0], [1.0]]), g, linear=1.0, gaussian=1.0
    ... )  # 1 + 2 (1 - 0.6065)
    tensor(1.7869)
    """
    value: Tensor
    value, *_ = _Inner.apply(z, g, linear, gaussian)  # type: ignore[no-untyped-call]
    return value


class _Inner(torch.autograd.Function):
    @staticmethod
    def forward(z: Tensor, g: Tensor, linear: float, gaussian: float) -> tuple[Tensor, Tensor]:
        step = _gpu.step_kernels(z, INNER_COLUMNS) if gaussian else None
        value, slope = (step.gram_inner_and_gradient if step else _value_and_slope)(
            z, g, linear, gaussian
        )
        return value, slope

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, Tensor, float, float], output: tuple[Tensor, Tensor]
    ) -> None:
        z, g, *ctx.factors = inputs
        ctx.mark_non_differentiable(output[1])
        # otherwise a matrix of zeros is created for the slope, only to be ignored
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(z, g, output[1])

    @staticmethod
    def backward(
        ctx: Any, upstream: Tensor | None, *_: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        z, g, slope = ctx.saved_tensors
        if upstream is None:
            return None, None, None, None
        if torch.is_grad_enabled():
            # for a second derivative the slope must be a function of z again
            slope = _value_and_slope(z, g, *ctx.factors)[1]
        upstream = upstream[..., None, None]
        to_g = None
        if ctx.needs_input_grad[1]:
            linear, gaussian = ctx.factors
            gram = linear * (z @ z.mT) + gaussian * Gaussian(1.0)(z, z)
            to_g = (upstream * gram).sum_to_size(g.shape)
        return slope * upstream, to_g, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        z: Tensor,
        g: Tensor,
        linear: float,
        gaussian: float,
    ) -> Any:
        z = _in_front(z, in_dims[0], info.batch_size)
        g = _align_batch(g, in_dims[1], z.ndim)
        results = _Inner.apply(z, g, linear, gaussian)  # type: ignore[no-untyped-call]
        return results, (0, 0)


def _value_and_slope(z: Tensor, g: Tensor, linear: float, gaussian: float) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient with respect to z."""
    if gaussian == 0:
        slope = 2 * linear * (g @ z)
        return (z * slope).sum((-2, -1)) / 2, slope
    half = (z * z).sum(-1, keepdim=True) / -2
    ones = torch.ones_like(z[..., :1])
    # the exponent z·z' − |z|²/2 − |z'|²/2 is one matrix product
    exponent = torch.cat([z, half, ones], dim=-1) @ torch.cat([z, ones, half], dim=-1).mT
    # rows of g sum to 0, so that its products with exponents are those with z·z'
    value = linear * (g * exponent).sum((-2, -1)) if linear else 0.0
    differentiated = torch.is_grad_enabled()  # if not, in place, to save passes over the matrix
    w = gaussian * exponent.exp() * g if differentiated else exponent.exp_().mul_(g).mul_(gaussian)
    rows = w.sum(-1)
    w = w + linear * g if differentiated else w.add_(g, alpha=linear)
    return value + rows.sum(-1), 2 * (w @ z - rows[..., None] * z)


def _in_front(x: Tensor, dim: int | None, size: int) -> Tensor:
    """Return x with its ``vmap`` batch as the first dimension."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


def _align_batch(x: Tensor, dim: int | None, ndim: int) -> Tensor:
    """Move the batch dimension of x, if there is one, to the front, and insert dimensions of size 1
    after it, up to `ndim` dimensions in total.
    """
    if dim is None:
        return x
    x = x.movedim(dim, 0)
    return x[(slice(None), *[None] * (ndim - x.ndim))]
