"""Ways to parity on a base: paths of scores and decisions from no constraint to the strictest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import BinaryScores, Family, NumberScores
from frhsic.estimators.solution import Solution
from frhsic_paper.crossed.bases import (
    Base,
    Fit,
    Network,
    SplineDesign,
    Splines,
    Trees,
    Values,
    categorical,
    ridge_fit,
)
from frhsic_paper.crossed.rows import SPLITS, Role, Rows, divide_rows, training_parts
from frhsic_paper.crossed.settings import POINTS, Setting, setting_values

SHARES = np.linspace(0, 1, POINTS)
"""Dials of the ways that have a natural range."""

WEIGHTS = (0.0, 0.3, 2.0, 10.0, 50.0, 300.0)
"""Weights of every trial of a penalty; the chosen trial gets `POINTS` weights of its own."""

BANDS = (Setting("bands", 10.0, 2.0, 20.0, whole=True),)
OF_HSIC = (Setting("unit of z", 1.0, 0.1, 3.0), Setting("unit of s", 1.0, 0.2, 3.0))
RATE = Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2)

PENALTIES: dict[str, tuple[Setting, ...]] = {
    "frhsic": OF_HSIC,
    "frem": (Setting("unit of z", 1.0, 0.3, 10.0), Setting("gamma", 0.5, 0.03, 1.0)),
    "reg-gdp": (Setting("bandwidth of s", 0.2, 0.02, 0.8),),
    "adv": (RATE,),
    "mmd": (Setting("bins", 10.0, 2.0, 20.0, whole=True),),
    "laftr": (RATE, Setting("bins", 4.0, 2.0, 12.0, whole=True)),
    "dcor": (),
    "hsic": OF_HSIC,
}
"""The paper's seven penalties and this library's own, with their settings."""

NONE = "none"
NONE_AVERAGED = "none, mean of five"
CONTRACTION = "contraction"
CLOSED_FORM = "closed form"
DECISIONS = "closed form, decisions"
AVERAGED = "closed form, mean of five"
WITH_S = "closed form, with S"
DECISIONS_WITH_S = "closed form, with S, decisions"
REWEIGHING = "AIF360 Reweighing"
GRADIENT = "fairlearn ExponentiatedGradient"
OPTIMIZER = "fairlearn ThresholdOptimizer"
REMOVER = "fairlearn CorrelationRemover"
COSINES = "cosines"

OWN_SETTINGS: dict[str, tuple[Setting, ...]] = {
    **PENALTIES,
    COSINES: (Setting("cosines", 8.0, 2.0, 16.0, whole=True),),
    REWEIGHING: BANDS,
    GRADIENT: BANDS,
    OPTIMIZER: BANDS,
}
"""Settings of the ways that have any."""

USES_S = (WITH_S, DECISIONS_WITH_S, OPTIMIZER, REMOVER)
"""Ways that need the attribute of the rows that they predict."""

WEIGHTED = (*PENALTIES, COSINES)
"""Ways whose dial is a weight, which is refined for the chosen trial."""


RARE = 0.2
"""Base rate below which decisions are made at the base rate, and classes count alike."""


def decide(scores: np.ndarray, rate: float) -> np.ndarray:
    """Return decisions 0/1: at 1/2, or at the base rate where positives are rare."""
    return (scores > (rate if rate < RARE else 0.5)).astype(float)


class Point(NamedTuple):
    """One point of a path on the rows that a split does not train on: scores, decisions or both."""

    way: str
    trial: int
    dial: float
    split: int
    scores: np.ndarray | None
    decisions: np.ndarray | None = None


class Task(NamedTuple):
    """What a way is run on: a table, a base with its settings for y and for functions of S, rows
    that tune or test, and how many splits of them.
    """

    table: Rows
    base: Base
    of_y: Values
    of_s: Values
    role: Role
    device: str
    splits: int | None = None
    epochs: int | None = None

    @property
    def sets(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Training rows and other rows of each split."""
        count = self.splits or SPLITS[self.role]
        return [divide_rows(len(self.table.y), self.role, split) for split in range(count)]

    def outputs(self, table: Rows, fits: Sequence[Fit], values: Values) -> list[np.ndarray]:
        """Return predictions of the base."""
        if isinstance(self.base, Network):
            return self.base.outputs(table, fits, values, self.device, self.epochs)
        return self.base.outputs(table, fits, values, self.device)

    def fit(self, train: np.ndarray, others: np.ndarray, weights: Any = None) -> Fit:
        """Return the regression of y."""
        return Fit(train, others, self.table.y, self.table.binary, weights)

    def base_losses(self) -> dict[str, float]:
        """Return the mean loss of the base for y, and for the functions of S, on the other rows."""
        table = self.table
        of_y = self.outputs(table, [self.fit(*rows) for rows in self.sets], self.of_y)
        losses = []
        for (_, others), f in zip(self.sets, of_y):
            y = table.y[others]
            if table.binary:
                p = np.clip(f, 1e-6, 1 - 1e-6)
                losses.append(-np.mean(np.log(np.where(y == 1, p, 1 - p))))
            else:
                losses.append(np.mean((f - y) ** 2))
        fits = [
            Fit(train, others, column, False)
            for train, others in self.sets
            for column in SensitiveBasis.fit(table.s[train])(table.s).T
        ]
        of_s = self.outputs(table, fits, self.of_s)
        squares = [np.mean((f - fit.target[fit.others]) ** 2) for f, fit in zip(of_s, fits)]
        return {"y": float(np.mean(losses)), "s": float(np.mean(squares))}


