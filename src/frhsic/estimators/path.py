"""One estimator at several weights of its penalty, trained at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from frhsic.estimators.base import ParityBase

__all__ = ["fit_path"]


def fit_path(
    estimator: ParityBase,
    X: Any,
    y: Any = None,
    *,
    weights: Sequence[float],
    sensitive_features: Any,
    sample_weight: Any = None,
    sequential: bool = False,
) -> list[Any]:
    """Fit one copy of an estimator for each weight of the penalty, all at once, as one fleet.

    Each copy has the same initial weights and sees the same batches, and agrees with the same estimator fitted alone
    up to the rounding of sums in another order.

    Parameters
    ----------
    estimator : ParityClassifier, ParityRegressor or ParityEncoder
        What to fit; it is not changed itself.
    X, y, sensitive_features, sample_weight
        As in its ``fit``.
    weights : sequence of float
        One `penalty_weight` for each copy.
    sequential : bool
        Train one after another, for encoders that cannot be stacked, such as those with dropout.

    Returns
    -------
    list of fitted estimators, in the order of `weights`

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic.estimators import ParityRegressor
    >>> s = np.linspace(0, 1, 40)
    >>> path = fit_path(ParityRegressor(epochs=1, random_state=0), s[:, None], s, weights=[0, 1], sensitive_features=s)
    >>> [model.penalty_weight for model in path]
    [0.0, 1.0]
    """
    if not isinstance(estimator, ParityBase):
        raise TypeError(f"estimator is {type(estimator).__name__}; pass a ParityClassifier, Regressor or Encoder.")
    grid = [float(weight) for weight in weights]
    if not grid:
        raise ValueError("weights is empty; pass at least one.")
    if sensitive_features is None:
        raise ValueError("sensitive_features is None: without it every weight gives the same model.")
    lead = clone(estimator).set_params(penalty_weight=max(grid), warm_start=False)
    problem = lead._problem(X, y, sensitive_features, sample_weight, fresh=True)
    fleet = lead._trained(problem, grid, lead.epochs, sequential=sequential)
    fitted = []
    for i, weight in enumerate(grid):
        model = clone(estimator).set_params(penalty_weight=weight)
        learned = {name: value for name, value in vars(lead).items() if name.endswith("_") and not name.endswith("__")}
        model.__dict__.update(learned, n_fits_=1)
        model._adopt(fleet, i)
        fitted.append(model)
    return fitted
