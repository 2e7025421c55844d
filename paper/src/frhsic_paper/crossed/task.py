"""The input and output of a method: a base with its settings on rows of a table, the regressions of
the base, and the points that the method yields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from frhsic.estimators.basis import SensitiveBasis
from frhsic_paper.crossed.bases import Base, Fit, Network, Values
from frhsic_paper.crossed.rows import PARTS, SPLITS, Role, Rows, divide_rows, training_parts
from frhsic_paper.crossed.settings import Quantity

RARE = 0.2
"""If the base rate is below this, it is the threshold of decisions, and both classes have equal
weight.
"""


def threshold_of(rate: float) -> float:
    """Return the threshold of decisions: 1/2, or the base rate if positives are rare."""
    return rate if rate < RARE else 0.5


def decide(scores: np.ndarray, rate: float) -> np.ndarray:
    """Return 0/1 decisions at the threshold 1/2, or at the base rate if positives are rare."""
    return (scores > threshold_of(rate)).astype(float)


class Point(NamedTuple):
    """One point of a path, on the rows that are not training rows of a split: scores or decisions,
    and the quantity for which it is meant, if only one.
    """

    way: str
    trial: int
    dial: float
    split: int
    values: np.ndarray
    quantity: Quantity | None = None
    decided: bool = False


def decided(way: str, trial: int, dial: float, split: int, chances: np.ndarray) -> Point:
    """Return a point that consists of decisions or their probabilities."""
    return Point(way, trial, float(dial), split, chances, "decisions", decided=True)


class Task(NamedTuple):
    """The input of a method: a table, a base with its settings for y and for functions of S, tuning
    or test rows, and the number of splits.
    """

    table: Rows
    base: Base
    of_y: Values
    of_s: Values
    role: Role
    device: str
    splits: int | None = None
    epochs: int | None = None

    @property
    def sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training rows and other rows of each split."""
        count = self.splits or SPLITS[self.role]
        return [divide_rows(len(self.table.y), self.role, split) for split in range(count)]

    def outputs(self, table: Rows, fits: Sequence[Fit], values: Values) -> list[np.ndarray]:
        """Return the predictions of the base."""
        if isinstance(self.base, Network):
            return self.base.outputs(table, fits, values, self.device, self.epochs)
        return self.base.outputs(table, fits, values, self.device)

    def fit(self, train: np.ndarray, others: np.ndarray, weights: Any = None) -> Fit:
        """Return the regression of y."""
        return Fit(train, others, self.table.y, self.table.binary, weights)

    def base_losses(self) -> dict[str, float]:
        """Return the mean loss of the base for y, and for the functions of S, on the other rows."""
        table = self.table
        of_y = self.outputs(table, [self.fit(*rows) for rows in self.sets], self.of_y)
        losses = []
        for (_, others), f in zip(self.sets, of_y):
            y = table.y[others]
            if table.binary:
                p = np.clip(f, 1e-6, 1 - 1e-6)
                losses.append(-np.mean(np.log(np.where(y == 1, p, 1 - p))))
            else:
                losses.append(np.mean((f - y) ** 2))
        fits = [
            Fit(train, others, column, False)
            for train, others in self.sets
            for column in SensitiveBasis.fit(table.s[train])(table.s).T
        ]
        of_s = self.outputs(table, fits, self.of_s)
        squares = [np.mean((f - fit.target[fit.others]) ** 2) for f, fit in zip(of_s, fits)]
        return {"y": float(np.mean(losses)), "s": float(np.mean(squares))}


class Regressed(NamedTuple):
    """Predictions of y or functions of S, (n, K): for training rows, from models fitted without the
    part that contains them; for other rows, from a model fitted to all training rows.
    """

    train: np.ndarray
    others: np.ndarray


def regress(
    task: Task, table: Rows, values: Values, targets: Sequence[np.ndarray], binary: bool
) -> list[Regressed]:
    """Return predictions of the columns of the targets of each split, (n, K)."""
    fits = []
    for (train, others), own in zip(task.sets, targets):
        parts = training_parts(train)
        for j, part in enumerate(parts):
            rest = np.concatenate(parts[:j] + parts[j + 1 :])
            fits += [Fit(rest, part, column, binary) for column in own.T]
        fits += [Fit(train, others, column, binary) for column in own.T]
    found = iter(task.outputs(table, fits, values))
    result = []
    for own in targets:
        *parts, others = (np.column_stack([next(found) for _ in own.T]) for _ in range(PARTS + 1))
        result.append(Regressed(np.concatenate(parts), others))
    return result


def regress_y(task: Task, table: Rows) -> list[Regressed]:
    """Return predictions of y for each split."""
    targets = [table.y[:, None]] * len(task.sets)
    return regress(task, table, task.of_y, targets, table.binary)
