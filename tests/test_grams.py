"""HSIC of Gram matrices against its definition as sums over rows, its identities, and matrices as
operators.
"""

from itertools import permutations, product

import pytest
import torch
from pytest import approx

from frhsic.dependence.grams import (
    centered_gram,
    hsic_biased_from_gram,
    hsic_unbiased_from_gram,
    hsic_weighted_from_gram,
    pivoted_cholesky,
)
from frhsic.dependence.tiles import Gram, is_nearly_constant
from frhsic.kernels import Gaussian, HalfDistance, InverseMultiquadric, Laplacian, Linear

KERNELS = [
    Gaussian(0.7),
    Laplacian(1.3),
    InverseMultiquadric(0.5),
    Linear(),
    Linear() + Gaussian(2.0),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def pair_of(n, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    z = torch.randn(n, 2, generator=g, dtype=torch.float64)
    s = z[:, :1] ** 2 + torch.randn(n, 1, generator=g, dtype=torch.float64) / 2
    return Gaussian(1.0)(z, z).to(dtype), Laplacian(1.0)(s, s).to(dtype)


def some_weights(n, dtype=torch.float64):
    w = torch.arange(1, n + 1, dtype=dtype)
    return w / w.sum()


def close(dtype):
    return 2e-5 if dtype == torch.float32 else 1e-12


def by_definition(k, l, w):
    """Sum over all quadruples of K_ij (L_ij + L_qr - 2 L_iq): joint, product and cross term."""
    k, l, w = k.tolist(), l.tolist(), w.tolist()
    rows = range(len(w))
    return sum(
        w[i] * w[j] * w[q] * w[r] * k[i][j] * (l[i][j] + l[q][r] - 2 * l[i][q])
        for i, j, q, r in product(rows, repeat=4)
    )


def over_distinct_quadruples(k, l):
    k, l = k.tolist(), l.tolist()
    terms = [
        k[i][j] * (l[i][j] + l[q][r] - 2 * l[i][q]) for i, j, q, r in permutations(range(len(k)), 4)
    ]
    return sum(terms) / len(terms)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_biased_and_weighted_are_means_over_all_quadruples(n, dtype):
    k, l = pair_of(n, dtype)
    uniform, w = torch.full((n,), 1 / n, dtype=dtype), some_weights(n, dtype)
    assert hsic_biased_from_gram(k, l).item() == approx(
        by_definition(k, l, uniform), abs=0, rel=close(dtype)
    )
    assert hsic_weighted_from_gram(k, l, w).item() == approx(
        by_definition(k, l, w), abs=0, rel=close(dtype)
    )


@pytest.mark.parametrize("n", [4, 5, 7])
def test_unbiased_is_the_mean_over_distinct_quadruples(n, dtype):
    k, l = pair_of(n, dtype)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-14
    assert hsic_unbiased_from_gram(k, l).item() == approx(
        over_distinct_quadruples(k, l), abs=tolerance
    )


def test_centering_is_multiplication_by_the_projection_on_both_sides(dtype):
    k, _ = pair_of(9, dtype)
    h = torch.eye(9, dtype=dtype) - 1 / 9
    torch.testing.assert_close(centered_gram(k), h @ k @ h, rtol=0, atol=close(dtype))


def test_linear_hsic_is_the_squared_norm_of_the_covariance(dtype):
    z, s = torch.randn(2, 40, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    covariance = (z - z.mean(0)).T @ (s - s.mean(0)) / 40
    assert hsic_biased_from_gram(z @ z.T, s @ s.T).item() == approx(
        covariance.square().sum().item(), abs=0, rel=10 * close(dtype)
    )


STATISTICS = {
    "biased": hsic_biased_from_gram,
    "unbiased": hsic_unbiased_from_gram,
    "weighted": lambda k, l: hsic_weighted_from_gram(k, l, some_weights(k.shape[-1], k.dtype)),
}


@pytest.fixture(params=STATISTICS, name="statistic")
def _statistic(request):
    return STATISTICS[request.param]


def test_constants_added_to_kernels_do_not_matter(statistic):
    k, l = pair_of(12)
    assert statistic(k - 1, l + 7).item() == approx(statistic(k, l).item(), abs=0, rel=1e-11)


def test_batches_and_vmap_give_one_value_for_each_pair(statistic, dtype):
    pairs = [pair_of(8, dtype, seed) for seed in range(6)]
    k, l = (torch.stack(side).view(2, 3, 8, 8) for side in zip(*pairs))
    expected = torch.stack([statistic(*pair) for pair in pairs]).view(2, 3)
    torch.testing.assert_close(statistic(k, l), expected)
    torch.testing.assert_close(torch.vmap(torch.vmap(statistic))(k, l), expected)
    torch.testing.assert_close(
        torch.vmap(statistic, in_dims=(0, None))(k[0], l[0, 0]),
        torch.stack([statistic(m, l[0, 0]) for m in k[0]]),
    )


def test_statistics_of_gram_matrices_are_differentiable(statistic):
    z = torch.randn(
        6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True
    )
    _, l = pair_of(6)
    assert torch.autograd.gradcheck(lambda z: statistic(Gaussian(1.0)(z, z), l), (z,))
    assert torch.autograd.gradgradcheck(lambda z: statistic(Gaussian(1.0)(z, z), l), (z,))


def rows(n, d, dtype=torch.float64, seed=0):
    return torch.randn(n, d, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@each_kernel
def test_the_whole_factor_gives_the_matrix_back(kernel, dtype):
    x = rows(40, 2, dtype)
    factor, left = pivoted_cholesky(kernel, x, tolerance=0.0)
    scale = float(kernel.diagonal(x).max())
    assert torch.allclose(
        factor @ factor.T, kernel(x, x), atol=scale * (3e-5 if dtype is torch.float32 else 1e-12)
    )
    assert left <= (1e-5 if dtype is torch.float32 else 1e-13)


@each_kernel
def test_what_is_left_out_is_positive_and_its_trace_is_as_said(kernel):
    x = rows(60, 2)
    gram = kernel(x, x)
    for rank in (1, 2, 5, 20):
        factor, left = pivoted_cholesky(kernel, x, max_rank=rank)
        remainder = gram - factor @ factor.T
        assert factor.shape[1] <= rank
        assert float(remainder.trace() / gram.trace()) == pytest.approx(left, abs=1e-13)
        assert float(torch.linalg.eigvalsh(remainder)[0]) > -1e-12 * float(gram.trace())


@pytest.mark.parametrize("name", ["continuous", "clusters", "far off", "mostly ties"])
def test_tiles_of_half_distances_are_those_by_subtraction(name):
    rows = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if name == "clusters":
        rows = rows.sign() + 1e-6 * rows
        rows[1] = rows[0]
    if name == "far off":
        rows[7:9] += 1e6
    if name == "mostly ties":
        rows = rows.sign()
    gram = Gram(rows, HalfDistance(), shifted=False, factor=None)
    tile = gram.tile(slice(0, 30), slice(10, 40))
    norms = gram.diagonal()
    distances = norms[:30, None] + norms[None, 10:] - 2 * tile
    exact = torch.linalg.vector_norm(rows[:30, None] - rows[None, 10:], dim=-1)
    # the norms cancel, and leave as many digits of the distance as they are longer than it
    allowed = 1e-10 * exact + 1e-15 * (norms[:30, None] + norms[None, 10:])
    assert ((distances - exact).abs() <= allowed).all()


@pytest.mark.parametrize(
    ("exponent", "flat"), [(1.9e-3, True), (2.1e-3, False)], ids=["flat", "curved"]
)
def test_a_kernel_is_nearly_constant_if_its_values_differ_by_less_than_a_thousandth(exponent, flat):
    """Two values of x, each in half of the rows: k - 1 is 0 or -d² / 2, its deviation half that."""
    x = torch.arange(128, dtype=torch.float64)[:, None] % 2 * (2 * exponent) ** 0.5
    assert is_nearly_constant(x, Gaussian(1.0)) == flat
    assert is_nearly_constant(1e-3 * x, InverseMultiquadric(1.0))
    assert not is_nearly_constant(1e-9 * x, Linear())


@pytest.mark.parametrize(
    ("n", "levels", "columns"), [(513, 3, 3), (512, 3, None), (1030, 16, 16), (1030, 17, None)]
)
def test_few_far_values_have_a_factor_of_one_column_each_from_513_rows_on(n, levels, columns):
    x = 100.0 * (torch.arange(n, dtype=torch.float64)[:, None] % levels)
    factor = Gram.from_rows(x, Gaussian(1.0)).factor
    assert (None if factor is None else factor.shape[1]) == columns
