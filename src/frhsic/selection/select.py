"""Train a whole grid of weights, measure it on validation rows, and choose one weight."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from frhsic import _arrays
from frhsic.formatting import figure, percent, plain
from frhsic.frontier import Frontier, Run
from frhsic.held_out import rows_held_out, rows_of
from frhsic.selection.fitting import Fitting, Watch, check_estimator, checked_weights, joined, refined_weights
from frhsic.selection.measuring import Constant, Rows
from frhsic.selection.performance import constant_predictor, scoring_of
from frhsic.selection.reasons import REASONS
from frhsic.selection.results import Selection
from frhsic.selection.rules import LEAST_GAIN, Candidate, Rule
from frhsic.selection.written import rule_of

WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Default grid; 0 is the unpenalised model."""

REFINEMENT = 3
"""Weights on either side of the choice that ``refine=True`` adds."""

LAST_SHARE = 0.2
"""Share of the rows that ``validation="last"`` chooses on."""


class UnmetTargetWarning(UserWarning):
    """No weight of the grid meets the rule; the nearest one was chosen."""


class LowGainWarning(UserWarning):
    """The chosen model is hardly better than a constant: it keeps too little of the unpenalised model's gain."""


def select_weight(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    rule: Rule | float | str | None = None,
    weights: Sequence[float] | None = None,
    validation: float | Literal["last"] | tuple[Any, ...] = 0.2,
    groups: Any = None,
    order: Any = None,
    scoring: str | Callable[..., float] | None = None,
    refine: bool | int = False,
    refit: bool = False,
    sample_weight: Any = None,
    sequential: bool = False,
    random_state: _arrays.RandomState = 0,
    watch: Watch | None = None,
) -> Selection:
    r"""Choose λ on validation rows, from models of the whole grid trained at once.

    .. math:: \hat\lambda = \text{rule}\bigl(\{(\text{gain}_\lambda, \text{GDP}_\lambda, \text{HSIC}_\lambda,
        p_\lambda)\}_{\lambda \in \text{grid}}\bigr), \quad \text{each measured on rows that were not trained on.}

    The gain is the share of the unpenalised model's improvement over a constant predictor that a model keeps. A chosen
    model that keeps too little of it, or does not beat the constant, has ``satisfied=False`` and gives a
    :class:`LowGainWarning`. On the validation rows the chosen model is the best of many, so its numbers there are too
    good. Report :meth:`Selection.evaluate` on test rows.

    Parameters
    ----------
    estimator : FRHSICClassifier, FRHSICRegressor, or another estimator
        Unfitted. It needs a parameter `penalty_weight`, which is set, and a ``fit`` that takes `sensitive_features`. It
        is not changed. Estimators of this library are trained at once, others one after another.
    X, y, sensitive_features, sample_weight
        As in its ``fit``. Validation rows without an attribute are left out. Weights are for training alone: every
        validation row counts as one.
    rule : Rule, float or str, optional
        A rule; a limit on GDP such as 0.02; or a text such as "gdp <= 0.02", "hsic <= 0.001", "gain >= 90%",
        "p > 0.05". None is :class:`PerformanceRule`: the least GDP at a small loss of the gain.
    weights : sequence of float, optional
        The grid; 0 is added as the reference. None is `WEIGHTS`.
    validation : float, "last" or (X, y, sensitive_features)
        Share of the rows to choose on instead of training, drawn at random; "last" for the last fifth of the rows as
        they come; or such rows themselves, with their groups as a fourth part if they have any.
    groups : array of shape (n,), optional
        Group of each row, such as a person. A group is either trained on or chosen on, and intervals of GDP take
        groups, not rows, as independent of each other. A ``fit`` that takes `groups` is given those of its rows. If
        `validation` holds rows, these are the groups of the rows to train on.
    order : array of shape (n,), optional
        Key of each row, such as a date. Validation rows are the last ones; rows of equal key stay together.
    scoring : str or callable, optional
        Name of a scikit-learn scorer, a scorer, or a function of (model, X, y) that is better when larger. None is a
        proper score: log loss, or mean squared error for a regressor.
    refine : bool or int
        Train a second round: this many weights (True: 3) on either side of the choice, up to its neighbours in the
        grid, and choose again. Bounds of both rounds then use half of the error rate of the rule each, so that its
        confidence holds for both together, provided that the gap in the population does not grow with the weight.
    refit : bool
        Fit the chosen weight again on training and validation rows. No number here is about that model, and the
        confidence of a rule does not cover it; see :meth:`Selection.evaluate`.
    sequential : bool
        Train one model after another, for encoders that cannot be stacked, such as those with dropout.
    random_state
        Seed of the split and of the rows that the test uses; training uses the estimator's own.
    watch : callable, optional
        Called with a sentence at each step, such as ``print``.

    References
    ----------
    The paper, section on the choice of λ: increasing grid, held-out split, independence test, practical significance.

    Examples
    --------
    >>> from frhsic.estimators import FRHSICClassifier
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s, rng.normal(size=400)])
    >>> y = 2 * s + X[:, 1] > 1
    >>> model = FRHSICClassifier(epochs=50, random_state=0)
    >>> chosen = select_weight(model, X, y, sensitive_features=s, rule="gdp <= 0.1", weights=[10, 100])
    >>> chosen.satisfied, chosen.weight > 0
    (True, True)
    """
    check_estimator(estimator)
    rule = rule_of(rule)
    score = scoring_of(scoring, estimator)
    if sensitive_features is None:
        raise ValueError("sensitive_features is None: without it there is no dependence to choose by.")
    grid = checked_weights(WEIGHTS if weights is None else weights)
    count = REFINEMENT if refine is True else int(refine)
    if count < 0:
        raise ValueError(f"refine={refine!r}; pass True, or how many weights to try on either side of the choice.")
    seed = _arrays.seed_of(random_state) % 2**32
    tell = watch or (lambda step: None)
    everything = (X, y, sensitive_features, sample_weight, groups)
    fit, held = _parts(*everything, validation=validation, order=order, seed=seed, refit=refit)
    fitting = Fitting(estimator, *fit, sequential, tell)
    models = fitting.path(grid)
    constant = held.constant(constant_predictor(estimator, *fit[:2], fit[3]), score)
    confidence = 1 - (1 - rule.confidence) / 2 if count and rule.confidence > 0.5 else rule.confidence

    def measure(models: Sequence[Any], unpenalised: float | None) -> list[Candidate]:
        tell(f"measuring {len(models)} models on {len(held.s):,} validation rows")
        found: list[Candidate] = []
        for model in models:
            reference = found[0].performance if found and unpenalised is None else unpenalised
            found.append(held.candidate(model, rule, constant, confidence=confidence, unpenalised=reference))
        return found

    candidates = measure(models, None)
    admitted, at, reason = rule.choose(candidates, score.higher_is_better)
    more = refined_weights(grid, at, count) if count else []
    if more:
        added = fitting.path(more)
        pairs = [*zip(candidates, models), *zip(measure(added, candidates[0].performance), added)]
        pairs.sort(key=lambda pair: pair[0].weight)
        candidates, models = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        admitted, at, reason = rule.choose(candidates, score.higher_is_better)
    if not admitted[at]:
        warnings.warn(f"{reason}. Try larger weights, or another penalty.", UnmetTargetWarning, stacklevel=2)
    low = _low_gain(candidates[at], candidates[0], rule, constant)
    if low is not None:
        reason = f"{reason}; {low}"
        warnings.warn(
            f"weight {plain(candidates[at].weight)}: {low}. Allow more dependence, or bring more rows or better "
            "features.",
            LowGainWarning,
            stacklevel=2,
        )
    candidates = [replace(c, accepted=ok) for c, ok in zip(candidates, admitted)]
    runs = tuple(Run("none" if c.weight == 0 else "penalised", c.weight, 0, c.performance, c.gdp) for c in candidates)
    chosen = models[at]
    if refit:
        whole = everything if isinstance(validation, (int, float, str)) else _with_validation(everything, validation)
        tell(f"fitting weight {plain(candidates[at].weight)} again on all {len(whole[1]):,} rows")
        chosen = Fitting(estimator, *whole).at(candidates[at].weight)
    return Selection(
        weight=candidates[at].weight,
        estimator=chosen,
        satisfied=admitted[at] and low is None,
        reason=reason,
        candidates=tuple(candidates),
        models=tuple(models),
        frontier=Frontier(runs, higher_is_better=score.higher_is_better),
        rule=rule,
        scoring=score,
        validation_rows=len(held.s),
        constant=constant.performance,
        constant_model=constant.model,
        refitted=refit,
    )


