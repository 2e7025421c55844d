"""The gap of the smoothed mean: definition, closed forms, level, coverage and binning."""

import itertools
import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import at_least, within
from dependence_samples import sloped as sample
from frhsic.penalties.rivals import gdp_value
from frhsic_paper.statistics import smoothed_gdp
from frhsic_paper.statistics.smoothed import EXACT_VALUES, _Gaps, evaluation_points, sample_nodes

QUICK = {"bootstrap": 0, "permutations": 0}


def smoothed_by_definition(f, s, at, h):
    weights = [math.exp(-((at - x) ** 2) / (2 * h * h)) for x in s]
    return sum(w * y for w, y in zip(weights, f)) / sum(weights)


def gdp_by_definition(f, s, h, weighting):
    """One point, one row at a time."""
    places = (
        s if weighting == "population" else [min(s) + (max(s) - min(s)) * g / 49 for g in range(50)]
    )
    mean = sum(f) / len(f)
    return sum(abs(smoothed_by_definition(f, s, at, h) - mean) for at in places) / len(places)


F = [0.1, 0.7, 0.4, 0.9, 0.2, 0.35]
S = [1.0, 3.0, 3.0, 4.5, 0.5, 2.0]


@pytest.mark.parametrize("weighting", ["population", "uniform"])
@pytest.mark.parametrize("h", [0.05, 0.6])
def test_it_is_its_definition(weighting, h, dtype):
    f, s = torch.tensor(F, dtype=dtype), torch.tensor(S, dtype=dtype)
    expected = gdp_by_definition(F, S, h, weighting)
    rel = 1e-6 if dtype == torch.float32 else 1e-11
    assert float(smoothed_gdp(f, s, bandwidth=h, weighting=weighting, **QUICK)) == approx(
        expected, rel=rel
    )
    core = gdp_value(f, s, h, *evaluation_points(s, h, weighting))
    assert core.dtype == dtype
    assert core.item() == approx(expected, rel=10 * rel)


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_the_score_that_is_s_gives_its_smoothed_closed_form(h):
    # S normal: the smoother takes S to s / (1 + h²), so GDP tends to √(2/π) / (1 + h²)
    samples = [np.random.default_rng(seed).standard_normal(1000) for seed in range(20)]
    values = [float(smoothed_gdp(s, s, bandwidth=h, **QUICK)) for s in samples]
    mean, error = within(values)
    assert mean == approx(math.sqrt(2 / math.pi) / (1 + h**2), abs=4 * error + 1 / 1000 / h)


@pytest.mark.parametrize("weighting", ["population", "uniform"])
def test_binning_many_values_changes_the_fourth_digit_at_most(weighting):
    f, s = sample(3000, 4)
    s = s**2  # uneven
    h = 0.05
    at = torch.from_numpy(s) if weighting == "population" else evaluation_points(s, h, "uniform")[0]
    exact = gdp_value(torch.from_numpy(f), torch.from_numpy(s), h, at).item()
    assert len(evaluation_points(s, h)[0]) < 1500  # fewer than the distinct values: it was binned
    assert float(smoothed_gdp(f, s, bandwidth=h, weighting=weighting, **QUICK)) == approx(
        exact, rel=1e-4
    )


def test_linear_binning_divides_each_row_between_the_two_nodes_around_it():
    s = np.sort(np.random.default_rng(5).uniform(5, 9, size=EXACT_VALUES + 500))
    nodes = sample_nodes(s, bandwidth=0.5)
    shares = nodes.shares.toarray()
    assert shares.min() >= 0
    assert shares.sum(axis=0) == approx(1)
    assert shares.T @ nodes.values == approx(s)
    assert ((shares > 0).sum(axis=0) <= 2).all()


def test_an_outlier_takes_one_node():
    f, s = sample(3000, 5)
    s[0] = 1e6
    assert float(smoothed_gdp(f, s, bandwidth=0.1, **QUICK)) == approx(
        float(smoothed_gdp(f[1:], s[1:], bandwidth=0.1, **QUICK)), abs=1e-3
    )


