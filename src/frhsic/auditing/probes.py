"""Probes: how well simple models recover the attribute from the representation, on rows they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = ["Probe", "ProbeKind", "cross_fitted_scores", "probe"]

ProbeKind = Literal["linear", "trees"]

FOLDS = 5
RESAMPLES = 500

RIDGES = np.logspace(-8, 4, 13)
"""Candidates for the ridge, of which the leave-one-out error chooses: the small ones find what hides in directions of Z
that have hardly any variance."""


@dataclass(frozen=True)
class Probe:
    """Out-of-fold R² of a probe and its bootstrap interval over rows."""

    r2: float
    low: float
    high: float
    rows: int
    folds: int

    def __float__(self) -> float:
        return self.r2


def probe(
    z: np.ndarray,
    s: np.ndarray,
    kind: ProbeKind,
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Probe:
    r"""Share of the variance of s that a model recovers from z on rows it has not seen.

    .. math:: R^2 = 1 - \sum_i (s_i - \hat s_i)^2 / \sum_i (s_i - \bar s)^2, \qquad \hat s_i \text{ out of fold.}

    Zero, or a little less, when z says nothing about s that such a model can use; it may still say something that
    a better one could. One when it gives s away. The linear probe is ridge regression on standardised columns with
    the penalty chosen within each training fold, the other 100 histogram-boosted trees.

    Parameters
    ----------
    z
        Of shape (n, d).
    s
        Of shape (n,).
    kind
        Which probe.
    level
        Of the interval, from a bootstrap over rows whose predictions are held fixed.
    seed
        Of folds, trees and bootstrap.

    Examples
    --------
    >>> x = np.linspace(0, 1, 100)
    >>> round(probe(x[:, None], 3 * x + 1, "linear").r2, 3)
    1.0
    """
    if float(np.ptp(s)) == 0:
        raise ValueError("s is constant: there is nothing to recover.")
    folds = min(FOLDS, len(s) // 2)
    model: Any
    if kind == "linear":
        model = make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGES))
    else:
        model = HistGradientBoostingRegressor(max_iter=100, early_stopping=False, random_state=seed)
    split = KFold(folds, shuffle=True, random_state=seed)
    target = (s - s.mean()) / s.std()
    residual = (target - cross_val_predict(model, z, target, cv=split)) ** 2
    total = target**2
    r2 = 1 - residual.mean() / total.mean()
    random = np.random.default_rng(seed)
    counts = random.multinomial(len(s), np.full(len(s), 1 / len(s)), size=RESAMPLES)
    means = counts @ np.stack([residual, total, target], axis=1) / len(s)
    draws = 1 - means[:, 0] / (means[:, 1] - means[:, 2] ** 2)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Probe(float(r2), float(low), float(high), len(s), folds)


def cross_fitted_scores(z: np.ndarray, y: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Scores of a linear head on z for y, each from a fit that has not seen its row.

    A probability from logistic regression when y is 0/1, a ridge prediction otherwise.
    """
    model: Any
    if set(np.unique(y)) <= {0.0, 1.0}:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        split: Any = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        return np.asarray(cross_val_predict(model, z, y.astype(int), cv=split, method="predict_proba")[:, 1])
    model = make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGES))
    return np.asarray(cross_val_predict(model, z, y, cv=KFold(FOLDS, shuffle=True, random_state=seed)))
