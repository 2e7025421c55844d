"""Representations under parity: each row has one of a few prototypes, from which heads can hardly
read S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from frhsic import _progress
from frhsic._threads import within_n_jobs
from frhsic.estimators.conditional import SensitiveBasis, TreeTable, predicted_directions
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.describing import cell_means, column_means, described
from frhsic.estimators.fitting import ParityModel, is_given, means_of_models
from frhsic.estimators.frontier import Choice, Frontier, Gap
from frhsic.estimators.heads_gap import HeadsTest, explained, windows_of, without_rare
from frhsic.estimators.inputs import named_arguments, typed_table
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
from frhsic.estimators.targets import (
    KeptTarget,
    named_coordinates,
    target_columns,
    target_kinds,
    target_performance,
)
from frhsic.parity.limits import LimitLike
from frhsic.splits import subsample
from frhsic.tables.encoding import TableEncoding

# τ of the trade-offs. The first is no constraint; the last allows no dependence.
TOLERANCES = (1e9, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.0)

# Rows that find the prototypes and their number, and their multipliers, at most.
PROTOTYPE_ROWS = 2_000
SOLVED_ROWS = 20_000

# Scaled gradient at which the multipliers are solved for; rows leave more dependence than that.
PRECISION = 1e-3

# Most prototypes by default, and Σ R²(φ(S) | Z) that solving on few rows may leave.
MOST_PROTOTYPES = 64
LEAK = 0.005


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


class ParityEncoder(TransformerMixin, ParityModel):
    r"""Transformer: each row becomes one of a few prototypes, so that no head of Z can have a large
    gap along sensitive attributes S.

    .. math:: \min_Z \; E\,d(X, Z) \quad \text{subject to} \quad
        \tfrac12 \sqrt{\chi^2(Z, S)} \le \text{limit}, \qquad
        E\,\bigl|E[f(Z) | S] - E f(Z)\bigr| \le \tfrac12 \sqrt{\chi^2(Z, S)}

    for every head f with values in [0, 1] and gaps at the resolution of windows of S, each with a
    twentieth of the rows or, of fewer than 2,000 rows, with 100 of them. Heads can have larger gaps
    in waves of S that are shorter than a window. The problem is convex for given prototypes and
    solved, not trained: each prototype has to have the same mean of
    :math:`m_k(x) = E[\varphi_k(S) | x]`.
    Use it to hand on features, or to build several heads on one Z. The attributes are needed to
    fit, and to transform only with `uses_sensitive`.

    The bound is about heads of Z alone. A head that also sees other columns, the same rows released
    at two limits or after a refit, and rows of one household read together can reveal more. Anyone
    who has x, or the fitted encoder, can predict S as well as x allows.

    Parameters
    ----------
    estimator : classifier, regressor, FrozenEstimator, function or None
        Model of each column of y, fitted out of fold; one that is frozen, or a function of X, is
        used as it is. None is LightGBM, averaged with additive splines below 10,000 rows.
    limit : number, str, dict or None
        A number is a bound on the gap of every head, at this resolution; with few rows it needs few
        prototypes to be kept. A share of the unconstrained gap such as
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
    models_ : list
        For each fold, the fitted models of y.
    attribute_models_ : list
        For each fold, the fitted models of the :math:`m_k`.
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
            by itself, always the same way, and as the rows of the fit were. Columns that the model
            does not use are ignored.
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
                known = None if s is None else s[own]
                choice[own] = prototypes.nearest(*self._predicted(j, _safe_indexing(X, own), known))
        repeated = self.choices_[self._position]
        return self._coordinates(looked_up(keys, self.repeated_, repeated, choice))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns of Z."""
        check_is_fitted(self)
        return np.array([*self.solution_.coordinates[0]], dtype=object)

    @property
    def prototypes_(self) -> pd.DataFrame:
        """One row for each prototype."""
        check_is_fitted(self)
        return pd.DataFrame(self.solution_.tables[self._position])

    # Fitting

    @within_n_jobs
    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any
    ) -> list[np.ndarray]:
        """Fit; return the prototypes of the rows at each trade-off, by encoders without them."""
        X, weights, groups = self._checked(X, y, sensitive_features, sample_weight, groups)
        labels = target_columns(self, y)
        for values in labels.values():
            check_consistent_length(X, values)
        s = self._attributes(X, None, sensitive_features)
        targets = tuple(KeptTarget.of(name, values, weights) for name, values in labels.items())
        rows = FitRows(
            X=X,
            s=s,
            names=tuple(self.sensitive_names_in_),
            weights=weights,
            groups=groups,
            fold=self._folds(X, _strata(targets, labels), groups),
            seed=self.random_seed_,
        )
        self.table_ = TreeTable().fit(X)
        predicted = self._fit_models_of_y(rows, targets, labels)
        known = ~np.isnan(s).any(axis=1)
        whole = [SensitiveBasis.fit(column[known], rows.mass[known]) for column in s.T]
        bases, directions, means = self._fit_models_of_s(rows, known, whole)
        solver = SolverRows(predicted, means, rows.mass / rows.mass.sum())
        kinds = target_kinds(targets) or (Numbers(0, predicted.shape[1]),)
        path, choices = self._solve(rows, solver, kinds, known)
        centers = [
            cell_means(z, predicted, rows.mass, each.centers) for z, each in zip(choices, path)
        ]
        if targets:
            coordinates = [named_coordinates(targets, each) for each in centers]
        else:
            coordinates = column_means(rows, choices, [len(each) for each in centers])
        self.solution_ = Representation(
            targets=targets,
            bases=bases,
            directions=directions,
            path=tuple(path),
            coordinates=tuple(coordinates),
            tables=tuple(described(self.table_, rows, choices, coordinates)),
        )
        kept = [
            target_performance(targets, each[z], labels, rows.mass)
            if targets
            else {"kept": _kept_variance(predicted, each[z], rows.mass)}
            for z, each in zip(choices, centers)
        ]
        performance = {name: np.array([one[name] for one in kept]) for name in kept[0]}
        self.frontier_ = self._measured(rows, means, whole, choices, performance)
        self._choose()
        return choices

    def _fit_models_of_y(
        self, rows: FitRows, targets: Sequence[KeptTarget], labels: dict[str, np.ndarray]
    ) -> np.ndarray:
        """Fit the models of each fold; return what is kept of each row by models without it."""
        if not targets:
            self.feature_encoding_ = TableEncoding.fit(rows.X)
            matrix = self.feature_encoding_(rows.X)
            self.column_scales_ = _column_scales(self.feature_encoding_, matrix, rows.mass)
            self.models_ = [[]]
            return np.asarray(matrix * self.column_scales_)
        if is_given(self.estimator) and len(targets) > 1:
            raise ValueError(
                f"estimator is a fitted model, which predicts one column; y has {len(targets)}."
            )
        models = []
        predicted = []
        for target in targets:
            classifies = target.classes is not None
            own = self._models_of_y(rows, labels[target.name], classifies, target.predicted)
            models.append(own[0])
            predicted.append(own[1])
        self.models_ = [list(each) for each in zip(*models)]
        return np.column_stack(predicted)

    def _fit_models_of_s(
        self, rows: FitRows, known: np.ndarray, whole: Sequence[SensitiveBasis]
    ) -> tuple[tuple[SensitiveBasis, ...], tuple[np.ndarray, ...], np.ndarray]:
        """Fit the models of each fold; return the functions of each attribute that are modelled,
        the combinations of them that x tells, and m of each row by models that have not seen it.
        """
        bases = tuple(
            self._told(rows, j, basis, basis(rows.s[:, j])) for j, basis in enumerate(whole)
        )
        targets = [basis(s) for basis, s in zip(bases, rows.s.T)]
        every = tuple(np.eye(own.shape[1]) for own in targets)
        if self.uses_sensitive or not targets:
            self.attribute_models_ = [[]]
            return bases, every, np.column_stack([np.zeros((len(known), 0)), *targets])
        self.attribute_models_, means = self._models_of_s(rows, targets)
        if self.attribute_estimator is None:
            return bases, every, means
        # a function that x does not tell would be a constraint for nothing
        starts = np.cumsum([own.shape[1] for own in targets])[:-1]
        parts = np.split(means, starts, axis=1)
        directions = tuple(
            predicted_directions(part[known], own[known], rows.mass[known])
            for part, own in zip(parts, targets)
        )
        told = [part @ along for part, along in zip(parts, directions)]
        return bases, directions, np.column_stack(told)

    def _solve(
        self, rows: FitRows, solver: SolverRows, kinds: tuple[Kind, ...], known: np.ndarray
    ) -> tuple[list[Prototypes], list[np.ndarray]]:
        """Return the prototypes of each trade-off, and which of them the rows have, (n,)."""
        keys = self._keys(rows.X, rows.s if self.uses_sensitive else None)
        rng = np.random.default_rng(rows.seed)
        # φ(S), which is m where S is known, needs the attributes
        usable = rows.mass > 0
        if self.uses_sensitive:
            usable &= known
        chosen = np.flatnonzero(usable)
        chosen = chosen[subsample(len(chosen), SOLVED_ROWS, rng)]
        pilot = chosen[subsample(len(chosen), PROTOTYPE_ROWS, rng)]
        pilot_rows = DistinctRows.of(solver.at(pilot), keys[pilot]).rows
        count = self.prototypes
        if count is None:
            count = enough(kinds, pilot_rows, _affordable(pilot_rows, int(usable.sum())))
        tolerances = TOLERANCES if rows.names else TOLERANCES[:1]
        starts = path(spread(kinds, pilot_rows, count), pilot_rows, tolerances, PRECISION)
        whole = DistinctRows.of(solver.at(chosen), keys[chosen])
        self.repeated_ = whole.keys[whole.repeated]
        prototypes: list[Prototypes] = []
        choices: list[np.ndarray] = []
        tables: list[np.ndarray] = []
        for number, start in enumerate(starts):
            solved = _solved_anew(start, whole.rows)
            table = assigned(solved, whole.rows, whole.repeated)[whole.repeated]
            prototypes.append(solved)
            tables.append(table)
            nearest = solved.nearest(solver.targets, solver.means)
            choices.append(looked_up(keys, self.repeated_, table, nearest))
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
        """Measure every trade-off on rows whose models have not seen them, with what they hide."""
        confidence = self.confidence or 0.95
        known = ~np.isnan(rows.s).any(axis=1) & (rows.mass > 0)
        weights = rows.mass[known]
        groups = rows.groups_of(known)
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
            told = explained(functions, means[known, start:stop], weights)
            start = stop
            tests = [HeadsTest.of(z, basis(s), weights, groups) for z in cells]
            own = [test.gap(confidence, told, SOLVED_ROWS) for test in tests]
            window = windows_of(s, weights)
            finest = max(finest, 1 / len(window.T))
            for at, z in enumerate(cells):
                # functions of S that the basis does not span, at the resolution of the windows
                joined = without_rare(z, weights, len(window.T))
                test = HeadsTest.of(joined, window, weights, groups)
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
        """Return the coordinates of prototypes (n,), those of the chosen trade-off."""
        columns = self.solution_.coordinates[self._position if at is None else at]
        return np.asarray(np.column_stack([*columns.values()])[z])

    def _means(self, models: Sequence[Any], X: Any, s: np.ndarray | None) -> np.ndarray:
        """Return m of rows, (n, K), by some models; functions of S themselves, where Z may use
        it.
        """
        none = np.zeros((_num_samples(X), 0))
        if s is not None:
            bases = self.solution_.bases
            return np.column_stack([none, *(basis(own) for basis, own in zip(bases, s.T))])
        parts = zip(means_of_models(models, X), self.solution_.directions)
        return np.column_stack([none, *(means @ along for means, along in parts)])

    def _predicted(self, fold: int, X: Any, s: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return what the models of one fold say of rows: what Z should keep of them, (n, T), and
        m, (n, K).
        """
        of_y, of_s = self._tables(X, s)
        means = self._means(self.attribute_models_[fold % len(self.attribute_models_)], of_s, s)
        models = self.models_[fold % len(self.models_)]
        if not models:
            return np.asarray(self.feature_encoding_(X) * self.column_scales_), means
        kept = [one.predicted(model, of_y) for one, model in zip(self.solution_.targets, models)]
        return np.column_stack(kept), means

    def _keys(self, X: Any, s: np.ndarray | None) -> np.ndarray:
        """Return a number for each row that depends on its content alone."""
        codes = self.table_.codes(X)
        content = pd.DataFrame(codes if s is None else np.column_stack([codes, s]))
        return pd.util.hash_pandas_object(content, index=False).to_numpy()


