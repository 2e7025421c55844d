"""Tables and quick estimators to choose a weight on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LinearRegression, LogisticRegression


def credit(n: int, seed: int = 0, rate: float = 0.06) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, defaults of a share of the rows, and ages. Debt, income and age tell of default."""
    rng = np.random.default_rng(seed)
    age = np.round(rng.gamma(6, 4, size=n) + 18)
    income = np.exp(rng.normal(10 + 0.02 * (age - 42), 0.6))
    debt = np.where(rng.random(n) < 0.4, 0.0, rng.exponential(0.5, size=n))  # in incomes, often none
    X = np.column_stack([np.log(income), debt, rng.normal(size=n)])
    risk = 2 * debt - X[:, 0] - 0.02 * age + rng.logistic(scale=1.2, size=n)
    return X, (risk > np.quantile(risk, 1 - rate)).astype(int), age


class Mixed(ClassifierMixin, BaseEstimator):
    """A logistic regression, mixed with a constant: the larger the weight, the less of the regression is left."""

    def __init__(self, penalty_weight: float = 1.0) -> None:
        self.penalty_weight = penalty_weight

    def fit(self, X: Any, y: Any, sensitive_features: Any = None, sample_weight: Any = None) -> Mixed:
        self.model_ = LogisticRegression().fit(X, y, sample_weight=sample_weight)
        self.classes_, self.rate_, self.rows_ = self.model_.classes_, float(np.mean(y == self.model_.classes_[1])), X
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        p = self.rate_ + (self.model_.predict_proba(X)[:, 1] - self.rate_) / (1 + self.penalty_weight)
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]


class MixedRegressor(RegressorMixin, BaseEstimator):
    """A linear regression, mixed with its mean."""

    def __init__(self, penalty_weight: float = 1.0) -> None:
        self.penalty_weight = penalty_weight

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> MixedRegressor:
        self.model_, self.mean_ = LinearRegression().fit(X, y), float(np.mean(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.mean_ + (self.model_.predict(X) - self.mean_) / (1 + self.penalty_weight)
