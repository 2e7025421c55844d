r"""The test with a gamma distribution of known moments as the null, and what all tests share.

That is the result, the Gram matrices with their sums, and the exact moments of
:math:`T_\pi = \sum_{ij} A_{ij} B_{\pi(i)\pi(j)}` over all permutations.
Here :math:`A, B` are symmetric with rows that sum to zero, such as :math:`\tilde K = HKH`. The
moments are sums over the ways in which indices coincide. Since the rows sum to zero, they depend on
few invariants of each matrix. They hold for every kernel and every n, and are conditional on the
marginals, as a permutation test is.

The last functions test from sums of random features over rows, for data that come in parts.
Random features are a kernel of finite rank, and HSIC under it is a squared covariance. Under
independence :math:`n\,\mathrm{HSIC}` has the limit :math:`\sum_{ab} \lambda_a \mu_b \chi^2_{ab}`,
with the eigenvalues of the two covariance matrices of features, whose sums of powers are traces.
Since the features do not depend on the rows, the level is right whatever their number; only the
power depends on it.

References
----------
Kazi-Aoual, Hitier, Sabatier and Lebreton (1995), *Refined approximations to permutation tests for
multivariate inference*. Zhang, Filippi, Gretton and Sejdinovic (2018), *Large-scale kernel methods
for independence testing*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import add
from typing import Any, Literal

import torch
from scipy.special import gammaincc, gammainccinv, ndtr
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.exact import OwnSums, PairSums, own_sums, pair_sums, product_rows
from frhsic.dependence.features import FeatureMaps, FeatureSums, products
from frhsic.dependence.grams import Gram, kernel_or_median, paired_rows, working_copy
from frhsic.kernels import Kernel, default_gaussian


def gamma_test(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    level: float = 0.05,
    where: Any = None,
    epsilon: float | None = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC against a gamma distribution.

    .. math:: p = \Pr\big(\Gamma \ge \widehat{\mathrm{HSIC}}\big),

    where :math:`\Gamma` is a shifted gamma (Pearson type III) with the exact mean, variance and
    third moment of the biased HSIC over all n! permutations of s. Under :math:`H_0` the limit of
    :math:`n\,\mathrm{HSIC}` is a weighted sum of chi-squares, which the gamma approximates well
    from n = 50 on (measured levels: docs/evidence/tests_evidence.md). Use it by default: it is
    fast, takes any kernel and O(n) memory. Time is O(n²) above 2,048 rows, where one trace of the
    third moment is estimated to 1 or 2 % from 16 random vectors of a fixed seed, and O(n³) below.
    Where the level must be exact use :func:`~frhsic.independence.permutation_test`.

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, tested jointly.
    kernel_z, kernel_s
        Kernels; None is a Gaussian at the median distance. For attributes in different units pass
        ``kernels.per_column_gaussians(s)``.
    level
        Level of the test, for the threshold and for :attr:`IndependenceResult.rejected`.
    where
        Boolean mask or 0/1 target: only those rows are tested (Equal Opportunity tests Z and S
        given Y = 1).
    epsilon
        HSIC below which dependence counts as negligible; see :attr:`IndependenceResult.decision`.
    device
        Device to compute on; by default that of the data.

    References
    ----------
    Gretton et al. (2007), *A kernel statistical test of independence*. Kazi-Aoual et al. (1995),
    *Refined approximations to permutation tests for multivariate inference*.

    Examples
    --------
    HSIC under linear kernels is the squared covariance, 2.9167 ** 2; over permutations its mean is
    variance² / (n - 1) = 2.9167 ** 2 / 5, and the p-value that of a perfect correlation of six
    points.

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> result = gamma_test(x, x, Linear(), Linear())
    >>> round(result.statistic, 4), round(result.null_mean, 4), result.rejected
    (8.5069, 1.7014, True)
    >>> round(result.effect_size, 6)
    1.0
    """
    require_level(level, epsilon)
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, third=True)
    return gamma_test_of(pair, level, epsilon)


