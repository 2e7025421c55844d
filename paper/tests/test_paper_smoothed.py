"""The gap of the smoothed mean: definition, closed form and binning."""

import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import sloped as sample
from dependence_samples import within
from frhsic.penalties.rivals import gdp_value
from frhsic_paper.statistics.smoothed import EXACT_VALUES, evaluation_points, sample_nodes


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


def population_gdp(f, s, h):
    """The gap that a measure takes at the values of s, or at nodes between them."""
    f, s = torch.from_numpy(f), torch.from_numpy(s)
    return gdp_value(f, s, h, *evaluation_points(s, h)).item()


F = [0.1, 0.7, 0.4, 0.9, 0.2, 0.35]
S = [1.0, 3.0, 3.0, 4.5, 0.5, 2.0]


@pytest.mark.parametrize("weighting", ["population", "uniform"])
@pytest.mark.parametrize("h", [0.05, 0.6])
def test_it_is_its_definition(weighting, h, dtype):
    f, s = torch.tensor(F, dtype=dtype), torch.tensor(S, dtype=dtype)
    expected = gdp_by_definition(F, S, h, weighting)
    rel = 1e-6 if dtype == torch.float32 else 1e-11
    value = gdp_value(f, s, h, *evaluation_points(s, h, weighting))
    assert value.dtype == dtype
    assert value.item() == approx(expected, rel=10 * rel)


@pytest.mark.parametrize("h", [0.1, 0.5])
def test_the_score_that_is_s_gives_its_smoothed_closed_form(h):
    # S normal: the smoother takes S to s / (1 + h²), so GDP tends to √(2/π) / (1 + h²)
    samples = [np.random.default_rng(seed).standard_normal(1000) for seed in range(20)]
    values = [population_gdp(s, s, h) for s in samples]
    mean, error = within(values)
    assert mean == approx(math.sqrt(2 / math.pi) / (1 + h**2), abs=4 * error + 1 / 1000 / h)


def test_binning_many_values_changes_the_fourth_digit_at_most():
    f, s = sample(3000, 4)
    s = s**2  # uneven
    h = 0.05
    exact = gdp_value(torch.from_numpy(f), torch.from_numpy(s), h, torch.from_numpy(s)).item()
    assert len(evaluation_points(s, h)[0]) < 1500  # fewer than the distinct values: it was binned
    assert population_gdp(f, s, h) == approx(exact, rel=1e-4)


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
    assert population_gdp(f, s, 0.1) == approx(population_gdp(f[1:], s[1:], 0.1), abs=1e-3)
