"""ParityClassifier and ParityRegressor: what is stated is what is served, for every aim, condition
and table.
"""

from __future__ import annotations

import json
import warnings
from copy import copy
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from lightgbm import LGBMClassifier
from pytest import approx
from scipy.special import expit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    PredefinedSplit,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import SplineTransformer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from frhsic import (
    ParityClassifier,
    ParityEncoder,
    ParityRegressor,
)
from frhsic.estimators import (
    IndistinctGapWarning,
    LeakingEstimatorWarning,
    MissingSensitiveFeaturesWarning,
    UnlabelledRowsWarning,
    UnmetLimitWarning,
)
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.frontier import Frontier, Gap, measure_path
from frhsic.parity import gdp, rank_gap

MEANS = make_pipeline(SplineTransformer(4), Ridge(1e-3))
FRESH = 5_000
ERROR = 0.01
"""Two standard errors of a gap on the fresh rows, about 0.3 / √5,000 each."""


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and an age that the first of three columns follows."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, size=n)
    X = np.column_stack(
        [(age - 20) / 50 + 0.2 * rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)]
    )
    y = 5 * X[:, 0] - 2.5 + X[:, 1] + 0.7 * rng.logistic(size=n) > 0
    return X, y.astype(int), age


SETTINGS = {"attribute_estimator": MEANS, "cv": 2, "random_state": 0}


def classifier(**options: Any) -> ParityClassifier:
    return ParityClassifier(**{"estimator": LogisticRegression(), **SETTINGS, **options})


@pytest.fixture(scope="module")
def fresh() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return table(FRESH, 1)


@pytest.fixture(scope="module")
def half() -> ParityClassifier:
    X, y, age = table(600, 0)
    return classifier().fit(X, y, sensitive_features=age)


def served_gap(model: Any, rows: tuple[np.ndarray, ...], where: np.ndarray | None = None) -> float:
    X, _, age = rows
    options = {"sensitive_features": age} if model.uses_sensitive else {}
    if model.aim == "decision":
        return float(gdp(model.predict(X, **options).astype(float), age, where=where, resamples=0))
    scores = model.predict_proba(X, **options)[:, 1]
    return float((rank_gap if model.aim == "rank" else gdp)(scores, age, where=where, resamples=0))


def assert_stated_is_served(model: Any, served: float, name: str = "sensitive") -> None:
    gap = model.choice_.gaps[name]
    assert model.choice_.met
    assert gap.low - ERROR <= served <= gap.high + ERROR
    assert gap.low <= gap.value <= gap.high


# What is measured is what is served


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_stated_and_served_gap_agree_for_every_aim(aim, half, fresh):
    X, y, age = table(600, 0)
    model = half if aim == "score" else classifier(aim=aim, cv=2).fit(X, y, sensitive_features=age)
    assert_stated_is_served(model, served_gap(model, fresh))
    assert served_gap(model, fresh) < 0.8 * served_gap(model.at(None), fresh)


@pytest.mark.parametrize("condition", ["positive", "both"])
def test_stated_and_served_gap_agree_under_conditions(condition, fresh):
    X, y, age = table(600, 0)
    model = classifier(condition=condition).fit(X, y, sensitive_features=age)
    rows = [fresh[1] == 1, fresh[1] == 0][: 1 + (condition == "both")]
    served = [served_gap(model, fresh, where=where) for where in rows]
    assert_stated_is_served(model, max(served))
    free = [served_gap(model.at(None), fresh, where=where) for where in rows]
    assert max(served) < max(free)


def test_stated_and_served_gap_agree_where_predictions_use_s(fresh):
    X, y, age = table(600, 0)
    model = classifier(uses_sensitive=True).fit(X, y, sensitive_features=age)
    assert_stated_is_served(model, served_gap(model, fresh))
    with pytest.raises(ValueError, match="pass sensitive_features"):
        model.predict(X)


