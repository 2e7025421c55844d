"""The paper's theory: identities and bounds on finite laws, contrasts, and bounds from rows to the
population.

Each function against the definition by sums, on random instances, and where its bound is reached.
"""

from __future__ import annotations

import itertools
import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, gram_of, holds, instance, kernel_of, table_of
from frhsic.dependence.grams import centered_gram, hsic_biased_from_gram
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Linear, PerColumn
from frhsic_paper import theory
from frhsic_paper.directions import NumericalRank, VarianceShare
from frhsic_paper.theory import FiniteLaw, KernelExpansion, LinearEncoders, MLPEncoders


def law_of(
    seed: int,
) -> tuple[FiniteLaw, np.ndarray, torch.Tensor, torch.Tensor, np.random.Generator]:
    rng = np.random.default_rng(seed)
    a = int(rng.integers(2, 7))
    b = int(rng.integers(2, 6))
    table = table_of(rng, a, b)
    k = gram_of(rng, a, kernel_of(rng))
    l = gram_of(rng, b, kernel_of(rng, linear=False), 1)
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
        both = theory.spectral_equivalence(law, directions=rules[seed % 3])
        assert holds(both.details["lower"], both.bounded)
        assert holds(both.bounded, both.value)
        assert both.bounded == approx(float(law.probabilities @ law.deviations.diagonal()))
        assert holds(both.bounded, both.trivial)


@pytest.mark.parametrize("seed", range(20))
def test_spectral_equivalence_is_reached_by_a_fair_binary_attribute(seed: int) -> None:
    """Equal weights make Δ a multiple of the second eigenfunction: HSIC / λ_2 is the integral, with
    no tail.
    """
    rng = np.random.default_rng(seed)
    half = rng.dirichlet(np.ones(4), size=2).T / 2
    law = FiniteLaw.from_table(
        half, gram_of(rng, 4, kernel_of(rng)), gram_of(rng, 2, Gaussian(1.0), 1)
    )
    both = theory.spectral_equivalence(law, directions=2)
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
        bound = theory.eipm_bound(law)
        assert holds(bound.bounded, bound.value)
        assert holds(bound.value, bound.trivial)


@pytest.mark.parametrize("seed", range(20))
def test_the_expected_mmd_bound_is_reached_where_features_reverse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = rng.dirichlet(np.ones(3), size=2).T / 2
    law = FiniteLaw.from_table(half, gram_of(rng, 3, kernel_of(rng)), [[4.0, -4.0], [-4.0, 4.0]])
    bound = theory.eipm_bound(law)
    assert bound.tightness == approx(1, rel=1e-9)
    both = theory.spectral_equivalence(law)
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
            bound = theory.population_gdp(law, gaps, norm, form=form, directions=rules[seed % 3])
            assert holds(bound.bounded, bound.value)
            assert bound.bounded == approx((p.sum(0) @ np.abs(gaps)) ** 2)
            assert holds(bound.details["projected_gap"], norm**2 * bound.details[form])
            assert holds(before, bound.value)
            before = bound.value


def test_discrete_identity_is_an_identity() -> None:
    for seed in INSTANCES:
        case = instance(seed, ties=True)
        both = theory.discrete_identity(case.z, case.s, case.kernel_z, case.kernel_s)
        assert both.value == approx(both.bounded, rel=1e-9, abs=1e-14)
        assert not both.vacuous


def test_disintegration_is_an_identity() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        table = table_of(rng, int(rng.integers(2, 6)), int(rng.integers(2, 6)))
        both = theory.disintegration_identity(table, rng.normal(size=(7, *table.shape)))
        assert both.value == approx(both.bounded, rel=1e-10)


def test_a_decomposable_class_gives_the_conditional_integral_and_a_smaller_one_stays_below() -> (
    None
):
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        table = table_of(rng, int(rng.integers(2, 5)), int(rng.integers(2, 4)))
        heads = rng.normal(size=(int(rng.integers(1, 4)), table.shape[0]))
        both = theory.decomposable_identity(table, heads)
        assert both.value == approx(both.bounded, rel=1e-10)
        constant = np.repeat(
            heads[:, :, None], table.shape[1], axis=2
        )  # one head for all s: its joint IPM is zero
        assert theory.disintegration_identity(table, constant).value < 1e-12
        some = rng.choice([-1.0, 1.0], size=(3, 1, table.shape[1])) * heads[:1, :, None]
        assert holds(theory.disintegration_identity(table, some).value, both.value)


