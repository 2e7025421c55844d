"""Identities and two-sided bounds on finite laws, each against the definition by sums over the table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, gram_of, holds, instance, kernel_of, table_of
from frhsic.certificates import NumericalRank, VarianceShare
from frhsic.kernels import Gaussian, Kernel
from frhsic_paper.theory import (
    FiniteLaw,
    causal_necessity,
    conditional_gaps,
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
    eipm_bound,
    population_gdp,
    spectral_equivalence,
)


def law_of(seed: int) -> tuple[FiniteLaw, np.ndarray, torch.Tensor, torch.Tensor, np.random.Generator]:
    rng = np.random.default_rng(seed)
    a, b = int(rng.integers(2, 7)), int(rng.integers(2, 6))
    table = table_of(rng, a, b)
    k, l = gram_of(rng, a, kernel_of(rng)), gram_of(rng, b, kernel_of(rng, linear=False), 1)
    return FiniteLaw.from_table(table, k, l), table, k, l, rng


def hsic_of_table(p: np.ndarray, k: torch.Tensor, l: torch.Tensor) -> float:
    """Squared MMD between joint and product, by four nested sums."""
    q = p - p.sum(1, keepdims=True) * p.sum(0)
    a, b = p.shape
    return sum(
        q[i, m] * q[j, o] * float(k[i, j] * l[m, o])
        for i, j, m, o in itertools.product(range(a), range(a), range(b), range(b))
    )


@pytest.mark.parametrize("seed", range(10))
def test_hsic_of_a_law_is_the_squared_mmd_of_joint_and_product(seed: int) -> None:
    law, table, k, l, _ = law_of(seed)
    assert law.hsic == approx(hsic_of_table(table, k, l), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_conditional_mmds_are_those_of_the_table(seed: int) -> None:
    law, p, k, _, _ = law_of(seed)
    k = k.numpy()
    marginal = p.sum(1)
    for value in range(p.shape[1]):
        d = p[:, value] / p[:, value].sum() - marginal
        assert float(law.conditional_mmd_squared[value]) == approx(d @ k @ d, rel=1e-9, abs=1e-15)
    assert law.spread == approx(marginal @ np.diag(k) - marginal @ k @ marginal)


@pytest.mark.parametrize("seed", range(10))
def test_the_law_of_a_sample_is_the_table_of_its_rows(seed: int) -> None:
    case = instance(seed, ties=True)
    values = case.s.unique()
    table = (case.s[:, None] == values).double() / case.n
    by_table = FiniteLaw.from_table(
        table, case.kernel_z(case.z, case.z), case.kernel_s(values[:, None], values[:, None])
    )
    by_rows = FiniteLaw.from_sample(case.z, case.s, case.kernel_z, case.kernel_s)
    assert torch.allclose(by_rows.deviations, by_table.deviations, atol=1e-12)
    assert torch.allclose(by_rows.gram_s, by_table.gram_s)
    assert by_rows.spread == approx(by_table.spread)


def test_spectral_equivalence_holds_on_both_sides() -> None:
    rules = [NumericalRank(1e-6), VarianceShare(0.8), 1]
    for seed in INSTANCES:
        law, *_ = law_of(seed)
        both = spectral_equivalence(law, directions=rules[seed % 3])
        assert holds(both.details["lower"], both.bounded)
        assert holds(both.bounded, both.value)
        assert both.bounded == approx(float(law.probabilities @ law.deviations.diagonal()))
        assert holds(both.bounded, both.trivial)


@pytest.mark.parametrize("seed", range(20))
def test_spectral_equivalence_is_reached_by_a_fair_binary_attribute(seed: int) -> None:
    """Equal weights make Δ a multiple of the second eigenfunction: HSIC / λ_2 is the integral, with no tail."""
    rng = np.random.default_rng(seed)
    half = rng.dirichlet(np.ones(4), size=2).T / 2
    law = FiniteLaw.from_table(half, gram_of(rng, 4, kernel_of(rng)), gram_of(rng, 2, Gaussian(1.0), 1))
    both = spectral_equivalence(law, directions=2)
    assert both.tightness == approx(1, rel=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_hsic_is_the_sum_over_the_spectrum(seed: int) -> None:
    law, *_ = law_of(seed)
    spectrum = law.spectrum(NumericalRank(1e-12))
    coefficients = law.coefficients(spectrum).diagonal()
    assert float(spectrum.eigenvalues @ coefficients) == approx(law.hsic, rel=1e-8, abs=1e-14)
    weighted = spectrum.functions.T @ (law.probabilities[:, None] * spectrum.functions)
    assert torch.allclose(weighted, torch.eye(len(coefficients), dtype=torch.float64), atol=1e-8)


def test_the_expected_mmd_bounds_hsic() -> None:
    for seed in INSTANCES:
        law, *_ = law_of(seed)
        bound = eipm_bound(law)
        assert holds(bound.bounded, bound.value)
        assert holds(bound.value, bound.trivial)


@pytest.mark.parametrize("seed", range(20))
def test_the_expected_mmd_bound_is_reached_where_features_reverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.dirichlet(np.ones(3), size=2).T / 2
    law = FiniteLaw.from_table(half, gram_of(rng, 3, kernel_of(rng)), [[4.0, -4.0], [-4.0, 4.0]])
    bound = eipm_bound(law)
    assert bound.tightness == approx(1, rel=1e-9)
    both = spectral_equivalence(law)
    assert both.details["lower"] == approx(both.bounded, rel=1e-9)


def test_population_gdp_holds_in_its_three_forms_and_they_are_ordered() -> None:
    rules = [NumericalRank(1e-6), VarianceShare(0.8), 1]
    for seed in INSTANCES:
        law, p, k, _, rng = law_of(seed)
        a = rng.normal(size=p.shape[0])
        values = k.numpy() @ a
        norm = math.sqrt(a @ k.numpy() @ a)
        gaps = values @ (p / p.sum(0)) - values @ p.sum(1)
        gaps -= p.sum(0) @ gaps
        before = 0.0
        for form in ("tight", "trace", "published"):
            bound = population_gdp(law, gaps, norm, form=form, directions=rules[seed % 3])
            assert holds(bound.bounded, bound.value)
            assert bound.bounded == approx((p.sum(0) @ np.abs(gaps)) ** 2)
            assert holds(bound.details["projected_gap"], norm**2 * bound.details[form])
            assert holds(before, bound.value)
            before = bound.value


def test_discrete_identity_is_an_identity() -> None:
    for seed in INSTANCES:
        case = instance(seed, ties=True)
        both = discrete_identity(case.z, case.s, case.kernel_z, case.kernel_s)
        assert both.value == approx(both.bounded, rel=1e-9, abs=1e-14)
        assert not both.vacuous


def test_disintegration_is_an_identity() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        table = table_of(rng, int(rng.integers(2, 6)), int(rng.integers(2, 6)))
        both = disintegration_identity(table, rng.normal(size=(7, *table.shape)))
        assert both.value == approx(both.bounded, rel=1e-10)


def test_a_decomposable_class_gives_the_conditional_integral_and_a_smaller_one_stays_below() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        table = table_of(rng, int(rng.integers(2, 5)), int(rng.integers(2, 4)))
        heads = rng.normal(size=(int(rng.integers(1, 4)), table.shape[0]))
        both = decomposable_identity(table, heads)
        assert both.value == approx(both.bounded, rel=1e-10)
        constant = np.repeat(heads[:, :, None], table.shape[1], axis=2)  # one head for all s: its joint IPM is zero
        assert disintegration_identity(table, constant).value < 1e-12
        some = rng.choice([-1.0, 1.0], size=(3, 1, table.shape[1])) * heads[:1, :, None]
        assert holds(disintegration_identity(table, some).value, both.value)


def test_interventions_bound_hsic() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        values, units, d = int(rng.integers(2, 5)), int(rng.integers(1, 7)), int(rng.integers(1, 3))
        effect = rng.choice([0.0, 0.5, 2.0])
        z = rng.normal(size=(1, units, d)) + effect * rng.normal(size=(values, units, d))
        pi = rng.dirichlet(np.ones(values))
        kernel: Kernel = kernel_of(rng)
        c = causal_necessity(z, rng.normal(size=values), probabilities=pi, kernel_z=kernel, kernel_s=Gaussian(1.0))
        assert holds(c.bounded, c.value)
        if effect == 0:
            assert c.value < 1e-12
            assert c.bounded < 1e-12


@pytest.mark.parametrize("q", [2, 3, 5])
def test_the_converse_fails_for_sums_modulo_q(q: int) -> None:
    """Z = S + U mod q with uniform S and U is independent of S, yet every intervention moves every unit."""
    z = (np.arange(q)[:, None] + np.arange(q)[None, :]) % q
    c = causal_necessity(z, np.arange(q), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert c.bounded < 1e-14
    assert c.details["largest_change"] > 0.8
    assert c.value > 0.1
    assert math.isinf(c.tightness) or c.tightness > 1e10


def test_a_counterfactually_fair_representation_of_a_causal_model_is_independent_of_s() -> None:
    """Interventions on the linear model: they move X, and leave its projection where it is."""
    noise = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 3)))
    effect = torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64)
    values = [-1.5, -0.5, 0.5, 1.5]
    x = torch.stack([v * effect + noise for v in values])
    moved = causal_necessity(x, values)
    assert moved.bounded > 0.01
    assert holds(moved.bounded, moved.value)
    invariant = torch.eye(3) - torch.outer(effect, effect) / (effect @ effect)
    fair = causal_necessity(x @ invariant, values)
    assert fair.value < 1e-12
    assert fair.bounded < 1e-12


GOOD = ([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: FiniteLaw.from_table([[0.5, 0.6]], [[1.0]], GOOD[2]), "sum to 1"),
        (lambda: FiniteLaw.from_table([[1.0, 0.0]], [[1.0]], GOOD[2]), "no mass"),
        (lambda: FiniteLaw.from_table([[1.5, -0.5]], [[1.0]], GOOD[2]), "from -0.5"),
        (lambda: FiniteLaw.from_table(GOOD[0], [[1.0]], GOOD[2]), "gram_z has shape"),
        (lambda: FiniteLaw.from_table(GOOD[0], GOOD[1], [[1.0, 0.2], [0.3, 1.0]]), "not symmetric"),
        (lambda: FiniteLaw.from_sample([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), "single rows"),
        (lambda: population_gdp(FiniteLaw.from_table(*GOOD), [1.0], 1.0), "1 gaps came for 2"),
        (lambda: population_gdp(FiniteLaw.from_table(*GOOD), [1.0, 1.0], 1.0), "average to zero"),
        (lambda: population_gdp(FiniteLaw.from_table(*GOOD), [1.0, -1.0], 0.0), "norm is 0"),
        (lambda: population_gdp(FiniteLaw.from_table(*GOOD), [1.0, -1.0], 1.0, form="x"), "form is 'x'"),
        (lambda: spectral_equivalence(FiniteLaw.from_table(*GOOD), directions=3), "1 to 2"),
        (lambda: disintegration_identity(GOOD[0], [[1.0]]), "witnesses have shape"),
        (lambda: decomposable_identity(GOOD[0], [[1.0]]), "1 values each for 2"),
        (lambda: decomposable_identity(np.full((2, 20), 1 / 40), [[1.0, 2.0]]), "choices"),
        (lambda: causal_necessity([1.0], [1.0]), "representations have shape"),
        (lambda: causal_necessity([[1.0, 2.0]], [1.0]), "two or more"),
        (lambda: causal_necessity([[1.0], [2.0]], [1.0, 2.0], probabilities=[0.5, 0.6]), "sum to 1"),
        (lambda: conditional_gaps([[1.0, 2.0]], [1.0]), "2 columns"),
    ],
)
def test_bad_input_is_refused(make, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()