# Without S


class Regressed(NamedTuple):
    """Predictions of y or functions of S: of training rows by a model without their part, of the
    other rows by a model of all training rows, and of these by the models without each part.
    """

    train: np.ndarray
    others: np.ndarray
    by_part: list[np.ndarray]


def regress(
    task: Task, table: Rows, values: Values, targets: Sequence[np.ndarray], binary: bool
) -> list[Regressed]:
    """Return predictions of the columns of the targets of each split, (n, K)."""
    fits = []
    for (train, others), own in zip(task.sets, targets):
        parts = training_parts(train)
        for j in range(len(parts)):
            rest = np.concatenate(parts[:j] + parts[j + 1 :])
            both = np.concatenate([parts[j], others])
            fits += [Fit(rest, both, column, binary) for column in own.T]
        fits += [Fit(train, others, column, binary) for column in own.T]
    found = iter(task.outputs(table, fits, values))
    result = []
    for (train, _), own in zip(task.sets, targets):
        parts = training_parts(train)
        blocks = [np.column_stack([next(found) for _ in own.T]) for _ in range(len(parts) + 1)]
        size = len(parts[0])
        result.append(
            Regressed(
                np.concatenate([block[:size] for block in blocks[:-1]]),
                blocks[-1],
                [block[size:] for block in blocks[:-1]],
            )
        )
    return result


def labelled_rows(task: Task, train: np.ndarray) -> LabelledRows:
    """Return training rows as the library holds them."""
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
    """Yield the base without constraint, contracted, and under the closed form."""
    table = task.table
    count = len(task.sets)
    etas = regress(task, table, task.of_y, [table.y[:, None]] * count, table.binary)
    rows = [labelled_rows(task, train) for train, _ in task.sets]
    constraints = [Constraint.fit(one, 0, "all") for one in rows]
    functions = [one.functions(table.s[:, None]) for one in constraints]
    means = regress(task, table, task.of_s, functions, binary=False)
    for split in range(count):
        f = etas[split].others[:, 0]
        yield Point(NONE, 0, 0.0, split, f)
        averaged = np.mean([one[:, 0] for one in etas[split].by_part], axis=0)
        yield Point(NONE_AVERAGED, 0, 0.0, split, averaged)
        center = rows[split].y.mean()
        for share in SHARES:
            yield Point(CONTRACTION, 0, share, split, center + (1 - share) * (f - center))
        families: list[Family] = [BinaryScores(), Decisions()] if table.binary else [NumberScores()]
        for family, way in zip(families, (CLOSED_FORM, DECISIONS)):
            one = etas[split], means[split]
            yield from solved(family, rows[split], constraints[split], *one, split, way)


