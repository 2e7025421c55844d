"""HSIC by random features: unbiased over the draw, an honest standard error, additive over parts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic.dependence import features, hsic, hsic_features
from frhsic.dependence.features import draw_feature_maps
from frhsic.kernels import Gaussian, Laplacian, Linear, PerColumn
from kernel_instances import KERNELS

JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))


def dependent(n: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(3)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = z[:, :2] + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return z.to(dtype), s.to(dtype)


@pytest.mark.parametrize("name", KERNELS)
def test_products_of_features_have_the_kernel_as_their_mean(name):
    kernel = KERNELS[name]
    z, _ = dependent(5)
    maps = draw_feature_maps(kernel, Linear(), 3, 1, features=40_000, blocks=500, random_state=1)
    phi, _ = next(maps.chunks(z, z[:, :1]))
    by_block = torch.einsum("ibf,jbf->bij", phi, phi)
    error = by_block.std(0) / math.sqrt(len(by_block)) if len(by_block) > 1 else torch.zeros(5, 5)
    assert ((by_block.mean(0) - kernel(z, z)).abs() <= 4 * error + 1e-9).all()
    assert error.max() < 0.1


def test_the_standard_error_is_the_spread_over_draws():
    z, s = dependent(300)
    exact = hsic(z, s, Gaussian(2.0), JOINT).item()
    draws = [hsic_features(z, s, Gaussian(2.0), JOINT, features=256, random_state=i) for i in range(150)]
    values = np.array([d.value for d in draws])
    claimed = math.sqrt(np.mean([d.standard_error**2 for d in draws]))
    assert claimed == approx(values.std(ddof=1), abs=0, rel=0.25)  # a standard deviation of 150 draws is known to 6 %
    assert abs(values.mean() - exact) < 4 * values.std(ddof=1) / math.sqrt(150)


def test_the_error_of_a_two_way_mean_counts_rows_columns_and_their_interaction():
    g = torch.Generator().manual_seed(0)
    a, b = torch.randn(3000, 8, 1, generator=g), 0.5 * torch.randn(3000, 1, 6, generator=g)
    e = 2 * torch.randn(3000, 8, 6, generator=g)
    squares = [features._standard_error(table) ** 2 for table in a + b + e]
    assert np.mean(squares) == approx(1 / 8 + 0.25 / 6 + 4 / 48, abs=0, rel=0.07)  # never below 4/48: a little high
    assert features._standard_error(torch.ones(8, 6)) == 0
    one = torch.tensor([[1.0, 2.0, 6.0]])  # only one side is drawn: independent columns
    assert features._standard_error(one) == features._standard_error(one.T) == approx(math.sqrt(7 / 3))
    assert features._standard_error(one[:, :1]) == 0


def test_two_rows_are_enough():
    maps = draw_feature_maps(Linear(), Linear(), 1, 1)
    x = torch.tensor([[0.0], [1.0]])
    assert maps.estimate(maps.sums(x, 2 * x)).value == approx(1 / 4)  # the squared covariance
    with pytest.raises(ValueError, match="at least 2 rows"):
        maps.estimate(maps.sums(x[:1], x[:1]))


def test_linear_kernels_need_no_draw_and_are_exact(dtype):
    z, s = dependent(60, dtype)
    estimate = hsic_features(z + 1000, s, Linear(), Linear())
    assert estimate.value == approx(hsic(z + 1000, s, Linear(), Linear()).item(), abs=0, rel=1e-5)
    assert estimate.standard_error == 0


def test_sums_over_parts_add_to_those_of_the_whole(dtype):
    z, s = dependent(9000, dtype)  # more than one chunk
    maps = draw_feature_maps(Gaussian(1.0), JOINT, 3, 2, features=64, blocks=4, random_state=0)
    whole = maps.estimate(maps.sums(z, s))
    parts = maps.sums(z[7000:], s[7000:]) + maps.sums(z[:1], s[:1]) + maps.sums(z[1:7000], s[1:7000])
    assert parts.n == 9000
    joined = maps.estimate(parts)
    assert joined.value == approx(whole.value, abs=0, rel=1e-11)
    assert joined.standard_error == approx(whole.standard_error, abs=0, rel=1e-9)
