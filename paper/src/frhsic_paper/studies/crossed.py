"""The fair comparison: every way to parity on every base, what parity costs apart from the base."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic_paper import records
from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import (
    CONSTANT,
    LEVELS,
    YARDSTICKS,
    Cost,
    Frame,
    costs,
    pooled,
)
from frhsic_paper.crossed.rows import (
    FRESH,
    MOST_OTHERS,
    MOST_TRAINING,
    SEED,
    SEEN,
    SPLITS,
    Role,
    Rows,
    load,
    tuning_rows,
)
from frhsic_paper.crossed.settings import POINTS, TRIALS, values_of
from frhsic_paper.crossed.ways import (
    AVERAGED,
    CLOSED_FORM,
    DECISIONS,
    DECISIONS_WITH_S,
    GRADIENT,
    NONE,
    NONE_AVERAGED,
    OPTIMIZER,
    OWN_SETTINGS,
    SHARES,
    USES_S,
    WEIGHTED,
    WEIGHTS,
    WITH_S,
    Point,
    Task,
    path,
    ways_on,
)
from frhsic_paper.options import Options
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Column, Listed, Spread, Table

BUDGET = (
    {name: base.settings for name, base in BASES.items()},
    OWN_SETTINGS,
    TRIALS,
    POINTS,
    WEIGHTS,
    LEVELS,
    SEED,
    SPLITS,
    MOST_TRAINING,
    MOST_OTHERS,
)
"""What all ways share: the budget of the search, and the rows."""

FEWER = (0.0, 0.5, 1.0)
"""Shares of the trials of ExponentiatedGradient, which fits the base up to twenty times for
each.
"""


def bases(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return tables and bases."""
    return {(name, base): 1 for name in options.chosen((*SEEN, *FRESH)) for base in BASES}


