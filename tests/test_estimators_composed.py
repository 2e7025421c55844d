"""Inside Pipeline, GridSearchCV and cross_validate, with the attribute routed to who asks for it; and the package."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn import config_context
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimator_samples import biased, quick
from frhsic.estimators import (
    FRHSICClassifier,
    MissingSensitiveFeaturesWarning,
)
from frhsic.parity import gdp_difference

SHORT = quick(epochs=6)


@pytest.fixture
def routing() -> Iterator[None]:
    with config_context(enable_metadata_routing=True):
        yield


def gap_scorer() -> object:
    made = make_scorer(gdp_difference, greater_is_better=False, response_method="predict_proba")
    return made.set_score_request(sensitive_features=True)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_routes_the_attribute_to_its_last_step():
    X, y, s = biased(150)
    scaled = StandardScaler().fit_transform(X)
    alone = FRHSICClassifier(**SHORT).fit(scaled, y, sensitive_features=s)
    last = FRHSICClassifier(**SHORT).set_fit_request(sensitive_features=True)
    pipeline = make_pipeline(StandardScaler(), last).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(pipeline.predict_proba(X), alone.predict_proba(scaled))


@pytest.mark.usefixtures("routing")
def test_a_grid_search_gives_each_fold_its_rows_of_the_attribute():
    X, y, s = biased(150)
    folds = KFold(2)
    search = GridSearchCV(
        FRHSICClassifier(**SHORT).set_fit_request(sensitive_features=True),
        {"penalty_weight": [0.0, 100.0]},
        scoring={"accuracy": "accuracy", "gap": gap_scorer()},
        refit="gap",
        cv=folds,
    ).fit(X, y, sensitive_features=s)
    fit_on, check_on = next(iter(folds.split(X)))
    strong = FRHSICClassifier(penalty_weight=100.0, **SHORT).fit(X[fit_on], y[fit_on], sensitive_features=s[fit_on])
    gap = gdp_difference(None, strong.predict_proba(X[check_on])[:, 1], sensitive_features=s[check_on])
    assert search.cv_results_["split0_test_gap"][1] == pytest.approx(-gap)
    assert search.best_params_ == {"penalty_weight": 100.0}


@pytest.mark.usefixtures("routing")
def test_an_attribute_that_was_not_asked_for_is_not_dropped_in_silence():
    from sklearn.exceptions import UnsetMetadataPassedError

    X, y, s = biased(60)
    with pytest.raises(UnsetMetadataPassedError, match="sensitive_features"):
        make_pipeline(StandardScaler(), FRHSICClassifier(**SHORT)).fit(X, y, sensitive_features=s)
    with pytest.warns(MissingSensitiveFeaturesWarning):
        make_pipeline(StandardScaler(), FRHSICClassifier(**quick(epochs=1))).fit(X, y)