def _parts(
    X: Any,
    y: Any,
    s: Any,
    sample_weight: Any,
    groups: Any,
    *,
    validation: float | str | tuple[Any, ...],
    order: Any,
    seed: int,
    refit: bool,
) -> tuple[tuple[Any, Any, Any, Any, Any], Rows]:
    """Return (X, y, s, sample_weight, groups) of the rows to train on, and the rows to choose on."""
    if isinstance(validation, str) and validation == "last":
        if order is not None:
            raise ValueError('validation="last" takes the rows as they come; with order= pass a share, such as 0.2.')
        validation, order = LAST_SHARE, np.arange(len(y))
    if isinstance(validation, (int, float)):
        fit, held = rows_held_out(len(y), validation, name="validation", seed=seed, groups=groups, order=order)
        weights = None if sample_weight is None else rows_of(sample_weight, fit)
        trained, clusters = (None, None) if groups is None else (np.asarray(groups)[part] for part in (fit, held))
        rows = Rows.of(rows_of(X, held), rows_of(y, held), rows_of(s, held), clusters, seed)
        return (rows_of(X, fit), rows_of(y, fit), rows_of(s, fit), weights, trained), rows
    if isinstance(validation, str) or len(validation) not in (3, 4):
        raise ValueError(
            f"validation={validation if isinstance(validation, str) else '...'!r}; pass a share of the rows such as "
            '0.2, "last", or the rows as (X, y, sensitive_features) or (X, y, sensitive_features, groups).'
        )
    if order is not None:
        raise ValueError("order says how to split rows, and validation holds rows already; leave one of them out.")
    if groups is not None and len(validation) == 3:
        raise ValueError(
            "groups are those of the rows to train on, as validation holds rows already; pass the groups of these as "
            "its fourth part."
        )
    if refit and sample_weight is not None:
        raise ValueError("refit=True needs the weights of the validation rows; pass validation as a share of the rows.")
    X_held, y_held, s_held, *rest = validation
    return (X, y, s, sample_weight, groups), Rows.of(X_held, y_held, s_held, rest[0] if rest else None, seed)


def _with_validation(everything: tuple[Any, ...], validation: tuple[Any, ...]) -> tuple[Any, Any, Any, None, Any]:
    X, y, s = (joined(part, added) for part, added in zip(everything[:3], validation[:3]))
    return X, y, s, None, None if everything[4] is None else joined(everything[4], validation[3])


def _low_gain(chosen: Candidate, unpenalised: Candidate, rule: Rule, constant: Constant) -> str | None:
    """Return in which way the chosen model is hardly better than a constant, or None if it is."""
    name, base = constant.scoring.name, figure(constant.performance.performance)
    if math.isnan(chosen.gain):
        return REASONS["no_gain"].format(name=name, unpenalised=figure(unpenalised.performance), constant=base)
    least = getattr(rule, "least_gain", LEAST_GAIN)
    if chosen.gain < least:
        return REASONS["low_gain"].format(gain=percent(chosen.gain), least=percent(least))
    # by a scorer such as accuracy, noise can look like a gain
    return None if chosen.beats_constant else REASONS["no_better"]
