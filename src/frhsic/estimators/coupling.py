"""Tables that reveal almost nothing about S, from a maximal coupling of the distribution of rows
given S with the pooled distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import product
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from frhsic._threads import limit_to_n_jobs
from frhsic.estimators.basis import MOST_LEVELS, SensitiveBasis, ranges
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.engine import Engine, fit_engine
from frhsic.estimators.fitting import cross_fit, predict_models
from frhsic.estimators.folds import ADMITTED_FOLDS, fold_of_rows
from frhsic.estimators.inputs import (
    ROUTING,
    checked_table,
    estimator_seed,
    named_arguments,
    sensitive_values,
    warn_without_attributes,
)
from frhsic.estimators.responses import Response
from frhsic.tables.columns import is_frame, to_pandas
from frhsic.tables.schema import Schema


@dataclass(frozen=True)
class ExchangeSettings:
    """Settings of the coupling."""

    # maximum number of products of functions of several attributes (those of the lowest total order
    # are used), and of joint nodes
    functions: int = 24
    nodes: int = 256
    # smallest ratio, before ratios are scaled to mean one
    least_ratio: float = 0.02
    # proposed swaps per removed row when the removed rows are permuted
    sweeps: int = 100
    # cost of moving a row along S; it grows with the number of rows, since tests on more rows
    # detect weaker dependence
    move: float = 0.5
    # share of the distance that is due to predictions of y, and maximum number of distinct levels
    # of a category
    named: float = 0.9
    levels: int = 60
    # number of rows assigned to places at once
    assigned: int = 700
    # smallest number of new rows that can be exchanged with each other
    fewest: int = 200
    # number of rows whose ratio is computed at once
    chunk: int = 65_536


EXCHANGE = ExchangeSettings()


@dataclass(frozen=True, eq=False)
class JointBasis:
    r"""Functions of one or several attributes that are orthonormal under the attributes' joint
    distribution.

    The functions span products :math:`\prod_j \varphi_{k_j}(s_j)` of the functions of each
    attribute. They are constant on nodes, which are the combinations of groups of values that occur
    in the data.

    Attributes
    ----------
    parts
        Functions of each attribute.
    groups
        For each attribute, the group of each of its nodes.
    places
        Joint node of each combination of groups, (G₁, …, G_q), or the nearest node if the
        combination does not occur.
    mass
        Share of the rows in each joint node, (M,).
    values
        The functions at each node, (M, K).
    """

    parts: tuple[SensitiveBasis, ...]
    groups: tuple[np.ndarray, ...]
    places: np.ndarray
    mass: np.ndarray
    values: np.ndarray

    @classmethod
    def fit(cls, s: np.ndarray, weights: np.ndarray | None = None) -> Self:
        """Learn the nodes and functions from attributes (n, q) without NaN and the weights of the
        rows.
        """
        parts = tuple(SensitiveBasis.fit(column, weights) for column in s.T)
        groups = tuple(ranges(part.mass, int(EXCHANGE.nodes ** (1 / len(parts)))) for part in parts)
        codes = np.column_stack(
            [group[part.node(column)] for part, group, column in zip(parts, groups, s.T)]
        )
        cells, node = np.unique(codes, axis=0, return_inverse=True)
        mass = np.bincount(node.ravel(), weights)
        mass = mass / mass.sum()
        shape = tuple(int(group[-1]) + 1 for group in groups)
        everywhere = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1)
        distances = cdist(everywhere.reshape(-1, len(parts)), cells, "cityblock")
        places = distances.argmin(axis=1).reshape(shape)
        means = [
            _group_means(part, group)[cells[:, j]]
            for j, (part, group) in enumerate(zip(parts, groups))
        ]
        orders = sorted(product(*(range(mean.shape[1]) for mean in means)), key=sum)
        kept: list[np.ndarray] = []
        # the first function is constant; functions in the span of the others are dropped
        for order in orders[: 1 + EXCHANGE.functions]:
            function = np.prod([mean[:, k] for mean, k in zip(means, order)], axis=0)
            for earlier in kept:
                function = function - (mass * earlier) @ function * earlier
            if (norm := np.sqrt(mass @ function**2)) > 1e-6:
                kept.append(function / norm)
        return cls(parts, groups, places, mass, np.column_stack(kept[1:]))

    def node(self, s: np.ndarray) -> np.ndarray:
        """Return the joint node of each row, given its attributes, (n, q)."""
        codes = (
            group[part.node(column)] for part, group, column in zip(self.parts, self.groups, s.T)
        )
        return np.asarray(self.places[tuple(codes)])

    def ranks(self, s: np.ndarray) -> np.ndarray:
        """Return the rank of each attribute, (n, q), from 0 to 1. For an attribute with few levels,
        return the indices of the levels, multiplied by 1,000 to keep the levels far apart.
        """
        ranks = []
        for part, column in zip(self.parts, s.T):
            if len(part.mass) <= MOST_LEVELS:
                places = np.arange(len(part.mass)) * 1e3
            else:
                places = np.cumsum(part.mass) - part.mass / 2
            ranks.append(places[part.node(column)])
        return np.column_stack(ranks)


def _group_means(part: SensitiveBasis, group: np.ndarray) -> np.ndarray:
    """Return a constant and the mean of each function for each group of nodes, (G, 1 + K)."""
    sums = np.zeros((int(group[-1]) + 1, part.values.shape[1]))
    np.add.at(sums, group, part.mass[:, None] * part.values)
    return np.column_stack([np.ones(len(sums)), sums / np.bincount(group, part.mass)[:, None]])


@dataclass(frozen=True, eq=False)
class DensityRatio:
    r"""Estimate of :math:`r(x, s) = p(s \mid x) / p(s)` from conditional means.

    .. math:: r(x, s) = a(x)\, b(s) \max\bigl(\epsilon, 1 + \textstyle\sum_{jk} m_j(x) C_{jk}
        \varphi_k(s)\bigr)

    C is the coefficient matrix of a regression of :math:`\varphi(S)` on the out-of-fold m(X). This
    regression shrinks the parts of m that don't generalize. The factors a and b scale r so that its
    mean over s is one for each x, and its mean over x is one for each s.
    """

    basis: JointBasis
    calibration: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, basis: JointBasis, m: np.ndarray, node: np.ndarray, weights: np.ndarray) -> Self:
        """Fit the ratio to out-of-fold means (n, K), the nodes of S (n,), and weights (n,) that sum
        to one.
        """
        weighted = weights[:, None] * m
        ridge = 1e-4 * np.eye(m.shape[1])
        calibration = np.linalg.solve(weighted.T @ m + ridge, weighted.T @ basis.values[node])
        some = slice(None, None, -(-len(m) // EXCHANGE.chunk))
        share = weights[some] / weights[some].sum()
        scale = np.ones(len(basis.mass))
        for _ in range(50):
            scale = scale / np.maximum(share @ cls(basis, calibration, scale)(m[some]), 1e-12)
        return cls(basis, calibration, scale)

    def __call__(self, m: np.ndarray) -> np.ndarray:
        """Return the ratio for each row and each node, (n, M)."""
        ratio = 1 + m @ self.calibration @ self.basis.values.T
        positive = np.maximum(ratio, EXCHANGE.least_ratio) * self.scale
        return np.asarray(positive / (positive @ self.basis.mass)[:, None])

    def node_ratios(self, m: np.ndarray, node: np.ndarray) -> np.ndarray:
        """Return the ratio of each row at the row's own node, (n,)."""
        return np.concatenate(
            [self(m[i])[np.arange(len(node[i])), node[i]] for i in _chunks(len(m))]
        )


