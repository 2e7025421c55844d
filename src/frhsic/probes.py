"""Probes: how well simple models recover a sensitive attribute from a representation, on held-out
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import lightgbm
import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic._trees import histogram_settings

ProbeKind = Literal["linear", "trees"]

FOLDS = 5
TREES = 100

RIDGES = np.logspace(-8, 4, 13)
"""Candidate ridges; leave-one-out error selects one. Small ridges can detect S in directions of Z
with little variance.
"""


@dataclass(frozen=True)
class Probe:
    """Out-of-fold R² of one model that predicts an attribute or its ranks, and the R² for the
    shuffled attribute.
    """

    r2: float
    shuffled_r2: float
    rows: int
    folds: int

    def __float__(self) -> float:
        return self.r2


def linear_head(binary: bool) -> Any:
    """Return an unfitted linear model on standardized columns: logistic regression, or ridge
    regression with a separate ridge for each target.
    """
    ridge = RidgeCV(alphas=RIDGES, alpha_per_target=True)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000) if binary else ridge)


def probe(z: np.ndarray, s: np.ndarray, kind: ProbeKind, *, seed: int = 0) -> Probe:
    r"""Return the share of the variance of s, or of its ranks if that is larger, that a model
    recovers from z on rows that it was not fitted on.

    .. math:: R^2 = 1 - \sum_i (s_i - \hat s_i)^2 / \sum_i (s_i - \bar s)^2, \qquad \hat s_i \text{
        out of fold.}

    R² is zero or negative if such a model cannot predict s from z, although a better model might,
    and one if the model recovers s exactly. Ranks are included because a few rows dominate the
    variance of a skewed s such as income: a linear model of log-income explains little of the
    variance of income, although log-income determines income. `shuffled_r2` is the R² for a
    shuffled s, which is negative, and more so for models that overfit. The linear probe is a ridge
    regression on standardized columns, with the ridge chosen within each training fold; the other
    probe consists of 100 boosted trees.

    Parameters
    ----------
    z
        Representation of shape (n, d).
    s
        Attribute of shape (n,).
    kind
        ``"linear"`` or ``"trees"``.
    seed
        Seed for the folds, the trees and the shuffle.

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> round(probe(x[:, None], 3 * x + 1, "linear").r2, 3)
    1.0
    """
    if float(np.ptp(s)) == 0:
        raise ValueError("s is constant, so there is nothing to recover; pass an s that varies.")
    folds = min(FOLDS, len(s) // 2)
    split = KFold(folds, shuffle=True, random_state=seed)
    value, rank = ((t - t.mean()) / t.std() for t in (s, rankdata(s)))
    targets = (value, rank, np.random.default_rng(seed).permutation(rank))
    if kind == "linear":
        fits = cross_val_predict(linear_head(binary=False), z, np.column_stack(targets), cv=split).T
    else:
        fits = _cross_fitted_trees(z, targets, split, seed)
    r2 = [float(1 - np.mean((t - fit) ** 2)) for t, fit in zip(targets, fits)]
    return Probe(max(r2[:2]), r2[2], len(s), folds)


def _cross_fitted_trees(
    z: np.ndarray, targets: Sequence[np.ndarray], split: KFold, seed: int
) -> np.ndarray:
    """Return out-of-fold predictions of each target by boosted trees; the columns of z are binned
    only once for all targets.
    """
    settings: dict[str, Any] = {"objective": "regression", "seed": seed, "num_threads": 1}
    settings |= histogram_settings(z.shape[1])
    data = lightgbm.Dataset(z, np.zeros(len(z)), params=settings).construct()
    fits = np.empty((len(targets), len(z)))
    for rows, held_out in split.split(z):
        train: Any = np.sort(rows)
        part = data.subset(train).construct()
        for own, target in zip(fits, targets):
            part.set_label(target[train])
            booster = lightgbm.Booster(settings, part)
            for _ in range(TREES):
                booster.update()
            own[held_out] = booster.predict(z[held_out], num_threads=1)
    return fits


def held_out_r2(
    kind: ProbeKind,
    z: np.ndarray,
    s: np.ndarray,
    z_test: np.ndarray,
    s_test: np.ndarray,
    *,
    seed: int = 0,
) -> float:
    """Return the R² on test rows of a probe fitted on other rows."""
    return float(r2_score(s_test, _model(kind, z.shape[1], seed).fit(z, s).predict(z_test)))


def cross_fitted_scores(
    z: np.ndarray, y: np.ndarray, *, groups: np.ndarray | None = None, seed: int = 0
) -> np.ndarray:
    """Return scores for y from a linear head on z, where the score of each row comes from a model
    fitted without this row.

    Scores are probabilities from logistic regression if y is 0/1, otherwise predictions from ridge
    regression. With `groups`, of shape (n,), the model is fitted without any row of the same group.
    """
    binary = set(np.unique(y)) <= {0.0, 1.0}
    if groups is None:
        folds: Any = StratifiedKFold if binary else KFold
        count = FOLDS
    else:
        folds = StratifiedGroupKFold if binary else GroupKFold
        count = min(FOLDS, len(np.unique(groups)))
    split = folds(count, shuffle=True, random_state=seed)
    head = linear_head(binary=binary)
    if not binary:
        return np.asarray(cross_val_predict(head, z, y, groups=groups, cv=split))
    scores = cross_val_predict(
        head, z, y.astype(int), groups=groups, cv=split, method="predict_proba"
    )
    return np.asarray(scores[:, 1])


def _model(kind: ProbeKind, columns: int, seed: int) -> Any:
    if kind == "linear":
        return linear_head(binary=False)
    # with few rows, more threads gain little, and wait for each other for a long time if cores are
    # busy
    return lightgbm.LGBMRegressor(
        n_estimators=TREES, random_state=seed, n_jobs=1, **histogram_settings(columns)
    )
