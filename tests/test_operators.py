"""Gram matrices as operators, against the matrices themselves."""

from __future__ import annotations

import pytest
import torch

from frhsic.dependence import grams
from frhsic.dependence.grams import gram_times, pivoted_cholesky
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear

KERNELS: list[Kernel] = [Gaussian(0.7), Laplacian(1.3), InverseMultiquadric(0.5), Linear(), Linear() + Gaussian(2.0)]


def rows(n: int, d: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_product_by_tiles_is_the_product(kernel: Kernel, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grams, "TILE_ENTRIES", 100)  # tiles of 2 rows, and a last one of 1
    x, y, b = rows(37, 3, dtype), rows(41, 3, dtype, 1), rows(41, 2, dtype, 2)
    assert torch.allclose(gram_times(kernel, x, b, y=y), kernel(x, y) @ b, rtol=1e-5, atol=1e-5)
    assert torch.allclose(gram_times(kernel.shifted, y, b), kernel.shifted(y, y) @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_whole_factor_gives_the_matrix_back(kernel: Kernel, dtype: torch.dtype) -> None:
    x = rows(40, 2, dtype)
    factor, left = pivoted_cholesky(kernel, x, tolerance=0.0)
    scale = float(kernel.diagonal(x).max())
    assert torch.allclose(factor @ factor.T, kernel(x, x), atol=scale * (3e-5 if dtype is torch.float32 else 1e-12))
    assert left <= (1e-5 if dtype is torch.float32 else 1e-13)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_what_is_left_out_is_positive_and_its_trace_is_as_said(kernel: Kernel) -> None:
    x = rows(60, 2, torch.float64)
    gram = kernel(x, x)
    for rank in (1, 2, 5, 20):
        factor, left = pivoted_cholesky(kernel, x, max_rank=rank)
        remainder = gram - factor @ factor.T
        assert factor.shape[1] <= rank
        assert float(remainder.trace() / gram.trace()) == pytest.approx(left, abs=1e-13)
        assert float(torch.linalg.eigvalsh(remainder)[0]) > -1e-12 * float(gram.trace())


def test_the_tolerance_bounds_the_error_of_every_eigenvalue() -> None:
    x = rows(300, 1, torch.float64)
    kernel = Gaussian(1.0)
    factor, left = pivoted_cholesky(kernel, x, tolerance=1e-6)
    assert left <= 1e-6
    assert factor.shape[1] < 20
    full = torch.linalg.eigvalsh(kernel(x, x))
    low = torch.linalg.eigvalsh(factor @ factor.T)
    assert float((full - low).min()) > -1e-11
    assert float((full - low).max()) <= left * 300 + 1e-11
