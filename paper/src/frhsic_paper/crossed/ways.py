"""Ways to parity on a base model: paths of scores and decisions, from no constraint to the
strictest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, hstack
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import BinaryScores, Family, NumberScores, ScoreRanks
from frhsic.estimators.solution import Solution
from frhsic.parity import gdp, rank_gap
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
from frhsic_paper.crossed.rows import PARTS, SPLITS, Role, Rows, divide_rows, training_parts
from frhsic_paper.crossed.settings import POINTS, Setting, setting_values

SHARES = np.linspace(0, 1, POINTS)
"""Dials of the ways that have a natural range."""

WEIGHTS = (0.0, 0.3, 2.0, 10.0, 50.0, 300.0)
"""Weights of every trial of a penalty; the chosen trial gets `POINTS` weights of its own."""

Quantity = Literal["scores", "ranks", "decisions"]
"""What may be at parity, and is judged: for numbers, scores alone."""

Trials = Mapping[int, Sequence[float]]
"""The dials of each trial of a way."""

MOST_BANDS = 20
BANDS = (Setting("bands", 10.0, 2.0, MOST_BANDS, whole=True),)
OF_HSIC = (Setting("unit of z", 1.0, 0.1, 3.0), Setting("unit of s", 1.0, 0.2, 3.0))
RATE = Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2)

PENALTIES: dict[str, tuple[Setting, ...]] = {
    "frhsic": OF_HSIC,
    "frem": (Setting("unit of z", 1.0, 0.3, 10.0), Setting("gamma", 0.5, 0.03, 1.0)),
    "reg-gdp": (Setting("bandwidth of s", 0.2, 0.02, 0.8),),
    "adv": (RATE,),
    "mmd": BANDS,
    "laftr": (RATE, Setting("bins", 4.0, 2.0, 12.0, whole=True)),
    "dcor": (),
    "adv-text": (RATE,),
    "mmd-text": BANDS,
    "dcor-text": (),
    "hsic": OF_HSIC,
    "hgr-kde": (Setting("width of the kernel", 1.0, 0.3, 3.0),),
    "hgr-networks": (RATE,),
    "gedi": (Setting("degree", 3.0, 1.0, 5.0, whole=True),),
    "fairret": BANDS,
}
"""The paper's seven penalties, three of them as its text describes them, too, this library's own
and four of other authors, with settings.
"""

NONE = "none"
CONTRACTION = "contraction"
CLOSED_FORM = "closed form"
WITH_S = "closed form, with S"
BAG = "contraction of nine models"
LEACE = "LEACE"
REWEIGHING = "Reweighing"
LINEAR_POST = "LinearPost"
FAIRGBM = "FairGBM"
GRADIENT = "fairlearn ExponentiatedGradient"
OPTIMIZER = "fairlearn ThresholdOptimizer"
REMOVER = "fairlearn CorrelationRemover"
ERROR_PARITY = "error-parity"
BARYCENTRE = "Wasserstein barycentre"
COSINES = "cosines"

OWN_SETTINGS: dict[str, tuple[Setting, ...]] = {
    **PENALTIES,
    COSINES: (Setting("cosines", 8.0, 2.0, 16.0, whole=True),),
    REWEIGHING: BANDS,
    LINEAR_POST: BANDS,
    FAIRGBM: (*BANDS, Setting("learning rate of the multipliers", 0.1, 0.003, 3.0)),
    GRADIENT: BANDS,
    OPTIMIZER: BANDS,
    ERROR_PARITY: BANDS,
    BARYCENTRE: BANDS,
}
"""Settings of the ways that have any."""

USES_S = (WITH_S, OPTIMIZER, REMOVER, ERROR_PARITY, BARYCENTRE)
"""Ways that need the attribute of the rows that they predict."""

DECIDES = (LINEAR_POST, GRADIENT, OPTIMIZER, ERROR_PARITY)
"""Ways that give decisions and no scores."""

WEIGHTED = (*PENALTIES, COSINES)
"""Ways whose dial is a weight, which is refined for the chosen trial."""

SHARES_OF_GRADIENT = (0.0, 1 / 3, 2 / 3, 1.0)
"""Dials of ExponentiatedGradient, which fits the base up to a hundred times for each."""

ITERATIONS = 50
"""Iterations of ExponentiatedGradient at most; each fits up to two models."""

FAIRGBM_SLACK = 0.3
"""Difference of error rates that FairGBM may leave at the mildest point of its path."""

MODELS = 9
"""Models of the bag: one of y and eight functions of S are what the closed form has."""


RARE = 0.2
"""Base rate below which decisions are made at the base rate, and classes count alike."""


def decide(scores: np.ndarray, rate: float) -> np.ndarray:
    """Return decisions 0/1: at 1/2, or at the base rate where positives are rare."""
    return (scores > threshold_of(rate)).astype(float)


class Point(NamedTuple):
    """One point of a path, on the rows that a split does not train on: scores or decisions, and the
    quantity that it is for if it is only for one.
    """

    way: str
    trial: int
    dial: float
    split: int
    values: np.ndarray
    quantity: Quantity | None = None
    decided: bool = False


class Task(NamedTuple):
    """What a way is run on: a table, a base with its settings for y and for functions of S, tuning
    or test rows, and their number of splits.
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
    """Predictions of y or functions of S, (n, K): for training rows, from a model fitted without
    their part; for other rows, from a model fitted to all training rows.
    """

    train: np.ndarray
    others: np.ndarray


