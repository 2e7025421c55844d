r"""Nadaraya–Watson means and their mean distance from the overall mean, without checks or resampling.

One call evaluates many models in one matrix product. A sample of s is reduced to nodes: up to 1,024 distinct values are
kept as they are. More are replaced by equispaced nodes, and each row is divided between the two nodes around it (linear
binning), which interpolates the Gaussian weight :math:`\exp(-u^2/2h^2)` linearly. With nodes :math:`\delta` apart the
weight changes by at most :math:`(\delta/h)^2/8`: :math:`3 \cdot 10^{-5}` at 64 nodes to the bandwidth, and 0.8 % at
four, the fewest allowed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from frhsic import _arrays
from frhsic.parity._rows import Array

Weighting = Literal["population", "uniform"]

GRID_POINTS = 50
"""Equispaced points of the uniform weighting, as in the published numbers."""

EXACT_VALUES = 1024
"""Up to this many distinct values of s are kept as they are."""

NODES_PER_BANDWIDTH, FEWEST_PER_BANDWIDTH = 64, 4
MAX_NODES = 4096


def nadaraya_watson_weights(at: Tensor, s: Tensor, bandwidth: float | Tensor) -> Tensor:
    r"""Weights of the rows at some values of s, :math:`w_{gj} \propto \exp(-(s_g - s_j)^2 / 2h^2)`, summing to one.

    At a value far from all rows the weights concentrate on the nearest ones. Pure, and safe under ``vmap``.

    Parameters
    ----------
    at
        Values of shape (g,).
    s
        Rows, of shape (n,).
    bandwidth
        The h of the smoother, in units of s.

    Returns
    -------
    Tensor
        Of shape (g, n).

    Examples
    --------
    >>> nadaraya_watson_weights(torch.tensor([0.0]), torch.tensor([0.0, 1.0, 2.0]), 1.0)
    tensor([[0.5741, 0.3482, 0.0777]])
    """
    return torch.softmax(-(((at[..., :, None] - s[..., None, :]) / bandwidth) ** 2) / 2, dim=-1)


def gdp_value(
    scores: Tensor, s: Tensor, bandwidth: float | Tensor, grid: Tensor, weights: Tensor | None = None
) -> Tensor:
    r"""Gap of the smoothed mean score of many models at once, without interval or test.

    .. math:: \sum_g v_g \Bigl| \sum_j w_{gj} f_j - \bar f \Bigr|, \qquad
        w_{gj} \propto \exp\bigl(-(s_g - s_j)^2 / 2h^2\bigr).

    Zero when the smoothed mean of the scores is constant on the grid. Pure, differentiable, and safe under ``vmap``;
    memory is O(grid · n). With the grid and weights of :func:`evaluation_points` it is the value of
    :func:`smoothed_gdp`.

    Parameters
    ----------
    scores
        Of shape (..., n): one row per model, for instance.
    s
        Of shape (n,).
    bandwidth
        The h of the smoother, in units of s.
    grid
        Values of s at which the gap is taken, of shape (g,).
    weights
        The v of the formula, of shape (g,), summing to one; equal if not given.

    Examples
    --------
    With a narrow smoother the smoothed means are the scores themselves: 0 and 2 about a mean of 1, and for a second
    model 0 and 4 about a mean of 2.

    >>> s = torch.tensor([0.0, 1.0])
    >>> gdp_value(torch.tensor([[0.0, 2.0], [0.0, 4.0]]), s, 0.01, grid=s)
    tensor([1., 2.])
    """
    away = scores - scores.mean(dim=-1, keepdim=True)
    gaps = (away @ nadaraya_watson_weights(grid, s, bandwidth).mT).abs()
    return gaps.mean(dim=-1) if weights is None else gaps @ weights


def evaluation_points(s: Any, bandwidth: float, weighting: Weighting = "population") -> tuple[Tensor, Tensor]:
    r"""Points at which :func:`smoothed_gdp` takes the gap, and their weights: two tensors of shape (g,).

    ``"population"``: the distinct values of s and their frequencies. More than 1,024 distinct values are replaced by
    points a 64th of the bandwidth apart. ``"uniform"``: 50 equispaced points on the range of s, equally weighted.

    Examples
    --------
    >>> evaluation_points([1.0, 1.0, 3.0, 1.0], 0.2)
    (tensor([1., 3.], dtype=torch.float64), tensor([0.7500, 0.2500], dtype=torch.float64))
    """
    check_weighting(weighting)
    values = _arrays.vector(s, "s").detach()
    if weighting == "uniform":
        grid = equispaced(values, GRID_POINTS)
        return grid, torch.full_like(grid, 1 / GRID_POINTS)
    nodes = nodes_of(_arrays.to_numpy(values.to(torch.float64)), bandwidth)
    return torch.from_numpy(nodes.values).to(values), torch.from_numpy(nodes.counts / len(values)).to(values)


def equispaced(values: Tensor, points: int) -> Tensor:
    """Return equispaced points from the smallest to the largest value."""
    low, high = values.min(), values.max()
    return low + (high - low) * torch.arange(points, dtype=values.dtype, device=values.device) / (points - 1)


def check_weighting(weighting: str) -> None:
    """Raise unless the weighting is one of the two."""
    if weighting not in get_args(Weighting):
        raise ValueError(f"weighting is {weighting!r}; pass 'population' or 'uniform'.")


class Nodes(NamedTuple):
    """Values that replace s, and the (nodes × rows) matrix that divides the rows among them."""

    values: Array
    shares: sparse.csr_matrix

    @property
    def counts(self) -> Array:
        """Number of rows at each node."""
        return np.asarray(self.shares.sum(axis=1)).ravel()


def nodes_of(s: Array, bandwidth: float) -> Nodes:
    """Return the nodes of a sample: its distinct values, or equispaced values if there are many."""
    values, place = np.unique(s, return_inverse=True)
    n = len(s)
    if len(values) <= EXACT_VALUES:
        shares = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(len(values), n))
        return Nodes(values, shares)
    spacing = bandwidth / NODES_PER_BANDWIDTH
    while True:
        left = np.floor((s - values[0]) / spacing)
        used = np.unique(np.concatenate([left, left + 1]))
        if len(used) <= MAX_NODES:
            break
        spacing *= 2
        if spacing * FEWEST_PER_BANDWIDTH > bandwidth:
            raise ValueError(
                f"bandwidth={bandwidth:.3g} is too small for {len(values)} distinct values of s between "
                f"{values[0]:.3g} and {values[-1]:.3g}: {MAX_NODES} nodes do not resolve it. Pass a larger bandwidth."
            )
    right_share = (s - values[0]) / spacing - left
    entries = np.concatenate([1 - right_share, right_share])
    nodes = np.searchsorted(used, np.concatenate([left, left + 1]))
    rows = np.tile(np.arange(n), 2)
    shares = sparse.csr_matrix((entries, (nodes, rows)), shape=(len(used), n))
    return Nodes(values[0] + spacing * used, shares)
