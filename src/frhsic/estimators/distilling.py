"""One plain model in place of the parts of a predictor under parity, so that serving is one
call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import _safe_indexing

from frhsic.estimators.constraints import LabelledRows
from frhsic.estimators.fitting import fit_with_weights
from frhsic.estimators.folds import fold_of_rows
from frhsic.estimators.frontier import attribute_gaps
from frhsic.estimators.inputs import named_columns
from frhsic.estimators.parity import ParityEstimator
from frhsic.estimators.targets import log_losses
from frhsic.parity import ParityResult
from frhsic.scoring import auc_and_influence
from frhsic.tables.attributes import read_sensitive
from frhsic.tables.columns import is_frame, to_pandas
from frhsic.tables.schema import Schema

# Largest factor by which the limit is tightened; on few rows the excess is mostly noise.
MOST_EXCESS = 1.25


@dataclass(frozen=True, eq=False)
class Distilled:
    """A plain model that imitates a predictor under parity, both measured on rows that neither has
    seen.

    Attributes
    ----------
    model : estimator
        The plain model; for a DataFrame a pipeline with its encoding. If all columns are numbers,
        ``model[-1]`` predicts them as an array, and is what converts to ONNX.
    threshold : float
        Score above which the decision is the second class.
    performance : dict of str to float
        "log_loss" and "auc", or "squared_error", of the plain model.
    teacher_performance : dict of str to float
        The same of the predictor that it imitates.
    gaps : dict of str to ParityResult
        For each attribute the gap that the aim names, of the plain model.
    teacher_gaps : dict of str to ParityResult
        The same of the predictor that it imitates.
    """

    model: Any
    threshold: float
    performance: dict[str, float]
    teacher_performance: dict[str, float]
    gaps: dict[str, ParityResult]
    teacher_gaps: dict[str, ParityResult]


class GivenRows(NamedTuple):
    """Rows as a predictor's `fit` takes them."""

    X: Any
    y: np.ndarray
    sensitive_features: Any
    weights: np.ndarray | None
    groups: np.ndarray | None
    control_features: Any


def distill(
    predictor: ParityEstimator,
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    control_features: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
) -> Distilled:
    """Imitate a predictor under parity by one plain model.

    Four fifths of the rows fit the predictor anew, and then the plain model on its out-of-fold
    scores. A tenth corrects the limit for what the imitation adds to the gap, and the last tenth
    measures both.

    Parameters
    ----------
    predictor : ParityClassifier or ParityRegressor
        Its parameters are used, fitted or not. It must not use S to predict, and have at most two
        classes.
    estimator : classifier or regressor
        A plain model such as ``LGBMClassifier()``. A regressor learns the scores; a classifier
        learns both labels of each row, weighted by the score.
    X, y, sensitive_features, control_features, sample_weight, groups
        Rows, as in the predictor's `fit`; the same rows may be passed. Controls have to be columns
        of X.

    Returns
    -------
    Distilled
        The plain model as `model`, for a DataFrame a pipeline with its encoding, and the
        `threshold` above which the decision is the second class. `performance` and `gaps` measure
        it on rows that neither has seen, `teacher_performance` and `teacher_gaps` what it imitates.

    Examples
    --------
    >>> from lightgbm import LGBMRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic.estimators import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=300)
    >>> X = np.column_stack([s, rng.normal(size=300)])
    >>> linear = LinearRegression()
    >>> predictor = ParityRegressor(linear, attribute_estimator=linear, limit="80%")
    >>> student = LGBMRegressor(n_estimators=20, verbose=-1)
    >>> model = distill(predictor, student, X, X.sum(axis=1), sensitive_features=s)
    >>> model.model.predict(X).shape
    (300,)
    """
    y = np.asarray(y)
    if predictor.uses_sensitive or (is_classifier(predictor) and len(np.unique(y)) > 2):
        raise ValueError(
            "a predictor that uses S, or that has more than two classes, cannot be distilled."
        )
    given = named_columns(
        X=X, sensitive_features=sensitive_features, control_features=control_features, groups=groups
    )
    X, sensitive_features, controls, groups = given.values()
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    groups = None if groups is None else np.asarray(groups)
    part = fold_of_rows(y, 10, y if is_classifier(predictor) else None, groups, 0)

    def select_rows(kept: np.ndarray) -> GivenRows:
        rows = np.flatnonzero(kept)
        return GivenRows(
            X=_safe_indexing(X, rows),
            y=y[rows],
            sensitive_features=_safe_indexing(sensitive_features, rows),
            weights=None if weights is None else weights[rows],
            groups=None if groups is None else groups[rows],
            control_features=None if controls is None else _safe_indexing(controls, rows),
        )

    check = select_rows(part == 1)
    teacher = clone(predictor)
    fitted = teacher._fit(*select_rows(part > 1))
    assert fitted is not None
    if controls is not None and not teacher.controls_among(X):
        raise ValueError(
            "control_features are no columns of X, which is all that a plain model sees. Add them"
            " to X, or leave them out."
        )
    teacher_threshold = float(getattr(teacher, "threshold_", 0.0))
    student, threshold = _imitation(teacher, estimator, check.X, *fitted)
    _, gaps = _measure_model(teacher, student, threshold, check)
    _, aims = _measure_model(teacher, teacher, teacher_threshold, check)
    limits = teacher.frontier_.limits(predictor.limit)
    ratios = [
        gaps[name].value / aims[name].value
        for name, each in limits.items()
        if each and all(limit.value > 0 for limit in each) and aims[name].value > 0
    ]
    excess = min(max([1.0, *ratios]), MOST_EXCESS)
    if excess > 1:
        tighter = {
            name: [str(replace(limit, value=limit.value / excess)) for limit in each]
            for name, each in limits.items()
        }
        teacher = teacher.at(tighter)
        student, threshold = _imitation(teacher, estimator, check.X, *fitted)
    measure = select_rows(part == 0)
    performance, gaps = _measure_model(teacher, student, threshold, measure)
    teacher_performance, teacher_gaps = _measure_model(teacher, teacher, teacher_threshold, measure)
    return Distilled(student, threshold, performance, teacher_performance, gaps, teacher_gaps)


