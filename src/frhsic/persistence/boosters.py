"""Checks of boosters in LightGBM's text format, because LightGBM's parser trusts every number in
the text.
"""

from __future__ import annotations

import re

import numpy as np

# The numbers of a tree that predictions need, and their allowed formats.
WHOLE = re.compile(r"[-\d ]*", re.ASCII)
REAL = re.compile(r"[-+.\deinf ]*", re.ASCII)
SPLITS = {
    "split_feature": WHOLE,
    "threshold": REAL,
    "decision_type": WHOLE,
    "left_child": WHOLE,
    "right_child": WHOLE,
}
LINE = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)


def require(condition: object, reason: str) -> None:
    """Raise an error that rejects the file unless the condition is true."""
    if not condition:
        raise ValueError(f"it was not written by frhsic.save: {reason}.")


def checked_text(text: str) -> str:
    """Return the parts of a booster's text that are needed for predictions; raise an error if an
    index is out of range.
    """
    head, *trees = text.partition("\nend of trees")[0].split("\nTree=")
    header = dict(LINE.findall(head))
    classes = int(header["num_tree_per_iteration"])
    columns = int(header["max_feature_idx"]) + 1
    require(
        classes > 0 and trees and len(trees) % classes == 0,
        "a booster with the wrong number of classes",
    )
    require(0 < columns <= 1 + head.count(" "), "a booster with the wrong number of columns")
    names = " ".join(f"c{j}" for j in range(columns))
    lines = [
        f"tree\nversion=v4\nnum_class={classes}\nnum_tree_per_iteration={classes}\nlabel_index=0",
        f"max_feature_idx={columns - 1}\nfeature_names={names}",
        f"feature_infos={' '.join(['none'] * columns)}",
    ]
    for place, tree in enumerate(trees):
        lines += ["", f"Tree={place}", *_tree_lines(dict(LINE.findall(tree)), columns), ""]
    return "\n".join([*lines, "end of trees", ""])


def _numbers(text: str, form: re.Pattern[str], length: int) -> np.ndarray:
    require(form.fullmatch(text), "a booster with unexpected characters")
    values = np.array(text.split(), dtype=np.float64)
    require(len(values) == length, "a booster with missing or extra numbers")
    return values


def _tree_lines(tree: dict[str, str], columns: int) -> list[str]:
    """Return the lines of one tree; raise an error unless each node and leaf is the child of an
    earlier node.
    """
    leaves = int(tree["num_leaves"])
    sets = int(tree["num_cat"])
    names = ["num_leaves", "num_cat", "leaf_value"]
    require(np.isfinite(_numbers(tree["leaf_value"], REAL, leaves)).all(), "a leaf without a value")
    if leaves > 1:
        own = {name: _numbers(tree[name], form, leaves - 1) for name, form in SPLITS.items()}
        nodes = np.arange(leaves - 1)
        children = np.concatenate([own["left_child"], own["right_child"]])
        later = (children < 0) | (children > np.tile(nodes, 2))
        every = np.r_[np.arange(-leaves, 0), nodes[1:]]
        require(later.all() and np.array_equal(np.sort(children), every), "the tree has a cycle")
        _require_below(own["split_feature"], columns)
        # two bits, and one of three ways to treat missing values
        _require_below(own["decision_type"], 12)
        _require_below(own["threshold"][own["decision_type"] % 2 == 1], sets)
        names += SPLITS
    if sets:
        starts = _numbers(tree["cat_boundaries"], WHOLE, sets + 1)
        require(starts[0] == 0 and (np.diff(starts) >= 0).all(), "categories that do not exist")
        _require_below(_numbers(tree["cat_threshold"], WHOLE, int(starts[-1])), 2**32)
        names += ["cat_boundaries", "cat_threshold"]
    return [*(f"{name}={tree[name]}" for name in names), "is_linear=0", "shrinkage=1"]


def _require_below(values: np.ndarray, end: int) -> None:
    require(((values >= 0) & (values < end)).all(), "a column or category that does not exist")
