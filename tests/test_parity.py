"""GDP, the rank gap and the curve: truths, invariance, level, coverage, weights, clusters and
limits.
"""

import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy.stats import norm

from dependence_samples import at_least
from dependence_samples import sloped as sample
from frhsic import parity
from frhsic.parity import (
    correlation_ratio,
    gap,
    gdp,
    gdp_curve,
    rank_gap,
    standardized_gdp,
)
from frhsic.parity.explained import _variance_without_effect
from frhsic.parity.gap import gaps_by_column, tail_share
from frhsic.parity.local_means import RowNoise, spread_trend
from frhsic.parity.sums import Cells

QUICK = {"resamples": 0}


def zero_inflated(u):
    return np.where(u < 0.92, 0.0, np.exp(norm.ppf(np.clip((u - 0.92) / 0.08, 1e-12, 1 - 1e-12))))


def ages(u):
    return np.floor(18 + 60 * u**1.4)


def ages_gap():
    mean = ages((np.arange(10**6) + 0.5) / 10**6) / 100
    return float(np.abs(mean - mean.mean()).mean())


# name: (s, mean of the score, standard deviation of its noise, E|E[f|S] - E f|), all in terms of
# the ranks u of s
LAWS = {
    "normal": (norm.ppf, norm.ppf, 0.5, math.sqrt(2 / math.pi)),
    "log-normal": (lambda u: np.exp(norm.ppf(u)), lambda u: u / 2, 0.1, 1 / 8),
    "wide log-normal": (lambda u: np.exp(2 * norm.ppf(u)), lambda u: u, 0.2, 1 / 4),
    "quadratic": (lambda u: 2 * u - 1, lambda u: (2 * u - 1) ** 2, 0.3, 4 / (9 * math.sqrt(3))),
    "zero-inflated": (zero_inflated, lambda u: 1.0 * (u >= 0.92), 0.3, 2 * 0.92 * 0.08),
    "ages": (ages, lambda u: ages(u) / 100, 0.2, ages_gap()),
    "binary": (lambda u: 1.0 * (u >= 0.7), lambda u: 0.4 * (u >= 0.7), 0.3, 2 * 0.3 * 0.7 * 0.4),
    "independent": (lambda u: np.exp(norm.ppf(u)), lambda u: 0 * u, 0.3, 0.0),
    "alternating": (lambda u: np.floor(12 * u), lambda u: 0.1 * (-1) ** np.floor(12 * u), 0.3, 0.1),
    "jump": (lambda u: u, lambda u: 1.0 * (u > 0.9), 1.0, 0.18),
}


def draw(law, n, seed):
    s, mean, noise, truth = LAWS[law]
    rng = np.random.default_rng([n, seed])
    u = rng.random(n)
    return mean(u) + noise * rng.standard_normal(n), s(u), truth


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("law", list(LAWS)[:8])
def test_it_estimates_its_definition(law, n):
    f, s, truth = draw(law, n, 0)
    result = gdp(f, s, resamples=99)
    assert result.value == approx(truth, abs=3 * result.standard_error)
    scale = math.sqrt(np.var(LAWS[law][1]((np.arange(10**5) + 0.5) / 10**5)) + LAWS[law][2] ** 2)
    standardized = standardized_gdp(f, s, resamples=99)
    assert standardized.value == approx(truth / scale, abs=3 * standardized.standard_error)


def test_increasing_maps_outliers_and_row_order_change_nothing():
    f, s, _ = draw("log-normal", 700, 1)
    whole = gdp(f, s, resamples=50)
    outlier = s.copy()
    outlier[s.argmax()] = 1e9
    order = np.random.default_rng(0).permutation(len(f))
    for other in (
        np.log(s),
        np.exp(np.minimum(s, 600)),
        s.argsort().argsort(),
        outlier,
        1e4 + 365 * s,
    ):
        assert gdp(f, other, resamples=50) == whole
    assert gdp(f[order], s[order], resamples=50) == whole
    assert correlation_ratio(f[order], np.log(s)[order]) == correlation_ratio(f, s)
    assert gdp_curve(f, np.log(s)).mean.tolist() == gdp_curve(f, s).mean.tolist()


