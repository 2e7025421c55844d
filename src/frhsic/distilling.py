"""Distill a predictor with a parity limit into one plain model, and measure the cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from frhsic.auditing import Settings
from frhsic.auditing.comparing import difference
from frhsic.auditing.outputs import output_gaps
from frhsic.auditing.performance import changes, covariance
from frhsic.auditing.results import Change, Number
from frhsic.estimators.constraints import LabelledRows
from frhsic.estimators.distilled import (
    Distilled,
    DistilledClassifier,
    ImitationCost,
    fit_estimator,
    fit_trees,
    ordered_schema,
)
from frhsic.estimators.folds import fold_of_rows
from frhsic.estimators.inputs import named_columns
from frhsic.estimators.parity import ParityClassifier
from frhsic.estimators.predictor import ParityEstimator
from frhsic.scoring import model_scores
from frhsic.tables.attributes import read_sensitive
from frhsic.tables.columns import is_frame
from frhsic.tables.schema import Schema

# Largest factor by which the limit is tightened; on few rows, the excess is mostly noise.
MOST_EXCESS = 1.25
# Performance reported for a distilled model, by aim and keyed as in audits. The AUC of decisions is
# their balanced accuracy.
STATED = {
    "score": {"log_loss": "log loss", "root_squared_error": "root squared error"},
    "rank": {"auc": "AUC", "root_squared_error": "root squared error"},
    "decision": {"accuracy": "accuracy", "auc": "balanced accuracy"},
}


class GivenRows(NamedTuple):
    """The arguments of a predictor's `fit`, for some rows."""

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
    """Fit one plain model that imitates a predictor with a parity limit.

    The predictor is refitted on four fifths of the rows, and the plain model is fitted to the
    predictor's out-of-fold scores. Another tenth of the rows determines when boosting stops, and
    how much the limit is tightened to offset the gap that the imitation adds. Both models are
    evaluated on the last tenth.

    Parameters
    ----------
    predictor : ParityClassifier or ParityRegressor
        The predictor to imitate, fitted or not, since only its parameters are used. It must have at
        most two classes.
    estimator : classifier, regressor or None
        The plain model. None uses boosted trees from LightGBM, which can be exported to ONNX. A
        regressor is fitted to the scores; a classifier is fitted to two copies of each row, one for
        each label, weighted according to the score. A Pipeline gets the columns of X; other models
        get numeric arrays with NaN for missing values.
    X, y, sensitive_features, control_features, sample_weight, groups
        Rows in the form that the predictor's `fit` expects; they may be the rows on which it was
        fitted. Controls must be columns of X.

    Returns
    -------
    Distilled
        The plain model, which is a :class:`~frhsic.estimators.DistilledClassifier` for two classes.

    Examples
    --------
    >>> from frhsic import ParityRegressor
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=300)
    >>> X = np.column_stack([s, rng.normal(size=300)])
    >>> linear = LinearRegression()
    >>> predictor = ParityRegressor(linear, attribute_estimator=linear, limit="80%")
    >>> served = distill(predictor, None, X, X.sum(axis=1), sensitive_features=s)
    >>> served.predict(X).shape
    (300,)
    """
    given = named_columns(
        X=X,
        y=y,
        sensitive_features=sensitive_features,
        control_features=control_features,
        groups=groups,
    )
    controls = given["control_features"]
    y = np.asarray(y)
    classifies = is_classifier(predictor)
    if classifies and len(np.unique(y)) > 2:
        raise ValueError(
            f"y has {len(np.unique(y))} classes; distill needs two classes, or a numeric target."
        )
    if isinstance(estimator, Pipeline) and predictor.uses_sensitive:
        raise ValueError(
            "estimator is a Pipeline, which gets only the columns of X, but the predictor uses the"
            " attributes as well. Pass None, or a model that accepts arrays."
        )
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    groups = None if groups is None else np.asarray(given["groups"])
    part = fold_of_rows(y, 10, y if classifies else None, groups, 0)

    def select_rows(kept: np.ndarray) -> GivenRows:
        rows = np.flatnonzero(kept)
        return GivenRows(
            X=_safe_indexing(given["X"], rows),
            y=y[rows],
            sensitive_features=_safe_indexing(given["sensitive_features"], rows),
            weights=None if weights is None else weights[rows],
            groups=None if groups is None else groups[rows],
            control_features=None if controls is None else _safe_indexing(controls, rows),
        )

    check = select_rows(part == 1)
    teacher = clone(predictor)
    fitted = teacher._fit(*select_rows(part > 1))
    assert fitted is not None
    assert teacher.frontier_ is not None
    if controls is not None and not teacher._controls_among(given["X"]):
        raise ValueError(
            "control_features are not columns of X, but a plain model uses only X. Add them to X,"
            " or leave them out."
        )
    student = _imitation(teacher, estimator, check, *fitted)
    excess = _Comparison.of(teacher, student, check).excess()
    if excess > 1:
        tighter = {
            name: [str(replace(limit, value=limit.value / excess)) for limit in each]
            for name, each in teacher.frontier_.limits(predictor.limit).items()
        }
        teacher = teacher.at(tighter)
        student = _imitation(teacher, estimator, check, *fitted)
    comparison = _Comparison.of(teacher, student, select_rows(part == 0))
    return replace(student, costs=tuple(comparison.costs()), rows=len(comparison.y))


