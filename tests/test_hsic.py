"""Exact HSIC by tiles: definition, identities, closed forms, outside constants and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx
from scipy import stats

from frhsic.dependence import _gram, grams, hsic, hsic_unbiased
from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic.kernels.bandwidth import gaussian_at_median
from frhsic.kernels.kernel import PerColumn
from kernel_instances import KERNELS


def dependent(n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Three columns of z, two of s that depend on them."""
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = z[:, :2] ** 2 + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return z.to(dtype), s.to(dtype)


def close(dtype: torch.dtype) -> float:
    return 1e-6 if dtype == torch.float32 else 1e-11


JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))


@pytest.fixture(autouse=True, params=[4, 512], ids=["many tiles", "one tile"])
def _tile(request, monkeypatch):
    """Every claim holds whether the rows fit one tile or not."""
    monkeypatch.setattr(_gram, "CPU_TILE", request.param)


# --- the definition -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_tiles_give_what_gram_matrices_give(name, dtype):
    kernel = KERNELS[name]
    z, s = dependent(11, dtype)
    k, l = kernel(z.double(), z.double()), JOINT(s.double(), s.double())
    w = torch.arange(11.0, dtype=torch.float64)
    for got, expected in (
        (hsic(z, s, kernel, JOINT), grams.hsic_biased(k, l)),
        (hsic_unbiased(z, s, kernel, JOINT), grams.hsic_unbiased(k, l)),
        (hsic(z, s, kernel, JOINT, weights=w), grams.hsic_weighted(k, l, w / w.sum())),
    ):
        assert got.shape == ()
        assert got.dtype == dtype
        assert got.item() == approx(expected.item(), abs=0, rel=close(dtype))


def test_none_is_a_gaussian_at_the_median_of_each_variable(dtype):
    z, s = dependent(20, dtype)
    explicit = hsic(z, s, gaussian_at_median(z), gaussian_at_median(s))
    assert hsic(z, s).item() == explicit.item()
    assert hsic_unbiased(z, s).item() == hsic_unbiased(z, s, gaussian_at_median(z), gaussian_at_median(s)).item()


# --- identities ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-4, 1e-7])
def test_a_flat_gaussian_kernel_sees_the_squared_covariance_and_loses_no_digits(scale, dtype):
    # k - 1 tends to -|x - y|^2 / 2 sigma^2, which centring turns into the linear kernel over sigma^2
    z, s = (x * scale for x in dependent(30, dtype))
    limit = hsic(z, s, Linear(), Linear()).item() / (2.0 * 3.0) ** 2
    assert hsic(z, s, Gaussian(2.0), Gaussian(3.0)).item() == approx(limit, abs=0, rel=max(close(dtype), 10 * scale**2))


def linear_unbiased(z: torch.Tensor, s: torch.Tensor) -> float:
    """U-statistic for products of numbers, K_ij = z_i z_j, from sums of powers in exact integers."""
    z, s = ([int(v) for v in x] for x in (z, s))
    n, sum_z, sum_s = len(z), sum(z), sum(s)
    joint = sum(a * b for a, b in zip(z, s)) ** 2 - sum((a * b) ** 2 for a, b in zip(z, s))
    cross = sum(a * (sum_z - a) * b * (sum_s - b) for a, b in zip(z, s))
    outer = (sum_z**2 - sum(a * a for a in z)) * (sum_s**2 - sum(b * b for b in s))
    return joint / (n * (n - 3)) - 2 * cross / (n * (n - 2) * (n - 3)) + outer / (n * (n - 1) * (n - 2) * (n - 3))


def test_unbiased_linear_hsic_is_a_sum_of_powers(dtype):
    g = torch.Generator().manual_seed(0)
    z = torch.randint(-9, 10, (50,), generator=g)
    s = z + torch.randint(-9, 10, (50,), generator=g)
    got = hsic_unbiased(z.to(dtype), s.to(dtype), Linear(), Linear()).item()
    assert got == approx(linear_unbiased(z, s), abs=0, rel=close(dtype))


def test_whole_weights_are_repeated_rows_and_zero_weights_absent_ones(dtype):
    z, s = dependent(12, dtype)
    times = torch.arange(12) % 4
    repeated = hsic(z.repeat_interleave(times, 0), s.repeat_interleave(times, 0), Gaussian(1.0), JOINT)
    weighted = hsic(z, s, Gaussian(1.0), JOINT, weights=times)
    assert weighted.item() == approx(repeated.item(), abs=0, rel=close(dtype))
    kept = hsic(z, s, Gaussian(1.0), JOINT, weights=times, where=times > 0)
    assert kept.item() == approx(repeated.item(), abs=0, rel=close(dtype))


