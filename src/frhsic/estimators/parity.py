"""Predictors under parity in closed form: two kinds of regressions and a handful of numbers."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import lightgbm
import numpy as np
from scipy.special import expit
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length, get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    has_fit_parameter,
)

from frhsic import _arrays, _progress
from frhsic._threads import within_n_jobs
from frhsic._warnings import warn
from frhsic.estimators.conditional import (
    PILOT_ROWS,
    ConditionalLaw,
    SharedTable,
    SplinesAndTrees,
    fold_of_rows,
    limit_boosters,
    told_directions,
)
from frhsic.estimators.constraints import Among, Constraint, FitRows
from frhsic.estimators.families import FAMILIES, ClippedRanks, FamilyName
from frhsic.estimators.frontier import (
    Aim,
    Choice,
    Condition,
    Frontier,
    IndistinctGapWarning,
    UnmetLimitWarning,
    limited_measure,
    measured,
)
from frhsic.estimators.inputs import (
    named_arguments,
    require_variation,
    seed_of,
    sensitive_values,
    target_column,
    typed_table,
    warn_of_suspicions,
    warn_of_unlabelled,
    warn_without_attributes,
)
from frhsic.estimators.solution import Solution
from frhsic.estimators.solving import GAP_SHARES
from frhsic.parity.limits import LimitLike, by_attribute, parse_limits
from frhsic.tables.columns import is_frame, to_pandas

# Rows among which a gap is limited, by the parameter `condition`.
CONDITIONS: dict[str | None, tuple[Among, ...]] = {
    None: ("all",),
    "positive": ("positive",),
    "both": ("positive", "negative"),
}

# Trees of each function of an attribute, at most; most of what tells it is simple.
ATTRIBUTE_ROUNDS = 12

# Standard errors by which a frozen model may be better on these rows than its clone on rows that it
# has not seen.
LEAK_ERRORS = 4.0


class LeakingEstimatorWarning(UserWarning):
    """A frozen model seems to have been trained on the rows that are passed to fit.

    Its scores then know y, so that loss and gaps are understated. Fit on rows that it has not seen,
    or pass the model without ``FrozenEstimator``, so that it is fitted out of fold here.
    """


def cross_fitted(
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


def fit_with_weights(model: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
    """Fit a model or a pipeline with weights of the rows."""
    if weights is None:
        return model.fit(X, y)
    prefix, last = (
        (f"{model.steps[-1][0]}__", model[-1]) if isinstance(model, Pipeline) else ("", model)
    )
    inner = last.estimator if isinstance(last, MultiOutputRegressor) else last
    if not has_fit_parameter(inner, "sample_weight"):
        raise ValueError(f"{type(inner).__name__} takes no sample_weight, which was passed to fit.")
    return model.fit(X, y, **{f"{prefix}sample_weight": weights})


def with_seed(model: Any, seed: int) -> Any:
    """Return a clone of a model in which every random state that is None is the seed."""
    model = clone(model)
    seeds = [
        k
        for k, value in model.get_params().items()
        if k.split("__")[-1] == "random_state" and value is None
    ]
    return model.set_params(**dict.fromkeys(seeds, seed % 2**31))


def is_given(estimator: Any) -> bool:
    """Return whether a model is used as it is: frozen, a function, or an object that only
    predicts.
    """
    fits = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    return estimator is not None and (isinstance(estimator, FrozenEstimator) or not fits)


def with_sensitive(parity: Any, X: Any, s: np.ndarray | None) -> Any:
    """Return the columns that the models of y see: with the attributes, (n, q), if the estimator
    may use them and fits the models itself.
    """
    if not parity.uses_sensitive or s is None or not s.size or is_given(parity.estimator):
        return X
    if not is_frame(X):
        return np.column_stack([X, s])
    names = [f"sensitive {name}" for name in parity.sensitive_names_in_]
    return to_pandas(X).assign(**dict(zip(names, s.T)))


def require_columns(model: Any, X: Any) -> None:
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


def attribute_model(estimator: Any, outputs: int, n_jobs: int | None, seed: int) -> Any:
    """Return an unfitted model of some functions of an attribute, the default one for None."""
    if estimator is None:
        return SplinesAndTrees(rounds=ATTRIBUTE_ROUNDS, n_jobs=n_jobs, random_state=seed)
    model = limit_boosters(with_seed(estimator, seed), n_jobs)
    several = outputs == 1 or get_tags(model).target_tags.multi_output
    return model if several else MultiOutputRegressor(model)


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
    shape = p.shape
    if len(classes) == 2 and shape[1:] in ((), (1,)):
        p = p.reshape(-1)
        p = np.column_stack([1 - p, p])
    if p.shape[1:] != (len(classes),) or not np.isfinite(p).all() or p.min() < 0 or p.max() > 1:
        text = f"the estimator gives scores of shape {shape} between {p.min():g} and {p.max():g}"
        raise ValueError(f"{text}; probabilities of {len(classes)} classes are needed.")
    return p


class ParityEstimator(BaseEstimator, ABC):
    """What classifier and regressor share."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "aim": [StrOptions({"score", "rank", "decision"})],
        "condition": [StrOptions({"positive", "both"}), None],
        "confidence": [Interval(Real, 0, 1, closed="neither"), None],
        "cv": [Interval(Integral, 2, None, closed="left")],
    }

    models_: list[Any]
    attribute_models_: list[list[Any]]
    solution_: Solution | None
    frontier_: Frontier | None
    choice_: Choice | None

    def __init__(
        self,
        estimator: Any = None,
        *,
        limit: LimitLike = "50%",
        aim: Aim = "score",
        condition: Condition | None = None,
        uses_sensitive: bool = False,
        confidence: float | None = 0.95,
        attribute_estimator: Any = None,
        cv: int = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.limit = limit
        self.aim = aim
        self.condition = condition
        self.uses_sensitive = uses_sensitive
        self.confidence = confidence
        self.attribute_estimator = attribute_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @named_arguments
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the regressions, solve every trade-off and choose one by the limit.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Features. The default models take text, categories, dates and missing values as they
            come.
        y : array of shape (n,)
            Labels, or numbers.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q), optional
            Attributes. Rows with NaN fit the model of y and skip what needs the attribute. Without
            them there is no constraint, with a warning.
        sample_weight : array of shape (n,), optional
            Weights of the rows, in all regressions and sums.
        groups : array of shape (n,), optional
            Rows that belong together, such as those of one person, are in one fold and count as one
            in intervals.
        """
        self._fit(X, y, sensitive_features, sample_weight, groups)
        return self

    @within_n_jobs
    def _fit(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any
    ) -> tuple[FitRows, np.ndarray, np.ndarray] | None:
        """Fit; return the rows with η and m of models that have not seen them, or None without
        attributes.
        """
        self._check()
        others = {
            "y": y,
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "groups": groups,
        }
        X, labels = typed_table(self, X, first=True, **others), target_column(self, y)
        check_consistent_length(X, labels)
        codes, n = self._codes(labels), len(labels)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, codes, ensure_non_negative=True)
        seed = self.random_seed_ = seed_of(self.random_state)
        if sensitive_features is None:
            if self.limit is not None:
                warn_without_attributes(self, "limit=None")
            self.models_, self.attribute_models_ = [self._model_of_y(X, labels, sample_weight)], []
            self.solution_ = self.frontier_ = self.choice_ = None
            return None
        s, names = sensitive_values(sensitive_features, n)
        require_variation(s, names)
        self.sensitive_names_in_ = np.array(names, dtype=object)
        warn_of_unlabelled(
            ~np.isnan(s).any(axis=1),
            "they train the prediction, and the gap is limited and measured on the others",
        )
        warn_of_suspicions(self, X, codes, None if self.uses_sensitive else s, names)
        groups = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        numeric = not is_classifier(self)
        fold = fold_of_rows(n, self._folds(codes, groups), None if numeric else codes, groups, seed)
        table = with_sensitive(self, X, s)
        sample = FitRows(
            table, codes, labels, s, tuple(names), sample_weight, groups, fold, seed, numeric
        )
        constraints = tuple(
            Constraint.fit(sample, *pair)
            for pair in product(range(len(names)), CONDITIONS[self.condition])
        )
        if self.attribute_estimator is None and not self.uses_sensitive:
            constraints = tuple(self._told(sample, constraint) for constraint in constraints)
        self.models_, eta = self._models_of_y(sample)
        self.attribute_models_, means = self._models_of_s(sample, constraints, eta)
        measure = limited_measure(self.aim, self.condition)
        limits = by_attribute(parse_limits(self.limit, [measure]), names)
        solution = Solution.fit(self._family(), sample, constraints, eta, means, limits)
        scores = [solution.out_of_fold(at, fold, eta, means) for at in range(len(GAP_SHARES))]
        each = [self._performance(sample, one, solution.form.decides) for one in scores]
        performance = {name: np.array([one[name] for one in each]) for name in each[0]}
        path = np.stack(
            [one > 0 for one in scores] if solution.form.decides else scores, axis=1
        ).astype(np.float64)
        confidence = self.confidence or 0.95
        gaps, pvalues = measured(self.aim, path, sample, constraints, confidence)
        self.frontier_ = Frontier(
            self.aim, measure, performance, gaps, pvalues, confidence, sample.base_rate, len(codes)
        )
        self.solution_ = solution
        self._choose(self.limit)
        return sample, eta, means

    def at(self, limit: LimitLike) -> Self:
        """Return a fitted copy at another limit. Nothing is fitted again; the models are shared."""
        check_is_fitted(self)
        if self.frontier_ is None:
            raise ValueError(
                "this model was fitted without sensitive_features, so it has one trade-off only."
            )
        moved = copy.copy(self)
        moved.limit = limit
        moved._check()
        moved._choose(limit)
        return moved

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        results = (getattr(self, name, None) for name in ("choice_", "frontier_"))
        cards = [result._repr_html_() for result in results if result is not None]
        return "".join([*cards, diagram])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None
        return tags

    # What differs between classes and numbers

    @abstractmethod
    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Return y as numbers, or as codes of the classes, which are learned."""

    @abstractmethod
    def _eta(self, model: Any, X: Any) -> np.ndarray:
        """Return what a model of y predicts, checked."""

    @abstractmethod
    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of each row."""

    @abstractmethod
    def _performance(self, sample: FitRows, scores: np.ndarray, decides: bool) -> dict[str, float]:
        """Return performance by name."""

    # Fitting

    def _check(self) -> None:
        self._validate_params()
        most = 0.5 if is_classifier(self) or self.aim == "rank" else np.inf
        for limit in parse_limits(self.limit, [limited_measure(self.aim, self.condition)]):
            if not limit.base and limit.value > most:
                raise ValueError(
                    f"limit is {limit.value:g}, but a gap lies between 0 and {most:g}; a share is"
                    " written '50%'."
                )
            if limit.base == "gap" and limit.value > 1:
                raise ValueError(f"limit is {limit} of the gap without a limit; pass at most 100%.")
        suited, kind = (
            (is_classifier, "classifier") if is_classifier(self) else (is_regressor, "regressor")
        )
        if (
            self.estimator is not None
            and not is_given(self.estimator)
            and not suited(self.estimator)
        ):
            raise ValueError(f"estimator is {type(self.estimator).__name__}, which is no {kind}.")
        if not is_classifier(self) and (self.aim == "decision" or self.condition is not None):
            raise ValueError(
                "a regressor takes aim='score' or 'rank' and no condition; decisions need classes."
            )

    def _family(self) -> FamilyName:
        """Return the form of the predictor; if ranks or decisions may use S, the law of η given S
        tells the optimum.
        """
        one = len(self.sensitive_names_in_) == 1 and self.condition is None
        if self.uses_sensitive and self.aim != "score" and one:
            return "clipped" if self.aim == "rank" else "clipped decision"
        if not is_classifier(self):
            return "numbers" if self.aim == "score" else "rank of numbers"
        if self.aim != "score":
            return self.aim
        return "classes" if len(self.classes_) > 2 else "binary"

    def _folds(self, codes: np.ndarray, groups: np.ndarray | None) -> int:
        """Return the number of folds, at most as many as the rarest class has rows or as there are
        groups.
        """
        most = [self.cv, len(codes) // 2]
        if is_classifier(self):
            most.append(int(np.bincount(codes.astype(np.int64)).min()))
        if groups is not None:
            most.append(int(groups.max()) + 1)
        if min(most) < 2:
            raise ValueError(
                "the rows cannot be cut into two folds: pass two rows of each class, and two"
                " groups."
            )
        return min(most)

    def _model_of_y(self, X: Any, y: np.ndarray, weights: np.ndarray | None) -> Any:
        """Return the model of y, fitted on some rows; one that is given stays as it is."""
        if is_given(self.estimator):
            return self.estimator
        model = (
            SplinesAndTrees(is_classifier(self), n_jobs=self.n_jobs)
            if self.estimator is None
            else self.estimator
        )
        model = limit_boosters(with_seed(model, self.random_seed_), self.n_jobs)
        return fit_with_weights(model, X, y, weights)

    def _models_of_y(self, sample: FitRows) -> tuple[list[Any], np.ndarray]:
        """Return the model of y of each fold, or the given one, and η of each row by a model that
        has not seen it.
        """

        def fit(rows: np.ndarray) -> Any:
            return self._model_of_y(
                _safe_indexing(sample.X, rows), sample.labels[rows], sample.weights_of(rows)
            )

        def predict(model: Any, rows: np.ndarray) -> np.ndarray:
            return self._eta(model, _safe_indexing(sample.X, rows))

        if not is_given(self.estimator):
            return cross_fitted(sample.fold, fit, predict, "models of the target")
        if is_frame(sample.X):
            require_columns(self.estimator, sample.X)
        eta = self._eta(self.estimator, sample.X)
        self._warn_if_leaking(sample, eta)
        return [self.estimator], eta

    def _warn_if_leaking(self, sample: FitRows, eta: np.ndarray) -> None:
        """Warn if a frozen model is better on a fold than its clone that was fitted on the others,
        beyond chance.
        """
        model = self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else None
        if model is None or is_given(model):
            return
        train, held_out = np.flatnonzero(sample.fold != 0), np.flatnonzero(sample.fold == 0)
        try:
            X, X_held_out = _safe_indexing(sample.X, train), _safe_indexing(sample.X, held_out)
            fresh = limit_boosters(clone(model), self.n_jobs)
            again = fit_with_weights(fresh, X, sample.labels[train], sample.weights_of(train))
            pair = self._eta(again, X_held_out), eta[held_out]
        except (
            TypeError,
            ValueError,
        ):  # a model that cannot be fitted on these rows was not fitted on them
            return
        gain = np.subtract(*(self._losses(each, sample.y[held_out]) for each in pair))
        if gain.mean() > LEAK_ERRORS * gain.std() / np.sqrt(len(gain)):
            warn(
                f"the frozen {type(model).__name__} predicts these rows better than its clone that"
                " was fitted without them: it seems to have been trained on them. Fit on other"
                " rows, or pass it without FrozenEstimator.",
                LeakingEstimatorWarning,
            )

    def _told(self, sample: FitRows, constraint: Constraint) -> Constraint:
        """Return a constraint whose functions of the attribute are those that x tells."""
        rows = np.flatnonzero(~np.isnan(sample.s[:, constraint.attribute]))
        if len(rows) > PILOT_ROWS:
            rows = np.random.default_rng(sample.seed).choice(rows, PILOT_ROWS, replace=False)
        targets = constraint.targets(sample.s[rows], sample.y[rows])
        half = sample.fold[rows] % 2 == 0
        X = _safe_indexing(sample.X, rows)
        directions = told_directions(X, targets, sample.mass[rows], half, self.n_jobs)
        return replace(constraint, basis=constraint.basis.along(directions))

    def _models_of_s(
        self, sample: FitRows, constraints: tuple[Constraint, ...], eta: np.ndarray
    ) -> tuple[list[list[Any]], np.ndarray]:
        """Return the models of m of each fold, one for each attribute, and m of each row by those
        without it.
        """

        def fit_one(attribute: int, train: np.ndarray) -> Any:
            rows = train[~np.isnan(sample.s[train, attribute])]
            weights, s, y = sample.weights_of(rows), sample.s[rows], sample.y[rows]
            if clips:
                return ConditionalLaw().fit(eta[rows], s[:, attribute], weights)
            targets = np.column_stack(
                [
                    constraint.targets(s, y)
                    for constraint in constraints
                    if constraint.attribute == attribute
                ]
            )
            model = attribute_model(
                self.attribute_estimator, targets.shape[1], self.n_jobs, self.random_seed_
            )
            return fit_with_weights(model, _safe_indexing(sample.X, rows), targets, weights)

        def predict(models: list[Any], rows: np.ndarray) -> np.ndarray:
            return self._means(
                models, constraints, _safe_indexing(sample.X, rows), sample.s[rows], eta[rows]
            )

        clips = isinstance(FAMILIES[self._family()], ClippedRanks)
        modelled = range(len(sample.names)) if clips or not self.uses_sensitive else ()
        return cross_fitted(
            sample.fold,
            lambda rows: [fit_one(attribute, rows) for attribute in modelled],
            predict,
            f"models of {', '.join(sample.names)}",
        )

    def _choose(self, limit: LimitLike) -> None:
        assert self.frontier_ is not None
        choice = self.choice_ = self.frontier_.choose(limit, self.confidence is not None)
        if choice.indistinct:
            warn(str(choice), IndistinctGapWarning)
        if not choice.met:
            warn(str(choice), UnmetLimitWarning)

    # Predicting

    def _means(
        self,
        models: list[Any],
        constraints: tuple[Constraint, ...],
        X: Any,
        s: np.ndarray | None,
        eta: np.ndarray,
    ) -> np.ndarray:
        """Return m of rows, (n, K); where ranks or decisions use S, where their scores would be
        moved.
        """
        if not self.uses_sensitive:
            return np.column_stack(
                [np.reshape(model.predict(X), (len(eta), -1)) for model in models]
            )
        assert s is not None
        columns = [model.predict(eta, s[:, 0]) for model in models] or [
            constraint.known(s, eta) for constraint in constraints
        ]
        return np.column_stack(columns)

    def regressions(
        self, X: Any, s: np.ndarray | None = None
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return η and m of rows by the models of each fold; s is needed where predictions use
        it.
        """
        assert self.solution_ is not None
        table = with_sensitive(self, X, s)
        constraints = self.solution_.constraints
        shared = SharedTable(table)
        of_y = shared if self.estimator is None else table
        of_s = shared if self.attribute_estimator is None else table
        etas = [self._eta(model, of_y) for model in self.models_]
        etas = (
            etas * len(self.attribute_models_) if len(etas) == 1 else etas
        )  # of a model that was given
        return [
            (eta, self._means(own, constraints, of_s, s, eta))
            for eta, own in zip(etas, self.attribute_models_)
        ]

    @within_n_jobs
    def _scores(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the mean of the scores of the fold predictors."""
        check_is_fitted(self)
        X = typed_table(self, X, first=False, sensitive_features=sensitive_features)
        if self.solution_ is None or self.choice_ is None:
            return self._eta(self.models_[0], X)
        s = None
        if self.uses_sensitive:
            if sensitive_features is None:
                raise ValueError(
                    "this model uses the sensitive attributes to predict: pass"
                    " sensitive_features=..."
                )
            s, _ = sensitive_values(sensitive_features, _num_samples(X), self.sensitive_names_in_)
            if np.isnan(s).any():
                raise ValueError(
                    "sensitive_features has missing values; this model needs them to predict."
                )
        parts = zip(self.solution_.at(self.choice_.position), self.regressions(X, s))
        return np.asarray(
            np.mean([self.solution_.scores(own, eta, means) for own, (eta, means) in parts], axis=0)
        )


class ParityClassifier(ClassifierMixin, ParityEstimator):
    r"""Classifier with the least log loss among those whose gap along a continuous attribute keeps
    a limit.

    .. math:: \min_f \; E\,\ell(f(X), Y) \quad \text{subject to} \quad
        E\,\bigl|E[f(X) | S] - E f(X)\bigr| \le \text{limit}

    over all functions of x. The solution moves :math:`\eta(x) = P(Y = 1 | x)` along conditional
    means :math:`m_k(x) = E[\varphi_k(S) | x]`. Both are ordinary regressions, fitted out of fold;
    every trade-off is then solved at once. Use it where the gap of scores, ranks or decisions must
    fall. The attributes are needed to fit, and to predict only with `uses_sensitive`.

    Parameters
    ----------
    estimator : classifier, FrozenEstimator, function or None
        Model of y, fitted out of fold; ``FrozenEstimator(model)`` or a function of X for a model in
        production, which was trained on other rows and stays as it is. None is LightGBM, averaged
        with additive splines below 10,000 rows.
    limit : number, str, dict or None
        A number is a bound on the gap, in the unit of `aim`, which `confidence` is about. A share
        of the unconstrained gap such as "50%", and 0 for the least gap, are aims for the estimate.
        None sets no constraint; a dictionary has a limit for each attribute.
    aim : {"score", "rank", "decision"}
        Whether the mean score, its rank (:func:`~frhsic.parity.rank_gap`) or the decision of
        `predict` is limited.
    condition : {None, "positive", "both"}
        Compare all rows, those of ``classes_[1]`` (Equal Opportunity), or each class (equalized
        odds).
    uses_sensitive : bool
        Whether predictions may use the attributes. They then cost less, and `predict` needs
        `sensitive_features`.
    confidence : float or None
        The upper end of the interval of the gap, at this confidence, keeps a limit that is a
        number; None: the estimate does. If no upper end keeps it, the trade-off is taken that comes
        closest among those whose estimates do, and a warning says how many rows would settle it.
    attribute_estimator : regressor, optional
        Model of the :math:`m_k`. None is as for y, for those combinations of the functions that x
        tells.
    cv, n_jobs, random_state
        Number of folds; threads of BLAS, OpenMP, LightGBM and XGBoost during a call (one for None,
        all for -1), unless a model that you pass has an `n_jobs` of its own; seed of folds and
        models.

    Attributes
    ----------
    frontier_, choice_ : Frontier and Choice, or None
        Every trade-off, measured on rows that neither fitted nor chose it; the one that is served,
        with its gaps.
    classes_, models_, attribute_models_, solution_
        The labels, the fitted regressions of each fold, and the coefficients.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.3 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(axis=1) + 0.5 * rng.normal(size=400) > 0.5
    >>> model = ParityClassifier(limit="50%", random_state=0).fit(X, y, sensitive_features=s)
    >>> bool(
    ...     model.choice_.gaps["sensitive"].value
    ...     <= 0.51 * model.choice_.unconstrained["sensitive"].value
    ... )
    True
    >>> tighter = model.at("40%")
    """

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return the probability of each class, (n, C)."""
        scores = self._scores(X, sensitive_features)
        if scores.ndim == 2:
            return scores
        if self._decides:
            scores = np.clip(scores + self.threshold_, 0.0, 1.0)
        return np.column_stack([1 - scores, scores])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return labels, by the stored threshold for two classes and the largest probability for
        more.
        """
        chances = self.predict_proba(X, sensitive_features=sensitive_features)
        if len(self.classes_) > 2:
            return np.asarray(self.classes_[chances.argmax(axis=1)])
        return np.asarray(self.classes_[(chances[:, 1] > self.threshold_).astype(np.int64)])

    @property
    def threshold_(self) -> float:
        """Score above which `predict` returns the second of two classes."""
        check_is_fitted(self)
        return 0.5 if self.solution_ is None else self.solution_.units.threshold

    @property
    def _decides(self) -> bool:
        return self.solution_ is not None and self.solution_.form.decides

    def _codes(self, y: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"Classifier can't train when only one class is present: {self.classes_.tolist()}."
            )
        if len(self.classes_) > 2 and (self.aim != "score" or self.condition is not None):
            raise ValueError(
                f"y has {len(self.classes_)} classes, which need aim='score' and condition=None."
            )
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _eta(self, model: Any, X: Any) -> np.ndarray:
        """Return probabilities: of the second of two classes, (n,), or of each class, (n, C)."""
        p = class_probabilities(model, X, self.classes_)
        return p[:, 1] if len(self.classes_) == 2 else p

    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        chance = (
            np.where(y == 1, eta, 1 - eta)
            if eta.ndim == 1
            else eta[np.arange(len(y)), y.astype(int)]
        )
        return np.asarray(-np.log(np.clip(chance, 1e-12, 1.0)))

    def _performance(self, sample: FitRows, scores: np.ndarray, decides: bool) -> dict[str, float]:
        y, weights = sample.y, sample.mass
        values = {} if decides else _mean_and_error("log_loss", self._losses(scores, y), weights)
        if scores.ndim == 2:
            right = scores.argmax(axis=1) == y
            return values | {"accuracy": float(np.average(right, weights=weights))}
        right = (scores > (0.0 if decides else 0.5)) == y
        recalls = [np.average(right[y == label], weights=weights[y == label]) for label in (0, 1)]
        return values | {
            "auc": weighted_auc(y, scores, weights),
            "accuracy": float(np.average(right, weights=weights)),
            "balanced_accuracy": float(np.mean(recalls)),
        }


class ParityRegressor(RegressorMixin, ParityEstimator):
    r"""Regressor with the least squared error among those whose gap along a continuous attribute
    keeps a limit.

    .. math:: \min_f \; E\,(f(X) - Y)^2 \quad \text{subject to} \quad
        E\,\bigl|E[f(X) | S] - E f(X)\bigr| \le \text{limit}, \qquad f = \eta - \sum_k c_k m_k

    :class:`ParityClassifier` says how it works, and describes the attributes.

    Parameters
    ----------
    estimator, limit, uses_sensitive, confidence, attribute_estimator, cv, n_jobs, random_state
        As in :class:`ParityClassifier`, with a regressor. A limit that is a number is in the unit
        of y.
    aim : {"score", "rank"}
        Whether the mean prediction or its rank is limited.
    condition : None
        Conditions need two classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> model = ParityRegressor(random_state=0).fit(X, X.sum(axis=1), sensitive_features=s)
    >>> model.choice_.met
    True
    """

    def predict(self, X: Any, *, sensitive_features: Any = None) -> np.ndarray:
        """Return predictions, (n,)."""
        return self._scores(X, sensitive_features)

    def _codes(self, y: np.ndarray) -> np.ndarray:
        return _arrays.vector(np.asarray(y, dtype=np.float64), "y")

    def _eta(self, model: Any, X: Any) -> np.ndarray:
        predicted = (model.predict if hasattr(model, "predict") else model)(X)
        return np.asarray(predicted, dtype=np.float64).reshape(len(predicted))

    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray((eta - y) ** 2)

    def _performance(self, sample: FitRows, scores: np.ndarray, decides: bool) -> dict[str, float]:
        return _mean_and_error("squared_error", self._losses(scores, sample.y), sample.mass)


def weighted_auc(y: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted share of pairs of rows with 0 and with 1 whose scores are in this order;
    half of those with equal scores count.

    Examples
    --------
    >>> weighted_auc(np.array([0, 0, 1]), np.array([0.2, 0.5, 0.5]), np.array([1.0, 2.0, 1.0]))
    0.6666666666666666
    """
    level = np.unique(scores, return_inverse=True)[1]
    ones = np.bincount(level, weights * y)
    zeros = np.bincount(level, weights * (1 - y))
    below = np.cumsum(zeros) - zeros / 2
    return float(ones @ below / (ones.sum() * zeros.sum()))


def _mean_and_error(name: str, values: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    mean = float(np.average(values, weights=weights))
    error = float(np.sqrt((weights**2 * (values - mean) ** 2).sum()) / weights.sum())
    return {name: mean, f"{name}_error": error}
