"""Certificates: the theorem in its three forms on a sample, bounds on the population, and what is
refused.
"""

import math

import numpy as np
import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, holds, instance, kernel_of
from frhsic.dependence.grams import centered_gram, hsic_biased_from_gram, hsic_weighted_from_gram
from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic.parity import gdp
from frhsic_paper import directions
from frhsic_paper.certificates import gdp_certificate, held_out_bound
from frhsic_paper.directions import NumericalRank, VarianceShare

ONE = Gaussian(1.0)
RULES = [NumericalRank(1e-6), NumericalRank(1e-2), VarianceShare(0.9), 1]


def certificate_of(case, **options):
    """The certificate of a case with its own kernels, unless others are given."""
    return gdp_certificate(
        case.z, case.s, **{"kernel_z": case.kernel_z, "kernel_s": case.kernel_s} | options
    )


def expansion(kernel, z, coefficients):
    """Scores and norm of the head Σ a_i k(z_i, ·)."""
    a, gram = torch.as_tensor(coefficients, dtype=torch.float64), kernel(z, z)
    return {"scores": gram @ a, "norm": math.sqrt(float(a @ gram @ a))}


def random_head(case):
    return expansion(case.kernel_z, case.z, case.rng.normal(size=case.n))


def forms_by_definition(case, m, extra=None):
    """The three forms from full matrices and a full eigen-decomposition."""
    k = case.kernel_z(case.z, case.z) + (0 if extra is None else extra[:, None] * extra[None, :])
    l = case.kernel_s(case.s[:, None], case.s[:, None])
    values, vectors = torch.linalg.eigh(centered_gram(l) / case.n)
    e = vectors[:, -m:]
    inside = e @ e.T @ centered_gram(k) @ e @ e.T
    tight, trace = float(torch.linalg.eigvalsh(inside)[-1]) / case.n, float(inside.trace()) / case.n
    return {
        "tight": tight,
        "trace": trace,
        "published": float(hsic_biased_from_gram(k, l) / values[-m]),
    }


def forms(certificate):
    return {form: certificate.details[form] for form in ("tight", "trace", "published")}


@pytest.mark.parametrize("seed", range(20))
def test_the_three_forms_are_the_definition(seed):
    case = instance(seed)
    certificate = certificate_of(case, directions=NumericalRank(1e-4))
    assert forms(certificate) == approx(
        forms_by_definition(case, certificate.details["directions"]), rel=1e-8
    )
    assert certificate.value == certificate.details["tight"]


def test_it_holds_for_heads_given_by_coefficients_and_the_forms_are_ordered():
    for seed in INSTANCES:
        case = instance(seed)
        head, rule = random_head(case), RULES[seed % len(RULES)]
        for form in ("tight", "trace", "published"):
            certificate = certificate_of(case, **head, form=form, directions=rule)
            assert holds(certificate.bounded, certificate.value), (seed, form)
            assert certificate.details["head_absolute_gap"] ** 2 <= certificate.bounded * (1 + 1e-9)
        details = certificate.details
        assert holds(details["tight"], details["trace"])
        assert holds(details["trace"], details["published"])
        assert certificate.value == approx(details["norm"] ** 2 * details["published"])


def test_the_tight_form_is_attained_by_its_worst_head_and_no_other_exceeds_it():
    for seed in INSTANCES:
        case, rule = instance(seed), RULES[seed % len(RULES)]
        certificate = certificate_of(case, norm=float(case.rng.uniform(0.5, 3)), directions=rule)
        worst = expansion(case.kernel_z, case.z, certificate.worst_coefficients)
        assert worst["norm"] == approx(certificate.details["norm"], rel=1e-6)
        assert torch.allclose(certificate.worst_scores, worst["scores"])
        assert certificate_of(case, **worst, directions=rule).tightness == approx(1, rel=1e-6)
        other = random_head(case)
        scores = other["scores"] * (certificate.details["norm"] / other["norm"])
        assert holds(certificate.gap(scores), certificate.value)


