"""Boosters of LightGBM and XGBoost. Their own text is parsed into numbers, each is compared with
its range, and the library reads a text that is written anew from them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from frhsic.persistence.rules import BOOSTERS, fits, require
from frhsic.persistence.scikit_learn import PartState, require_tree
from frhsic.tables.columns import MOST_TABLE_COLUMNS

# Bytes of a tree of LightGBM and of a model of XGBoost, of which Python takes about twenty times as
# much memory
MOST_TREE = 2**24
MOST_XGBOOST = 2**25

# Numbers of all boosters of a file, each of which takes about a microsecond to read; a line of
# LightGBM and a field of XGBoost take as long as ten
MOST_NUMBERS = 6 * 10**6

# XGBoost: what stands for the parent of the first node, and for the column of a node that was
# pruned; the oldest version that is read
NO_PARENT = PRUNED = 2**31 - 1
OLDEST = [2, 1, 0]

OBJECTIVE = re.compile(r"(\w+)(?: num_class:(\d+))?(?: sigmoid:[\d.e+-]+)?")
"""The objective of LightGBM, with its numbers."""


def _numbers(
    values: Any, dtype: Any, length: int, largest: float = np.finfo(float).max
) -> np.ndarray:
    require(len(values) == length, "a booster with a number too many or too few")
    numbers = list(map(float if np.dtype(dtype).kind == "f" else int, values))
    array = np.array(numbers, dtype=dtype)
    require((np.abs(array) <= largest).all(), "a number that is not finite")
    return array


def numbers_of(state: PartState) -> int:
    """Return about how many numbers the text of a booster has, without reading it."""
    text: bytes = state["text"].tobytes()
    fields = text.count(b"\n") + text.count(b":")
    return max(text.count(b" "), text.count(b",")) + 10 * fields


# LightGBM


def lightgbm_state(booster: Any) -> PartState:
    text = lightgbm_text(booster.model_to_string(num_iteration=-1))
    return {
        "text": np.frombuffer(text.encode(), np.uint8),
        "best_iteration": booster.best_iteration,
        "pandas_categorical": booster.pandas_categorical,
    }


def build_lightgbm(state: PartState) -> Any:
    import lightgbm

    booster = lightgbm.Booster(model_str=lightgbm_text(state["text"].tobytes().decode()))
    booster.best_iteration = state["best_iteration"]
    booster.pandas_categorical = state["pandas_categorical"]
    return booster


def lightgbm_text(text: str) -> str:
    """Return a text of LightGBM, written anew; raise if it has a number that no model has."""
    require(not re.search(r"[^\S \n]", text), "a booster with other blanks")
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    header = _pairs(head)
    classes = int(header["num_class"])
    names = header["feature_names"].split(" ")
    require(len(names) <= MOST_TABLE_COLUMNS, "too many columns")
    objective = OBJECTIVE.fullmatch(header["objective"])
    require(objective and fits(objective[1], "objectives"), "another objective")
    assert objective is not None
    require(objective[2] in (None, str(classes)), "an objective of other classes")
    outputs = classes if objective[1].startswith("multiclass") else 1
    require(header["version"] == "v4", "a booster of another version")
    require(0 < classes == outputs <= len(blocks), "a booster of other classes")
    require(len(blocks) % classes == 0, "a booster of other classes")
    require(all(re.fullmatch(r"[^\s\x00-\x1f]+", name) for name in names), "names with spaces")
    lines = [
        "tree",
        "version=v4",
        f"num_class={classes}",
        f"num_tree_per_iteration={classes}",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        f"objective={objective[0]}",
        *(["average_output"] if "average_output" in header else []),
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['none'] * len(names))}",
    ]
    require(max(map(len, blocks)) <= MOST_TREE, "a tree that is too large")
    for place, block in enumerate(blocks):
        lines += ["", f"Tree={place}", *_lightgbm_tree(_pairs(block), len(names)), ""]
    return "\n".join([*lines, "end of trees", ""])


def _pairs(text: str) -> dict[str, str]:
    return dict(line.partition("=")[::2] for line in text.splitlines())


def _lightgbm_tree(tree: dict[str, str], columns: int) -> list[str]:
    """Return the lines of one tree: each node and leaf is the child of one node before it."""
    leaves = int(tree["num_leaves"])
    sets = int(tree["num_cat"])
    require(leaves > 0 and int(tree["is_linear"]) == 0, "another tree")
    own = {}
    for name, (dtype, fewer) in BOOSTERS["lightgbm"].items():
        values = tree[name].split()
        if leaves > 1 or values or name == "leaf_value":  # one leaf does not say all of it
            # an infinite threshold parts the missing values from all others
            largest = np.inf if name == "threshold" else np.finfo(float).max
            own[name] = _numbers(values, dtype, leaves - fewer, largest)
    if leaves > 1:
        nodes = np.arange(leaves - 1)
        children = np.concatenate([own["left_child"], own["right_child"]])
        require((children[children >= 0] > np.tile(nodes, 2)[children >= 0]).all(), "a circle")
        every = np.r_[np.arange(-leaves, 0), nodes[1:]]
        require(np.array_equal(np.sort(children), every), "a tree without an end")
        _require_below(own["split_feature"], columns)
        # a bit, a bit, and one of three ways to be missing
        _require_below(own["decision_type"], 12)
        _require_below(own["threshold"][own["decision_type"] % 2 == 1], sets)
    if sets:
        starts = _numbers(tree["cat_boundaries"].split(), np.int32, sets + 1)
        require(starts[0] == 0 and (np.diff(starts) >= 0).all(), "categories that do not exist")
        own["cat_boundaries"] = starts
        own["cat_threshold"] = _numbers(tree["cat_threshold"].split(), np.uint32, int(starts[-1]))
    lines = [f"{name}={' '.join(map(repr, values.tolist()))}" for name, values in own.items()]
    missing = [f"{name}=" for name in BOOSTERS["lightgbm"] if name not in own]
    sizes = [f"num_leaves={leaves}", f"num_cat={sets}"]
    return [*sizes, *lines, *missing, "is_linear=0", f"shrinkage={float(tree['shrinkage'])!r}"]


def _require_below(values: np.ndarray, end: int) -> None:
    require(((values >= 0) & (values < end)).all(), "a column, decision or category of no model")


# XGBoost


def xgboost_state(booster: Any) -> PartState:
    content = xgboost_content(json.loads(booster.save_raw("json")))
    return {"text": np.frombuffer(json.dumps(content).encode(), np.uint8)}


def build_xgboost(state: PartState) -> Any:
    import xgboost

    require(len(state["text"]) <= MOST_XGBOOST, "a booster that is too large")
    content = xgboost_content(json.loads(state["text"].tobytes()))
    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps(content).encode()))
    return booster


def xgboost_content(content: Any) -> Any:
    """Return the JSON of an XGBoost model, written anew; raise if it has a number that no model
    has.
    """
    content = _conform(content, BOOSTERS["xgboost"])
    learner = content["learner"]
    sizes = learner["learner_model_param"]
    model = learner["gradient_booster"]["model"]
    trees = model["trees"]
    classes = int(sizes["num_class"])
    columns = int(sizes["num_feature"])
    outputs = max(classes, 1)
    require(content["version"] >= OLDEST and outputs <= len(trees), "a booster of other classes")
    objective = learner["objective"]
    require(fits(objective["name"], "objectives"), "another objective")
    own_classes = objective.get("softmax_multiclass_param", {"num_class": "0"})
    require(int(own_classes["num_class"]) == classes, "a booster of other classes")
    require(np.size(json.loads(sizes["base_score"])) in (1, outputs), "a start of other classes")
    _require_below(_numbers(model["tree_info"], np.int64, len(trees)), outputs)
    rounds = np.array(model["iteration_indptr"])
    require(rounds[0] == 0 and rounds[-1] == len(trees), "rounds without trees")
    require((np.diff(rounds) > 0).all(), "rounds without trees")
    for names in (learner["feature_names"], learner["feature_types"]):
        require(len(names) in (0, columns), "names of other columns")
    require(set(learner["feature_types"]) <= {"float", "i", "int", "q"}, "columns of other types")
    parallel = int(model["gbtree_model_param"]["num_parallel_tree"])
    require(
        0 < columns <= MOST_TABLE_COLUMNS and 0 < parallel <= len(trees), "other columns or trees"
    )
    model["gbtree_model_param"]["num_trees"] = str(len(trees))
    model["trees"] = [_xgboost_tree(tree, columns) | {"id": i} for i, tree in enumerate(trees)]
    return content


def _xgboost_tree(tree: PartState, columns: int) -> PartState:
    """Return one tree without the nodes that were pruned, and with the parents that its children
    say.
    """
    lists = [name for name, kind in BOOSTERS["xgboost_tree"].items() if kind in list(SEVERAL)]
    kept = np.flatnonzero(np.array(tree["split_indices"]) != PRUNED)
    require({len(tree[name]) for name in lists} == {len(tree["parents"])}, "a node too many")
    own = {name: np.array(tree[name])[kept] for name in lists}
    leaf = own["left_children"] == -1
    own["parents"] = np.full(len(kept), NO_PARENT)
    for side in ("left_children", "right_children"):
        own[side] = np.where(leaf, -1, np.searchsorted(kept, own[side]))
        own["parents"][own[side][~leaf]] = np.flatnonzero(~leaf)
    require_tree(own["left_children"], own["right_children"], leaf)
    _require_below(own["split_indices"], columns)
    sizes = {"num_deleted": "0", "num_nodes": str(len(kept)), "num_feature": str(columns)}
    written = {name: values.tolist() for name, values in own.items()}
    written |= {"split_type": [0] * len(kept), "tree_param": tree["tree_param"] | sizes}
    return tree | written


def _conform(value: Any, form: Any) -> Any:
    """Return JSON with the parts of a form, each as the form says, and no others."""
    if isinstance(form, dict):
        return {name: _conform(value[name], part) for name, part in form.items() if name in value}
    if isinstance(form, str) and form in JSON_FORMS:
        return JSON_FORMS[form](value)
    require(value == form, f"a booster with {value!r}")
    return form


SEVERAL = {
    "integers": lambda values: _numbers(values, np.int64, len(values)).tolist(),
    "numbers": lambda values: _numbers(values, np.float64, len(values)).tolist(),
}
JSON_FORMS: dict[str, Callable[[Any], Any]] = SEVERAL | {
    "integer": lambda value: str(int(value)),
    "number": lambda value: repr(float(value)),
    "scores": lambda value: json.dumps(np.array(json.loads(value), dtype=np.float64).tolist()),
    "names": lambda values: [str(name) for name in values],
    "text": str,
    "trees": lambda trees: [_conform(tree, BOOSTERS["xgboost_tree"]) for tree in trees],
}
"""What the words of the form of an XGBoost model mean; others stand for themselves."""


# The estimators around them


def check_lightgbm(model: Any) -> None:
    booster = model._Booster
    require(booster.num_feature() == model._n_features == model._n_features_in, "other columns")
    if hasattr(model, "_le"):
        classes = len(model._classes)
        outputs = classes if classes > 2 else 1
        require(model._n_classes == classes == len(model._le.classes_), "other classes")
        require(booster.num_model_per_iteration() == outputs, "other classes")


BOOSTER_CHECKS: dict[str, Callable[[Any], None]] = {"_n_features_in": check_lightgbm}
"""How a fitted estimator is checked, by an attribute that it has. Those of XGBoost need no check:
it compares the columns of a table with those of the booster itself.
"""
