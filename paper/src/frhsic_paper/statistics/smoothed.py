r"""The points at which the gap of the kernel-smoothed mean score is evaluated, for a given
bandwidth.

A sample of s is reduced to nodes. Up to 1,024 distinct values are kept unchanged. More are replaced
with equispaced nodes, and each row is divided between the two nodes around it (linear binning),
which interpolates the Gaussian weight :math:`\exp(-u^2/2h^2)` linearly. With nodes :math:`\delta`
apart the weight changes by at most :math:`(\delta/h)^2/8`: :math:`3 \cdot 10^{-5}` with 64 nodes
per bandwidth, and 0.8 % with four, the fewest allowed.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.parity.rows import Array
from frhsic.penalties.rivals import equispaced_points

Weighting = Literal["population", "uniform"]

GRID_POINTS = 50
"""Equispaced points of the uniform weighting, as in the published numbers."""

EXACT_VALUES = 1024
"""Up to this many distinct values of s are kept unchanged."""

NODES_PER_BANDWIDTH = np.array([64, 32, 16, 8, 4])
"""The largest of these is used that gives at most :data:`MAX_NODES` nodes."""

MAX_NODES = 4096


def evaluation_points(
    s: Any, bandwidth: float, weighting: Weighting = "population"
) -> tuple[Tensor, Tensor]:
    r"""Return the points at which the smoothed gap is evaluated, and their weights: two tensors of
    shape (g,).

    .. math:: \widehat\Delta = \sum_g v_g \bigl| \hat m(s_g) - \bar f \bigr|, \qquad
        \hat m(s) = \frac{\sum_j f_j \exp(-(s - s_j)^2 / 2h^2)}{\sum_j \exp(-(s - s_j)^2 / 2h^2)}

    is what :func:`frhsic.penalties.rivals.gdp_value` computes. It differs from :func:`frhsic.gdp`
    by the bias of smoothing, which is large if s is skewed or has outliers and the bandwidth is a
    share of its range.

    ``"population"``: the distinct values of s and their frequencies. More than 1,024 distinct
    values are replaced with points a 64th of the bandwidth apart. ``"uniform"``: 50 equispaced
    points on the range of s, equally weighted.

    Examples
    --------
    >>> evaluation_points([1.0, 1.0, 3.0, 1.0], 0.2)
    (tensor([1., 3.], dtype=torch.float64), tensor([0.7500, 0.2500], dtype=torch.float64))
    """
    if weighting not in get_args(Weighting):
        raise ValueError(f"weighting is {weighting!r}; pass 'population' or 'uniform'.")
    values = _tensors.vector(s, "s").detach()
    if weighting == "uniform":
        grid = equispaced_points(values, GRID_POINTS)
        return grid, torch.full_like(grid, 1 / GRID_POINTS)
    nodes = sample_nodes(_arrays.to_numpy(values.to(torch.float64)), bandwidth)
    return torch.from_numpy(nodes.values).to(values), torch.from_numpy(
        nodes.counts / len(values)
    ).to(values)


class Nodes(NamedTuple):
    """Nodes that replace the values of s, and the (nodes × rows) matrix that divides the rows among
    them.
    """

    values: Array
    shares: sparse.csr_matrix

    @property
    def counts(self) -> Array:
        """Number of rows at each node."""
        return np.asarray(self.shares.sum(axis=1)).ravel()


def sample_nodes(s: Array, bandwidth: float) -> Nodes:
    """Return the nodes of a sample: its distinct values, or equispaced values if there are many."""
    values, place = np.unique(s, return_inverse=True)
    n = len(s)
    if len(values) <= EXACT_VALUES:
        shares = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(len(values), n))
        return Nodes(values, shares)
    for spacing in bandwidth / NODES_PER_BANDWIDTH:
        left = np.floor((s - values[0]) / spacing)
        used = np.unique(np.concatenate([left, left + 1]))
        if len(used) <= MAX_NODES:
            break
    else:
        raise ValueError(
            f"bandwidth={bandwidth:.3g} is too small for {len(values)} distinct values of s between"
            f" {values[0]:.3g} and {values[-1]:.3g}: {MAX_NODES} nodes do not resolve it. Pass a"
            " larger bandwidth."
        )
    right_share = (s - values[0]) / spacing - left
    entries = np.concatenate([1 - right_share, right_share])
    nodes = np.searchsorted(used, np.concatenate([left, left + 1]))
    rows = np.tile(np.arange(n), 2)
    shares = sparse.csr_matrix((entries, (nodes, rows)), shape=(len(used), n))
    return Nodes(values[0] + spacing * used, shares)
