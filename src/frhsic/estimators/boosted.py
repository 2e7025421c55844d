"""Boosted trees on any table: scikit-learn's histogram boosting, held as plain arrays after fitting."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from frhsic.estimators.features import checked_table
from frhsic.estimators.targets import target_column
from frhsic.estimators.trees import MOST_LEAVES, Trees
from frhsic.tables import TableEncoding

PATIENCE = 10
"""Iterations without a better loss on the held-out rows after which boosting stops."""

HELD_OUT = 0.1
"""Share of the rows that chooses the number of iterations."""

COMPARED_ROWS = 200

THREADED_CELLS = 10_000_000
"""Smallest table, in rows times columns, that is fitted with several threads: on smaller ones, and on busy machines,
threads of scikit-learn's boosting wait for each other most of the time."""


class BoostedTrees(BaseEstimator):  # type: ignore[misc]  # untyped in sklearn
    """What the two share: parameters, choice of the number of iterations, trees as arrays."""

    encoding_: TableEncoding
    trees_: Trees
    n_iter_: int
    _library: Any

    def __init__(
        self,
        *,
        learning_rate: float = 0.2,
        n_iter: int | None = None,
        max_iter: int = 300,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int = 20,
        max_features: float = 0.5,
        random_state: Any = None,
    ) -> None:
        self.learning_rate = learning_rate
        self.n_iter = n_iter
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the trees to a table of numbers, text and categories.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        """
        if not 2 <= self.max_leaf_nodes <= MOST_LEAVES:
            raise ValueError(f"max_leaf_nodes={self.max_leaf_nodes!r}; pass a number from 2 to {MOST_LEAVES}.")
        X, y = checked_table(self, X, first=True), target_column(self, y)
        self.encoding_ = TableEncoding.fit(X)
        x = self.encoding_(X, "ignore")
        self.n_iter_ = self._chosen_n_iter(x, y, sample_weight) if self.n_iter is None else int(self.n_iter)
        model = self._grown(x, y, sample_weight, max_iter=self.n_iter_)
        self.trees_ = Trees.of(model)
        self._check_trees(model, x[:COMPARED_ROWS])
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_
        return self

    def _grown(self, x: np.ndarray, y: np.ndarray, sample_weight: Any, **settings: Any) -> Any:
        model = self._library(
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=self.random_state,
            **{"early_stopping": False, **settings},
        )
        with threadpool_limits(1 if x.size < THREADED_CELLS else None, user_api="openmp"):
            return model.fit(x, y, sample_weight=sample_weight)

    def _chosen_n_iter(self, x: np.ndarray, y: np.ndarray, sample_weight: Any) -> int:
        """Return the number of iterations with the least loss on a tenth of the rows."""
        if not self._can_hold_out(y):
            return PATIENCE
        stopping = {"early_stopping": True, "validation_fraction": HELD_OUT, "n_iter_no_change": PATIENCE}
        model = self._grown(x, y, sample_weight, max_iter=self.max_iter, **stopping)
        return max(1, int(np.argmax(model.validation_score_)))

    def _can_hold_out(self, y: np.ndarray) -> bool:
        return len(y) >= 20

    def _check_trees(self, model: Any, x: np.ndarray) -> None:
        """Raise if the arrays do not give what the library's model gives."""
        raw = model.decision_function(x) if hasattr(model, "decision_function") else model.predict(x)
        scores = self.trees_(x)
        if not np.allclose(scores, np.asarray(raw).reshape(scores.shape), rtol=1e-9, atol=1e-9 * np.abs(scores).max()):
            raise RuntimeError(
                "the trees of this version of scikit-learn are stored in a way that this version of frhsic does not "
                "know. Use a newer frhsic, or base=HistGradientBoostingClassifier() (or Regressor)."
            )

    def _raw(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.trees_(self.encoding_(checked_table(self, X, first=False), "ignore"))


class BoostedTreesClassifier(ClassifierMixin, BoostedTrees):  # type: ignore[misc]  # untyped in sklearn
    """Boosted trees for labels, on tables of numbers, text and categories; ``base="boosted"`` of a classifier.

    scikit-learn's ``HistGradientBoostingClassifier`` on the columns of :class:`frhsic.tables.TableEncoding`. The number
    of iterations is the one with the least log loss on a tenth of the rows; the trees are then grown on all rows. A
    fitted model consists of plain arrays, which :func:`frhsic.save` writes without pickle.

    Parameters
    ----------
    learning_rate, max_leaf_nodes, min_samples_leaf, max_features
        As in scikit-learn; `max_leaf_nodes` is at most 32.
    n_iter : int, optional
        Number of iterations; None chooses it as above.
    max_iter : int
        Largest number to choose.
    random_state
        Seed of the held-out rows and of the columns that a split may use.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    encoding_ : TableEncoding
        How the table became a matrix. Categories that no training row has are encoded as zeros.
    trees_
        The trees, as arrays.

    Examples
    --------
    >>> X = np.arange(200.0)[:, None]
    >>> BoostedTreesClassifier(random_state=0).fit(X, X[:, 0] > 99).predict([[20.0], [150.0]]).tolist()
    [False, True]
    """

    _library = HistGradientBoostingClassifier

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log-odds (n,) of the second of two classes, or one raw column per class."""
        scores = self._raw(X)
        return scores[:, 0] if len(self.classes_) <= 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, number of classes)."""
        scores = self.decision_function(X)
        return np.asarray(np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, 1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the most probable class of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def _can_hold_out(self, y: np.ndarray) -> bool:
        counts = np.unique(y, return_counts=True)[1]
        return bool(len(y) >= 20 and counts.min() >= 2 and HELD_OUT * len(y) >= len(counts))  # rows of every class


class BoostedTreesRegressor(RegressorMixin, BoostedTrees):  # type: ignore[misc]  # untyped in sklearn
    """Boosted trees for numbers, on tables of numbers, text and categories; ``base="boosted"`` of a regressor.

    scikit-learn's ``HistGradientBoostingRegressor`` with the squared error. Parameters and attributes are those of
    :class:`BoostedTreesClassifier`.

    Examples
    --------
    >>> X = np.arange(200.0)[:, None]
    >>> BoostedTreesRegressor(random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.9
    True
    """

    _library = HistGradientBoostingRegressor

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each row."""
        return self._raw(X)[:, 0]