def test_binary_attributes_give_demographic_parity():
    """The difference is demographic_parity_difference of fairlearn 0.15.0 on the same decisions."""
    i = np.arange(500)
    s = (i % 5 == 0).astype(float)
    decisions = (i * 7 % 11 < 4 + 3 * s).astype(float)
    difference = 0.2775
    assert float(gdp(decisions, s, **QUICK)) == approx(2 * 0.2 * 0.8 * difference, rel=1e-5)


def test_it_scales_with_the_scores_and_the_standardized_one_does_not():
    f, s = sample(300, 2)
    assert float(gdp(5 - 3 * f, s, **QUICK)) == approx(3 * float(gdp(f, s, **QUICK)), rel=1e-9)
    assert float(standardized_gdp(5 - 3 * f, s, **QUICK)) == approx(
        float(standardized_gdp(f, s, **QUICK)), rel=1e-9
    )
    assert float(standardized_gdp(f, s, **QUICK)) == approx(
        float(gdp(f, s, **QUICK)) / f.std(), rel=1e-12
    )
    full, small = standardized_gdp(f, s, resamples=50), standardized_gdp(0.01 * f, s, resamples=50)
    assert small.interval == approx(full.interval, rel=1e-9)
    assert small.expected_under_independence == approx(full.expected_under_independence, rel=1e-9)
    one, other = (gdp(sign * np.exp(f), s) for sign in (1, -1))  # skewed
    for name in ("value", "pvalue", "expected_under_independence"):
        assert getattr(other, name) == approx(getattr(one, name), rel=1e-9)


def test_weights_are_repeats_that_are_left_out_together():
    rng = np.random.default_rng(3)
    f, s = sample(200, 3)
    s = np.round(s, 2)
    repeats = rng.integers(1, 4, 200)
    rows = np.repeat(np.arange(200), repeats)
    weighted = gdp(f, s, sample_weight=repeats, resamples=400)
    repeated = gdp(f[rows], s[rows], groups=rows, resamples=400)
    assert repeated.value == approx(weighted.value, rel=1e-10)
    assert repeated.resolution == approx(weighted.resolution, rel=1e-12)
    assert repeated.standard_error == approx(weighted.standard_error, rel=0.1)
    assert gdp(f, s, sample_weight=7 * np.ones(200), resamples=20) == gdp(f, s, resamples=20)
    half = np.arange(200) % 2 == 0
    assert gdp(f, s, sample_weight=half, resamples=20) == gdp(f, s, where=half, resamples=20)
    curves = gdp_curve(f, s, sample_weight=repeats, bins=4), gdp_curve(f[rows], s[rows], bins=4)
    assert curves[0].overall == approx(curves[1].overall, rel=1e-12)
    assert (len(curves[0].at), len(gdp_curve(f, s, bins=2).at)) == (4, 2)


def test_weights_estimate_the_population_that_they_stand_for():
    # rows with s > 0.8 are drawn three times too rarely; the weights undo it, and E|s - 1/2| is 1/4
    rng = np.random.default_rng(4)
    s = rng.random(30_000)
    s = s[(s <= 0.8) | (rng.random(30_000) < 1 / 3)]
    f = s + 0.2 * rng.standard_normal(len(s))
    result = gdp(f, s, sample_weight=np.where(s > 0.8, 3.0, 1.0), resamples=99)
    assert result.value == approx(1 / 4, abs=3 * result.standard_error)
    assert gdp(f, s, resamples=99).interval[1] < 1 / 4


def null(kind, n, seed):
    rng = np.random.default_rng([n, seed, 7])
    s = rng.random(n)
    if kind == "ties":
        return np.round(rng.random(n)), np.round(3 * s)
    if kind == "clusters":
        person = np.arange(n) // 4
        return rng.standard_normal(n)[person] + 0.3 * rng.standard_normal(n), s[person]
    return rng.standard_normal(n) * (0.05 + s**2 if kind == "spread" else 1), s


