r"""Sums of distances on a line, in O(n log n) time and O(n) memory, by sorting. In NumPy, whose sorts are quicker.

References
----------
Huo and Székely (2016), *Fast computing for distance covariance*. Chaudhuri and Hu (2019), *A fast algorithm for
computing distance correlation*. Both count pairs while they sort; here one binary digit of the ranks at a time does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

GROUP = 16
"""Rows of a group in which all pairs are visited; fewer would not be quicker. A power of two."""


def distance_rows(x: Numbers, order: Places) -> Numbers:
    r"""Return :math:`\sum_j |x_i - x_j|` of n numbers, given the order that sorts them; of shape (n,).

    Examples
    --------
    >>> x = np.array([0.0, 3.0, 1.0])
    >>> distance_rows(x, x.argsort()).tolist()
    [4.0, 5.0, 3.0]
    """
    n, sums, values = len(x), np.empty_like(x), x[order]
    up_to = values.cumsum()
    sums[order] = (2 * np.arange(1, n + 1) - n) * values + up_to[-1] - 2 * up_to
    return sums


def distance_products(x: Numbers, y: Numbers, x_order: Places, y_order: Places) -> float:
    r"""Return :math:`\sum_{ij} |x_i - x_j| \, |y_i - y_j|` of n pairs, given the orders that sort them.

    :math:`(x_i - x_j)(y_i - y_j)` is the product of the distances, negative for pairs that x and y order differently.
    The sum over all pairs has a closed form, and the sum over the discordant ones is taken out of it twice. Ties are
    pairs at distance 0 and add nothing, in whichever order they stand. Numbers far from 0 cost digits.

    Examples
    --------
    >>> x, y = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 1.0])
    >>> distance_products(x, y, x.argsort(), y.argsort())
    14.0
    """
    n = len(x)
    rank = np.empty(n, dtype=np.int64)
    rank[y_order] = np.arange(n)
    discordant = _discordant(x[x_order], y[x_order], rank[x_order])
    return float(2 * (n * (x @ y) - x.sum() * y.sum() - 2 * discordant))


def _discordant(x: Numbers, y: Numbers, rank: Places) -> float:
    r"""Return the sum of :math:`(x_j - x_i)(y_j - y_i)` over i < j where the rank of i exceeds that of j.

    The rows come in the order of x and are sorted by the ranks of y, from the highest binary digit to the lowest. Rows
    that agree in all higher digits form a group and stay in the order of x. In a group, a row with digit 1 before a row
    with digit 0 is a discordant pair. Every such pair is met once, at the first digit in which its ranks differ.
    """
    n, total = len(x), 0.0
    place = np.arange(n)
    for digit in reversed(range(GROUP.bit_length() - 1, (n - 1).bit_length())):
        digits = (rank >> digit) & 1
        one = digits.astype(np.float64)  # products with integers are slow
        first = place & -(2 << digit)  # of the row's group
        x_one, y_one, count = x * one, y * one, _before(digits, first)
        x_zero, y_zero = x - x_one, y - y_one
        total += (x_zero * y_zero) @ count.astype(np.float64) + (1 - one) @ _before(x_one * y_one, first)
        total -= x_zero @ _before(y_one, first) + y_zero @ _before(x_one, first)
        source = np.empty_like(place)
        source[np.where(digits, first + (1 << digit) + count, place - count)] = place
        rank, x, y = rank.take(source), x.take(source), y.take(source)
    return total + _discordant_in_groups(x, y)


def _before(values: NDArray[Any], first: Places) -> NDArray[Any]:
    """Return the sum of the values before each row, from the first of its group."""
    sums = values.cumsum() - values
    from_first: NDArray[Any] = sums - sums.take(first)
    return from_first


def _discordant_in_groups(x: Numbers, y: Numbers) -> float:
    """Return the sum over the pairs of each :data:`GROUP` rows; added rows are the largest in both and add nothing."""
    more = -len(x) % GROUP
    a, b = (np.append(v, np.full(more, v.max())).reshape(-1, GROUP).T.copy() for v in (x, y))
    return float(sum(np.minimum((a[k:] - a[:-k]) * (b[k:] - b[:-k]), 0).sum() for k in range(1, GROUP)))