def test_the_stated_gap_is_not_too_low_because_folds_are_small(fresh):
    """The mean over folds of 120 rows alone is far below the truth, since few rows cannot tell the
    signs.
    """

    def score(X: np.ndarray) -> np.ndarray:
        return expit(1.5 * (X[:, 0] - 0.5) + 2 * X[:, 1])

    values = []
    for seed in range(3):
        X, _, age = table(600, 10 + seed)
        y = (np.random.default_rng(20 + seed).random(600) < score(X)).astype(int)
        model = classifier(estimator=score, cv=5, limit=None).fit(X, y, sensitive_features=age)
        values.append(model.choice_.unconstrained["sensitive"].value)
    truth = float(gdp(score(fresh[0]), fresh[2], resamples=0))
    assert np.mean(values) == approx(truth, rel=0.25)


def test_with_few_positives_the_gap_among_them_is_that_of_all_folds_together():
    """About 15 positives in each of five folds; their own gaps would be mostly noise."""
    rng = np.random.default_rng(1)
    s = rng.uniform(size=600)
    X = np.column_stack([s + 0.3 * rng.normal(size=600), rng.normal(size=600)])
    y = rng.uniform(size=600) < expit(-2.6 + 0.8 * X[:, 0] + X[:, 1])
    assert 60 < y.sum() < 90
    model = classifier(condition="positive", limit=None, cv=5)
    rows, eta, means = model._fit(X, y, s, None, None)
    for place in (0, -1):
        scores = model.solution_.out_of_fold(place, rows.fold, eta, means)
        expected = gdp(scores, s, where=y, resamples=0)
        gap = model.frontier_.gaps["sensitive"][place]
        assert gap.value == approx(expected.value, abs=1e-12)
        assert gap.low <= gap.value < 0.8 * gap.high


def test_an_interval_means_the_same_for_classes_as_for_one_score():
    rng = np.random.default_rng(2)
    s = rng.uniform(size=(300, 1))
    rows = LabelledRows(
        X=None,
        codes=np.zeros((300, 0)),
        s=s,
        names=("age",),
        weights=None,
        groups=None,
        fold=np.arange(300) % 2,
        seed=0,
        y=np.zeros(300),
        labels=np.zeros(300),
        numeric=True,
    )
    constraints = [Constraint.fit(rows, 0, "all")]
    # of one of these gaps the interval has 0 in it, and a test by 49 resamples rejects 0
    path = np.linspace(0, 0.3, 8) * s + rng.uniform(size=(300, 8))
    one, _ = measure_path("score", path, rows, constraints, 0.95)
    classes, _ = measure_path("score", path[:, :, None], rows, constraints, 0.95)
    assert [astuple(gap) for gap in classes["age"]] == [approx(astuple(gap)) for gap in one["age"]]


def test_two_attributes_keep_a_limit_each(fresh):
    rng = np.random.default_rng(0)
    X, y, age = table(600, 0)
    frame = pd.DataFrame({"age": age, "income": np.exp(X[:, 1] + rng.normal(size=600))})
    model = classifier(limit={"age": "50%", "income": 0.06}).fit(X, y, sensitive_features=frame)
    assert model.choice_.met
    assert model.choice_.gaps["income"].value <= 0.06 + 1e-9
    assert model.choice_.gaps["age"].value <= 0.5 * model.choice_.unconstrained["age"].value + 1e-9
    assert_stated_is_served(model, served_gap(model, fresh), "age")
    one = classifier(limit={"age": "50%"}).fit(X, y, sensitive_features=frame)
    assert (
        one.choice_.gaps["income"].value > 0.5 * one.choice_.unconstrained["income"].value
    )  # left alone


def test_rows_without_s_train_the_model_of_y(fresh):
    X, y, age = table(600, 0)
    age = np.where(np.random.default_rng(8).random(600) < 0.4, np.nan, age)
    with pytest.warns(UnlabelledRowsWarning, match=f"{np.isnan(age).sum()} of 600 rows lack"):
        model = classifier().fit(X, y, sensitive_features=age)
    assert_stated_is_served(model, served_gap(model, fresh))
    free, alone = (
        model.at(None).predict_proba(X)[:, 1],
        LogisticRegression().fit(X, y).predict_proba(X)[:, 1],
    )
    assert free == approx(alone, abs=0.1)  # the coefficients of all rows, recalibrated


