"""Representations with a parity limit: each row is replaced by one of a few prototypes, which
reveal very little about S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils import check_consistent_length
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from frhsic import _progress
from frhsic._threads import limit_to_n_jobs
from frhsic.estimators.basis import SensitiveBasis, predictable_directions
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.describing import cell_means, describe_prototypes
from frhsic.estimators.fitting import ParityModel, weighted_rows
from frhsic.estimators.folds import row_hashes
from frhsic.estimators.frontier import Choice, Frontier, Gap
from frhsic.estimators.heads_gap import HeadsTest, explained_shares, join_rare, window_indicators
from frhsic.estimators.inputs import known_table, named_arguments
from frhsic.estimators.prototypes import (
    DistinctRows,
    Kind,
    Prototypes,
    SolverRows,
    assign_rows,
    initial_prototypes,
    look_up,
    n_prototypes,
    solve_path,
    with_multipliers,
)
from frhsic.estimators.responses import Response
from frhsic.estimators.targets import (
    KeptTarget,
    named_coordinates,
    split_targets,
    target_columns,
    target_kinds,
    target_performance,
)
from frhsic.parity.limits import LimitLike
from frhsic.splits import subsample
from frhsic.tables.columns import is_frame

# τ of each trade-off. The first imposes no constraint; the last allows no dependence.
TOLERANCES = (1e9, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.0)

# Maximum number of rows used to find the prototypes and choose their number, and to compute their
# multipliers.
PROTOTYPE_ROWS = 2_000
SOLVED_ROWS = 20_000

# Scaled gradient at which the multipliers have converged; sampling noise leaves more dependence
# than this.
PRECISION = 1e-3

# Maximum number of prototypes by default, and the largest Σ R²(φ(S) | Z) that may remain because
# few rows were used to solve.
MOST_PROTOTYPES = 64
LEAK = 0.005


@dataclass(frozen=True, eq=False)
class Representation:
    """The solution found by an encoder.

    Attributes
    ----------
    targets
        Columns that Z should predict.
    bases
        For each attribute, the functions that are modeled.
    directions
        For each attribute, the combinations of these functions that are predictable from x, (K, R).
    path
        For each trade-off, the prototypes.
    coordinates
        For each trade-off, the coordinates of its prototypes, keyed by name.
    tables
        For each trade-off, the columns that describe its prototypes, keyed by name.
    """

    targets: tuple[KeptTarget, ...]
    bases: tuple[SensitiveBasis, ...]
    directions: tuple[np.ndarray, ...]
    path: tuple[Prototypes, ...]
    coordinates: tuple[dict[str, np.ndarray], ...]
    tables: tuple[dict[str, Any], ...]


class ParityEncoder(TransformerMixin, ParityModel):
    r"""Transformer that replaces each row with one of a few prototypes, so that no head of Z has a
    large gap with respect to the sensitive attributes S.

    .. math:: \min_Z \; E\,d(X, Z) \quad \text{subject to} \quad
        \tfrac12 \sqrt{\chi^2(Z, S)} \le \text{limit}, \qquad
        E\,\bigl|E[f(Z) | S] - E f(Z)\bigr| \le \tfrac12 \sqrt{\chi^2(Z, S)}

    for every head f with values in [0, 1], with gaps measured at the resolution of windows of S. A
    window contains a twentieth of the rows or, if there are fewer than 2,000 rows, 100 rows. Heads
    that oscillate along S within windows can have larger gaps: in an example with 1,000 rows and a
    column that oscillates 20 times along S, the bound was 0.09, but a head that followed the column
    had a gap of 0.24. For given prototypes, the problem is convex and has an exact solution: all
    prototypes must have the same mean of :math:`m_k(x) = E[\varphi_k(S) | x]`. Use the encoder if
    you know what Z will predict, and pass these targets as y: for example, to get features for one
    target, or one Z for several heads. To share a whole table, use :class:`ParityCoupling`. The
    attributes are required by `fit`, and by `transform` only with `uses_sensitive`.

    The bound covers heads whose only input is Z. More can be revealed by a head with additional
    inputs, by releasing the same rows at two limits or after a refit, or by combining the rows of a
    household. Anyone who has x or the fitted encoder can predict S as well as x allows.

    Parameters
    ----------
    estimator : classifier, regressor, FrozenEstimator, function or None
        Model for each column of y, fitted out of fold. A frozen model or a function of X is used
        without refitting. None uses a weighted mean of additive splines and LightGBM trees.
    limit : number, str, dict or None
        A number is a bound on the gap of every head at the resolution described above; with few
        rows, only a few prototypes can meet it. A share of the unconstrained gap such as "50%", or
        0 for the smallest gap, is a target for the estimate. None sets no constraint. A dictionary
        sets a limit for each attribute.
    confidence : float or None
        A numeric limit is compared with the upper end of the gap's interval at this confidence or,
        if None, with the estimate.
    prototypes : int, optional
        Number of prototypes. None chooses the smallest number that loses little information, up to
        the number that the rows support.
    uses_sensitive : bool
        Whether the attributes may be used to choose the prototype of a row. Z then keeps more
        information, but `transform` requires `sensitive_features`.
    attribute_estimator : regressor, optional
        Model for the :math:`m_k`. None uses the default model for y, but only for the combinations
        of functions that are predictable from x.
    cv, n_jobs, random_state
        As in :class:`ParityClassifier`.

    Attributes
    ----------
    frontier_ : Frontier
        Every trade-off, measured out of fold.
    choice_ : Choice
        The trade-off in use, with its gaps.
    prototypes_ : DataFrame
        One row for each prototype: its share of the rows, its coordinates, the mean of each
        attribute with a 95 % interval, and a typical row (medians and the most frequent levels).
    models_ : list
        For each fold, your own fitted models for y.
    attribute_models_ : list
        For each fold, your own fitted models for the :math:`m_k`.
    solution_
        The solved prototypes.

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
        **ParityModel._parameter_constraints,
        "prototypes": [Interval(Integral, 2, None, closed="left"), None],
    }

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
        cv: Any = 5,
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
        """Fit the regressions, solve for every trade-off and choose one that meets the limit.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Columns of any type, without the sensitive attributes; missing values are allowed.
        y : array or DataFrame of shape (n,) or (n, t)
            Labels or numbers that Z should predict. To share a whole table, use
            :class:`ParityCoupling`.
        sensitive_features : array, Series, DataFrame or names of columns of X, optional
            Attributes of shape (n,) or (n, q). Columns passed by name are removed from the
            features. Rows with NaN are used only for the models for y. Without attributes, there is
            no constraint, and `fit` warns.
        sample_weight : array of shape (n,), optional
            Weights of the rows in all regressions and sums.
        groups : array of shape (n,) or the name of a column of X, optional
            Rows that belong together, such as those of one person, stay in the same fold and count
            as one observation in intervals.
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
        """Fit, and return Z for the same rows. Each row is encoded by models that were fitted
        without this row, as in :class:`~sklearn.preprocessing.TargetEncoder`, so the result differs
        from ``fit(X).transform(X)``.

        The parameters are those of :meth:`fit`.
        """
        choices = self._fit(X, y, sensitive_features, sample_weight, groups)
        own = self._coordinates(choices[self._position])
        n = _num_samples(X)
        if len(own) == n:
            return own
        known = sensitive_features if self.uses_sensitive else None
        every = np.array(self.transform(X, sensitive_features=known))
        every[np.flatnonzero(np.asarray(sample_weight))] = own
        return every

    @named_arguments
    @limit_to_n_jobs
    def transform(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Return Z, of shape (n, columns), which contains the coordinates of each row's prototype.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            New rows. Each row is encoded by the models of one fold. Only the row's content
            determines the fold, so Z doesn't depend on the other rows. Columns that the model does
            not use are ignored.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q)
            The attributes, which are required only with `uses_sensitive`.
        """
        check_is_fitted(self)
        X = known_table(self, X, first=False, sensitive_features=sensitive_features)
        s = self._sensitive(X, sensitive_features)
        codes = self._coded(X, s)
        keys = row_hashes(codes)
        prototypes = self.solution_.path[self._position]
        choice = np.empty(len(keys), dtype=np.int64)
        folds = self._predict_folds(X, s, codes)
        for j, (targets, means) in enumerate(folds):
            own = np.flatnonzero(keys % np.uint64(len(folds)) == j)
            choice[own] = prototypes.nearest(targets[own], means[own])
        repeated = self.choices_[self._position]
        return self._coordinates(look_up(keys, self.repeated_, repeated, choice))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the column names of Z."""
        check_is_fitted(self)
        return np.array([*self.solution_.coordinates[0]], dtype=object)

    @property
    def prototypes_(self) -> pd.DataFrame:
        """One row for each prototype."""
        check_is_fitted(self)
        return pd.DataFrame(self.solution_.tables[self._position])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    # Fitting

    @limit_to_n_jobs
    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any
    ) -> list[np.ndarray]:
        """Fit the encoder, and return the prototype of each row at each trade-off, chosen by models
        that were fitted without this row.
        """
        sample_weight, cv, X, y, sensitive_features, groups, _ = weighted_rows(
            sample_weight, self.cv, X, y, sensitive_features, groups
        )
        X, weights, groups = self._check_fit(X, y, sensitive_features, sample_weight, groups)
        labels = target_columns(self, y)
        for values in labels.values():
            check_consistent_length(X, values)
        s = self._attributes(X, None, sensitive_features)
        targets = tuple(
            KeptTarget.from_column(name, values, weights) for name, values in labels.items()
        )
        rows = FitRows(
            X=X,
            codes=self._coded(X, s),
            s=s,
            names=tuple(self.sensitive_names_in_),
            weights=weights,
            groups=groups,
            fold=self._folds(cv, X, _strata(targets, labels), groups),
            seed=self.random_seed_,
        )
        known = ~np.isnan(s).any(axis=1)
        whole = [SensitiveBasis.fit(column[known], rows.mass[known]) for column in s.T]
        functions = [basis(column) for basis, column in zip(whole, s.T)]
        modelled = []
        if not self.uses_sensitive:
            modelled = [
                Response(own, known=~np.isnan(column), reduced=True)
                for own, column in zip(functions, s.T)
            ]
        values, along = self._fit_regressions(
            rows, [target.outcome(labels[target.name]) for target in targets], modelled
        )
        predicted, means = split_targets(targets, values)
        bases, directions, means = self._directions(rows, known, whole, functions, means, along)
        solver = SolverRows(predicted, means, rows.mass / rows.mass.sum())
        path, choices = self._solve(rows, solver, target_kinds(targets), known)
        centers = [
            cell_means(z, predicted, rows.mass, each.centers) for z, each in zip(choices, path)
        ]
        coordinates = [named_coordinates(targets, each) for each in centers]
        schema = self.schema_ if is_frame(rows.X) else None
        self.solution_ = Representation(
            targets=targets,
            bases=bases,
            directions=directions,
            path=tuple(path),
            coordinates=tuple(coordinates),
            tables=tuple(describe_prototypes(rows, schema, choices, coordinates)),
        )
        kept = [
            target_performance(targets, each[z], labels, rows.mass)
            for z, each in zip(choices, centers)
        ]
        performance = {name: np.array([measures[name] for measures in kept]) for name in kept[0]}
        self.frontier_ = self._measured(rows, means, whole, choices, performance)
        self._choose()
        return choices

    def _directions(
        self,
        rows: FitRows,
        known: np.ndarray,
        whole: Sequence[SensitiveBasis],
        functions: Sequence[np.ndarray],
        means: np.ndarray,
        modelled: tuple[np.ndarray, ...],
    ) -> tuple[tuple[SensitiveBasis, ...], tuple[np.ndarray, ...], np.ndarray]:
        """Return the functions of each attribute that are modeled, the combinations of these
        functions that are predictable from x, and m for each row.
        """
        every = tuple(np.eye(own.shape[1]) for own in functions)
        if self.uses_sensitive:
            return tuple(whole), every, np.column_stack([np.zeros((len(known), 0)), *functions])
        if self.attribute_estimator is None:
            bases = tuple(basis.along(along) for basis, along in zip(whole, modelled))
            return bases, tuple(np.eye(along.shape[1]) for along in modelled), means
        # a function that x does not predict needs no constraint
        parts = np.split(means, np.cumsum([own.shape[1] for own in functions])[:-1], axis=1)
        directions = tuple(
            predictable_directions(part[known], own[known], rows.mass[known])
            for part, own in zip(parts, functions)
        )
        chosen = [part @ along for part, along in zip(parts, directions)]
        return tuple(whole), directions, np.column_stack([means[:, :0], *chosen])

    def _solve(
        self, rows: FitRows, solver: SolverRows, kinds: tuple[Kind, ...], known: np.ndarray
    ) -> tuple[list[Prototypes], list[np.ndarray]]:
        """Return the prototypes of each trade-off, and the prototype assigned to each row, (n,)."""
        keys = row_hashes(rows.codes)
        rng = np.random.default_rng(rows.seed)
        # φ(S), which replaces m if S is known, needs the attributes
        usable = rows.mass > 0
        if self.uses_sensitive:
            usable &= known
        chosen = np.flatnonzero(usable)
        chosen = chosen[subsample(len(chosen), SOLVED_ROWS, rng)]
        pilot = chosen[subsample(len(chosen), PROTOTYPE_ROWS, rng)]
        pilot_rows = DistinctRows.from_keys(solver.take(pilot), keys[pilot]).rows
        count = self.prototypes
        if count is None:
            count = n_prototypes(kinds, pilot_rows, _affordable(pilot_rows, int(usable.sum())))
        tolerances = TOLERANCES if rows.names else TOLERANCES[:1]
        starts = solve_path(
            initial_prototypes(kinds, pilot_rows, count), pilot_rows, tolerances, PRECISION
        )
        whole = DistinctRows.from_keys(solver.take(chosen), keys[chosen])
        self.repeated_ = whole.keys[whole.repeated]
        prototypes: list[Prototypes] = []
        choices: list[np.ndarray] = []
        tables: list[np.ndarray] = []
        for number, start in enumerate(starts):
            solved = _solved_anew(start, whole.rows)
            table = assign_rows(solved, whole.rows, whole.repeated)[whole.repeated]
            prototypes.append(solved)
            tables.append(table)
            nearest = solved.nearest(solver.targets, solver.means)
            choices.append(look_up(keys, self.repeated_, table, nearest))
            _progress.tell(number + 1, len(starts), "trade-offs")
        self.choices_ = np.array(tables, dtype=np.int64)
        return prototypes, choices

    def _measured(
        self,
        rows: FitRows,
        means: np.ndarray,
        bases: Sequence[SensitiveBasis],
        choices: Sequence[np.ndarray],
        performance: dict[str, np.ndarray],
    ) -> Frontier:
        """Measure every trade-off on out-of-fold rows, with a correction for overfitting."""
        confidence = self.confidence or 0.95
        known = ~np.isnan(rows.s).any(axis=1) & (rows.mass > 0)
        weights = rows.mass[known]
        groups = rows.row_groups(known)
        cells = [
            np.unique(self._coordinates(z[known], at), axis=0, return_inverse=True)[1].ravel()
            for at, z in enumerate(choices)
        ]
        gaps: dict[str, tuple[Gap, ...]] = {}
        pvalues: dict[str, float] = {}
        finest = 0.0
        start = 0
        for j, (name, basis) in enumerate(zip(rows.names, bases)):
            s = rows.s[known, j]
            functions = self.solution_.bases[j](s) @ self.solution_.directions[j]
            stop = start + functions.shape[1]
            told = explained_shares(functions, means[known, start:stop], weights)
            start = stop
            tests = [HeadsTest.from_rows(z, basis(s), weights, groups) for z in cells]
            own = [test.gap(confidence, told, SOLVED_ROWS) for test in tests]
            window = window_indicators(s, weights)
            finest = max(finest, 1 / len(window.T))
            for at, z in enumerate(cells):
                # includes functions of S that the basis doesn't span, at the resolution of the
                # windows
                joined = join_rare(z, weights, len(window.T))
                test = HeadsTest.from_rows(joined, window, weights, groups)
                high = test.gap(confidence, told, SOLVED_ROWS).high
                own[at] = replace(own[at], high=max(own[at].high, high))
            gaps[name] = tuple(own)
            pvalues[name] = tests[0].pvalue
        return Frontier(
            aim="heads",
            measure=self._measure,
            performance=performance,
            gaps=gaps,
            pvalues=pvalues,
            confidence=confidence,
            base_rate=None,
            rows=int(known.sum()),
            resolution=finest or None,
        )

    # Transforming

    @property
    def _position(self) -> int:
        return self.choice_.position

    def _coordinates(self, z: np.ndarray, at: int | None = None) -> np.ndarray:
        """Return the coordinates of prototypes (n,) at a trade-off, by default the chosen one."""
        columns = self.solution_.coordinates[self._position if at is None else at]
        return np.asarray(np.column_stack([*columns.values()])[z])

    def _predict_folds(
        self, X: Any, s: np.ndarray | None, codes: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the predictions of each fold's models for rows: the targets that Z should predict,
        (n, T), and m, (n, K). If Z may use S, the functions of S take the place of m.
        """
        targets = self.solution_.targets
        none = np.zeros((_num_samples(X), 0))
        result = []
        for values in self._predictions(X, s, [one.classes for one in targets], codes):
            kept, means = split_targets(targets, values)
            directions = self.solution_.directions
            if s is not None:
                bases = self.solution_.bases
                means = np.column_stack([none, *(basis(own) for basis, own in zip(bases, s.T))])
            else:
                starts = np.cumsum([len(along) for along in directions])[:-1]
                groups = np.split(means, starts, axis=1) if directions else []
                chosen = [own @ along for own, along in zip(groups, directions)]
                means = np.column_stack([none, *chosen])
            result.append((kept, means))
        return result


def _strata(targets: Sequence[KeptTarget], labels: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the class codes used to stratify folds: those of the target if there is only one
    target and each of its classes has at least two rows, otherwise None.
    """
    if len(targets) != 1 or targets[0].classes is None:
        return None
    codes = np.searchsorted(targets[0].classes, labels[targets[0].name])
    return codes if np.bincount(codes).min() > 1 else None


def _affordable(pilot: SolverRows, rows: int) -> int:
    """Return how many prototypes this many rows support. More prototypes lower E d, but solving on
    n rows leaves a dependence of about (L − 1) Σ Var m / n between Z and the functions of S.
    """
    centered = pilot.means - pilot.weights @ pilot.means
    told = float((pilot.weights @ centered**2).sum())
    return int(np.clip(1 + LEAK * rows / max(told, 1e-9), 4, MOST_PROTOTYPES))


def _solved_anew(prototypes: Prototypes, rows: SolverRows) -> Prototypes:
    """Return the prototypes with multipliers recomputed from more rows."""
    start = replace(prototypes, origin=rows.weights @ rows.means)
    solved = with_multipliers(start, rows, PRECISION)
    return solved if solved.objective < np.inf else start
