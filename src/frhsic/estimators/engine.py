r"""All regressions of a fit at once: each target is predicted from a table, with one model per fold
that is fitted on the other folds.

.. math:: f(x) = w \Bigl(b + \sum_j h_j(x_j)\Bigr) + (1 - w) \, t(x)

on the scale of log-odds, log-probabilities or numbers. The additive part (:mod:`.additive`)
captures smooth effects even with few rows. The boosted trees t, fitted by LightGBM, capture
interactions and jumps. The ridge, the number of trees and the share w are chosen once for each
target, by the loss on the held-out rows of all folds together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np

from frhsic._threads import thread_count
from frhsic.estimators.additive import (
    RIDGE_GRID,
    AdditivePart,
    Bins,
    Design,
    Grams,
    LogisticSums,
    RidgePath,
    fit_logistic,
    logistic_sums,
    margin_probabilities,
)
from frhsic.estimators.basis import predictable_directions
from frhsic.estimators.boosters import STRIDE, held_out_values, merge_boosters, most_looks
from frhsic.estimators.engine_rows import Boosting, EngineRows, LocalRows
from frhsic.estimators.responses import FitTarget, Response, TargetColumn
from frhsic.splits import subsample

# Candidate shares of the additive part.
ADDITIVE_SHARES = np.linspace(0, 1, 6)
# Number of evaluations of the loss without improvement after which boosting stops.
PATIENCE = 4
# Maximum number of rows used to choose the ridge, the number of rounds and the share.
CHOICE_ROWS = 30_000
# Number of rows and trees used to find the predictable directions of an attribute.
PILOT_ROWS = 10_000
PILOT_ROUNDS = 20
PILOT_SETTINGS = {"objective": "regression", "num_leaves": 15, "learning_rate": 0.15}
# Number of rows, and of rounds of all outputs, that are predicted at once.
ROWS_AT_ONCE = 65_536
ROUNDS_AT_ONCE = 5
# Rounds and shares for even folds are chosen on odd folds, those for odd folds on even folds, and
# those for new rows on all folds. This is the index of the third choice.
NEW_ROWS = 2


@dataclass(frozen=True, eq=False)
class Engine:
    """Fitted regressions of all folds and targets.

    Attributes
    ----------
    bins
        Bins of the additive part.
    table
        Contribution of each bin to each output of each fold, (bins, folds × outputs).
    constants
        Constants that are added for all rows, (folds × outputs,).
    booster
        Trees of a booster whose classes are the outputs of each fold, or None if no target has
        trees.
    classes
        For each target, the number of classes; 0 for numbers.
    shares
        For each output, the share of the additive part.
    centers, scales
        For each output, the mean and standard deviation with which its numbers were standardized.
    """

    bins: Bins
    table: np.ndarray
    constants: np.ndarray
    booster: lightgbm.Booster | None
    classes: np.ndarray
    shares: np.ndarray
    centers: np.ndarray
    scales: np.ndarray

    @property
    def folds(self) -> int:
        """Number of folds."""
        return len(self.constants) // len(self.shares)

    def predict(self, x: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """Return the predictions of the models that leave out each fold, for rows (n, d): numbers,
        the probability of the second of two classes, or the probability of each of several classes;
        (folds, n, outputs).
        """
        result = np.empty((self.folds, len(x), len(self.shares)))
        for start in range(0, len(x), ROWS_AT_ONCE):
            block = x[start : start + ROWS_AT_ONCE]
            margins = self.constants + self.bins.incidence(block) @ self.table
            margins = margins.reshape(len(block), self.folds, -1)
            if self.booster is not None:
                trees = self._trees(block, thread_count(n_jobs))
                margins = margins + (1 - self.shares) * trees.reshape(margins.shape)
            result[:, start : start + len(block)] = self.values(margins).transpose(1, 0, 2)
        return result

    def _trees(self, x: np.ndarray, threads: int) -> np.ndarray:
        """Return the raw scores of the booster, (n, folds × outputs). They are computed a few
        rounds at a time, so that the trees stay in the cache while they are applied to all rows.
        """
        assert self.booster is not None
        scores = np.zeros((len(x), len(self.constants)))
        for start in range(0, self.booster.current_iteration(), ROUNDS_AT_ONCE):
            part = self.booster.predict(
                x,
                start_iteration=start,
                num_iteration=ROUNDS_AT_ONCE,
                raw_score=True,
                num_threads=threads,
            )
            scores += np.reshape(part, scores.shape)
        return scores

    def values(self, margins: np.ndarray) -> np.ndarray:
        """Convert margins (…, outputs) to numbers and probabilities."""
        values = np.asarray(self.centers + self.scales * margins)
        place = 0
        for classes in self.classes:
            stop = place + (classes if classes > 2 else 1)
            if classes:
                values[..., place:stop] = margin_probabilities(margins[..., place:stop])
            place = stop
        return values


@dataclass(frozen=True, eq=False)
class FittedEngine:
    """An engine, its out-of-fold predictions for the fitted rows, (n, outputs), and the modeled
    directions of each target, (K, R).
    """

    engine: Engine
    out_of_fold: np.ndarray
    directions: tuple[np.ndarray, ...]


def fit_engine(
    x: np.ndarray,
    categorical: Sequence[int],
    responses: Sequence[Response],
    fold: np.ndarray,
    weights: np.ndarray,
    seed: int,
    n_jobs: int | None = None,
) -> FittedEngine:
    """Fit the regressions of all targets, leaving out each fold in turn.

    The number of rounds and the share are chosen on the held-out rows of all folds. For the
    returned out-of-fold prediction of a row, they are chosen only on the half of the folds that
    doesn't contain the row, so that the choice doesn't bias the row's loss. The ridge of the
    additive part, one number for each target, is chosen on all folds.

    Parameters
    ----------
    x
        A numeric table, (n, d), with categories as codes.
    categorical
        Indices of the categorical columns.
    fold
        The fold of each row; rows that belong together must be in the same fold.
    weights
        Positive weights of the rows.
    """
    weights = weights / weights.mean()
    fit = fit_parts(
        LocalRows.of(x, categorical, fold, weights, seed, thread_count(n_jobs)), responses
    )
    engine = fit.engine()
    return FittedEngine(engine, engine.values(fit.margins), fit.directions)


@dataclass(frozen=True, eq=False)
class _Trees:
    """Boosters of one target, as one string per fold; the constants used if there are no rounds,
    (folds, outputs); the number of rounds and the share of the additive part for even folds, odd
    folds and new rows, (3,); and the out-of-fold margins of the mixture.
    """

    boosters: list[str]
    constants: np.ndarray
    rounds: list[int]
    shares: list[float]
    out_of_fold: np.ndarray


@dataclass(frozen=True, eq=False)
class FittedParts:
    """The regressions before they are combined: columns, additive parts and trees, together with
    the modeled directions of each target, (K, R).
    """

    bins: Bins
    columns: list[TargetColumn]
    additive: list[AdditivePart]
    trees: list[_Trees]
    directions: tuple[np.ndarray, ...]

    @property
    def margins(self) -> np.ndarray:
        """Out-of-fold margins, (n, outputs), of the rows used to choose rounds and shares."""
        return np.column_stack([one.out_of_fold for one in self.trees])

    def engine(self, fold: int | None = None) -> Engine:
        """Return the models of all folds for new rows. If a fold is given, return the models that
        predict the fold's rows: they are fitted without this fold, and their rounds and shares are
        chosen on the half of the folds that doesn't contain it.
        """
        use = NEW_ROWS if fold is None else fold % 2
        folds = slice(None) if fold is None else slice(fold, fold + 1)
        outputs = [column.outputs for column in self.columns]
        shares = np.repeat([one.shares[use] for one in self.trees], outputs)
        table = np.concatenate([part.table[:, folds] for part in self.additive], axis=2) * shares
        table = table.reshape(len(table), table.shape[1] * len(shares))
        bins = self.bins
        if not shares.any():
            bins = Bins(())
            table = table[:0]
        rounds = [one.rounds[use] for one in self.trees]
        boosters = [one.boosters[folds] if count else [] for one, count in zip(self.trees, rounds)]
        constants = shares * np.column_stack([part.constants[folds] for part in self.additive])
        alone = [one.constants[folds] * (count == 0) for one, count in zip(self.trees, rounds)]
        constants += (1 - shares) * np.column_stack(alone)
        return Engine(
            bins=bins,
            table=table,
            constants=constants.ravel(),
            booster=merge_boosters(boosters, outputs, rounds),
            classes=np.array([column.classes for column in self.columns]),
            shares=shares,
            centers=np.repeat([column.center for column in self.columns], outputs),
            scales=np.repeat([column.scale for column in self.columns], outputs),
        )


def fit_parts(rows: EngineRows, responses: Sequence[Response]) -> FittedParts:
    """Fit the additive parts and the trees of all targets, leaving out each fold in turn."""
    columns: list[TargetColumn] = []
    additive = []
    directions = []
    for place, response in enumerate(responses):
        own, part, along = _fit_additive(rows, place, response)
        columns.extend(own)
        additive.append(part)
        directions.append(along)
    margins = np.column_stack([part.out_of_fold(rows.design) for part in additive])
    stops = np.cumsum([column.outputs for column in columns])[:-1]
    trees = []
    each = zip(columns, np.split(margins, stops, axis=1), rows.boostings(columns))
    for number, (column, own_margins, boosting) in enumerate(each):
        trees.append(_boost(rows, column, own_margins, boosting))
        rows.tell(number + 1, len(columns))
    return FittedParts(rows.design.basis.bins, columns, additive, trees, tuple(directions))


def _fit_additive(
    rows: EngineRows, place: int, response: Response
) -> tuple[list[TargetColumn], AdditivePart, np.ndarray]:
    """Return the modeled columns, their additive part, and the combinations of the response's
    numbers that form the columns, (K, R). The ridge of a logistic regression is the least-squares
    ridge for the class indicators, multiplied by the variance of these indicators, which is the
    curvature of the logistic loss.
    """
    basis = rows.design.basis
    target = FitTarget.of(place, response)
    if response.classes is not None:
        path = _ridge_path(rows, target, response)
        ridge = RIDGE_GRID[path.errors.sum(axis=1).argmin()]
        rates = path.grams.means[basis.count :]
        ridge *= float(np.mean(rates * (1 - rates)))

        def sums(*at: np.ndarray) -> Any:
            def step(design: Design, values: np.ndarray) -> LogisticSums:
                return logistic_sums(design, target.labels(values), *at)

            return rows.sums(target, response, step)

        solved = fit_logistic(path.grams, target.outputs, ridge, sums)
        codes = target.labels(response.values)
        column = TargetColumn(response, codes, target, len(response.classes))
        return [column], AdditivePart.of(basis, *solved), np.eye(1)
    along = target.directions
    if not response.reduced:
        mass = np.where(response.rows, rows.design.weights, 0.0)
        center = np.average(response.values, axis=0, weights=mass)
        scale = np.sqrt(np.average((response.values - center) ** 2, axis=0, weights=mass))
        scale[scale == 0] = 1.0
        target = replace(target, centers=center, scales=scale)
    path = _ridge_path(rows, target, response)
    if response.reduced:
        along = _directions(rows, response, path.best(basis).out_of_fold(rows.design))
        path = path.along(along)
        target = target.along(along)
    values = target.labels(response.values)
    # combinations of several numbers don't have the unit of any of them
    own_units = not response.reduced
    columns = [
        TargetColumn(
            response,
            values[:, k],
            center=float(target.centers[k]) if own_units else 0.0,
            scale=float(target.scales[k]) if own_units else 1.0,
            target=target.along(np.eye(target.outputs)[:, [k]]),
        )
        for k in range(target.outputs)
    ]
    return columns, path.best(basis), along


def _ridge_path(rows: EngineRows, target: FitTarget, response: Response) -> RidgePath:
    known = rows.known(response)
    means = rows.design.at(known).means(target.columns(response.values[known]))
    folds = rows.design.folds

    def step(design: Design, values: np.ndarray) -> Grams:
        return Grams.about(design, target.columns(values), means, folds)

    return RidgePath.fit(rows.sums(target, response, step), target.outputs)


def _directions(rows: EngineRows, response: Response, additive: np.ndarray) -> np.ndarray:
    """Return the predictable directions of functions of S, (K, R). The functions are predicted by
    the mean of the additive part and a few small trees, which are fitted on even folds for odd
    folds and vice versa.
    """
    some = rows.sample(response.rows, PILOT_ROWS)
    means = additive[some]
    values = response.values[some]
    settings = rows.settings | PILOT_SETTINGS | {"seed": rows.seed % 2**31}
    even = rows.design.fold[some] % 2 == 0
    for part in (even, ~even):
        data = rows.data.subset(some[~part]).construct()
        held_out = rows.data.subset(some[part]).construct()
        data.set_weight(rows.design.weights[some[~part]])
        for k in range(values.shape[1]):
            data.set_label(values[~part, k])
            booster = lightgbm.Booster(settings, data)
            booster.add_valid(held_out, "held out")
            for _ in range(PILOT_ROUNDS):
                booster.update()
            means[part, k] = (means[part, k] + held_out_values(booster)) / 2
    return predictable_directions(means, values, rows.design.weights[some])


def _boost(
    rows: EngineRows, column: TargetColumn, additive: np.ndarray, boosting: Boosting
) -> _Trees:
    """Boost trees for all folds in parallel. Boosting stops when neither the loss of the trees nor
    the loss of their mixture with the additive part improves any more on the held-out rows of all
    folds.
    """
    fold = rows.design.fold
    mass = np.where(column.response.rows, rows.design.weights, 0.0)
    constants = column.constants(fold, mass)
    some = subsample(len(fold), CHOICE_ROWS, np.random.default_rng(rows.seed))
    # rows used for the choices for even folds, odd folds and new rows
    weights = np.stack([mass * (fold % 2 == 1), mass * (fold % 2 == 0), mass])[:, some]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    trees = constants[fold]
    least = np.full(3, np.inf)
    shares = np.zeros(3)
    looks = np.zeros(3, dtype=np.int64)
    margins = [trees] * 3
    least_alone = np.inf
    # if the additive part is good, trees may need many rounds before they help
    progress = 0
    for look in range(1 + most_looks(rows.count)):
        if look:
            trees = next(boosting.margins)
        mixtures = [share * additive[some] + (1 - share) * trees[some] for share in ADDITIVE_SHARES]
        losses = np.stack([weights @ column.losses(one, some) for one in mixtures], axis=1)
        for use in range(3):
            at = int(losses[use].argmin())
            if losses[use, at] < least[use]:
                least[use] = losses[use, at]
                shares[use] = ADDITIVE_SHARES[at]
                looks[use] = look
                margins[use] = shares[use] * additive + (1 - shares[use]) * trees
        if losses[2, 0] < least_alone:  # the loss with the share 0
            least_alone = losses[2, 0]
            progress = look
        if look - max(progress, int(looks[2])) >= PATIENCE:
            break
    rounds = [int(look) * STRIDE for look in looks]
    texts = []
    if most := max(rounds):
        texts = [booster.model_to_string(num_iteration=most) for booster in boosting.boosters]
    return _Trees(
        texts,
        constants,
        rounds,
        shares.tolist(),
        np.where((fold % 2 == 0)[:, None], margins[0], margins[1]),
    )
