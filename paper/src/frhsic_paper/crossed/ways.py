"""The methods on a base: paths of scores and decisions, from no constraint to the strictest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit

from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import BinaryScores, Family, NumberScores, ScoreRanks
from frhsic.estimators.solution import Solution
from frhsic.parity import gdp, rank_gap
from frhsic_paper.code import Choices
from frhsic_paper.crossed.bands import (
    barycentre,
    error_parity,
    exponentiated_gradient,
    fairgbm,
    linear_post,
    reweighing,
    threshold_optimizer,
)
from frhsic_paper.crossed.bases import (
    Base,
    Fit,
    Network,
    SplineDesign,
    Splines,
    Trees,
    categorical,
    ridge_fit,
)
from frhsic_paper.crossed.rows import Rows, training_parts
from frhsic_paper.crossed.settings import (
    BAG,
    BARYCENTRE,
    CLOSED_FORM,
    CONTRACTION,
    COSINES,
    ERROR_PARITY,
    FAIRGBM,
    GRADIENT,
    LEACE,
    LINEAR_POST,
    MODELS,
    NONE,
    OPTIMIZER,
    OWN_SETTINGS,
    PENALTY_SETTINGS,
    REMOVER,
    REWEIGHING,
    SHARES,
    WITH_S,
    Quantity,
    Trials,
    setting_values,
)
from frhsic_paper.crossed.task import Point, Regressed, Task, regress, regress_y


def labelled_rows(task: Task, train: np.ndarray) -> LabelledRows:
    """Return training rows in the library's format."""
    y = task.table.y[train]
    return LabelledRows(
        X=None,
        codes=np.zeros((len(train), 0)),
        s=task.table.s[train, None],
        names=("s",),
        weights=None,
        groups=None,
        fold=np.repeat(
            np.arange(len(training_parts(train))), len(train) // len(training_parts(train))
        ),
        seed=0,
        y=y,
        labels=y,
        numeric=not task.table.binary,
    )


def plain(task: Task) -> Iterator[Point]:
    """Yield the unconstrained base, the contracted base, and the closed form."""
    table = task.table
    etas = regress_y(task, table)
    rows = [labelled_rows(task, train) for train, _ in task.sets]
    constraints = [Constraint.fit(one, 0, "all") for one in rows]
    functions = [one.functions(table.s[:, None]) for one in constraints]
    means = regress(task, table, task.of_s, functions, binary=False)
    for split, (train, _) in enumerate(task.sets):
        f = etas[split].others[:, 0]
        yield Point(NONE, 0, 0.0, split, f)
        yield from contracted(CONTRACTION, split, f, table.y[train].mean())
        yield from solved(rows[split], constraints[split], etas[split], means[split], split, False)


def contracted(way: str, split: int, f: np.ndarray, center: float) -> Iterator[Point]:
    """Yield scores shrunk towards a mean."""
    for share in SHARES:
        yield Point(way, 0, share, split, center + (1 - share) * (f - center))


def solved(
    rows: LabelledRows,
    constraint: Constraint,
    eta: Regressed,
    means: Regressed,
    split: int,
    with_s: bool,
) -> Iterator[Point]:
    """Yield the path of the closed form for each quantity, using predictions from one model of y
    and one of each function of S.
    """
    families: dict[Quantity, Family] = {"scores": NumberScores()}
    if not rows.numeric:
        families = {"scores": BinaryScores(), "ranks": ScoreRanks(), "decisions": Decisions()}
    way = WITH_S if with_s else CLOSED_FORM
    for quantity, family in families.items():
        f = eta.train[:, 0]
        solution = Solution.fit(family, rows, (constraint,), f, means.train, {"s": ()})
        gaps = gaps_of_training(solution, rows, f, means.train, quantity)
        mean = replace(solution, parameters=solution.parameters.mean(axis=1, keepdims=True))
        for share in SHARES:
            # the first trade-off within this share of the gap, or the one with the smallest gap
            place = int(np.argmax(gaps <= max((1 - share) * gaps[0], gaps.min())))
            scores = mean.scores(place, 0, eta.others[:, 0], means.others)
            if family.decides:
                scores = (scores > solution.units.threshold).astype(float)
            yield Point(way, 0, share, split, scores, quantity, family.decides)


