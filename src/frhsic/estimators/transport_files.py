"""A fitted transport of scores as JSON and tensors, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import sklearn
import torch
from torch import Tensor

from frhsic.estimators.header import InvalidHeaderError
from frhsic.transport import LEVELS, ConditionalLaw, ScoreTransport


def header_of(model: ScoreTransport) -> dict[str, Any]:
    """Return versions, parameters and what was learned apart from the law, as JSON."""
    seed = model.random_state if isinstance(model.random_state, int) else None
    resolution = None if model.resolution is None else float(model.resolution)
    return {
        "versions": {"scikit-learn": sklearn.__version__},
        "estimator": "ScoreTransport",
        "parameters": {"amount": float(model.amount), "resolution": resolution, "random_state": seed},
        "learned": {"resolution_": model.resolution_, "n_rows_": model.n_rows_},
    }


def tensors_of(model: ScoreTransport) -> dict[str, Tensor]:
    """Return the arrays of the law."""
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in asdict(model.law_).items()}


def transport_of(header: dict[str, Any], tensors: dict[str, Tensor]) -> ScoreTransport:
    """Return the fitted transport."""
    model, learned = ScoreTransport(**header["parameters"]), header["learned"]
    model._check_amount()
    model.law_ = ConditionalLaw(**{name: values.numpy() for name, values in tensors.items()})
    _check(model.law_)
    model.resolution_, model.n_rows_ = float(learned["resolution_"]), int(learned["n_rows_"])
    return model


def _check(law: ConditionalLaw) -> None:
    """Raise unless the arrays are laws on one grid: finite, increasing, and probabilities between 0 and 1."""
    arrays = asdict(law).values()
    if any(array.dtype != np.float64 or not np.isfinite(array).all() for array in arrays):
        raise InvalidHeaderError("the law holds values that are not finite numbers")
    grid = (len(law.nodes), len(law.thresholds))
    if any(array.ndim != 1 for array in (law.s, law.nodes, law.thresholds)) or len(law.s) < 1 or grid < (2, 1):
        raise InvalidHeaderError("the law has no grid")
    if law.below.shape != grid or law.up_to.shape != grid or law.quantiles.shape != (LEVELS,):
        raise InvalidHeaderError("the arrays of the law do not fit each other")
    increasing = (np.diff(law.nodes) > 0).all() and (np.diff(law.thresholds) > 0).all() and (np.diff(law.s) >= 0).all()
    levels = np.stack([law.below, law.up_to], axis=2).reshape(grid[0], -1)
    rising = (np.diff(levels, axis=1) >= 0).all() and levels.min() >= 0 and levels.max() <= 1
    if not (increasing and rising):
        raise InvalidHeaderError("the law does not increase from 0 to 1")
