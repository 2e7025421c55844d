r"""Distance covariance and distance correlation.

With :math:`A, B` the doubly centered matrices of Euclidean distances :math:`a_{ij} = \|z_i - z_j\|`
and :math:`b_{ij} = \|s_i - s_j\|`,

.. math:: \mathrm{dCov}^2 = \frac{1}{n^2} \sum_{ij} A_{ij} B_{ij}, \qquad
    \mathrm{dCor}^2 = \frac{\mathrm{dCov}^2(z, s)}{\sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s,
    s)}}.

The square of dCov is four times HSIC under the half-distance kernels :math:`(\|x\| + \|y\| - \|x -
y\|)/2`, so dCov needs no bandwidth. The first line of each docstring says whether the function
returns the square.

References
----------
Székely, Rizzo and Bakirov (2007), *Measuring and testing dependence by correlation of distances*.
Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), for the identity with HSIC.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.columns import SortedColumn, distance_product_rows
from frhsic.dependence.exact import hsic_from_rows
from frhsic.dependence.grams import ratio, safe_sqrt
from frhsic.dependence.inputs import paired_rows
from frhsic.kernels import HalfDistance


def distance_covariance(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor | float:
    r"""Distance covariance, :math:`\mathrm{dCov} = \bigl(n^{-2} \sum_{ij} A_{ij}
    B_{ij}\bigr)^{1/2}`: *not* squared.

    Zero in the population exactly when Z and S are independent. Even if they are independent, the
    sample value is positive, of order :math:`n^{-1/2}`. Its square is four times HSIC under
    half-distance kernels. Use distance covariance to avoid choosing a bandwidth.

    Parameters
    ----------
    z, s
        One row per observation; each may have any number of columns.
    where
        Rows to keep: a boolean mask, or a 0/1 target for equal opportunity.
    device
        Device to compute on; by default that of the inputs.

    Returns
    -------
    float or Tensor
        A float or, for tensors, a 0-d tensor in their dtype, differentiable once in z and s.
        Computed in float64 and O(n) memory: by sorting in O(n log n) time if z and s have one
        column each and no gradient is needed, otherwise by tiles in O(n²) time.

    Examples
    --------
    >>> distance_covariance([0.0, 1.0], [0.0, 1.0])
    0.5
    """
    return _tensors.to_input_type(safe_sqrt(_inner_products(z, s, where, device)[0]), z, s)


def distance_correlation(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor | float:
    r"""Distance correlation, :math:`\mathrm{dCor}`, the square root of :math:`\mathrm{dCor}^2`:
    *not* squared, in [0, 1].

    Zero in the population exactly when Z and S are independent, and one when s is a similarity
    transform of z. The value does not change when z or s is shifted, scaled or rotated. The sample
    value is positive even under independence and grows with the dimension of z. To compare
    representations of different dimensions, use its bias-corrected square,
    :func:`~frhsic.independence.normalized_hsic_interval` with :class:`~frhsic.kernels.HalfDistance`
    kernels.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`.

    Returns
    -------
    float or Tensor
        As in :func:`distance_covariance`; 0 if z is constant.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 5.0], [3.0, 1.0, -7.0]), 12)
    1.0
    """
    return _tensors.to_input_type(safe_sqrt(ratio(*_inner_products(z, s, where, device))), z, s)


def _inner_products(
    z: Any, s: Any, where: Any, device: torch.device | str | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inner products of the centered distances: z with s, z with itself, and s with
    itself.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="distance covariance")
    _arrays.require_varying(s, "s")
    differentiated = torch.is_grad_enabled() and (z.requires_grad or s.requires_grad)
    if z.shape[1] == s.shape[1] == 1 and not differentiated:
        x = SortedColumn.from_values(_tensors.column_values(z))
        y = SortedColumn.from_values(_tensors.column_values(s))
        sums = z.new_tensor(
            [distance_product_rows(x, y).sum(), x.squares, y.squares], dtype=torch.float64
        )
        zs, zz, ss = (4 * sums / len(z) ** 2).to(z.dtype)
        return zs, zz, ss
    half = HalfDistance()
    zz = hsic_from_rows(z, z, half, half) if bool((z != z[:1]).any()) else z.sum() * 0
    return 4 * hsic_from_rows(z, s, half, half), 4 * zz, 4 * hsic_from_rows(s, s, half, half)
