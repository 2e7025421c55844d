"""Tests of independence: the definition by enumeration, ties, level, power, and what they refuse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from frhsic.dependence import hsic
from frhsic.dependence._gram import Gram
from frhsic.dependence.grams import centered, hsic_biased, hsic_unbiased
from frhsic.dependence.moments import own_sums, pair_sums, product_rows, squared_products
from frhsic.independence import (
    IndependenceResult,
    _permutations,
    aggregated_test,
    gamma_test,
    permutation_test,
)
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence.null_moments import permutation_mean_variance, permutation_third_moment
from frhsic.kernels import (
    Column,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    PerColumn,
    gaussian_at_median,
    median_bandwidth,
    per_column_gaussians,
)


def approx(expected: float, **tolerance: float) -> object:
    """Compare relatively: pytest's own absolute slack of 1e-12 would hide errors in small numbers."""
    return pytest.approx(expected, **{"rel": 1e-9, "abs": 0.0} | tolerance)


KERNELS: list[tuple[Kernel, Kernel]] = [
    (Gaussian(1.0), Gaussian(0.3)),
    (Laplacian(1.0), InverseMultiquadric(0.5)),
    (Linear(), Gaussian(1.0)),
    (Linear() + Gaussian(1.0), Laplacian(2.0)),
    (Gaussian(1e4), Gaussian(1e4)),
]


