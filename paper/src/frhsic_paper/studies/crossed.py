"""The benchmark: every method on every base model, to separate the cost of parity from the quality
of the base.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic_paper import records
from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import CONSTANT, LEVELS, costs, pool_points
from frhsic_paper.crossed.rows import (
    FRESH,
    MOST_OTHERS,
    MOST_TRAINING,
    NUMBERS,
    SEED,
    SEEN,
    SPLITS,
    Role,
    load,
    tuning_rows,
)
from frhsic_paper.crossed.settings import (
    DECIDES,
    FAIRGBM_SLACK,
    GRADIENT,
    ITERATIONS,
    LINEAR_POST,
    MODELS,
    NONE,
    OWN_SETTINGS,
    POINTS,
    SHARES,
    SHARES_OF_GRADIENT,
    TRIALS,
    WEIGHTED,
    WEIGHTS,
    WITH_S,
    Quantity,
    Trials,
    setting_values,
)
from frhsic_paper.crossed.showing import figures, sentences, tables
from frhsic_paper.crossed.task import Point, Task
from frhsic_paper.crossed.ways import FIXED, WAYS, base_ways, path
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study

FEWER = (0.0, 0.5, 1.0)
"""Shares of the trials of ExponentiatedGradient."""

BUDGET = (
    {name: base.settings for name, base in BASES.items()},
    OWN_SETTINGS,
    TRIALS,
    POINTS,
    WEIGHTS,
    SHARES_OF_GRADIENT,
    FEWER,
    ITERATIONS,
    FAIRGBM_SLACK,
    MODELS,
    LEVELS,
    SEED,
    SPLITS,
    MOST_TRAINING,
    MOST_OTHERS,
)
"""What all methods share: the search budget and the rows."""

BY = ("dataset", "base", "unit")
"""What identifies a unit of a method."""

LONGEST = (GRADIENT, "plain", "hgr-networks", LINEAR_POST, WITH_S)
"""Methods whose units take longest, starting with the longest, so that an interrupted run loses
little.
"""

Chosen = dict[Quantity, tuple[int, tuple[float, ...]]]
"""The trial of a method that is tested, with its strengths, by the quantity for which it was
chosen.
"""


def _chosen_tables(options: Options) -> tuple[str, ...]:
    return options.chosen_datasets((*SEEN, *FRESH)) if options.datasets else FRESH


def bases(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the tables and the bases."""
    return {(name, base): 1 for name in _chosen_tables(options) for base in BASES}