def test_permutations_give_the_mean_over_all_orders_and_the_exact_p_value():
    f, s = [0.0, 1.0, 2.0, 5.0, 4.0], [0.0, 0.0, 1.0, 1.0, 2.0]
    every = [
        float(smoothed_gdp(order, s, bandwidth=0.3, **QUICK)) for order in itertools.permutations(f)
    ]
    result = smoothed_gdp(f, s, bandwidth=0.3, bootstrap=0, permutations=4000)
    observed = float(smoothed_gdp(f, s, bandwidth=0.3, **QUICK))
    assert result.expected_under_independence == approx(
        np.mean(every), abs=4 * np.std(every) / math.sqrt(4000)
    )
    exact = np.mean([v >= observed - 1e-12 for v in every])  # ties count
    assert result.pvalue == approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 4000) + 1e-3)
    far = np.arange(20.0)
    assert (
        smoothed_gdp(far, far, bandwidth=0.3, bootstrap=0, permutations=9).pvalue == 1 / 10
    )  # none reaches it


@pytest.mark.parametrize("discrete", [False, True], ids=["continuous", "ties"])
def test_the_p_value_keeps_its_level(discrete):
    rng, options = np.random.default_rng(10), {"bootstrap": 0, "permutations": 99}
    pvalues = []
    for _ in range(300):
        f, s = rng.random((2, 60))
        f, s = (np.round(f), np.round(3 * s)) if discrete else (f, s)
        pvalues.append(
            smoothed_gdp(f, s, bandwidth=0.1 * np.ptp(s), random_state=rng, **options).pvalue
        )
    assert at_least(0.95, np.array(pvalues) > 0.05)
    if not discrete:
        assert np.mean(pvalues) == approx(0.5, abs=4 * 0.29 / math.sqrt(300))


@pytest.mark.parametrize(
    ("slope", "weighting"),
    [(0.0, "population"), (1.0, "population"), (0.1, "uniform")],
)
def test_the_interval_covers_the_smoothed_gap(slope, weighting):
    _, s = sample(200_000, 12)
    truth = float(
        smoothed_gdp(slope * s, s, bandwidth=0.1, weighting=weighting, **QUICK)
    )  # no noise: the smoothed gap
    options = {"bandwidth": 0.1, "weighting": weighting, "bootstrap": 150, "permutations": 0}
    ends = [
        smoothed_gdp(*sample(300, 100 + seed, slope), **options).interval for seed in range(100)
    ]
    assert at_least(0.95, [low <= truth + 1e-12 and truth <= high for low, high in ends])


def test_the_interval_has_the_derivative_in_the_weights_of_rows():
    """Two distant groups, so that no gap is near zero; each value of s has one row, whose weight is
    random.
    """
    rng = np.random.default_rng(3)
    s = np.sort(np.concatenate([rng.random(6), 10 + rng.random(8)]))
    f = (s > 5) + 0.05 * rng.standard_normal(14)
    kernel = np.exp(-(((s[:, None] - s) / 0.3) ** 2) / 2)

    def value(w):
        return w @ np.abs(kernel @ (w * f) / (kernel @ w) - w @ f / w.sum()) / w.sum()

    gaps, drawn = (
        _Gaps((f - f.mean())[:, None], s, 0.3, "population"),
        rng.standard_normal((2, 14, 9)),
    )
    slopes = [(value(1 + 1e-5 * e) - value(1 - 1e-5 * e)) / 2e-5 for e in drawn[0].T]
    whole = value(np.ones(14))
    expected = whole - np.quantile(slopes, 0.8), whole - np.quantile(slopes, 0.2)
    assert gaps._ends(0, drawn, 0.2) == approx(expected, rel=1e-6)


def test_ties_that_balance_have_an_interval_that_rounding_does_not_move():
    """Two levels of s with the same four scores each: the gap is zero up to rounding, whose sign
    decided before.
    """
    f, s = np.tile([0.1, 0.2, 0.3, 0.7], 100), np.repeat([0.0, 1.0], 200)
    intervals = [
        smoothed_gdp(f + shift, s, bandwidth=0.1, permutations=0).interval
        for shift in (0.0, 0.1, 1 / 3)
    ]
    noise = 0.5 * f.std() * math.sqrt(4 / 400)  # of the gap of either level
    for low, high in intervals:
        assert low == 0
        assert noise < high < 4 * noise
        assert high == approx(intervals[0][1], rel=1e-9)
