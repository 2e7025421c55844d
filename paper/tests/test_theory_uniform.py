"""From rows to the population: the constants, the coverage, and the number of rows that would be needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from certificate_instances import table_of
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, PerColumn
from frhsic_paper.theory import (
    FiniteLaw,
    LinearEncoders,
    MLPEncoders,
    SingleEncoder,
    feature_lipschitz,
    train_to_population,
    uniform_bound,
)

ADULT = MLPEncoders(widths=(107, 50, 50), weight_bounds=(5.0, 5.0), input_bound=4.0)


def test_uniform_bound_is_the_formula_of_the_paper() -> None:
    n, delta = 1000, 0.1
    bound = uniform_bound(n, LinearEncoders(2.0, 3.0, 5), Gaussian(0.5), InverseMultiquadric(2.0), delta=delta)
    complexity = 2 * 3 * math.sqrt(5 / n)
    expected = (
        8 * math.sqrt(2) * math.sqrt(math.log(2 / delta) / n)
        + 4 / n
        + 48 * math.sqrt(math.pi) * max(1 / 0.5, 1 / 2.0) * complexity
    )
    assert bound.value == approx(expected)
    assert bound.confidence == approx(0.9)
    assert bound.details["gaussian_complexity"] == approx(complexity)


@pytest.mark.parametrize("encoders", [SingleEncoder(), LinearEncoders(1.0, 1.0, 8), ADULT], ids=repr)
def test_n_needed_is_the_first_n_that_is_not_vacuous(encoders) -> None:
    needed = uniform_bound(10, encoders, Gaussian(1.0), Gaussian(1.0)).details["n_needed"]
    assert uniform_bound(needed - 1, encoders, Gaussian(1.0), Gaussian(1.0)).vacuous
    assert not uniform_bound(needed, encoders, Gaussian(1.0), Gaussian(1.0)).vacuous


def test_at_realistic_n_the_uniform_bound_is_vacuous() -> None:
    bound = uniform_bound(26_048, ADULT, Gaussian(1.0), Gaussian(0.2))
    assert bound.vacuous
    assert bound.details["n_needed"] > 10**9
    assert "vacuous" in str(bound)


@pytest.mark.parametrize("seed", range(20))
def test_linear_complexity_bounds_the_drawn_one(seed: int) -> None:
    """sup over ‖W‖_F ≤ R of ⟨W, n⁻¹ Σ ξ xᵀ⟩ is R ‖n⁻¹ Σ ξ xᵀ‖_F: its mean over draws, at points on the sphere."""
    rng = np.random.default_rng(seed)
    n, d, d_z = 30, 4, 3
    x = rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    drawn = [2.0 * np.linalg.norm(rng.normal(size=(n, d_z)).T @ x) / n for _ in range(400)]
    bound = LinearEncoders(weight_bound=2.0, input_bound=1.0, outputs=d_z).complexity / math.sqrt(n)
    assert 0.9 * bound < np.mean(drawn) < bound


@pytest.mark.parametrize("activation", ["selu", "relu", "tanh", "identity"])
@pytest.mark.parametrize("biases", [(), (0.5, 0.3)])
def test_mlp_complexity_bounds_what_a_search_finds(activation: str, biases: tuple[float, ...]) -> None:
    """Projected gradient ascent over the weights finds a lower bound of the supremum for each draw."""
    rng = np.random.default_rng(0)
    n = 20
    encoders = MLPEncoders((3, 4, 2), (1.5, 0.8), 1.0, biases, activation)
    sigma = {"selu": torch.selu, "relu": torch.relu, "tanh": torch.tanh, "identity": lambda v: v}[activation]
    x = torch.tensor(rng.normal(size=(n, 3)))
    x = x / x.norm(dim=1, keepdim=True)
    limits = (1.5, 0.8, *(biases or (0.0, 0.0)))
    found = []
    for _ in range(10):
        xi = torch.tensor(rng.normal(size=(n, 2)))
        blocks = [torch.tensor(rng.normal(size=shape)).requires_grad_() for shape in ((4, 3), (2, 4), (4,), (2,))]
        for _ in range(60):
            w1, w2, b1, b2 = (b * limit / b.norm() for b, limit in zip(blocks, limits))
            value = (xi * (sigma(x @ w1.T + b1) @ w2.T + b2)).sum() / n
            gradients = torch.autograd.grad(value, blocks)
            blocks = [(b + 2 * g).detach().requires_grad_() for b, g in zip(blocks, gradients)]
        found.append(value.item())
    assert 0 < np.mean(found) <= encoders.complexity / math.sqrt(n)


def test_mlp_complexity_by_hand() -> None:
    """Two SELU layers without biases: √2 (L R₂ M R₁ √p₁ + L R₁ M R₂ √p₂)."""
    slope = 1.7580993408473766
    expected = math.sqrt(2) * slope * 5 * 4 * 5 * (math.sqrt(107 * 50) + math.sqrt(2500))
    assert expected == approx(ADULT.complexity)
    x = torch.linspace(-1e-3, -1e-9, 100, dtype=torch.float64)
    assert float((torch.selu(x) / x).max()) == approx(slope, rel=1e-6)


KERNELS: list[tuple[Kernel, int]] = [
    (Gaussian(0.7), 2),
    (InverseMultiquadric(1.3), 2),
    (Gaussian(1.0) * InverseMultiquadric(0.5), 2),
    (PerColumn((Gaussian(0.3), InverseMultiquadric(2.0))), 2),
]


@pytest.mark.parametrize(("kernel", "d"), KERNELS, ids=lambda v: repr(v))
def test_feature_maps_are_lipschitz_with_the_constant_and_no_smaller_one(kernel: Kernel, d: int) -> None:
    rng = np.random.default_rng(0)
    constant = feature_lipschitz(kernel)
    ratios = []
    for scale in (1e-3, 0.1, 1.0, 10.0):
        x = torch.tensor(rng.normal(size=(200, d)))
        y = x + scale * torch.tensor(rng.normal(size=(200, d)))
        if scale == 1e-3:
            y[:100, 1] = x[:100, 1]  # along the first column alone
        distance = (-2 * kernel.shifted(x[:, None], y[:, None])[:, 0, 0]).clamp_min(0).sqrt()
        ratios.append(distance / (x - y).norm(dim=1))
    largest = float(torch.cat(ratios).max())
    assert largest <= constant * (1 + 1e-9)
    assert largest > 0.999 * constant


def test_uniform_bound_holds_on_200_draws_of_a_known_law() -> None:
    """A single encoder at the n from which the bound says something; the distance is far below it."""
    rng = np.random.default_rng(0)
    table = table_of(rng, 3, 3)
    points = torch.arange(3.0, dtype=torch.float64)[:, None]
    gram = Gaussian(1.0)(points, points)
    truth = FiniteLaw.from_table(table, gram, gram).hsic
    n = uniform_bound(1, SingleEncoder(), Gaussian(1.0), Gaussian(1.0)).details["n_needed"]
    bound = uniform_bound(n, SingleEncoder(), Gaussian(1.0), Gaussian(1.0))
    assert n < 10_000
    for _ in range(200):
        drawn = rng.multinomial(n, table.reshape(-1)).reshape(3, 3) / n
        sample = FiniteLaw.from_table(drawn, gram, gram)
        assert abs(sample.hsic - truth) <= bound.value


def test_the_bridge_adds_up() -> None:
    train = uniform_bound(10_000, LinearEncoders(1.0, 1.0, 3), Gaussian(1.0), Gaussian(2.0), delta=0.02)
    population = train_to_population(0.003, train)
    assert population.value == approx(0.003 + train.value)
    assert population.confidence == approx(0.98)
