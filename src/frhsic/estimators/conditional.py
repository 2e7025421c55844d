r"""What parity needs to know of x: functions of S, their conditional means given x, and the folds
that fit them.

.. math:: m_k(x) = \mathbb E[\varphi_k(S) \mid x], \qquad \mathbb E\,\varphi_k(S) = 0, \quad
    \mathbb E\,\varphi_j(S) \varphi_k(S) = \delta_{jk}.

The closed form of predictors and the coupling of tables share these regressions.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import lightgbm
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit, log_softmax, softmax
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    SplineTransformer,
)
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from frhsic._threads import thread_count
from frhsic.formatting import printable
from frhsic.tables.columns import LARGEST_FEATURE, days, is_frame, kind_of, numbers, to_pandas

# What the parameter `cv` may be.
ADMITTED_FOLDS = [Interval(Integral, 2, None, closed="left"), HasMethods("split"), "array-like"]

# Cosines of the rank of a continuous attribute.
FUNCTIONS = 8

# An attribute with at most so many levels gets as many functions as it takes to tell all levels
# apart.
MOST_LEVELS = 16

# A value that has at least this share of the rows, such as zero income, gets a function of its own.
ATOM = 0.05

# Rows from which on the default model needs no early stopping, and no splines beside its trees.
MANY_ROWS = 10_000

# Shares of the splines beside the trees that are tried.
SPLINE_SHARES = np.linspace(0, 1, 11)

# Knots of a spline; a column with at most so many different numbers has an indicator of each.
KNOTS = 6

# Rows, and trees of each function, that find the directions of an attribute which x tells; smallest
# share of what it tells along one of them.
PILOT_ROWS = 10_000
PILOT_ROUNDS = 20
TOLD = 0.01

# Columns of a table whose histograms are made row by row, at most.
MOST_BY_ROWS = 128

# Indicators of one column, and columns of an additive model altogether, at most.
MOST_COLUMNS = 32
MOST_WIDTH = 1_000

# Groups of equal size that replace the values of a continuous attribute.
NODES = 256


@dataclass(frozen=True, eq=False)
class SensitiveBasis:
    r"""Orthonormal functions :math:`\varphi_k` of one attribute under the law of the rows that it
    was fitted on.

    The functions are constant on nodes: the levels of S, or groups of equal size of a continuous S
    in which frequent values stay apart. With at most 16 levels they span all functions of S with
    mean zero. Otherwise they span eight cosines of the rank and an indicator for each frequent
    value. No increasing map of S changes them.

    Attributes
    ----------
    starts
        Smallest value of each node, increasing; (M,).
    mass
        Share of the rows in each node; (M,).
    values
        The functions on the nodes; (M, K).

    Examples
    --------
    Two levels, one row in four at the second: one function, with mean 0 and variance 1.

    >>> basis = SensitiveBasis.fit(np.array([0.0, 0.0, 0.0, 1.0]))
    >>> basis(np.array([0.0, 1.0])).round(4).tolist()
    [[-0.5774], [1.7321]]
    """

    starts: np.ndarray
    mass: np.ndarray
    values: np.ndarray

    @classmethod
    def fit(cls, s: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Learn nodes and functions from values without NaN, (n,), and their weights."""
        levels, level = np.unique(s, return_inverse=True)
        mass = np.bincount(level, weights, minlength=len(levels))
        levels = levels[mass > 0]
        mass = mass[mass > 0] / mass.sum()
        node = ranges(mass, NODES, 1 / NODES) if len(levels) > NODES else np.arange(len(levels))
        starts = levels[np.r_[True, node[1:] != node[:-1]]]
        mass = np.bincount(node, mass)
        if len(mass) <= MOST_LEVELS:
            candidates = np.eye(len(mass))[:, 1:]
        else:
            rank = np.cumsum(mass) - mass / 2
            cosines = np.cos(np.pi * rank[:, None] * np.arange(1, FUNCTIONS + 1))
            candidates = np.column_stack([cosines, np.eye(len(mass))[:, mass >= ATOM]])
        root = np.sqrt(mass)[:, None]
        with_constant = root * np.column_stack([np.ones(len(mass)), candidates])
        orthonormal, triangle = np.linalg.qr(with_constant)
        diagonal = np.diag(triangle)[1:]
        kept = np.abs(diagonal) > 1e-8  # a frequent value may lie in the span of the others
        sign = np.sign(diagonal)[kept]
        return cls(starts, mass, orthonormal[:, 1:][:, kept] * sign / root)

    def node(self, s: np.ndarray) -> np.ndarray:
        """Return the node of each value; values beyond the fitted range belong to the first or the
        last.
        """
        return np.asarray(np.clip(np.searchsorted(self.starts, s, side="right") - 1, 0, None))

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return the functions at values (n,) as (n, K), zero where a value is missing."""
        return np.where(np.isnan(s)[:, None], 0.0, self.values[self.node(s)])

    def along(self, directions: np.ndarray) -> SensitiveBasis:
        """Return the basis of orthonormal combinations (K, R) of the functions."""
        return SensitiveBasis(self.starts, self.mass, self.values @ directions)


def ranges(mass: np.ndarray, count: int, frequent: float = ATOM) -> np.ndarray:
    """Return the range of each of some increasing values: about `count` of equal mass, with
    frequent values apart.

    At most 16 values have a range each.

    Examples
    --------
    >>> ranges(np.r_[0.5, np.full(20, 0.025)], 4).tolist()
    [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    """
    if len(mass) <= MOST_LEVELS:
        return np.arange(len(mass))
    group = np.minimum(((np.cumsum(mass) - mass / 2) * count).astype(np.int64), count - 1)
    apart = mass >= frequent
    return np.asarray(np.cumsum(np.r_[False, (group[1:] != group[:-1]) | apart[1:] | apart[:-1]]))


class TreeTable(TransformerMixin, BaseEstimator):
    """A table as LightGBM takes it: text as categories with the levels of the fitted rows, dates as
    days.

    Levels that the fitted rows do not have become missing values. An array of numbers stays as it
    is.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        self.levels_ = None
        if is_frame(X):
            self.levels_ = [self._levels(column) for _, column in to_pandas(X).items()]
        return self

    @staticmethod
    def _levels(column: pd.Series[Any]) -> np.ndarray | None:
        if kind_of(column) != "category":
            return None
        return np.sort(np.array(pd.unique(column.dropna().astype(str)), dtype=str))

    def codes(self, X: Any) -> np.ndarray:
        """Return the table as numbers: categories by their codes, which a booster does not write to
        its file.
        """
        check_is_fitted(self)
        if isinstance(X, SharedTable):
            return X.codes(self)
        if self.levels_ is None:
            codes = np.asarray(X, dtype=np.float64)
        else:
            columns = (column for _, column in to_pandas(X).items())
            codes = np.column_stack(
                [self._numbers(column, levels) for column, levels in zip(columns, self.levels_)]
            )
        return np.clip(codes, -LARGEST_FEATURE, LARGEST_FEATURE)

    @staticmethod
    def _numbers(column: pd.Series[Any], levels: np.ndarray | None) -> np.ndarray:
        name = f"column {column.name!r} of X"
        if levels is None:
            return days(column, name)[0] if kind_of(column) == "date" else numbers(column, name)
        codes, values = pd.factorize(column)
        text = pd.Index([str(value) for value in values], dtype=object)
        position = np.append(pd.Index(levels.astype(object)).get_indexer(text), -1)[codes]
        return np.where(position < 0, np.nan, position)

    def transform(self, X: Any) -> Any:
        """Return the table with columns of categories, which LightGBM tells from numbers."""
        codes = self.codes(X)
        if not self.categorical:
            return codes
        frame = pd.DataFrame(codes).add_prefix("x")
        for j, levels in enumerate(self.levels_ or ()):
            if levels is not None:
                frame[f"x{j}"] = pd.Categorical(codes[:, j], categories=range(len(levels)))
        return frame

    @property
    def categorical(self) -> list[int]:
        """Positions of the columns of categories."""
        return [j for j, levels in enumerate(self.levels_ or ()) if levels is not None]

    @property
    def key(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return what is the same for tables with the same levels, which make the same codes."""
        return tuple(own if own is None else tuple(own.tolist()) for own in self.levels_ or ())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "levels_")


class SharedTable:
    """A table that several models predict; those with the same levels share its codes."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.known: dict[Any, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.X)

    def codes(self, table: TreeTable) -> np.ndarray:
        """Return the codes by the levels of a table that was fitted."""
        key = table.key
        if key not in self.known:
            self.known[key] = table.codes(self.X)
        return self.known[key]


class Targets(NamedTuple):
    """Rows of a regression: a table of numbers, codes of classes or numbers (n, q), and weights,
    or None.
    """

    x: np.ndarray
    y: np.ndarray
    weights: Any

    def at(self, rows: np.ndarray) -> Targets:
        """Return some of the rows."""
        return Targets(self.x[rows], self.y[rows], self.weights[rows])


class SplinesAndTrees(BaseEstimator):
    r"""The default model of a table: additive splines and boosted trees, averaged.

    .. math:: f(x) = w \sum_j h_j(x_j) + (1 - w) \, t(x)

    on the scale of log-odds, log-probabilities or numbers. Splines follow what is smooth and
    additive on few rows; the trees of LightGBM find interactions and jumps. Below 10,000 rows a
    fourth of the rows stops the trees early and chooses the share w of each target; then both are
    fitted on all rows, with 1.3 times as many trees, since the mean of several such models is
    served. From 10,000 rows on there are trees alone: few, large ones with long steps, which
    predict as well as many small ones, and faster.

    Parameters
    ----------
    classifier
        Whether y holds labels. Otherwise it holds numbers, (n,) or (n, q); several targets share
        the binned table and the columns of the splines.
    rounds
        Trees of each target from 10,000 rows on. Below, there are at most 26 times as many (20, and
        1.3 times that), smaller ones, with shorter steps.
    n_jobs, random_state
        Threads of LightGBM; seed of the rows that choose and of the columns of a tree.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(size=(600, 1))
    >>> model = SplinesAndTrees(random_state=0).fit(x, np.sin(6 * x[:, 0]))
    >>> bool(np.abs(model.predict(x) - np.sin(6 * x[:, 0])).mean() < 0.01)
    True
    """

    def __init__(
        self,
        classifier: bool = False,
        *,
        rounds: int = 40,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.classifier = classifier
        self.rounds = rounds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        self.table_ = TreeTable().fit(X)
        x = self.table_.codes(X)
        weights = np.ones(len(x)) if sample_weight is None else sample_weight
        targets = np.reshape(y, (len(x), -1))
        if self.classifier:
            self.classes_, codes = np.unique(y, return_inverse=True)
            targets = np.reshape(codes, (-1, 1))
        rows = Targets(x, targets, weights)
        self.splines_ = None
        self.shares_ = np.zeros(targets.shape[1])
        if len(x) >= MANY_ROWS:
            self.boosters_ = self._trees(rows, [self.rounds] * targets.shape[1])
            return self
        checks = np.random.default_rng(self.random_state).permutation(len(x)) < len(x) // 4
        check = rows.at(checks)
        kept = rows.at(~checks)
        if not self._can_choose(kept, check):
            self.boosters_ = self._trees(rows, [4 * self.rounds] * targets.shape[1])
            return self
        self.boosters_ = self._trees(kept, [20 * self.rounds] * targets.shape[1], check)
        counts = [max(round(1.3 * booster.best_iteration), 10) for booster in self.boosters_]
        self.splines_ = self._additive(kept)
        if self.splines_ is not None:
            parts = self._of_trees(check.x), self._of_splines(check.x)
            losses = np.stack(
                [self._losses(_mixed(share, *parts), check) for share in SPLINE_SHARES]
            )
            self.shares_ = SPLINE_SHARES[losses.argmin(axis=0)]
            self.splines_ = self._additive(rows) if self.shares_.any() else None
        self.boosters_ = self._trees(rows, counts)
        return self

    def _can_choose(self, kept: Targets, check: Targets) -> bool:
        """Return whether rows can be held out: some, and with all classes on both sides."""
        if not self.classifier:
            return len(check.y) > 0
        return all(len(np.unique(part.y)) == len(self.classes_) for part in (kept, check))

    def _trees(
        self, rows: Targets, rounds: list[int], check: Targets | None = None
    ) -> list[lightgbm.Booster]:
        """Return a booster for each target, stopped early where there are rows to check."""
        classes = len(self.classes_) if self.classifier else 0
        objective = {0: "regression", 2: "binary"}.get(classes, "multiclass")
        many = len(rows.y) >= MANY_ROWS
        settings = {
            "objective": objective,
            "num_class": classes if objective == "multiclass" else 1,
            "num_leaves": (31 if self.rounds > 20 else 47) if many else 8,
            "learning_rate": min(8 / self.rounds, 0.3) if many else min(2 / self.rounds, 0.1),
            # fewer than four columns hide interactions
            "feature_fraction": min(max(0.5, 4 / rows.x.shape[1]), 1.0),
            "seed": self.random_state or 0,
            "num_threads": thread_count(self.n_jobs),
        }
        patience = max(self.rounds, 20)
        return boosted(rows, rounds, settings, self.table_.categorical, check, patience)

    def _additive(self, rows: Targets) -> Pipeline | None:
        """Return the additive model, or None where it had too many columns."""
        categorical = self.table_.categorical
        distinct = [len(np.unique(column[~np.isnan(column)])) for column in rows.x.T]
        levels = [
            j
            for j, count in enumerate(distinct)
            if count > 2 and (j in categorical or count <= KNOTS)
        ]
        lines = [j for j in range(len(distinct)) if j not in levels]
        curves = [j for j in lines if distinct[j] > KNOTS]
        indicators = sum(min(distinct[j], MOST_COLUMNS) for j in levels)
        if len(lines) + (KNOTS + 2) * len(curves) + indicators > MOST_WIDTH:
            return None
        filled = SimpleImputer(strategy="median", keep_empty_features=True)
        ranks = QuantileTransformer(n_quantiles=min(200, len(rows.y)))
        splines = SplineTransformer(KNOTS, sparse_output=True)
        one_hot = OneHotEncoder(
            min_frequency=10, max_categories=MOST_COLUMNS, handle_unknown="infrequent_if_exist"
        )
        columns = ColumnTransformer(
            [
                ("lines", make_pipeline(filled, MinMaxScaler(clip=True)), lines),
                ("curves", make_pipeline(filled, ranks, splines), curves),
                ("levels", one_hot, levels),
            ],
            sparse_threshold=1.0,
        )
        if self.classifier:
            model: Any = LogisticRegression(C=0.5, solver="newton-cholesky", max_iter=50)
            y = rows.y[:, 0]
        else:
            model = RidgeCV(np.logspace(-1, 4, 11), alpha_per_target=rows.y.shape[1] > 1)
            y = rows.y
        encoded = csr_array(columns.fit_transform(rows.x))
        with warnings.catch_warnings():
            # the held-out rows decide how far a model counts, converged or not
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(encoded.toarray(), y, sample_weight=rows.weights)
        return Pipeline([("columns", columns), ("model", model)])

    def _of_trees(self, x: np.ndarray) -> np.ndarray:
        """Return log-odds, (n, 1), log-probabilities, (n, C), or numbers, (n, q)."""
        return self._normalized(predictions(self.boosters_, x, self.n_jobs))

    def _of_splines(self, x: np.ndarray) -> np.ndarray:
        """Return the same by splines; a product of dense matrices would round by the number of
        rows.
        """
        assert self.splines_ is not None
        model = self.splines_["model"]
        encoded = csr_array(self.splines_["columns"].transform(x))
        return self._normalized(encoded @ np.atleast_2d(model.coef_).T + model.intercept_)

    def _normalized(self, margins: np.ndarray) -> np.ndarray:
        """Return margins of several classes as log-probabilities, and others as they are."""
        several = self.classifier and len(self.classes_) > 2
        return np.asarray(log_softmax(margins, axis=1)) if several else margins

    def _losses(self, margins: np.ndarray, rows: Targets) -> np.ndarray:
        """Return the mean loss of each target, (q,)."""
        if not self.classifier:
            return np.asarray(rows.weights @ (margins - rows.y) ** 2)
        log = np.log(np.maximum(self._probabilities(margins), 1e-12))
        return np.array([-(rows.weights * log[np.arange(len(log)), rows.y[:, 0]]).sum()])

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        if margins.shape[1] > 1:
            return np.asarray(softmax(margins, axis=1))
        return np.column_stack([expit(-margins), expit(margins)])

    def _margins(self, X: Any) -> np.ndarray:
        x = self.table_.codes(X)
        trees = self._of_trees(x)
        if self.splines_ is None:
            return trees
        return _mixed(self.shares_, trees, self._of_splines(x))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class."""
        check_is_fitted(self)
        return self._probabilities(self._margins(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return labels, (n,), or numbers, (n,) or (n, q)."""
        check_is_fitted(self)
        if self.classifier:
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        margins = self._margins(X)
        return margins if margins.shape[1] > 1 else margins[:, 0]


def boosted(
    rows: Targets,
    rounds: Sequence[int],
    settings: dict[str, Any],
    categorical: list[int],
    check: Targets | None = None,
    patience: int = 0,
) -> list[lightgbm.Booster]:
    """Return a booster for each target; all share the binned table. Where there are rows to check,
    each stops once so many trees have not helped.
    """
    # LightGBM would try both ways to make histograms, which takes as long as a tree, and chance
    # would decide the last bits
    by_rows = rows.x.shape[1] <= MOST_BY_ROWS
    settings = settings | {
        "force_row_wise" if by_rows else "force_col_wise": True,
        "verbose": -1,
    }
    more: Any = {"params": settings, "categorical_feature": categorical}
    data = lightgbm.Dataset(rows.x, rows.y[:, 0], weight=rows.weights, **more).construct()
    checked: Any = {}
    if check is not None:
        held_out = lightgbm.Dataset(
            check.x, check.y[:, 0], weight=check.weights, reference=data, **more
        ).construct()
        stop = lightgbm.early_stopping(patience, verbose=False)
        checked = {"valid_sets": [held_out], "callbacks": [stop]}
    boosters = []
    for j, count in enumerate(rounds):
        data.set_label(rows.y[:, j])
        if check is not None:
            held_out.set_label(check.y[:, j])
        boosters.append(lightgbm.train(settings, data, count, **checked))
    return boosters


def predictions(
    boosters: Sequence[lightgbm.Booster], x: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Return what boosters predict, before any link, as columns."""
    threads = thread_count(n_jobs)
    return np.column_stack(
        [booster.predict(x, raw_score=True, num_threads=threads) for booster in boosters]
    )


def _mixed(share: Any, trees: np.ndarray, splines: np.ndarray) -> np.ndarray:
    return np.asarray((1 - share) * trees + share * splines)


class BoostedMeans(RegressorMixin, BaseEstimator):
    """The model of a coupling for all :math:`m_k` at once: a LightGBM for each k, which share the
    binned table.

    The trees are smaller and fewer than the defaults of LightGBM: most of what tells S is simple.
    """

    def __init__(self, n_estimators: int = 40, *, n_jobs: int | None = None) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        self.table_ = TreeTable().fit(X)
        rows = Targets(self.table_.codes(X), y, sample_weight)
        settings = {
            "num_leaves": 15,
            "learning_rate": 0.15,
            "num_threads": thread_count(self.n_jobs),
        }
        rounds = [self.n_estimators] * y.shape[1]
        self.boosters_ = boosted(rows, rounds, settings, self.table_.categorical)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the conditional means, (n, K)."""
        check_is_fitted(self)
        return predictions(self.boosters_, self.table_.codes(X), self.n_jobs)


def told_directions(
    X: Any, targets: np.ndarray, weights: np.ndarray, part: np.ndarray, n_jobs: int | None
) -> np.ndarray:
    """Return the :func:`predicted_directions` of some targets, (K, R), where a part of the rows and
    the others are predicted by small trees of each other.
    """
    means = np.empty_like(targets)
    for own in (part, ~part):
        model = BoostedMeans(PILOT_ROUNDS, n_jobs=n_jobs)
        model.fit(_safe_indexing(X, np.flatnonzero(~own)), targets[~own], weights[~own])
        means[own] = model.predict(_safe_indexing(X, np.flatnonzero(own)))
    return predicted_directions(means, targets, weights)


def predicted_directions(means: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Return orthonormal combinations of some targets that X tells, (K, R), at least one.

    They are eigenvectors of :math:`E[\hat m(X) \varphi(S)^\top]`, symmetrized, for means of models
    that have not seen the rows, (n, K), and targets (n, K). What x tells of an attribute mostly has
    few dimensions. A direction is kept if its eigenvalue, the variance that x explains along it,
    exceeds a hundredth of all eigenvalues, and what noise would reach: the largest eigenvalue of a
    symmetric matrix of K rows of noise is about :math:`\sqrt{2K}` standard errors, and we ask for
    one more. Along any other direction a score of x has hardly a gap, since :math:`E[f(X)
    \varphi(S)] = E[f(X) m(X)]`.
    """
    shares = weights / weights.sum()
    covariance = (shares[:, None] * means).T @ targets
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    products = (means @ vectors) * (targets @ vectors)
    errors = np.sqrt((shares[:, None] ** 2 * (products - values) ** 2).sum(axis=0))
    noise = (np.sqrt(2 * len(values)) + 1) * errors
    told = (values > noise) & (values > TOLD * np.maximum(values, 0).sum())
    told[-1] = True
    vectors = vectors[:, told][:, ::-1]
    sign = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    return np.asarray(vectors * sign)


def limit_boosters(model: Any, n_jobs: int | None) -> Any:
    """Return a model in which LightGBM and XGBoost, which otherwise take all cores, have n_jobs
    threads; an `n_jobs` of their own stays.
    """
    parts = {"": model} | model.get_params()
    limits = {}
    for name, value in parts.items():
        owner = parts.get(name.removesuffix("n_jobs").removesuffix("__"))
        libraries = {base.__module__.partition(".")[0] for base in type(owner).__mro__}
        if name.endswith("n_jobs") and value is None and libraries & {"lightgbm", "xgboost"}:
            limits[name] = thread_count(n_jobs)
    return model.set_params(**limits)


def fold_of_rows(
    X: Any, cv: Any, labels: np.ndarray | None, groups: np.ndarray | None, seed: int
) -> np.ndarray:
    """Return the fold of each row of X, by a splitter, by pairs of rows (train, test), or by a
    number of folds: then stratified by labels where there are some, with each group in one fold.

    Examples
    --------
    >>> fold_of_rows(np.zeros(4), 2, None, np.array(["a", "a", "b", "b"]), 0).tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """
    if isinstance(cv, Integral):
        if labels is None:
            kind: Any = KFold if groups is None else GroupKFold
        else:
            kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(cv, shuffle=True, random_state=seed % 2**32)
    rows = np.arange(_num_samples(X))
    pairs = cv if np.iterable(cv) else cv.split(X, labels, groups)
    try:
        parts = [(rows[pair[0]], rows[pair[1]]) for pair in pairs if hasattr(pair, "__len__")]
    except IndexError:  # folds of other rows
        parts = []
    parts = [part for part in parts if len(part[1])]  # groups can leave a fold empty
    fold = np.full(len(rows), -1)
    for j, (_, held_out) in enumerate(parts):
        fold[held_out] = j
    once = (fold >= 0).all() and sum(len(held_out) for _, held_out in parts) == len(rows)
    if not once or not all(
        len(train) and np.array_equal(np.sort(train), rows[fold != j])
        for j, (train, _) in enumerate(parts)
    ):
        raise ValueError(
            f"cv is {printable(repr(cv), 80)}, but each of these {len(rows):,} rows has to be"
            " tested once, by models of all other rows. Pass a number of folds, a splitter that"
            " does so, such as GroupKFold, or PredefinedSplit(folds) with the fold of each row."
        )
    if groups is not None and pd.Series(fold).groupby(groups).nunique().max() > 1:
        raise ValueError(
            f"cv is {printable(repr(cv), 80)}, but it has rows of one group in several folds. Pass"
            " GroupKFold, or fit without groups."
        )
    return fold