def solved(
    family: Family,
    rows: LabelledRows,
    constraint: Constraint,
    eta: Regressed,
    means: Regressed,
    split: int,
    way: str,
) -> Iterator[Point]:
    """Yield the path of the closed form, served by one model of y and one of S, and as the mean of
    five, which is how the library serves it.
    """
    f = eta.train[:, 0]
    solution = Solution.fit(family, rows, (constraint,), f, means.train, {"s": ()})
    mean = replace(solution, parameters=solution.parameters.mean(axis=1, keepdims=True))
    for place in places(solution):
        one = mean.scores(place, 0, eta.others[:, 0], means.others)
        yield point(way, place, split, one, solution)
        if eta.by_part and way == CLOSED_FORM:
            parts = enumerate(zip(eta.by_part, means.by_part))
            all_five = [solution.scores(place, fold, e[:, 0], m) for fold, (e, m) in parts]
            yield point(AVERAGED, place, split, np.mean(all_five, axis=0), solution)


def places(solution: Solution) -> list[int]:
    """Return the trade-offs that are shown."""
    return [round(place) for place in np.linspace(0, len(solution.parameters) - 1, POINTS)]


def point(way: str, dial: float, split: int, f: np.ndarray, solution: Solution) -> Point:
    """Return a point of the closed form: scores, or decisions."""
    if solution.family.decides:
        return Point(way, 0, dial, split, None, (f > solution.units.threshold).astype(float))
    return Point(way, 0, dial, split, f)


def penalized(task: Task, method: str, trials: dict[int, Sequence[float]]) -> Iterator[Point]:
    """Yield the paths of a penalty on a network, for some trials with their weights."""
    assert isinstance(task.base, Network)
    fits = [task.fit(*rows) for rows in task.sets]
    runs = [
        (split, trial, w, setting_values(PENALTIES[method], trial))
        for trial, weights in trials.items()
        for split in range(len(fits))
        for w in weights
    ]
    found = task.base.penalized(task.table, method, fits, runs, task.of_y, task.device, task.epochs)
    for (split, trial, w, _), scores in zip(runs, found):
        yield Point(method, trial, w, split, scores)


def cosines(task: Task, trials: dict[int, Sequence[float]]) -> Iterator[Point]:
    """Yield additive splines whose scores have small covariances with cosines of the rank of S, in
    the spirit of Pérez-Suay and others (2017); the problem is convex.
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


def bands_of(s: np.ndarray, number: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that gives the band of values of s; the bands have about equal numbers of
    rows.
    """
    edges = np.unique(np.quantile(s, np.arange(1, int(number)) / int(number)))
    return lambda values: np.searchsorted(edges, values)


