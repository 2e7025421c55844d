"""Transformer that learns a representation independent of sensitive attributes, for heads fitted later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target
from torch import nn

from frhsic.estimators.network import NetworkEstimator
from frhsic.estimators.targets import Target, class_target, number_target, residual_target, target_column
from frhsic.penalties import Penalty
from frhsic.tables import TableEncoding
from frhsic.training import Task
from frhsic.training.recipe import Schedule


class ParityEncoder(NetworkEstimator):
    r"""Transformer: a representation Z = h(X) trained to be independent of continuous sensitive attributes.

    .. math:: \min_{h, f} \; \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)
        + \tfrac w2 \|W\|^2.

    With y the head f predicts y: labels by cross-entropy, continuous numbers by the squared error of the standardized y
    (scikit-learn's ``type_of_target`` decides which). Without y it reconstructs what the attributes do not tell of the
    scaled columns,

    .. math:: \ell = \frac{1}{d} \|f(z) - r\|^2, \qquad r = (x - \hat E[x \mid s]) / \sigma,

    with :math:`\sigma^2` the mean variance of the columns, so that the loss is a share of their variance, and a spline
    in the ranks of each attribute, fitted to the rows of each call, for the conditional mean. So Z gains nothing from
    carrying S. The attributes are needed to fit, not to transform. The head is not used afterwards; others are fitted
    on Z. :func:`frhsic.transfer` measures what they still recover of S.

    **With or without y.** Pass y if the tasks to come resemble it: Z then keeps little else. Leave y out if they are
    unknown: Z keeps more of X, and more of S with it. `docs/representations.md` says when to use which, with numbers.

    Parameters
    ----------
    penalty, penalty_weight, encoder, hidden_layer_sizes, representation_size, activation, epochs, batch_size
        As in :class:`FRHSICClassifier`, with other defaults: the encoder is d → 128 → 128 → 16 with GELU, and its Z has
        50 columns without y. Without y, "hsic" drops the term of the head.
    learning_rate, schedule, weight_decay, variance_floor, early_stopping, validation_fraction, n_iter_no_change
        As in :class:`FRHSICClassifier`. Without y, the weight decay is 0.
    ensemble, scaling, handle_unknown, feature_encoding, sensitive_encoding, warm_start, device, random_state, verbose
        As in :class:`FRHSICClassifier`.

    Attributes
    ----------
    task_ : str
        "binary", "multiclass", "regression" or "reconstruction".
    encoder_, head_, has_bottleneck_, representation_rank_, penalty_, feature_encoding_, sensitive_encoding_
        As in :class:`FRHSICClassifier`.
    loss_curve_, penalty_curve_, validation_curve_, best_epochs_, n_features_in_, feature_names_in_
        As in :class:`FRHSICClassifier`.
    sensitive_names_in_
        As in :class:`FRHSICClassifier`.

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

    def __init__(
        self,
        penalty: str | Penalty = "hsic",
        penalty_weight: float = 10.0,
        encoder: nn.Module | Callable[[int], nn.Module] | None = None,
        *,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        representation_size: int | None = None,
        activation: str = "gelu",
        epochs: int | str = "auto",
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        schedule: Schedule = "cosine",
        weight_decay: float | None = None,
        variance_floor: float | None = None,
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 20,
        ensemble: int = 1,
        scaling: str = "robust",
        handle_unknown: str = "ignore",
        feature_encoding: TableEncoding | None = None,
        sensitive_encoding: TableEncoding | None = None,
        warm_start: bool = False,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            penalty,
            penalty_weight,
            encoder,
            hidden_layer_sizes=hidden_layer_sizes,
            representation_size=representation_size,
            activation=activation,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            schedule=schedule,
            weight_decay=weight_decay,
            variance_floor=variance_floor,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            ensemble=ensemble,
            scaling=scaling,
            handle_unknown=handle_unknown,
            feature_encoding=feature_encoding,
            sensitive_encoding=sensitive_encoding,
            warm_start=warm_start,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )

    def _completed(self, target: Target, x: np.ndarray, sensitive_features: Any, weights: Any) -> Target:
        return residual_target(x, sensitive_features, weights) if target.task == "reconstruction" else target

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
