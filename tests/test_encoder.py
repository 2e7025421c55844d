"""A representation that is solved: what it keeps, what heads read of S, and odd tables."""

from __future__ import annotations

import warnings
from copy import copy
from itertools import product

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

import frhsic
from cli_samples import done
from frhsic import ParityEncoder
from frhsic.estimators import UnmetLimitWarning
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.heads_gap import HeadsTest
from frhsic.estimators.inputs import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning

CURVES = make_pipeline(SplineTransformer(6), Ridge(1.0))
LINEAR = {"estimator": LogisticRegression(), "attribute_estimator": CURVES}
# a spline holds a function, which files never do
SAVED = LINEAR | {"attribute_estimator": Ridge(1.0)}


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Experience follows age, skill does not; both tell who is hired."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, size=n)
    X = pd.DataFrame(
        {"experience": age / 10 + rng.normal(size=n), "skill": rng.normal(size=n)},
    )
    hired = X["experience"] - 4 + X["skill"] + rng.logistic(size=n) > 0
    return X, hired.rename("hired"), age


def told(z: np.ndarray, s: np.ndarray) -> HeadsTest:
    cell = np.unique(z, axis=0, return_inverse=True)[1].ravel()
    return HeadsTest.from_rows(cell, SensitiveBasis.fit(s)(s), np.ones(len(s)))


@pytest.fixture(scope="module")
def linear() -> ParityEncoder:
    X, y, age = people(4000)
    return ParityEncoder(**LINEAR, prototypes=8, random_state=0).fit(X, y, sensitive_features=age)


def test_heads_of_new_rows_hardly_read_the_attribute(linear):
    X, y, age = people(20_000, seed=1)
    free = linear.at(None).transform(X)
    z = linear.transform(X)
    assert told(free, age).gap().value > 0.15
    # solving for 8 prototypes of Σ Var m = .8 leaves about 7 · .8 / 4000 of χ², m's own error more
    assert told(z, age).gap().value < 2 * np.sqrt(7 * 0.8 / 4000) / 2
    # at parity, the best score is about a function of skill alone
    assert roc_auc_score(y, z[:, 0]) > roc_auc_score(y, X["skill"]) - 0.02


def test_the_gap_of_the_frontier_is_that_of_new_rows(linear):
    X, _, age = people(20_000, seed=2)
    for position, gap in enumerate(linear.frontier_.gaps["sensitive"]):
        moved = linear.at(None)
        moved.choice_ = type(moved.choice_)(None, position, True, {}, {}, ())
        value = told(moved.transform(X), age).gap().value
        assert gap.low - 0.01 <= value <= gap.high + 0.01


def test_the_stated_upper_end_holds_for_new_rows_although_those_of_the_fit_are_balanced():
    """Rows of the fit show almost nothing at limit 0, whatever 400 rows leave."""
    new, _, new_age = people(8000, seed=99)
    kept = []
    shown = []
    for seed in range(10):
        X, y, age = people(400, seed)
        encoder = ParityEncoder(**LINEAR, prototypes=6, random_state=0)
        z = encoder.fit_transform(X, y, sensitive_features=age)
        value = told(encoder.transform(new), new_age).gap().value
        kept.append(value <= encoder.choice_.gaps["sensitive"].high)
        shown.append(told(z, age).gap().value < value)
    assert sum(kept) >= 9
    assert sum(shown) >= 9


def test_a_row_is_encoded_by_the_models_of_one_fold_as_its_content_decides(linear):
    X, _, _ = people(300, seed=4)
    z = linear.transform(X)
    only = copy(linear)
    same = []
    for models, means in zip(linear.models_, linear.attribute_models_):
        only.models_ = [models]
        only.attribute_models_ = [means]
        same.append((only.transform(X) == z).ravel())
    assert np.any(same, axis=0).all()
    assert np.mean(same, axis=1).max() < 1


def test_z_is_the_coordinates_of_a_prototype_and_nothing_else(linear):
    X, y, _ = people(500, seed=3)
    z = linear.transform(X)
    assert z.shape == (500, 1)
    assert set(z[:, 0]) <= set(linear.prototypes_["hired=True"])
    assert linear.get_feature_names_out().tolist() == ["hired=True"]
    for value in np.unique(z):
        assert y[z[:, 0] == value].mean() == approx(value, abs=0.2)


