"""A forged XGBoost model with a right checksum is a ValueError before XGBoost reads it."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frhsic.estimators.xgboost_json import checked_json

xgboost = pytest.importorskip("xgboost")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 3)), columns=list("abc"))
FRAME["c"] = pd.Categorical(RNG.choice(list("uvw"), 120))
LABELS = (FRAME["a"] + (FRAME["c"] == "u") > 0).astype(int) + (FRAME["b"] > 1)
SMALL = {"n_estimators": 3, "max_depth": 3, "n_jobs": 1}
MODELS = {
    "classes": lambda: xgboost.XGBClassifier(**SMALL, enable_categorical=True, max_cat_to_onehot=1).fit(FRAME, LABELS),
    "two classes": lambda: xgboost.XGBClassifier(**SMALL).fit(FRAME[["a", "b"]], LABELS > 0),
    "pruned": lambda: xgboost.XGBRegressor(**SMALL, gamma=3.0).fit(FRAME[["a", "b"]], LABELS),
    "forest": lambda: xgboost.XGBRFRegressor(**SMALL).fit(FRAME[["a", "b"]].to_numpy(), LABELS),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_xgboost_writes_is_read(name: str):
    model = MODELS[name]()
    again = type(model)(enable_categorical=name == "classes")
    again.load_model(checked_json(bytes(model.get_booster().save_raw("json"))))
    rows = FRAME if name == "classes" else FRAME[["a", "b"]].to_numpy() if name == "forest" else FRAME[["a", "b"]]
    assert (again.predict(rows) == model.predict(rows)).all()


def test_forged_models_are_value_errors():
    model = json.loads(bytes(MODELS["classes"]().get_booster().save_raw("json")))
    tree = ("learner", "gradient_booster", "model", "trees", 0)
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    levelled = next(number for number, one in enumerate(trees) if one["categories_nodes"])
    by_level = (*tree[:-1], levelled)
    forged: list[tuple[tuple[Any, ...], Any]] = [
        ((*tree, "left_children", 0), 10**6), ((*tree, "left_children", 0), 0), ((*tree, "right_children", 0), 1),
        ((*tree, "left_children", 0), -1), ((*tree, "left_children"), [1]), ((*tree, "parents", 1), 2),
        ((*tree, "split_indices", 0), 3), ((*tree, "split_indices", 0), -1), ((*tree, "split_type", 0), 2),
        ((*tree, "split_conditions", 0), float("nan")), ((*tree, "base_weights", 0), 1e300),
        ((*tree, "tree_param", "num_nodes"), "999999999"), ((*tree, "tree_param", "size_leaf_vector"), "7"),
        ((*tree, "default_left"), "no"), ((*by_level, "categories_segments", 0), 99),
        ((*by_level, "categories", 0), 1 << 30),
        ((*by_level, "categories_sizes", 0), 10**6), ((*by_level, "categories_nodes"), []),
        (("learner", "learner_model_param", "num_class"), "4"), (("learner", "learner_model_param", "num_class"), "-1"),
        (("learner", "learner_model_param", "num_feature"), "2"),
        (("learner", "learner_model_param", "num_target"), "9"),
        (("learner", "learner_model_param", "base_score"), "[1e300]"), (("learner", "feature_names"), ["a"]),
        (("learner", "objective", "softmax_multiclass_param", "num_class"), "99"),
        (("learner", "gradient_booster", "name"), "gblinear"), ((*tree[:3], "tree_info", 0), 77),
        ((*tree[:3], "iteration_indptr"), [0, 10**6]), ((*tree[:3], "gbtree_model_param", "num_trees"), "1"),
        ((*tree[:3], "cats", "feature_segments"), [0, 0, 0, 9]), ((*tree[:3], "cats", "sorted_idx", 0), 50),
        (("learner",), []), (("version",), "3"), ((*tree[:3],), None),
    ]  # fmt: skip
    for path, value in forged:
        other = copy.deepcopy(model)
        place = other
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValueError, match="XGBoost model"):
            checked_json(json.dumps(other).encode())
    for text in (b"", b"{", b"[" * 10_000, b"[]", b"\xff"):
        with pytest.raises(ValueError):
            checked_json(text)


def test_models_of_other_versions_and_levels_that_are_numbers_are_read():
    model = json.loads(bytes(MODELS["classes"]().get_booster().save_raw("json")))
    trees = model["learner"]["gradient_booster"]["model"]
    number, (entry,) = next(
        (j, [one]) for j, one in enumerate(trees["cats"]["enc"]) if trees["cats"]["feature_segments"][j + 1]
    )
    levels = trees["cats"]["feature_segments"][number + 1] - trees["cats"]["feature_segments"][number]
    del entry["offsets"]
    for values, said in (([1.5] * (levels + 1), "values are not as many as levels"), (["a"] * levels, "XGBoost model")):
        entry["values"] = values
        with pytest.raises(ValueError, match=said):
            checked_json(json.dumps(model).encode())
    entry["values"] = [float(level) for level in range(levels)]
    assert checked_json(json.dumps(model).encode())
    for name in ("cats", "iteration_indptr"):
        del trees[name]
    assert checked_json(json.dumps(model).encode())
