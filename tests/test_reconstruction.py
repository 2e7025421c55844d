"""Encoders without a target: residuals given the attributes, and what a representation trained on
them keeps.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import ndtri

from estimator_samples import people, quick
from fleet_samples import sample, trained
from frhsic.estimators import ParityEncoder
from frhsic.estimators.encoder import KNOTS, rank_hats, residuals
from frhsic.penalties import HSIC
from frhsic.training import Member, TrainingData


def r2(z: np.ndarray, t: np.ndarray) -> float:
    """Share of the variance of t that a linear map of z explains."""
    design = np.column_stack([z, np.ones(len(z))])
    return float(1 - (t - design @ np.linalg.lstsq(design, t, rcond=None)[0]).var() / t.var())


# residuals


def test_hat_functions_of_an_attribute_sum_to_one_and_two_are_above_zero_in_a_row():
    hats = rank_hats(np.random.default_rng(0).lognormal(size=(200, 1)))
    assert hats.shape == (200, KNOTS)
    assert hats.min() >= 0
    assert ((hats > 0).sum(1) <= 2).all()
    np.testing.assert_allclose(hats.sum(1), 1)


def test_residuals_do_not_change_under_increasing_maps_of_an_attribute():
    rng = np.random.default_rng(1)
    s, x = rng.normal(size=(300, 2)), rng.normal(size=(300, 3))
    np.testing.assert_allclose(
        residuals(x, s), residuals(x, np.column_stack([np.exp(s[:, 0]), s[:, 1] ** 3]))
    )


@pytest.mark.parametrize("levels", [2, 3, 12])
def test_residuals_of_an_attribute_with_few_levels_are_deviations_from_the_mean_of_each(
    levels: int,
):
    rng = np.random.default_rng(2)
    s = rng.integers(0, levels, size=400).astype(float)
    s[:200] = 0  # half of the rows share one value
    x = rng.normal(size=(400, 2)) + s[:, None] ** 2
    expected = x - np.array([x[s == value].mean(0) for value in s])
    np.testing.assert_allclose(residuals(x, s[:, None]), expected, atol=1e-10)


def test_residuals_are_uncorrelated_with_the_basis_under_the_weights_of_the_rows():
    rng = np.random.default_rng(3)
    s, x, weight = (
        rng.exponential(size=(250, 2)),
        rng.normal(size=(250, 3)),
        rng.uniform(0, 2, size=250),
    )
    left = residuals(x, s, weight)
    np.testing.assert_allclose((weight[:, None] * rank_hats(s)).T @ left, 0, atol=1e-9)
    np.testing.assert_allclose(weight @ left, 0, atol=1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_the_variance_of_residuals_is_that_of_the_noise(power: int):
    """x = s^p + 3e with s and e standard normal: var(x - E[x | s]) = 9 (1 - 13 / n), s having taken
    13 directions.
    """
    rng = np.random.default_rng(4)
    s, noise = rng.normal(size=5000), 3 * rng.normal(size=5000)
    left = residuals((s**power + noise)[:, None], s[:, None])
    expected = 9 * (1 - KNOTS / 5000)
    assert abs(left.var() - expected) < 4 * expected * np.sqrt(2 / 5000)
    assert np.abs(left[:, 0] - noise + noise.mean()).mean() < 0.1 * noise.std()


@pytest.mark.parametrize("n", [200, 2000])
def test_a_column_that_is_the_normal_score_of_an_attribute_leaves_nothing(n: int):
    s = np.random.default_rng(5).exponential(size=n)
    x = ndtri((s.argsort().argsort() + 0.5) / n)
    np.testing.assert_allclose(residuals(x[:, None], s[:, None]), 0, atol=1e-10)


# training


def test_one_target_is_not_broadcast_over_the_columns():
    """A target of one column, however it comes, is fitted by one output."""
    data = sample(splits=1, task="regression")
    assert data.y is not None
    fleets = [
        trained(TrainingData(data.x, y, data.s), [Member(0.0)], task=task, epochs=2, device="cpu")
        for y, task in (
            (data.y, "regression"),
            (data.y, "reconstruction"),
            (data.y[..., None], "reconstruction"),
        )
    ]
    for fleet in fleets:
        torch.testing.assert_close(fleet.history.task_loss, fleets[0].history.task_loss)


# the encoder


def parts(n: int, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x = (s + e, u, u'), the u-part, and s; everything is normal, e with the given standard
    deviation.
    """
    rng = np.random.default_rng(seed)
    s, e, u = rng.normal(size=n), noise * rng.normal(size=n), rng.normal(size=(n, 2))
    return np.column_stack([s + e, u]), u, s


def test_without_penalty_the_loss_is_what_the_rows_do_not_tell_of_the_residuals():
    """E[e | x] = x₀ v / (1 + v) with v = var(e): what is left is var(e | x₀) = v / (1 + v), and
    nothing of u.
    """
    x, _, s = parts(4000)
    settings = quick(epochs=12, batch_size=128, learning_rate=5e-3)
    model = ParityEncoder(penalty_weight=0, **settings).fit(x, sensitive_features=s)
    width = np.ptp(x, axis=0)
    left = (0.25 / 1.25) / width[0] ** 2 / (x.var(0) / width**2).sum()
    assert model.loss_curve_[-1] == pytest.approx(left, rel=0.1)
    plain = ParityEncoder(penalty_weight=0, **settings).fit(x)
    assert plain.loss_curve_[-1] < 0.1 * left


@pytest.mark.parametrize(
    "s",
    [
        np.r_[np.zeros(90), np.arange(30.0)],  # zero-inflated
        np.arange(120) % 2,  # two values
        np.exp(np.linspace(0, 20, 120)),  # skewed
        np.column_stack([np.arange(120.0), np.arange(120) % 5]),  # two attributes
    ],
)
@pytest.mark.parametrize("x", [np.zeros((120, 1)), np.arange(120.0)[:, None], np.eye(120)[:, :3]])
def test_any_attribute_and_any_columns_give_a_finite_representation(x: np.ndarray, s: np.ndarray):
    penalty = HSIC(
        scale_s=0.5, head_weight=0.0
    )  # the median distance of a zero-inflated attribute is 0
    model = ParityEncoder(penalty, **quick(epochs=2)).fit(x, sensitive_features=s)
    assert np.isfinite(model.transform(x)).all()
    assert model.loss_curve_[-1] < 2


def test_a_table_with_text_and_weights_of_rows():
    frame, _, age = people()
    weight = np.r_[np.zeros(100), np.ones(100)]
    short = quick(epochs=1)
    model = ParityEncoder(**short).fit(frame, sensitive_features=age, sample_weight=weight)
    assert model.head_.out_features == model.feature_encoding_.width
    assert 0 < model.loss_curve_[-1] < 3
