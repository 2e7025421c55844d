"""XGBoost's JSON of a model, checked before XGBoost reads it.

XGBoost reads its JSON in C++ and trusts most of it. A child outside its tree, an array that is too short or a cycle
makes it read foreign memory or never end. So sizes, indices and the form of every tree are checked here, and the JSON
is written anew from what was read.
"""

from __future__ import annotations

import json
import math
from typing import Any

LARGEST = 1e30
"""Largest value of a leaf, so that no sum of leaves overflows."""
MOST_OUTPUTS = 10_000
MOST_LEVELS = 1 << 20
WHOLE = ("left_children", "right_children", "parents", "split_indices", "split_type", "default_left")
NUMBERS = ("base_weights", "split_conditions", "loss_changes", "sum_hessian")


def checked_json(written: bytes) -> bytearray:
    """Return the JSON of an XGBoost model of trees; raise a ValueError if it is not sound."""
    try:
        model = json.loads(written)
        _check(model)
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"the file is not an XGBoost model: {type(error).__name__}: {error}.") from error
    return bytearray(json.dumps(model).encode())


def _check(model: dict[str, Any]) -> None:
    version = _list(model["version"], "version", 3)
    _require(all(0 <= _whole(number) < 1000 for number in version), "version is not three numbers")
    learner = model["learner"]
    settings = learner["learner_model_param"]
    columns = _of_text(settings, "num_feature", 1, 1 << 24)
    outputs = max(
        _of_text(settings, "num_class", 0, MOST_OUTPUTS), _of_text(settings, "num_target", 0, MOST_OUTPUTS), 1
    )
    scores = json.loads(settings["base_score"])
    scores = scores if isinstance(scores, list) else [scores]
    _require(len(scores) in (1, outputs), f"base_score is not one number or {outputs}")
    _require(all(abs(_number(score)) <= LARGEST for score in scores), "base_score is too large")
    for name in ("feature_names", "feature_types"):
        words = _list(learner.get(name, []), name)
        _require(len(words) in (0, columns), f"{name} has not one word for each of {columns} columns")
        _require(all(isinstance(word, str) for word in words), f"{name} is not text")
    _check_objective(learner["objective"], _of_text(settings, "num_class", 0, MOST_OUTPUTS))
    booster = learner["gradient_booster"]
    _require(booster["name"] == "gbtree", f"its booster is {str(booster['name'])[:20]!r}; only gbtree can be read")
    _check_trees(booster["model"], columns, outputs)
    rounds = len(booster["model"]["trees"])  # or fewer; XGBoost adds 1 to the best without a look at the range
    _of_text(learner.get("attributes", {}), "best_iteration", 0, rounds)


def _check_objective(objective: dict[str, Any], classes: int) -> None:
    _require(isinstance(objective["name"], str), "objective has no name")
    for settings in (part for part in objective.values() if isinstance(part, dict)):
        _require(all(isinstance(value, str) for value in settings.values()), "settings of the objective are not text")
        if "num_class" in settings:
            _require(_of_text(settings, "num_class", 0, MOST_OUTPUTS) == classes, "objective has another num_class")


def _check_trees(model: dict[str, Any], columns: int, outputs: int) -> None:
    trees = _list(model["trees"], "trees")
    settings = model["gbtree_model_param"]
    _require(_of_text(settings, "num_trees", 0, 1 << 30) == len(trees), "num_trees is not the number of trees")
    _of_text(settings, "num_parallel_tree", 0, max(len(trees), 1))
    owners = _list(model["tree_info"], "tree_info", len(trees))
    _require(all(0 <= _whole(owner) < outputs for owner in owners), f"tree_info is not of {outputs} outputs")
    _require(not trees or len(set(owners)) == outputs, f"{outputs} outputs do not all have trees")
    if "iteration_indptr" in model:
        _check_ends(_list(model["iteration_indptr"], "iteration_indptr"), len(trees), "iteration_indptr")
    if "cats" in model:
        _check_levels(model["cats"], columns)
    for number, tree in enumerate(trees):
        try:
            _require(_whole(tree["id"]) == number, "its id is not its place")  # by which XGBoost puts it into a list
            _check_tree(tree, columns)
        except ValueError as error:
            raise ValueError(str(error).replace("model: ", f"model: tree {number}: ", 1)) from error


