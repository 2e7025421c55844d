"""The law of Z near a value of S against its overall law."""

from __future__ import annotations

import pytest
import torch
from pytest import approx

from certificate_instances import INSTANCES, holds, instance
from frhsic.certificates.contrasts import localized_contrast
from frhsic.kernels import Gaussian, Linear


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


@pytest.mark.parametrize(
    "arguments",
    [
        {"at": [1.0, 2.0]},
        {"at": float("nan")},
        {"at": 1e9},
        {"s": torch.arange(4.0) - 1, "at": 1.0, "kernel_s": Linear()},
        {"z": [1.0], "s": [1.0], "at": 0.0},
    ],
    ids=["columns", "nan", "far", "negative", "one row"],
)
def test_bad_input_is_refused(arguments: dict) -> None:
    with pytest.raises(ValueError, match=r"pass|Pass|at least 2"):
        localized_contrast(**({"z": torch.arange(4.0), "s": [0.0, 1.0, 3.0, 7.0]} | arguments))
