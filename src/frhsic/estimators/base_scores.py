"""Raw scores of a base model, whatever it is, and what they reach alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import log_softmax

from frhsic.estimators.boosted import BoostedTrees

if TYPE_CHECKING:
    from frhsic.estimators.bases import BaseRows

LEAST_PROBABILITY = 1e-6
"""Probabilities below this count as this, so that their logarithm is finite."""

Kind = Literal["log-odds", "margins", "numbers"]


@dataclass(frozen=True)
class BasePerformance:
    """What a base model reaches alone on the training rows, cross-fitted, beside the best constant.

    Attributes
    ----------
    model
        Name of its class.
    loss, constant_loss
        Log loss, or mean squared error in the unit of y. None for scores that are no probabilities.
    score, constant_score
        Accuracy, or R². None for scores of a function, which have no threshold.
    score_name
        "accuracy" or "R²".
    rows, folds
        Number of rows and of folds; 0 folds for a model that was used as it is.
    """

    model: str
    loss: float | None
    constant_loss: float | None
    score: float | None
    constant_score: float | None
    score_name: str
    rows: int
    folds: int

    def __str__(self) -> str:
        how = f"out of {self.folds} folds" if self.folds else "as it was passed"
        score = "not known" if self.score is None else f"{self.score:.3f} (a constant: {self.constant_score:.3f})"
        return f"{self.model}, {how}, on {self.rows:,} rows: {self.score_name} {score}."


@dataclass(frozen=True, eq=False)
class Scores:
    """Raw scores, float64 (n, k), and what they are."""

    values: np.ndarray
    kind: Kind

    def spread_over(self, parts: Sequence[tuple[np.ndarray, Scores]]) -> Scores:
        """Return the scores of all rows from those of parts, each with the rows that it is of."""
        values = np.empty((len(parts[0][0]), self.values.shape[1]))
        for rows, part in parts:
            values[rows] = part.values
        return replace(self, values=values)

    def performance(self, rows: BaseRows, model: str, folds: int) -> BasePerformance:
        """Return what the scores reach on their rows, weighted as these are."""
        losses, hits = row_losses(self, rows), _hits(self, rows)
        if rows.classes is None:
            mean = np.average(rows.y, weights=rows.sample_weight)
            constant, chance = np.square(rows.y - mean), 0.0
        else:
            codes = np.searchsorted(rows.classes, rows.y)
            share = np.bincount(codes, weights=rows.sample_weight, minlength=len(rows.classes))
            share = share / share.sum()
            constant, chance = -np.log(np.maximum(share, LEAST_PROBABILITY))[codes], float(share.max())

        def mean_of(values: np.ndarray | None) -> float | None:
            return None if values is None else float(np.average(values, weights=rows.sample_weight))

        loss, worst = mean_of(losses), mean_of(constant)
        score = mean_of(hits)
        if rows.classes is None and loss is not None and worst:
            score = 1 - loss / worst
        name = "R²" if rows.classes is None else "accuracy"
        return BasePerformance(model, loss, worst, score, chance, name, len(rows.y), folds)


def raw_scores(model: Any, X: Any, classes: np.ndarray | None) -> Scores:
    """Return the scores of a model or a function.

    Log-odds for two classes and a logarithm of probability per class for more, from ``predict_proba`` (for boosted
    trees, their raw output); else the margins of ``decision_function``; else numbers that ``predict`` or the function
    returns. For a regression, the prediction.
    """
    name = type(model).__name__
    kind: Kind = "numbers"
    if classes is None:
        values = model.predict(X) if hasattr(model, "predict") else model(X)
    elif isinstance(model, BoostedTrees):
        kind, values = "log-odds", _aligned(model.decision_function(X), model, classes, np.log(LEAST_PROBABILITY))
    elif hasattr(model, "predict_proba"):
        logs = np.log(np.maximum(np.asarray(model.predict_proba(X), dtype=np.float64), LEAST_PROBABILITY))
        logs = _aligned(logs, model, classes, np.log(LEAST_PROBABILITY))
        kind, values = "log-odds", logs[:, 1] - logs[:, 0] if len(classes) == 2 else logs
    elif hasattr(model, "decision_function"):
        kind, values = "margins", _aligned(model.decision_function(X), model, classes, 0.0)
    else:
        values = model.predict(X) if hasattr(model, "predict") else model(X)
    try:
        columns = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"base {name} gives no numbers but {np.asarray(values).ravel().tolist()[0]!r}; pass a "
            "model with predict_proba."
        ) from error
    columns = columns.reshape(len(columns), -1) if columns.ndim else columns.reshape(1, 1)
    if not np.isfinite(columns).all():
        raise ValueError(f"base {name} gives scores that are not finite for {int((~np.isfinite(columns)).sum())} rows.")
    return Scores(columns, kind)


def row_losses(scores: Scores, rows: BaseRows) -> np.ndarray | None:
    """Return the loss of each row: cross-entropy or squared error, None if the scores are no log-odds."""
    if rows.classes is None:
        return np.asarray(np.square(rows.y - scores.values[:, 0])) if scores.values.shape[1] == 1 else None
    if scores.kind != "log-odds":
        return None
    codes = np.searchsorted(rows.classes, rows.y)
    return np.asarray(-_log_probabilities(scores.values)[np.arange(len(codes)), codes])


def _hits(scores: Scores, rows: BaseRows) -> np.ndarray | None:
    if rows.classes is None or scores.kind == "numbers":
        return None
    codes = np.searchsorted(rows.classes, rows.y)
    return np.asarray(_log_probabilities(scores.values).argmax(axis=1) == codes)


def _log_probabilities(values: np.ndarray) -> np.ndarray:
    columns = np.column_stack([np.zeros(len(values)), values]) if values.shape[1] == 1 else values
    return np.asarray(log_softmax(columns, axis=1))


def _aligned(values: Any, model: Any, classes: np.ndarray, absent: float) -> np.ndarray:
    """Return columns in the order of `classes`; those of classes that the model has never seen are `absent`."""
    columns = np.asarray(values, dtype=np.float64)
    known = getattr(model, "classes_", None)
    if known is None or np.array_equal(known, classes):
        if columns.ndim == 2 and columns.shape[1] != len(classes):
            raise ValueError(
                f"base {type(model).__name__} gives {columns.shape[1]} columns; y has {len(classes)} classes."
            )
        return columns
    unknown = [label for label in np.asarray(known).tolist() if label not in classes.tolist()]
    if unknown:
        raise ValueError(
            f"base {type(model).__name__} was trained on the labels {np.asarray(known).tolist()!r}; y has "
            f"{classes.tolist()!r}. Pass a model of the same labels."
        )
    if columns.ndim == 1:  # two of several classes
        columns = np.column_stack([np.zeros(len(columns)), columns])
    aligned = np.full((len(columns), len(classes)), absent + columns.min(initial=0.0))
    aligned[:, np.searchsorted(classes, known)] = columns
    return aligned
