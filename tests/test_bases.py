"""Base models: cross-fitted without S, deployed on new rows, refused where they would leak or need S."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from estimator_samples import QUICK, biased, people
from frhsic import audit, select_weight, transfer
from frhsic.estimators import (
    BoostedTreesClassifier,
    BoostedTreesRegressor,
    LeakingBaseWarning,
    ParityClassifier,
    ParityEncoder,
    ParityRegressor,
    fit_path,
)
from frhsic.estimators.base_scores import raw_scores
from frhsic.estimators.bases import BaseRows, fitted_base, scaled
from frhsic.estimators.folds import dealt
from frhsic.estimators.published import PUBLISHED
from frhsic.estimators.trees import Trees
from frhsic.fleet import Member, Recipe, TrainingData, affine_head, mlp_encoder, train
from frhsic.penalties import HSIC

SHORT = {**QUICK, "epochs": 2}
del SHORT["base"]


def rows_of(X: np.ndarray, y: np.ndarray, **more: Any) -> BaseRows:
    return BaseRows(X, X, y, None if y.dtype == float else np.unique(y), **more)


def table(n: int, seed: int = 0, missing: float = 0.1) -> np.ndarray:
    """Columns that are normal, tied, zero-inflated, heavy-tailed and constant, with values missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.9, 2] = 0
    X[:, 3] = np.exp(4 * X[:, 3])
    X[:, 4] = 7
    X[rng.random(X.shape) < missing] = np.nan
    return X


# trees as arrays


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=32), lambda x: x[:, 0] + x[:, 1] > 0),
        (HistGradientBoostingClassifier(max_iter=5), lambda x: np.digitize(x[:, 0], [-1, 0, 1])),
        (HistGradientBoostingRegressor(max_iter=20, max_depth=2), lambda x: x[:, 3]),
        (HistGradientBoostingRegressor(max_iter=3), lambda x: np.ones(len(x))),
    ],
)
def test_arrays_of_trees_give_what_the_library_gives(model: Any, target: Any):
    X, unseen = table(700), table(300, seed=1, missing=0.3)
    model.fit(X, target(np.nan_to_num(X)))
    trees = Trees.of(model)
    for rows in (X, unseen, unseen[:1], np.full((2, 5), np.nan)):
        raw = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
        np.testing.assert_allclose(trees(rows), raw.reshape(len(rows), -1), rtol=1e-12, atol=1e-12)


def test_a_tree_with_more_leaves_than_bits_is_refused():
    X = np.linspace(0, 1, 400)[:, None]
    model = HistGradientBoostingRegressor(max_iter=1, max_leaf_nodes=40, min_samples_leaf=1).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="40 leaves; 32 are the most"):
        Trees.of(model)
    with pytest.raises(ValueError, match="max_leaf_nodes=40; pass a number from 2 to 32"):
        BoostedTreesRegressor(max_leaf_nodes=40).fit(X, X[:, 0])


def test_boosted_trees_take_a_table_with_text_and_stop_where_the_held_out_loss_is_least():
    frame, paid, _ = people(300)
    model = BoostedTreesClassifier(random_state=0).fit(frame, np.where(paid, "high", "low"))
    assert model.predict_proba(frame).shape == (300, 2)
    assert model.score(frame, np.where(paid, "high", "low")) > 0.75
    assert 1 <= model.n_iter_ < 300
    noise = np.random.default_rng(0).integers(2, size=300)
    assert BoostedTreesClassifier(random_state=0).fit(frame, noise).n_iter_ < 20
    unseen = frame.head(1).assign(job="pilot")
    assert np.isfinite(model.decision_function(unseen)).all()


@pytest.mark.parametrize("y", [np.arange(60) == 3, np.arange(60) % 30, np.r_[np.zeros(58), 1, 2]])
def test_classes_too_rare_to_hold_out_do_not_stop_boosting(y: np.ndarray):
    model = BoostedTreesClassifier(random_state=0).fit(np.arange(60.0)[:, None], y)
    assert model.n_iter_ == 10


# folds


