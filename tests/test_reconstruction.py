"""Encoders without a target: residuals given the attributes, and what a representation trained on them keeps."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from sklearn.base import clone

from estimator_samples import QUICK, people
from fleet_samples import COLUMNS, by_hand, gap, sample, trained
from frhsic.estimators import ParityEncoder, fit_path
from frhsic.estimators.network import NetworkEstimator
from frhsic.kernels import Gaussian, Linear
from frhsic.penalties import HSIC
from frhsic.training import Member, Recipe, TrainingData, affine_head, mlp_encoder, train
from frhsic.training.residuals import KNOTS, RankSpline, residuals


def r2(z: np.ndarray, t: np.ndarray) -> float:
    """Share of the variance of t that a linear map of z explains."""
    design = np.column_stack([z, np.ones(len(z))])
    return float(1 - (t - design @ np.linalg.lstsq(design, t, rcond=None)[0]).var() / t.var())


# residuals


def test_hat_functions_of_an_attribute_sum_to_one_and_reproduce_their_knots():
    s = np.random.default_rng(0).lognormal(size=(200, 1))
    spline = RankSpline.fit(s)
    hats = spline(s)
    assert hats.shape == (200, KNOTS)
    assert hats.min() >= 0
    np.testing.assert_allclose(hats.sum(1), 1)
    np.testing.assert_allclose(hats @ spline.knots[0], np.interp(s[:, 0], spline.values[0], spline.scores[0]))


def test_residuals_do_not_change_under_increasing_maps_of_an_attribute():
    rng = np.random.default_rng(1)
    s, x = rng.normal(size=(300, 2)), rng.normal(size=(300, 3))
    np.testing.assert_allclose(residuals(x, s), residuals(x, np.column_stack([np.exp(s[:, 0]), s[:, 1] ** 3])))


@pytest.mark.parametrize("levels", [2, 3, 12])
def test_residuals_of_an_attribute_with_few_levels_are_deviations_from_the_mean_of_each(levels: int):
    rng = np.random.default_rng(2)
    s = rng.integers(0, levels, size=400).astype(float)
    s[:200] = 0  # half of the rows share one value
    x = rng.normal(size=(400, 2)) + s[:, None] ** 2
    expected = x - np.array([x[s == value].mean(0) for value in s])
    np.testing.assert_allclose(residuals(x, s[:, None]), expected, atol=1e-10)


def test_residuals_are_uncorrelated_with_the_basis_under_the_weights_of_the_rows():
    rng = np.random.default_rng(3)
    s, x, weight = rng.exponential(size=(250, 2)), rng.normal(size=(250, 3)), rng.uniform(0, 2, size=250)
    left = residuals(x, s, weight)
    np.testing.assert_allclose((weight[:, None] * RankSpline.fit(s)(s)).T @ left, 0, atol=1e-9)
    np.testing.assert_allclose(weight @ left, 0, atol=1e-9)


@pytest.mark.parametrize("power", [1, 2])
def test_the_variance_of_residuals_is_that_of_the_noise(power: int):
    """x = s^p + 3e with s and e standard normal: var(x - E[x | s]) = 9 (1 - 13 / n), s having taken 13 directions."""
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


def test_many_rows_of_one_value_leave_knots_to_the_others():
    """Nine tenths of the rows have s = 0; elsewhere x is the rank of s."""
    s = np.r_[np.zeros(1800), np.random.default_rng(6).exponential(size=200)]
    x = np.r_[np.full(1800, -5.0), s[1800:].argsort().argsort() / 200]
    assert len(RankSpline.fit(s[:, None]).knots[0]) >= 10
    left = residuals(x[:, None], s[:, None])[:, 0]
    assert left[1800:].var() < 0.02 * x[1800:].var()
    assert np.abs(left[:1800]).max() < 0.02


def test_other_values_of_an_attribute_lie_between_their_neighbours():
    spline = RankSpline.fit(np.arange(1000.0)[:, None])
    at = spline(np.array([[-5.0], [0.0], [10.0], [10.5], [11.0], [5000.0], [999.0]]))
    np.testing.assert_array_equal(at[0], at[1])
    np.testing.assert_array_equal(at[5], at[6])
    np.testing.assert_allclose(at[3], (at[2] + at[4]) / 2)


def test_few_rows_have_few_knots():
    knots = [len(RankSpline.fit(np.arange(float(n))[:, None]).knots[0]) for n in (1, 2, 20, 50, 129, 130, 10_000)]
    assert knots == [1, 2, 2, 5, 12, 13, 13]


# training


def test_x_as_its_own_target_changes_nothing():
    data = sample(splits=1, task="reconstruction")
    same = TrainingData(data.x, data.x, data.s)
    options: dict[str, Any] = {"task": "reconstruction", "epochs": 2, "device": "cpu", "penalty": HSIC.published}
    first, second = (trained(rows, [Member(0.0, 1), Member(1.0, 1)], **options) for rows in (data, same))
    for name, values in first.parameters.items():
        assert torch.equal(values, second.parameters[name])


def test_a_target_of_several_columns_is_trained_on_as_in_a_plain_loop():
    data = sample(splits=1, task="reconstruction", dtype=torch.float64)
    target = torch.stack([data.x[..., 0] ** 2, data.x[..., 1] - data.x[..., 2]], dim=-1)
    data = TrainingData(data.x, target, data.s)
    assert data.widths == (COLUMNS, 1, 2, 0)
    fleet = trained(
        data,
        [Member(1.0, 3)],
        task="reconstruction",
        epochs=3,
        batch_size=64,
        device="cpu",
        penalty=partial(HSIC, head_weight=0.0),
        encoder=partial(mlp_encoder, COLUMNS, 8, 5),
    )
    alone = by_hand(data, Member(1.0, 3), partial(HSIC, head_weight=0.0), task="several", outputs=2)
    assert gap(fleet, 0, alone) < 1e-9


def test_one_target_is_not_broadcast_over_the_columns():
    """A target of one column, however it comes, is fitted by one output."""
    data = sample(splits=1, task="regression")
    assert data.y is not None
    fleets = [
        trained(TrainingData(data.x, y, data.s), [Member(0.0)], task=task, epochs=2, device="cpu")
        for y, task in ((data.y, "regression"), (data.y, "reconstruction"), (data.y[..., None], "reconstruction"))
    ]
    for fleet in fleets:
        torch.testing.assert_close(fleet.history.task_loss, fleets[0].history.task_loss)


def test_several_columns_are_no_target_of_a_classifier_or_a_regressor():
    data = sample(splits=1)
    several = TrainingData(data.x, data.x, data.s)
    for task in ("binary", "regression", "multiclass"):
        with pytest.raises(ValueError, match="needs one target, but y has 4 columns"):
            trained(several, [Member(0.0)], task=task, epochs=1, device="cpu")


# the encoder


def parts(n: int, seed: int = 0, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return x = (s + e, u, u'), the u-part, and s; everything is normal, e with the given standard deviation."""
    rng = np.random.default_rng(seed)
    s, e, u = rng.normal(size=n), noise * rng.normal(size=n), rng.normal(size=(n, 2))
    return np.column_stack([s + e, u]), u, s


