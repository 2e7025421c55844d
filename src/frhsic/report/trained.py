"""The report of a model under a limit: its trade-offs, and audits without the limit and with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn import metrics

from frhsic import _arrays
from frhsic.auditing import Audit, Context, Settings, audit
from frhsic.auditing.limits import Limits
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.estimators.tradeoffs import Gap, by_attribute, share
from frhsic.held_out import rows_of, scores_of
from frhsic.parity import gdp, rank_gap
from frhsic.report.driving import drivers, shifts
from frhsic.report.model import Report, TradeOff, TradeOffPoint


def trained_report(
    model: ParityClassifier | ParityRegressor,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    favourable: object = None,
    groups: Any = None,
    limit: Limits = (),
    threshold: float | None = None,
    settings: Settings | None = None,
    context: Context | None = None,
) -> Report:
    r"""Report on a model of two classes or of numbers that was fitted under a limit.

    The trade-offs are those of ``model.frontier_``, by the measure that belongs to the aim. The audits are of other
    rows: those of ``model.at(None)`` and of the model. Scores are audited, and decisions for the aim "decision".

    Parameters
    ----------
    model
        Fitted :class:`~frhsic.ParityClassifier` or :class:`~frhsic.ParityRegressor`.
    X, y, sensitive_features
        Rows that had no part in the fit; those without an attribute are left out and counted.
    favourable
        Label of y that is good for a person; by default the second class.
    groups
        Rows that belong together.
    limit, threshold, settings, context
        As in :func:`frhsic.audit`; `limit` is checked on these rows, and is not that of the model.

    Examples
    --------
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(axis=1)
    >>> model = ParityRegressor(random_state=0, n_jobs=1).fit(X[:300], y[:300], sensitive_features=s[:300])
    >>> report = trained_report(
    ...     model, X[300:], y[300:], sensitive_features=s[300:], settings=Settings(resamples=20)
    ... )
    >>> report.tradeoff.after.gaps[0].value == report.audit.attributes[0].all_rows["gdp"].value
    True
    """
    if model.frontier_ is None:
        raise ValueError("the model was fitted without sensitive_features, so there is no trade-off to report.")
    _arrays.require_same_rows((X, "X"), (y, "y"), (sensitive_features, "sensitive_features"), (groups, "groups"))
    settings, context = settings or Settings(), context or Context()
    target = _arrays.array_name(y, "y")
    missing = np.isnan(_arrays.to_numpy(_arrays.matrix(sensitive_features, "sensitive_features", allow_missing=True)))
    known = np.flatnonzero(~missing.any(axis=1))
    lost = len(missing) - len(known)
    if lost:
        X, y, sensitive_features = (rows_of(part, known) for part in (X, y, sensitive_features))
        groups = None if groups is None else np.asarray(groups)[known]
        given = context.given or len(missing) + context.dropped
        context = replace(context, given=given, dropped=context.dropped + lost)
    rows = _HeldOut.of(model, X, y, sensitive_features, groups, target)
    free = model.at(None)
    was, now = rows.outputs(free), rows.outputs(model)
    tradeoff = _tradeoff(model, rows, rows.point(model, was, settings), rows.point(model, now, settings))
    decides = model.aim == "decision"

    def audited(f: np.ndarray, about: str) -> Audit:
        return audit(
            f,
            sensitive_features.reset_index(drop=True) if hasattr(sensitive_features, "iloc") else sensitive_features,
            pd.Series(rows.given, name=target),
            positive=None if rows.labels is None or set(rows.labels) == {0, 1} else rows.labels[1],
            favourable=favourable,
            settings=settings.about(f"audit {about}"),
            groups=groups,
            limit=limit,
            threshold=None if decides else threshold,
            context=replace(context, name=context.name or rows.score_name),
        )

    after = audited(now, "of the model")
    moved = tradeoff.limited and model.choice_ is not None and model.choice_.position > 0
    before = audited(was, "without the limit") if moved else None
    settings.tell("what drives the score")
    s = rows.s
    carried = drivers(lambda part, at: rows.outputs(free, part, s[at]), X, s, rows.names, settings)
    return Report(
        after,
        before=before,
        tradeoff=tradeoff,
        drivers=tuple(replace(one, unlimited=before is not None) for one in carried),
        shifts=() if before is None else shifts(was, now, s, rows.names, settings),
    )


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows that had no part in the fit, and their names; `labels` are the two classes, or None for a regression."""

    X: Any
    y: np.ndarray
    given: np.ndarray
    s: np.ndarray
    groups: Any
    names: tuple[str, ...]
    labels: np.ndarray | None
    measure: str
    score_name: str

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, s: Any, groups: Any, target: str) -> _HeldOut:
        labels = getattr(model, "classes_", None)
        if labels is not None and len(labels) != 2:
            raise ValueError(
                f"the model tells {len(labels)} classes apart; a report is of one score. Train one class against the "
                "rest."
            )
        given = np.asarray(y)
        classes = [] if labels is None else [str(label) for label in labels]
        itself = classes in ([], ["0", "1"], ["False", "True"])  # such a target names its positive class
        positive = target if itself else f"{target} = {classes[1]}"
        measure = "squared_error" if labels is None else {"score": "log_loss", "rank": "auc"}.get(model.aim, "accuracy")
        if measure == "accuracy" and model.threshold_ != 0.5:  # of rare outcomes
            measure = "balanced_accuracy"
        score = f"predicted {positive}" if labels is None or model.aim == "decision" else f"probability of {positive}"
        return cls(
            X,
            given.astype(np.float64) if labels is None else (given == labels[1]).astype(np.float64),
            given,
            _arrays.to_numpy(_arrays.matrix(s, "sensitive_features")).astype(np.float64),
            None if groups is None else np.asarray(groups),
            tuple(map(str, model.sensitive_names_in_)),
            labels,
            measure,
            score,
        )

    def outputs(self, model: Any, X: Any = None, s: np.ndarray | None = None) -> np.ndarray:
        """Return what is audited: scores, or decisions as 0 and 1 if they are what the model limits."""
        X, s = (self.X, self.s) if X is None else (X, s)
        if model.aim != "decision":
            return scores_of(model, X, s)
        more = {"sensitive_features": s} if model.uses_sensitive else {}
        return np.asarray(model.predict(X, **more) == model.classes_[1], dtype=np.float64)

    def point(self, model: Any, f: np.ndarray, settings: Settings) -> TradeOffPoint:
        """Return performance and gaps of outputs on these rows, as the model measures them."""
        classes = {None: [slice(None)], "positive": [self.y == 1], "both": [self.y == 1, self.y == 0]}[model.condition]
        gaps = []
        for column in self.s.T:
            each = [self._gap(model.aim, f, column, rows, settings) for rows in classes]
            gaps.append(max(each, key=lambda gap: gap.high))
        return TradeOffPoint(performance_of(self.measure, self.y, f), tuple(gaps))

    def _gap(self, aim: str, f: np.ndarray, column: np.ndarray, rows: Any, settings: Settings) -> Gap:
        groups = None if self.groups is None else self.groups[rows]
        measure: Any = rank_gap if aim == "rank" else gdp
        result = measure(f[rows], column[rows], groups=groups, **settings.options)
        return Gap(result.value, *result.interval)


