"""HSIC of Gram matrices against its definition as sums over rows, and its identities."""

from __future__ import annotations

from itertools import permutations, product

import pytest
import torch
from pytest import approx

from frhsic.dependence.grams import centered, hsic_biased, hsic_unbiased, hsic_weighted
from frhsic.kernels import Gaussian, Laplacian


def grams(n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2, generator=g, dtype=torch.float64)
    s = z[:, :1] ** 2 + torch.randn(n, 1, generator=g, dtype=torch.float64) / 2
    return Gaussian(1.0)(z, z).to(dtype), Laplacian(1.0)(s, s).to(dtype)


def some_weights(n: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    w = torch.arange(1, n + 1, dtype=dtype)
    return w / w.sum()


def close(dtype: torch.dtype) -> float:
    return 2e-5 if dtype == torch.float32 else 1e-12


def by_definition(k: torch.Tensor, l: torch.Tensor, w: torch.Tensor) -> float:
    """Sum over all quadruples of K_ij (L_ij + L_qr - 2 L_iq): joint, product and cross term."""
    k, l, w = k.tolist(), l.tolist(), w.tolist()
    rows = range(len(w))
    return sum(
        w[i] * w[j] * w[q] * w[r] * k[i][j] * (l[i][j] + l[q][r] - 2 * l[i][q])
        for i, j, q, r in product(rows, repeat=4)
    )


def over_distinct_quadruples(k: torch.Tensor, l: torch.Tensor) -> float:
    k, l = k.tolist(), l.tolist()
    terms = [k[i][j] * (l[i][j] + l[q][r] - 2 * l[i][q]) for i, j, q, r in permutations(range(len(k)), 4)]
    return sum(terms) / len(terms)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_biased_and_weighted_are_means_over_all_quadruples(n, dtype):
    k, l = grams(n, dtype)
    uniform, w = torch.full((n,), 1 / n, dtype=dtype), some_weights(n, dtype)
    assert hsic_biased(k, l).item() == approx(by_definition(k, l, uniform), abs=0, rel=close(dtype))
    assert hsic_weighted(k, l, w).item() == approx(by_definition(k, l, w), abs=0, rel=close(dtype))


@pytest.mark.parametrize("n", [4, 5, 7])
def test_unbiased_is_the_mean_over_distinct_quadruples(n, dtype):
    k, l = grams(n, dtype)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-14
    assert hsic_unbiased(k, l).item() == approx(over_distinct_quadruples(k, l), abs=tolerance)


def test_centering_is_multiplication_by_the_projection_on_both_sides(dtype):
    k, _ = grams(9, dtype)
    h = torch.eye(9, dtype=dtype) - 1 / 9
    torch.testing.assert_close(centered(k), h @ k @ h, rtol=0, atol=close(dtype))


def test_linear_hsic_is_the_squared_norm_of_the_covariance(dtype):
    z, s = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    covariance = (z - z.mean(0)).T @ (s - s.mean(0)) / 40
    assert hsic_biased(z @ z.T, s @ s.T).item() == approx(
        covariance.square().sum().item(), abs=0, rel=10 * close(dtype)
    )


STATISTICS = {
    "biased": hsic_biased,
    "unbiased": hsic_unbiased,
    "weighted": lambda k, l: hsic_weighted(k, l, some_weights(k.shape[-1], k.dtype)),
}


@pytest.fixture(params=STATISTICS, name="statistic")
def _statistic(request):
    return STATISTICS[request.param]


def test_constants_added_to_kernels_do_not_matter(statistic):
    k, l = grams(12)
    assert statistic(k - 1, l + 7).item() == approx(statistic(k, l).item(), abs=0, rel=1e-11)


def test_batches_and_vmap_give_one_value_for_each_pair(statistic, dtype):
    pairs = [grams(8, dtype, seed) for seed in range(6)]
    k, l = (torch.stack(side).view(2, 3, 8, 8) for side in zip(*pairs))
    expected = torch.stack([statistic(*pair) for pair in pairs]).view(2, 3)
    torch.testing.assert_close(statistic(k, l), expected)
    torch.testing.assert_close(torch.vmap(torch.vmap(statistic))(k, l), expected)
    torch.testing.assert_close(
        torch.vmap(statistic, in_dims=(0, None))(k[0], l[0, 0]), torch.stack([statistic(m, l[0, 0]) for m in k[0]])
    )


def test_statistics_of_gram_matrices_are_differentiable(statistic):
    z = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    _, l = grams(6)
    assert torch.autograd.gradcheck(lambda z: statistic(Gaussian(1.0)(z, z), l), (z,))
    assert torch.autograd.gradgradcheck(lambda z: statistic(Gaussian(1.0)(z, z), l), (z,))