def test_rows_of_a_person_do_not_leak():
    """Labels are noise: a tree knows them only from another row of the same person."""
    rng = np.random.default_rng(0)
    X, y, age = rng.normal(size=(200, 3)), rng.integers(2, size=200), rng.uniform(size=200)
    person = np.repeat(np.arange(200), 3)
    model = classifier(estimator=DecisionTreeClassifier(max_leaf_nodes=200), limit=None)
    apart = clone(model).fit(X[person], y[person], sensitive_features=age[person], groups=person)
    mixed = clone(model).fit(X[person], y[person], sensitive_features=age[person])
    assert abs(apart.frontier_.performance["auc"][0] - 0.5) < 4 * 0.29 * 2 / np.sqrt(
        200
    )  # sd of a rank is 0.29
    assert mixed.frontier_.performance["auc"][0] > 0.8


def pairs(fold: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(fold.max() + 1)]


@pytest.mark.parametrize("cv", [PredefinedSplit, pairs])
def test_the_models_of_a_fold_are_fitted_on_all_rows_outside_of_it(cv):
    X, y, age = table(90, 0)
    fold = np.arange(90) // 30
    model = ParityRegressor(LinearRegression(), **{**SETTINGS, "cv": cv(fold), "limit": None})
    model.fit(X, X @ [1.0, 2.0, 3.0] + y, sensitive_features=age)
    for j, (own,) in enumerate(model.models_):
        rest = fold != j
        expected = LinearRegression().fit(X[rest], X[rest] @ [1.0, 2.0, 3.0] + y[rest])
        assert own.coef_ == approx(expected.coef_)
    assert len(model.models_) == len(model.attribute_models_) == 3


def test_a_splitter_gets_the_groups_and_the_table():
    X, y, age = table(90, 0)
    person = np.arange(90) // 3
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(year=np.arange(90) % 3)

    class Years(LeaveOneGroupOut):
        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            return super().split(X, y, X["year"])

    by_person = classifier(cv=GroupKFold(3), limit=None).fit(
        X, y, sensitive_features=age, groups=person
    )
    expected = classifier(cv=list(GroupKFold(3).split(X, y, person)), limit=None)
    expected.fit(X, y, sensitive_features=age, groups=person)
    np.testing.assert_array_equal(by_person.predict_proba(X), expected.predict_proba(X))
    by_year = classifier(cv=Years(), limit=None).fit(frame, y, sensitive_features=age)
    expected = classifier(cv=pairs(np.arange(90) % 3), limit=None).fit(
        frame, y, sensitive_features=age
    )
    np.testing.assert_array_equal(by_year.predict_proba(frame), expected.predict_proba(frame))


def test_weights_are_repeated_rows_in_the_regressions_of_given_folds():
    X, y, age = table(120, 0)
    age = np.round(age)
    fold = np.arange(120) % 3
    counts = np.random.default_rng(0).integers(0, 4, size=120)
    counts[age == age[0]] = 0  # a value of S without weight
    again = np.repeat(np.arange(120), counts)
    model = ParityRegressor(LinearRegression(), attribute_estimator=LinearRegression(), limit=None)
    weighted = clone(model).set_params(cv=PredefinedSplit(fold))
    weighted.fit(X, y, sensitive_features=age, sample_weight=counts)
    repeated = model.set_params(cv=PredefinedSplit(fold[again]))
    repeated.fit(X[again], y[again], sensitive_features=age[again])
    for kind in ("models_", "attribute_models_"):
        for one, other in zip(getattr(weighted, kind), getattr(repeated, kind), strict=True):
            assert np.ravel(one)[0].coef_ == approx(np.ravel(other)[0].coef_)
    assert weighted.predict(X) == approx(repeated.predict(X), abs=1e-3)