def _imitation(
    teacher: ParityEstimator,
    estimator: Any,
    check: GivenRows,
    sample: LabelledRows,
    eta: np.ndarray,
    means: np.ndarray,
) -> Distilled:
    """Return the plain model, fitted to out-of-fold scores.

    If the limit is on decisions, the threshold gives the same share of positive decisions as the
    teacher's threshold on the rows of `check`.
    """
    solution = teacher.solution_
    assert solution is not None
    assert teacher.choice_ is not None
    place = teacher.choice_.position
    scores = solution.out_of_fold(place, sample.fold, eta, means, sample.strata)
    rows = _known(teacher, sample.s)
    scores, X, s, mass = (
        scores[rows],
        _safe_indexing(sample.X, rows),
        sample.s[rows],
        sample.mass[rows],
    )
    schema = teacher.schema_ if is_frame(X) else None
    if schema is not None and estimator is None:
        schema = ordered_schema(schema, sample.codes[rows], scores, mass)
    student = _without_model(teacher, schema, X.shape[1])
    X_check, s_check, expected = _teacher_scores(teacher, check)
    if estimator is None:
        held_out = student.coded(X_check, s_check), expected
        classifies = isinstance(student, DistilledClassifier)
        model = fit_trees(
            student.coded(X, s), scores, mass, held_out, probabilities=classifies, seed=sample.seed
        )
    else:
        pipeline = isinstance(estimator, Pipeline)
        weights = None if sample.weights is None else mass
        model = fit_estimator(estimator, X if pipeline else student.coded(X, s), scores, weights)
    student = replace(student, model=model)
    if teacher.aim == "decision" and isinstance(student, DistilledClassifier):
        taken = float(np.mean(expected > student.threshold_))
        own = model_scores(student, X_check, s_check)
        student = replace(student, threshold_=float(np.quantile(own, 1 - taken)))
    return student


def _known(teacher: ParityEstimator, s: np.ndarray) -> np.ndarray:
    """Return the indices of the rows that the teacher can score: those without missing attributes
    if it uses attributes, otherwise all.
    """
    return np.flatnonzero(~np.isnan(s).any(axis=1) | (not teacher.uses_sensitive))


def _without_model(teacher: ParityEstimator, schema: Schema | None, columns: int) -> Distilled:
    """Return a distilled model that has all of its fields except the fitted model and the costs."""
    more: dict[str, Any] = {}
    if isinstance(teacher, ParityClassifier):
        more = {"classes_": teacher.classes_, "threshold_": teacher.threshold_}
    kind = DistilledClassifier if more else Distilled
    return kind(
        model=None,
        schema_=schema,
        n_features_in_=columns,
        uses_sensitive=teacher.uses_sensitive,
        sensitive_names_in_=tuple(map(str, teacher.sensitive_names_in_)),
        sensitive_schema_=None,
        costs=(),
        rows=0,
        **more,
    )


