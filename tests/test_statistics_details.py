"""Details of the statistics that mutants survived: fields of results, arguments passed on, and identities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic.dependence.moments import CenteredGram, _estimated_trace
from frhsic.independence import (
    equivalence_test,
    hsic_interval,
    normalized_hsic_interval,
)
from frhsic.kernels import Gaussian, Linear
from frhsic.parity import correlation_ratio, gdp, local_mean, standardized_gdp
from frhsic.parity._sums import Cells
from frhsic.parity.smoothed import EXACT_VALUES, nodes_of

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


def test_the_sign_of_the_scores_does_not_matter_to_the_gap():
    skewed = np.exp(Z)
    one, other = gdp(skewed, S, random_state=0), gdp(-skewed, S, random_state=0)
    assert other.value == approx(one.value)
    assert other.pvalue == approx(one.pvalue, rel=1e-9)
    assert other.expected_under_independence == approx(one.expected_under_independence)


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


KERNELS = (Gaussian(1.0), Gaussian(2.0))


def test_sums_over_cells_are_the_powers_of_the_scores():
    s = np.array([0.0, 1.0, 1.0, 3.0, -2.0])
    f = np.array([0.5, 0.25, 1.0, 0.0, 2.0])
    cells = Cells(np.array([0.0, 1.0, 2.0]), np.arange(3), np.arange(3), np.arange(3.0))
    sums = cells.sums(f, s, 0.75, (0.0, 2.0))
    members = [[0, 4], [1, 2], [3]]  # what lies below the first cell belongs to it
    expected = [[sum((f[i] - 0.75) ** power for i in rows) for rows in members] for power in range(5)]
    np.testing.assert_allclose(sums.powers, [expected] * 3, rtol=1e-12)
    assert sums.low.tolist() == [-2, 1, 3]
    assert sums.high.tolist() == [0, 1, 3]
    assert sums.at_ends == 2


@pytest.mark.parametrize("z", [Z, RNG.normal(size=80)], ids=["dependent", "independent"])
def test_intervals_grow_with_confidence_and_bounds_fall_with_the_level(z):
    shares = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
    for effect in (hsic_interval, normalized_hsic_interval):
        effects = [effect(z, S, confidence=share) for share in shares]
        for narrow, wide in pairwise(effects):
            assert wide.interval.low <= narrow.interval.low <= narrow.value <= narrow.interval.high
            assert narrow.interval.high <= wide.interval.high
            assert effect is hsic_interval or wide.interval.high <= 1
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


@pytest.mark.parametrize(("trace", "squares"), [(3.0, 4.0), (0.5, 0.1)])
def test_an_estimated_trace_is_that_of_a_matrix_without_negative_eigenvalues(trace, squares):
    signs = torch.ones(5, 16, dtype=torch.float64)
    known = CenteredGram(torch.ones(5), *torch.tensor([trace, squares], dtype=torch.float64))
    for cubed, bound in ((1e9, squares**1.5), (-1e9, squares**2 / trace)):
        assert _estimated_trace(signs, 0 * signs, torch.full_like(signs[0], cubed), known) == approx(bound)


def test_scores_in_single_precision_are_measured_in_double():
    single = np.exp(3 * Z).astype(np.float32), S.astype(np.float32)
    double = tuple(x.astype(np.float64) for x in single)
    for measure in (gdp, standardized_gdp, correlation_ratio):
        assert measure(*single) == measure(*double)