def tuned(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the tables, the bases and the methods that have their own settings or weights."""
    return {
        (name, base, way): 1
        for name, base, way in final_units(protocol, options)
        if way not in FIXED and base == _searched_on(base, way)
    }


def _searched_on(base: str, way: str) -> str:
    """Return the base on which a method is tuned: LinearPost, which fits a model for each band,
    uses the number of bands that was best on splines.
    """
    return "splines" if way == LINEAR_POST else base


def final_units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the tables, the bases and the methods, starting with the slowest. The others are
    ordered by table, so that units of networks, on the GPU, alternate with those on the CPU.
    """
    units = [
        (name, base, way)
        for name in _chosen_tables(options)
        for base in BASES
        for way in base_ways(BASES[base], name not in NUMBERS)
    ]
    return dict.fromkeys(sorted(units, key=lambda unit: _place(unit[2])), 1)


def _place(way: str) -> int:
    return LONGEST.index(way) if way in LONGEST else len(LONGEST)


def search(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the losses of all trials of a base, for y and for functions of S."""
    return _run(_search, missing, options)


def tune(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield all trials of a method on validation rows."""
    losses = _read(options, protocol, "bases")
    work = []
    for name, base, way in missing:
        points = WEIGHTS if way in WEIGHTED else FEWER if way == GRADIENT else tuple(SHARES)
        trials = options.limit_repeats(TRIALS) if OWN_SETTINGS.get(way) else 1
        chosen = chosen_bases(losses, name, base)
        work.append((name, base, way, chosen, dict.fromkeys(range(trials), points), None))
    return _run(_paths, work, options)


def test(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the chosen trials of a method on the test folds."""
    losses = _read(options, protocol, "bases")
    searched: dict[Unit, list[Record]] = {}
    for one in _read(options, protocol, "trials"):
        searched.setdefault((one["dataset"], one["base"], one["unit"]), []).append(one)
    work = []
    for name, base, way in missing:
        chosen: Chosen = {}
        dials: dict[int, list[float]] = {}
        if way not in FIXED:
            trials = searched[name, _searched_on(base, way), way]
            for quantity in ("decisions",) if way in DECIDES else quantities(name):
                own = [one for one in trials if one["quantity"] == quantity]
                trial, some = chosen_trial(own, way)
                chosen[quantity] = trial, some
                dials[trial] = sorted({*dials.get(trial, ()), *some})
        work.append((name, base, way, chosen_bases(losses, name, base), dials, chosen))
    return _run(_paths, work, options)


def shares_of(way: str) -> tuple[float, ...]:
    """Return the shares for a method with a natural range."""
    return SHARES_OF_GRADIENT if way == GRADIENT else tuple(SHARES)


def quantities(name: str) -> tuple[Quantity, ...]:
    """Return the quantities that are compared on a table."""
    return ("scores",) if name in NUMBERS else get_args(Quantity)


def _read(options: Options, protocol: Protocol, part: str) -> list[Record]:
    return records.read(options.file("crossed", protocol), part)


def _run(function: Any, work: Sequence[Any], options: Options) -> Iterator[list[Record]]:
    """Yield the records of units as they finish; on a GPU, many small fleets are trained in
    parallel.
    """
    quiet = replace(options, watch=None)  # the callback stays in this process
    tasks = (delayed(function)(*one, quiet) for one in work)
    yield from Parallel(
        n_jobs=min(options.workers, len(work)),
        return_as="generator_unordered",
        pre_dispatch="n_jobs",
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
                {"dataset": name, "base": base, "target": target, "trial": trial, "loss": loss}
                for target, loss in task.base_losses().items()
            ]
    return rows


def chosen_bases(losses: Sequence[Record], name: str, base: str) -> tuple[int, int]:
    """Return the trials of a base with the smallest loss, for y and for functions of S."""
    own = [one for one in losses if (one["dataset"], one["base"]) == (name, base)]
    best = {}
    for target in ("y", "s"):
        best[target] = min(
            (one for one in own if one["target"] == target), key=lambda one: one["loss"]
        )
    return best["y"]["trial"], best["s"]["trial"]


def _paths(
    name: str,
    base: str,
    way: str,
    chosen_base: tuple[int, int],
    trials: Trials,
    chosen: Chosen | None,
    options: Options,
) -> list[Record]:
    """Return the records of a method on one table and base, with those of the base itself and of
    the constant: on the test folds if trials were chosen, else on validation rows.
    """
    table = load(name)
    own = BASES[base]
    of_y, of_s = (setting_values(own.settings, trial) for trial in chosen_base)
    role: Role = "tune" if chosen is None else "test"
    task = Task(table, own, of_y, of_s, role, options.device, options.repeats, options.epochs)
    mean = float(table.y[tuning_rows(len(table.y))].mean())
    rate = mean if table.binary else None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        points = list(path(task, way, trials))
        seconds = time.perf_counter() - started
        if chosen:
            points = [
                one._replace(quantity=quantity)
                for quantity, (trial, dials) in chosen.items()
                for one in points
                if one.trial == trial and one.dial in dials
            ]
        if chosen is None:
            alone = task.outputs(table, [task.fit(*rows) for rows in task.sets], of_y)
            points += [Point(NONE, -1, 0.0, split, f) for split, f in enumerate(alone)]
        if chosen is None or way == "plain":
            points += [
                Point(CONSTANT, -1, 0.0, split, np.full(len(others), mean))
                for split, (_, others) in enumerate(task.sets)
            ]
    found = pool_points(points, table, task.sets, rate, role == "test")
    unit = {"dataset": name, "base": base, "unit": way}
    return [unit | {"seconds": seconds} | one for one in found]


def chosen_trial(trials: Sequence[Record], way: str) -> tuple[int, tuple[float, ...]]:
    """Return the trial with the smallest cost on validation rows for one quantity, and its weights
    or shares.
    """
    shared = [one for one in trials if one["trial"] == -1]
    own = {one["trial"]: one for one in trials if one["trial"] >= 0}
    found = {trial: costs([*shared, one]).get(way) for trial, one in own.items()}
    trial = min(own, key=lambda one: np.inf if (cost := found[one]) is None else cost.value)
    if way not in WEIGHTED:
        return trial, shares_of(way)
    gaps = [gap for (gap,) in own[trial]["gaps"]]
    ((base,),) = next(one["gaps"] for one in shared if one["way"] == NONE)
    return trial, refined(own[trial]["dials"], gaps, base)


def refined(weights: Sequence[float], gaps: Sequence[float], base: float) -> tuple[float, ...]:
    """Return 0, and weights from one with hardly any effect to one that reaches the smallest gap
    needed.

    The weights are equally spaced in the logarithm, from the last one whose GDP is above 90 % of
    the base's to the first one below 15 %. If a path has no such weight, a third of its smallest or
    three times its largest weight is used.

    Examples
    --------
    >>> refined((0.0, 1.0, 10.0, 100.0), (1.0, 0.95, 0.5, 0.1), 1.0)
    (0.0, 1.0, 2.15443, 4.64159, 10.0, 21.5443, 46.4159, 100.0)
    """
    positive = [(w, g) for w, g in zip(weights, gaps) if w > 0]
    low = max((w for w, g in positive if g > 0.9 * base), default=positive[0][0] / 3)
    high = min((w for w, g in positive if g < 0.15 * base and w > low), default=3 * positive[-1][0])
    return (0.0, *(float(f"{w:.6g}") for w in np.geomspace(low, high, POINTS - 1)))


def _way(unit: Unit) -> object:
    """Return the function of the method of a unit."""
    return WAYS[unit[BY.index("unit")]]


STUDY = Study(
    name="crossed",
    about="every method on every base model: the cost of parity apart from the base",
    title="The same base, the same rows",
    words="""
        Four bases: the paper's network, a tuned network, boosted trees (LightGBM) and additive
        splines. Each is combined with the methods that run on it: the closed form with that base
        for y and for functions of S, up to 54 models; contraction, which shrinks the scores of one
        model or of the mean of nine (ANALYSIS.md, written before the runs, wrongly states that the
        closed form also has nine); the paper's seven penalties as in its authors' code (ADV, MMD
        and dCor also as its text describes them), this library's penalty, two penalties on the
        Hirschfeld-Gebelein-Rényi correlation, GeDI and fairret (networks); a convex penalty on
        covariances with cosines of S (splines); FairGBM (trees), which bounds differences in error
        rates, not in rates of positive decisions; LEACE; reweighing, LinearPost and fairlearn's
        ExponentiatedGradient on bands of S, whose number is a setting. Randomised decisions are
        evaluated by their probabilities. A method with settings has eight trials, of which the one
        with the smallest cost is chosen for each comparison, and a method with a weight or a share
        has eight trade-offs. Exceptions: ExponentiatedGradient has 50 iterations and four
        trade-offs, three in a trial, and does not run on networks, where a trade-off takes up to a
        hundred models; LinearPost takes the number of bands that is best on splines; adversaries do
        not stop early. FRHSIC's scale is updated every 20 epochs, and early stopping doesn't wait
        for these updates; two of its eight trials have a bandwidth so small that its penalty has
        hardly any effect. One half of each table is for tuning, with at most 2,500 training rows,
        the other for tests in ten folds, with at most 5,000. A cell is the cost of parity on one
        base and table: the mean loss at 75, 50 and 25 % of the base's own gap, minus the loss of
        the unconstrained base, as a percentage of the base's gain over a constant. Between two
        points of a path, and between its last one and a constant, the loss is that of a random
        choice. So a method that changes nothing costs 50 %; for scores, an average with a constant
        would cost less, as contraction does. CorrelationRemover removes what is linear in S from
        each column; from 0/1 columns, a nonlinear base can often recover it. A cell is left out if
        the gap of its base is below three standard errors (office_visits, on every base) or the
        base is worse than a constant. Standard errors are those of a jackknife over folds, widened
        for training rows that folds share. Methods that need S to predict are compared separately:
        CorrelationRemover and the Wasserstein barycentre by their scores, ThresholdOptimizer and
        error-parity by their decisions. LinearPost, error-parity and fairlearn's methods bound the
        largest difference between bands, but are judged by the mean distance, like all other
        methods. The benchmark judges the scores of one head; FRHSIC, FREM, MMD and dCor are meant
        for representations that serve any head.
    """,
    train=(
        Computation("crossed", "bases", ("dataset", "base"), bases, search, {"corrected": BUDGET}),
        Computation("crossed", "trials", BY, tuned, tune, {"corrected": BUDGET}, _way),
        Computation("crossed", "final", BY, final_units, test, {"corrected": BUDGET}, _way),
    ),
    lead=sentences,
    tables=tables,
    figures=figures,
    published=False,
)
