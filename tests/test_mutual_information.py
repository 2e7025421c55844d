"""Mutual information by neighbours: definition, closed form, outside constant, ties and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import gaussian_pair, ksg_by_definition, within
from frhsic.dependence import mutual_information


def scaled(x):
    return (x - x.mean(0)) / x.std(0)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("k", [1, 3])
def test_it_is_its_definition_with_strict_counts(columns, k, dtype):
    z, s = (x.to(dtype) for x in gaussian_pair(8, 0.5, 0, columns=columns))
    expected = ksg_by_definition(
        scaled(z.double().numpy()).tolist(), scaled(s.double().numpy()).tolist(), k, lambda d, radius: d < radius
    )
    value = mutual_information(z, s, n_neighbors=k)
    assert value.dtype == dtype
    assert value.item() == approx(expected, rel=1e-6)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_gaussians_give_the_closed_form(rho):
    values = [mutual_information(*gaussian_pair(1000, rho, seed)).item() for seed in range(30)]
    mean, error = within(values)
    # the bias of the estimator at k = 5 is known to be below 0.01 nat here (Kraskov et al. 2004, Figure 4)
    assert mean == approx(-math.log(1 - rho**2) / 2, abs=4 * error + 0.005)


def test_the_value_of_scikit_learn():
    """Constant of sklearn.feature_selection.mutual_info_regression(n_neighbors=5, random_state=0), version 1.9.1."""
    i = np.arange(200.0)
    z, s = np.sin(i), np.sin(i) ** 2 * 2 + np.cos(3 * i)
    assert mutual_information(z, s).item() == approx(0.59746483, abs=1e-8)


def test_ties_do_not_bias_it_under_independence():
    rng = np.random.default_rng(0)  # whole years of age, and five columns
    values = [mutual_information(rng.standard_normal((600, 5)), rng.integers(17, 90, 600)).item() for _ in range(12)]
    mean, error = within(values)
    assert abs(mean) < 4 * error + 0.01


def test_units_and_a_far_off_row_do_not_matter():
    z, s = gaussian_pair(500, 0.8, 3, columns=8)
    units = torch.logspace(-3, 3, 8, dtype=z.dtype)
    assert mutual_information(z * units, s).item() == approx(mutual_information(z, s).item(), abs=1e-9)
    far = torch.cat([z, torch.full((1, 8), 1e11, dtype=z.dtype)])
    assert mutual_information(far, torch.cat([s, s[:1]])).item() == approx(mutual_information(z, s).item(), abs=0.05)


def test_values_that_coincide_count_as_one_value():
    # s takes four values, and z is a copy of it, or reveals it: log 4, the entropy of s
    z = np.repeat(np.arange(4.0), 250)
    revealing = z + 0.05 * np.random.default_rng(0).standard_normal(1000)
    assert mutual_information(z, z).item() == approx(math.log(4), abs=0.05)
    assert mutual_information(revealing, z).item() == approx(math.log(4), abs=0.02)


def test_fifty_columns_in_mixed_units_are_reduced_to_the_components_that_carry_the_variance():
    rng = np.random.default_rng(1)
    core = rng.standard_normal((600, 2))
    z = core @ rng.standard_normal((2, 50)) + 0.01 * rng.standard_normal((600, 50))
    z = z * 10 ** rng.uniform(-3, 3, 50)
    s = core[:, 0] + 0.5 * rng.standard_normal(600)
    truth = math.log(1 + 4) / 2
    assert mutual_information(z, s).item() == approx(truth, abs=0.12)
    assert mutual_information(z, s).item() == approx(mutual_information(z, s, components=2).item(), abs=1e-9)


def test_constant_columns_do_not_matter():
    z, s = gaussian_pair(50, 0.5, 5)
    with_constant = torch.cat([z, torch.ones(50, 1)], 1)
    assert mutual_information(with_constant, s).item() == approx(mutual_information(z, s).item(), abs=1e-9)