@pytest.mark.parametrize("n", [100, 103])
def test_every_fold_gets_its_share_of_every_class(n: int):
    X, _, _ = biased(n)
    y = np.arange(n) % 7 == 0
    _, fold = dealt(X, y, np.unique(y), None, 3)
    for label in (False, True):
        counts = np.bincount(fold[y == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_folds_follow_the_rows_and_not_their_order():
    X, y, _ = biased(120)
    shuffled = np.random.default_rng(1).permutation(120)
    for groups in (None, np.arange(120) // 4):
        _, fold = dealt(X, y, np.unique(y), groups, 3)
        _, other = dealt(X[shuffled], y[shuffled], np.unique(y), None if groups is None else groups[shuffled], 3)
        np.testing.assert_array_equal(other, fold[shuffled])
    assert not np.array_equal(fold, dealt(X, y, np.unique(y), None, 4)[1])


@pytest.mark.parametrize("numbers", [False, True])
def test_rows_of_one_group_share_a_fold(numbers: bool):
    X, y, _ = biased(150)
    groups = np.array([f"person {i}" for i in np.arange(150) // 3])
    _, fold = dealt(X, X[:, 1] if numbers else y, None if numbers else np.unique(y), groups, 0)
    assert len(set(fold)) == 5
    assert all(len(set(fold[groups == one])) == 1 for one in groups)


def test_a_rare_class_gets_fewer_folds_and_a_single_row_of_it_an_error_with_the_count():
    X, _, s = biased(60)
    y = np.r_[np.ones(3, int), np.zeros(57, int)]
    assert (
        ParityClassifier(base=LogisticRegression(), **SHORT).fit(X, y, sensitive_features=s).base_performance_.folds
        == 3
    )
    y[1:3] = 0
    with pytest.raises(ValueError, match=r"\{0: 59, 1: 1\}; a base needs two classes with at least 2 rows"):
        ParityClassifier(base=LogisticRegression(), **SHORT).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="one group only"):
        ParityClassifier(base=LogisticRegression(), **SHORT).fit(X, s > 40, sensitive_features=s, groups=np.zeros(60))
    early = ParityClassifier(**{**SHORT, "early_stopping": True})
    with pytest.raises(ValueError, match="one group only, so none can be held out"):
        early.fit(X, s > 40, sensitive_features=s, groups=np.zeros(60))


# cross-fitting


def test_scores_of_training_rows_are_those_of_models_that_have_not_seen_them():
    X, y, _ = biased(90)
    rows = rows_of(X, y)
    base, columns = fitted_base(LogisticRegression(C=0.01), rows, 5)
    assert base is not None
    order, fold = dealt(X, y, np.unique(y), None, 5)
    raw = np.empty(90)
    for k in range(5):
        others = order[fold[order] != k]
        raw[fold == k] = LogisticRegression(C=0.01).fit(X[others], y[others]).decision_function(X[fold == k])
    np.testing.assert_allclose(columns, scaled(raw[:, None], base.center, base.spread), rtol=1e-8)
    deployed = LogisticRegression(C=0.01).fit(X[order], y[order]).decision_function(X)
    np.testing.assert_allclose(base(X), scaled(deployed[:, None], base.center, base.spread), rtol=1e-8)
    assert base.performance.loss == pytest.approx(log_loss(y, 1 / (1 + np.exp(-raw))))
    assert base.performance.score == pytest.approx(accuracy_score(y, raw > 0))
    assert base.performance.constant_loss == pytest.approx(log_loss(y, np.full(90, y.mean())))


def test_the_performance_of_a_regression_is_in_the_unit_of_y():
    X, _, _ = biased(90)
    y = 50 * X[:, 1] + 7
    base, columns = fitted_base(Ridge(), rows_of(X, y), 0)
    assert base is not None
    predicted = base.center + base.spread * columns
    assert base.performance.loss == pytest.approx(mean_squared_error(y, predicted))
    assert base.performance.score == pytest.approx(r2_score(y, predicted))
    assert base.performance.constant_loss == pytest.approx(y.var())


@pytest.mark.parametrize("base", ["boosted", KNeighborsClassifier(1)])
def test_scores_of_training_rows_do_not_know_their_target(base: Any):
    X = np.random.default_rng(0).normal(size=(400, 6))
    y = np.random.default_rng(1).integers(2, size=400)
    fitted, columns = fitted_base(base, rows_of(X, y), 0)
    assert fitted is not None
    assert abs(roc_auc_score(y, columns[:, 0]) - 0.5) < 4 * 0.5 / np.sqrt(3 * 400 / 4)
    assert roc_auc_score(y, fitted(X)[:, 0]) > 0.6


def test_the_order_of_the_rows_does_not_change_their_scores():
    X, y, _ = biased(200)
    shuffled = np.random.default_rng(1).permutation(200)
    _, columns = fitted_base("boosted", rows_of(X, y), 0)
    _, other = fitted_base("boosted", rows_of(X[shuffled], y[shuffled]), 0)
    np.testing.assert_allclose(other, columns[shuffled], rtol=1e-9, atol=1e-9)


def test_the_base_knows_nothing_of_the_sensitive_attribute():
    X, y, s = biased(150)
    one, other = (
        ParityClassifier(**SHORT).fit(X, y, sensitive_features=values).base_(X)
        for values in (s, np.random.default_rng(0).normal(size=150))
    )
    np.testing.assert_array_equal(one, other)


def test_several_classes_have_a_column_each_and_an_unseen_class_its_own():
    X, _, s = biased(150)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 1], [-0.5, 0.5])]
    model = ParityClassifier(**SHORT).fit(X, y, sensitive_features=s)
    assert model.base_.width == 3
    assert model.encoder_[0][0].in_features == 6 if model.has_bottleneck_ else model.encoder_[0].in_features == 6
    parts = ParityClassifier(base=LogisticRegression(), **SHORT)
    parts.partial_fit(X[y != "c"], y[y != "c"], classes=["a", "b", "c"], sensitive_features=s[y != "c"])
    assert parts.base_(X).shape == (150, 3)
    assert np.isfinite(parts.predict_proba(X)).all()


def test_scores_have_unit_spread_whatever_their_tails():
    rng = np.random.default_rng(0)
    scores = rng.standard_t(1.5, size=(4000, 1)) * 30 - 5
    scores[0] = 1e12
    base, columns = fitted_base(lambda X: scores, rows_of(np.zeros((4000, 1)), rng.normal(size=4000)), 0)
    assert base is not None
    assert np.abs(columns).max() == 8
    assert 0.5 < columns.std() < 1.5
    rare = np.where(np.arange(4000) % 200 == 0, 5.0, -5.0)[:, None]
    _, columns = fitted_base(lambda X: rare, rows_of(np.zeros((4000, 1)), rng.normal(size=4000)), 0)
    assert columns.std() > 0.5
    assert np.ptp(columns) > 5
    _, columns = fitted_base(lambda X: np.ones(4000), rows_of(np.zeros((4000, 1)), rng.normal(size=4000)), 0)
    np.testing.assert_array_equal(columns, 0)


def test_sample_weights_reach_the_base_or_are_refused():
    X, y, s = biased(80)
    weights = np.where(y == 1, 1.0, 1e-9)
    for base in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
        model = ParityClassifier(base=base, **SHORT).fit(X, y, sensitive_features=s, sample_weight=weights)
        assert (model.base_.model.predict(X) == 1).all()
    with pytest.raises(ValueError, match="takes no sample_weight"):
        ParityClassifier(base=KNeighborsClassifier(), **SHORT).fit(X, y, sensitive_features=s, sample_weight=weights)


# a base in use


def test_accuracy_of_the_trees_comes_through_where_the_encoder_alone_misses_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 4))
    y = (np.floor(6 * X[:, 0]) % 2 == 0) ^ (rng.random(900) < 0.1)
    s = rng.uniform(size=900)
    settings = {**QUICK, "epochs": 10, "penalty_weight": 0.1}
    plain = ParityClassifier(**settings).fit(X[:600], y[:600], sensitive_features=s[:600])
    settings["base"] = "boosted"
    based = ParityClassifier(**settings).fit(X[:600], y[:600], sensitive_features=s[:600])
    assert based.score(X[600:], y[600:]) > plain.score(X[600:], y[600:]) + 0.05


