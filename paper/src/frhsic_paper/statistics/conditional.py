r"""EIPM, the mean distance between the distributions of Z given S and of Z, smoothed over s.

The conditional distribution at an observed value is estimated from the other rows, weighted by a
Gaussian in s. With a fixed bandwidth of that Gaussian, the statistic converges to a smoothed
functional; with one that shrinks with n, it converges to the unsmoothed one, at the rate
:math:`n^{-2/5}`.

The formula is that of the penalty :class:`frhsic.penalties.EIPM`; here it is computed on whole
samples, in O(n) memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.grams import safe_sqrt
from frhsic.dependence.inputs import kernel_or_median, paired_rows, recenter
from frhsic.kernels import Kernel
from frhsic.penalties.rivals import leave_one_out_weights
from frhsic_paper.products import TILE_ENTRIES, gram_times


def smoothing_bandwidth(s: Any) -> Tensor:
    r"""Bandwidth of each column by Scott's rule, :math:`\gamma_c = \mathrm{sd}(s_c)\, n^{-1/(4+q)}`
    for q columns.

    For one attribute it is :math:`\mathrm{sd}(s)\, n^{-1/5}`, which balances the smoothing bias
    against the variance. The standard deviation divides by n. If only some columns are constant,
    they get bandwidth 1.

    Examples
    --------
    >>> smoothing_bandwidth(torch.arange(32) % 2)
    tensor([0.2500], dtype=torch.float64)
    """
    rows = _tensors.matrix(s, "s")
    _arrays.require_varying(rows, "s")
    n, q = rows.shape
    rows = rows.detach()
    rate: float = n ** (-1 / (4 + q))
    return torch.where((rows == rows[:1]).all(dim=0), 1, rows.std(dim=0, correction=0) * rate)


def eipm(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    *,
    bandwidth: float | None = None,
    anchors: int | None = None,
    random_state: _arrays.RandomState = None,
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
        One row per observation. The weights are a Gaussian in all columns of s jointly.
    kernel_z
        Kernel on z; None uses a Gaussian with the median distance as bandwidth.
    bandwidth
        The γ of the weights, in units of s. None uses :func:`smoothing_bandwidth`, which shrinks
        with n. With a fixed bandwidth, the statistic converges to a smoothed, smaller functional.
    anchors
        Number of rows to average over, drawn without replacement; None uses all. The cost is
        O(anchors · n²).
    random_state
        Seed for drawing the anchors.

    Returns
    -------
    Tensor
        0-d, computed in O(n) memory. It can be differentiated with respect to z, which needs O(n²)
        memory.

    References
    ----------
    Kong et al. (2025), the estimator behind FREM; the paper's preliminaries on EIPM, and its remark
    on the relation of HSIC to the MMD-based EIPM.

    Examples
    --------
    With two groups far apart in s and the linear kernel, each conditional mean is half a unit from
    the overall mean.

    >>> from frhsic.kernels import Linear
    >>> eipm([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 9.0, 9.0], Linear(), bandwidth=1.0)
    tensor(0.5000, dtype=torch.float64)
    """
    z, s = paired_rows(z, s, where=None, device=None, least=2, what="EIPM")
    kernel = kernel_or_median(kernel_z, z, "z")
    if bandwidth is not None:
        _arrays.require_scale(bandwidth, "bandwidth")
    width = smoothing_bandwidth(s) if bandwidth is None else bandwidth
    n = z.shape[0]
    z = recenter(z, kernel)
    rows = torch.arange(n, device=z.device)
    if anchors is not None:
        _arrays.require_integer(anchors, "anchors", 1, n)
        generator = _tensors.generator(random_state)
        rows = torch.randperm(n, generator=generator, device=generator.device)[:anchors]
    squares = []
    for part in torch.split(rows.to(z.device), max(1, TILE_ENTRIES // n)):
        away = leave_one_out_weights(s, width, part).mT - 1 / n  # (n, anchors in this block)
        squares.append((gram_times(kernel.shifted, z, away) * away).sum(0))
    return safe_sqrt(torch.cat(squares).clamp_min(0)).mean()