@pytest.mark.parametrize("draw", ["standard_normal", "standard_exponential"])
@pytest.mark.parametrize(("resamples", "level"), [(99, 0.05), (999, 0.005)])
def test_the_fitted_tail_keeps_its_level(draw, resamples, level):
    trials = 4000
    values = getattr(np.random.default_rng(2), draw)((trials, resamples + 1))
    rejected = np.mean([tail_share(row[1:], row[0]) <= level for row in values])
    assert rejected <= level * 1.05 + 3 * math.sqrt(
        level / trials
    )  # a normal tail lies 5 % off the exponential one


def test_the_resolution_says_what_is_averaged_out():
    s = np.random.default_rng(15).random(1000)
    f = np.cos(40 * s)
    for share in (0.005, 0.02, 0.05, 0.1):
        expected = smoothed_wave(40 / (2 * math.pi), share)
        assert gdp(f, s, resolution=share, **QUICK).value == approx(expected, abs=0.02)
    assert gdp(f, s, **QUICK) == gdp(f, s, resolution=0.05, **QUICK)
    assert correlation_ratio(f, s).value > 0.98


def test_the_seed_reproduces_the_result():
    f, s = sample(100, 15)
    first = gdp(f, s, random_state=None, resamples=50)
    assert gdp(f, s, random_state=first.seed, resamples=50) == first
    one, two = (gdp(f, s, random_state=seed, resamples=50) for seed in (1, 2))
    assert one.value == two.value
    assert one.pvalue != two.pvalue
    drawn = gdp(f, s, random_state=np.random.default_rng(3), resamples=50)
    assert drawn == gdp(f, s, random_state=drawn.seed, resamples=50)
    assert all(math.isnan(v) for v in (*gdp(f, s, **QUICK).interval, gdp(f, s, **QUICK).pvalue))


def test_classes_are_measured_one_by_one_and_the_largest_is_reported():
    rng = np.random.default_rng(160)
    f, s = sample(300, 16)
    scores = np.stack([rng.random(300), f, 0.5 * f], axis=1)
    result = gdp(scores, s)
    alone = [gdp(column, s) for column in scores.T]
    assert result.per_column == approx([r.value for r in alone], rel=1e-12)
    assert result.value == result.per_column[1]
    low, high = result.interval  # simultaneous, hence wider
    assert low < alone[1].interval[0] < result.value < alone[1].interval[1] < high
    assert (
        result.expected_under_independence
        >= max(r.expected_under_independence for r in alone) - 1e-12
    )


def test_groups_of_the_curve_hold_all_rows_and_never_split_ties():
    rng = np.random.default_rng(19)
    s = np.round(rng.gamma(4, 6, 900))
    f = s / 50 + rng.random(900)
    curve = gdp_curve(f, s)
    assert curve.rows.sum() == 900
    assert (curve.start[1:] > curve.end[:-1]).all()
    for start, end, mean, at in zip(curve.start, curve.end, curve.mean, curve.at):
        inside = (s >= start) & (s <= end)
        assert mean == approx(f[inside].mean())
        assert at == np.median(s[inside])
    assert gdp_curve(f, s > 20).at.tolist() == [0.0, 1.0]


def test_of_few_values_each_one_with_enough_rows_is_a_bin():
    counts = [162, 10, 20, 40, 223, 35, 60, 99, 4, 26, 6]
    s = np.repeat(np.arange(11.0), counts)
    f = (s % 2) * 0.5 + np.random.default_rng(2).random(len(s)) / 10
    curve = gdp_curve(f, s)
    assert curve.start.tolist() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert curve.end.tolist() == [0, 2, 3, 4, 5, 6, 7, 10]
    assert curve.rows.tolist() == [162, 30, 40, 223, 35, 60, 99, 36]
    for start, end, mean, at in zip(curve.start, curve.end, curve.mean, curve.at):
        inside = (s >= start) & (s <= end)
        assert mean == approx(f[inside].mean())
        assert at == np.median(s[inside])
    assert len(gdp_curve(f, s, bins=5).at) <= 5  # as requested
    more = np.append(s, np.linspace(20, 30, 200))  # no longer few values
    assert len(gdp_curve(np.append(f, f[:200]), more).at) <= 8  # one for each hundred rows


