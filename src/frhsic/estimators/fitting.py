"""What estimators under parity share: checked rows, models of y and of functions of S that predict
rows which they have not seen, and the choice of a trade-off by a limit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import lightgbm
import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
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
from frhsic._warnings import warn
from frhsic.estimators.conditional import (
    ADMITTED_FOLDS,
    PILOT_ROWS,
    SensitiveBasis,
    SharedTable,
    SplinesAndTrees,
    fold_of_rows,
    limit_boosters,
    told_directions,
)
from frhsic.estimators.constraints import FitRows
from frhsic.estimators.frontier import Choice, IndistinctGapWarning, UnmetLimitWarning
from frhsic.estimators.inputs import (
    ROUTING,
    estimator_seed,
    require_variation,
    sensitive_values,
    typed_table,
    warn_of_suspicions,
    warn_of_unlabelled,
    warn_without_attributes,
)
from frhsic.parity.limits import LimitLike, parse_limits
from frhsic.splits import subsample
from frhsic.tables.columns import is_frame, to_pandas

# `rounds` of the model of an attribute, fewer than for y; most of what tells it is simple.
ATTRIBUTE_ROUNDS = 12


class ParityModel(BaseEstimator):
    """The base of estimators under parity.

    A subclass has the parameters `estimator`, `limit`, `confidence`, `uses_sensitive`,
    `attribute_estimator`, `cv`, `n_jobs` and `random_state`, and its `fit` sets `frontier_`.
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
    frontier_: Any
    choice_: Any

    def at(self, limit: LimitLike) -> Self:
        """Return a fitted copy at another limit. Nothing is fitted again; the models are shared.

        The trade-offs of predictors are those of the limits of `fit`. If some attributes had none
        there, limits on them can rarely be met here: fit again, with limits on all attributes or
        with ``limit=None``, which lowers all gaps alike.
        """
        check_is_fitted(self)
        if self.frontier_ is None:
            raise ValueError(
                "this model was fitted without sensitive_features, so it has one trade-off only."
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
        """Name of the gap that is limited."""
        return "gdp"

    @property
    def _largest_gap(self) -> float:
        return 0.5

    def _check(self) -> None:
        """Raise if a parameter has a value that it must not have."""
        self._validate_params()
        for limit in parse_limits(self.limit, [self._measure]):
            if not limit.base and limit.value > self._largest_gap:
                raise ValueError(
                    f"limit is {limit.value:g}, but a gap lies between 0 and"
                    f" {self._largest_gap:g}; a share is written '50%'."
                )
            if limit.base == "gap" and limit.value > 1:
                raise ValueError(f"limit is {limit} of the gap without a limit; pass at most 100%.")

    def _check_fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, np.ndarray | None, np.ndarray | None]:
        """Return the table, weights and groups of a fit, the groups as numbers from 0 on."""
        self._check()
        X = typed_table(
            self,
            X,
            first=True,
            y=y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            groups=groups,
        )
        self.random_seed_ = estimator_seed(self.random_state)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        if groups is not None:
            groups = np.unique(np.asarray(groups), return_inverse=True)[1]
        return X, sample_weight, groups

    def _attributes(self, X: Any, codes: np.ndarray | None, sensitive_features: Any) -> np.ndarray:
        """Return the attributes of a fit, (n, q), with warnings of what is odd in them."""
        s = np.zeros((_num_samples(X), 0))
        names: list[str] = []
        if sensitive_features is not None:
            s, names = sensitive_values(sensitive_features, len(s))
            require_variation(s, names)
            warn_of_unlabelled(
                ~np.isnan(s).any(axis=1),
                "they train the models of y, and each gap is limited and measured on the rows that"
                " have its attribute",
            )
        elif self.limit is not None:
            warn_without_attributes(self, "limit=None")
        self.sensitive_names_in_ = np.array(names, dtype=object)
        warn_of_suspicions(self, X, codes, None if self.uses_sensitive else s, names)
        return s

    def _folds(self, X: Any, codes: np.ndarray | None, groups: np.ndarray | None) -> np.ndarray:
        """Return the fold of each row. Of a number of folds there are at most as many as the rarest
        class has rows, or as there are groups.
        """
        cv = self.cv
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
                    f"the rows (n_samples={n}) cannot be cut into two folds: pass two rows of each"
                    " class, and two groups."
                )
        return fold_of_rows(X, cv, codes, groups, self.random_seed_)

    # Models

    def _model_of_y(
        self, X: Any, y: np.ndarray, weights: np.ndarray | None, classifies: bool
    ) -> Any:
        """Return the model of y, fitted on some rows; one that is given stays as it is."""
        if is_prefit(self.estimator):
            return self.estimator
        if self.estimator is None:
            model: Any = SplinesAndTrees(classifies, n_jobs=self.n_jobs)
        else:
            model = self.estimator
            if not (is_classifier(model) if classifies else is_regressor(model)):
                kind = "labels: pass a classifier" if classifies else "numbers: pass a regressor"
                raise ValueError(f"estimator is {type(model).__name__}, but y holds {kind}.")
        model = limit_boosters(with_seed(model, self.random_seed_), self.n_jobs)
        return fit_with_weights(model, X, y, weights)

    def _models_of_y(
        self,
        rows: FitRows,
        labels: np.ndarray,
        classifies: bool,
        predict: Callable[[Any, Any], np.ndarray],
    ) -> tuple[list[Any], np.ndarray]:
        """Return the model of y of each fold, or the given one, and what `predict` makes of each
        row with a model that has not seen it.
        """
        table = self._with_sensitive(rows.X, rows.s)
        if is_prefit(self.estimator):
            if is_frame(table):
                require_fitted_columns(self.estimator, table)
            return [self.estimator], predict(self.estimator, table)
        return cross_fit(
            rows.fold,
            lambda train: self._model_of_y(
                _safe_indexing(table, train), labels[train], rows.row_weights(train), classifies
            ),
            lambda model, held_out: predict(model, _safe_indexing(table, held_out)),
            "models of the target",
        )

    def _predictable_directions(
        self, rows: FitRows, attribute: int, basis: SensitiveBasis, targets: np.ndarray
    ) -> SensitiveBasis:
        """Return those combinations of the functions of an attribute that x tells; all of them,
        where S is known or `attribute_estimator` is set. Targets (n, K) are what m is the mean of.
        """
        if self.attribute_estimator is not None or self.uses_sensitive:
            return basis
        known = np.flatnonzero(~np.isnan(rows.s[:, attribute]))
        pilot = known[subsample(len(known), PILOT_ROWS, np.random.default_rng(rows.seed))]
        X = _safe_indexing(rows.X, pilot)
        even = rows.fold[pilot] % 2 == 0  # with five folds 60 % of the rows; groups stay together
        return basis.along(told_directions(X, targets[pilot], rows.mass[pilot], even, self.n_jobs))

    def _models_of_s(
        self, rows: FitRows, targets: Sequence[np.ndarray]
    ) -> tuple[list[list[Any]], np.ndarray]:
        """Return the models of m of each fold, one for each attribute, and m of each row by those
        without it. The targets of each attribute, (n, K), are what m is the mean of.
        """

        def fit_one(attribute: int, train: np.ndarray) -> Any:
            some = train[~np.isnan(rows.s[train, attribute])]
            values = targets[attribute][some]
            model = self._model_of_s(values.shape[1])
            return fit_with_weights(
                model, _safe_indexing(rows.X, some), values, rows.row_weights(some)
            )

        return cross_fit(
            rows.fold,
            lambda train: [fit_one(attribute, train) for attribute in range(len(targets))],
            lambda models, held_out: np.column_stack(
                means_of_models(models, _safe_indexing(rows.X, held_out))
            ),
            f"models of {', '.join(rows.names)}",
        )

    def _model_of_s(self, outputs: int) -> Any:
        """Return an unfitted model of some functions of an attribute."""
        seed = self.random_seed_
        if self.attribute_estimator is None:
            return SplinesAndTrees(rounds=ATTRIBUTE_ROUNDS, n_jobs=self.n_jobs, random_state=seed)
        model = limit_boosters(with_seed(self.attribute_estimator, seed), self.n_jobs)
        several = outputs == 1 or get_tags(model).target_tags.multi_output
        return model if several else MultiOutputRegressor(model)

    # Predicting

    def _sensitive(self, X: Any, sensitive_features: Any) -> np.ndarray | None:
        """Return the attributes of new rows, (n, q), where predictions use them."""
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
                "sensitive_features has missing values; this model needs them to predict."
            )
        return s

    def _with_sensitive(self, X: Any, s: np.ndarray | None) -> Any:
        """Return the columns that the models of y see: with the attributes, (n, q), if they may be
        used and the models are fitted here.
        """
        if not self.uses_sensitive or s is None or not s.size or is_prefit(self.estimator):
            return X
        if not is_frame(X):
            return np.column_stack([X, s])
        names = [f"sensitive {name}" for name in self.sensitive_names_in_]
        return to_pandas(X).assign(**dict(zip(names, s.T)))

    def _tables(self, X: Any, s: np.ndarray | None) -> tuple[Any, Any]:
        """Return the table for the models of y and for those of S; default models share codes."""
        table = self._with_sensitive(X, s)
        shared = SharedTable(table)
        return (
            shared if self.estimator is None else table,
            shared if self.attribute_estimator is None else table,
        )

    # Choosing

    def _choice(self) -> Choice:
        choice: Choice = self.frontier_.choose(self.limit, self.confidence is not None)
        return choice

    def _choose(self) -> None:
        """Choose a trade-off by the limit, and warn if none keeps it."""
        self.choice_ = self._choice()
        if self.choice_.indistinct:
            warn(str(self.choice_), IndistinctGapWarning)
        if not self.choice_.met:
            warn(str(self.choice_), UnmetLimitWarning)


