r"""What parity needs to know of x: functions of S, their conditional means given x, and the folds
that fit them.

.. math:: m_k(x) = \mathbb E[\varphi_k(S) \mid x], \qquad \mathbb E\,\varphi_k(S) = 0, \quad
    \mathbb E\,\varphi_j(S) \varphi_k(S) = \delta_{jk}.

The closed form of predictors and the coupling of tables share these regressions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import lightgbm
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from frhsic._threads import thread_count
from frhsic.tables.columns import LARGEST_FEATURE, days, is_frame, kind_of, numbers, to_pandas

# Cosines of the rank of a continuous attribute.
FUNCTIONS = 8

# An attribute with at most so many levels gets as many functions as it takes to tell all levels
# apart.
MOST_LEVELS = 16

# A value that has at least this share of the rows, such as zero income, gets a function of its own.
ATOM = 0.05

# Rows from which on the default trees need no early stopping, and no linear model beside them.
STOPPED_ROWS, LINEAR_ROWS = 20_000, 10_000

# Shares of a linear model beside the default trees that are tried.
SHARES = np.linspace(0, 1, 11)

# Points of a law of scores given S; width of its smoothing, in ranks of S; rows that the neighbours
# count for.
LAW_POINTS, LAW_WIDTH, LAW_ROWS = 201, 0.02, 100.0

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
        mass = mass / mass.sum()
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
        kept = (
            np.abs(np.diag(triangle))[1:] > 1e-8
        )  # a frequent value may lie in the span of the others
        sign = np.sign(np.diag(triangle))[1:][kept]
        return cls(starts, mass, orthonormal[:, 1:][:, kept] * sign / root)

    def node(self, s: np.ndarray) -> np.ndarray:
        """Return the node of each value; values beyond the fitted range belong to the first or the
        last.
        """
        return np.asarray(np.clip(np.searchsorted(self.starts, s, side="right") - 1, 0, None))

    def __call__(self, s: np.ndarray) -> np.ndarray:
        """Return the functions at values (n,) as (n, K)."""
        return np.asarray(self.values[self.node(s)])


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
            columns = (column for _, column in to_pandas(X).items())
            self.levels_ = [
                (
                    np.array(pd.unique(c.dropna().astype(str)), dtype=str)
                    if kind_of(c) == "category"
                    else None
                )
                for c in columns
            ]
        return self

    def codes(self, X: Any) -> np.ndarray:
        """Return the table as numbers: categories by their codes, which a booster does not write to
        its file.
        """
        check_is_fitted(self)
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "levels_")


class Hinges(TransformerMixin, BaseEstimator):
    """Each column and what it exceeds its quintiles by, so that a linear model can bend there."""

    def fit(self, X: np.ndarray, y: Any = None) -> Self:
        self.knots_ = np.quantile(X, np.arange(1, 5) / 5, axis=0)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        if X.shape[1] != self.knots_.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns; fitted were {self.knots_.shape[1]}.")
        return np.column_stack([X, *(np.maximum(X - knots, 0.0) for knots in self.knots_)])


class BoostedTrees(BaseEstimator):
    """The default model of y: LightGBM on the table as it comes, and on few rows a linear model
    beside it.

    There are 100 trees of 15 leaves, with half of the columns each, but at least four. Below 20,000
    rows they have eight leaves and half of the learning rate, and a sixth of the rows chooses their
    number by early stopping, times 1.3, since the mean of several such models is served. Below
    10,000 rows their log-probabilities or numbers are averaged with those of a linear model with
    hinges, whose share the same sixth chooses.
    """

    def __init__(
        self, classifier: bool = True, *, n_jobs: int | None = None, random_state: int | None = None
    ) -> None:
        self.classifier = classifier
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        self.table_ = TreeTable().fit(X)
        x, trees, small = self.table_.codes(X), 100, len(y) < STOPPED_ROWS
        categorical = {"categorical_feature": self.table_.categorical}
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        target = y
        if self.classifier:  # LightGBM does not encode the labels of eval_y
            self.classes_, target = np.unique(y, return_inverse=True)
        self.share_, self.linear_ = 0.0, None
        held_out = np.random.default_rng(self.random_state).permutation(len(y)) < len(y) // 6
        if small and (len(np.unique(y[held_out])) == len(np.unique(y)) or not self.classifier):
            kept = ~held_out
            checked = {
                "eval_X": x[held_out],
                "eval_y": target[held_out],
                "eval_sample_weight": [weights[held_out]],
            }
            checked["callbacks"] = [lightgbm.early_stopping(50, verbose=False)]
            first = self._trees(800, small, x.shape[1])
            first.fit(x[kept], target[kept], weights[kept], **checked, **categorical)
            trees = max(round(1.3 * first.best_iteration_), 10)
            if len(y) < LINEAR_ROWS:
                linear = self._linear(x[kept], target[kept], weights[kept])
                parts = self._of_trees(first, x[held_out]), self._of_line(linear, x[held_out])
                losses = [
                    self._loss(share, *parts, target[held_out], weights[held_out])
                    for share in SHARES
                ]
                self.share_ = float(SHARES[np.argmin(losses)])
                self.linear_ = self._linear(x, target, weights)
        self.model_ = self._trees(trees, small, x.shape[1]).fit(
            x, target, sample_weight, **categorical
        )
        return self

    def _trees(self, trees: int, small: bool, columns: int) -> Any:
        kind = lightgbm.LGBMClassifier if self.classifier else lightgbm.LGBMRegressor
        size: Any = (
            {"num_leaves": 8, "learning_rate": 0.05}
            if small
            else {"num_leaves": 15, "learning_rate": 0.1}
        )
        # fewer than four columns hide interactions
        size |= {"n_estimators": trees, "colsample_bytree": min(max(0.5, 4 / max(columns, 1)), 1.0)}
        return kind(
            **size, random_state=self.random_state, n_jobs=thread_count(self.n_jobs), verbose=-1
        )

    def _linear(self, x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Any:
        categorical = self.table_.categorical
        numeric = [j for j in range(x.shape[1]) if j not in categorical]
        hinges = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True), Hinges(), StandardScaler()
        )
        levels = OneHotEncoder(min_frequency=10, handle_unknown="infrequent_if_exist")
        columns = ColumnTransformer([("numbers", hinges, numeric), ("levels", levels, categorical)])
        model = (
            LogisticRegression(C=0.1, max_iter=200)
            if self.classifier
            else RidgeCV(np.logspace(-1, 4, 11))
        )
        return Pipeline([("columns", columns), ("model", model)]).fit(
            x, y, model__sample_weight=weights
        )

    def _of_trees(self, model: Any, x: np.ndarray) -> np.ndarray:
        """Return log-probabilities or numbers."""
        return (
            np.log(np.clip(model.predict_proba(x), 1e-9, 1))
            if self.classifier
            else np.asarray(model.predict(x))
        )

    def _of_line(self, model: Any, x: np.ndarray) -> np.ndarray:
        """Return log-probabilities or numbers; a product of dense matrices would round by the
        number of rows.
        """
        margin = csr_array(model[:-1].transform(x)) @ model[-1].coef_.T + model[-1].intercept_
        if not self.classifier:
            return np.asarray(margin)
        margin = (
            np.column_stack([np.zeros(len(margin)), margin]) if margin.shape[1] == 1 else margin
        )
        return np.asarray(log_softmax(margin, axis=1))

    def _loss(
        self,
        share: float,
        trees: np.ndarray,
        linear: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray,
    ) -> float:
        mean = (1 - share) * trees + share * linear
        losses = (
            -log_softmax(mean, axis=1)[np.arange(len(y)), y] if self.classifier else (mean - y) ** 2
        )
        return float(np.average(losses, weights=weights))

    def _mean(self, X: Any) -> np.ndarray:
        x = self.table_.codes(X)
        trees = self._of_trees(self.model_, x)
        if self.linear_ is None:
            return trees
        return (1 - self.share_) * trees + self.share_ * self._of_line(self.linear_, x)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class."""
        return np.asarray(softmax(self._mean(X), axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Return labels or numbers."""
        mean = self._mean(X)
        return np.asarray(self.classes_[mean.argmax(axis=1)] if self.classifier else mean)


class BoostedMeans(RegressorMixin, BaseEstimator):
    """The default model of all :math:`m_k` at once: a LightGBM for each k, which share the binned
    table.

    The trees are smaller and fewer than the defaults of LightGBM: most of what tells S is simple.
    """

    def __init__(self, n_estimators: int = 40, *, n_jobs: int | None = None) -> None:
        self.n_estimators = n_estimators
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        self.table_ = TreeTable().fit(X)
        settings = {
            "num_leaves": 15,
            "learning_rate": 0.15,
            "num_threads": thread_count(self.n_jobs),
            "verbose": -1,
        }
        x, categorical = self.table_.codes(X), self.table_.categorical
        rows = lightgbm.Dataset(
            x, y[:, 0], weight=sample_weight, params=settings, categorical_feature=categorical
        )
        self.boosters_ = []
        for column in y.T:
            rows.construct().set_label(column)
            self.boosters_.append(lightgbm.train(settings, rows, self.n_estimators))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the conditional means, (n, K)."""
        check_is_fitted(self)
        x = self.table_.codes(X)
        threads = thread_count(self.n_jobs)
        return np.column_stack(
            [booster.predict(x, num_threads=threads) for booster in self.boosters_]
        )


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


class ConditionalLaw(BaseEstimator):
    r"""The law of a score given one attribute, which moves a score to where parity needs it.

    .. math:: T(f, s) = Q\bigl(F(f \mid s)\bigr)

    with the distribution function F of the score given S = s and the quantiles Q of all rows. With
    the true F, the law of :math:`T(f, S)` given S = s is the same for every s. F is that of the
    rows at a node of S, shrunk towards that of the nodes near it, which count as much as 100 rows
    at the node.
    """

    def fit(
        self, score: np.ndarray, s: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> Self:
        basis = SensitiveBasis.fit(s, sample_weight)
        weights = (
            np.ones(len(s))
            if sample_weight is None
            else sample_weight * (len(s) / sample_weight.sum())
        )
        self.starts_, nodes = basis.starts, len(basis.mass)
        self.grid_ = np.unique(np.quantile(score, np.linspace(0, 1, LAW_POINTS)))
        bins = max(len(self.grid_) - 1, 1)
        cell = np.clip(np.searchsorted(self.grid_, score, side="right") - 1, 0, bins - 1)
        table = np.bincount(basis.node(s) * bins + cell, weights, minlength=nodes * bins).reshape(
            nodes, bins
        )
        rank = np.cumsum(basis.mass) - basis.mass / 2
        near = (
            np.exp(-0.5 * ((rank[:, None] - rank) / LAW_WIDTH) ** 2)
            if nodes > MOST_LEVELS
            else np.eye(nodes)
        )
        smooth = near @ table
        smooth /= smooth.sum(axis=1, keepdims=True)
        rows = table.sum(axis=1, keepdims=True)
        share = (table + LAW_ROWS * smooth) / (rows + LAW_ROWS)
        self.table_ = np.column_stack([np.zeros(nodes), share.cumsum(axis=1)])
        self.pooled_ = np.append(0.0, (table.sum(axis=0) / table.sum()).cumsum())
        return self

    def predict(self, score: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return T of scores at values of the attribute: beyond the fitted range its ends count,
        without a value f.
        """
        if len(self.grid_) < 2:
            return score
        node = np.clip(np.searchsorted(self.starts_, s, side="right") - 1, 0, None)
        cell = np.clip(np.searchsorted(self.grid_, score, side="right") - 1, 0, len(self.grid_) - 2)
        width = self.grid_[cell + 1] - self.grid_[cell]
        along = np.clip((score - self.grid_[cell]) / width, 0.0, 1.0)
        rank = self.table_[node, cell] * (1 - along) + self.table_[node, cell + 1] * along
        return np.where(np.isnan(s), score, np.interp(rank, self.pooled_, self.grid_))


def fold_of_rows(
    n: int, cv: int, labels: np.ndarray | None, groups: np.ndarray | None, seed: int
) -> np.ndarray:
    """Return the fold of each row: stratified by labels where there are some, with each group in
    one fold.

    Examples
    --------
    >>> fold_of_rows(4, 2, None, np.array(["a", "a", "b", "b"]), 0).tolist() in (
    ...     [0, 0, 1, 1],
    ...     [1, 1, 0, 0],
    ... )
    True
    """
    kinds: Any = ((StratifiedGroupKFold, GroupKFold), (StratifiedKFold, KFold))
    splitter = kinds[groups is None][labels is None](cv, shuffle=True, random_state=seed % 2**32)
    fold = np.empty(n, dtype=np.int64)
    for j, (_, held_out) in enumerate(splitter.split(np.zeros(n), labels, groups)):
        fold[held_out] = j
    return fold
