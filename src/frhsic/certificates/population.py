r"""Bounds on dependence in the population, from rows that chose nothing.

:func:`held_out_bound` is for kernels with unit diagonal that are not negative and were fixed before the rows were
drawn. Under such kernels HSIC lies between 0 and 1/4, on a sample and in the population: with
:math:`\kappa = E k(Z, Z')`, :math:`\mathrm{HSIC}(Z, Z) = E k^2 - 2 E_Z (E_{Z'} k)^2 + \kappa^2 \le \kappa - \kappa^2
\le 1/4`, and :math:`\mathrm{HSIC}(Z, S)^2 \le \mathrm{HSIC}(Z, Z)\, \mathrm{HSIC}(S, S)`. A bound at or above 1/4 is
vacuous.

:func:`binned_gap_bound` is for the gap of one score :math:`f \in [0, 1]` between groups b of S that are fixed
beforehand and have probabilities :math:`p_b`,

.. math:: \Delta = \sum_b p_b \, \bigl| \mathbb E[f | b] - \mathbb E f \bigr| = \operatorname{Cov}(\sigma(S), f),
    \qquad \sigma_b = \operatorname{sign}(\mathbb E[f | b] - \mathbb E f).

The signs are unknown, but they are one fixed function. So only the covariance with this function has to concentrate,
and the number of groups does not enter: in the sample the covariance is at most :math:`\hat\Delta`, where each group
has its own best sign.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.certificates.certificate import Certificate, Detail, paired_float64
from frhsic.dependence import hsic
from frhsic.kernels import Kernel

LARGEST_HSIC = 0.25
"""Largest possible HSIC of two kernels with values in [0, 1]."""

FIXED_KERNELS = "kernels with unit diagonal and their bandwidths fixed before the rows were drawn"


def held_out_bound(
    z: Any, s: Any, kernel_z: Kernel, kernel_s: Kernel, *, delta: float = 0.05, device: torch.device | str | None = None
) -> Certificate:
    r"""Bound HSIC in the population from held-out rows.

    With probability at least :math:`1 - \delta`

    .. math:: \sqrt{\mathrm{HSIC}} \;\le\;
        \frac{n}{n - 1} \Big( \sqrt{\widehat{\mathrm{HSIC}}} + \sqrt{\frac{3 \log(1/\delta)}{n}} \Big).

    The value is the square of the right side. It is useful at a few thousand rows.

    Parameters
    ----------
    z, s
        Representation and attribute of rows that were not used to choose the encoder or the kernels.
    kernel_z, kernel_s
        Kernels with unit diagonal that are never negative, such as Gaussians; others, such as `Linear`, raise an error.
        Their bandwidths must come from other rows (the training rows), so None raises an error.
    delta
        Probability δ of error.
    device
        Where to compute; that of the data if None.

    Notes
    -----
    Write :math:`\hat W = \frac{1}{2n^2} \sum_{ij} (\phi_i - \phi_j) \otimes (\psi_i - \psi_j)` for the
    cross-covariance operator of the sample: :math:`\|\hat W\|^2 = \widehat{\mathrm{HSIC}}` and
    :math:`E \hat W = (1 - 1/n) W` with :math:`\|W\|^2 = \mathrm{HSIC}`, so by Jensen's inequality
    :math:`(1 - 1/n) \|W\| \le E \|\hat W\|`. Replacing one row changes n - 1 pairs. Features of unit norm
    with non-negative products are at most :math:`\sqrt2` apart, and a pair changes by at most :math:`\sqrt6`:

    .. math:: \|a \otimes b - a' \otimes b'\|^2
        = \|a\|^2 \|b\|^2 + \|a'\|^2 \|b'\|^2 - 2 \langle a, a' \rangle \langle b, b' \rangle \le 6.

    Indeed :math:`\langle a, a' \rangle \ge p = (\|a\|^2 + \|a'\|^2)/2 - 1` because :math:`\|a - a'\|^2 \le 2`,
    and likewise :math:`\langle b, b' \rangle \ge q`. If p and q are not negative, the first two terms are at
    most :math:`4 + 4pq` and the whole at most :math:`4 + 2pq \le 6`; if one is negative, say p, the product is
    at least :math:`p \|b\| \|b'\| \ge 2p` and the whole at most :math:`4(1 + p) - 4p = 4`. So
    :math:`\|\hat W\|` changes by at most :math:`\sqrt6 / n`, and McDiarmid's inequality gives the second term.

    Examples
    --------
    >>> from frhsic.kernels import Gaussian
    >>> x = torch.arange(400.0) % 20
    >>> bound = held_out_bound(x, torch.arange(400.0) // 20, Gaussian(5.0), Gaussian(5.0))
    >>> round(bound.details["hsic"], 12), round(bound.value, 4), bound.vacuous
    (0.0, 0.0226, False)
    """
    _arrays.require_fraction(delta, "delta")
    for kernel, name in ((kernel_z, "kernel_z"), (kernel_s, "kernel_s")):
        if kernel is None:
            raise ValueError(
                f"{name} is None: a bandwidth computed from the held-out rows is not fixed beforehand. Pass "
                "Gaussian(median_bandwidth(training rows))."
            )
        if not kernel.unit_diagonal:
            raise ValueError(
                f"{name} is {kernel}, without unit diagonal: its HSIC has no bound that is known beforehand."
            )
    z, s = paired_float64(z, s, device=device, what="a held-out bound")
    n = z.shape[0]
    measured = max(float(hsic(z, s, kernel_z, kernel_s)), 0.0)
    deviation = math.sqrt(3 * math.log(1 / delta) / n)
    return hsic_certificate(
        (n / (n - 1) * (math.sqrt(measured) + deviation)) ** 2,
        "HSIC of z and s in the population",
        1 - delta,
        ("rows i.i.d. and independent of the encoder", FIXED_KERNELS, "kernels not negative"),
        {"n": n, "hsic": measured, "deviation": deviation},
    )


def hsic_certificate(
    value: float, bounds: str, confidence: float, assumes: tuple[str, ...], details: Mapping[str, Detail]
) -> Certificate:
    """Return a bound on HSIC under kernels with values in [0, 1]."""
    return Certificate(
        value=value,
        bounds=bounds,
        confidence=confidence,
        assumes=assumes,
        trivial=LARGEST_HSIC,
        trivial_because="HSIC of kernels with values in [0, 1] is at most 1/4",
        details=details,
    )


def binned_gap_bound(scores: Any, s: Any, edges: Any, *, delta: float = 0.05) -> Certificate:
    r"""Bound the gap between groups of S in the population, :math:`\Delta = \sum_b p_b |E[f | b] - E f|`.

    With probability at least :math:`1 - \delta`, for every law of the rows,

    .. math:: \Delta \;\le\; \frac{n}{n-1} \hat\Delta + 2 v \sqrt{\frac{L}{k}} + \frac{L}{2k}, \qquad
        v = \min\Bigl(\tfrac12, \; \hat\sigma_f + \sqrt{\tfrac{2L}{n-1}}\Bigr),
        \quad L = \log\frac2\delta, \quad k = \lfloor n/2 \rfloor.

    :math:`\hat\sigma_f` is the standard deviation of the scores with n - 1. For scores with a standard deviation of .2,
    ten groups and no gap the value is .07 at 1,000 rows, .027 at 5,000 and .012 at 20,000. Unlike the interval of
    :func:`~frhsic.parity.gdp` it is no approximation for many rows. It does not see how the mean score moves within a
    group, so it can be below GDP.

    Parameters
    ----------
    scores
        Scores or 0/1 decisions in [0, 1], of rows that neither fitted the predictor nor chose among its trade-offs.
    s
        The sensitive attribute, of shape (n,).
    edges
        Increasing values between the groups, fixed without these rows: quantiles of S among the training rows, or
        values between its levels. Group b has :math:`e_{b-1} \le s < e_b`.
    delta
        Probability δ of error.

    Notes
    -----
    Let :math:`h_{ij} = \frac12 (\sigma_i - \sigma_j)(f_i - f_j)`. Its mean over pairs is
    :math:`U = \frac{n}{n-1} \widehat{\operatorname{Cov}}(\sigma, f) \le \frac{n}{n-1} \hat\Delta`, and
    :math:`E h = \Delta`. By Hoeffding (1963, section 5), :math:`E e^{\lambda(\Delta - U)}` is at most that of a mean of
    k independent :math:`\Delta - h`. These have mean zero, are at most 3/2, since :math:`h \ge -1` and
    :math:`\Delta \le \operatorname{sd}(\sigma) \operatorname{sd}(f) \le 1/2`, and have a variance of at most
    :math:`E h^2 \le E (f_i - f_j)^2 = 2 \operatorname{Var} f`. Bernstein's inequality gives
    :math:`\Delta \le U + \sqrt{4 \operatorname{Var}(f) L / k} + L / 2k` with probability :math:`1 - \delta / 2`.
    Maurer and Pontil (2009, Theorem 10) bound :math:`\operatorname{sd}(f)` by v with the same probability.

    References
    ----------
    Hoeffding (1963), *Probability inequalities for sums of bounded random variables*. Maurer and Pontil (2009),
    *Empirical Bernstein bounds and sample variance penalization*.

    Examples
    --------
    Two groups of 1,000 rows with mean scores .4 and .6: the gap is .1 in the sample.

    >>> bound = binned_gap_bound([0.4, 0.6] * 1000, [0.0, 1.0] * 1000, [0.5])
    >>> round(bound.bounded, 12), round(bound.value, 3), bound.vacuous
    (0.1, 0.121, False)
    """
    _arrays.require_fraction(delta, "delta")
    f = _arrays.to_numpy(_arrays.vector(scores, "scores")).astype(np.float64)
    values = _arrays.to_numpy(_arrays.vector(s, "s")).astype(np.float64)
    cuts = np.asarray(edges, dtype=np.float64).ravel()
    n = len(f)
    _arrays.require_rows(n, 4, "a bound on the gap")
    if len(values) != n:
        raise ValueError(f"lengths differ: scores has {n} rows, s has {len(values)}.")
    if f.min() < 0 or f.max() > 1:
        raise ValueError(f"scores lie between {f.min():g} and {f.max():g}; this bound needs scores in [0, 1].")
    if not len(cuts) or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
        raise ValueError("edges must be one or more finite, increasing values between the groups of s.")
    group = np.searchsorted(cuts, values, side="right")
    gap = float(np.abs(np.bincount(group, f - f.mean())).sum()) / n
    log, pairs = math.log(2 / delta), n // 2
    spread = min(0.5, float(f.std(ddof=1)) + math.sqrt(2 * log / (n - 1)))
    deviation = 2 * spread * math.sqrt(log / pairs) + log / (2 * pairs)
    return Certificate(
        value=n / (n - 1) * gap + deviation,
        bounds=f"gap in the population between {len(cuts) + 1} groups of s",
        bounded=gap,
        confidence=1 - delta,
        assumes=("rows i.i.d.", "the predictor and the edges were chosen without these rows"),
        trivial=0.5,
        trivial_because="no score in [0, 1] has a larger gap",
        details={"n": n, "groups": len(cuts) + 1, "gap": gap, "deviation": deviation, "spread": spread},
    )