def test_weights_say_whose_gap_it_is(fresh):
    """Rows of another law, with hardly any weight, do not count; equal weights change nothing."""
    X, y, age = table(600, 0)
    other = np.random.default_rng(5).permutation(600)
    both = np.vstack([X, X]), np.r_[y, y], np.r_[age, age[other]]
    weights = np.repeat([1.0, 1e-6], 600)
    model = classifier().fit(both[0], both[1], sensitive_features=both[2], sample_weight=weights)
    assert_stated_is_served(model, served_gap(model, fresh))
    plain = classifier().fit(*both[:2], sensitive_features=both[2])
    weighted, unweighted = (
        each.choice_.unconstrained["sensitive"].value for each in (model, plain)
    )
    assert unweighted < 0.8 * weighted


def test_several_classes(fresh):
    X, y, age = table(600, 0)
    labels = np.array(["low", "middle", "high"])[y + (X[:, 1] > 0.5)]
    model = classifier().fit(X, labels, sensitive_features=age)
    p = model.predict_proba(fresh[0])
    assert p.sum(axis=1) == approx(1)
    assert set(model.predict(fresh[0])) <= set(labels)
    assert_stated_is_served(model, float(gdp(p, fresh[2], resamples=0)))
    with pytest.raises(ValueError, match="3 classes"):
        classifier(aim="decision").fit(X, labels, sensitive_features=age)


def test_numbers(fresh):
    X, _, age = table(600, 0)
    y = 1000 * (3 * X[:, 0] + X[:, 1] + np.random.default_rng(0).normal(size=600))
    model = ParityRegressor(LinearRegression(), limit=400.0, **SETTINGS)
    model.fit(X, y, sensitive_features=age)
    served = float(gdp(model.predict(fresh[0]), fresh[2], resamples=0))
    stated = model.choice_.gaps["sensitive"]
    assert model.choice_.met
    assert stated.low - 3000 * ERROR <= served <= stated.high + 3000 * ERROR


# Models of y that are given


def test_a_frozen_model_and_a_function_stay_as_they_are(fresh):
    X, y, age = table(600, 0)
    own = LogisticRegression().fit(*table(600, 7)[:2])
    frozen = classifier(estimator=FrozenEstimator(own)).fit(X, y, sensitive_features=age)
    function = classifier(estimator=lambda X: own.predict_proba(X)[:, 1]).fit(
        X, y, sensitive_features=age
    )
    assert frozen.predict_proba(fresh[0]) == approx(function.predict_proba(fresh[0]))
    assert_stated_is_served(frozen, served_gap(frozen, fresh))
    order = np.argsort(own.predict_proba(fresh[0])[:, 1])
    assert np.all(
        np.diff(frozen.at(None).predict_proba(fresh[0])[order, 1]) >= -1e-12
    )  # only recalibrated
    assert own.coef_ == approx(LogisticRegression().fit(*table(600, 7)[:2]).coef_)


class CopiesItsList(LogisticRegression):
    """A model that scikit-learn cannot clone, as CatBoost with a list of categories."""

    def __init__(self, columns=None):
        super().__init__()
        self.columns = columns

    def get_params(self, deep=True):
        return {"columns": list(self.columns)}


def test_a_frozen_model_need_not_be_cloned():
    X, y, age = table(300, 0)
    own = CopiesItsList([0]).fit(*table(300, 3)[:2])
    model = classifier(estimator=FrozenEstimator(own)).fit(X, y, sensitive_features=age)
    plain = LogisticRegression().fit(*table(300, 3)[:2])
    expected = classifier(estimator=FrozenEstimator(plain)).fit(X, y, sensitive_features=age)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))


def test_a_frozen_model_that_knows_the_rows_is_reported():
    X, y, age = table(300, 0)
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0)
    with pytest.warns(LeakingEstimatorWarning):
        classifier(estimator=FrozenEstimator(tree.fit(X, y)), limit=None).fit(
            X, y, sensitive_features=age
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakingEstimatorWarning)
        other = table(300, 3)
        classifier(estimator=FrozenEstimator(tree.fit(*other[:2])), limit=None).fit(
            X, y, sensitive_features=age
        )


