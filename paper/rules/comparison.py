"""The comparison, for README.md, docs/index.md, methods.md and reproduction.md.

A cell is a quantity, a base and a table; its costs are those of all ways on the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from rules.records import study

LEVELS = (0.75, 0.5, 0.25)
BASES = ("paper's network", "tuned network", "trees", "splines")
FRESH = (
    "cannabis_arrests",
    "own_insurance",
    "benefit_claims",
    "plebiscite",
    "mexico_vote",
    "out_of_work",
    "weekend_diaries",
    "medical_bills",
    "office_visits",
    "wives_hours",
    "neuroticism",
    "food_spending",
)
TWO_CLASSES = FRESH[:7]
QUANTITIES = {
    "scores": "loss at equal GDP of scores",
    "ranks": "AUC at equal rank gap",
    "decisions": "errors at equal GDP of decisions",
}
OWN = ("closed form", "closed form, with S")
NEED_S = (
    "fairlearn ThresholdOptimizer",
    "fairlearn CorrelationRemover",
    "error-parity",
    "Wasserstein barycentre",
)


GOAL = 0.9
"""Share of the cells in which the closed form should be ahead or level, fixed before the run."""


class Cost(NamedTuple):
    """The cost of parity on all rows, without each fold, the factor on its error, and what the base
    gains over a constant.
    """

    value: float
    without: np.ndarray
    factor: float
    gain: float


Cells = dict[tuple[str, str, str], dict[str, Cost]]
"""By quantity, base and table: the costs of all ways."""


def costs_of(
    paths: dict[str, list[tuple[float, float]]], levels: tuple[float, ...] = LEVELS
) -> dict[str, float]:
    """Return from the points of each way, gaps and losses, what it loses at levels, shares of the
    base's gap, in units of the base's gain.

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
        for gap, loss in sorted(point for point in path if not any(map(math.isnan, point))):
            if loss < least:
                line.append((gap, loss))
                least = loss
        at = np.interp([level * base_gap for level in levels], *np.transpose(line))
        found[way] = float(at.mean() - base_loss) / gain if gain else math.nan
    return found


def jackknife(values: np.ndarray) -> float:
    """Return the standard error from values without each fold."""
    return math.sqrt((len(values) - 1) * np.var(values))


def costs_in_folds(points: dict[str, np.ndarray], share: float) -> dict[str, Cost]:
    """Return the costs of all ways from their points, gap and loss: those of all rows, then those
    without each fold; `share` is that of the rows of a fold in those that train.
    """
    folds = len(points["none"]) - 1
    factor = math.sqrt(1 + folds * share)
    gain = float(points["constant"][0, 0, 1] - points["none"][0, 0, 1])
    each = [
        costs_of({way: [tuple(point) for point in path[j]] for way, path in points.items()})
        for j in range(folds + 1)
    ]
    return {
        way: Cost(value, np.array([one[way] for one in each[1:]]), factor, gain)
        for way, value in each[0].items()
    }


def cells_of(records: pd.DataFrame) -> Cells:
    """Return the costs on the fresh tables, where the gap of the base is at least three errors and
    a constant loses more. A cost without a fold is undefined where a constant loses less there.
    """
    cells: Cells = {}
    if not len(records):
        return cells
    final = records[(records["part"] == "final") & records["dataset"].isin(FRESH)]
    for (quantity, base, table), own in final.groupby(["quantity", "base", "dataset"]):
        points: dict[str, np.ndarray] = {}
        for way, gaps, losses in zip(own["way"], own["gaps"], own["losses"]):
            both = [np.array([list(row) for row in one], float).T for one in (gaps, losses)]
            points[way] = np.stack(both, axis=2)
        if "none" not in points:
            continue
        alone = points["none"][:, 0]
        if alone[0, 0] < 3 * jackknife(alone[1:, 0]):
            continue
        rows = own.iloc[0]
        costs = costs_in_folds(points, rows["test_rows"] / rows["training_rows"])
        gains = points["constant"][1:, 0, 1] - alone[1:, 1] > 0
        cells[quantity, base, table] = {
            way: cost._replace(without=np.where(gains, cost.without, math.nan))
            for way, cost in costs.items()
        }
    return gaining(cells)


def gaining(cells: Cells) -> Cells:
    """Return the cells in which the base gains something over a constant."""
    return {place: cell for place, cell in cells.items() if cell["none"].gain > 0}


@cache
def on_fresh_tables() -> Cells:
    """Return the costs on the fresh tables, from the records."""
    return cells_of(study("crossed-corrected"))


def rivals(ways: Iterable[str], with_s: bool) -> list[str]:
    """Return the closed form and the ways beside it, of those that need S or of the others."""
    others = [
        way
        for way in ways
        if not way.startswith(("none", "closed form")) and (way in NEED_S) == with_s
    ]
    return [OWN[with_s], *others] if others and OWN[with_s] in ways else []


def error_between(one: Cost, other: Cost) -> float:
    """Return the error of the difference of two costs on the same rows."""
    return jackknife(one.without - other.without) * one.factor


class Standing(NamedTuple):
    """In how many cells a way is ahead of all others, level with the best, and behind it."""

    ahead: int
    level: int
    behind: int


def standings(
    cells: Cells, quantity: str, with_s: bool, errors: float = 1.0
) -> dict[tuple[str, str], Standing]:
    """Return the standing of each way on each base, by some errors of the difference of two costs,
    in the cells with a rival.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for (own, base, _), cell in cells.items():
        ways = rivals(cell, with_s) if own == quantity else []
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


def standing_of(
    way: str, cells: Cells, quantity: str, with_s: bool, errors: float = 1.0
) -> Standing:
    """Return the standing of a way on all bases together."""
    every = standings(cells, quantity, with_s, errors)
    own = [standing for (name, _), standing in every.items() if name == way]
    return Standing(*map(sum, zip(*own))) if own else Standing(0, 0, 0)


def own_standings(cells: Cells) -> dict[tuple[str, str], tuple[Standing, Standing]]:
    """Return the standings of the closed form by one and by two standard errors, by quantity and
    whether S is needed, where there are cells.
    """
    found = {}
    for with_s, way in enumerate(OWN):
        for quantity in QUANTITIES:
            one, two = (standing_of(way, cells, quantity, bool(with_s), k) for k in (1.0, 2.0))
            if sum(one):
                found[quantity, f"{'with' if with_s else 'without'} S"] = one, two
    return found


def is_met(one: Standing, two: Standing) -> bool:
    """Return whether the closed form reaches the goal, by its standings."""
    return one.ahead + one.level >= GOAL * sum(one) and not two.behind


def tables_with_cells(cells: Cells) -> list[int]:
    """Return on how many tables there are cells of each quantity."""
    return [len({table for own, _, table in cells if own == quantity}) for quantity in QUANTITIES]


def tables_phrase(cells: Cells) -> str:
    """Return the same in words."""
    scores, ranks, decisions = tables_with_cells(cells)
    return (
        f"{scores} of the {len(FRESH)} tables for scores and, of the {len(TWO_CLASSES)} with two"
        f" classes, {ranks} for ranks and {decisions} for decisions"
    )


def most_rivals(cells: Cells) -> int:
    """Return the largest number of rivals of the closed form on networks, for scores without S."""
    return max(
        len(rivals(cell, False)) - 1
        for (quantity, base, _), cell in cells.items()
        if quantity == "scores" and base in BASES[:2]
    )
