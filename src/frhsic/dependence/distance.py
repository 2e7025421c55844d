r"""Distance covariance and distance correlation, as V-statistics and without bias.

With :math:`A, B` the doubly centred matrices of Euclidean distances :math:`a_{ij} = \|z_i - z_j\|` and
:math:`b_{ij} = \|s_i - s_j\|`,

.. math:: \mathrm{dCov}^2 = \frac{1}{n^2} \sum_{ij} A_{ij} B_{ij}, \qquad
    \mathrm{dCor}^2 = \frac{\mathrm{dCov}^2(z, s)}{\sqrt{\mathrm{dCov}^2(z, z)\, \mathrm{dCov}^2(s, s)}}.

It is four times HSIC under the half-distance kernels :math:`(\|x\| + \|y\| - \|x - y\|)/2`: no bandwidth is chosen.
Which of the functions return the square is in the first line of each.

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

from frhsic.dependence import _tiles, grams
from frhsic.dependence._sample import paired_rows, recomputed, require_varying, safe_sqrt
from frhsic.kernels import squared_distances

__all__ = [
    "distance_correlation",
    "distance_correlation_from_distances",
    "distance_correlation_unbiased",
    "distance_covariance",
    "distance_covariance_from_distances",
    "distance_covariance_unbiased",
    "euclidean_distances",
    "ratio",
]


def euclidean_distances(x: Tensor) -> Tensor:
    r"""Distances between the rows of one matrix, :math:`\|x_i - x_j\|`, of shape (..., n, n).

    The diagonal is zero exactly, and the gradient is zero where two rows coincide. Pure, and safe under ``vmap``.

    Examples
    --------
    >>> euclidean_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    same = torch.eye(x.shape[-2], dtype=torch.bool, device=x.device)
    return safe_sqrt(squared_distances(x, x).masked_fill(same, 0))


def distance_covariance_from_distances(a: Tensor, b: Tensor) -> Tensor:
    r"""*Squared* distance covariance of two matrices of distances, :math:`n^{-2} \sum_{ij} A_{ij} B_{ij}`.

    The V-statistic of a batch, smooth in the distances. It is :func:`frhsic.dependence.grams.hsic_biased` of the
    distance matrices, because centring turns half-distance kernels into minus half the distances.

    Examples
    --------
    Two rows one apart: A = B = [[-1/2, 1/2], [1/2, -1/2]].

    >>> a = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> distance_covariance_from_distances(a, a)
    tensor(0.2500)
    """
    return grams.hsic_biased(a, b)


def distance_correlation_from_distances(a: Tensor, b: Tensor) -> Tensor:
    r"""*Squared* distance correlation of two matrices of distances, in [0, 1]; 0 where either is constant.

    Examples
    --------
    >>> a = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> distance_correlation_from_distances(a, 3 * a)
    tensor(1.)
    """
    return ratio(grams.hsic_biased(a, b), grams.hsic_biased(a, a), grams.hsic_biased(b, b))


def ratio(zs: Tensor, zz: Tensor, ss: Tensor) -> Tensor:
    r"""A correlation from three inner products, :math:`\langle z, s \rangle / \|z\| \|s\|`; 0 where either norm is.

    Pure, and safe under ``vmap``. The roots are taken one by one: the product of the squares may be out of range.

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
    :math:`n^{-1/2}`. Its square is four times HSIC under half-distance kernels.

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
        0-d, differentiable (once) in z and s. Computed in float64 by tiles in O(n) memory, whatever the width of the
        inputs, and returned in theirs.

    Examples
    --------
    >>> distance_covariance([0.0, 1.0], [0.0, 1.0])
    tensor(0.5000, dtype=torch.float64)
    """
    sums = _sums(z, s, where, device, _double_centring, least=2, what="distance covariance")
    return _root(sums.zs).to(sums.width)


