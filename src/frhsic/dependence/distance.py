r"""Distance covariance and distance correlation.

With :math:`A, B` the doubly centred matrices of Euclidean distances :math:`a_{ij} = \|z_i - z_j\|`
and :math:`b_{ij} = \|s_i - s_j\|`,

.. math:: \mathrm{dCov}^2 = \frac{1}{n^2} \sum_{ij} A_{ij} B_{ij}, \qquad
    \mathrm{dCor}^2 = \frac{\mathrm{dCov}^2(z, s)}{\sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s,
    s)}}.

It is four times HSIC under the half-distance kernels :math:`(\|x\| + \|y\| - \|x - y\|)/2`, so it
needs no bandwidth. The first line of each function says whether it returns the square.

References
----------
Székely, Rizzo and Bakirov (2007), *Measuring and testing dependence by correlation of distances*.
Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), for the identity with HSIC.
Huo and Székely (2016), *Fast computing for distance covariance*. Chaudhuri and Hu (2019), *A fast
algorithm for computing distance correlation*. Both count pairs while they sort; here one binary
digit of the ranks at a time does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.exact import hsic_from_rows
from frhsic.dependence.grams import safe_sqrt
from frhsic.dependence.inputs import paired_rows, working_copy
from frhsic.dependence.sums import GramSums, PairSums, pair_sums
from frhsic.dependence.tiles import Gram
from frhsic.kernels import HalfDistance, squared_distances

Values = NDArray[np.float64]
Places = NDArray[np.int64]

# Part of a sum of squares below which a difference of sums would lose more digits than the six of
# this number.
SMALL = 1e-6


def euclidean_distances(x: Tensor) -> Tensor:
    r"""Distances between the rows of one matrix, :math:`\|x_i - x_j\|`, of shape (..., n, n).

    The diagonal is exactly zero, and the gradient is zero where two rows coincide. Pure, and safe
    under ``vmap``.

    Examples
    --------
    >>> euclidean_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    same = torch.eye(x.shape[-2], dtype=torch.bool, device=x.device)
    return safe_sqrt(squared_distances(x, x).masked_fill(same, 0))


def ratio(zs: Tensor, zz: Tensor, ss: Tensor) -> Tensor:
    r"""A correlation from three inner products, :math:`\langle z, s \rangle / \|z\| \|s\|`; 0 where
    either norm is.

    Pure, and safe under ``vmap``. Each root is taken by itself, since the product of the squares
    may be out of range.

    Examples
    --------
    >>> ratio(torch.tensor(3.0), torch.tensor(4.0), torch.tensor(9.0))
    tensor(0.5000)
    """
    scale = safe_sqrt(zz) * safe_sqrt(ss)
    vanishes = scale == 0
    return torch.where(vanishes, 0, zs / torch.where(vanishes, 1, scale))


