"""Choose the weight of the penalty on validation rows, by a stated rule, from models of a whole
grid of weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from scipy.stats import norm
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import check_scoring, log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import has_fit_parameter

from frhsic import _arrays
from frhsic._warnings import warn
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor
from frhsic.estimators.network import fit_path
from frhsic.formatting import did_you_mean, figure, percent
from frhsic.independence import IndependenceResult, gamma_test
from frhsic.kernels import Gaussian, per_column_gaussians
from frhsic.parity import ParityResult, gdp
from frhsic.splits import held_out_rows, rows_of, scores_of

__all__ = ["LowGainWarning", "Rule", "Selection", "UnmetTargetWarning", "select_weight"]

# Default grid; 0 is the unpenalised model.
WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

# Share of the unpenalised model's gain over a constant that a chosen model should keep at least.
LEAST_GAIN = 0.25

# Largest number of validation rows for HSIC and its test; with more, a test rejects negligible
# dependence.
TEST_ROWS = 2000

Measure = Literal["gdp", "hsic", "gain", "p"]

EXAMPLES = "0.02, 'gdp <= 0.02', 'hsic <= 0.001', 'gain >= 90%', 'p > 0.05'"
_WRITTEN = re.compile(
    r"\s*(\w+)\s*(<=?|>=?|≤|≥|=)\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(%?)\s*", re.IGNORECASE
)
_DIRECTIONS = {"gdp": "at most", "hsic": "at most", "gain": "at least", "p": "at least"}


@dataclass(frozen=True)
class Candidate:
    """One weight of the grid, measured on validation rows.

    Attributes
    ----------
    weight
        λ.
    performance
        Value of the scorer, which is better when larger: minus log loss or minus the mean squared
        error by default.
    gain
        Share of the unpenalised model's gain over a constant predictor that is kept, in log loss or
        squared error: 1 for weight 0, 0 for a constant. NaN if the unpenalised model does not beat
        the constant.
    gdp, gdp_upper
        GDP of the scores for the worst attribute, in probabilities or in the unit of y, and its
        one-sided upper confidence bound: the end of the interval where it is trusted, else the
        wider bound that allows for every shape of the conditional mean (see
        :class:`frhsic.parity.ParityResult`).
    hsic, hsic_upper
        Biased HSIC between Z or the scores, as the rule says, and the attributes, with Gaussian
        kernels at median bandwidths; and its upper bound by the normal approximation, NaN if the
        rule does not use HSIC.
    pvalue
        p-value of the gamma test of independence.
    accepted
        Whether the rule admits this weight.
    """

    weight: float
    performance: float
    gain: float
    gdp: float
    gdp_upper: float
    hsic: float
    hsic_upper: float
    pvalue: float
    accepted: bool = False


@dataclass(frozen=True)
class Rule:
    r"""How a weight is chosen among candidates.

    Parameters
    ----------
    measure
        ``"gdp"`` or ``"hsic"``: the best performance among the weights whose upper bound on the
        validation rows is at most the limit, searched from the largest weight down; the first
        weight that misses it ends the search (fixed-sequence testing). ``"gain"``: the least GDP
        among the models that keep this share of the unpenalised model's gain over a constant.
        ``"p"``: the paper's rule, the smallest λ at which a test of this level does not reject
        independence.
    limit
        The limit: a GDP, an HSIC, a share of the gain, or a level.
    confidence
        Confidence of the upper bounds; 0.5 compares the values themselves.
    epsilon
        With ``"p"``, an HSIC below which dependence is negligible although it is rejected: with
        many rows a test rejects any dependence, however small.
    of
        What HSIC and its test look at: ``"representation"``, for any head, or ``"scores"``, also
        taken for a model without `transform`.
    """

    measure: Measure
    limit: float
    confidence: float = 0.95
    epsilon: float | None = None
    of: Literal["representation", "scores"] = "representation"

    def __post_init__(self) -> None:
        if self.measure not in _DIRECTIONS:
            raise ValueError(
                f"measure={self.measure!r} is not known.{did_you_mean(self.measure, _DIRECTIONS)}"
            )
        most = 1 if self.measure in ("gain", "p") else math.inf
        if not 0 < self.limit <= most or self.limit == math.inf:
            raise ValueError(
                f"limit={self.limit!r}; pass a positive"
                f" number{'' if most > 1 else ' of at most 1'}."
            )

    @classmethod
    def of_text(cls, rule: Any) -> Rule:
        """Return a rule as it is, or the one that a number or a text means; None keeps 80 % of the
        gain.

        Examples
        --------
        >>> Rule.of_text(0.02) == Rule.of_text("gdp <= 0.02") == Rule.of_text("GDP ≤ 2%") == Rule(
        ...     "gdp", 0.02
        ... )
        True
        """
        if rule is None or isinstance(rule, Rule):
            return rule or cls("gain", 0.8)
        if isinstance(rule, (int, float)) and not isinstance(rule, bool):
            return cls("gdp", float(rule))
        parts = _WRITTEN.fullmatch(rule) if isinstance(rule, str) else None
        if parts is None:
            raise ValueError(
                f"rule={rule!r} is not understood; pass a Rule, or for example {EXAMPLES}."
            )
        name, sign, digits, per_cent = parts.groups()
        measure: Any = name.lower()
        parsed = cls(measure, float(digits) / (100 if per_cent else 1))
        direction = _DIRECTIONS[measure]
        if (sign in "<=≤") != (direction == "at most"):
            raise ValueError(
                f"rule={rule!r}: {name} is {direction} a number; pass for example {EXAMPLES}."
            )
        return parsed

    def choose(self, candidates: Sequence[Candidate]) -> tuple[list[bool], int]:
        """Return which candidates, in order of increasing weight, are admitted, and the index of
        the one to take.
        """
        indices, performance = range(len(candidates)), [c.performance for c in candidates]
        if self.measure == "p":
            small = math.nan if self.epsilon is None else self.epsilon
            admitted = [c.pvalue > self.limit or c.hsic < small for c in candidates]
            return admitted, (
                admitted.index(True)
                if True in admitted
                else int(np.argmin([c.hsic for c in candidates]))
            )
        if self.measure == "gain":
            admitted = [c.gain >= self.limit for c in candidates]
            inside = [i for i in indices if admitted[i]]
            return admitted, (
                min(inside, key=lambda i: candidates[i].gdp)
                if inside
                else int(np.argmax(performance))
            )
        bounds = [self.bound(c) for c in candidates]
        # from the largest weight down: the order is fixed beforehand, so the confidence is that of
        # all admitted ones
        admitted = [all(bound <= self.limit for bound in bounds[i:]) for i in indices]
        inside = [i for i in indices if admitted[i]]
        best = (
            max(inside, key=lambda i: (performance[i], -candidates[i].gdp))
            if inside
            else int(np.argmin(bounds))
        )
        return admitted, best

    def bound(self, candidate: Candidate) -> float:
        """Return the upper bound that a limit on GDP or HSIC is compared with."""
        return candidate.hsic_upper if self.measure == "hsic" else candidate.gdp_upper

    def reason(self, taken: Candidate, admitted: bool) -> str:
        """Say in a sentence why a weight was taken."""
        limit = figure(self.limit)
        if self.measure == "p":
            test = f"(p = {figure(taken.pvalue)}, HSIC {figure(taken.hsic)})"
            if admitted:
                return (
                    f"the smallest weight at which independence of the {self.of} is not rejected at"
                    f" level {limit}, or HSIC is negligible {test}; this does not show independence"
                )
            return (
                f"independence of the {self.of} is rejected at every weight; this one has the least"
                f" HSIC {test}"
            )
        if self.measure == "gain":
            share, keeps = (
                percent(self.limit),
                percent(taken.gain) if taken.gain == taken.gain else "no share",
            )
            of = f"{share} of the unpenalised model's gain over a constant; this one keeps {keeps}"
            return (
                f"the least GDP among models that keep {of}"
                if admitted
                else f"no weight keeps {of}"
            )
        bound = (
            f"{self.measure.upper()} {figure(self.bound(taken))} is the upper bound on the"
            " validation rows"
        )
        if admitted:
            return f"the best performance among weights within the limit {limit}; {bound}"
        return (
            f"no weight is within the limit {limit} on {self.measure.upper()}; this one is the"
            f" nearest: {bound}"
        )


class UnmetTargetWarning(UserWarning):
    """No weight of the grid meets the rule; the nearest one was chosen."""


class LowGainWarning(UserWarning):
    """The chosen model is hardly better than a constant: it keeps too little of the unpenalised
    model's gain.
    """


@dataclass(frozen=True)
class Evaluation:
    """Measures of the chosen model on rows that neither trained nor chose it; as in
    :class:`Candidate`.
    """

    performance: float
    gain: float
    gdp: dict[str, ParityResult]
    independence: IndependenceResult
    rows: int


@dataclass(frozen=True, repr=False)
class Selection:
    """The chosen weight, its model, and all candidates; ``print`` shows a table of them.

    Attributes
    ----------
    weight
        λ.
    estimator
        The model at that weight, fitted without the validation rows.
    satisfied
        Whether it meets the rule and keeps enough of the unpenalised model's gain.
    reason
        Why it was chosen, in a sentence.
    candidates
        Every weight of the grid, on the validation rows.
    models
        The fitted model of each candidate, in their order.
    rule, scorer
        The rule, and the function of (model, X, y) that measures performance.
    constant
        The constant predictor: class frequencies, or mean of y, of the training rows.
    """

    weight: float
    estimator: Any
    satisfied: bool
    reason: str
    candidates: tuple[Candidate, ...]
    models: tuple[Any, ...]
    rule: Rule
    scorer: Callable[[Any, Any, Any], float]
    constant: Any

    def to_frame(self) -> pd.DataFrame:
        """Return the candidates as a DataFrame, with a column `chosen`."""
        return pd.DataFrame(
            [asdict(one) | {"chosen": one.weight == self.weight} for one in self.candidates]
        )

    def evaluate(
        self, X: Any, y: Any, *, sensitive_features: Any, groups: Any = None
    ) -> Evaluation:
        """Measure the chosen model on other rows; report these numbers.

        Parameters
        ----------
        X, y, sensitive_features
            Rows that neither trained nor chose the model. Those without an attribute are left out.
        groups
            Group of each row, such as a person: intervals take groups, not rows, as independent of
            each other.
        """
        rows = Rows.of(X, y, sensitive_features, groups, 0)
        names = _arrays.column_names(sensitive_features, "sensitive", rows.s.shape[1])
        scores = scores_of(self.estimator, rows.X)
        return Evaluation(
            performance=self.scorer(self.estimator, rows.X, rows.y),
            gain=rows.gain(self.estimator, self.models[0], self.constant),
            gdp={
                name: gdp(scores, column, groups=rows.groups)
                for name, column in zip(names, rows.s.T)
            },
            independence=rows.tested(self.estimator, self.rule),
            rows=len(rows.s),
        )

    def __repr__(self) -> str:
        return (
            f"Selection(weight={self.weight:g}, satisfied={self.satisfied},"
            f" candidates={len(self.candidates)})"
        )

    def __str__(self) -> str:
        table = pd.DataFrame(
            {
                "weight": [f"{c.weight:g}" for c in self.candidates],
                "gain kept": [
                    "–" if math.isnan(c.gain) else percent(c.gain) for c in self.candidates
                ],
                "performance": [figure(c.performance) for c in self.candidates],
                "GDP": [figure(c.gdp) for c in self.candidates],
                "at most": [figure(c.gdp_upper) for c in self.candidates],
                "": ["chosen" if c.weight == self.weight else "" for c in self.candidates],
            }
        )
        met = "chosen" if self.satisfied else "chosen, but the rule is not met"
        return f"{table.to_string(index=False)}\nweight {self.weight:g} {met}: {self.reason}."


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that no model was trained on; `groups` is the group of each row, or None."""

    X: Any
    y: Any
    s: np.ndarray
    groups: np.ndarray | None
    seed: int

    @classmethod
    def of(cls, X: Any, y: Any, s: Any, groups: Any, seed: int) -> Rows:
        """Convert the attributes to a matrix and number the groups; rows that lack an attribute are
        left out.
        """
        values = _arrays.to_numpy(_arrays.matrix(s, "sensitive_features", allow_missing=True))
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if not len(known):
            raise ValueError(
                f"sensitive_features are missing in all {len(values):,} rows to measure on."
            )
        codes = None if groups is None else pd.factorize(np.asarray(groups).ravel())[0][known]
        return cls(rows_of(X, known), rows_of(y, known), values[known], codes, seed)

    def tested(self, model: Any, rule: Rule) -> IndependenceResult:
        """Test Z or the scores against all attributes jointly, on at most `TEST_ROWS` rows, one of
        each group.
        """
        whole = rule.of == "representation" and hasattr(model, "transform")
        seen = np.asarray(model.transform(self.X)) if whole else scores_of(model, self.X)
        rows, generator = np.arange(len(self.s)), np.random.default_rng(self.seed)
        if self.groups is not None:
            shuffled = generator.permutation(rows)
            rows = shuffled[np.unique(self.groups[shuffled], return_index=True)[1]]
        if len(rows) > TEST_ROWS:
            rows = generator.choice(rows, TEST_ROWS, replace=False)
        seen, values = seen[rows], self.s[rows]
        kernel_s = per_column_gaussians(values) if values.shape[1] > 1 else None
        kernel_z = (
            Gaussian(1.0) if np.ptp(seen, axis=0).max() == 0 else None
        )  # a collapsed Z has no median distance
        epsilon = rule.limit if rule.measure == "hsic" else rule.epsilon
        return gamma_test(seen, values, kernel_z, kernel_s, epsilon=epsilon)

    def gain(self, model: Any, unpenalised: Any, constant: Any) -> float:
        r"""Return the share of the unpenalised model's gain over a constant that a model keeps on
        these rows.

        .. math:: \frac{\text{loss}(\text{constant}) - \text{loss}(\text{model})}
            {\text{loss}(\text{constant}) - \text{loss}(\text{unpenalised})}

        1 is the unpenalised model, 0 a constant; a model worse than a constant has a negative
        share. NaN if the unpenalised model itself does not beat the constant.
        """
        own, best, worst = (
            proper_loss(one, self.X, self.y) for one in (model, unpenalised, constant)
        )
        return (worst - own) / (worst - best) if worst > best else math.nan

    def candidate(
        self, model: Any, rule: Rule, scorer: Any, unpenalised: Any, constant: Any
    ) -> Candidate:
        """Measure one model."""
        scores, test = scores_of(model, self.X), self.tested(model, rule)
        two_sided = max(2 * rule.confidence - 1, 0.01)  # both ends of an interval leave out as much
        gaps = [
            gdp(scores, column, confidence=two_sided, groups=self.groups, random_state=self.seed)
            for column in self.s.T
        ]
        uppers = [max(gap.interval[1], gap.value) if gap.trusted else gap.bound for gap in gaps]
        error = math.nan if test.standard_error is None else test.standard_error
        value = max(float(gap) for gap in gaps)
        return Candidate(
            weight=float(model.penalty_weight),
            performance=scorer(model, self.X, self.y),
            gain=self.gain(model, unpenalised, constant),
            gdp=value,
            gdp_upper=max(uppers) if rule.confidence > 0.5 else value,
            hsic=test.statistic,
            hsic_upper=test.statistic + float(norm.ppf(rule.confidence)) * error,
            pvalue=test.pvalue,
        )


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
    rule: Rule | float | str | None = None,
    weights: Sequence[float] = WEIGHTS,
    validation: float | tuple[Any, ...] = 0.2,
    groups: Any = None,
    scoring: str | Callable[..., float] | None = None,
    sample_weight: Any = None,
    random_state: _arrays.RandomState = 0,
) -> Selection:
    r"""Choose λ on validation rows, from models of the whole grid trained at once.

    .. math:: \hat\lambda = \text{rule}\bigl(\{(\text{gain}_\lambda, \text{GDP}_\lambda,
        \text{HSIC}_\lambda,
        p_\lambda)\}_{\lambda \in \text{grid}}\bigr), \quad \text{each measured on rows that were
        not trained on.}

    The gain is the share of the unpenalised model's improvement over a constant predictor that a
    model keeps. A chosen model that keeps less than a quarter of it has ``satisfied=False`` and
    gives a :class:`LowGainWarning`. On the validation rows the chosen model is the best of many, so
    its numbers there are too good. Report :meth:`Selection.evaluate` on test rows.

    **What a limit on GDP promises.** The upper bound of an admitted model on the validation rows is
    within the limit. For validation rows that are drawn independently from the population (or whose
    `groups` are), the GDP of the chosen model in that population exceeds the limit with a
    probability of about 1 − confidence, where the interval of :func:`frhsic.parity.gdp` covers:
    conditional means that are smooth in the rank of the attribute, or have few jumps, or an
    attribute with repeated levels. Where the interval is not trusted, the bound that allows for
    every shape at a stated resolution is compared instead. An oscillation that is finer than this
    resolution is not covered. A limit on HSIC uses a normal approximation and promises nothing:
    with a binary attribute it is missed two to three times as often as the confidence says. Rules
    on the gain and on the test promise nothing about other rows.

    Parameters
    ----------
    estimator : FRHSICClassifier, FRHSICRegressor, or another estimator
        Unfitted. It needs a parameter `penalty_weight`, which is set, and a ``fit`` that takes
        `sensitive_features`. It is not changed. Networks of this library are trained at once,
        others one after another.
    X, y, sensitive_features, sample_weight
        As in its ``fit``. Validation rows without an attribute are left out. Weights are for
        training alone: every validation row counts as one.
    rule : Rule, float or str, optional
        A :class:`Rule`; a limit on GDP such as 0.02; or a text such as "gdp <= 0.02", "hsic <=
        0.001", "gain >= 90%", "p > 0.05". None keeps 80 % of the gain.
    weights : sequence of float
        The grid; 0 is added as the reference.
    validation : float or (X, y, sensitive_features)
        Share of the rows to choose on instead of training, drawn at random; or such rows
        themselves, for example the latest, with their groups as a fourth part if they have any.
    groups : array of shape (n,), optional
        Group of each row, such as a person. A group is either trained on or chosen on, and
        intervals of GDP take groups, not rows, as independent of each other. A ``fit`` that takes
        `groups` is given those of its rows. If `validation` holds rows, these are the groups of the
        rows to train on.
    scoring : str or callable, optional
        Name of a scikit-learn scorer, a scorer, or a function of (model, X, y) that is better when
        larger. None is a proper score: minus log loss, or minus the mean squared error of a
        regressor.
    random_state
        Seed of the split and of the rows that the test uses; training uses the estimator's own.

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
    ...     model, X, y, sensitive_features=s, rule="gain >= 50%", weights=[1, 10, 100]
    ... )
    >>> chosen.satisfied, chosen.weight > 0
    (True, True)
    """
    _check_estimator(estimator)
    rule, scorer, grid = (
        Rule.of_text(rule),
        _scorer(scoring, estimator),
        sorted({0.0, *map(float, weights)}),
    )
    if len(grid) < 2 or not all(0 <= weight < np.inf for weight in grid):
        raise ValueError(
            f"weights={weights!r}; pass a list of finite numbers above 0, such as [1, 10, 100]."
        )
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features is None: without it there is no dependence to choose by."
        )
    seed = _arrays.seed_of(random_state) % 2**32
    fit, held = _parts((X, y, sensitive_features, sample_weight, groups), validation, seed)
    models = fit_weights(estimator, grid, *fit)
    constant = DummyClassifier(strategy="prior") if is_classifier(estimator) else DummyRegressor()
    constant.fit(np.zeros((len(fit[1]), 1)), fit[1], sample_weight=fit[3])
    candidates = [held.candidate(model, rule, scorer, models[0], constant) for model in models]
    admitted, at = rule.choose(candidates)
    reason = rule.reason(candidates[at], admitted[at])
    if not admitted[at]:
        warn(f"{reason}. Try larger weights, or another penalty.", UnmetTargetWarning)
    low = not candidates[at].gain >= LEAST_GAIN
    if low:
        gained = candidates[at].gain
        kept = "no gain to keep" if math.isnan(gained) else f"{percent(gained)} of the gain kept"
        warn(
            f"weight {candidates[at].weight:g}: {kept}, compared with a constant. Allow more"
            " dependence, or bring more rows or better features.",
            LowGainWarning,
        )
    return Selection(
        weight=candidates[at].weight,
        estimator=models[at],
        satisfied=admitted[at] and not low,
        reason=reason,
        candidates=tuple(replace(c, accepted=ok) for c, ok in zip(candidates, admitted)),
        models=tuple(models),
        rule=rule,
        scorer=scorer,
        constant=constant,
    )


