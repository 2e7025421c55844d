"""The fair comparison: every method tuned by the same search on rows of its own, then tested
once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from frhsic_paper import records
from frhsic_paper.options import Options
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.protocol import METHODS, OWN, Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Listed, Table
from frhsic_paper.tuned.paths import (
    CLOSED_FORM,
    FINAL_WEIGHTS,
    NETWORKS,
    SETTINGS,
    TRIALS,
    WEIGHTS,
    Point,
    network_paths,
    refined,
    terms_of,
    tree_path,
    values_of,
)
from frhsic_paper.tuned.rows import (
    FRESH,
    MOST_OTHERS,
    MOST_TRAINING,
    SEED,
    SEEN,
    SPLITS,
    Role,
    divided,
    load,
)
from frhsic_paper.yardsticks import (
    CONSTANT,
    CONTRACTED,
    LEVELS,
    REFERENCE,
    YARDSTICKS,
    Frame,
    constant,
    headline,
    listed,
    measured,
    read,
)

BUDGET = (
    SETTINGS,
    TRIALS,
    WEIGHTS,
    FINAL_WEIGHTS,
    LEVELS,
    SEED,
    SPLITS,
    MOST_TRAINING,
    MOST_OTHERS,
)
"""What all methods share: the budget of the search, and the rows."""

RIVALS = (CONTRACTED, *METHODS)

CRITERION = next(iter(YARDSTICKS.values()))
"""The search minimizes log loss (squared error for numbers) at equal GDP."""


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return tables and methods; how many records a unit has depends on the table, at least one for
    each split.
    """
    return {(name, method): 1 for name in options.chosen((*SEEN, *FRESH)) for method in SETTINGS}