@pytest.mark.parametrize("slope", [0.0, 0.3, 2.0])
def test_the_correlation_ratio_has_its_truth_inside_its_interval(slope):
    truth = slope**2 / 12 / (slope**2 / 12 + 0.09)
    results = [correlation_ratio(*sample(400, 700 + seed, slope)) for seed in range(200)]
    assert at_least(0.95, [r.interval[0] <= truth <= r.interval[1] for r in results])


@pytest.mark.parametrize(
    ("law", "n"),
    [
        *((law, 250) for law in ("log-normal", "zero-inflated", "ages")),
        ("alternating", 1000),
        ("jump", 200),
    ],
)
def test_the_interval_covers(law, n):
    """Also where twelve levels alternate by 0.2, which no local mean may smooth together, and at a
    jump.
    """
    truth, results = (
        LAWS[law][3],
        [gdp(*draw(law, n, 100 + seed)[:2], resamples=49) for seed in range(80)],
    )
    assert at_least(
        0.95, [r.interval[0] <= truth + 1e-12 and truth <= r.interval[1] for r in results]
    )
    if law == "alternating":
        assert np.mean([r.value for r in results]) == approx(truth, abs=0.006)


@pytest.mark.parametrize("kind", ["equal spread", "spread", "ties", "clusters"])
def test_the_p_value_keeps_its_level_and_the_expected_value_is_that_of_flat_means(kind):
    options = {"groups": np.arange(100) // 4} if kind == "clusters" else {}
    results = [gdp(*null(kind, 100, seed), resamples=99, **options) for seed in range(120)]
    assert at_least(0.95, [r.pvalue > 0.05 for r in results])
    values = [r.value for r in results]
    expected = np.mean([r.expected_under_independence for r in results])
    assert expected == approx(np.mean(values), abs=4 * np.std(values) / math.sqrt(120))
    if kind == "clusters":  # rows that are taken as independent reject too often
        assert (
            np.mean(
                [gdp(*null(kind, 100, seed), resamples=49).pvalue <= 0.05 for seed in range(30)]
            )
            > 0.3
        )


@pytest.mark.parametrize("skewed", [False, True])
def test_the_band_holds_all_groups_at_once(skewed):
    """Skewed: nine in ten scores are zero, the others log-normal; without a correction the band
    held in .34.
    """
    hits = []
    for seed in range(120):
        rng = np.random.default_rng([seed, 34])
        s = rng.random(1000)
        zeros = (rng.random(1000) < 0.1) * np.exp(rng.standard_normal(1000))
        curve = gdp_curve(zeros if skewed else s + 0.3 * rng.standard_normal(1000), s)
        truth = 0.1 * math.exp(0.5) if skewed else (curve.start + curve.end) / 2
        hits.append(bool(((curve.lower <= truth) & (truth <= curve.upper)).all()))
    assert at_least(0.95, hits)


def test_rows_that_count_and_the_worst_of_several_attributes():
    f, s = sample(200, 17)
    y = np.arange(200) % 3 == 0
    expected = float(gdp(f[y], s[y], **QUICK))
    assert float(gdp(f, s, where=y, **QUICK)) == expected
    frame = pd.DataFrame({"age": s, "hours": np.arange(200.0)})
    values = [gdp(f, column, **QUICK).value for _, column in frame.items()]
    assert parity.gdp_difference(None, f, sensitive_features=frame) == max(values)
    assert parity.equal_opportunity_gdp(y, f, sensitive_features=frame) >= expected


def test_a_constant_score_has_no_gap():
    assert float(gdp([0.1] * 6, np.arange(6))) == approx(0, abs=1e-15)
    result = rank_gap(np.full(50, 0.3), np.arange(50.0), resamples=20)
    assert (result.value, result.interval) == (0.0, (0.0, 0.0))


@pytest.mark.slow
def test_a_million_rows_stay_in_memory():
    import resource

    f, s = sample(1_000_000, 21)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = gdp(f, s)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kB
    assert result.interval[0] < result.value < result.interval[1]


def test_a_negative_estimate_does_not_lower_the_upper_end():
    """The sign of each row is taken from the others, so that the statistic can fall below zero; the
    gap cannot.
    """
    negative = 0
    for seed in range(20):
        f, s = np.random.default_rng(seed).normal(size=(2, 60))
        result = gdp(f, s, resamples=49)
        negative += result.value == 0
        reach = (
            2.001 * result.standard_error
        )  # the quantile of Student's t at 59 degrees of freedom
        assert result.interval[1] >= result.value + reach * 0.999
    assert negative


def test_the_variance_of_the_correlation_ratio_without_effect_is_that_of_simulated_samples():
    """Thirty values of s with three rows and ten with two, whose rows have twice the weight."""
    sizes = np.repeat([3, 2], [30, 10])
    starts = np.cumsum(sizes) - sizes
    w = np.repeat([1.0, 2.0], [90, 20])
    w /= w.mean()
    f = np.random.default_rng(0).normal(size=(4000, 110))
    means = np.add.reduceat(f, starts, axis=1) / sizes
    within = np.add.reduceat((f - np.repeat(means, sizes, axis=1)) ** 2, starts, axis=1) / (
        sizes - 1
    )
    within = np.repeat(within, sizes, axis=1)
    total = ((f - f @ w[:, None] / 110) ** 2) @ w * 110 / (110**2 - w @ w)
    values = total - within @ w / 110
    estimates = [_variance_without_effect(w, each, starts) for each in within[:1000]]
    assert np.mean(estimates) == pytest.approx(values.var(), rel=0.1)


def test_the_mean_of_one_row_can_be_anything():
    curve = gdp_curve([0.2, 0.5, 0.9], [0.0, 1.0, 2.0])
    assert len(curve.at) == 3
    assert (curve.lower == -math.inf).all()
    assert (curve.upper == math.inf).all()


def smoothed_wave(waves, share):
    """E|E[f | S]| of a sine with so many waves, averaged over a share of the people.

    The windows at both ends are cut off, which changes it by less than the share.
    """
    return 2 / math.pi * abs(np.sinc(waves * share))


@pytest.mark.parametrize(("size", "waves"), [(0.2, 10), (0.3, 5)])
def test_the_interval_covers_moderate_waves_at_the_resolution_that_it_states(size, waves):
    """Noise of 1 and 1,000 rows: the waves are too weak for their signs to be known."""
    truth = size * smoothed_wave(waves, 0.05)
    results = []
    for seed in range(100):
        rng = np.random.default_rng([seed, waves])
        s = rng.random(1000)
        f = size * np.sin(2 * math.pi * waves * s) + rng.standard_normal(1000)
        results.append(gdp(f, s, resamples=99))
    assert all(r.resolution == approx(0.05) for r in results)
    assert at_least(0.975, [r.interval[1] >= truth for r in results])
    assert at_least(0.975, [r.interval[0] <= size * 2 / math.pi for r in results])


def test_no_positive_decision_is_no_proof_that_there_is_no_gap():
    """Of 200 rows without a positive one the rate is at most .0183, and the gap 2 μ (1 - μ)."""
    s = np.arange(200.0)
    rate = 1 - 0.025 ** (1 / 200)
    assert gdp(np.zeros(200), s).interval == approx((0.0, 2 * rate * (1 - rate)))
    people = np.repeat(np.arange(100), 2)
    rate = 1 - 0.025 ** (1 / 100)
    assert gdp(np.zeros(200), s, groups=people).interval == approx((0.0, 2 * rate * (1 - rate)))
    assert gdp(np.ones(200), s, groups=people).interval == approx((0.0, 2 * rate * (1 - rate)))
    for chance, farthest in ((0.3, 0.7), (0.6, 0.6)):  # of another person: 1, or 0
        result = gdp(np.full(200, chance), s, groups=people)
        assert (result.value, result.pvalue) == (0, 1)
        assert result.interval == approx((0.0, farthest * 2 * rate * (1 - rate)))
    assert gdp(np.full(200, 40.0), s).interval == (0.0, 0.0)  # whose range is unknown
    none, all_ = gdp_curve(np.zeros(200), s), gdp_curve(np.ones(200), s)
    assert none.lower == approx(0)
    assert all_.upper == approx(1)
    assert none.upper == approx(1 - all_.lower)
    assert none.upper == approx(
        1 - ((1 - 0.95 ** (1 / 5)) / 2) ** (1 / 40)
    )  # Clopper and Pearson at 0 of 40


def test_the_standardized_gap_and_its_interval_are_at_most_one():
    s = np.repeat([0.0, 1.0], 10)
    assert standardized_gdp(s + 1e-3 * np.arange(20), s, resamples=50).interval[1] <= 1


def test_sums_over_cells_are_the_powers_of_the_scores():
    s = np.array([0.0, 1.0, 1.0, 3.0, -2.0])
    f = np.array([0.5, 0.25, 1.0, 0.0, 2.0])
    cells = Cells(np.array([0.0, 1.0, 2.0]), np.arange(3), np.arange(3), np.arange(3.0))
    sums = cells.sums(f, s, 0.75, (0.0, 2.0))
    members = [[0, 4], [1, 2], [3]]  # what lies below the first cell belongs to it
    expected = [
        [sum((f[i] - 0.75) ** power for i in rows) for rows in members] for power in range(5)
    ]
    np.testing.assert_allclose(sums.powers, [expected] * 4, rtol=1e-12)
    assert sums.low.tolist() == [-2, 1, 3]
    assert sums.high.tolist() == [0, 1, 3]
    assert sums.at_ends.sum() == 2


def test_an_estimate_below_zero_of_the_correlation_ratio_has_the_interval_of_zero():
    for size in (
        2,
        4,
        6,
    ):  # every value of s has the same mean score, more equal than chance would have it
        ratio = correlation_ratio(np.tile([-1.0, 1.0], 30), np.arange(60) // size)
        assert ratio.value == ratio.interval[0] == 0
        assert ratio.interval[1] > ratio.standard_error > 0


def test_scores_in_single_precision_are_measured_in_double():
    f, s = sample(80, 30)
    single = np.exp(3 * f).astype(np.float32), s.astype(np.float32)
    double = tuple(x.astype(np.float64) for x in single)
    for measure in (gdp, standardized_gdp, correlation_ratio):
        assert measure(*single) == measure(*double)


# --- ranks
# --------------------------------------------------------------------------------------------------


def rank_gap_by_definition(f, s):
    """Mean over nine deciles of the share-weighted distance of each level's rate from the overall
    rate.
    """
    gaps = []
    for k in range(1, 10):
        q = min(value for value in f if (f <= value).sum() * 10 >= k * len(f))
        above = f > q
        gaps.append(
            sum((s == v).mean() * abs(above[s == v].mean() - above.mean()) for v in np.unique(s))
        )
    return np.mean(gaps)


@pytest.mark.parametrize("values", [2, 3, 5])
def test_the_rank_gap_is_its_definition_where_signs_are_certain(values):
    s = np.repeat(np.arange(values), 60)
    f = (
        np.round(np.tile(np.linspace(0, 1, 60), values), 1) + s
    )  # ten scores in each level, levels overlap in one
    assert float(rank_gap(f, s, **QUICK)) == approx(rank_gap_by_definition(f, s), rel=0.02)


def test_the_rank_gap_is_the_mean_gap_of_decisions_at_the_deciles():
    rng = np.random.default_rng(1)
    s = rng.integers(4, size=200)
    f = np.round(s + 2 * rng.standard_normal(200))
    cuts = np.sort(f)[[math.ceil(k * 200 / 10) - 1 for k in range(1, 10)]]
    each = [gdp(f > q, s, **QUICK).value if (f > q).any() else 0.0 for q in cuts]
    result = rank_gap(f, s, **QUICK)
    assert len(set(cuts)) < 9  # deciles that coincide count as often as they occur
    assert result.per_column == approx(each, rel=1e-12)
    assert float(result) == approx(np.mean(each), rel=1e-12)


def test_increasing_maps_of_the_score_do_not_change_its_rank_gap():
    rng = np.random.default_rng(2)
    s, f = rng.standard_normal((2, 300))
    f = np.round(f + s, 1)
    weights, people = rng.random(300), rng.integers(100, size=300)
    options = {"sample_weight": weights, "groups": people, "resamples": 30}
    first = rank_gap(f, s, **options)
    for mapped in (np.exp(f), f**3, 0.5 + 1e-3 * f):
        assert rank_gap(mapped, s, **options) == first


def test_the_rank_gap_keeps_its_level_and_covers_zero_where_the_score_is_independent():
    draws = [np.random.default_rng([seed, 4]).standard_normal((2, 100)) for seed in range(40)]
    results = [rank_gap(f, s, resamples=99, random_state=seed) for seed, (f, s) in enumerate(draws)]
    assert at_least(0.95, [r.pvalue > 0.05 for r in results])
    assert at_least(0.95, [r.interval[0] == 0 for r in results])


def test_the_interval_of_the_rank_gap_covers_and_its_standard_error_is_that_of_samples():
    """Three equal levels, the score is their number plus normal noise; the truth is that of a
    million rows.
    """

    def leveled(n, seed):
        rng = np.random.default_rng([seed, 5])
        s = rng.integers(3, size=n).astype(float)
        return s + rng.standard_normal(n), s

    f, s = leveled(10**6, 0)
    rates = np.array(
        [[(f[s == v] > q).mean() for v in range(3)] for q in np.quantile(f, np.arange(1, 10) / 10)]
    )
    truth = np.abs(rates - rates.mean(axis=1, keepdims=True)).mean()
    results = [rank_gap(*leveled(400, 1 + seed), resamples=50) for seed in range(100)]
    assert at_least(0.95, [r.interval[0] <= truth <= r.interval[1] for r in results])
    errors, values = [r.standard_error for r in results], [r.value for r in results]
    assert np.mean(errors) == approx(np.std(values), rel=0.25)


@pytest.mark.parametrize("design", ["rows", "weights", "clusters"])
@pytest.mark.parametrize("ranks", [False, True])
def test_columns_that_share_their_smoother_are_those_measured_alone(ranks, design):
    rng = np.random.default_rng(8)
    s = rng.normal(size=120)
    scores = np.stack([s * slope + rng.exponential(size=120) for slope in (0, 1)], axis=1)
    weights = rng.uniform(0.5, 1.5, 120) if design == "weights" else None
    people = np.arange(120) // 2 if design == "clusters" else None
    alone = rank_gap if ranks else gdp
    together = gaps_by_column(
        scores, s, ranks=ranks, sample_weight=weights, groups=people, resamples=49
    )
    for column, result in zip(scores.T, together):
        one = alone(column, s, sample_weight=weights, groups=people, resamples=49)
        assert result.value == approx(one.value, rel=1e-9)
        assert result.interval == approx(one.interval, rel=1e-9)
        assert result.standard_error == approx(one.standard_error, rel=1e-9)
        assert np.isnan(result.pvalue)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("ranks", [False, True])
def test_columns_of_a_batch_do_not_depend_on_each_other_within_strata(
    ranks, clustered, monkeypatch
):
    """One of them is constant, one has few values, and s is constant in a stratum. They may be
    divided among batches.
    """
    rng = np.random.default_rng(9)
    strata = np.arange(200) % 3
    s = np.where(strata == 2, 20.0, np.round(rng.normal(size=200), 1))
    score = s + rng.exponential(size=200)
    scores = np.stack([score, np.full(200, 0.3), score > 2, score**3], axis=1)
    design = {"strata": strata, "sample_weight": rng.uniform(0.5, 1.5, 200), "resamples": 49}
    if clustered:
        design["groups"] = rng.integers(60, size=200)
    together = gaps_by_column(scores, s, ranks=ranks, **design)
    monkeypatch.setattr(gap, "NUMBERS_AT_ONCE", 100)
    assert [one.interval for one in gaps_by_column(scores, s, ranks=ranks, **design)] == [
        approx(one.interval, rel=1e-9, abs=1e-12) for one in together
    ]
    for column, result in zip(scores.T, together):
        (alone,) = gaps_by_column(column[:, None], s, ranks=ranks, **design)
        assert result.value == approx(alone.value, rel=1e-9, abs=1e-12)
        assert result.interval == approx(alone.interval, rel=1e-9, abs=1e-12)
        assert result.standard_error == approx(alone.standard_error, rel=1e-9, abs=1e-12)


def test_noise_has_the_first_three_moments_of_the_scores():
    """Also where a sum is far more skewed than one: a single row of a rare decision."""
    variance = np.array([4.0, 1.0, 0.25, 0.01])
    skewness = np.array([-1.0, 0.0, 0.4, 3.0])
    drawn = RowNoise(variance, skewness).draw([0], 400_000)
    assert drawn.mean(axis=1) / np.sqrt(variance) == approx(np.zeros(4), abs=0.008)
    assert drawn.var(axis=1) / variance == approx(np.ones(4), rel=0.02)
    assert (drawn**3).mean(axis=1) / variance**1.5 == approx(skewness, rel=0.06, abs=0.03)


def test_rounding_has_no_sign_where_the_people_nearby_are_everybody():
    """Where one of 200 rows has a weight of 30, four times as many people as a local mean has are
    all of them in the middle of s. Their mean less the overall mean is 0 but for rounding, which
    multiples of weights and scores change.
    """
    random = np.random.default_rng(0)
    for _ in range(5):
        f, s = random.standard_t(3, 200), random.random(200)
        weights = np.ones(200)
        weights[random.integers(200)] = 30
        one = gdp(f, s, sample_weight=weights, resamples=99)
        other = gdp(0.7 * f + 3, s, sample_weight=0.3 * weights, resamples=99)
        assert np.isfinite(one.interval).all()
        assert other.value == approx(0.7 * one.value, rel=1e-9, abs=1e-12)
        assert np.array(other.interval) == approx(0.7 * np.array(one.interval), rel=1e-6)


@pytest.mark.parametrize("growth", [0.0, 4.0, -8.0])
def test_the_trend_of_the_spread_is_that_of_the_variance_along_the_ranks(growth):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 20, size=200) * 1.0
    ranks = (np.cumsum(counts) - counts / 2) / counts.sum()
    squares = np.exp(growth * ranks) * rng.chisquare(counts)
    trend = np.log(spread_trend(counts, squares))
    assert trend[-1] - trend[0] == approx(growth * (ranks[-1] - ranks[0]), abs=0.3)
    assert np.ptp(spread_trend(counts, 0 * squares)) == 0


def test_a_spread_that_grows_along_s_leaves_the_level_of_the_test():
    """By 55-fold, with a skewness that changes sign: .11 without the trend, and .06 with it."""
    rejected = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        s = rng.uniform(size=200)
        scores = np.exp(4 * s) * np.where(s > 0.5, 1, -1) * (rng.exponential(size=200) - 1)
        rejected.append(gdp(scores, s, resamples=99).pvalue <= 0.05)
    assert np.mean(rejected) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)
