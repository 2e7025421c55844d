"""The median bandwidth, and the kernel that `None` stands for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.kernels.families import Gaussian
from frhsic.kernels.kernel import PerColumn

# Number of rows above which :func:`median_bandwidth` uses a subsample of this size.
MEDIAN_ROWS = 2048


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
        order = torch.randperm(rows.shape[0], generator=torch.Generator().manual_seed(0), device="cpu")
        rows = rows[order[:MEDIAN_ROWS].to(rows.device)]
    return rows


def _lower_median_distance(rows: Tensor) -> float:
    """Lower median of the distances between rows of float64, to twelve digits, and 0 where it is 0 exactly."""
    n, columns = rows.shape
    count = n * (n - 1) // 2
    middle = (count - 1) // 2
    if columns == 1:
        return _partitioned(_each_pair(rows, lambda i, j, out: torch.sub(rows[i], rows[j].mT, out=out).abs_()), middle)
    centered = rows - rows.median(dim=0).values
    half, ones = centered.square().sum(1, keepdim=True) / 2, torch.ones_like(rows[:, :1])
    left, right = torch.cat([centered, half, ones], dim=1), torch.cat([-centered, ones, half], dim=1)
    square = 2 * _partitioned(_each_pair(rows, lambda i, j, out: torch.mm(left[i], right[j].mT, out=out)), middle)
    # Matrix products lose the digits of distances far below the size of the rows; pdist below keeps them.
    if square > 1e-3 * 2 * float(half.max()):
        return math.sqrt(square)
    # pdist subtracts before it squares: coinciding rows are at distance 0 exactly
    return _partitioned(torch.nn.functional.pdist(rows), middle)


def _each_pair(x: Tensor, write: Callable[[slice, slice, Tensor], Tensor], size: int = 128) -> Tensor:
    """Return what `write(rows, columns, out)` writes for every pair of rows once, with infinities among it."""
    n = len(x)
    starts = range(0, n, size)
    values, end = x.new_empty(sum(min(size, n - start) * (n - start) for start in starts)), 0
    for start in starts:  # a block of rows against itself and all rows after it
        rows, columns = slice(start, min(start + size, n)), slice(start, n)
        height, width = rows.stop - start, n - start
        block = values[end : end + height * width].view(height, width)
        write(rows, columns, block)
        block[:, :height].masked_fill_(torch.ones_like(block[:, :height], dtype=torch.bool).tril(), math.inf)
        end += height * width
    return values


def _partitioned(values: Tensor, place: int) -> float:
    """Return the value that stands at this place in ascending order."""
    array = _arrays.to_numpy(values)
    array.partition(place)
    return float(array[place])


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
