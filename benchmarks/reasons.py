"""Why a rival beats the closed form on a base: the errors of its parts, one at a time.

    python benchmarks/reasons.py run --records results --out reasons.json [--device cuda] [--jobs 8]
    python benchmarks/reasons.py show reasons.json

For each cell of the crossed comparison in which the closed form is beyond one error behind the best
way that does not need S, its cost of parity is computed again with one part replaced:

- coefficients: fitted on the test rows, which is not possible in practice. What is left is the
  error of the regressions.
- models of S: those of trees (of splines where the base is trees) in place of the base's own.
- mean of five: five models of four fifths of the rows in place of one of all, as the library serves
  it.
- scores (decisions only): decisions by the scores of the closed form, at the same threshold.

"shrinking" is the cost of the best contraction alone. Where it is negative, the base is overfitted:
its scores are too wide. Penalties narrow them, too, so that this gain hides what parity costs.
"""

from __future__ import annotations

import argparse
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic.estimators.constraints import Constraint
from frhsic.estimators.families import BinaryScores, Decisions, NumberScores
from frhsic.estimators.solution import Solution
from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import CONSTANT, YARDSTICKS, costs, pooled
from frhsic_paper.crossed.rows import FRESH, load, tuning_rows
from frhsic_paper.crossed.settings import values_of
from frhsic_paper.crossed.showing import rivals, within_an_error
from frhsic_paper.crossed.ways import (
    AVERAGED,
    CLOSED_FORM,
    CONTRACTION,
    DECISIONS,
    NONE,
    Point,
    Task,
    labelled,
    places,
    point,
    regressed,
)
from frhsic_paper.studies.crossed import _chosen_bases

FAMILY = {CLOSED_FORM: BinaryScores(), DECISIONS: Decisions()}


def lost(records: Any) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return yardstick, base and table of the cells where the closed form is behind."""
    final = records[records.part == "final"]
    found = []
    for name in FRESH:
        for base in BASES:
            own = final[(final.dataset == name) & (final.base == base)]
            for title, yardstick in YARDSTICKS.items():
                cost = costs(own, yardstick)
                ways = rivals(title, list(cost), with_s=False)
                whole = own[own.left_out == -1].set_index("way")
                loss = whole[yardstick.loss]
                defined = len(ways) > 1 and loss[CONSTANT] > loss[NONE]
                if defined and not within_an_error(cost, ways):
                    found.append((title, base, name, cost))
    return found


def task_of(records: Any, name: str, base: str, device: str) -> Task:
    """Return a table with its base, at the settings that were chosen for it."""
    settings = BASES[base].settings
    chosen = _chosen_bases(records[records.part == "bases"], name, base)
    of_y, of_s = (values_of(settings, trial) for trial in chosen)
    return Task(load(name), BASES[base], of_y, of_s, "test", device)


def replaced(task: Task, other: Task, title: str) -> dict[str, float]:
    """Return the cost of the closed form with one part replaced, by the part."""
    table = task.table
    splits = range(len(task.sets))
    way = DECISIONS if "decisions" in title else CLOSED_FORM
    family: Any = FAMILY[way] if table.binary else NumberScores()
    tested = np.concatenate([others for _, others in task.sets])
    tested_rows = labelled(task, tested[: len(tested) // 5 * 5])
    constraint = Constraint.fit(tested_rows, 0, "all")
    functions = [constraint.functions(table.s[:, None])] * len(splits)
    etas = regressed(task, table, task.of_y, [table.y[:, None]] * len(splits), table.binary)
    own = regressed(task, table, task.of_s, functions, binary=False)
    others = regressed(other, table, other.of_s, functions, binary=False)

    def solved(rows: Any, eta: np.ndarray, means: np.ndarray) -> Solution:
        return Solution.fit(family, rows, (constraint,), eta, means, {"s": ()})

    def path(solution: Solution, split: int, means: np.ndarray) -> list[Point]:
        mean = replace(solution, parameters=solution.parameters.mean(axis=1, keepdims=True))
        eta = etas[split].others[:, 0]
        each = [(at, mean.scores(at, 0, eta, means)) for at in places(solution)]
        return [point(way, at, split, f, solution) for at, f in each]

    rows = [labelled(task, train) for train, _ in task.sets]
    count = len(tested_rows.y)
    hindsight = solved(
        tested_rows,
        np.concatenate([eta.others[:, 0] for eta in etas])[:count],
        np.concatenate([one.others for one in own])[:count],
    )
    paths: dict[str, list[Point]] = {"as served": [], "models of S": [], "coefficients": []}
    for k in splits:
        eta = etas[k].train[:, 0]
        paths["as served"] += path(solved(rows[k], eta, own[k].train), k, own[k].others)
        paths["models of S"] += path(solved(rows[k], eta, others[k].train), k, others[k].others)
        paths["coefficients"] += path(hindsight, k, own[k].others)
    mean = float(table.y[tuning_rows(len(table.y))].mean())
    beside = [Point(NONE, 0, 0.0, k, etas[k].others[:, 0]) for k in splits]
    beside += [Point(CONSTANT, 0, 0.0, k, np.full(len(task.sets[k][1]), mean)) for k in splits]
    found = {}
    for part, points in paths.items():
        rate = mean if table.binary else None
        measured = pd.DataFrame(pooled([*beside, *points], table, task.sets, rate, tests=True))
        found[part] = costs(measured, YARDSTICKS[title])[way].value
    return found


def cell(records: Any, title: str, base: str, name: str, cost: Any, device: str) -> dict[str, Any]:
    """Return the costs of one cell in % of the gain of the base, as they were and replaced."""
    ways = rivals(title, list(cost), with_s=False)
    best = min(ways, key=lambda way: cost[way].value)
    final = records[(records.part == "final") & (records.left_out == -1)]
    own = final[(final.dataset == name) & (final.base == base)]
    least = own.groupby("way")[YARDSTICKS[title].loss].min()
    beside = {"scores": CLOSED_FORM} if "decisions" in title else {"mean of five": AVERAGED}
    numbers = {
        "closed form": cost[ways[0]].value,
        "rival": cost[best].value,
        "error": cost[ways[0]].error_beside(cost[best]),
        "shrinking": float((least[CONTRACTION] - least[NONE]) / (least[CONSTANT] - least[NONE])),
        **{part: cost[way].value for part, way in beside.items()},
    }
    other = "splines" if base == "trees" else "trees"
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tasks = (task_of(records, name, one, device) for one in (base, other))
        numbers |= replaced(*tasks, title)
    about = {"yardstick": title, "base": base, "table": name, "best": best}
    return about | {key: round(100 * value, 2) for key, value in numbers.items()}


def run(arguments: argparse.Namespace) -> None:
    """Write the costs of all cells."""
    records: Any = pd.read_parquet(Path(arguments.records) / "crossed-corrected.parquet")
    work = (delayed(cell)(records, *one, arguments.device) for one in lost(records))
    found = Parallel(arguments.jobs)(work)
    Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n")
    show(arguments.out)


def show(file: str) -> None:
    """Print a table of costs, in % of the gain of the base."""
    print(pd.DataFrame(json.loads(Path(file).read_text())).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--records", default="results")
    running.add_argument("--out", required=True)
    running.add_argument("--device", default="cpu")
    running.add_argument("--jobs", type=int, default=1)
    commands.add_parser("show").add_argument("file")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        show(arguments.file)


if __name__ == "__main__":
    main()
