r"""Distance covariance and distance correlation, as V-statistics and without bias.

With :math:`A, B` the doubly centred matrices of Euclidean distances :math:`a_{ij} = \|z_i - z_j\|` and
:math:`b_{ij} = \|s_i - s_j\|`,

.. math:: \mathrm{dCov}^2 = \frac{1}{n^2} \sum_{ij} A_{ij} B_{ij}, \qquad
    \mathrm{dCor}^2 = \frac{\mathrm{dCov}^2(z, s)}{\sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s, s)}}.

It is four times HSIC under the half-distance kernels :math:`(\|x\| + \|y\| - \|x - y\|)/2`, so it needs no bandwidth.
The first line of each function says whether it returns the square.

References
----------
Székely, Rizzo and Bakirov (2007), *Measuring and testing dependence by correlation of distances*.
Székely and Rizzo (2014), *Partial distance correlation with methods for dissimilarities*, for the unbiased ones.
Sejdinovic, Sriperumbudur, Gretton and Fukumizu (2013), for the identity with HSIC.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence import _tiles
from frhsic.dependence._gram import exponents_of
from frhsic.dependence._inputs import paired_rows, safe_sqrt
from frhsic.dependence._sorted import distance_products, distance_rows
from frhsic.kernels import squared_distances


def euclidean_distances(x: Tensor) -> Tensor:
    r"""Distances between the rows of one matrix, :math:`\|x_i - x_j\|`, of shape (..., n, n).

    The diagonal is exactly zero, and the gradient is zero where two rows coincide. Pure, and safe under ``vmap``.

    Examples
    --------
    >>> euclidean_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    same = torch.eye(x.shape[-2], dtype=torch.bool, device=x.device)
    return safe_sqrt(squared_distances(x, x).masked_fill(same, 0))


def ratio(zs: Tensor, zz: Tensor, ss: Tensor) -> Tensor:
    r"""A correlation from three inner products, :math:`\langle z, s \rangle / \|z\| \|s\|`; 0 where either norm is.

    Pure, and safe under ``vmap``. Each root is taken by itself, since the product of the squares may be out of range.

    Examples
    --------
    >>> ratio(torch.tensor(3.0), torch.tensor(4.0), torch.tensor(9.0))
    tensor(0.5000)
    """
    scale = safe_sqrt(zz) * safe_sqrt(ss)
    vanishes = scale == 0
    return torch.where(vanishes, 0, zs / torch.where(vanishes, 1, scale))


def distance_covariance(z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None) -> Tensor:
    r"""Distance covariance, :math:`\mathrm{dCov} = \bigl(n^{-2} \sum_{ij} A_{ij} B_{ij}\bigr)^{1/2}`: *not* squared.

    Zero in the population exactly when Z and S are independent. The sample value is positive even then, of order
    :math:`n^{-1/2}`. Its square is four times HSIC under half-distance kernels. Use it where no bandwidth should be
    chosen.

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
    Tensor
        0-d, in the dtype of the inputs, differentiable once in z and s. Computed in float64 and O(n) memory: by sorting
        in O(n log n) time if z and s have one column each and need no gradient, otherwise by tiles in O(n²) time.

    Examples
    --------
    >>> distance_covariance([0.0, 1.0], [0.0, 1.0])
    tensor(0.5000, dtype=torch.float64)
    """
    products = _inner_products(z, s, where, device, _DOUBLE, least=2, what="distance covariance")
    return _root(products.zs).to(products.dtype)


def distance_correlation(z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None) -> Tensor:
    r"""Distance correlation, :math:`\mathrm{dCor}`, the root of :math:`\mathrm{dCor}^2`: *not* squared, in [0, 1].

    Zero in the population exactly when Z and S are independent, one when s is a similarity transform of z. It does not
    change when z or s is shifted, scaled or rotated. The sample value is positive even under independence and grows
    with the dimension of z; use :func:`distance_correlation_unbiased` to compare representations of different size.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`.

    Returns
    -------
    Tensor
        0-d, differentiable (once) in z and s; 0 if z is constant.

    Examples
    --------
    >>> distance_correlation([0.0, 1.0, 5.0], [3.0, 1.0, -7.0])
    tensor(1..., dtype=torch.float64)
    """
    products = _inner_products(z, s, where, device, _DOUBLE, least=2, what="distance correlation")
    return _root(ratio(products.zs, products.zz, products.ss)).to(products.dtype)