def test_fit_says_what_the_base_reaches_alone(caplog: pytest.LogCaptureFixture):
    X, y, s = biased(120)
    with caplog.at_level(logging.INFO, logger="frhsic.estimators.bases"):
        model = ParityClassifier(**SHORT).fit(X, y, sensitive_features=s)
    assert f"accuracy {model.base_performance_.score:.3f} (a constant:" in caplog.text
    assert model.base_performance_.score > model.base_performance_.constant_score + 0.2
    assert model.base_performance_.loss < model.base_performance_.constant_loss


def test_with_few_rows_there_is_no_boosted_base():
    X, y, s = biased(99)
    model = ParityClassifier(**SHORT).fit(X, y, sensitive_features=s)
    assert model.base_ is None
    assert model.base_performance_ is None
    without = ParityClassifier(**{**SHORT, "base": None}).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(model.predict_proba(X), without.predict_proba(X))
    rare = np.r_[np.ones(4, int), np.zeros(146, int)]
    X, _, s = biased(150)
    assert ParityClassifier(**SHORT).fit(X, rare, sensitive_features=s).base_ is None


def test_later_calls_keep_the_base_and_the_out_of_fold_scores_of_its_rows():
    X, y, s = biased(240)
    model = ParityClassifier(**SHORT)
    model.partial_fit(X[:120], y[:120], sensitive_features=s[:120])
    base = model.base_
    _, columns = fitted_base("boosted", BaseRows(X[:120], model.feature_encoding_(X[:120]), y[:120], np.unique(y)), 0)
    model.partial_fit(X[120:], y[120:], sensitive_features=s[120:])
    assert model.base_ is base
    both = base.again(X, model.feature_encoding_(X))
    np.testing.assert_array_equal(both[:120], columns)
    np.testing.assert_array_equal(both[120:], base(X[120:]))
    assert not np.allclose(base(X[:120]), columns)


