"""Predictors under parity among people with the same controls: what is limited, and what fit and
predict take.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from lightgbm import LGBMRegressor
from pytest import approx
from scipy.special import expit, logit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic import (
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    ParityRegressor,
    distill,
    gdp,
    load,
    save,
)
from frhsic.auditing import Settings
from frhsic.estimators import JoinedStrataWarning
from frhsic.estimators.constraints import Constraint, GapCurves, LabelledRows
from frhsic.estimators.families import NumberScores, log_loss_root
from frhsic.estimators.solution import Solution
from frhsic.report import render, trained_report


def people(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    """Cooks whose skill rises with age; nurses, who are older and score more, whose falls."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["cook", "nurse"], n)
    nurse = (job == "nurse") * 1.0
    age = rng.integers(3, size=n) + rng.binomial(1, 0.5 * nurse)
    skill = (1 - 2 * nurse) * (age - 1 - nurse / 2) + 0.7 * rng.normal(size=n)
    X = pd.DataFrame({"skill": skill, "other": rng.normal(size=n), "nurse": nurse})
    X["both"] = skill * nurse
    X["job"] = job
    y = rng.random(n) < 1 / (1 + np.exp(-(skill + X["other"] + 2 * nurse - 1)))
    return X, y.to_numpy(dtype=int), pd.Series(30.0 + 10 * age, name="age")


X, Y, AGE = people()
NUMBERS = X.drop(columns="job")
JOB = X["job"]
QUICK = {"attribute_estimator": Ridge(), "cv": 2, "limit": "30%", "random_state": 0}


def classifier(**parameters) -> ParityClassifier:
    return ParityClassifier(LogisticRegression(), **{**QUICK, **parameters})


@pytest.fixture(scope="module")
def fitted() -> ParityClassifier:
    return classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features=JOB)


# What is limited


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_the_gap_among_people_of_equal_controls_is_limited(aim):
    model = classifier(aim=aim).fit(NUMBERS, Y, sensitive_features=AGE, control_features=JOB)
    choice = model.choice_
    assert choice.met
    assert choice.gaps["age"].value <= 0.31 * choice.unconstrained["age"].value
    assert "The gap by age among people with the same job goes" in str(choice)
    assert "among people with the same job" in repr(model.frontier_)
    new, _, age = people(4000, 1)
    outputs = model.predict_proba(new[[*NUMBERS]], control_features=new["job"])[:, 1]
    free = model.at(None).predict_proba(new[[*NUMBERS]], control_features=new["job"])[:, 1]
    if aim == "decision":
        outputs, free = outputs > 0.5, free > 0.5
    gaps = [float(gdp(each, age, control_features=new["job"])) for each in (outputs, free)]
    assert gaps[0] < 0.5 * gaps[1]


def test_frontiers_state_the_gap_within_strata(fitted):
    rows = LabelledRows(
        X=None,
        codes=np.zeros((len(Y), 0)),
        s=AGE.to_numpy()[:, None],
        names=("age",),
        weights=None,
        groups=None,
        fold=np.zeros(len(Y), dtype=int),
        seed=0,
        y=Y,
        labels=Y,
        numeric=False,
    )
    gap = fitted.choice_.unconstrained["age"]
    out_of_fold = np.empty(len(Y))
    indicators = pd.DataFrame({f"stratum {job}": job == JOB for job in ("cook", "nurse")}) * 1.0
    seen = pd.concat([NUMBERS, indicators], axis=1)
    folds = fitted._folds(2, seen, Y, None)
    for fold, (model,) in enumerate(fitted.models_):
        out_of_fold[folds == fold] = model.predict_proba(seen)[folds == fold, 1]
    alone = gdp(out_of_fold, rows.s[:, 0], control_features=JOB, resamples=49)
    assert gap.value == approx(alone.value, rel=0.05)  # but for recalibration


