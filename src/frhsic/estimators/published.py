"""Settings of the paper, for the constructors of the estimators."""

from __future__ import annotations

from typing import Any

PUBLISHED: dict[str, Any] = {
    "penalty": "frhsic",
    "base": None,
    "encoder": None,
    "hidden_layer_sizes": (50,),
    "representation_size": 50,
    "activation": "selu",
    "epochs": 200,
    "batch_size": 256,
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "variance_floor": 0.0,
    "schedule": "constant",
    "early_stopping": False,
    "ensemble": 1,
    "scaling": "range",
    "reconstruct": "columns",
}
"""The paper's settings, of all estimators together.

Whoever adds a parameter whose default is not the paper's adds the paper's value here.
"""
