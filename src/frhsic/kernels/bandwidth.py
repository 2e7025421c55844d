"""The median bandwidth, and the kernel that `None` stands for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from frhsic import _arrays
from frhsic.kernels.families import Gaussian
from frhsic.kernels.kernel import PerColumn

MEDIAN_ROWS = 2048
"""Number of rows above which :func:`median_bandwidth` uses a subsample of this size."""


def median_bandwidth(x: Any, *, name: str = "x") -> float:
    r"""Lower median of the off-diagonal Euclidean distances between rows, :math:`\mathrm{med}_{i<j} \|x_i - x_j\|`.

    For an even number of distances, the smaller of the two middle ones. Exact up to 2,048 rows. Larger samples are
    represented by 2,048 rows drawn without replacement with a fixed seed, so that the same data give the same number.

    Raises
    ------
    ValueError
        If the median is zero, because half or more of the pairs coincide.

    Examples
    --------
    >>> median_bandwidth([0.0, 1.0, 3.0])
    2.0
    """
    value = _lower_median_distance(_some_rows(x, name))
    if value == 0:
        raise ValueError(
            f"median distance of {name}, of shape {tuple(x.shape) if hasattr(x, 'shape') else (len(x),)}, is 0: "
            f"half or more of its pairs coincide. Pass a kernel with a bandwidth, such as Gaussian(bandwidth=...), "
            f"for {name}."
        )
    return value


def _some_rows(x: Any, name: str) -> Tensor:
    rows = _arrays.matrix(x, name).detach().to(torch.float64)
    _arrays.require_rows(rows.shape[0], 2, f"the median distance of {name}")
    if rows.shape[0] > MEDIAN_ROWS:
        subsample = torch.randperm(rows.shape[0], generator=torch.Generator().manual_seed(0))[:MEDIAN_ROWS]
        rows = rows[subsample.to(rows.device)]
    return rows


def _lower_median_distance(rows: Tensor) -> float:
    """Lower median of the distances between rows of float64, to twelve digits, and 0 where it is 0 exactly."""
    n, columns = rows.shape
    count = n * (n - 1) // 2
    middle = (count - 1) // 2
    if columns > 1:
        centered = rows - rows.median(dim=0).values
        halves = _half_squares(centered)
        halves.partition(middle)
        # Matrix products lose the digits of distances far below the size of the rows; pdist below keeps them.
        if 2 * halves[middle] > 1e-3 * float(centered.square().sum(1).max()):
            return math.sqrt(2 * halves[middle])
    # pdist subtracts before it squares: coinciding rows are at distance 0 exactly
    distances = _arrays.to_numpy(torch.nn.functional.pdist(rows))
    distances.partition(middle)
    return float(distances[middle])


def _half_squares(x: Tensor, size: int = 128) -> NDArray[np.float64]:
    """Return half the squared distances of all pairs of rows, by matrix products, and infinities in other places."""
    n = len(x)
    half, ones = x.square().sum(1, keepdim=True) / 2, torch.ones_like(x[:, :1])
    left, right = torch.cat([x, half, ones], dim=1), torch.cat([-x, ones, half], dim=1)
    blocks = []
    for start in range(0, n, size):  # a block of rows against itself and all rows after it, each pair once
        block = left[start : start + size] @ right[start:].mT
        seen = torch.ones(len(block), len(block), dtype=torch.bool, device=x.device).tril()
        block[:, : len(block)].masked_fill_(seen, math.inf)
        blocks.append(block.flatten())
    return _arrays.to_numpy(torch.cat(blocks))


def default_gaussian(x: Any, *, name: str = "x") -> tuple[Gaussian, str]:
    """Return the kernel that tests and audits use for `None`, and the rule of its bandwidth in words.

    A Gaussian at the median distance or, if that is 0 because half or more of the pairs coincide, at the lower median
    of the distances that are not 0. So binary and zero-inflated variables have a bandwidth too.

    Examples
    --------
    >>> default_gaussian([0.0, 0.0, 0.0, 0.0, 3.0])
    (Gaussian(bandwidth=3.0), 'median of the non-zero distances')
    """
    rows = _some_rows(x, name)
    value = _lower_median_distance(rows)
    if value > 0:
        return Gaussian(value), "median distance"
    distances = torch.nn.functional.pdist(rows)
    distances = distances[distances > 0]
    if not len(distances):
        return Gaussian(median_bandwidth(x, name=name)), ""  # raises: all rows are equal
    return Gaussian(float(distances.median())), "median of the non-zero distances"


def gaussian_at_median(x: Any, *, name: str = "x") -> Gaussian:
    """Return the Gaussian kernel at the median distance of x: the kernel that `None` stands for."""
    return Gaussian(median_bandwidth(x, name=name))


def per_column_gaussians(x: Any, *, name: str = "x") -> PerColumn:
    """Return the product of Gaussians, one per column, each at that column's own median distance."""
    rows = _arrays.matrix(x, name)
    names = _arrays.column_names(x, name, rows.shape[1])
    return PerColumn(tuple(gaussian_at_median(rows[:, i], name=names[i]) for i in range(rows.shape[1])))
