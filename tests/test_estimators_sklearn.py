"""scikit-learn's own checks, for each of the three estimators."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, MissingSensitiveFeaturesWarning, ParityEncoder
from frhsic.training import MLP, Training

TRAINING = Training(epochs=15, batch_size=64, learning_rate=0.03)
SMALL = {"encoder": MLP((16,), 8), "training": TRAINING}

BATCHES = "rows are drawn into mini-batches, so weight 2 or 0 is not the same as a row twice or not at all"


def expected_failures(estimator: BaseEstimator) -> dict[str, str]:
    return {"check_sample_weight_equivalence_on_dense_data": BATCHES}


@pytest.mark.usefixtures("few_trees")
@parametrize_with_checks(
    [FRHSICClassifier(**SMALL), FRHSICRegressor(**SMALL), ParityEncoder(**SMALL)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_an_estimator(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingSensitiveFeaturesWarning)
        check(estimator)
