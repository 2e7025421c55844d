"""Samples with known answers, and the same sample in every kind of array, for the tests of
dependence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import digamma
from torch import Tensor


def _polars(x: np.ndarray) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(x) if x.ndim == 2 else polars.Series("age", x)


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": lambda x: x.tolist(),
    "numpy": lambda x: x,
    "pandas": lambda x: pd.DataFrame(x) if x.ndim == 2 else pd.Series(x, name="age"),
    "polars": _polars,
    "torch": torch.from_numpy,
}


def gaussian_pair(n: int, rho: float, seed: int, columns: int = 1) -> tuple[Tensor, Tensor]:
    """Return standard normal z, of some columns, and s with correlation rho to the first of
    them.
    """
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


def batch(
    m: int = 8, d: int = 3, q: int = 1, dtype: torch.dtype = torch.float64, seed: int = 0
) -> tuple[torch.Tensor, ...]:
    """A batch of representations, attributes and scores that depend on them."""
    source = torch.Generator().manual_seed(seed)
    s = torch.rand(m, q, generator=source, dtype=torch.float64)
    z = torch.randn(m, d, generator=source, dtype=torch.float64) + 2 * s[:, :1]
    f = torch.randn(m, 1, generator=source, dtype=torch.float64) + s[:, :1]
    return z.to(dtype), s.to(dtype), f.to(dtype)
