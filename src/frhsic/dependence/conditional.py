r"""Expected conditional discrepancy: the average distance of the law of Z given S from the law of Z.

The conditional law at an observed value is estimated by the other rows, weighted by a Gaussian in s. At a fixed
bandwidth of that Gaussian the statistic converges to a smoothed functional; at one that shrinks with n it converges to
the unsmoothed one, at the rate :math:`n^{-2/5}`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import TILE_ENTRIES, gram_times, kernel_or_median, paired_rows, recentered, safe_sqrt
from frhsic.kernels import Kernel, squared_distances

# Kernel values that `eipm` computes at most unless anchors are given, and for how many its message advises anchors.
MOST_ENTRIES, ADVISED_ENTRIES = 10**12, 10**11


def smoothing_bandwidth(s: Any) -> Tensor:
    r"""Bandwidth of each column by Scott's rule, :math:`\gamma_c = \mathrm{sd}(s_c)\, n^{-1/(4+q)}` for q columns.

    For one attribute it is :math:`\mathrm{sd}(s)\, n^{-1/5}`, which balances the smoothing bias against the
    variance. The standard deviation divides by n. A constant column beside varying ones gets bandwidth 1.

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


def leave_one_out_weights(s: Tensor, bandwidth: float | Tensor, anchors: Tensor | None = None) -> Tensor:
    r"""Weights of the other rows at each anchor, :math:`w_{ij} \propto \exp(-\|s_i - s_j\|^2 / 2\gamma^2)` for j ≠ i.

    Each row sums to one and gives no weight to the anchor itself. The weights of an anchor far from all other rows
    concentrate on the nearest ones. Pure, and safe under ``vmap``.

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
    k: Tensor, weights: Tensor, *, floor: float = 0.0, marginal: Tensor | None = None, counts: Tensor | None = None
) -> Tensor:
    r"""Mean over anchors of the distance between weighted and overall mean embedding.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{(w_i - u)^\top K (w_i - u)}, \qquad u = 1/n,

    with :math:`w_i^\top K w_i - 2 w_i^\top K u + u^\top K u` under the root. Zero when every weighted mean equals the
    overall mean. Pure, and safe under ``vmap``. A constant added to the Gram matrix does not change it, since the
    weights sum to one.

    Parameters
    ----------
    k
        Gram matrix of z, of shape (n, n).
    weights
        Of shape (a, n), rows summing to one, as from :func:`leave_one_out_weights`.
    floor
        Smallest value under the root. At 0 a vanishing term has gradient 0; the published training code used 1e-10.
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
    return terms.mean(-1) if counts is None else (terms * counts).sum(-1) / counts.sum(-1).clamp_min(1)


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
    r"""Expected integral probability metric with the kernel as witness class: the mean conditional MMD.

    .. math:: \frac1a \sum_i \sqrt{w_i^\top K w_i - 2 w_i^\top K u + u^\top K u}, \qquad
        w_{ij} \propto \exp\bigl(-(s_i - s_j)^2 / 2\gamma^2\bigr) \text{ for } j \ne i, \quad u = 1/n,

    an estimate of :math:`\mathbb E_S[\mathrm{MMD}(P_{Z|S}, P_Z)]`, which is zero exactly when Z and S are
    independent, if the kernel is characteristic. The estimate itself is positive even then, since weighted and
    overall means differ by chance. It costs more than :func:`frhsic.dependence.hsic` and needs a bandwidth on s; use
    it to compare with FREM.

    Parameters
    ----------
    z, s
        One row per observation. One Gaussian in all columns of s gives the weights.
    kernel_z
        Kernel on z; None is the Gaussian at the median distance.
    bandwidth
        The γ of the weights, in units of s. None is :func:`smoothing_bandwidth`, which shrinks with n. At a fixed
        bandwidth the statistic converges to a smoothed, smaller functional.
    anchors
        Number of rows to average over, drawn without replacement; None takes all, of up to 10,000 rows. The cost is
        O(anchors · n²).
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
    if bandwidth is not None:
        _arrays.require_scale(bandwidth, "bandwidth")
    width = smoothing_bandwidth(s) if bandwidth is None else bandwidth
    n = z.shape[0]
    z = recentered(z, kernel)
    rows = torch.arange(n, device=z.device)
    if anchors is None and n**3 > MOST_ENTRIES:
        raise ValueError(
            f"EIPM of {n:,} rows with each of them as an anchor needs {n**3:.2g} kernel values, hours of work. Pass "
            f"anchors={max(1, min(n, ADVISED_ENTRIES // n**2))} or so to average over some of them, or fewer rows."
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
