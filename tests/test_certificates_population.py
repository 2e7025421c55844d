"""Bounds on the population: their steps, their coverage, and their size at ordinary numbers of rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx
from scipy.stats import binom

from certificate_instances import INSTANCES, kernel_of
from frhsic.certificates import binned_gap_bound, held_out_bound
from frhsic.dependence.grams import hsic_biased, hsic_weighted
from frhsic.kernels import Gaussian, Laplacian, Linear


def test_hsic_of_kernels_in_the_unit_interval_is_at_most_a_quarter() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        z = torch.tensor(rng.normal(size=(12, 2)))
        k = kernel_of(rng, linear=False)(z, z)
        assert 0 <= float(hsic_biased(k, k)) <= 0.25 + 1e-12
    far = torch.tensor([[0.0], [1e6]]).repeat(5, 1).double()
    k = Gaussian(1.0)(far, far)
    assert float(hsic_biased(k, k)) == approx(0.25)


def test_a_pair_of_rows_changes_by_at_most_the_root_of_six() -> None:
    """The step of the held-out bound, on random unit features with non-negative products, and where it is reached."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for trial in range(3000):
        sharp = rng.choice([1, 4, 30])
        phi, psi = (rng.dirichlet(np.ones(3) / sharp, size=3) for _ in range(2))  # non-negative rows
        if trial % 3 == 0:
            phi = np.array([[1, 0, 0], [0, 1, 0], rng.dirichlet(np.ones(3))])
        phi, psi = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (phi, psi))
        change = np.outer(phi[0] - phi[2], psi[0] - psi[2]) - np.outer(phi[1] - phi[2], psi[1] - psi[2])
        largest = max(largest, float(np.linalg.norm(change)))
    assert largest <= math.sqrt(6) + 1e-12
    assert largest > 0.98 * math.sqrt(6)


def test_one_row_moves_the_root_of_hsic_by_at_most_the_root_of_six_over_n() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        n = 8
        z, s = (torch.tensor(rng.normal(size=(n, 1)) * rng.choice([0.5, 20.0])) for _ in range(2))
        kernel_z, kernel_s = kernel_of(rng, linear=False), kernel_of(rng, linear=False)
        before = float(hsic_biased(kernel_z(z, z), kernel_s(s, s)))
        z[0], s[0] = z[rng.integers(n)], float(rng.normal() * 30)
        after = float(hsic_biased(kernel_z(z, z), kernel_s(s, s)))
        assert abs(math.sqrt(max(after, 0)) - math.sqrt(max(before, 0))) <= math.sqrt(6) / n + 1e-12


