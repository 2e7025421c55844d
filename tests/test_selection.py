"""The weight that is chosen is the one that the rule describes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from estimator_samples import QUICK, biased
from frhsic import select_weight
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder
from frhsic.independence import gamma_test
from frhsic.parity import gdp
from frhsic.selection import (
    Candidate,
    IndependenceRule,
    PerformanceRule,
    Selection,
    TargetRule,
    UnmetTargetWarning,
)


def candidate(
    weight: float, performance: float, gap: float, hsic: float = 0.1, pvalue: float = 0.0, gain: float = 1.0
) -> Candidate:
    return Candidate(weight, performance, gap, gap + 0.01, hsic, hsic + 0.01, pvalue, gain=gain)


GRID = [
    candidate(0, 0.90, 0.20, hsic=0.30, pvalue=0.001),
    candidate(1, 0.91, 0.12, hsic=0.20, pvalue=0.001),
    candidate(10, 0.88, 0.05, hsic=0.04, pvalue=0.03),
    candidate(100, 0.80, 0.02, hsic=0.01, pvalue=0.4),
]


def test_the_paper_s_rule_takes_the_smallest_weight_that_is_not_rejected():
    admitted, at, why = IndependenceRule(0.05).choose(GRID, True)
    assert admitted == [False, False, False, True]
    assert at == 3
    assert "p = 0.4" in why
    assert "does not show that it is independent" in why
    assert IndependenceRule(0.01).choose(GRID, True)[1] == 2


def test_practical_significance_admits_what_is_rejected_but_below_epsilon():
    _, at, why = IndependenceRule(0.05, epsilon=0.05).choose(GRID, True)
    assert at == 2
    assert "HSIC 0.0400 is below epsilon = 0.05" in why


def test_a_choice_of_no_penalty_is_said():
    grid = [candidate(0, 0.9, 0.2), candidate(1, 0.8, 0.02, gain=0.5)]
    admitted, at, why = PerformanceRule(0.2).choose(grid, True)
    assert (admitted, at) == ([True, False], 0)
    assert why.startswith("no penalised model has less GDP and keeps 80 %")


def test_a_target_takes_the_best_performance_within_it_by_the_upper_bound():
    assert TargetRule(0.13).choose(GRID, True)[:2] == ([False, True, True, True], 1)
    assert TargetRule(0.125).choose(GRID, True)[1] == 2  # 0.12 keeps it, its upper bound 0.13 does not
    assert TargetRule(0.06, measure="hsic").choose(GRID, True)[1] == 2
    # a weight that keeps the limit by luck does not count where a larger one misses it
    uneven = [candidate(weight, 0.9, gap) for weight, gap in ((0, 0.3), (1, 0.05), (10, 0.2), (100, 0.04))]
    assert TargetRule(0.1).choose(uneven, True)[:2] == ([False, False, False, True], 3)
    admitted, at, why = TargetRule(0.001).choose(GRID, True)
    assert not any(admitted)
    assert at == 3
    assert "no weight keeps GDP at 0.001" in why


def test_within_a_loss_of_the_gain_the_least_gap_is_taken():
    grid = [candidate(w, 0.9, gap, gain=gain) for w, gap, gain in ((0, 0.2, 1), (1, 0.1, 1.02), (10, 0.05, 0.9))]
    grid.append(candidate(100, 0.9, 0.0, gain=0.01))
    assert PerformanceRule(0.1).choose(grid, True)[:2] == ([True, True, True, False], 2)
    assert PerformanceRule(0.0).choose(grid, True)[:2] == ([True, True, False, False], 1)
    admitted, at, why = PerformanceRule(0.1).choose(grid, False)
    assert (admitted, at) == ([True, True, True, False], 2)  # the gain has no direction
    assert "keep 90 % of the unpenalised model's gain" in why


def test_without_a_gain_to_keep_the_best_performance_is_taken_and_nothing_is_admitted():
    grid = [candidate(0, 0.3, 0.2, gain=np.nan), candidate(1, 0.2, 0.1, gain=np.nan)]
    assert PerformanceRule().choose(grid, True)[:2] == ([False, False], 0)
    assert PerformanceRule().choose(grid, False)[:2] == ([False, False], 1)


def test_of_equal_performances_the_least_gap_is_taken():
    assert TargetRule(0.5).choose([candidate(0, 0.9, 0.2), candidate(1, 0.9, 0.1)], True)[1] == 1


@pytest.fixture(scope="module")
def chosen() -> Selection:
    X, y, s = biased(600)
    model = FRHSICClassifier("hsic", **QUICK)
    return select_weight(
        model, X, y, sensitive_features=s, rule=TargetRule(0.1), weights=[1.0, 10.0, 100.0], random_state=3
    )


def test_the_grid_has_the_unpenalised_model_and_each_number_is_that_of_the_validation_rows(chosen: Selection):
    assert [c.weight for c in chosen.candidates] == [0.0, 1.0, 10.0, 100.0]
    X, y, s = biased(600)
    _, X_check, _, y_check, _, s_check = train_test_split(X, y, s, test_size=0.2, random_state=3)
    found = next(c for c in chosen.candidates if c.weight == chosen.weight)
    scores = chosen.estimator.predict_proba(X_check)[:, 1]
    assert found.performance == pytest.approx(log_loss(y_check, scores))
    assert found.accuracy == pytest.approx(chosen.estimator.score(X_check, y_check))
    assert found.auc == pytest.approx(roc_auc_score(y_check, scores))
    assert found.gdp == pytest.approx(float(gdp(scores, s_check)))
    assert found.gdp_upper == pytest.approx(gdp(scores, s_check, confidence=0.9, random_state=3).interval[1])
    assert chosen.validation_rows == 120


def test_the_chosen_model_keeps_the_target_and_others_that_do_have_no_better_performance(chosen: Selection):
    assert chosen.satisfied
    table = chosen.to_frame()
    assert table["chosen"].sum() == 1
    within = table[table["gdp_upper"] <= 0.1]
    assert table.loc[table["chosen"], "performance"].item() == within["performance"].min()
    assert not table.loc[table["weight"] == 0, "accepted"].item()
    assert chosen.estimator.penalty_weight == chosen.weight


def test_the_numbers_to_report_are_those_of_other_rows(chosen: Selection):
    X, y, s = biased(400, seed=1)
    found = chosen.evaluate(X, y, sensitive_features=s)
    scores, base = chosen.estimator.predict_proba(X)[:, 1], chosen.models[0].predict_proba(X)[:, 1]
    assert found.performance == pytest.approx(log_loss(y, scores))
    assert found.accuracy == pytest.approx(chosen.estimator.score(X, y))
    constant = log_loss(y, np.full(400, chosen.constant_model.class_prior_[1]))
    assert found.gain == pytest.approx((constant - log_loss(y, scores)) / (constant - log_loss(y, base)))
    assert found.gdp["sensitive"].value == pytest.approx(float(gdp(chosen.estimator.predict_proba(X)[:, 1], s)))
    assert found.rows == 400
    assert 0 <= found.independence.pvalue <= 1
    low, high = found.gdp["sensitive"].interval
    assert f"gdp={{sensitive: {float(found.gdp['sensitive']):.3g} ({low:.3g} to {high:.3g})}}" in repr(found)
    assert len(repr(found)) < 200


def test_the_frontier_has_the_candidates_and_the_unpenalised_model_as_its_baseline(chosen: Selection):
    assert chosen.frontier.baseline == "none"
    assert [p.weight for p in chosen.frontier.of("penalised")] == [1.0, 10.0, 100.0]


def test_a_target_that_no_weight_meets_is_said_to_be_unmet():
    X, y, s = biased(150)
    model = FRHSICClassifier(**{**QUICK, "epochs": 2})
    with pytest.warns(UnmetTargetWarning, match="no weight keeps GDP at 1 × 10⁻⁶"):
        found = select_weight(model, X, y, sensitive_features=s, rule=TargetRule(1e-6), weights=[1.0])
    assert not found.satisfied


@pytest.mark.parametrize("of", ["representation", "scores"])
def test_a_limit_on_hsic_is_one_on_what_the_rule_looks_at(of: str):
    X, y, s = biased(200)
    rule = TargetRule(1.0, measure="hsic", of=of)
    found = select_weight(
        FRHSICClassifier(**{**QUICK, "epochs": 2}),
        X[:100],
        y[:100],
        sensitive_features=s[:100],
        rule=rule,
        weights=[1.0],
        validation=(X[100:], y[100:], s[100:]),
    )
    model = found.estimator
    seen = model.transform(X[100:]) if of == "representation" else model.predict_proba(X[100:])[:, 1]
    test = gamma_test(seen, s[100:], epsilon=1.0)
    taken = next(c for c in found.candidates if c.weight == found.weight)
    assert taken.hsic == pytest.approx(test.statistic)
    assert taken.hsic_upper == pytest.approx(test.statistic + 1.6448536 * test.standard_error)
    assert taken.pvalue == pytest.approx(test.pvalue)


def test_a_regressor_is_chosen_by_its_error_on_rows_that_were_given_with_two_attributes():
    X, _, s = biased(300)
    y, both = X[:, 1] + 0.05 * X[:, 0], np.column_stack([s, X[:, 2]])
    found = select_weight(
        FRHSICRegressor(**{**QUICK, "epochs": 15}),
        X[:200],
        y[:200],
        sensitive_features=both[:200],
        rule=PerformanceRule(0.5),
        weights=[1.0, 30.0],
        validation=(X[200:], y[200:], both[200:]),
    )
    base = found.candidates[0]
    error = np.mean((found.estimator.predict(X[200:]) - y[200:]) ** 2)
    assert next(c for c in found.candidates if c.weight == found.weight).performance == pytest.approx(error)
    constant = np.mean((y[200:] - y[:200].mean()) ** 2)
    assert constant - error >= 0.5 * (constant - base.performance) > 0
    assert found.frontier.higher_is_better is False


def test_a_collapsed_representation_counts_as_independent():
    class Constant(FRHSICClassifier):
        def transform(self, X: Any) -> np.ndarray:
            return np.zeros((len(X), 2))

    X, y, s = biased(100)
    rule = IndependenceRule()
    found = select_weight(Constant(**QUICK), X, y, sensitive_features=s, rule=rule, weights=[1.0], validation=0.5)
    assert found.weight == 0
    assert found.candidates[0].pvalue == 1


def test_bad_input_is_refused():
    X, y, s = biased(40)
    with pytest.raises(TypeError, match=r"lacks a method predict.*pass an FRHSICClassifier or FRHSICRegressor"):
        select_weight(ParityEncoder(), X, y, sensitive_features=s)
    with pytest.raises(TypeError, match="a parameter penalty_weight and a fit that takes sensitive_features"):
        select_weight(LogisticRegression(), X, y, sensitive_features=s)
    with pytest.raises(TypeError, match="pass an unfitted scikit-learn estimator"):
        select_weight(FRHSICClassifier, X, y, sensitive_features=s)
    for wrong in ([], [0], [-1.0], ["many"], 3):
        with pytest.raises(ValueError, match="weights="):
            select_weight(FRHSICClassifier(), X, y, sensitive_features=s, weights=wrong)
    with pytest.raises(ValueError, match="refine=-1"):
        select_weight(FRHSICClassifier(), X, y, sensitive_features=s, refine=-1)
    for wrong in ("first", (X, y)):
        with pytest.raises(ValueError, match=r'pass a share of the rows such as 0\.2, "last"'):
            select_weight(FRHSICClassifier(), X, y, sensitive_features=s, validation=wrong)
    with pytest.raises(ValueError, match="no dependence to choose by"):
        select_weight(FRHSICClassifier(), X, y, sensitive_features=None)
    with pytest.raises(ValueError, match=r"validation=1\.5"):
        select_weight(FRHSICClassifier(), X, y, sensitive_features=s, validation=1.5)
    for wrong in (lambda: TargetRule(-1.0), lambda: TargetRule(0.1, measure="mi"), lambda: PerformanceRule(2.0)):
        with pytest.raises(ValueError, match="pass"):
            wrong()
