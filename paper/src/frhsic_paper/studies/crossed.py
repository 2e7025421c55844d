"""The fair comparison: every way to parity on every base, what parity costs apart from the base."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
    Frame,
    costs,
    pool_points,
)
from frhsic_paper.crossed.rows import (
    FRESH,
    MOST_OTHERS,
    MOST_TRAINING,
    SEED,
    SEEN,
    SPLITS,
    Role,
    load,
    tuning_rows,
)
from frhsic_paper.crossed.settings import POINTS, TRIALS, setting_values
from frhsic_paper.crossed.showing import figures, sentences, tables
from frhsic_paper.crossed.ways import (
    GRADIENT,
    NONE,
    OPTIMIZER,
    OWN_SETTINGS,
    SHARES,
    WEIGHTED,
    WEIGHTS,
    Point,
    Task,
    base_ways,
    path,
)
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study

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


NUMBERS = ("crime", "college", "men", "pay", "drugs", "schools", "earnings", "births")
"""Tables whose outcome is a number; units are known without reading a table."""


def bases(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return tables and bases."""
    return {(name, base): 1 for name in options.chosen_datasets((*SEEN, *FRESH)) for base in BASES}


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
        for name in options.chosen_datasets((*SEEN, *FRESH))
        for way in base_ways(BASES[base], name not in NUMBERS)
    ]
    return dict.fromkeys(sorted(units, key=lambda unit: unit[2] != GRADIENT), 1)


def search(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the losses of all trials of a base, for y and for functions of S."""
    return _run(_search, missing, options)


def tune(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield all trials of a way on validation rows."""
    found = _read(options, protocol, "bases")
    work = []
    for name, base, way in missing:
        points = WEIGHTS if way in WEIGHTED else FEWER if way == GRADIENT else tuple(SHARES)
        trials = options.limit_repeats(TRIALS) if OWN_SETTINGS.get(way) else 1
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
        for trial in range(options.limit_repeats(TRIALS) if own.settings else 1):
            values = setting_values(own.settings, trial)
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
    of_y, of_s = (setting_values(own.settings, trial) for trial in chosen)
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
    return pool_points(points, table, task.sets, rate, role == "test")


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


STUDY = Study(
    name="crossed",
    about="every way to parity on every base: the cost of parity apart from the base",
    title="The same base, the same rows",
    words="""
        Four bases: the paper's network, a tuned network, boosted trees (LightGBM) and additive
        splines. Each is combined with the methods that run on it: shrinking the scores
        (contraction), the closed form with that base for y and for functions of S, the paper's
        seven penalties and this library's (networks), a convex penalty on covariances with cosines
        of S (splines), and methods of fairlearn and AIF360 on bands of S, whose number is a
        setting. ExponentiatedGradient fits up to sixty models for a trade-off and runs only on
        trees and splines; its randomised decisions, and those of ThresholdOptimizer, are evaluated
        by their probabilities. Every other method produces one model, fitted on the same rows. Each
        gets eight trade-offs and, if it has settings, eight trials to tune them. One half of each
        table is for tuning, the other for tests in ten folds. A cell is the cost of parity: the
        mean loss at 75, 50 and 25 % of the base's own gap, less the loss of the base without
        constraint, as a percentage of the base's gain over a constant. A method that does not reach
        a gap is mixed with a constant, and a cell is left out if the gap of its base is below three
        standard errors. Standard errors are those of a jackknife over folds, widened for training
        rows that folds share. Methods that need S to predict are compared separately; fairlearn's
        CorrelationRemover is the only competitor there that returns scores.
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
    lead=sentences,
    tables=tables,
    figures=figures,
    published=False,
)