def test_numbers_weights_groups_and_several_attributes_and_conditions():
    both = pd.DataFrame({"age": AGE, "hours": X["other"].round()})
    weights = np.where(np.arange(len(Y)) < 400, 1.0, 0.0)
    groups = np.arange(len(Y)) // 2
    model = ParityRegressor(LinearRegression(), **QUICK).fit(
        X=NUMBERS,
        y=X["skill"] + X["other"] + X["other"] ** 2 / 4,
        sensitive_features=both,
        control_features=JOB,
        sample_weight=weights,
        groups=groups,
    )
    assert model.strata_.rows == (*((JOB[:400] == job).sum() for job in ("cook", "nurse")), 0)
    assert model.choice_.gaps["age"].value <= 0.31 * model.choice_.unconstrained["age"].value
    for condition in ("positive", "both"):
        one = classifier(condition=condition)
        one.fit(NUMBERS, Y, sensitive_features=AGE, control_features=JOB)
        assert one.choice_.gaps["age"].value < 0.5 * one.choice_.unconstrained["age"].value


def test_a_frozen_model_and_one_that_uses_s_are_limited_within_strata():
    half = len(Y) // 2
    frozen = FrozenEstimator(LogisticRegression().fit(NUMBERS[:half], Y[:half]))
    rest = {"sensitive_features": AGE[half:], "control_features": JOB[half:]}
    model = ParityClassifier(frozen, **QUICK).fit(NUMBERS[half:], Y[half:], **rest)
    assert model.choice_.gaps["age"].value < 0.5 * model.choice_.unconstrained["age"].value
    known = classifier(uses_sensitive=True)
    known.fit(NUMBERS, Y, sensitive_features=AGE, control_features=JOB)
    assert known.choice_.gaps["age"].value < 0.5 * known.choice_.unconstrained["age"].value
    assert known.predict(NUMBERS, sensitive_features=AGE, control_features=JOB).shape == Y.shape


def test_three_classes_have_a_gap_within_strata_and_may_use_s():
    noise = np.random.default_rng(1).normal(size=len(Y))
    classes = np.digitize(X["skill"] + X["other"] + 2 * noise, [-1, 1])
    for uses in (False, True):
        line = make_pipeline(StandardScaler(), LogisticRegression())
        model = ParityClassifier(line, **{**QUICK, "uses_sensitive": uses, "limit": "50%"})
        model.fit(NUMBERS, classes, sensitive_features=AGE, control_features=JOB)
        assert model.choice_.gaps["age"].value < 0.6 * model.choice_.unconstrained["age"].value


def test_decisions_limit_one_of_several_attributes():
    both = np.column_stack([AGE, X["other"].round()])
    model = classifier(aim="decision", limit={"sensitive_1": "40%"})
    model.fit(NUMBERS, Y, sensitive_features=both)
    before, after = model.choice_.unconstrained, model.choice_.gaps
    assert after["sensitive_1"].value <= 0.41 * before["sensitive_1"].value
    assert after["sensitive_2"].value > 0.5 * before["sensitive_2"].value


# Coefficients of strata


def solved(counts: tuple[int, int]) -> np.ndarray:
    """Return what strata of some sizes add to the common coefficients at a strict trade-off, and
    the best coefficients of each stratum by itself; the models are those of the law.
    """
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1], counts)
    n = len(strata)
    s = (rng.random(n) < 0.5) * 1.0
    turn = np.where(strata == 0, 1.0, -0.5)
    x = turn * (s - 0.5) * 2 + 0.8 * rng.normal(size=n)
    y = x + 0.5 * rng.normal(size=n)
    odds = 2 * turn * x / 0.64
    rows = LabelledRows(
        X=None,
        codes=x[:, None],
        s=s[:, None],
        names=("s",),
        weights=None,
        groups=None,
        fold=np.arange(n) % 5,
        seed=0,
        y=y,
        labels=y,
        numeric=True,
        strata=strata,
        n_strata=3,
    )
    constraint = Constraint.fit(rows, 0, "all")
    means = np.tanh(odds / 2)[:, None]
    solution = Solution.fit(NumberScores(), rows, (constraint,), x, means, {"s": ()})
    parameters = solution.parameters[20].mean(axis=0)
    return parameters[2:] / parameters[1]