def regress(
    task: Task, table: Rows, values: Values, targets: Sequence[np.ndarray], binary: bool
) -> list[Regressed]:
    """Return predictions of the columns of the targets of each split, (n, K)."""
    fits = []
    for (train, others), own in zip(task.sets, targets):
        parts = training_parts(train)
        for j, part in enumerate(parts):
            rest = np.concatenate(parts[:j] + parts[j + 1 :])
            fits += [Fit(rest, part, column, binary) for column in own.T]
        fits += [Fit(train, others, column, binary) for column in own.T]
    found = iter(task.outputs(table, fits, values))
    result = []
    for own in targets:
        *parts, others = (np.column_stack([next(found) for _ in own.T]) for _ in range(PARTS + 1))
        result.append(Regressed(np.concatenate(parts), others))
    return result


def regress_y(task: Task, table: Rows) -> list[Regressed]:
    """Return predictions of y for each split."""
    targets = [table.y[:, None]] * len(task.sets)
    return regress(task, table, task.of_y, targets, table.binary)


def labelled_rows(task: Task, train: np.ndarray) -> LabelledRows:
    """Return training rows in the form that the library uses."""
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
    """Yield the path of the closed form for each quantity, with predictions from one model of y and
    one of each function of S.
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
            # the first trade-off within this share of the gap, or the one with the least
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
    """Yield the contracted mean of several models of y, as many as the closed form has for y and S,
    each fitted to rows drawn with replacement.
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
    """Yield the base on columns from which LEACE has erased all linear information about functions
    of S.
    """
    encoded = encoded_columns(task.table)

    def erase(train: np.ndarray, share: float) -> np.ndarray:
        functions = SensitiveBasis.fit(task.table.s[train])(task.table.s[train])
        return encoded - share * erased_part(encoded, encoded[train], functions)

    return on_columns(task, LEACE, erase)


def on_columns(
    task: Task, way: str, change: Callable[[np.ndarray, float], np.ndarray]
) -> Iterator[Point]:
    """Yield the base on changed columns: `change` gets the training rows and a share of the change,
    and returns the columns of all rows.
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
    """Return the columns with an indicator for each category and medians for missing numbers."""
    encoded = pd.get_dummies(categorical(table), columns=list(table.nominal), dtype=float)
    return encoded.fillna(encoded.median()).to_numpy(float)


def erased_part(x: np.ndarray, train: np.ndarray, functions: np.ndarray) -> np.ndarray:
    r"""Return what LEACE takes from rows, :math:`W^+ P W (x - \bar x)`, where W whitens x and P
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


def penalized(task: Task, method: str, trials: Trials) -> Iterator[Point]:
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


