"""Boosted trees with a penalty: LightGBM's own without it, less dependence with it, and files without pickle."""

from __future__ import annotations

import builtins
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from typer.testing import CliRunner

from frhsic import load, save
from frhsic.auditing import Audit
from frhsic.boosting import (
    BoostedParityClassifier,
    BoostedParityRegressor,
    booster_from_text,
    booster_to_text,
    objective,
)
from frhsic.cli import app
from frhsic.estimators import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning, describe
from frhsic.parity import gdp, standardized_gdp
from frhsic.tables import BandedAttributeWarning

ONE: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
PLAIN: dict[str, Any] = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}


def table(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features with text and missing values, log-odds that grow with age, and age."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, size=n)
    frame = pd.DataFrame(
        {
            "experience": np.where(rng.random(n) < 0.1, np.nan, age - 20 + 5 * rng.normal(size=n)),
            "test": rng.normal(size=n),
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
            "owner": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame, 0.08 * (age - 45) + frame["test"].to_numpy() + 0.5 * (frame["job"] == "cook"), age


def classes(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    frame, log_odds, age = table(n, seed)
    paid = np.random.default_rng(seed + 1).random(n) < expit(log_odds)
    return frame, np.where(paid, "yes", "no"), age


@pytest.mark.parametrize("weighted", [False, True])
def test_weight_0_is_lightgbm_s_own_binary_objective(weighted: bool):
    X, y, s = classes(800)
    x = X[["experience", "test"]].to_numpy()
    w = np.random.default_rng(3).uniform(0.5, 2, size=800) if weighted else None
    model = BoostedParityClassifier(0.0, n_estimators=40, validation_fraction=None, **ONE)
    model.fit(x, y, sensitive_features=s, sample_weight=w)
    own = lightgbm.train({"objective": "binary", **PLAIN}, lightgbm.Dataset(x, y == "yes", weight=w), 40)
    np.testing.assert_allclose(model.decision_function(x), own.predict(x, raw_score=True), atol=1e-5)
    assert model.n_trees_ == own.num_trees()


def test_weight_0_is_lightgbm_s_own_squared_error_far_from_zero():
    X, y, s = table(800)
    x, y = X[["experience", "test"]].to_numpy(), 1e4 + 50 * y
    model = BoostedParityRegressor(0.0, n_estimators=40, validation_fraction=None, **ONE)
    model.fit(x, y, sensitive_features=s)
    own = lightgbm.train({"objective": "regression", **PLAIN}, lightgbm.Dataset(x, y - 1e4), 40)
    np.testing.assert_allclose(model.predict(x), 1e4 + own.predict(x), atol=0.05)


def test_xgboost_takes_the_objective_and_weight_0_is_its_own():
    xgboost = pytest.importorskip("xgboost")
    X, y, s = classes(800)
    x = X[["experience", "test"]].to_numpy()
    data = xgboost.DMatrix(x, y == "yes", base_margin=np.zeros(800))
    settings = {"objective": "binary:logistic", "nthread": 1, "eta": 0.1}
    own = xgboost.train(settings, data, 20)
    plain = xgboost.train(settings, data, 20, obj=objective(s, 0.0))
    np.testing.assert_allclose(plain.predict(data), own.predict(data), atol=1e-5)
    penalized = xgboost.train(settings, data, 60, obj=objective(s, 100.0))
    before, after = (float(gdp(m.predict(data), s, resamples=0)) for m in (own, penalized))
    assert after < 0.4 * before


def atoms(s: np.ndarray) -> np.ndarray:
    return np.where(s < 45, 20.0, s)


@pytest.mark.parametrize("seen_as", [lambda s: np.exp(s / 3), np.round, atoms], ids=["skewed", "tied", "inflated"])
def test_dependence_on_held_out_rows_falls_along_the_grid(seen_as: Callable[[np.ndarray], np.ndarray]):
    X, y, s = classes(1500)
    fresh, _, t = classes(3000, seed=9)
    gaps, standardized = [], []
    for weight in (0.0, 20.0, 200.0, 2000.0):
        model = BoostedParityClassifier(weight, n_estimators=100, **ONE).fit(X, y, sensitive_features=seen_as(s))
        scores = model.predict_proba(fresh)[:, 1]
        gaps.append(float(gdp(scores, seen_as(t), resamples=0)))
        standardized.append(float(standardized_gdp(scores, seen_as(t), resamples=0)))
    assert (np.diff(gaps) < 0).all()
    assert gaps[-1] < 0.2 * gaps[0]
    assert standardized[-1] < 0.4 * standardized[0]  # the scores did not merely shrink


def test_a_regression_keeps_what_does_not_follow_the_attribute():
    X, y, s = table(2000)
    fresh, _, t = table(2000, seed=9)
    model = BoostedParityRegressor(300.0, n_estimators=150, **ONE).fit(X, y, sensitive_features=s)
    predictions = model.predict(fresh)
    assert abs(np.corrcoef(predictions, t)[0, 1]) < 0.15
    assert np.corrcoef(predictions, fresh["test"])[0, 1] > 0.8


def test_a_rare_outcome_and_two_attributes():
    rng = np.random.default_rng(0)
    s = rng.gamma(1.0, size=(3000, 2))
    x = np.column_stack([s + 0.3 * rng.normal(size=s.shape), rng.normal(size=3000)])
    y = rng.random(3000) < expit(-5 + s.sum(axis=1) + x[:, 2])
    gaps = []
    for weight in (0.0, 1000.0):
        model = BoostedParityClassifier(weight, **ONE).fit(x[:2000], y[:2000], sensitive_features=s[:2000])
        scores = model.predict_proba(x[2000:])[:, 1]
        gaps.append([float(gdp(scores, column, resamples=0)) for column in s[2000:].T])
    assert (np.array(gaps[1]) < 0.5 * np.array(gaps[0])).all()


def test_the_unit_of_a_target_does_not_matter():
    X, y, s = table(500)
    small = BoostedParityRegressor(**ONE).fit(X, y, sensitive_features=s)
    large = BoostedParityRegressor(**ONE).fit(X, 1e6 + 1e3 * y, sensitive_features=s)
    np.testing.assert_allclose(large.predict(X), 1e6 + 1e3 * small.predict(X), rtol=1e-7)


def test_increasing_maps_of_the_attribute_give_the_same_model():
    X, y, s = classes(500)
    a = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=s)
    b = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=np.exp(s))
    np.testing.assert_array_equal(a.predict_proba(X), b.predict_proba(X))


def test_the_order_of_the_rows_does_not_matter():
    X, y, s = classes(600)
    order = np.random.default_rng(0).permutation(600)
    settings = {"n_estimators": 15, "validation_fraction": None, **ONE}
    a = BoostedParityClassifier(**settings).fit(X, y, sensitive_features=s)
    b = BoostedParityClassifier(**settings).fit(X.iloc[order], y[order], sensitive_features=s[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)


def test_missing_values_and_unseen_levels_are_taken_at_predict():
    X, y, s = classes(500)
    model = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=s)
    rows = X.head(3).copy()
    rows["experience"], rows["job"] = np.nan, ["pilot", None, np.nan]
    probabilities = model.predict_proba(rows)
    assert np.isfinite(probabilities).all()
    rows["job"] = None
    np.testing.assert_array_equal(model.predict_proba(rows), probabilities)
    with pytest.raises(ValueError, match="was numeric"):
        model.predict(rows.assign(test="text"))


@pytest.mark.parametrize("as_array", [False, True])
def test_a_number_that_no_training_row_lacks_is_put_at_its_median(as_array: bool, tmp_path: Path):
    X, y, s = classes(301)
    X = X[["experience", "test"]].assign(test=X["test"] + 5)  # the trees read a missing number as 0, far from 5
    given = X.to_numpy() if as_array else X
    model = BoostedParityClassifier(1.0, **ONE).fit(given, y, sensitive_features=s)
    lacking, filled = X.assign(test=np.nan), X.assign(test=X["test"].median())
    lacking, filled = (one.to_numpy() if as_array else one for one in (lacking, filled))
    np.testing.assert_array_equal(model.predict_proba(lacking), model.predict_proba(filled))
    at_zero = model.booster_.predict(X.assign(test=0.0).to_numpy())
    np.testing.assert_array_equal(model.booster_.predict(X.assign(test=np.nan).to_numpy()), at_zero)
    learned, at_median = X.assign(experience=np.nan), X.assign(experience=X["experience"].median())
    learned, at_median = (one.to_numpy() if as_array else one for one in (learned, at_median))
    assert np.abs(model.predict_proba(learned) - model.predict_proba(at_median)).max() > 0.01  # a way of its own
    save(model, tmp_path / "model.frhsic")
    again = load(tmp_path / "model.frhsic")
    assert again.columns_ == model.columns_
    np.testing.assert_array_equal(again.predict_proba(lacking), model.predict_proba(lacking))


def test_dates_are_days_at_fit_at_predict_and_after_saving(tmp_path: Path):
    X, y, s = classes(300)
    rng = np.random.default_rng(5)
    day = pd.Series(rng.integers(0, 9000, 300))
    day += np.where(y == "yes", 3000, 0)
    dated = X.assign(since=pd.to_datetime(day, unit="D").mask(rng.random(300) < 0.1))
    numbered = X.assign(since=day.where(dated["since"].notna()).astype(float))
    model = BoostedParityClassifier(1.0, **ONE).fit(dated, y, sensitive_features=s)
    as_days = BoostedParityClassifier(1.0, **ONE).fit(numbered, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(dated), as_days.predict_proba(numbered))
    save(model, tmp_path / "model.frhsic")
    again = load(tmp_path / "model.frhsic")
    np.testing.assert_array_equal(again.predict_proba(dated), model.predict_proba(dated))
    with pytest.raises(ValueError, match="holds numbers; in the training rows it was a date"):
        again.predict(numbered)
    with pytest.raises(ValueError, match="holds dates; in the training rows it was numeric"):
        as_days.predict(dated)


def test_rows_without_s_train_the_task_and_are_counted():
    """With two thirds of S known the gap still closes; the rest of the rows still teach the task."""
    X, y, s = classes(1500)
    known = np.random.default_rng(4).random(1500) < 0.66
    with pytest.warns(UnlabelledRowsWarning, match=f"NaN in {int((~known).sum())} of 1,500 rows"):
        model = BoostedParityClassifier(100.0, **ONE).fit(X, y, sensitive_features=np.where(known, s, np.nan))
    plain = BoostedParityClassifier(0.0, **ONE).fit(X, y, sensitive_features=s)
    fresh, _, age = classes(1500, seed=9)
    gaps = [float(gdp(one.predict_proba(fresh)[:, 1], age, resamples=0)) for one in (model, plain)]
    assert gaps[0] < 0.5 * gaps[1]


def test_categories_are_split_as_lightgbm_splits_them():
    X, y, s = classes(800)
    X["job"] = X["job"].astype("category")
    model = BoostedParityClassifier(0.0, n_estimators=20, validation_fraction=None, **ONE)
    model.fit(X, y, sensitive_features=s)
    own = lightgbm.train({"objective": "binary", **PLAIN}, lightgbm.Dataset(X, y == "yes"), 20)
    np.testing.assert_allclose(model.decision_function(X), own.predict(X, raw_score=True), atol=1e-5)


def test_the_trees_are_a_plain_lightgbm_model(tmp_path: Path):
    X, y, s = classes(500)
    for model, target in ((BoostedParityClassifier(**ONE), y), (BoostedParityRegressor(**ONE), 50 + s)):
        model.fit(X, target, sensitive_features=s)
        model.booster_.save_model(tmp_path / "model.txt")
        elsewhere = lightgbm.Booster(model_file=tmp_path / "model.txt")
        expected = model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
        np.testing.assert_array_equal(elsewhere.predict(model.columns_(X)), expected)
        again = booster_from_text(booster_to_text(model.booster_))
        np.testing.assert_array_equal(again.predict(model.columns_(X)), expected)
    with pytest.raises(ValueError, match="not a LightGBM model"):
        booster_from_text("import os")


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([1, 2])])
def test_a_saved_classifier_predicts_the_same(tmp_path: Path, labels: np.ndarray):
    X, y, s = classes(300)
    y = labels[(y == "yes").astype(int)]
    model = BoostedParityClassifier(np.float64(7.0), n_jobs=1, random_state=np.random.default_rng(0))
    model.fit(X, y, sensitive_features=pd.Series(s, name="age"))
    save(model, tmp_path / "a.frhsic")
    model.save(tmp_path / "b.frhsic")
    assert (tmp_path / "a.frhsic").read_bytes() == (tmp_path / "b.frhsic").read_bytes()
    again = load(tmp_path / "a.frhsic")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.predict(X).dtype == model.predict(X).dtype
    assert again.penalty_weight == 7.0
    assert again.n_trees_ == model.n_trees_
    assert list(again.feature_names_in_) == list(X)
    assert list(again.sensitive_names_in_) == ["age"]
    assert describe(tmp_path / "a.frhsic")["estimator"] == "BoostedParityClassifier"
    refitted = clone(again).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(refitted.predict_proba(X), model.predict_proba(X))


