"""Transformer that learns a representation independent of sensitive attributes, for heads fitted later."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from frhsic.estimators.base import ParityBase
from frhsic.estimators.targets import Target, class_target, number_target, target_column
from frhsic.fleet import Task


class ParityEncoder(ParityBase):
    r"""Transformer: a representation Z = h(X) trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2.

    Without y the head f reconstructs the scaled columns, :math:`\ell = \frac1d \|f(z) - x\|^2`. With y it predicts y:
    labels by cross-entropy, continuous numbers by the squared error of the standardized y (scikit-learn's
    ``type_of_target`` decides which). The head is not used afterwards; others are fitted on Z.
    :func:`frhsic.transfer` measures what they still recover of S.

    **With or without y.** Pass y if the tasks to come resemble it: Z then keeps little else. Leave y out if they are
    unknown: Z keeps more of X, and more of S with it. The loss is small then, so begin with ``penalty_weight=0.1``; the
    default of 10 leaves little of X.

    Parameters
    ----------
    penalty, penalty_weight, base, encoder, hidden_layer_sizes, representation_size, activation, epochs, batch_size, \
learning_rate, schedule, weight_decay, variance_floor, early_stopping, validation_fraction, n_iter_no_change, \
ensemble, scaling, handle_unknown, feature_encoding, sensitive_encoding, warm_start, device, random_state, verbose
        As in :class:`ParityClassifier`. Without y there is no base, "hsic" has no term for the head, and the weight
        decay is 0.

    Attributes
    ----------
    task_ : str
        "binary", "multiclass", "regression" or "reconstruction".
    encoder_, head_, has_bottleneck_, representation_rank_, penalty_, feature_encoding_, sensitive_encoding_, \
base_performance_, loss_curve_, penalty_curve_, validation_curve_, best_epochs_, n_features_in_, feature_names_in_, \
sensitive_names_in_
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

    def _target(self, y: Any, classes: Any = None) -> Target:
        task = getattr(self, "task_", None)
        if task is not None and (y is None) != (task == "reconstruction"):
            raise ValueError(
                f"the first call was for {task}, this one has {'no y' if y is None else 'a y'}; fit a new encoder."
            )
        if y is None:
            target = Target(None, "reconstruction", self.feature_encoding_.width)
        else:
            target = self._supervised(target_column(self, y), task)
        self.task_ = target.task
        return target

    def _supervised(self, y: np.ndarray, task: Task | None) -> Target:
        kind = type_of_target(y, input_name="y", raise_unknown=True) if task is None else task
        if kind in ("continuous", "regression"):
            return number_target(self, y)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"y is {kind}; pass one column of labels or numbers, or None.")
        return class_target(self, y)