def _chunks(n: int) -> Iterator[slice]:
    return (slice(i, i + EXCHANGE.chunk) for i in range(0, n, EXCHANGE.chunk))


def permutation(wanted: np.ndarray, node: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    r"""Draw a permutation with :math:`P(\pi) \propto \prod_i w(\pi_i, \text{node}_i)` by swapping
    random pairs.

    Parameters
    ----------
    wanted
        Logarithm of the weight of each row at each node, (k, M).
    node
        Node of each position, (k,).
    """
    k = len(node)
    rows = rng.permutation(k)
    for _ in range(EXCHANGE.sweeps):
        a, b = rng.permutation(k)[: k // 2 * 2].reshape(2, -1)
        gain = (
            wanted[rows[b], node[a]]
            + wanted[rows[a], node[b]]
            - wanted[rows[a], node[a]]
            - wanted[rows[b], node[b]]
        )
        accepted = np.log(rng.random(len(a))) < gain
        exchanged = np.concatenate([a[accepted], b[accepted]])
        rows[exchanged] = rows[np.concatenate([b[accepted], a[accepted]])]
    return rows


def release_rows(
    ratio: DensityRatio, m: np.ndarray, node: np.ndarray, amount: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the row assigned to each position, a permutation (n,), and a mask of the positions
    whose rows were removed, (n,).

    A row is removed with probability :math:`\text{amount} \cdot (1 - 1/r)_+`. Systematic sampling
    along S keeps the number of removed rows in each range of S close to its expected value. The
    removed rows are permuted among their positions with weights :math:`(1 - r)_+`.
    """
    chance = amount * (1 - 1 / np.maximum(ratio.node_ratios(m, node), 1))
    order = np.lexsort((chance, node))
    removed = np.zeros(len(node), bool)
    rows = np.arange(len(node))
    removed[order] = np.diff(np.floor(np.cumsum(np.r_[rng.random(), chance[order]]))) > 0
    places = np.flatnonzero(removed)
    # the small constant lets a row pass through places of weight 0
    wanted = [
        np.log(np.maximum(1 - ratio(m[places[i]]), 0) + 1e-3).astype(np.float32)
        for i in _chunks(len(places))
    ]
    if len(places):
        rows[places] = places[permutation(np.concatenate(wanted), node[places], rng)]
    return rows, removed


def embed_rows(encoded: np.ndarray, categorical: Collection[int]) -> np.ndarray:
    """Return columns (n, p) for measuring the squared distance between rows: the ranks of numbers,
    and indicators of levels.

    The mean squared distance between two random rows is 2, and each column contributes equally.
    """
    blocks = []
    for j, column in enumerate(encoded.T):
        values = pd.Series(column)
        if j not in categorical:
            rank = values.rank(pct=True)
            scaled = ((rank - rank.mean()) / max(rank.std(), 1e-9)).fillna(0.0)
            blocks.append(scaled.to_numpy()[:, None])
            values = values.isna()
            if not values.any():
                continue
        levels = values.fillna(-1)
        shares = levels.value_counts(normalize=True)
        if len(shares) > 1:
            indicators = np.column_stack(
                [levels == level for level in shares.index[: EXCHANGE.levels]]
            )
            apart = 1 - (shares**2).sum()
            blocks.append((indicators - shares.to_numpy()[: EXCHANGE.levels]) / np.sqrt(apart))
    columns = np.column_stack([np.zeros((len(encoded), 0)), *blocks])
    return np.asarray(columns / np.sqrt(encoded.shape[1]))


def exchange_rows(
    rows: np.ndarray, node: np.ndarray, places: np.ndarray, offers: np.ndarray
) -> np.ndarray:
    r"""Return a new assignment of rows to positions, (k,), that moves rows as little as possible.

    .. math:: \min_\pi \sum_i \|\text{places}_i - \text{offers}_{\pi_i}\|^2

    Both `places` and `offers` contain the columns of :func:`embed_rows` and the ranks of S. The
    ranks of an offered row are those of the position to which the permutation assigned the row.
    Positions with similar nodes are assigned together.
    """
    rows = rows.copy()
    order = np.argsort(node, kind="stable")
    for some in np.array_split(order, -(-len(order) // EXCHANGE.assigned)):
        costs = cdist(places[some], offers[rows[some]], "sqeuclidean")
        rows[some] = rows[some][linear_sum_assignment(costs)[1]]
    return rows


def _standardize(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9))


class ParityCoupling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Transformer that returns a table Z with the columns of X and a distribution that doesn't
    depend on the sensitive attributes S.

    .. math:: P(Z = x \mid X = x, s) = \min\bigl(1, 1/r(x, s)\bigr), \qquad
        \text{else } Z \sim p(x') \bigl(1 - r(x', s)\bigr)_+, \qquad r(x, s) = \frac{p(x \mid
        s)}{p(x)}.

    Z then has the same distribution p(x) for every s, with as many rows as possible left unchanged.
    By default, the ratio is estimated with additive splines and boosted trees. `transform` also
    requires S. The removed rows of a table are exchanged with each other, so a new table needs at
    least 200 rows. If you know what Z will predict, use :class:`ParityEncoder`, which encodes each
    row separately.

    Use Z to share tables or embeddings and to train on them. A replaced row comes from another
    person, so don't use Z to make decisions about individuals. Z is not anonymous. Share only one
    release, and never the list of changed rows: several releases, or a release and this list, can
    reveal more about S than X does.

    Parameters
    ----------
    estimator : regressor, optional
        Model for the conditional means E[φ(S) | x], which must support several targets. None uses a
        weighted mean of additive splines and LightGBM trees.
    amount : float
        A number from 0 to 1. Each row is left unchanged with probability 1 - amount, regardless of
        its ratio. The dependence on S is reduced in proportion to the amount.
    cv, n_jobs, random_state
        Folds and threads, as in :class:`ParityClassifier`, and the seed for folds, removals and
        exchanges.

    Attributes
    ----------
    untouched_ : float
        Share of the fitted rows that stay unchanged.
    ratio_
        The estimated ratio r.
    models_
        For each fold, your own models of the conditional means and of y; empty for the default
        models.
    move_cost_
        Cost of exchanging rows along S.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=2000)
    >>> X = (age + rng.normal(scale=10, size=2000))[:, None]
    >>> Z = ParityCoupling(random_state=0).fit_transform(X, sensitive_features=age)
    >>> (
    ...     bool(np.corrcoef(X[:, 0], age)[0, 1] > 0.7),
    ...     bool(abs(np.corrcoef(Z[:, 0], age)[0, 1]) < 0.1),
    ... )
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "amount": [Interval(Real, 0, 1, closed="both")],
        "cv": ADMITTED_FOLDS,
    }

    ratio_: DensityRatio
    engine_: Engine | None
    models_: list[Any]
    untouched_: float

    def __init__(
        self,
        estimator: Any = None,
        *,
        amount: float = 1.0,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.amount = amount
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @named_arguments
    @limit_to_n_jobs
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the ratio and couple the rows.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Columns of any type, without the sensitive attributes.
        y : array or DataFrame of shape (n,) or (n, t), optional
            Columns that will be predicted from Z, such as targets; they may be numbers or
            categories. Rows are then exchanged with rows that have similar predictions of y, which
            preserves more of the information in X about y. Z does not depend on y in any other way.
        sensitive_features : array, Series, DataFrame or names of columns of X, optional
            Attributes of shape (n,) or (n, q) that Z must be jointly independent of. Columns passed
            by name are removed from Z. A missing value is treated as a level below all others.
            Without attributes, rows are left unchanged, with a warning.
        sample_weight : array of shape (n,), optional
            Weights of the rows for fitting the ratio. To use Z with weights, include the weights as
            a column of X, so that Z and the weights are jointly independent of S.
        groups : array of shape (n,) or the name of a column of X, optional
            Rows of one group, such as those of one person, stay in the same fold.
        """
        self._validate_params()
        others = {
            "sensitive_features": sensitive_features,
            "y": y,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        frame = _as_frame(checked_table(self, X, first=True, **others))
        weights = _check_sample_weight(
            sample_weight, frame, dtype=np.float64, ensure_non_negative=True
        )
        self.random_seed_ = estimator_seed(self.random_state)
        self.sensitive_names_in_ = np.array([], dtype=object)
        if sensitive_features is None:
            warn_without_attributes(self, "transform will return X unchanged")
            return self
        values, names = sensitive_values(sensitive_features, len(frame))
        self.sensitive_names_in_ = np.array(names, dtype=object)
        s = _filled(values)
        if (s == s[0]).all():
            raise ValueError(
                "sensitive_features are the same in every row, so nothing can depend on them."
                " Leave them out."
            )
        self._table = frame
        self._schema = Schema.learn(frame)
        codes = self._schema.codes(frame)
        self._identity = self._identities(codes, s)
        basis = JointBasis.fit(s, weights)
        node = basis.node(s)
        groups = None if groups is None else np.asarray(groups)
        rows = FitRows(
            X=frame,
            codes=codes,
            s=s,
            names=tuple(names),
            weights=weights if np.ptp(weights) else None,
            groups=groups,
            fold=fold_of_rows(frame, self.cv, None, groups, self.random_seed_),
            seed=self.random_seed_,
        )
        phi = basis.values[node]
        m = self._fit_means(rows, Response(_targets(phi, y)))
        means = m[:, : phi.shape[1]]
        self.ratio_ = DensityRatio.fit(basis, means, node, weights / weights.sum())
        # the largest share of variance that x explains in any function of S
        signal = min(0.99, float(np.linalg.norm(means @ self.ratio_.calibration, 2)) ** 2 / len(s))
        self.move_cost_ = EXCHANGE.move * (len(s) * signal / (1 - signal)) ** (2 / 3)
        self._release, removed = self._coupled(codes, s, m, self._identity)
        self.untouched_ = float(1 - removed.mean())
        return self

    @named_arguments
    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Any:
        """Fit, and return Z for the same rows; the parameters are those of :meth:`fit`."""
        self.fit(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, groups=groups
        )
        return self.transform(X, sensitive_features=sensitive_features)

    @named_arguments
    @limit_to_n_jobs
    def transform(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return Z with the columns of X and their types, as a DataFrame if X is a table and
        otherwise as an array.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            All or some of the fitted rows, which get the same Z as in `fit_transform`, or at least
            200 new rows.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q)
            The attributes that the estimator was fitted with.
        """
        check_is_fitted(self)
        table = checked_table(self, X, first=False, sensitive_features=sensitive_features)
        if is_frame(X) and (others := {*map(str, X.columns)} - {*map(str, table.columns)}):
            raise ValueError(
                f"X has columns that were not passed to fit: {', '.join(sorted(others))}. They"
                " would be missing from Z; drop these columns, or fit with them."
            )
        if not len(self.sensitive_names_in_):
            return table
        if sensitive_features is None:
            raise ValueError(
                "transform needs sensitive_features, because Z depends on both X and S. Pass the"
                f" attributes that the estimator was fitted with.{ROUTING}"
            )
        frame = _as_frame(table)
        s = _filled(sensitive_values(sensitive_features, len(frame), self.sensitive_names_in_)[0])
        codes = self._schema.codes(frame)
        identity = self._identities(codes, s)
        position = pd.Index(self._identity).get_indexer(pd.Index(identity))
        if (position >= 0).all():
            Z = self._table.iloc[self._release[position]]
        elif len(frame) >= EXCHANGE.fewest:
            # each row is predicted by one model, as in fit: the ratio is calibrated for that, not
            # for the mean of the models
            m = self._means(frame, identity)
            Z = frame.iloc[self._coupled(codes, s, m, identity)[0]]
        else:
            raise ValueError(
                f"X has {len(frame)} rows, some of which were not passed to fit. ParityCoupling"
                f" exchanges new rows with each other and needs at least {EXCHANGE.fewest} rows at"
                " once. Pass more rows or, if you know what Z will predict, use ParityEncoder,"
                " which needs y."
            )
        return Z.set_axis(frame.index) if is_frame(table) else Z.to_numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        return replace(tags, input_tags=replace(tags.input_tags, allow_nan=True))

    def _coupled(
        self, codes: np.ndarray, s: np.ndarray, m: np.ndarray, identity: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the row assigned to each position, and a mask of the positions whose rows were
        removed. The result does not depend on the order of the rows.
        """
        order = np.argsort(identity, kind="stable")
        back = np.argsort(order, kind="stable")
        rng = np.random.default_rng([self.random_seed_, int(identity[order[0]])])
        basis = self.ratio_.basis
        s = s[order]
        m, kept = np.split(m[order], [basis.values.shape[1]], axis=1)
        node = basis.node(s)
        rows, removed = release_rows(self.ratio_, m, node, self.amount, rng)
        places = np.flatnonzero(removed)
        if not len(places):
            return np.arange(len(s)), removed
        near = embed_rows(codes[order[places]], self._schema.categorical)
        kept = kept[places]
        if kept.size:
            named = np.sqrt(EXCHANGE.named / kept.shape[1]) * _standardize(kept)
            near = np.column_stack([np.sqrt(1 - EXCHANGE.named) * near, named])
        ranks = np.sqrt(self.move_cost_) * basis.ranks(s[places])
        local = np.searchsorted(places, rows[places])
        given = np.empty_like(ranks)
        given[local] = ranks
        here = np.column_stack([near, ranks])
        offers = np.column_stack([near, given])
        rows[places] = places[exchange_rows(local, node[places], here, offers)]
        return order[rows][back], removed[back]

    def _identities(self, codes: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Return a number for each row that depends only on the row's content, the seed, and the
        number of earlier copies of the row.
        """
        content = pd.DataFrame(np.column_stack([codes, s]))
        keys = pd.util.hash_pandas_object(content, index=False).to_numpy()
        keys = keys + np.uint64(self.random_seed_ % 2**63)
        copies = pd.Series(keys).groupby(keys).cumcount().to_numpy(np.uint64)
        return np.asarray(pd.util.hash_array(keys ^ pd.util.hash_array(copies)))

    def _fit_means(self, rows: FitRows, target: Response) -> np.ndarray:
        """Fit models that leave out each fold in turn, and return their predictions for the
        held-out rows.
        """
        self.engine_ = None
        self.models_ = []
        if self.estimator is not None:
            self.models_, means = cross_fit(self.estimator, rows.X, [target], rows, self.n_jobs)
            return means
        some = np.flatnonzero(rows.mass)
        self.engine_ = fit_engine(
            rows.codes[some],
            self._schema.categorical,
            [replace(target, values=target.values[some])],
            rows.fold[some],
            rows.mass[some] / rows.mass.max(),
            rows.seed,
            self.n_jobs,
        ).engine
        each = self.engine_.predict(rows.codes, self.n_jobs)
        return np.asarray(each[rows.fold, np.arange(len(rows.fold))])

    def _means(self, frame: pd.DataFrame, identity: np.ndarray) -> np.ndarray:
        """Return m for new rows. A hash of each row determines the fold whose models are used."""
        if self.engine_ is not None:
            each = self.engine_.predict(self._schema.codes(frame), self.n_jobs)
        else:
            each = np.stack([predict_models(own, frame, [None]) for own in self.models_])
        fold = (identity % np.uint64(len(each))).astype(np.int64)
        return np.asarray(each[fold, np.arange(len(fold))])


def _filled(s: np.ndarray) -> np.ndarray:
    """Return attributes (n, q), with missing values replaced by a value below all others."""
    return np.where(np.isnan(s), -np.inf, s)


def _targets(phi: np.ndarray, y: Any) -> np.ndarray:
    """Return the functions of S, (n, K), together with the standardized columns of y minus their
    means given S.
    """
    if y is None:
        return phi
    columns = pd.get_dummies(pd.DataFrame(y).reset_index(drop=True)).astype(np.float64)
    numbers = _standardize(columns.fillna(columns.mean()).to_numpy())
    return np.column_stack([phi, numbers - phi @ (phi.T @ numbers) / len(phi)])


def _as_frame(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table
    return to_pandas(table) if is_frame(table) else pd.DataFrame(table)
