"""LightGBM's text of a model, checked before LightGBM reads it.

LightGBM reads its text in C++ and trusts it. A child outside its tree, an array that is too short or a size that is too
large makes it read foreign memory or end the process. So every line is checked here: its name, its numbers, how many
there are, and that the nodes form a tree. The text is then written anew from what was checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

MOST_LEAVES = 131_072
"""LightGBM's own limit."""
LARGEST = 1e30
"""Largest value of a leaf, so that no sum of leaves overflows."""

WHOLE = r"-?\d{1,10}"
FINITE = r"-?\d{1,320}(?:\.\d{1,40})?(?:e[-+]?\d{1,3})?"
ANY = rf"{FINITE}|-?inf|-?nan"
NAME = r"[^\s:,\[\]{}\"]+"
INFO = rf"none|\[(?:{ANY}):(?:{ANY})\]|{WHOLE}(?::{WHOLE})*"
OBJECTIVES = (
    "regression|regression_l1|quantile|huber|fair|poisson|mape|gamma|tweedie|cross_entropy|cross_entropy_lambda|"
    "lambdarank|rank_xendcg|binary|multiclass|multiclassova"
)
PARAMETER = re.compile(r"\[[a-z][a-z0-9_]*: [-+.\w ,/]*\]", re.ASCII)
END, PARAMETERS, LEVELS = "end of trees", "parameters:", "pandas_categorical:"

HEADER = {  # pattern of one item
    "version": "v[34]", "num_class": WHOLE, "num_tree_per_iteration": WHOLE, "label_index": WHOLE,
    "max_feature_idx": WHOLE, "objective": rf"{OBJECTIVES}|sqrt|sigmoid:(?:{FINITE})|num_class:{WHOLE}",
    "feature_names": NAME, "monotone_constraints": WHOLE, "feature_infos": INFO, "tree_sizes": WHOLE,
}  # fmt: skip
TREE = {
    "num_leaves": WHOLE, "num_cat": WHOLE, "split_feature": WHOLE, "split_gain": ANY, "threshold": FINITE,
    "decision_type": WHOLE, "left_child": WHOLE, "right_child": WHOLE, "leaf_value": FINITE, "leaf_weight": ANY,
    "leaf_count": WHOLE, "internal_value": ANY, "internal_weight": ANY, "internal_count": WHOLE,
    "cat_boundaries": WHOLE, "cat_threshold": WHOLE, "is_linear": "[01]", "leaf_const": FINITE, "num_features": WHOLE,
    "leaf_features": WHOLE, "leaf_coeff": FINITE, "shrinkage": FINITE,
}  # fmt: skip
PATTERNS = {name: re.compile(f"(?:{item})(?: +(?:{item}))*", re.ASCII) for name, item in (HEADER | TREE).items()}
AT_SPLITS = ("split_gain", "internal_value", "internal_weight", "internal_count")
AT_LEAVES = ("leaf_weight", "leaf_count")

Entries = dict[str, list[str]]
"""Items of each line, by the name before its equals sign."""


def checked_text(text: str) -> str:
    """Return the text of a LightGBM model, without what predicting does not need; raise if it is not sound."""
    head, first, rest = text.partition("\nTree=0\n")
    body, end, tail = rest.partition(f"\n{END}\n")
    lines = head.split("\n")
    if not first or not end or lines[0] != "tree":
        raise ValueError(f"the text is not a LightGBM model: it begins with {text[:20]!r}, or its trees have no end.")
    average = [line for line in lines if line == "average_output"]
    header = _entries((line for line in lines[1:] if line not in ("", "average_output")), HEADER, "the header")
    trees = re.split(r"\nTree=\d{1,9}\n", body)
    _check_header(header, len(trees))
    written = []
    for number, tree in enumerate(trees):
        entries = _entries((line for line in tree.split("\n") if line), TREE, f"tree {number}")
        _check_tree(entries, len(header["feature_names"]), f"tree {number}")
        written.append(f"Tree={number}\n{_lines(entries)}\n\n")
    header["tree_sizes"] = [str(len(tree.encode())) for tree in written]
    start = ["tree", *average, _lines(header)]
    return "\n".join(start) + "\n" + "".join(written) + f"{END}\n" + _tail(tail)


def _entries(lines: Iterable[str], known: dict[str, str], where: str) -> Entries:
    entries: Entries = {}
    for line in lines:
        name, _, value = line.partition("=")
        if name not in known or name in entries:
            raise ValueError(
                f"{where} of the LightGBM model has the line {line[:40]!r}, which is unknown or twice there."
            )
        if value.strip(" ") and not PATTERNS[name].fullmatch(value.strip(" ")):
            raise ValueError(
                f"{where} of the LightGBM model has {name}={value[:40]!r}, which is not what it should be."
            )
        entries[name] = value.split()
    return entries


def _lines(entries: Entries) -> str:
    return "".join(f"{name}={' '.join(items)}\n" for name, items in entries.items())


