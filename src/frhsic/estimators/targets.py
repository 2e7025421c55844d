"""Targets as training takes them: labels become codes, numbers are standardized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import column_or_1d

from frhsic import _arrays
from frhsic.tables import read_sensitive
from frhsic.training import Task
from frhsic.training.residuals import residuals

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator


@dataclass(frozen=True)
class Target:
    """A target as training takes it: values (n,) or (n, c), the task, and the outputs of the head."""

    values: np.ndarray | None
    task: Task
    outputs: int


def target_column(estimator: Any, y: Any) -> np.ndarray:
    """Return y as one column without missing values, after scikit-learn's checks."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    _arrays.require_labels(y, "y")
    values = column_or_1d(y, warn=True)
    assert_all_finite(values, input_name="y", estimator_name=type(estimator).__name__)
    return np.asarray(values)


def class_target(estimator: NetworkEstimator, y: np.ndarray, classes: Any = None) -> Target:
    """Return labels as codes of `classes_`, which the first call learns from y or takes from `classes`."""
    labels = unique_labels(y)
    if not hasattr(estimator, "classes_"):
        estimator.classes_ = labels if classes is None else unique_labels(classes)
    known = estimator.classes_
    unseen = np.setdiff1d(labels, known)
    if len(unseen):
        raise ValueError(
            f"y has the labels {unseen.tolist()!r}, which are not among the classes {known.tolist()!r} of the first "
            "call. That call needs rows of every class; a classifier's partial_fit can name them: classes=[...]."
        )
    codes = np.searchsorted(known, y).astype(np.float64)
    return Target(codes, "binary", 1) if len(known) <= 2 else Target(codes, "multiclass", len(known))


def number_target(estimator: NetworkEstimator, y: np.ndarray) -> Target:
    """Return numbers standardized by the mean and the standard deviation of the first call."""
    values = _arrays.to_numpy(_arrays.vector(y.astype(np.float64), "y"))
    if not hasattr(estimator, "target_scale_"):
        estimator.target_mean_, estimator.target_scale_ = float(values.mean()), float(values.std()) or 1.0
    return Target((values - estimator.target_mean_) / estimator.target_scale_, "regression", 1)


def residual_target(x: np.ndarray, sensitive_features: Any, weights: np.ndarray | None) -> Target:
    r"""Return the target of a reconstruction, :math:`(x - \hat E[x \mid s]) / \sigma` in place of x.

    :math:`\sigma^2` is the mean variance of the columns of x, so that the loss is a share of it. Where no attribute is
    known the conditional mean is the mean.
    """
    mean = np.average(x, axis=0, weights=weights)
    target = x - mean
    variance = float(np.average(target**2, axis=0, weights=weights).mean())
    if sensitive_features is not None:
        s = read_sensitive(sensitive_features, allow_missing=True).values
        known = ~np.isnan(s).any(axis=1)
        target[known] = residuals(x[known], s[known], None if weights is None else weights[known])
    return Target(target / (np.sqrt(variance) or 1.0), "reconstruction", x.shape[1])
