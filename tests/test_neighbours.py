"""Libraries that people use beside this one, called as their users would call them."""

from __future__ import annotations

import pickle
import re
import warnings

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import skops.io
import xgboost
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.preprocessing import CorrelationRemover
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import frhsic
from frhsic import ParityClassifier, ParityRegressor
from frhsic.parity import gdp_difference

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of other libraries

BOOSTED = lightgbm.LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1)
FOREST = RandomForestClassifier(5, random_state=0)
STACKED = [("a", LogisticRegression()), ("b", FOREST)]


def applicants(n: int = 600) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return columns of which one has a blank in its name, who was hired, and ages."""
    random = np.random.default_rng(0)
    age = pd.Series(random.uniform(18, 65, n).round(), name="age")
    job = ((age - 18) * random.uniform(0, 1, n)).round(1)
    test = random.normal(60, 12, n).round(1)
    chance = 1 / (1 + np.exp(-0.08 * (job - 12) - 0.05 * (test - 60)))
    hired = pd.Series(random.random(n) < chance, name="hired").astype(int)
    return pd.DataFrame({"years in job": job, "test": test}), hired, age


X, Y, AGE = applicants()
DEGREES = pd.Categorical(np.resize(["none", "school", "university"], len(X)))


def parity(estimator=None, cv=2):
    if estimator is None:
        estimator = LogisticRegression()
    return ParityClassifier(estimator, limit="50%", cv=cv, random_state=0, n_jobs=1)


def routed():
    with config_context(enable_metadata_routing=True):
        return parity().set_fit_request(sensitive_features=True)


@pytest.fixture(scope="module")
def model():
    return parity().fit(X, Y, sensitive_features=AGE)


def trusted_after_saving(model, rows, folder):
    """Save and load a model as the warning of `save` says; return the classes to trust."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        frhsic.save(model, folder / "model.frhsic")
    trusted = re.findall(r"'([^']*)'", "".join(str(one.message) for one in warned))
    again = frhsic.load(folder / "model.frhsic", trusted=trusted)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    return trusted


def test_a_pipeline_outside_routes_the_attribute():
    pipeline = make_pipeline(StandardScaler(), parity())
    with pytest.raises(ValueError, match="does not accept the sensitive_features parameter"):
        pipeline.fit(X, Y, sensitive_features=AGE)
    named = pipeline.fit(X, Y, parityclassifier__sensitive_features=AGE).predict_proba(X)
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), routed())
        pipeline.fit(X, Y, sensitive_features=AGE)
    np.testing.assert_array_equal(pipeline.predict_proba(X), named)


def test_a_search_by_auc_and_gap():
    with config_context(enable_metadata_routing=True):
        gap = make_scorer(
            gdp_difference, greater_is_better=False, response_method="predict_proba"
        ).set_score_request(sensitive_features=True)
        search = GridSearchCV(
            routed(),
            {"estimator__C": [1e-6, 1]},
            cv=2,
            refit="auc",
            scoring={"auc": "roc_auc", "gap": gap},
        ).fit(X, Y, sensitive_features=AGE)
    assert (search.cv_results_["mean_test_gap"] <= 0).all()


def test_folds_of_scikit_learn():
    settings = {"cv": 2, "params": {"sensitive_features": AGE}}
    assert cross_validate(parity(), X, Y, **settings)["test_score"].min() > 0.5
    person = np.arange(len(X)) // 3
    parity(cv=GroupKFold(2)).fit(X, Y, sensitive_features=AGE, groups=person).predict(X)
    with pytest.raises(ValueError, match="each of these 600 rows must be in exactly one test set"):
        parity(cv=TimeSeriesSplit(2)).fit(X, Y, sensitive_features=AGE)


def test_ensembles_and_thresholds_outside(model):
    pair = [("a", routed()), ("b", LogisticRegression())]
    with config_context(enable_metadata_routing=True):
        VotingClassifier(pair, voting="soft").fit(X, Y, sensitive_features=AGE).predict_proba(X)
        with pytest.raises(TypeError, match="unexpected keyword argument 'sensitive_features'"):
            StackingClassifier(pair, cv=2).fit(X, Y, sensitive_features=AGE)
    fitted = [("a", model), ("b", LogisticRegression().fit(X, Y))]
    StackingClassifier(fitted, cv="prefit").fit(X, Y).predict(X)
    CalibratedClassifierCV(FrozenEstimator(model)).fit(X, Y).predict_proba(X)
    TunedThresholdClassifierCV(model, cv="prefit", refit=False).fit(X, Y).predict(X)
    older = (AGE > 40).astype(int)
    rates = ThresholdOptimizer(estimator=model, prefit=True, predict_method="predict_proba")
    rates.fit(X, Y, sensitive_features=older).predict(X, sensitive_features=older)


@pytest.mark.parametrize(
    ("estimator", "needs_trust"),
    [
        (BOOSTED, False),
        (xgboost.XGBClassifier(n_estimators=10, n_jobs=1), False),
        (CalibratedClassifierCV(LogisticRegression(), cv=2), True),
        (StackingClassifier(STACKED, cv=2), True),
        (
            make_pipeline(CorrelationRemover(sensitive_feature_ids=["test"]), LogisticRegression()),
            True,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_inside_is_saved_and_loaded(estimator, needs_trust, tmp_path):
    fitted = parity(estimator).fit(X, Y, sensitive_features=AGE)
    assert bool(trusted_after_saving(fitted, X, tmp_path)) == needs_trust


def test_a_frozen_model_and_categories_inside(tmp_path):
    rows = X.assign(degree=DEGREES)
    old = BOOSTED.fit(rows[:300], Y[:300])
    fitted = parity(FrozenEstimator(old)).fit(rows[300:], Y[300:], sensitive_features=AGE[300:])
    assert trusted_after_saving(fitted, rows, tmp_path) == []
    trees = xgboost.XGBClassifier(n_estimators=10, n_jobs=1, enable_categorical=True)
    trusted_after_saving(parity(trees).fit(rows, Y, sensitive_features=AGE), rows, tmp_path)


def test_the_function_of_a_booster_and_a_transformed_target_inside():
    settings = {"objective": "binary", "num_threads": 1, "verbose": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(X[:300], Y[:300]), 10)
    late = slice(300, None)
    parity(booster.predict).fit(X[late], Y[late], sensitive_features=AGE[late]).predict(X)
    logs = TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1)
    regressor = ParityRegressor(logs, cv=2, random_state=0, n_jobs=1)
    regressor.fit(X[["test"]], X["years in job"], sensitive_features=AGE).predict(X[["test"]])


def test_importance_and_dependence(model):
    assert permutation_importance(model, X, Y, n_repeats=2, random_state=0).importances_mean[1] > 0
    assert np.ptp(partial_dependence(model, X, ["test"], grid_resolution=5)["average"]) > 0


def test_other_files_and_processes_give_the_same_scores(model, tmp_path):
    scores = model.predict_proba(X)
    joblib.dump(model, tmp_path / "model.joblib")
    data = skops.io.dumps(model)
    trusted = skops.io.get_untrusted_types(data=data)
    for again in (
        joblib.load(tmp_path / "model.joblib"),
        pickle.loads(pickle.dumps(model)),
        skops.io.loads(data, trusted=trusted),
    ):
        np.testing.assert_array_equal(again.predict_proba(X), scores)
    halves = joblib.Parallel(n_jobs=2)(
        joblib.delayed(model.predict_proba)(rows) for rows in (X[:300], X[300:])
    )
    np.testing.assert_allclose(np.concatenate(halves), scores)
