"""The permutation test of independence: exact level for every n and every kernel."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.independence._permuted import Permuted, permutations, permuted
from frhsic.independence._sample import Sample, bandwidths, sample
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Kernel

__all__ = ["permutation_test"]


def permutation_test(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    resamples: int = 999,
    random_state: _arrays.RandomState = None,
    level: float = 0.05,
    where: Any = None,
    epsilon: float | None = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC against permutations of s.

    .. math:: p = \frac{1 + \#\{b : T_{\pi_b} \ge T\}}{1 + B},

    where :math:`T` is HSIC and :math:`T_{\pi_b}` HSIC with the rows of s permuted. For exchangeable rows
    :math:`\Pr(p \le \alpha) \le \alpha` at every n and for every kernel. Values that differ from T by rounding
    only count as ties. The same seed draws the same permutations on any device.

    Memory is O(n) above 2,048 rows. Time is O(n) for each permutation where both Gram matrices have thin factors
    (one dimension, linear kernels, few distinct values), and O(n²) elsewhere: for many rows in many dimensions
    :func:`~frhsic.independence.gamma_test` is the quicker test.

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, permuted together.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance.
    resamples
        Permutations B. At level .05 fewer than 19 can never reject.
    random_state
        Seed, NumPy or torch generator; None draws a seed, which the result carries.
    level
        Level that the threshold refers to.
    where
        Boolean mask or 0/1 target: only those rows are tested and permuted.
    epsilon
        HSIC below which dependence counts as negligible; see :attr:`IndependenceResult.decision`.
    device
        Device to compute on; by default that of the data.

    Examples
    --------
    Of eight points in order, every permutation but the identity and the reversal gives less than the observed
    value, the squared variance.

    >>> from frhsic.kernels import Linear
    >>> x = torch.arange(8.0)
    >>> result = permutation_test(x, x, Linear(), Linear(), resamples=99, random_state=0)
    >>> round(result.statistic, 4), result.pvalue
    (27.5625, 0.01)
    """
    require_level(level, epsilon)
    require_resamples(resamples)
    data = sample(z, s, kernel_z, kernel_s, where=where, device=device, least=4, what="the permutation test")
    n, seed = data.n, _arrays.seed_of(random_state)
    draw = _arrays.generator(seed)
    way = permuted(data)
    home = data.k.x.device
    observed = float(way.statistics(torch.arange(n, device=home)[None]))
    null = torch.cat([way.statistics(p.to(home)) for p in permutations(n, int(resamples), way.block, draw)])
    pvalue = (1 + int((null >= observed - tie_slack(data, way)).sum())) / (1 + resamples)
    pvalue_epsilon, error = data.against(epsilon, pvalue)
    mean, variance = data.permutation_mean_variance()
    return IndependenceResult(
        statistic=data.statistic,
        pvalue=pvalue,
        threshold=critical_value(null, level) / n**2,
        level=level,
        method="permutation",
        n=n,
        kernels=(repr(data.k.kernel), repr(data.l.kernel)),
        bandwidths=(bandwidths(data.k.kernel), bandwidths(data.l.kernel)),
        effect_size=data.effect(data.statistic),
        effect_size_null=data.effect(mean),
        null_mean=mean,
        null_standard_deviation=math.sqrt(variance),
        resamples=int(resamples),
        seed=seed,
        epsilon=epsilon,
        pvalue_epsilon=pvalue_epsilon,
        standard_error=error,
    )


def tie_slack(data: Sample, way: Permuted) -> float:
    """Return the difference up to which two statistics are tied.

    Rounding of the summed terms, not of their difference: ties are exact there, but for what thin factors leave out.
    """
    return 100 * torch.finfo(torch.float64).eps * data.magnitude + way.error


def critical_value(null: Tensor, level: float) -> float:
    """Return the value that an observed statistic must exceed for p <= level: the m-th largest, m = ⌊level (1 + B)⌋."""
    m = math.floor(level * (1 + len(null)) * (1 + 1e-12))  # .05 · 200 must give 10 in floating point
    return math.inf if m == 0 else float(null.topk(m).values[-1])


def require_resamples(resamples: int) -> None:
    """Raise unless resamples is a positive whole number."""
    if isinstance(resamples, bool) or resamples != int(resamples) or resamples < 1:
        raise ValueError(f"resamples is {resamples}; pass a positive whole number of permutations.")