def bands_with_both(s: np.ndarray, y: np.ndarray, number: float) -> Callable[..., np.ndarray]:
    """Return the bands of s, fewer of them if one would have rows of a single class, which
    ThresholdOptimizer refuses.

    Examples
    --------
    >>> s, y = np.arange(8.0), np.array([1, 0, 0, 1, 0, 1, 1, 1])
    >>> bands_with_both(s, y, 4)(s).tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    for fewer in range(int(number), 1, -1):
        band = bands_of(s, fewer)
        if pd.Series(y).groupby(band(s)).nunique().min() == 2:
            return band
    return bands_of(s, 1)


def reweighing(task: Task, trials: Iterable[int], shares: Sequence[float]) -> Iterator[Point]:
    """Yield the base with a share of the weights of AIF360's Reweighing, which make y independent
    of the band of S.
    """
    from aif360.sklearn.preprocessing import Reweighing

    fits = []
    about = []
    for trial in trials:
        (number,) = setting_values(BANDS, trial)
        for split, (train, others) in enumerate(task.sets):
            s = task.table.s[train]
            index = pd.Index(bands_of(s, number)(s), name="band")
            empty = pd.DataFrame({"x": np.zeros(len(train))}, index)
            y = pd.Series(task.table.y[train], index)
            _, weights = Reweighing("band").fit_transform(empty, y)
            for share in shares:
                fits.append(task.fit(train, others, 1 + share * (np.asarray(weights) - 1)))
                about.append((trial, float(share), split))
    found = task.outputs(task.table, fits, task.of_y)
    for (trial, share, split), scores in zip(about, found):
        yield Point(REWEIGHING, trial, share, split, scores)


class RidgeDecision(ClassifierMixin, BaseEstimator):
    """Additive splines as a classifier that fairlearn can fit; X are the columns of the splines."""

    def __init__(self, ridge: float = 1e-3) -> None:
        self.ridge = ridge

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeDecision:
        """Fit the coefficients."""
        y = np.asarray(y, dtype=float)
        self.classes_ = np.array([0, 1])
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self.coefficients_ = ridge_fit(np.asarray(X), y, True, self.ridge, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities."""
        p = expit(np.asarray(X) @ self.coefficients_)
        return np.column_stack([1 - p, p])

    def predict(self, X: Any) -> np.ndarray:
        """Return decisions at 1/2."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def exponentiated_gradient(
    task: Task, trials: Iterable[int], shares: Sequence[float]
) -> Iterator[Point]:
    """Yield fairlearn's ExponentiatedGradient on bands of S: randomised decisions, no scores."""
    each = (delayed(_gradient_on)(task, trials, shares, split) for split in range(len(task.sets)))
    for points in Parallel(n_jobs=5, prefer="threads")(each):
        yield from points


def _gradient_on(
    task: Task, trials: Iterable[int], shares: Sequence[float], split: int
) -> list[Point]:
    from fairlearn.reductions import DemographicParity, ErrorRate, ExponentiatedGradient

    train, others = task.sets[split]
    if isinstance(task.base, Splines):
        design = SplineDesign(task.table, train, int(task.of_y[0]))
        rows = design.training
        new = design(others)
        model: Any = RidgeDecision(task.of_y[1])
    else:
        assert isinstance(task.base, Trees)
        codes = task.table.X
        rows = codes.iloc[train].to_numpy()
        new = codes.iloc[others].to_numpy()
        nominal = [codes.columns.get_loc(name) for name in task.table.nominal]
        model = task.base.model(True, task.of_y).set_params(categorical_feature=nominal)
    y = task.table.y[train].astype(int)
    rate = float(y.mean())
    errors = {"fp": rate, "fn": 1 - rate} if rate < RARE else {"fp": 1.0, "fn": 1.0}
    alone = model.fit(rows, y).predict_proba(rows)[:, 1]
    decisions = pd.Series(decide(alone, rate))
    free = decide(model.predict_proba(new)[:, 1], rate)
    points = []
    for trial in trials:
        (number,) = setting_values(BANDS, trial)
        band = bands_of(task.table.s[train], number)(task.table.s[train])
        largest = float((decisions.groupby(band).mean() - decisions.mean()).abs().max())
        for share in shares:
            chances = free
            if share > 0:
                bound = DemographicParity(difference_bound=(1 - 0.99 * share) * largest)
                search = ExponentiatedGradient(
                    model, bound, objective=ErrorRate(costs=errors), max_iter=20
                ).fit(rows, y, sensitive_features=band)
                chances = search._pmf_predict(new)[:, 1]
            points.append(Point(GRADIENT, trial, float(share), split, None, chances))
    return points


# With S


def with_attribute(task: Task) -> Iterator[Point]:
    """Yield the closed form whose models may use S."""
    table = task.table
    etas = regress(
        task,
        table.with_attribute(),
        task.of_y,
        [table.y[:, None]] * len(task.sets),
        table.binary,
    )
    for split, (train, others) in enumerate(task.sets):
        rows = labelled_rows(task, train)
        constraint = Constraint.fit(rows, 0, "all")
        eta = etas[split]._replace(by_part=[])
        known = Regressed(
            constraint.functions(rows.s), constraint.functions(table.s[others, None]), []
        )
        family = BinaryScores() if table.binary else NumberScores()
        yield from solved(family, rows, constraint, eta, known, split, WITH_S)
        if table.binary:
            yield from solved(Decisions(), rows, constraint, eta, known, split, DECISIONS_WITH_S)


