"""The estimators do what their fleet does, on columns that they scaled themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from estimator_samples import biased, people, quick
from frhsic.estimators import (
    FRHSICClassifier,
    FRHSICRegressor,
    MissingSensitiveFeaturesWarning,
    UnlabelledRowsWarning,
)
from frhsic.estimators.network import AUTO_ROWS, fit_path
from frhsic.kernels import Gaussian
from frhsic.parity import gdp_difference
from frhsic.penalties import GDP, HSIC, DistanceCovariance, Penalty
from frhsic.tables.encoding import TableEncoding
from frhsic.training import MLP, Member, Recipe, Training, TrainingData, train
from frhsic.training.result import Bottleneck


def scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.min(0)) / (values.max(0) - values.min(0))


# what is trained


def test_the_default_classifier_is_the_paper_s_method_as_a_fleet_of_one():
    X, y, s = biased(100)
    model = FRHSICClassifier(penalty_weight=3.0, random_state=0, device="cpu").fit(
        X, y, sensitive_features=s
    )
    fleet = train(
        TrainingData.of(scaled(X), y, scaled(s)),
        [Member(3.0, 0)],
        Recipe("binary", penalty=HSIC.published(), epochs=200, batch_size=256, learning_rate=1e-3),
        device="cpu",
    )
    rows = torch.from_numpy(scaled(X)).float()
    np.testing.assert_allclose(model.transform(X), fleet.transform(rows)[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(
        model.decision_function(X), fleet.scores(rows)[0, :, 0].numpy(), atol=1e-5
    )
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], expit(model.decision_function(X)), rtol=1e-12
    )
    assert model.loss_curve_.shape == (200,)
    np.testing.assert_allclose(model.penalty_curve_, fleet.history.penalty[0].numpy())


def test_a_path_holds_the_models_that_each_weight_gives_alone():
    X, y, s = biased(150)
    path = fit_path(
        FRHSICClassifier(**quick()), X, y, penalty_weights=[0.0, 5.0], sensitive_features=s
    )
    for model, weight in zip(path, [0.0, 5.0]):
        alone = FRHSICClassifier(penalty_weight=weight, **quick()).fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=2e-4)
        assert model.penalty_weight == weight
        assert model.n_features_in_ == 3


def test_a_new_fit_forgets_what_an_earlier_one_learned():
    X, y, s = biased(60)
    model = FRHSICClassifier(**quick(epochs=1)).fit(X, y, sensitive_features=s)
    model.set_params(penalty_weight=0).fit(X[:, :2], np.arange(60) % 3)
    assert list(model.classes_) == [0, 1, 2]
    assert not {"sensitive_names_in_", "sensitive_encoding_"} & set(vars(model))
    assert (model.n_features_in_, model.n_fits_) == (2, 1)


# units, tables and their columns


@pytest.mark.parametrize("penalty", ["hsic", "reg-gdp", "adv"])
def test_the_units_of_features_and_attribute_do_not_matter(penalty: str):
    X, y, s = biased(100)
    model = FRHSICClassifier(penalty, 1.0, **quick(epochs=5))
    one = model.fit(X, y, sensitive_features=s).predict_proba(X)
    other = (
        clone(model).fit(1000 * X - 7, y, sensitive_features=12 * s + 3).predict_proba(1000 * X - 7)
    )
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_regressor_gives_predictions_in_the_unit_of_its_target():
    X, _, s = biased()
    y = X[:, 1] + 0.02 * s
    model = FRHSICRegressor(penalty_weight=1.0, **quick()).fit(X, y, sensitive_features=s)
    other = FRHSICRegressor(penalty_weight=1.0, **quick()).fit(
        X, 1e4 * y - 3e5, sensitive_features=s
    )
    np.testing.assert_allclose(other.predict(X), 1e4 * model.predict(X) - 3e5, atol=30)
    assert model.score(X, y) > 0.7
    assert model.target_mean_ == pytest.approx(y.mean())
    assert model.target_scale_ == pytest.approx(y.std())


# the floor under the variance of Z


def test_a_later_call_cuts_anew_and_keeps_the_cut_where_its_rows_are_too_few_to_tell():
    X, y, s = biased(300)
    model = FRHSICClassifier("hsic", **quick(epochs=10)).fit(X, y, sensitive_features=s)
    first = model.encoder_[1].inward.clone()
    before = model.encoder_[0][0].weight.clone()
    model.partial_fit(X[:20], y[:20], sensitive_features=s[:20])
    assert torch.equal(model.encoder_[1].inward, first)
    assert not torch.equal(model.encoder_[0][0].weight, before)
    model.partial_fit(X, y, sensitive_features=s)
    assert not torch.equal(model.encoder_[1].inward, first)
    assert len(model.encoder_) == 2
    assert not isinstance(model.encoder_[0][-1], Bottleneck)
    model.fit(X[:20], y[:20], sensitive_features=s[:20])
    assert (model.has_bottleneck_, model.representation_rank_) == (False, 8)


# bad input


@pytest.mark.parametrize("estimator", [FRHSICClassifier, FRHSICRegressor])
def test_a_missing_attribute_warns_in_its_own_category_and_trains_without_penalty(estimator: type):
    X, y, _ = biased(80)
    settings = quick(epochs=3)
    with pytest.warns(MissingSensitiveFeaturesWarning):
        model = estimator(**settings).fit(X, y)
    plain = estimator(penalty_weight=0, **settings).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))


class Interrupted(Penalty):
    def _value(self, batch: Any) -> Any:
        raise KeyboardInterrupt


def test_a_fit_that_fails_or_is_interrupted_leaves_the_fitted_model_whole():
    X, y, s = biased(60)
    model = FRHSICClassifier(**quick(epochs=1)).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(2 * X[:, :2], np.ones(60), sensitive_features=s)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(penalty=Interrupted()).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), before)


# labels, weights, attributes


def test_constant_sample_weights_are_none_and_rows_of_weight_zero_do_not_teach():
    X, y, s = biased(200)
    plain = FRHSICClassifier(**quick()).fit(X, y, sensitive_features=s)
    same = FRHSICClassifier(**quick()).fit(
        X, y, sensitive_features=s, sample_weight=np.full(200, 2.0)
    )
    np.testing.assert_allclose(plain.predict_proba(X), same.predict_proba(X), atol=1e-5)
    wrong = np.concatenate([y, 1 - y, 1 - y])
    weight = np.concatenate([np.ones(200), np.zeros(400)])
    taught = FRHSICClassifier(penalty_weight=0, **quick()).fit(
        np.tile(X, (3, 1)), wrong, sample_weight=weight
    )
    assert taught.score(X, y) > 0.9


def test_the_same_seed_gives_the_same_model_and_another_seed_another():
    X, y, s = biased(80)
    settings = quick(epochs=2)

    def z(random_state: object) -> np.ndarray:
        settings["random_state"] = random_state
        return FRHSICClassifier(**settings).fit(X, y, sensitive_features=s).transform(X)

    np.testing.assert_array_equal(z(7), z(7))
    assert not np.array_equal(z(7), z(8))
    np.testing.assert_array_equal(z(np.random.RandomState(3)), z(np.random.RandomState(3)))
    np.testing.assert_array_equal(z(np.random.default_rng(3)), z(np.random.default_rng(3)))


# encoders


class Doubling(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.layer = nn.Linear(columns, 5)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.relu(self.layer(2 * x)))


def test_an_encoder_of_one_s_own_is_a_function_of_the_number_of_columns_or_a_module():
    X, y, s = biased(120)
    settings = quick(epochs=3)
    model = FRHSICClassifier(**settings | {"encoder": Doubling}).fit(X, y, sensitive_features=s)
    assert model.transform(X).shape == (120, 5)
    np.testing.assert_array_equal(model.transform(X), model.transform(X))
    torch.manual_seed(0)
    module = Doubling(3)
    start = {name: values.clone() for name, values in module.state_dict().items()}
    copied = FRHSICClassifier(**settings | {"encoder": module}).fit(X, y, sensitive_features=s)
    assert isinstance(copied.encoder_, Doubling)
    assert not torch.equal(copied.encoder_.layer.weight, start["layer.weight"])
    torch.testing.assert_close(module.state_dict(), start)
    with pytest.raises(ValueError, match="fails on rows with 3 columns"):
        FRHSICClassifier(**settings | {"encoder": nn.Linear(4, 2)}).fit(X, y, sensitive_features=s)


# several calls


def test_training_in_parts_learns_with_scales_of_the_first_call():
    X, y, s = biased(480)
    labels = np.array(["no", "yes"])[y]
    plain, model = (FRHSICClassifier("hsic", w, **quick(batch_size=16)) for w in (0.0, 10.0))
    for _ in range(2):
        for part in np.split(np.arange(480), 3):
            for each in (plain, model):
                each.partial_fit(
                    X[part], labels[part], classes=["no", "yes"], sensitive_features=s[part]
                )
    assert model.n_fits_ == 6
    assert model.feature_encoding_ == TableEncoding.fit(X[:160], scaling="range")
    assert plain.score(X, labels) > 0.85
    gaps = [
        gdp_difference(y, m.predict_proba(X)[:, 1], sensitive_features=s) for m in (plain, model)
    ]
    assert gaps[1] < 0.5 * gaps[0]


def test_a_regressor_trains_in_parts():
    X, _, s = biased(200)
    regressor = FRHSICRegressor(penalty_weight=0.1, **quick(batch_size=16))
    for _ in range(6):
        regressor.partial_fit(X, X[:, 1], sensitive_features=s)
    assert regressor.score(X, X[:, 1]) > 0.8


# what the optimizer is told


def test_decay_and_floor_are_those_of_the_penalty_unless_asked_for():
    X, y, s = biased(200)

    def fitted(
        penalty: Any = "hsic", weight: float = 10.0, **training: Any
    ) -> tuple[np.ndarray, int]:
        model = FRHSICClassifier(penalty, weight, **quick(epochs=3, **training)).fit(
            X, y, sensitive_features=s
        )
        return (
            np.concatenate([p.detach().numpy().ravel() for p in model.encoder_.parameters()]),
            model.representation_rank_,
        )

    (usual, rank), (undecayed, whole) = fitted(), fitted(weight_decay=0.0, variance_floor=0.0)
    np.testing.assert_array_equal(usual, fitted(weight_decay=1e-3)[0])
    np.testing.assert_array_equal(usual, fitted(HSIC())[0])
    assert not np.array_equal(usual, undecayed)
    assert (
        rank
        == fitted(variance_floor=0.3)[1]
        < fitted(variance_floor=0.01)[1]
        < 8
        == whole
        == fitted(weight=0.0)[1]
    )
    published, rank = fitted("frhsic")
    np.testing.assert_array_equal(
        published, fitted("frhsic", weight_decay=0.0, variance_floor=0.0)[0]
    )
    assert rank == 8


def test_later_calls_follow_the_penalty_that_is_asked_for():
    X, y, s = biased(200)
    model = FRHSICClassifier("hsic", **quick(epochs=5)).fit(X, y, sensitive_features=s)
    assert model.has_bottleneck_
    model.set_params(penalty="reg-gdp").partial_fit(X, y, sensitive_features=s)
    assert (type(model.penalty_), model.has_bottleneck_) == (GDP, False)
    model.set_params(penalty=DistanceCovariance()).partial_fit(X, y, sensitive_features=s)
    assert type(model.penalty_) is DistanceCovariance
    model.set_params(penalty=HSIC(3 * Gaussian(1.0))).partial_fit(X, y, sensitive_features=s)
    assert model.penalty_.kernel_z == 3 * Gaussian(1.0)
    model.set_params(penalty_weight=0).partial_fit(X[:20], y[:20], sensitive_features=s[:20])
    assert (model.has_bottleneck_, model.representation_rank_) == (False, 8)


# early stopping

STOPS = quick(early_stopping=True, patience=3)


def test_a_fit_that_stops_early_is_a_fleet_with_its_rows_held_out():
    X, y, s = biased(300)
    model = FRHSICClassifier("frhsic", 3.0, **STOPS).fit(X, y, sensitive_features=s)
    out = model._held_out(y.astype(float), "binary", None, None)
    x, attribute = model.feature_encoding_(X), scaled(s)
    held_out = TrainingData.of(x[out], y[out], attribute[out])
    data = TrainingData.of(x[~out], y[~out], attribute[~out], held_out=held_out)
    recipe = Recipe("binary", HSIC.published(), MLP((16,), 8), **vars(STOPS["training"]))
    fleet = train(data, [Member(3.0, 0)], recipe, device="cpu")
    done = int(fleet.epochs_done[0])
    assert (
        model.best_epoch_
        == int(fleet.history.best_epoch[0])
        == int(np.argmin(model.validation_curve_))
    )
    np.testing.assert_array_equal(
        model.validation_curve_, fleet.history.held_out_objective[0, :done]
    )
    assert len(model.loss_curve_) == len(model.penalty_curve_) == done
    assert torch.equal(model.encoder_[0].weight, fleet.parameters["encoder.0.weight"][0].double())
    part = FRHSICClassifier(**STOPS).partial_fit(X, y, sensitive_features=s)
    assert part.best_epoch_ is None


def test_rows_are_held_out_by_class_and_by_what_is_known_of_s_and_groups_are_held_out_whole():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [700, 290, 4])
    rng.shuffle(y)
    known, target = rng.uniform(size=len(y)) < 0.3, (y.astype(float), "multiclass")
    model = FRHSICClassifier(training=Training(early_stopping=True))
    model.random_seed_ = 3
    rows = model._held_out(*target, np.where(known, 0.0, np.nan)[:, None], None)
    for label, has in ((0, True), (0, False), (1, True), (1, False)):
        stratum = (y == label) & (known == has)
        assert abs(int(rows[stratum].sum()) - 0.1 * stratum.sum()) <= 0.5
    assert not rows[y == 2].any()
    grouped = model._held_out(*target, None, np.arange(len(y)) // 7)
    assert set(np.add.reduceat(grouped, np.arange(0, len(y), 7)).tolist()) == {0, 7}


@pytest.mark.parametrize("penalty", ["hsic", "adv"])
def test_auto_stops_early_on_tables_of_middle_size_and_not_for_adversaries(penalty: str):
    model = FRHSICClassifier(penalty, training=Training(early_stopping="auto"))
    model.random_seed_ = 0
    least, most = AUTO_ROWS
    for rows, stops in ((least - 1, False), (least, True), (most - 1, True), (most, False)):
        held_out = model._held_out(np.arange(rows) % 2.0, "binary", None, None)
        assert (held_out is not None) == (stops and penalty == "hsic")


# a row stands alone, and so does a fit


def test_the_score_of_a_row_depends_on_no_other_row(monkeypatch: pytest.MonkeyPatch):
    frame, y, age = people(700)
    model = FRHSICClassifier(penalty_weight=1.0, **quick(epochs=1)).fit(
        frame, y, sensitive_features=age
    )
    scores = model.decision_function(frame)
    order = np.random.default_rng(0).permutation(700)
    np.testing.assert_array_equal(model.decision_function(frame.iloc[order]), scores[order])
    for rows in (slice(0, 1), slice(650, 651), slice(3, 300)):
        np.testing.assert_array_equal(model.decision_function(frame.iloc[rows]), scores[rows])
    monkeypatch.setattr("frhsic.estimators.network.ENCODED_BYTES", 1)
    np.testing.assert_array_equal(model.decision_function(frame), scores)


@pytest.mark.parametrize("name", ["frhsic", "hsic", "adv"])
def test_global_state_of_torch_neither_changes_nor_breaks_a_fit(name: str):
    X, y, s = biased(100)
    model = FRHSICClassifier(name, 0.5, **quick(epochs=2))
    scores = model.fit(X, y, sensitive_features=s).decision_function(X)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            np.testing.assert_array_equal(
                model.fit(X, y, sensitive_features=s).decision_function(X), scores
            )
        with torch.inference_mode():
            np.testing.assert_array_equal(
                model.fit(X, y, sensitive_features=s).decision_function(X), scores
            )
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


# inside pipelines and searches, with the attribute routed to who asks for it

SHORT = quick(epochs=6)


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_an_attribute_that_was_not_asked_for_is_not_dropped_in_silence():
    X, y, s = biased(60)
    with pytest.raises(UnsetMetadataPassedError, match="sensitive_features"):
        make_pipeline(StandardScaler(), FRHSICClassifier(**SHORT)).fit(X, y, sensitive_features=s)
    with pytest.warns(MissingSensitiveFeaturesWarning):
        make_pipeline(StandardScaler(), FRHSICClassifier(**quick(epochs=1))).fit(X, y)


# rows without the attribute


def hidden(s: np.ndarray, share: float) -> np.ndarray:
    """Return s with NaN in a share of the rows."""
    return np.where(np.random.default_rng(1).uniform(size=len(s)) < share, np.nan, s)


@pytest.mark.filterwarnings("ignore::frhsic.estimators.UnlabelledRowsWarning")
def test_half_of_the_attributes_do_nearly_as_much_as_all_of_them():
    X, y, s = biased(600)
    X_new, y_new, s_new = biased(4000, seed=5)
    model = FRHSICClassifier("hsic", 20.0, **quick(epochs=30))
    free = clone(model).set_params(penalty_weight=0.0).fit(X, y, sensitive_features=s)
    whole, half = (
        clone(model).fit(X, y, sensitive_features=values) for values in (s, hidden(s, 0.5))
    )
    gaps = [
        gdp_difference(y_new, m.predict_proba(X_new)[:, 1], sensitive_features=s_new)
        for m in (free, whole, half)
    ]
    assert gaps[1] < 0.25 * gaps[0]
    assert abs(gaps[2] - gaps[1]) < 0.1 * gaps[0]


def test_a_row_counts_if_it_has_every_attribute_and_what_the_others_hold_does_not_matter():
    X, y, s = biased(200)
    first, second = (
        np.where(np.arange(200) % 4 == 1, np.nan, s),
        np.where(np.arange(200) % 4 == 0, np.nan, X[:, 2]),
    )
    frame = pd.DataFrame({"age": first, "income": second})
    missing = frame.isna().any(axis=1).to_numpy()
    with pytest.warns(UnlabelledRowsWarning, match="100 of 200 rows") as caught:
        model = FRHSICClassifier(**quick(epochs=3)).fit(X, y, sensitive_features=frame)
    assert caught[0].filename == __file__
    scales = {column.name: column.knots for column in model.sensitive_encoding_.columns}
    assert scales["age"] == (s[~missing].min(), s[~missing].max())
    with pytest.warns(UnlabelledRowsWarning):
        again = clone(model).fit(
            X, y, sensitive_features=np.where(missing[:, None], np.nan, frame.to_numpy())
        )
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


# errors

X40, Y40, S40 = biased(40)
ERRORS: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ({}, {"y": Y40[:-1]}, ValueError, "inconsistent"),
    ({}, {"s": np.where(np.arange(40) < 3, S40, np.nan)}, ValueError, "4 are needed"),
    ({}, {"s": np.array(["young", "old"] * 20)}, TypeError, "is not numeric: it contains"),
    ({}, {"sample_weight": np.ones(3)}, ValueError, "sample_weight"),
    ({"penalty": "fair"}, {}, ValueError, "'fair' is not known"),
    ({"penalty": 3}, {}, TypeError, "penalty"),
    ({"penalty_weight": -1.0}, {}, ValueError, "penalty_weight"),
    ({"handle_unknown": "drop"}, {}, ValueError, "handle_unknown"),
    ({"encoder": 3}, {}, TypeError, "encoder"),
]


@pytest.mark.filterwarnings("ignore::frhsic.estimators.UnlabelledRowsWarning")
@pytest.mark.parametrize(("parameters", "arguments", "error", "message"), ERRORS)
def test_bad_input_is_refused(
    parameters: dict[str, Any], arguments: dict[str, Any], error: type[Exception], message: str
):
    rows = {"X": X40, "y": Y40, "s": S40} | arguments
    with pytest.raises(error, match=message):
        FRHSICClassifier(**quick(epochs=1) | parameters).fit(
            rows.pop("X"), rows.pop("y"), sensitive_features=rows.pop("s"), **rows
        )


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("epochs", 0, ValueError),
        ("epochs", "many", TypeError),
        ("batch_size", True, TypeError),
        ("patience", 2.5, TypeError),
        ("learning_rate", 0.0, ValueError),
        ("schedule", "step", ValueError),
        ("early_stopping", "always", ValueError),
        ("weight_decay", -1.0, ValueError),
        ("weight_decay", "1", TypeError),
        ("variance_floor", 1.0, ValueError),
        ("variance_floor", float("nan"), ValueError),
    ],
)
def test_settings_that_cannot_be_are_refused_when_they_are_made(
    field: str, value: Any, error: type[Exception]
):
    with pytest.raises(error, match=field):
        Training(**{field: value})
