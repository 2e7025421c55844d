"""LightGBM for the engine: its settings, held-out predictions, and merged boosters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import lightgbm
import numpy as np
from scipy.special import logit

from frhsic._trees import bins_of_a_column, histogram_settings
from frhsic.estimators.responses import TargetColumn

# Number of trees between two evaluations of the loss.
STRIDE = 5
# Maximum number of bins per column for trees. Half of LightGBM's default takes a third less time on
# tables of 1,000 rows and was as accurate on ten tables (`benchmarks/bases.py`).
MOST_TREE_BINS = 127
# Maximum number of trees for one output, at the smallest learning rate.
MOST_ROUNDS = 120
SHORTEST_STEP = 0.1
# The text of a tree whose output is always 0.
NO_TREE = "num_leaves=1\nnum_cat=0\nleaf_value=0\nis_linear=0\nshrinkage=1"


def table_settings(columns: int) -> dict[str, Any]:
    """Return the LightGBM settings that all targets share, for a table with this many columns.

    Each tree uses half of the columns, but at least four, because interactions would be missed with
    fewer.
    """
    share = min(max(0.5, 4 / max(columns, 1)), 1.0)
    bins = min(bins_of_a_column(columns), MOST_TREE_BINS)
    own = {"max_bin": bins, "feature_fraction": share, "metric": "None"}
    return histogram_settings(columns) | own


def leaf_count(rows: int) -> int:
    """Return the number of leaves for this many training rows. It grows with the square root of the
    number of rows, from 8 to 31.
    """
    return int(np.clip(8 * np.sqrt(rows / 2_000), 8, 31))


def step_length(rows: int) -> float:
    """Return the learning rate for a table with this many rows. It grows with the fourth root of
    the number of rows, from 0.1 to 0.25, because larger trees need fewer rounds.
    """
    return float(np.clip(SHORTEST_STEP * (rows / 2_000) ** 0.25, SHORTEST_STEP, 0.25))


def most_looks(rows: int) -> int:
    """Return the largest number of times that the loss is evaluated for a table with this many
    rows.
    """
    return round(MOST_ROUNDS * SHORTEST_STEP / step_length(rows) / STRIDE)


def held_out_values(booster: lightgbm.Booster) -> np.ndarray:
    """Return LightGBM's predictions for the held-out rows: probabilities or numbers."""
    given: list[np.ndarray] = []

    def keep(values: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        given.append(values)
        return "", 0.0, True

    booster.eval_valid(keep)
    return given[0]


def held_out_margins(booster: lightgbm.Booster, column: TargetColumn) -> np.ndarray:
    """Return a booster's margins for its held-out rows, (n, outputs)."""
    values = np.reshape(held_out_values(booster), (-1, column.outputs))
    if not column.classes:
        return values
    values = np.clip(values, 1e-15, 1 - 1e-15)
    return np.asarray(logit(values) if column.classes == 2 else np.log(values))


def merge_boosters(
    boosters: Sequence[Sequence[str]], outputs: Sequence[int], rounds: Sequence[int]
) -> lightgbm.Booster | None:
    """Merge the boosters of all targets and folds, given as strings, into one booster whose classes
    are the outputs of each fold. The given number of rounds is kept for each target, and targets
    with fewer rounds than others are padded with trees whose output is 0. The merged booster adds
    the trees of each class in the same order as the separate boosters, so the raw scores are
    bit-identical.
    """
    most = max(rounds, default=0)
    if not most:
        return None
    folds = max(map(len, boosters))
    text = next(own[0] for own in boosters if own)
    names = re.search("^feature_names=.*$", text, re.MULTILINE)
    infos = re.search("^feature_infos=.*$", text, re.MULTILINE)
    assert names is not None
    assert infos is not None
    blocks: list[list[str]] = []  # the trees of each class
    for j in range(folds):
        for own, count, length in zip(boosters, outputs, rounds):
            trees = _tree_texts(own[j])[: length * count] if own else []
            blocks.extend(trees[k::count] for k in range(count))
    lines = [
        "tree",
        "version=v4",
        f"num_class={len(blocks)}",
        f"num_tree_per_iteration={len(blocks)}",
        "label_index=0",
        f"max_feature_idx={len(names[0].split()) - 1}",
        names[0],
        infos[0],
        "",
    ]
    for i in range(most):
        for k, trees in enumerate(blocks):
            tree = trees[i] if i < len(trees) else NO_TREE
            lines.append(f"Tree={i * len(blocks) + k}\n{tree}\n\n")
    return lightgbm.Booster(model_str="\n".join([*lines, "end of trees", ""]))


def _tree_texts(text: str) -> list[str]:
    """Return the text of each tree, without the tree's number."""
    parts = text.partition("\nend of trees")[0].split("\nTree=")[1:]
    return [part.partition("\n")[2].strip() for part in parts]
