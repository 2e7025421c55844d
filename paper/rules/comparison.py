"""The comparison, for README.md, docs/index.md, methods.md and reproduction.md.

A cell is a yardstick, a base and a table; its costs are those of all ways on the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from rules.records import study

LEVELS = (0.75, 0.5, 0.25)
BASES = ("paper's network", "tuned network", "trees", "splines")
FRESH = (
    "passengers",
    "health",
    "legislators",
    "stops",
    "arrests",
    "loans",
    "smokers",
    "pay",
    "drugs",
    "schools",
    "earnings",
    "births",
)
SEEN = ("compas", "crime", "happiness", "college", "men")
YARDSTICKS = {  # columns of gap and loss, and the closed forms without and with S
    "loss at equal GDP of scores": ("gdp", "loss", ("closed form", "closed form, with S")),
    "errors at equal GDP of decisions": (
        "gdp_decisions",
        "errors",
        ("closed form, decisions", "closed form, with S, decisions"),
    ),
}
NEED_S = ("fairlearn ThresholdOptimizer", "fairlearn CorrelationRemover")


class Cost(NamedTuple):
    """The cost of parity on all rows, without each fold, the factor on its error, and what the base
    gains over a constant.
    """

    value: float
    without: np.ndarray
    factor: float
    gain: float


Cells = dict[tuple[str, str, str], dict[str, Cost]]
"""By yardstick, base and table: the costs of all ways."""


def costs_of(paths: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Return from the points of each way, gaps and losses, what it loses at shares of the base's
    gap, in units of the base's gain.

    The loss at a gap lies on the line through the points that no other one beats, which begins at a
    constant, whose gap is zero.
    """
    ((base_gap, base_loss),) = paths["none"]
    ((_, constant),) = paths["constant"]
    found = {}
    gain = constant - base_loss
    for way, path in paths.items():
        if way == "constant":
            continue
        line = [(0.0, constant)]
        least = math.inf
        for gap, loss in sorted(path):
            if loss < least:
                line.append((gap, loss))
                least = loss
        at = np.interp([level * base_gap for level in LEVELS], *np.transpose(line))
        found[way] = float(at.mean() - base_loss) / gain if gain else math.nan
    return found


def jackknife(values: np.ndarray) -> float:
    """Return the standard error from values without each fold."""
    return math.sqrt((len(values) - 1) * np.var(values))


def cells_of(records: pd.DataFrame, tables: Iterable[str]) -> Cells:
    """Return the costs on some tables, where the gap of the base is at least three errors."""
    if not len(records):
        return {}
    final = records[records["part"] == "final"]
    cells: Cells = {}
    for table, base, title in product(tables, BASES, YARDSTICKS):
        gap, loss, _ = YARDSTICKS[title]
        own = final[(final["dataset"] == table) & (final["base"] == base)]
        own = own.dropna(subset=[gap, loss])
        alone = own[own["way"] == "none"].set_index("left_out").sort_index()
        if -1 not in alone.index or alone[gap][-1] < 3 * jackknife(alone[gap].drop(-1).to_numpy()):
            continue
        points: dict[float, dict[str, list[tuple[float, float]]]] = {}
        for fold, way, *point in zip(own["left_out"], own["way"], own[gap], own[loss]):
            points.setdefault(fold, {}).setdefault(way, []).append(tuple(point))
        each = {fold: costs_of(paths) for fold, paths in points.items()}
        folds = [fold for fold in sorted(each) if fold >= 0]
        rows = alone.iloc[0]
        factor = math.sqrt(1 + len(folds) * rows["test_rows"] / rows["training_rows"])
        ((_, constant),) = points[-1]["constant"]
        gain = constant - alone[loss][-1]
        cells[title, base, table] = {
            way: Cost(value, np.array([each[fold][way] for fold in folds]), factor, gain)
            for way, value in each[-1].items()
        }
    return cells


@cache
def on_tables(tables: tuple[str, ...]) -> Cells:
    """Return the costs on some tables, from the records."""
    return cells_of(study("crossed-corrected"), tables)


def rivals(title: str, ways: Iterable[str], with_s: bool) -> list[str]:
    """Return the closed form and the ways beside it, of those that need S or of the others."""
    first = YARDSTICKS[title][2][with_s]
    others = [
        way
        for way in ways
        if not way.startswith(("none", "closed form")) and (way in NEED_S) == with_s
    ]
    return [first, *others] if first in ways else []


def error_between(one: Cost, other: Cost) -> float:
    """Return the error of the difference of two costs on the same rows."""
    return jackknife(one.without - other.without) * one.factor


def gaining(cells: Cells) -> Cells:
    """Return the cells in which the base gains something over a constant."""
    return {place: cell for place, cell in cells.items() if cell["none"].gain > 0}


def counts(cells: Cells, title: str, with_s: bool) -> tuple[int, int]:
    """Return in how many cells with a rival the closed form is best or within one error, and of how
    many.
    """
    own = standing_of(YARDSTICKS[title][2][with_s], cells, title, with_s)
    return own.ahead + own.level, sum(own)


class Standing(NamedTuple):
    """In how many cells a way is ahead of all others, level with the best, and behind it."""

    ahead: int
    level: int
    behind: int


def standings(
    cells: Cells, title: str, with_s: bool, errors: float = 1.0
) -> dict[tuple[str, str], Standing]:
    """Return the standing of each way on each base, by some errors of the difference of two costs,
    in the cells with a rival.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for (yardstick, base, _), cell in cells.items():
        ways = rivals(title, cell, with_s)
        if yardstick != title or len(ways) < 2:
            continue
        for way in ways:
            signs = [sign_of(cell[way], cell[other], errors) for other in ways if other != way]
            places.setdefault((way, base), []).append(min(signs))
    return {
        key: Standing(*(signs.count(sign) for sign in (1, 0, -1))) for key, signs in places.items()
    }


def sign_of(one: Cost, other: Cost, errors: float) -> int:
    """Return 1 if one cost is smaller than the other by more than some errors of the difference, 0
    if neither is, and -1 otherwise, also where the error is undefined.
    """
    difference = other.value - one.value
    most = errors * error_between(one, other)
    if difference > most:
        return 1
    return 0 if difference >= -most else -1


def standing_of(way: str, cells: Cells, title: str, with_s: bool, errors: float = 1.0) -> Standing:
    """Return the standing of a way on all bases together."""
    every = standings(cells, title, with_s, errors)
    own = [standing for (name, _), standing in every.items() if name == way]
    return Standing(*map(sum, zip(*own))) if own else Standing(0, 0, 0)
