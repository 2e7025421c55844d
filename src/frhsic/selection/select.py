"""Train a whole grid of weights at once, measure it on validation rows, and choose one weight."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from sklearn.metrics import get_scorer

from frhsic import _arrays
from frhsic.estimators import ParityClassifier, ParityRegressor, fit_path
from frhsic.frontier import Frontier, Run
from frhsic.held_out import scores_of, split
from frhsic.independence import IndependenceResult, gamma_test
from frhsic.kernels import Gaussian, per_column_gaussians
from frhsic.parity import ParityResult, gdp
from frhsic.selection.rules import Candidate, PerformanceRule, Rule

if TYPE_CHECKING:
    import pandas as pd

WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Default grid; 0 is the unpenalised model."""

TEST_ROWS = 2000
"""Largest number of validation rows for HSIC and its test; with more, a test rejects negligible dependence."""


class UnmetTargetWarning(UserWarning):
    """No weight of the grid meets the rule; the nearest one was chosen."""


@dataclass(frozen=True)
class Evaluation:
    """Measures of the chosen model on rows that neither trained nor chose it."""

    performance: float
    gdp: dict[str, ParityResult]
    independence: IndependenceResult
    rows: int


@dataclass(frozen=True)
class Selection:
    """The chosen weight, its model, and all candidates.

    Attributes
    ----------
    weight
        λ.
    estimator
        The model at that weight, fitted without the validation rows.
    satisfied
        Whether it meets the rule.
    reason
        Why it was chosen, in a sentence.
    candidates
        Every weight of the grid, on the validation rows.
    models
        The fitted model of each candidate, in their order.
    frontier
        The candidates as a :class:`~frhsic.frontier.Frontier` of performance and GDP, to plot.
    rule, scoring
        The rule and the scorer of performance.
    validation_rows
        Number of validation rows.
    """

    weight: float
    estimator: Any
    satisfied: bool
    reason: str
    candidates: tuple[Candidate, ...]
    models: tuple[Any, ...]
    frontier: Frontier
    rule: Rule
    scoring: str
    validation_rows: int

    def to_frame(self) -> pd.DataFrame:
        """Return the candidates as a DataFrame, with a column `chosen`."""
        import pandas as pd

        rows = [{**asdict(candidate), "chosen": candidate.weight == self.weight} for candidate in self.candidates]
        return pd.DataFrame(rows)

    def evaluate(self, X: Any, y: Any, *, sensitive_features: Any) -> Evaluation:
        """Measure the chosen model on other rows; report these numbers."""
        model = self.estimator
        s = _arrays.matrix(sensitive_features, "sensitive_features")
        names = _arrays.column_names(sensitive_features, "sensitive", s.shape[1])
        scores = scores_of(model, X)
        return Evaluation(
            _performance(model, X, y, self.scoring),
            {name: gdp(scores, column) for name, column in zip(names, s.T)},
            _tested(model, X, s, self.rule, 0),
            len(s),
        )