def test_large_strata_have_coefficients_of_their_own_and_small_ones_the_common_ones():
    """The theorem has c = μ sign g for two equally frequent values of S, as long as there is a gap:
    of equal size here, with opposite signs.
    """
    common, first, second = solved((8000, 8000))
    assert common + first > 0.3
    assert common + second == approx(-(common + first), rel=0.1)  # but for ridge and smoothing
    rare, large, small = solved((8000, 20))
    assert rare + large == approx(common + first, rel=0.3)
    assert abs(small - large) < 0.4 * abs(second - first)


def test_curves_of_a_stratum_in_which_s_has_one_value_are_zero():
    rng = np.random.default_rng(0)
    s = rng.integers(3, size=(90, 1)) * 1.0
    strata = np.repeat([0, 1, 2], 30)
    s[strata == 1] = 2.0
    y = np.zeros(90)
    rows = (s, y, np.ones(90))
    sample = LabelledRows(None, s, s, ("s",), None, None, strata, 0, y, y, True, strata=strata)
    constraint = Constraint.fit(sample, 0, "all")
    curves = GapCurves.of([constraint], *rows, None, strata, 4)
    assert curves.mass.sum() == approx(1)
    f = rng.normal(size=(90, 1))
    expected = 0.0
    for code in (0, 2):
        own = strata == code
        frame = pd.DataFrame({"f": f[own, 0], "s": s[own, 0]})
        expected += abs(frame.groupby("s")["f"].transform("mean") - frame["f"].mean()).sum() / 90
    assert curves.largest(curves.functions.T @ f) == approx(expected)
    alone = replace(sample, s=strata[:, None] * 1.0)
    with pytest.raises(ValueError, match="is constant among people with the same control_features"):
        Constraint.fit(alone, 0, "all")


# What fit and predict take


def test_controls_among_the_columns_of_x_are_not_passed_again(fitted):
    named = classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features="nurse")
    again = classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features=X[["nurse"]])
    assert named.strata_.names == ("0", "1", "other")
    scores = named.predict_proba(NUMBERS)
    np.testing.assert_array_equal(scores, again.predict_proba(NUMBERS))
    np.testing.assert_array_equal(scores, again.predict_proba(pl.DataFrame(NUMBERS)))
    assert scores[:5] == approx(named.predict_proba(NUMBERS.assign(more=1.0)[:5]))
    assert named.models_[0][0].n_features_in_ == 4
    assert fitted.models_[0][0].n_features_in_ == 6  # and saw the strata
    with pytest.raises(ValueError, match="people with the same job, which X lacks; pass control_f"):
        fitted.predict(NUMBERS)
    with pytest.raises(ValueError, match="with different values"):
        classifier().fit(
            NUMBERS, Y, sensitive_features=AGE, control_features=1 - NUMBERS[["nurse"]]
        )


def test_new_missing_and_rare_controls_have_the_common_coefficients(fitted):
    rows = NUMBERS[:3]
    scores = fitted.predict_proba(rows, control_features=["pilot", None, "pope"])
    codes = np.full(3, fitted.strata_.other)
    parts = fitted._regressions(rows, strata=codes)
    each = []
    for (eta, means), own in zip(parts, fitted.solution_.parameters[fitted.choice_.position]):
        m = means - fitted.solution_.centers[2]
        count = m.shape[1]
        assert own[2 + count :].any()  # not used here
        calibrated = expit(own[0] + own[1] * logit(eta))
        each.append(log_loss_root(calibrated, m @ own[2 : 2 + count])[0])
    assert scores[:, 1] == approx(np.mean(each, axis=0))


@pytest.mark.filterwarnings("ignore::frhsic.estimators.IndistinctGapWarning")
def test_strata_are_said_to_be_joined():
    rare = JOB.where(JOB.index > 10, "pope")
    with pytest.warns(
        JoinedStrataWarning, match="1 small group with the same job was merged into 'other'"
    ):
        model = classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features=rare)
    assert model.strata_.rows[-1] == 11
    with pytest.warns(JoinedStrataWarning, match="other is numeric and was split into 5 bins"):
        classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features="other")


