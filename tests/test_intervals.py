"""The mean of a statistic over shuffles."""

import math

import numpy as np
import torch

from frhsic.intervals import shuffled_mean


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
