"""Shared parts of the estimators with a parity limit: they validate rows, fit out-of-fold models of
y and of functions of S, and choose a trade-off for a limit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import lightgbm
import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import PredefinedSplit
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
)

from frhsic import _progress
from frhsic._threads import thread_count
from frhsic._warnings import warn
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.engine import Engine, fit_engine
from frhsic.estimators.folds import ADMITTED_FOLDS, fold_of_rows
from frhsic.estimators.frontier import Choice, IndistinctGapWarning, UnmetLimitWarning
from frhsic.estimators.inputs import (
    ROUTING,
    estimator_seed,
    known_table,
    require_variation,
    sensitive_values,
    typed_table,
    warn_of_suspicions,
    warn_of_unlabelled,
    warn_without_attributes,
)
from frhsic.estimators.responses import Response
from frhsic.formatting import printable
from frhsic.parity.limits import LimitLike, parse_limits
from frhsic.tables.columns import LARGEST_FEATURE, is_frame, to_pandas
from frhsic.tables.schema import Schema


class ParityModel(BaseEstimator):
    """Base class of the estimators with a parity limit. A subclass has the parameters `estimator`,
    `limit`, `confidence`, `uses_sensitive`, `attribute_estimator`, `cv`, `n_jobs` and
    `random_state`, and its `fit` sets `frontier_`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "cv": ADMITTED_FOLDS,
    }

    estimator: Any
    limit: LimitLike
    confidence: float | None
    uses_sensitive: bool
    attribute_estimator: Any
    cv: Any
    n_jobs: int | None
    random_state: Any
    schema_: Schema
    engine_: Engine | None = None
    # typed as Any, since these are None only in fits without controls or attributes
    strata_: Any = None
    models_: list[list[Any]]
    attribute_models_: list[list[Any]]
    frontier_: Any
    choice_: Any

    def at(self, limit: LimitLike) -> Self:
        """Return a fitted copy with another limit. Nothing is refitted, and the copy shares the
        models.

        The trade-offs of a predictor depend on the limit that it was fitted with. A new limit on an
        attribute that had none can rarely be met. In this case, fit again with limits on all
        attributes, or with ``limit=None``, for which trade-offs reduce all gaps in proportion.
        """
        check_is_fitted(self)
        if self.frontier_ is None:
            raise ValueError(
                "this model was fitted without sensitive_features, so it has no trade-offs to"
                " choose from; fit it with sensitive_features."
            )
        moved = copy.copy(self)
        moved.limit = limit
        moved._check()
        moved._choose()
        return moved

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "choice_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        return tags

    # Rows

    @property
    def _measure(self) -> str:
        """Name of the limited gap, as used in limits."""
        return "gdp"

    @property
    def _largest_gap(self) -> float:
        return 0.5

    def _check(self) -> None:
        """Raise an error if a parameter has an invalid value."""
        self._validate_params()
        for limit in parse_limits(self.limit, [self._measure]):
            if not limit.base and limit.value > self._largest_gap:
                raise ValueError(
                    f"limit is {limit.value:g}, but a gap is between 0 and"
                    f" {self._largest_gap:g}; write a share as '50%'."
                )
            if limit.base == "gap" and limit.value > 1:
                raise ValueError(f"limit is {limit} of the unconstrained gap; pass at most 100%.")

    def _check_fit(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        groups: Any,
        control_features: Any = None,
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Return the table, weights and groups of a fit, where groups are numbered from 0."""
        self._check()
        X = known_table(
            self,
            X,
            first=True,
            y=y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            groups=groups,
            control_features=control_features,
        )
        if self.estimator is None:
            X = typed_table(self, X)
        self.random_seed_ = estimator_seed(self.random_state)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        if groups is not None:
            groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        return X, sample_weight, groups

    def _attributes(self, X: Any, codes: np.ndarray | None, sensitive_features: Any) -> np.ndarray:
        """Return the attributes of a fit, (n, q), and warn about suspicious columns."""
        s = np.zeros((_num_samples(X), 0))
        names: list[str] = []
        if sensitive_features is not None:
            s, names = sensitive_values(sensitive_features, len(s))
            require_variation(s, names)
            warn_of_unlabelled(
                ~np.isnan(s).any(axis=1),
                "they are used for the model of y, but each gap is limited and measured only on"
                " rows that have its attribute",
            )
        elif self.limit is not None:
            if self.limit != type(self)().limit:
                raise ValueError(
                    f"limit is {self.limit!r}, but fit was given no sensitive_features, so there is"
                    f" no gap to limit. Pass sensitive_features, or limit=None.{ROUTING}"
                )
            warn_without_attributes(self, "limit=None")
        self.sensitive_names_in_ = np.array(names, dtype=object)
        warn_of_suspicions(self, X, codes, None if self.uses_sensitive else s, names)
        return s

    def _folds(
        self, cv: Any, X: Any, codes: np.ndarray | None, groups: np.ndarray | None
    ) -> np.ndarray:
        """Return the fold of each row. The number of folds is at most the number of rows of the
        rarest class, and at most the number of groups.
        """
        if isinstance(cv, Integral):
            n = _num_samples(X)
            most = [cv, n // 2]
            if codes is not None:
                most.append(int(np.bincount(codes).min()))
            if groups is not None:
                most.append(int(groups.max()) + 1)
            cv = min(most)
            if cv < 2:
                raise ValueError(
                    f"the rows (n_samples={n}) cannot be split into two folds; pass at least two"
                    " rows of each class and, with groups, at least two groups."
                )
        fold = fold_of_rows(X, cv, codes, groups, self.random_seed_)
        for j in range(fold.max() + 1):
            if codes is not None and len(np.unique(codes[fold != j])) < 2:
                raise ValueError(
                    "the training rows of a fold have only one class; pass other folds, or more"
                    " rows of each class with positive weight."
                )
        return fold

    # Models

    def _fit_regressions(
        self, rows: FitRows, outcomes: Sequence[Response], functions: Sequence[Response]
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Fit the regressions of outcomes and of functions of S, leaving out each fold in turn.
        Return the out-of-fold predictions, (n, outputs), and the modeled directions of each group
        of functions, (K, R). The user's own models are cloned for each fold; the engine fits all
        other regressions.
        """
        own = list(outcomes) if self.estimator is None else []
        if not (self.estimator is None or is_prefit(self.estimator)):
            for target in outcomes:
                require_kind(self.estimator, target)
        if self.attribute_estimator is None:
            own.extend(functions)
        self.engine_ = None
        self.models_, eta = self._fit_models(rows, self.estimator, rows.s, outcomes)
        self.attribute_models_, means = self._fit_models(
            rows, self.attribute_estimator, None, functions
        )
        directions = tuple(np.eye(target.values.shape[1]) for target in functions)
        parts = [eta, means]
        if own:
            fit = fit_engine(
                rows.codes,
                self.schema_.categorical if is_frame(rows.X) else (),
                own,
                rows.fold,
                rows.mass,
                rows.seed,
                self.n_jobs,
            )
            self.engine_ = fit.engine
            parts = [eta, fit.out_of_fold, means]
            if self.attribute_estimator is None:
                directions = fit.directions[len(own) - len(functions) :]
        return np.column_stack(parts), directions

    def _fit_models(
        self, rows: FitRows, model: Any, s: np.ndarray | None, targets: Sequence[Response]
    ) -> tuple[list[list[Any]], np.ndarray]:
        """Return the models of each fold, one for each target, and the out-of-fold predictions, (n,
        outputs). The models are clones of the given model, or the model itself if it is used
        without refitting.
        """
        if model is None or not targets:
            return [], np.zeros((len(rows.fold), 0))
        if is_prefit(model):
            if len(targets) > 1:
                raise ValueError(
                    "estimator is a fitted model, which predicts one column, but y has"
                    f" {len(targets)}. Pass one column, or an estimator that can be refitted."
                )
            return [[model]], predict_models([model], rows.X, [targets[0].classes])
        X = self._with_columns(rows.X, s, rows.strata)
        return cross_fit(model, X, targets, rows, self.n_jobs)

    def _fit_without_attributes(self, rows: FitRows, outcome: Response) -> None:
        """Fit only the regression of y. The user's own model is fitted once, on all rows."""
        if self.estimator is None:
            self._fit_regressions(rows, [outcome], [])
            return
        self.engine_ = None
        self.attribute_models_ = []
        model = self.estimator
        if not is_prefit(model):
            require_kind(model, outcome)
            every = np.arange(len(rows.fold))
            model = fit_clone(model, rows.X, outcome, every, rows, self.n_jobs)
        self.models_ = [[model]]

    # Predicting

    def _sensitive(self, X: Any, sensitive_features: Any) -> np.ndarray | None:
        """Return the attributes of new rows, (n, q), or None if predictions don't use them."""
        if not self.uses_sensitive or not len(self.sensitive_names_in_):
            return None
        if sensitive_features is None:
            raise ValueError(
                "this model uses the sensitive attributes to predict: pass sensitive_features."
                + ROUTING
            )
        s, _ = sensitive_values(sensitive_features, _num_samples(X), self.sensitive_names_in_)
        if np.isnan(s).any():
            raise ValueError(
                "sensitive_features has missing values, but this model needs every attribute to"
                " predict. Fill in these values, or drop these rows."
            )
        return s

    def _controls_among(self, X: Any) -> bool:
        """Return whether all controls are columns of the table."""
        if self.strata_ is None or not is_frame(X):
            return False
        return {one.name for one in self.strata_.columns} <= {str(name) for name in X.columns}

    def _further_columns(
        self, X: Any, s: np.ndarray | None, strata: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return the columns that models use in addition to those of the table: the strata of the
        rows, unless the table contains the controls, and the attributes, (n, q), if predictions may
        use them.
        """
        columns: dict[str, np.ndarray] = {}
        if strata is not None and self.strata_ is not None and not self._controls_among(X):
            for code, name in zip(range(self.strata_.other), self.strata_.names):
                columns[f"stratum {name}"] = (strata == code).astype(np.float64)
        if self.uses_sensitive and s is not None:
            for name, values in zip(self.sensitive_names_in_, s.T):
                columns[f"sensitive {name}"] = values
        return columns

    def _with_columns(self, X: Any, s: np.ndarray | None, strata: np.ndarray | None) -> Any:
        """Return the table to which the user's own models are fitted."""
        columns = self._further_columns(X, s, strata)
        if not columns:
            return X
        if is_frame(X):
            return to_pandas(X).assign(**columns)
        return np.column_stack([X, *columns.values()])

    def _coded(self, X: Any, s: np.ndarray | None, strata: np.ndarray | None = None) -> np.ndarray:
        """Return the numeric table that the engine uses."""
        if is_frame(X):
            codes = self.schema_.codes(to_pandas(X))
        else:
            codes = np.clip(np.asarray(X, dtype=np.float64), -LARGEST_FEATURE, LARGEST_FEATURE)
        return np.column_stack([codes, *self._further_columns(X, s, strata).values()])

    def _predictions(
        self,
        X: Any,
        s: np.ndarray | None,
        classes: Sequence[Any],
        codes: np.ndarray | None = None,
        strata: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the predictions of each fold's regressions for new rows, (folds, n, outputs):
        outcomes with the given classes (None for numbers), and functions of S. Passing the table's
        codes saves time.
        """
        parts = []
        if self.models_:
            table = X if is_prefit(self.estimator) else self._with_columns(X, s, strata)
            parts.append(np.stack([predict_models(own, table, classes) for own in self.models_]))
        if self.engine_ is not None:
            codes = self._coded(X, s, strata) if codes is None else codes
            parts.append(self.engine_.predict(codes, self.n_jobs))
        if self.attribute_models_:
            table = typed_table(self, X) if self.estimator is None else X
            table = self._with_columns(table, None, strata)
            each = [predict_models(own, table, [None] * len(own)) for own in self.attribute_models_]
            parts.append(np.stack(each))
        folds = max(map(len, parts))  # a fitted model serves all folds
        parts = [np.broadcast_to(part, (folds, *part.shape[1:])) for part in parts]
        return np.concatenate(parts, axis=2)

    # Choosing

    def _choice(self) -> Choice:
        choice: Choice = self.frontier_.choose(self.limit, self.confidence is not None)
        return choice

    def _choose(self) -> None:
        """Choose a trade-off that meets the limit, and warn if no trade-off does."""
        self.choice_ = self._choice()
        if self.choice_.indistinct:
            warn(str(self.choice_), IndistinctGapWarning)
        if not self.choice_.met:
            warn(str(self.choice_), UnmetLimitWarning)


def weighted_rows(
    sample_weight: Any,
    cv: Any,
    X: Any,
    y: Any,
    sensitive_features: Any,
    groups: Any,
    control_features: Any = None,
) -> list[Any]:
    """Return the arguments without the rows of weight 0. A number of folds is returned unchanged,
    custom folds are restricted to the remaining rows, and None stays None. Invalid weights are left
    to later checks. Weights whose squares would overflow or underflow are divided by the largest
    weight.
    """
    parts = [X, y, sensitive_features, groups, control_features]
    if sample_weight is None:
        return [None, cv, *parts]
    weights = np.asarray(sample_weight)
    lengths = {_num_samples(part) for part in parts if part is not None}
    usable = weights.ndim == 1 and weights.dtype.kind in "fiub" and lengths == {len(weights)}
    if not usable or not np.isfinite(weights).all() or weights.min() < 0 or not weights.max() > 0:
        return [sample_weight, cv, *parts]
    if not 1e-100 < weights.max() < 1e100:
        weights = weights / weights.max()
    rows = np.flatnonzero(weights)
    if len(rows) == len(weights):
        return [weights, cv, *parts]
    if not isinstance(cv, Integral):
        cv = PredefinedSplit(fold_of_rows(X, cv, y, groups, 0)[rows])
    parts = [None if part is None else _safe_indexing(part, rows) for part in parts]
    return [weights[rows], cv, *parts]


def cross_fit(
    model: Any, X: Any, targets: Sequence[Response], rows: FitRows, n_jobs: int | None
) -> tuple[list[list[Any]], np.ndarray]:
    """Return, for each fold, a clone of the model for each target that is fitted on the other
    folds; also return the out-of-fold predictions, (n, outputs).
    """
    held_out = [np.flatnonzero(rows.fold == j) for j in range(rows.fold.max() + 1)]
    models = []
    parts = []
    for j, own in enumerate(held_out):
        train = np.flatnonzero(rows.fold != j)
        models.append([fit_clone(model, X, target, train, rows, n_jobs) for target in targets])
        classes = [target.classes for target in targets]
        parts.append(predict_models(models[-1], _safe_indexing(X, own), classes))
        _progress.tell(j + 1, len(held_out), "models")
    return models, np.concatenate(parts)[np.argsort(np.concatenate(held_out))]


def require_kind(model: Any, target: Response) -> None:
    """Raise an error unless the model is a classifier for labels, or a regressor for numbers."""
    classifies = target.classes is not None
    if not (is_classifier(model) if classifies else is_regressor(model)):
        kind = "labels: pass a classifier" if classifies else "numbers: pass a regressor"
        raise ValueError(f"estimator is {type(model).__name__}, but y contains {kind}.")


def fit_clone(
    model: Any, X: Any, target: Response, train: np.ndarray, rows: FitRows, n_jobs: int | None
) -> Any:
    """Return a clone of a model, fitted on those of the given rows that have a target."""
    model = limit_boosters(with_seed(model, rows.seed), n_jobs)
    some = train[target.rows[train]]
    values = target.values[some]
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2 and not get_tags(model).target_tags.multi_output:
        model = MultiOutputRegressor(model)
    return fit_with_weights(model, _safe_indexing(X, some), values, rows.row_weights(some))


def predict_models(models: Sequence[Any], X: Any, classes: Sequence[Any]) -> np.ndarray:
    """Return the predictions of models, (n, outputs): numbers, the probability of the second of two
    classes, or the probability of each of several classes.
    """
    n = _num_samples(X)
    columns = []
    for model, labels in zip(models, classes):
        X = fitted_columns(model, X) if is_prefit(model) else X
        if labels is None:
            values = (model.predict if hasattr(model, "predict") else model)(X)
            columns.append(np.reshape(np.asarray(values, dtype=np.float64), (n, -1)))
        else:
            chances = class_probabilities(model, X, labels)
            columns.append(chances[:, 1:] if len(labels) == 2 else chances)
    return np.column_stack(columns)


def limit_boosters(model: Any, n_jobs: int | None) -> Any:
    """Set `n_jobs` of LightGBM and XGBoost models, which would otherwise use all cores, and return
    the model. An `n_jobs` that is already set is kept.
    """
    parts = {"": model} | model.get_params()
    limits = {}
    for name, value in parts.items():
        owner = parts.get(name.removesuffix("n_jobs").removesuffix("__"))
        libraries = {base.__module__.partition(".")[0] for base in type(owner).__mro__}
        if name.endswith("n_jobs") and value is None and libraries & {"lightgbm", "xgboost"}:
            limits[name] = thread_count(n_jobs)
    return model.set_params(**limits)


def fit_with_weights(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fit a model or a pipeline with row weights."""
    if weights is None:
        return model.fit(X, y)
    name = "sample_weight"
    last = model
    if isinstance(model, Pipeline):
        name = f"{model.steps[-1][0]}__sample_weight"
        last = model[-1]
    if isinstance(last, MultiOutputRegressor):
        last = last.estimator
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"{type(last).__name__} doesn't support sample_weight. Pass an estimator that does, or"
            " fit without sample_weight."
        )
    return model.fit(X, y, **{name: weights})


def with_seed(model: Any, seed: int) -> Any:
    """Return a clone of a model in which the seed replaces each random state that is None."""
    model = clone(model)
    seeds = [
        k
        for k, value in model.get_params().items()
        if k.split("__")[-1] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(seeds, seed % 2**31))


def is_prefit(estimator: Any) -> bool:
    """Return whether a model is used without refitting, because it is frozen, a function, or an
    object that can only predict.
    """
    fits = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    return estimator is not None and (isinstance(estimator, FrozenEstimator) or not fits)


def fitted_columns(model: Any, X: Any) -> Any:
    """Return the columns of a table on which a given model was fitted. Columns are matched by name
    and returned in the model's order. LightGBM itself checks only the number of columns, and
    replaces blanks in their names with underscores.
    """
    first = model
    while isinstance(first, (FrozenEstimator, Pipeline)):
        first = first[0] if isinstance(first, Pipeline) else first.estimator
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if not is_frame(X) or not names:
        return X
    counts = isinstance(first, lightgbm.LGBMModel)
    present = {str(name).replace(" ", "_") if counts else str(name): name for name in X.columns}
    if lacking := [name for name in names if name not in present]:
        raise ValueError(
            f"X lacks {', '.join(map(repr, lacking))}; pass all columns that the model was fitted"
            " on."
        )
    return X[[present[name] for name in names]]


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return a model's probability of each class, (n, C). Raise an error if these are not
    probabilities, or if the model has other classes.

    The output of a `decision_function` is interpreted as log-odds for two classes and, for more
    classes, as logarithms of probabilities up to a constant. The resulting probabilities sum to 1
    but are not calibrated; to calibrate them, wrap the model in scikit-learn's
    ``CalibratedClassifierCV``. A class that is missing from the training rows of a fold has
    probability 0.
    """
    methods = "predict_proba", "decision_function", "predict"
    method = next((name for name in methods if hasattr(model, name)), "__call__")
    p = np.asarray(getattr(model, method)(X), dtype=np.float64)
    if method == "decision_function":
        p = expit(p) if p.ndim == 1 else softmax(p, axis=1)
    own = getattr(model, "classes_", None)
    if own is not None and p.ndim == 2 and p.shape[1] == len(own):
        other = np.setdiff1d(own, classes)
        if len(other):
            raise ValueError(
                f"the estimator was fitted on the classes {printable(repr(list(own)), 80)}, but y"
                f" lacks {printable(repr(list(other)), 80)}. Fit the estimator on the classes of y."
            )
        every = np.zeros((len(p), len(classes)))
        every[:, np.searchsorted(classes, own)] = p
        p = every
    text = f"the estimator returns scores of shape {p.shape} between {p.min():g} and {p.max():g}"
    if len(classes) == 2 and p.shape[1:] in ((), (1,)):
        p = p.reshape(-1)
        p = np.column_stack([1 - p, p])
    sound = p.shape[1:] == (len(classes),) and np.isfinite(p).all() and p.min() >= 0
    if not sound or np.abs(p.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError(f"{text}; pass one that returns probabilities of {len(classes)} classes.")
    return p
