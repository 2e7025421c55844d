"""Smoothed and localised contrasts, and the kHGR bound."""

from __future__ import annotations

import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, holds, instance
from frhsic.dependence.grams import centered, hsic_biased
from frhsic.kernels import Gaussian, Linear
from frhsic_paper.theory import (
    FiniteLaw,
    KernelExpansion,
    khgr_bound,
    localized_contrast,
    smoothed_contrast,
)


@pytest.mark.parametrize("seed", range(20))
def test_the_localised_contrast_is_its_definition(seed: int) -> None:
    """With ties the conditional embeddings are there: sum π_k g(s_k) Δ_k, its norm, and its bound."""
    case = instance(seed, ties=True)
    law = FiniteLaw.from_sample(case.z, case.s, case.kernel_z, case.kernel_s)
    values = case.s.unique()[:, None]
    s0, s1 = case.rng.normal(size=2)
    points = torch.tensor([[s0], [s1]])
    near = case.kernel_s(values, points)
    means = law.probabilities @ near
    g = law.probabilities * (near[:, 0] / means[0] - near[:, 1] / means[1])
    between = float(case.kernel_s(points, points)[0, 1] / means.prod())
    c = localized_contrast(case.z, case.s, s0, s1, kernel_z=case.kernel_z, kernel_s=case.kernel_s)
    assert c.bounded == approx(float(g @ law.deviations @ g), rel=1e-8, abs=1e-14)
    assert c.value == approx((float((1 / means**2).sum()) - 2 * between) * law.hsic, rel=1e-8, abs=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_between_the_two_values_of_a_binary_attribute_the_bound_is_reached(seed: int) -> None:
    case = instance(seed)
    s = (case.s > case.s.median()).double()
    g = KernelExpansion([1.0, -1.0], centers=[[1.0], [0.0]])
    c = smoothed_contrast(case.z, s, g, kernel_z=case.kernel_z, kernel_s=Gaussian(1.0))
    assert c.tightness == approx(1, rel=1e-8)


def test_smoothed_contrasts_hold() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        weight = KernelExpansion(case.rng.normal(size=case.n))
        c = smoothed_contrast(case.z, case.s, weight, kernel_z=case.kernel_z, kernel_s=case.kernel_s)
        assert holds(c.bounded, c.value)
        assert holds(c.bounded, c.trivial)


@pytest.mark.parametrize("seed", range(10))
def test_the_smoothed_contrast_is_its_definition(seed: int) -> None:
    case = instance(seed)
    b = torch.tensor(case.rng.normal(size=case.n))
    k, l = case.kernel_z(case.z, case.z), case.kernel_s(case.s[:, None], case.s[:, None])
    c = smoothed_contrast(case.z, case.s, KernelExpansion(b), kernel_z=case.kernel_z, kernel_s=case.kernel_s)
    assert c.bounded == approx(float((l @ b) @ centered(k) @ (l @ b)) / case.n**2, rel=1e-8)
    assert c.value == approx(float(b @ l @ b * hsic_biased(k, l)), rel=1e-8)


def test_khgr_is_bounded_by_hsic_over_the_ridges() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        ridge_z, ridge_s = 10 ** case.rng.uniform(-3, 1, size=2)
        c = khgr_bound(case.z, case.s, case.kernel_z, case.kernel_s, ridge_z=ridge_z, ridge_s=ridge_s)
        assert holds(c.bounded, c.value)
        assert c.vacuous == (c.value >= 1)


def test_khgr_reaches_its_bound_for_a_binary_attribute_at_large_ridges() -> None:
    case = instance(0)
    s = (case.s > case.s.median()).double()
    loose = khgr_bound(case.z, s, Gaussian(1.0), Gaussian(1.0), ridge_z=1.0, ridge_s=1.0)
    close = khgr_bound(case.z, s, Gaussian(1.0), Gaussian(1.0), ridge_z=1e3, ridge_s=1e3)
    assert loose.tightness > 1.1
    assert close.tightness == approx(1, abs=2e-3)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda z, s: localized_contrast(z, s, [1.0, 2.0]), ValueError, "pass 1 finite"),
        (lambda z, s: localized_contrast(z, s, float("nan")), ValueError, "pass 1 finite"),
        (lambda z, s: localized_contrast(z, s, 1e9), ValueError, "nearer to rows"),
        (lambda z, s: localized_contrast(z, s - 1, 1.0, kernel_s=Linear()), ValueError, "not negative"),
        (
            lambda z, s: localized_contrast(z[:1], s[:1], 0.0, kernel_z=Linear(), kernel_s=Linear()),
            ValueError,
            "at least 2",
        ),
        (lambda z, s: smoothed_contrast(z, s, KernelExpansion([1.0])), ValueError, "1 coefficients"),
        (lambda z, s: khgr_bound(z, s, ridge_z=0.0), ValueError, "ridge_z"),
    ],
)
def test_bad_input_is_refused(make, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make(torch.arange(4.0), torch.tensor([0.0, 1.0, 3.0, 7.0]))


def test_localised_contrasts_hold_at_a_value_and_between_two() -> None:
    for seed in INSTANCES:
        case = instance(seed)
        s0, s1 = case.rng.normal(size=2)
        kernels = {"kernel_z": case.kernel_z, "kernel_s": case.kernel_s}
        for certificate in (
            localized_contrast(case.z, case.s, s0, **kernels),
            localized_contrast(case.z, case.s, s0, s1, **kernels),
        ):
            assert holds(certificate.bounded, certificate.value)
            assert holds(certificate.bounded, certificate.trivial)


@pytest.mark.parametrize("seed", range(20))
def test_the_localised_contrast_is_the_mmd_of_the_weighted_rows_from_all_rows(seed: int) -> None:
    case = instance(seed)
    at = float(case.rng.normal())
    near = case.kernel_s(case.s[:, None], torch.tensor([[at]], dtype=torch.float64))[:, 0]
    w = near / near.sum() - 1 / case.n
    c = localized_contrast(case.z, case.s, at, kernel_z=case.kernel_z, kernel_s=case.kernel_s)
    assert c.bounded == approx(float(w @ case.kernel_z(case.z, case.z) @ w), rel=1e-8, abs=1e-14)
    assert c.details["weight_mean"] == approx(float(near.mean()), rel=1e-12)


def test_a_law_near_a_value_is_never_further_away_than_two_laws_can_be() -> None:
    case = instance(1)
    far = float(case.s.max()) + 5
    c = localized_contrast(case.z, case.s, far, kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    assert c.vacuous
    assert c.trivial <= 2