def test_a_saved_regressor_predicts_the_same_and_a_changed_file_is_refused(tmp_path: Path):
    X, y, s = table(300)
    model = BoostedParityRegressor(**ONE).fit(X.to_numpy()[:, [1]].astype(float), y, sensitive_features=s)
    file = tmp_path / "model.frhsic"
    save(model, file)
    np.testing.assert_array_equal(load(file).predict(X[["test"]].to_numpy()), model.predict(X[["test"]].to_numpy()))
    content = file.read_bytes()
    at = content.rindex(b"leaf_value=") + len("leaf_value=")
    file.write_bytes(content[:at] + b"9" + content[at + 1 :])
    with pytest.raises(ValueError, match="checksum"):
        load(file)


def test_a_clone_takes_another_weight_and_a_grid_search_finds_it():
    X, y, s = classes(400)
    model = BoostedParityClassifier(5.0, n_estimators=20, **ONE)
    other = clone(model).set_params(penalty_weight=0.0).fit(X, y, sensitive_features=s)
    assert other.penalty_weight == 0.0
    with config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sensitive_features=True)
        pipeline = make_pipeline(FunctionTransformer(), asked)
        grid = {"boostedparityclassifier__penalty_weight": [0.0, 1e4]}
        search = GridSearchCV(pipeline, grid, cv=2, scoring="roc_auc").fit(X, y, sensitive_features=s)
    assert search.best_params_ == {"boostedparityclassifier__penalty_weight": 0.0}