def cross_fit(
    fold: np.ndarray,
    fit: Callable[[np.ndarray], Any],
    predict: Callable[[Any, np.ndarray], np.ndarray],
    unit: str,
) -> tuple[list[Any], np.ndarray]:
    """Return what `fit` makes of the rows outside of each fold, and what `predict` makes of that in
    the fold; progress counts in `unit`.
    """
    held_out = [np.flatnonzero(fold == j) for j in range(fold.max() + 1)]
    models = []
    for j in range(len(held_out)):
        models.append(fit(np.flatnonzero(fold != j)))
        _progress.tell(j + 1, len(held_out), unit)
    parts = [predict(model, rows) for model, rows in zip(models, held_out)]
    return models, np.concatenate(parts)[np.argsort(np.concatenate(held_out))]


def means_of_models(models: Sequence[Any], X: Any) -> list[np.ndarray]:
    """Return what each model predicts, (n, K)."""
    return [np.reshape(model.predict(X), (_num_samples(X), -1)) for model in models]


def fit_with_weights(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fit a model or a pipeline with weights of the rows."""
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
        raise ValueError(f"{type(last).__name__} takes no sample_weight, which was passed to fit.")
    return model.fit(X, y, **{name: weights})


def with_seed(model: Any, seed: int) -> Any:
    """Return a clone of a model in which every random state that is None is the seed."""
    model = clone(model)
    seeds = [
        k
        for k, value in model.get_params().items()
        if k.split("__")[-1] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(seeds, seed % 2**31))


def is_prefit(estimator: Any) -> bool:
    """Return whether a model is used as it is: frozen, a function, or an object that only
    predicts.
    """
    fits = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    return estimator is not None and (isinstance(estimator, FrozenEstimator) or not fits)


def require_fitted_columns(model: Any, X: Any) -> None:
    """Raise unless a table has the columns that a given model was fitted on.

    LightGBM only counts columns, and writes its names with underscores in place of blanks.
    """
    first = model
    while isinstance(first, (FrozenEstimator, Pipeline)):
        first = first[0] if isinstance(first, Pipeline) else first.estimator
    counts = isinstance(first, lightgbm.LGBMModel)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    present = [str(name).replace(" ", "_") if counts else str(name) for name in X.columns]
    if lacking := [name for name in names if name not in present]:
        raise ValueError(
            f"X lacks {', '.join(map(repr, lacking))}, which the model was fitted on. Pass them,"
            " too."
        )
    if counts and [name for name in present if name in names] != names:
        raise ValueError(
            "X has the columns that the model was fitted on in another order; pass them in this"
            f" order: {', '.join(map(repr, names))}."
        )


def class_probabilities(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Return the probability of each class, (n, C), that a model gives, checked."""
    methods = "predict_proba", "decision_function", "predict"
    method = next((name for name in methods if hasattr(model, name)), "__call__")
    p = np.asarray(getattr(model, method)(X), dtype=np.float64)
    p = expit(p) if method == "decision_function" else p
    if p.ndim == 2 and hasattr(model, "classes_") and p.shape[1] != len(classes):
        every = np.zeros((len(p), len(classes)))  # a fold without a rare class
        every[:, np.searchsorted(classes, model.classes_)] = p
        p = every
    text = f"the estimator gives scores of shape {p.shape} between {p.min():g} and {p.max():g}"
    if len(classes) == 2 and p.shape[1:] in ((), (1,)):
        p = p.reshape(-1)
        p = np.column_stack([1 - p, p])
    if p.shape[1:] != (len(classes),) or not np.isfinite(p).all() or p.min() < 0 or p.max() > 1:
        raise ValueError(f"{text}; probabilities of {len(classes)} classes are needed.")
    return p
