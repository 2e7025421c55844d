"""HSIC from sums over the entries of two Gram matrices, as floats or 0-d tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Scalar = TypeVar("Scalar", float, "Tensor")


def biased_from_sums(
    joint: Scalar, cross: Scalar, k_total: Scalar, l_total: Scalar, n: int
) -> Scalar:
    r"""HSIC as a V-statistic, from sums over the entries of two Gram matrices.

    .. math:: \frac{1}{n^2} \Big[ \sum_{ij} K_{ij} L_{ij} - \frac2n \sum_i a_i b_i
        + \frac1n \sum_i a_i \cdot \frac1n \sum_i b_i \Big],

    where :math:`a, b` are the row sums of :math:`K, L`. Rounding may leave it
    slightly below 0.

    Examples
    --------
    Two rows at distance one under the linear kernel: the squared variance, (1/4) ** 2.

    >>> biased_from_sums(1.0, 1.0, 1.0, 1.0, n=2)
    0.0625
    """
    return (joint - 2 * cross / n + (k_total / n) * (l_total / n)) / n**2


def unbiased_from_sums(
    joint: Scalar, cross: Scalar, k_total: Scalar, l_total: Scalar, n: int
) -> Scalar:
    r"""HSIC as a U-statistic, from sums over the off-diagonal entries of two Gram matrices.

    .. math:: \frac{\sum_{ij} \tilde K_{ij} \tilde L_{ij}}{n(n-3)} - \frac{2 \sum_i a_i
        b_i}{n(n-2)(n-3)}
        + \frac{\sum_i a_i \sum_i b_i}{n(n-1)(n-2)(n-3)},

    where :math:`a, b` are the row sums of :math:`\tilde K, \tilde L`, whose diagonals are zero.

    Parameters
    ----------
    joint, cross
        :math:`\sum_{ij} \tilde K_{ij} \tilde L_{ij}` and :math:`\sum_i a_i b_i`.
    k_total, l_total
        :math:`\sum_i a_i` and :math:`\sum_i b_i`.
    n
        Number of rows, at least 4.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence
    maximization*, Theorem 2.

    Examples
    --------
    The sums of the example of :func:`~frhsic.dependence.grams.hsic_unbiased_from_gram`.

    >>> round(unbiased_from_sums(8.0, 16.0, 8.0, 8.0, n=4), 4)
    0.6667
    """
    # Each total is divided separately: the product stays in range, and Python's integers do not
    # overflow.
    product = (k_total / (n * (n - 1))) * (l_total / ((n - 2) * (n - 3)))
    return joint / (n * (n - 3)) - 2 * (cross / (n * (n - 2) * (n - 3))) + product