def _check_levels(levels: dict[str, Any], columns: int) -> None:
    lists = _list(levels["enc"], "enc")
    if not lists:
        _require(not levels["feature_segments"] and not levels["sorted_idx"], "levels of no columns")
        return
    order = _list(levels["sorted_idx"], "sorted_idx")
    ends = _list(levels["feature_segments"], "feature_segments", columns + 1)
    _check_ends(ends, len(order), "feature_segments")
    _require(len(lists) == columns, f"enc has not one entry for each of {columns} columns")
    for entry, start, end in zip(lists, ends, ends[1:]):
        values = _list(entry["values"], "values")
        if "offsets" in entry:
            offsets = _list(entry["offsets"], "offsets", end - start + 1 if end > start else None)
            _check_ends(offsets, len(values), "offsets")
            _require(all(-128 <= _whole(letter) < 256 for letter in values), "levels are not text")
        else:
            _require(len(values) == end - start, "values are not as many as levels")
            _require(all(math.isfinite(_number(value)) for value in values), "levels are not finite")
        _require(sorted(map(_whole, order[start:end])) == list(range(end - start)), "sorted_idx is not an order")


def _check_tree(tree: dict[str, Any], columns: int) -> None:
    settings = tree["tree_param"]
    nodes = _of_text(settings, "num_nodes", 1, 1 << 26)
    _require(_of_text(settings, "num_feature", 0, 1 << 24) == columns, "num_feature differs")
    _of_text(settings, "num_deleted", 0, nodes - 1)
    _of_text(settings, "size_leaf_vector", 0, 1)
    entries = {name: [_whole(item) for item in _list(tree[name], name, nodes)] for name in WHOLE}
    for name in NUMBERS:
        numbers = [_number(item) for item in _list(tree[name], name, nodes)]
        _require(all(abs(number) <= LARGEST for number in numbers) or name in NUMBERS[2:], f"{name} is not finite")
    _require(all(0 <= column < columns for column in entries["split_indices"]), f"it splits {columns} columns or more")
    _require(set(entries["split_type"]) <= {0, 1} and set(entries["default_left"]) <= {0, 1}, "a kind of split")
    seen, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        children = [entries[name][node] for name in ("left_children", "right_children")]
        if children == [-1, -1]:
            continue
        for child in children:
            _require(0 < child < nodes and child not in seen, f"node {node} has the child {child}")
            _require(entries["parents"][child] == node, f"node {child} has another parent than {node}")
            seen.add(child)
            waiting.append(child)
    _check_categories(tree, entries, nodes)


def _check_categories(tree: dict[str, Any], entries: dict[str, list[int]], nodes: int) -> None:
    at = [_whole(node) for node in _list(tree["categories_nodes"], "categories_nodes")]
    by_level = {node for node in range(nodes) if entries["split_type"][node] and entries["left_children"][node] != -1}
    _require(at == sorted(set(at)) and all(0 <= node < nodes for node in at), "categories_nodes are not nodes")
    _require(by_level <= set(at) and all(entries["split_type"][node] for node in at), "a split by levels has none")
    starts = _list(tree["categories_segments"], "categories_segments", len(at))
    sizes = _list(tree["categories_sizes"], "categories_sizes", len(at))
    levels = [_whole(level) for level in _list(tree["categories"], "categories")]
    _require(all(0 <= level < MOST_LEVELS for level in levels), "a level is negative or too large")
    for start, size in zip(map(_whole, starts), map(_whole, sizes)):
        _require(start >= 0 and size >= 1 and start + size <= len(levels), "a split by levels is outside of its list")


def _check_ends(ends: list[Any], last: int, name: str) -> None:
    """Require positions that begin at 0, never fall, and end at `last`; an empty list stands for nothing."""
    numbers = [_whole(end) for end in ends]
    _require(numbers == sorted(numbers) and (numbers[0], numbers[-1]) == (0, last) if numbers else last == 0, name)


def _list(value: Any, name: str, size: int | None = None) -> list[Any]:
    _require(isinstance(value, list) and size in (None, len(value)), f"{name} is not a list of the right length")
    return list(value)


def _whole(value: Any) -> int:
    _require(type(value) is int and abs(value) <= 1 << 31, f"{str(value)[:20]!r} is not a whole number")
    return int(value)


def _number(value: Any) -> float:
    _require(type(value) in (int, float), f"{str(value)[:20]!r} is not a number")
    return float(value)


def _of_text(settings: dict[str, Any], name: str, low: int, high: int) -> int:
    """Return a whole number that is written as text."""
    text = settings.get(name, "0")
    _require(isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 11, f"{name} is not a number")
    _require(low <= int(text) <= high, f"{name} is {text}, not between {low} and {high}")
    return int(text)


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(f"the XGBoost model: {what}.")
