"""Targets of the engine: the labels and numbers that it predicts from a table, and the columns to
which regressions are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logit, logsumexp


@dataclass(frozen=True, eq=False)
class Response:
    """Labels or numbers that are predicted from a table.

    Attributes
    ----------
    values
        Labels, (n,), or numbers, (n, K).
    classes
        The sorted labels, or None for numbers.
    known
        Mask of the rows that have values, (n,), or None if all rows do.
    reduced
        Whether only the :func:`~frhsic.estimators.basis.predictable_directions` of the numbers are
        modeled.
    """

    values: np.ndarray
    classes: Any = None
    known: np.ndarray | None = None
    reduced: bool = False

    @property
    def rows(self) -> np.ndarray:
        """Mask of the rows that have values."""
        return np.full(len(self.values), True) if self.known is None else self.known


@dataclass(frozen=True, eq=False)
class FitTarget:
    """How a response, given by its index in the fit, is modeled: by its labels, or by its numbers
    after `centers` are subtracted, the differences are divided by `scales`, (K,), and the results
    are combined along `directions`, (K, R).
    """

    place: int
    classes: Any
    centers: np.ndarray
    scales: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, place: int, response: Response) -> FitTarget:
        """Return a target for the labels, or for the unscaled numbers."""
        count = 1 if response.classes is not None else response.values.shape[1]
        ones = np.ones(count)
        return cls(place, response.classes, 0 * ones, ones, np.eye(count))

    @property
    def outputs(self) -> int:
        """Number of margins: one for two classes, one per class for more classes, or one per
        number.
        """
        if self.classes is None:
            return int(self.directions.shape[1])
        count = len(self.classes)
        return count if count > 2 else 1

    def labels(self, values: np.ndarray) -> np.ndarray:
        """Return the label codes of rows, (n,), or the numbers, (n, R)."""
        if self.classes is not None:
            return np.asarray(np.searchsorted(self.classes, values))
        return np.asarray((values - self.centers) / self.scales @ self.directions)

    def columns(self, values: np.ndarray) -> np.ndarray:
        """Return the targets for least squares, (n, outputs): class indicators, or the numbers."""
        labels = self.labels(values)
        if self.classes is None:
            return labels
        return np.asarray(np.eye(len(self.classes))[labels][:, -self.outputs :])

    def along(self, directions: np.ndarray) -> FitTarget:
        """Return a target for linear combinations of the numbers."""
        return replace(self, directions=self.directions @ directions)


@dataclass(frozen=True, eq=False)
class TargetColumn:
    """One column to predict: its class codes or numbers, (n,), the target that it belongs to, the
    number of classes (0 for numbers), and the offset and scale of the numbers.
    """

    response: Response
    values: np.ndarray
    target: FitTarget
    classes: int = 0
    center: float = 0.0
    scale: float = 1.0

    @property
    def outputs(self) -> int:
        """Number of margins: one, or one per class if there are more than two classes."""
        return self.classes if self.classes > 2 else 1

    @property
    def objective(self) -> str:
        """LightGBM's name for the loss."""
        return {0: "regression", 2: "binary"}.get(self.classes, "multiclass")

    def constants(self, fold: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the margins of constant predictions fitted without each fold, (folds, outputs)."""
        trains = (fold != np.arange(fold.max() + 1)[:, None]) * weights
        trains = trains / trains.sum(axis=1, keepdims=True)
        if not self.classes:
            return np.asarray(trains @ self.values)[:, None]
        rates = trains @ np.eye(self.classes)[self.values]
        rates = np.clip(rates[:, -self.outputs :], 1e-6, 1 - 1e-6)
        return np.asarray(logit(rates) if self.classes == 2 else np.log(rates))

    def losses(self, margins: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the losses of margins (n, outputs) for the given rows."""
        values = self.values[rows]
        if not self.classes:
            return np.asarray((margins[:, 0] - values) ** 2)
        if self.classes == 2:
            return np.asarray(np.logaddexp(0, (1 - 2 * values) * margins[:, 0]))
        own = np.take_along_axis(margins, values[:, None], axis=1)[:, 0]
        return np.asarray(logsumexp(margins, axis=1) - own)
