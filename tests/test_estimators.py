"""The estimators do what their fleet does, on columns that they scaled themselves."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import make_scorer
from torch import nn

from estimator_samples import QUICK, biased, people
from frhsic import load, save
from frhsic.estimators import (
    PENALTIES,
    PENALTY_NAMES,
    FRHSICClassifier,
    FRHSICRegressor,
    MissingSensitiveFeaturesWarning,
    ParityEncoder,
    fit_path,
    penalty_named,
)
from frhsic.kernels import Gaussian
from frhsic.parity import equal_opportunity_gdp, gdp, gdp_difference, standardized_gdp, standardized_gdp_difference
from frhsic.penalties import EIPM, GDP, HSIC, Adversary, BinnedAdversary, BinnedMMD, DistanceCovariance, NoPenalty
from frhsic.tables import TableEncoding
from frhsic.training import Bottleneck, Member, Recipe, TrainingData, affine_head, mlp_encoder, train


def scaled(values: np.ndarray) -> np.ndarray:
    return (values - values.min(0)) / (values.max(0) - values.min(0))


# what is trained


def test_the_default_classifier_is_the_paper_s_method_as_a_fleet_of_one():
    X, y, s = biased(300)
    model = FRHSICClassifier(penalty_weight=3.0, random_state=0, device="cpu").fit(X, y, sensitive_features=s)
    fleet = train(
        TrainingData.of(scaled(X), y, scaled(s)),
        [Member(3.0, 0)],
        Recipe(
            "binary",
            penalty=HSIC.published(),
            encoder=lambda: mlp_encoder(3, 50, 50, "selu"),
            head=lambda: affine_head(50),
            epochs=200,
            batch_size=256,
            learning_rate=1e-3,
        ),
        device="cpu",
    )
    rows = torch.from_numpy(scaled(X)).float()
    np.testing.assert_allclose(model.transform(X), fleet.transform(rows)[0].numpy(), atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), fleet.scores(rows)[0, :, 0].numpy(), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(model.decision_function(X)), rtol=1e-12)
    assert model.loss_curve_.shape == (200,)
    np.testing.assert_allclose(model.penalty_curve_, fleet.history.penalty[0].numpy())


def test_a_path_holds_the_models_that_each_weight_gives_alone():
    X, y, s = biased(150)
    path = fit_path(FRHSICClassifier(**QUICK), X, y, weights=[0.0, 5.0], sensitive_features=s)
    for model, weight in zip(path, [0.0, 5.0]):
        alone = FRHSICClassifier(penalty_weight=weight, **QUICK).fit(X, y, sensitive_features=s)
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=2e-4)
        assert model.penalty_weight == weight
        assert model.n_features_in_ == 3


def test_a_larger_weight_leaves_less_dependence_in_scores_and_in_the_representation():
    X, y, s = biased(600)
    plain, strong = fit_path(FRHSICClassifier(**QUICK), X, y, weights=[0.0, 30.0], sensitive_features=s)
    X, y, s = biased(600, seed=1)
    before = gdp_difference(y, plain.predict_proba(X)[:, 1], sensitive_features=s)
    after = gdp_difference(y, strong.predict_proba(X)[:, 1], sensitive_features=s)
    assert plain.score(X, y) > 0.85
    assert before > 0.15
    assert after < 0.3 * before


@pytest.mark.parametrize("name", PENALTY_NAMES)
def test_every_name_trains(name: str):
    X, y, s = biased(100)
    model = FRHSICClassifier(name, penalty_weight=0.5, **{**QUICK, "epochs": 2}).fit(X, y, sensitive_features=s)
    assert type(model.penalty_) is type(penalty_named(name))
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("hsic", HSIC),
        ("frhsic", HSIC),
        ("frem", EIPM),
        ("reg-gdp", GDP),
        ("adv", Adversary),
        ("mmd", BinnedMMD),
        ("laftr", BinnedAdversary),
        ("dcor", DistanceCovariance),
        ("none", NoPenalty),
    ],
)
def test_a_name_means_one_penalty(name: str, made: type):
    assert type(penalty_named(name, 7)) is made


def test_the_published_penalties_have_no_head_in_the_kernel_and_the_library_s_own_has():
    assert penalty_named("hsic").head_weight > 0
    assert penalty_named("frhsic").head_weight == 0
    assert penalty_named("frhsic").scale_z == "published"
    assert penalty_named("mmd").kind == BinnedMMD.published().kind
    assert penalty_named("mmd").edge_rule == BinnedMMD.published().edge_rule
    assert penalty_named("hsic", head=False).head_weight == 0


def test_equal_opportunity_is_refused_where_a_penalty_has_no_form_for_it():
    assert penalty_named("frem", condition="positive").condition == "positive"
    with pytest.raises(ValueError, match="no form for Equal Opportunity"):
        penalty_named("adv", condition="positive")


def test_every_name_is_described_in_one_line_and_in_the_documentation():
    documented = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
    for name, penalty in PENALTIES.items():
        assert f"| `{name}` | {penalty.description} |" in documented


def test_the_penalty_of_a_fitted_model_is_prepared_anew_for_another():
    X, y, s = biased(100)
    settings = {**QUICK, "epochs": 2}
    first = FRHSICClassifier("adv", 0.1, **settings).fit(X, y, sensitive_features=s)
    again = FRHSICClassifier(first.penalty_, 0.1, **settings).fit(X, y, sensitive_features=np.column_stack([s, s**2]))
    assert (first.penalty_.n_attributes, again.penalty_.n_attributes) == (1, 2)
    assert int(again.penalty_.steps) == int(first.penalty_.steps)


def test_a_new_fit_forgets_what_an_earlier_one_learned():
    X, y, s = biased(60)
    model = ParityEncoder(**{**QUICK, "epochs": 1}).fit(X, y, sensitive_features=s)
    model.set_params(penalty_weight=0).fit(X[:, :2])
    assert model.task_ == "reconstruction"
    assert not {"classes_", "sensitive_names_in_", "sensitive_encoding_"} & set(vars(model))
    assert (model.n_features_in_, model.n_fits_) == (2, 1)


def test_an_adversary_is_as_wide_as_the_representation():
    X, y, s = biased(60)
    model = FRHSICClassifier("adv", 0.1, **{**QUICK, "epochs": 1}).fit(X, y, sensitive_features=s)
    assert model.penalty_.z_dim == 8


# units, tables and their columns


@pytest.mark.parametrize("penalty", ["hsic", "reg-gdp", "adv"])
def test_the_units_of_features_and_attribute_do_not_matter(penalty: str):
    X, y, s = biased(100)
    model = FRHSICClassifier(penalty, 1.0, **{**QUICK, "epochs": 15})
    one = model.fit(X, y, sensitive_features=s).predict_proba(X)
    other = clone(model).fit(1000 * X - 7, y, sensitive_features=12 * s + 3).predict_proba(1000 * X - 7)
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_a_regressor_gives_predictions_in_the_unit_of_its_target():
    X, _, s = biased()
    y = X[:, 1] + 0.02 * s
    model = FRHSICRegressor(penalty_weight=1.0, **QUICK).fit(X, y, sensitive_features=s)
    other = FRHSICRegressor(penalty_weight=1.0, **QUICK).fit(X, 1e4 * y - 3e5, sensitive_features=s)
    np.testing.assert_allclose(other.predict(X), 1e4 * model.predict(X) - 3e5, atol=30)
    assert model.score(X, y) > 0.7
    assert model.target_mean_ == pytest.approx(y.mean())
    assert model.target_scale_ == pytest.approx(y.std())


def test_text_and_categories_of_a_frame_are_their_indicators():
    frame, y, age = people()
    by_hand = np.column_stack(
        [frame["hours"]]
        + [frame["job"] == level for level in ("clerk", "cook", "nurse")]
        + [frame["owner"]]
        + [frame["size"] == level for level in ("m", "s")]
    ).astype(float)
    model = FRHSICClassifier(**{**QUICK, "epochs": 5}).fit(frame, y, sensitive_features=age)
    other = FRHSICClassifier(**{**QUICK, "epochs": 5}).fit(by_hand, y, sensitive_features=age)
    np.testing.assert_array_equal(model.predict_proba(frame), other.predict_proba(by_hand))
    assert list(model.feature_names_in_) == ["hours", "job", "owner", "size"]
    assert list(model.sensitive_names_in_) == ["age"]
    assert model.n_features_in_ == 4
    assert model.feature_encoding_.width == 7


def test_a_polars_frame_is_the_same_table():
    polars = pytest.importorskip("polars")
    frame, y, age = people()
    table = polars.DataFrame({name: column.tolist() for name, column in frame.items()})
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).fit(frame, y, sensitive_features=age)
    np.testing.assert_array_equal(model.predict_proba(table), model.predict_proba(frame))


def test_an_unseen_category_is_an_error_that_names_it_or_a_row_without_level():
    frame, y, age = people()
    new = frame.head(3).assign(job=["cook", "pilot", "nurse"])
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}, handle_unknown="error").fit(frame, y, sensitive_features=age)
    with pytest.raises(ValueError, match=r"column 'job' has 'pilot' \(row 1\)"):
        model.predict(new)
    model.set_params(handle_unknown="ignore")
    assert np.isfinite(model.predict_proba(new)).all()
    np.testing.assert_array_equal(model.feature_encoding_(new, "ignore")[1, 1:4], 0)


def test_columns_missing_or_in_another_order_are_refused():
    frame, y, age = people()
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).fit(frame, y, sensitive_features=age)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["job", "hours", "owner", "size"]])
    with pytest.raises(ValueError, match="hours"):
        model.predict(frame.drop(columns="hours"))


def test_encodings_of_parts_join_to_that_of_the_whole():
    frame, _, _ = people()
    parts = TableEncoding.fit(frame.iloc[:50]) | TableEncoding.fit(frame.iloc[50:])
    assert parts == TableEncoding.fit(frame)
    with pytest.raises(ValueError, match="different columns"):
        TableEncoding.fit(frame) | TableEncoding.fit(frame[["hours"]])


def test_an_encoding_of_another_table_is_refused():
    frame, y, age = people()
    encoding = TableEncoding.fit(frame[["job", "hours", "owner", "size"]])
    with pytest.raises(ValueError, match="the encoding is of the columns"):
        FRHSICClassifier(feature_encoding=encoding, **QUICK).fit(frame, y, sensitive_features=age)


@pytest.mark.parametrize(
    ("column", "kind", "said"),
    [
        ([1.0, np.inf], ValueError, "infinite"),
        ([object(), object()], TypeError, "categories may be text"),
    ],
)
def test_columns_that_cannot_be_numbers_are_refused(column: object, kind: type[Exception], said: str):
    with pytest.raises(kind, match=said):
        TableEncoding.fit(pd.DataFrame({"c": column}))


def test_a_column_of_identifiers_is_refused():
    with pytest.raises(ValueError, match="identifies rows"):
        TableEncoding.fit(pd.DataFrame({"name": [f"person {i}" for i in range(300)]}))


def test_names_of_the_representation_s_columns_and_pandas_output():
    frame, y, age = people()
    model = ParityEncoder(**{**QUICK, "epochs": 1}).fit(frame, y, sensitive_features=age)
    assert list(model.get_feature_names_out())[:2] == ["parityencoder0", "parityencoder1"]
    out = model.set_output(transform="pandas").transform(frame)
    assert out.shape == (200, 8)


# weight decay


def test_hsic_decays_the_encoder_and_the_paper_s_methods_do_not():
    X, y, s = biased(80)
    settings = {**QUICK, "epochs": 3}

    def weights(**asked: Any) -> np.ndarray:
        model = FRHSICClassifier(**settings | {"penalty": "hsic"} | asked).fit(X, y, sensitive_features=s)
        return np.concatenate([p.detach().numpy().ravel() for p in model.encoder_.parameters()])

    assert np.array_equal(weights(), weights(weight_decay=1e-3))
    assert not np.array_equal(weights(), weights(weight_decay=0.0))
    assert np.array_equal(weights(penalty="frhsic"), weights(penalty="frhsic", weight_decay=0.0))
    assert np.array_equal(weights(penalty=HSIC()), weights())
    for name, made in (("frhsic", HSIC.published()), ("frem", EIPM()), ("none", NoPenalty())):
        assert np.array_equal(weights(penalty=made), weights(penalty=name))


def test_without_a_target_nothing_decays():
    X, _, s = biased(80)

    def weights(**asked: Any) -> np.ndarray:
        model = ParityEncoder(**{**QUICK, "epochs": 3}, **asked).fit(X, sensitive_features=s)
        return np.concatenate([p.detach().numpy().ravel() for p in model.encoder_.parameters()])

    assert np.array_equal(weights(), weights(weight_decay=0.0))


@pytest.mark.parametrize("name", ["weight_decay", "variance_floor"])
@pytest.mark.parametrize(
    ("asked", "error"),
    [(-1.0, ValueError), (float("inf"), ValueError), (float("nan"), ValueError), ("1", TypeError), (True, TypeError)],
)
def test_a_weight_decay_or_variance_floor_that_is_no_finite_number_is_refused(name: str, asked: Any, error: type):
    X, y, s = biased(40)
    with pytest.raises(error, match=name):
        FRHSICClassifier(**{name: asked}, **QUICK).fit(X, y, sensitive_features=s)


# the floor under the variance of Z


def least_squares_r2(z: np.ndarray, s: np.ndarray) -> float:
    """Share of s that an ordinary regression on z recovers, without ridge, on the other half of the rows."""
    half = len(z) // 2
    a = np.column_stack([np.ones(len(z)), z])
    fitted = np.linalg.lstsq(a[:half], s[:half], rcond=None)[0]
    return float(1 - np.mean((s[half:] - a[half:] @ fitted) ** 2) / np.var(s[half:]))


@pytest.mark.slow
def test_what_no_direction_of_variance_holds_is_not_in_z_for_any_regression():
    X, y, s = biased(2000)
    settings = {**QUICK, "epochs": 60, "penalty_weight": 30.0}
    whole = FRHSICClassifier(variance_floor=0.0, **settings).fit(X, y, sensitive_features=s)
    cut = FRHSICClassifier(**settings).fit(X, y, sensitive_features=s)
    X, y, s = biased(2000, seed=1)
    z = cut.transform(X)
    assert whole.representation_rank_ == 8 > cut.representation_rank_
    assert np.linalg.matrix_rank(z - z.mean(0)) == cut.representation_rank_
    assert least_squares_r2(whole.transform(X), s) > 0.3
    assert least_squares_r2(z, s) < 0.1
    assert cut.score(X, y) > whole.score(X, y) - 0.02


def test_hsic_cuts_and_the_paper_s_methods_do_not():
    X, y, s = biased(200)

    def rank(**asked: Any) -> int:
        model = FRHSICClassifier(**{**QUICK, "epochs": 3, "penalty": "hsic", **asked})
        return model.fit(X, y, sensitive_features=s).representation_rank_

    assert rank() == rank(variance_floor=0.3) < rank(variance_floor=0.01) < 8
    assert rank(variance_floor=0.9) <= rank()
    assert rank(penalty="frhsic") == rank(penalty=HSIC.published()) == rank(variance_floor=0.0) == 8
    assert rank(penalty_weight=0) == 8


def test_a_later_call_cuts_anew_and_keeps_the_cut_where_its_rows_are_too_few_to_tell():
    X, y, s = biased(300)
    model = FRHSICClassifier("hsic", **{**QUICK, "epochs": 10}).fit(X, y, sensitive_features=s)
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


def test_many_small_calls_learn_through_the_cut_of_the_first():
    X, y, s = biased(1000)
    model = FRHSICClassifier("hsic", 0.3, **{**QUICK, "epochs": 5}).fit(X, y, sensitive_features=s)
    flipped = 1 - y  # the target turns around: what was learnt has to be learnt anew, in small calls
    assert model.score(X, flipped) < 0.3
    for start in range(0, 1000, 20):
        rows = slice(start, start + 20)
        model.partial_fit(X[rows], flipped[rows], sensitive_features=s[rows])
    assert model.has_bottleneck_
    assert model.score(X, flipped) > 0.8


def test_a_later_call_without_penalty_has_no_cut():
    X, y, s = biased(300)
    model = FRHSICClassifier("hsic", warm_start=True, **{**QUICK, "epochs": 5}).fit(X, y, sensitive_features=s)
    assert model.representation_rank_ < 8
    model.set_params(penalty_weight=0).fit(X[:20], y[:20], sensitive_features=s[:20])
    assert (model.has_bottleneck_, model.representation_rank_) == (False, 8)


def test_a_later_call_with_another_penalty_trains_with_it():
    X, y, s = biased(200)
    model = FRHSICClassifier(warm_start=True, **{**QUICK, "epochs": 3}).fit(X, y, sensitive_features=s)
    model.set_params(penalty="reg-gdp").fit(X, y, sensitive_features=s)
    assert (type(model.penalty_), model.has_bottleneck_) == (GDP, False)
    model.set_params(penalty=HSIC(3 * Gaussian(1.0))).fit(X, y, sensitive_features=s)
    assert model.penalty_.kernel_z == 3 * Gaussian(1.0)
    assert model.has_bottleneck_


def test_a_later_call_with_other_sensitive_columns_is_refused():
    X, y, s = biased(100)
    two = pd.DataFrame({"age": s, "income": 1000 * (1 - s) ** 2})
    model = FRHSICClassifier(**{**QUICK, "epochs": 2}).fit(X, y, sensitive_features=two)
    for other in (two[["income", "age"]], two.rename(columns={"age": "years"})):
        with pytest.raises(ValueError, match="fitted with age, income, in this order"):
            model.partial_fit(X, y, sensitive_features=other)
    model.partial_fit(X, y, sensitive_features=two)
    model.partial_fit(X, y, sensitive_features=two.to_numpy())


def test_another_s_encoder_with_its_cut_is_an_encoder_of_one_s_own(tmp_path: Path):
    X, y, s = biased(300)
    settings = {**QUICK, "epochs": 5, "penalty": "hsic"}
    first = FRHSICClassifier(**settings).fit(X, y, sensitive_features=s)
    later = FRHSICClassifier(encoder=first.encoder_, variance_floor=0.0, **settings).fit(X, y, sensitive_features=s)
    assert not later.has_bottleneck_
    save(later, tmp_path / "model")
    again = load(tmp_path / "model", encoder=first.encoder_)
    np.testing.assert_array_equal(again.transform(X), later.transform(X))
    later.partial_fit(X, y, sensitive_features=s)
    assert np.linalg.matrix_rank(later.transform(X) - later.transform(X).mean(0), tol=1e-3) < 8


# bad input


@pytest.mark.parametrize("estimator", [FRHSICClassifier, FRHSICRegressor, ParityEncoder])
def test_a_missing_attribute_warns_in_its_own_category_and_trains_without_penalty(estimator: type):
    X, y, _ = biased(80)
    settings = {**QUICK, "epochs": 3}
    with pytest.warns(MissingSensitiveFeaturesWarning, match="penalty_weight=10"):
        model = estimator(**settings).fit(X, y)
    plain = estimator(penalty_weight=0, **settings).fit(X, y)
    np.testing.assert_array_equal(model.transform(X), plain.transform(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", MissingSensitiveFeaturesWarning)
        with pytest.raises(MissingSensitiveFeaturesWarning):
            estimator(**settings).fit(X, y)


def test_bad_input_is_refused_with_what_to_do():
    X, y, s = biased(60)
    model = FRHSICClassifier(**{**QUICK, "epochs": 1})
    for arguments, said in [
        ((X, y[:-1], s), "lengths differ: X has 60 rows, y has 59"),
        ((X, y, s[:-1]), "lengths differ: X has 60 rows, sensitive_features has 59"),
        ((X, y, np.full(60, 3.0)), "sensitive attribute 'sensitive' is 3 in every row"),
        ((X, y, np.where(np.arange(60) == 4, np.inf, s)), "sensitive_features holds 1 values that are infinite"),
        ((X, y, np.full(60, np.nan)), "no row has all of sensitive_features"),
        ((np.where(X > 60, np.inf, X), y, s), "infinity"),
        ((X, np.zeros(60), s), "one class only"),
    ]:
        with pytest.raises(ValueError, match=said):
            model.fit(arguments[0], arguments[1], sensitive_features=arguments[2])
    with pytest.raises(TypeError, match="text or categories"):
        model.fit(X, y, sensitive_features=np.array(["young", "old"] * 30))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sensitive_features=s, sample_weight=np.ones(3))
    for settings, said in [
        ({"penalty": "fair"}, "'fair' is not known; pass one of 'hsic'"),
        ({"penalty_weight": -1.0}, "zero or more"),
        ({"handle_unknown": "drop"}, "pass 'error' or 'ignore'"),
        ({"scaling": "minmax"}, "pass 'quantile', 'robust' or 'range'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"random_state": -1}, "random_state=-1"),
    ]:
        with pytest.raises(ValueError, match=said):
            clone(model).set_params(**settings).fit(X, y, sensitive_features=s)
    with pytest.raises(TypeError, match="pass a name such as 'hsic'"):
        clone(model).set_params(penalty=3).fit(X, y, sensitive_features=s)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_where_there_is_none_is_refused():
    X, y, s = biased(20)
    with pytest.raises(ValueError, match="PyTorch sees no GPU here"):
        FRHSICClassifier(device="cuda").fit(X, y, sensitive_features=s)


def test_fewer_rows_than_a_batch_are_one_batch():
    X, y, s = biased(20)
    model = FRHSICClassifier(**{**QUICK, "batch_size": 256}).fit(X, y, sensitive_features=s)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_fit_that_fails_leaves_the_fitted_model_whole():
    X, y, s = biased(60)
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(2 * X[:, :2], np.ones(60), sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_an_interrupted_fit_leaves_the_fitted_model_whole(monkeypatch: pytest.MonkeyPatch):
    X, y, s = biased(60)
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X)

    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("frhsic.training.loop.Trainer.epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_equal_opportunity_needs_two_classes():
    X, y, s = biased(60)
    penalty = HSIC(condition="positive")
    settings = {**QUICK, "epochs": 1}
    FRHSICClassifier(penalty, **settings).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="needs two classes"):
        FRHSICClassifier(penalty, **settings).fit(X, np.arange(60) % 3, sensitive_features=s)
    with pytest.raises(ValueError, match="needs two classes"):
        FRHSICRegressor(penalty, **settings).fit(X, X[:, 1], sensitive_features=s)


# labels, weights, attributes


def test_labels_of_any_kind_come_back():
    X, y, s = biased()
    labels = np.array(["no", "yes"])[y]
    model = FRHSICClassifier(penalty_weight=0.1, **QUICK).fit(X, labels, sensitive_features=s)
    assert list(model.classes_) == ["no", "yes"]
    np.testing.assert_array_equal(model.predict(X) == "yes", model.predict_proba(X)[:, 1] > 0.5)
    assert model.score(X, labels) > 0.85


def test_three_classes_have_one_score_each():
    X, _, s = biased(400)
    y = np.digitize(X[:, 1], [-0.4, 0.4])
    model = FRHSICClassifier(penalty_weight=0.1, **QUICK).fit(X, y, sensitive_features=s)
    assert model.decision_function(X).shape == (400, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
    assert model.score(X, y) > 0.85


def test_constant_sample_weights_are_none_and_rows_of_weight_zero_do_not_teach():
    X, y, s = biased(200)
    plain = FRHSICClassifier(**QUICK).fit(X, y, sensitive_features=s)
    same = FRHSICClassifier(**QUICK).fit(X, y, sensitive_features=s, sample_weight=np.full(200, 2.0))
    np.testing.assert_allclose(plain.predict_proba(X), same.predict_proba(X), atol=1e-5)
    wrong = np.concatenate([y, 1 - y, 1 - y])
    weight = np.concatenate([np.ones(200), np.zeros(400)])
    taught = FRHSICClassifier(penalty_weight=0, **QUICK).fit(np.tile(X, (3, 1)), wrong, sample_weight=weight)
    assert taught.score(X, y) > 0.9


def test_several_attributes_are_penalised_jointly():
    X, y, s = biased(400)
    both = pd.DataFrame({"age": s, "other": X[:, 1]})
    plain, strong = fit_path(FRHSICClassifier("hsic", **QUICK), X, y, weights=[0.0, 100.0], sensitive_features=both)
    gaps = [gdp_difference(y, m.predict_proba(X)[:, 1], sensitive_features=both) for m in (plain, strong)]
    assert gaps[1] < 0.3 * gaps[0]
    assert list(strong.sensitive_names_in_) == ["age", "other"]
    assert strong.penalty_.attributes == "joint"


def test_the_same_seed_gives_the_same_model_and_another_seed_another():
    X, y, s = biased(80)
    settings = {**QUICK, "epochs": 2}

    def z(random_state: object) -> np.ndarray:
        settings["random_state"] = random_state
        return FRHSICClassifier(**settings).fit(X, y, sensitive_features=s).transform(X)

    np.testing.assert_array_equal(z(7), z(7))
    assert not np.array_equal(z(7), z(8))
    np.testing.assert_array_equal(z(np.random.RandomState(3)), z(np.random.RandomState(3)))
    np.testing.assert_array_equal(z(np.random.default_rng(3)), z(np.random.default_rng(3)))


# encoders


def test_an_encoder_without_target_reconstructs_and_forgets_the_attribute():
    X, _, s = biased(500)
    settings = {**QUICK, "representation_size": 3}
    plain = ParityEncoder(penalty_weight=0, **settings).fit(X)
    strong = ParityEncoder(penalty_weight=30, **settings).fit(X, sensitive_features=s)
    assert plain.task_ == "reconstruction"
    assert plain.loss_curve_[-1] < 0.2 * plain.loss_curve_[0]

    def recovered(model: ParityEncoder) -> float:
        z = model.transform(X)
        z = np.column_stack([z, np.ones(len(z))])
        left = s - z @ np.linalg.lstsq(z, s, rcond=None)[0]
        return 1 - left.var() / s.var()

    assert recovered(plain) > 0.6
    assert recovered(strong) < 0.1


def test_an_encoder_follows_its_target():
    X, y, s = biased(60)
    settings = {**QUICK, "epochs": 1}
    assert ParityEncoder(**settings).fit(X, y, sensitive_features=s).task_ == "binary"
    assert ParityEncoder(**settings).fit(X, X[:, 1], sensitive_features=s).task_ == "regression"
    assert ParityEncoder(**settings).fit(X, np.arange(60) % 3, sensitive_features=s).task_ == "multiclass"


class Doubling(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.layer = nn.Linear(columns, 5)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.relu(self.layer(2 * x)))


def test_an_encoder_of_one_s_own_is_a_function_of_the_number_of_columns_or_a_module():
    X, y, s = biased(120)
    settings = {**QUICK, "epochs": 3}
    model = FRHSICClassifier(encoder=Doubling, **settings).fit(X, y, sensitive_features=s)
    assert model.transform(X).shape == (120, 5)
    np.testing.assert_array_equal(model.transform(X), model.transform(X))
    torch.manual_seed(0)
    module = Doubling(3)
    start = {name: values.clone() for name, values in module.state_dict().items()}
    copied = FRHSICClassifier(encoder=module, **settings).fit(X, y, sensitive_features=s)
    assert isinstance(copied.encoder_, Doubling)
    assert not torch.equal(copied.encoder_.layer.weight, start["layer.weight"])
    torch.testing.assert_close(module.state_dict(), start)
    with pytest.raises(ValueError, match="does not take rows of 3 columns"):
        FRHSICClassifier(encoder=nn.Linear(4, 2), **settings).fit(X, y, sensitive_features=s)
    with pytest.raises(TypeError, match=r"must make a torch\.nn\.Module"):
        FRHSICClassifier(encoder=lambda columns: columns, **settings).fit(X, y, sensitive_features=s)


# several calls


def test_a_warm_start_goes_on_with_weights_and_scales():
    X, y, s = biased(150)
    model = FRHSICClassifier(warm_start=True, **{**QUICK, "epochs": 15}).fit(X, y, sensitive_features=s)
    first, encoding, scale = model.loss_curve_, model.feature_encoding_, model.penalty_.scale_s_now.clone()
    model.fit(X, y, sensitive_features=s)
    assert model.loss_curve_[0] < 0.5 * (first[0] + first[-1])
    model.fit(X + 100, y, sensitive_features=s * 3)
    assert model.feature_encoding_ == encoding
    torch.testing.assert_close(model.penalty_.scale_s_now, scale)
    cold = clone(model).set_params(warm_start=False).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(cold.loss_curve_, first)


def test_training_in_parts_learns_with_scales_of_the_first_call():
    X, y, s = biased(480)
    labels = np.array(["no", "yes"])[y]
    plain, model = (FRHSICClassifier("hsic", w, **{**QUICK, "batch_size": 16}) for w in (0.0, 10.0))
    for _ in range(2):
        for part in np.split(np.arange(480), 3):
            for each in (plain, model):
                each.partial_fit(X[part], labels[part], classes=["no", "yes"], sensitive_features=s[part])
    assert model.n_fits_ == 6
    assert model.feature_encoding_ == TableEncoding.fit(X[:160], scaling="range")
    assert plain.score(X, labels) > 0.85
    gaps = [gdp_difference(y, m.predict_proba(X)[:, 1], sensitive_features=s) for m in (plain, model)]
    assert gaps[1] < 0.5 * gaps[0]


def test_an_adversary_goes_on_in_the_next_call():
    X, y, s = biased(64)
    model = FRHSICClassifier("adv", 0.1, **{**QUICK, "batch_size": 16})
    for call in range(1, 4):
        model.partial_fit(X, y, sensitive_features=s)
        assert int(model.penalty_.steps) == 4 * call


def test_scales_may_be_passed_and_classes_must_be_named_in_the_first_call():
    X, y, s = biased(100)
    whole = TableEncoding.fit(X)
    model = FRHSICClassifier(feature_encoding=whole, **QUICK)
    model.partial_fit(X[:10], y[:10], classes=[0, 1, 2], sensitive_features=s[:10])
    assert model.feature_encoding_ == whole
    assert model.predict_proba(X).shape == (100, 3)
    model.partial_fit(X[10:], y[10:], sensitive_features=s[10:])
    with pytest.raises(ValueError, match=r"labels \[7\], which are not among the classes \[0, 1, 2\]"):
        model.partial_fit(X[:2], [0, 7], sensitive_features=s[:2])
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X, y, classes=[0, 1], sensitive_features=s)


def test_a_regressor_and_an_encoder_train_in_parts():
    X, y, s = biased(200)
    regressor = FRHSICRegressor(penalty_weight=0.1, **{**QUICK, "batch_size": 16})
    encoder = ParityEncoder(penalty_weight=0.1, **{**QUICK, "batch_size": 16})
    for _ in range(6):
        regressor.partial_fit(X, X[:, 1], sensitive_features=s)
        encoder.partial_fit(X, sensitive_features=s)
    assert regressor.score(X, X[:, 1]) > 0.8
    assert encoder.loss_curve_[-1] < 0.15  # of the variance of the columns
    with pytest.raises(ValueError, match="the first call was for reconstruction"):
        encoder.partial_fit(X, y, sensitive_features=s)


# metrics


def test_metrics_are_the_parity_of_the_worst_attribute():
    rng = np.random.default_rng(0)
    f, s, y = rng.random(50), rng.random((50, 2)), rng.integers(2, size=50)
    values = [float(gdp(f, column)) for column in s.T]
    assert gdp_difference(y, f, sensitive_features=s) == pytest.approx(max(values))
    assert gdp_difference(None, f, sensitive_features=s[:, 1]) == pytest.approx(values[1])
    each = [float(standardized_gdp(f, column)) for column in s.T]
    assert standardized_gdp_difference(y, f, sensitive_features=s) == pytest.approx(max(each))
    positive = [float(gdp(f, column, where=y)) for column in s.T]
    assert equal_opportunity_gdp(y, f, sensitive_features=s) == pytest.approx(max(positive))


def test_a_metric_becomes_a_scorer_of_probabilities():
    X, y, s = biased(80)
    model = FRHSICClassifier(**{**QUICK, "epochs": 2}).fit(X, y, sensitive_features=s)
    scorer = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
    with config_context(enable_metadata_routing=True):
        score = scorer.set_score_request(sensitive_features=True)(model, X, y, sensitive_features=s)
    assert score == pytest.approx(-float(gdp(model.predict_proba(X)[:, 1], s)))


def test_a_path_that_cannot_be_is_refused():
    X, y, s = biased(40)
    with pytest.raises(TypeError, match="estimator is Linear; pass an FRHSICClassifier"):
        fit_path(nn.Linear(1, 1), X, y, weights=[1.0], sensitive_features=s)
    with pytest.raises(ValueError, match="weights is empty; pass at least one"):
        fit_path(FRHSICClassifier(**QUICK), X, y, weights=[], sensitive_features=s)
    with pytest.raises(ValueError, match="sensitive_features is None: without it every weight gives the same model"):
        fit_path(FRHSICClassifier(**QUICK), X, y, weights=[0.0, 1.0], sensitive_features=None)


def test_epochs_and_targets_of_other_kinds_are_refused():
    X, y, s = biased(40)
    with pytest.raises(ValueError, match="epochs='many'; pass a number or 'auto'"):
        FRHSICClassifier(**{**QUICK, "epochs": "many"}).fit(X, y, sensitive_features=s)
    several = np.column_stack([y, 1 - y])
    with pytest.raises(ValueError, match="y is multilabel-indicator; pass one column of labels or numbers"):
        ParityEncoder(**QUICK)._supervised(several, None)


def test_a_model_that_does_not_know_the_names_of_its_attributes_goes_on_training():
    """Files of the first version have none."""
    X, y, s = biased(60)
    frame = pd.DataFrame({"age": s})
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).partial_fit(X, y, sensitive_features=frame, classes=[0, 1])
    with pytest.raises(ValueError, match="age"):
        model.partial_fit(X, y, sensitive_features=frame.rename(columns={"age": "height"}))
    del model.sensitive_names_in_
    assert model.partial_fit(X, y, sensitive_features=frame.rename(columns={"age": "height"})).n_fits_ == 2
