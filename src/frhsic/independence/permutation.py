"""The permutation test of independence, whose level is exact for every n and every kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence._permutations import permuted_statistics
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Kernel


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
    groups: Any = None,
    epsilon: float | None = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC against permutations of s.

    .. math:: p = \frac{1 + \#\{b : T_{\pi_b} \ge T\}}{1 + B},

    where :math:`T` is HSIC and :math:`T_{\pi_b}` HSIC with the rows of s permuted. For exchangeable rows
    :math:`\Pr(p \le \alpha) \le \alpha` at every n and for every kernel. Values that differ from T only by rounding
    count as ties. A seed draws the same permutations on every device.

    Use it where the level must be exact. Time is O(n) for each permutation if both Gram matrices have thin factors (one
    dimension, linear kernels, few distinct values), and O(n²) otherwise; for many rows in many dimensions
    :func:`~frhsic.independence.gamma_test` is faster. Memory is O(n) above 2,048 rows.

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, permuted together.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance.
    resamples
        Number B of permutations. At level .05 a test with fewer than 19 never rejects.
    random_state
        Seed, NumPy or torch generator; None draws a seed, which the result holds.
    level
        Level of the test, for the threshold and for :attr:`IndependenceResult.rejected`.
    where
        Boolean mask or 0/1 target: only those rows are tested and permuted.
    groups
        Labels of rows that belong together, such as several rows of one person. Clusters of equal size exchange their
        rows of s as a whole, in the order in which they come; the level is exact if clusters are independent. A
        cluster whose size no other has keeps its rows. Not with `epsilon`, whose standard error takes rows as
        independent.
    epsilon
        HSIC below which dependence counts as negligible; see :attr:`IndependenceResult.decision`.
    device
        Device to compute on; by default that of the data.

    Examples
    --------
    For eight ordered points every permutation except the identity and the reversal gives less than the observed value,
    the squared variance.

    >>> from frhsic.kernels import Linear
    >>> x = torch.arange(8.0)
    >>> result = permutation_test(x, x, Linear(), Linear(), resamples=99, random_state=0)
    >>> round(result.statistic, 4), result.pvalue
    (27.5625, 0.01)
    """
    require_level(level, epsilon)
    _arrays.require_integer(resamples, "resamples")
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, least=4, what="the permutation test")
    seed, resamples = _arrays.seed_of(random_state), int(resamples)
    labels = None if groups is None else _cluster_labels(groups, where, pair.n, epsilon)
    permuted = permuted_statistics(pair, resamples, _arrays.generator(seed), labels)
    pvalue = permutation_pvalue(permuted.observed, permuted.null, permuted.slack)
    threshold = critical_value(permuted.null, level) / pair.n**2
    result = pair.result(pvalue, threshold, level, "permutation", epsilon=epsilon, resamples=resamples, seed=seed)
    if labels is None:
        return result
    null = permuted.null / pair.n**2
    mean, deviation = float(null.mean()), float(null.std(correction=0))
    return replace(
        result,
        method="permutation of clusters",
        effect_size_null=pair.effect(mean),
        null_mean=mean,
        null_standard_deviation=deviation,
    )


def _cluster_labels(clusters: Any, where: Any, n: int, epsilon: float | None) -> Tensor:
    """Return the number of the cluster of each tested row."""
    if epsilon is not None:
        raise ValueError("epsilon and groups cannot be combined; leave out epsilon.")
    labels = np.asarray(clusters)
    if where is not None and labels.ndim == 1:
        labels = labels[_arrays.to_numpy(_arrays.subset_mask(where, len(labels)))]
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {np.shape(clusters)}; pass one label for each row of the data.")
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(np.unique(sizes)) == len(sizes):
        raise ValueError("no two groups have the same number of rows, so none can be exchanged. Keep fewer rows.")
    return torch.from_numpy(numbers.ravel().astype(np.int64))


def permutation_pvalue(observed: float, null: Tensor, slack: float) -> float:
    """Return the share of statistics at least as large as the observed one, ties up to `slack` and itself included."""
    return (1 + int((null >= observed - slack).sum())) / (1 + len(null))


def critical_value(null: Tensor, level: float) -> float:
    """Return the value to exceed for p <= level: the m-th largest of B values, with m = ⌊level (1 + B)⌋."""
    m = math.floor(level * (1 + len(null)) * (1 + 1e-12))  # .05 · 200 must give 10 in floating point
    return math.inf if m == 0 else float(null.topk(m).values[-1])
