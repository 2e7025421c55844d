"""Columns that a representation should predict: labels or numbers, and the predictions of these
columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from frhsic.estimators.inputs import target_column
from frhsic.estimators.prototypes import Kind, Numbers, Probabilities
from frhsic.estimators.responses import Response
from frhsic.scoring import auc_and_influence
from frhsic.tables.columns import is_frame, to_pandas
from frhsic.tables.targets import MOST_CLASSES


@dataclass(frozen=True, eq=False)
class KeptTarget:
    """A column that Z should predict.

    Attributes
    ----------
    name
        Name of the column, or "target".
    classes
        The sorted labels, or None for numbers.
    scale
        Standard deviation of numbers, which is the unit of d, or 1 for classes.
    """

    name: str
    classes: Any
    scale: float

    @classmethod
    def from_column(cls, name: str, values: np.ndarray, weights: np.ndarray | None) -> KeptTarget:
        """Learn the type of a column. Integers with more than 20 distinct values are treated as
        numbers.
        """
        kind = type_of_target(values, input_name="y", raise_unknown=True)
        if kind == "multiclass" and values.dtype.kind in "iuf":
            kind = "continuous" if len(np.unique(values)) > MOST_CLASSES else kind
        if kind == "continuous":
            numbers = values.astype(np.float64)
            mean = np.average(numbers, weights=weights)
            variance = np.average((numbers - mean) ** 2, weights=weights)
            return cls(name, None, float(np.sqrt(variance)) or 1.0)
        return cls(name, np.unique(values), 1.0)

    @property
    def width(self) -> int:
        """Number of columns in the predictions of this target."""
        return 1 if self.classes is None else len(self.classes)

    def outcome(self, values: np.ndarray) -> Response:
        """Return the column as the target of a regression."""
        if self.classes is None:
            values = values.astype(np.float64)[:, None]
        return Response(values, self.classes)

    def coordinates(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """Return coordinates, keyed by name, from the predicted columns, (L, C): the means of
        numbers or the probabilities of classes (for two classes, only the second).
        """
        if self.classes is None:
            return {self.name: columns[:, 0] * self.scale}
        names = [f"{self.name}={label}" for label in self.classes]
        every = dict(zip(names, columns.T))
        return every if len(names) > 2 else {names[-1]: columns[:, -1]}

    def performance(
        self, columns: np.ndarray, y: np.ndarray, weights: np.ndarray
    ) -> dict[str, Any]:
        """Return performance measures, keyed by name, with the coordinates as predictions."""
        if self.classes is None:
            squares = (columns[:, 0] * self.scale - y.astype(np.float64)) ** 2
            return {"squared_error": float(np.average(squares, weights=weights))}
        codes = np.searchsorted(self.classes, y)
        losses = log_losses(columns, codes)
        values = {"log_loss": float(np.average(losses, weights=weights))}
        if len(self.classes) == 2:
            values["auc"] = auc_and_influence(columns[:, 1], codes, weights)[0]
        return values


def split_targets(
    targets: Sequence[KeptTarget], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Split the predictions of regressions into the columns of all targets, (n, T), and the
    remaining columns. The columns of targets are scaled numbers and the probabilities of each
    class.
    """
    columns = []
    for target in targets:
        outputs = target.width if target.width > 2 else 1
        own = values[:, :outputs] / target.scale
        columns.append(np.column_stack([1 - own, own]) if target.width == 2 else own)
        values = values[:, outputs:]
    return np.column_stack(columns), values


def target_kinds(targets: Sequence[KeptTarget]) -> tuple[Kind, ...]:
    """Return the type of distance for the predicted columns of each target."""
    stops = np.cumsum([target.width for target in targets]).tolist()
    return tuple(
        Numbers(stop - 1, stop)
        if target.classes is None
        else Probabilities(stop - target.width, stop)
        for target, stop in zip(targets, stops)
    )


def named_coordinates(targets: Sequence[KeptTarget], centers: np.ndarray) -> dict[str, np.ndarray]:
    """Return the coordinates of prototypes, keyed by name, from all predicted columns, (L, T)."""
    coordinates: dict[str, np.ndarray] = {}
    for target, kind in zip(targets, target_kinds(targets)):
        coordinates |= target.coordinates(centers[:, kind.start : kind.stop])
    return coordinates


def target_performance(
    targets: Sequence[KeptTarget],
    columns: np.ndarray,
    labels: dict[str, np.ndarray],
    weights: np.ndarray,
) -> dict[str, float]:
    """Return performance measures of predicted columns, (n, T), keyed by name."""
    values: dict[str, float] = {}
    for target, kind in zip(targets, target_kinds(targets)):
        performance = target.performance(
            columns[:, kind.start : kind.stop], labels[target.name], weights
        )
        prefix = f"{target.name}_" if len(targets) > 1 else ""
        values |= {f"{prefix}{name}": value for name, value in performance.items()}
    return values


def log_losses(chances: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the log loss of each row, given the probabilities of all classes, (n, C), or of the
    second of two classes, (n,).
    """
    if chances.ndim == 1:
        likelihood = np.where(codes == 1, chances, 1 - chances)
    else:
        likelihood = chances[np.arange(len(codes)), codes.astype(np.int64)]
    return np.asarray(-np.log(np.clip(likelihood, 1e-12, 1.0)))


def target_columns(estimator: Any, y: Any) -> dict[str, np.ndarray]:
    """Return the columns of y, keyed by name."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass"
            " the columns that Z should predict as y; to share a whole table, use ParityCoupling,"
            " which needs sensitive_features for every row."
        )
    if is_frame(y):
        frame = to_pandas(y, "y")
        if not len(frame.columns):
            raise ValueError("y has no columns; pass the columns that Z should predict.")
        return {str(name): target_column(estimator, frame[name]) for name in frame}
    columns = np.asarray(y)
    if columns.ndim == 2 and columns.shape[1] > 1:
        names = [f"target{j}" for j in range(columns.shape[1])]
        return {name: target_column(estimator, column) for name, column in zip(names, columns.T)}
    name = getattr(y, "name", None)
    return {"target" if name is None else str(name): target_column(estimator, y)}