def select_weight(
    estimator: ParityClassifier | ParityRegressor,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    rule: Rule | None = None,
    weights: Sequence[float] = WEIGHTS,
    validation: float | tuple[Any, Any, Any] = 0.2,
    scoring: str | None = None,
    sample_weight: Any = None,
    sequential: bool = False,
    random_state: _arrays.RandomState = 0,
) -> Selection:
    r"""Choose λ on validation rows, from models of the whole grid trained at once.

    .. math:: \hat\lambda = \text{rule}\bigl(\{(\text{performance}_\lambda, \text{GDP}_\lambda, \text{HSIC}_\lambda,
        p_\lambda)\}_{\lambda \in \text{grid}}\bigr), \quad \text{each measured on rows that were not trained on.}

    On the validation rows the chosen model is the best of many, so its numbers there are too good. Report
    :meth:`Selection.evaluate` on test rows.

    Parameters
    ----------
    estimator : ParityClassifier or ParityRegressor
        Unfitted estimator. Its `penalty_weight` is not used, and it is not changed.
    X, y, sensitive_features, sample_weight
        As in its ``fit``.
    rule : IndependenceRule, TargetRule or PerformanceRule
        None is ``PerformanceRule(0.01)``: the least GDP within 1 % of the unpenalised performance.
    weights : sequence of float
        The grid; 0 is added as the reference.
    validation : float or (X, y, sensitive_features)
        Share of the rows, drawn at random, to choose on instead of training; or such rows themselves.
    scoring : str, optional
        Name of a scikit-learn scorer; accuracy, or for a regressor mean squared error.
    sequential : bool
        Train one model after another, for encoders that cannot be stacked, such as those with dropout.
    random_state
        Seed of the split and of the rows that the test uses; training uses the estimator's own.

    References
    ----------
    The paper, section on the choice of λ: increasing grid, held-out split, independence test, practical significance.

    Examples
    --------
    >>> from frhsic.selection import TargetRule
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s, rng.normal(size=400)])
    >>> y = 2 * s + X[:, 1] > 1
    >>> model = ParityClassifier(epochs=50, random_state=0)
    >>> chosen = select_weight(model, X, y, sensitive_features=s, rule=TargetRule(0.1), weights=[10, 100])
    >>> chosen.satisfied, chosen.weight > 0
    (True, True)
    """
    if not isinstance(estimator, (ParityClassifier, ParityRegressor)):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; a weight is chosen by performance and dependence, so pass a "
            "ParityClassifier or ParityRegressor (its transform gives Z)."
        )
    rule = PerformanceRule() if rule is None else rule
    scoring = scoring or ("accuracy" if isinstance(estimator, ParityClassifier) else "neg_mean_squared_error")
    get_scorer(scoring)
    if sensitive_features is None:
        raise ValueError("sensitive_features is None: without it there is no dependence to choose by.")
    seed = _arrays.seed_of(random_state) % 2**32
    grid = sorted({0.0, *(float(weight) for weight in weights)})
    (X, y, s, sample_weight), held_out = split(
        X, y, sensitive_features, sample_weight, held_out=validation, name="validation", seed=seed
    )
    models = fit_path(
        estimator, X, y, weights=grid, sensitive_features=s, sample_weight=sample_weight, sequential=sequential
    )
    measured = [_candidate(model, held_out, rule, scoring, seed) for model in models]
    higher = not scoring.startswith("neg_")
    admitted, at, reason = rule.choose(measured, higher)
    candidates = tuple(replace(c, accepted=ok) for c, ok in zip(measured, admitted))
    if not admitted[at]:
        warnings.warn(f"{reason}. Try larger weights, or another penalty.", UnmetTargetWarning, stacklevel=2)
    runs = tuple(Run("none" if c.weight == 0 else "penalised", c.weight, 0, c.performance, c.gdp) for c in candidates)
    return Selection(
        weight=candidates[at].weight,
        estimator=models[at],
        satisfied=admitted[at],
        reason=reason,
        candidates=candidates,
        models=tuple(models),
        frontier=Frontier(runs, higher_is_better=higher),
        rule=rule,
        scoring=scoring,
        validation_rows=len(held_out[1]),
    )


def _candidate(model: Any, rows: tuple[Any, Any, Any], rule: Rule, scoring: str, seed: int) -> Candidate:
    X, y, s = rows
    columns = _arrays.matrix(s, "sensitive_features")
    scores = scores_of(model, X)
    two_sided = max(2 * rule.confidence - 1, 0.01)  # both ends of an interval leave out as much
    gaps = [gdp(scores, column, confidence=two_sided, random_state=seed) for column in columns.T]
    test = _tested(model, X, columns, rule, seed)
    error = np.nan if test.standard_error is None else test.standard_error
    return Candidate(
        weight=float(model.penalty_weight),
        performance=_performance(model, X, y, scoring),
        gdp=max(float(gap) for gap in gaps),
        gdp_upper=max(gap.value if rule.confidence <= 0.5 else max(gap.interval[1], gap.value) for gap in gaps),
        hsic=test.statistic,
        hsic_upper=test.statistic + float(norm.ppf(rule.confidence)) * error,
        pvalue=test.pvalue,
    )


def _tested(model: Any, X: Any, s: Any, rule: Rule, seed: int) -> IndependenceResult:
    """Test Z or the scores, as the rule says, against all attributes jointly, on at most `TEST_ROWS` rows."""
    seen = model.transform(X) if rule.of == "representation" else scores_of(model, X)
    values = _arrays.to_numpy(s)
    if len(values) > TEST_ROWS:
        rows = np.random.default_rng(seed).choice(len(values), TEST_ROWS, replace=False)
        seen, values = seen[rows], values[rows]
    kernel_s = per_column_gaussians(values) if values.shape[1] > 1 else None
    kernel_z = Gaussian(1.0) if np.ptp(seen, axis=0).max() == 0 else None  # a collapsed Z has no median distance
    return gamma_test(seen, values, kernel_z, kernel_s, epsilon=rule.epsilon)


def _performance(model: Any, X: Any, y: Any, scoring: str) -> float:
    score = float(get_scorer(scoring)(model, X, y))
    return -score if scoring.startswith("neg_") else score
