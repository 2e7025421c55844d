r"""Units of length: how a representation is scaled before a kernel sees it.

A kernel of bandwidth :math:`\sigma` on z is the kernel of bandwidth 1 on :math:`z / \sigma`, for every family
here. So a bandwidth policy is a policy for the unit in which z is measured, and any kernel, sums and
products included, goes with any policy.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

from frhsic.kernels import Gaussian, Kernel, squared_distances
from frhsic.penalties.base import Batch, Condition, Penalty, one_of, positive, whole

__all__ = ["ScaleZ", "ScaledPenalty", "median_distance", "root_mean_square_distance", "standardised", "whitened"]

ScaleZ = Literal["normalised", "standardised", "whitened", "step", "published"]

SLACK = 1e-5
"""What the published runs add to a median distance, so that it is never zero."""

SMALLEST = 1e-6
"""Below this spread a representation counts as collapsed, and is divided by this instead."""


WHITENING_RIDGE = 0.1
"""Added to the variance of each direction when z is whitened, in units of the variance of a coordinate."""


class ScaledPenalty(Penalty):
    r"""A penalty with a kernel on z in units of a scale, :math:`\kappa(z_i / \sigma_Z, z_j / \sigma_Z)`.

    Parameters
    ----------
    kernel_z
        :math:`\kappa`, any kernel, its own bandwidth in units of the scale: ``Gaussian(1.0)`` on a scale that
        is the median distance is a Gaussian at the median bandwidth, ``Gaussian(0.5)`` one at half of it,
        ``Gaussian(0.5) + Gaussian(2.0)`` two at once, ``Linear() + Gaussian(1.0)`` a linear and a Gaussian
        part. None is ``Gaussian(1.0)``.
    scale_z
        The unit :math:`\sigma_Z`.

        - ``"normalised"``: the batch's root mean square distance,
          :math:`\sigma_Z^2 = m^{-2} \sum_{ij} \|z_i - z_j\|^2`, with gradient. Multiplying z by a constant
          changes nothing, so the penalty cannot be lowered by shrinking or growing z.
        - ``"standardised"``: each coordinate is divided by its own standard deviation times
          :math:`\sqrt{2d}`, with gradient; the root mean square distance is again one, and no coordinate
          can hide by being small.
        - ``"whitened"``: coordinates are standardised, mapped by the inverse root of their correlation matrix plus a
          tenth of the identity, and divided by :math:`\sqrt{2d}`, with gradient. A direction counts by v / (v + 0.1), v
          its variance: all that are well above a tenth alike, small ones less, so that they cannot drive training by
          their noise. The root mean square distance is that of the share of directions that vary: where Z has come
          down to few of its d directions it is well below one, and a Gaussian of bandwidth 1 is wide. Costs a Cholesky
          factor of d × d in every step.
        - ``"step"``: the batch's median distance + 1e-5 in every step, without gradient.
        - ``"published"``: the same, but only in epochs 0, 20, 40, ... (`refresh_every`); the value of the last
          batch of such an epoch is kept until the next. Before the first :meth:`adapt` it is NaN.
        - a number: that.
    refresh_every
        Epochs between refreshes under ``scale_z="published"``.
    condition, fewest
        See :class:`~frhsic.penalties.base.Penalty`. Scales with gradient are those of the rows that count,
        medians are over all rows of the batch.
    """

    scale_z_now: Tensor | None

    def __init__(
        self,
        kernel_z: Kernel | None,
        scale_z: ScaleZ | float,
        refresh_every: int,
        condition: Condition,
        fewest: int,
    ) -> None:
        super().__init__(condition=condition, fewest=fewest)
        if isinstance(scale_z, str):
            one_of("scale_z", scale_z, get_args(ScaleZ))
        else:
            positive("scale_z", scale_z)
        whole("refresh_every", refresh_every, 1)
        self.kernel_z = kernel_or_unit("kernel_z", kernel_z)
        self.scale_z: ScaleZ | float = scale_z
        self.refresh_every = refresh_every
        self.register_buffer("scale_z_now", torch.tensor(math.nan) if scale_z in ("step", "published") else None)

    def adapts(self, epoch: int) -> bool:
        """Return whether the scale of z is refreshed in this epoch."""
        return self.scale_z == "step" or (self.scale_z == "published" and epoch % self.refresh_every == 0)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        if self.scale_z_now is not None:
            self.scale_z_now = torch.full((), math.nan, dtype=s.dtype, device=s.device)

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        if self.scale_z_now is not None and z.shape[0] > 1:
            self.scale_z_now.copy_(median_distance(z) + SLACK)

    def _gram_z(self, batch: Batch) -> Tensor:
        z = self._measured(batch)
        return self.kernel_z(z, z)

    def _measured(self, batch: Batch) -> Tensor:
        """Return z in units of its scale."""
        z = batch.z
        if self.kernel_z.centring_safe and not self.kernel_z.shift_invariant:
            z = z - batch.weights @ z  # a linear part sees the origin, dependence does not: keep the digits
        if isinstance(self.scale_z, (int, float)):
            return z if self.scale_z == 1 else z / self.scale_z
        if self.scale_z == "normalised":
            return z / root_mean_square_distance(z, batch.weights)
        if self.scale_z == "standardised":
            return standardised(z, batch.weights) / math.sqrt(2 * z.shape[1])
        if self.scale_z == "whitened":
            return whitened(z, batch.weights) / math.sqrt(2 * z.shape[1])
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

    The same number as :func:`frhsic.kernels.median_bandwidth`, as a 0-d tensor that stays on its device;
    zero where half of the pairs coincide.

    Examples
    --------
    >>> median_distance(torch.tensor([[0.0], [1.0], [3.0], [10.0]]))
    tensor(3.)
    """
    m = x.shape[0]
    # Of m*m entries read from the second on, in rows of m + 1, the last column is the diagonal. Each pair is left
    # twice, and the lower median of values that all stand twice is the lower median of the values.
    pairs = squared_distances(x, x).reshape(-1)[1:].reshape(m - 1, m + 1)[:, :-1]
    return pairs.reshape(-1).median().sqrt()