def gamma_test_of(pair: GramPair, level: float, epsilon: float | None = None) -> IndependenceResult:
    """:func:`gamma_test` of Gram matrices that other statistics use as well."""
    mean, variance = pair.permutation_mean_variance()
    skewness = (
        None if _degenerate(mean, variance) else pair.permutation_third_cumulant() / variance**1.5
    )
    return gamma_result(
        pair, (mean, variance), skewness, "gamma, moments over permutations", level, epsilon
    )


def _degenerate(mean: float, variance: float) -> bool:
    """Whether every permutation gives the same value, up to rounding: a constant, or all rows
    equally far apart.
    """
    return mean <= 0 or variance <= (1e-12 * mean) ** 2


def gamma_result(
    pair: GramPair,
    null: tuple[float, float],
    skewness: float | None,
    method: str,
    level: float,
    epsilon: float | None,
) -> IndependenceResult:
    """Return the test against a gamma with this mean, variance and skewness; None is the gamma that
    starts at 0.
    """
    mean, variance = null
    if _degenerate(mean, variance):
        pvalue, threshold = 1.0, mean
    else:
        deviation = math.sqrt(variance)
        # a gamma that starts at zero, with these two moments, has this skewness
        skewness = 2 * deviation / mean if skewness is None else skewness
        pvalue, threshold = pearson_tail(pair.statistic, mean, deviation, skewness, level)
    return pair.result(pvalue, threshold, level, method, null=null, epsilon=epsilon)


def pearson_tail(
    value: float, mean: float, deviation: float, skewness: float, level: float
) -> tuple[float, float]:
    """Return the upper tail probability of `value` and the upper `level` quantile of a gamma with
    these moments.
    """
    shape, scale, start = pearson_parameters(mean, deviation, skewness)
    pvalue = float(gammaincc(shape, max(value - start, 0.0) / scale))
    return pvalue, start + scale * float(gammainccinv(shape, level))


@dataclass(frozen=True)
class IndependenceResult:
    r"""Result of a test of :math:`H_0`: Z and S are independent.

    The statistic, the threshold, the null mean and `epsilon` all have the unit of the biased
    :func:`frhsic.dependence.hsic`; none is multiplied by n.

    Attributes
    ----------
    statistic
        Biased HSIC of the tested rows, also given by ``float(result)``.
    pvalue
        Probability, under independence, of a statistic at least as large.
    threshold
        Independence is rejected at `level` if the statistic exceeds this value. Infinite if a
        permutation test has too few resamples to reject at all.
    level
        Level of the test, for `threshold` and :attr:`rejected`.
    method
        Name of the test and of its null distribution.
    n
        Number of tested rows, after `where`.
    kernels
        The kernels on Z and on S as text, with their bandwidths.
    bandwidth_rules
        For Z and S: ``"given"``, or for kernels left out ``"median distance"``, or ``"median of the
        non-zero distances"`` where half or more of the pairs coincide.
    effect_size
        Normalized HSIC, :math:`\mathrm{HSIC}(z, s) / \sqrt{\mathrm{HSIC}(z, z)\,\mathrm{HSIC}(s,
        s)}`, in [0, 1]. It does not grow with n. Under independence it is positive; compare it with
        `effect_size_null`.
    effect_size_null
        Mean effect size of independent data with the same marginals (over permutations).
    null_mean, null_standard_deviation
        Mean and standard deviation of the statistic under the null distribution of the test.
    seed
        The seed that repeats the permutations; None for tests without permutations.
    epsilon
        HSIC below which dependence counts as negligible, or None.
    pvalue_epsilon
        p-value of :math:`H_0'`: population HSIC :math:`\le \epsilon`; None without `epsilon`. It is
        the larger of `pvalue` and the p-value of a one-sided normal test on the unbiased HSIC with
        this `standard_error`.
    standard_error
        Standard error of HSIC under dependence; None without `epsilon`.
    """

    statistic: float
    pvalue: float
    threshold: float
    level: float
    method: str
    n: int
    kernels: tuple[str, str]
    bandwidth_rules: tuple[str, str]
    effect_size: float
    effect_size_null: float
    null_mean: float
    null_standard_deviation: float
    seed: int | None = None
    epsilon: float | None = None
    pvalue_epsilon: float | None = None
    standard_error: float | None = None

    @property
    def rejected(self) -> bool:
        """Whether independence is rejected at `level`."""
        return self.pvalue <= self.level

    @property
    def decision(self) -> Literal["not rejected", "negligible", "dependent"]:
        r"""The paper's practical-significance rule (its section on the choice of :math:`\lambda`).

        "not rejected" if the test does not reject, "negligible" if it rejects but the statistic is
        below `epsilon`, otherwise "dependent". The paper accepts the first two. The comparison with
        `epsilon` is not a test: where the population value equals `epsilon`, either result is about
        equally likely. To *claim* that dependence exceeds `epsilon`, use `pvalue_epsilon`.
        """
        if not self.rejected:
            return "not rejected"
        return (
            "negligible"
            if self.epsilon is not None and self.statistic < self.epsilon
            else "dependent"
        )

    def __float__(self) -> float:
        return self.statistic