def rows(n: int, d: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def grams(z: Tensor, s: Tensor, k: Kernel, l: Kernel) -> tuple[Tensor, Tensor]:
    return k.shifted(z.double(), z.double()), l.shifted(s.double(), s.double())


def all_permuted(k: Tensor, l: Tensor) -> np.ndarray:
    """HSIC under every one of the n! permutations, by the definition."""
    n = len(k)
    return np.array([float(hsic_biased(k, l[list(p)][:, list(p)])) for p in itertools.permutations(range(n))])


def null_of(z: Tensor, s: Tensor, k: Kernel | None = None, l: Kernel | None = None) -> object:
    return gram_pair(z, s, k, l, least=4, what="this test")


# ---------------------------------------------------------------- sums by tiles


@pytest.mark.parametrize(("k", "l"), KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_the_sums_of_one_pass_are_those_of_the_centred_gram_matrices(k: Kernel, l: Kernel) -> None:
    z, s = rows(700, 3, 0), rows(700, 1, 1)  # more than one tile
    a, b = (centered(gram) for gram in grams(z, s, k, l))
    of_z, of_s = Gram.of(z, k), Gram.of(s, l)
    sums = pair_sums(of_z, of_s)
    # flat kernels: the entries of K̃ are 1e-8 and its diagonal is a difference of such, hence the absolute part
    close = {"rel": 1e-9, "abs": 1e-24}
    for found, gram in ((sums.k.centered, a), (sums.l.centered, b)):
        assert float(found.trace) == approx(float(gram.diagonal().sum()), **close)
        assert float(found.squares) == approx(float(gram.square().sum()), **close)
        assert float(found.diagonal.square().sum()) == approx(float(gram.diagonal().square().sum()), **close)
    assert float(sums.centered_joint) == approx(float((a * b).sum()), **close)
    product = a * b
    of_rows, squares = product_rows(of_z, of_s, sums), squared_products(of_z, of_s, sums)
    torch.testing.assert_close(of_rows, product.sum(1), rtol=1e-8, atol=1e-22)
    assert float(squares) == approx(float(product.square().sum() - product.diagonal().square().sum()), rel=1e-9)
    k_gram, l_gram = grams(z, s, k, l)
    assert float(sums.unbiased) == approx(float(hsic_unbiased(k_gram, l_gram)), rel=1e-6, abs=1e-22)


@pytest.mark.parametrize("columns", [1, 5])
def test_the_cubic_sums_are_those_of_the_centred_gram_matrix(columns: int) -> None:
    z, s = rows(1100, columns, 0), rows(1100, 1, 1)  # more than one panel
    a = centered(grams(z, s, Gaussian(1.0), Linear())[0])
    d = a.diagonal()
    of_z = Gram.of(z, Gaussian(1.0))
    assert (of_z.factor is not None) == (columns == 1)
    found, square_rows = own_sums(of_z, pair_sums(of_z, Gram.of(s, Linear())).k)
    assert square_rows is not None
    torch.testing.assert_close(square_rows, (a * a).sum(1), rtol=1e-9, atol=1e-12)
    assert float(found.trace) == approx(float((a @ a @ a).trace()), rel=1e-10)
    assert float(found.entries) == approx(float((a**3).sum()), rel=1e-10)
    assert float(found.diagonal) == approx(float((d**3).sum()), rel=1e-10)
    assert float(found.diagonal_squares) == approx(float(d @ (a @ a).diagonal()), rel=1e-10)
    assert float(found.quadratic) == approx(float(d @ a @ d), rel=1e-10)


@pytest.mark.parametrize(("d", "q"), [(1, 1), (1, 5), (5, 1)])
def test_thin_factors_give_the_sums_that_tiles_give(d: int, q: int) -> None:
    z, s = rows(1500, d, 0), rows(1500, q, 1)
    k, l = Gram.of(z, Gaussian(1.0)), Gram.of(s, Gaussian(1.0))
    assert (k.factor is not None, l.factor is not None) == (d == 1, q == 1)
    thin, tiled = pair_sums(k, l), pair_sums(replace(k, factor=None), replace(l, factor=None))
    assert float(thin.centered_joint) == approx(float(tiled.centered_joint), rel=1e-11)
    assert float(thin.unbiased) == approx(float(tiled.unbiased), rel=1e-8)  # near zero: the digits are the sums'
    for a, b in ((thin.k.centered, tiled.k.centered), (thin.l.centered, tiled.l.centered)):
        assert float(a.squares) == approx(float(b.squares), rel=1e-11)
        assert float(a.trace) == approx(float(b.trace), rel=1e-11)
        torch.testing.assert_close(a.diagonal, b.diagonal, rtol=1e-10, atol=1e-14)


# ---------------------------------------------------------------- moments of the null


@pytest.mark.parametrize("n", [4, 5, 6])
@pytest.mark.parametrize(("k", "l"), KERNELS[:4], ids=lambda kernel: type(kernel).__name__)
def test_the_permutation_moments_are_those_of_all_permutations(n: int, k: Kernel, l: Kernel) -> None:
    z, s = rows(n, 2, n), rows(n, 1, 10 + n).exp()
    values = all_permuted(*grams(z, s, k, l))
    data = null_of(z, s, k, l)
    mean, variance = data.permutation_mean_variance()
    assert mean == approx(values.mean(), rel=1e-10)
    assert variance == approx(values.var(), rel=1e-8)


@pytest.mark.parametrize("n", [6, 7])
def test_pearson_matches_the_skewness_of_all_permutations(n: int) -> None:
    z, s = rows(n, 2, n), rows(n, 1, 10 + n).exp()
    values = all_permuted(*grams(z, s, Gaussian(1.0), Linear()))
    result = gamma_test(z, s, Gaussian(1.0), Linear(), moments="pearson")
    reference = stats.pearson3(skew=stats.skew(values), loc=values.mean(), scale=values.std())
    assert result.pvalue == approx(float(reference.sf(result.statistic)), rel=1e-8)
    assert result.threshold == approx(float(reference.isf(0.05)), rel=1e-8)


def test_large_samples_do_not_overflow() -> None:
    """n(n-1)(n-2)(n-3) leaves 64 bits above n = 55,000; here n is 200,000, and the moments those of H ⊗ H."""
    n = 200_000
    h = (n - 1.0, n - 1.0, (n - 1.0) ** 2 / n)
    mean, variance = permutation_mean_variance(h, h, n)
    assert mean == approx(n - 1.0)
    assert math.sqrt(variance) <= 1e-6 * mean
    t = n - 1.0
    invariants = (t**3, t * t, t * t * t / n, t, (t**3 - t) / n**2, t**3 / n**2, t * t / n, 0.0)
    assert permutation_third_moment(invariants, invariants, n) == approx(t**3, rel=1e-9)


def test_grettons_moments_are_those_of_the_formulae_for_whole_matrices() -> None:
    """The formulae of Gretton et al. (2007), evaluated on whole Gram matrices with loops over pairs."""
    n = 30
    z, s = rows(n, 2, 3), rows(n, 1, 4)
    k, l = Gaussian(1.0), Gaussian(0.5)
    k_gram, l_gram = k(z, z), l(s, s)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    mu_k = sum(float(k_gram[i, j]) for i, j in pairs) / len(pairs)
    mu_l = sum(float(l_gram[i, j]) for i, j in pairs) / len(pairs)
    a, b = centered(k_gram), centered(l_gram)
    spread = sum(float(a[i, j] * b[i, j]) ** 2 for i, j in pairs) / len(pairs)
    mean = (1 + mu_k * mu_l - mu_k - mu_l) / n
    variance = spread * 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    result = gamma_test(z, s, k, l, moments="gretton")
    assert result.null_mean == approx(mean, rel=1e-10)
    assert result.null_standard_deviation == approx(math.sqrt(variance), rel=1e-10)
    reference = stats.gamma(mean**2 / variance, scale=variance / mean)
    assert result.pvalue == approx(float(reference.sf(result.statistic)), rel=1e-9)
    assert result.threshold == approx(float(reference.isf(0.05)), rel=1e-9)


def test_grettons_moments_refuse_kernels_without_a_unit_diagonal() -> None:
    z = rows(20, 1, 0)
    with pytest.raises(ValueError, match=r"kernel_s is Linear\(\).*moments='permutation'"):
        gamma_test(z, z, Gaussian(1.0), Linear(), moments="gretton")


# ---------------------------------------------------------------- permutations


WAYS = ["_by_factors", "_by_one_factor", "_by_entries"]


def statistics_by(way: str, data: object, order: Tensor) -> Tensor:
    """T under given permutations, computed in the way that is named."""
    k = _permutations._side(data.k, data.sums.k)
    l = _permutations._side(data.l, data.sums.l)
    if way == "_by_factors":
        return _permutations._by_factors(k.factor, l.factor, 0.0).statistics(order)
    if way == "_by_entries":
        return _permutations._by_entries(k, l).statistics(order)
    by_l = _permutations._by_one_factor(l.factor, k, 0.0, inverted=False).statistics(order)
    by_k = _permutations._by_one_factor(k.factor, l, 0.0, inverted=True).statistics(order)
    torch.testing.assert_close(by_k, by_l, rtol=1e-8, atol=0)
    return by_l


@pytest.mark.parametrize("dense", [True, False], ids=["whole", "tiles"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_permuting_gives_hsic_of_the_permuted_rows(
    way: str, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 600
    if not dense:
        monkeypatch.setattr(_permutations, "DENSE_ROWS", 0)
    z, s = rows(n, 1, 0), rows(n, 1, 1)
    data = null_of(z, s, Gaussian(1.0), Gaussian(1.5))
    order = torch.stack([torch.randperm(n, generator=torch.Generator().manual_seed(i)) for i in range(4)])
    k, l = grams(z, s, Gaussian(1.0), Gaussian(1.5))
    expected = torch.stack([hsic_biased(k, l[p][:, p]) for p in order])
    torch.testing.assert_close(statistics_by(way, data, order) / n**2, expected, rtol=1e-8, atol=0)


@pytest.mark.parametrize(
    ("d_z", "d_s", "way"),
    [(1, 1, "_by_factors"), (20, 1, "_by_one_factor"), (1, 20, "_by_one_factor"), (20, 20, "_by_entries")],
)
def test_the_way_is_chosen_by_what_is_thin_and_its_error_is_within_the_bound(d_z: int, d_s: int, way: str) -> None:
    n = 400
    z, s = rows(n, d_z, 0), rows(n, d_s, 1)
    data = null_of(z, s)
    chosen = _permutations.cheapest_algorithm(data)
    assert way in chosen.statistics.__qualname__
    p = torch.randperm(n, generator=torch.Generator().manual_seed(3))
    k, l = grams(z, s, data.k.kernel, data.l.kernel)
    exact = float((centered(k) * l[p][:, p]).sum())
    rounding = 1e-12 * data.magnitude
    assert abs(float(chosen.statistics(p[None])) - exact) <= chosen.error + rounding
    assert chosen.error <= 1e-6 * exact


def test_a_factor_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second column has a ten-thousandth of the variance; one axis is enough for a tolerance above that."""
    monkeypatch.setattr(_permutations, "TOLERANCE", 1e-3)
    monkeypatch.setattr("frhsic.dependence._gram.FEW_ROWS", 8)
    z = torch.tensor([[a, b] for a in (-1.0, 1.0) for b in (-0.01, 0.01)], dtype=torch.float64).repeat(5, 1)
    data = null_of(z, z, Linear(), Linear())
    side = _permutations._side(data.k, data.sums.k)
    assert side.columns == 1
    assert float(side.factor.square().sum()) == approx(20.0)
    assert side.left_out == approx(20 * 1e-4)
    way = _permutations.cheapest_algorithm(data)
    assert way.error == approx(2 * side.left_out * side.norm)


def test_rows_of_single_precision_are_marked_as_such(dtype: torch.dtype) -> None:
    """A GPU sums these in single precision."""
    data = null_of(rows(9, 2, 0, dtype), rows(9, 1, 1, dtype))
    assert data.k.single == data.l.single == (dtype == torch.float32)
    assert data.k.x.dtype == data.l.x.dtype == torch.float64


@pytest.mark.parametrize("d", [1, 20])
def test_the_pvalue_is_that_of_the_permutations_drawn_one_by_one(d: int, dtype: torch.dtype) -> None:
    n, resamples = 60, 99
    z, s = rows(n, d, 2, dtype), rows(n, 1, 1, dtype)
    k, l = gaussian_at_median(z), gaussian_at_median(s)
    result = permutation_test(z, s, resamples=resamples, random_state=5)
    k_gram, l_gram = grams(z, s, k, l)
    draw = torch.Generator().manual_seed(5)
    orders = [torch.randperm(n, generator=draw) for _ in range(resamples)]
    null = np.array([float(hsic_biased(k_gram, l_gram[p][:, p])) for p in orders])
    observed = float(hsic_biased(k_gram, l_gram))
    assert result.pvalue == (1 + (null >= observed).sum()) / 100
    assert result.threshold == approx(np.sort(null)[-5], rel=1e-8)
    assert result.seed == 5
    assert result.statistic == approx(observed, rel=1e-10)


def test_the_block_of_permutations_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    z, s = rows(100, 1, 0), rows(100, 1, 1)
    first = permutation_test(z, s, resamples=199, random_state=3)
    monkeypatch.setattr(_permutations, "BLOCK_ENTRIES", 1)
    assert permutation_test(z, s, resamples=199, random_state=3).pvalue == first.pvalue
    assert permutation_test(z, s, resamples=199, random_state=4).pvalue != first.pvalue


def test_the_seed_in_the_result_repeats_it() -> None:
    z, s = rows(50, 1, 0), rows(50, 1, 1)
    first = permutation_test(z, s, resamples=99)
    assert permutation_test(z, s, resamples=99, random_state=first.seed) == first


@pytest.mark.parametrize("test", [permutation_test, aggregated_test])
@pytest.mark.parametrize("make", [lambda: torch.Generator().manual_seed(5), lambda: np.random.default_rng(5)])
def test_a_generator_that_was_used_before_gives_a_seed_that_repeats_the_result(test, make) -> None:
    z, s, used = rows(50, 1, 0), rows(50, 1, 1), make()
    first, second = (test(z, s, resamples=99, random_state=used) for _ in range(2))
    assert first.threshold != second.threshold
    assert test(z, s, resamples=99, random_state=second.seed) == second


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-3, 1e5])
def test_ties_are_counted(scale: float) -> None:
    """Two binary variables: T takes few values, and those equal to the observed one but for rounding are ties.

    The statistic depends on the number of joint ones alone, so the exact p-value is a sum of hypergeometric
    probabilities over the tables whose squared covariance is at least the observed one.
    """
    n, ones_z, ones_s, both = 20, 10, 8, 6
    z = torch.zeros(n, dtype=torch.float64)
    s = torch.zeros(n, dtype=torch.float64)
    z[:ones_z] = scale
    s[:both] = scale
    s[ones_z : ones_z + ones_s - both] = scale

    def squared(table: int) -> float:
        return (table / n - ones_z * ones_s / n**2) ** 2

    tables = stats.hypergeom(n, ones_z, ones_s)
    exact = sum(float(tables.pmf(t)) for t in range(ones_s + 1) if squared(t) >= squared(both) - 1e-12)
    resamples = 4999
    result = permutation_test(z, s, Gaussian(0.7 * scale), Gaussian(1.1 * scale), resamples=resamples, random_state=0)
    assert abs(result.pvalue - exact) <= 4 * math.sqrt(exact * (1 - exact) / resamples) + 1 / resamples


def test_threshold_and_pvalue_say_the_same() -> None:
    for seed in range(25):
        z, s = rows(30, 1, seed), rows(30, 1, 1000 + seed)
        for result in (
            gamma_test(z, s, level=0.3),
            gamma_test(z, s, level=0.3, moments="gretton"),
            gamma_test(z, s, level=0.3, moments="pearson"),
            permutation_test(z, s, level=0.3, resamples=99, random_state=seed),
            aggregated_test(z, s, level=0.3, resamples=99, random_state=seed),
        ):
            assert result.rejected == (result.statistic > result.threshold)


def test_the_aggregated_test_is_the_largest_standardised_value_over_the_same_permutations() -> None:
    """By whole Gram matrices, and standardised by enumeration of all permutations rather than by the formula."""
    n, resamples = 6, 99
    z, s = rows(n, 1, 2), rows(n, 1, 3)
    pairs = [(Gaussian(1.0), Gaussian(0.5)), (Laplacian(2.0), Gaussian(1.0)), (Linear(), Linear())]
    draw = torch.Generator().manual_seed(7)
    orders = [torch.randperm(n, generator=draw) for _ in range(resamples)]
    observed, null, moments = [], [], []
    for k, l in pairs:
        k_gram, l_gram = grams(z, s, k, l)
        every = all_permuted(k_gram, l_gram)
        moments.append((every.mean(), every.std()))
        observed.append((float(hsic_biased(k_gram, l_gram)) - every.mean()) / every.std())
        permuted = np.array([float(hsic_biased(k_gram, l_gram[p][:, p])) for p in orders])
        null.append((permuted - every.mean()) / every.std())
    largest, best = np.max(null, axis=0), int(np.argmax(observed))
    result = aggregated_test(z, s, pairs, resamples=resamples, random_state=7)
    assert result.pvalue == (1 + (largest >= observed[best] - 1e-9).sum()) / 100
    assert result.kernels == (repr(pairs[best][0]), repr(pairs[best][1]))
    mean, deviation = moments[best]
    assert result.threshold == approx(mean + deviation * np.sort(largest)[-5], rel=1e-8)


def test_the_aggregated_test_of_one_pair_is_the_permutation_test() -> None:
    for seed in range(5):
        z, s = rows(40, 2, seed), rows(40, 1, 50 + seed)
        k, l = gaussian_at_median(z), gaussian_at_median(s)
        one = aggregated_test(z, s, [(k, l)], resamples=199, random_state=seed)
        plain = permutation_test(z, s, k, l, resamples=199, random_state=seed)
        assert (one.pvalue, one.statistic) == (plain.pvalue, plain.statistic)
        assert one.threshold == approx(plain.threshold, rel=1e-10)


def test_a_pair_of_kernels_that_sees_nothing_does_not_matter() -> None:
    """Every two rows are far apart on the scale of the kernel, so all permutations have the same HSIC."""
    z = rows(40, 1, 0)
    s = 0.3 * z + rows(40, 1, 50)
    blind = (Gaussian(1e-9), Gaussian(1e-9))
    both = aggregated_test(z, s, [blind, (Linear(), Linear())], resamples=99, random_state=0)
    one = aggregated_test(z, s, [(Linear(), Linear())], resamples=99, random_state=0)
    alone = aggregated_test(z, s, [blind], resamples=99, random_state=0)
    assert alone.pvalue == 1
    assert both.kernels == one.kernels
    assert both.pvalue == one.pvalue < 0.2


def test_the_aggregated_test_sees_what_one_bandwidth_does_not() -> None:
    """A fast wave: nothing at the median bandwidth, plain at a quarter of it."""
    z = rows(200, 1, 0)
    s = torch.cos(8 * z) + 0.2 * rows(200, 1, 1)
    narrow = [(Gaussian(c * 0.95), Gaussian(c * 0.95)) for c in (0.1, 0.3, 1.0)]
    assert aggregated_test(z, s, narrow, resamples=199, random_state=0).rejected
    assert not permutation_test(z, s, resamples=199, random_state=0).rejected
    with pytest.raises(ValueError, match="kernels is empty"):
        aggregated_test(z, s, [])


def test_the_default_pairs_each_bandwidth_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    z = rows(60, 1, 0)
    s = z**2 + rows(60, 1, 1)
    of_z, of_s = median_bandwidth(z), median_bandwidth(s)
    grid = [(a, b) for a in (0.5, 1.0, 2.0) for b in (0.5, 1.0, 2.0)]
    for weight, kept in ((1.0, grid), (1e-9, [(a, b) for a, b in grid if a == b])):
        monkeypatch.setattr("frhsic.independence.aggregated.UNEQUAL", weight)
        pairs = [*((Gaussian(a * of_z), Gaussian(b * of_s)) for a, b in kept), (Linear(), Linear())]
        default = aggregated_test(z, s, resamples=99, random_state=3)
        explicit = aggregated_test(z, s, pairs, resamples=99, random_state=3)
        assert (default.pvalue, default.kernels) == (explicit.pvalue, explicit.kernels)
        assert default.threshold == approx(explicit.threshold, rel=1e-9)


def test_the_aggregated_test_says_how_many_rows_it_drew() -> None:
    z, s = rows(80, 1, 0), rows(80, 1, 1)
    result = aggregated_test(z, s, resamples=19, random_state=0, max_rows=50)
    assert result.n == 50
    assert result.method.endswith("50 of 80 rows")


def test_bandwidths_of_sums_over_columns_are_listed() -> None:
    kernel = Column(Gaussian(2.0), 0) + 3.0 * Column(Gaussian(5.0) * Linear(), 1)
    result = gamma_test(rows(20, 2, 0), rows(20, 2, 1), kernel, PerColumn((Gaussian(1.0), Gaussian(4.0))))
    assert result.bandwidths == ((2.0, 5.0), (1.0, 4.0))


def test_too_few_resamples_never_reject() -> None:
    z = rows(30, 1, 0)
    result = permutation_test(z, z, resamples=18, random_state=0)
    assert (result.threshold, result.rejected) == (math.inf, False)
    assert permutation_test(z, z, resamples=19, random_state=0).rejected


class Watched(Gaussian):
    """A Gaussian kernel that remembers the largest block it was asked for."""

    largest: ClassVar[int] = 0

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        Watched.largest = max(Watched.largest, x.shape[0] * y.shape[0])
        return super().__call__(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        Watched.largest = max(Watched.largest, x.shape[0] * y.shape[0])
        return super().shifted(x, y)


@pytest.mark.parametrize("d", [1, 20])
def test_no_block_grows_with_the_square_of_n(d: int) -> None:
    n = 2500
    z, s = rows(n, d, 0), rows(n, d, 1)
    for test in (gamma_test, lambda *a: permutation_test(*a, resamples=1, random_state=0)):
        Watched.largest = 0
        result = test(z, s, Watched(math.sqrt(d)), Watched(math.sqrt(d)))
        assert 0 < Watched.largest <= 512**2
        assert result.n == n


# ---------------------------------------------------------------- what the result carries


TESTS: list[Callable[..., IndependenceResult]] = [
    gamma_test,
    lambda *a, **o: permutation_test(*a, resamples=199, random_state=0, **o),
]


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_the_statistic_is_hsic_and_the_effect_size_its_cosine(
    test: Callable[..., IndependenceResult], dtype: torch.dtype
) -> None:
    z, s = rows(80, 2, 0, dtype), rows(80, 1, 1, dtype)
    k, l = Gaussian(1.0), Gaussian(0.5)
    k_gram, l_gram = grams(z, s, k, l)
    result = test(z, s, k, l)
    assert float(result) == approx(float(hsic_biased(k_gram, l_gram)), rel=1e-10)
    own = float(hsic_biased(k_gram, k_gram) * hsic_biased(l_gram, l_gram))
    assert result.effect_size == approx(float(result) / math.sqrt(own), rel=1e-9)
    assert test(z, z, k, k).effect_size == approx(1.0, rel=1e-12)
    assert (result.n, result.bandwidths, result.kernels) == (80, ((1.0,), (0.5,)), (repr(k), repr(l)))
    with pytest.raises(FrozenInstanceError):
        result.pvalue = 0.0  # type: ignore[misc]  # the point of this test


def test_the_null_effect_size_is_its_mean_over_permutations() -> None:
    z, s = rows(6, 2, 0), rows(6, 1, 1)
    k_gram, l_gram = grams(z, s, Gaussian(1.0), Gaussian(1.0))
    own = float(hsic_biased(k_gram, k_gram) * hsic_biased(l_gram, l_gram))
    result = gamma_test(z, s, Gaussian(1.0), Gaussian(1.0))
    assert result.effect_size_null == approx(all_permuted(k_gram, l_gram).mean() / math.sqrt(own), rel=1e-10)


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_where_tests_those_rows_alone(test: Callable[..., IndependenceResult]) -> None:
    z, s = rows(90, 2, 0), rows(90, 1, 1)
    y = (rows(90, 1, 2)[:, 0] > 0).double()
    assert test(z, s, where=y) == test(z[y == 1], s[y == 1])
    assert test(z, s, where=y).n == int(y.sum())


def test_conditional_independence_given_y_is_not_independence() -> None:
    """Z and S both follow Y and nothing else: dependent overall, independent on the rows with Y = 1."""
    y = torch.arange(400) % 2
    z, s = rows(400, 1, 0) + 3 * y[:, None], rows(400, 1, 1) + 3 * y[:, None]
    assert gamma_test(z, s).rejected
    assert gamma_test(z, s, where=y).pvalue > 0.01


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_several_attributes_are_tested_jointly(test: Callable[..., IndependenceResult]) -> None:
    """Z depends on the product of two signs, and on neither alone."""
    signs = rows(400, 2, 0).sign()
    s = signs * torch.tensor([1.0, 1000.0], dtype=torch.float64) + rows(400, 2, 1) * torch.tensor(
        [0.1, 100.0], dtype=torch.float64
    )
    z = signs.prod(1) + rows(400, 1, 2)[:, 0]
    result = test(z, s, None, per_column_gaussians(s))
    assert result.rejected
    assert len(result.bandwidths[1]) == 2
    assert not test(z, s[:, 0]).rejected
    assert not test(z, s[:, 1]).rejected


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_a_constant_is_independent_of_everything(test: Callable[..., IndependenceResult]) -> None:
    for kernel in (Gaussian(1.0), Linear()):
        result = test(torch.full((30, 2), 0.1), rows(30, 1, 0), kernel)
        assert (result.pvalue, result.rejected) == (1.0, False)
        assert result.statistic == approx(0, abs=1e-15)


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_row_order_units_and_shift_do_not_matter(test: Callable[..., IndependenceResult]) -> None:
    z, s = rows(70, 2, 0), rows(70, 1, 1)
    moved = test(1000 + 5 * z, 7 - 3 * s)
    assert moved.statistic == approx(test(z, s).statistic, rel=1e-9)
    order = torch.randperm(70, generator=torch.Generator().manual_seed(0))
    assert gamma_test(z[order], s[order]).pvalue == approx(gamma_test(z, s).pvalue, rel=1e-9)
    assert gamma_test(s, z).pvalue == approx(gamma_test(z, s).pvalue, rel=1e-9)


def test_flat_kernels_test_the_covariance() -> None:
    """At a huge bandwidth a Gaussian kernel is 1 − d²/2σ²: the test is that of the linear kernel, to 1/σ²."""
    z, s = rows(60, 2, 0), rows(60, 1, 1)
    flat = gamma_test(z, s, Gaussian(1e5), Gaussian(1e5))
    linear = gamma_test(z, s, Linear(), Linear())
    assert flat.pvalue == approx(linear.pvalue, rel=1e-5)
    assert flat.effect_size == approx(linear.effect_size, rel=1e-5)


def test_both_tests_agree_within_simulation_error() -> None:
    resamples = 1999
    for seed in range(8):
        z, s = rows(300, 3, seed), rows(300, 1, 100 + seed)
        expected = gamma_test(z, s, moments="pearson").pvalue
        found = permutation_test(z, s, resamples=resamples, random_state=seed).pvalue
        # the gamma is an approximation: .01 beside four standard errors of the simulation
        assert abs(found - expected) <= 4 * math.sqrt(expected * (1 - expected) / resamples) + 0.01


def test_statistic_and_pvalue_agree_with_causal_learn() -> None:
    """KCI_UInd(est_width="manual", kwidthx=1, kwidthy=.5) of causal-learn 0.1.4.8 on these 1,000 rows.

    Its statistic is n² HSIC of the standardised columns. Its moments are those of the limit, ours are exact: the
    p-values differ by O(1/n).
    """
    i = torch.arange(1000, dtype=torch.float64)
    z = torch.cos(1.7 * i**1.5)
    s = torch.sin(0.9 * i**1.3) + 0.1 * z
    z, s = ((x - x.mean()) / x.std() for x in (z, s))
    result = gamma_test(z, s, Gaussian(1.0), Gaussian(0.5), moments="permutation")
    assert 1000**2 * result.statistic == approx(1506.618432614998, rel=1e-10)
    assert result.pvalue == approx(7.792611530910154e-05, rel=0.03)
    # both are too small by far; three moments come closer to the permutations
    three = gamma_test(z, s, Gaussian(1.0), Gaussian(0.5), moments="pearson").pvalue
    permuted = permutation_test(z, s, Gaussian(1.0), Gaussian(0.5), resamples=9999, random_state=0).pvalue
    assert abs(math.log(three / permuted)) < abs(math.log(result.pvalue / permuted))


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_the_statistic_is_that_of_the_dependence_module(
    test: Callable[..., IndependenceResult], dtype: torch.dtype
) -> None:
    for n, d in ((60, 3), (700, 1), (700, 5)):
        z, s = rows(n, d, 0, dtype), rows(n, 1, 1, dtype)
        assert test(z, s).statistic == approx(float(hsic(z, s)), rel=1e-9 if dtype == torch.float64 else 1e-5)
    weights = (rows(60, 1, 2)[:, 0] > 0).double()
    z, s = rows(60, 3, 0), rows(60, 1, 1)
    assert test(z, s, where=weights).statistic == approx(float(hsic(z, s, where=weights)), rel=1e-9)


# ---------------------------------------------------------------- practical significance


def correlated(n: int, rho: float, seed: int) -> tuple[Tensor, Tensor]:
    z = rows(n, 1, seed)
    return z, rho * z + math.sqrt(1 - rho**2) * rows(n, 1, 5000 + seed)


def test_the_decision_follows_the_papers_rule() -> None:
    z, s = correlated(500, 0.5, 0)
    value = gamma_test(z, s).statistic
    assert gamma_test(z, s).decision == "dependent"
    assert gamma_test(z, s, epsilon=2 * value).decision == "negligible"
    assert gamma_test(z, s, epsilon=value / 2).decision == "dependent"
    assert gamma_test(z, rows(500, 1, 9), epsilon=1e-9).decision == "not rejected"


def population_hsic(rho: float) -> float:
    """HSIC of standard normals with correlation rho under Gaussian kernels of bandwidth 1.

    With u, v the differences of two draws, E exp(-(u² + v²)/2) is det(I + Σ)^(-1/2); the three terms have
    correlations rho, rho/2 and 0 between u and v, each of variance 2.
    """

    def term(cov: float) -> float:
        return (9 - cov**2) ** -0.5

    return term(2 * rho) - 2 * term(rho) + term(0.0)


def test_the_standard_error_is_that_of_hsic_under_dependence() -> None:
    """Mean over 200 draws of the standard error against the standard deviation of HSIC over them."""
    results = [
        gamma_test(*correlated(200, 0.5, seed), Gaussian(1.0), Gaussian(1.0), epsilon=1e-3) for seed in range(300)
    ]
    spread = np.std([r.statistic for r in results], ddof=1)
    # the standard deviation of 300 draws has relative standard error 1/√600 = .04
    assert np.mean([r.standard_error for r in results]) == approx(spread, rel=4 * 0.05)


def test_the_epsilon_test_holds_its_level_where_hsic_is_epsilon() -> None:
    """Population HSIC equal to epsilon: rejected in at most the binomial 99.9 % band around 5 %."""
    draws, epsilon = 300, population_hsic(0.5)
    rejected = sum(
        gamma_test(*correlated(400, 0.5, seed), Gaussian(1.0), Gaussian(1.0), epsilon=epsilon).pvalue_epsilon <= 0.05
        for seed in range(draws)
    )
    assert rejected <= stats.binom.ppf(0.999, draws, 0.05)
    far = gamma_test(*correlated(400, 0.5, 0), Gaussian(1.0), Gaussian(1.0), epsilon=epsilon / 4)
    assert far.pvalue_epsilon <= 0.05


def test_without_a_standard_error_the_epsilon_test_compares_numbers() -> None:
    """Two groups of equal size: the influence of every row is the same, so the standard error is zero."""
    z = torch.arange(8) % 2
    plain = permutation_test(z, z, Linear(), Linear(), resamples=99, random_state=0)
    value = float(hsic_unbiased(z[:, None] * z.double(), z[:, None] * z.double()))
    for epsilon, expected in ((value / 2, plain.pvalue), (value, 1.0), (2 * value, 1.0)):
        result = permutation_test(z, z, Linear(), Linear(), resamples=99, random_state=0, epsilon=epsilon)
        assert (result.standard_error, result.pvalue_epsilon) == (0, expected)
    assert plain.pvalue < 0.1


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": 0.0}, "level is 0"),
        ({"level": 5}, "level is 5"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"where": [2.0] * 20}, "boolean or 0/1"),
        ({"where": [1.0] * 3 + [0.0] * 17}, "needs at least"),
    ],
)
@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_bad_input_is_refused_with_a_reason(
    test: Callable[..., IndependenceResult], options: dict[str, object], said: str
) -> None:
    z = rows(20, 1, 0)
    with pytest.raises(ValueError, match=said):
        test(z, z, Gaussian(1.0), Gaussian(1.0), **options)


def test_unknown_moments_and_resamples_are_refused() -> None:
    z = rows(20, 1, 0)
    with pytest.raises(ValueError, match="moments is 'exact'"):
        gamma_test(z, z, moments="exact")  # type: ignore[arg-type]  # the point of this test
    for resamples in (0, 1.5, True):
        with pytest.raises(ValueError, match="resamples is"):
            permutation_test(z, z, resamples=resamples)  # type: ignore[arg-type]  # the point of this test
    with pytest.raises(ValueError, match="lengths differ"):
        gamma_test(z, z[:10])


def test_hsic_whose_standard_error_is_0_is_compared_with_epsilon_itself():
    x = torch.tensor([0.0, 1.0] * 10, dtype=torch.float64)[:, None]
    pair = gram_pair(x, x, Gaussian(1.0), Gaussian(1.0), least=4, what="a test")
    assert pair._epsilon_test(1e-3, 0.02)[0] <= 0.02 + 1e-12
    assert pair._epsilon_test(1.0, 0.02) == (1.0, pytest.approx(0.0, abs=1e-12))


def test_a_pair_of_kernels_that_sees_nothing_has_no_say():
    z = torch.randn(40, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blind, sees = Gaussian(1e60), Gaussian(1.0)
    both = aggregated_test(z, z, kernels=[(blind, blind), (sees, sees)], resamples=99, random_state=0)
    one = aggregated_test(z, z, kernels=[(sees, sees)], resamples=99, random_state=0)
    assert (both.pvalue, both.statistic) == (one.pvalue, one.statistic)
