"""Exact HSIC against n x n references that share no code with it: far from zero, nearly flat, and large."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic.dependence import _gram, hsic, hsic_unbiased
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear
from frhsic.kernels.kernel import Multiple, PerColumn, Product, Sum
from kernel_instances import KERNELS

JOINT = PerColumn((Gaussian(1.0), Laplacian(1.5)))
FLAT = PerColumn((Gaussian(1.0), Gaussian(1.0)))


def reference_gram(kernel: Kernel, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kernel values by their formulae, from differences: nothing shared with the library."""
    match kernel:
        case Sum(a, b):
            return reference_gram(a, x, y) + reference_gram(b, x, y)
        case Product(a, b):
            return reference_gram(a, x, y) * reference_gram(b, x, y)
        case Multiple(factor, part):
            return x.dtype.type(factor) * reference_gram(part, x, y)
        case PerColumn(parts):
            values = [reference_gram(part, x[:, [c]], y[:, [c]]) for c, part in enumerate(parts)]
            return np.prod(values, axis=0)
        case Linear():
            return sum(np.multiply.outer(x[:, c], y[:, c]) for c in range(x.shape[1]))
    gaps = [np.subtract.outer(x[:, c], y[:, c]) for c in range(x.shape[1])]
    bandwidth = x.dtype.type(float(kernel.bandwidth))
    match kernel:
        case Laplacian():
            return np.exp(-sum(np.abs(g) for g in gaps) / bandwidth)
        case Gaussian():
            return np.exp(-sum(g * g for g in gaps) / (2 * bandwidth**2))
        case InverseMultiquadric():
            return 1 / np.sqrt(1 + sum(g * g for g in gaps) / bandwidth**2)
    raise AssertionError(f"no reference for {kernel}")


class Reference:
    """Both statistics from the n x n matrices, with 64 bits of mantissa where the processor has them."""

    def __init__(self, x: torch.Tensor, kernel: Kernel):
        rows = x.double().numpy().astype(np.longdouble)
        rows = rows - rows.mean(0) if kernel.centering_safe else rows
        self.gram, self.n = reference_gram(kernel, rows, rows), len(rows)

    def hsic(self, other: Reference) -> float:
        centred = [g - g.mean(0) - g.mean(1)[:, None] + g.mean() for g in (self.gram, other.gram)]
        return float((centred[0] * centred[1]).sum() / self.n**2)

    def unbiased(self, other: Reference) -> float:
        # U-centred matrices, whose inner product over n(n - 3) is the U-statistic
        n, centred = self.n, []
        for gram in (self.gram, other.gram):
            g = gram - np.diag(np.diagonal(gram))
            rows = g.sum(0) / (n - 2)
            centred.append((g - rows - rows[:, None] + g.sum() / ((n - 1) * (n - 2))) * (1 - np.eye(n)))
        return float((centred[0] * centred[1]).sum() / (n * (n - 3)))


def rounded(n: int, dtype: torch.dtype, scale: float = 1.0, offset: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(n)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = torch.stack([z[:, 0] + z[:, 1], z[:, 2] ** 2], 1) + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return (z * scale + offset).to(dtype), (s * scale).to(dtype)


@lru_cache(maxsize=2)
def reference_of_s(n: int, dtype: torch.dtype, scale: float) -> Reference:
    return Reference(rounded(n, dtype, scale)[1], JOINT if scale == 1 else FLAT)


SMALL = 140  # rows of three tiles of 48, 48 and 44
CASES = [(SMALL, name) for name in KERNELS] + [(700, "gaussian"), (700, "linear + gaussian")]


@pytest.fixture
def tiles(n, monkeypatch):
    if n == SMALL:
        monkeypatch.setattr(_gram, "CPU_TILE", 48)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize(("n", "name"), CASES)
def test_hsic_agrees_with_the_reference_on_the_same_rounded_inputs(n, name, offset, dtype):
    kernel = KERNELS[name]
    z, s = rounded(n, dtype, offset=offset)
    k, l = Reference(z, kernel), reference_of_s(n, dtype, 1.0)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-11
    assert hsic(z, s, kernel, JOINT).item() == approx(k.hsic(l), abs=0, rel=tolerance)
    assert hsic_unbiased(z, s, kernel, JOINT).item() == approx(k.unbiased(l), abs=0, rel=tolerance)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize(("n", "name"), CASES)
def test_hsic_agrees_where_kernels_are_all_but_flat(n, name, dtype):
    kernel = KERNELS[name]
    z, s = rounded(n, dtype, scale=1e-3)
    k, l = Reference(z, kernel), reference_of_s(n, dtype, 1e-3)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-7
    assert hsic(z, s, kernel, FLAT).item() == approx(k.hsic(l), abs=0, rel=tolerance)
    assert hsic_unbiased(z, s, kernel, FLAT).item() == approx(k.unbiased(l), abs=0, rel=tolerance)


@pytest.fixture
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
def test_threads_share_the_tiles_and_change_nothing(dtype):
    z, s = rounded(1400, dtype)
    found = {}
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        own = z.clone().requires_grad_()
        value = hsic(own, s, Gaussian(1.5), JOINT)
        value.backward()
        found[threads] = value.item(), hsic_unbiased(z, s, Gaussian(1.5), JOINT).item(), own.grad
        assert torch.get_num_threads() == threads
        assert hsic(z, s, Gaussian(1.5), JOINT).item() == value.item()
    for threads in (2, 3):
        assert found[threads][:2] == approx(found[1][:2], abs=0, rel=1e-6 if dtype == torch.float32 else 1e-11)
        torch.testing.assert_close(found[threads][2], found[1][2])
