"""Kernels of one formula: the radial ones, which have a bandwidth, and the linear one."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic._arrays import require_scale
from frhsic.kernels.kernel import Kernel


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    r"""Squared Euclidean distances, :math:`\|x_i - y_j\|^2`, of shape (..., n, m).

    One column is subtracted directly. More go through one matrix product, of :math:`(x, \|x\|^2, 1)` with
    :math:`(-2y, 1, \|y\|^2)`, after both sides are moved by the centre of `y`, because
    :math:`\|x\|^2 + \|y\|^2 - 2 x^\top y` loses digits when both are far from zero. The centre is the median of some
    rows in float64, so that one far-off row does not cost the others their digits, and the mean in float32.
    """
    if x.shape[-1] == 1:
        return (x - y.mT) ** 2
    if y.dtype == torch.float64:
        some = y.detach()[..., :: 1 + y.shape[-2] // 16, :]
        center = some.median(dim=-2, keepdim=True).values
    else:  # training: the mean is quicker
        center = y.detach().mean(dim=-2, keepdim=True)
    x, y = x - center, y - center
    left = torch.cat([x, (x * x).sum(-1, keepdim=True), torch.ones_like(x[..., :1])], dim=-1)
    right = torch.cat([-2 * y, torch.ones_like(y[..., :1]), (y * y).sum(-1, keepdim=True)], dim=-1)
    return torch.relu(left @ right.mT)  # relu rather than clamp_min: one pass less in the backward of every step


@dataclass(frozen=True)
class _Radial(Kernel):
    """Kernel of the distance alone, with k(x, x) = 1; bounded and characteristic."""

    offset = bound = 1.0
    shift_invariant = centering_safe = characteristic = True
    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        value = self.bandwidth
        if isinstance(value, Tensor):
            if value.ndim != 0:
                raise ValueError(f"bandwidth has shape {tuple(value.shape)}; pass a number or a 0-d tensor.")
            return  # the value is not checked: it may be batched by vmap, or on a GPU
        if isinstance(value, bool) or (not isinstance(value, (int, float)) and not hasattr(value, "__float__")):
            raise TypeError(f"bandwidth is {type(value).__name__}; pass a positive number or a 0-d tensor.")
        require_scale(float(value), "bandwidth")

    @abstractmethod
    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of k(x_i, y_j)."""

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(self._log(x, y))

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.expm1(self._log(x, y))

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[:-1], dtype=x.dtype, device=x.device)


class Gaussian(_Radial):
    r"""Gaussian kernel, :math:`k(x, y) = \exp(-\|x - y\|^2 / 2\sigma^2)`.

    Examples
    --------
    >>> Gaussian(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.6065]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distances(x, y) * (-0.5 / self.bandwidth**2)


class Laplacian(_Radial):
    r"""Laplacian kernel, :math:`k(x, y) = \exp(-\|x - y\|_1 / \sigma)`.

    Examples
    --------
    >>> Laplacian(1.0)(torch.zeros(1, 2), torch.ones(1, 2))
    tensor([[0.1353]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return -_absolute_distances(x, y) / self.bandwidth


class InverseMultiquadric(_Radial):
    r"""Inverse multiquadric kernel, :math:`k(x, y) = (1 + \|x - y\|^2 / \sigma^2)^{-1/2}`.

    Examples
    --------
    >>> InverseMultiquadric(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.7071]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return -torch.log1p(squared_distances(x, y) / self.bandwidth**2) / 2

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.rsqrt(1 + squared_distances(x, y) / self.bandwidth**2)


@dataclass(frozen=True)
class Linear(Kernel):
    r"""Linear kernel, :math:`k(x, y) = x^\top y`. Unbounded; sees differences of means only.

    Examples
    --------
    >>> Linear()(torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, 5.0]]))
    tensor([[11.]])
    """

    offset = 0.0
    bound = math.inf
    shift_invariant = characteristic = False
    centering_safe = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.mT

    shifted = __call__

    def diagonal(self, x: Tensor) -> Tensor:
        return (x * x).sum(-1)


@dataclass(frozen=True)
class HalfDistance(Kernel):
    r"""Half-distance kernel, :math:`k(x, y) = (\|x\| + \|y\| - \|x - y\|) / 2`.

    HSIC under it is a quarter of the squared distance covariance. Unbounded; characteristic for laws with a mean.

    Examples
    --------
    >>> HalfDistance()(torch.tensor([[3.0]]), torch.tensor([[2.0], [-2.0]]))
    tensor([[2., 0.]])
    """

    offset = 0.0
    bound = math.inf
    shift_invariant = False
    centering_safe = characteristic = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        half = self.diagonal(x)[..., :, None] / 2 + self.diagonal(y)[..., None, :] / 2
        return torch.sub(half, _distances(x, y), alpha=0.5)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self(x, y)

    def diagonal(self, x: Tensor) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return norms


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances, subtracted before they are squared, so that rows which coincide are at distance 0."""
    if x.shape[-1] == 1:
        return (x - y.mT).abs()
    distances: Tensor = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return distances


def _absolute_distances(x: Tensor, y: Tensor) -> Tensor:
    """Sum over columns of |x_i − y_j|, one column at a time, so that no (n, m, d) tensor is needed."""
    total = (x[..., :, None, 0] - y[..., None, :, 0]).abs()
    for column in range(1, x.shape[-1]):
        total = total + (x[..., :, None, column] - y[..., None, :, column]).abs()
    return total
