r"""Exact moments of :math:`T_\pi = \sum_{ij} A_{ij} B_{\pi(i)\pi(j)}` over all permutations.

Here :math:`A, B` are symmetric with rows that sum to zero, such as :math:`\tilde K = HKH`. The moments are sums
over the ways in which indices coincide. Since the rows sum to zero, they depend on few invariants of each matrix.
They hold for every kernel and every n, and are conditional on the marginals, as a permutation test is.

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


def permutation_mean_variance(
    a: tuple[float, float, float], b: tuple[float, float, float], n: int
) -> tuple[float, float]:
    r"""Mean and variance of :math:`T_\pi` over all n! permutations.

    .. math::
        \mathbb E\,T_\pi = \frac{t\,t'}{n-1}, \qquad
        \operatorname{Var} T_\pi = \frac{2\,v\,v'}{(n-1)^2 (n+1)(n-2)} + \frac{w\,w'}{(n+1)\,n(n-1)(n-2)(n-3)},

    with :math:`t = \operatorname{tr} A`, :math:`v = (n-1) \operatorname{tr} A^2 - t^2`,
    :math:`w = n(n+1) \sum_i A_{ii}^2 - (n-1)(t^2 + 2 \operatorname{tr} A^2)`, and the same of B with primes.

    Parameters
    ----------
    a, b
        :math:`\operatorname{tr} A`, :math:`\operatorname{tr} A^2` and :math:`\sum_i A_{ii}^2`, and those of B.
    n
        Rows, at least 4.

    Examples
    --------
    Matrices proportional to H are the same under every permutation: mean :math:`\operatorname{tr} H = 3`.

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

    .. math:: \mathbb E\,T_\pi^3 = \sum_\sigma \frac{S_\sigma(A)\, S_\sigma(B)}{n (n-1) \cdots (n - |\sigma| + 1)},

    over the 203 partitions :math:`\sigma` of the six indices of three factors, where :math:`S_\sigma(A)` is the sum
    of :math:`A_{ij} A_{kl} A_{mn}` over indices that coincide exactly as :math:`\sigma` says.

    Parameters
    ----------
    a, b
        Eight invariants of A in this order, and those of B: :math:`t^3`, :math:`t \operatorname{tr} A^2`,
        :math:`t \sum_i d_i^2`, :math:`\operatorname{tr} A^3`, :math:`\sum_{ij} A_{ij}^3`, :math:`\sum_i d_i^3`,
        :math:`\sum_i d_i (A^2)_{ii}`, :math:`d^\top A d`, with d the diagonal and t the trace.

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
            falling = math.prod(range(n - size + 1, n + 1))
            of_a = sum(c * v for c, v in zip(coefficients, a))
            of_b = sum(c * v for c, v in zip(coefficients, b))
            total += count * of_a * (of_b / falling)
    return total


def pearson_parameters(mean: float, deviation: float, skewness: float) -> tuple[float, float, float]:
    """Return shape, scale and start of the shifted gamma (Pearson type III) with these moments.

    With skewness g the shape is 4/g², the scale is deviation·g/2 and the start mean − 2·deviation/g. A skewness that
    is not positive, which occurs for a handful of rows, is replaced by the normal limit.

    Examples
    --------
    An exponential law has mean 1, deviation 1 and skewness 2.

    >>> pearson_parameters(1.0, 1.0, 2.0)
    (1.0, 1.0, 0.0)
    """
    skewness = max(skewness, 1e-3)
    return 4 / skewness**2, deviation * skewness / 2, mean - 2 * deviation / skewness


@cache
def _index_patterns() -> tuple[tuple[int, tuple[int, ...], int], ...]:
    """Return block counts, coefficients of the eight invariants, and the number of partitions with both.

    By Möbius inversion on the lattice of partitions, a sum over indices that coincide exactly as a partition says is a
    signed sum of unrestricted sums over all coarser partitions. Each of those is one of the eight invariants, or zero
    if an index occurs once (the rows sum to zero).
    """
    partitions = list(_partitions(6))
    patterns: Counter[tuple[int, tuple[int, ...]]] = Counter()
    for fine in partitions:
        coefficients = [0] * 8
        for coarse in partitions:
            sign = _moebius(fine, coarse)
            invariant = _invariant(coarse) if sign else None
            if invariant is not None:
                coefficients[invariant] += sign
        patterns[max(fine) + 1, tuple(coefficients)] += 1
    return tuple((size, coefficients, count) for (size, coefficients), count in sorted(patterns.items()))


def _partitions(length: int, begun: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield every partition of `length` places, as labels in order of first appearance."""
    if len(begun) == length:
        yield begun
        return
    for label in range(max(begun, default=-1) + 2):
        yield from _partitions(length, (*begun, label))


def _moebius(fine: tuple[int, ...], coarse: tuple[int, ...]) -> int:
    """Return the Möbius function of two partitions, zero where the second does not merge blocks of the first."""
    merged: dict[int, int] = {}
    for block, into in zip(fine, coarse):
        if merged.setdefault(block, into) != into:
            return 0
    return math.prod((-1) ** (m - 1) * math.factorial(m - 1) for m in Counter(merged.values()).values())


def _invariant(labels: tuple[int, ...]) -> int | None:
    """Return which of the eight invariants a product of three entries sums to, None for zero.

    Labels are vertices and the three entries are edges of a graph; a diagonal entry is a loop.
    """
    if min(Counter(labels).values()) == 1:
        return None
    edges = [tuple(sorted(labels[i : i + 2])) for i in (0, 2, 4)]
    loops = [edge for edge in edges if edge[0] == edge[1]]
    links = [edge for edge in edges if edge[0] != edge[1]]
    vertices = len(set(labels))
    if len(loops) == 3:
        return {3: 0, 2: 2, 1: 5}[vertices]  # t³, t Σd², Σd³
    if len(loops) == 2:
        return 7  # a loop at either end of one link: dᵀAd
    if len(loops) == 1:
        return 6 if loops[0][0] in links[0] else 1  # Σ d (A²)ᵢᵢ, t tr A²
    return 3 if vertices == 3 else 4  # a triangle: tr A³; three parallel links: Σ A³