def _strata(targets: Sequence[KeptTarget], labels: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return the codes of the classes by which folds are stratified: those of the only target, if
    each of them has two rows.
    """
    if len(targets) != 1 or targets[0].classes is None:
        return None
    codes = np.searchsorted(targets[0].classes, labels[targets[0].name])
    return codes if np.bincount(codes).min() > 1 else None


def _affordable(pilot: SolverRows, rows: int) -> int:
    """Return how many prototypes so many rows can solve for: E d falls with their number, and
    solving leaves about (L − 1) Σ Var m / n of the functions of S in Z.
    """
    centered = pilot.means - pilot.weights @ pilot.means
    told = float((pilot.weights @ centered**2).sum())
    return int(np.clip(1 + LEAK * rows / max(told, 1e-9), 4, MOST_PROTOTYPES))


def _solved_anew(prototypes: Prototypes, rows: SolverRows) -> Prototypes:
    """Return prototypes whose multipliers are solved for on more rows."""
    start = replace(prototypes, origin=rows.weights @ rows.means)
    solved = with_multipliers(start, rows, PRECISION)
    return solved if solved.objective < np.inf else start


def _column_scales(encoding: TableEncoding, matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return factors that give each column of the table the same share in squared distances."""
    mean = np.average(matrix, axis=0, weights=weights)
    variance = np.average((matrix - mean) ** 2, axis=0, weights=weights)
    widths = [len(column.names) for column in encoding.columns]
    place = np.repeat(np.arange(len(widths)), widths)
    whole = np.bincount(place, variance)
    return np.asarray(1 / np.sqrt(np.maximum(whole, 1e-12) * len(widths)))[place]


def _kept_variance(columns: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> float:
    """Return the share of the variance of columns, (n, T), that the centers of rows keep."""
    mean = np.average(columns, axis=0, weights=weights)
    lost = (weights @ (columns - centers) ** 2).sum()
    return float(1 - lost / (weights @ (columns - mean) ** 2).sum())
