"""Why the closed form with S is behind by ranks: what more coefficients change.

    python paper/losses.py     # minutes; writes paper/results/crossed/losses.json

Everything is computed on the half of the rows that tunes: no test row is predicted.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from frhsic.estimators import families
from frhsic.estimators.constraints import Constraint
from frhsic.estimators.families import ScoreRanks
from frhsic.estimators.solution import Solution
from frhsic_paper import records
from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import CONSTANT, costs, pool_points
from frhsic_paper.crossed.rows import load, tuning_rows
from frhsic_paper.crossed.settings import NONE, SHARES, WITH_S, setting_values
from frhsic_paper.crossed.task import Point, Regressed, Task, regress_y
from frhsic_paper.crossed.ways import gaps_of_training, labelled_rows
from frhsic_paper.studies.crossed import chosen_bases

RESULTS = Path(__file__).parent / "results"
CHANGES: dict[str, Any] = {
    "as served": nullcontext(),
    "six coefficients": patch.object(
        families,
        "expanded",
        lambda means, rank: np.column_stack(
            [means * np.interp(rank, np.linspace(0, 1, 6), one)[:, None] for one in np.eye(6)]
        ),
    ),
}

CELLS = (("own_insurance", "splines"), ("weekend_diaries", "trees"))
"""Tables and bases in which the closed form with S is behind by ranks."""


def task_of(name: str, base: str) -> Task:
    """Return the validation rows of a table and the base with its settings."""
    losses = records.read(RESULTS / "crossed-corrected.parquet", "bases")
    own = BASES[base]
    y, s = (setting_values(own.settings, trial) for trial in chosen_bases(losses, name, base))
    return Task(load(name), own, y, s, "tune", "cpu")


def measured(task: Task, etas: list[Regressed], means: list[Regressed]) -> dict[str, float]:
    """Return the cost for ranks, and the share of the gap that is left at the end of the path."""
    table = task.table
    rate = float(table.y[tuning_rows(len(table.y))].mean())
    base = task.outputs(table, [task.fit(*rows) for rows in task.sets], task.of_y)
    points = []
    for k, (train, others) in enumerate(task.sets):
        points.append(Point(NONE, -1, 0.0, k, base[k]))
        points.append(Point(CONSTANT, -1, 0.0, k, np.full(len(others), rate)))
        rows = labelled_rows(task, train)
        f, m = etas[k].train[:, 0], means[k].train
        path = Solution.fit(ScoreRanks(), rows, (Constraint.fit(rows, 0, "all"),), f, m, {"s": ()})
        gaps = gaps_of_training(path, rows, f, m, "ranks")
        path = replace(path, parameters=path.parameters.mean(axis=1, keepdims=True))
        for share in SHARES:
            place = int(np.argmax(gaps <= max((1 - share) * gaps[0], gaps.min())))
            scores = path.scores(place, 0, etas[k].others[:, 0], means[k].others)
            points.append(Point(WITH_S, 0, share, k, scores, "ranks"))
    found = pool_points(points, table, task.sets, rate, tests=False)
    found = [one for one in found if one["quantity"] == "ranks"]
    (own,) = (one for one in found if one["way"] == WITH_S)
    left = np.min(own["gaps"]) / own["gaps"][0][0]
    return {"left": round(float(left), 4), "cost": round(costs(found)[WITH_S].value, 4)}


def cell(name: str, base: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what a cell with S is like as it is served, and after some changes."""
    task = task_of(name, base)
    etas = regress_y(task, task.table.with_attribute())
    s = task.table.s[:, None]
    means = []
    for train, others in task.sets:
        functions = Constraint.fit(labelled_rows(task, train), 0, "all").functions
        means.append(Regressed(functions(s[train]), functions(s[others])))
    for words, change in CHANGES.items():
        with change:
            yield words, measured(task, etas, means)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        found = {name: dict(cell(name, base)) for name, base in CELLS}
    text = json.dumps(found, indent=1)
    (RESULTS / "crossed" / "losses.json").write_text(text + "\n", encoding="utf-8")