class Counting(ClassifierMixin, BaseEstimator):
    """Remembers in the class how often one was fitted."""

    fits = 0

    def fit(self, X: Any, y: Any) -> Counting:
        type(self).fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.full((len(X), 2), 0.5)

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(len(X))


def test_a_path_fits_the_base_once():
    X, y, s = biased(60)
    Counting.fits = 0
    models = fit_path(ParityClassifier(base=Counting(), **SHORT), X, y, weights=[0, 1, 10], sensitive_features=s)
    assert Counting.fits == 6
    assert all(model.base_ is models[0].base_ for model in models)
    assert clone(models[0].base) is not models[0].base


def test_a_fitted_estimator_is_fitted_again_and_a_frozen_one_or_a_function_is_not():
    X, y, s = biased(80)
    other = biased(80, seed=9)
    elsewhere = LogisticRegression().fit(other[0], 1 - other[1])
    refitted = ParityClassifier(base=elsewhere, **SHORT).fit(X, y, sensitive_features=s)
    assert refitted.base_performance_.score > 0.8
    frozen = ParityClassifier(base=FrozenEstimator(elsewhere), **SHORT).fit(X, y, sensitive_features=s)
    assert frozen.base_performance_.score < 0.2
    assert frozen.base_.model.estimator is elsewhere
    log_odds = ParityClassifier(base=elsewhere.decision_function, **SHORT).fit(X, y, sensitive_features=s)
    np.testing.assert_allclose(log_odds.base_(X), frozen.base_(X), rtol=1e-8)
    assert frozen.base_performance_.folds == 0


# traps


def test_a_model_frozen_on_the_same_rows_is_found_and_one_of_other_rows_is_not():
    X, y, s = biased(150)
    fresh = biased(150, seed=4)
    forest = RandomForestClassifier(30, random_state=0)
    with pytest.warns(LeakingBaseWarning, match="its scores know y"):
        ParityClassifier(base=FrozenEstimator(forest.fit(X, y)), **SHORT).fit(X, y, sensitive_features=s)
    other = FrozenEstimator(clone(forest).fit(fresh[0], fresh[1]))
    ParityClassifier(base=other, **SHORT).fit(X, y, sensitive_features=s)


class NeedsS(LogisticRegression):
    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        return super().predict(X)


@pytest.mark.parametrize("base", [NeedsS(), FrozenEstimator(NeedsS()), lambda X, sensitive_features: X[:, 0]])
def test_a_base_that_needs_the_attribute_to_predict_is_refused(base: Any):
    X, y, s = biased(60)
    with pytest.raises(ValueError, match="needs sensitive_features to predict"):
        ParityClassifier(base=base, **SHORT).fit(X, y, sensitive_features=s)


class FitsWithS(LogisticRegression):
    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> Any:
        return super().fit(X, y)