def distance_correlation(z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None) -> Tensor:
    r"""Distance correlation, :math:`\mathrm{dCor}`, the root of :math:`\mathrm{dCor}^2`: *not* squared, in [0, 1].

    Zero in the population exactly when Z and S are independent, one when s is a similarity transform of z. The
    sample value is positive even under independence, and grows with the dimension of z;
    :func:`distance_correlation_unbiased` does not. It does not change when z or s is shifted, scaled or rotated.

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
    sums = _sums(z, s, where, device, _double_centring, least=2, what="distance correlation")
    return _root(ratio(sums.zs, sums.zz, sums.ss)).to(sums.width)


def distance_covariance_unbiased(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor:
    r"""Unbiased estimate of the *squared* distance covariance.

    .. math:: \frac{1}{n(n-3)} \sum_{i \ne j} \tilde A_{ij} \tilde B_{ij}, \qquad
        \tilde A_{ij} = a_{ij} - \frac{a_{i\cdot} + a_{\cdot j}}{n-2} + \frac{a_{\cdot\cdot}}{(n-1)(n-2)},

    where a dot is a sum. Its expectation is :math:`\mathrm{dCov}^2`, so it is often negative under independence and no
    root is taken.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`; at least four rows.

    Examples
    --------
    >>> distance_covariance_unbiased([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0])
    tensor(0.6667, dtype=torch.float64)
    """
    what = "unbiased distance covariance"
    sums = _sums(z, s, where, device, _unbiased_centring, least=4, what=what)
    return sums.zs.to(sums.width)


def distance_correlation_unbiased(
    z: Any, s: Any, *, where: Any = None, device: torch.device | str | None = None
) -> Tensor:
    r"""Bias-corrected estimate of the *squared* distance correlation, a ratio of unbiased estimates.

    Near zero, and often negative, under independence in any dimension; at most one; no root is taken.

    Parameters
    ----------
    z, s, where, device
        As in :func:`distance_covariance`; at least four rows.

    Examples
    --------
    >>> distance_correlation_unbiased([0.0, 1.0, 5.0, 6.0], [3.0, 1.0, -7.0, -9.0])
    tensor(1..., dtype=torch.float64)
    """
    what = "unbiased distance correlation"
    sums = _sums(z, s, where, device, _unbiased_centring, least=4, what=what)
    return ratio(sums.zs, sums.zz, sums.ss).to(sums.width)


class _Centring(NamedTuple):
    """Centred distances are a_ij − r_i − r_j; these are the r_i, what the sums are divided by, and the diagonal."""

    offsets: Callable[[Tensor], Tensor]  # from row sums to r
    divisor: Callable[[int], float]
    diagonal: float  # 1 if the diagonal belongs to the sums, 0 if not


_double_centring = _Centring(
    offsets=lambda rows: (rows - rows.mean() / 2) / rows.shape[0],
    divisor=lambda n: float(n) * n,
    diagonal=1.0,
)
_unbiased_centring = _Centring(
    offsets=lambda rows: (rows - rows.sum() / (2 * (rows.shape[0] - 1))) / (rows.shape[0] - 2),
    divisor=lambda n: float(n) * (n - 3),
    diagonal=0.0,
)


class _Sums(NamedTuple):
    """Inner products of the centred distances of z and s, in float64, and the dtype of the inputs."""

    zs: Tensor
    zz: Tensor
    ss: Tensor
    width: torch.dtype


def _sums(
    z: Any,
    s: Any,
    where: Any,
    device: torch.device | str | None,
    centring: _Centring,
    *,
    least: int,
    what: str,
) -> _Sums:
    """Compute the inner products by square tiles on and above the diagonal.

    The offsets are held fixed when differentiating. That loses nothing: centred rows sum to zero, so the
    offsets' own contribution to the first derivative of an inner product vanishes.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=least, what=what)
    require_varying(s, "s")
    width = z.dtype
    z, s = z.to(torch.float64), s.to(torch.float64)
    n = z.shape[0]
    with torch.no_grad():
        r_z, r_s = centring.offsets(_row_sums(z)), centring.offsets(_row_sums(s))
    # One split rather than many slices: the gradient of a slice is as long as z, that of a split as long as a part.
    starts = sorted({i.start for i, _ in _tiles.pairs(n, z.device)})
    lengths = [stop - start for start, stop in pairwise([*starts, n])]
    z_part, s_part = (dict(zip(starts, torch.split(x, lengths))) for x in (z, s))
    total = z.new_zeros(3)
    for i, j in _tiles.pairs(n, z.device):
        rows = (z_part[i.start], z_part[j.start], s_part[i.start], s_part[j.start])
        tile = recomputed(partial(_tile, same=i == j), *rows, r_z[i], r_z[j], r_s[i], r_s[j])
        total = total + (tile if i == j else 2 * tile)
    on_diagonal = 4 * torch.stack([(r_z * r_s).sum(), (r_z * r_z).sum(), (r_s * r_s).sum()])
    total = (total - (1 - centring.diagonal) * on_diagonal) / centring.divisor(n)
    zs, zz, ss = total
    return _Sums(zs, zz, ss, width)


def _tile(
    z: Tensor,
    z_other: Tensor,
    s: Tensor,
    s_other: Tensor,
    r: Tensor,
    r_other: Tensor,
    q: Tensor,
    q_other: Tensor,
    *,
    same: bool,
) -> Tensor:
    """Sum the products of two tiles of centred distances: z with s, z with itself, s with itself."""
    a = _distances(z, z_other, same=same) - r[:, None] - r_other
    b = _distances(s, s_other, same=same) - q[:, None] - q_other
    a, b = a.flatten(), b.flatten()
    return torch.stack([a @ b, a @ a, b @ b])


def _row_sums(x: Tensor) -> Tensor:
    rows = x.new_zeros(x.shape[0])
    for i, j in _tiles.pairs(x.shape[0], x.device):
        d = _distances(x[i], x[j], same=i == j)
        rows[i] += d.sum(1)
        if i != j:
            rows[j] += d.sum(0)
    return rows


def _distances(x: Tensor, y: Tensor, *, same: bool) -> Tensor:
    """Distances between two blocks of rows, which are the `same` rows on the diagonal."""
    if same:
        return euclidean_distances(x)
    squares = squared_distances(x, y)
    return safe_sqrt(squares) if squares.requires_grad else squares.sqrt_()


def _root(square: Tensor) -> Tensor:
    return safe_sqrt(square.clamp_min(0))
