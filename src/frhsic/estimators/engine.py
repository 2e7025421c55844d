r"""All regressions of a fit at once: each target from a table, for each fold by the rows outside of
it.

.. math:: f(x) = w \Bigl(b + \sum_j h_j(x_j)\Bigr) + (1 - w) \, t(x)

on the scale of log-odds, log-probabilities or numbers. The additive part (:mod:`.additive`) follows
what is smooth on few rows; the boosted trees t of LightGBM find interactions and jumps. Ridge,
number of trees and share w are chosen once for each target, by its loss on the held-out rows of all
folds together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
from scipy.sparse import csr_array
from scipy.special import logit, logsumexp

from frhsic import _progress
from frhsic._threads import thread_count
from frhsic.estimators.additive import (
    GRAM_ROWS,
    RIDGE_GRID,
    Basis,
    Bins,
    Grams,
    RidgePath,
    fit_logistic,
    margin_probabilities,
)
from frhsic.estimators.basis import predictable_directions
from frhsic.splits import subsample

# Shares of the additive part that are tried.
ADDITIVE_SHARES = np.linspace(0, 1, 11)
# Trees between two looks at the loss; looks without progress that end the boosting.
STRIDE = 5
PATIENCE = 5
# Trees of an output at the shortest step, at most.
MOST_ROUNDS = 120
SHORTEST_STEP = 0.1
# Rows that ridge, rounds and share are chosen on, at most.
CHOICE_ROWS = 30_000
# Rows and trees that find the directions of an attribute which X predicts.
PILOT_ROWS = 10_000
PILOT_ROUNDS = 20
PILOT_SETTINGS = {"objective": "regression", "num_leaves": 15, "learning_rate": 0.15}
# Columns of a table whose histograms are made row by row, at most.
MOST_BY_ROWS = 128
# Rows, and rounds of all outputs, that are predicted at once.
ROWS_AT_ONCE = 65_536
ROUNDS_AT_ONCE = 5
# The text of a tree that adds nothing.
NO_TREE = "num_leaves=1\nnum_cat=0\nleaf_value=0\nis_linear=0\nshrinkage=1"


def table_settings(columns: int) -> dict[str, Any]:
    """Return settings of LightGBM that a table of so many columns has for all targets.

    Each tree sees half of the columns, but four at least: fewer hide interactions.
    """
    return {
        "feature_fraction": min(max(0.5, 4 / max(columns, 1)), 1.0),
        # LightGBM would try both ways to make histograms, which takes as long as a tree, and chance
        # would decide the last bits
        "force_row_wise" if columns <= MOST_BY_ROWS else "force_col_wise": True,
        "metric": "None",
        "verbose": -1,
    }


def leaf_count(rows: int) -> int:
    """Return the leaves of a tree of so many training rows: they grow with the square root, from 8
    to 31.
    """
    return int(np.clip(8 * np.sqrt(rows / 2_000), 8, 31))


def step_length(rows: int) -> float:
    """Return the step of trees of a table of so many rows: it grows with the fourth root, from 0.1
    to 0.25, since larger trees need fewer steps.
    """
    return float(np.clip(SHORTEST_STEP * (rows / 2_000) ** 0.25, SHORTEST_STEP, 0.25))


@dataclass(frozen=True, eq=False)
class Response:
    """What is predicted from a table.

    Attributes
    ----------
    values
        Labels, (n,), or numbers, (n, K).
    classes
        The labels in order; None for numbers.
    known
        Which rows have values, (n,); None if all have.
    reduced
        Whether only the :func:`predictable_directions` of the numbers are modelled.
    """

    values: np.ndarray
    classes: Any = None
    known: np.ndarray | None = None
    reduced: bool = False

    @property
    def rows(self) -> np.ndarray:
        """Which rows have values, as booleans."""
        return np.full(len(self.values), True) if self.known is None else self.known


@dataclass(frozen=True, eq=False)
class _Column:
    """One column to predict: codes of classes or numbers, (n,), and the number of classes, 0 for
    numbers, with what was subtracted from these and what they were divided by.
    """

    target: Response
    values: np.ndarray
    classes: int = 0
    center: float = 0.0
    scale: float = 1.0

    @property
    def outputs(self) -> int:
        """Columns of margins: one, or one for each of more than two classes."""
        return self.classes if self.classes > 2 else 1

    def constants(self, fold: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the margins of a constant without each fold, (folds, outputs)."""
        trains = (fold != np.arange(fold.max() + 1)[:, None]) * weights
        trains = trains / trains.sum(axis=1, keepdims=True)
        if not self.classes:
            return np.asarray(trains @ self.values)[:, None]
        rates = trains @ np.eye(self.classes)[self.values]
        rates = np.clip(rates[:, -self.outputs :], 1e-6, 1 - 1e-6)
        return np.asarray(logit(rates) if self.classes == 2 else np.log(rates))

    def losses(self, margins: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the loss of margins (n, outputs) of some rows."""
        values = self.values[rows]
        if not self.classes:
            return np.asarray((margins[:, 0] - values) ** 2)
        if self.classes == 2:
            return np.asarray(np.logaddexp(0, (1 - 2 * values) * margins[:, 0]))
        own = np.take_along_axis(margins, values[:, None], axis=1)[:, 0]
        return np.asarray(logsumexp(margins, axis=1) - own)


@dataclass(frozen=True, eq=False)
class Engine:
    """Fitted regressions of all folds and targets.

    Attributes
    ----------
    bins
        Bins of the additive part.
    table
        What each bin adds, for each fold and output, (bins, folds × outputs).
    constants
        What all rows get, (folds × outputs,).
    booster
        Trees; its classes are the outputs of each fold. None where no target has trees.
    classes
        For each target, the number of classes; 0 for numbers.
    shares
        For each output, the share of the additive part.
    centers, scales
        For each output, mean and standard deviation of the numbers that it is in units of.
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
        """Return what the models without each fold predict of rows (n, d): numbers, the probability
        of the second of two classes, or those of each class; (folds, n, outputs).
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
        """Return the raw scores of the booster, (n, folds × outputs), by a few rounds at a time:
        their trees stay in the cache while all rows pass.
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
        """Return margins (…, outputs) as numbers and probabilities."""
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
    """An engine with what it predicts of the rows that it was fitted on by models without them, (n,
    outputs), and the directions of each target that it models, (K, R).
    """

    engine: Engine
    out_of_fold: np.ndarray
    directions: tuple[np.ndarray, ...]


def fit_engine(
    x: np.ndarray,
    categorical: Sequence[int],
    targets: Sequence[Response],
    fold: np.ndarray,
    weights: np.ndarray,
    seed: int,
    n_jobs: int | None = None,
) -> FittedEngine:
    """Fit the regressions of all targets without each fold.

    Rounds and share are chosen on the held-out rows of all folds; what is returned for a row was
    chosen on the other half of the rows, so that losses on it are not optimistic by that. The ridge
    of the additive part, one number for each target, is chosen on all of them.

    Parameters
    ----------
    x
        A table of numbers, (n, d), categories as codes.
    categorical
        Columns of categories.
    fold
        The fold of each row; rows that belong together are in one.
    weights
        Positive weights of the rows.
    """
    rows = _Rows.of(x, categorical, fold, weights / weights.mean(), seed, thread_count(n_jobs))
    columns: list[_Column] = []
    additive: list[_Additive] = []
    directions = []
    for target in targets:
        along = np.eye(1)
        if target.classes is not None:
            codes = np.searchsorted(target.classes, target.values)
            columns.append(_Column(target, codes, len(target.classes)))
            additive.append(_fit_logistic(rows, columns[-1]))
        else:
            own, parts, along = _fit_numbers(rows, target)
            columns.extend(own)
            additive.extend(parts)
        directions.append(along)
    trees = []
    for number, (column, part) in enumerate(zip(columns, additive)):
        trees.append(_boost(rows, column, part.out_of_fold(rows), number))
        _progress.tell(number + 1, len(columns), "regressions")
    outputs = [column.outputs for column in columns]
    shares = np.repeat([one.share for one in trees], outputs)
    bins = rows.basis.bins
    table = np.concatenate([part.table for part in additive], axis=2) * shares
    table = table.reshape(len(table), rows.folds * len(shares))
    if not shares.any():
        bins = Bins(())
        table = table[:0]
    constants = [
        one.share * part.constants + (1 - one.share) * one.constants
        for one, part in zip(trees, additive)
    ]
    engine = Engine(
        bins=bins,
        table=table,
        constants=np.concatenate(constants, axis=1).ravel(),
        booster=merge_boosters(
            [one.boosters for one in trees], outputs, [one.rounds for one in trees]
        ),
        classes=np.array([column.classes for column in columns]),
        shares=shares,
        centers=np.repeat([column.center for column in columns], outputs),
        scales=np.repeat([column.scale for column in columns], outputs),
    )
    out_of_fold = engine.values(np.column_stack([one.out_of_fold for one in trees]))
    return FittedEngine(engine, out_of_fold, tuple(directions))


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a fit: which bins they are in, and the same rows binned for LightGBM."""

    basis: Basis
    incidence: csr_array
    data: lightgbm.Dataset
    fold: np.ndarray
    weights: np.ndarray
    held_out: list[lightgbm.Dataset]
    settings: dict[str, Any]
    seed: int

    @classmethod
    def of(
        cls,
        x: np.ndarray,
        categorical: Sequence[int],
        fold: np.ndarray,
        weights: np.ndarray,
        seed: int,
        threads: int,
    ) -> _Rows:
        settings = table_settings(x.shape[1]) | {"num_threads": threads}
        data = lightgbm.Dataset(
            x, np.zeros(len(x)), params=settings, categorical_feature=list(categorical)
        ).construct()
        parts: list[Any] = [np.flatnonzero(fold == j) for j in range(fold.max() + 1)]
        held_out = [data.subset(part).construct() for part in parts]
        basis = Basis.fit(x, categorical, weights)
        incidence = basis.bins.incidence(x)
        return cls(basis, incidence, data, fold, weights, held_out, settings, seed)

    @property
    def folds(self) -> int:
        return len(self.held_out)


@dataclass(frozen=True, eq=False)
class _Additive:
    """Additive part of some outputs: what each bin adds, (bins, folds, outputs), and constants,
    (folds, outputs).
    """

    table: np.ndarray
    constants: np.ndarray

    def out_of_fold(self, rows: _Rows) -> np.ndarray:
        """Return the margins of each row by the model without it, (n, outputs)."""
        margins = np.empty((len(rows.fold), self.table.shape[2]))
        for j in range(rows.folds):
            own = np.flatnonzero(rows.fold == j)
            margins[own] = rows.incidence[own] @ self.table[:, j] + self.constants[j]
        return margins


@dataclass(frozen=True, eq=False)
class _Path:
    """Additive least squares of some numbers over all ridges."""

    rows: _Rows
    grams: Grams
    path: RidgePath

    def along(self, directions: np.ndarray) -> _Path:
        """Return the path of combinations of the numbers, (K, R)."""
        grams = self.grams.along(directions)
        return _Path(self.rows, grams, self.path.along(directions, grams))

    def best(self, output: int | None = None) -> _Additive:
        """Return the additive part of all numbers or one, each by the ridge with the least error
        in the folds.
        """
        count = self.path.errors.shape[1]
        outputs = np.arange(count) if output is None else np.array([output])
        ridges = self.path.errors.argmin(axis=0)[outputs]
        q = self.rows.basis.count
        own = self.path.coefficients[:, ridges, :, outputs]  # (outputs, folds, q)
        intercepts = self.path.intercepts[:, ridges, outputs]
        shift = intercepts - np.einsum("kjq,q->jk", own, self.grams.means[:q])
        table = self.rows.basis.functions @ own.transpose(2, 1, 0).reshape(q, -1)
        table = table.reshape(-1, self.rows.folds, len(outputs))
        return _Additive(table, shift + self.grams.means[q:][outputs])


def _fit_path(rows: _Rows, values: np.ndarray, known: np.ndarray) -> _Path:
    """Solve for numbers (n, t) of the rows in which they are known, of a part of many."""
    some = np.flatnonzero(known)
    some = some[subsample(len(some), GRAM_ROWS, np.random.default_rng(rows.seed))]
    grams = Grams.of(
        rows.basis, rows.incidence[some], values[some], rows.fold[some], rows.weights[some]
    )
    return _Path(rows, grams, RidgePath.fit(grams, values.shape[1]))


def _fit_numbers(
    rows: _Rows, target: Response
) -> tuple[list[_Column], list[_Additive], np.ndarray]:
    """Return the columns of numbers that are modelled, the additive part of each, and how they are
    combined of the numbers, (K, R): those of a reduced target, others in units of their own.
    """
    values = target.values
    center = np.zeros(values.shape[1])
    scale = np.ones(values.shape[1])
    along = np.eye(values.shape[1])
    if not target.reduced:
        mass = np.where(target.rows, rows.weights, 0.0)
        center = np.average(values, axis=0, weights=mass)
        scale = np.sqrt(np.average((values - center) ** 2, axis=0, weights=mass))
        scale[scale == 0] = 1.0
        values = (values - center) / scale
    path = _fit_path(rows, values, target.rows)
    if target.reduced:
        along = _directions(rows, target, path.best().out_of_fold(rows))
        path = path.along(along)
        values = values @ along
    columns = [
        _Column(target, values[:, k], 0, float(center[k]), float(scale[k]))
        for k in range(along.shape[1])
    ]
    return columns, [path.best(k) for k in range(len(columns))], along


def _fit_logistic(rows: _Rows, column: _Column) -> _Additive:
    """Fit the additive part of classes.

    The ridge of a logistic regression is that of least squares for the indicators of its classes,
    times their variance, which both have as curvature of the loss.
    """
    ones = np.eye(column.classes)[column.values][:, -column.outputs :]
    linear = _fit_path(rows, ones, column.target.rows)
    ridge = RIDGE_GRID[linear.path.errors.sum(axis=1).argmin()]
    rates = linear.grams.means[rows.basis.count :]
    some = subsample(len(ones), GRAM_ROWS, np.random.default_rng(rows.seed))
    coefficients, intercepts = fit_logistic(
        rows.basis,
        rows.incidence[some],
        column.values[some],
        column.classes,
        rows.fold[some],
        rows.weights[some],
        linear.grams,
        ridge * float(np.mean(rates * (1 - rates))),
    )
    q = rows.basis.count
    table = rows.basis.functions @ coefficients.transpose(1, 0, 2).reshape(q, -1)
    return _Additive(table.reshape(-1, rows.folds, column.outputs), intercepts)


def _directions(rows: _Rows, target: Response, additive: np.ndarray) -> np.ndarray:
    """Return the directions of functions that X predicts, (K, R): by the mean of the additive part
    and of a few small trees, for which even and odd folds predict each other.
    """
    some = np.flatnonzero(target.rows)
    some = some[subsample(len(some), PILOT_ROWS, np.random.default_rng(rows.seed))]
    means = additive[some]
    values = target.values[some]
    settings = rows.settings | PILOT_SETTINGS | {"seed": rows.seed % 2**31}
    even = rows.fold[some] % 2 == 0
    for part in (even, ~even):
        data = rows.data.subset(some[~part]).construct()
        held_out = rows.data.subset(some[part]).construct()
        data.set_weight(rows.weights[some[~part]])
        for k in range(values.shape[1]):
            data.set_label(values[~part, k])
            booster = lightgbm.Booster(settings, data)
            booster.add_valid(held_out, "held out")
            for _ in range(PILOT_ROUNDS):
                booster.update()
            means[part, k] = (means[part, k] + _held_out_values(booster)) / 2
    return predictable_directions(means, values, rows.weights[some])


@dataclass(frozen=True, eq=False)
class _Trees:
    """Boosters of one target, a text for each fold, of which so many rounds count; constants of the
    folds in place of no rounds, (folds, outputs); the share of the additive part, and margins of
    both parts out of fold.
    """

    boosters: list[str]
    rounds: int
    constants: np.ndarray
    share: float
    out_of_fold: np.ndarray


def _boost(rows: _Rows, column: _Column, additive: np.ndarray, number: int) -> _Trees:
    """Boost trees for each fold in step, until neither their own loss on the held-out rows of all
    folds nor that of their mixture with the additive part has fallen for a while.
    """
    fold = rows.fold
    mass = np.where(column.target.rows, rows.weights, 0.0)
    constants = column.constants(fold, mass)
    boosters = _boosters(rows, column, number)
    some = subsample(len(fold), CHOICE_ROWS, np.random.default_rng(rows.seed))
    # those that choose for even folds, for odd ones, and for new rows
    weights = np.stack([mass * (fold % 2 == 1), mass * (fold % 2 == 0), mass])[:, some]
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    trees = constants[fold]
    least = np.full(3, np.inf)
    shares = np.zeros(3)
    looks = np.zeros(3, dtype=np.int64)
    margins = [trees] * 3
    least_alone = np.inf
    # where the additive part is good, trees have to improve for a while before they help it
    progress = 0
    most = MOST_ROUNDS * SHORTEST_STEP / step_length(len(fold))
    for look in range(1 + round(most / STRIDE)):
        if look:
            trees = np.empty_like(trees)
            for j, booster in enumerate(boosters):
                for _ in range(STRIDE):
                    booster.update()
                trees[fold == j] = _held_out_margins(booster, column)
        mixtures = [share * additive[some] + (1 - share) * trees[some] for share in ADDITIVE_SHARES]
        losses = np.stack([weights @ column.losses(one, some) for one in mixtures], axis=1)
        for use in range(3):
            at = int(losses[use].argmin())
            if losses[use, at] < least[use]:
                least[use] = losses[use, at]
                shares[use] = ADDITIVE_SHARES[at]
                looks[use] = look
                margins[use] = shares[use] * additive + (1 - shares[use]) * trees
        if losses[2, 0] < least_alone:  # a share of 0
            least_alone = losses[2, 0]
            progress = look
        if look - max(progress, int(looks[2])) >= PATIENCE:
            break
    rounds = int(looks[2]) * STRIDE
    texts = [booster.model_to_string(num_iteration=rounds) for booster in boosters if rounds]
    return _Trees(
        texts,
        rounds,
        np.zeros_like(constants) if rounds else constants,
        float(shares[2]),
        np.where((fold % 2 == 0)[:, None], margins[0], margins[1]),
    )


def _boosters(rows: _Rows, column: _Column, number: int) -> list[lightgbm.Booster]:
    """Return a booster without trees for each fold."""
    objective = {0: "regression", 2: "binary"}.get(column.classes, "multiclass")
    seeds = np.random.SeedSequence([rows.seed, number]).generate_state(rows.folds) % 2**31
    boosters = []
    for j in range(rows.folds):
        train: Any = np.flatnonzero(column.target.rows & (rows.fold != j))
        data = rows.data.subset(train).construct()
        data.set_label(column.values[train])
        data.set_weight(rows.weights[train])
        settings = rows.settings | {
            "num_leaves": leaf_count(len(train)),
            "learning_rate": step_length(len(rows.fold)),
            "objective": objective,
            "num_class": column.outputs,
            "seed": int(seeds[j]),
        }
        booster = lightgbm.Booster(settings, data)
        booster.add_valid(rows.held_out[j], "held out")
        boosters.append(booster)
    return boosters


def _held_out_values(booster: lightgbm.Booster) -> np.ndarray:
    """Return what LightGBM would give a metric of the held-out rows: probabilities or numbers."""
    given: list[np.ndarray] = []

    def keep(values: np.ndarray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        given.append(values)
        return "", 0.0, True

    booster.eval_valid(keep)
    return given[0]


def _held_out_margins(booster: lightgbm.Booster, column: _Column) -> np.ndarray:
    """Return the margins of the held-out rows of a booster, (n, outputs)."""
    values = np.reshape(_held_out_values(booster), (-1, column.outputs))
    if not column.classes:
        return values
    values = np.clip(values, 1e-15, 1 - 1e-15)
    return np.asarray(logit(values) if column.classes == 2 else np.log(values))


def merge_boosters(
    boosters: Sequence[Sequence[str]], outputs: Sequence[int], rounds: Sequence[int]
) -> lightgbm.Booster | None:
    """Return one booster whose classes are the outputs of each fold, from the texts of the boosters
    of each target and fold.

    It adds up the trees of each class in their order, so that its raw scores have the same bits.
    Targets with fewer rounds than others are padded with trees that add nothing.
    """
    most = max(rounds, default=0)
    if not most:
        return None
    folds = max(map(len, boosters))
    text = next(own[0] for own in boosters if own)
    names = re.search("^feature_names=.*$", text, re.MULTILINE)
    infos = re.search("^feature_infos=.*$", text, re.MULTILINE)
    assert names is not None
    assert infos is not None
    blocks: list[list[str]] = []  # the trees of each class
    for j in range(folds):
        for own, count in zip(boosters, outputs):
            trees = _tree_texts(own[j]) if own else []
            blocks.extend(trees[k::count] for k in range(count))
    lines = [
        "tree",
        "version=v4",
        f"num_class={len(blocks)}",
        f"num_tree_per_iteration={len(blocks)}",
        "label_index=0",
        f"max_feature_idx={len(names[0].split()) - 1}",
        names[0],
        infos[0],
        "",
    ]
    for i in range(most):
        for k, trees in enumerate(blocks):
            tree = trees[i] if i < len(trees) else NO_TREE
            lines.append(f"Tree={i * len(blocks) + k}\n{tree}\n\n")
    return lightgbm.Booster(model_str="\n".join([*lines, "end of trees", ""]))


def _tree_texts(text: str) -> list[str]:
    """Return the text of each tree, without its number."""
    parts = text.partition("\nend of trees")[0].split("\nTree=")[1:]
    return [part.partition("\n")[2].strip() for part in parts]
