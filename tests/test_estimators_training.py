"""How an estimator is trained: early stopping on rows of its own, learning-rate schedule, activation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import log_loss
from torch import nn

from estimator_samples import QUICK, biased
from frhsic import load
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder, fit_path
from frhsic.estimators.length import AUTO_ROWS, number_of_epochs, validation_rows
from frhsic.estimators.targets import Target
from frhsic.penalties import HSIC
from frhsic.training import Execution, Member, Recipe, TrainingData, affine_head, mlp_encoder, train

STOPS: dict[str, Any] = QUICK | {"early_stopping": True, "n_iter_no_change": 3, "validation_fraction": 0.2}


def rows_held_out(
    model: FRHSICClassifier, y: np.ndarray, known: np.ndarray | None = None, **options: Any
) -> np.ndarray:
    model.random_seed_ = int(model.random_state)
    task = "binary" if len(np.unique(y)) == 2 else "multiclass"
    s = None if known is None else np.where(known, 0.0, np.nan)[:, None]
    rows = validation_rows(model, Target(y.astype(float), task, 1), s, len(y), **options)
    assert rows is not None
    return rows


def test_a_fit_that_stops_early_is_a_fleet_with_these_rows_held_out():
    X, y, s = biased()
    model = FRHSICClassifier("hsic", 3.0, variance_floor=0.0, **STOPS).fit(X, y, sensitive_features=s)
    out = rows_held_out(clone(model), y)
    x = model.feature_encoding_(X)
    scaled = (s - s.min()) / (s.max() - s.min())
    held_out = TrainingData.of(x[out], y[out], scaled[out])
    data = TrainingData.of(x[~out], y[~out], scaled[~out], held_out=held_out)
    recipe = Recipe(
        "binary",
        HSIC(scale_z="whitened"),
        lambda: mlp_encoder(3, [16], 8),
        lambda: affine_head(8),
        epochs=25,
        batch_size=64,
        learning_rate=0.02,
        weight_decay=1e-3,
        patience=3,
    )
    fleet = train(data, [Member(3.0, 0)], recipe, device="cpu", execution=Execution())
    assert model.best_epochs_ == (int(fleet.history.best_epoch[0]),)
    done = int(fleet.epochs_done[0])
    assert np.array_equal(model.validation_curve_, fleet.history.held_out_objective[0, :done].numpy())
    assert len(model.loss_curve_) == len(model.penalty_curve_) == done
    assert torch.equal(model.encoder_[0].weight, fleet.parameters["encoder.0.weight"][0])


def test_it_stops_before_it_overfits():
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = rng.uniform(size=n)
        X = np.column_stack([s, rng.normal(size=(n, 30))])
        return X, (X[:, 1] + 2 * rng.normal(size=n) > 0).astype(int), s

    X, y, s = draw(300)
    settings = QUICK | {"epochs": 150, "learning_rate": 0.05, "hidden_layer_sizes": (32,), "penalty_weight": 0.3}
    options = {"weight_decay": 0.0, "variance_floor": 0.0, "validation_fraction": 0.25, "n_iter_no_change": 20}
    stopped, late = (
        FRHSICClassifier(**(settings | options | {"early_stopping": stops})).fit(X, y, sensitive_features=s)
        for stops in (True, False)
    )
    assert stopped.best_epochs_ == (int(np.argmin(stopped.validation_curve_)),)
    assert len(stopped.validation_curve_) == stopped.best_epochs_[0] + 21 < 150
    assert late.best_epochs_ is None
    assert late.validation_curve_ is None
    X_new, y_new, _ = draw(2000)
    losses = [log_loss(y_new, model.predict_proba(X_new)) for model in (stopped, late)]
    assert losses[0] < losses[1] - 0.1


def test_rows_are_held_out_by_class_and_by_what_is_known_of_s_and_rare_classes_stay():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [700, 290, 4])
    rng.shuffle(y)
    known = rng.uniform(size=len(y)) < 0.3
    model = FRHSICClassifier(early_stopping=True, validation_fraction=0.1, random_state=3)
    rows = rows_held_out(model, y, known)
    for label, has in ((0, True), (0, False), (1, True), (1, False)):
        stratum = (y == label) & (known == has)
        assert abs(int(rows[stratum].sum()) - 0.1 * stratum.sum()) <= 0.5
    assert not rows[y == 2].any()
    assert np.array_equal(rows, rows_held_out(model, y, known))
    assert not np.array_equal(rows, rows_held_out(clone(model).set_params(random_state=4), y, known))


def test_groups_are_held_out_whole():
    y = np.arange(300) % 2
    groups = np.arange(300) // 10
    rows = rows_held_out(FRHSICClassifier(early_stopping=True, random_state=0), y, groups=groups)
    assert set(np.unique(rows.reshape(30, 10).sum(axis=1))) == {0, 10}
    assert rows.sum() == 30


@pytest.mark.parametrize("penalty", ["hsic", "adv"])
def test_auto_stops_early_on_tables_of_middle_size_and_not_for_adversaries(penalty: str):
    model = FRHSICClassifier(penalty, early_stopping="auto", random_state=0)
    model.random_seed_ = 0
    least, most = AUTO_ROWS
    for rows, stops in ((least - 1, False), (least, True), (most - 1, True), (most, False)):
        target = Target(np.arange(rows) % 2.0, "binary", 1)
        assert (validation_rows(model, target, None, rows) is not None) == (stops and penalty == "hsic")


def test_auto_epochs_make_about_as_many_steps_whatever_the_number_of_rows():
    assert [number_of_epochs("auto", rows, 256) for rows in (1, 256 * 25, 256 * 50, 10**7)] == [100, 100, 50, 20]
    assert number_of_epochs(7, 10**7, 256) == 7


@pytest.mark.parametrize("estimator", [FRHSICRegressor, ParityEncoder])
def test_other_estimators_stop_early_too(estimator: type):
    X, _, s = biased()
    y = X[:, 1] if estimator is FRHSICRegressor else None
    model = estimator(penalty_weight=0.5, **STOPS).fit(X, y, sensitive_features=s)
    assert model.best_epochs_ == (int(np.argmin(model.validation_curve_)),)


def test_a_path_stops_each_weight_where_it_would_stop_alone():
    X, y, s = biased()
    path = fit_path(FRHSICClassifier(**STOPS), X, y, weights=[0.0, 30.0], sensitive_features=s)
    alone = [FRHSICClassifier(penalty_weight=w, **STOPS).fit(X, y, sensitive_features=s) for w in (0.0, 30.0)]
    assert [model.best_epochs_ for model in path] == [model.best_epochs_ for model in alone]
    assert np.allclose(path[1].decision_function(X), alone[1].decision_function(X), atol=1e-3)


def test_one_epoch_and_partial_fit_hold_out_nothing():
    X, y, s = biased()
    plain = FRHSICClassifier(**(STOPS | {"early_stopping": False})).partial_fit(X, y, sensitive_features=s)
    part = FRHSICClassifier(**STOPS).partial_fit(X, y, sensitive_features=s)
    once = FRHSICClassifier(**(STOPS | {"epochs": 1})).fit(X, y, sensitive_features=s)
    for model in (part, once):
        assert model.best_epochs_ is None
        assert np.array_equal(model.decision_function(X), plain.decision_function(X))


def test_a_warm_start_holds_out_the_same_rows(monkeypatch: pytest.MonkeyPatch):
    X, y, s = biased()
    model = FRHSICClassifier(warm_start=True, **STOPS).fit(X, y, sensitive_features=s)
    first = rows_held_out(clone(model), y)
    seen = []
    monkeypatch.setattr(
        "frhsic.estimators.network.validation_rows",
        lambda *arguments: seen.append(validation_rows(*arguments)) or seen[0],
    )
    model.fit(X, y, sensitive_features=s)
    assert np.array_equal(seen[0], first)


def test_schedule_and_activation_reach_the_model(tmp_path: Path):
    X, y, s = biased()
    models = {
        options: FRHSICClassifier(**QUICK | dict([options])).fit(X, y, sensitive_features=s)
        for options in (("schedule", "constant"), ("schedule", "cosine"), ("activation", "relu"))
    }
    scores = [model.decision_function(X) for model in models.values()]
    assert all(not np.allclose(scores[0], other, atol=1e-3) for other in scores[1:])
    relu = models["activation", "relu"]
    assert any(isinstance(module, nn.ReLU) for module in relu.encoder_.modules())
    relu.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").decision_function(X), scores[2])


def test_a_stopped_model_comes_back_from_its_file(tmp_path: Path):
    X, y, s = biased()
    model = FRHSICClassifier(**STOPS).fit(X, y, sensitive_features=s)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.best_epochs_ == model.best_epochs_
    assert np.array_equal(again.validation_curve_, model.validation_curve_)
    assert again.get_params()["n_iter_no_change"] == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"early_stopping": "always"}, ValueError, "early_stopping='always'; pass False, True or 'auto'"),
        ({"validation_fraction": 1.0}, ValueError, "validation_fraction is 1.0"),
        ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change is 0"),
        ({"n_iter_no_change": 2.5}, TypeError, "n_iter_no_change is float"),
        ({"schedule": "step"}, ValueError, "schedule is 'step'"),
        ({"activation": "step"}, ValueError, "activation 'step' is not known"),
        ({"early_stopping": True, "validation_fraction": 0.001}, ValueError, "holds out 0 of 300 rows"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], error: type[Exception], message: str):
    X, y, s = biased()
    with pytest.raises(error, match=message):
        FRHSICClassifier(**(QUICK | options)).fit(X, y, sensitive_features=s)