def test_classes_that_x_tells_without_error_are_fitted_under_each_condition():
    """The recalibrated model is then nearly certain, and all rows of a class have one score."""
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, size=400).round()
    x = age + 2 * rng.normal(size=400)
    X = np.column_stack([x, rng.normal(size=400)])
    model = classifier(condition="both", limit="50%")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, x > 40, sensitive_features=age)
    chances = model.predict_proba(X)
    assert chances.min() >= 1e-6
    assert ((chances[:, 1] > 0.5) == (x > 40)).mean() > 0.9


# Limits


def test_limits_as_numbers_shares_zero_and_none(half):
    gap = half.choice_.unconstrained["sensitive"].value
    assert half.at(None).choice_.position == 0
    # a quarter of the way between two solved trade-offs is a few hundredths of the gap
    assert 0.46 * gap < half.at("50%").choice_.gaps["sensitive"].value <= 0.5 * gap
    choice = half.at(0.6 * gap).choice_
    assert 0.55 * gap < choice.gaps["sensitive"].high <= 0.6 * gap
    # measured, and not interpolated
    assert choice.gaps["sensitive"] == half.frontier_.gaps["sensitive"][choice.position]
    by_estimate = copy(half).set_params(confidence=None)
    assert 0.56 * gap < by_estimate.at(0.6 * gap).choice_.gaps["sensitive"].value <= 0.6 * gap
    highest = half.choice_.unconstrained["sensitive"].high
    assert half.at(highest + 0.01).choice_.position == 0  # nothing to do
    least = min(each.value for each in half.frontier_.gaps["sensitive"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert half.at(0).choice_.gaps["sensitive"].value == approx(least)
        assert half.at(0).choice_.met
    with pytest.warns(UnmetLimitWarning):
        assert not half.at(1e-9).choice_.met
    for limit, error in (
        (-0.1, ValueError),
        (0.9, ValueError),
        ("110%", ValueError),
        ("rank_gap <= 0.1", ValueError),
        ("half", ValueError),
        (True, TypeError),
    ):
        with pytest.raises(error):
            half.at(limit)
    with pytest.raises(ValueError, match="the attributes are"):
        half.at({"income": 0.1})


def test_a_number_that_no_upper_end_keeps_is_probably_kept_and_says_how_many_rows_settle_it(half):
    """The width shrinks as 1 / √n: with four times the rows, half of it reaches the limit."""
    gaps = half.frontier_.gaps["sensitive"]
    lowest = min(gap.high for gap in gaps)
    closest = min(gaps, key=lambda gap: gap.high)
    limit = (closest.value + lowest) / 2
    with pytest.warns(UnmetLimitWarning, match="probably met, but not certainly; about") as caught:
        choice = half.at(limit).choice_
    assert not choice.met
    assert choice.gaps["sensitive"] == closest
    assert choice.rows_needed == approx(4 * 600, abs=1)
    assert "about 2,400 rows in total would settle it" in str(caught[0].message)
    with pytest.warns(UnmetLimitWarning, match="is not met: this is the closest"):
        assert half.at(1e-9).choice_.rows_needed is None


def frontier_of(**gaps: list[float]) -> Frontier:
    """Trade-offs with such gaps along each attribute, known exactly."""
    known = {name: tuple(Gap(v, v, v) for v in values) for name, values in gaps.items()}
    return Frontier("score", "gdp", {}, known, dict.fromkeys(gaps, 0.0), 0.95, 0.5, 100)


def test_zero_is_kept_where_the_largest_of_several_gaps_is_least():
    """The gaps, as shares of the first, are (.5, .3, .2) and (.25, .3, .5): the second is least."""
    frontier = frontier_of(age=[0.4, 0.2, 0.12, 0.08], hours=[0.2, 0.05, 0.06, 0.1])
    choice = frontier.choose(0, True)
    assert choice.met
    assert choice.position == 2
    assert frontier.choose({"age": 0}, True).position == 3
    assert frontier.choose({"hours": 0}, True).position == 1
    assert not frontier.choose({"age": 0, "hours": 0.07}, True).met


def test_of_two_conditions_the_larger_value_and_ends_are_stated():
    """One gap is larger, the other has the higher upper end."""
    assert Gap(0.3, 0.2, 0.4).maximum(Gap(0.2, 0.1, 0.5)) == Gap(0.3, 0.2, 0.5)


def test_a_share_of_a_gap_that_is_not_there_constrains_nothing():
    X, y, _ = table(400, 0)
    s = np.random.default_rng(9).uniform(size=400)
    with pytest.warns(IndistinctGapWarning):
        model = classifier().fit(X, y, sensitive_features=s)
    assert model.choice_.position == 0
    assert model.choice_.indistinct == ("sensitive",)


def test_moving_refits_nothing_and_is_the_fit_at_that_limit(half, fresh):
    X, y, age = table(600, 0)
    before, moved = half.predict_proba(fresh[0]), half.at("30%")
    assert moved.models_ is half.models_
    assert moved.limit == "30%"
    again = classifier(limit="30%").fit(X, y, sensitive_features=age)
    assert moved.predict_proba(fresh[0]) == approx(again.predict_proba(fresh[0]), abs=1e-9)
    assert half.predict_proba(fresh[0]) == approx(before)  # the model itself stays


def test_the_frontier_costs_more_where_the_gap_is_smaller(half):
    frame = half.frontier_.to_frame()
    assert frame["gap_sensitive"].iloc[-1] < 0.5 * frame["gap_sensitive"].iloc[0]
    assert frame["log_loss"].iloc[-1] > frame["log_loss"].iloc[0]
    assert half.frontier_.plot().get_ylabel() == "log loss"


def test_nearly_collinear_models_of_s_do_not_lose_to_a_constant(fresh):
    """Eight linear functions of three columns: their coefficients would reach 100 without a
    ridge, and the log loss 0.74.
    """
    X, y, age = table(1500, 0)
    settings = {"attribute_estimator": Ridge(), "confidence": None, "limit": "10%"}
    model = classifier(**settings).fit(X, y, sensitive_features=age)
    assert np.abs(model.solution_.parameters).max() < 10
    constant = log_loss(fresh[1], np.full(FRESH, y.mean()))
    assert log_loss(fresh[1], model.predict_proba(fresh[0])) < constant - 0.02
    assert model.frontier_.performance["log_loss"].max() < constant
    assert served_gap(model, fresh) == approx(model.choice_.gaps["sensitive"].value, abs=ERROR)


def test_predict_uses_the_stored_threshold(fresh):
    """Where one row in ten is positive, decisions are made for balanced accuracy at the base
    rate.
    """
    X, y, age = table(600, 0)
    y = y * (np.random.default_rng(8).random(600) < 0.2)
    model = classifier(aim="decision", limit=None).fit(X, y, sensitive_features=age)
    assert model.threshold_ == approx(y.mean())
    decisions = model.predict(fresh[0])
    assert np.array_equal(decisions == 1, model.predict_proba(fresh[0])[:, 1] > model.threshold_)
    assert 0.3 < decisions.mean() < 0.7


# scikit-learn


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Numbers with holes, text, categories, dates and booleans."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 70, size=n)
    frame = pd.DataFrame(
        {
            "years": np.where(rng.random(n) < 0.1, np.nan, age - 20 + 5 * rng.normal(size=n)),
            "job": rng.choice(["clerk", "cook", "nurse"], size=n),
            "size": pd.Categorical(rng.choice(["s", "m"], size=n)),
            "since": (
                pd.Timestamp("2000-01-01")
                + pd.to_timedelta(rng.integers(0, 5000, size=n), unit="D")
            ),
            "owner": rng.random(n) < 0.5,
        }
    )
    frame.loc[::17, "job"] = None
    y = np.where(age + 10 * (frame["job"] == "nurse") + 8 * rng.normal(size=n) > 48, "yes", "no")
    return frame, y, pd.Series(age, name="age")


def test_tables_with_text_categories_dates_and_holes_come_as_they_are():
    X, y, age = people(400, 0)
    model = ParityClassifier(cv=2, n_jobs=1, random_state=0).fit(X, y, sensitive_features=age)
    assert list(model.feature_names_in_) == list(X.columns)
    assert list(model.choice_.gaps) == ["age"]
    new, labels, _ = people(300, 1)
    new.loc[:9, "job"] = "pilot"  # which the fitted rows do not have
    assert np.mean(model.at(None).predict(new) == labels) > 0.7
    assert model.predict_proba(new).shape == (300, 2)
    assert set(model.predict(new)) == {"no", "yes"}


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (pl.from_pandas, classifier(limit=None)),
        (pd.DataFrame, ParityEncoder(prototypes=4, cv=2)),
    ],
)
def test_columns_that_the_model_does_not_use_are_ignored(kind, model):
    X, y, age = table(200, 0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = clone(model).set_params(random_state=0).fit(kind(frame), y, sensitive_features=age)
    served = getattr(model, "predict_proba", None) or model.transform
    more = frame.assign(age=age)[["age", "a", "b", "c"]]
    np.testing.assert_array_equal(served(kind(more)), served(kind(frame)))
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        served(kind(more.drop(columns="b")))
    in_another_order = more[["b", "a", "c", "age"]]
    np.testing.assert_array_equal(served(kind(in_another_order)), served(kind(frame)))


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_names_of_columns_stand_for_the_columns_which_are_no_features_then(kind):
    X, y, age = table(200, 0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    whole = frame.assign(age=age, home=np.arange(200) // 2)
    expected = classifier().fit(frame, y, sensitive_features=whole["age"], groups=whole["home"])
    named = classifier().fit(kind(whole), y, sensitive_features=["age"], groups="home")
    assert [*named.feature_names_in_] == ["a", "b", "c"]
    assert [*named.sensitive_names_in_] == ["age"]
    np.testing.assert_array_equal(named.predict_proba(kind(whole)), expected.predict_proba(frame))
    known = classifier(uses_sensitive=True).fit(kind(whole), y, sensitive_features="age")
    np.testing.assert_array_equal(
        known.predict(kind(whole), sensitive_features="age"),
        known.predict(kind(whole), sensitive_features=age),
    )


def test_rows_of_a_json_request_are_predicted_as_a_frame():
    X, y, age = table(200, 0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = classifier().fit(frame, y, sensitive_features=age)
    rows = json.loads(frame.to_json(orient="records", double_precision=15))
    np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(frame))
    with pytest.raises(TypeError, match=r"a dictionary; pass a list of rows, such as \[row\]"):
        model.predict(rows[0])


def test_labels_of_pandas_own_integers_are_predicted_as_integers():
    X, y, age = table(200, 0)
    model = classifier().fit(X, pd.Series(y, dtype="Int64"), sensitive_features=age)
    assert model.predict(X).dtype == np.int64


@pytest.mark.parametrize(
    "wrap", [FrozenEstimator, lambda model: FrozenEstimator(Pipeline([("m", model)]))]
)
def test_names_of_columns_are_compared_as_a_frozen_lightgbm_writes_them(wrap):
    X, y, age = table(200, 0)
    frame = pd.DataFrame(X, columns=["credit amount", "b", "c"])
    booster = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame[:100], y[:100])
    rows = frame[100:], y[100:], age[100:]
    own = classifier(estimator=wrap(booster), limit=None)
    named = rows[0].set_axis(["credit_amount", "b", "c"], axis=1)
    expected = own.fit(named, rows[1], sensitive_features=rows[2]).predict_proba(named)
    own.fit(rows[0], rows[1], sensitive_features=rows[2])
    assert np.array_equal(own.predict_proba(rows[0]), expected)
    # LightGBM would take the first column for the last
    own.fit(rows[0].iloc[:, ::-1], rows[1], sensitive_features=rows[2])
    assert np.allclose(own.predict_proba(rows[0]), expected)
    with pytest.raises(ValueError, match="X lacks 'credit_amount'"):
        own.fit(rows[0].drop(columns="credit amount"), rows[1], sensitive_features=rows[2])


def test_a_grid_over_limits_routes_the_attribute():
    X, y, age = table(400, 0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier(cv=2).set_fit_request(sensitive_features=True)
        search = GridSearchCV(model, {"limit": [None, "50%"]}, scoring="neg_log_loss", cv=2)
        search.fit(X, y, sensitive_features=age)
        assert search.best_params_["limit"] is None  # a constraint costs log loss
        assert search.best_estimator_.choice_ is not None


def test_without_attributes_nothing_is_constrained():
    X, y, _ = table(200, 0)
    with pytest.warns(MissingSensitiveFeaturesWarning):
        model = classifier().fit(X, y)
    assert model.predict_proba(X) == approx(LogisticRegression().fit(X, y).predict_proba(X))
    with pytest.raises(ValueError, match="without sensitive_features"):
        model.at("50%")


@pytest.mark.parametrize("kind", [ParityClassifier, ParityRegressor])
def test_an_attribute_by_position_is_told_its_name(kind):
    with pytest.raises(TypeError, match="sensitive_features="):
        kind().fit([[0.0], [1.0]], [0, 1], [20, 30])


def test_many_rows_of_a_person_teach_as_much_as_one():
    """150 people, 20 rows each that tell who it is: the labels of new people are what counts."""
    rng = np.random.default_rng(0)
    people = rng.normal(size=(150, 5))
    person = np.repeat(np.arange(150), 20)
    s = people[:, 0] + rng.normal(size=150)

    def labels(x: np.ndarray) -> np.ndarray:
        return rng.random(len(x)) < expit(x[:, 1] + x[:, 0] / 2)

    y = labels(people)
    X = people[person] + 0.01 * rng.normal(size=(3000, 5))
    many = ParityClassifier(limit=None, random_state=0)
    many.fit(X, y[person], sensitive_features=s[person], groups=person)
    one = ParityClassifier(limit=None, random_state=0).fit(people, y, sensitive_features=s)
    rate = y.mean()
    constant = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert many.frontier_.performance["log_loss"][0] < constant + 0.03
    new = rng.normal(size=(5000, 5))
    new_y = labels(new)
    auc = [roc_auc_score(new_y, model.predict_proba(new)[:, 1]) for model in (many, one)]
    assert auc[0] > auc[1] - 0.02


@pytest.mark.parametrize("kind", [ParityClassifier, ParityRegressor])
def test_rows_of_weight_0_change_nothing(kind):
    X, y, age = table(300, 0)
    weights = np.random.default_rng(1).integers(1, 4, size=300)
    X = np.vstack([X, 50 * X[:40]])
    y = np.r_[y, 1 - y[:40]]
    age = np.r_[age, 9 * age[:40]]
    model = kind(limit=None, cv=3, random_state=0)
    plain = clone(model).fit(X[:300], y[:300], sensitive_features=age[:300], sample_weight=weights)
    more = model.fit(X, y, sensitive_features=age, sample_weight=np.r_[weights, np.zeros(40)])
    assert np.array_equal(plain.predict(X), more.predict(X))
    assert plain.frontier_.to_frame().equals(more.frontier_.to_frame())


@pytest.mark.parametrize("weight", [1e308, 1e-320])
def test_equal_weights_of_any_size_are_no_weights(weight):
    X, y, age = table(200, 0)
    model = ParityClassifier(limit=None, cv=3, random_state=0)
    plain = clone(model).fit(X, y, sensitive_features=age).predict_proba(X)
    found = model.fit(X, y, sensitive_features=age, sample_weight=np.full(200, weight))
    assert found.predict_proba(X) == approx(plain, abs=1e-6)


def test_weights_of_one_class_only_are_refused():
    X, y, age = table(200, 0)
    with pytest.raises(ValueError, match="class"):
        ParityClassifier().fit(X, y, sensitive_features=age, sample_weight=y)


@pytest.mark.parametrize("estimator", [None, LinearSVC()])
def test_probabilities_of_several_classes_sum_to_one(estimator):
    X, _, age = table(300, 0)
    labels = np.digitize(X[:, 1], [-0.5, 0.5])
    model = ParityClassifier(estimator, limit=None, cv=3, random_state=0)
    p = model.fit(X, labels, sensitive_features=age).predict_proba(X)
    assert p.min() >= 0
    assert p.sum(axis=1) == approx(1.0)