def distance_covariance_unbiased(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor:
    r"""Unbiased estimate of the *squared* distance covariance.

    .. math:: \frac{1}{n(n-3)} \sum_{i \ne j} \tilde A_{ij} \tilde B_{ij}, \qquad
        \tilde A_{ij} = a_{ij} - \frac{a_{i\cdot} + a_{\cdot j}}{n-2} + \frac{a_{\cdot\cdot}}{(n-1)(n-2)},

    where a dot is a sum. Its expectation is :math:`\mathrm{dCov}^2`, so under independence it is zero on average and
    often negative; no root is taken.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`; at least four rows.

    Examples
    --------
    >>> distance_covariance_unbiased([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0])
    tensor(0.6667, dtype=torch.float64)
    """
    products = _inner_products(z, s, where, device, _UNBIASED, least=4, what="unbiased distance covariance")
    return products.zs.to(products.dtype)


def distance_correlation_unbiased(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor:
    r"""Bias-corrected estimate of the *squared* distance correlation, a ratio of unbiased estimates.

    Under independence it is near zero, and often negative, in any dimension. It is at most one; no root is taken.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`; at least four rows.

    Examples
    --------
    >>> distance_correlation_unbiased([0.0, 1.0, 5.0, 6.0], [3.0, 1.0, -7.0, -9.0])
    tensor(1..., dtype=torch.float64)
    """
    products = _inner_products(z, s, where, device, _UNBIASED, least=4, what="unbiased distance correlation")
    return ratio(products.zs, products.zz, products.ss).to(products.dtype)


SMALL = 1e-6
"""Part of a sum of squares below which a difference of sums would lose more digits than the six of this number."""


class _Centering(NamedTuple):
    """A way to centre distances as a_ij − r_i − r_j: the r_i, the divisor of the sums, and the diagonal."""

    offsets: Callable[[Tensor], Tensor]  # from row sums to r
    divisor: Callable[[int], float]
    diagonal: float  # 1 if the diagonal belongs to the sums, 0 if not


_DOUBLE = _Centering(lambda rows: (rows - rows.mean() / 2) / rows.shape[0], lambda n: float(n) * n, 1.0)
_UNBIASED = _Centering(
    lambda rows: (rows - rows.sum() / (2 * (rows.shape[0] - 1))) / (rows.shape[0] - 2),
    lambda n: float(n) * (n - 3),
    0.0,
)


class _InnerProducts(NamedTuple):
    """Inner products of the centred distances of z and s, in float64, and the dtype of the inputs."""

    zs: Tensor
    zz: Tensor
    ss: Tensor
    dtype: torch.dtype


def _inner_products(
    z: Any, s: Any, where: Any, device: torch.device | str | None, centering: _Centering, *, least: int, what: str
) -> _InnerProducts:
    """Compute the inner products: on a line by sorting, otherwise by square tiles on and above the diagonal.

    The offsets count as fixed in the gradient. That is exact: centred rows sum to zero, so the derivative of an inner
    product with respect to the offsets vanishes.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=least, what=what)
    _arrays.require_varying(s, "s")
    dtype = z.dtype
    z, s = z.to(torch.float64), s.to(torch.float64)
    differentiable = torch.is_grad_enabled() and (z.requires_grad or s.requires_grad)
    on_a_line = z.shape[1] == s.shape[1] == 1 and not differentiable
    sums = _sorted_products(z[:, 0], s[:, 0], centering) if on_a_line else None
    if sums is not None:
        r_z, r_s, total = sums
    else:
        of_z, of_s = _distance_tiles(z.detach()), _distance_tiles(s.detach())
        r_z, r_s = (centering.offsets(_tiles.row_sums(x.detach(), tile)) for x, tile in ((z, of_z), (s, of_s)))
        total = _differentiable_products(z, s, r_z, r_s) if differentiable else _products(of_z, of_s, r_z, r_s)
    on_diagonal = 4 * torch.stack([(r_z * r_s).sum(), (r_z * r_z).sum(), (r_s * r_s).sum()])
    total = (total - (1 - centering.diagonal) * on_diagonal) / centering.divisor(z.shape[0])
    zs, zz, ss = total
    return _InnerProducts(zs, zz, ss, dtype)


def _sorted_products(z: Tensor, s: Tensor, centering: _Centering) -> tuple[Tensor, Tensor, Tensor] | None:
    r"""Return the offsets of z and s, and what :func:`_products` does, for one column each.

    With row sums a and b, :math:`\sum_{ij} (a_{ij} - r_i - r_j)(b_{ij} - q_i - q_j) = \sum_{ij} a_{ij} b_{ij}
    - 2 (a^\top q + b^\top r) + 2 n\, r^\top q + 2 \sum_i r_i \sum_i q_i`.
    None if centring takes out all but a :data:`SMALL` part of the sum of squares, as it does where one row is a million
    times as far out as all others: tiles are centred before they are summed and keep more digits.
    """
    both = [_arrays.to_numpy(x - x.median()) for x in (z, s)]  # a constant column becomes 0 exactly
    orders = [x.argsort() for x in both]
    sums = [z.new_tensor(distance_rows(x, order)) for x, order in zip(both, orders)]
    offsets = [centering.offsets(rows) for rows in sums]
    squares = [2 * (len(x) * (x @ x) - x.sum() ** 2) for x in both]
    products = (distance_products(*both, *orders), *squares)

    def centered(product: float, i: int, j: int) -> Tensor:
        cross = sums[i] @ offsets[j] + sums[j] @ offsets[i]
        of_offsets = len(z) * (offsets[i] @ offsets[j]) + offsets[i].sum() * offsets[j].sum()
        return product - 2 * cross + 2 * of_offsets

    total = torch.stack([centered(*one) for one in zip(products, (0, 0, 1), (1, 0, 1))])
    on_diagonal = [4 * float(r @ r) * (1 - centering.diagonal) for r in offsets]
    left = (float(sum_) - apart for sum_, apart in zip(total[1:], on_diagonal))
    if any(whole > 0 and part < SMALL * whole for part, whole in zip(left, squares)):
        return None
    return offsets[0], offsets[1], total


_Tile = Callable[[slice, slice], Tensor]
"""A block of a matrix of distances, given its rows and columns."""


def _products(of_z: _Tile, of_s: _Tile, r_z: Tensor, r_s: Tensor) -> Tensor:
    """Sum the products of centred distances over all pairs: z with s, z with itself, s with itself."""

    def add(rows: slice, columns: slice, total: Tensor) -> None:
        a = of_z(rows, columns).sub_(r_z[rows, None]).sub_(r_z[columns]).flatten()
        b = of_s(rows, columns).sub_(r_s[rows, None]).sub_(r_s[columns]).flatten()
        total += (1 if rows == columns else 2) * torch.stack([a @ b, a @ a, b @ b])

    return _tiles.over_tiles(len(r_z), r_z.device, lambda: (r_z.new_zeros(3),), add)[0]


def _differentiable_products(z: Tensor, s: Tensor, r_z: Tensor, r_s: Tensor) -> Tensor:
    """Return what :func:`_products` does, tiles being computed again for the gradient instead of kept."""
    n = z.shape[0]
    # one split instead of many slices: the gradient of a slice is as long as z, that of a split as long as a part
    starts = sorted({i.start for i, _ in _tiles.pairs(n, z.device)})
    lengths = [stop - start for start, stop in pairwise([*starts, n])]
    z_part, s_part = (dict(zip(starts, torch.split(x, lengths))) for x in (z, s))
    total = z.new_zeros(3)
    for i, j in _tiles.pairs(n, z.device):
        rows = (z_part[i.start], z_part[j.start], s_part[i.start], s_part[j.start])
        tile = _tiles.recomputed(partial(_tile, same=i == j), *rows, r_z[i], r_z[j], r_s[i], r_s[j])
        total = total + (tile if i == j else 2 * tile)
    return total


def _tile(*parts: Tensor, same: bool) -> Tensor:
    """Sum the products of two tiles of centred distances: z with s, z with itself, s with itself."""
    z, z_other, s, s_other, r_z, r_z_other, r_s, r_s_other = parts
    a = (_distances(z, z_other, same=same) - r_z[:, None] - r_z_other).flatten()
    b = (_distances(s, s_other, same=same) - r_s[:, None] - r_s_other).flatten()
    return torch.stack([a @ b, a @ a, b @ b])


def _distance_tiles(x: Tensor) -> _Tile:
    """Return a function of rows and columns that gives that block of the matrix of distances."""
    if x.shape[1] == 1:
        return lambda rows, columns: (x[rows] - x[columns].mT).abs_()
    scale = (x - x.median(dim=0).values).square().sum(1).median().sqrt()
    factors = exponents_of(x, scale) if bool(scale > 0) else None

    def tile(rows: slice, columns: slice) -> Tensor:
        if factors is None:
            return _distances(x[rows], x[columns], same=rows == columns)
        product = (factors[0][rows] @ factors[1][columns].mT).clamp_(max=0).mul_(-2 * scale * scale).sqrt_()
        return product.fill_diagonal_(0) if rows == columns else product

    return tile


def _distances(x: Tensor, y: Tensor, *, same: bool) -> Tensor:
    """Distances between two blocks of rows; `same` on the diagonal, where both are the same rows."""
    return euclidean_distances(x) if same else safe_sqrt(squared_distances(x, y))


def _root(square: Tensor) -> Tensor:
    return safe_sqrt(square.clamp_min(0))
