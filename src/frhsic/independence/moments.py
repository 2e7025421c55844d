r"""Exact moments of :math:`T_\pi = \sum_{ij} A_{ij} B_{\pi(i)\pi(j)}` over all permutations, and
the gamma distribution with these moments.

Here :math:`A, B` are symmetric with rows that sum to zero, such as :math:`\tilde K = HKH`. The
moments are sums over the ways in which indices coincide. Since the rows sum to zero, the moments
depend on only a few invariants of each matrix. They are exact for every kernel and every n, and
conditional on the marginals, as in a permutation test.

References
----------
Kazi-Aoual, Hitier, Sabatier and Lebreton (1995), *Refined approximations to permutation tests for
multivariate inference*.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

from scipy.special import gammaincc, gammainccinv


def permutation_mean_variance(
    a: tuple[float, float, float], b: tuple[float, float, float], n: int
) -> tuple[float, float]:
    r"""Mean and variance of :math:`T_\pi` over all n! permutations.

    .. math::
        \mathbb E\,T_\pi = \frac{t\,t'}{n-1}, \qquad
        \operatorname{Var} T_\pi = \frac{2\,v\,v'}{(n-1)^2 (n+1)(n-2)} +
        \frac{w\,w'}{(n+1)\,n(n-1)(n-2)(n-3)},

    with :math:`t = \operatorname{tr} A`, :math:`v = (n-1) \operatorname{tr} A^2 - t^2`, :math:`w =
    n(n+1) \sum_i A_{ii}^2 - (n-1)(t^2 + 2 \operatorname{tr} A^2)`, and :math:`t', v', w'` are
    defined in the same way for B.

    Parameters
    ----------
    a, b
        :math:`\operatorname{tr} A`, :math:`\operatorname{tr} A^2` and :math:`\sum_i A_{ii}^2`, and
        the same three numbers for B.
    n
        Number of rows, at least 4.

    Examples
    --------
    Matrices proportional to H are the same under every permutation, so the mean is
    :math:`\operatorname{tr} H = 3`.

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
    exactly as specified by :math:`\sigma`.

    Parameters
    ----------
    a, b
        Eight invariants of A in this order, and the same invariants of B: :math:`t^3`, :math:`t
        \operatorname{tr} A^2`, :math:`t \sum_i d_i^2`, :math:`\operatorname{tr} A^3`,
        :math:`\sum_{ij} A_{ij}^3`, :math:`\sum_i d_i^3`, :math:`\sum_i d_i (A^2)_{ii}`,
        :math:`d^\top A d`, with d the diagonal and t the trace.

    Examples
    --------
    For H with n = 4, every permutation gives 3, so the third moment is 27.

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
    """Return each combination of a block count and coefficients of the eight invariants, with the
    number of partitions that have this combination.

    By Möbius inversion on the lattice of partitions, a sum over indices that coincide exactly as
    specified by a partition is a signed sum of unrestricted sums over all coarser partitions. Each
    unrestricted sum is zero if an index occurs only once, because the rows sum to zero; otherwise,
    it is one of the eight invariants. The indices are the vertices of a graph whose edges are the
    three entries, and a diagonal entry is a loop. No two invariants have the same numbers of loops
    and vertices, so these numbers determine the invariant.
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
    """Yield every partition of `length` positions, as labels numbered in the order of their first
    appearance.
    """
    if len(begun) == length:
        yield begun
        return
    for label in range(max(begun, default=-1) + 2):
        yield from _partitions(length, (*begun, label))


def _moebius(fine: tuple[int, ...], coarse: tuple[int, ...]) -> int:
    """Return the Möbius function of two partitions; zero if the blocks of the second are not unions
    of blocks of the first.
    """
    merged: dict[int, int] = {}
    for block, into in zip(fine, coarse):
        if merged.setdefault(block, into) != into:
            return 0
    # -1 · -2 · … · (1 - m) for each block that m blocks are merged to
    return math.prod(math.prod(range(1 - m, 0)) for m in Counter(merged.values()).values())


def is_degenerate(mean: float, variance: float) -> bool:
    """Return whether every permutation gives the same value, up to rounding. This is so for
    constants, and for rows that are all equally far apart.
    """
    return mean <= 0 or variance <= (1e-12 * mean) ** 2


def pearson_parameters(
    mean: float, deviation: float, skewness: float
) -> tuple[float, float, float]:
    """Return the shape, scale and location of the shifted gamma distribution (Pearson type III)
    with these moments.

    For skewness g, the shape is 4/g², the scale is deviation·g/2 and the location is mean −
    2·deviation/g. If the skewness is not positive, which occurs only with very few rows, the
    parameters are those of the normal limit.

    Examples
    --------
    An exponential distribution has mean 1, deviation 1 and skewness 2.

    >>> pearson_parameters(1.0, 1.0, 2.0)
    (1.0, 1.0, 0.0)
    """
    skewness = max(skewness, 1e-3)
    return 4 / skewness**2, deviation * skewness / 2, mean - 2 * deviation / skewness


def pearson_tail(
    value: float, mean: float, deviation: float, skewness: float, level: float
) -> tuple[float, float]:
    """Return the upper tail probability of `value`, and the upper `level` quantile, of the gamma
    distribution with these moments.
    """
    shape, scale, start = pearson_parameters(mean, deviation, skewness)
    pvalue = float(gammaincc(shape, max(value - start, 0.0) / scale))
    return pvalue, start + scale * float(gammainccinv(shape, level))