def test_interventions_bound_hsic() -> None:
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        values = int(rng.integers(2, 5))
        units = int(rng.integers(1, 7))
        d = int(rng.integers(1, 3))
        effect = rng.choice([0.0, 0.5, 2.0])
        z = rng.normal(size=(1, units, d)) + effect * rng.normal(size=(values, units, d))
        pi = rng.dirichlet(np.ones(values))
        kernel: Kernel = kernel_of(rng)
        c = theory.causal_necessity(
            z, rng.normal(size=values), probabilities=pi, kernel_z=kernel, kernel_s=Gaussian(1.0)
        )
        assert holds(c.bounded, c.value)
        if effect == 0:
            assert c.value < 1e-12
            assert c.bounded < 1e-12


@pytest.mark.parametrize("q", [2, 3, 5])
def test_the_converse_fails_for_sums_modulo_q(q: int) -> None:
    """Z = S + U mod q with uniform S and U is independent of S, yet every intervention moves every
    unit.
    """
    z = (np.arange(q)[:, None] + np.arange(q)[None, :]) % q
    c = theory.causal_necessity(z, np.arange(q), kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert c.bounded < 1e-14
    assert c.details["largest_change"] > 0.8
    assert c.value > 0.1
    assert math.isinf(c.tightness) or c.tightness > 1e10


# --- smoothed and localised contrasts, and the kHGR bound


@pytest.mark.parametrize("seed", range(20))
def test_the_localised_contrast_is_its_definition(seed: int) -> None:
    """With ties the conditional embeddings are there: sum π_k g(s_k) Δ_k, its norm, and its
    bound.
    """
    case = instance(seed, ties=True)
    law = FiniteLaw.from_sample(case.z, case.s, case.kernel_z, case.kernel_s)
    values = case.s.unique()[:, None]
    s0, s1 = case.rng.normal(size=2)
    points = torch.tensor([[s0], [s1]])
    near = case.kernel_s(values, points)
    means = law.probabilities @ near
    g = law.probabilities * (near[:, 0] / means[0] - near[:, 1] / means[1])
    between = float(case.kernel_s(points, points)[0, 1] / means.prod())
    c = theory.localized_contrast(
        case.z, case.s, s0, s1, kernel_z=case.kernel_z, kernel_s=case.kernel_s
    )
    assert c.bounded == approx(float(g @ law.deviations @ g), rel=1e-8, abs=1e-14)
    assert c.value == approx(
        (float((1 / means**2).sum()) - 2 * between) * law.hsic, rel=1e-8, abs=1e-14
    )


@pytest.mark.parametrize("seed", range(20))
def test_between_the_two_values_of_a_binary_attribute_the_bound_is_reached(seed: int) -> None:
    case = instance(seed)
    s = (case.s > case.s.median()).double()
    g = KernelExpansion([1.0, -1.0], centers=[[1.0], [0.0]])
    c = theory.smoothed_contrast(case.z, s, g, kernel_z=case.kernel_z, kernel_s=Gaussian(1.0))
    assert c.tightness == approx(1, rel=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_the_smoothed_contrast_is_its_definition(seed: int) -> None:
    case = instance(seed)
    b = torch.tensor(case.rng.normal(size=case.n))
    k = case.kernel_z(case.z, case.z)
    l = case.kernel_s(case.s[:, None], case.s[:, None])
    c = theory.smoothed_contrast(
        case.z, case.s, KernelExpansion(b), kernel_z=case.kernel_z, kernel_s=case.kernel_s
    )
    assert c.bounded == approx(float((l @ b) @ centered_gram(k) @ (l @ b)) / case.n**2, rel=1e-8)
    assert c.value == approx(float(b @ l @ b * hsic_biased_from_gram(k, l)), rel=1e-8)


def test_khgr_is_bounded_by_hsic_over_the_ridges() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        ridge_z, ridge_s = 10 ** case.rng.uniform(-3, 1, size=2)
        c = theory.khgr_bound(
            case.z, case.s, case.kernel_z, case.kernel_s, ridge_z=ridge_z, ridge_s=ridge_s
        )
        assert holds(c.bounded, c.value)
        assert c.vacuous == (c.value >= 1)


def test_khgr_reaches_its_bound_for_a_binary_attribute_at_large_ridges() -> None:
    case = instance(0)
    s = (case.s > case.s.median()).double()
    loose = theory.khgr_bound(case.z, s, Gaussian(1.0), Gaussian(1.0), ridge_z=1.0, ridge_s=1.0)
    close = theory.khgr_bound(case.z, s, Gaussian(1.0), Gaussian(1.0), ridge_z=1e3, ridge_s=1e3)
    assert loose.tightness > 1.1
    assert close.tightness == approx(1, abs=2e-3)


@pytest.mark.parametrize("seed", range(20))
def test_the_localised_contrast_is_the_mmd_of_the_weighted_rows_from_all_rows(seed: int) -> None:
    case = instance(seed)
    at = float(case.rng.normal())
    near = case.kernel_s(case.s[:, None], torch.tensor([[at]], dtype=torch.float64))[:, 0]
    w = near / near.sum() - 1 / case.n
    c = theory.localized_contrast(
        case.z, case.s, at, kernel_z=case.kernel_z, kernel_s=case.kernel_s
    )
    assert c.bounded == approx(float(w @ case.kernel_z(case.z, case.z) @ w), rel=1e-8, abs=1e-14)
    assert c.details["weight_mean"] == approx(float(near.mean()), rel=1e-12)


def test_a_law_near_a_value_is_never_further_away_than_two_laws_can_be() -> None:
    case = instance(1)
    far = float(case.s.max()) + 5
    c = theory.localized_contrast(
        case.z, case.s, far, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)
    )
    assert c.vacuous
    assert c.trivial <= 2


# --- from rows to the population

ADULT = MLPEncoders(widths=(107, 50, 50), weight_bounds=(5.0, 5.0), input_bound=4.0)
STILL = LinearEncoders(weight_bound=1e-9, input_bound=1.0, outputs=1)
"""Encoders so near to each other that their complexity is about that of a single one, zero."""


def test_uniform_bound_is_the_formula_of_the_paper() -> None:
    n = 1000
    delta = 0.1
    bound = theory.uniform_bound(
        n, LinearEncoders(2.0, 3.0, 5), Gaussian(0.5), InverseMultiquadric(2.0), confidence=0.9
    )
    complexity = 2 * 3 * math.sqrt(5 / n)
    expected = (
        8 * math.sqrt(2) * math.sqrt(math.log(2 / delta) / n)
        + 4 / n
        + 48 * math.sqrt(math.pi) * max(1 / 0.5, 1 / 2.0) * complexity
    )
    assert bound.value == approx(expected)
    assert bound.confidence == approx(0.9)
    assert bound.details["gaussian_complexity"] == approx(complexity)


@pytest.mark.parametrize("encoders", [STILL, LinearEncoders(1.0, 1.0, 8), ADULT], ids=repr)
def test_n_needed_is_the_first_n_that_is_not_vacuous(encoders) -> None:
    needed = theory.uniform_bound(10, encoders, Gaussian(1.0), Gaussian(1.0)).details["n_needed"]
    assert theory.uniform_bound(needed - 1, encoders, Gaussian(1.0), Gaussian(1.0)).vacuous
    assert not theory.uniform_bound(needed, encoders, Gaussian(1.0), Gaussian(1.0)).vacuous


@pytest.mark.parametrize("seed", range(20))
def test_linear_complexity_bounds_the_drawn_one(seed: int) -> None:
    """sup over ‖W‖_F ≤ R of ⟨W, n⁻¹ Σ ξ xᵀ⟩ is R ‖n⁻¹ Σ ξ xᵀ‖_F: its mean over draws, at points on
    the sphere.
    """
    rng = np.random.default_rng(seed)
    n = 30
    d = 4
    d_z = 3
    x = rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    drawn = [2.0 * np.linalg.norm(rng.normal(size=(n, d_z)).T @ x) / n for _ in range(400)]
    bound = LinearEncoders(weight_bound=2.0, input_bound=1.0, outputs=d_z).complexity / math.sqrt(n)
    assert 0.9 * bound < np.mean(drawn) < bound


@pytest.mark.parametrize(("activation", "biases"), [("selu", (0.5, 0.3)), ("tanh", ())])
def test_mlp_complexity_bounds_what_a_search_finds(
    activation: str, biases: tuple[float, ...]
) -> None:
    """Projected gradient ascent over the weights finds a lower bound of the supremum for each
    draw.
    """
    rng = np.random.default_rng(0)
    n = 20
    encoders = MLPEncoders((3, 4, 2), (1.5, 0.8), 1.0, biases, activation)
    sigma = getattr(torch, activation)
    x = torch.tensor(rng.normal(size=(n, 3)))
    x = x / x.norm(dim=1, keepdim=True)
    limits = (1.5, 0.8, *(biases or (0.0, 0.0)))
    found = []
    for _ in range(10):
        xi = torch.tensor(rng.normal(size=(n, 2)))
        blocks = [
            torch.tensor(rng.normal(size=shape)).requires_grad_()
            for shape in ((4, 3), (2, 4), (4,), (2,))
        ]
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


KERNELS = (
    Gaussian(0.7),
    InverseMultiquadric(1.3),
    PerColumn((Gaussian(0.3), InverseMultiquadric(2.0))),
)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_feature_maps_are_lipschitz_with_the_constant_and_no_smaller_one(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    constant = theory.feature_lipschitz(kernel)
    ratios = []
    for scale in (1e-3, 0.1, 1.0, 10.0):
        x = torch.tensor(rng.normal(size=(200, 2)))
        y = x + scale * torch.tensor(rng.normal(size=(200, 2)))
        if scale == 1e-3:
            y[:100, 1] = x[:100, 1]  # along the first column alone
        distance = (-2 * kernel.shifted(x[:, None], y[:, None])[:, 0, 0]).clamp_min(0).sqrt()
        ratios.append(distance / (x - y).norm(dim=1))
    largest = float(torch.cat(ratios).max())
    assert largest <= constant * (1 + 1e-9)
    assert largest > 0.999 * constant


def test_the_bridge_adds_up() -> None:
    train = theory.uniform_bound(
        10_000, LinearEncoders(1.0, 1.0, 3), Gaussian(1.0), Gaussian(2.0), confidence=0.98
    )
    population = theory.train_to_population(0.003, train)
    assert population.value == approx(0.003 + train.value)
    assert population.confidence == approx(0.98)


# --- bad input

GOOD = ([[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.5], [0.5, 1.0]], [[1.0, 0.5], [0.5, 1.0]])
LAW = FiniteLaw.from_table(*GOOD)
Z = torch.arange(4.0)
S = torch.tensor([0.0, 1.0, 3.0, 7.0])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: FiniteLaw.from_table([[0.5, 0.6]], [[1.0]], GOOD[2]), "sum to 1"),
        (lambda: FiniteLaw.from_table([[1.0, 0.0]], [[1.0]], GOOD[2]), "sums to 0"),
        (lambda: FiniteLaw.from_table([[1.5, -0.5]], [[1.0]], GOOD[2]), "of table is -0.5"),
        (lambda: FiniteLaw.from_table(GOOD[0], [[1.0]], GOOD[2]), "gram_z"),
        (lambda: FiniteLaw.from_table(GOOD[0], GOOD[1], [[1.0, 0.2], [0.3, 1.0]]), "not symmetric"),
        (lambda: FiniteLaw.from_sample([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]), "come from a single row"),
        (lambda: theory.population_gdp(LAW, [1.0], 1.0), "1 gaps"),
        (lambda: theory.population_gdp(LAW, [1.0, 1.0], 1.0), "average to zero"),
        (lambda: theory.population_gdp(LAW, [1.0, -1.0], 0.0), "norm"),
        (lambda: theory.population_gdp(LAW, [1.0, -1.0], 1.0, form="x"), "form"),
        (lambda: theory.spectral_equivalence(LAW, directions=3), "1 to 2"),
        (lambda: theory.disintegration_identity(GOOD[0], [[1.0]]), "witnesses"),
        (lambda: theory.decomposable_identity(GOOD[0], [[1.0]]), "1 values"),
        (lambda: theory.decomposable_identity(np.full((2, 20), 1 / 40), [[1.0, 2.0]]), "choices"),
        (lambda: theory.causal_necessity([1.0], [1.0]), "representations"),
        (lambda: theory.causal_necessity([[1.0, 2.0]], [1.0]), "two or more"),
        (
            lambda: theory.causal_necessity([[1.0], [2.0]], [1.0, 2.0], probabilities=[0.5, 0.6]),
            "sum to 1",
        ),
        (lambda: theory.localized_contrast(Z, S, [1.0, 2.0]), "one finite number"),
        (lambda: theory.localized_contrast(Z, S, float("nan")), "one finite number"),
        (lambda: theory.localized_contrast(Z, S, 1e9), "closer to the observed values"),
        (
            lambda: theory.localized_contrast(Z, S - 1, 1.0, kernel_s=Linear()),
            "a nonnegative kernel",
        ),
        (
            lambda: theory.localized_contrast(
                Z[:1], S[:1], 0.0, kernel_z=Linear(), kernel_s=Linear()
            ),
            "at least 2",
        ),
        (lambda: theory.smoothed_contrast(Z, S, KernelExpansion([1.0])), "1 coefficients"),
        (lambda: theory.khgr_bound(Z, S, ridge_z=0.0), "ridge_z"),
    ],
)
def test_bad_input_is_refused(make, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


# --- the table of theorems in the documentation

STATEMENTS = 5 + 5 + 6 + 2
"""Theorems, propositions, corollaries and lemmas of the paper."""


def test_every_statement_of_the_paper_has_an_assumption_and_a_function_that_exists() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "theory.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\[.*evidence/theorems\.md#.*) \|$", page, re.MULTILINE)
    for row in rows:
        _, assumption, function = re.split(r" (?<!\\)\| ", row)
        assert assumption
        module, _, name = function.strip("`").rpartition(".")
        assert callable(getattr(import_module(module or "frhsic_paper.theory"), name)), row
    checked = (docs / "evidence" / "theorems.md").read_text(encoding="utf-8")
    named = set(re.findall(r"theorems\.md#([a-z-]+)\)", "".join(rows)))
    assert len(named) == STATEMENTS
    assert all(f'id="{name}"' in checked for name in named)
