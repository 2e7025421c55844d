"""Intervals for HSIC: values, identities and coverage."""

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from pytest import approx
from scipy import stats

from dependence_samples import gaussian_pair as correlated
from dependence_samples import gaussian_population, waves
from frhsic.dependence import distance_covariance, hsic, hsic_unbiased
from frhsic.dependence.cubes import CUBE_ROWS, own_sums, random_signs
from frhsic.dependence.grams import centered_gram, hsic_biased_from_gram
from frhsic.dependence.grams import hsic_unbiased_from_gram as unbiased
from frhsic.dependence.sums import pair_sums
from frhsic.dependence.tiles import Gram
from frhsic.independence import (
    gamma_test,
    hsic_interval,
    normalized_hsic_interval,
    permutation_test,
)
from frhsic.independence.effects import hsic_effect, normalized_effect
from frhsic.independence.gamma import gamma_test_from_pair
from frhsic.independence.grams import law_pair_from_rows
from frhsic.independence.pairs import ColumnPair
from frhsic.kernels import Gaussian, HalfDistance, Linear, default_gaussian

ONE = Gaussian(1.0)


def band(count, share, *, sides=0.999):
    low, high = stats.binom.interval(sides, count, share)
    return low / count, high / count


def test_hsic_under_half_distances_is_a_quarter_of_distance_covariance():
    z, s = correlated(50, 0.5, 1, 3)
    half = HalfDistance()
    assert float(hsic(z, s, half, half)) == approx(float(distance_covariance(z, s)) ** 2 / 4)


def test_under_half_distances_it_is_the_unbiased_squared_distance_correlation_of_the_dcor_package():
    """Constants from dcor 0.7 (PyPI): u_distance_covariance_sqr and u_distance_correlation_sqr."""
    (z, s), half = waves(40), HalfDistance()
    for rows, covariance, correlation in (
        (z, -0.013371022759513629, -0.05268111549987543),
        (z[:, 0], 0.015470066244242131, 0.09669531231238256),
    ):
        assert 4 * float(hsic_unbiased(rows, s, half, half)) == approx(covariance, rel=1e-10)
        assert normalized_hsic_interval(rows, s, half, half).value == approx(correlation, rel=1e-9)


def test_an_interval_does_not_depend_on_scale_or_order():
    z, s = correlated(60, 0.4, 2)
    first = normalized_hsic_interval(z, s).interval
    order = torch.randperm(60, generator=torch.Generator().manual_seed(0))
    for other in (
        normalized_hsic_interval(z[order], s[order]),
        normalized_hsic_interval(1e6 * z + 5, 1e-6 * s),
    ):
        assert (other.interval.low, other.interval.high) == approx(
            (first.low, first.high), rel=1e-6
        )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("normalized", [False, True])
def test_intervals_and_tests_are_those_of_the_three_moment_law(seed, normalized):
    """Moments at zero over all 5,040 permutations, the slope from eigenvalues and influences of
    whole matrices.
    """
    n = 7
    z, s = correlated(n, 0.0, seed, 2)
    s = s if seed else z[:, :1] ** 3
    k, l = ONE(z, z), ONE(s, s)
    a, b = centered_gram(k), centered_gram(l)
    every = np.array(list(permutations(range(n))))
    values = (a.numpy() * b.numpy()[every[:, :, None], every[:, None, :]]).mean(axis=(1, 2))
    moments = [((values - values.mean()) ** power).mean() for power in (2, 3)]
    value, influence = float(unbiased(k, l)), 2 * (a * b).mean(dim=1)
    scale = 1.0
    if normalized:
        own = float(unbiased(k, k)), float(unbiased(l, l))
        scale = math.sqrt(own[0] * own[1])
        value /= scale
        influence = influence / scale
        influence -= value * ((a * a).mean(dim=1) / own[0] + (b * b).mean(dim=1) / own[1])
    variance, third = moments[0] / scale**2, moments[1] / scale**3
    weak = (
        4 / n / scale * math.prod(float((g @ g @ g).trace() / (n * (g * g).sum())) for g in (a, b))
    )
    excess = max(float(influence.var()) / n - 2 * variance, 0)
    near = 2 * math.sqrt(variance)
    slope = max(weak, (weak * near + excess) / (near + max(value, 0)))

    def law(at):
        deviation = math.sqrt(variance + slope * at)
        return stats.pearson3((third + 1.5 * slope**2 * at) / deviation**3, loc=at, scale=deviation)

    for confidence in (0.1, 0.4, 0.95):
        tail = (1 - confidence) / 2
        effect = (normalized_hsic_interval if normalized else hsic_interval)(
            z, s, ONE, ONE, confidence=confidence
        )
        low, high = effect.interval.low, effect.interval.high
        assert effect.value == approx(value)
        assert (effect.n, effect.kernels, effect.interval.confidence) == (
            n,
            (repr(ONE), repr(ONE)),
            confidence,
        )
        below, above = law(low).sf(value) if low >= 0 else 1, law(high).cdf(max(value, 0))
        at_value, at_zero = low == approx(value), low == 0  # an end that is not a root of the law
        assert (
            below <= tail
            if at_value and value > 0
            else below >= tail
            if at_zero or value < 0
            else below == approx(tail)
        )
        top, bottom = normalized and high >= 1, high == approx(max(value, 0))
        assert (
            above >= tail or value >= 1
            if top
            else above <= tail
            if bottom
            else above == approx(tail)
        )


