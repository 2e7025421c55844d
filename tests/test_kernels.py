"""Kernels: one list of instances times all laws, the formulae by hand, and the median bandwidth."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic.kernels import (
    Gaussian,
    PerColumn,
    gaussian_at_median,
    median_bandwidth,
    per_column_gaussians,
    squared_distances,
)
from kernel_instances import COLUMNS, KERNELS, reference_gram


def sample(n: int, dtype: torch.dtype, seed: int = 0, columns: int = COLUMNS) -> torch.Tensor:
    x = torch.randn(n, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.to(dtype)


def rounding(dtype: torch.dtype) -> float:
    return 100 * torch.finfo(dtype).eps


@pytest.fixture(params=KERNELS, name="kernel")
def _kernel(request):
    return KERNELS[request.param]


# --- laws of every kernel
# ---------------------------------------------------------------------------------


def test_every_kernel_is_symmetric_positive_semidefinite_and_the_sum_of_its_offset_and_the_rest(
    kernel, dtype
):
    x, y, close = (
        sample(40, dtype),
        sample(5, dtype, seed=1),
        {"rtol": rounding(dtype), "atol": rounding(dtype)},
    )
    by_formula = torch.from_numpy(
        reference_gram(kernel, x.double().numpy(), y.double().numpy())
    ).to(dtype)
    torch.testing.assert_close(kernel(x, y), by_formula, **close)
    torch.testing.assert_close(kernel(x, y), kernel(y, x).mT, **close)
    torch.testing.assert_close(kernel.diagonal(x), kernel(x, x).diagonal(), **close)
    torch.testing.assert_close(kernel.shifted(x, y) + kernel.offset, kernel(x, y), **close)
    assert kernel.unit_diagonal == bool((kernel.diagonal(x) == 1).all())
    assert kernel.bound == (kernel.diagonal(x)[0].item() if kernel.shift_invariant else math.inf)
    eigenvalues = torch.linalg.eigvalsh(kernel(x, x).double())
    assert eigenvalues.min() >= -rounding(dtype) * eigenvalues.max()


@pytest.mark.parametrize("name", [name for name, k in KERNELS.items() if k.shift_invariant])
def test_shifted_keeps_its_digits_where_the_kernel_is_flat(name):
    kernel = KERNELS[name]
    x = torch.zeros(1, COLUMNS)
    y = torch.full((1, COLUMNS), 1e-4)
    wide = kernel.shifted(x.double(), y.double())
    narrow = kernel.shifted(x, y).double()
    assert wide.item() < 0
    torch.testing.assert_close(narrow, wide, rtol=1e-5, atol=0)


def test_shift_invariance_and_safe_centring_are_known_to_the_kernel(kernel):
    x, h = sample(9, torch.float64), torch.eye(9, dtype=torch.float64) - 1 / 9
    there, moved = kernel(x, x), kernel(x + 3.7, x + 3.7)
    assert torch.allclose(moved, there, rtol=1e-10) == kernel.shift_invariant
    assert torch.allclose(h @ moved @ h, h @ there @ h, rtol=1e-9) == kernel.centering_safe


def test_batches_are_computed_one_by_one(kernel, dtype):
    x, y = sample(12, dtype).view(3, 4, COLUMNS), sample(15, dtype, seed=1).view(3, 5, COLUMNS)
    one_by_one = torch.stack([kernel(a, b) for a, b in zip(x, y)])
    torch.testing.assert_close(kernel(x, y), one_by_one, rtol=rounding(dtype), atol=rounding(dtype))
    torch.testing.assert_close(
        torch.vmap(kernel)(x, y), one_by_one, rtol=rounding(dtype), atol=rounding(dtype)
    )
    assert kernel.diagonal(x).shape == (3, 4)


def test_kernels_are_differentiable(kernel):
    x, y = (
        sample(4, torch.float64).requires_grad_(),
        sample(3, torch.float64, seed=1).requires_grad_(),
    )
    assert torch.autograd.gradcheck(kernel.shifted, (x, y))
    assert torch.autograd.gradcheck(kernel, (x, y))


# --- the formulae
# -------------------------------------------------------------------------------------------


def test_squared_distances_hold_their_digits_far_from_zero(dtype):
    x = sample(50, dtype)
    exact = (x.double()[:, None] - x.double()[None]).square().sum(-1)
    far = (x + 1024).to(dtype)
    exact_far = (far.double()[:, None] - far.double()[None]).square().sum(-1)
    tolerance = 20 * torch.finfo(dtype).eps * exact.max().item()
    torch.testing.assert_close(squared_distances(x, x).double(), exact, rtol=0, atol=tolerance)
    torch.testing.assert_close(
        squared_distances(far, far).double(), exact_far, rtol=0, atol=tolerance
    )


@pytest.mark.parametrize(
    "make",
    [
        *(lambda b=b: Gaussian(b) for b in (0.0, -1, math.nan, math.inf, "1", True, torch.ones(2))),
        *(
            lambda factor=factor: Gaussian(1.0) * factor
            for factor in (-1, math.inf, math.nan, "2", True, None)
        ),
        lambda: PerColumn((Gaussian(1.0), Gaussian(1.0)))(torch.ones(2, 3), torch.ones(2, 3)),
        lambda: Gaussian(1.0) + 1.0,
        lambda: median_bandwidth(np.array([0.0, 0.0, 0.0, 0.0, 1.0])),  # six of ten pairs coincide
        lambda: per_column_gaussians(np.array([[1.0, 1.0], [2.0, 1.0]])),
    ],
)
def test_what_makes_no_kernel_is_refused(make):
    with pytest.raises((ValueError, TypeError)):
        make()


# --- the median bandwidth
# -----------------------------------------------------------------------------------


def lower_median(x: np.ndarray) -> float:
    distances = sorted(float(np.linalg.norm(a - b)) for a, b in combinations(x, 2))
    return distances[(len(distances) - 1) // 2]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 30])
def test_median_bandwidth_is_the_lower_median_off_the_diagonal(n, dtype):
    x = sample(n, dtype, seed=n)
    assert median_bandwidth(x) == approx(lower_median(x.double().numpy()), abs=0, rel=1e-12)


def test_median_bandwidth_with_ties_counts_them():
    assert median_bandwidth([0.0, 0.0, 1.0, 5.0]) == 1.0  # of 0, 1, 1, 4, 5, 5


def test_median_bandwidth_of_many_rows_is_that_of_a_fixed_subsample():
    x = sample(3000, torch.float64)
    exact = float(torch.pdist(x).median())  # the lower one
    chosen = torch.randperm(3000, generator=torch.Generator().manual_seed(0))[:2048]
    assert (
        median_bandwidth(x)
        == median_bandwidth(x)
        == approx(float(torch.pdist(x[chosen]).median()), abs=0, rel=1e-12)
    )
    assert median_bandwidth(x) == approx(exact, abs=0, rel=0.1)
    assert median_bandwidth(x) != exact


def test_none_means_one_gaussian_for_all_columns_and_the_product_is_asked_for_by_name():
    x = sample(20, torch.float64)
    assert gaussian_at_median(x).bandwidth == approx(lower_median(x.numpy()), abs=0, rel=1e-12)
    columns = [lower_median(c.numpy()) for c in x.mT[:, :, None]]
    assert [k.bandwidth for k in per_column_gaussians(x).kernels] == approx(
        columns, abs=0, rel=1e-12
    )
