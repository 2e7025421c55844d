r"""Tests of independence with a gamma distribution of known moments as the null."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from scipy.special import gammaincc, gammainccinv

from frhsic.dependence.moments import squared_products
from frhsic.independence._gram_pair import GramPair, gram_pair
from frhsic.independence.null_moments import gretton_moments, pearson_parameters
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Kernel

Moments = Literal["pearson", "permutation", "gretton"]

LEAST_ROWS = 6  # the variance of Gretton et al. has a factor n - 5


def gamma_test(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    moments: Moments = "pearson",
    level: float = 0.05,
    where: Any = None,
    epsilon: float | None = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC against a gamma distribution.

    .. math:: p = \Pr\big(\Gamma \ge \widehat{\mathrm{HSIC}}\big), \qquad
        \Gamma \sim \mathrm{Gamma}\Big(\frac{\mu^2}{\nu}, \frac{\nu}{\mu}\Big),

    with :math:`\mu, \nu` the mean and variance of the biased HSIC under independence; by default the gamma is shifted,
    so that its skewness is right too. Under :math:`H_0` the limit of :math:`n\,\mathrm{HSIC}` is a weighted sum of
    chi-squares, which the gamma approximates well from n = 50 on (measured levels: docs/tests_evidence.md). Use it by
    default: it is fast and takes O(n) memory. Where the level must be exact use
    :func:`~frhsic.independence.permutation_test`.

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, tested jointly.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance. For attributes in different units pass
        ``kernels.per_column_gaussians(s)``.
    moments
        ``"pearson"``: the exact mean, variance and third moment over all n! permutations of s, matched by a shifted
        gamma (Pearson type III), for any kernel. O(n²) time above 2,048 rows, where one trace of the third moment is
        estimated to 1 or 2 % from 16 random vectors of a fixed seed; O(n³) below.
        ``"permutation"``: the exact mean and variance alone. At level .01 and below its p-values are too small by a
        third or more.
        ``"gretton"``: mean and variance of Gretton et al. (2007), for kernels with k(x, x) = 1 only.
    level
        Level of the test, for the threshold and for :attr:`IndependenceResult.rejected`.
    where
        Boolean mask or 0/1 target: only those rows are tested (Equal Opportunity tests Z and S given Y = 1).
    epsilon
        HSIC below which dependence counts as negligible; see :attr:`IndependenceResult.decision`.
    device
        Device to compute on; by default that of the data.

    References
    ----------
    Gretton et al. (2007), *A kernel statistical test of independence*. Kazi-Aoual et al. (1995), *Refined
    approximations to permutation tests for multivariate inference*.

    Examples
    --------
    HSIC under linear kernels is the squared covariance, 2.9167 ** 2; over permutations its mean is
    variance² / (n - 1) = 2.9167 ** 2 / 5, and the p-value that of a perfect correlation of six points.

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> result = gamma_test(x, x, Linear(), Linear())
    >>> round(result.statistic, 4), round(result.null_mean, 4), result.rejected
    (8.5069, 1.7014, True)
    >>> round(result.effect_size, 6)
    1.0
    """
    if moments not in ("pearson", "permutation", "gretton"):
        raise ValueError(f"moments is {moments!r}; pass 'pearson', 'permutation' or 'gretton'.")
    require_level(level, epsilon)
    third, what = moments == "pearson", "the gamma test"
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, least=LEAST_ROWS, what=what, third=third)
    return gamma_test_of(pair, moments, level, epsilon)


def gamma_test_of(pair: GramPair, moments: Moments, level: float, epsilon: float | None = None) -> IndependenceResult:
    """:func:`gamma_test` of Gram matrices that other statistics use as well."""
    skewness = None
    if moments == "gretton":
        mean, variance = _gretton(pair)
    else:
        mean, variance = pair.permutation_mean_variance()
        if moments == "pearson" and not _degenerate(mean, variance):
            skewness = pair.permutation_third_cumulant() / variance**1.5
    return gamma_result(pair, (mean, variance), skewness, f"gamma, {moments} moments", level, epsilon)


def _gretton(pair: GramPair) -> tuple[float, float]:
    for name, kernel in zip(("z", "s"), (pair.k.kernel, pair.l.kernel)):
        if not kernel.unit_diagonal:
            raise ValueError(
                f"moments='gretton' needs kernels with k(x, x) = 1, and kernel_{name} is {kernel!r}: the formula of "
                "the null mean, (1 - mean of K)(1 - mean of L) / n, assumes it. Use moments='permutation'."
            )
    n = pair.n
    means = [
        gram.offset + float(sums.off_diagonal_rows.sum()) / (n * (n - 1))
        for gram, sums in ((pair.k, pair.sums.k), (pair.l, pair.sums.l))
    ]
    squares = float(squared_products(pair.k, pair.l, pair.sums))
    return gretton_moments(means[0], means[1], squares, n)


def _degenerate(mean: float, variance: float) -> bool:
    """Whether every permutation gives the same value, up to rounding: a constant, or all rows equally far apart."""
    return mean <= 0 or variance <= (1e-12 * mean) ** 2


def gamma_result(
    pair: GramPair,
    null: tuple[float, float],
    skewness: float | None,
    method: str,
    level: float,
    epsilon: float | None,
) -> IndependenceResult:
    """Return the test against a gamma with this mean, variance and skewness; None is the gamma that starts at 0."""
    mean, variance = null
    if _degenerate(mean, variance):
        pvalue, threshold = 1.0, mean
    else:
        deviation = math.sqrt(variance)
        # a gamma that starts at zero, with these two moments, has this skewness
        skewness = 2 * deviation / mean if skewness is None else skewness
        pvalue, threshold = pearson_tail(pair.statistic, mean, deviation, skewness, level)
    return pair.result(pvalue, threshold, level, method, null=null, epsilon=epsilon)


def pearson_tail(value: float, mean: float, deviation: float, skewness: float, level: float) -> tuple[float, float]:
    """Return the upper tail probability of `value` and the upper `level` quantile of a gamma with these moments."""
    shape, scale, start = pearson_parameters(mean, deviation, skewness)
    pvalue = float(gammaincc(shape, max(value - start, 0.0) / scale))
    return pvalue, start + scale * float(gammainccinv(shape, level))