@pytest.mark.parametrize(
    "rho", [0.0, 0.3, *(pytest.param(rho, marks=pytest.mark.slow) for rho in (0.1, 0.5))]
)
def test_the_interval_of_hsic_covers_the_closed_form(rho):
    """Jointly normal, bandwidths one. At zero nothing can lie below the interval, and half of the
    misses are gone.
    """
    draws, truth = 200, gaussian_population(rho)
    for confidence in (0.95, 0.99):
        effects = [
            hsic_interval(*correlated(100, rho, i), ONE, ONE, confidence=confidence)
            for i in range(draws)
        ]
        covered = np.mean(
            [effect.interval.low <= truth <= effect.interval.high for effect in effects]
        )
        low, high = band(draws, confidence)
        assert low <= covered
        assert covered <= high or rho in (0.0, 0.1)  # conservative near zero


@pytest.mark.parametrize("d", [1, 10])
def test_normalized_intervals_cover_the_mean_of_their_estimates(d):
    """The mean over 120 samples is as good as the population value: its error is an eleventh of one
    estimate's.
    """
    for kernels in ((Gaussian(math.sqrt(2 * d)), ONE), (HalfDistance(), HalfDistance())):
        effects = [
            normalized_hsic_interval(*correlated(100, 0.3, seed, d), *kernels)
            for seed in range(120)
        ]
        truth = np.mean([effect.value for effect in effects])
        covered = np.mean(
            [effect.interval.low <= truth <= effect.interval.high for effect in effects]
        )
        assert covered >= band(120, 0.95)[0]


def test_one_positive_decision_says_nothing_of_its_share():
    _, s = correlated(20, 0.3, 0)
    effect = normalized_hsic_interval(torch.eye(20)[:, :1], s)
    assert (effect.value, effect.interval.low, effect.interval.high) == (0, 0, 1)


def test_small_pvalues_are_those_of_many_permutations():
    """A gamma with two moments would give a p-value below half of the true one here; three come
    within a third.
    """
    z, s = correlated(80, 0.45, 2)
    many = permutation_test(z, s, resamples=60_000, random_state=0).pvalue
    assert 1e-4 < many < 2e-3
    assert gamma_test(z, s).pvalue == approx(many, rel=0.33)


@pytest.mark.parametrize("kind", ["ten columns", "three", "ties", "skewed", "far"])
def test_the_trace_of_a_cube_by_random_vectors_is_close_to_the_exact_one(kind):
    z, s = correlated(CUBE_ROWS + 2, 0.0, 0, 3 if kind == "three" else 10)
    if kind == "ties":
        z[:60] = z[0]  # a cluster that few random rows would meet
    if kind == "skewed":
        z = z.exp() * (z > -0.5)
    if kind == "far":
        z[0] = 50.0
    gram = Gram.from_rows(z, Gaussian(0.5 if kind == "three" else 4.0))
    other = Gram.from_rows(torch.cat([z, s], dim=1), Gaussian(3.0))
    sums = pair_sums(gram, other).k
    assert gram.factor is None
    a = centered_gram(gram.kernel(z, z))
    exact = float((a @ a * a).sum())
    estimated = own_sums(gram, sums).cubes
    assert float(estimated.trace) == approx(exact, rel=0.03)
    for of_s in (other, Gram.from_rows(s, Gaussian(1.0))):  # without and with a thin factor
        prepared = pair_sums(gram, of_s, signs=random_signs(gram)).k
        assert prepared.signed is not None
        assert own_sums(gram, prepared).cubes == approx(estimated, rel=1e-7)