def fit_weights(
    estimator: Any,
    weights: Sequence[float],
    X: Any,
    y: Any,
    s: Any,
    sample_weight: Any = None,
    groups: Any = None,
) -> list[Any]:
    """Fit a copy for each weight: networks all at once, as one fleet for each joblib worker, others
    one by one.
    """
    named = {"sensitive_features": s, "sample_weight": sample_weight, "groups": groups}
    if isinstance(estimator, (FRHSICClassifier, FRHSICRegressor)):
        workers = min(effective_n_jobs(None), len(weights))
        # the rows are part of each task: arguments that joblib spreads over a Dask cluster are lost
        # with a worker
        fit = partial(fit_path, estimator, X, y, **named)
        fleets = Parallel(n_jobs=workers)(
            delayed(partial(fit, weights=weights[i::workers]))() for i in range(workers)
        )
        return [fleets[i % workers][i // workers] for i in range(len(weights))]
    if not has_fit_parameter(estimator, "groups"):
        del named["groups"]
    given = {name: value for name, value in named.items() if value is not None}
    return [
        clone(estimator).set_params(penalty_weight=weight).fit(X, y, **given) for weight in weights
    ]


def _check_estimator(estimator: Any) -> None:
    """Raise unless a weight can be chosen for this estimator, by its performance and its
    dependence.
    """
    method = "predict_proba" if is_classifier(estimator) else "predict"
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if "penalty_weight" not in parameters or not hasattr(estimator, method):
        raise TypeError(
            f"{type(estimator).__name__} lacks a parameter penalty_weight, or a method {method}."
        )


def _scorer(
    scoring: str | Callable[..., float] | None, estimator: Any
) -> Callable[[Any, Any, Any], float]:
    if scoring is None:
        return lambda model, X, y: -proper_loss(model, X, y)
    scorer = check_scoring(estimator, scoring=scoring)
    return lambda model, X, y: float(scorer(model, X, y))


def _parts(
    everything: tuple[Any, ...], validation: float | tuple[Any, ...], seed: int
) -> tuple[tuple[Any, ...], Rows]:
    """Return (X, y, s, sample_weight, groups) of the rows to train on, and the rows to choose
    on.
    """
    groups = everything[4]
    if isinstance(validation, (int, float)):
        n = len(everything[1])
        both = (
            train_test_split(np.arange(n), test_size=float(validation), random_state=seed)
            if groups is None
            else held_out_rows(n, validation, seed=seed, groups=groups)
        )
        trained, (X, y, s, _, held_groups) = (
            tuple(None if part is None else rows_of(part, rows) for part in everything)
            for rows in both
        )
        return trained, Rows.of(X, y, s, held_groups, seed)
    if isinstance(validation, str) or len(validation) not in (3, 4):
        raise ValueError(
            "validation: pass a share of the rows, or (X, y, sensitive_features) with groups if"
            " any."
        )
    if groups is not None and len(validation) == 3:
        raise ValueError(
            "groups are those of the rows to train on; pass those of `validation` as its fourth"
            " part."
        )
    X, y, s, *more = validation
    return everything, Rows.of(X, y, s, more[0] if more else None, seed)