def _imitation(
    teacher: ParityEstimator,
    estimator: Any,
    X_check: Any,
    sample: LabelledRows,
    eta: np.ndarray,
    means: np.ndarray,
) -> tuple[Any, float]:
    """Return the plain model, fitted on scores of predictors that have not seen their rows, and its
    threshold.

    For decisions this is the one that takes as many of some other rows as the teacher does.
    """
    solution = teacher.solution_
    assert solution is not None
    assert teacher.choice_ is not None
    place = teacher.choice_.position
    scores = solution.out_of_fold(place, sample.fold, eta, means, sample.strata)
    student = clone(estimator)
    X = sample.X
    weights = sample.weights
    if is_frame(X) and not isinstance(student, Pipeline):
        student = make_pipeline(
            FunctionTransformer(coded_frame, kw_args={"schema": teacher.schema_}), student
        )
    if is_classifier(estimator):
        X = _safe_indexing(X, np.tile(np.arange(len(scores)), 2))
        weights = np.concatenate([1 - scores, scores]) * np.tile(sample.mass, 2)
        scores = np.repeat([0, 1], len(scores))
    fit_with_weights(student, X, scores, weights)
    threshold = float(getattr(teacher, "threshold_", 0.0))
    if teacher.aim == "decision":
        taken = float(np.mean(_predicted_scores(teacher, X_check) > threshold))
        threshold = float(np.quantile(_predicted_scores(student, X_check), 1 - taken))
    return student, threshold


def coded_frame(X: Any, schema: Schema) -> Any:
    """Return a table as numbers, or if it has categories, as a frame with columns of them, which
    LightGBM tells from numbers.
    """
    codes = schema.codes(to_pandas(X))
    if not schema.categorical:
        return codes
    frame = pd.DataFrame(codes).add_prefix("x")
    for j in schema.categorical:
        levels = range(len(schema.columns[j].levels))
        frame[f"x{j}"] = pd.Categorical(codes[:, j], categories=levels)
    return frame


def _predicted_scores(model: Any, X: Any) -> np.ndarray:
    return np.asarray(
        model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    )


def _measure_model(
    teacher: ParityEstimator, model: Any, threshold: float, rows: GivenRows
) -> tuple[dict[str, float], dict[str, ParityResult]]:
    """Return performance, and the gap along each attribute that the teacher limits, the largest
    over its conditions.
    """
    y = rows.y
    weights = rows.weights
    scores = _predicted_scores(model, rows.X)
    attributes = read_sensitive(rows.sensitive_features, allow_missing=True)
    if is_classifier(teacher):
        y = y == teacher.classes_[1]
        losses = log_losses(np.clip(scores, 1e-6, 1 - 1e-6), y)
        performance = {
            "log_loss": float(np.average(losses, weights=weights)),
            "auc": auc_and_influence(scores, y, weights)[0],
        }
    else:
        performance = {"squared_error": float(np.average((y - scores) ** 2, weights=weights))}
    if teacher.aim == "decision":
        scores = scores > threshold
    assert teacher.solution_ is not None
    gaps = attribute_gaps(
        teacher.aim,
        teacher.solution_.constraints,
        scores,
        y,
        attributes.values,
        weights,
        rows.groups,
        teacher.strata_of(rows.X, rows.control_features),
    )
    return performance, {name: max(each, key=float) for name, each in zip(attributes.names, gaps)}
