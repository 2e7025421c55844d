r"""The expectation of a conditional discrepancy: how far, on average, the law of Z given S lies from that of Z.

The conditional law at an observed value is represented by the other rows, weighted by a Gaussian in s. The
bandwidth of that Gaussian smooths: at a fixed one the statistic converges to a smoothed functional, and only
one that shrinks with n leads to the conditional law itself, at the rate :math:`n^{-2/5}`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._sample import (
    kernel_or_median,
    paired_rows,
    recentred,
    recomputed,
    require_positive,
    require_varying,
    safe_sqrt,
)
from frhsic.kernels import Kernel, squared_distances

__all__ = ["eipm", "eipm_from_gram", "leave_one_out_weights", "smoothing_bandwidth"]

TILE_ENTRIES = 1 << 22
"""Entries of the weights, and of the Gram matrix, that are held at once."""


def smoothing_bandwidth(s: Any) -> Tensor:
    r"""Bandwidth of each column by Scott's rule, :math:`\gamma_c = \mathrm{sd}(s_c)\, n^{-1/(4+q)}` for q columns.

    For one attribute it is :math:`\mathrm{sd}(s)\, n^{-1/5}`, which balances the smoothing bias against the
    variance. The standard deviation divides by n. A column that is constant beside others that vary gets 1: its rows
    are all equally near.

    Examples
    --------
    >>> smoothing_bandwidth(torch.arange(32) % 2)
    tensor([0.2500], dtype=torch.float64)
    """
    rows = _arrays.matrix(s, "s")
    require_varying(rows, "s")
    n, q = rows.shape
    rows = rows.detach()
    rate: float = n ** (-1 / (4 + q))
    return torch.where((rows == rows[:1]).all(dim=0), 1, rows.std(dim=0, correction=0) * rate)


def leave_one_out_weights(s: Tensor, bandwidth: float | Tensor, anchors: Tensor | None = None) -> Tensor:
    r"""Weights of the other rows at each anchor, :math:`w_{ij} \propto \exp(-\|s_i - s_j\|^2 / 2\gamma^2)` for j ≠ i.

    Each row sums to one and gives no weight to the anchor itself. An anchor far from every other row keeps
    weights that sum to one: they settle on the nearest. Pure, and safe under ``vmap``.

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
    The middle row sees its two neighbours alike; the first sees mostly the nearer one.

    >>> leave_one_out_weights(torch.tensor([0.0, 1.0, 2.0]), 1.0)
    tensor([[0.0000, 0.8176, 0.1824],
            [0.5000, 0.0000, 0.5000],
            [0.1824, 0.8176, 0.0000]])
    """
    rows = (s[:, None] if s.ndim == 1 else s) / bandwidth
    numbers = torch.arange(rows.shape[0], device=rows.device)
    chosen = numbers if anchors is None else anchors
    exponents = -squared_distances(rows[chosen], rows) / 2
    return torch.softmax(exponents.masked_fill(numbers == chosen[:, None], -math.inf), dim=-1)


def eipm_from_gram(k: Tensor, weights: Tensor, *, floor: float = 0.0) -> Tensor:
    r"""Mean over anchors of the distance between weighted and overall mean embedding.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{(w_i - u)^\top K (w_i - u)}, \qquad u = 1/n,

    which is :math:`w_i^\top K w_i - 2 w_i^\top K u + u^\top K u` under the root. Zero when every weighted
    mean equals the overall mean. Pure, and safe under ``vmap``; the Gram matrix may carry any constant offset,
    since the weights sum to one.

    Parameters
    ----------
    k
        Gram matrix of z, of shape (n, n).
    weights
        Of shape (a, n), rows summing to one, as from :func:`leave_one_out_weights`.
    floor
        Least value under the root. At 0 the gradient of a vanishing term is taken as 0; the published
        training code used 1e-10.

    Examples
    --------
    With the linear kernel each term is a difference of means: |0 - 1/2| and |1 - 1/2|.

    >>> z = torch.tensor([[0.0], [1.0]])
    >>> eipm_from_gram(z @ z.T, torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.5000)
    """
    away = weights - 1 / k.shape[-1]
    return safe_sqrt(((away @ k) * away).sum(-1).clamp_min(floor)).mean(-1)


def eipm(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    *,
    bandwidth: float | None = None,
    anchors: int | None = None,
    random_state: _arrays.RandomState = None,
    floor: float = 0.0,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Expected integral probability metric with the kernel as witness class: the mean conditional MMD.

    .. math:: \frac1a \sum_i \sqrt{w_i^\top K w_i - 2 w_i^\top K u + u^\top K u}, \qquad
        w_{ij} \propto \exp\bigl(-(s_i - s_j)^2 / 2\gamma^2\bigr) \text{ for } j \ne i, \quad u = 1/n,

    an estimate of :math:`\mathbb E_S[\mathrm{MMD}(P_{Z|S}, P_Z)]`, which is zero exactly when Z and S are
    independent, if the kernel is characteristic. The estimate itself is positive even then, since weighted and
    overall means differ by chance.

    Parameters
    ----------
    z, s
        One row per observation. Several columns of s are weighted by one Gaussian in all of them.
    kernel_z
        Kernel on z; None is the Gaussian at the median distance.
    bandwidth
        The γ of the weights, in units of s. None is :func:`smoothing_bandwidth`, which shrinks with n. At a fixed
        bandwidth the statistic converges to a smoothed, smaller functional.
    anchors
        How many rows to average over, drawn without replacement; None takes them all. The cost is
        O(anchors · n²).
    random_state
        Decides the draw of the anchors.
    floor
        Least value under the root, see :func:`eipm_from_gram`.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    Tensor
        0-d, differentiable in z. Memory is O(n), forwards and backwards: weights and Gram matrix are computed
        by tiles, and again for the gradient.

    References
    ----------
    Kong et al. (2025), the estimator behind FREM; the paper's preliminaries on EIPM, and its remark on the relation
    of HSIC to the MMD-based EIPM.

    Examples
    --------
    Two groups far apart in s, and the linear kernel: each conditional mean is half a unit from the overall mean.

    >>> from frhsic.kernels import Linear
    >>> eipm([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 9.0, 9.0], Linear(), bandwidth=1.0)
    tensor(0.5000, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="EIPM")
    kernel = kernel_or_median(kernel_z, z, "z")
    width: float | Tensor
    if bandwidth is None:
        width = smoothing_bandwidth(s)
    else:
        require_positive(bandwidth, "bandwidth")
        width = bandwidth
    if not floor >= 0:
        raise ValueError(f"floor is {floor}; pass a number that is not negative.")
    n = z.shape[0]
    z = recentred(z, kernel)
    chosen = _chosen_anchors(n, anchors, random_state).to(z.device)
    step = max(1, TILE_ENTRIES // n)
    squares = torch.cat([_squared_mmd(z, s, kernel, width, part, step) for part in torch.split(chosen, step)])
    return safe_sqrt(squares.clamp_min(floor)).mean()


def _squared_mmd(z: Tensor, s: Tensor, kernel: Kernel, bandwidth: float | Tensor, anchors: Tensor, step: int) -> Tensor:
    """Return the squared MMD at each of a few anchors, over column tiles of the Gram matrix."""

    def of_tile(z: Tensor, s: Tensor, columns: Tensor) -> Tensor:
        away = leave_one_out_weights(s, bandwidth, anchors) - 1 / z.shape[0]
        return ((away @ kernel.shifted(z, z[columns])) * away[:, columns]).sum(-1)

    tiles = torch.split(torch.arange(z.shape[0], device=z.device), step)
    total = recomputed(of_tile, z, s, tiles[0])
    for columns in tiles[1:]:
        total = total + recomputed(of_tile, z, s, columns)
    return total


def _chosen_anchors(n: int, anchors: int | None, random_state: _arrays.RandomState) -> Tensor:
    if anchors is None:
        return torch.arange(n)
    if isinstance(anchors, bool) or not isinstance(anchors, int):
        raise TypeError(f"anchors is {type(anchors).__name__}; pass how many rows to draw, or None for all.")
    if not 1 <= anchors <= n:
        raise ValueError(f"anchors is {anchors}; pass between 1 and {n}, the number of rows, or None for all.")
    source = _arrays.generator(random_state)
    return torch.randperm(n, generator=source, device=source.device)[:anchors]