def tune(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield all trials of each table and method on validation rows."""
    trials = range(options.limited(TRIALS))
    return _paths([(*unit, _grid(unit[1], trials)) for unit in missing], "tune", options)


def test(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the chosen trial of each table and method on the test folds."""
    trials: Frame = pd.DataFrame(records.read(options.file("tuned", protocol), "trials"))
    work = [
        (name, method, chosen(trials[trials.dataset == name], method)) for name, method in missing
    ]
    return _paths(work, "test", options)


def _grid(method: str, trials: Sequence[int]) -> dict[int, tuple[float, ...]]:
    return dict.fromkeys(trials if SETTINGS[method] or method in NETWORKS else [0], WEIGHTS)


def _paths(work: Sequence[Any], role: Role, options: Options) -> Iterator[list[Record]]:
    # on a GPU, so many small fleets train side by side
    tasks = (
        delayed(_unit)(*one, role, options.device, options.epochs, options.repeats) for one in work
    )
    yield from Parallel(
        n_jobs=min(options.workers, len(work)), return_as="generator", pre_dispatch="n_jobs"
    )(tasks)


def _unit(
    name: str,
    method: str,
    weights: dict[int, tuple[float, ...]],
    role: Role,
    device: str,
    epochs: int | None,
    repeats: int | None,
) -> list[Record]:
    """Return the records of some trials of a method on one table, of a reference with the constant
    beside it.
    """
    table, splits = load(name), min(SPLITS[role], repeats or SPLITS[role])
    points, seconds = list[Point](), 0.0
    if method in NETWORKS:
        points, seconds = network_paths(
            table, method, role, weights, device, splits=splits, epochs=epochs
        )
    else:
        for trial in weights:
            for split in range(splits):
                points += tree_path(table, method, role, split, trial)
    parts = [
        [table.at(rows) for rows in divided(len(table.y), role, split)] for split in range(splits)
    ]
    rows: list[Record] = []
    for point in points:
        training, others = parts[point.split]
        numbers = dict.fromkeys(("loss", "gdp"), np.nan)  # of a model that diverged
        if np.isfinite(point.scores).all():
            numbers = measured(
                point.scores, others.y, others.s, training.base_rate, point.decisions
            )
        sizes = {"training_rows": len(training.y), "test_rows": len(others.y)}
        about = {
            "variant": point.method,
            "trial": point.trial,
            "split": point.split,
            "dial": point.dial,
        }
        rows.append(
            about
            | sizes
            | {"task": "binary" if table.binary else "regression", "seconds": seconds}
            | numbers
        )
    if method == REFERENCE:
        for split, (training, others) in enumerate(parts):
            numbers = constant(others.y, training.base_rate, float(training.y.mean()))
            rows.append({"variant": CONSTANT, "trial": 0, "split": split, "dial": 0.0} | numbers)
    return rows


def chosen(trials: Frame, method: str) -> dict[int, tuple[float, ...]]:
    """Return the trial that has the least loss on validation rows, averaged over levels and splits,
    and its weights.
    """
    shared = trials[trials.method == REFERENCE]
    own = trials[trials.method == method]
    losses = {
        trial: np.mean([_mean_loss(pd.concat([shared, path]), method, level) for level in LEVELS])
        for trial, path in own.groupby("trial")
    }
    trial = min(losses, key=lambda one: losses[one])
    if method not in NETWORKS:
        return {int(trial): WEIGHTS}
    gaps = own[own.trial == trial].groupby("dial").gdp.mean()
    reference = float(shared[shared.variant == REFERENCE].gdp.mean())
    return {int(trial): refined(gaps.index.to_list(), gaps.to_list(), reference)}


def _mean_loss(trials: Frame, method: str, level: float) -> float:
    cells = read(trials.assign(method=trials.variant), CRITERION, level)
    return float(cells[cells.method == method].loss.mean())


def frame(results: Results, tables: Sequence[str]) -> Frame:
    """Return the final records of some tables, with the variants of a method as methods."""
    final: Frame = pd.DataFrame(results.of("tuned/final", "corrected"))
    if not len(final):
        return final
    return final[final.dataset.isin(tables)].assign(method=lambda rows: rows.variant)


def tables(results: Results) -> list[Listed]:
    """Return the tables of fresh and of seen tables, and what the search chose."""
    shown = []
    for words, names in (("Fresh tables", FRESH), ("Tables seen before", SEEN)):
        final = frame(results, names)
        if len(final):
            some = listed(final, CLOSED_FORM, RIVALS, (OWN,))
            shown += [replace(one, heading=f"{words}. {one.heading}") for one in some]
    return (
        [*shown, Listed("What the search chose", settings_table(results), folded=True)]
        if shown
        else []
    )


def settings_table(results: Results) -> Table:
    """Methods by tables: the chosen trial and its settings."""
    final = frame(results, (*SEEN, *FRESH))
    names = list(dict.fromkeys(final.dataset))
    rows: list[list[Cell]] = []
    for method in SETTINGS:
        trials = [
            final[(final.dataset == n) & final.variant.str.startswith(method)].trial for n in names
        ]
        rows.append(
            [
                method_name(method),
                *(None if own.empty else _described(method, int(own.iloc[0])) for own in trials),
            ]
        )
    return Table.of(["method", *map(dataset_name, names)], rows)


def _described(method: str, trial: int) -> str:
    values = {one.name: value for one, value in zip(SETTINGS[method], values_of(method, trial))}
    terms = terms_of(trial)._asdict() if method in NETWORKS else {}
    return f"{trial}: " + json.dumps(values | terms).strip("{}").replace('"', "")


def sentences(results: Results) -> list[str]:
    """Return what the summary says of the fresh tables."""
    final = frame(results, FRESH)
    if not len(final):
        return []
    ratio = float((final.test_rows / final.training_rows).mean())
    return headline(final, CLOSED_FORM, RIVALS, ratio)


STUDY = Study(
    name="tuned",
    about="every method tuned by the same search, by yardsticks that shrinking cannot win",
    title="Every method tuned by the same search",
    words="""
        Each method's own settings are chosen by the same search: 12 trials for each method and
        table, the first with the method's defaults, the others quasi-random in stated ranges, half
        of those of a network with other training terms; 6 weights and three splits for each trial,
        at most 3,000 training rows. The criterion is log loss (squared error for numbers) at 75, 50
        and 25 % of the reference GDP on validation rows; the reference is LightGBM without
        constraint. One half of each table tunes, the other tests: five disjoint folds, weights
        refined, at most 8,000 training rows, measured once. A level that a method does not reach
        (†) is read between its last model and a constant; AUC loses there. Comparisons with this
        library's own penalty (hsic) are shown and not counted.
    """,
    train=(
        Computation("tuned", "trials", ("dataset", "method"), units, tune, {"corrected": BUDGET}),
        Computation("tuned", "final", ("dataset", "method"), units, test, {"corrected": BUDGET}),
    ),
    tables=tables,
    published=False,
)
