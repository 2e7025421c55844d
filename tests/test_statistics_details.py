"""Details of the statistics that mutants survived: fields of results, arguments passed on, and identities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx

from frhsic.dependence import hsic_features, minority_weights
from frhsic.independence import SequentialTest, aggregated_test, conditional_test, hsic_interval
from frhsic.kernels import Gaussian, Linear
from frhsic.parity import correlation_ratio, gdp, gdp_by_attribute, local_mean
from frhsic.parity._nodes import EXACT_VALUES, nodes_of

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
    assert other.pvalue == one.pvalue
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


def test_an_estimate_below_zero_of_the_correlation_ratio_has_the_interval_of_zero():
    for size in (2, 4, 6):  # every value of s has the same mean score, more equal than chance would have it
        ratio = correlation_ratio(np.tile([-1.0, 1.0], 30), np.arange(60) // size)
        assert ratio.value == ratio.interval[0] == 0
        assert ratio.interval[1] > ratio.standard_error > 0