class OddProbabilities:
    def predict_proba(self, X: Any) -> np.ndarray:
        return np.full((len(X), 3), 1 / 3)


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("trees", "pass 'boosted', None"),
        (LogisticRegression, "pass 'boosted', None"),
        (7, "pass 'boosted', None"),
        (LinearRegression(), "which is no classifier"),
        (lambda X: np.full(len(X), np.nan), "not finite"),
        (FrozenEstimator(LogisticRegression().fit([[0.0, 0, 0], [1, 1, 1]], ["no", "yes"])), "same labels"),
        (FitsWithS(), "needs sensitive_features to fit, which a base never sees"),
        (OddProbabilities(), "base OddProbabilities gives 3 columns; y has 2 classes"),
    ],
)
def test_a_base_that_cannot_be_used_is_refused(base: Any, said: str):
    X, y, s = biased(60)
    with pytest.raises(ValueError, match=said):
        ParityClassifier(base=base, **SHORT).fit(X, y, sensitive_features=s)


def test_a_base_that_gives_labels_of_text_is_refused():
    X, y, s = biased(60)
    with pytest.raises(TypeError, match="gives no numbers but 'yes'; pass a model with predict_proba"):
        ParityClassifier(base=lambda X: np.full(len(X), "yes"), **SHORT).fit(X, y, sensitive_features=s)


def test_a_base_that_gives_other_columns_later_is_refused():
    X, y, s = biased(60)
    model = ParityClassifier(base=lambda X: X[:, : 1 + (len(X) < 60)], **SHORT).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="the base gives 2 columns of scores, and was fitted with 1"):
        model.predict(X[:5])


def test_margins_are_scores_too():
    X, y, s = biased(120)
    model = ParityClassifier(base=LinearSVC(random_state=0), **SHORT).fit(X, y, sensitive_features=s)
    margins = model.base_.model.decision_function(X)[:, None]
    np.testing.assert_allclose(model.base_(X), scaled(margins, model.base_.center, model.base_.spread))
    assert model.base_performance_.score > 0.7


def test_margins_of_two_of_three_classes_leave_the_third_behind_them():
    X, _, _ = biased(90)
    y = np.digitize(X[:, 1], [-0.5, 0.5])
    two = LinearSVC(random_state=0).fit(X[y < 2], y[y < 2])
    scores = raw_scores(two, X, np.arange(3)).values
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], two.decision_function(X))
    assert (scores[:, 2] <= scores[:, :2].min(axis=1)).all()


def test_whether_a_frozen_base_leaks_is_checked_only_where_it_can_be(caplog: pytest.LogCaptureFixture):
    X, y, s = biased(120)
    with warnings.catch_warnings(action="error"):
        margins = FrozenEstimator(LinearSVC(random_state=0).fit(X, y))  # no log-odds, so no loss
        assert ParityClassifier(base=margins, **SHORT).fit(X, y, sensitive_features=s).base_performance_.score > 0.7
        with caplog.at_level(logging.INFO, "frhsic"):
            ParityClassifier(base=FrozenEstimator(FittedOnce().fit(X, y)), **SHORT).fit(X, y, sensitive_features=s)
    assert "whether the frozen base leaks y could not be checked: once is enough" in caplog.text


class FittedOnce(LogisticRegression):
    def fit(self, X: Any, y: Any) -> Any:
        if len(X) < 120:
            raise ValueError("once is enough")
        return super().fit(X, y)


def test_few_rows_cannot_be_dealt_into_folds():
    X, _, s = biased(60)
    with pytest.raises(ValueError, match="X has 3 rows; a base needs 4 to be fitted out of fold"):
        ParityRegressor(base=Ridge(), **SHORT).fit(X[:3], X[:3, 1], sensitive_features=s[:3])


def test_trees_that_the_library_stores_in_another_way_are_an_error(monkeypatch: pytest.MonkeyPatch):
    X, y, _ = biased(120)
    call = Trees.__call__
    monkeypatch.setattr(Trees, "__call__", lambda trees, x: call(trees, x) + 1)
    with pytest.raises(RuntimeError, match="the trees of this version of scikit-learn are stored in a way"):
        BoostedTreesClassifier(n_iter=2).fit(X, y)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"baseline": np.zeros(0)}, "the trees have no baseline"),
        ({"baseline": np.array([np.nan])}, "the trees hold values that are not finite"),
    ],
)
def test_arrays_of_trees_that_are_wrong_are_refused(change: dict[str, Any], said: str):
    X, y, _ = biased(120)
    trees = BoostedTreesClassifier(n_iter=2).fit(X, y).trees_
    trees.check(3)
    with pytest.raises(ValueError, match=said):
        replace(trees, **change).check(3)


