r"""Tests of independence with a gamma distribution of known moments as the null."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from scipy.special import gammaincc, gammainccinv

from frhsic.dependence.moments import centered_products, cubic_sums
from frhsic.independence._gram_pair import GramPair, gram_pair
from frhsic.independence.null_moments import gretton_moments, permutation_third_moment, published_moments
from frhsic.independence.result import IndependenceResult, require_level
from frhsic.kernels import Kernel

Moments = Literal["permutation", "pearson", "gretton"]

LEAST_ROWS = 6  # the variance of Gretton et al. has a factor n - 5


def gamma_test(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    moments: Moments = "permutation",
    level: float = 0.05,
    where: Any = None,
    epsilon: float | None = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC against a gamma distribution.

    .. math:: p = \Pr\big(\Gamma \ge \widehat{\mathrm{HSIC}}\big), \qquad
        \Gamma \sim \mathrm{Gamma}\Big(\frac{\mu^2}{\nu}, \frac{\nu}{\mu}\Big),

    with :math:`\mu, \nu` the mean and variance of the biased HSIC under independence. Under :math:`H_0` the limit of
    :math:`n\,\mathrm{HSIC}` is a weighted sum of chi-squares. The gamma approximates it well at the 5 % level from
    n = 50 on (docs/tests.md has the measured levels). Use it by default: it is fast, needs no random draw and takes
    O(n) memory. Where the level must be exact use :func:`~frhsic.independence.permutation_test`.

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, tested jointly.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance. For attributes in different units pass
        ``kernels.per_column_gaussians(s)``.
    moments
        ``"permutation"``: the exact mean and variance over all n! permutations of s, for any kernel; O(n²) time.
        ``"pearson"``: the exact third moment as well, matched by a shifted gamma (Pearson type III); O(n³) time. Use
        it for small p-values: at level .01 and below those of the others are too small by a third or more.
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
    if moments not in ("permutation", "pearson", "gretton"):
        raise ValueError(f"moments is {moments!r}; pass 'permutation', 'pearson' or 'gretton'.")
    require_level(level, epsilon)
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, least=LEAST_ROWS, what="the gamma test")
    skewness = None
    if moments == "gretton":
        mean, variance = _gretton(pair)
    else:
        mean, variance = pair.permutation_mean_variance()
        if moments == "pearson":
            skewness = _skewness(pair, mean, variance)
    return _result(pair, (mean, variance), skewness, f"gamma, {moments} moments", level, epsilon)


def gamma_test_published(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    level: float = 0.05,
    where: Any = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""The gamma test of the published numbers, to reproduce them. It does not hold its level.

    Its null mean of :math:`n\,\mathrm{HSIC}` is about :math:`\mu_K \mu_L`, where for unit-diagonal kernels it should be
    :math:`(1 - \mu_K)(1 - \mu_L)`, and its variance is far too small, so the threshold is near :math:`\mu_K \mu_L`
    whatever the data (:func:`~frhsic.independence.null_moments.published_moments`). At nominal level .05 it rejects
    independent data in 0 % of samples for an isotropic Z in 50 dimensions and in 10 % to 13 % for one dimension. The
    published figure drew HSIC against a threshold for n·HSIC; here both are HSIC.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, level, where, device
        As for :func:`gamma_test`.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 20)
    >>> gamma_test_published(x, x).method
    'gamma, published moments (wrong level)'
    """
    require_level(level, None)
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, least=LEAST_ROWS, what="the gamma test")
    n, parts = pair.n, []
    for sums, c in ((pair.sums.k, pair.k.offset), (pair.sums.l, pair.l.offset)):
        total = float(sums.off_diagonal_rows.sum())  # without the offset
        squares = float(sums.squares - sums.diagonal.square().sum())
        pairs = n * (n - 1)
        parts.append((total + pairs * c, squares + 2 * c * total + pairs * c * c))
    mean, variance = published_moments(parts[0], parts[1], n)
    method = "gamma, published moments (wrong level)"
    return _result(pair, (mean / n, variance / n**2), None, method, level, None)


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
    _, squares = centered_products(pair.k, pair.l, pair.sums)
    return gretton_moments(means[0], means[1], float(squares), n)


def _skewness(pair: GramPair, mean: float, variance: float) -> float:
    """Exact skewness of HSIC over all permutations."""
    if _degenerate(mean, variance):
        return 0.0
    lists = []
    for gram, sums, (t, t2, s2) in zip((pair.k, pair.l), (pair.sums.k, pair.sums.l), pair.invariants):
        lists.append([t**3, t * t2, t * s2, *(float(value) for value in cubic_sums(gram, sums))])
    raw = permutation_third_moment(lists[0], lists[1], pair.n) / pair.n**6
    return (raw - 3 * mean * variance - mean**3) / (variance * math.sqrt(variance))


def _degenerate(mean: float, variance: float) -> bool:
    """Whether every permutation gives the same value, up to rounding: a constant, or all rows equally far apart."""
    return mean <= 0 or variance <= (1e-12 * mean) ** 2


def _result(
    pair: GramPair,
    null: tuple[float, float],
    skewness: float | None,
    method: str,
    level: float,
    epsilon: float | None,
) -> IndependenceResult:
    mean, variance = null
    if _degenerate(mean, variance):
        pvalue, threshold = 1.0, mean
    else:
        deviation = math.sqrt(variance)
        # a gamma that starts at zero, with these two moments, has this skewness
        skewness = 2 * deviation / mean if skewness is None else skewness
        pvalue, threshold = _pearson(pair.statistic, mean, deviation, skewness, level)
    return pair.result(pvalue, threshold, level, method, null=null, epsilon=epsilon)


def _pearson(value: float, mean: float, deviation: float, skewness: float, level: float) -> tuple[float, float]:
    """Return the upper tail probability of `value` and the upper `level` quantile of a gamma with these moments.

    With skewness g the shape is 4/g², the scale is deviation·g/2 and the start mean − 2·deviation/g. A skewness that
    is not positive, which occurs for a handful of rows, is replaced by the normal limit.
    """
    skewness = max(skewness, 1e-3)
    shape, scale, start = 4 / skewness**2, deviation * skewness / 2, mean - 2 * deviation / skewness
    pvalue = float(gammaincc(shape, max(value - start, 0.0) / scale))
    return pvalue, start + scale * float(gammainccinv(shape, level))
