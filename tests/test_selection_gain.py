"""Performance counts from a constant predictor up; rules and scorers as people write them; any estimator is served."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, make_scorer, r2_score, roc_auc_score

from estimator_samples import QUICK, biased
from frhsic import select_weight
from frhsic.auditing import Settings
from frhsic.estimators import FRHSICClassifier
from frhsic.frontier import Frontier, Run
from frhsic.independence import gamma_test
from frhsic.parity import gdp
from frhsic.report import trained_report
from frhsic.selection import (
    Candidate,
    IndependenceRule,
    LowGainWarning,
    PerformanceRule,
    Selection,
    TargetRule,
    UnmetTargetWarning,
    calibration_error,
)
from frhsic.selection.fitting import refined_weights
from frhsic.selection.measuring import Rows
from frhsic.selection.performance import measured, proper_score
from frhsic.selection.written import rule_of
from selection_samples import Mixed, MixedRegressor, credit

pytestmark = pytest.mark.usefixtures("few_trees")


class Strongest:
    """A rule of a user, without `least_gain`: always the largest weight."""

    of, confidence, epsilon = "scores", 0.95, None

    def choose(self, candidates: Any, higher_is_better: bool) -> tuple[list[bool], int, str]:
        return [True] * len(candidates), len(candidates) - 1, "the largest weight"


# a rare outcome, where a constant has nearly the accuracy of any model

RULES = [None, 0.05, 1e-4, "gain >= 0.99", "p > 0.05", IndependenceRule(epsilon=1.0), Strongest()]


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc", "neg_brier_score"])
@pytest.mark.parametrize("rule", RULES, ids=["default", "wide", "tight", "gain", "p", "epsilon", "own"])
def test_no_rule_is_content_with_a_model_that_does_not_beat_the_constant(rule, scoring):
    X, y, age = credit(1500)
    assert 0.04 < y.mean() < 0.08
    with warnings.catch_warnings(record=True, action="always") as caught:
        chosen = select_weight(Mixed(), X, y, sensitive_features=age, rule=rule, scoring=scoring, weights=[1, 30, 1e4])
    taken = chosen.candidates[chosen.position]
    warned = any(issubclass(one.category, LowGainWarning) for one in caught)
    assert chosen.satisfied <= (not warned)
    if chosen.satisfied:
        assert taken.beats_constant
        assert taken.gain >= 0.25
    assert warned == (not (taken.beats_constant and taken.gain >= getattr(chosen.rule, "least_gain", 0.25)))


def test_the_table_of_the_rare_outcome_trips_up_a_rule_by_accuracy_and_not_the_default():
    X, y, age = credit(3000)
    chosen = select_weight(Mixed(), X, y, sensitive_features=age, weights=[0.05, 0.5, 1000])
    flat = chosen.candidates[-1]
    assert flat.accuracy >= 0.99 * chosen.candidates[0].accuracy  # by a share of accuracy it would be chosen
    assert flat.gain < 0.01
    assert 0 < chosen.weight < 1000
    assert chosen.satisfied


def test_a_penalised_network_on_a_rare_outcome_is_not_chosen_for_being_constant():
    X, y, age = credit(800)
    model = FRHSICClassifier(**{**QUICK, "epochs": 10})
    chosen = select_weight(model, X, y, sensitive_features=age, weights=[1, 1000])
    assert chosen.weight < 1000
    with pytest.warns(LowGainWarning, match="of the unpenalised model's gain over a constant, less than 25 %"):
        strict = select_weight(model, X, y, sensitive_features=age, weights=[1000], rule=Strongest())
    assert not strict.satisfied
    assert "less than 25 %" in strict.reason


def test_an_unpenalised_model_that_does_not_beat_the_constant_is_said_to():
    rng = np.random.default_rng(0)
    X, y, s = rng.normal(size=(120, 30)), rng.integers(0, 2, 120), rng.normal(size=120)
    with pytest.warns((LowGainWarning, UnmetTargetWarning)) as caught:
        chosen = select_weight(Mixed(), X, y, sensitive_features=s, weights=[1, 10])
    assert {one.category for one in caught} == {LowGainWarning, UnmetTargetWarning}
    assert not chosen.satisfied
    assert "does not beat a constant (log loss" in chosen.reason
    assert all(np.isnan(c.gain) for c in chosen.candidates)


def test_a_negative_r2_is_no_obstacle():
    rng = np.random.default_rng(1)
    X, s = rng.normal(size=(200, 3)), rng.normal(size=200)
    y = X[:, 0] + 0.5 * s
    rows = {"sensitive_features": s, "weights": [0.1, 1, 10]}
    chosen = select_weight(MixedRegressor(), X, y, rule=PerformanceRule(0.5), scoring="r2", **rows)
    assert chosen.satisfied
    assert chosen.scoring.higher_is_better
    noise = rng.normal(size=200)
    with pytest.warns(UserWarning, match="does not beat a constant|no weight keeps"):
        bad = select_weight(MixedRegressor(), X, noise, scoring="r2", **rows)
    assert bad.candidates[0].performance < 0
    assert not bad.satisfied


def test_a_frontier_with_a_negative_baseline_has_a_matched_point():
    runs = (Run("none", 0, 0, -0.20, 1.0), Run("a", 1, 0, -0.201, 0.4), Run("a", 2, 0, -0.3, 0.1))
    matched = Frontier(runs).matched(0.01)
    assert matched["a"].point.weight == 1
    assert matched["none"].point.weight == 0
    assert matched["a"].floor == pytest.approx(-0.202)
    errors = tuple(Run(r.method, r.weight, 0, -r.performance - 1, r.dependence) for r in runs)
    assert Frontier(errors, higher_is_better=False).matched(0.01)["a"].point.weight == 1


# gain, scorers, calibration


def test_the_gain_is_the_share_of_the_log_loss_that_is_won_over_the_rate_of_the_training_rows():
    X, y, age = credit(600)
    chosen = select_weight(
        Mixed(),
        X[:400],
        y[:400],
        sensitive_features=age[:400],
        validation=(X[400:], y[400:], age[400:]),
        weights=[1.0],
    )
    constant = log_loss(y[400:], np.full(200, y[:400].mean()))
    losses = [log_loss(y[400:], model.predict_proba(X[400:])) for model in chosen.models]
    assert chosen.constant.performance == pytest.approx(constant)
    assert [c.performance for c in chosen.candidates] == pytest.approx(losses)
    assert [c.gain for c in chosen.candidates] == pytest.approx([1, (constant - losses[1]) / (constant - losses[0])])
    assert chosen.constant.auc == 0.5


def test_the_gain_does_not_change_with_the_unit_of_y():
    rng = np.random.default_rng(2)
    X, s = rng.normal(size=(200, 2)), rng.normal(size=200)
    y = X[:, 0] + s
    gains = [
        [c.gain for c in select_weight(MixedRegressor(), X, z, sensitive_features=s, weights=[1, 5]).candidates]
        for z in (y, 1000 - 7 * y)
    ]
    assert gains[0] == pytest.approx(gains[1])


def hits(model: Any, X: Any, y: Any) -> float:
    return float((model.predict(X) == y).sum())


@pytest.mark.parametrize(
    ("scoring", "name", "higher", "value"),
    [
        ("roc_auc", "roc auc", True, lambda y, p: roc_auc_score(y, p)),
        ("neg_brier_score", "brier score", False, lambda y, p: brier_score_loss(y, p)),
        ("accuracy", "accuracy", True, lambda y, p: accuracy_score(y, p > 0.5)),
        (
            make_scorer(brier_score_loss, greater_is_better=False, response_method="predict_proba"),
            "brier score loss",
            False,
            lambda y, p: brier_score_loss(y, p),
        ),
        (hits, "hits", True, lambda y, p: ((p > 0.5) == y).sum()),
    ],
    ids=["roc_auc", "neg_brier_score", "accuracy", "make_scorer", "function"],
)
def test_any_scorer_is_taken_with_its_direction(scoring, name, higher, value):
    X, y, age = credit(600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        chosen = select_weight(
            Mixed(),
            X,
            y,
            sensitive_features=age,
            validation=(X, y, age),
            scoring=scoring,
            weights=[1.0],
        )
    assert (chosen.scoring.name, chosen.scoring.higher_is_better) == (name, higher)
    assert chosen.candidates[1].performance == pytest.approx(value(y, chosen.models[1].predict_proba(X)[:, 1]))
    assert chosen.frontier.higher_is_better == higher


def test_a_scorer_that_is_none_is_refused():
    X, y, age = credit(60)
    with pytest.raises(ValueError, match="Did you mean 'roc_auc'"):
        select_weight(Mixed(), X, y, sensitive_features=age, scoring="rocauc")
    with pytest.raises(ValueError, match="scoring"):
        select_weight(Mixed(), X, y, sensitive_features=age, scoring=r2_score)  # a metric, not a scorer


def calibration_by_pairs(scores: np.ndarray, y: np.ndarray, bins: np.ndarray) -> float:
    total = 0.0
    for b in np.unique(bins):
        r = (y - scores)[bins == b]
        n = len(r)
        if n > 1:
            total += n * sum(r[i] * r[j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    return float(np.sqrt(max(0.0, total / len(y))))


def test_the_calibration_error_is_the_mean_product_of_residuals_over_pairs_of_a_bin():
    scores = np.array([0.1, 0.1, 0.1, 0.6, 0.6, 0.9, 0.9, 0.9])
    y = np.array([1, 0, 1, 0, 0, 1, 1, 0])
    expected = calibration_by_pairs(scores, y, scores)
    assert expected > 0
    assert calibration_error(scores, y) == pytest.approx(expected, rel=1e-12)
    order = np.random.default_rng(0).permutation(8)
    assert calibration_error(scores[order], y[order]) == pytest.approx(expected, rel=1e-12)


def test_the_squared_calibration_error_is_without_bias():
    """Scores that are .1 too high everywhere: the mean of the squares, unclipped, is .01, also with few rows."""
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(1500):
        p = rng.uniform(0.1, 0.6, size=300)
        squares.append(calibration_error(p + 0.1, rng.random(300) < p) ** 2)
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 0.01) < 4 * error + 2e-4  # clipping at 0 adds a little


def test_a_calibrated_score_has_hardly_an_error_at_few_rows_where_the_mean_of_bins_has_one():
    rng = np.random.default_rng(1)
    errors, usual = [], []
    for _ in range(300):
        p = rng.uniform(size=100)
        y = rng.random(100) < p
        errors.append(calibration_error(p, y))
        order = np.argsort(p).reshape(10, 10)
        usual.append(np.abs((y - p)[order].mean(axis=1)).mean())
    assert np.median(errors) < 0.04
    assert np.median(usual) > 0.09


# rules as they are written


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        (None, PerformanceRule()),
        (0.02, TargetRule(0.02)),
        (1, TargetRule(1.0)),
        ("gdp<=0.02", TargetRule(0.02)),
        (" GDP ≤ 2 % ", TargetRule(0.02)),
        ("gdp < 2e-2", TargetRule(0.02)),
        ("hsic <= .001", TargetRule(0.001, measure="hsic")),
        ("gain>=75%", PerformanceRule(0.25)),
        ("gain > 0.75", PerformanceRule(0.25)),
        ("p>0.1", IndependenceRule(0.1)),
        (TargetRule(0.3), TargetRule(0.3)),
    ],
)
def test_a_rule_may_be_written(written, rule):
    assert rule_of(written) == rule


@pytest.mark.parametrize(
    ("written", "error", "message"),
    [
        ("gdp>=0.02", ValueError, "a limit on gdp is at most a number; write for example"),
        ("gain<=0.5", ValueError, "a limit on gain is at least a number"),
        ("gpd<=0.02", ValueError, "limits 'gpd', which is not known. Did you mean 'gdp'?"),
        ("gdp", ValueError, "rule='gdp' is not understood; write for example 0.02, 'gdp <= 0.02'"),
        ("gdp<=small", ValueError, "'small' is no number"),
        ("gain>=90", ValueError, "gain lies between 0 and 1"),
        (-0.1, ValueError, "pass a positive number"),
        (True, TypeError, "rule=True; pass a rule such as TargetRule"),
        (TargetRule, TypeError, "pass a rule such as TargetRule"),
        ([0.02], TypeError, "pass a rule such as TargetRule"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_examples(written, error, message):
    with pytest.raises(error, match=message.replace("(", r"\(").replace("?", r"\?")):
        rule_of(written)


# refinement and refit


def test_a_refinement_adds_weights_up_to_the_neighbours_and_chooses_again():
    X, y, age = credit(800)
    rows = {"sensitive_features": age, "rule": PerformanceRule(0.1)}
    coarse = select_weight(Mixed(), X, y, weights=[0.01, 5, 100], **rows)
    fine = select_weight(Mixed(), X, y, weights=[0.01, 5, 100], refine=2, **rows)
    weights = [c.weight for c in fine.candidates]
    assert coarse.weight == 0.01
    assert weights == sorted({0, 0.01, 5, 100, *refined_weights([0, 0.01, 5, 100], 1, 2)})
    assert len(weights) == 8
    taken = fine.candidates[fine.position]
    assert fine.weight > coarse.weight
    assert taken.gdp < coarse.candidates[coarse.position].gdp
    assert taken.gain >= 0.9
    assert [model.penalty_weight for model in fine.models] == weights


def test_with_a_refinement_each_round_has_half_of_the_error_rate():
    X, y, age = credit(400)
    rows = {"sensitive_features": age, "rule": TargetRule(0.5), "validation": (X, y, age), "weights": [1.0]}
    chosen = select_weight(Mixed(), X, y, refine=1, **rows)
    scores = chosen.models[0].predict_proba(X)[:, 1]
    assert chosen.candidates[0].gdp_upper == pytest.approx(gdp(scores, age, confidence=0.95).interval[1])
    alone = select_weight(Mixed(), X, y, **rows)
    assert alone.candidates[0].gdp_upper == pytest.approx(gdp(scores, age, confidence=0.90).interval[1])
    plain = select_weight(Mixed(), X, y, **{**rows, "rule": TargetRule(0.5, confidence=0.5)}, refine=1)
    assert plain.candidates[0].gdp_upper == plain.candidates[0].gdp


@pytest.mark.parametrize(("per_round", "least", "most"), [(0.025, 0.0, 0.06), (0.05, 0.075, 1.0)])
def test_a_target_holds_over_both_rounds_with_its_confidence(per_round, least, most):
    """The worst case: the gap is at the limit below a weight of 5 and far under it above, one error for each round."""
    rng, grid, reach = np.random.default_rng(0), [0.0, 1.0, 10.0, 100.0], norm.ppf(1 - per_round)

    def bounds(weights: list[float]) -> list[Candidate]:
        error, found = 0.05 * rng.normal(), []
        for weight in weights:
            gap = (1.0 if weight < 5 else 0.1) + error
            found.append(Candidate(weight, -weight, gap, gap + 0.05 * reach, 0.1, 0.1, 0.0))
        return found

    missed = []
    for _ in range(3000):
        candidates = bounds(grid)
        _, at, _ = TargetRule(1.0).choose(candidates, True)
        candidates += bounds(refined_weights(grid, at, 1))
        candidates.sort(key=lambda c: c.weight)
        admitted, _, _ = TargetRule(1.0).choose(candidates, True)
        missed.append(any(ok and c.weight < 5 for ok, c in zip(admitted, candidates)))
    assert least < np.mean(missed) < most


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_a_refit_is_a_fit_on_all_rows_and_the_models_are_as_they_were(kind):
    X, y, age = credit(400, rate=0.3)
    X = kind(X)
    rows = {"sensitive_features": age, "rule": Strongest(), "weights": [1.0]}
    chosen = select_weight(Mixed(), X, y, refit=True, **rows)
    expected = Mixed(1.0).fit(X, y)
    assert chosen.refitted
    assert np.array_equal(chosen.estimator.predict_proba(X), expected.predict_proba(X))
    assert len(chosen.models[1].rows_) == 320
    part = (X[300:], y[300:], age[300:])
    rows["sensitive_features"] = age[:300]
    given = select_weight(Mixed(), X[:300], y[:300], refit=True, validation=part, **rows)
    assert len(given.estimator.rows_) == 400
    assert np.allclose(given.estimator.predict_proba(X), expected.predict_proba(X))
    with pytest.raises(ValueError, match="needs the weights of the validation rows"):
        select_weight(Mixed(), X[:300], y[:300], refit=True, validation=part, sample_weight=np.ones(300), **rows)


# groups and time


def test_groups_are_trained_on_or_chosen_on_and_bounds_count_them():
    X, y, age = credit(300, rate=0.3)
    persons = np.repeat(np.arange(100), 3)
    X, y, age = (part[persons] for part in (X, y, age))  # three equal rows of each person
    chosen = select_weight(Mixed(), X, y, sensitive_features=age, rule=Strongest(), groups=persons, weights=[0.5])
    trained = chosen.models[0].rows_
    held = ~(X[:, None] == trained[None]).all(axis=2).any(axis=1)
    assert held.sum() == chosen.validation_rows == 60
    scores = chosen.models[1].predict_proba(X[held])[:, 1]
    bound = gdp(scores, age[held], clusters=persons[held], confidence=0.9).interval[1]
    taken = chosen.candidates[1]
    assert taken.gdp_upper == pytest.approx(bound)
    once = np.unique(persons[held], return_index=True)[1]
    test = gamma_test(scores[once], age[held][once])
    assert taken.pvalue == pytest.approx(test.pvalue)
    part = (X[held], y[held], age[held])
    rows = {"sensitive_features": age[~held], "rule": Strongest(), "weights": [0.5]}
    given = select_weight(Mixed(), X[~held], y[~held], validation=(*part, persons[held]), **rows)
    assert given.candidates[1].gdp_upper == pytest.approx(bound)
    found = chosen.evaluate(*part[:2], sensitive_features=part[2], groups=persons[held])
    assert found.gdp["sensitive"].interval == gdp(scores, age[held], clusters=persons[held]).interval


class Grouped(Mixed):
    """A model that notes the groups of the rows that it was fitted on."""

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, groups: Any = None) -> Grouped:
        self.groups_ = groups
        super().fit(X, y, sensitive_features=sensitive_features)
        return self


def test_a_fit_that_takes_groups_is_given_those_of_its_rows():
    X, y, age = credit(300, rate=0.3)
    persons = np.repeat(np.arange(100), 3)
    options = {"rule": Strongest(), "weights": [0.5]}
    chosen = select_weight(Grouped(), X, y, sensitive_features=age, groups=persons, refit=True, **options)
    assert len(np.unique(chosen.models[1].groups_)) == 80
    assert np.array_equal(chosen.estimator.groups_, persons)
    rest = (X[240:], y[240:], age[240:], persons[240:])
    part = {"sensitive_features": age[:240], "groups": persons[:240], "validation": rest, "refit": True}
    given = select_weight(Grouped(), X[:240], y[:240], **part, **options)
    assert np.array_equal(given.models[1].groups_, persons[:240])
    assert np.array_equal(given.estimator.groups_, persons)


def test_with_an_order_the_latest_rows_choose():
    X, y, age = credit(400, rate=0.3)
    when = np.random.default_rng(0).permutation(400)
    chosen = select_weight(Mixed(), X, y, sensitive_features=age, rule=Strongest(), order=when, weights=[0.5])
    assert np.array_equal(chosen.models[0].rows_, X[when < 320])
    last = select_weight(Mixed(), X, y, sensitive_features=age, rule=Strongest(), validation="last", weights=[0.5])
    assert np.array_equal(last.models[0].rows_, X[:320])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": np.zeros(60), "order": np.arange(60)}, "two ways to split rows"),
        ({"groups": np.zeros(59)}, "groups has 59 values for 60 rows"),
        ({"groups": np.zeros(60)}, "has 1 different value"),
        ({"order": np.arange(60), "validation": "last"}, "with order= pass a share"),
        ({"order": ["31/12/2020"] * 60}, "write dates as 2024-05-31"),
    ],
)
def test_a_split_that_cannot_be_is_refused(options, message):
    X, y, age = credit(60)
    with pytest.raises(ValueError, match=message):
        select_weight(Mixed(), X, y, sensitive_features=age, **options)
    with pytest.raises(ValueError, match="validation holds rows already"):
        select_weight(Mixed(), X, y, sensitive_features=age, validation=(X, y, age), groups=np.arange(60))


# what is printed


@pytest.fixture(scope="module")
def chosen() -> Selection:
    X, y, age = credit(800)
    return select_weight(Mixed(), X, y, sensitive_features=age, rule=PerformanceRule(0.3), weights=[0.1, 10])


def test_print_shows_a_short_table(chosen: Selection):
    lines = str(chosen).splitlines()
    assert " ".join(lines[0].split()) == "weight gain kept log loss accuracy AUC calibration error GDP at most"
    assert [line.split()[0] for line in lines[1:5]] == ["constant", "0", "0.1", "10"]
    assert [line.endswith("chosen") for line in lines[1:5]] == [False, False, True, False]
    assert "100 %" in lines[2]
    assert lines[5].startswith("weight 0.1 chosen: the least GDP among models that keep 70 %")
    assert max(map(len, lines[:5])) < 100
    assert repr(chosen) == "Selection(weight=0.1, satisfied=True, candidates=3)"


def test_each_step_is_told():
    X, y, age = credit(400, rate=0.3)
    said: list[str] = []
    rows = {"sensitive_features": age, "rule": Strongest(), "weights": [0.1]}
    select_weight(Mixed(), X, y, watch=said.append, refine=1, refit=True, **rows)
    assert said == [
        "training weight 0 (1 of 2) on 320 rows",
        "training weight 0.1 (2 of 2) on 320 rows",
        "measuring 2 models on 80 validation rows",
        "training weight 0.0316 (1 of 1) on 320 rows",
        "measuring 1 models on 80 validation rows",
        "fitting weight 0.1 again on all 400 rows",
    ]


def test_rows_without_an_attribute_are_neither_chosen_nor_reported_on():
    X, y, age = credit(1200)
    s = np.where(np.arange(1200) % 10 == 3, np.nan, age)
    new, known = slice(600, 1200), 600 + np.flatnonzero(~np.isnan(s[600:]))
    first = (X[:600], y[:600])
    some = select_weight(Mixed(), *first, sensitive_features=s[:600], validation=(X[new], y[new], s[new]), weights=[1])
    rest = (X[known], y[known], s[known])
    same = select_weight(Mixed(), *first, sensitive_features=s[:600], validation=rest, weights=[1])
    assert some.validation_rows == len(known) == 540
    assert some.to_frame().equals(same.to_frame())
    left, kept = (
        some.evaluate(X[new], y[new], sensitive_features=s[new]),
        same.evaluate(*rest[:2], sensitive_features=rest[2]),
    )
    assert (left.rows, left.performance, left.gain) == (kept.rows, kept.performance, kept.gain)
    quick = Settings(resamples=20, shuffles=1, max_rows=100, probe_rows=100)
    report = trained_report(some.models, some.position, X[new], y[new], sensitive_features=s[new], settings=quick)
    assert (report.audit.rows.used, report.audit.rows.given) == (540, 600)
    assert "60 of 600 rows lack s and are left out." in report.audit.remarks
    with pytest.raises(ValueError, match="missing in all 600 rows"):
        some.evaluate(X[new], y[new], sensitive_features=np.full(600, np.nan))


def test_accuracy_in_the_trade_off_is_at_the_stated_threshold():
    X, y, age = credit(900)
    models = [Mixed(weight).fit(X, y) for weight in (0.0, 1.0)]
    quick = Settings(resamples=20, shuffles=1, max_rows=100, probe_rows=100)
    report = trained_report(models, 1, X, y, sensitive_features=age, threshold=0.1, settings=quick)
    for point, model in zip(report.tradeoff.points, models, strict=True):
        assert point.performance == pytest.approx(np.mean((model.predict_proba(X)[:, 1] >= 0.1) == (y == 1)), abs=1e-12)
    assert report.tradeoff.performance_name == "Accuracy at 0.1"
    quality = {one.key: one.value for one in report.audit.quality}
    assert report.tradeoff.points[1].performance == pytest.approx(quality["accuracy"], abs=1e-12)


def test_three_classes_are_measured_one_against_the_rest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(X)
    found = measured(model, X, y, proper_score(model))
    assert found.accuracy == pytest.approx((p.argmax(axis=1) == y).mean())
    assert found.auc == pytest.approx(np.mean([roc_auc_score(y == k, p[:, k]) for k in range(3)]))
    assert found.calibration_error == calibration_error(p.max(axis=1), p.argmax(axis=1) == y)
    assert math.isnan(measured(model, X[y < 2], y[y < 2], proper_score(model)).auc)


def test_of_many_rows_a_sample_is_tested(monkeypatch: pytest.MonkeyPatch):
    X, y, s = biased(200)
    monkeypatch.setattr("frhsic.selection.measuring.TEST_ROWS", 60)
    model = FRHSICClassifier(**{**QUICK, "epochs": 1}).fit(X, y, sensitive_features=s)
    rows = Rows.of(X, y, s, None, 0)
    assert rows.tested(model, "scores").n == 60
