"""The rank gap: its definition, closed forms, invariance to increasing maps, level, coverage and design."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest import approx

from frhsic.parity import gdp, rank_gap
from frhsic.parity.gap import gap_of_each
from frhsic.parity.local_means import skewed

QUICK = {"resamples": 0}


def by_definition(f, s):
    """Mean over nine deciles of the share-weighted distance of each level's rate from the overall rate."""
    gaps = []
    for k in range(1, 10):
        q = min(value for value in f if (f <= value).sum() * 10 >= k * len(f))
        above = f > q
        gaps.append(sum((s == v).mean() * abs(above[s == v].mean() - above.mean()) for v in np.unique(s)))
    return np.mean(gaps)


@pytest.mark.parametrize("values", [2, 3, 5])
def test_it_is_its_definition_where_signs_are_certain(values):
    s = np.repeat(np.arange(values), 60)
    f = np.round(np.tile(np.linspace(0, 1, 60), values), 1) + s  # ten scores in each level, levels overlap in one
    assert float(rank_gap(f, s, **QUICK)) == approx(by_definition(f, s), rel=0.02)


def test_it_is_the_mean_gap_of_decisions_at_the_deciles():
    rng = np.random.default_rng(1)
    s = rng.integers(4, size=200)
    f = np.round(s + 2 * rng.standard_normal(200))
    cuts = np.sort(f)[[math.ceil(k * 200 / 10) - 1 for k in range(1, 10)]]
    each = [gdp(f > q, s, **QUICK).value if (f > q).any() else 0.0 for q in cuts]
    result = rank_gap(f, s, **QUICK)
    assert len(set(cuts)) < 9  # deciles that coincide count as often as they occur
    assert result.per_column == approx(each, rel=1e-12)
    assert float(result) == approx(np.mean(each), rel=1e-12)


def test_a_constant_score_has_no_gap():
    result = rank_gap(np.full(50, 0.3), np.arange(50.0), resamples=20)
    assert (result.value, result.interval) == (0.0, (0.0, 0.0))


def test_a_score_that_is_the_attribute_has_its_closed_form():
    """Five equal levels: two deciles each at the shares .2, .4, .6, .8 gaps 2 p (1 - p); one at the top."""
    s = np.repeat(np.arange(5.0), 100)
    assert float(rank_gap(s, s, **QUICK)) == approx(2 * 2 * (0.16 + 0.24 + 0.24 + 0.16) / 9, rel=1e-3)


def test_increasing_maps_of_the_score_change_nothing():
    rng = np.random.default_rng(2)
    s, f = rng.standard_normal((2, 300))
    f = np.round(f + s, 1)
    weights, people = rng.random(300), rng.integers(100, size=300)
    options = {"sample_weight": weights, "groups": people, "resamples": 30}
    first = rank_gap(f, s, **options)
    for mapped in (np.exp(f), f**3, 0.5 + 1e-3 * f):
        assert rank_gap(mapped, s, **options) == first


def test_repeated_rows_are_weights():
    rng = np.random.default_rng(3)
    s = rng.integers(3, size=120).astype(float)
    f = s + rng.standard_normal(120)
    counts = rng.integers(1, 3, size=120)
    twice = rank_gap(np.repeat(f, counts), np.repeat(s, counts), groups=np.repeat(np.arange(120), counts), **QUICK)
    assert float(rank_gap(f, s, sample_weight=counts, **QUICK)) == approx(float(twice), abs=0.01)


def test_it_keeps_its_level_and_covers_zero_where_the_score_is_independent():
    repeats, rejected, covered = 40, 0, 0
    for seed in range(repeats):
        f, s = np.random.default_rng([seed, 4]).standard_normal((2, 100))
        result = rank_gap(f, s, resamples=99, random_state=seed)
        rejected += result.pvalue <= 0.05
        covered += result.interval[0] == 0
    assert rejected / repeats <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repeats)
    assert covered / repeats >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / repeats)


def test_the_interval_covers_and_its_standard_error_is_that_of_samples():
    """Three equal levels, the score is their number plus normal noise; the truth is that of a million rows."""

    def draw(n, seed):
        rng = np.random.default_rng([seed, 5])
        s = rng.integers(3, size=n).astype(float)
        return s + rng.standard_normal(n), s

    truth = by_rates(*draw(10**6, 0))
    results = [rank_gap(*draw(400, 1 + seed), resamples=50) for seed in range(100)]
    covered = np.mean([r.interval[0] <= truth <= r.interval[1] for r in results])
    assert covered >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 100)
    errors, values = [r.standard_error for r in results], [r.value for r in results]
    assert np.mean(errors) == approx(np.std(values), rel=0.25)


def by_rates(f, s):
    cuts = np.quantile(f, np.arange(1, 10) / 10)
    rates = np.array([[(f[s == v] > q).mean() for v in range(3)] for q in cuts])
    return np.abs(rates - rates.mean(axis=1, keepdims=True)).mean()


@pytest.mark.parametrize("design", ["rows", "weights", "clusters"])
@pytest.mark.parametrize("ranks", [False, True])
def test_columns_that_share_their_smoother_are_those_measured_alone(ranks, design):
    rng = np.random.default_rng(8)
    s = rng.normal(size=300)
    scores = np.stack([s * slope + rng.exponential(size=300) for slope in (0, 0.1, 1)], axis=1)
    weights = rng.uniform(0.5, 1.5, 300) if design == "weights" else None
    people = np.arange(300) // 2 if design == "clusters" else None
    alone = rank_gap if ranks else gdp
    together = gap_of_each(scores, s, ranks=ranks, sample_weight=weights, groups=people, resamples=49)
    for column, result in zip(scores.T, together):
        one = alone(column, s, sample_weight=weights, groups=people, resamples=49)
        assert result.value == pytest.approx(one.value, rel=1e-9)
        assert result.interval == pytest.approx(one.interval, rel=1e-9)
        assert result.standard_error == pytest.approx(one.standard_error, rel=1e-9)
        assert np.isnan(result.pvalue)


def test_noise_has_the_first_three_moments_of_the_scores():
    skewness = np.array([-1.0, 0.0, 0.4, 1.0])
    x, weights = np.polynomial.hermite_e.hermegauss(20)  # exact for polynomials of a normal number
    drawn = skewed(np.tile(x, (4, 1)), skewness)
    moments = [drawn**k @ weights / weights.sum() for k in (1, 2, 3)]
    np.testing.assert_allclose(moments, [np.zeros(4), np.ones(4), skewness], atol=1e-12)
