"""The test for splits that share rows: definition, identities, limits, and its level where two methods are equal."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest import approx
from scipy import stats

from frhsic_paper.comparisons import corrected_t


def test_the_corrected_error_is_its_definition():
    d = [0.02, -0.01, 0.05, 0.03, 0.00]
    variance = sum((x - sum(d) / 5) ** 2 for x in d) / 4
    test = corrected_t(d, 0.25)
    assert test.mean == approx(0.018)
    assert test.error == approx(math.sqrt((1 / 5 + 0.25) * variance))
    assert test.pvalue == approx(2 * stats.t.sf(test.mean / test.error, 4))
    assert (test.low + test.high) / 2 == approx(test.mean)
    assert (test.high > 0 > test.low) == (test.pvalue > 0.05)


def test_without_shared_rows_it_is_the_paired_t_test():
    d = np.random.default_rng(0).normal(0.1, 1, 12)
    test, known = corrected_t(d, 0.0), stats.ttest_1samp(d, 0)
    interval = known.confidence_interval(0.95)
    assert (test.pvalue, test.low, test.high) == approx((known.pvalue, interval.low, interval.high))


def test_sign_and_scale_of_the_differences():
    d = np.random.default_rng(1).normal(0.3, 1, 8)
    test, mirrored = corrected_t(d, 0.3), corrected_t(-7 * d, 0.3)
    assert mirrored.pvalue == approx(test.pvalue)
    assert mirrored.error == approx(7 * test.error)


@pytest.mark.parametrize(
    ("d", "pvalue"), [([0.4], 1.0), ([0.0, 0.0, 0.0], 1.0), ([0.25, 0.25, 0.25], 0.0)], ids=["one", "equal", "constant"]
)
def test_limits(d, pvalue):
    assert corrected_t(d, 0.25).pvalue == pvalue


def test_a_negative_share_is_refused():
    with pytest.raises(ValueError, match="test rows divided by training rows"):
        corrected_t([0.1, 0.2], -1.0)


def equal_methods(datasets: int, seed: int, n: int = 200, splits: int = 20) -> tuple[int, int]:
    """Compare two classifiers that are equal in law; return how often each of two tests rejects at 5 %.

    Each predicts by one of two exchangeable features. Splits as in the sweep: 65 % train, 20 % test.
    """
    generator = np.random.default_rng(seed)
    test, train = round(0.2 * n), round(0.65 * n)
    corrected = plain = 0
    for _ in range(datasets):
        y = generator.choice([-1.0, 1.0], n)
        x = generator.normal(size=(n, 2)) + 0.5 * y[:, None]
        orders = generator.permuted(np.tile(np.arange(n), (splits, 1)), axis=1)
        fitted, tested = orders[:, :train], orders[:, -test:]
        side = np.sign((x[fitted] * y[fitted][..., None]).mean(1, keepdims=True))
        right = np.sign((x[tested] - x[fitted].mean(1, keepdims=True)) * side) == y[tested][..., None]
        d = right[..., 0].mean(1) - right[..., 1].mean(1)
        corrected += corrected_t(d, test / train).pvalue < 0.05
        plain += stats.wilcoxon(d).pvalue < 0.05
    return corrected, plain


def test_two_equal_methods_are_told_apart_no_more_often_than_the_level():
    corrected, plain = equal_methods(400, seed=0)
    assert corrected <= stats.binom.ppf(0.999, 400, 0.05)
    assert plain > 4 * stats.binom.ppf(0.999, 400, 0.05)  # what a test that takes splits for independent does


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200, 1000])
def test_the_level_in_many_tables(n):
    corrected, _ = equal_methods(4000, seed=n, n=n)
    assert corrected <= stats.binom.ppf(0.999, 4000, 0.05)
