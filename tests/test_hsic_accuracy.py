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
    """Both statistics from the n x n matrices, block by block of rows, in two passes."""

    BLOCK = 1024

    def __init__(self, x: torch.Tensor, kernel: Kernel):
        # 64 bits of mantissa where the processor has them; float64 for the largest, where they take minutes
        wide = np.longdouble if len(x) <= 1024 else np.float64
        self.kernel, self.x, self.n = kernel, x.double().numpy().astype(wide), len(x)
        if kernel.centering_safe:
            self.x = self.x - self.x.mean(0)
        self.blocks = list(self.computed())
        self.rows = np.concatenate([block.sum(1) for block in self.blocks])
        starts = range(0, self.n, self.BLOCK)
        self.diagonal = np.concatenate([np.diagonal(block, i) for i, block in zip(starts, self.blocks)])

    def computed(self):
        for i in range(0, self.n, self.BLOCK):
            yield reference_gram(self.kernel, self.x[i : i + self.BLOCK], self.x)

    def hsic(self, other: Reference) -> float:
        n, total = self.n, self.x.dtype.type(0)
        k_mean, l_mean = self.rows / n, other.rows / n
        for i, (k, l) in zip(range(0, n, self.BLOCK), zip(self.blocks, other.blocks)):
            here = slice(i, i + self.BLOCK)
            k = k - k_mean[here, None] - k_mean + k_mean.mean()
            l = l - l_mean[here, None] - l_mean + l_mean.mean()
            total += (k * l).sum()
        return float(total / n**2)

    def unbiased(self, other: Reference) -> float:
        # U-centred matrices, whose inner product over n(n - 3) is the U-statistic
        n, total = self.n, self.x.dtype.type(0)
        a, b = self.rows - self.diagonal, other.rows - other.diagonal
        for i, (k, l) in zip(range(0, n, self.BLOCK), zip(self.blocks, other.blocks)):
            here = slice(i, i + self.BLOCK)
            k = k - a[here, None] / (n - 2) - a / (n - 2) + a.sum() / ((n - 1) * (n - 2))
            l = l - b[here, None] / (n - 2) - b / (n - 2) + b.sum() / ((n - 1) * (n - 2))
            inside = np.arange(len(k))
            k[inside, i + inside] = 0
            total += (k * l).sum()
        return float(total / (n * (n - 3)))


def rounded(n: int, dtype: torch.dtype, scale: float = 1.0, offset: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(n)
    z = torch.randn(n, 3, generator=g, dtype=torch.float64)
    s = torch.stack([z[:, 0] + z[:, 1], z[:, 2] ** 2], 1) + torch.randn(n, 2, generator=g, dtype=torch.float64)
    return (z * scale + offset).to(dtype), (s * scale).to(dtype)


@lru_cache(maxsize=2)
def reference_of_s(n: int, dtype: torch.dtype, scale: float) -> Reference:
    return Reference(rounded(n, dtype, scale)[1], JOINT if scale == 1 else FLAT)


OFTEN = {"gaussian"}
SMALL = 140
"""As many rows as give three tiles of 48, 48 and 44, where a tile of 256 would need 600 rows."""

CASES = [(SMALL, name) for name in KERNELS] + [
    pytest.param(n, name, marks=() if n == 2048 and name in OFTEN else pytest.mark.slow)
    for n in (2048, 8192)
    for name in KERNELS
]


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
