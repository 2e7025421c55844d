"""scikit-learn estimators that deploy boosted trees, trained with a penalty on dependence."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from frhsic.boosting.base import BoostedParity
from frhsic.boosting.objective import Array, Task
from frhsic.estimators.targets import target_column


class BoostedParityClassifier(ClassifierMixin, BoostedParity):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Boosted trees for two classes whose probabilities are trained not to follow continuous sensitive attributes.

    .. math:: \min_f \; \frac1n \sum_i \ell(f(x_i), y_i) + \lambda \, \mathrm{HSIC}(p(X), S)

    over sums f of trees, with cross-entropy ℓ, the probability p of the second class, and the kernels of
    :func:`frhsic.boosting.objective`. Use it if trees must be deployed: `booster_` is a plain LightGBM model. It has no
    representation Z; if Z is handed on, use :class:`frhsic.ParityClassifier`.

    **The penalty acts on the mean probability,** the quantity of :func:`frhsic.parity.gdp`. The spread may still follow
    S, and so may decisions at a threshold: on Adult, λ = 100 took the GDP of probabilities from .093 to .029, but that
    of decisions from .090 to .069. Measure both. At large λ probabilities shrink towards the share of the second class;
    :func:`frhsic.parity.standardized_gdp` does not fall by shrinking alone.

    Needs LightGBM: ``pip install 'frhsic[boosting]'``.

    Parameters
    ----------
    penalty_weight : float
        λ. Choose it with :func:`frhsic.select_weight`.
    n_estimators : int
        Largest number of trees.
    learning_rate, num_leaves, min_child_samples
        As in LightGBM, whose defaults these are.
    validation_fraction : float, optional
        Share of the rows, drawn at random, whose loss plus penalty decides the number of trees. The model is then
        fitted again, to all rows, with that number. None grows `n_estimators` trees. If the share is fewer than 20
        rows, there are at most 100 trees.
    n_iter_no_change : int
        Stop if the held-out loss plus penalty has not fallen for so many trees.
    n_jobs : int, optional
        Number of threads; None lets LightGBM decide.
    random_state : int, Generator, RandomState or None
        Seed of the held-out rows and of LightGBM.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees, with base score and link. Its ``predict`` gives the probability of the second class, for a matrix
        of `columns_`.
    classes_ : ndarray
        The two labels.
    columns_ : TreeColumns
        Names of the columns of X, and levels of the categorical ones.
    n_trees_ : int
        Number of trees.
    n_features_in_, feature_names_in_, sensitive_names_in_
        Number and names of the columns seen in `fit`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s, rng.normal(size=400)])
    >>> y = 2 * s + X[:, 1] > 1
    >>> model = BoostedParityClassifier(100.0, n_jobs=1, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.predict_proba(X).shape
    (400, 2)
    """

    classes_: np.ndarray
    _task: Task = "binary"

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class, (n,)."""
        return self._predicted(X, raw_score=True)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, (n, 2)."""
        second = self._predicted(X, raw_score=False)
        return np.column_stack([1 - second, second])

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable label of each row."""
        second = self.decision_function(X) > 0
        return np.asarray(self.classes_[second.astype(int)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _target(self, y: Any) -> tuple[Array, float, float]:
        labels = target_column(self, y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) != 2:
            count = "one class" if len(self.classes_) == 1 else f"{len(self.classes_)} classes"
            raise ValueError(
                f"y has {count}. Only binary classification is supported: pass a target with two classes, or use "
                "ParityClassifier for more."
            )
        return codes.astype(np.float64), 0.0, 1.0


class BoostedParityRegressor(RegressorMixin, BoostedParity):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Boosted trees for a number whose predictions are trained not to follow continuous sensitive attributes.

    .. math:: \min_f \; \frac1n \sum_i (f(x_i) - \tilde y_i)^2 + \lambda \, \mathrm{HSIC}(f(X), S), \qquad
        \tilde y = (y - \bar y) / \mathrm{sd}(y)

    over sums f of trees, with the kernels of :func:`frhsic.boosting.objective`. Predictions are in the unit of y. See
    :class:`BoostedParityClassifier` for when to use it and for what the penalty does not remove.

    Parameters
    ----------
    penalty_weight, n_estimators, learning_rate, num_leaves, min_child_samples, validation_fraction
        As in :class:`BoostedParityClassifier`.
    n_iter_no_change, n_jobs, random_state
        As in :class:`BoostedParityClassifier`.

    Attributes
    ----------
    booster_, columns_, n_trees_, n_features_in_, feature_names_in_, sensitive_names_in_
        As in :class:`BoostedParityClassifier`. ``booster_.predict`` gives predictions in the unit of y.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s, rng.normal(size=400)])
    >>> model = BoostedParityRegressor(n_jobs=1, random_state=0).fit(X, X[:, 1] + s, sensitive_features=s)
    >>> predictions = model.predict(X)
    >>> bool(abs(np.corrcoef(predictions, s)[0, 1]) < 0.1 and np.corrcoef(predictions, X[:, 1])[0, 1] > 0.9)
    True
    """

    _task: Task = "regression"

    def predict(self, X: Any) -> Array:
        """Return the prediction of each row, in the unit of y."""
        return self._predicted(X, raw_score=False)

    def _target(self, y: Any) -> tuple[Array, float, float]:
        values = target_column(self, y).astype(np.float64)
        center, scale = float(values.mean()), float(values.std()) or 1.0
        return (values - center) / scale, center, scale