def test_the_deployed_head_is_bounded_whatever_it_is():
    for seed in INSTANCES:
        case = instance(seed)
        scores = torch.tensor(
            np.exp(case.rng.normal(size=case.n)) * case.rng.choice([0.01, 1.0, 100.0])
        )
        certificate = certificate_of(case, scores=scores, directions=RULES[seed % len(RULES)])
        assert holds(certificate.bounded, certificate.value)
        m = certificate.details["directions"]
        if case.s.unique().shape[0] == case.n and m < 6:
            assert forms(certificate) == approx(forms_by_definition(case, m, scores), rel=1e-7)
        assert certificate.gap(certificate.worst_scores) == approx(certificate.value, rel=1e-6)


def test_a_binary_attribute_has_one_direction_and_all_forms_are_equal():
    for seed in range(20):
        case = instance(seed)
        s = (case.s > case.s.median()).double()
        details = gdp_certificate(case.z, s, kernel_z=case.kernel_z, kernel_s=ONE).details
        assert details["directions"] == 1
        assert details["trace"] == approx(details["tight"], rel=1e-10)
        assert details["published"] == approx(details["tight"], rel=1e-8)


def test_independent_rows_have_no_gap_at_all():
    """On a full grid of z and s the empirical law is a product."""
    z, s = torch.meshgrid(torch.arange(5.0), torch.arange(4.0), indexing="ij")
    certificate = gdp_certificate(z.reshape(-1), s.reshape(-1), norm=10.0)
    assert certificate.value < 1e-13
    assert certificate.details["trace_if_shuffled"] > 0.01


def test_the_trace_form_of_shuffled_rows_averages_what_is_said():
    case = instance(5)
    rng = np.random.default_rng(0)
    expected = gdp_certificate(case.z, case.s, directions=2).details["trace_if_shuffled"]
    drawn = [
        gdp_certificate(case.z, rng.permutation(case.s), directions=2).details["trace"]
        for _ in range(150)
    ]
    assert abs(np.mean(drawn) - expected) < 4 * np.std(drawn) / math.sqrt(150)


def test_what_the_directions_do_not_resolve_and_what_gdp_says_stand_beside_the_bound():
    case = instance(4, ties=True)
    head = random_head(case)
    certificate = certificate_of(case, **head, directions=1)
    scores, e = head["scores"], certificate.directions.vectors
    deviations = scores - scores.mean()
    unresolved = float(
        (deviations - e @ (e.T @ deviations)).square().sum() / deviations.square().sum()
    )
    assert certificate.details["head_gap"] == approx(
        float((e.T @ deviations).square().sum()) / case.n
    )
    assert certificate.details["unresolved"] == approx(unresolved)
    assert certificate.details["gdp"] == approx(float(gdp(scores, case.s)))


def test_all_directions_of_a_tied_attribute_give_the_between_group_variance():
    """With every direction of a discrete S the gap is the variance of the conditional means."""
    for seed in range(20):
        case = instance(seed, ties=True)
        head = random_head(case)
        scores, groups = head["scores"], [case.s == value for value in case.s.unique()]
        certificate = certificate_of(case, kernel_s=ONE, **head, directions=len(groups) - 1)
        between = sum(
            float(g.double().mean() * (scores[g].mean() - scores.mean()) ** 2) for g in groups
        )
        assert certificate.bounded == approx(between, rel=1e-8, abs=1e-15)


def test_the_factor_gives_the_directions_of_the_full_decomposition(monkeypatch):
    rng = np.random.default_rng(0)
    z, s = (
        rng.normal(size=(400, 2)),
        np.concatenate([rng.normal(size=300), rng.integers(0, 3, size=100)]),
    )
    for rule in RULES:
        full = gdp_certificate(z, s, directions=rule)
        with monkeypatch.context() as patch:
            patch.setattr(directions, "DENSE_VALUES", 10)
            low = gdp_certificate(z, s, directions=rule)
        assert low.details["eigenvalue_error"] < 1e-11
        assert low.directions.eigenvalues.tolist() == approx(
            full.directions.eigenvalues.tolist(), rel=1e-5
        )
        assert low.details["tight"] == approx(full.details["tight"], rel=1e-6)
        assert low.details["trace"] == approx(full.details["trace"], rel=1e-6)


