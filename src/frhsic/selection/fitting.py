"""Fit one estimator at many weights of its penalty, whatever estimator it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, fit_path
from frhsic.formatting import plain

Watch = Callable[[str], None]


def check_estimator(estimator: Any) -> None:
    """Raise unless a weight can be chosen for this estimator."""
    name = type(estimator).__name__
    lacks = []
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator is {name}; pass an unfitted scikit-learn estimator, such as FRHSICClassifier().")
    if "penalty_weight" not in estimator.get_params(deep=False):
        lacks.append("a parameter penalty_weight")
    arguments = inspect.signature(estimator.fit).parameters
    if not any(one.name == "sensitive_features" or one.kind is one.VAR_KEYWORD for one in arguments.values()):
        lacks.append("a fit that takes sensitive_features")
    method = "predict_proba" if is_classifier(estimator) else "predict"
    if not hasattr(estimator, method):
        lacks.append(f"a method {method}")
    if lacks:
        raise TypeError(
            f"estimator is {name}, which lacks {' and '.join(lacks)}. A weight is chosen by performance and "
            "dependence: pass an FRHSICClassifier or FRHSICRegressor, or an estimator of yours with these."
        )


@dataclass(frozen=True, eq=False)
class Fitting:
    """An estimator and the rows that it is fitted on; their groups go to a ``fit`` that takes `groups`."""

    estimator: Any
    X: Any
    y: Any
    s: Any
    sample_weight: Any = None
    groups: Any = None
    sequential: bool = False
    watch: Watch = lambda step: None

    def path(self, weights: Sequence[float]) -> list[Any]:
        """Fit a copy for each weight: those of this library all at once, others one after another."""
        rows = f"on {len(self.y):,} rows"
        if isinstance(self.estimator, (FRHSICClassifier, FRHSICRegressor)):
            return self._fleets(list(weights), rows)
        models = []
        for i, weight in enumerate(weights):
            self.watch(f"training weight {plain(weight)} ({i + 1} of {len(weights)}) {rows}")
            models.append(self.at(weight))
        return models

    def _fleets(self, weights: list[float], rows: str) -> list[Any]:
        """Fit all weights as one fleet, or as one fleet for each worker that joblib is configured with."""
        workers = min(effective_n_jobs(None), len(weights))
        tasks = "" if workers == 1 else f" in {workers} tasks"
        self.watch(f"training {len(weights)} weights at once {rows}{tasks}")
        # the rows are part of each task: arguments that joblib spreads over a Dask cluster are lost with a worker
        fit = partial(
            fit_path,
            self.estimator,
            self.X,
            self.y,
            sensitive_features=self.s,
            sample_weight=self.sample_weight,
            groups=self.groups,
            sequential=self.sequential,
        )
        fleets = Parallel(n_jobs=workers)(delayed(partial(fit, weights=weights[i::workers]))() for i in range(workers))
        return [fleets[i % workers][i // workers] for i in range(len(weights))]

    def at(self, weight: float) -> Any:
        """Fit a copy at one weight."""
        given = {} if self.sample_weight is None else {"sample_weight": self.sample_weight}
        if self.groups is not None and has_fit_parameter(self.estimator, "groups"):
            given["groups"] = self.groups
        model = clone(self.estimator).set_params(penalty_weight=weight)
        return model.fit(self.X, self.y, sensitive_features=self.s, **given)


def joined(first: Any, second: Any) -> Any:
    """Return the rows of two arrays or frames, one below the other."""
    if isinstance(first, (pd.DataFrame, pd.Series)):
        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([np.asarray(first), np.asarray(second)])


def checked_weights(weights: Sequence[float]) -> list[float]:
    """Return the grid in increasing order, with 0 as the reference."""
    try:
        grid = sorted({0.0, *(float(weight) for weight in weights)})
    except (TypeError, ValueError):
        raise ValueError(f"weights={weights!r}; pass a list of numbers, such as [1, 10, 100].") from None
    if not all(0 <= weight < np.inf for weight in grid) or len(grid) < 2:
        raise ValueError(f"weights={list(weights)!r}; pass finite numbers above 0, such as [1, 10, 100].")
    return grid


def refined_weights(grid: Sequence[float], at: int, count: int) -> list[float]:
    """Return `count` weights on either side of ``grid[at]``, up to its neighbours, in equal ratios.

    Towards 0, the weights go down to a tenth of the smallest weight above 0.

    Examples
    --------
    >>> refined_weights([0, 1, 16], 1, 1)
    [0.316, 4.0]
    >>> refined_weights([0, 1, 16], 2, 3)
    [2.0, 4.0, 8.0]
    """
    lowest = min(weight for weight in grid if weight > 0) / 10
    near = [max(weight, lowest) for weight in grid[max(at - 1, 0) : at + 2]]
    steps = [w for low, high in pairwise(near) for w in np.geomspace(low, high, count + 2)[1:-1]]
    return sorted({float(f"{weight:.3g}") for weight in steps} - set(grid))