def require_level(level: float, epsilon: float | None) -> None:
    """Raise unless level lies in (0, 1) and epsilon is positive or None."""
    _arrays.require_fraction(level, "level")
    if epsilon is not None:
        _arrays.require_positive(epsilon, "epsilon")


@dataclass(frozen=True)
class GramPair:
    """The Gram matrices of z and s on the same rows, the sums of one pass over the pairs, the rules
    of bandwidths.
    """

    k: Gram
    l: Gram
    sums: PairSums
    rules: tuple[str, str]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.k.n

    @property
    def statistic(self) -> float:
        """Biased HSIC."""
        return float(self.sums.centered_joint) / self.n**2

    @property
    def magnitude(self) -> float:
        r"""The bound :math:`\|\tilde K\| \|\tilde L\|` of :math:`|\operatorname{tr}(\tilde K P
        \tilde L P^\top)|`.
        """
        return math.prod(
            math.sqrt(float(sums.centered.squares)) for sums in (self.sums.k, self.sums.l)
        )

    @property
    def invariants(self) -> list[tuple[float, float, float]]:
        """Trace, sum of squares and sum of squared diagonal entries of either centred Gram
        matrix.
        """
        both = (self.sums.k.centered, self.sums.l.centered)
        return [(float(g.trace), float(g.squares), float(g.diagonal.square().sum())) for g in both]

    def permutation_mean_variance(self) -> tuple[float, float]:
        """Return the exact mean and variance of HSIC over all permutations of s."""
        k, l = self.invariants
        mean, variance = permutation_mean_variance(k, l, self.n)
        return mean / self.n**2, variance / self.n**4

    @cached_property
    def own(self) -> tuple[OwnSums, OwnSums]:
        """Sums over either centred Gram matrix alone."""
        return own_sums(self.k, self.sums.k), own_sums(self.l, self.sums.l)

    @cached_property
    def influence(self) -> Tensor:
        r"""Influence of each row on HSIC up to a constant, :math:`\frac2n \sum_j \tilde K_{ij}
        \tilde L_{ij}`.
        """
        return 2 * product_rows(self.k, self.l, self.sums) / self.n

    def permutation_third_cumulant(self) -> float:
        """Return the third central moment of HSIC over all permutations of s."""
        mean, variance = self.permutation_mean_variance()
        both = zip(self.own, self.invariants)
        a, b = (
            [t**3, t * t2, t * s2, *(float(value) for value in own.cubes)]
            for own, (t, t2, s2) in both
        )
        return permutation_third_moment(a, b, self.n) / self.n**6 - 3 * mean * variance - mean**3

    def effect(self, value: float) -> float:
        """Return a value of HSIC divided by the geometric mean of the HSIC of each variable with
        itself.
        """
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    @property
    def about(self) -> dict[str, Any]:
        """What every result says of the data: number of rows, kernels and rules of bandwidths."""
        kernels = repr(self.k.kernel), repr(self.l.kernel)
        return {"n": self.n, "kernels": kernels, "bandwidth_rules": self.rules}

    def result(
        self,
        pvalue: float,
        threshold: float,
        level: float,
        method: str,
        *,
        null: tuple[float, float] | None = None,
        epsilon: float | None = None,
        seed: int | None = None,
    ) -> IndependenceResult:
        """Return the result of a test; `null` is the mean and variance of HSIC, by default over all
        permutations.
        """
        permuted = self.permutation_mean_variance()
        mean, variance = permuted if null is None else null
        pvalue_epsilon, error = self._epsilon_test(epsilon, pvalue)
        return IndependenceResult(
            statistic=self.statistic,
            pvalue=pvalue,
            threshold=threshold,
            level=level,
            method=method,
            **self.about,
            effect_size=self.effect(self.statistic),
            effect_size_null=self.effect(permuted[0]),
            null_mean=mean,
            null_standard_deviation=math.sqrt(variance),
            seed=seed,
            epsilon=epsilon,
            pvalue_epsilon=pvalue_epsilon,
            standard_error=error,
        )

    def _epsilon_test(
        self, epsilon: float | None, pvalue: float
    ) -> tuple[float | None, float | None]:
        r"""Return the p-value of HSIC :math:`\le \epsilon` and the standard error of HSIC; None
        without epsilon.

        The standard error is the standard deviation of the influence divided by :math:`\sqrt n`.
        HSIC is asymptotically normal if it is positive and degenerate if it is zero, so the test of
        independence must reject as well.
        """
        if epsilon is None:
            return None, None
        error = float(self.influence.std()) / math.sqrt(self.n)
        excess = float(self.sums.unbiased) - epsilon
        if error == 0:
            return (pvalue if excess > 0 else 1.0), error
        return max(pvalue, float(ndtr(-excess / error))), error


