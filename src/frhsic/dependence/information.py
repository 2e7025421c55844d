r"""Mutual information by nearest neighbours, and its published variant.

With :math:`\varepsilon_i` the distance of row i to its k-th neighbour in the joint space, in the maximum norm, and
:math:`n_z(i), n_s(i)` the other rows within that distance in z and in s alone,

.. math:: \hat I = \psi(k) + \psi(n) - \frac1n \sum_i \bigl[ \psi(n_z(i) + 1) + \psi(n_s(i) + 1) \bigr].

References
----------
Kraskov, Stögbauer and Grassberger (2004), *Estimating mutual information*, estimator 1 (equation 8).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import digamma
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence._sample import paired_rows, require_varying

__all__ = ["mutual_information", "mutual_information_published"]

Matrix = NDArray[np.float64]
Counts = NDArray[np.int64]

MAX_COMPONENTS = 5
VARIANCE_SHARE = 0.95
JITTER = 1e-10

TILE_ENTRIES = 1 << 26
"""Distances that are held at once on a GPU."""


def mutual_information(
    z: Any,
    s: Any,
    *,
    neighbours: int = 5,
    components: int | None = None,
    random_state: _arrays.RandomState = 0,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Mutual information in nats by nearest neighbours, with strict marginal counts.

    .. math:: \hat I = \psi(k) + \psi(n) - \frac1n \sum_i \bigl[ \psi(n_z(i) + 1) + \psi(n_s(i) + 1) \bigr],

    where :math:`n_z(i)` counts the other rows at distance *less* than :math:`\varepsilon_i`. The population value is
    zero exactly when Z and S are independent. The estimate is not clipped, so it is negative about half the time then.

    Parameters
    ----------
    z, s
        One row per observation. Every column is brought to unit variance, which mutual information does not notice
        and the maximum norm does; constant columns are dropped.
    neighbours
        The k of the formula: fewer have less bias, more have less variance.
    components
        How many principal components of z to keep. None keeps z as it is up to five columns, and otherwise the fewest
        components with 95 % of its variance, at most five: neighbours mean little in fifty dimensions, and the mutual
        information of a projection is a lower bound of that of z.
    random_state
        Decides the jitter, of relative size 1e-10, that tells tied rows apart.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    device
        Where neighbours are sought: on the CPU, which is the default, by trees; on a GPU among all pairs, by tiles. The
        counts are the same.

    Returns
    -------
    Tensor
        0-d, on the CPU, in the width of the inputs; not differentiable. O(n log n) time by trees, O(n) memory.

    Examples
    --------
    A copy. The nearest neighbour sets the radius in one of z and s, where no row is strictly nearer, and lies just
    inside it in the other, by the jitter: ψ(1) + ψ(8) - ψ(1) - ψ(2) = 1/2 + 1/3 + ... + 1/7.

    >>> x = [0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0]
    >>> mutual_information(x, x, neighbours=1)
    tensor(1.5929, dtype=torch.float64)
    """
    z, s, width = _rows(z, s, where, neighbours)
    if components is not None or z.shape[1] > MAX_COMPONENTS:
        z = _principal_components(z, components, least=1)
    z, s = _standardized(z), _standardized(s)
    if z.shape[1] == 0:  # z is constant, hence independent of s
        return torch.zeros((), dtype=width)
    noise = _arrays.numpy_generator(random_state)
    z = z + JITTER * noise.standard_normal(z.shape)
    s = s + JITTER * noise.standard_normal(s.shape)
    return torch.tensor(_ksg(z, s, neighbours, strict=True, device=device), dtype=width)