def test_rules_count_what_they_say():
    case = instance(2, ties=False)
    values = torch.linalg.eigvalsh(
        centered_gram(ONE(case.s[:, None], case.s[:, None])) / case.n
    ).flip(0)
    for tolerance in (1e-8, 1e-4, 1e-1):
        certificate = certificate_of(case, kernel_s=ONE, directions=NumericalRank(tolerance))
        assert certificate.details["directions"] == int((values > tolerance * values[0]).sum())
        assert list(certificate.details["eigenvalues"]) == approx(
            values[: certificate.directions.count].tolist()
        )
    for share in (0.3, 0.9, 0.999):
        m = certificate_of(case, kernel_s=ONE, directions=VarianceShare(share)).directions.count
        assert float(values[:m].sum() / values.sum()) >= share
        assert m == 1 or float(values[: m - 1].sum() / values.sum()) < share


def test_no_head_of_norm_one_varies_more_than_the_trivial_bound():
    for seed in range(50):
        case = instance(seed)
        largest = (
            float(torch.linalg.eigvalsh(centered_gram(case.kernel_z(case.z, case.z)))[-1]) / case.n
        )
        assert holds(largest, gdp_certificate(case.z, case.s, kernel_z=case.kernel_z).trivial)


# --- bounds on the population
# ----------------------------------------------------------------------------------


def test_one_row_moves_the_root_of_hsic_by_at_most_the_root_of_six_over_n():
    for seed in INSTANCES:
        rng = np.random.default_rng(seed)
        n = 8
        z, s = (torch.tensor(rng.normal(size=(n, 1)) * rng.choice([0.5, 20.0])) for _ in range(2))
        kernel_z, kernel_s = kernel_of(rng, linear=False), kernel_of(rng, linear=False)
        before = float(hsic_biased_from_gram(kernel_z(z, z), kernel_s(s, s)))
        z[0], s[0] = z[rng.integers(n)], float(rng.normal() * 30)
        after = float(hsic_biased_from_gram(kernel_z(z, z), kernel_s(s, s)))
        assert abs(math.sqrt(max(after, 0)) - math.sqrt(max(before, 0))) <= math.sqrt(6) / n + 1e-12


@pytest.mark.parametrize("dependence", [0.0, 0.3, 1.0])
def test_the_held_out_bound_covers_the_population(dependence):
    """Laws whose HSIC is known; of 200 samples the bound may fail in one less the confidence."""
    rng = np.random.default_rng(1)
    product = np.full((4, 4), 1 / 16)
    table = (1 - dependence) * product + dependence * np.eye(4) / 4
    kernel_z, kernel_s = ONE, Laplacian(0.7)
    z, s = (x[:, None] for x in (torch.arange(16.0).double() // 4, torch.arange(16.0).double() % 4))
    truth = float(
        hsic_weighted_from_gram(kernel_z(z, z), kernel_s(s, s), torch.tensor(table.reshape(-1)))
    )
    misses, values = 0, []
    for _ in range(200):
        drawn = rng.choice(16, size=60, p=table.reshape(-1))
        bound = held_out_bound(drawn // 4, drawn % 4, kernel_z, kernel_s, confidence=0.9)
        misses += bound.value < truth
        values.append(bound.value)
    assert misses <= 200 * 0.1
    assert np.mean(values) < 0.25 + 2 * truth


ROWS = {"z": [0.0, 0.1, 0.2, 0.4], "s": [0.0, 0.1, 0.3, 0.7]}
REFUSED = [
    *(
        (gdp_certificate, ROWS, other)
        for other in ({"scores": [1.0]}, {"norm": 0.0}, {"form": "best"})
    ),
    *((gdp_certificate, ROWS, {"directions": count}) for count in (4, 0, True)),
    *(
        (gdp_certificate, ROWS, {"s": s, "kernel_s": ONE})
        for s in ([1.0] * 4, [1.0, 2.0, 3.0], [1.0, 2.0, 3.0, math.nan])
    ),
    *((held_out_bound, ROWS, {"kernel_z": kernel, "kernel_s": ONE}) for kernel in (None, Linear())),
    (held_out_bound, {"z": [1.0], "s": [1.0]}, {"kernel_z": ONE, "kernel_s": ONE}),
]


@pytest.mark.parametrize(("bound", "rows", "arguments"), REFUSED)
def test_bad_input_is_refused(bound, rows, arguments):
    with pytest.raises((ValueError, TypeError)):
        bound(**rows | arguments)