def gram_pair(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
    least: int = 6,
    third: bool = False,
) -> GramPair:
    """Check the inputs of a test and return their Gram matrices; `third` if it will need
    :attr:`GramPair.own`.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=least, what="a test of independence")
    (kernel_z, rule_z), (kernel_s, rule_s) = (
        kernel_and_rule(z, kernel_z, "z"),
        kernel_and_rule(s, kernel_s, "s"),
    )
    k, l = (
        Gram.of(working_copy(x, kernel), kernel, single=x.dtype == torch.float32)
        for x, kernel in ((z, kernel_z), (s, kernel_s))
    )
    return GramPair(k, l, pair_sums(k, l, third=third), (rule_z, rule_s))


def kernel_and_rule(x: Tensor, kernel: Kernel | None, name: str) -> tuple[Kernel, str]:
    """Return the kernel of a variable and the rule of its bandwidth; None is a Gaussian at the
    median distance.
    """
    return (
        default_gaussian(x, name=name)
        if kernel is None
        else (kernel_or_median(kernel, x, name), "given")
    )


def permutation_mean_variance(
    a: tuple[float, float, float], b: tuple[float, float, float], n: int
) -> tuple[float, float]:
    r"""Mean and variance of :math:`T_\pi` over all n! permutations.

    .. math::
        \mathbb E\,T_\pi = \frac{t\,t'}{n-1}, \qquad
        \operatorname{Var} T_\pi = \frac{2\,v\,v'}{(n-1)^2 (n+1)(n-2)} +
        \frac{w\,w'}{(n+1)\,n(n-1)(n-2)(n-3)},

    with :math:`t = \operatorname{tr} A`, :math:`v = (n-1) \operatorname{tr} A^2 - t^2`,
    :math:`w = n(n+1) \sum_i A_{ii}^2 - (n-1)(t^2 + 2 \operatorname{tr} A^2)`, and the same of B
    with primes.

    Parameters
    ----------
    a, b
        :math:`\operatorname{tr} A`, :math:`\operatorname{tr} A^2` and :math:`\sum_i A_{ii}^2`, and
        those of B.
    n
        Rows, at least 4.

    Examples
    --------
    Matrices proportional to H are the same under every permutation: mean :math:`\operatorname{tr} H
    = 3`.

    >>> permutation_mean_variance((3.0, 3.0, 2.25), (3.0, 3.0, 2.25), 4)
    (3.0, 0.0)
    """
    v, v_ = ((n - 1) * t2 - t * t for t, t2, _ in (a, b))
    w, w_ = (n * (n + 1) * s2 - (n - 1) * (t * t + 2 * t2) for t, t2, s2 in (a, b))
    variance = 2 * v * v_ / ((n - 1) ** 2 * (n + 1) * (n - 2))
    variance += w * w_ / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    return a[0] * b[0] / (n - 1), max(variance, 0.0)


def permutation_third_moment(a: Sequence[float], b: Sequence[float], n: int) -> float:
    r"""Third raw moment of :math:`T_\pi` over all n! permutations.

    .. math:: \mathbb E\,T_\pi^3 = \sum_\sigma \frac{S_\sigma(A)\, S_\sigma(B)}{n (n-1) \cdots (n -
        |\sigma| + 1)},

    over the 203 partitions :math:`\sigma` of the six indices of three factors, where
    :math:`S_\sigma(A)` is the sum of :math:`A_{ij} A_{kl} A_{mn}` over indices that coincide
    exactly as :math:`\sigma` says.

    Parameters
    ----------
    a, b
        Eight invariants of A in this order, and those of B: :math:`t^3`, :math:`t \operatorname{tr}
        A^2`, :math:`t \sum_i d_i^2`, :math:`\operatorname{tr} A^3`, :math:`\sum_{ij} A_{ij}^3`,
        :math:`\sum_i d_i^3`, :math:`\sum_i d_i (A^2)_{ii}`, :math:`d^\top A d`, with d the diagonal
        and t the trace.

    Examples
    --------
    For H at n = 4 every permutation gives 3, so the third moment is 27.

    >>> h = (27.0, 9.0, 6.75, 3.0, 1.5, 1.6875, 2.25, 0.0)
    >>> round(permutation_third_moment(h, h, 4), 10)
    27.0
    """
    total = 0.0
    for size, coefficients, count in _index_patterns():
        if size <= n:
            of_a, of_b = (sum(c * v for c, v in zip(coefficients, values)) for values in (a, b))
            total += count * of_a * (of_b / math.perm(n, size))
    return total


def pearson_parameters(
    mean: float, deviation: float, skewness: float
) -> tuple[float, float, float]:
    """Return shape, scale and start of the shifted gamma (Pearson type III) with these moments.

    With skewness g the shape is 4/g², the scale is deviation·g/2 and the start mean −
    2·deviation/g. A skewness that is not positive, which occurs for a handful of rows, is replaced
    by the normal limit.

    Examples
    --------
    An exponential law has mean 1, deviation 1 and skewness 2.

    >>> pearson_parameters(1.0, 1.0, 2.0)
    (1.0, 1.0, 0.0)
    """
    skewness = max(skewness, 1e-3)
    return 4 / skewness**2, deviation * skewness / 2, mean - 2 * deviation / skewness


# By loops and vertices: t³, t tr A², t Σd², a triangle tr A³, three parallel edges ΣA³, Σd³,
# Σd(A²)ᵢᵢ and dᵀAd.
_INVARIANTS = {
    (3, 3): 0,
    (1, 3): 1,
    (3, 2): 2,
    (0, 3): 3,
    (0, 2): 4,
    (3, 1): 5,
    (1, 2): 6,
    (2, 2): 7,
}


@cache
def _index_patterns() -> tuple[tuple[int, tuple[int, ...], int], ...]:
    """Return block counts, coefficients of the eight invariants, and the number of partitions with
    both.

    By Möbius inversion on the lattice of partitions, a sum over indices that coincide exactly as a
    partition says is a signed sum of unrestricted sums over all coarser partitions. Each of those
    is zero if an index occurs once (the rows sum to zero), or else one of the eight invariants:
    indices are the vertices of a graph whose edges are the three entries, a diagonal entry is a
    loop, and no two invariants have as many loops and vertices.
    """
    partitions = list(_partitions(6))
    patterns: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for fine in partitions:
        coefficients = [0] * 8
        for coarse in partitions:
            if min(Counter(coarse).values()) > 1:
                loops = sum(coarse[i] == coarse[i + 1] for i in (0, 2, 4))
                coefficients[_INVARIANTS[loops, len(set(coarse))]] += _moebius(fine, coarse)
        patterns[max(fine) + 1, tuple(coefficients)] += 1
    return tuple(
        (size, coefficients, count) for (size, coefficients), count in sorted(patterns.items())
    )


def _partitions(length: int, begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield every partition of `length` places, as labels in order of first appearance."""
    if len(begun) == length:
        yield begun
        return
    for label in range(max(begun, default=-1) + 2):
        yield from _partitions(length, (*begun, label))


def _moebius(fine: tuple[int, ...], coarse: tuple[int, ...]) -> int:
    """Return the Möbius function of two partitions, zero where the second does not merge blocks of
    the first.
    """
    merged: dict[int, int] = {}
    for block, into in zip(fine, coarse):
        if merged.setdefault(block, into) != into:
            return 0
    return math.prod(
        (-1) ** (m - 1) * math.factorial(m - 1) for m in Counter(merged.values()).values()
    )


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Products of features of z and of s with each other, and with themselves; ``+`` joins parts of
    the data.
    """

    cross: FeatureSums
    z: FeatureSums
    s: FeatureSums

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        return FeatureMoments(self.cross + other.cross, self.z + other.z, self.s + other.s)


@dataclass(frozen=True)
class FeatureTest:
    """HSIC of random features of n rows, its p-value, and its mean and standard deviation under
    independence.
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_standard_deviation: float
    n: int


def feature_moments(maps: FeatureMaps, z: Tensor, s: Tensor) -> FeatureMoments:
    """Return the products of features over the rows of z, of shape (n, d), and s, of shape (n,
    q).
    """
    parts = (
        FeatureMoments(products(f, g), products(f, f), products(g, g)) for f, g in maps.chunks(z, s)
    )
    return reduce(add, parts)


def feature_test(maps: FeatureMaps, moments: FeatureMoments) -> FeatureTest:
    r"""Test of :math:`H_0`: Z and S independent, by HSIC of random features against a shifted
    gamma.

    Mean and variance are those over permutations, without the part of the variance that is smaller
    by a factor n. The third cumulant is that of the limit, :math:`8 \operatorname{tr} C_z^3
    \operatorname{tr} C_s^3 / n^3`. For some thousand rows or more.

    Examples
    --------
    >>> import torch
    >>> from frhsic.dependence.features import draw_feature_maps
    >>> from frhsic.kernels import Gaussian
    >>> x = torch.linspace(-1, 1, 200, dtype=torch.float64)[:, None]
    >>> maps = draw_feature_maps(Gaussian(1.0), Gaussian(1.0), 1, 1, random_state=0)
    >>> feature_test(maps, feature_moments(maps, x, x.square())).pvalue < 1e-6
    True
    """
    n = moments.cross.n
    _arrays.require_rows(n, 6, "the test by features")
    statistic = maps.estimate(moments.cross).value
    (trace_z, square_z, cube_z), (trace_s, square_s, cube_s) = (
        _traces(part) for part in (moments.z, moments.s)
    )
    # A = n C and B = n C' have these traces; the squares of their diagonals sum to at least the
    # last entry
    a, b = ((n * t, n**2 * q, n * t * t) for t, q in ((trace_z, square_z), (trace_s, square_s)))
    mean, variance = (
        value / n ** (2 * k) for k, value in enumerate(permutation_mean_variance(a, b, n), start=1)
    )
    if mean <= 0 or variance <= (1e-12 * mean) ** 2:  # z or s is constant under its kernel
        return FeatureTest(statistic, 1.0, mean, 0.0, n)
    deviation = math.sqrt(variance)
    skewness = 8 * cube_z * cube_s / n**3 / deviation**3
    pvalue, _ = pearson_tail(statistic, mean, deviation, skewness, 0.05)
    return FeatureTest(statistic, pvalue, mean, deviation, n)


def _traces(sums: FeatureSums) -> tuple[float, float, float]:
    """Return the traces of the covariance matrix of features and of its second and third power."""
    blocks, features = sums.z.shape
    size = blocks * features
    covariance = sums.cross.reshape(size, size) / (
        sums.n * blocks
    )  # the kernel is the mean over the blocks
    square = covariance @ covariance
    return float(covariance.trace()), float(square.trace()), float((square * covariance).sum())
