"""The median bandwidth, and the kernel that `None` stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.spatial.distance import pdist

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
    value = _lower_median(_distances(x, name))
    if value == 0:
        raise ValueError(
            f"median distance of {name}, of shape {tuple(x.shape) if hasattr(x, 'shape') else (len(x),)}, is 0: "
            f"half or more of its pairs coincide. Pass a kernel with a bandwidth, such as Gaussian(bandwidth=...), "
            f"for {name}."
        )
    return value


def _distances(x: Any, name: str) -> np.ndarray:
    """Return the distances between pairs of rows; 0 exactly where two coincide, as differences are squared."""
    rows = _arrays.matrix(x, name).detach().to(torch.float64)
    _arrays.require_rows(rows.shape[0], 2, f"the median distance of {name}")
    if rows.shape[0] > MEDIAN_ROWS:
        order = torch.randperm(rows.shape[0], generator=torch.Generator().manual_seed(0), device="cpu")
        rows = rows[order[:MEDIAN_ROWS].to(rows.device)]
    return np.asarray(pdist(_arrays.to_numpy(rows)))


def _lower_median(values: np.ndarray) -> float:
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def default_gaussian(x: Any, *, name: str = "x") -> tuple[Gaussian, str]:
    """Return the kernel that tests and audits use for `None`, and the rule of its bandwidth in words.

    A Gaussian at the median distance or, if that is 0 because half or more of the pairs coincide, at the lower median
    of the distances that are not 0. So binary and zero-inflated variables have a bandwidth too.

    Examples
    --------
    >>> default_gaussian([0.0, 0.0, 0.0, 0.0, 3.0])
    (Gaussian(bandwidth=3.0), 'median of the non-zero distances')
    """
    distances = _distances(x, name)
    value, apart = _lower_median(distances), distances[distances > 0]
    if value > 0 or not len(apart):
        return Gaussian(value or median_bandwidth(x, name=name)), "median distance"  # raises if all rows are equal
    return Gaussian(_lower_median(apart)), "median of the non-zero distances"


def gaussian_at_median(x: Any, *, name: str = "x") -> Gaussian:
    """Return the Gaussian kernel at the median distance of x: the kernel that `None` stands for."""
    return Gaussian(median_bandwidth(x, name=name))


def per_column_gaussians(x: Any, *, name: str = "x") -> PerColumn:
    """Return the product of Gaussians, one per column, each at that column's own median distance."""
    rows = _arrays.matrix(x, name)
    names = _arrays.column_names(x, name, rows.shape[1])
    return PerColumn(tuple(gaussian_at_median(rows[:, i], name=names[i]) for i in range(rows.shape[1])))
