"""Intervals: coverage of the jackknife, and the mean over shuffles."""

import math

import numpy as np
import torch

from frhsic.dependence import hsic
from frhsic.intervals import jackknife, shuffled_mean
from frhsic.kernels import Gaussian


def test_the_jackknife_of_hsic_covers_the_population_value():
    """Jointly Gaussian, correlation 0.5, bandwidths 1: HSIC is 0.0107633 in the population, plus (1-μ)²/n of bias."""
    one, covered, runs = Gaussian(1.0), 0, 40

    def statistic(a, b):
        return float(hsic(a, b, one, one))

    for seed in range(runs):
        g = torch.Generator().manual_seed(seed)
        z = torch.randn(400, 1, generator=g, dtype=torch.float64)
        s = 0.5 * z + math.sqrt(0.75) * torch.randn(400, 1, generator=g, dtype=torch.float64)
        found = jackknife(
            statistic, z, s, statistic(z, s), groups=10, confidence=0.95, random=np.random.default_rng(seed)
        )
        bias = (1 - 1 / math.sqrt(3)) ** 2 / 400
        covered += found.low <= 0.0107633 + bias <= found.high
    assert covered / runs > 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs)


def test_the_jackknife_is_cut_at_the_range_of_the_statistic():
    z = torch.randn(40, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = jackknife(
        lambda a, b: float(a.mean()),
        z,
        z,
        0.0,
        groups=4,
        confidence=0.95,
        random=np.random.default_rng(0),
        least=0.0,
        most=0.01,
    )
    assert (found.low, found.high) == (0.0, 0.01)


def test_the_shuffled_mean_of_the_squared_covariance_is_known():
    """Over all orders, E cov² = var(z) var(s) / (n - 1)."""
    random = np.random.default_rng(0)
    z, s = (torch.from_numpy(random.standard_normal(50)) for _ in range(2))

    def covariance(a, b):
        return float(((a - a.mean()) * (b - b.mean())).mean())

    def squared(a, b):
        return covariance(a, b) ** 2

    draws = [shuffled_mean(squared, z, s, shuffles=1, random=np.random.default_rng(i)) for i in range(2000)]
    expected = covariance(z, z) * covariance(s, s) / 49
    assert abs(np.mean(draws) - expected) < 4 * np.std(draws) / math.sqrt(2000)
