"""Tests of independence: the definition by enumeration, ties, level, power, and what they
refuse.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from scipy import stats

from frhsic.dependence.cubes import own_sums
from frhsic.dependence.features import draw_feature_maps
from frhsic.dependence.grams import centered_gram, hsic_biased_from_gram, hsic_unbiased_from_gram
from frhsic.dependence.sums import pair_sums, product_rows
from frhsic.dependence.tiles import Gram
from frhsic.independence import gamma_test, permutation, permutation_test
from frhsic.independence.features import feature_moments, feature_test
from frhsic.independence.grams import gram_pair
from frhsic.independence.moments import (
    is_degenerate,
    pearson_parameters,
    pearson_tail,
    permutation_mean_variance,
    permutation_third_moment,
)
from frhsic.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear, gaussian_at_median


def approx(expected, **tolerance):
    """Compare relatively: pytest's own absolute slack of 1e-12 would hide errors in small
    numbers.
    """
    return pytest.approx(expected, **{"rel": 1e-9, "abs": 0.0} | tolerance)


KERNELS = [
    (Gaussian(1.0), Gaussian(0.3)),
    (Laplacian(1.0), InverseMultiquadric(0.5)),
    (Linear(), Gaussian(1.0)),
    (Linear() + Gaussian(1.0), Laplacian(2.0)),
    (Gaussian(1e4), Gaussian(1e4)),
]


def rows(n, d, seed, dtype=torch.float64):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        dtype
    )


def grams(z, s, k, l):
    return k.shifted(z.double(), z.double()), l.shifted(s.double(), s.double())


def permuted(k, l, orders):
    """HSIC of the rows of l in each order, by the definition."""
    return np.array(
        [float(hsic_biased_from_gram(k, l[p][:, p])) for p in map(torch.as_tensor, orders)]
    )


def all_permuted(k, l):
    return permuted(k, l, itertools.permutations(range(len(k))))


def drawn_orders(n, resamples, seed):
    draw = torch.Generator().manual_seed(seed)
    return [torch.randperm(n, generator=draw) for _ in range(resamples)]


def null_of(z, s, k=None, l=None):
    return gram_pair(z, s, k, l, least=4)


@pytest.mark.parametrize(
    ("k", "l"), [*KERNELS, (Gaussian(1.0), Gaussian(1.0))], ids=lambda kernel: type(kernel).__name__
)
def test_the_sums_of_one_pass_are_those_of_the_centred_gram_matrices(k, l):
    z, s = rows(700, 3, 0), rows(700, 1, 1)  # more than one tile
    a, b = (centered_gram(gram) for gram in grams(z, s, k, l))
    of_z, of_s = Gram.from_rows(z, k), Gram.from_rows(s, l)
    sums, swapped = pair_sums(of_z, of_s), pair_sums(of_s, of_z)
    # flat kernels: the entries of K̃ are 1e-8 and its diagonal is a difference of such, hence the
    # absolute part
    close = {"rel": 1e-9, "abs": 1e-24}
    of_each = (sums.k, a), (sums.l, b), (swapped.l, a), (swapped.k, b)
    for own, gram in ((each.centered_gram, gram) for each, gram in of_each):
        assert float(own.trace) == approx(float(gram.diagonal().sum()), **close)
        assert float(own.squares) == approx(float(gram.square().sum()), **close)
        assert float(own.diagonal.square().sum()) == approx(
            float(gram.diagonal().square().sum()), **close
        )
    assert float(sums.biased_hsic) == approx(float((a * b).mean()), **close)
    torch.testing.assert_close(
        product_rows(of_z, of_s, sums), (a * b).sum(1), rtol=1e-8, atol=1e-22
    )
    assert float(sums.unbiased_hsic) == approx(
        float(hsic_unbiased_from_gram(*grams(z, s, k, l))), rel=1e-6, abs=1e-22
    )


@pytest.mark.parametrize("columns", [1, 5])
def test_the_cubic_sums_are_those_of_the_centred_gram_matrix(columns):
    z, s = rows(1100, columns, 0), rows(1100, 1, 1)  # more than one panel
    a = centered_gram(grams(z, s, Gaussian(1.0), Linear())[0])
    d = a.diagonal()
    of_z = Gram.from_rows(z, Gaussian(1.0))
    assert (of_z.factor is not None) == (columns == 1)
    cubes, square_rows = own_sums(of_z, pair_sums(of_z, Gram.from_rows(s, Linear())).k)
    torch.testing.assert_close(square_rows, (a * a).sum(1), rtol=1e-9, atol=1e-12)
    expected = {
        "trace": (a @ a @ a).trace(),
        "entries": (a**3).sum(),
        "diagonal": (d**3).sum(),
        "diagonal_squares": d @ (a @ a).diagonal(),
        "quadratic": d @ a @ d,
    }
    assert {name: float(getattr(cubes, name)) for name in expected} == approx(
        {name: float(value) for name, value in expected.items()}, rel=1e-10
    )


@pytest.mark.parametrize("n", [4, 5, 6])
@pytest.mark.parametrize(("k", "l"), KERNELS[:4], ids=lambda kernel: type(kernel).__name__)
def test_the_permutation_moments_are_those_of_all_permutations(n, k, l):
    z, s = rows(n, 2, n), rows(n, 1, 10 + n).exp()
    values = all_permuted(*grams(z, s, k, l))
    data = null_of(z, s, k, l)
    mean, variance = data.permutation_mean_variance()
    assert mean == approx(values.mean(), rel=1e-10)
    assert variance == approx(values.var(), rel=1e-8)


@pytest.mark.parametrize("n", [6, 7])
def test_pearson_matches_the_skewness_of_all_permutations(n):
    z, s = rows(n, 2, n), rows(n, 1, 10 + n).exp()
    values = all_permuted(*grams(z, s, Gaussian(1.0), Linear()))
    result = gamma_test(z, s, Gaussian(1.0), Linear())
    reference = stats.pearson3(skew=stats.skew(values), loc=values.mean(), scale=values.std())
    assert result.pvalue == approx(float(reference.sf(result.statistic)), rel=1e-8)
    assert result.threshold == approx(float(reference.isf(0.05)), rel=1e-8)


def test_large_samples_do_not_overflow():
    """n(n-1)(n-2)(n-3) leaves 64 bits above n = 55,000; here n is 200,000, and the moments those of
    H ⊗ H.
    """
    n = 200_000
    h = (n - 1.0, n - 1.0, (n - 1.0) ** 2 / n)
    mean, variance = permutation_mean_variance(h, h, n)
    assert mean == approx(n - 1.0)
    assert math.sqrt(variance) <= 1e-6 * mean
    t = n - 1.0
    invariants = (t**3, t * t, t * t * t / n, t, (t**3 - t) / n**2, t**3 / n**2, t * t / n, 0.0)
    assert permutation_third_moment(invariants, invariants, n) == approx(t**3, rel=1e-9)


WAYS = ["_by_factors", "_by_one_factor", "_by_entries"]


def statistics_by(way, data, order):
    """T under given permutations, computed in the way that is named."""
    k = permutation._side(data.k, data.sums.k)
    l = permutation._side(data.l, data.sums.l)
    if way == "_by_factors":
        return permutation._by_factors(k.factor, l.factor, 0.0).statistics(order)
    if way == "_by_entries":
        return permutation._by_entries(k, l).statistics(order)
    by_l = permutation._by_one_factor(l.factor, k, 0.0, inverted=False).statistics(order)
    by_k = permutation._by_one_factor(k.factor, l, 0.0, inverted=True).statistics(order)
    torch.testing.assert_close(by_k, by_l, rtol=1e-8, atol=0)
    return by_l


@pytest.mark.parametrize("n", [600, permutation.DENSE_ROWS + 2], ids=["whole", "tiles"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_permuting_gives_hsic_of_the_permuted_rows(way, n):
    z, s = rows(n, 1, 0), rows(n, 1, 1)
    data = null_of(z, s, Gaussian(1.0), Gaussian(1.5))
    order = torch.stack(drawn_orders(n, 4, 0))
    expected = permuted(*grams(z, s, Gaussian(1.0), Gaussian(1.5)), order)
    assert (statistics_by(way, data, order) / n**2).tolist() == approx(expected.tolist(), rel=1e-8)


@pytest.mark.parametrize(
    ("d_z", "d_s", "way"),
    [
        (1, 1, "_by_factors"),
        (20, 1, "_by_one_factor"),
        (1, 20, "_by_one_factor"),
        (20, 20, "_by_entries"),
    ],
)
def test_the_way_is_chosen_by_what_is_thin_and_its_error_is_within_the_bound(d_z, d_s, way):
    n = 400
    z, s = rows(n, d_z, 0), rows(n, d_s, 1)
    data = null_of(z, s)
    sides = [permutation._side(data.k, data.sums.k), permutation._side(data.l, data.sums.l)]
    chosen = permutation.cheapest_algorithm(*sides)
    assert way in chosen.statistics.__qualname__
    p = torch.randperm(n, generator=torch.Generator().manual_seed(3))
    k, l = grams(z, s, data.k.kernel, data.l.kernel)
    exact = float((centered_gram(k) * l[p][:, p]).sum())
    rounding = 1e-12 * data.magnitude
    assert abs(float(chosen.statistics(p[None])) - exact) <= chosen.error + rounding
    assert chosen.error <= 1e-6 * exact


def test_a_factor_says_what_it_leaves_out():
    """The second column has 2**-38 of the variance, which is less than the tolerance; all numbers
    are exact.
    """
    small = 2.0**-19
    rows_of_both = [[a, b] for a in (-1.0, 1.0) for b in (-small, small)]
    z = torch.tensor(rows_of_both, dtype=torch.float64).repeat(150, 1)
    data = null_of(z, z, Linear(), Linear())
    side = permutation._side(data.k, data.sums.k)
    assert side.columns == 1
    assert float(side.factor.square().sum()) == approx(600.0)
    assert side.left_out == approx(600 * small**2)
    chosen = permutation.cheapest_algorithm(side, side)
    assert chosen.error == approx(2 * side.left_out * side.norm)
    constant = null_of(torch.ones(600, 1), z, Linear(), Linear())
    assert permutation._side(constant.k, constant.sums.k).columns == 0


@pytest.mark.parametrize("d", [1, 20])
def test_the_pvalue_is_that_of_the_permutations_drawn_one_by_one(d, dtype):
    n, resamples = 60, 99
    z, s = rows(n, d, 2, dtype), rows(n, 1, 1, dtype)
    k, l = gaussian_at_median(z), gaussian_at_median(s)
    result = permutation_test(z, s, resamples=resamples, random_state=5)
    k_gram, l_gram = grams(z, s, k, l)
    null = permuted(k_gram, l_gram, drawn_orders(n, resamples, 5))
    observed = float(hsic_biased_from_gram(k_gram, l_gram))
    assert result.pvalue == (1 + (null >= observed).sum()) / 100
    assert result.threshold == approx(np.sort(null)[-5], rel=1e-8)
    assert (result.seed, result.method) == (5, "permutation")
    assert result.statistic == approx(observed, rel=1e-10)


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-3, 1e5])
def test_ties_are_counted(scale):
    """Two binary variables: T takes few values, and those equal to the observed one but for
    rounding are ties.

    The statistic depends on the number of joint ones alone, so the exact p-value is a sum of
    hypergeometric probabilities over the tables whose squared covariance is at least the observed
    one.
    """
    n, ones_z, ones_s, both = 20, 10, 8, 6
    i = torch.arange(n)
    z = scale * (i < ones_z).double()
    s = scale * ((i < both) | (i >= ones_z) & (i < ones_z + ones_s - both)).double()

    def squared(table):
        return (table / n - ones_z * ones_s / n**2) ** 2

    tables = stats.hypergeom(n, ones_z, ones_s)
    exact = sum(
        float(tables.pmf(t)) for t in range(ones_s + 1) if squared(t) >= squared(both) - 1e-12
    )
    resamples = 4999
    result = permutation_test(
        z, s, Gaussian(0.7 * scale), Gaussian(1.1 * scale), resamples=resamples, random_state=0
    )
    assert (
        abs(result.pvalue - exact) <= 4 * math.sqrt(exact * (1 - exact) / resamples) + 1 / resamples
    )


def test_threshold_and_pvalue_say_the_same():
    for seed in range(8):
        z, s = rows(30, 1, seed), rows(30, 1, 1000 + seed)
        results = [
            gamma_test(z, s, level=0.3),
            permutation_test(z, s, level=0.3, resamples=99, random_state=seed),
        ]
        for result in results:
            assert result.rejected == (result.statistic > result.threshold)


def test_too_few_resamples_never_reject():
    z = rows(30, 1, 0)
    result = permutation_test(z, z, resamples=18, random_state=0)
    assert (result.threshold, result.rejected) == (math.inf, False)
    assert permutation_test(z, z, resamples=19, random_state=0).rejected


TESTS = [
    gamma_test,
    lambda *a, **o: permutation_test(*a, resamples=199, random_state=0, **o),
]


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_the_statistic_is_hsic_and_the_effect_size_its_cosine(test, dtype):
    z, s = rows(80, 2, 0, dtype), rows(80, 1, 1, dtype)
    k, l = Gaussian(1.0), Gaussian(0.5)
    k_gram, l_gram = grams(z, s, k, l)
    result = test(z, s, k, l)
    assert float(result) == approx(float(hsic_biased_from_gram(k_gram, l_gram)), rel=1e-10)
    own = float(hsic_biased_from_gram(k_gram, k_gram) * hsic_biased_from_gram(l_gram, l_gram))
    assert result.effect_size == approx(float(result) / math.sqrt(own), rel=1e-9)
    assert test(z, z, k, k).effect_size == approx(1.0, rel=1e-12)
    small, large = (test(unit * z, s, Linear(), Linear()).effect_size for unit in (2.0**-10, 1.0))
    assert small == approx(large, rel=1e-9)
    assert (result.n, result.kernels, result.level) == (80, (repr(k), repr(l)), 0.05)
    mean, variance = null_of(z, s, k, l).permutation_mean_variance()
    assert (result.null_mean, result.null_standard_deviation) == approx((mean, math.sqrt(variance)))
    assert result.effect_size_null == approx(mean / math.sqrt(own), rel=1e-9)


@pytest.mark.parametrize("test", TESTS, ids=["gamma", "permutation"])
def test_a_constant_is_independent_of_everything(test):
    for kernel in (Gaussian(1.0), Linear()):
        result = test(torch.full((30, 2), 0.1), rows(30, 1, 0), kernel)
        assert (result.pvalue, result.rejected) == (1.0, False)
        assert result.statistic == approx(0, abs=1e-15)
        assert (result.effect_size, result.effect_size_null) == approx((0, 0), abs=1e-12)


ATTRIBUTES = {
    "continuous": lambda n, draw: torch.rand(n, generator=draw, dtype=torch.float64),
    "integer": (
        lambda n, draw: torch.randint(8, (n,), generator=draw).double()
    ),  # one pair in eight ties
    "skewed": lambda n, draw: torch.randn(n, generator=draw, dtype=torch.float64).exp(),
}


@pytest.mark.parametrize(
    ("n", "d", "kind", "draws"),
    [
        (40, 1, "skewed", 150),
        *(
            pytest.param(n, d, kind, 500, marks=pytest.mark.slow)
            for n in (50, 200, 1000)
            for d in (1, 50)
            for kind in ATTRIBUTES
        ),
    ],
)
def test_every_test_holds_its_level(n, d, kind, draws):
    """Over independent draws of an isotropic normal Z and an independent S each test rejects as
    often as it says.
    """
    draw = torch.Generator().manual_seed(n + d)
    count = Counter()
    for index in range(draws):
        z, s = torch.randn(n, d, generator=draw, dtype=torch.float64), ATTRIBUTES[kind](n, draw)
        if n * d < 50_000:  # the third moment takes O(n³) in many dimensions
            count["gamma"] += gamma_test(z, s).rejected
        count["permutations"] += permutation_test(z, s, resamples=99, random_state=index).rejected
    low, high = stats.binom.interval(0.999, draws, 0.05)
    assert all(low <= rejected <= high for rejected in count.values()), count


@pytest.mark.parametrize(("swings", "counts"), [(1, [15]), (8, range(4))])
def test_slow_swings_are_found_and_fast_ones_hardly_ever(swings, counts):
    rejected = 0
    for draw in range(15):
        random = np.random.default_rng([swings, 200, draw])
        s = random.random(200)
        rejected += gamma_test(
            np.sin(2 * np.pi * swings * s) + random.standard_normal(200), s
        ).rejected
    assert rejected in counts


def by_person(seed, people=40, times=3):
    """Rows of persons: z and s are alike within a person, and independent between z and s."""
    draw = torch.Generator().manual_seed(seed)
    z, s = (
        torch.randn(people, generator=draw).repeat_interleave(times)
        + 0.1 * torch.randn(people * times, generator=draw)
        for _ in range(2)
    )
    return z, s, np.repeat(np.arange(people), times)


def test_permuting_clusters_keeps_the_level_where_rows_are_not_independent():
    rejected = {"rows": 0, "clusters": 0}
    for seed in range(60):
        z, s, labels = by_person(seed)
        rejected["rows"] += permutation_test(z, s, resamples=59, random_state=seed).rejected
        rejected["clusters"] += permutation_test(
            z, s, resamples=59, random_state=seed, groups=labels
        ).rejected
    assert rejected["clusters"] <= 9 < rejected["rows"]  # 3 expected; P(more than 9) = .001


def test_permutations_of_clusters_exchange_whole_clusters_of_equal_size():
    labels = torch.tensor([0, 1, 1, 2, 0, 3, 3, 3, 2])
    seen = set()
    for order in torch.cat(
        list(permutation.permutations(labels, 200, 7, torch.Generator().manual_seed(0)))
    ):
        assert sorted(order.tolist()) == list(range(9))
        assert order[5:8].tolist() == [5, 6, 7]  # no other cluster has three rows
        seen.add(tuple(labels[order].tolist()))
        for label in range(4):
            assert len(set(labels[order][labels == label].tolist())) == 1
    assert len(seen) == 6


def test_clusters_of_one_row_are_the_plain_test_and_dependence_is_found():
    z, s, labels = by_person(0)
    plain = permutation_test(z, s, resamples=99, random_state=0)
    single = permutation_test(z, s, resamples=99, random_state=0, groups=np.arange(len(z)))
    assert (single.pvalue, single.statistic) == (plain.pvalue, plain.statistic)
    assert single.seed == plain.seed == 0
    by_cluster = permutation_test(
        z, z + s, resamples=99, random_state=0, groups=labels, where=labels < 30
    )
    assert (by_cluster.rejected, by_cluster.method, by_cluster.n) == (
        True,
        "permutation of clusters",
        90,
    )
    k, l = grams(
        z[:90, None],
        (z + s)[:90, None],
        gaussian_at_median(z[:90, None]),
        gaussian_at_median((z + s)[:90]),
    )
    people = torch.arange(90).reshape(30, 3)
    values = permuted(k, l, [people[p].flatten() for p in drawn_orders(30, 99, 0)])
    assert (by_cluster.null_mean, by_cluster.null_standard_deviation) == approx(
        (values.mean(), values.std()), rel=1e-4
    )
    assert by_cluster.effect_size_null / by_cluster.effect_size == approx(
        by_cluster.null_mean / by_cluster.statistic
    )


@pytest.mark.parametrize("blocks", [2, 4])
def test_the_test_by_features_is_that_of_the_kernel_that_they_make(blocks):
    z, s = rows(50, 2, 0), rows(50, 1, 1)
    maps = draw_feature_maps(
        Gaussian(1.0), Gaussian(2.0), 2, 1, features=8 * blocks, blocks=blocks, random_state=0
    )
    features = [part.flatten(1) / math.sqrt(blocks) for part in next(maps.chunks(z, s))]
    parts = [torch.linalg.eigvalsh(torch.cov(part.mT, correction=0)) for part in features]
    a, b = (
        (50 * float(p.sum()), 50**2 * float((p**2).sum()), 50 * float(p.sum()) ** 2) for p in parts
    )
    mean, variance = permutation_mean_variance(a, b, 50)
    mean, deviation = mean / 50**2, math.sqrt(variance) / 50**2
    skewness = 8 * math.prod(float((p**3).sum()) for p in parts) / 50**3 / deviation**3
    result = feature_test(
        maps,
        feature_moments(maps, z[:20], s[:20]) + feature_moments(maps, z[20:], s[20:]),
    )
    assert result.statistic == approx(
        float(hsic_biased_from_gram(*(part @ part.mT for part in features)))
    )
    assert (result.null_mean, result.null_standard_deviation, result.n) == approx(
        (mean, deviation, 50)
    )
    law = stats.pearson3(skew=skewness, loc=mean, scale=deviation)
    assert result.pvalue == approx(float(law.sf(result.statistic)), rel=1e-8)
    maps = draw_feature_maps(Linear(), Gaussian(2.0), 2, 1, random_state=0)
    flat = feature_test(maps, feature_moments(maps, torch.ones(6, 2), s[:6]))
    assert (flat.pvalue, flat.null_standard_deviation, flat.n) == (1.0, 0.0, 6)


def test_a_law_without_skewness_is_normal_and_equal_values_are_degenerate():
    for skewness in (-1.0, 0.0, 1e-3):
        shape, scale, start = pearson_parameters(2.0, 3.0, skewness)
        assert (shape, scale, start) == approx((4e6, 1.5e-3, 2 - 6000.0))
    assert pearson_tail(2.0, 2.0, 3.0, 0.0, 0.05) == approx(
        (0.5, 2 + 3 * stats.norm.isf(0.05)), rel=1e-3
    )
    assert is_degenerate(0.0, 1.0)
    assert [is_degenerate(2.0, variance) for variance in (4e-24, 4.1e-24)] == [True, False]
