"""Transport of scores: its closed form for normal scores, its limits, ties, and its need for S."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest import approx
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold

from frhsic import load, save
from frhsic.parity import gdp
from frhsic.transport import LEVELS, ConditionalLaw, ScoreTransport


def normal_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of mean 2 s and standard deviation 1/2 + s, for uniform s."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(size=n)
    return 2 * s + (0.5 + s) * rng.normal(size=n), s


def closed_form(f: np.ndarray, s: np.ndarray) -> np.ndarray:
    """The barycenter of normals is normal, with mean and standard deviation those of all s: 1 and 1."""
    return 1 + (f - 2 * s) / (0.5 + s)


def test_normal_scores_go_to_the_normal_barycenter():
    f, s = normal_scores(20_000)
    fresh, t = normal_scores(5000, seed=1)
    moved = ScoreTransport().fit(f, s).transform(fresh, t)
    assert np.sqrt(np.mean((moved - closed_form(fresh, t)) ** 2)) < 0.06
    assert moved.mean() == approx(1, abs=4 / np.sqrt(5000))
    assert moved.std() == approx(1, abs=0.05)


def test_the_law_no_longer_depends_on_s():
    f, s = normal_scores(20_000)
    fresh, t = normal_scores(4000, seed=1)
    moved = ScoreTransport().fit(f, s).transform(fresh, t)
    assert ks_2samp(fresh[t < 0.3], fresh[t > 0.7]).pvalue < 1e-10
    assert ks_2samp(moved[t < 0.3], moved[t > 0.7]).pvalue > 0.01
    before, after = gdp(fresh, t, resamples=0), gdp(moved, t, resamples=99)
    assert float(before) > 0.45
    assert after.pvalue > 0.01
    assert float(after) < 0.02


def test_few_rows_leave_little():
    f, s = normal_scores(500)
    fresh, t = normal_scores(4000, seed=1)
    moved = ScoreTransport().fit(f, s).transform(fresh, t)
    assert float(gdp(moved, t, resamples=0)) < 0.2 * float(gdp(fresh, t, resamples=0))


def test_amount_0_is_the_identity_and_the_dial_is_linear():
    f, s = normal_scores(1000)
    transport = ScoreTransport(0.0).fit(f, s)
    np.testing.assert_array_equal(transport.transform(f, s), f)
    whole = clone(transport).set_params(amount=1.0).fit(f, s).transform(f, s)
    transport.amount = 0.25
    np.testing.assert_allclose(transport.transform(f, s), 0.75 * f + 0.25 * whole)
    gaps = [float(gdp(f + a * (whole - f), s, resamples=0)) for a in (0.0, 0.5)]
    assert gaps[1] == approx(0.5 * gaps[0], rel=0.05)


def test_the_map_increases_in_the_score_at_each_s():
    f, s = normal_scores(2000)
    transport = ScoreTransport().fit(f, s)
    line = np.linspace(-5, 8, 500)
    for value in (0.0, 0.3, 1.0, 2.0):
        assert (np.diff(transport.transform(line, np.full(500, value))) >= -1e-12).all()


def test_independent_scores_hardly_move():
    rng = np.random.default_rng(0)
    f, s = rng.normal(size=(2, 10_000))
    assert np.sqrt(np.mean((ScoreTransport().fit(f, s).transform(f, s) - f) ** 2)) < 0.06


def test_increasing_maps_of_s_and_the_order_of_rows_change_nothing():
    f, s = normal_scores(800)
    there = ScoreTransport().fit(f, s).transform(f, s)
    np.testing.assert_array_equal(ScoreTransport().fit(f, np.exp(9 * s)).transform(f, np.exp(9 * s)), there)
    order = np.random.default_rng(0).permutation(800)
    again = ScoreTransport().fit(f[order], s[order]).transform(f, s)
    np.testing.assert_allclose(again, there, atol=1e-10)


def test_a_positive_affine_map_of_the_scores_passes_through():
    f, s = normal_scores(800)
    there = ScoreTransport().fit(f, s).transform(f, s)
    np.testing.assert_allclose(ScoreTransport().fit(7 + 3 * f, s).transform(7 + 3 * f, s), 7 + 3 * there, rtol=1e-9)


def test_two_groups_go_to_the_mean_of_their_quantiles():
    rng = np.random.default_rng(0)
    s = np.repeat([0.0, 1.0], [3000, 1000])
    f = np.sort(rng.normal(size=(2, 1000)), axis=1)
    scores = np.concatenate([np.repeat(f[0], 3), 5 + 2 * f[1]])
    moved = ScoreTransport().fit(scores, s).transform(scores, s)
    expected = 0.75 * f[0] + 0.25 * (5 + 2 * f[1])
    np.testing.assert_allclose(moved[3000:], expected, atol=0.1)
    np.testing.assert_allclose(moved[:3000:3], expected, atol=0.1)
    middle = slice(100, 900)
    np.testing.assert_allclose(moved[3000:][middle], expected[middle], atol=0.02)


@pytest.mark.parametrize("name", ["decisions", "zero-inflated s", "discrete s", "rounded"])
def test_ties_and_atoms(name: str):
    rng = np.random.default_rng(0)
    s = rng.uniform(size=8000)
    f = s + 0.5 * rng.normal(size=8000)
    if name == "decisions":
        f = (f > 0.8).astype(float)
    elif name == "zero-inflated s":
        s = np.where(s < 0.6, 0.0, s)
    elif name == "discrete s":
        s = np.floor(5 * s)
    else:
        f = f.round(1)
    transport = ScoreTransport().fit(f[:6000], s[:6000])
    moved = transport.transform(f[6000:], s[6000:])
    before, after = (float(gdp(scores, s[6000:], resamples=0)) for scores in (f[6000:], moved))
    assert after < 0.1 * before
    assert moved.mean() == approx(f[6000:].mean(), abs=0.04)
    assert f.min() <= moved.min() <= moved.max() <= f.max()


def test_the_mean_of_tied_scores_is_the_same_in_each_group_exactly():
    """Two groups of decisions with rates 1/4 and 3/4: the barycenter is 0, 1/2 and 1 on levels of 1/4, 1/2 and 1/4."""
    s = np.repeat([0.0, 1.0], 400)
    f = np.concatenate([np.repeat([0.0, 1.0], [300, 100]), np.repeat([0.0, 1.0], [100, 300])])
    moved = ScoreTransport().fit(f, s).transform([0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(moved, [1 / 3, 1.0, 0.0, 2 / 3], atol=2e-3)


def test_fit_transform_is_cross_fitted():
    """Rows of one fold are moved by the other rows alone: changing one of them leaves the others of its fold."""
    f, s = normal_scores(300)
    transport = ScoreTransport(random_state=3)
    _, fold = next(iter(KFold(5, shuffle=True, random_state=3).split(f)))
    changed = f.copy()
    changed[fold[0]] += 2.0
    crossed, after = transport.fit_transform(f, s), transport.fit_transform(changed, s)
    np.testing.assert_array_equal(after[fold[1:]], crossed[fold[1:]])
    seen = ScoreTransport().fit(f, s).transform(f, s)
    assert (ScoreTransport().fit(changed, s).transform(f, s)[fold[1:]] != seen[fold[1:]]).any()


def test_new_values_outside_the_fitted_ones_are_finite():
    f, s = normal_scores(500)
    moved = ScoreTransport().fit(f, s).transform([-100.0, 100.0], [-5.0, 9.0])
    assert f.min() <= moved[0] < moved[1] <= f.max()


def test_it_says_that_it_needs_s():
    f, s = normal_scores(200)
    transport = ScoreTransport().fit(f, s)
    assert "needs sensitive_features to predict" in repr(transport)
    assert "Needs S to predict" in str(ScoreTransport.__doc__)
    with pytest.raises(TypeError, match="needs S to fit and to predict"):
        transport.transform(f)
    with pytest.raises(TypeError, match="needs S to fit and to predict"):
        transport.fit(f)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.ones(10)}, "lengths differ"),
        ({"sensitive_features": np.ones(100)}, "in every row"),
        ({"sensitive_features": np.ones((100, 2))}, "one attribute"),
        ({"sensitive_features": np.full(100, np.nan)}, "NaN"),
        ({"scores": np.arange(9.0), "sensitive_features": np.arange(9.0)}, "at least 50"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        ScoreTransport().fit(**{"scores": np.arange(100.0), "sensitive_features": np.arange(100.0)} | change)


def test_bad_parameters_are_refused():
    f, s = normal_scores(100)
    for amount, kind in ((1.5, ValueError), (True, TypeError), ("all", TypeError)):
        with pytest.raises(kind, match="amount"):
            ScoreTransport(amount).fit(f, s)
    with pytest.raises(ValueError, match="resolution"):
        ScoreTransport(resolution=2.0).fit(f, s)
    with pytest.raises(NotFittedError):
        ScoreTransport().transform(f, s)


@pytest.mark.parametrize("tied", [False, True])
def test_a_saved_transport_moves_scores_as_before(tied: bool, tmp_path: Path):
    f, s = normal_scores(300)
    f, s = (f.round(), s.round(1)) if tied else (f, s)
    transport = ScoreTransport(0.7, resolution=0.2, random_state=np.random.default_rng(0)).fit(f, s)
    save(transport, tmp_path / "transport.frhsic")
    again = load(tmp_path / "transport.frhsic")
    np.testing.assert_array_equal(again.transform(f, s), transport.transform(f, s))
    assert (again.amount, again.resolution, again.n_rows_) == (0.7, 0.2, 300)
    assert "needs sensitive_features to predict" in repr(again)
    with pytest.raises(NotFittedError):
        save(ScoreTransport(), tmp_path / "other.frhsic")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": [0.2, 0.1]}, "does not increase"),
        ({"below": [[0.0, 0.9], [0.0, 0.1]], "up_to": [[0.5, 0.6], [0.2, 1.0]]}, "does not increase"),
        ({"quantiles": [0.0]}, "do not fit each other"),
        ({"thresholds": [0.0, math.inf]}, "not finite"),
        ({"nodes": [0.1], "below": [[0.0, 0.5]], "up_to": [[0.5, 1.0]]}, "no grid"),
        ({"s": []}, "no grid"),
    ],
)
def test_a_forged_law_is_refused(changes: dict[str, Any], message: str, tmp_path: Path):
    arrays = {
        "s": np.array([1.0, 2.0]),
        "nodes": np.array([0.25, 0.75]),
        "thresholds": np.array([0.0, 1.0]),
        "below": np.array([[0.0, 0.5], [0.0, 0.2]]),
        "up_to": np.array([[0.5, 1.0], [0.2, 1.0]]),
        "quantiles": np.zeros(LEVELS),
    }
    transport = ScoreTransport().fit(*normal_scores(60))
    transport.law_ = ConditionalLaw(**arrays)
    save(transport, tmp_path / "sound.frhsic")
    assert load(tmp_path / "sound.frhsic").transform([0.5], [1.0]).shape == (1,)
    transport.law_ = ConditionalLaw(**{**arrays, **{name: np.array(values) for name, values in changes.items()}})
    save(transport, tmp_path / "forged.frhsic")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "forged.frhsic")