@pytest.mark.usefixtures("few_trees")
def test_a_saved_model_is_audited_from_the_command_line(tmp_path: Path):
    X, y, s = classes(150)
    X, rows = X[["test", "owner"]], X.assign(age=s)
    model = BoostedParityClassifier(n_estimators=5, **ONE).fit(X, y, sensitive_features=s)
    save(model, tmp_path / "model.frhsic")
    rows.to_csv(tmp_path / "people.csv", index=False)
    asked = ["audit", str(tmp_path / "people.csv"), "-s", "age", "--model", str(tmp_path / "model.frhsic")]
    result = CliRunner().invoke(app, [*asked, "--json", "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    found = Audit.from_dict(json.loads(result.stdout))
    assert (found.subject.name, found.subject.dimensions) == ("score of model.frhsic", 1)


def test_without_attributes_there_is_a_warning_and_no_penalty():
    X, y, s = classes(300)
    with pytest.warns(MissingSensitiveFeaturesWarning, match="no sensitive_features"):
        model = BoostedParityClassifier(**ONE).fit(X, y)
    plain = BoostedParityClassifier(0.0, **ONE).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_without_attributes_and_penalty_there_is_no_warning():
    X, y, _ = classes(100)
    with warnings.catch_warnings(action="error"):
        model = BoostedParityClassifier(penalty_weight=0, **ONE).fit(X, y)
    assert not hasattr(model, "sensitive_names_in_")


def test_bands_are_taken_at_their_middle_and_said_to_be():
    X, y, s = classes(200)
    low = s // 10 * 10
    bands = pd.Series([f"{start:.0f}-{start + 10:.0f}" for start in low], name="age")
    with pytest.warns(BandedAttributeWarning, match="'age' holds bands, which are taken at their mid-points"):
        model = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=bands)
    np.testing.assert_array_equal(
        model.predict_proba(X), BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=low + 5).predict_proba(X)
    )


