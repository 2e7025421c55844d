"""Fit models with a grid of weights, measure them on validation rows, and choose one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import has_fit_parameter

from frhsic import _arrays
from frhsic._pictures import card, tradeoff_svg
from frhsic._warnings import warn
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, UnmetLimitWarning
from frhsic.estimators.inputs import named_columns
from frhsic.estimators.network import FitArguments, fit_path
from frhsic.formatting import capitalize, figure, percent
from frhsic.independence import IndependenceResult
from frhsic.independence.effects import hsic_effect
from frhsic.independence.gamma import gamma_test_from_pair
from frhsic.independence.grams import law_pair
from frhsic.independence.pairs import Pair
from frhsic.kernels import Gaussian, per_column_gaussians
from frhsic.parity import ParityResult, gdp
from frhsic.parity.limits import Limit, LimitLike, limits_by_attribute, parse_limits
from frhsic.scoring import model_scores
from frhsic.selection.rule import LIMITED_MEASURES, Candidate, choose, reason
from frhsic.splits import held_out_rows, take_rows

# Default grid; 0 is the unpenalized model.
PENALTY_WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

# Smallest share of the unpenalized model's gain over a constant that a chosen model should keep.
LEAST_GAIN = 0.25

# Most validation rows for HSIC and its test; with more, a test would reject for negligible
# dependence.
TEST_ROWS = 2000
TEST_LEVEL = 0.05


class LowGainWarning(UserWarning):
    """Warning that the chosen model is hardly better than a constant prediction.

    Examples
    --------
    >>> import warnings
    >>> from frhsic import FRHSICRegressor
    >>> from frhsic.training import Training
    >>> s = np.linspace(0, 1, 200)
    >>> network = FRHSICRegressor(training=Training(epochs=20), random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnmetLimitWarning)
    ...     warnings.simplefilter("error", LowGainWarning)
    ...     select_weight(
    ...         network, s[:, None], s, sensitive_features=s, limit=0.01, penalty_weights=[1000]
    ...     )
    Traceback (most recent call last):
    frhsic.selection.weights.LowGainWarning: weight 1000: ...
    """


@dataclass(frozen=True)
class HeldOutMeasures:
    """Measures of the chosen model on rows that were used neither to train nor to choose it; see
    :class:`Candidate`.
    """

    performance: float
    gain: float
    gdp: dict[str, ParityResult]
    independence: IndependenceResult
    rows: int


@dataclass(frozen=True, repr=False)
class Selection:
    """The chosen weight, its model, and all candidates; ``print`` shows a table of the candidates.

    Attributes
    ----------
    penalty_weight
        λ.
    estimator
        The model with this weight, fitted without the validation rows.
    satisfied
        Whether the model meets the limits and keeps enough of the unpenalized model's gain.
    reason
        A sentence on why the weight was chosen.
    candidates
        Every weight in the grid, measured on the validation rows.
    models
        The fitted models of the candidates, in the order of `candidates`.
    scorer
        The function of (model, X, y) that measures performance.
    constant
        The constant predictor: the class frequencies, or the mean of y, in the training rows.

    Examples
    --------
    >>> from frhsic import FRHSICRegressor
    >>> from frhsic.training import Training
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=300)
    >>> X = np.column_stack([s, rng.normal(size=300)])
    >>> network = FRHSICRegressor(training=Training(epochs=20), random_state=0)
    >>> chosen = select_weight(
    ...     network, X, X[:, 1], sensitive_features=s, limit="gain >= 50%", penalty_weights=[1]
    ... )
    >>> chosen.to_frame()["penalty_weight"].tolist()
    [0.0, 1.0]
    >>> measures = chosen.evaluate(X, X[:, 1], sensitive_features=s)  # in practice: test rows
    >>> measures.rows
    300
    """

    penalty_weight: float
    estimator: Any
    satisfied: bool
    reason: str
    candidates: tuple[Candidate, ...]
    models: tuple[Any, ...]
    scorer: Callable[[Any, Any, Any], float]
    constant: Any

    def to_frame(self) -> pd.DataFrame:
        """Return the candidates as a DataFrame, with a column `chosen`."""
        columns = (
            "penalty_weight",
            "performance",
            "gain",
            "gdp",
            "gdp_upper",
            "hsic",
            "hsic_upper",
            "pvalue",
            "accepted",
        )
        frame = pd.DataFrame(
            {name: [getattr(candidate, name) for candidate in self.candidates] for name in columns}
        )
        return frame.assign(chosen=frame["penalty_weight"] == self.penalty_weight)

    def evaluate(
        self, X: Any, y: Any, *, sensitive_features: Any, groups: Any = None
    ) -> HeldOutMeasures:
        """Measure the chosen model on other rows. Report these numbers, not those of the
        candidates.

        Parameters
        ----------
        X, y, sensitive_features
            Rows that were used neither to train nor to choose the model. Rows with a missing
            attribute are dropped.
        groups
            Group of each row, such as a person. Intervals treat groups, not rows, as independent.
        """
        rows = HeldOutRows.from_arrays(X, y, sensitive_features, groups, 0)
        scores = model_scores(self.estimator, rows.X)
        return HeldOutMeasures(
            performance=self.scorer(self.estimator, rows.X, rows.y),
            gain=rows.gain(self.estimator, self.models[0], self.constant),
            gdp={
                name: gdp(scores, column, groups=rows.groups)
                for name, column in zip(rows.names, rows.s.T)
            },
            independence=gamma_test_from_pair(rows.pair(self.estimator), TEST_LEVEL),
            rows=len(rows.s),
        )

    def __repr__(self) -> str:
        return (
            f"Selection(penalty_weight={self.penalty_weight:g}, satisfied={self.satisfied},"
            f" candidates={len(self.candidates)})"
        )

    def _repr_html_(self) -> str:
        pairs = {c.penalty_weight: (c.gdp, c.performance) for c in self.candidates}
        chosen = pairs[self.penalty_weight]
        picture = tradeoff_svg([*pairs.values()], ("GDP", "performance"), chosen=chosen)
        return card([f"weight {self.penalty_weight:g}: {self.reason}."], picture)

    def __str__(self) -> str:
        frame = self.to_frame()
        table = pd.DataFrame(
            {
                "weight": frame["penalty_weight"].map("{:g}".format),
                "gain kept": ["–" if math.isnan(gain) else percent(gain) for gain in frame["gain"]],
                "performance": frame["performance"].map(figure),
                "GDP": frame["gdp"].map(figure),
                "at most": frame["gdp_upper"].map(figure),
                "": np.where(frame["chosen"], "chosen", ""),
            }
        )
        met = "chosen" if self.satisfied else "chosen, but the limit is not met"
        return (
            f"{table.to_string(index=False)}\nweight {self.penalty_weight:g} {met}: {self.reason}."
        )


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows that no model was trained on; `groups` is the group of each row, or None."""

    X: Any
    y: Any
    s: np.ndarray
    names: tuple[str, ...]
    groups: np.ndarray | None
    seed: int

    @classmethod
    def from_arrays(cls, X: Any, y: Any, s: Any, groups: Any, seed: int) -> HeldOutRows:
        """Convert the attributes to a matrix, number the groups, and drop rows with a missing
        attribute.
        """
        values = _arrays.matrix(s, "sensitive_features", allow_missing=True)
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if not len(known):
            raise ValueError(
                f"sensitive_features are missing in all {len(values):,} validation rows; pass"
                " validation rows with sensitive features."
            )
        codes = None if groups is None else pd.factorize(np.asarray(groups).ravel())[0][known]
        names = tuple(_arrays.column_names(s, "sensitive", values.shape[1]))
        return cls(take_rows(X, known), take_rows(y, known), values[known], names, codes, seed)

    def pair(self, model: Any) -> Pair:
        """Return the Gram matrices of Z (or of the scores, for a model without Z) and of all
        attributes jointly, on at most `TEST_ROWS` rows, with one row from each group.
        """
        encodes = hasattr(model, "transform")
        seen = np.asarray(model.transform(self.X)) if encodes else model_scores(model, self.X)
        rows = np.arange(len(self.s))
        generator = np.random.default_rng(self.seed)
        if self.groups is not None:
            shuffled = generator.permutation(rows)
            rows = shuffled[np.unique(self.groups[shuffled], return_index=True)[1]]
        if len(rows) > TEST_ROWS:
            rows = generator.choice(rows, TEST_ROWS, replace=False)
        z = seen[rows]
        s = self.s[rows]
        kernel_s = per_column_gaussians(s) if s.shape[1] > 1 else None
        collapsed = np.ptp(z, axis=0).max() == 0  # then the median distance is 0
        kernel_z = Gaussian(1.0) if collapsed else None
        return law_pair(z, s, kernel_z, kernel_s)

    def gain(self, model: Any, unpenalized: Any, constant: Any) -> float:
        r"""Return the share of the unpenalized model's gain over a constant that a model keeps,
        measured on these rows.

        .. math:: \frac{\text{loss}(\text{constant}) - \text{loss}(\text{model})}
            {\text{loss}(\text{constant}) - \text{loss}(\text{unpenalized})}

        The share is 1 for the unpenalized model, 0 for a constant, and negative for a model worse
        than a constant. It is NaN if the unpenalized model is not better than the constant.
        """
        worst = proper_loss(constant, self.X, self.y)
        best = proper_loss(unpenalized, self.X, self.y)
        if not worst > best:
            return math.nan
        return (worst - proper_loss(model, self.X, self.y)) / (worst - best)

    def candidate(
        self,
        model: Any,
        *,
        limits: Sequence[Limit],
        confidence: float | None,
        scorer: Any,
        unpenalized: Any,
        constant: Any,
    ) -> Candidate:
        """Measure one model. Without a confidence, the upper bounds are the estimates
        themselves.
        """
        scores = model_scores(model, self.X)
        gaps = {}
        gap_bounds = {}
        for name, column in zip(self.names, self.s.T):
            gap = gdp(
                scores,
                column,
                confidence=confidence or 0.95,
                groups=self.groups,
                random_state=self.seed,
            )
            gaps[name] = gap.value
            gap_bounds[name] = gap.value if confidence is None else max(*gap.interval, gap.value)
        pair = self.pair(model)
        test = gamma_test_from_pair(pair, TEST_LEVEL)
        hsic_upper = math.nan
        if any(limit.measure == "hsic" for limit in limits):
            hsic_upper = test.statistic
            if confidence is not None and test.null_standard_deviation > 0:  # else z is constant
                hsic_upper = hsic_effect(pair, confidence).interval.high
        return Candidate(
            penalty_weight=float(model.penalty_weight),
            performance=scorer(model, self.X, self.y),
            gain=self.gain(model, unpenalized, constant),
            gaps=gaps,
            gap_bounds=gap_bounds,
            hsic=test.statistic,
            hsic_upper=hsic_upper,
            pvalue=test.pvalue,
        )

    def base_rate(self, model: Any) -> float:
        """Return the share of the second of two classes, or the mean of a numeric y."""
        values = self.y == model.classes_[1] if is_classifier(model) else self.y
        return float(np.mean(np.asarray(values, dtype=np.float64)))


