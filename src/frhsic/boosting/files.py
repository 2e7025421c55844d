"""Fitted boosted trees as JSON and bytes, and back. Nothing is pickled, and reading executes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
import torch
from torch import Tensor

from frhsic.boosting import estimators
from frhsic.boosting.base import BoostedParity
from frhsic.boosting.boosters import booster_from_text, booster_to_text, lightgbm
from frhsic.boosting.columns import TreeColumns
from frhsic.estimators.plain import labels_from_json, labels_to_json, to_json

CLASSES: dict[str, type[BoostedParity]] = {
    "BoostedParityClassifier": estimators.BoostedParityClassifier,
    "BoostedParityRegressor": estimators.BoostedParityRegressor,
}
NUMBERS = ("n_features_in_", "n_trees_", "random_seed_")
NAMES = ("feature_names_in_", "sensitive_names_in_")
BOOSTER = "booster"


def header_of(model: BoostedParity) -> dict[str, Any]:
    """Return versions, parameters and what was learned apart from the trees, as JSON."""
    parameters = {name: to_json(value) for name, value in model.get_params(deep=False).items()}
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = model.random_seed_
    learned: dict[str, Any] = {name: int(getattr(model, name)) for name in NUMBERS}
    learned |= {name: [str(label) for label in getattr(model, name)] for name in NAMES if hasattr(model, name)}
    learned["columns_"] = {"names": to_json(model.columns_.names), "levels": to_json(model.columns_.levels)}
    if isinstance(model, estimators.BoostedParityClassifier):
        learned["classes_"] = labels_to_json(model.classes_)
    return {
        "versions": {"lightgbm": lightgbm().__version__, "scikit-learn": sklearn.__version__},
        "estimator": type(model).__name__,
        "parameters": parameters,
        "learned": learned,
    }


def tensors_of(model: BoostedParity) -> dict[str, Tensor]:
    """Return LightGBM's text of the trees, as bytes."""
    text = bytearray(booster_to_text(model.booster_), "utf-8")
    return {BOOSTER: torch.frombuffer(text, dtype=torch.uint8).clone()}


def model_of(header: dict[str, Any], tensors: dict[str, Tensor]) -> BoostedParity:
    """Return the fitted model."""
    model = CLASSES[header["estimator"]](**header["parameters"])
    model._check_parameters()
    learned = dict(header["learned"])
    columns = learned.pop("columns_")
    model.columns_ = TreeColumns(
        tuple(columns["names"]), tuple(None if levels is None else tuple(levels) for levels in columns["levels"])
    )
    classes = labels_from_json(learned.pop("classes_", None))
    if isinstance(model, estimators.BoostedParityClassifier) and classes is not None:
        model.classes_ = classes
    for name, value in learned.items():
        setattr(model, name, np.array(value, dtype=object) if name in NAMES else value)
    model.booster_ = booster_from_text(bytes(tensors[BOOSTER].numpy()).decode("utf-8"))
    return model