def test_an_array_in_place_of_a_table_with_text_is_refused():
    X, y, s = classes(100)
    model = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=s)
    with (
        warnings.catch_warnings(action="ignore"),  # of names that X has not
        pytest.raises(TypeError, match="X is an array; the training rows were a table with text, categories or dates"),
    ):
        model.predict(np.zeros((3, 4)))


def test_few_rows_are_trained_without_early_stopping():
    X, y, _ = classes(60)
    model = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=np.r_[np.zeros(59), 1.0])
    assert model.n_trees_ <= 100


def test_bad_input_is_refused_and_leaves_the_model_as_it_was():
    X, y, s = classes(200)
    model = BoostedParityClassifier(**ONE).fit(X, y, sensitive_features=s)
    before = model.predict_proba(X)
    bad: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"y": np.arange(200) % 3}, ValueError, "Only binary classification"),
        ({"y": np.zeros(200)}, ValueError, "one class"),
        ({"sensitive_features": np.full(200, np.nan)}, ValueError, "NaN in each of its 200 rows"),
        ({"sensitive_features": s[1:]}, ValueError, "lengths differ"),
        ({"sensitive_features": np.ones(200)}, ValueError, "in every row"),
        ({"y": y[1:]}, ValueError, "lengths differ"),
        ({"X": X.head(1), "y": y[:1], "sensitive_features": s[:1]}, ValueError, "at least two rows are needed"),
        ({"X": X[["test"]] * 0}, ValueError, "no column of X has two different values"),
    ]
    for change, kind, message in bad:
        with pytest.raises(kind, match=message):
            model.fit(**{"X": X, "y": y, "sensitive_features": s} | change)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    for parameters, kind in (({"penalty_weight": -1}, ValueError), ({"penalty_weight": "1"}, TypeError)):
        with pytest.raises(kind, match="penalty_weight"):
            clone(model).set_params(**parameters).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="validation_fraction"):
        clone(model).set_params(validation_fraction=1.5).fit(X, y, sensitive_features=s)