def test_a_row_has_one_z_whatever_is_beside_it(linear):
    X, _, _ = people(300, seed=4)
    z = linear.transform(X)
    order = np.random.default_rng(0).permutation(300)
    assert (linear.transform(X.iloc[order]) == z[order]).all()
    assert (linear.transform(X.iloc[:1]) == z[:1]).all()


def test_limits_choose_the_first_trade_off_that_keeps_them(linear):
    gaps = linear.frontier_.gaps["sensitive"]
    assert linear.at(None).choice_.position == 0
    assert linear.choice_.position == np.argmin([gap.value for gap in gaps])
    bound = gaps[3].high + 1e-9
    position = linear.at(float(bound)).choice_.position
    assert gaps[position].high <= bound
    assert all(gap.high > bound for gap in gaps[:position])
    half = linear.at("50%").choice_
    assert gaps[half.position].value <= gaps[0].value / 2
    with pytest.warns(UnmetLimitWarning):
        linear.at(1e-6)


@pytest.mark.parametrize("seed", [2, 5])
def test_limit_zero_never_raises_the_estimate_though_the_last_trade_off_would(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 3))
    s = rng.uniform(size=500)
    y = rng.uniform(size=500) < 1 / (1 + np.exp(-2 * X[:, 0]))
    encoder = ParityEncoder(**LINEAR, prototypes=4, random_state=0).fit(X, y, sensitive_features=s)
    gaps = [gap.value for gap in encoder.frontier_.gaps["sensitive"]]
    assert gaps[-1] > gaps[0] + 0.02
    assert encoder.choice_.gaps["sensitive"].value == min(gaps)