def root_mean_square_distance(z: Tensor, w: Tensor) -> Tensor:
    r"""Root mean square distance, :math:`(\sum_{ij} w_i w_j \|z_i - z_j\|^2)^{1/2}`, at least 1e-6.

    Equal to :math:`(2 \sum_i w_i \|z_i - \bar z\|^2)^{1/2}`, so it costs no m × m matrix.

    Examples
    --------
    Of the four ordered pairs of 0 and 3, two are at distance 3: the root of 18 / 4.

    >>> root_mean_square_distance(torch.tensor([[0.0], [3.0]]), torch.tensor([0.5, 0.5]))
    tensor(2.1213)
    """
    centred = z - w @ z
    return (2 * (w @ (centred * centred)).sum()).clamp_min(SMALLEST**2).sqrt()


def standardised(z: Tensor, w: Tensor) -> Tensor:
    r"""Columns of mean 0 and variance 1 under the weights; a constant column becomes 0.

    Examples
    --------
    >>> standardised(torch.tensor([[0.0, 5.0], [4.0, 5.0]]), torch.tensor([0.5, 0.5]))
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    centred = z - w @ z
    return centred / (w @ (centred * centred)).clamp_min(SMALLEST**2).sqrt()


def whitened(z: Tensor, w: Tensor) -> Tensor:
    r"""Columns of mean 0, uncorrelated and of variance 1 under the weights, up to the ridge.

    :math:`u L^{-\top}` with u standardised and :math:`L L^\top = R + \varepsilon I`, R the correlation matrix: kernels
    of distances and inner products do not see which root it is. A direction of variance v is left with
    :math:`v / (v + \varepsilon)`, and with it the noise of a batch in directions that hardly vary is held down.

    Examples
    --------
    Two coordinates that go together, of variance 2 along their mean, and a third.

    >>> z = torch.tensor([[0.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 9.0], [2.0, 2.0, 9.0]])
    >>> white = whitened(z, torch.full((4,), 0.25))
    >>> (white.mT @ white / 4).trace()  # 2 / 2.1 and 1 / 1.1
    tensor(1.8615)
    """
    unit = standardised(z, w)
    wide = unit.to(torch.promote_types(z.dtype, torch.float32))  # there are no factors in half precision
    ridge = WHITENING_RIDGE * torch.eye(z.shape[1], dtype=wide.dtype, device=z.device)
    factor, _ = torch.linalg.cholesky_ex((w[:, None].to(wide) * wide).mT @ wide + ridge)  # waits for no GPU
    white: Tensor = torch.linalg.solve_triangular(factor, wide.mT, upper=False).mT
    return white.to(z.dtype)
