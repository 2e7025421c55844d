"""The hand-written backward of exact HSIC."""

from __future__ import annotations

import pytest
import torch

from frhsic.dependence import _gram, grams, hsic, hsic_unbiased
from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic.kernels.kernel import PerColumn
from kernel_instances import KERNELS

JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))


def dependent(n: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(3)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = z[:, :2] ** 2 + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return z.to(dtype), s.to(dtype)


WEIGHTS = torch.arange(5.0, dtype=torch.float64)

STATISTICS = {
    "biased": hsic,
    "unbiased": hsic_unbiased,
    "weighted": lambda z, s, k, l: hsic(z, s, k, l, weights=WEIGHTS),
    "of a subset": lambda z, s, k, l: hsic(z, s, k, l, where=WEIGHTS > 1),
}


@pytest.mark.parametrize(
    ("name", "statistic"),
    [(name, statistic) for name in KERNELS for statistic in STATISTICS if statistic == "biased" or name == "gaussian"],
)
def test_gradients_in_z_and_s_are_those_of_finite_differences(name, statistic, monkeypatch):
    monkeypatch.setattr(_gram, "CPU_TILE", 2)  # five rows: tiles of 2, 2 and 1
    z, s = dependent(5)

    def value(z, s):
        return STATISTICS[statistic](z, s, KERNELS[name], JOINT)

    assert torch.autograd.gradcheck(value, (z.requires_grad_(), s.requires_grad_()))


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_over_tiles_are_those_of_the_full_matrices(name, offset, dtype, monkeypatch):
    monkeypatch.setattr(_gram, "CPU_TILE", 48)  # tiles of 48, 48 and 44: as many as 700 rows have in tiles of 256
    kernel = KERNELS[name]
    z, s = dependent(140, dtype)
    z = z + offset
    full = z.double().requires_grad_()
    k, l = kernel(full, full), JOINT(s.double(), s.double())
    for tiled, formula in ((hsic, grams.hsic_biased), (hsic_unbiased, grams.hsic_unbiased)):
        (expected,) = torch.autograd.grad(formula(k, l), full, retain_graph=True)
        own = z.clone().requires_grad_()
        (got,) = torch.autograd.grad(tiled(own, s, kernel, JOINT), own)
        assert got.dtype == dtype
        error = (got.double() - expected).norm() / expected.norm()
        assert error < (1e-6 if dtype == torch.float32 else 1e-9 if offset else 1e-11)


def test_the_gradient_of_linear_hsic_is_the_closed_form(dtype):
    # d/dz of |cov(z, s)|^2 is 2 cov(z, s) (s_i - mean) / n
    z, s = dependent(600, dtype)
    z.requires_grad_()
    hsic(z, s, Linear(), Linear()).backward()
    centred = s - s.mean(0)
    covariance = (z - z.mean(0)).mT @ centred / 600
    torch.testing.assert_close(z.grad, 2 * centred @ covariance.mT / 600)


def test_a_second_derivative_is_refused_and_not_silently_wrong():
    z, s = dependent(10)
    z.requires_grad_()
    with pytest.raises(RuntimeError):
        torch.autograd.grad(hsic(z, s, Gaussian(1.0), JOINT), z, create_graph=True)
