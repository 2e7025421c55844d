"""Which rows tune and which test, and the numbers that are measured on them.

A permutation, fixed for each dataset, cuts the rows into two halves. The first tunes: three random divisions of it into
training (two thirds) and validation rows. The second tests: five disjoint folds; in fold k all rows but its own train.
So no test row was ever used to tune, and none is tested on twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from frhsic.datasets import load_dataset
from frhsic.estimators.bases import BaseRows, fitted_base
from frhsic.parity import gdp
from frhsic.tables import TableEncoding, Task

CONFIRMATORY = ("support", "pension", "wages")
SEEN = ("crime", "compas", "adult", "acs_income", "meps")
DATASETS = (*CONFIRMATORY, *SEEN)

LOOKS = dict.fromkeys(CONFIRMATORY, 1) | dict.fromkeys(SEEN, 5)
"""Number of looks at test rows of a table, this study included; four generations of defaults came before."""

SEED = 2718
SPLITS = {"tune": 3, "test": 5}
MOST_TRAINING = {"tune": 3_000, "test": 8_000}
MOST_OTHERS = 3_000

Role = Literal["tune", "test"]


@dataclass(frozen=True, eq=False)
class Source:
    """A dataset as arrays."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    task: Task

    @classmethod
    def load(cls, name: str) -> Source:
        """Load a dataset."""
        data = load_dataset(name)
        return cls(name, data.X, data.y.to_numpy(float), pd.DataFrame(data.s).iloc[:, 0].to_numpy(float), data.task)


def divided(n: int, role: Role, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a split, and the rows that it is validated or tested on.

    Examples
    --------
    >>> train, validation = divided(60, "tune", 0)
    >>> test = [divided(60, "test", k)[1] for k in range(5)]
    >>> len(train), len(validation), [len(rows) for rows in test]
    (20, 10, [6, 6, 6, 6, 6])
    >>> bool(np.isin(np.concatenate(test), np.concatenate([train, validation])).any())
    False
    """
    order = np.random.default_rng([SEED, n]).permutation(n)
    first, second = order[: n // 2], order[n // 2 :]
    generator = np.random.default_rng([SEED, n, role == "test", split])
    if role == "tune":
        mixed = generator.permutation(first)
        rest, others = mixed[len(mixed) // 3 :], mixed[: len(mixed) // 3]
    else:
        size = len(second) // SPLITS["test"]  # equal sizes, so that folds can be stacked
        others = second[split * size : (split + 1) * size]
        rest = generator.permutation(np.setdiff1d(order, others))
    return rest[: MOST_TRAINING[role]], others[:MOST_OTHERS]


@dataclass(frozen=True, eq=False)
class Base:
    """Boosted trees without penalty: columns for a network, out of fold on training rows, and their own scores."""

    columns: tuple[np.ndarray, np.ndarray]
    scores: np.ndarray


def fitted(source: Source, role: Role, split: int) -> Base:
    """Fit the default base model to the training rows of a split."""
    with threadpool_limits(1):
        rows, others = divided(len(source.y), role, split)
        X, X_other = (source.X.iloc[part].reset_index(drop=True) for part in (rows, others))
        classes = None if source.task == "regression" else np.array([0.0, 1.0])
        x = TableEncoding.fit(X)(X)
        base, columns = fitted_base("boosted", BaseRows(X, x, source.y[rows], classes), split)
        assert base is not None
        return Base((columns, base(X_other)), raw_scores(base.model, X_other, source.task))


def raw_scores(model: Any, X: pd.DataFrame, task: str) -> np.ndarray:
    """Return predictions of a regressor, or log-odds of a classifier."""
    if task == "regression":
        return np.asarray(model.predict(X), dtype=float)
    p = np.clip(model.predict_proba(X)[:, 1], 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p / (1 - p)))


def shown(raw: np.ndarray, task: str) -> np.ndarray:
    """Return the scores that GDP is of: probabilities, or predictions."""
    return raw if task == "regression" else np.asarray(1 / (1 + np.exp(-raw)))


def measured(task: str, y: np.ndarray, raw: np.ndarray, s: np.ndarray) -> tuple[float, float]:
    """Return performance, larger is better (accuracy, or minus the mean squared error), and GDP of raw scores."""
    if not np.isfinite(raw).all():
        return constant(task, y), math.nan
    performance = -float(np.mean((raw - y) ** 2)) if task == "regression" else float(((raw > 0) == y).mean())
    return performance, float(gdp(shown(raw, task), s, resamples=0))


def constant(task: str, y: np.ndarray) -> float:
    """Return the performance of the best constant, which has no GDP at all."""
    return -float(np.var(y)) if task == "regression" else float(max(y.mean(), 1 - y.mean()))