def tuned(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return tables, bases and the ways with settings or weights of their own."""
    searched = {*OWN_SETTINGS, *WEIGHTED}
    return {
        (name, base, way): 1
        for name, base, way in tested(protocol, options)
        if way in searched and base == _searched_on(base, way)
    }


def _searched_on(base: str, way: str) -> str:
    """Return the base on which a way is searched: ExponentiatedGradient, which fits up to sixty
    models for a point, takes the number of bands that was best on splines.
    """
    return "splines" if way == GRADIENT else base


def tested(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return tables, bases and ways; what takes longest comes first."""
    units = [
        (name, base, way)
        for base in BASES
        for name in options.chosen((*SEEN, *FRESH))
        for way in ways_on(BASES[base], _table(name).binary)
    ]
    return dict.fromkeys(sorted(units, key=lambda unit: unit[2] != GRADIENT), 1)


@cache
def _table(name: str) -> Rows:
    return load(name)


# Computing


def search(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the losses of all trials of a base, for y and for functions of S."""
    return _run(_search, missing, options)


def tune(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield all trials of a way on validation rows."""
    found = _read(options, protocol, "bases")
    work = []
    for name, base, way in missing:
        points = WEIGHTS if way in WEIGHTED else FEWER if way == GRADIENT else tuple(SHARES)
        trials = options.limited(TRIALS) if OWN_SETTINGS.get(way) else 1
        chosen = _chosen_bases(found, name, base)
        work.append((name, base, way, chosen, dict.fromkeys(range(trials), points), "tune"))
    return _run(_paths, work, options)


def test(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the chosen trial of a way on the test folds."""
    found = _read(options, protocol, "bases")
    trials = _read(options, protocol, "trials")
    work = []
    for name, base, way in missing:
        chosen: dict[int, Sequence[float]] = {0: tuple(SHARES)}
        if len(trials):
            searched = trials.base == _searched_on(base, way)
            unit = (trials.dataset == name) & searched & (trials.unit == way)
            if unit.any():
                chosen = chosen_trial(trials[unit], way)
        work.append((name, base, way, _chosen_bases(found, name, base), chosen, "test"))
    return _run(_paths, work, options)


def _read(options: Options, protocol: Protocol, part: str) -> Frame:
    return pd.DataFrame(records.read(options.file("crossed", protocol), part))


def _run(function: Any, work: Sequence[Any], options: Options) -> Iterator[list[Record]]:
    # on a GPU, so many small fleets train side by side
    quiet = replace(options, watch=None)  # what watches stays in this process
    tasks = (delayed(function)(*one, quiet) for one in work)
    yield from Parallel(
        n_jobs=min(options.workers, len(work)), return_as="generator", pre_dispatch="n_jobs"
    )(tasks)


def _search(name: str, base: str, options: Options) -> list[Record]:
    table = load(name)
    own = BASES[base]
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trial in range(options.limited(TRIALS) if own.settings else 1):
            values = values_of(own.settings, trial)
            task = Task(
                table, own, values, values, "tune", options.device, options.repeats, options.epochs
            )
            rows += [
                {"target": target, "trial": trial, "loss": loss}
                for target, loss in task.base_losses().items()
            ]
    return rows


def _chosen_bases(found: Frame, name: str, base: str) -> tuple[int, int]:
    own = found[(found.dataset == name) & (found.base == base)]
    best = own.loc[own.groupby("target").loss.idxmin()].set_index("target").trial
    return int(best["y"]), int(best["s"])


def _paths(
    name: str,
    base: str,
    way: str,
    chosen: tuple[int, int],
    trials: dict[int, Sequence[float]],
    role: Role,
    options: Options,
) -> list[Record]:
    """Return the records of a way on one table and base, with the base itself and the constant
    where they tune.
    """
    table = load(name)
    own = BASES[base]
    of_y, of_s = (values_of(own.settings, trial) for trial in chosen)
    task = Task(table, own, of_y, of_s, role, options.device, options.repeats, options.epochs)
    mean = float(table.y[tuning_rows(len(table.y))].mean())
    rate = mean if table.binary else None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points = list(path(task, way, trials))
        if role == "tune":
            alone = task.outputs(table, [task.fit(*rows) for rows in task.sets], of_y)
            points += [Point(NONE, -1, 0.0, split, f) for split, f in enumerate(alone)]
        if role == "tune" or way == "plain":
            points += [
                Point(CONSTANT, -1, 0.0, split, np.full(len(others), mean))
                for split, (_, others) in enumerate(task.sets)
            ]
    return pooled(points, table, task.sets, rate, role == "test")


def chosen_trial(trials: Frame, way: str) -> dict[int, Sequence[float]]:
    """Return the trial with the least cost on validation rows, and its weights or shares."""
    yardstick = list(YARDSTICKS.values())[way in (GRADIENT, OPTIMIZER)]
    found = {
        trial: costs(trials[trials.trial.isin([trial, -1])], yardstick)[way].value
        for trial in sorted({*trials.trial} - {-1})
    }
    trial = min(found, key=lambda one: found[one])
    if way not in WEIGHTED:
        return {int(trial): tuple(SHARES)}
    gaps = trials[trials.trial == trial].groupby("dial").gdp.mean()
    base = float(trials[trials.way == NONE].gdp.iloc[0])
    return {int(trial): refined(gaps.index.to_list(), gaps.to_list(), base)}


def refined(weights: Sequence[float], gaps: Sequence[float], base: float) -> tuple[float, ...]:
    """Return 0 and weights between the one that does nothing yet and the one that does all that is
    asked.

    From the last weight whose GDP is above 90 % of the base's to the first below 15 %, equal steps
    in the logarithm. Where a path has no such weight, a third of its least or three times its
    largest weight is taken.

    Examples
    --------
    >>> refined((0.0, 1.0, 10.0, 100.0), (1.0, 0.95, 0.5, 0.1), 1.0)
    (0.0, 1.0, 2.15443, 4.64159, 10.0, 21.5443, 46.4159, 100.0)
    """
    positive = [(w, g) for w, g in zip(weights, gaps) if w > 0]
    low = max((w for w, g in positive if g > 0.9 * base), default=positive[0][0] / 3)
    high = min((w for w, g in positive if g < 0.15 * base and w > low), default=3 * positive[-1][0])
    return (0.0, *(float(f"{w:.6g}") for w in np.geomspace(low, high, POINTS - 1)))


# Showing

FAMILIES = {
    "loss at equal GDP of scores": (CLOSED_FORM, WITH_S),
    "errors at equal GDP of decisions": (DECISIONS, DECISIONS_WITH_S),
}
"""The closed form that each yardstick asks for, without and with S."""

BESIDE = (NONE, NONE_AVERAGED, AVERAGED)
"""Ways that are shown apart: the base, and what a mean of five models adds."""


def found(results: Results, tables: Sequence[str]) -> dict[tuple[str, str, str], dict[str, Cost]]:
    """Return the costs of all ways by yardstick, base and table."""
    final: Frame = pd.DataFrame(results.of("crossed/final", "corrected"))
    cells = {}
    for name, base in [(name, base) for name in tables for base in BASES]:
        if not len(final):
            break
        own = final[(final.dataset == name) & (final.base == base)]
        for title, yardstick in YARDSTICKS.items():
            if own_costs := costs(own, yardstick):
                cells[title, base, name] = own_costs
    return cells


def rivals(title: str, ways: Sequence[str], with_s: bool) -> list[str]:
    """Return the closed form of a yardstick and its rivals, of those that need S or of the
    others.
    """
    first = FAMILIES[title][with_s]
    variants = {*BESIDE, CLOSED_FORM, DECISIONS, WITH_S, DECISIONS_WITH_S}
    others = [way for way in ways if way not in variants and (way in USES_S) == with_s]
    return [way for way in (first, *others) if way in ways]


def within_an_error(own: dict[str, Cost], ways: Sequence[str]) -> bool:
    """Return whether the first of some ways is the best, or within one error of the difference."""
    first = own[ways[0]]
    return all(first.value - own[way].value <= first.error_beside(own[way]) for way in ways[1:])


def cost_table(cells: dict[Any, dict[str, Cost]], title: str, base: str, with_s: bool) -> Table:
    """Ways by tables: the cost in % of the base's gain with its error, the least in bold, and the
    mean over tables.
    """
    own = {name: one for (t, b, name), one in cells.items() if (t, b) == (title, base)}
    ways = rivals(title, list(dict.fromkeys(way for one in own.values() for way in one)), with_s)
    least = {name: min(one[way].value for way in ways if way in one) for name, one in own.items()}
    rows: list[list[Cell]] = []
    for way in ways:
        values = [one[way].value for one in own.values() if way in one]
        row: list[Cell] = [method_name(way), 100 * float(np.mean(values))]
        for name, one in own.items():
            if way not in one:
                row.append(None)
                continue
            cost = one[way]
            bold = cost.value == least[name]
            row.append(Spread(100 * cost.value, 100 * cost.error_beside(), bold))
        rows.append(row)
    heads = [Column("mean", 1), *(Column(dataset_name(name), 1) for name in own)]
    return Table.of(["way", *heads], rows)


def base_table(cells: dict[Any, dict[str, Cost]], results: Results, names: Sequence[str]) -> Table:
    """Bases by tables: loss without constraint, as a share of the constant's; below 1 is better."""
    final: Frame = pd.DataFrame(results.of("crossed/final", "corrected"))
    final = final[final.left_out == -1]
    rows: list[list[Cell]] = []
    for base in BASES:
        for way in (NONE, NONE_AVERAGED):
            row: list[Cell] = [base if way == NONE else f"{base}, mean of five"]
            for name in names:
                own = final[(final.dataset == name) & (final.base == base)].set_index("way").loss
                row.append(float(own[way] / own[CONSTANT]) if way in own else None)
            rows.append(row)
    return Table.of(["base", *map(dataset_name, names)], rows)


def counts(cells: dict[Any, dict[str, Cost]], with_s: bool) -> dict[str, tuple[int, int]]:
    """Return in how many cells (yardstick, base, table) with a rival the closed form is best or
    within one error of the best, by yardstick.
    """
    found = {}
    for title in YARDSTICKS:
        judged = []
        for (t, _, _), one in cells.items():
            ways = rivals(title, list(one), with_s) if t == title else []
            if len(ways) > 1:
                judged.append(within_an_error(one, ways))
        found[title] = (sum(judged), len(judged))
    return found


def sentences(results: Results, names: Sequence[str] = FRESH) -> list[str]:
    """Return what is said of some tables: where the closed form does not lead comes first."""
    cells = found(results, names)
    if not cells:
        return []
    said = []
    for with_s in (False, True):
        for title, (good, total) in counts(cells, with_s).items():
            if not total:
                continue
            who = "With S" if with_s else "Without S"
            lost = [
                f"{base} on {dataset_name(name)}"
                for (t, base, name), one in cells.items()
                if t == title
                and len(ways := rivals(title, list(one), with_s)) > 1
                and not within_an_error(one, ways)
            ]
            behind = f"beyond one error behind the best on {', '.join(lost)}; " if lost else ""
            said.append(
                f"{who}, {title}: the closed form is {behind}best or within one error of the best"
                f" in {good} of {total} cells."
            )
    return said


def tables(results: Results) -> list[Listed]:
    """Return the costs on fresh and seen tables, the bases, and what a mean of five adds."""
    shown = []
    for words, names in (("Fresh tables", FRESH), ("Tables seen before", SEEN)):
        cells = found(results, names)
        present = [name for name in names if any(key[2] == name for key in cells)]
        if not cells:
            continue
        for title in YARDSTICKS:
            for with_s in (False, True):
                for base in BASES:
                    table = cost_table(cells, title, base, with_s)
                    if table.rows:
                        who = "with S" if with_s else "without S"
                        heading = (
                            f"{words}, {base}, {who}: {title}, cost of parity in % of the gain"
                        )
                        shown.append(Listed(heading, table, folded=names is SEEN))
        heading = f"{words}: loss of the bases without constraint, over that of a constant"
        shown.append(Listed(heading, base_table(cells, results, present)))
    return shown


STUDY = Study(
    name="crossed",
    about="every way to parity on every base: the cost of parity apart from the base",
    title="The same base, the same rows",
    words="""
        Four bases: the paper's network, a tuned network, boosted trees (LightGBM) and additive
        splines. On each, the ways to parity that run on it: shrinking the scores (contraction), the
        closed form with models of y and of functions of S of that base alone, the paper's seven
        penalties and this library's (networks), a convex penalty on covariances with cosines of S
        (splines), and methods of fairlearn and AIF360 on bands of S. Everybody serves one model,
        fitted on the same rows; every path has eight points; everything that has settings gets
        eight trials. One half of each table tunes, the other tests in ten folds. A cell is the cost
        of parity: the loss at 75, 50 and 25 % of the base's own gap, less the loss of the base
        without constraint, in % of what the base gains over a constant. Errors are those of a
        jackknife over folds, widened for training rows that folds share. Ways that need S to
        predict stand apart.
    """,
    train=(
        Computation("crossed", "bases", ("dataset", "base"), bases, search, {"corrected": BUDGET}),
        Computation(
            "crossed", "trials", ("dataset", "base", "unit"), tuned, tune, {"corrected": BUDGET}
        ),
        Computation(
            "crossed", "final", ("dataset", "base", "unit"), tested, test, {"corrected": BUDGET}
        ),
    ),
    tables=tables,
    published=False,
)