def performance_of(measure: str, y: np.ndarray, f: np.ndarray) -> float:
    """Return a measure of scores, or of decisions, by its key.

    Examples
    --------
    >>> performance_of("auc", np.array([0, 1, 1]), np.array([0.1, 0.3, 0.1]))
    0.75
    """
    if measure == "squared_error":
        return float(np.mean((f - y) ** 2))
    if measure == "log_loss":
        return float(metrics.log_loss(y, np.clip(f, 1e-12, 1 - 1e-12), labels=[0, 1]))
    if measure == "auc":
        return float(metrics.roc_auc_score(y, f)) if 0 < y.mean() < 1 else 0.5
    score = metrics.accuracy_score if measure == "accuracy" else metrics.balanced_accuracy_score
    return float(score(y, f))


def _tradeoff(model: Any, rows: _HeldOut, before: TradeOffPoint, after: TradeOffPoint) -> TradeOff:
    """Return the trade-offs of a fit, with the chosen one at its place between two of them."""
    frontier, choice = model.frontier_, model.choice_
    performance = frontier.performance[rows.measure]
    points = [
        TradeOffPoint(float(value), tuple(frontier.gaps[name][i] for name in rows.names))
        for i, value in enumerate(performance)
    ]
    place = math.ceil(choice.position)
    between = float(np.interp(choice.position, np.arange(len(points)), performance))
    chosen = TradeOffPoint(between, tuple(choice.gaps[name] for name in rows.names), chosen=True)
    points[place : place + (place == choice.position)] = [chosen]
    asked = by_attribute(choice.limit, rows.names)
    limits = [
        share(one) * choice.unconstrained[name].value if isinstance(one, str) else one for name, one in asked.items()
    ]
    ask = dict.fromkeys("none" if one is None else str(one) for one in asked.values())
    return TradeOff(
        aim=model.aim,
        condition=model.condition,
        measure=rows.measure,
        attributes=rows.names,
        worst=int(np.argmax([gap.value for gap in points[0].gaps])),
        asked=" and ".join(ask),
        limits=tuple(None if one is None else float(one) for one in limits),
        met=bool(choice.met or choice.limit == 0),
        points=tuple(points),
        before=before,
        after=after,
        constant=performance_of(rows.measure, rows.y, np.full(len(rows.y), _constant(rows))),
    )


def _constant(rows: _HeldOut) -> float:
    """Return the best constant: the mean, or the more frequent decision."""
    mean = float(rows.y.mean())
    return mean if rows.measure in ("squared_error", "log_loss", "auc") else float(mean > 0.5)
