"""A permutation test over several pairs of kernels at once, for dependence of unknown scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._sample import paired_rows
from frhsic.independence._permuted import permutations, permuted
from frhsic.independence._sample import Sample, bandwidths, sample
from frhsic.independence.permutation import critical_value, require_resamples, tie_slack
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Gaussian, Kernel, Linear, median_bandwidth

__all__ = ["aggregated_test"]

SCALES = (0.5, 1.0, 2.0)


def aggregated_test(
    z: Any,
    s: Any,
    kernels: Sequence[tuple[Kernel, Kernel]] | None = None,
    *,
    resamples: int = 999,
    random_state: _arrays.RandomState = None,
    level: float = 0.05,
    where: Any = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by the largest of several standardised HSICs.

    .. math:: M = \max_k \frac{T^{(k)} - \mu_k}{\sigma_k}, \qquad p = \frac{1 + \#\{b : M_{\pi_b} \ge M\}}{1 + B},

    where :math:`T^{(k)}` is HSIC under the k-th pair of kernels and :math:`\mu_k, \sigma_k` are its exact mean and
    standard deviation over all permutations, so that no pair outweighs another by its scale. The same permutations
    serve all pairs, and the level holds as in :func:`~frhsic.independence.permutation_test`. No one bandwidth is
    powerful against everything: wide kernels see trends, narrow ones see rings and waves. The largest of them is
    less powerful than the best single pair, which is not known beforehand, and more than a wrong one.

    Parameters
    ----------
    z, s
        One row per observation.
    kernels
        Pairs of kernels on z and on s. By default Gaussians at one half, one and two median distances, and linear.
    resamples, random_state, level, where, device
        As for :func:`~frhsic.independence.permutation_test`.

    Returns
    -------
    IndependenceResult
        Of the pair that attains the maximum: its kernels, its HSIC, and the value that this HSIC had to exceed for the
        maximum to be rejected. The p-value and :attr:`~IndependenceResult.rejected` are those of the whole test.

    References
    ----------
    The idea of aggregation: Albert, Laurent, Marrel and Meynaoui (2022), *Adaptive test of independence based on HSIC
    measures*.

    Examples
    --------
    A straight line is seen best by the linear kernels: no permutation but the identity and the reversal does as well.

    >>> x = torch.arange(9.0)
    >>> result = aggregated_test(x, x, random_state=0)
    >>> result.pvalue, result.kernels
    (0.001, ('Linear()', 'Linear()'))
    """
    require_level(level, None)
    require_resamples(resamples)
    z, s = paired_rows(z, s, where=where, device=device, least=4, what="the aggregated test")
    chosen = _default_kernels(z, s) if kernels is None else list(kernels)
    if not chosen:
        raise ValueError("kernels is empty; pass at least one pair (kernel on z, kernel on s), or None.")
    seed = _arrays.seed_of(random_state)
    samples, observed, null, slack = [], [], [], 0.0
    for kernel_z, kernel_s in chosen:
        data = sample(z, s, kernel_z, kernel_s, where=None, device=None, least=4, what="the aggregated test")
        # from the same seed: the same permutations for every pair
        first, rest, loose = _standardised(data, resamples, _arrays.generator(seed))
        samples.append(data)
        observed.append(first)
        null.append(rest)
        slack = max(slack, loose)
    best = max(range(len(chosen)), key=lambda k: observed[k])
    largest = torch.stack(null).amax(dim=0)
    pvalue = (1 + int((largest >= observed[best] - slack).sum())) / (1 + resamples)
    data = samples[best]
    mean, variance = data.permutation_mean_variance()
    return IndependenceResult(
        statistic=data.statistic,
        pvalue=pvalue,
        threshold=mean + math.sqrt(variance) * critical_value(largest, level),
        level=level,
        method=f"permutation, largest of {len(chosen)} standardised statistics",
        n=data.n,
        kernels=(repr(data.k.kernel), repr(data.l.kernel)),
        bandwidths=(bandwidths(data.k.kernel), bandwidths(data.l.kernel)),
        effect_size=data.effect(data.statistic),
        effect_size_null=data.effect(mean),
        null_mean=mean,
        null_standard_deviation=math.sqrt(variance),
        resamples=int(resamples),
        seed=seed,
    )


def _default_kernels(z: Tensor, s: Tensor) -> list[tuple[Kernel, Kernel]]:
    of_z, of_s = median_bandwidth(z, name="z"), median_bandwidth(s, name="s")
    pairs: list[tuple[Kernel, Kernel]] = [(Gaussian(c * of_z), Gaussian(c * of_s)) for c in SCALES]
    return [*pairs, (Linear(), Linear())]


def _standardised(data: Sample, resamples: int, draw: torch.Generator) -> tuple[float, Tensor, float]:
    """Return the observed and the permuted values in standard deviations from their mean, and the slack for ties."""
    way, n, home = permuted(data), data.n, data.k.x.device
    mean, variance = (moment * n**power for moment, power in zip(data.permutation_mean_variance(), (2, 4)))
    null = torch.cat([way.statistics(p.to(home)) for p in permutations(n, int(resamples), way.block, draw)])
    observed = float(way.statistics(torch.arange(n, device=home)[None]))
    deviation = math.sqrt(variance)
    if deviation <= 1e-12 * mean:  # every permutation gives the same value: this pair says nothing
        return 0.0, torch.zeros_like(null), 0.0
    return (observed - mean) / deviation, (null - mean) / deviation, tie_slack(data, way) / deviation