def gaps_of_training(
    solution: Solution, rows: LabelledRows, eta: np.ndarray, means: np.ndarray, quantity: Quantity
) -> np.ndarray:
    """Return the gap of each trade-off on the training rows, out of fold."""
    gaps = []
    for place in range(len(solution.parameters)):
        scores = solution.out_of_fold(place, rows.fold, eta, means)
        if quantity == "decisions":
            scores = (scores > solution.units.threshold).astype(float)
        measure = rank_gap if quantity == "ranks" else gdp
        gaps.append(float(measure(scores, rows.s[:, 0], resamples=0)))
    return np.array(gaps)


def bag(task: Task) -> Iterator[Point]:
    """Yield the contracted mean of several models of y (as many as the closed form has for y and
    S), each fitted to rows drawn with replacement.
    """
    fits = []
    for split, (train, others) in enumerate(task.sets):
        for number in range(MODELS):
            drawn = np.random.default_rng([split, number]).choice(train, len(train))
            fits.append(task.fit(drawn, others))
    found = iter(task.outputs(task.table, fits, task.of_y))
    for split, (train, _) in enumerate(task.sets):
        f = np.mean([next(found) for _ in range(MODELS)], axis=0)
        yield from contracted(BAG, split, f, task.table.y[train].mean())


def leace(task: Task) -> Iterator[Point]:
    """Yield the base, fitted to columns from which LEACE has erased all linear information about
    functions of S.
    """
    encoded = encoded_columns(task.table)

    def erase(train: np.ndarray, share: float) -> np.ndarray:
        functions = SensitiveBasis.fit(task.table.s[train])(task.table.s[train])
        return encoded - share * erased_part(encoded, encoded[train], functions)

    return on_columns(task, LEACE, erase)


def on_columns(
    task: Task, way: str, change: Callable[[np.ndarray, float], np.ndarray]
) -> Iterator[Point]:
    """Yield the base, fitted to changed columns: `change` gets the training rows and a share of the
    change, and returns the columns for all rows.
    """
    table = task.table
    fits: list[Fit] = []
    about = []
    columns = []
    rows: list[np.ndarray] = []
    start = 0
    for split, (train, others) in enumerate(task.sets):
        for share in SHARES:
            both = np.concatenate([train, others])
            columns.append(change(train, float(share))[both])
            rows.append(both)
            first, second = np.split(start + np.arange(len(both)), [len(train)])
            fits.append(Fit(first, second, table.y, table.binary))
            about.append((float(share), split))
            start += len(both)
    every = np.concatenate(rows)
    X = pd.DataFrame(np.concatenate(columns)).add_prefix("x")
    changed = Rows(X, table.y[every], table.s[every], table.binary)
    found = task.outputs(changed, [one._replace(target=changed.y) for one in fits], task.of_y)
    for (share, split), scores in zip(about, found):
        yield Point(way, 0, share, split, scores)


def encoded_columns(table: Rows) -> np.ndarray:
    """Return the columns with an indicator for each category, and with medians in place of missing
    numbers.
    """
    encoded = pd.get_dummies(categorical(table), columns=list(table.nominal), dtype=float)
    return encoded.fillna(encoded.median()).to_numpy(float)


def erased_part(x: np.ndarray, train: np.ndarray, functions: np.ndarray) -> np.ndarray:
    r"""Return what LEACE subtracts from rows, :math:`W^+ P W (x - \bar x)`, where W whitens x and P
    projects on the whitened covariances with the functions (Belrose and others 2023, theorem 4.3).
    """
    center = train.mean(axis=0)
    covariance = np.cov(train.T, bias=True)
    values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
    kept = values > 1e-10 * values.max()
    roots = np.sqrt(values[kept])
    whiten = vectors[:, kept] / roots
    crossed = (train - center).T @ (functions - functions.mean(axis=0)) / len(train)
    basis, sizes, _ = np.linalg.svd(whiten.T @ crossed, full_matrices=False)
    basis = basis[:, sizes > 1e-10 * max(sizes.max(), 1e-300)]
    erased: np.ndarray = (x - center) @ whiten @ basis @ (vectors[:, kept] * roots @ basis).T
    return erased