def test_without_lightgbm_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    X, y, s = classes(100)
    monkeypatch.delitem(sys.modules, "lightgbm")
    found = builtins.__import__

    def missing(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "lightgbm":
            raise ImportError("No module named 'lightgbm'")
        return found(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"frhsic\[boosting\]"):
        BoostedParityClassifier().fit(X, y, sensitive_features=s)


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    old = isinstance(estimator, BoostedParityClassifier) and parse_version(sklearn.__version__) < parse_version("1.7")
    labels = "before 1.7, this check gives the two fits different labels"
    return {"check_sample_weight_equivalence_on_dense_data": labels} if old else {}


@parametrize_with_checks(
    [BoostedParityClassifier(n_estimators=50, n_jobs=1), BoostedParityRegressor(n_estimators=50, n_jobs=1)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_an_estimator(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingSensitiveFeaturesWarning)
        check(estimator)


def test_rows_of_a_group_are_held_out_together():
    random = np.random.default_rng(0)
    persons = np.repeat(np.arange(80), 5)
    X, y, s = random.standard_normal((80, 4)), random.integers(0, 2, 80), random.uniform(size=80)
    rows = (X[persons], y[persons])
    trees = [
        BoostedParityClassifier(1.0, **ONE).fit(*rows, sensitive_features=s[persons], groups=groups).n_trees_
        for groups in (None, persons)
    ]
    assert trees[1] < 20 < trees[0]  # y is chance: trees help for persons that are known already, and for no others
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        BoostedParityClassifier(1.0, **ONE).fit(*rows, sensitive_features=s[persons], groups=persons[1:])
