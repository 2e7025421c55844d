"""Classifier and regressor with a penalty on the dependence of their representation on sensitive attributes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from frhsic.estimators.inputs import target_column
from frhsic.estimators.network import NetworkEstimator, Target


class FRHSICClassifier(ClassifierMixin, NetworkEstimator):
    r"""Classifier whose representation is trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2,

    with an encoder h, an affine head f, the cross-entropy :math:`\ell`, λ the `penalty_weight` and w the weight decay
    of the encoder's matrices W. The defaults are the method of the paper. Use it for representations, and
    :class:`ParityClassifier` where only the score matters; :func:`frhsic.select_weight` finds λ. The attributes are
    needed to fit, not to predict.

    Parameters
    ----------
    penalty : str or Penalty
        "frhsic", the method of the paper; its rivals "frem", "reg-gdp", "adv", "mmd", "laftr" and "dcor"; "hsic", with
        the head in the kernel; "none"; or an object of :mod:`frhsic.penalties`.
    penalty_weight : float
        λ, zero or more.
    encoder : module, callable or None
        A module, which is copied, or a function of the number of encoded columns that makes one, such as
        ``frhsic.training.MLP(hidden=(64,))``. None is ``MLP()``, as in the paper.
    training : Training, optional
        Epochs, batches, optimizer, early stopping: :class:`frhsic.training.Training`. None is the paper's.
    scaling : {"quantile", "robust", "range"}
        Numbers are scaled by ranks, by median and quartiles, or by minimum and maximum as in the paper. Attributes are
        scaled by ranks, and with "range" by their range.
    handle_unknown : {"ignore", "error"}
        Unseen category at predict: encode as zeros (or with the rare levels), or raise.
    device, random_state
        Where to train ("auto" uses a GPU if there is one); seed of initial weights, batches and held-out rows.

    Attributes
    ----------
    classes_, encoder_, head_, penalty_, feature_encoding_, sensitive_encoding_
        The labels, the trained modules, the penalty with its state, and the scales of features and attributes.
    has_bottleneck_, representation_rank_ : bool and int
        Whether `encoder_` drops directions of Z below the variance floor, and how many are left.
    loss_curve_, penalty_curve_, validation_curve_, best_epoch_
        Task loss and penalty of each epoch; with early stopping the loss on held-out rows, and the epoch that is kept.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> model = FRHSICClassifier(penalty_weight=1.0, random_state=0).fit(X, X[:, 1] > 0, sensitive_features=s)
    >>> model.score(X, X[:, 1] > 0) > 0.9
    True
    """

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train for one epoch on a part of the data, continuing from the last call.

        The first call fixes scales, levels, classes and what the penalty fits in advance. Adam's moments start anew in
        each call, so pass parts of many batches. The other parameters are those of :meth:`fit`.

        Parameters
        ----------
        classes : array, optional
            All labels. Needed in the first call if its rows lack some of them.
        """
        known = getattr(self, "classes_", None)
        if known is not None and classes is not None and not np.array_equal(known, unique_labels(classes)):
            raise ValueError(f"classes={list(classes)!r} differ from those of the first call, {list(known)!r}.")
        return self._fit_part(X, y, sensitive_features, sample_weight, classes)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the head's raw output: log-odds (n,) of the second class, or one column per class."""
        scores = self._evaluated(X, with_head=True)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (n, number of classes)."""
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return the label of the most probable class of each row."""
        scores = self.decision_function(X)
        at = (scores > 0).astype(int) if len(self.classes_) == 2 else scores.argmax(axis=1)
        return np.asarray(self.classes_[at])

    def _target(self, y: Any, classes: Any = None) -> Target:
        check_classification_targets(target_column(self, y))
        target = self._labels(y, classes)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs two.")
        return target


class FRHSICRegressor(RegressorMixin, NetworkEstimator):
    r"""Regressor whose representation is trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i (f(h(x_i)) - \tilde y_i)^2 + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2, \qquad \tilde y = (y - \bar y) / \mathrm{sd}(y).

    The target is standardized by the training rows, so that λ means the same in every unit of y, which is the unit of
    predictions. Use it for representations, and :class:`ParityRegressor` where only the prediction matters.

    Parameters
    ----------
    penalty, penalty_weight, encoder, training, scaling, handle_unknown, device, random_state
        As in :class:`FRHSICClassifier`, which also describes the attributes.

    Attributes
    ----------
    target_mean_, target_scale_ : float
        Mean and standard deviation of y in the training rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=200)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=200), rng.normal(size=200)])
    >>> y = 1000 + 50 * X[:, 1]
    >>> model = FRHSICRegressor(penalty_weight=1.0, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y) > 0.9
    True
    """

    def predict(self, X: Any) -> np.ndarray:
        """Return the prediction of each row, in the unit of y."""
        raw = self._evaluated(X, with_head=True)[:, 0]
        return np.asarray(self.target_mean_ + self.target_scale_ * raw)

    def _target(self, y: Any, classes: Any = None) -> Target:
        return self._numbers(y)
