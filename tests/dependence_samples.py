"""Samples with known answers, and the same sample in every kind of array, for the tests of
dependence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma

if TYPE_CHECKING:
    from torch import Tensor


def _polars(x: np.ndarray) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(x) if x.ndim == 2 else polars.Series("age", x)


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": lambda x: x.tolist(),
    "numpy": lambda x: x,
    "pandas": lambda x: pd.DataFrame(x) if x.ndim == 2 else pd.Series(x, name="age"),
    "polars": _polars,
    "torch": lambda x: pytest.importorskip("torch").from_numpy(x),
}


def gaussian_pair(n: int, rho: float, seed: int, columns: int = 1) -> tuple[Tensor, Tensor]:
    """Return standard normal z, of some columns, and s with correlation rho to the first of
    them.
    """
    import torch

    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, columns, generator=g, dtype=torch.float64)
    s = rho * z[:, :1] + (1 - rho**2) ** 0.5 * torch.randn(n, 1, generator=g, dtype=torch.float64)
    return z, s


def gaussian_population(rho: float) -> float:
    r"""HSIC of a standard bivariate normal law of correlation rho under Gaussian kernels of
    bandwidth 1.

    E exp(-x'x/2) = det(I + S)^(-1/2) for x ~ N(0, S). The joint term has S = 2R, of determinant
    det(I + 2R) = 9 - 4 rho^2; each marginal mean is 3^(-1/2); given z the mean over z' is
    exp(-z^2/4) / sqrt(2), so that the cross term is det(I + R/2)^(-1/2) / 2, with
    det(I + R/2) = (9 - rho^2) / 4.
    """
    return (9 - 4 * rho**2) ** -0.5 + 1 / 3 - 2 * (9 - rho**2) ** -0.5


def sloped(n: int, seed: int, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return scores whose mean is a line along uniform s."""
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return slope * s + 0.3 * rng.standard_normal(n), s


def waves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return deterministic z, of three columns, and s, which other software can be given to the
    last digit.
    """
    i = np.arange(float(n))
    return np.stack([np.sin(i), np.cos(1.7 * i) * i / 20, i * i % 7], axis=1), np.sin(
        i
    ) ** 2 + 0.3 * np.cos(3 * i)


def within(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5)


def mean_over(seeds: int, statistic: Callable[[int], Tensor]) -> tuple[float, float]:
    """Return mean and standard error of a statistic over seeds."""
    return within([float(statistic(seed)) for seed in range(seeds)])


def at_least(share: float, hits: Any) -> bool:
    """Whether hits are at least as frequent as a share, up to three standard errors."""
    return bool(np.mean(hits) >= share - 3 * (share * (1 - share) / len(hits)) ** 0.5)


def ksg_by_definition(z, s, k, inside):
    """Count neighbours one by one; `inside` compares a distance with the radius."""
    n = len(z)

    def far(x, i, j):
        return max(abs(a - b) for a, b in zip(x[i], x[j]))

    total = 0.0
    for i in range(n):
        others = [j for j in range(n) if j != i]
        radius = sorted(max(far(z, i, j), far(s, i, j)) for j in others)[k - 1]
        counts = [sum(inside(far(x, i, j), radius) for j in others) for x in (z, s)]
        total += sum(digamma(count + 1) for count in counts) / n
    return digamma(k) + digamma(n) - total


def eipm_by_definition(z, s, kernel_z, bandwidth):
    """Sums written out, one anchor, one pair at a time."""
    n = len(z)
    k = kernel_z(z, z).tolist()
    total = 0.0
    for i in range(n):
        w = [
            0.0 if j == i else math.exp(-float(((s[i] - s[j]) ** 2).sum()) / (2 * bandwidth**2))
            for j in range(n)
        ]
        w = [x / sum(w) for x in w]
        own = sum(w[a] * w[b] * k[a][b] for a in range(n) for b in range(n))
        cross = sum(w[a] * k[a][b] / n for a in range(n) for b in range(n))
        mean = sum(k[a][b] for a in range(n) for b in range(n)) / n**2
        total += math.sqrt(max(own - 2 * cross + mean, 0.0)) / n
    return total


def bins_by_definition(s, edges):
    """Row numbers of each bin, one comparison at a time, without those of fewer than two rows."""
    bounds = [-np.inf, *edges, np.inf]
    bins = [[i for i, x in enumerate(s) if low <= x < high] for low, high in pairwise(bounds)]
    return [rows for rows in bins if len(rows) >= 2]


def batch(
    m: int = 8, d: int = 3, q: int = 1, dtype: Any = None, seed: int = 0
) -> tuple[Tensor, ...]:
    """A batch of representations, attributes and scores that depend on them."""
    import torch

    source = torch.Generator().manual_seed(seed)
    s = torch.rand(m, q, generator=source, dtype=torch.float64)
    z = torch.randn(m, d, generator=source, dtype=torch.float64) + 2 * s[:, :1]
    f = torch.randn(m, 1, generator=source, dtype=torch.float64) + s[:, :1]
    return z.to(dtype), s.to(dtype), f.to(dtype)
