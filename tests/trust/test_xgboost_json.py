"""A forged XGBoost model with a right checksum is a ValueError before XGBoost reads it."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from counting import Counts
from test_model_files import Outcomes, apart

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


ROWS = {"classes": FRAME, "forest": FRAME[["a", "b"]].to_numpy()}


def rows_of(name: str) -> Any:
    return ROWS.get(name, FRAME[["a", "b"]])


def loaded(name: str, kind: type, written: bytes) -> Any:
    model = kind(enable_categorical=name == "classes")
    model.load_model(checked_json(written))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_what_xgboost_writes_is_read(name: str):
    model = MODELS[name]()
    again = loaded(name, type(model), bytes(model.get_booster().save_raw("json")))
    assert (again.predict(rows_of(name)) == model.predict(rows_of(name))).all()


VALUES = [
    -1, 0, 1, 2, 7, 99, 2**31 - 1, -(2**31), 1.5, 1e29, 1e300, float("nan"), "", "0", "1", "99", "-1", "x", "[5E-1,1]",
    None, True, [], [0], {},
]  # fmt: skip


def places(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every entry of some JSON."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*above, key)
        yield from places(value, (*above, key))


def changed(model: Any, draw: random.Random) -> bytes:
    """Return the JSON with some entries replaced, removed, doubled or moved, or with other characters."""
    if draw.random() < 0.2:
        letters = bytearray(json.dumps(model).encode())
        for _ in range(draw.choice([1, 3])):
            letters[draw.randrange(len(letters))] = draw.choice(b'0123456789-e.",[]{}x\0')
        return bytes(letters)
    model = copy.deepcopy(model)
    for _ in range(draw.choice([1, 1, 2, 3])):
        paths = [path for path in places(model) if len(path) > 1]
        near = [path for path in paths if len(path) < 6]  # settings are few, entries of trees are many
        path, other = draw.choice(near if draw.random() < 0.3 else paths), draw.choice(paths)
        owner, source = model, model
        for key in path[:-1]:
            owner = owner[key]
        for key in other:
            source = source[key]
        value, key = owner[path[-1]], path[-1]
        kind = draw.randrange(5)
        if kind < 2:
            owner[key] = draw.choice(VALUES)
        elif kind == 2:
            del owner[key]
        elif kind == 3:
            owner[key] = copy.deepcopy(source)
        elif isinstance(value, list):
            value.insert(draw.randrange(len(value) + 1), draw.choice([*value, 0]))
        elif isinstance(value, int):
            owner[key] = value + draw.choice([-1, 1])
        elif isinstance(value, str) and value.isdigit():
            owner[key] = str(int(value) + draw.choice([-1, 1]))
    return json.dumps(model).encode()


def mutations(count: int, seed: int) -> Outcomes:
    """Change models at random: each is a ValueError, or a model that predicts finite numbers or refuses the rows."""
    fitted = {name: make() for name, make in MODELS.items()}
    written = {name: json.loads(bytes(model.get_booster().save_raw("json"))) for name, model in fitted.items()}
    draw, refused = random.Random(seed), 0
    for number in range(count):
        name = list(MODELS)[number % len(MODELS)]
        try:
            with warnings.catch_warnings(action="ignore"):
                model = loaded(name, type(fitted[name]), changed(written[name], draw))
                found = (
                    model.predict_proba(rows_of(name))
                    if hasattr(model, "predict_proba")
                    else model.predict(rows_of(name))
                )
        except ValueError:  # of which XGBoost's own error is one
            refused += 1
            continue
        assert np.isfinite(found).all()
    return {"refused": refused, "harmless": count - refused}


def test_mutated_models_are_refused_or_harmless():
    outcomes = apart(lambda: mutations(400, 0))
    assert outcomes["refused"] > 300
    assert outcomes["harmless"] > 10


@pytest.mark.slow
def test_three_thousand_mutated_models_are_refused_or_harmless(counts: Counts):
    outcomes = apart(lambda: mutations(3000, 7))
    assert outcomes["peak MB"] < 1024
    counts.put("model files", "JSON of XGBoost", "mutated", outcomes)


def test_forged_models_are_value_errors():
    model = json.loads(bytes(MODELS["classes"]().get_booster().save_raw("json")))
    tree = ("learner", "gradient_booster", "model", "trees", 0)
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    levelled = next(number for number, one in enumerate(trees) if one["categories_nodes"])
    by_level = (*tree[:-1], levelled)
    forged: list[tuple[tuple[Any, ...], Any]] = [
        ((*tree, "id"), 1),
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
        (("learner", "attributes"), {"best_iteration": "2147483647"}), (("learner", "attributes"), []),
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
