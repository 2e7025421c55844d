"""The weight that is chosen is the one that the limit describes, from performance that counts from
a constant up.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from estimator_samples import biased, quick
from frhsic import select_weight
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, UnmetLimitWarning
from frhsic.independence import gamma_test, hsic_interval
from frhsic.parity import gdp
from frhsic.parity.limits import parse_limits
from frhsic.selection import LowGainWarning, Selection
from frhsic.selection.rule import LIMITED_MEASURES, Candidate, choose, reason


def credit(n: int, seed: int = 0, rate: float = 0.06) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, defaults of a share of the rows, and ages. Debt, income and age tell of
    default.
    """
    rng = np.random.default_rng(seed)
    age = np.round(rng.gamma(6, 4, size=n) + 18)
    income = np.exp(rng.normal(10 + 0.02 * (age - 42), 0.6))
    debt = np.where(
        rng.random(n) < 0.4, 0.0, rng.exponential(0.5, size=n)
    )  # in incomes, often none
    X = np.column_stack([np.log(income), debt, rng.normal(size=n)])
    risk = 2 * debt - X[:, 0] - 0.02 * age + rng.logistic(scale=1.2, size=n)
    return X, (risk > np.quantile(risk, 1 - rate)).astype(int), age


class Mixed(ClassifierMixin, BaseEstimator):
    """A logistic regression, mixed with a constant: the larger the weight, the less of the
    regression is left.
    """

    def __init__(self, penalty_weight: float = 1.0) -> None:
        self.penalty_weight = penalty_weight

    def fit(
        self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Mixed:
        self.model_ = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.classes_, self.rate_, self.rows_ = (
            self.model_.classes_,
            float(np.mean(y == self.model_.classes_[1])),
            X,
        )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        p = self.rate_ + (self.model_.predict_proba(X)[:, 1] - self.rate_) / (
            1 + self.penalty_weight
        )
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class Silent(BaseEstimator):
    """It has a weight and predicts nothing."""

    def __init__(self, penalty_weight: float = 1.0) -> None:
        self.penalty_weight = penalty_weight


def candidate(
    weight: float,
    performance: float,
    gap: float,
    hsic: float = 0.1,
    pvalue: float = 0.0,
    gain: float = 1.0,
) -> Candidate:
    gaps, bounds = {"age": gap, "hours": gap / 2}, {"age": gap + 0.01, "hours": gap / 2 + 0.01}
    return Candidate(weight, performance, gain, gaps, bounds, hsic, hsic + 0.01, pvalue)


GRID = [
    candidate(0, 0.90, 0.20, hsic=0.30, pvalue=0.001),
    candidate(1, 0.91, 0.12, hsic=0.20, pvalue=0.001, gain=1.02),
    candidate(10, 0.88, 0.05, hsic=0.04, pvalue=0.03, gain=0.9),
    candidate(100, 0.80, 0.02, hsic=0.01, pvalue=0.4, gain=0.01),
]
NO, YES = False, True


@pytest.mark.parametrize(
    ("limit", "admitted", "at"),
    [
        ("p >= 0.05", [NO, NO, NO, YES], 3),
        ("p >= 0.01", [NO, NO, YES, YES], 2),
        ("p >= 0.9", [NO, NO, NO, NO], 3),  # rejected everywhere: the least HSIC
        (0.13, [NO, YES, YES, YES], 1),
        ("gdp <= 0.125", [NO, NO, YES, YES], 2),  # 0.12 keeps it, its upper bound 0.13 does not
        (0.001, [NO, NO, NO, NO], 3),
        ({"age": 0.13}, [NO, YES, YES, YES], 1),
        ({"hours": 0.07}, [NO, YES, YES, YES], 1),
        ({"hours": 0.07, "age": 0.1}, [NO, NO, YES, YES], 2),
        ("60%", [NO, YES, YES, YES], 1),
        ("gdp <= 59%", [NO, NO, YES, YES], 2),
        (0, [NO, NO, NO, YES], 3),
        ("hsic <= 0.06", [NO, NO, YES, YES], 2),
        ("gain >= 90%", [YES, YES, YES, NO], 2),
        ("gain >= 1", [YES, YES, NO, NO], 1),
        (["gain >= 90%", 0.1], [NO, NO, YES, NO], 2),
        (["hsic <= 0.06", "60%"], [NO, NO, YES, YES], 2),
        (None, [YES, YES, YES, YES], 1),
    ],
)
def test_a_limit_admits_and_takes_what_it_describes(limit: Any, admitted: list[bool], at: int):
    limits = parse_limits(limit, LIMITED_MEASURES)
    assert choose(GRID, limits) == (admitted, at)
    assert len(reason(GRID[at], limits, admitted[at], 100)) > 20


def test_a_weight_that_keeps_a_limit_by_luck_does_not_count_where_a_larger_one_misses_it():
    uneven = [
        candidate(weight, 0.9, gap) for weight, gap in ((0, 0.3), (1, 0.05), (10, 0.2), (100, 0.04))
    ]
    assert choose(uneven, parse_limits(0.1, LIMITED_MEASURES)) == ([NO, NO, NO, YES], 3)
    equal = [candidate(0, 0.9, 0.2), candidate(1, 0.9, 0.1)]
    assert (
        choose(equal, parse_limits(0.5, LIMITED_MEASURES))[1] == 1
    )  # of equal performances the least gap
    without = [replace(one, gain=np.nan) for one in GRID]
    # no gain to keep: the best performance
    assert choose(without, parse_limits("gain >= 80%", LIMITED_MEASURES)) == ([NO] * 4, 1)


@pytest.fixture(scope="module")
def chosen() -> Selection:
    X, y, s = biased(1500)
    model = FRHSICClassifier("hsic", **quick(epochs=15))
    return select_weight(
        model,
        X,
        y,
        sensitive_features=s,
        limit=0.1,
        penalty_weights=[1.0, 10.0, 100.0],
        random_state=3,
    )


def test_each_number_is_that_of_the_validation_rows(chosen: Selection):
    assert [c.penalty_weight for c in chosen.candidates] == [0.0, 1.0, 10.0, 100.0]
    X, y, s = biased(1500)
    _, X_check, y_train, y_check, _, s_check = train_test_split(
        X, y, s, test_size=0.2, random_state=3
    )
    taken = next(c for c in chosen.candidates if c.penalty_weight == chosen.penalty_weight)
    scores, base = (
        model.predict_proba(X_check)[:, 1] for model in (chosen.estimator, chosen.models[0])
    )
    gap = gdp(scores, s_check, random_state=3)
    constant = log_loss(y_check, np.full(300, y_train.mean()))
    assert taken.performance == pytest.approx(-log_loss(y_check, scores))
    assert taken.gain == pytest.approx(
        (constant - log_loss(y_check, scores)) / (constant - log_loss(y_check, base))
    )
    assert taken.gdp == pytest.approx(gap.value)
    assert taken.gdp_upper == pytest.approx(gap.interval[1])
    assert taken.pvalue == pytest.approx(
        gamma_test(chosen.estimator.transform(X_check), s_check).pvalue
    )


def test_the_chosen_model_keeps_the_target_and_others_that_do_have_no_better_performance(
    chosen: Selection,
):
    assert chosen.satisfied
    table = chosen.to_frame()
    assert table["chosen"].sum() == 1
    assert (
        table.loc[table["chosen"], "performance"].item()
        == table[table["accepted"]]["performance"].max()
    )
    assert (table[table["accepted"]]["gdp_upper"] <= 0.1).all()
    assert chosen.estimator.penalty_weight == chosen.penalty_weight
    assert table["penalty_weight"].tolist() == [0.0, 1.0, 10.0, 100.0]
    assert str(chosen).count("chosen") == 2


def test_a_limit_that_only_estimates_keep_says_how_many_rows_would_settle_it():
    """The upper bound is 0.015 above 0.08; a limit of 0.09 needs (0.015 / 0.01)² as many rows."""
    limits = parse_limits(0.09, LIMITED_MEASURES)
    path = [replace(one, gap_bounds=dict.fromkeys(one.gaps, one.gdp + 0.015)) for one in GRID[:3]]
    path[2] = replace(path[2], gaps={"age": 0.08}, gap_bounds={"age": 0.095})
    admitted, at = choose(path, limits)
    assert (admitted, at) == ([False, False, False], 2)
    text = reason(path[at], limits, False, 1000)
    assert text.startswith(
        "GDP at most 0.0900 is probable, but not certain; about 2,300 validation"
    )
    assert reason(path[0], limits, False, 1000).startswith("no weight gives")


def test_the_numbers_to_report_are_those_of_other_rows(chosen: Selection):
    X, y, s = biased(400, seed=1)
    s = np.where(np.arange(400) % 10 == 3, np.nan, s)
    known = ~np.isnan(s)
    result = chosen.evaluate(X, y, sensitive_features=s)
    scores = chosen.estimator.predict_proba(X[known])[:, 1]
    assert result.performance == pytest.approx(-log_loss(y[known], scores))
    assert result.gdp["sensitive"].value == pytest.approx(float(gdp(scores, s[known])))
    assert result.rows == known.sum()
    with pytest.raises(ValueError, match="missing in all"):
        chosen.evaluate(X, y, sensitive_features=np.full(400, np.nan))


@pytest.mark.slow
def test_a_target_is_missed_no_more_often_than_its_confidence_says_for_a_smooth_mean():
    """The limit just below the gap of one candidate: the hardest place. 400 draws have a standard
    error of .008.
    """
    rng, missed = np.random.default_rng(0), 0
    sizes = 0.8 ** np.arange(6)
    limit = sizes[2] * 0.25 * 0.999
    for _ in range(400):
        u, noise = rng.random(800), 0.3 * rng.normal(size=800)
        bounds = [gdp(a * (u - 0.5) + noise, u, resamples=99) for a in sizes]
        uppers = [b.interval[1] for b in bounds]
        path = [
            Candidate(float(k), -float(k), 1.0, {"s": 0.0}, {"s": upper}, 0.0, 0.0, 1.0)
            for k, upper in enumerate(uppers)
        ]
        admitted, at = choose(path, parse_limits(limit, LIMITED_MEASURES))
        missed += admitted[at] and at <= 2
    assert missed / 400 < 0.025 + 4 * 0.008


def test_a_limit_on_hsic_is_one_on_the_representation_with_an_upper_bound():
    X, y, s = biased(200)
    rows = {"sensitive_features": s[:100], "validation": (X[100:], y[100:], s[100:])}
    model = FRHSICClassifier(**quick(epochs=2))
    options = {"limit": "hsic <= 1", "penalty_weights": [1.0]}
    result = select_weight(model, X[:100], y[:100], **options, **rows)
    z = result.estimator.transform(X[100:])
    taken = next(c for c in result.candidates if c.penalty_weight == result.penalty_weight)
    assert taken.hsic == pytest.approx(gamma_test(z, s[100:]).statistic)
    assert taken.hsic_upper == pytest.approx(hsic_interval(z, s[100:]).interval.high)
    estimates = select_weight(model, X[:100], y[:100], confidence=None, **options, **rows)
    taken = next(c for c in estimates.candidates if c.penalty_weight == estimates.penalty_weight)
    assert (taken.hsic_upper, taken.gdp_upper) == (taken.hsic, taken.gdp)


def test_a_share_of_the_base_rate_is_one_of_the_validation_rows():
    X, y, s = biased(400)
    rows = {"sensitive_features": s[:300], "validation": (X[300:], y[300:], s[300:])}
    options = {"penalty_weights": [0.5, 2.0, 8.0], "scoring": "neg_log_loss"}
    shares = [
        select_weight(Mixed(), X[:300], y[:300], limit=limit, **options, **rows)
        for limit in ("gdp <= 60% of base rate", 0.6 * float(y[300:].mean()))
    ]
    assert [c.accepted for c in shares[0].candidates] == [c.accepted for c in shares[1].candidates]
    assert shares[0].penalty_weight == shares[1].penalty_weight


def test_a_regressor_with_two_attributes_is_measured_by_the_worst():
    X, _, s = biased(300)
    y, both = X[:, 1] + 0.05 * X[:, 0], np.column_stack([s, X[:, 2]])
    model, rest = FRHSICRegressor(**quick(epochs=15)), (X[200:], y[200:], both[200:])
    rows = {"sensitive_features": both[:200], "validation": rest}
    result = select_weight(
        model, X[:200], y[:200], limit="gain >= 50%", penalty_weights=[1.0, 30.0], **rows
    )
    taken = next(c for c in result.candidates if c.penalty_weight == result.penalty_weight)
    predicted = result.estimator.predict(X[200:])
    assert taken.performance == pytest.approx(-np.mean((predicted - y[200:]) ** 2))
    assert taken.gdp == pytest.approx(max(float(gdp(predicted, column)) for column in both[200:].T))


# a rare outcome, where a constant has nearly the accuracy of any model


@pytest.mark.parametrize(
    ("limit", "scoring"),
    [
        ("gain >= 80%", None),
        (0.05, "accuracy"),
        (1e-4, None),
        ("gain >= 0.99", "neg_brier_score"),
        ("p >= 0.05", None),
    ],
)
def test_no_limit_is_content_with_a_model_that_hardly_beats_the_constant(limit: Any, scoring: Any):
    X, y, age = credit(1500)
    with warnings.catch_warnings(record=True, action="always") as caught:
        result = select_weight(
            Mixed(),
            X,
            y,
            sensitive_features=age,
            limit=limit,
            scoring=scoring,
            penalty_weights=[1, 30, 1e4],
        )
    taken = next(c for c in result.candidates if c.penalty_weight == result.penalty_weight)
    assert any(issubclass(one.category, LowGainWarning) for one in caught) == (
        not taken.gain >= 0.25
    )
    assert not result.satisfied or taken.gain >= 0.25


def test_an_unpenalized_model_that_does_not_beat_the_constant_has_no_gain():
    rng = np.random.default_rng(0)
    X, y, s = rng.normal(size=(120, 30)), rng.integers(0, 2, 120), rng.normal(size=120)
    with pytest.warns((LowGainWarning, UnmetLimitWarning)) as caught:
        result = select_weight(Mixed(), X, y, sensitive_features=s, penalty_weights=[1, 10])
    assert {one.category for one in caught} == {LowGainWarning, UnmetLimitWarning}
    assert caught[0].filename == __file__
    assert not result.satisfied
    assert all(np.isnan(c.gain) for c in result.candidates)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_scorer_by_name_is_taken():
    X, y, age = credit(600)
    rows = {"sensitive_features": age, "validation": (X, y, age)}
    result = select_weight(Mixed(), X, y, scoring="roc_auc", penalty_weights=[1.0], **rows)
    auc = roc_auc_score(y, result.models[1].predict_proba(X)[:, 1])
    assert result.candidates[1].performance == pytest.approx(auc)


# groups


class Grouped(Mixed):
    """A model that notes the groups of the rows that it was fitted on."""

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, groups: Any = None) -> Grouped:
        self.groups_ = groups
        super().fit(X, y, sensitive_features=sensitive_features)
        return self


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_groups_are_trained_on_or_chosen_on_and_bounds_count_them():
    X, y, age = credit(300, rate=0.3)
    persons = np.repeat(np.arange(100), 3)
    X, y, age = (part[persons] for part in (X, y, age))  # three equal rows of each person
    result = select_weight(
        Grouped(), X, y, sensitive_features=age, groups=persons, penalty_weights=[0.5]
    )
    held = ~np.isin(persons, result.models[1].groups_)
    assert held.sum() == 60
    scores = result.models[1].predict_proba(X[held])[:, 1]
    gap = gdp(scores, age[held], groups=persons[held])
    once = np.unique(persons[held], return_index=True)[1]
    for validation, rows in (
        (0.2, slice(None)),
        ((X[held], y[held], age[held], persons[held]), ~held),
    ):
        kept = {"sensitive_features": age[rows], "groups": persons[rows], "validation": validation}
        again = select_weight(Grouped(), X[rows], y[rows], penalty_weights=[0.5], **kept)
        assert again.candidates[1].gdp_upper == pytest.approx(gap.interval[1])
        assert again.candidates[1].pvalue == pytest.approx(
            gamma_test(scores[once], age[held][once]).pvalue
        )


