"""Details of the statistics that mutants survived: fields of results, arguments passed on, and identities."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx

from frhsic import _arrays
from frhsic.dependence import (
    binned_mean_difference,
    binned_mmd,
    distance_correlation,
    distance_correlation_unbiased,
    distance_covariance,
    distance_covariance_unbiased,
    eipm,
    hsic,
    hsic_features,
    hsic_summed,
    hsic_unbiased,
    information,
    kernel_hgr,
    minority_weights,
    mutual_information,
)
from frhsic.dependence._gram import exponents_of
from frhsic.dependence.grams import centered
from frhsic.dependence.moments import CenteredGram, _estimated_trace
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.independence import (
    SequentialTest,
    aggregated_test,
    conditional_test,
    equivalence_test,
    hsic_interval,
    normalized_hsic_interval,
    null_moments,
    permutation_test,
)
from frhsic.independence._gram_pair import gram_pair
from frhsic.kernels import Gaussian, Linear
from frhsic.parity import correlation_ratio, gdp, gdp_by_attribute, local_mean, quantile_gap, standardized_gdp
from frhsic.parity._nodes import EXACT_VALUES, nodes_of
from frhsic.parity.summed import Cells

RNG = np.random.default_rng(5)
S = RNG.exponential(size=80) + 3
Z = np.tanh(S - 4) + 0.5 * RNG.normal(size=80)


def test_linear_binning_divides_each_row_between_the_two_nodes_around_it():
    s = np.sort(RNG.uniform(5, 9, size=EXACT_VALUES + 500))
    nodes = nodes_of(s, bandwidth=0.5)
    shares = nodes.shares.toarray()
    assert shares.min() >= 0
    assert shares.sum(axis=0) == approx(1)
    assert shares.T @ nodes.values == approx(s)
    assert ((shares > 0).sum(axis=0) <= 2).all()


def test_the_gap_of_each_attribute_takes_all_options():
    frame = pd.DataFrame({"a": S, "b": RNG.normal(size=80)})
    options = {"resolution": 0.3, "confidence": 0.8, "resamples": 50, "random_state": 3}
    by_attribute = gdp_by_attribute(Z, frame, **options)
    for name, column in frame.items():
        assert by_attribute[name] == gdp(Z, column, **options)
    assert by_attribute["a"].value != gdp(Z, S).value


def test_the_sign_of_the_scores_does_not_matter_to_the_gap():
    skewed = np.exp(Z)
    one, other = gdp(skewed, S, random_state=0), gdp(-skewed, S, random_state=0)
    assert other.value == approx(one.value)
    assert other.pvalue == approx(one.pvalue, rel=1e-9)
    assert other.expected_under_independence == approx(one.expected_under_independence)


def test_results_say_how_they_were_made():
    assert correlation_ratio(Z, S, confidence=0.8).confidence == 0.8
    result = aggregated_test(Z, S, resamples=19, random_state=4)
    assert (result.resamples, result.seed) == (19, 4)


def test_a_sequential_test_that_is_read_again_goes_on_with_its_settings():
    test = SequentialTest(level=0.1, resamples=49, random_state=2)
    test.update(Z[:40], S[:40])
    again = SequentialTest.from_dict(test.to_dict())
    assert (again.level, again.resamples) == (0.1, 49)
    assert again.update(Z[40:], S[40:]).to_dict() == test.update(Z[40:], S[40:]).to_dict()


def test_the_mean_at_the_largest_and_the_smallest_value_is_defined():
    for at in (S.min(), S.max()):
        assert np.isfinite(local_mean(Z, S, at).value)
    for at in (S.min() - 0.01, S.max() + 0.01):
        with pytest.raises(ValueError, match="at"):
            local_mean(Z, S, at)


def test_the_interval_of_hsic_follows_the_unit_of_its_kernels():
    one = hsic_interval(Z, S, Linear(), Linear())
    other = hsic_interval(10 * Z, S, Linear(), Linear())
    assert other.interval.low == approx(100 * one.interval.low, rel=1e-6)
    assert other.interval.high == approx(100 * one.interval.high, rel=1e-6)


def test_the_conditional_test_says_which_bandwidths_it_used():
    result = conditional_test(Z, S, RNG.normal(size=80), Gaussian(0.7), Gaussian(2.0), resamples=19, random_state=0)
    assert result.bandwidths == ((0.7,), (2.0,))


def test_a_weight_of_zero_for_a_minority_is_refused_and_two_rows_are_enough_for_features():
    with pytest.raises(ValueError, match="clip"):
        minority_weights(S, clip=(0.0, 10.0))
    assert np.isfinite(float(hsic_features(Z[:2], S[:2], Gaussian(1.0), Gaussian(1.0), random_state=0)))


def test_weights_of_a_minority_that_are_clipped_at_one_are_equal():
    assert minority_weights(S, clip=(1.0, 1.0)).numpy() == approx(1 / 80, rel=1e-12)
    assert minority_weights(S, clip=(1.0, 2.0)).min() > 0


KERNELS = (Gaussian(1.0), Gaussian(2.0))
KEPT = np.arange(80) % 4 > 0
FOUR = [0.0, 1.0, 5.0, 6.0]
LIMITS = {  # a call at the limit of what is allowed, and one that gives the same
    "a weight of zero": (lambda: hsic(Z, S, *KERNELS, weights=1.0 * KEPT), lambda: hsic(Z[KEPT], S[KEPT], *KERNELS)),
    "a row of no weight": (lambda: gdp(Z, S, sample_weight=1.0 * KEPT), lambda: gdp(Z, S, where=KEPT)),
    "equal edges": (
        lambda: binned_mmd(Z, S, KERNELS[0], edges=[4.0, 4.0]),
        lambda: binned_mmd(Z, S, KERNELS[0], edges=[4.0]),
    ),
    "two bins of two rows": (lambda: binned_mean_difference(FOUR, FOUR, edges=[3.0]), lambda: 2 * 2.5**2),
    "no floor": (lambda: eipm(Z, S, floor=0.0), lambda: eipm(Z, S, floor=1e-30)),
    "one resample": (lambda: permutation_test(Z, S, resamples=1, random_state=4).pvalue, lambda: 0.5),
    "one component": (lambda: mutual_information(Z, S, components=1), lambda: mutual_information(Z, S)),
    "two blocks": (
        lambda: hsic_features(Z, S, Linear(), Linear(), features=4, blocks=2),
        lambda: hsic_features(Z, S, Linear(), Linear()),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limit_itself_is_allowed(name):
    at_limit, same = (float(call()) for call in LIMITS[name])
    assert at_limit == approx(same, rel=1e-9)


def test_as_many_rows_as_there_are_are_all_of_them():
    noise = np.random.default_rng(1).normal(size=80)
    result = aggregated_test(noise, S, resamples=99, random_state=4, max_rows=80)
    assert result == aggregated_test(noise, S, resamples=99, random_state=4)
    assert result.method == "permutation, largest of 10 standardized statistics"


def test_a_factor_may_leave_out_nothing_but_not_everything():
    x = torch.arange(5.0, dtype=torch.float64)[:, None]
    factor, left = pivoted_cholesky(Gaussian(1.0), x, tolerance=0.0)
    torch.testing.assert_close(factor @ factor.mT, Gaussian(1.0)(x, x))
    assert left < 1e-12
    for tolerance in (1.0, -1e-9):
        with pytest.raises(ValueError, match="tolerance"):
            pivoted_cholesky(Gaussian(1.0), x, tolerance=tolerance)


def test_sums_over_cells_are_the_powers_of_the_scores():
    s = np.array([0.0, 1.0, 1.0, 3.0, -2.0])
    f = np.array([0.5, 0.25, 1.0, 0.0, 2.0])
    cells = Cells(np.array([0.0, 1.0, 2.0]), np.arange(3), np.arange(3), np.arange(3.0))
    sums = cells.sums(f, s, 0.75, (0.0, 2.0))
    members = [[0, 4], [1, 2], [3]]  # what lies below the first cell belongs to it
    expected = [[sum((f[i] - 0.75) ** power for i in rows) for rows in members] for power in range(5)]
    np.testing.assert_allclose(sums.powers, expected, rtol=1e-12)
    assert sums.low.tolist() == [-2, 1, 3]
    assert sums.high.tolist() == [0, 1, 3]
    assert sums.at_ends == 2


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_confidence_and_a_level_that_are_refused_are_called_by_their_names(share):
    for interval in (hsic_interval, normalized_hsic_interval):
        with pytest.raises(ValueError, match=f"^confidence is {share}"):
            interval(Z, S, confidence=share)
    with pytest.raises(ValueError, match=f"^level is {share}"):
        equivalence_test(Z, S, 0.1, level=share)


@pytest.mark.parametrize("z", [Z, RNG.normal(size=80)], ids=["dependent", "independent"])
def test_intervals_grow_with_confidence_and_bounds_fall_with_the_level(z):
    shares = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
    for effect in (hsic_interval, normalized_hsic_interval):
        effects = [effect(z, S, confidence=share) for share in shares]
        for narrow, wide in pairwise(effects):
            assert wide.interval.low <= narrow.interval.low <= narrow.value <= narrow.interval.high
            assert narrow.interval.high <= wide.interval.high
    tests = [equivalence_test(z, S, 0.01, level=share) for share in shares]
    assert [test.upper_bound for test in tests] == sorted((test.upper_bound for test in tests), reverse=True)
    bounds = [test for test in tests if test.upper_bound > 0]
    assert len(bounds) >= 5
    for test in bounds:  # the bound is an epsilon that is just rejected; a negative estimate counts as 0 in it
        pvalue = equivalence_test(z, S, test.upper_bound).pvalue
        assert pvalue == approx(test.level, rel=1e-6) if test.statistic > 0 else pvalue < test.level


def test_an_estimate_below_zero_of_the_correlation_ratio_has_the_interval_of_zero():
    for size in (2, 4, 6):  # every value of s has the same mean score, more equal than chance would have it
        ratio = correlation_ratio(np.tile([-1.0, 1.0], 30), np.arange(60) // size)
        assert ratio.value == ratio.interval[0] == 0
        assert ratio.interval[1] > ratio.standard_error > 0


def test_a_factor_may_leave_out_all_that_the_tolerance_allows():
    far = [0.0, 100.0]  # one of two columns leaves out half of the Gram matrix, the most that is ever allowed
    value = kernel_hgr(far, far, Gaussian(1.0), Gaussian(1.0), ridge_z=0.1, ridge_s=1.0, tolerance=1.0)
    assert 0 < float(value) < 1


def test_columns_far_from_each_other_are_not_far_from_their_means():
    x = torch.from_numpy(np.stack([Z, S + 1e6], axis=1))
    left, right = exponents_of(x, 2.0)
    torch.testing.assert_close(
        left @ right.mT, -torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").square() / 8
    )
    assert exponents_of(torch.cat([x, x[:1] + 1e3]), 2.0) is None


@pytest.mark.parametrize(("trace", "squares"), [(3.0, 4.0), (0.5, 0.1)])
def test_an_estimated_trace_is_that_of_a_matrix_without_negative_eigenvalues(trace, squares):
    signs = torch.ones(5, 16, dtype=torch.float64)
    known = CenteredGram(torch.ones(5), *torch.tensor([trace, squares], dtype=torch.float64))
    for cubed, bound in ((1e9, squares**1.5), (-1e9, squares**2 / trace)):
        assert _estimated_trace(signs, 0 * signs, torch.full_like(signs[0], cubed), known) == approx(bound)


def test_moments_over_permutations_are_those_of_all_permutations():
    null_moments._index_patterns.cache_clear()
    pair = gram_pair(Z[:6], S[:6], *KERNELS, least=6, what="a test")
    k, l = (centered(gram.kernel(gram.x, gram.x)).numpy() for gram in (pair.k, pair.l))
    values = np.array([(k * l[np.ix_(order, order)]).mean() for order in map(list, permutations(range(6)))])
    assert pair.permutation_mean_variance() == approx((values.mean(), values.var()))
    assert pair.permutation_third_cumulant() == approx(((values - values.mean()) ** 3).mean())


def test_neighbours_are_counted_on_the_device_of_the_data():
    z, s = Z[:, None], S[:, None]
    with torch.device("meta"):
        among_pairs = information._counts_among_pairs(torch.from_numpy(z), torch.from_numpy(s), 4, True)
    np.testing.assert_array_equal(among_pairs, information._counts_by_trees(z, s, 4, True))


def test_mutual_information_is_computed_on_the_cpu_unless_a_device_is_named(monkeypatch):
    value = mutual_information(Z, S)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert mutual_information(Z, S) == value


def test_neighbours_on_a_gpu_are_searched_among_rows_that_lie_there(monkeypatch):
    z, s = Z[:, None], S[:, None]

    def counts(z_there, s_there, *options):
        assert z_there.device.type == s_there.device.type == "meta"
        return information._counts_by_trees(z, s, *options)

    monkeypatch.setattr(information, "_counts_among_pairs", counts)
    monkeypatch.setattr(_arrays, "resolve_device", {"cuda": torch.device("meta")}.get)
    for strict in (True, False):
        there, here = (information.ksg(z, s, 3, strict=strict, device=device) for device in ("cuda", None))
        assert there == here


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("z", [Z, np.full(80, 2.0)], ids=["varying", "constant"])
def test_a_statistic_of_tensors_has_their_type(z, dtype):
    z, s = torch.tensor(z, dtype=dtype), torch.tensor(S, dtype=dtype)
    kernel = Gaussian(1.0)
    for value in (
        hsic(z, s, kernel), hsic_unbiased(z, s, kernel), hsic_summed(z, s, kernel), kernel_hgr(z, s, kernel),
        eipm(z, s, kernel), binned_mmd(z, s, kernel), binned_mean_difference(z, s), mutual_information(z, s),
        distance_covariance(z, s), distance_covariance_unbiased(z, s), distance_correlation(z, s),
        distance_correlation_unbiased(z, s), minority_weights(s),
    ):  # fmt: skip
        assert value.dtype == dtype


def test_scores_in_single_precision_are_measured_in_double():
    single = np.exp(3 * Z).astype(np.float32), S.astype(np.float32)
    double = tuple(x.astype(np.float64) for x in single)
    for measure in (gdp, standardized_gdp, correlation_ratio, quantile_gap):
        assert measure(*single) == measure(*double)