@pytest.mark.parametrize("seed", range(3))
def test_the_upper_end_covers_heads_that_follow_waves_which_the_functions_of_s_do_not_span(seed):
    """Twelve waves, on 20 windows of S; the worst head has values 0 and 1."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = rng.uniform(size=n)
        x = rng.normal(size=(n, 2)) * [0.5, 1.0]
        x[:, 0] += 1.5 * np.sin(24 * np.pi * s)
        return x, rng.uniform(size=n) < 1 / (1 + np.exp(-2 * x[:, 0])), s

    X, y, s = draw(3000)
    encoder = ParityEncoder(**LINEAR, prototypes=4, random_state=0).fit(X, y, sensitive_features=s)
    choice = encoder.choice_
    assert choice.resolution == approx(1 / 20)
    new, _, new_s = draw(50_000)
    law = pd.crosstab(encoder.transform(new)[:, 0], np.floor(20 * new_s), normalize=True).to_numpy()
    moved = law - np.outer(law.sum(axis=1), law.sum(axis=0))
    heads = np.array([*product((0.0, 1.0), repeat=len(law))])
    worst = np.abs(heads @ moved).sum(axis=1).max()
    assert worst > 0.06  # the functions of S alone would give .04 to .05
    assert choice.gaps["sensitive"].high >= worst


def test_confidence_none_compares_the_estimate():
    X, y, age = people(1000)
    encoder = ParityEncoder(**LINEAR, prototypes=4, confidence=None, limit=0.1, random_state=0)
    choice = encoder.fit(X, y, sensitive_features=age).choice_
    assert choice.gaps["sensitive"].value <= 0.1


def test_fitted_rows_get_the_z_of_encoders_without_them():
    """A tree learns its rows by heart, y is a coin: Z of the rows does not tell it."""
    X, _, age = people(600)
    y = np.random.default_rng(99).uniform(size=600) < 0.5
    encoder = ParityEncoder(
        DecisionTreeClassifier(), attribute_estimator=CURVES, prototypes=4, limit=None
    )
    own = encoder.fit_transform(X, y, sensitive_features=age)
    # four of five rows are served by a tree that has learned them
    assert roc_auc_score(y, encoder.transform(X)[:, 0]) > 0.85
    assert roc_auc_score(y, own[:, 0]) < 0.6


def test_attributes_may_be_used_and_then_more_is_kept():
    X, y, age = people(3000)
    without = ParityEncoder(**LINEAR, prototypes=4, cv=2, random_state=0)
    with_age = ParityEncoder(**LINEAR, prototypes=4, cv=2, uses_sensitive=True, random_state=0)
    without.fit(X, y, sensitive_features=age)
    with_age.fit(X, y, sensitive_features=age)
    new, hired, new_age = people(20_000, seed=1)
    z = with_age.transform(new, sensitive_features=new_age)
    # solving for 4 prototypes and 8 functions leaves about 3 · 8 / 3000 of χ²
    assert told(z, new_age).gap().value < 1.5 * np.sqrt(24 / 3000) / 2
    assert roc_auc_score(hired, z[:, 0]) > roc_auc_score(hired, without.transform(new)[:, 0]) + 0.01
    with pytest.raises(ValueError, match="pass sensitive_features"):
        with_age.transform(new)


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_without_a_target_the_error_says_when_to_use_which(method):
    X, y, age = people(50)
    encoder = ParityEncoder(**LINEAR)
    with pytest.raises(ValueError, match=r"y is None.*Z should predict.*use ParityCoupling"):
        getattr(encoder, method)(X, sensitive_features=age)
    with pytest.raises(ValueError, match="y has no columns"):
        getattr(encoder, method)(X, y.to_frame()[[]], sensitive_features=age)
    assert get_tags(encoder).target_tags.required


def test_several_targets_of_both_kinds():
    X, y, age = people(600)
    rng = np.random.default_rng(0)
    wage = 10 * X["skill"] + rng.normal(size=600)
    grade = np.digitize(X["skill"], [-0.5, 0.5])
    targets = pd.DataFrame({"hired": y, "wage": wage, "grade": grade})
    encoder = ParityEncoder(prototypes=12, random_state=0, cv=2)
    encoder.fit(X, targets, sensitive_features=age)
    new = people(4000, seed=1)[0]
    z = encoder.set_output(transform="pandas").transform(new)
    assert list(z) == ["hired=True", "wage", "grade=0", "grade=1", "grade=2"]
    assert np.corrcoef(z["wage"], new["skill"])[0, 1] > 0.85
    assert z[["grade=0", "grade=1", "grade=2"]].sum(axis=1).to_numpy() == approx(1)
    assert {"hired_auc", "wage_squared_error", "grade_log_loss"} <= set(
        encoder.frontier_.performance
    )


def test_two_attributes_are_both_hidden():
    X, y, age = people(3000)
    rng = np.random.default_rng(1)
    income = X["skill"].to_numpy() + rng.normal(size=3000)
    attributes = pd.DataFrame({"age": age, "income": income})
    encoder = ParityEncoder(**LINEAR, prototypes=6, cv=2, random_state=0)
    encoder.fit(X, y, sensitive_features=attributes)
    first = encoder.frontier_.gaps
    assert first["age"][0].value > 0.15
    assert first["income"][0].value > 0.15
    new, _, new_age = people(20_000, seed=1)
    z = encoder.transform(new)
    new_income = new["skill"].to_numpy() + rng.normal(size=20_000)
    free = encoder.at(None).transform(new)
    for attribute in (new_age, new_income):
        assert told(z, attribute).gap().value < told(free, attribute).gap().value / 2.5


def test_repeated_rows_share_a_prototype_and_hide_the_attribute():
    rng = np.random.default_rng(0)

    def table(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = rng.normal(size=n)
        x = np.column_stack([rng.poisson(np.exp(s / 2)).clip(0, 4), rng.integers(5, size=n)])
        return x.astype(float), rng.uniform(size=n) < (x[:, 0] + x[:, 1]) / 9, s

    X, y, s = table(4000)
    encoder = ParityEncoder(**LINEAR, prototypes=4, random_state=0).fit(X, y, sensitive_features=s)
    assert len(encoder.repeated_) == len(np.unique(X, axis=0))
    new, _, new_s = table(20_000)
    z = encoder.transform(new)
    frame = pd.DataFrame(new).assign(z=z[:, 0])
    assert (frame.groupby([0, 1])["z"].nunique() == 1).all()
    nearest = encoder.solution_.path[-1]
    targets, means = zip(*encoder._predict_folds(new, None, new))
    choice = nearest.nearest(np.mean(targets, axis=0), np.mean(means, axis=0))
    assert told(z, new_s).gap().value < told(choice[:, None], new_s).gap().value


def test_missing_attributes_take_part_in_the_models_of_y_alone():
    X, y, age = people(1000)
    some = np.where(np.arange(1000) % 4 == 0, np.nan, age)
    encoder = ParityEncoder(**LINEAR, prototypes=4, random_state=0)
    with pytest.warns(UnlabelledRowsWarning, match="250 of 1,000"):
        encoder.fit(X, y, sensitive_features=some)
    assert encoder.frontier_.rows == 750
    assert encoder.transform(X).shape == (1000, 1)


def test_without_attributes_there_is_no_constraint(tmp_path):
    X, y, _ = people(300)
    encoder = ParityEncoder(**LINEAR, prototypes=4, random_state=0)
    with pytest.warns(MissingSensitiveFeaturesWarning):
        encoder.fit(X, y)
    assert encoder.frontier_.gaps == {}
    assert str(encoder.choice_) == "No gap is limited."
    assert roc_auc_score(y, encoder.transform(X)[:, 0]) > 0.7
    frhsic.save(encoder, tmp_path / "model")
    again = frhsic.load(tmp_path / "model")
    assert str(again.choice_) == "No gap is limited."
    assert np.array_equal(again.transform(X), encoder.transform(X))


def test_models_that_take_no_weights_are_fitted_where_none_are_given():
    X, y, age = people(300)
    encoder = ParityEncoder(
        KNeighborsClassifier(), attribute_estimator=KNeighborsRegressor(), prototypes=4, cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmetLimitWarning)
        assert encoder.fit(X, y, sensitive_features=age).transform(X).shape == (300, 1)


def test_a_frozen_model_is_used_as_it_is():
    X, y, age = people(1000)
    model = LogisticRegression().fit(X.iloc[:400], y.iloc[:400])
    encoder = ParityEncoder(
        FrozenEstimator(model), attribute_estimator=LinearRegression(), prototypes=4, limit=None
    )
    rest = X.iloc[400:].reset_index(drop=True)
    z = encoder.fit_transform(
        rest, y.iloc[400:].reset_index(drop=True), sensitive_features=age[400:]
    )
    p = model.predict_proba(rest)[:, 1]
    assert np.corrcoef(z[:, 0], p)[0, 1] > 0.9


def test_the_default_works_on_three_hundred_messy_rows():
    X, y, age = people(300)
    X = X.assign(
        job=np.where(np.arange(300) % 7 == 0, None, np.where(np.arange(300) % 3 == 0, "cook", "b")),
        skill=X["skill"].mask(np.arange(300) % 5 == 0),
        hired_on=pd.date_range("2020-01-01", periods=300),
    )
    labels = y.map({True: "yes", False: "no"})
    encoder = ParityEncoder(random_state=0).fit(X, labels, sensitive_features=age)
    new = X.assign(job="unseen").iloc[:10]
    assert encoder.transform(new).shape == (10, 1)
    assert len(encoder.prototypes_) <= 8


def test_a_saved_encoder_gives_the_same_z(tmp_path):
    X, y, age = people(300)
    encoder = ParityEncoder(**SAVED, prototypes=4, cv=2, random_state=0)
    encoder.fit(X, y, sensitive_features=age)
    frhsic.save(encoder, tmp_path / "encoder.frhsic")
    again = frhsic.load(tmp_path / "encoder.frhsic")
    X, _, _ = people(200, seed=9)
    assert (again.transform(X) == encoder.transform(X)).all()
    assert (again.at("50%").transform(X) == encoder.at("50%").transform(X)).all()
    pd.testing.assert_frame_equal(again.prototypes_, encoder.prototypes_)


def test_a_saved_encoder_keeps_the_kind_of_its_output(tmp_path):
    X, y, age = people(300)
    encoder = ParityEncoder(random_state=0, prototypes=4, cv=2).fit(X, y, sensitive_features=age)
    encoder.set_output(transform="polars")
    frhsic.save(encoder, tmp_path / "encoder.frhsic")
    again = frhsic.load(tmp_path / "encoder.frhsic")
    assert again.transform(X).equals(encoder.transform(X))


@pytest.mark.parametrize("uses_sensitive", [False, True])
def test_a_saved_encoder_transforms_on_the_command_line(tmp_path, monkeypatch, uses_sensitive):
    monkeypatch.chdir(tmp_path)
    X, y, age = people(300)
    attributes = pd.DataFrame({"age": age})
    encoder = ParityEncoder(
        **SAVED, prototypes=4, cv=2, uses_sensitive=uses_sensitive, random_state=0
    ).fit(X, y, sensitive_features=attributes)
    frhsic.save(encoder, "encoder.frhsic")
    X.assign(age=age).to_csv("people.csv", index=False)
    done(["predict", "encoder.frhsic", "people.csv", "--out", "z.csv"])
    known = {"sensitive_features": attributes} if uses_sensitive else {}
    written = pd.read_csv("z.csv")
    assert list(written) == ["hired=True"]
    assert written.to_numpy() == approx(encoder.transform(X, **known))
