"""Rows held out of training, by which it stops early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from frhsic.estimators.targets import Target
from frhsic.fleet import TrainingData
from frhsic.fleet.data import Purpose, stream_seed

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

AUTO_ROWS = 10_000
"""Rows from which ``early_stopping="auto"`` holds some out, as scikit-learn's histogram boosting does."""


def training_data(
    estimator: ParityBase,
    x: np.ndarray,
    target: Target,
    s: np.ndarray | None,
    weights: np.ndarray | None,
    epochs: int,
    groups: Any = None,
) -> TrainingData:
    """Return the rows to train on, with those that are held out; one epoch cannot stop early and holds out none.

    Without sensitive attributes a column of zeros stands for them.
    """
    attributes = np.zeros((len(x), 1)) if s is None else s
    known = np.asarray(~np.isnan(attributes).any(axis=1))

    def chosen(rows: np.ndarray | slice, held_out: TrainingData | None = None) -> TrainingData:
        y, w = (None if values is None else values[rows] for values in (target.values, weights))
        return TrainingData.of(x[rows], y, attributes[rows], sample_weight=w, held_out=held_out)

    held_out = validation_rows(estimator, target, known, groups) if epochs > 1 else None
    return chosen(slice(None)) if held_out is None else chosen(~held_out, chosen(held_out))


def validation_rows(estimator: ParityBase, target: Target, known: np.ndarray, groups: Any = None) -> np.ndarray | None:
    """Return which rows are held out, (n,) booleans, or None if training does not stop early.

    They are a share `validation_fraction` of the rows of each class, and of the rows with and without S, or of the
    `groups`, which are not cut. The draw depends on the random state alone: a later call on the same rows holds out the
    same ones.

    Parameters
    ----------
    estimator : ParityBase
        Its parameters ask for early stopping or not.
    target : Target
        Target of all rows.
    known : ndarray of bool
        Rows for which S is known.
    groups : array of shape (n,), optional
        Rows of one group are held out together or not at all.
    """
    n = len(known)
    if not estimator.early_stopping or (estimator.early_stopping == "auto" and n < AUTO_ROWS):
        return None
    share, seed = float(estimator.validation_fraction), stream_seed(estimator.random_seed_, 0, Purpose.HELD_OUT, 1)
    held_out = np.zeros(n, dtype=bool)
    if groups is not None:
        ((_, rows),) = GroupShuffleSplit(1, test_size=share, random_state=seed % 2**32).split(known, groups=groups)
        held_out[rows] = True
    else:
        strata = known.astype(np.int64)
        if target.values is not None and target.task in ("binary", "multiclass"):
            strata += 2 * target.values.astype(np.int64)
        draw = np.random.default_rng(seed)
        for stratum in np.unique(strata):
            rows = np.flatnonzero(strata == stratum)
            held_out[draw.choice(rows, int(share * len(rows) + 0.5), replace=False)] = True
    if not held_out.any() or not known[held_out].any() or not known[~held_out].any():
        raise ValueError(
            f"early stopping holds out {int(held_out.sum())} of {n} rows, but needs rows with S on both sides. Pass "
            "more rows, another validation_fraction, or early_stopping=False."
        )
    return held_out
