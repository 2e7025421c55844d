"""The closed form with a parity limit: two kinds of regressions, and a few coefficients that are
computed numerically for each trade-off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from itertools import product
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from frhsic._threads import limit_to_n_jobs
from frhsic._warnings import warn
from frhsic.estimators.constraints import Among, Constraint, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import (
    BinaryScores,
    ClassScores,
    Family,
    NumberRanks,
    NumberScores,
    ScoreRanks,
)
from frhsic.estimators.fitting import (
    ParityModel,
    fit_with_weights,
    is_prefit,
    limit_boosters,
    predict_models,
    weighted_rows,
)
from frhsic.estimators.folds import HashedFolds, row_hashes
from frhsic.estimators.frontier import (
    Aim,
    Choice,
    Condition,
    Frontier,
    Gap,
    limited_measure,
    measure_path,
)
from frhsic.estimators.inputs import (
    ROUTING,
    known_table,
    named_arguments,
    target_column,
)
from frhsic.estimators.responses import Response
from frhsic.estimators.solution import Solution
from frhsic.parity.limits import LimitLike, limits_by_attribute, parse_limits
from frhsic.parity.strata import Strata
from frhsic.tables.columns import to_pandas

# The rows among which a gap is limited, for each value of the parameter `condition`.
CONDITIONS: dict[str | None, tuple[Among, ...]] = {
    None: ("all",),
    "positive": ("positive",),
    "both": ("positive", "negative"),
}

# A frozen model may be better than its out-of-fold clone by at most this many standard errors.
LEAK_ERRORS = 4.0


class LeakingEstimatorWarning(UserWarning):
    """A frozen model seems to have been trained on the rows passed to `fit`.

    The model's scores then leak y, so the loss and the gaps are underestimated. Fit on rows that
    the model was not trained on, or pass the model without ``FrozenEstimator`` so that it is fitted
    out of fold.

    Examples
    --------
    A tree reproduces the labels of its training rows, which are random here.

    >>> import warnings
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from frhsic import ParityClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.random(200) < 0.5
    >>> tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> model = ParityClassifier(FrozenEstimator(tree), attribute_estimator=LinearRegression())
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", LeakingEstimatorWarning)
    ...     model.fit(X, y, sensitive_features=X[:, 0])
    Traceback (most recent call last):
    frhsic.estimators.predictor.LeakingEstimatorWarning: the frozen DecisionTreeClassifier ...
    """


class JoinedStrataWarning(UserWarning):
    """Controls were binned or strata were merged, which affects who is compared with whom.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> line = LinearRegression()
    >>> model = ParityRegressor(line, attribute_estimator=line, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", JoinedStrataWarning)
    ...     model.fit(X, X[:, 0], sensitive_features=X[:, 0], control_features=X[:, 1])
    Traceback (most recent call last):
    frhsic.estimators.predictor.JoinedStrataWarning: control is numeric and was split ...
    """


class ParityEstimator(ParityModel, ABC):
    """Shared parts of the classifier and the regressor."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ParityModel._parameter_constraints,
        "aim": [StrOptions({"score", "rank", "decision"})],
        "condition": [StrOptions({"positive", "both"}), None],
    }

    folds_: HashedFolds | None
    solution_: Solution | None
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
        cv: Any = 5,
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
        control_features: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the regressions, solve for every trade-off and choose one that meets the limit.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Features. The default models accept text, categories, dates and missing values.
        y : array of shape (n,)
            Labels for a classifier, numbers for a regressor.
        sensitive_features : array, Series, DataFrame or names of columns of X, optional
            Attributes of shape (n,) or (n, q). Columns named by a string or a list of strings are
            removed from the features; to keep a column as a feature, pass the column itself, such
            as ``X["age"]``. Rows with NaN are used only for the model for y. If no
            attribute is given, nothing is limited, and `fit` warns.
        control_features : array, Series, DataFrame or names of columns of X, optional
            Columns such as the occupation. For all gaps and limits, people are compared only with
            people who have the same values in these columns. Several columns are crossed, numeric
            columns with more than five values are binned into fifths, and strata with fewer than 50
            rows are merged into "other" (see `strata_`). Controls that are columns of X remain
            features. Other controls become additional features, and `predict` then requires them.
        sample_weight : array of shape (n,), optional
            Weights of the rows in all regressions and sums.
        groups : array of shape (n,) or the name of a column of X, optional
            Rows that belong together, such as those of one person, stay in the same fold and count
            as one observation in intervals.
        """
        self._fit(X, y, sensitive_features, sample_weight, groups, control_features)
        return self

    @limit_to_n_jobs
    def _fit(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        groups: Any,
        control_features: Any = None,
    ) -> tuple[LabelledRows, np.ndarray, np.ndarray] | None:
        """Fit the predictor. Return rows with out-of-fold η and m, or None if there are no
        attributes.
        """
        sample_weight, cv, X, y, sensitive_features, groups, controls = weighted_rows(
            sample_weight, self.cv, X, y, sensitive_features, groups, control_features
        )
        X, weights, groups = self._check_fit(
            X, y, sensitive_features, sample_weight, groups, controls
        )
        labels = target_column(self, y)
        check_consistent_length(X, labels)
        codes = self._codes(labels)
        s = self._attributes(X, codes, sensitive_features)
        strata = self._learn_strata(X, None if sensitive_features is None else controls)
        classes = codes.astype(np.int64) if is_classifier(self) else None
        table = self._coded(X, s, strata)
        rows = LabelledRows(
            X=X,
            codes=table,
            s=s,
            names=tuple(self.sensitive_names_in_),
            weights=weights,
            groups=groups,
            fold=self._served_folds(cv, X, table, classes, groups, weights),
            seed=self.random_seed_,
            y=codes,
            labels=labels,
            numeric=classes is None,
            strata=strata,
            n_strata=1 if self.strata_ is None else self.strata_.other + 1,
        )
        constraints = self._constraints(rows)
        outcome, *functions = self._responses(rows, constraints)
        if sensitive_features is None:
            self._fit_without_attributes(rows, outcome)
            self.solution_ = self.frontier_ = self.choice_ = None
            return None
        predicted, directions = self._fit_regressions(rows, [outcome], functions)
        constraints, eta, means = self._solve(rows, constraints, predicted, directions)
        self._warn_if_leaking(rows, eta)
        self.frontier_ = self._measured(rows, constraints, eta, means)
        self._choose()
        return rows, eta, means

    def _constraints(self, rows: LabelledRows) -> tuple[Constraint, ...]:
        """Return the constraints, one for each limited gap."""
        return tuple(
            Constraint.fit(rows, *pair)
            for pair in product(range(len(rows.names)), CONDITIONS[self.condition])
        )

    def _responses(self, rows: LabelledRows, constraints: tuple[Constraint, ...]) -> list[Response]:
        """Return the targets of the regressions: y and, unless predictions use the attributes,
        functions of the attributes.
        """
        outcome = Response(rows.y[:, None] if rows.numeric else rows.labels, *self._classes)
        if self.uses_sensitive:
            return [outcome]
        functions = (
            Response(
                one.targets(rows.s, rows.y),
                known=~np.isnan(rows.s[:, one.attribute]),
                reduced=True,
            )
            for one in constraints
        )
        return [outcome, *functions]

    def _solve(
        self,
        rows: LabelledRows,
        constraints: tuple[Constraint, ...],
        predicted: np.ndarray,
        directions: tuple[np.ndarray, ...],
    ) -> tuple[tuple[Constraint, ...], np.ndarray, np.ndarray]:
        """Compute the coefficients of every trade-off from the out-of-fold predictions of the
        regressions; return the constraints along the modeled directions, η and m.
        """
        eta, means = self._eta_and_means(predicted)
        if self.uses_sensitive:
            means = self._known_means(constraints, rows.s, eta)
        else:
            constraints = tuple(
                replace(one, basis=one.basis.along(along))
                for one, along in zip(constraints, directions)
            )
        limits = limits_by_attribute(parse_limits(self.limit, [self._measure]), rows.names)
        self.solution_ = Solution.fit(self._family(), rows, constraints, eta, means, limits)
        return constraints, eta, means

    def _measured(
        self,
        rows: LabelledRows,
        constraints: tuple[Constraint, ...],
        eta: np.ndarray,
        means: np.ndarray,
    ) -> Frontier:
        """Measure every trade-off on rows with out-of-fold η and m."""
        solution = self.solution_
        assert solution is not None
        # if one fold's predictor is served, it is measured on the rows that it wasn't fitted on
        served = np.full(len(rows.fold), True)
        if not solution.family.averages and self.folds_ is None:
            served = rows.fold == 0
        measured_rows = rows.at(served)
        scores = [
            solution.out_of_fold(place, rows.fold, eta, means, rows.strata)[served]
            for place in range(len(solution.parameters))
        ]
        each = [self._performance(measured_rows, one, solution) for one in scores]
        performance = {name: np.array([one[name] for one in each]) for name in each[0]}
        path = np.stack(scores, axis=1)
        if solution.family.decides:
            path = (path > solution.units.threshold).astype(np.float64)
        confidence = self.confidence or 0.95
        gaps, pvalues = measure_path(self.aim, path, measured_rows, constraints, confidence)
        return self._frontier(performance, gaps, pvalues, rows.base_rate, len(path))

    def _frontier(
        self,
        performance: dict[str, np.ndarray],
        gaps: dict[str, tuple[Gap, ...]],
        pvalues: dict[str, float],
        base_rate: float | None,
        rows: int,
    ) -> Frontier:
        """Return the frontier of the measured trade-offs, where constant trade-offs have no gap."""
        assert self.solution_ is not None
        none = Gap(0.0, 0.0, 0.0)
        constant = self.solution_.constant
        return Frontier(
            aim=self.aim,
            measure=self._measure,
            performance=performance,
            gaps={
                name: tuple(none if same else gap for gap, same in zip(every, constant))
                for name, every in gaps.items()
            },
            pvalues=pvalues,
            confidence=self.confidence or 0.95,
            base_rate=base_rate,
            rows=rows,
            controls=None if self.strata_ is None else self.strata_.label,
        )

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()
        results = (getattr(self, name, None) for name in ("choice_", "frontier_"))
        cards = [result._repr_html_() for result in results if result is not None]
        return "".join([*cards, diagram])

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()  # Jupyter calls only _repr_mimebundle_
        return bundle

    # Differences between classes and numbers

    @abstractmethod
    def _codes(self, y: np.ndarray) -> np.ndarray:
        """Return y as numbers, or learn the classes and return their codes."""

    @abstractmethod
    def _losses(self, eta: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the loss of each row."""

    @abstractmethod
    def _performance(
        self, sample: LabelledRows, scores: np.ndarray, solution: Solution
    ) -> dict[str, float]:
        """Return performance measures, keyed by name."""

    # Fitting

    @property
    def _measure(self) -> str:
        return limited_measure(self.aim, self.condition)

    def _family(self) -> Family:
        if self.aim == "decision":
            return Decisions()
        if not is_classifier(self):
            return NumberScores() if self.aim == "score" else NumberRanks()
        if self.aim == "rank":
            return ScoreRanks()
        return ClassScores() if len(self.classes_) > 2 else BinaryScores()

    def _learn_strata(self, X: Any, control_features: Any) -> np.ndarray | None:
        """Learn the strata of the controls, and return the stratum of each row."""
        self.strata_ = None
        if control_features is None:
            return None
        strata = Strata.fit(control_features)
        codes = strata.codes(control_features)
        check_consistent_length(X, codes)
        self.strata_ = strata
        if self._controls_among(X) and not np.array_equal(codes, strata.codes(self._controls(X))):
            raise ValueError(
                f"control_features and X both contain {strata.label}, with different values. Pass"
                " column names, or rename the columns of control_features."
            )
        if strata.notes:
            warn(" ".join(strata.notes), JoinedStrataWarning)
        return codes

    def _controls(self, X: Any) -> Any:
        """Return the controls as columns of a table that contains them."""
        assert self.strata_ is not None
        frame = to_pandas(X)
        by_text = {str(name): frame[name] for name in frame.columns}
        return pd.DataFrame({one.name: by_text[one.name] for one in self.strata_.columns})

    def _strata_of(self, X: Any, control_features: Any) -> np.ndarray | None:
        """Return the stratum of each new row, or None if people are not compared within strata."""
        if self.strata_ is None:
            return None
        if control_features is None and not self._controls_among(X):
            raise ValueError(
                f"this model compares people with the same {self.strata_.label}, which X lacks;"
                f" pass control_features.{ROUTING}"
            )
        codes: np.ndarray = self.strata_.codes(
            self._controls(X) if control_features is None else control_features
        )
        check_consistent_length(X, codes)
        return codes

    def _served_folds(
        self,
        cv: Any,
        X: Any,
        table: np.ndarray,
        classes: np.ndarray | None,
        groups: np.ndarray | None,
        weights: np.ndarray | None,
    ) -> np.ndarray:
        """Return the fold of each row.

        If scores are limited, predictions are means over folds, so any folds can be used. For ranks
        and decisions, the gap of such a mean would differ from the measured gap. Therefore, the
        content of a row determines its fold, and a new row is predicted by the models of the fold
        that it would have been in. With groups or custom folds, all new rows are predicted by the
        models of the first fold.
        """
        self.folds_ = None
        if self.aim == "score" or groups is not None or not isinstance(cv, Integral):
            return self._folds(cv, X, classes, groups)
        mass = np.ones(len(table)) if weights is None else weights
        distinct = len(np.unique(row_hashes(table)))
        for count in range(min(int(cv), distinct), 1, -1):
            folds = HashedFolds.fit(table, count, mass)
            fold = folds(table)
            labels = np.zeros(len(fold), dtype=np.int64) if classes is None else classes
            sizes = np.zeros((count, labels.max() + 1))
            np.add.at(sizes, (fold, labels), 1)
            # no fold is empty, and the other folds have at least two rows of each class
            if sizes.sum(axis=1).min() > 0 and (sizes.sum(axis=0) - sizes).min() > 1:
                self.folds_ = folds
                return fold
        return self._folds(cv, X, classes, groups)

    def _warn_if_leaking(self, sample: LabelledRows, eta: np.ndarray) -> None:
        """Warn if a frozen model is significantly better on a fold than a clone fitted on the other
        folds.
        """
        model = self.estimator.estimator if isinstance(self.estimator, FrozenEstimator) else None
        if model is None or is_prefit(model):
            return
        train = np.flatnonzero(sample.fold != 0)
        held_out = np.flatnonzero(sample.fold == 0)
        X = _safe_indexing(sample.X, train)
        try:
            fresh = limit_boosters(clone(model), self.n_jobs)
            fit_with_weights(fresh, X, sample.labels[train], sample.row_weights(train))
            X = _safe_indexing(sample.X, held_out)
            again, _ = self._eta_and_means(predict_models([fresh], X, self._classes))
        except (TypeError, ValueError, RuntimeError):
            # a model that can't be fitted on these rows wasn't trained on them; a model that can't
            # be cloned, such as CatBoost with a list of categories, isn't checked
            return
        y = sample.y[held_out]
        gain = self._losses(again, y) - self._losses(eta[held_out], y)
        if gain.mean() > LEAK_ERRORS * gain.std() / np.sqrt(len(gain)):
            warn(
                f"the frozen {type(model).__name__} predicts these rows better than a clone that"
                " was fitted without them, so it seems to have been trained on them. Fit on other"
                " rows, or pass the model without FrozenEstimator.",
                LeakingEstimatorWarning,
            )

    # Predicting

    def _known_means(
        self, constraints: tuple[Constraint, ...], s: np.ndarray, eta: np.ndarray
    ) -> np.ndarray:
        return np.column_stack([constraint.known_means(s, eta) for constraint in constraints])

    def _regressions(
        self,
        X: Any,
        s: np.ndarray | None = None,
        codes: np.ndarray | None = None,
        strata: np.ndarray | None = None,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return η and m of rows from the models of each fold. Pass s if predictions use the
        attributes, and strata if the table doesn't contain the controls. Passing the table's codes
        saves time.
        """
        assert self.solution_ is not None
        predicted = self._predictions(X, s, self._classes, codes, strata)
        parts = []
        for j in range(self.solution_.parameters.shape[1]):
            # a frozen model is used for all folds
            eta, means = self._eta_and_means(predicted[j % len(predicted)])
            if s is not None:
                means = self._known_means(self.solution_.constraints, s, eta)
            parts.append((eta, means))
        return parts

    @property
    def _classes(self) -> list[Any]:
        """The classes of y, or None for numbers, in a list."""
        return [getattr(self, "classes_", None)]

    def _eta_and_means(self, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split the predictions of the regressions into η, (n,), or (n, C) for more than two
        classes, and m, (n, K).
        """
        count = len(getattr(self, "classes_", ()))
        if count > 2:
            return predicted[:, :count], predicted[:, count:]
        return predicted[:, 0], predicted[:, 1:]

    @limit_to_n_jobs
    def _scores(self, X: Any, sensitive_features: Any, control_features: Any) -> np.ndarray:
        """Return the mean score of the predictors of all folds or, for ranks and decisions, the
        score of one fold's predictor.
        """
        check_is_fitted(self)
        others = {"sensitive_features": sensitive_features, "control_features": control_features}
        X = known_table(self, X, first=False, **others)
        solution = self.solution_
        if solution is None or self.choice_ is None:
            predicted = self._predictions(X, None, self._classes)
            return self._eta_and_means(predicted.mean(axis=0))[0]
        s = self._sensitive(X, sensitive_features)
        strata = self._strata_of(X, control_features)
        codes = None if self.folds_ is None else self._coded(X, s, strata)
        scores = [
            solution.scores(self.choice_.position, fold, eta, means, strata)
            for fold, (eta, means) in enumerate(self._regressions(X, s, codes, strata))
        ]
        if solution.family.averages:
            return np.asarray(np.mean(scores, axis=0))
        if self.folds_ is None or codes is None:
            return scores[0]
        fold = self.folds_(codes)
        return np.asarray(np.stack(scores)[fold, np.arange(len(fold))])
