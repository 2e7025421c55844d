"""Regression with a penalty on the dependence of its representation on sensitive attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from frhsic.estimators.network import NetworkEstimator
from frhsic.estimators.targets import Target, number_target, target_column


class FRHSICRegressor(RegressorMixin, NetworkEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Regressor whose representation is trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i (f(h(x_i)) - \tilde y_i)^2 + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2, \qquad \tilde y = (y - \bar y) / \mathrm{sd}(y).

    The target is standardized by the training rows, so that λ means the same in every unit of y: the head's raw output,
    which penalties see, has unit scale. Predictions are in the unit of y.

    The defaults are the method of the paper; choose λ with :func:`frhsic.select_weight`. :class:`FRHSICClassifier` says
    more about the options.

    Parameters
    ----------
    penalty, penalty_weight, encoder, hidden_layer_sizes, representation_size, activation, epochs, batch_size
        As in :class:`FRHSICClassifier`.
    learning_rate, schedule, weight_decay, variance_floor, early_stopping, validation_fraction, n_iter_no_change
        As in :class:`FRHSICClassifier`.
    ensemble, scaling, handle_unknown, feature_encoding, sensitive_encoding, warm_start, device, random_state, verbose
        As in :class:`FRHSICClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of y in the training rows.
    encoder_, head_, has_bottleneck_, representation_rank_, penalty_, feature_encoding_, sensitive_encoding_
        As in :class:`FRHSICClassifier`.
    loss_curve_, penalty_curve_, validation_curve_, best_epochs_, n_features_in_, feature_names_in_
        As in :class:`FRHSICClassifier`.
    sensitive_names_in_
        As in :class:`FRHSICClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> y = 1000 + 50 * X[:, 1]
    >>> model = FRHSICRegressor(penalty_weight=1.0, epochs=100, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y) > 0.9
    True
    """

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each row, in the unit of y."""
        raw = self._evaluated(X, with_head=True)[:, 0]
        return np.asarray(self.target_mean_ + self.target_scale_ * raw)

    def _target(self, y: Any, classes: Any = None) -> Target:
        return number_target(self, target_column(self, y))
