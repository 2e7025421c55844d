r"""The unit in which a representation is measured before a kernel sees it.

A kernel of bandwidth :math:`\sigma` on z is the kernel of bandwidth 1 on :math:`z / \sigma`, for every family here.
So one choice of unit, `scale_z`, works with every kernel, including sums and products.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.kernels import Gaussian, Kernel
from frhsic.kernels.families import squared_distances
from frhsic.penalties.base import Batch, Condition, Penalty, one_of
from frhsic.penalties.closed_forms import whitened

ScaleZ = Literal["normalized", "standardized", "whitened", "published"]

# Added to a median distance by the published runs, so that it is never zero.
SLACK = 1e-5

# Epochs between refreshes of the published scale.
REFRESH_EVERY = 20

# Least spread that a representation is divided by.
SMALLEST = 1e-6


class ScaledPenalty(Penalty):
    r"""A penalty with a kernel on z in units of a scale, :math:`\kappa(z_i / \sigma_Z, z_j / \sigma_Z)`.

    Parameters
    ----------
    kernel_z
        :math:`\kappa`, any kernel, with its bandwidth in units of the scale. If the scale is the median distance,
        ``Gaussian(1.0)`` is a Gaussian at the median bandwidth and ``Gaussian(0.5)`` one at half of it;
        ``Gaussian(0.5) + Gaussian(2.0)`` has two bandwidths. None is ``Gaussian(1.0)``.
    scale_z
        The unit :math:`\sigma_Z`. Take ``"whitened"`` if Z is handed on or probed, ``"standardized"`` if Z is too wide
        for a d × d Cholesky factor in every step, ``"published"`` to reproduce the paper, and a number if Z has a
        unit of its own. The first three cannot be lowered by shrinking Z.

        - ``"whitened"``: standardize the coordinates, map them by the inverse root of their correlation matrix plus a
          tenth of the identity, and divide by :math:`\sqrt{2d}`, with gradient. A direction of variance v counts by
          v / (v + 0.1): large ones all alike, small ones less, so that their noise does not drive training. If Z varies
          in few of its d directions, its root mean square distance is well below one, and a Gaussian of bandwidth 1 is
          wide.
        - ``"standardized"``: divide each coordinate by its own standard deviation times :math:`\sqrt{2d}`, with
          gradient. The root mean square distance is one, and no coordinate can hide by being small.
        - ``"normalized"``: divide by the batch's root mean square distance,
          :math:`\sigma_Z^2 = m^{-2} \sum_{ij} \|z_i - z_j\|^2`, with gradient. Multiplying z by a constant changes
          nothing, but a single coordinate can hide by being small.
        - ``"published"``: the batch's median distance + 1e-5, without gradient, refreshed in epochs 0, 20, 40, ...
          The value of the last batch of such an epoch is kept until the next. Before the first
          :meth:`adapt` it is NaN.
        - a number.
    condition
        See :class:`~frhsic.penalties.base.Penalty`. Scales with gradient are computed from the rows with y = 1, medians
        from all rows of the batch.
    """

    scale_z_now: Tensor | None

    def __init__(self, kernel_z: Kernel | None, scale_z: ScaleZ | float, condition: Condition) -> None:
        super().__init__(condition=condition)
        if isinstance(scale_z, str):
            one_of("scale_z", scale_z, get_args(ScaleZ))
        else:
            _arrays.require_positive(scale_z, "scale_z")
        self.kernel_z = kernel_or_unit("kernel_z", kernel_z)
        self.scale_z: ScaleZ | float = scale_z
        self.register_buffer("scale_z_now", torch.tensor(math.nan) if scale_z == "published" else None)

    def adapts(self, epoch: int) -> bool:
        """Return whether the scale of z is refreshed in this epoch."""
        return self.scale_z == "published" and epoch % REFRESH_EVERY == 0

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        if self.scale_z_now is not None:
            self.scale_z_now = torch.full((), math.nan, dtype=s.dtype, device=s.device)

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        if self.scale_z_now is not None and z.shape[0] > 1:
            self.scale_z_now.copy_(median_distance(z) + SLACK)

    def _gram_z(self, batch: Batch) -> Tensor:
        z = self._in_units(batch)
        return self.kernel_z(z, z)

    def _in_units(self, batch: Batch) -> Tensor:
        """Return z divided by its scale."""
        z = batch.z
        if self.kernel_z.centering_safe and not self.kernel_z.shift_invariant:
            z = z - batch.shares @ z  # a linear kernel loses digits far from zero, and dependence does not change
        if isinstance(self.scale_z, (int, float)):
            return z if self.scale_z == 1 else z / self.scale_z
        if self.scale_z == "normalized":
            return z / root_mean_square_distance(z, batch.shares)
        if self.scale_z == "standardized":
            return standardized(z, batch.shares) / math.sqrt(2 * z.shape[1])
        if self.scale_z == "whitened":
            return whitened(z, batch.shares, smallest=SMALLEST) / math.sqrt(2 * z.shape[1])
        assert self.scale_z_now is not None
        return z / self.scale_z_now.to(z)


def kernel_or_unit(name: str, kernel: Kernel | None) -> Kernel:
    """Return the kernel, or the Gaussian of bandwidth 1 for None."""
    if kernel is None:
        return Gaussian(1.0)
    if not isinstance(kernel, Kernel):
        raise TypeError(f"{name} is {type(kernel).__name__}; pass a kernel such as Gaussian(1.0), or None.")
    return kernel


def median_distance(x: Tensor) -> Tensor:
    r"""Lower median of off-diagonal Euclidean distances, :math:`\mathrm{med}_{i<j} \|x_i - x_j\|`, under vmap too.

    The same number as :func:`frhsic.kernels.median_bandwidth`, as a 0-d tensor on the device of `x`; zero if half of
    the pairs coincide.

    Examples
    --------
    >>> median_distance(torch.tensor([[0.0], [1.0], [3.0], [10.0]]))
    tensor(3.)
    """
    m = x.shape[0]
    # Drop the first of the m*m entries and read the rest in rows of m + 1: the last column is the diagonal. Each pair
    # then occurs twice, which does not change the lower median.
    pairs = squared_distances(x, x).reshape(-1)[1:].reshape(m - 1, m + 1)[:, :-1]
    return pairs.reshape(-1).median().sqrt()


def root_mean_square_distance(z: Tensor, w: Tensor) -> Tensor:
    r"""Root mean square distance, :math:`(\sum_{ij} w_i w_j \|z_i - z_j\|^2)^{1/2}`, at least 1e-6.

    Computed as :math:`(2 \sum_i w_i \|z_i - \bar z\|^2)^{1/2}`, without an m × m matrix.

    Examples
    --------
    Of the four ordered pairs of 0 and 3, two are at distance 3: the root of 18 / 4.

    >>> root_mean_square_distance(torch.tensor([[0.0], [3.0]]), torch.tensor([0.5, 0.5]))
    tensor(2.1213)
    """
    centered = z - w @ z
    return (2 * (w @ (centered * centered)).sum()).clamp_min(SMALLEST**2).sqrt()


def standardized(z: Tensor, w: Tensor) -> Tensor:
    r"""Columns of mean 0 and variance 1 under the weights; a constant column becomes 0.

    Examples
    --------
    >>> standardized(torch.tensor([[0.0, 5.0], [4.0, 5.0]]), torch.tensor([0.5, 0.5]))
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    centered = z - w @ z
    return centered / (w @ (centered * centered)).clamp_min(SMALLEST**2).sqrt()
