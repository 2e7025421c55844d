r"""Units of length: how a representation and an attribute are scaled before a kernel sees them.

A kernel of bandwidth :math:`\sigma` on z is the kernel of bandwidth 1 on :math:`z / \sigma`, for every family
here. So a bandwidth policy is a policy for the unit in which z is measured, and any kernel, sums and
products included, goes with any policy.
"""

from __future__ import annotations

from torch import Tensor

from frhsic.kernels import squared_distances

__all__ = ["PUBLISHED_ROWS", "PUBLISHED_SLACK", "median_distance", "root_mean_square_distance", "standardised"]

PUBLISHED_ROWS = 1000
"""The published bandwidth of S is the median distance over the first so many training rows."""

PUBLISHED_SLACK = 1e-5
"""What the published runs add to a median distance, so that it is never zero."""

SMALLEST = 1e-6
"""Below this spread a representation counts as collapsed, and is divided by this instead."""


def median_distance(x: Tensor) -> Tensor:
    r"""Lower median of off-diagonal Euclidean distances, :math:`\mathrm{med}_{i<j} \|x_i - x_j\|`, under vmap too.

    The same number as :func:`frhsic.kernels.median_bandwidth`, as a 0-d tensor that stays on its device;
    zero where half of the pairs coincide.

    Examples
    --------
    >>> import torch
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

    >>> import torch
    >>> root_mean_square_distance(torch.tensor([[0.0], [3.0]]), torch.tensor([0.5, 0.5]))
    tensor(2.1213)
    """
    centred = z - w @ z
    return (2 * (w @ (centred * centred)).sum()).clamp_min(SMALLEST**2).sqrt()


def standardised(z: Tensor, w: Tensor) -> Tensor:
    r"""Columns of mean 0 and variance 1 under the weights; a constant column becomes 0.

    Examples
    --------
    >>> import torch
    >>> standardised(torch.tensor([[0.0, 5.0], [4.0, 5.0]]), torch.tensor([0.5, 0.5]))
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    centred = z - w @ z
    return centred / (w @ (centred * centred)).clamp_min(SMALLEST**2).sqrt()
