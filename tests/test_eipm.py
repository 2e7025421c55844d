"""EIPM: definition, identities, smoothed population value, gradient, tiles and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair, within
from frhsic.dependence import eipm
from frhsic.dependence.conditional import eipm_from_gram, leave_one_out_weights, smoothing_bandwidth
from frhsic.kernels import Gaussian, Laplacian, Linear

KERNELS = [Gaussian(0.8), Laplacian(1.5), Linear(), Linear() + Gaussian(2.0)]


def by_definition(z, s, kernel, gamma):
    """Sums written out, one anchor, one pair at a time."""
    n = len(z)
    k = [[float(kernel(z[i : i + 1], z[j : j + 1])) for j in range(n)] for i in range(n)]
    total = 0.0
    for i in range(n):
        w = [0.0 if j == i else math.exp(-float(((s[i] - s[j]) ** 2).sum()) / (2 * gamma**2)) for j in range(n)]
        w = [x / sum(w) for x in w]
        own = sum(w[a] * w[b] * k[a][b] for a in range(n) for b in range(n))
        cross = sum(w[a] * k[a][b] / n for a in range(n) for b in range(n))
        mean = sum(k[a][b] for a in range(n) for b in range(n)) / n**2
        total += math.sqrt(max(own - 2 * cross + mean, 0.0)) / n
    return total


def smoothed_population(rho: float, gamma: float, rows: float = math.inf) -> float:
    """E_S of the MMD between N(0, 1) and the law of Z weighted by a Gaussian of width gamma at S; unit bandwidth.

    The weights turn S into N(s/(1+γ²), γ²/(1+γ²)), hence Z into N(m, v) with m = ρs/(1+γ²) and
    v = 1 - ρ² + ρ²γ²/(1+γ²), and E k(X, Y) = (1 + var)^(-1/2) exp(-mean²/2(1+var)) for X - Y normal. With a finite
    number of rows the squared MMD of a sample is larger by (1 - E k) / n_eff in expectation, where
    n_eff = n E[w]²/E[w²], and the mean of its root is at most the root of that mean.
    """
    s = np.linspace(-9, 9, 20001)  # the root has a cusp, so a fine grid rather than a quadrature for polynomials
    weight = np.exp(-(s**2) / 2)
    weight = weight / weight.sum()
    m, v = rho * s / (1 + gamma**2), 1 - rho**2 + rho**2 * gamma**2 / (1 + gamma**2)
    squares = (1 + 2 * v) ** -0.5 - 2 * (2 + v) ** -0.5 * np.exp(-(m**2) / (2 * (2 + v))) + 3**-0.5
    if math.isfinite(rows):
        # E w = γ/√(1+γ²) e^{-s²/2(1+γ²)}, and the same with γ²/2 for E w²
        half = gamma**2 / 2
        first = gamma / math.sqrt(1 + gamma**2) * np.exp(-(s**2) / (2 * (1 + gamma**2)))
        second = math.sqrt(half / (1 + half)) * np.exp(-(s**2) / (2 * (1 + half)))
        share = np.minimum(first**2 / second, 1)
        squares = squares + 1 / np.maximum(rows * share, 1)
    return float(weight @ np.sqrt(np.maximum(squares, 0)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("columns", [1, 2])
def test_eipm_is_its_definition(kernel, columns, dtype):
    g = torch.Generator().manual_seed(1)
    z = torch.randn(8, 3, generator=g, dtype=torch.float64)
    s = torch.randn(8, columns, generator=g, dtype=torch.float64)
    expected = by_definition(z, s, kernel, 0.7)
    value = eipm(z.to(dtype), s.to(dtype), kernel, bandwidth=0.7)
    assert value.dtype == dtype
    assert value.item() == approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_the_core_counts_anchors_and_rows_as_it_is_told():
    g = torch.Generator().manual_seed(2)
    z, w = torch.randn(6, 2, generator=g, dtype=torch.float64), torch.rand(4, 6, generator=g, dtype=torch.float64)
    w, u, counts = w / w.sum(1, keepdim=True), w[0] / w[0].sum(), torch.tensor([0.0, 1.0, 0.0, 3.0])
    for marginal, floor in ((None, 0.0), (u, 0.05)):
        away = w - (1 / 6 if marginal is None else u)
        terms = [max(float(row @ z @ z.T @ row), floor) ** 0.5 for row in away]
        options = {"floor": floor, "marginal": marginal}
        assert eipm_from_gram(z @ z.T, w, **options).item() == approx(sum(terms) / 4)
        assert eipm_from_gram(z @ z.T, w, counts=counts, **options).item() == approx((terms[1] + 3 * terms[3]) / 4)
    assert eipm_from_gram(z @ z.T, w, counts=0 * counts).item() == 0


def test_weights_leave_the_anchor_out_and_sum_to_one_even_far_from_all(dtype):
    s = torch.tensor([0.0, 0.1, 0.2, 1e4], dtype=dtype)
    w = leave_one_out_weights(s, 0.05)
    assert torch.equal(w.diagonal(), torch.zeros(4, dtype=dtype))
    assert w.sum(1).tolist() == approx([1.0] * 4, rel=1e-6)
    assert w[3].tolist() == approx([0, 0, 1, 0])  # the nearest


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_at_a_fixed_bandwidth_it_tends_to_the_smoothed_value(rho, dtype):
    values = []
    for seed in range(12):
        z, s = (x.to(dtype) for x in gaussian_pair(1500, rho, seed))
        values.append(eipm(z, s, Gaussian(1.0), bandwidth=1.0, anchors=150, random_state=seed).item())
    mean, error = within(values)
    assert smoothed_population(rho, 1.0) - 4 * error <= mean <= smoothed_population(rho, 1.0, 1500) + 4 * error


def test_with_a_shrinking_bandwidth_it_tends_to_the_conditional_mmd():
    values = []
    for seed in range(8):
        z, s = gaussian_pair(3000, 0.5, seed)
        values.append(eipm(z, s, Gaussian(1.0), anchors=100, random_state=seed).item())
    mean, error = within(values)
    gamma = 3000**-0.2
    assert mean >= 0.1995 - gamma**2 / 4 - 4 * error
    assert mean <= smoothed_population(0.5, gamma, 3000) + 4 * error
    assert abs(mean - 0.1995) < 0.02


def test_the_bandwidth_that_is_not_given_shrinks_as_scott_says():
    s = torch.tensor([0.0, 2.0] * 16)
    assert smoothing_bandwidth(s).tolist() == approx([32**-0.2])
    assert smoothing_bandwidth(torch.stack([s, 3 * s], 1)).tolist() == approx([32 ** (-1 / 6), 3 * 32 ** (-1 / 6)])


def test_anchors_are_drawn_by_the_random_state_and_all_of_them_are_all():
    z, s = gaussian_pair(80, 0.5, 7)
    some = [eipm(z, s, anchors=10, random_state=seed).item() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert eipm(z, s, anchors=80, random_state=0).item() == approx(eipm(z, s).item(), rel=1e-12)