@pytest.mark.parametrize("dependence", [0.0, 0.3, 1.0])
def test_the_held_out_bound_covers_the_population(dependence: float) -> None:
    """Laws whose HSIC is known; over 200 samples each the bound must fail in no more than a share δ."""
    rng = np.random.default_rng(1)
    product = np.full((4, 4), 1 / 16)
    table = (1 - dependence) * product + dependence * np.eye(4) / 4
    kernel_z, kernel_s = Gaussian(1.0), Laplacian(0.7)
    z, s = (torch.arange(16.0, dtype=torch.float64)[:, None] // 4, torch.arange(16.0, dtype=torch.float64)[:, None] % 4)
    truth = float(hsic_weighted(kernel_z(z, z), kernel_s(s, s), torch.tensor(table.reshape(-1))))
    delta, misses, values = 0.1, 0, []
    for _ in range(200):
        drawn = rng.choice(16, size=60, p=table.reshape(-1))
        bound = held_out_bound(drawn // 4, drawn % 4, kernel_z, kernel_s, delta=delta)
        misses += bound.value < truth
        values.append(bound.value)
    assert misses <= 200 * delta
    assert np.mean(values) < 0.25 + 2 * truth


EDGES = np.arange(1, 10) / 10


def draw(law: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores, S, and the gap between ten groups of equal probability."""
    s = rng.uniform(size=n)
    group = np.minimum((10 * s).astype(int), 9)
    means = {
        "no gap": np.full(10, 0.3),
        "linear": 0.3 + 0.02 * np.arange(10),
        "one group": np.where(np.arange(10) == 4, 0.6, 0.2),
        "decisions": np.where(np.arange(10) < 5, 0.4, 0.6),
    }[law]
    truth = float(np.abs(means - means.mean()).mean())
    if law == "decisions":
        return (rng.random(n) < means[group]) * 1.0, s, truth
    return rng.beta(4 * means[group], 4 * (1 - means[group])), s, truth


def test_the_gap_is_its_definition():
    rng = np.random.default_rng(0)
    f, s = rng.uniform(size=50), rng.uniform(size=50)
    expected = sum(
        abs(f[(s >= a) & (s < a + 0.25)].mean() - f.mean()) * np.mean((s >= a) & (s < a + 0.25))
        for a in (0, 0.25, 0.5, 0.75)
    )
    assert binned_gap_bound(f, s, [0.25, 0.5, 0.75]).bounded == approx(expected)


@pytest.mark.parametrize("law", ["no gap", "linear", "one group", "decisions"])
def test_it_fails_at_most_as_often_as_it_says(law):
    """At δ = .5, so that failures could be seen; at .05 there are none in as many draws."""
    rng = np.random.default_rng(0)
    draws = [draw(law, 300, rng) for _ in range(400)]
    failures = {
        delta: sum(truth > float(binned_gap_bound(f, s, EDGES, delta=delta)) for f, s, truth in draws)
        for delta in (0.05, 0.5)
    }
    assert all(failures[delta] <= binom.ppf(0.999, 400, delta) for delta in failures)


def test_the_step_of_the_proof_that_bounds_the_variance():
    """E h² is at most twice the variance of f, whatever the signs: by enumeration of all pairs."""
    rng = np.random.default_rng(0)
    f, signs = rng.uniform(size=30), rng.choice([-1.0, 1.0], size=30)
    h = (signs[:, None] - signs) * (f[:, None] - f) / 2
    assert (h**2).mean() <= 2 * f.var()
    assert h.sum() / (30 * 29) == approx(np.cov(signs, f)[0, 1])
    assert h.min() >= -1
    sample = binned_gap_bound(f, signs, [0.0])
    assert 30 / 29 * sample.bounded >= abs(h.sum() / (30 * 29)) - 1e-12


@pytest.mark.parametrize(("n", "most"), [(1_000, 0.1), (5_000, 0.05), (20_000, 0.025)])
def test_it_says_something_at_ordinary_numbers_of_rows(n, most):
    f, s, _ = draw("no gap", n, np.random.default_rng(0))
    assert 0 < float(binned_gap_bound(f, s, EDGES)) < most


def test_increasing_maps_of_s_and_their_edges_change_nothing():
    f, s, _ = draw("linear", 200, np.random.default_rng(0))
    assert float(binned_gap_bound(f, np.exp(s), np.exp(EDGES))) == approx(float(binned_gap_bound(f, s, EDGES)))


@pytest.mark.parametrize(
    "call",
    [
        lambda f, s: binned_gap_bound(2 * f, s, EDGES),
        lambda f, s: binned_gap_bound(f, s[:-1], EDGES),
        lambda f, s: binned_gap_bound(f, s, [0.5, 0.5]),
        lambda f, s: binned_gap_bound(f, s, []),
        lambda f, s: held_out_bound(f, s, None, Gaussian(1.0)),
        lambda f, s: held_out_bound(f, s, Linear(), Gaussian(1.0)),
        lambda f, s: held_out_bound(f[:1], s[:1], Gaussian(1.0), Gaussian(1.0)),
    ],
)
def test_bad_input_is_refused(call) -> None:
    f, s, _ = draw("linear", 50, np.random.default_rng(0))
    with pytest.raises(ValueError):
        call(f, s)
