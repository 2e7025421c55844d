"""Methods that use bands of S, most of them by other authors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, hstack
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from frhsic_paper.crossed.bases import SplineDesign, Splines, Trees, ridge_fit
from frhsic_paper.crossed.settings import (
    BANDS,
    BARYCENTRE,
    ERROR_PARITY,
    FAIRGBM,
    FAIRGBM_SLACK,
    GRADIENT,
    ITERATIONS,
    LINEAR_POST,
    OPTIMIZER,
    OWN_SETTINGS,
    REWEIGHING,
    Trials,
    setting_values,
)
from frhsic_paper.crossed.task import (
    RARE,
    Point,
    Task,
    decide,
    decided,
    regress,
    regress_y,
    threshold_of,
)


def bands_of(s: np.ndarray, number: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that maps values of s to bands with about equal numbers of rows."""
    edges = np.unique(np.quantile(s, np.arange(1, int(number)) / int(number)))
    return lambda values: np.searchsorted(edges, values)


def bands_with_both(s: np.ndarray, y: np.ndarray, number: float) -> Callable[..., np.ndarray]:
    """Return the bands of s. There are fewer bands if a band would have rows of only one class, for
    which ThresholdOptimizer raises an error.

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
    """Yield the base model, fitted with weights between 1 and those of Kamiran and Calders, which
    make y independent of the band of S.
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
    """Return P(band) P(y) / P(band, y) for each row.

    Examples
    --------
    >>> balancing_weights(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])).round(3).tolist()
    [0.75, 0.75, 1.5, 0.5]
    """
    frame = pd.DataFrame({"band": band, "y": y})
    sizes = [frame.groupby(by)["y"].transform("size") for by in ("band", "y", ["band", "y"])]
    return (sizes[0] * sizes[1] / sizes[2] / len(frame)).to_numpy(float)


def linear_post(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield LinearPost (Xian and Zhao 2024) on bands of S: a linear program for decisions, given
    the probabilities of y and of each band, and the resulting rule for new rows.
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


def linear_rule(gain: np.ndarray, columns: np.ndarray, most: float) -> np.ndarray:
    """Return the multipliers c of a linear program that maximizes the mean gain of decisions h in
    [0, 1] while the means of h times each column differ by at most a tolerance; h is 1 if the gain
    exceeds columns times c.
    """
    n, k = columns.shape
    means = columns.T / n
    # h, and the smallest of the means
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


def fairgbm(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield FairGBM (Cruz and others 2023) on bands of S, with the settings of the base model. Its
    constraints are equal false positive and false negative rates; it has no parity constraint.
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
    """Additive splines as a classifier that fairlearn can fit; X contains the spline columns."""

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


class Known(ClassifierMixin, BaseEstimator):
    """Known scores with the interface of a fitted classifier."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Known:
        """Do nothing."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the scores, the only column of X."""
        f = np.asarray(X)[:, 0]
        return np.column_stack([1 - f, f])


def threshold_optimizer(task: Task, trials: Trials) -> Iterator[Point]:
    """Yield fairlearn's ThresholdOptimizer on bands of S, fitted to out-of-fold scores of the
    training rows; it returns only decisions.
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
    """Yield thresholds by band, as in Cruz and Hardt (2024): a convex program over the points of
    the ROC curves, whose solution is a random choice between thresholds.
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
    """Return, for each band, thresholds and their probabilities that maximize the gain over all
    rows while the rates of positive decisions differ by at most a tolerance.
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
    """Yield scores moved to the Wasserstein barycentre of the bands of S (Chzhen and others 2020):
    each is replaced with the mean, over all bands, of the quantiles at its rank in its own band.
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
    """Move new scores to the barycentre of the bands, given known scores for each band.

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
