"""How long a model is trained: its epochs, and rows held out of training, by which it stops early."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from frhsic.estimators.targets import Target
from frhsic.penalties import Adversary, BinnedAdversary
from frhsic.training import TrainingData
from frhsic.training.data import Purpose, stream_seed

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator

AUTO_ROWS = (500, 10_000)
"""Numbers of rows, from and below, for which ``early_stopping="auto"`` holds some out.

Small tables overfit in few steps without penalty and need more with it. Large tables do not overfit in
:data:`AUTO_STEPS`, and very small ones have no rows to spare.
"""

AUTO_STEPS = 2_500
"""Steps of the optimizer that ``epochs="auto"`` aims at."""

AUTO_EPOCHS = (20, 100)
"""Fewest and most epochs of ``epochs="auto"``."""


def number_of_epochs(epochs: int | str, rows: int, batch_size: int) -> int:
    """Return a number of epochs; "auto" is about :data:`AUTO_STEPS` steps, within :data:`AUTO_EPOCHS`.

    Examples
    --------
    >>> [number_of_epochs("auto", rows, 256) for rows in (1000, 20_000, 1_000_000)]
    [100, 32, 20]
    """
    if isinstance(epochs, str):
        least, most = AUTO_EPOCHS
        return min(max(round(AUTO_STEPS / math.ceil(rows / batch_size)), least), most)
    return epochs


def training_data(
    x: np.ndarray, target: Target, s: np.ndarray | None, weights: np.ndarray | None, held_out: np.ndarray | None
) -> TrainingData:
    """Return the rows to train on, with those that are held out.

    Without sensitive attributes a column of zeros stands for them.
    """
    attributes = np.zeros((len(x), 1)) if s is None else s

    def chosen(rows: np.ndarray | slice, others: TrainingData | None = None) -> TrainingData:
        y, w = (None if values is None else values[rows] for values in (target.values, weights))
        return TrainingData.of(x[rows], y, attributes[rows], sample_weight=w, held_out=others)

    return chosen(slice(None)) if held_out is None else chosen(~held_out, chosen(held_out))


def validation_rows(
    estimator: NetworkEstimator, target: Target, s: np.ndarray | None, n: int, groups: Any = None
) -> np.ndarray | None:
    """Return which rows are held out, (n,) booleans, or None if training does not stop early.

    They are a share `validation_fraction` of the rows of each class, and of the rows with and without S, or of the
    `groups`, which are not cut. The draw depends on the random state alone: a later call on the same rows holds out the
    same ones.

    Parameters
    ----------
    estimator : NetworkEstimator
        Its parameters ask for early stopping or not.
    target : Target
        Target of all rows.
    s : ndarray or None
        Sensitive attributes, NaN where they are not known.
    n : int
        Number of rows.
    groups : array of shape (n,), optional
        Rows of one group are held out together or not at all.
    """
    known = np.ones(n, dtype=bool) if s is None else ~np.isnan(s).any(axis=1)
    if estimator.early_stopping == "auto":
        learning = isinstance(estimator.penalty, (Adversary, BinnedAdversary)) or estimator.penalty in ("adv", "laftr")
        wanted = AUTO_ROWS[0] <= n < AUTO_ROWS[1] and not learning
    else:
        wanted = bool(estimator.early_stopping)
    if not wanted:
        return None
    share, seed = float(estimator.validation_fraction), stream_seed(estimator.random_seed_, 0, Purpose.HELD_OUT, 1)
    held_out = np.zeros(n, dtype=bool)
    if groups is not None:
        if len(set(np.asarray(groups).tolist())) < 2:
            raise ValueError(
                "groups has one group only, so none can be held out for early stopping. Pass other groups, or "
                "early_stopping=False."
            )
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