def bands_of(s: np.ndarray, number: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that maps values of s to bands with about equal numbers of rows."""
    edges = np.unique(np.quantile(s, np.arange(1, int(number)) / int(number)))
    return lambda values: np.searchsorted(edges, values)


def bands_with_both(s: np.ndarray, y: np.ndarray, number: float) -> Callable[..., np.ndarray]:
    """Return the bands of s; fewer bands if one would have rows of only one class, which raises an
    error in ThresholdOptimizer.

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


def reweighing(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield the base fitted with weights between 1 and those of Kamiran and Calders, which make y
    independent of the band of S.
    """
    fits = []
    about = []
    for trial, shares in trials.items():
        (number,) = setting_values(BANDS, trial)
        for split, (train, others) in enumerate(task.sets):
            s = task.table.s[train]
            weights = balancing_weights(bands_of(s, number)(s), task.table.y[train])
            for share in shares:
                fits.append(task.fit(train, others, 1 + share * (weights - 1)))
                about.append((trial, float(share), split))
    found = task.outputs(task.table, fits, task.of_y)
    for (trial, share, split), scores in zip(about, found):
        yield Point(REWEIGHING, trial, share, split, scores)


def balancing_weights(band: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return P(band) P(y) / P(band, y) of each row.

    Examples
    --------
    >>> balancing_weights(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])).round(3).tolist()
    [0.75, 0.75, 1.5, 0.5]
    """
    frame = pd.DataFrame({"band": band, "y": y})
    sizes = [frame.groupby(by)["y"].transform("size") for by in ("band", "y", ["band", "y"])]
    return (sizes[0] * sizes[1] / sizes[2] / len(frame)).to_numpy(float)


def linear_post(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield LinearPost of Xian and Zhao (2024) on bands of S: a linear program for decisions, given
    the probabilities of y and of each band, and its rule for new rows.
    """
    table = task.table
    etas = regress_y(task, table)
    for trial, shares in trials.items():
        (number,) = setting_values(BANDS, trial)
        targets = []
        for train, _ in task.sets:
            band = bands_of(table.s[train], number)(table.s)
            targets.append((band[:, None] == np.unique(band[train])).astype(float))
        chances = regress(task, table, task.of_s, targets, binary=False)
        for split, (train, _) in enumerate(task.sets):
            share_of_band = targets[split][train].mean(axis=0)
            columns, new = (np.clip(p, 0, 1) / share_of_band for p in chances[split])
            eta, eta_new = (p[:, 0] for p in etas[split])
            threshold = threshold_of(float(table.y[train].mean()))
            free = (eta > threshold).astype(float) @ columns / len(eta)
            for share in shares:
                slope = linear_rule(eta - threshold, columns, (1 - share) * float(np.ptp(free)))
                taken = (eta_new - threshold > new @ slope).astype(float)
                yield decided(LINEAR_POST, trial, share, split, taken)


def threshold_of(rate: float) -> float:
    """Return the threshold of decisions: 1/2, or the base rate where positives are rare."""
    return rate if rate < RARE else 0.5


def linear_rule(gain: np.ndarray, columns: np.ndarray, most: float) -> np.ndarray:
    """Return the multipliers c of the linear program that maximizes the mean gain of decisions
    h in [0, 1] while the means of h times each column differ by at most some number; h is 1 where
    the gain exceeds columns times c.
    """
    n, k = columns.shape
    means = columns.T / n
    # h, and the least of the means
    above = np.hstack([means, -np.ones((k, 1))])
    program = linprog(
        np.append(-gain / n, 0.0),
        A_ub=np.vstack([above, -above]),
        b_ub=np.concatenate([np.full(k, most), np.zeros(k)]),
        bounds=[(0, 1)] * n + [(None, None)],
        method="highs",
    )
    marginals = np.asarray(program.ineqlin.marginals)
    slope: np.ndarray = marginals[k:] - marginals[:k]
    return slope


def decided(way: str, trial: int, dial: float, split: int, chances: np.ndarray) -> Point:
    """Return a point of decisions, or of their probabilities."""
    return Point(way, trial, float(dial), split, chances, "decisions", decided=True)


def fairgbm(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield FairGBM (Cruz and others 2023) on bands of S, with the settings of the base. Its
    constraints are equal false positive and false negative rates; it has no constraint for parity.
    """
    import fairgbm as package

    codes = task.table.X.to_numpy(float)
    nominal = [task.table.X.columns.get_loc(name) for name in task.table.nominal]
    rate, leaves, least = task.of_y
    shared = {
        "objective": "constrained_cross_entropy",
        "constraint_type": "FPR,FNR",
        "constraint_stepwise_proxy": "cross_entropy",
        "learning_rate": rate,
        "num_leaves": int(leaves),
        "min_data_in_leaf": int(least),
        "num_threads": 1,
        "seed": 0,
        "verbose": -1,
    }
    for trial, shares in trials.items():
        number, step = setting_values(OWN_SETTINGS[FAIRGBM], trial)
        for split, (train, others) in enumerate(task.sets):
            y = task.table.y[train]
            band = bands_with_both(task.table.s[train], y, number)(task.table.s[train])
            for share in shares:
                slack = FAIRGBM_SLACK * (1 - share)
                rows = package.Dataset(
                    codes[train], label=y, constraint_group=band, categorical_feature=nominal
                )
                own = {
                    "multiplier_learning_rate": step,
                    "constraint_fpr_tolerance": slack,
                    "constraint_fnr_tolerance": slack,
                }
                scores = package.train(shared | own, rows, 100).predict(codes[others])
                yield Point(FAIRGBM, trial, float(share), split, scores)


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


def exponentiated_gradient(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield fairlearn's ExponentiatedGradient on bands of S: randomized decisions, no scores."""
    each = (delayed(_gradient_on)(task, trials, split) for split in range(len(task.sets)))
    for points in Parallel(n_jobs=5, prefer="threads")(each):
        yield from points


def _gradient_on(task: Task, trials: Trials, split: int) -> list[Point]:
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
    for trial, shares in trials.items():
        (number,) = setting_values(BANDS, trial)
        band = bands_of(task.table.s[train], number)(task.table.s[train])
        largest = float((decisions.groupby(band).mean() - decisions.mean()).abs().max())
        for share in shares:
            chances = free
            if share > 0:
                bound = DemographicParity(difference_bound=(1 - 0.99 * share) * largest)
                search = ExponentiatedGradient(
                    model, bound, objective=ErrorRate(costs=errors), max_iter=ITERATIONS
                ).fit(rows, y, sensitive_features=band)
                chances = search._pmf_predict(new)[:, 1]
            points.append(decided(GRADIENT, trial, share, split, chances))
    return points


# With S


def with_attribute(task: Task) -> Iterator[Point]:
    """Yield the closed form whose models may use S."""
    table = task.table
    etas = regress_y(task, table.with_attribute())
    for split, (train, others) in enumerate(task.sets):
        rows = labelled_rows(task, train)
        constraint = Constraint.fit(rows, 0, "all")
        known = Regressed(constraint.functions(rows.s), constraint.functions(table.s[others, None]))
        yield from solved(rows, constraint, etas[split], known, split, True)


class Known(ClassifierMixin, BaseEstimator):
    """Known scores in the form of a fitted classifier."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Known:
        """Do nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the scores, which are the only column of X."""
        f = np.asarray(X)[:, 0]
        return np.column_stack([1 - f, f])


def threshold_optimizer(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield fairlearn's ThresholdOptimizer on bands of S, from out-of-fold scores of training rows;
    it returns only decisions.
    """
    from fairlearn.postprocessing import ThresholdOptimizer

    table = task.table
    etas = regress_y(task, table.with_attribute())
    for split, (train, others) in enumerate(task.sets):
        y = table.y[train].astype(int)
        f = etas[split].train
        rate = float(y.mean())
        objective = "balanced_accuracy_score" if rate < RARE else "accuracy_score"
        for trial, shares in trials.items():
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
                chances = optimizer._pmf_predict(
                    etas[split].others, sensitive_features=band(table.s[others])
                )[:, 1]
                yield decided(OPTIMIZER, trial, share, split, chances)


def error_parity(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield thresholds by band as Cruz and Hardt (2024) choose them: a convex program over the
    points of the ROC curves, whose solution is a random choice between thresholds.
    """
    table = task.table
    etas = regress_y(task, table.with_attribute())
    for split, (train, others) in enumerate(task.sets):
        y = table.y[train]
        f = etas[split].train[:, 0]
        threshold = threshold_of(float(y.mean()))
        for trial, shares in trials.items():
            bands = bands_of(table.s[train], setting_values(BANDS, trial)[0])
            band, new = bands(table.s[train]), bands(table.s[others])
            free = pd.Series(f > threshold).groupby(band).mean()
            for share in shares:
                most = (1 - share) * float(free.max() - free.min())
                rules = randomised_thresholds(f, y - threshold, band, most)
                chances = np.zeros(len(others))
                for number, (thresholds, weights) in rules.items():
                    own = new == number
                    above = etas[split].others[own] > thresholds
                    chances[own] = above @ weights
                yield decided(ERROR_PARITY, trial, share, split, chances)


def randomised_thresholds(
    f: np.ndarray, gain: np.ndarray, band: np.ndarray, most: float
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return for each band thresholds and their probabilities that maximize the gain over all rows,
    among those whose rates of positive decisions differ by at most some number.
    """
    rules = {}
    rates = []
    gains = []
    for number in np.unique(band):
        own = band == number
        thresholds = np.quantile(f[own], np.linspace(0, 1, 101))
        thresholds[0] = -np.inf
        above = f[own, None] > thresholds
        rates.append(above.mean(axis=0)[None])
        gains.append(gain[own] @ above / len(f))
        rules[int(number)] = thresholds
    count, each = len(rules), len(gains[0])
    rate = block_diag(rates)
    least = csr_array(np.ones((count, 1)))
    program = linprog(
        np.append(-np.concatenate(gains), 0.0),
        A_ub=np.vstack([hstack([rate, -least]).toarray(), hstack([-rate, least]).toarray()]),
        b_ub=np.concatenate([np.full(count, most), np.zeros(count)]),
        A_eq=np.hstack([np.kron(np.eye(count), np.ones(each)), np.zeros((count, 1))]),
        b_eq=np.ones(count),
        bounds=[(0, None)] * (count * each) + [(None, None)],
        method="highs",
    )
    weights = program.x[:-1].reshape(count, each)
    return {number: (rules[number], own) for number, own in zip(rules, weights)}


def barycentre(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield scores moved to the Wasserstein barycentre of bands of S (Chzhen and others 2020): each
    becomes the mean of the quantiles of all bands at its rank in its own band.
    """
    table = task.table
    etas = regress_y(task, table.with_attribute())
    for split, (train, others) in enumerate(task.sets):
        for trial, shares in trials.items():
            bands = bands_of(table.s[train], setting_values(BANDS, trial)[0])
            f = etas[split].others[:, 0]
            moved = to_barycentre(
                etas[split].train[:, 0], bands(table.s[train]), f, bands(table.s[others])
            )
            for share in shares:
                scores = (1 - share) * f + share * moved
                yield Point(BARYCENTRE, trial, float(share), split, scores)


def to_barycentre(
    known: np.ndarray, band: np.ndarray, f: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Return new scores moved to the barycentre of the bands, given known scores of each band.

    Examples
    --------
    >>> known, band = np.array([0.0, 1.0, 4.0, 5.0]), np.array([0, 0, 1, 1])
    >>> to_barycentre(known, band, known, band).tolist()
    [2.0, 3.0, 2.0, 3.0]
    """
    ordered = {number: np.sort(known[band == number]) for number in np.unique(band)}
    moved = np.empty(len(f))
    for number, own in ordered.items():
        rows = new == number
        rank = np.interp(f[rows], own, np.linspace(0, 1, len(own)))
        moved[rows] = sum(
            len(one) / len(known) * np.quantile(one, rank) for one in ordered.values()
        )
    return moved


def correlation_remover(task: Task) -> Iterator[Point]:
    """Yield the base on the columns of fairlearn's CorrelationRemover, which uses S itself instead
    of bands.
    """
    from fairlearn.preprocessing import CorrelationRemover

    columns = encoded_columns(task.table)
    encoded = pd.DataFrame(columns).add_prefix("x").assign(s=task.table.s)

    def remove(train: np.ndarray, share: float) -> np.ndarray:
        remover = CorrelationRemover(sensitive_feature_ids=["s"], alpha=share)
        return np.asarray(remover.fit(encoded.iloc[train]).transform(encoded))

    return on_columns(task, REMOVER, remove)


def base_ways(base: Base, binary: bool) -> list[str]:
    """Return the units of a base; "plain" contains all ways that need only the regressions."""
    found = [*FIXED, BARYCENTRE]
    if isinstance(base, Network):
        found += [name for name in PENALTIES if binary or name != "fairret"]
    if isinstance(base, Splines):
        found.append(COSINES)
    if binary:
        found += [REWEIGHING, LINEAR_POST, OPTIMIZER, ERROR_PARITY]
        if not isinstance(base, Network):
            found.append(GRADIENT)
        if isinstance(base, Trees):
            found.append(FAIRGBM)
    return found


FIXED = {
    "plain": plain,
    WITH_S: with_attribute,
    BAG: bag,
    LEACE: leace,
    REMOVER: correlation_remover,
}
"""What is run without settings of its own."""

SEARCHED = {
    COSINES: cosines,
    REWEIGHING: reweighing,
    LINEAR_POST: linear_post,
    FAIRGBM: fairgbm,
    GRADIENT: exponentiated_gradient,
    OPTIMIZER: threshold_optimizer,
    ERROR_PARITY: error_parity,
    BARYCENTRE: barycentre,
}
"""What is run for some trials with their dials."""


def path(task: Task, way: str, trials: Trials) -> Iterator[Point]:
    """Return the points of a way, for some trials with their weights or shares."""
    if way in FIXED:
        return FIXED[way](task)
    if way in PENALTIES:
        return penalized(task, way, trials)
    return SEARCHED[way](task, trials)
