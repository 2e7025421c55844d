"""Fit one estimator at several weights of its penalty, all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.base import clone

from frhsic.estimators.network import NetworkEstimator
from frhsic.estimators.problem import FitCall


def fit_path(
    estimator: NetworkEstimator,
    X: Any,
    y: Any = None,
    *,
    weights: Sequence[float],
    sensitive_features: Any,
    sample_weight: Any = None,
    groups: Any = None,
    sequential: bool = False,
) -> list[Any]:
    """Fit one copy of an estimator for each weight of the penalty, all at once, as one fleet.

    All copies start from the same weights and see the same batches. Each agrees with the estimator fitted alone, up to
    rounding.

    Parameters
    ----------
    estimator : FRHSICClassifier, FRHSICRegressor or ParityEncoder
        The estimator to copy; it is not changed.
    X, y, sensitive_features, sample_weight, groups
        As in its ``fit``.
    weights : sequence of float
        One `penalty_weight` for each copy.
    sequential : bool
        Train one copy after another. Needed for encoders that cannot be stacked, such as those with dropout.

    Returns
    -------
    list of fitted estimators, in the order of `weights`

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic.estimators import FRHSICRegressor
    >>> s = np.linspace(0, 1, 40)
    >>> path = fit_path(FRHSICRegressor(epochs=1, random_state=0), s[:, None], s, weights=[0, 1], sensitive_features=s)
    >>> [model.penalty_weight for model in path]
    [0.0, 1.0]
    """
    if not isinstance(estimator, NetworkEstimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; pass an FRHSICClassifier, FRHSICRegressor or ParityEncoder."
        )
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise TypeError(f"weights is {weights!r}; pass a sequence of numbers, such as [0, 1, 10].")
    grid = [float(weight) for weight in weights]
    if not grid:
        raise ValueError("weights is empty; pass at least one.")
    if sensitive_features is None:
        raise ValueError("sensitive_features is None: without it every weight gives the same model.")
    lead = clone(estimator).set_params(penalty_weight=max(grid), warm_start=False)
    problem = lead._start(FitCall(X, y, sensitive_features, sample_weight, lead.epochs, groups=groups))
    fleet = lead._trained(problem, grid, lead.epochs, sequential=sequential)
    models = []
    for i, weight in enumerate(grid):
        model = clone(estimator).set_params(penalty_weight=weight)
        model.__dict__.update(lead._learned(), n_fits_=1)
        model._adopt(fleet, i)
        models.append(model)
    return models