def proper_loss(model: Any, X: Any, y: Any) -> float:
    """Return the log loss of a classifier, or the mean squared error of another model."""
    if is_classifier(model):
        return float(log_loss(y, model.predict_proba(X), labels=model.classes_))
    return float(mean_squared_error(y, model.predict(X)))


def select_weight(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    limit: LimitLike = "gain >= 80%",
    confidence: float | None = 0.95,
    penalty_weights: Sequence[float] = PENALTY_WEIGHTS,
    validation: float | tuple[Any, ...] = 0.2,
    groups: Any = None,
    scoring: str | Callable[..., float] | None = None,
    sample_weight: Any = None,
    random_state: _arrays.RandomState = 0,
) -> Selection:
    r"""Choose λ on validation rows, among models trained with all weights in a grid.

    .. math:: \hat\lambda = \text{choice}\bigl(\{(\text{gain}_\lambda, \text{GDP}_\lambda,
        \text{HSIC}_\lambda,
        p_\lambda)\}_{\lambda \in \text{grid}}\bigr), \quad \text{each measured on rows that were
        not trained on.}

    The gain is the share of the unpenalized model's improvement over a constant predictor that a
    model keeps. If the gain of the chosen model is less than a quarter, ``satisfied`` is False and
    a :class:`LowGainWarning` is issued. The chosen model is the best of many on the validation
    rows, so its numbers on these rows are optimistic. Report the result of
    :meth:`Selection.evaluate` on test rows.

    **What a limit on GDP guarantees.** On the validation rows, the upper end of an admitted model's
    interval is within the limit. If the validation rows (or their `groups`) are drawn independently
    from the population, the GDP of the chosen model in that population exceeds the limit with a
    probability of at most about (1 − confidence) / 2. This refers to GDP computed from means over
    people with similar values of the attribute, so oscillations finer than the resolution of
    :func:`frhsic.parity.gdp` are not covered. A limit on HSIC is compared with the upper end of
    :func:`frhsic.independence.hsic_interval` on at most 2,000 rows, whose coverage was measured
    only for normal variables. Limits given as shares, and limits on the gain or the p-value, are
    not guaranteed for other rows.

    Parameters
    ----------
    estimator : FRHSICClassifier, FRHSICRegressor, or another estimator
        Unfitted estimator with a parameter `penalty_weight` and a ``fit`` that takes
        `sensitive_features`. It is not changed; a copy is fitted for each weight. This library's
        networks are trained all at once, other estimators one after another.
    X, y, sensitive_features, sample_weight
        As in the estimator's ``fit``. Validation rows with a missing attribute are dropped. Sample
        weights are used only in training; validation rows are unweighted.
    limit : number, str, dict, list or None
        A bound on GDP such as 0.02; a share such as "50%" of the unpenalized model's GDP; 0 for the
        smallest GDP; "gdp <= 0.02"; "hsic <= 0.001"; "gain >= 90%", the smallest GDP among models
        that keep this share of the gain; "p >= 0.05", the smallest weight at which a test of this
        level does not reject independence. If no weight meets it, the weight with the smallest HSIC
        is chosen. This is the second half of the paper's rule: the smallest weight at which HSIC <
        ε or independence is not rejected, otherwise the largest weight. A dictionary is keyed by
        attribute, all limits in a list must be met, and None means no limit.
    confidence : float, optional
        A numeric limit on GDP or HSIC is met if the upper end of the interval is within it. The
        search starts at the largest weight and stops at the first weight that exceeds the limit
        (fixed-sequence testing). With None, the estimate is compared with the limit instead. Shares
        and 0 are targets for the estimates.
    penalty_weights : sequence of float
        The grid of weights; 0 is added as the reference.
    validation : float or (X, y, sensitive_features)
        Share of the rows, drawn at random, that are used for choosing instead of training; or the
        validation rows themselves, such as the latest rows, with their groups, if any, as a fourth
        element.
    groups : array of shape (n,), optional
        Group of each row, such as a person. A group is used either for training or for validation,
        and intervals of GDP treat groups, not rows, as independent. The groups are passed to
        ``fit`` if it accepts `groups`. If `validation` contains rows, `groups` contains the groups
        of the training rows.
    scoring : str or callable, optional
        Name of a scikit-learn scorer, a scorer, or a function of (model, X, y) for which larger is
        better. None uses a proper score: minus log loss, or minus the mean squared error of a
        regressor.
    random_state
        Seed for the split and for the rows that the test uses; training uses the estimator's own
        `random_state`.

    References
    ----------
    The paper, section on the choice of λ: increasing grid, held-out split, independence test,
    practical significance.

    Examples
    --------
    >>> from frhsic import FRHSICClassifier
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=600)
    >>> X = np.column_stack([s, rng.normal(size=600)])
    >>> y = 2 * s + X[:, 1] > 1
    >>> model = FRHSICClassifier(random_state=0)
    >>> chosen = select_weight(
    ...     model, X, y, sensitive_features=s, limit="gain >= 50%", penalty_weights=[1, 10, 100]
    ... )
    >>> chosen.satisfied, chosen.penalty_weight > 0
    (True, True)
    """
    _check_estimator(estimator)
    limits = parse_limits(limit, LIMITED_MEASURES)
    if confidence is not None:
        _arrays.require_fraction(confidence, "confidence")
    scorer = _scorer(scoring, estimator)
    grid = sorted({0.0, *map(float, penalty_weights)})
    if len(grid) < 2 or not all(0 <= weight < np.inf for weight in grid):
        raise ValueError(
            f"penalty_weights={penalty_weights!r}; pass a list of finite numbers above 0, such as"
            " [1, 10, 100]."
        )
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is None, so there is no dependence to limit; pass"
            " at least one attribute."
        )
    seed = _arrays.integer_seed(random_state) % 2**32
    given = FitArguments(
        **named_columns(
            X=X,
            y=y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            groups=groups,
        )
    )
    fit, held = _split_rows(given, validation, seed)
    limits_by_attribute(limits, held.names)  # raises before anything is trained
    models = fit_weights(estimator, grid, fit)
    constant = DummyClassifier(strategy="prior") if is_classifier(estimator) else DummyRegressor()
    constant.fit(np.zeros((len(fit.y), 1)), fit.y, sample_weight=fit.sample_weight)
    candidates = [
        held.candidate(
            model,
            limits=limits,
            confidence=confidence,
            scorer=scorer,
            unpenalized=models[0],
            constant=constant,
        )
        for model in models
    ]
    base_rate = held.base_rate(models[0])
    limits = tuple(
        replace(parsed, value=parsed.bound(0.0, base_rate), base="")
        if parsed.base == "base rate"
        else parsed
        for parsed in limits
    )
    admitted, at = choose(candidates, limits)
    chosen = candidates[at]
    why = reason(chosen, limits, admitted[at], len(held.s))
    if not admitted[at]:
        warn(f"{capitalize(why)}. Try larger weights, or another penalty.", UnmetLimitWarning)
    low = not chosen.gain >= LEAST_GAIN
    if low:
        kept = "the unpenalized model has no gain"
        if not math.isnan(chosen.gain):
            kept = f"the model keeps {percent(chosen.gain)} of the gain"
        warn(
            f"weight {chosen.penalty_weight:g}: {kept} over a constant prediction. Allow"
            " more dependence, or use more rows or better features.",
            LowGainWarning,
        )
    return Selection(
        penalty_weight=chosen.penalty_weight,
        estimator=models[at],
        satisfied=admitted[at] and not low,
        reason=why,
        candidates=tuple(replace(c, accepted=ok) for c, ok in zip(candidates, admitted)),
        models=tuple(models),
        scorer=scorer,
        constant=constant,
    )


