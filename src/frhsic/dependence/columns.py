r"""Distances within single columns, by sorting: O(n log n) time and O(n) memory.

The doubly centered half-distance Gram matrix of n numbers is a sum over the gaps :math:`g_k`
between neighbors in their order. With :math:`p_k` the share of the numbers below gap k, and
:math:`q_k = 1 - p_k`,

.. math:: \tilde K = \sum_k g_k h_k h_k^\top, \qquad
    h_k(i) = p_k \text{ above the gap and } -q_k \text{ below it.}

The means over the rows of :math:`h_k h_l` and of :math:`h_k h_l h_m`, for :math:`k \le l \le m`,
are :math:`p_k q_l` and :math:`p_k (p_l - q_l) q_m`. Therefore, sums of degree two and three over
the entries of :math:`\tilde K` are prefix sums over the gaps, without differences that lose digits.
For two columns, the pairs that the columns order differently are found one binary digit of the
ranks at a time.

References
----------
Huo and Székely (2016), *Fast computing for distance covariance*. Chaudhuri and Hu (2019), *A fast
algorithm for computing distance correlation*. Both count pairs while they sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = NDArray[np.int64]


class CubicSums(NamedTuple):
    r"""Sums of degree three of :math:`A = \tilde K` with diagonal d.

    :math:`\operatorname{tr} A^3`, :math:`\sum_{ij} A_{ij}^3`, :math:`\sum_i d_i^3`,
    :math:`\sum_i d_i (A^2)_{ii}` and :math:`d^\top A d`.
    """

    trace: float
    entries: float
    diagonal: float
    diagonal_squares: float
    quadratic: float


@dataclass(frozen=True, eq=False)
class SortedColumn:
    r"""Sums over the centered half-distance Gram matrix :math:`\tilde K` of one column.

    Attributes
    ----------
    values
        The numbers minus their median, of shape (n,).
    order
        Indices that sort the values.
    diagonal
        :math:`\tilde K_{ii}`, of shape (n,).
    squares
        :math:`\sum_{ij} \tilde K_{ij}^2`.
    square_rows
        :math:`\sum_j \tilde K_{ij}^2`, of shape (n,).
    cubes
        Sums of degree three.

    Examples
    --------
    Two numbers at distance 2: the entries of the centered matrix are 1/2 and -1/2.

    >>> column = SortedColumn.from_values(np.array([3.0, 1.0]))
    >>> column.diagonal.tolist(), column.squares, column.cubes.trace
    ([0.5, 0.5], 1.0, 1.0)
    """

    values: Values
    order: Places
    diagonal: Values
    squares: float
    square_rows: Values
    cubes: CubicSums

    @classmethod
    def from_values(cls, values: Values) -> SortedColumn:
        """Compute the sums for a column of at least two numbers."""
        values = values - np.median(values)
        order = values.argsort(kind="stable")
        n = len(values)
        gap = np.diff(values[order])
        below = np.arange(1, n) / n
        above = 1 - below
        both = below * above
        # for each row: sums over the gaps below and above it
        from_below = _sums_before(gap * below**2)
        from_above = _sums_before((gap * above**2)[::-1])[::-1]
        # for each gap: sums over the other gaps below and above it
        lower = from_below[:-1]
        upper = from_above[1:]
        within_below = _sums_before(gap * both * (gap * below**2 + 2 * lower))
        within_above = _sums_before((gap * both * (gap * above**2 + 2 * upper))[::-1])[::-1]

        def triples(middle: Values) -> float:
            """Sum g_k g_l g_m p_k² q_m² times `middle` at l over all triples, sorted as k ≤ l ≤
            m.
            """
            ends = 6 * lower * upper + 3 * gap * (below**2 * upper + above**2 * lower)
            return float((gap * middle) @ (ends + gap**2 * both**2))

        diagonal = np.empty(n)
        diagonal[order] = from_below + from_above
        square_rows = np.empty(n)
        square_rows[order] = n * (within_below + within_above - 2 * from_below * from_above)
        rest = diagonal[order][::-1].cumsum()[::-1][1:]
        slopes = rest - above * diagonal.sum()  # h_k · d
        cubes = CubicSums(
            trace=n**3 * triples(both),
            entries=n**2 * triples((below - above) ** 2),
            diagonal=float((diagonal**2) @ diagonal),
            diagonal_squares=float(diagonal @ square_rows),
            quadratic=float(gap @ slopes**2),
        )
        squares = n**2 * float(gap @ (gap * both**2 + 2 * above**2 * lower))
        return cls(values, order, diagonal, squares, square_rows, cubes)

    def distances_times(self, weights: Values) -> Values:
        r"""Return :math:`\sum_j |x_i - x_j| w_j`, of shape (n,).

        Examples
        --------
        >>> column = SortedColumn.from_values(np.array([0.0, 3.0, 1.0]))
        >>> column.distances_times(np.ones(3)).tolist()
        [4.0, 5.0, 3.0]
        """
        x = self.values[self.order]
        w = weights[self.order]
        up_to = w.cumsum()
        moments = (w * x).cumsum()
        sums = np.empty_like(x)
        sums[self.order] = (2 * up_to - up_to[-1]) * x + moments[-1] - 2 * moments
        return sums


def distance_product_rows(x: SortedColumn, y: SortedColumn) -> Values:
    r"""Return :math:`\sum_j \tilde K_{ij} \tilde L_{ij}` for two columns, of shape (n,).

    The sum over i is a quarter of n² times the squared distance covariance.

    Examples
    --------
    >>> x = SortedColumn.from_values(np.array([3.0, 1.0]))
    >>> distance_product_rows(x, x).tolist()
    [0.5, 0.5]
    """
    ones = np.ones(len(x.values))
    x_rows = x.distances_times(ones)
    y_rows = y.distances_times(ones)
    # K̃_ij = u_i + u_j - |x_i - x_j| / 2, and L̃ likewise with v
    u = x_rows / (2 * len(ones)) - x_rows.mean() / (4 * len(ones))
    v = y_rows / (2 * len(ones)) - y_rows.mean() / (4 * len(ones))
    from_v = u * v.sum() + u @ v - x.distances_times(v) / 2
    return np.asarray(
        distance_products(x, y) / 4 - (u * y_rows + y.distances_times(u)) / 2 + from_v
    )


def distance_products(x: SortedColumn, y: SortedColumn) -> Values:
    r"""Return :math:`\sum_j |x_i - x_j| \, |y_i - y_j|` for two columns, of shape (n,).

    :math:`(x_i - x_j)(y_i - y_j)` is the product of the distances, with a negative sign for
    discordant pairs, which x and y order differently. Its sum over all j has a closed form, and
    twice the sum over the discordant pairs is subtracted. Ties are pairs at distance 0 and add
    nothing, regardless of their order.

    Examples
    --------
    >>> x = SortedColumn.from_values(np.array([0.0, 1.0, 3.0]))
    >>> distance_products(x, SortedColumn.from_values(np.array([0.0, 2.0, 1.0]))).tolist()
    [5.0, 4.0, 5.0]
    """
    n = len(x.values)
    rank = np.empty(n, dtype=np.int64)
    rank[y.order] = np.arange(n)
    discordant = np.empty(n)
    discordant[y.order] = _discordant(x.values[x.order], y.values[x.order], rank[x.order])
    a = x.values
    b = y.values
    return np.asarray(n * a * b - a * b.sum() - b * a.sum() + a @ b - 2 * discordant)


def _discordant(x: Values, y: Values, rank: Places) -> Values:
    r"""Return the sum of :math:`(x_j - x_i)(y_j - y_i)` over the discordant partners of each row,
    by rank.

    The rows are given in the order of x and are sorted by the ranks of y, from the highest binary
    digit to the lowest. Rows whose ranks agree in all higher digits form a group and stay in the
    order of x. Within a group, a row with digit 1 before a row with digit 0 is a discordant pair.
    Every such pair is found once, at the first digit where the two ranks differ.
    """
    n = len(x)
    total = np.zeros(n)
    place = np.arange(n)
    terms = np.stack([np.ones(n), x, y, x * y])
    ones = np.zeros((4, n + 1))  # sums over rows with digit 1, from the first row up to each
    zeros = np.zeros((4, n + 1))
    for digit in reversed(range((n - 1).bit_length())):
        is_one = (rank >> digit) & 1 == 1
        first = place & -(2 << digit)  # of the row's group
        end = np.minimum(first + (2 << digit), n)
        np.cumsum(np.where(is_one, terms, 0), axis=1, out=ones[:, 1:])
        np.cumsum(np.where(is_one, 0, terms), axis=1, out=zeros[:, 1:])
        ones_before = ones[:, :-1] - ones.take(first, axis=1)
        zeros_after = zeros.take(end, axis=1) - zeros[:, :-1]
        count, of_x, of_y, of_products = np.where(is_one, zeros_after, ones_before)
        _, x, y, product = terms
        total += product * count - x * of_y - y * of_x + of_products
        shift = ones_before[0].astype(np.int64)
        source = np.empty_like(place)
        source[np.where(is_one, first + (1 << digit) + shift, place - shift)] = place
        rank = rank.take(source)
        terms = terms.take(source, axis=1)
        total = total.take(source)
    return total


def _sums_before(values: Values) -> Values:
    """Return the sum of the values before each position, and of all values."""
    return np.concatenate([[0], values.cumsum()])


def column_scales(x: Values) -> Values:
    """Return the standard deviation of each column after clipping outliers; 1 for a constant
    column.

    Outliers are values more than ten interquartile ranges from the median, unless the interquartile
    range is 0.
    """
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    reach = np.where(high > low, 10 * (high - low), np.inf)
    return np.where(
        (x == x[:1]).all(axis=0), 1.0, x.clip(middle - reach, middle + reach).std(axis=0)
    )
