"""Distance covariance and correlation: definition, identities, outside constants, gradient and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair, waves, within
from frhsic.dependence import distance_correlation, distance_covariance
from frhsic.dependence.distance import distance_products, distance_rows

STATISTICS = [distance_covariance, distance_correlation]
named = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda f: f.__name__)


def distances(x):
    return [[math.dist(a, b) for b in x.tolist()] for a in x.tolist()]


def v_squared(z, s):
    """dCov² as the three sums of Székely, Rizzo and Bakirov (2007), equations 2.15 to 2.18."""
    a, b, n = distances(z), distances(s), len(z)
    rows = range(n)
    first = sum(a[i][j] * b[i][j] for i in rows for j in rows) / n**2
    second = sum(a[i][j] for i in rows for j in rows) / n**2 * sum(b[i][j] for i in rows for j in rows) / n**2
    third = sum(a[i][j] * b[i][k] for i in rows for j in rows for k in rows) / n**3
    return first + second - 2 * third


@pytest.mark.parametrize("columns", [1, 3])
def test_both_are_their_definitions(columns, dtype):
    z, s = gaussian_pair(7, 0.5, 0, columns=columns)
    zs, zz, ss = v_squared(z, s), v_squared(z, z), v_squared(s, s)
    values = [f(z.to(dtype), s.to(dtype)) for f in STATISTICS]
    assert {value.dtype for value in values} == {dtype}
    expected = [zs**0.5, (zs / (zz * ss) ** 0.5) ** 0.5]
    assert [v.item() for v in values] == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-11)


@pytest.mark.parametrize("n", [2, 5, 100])
def test_the_correlation_of_a_similarity_is_one(n, dtype):
    z, _ = gaussian_pair(n, 0.0, 2, columns=2)
    z = z.to(dtype)
    turned = 1e3 - 5 * z @ torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=dtype)
    # 1e3 + z keeps four digits of z in float32
    assert distance_correlation(z, turned).item() == approx(1, rel=1e-4 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 15, 16, 17, 129])
def test_sums_by_sorting_are_those_over_all_pairs(n):
    rng = np.random.default_rng(n)
    x, few, some = rng.standard_normal(n), rng.integers(0, 2, n).astype(float), rng.integers(-4, 5, n).astype(float)
    skewed = np.where(rng.random(n) < 0.4, 0.0, rng.lognormal(0, 2, n))
    for a, b in [(x, -x), (x, x), (x, few), (few, some), (skewed, some), (skewed, x), (x, 0 * x), (some, few)]:
        of_a, of_b = (np.abs(v[:, None] - v) for v in (a, b))
        assert distance_rows(a, a.argsort()) == approx(of_a.sum(1), rel=1e-12, abs=1e-12)
        whole = (of_a * of_b).sum()
        assert distance_products(a, b, a.argsort(), b.argsort()) == approx(whole, rel=1e-12, abs=1e-11)


def test_many_rows_of_one_column_take_no_pairs_and_meet_the_population_value():
    # Székely, Rizzo and Bakirov (2007), Theorem 7: dCov² of a bivariate normal, and dCov² of a variable with itself.
    # 2 * 10^5 rows are 4 * 10^10 pairs. The V-statistic is too high by E|z - z'| E|s - s'| / n = 4 / (pi n) at most.
    rho = 0.5
    numerator = rho * math.asin(rho) + math.sqrt(1 - rho**2) - rho * math.asin(rho / 2) - math.sqrt(4 - rho**2) + 1
    denominator = 1 + math.pi / 3 - math.sqrt(3)
    parts = [gaussian_pair(20_000, rho, seed) for seed in range(10)]
    mean, error = within([distance_covariance(*part).item() ** 2 for part in parts])
    assert mean == approx(4 * numerator / math.pi, abs=4 * error + 1e-4)
    ratios, ratio_error = within([distance_correlation(*part).item() ** 2 for part in parts])
    assert ratios == approx(numerator / denominator, abs=4 * ratio_error + 1e-4)
    z, s = (torch.cat(x) for x in zip(*parts))
    assert distance_covariance(z, s).item() ** 2 == approx(mean, abs=4 * error)


def test_values_of_the_dcor_package():
    """Constants from dcor 0.7 (PyPI): distance_covariance and distance_correlation."""
    z, s = waves(40)
    assert [f(z, s).item() for f in STATISTICS] == approx([0.11790753828946414, 0.22724746286159672], rel=1e-10)
    assert [f(z[:, 0], s).item() for f in STATISTICS] == approx([0.15473102193868007, 0.3873004379107914], rel=1e-10)


@pytest.mark.parametrize("scale", [1e-15, 1e-11, 1e15])
def test_the_correlation_does_not_notice_the_unit_in_float32(scale):
    z, s = (x.float() for x in gaussian_pair(60, 0.5, 8, columns=2))
    got = distance_correlation((z * scale), (s * scale)).item()
    assert got == approx(distance_correlation(z, s).item(), abs=0, rel=1e-6)


@named
def test_ties_have_finite_gradients(statistic, dtype):
    z = torch.tensor([[0.0, 1.0]] * 4 + [[2.0, 3.0]] * 4, dtype=dtype, requires_grad=True)
    statistic(z, torch.arange(8, dtype=dtype) // 2).backward()
    assert bool(torch.isfinite(z.grad).all())


def test_a_constant_z_is_at_zero_with_a_zero_gradient(dtype):
    z = torch.ones(6, 3, dtype=dtype, requires_grad=True)
    for statistic in STATISTICS:
        value = statistic(z, torch.arange(6, dtype=dtype))
        value.backward()
        assert value.item() == approx(0, abs=1e-12)
    assert torch.equal(z.grad, torch.zeros_like(z))
