"""Representations under parity: each row has one of a few prototypes, from which heads can hardly
read S.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted

from frhsic import _progress
from frhsic._threads import within_n_jobs
from frhsic._warnings import warn
from frhsic.estimators.conditional import (
    PILOT_ROWS,
    SensitiveBasis,
    SharedTable,
    SplinesAndTrees,
    TreeTable,
    fold_of_rows,
    limit_boosters,
    predicted_directions,
    told_directions,
)
from frhsic.estimators.frontier import (
    Choice,
    Frontier,
    Gap,
    IndistinctGapWarning,
    UnmetLimitWarning,
)
from frhsic.estimators.heads_gap import HeadsTest, explained
from frhsic.estimators.inputs import (
    named_arguments,
    require_variation,
    seed_of,
    sensitive_values,
    typed_table,
    warn_of_suspicions,
    warn_of_unlabelled,
    warn_without_attributes,
)
from frhsic.estimators.parity import (
    attribute_model,
    cross_fitted,
    fit_with_weights,
    is_given,
    require_columns,
    with_seed,
    with_sensitive,
)
from frhsic.estimators.prototypes import (
    DistinctRows,
    Kind,
    Numbers,
    Prototypes,
    SolverRows,
    assigned,
    enough,
    looked_up,
    path,
    spread,
    with_multipliers,
)
from frhsic.estimators.targets import KeptTarget, target_columns
from frhsic.parity.limits import LimitLike, parse_limits
from frhsic.splits import subsample
from frhsic.tables.columns import is_frame
from frhsic.tables.encoding import RangeScale, TableEncoding

# τ of the trade-offs. The first is no constraint; the last allows no dependence.
TOLERANCES = (1e9, 1.0, 0.4, 0.2, 0.1, 0.04, 0.0)

# Rows that find the prototypes and their number, and their multipliers, at most.
PROTOTYPE_ROWS = 2_000
SOLVED_ROWS = 20_000

# Scaled gradient at which the multipliers are solved for; rows leave more dependence than that.
PRECISION = 1e-3

# Most prototypes by default, and Σ R²(φ(S) | Z) that solving on few rows may leave.
MOST_PROTOTYPES = 64
LEAK = 0.005

# Rows that describe a typical row of each prototype, at most.
TYPICAL_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class Representation:
    """What the encoder has solved.

    Attributes
    ----------
    targets
        Columns that Z keeps; none where it keeps those of X.
    bases
        For each attribute, the functions of it that are modelled.
    directions
        For each attribute, the combinations of these that x tells, (K, R).
    path
        Prototypes of each trade-off.
    coordinates
        For each trade-off, the coordinates of its prototypes by name.
    tables
        For each trade-off, what describes its prototypes, by name.
    """

    targets: tuple[KeptTarget, ...]
    bases: tuple[SensitiveBasis, ...]
    directions: tuple[np.ndarray, ...]
    path: tuple[Prototypes, ...]
    coordinates: tuple[dict[str, np.ndarray], ...]
    tables: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class EncoderRows:
    """Checked rows of a call of fit.

    Attributes
    ----------
    X, s, names
        The table; attributes, (n, q), and their names.
    weights, groups, fold
        Weights, groups or None, and folds of the rows, (n,).
    place
        The number of each row's x, (n,): equal rows share one.
    seed
        Seed of the call.
    """

    X: Any
    s: np.ndarray
    names: tuple[str, ...]
    weights: np.ndarray
    groups: np.ndarray | None
    fold: np.ndarray
    place: np.ndarray
    seed: int

    @property
    def known(self) -> np.ndarray:
        """Which rows have all attributes."""
        return np.asarray(~np.isnan(self.s).any(axis=1))


class ParityEncoder(TransformerMixin, BaseEstimator):
    r"""Transformer: each row becomes one of a few prototypes, so that no head of Z can have a large
    gap along sensitive attributes S.

    .. math:: \min_Z \; E\,d(X, Z) \quad \text{subject to} \quad
        \tfrac12 \sqrt{\chi^2(Z, S)} \le \text{limit}, \qquad
        E\,\bigl|E[f(Z) | S] - E f(Z)\bigr| \le \tfrac12 \sqrt{\chi^2(Z, S)}

    for every head f with values in [0, 1]. The problem is convex for given prototypes and solved,
    not trained: each prototype has to have the same mean of :math:`m_k(x) = E[\varphi_k(S) | x]`.
    Use it to hand on features, or to build several heads on one Z. The attributes are needed to
    fit, and to transform only with `uses_sensitive`.

    The bound is about heads of Z alone. A head that also sees other columns, the same rows released
    at two limits or after a refit, and rows of one household read together can tell more. Whoever
    has x has what x tells of S, and so does whoever has the fitted encoder.

    Parameters
    ----------
    estimator : classifier, regressor, FrozenEstimator, function or None
        Model of each column of y, fitted out of fold; one that is frozen, or a function of X, is
        used as it is. None is LightGBM, averaged with additive splines below 10,000 rows.
    limit : number, str, dict or None
        A number is a bound on the gap of every head. A share of the unconstrained gap such as
        "50%", and 0 for the least gap, are aims for the estimate. None sets no constraint; a
        dictionary has a limit for each attribute.
    confidence : float or None
        The upper end of the gap, at this confidence, keeps a limit that is a number; None: the
        estimate does.
    prototypes : int, optional
        Number of prototypes. None is as few as lose little, and no more than the rows can solve
        for.
    uses_sensitive : bool
        Whether the choice of a prototype may use the attributes. Z then keeps more, and
        `transform` needs `sensitive_features`.
    attribute_estimator : regressor, optional
        Model of the :math:`m_k`. None is as for y, for those combinations of the functions that x
        tells.
    cv, n_jobs, random_state
        As in :class:`ParityClassifier`.

    Attributes
    ----------
    frontier_ : Frontier
        Every trade-off, measured on rows whose models have not seen them.
    choice_ : Choice
        The trade-off that is served, with its gaps.
    prototypes_ : DataFrame
        One row for each prototype: its share of the rows, its coordinates, the mean of each
        attribute with a 95 % interval, and a typical row (medians, and the most frequent levels).
    models_, attribute_models_, solution_
        The fitted regressions of each fold, and the prototypes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=500)
    >>> X = np.column_stack([age + rng.normal(scale=9, size=500), rng.normal(size=500)])
    >>> y = X[:, 0] / 10 + X[:, 1] + rng.normal(size=500) > 4
    >>> encoder = ParityEncoder(random_state=0)
    >>> Z = encoder.fit_transform(X, y, sensitive_features=age)
    >>> Z.shape, len(np.unique(Z)) == len(encoder.prototypes_)
    ((500, 1), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "prototypes": [Interval(Integral, 2, None, closed="left"), None],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    models_: list[list[Any]]
    attribute_models_: list[list[Any]]
    solution_: Representation
    frontier_: Frontier
    choice_: Choice

    def __init__(
        self,
        estimator: Any = None,
        *,
        limit: LimitLike = 0,
        confidence: float | None = 0.95,
        prototypes: int | None = None,
        uses_sensitive: bool = False,
        attribute_estimator: Any = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.limit = limit
        self.confidence = confidence
        self.prototypes = prototypes
        self.uses_sensitive = uses_sensitive
        self.attribute_estimator = attribute_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @named_arguments
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the regressions, solve every trade-off and choose one by the limit.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Columns of any kind, missing values too, without the sensitive attributes.
        y : array or DataFrame of shape (n,) or (n, t), optional
            What Z is to keep: labels or numbers. None keeps the columns of X.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q), optional
            Attributes. Rows with NaN fit the models of y and take no part in what needs the
            attributes. Without them there is no constraint, with a warning.
        sample_weight : array of shape (n,), optional
            Weights of the rows, in all regressions and sums.
        groups : array of shape (n,), optional
            Rows that belong together, such as those of one person, are in one fold and count as one
            in intervals.
        """
        self._fit(X, y, sensitive_features, sample_weight, groups)
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
        """Fit, and return Z of the same rows by encoders that have not seen them, as
        :class:`~sklearn.preprocessing.TargetEncoder` does: ``fit(X).transform(X)`` differs.

        The parameters are those of :meth:`fit`.
        """
        choices = self._fit(X, y, sensitive_features, sample_weight, groups)
        return self._coordinates(choices[self._position])

    @within_n_jobs
    def transform(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return Z, (n, columns): the coordinates of the prototype of each row, and nothing else.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            New rows. Each is encoded by the models of one fold, which its content alone decides:
            by itself, always the same way, and as the rows of the fit were.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q)
            The attributes, with `uses_sensitive` only.
        """
        check_is_fitted(self)
        X = typed_table(self, X, first=False, sensitive_features=sensitive_features)
        s = self._sensitive(X, sensitive_features)
        keys = self._keys(X, s)
        prototypes = self.solution_.path[self._position]
        choice = np.empty(len(keys), dtype=np.int64)
        folds = max(len(self.models_), len(self.attribute_models_))
        for j in range(folds):
            own = np.flatnonzero(keys % np.uint64(folds) == j)
            if len(own):
                rows = self._predicted(j, _safe_indexing(X, own), None if s is None else s[own])
                choice[own] = prototypes.costs(
                    prototypes.distances(rows.targets), rows.means
                ).argmin(axis=0)
        if len(self.repeated_):
            choice = looked_up(keys, self.repeated_, self.choices_[self._position], choice)
        return self._coordinates(choice)

    def at(self, limit: LimitLike) -> Self:
        """Return a fitted copy at another limit. Nothing is fitted again; the models are shared."""
        check_is_fitted(self)
        moved = copy.copy(self)
        moved.limit = limit
        moved._choose(limit)
        return moved

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of Z."""
        check_is_fitted(self)
        return np.array([*self.solution_.coordinates[0]], dtype=object)

    @property
    def prototypes_(self) -> pd.DataFrame:
        """One row for each prototype."""
        check_is_fitted(self)
        return pd.DataFrame(self.solution_.tables[self._position])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "choice_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        input_tags = replace(tags.input_tags, allow_nan=self.estimator is None)
        return replace(tags, input_tags=input_tags)

    # Fitting

    @within_n_jobs
    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any
    ) -> list[np.ndarray]:
        """Fit; return the prototypes of the rows at each trade-off, by encoders without them."""
        self._validate_params()
        parse_limits(self.limit, ["gdp"])
        others = {
            "y": y,
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        X = typed_table(self, X, first=True, **others)
        n = _num_samples(X)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        labels = target_columns(self, y)
        for values in labels.values():
            check_consistent_length(X, values)
        seed = self.random_seed_ = seed_of(self.random_state)
        s = np.zeros((n, 0))
        names: list[str] = []
        if sensitive_features is None:
            if self.limit is not None:
                warn_without_attributes(self, "limit=None")
        else:
            s, names = sensitive_values(sensitive_features, n)
            require_variation(s, names)
            warn_of_unlabelled(
                ~np.isnan(s).any(axis=1), "they train the models of y, and measure no gap"
            )
        self.sensitive_names_in_ = np.array(names, dtype=object)
        warn_of_suspicions(self, X, None, None if self.uses_sensitive else s, names)
        groups = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        targets = tuple(KeptTarget.of(name, values, weights) for name, values in labels.items())
        only = targets[0].classes if len(targets) == 1 else None
        codes = None if only is None else np.searchsorted(only, labels[targets[0].name])
        fold = fold_of_rows(n, self._folds(n, codes, groups), codes, groups, seed)
        self.table_ = TreeTable().fit(X)
        keys = self._keys(X, s if self.uses_sensitive else None)
        unique, place = np.unique(keys, return_inverse=True)
        rows = EncoderRows(X, s, tuple(names), weights, groups, fold, place.ravel(), seed)
        whole = [
            SensitiveBasis.fit(s[rows.known, j], weights[rows.known]) for j in range(len(names))
        ]
        bases = tuple(self._told(rows, basis, j) for j, basis in enumerate(whole))
        # what _targets and _means read; the prototypes follow
        every = tuple(np.eye(basis.values.shape[1]) for basis in bases)
        self.solution_ = Representation(targets, bases, every, (), (), ())
        predicted = self._fit_models_of_y(rows, labels)
        means = self._fit_models_of_s(rows)
        solver = SolverRows(predicted, means, weights / weights.sum())
        paths, choices = self._solve(rows, solver, unique)
        centers = [
            cell_means(z, predicted, weights, each.centers) for z, each in zip(choices, paths)
        ]
        coordinates = tuple(self._named(rows, z, each) for z, each in zip(choices, centers))
        typical = _typical_rows(self.table_, rows, choices, paths)
        tables = tuple(
            _described(rows, z, len(each.mass), columns) | row
            for z, each, columns, row in zip(choices, paths, coordinates, typical)
        )
        self.solution_ = replace(
            self.solution_, path=tuple(paths), coordinates=coordinates, tables=tables
        )
        kept = [
            self._performance(labels, predicted, each[z], weights)
            for z, each in zip(choices, centers)
        ]
        self.frontier_ = self._measured(rows, means, whole, choices, kept)
        self._choose(self.limit)
        return choices

    def _folds(self, n: int, codes: np.ndarray | None, groups: np.ndarray | None) -> int:
        """Return the number of folds, at most as many as the rarest class has rows or as there are
        groups.
        """
        most = [self.cv, n // 2]
        if codes is not None:
            most.append(max(int(np.bincount(codes).min()), 2))
        if groups is not None:
            most.append(int(groups.max()) + 1)
        if min(most) < 2:
            raise ValueError(
                f"the rows (n_samples={n}) cannot be cut into two folds: pass more rows, and two"
                " groups."
            )
        return min(most)

    def _told(self, rows: EncoderRows, basis: SensitiveBasis, attribute: int) -> SensitiveBasis:
        """Return those combinations of the functions of an attribute that x tells; all of them,
        where S is known or the model is given.
        """
        if self.attribute_estimator is not None or self.uses_sensitive:
            return basis
        known = np.flatnonzero(rows.known)
        pilot = known[subsample(len(known), PILOT_ROWS, np.random.default_rng(rows.seed))]
        directions = told_directions(
            _safe_indexing(rows.X, pilot),
            basis(rows.s[pilot, attribute]),
            rows.weights[pilot],
            rows.fold[pilot] % 2 == 0,
            self.n_jobs,
        )
        return basis.along(directions)

    def _fit_models_of_y(self, rows: EncoderRows, labels: dict[str, np.ndarray]) -> np.ndarray:
        """Fit the models of each fold; return what is kept of each row by models without it."""
        table = with_sensitive(self, rows.X, rows.s)
        if not self.solution_.targets:
            self.feature_encoding_ = TableEncoding.fit(rows.X)
            matrix = self.feature_encoding_(rows.X)
            self.column_scales_ = _column_scales(self.feature_encoding_, matrix, rows.weights)
            self.models_ = [[]]
            return self._targets([], rows.X, rows.s)
        if is_given(self.estimator):
            if len(labels) > 1:
                raise ValueError(
                    f"estimator is a fitted model, which predicts one column; y has {len(labels)}."
                )
            if is_frame(rows.X):
                require_columns(self.estimator, rows.X)
            self.models_ = [[self.estimator]]
            return self._targets(self.models_[0], rows.X, rows.s)

        def fit(train: np.ndarray) -> list[Any]:
            X = _safe_indexing(table, train)
            return [
                fit_with_weights(
                    self._model_of(target), X, labels[target.name][train], rows.weights[train]
                )
                for target in self.solution_.targets
            ]

        def predict(models: list[Any], held_out: np.ndarray) -> np.ndarray:
            return self._targets(models, _safe_indexing(rows.X, held_out), rows.s[held_out])

        self.models_, predicted = cross_fitted(rows.fold, fit, predict, "models of the target")
        return predicted

    def _model_of(self, target: KeptTarget) -> Any:
        """Return an unfitted model of a target."""
        wanted = target.classes is not None
        model = self.estimator
        if model is None:
            model = SplinesAndTrees(wanted, n_jobs=self.n_jobs)
        elif is_classifier(model) != wanted:
            kind = "labels" if wanted else "numbers"
            raise ValueError(
                f"estimator is {type(model).__name__}, but the target {target.name!r} holds {kind}."
            )
        return limit_boosters(with_seed(model, self.random_seed_), self.n_jobs)

    def _fit_models_of_s(self, rows: EncoderRows) -> np.ndarray:
        """Fit the models of each fold; return m of each row by models that have not seen it."""
        bases = self.solution_.bases
        if self.uses_sensitive or not bases:
            self.attribute_models_ = [[]]
            return self._means([], rows.X, rows.s)

        def fit(train: np.ndarray) -> list[Any]:
            train = train[rows.known[train]]
            models = []
            for attribute, basis in enumerate(bases):
                targets = basis(rows.s[train, attribute])
                model = attribute_model(
                    self.attribute_estimator, targets.shape[1], self.n_jobs, self.random_seed_
                )
                X = _safe_indexing(rows.X, train)
                models.append(fit_with_weights(model, X, targets, rows.weights[train]))
            return models

        def predict(models: list[Any], held_out: np.ndarray) -> np.ndarray:
            return self._means(models, _safe_indexing(rows.X, held_out), rows.s[held_out])

        unit = f"models of {', '.join(rows.names)}"
        self.attribute_models_, means = cross_fitted(rows.fold, fit, predict, unit)
        if self.attribute_estimator is None:
            return means
        # a function that x does not tell would be a constraint for nothing
        known = rows.known
        directions = []
        told = []
        for attribute, basis in enumerate(bases):
            own = means[:, : basis.values.shape[1]]
            means = means[:, basis.values.shape[1] :]
            targets = basis(rows.s[known, attribute])
            along = predicted_directions(own[known], targets, rows.weights[known])
            directions.append(along)
            told.append(own @ along)
        self.solution_ = replace(self.solution_, directions=tuple(directions))
        return np.column_stack(told)

    def _solve(
        self, rows: EncoderRows, solver: SolverRows, keys: np.ndarray
    ) -> tuple[list[Prototypes], list[np.ndarray]]:
        """Return the prototypes of each trade-off, and which of them the rows have, (n,)."""
        rng = np.random.default_rng(rows.seed)
        # φ(S), which is m where S is known, needs the attributes
        usable = rows.weights > 0
        if self.uses_sensitive:
            usable &= rows.known
        chosen = np.flatnonzero(usable)
        chosen = chosen[subsample(len(chosen), SOLVED_ROWS, rng)]
        pilot = chosen[subsample(len(chosen), PROTOTYPE_ROWS, rng)]
        pilot_rows = _distinct(solver, rows, pilot).rows
        count = self.prototypes
        if count is None:
            count = enough(
                self._kinds(), pilot_rows, self._affordable(pilot_rows, int(usable.sum()))
            )
        tolerances = TOLERANCES if rows.names else TOLERANCES[:1]
        start = spread(self._kinds(), pilot_rows, count)
        starts = path(start, pilot_rows, tolerances, PRECISION)
        whole = _distinct(solver, rows, chosen)
        prototypes: list[Prototypes] = []
        choices: list[np.ndarray] = []
        tables: list[np.ndarray] = []
        for number, start in enumerate(starts):
            solved = _solved_anew(start, whole.rows)
            table = assigned(solved, whole.rows, whole.repeated)[whole.repeated]
            prototypes.append(solved)
            tables.append(table)
            choices.append(_served(solved, solver, rows.place, whole, table))
            _progress.tell(number + 1, len(starts), "trade-offs")
        self.repeated_ = keys[whole.keys[whole.repeated]]
        self.choices_ = np.array(tables, dtype=np.int64)
        return prototypes, choices

    def _affordable(self, pilot: SolverRows, rows: int) -> int:
        """Return how many prototypes so many rows can solve for: E d falls with their number, and
        solving leaves about (L − 1) Σ Var m / n of the functions of S in Z.
        """
        centered = pilot.means - pilot.weights @ pilot.means
        told = float((pilot.weights @ centered**2).sum())
        return int(np.clip(1 + LEAK * rows / max(told, 1e-9), 4, MOST_PROTOTYPES))

    def _kinds(self) -> tuple[Kind, ...]:
        """Return how the columns of the targets are compared."""
        if not self.solution_.targets:
            return (Numbers(0, self.feature_encoding_.width),)
        kinds = []
        start = 0
        for target in self.solution_.targets:
            kinds.append(target.kind(start))
            start += target.width
        return tuple(kinds)

    def _named(
        self, rows: EncoderRows, z: np.ndarray, centers: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the coordinates of prototypes by name, from the means of the targets over the rows
        that have them, (L, T), or from the columns of X.
        """
        targets = self.solution_.targets
        if not targets:
            encoding = TableEncoding.fit(rows.X, scaling="range")
            matrix = encoding(rows.X)
            mean = np.average(matrix, axis=0, weights=rows.weights)
            otherwise = np.broadcast_to(mean, (len(centers), len(mean)))
            means = cell_means(z, matrix, rows.weights, otherwise)
            return dict(zip(encoding.names, _in_units(encoding, means).T))
        coordinates: dict[str, np.ndarray] = {}
        for target, kind in zip(targets, self._kinds()):
            coordinates |= target.coordinates(centers[:, kind.start : kind.stop])
        return coordinates

    def _measured(
        self,
        rows: EncoderRows,
        means: np.ndarray,
        bases: Sequence[SensitiveBasis],
        choices: Sequence[np.ndarray],
        kept: Sequence[dict[str, float]],
    ) -> Frontier:
        """Measure every trade-off on rows whose models have not seen them, with what they hide."""
        confidence = self.confidence or 0.95
        known = rows.known & (rows.weights > 0)
        weights = rows.weights[known]
        groups = None if rows.groups is None else rows.groups[known]
        cells = [
            np.unique(self._coordinates(z[known], at), axis=0, return_inverse=True)[1].ravel()
            for at, z in enumerate(choices)
        ]
        gaps: dict[str, tuple[Gap, ...]] = {}
        pvalues: dict[str, float] = {}
        start = 0
        for j, (name, basis) in enumerate(zip(rows.names, bases)):
            s = rows.s[known, j]
            functions = self.solution_.bases[j](s) @ self.solution_.directions[j]
            stop = start + functions.shape[1]
            told = explained(functions, means[known, start:stop], weights)
            start = stop
            tests = [HeadsTest.of(z, basis(s), weights, groups) for z in cells]
            gaps[name] = tuple(test.gap(confidence, told, SOLVED_ROWS) for test in tests)
            pvalues[name] = tests[0].pvalue
        performance = {name: np.array([one[name] for one in kept]) for name in kept[0]}
        return Frontier(
            "heads", "gdp", performance, gaps, pvalues, confidence, None, int(known.sum())
        )

    def _performance(
        self,
        labels: dict[str, np.ndarray],
        predicted: np.ndarray,
        centers: np.ndarray,
        weights: np.ndarray,
    ) -> dict[str, float]:
        """Return how well the centers of rows, (n, T), predict the targets; without targets, the
        share of the columns' variance that they keep.
        """
        targets = self.solution_.targets
        if not targets:
            mean = np.average(predicted, axis=0, weights=weights)
            lost = (weights @ (predicted - centers) ** 2).sum()
            return {"kept": float(1 - lost / (weights @ (predicted - mean) ** 2).sum())}
        values: dict[str, float] = {}
        for target, kind in zip(targets, self._kinds()):
            columns = centers[:, kind.start : kind.stop]
            own = target.performance(columns, labels[target.name], weights)
            prefix = f"{target.name}_" if len(targets) > 1 else ""
            values |= {f"{prefix}{name}": value for name, value in own.items()}
        return values

    def _choose(self, limit: LimitLike) -> None:
        """Choose the first trade-off that keeps the limit; 0 is the last one."""
        frontier = self.frontier_
        if not frontier.gaps:
            self.choice_ = Choice(limit, 0, True, {}, {}, ())
            return
        choice = frontier.choose(limit, self.confidence is not None)
        last = len(self.solution_.path) - 1
        least = any(one.value == 0 for each in frontier.limits(limit).values() for one in each)
        position = last if least else int(np.ceil(choice.position - 1e-9))
        gaps = {name: each[position] for name, each in frontier.gaps.items()}
        choice = replace(choice, position=position, gaps=gaps, met=choice.met or least)
        self.choice_ = choice
        if choice.indistinct:
            warn(str(choice), IndistinctGapWarning)
        if not choice.met:
            warn(str(choice), UnmetLimitWarning)

    # Transforming

    @property
    def _position(self) -> int:
        return int(self.choice_.position)

    def _coordinates(self, z: np.ndarray, at: int | None = None) -> np.ndarray:
        """Return the coordinates of prototypes (n,), those of the chosen trade-off."""
        columns = self.solution_.coordinates[self._position if at is None else at]
        return np.asarray(np.column_stack([*columns.values()])[z])

    def _sensitive(self, X: Any, sensitive_features: Any) -> np.ndarray | None:
        if not self.uses_sensitive or not len(self.sensitive_names_in_):
            return None
        if sensitive_features is None:
            raise ValueError(
                "this encoder uses the sensitive attributes: pass sensitive_features=..."
            )
        s, _ = sensitive_values(sensitive_features, _num_samples(X), self.sensitive_names_in_)
        if np.isnan(s).any():
            raise ValueError(
                "sensitive_features has missing values; this encoder needs them to transform."
            )
        return s

    def _targets(self, models: Sequence[Any], X: Any, s: np.ndarray | None) -> np.ndarray:
        """Return what Z should keep of rows, (n, T), by some models."""
        targets = self.solution_.targets
        if not targets:
            return np.asarray(self.feature_encoding_(X) * self.column_scales_)
        table = with_sensitive(self, X, s)
        return np.column_stack(
            [target.predicted(model, table) for target, model in zip(targets, models)]
        )

    def _means(self, models: Sequence[Any], X: Any, s: np.ndarray | None) -> np.ndarray:
        """Return m of rows, (n, K), by some models; functions of S themselves, where Z may use
        it.
        """
        n = _num_samples(X)
        columns = [np.reshape(model.predict(X), (n, -1)) for model in models]
        columns = [own @ along for own, along in zip(columns, self.solution_.directions)]
        if self.uses_sensitive and s is not None:
            columns = [basis(column) for basis, column in zip(self.solution_.bases, s.T)]
        return np.column_stack(columns) if columns else np.zeros((n, 0))

    def _predicted(self, fold: int, X: Any, s: np.ndarray | None) -> SolverRows:
        """Return what the models of one fold say of rows: what Z should keep of them, and m."""
        shared = SharedTable(X)
        own = self.estimator is None and self.solution_.targets and not self.uses_sensitive
        of_y = shared if own else X
        of_s = shared if self.attribute_estimator is None else X
        targets = self._targets(self.models_[fold % len(self.models_)], of_y, s)
        means = self._means(self.attribute_models_[fold % len(self.attribute_models_)], of_s, s)
        return SolverRows(targets, means, np.full(len(targets), 1 / len(targets)))

    def _keys(self, X: Any, s: np.ndarray | None) -> np.ndarray:
        """Return a number for each row that depends on its content alone."""
        codes = self.table_.codes(X)
        content = pd.DataFrame(codes if s is None else np.column_stack([codes, s]))
        return pd.util.hash_pandas_object(content, index=False).to_numpy()


def _distinct(solver: SolverRows, rows: EncoderRows, some: np.ndarray) -> DistinctRows:
    """Return some rows, of which equal ones are one."""
    return DistinctRows.of(solver.at(some), rows.place[some])


def _solved_anew(prototypes: Prototypes, rows: SolverRows) -> Prototypes:
    """Return prototypes whose multipliers are solved for on more rows."""
    start = replace(prototypes, origin=rows.weights @ rows.means)
    solved = with_multipliers(start, rows, PRECISION)
    return solved if solved.objective < np.inf else start


def _served(
    prototypes: Prototypes,
    rows: SolverRows,
    place: np.ndarray,
    solved: DistinctRows,
    table: np.ndarray,
) -> np.ndarray:
    """Return the prototypes of rows, (n,), as new rows get them: those of a table, where a row is
    one of the repeated ones that were solved for.
    """
    choice = prototypes.costs(prototypes.distances(rows.targets), rows.means).argmin(axis=0)
    return looked_up(place, solved.keys[solved.repeated], table, choice)


def _column_scales(encoding: TableEncoding, matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return factors that give each column of the table the same share in squared distances."""
    mean = np.average(matrix, axis=0, weights=weights)
    variance = np.average((matrix - mean) ** 2, axis=0, weights=weights)
    widths = [len(column.names) for column in encoding.columns]
    place = np.repeat(np.arange(len(widths)), widths)
    whole = np.bincount(place, variance)
    return np.asarray(1 / np.sqrt(np.maximum(whole, 1e-12) * len(widths)))[place]


def _in_units(encoding: TableEncoding, scaled: np.ndarray) -> np.ndarray:
    """Return columns of an encoding by ranges in the units of the table."""
    low: list[float] = []
    width: list[float] = []
    for column in encoding.columns:
        further = len(column.names)
        if isinstance(column, RangeScale):
            low.append(column.low)
            width.append((column.high - column.low) or 1.0)
            further -= 1
        low += [0.0] * further
        width += [1.0] * further
    return np.asarray(np.array(low) + np.array(width) * scaled)


def cell_means(
    z: np.ndarray, values: np.ndarray, weights: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    """Return the means of values (n, T) over the rows of each prototype, (L, T); others, of one
    without rows.
    """
    indicators = (z == np.arange(len(otherwise))[:, None]) * weights
    mass = indicators.sum(axis=1)[:, None]
    return np.where(mass > 0, indicators @ values / np.maximum(mass, 1e-300), otherwise)


def _described(
    rows: EncoderRows, z: np.ndarray, count: int, coordinates: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return what describes prototypes: their shares, coordinates and means of attributes."""
    mass = np.bincount(z, rows.weights, minlength=count)
    table: dict[str, Any] = {"share": (mass / mass.sum()).tolist()}
    table |= {name: values.tolist() for name, values in coordinates.items()}
    for j, name in enumerate(rows.names):
        for end, values in _means_of_cells(z, rows.s[:, j], rows.weights, count).items():
            table[f"{name}{end}"] = values.tolist()
    return table


def _means_of_cells(
    z: np.ndarray, s: np.ndarray, weights: np.ndarray, count: int
) -> dict[str, np.ndarray]:
    """Return the mean of an attribute among the rows of each prototype, and its 95 % interval."""
    weights = np.where(np.isnan(s), 0.0, weights)
    s = np.where(np.isnan(s), 0.0, s)
    indicators = (z == np.arange(count)[:, None]) * weights
    mass = np.maximum(indicators.sum(axis=1), 1e-300)
    mean = indicators @ s / mass
    squares = (indicators**2 * (s - mean[:, None]) ** 2).sum(axis=1)
    reach = 1.96 * np.sqrt(squares) / mass
    return {"": mean, "_low": mean - reach, "_high": mean + reach}


def _typical_rows(
    table: TreeTable, rows: EncoderRows, choices: Sequence[np.ndarray], path: Sequence[Prototypes]
) -> list[dict[str, Any]]:
    """Return for each trade-off a typical row of each prototype by column: medians of numbers, and
    the most frequent levels; None of a prototype without rows.
    """
    some = subsample(len(rows.place), TYPICAL_ROWS, np.random.default_rng(rows.seed))
    codes = table.codes(_safe_indexing(rows.X, some))
    names = rows.X.columns if is_frame(rows.X) else [f"x{j}" for j in range(codes.shape[1])]
    levels = table.levels_ or [None] * codes.shape[1]
    described = []
    for z, prototypes in zip(choices, path):
        cells = range(len(prototypes.mass))
        medians = pd.DataFrame(codes).groupby(z[some]).median().reindex(cells)
        typical: dict[str, Any] = {}
        for j, (name, known) in enumerate(zip(names, levels)):
            values = medians[j]
            if known is not None:
                frequent = pd.Series(codes[:, j]).groupby(z[some]).agg(_most_frequent)
                values = frequent.reindex(cells).map(dict(enumerate(known)))
            typical[f"typical {name}"] = [
                None if value != value else value for value in values.tolist()
            ]
        described.append(typical)
    return described


def _most_frequent(column: pd.Series[Any]) -> float:
    """Return the most frequent number, the smallest of several; NaN without any."""
    return float(column.mode().min())
