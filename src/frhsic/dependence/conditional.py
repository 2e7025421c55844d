r"""Distances of the law of Z given S from the law of Z: smoothed over s (EIPM), and between bins of
s.

The conditional law at an observed value is estimated by the other rows, weighted by a Gaussian in
s. At a fixed bandwidth of that Gaussian the statistic converges to a smoothed functional; at one
that shrinks with n it converges to the unsmoothed one, at the rate :math:`n^{-2/5}`.

Bins treat s as categorical. The statistic is the kernel MMD between pairs of bins. Penalties also
take the squared distance of each bin's mean from the overall mean. Both ignore dependence within a
bin.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import (
    TILE_ENTRIES,
    gram_times,
    kernel_or_median,
    paired_rows,
    recentered,
    safe_sqrt,
)
from frhsic.kernels import Kernel, squared_distances

# Kernel values that `eipm` computes at most unless anchors are given, and for how many its message
# advises anchors.
MOST_ENTRIES, ADVISED_ENTRIES = 10**12, 10**11


def smoothing_bandwidth(s: Any) -> Tensor:
    r"""Bandwidth of each column by Scott's rule, :math:`\gamma_c = \mathrm{sd}(s_c)\, n^{-1/(4+q)}`
    for q columns.

    For one attribute it is :math:`\mathrm{sd}(s)\, n^{-1/5}`, which balances the smoothing bias
    against the variance. The standard deviation divides by n. A constant column beside varying ones
    gets bandwidth 1.

    Examples
    --------
    >>> smoothing_bandwidth(torch.arange(32) % 2)
    tensor([0.2500], dtype=torch.float64)
    """
    rows = _arrays.matrix(s, "s")
    _arrays.require_varying(rows, "s")
    n, q = rows.shape
    rows = rows.detach()
    rate: float = n ** (-1 / (4 + q))
    return torch.where((rows == rows[:1]).all(dim=0), 1, rows.std(dim=0, correction=0) * rate)


def leave_one_out_weights(
    s: Tensor, bandwidth: float | Tensor, anchors: Tensor | None = None
) -> Tensor:
    r"""Weights of the other rows at each anchor, :math:`w_{ij} \propto \exp(-\|s_i - s_j\|^2 /
    2\gamma^2)` for j ≠ i.

    Each row sums to one and gives no weight to the anchor itself. The weights of an anchor far from
    all other rows concentrate on the nearest ones. Pure, and safe under ``vmap``.

    Parameters
    ----------
    s
        Values of shape (n,) or (n, q).
    bandwidth
        A positive number, a 0-d tensor, or one value per column.
    anchors
        Row numbers of shape (a,); every row if not given.

    Returns
    -------
    Tensor
        Of shape (a, n).

    Examples
    --------
    The middle row weights its two neighbours equally, the first row mostly the nearer one.

    >>> leave_one_out_weights(torch.tensor([0.0, 1.0, 2.0]), 1.0)
    tensor([[0.0000, 0.8176, 0.1824],
            [0.5000, 0.0000, 0.5000],
            [0.1824, 0.8176, 0.0000]])
    """
    rows = (s[:, None] if s.ndim == 1 else s) / bandwidth
    numbers = torch.arange(rows.shape[0], device=rows.device)
    anchors = numbers if anchors is None else anchors
    exponents = -squared_distances(rows[anchors], rows) / 2
    return torch.softmax(exponents.masked_fill(numbers == anchors[:, None], -math.inf), dim=-1)


def eipm_from_gram(
    k: Tensor,
    weights: Tensor,
    *,
    floor: float = 0.0,
    marginal: Tensor | None = None,
    counts: Tensor | None = None,
) -> Tensor:
    r"""Mean over anchors of the distance between weighted and overall mean embedding.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{(w_i - u)^\top K (w_i - u)}, \qquad u = 1/n,

    with :math:`w_i^\top K w_i - 2 w_i^\top K u + u^\top K u` under the root. Zero when every
    weighted mean equals the overall mean. Pure, and safe under ``vmap``. A constant added to the
    Gram matrix does not change it, since the weights sum to one.

    Parameters
    ----------
    k
        Gram matrix of z, of shape (n, n).
    weights
        Of shape (a, n), rows summing to one, as from :func:`leave_one_out_weights`.
    floor
        Smallest value under the root. At 0 a vanishing term has gradient 0; the published training
        code used 1e-10.
    marginal
        The weights u of the overall mean, of shape (n,); equal ones if not given.
    counts
        How much each anchor counts in the mean, of shape (a,); alike if not given.

    Examples
    --------
    With the linear kernel each term is a difference of means: |0 - 1/2| and |1 - 1/2|.

    >>> z = torch.tensor([[0.0], [1.0]])
    >>> eipm_from_gram(z @ z.T, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    away = weights - (1 / k.shape[-1] if marginal is None else marginal)
    terms = safe_sqrt(((away @ k) * away).sum(-1).clamp_min(floor))
    return (
        terms.mean(-1) if counts is None else (terms * counts).sum(-1) / counts.sum(-1).clamp_min(1)
    )


def eipm(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    *,
    bandwidth: float | None = None,
    anchors: int | None = None,
    random_state: _arrays.RandomState = None,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Expected integral probability metric with the kernel as witness class: the mean conditional
    MMD.

    .. math:: \frac1a \sum_i \sqrt{w_i^\top K w_i - 2 w_i^\top K u + u^\top K u}, \qquad
        w_{ij} \propto \exp\bigl(-(s_i - s_j)^2 / 2\gamma^2\bigr) \text{ for } j \ne i, \quad u =
        1/n,

    an estimate of :math:`\mathbb E_S[\mathrm{MMD}(P_{Z|S}, P_Z)]`, which is zero exactly when Z and
    S are independent, if the kernel is characteristic. The estimate itself is positive even then,
    since weighted and overall means differ by chance. It costs more than
    :func:`frhsic.dependence.hsic` and needs a bandwidth on s; use it to compare with FREM.

    Parameters
    ----------
    z, s
        One row per observation. One Gaussian in all columns of s gives the weights.
    kernel_z
        Kernel on z; None is the Gaussian at the median distance.
    bandwidth
        The γ of the weights, in units of s. None is :func:`smoothing_bandwidth`, which shrinks with
        n. At a fixed bandwidth the statistic converges to a smoothed, smaller functional.
    anchors
        Number of rows to average over, drawn without replacement; None takes all, of up to 10,000
        rows. The cost is O(anchors · n²).
    random_state
        Seed of the draw of the anchors.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, in O(n) memory, and differentiable in z, in O(n²).

    References
    ----------
    Kong et al. (2025), the estimator behind FREM; the paper's preliminaries on EIPM, and its remark
    on the relation of HSIC to the MMD-based EIPM.

    Examples
    --------
    Two groups far apart in s, and the linear kernel: each conditional mean is half a unit from the
    overall mean.

    >>> from frhsic.kernels import Linear
    >>> eipm([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 9.0, 9.0], Linear(), bandwidth=1.0)
    tensor(0.5000, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="EIPM")
    kernel = kernel_or_median(kernel_z, z, "z")
    if bandwidth is not None:
        _arrays.require_scale(bandwidth, "bandwidth")
    width = smoothing_bandwidth(s) if bandwidth is None else bandwidth
    n = z.shape[0]
    z = recentered(z, kernel)
    rows = torch.arange(n, device=z.device)
    if anchors is None and n**3 > MOST_ENTRIES:
        raise ValueError(
            f"EIPM of {n:,} rows with each of them as an anchor needs {n**3:.2g} kernel values,"
            f" hours of work. Pass anchors={max(1, min(n, ADVISED_ENTRIES // n**2))} or so to"
            " average over some of them, or fewer rows."
        )
    if anchors is not None:
        _arrays.require_integer(anchors, "anchors", 1, n)
        generator = _arrays.generator(random_state)
        rows = torch.randperm(n, generator=generator, device=generator.device)[:anchors]
    squares = []
    for part in torch.split(rows.to(z.device), max(1, TILE_ENTRIES // n)):
        away = leave_one_out_weights(s, width, part).mT - 1 / n  # (n, anchors of this part)
        squares.append((gram_times(kernel.shifted, z, away) * away).sum(0))
    return safe_sqrt(torch.cat(squares).clamp_min(0)).mean()


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
    """Membership of each row in the bins, as zeros and ones of shape (n, bins) for bins - 1 inner
    edges.

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
    r"""Sum over bins of the squared distance to the overall mean, :math:`\sum_b \|\bar z_b - \bar
    z\|^2`.

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

    over the bins with at least two rows; 0 if there are fewer than two such bins. The diagonal is
    included, so each term is a squared distance of mean embeddings, biased upwards by O(1/n_b).
    Pure, and safe under ``vmap``.

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
    r"""Mean squared MMD between pairs of bins of s, :math:`\binom{B}{2}^{-1} \sum_{a<b}
    \mathrm{MMD}^2(a, b)`.

    Zero in the population exactly when the law of Z is the same in every bin, if the kernel is
    characteristic; Z may still depend on S within bins. On a sample it is positive even then. Use
    it to compare with methods for groups; for a continuous attribute prefer
    :func:`frhsic.dependence.hsic`, which needs no bins.

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
        Inner edges in rising order, such as :func:`equal_width_edges` of the training values. The
        paper's appendix has ten bins of equal width, its main text four quantile bins.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, in O(n · bins) memory, and differentiable in z, in O(n²). Bins with fewer than two rows
        are left out.

    References
    ----------
    The paper, appendix on baselines, "MMD-binned". The published numbers are mean differences on
    ten quantile bins, :func:`mean_difference_from_bins`.

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
        raise ValueError(
            "fewer than two bins hold two rows or more. Pass fewer bins, or edges that divide s."
        )
    kernel = kernel_or_median(kernel_z, z, "z")
    # a constant in the kernel drops out of every pair; without it nearly constant kernels keep
    # their digits
    sums = member.mT @ gram_times(kernel.shifted, recentered(z, kernel), member)
    return pairwise_mmd_from_bins(sums, member.sum(0))


def _one_attribute(s: Any) -> Tensor:
    values = _arrays.matrix(s, "s")
    if values.shape[1] != 1:
        raise ValueError(
            f"s has {values.shape[1]} columns; bins are of one attribute. Pass one column at a"
            " time."
        )
    _arrays.require_varying(values, "s")
    return values[:, 0]


def _inner_shares(bins: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return 1/bins, ..., (bins - 1)/bins."""
    _arrays.require_integer(bins, "bins", 2)
    return torch.arange(1, bins, dtype=dtype, device=device) / bins
