r"""Discrepancies between bins of the sensitive attribute, which treat it as categorical.

The statistic is the kernel MMD between pairs of bins. Penalties also take the squared distance of each bin's mean from
the overall mean. Both ignore dependence within a bin.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import gram_times, kernel_or_median, paired_rows, recentered
from frhsic.kernels import Kernel


def quantile_edges(s: Any, bins: int = 10) -> Tensor:
    """Inner edges of bins with equally many rows: the quantiles 1/bins, ..., (bins - 1)/bins of s.

    With ties, edges may coincide; the bin between two equal edges is empty.

    Examples
    --------
    >>> quantile_edges([0.0, 1.0, 2.0, 3.0, 4.0], bins=2)
    tensor([2.], dtype=torch.float64)
    """
    values = _one_attribute(s)
    ordered = values.detach().sort().values
    # torch.quantile refuses more than 2**24 rows; this is its linear interpolation
    place = _inner_shares(bins, torch.float64, values.device) * (ordered.shape[0] - 1)
    below = place.floor().long()
    above = (below + 1).clamp_max(ordered.shape[0] - 1)
    return torch.lerp(ordered[below], ordered[above], (place - below).to(values.dtype))


def equal_width_edges(s: Any, bins: int = 10) -> Tensor:
    """Inner edges of bins of equal width over the range of s.

    Examples
    --------
    >>> equal_width_edges([0.0, 1.0, 8.0], bins=4)
    tensor([2., 4., 6.], dtype=torch.float64)
    """
    values = _one_attribute(s).detach()
    low, high = values.min(), values.max()
    return low + (high - low) * _inner_shares(bins, values.dtype, values.device)


def bin_membership(s: Tensor, edges: Tensor) -> Tensor:
    """Membership of each row in the bins, as zeros and ones of shape (n, bins) for bins - 1 inner edges.

    A value on an edge belongs to the bin above it. Pure, and safe under ``vmap``.

    Examples
    --------
    >>> bin_membership(torch.tensor([0.0, 1.0, 5.0]), torch.tensor([1.0, 2.0]))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 1.]])
    """
    number = (s[..., :, None] >= edges).sum(-1)
    bins = torch.arange(edges.shape[-1] + 1, device=s.device)
    return (number[..., None] == bins).to(s.dtype)


def mean_difference_from_bins(z: Tensor, membership: Tensor) -> Tensor:
    r"""Sum over bins of the squared distance to the overall mean, :math:`\sum_b \|\bar z_b - \bar z\|^2`.

    Bins with fewer than two rows are left out. Pure, and safe under ``vmap``.

    Examples
    --------
    Means 0 and 2 about an overall mean of 1.

    >>> z = torch.tensor([[0.0], [0.0], [2.0], [2.0]])
    >>> mean_difference_from_bins(z, bin_membership(torch.arange(4.0), torch.tensor([2.0])))
    tensor(2.)
    """
    sizes = membership.sum(-2)
    away = z - z.mean(-2, keepdim=True)
    means = (membership.mT @ away) / sizes.clamp_min(1)[..., None]
    return ((means * means).sum(-1) * (sizes >= 2)).sum(-1)


def pairwise_mmd_from_bins(sums: Tensor, sizes: Tensor) -> Tensor:
    r"""Mean of the squared MMD over pairs of bins, from sums of the Gram matrix over pairs of bins.

    .. math:: \binom{B}{2}^{-1} \sum_{a<b} \bigl( G_{aa} - 2 G_{ab} + G_{bb} \bigr), \qquad
        G_{ab} = \frac{1}{n_a n_b} \sum_{i \in a, j \in b} k(z_i, z_j),

    over the bins with at least two rows; 0 if there are fewer than two such bins. The diagonal is included, so each
    term is a squared distance of mean embeddings, biased upwards by O(1/n_b). Pure, and safe under ``vmap``.

    Parameters
    ----------
    sums
        :math:`M^\top K M` of shape (..., B, B), for a membership M of shape (..., n, B).
    sizes
        Rows in each bin, of shape (..., B).

    Examples
    --------
    With the linear kernel the one pair of bins, with means 0 and 2, is at squared distance 4.

    >>> z = torch.tensor([[0.0], [0.0], [2.0], [2.0]])
    >>> m = bin_membership(torch.arange(4.0), torch.tensor([2.0]))
    >>> pairwise_mmd_from_bins(m.T @ (z @ z.T) @ m, m.sum(0))
    tensor(4.)
    """
    weights = 1 / sizes.clamp_min(1)
    g = sums * weights[..., :, None] * weights[..., None, :]
    own = torch.diagonal(g, dim1=-2, dim2=-1)
    enough = sizes >= 2
    pairs = (enough[..., :, None] & enough[..., None, :]).to(g.dtype)
    pairs = pairs * (1 - torch.eye(g.shape[-1], dtype=g.dtype, device=g.device))
    squares = own[..., :, None] + own[..., None, :] - 2 * g
    return (squares * pairs).sum(dim=(-2, -1)) / pairs.sum(dim=(-2, -1)).clamp_min(1)


def binned_mmd(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    *,
    bins: int = 10,
    edges: Any = None,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Mean squared MMD between pairs of bins of s, :math:`\binom{B}{2}^{-1} \sum_{a<b} \mathrm{MMD}^2(a, b)`.

    Zero in the population exactly when the law of Z is the same in every bin, if the kernel is characteristic; Z may
    still depend on S within bins. On a sample it is positive even then. Use it to compare with methods for groups; for
    a continuous attribute prefer :func:`frhsic.dependence.hsic`, which needs no bins.

    Parameters
    ----------
    z
        One row per observation.
    s
        One sensitive attribute.
    kernel_z
        Kernel on z; None is the Gaussian at the median distance.
    bins
        Number of bins, with equally many rows each. Ignored if edges are passed.
    edges
        Inner edges in rising order, such as :func:`equal_width_edges` of the training values. The paper's appendix has
        ten bins of equal width, its main text four quantile bins.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, in O(n · bins) memory, and differentiable in z, in O(n²). Bins with fewer than two rows are left out.

    References
    ----------
    The paper, appendix on baselines, "MMD-binned". The published numbers are mean differences on ten quantile
    bins, :func:`mean_difference_from_bins`.

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> binned_mmd([0.0, 0.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0], Linear(), bins=2)
    tensor(4., dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="a statistic of bins")
    values = _one_attribute(s)
    if edges is None:
        inner = quantile_edges(values, bins)
    else:
        inner = _arrays.vector(edges, "edges").to(device=z.device, dtype=z.dtype)
        if bool((inner.diff() < 0).any()):
            raise ValueError("edges are not in rising order; sort them.")
    member = bin_membership(values, inner)
    if int((member.sum(0) >= 2).sum()) < 2:
        raise ValueError("fewer than two bins hold two rows or more. Pass fewer bins, or edges that divide s.")
    kernel = kernel_or_median(kernel_z, z, "z")
    # a constant in the kernel drops out of every pair; without it nearly constant kernels keep their digits
    sums = member.mT @ gram_times(kernel.shifted, recentered(z, kernel), member)
    return pairwise_mmd_from_bins(sums, member.sum(0))


def _one_attribute(s: Any) -> Tensor:
    values = _arrays.matrix(s, "s")
    if values.shape[1] != 1:
        raise ValueError(f"s has {values.shape[1]} columns; bins are of one attribute. Pass one column at a time.")
    _arrays.require_varying(values, "s")
    return values[:, 0]


def _inner_shares(bins: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return 1/bins, ..., (bins - 1)/bins."""
    _arrays.require_integer(bins, "bins", 2)
    return torch.arange(1, bins, dtype=dtype, device=device) / bins
