"""A single plain model that replaces a predictor with a parity limit at prediction time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import lightgbm
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from frhsic._files import write_whole
from frhsic.estimators.boosters import leaf_count
from frhsic.estimators.exporting import onnx_bytes
from frhsic.estimators.fitting import fit_with_weights
from frhsic.estimators.inputs import named_columns, require_scores, sensitive_values
from frhsic.formatting import figure, printable
from frhsic.tables.columns import LARGEST_FEATURE, is_frame, to_pandas
from frhsic.tables.schema import Schema

# Maximum number of trees, and the number of rounds without improvement after which boosting stops.
MOST_TREES = 150
IDLE_ROUNDS = 10


@dataclass(frozen=True)
class ImitationCost:
    """One measure of a distilled model, compared with the same measure of the predictor it
    imitates.

    Attributes
    ----------
    name : str
        Name of the measure, such as ``"log loss"`` or ``"gap by age"``.
    before, after : float
        Value of the measure for the predictor and for the distilled model.
    low, high : float
        Ends of the 95 % interval for the difference, after minus before.
    """

    name: str
    before: float
    after: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Distilled:
    """A plain model that imitates a predictor with a parity limit, and the cost of the imitation,
    measured on rows that neither model was fitted on. :func:`~frhsic.distill` returns it.

    It contains no per-fold models. Save it with :func:`~frhsic.save`. The file can be read by
    :func:`~frhsic.load`, `frhsic predict` and `frhsic audit --model`.

    Attributes
    ----------
    model : lightgbm.Booster or estimator
        Trees on the encoded columns, or the estimator that was passed to `distill`.
    schema_ : Schema or None
        Types of the columns; None if the model was fitted on an array.
    n_features_in_ : int
        Number of columns.
    uses_sensitive : bool
        Whether predictions require the sensitive attributes.
    sensitive_names_in_ : tuple of str
        Names of the sensitive attributes.
    sensitive_schema_ : Schema or None
        Types of the sensitive attributes, if they were read from a file.
    costs : tuple of ImitationCost
        Performance and gaps, compared with those of the predictor.
    rows : int
        Number of rows on which the costs were measured.

    Examples
    --------
    >>> from frhsic import ParityRegressor, distill
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> predictor = ParityRegressor(cv=2, random_state=0)
    >>> served = distill(predictor, None, X, X.sum(axis=1), sensitive_features=s)
    >>> served.predict(X[:2]).shape
    (2,)
    >>> [cost.name for cost in served.costs]
    ['root squared error', 'gap by sensitive']
    """

    model: Any
    schema_: Schema | None
    n_features_in_: int
    uses_sensitive: bool
    sensitive_names_in_: tuple[str, ...]
    sensitive_schema_: Schema | None
    costs: tuple[ImitationCost, ...]
    rows: int

    def __post_init__(self) -> None:
        width = self.n_features_in_ + len(self.sensitive_names_in_) * self.uses_sensitive
        names = self.n_features_in_ if self.schema_ is None else len(self.schema_.columns)
        trees = isinstance(self.model, lightgbm.Booster)
        if names != self.n_features_in_ or (trees and self.model.num_feature() != width):
            raise ValueError("the model and its schema have different numbers of columns.")

    def __repr__(self) -> str:
        trees = isinstance(self.model, lightgbm.Booster)
        kind = f"{self.model.num_trees()} trees" if trees else type(self.model).__name__
        columns = f"{self.n_features_in_} {'column' if self.n_features_in_ == 1 else 'columns'}"
        lines = [
            f"{type(self).__name__}: {kind}, {columns}",
            f"{'':<24}{'predictor':>12}{'distilled':>12}   difference (95 % interval)",
        ]
        for cost in self.costs:
            difference = f"{figure(cost.after - cost.before)} ({figure(cost.low)} to"
            lines.append(
                f"{printable(cost.name, 23):<24}{figure(cost.before):>12}{figure(cost.after):>12}"
                f"   {difference} {figure(cost.high)})"
            )
        return "\n".join([*lines, f"measured on {self.rows:,} rows that neither was fitted on"])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return predictions of shape (n,).

        Parameters
        ----------
        X : DataFrame, array or list of dict
            Rows to predict. Columns are matched by name or, in an array, by position.
        sensitive_features : array, Series, DataFrame or names of columns of X, optional
            Sensitive attributes, which are required if `uses_sensitive` is true.
        """
        return require_scores(self._raw_scores(X, sensitive_features), probabilities=False)

    def to_onnx(self, path: str | Path) -> None:
        """Write the model as ONNX. This requires the package onnx.

        A model fitted on an array has one numeric input ``X`` of shape (n, d). A model fitted on a
        table has an input of shape (n, 1) for each column: text for a category, otherwise numbers.
        Each attribute that predictions require is a separate input. The output ``score`` of shape
        (n, 1) is the prediction or the probability of the second class. Text that is not exactly
        equal to a level in the training data is treated as missing. Models with date columns, and
        your own estimators, cannot be exported.
        """
        write_whole(Path(path), self.onnx_bytes())

    def onnx_bytes(self) -> bytes:
        """Return the content of the file that :meth:`to_onnx` writes."""
        classes = getattr(self, "classes_", ())
        threshold = getattr(self, "threshold_", None)
        attributes = self.sensitive_names_in_ if self.uses_sensitive else ()
        return onnx_bytes(
            self.model, self.schema_, self.n_features_in_, attributes, [*classes], threshold
        )

    def as_trained(self, predictor: Any) -> Self:
        """Return a copy with the columns, classes and decision threshold of a predictor that was
        fitted on the same columns. The order of levels is kept.
        """
        changes: dict[str, Any] = {
            "sensitive_schema_": getattr(predictor, "sensitive_schema_", None)
        }
        schema = getattr(predictor, "schema_", None)
        if schema is not None and self.schema_ is not None:
            columns = tuple(
                replace(column, levels=own.levels)
                for column, own in zip(schema.columns, self.schema_.columns)
            )
            changes["schema_"] = replace(schema, columns=columns)
        if hasattr(predictor, "classes_"):
            changes["classes_"] = predictor.classes_
            if predictor.aim != "decision":
                changes["threshold_"] = predictor.threshold_
        return replace(self, **changes)

    def coded(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Return the rows as numbers for the trees, (n, d)."""
        s = None
        if self.uses_sensitive:
            if sensitive_features is None:
                raise ValueError(
                    "this model uses the sensitive attributes to predict: pass sensitive_features."
                )
            given = named_columns(X=X, sensitive_features=sensitive_features)
            X = given["X"]
            s, _ = sensitive_values(
                given["sensitive_features"], len(X), list(self.sensitive_names_in_)
            )
            if np.isnan(s).any():
                raise ValueError(
                    "sensitive_features has missing values, but this model needs every attribute to"
                    " predict. Fill in these values, or drop these rows."
                )
        codes = self._features(X)
        return codes if s is None else np.column_stack([codes, s])

    def _features(self, X: Any) -> np.ndarray:
        if self.schema_ is None:
            values = np.asarray(X, dtype=np.float64)
            if values.ndim != 2 or values.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has shape {values.shape}; this model expects shape (n,"
                    f" {self.n_features_in_})."
                )
            return np.clip(values, -LARGEST_FEATURE, LARGEST_FEATURE)
        if isinstance(X, list) and X and all(isinstance(row, Mapping) for row in X):
            return self.schema_.row_codes(X)
        return self.schema_.codes(self._frame(X))

    def _frame(self, X: Any) -> pd.DataFrame:
        """Return the rows as a table with the columns of the schema."""
        assert self.schema_ is not None
        names = self.schema_.names
        frame = to_pandas(X, "X") if is_frame(X) else pd.DataFrame(X, columns=names)
        if frame.columns.tolist() == names:
            return frame
        self.schema_.require_names(frame.columns)
        return frame[names]

    def _raw_scores(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the trees' log-odds or predictions, or the scores of another model."""
        if isinstance(self.model, lightgbm.Booster):
            codes = self.coded(X, sensitive_features)
            return np.asarray(self.model.predict(codes, raw_score=True, num_threads=1))
        if isinstance(self.model, Pipeline) and self.schema_ is not None:
            return plain_scores(self.model, self.schema_(self._frame(X)))
        return plain_scores(self.model, self.coded(X, sensitive_features))


@dataclass(frozen=True, eq=False, repr=False)
class DistilledClassifier(Distilled):
    """A plain binary classifier that imitates a predictor with a parity limit; see
    :class:`Distilled`.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    threshold_ : float
        The second class is predicted if its score is above this threshold.

    Examples
    --------
    >>> from frhsic import ParityClassifier, distill
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(axis=1) > 0.5
    >>> served = distill(ParityClassifier(cv=2, random_state=0), None, X, y, sensitive_features=s)
    >>> served.predict_proba(X).shape, served.predict(X[:1]).dtype
    ((400, 2), dtype('bool'))
    """

    classes_: np.ndarray
    threshold_: float

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the probabilities of the two classes, of shape (n, 2)."""
        scores = self._raw_scores(X, sensitive_features)
        if isinstance(self.model, lightgbm.Booster):
            scores = expit(scores)
        scores = require_scores(np.clip(scores, 0.0, 1.0), probabilities=True)
        return np.column_stack([1 - scores, scores])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return labels: the second class if its probability exceeds `threshold_`, otherwise the
        first.
        """
        scores = self.predict_proba(X, sensitive_features=sensitive_features)[:, 1]
        return np.asarray(self.classes_[(scores > self.threshold_).astype(np.int64)])


def plain_scores(model: Any, X: Any) -> np.ndarray:
    """Return predictions or, for a classifier, the probability of the second class."""
    return np.asarray(
        model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    )


def fit_trees(
    codes: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    held_out: tuple[np.ndarray, np.ndarray],
    *,
    probabilities: bool,
    seed: int,
) -> lightgbm.Booster:
    """Return boosted trees that predict scores, with early stopping on held-out rows."""
    settings = {
        "objective": "cross_entropy" if probabilities else "regression",
        "num_leaves": leaf_count(len(scores)),
        "seed": seed % 2**31,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    data = lightgbm.Dataset(codes, scores, weight=weights, params=settings)
    booster = lightgbm.train(
        settings,
        data,
        MOST_TREES,
        valid_sets=[lightgbm.Dataset(*held_out, reference=data)],
        callbacks=[lightgbm.early_stopping(IDLE_ROUNDS, verbose=False)],
    )
    return lightgbm.Booster(model_str=booster.model_to_string(num_iteration=booster.best_iteration))


def fit_estimator(estimator: Any, X: Any, scores: np.ndarray, weights: np.ndarray | None) -> Any:
    """Return a fitted clone of an estimator. A regressor is fitted to the scores; a classifier is
    fitted to two copies of each row, one for each label, weighted according to the score.
    """
    student = clone(estimator)
    if not is_classifier(student):
        return fit_with_weights(student, X, scores, weights)
    twice = _safe_indexing(X, np.tile(np.arange(len(scores)), 2))
    both = np.concatenate([1 - scores, scores]) * (1.0 if weights is None else np.tile(weights, 2))
    return fit_with_weights(student, twice, np.repeat([0, 1], len(scores)), both)


def ordered_schema(
    schema: Schema, codes: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> Schema:
    """Return a schema in which levels are ordered by their mean score, so that trees can split the
    levels at a threshold. A level without rows is placed at the overall mean.
    """
    mean = np.average(scores, weights=weights)
    columns = []
    for column, code in zip(schema.columns, codes.T):
        count = len(column.levels)
        if not count:
            columns.append(column)
            continue
        known = ~np.isnan(code)
        places = code[known].astype(np.int64)
        mass = np.bincount(places, weights[known], minlength=count)
        sums = np.bincount(places, (weights * (scores - mean))[known], minlength=count)
        order = np.argsort(sums / np.maximum(mass, 1e-300), kind="stable")
        columns.append(replace(column, levels=tuple(column.levels[i] for i in order)))
    return replace(schema, columns=tuple(columns))
