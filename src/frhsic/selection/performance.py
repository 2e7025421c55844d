"""How well a model predicts, measured from the constant predictor up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, get_scorer_names, log_loss, mean_squared_error, roc_auc_score

from frhsic.calibration import calibration_error
from frhsic.formatting import did_you_mean


@dataclass(frozen=True)
class Scoring:
    """A measure of performance: its name, its value for a model, and its direction.

    Attributes
    ----------
    name
        Name for people, such as "log loss".
    measure
        Function of (model, X, y).
    higher_is_better
        False for an error.
    """

    name: str
    measure: Callable[[Any, Any, Any], float]
    higher_is_better: bool

    def difference(self, better: float, worse: float) -> float:
        """Return by how much one value is better than another."""
        return better - worse if self.higher_is_better else worse - better


@dataclass(frozen=True)
class Performance:
    """Performance of one model on some rows; NaN where a number is not defined, such as the AUC of a regression.

    Attributes
    ----------
    performance
        By the scorer of the selection.
    accuracy, auc
        Of a classifier; with more than two classes the AUC is the mean of one class against the rest.
    calibration_error
        See :func:`calibration_error`.
    """

    performance: float
    accuracy: float
    auc: float
    calibration_error: float


def scoring_of(scoring: str | Callable[..., float] | None, estimator: Any) -> Scoring:
    """Return the measure that `scoring` names: a scikit-learn scorer by name, or a function of (model, X, y).

    Without one it is a proper score: log loss, or the mean squared error of a regressor.
    """
    if scoring is None:
        return proper_score(estimator)
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        raise ValueError(
            f"scoring={scoring!r} is no scorer of scikit-learn.{did_you_mean(scoring, get_scorer_names())}"
        )
    scorer = check_scoring(estimator, scoring=scoring)
    sign = getattr(scorer, "_sign", 1)  # a scorer is better when larger: an error is negated, with sign -1
    function = getattr(scorer, "_score_func", scorer)
    name = scoring if isinstance(scoring, str) else getattr(function, "__name__", type(function).__name__)
    name = name.removeprefix("neg_").replace("_", " ")
    return Scoring(name, lambda model, X, y: sign * float(scorer(model, X, y)), sign > 0)


def proper_score(estimator: Any) -> Scoring:
    """Return log loss, or the mean squared error of a regressor."""
    if is_classifier(estimator):
        return Scoring("log loss", _log_loss, False)
    return Scoring("mean squared error", lambda model, X, y: float(mean_squared_error(y, model.predict(X))), False)


def _log_loss(model: Any, X: Any, y: Any) -> float:
    return float(log_loss(y, model.predict_proba(X), labels=model.classes_))


def constant_predictor(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Return the fitted model that ignores X: class frequencies of the training rows, or the mean of their target."""
    constant = DummyClassifier(strategy="prior") if is_classifier(estimator) else DummyRegressor(strategy="mean")
    return constant.fit(np.zeros((len(y), 1)), y, sample_weight=sample_weight)


def measured(model: Any, X: Any, y: Any, scoring: Scoring) -> Performance:
    """Return the performance of a fitted model on some rows."""
    value = scoring.measure(model, X, y)
    truth = np.asarray(y)
    if not is_classifier(model):
        return Performance(value, math.nan, math.nan, calibration_error(model.predict(X), truth))
    probabilities, classes = np.asarray(model.predict_proba(X)), np.asarray(model.classes_)
    right = np.asarray(model.predict(X)) == truth
    several = len(np.unique(truth)) == len(classes) > 1
    if len(classes) == 2:
        scores, outcomes = probabilities[:, 1], truth == classes[1]
        auc = float(roc_auc_score(outcomes, scores)) if several else math.nan
    else:
        scores, outcomes = probabilities.max(axis=1), right
        auc = float(roc_auc_score(truth, probabilities, multi_class="ovr", labels=classes)) if several else math.nan
    return Performance(value, float(right.mean()), auc, calibration_error(scores, outcomes))


def share_of_gain(value: float, unpenalised: float, constant: float, scoring: Scoring) -> float:
    r"""Return the share of the unpenalised model's gain over a constant that a model keeps.

    .. math:: \frac{\text{loss}(\text{constant}) - \text{loss}(\text{model})}
        {\text{loss}(\text{constant}) - \text{loss}(\text{unpenalised})}

    1 is the unpenalised model, 0 a constant; a model worse than a constant has a negative share. NaN if the unpenalised
    model itself does not beat the constant. It has no unit and does not depend on the sign of the score.
    """
    gain = scoring.difference(unpenalised, constant)
    return scoring.difference(value, constant) / gain if gain > 0 else math.nan
