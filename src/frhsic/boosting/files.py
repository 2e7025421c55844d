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
from frhsic.estimators.header import (
    InvalidHeaderError,
    items,
    labels,
    mapping,
    number,
    of_type,
    one_of,
    optional,
    record,
    whole,
)
from frhsic.estimators.plain import labels_from_json, labels_to_json, to_json

CLASSES: dict[str, type[BoostedParity]] = {
    "BoostedParityClassifier": estimators.BoostedParityClassifier,
    "BoostedParityRegressor": estimators.BoostedParityRegressor,
}
NUMBERS = ("n_features_in_", "n_trees_", "random_seed_")
NAMES = ("feature_names_in_", "sensitive_names_in_")
BOOSTER = "booster"
HEADER = record(
    {
        "layout": whole(1),
        "versions": mapping(of_type(str)),
        "estimator": one_of(*CLASSES),
        "parameters": mapping(of_type(int, float, bool, str, type(None))),
        "learned": record(
            {
                **dict.fromkeys(NUMBERS, whole()),
                "columns_": record(
                    {
                        "names": items(of_type(str, int, float), 1),
                        "levels": items(optional(items(of_type(str, int, float, bool))), 1),
                    },
                    {"dates": items(of_type(str)), "medians": items(optional(number()))},
                ),
            },
            {**dict.fromkeys(NAMES, items(of_type(str), 1)), "classes_": labels},
        ),
        "checksum": of_type(str),
    }
)


def header_of(model: BoostedParity) -> dict[str, Any]:
    """Return versions, parameters and what was learned apart from the trees, as JSON."""
    parameters = {name: to_json(value) for name, value in model.get_params(deep=False).items()}
    if not isinstance(parameters["random_state"], (int, type(None))):
        parameters["random_state"] = model.random_seed_
    learned: dict[str, Any] = {name: int(getattr(model, name)) for name in NUMBERS}
    learned |= {name: [str(label) for label in getattr(model, name)] for name in NAMES if hasattr(model, name)}
    columns = model.columns_
    learned["columns_"] = {name: to_json(getattr(columns, name)) for name in ("names", "levels", "dates", "medians")}
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
    HEADER(header, "")
    model = CLASSES[header["estimator"]](**header["parameters"])
    model._check_parameters()
    learned = dict(header["learned"])
    columns = learned.pop("columns_")
    width = len(columns["names"])
    counts = {len(columns["levels"]), len(columns.get("medians") or columns["names"]), learned["n_features_in_"]}
    if counts | {len(learned.get("feature_names_in_", columns["names"]))} != {width}:
        raise InvalidHeaderError("the columns have different numbers in different places")
    model.columns_ = TreeColumns(
        tuple(columns["names"]),
        tuple(None if levels is None else tuple(levels) for levels in columns["levels"]),
        *(tuple(columns.get(name, ())) for name in ("dates", "medians")),  # files of earlier versions have none
    )
    classes = learned.pop("classes_", None)
    if isinstance(model, estimators.BoostedParityClassifier) != (classes is not None):
        raise InvalidHeaderError("learned has classes_ without a classifier, or a classifier without classes_")
    if isinstance(model, estimators.BoostedParityClassifier):
        model.classes_ = labels_from_json(classes)
        if len(model.classes_) != 2:
            raise InvalidHeaderError(f"it has {len(model.classes_)} classes, not two")
    for name, value in learned.items():
        setattr(model, name, np.array(value, dtype=object) if name in NAMES else value)
    model.booster_ = booster_from_text(bytes(tensors[BOOSTER].numpy()).decode("utf-8"))
    if (model.booster_.num_feature(), model.booster_.num_model_per_iteration()) != (width, 1):
        raise InvalidHeaderError("the trees are not those of one output and these columns")
    return model
