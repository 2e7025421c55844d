"""A permutation test with several pairs of kernels, for dependence at an unknown scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._inputs import paired_rows
from frhsic.independence._gram_pair import GramPair, gram_pair
from frhsic.independence._permutations import PermutedStatistics, permuted_statistics
from frhsic.independence.permutation import critical_value, permutation_pvalue
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Gaussian, Kernel, Linear
from frhsic.kernels.bandwidth import default_gaussian

MULTIPLES, UNEQUAL = (0.5, 1.0, 2.0), 0.7
"""Default bandwidths on either side, as multiples of the median distance, and the weight of a pair of unequal ones."""


def aggregated_test(
    z: Any,
    s: Any,
    kernels: Sequence[tuple[Kernel, Kernel]] | None = None,
    *,
    resamples: int = 999,
    random_state: _arrays.RandomState = None,
    max_rows: int = 2000,
    level: float = 0.05,
    where: Any = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by the largest of several standardized HSICs.

    .. math:: M = \max_k w_k \frac{T^{(k)} - \mu_k}{\sigma_k}, \qquad p = \frac{1 + \#\{b : M_{\pi_b} \ge M\}}{1 + B},

    where :math:`T^{(k)}` is HSIC under the k-th pair of kernels and :math:`\mu_k, \sigma_k` are its exact mean and
    standard deviation over all permutations, which put all pairs on one scale. The weight :math:`w_k` is 1, and 0.7 for
    the default pairs of unequal multiples, which would otherwise cost power where equal ones are right. All pairs use
    the same permutations, and the level is exact as in :func:`~frhsic.independence.permutation_test`.

    Use it when the scale of the dependence is unknown: wide kernels detect trends, narrow ones rings and waves. The
    test is less powerful than the best single pair of kernels and more powerful than a wrong one.

    Parameters
    ----------
    z, s
        One row per observation.
    kernels
        Pairs of kernels on z and on s. By default each of three Gaussians on z, at one half, one and two median
        distances, with each of three on s, and a pair of linear ones.
    max_rows
        Largest number of rows. Of more, this many are drawn at random, which the result says in `method` and `n`: the
        time grows with the square of the rows times `resamples` times the number of pairs.
    resamples, random_state, level, where, device
        As for :func:`~frhsic.independence.permutation_test`.

    Returns
    -------
    IndependenceResult
        Kernels and HSIC are those of the pair with the largest standardized HSIC, and the threshold is the value that
        this HSIC has to exceed. The p-value and :attr:`~IndependenceResult.rejected` are those of the whole test.

    References
    ----------
    Albert, Laurent, Marrel and Meynaoui (2022), *Adaptive test of independence based on HSIC measures*. Schrab, Kim,
    Guedj and Gretton (2022), *Efficient aggregated kernel tests using incomplete U-statistics*.

    Examples
    --------
    Linear kernels detect a straight line best: only the identity and the reversal reach the observed value.

    >>> x = torch.arange(9.0)
    >>> result = aggregated_test(x, x, random_state=0)
    >>> result.pvalue, result.kernels
    (0.001, ('Linear()', 'Linear()'))
    """
    require_level(level, None)
    _arrays.require_integer(resamples, "resamples")
    what = "the aggregated test"
    z, s = paired_rows(z, s, where=where, device=device, least=4, what=what)
    seed, resamples, given = _arrays.seed_of(random_state), int(resamples), len(z)
    _arrays.require_integer(max_rows, "max_rows")
    if given > max_rows:
        order = torch.randperm(given, generator=_arrays.generator(seed), device="cpu")
        chosen = order[: max(max_rows, 4)].to(z.device)
        z, s = z[chosen], s[chosen]
    weighted = _default_kernels(z, s) if kernels is None else [(*pair, 1.0) for pair in kernels]
    if not weighted:
        raise ValueError("kernels is empty; pass at least one pair (kernel on z, kernel on s), or None.")
    pairs = [gram_pair(z, s, kernel_z, kernel_s, least=4, what=what) for kernel_z, kernel_s, _ in weighted]
    weights = [weight for *_, weight in weighted]
    # each from the same seed: the same permutations for every pair of kernels
    standardized = [_standardized(pair, w, resamples, _arrays.generator(seed)) for pair, w in zip(pairs, weights)]
    best = max(range(len(pairs)), key=lambda k: standardized[k].observed)
    largest = torch.stack([each.null for each in standardized]).amax(dim=0)
    slack = max(each.slack for each in standardized)
    mean, variance = pairs[best].permutation_mean_variance()
    threshold = mean + math.sqrt(variance) / weights[best] * critical_value(largest, level)
    pvalue = permutation_pvalue(standardized[best].observed, largest, slack)
    method = f"permutation, largest of {len(pairs)} standardized statistics"
    if given > len(z):
        method += f", {len(z):,} of {given:,} rows"
    return pairs[best].result(pvalue, threshold, level, method, resamples=resamples, seed=seed)


def _default_kernels(z: Tensor, s: Tensor) -> list[tuple[Kernel, Kernel, float]]:
    """Return pairs of kernels with their weights."""
    of_z, of_s = (float(default_gaussian(x, name=name)[0].bandwidth) for x, name in ((z, "z"), (s, "s")))
    grid = product(MULTIPLES, repeat=2)
    return [
        *((Gaussian(a * of_z), Gaussian(b * of_s), 1.0 if a == b else UNEQUAL) for a, b in grid),
        (Linear(), Linear(), 1.0),
    ]


def _standardized(pair: GramPair, weight: float, resamples: int, generator: torch.Generator) -> PermutedStatistics:
    """Return the observed and the permuted statistics in standard deviations from their mean, times the weight."""
    permuted = permuted_statistics(pair, resamples, generator)
    mean, variance = (moment * pair.n**power for moment, power in zip(pair.permutation_mean_variance(), (2, 4)))
    deviation = math.sqrt(variance) / weight
    if deviation <= 1e-12 * mean:  # every permutation gives the same value: this pair of kernels sees nothing
        return PermutedStatistics(0.0, torch.zeros_like(permuted.null), 0.0)
    null = (permuted.null - mean) / deviation
    return PermutedStatistics((permuted.observed - mean) / deviation, null, permuted.slack / deviation)