def penalized(method: str, task: Task, trials: Trials) -> Iterator[Point]:
    """Yield the paths of a penalty on a network, for the given trials and their weights."""
    assert isinstance(task.base, Network)
    fits = [task.fit(*rows) for rows in task.sets]
    runs = [
        (split, trial, w, setting_values(PENALTY_SETTINGS[method], trial))
        for trial, weights in trials.items()
        for split in range(len(fits))
        for w in weights
    ]
    found = task.base.penalized(task.table, method, fits, runs, task.of_y, task.device, task.epochs)
    for (split, trial, w, _), scores in zip(runs, found):
        yield Point(method, trial, w, split, scores)


def cosines(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield additive splines whose scores have small covariances with cosines of the rank of S,
    similar to Pérez-Suay and others (2017); the problem is convex.
    """
    table = task.table
    for split, (train, others) in enumerate(task.sets):
        design = SplineDesign(table, train, int(task.of_y[0]))
        new = design(others)
        order = np.argsort(np.argsort(table.s[train], kind="stable"), kind="stable")
        rank = (order + 0.5) / len(train)
        center, spread = (0.0, 1.0) if table.binary else (0.0, table.y[train].std())
        y = (table.y[train] - center) / spread
        for trial, weights in trials.items():
            (count,) = setting_values(OWN_SETTINGS[COSINES], trial)
            waves = np.sqrt(2) * np.cos(np.pi * rank[:, None] * np.arange(1, int(count) + 1))
            covariances = waves.T @ design.training / len(train)
            for w in weights:
                beta = ridge_fit(
                    design.training,
                    y,
                    table.binary,
                    task.of_y[1],
                    covariances=np.sqrt(w) * covariances,
                )
                f = new @ beta
                yield Point(
                    COSINES, trial, w, split, expit(f) if table.binary else center + spread * f
                )


def with_attribute(task: Task) -> Iterator[Point]:
    """Yield the closed form with models that may use S."""
    table = task.table
    etas = regress_y(task, table.with_attribute())
    for split, (train, others) in enumerate(task.sets):
        rows = labelled_rows(task, train)
        constraint = Constraint.fit(rows, 0, "all")
        known = Regressed(constraint.functions(rows.s), constraint.functions(table.s[others, None]))
        yield from solved(rows, constraint, etas[split], known, split, True)


def correlation_remover(task: Task) -> Iterator[Point]:
    """Yield the base, fitted to the columns of fairlearn's CorrelationRemover, which uses S itself
    instead of bands.
    """
    from fairlearn.preprocessing import CorrelationRemover

    columns = encoded_columns(task.table)
    encoded = pd.DataFrame(columns).add_prefix("x").assign(s=task.table.s)

    def remove(train: np.ndarray, share: float) -> np.ndarray:
        remover = CorrelationRemover(sensitive_feature_ids=["s"], alpha=share)
        return np.asarray(remover.fit(encoded.iloc[train]).transform(encoded))

    return on_columns(task, REMOVER, remove)


def base_ways(base: Base, binary: bool) -> list[str]:
    """Return the units of a base; "plain" contains all methods that need only the regressions."""
    found = [*FIXED, BARYCENTRE]
    if isinstance(base, Network):
        found += [name for name in PENALTY_SETTINGS if binary or name != "fairret"]
    if isinstance(base, Splines):
        found.append(COSINES)
    if binary:
        found += [REWEIGHING, LINEAR_POST, OPTIMIZER, ERROR_PARITY]
        if not isinstance(base, Network):
            found.append(GRADIENT)
        if isinstance(base, Trees):
            found.append(FAIRGBM)
    return found


FIXED = ("plain", WITH_S, BAG, LEACE, REMOVER)
"""The methods without their own settings."""

WAYS = Choices(
    {
        "plain": plain,
        WITH_S: with_attribute,
        BAG: bag,
        LEACE: leace,
        REMOVER: correlation_remover,
        COSINES: cosines,
        REWEIGHING: reweighing,
        LINEAR_POST: linear_post,
        FAIRGBM: fairgbm,
        GRADIENT: exponentiated_gradient,
        OPTIMIZER: threshold_optimizer,
        ERROR_PARITY: error_parity,
        BARYCENTRE: barycentre,
        **{name: partial(penalized, name) for name in PENALTY_SETTINGS},
    }
)
"""The methods by name. They get a task and, unless they are fixed, the strengths of each trial."""


def path(task: Task, way: str, trials: Trials) -> Iterator[Point]:
    """Return the points of a method, for the given trials and their weights or shares."""
    points: Iterator[Point] = WAYS[way](task) if way in FIXED else WAYS[way](task, trials)
    return points