def test_the_trace_of_a_projection_needs_no_luck():
    """All rows equally far apart: A is a multiple of H, whose powers random vectors cannot tell
    apart.
    """
    gram = Gram.from_rows(torch.eye(CUBE_ROWS + 2, dtype=torch.float64), Gaussian(1.0))
    assert gram.factor is None
    cubes = own_sums(gram, pair_sums(gram, gram, signs=random_signs(gram)).k).cubes
    rounding = (
        3 * gram.n**2 * torch.finfo(torch.float64).eps
    )  # a third power of sums of n² terms, in any order
    assert float(cubes.trace) == approx((gram.n - 1) * (1 - math.exp(-1)) ** 3, rel=rounding)


def test_a_far_off_row_changes_little():
    """One row of 300 is 1e11 away in two columns: its kernel values are 0, those of the others
    stay.
    """
    z, s = correlated(300, 0.5, 0, 3)
    far = torch.cat([z, torch.full((1, 3), 1e11, dtype=torch.float64)])
    far[-1, 0] = 0
    k, l = default_gaussian(z)[0], default_gaussian(s)[0]
    both = torch.cat([s, s[:1]])
    gram_z = k(z, z)
    exact = torch.block_diag(gram_z, torch.ones(1, 1, dtype=torch.float64))
    assert float(hsic(far, both, k, l)) == approx(
        float(hsic_biased_from_gram(exact, l(both, both))), rel=1e-9
    )
    assert permutation_test(far, both, resamples=999, random_state=0).pvalue == 0.001
    assert gamma_test(far, both).pvalue < 1e-6


def test_tests_of_binary_and_zero_inflated_variables_say_which_bandwidth_they_used():
    z, _ = correlated(100, 0.0, 0)
    s = (z[:, 0] > 1).double()
    result = gamma_test(z, s)
    assert result.rejected
    assert result.kernels[1] == "Gaussian(bandwidth=1.0)"
    assert result.bandwidth_rules == ("median distance", "median of the non-zero distances")
    assert gamma_test(z, s, Gaussian(1.0), Linear()).bandwidth_rules == ("given", "given")
    assert (
        default_gaussian(torch.tensor([0.0] * 9 + [1.0, 5.0]))[0].bandwidth == 4.0
    )  # of nine 1, one 4 and nine 5


def test_the_interval_of_hsic_follows_the_unit_of_its_kernels():
    z, s = correlated(80, 0.5, 0)
    one = hsic_interval(z, s, Linear(), Linear())
    for unit in (10.0, 1e-6):
        other = hsic_interval(unit * z, s, Linear(), Linear()).interval
        ends = unit**2 * one.interval.low, unit**2 * one.interval.high
        assert (other.low, other.high) == approx(ends, rel=1e-6, abs=0)


@pytest.mark.parametrize("n", [8, 300])
def test_distances_of_two_columns_by_sorting_have_the_law_of_their_gram_matrices(n):
    z, s = correlated(n, 0.4, 3, 1)
    s[: n // 3] = s[0]
    half = HalfDistance()
    by_sorting = law_pair_from_rows(z, s, half, half)
    assert isinstance(by_sorting, ColumnPair)
    # a column of zeros changes no distance, but is no longer sorted
    by_tiles = law_pair_from_rows(torch.cat([z, torch.zeros(n, 1)], 1), s, half, half)
    for effect in (hsic_effect, normalized_effect):
        one, other = effect(by_sorting, 0.9), effect(by_tiles, 0.9)
        assert (one.value, one.interval.low, one.interval.high) == approx(
            (other.value, other.interval.low, other.interval.high), rel=1e-9
        )
        assert (one.n, one.kernels, one.bandwidth_rules) == (
            other.n,
            other.kernels,
            other.bandwidth_rules,
        )
    assert gamma_test_from_pair(by_sorting, 0.05).pvalue == approx(
        gamma_test_from_pair(by_tiles, 0.05).pvalue, rel=1e-7
    )