def test_an_encoder_uses_a_base_only_with_a_target():
    X, y, s = biased(120)
    assert ParityEncoder(**SHORT).fit(X, sensitive_features=s).base_ is None
    assert ParityEncoder(**SHORT).fit(X, y, sensitive_features=s).base_performance_.score_name == "accuracy"
    assert ParityEncoder(**SHORT).fit(X, X[:, 1], sensitive_features=s).base_performance_.score_name == "R²"
    with pytest.raises(ValueError, match="base was passed, but no y"):
        ParityEncoder(base=LogisticRegression(), **SHORT).fit(X, sensitive_features=s)


# the paper's settings


@pytest.mark.parametrize("estimator", [ParityClassifier, ParityRegressor])
def test_published_is_the_paper_s_recipe_bit_for_bit(estimator: type):
    X, y, s = biased(150)
    target = y if estimator is ParityClassifier else X[:, 1]
    settings = {"epochs": 3, "random_state": 0, "device": "cpu"}
    model = estimator.published(penalty_weight=3.0, **settings).fit(X, target, sensitive_features=s)
    low, high = X.min(0), X.max(0)
    values = target if estimator is ParityClassifier else (target - target.mean()) / target.std()
    fleet = train(
        TrainingData.of((X - low) / (high - low), values, (s - s.min()) / (s.max() - s.min())),
        [Member(3.0, 0)],
        Recipe(
            "binary" if estimator is ParityClassifier else "regression",
            penalty=HSIC.published(),
            encoder=lambda: mlp_encoder(3, (50,), 50),
            head=lambda: affine_head(50),
            epochs=3,
            batch_size=256,
            learning_rate=1e-3,
        ),
        device="cpu",
    )
    for own, paper in zip((model.encoder_, model.head_), fleet.module(0)):
        for name, weights in paper.state_dict().items():
            np.testing.assert_array_equal(own.state_dict()[name].numpy(), weights.numpy())
    settings = estimator.published().get_params()
    assert {name: settings[name] for name in PUBLISHED if name in settings} == {
        name: value for name, value in PUBLISHED.items() if name in settings
    }
    assert (settings["penalty"], settings["base"], settings["scaling"]) == ("frhsic", None, "range")
    assert ParityEncoder.published().reconstruct == "columns"


# what stands above


def test_tools_of_scikit_learn_take_an_estimator_with_a_base():
    X, y, _ = biased(150)
    settings = {**SHORT, "penalty_weight": 0.0}
    calibrated = CalibratedClassifierCV(ParityClassifier(**settings), cv=2).fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 2)
    grid = {"base": [None, "boosted", LogisticRegression()]}
    search = GridSearchCV(ParityClassifier(**settings), grid, cv=2).fit(X, y)
    assert search.best_params_["base"] is not None
    deep = ParityClassifier(base=LogisticRegression(), **SHORT).set_params(base__C=7.0)
    assert deep.get_params()["base__C"] == 7.0
    assert make_pipeline(StandardScaler(), ParityClassifier(**settings)).fit(X, y).predict(X).shape == (150,)


@pytest.mark.usefixtures("few_trees")
def test_choice_transfer_and_audit_take_a_table_with_categories_and_a_base():
    frame, y, age = people(300)
    chosen = select_weight(ParityClassifier(**SHORT), frame, y, sensitive_features=age, weights=[1.0])
    assert chosen.estimator.base_performance_.rows == 240
    assert len(chosen.frontier.runs) == 2
    new, y_new, age_new = people(120, seed=1)
    result = transfer(chosen.estimator, new, y_new, sensitive_features=age_new, heads=["linear"])
    assert np.isfinite(float(result))
    found = audit(chosen.estimator.transform(new), age_new, scores=chosen.estimator.predict_proba(new)[:, 1])
    assert found.attributes[0].name == "age"


def test_a_user_s_model_gets_the_table_as_it_came():
    frame, y, age = people(60)
    seen: list[Any] = []

    def score(X: Any) -> np.ndarray:
        seen.append(X)
        return np.asarray(X["hours"])

    model = ParityClassifier(base=score, **SHORT).fit(frame, y, sensitive_features=age)
    model.predict(frame.head(3))
    pd.testing.assert_frame_equal(seen[0], frame)
    pd.testing.assert_frame_equal(seen[-1], frame.head(3))