def mutual_information_published(
    z: Any,
    s: Any,
    *,
    neighbours: int = 5,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""Mutual information as the published numbers were made: inclusive counts, unscaled, clipped at zero.

    As :func:`mutual_information`, but :math:`n_z(i)` counts the other rows at distance *at most*
    :math:`\varepsilon_i`; z is projected on the fewest principal components with 95 % of its variance, from two to
    five; neither z nor s is scaled, and ties stay ties. Where z is on a larger scale than s the counts bias it by up
    to -1/k, so a value of zero does not mean independence. Kept to lay beside the published values; measure with
    :func:`mutual_information`.

    Parameters
    ----------
    z, s, neighbours, where, device
        As in :func:`mutual_information`.

    Examples
    --------
    Four corners of a square: every row has all three others at most 1 away, and ψ(1) + ψ(4) - 2 ψ(4) < 0 is clipped.

    >>> mutual_information_published([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], neighbours=1)
    tensor(0., dtype=torch.float64)
    """
    z, s, width = _rows(z, s, where, neighbours)
    z = _principal_components(z, None, least=2)
    return torch.tensor(max(_ksg(z, s, neighbours, strict=False, device=device), 0.0), dtype=width)


def _rows(z: Any, s: Any, where: Any, neighbours: int) -> tuple[Matrix, Matrix, torch.dtype]:
    if isinstance(neighbours, bool) or not isinstance(neighbours, int):
        raise TypeError(f"neighbours is {type(neighbours).__name__}; pass a whole number, such as 5.")
    if neighbours < 1:
        raise ValueError(f"neighbours is {neighbours}; pass at least 1.")
    z, s = paired_rows(z, s, where=where, device="cpu", least=neighbours + 2, what="mutual information")
    require_varying(s, "s")
    wide = torch.float64
    return _arrays.to_numpy(z.to(wide)), _arrays.to_numpy(s.to(wide)), z.dtype


def _standardized(x: Matrix) -> Matrix:
    """Return the columns that vary, at mean zero and unit variance."""
    x = x[:, (x != x[:1]).any(axis=0)]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0))


def _principal_components(x: Matrix, components: int | None, *, least: int) -> Matrix:
    """Project on the fewest principal components with 95 % of the variance, or on as many as asked for."""
    columns = x.shape[1]
    if components is not None and not 1 <= components <= columns:
        raise ValueError(f"components is {components}; pass from 1 to {columns}, the columns of z, or None.")
    centred = x - x.mean(axis=0)
    variances, directions = np.linalg.eigh(centred.T @ centred)
    shares = np.cumsum(variances[::-1].clip(0))
    if components is None:
        enough = int(np.searchsorted(shares, VARIANCE_SHARE * shares[-1])) + 1
        components = min(max(enough, least), MAX_COMPONENTS, columns)
    return np.asarray(centred @ directions[:, ::-1][:, :components])


def _ksg(z: Matrix, s: Matrix, neighbours: int, *, strict: bool, device: torch.device | str | None) -> float:
    place = torch.device("cpu") if device is None else _arrays.resolve_device(device)
    if place.type == "cpu":
        within = _counts_by_trees(z, s, neighbours, strict)
    else:
        within = _counts_among_pairs(torch.from_numpy(z).to(place), torch.from_numpy(s).to(place), neighbours, strict)
    # counts include the row itself, which is the +1 of the formula
    return float(digamma(neighbours) + digamma(len(z)) - sum(digamma(count).mean() for count in within))


def _counts_by_trees(z: Matrix, s: Matrix, neighbours: int, strict: bool) -> list[Counts]:
    """Rows within the distance of the k-th neighbour, in z and in s; with `strict`, nearer than it."""
    joint = np.hstack([z, s])
    distances, _ = cKDTree(joint).query(joint, k=[neighbours + 1], p=np.inf)  # the nearest is the row itself
    radius = np.nextafter(distances[:, 0], 0) if strict else distances[:, 0]  # the tree counts what is at most as far
    return [cKDTree(x).query_ball_point(x, radius, p=np.inf, return_length=True) for x in (z, s)]


def _counts_among_pairs(z: Tensor, s: Tensor, neighbours: int, strict: bool) -> list[Counts]:
    """Return the same counts from the distances of all pairs, a few rows at a time."""
    counts = []
    for rows in torch.split(torch.arange(len(z), device=z.device), max(1, TILE_ENTRIES // len(z))):
        apart = [_largest_difference(x[rows], x) for x in (z, s)]
        radius = torch.maximum(*apart).kthvalue(neighbours + 1, dim=1, keepdim=True).values
        if strict:
            radius = torch.nextafter(radius, torch.zeros_like(radius))
        counts.append(torch.stack([(x <= radius).sum(1) for x in apart]))
    return list(_arrays.to_numpy(torch.cat(counts, dim=1)))


def _largest_difference(x: Tensor, y: Tensor) -> Tensor:
    """Return distances in the maximum norm, one column at a time."""
    largest = (x[:, None, 0] - y[None, :, 0]).abs()
    for column in range(1, x.shape[1]):
        largest = torch.maximum(largest, (x[:, None, column] - y[None, :, column]).abs())
    return largest