def _check_header(header: Entries, trees: int) -> None:
    columns, outputs = _one(header, "max_feature_idx", 0) + 1, _one(header, "num_class", 1)
    constraints = ["monotone_constraints"] if "monotone_constraints" in header else []
    for name in ("feature_names", "feature_infos", *constraints):
        _require(len(header.get(name, [])) == columns, f"{name} has not one item for each of {columns} columns")
    _require(outputs == _one(header, "num_tree_per_iteration", 1), "num_class is not num_tree_per_iteration")
    _require(trees % outputs == 0, f"{trees} trees are not shared by {outputs} outputs")
    _one(header, "label_index", 0)
    _require(len(header.get("version", [])) == 1, "version is missing")
    if "objective" not in header:  # one of the user's own
        return
    objective, *options = header["objective"] or [""]
    several = [f"num_class:{outputs}"] if objective in ("multiclass", "multiclassova") else []
    _require(re.fullmatch(OBJECTIVES, objective) is not None, "objective is unknown")
    _require([one for one in options if one.startswith("num_class")] == several, "objective has another num_class")
    _require(bool(several) or outputs == 1, "objective has one output")
    slopes = [float(one.removeprefix("sigmoid:")) for one in options if one.startswith("sigmoid:")]
    _require(all(0 < slope <= LARGEST for slope in slopes), "sigmoid is not positive and finite")


def _check_tree(tree: Entries, columns: int, where: str) -> None:
    leaves, categories = _one(tree, "num_leaves", 1, MOST_LEAVES), _one(tree, "num_cat", 0)
    splits = leaves - 1
    _whole(tree, "split_feature", splits, 0, columns - 1)
    kinds = _whole(tree, "decision_type", splits, 0, 11)  # categorical, missing left, and three kinds of missing values
    thresholds = _finite(tree, "threshold", splits)
    left, right = (_whole(tree, name, splits, -leaves, splits - 1) for name in ("left_child", "right_child"))
    expected = [*range(-leaves, 0), *range(1, splits)] if splits else []
    _require(sorted(left + right) == expected, f"the children in {where} are not each node and each leaf once")
    for children in (left, right):
        _require(all(child < 0 or child > node for node, child in enumerate(children)), f"{where} has a circle")
    values = _finite(tree, "leaf_value", leaves)
    _require(max(map(abs, values)) <= LARGEST, f"a leaf of {where} is above {LARGEST:g}")
    for names, count in ((AT_SPLITS, splits), (AT_LEAVES, leaves)):
        for name in names:
            _require(len(tree.get(name, [])) in (0, count), f"{name} of {where} has not {count} items")
    _check_categories(tree, categories, [t for t, kind in zip(thresholds, kinds, strict=True) if kind & 1], where)
    _check_linear(tree, leaves, columns, where)
    if "shrinkage" in tree:
        _finite(tree, "shrinkage", 1)


def _check_categories(tree: Entries, categories: int, thresholds: list[float], where: str) -> None:
    """Check the sets of categories, of which each threshold of a categorical node names one."""
    _require(all(t in range(categories) for t in thresholds), f"{where} names a set of categories that it lacks")
    if not categories:
        _require("cat_boundaries" not in tree and "cat_threshold" not in tree, f"{where} has no categories")
        return
    words = _whole(tree, "cat_threshold", len(tree.get("cat_threshold", [])), 0, 2**32 - 1)
    bounds = _whole(tree, "cat_boundaries", categories + 1, 0, len(words))
    rising = bounds[0] == 0 and bounds[-1] == len(words) and all(a < b for a, b in pairwise(bounds))
    _require(rising, f"cat_boundaries of {where} do not divide cat_threshold")


def _check_linear(tree: Entries, leaves: int, columns: int, where: str) -> None:
    """Check the linear models of the leaves, if there are any."""
    if tree.get("is_linear", ["0"]) == ["0"]:
        parts = [name for name in ("leaf_const", "num_features", "leaf_features", "leaf_coeff") if name in tree]
        _require(not parts, f"{where} is not linear, but has {parts}")
        return
    _require(tree["is_linear"] == ["1"], f"is_linear of {where} is neither 0 nor 1")
    counts = _whole(tree, "num_features", leaves, 0, columns)
    for name in ("leaf_const", "leaf_coeff"):
        numbers = _finite(tree, name, leaves if name == "leaf_const" else sum(counts))
        _require(max(map(abs, numbers), default=0.0) <= LARGEST, f"{name} of {where} is above {LARGEST:g}")
    _whole(tree, "leaf_features", sum(counts), 0, columns - 1)


def _tail(text: str) -> str:
    """Return the parameters of the training and the levels of a table's categories, as far as they are sound."""
    _, _, parameters = text.partition(f"\n{PARAMETERS}\n")
    kept = [line for line in parameters.split("\n") if PARAMETER.fullmatch(line)]
    levels: Any = None
    for line in text.split("\n"):
        if line.startswith(LEVELS):
            levels = json.loads(line.removeprefix(LEVELS))
    plain = levels is None or (
        isinstance(levels, list)
        and all(isinstance(of, list) and all(isinstance(v, (str, int, float)) for v in of) for of in levels)
    )
    _require(plain, "pandas_categorical is not a list of lists")
    return "\n".join(["", PARAMETERS, *kept, "", "end of parameters", "", LEVELS + json.dumps(levels)]) + "\n"


def _whole(entries: Entries, name: str, count: int, least: int, most: int) -> list[int]:
    numbers = [int(item) for item in _items(entries, name, count)]
    _require(all(least <= number <= most for number in numbers), f"{name} has a number outside {least} to {most}")
    return numbers


def _finite(entries: Entries, name: str, count: int) -> list[float]:
    numbers = [float(item) for item in _items(entries, name, count)]
    _require(all(abs(number) < float("inf") for number in numbers), f"{name} has a number that is not finite")
    return numbers


def _one(entries: Entries, name: str, least: int, most: int = 2**31 - 1) -> int:
    return _whole(entries, name, 1, least, most)[0]


def _items(entries: Entries, name: str, count: int) -> list[str]:
    items = entries.get(name, [])
    _require(len(items) == count, f"{name} has {len(items)} items, not {count}")
    return items


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(f"the text is not a LightGBM model: {problem}.")