def test_few_values_of_s_give_the_weighted_sum_of_contrasts_of_the_discrete_lemma(dtype):
    # Lemma "Discrete sensitive attribute coincidence", for the empirical law: exact, not in the limit.
    z, _ = dependent(24, dtype)
    s = (torch.arange(24) % 3).to(dtype)
    k = Gaussian(1.0)(z.double(), z.double())
    values = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    membership = (s.double()[:, None] == values.T).double()  # (24, 3)
    shares = membership.mean(0)
    contrast = membership / membership.sum(0) - 1 / 24  # weights of the embedding of Z | S = s_k, less that of Z
    inner = contrast.T @ k @ contrast
    expected = (shares[:, None] * shares * Gaussian(1.0)(values, values) * inner).sum().item()
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item() == approx(expected, abs=0, rel=close(dtype))


def test_a_sample_that_is_a_product_has_hsic_zero(dtype):
    z, s = torch.cartesian_prod(torch.tensor([0.0, 1, 4, 9]), torch.tensor([0.0, 1, 1, 7, 7, 7])).to(dtype).T
    assert hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item() == approx(0, abs=1e-15)


# --- closed forms and outside constants -----------------------------------------------------------------------


def gaussian_population(rho: float) -> float:
    r"""HSIC of a standard bivariate normal law of correlation rho under Gaussian kernels of bandwidth 1.

    E exp(-x'x/2) = det(I + S)^(-1/2) for x ~ N(0, S). The joint term has S = 2R, of determinant
    det(I + 2R) = 9 - 4 rho^2; each marginal mean is 3^(-1/2); given z the mean over z' is
    exp(-z^2/4) / sqrt(2), so that the cross term is det(I + R/2)^(-1/2) / 2, with
    det(I + R/2) = (9 - rho^2) / 4.
    """
    return (9 - 4 * rho**2) ** -0.5 + 1 / 3 - 2 * (9 - rho**2) ** -0.5


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_unbiased_hsic_of_gaussians_has_the_population_value_as_its_mean(rho, dtype, monkeypatch):
    monkeypatch.setattr(_gram, "CPU_TILE", 512)
    g = torch.Generator().manual_seed(7)
    values, biased = [], []
    for _ in range(40):
        z, e = torch.randn(2, 400, generator=g, dtype=torch.float64)
        s = rho * z + math.sqrt(1 - rho**2) * e
        z, s = z.to(dtype), s.to(dtype)
        values.append(hsic_unbiased(z, s, Gaussian(1.0), Gaussian(1.0)).item())
        biased.append(hsic(z, s, Gaussian(1.0), Gaussian(1.0)).item())
    error = np.std(values, ddof=1) / math.sqrt(40)
    assert gaussian_population(0.5) == approx(0.0107633, abs=5e-8)  # as printed in the literature
    assert abs(np.mean(values) - gaussian_population(rho)) < 4 * error
    assert np.mean(biased) > np.mean(values)


def outside_sample() -> tuple[np.ndarray, np.ndarray]:
    i = np.arange(1, 21.0)
    return np.sin(i), np.cos(1.3 * i) + np.sin(i) ** 2


def test_ratios_are_those_of_hyppo():
    # hyppo 0.5.2, Hsic(compute_kernel="gaussian", gamma=0.5): bias=False and bias=True
    x, y = outside_sample()
    g = Gaussian(1.0)
    unbiased = hsic_unbiased(x, y, g, g) / (hsic_unbiased(x, x, g, g) * hsic_unbiased(y, y, g, g)).sqrt()
    biased = hsic(x, y, g, g) / (hsic(x, x, g, g) * hsic(y, y, g, g)).sqrt()
    assert unbiased.item() == approx(-0.05724446369575431, abs=0, rel=1e-10)
    assert biased.sqrt().item() == approx(0.1645246109513687, abs=0, rel=1e-10)


def test_the_statistic_is_that_of_causal_learn():
    # causal-learn 0.1.4.8, KCI_UInd(est_width="manual", kwidthx=1.0, kwidthy=1.0).HSIC_V_statistic: n^2 HSIC
    x, y = (stats.zscore(v, ddof=1) for v in outside_sample())
    assert 400 * hsic(x, y, Gaussian(1.0), Gaussian(1.0)).item() == approx(1.6239456007403543, abs=0, rel=1e-10)