class Known(ClassifierMixin, BaseEstimator):
    """Scores that are computed already, in the form of a fitted classifier."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Known:
        """Do nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the scores, which are the only column of X."""
        f = np.asarray(X)[:, 0]
        return np.column_stack([1 - f, f])


def threshold_optimizer(
    task: Task, trials: Iterable[int], shares: Sequence[float]
) -> Iterator[Point]:
    """Yield fairlearn's ThresholdOptimizer on bands of S, by scores of training rows from models
    that have not seen them; it gives decisions only.
    """
    from fairlearn.postprocessing import ThresholdOptimizer

    table = task.table
    targets = [table.y[:, None]] * len(task.sets)
    etas = regress(task, table.with_attribute(), task.of_y, targets, table.binary)
    for split, (train, others) in enumerate(task.sets):
        y = table.y[train].astype(int)
        f = etas[split].train
        rate = float(y.mean())
        objective = "balanced_accuracy_score" if rate < RARE else "accuracy_score"
        for trial in trials:
            band = bands_with_both(table.s[train], y, setting_values(BANDS, trial)[0])
            rates = pd.Series(decide(f[:, 0], rate)).groupby(band(table.s[train])).mean()
            for share in shares:
                optimizer = ThresholdOptimizer(
                    estimator=Known(),
                    prefit=True,
                    predict_method="predict_proba",
                    objective=objective,
                    tol=(1 - share) * float(rates.max() - rates.min()),
                ).fit(f, y, sensitive_features=band(table.s[train]))
                decisions = optimizer._pmf_predict(
                    etas[split].others, sensitive_features=band(table.s[others])
                )[:, 1]
                yield Point(OPTIMIZER, trial, float(share), split, None, decisions)


def correlation_remover(task: Task, shares: Sequence[float]) -> Iterator[Point]:
    """Yield the base on the columns of fairlearn's CorrelationRemover, which takes S as it is."""
    from fairlearn.preprocessing import CorrelationRemover

    table = task.table
    encoded = pd.get_dummies(categorical(table), columns=list(table.nominal), dtype=float)
    encoded = encoded.fillna(encoded.median()).assign(s=table.s)
    for split, (train, others) in enumerate(task.sets):
        for share in shares:
            remover = CorrelationRemover(sensitive_feature_ids=["s"], alpha=float(share))
            remover.fit(encoded.iloc[train])
            moved = pd.DataFrame(remover.transform(encoded))
            moved.columns = [f"x{j}" for j in range(moved.shape[1])]
            rows = table._replace(X=moved, nominal=())
            (scores,) = task.outputs(rows, [task.fit(train, others)], task.of_y)
            yield Point(REMOVER, 0, float(share), split, scores)


def base_ways(base: Base, binary: bool) -> list[str]:
    """Return the units of a base: "plain" is all that needs the regressions alone."""
    found = ["plain", WITH_S, REMOVER]
    if isinstance(base, Network):
        found += PENALTIES
    if isinstance(base, Splines):
        found.append(COSINES)
    if binary:
        found += [REWEIGHING, OPTIMIZER]
        if not isinstance(base, Network):
            found.append(GRADIENT)
    return found


def path(task: Task, way: str, trials: dict[int, Sequence[float]]) -> Iterator[Point]:
    """Return the points of a way, for some trials with their weights or shares."""
    shares = next(iter(trials.values()))
    if way == "plain":
        return plain(task)
    if way == WITH_S:
        return with_attribute(task)
    if way == REMOVER:
        return correlation_remover(task, shares)
    if way in PENALTIES:
        return penalized(task, way, trials)
    if way == COSINES:
        return cosines(task, trials)
    libraries = {
        REWEIGHING: reweighing,
        GRADIENT: exponentiated_gradient,
        OPTIMIZER: threshold_optimizer,
    }
    return libraries[way](task, trials, shares)