@pytest.mark.filterwarnings("ignore::frhsic.estimators.IndistinctGapWarning")
def test_a_report_has_one_interval_of_a_gap_and_counts_its_own_rows():
    rare = JOB.where(JOB.index > 10, "pope")
    with pytest.warns(JoinedStrataWarning, match="which has 11 rows"):
        model = classifier().fit(NUMBERS, Y, sensitive_features=AGE, control_features=rare)
    rows = slice(6, None)
    report = trained_report(
        model,
        NUMBERS[rows],
        Y[rows],
        sensitive_features=AGE[rows],
        control_features=rare[rows],
        settings=Settings(fast=True, resamples=60),
    )
    within = report.audit["age"].all_rows.within
    (stated,) = report.tradeoff.after.gaps
    (chosen,) = (stop.point.gaps[0] for stop in report.tradeoff.stops if stop.point.chosen)
    for gap in (stated, chosen):
        assert (gap.low, gap.high) == (within["gdp"].interval.low, within["gdp"].interval.high)
    (joined,) = (remark for remark in report.audit.context.remarks if "merged into" in remark)
    assert joined.endswith("'other', which has 5 rows.")
    assert within.strata["other"].rows == 5
    page = render(report)
    assert "gaps among people with the same job" in page
    assert "within control groups" not in page


def test_arrays_and_own_regressions_take_controls(few_trees):
    model = ParityClassifier(cv=2, random_state=0)
    model.fit(NUMBERS.to_numpy(), Y, sensitive_features=AGE, control_features=JOB.to_numpy())
    assert model.strata_.label == "control"
    chances = model.predict_proba(NUMBERS.to_numpy(), control_features=JOB)
    assert chances.shape == (len(Y), 2)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.predict(NUMBERS.to_numpy(), control_features=JOB[:3])


def test_controls_are_routed_through_pipelines():
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(sensitive_features=True, control_features=True)
        model = model.set_predict_request(control_features=True)
        pipeline = make_pipeline(StandardScaler(), model)
        pipeline.fit(NUMBERS, Y, sensitive_features=AGE, control_features=JOB)
        labels = pipeline.predict(NUMBERS, control_features=JOB)
    assert labels.shape == Y.shape
    assert pipeline[-1].choice_.controls == "job"


def test_other_estimators_say_that_they_take_no_controls():
    for model in (ParityEncoder(), ParityCoupling()):
        with pytest.raises(
            TypeError, match=f"fit of {type(model).__name__} doesn't accept control_f"
        ):
            model.fit(NUMBERS, sensitive_features=AGE, control_features=JOB)


def test_without_sensitive_features_controls_limit_nothing():
    with pytest.warns(match="no sensitive_features"):
        model = classifier(limit="50%").fit(NUMBERS, Y, control_features=JOB)
    assert model.strata_ is None
    assert model.predict(NUMBERS).shape == Y.shape


# Files, and plain models


def test_a_model_with_strata_comes_back(fitted, tmp_path: Path):
    save(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.strata_ == fitted.strata_
    np.testing.assert_array_equal(
        again.predict_proba(NUMBERS, control_features=JOB),
        fitted.predict_proba(NUMBERS, control_features=JOB),
    )
    assert str(again.at("50%").choice_) == str(fitted.at("50%").choice_)


def test_a_plain_model_imitates_one_with_controls_among_its_columns():
    student = LGBMRegressor(n_estimators=20, verbose=-1)
    arguments = {"sensitive_features": AGE, "control_features": "nurse"}
    plain = distill(classifier(limit="60%"), student, NUMBERS, Y, **arguments)
    assert plain.model.predict(NUMBERS).shape == Y.shape
    with pytest.raises(ValueError, match="control_features are not columns of X"):
        distill(classifier(), student, NUMBERS, Y, sensitive_features=AGE, control_features=JOB)