def test_without_penalty_the_loss_is_what_the_rows_do_not_tell_of_the_residuals():
    """E[e | x] = x₀ v / (1 + v) with v = var(e): what is left is var(e | x₀) = v / (1 + v), and nothing of u."""
    x, _, s = parts(4000)
    settings = {**QUICK, "epochs": 12, "batch_size": 128, "learning_rate": 5e-3}
    model = ParityEncoder(penalty_weight=0, **settings).fit(x, sensitive_features=s)
    width = np.ptp(x, axis=0)
    left = (0.25 / 1.25) / width[0] ** 2 / (x.var(0) / width**2).sum()
    assert model.loss_curve_[-1] == pytest.approx(left, rel=0.1)
    plain = ParityEncoder(penalty_weight=0, **settings).fit(x)
    assert plain.loss_curve_[-1] < 0.1 * left


def test_at_equal_weight_residuals_keep_what_is_not_s_and_leave_out_s():
    """A linear map of all of x reads s with R² 1 / (1 + v); of Z trained on x almost that, of Z on residuals little."""
    x, u, s = parts(2000)
    unit = (x - x.mean(0)) / x.std(0)
    recipe = Recipe(
        "reconstruction",
        partial(HSIC, 10 * (Linear() + Gaussian(1.0)), head_weight=0.0),
        partial(mlp_encoder, 3, 32, 3),
        partial(affine_head, 3, 3),
        epochs=15,
        learning_rate=5e-3,
    )
    read: dict[str, tuple[float, float, float]] = {}
    for name, target in (("columns", unit), ("residuals", residuals(unit, s[:, None]))):
        fleet = train(TrainingData.of(unit, target, s), [Member(1.0)], recipe, device="cpu")
        z = fleet.transform(torch.from_numpy(unit).float())[0].double().numpy()
        read[name] = r2(z, s), r2(z, u[:, 0]), r2(z, u[:, 1])
    assert r2(x, s) == pytest.approx(1 / 1.25, abs=4 / np.sqrt(2000))
    assert min(read["residuals"][1:]) > 0.9
    assert read["residuals"][0] < 0.1
    assert read["columns"][0] > 0.3


def test_a_path_trains_the_unpenalized_model_as_it_is_trained_alone():
    x, _, s = parts(200)
    model = ParityEncoder(**{**QUICK, "epochs": 3})
    path = fit_path(model, x, weights=[0.0, 1.0], sensitive_features=s)
    alone = clone(model).set_params(penalty_weight=0.0).fit(x, sensitive_features=s)
    np.testing.assert_allclose(path[0].transform(x), alone.transform(x), atol=1e-4)


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
    penalty = HSIC(scale_s=0.5, head_weight=0.0)  # the median distance of a zero-inflated attribute is 0
    model = ParityEncoder(penalty, **{**QUICK, "epochs": 2}).fit(x, sensitive_features=s)
    assert np.isfinite(model.transform(x)).all()
    assert model.loss_curve_[-1] < 2


def test_a_table_with_text_and_weights_of_rows():
    frame, _, age = people()
    weight = np.r_[np.zeros(100), np.ones(100)]
    short = {**QUICK, "epochs": 1}
    model = ParityEncoder(**short).fit(frame, sensitive_features=age, sample_weight=weight)
    assert model.head_.out_features == model.feature_encoding_.width
    assert 0 < model.loss_curve_[-1] < 3


def test_the_encoder_has_every_parameter_of_the_others():
    own, others = (inspect.signature(cls).parameters for cls in (ParityEncoder, NetworkEstimator))
    assert list(own) == list(others)