def _teacher_scores(
    teacher: ParityEstimator, rows: GivenRows
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the table and attributes of the rows that the teacher can score, and its scores."""
    s = read_sensitive(rows.sensitive_features, allow_missing=True).values
    known = _known(teacher, s)
    X = _safe_indexing(rows.X, known)
    return X, s[known], model_scores(teacher, X, s[known])


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The outputs of the teacher and of the distilled model on the same rows: 0/1 decisions if the
    limit is on decisions, otherwise scores.
    """

    teacher: ParityEstimator
    outputs: tuple[np.ndarray, np.ndarray]
    y: np.ndarray
    s: np.ndarray
    weights: np.ndarray | None
    groups: np.ndarray | None
    strata: np.ndarray | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, teacher: ParityEstimator, student: Distilled, rows: GivenRows) -> Self:
        attributes = read_sensitive(rows.sensitive_features, allow_missing=True)
        known = _known(teacher, attributes.values)
        X = _safe_indexing(rows.X, known)
        s = attributes.values[known]
        y = rows.y[known]
        before = np.asarray(model_scores(teacher, X, s), dtype=np.float64)
        after = np.asarray(model_scores(student, X, s), dtype=np.float64)
        if isinstance(teacher, ParityClassifier) and isinstance(student, DistilledClassifier):
            y = (y == teacher.classes_[1]).astype(np.float64)
            if teacher.aim == "decision":
                before = (before > teacher.threshold_).astype(np.float64)
                after = (after > student.threshold_).astype(np.float64)
        return cls(
            teacher,
            (before, after),
            y,
            s,
            None if rows.weights is None else rows.weights[known],
            None if rows.groups is None else np.unique(rows.groups[known], return_inverse=True)[1],
            teacher._strata_of(X, None),
            attributes.names,
        )

    def gaps(self) -> list[list[tuple[Number, np.ndarray]]]:
        """Return the gaps of both models for each attribute, with the contribution of each row."""
        rows = self.y, self.s, self.weights, self.groups
        return [
            output_gaps(self.teacher, one, *rows, Settings(), self.strata) for one in self.outputs
        ]

    def excess(self) -> float:
        """Return the factor by which to tighten the limit so that the gaps of the distilled model
        match those of the teacher; 1 if no gap is limited.
        """
        assert self.teacher.frontier_ is not None
        limits = self.teacher.frontier_.limits(self.teacher.limit)
        ratios = [
            after.value / before.value
            for name, (before, _), (after, _) in zip(self.names, *self.gaps())
            if limits[name] and all(one.value > 0 for one in limits[name]) and before.value > 0
        ]
        return float(min(max([1.0, *ratios]), MOST_EXCESS))

    def costs(self) -> Iterator[ImitationCost]:
        """Yield the performance and the gaps of both models, with intervals for the differences."""
        level = round(1 - Settings().confidence, 12)
        threshold = 0.5 if self.teacher.aim == "decision" else None
        every = changes(*self.outputs, self.y, threshold, level, self.groups, self.weights)
        by_key = {change.key: change for change in every}
        stated = STATED[self.teacher.aim]
        for key, name in stated.items():
            if key in by_key:
                yield _imitation_cost(name, by_key[key])
        for name, (before, a), (after, b) in zip(self.names, *self.gaps()):
            shared = covariance(a, b, self.groups, self.weights)
            change = difference(after.key, name, before, after, level, shared)
            yield _imitation_cost(f"gap by {name}", change)


def _imitation_cost(name: str, change: Change) -> ImitationCost:
    assert change.interval is not None
    return ImitationCost(name, change.before, change.after, *change.interval)
