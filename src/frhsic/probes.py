"""Probes: how well simple models recover a sensitive attribute from a representation, on rows they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["Probe", "ProbeKind", "cross_fitted_scores", "held_out_r2", "linear_head", "probe"]

ProbeKind = Literal["linear", "trees"]

FOLDS = 5
TREES = 100

RIDGES = np.logspace(-8, 4, 13)
"""Ridges to choose from by leave-one-out error; small ones find S in directions of Z with little variance."""


@dataclass(frozen=True)
class Probe:
    """Out-of-fold R² of one model that predicts one attribute, and R² with the attribute shuffled."""

    r2: float
    shuffled_r2: float
    rows: int
    folds: int

    def __float__(self) -> float:
        return self.r2


def linear_head(binary: bool) -> Any:
    """Return an unfitted linear model on standardized columns: logistic regression, or ridge regression."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000) if binary else RidgeCV(alphas=RIDGES))


def probe(z: np.ndarray, s: np.ndarray, kind: ProbeKind, *, seed: int = 0) -> Probe:
    r"""Share of the variance of s that a model recovers from z, on rows it has not seen.

    .. math:: R^2 = 1 - \sum_i (s_i - \hat s_i)^2 / \sum_i (s_i - \bar s)^2, \qquad \hat s_i \text{ out of fold.}

    Zero or negative when such a model cannot use z to predict s; a better model still might. `shuffled_r2` is the value
    on independent data: below zero, the more so the more a model can overfit. One when z
    determines s. The linear probe is ridge regression on standardized columns with the ridge chosen within each
    training fold; the other probe is 100 histogram-boosted trees.

    Parameters
    ----------
    z
        Representation of shape (n, d).
    s
        Attribute of shape (n,).
    kind
        ``"linear"`` or ``"trees"``.
    seed
        Seed of folds, trees and shuffle.

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> round(probe(x[:, None], 3 * x + 1, "linear").r2, 3)
    1.0
    """
    if float(np.ptp(s)) == 0:
        raise ValueError("s is constant: there is nothing to recover.")
    folds = min(FOLDS, len(s) // 2)
    split = KFold(folds, shuffle=True, random_state=seed)
    target = (s - s.mean()) / s.std()
    r2, shuffled = (
        float(1 - np.mean((t - cross_val_predict(_model(kind, seed), z, t, cv=split)) ** 2))
        for t in (target, np.random.default_rng(seed).permutation(target))
    )
    return Probe(r2, shuffled, len(s), folds)


def held_out_r2(
    kind: ProbeKind, z: np.ndarray, s: np.ndarray, z_test: np.ndarray, s_test: np.ndarray, *, seed: int = 0
) -> float:
    """R² on test rows of a probe that was fitted on other rows."""
    return float(r2_score(s_test, _model(kind, seed).fit(z, s).predict(z_test)))


def cross_fitted_scores(z: np.ndarray, y: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Scores of a linear head on z for y, each from a fit that has not seen its row.

    A probability from logistic regression when y is 0/1, a ridge prediction otherwise.
    """
    if set(np.unique(y)) <= {0.0, 1.0}:
        split: Any = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        scores = cross_val_predict(linear_head(binary=True), z, y.astype(int), cv=split, method="predict_proba")
        return np.asarray(scores[:, 1])
    split = KFold(FOLDS, shuffle=True, random_state=seed)
    return np.asarray(cross_val_predict(linear_head(binary=False), z, y, cv=split))


def _model(kind: ProbeKind, seed: int) -> Any:
    if kind == "linear":
        return linear_head(binary=False)
    return HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=seed)