def fit_weights(estimator: Any, weights: Sequence[float], given: FitArguments) -> list[Any]:
    """Fit a copy of the estimator for each weight: networks all at once, as one fleet for each
    joblib worker, and other estimators one after another.
    """
    named = dict(vars(given))
    X = named.pop("X")
    y = named.pop("y")
    if isinstance(estimator, (FRHSICClassifier, FRHSICRegressor)):
        workers = min(effective_n_jobs(None), len(weights))
        # the rows are part of each task: arguments that joblib scatters over a Dask cluster are
        # lost with a worker
        fit = partial(fit_path, estimator, X, y, **named)
        fleets = Parallel(n_jobs=workers)(
            delayed(partial(fit, penalty_weights=weights[i::workers]))() for i in range(workers)
        )
        return [fleets[i % workers][i // workers] for i in range(len(weights))]
    if not has_fit_parameter(estimator, "groups"):
        del named["groups"]
    known = {name: value for name, value in named.items() if value is not None}
    return [
        clone(estimator).set_params(penalty_weight=weight).fit(X, y, **known) for weight in weights
    ]


def _check_estimator(estimator: Any) -> None:
    """Raise an error unless the estimator has what is needed to choose a weight."""
    method = "predict_proba" if is_classifier(estimator) else "predict"
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if "penalty_weight" not in parameters or not hasattr(estimator, method):
        raise TypeError(
            f"{type(estimator).__name__} needs a parameter penalty_weight and a method {method}."
        )


def _scorer(
    scoring: str | Callable[..., float] | None, estimator: Any
) -> Callable[[Any, Any, Any], float]:
    if scoring is None:
        return lambda model, X, y: -proper_loss(model, X, y)
    scorer = check_scoring(estimator, scoring=scoring)
    return lambda model, X, y: float(scorer(model, X, y))


def _split_rows(
    given: FitArguments, validation: float | tuple[Any, ...], seed: int
) -> tuple[FitArguments, HeldOutRows]:
    """Return the training rows and the validation rows."""
    if isinstance(validation, (int, float)):
        n = len(given.y)
        if given.groups is None:
            both = train_test_split(np.arange(n), test_size=float(validation), random_state=seed)
        else:
            both = held_out_rows(n, validation, seed=seed, groups=given.groups)
        trained, held = (given.rows(rows) for rows in both)
        return trained, HeldOutRows.from_arrays(
            held.X, held.y, held.sensitive_features, held.groups, seed
        )
    if isinstance(validation, str) or len(validation) not in (3, 4):
        given_as = "is text" if isinstance(validation, str) else f"has {len(validation)} elements"
        raise ValueError(
            f"validation {given_as}; pass a share of the rows, (X, y, sensitive_features), or (X,"
            " y, sensitive_features, groups)."
        )
    if given.groups is not None and len(validation) == 3:
        raise ValueError(
            "`groups` contains the groups of the training rows; pass the groups of `validation` as"
            " its fourth element."
        )
    X, y, s, *more = validation
    return given, HeldOutRows.from_arrays(X, y, s, more[0] if more else None, seed)
