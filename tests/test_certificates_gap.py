"""The finite-sample theorem in its three forms: it holds, it is attained, and its forms are ordered."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, holds, instance
from frhsic import certificates
from frhsic.certificates import NumericalRank, VarianceShare, gdp_certificate
from frhsic.dependence.grams import centered, hsic_biased
from frhsic.kernels import Gaussian, Kernel
from frhsic.parity import gdp

RULES = [NumericalRank(1e-6), NumericalRank(1e-2), VarianceShare(0.9), 1]


def expansion(kernel: Kernel, z: torch.Tensor, coefficients: object) -> dict:
    """Scores and norm of the head Σ a_i k(z_i, ·)."""
    a, gram = torch.as_tensor(coefficients, dtype=torch.float64), kernel(z, z)
    return {"scores": gram @ a, "norm": math.sqrt(float(a @ gram @ a))}


def by_definition(
    z: torch.Tensor, s: torch.Tensor, kernel_z: Kernel, kernel_s: Kernel, m: int, extra: torch.Tensor | None = None
) -> tuple[float, float, float, torch.Tensor]:
    """The three forms from full matrices and a full eigen-decomposition."""
    n = z.shape[0]
    k = kernel_z(z, z) + (0 if extra is None else extra[:, None] * extra[None, :])
    l = kernel_s(s[:, None], s[:, None])
    values, vectors = torch.linalg.eigh(centered(l) / n)
    e = vectors[:, -m:]
    inside = e @ e.T @ centered(k) @ e @ e.T
    published = hsic_biased(k, l) / values[-m]
    return float(torch.linalg.eigvalsh(inside)[-1]) / n, float(inside.trace()) / n, float(published), e


@pytest.mark.parametrize("seed", range(20))
def test_the_three_forms_are_the_definition(seed: int) -> None:
    case = instance(seed)
    certificate = gdp_certificate(
        case.z, case.s, kernel_z=case.kernel_z, kernel_s=case.kernel_s, directions=NumericalRank(1e-4)
    )
    m = certificate.details["directions"]
    tight, trace, published, _ = by_definition(case.z, case.s, case.kernel_z, case.kernel_s, m)
    assert certificate.value == approx(tight, rel=1e-8)
    assert certificate.details["trace"] == approx(trace, rel=1e-8)
    assert certificate.details["published"] == approx(published, rel=1e-8)


def test_it_holds_for_heads_given_by_coefficients_and_the_forms_are_ordered() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        head = expansion(case.kernel_z, case.z, case.rng.normal(size=case.n))
        rule = RULES[seed % len(RULES)]
        for form in ("tight", "trace", "published"):
            certificate = gdp_certificate(
                case.z, case.s, kernel_z=case.kernel_z, kernel_s=case.kernel_s, **head, form=form, directions=rule
            )
            assert holds(certificate.bounded, certificate.value), (seed, form)
            assert certificate.details["head_absolute_gap"] ** 2 <= certificate.bounded * (1 + 1e-9)
        details = certificate.details
        assert holds(details["tight"], details["trace"])
        assert holds(details["trace"], details["published"])
        assert certificate.value == approx(details["norm"] ** 2 * details["published"])


def test_the_tight_form_is_attained_by_its_worst_head_and_no_other_exceeds_it() -> None:
    for seed in INSTANCES:
        case, rule = instance(seed), RULES[seed % len(RULES)]
        options = {"kernel_z": case.kernel_z, "kernel_s": case.kernel_s, "directions": rule}
        certificate = gdp_certificate(case.z, case.s, norm=float(case.rng.uniform(0.5, 3)), **options)
        worst = expansion(case.kernel_z, case.z, certificate.worst_coefficients)
        assert worst["norm"] == approx(certificate.details["norm"], rel=1e-6)
        assert torch.allclose(certificate.worst_scores, worst["scores"])
        assert gdp_certificate(case.z, case.s, **worst, **options).tightness == approx(1, rel=1e-6)
        other = expansion(case.kernel_z, case.z, case.rng.normal(size=case.n))
        scores = other["scores"] * (certificate.details["norm"] / other["norm"])
        assert holds(certificate.gap(scores), certificate.value)


def test_the_deployed_head_is_bounded_whatever_it_is() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        scores = torch.tensor(np.exp(case.rng.normal(size=case.n)) * case.rng.choice([0.01, 1.0, 100.0]))
        certificate = gdp_certificate(
            case.z,
            case.s,
            kernel_z=case.kernel_z,
            kernel_s=case.kernel_s,
            scores=scores,
            directions=RULES[seed % len(RULES)],
        )
        assert holds(certificate.bounded, certificate.value)
        m = certificate.details["directions"]
        if case.s.unique().shape[0] == case.n and m < 6:
            tight, trace, published, _ = by_definition(case.z, case.s, case.kernel_z, case.kernel_s, m, scores)
            assert certificate.details["tight"] == approx(tight, rel=1e-7)
            assert certificate.details["trace"] == approx(trace, rel=1e-7)
            assert certificate.details["published"] == approx(published, rel=1e-7)
        assert certificate.gap(certificate.worst_scores) == approx(certificate.value, rel=1e-6)


def test_a_binary_attribute_has_one_direction_and_all_forms_are_equal() -> None:
    for seed in range(20):
        case = instance(seed)
        s = (case.s > case.s.median()).double()
        details = gdp_certificate(case.z, s, kernel_z=case.kernel_z, kernel_s=Gaussian(1.0)).details
        assert details["directions"] == 1
        assert details["trace"] == approx(details["tight"], rel=1e-10)
        assert details["published"] == approx(details["tight"], rel=1e-8)


def test_independent_rows_have_no_gap_at_all() -> None:
    """On a full grid of z and s the empirical law is a product."""
    z, s = torch.meshgrid(torch.arange(5.0), torch.arange(4.0), indexing="ij")
    certificate = gdp_certificate(z.reshape(-1), s.reshape(-1), norm=10.0)
    assert certificate.value < 1e-13
    assert certificate.details["trace_if_shuffled"] > 0.01


def test_the_trace_form_of_shuffled_rows_averages_what_is_said() -> None:
    case = instance(5)
    rng = np.random.default_rng(0)
    expected = gdp_certificate(case.z, case.s, directions=2).details["trace_if_shuffled"]
    drawn = [gdp_certificate(case.z, rng.permutation(case.s), directions=2).details["trace"] for _ in range(300)]
    assert abs(np.mean(drawn) - expected) < 4 * np.std(drawn) / math.sqrt(300)


def test_what_the_directions_do_not_resolve_and_what_gdp_says_stand_beside_the_bound() -> None:
    case = instance(4, ties=True)
    head = expansion(Gaussian(1.0), case.z, case.rng.normal(size=case.n))
    certificate = gdp_certificate(case.z, case.s, kernel_z=Gaussian(1.0), **head, directions=1)
    scores = head["scores"]
    e = certificate.directions.vectors
    deviations = scores - scores.mean()
    assert certificate.details["head_gap"] == approx(float((e.T @ deviations).square().sum()) / case.n)
    unresolved = float((deviations - e @ (e.T @ deviations)).square().sum() / deviations.square().sum())
    assert certificate.details["unresolved"] == approx(unresolved)
    assert certificate.details["gdp"] == approx(float(gdp(scores, case.s)))


def test_all_directions_of_a_tied_attribute_give_the_between_group_variance() -> None:
    """With every direction of a discrete S the gap is the variance of the conditional means."""
    for seed in range(20):
        case = instance(seed, ties=True)
        head = expansion(case.kernel_z, case.z, case.rng.normal(size=case.n))
        groups = case.s.unique()
        certificate = gdp_certificate(
            case.z, case.s, kernel_z=case.kernel_z, kernel_s=Gaussian(1.0), **head, directions=len(groups) - 1
        )
        scores = head["scores"]
        between = sum(
            float((case.s == g).double().mean() * (scores[case.s == g].mean() - scores.mean()) ** 2) for g in groups
        )
        assert certificate.bounded == approx(between, rel=1e-8, abs=1e-15)


def test_the_factor_gives_the_directions_of_the_full_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    z, s = rng.normal(size=(400, 2)), np.concatenate([rng.normal(size=300), rng.integers(0, 3, size=100)])
    for rule in RULES:
        full = gdp_certificate(z, s, directions=rule)
        with monkeypatch.context() as patch:
            patch.setattr(certificates, "DENSE_VALUES", 10)
            low = gdp_certificate(z, s, directions=rule)
        assert low.details["eigenvalue_error"] < 1e-11
        assert low.directions.eigenvalues.tolist() == approx(full.directions.eigenvalues.tolist(), rel=1e-5)
        assert low.details["tight"] == approx(full.details["tight"], rel=1e-6)
        assert low.details["trace"] == approx(full.details["trace"], rel=1e-6)


def test_rules_count_what_they_say() -> None:
    case = instance(2, ties=False)
    all_of = torch.linalg.eigvalsh(centered(Gaussian(1.0)(case.s[:, None], case.s[:, None])) / case.n).flip(0)
    for tolerance in (1e-8, 1e-4, 1e-1):
        certificate = gdp_certificate(case.z, case.s, kernel_s=Gaussian(1.0), directions=NumericalRank(tolerance))
        assert certificate.details["directions"] == int((all_of > tolerance * all_of[0]).sum())
        assert list(certificate.details["eigenvalues"]) == approx(all_of[: certificate.directions.count].tolist())
    for share in (0.3, 0.9, 0.999):
        m = gdp_certificate(case.z, case.s, kernel_s=Gaussian(1.0), directions=VarianceShare(share)).directions.count
        assert float(all_of[:m].sum() / all_of.sum()) >= share
        assert m == 1 or float(all_of[: m - 1].sum() / all_of.sum()) < share


def test_no_head_of_norm_one_varies_more_than_the_trivial_bound() -> None:
    for seed in range(50):
        case = instance(seed)
        certificate = gdp_certificate(case.z, case.s, kernel_z=case.kernel_z)
        largest = float(torch.linalg.eigvalsh(centered(case.kernel_z(case.z, case.z)))[-1]) / case.n
        assert holds(largest, certificate.trivial)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scores": [1.0]},
        {"norm": 0.0},
        {"form": "best"},
        {"directions": 4},
        {"directions": 0},
        {"directions": True},
        {"s": [1.0, 1.0, 1.0, 1.0], "kernel_s": Gaussian(1.0)},
        {"s": [1.0, 2.0, 3.0]},
        {"s": [1.0, 2.0, 3.0, math.nan]},
    ],
    ids=repr,
)
def test_bad_input_is_refused(arguments: dict) -> None:
    given = {"z": [0.0, 1.0, 2.0, 4.0], "s": [0.0, 1.0, 3.0, 7.0]} | arguments
    with pytest.raises((ValueError, TypeError)):
        gdp_certificate(**given)
