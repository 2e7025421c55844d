"""Probes recover what is there and nothing else and say what chance gives; the calibration error is
without bias.
"""

import math

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from scipy.stats import rankdata
from sklearn.model_selection import KFold, cross_val_predict

from frhsic.probes import cross_fitted_scores, held_out_r2, probe


def test_a_linear_probe_finds_what_hides_in_a_direction_of_little_variance():
    random = np.random.default_rng(0)
    s = random.standard_normal(1500)
    first = random.standard_normal(1500)
    assert probe(np.column_stack([first, first + 1e-4 * s]), s, "linear").r2 > 0.99


def test_a_probe_recovers_what_is_there_and_nothing_else():
    random = np.random.default_rng(0)
    z = random.standard_normal((1500, 3))
    noise = random.standard_normal(1500)
    line = z[:, 0] + noise  # R² is one half
    linear = probe(z, line, "linear")
    assert abs(linear.r2 - 0.5) < 4 * 0.02
    assert abs(linear.shuffled_r2) < 0.02
    square = z[:, 0] ** 2
    assert probe(z, square, "linear").r2 < 0.03
    assert probe(z[:400], square[:400], "trees").r2 > 0.8
    assert probe(z, noise, "linear").r2 < 0.01
    assert probe(z[:400], noise[:400], "trees").r2 < 0.05


def test_trees_whose_columns_are_binned_once_are_those_of_each_fold():
    """Where a column has few values, its bins are the same in all folds."""
    random = np.random.default_rng(0)
    z = random.integers(20, size=(500, 2)).astype(float)
    s = z[:, 0] ** 2 + random.standard_normal(500)
    rank = rankdata(s)
    trees = LGBMRegressor(random_state=0, n_jobs=1, verbose=-1)
    folds = KFold(5, shuffle=True, random_state=0)
    expected = [np.mean((t - cross_val_predict(trees, z, t, cv=folds)) ** 2) for t in (s, rank)]
    r2 = max(1 - error / t.var() for error, t in zip(expected, (s, rank)))
    assert probe(z, s, "trees").r2 == pytest.approx(r2, abs=1e-6)


def test_a_probe_recovers_the_order_of_a_skewed_attribute():
    """The squared correlation of a normal number with its rank is 3/π, with its exponential at
    scale 3 it is .001.
    """
    z = np.random.default_rng(0).standard_normal((2000, 1))
    income = np.exp(3 * z[:, 0])
    assert probe(z, income, "linear").r2 == pytest.approx(3 / math.pi, abs=0.01)


@pytest.mark.slow
def test_the_r2_of_a_probe_on_held_out_rows_is_that_of_its_definition():
    random = np.random.default_rng(0)
    z = random.standard_normal((3000, 2))
    s = z[:, 0] + random.standard_normal(3000)  # R² is one half
    train, test = slice(0, 1500), slice(1500, 3000)
    assert abs(held_out_r2("linear", z[train], s[train], z[test], s[test]) - 0.5) < 4 * 0.02
    slope, level = np.polyfit(z[train, 0], s[train], 1)
    residual = s[test] - slope * z[test, 0] - level
    expected = 1 - residual.var() / s[test].var()
    assert held_out_r2("linear", z[train, :1], s[train], z[test, :1], s[test]) == pytest.approx(
        expected, abs=0.01
    )


def test_scores_of_a_head_for_numbers_come_from_fits_that_have_not_seen_their_rows():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(120, 40))
    y = 3 * z[:, 0] + rng.normal(size=120)
    scores = cross_fitted_scores(z, y)
    assert np.corrcoef(scores, y)[0, 1] > 0.85
    assert abs(np.corrcoef(cross_fitted_scores(z, rng.normal(size=120)), y)[0, 1]) < 0.5


@pytest.mark.parametrize("binary", [False, True])
def test_scores_of_a_head_come_from_fits_that_have_not_seen_their_group(binary):
    rng = np.random.default_rng(1)
    people = np.repeat(np.arange(60), 6)
    z, y = rng.normal(size=(60, 40))[people], rng.normal(size=60)[people]
    y = (y > 0).astype(float) if binary else y
    assert (
        np.corrcoef(cross_fitted_scores(z, y), y)[0, 1] > 0.6
    )  # the same person is in other folds
    assert abs(np.corrcoef(cross_fitted_scores(z, y, groups=people), y)[0, 1]) < 0.4


def test_scores_of_a_head_take_fewer_groups_than_folds():
    z, y = np.arange(20.0)[:, None], np.arange(20.0)
    scores = cross_fitted_scores(z, y, groups=np.arange(20) % 2)
    assert np.corrcoef(scores, y)[0, 1] > 0.99


def test_a_constant_attribute_is_refused():
    x, constant = np.linspace(-1, 1, 50), np.zeros(50)
    with pytest.raises(ValueError, match="constant"):
        probe(x[:, None], constant, "linear")