def distance_covariance(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor | float:
    r"""Distance covariance, :math:`\mathrm{dCov} = \bigl(n^{-2} \sum_{ij} A_{ij}
    B_{ij}\bigr)^{1/2}`: *not* squared.

    Zero in the population exactly when Z and S are independent. The sample value is positive even
    then, of order :math:`n^{-1/2}`. Its square is four times HSIC under half-distance kernels. Use
    it where no bandwidth should be chosen.

    Parameters
    ----------
    z, s
        One row per observation; any number of columns each.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where to compute; that of the inputs if not given.

    Returns
    -------
    float or Tensor
        A float; of tensors, 0-d in their dtype and differentiable once in z and s. Computed in
        float64 and O(n) memory: by sorting in O(n log n) time if z and s have one column each and
        need no gradient, otherwise by tiles in O(n²) time.

    Examples
    --------
    >>> distance_covariance([0.0, 1.0], [0.0, 1.0])
    0.5
    """
    return _tensors.to_input_type(safe_sqrt(_inner_products(z, s, where, device)[0]), z, s)


def distance_correlation(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor | float:
    r"""Distance correlation, :math:`\mathrm{dCor}`, the root of :math:`\mathrm{dCor}^2`: *not*
    squared, in [0, 1].

    Zero in the population exactly when Z and S are independent, one when s is a similarity
    transform of z. It does not change when z or s is shifted, scaled or rotated. The sample value
    is positive even under independence and grows with the dimension of z. To compare
    representations of different size, use :func:`~frhsic.independence.normalized_hsic_interval`
    with :class:`~frhsic.kernels.HalfDistance` kernels, which is its square without bias.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`.

    Returns
    -------
    float or Tensor
        As in :func:`distance_covariance`; 0 if z is constant.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 5.0], [3.0, 1.0, -7.0]), 12)
    1.0
    """
    return _tensors.to_input_type(safe_sqrt(ratio(*_inner_products(z, s, where, device))), z, s)


def _inner_products(
    z: Any, s: Any, where: Any, device: torch.device | str | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inner products of centred distances: z with s, z with itself, s with itself."""
    z, s = paired_rows(z, s, where=where, device=device, least=2, what="distance covariance")
    _arrays.require_varying(s, "s")
    half = HalfDistance()
    if torch.is_grad_enabled() and (z.requires_grad or s.requires_grad):
        zz = hsic_from_rows(z, z, half, half) if bool((z != z[:1]).any()) else z.sum() * 0
        return 4 * hsic_from_rows(z, s, half, half), 4 * zz, 4 * hsic_from_rows(s, s, half, half)
    sums = None
    times = 1
    if z.shape[1] == s.shape[1] == 1:
        sums = _sorted_sums(z, s)
    if sums is None:
        k = Gram.from_rows(working_copy(z, half), half)
        l = Gram.from_rows(working_copy(s, half), half)
        sums = pair_sums(k, l)
        times = 4
    zz = sums.k.centered_gram.squares / len(z) ** 2
    ss = sums.l.centered_gram.squares / len(z) ** 2
    return (
        (times * sums.biased_hsic).to(z.dtype),
        (times * zz).to(z.dtype),
        (times * ss).to(z.dtype),
    )


def _sorted_sums(z: Tensor, s: Tensor) -> PairSums | None:
    """Return the sums over the distances of two single columns, by sorting, in O(n log n) time.

    None if centring takes out all but a :data:`SMALL` part of a sum of squares, as it does where
    one row is a million times as far out as all others: the half-distance kernel keeps more digits
    there.
    """
    # a constant column becomes 0
    x, y = (_arrays.to_numpy((rows - rows.median())[:, 0].detach().double()) for rows in (z, s))
    x_order = x.argsort()
    y_order = y.argsort()
    k = _distance_sums(x, x_order)
    l = _distance_sums(y, y_order)
    if any(bool(sums.centered_gram.squares < SMALL * sums.squares) for sums in (k, l)):
        return None
    joint = distance_products(x, y, x_order, y_order)
    return PairSums(k.rows.new_tensor(joint), k, l)


def _distance_sums(x: Values, order: Places) -> GramSums:
    rows = torch.from_numpy(distance_rows(x, order))
    squares = 2 * (len(x) * (x @ x) - x.sum() ** 2)
    return GramSums(rows, torch.zeros_like(rows), rows.new_tensor(squares))


def distance_rows(x: Values, order: Places) -> Values:
    r"""Return :math:`\sum_j |x_i - x_j|` of n numbers, given the order that sorts them; of shape
    (n,).

    Examples
    --------
    >>> x = np.array([0.0, 3.0, 1.0])
    >>> distance_rows(x, x.argsort()).tolist()
    [4.0, 5.0, 3.0]
    """
    n = len(x)
    values = x[order]
    up_to = values.cumsum()
    sums = np.empty_like(x)
    sums[order] = (2 * np.arange(1, n + 1) - n) * values + up_to[-1] - 2 * up_to
    return sums


def distance_products(x: Values, y: Values, x_order: Places, y_order: Places) -> float:
    r"""Return :math:`\sum_{ij} |x_i - x_j| \, |y_i - y_j|` of n pairs, given the orders that sort
    them.

    :math:`(x_i - x_j)(y_i - y_j)` is the product of the distances, negative for pairs that x and y
    order differently. The sum over all pairs has a closed form, and the sum over the discordant
    ones is taken out of it twice. Ties are pairs at distance 0 and add nothing, in whichever order
    they stand. Values far from 0 cost digits.

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


def _discordant(x: Values, y: Values, rank: Places) -> float:
    r"""Return the sum of :math:`(x_j - x_i)(y_j - y_i)` over i < j where the rank of i exceeds that
    of j.

    The rows come in the order of x and are sorted by the ranks of y, from the highest binary digit
    to the lowest. Rows that agree in all higher digits form a group and stay in the order of x. In
    a group, a row with digit 1 before a row with digit 0 is a discordant pair. Every such pair is
    met once, at the first digit in which its ranks differ.
    """
    n = len(x)
    total = 0.0
    place = np.arange(n)
    for digit in reversed(range((n - 1).bit_length())):
        digits = (rank >> digit) & 1
        indicator = digits.astype(np.float64)  # products with integers are slow
        first = place & -(2 << digit)  # of the row's group
        count = _before(digits, first)
        x_one = x * indicator
        y_one = y * indicator
        x_zero = x - x_one
        y_zero = y - y_one
        products = _before(x_one * y_one, first)
        total += (x_zero * y_zero) @ count.astype(np.float64) + (1 - indicator) @ products
        total -= x_zero @ _before(y_one, first) + y_zero @ _before(x_one, first)
        source = np.empty_like(place)
        source[np.where(digits, first + (1 << digit) + count, place - count)] = place
        rank = rank.take(source)
        x = x.take(source)
        y = y.take(source)
    return total


def _before(values: NDArray[Any], first: Places) -> NDArray[Any]:
    """Return the sum of the values before each row, from the first of its group."""
    sums = values.cumsum() - values
    from_first: NDArray[Any] = sums - sums.take(first)
    return from_first
