"""A representation independent of sensitive attributes, for heads that come later."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.multiclass import type_of_target, unique_labels

from frhsic.estimators.base import ParityBase, Target
from frhsic.estimators.checks import target_column
from frhsic.fleet import Task

__all__ = ["ParityEncoder"]


class ParityEncoder(ParityBase):
    r"""Transformer: a representation Z = h(X) trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2.

    Without y the head f reconstructs the scaled columns, :math:`\ell = \frac1d \|f(z) - x\|^2`. With y it predicts y:
    classes by cross-entropy where y holds labels, a standardised number by squared error where it is continuous (as
    scikit-learn's ``type_of_target`` says). The head is thrown away in use: others are fitted on Z. What they may
    still recover is measured by :func:`frhsic.transfer`.

    Without y the loss is small, and λ = 10 leaves little of X: begin with 0.1. With y, Z keeps hardly more than y
    needs.

    Parameters
    ----------
    penalty, penalty_weight, encoder, hidden_layer_sizes, representation_size, epochs, batch_size, learning_rate, \
weight_decay, variance_floor, handle_unknown, feature_encoding, sensitive_encoding, warm_start, device, \
random_state, verbose
        As in :class:`ParityClassifier`. Without y there is no head to protect, and "hsic" leaves out its term.

    Attributes
    ----------
    task_ : str
        "binary", "multiclass", "regression" or "reconstruction".
    encoder_, head_, narrowed_, representation_rank_, penalty_, feature_encoding_, sensitive_encoding_, loss_curve_, \
penalty_curve_, n_features_in_, feature_names_in_, sensitive_names_in_
        As in :class:`ParityClassifier`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=100)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=100), rng.normal(size=100)])
    >>> encoder = ParityEncoder(representation_size=2, epochs=5, random_state=0)
    >>> encoder.fit_transform(X, sensitive_features=s).shape
    (100, 2)
    """

    task_: Task
    target_mean_: float
    target_scale_: float

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Fit the encoder; see :meth:`ParityClassifier.fit`."""
        fresh = not self.warm_start or not self.__sklearn_is_fitted__()
        return self._fit(X, y, sensitive_features, sample_weight, fresh=fresh)

    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Self:
        """Train for one epoch on a part of the data; see :meth:`ParityClassifier.partial_fit`."""
        fresh = not self.__sklearn_is_fitted__()
        return self._fit(X, y, sensitive_features, sample_weight, fresh=fresh, epochs=1)

    def _target(self, y: Any, *, fresh: bool, classes: Any = None) -> Target:
        if not fresh and (y is None) != (self.task_ == "reconstruction"):
            raise ValueError(
                f"the first call was for {self.task_}, this one has {'no y' if y is None else 'a y'}; "
                "fit a new encoder."
            )
        if y is None:
            target = Target(None, "reconstruction", self.feature_encoding_.width)
        else:
            target = self._supervised(target_column(self, y), fresh)
        if fresh:
            self.task_ = target.task
        return target

    def _supervised(self, y: np.ndarray, fresh: bool) -> Target:
        if fresh:
            kind = type_of_target(y, input_name="y", raise_unknown=True)
        else:
            kind = "continuous" if self.task_ == "regression" else "multiclass"
        if kind == "continuous":
            values = y.astype(np.float64)
            if fresh:
                self.target_mean_, self.target_scale_ = float(values.mean()), float(values.std()) or 1.0
            return Target((values - self.target_mean_) / self.target_scale_, "regression", 1)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"y is {kind}; pass one column of labels or numbers, or None.")
        if fresh:
            self.classes_ = unique_labels(y)
        new = np.setdiff1d(unique_labels(y), self.classes_)
        if len(new):
            raise ValueError(f"y has the labels {new.tolist()!r}, which the first call did not have.")
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        binary = len(self.classes_) <= 2
        return Target(codes, "binary" if binary else "multiclass", 1 if binary else len(self.classes_))