def test_a_collapsed_representation_counts_as_independent():
    class Constant(FRHSICClassifier):
        def transform(self, X: Any) -> np.ndarray:
            return np.zeros((len(X), 2))

    X, y, s = biased(100)
    result = select_weight(
        Constant(**quick()),
        X,
        y,
        sensitive_features=s,
        limit="p >= 0.05",
        penalty_weights=[1.0],
        validation=0.5,
    )
    assert (result.penalty_weight, result.candidates[0].pvalue) == (0, 1)


X40, Y40, S40 = biased(40)
REFUSED = [
    ("gain <= 0.5", ValueError, "gain >= 80%"),
    ("gpd <= 0.02", ValueError, "Did you mean 'gdp'"),
    ("gain >= 90", ValueError, "at most 1"),
    ({"hours": 0.1}, ValueError, "limit names 'hours'; the attributes are sensitive"),
    (True, TypeError, "limit is True; pass a number"),
]


@pytest.mark.parametrize(
    ("estimator", "changes", "error", "message"),
    [
        (Silent(), {}, TypeError, "method predict"),
        (LogisticRegression(), {}, TypeError, "a parameter penalty_weight"),
        (FRHSICClassifier, {}, TypeError, "estimator class instead"),
        *((Mixed(), {"limit": limit}, error, message) for limit, error, message in REFUSED),
        (Mixed(), {"confidence": 1.0}, ValueError, "confidence"),
        (Mixed(), {"penalty_weights": [0]}, ValueError, "penalty_weights="),
        (Mixed(), {"penalty_weights": [-1.0]}, ValueError, "penalty_weights="),
        (Mixed(), {"validation": "first"}, ValueError, "a share of the rows"),
        (Mixed(), {"validation": (X40, Y40)}, ValueError, "a share of the rows"),
        (Mixed(), {"validation": 1.5}, ValueError, "1.5"),
        (
            Mixed(),
            {"validation": (X40, Y40, S40), "groups": np.arange(40)},
            ValueError,
            "fourth element",
        ),
        (Mixed(), {"sensitive_features": None}, ValueError, "no dependence to limit"),
        (Mixed(), {"scoring": r2_score}, ValueError, "scoring"),
    ],
)
def test_bad_input_is_refused(
    estimator: Any, changes: dict[str, Any], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        select_weight(estimator, X40, Y40, **{"sensitive_features": S40} | changes)
