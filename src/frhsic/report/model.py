"""What a report holds: an audit and, of a model under a limit, the trade-offs and the audit without
the limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.auditing import Audit, Context, Settings, audit
from frhsic.auditing.comparing import checked, difference
from frhsic.auditing.measures import (
    RANK_ROWS,
    changes,
    covariance,
    gap_column,
    gap_number,
    gap_terms,
    performance,
    shown_curve,
)
from frhsic.auditing.results import GAPS, LIMITABLE, Change, Curve, Document, Number
from frhsic.auditing.running import outcome
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.estimators.frontier import Gap, aimed_gap, limited_measure
from frhsic.intervals import Interval
from frhsic.parity import gdp_curve
from frhsic.parity.limits import LimitLike, measure_name, parse_limits
from frhsic.scoring import scores_of
from frhsic.splits import rows_of, subsample

REPORT_FORMAT = 12  # version of the JSON form of a :class:`Report`
# Limits beside the chosen one that a report shows, and how many trade-offs lie between two of them
# at least.
OTHER_LIMITS = (None, "50%", "25%", 0)
APART = 0.3


@dataclass(frozen=True)
class TradeOffPoint:
    """Performance of one predictor, and its gap along each attribute.

    On the rows of the report, and in the fit without a limit, a gap has an interval above 0 exactly
    where it is significant.
    """

    performance: float
    gaps: tuple[Gap, ...]
    chosen: bool = False


@dataclass(frozen=True)
class Stop:
    """One trade-off on the rows of the report: the limit that leads there (empty: that of the
    model), performance and gaps, what it costs against no limit, and the mean score along each
    attribute.
    """

    limit: str
    point: TradeOffPoint
    costs: tuple[Change, ...]
    curves: dict[str, Curve]


@dataclass(frozen=True)
class TradeOff:
    """The trade-offs of one fit and the one that its limit chose.

    Attributes
    ----------
    aim, condition
        The gap that is limited, as in :class:`~frhsic.ParityClassifier`.
    measure
        Key of the performance, which a constant cannot win: the loss for the aim "score", "auc" for
        "rank", "accuracy", or of rare outcomes "balanced_accuracy", for "decision".
    attributes
        Names of the attributes.
    limits, shares, met
        For each attribute the largest gap that is allowed as a number, or as a share of the gap
        without a limit (None: any), and whether the fit keeps them.
    points
        From no limit to almost no gap, measured on training rows that neither fitted nor chose the
        point.
    before, after
        Without the limit and with it, on the rows of the report.
    changes
        For each attribute the change of the gap by the limit, on the rows of the report: both
        predictors are measured on the same rows. Empty if the limit changes nothing.
    stops
        The chosen trade-off and what other limits would do, from no limit to the least gap.
    """

    aim: str
    condition: str | None
    measure: str
    attributes: tuple[str, ...]
    limits: tuple[float | None, ...]
    shares: tuple[float | None, ...]
    met: bool
    points: tuple[TradeOffPoint, ...]
    before: TradeOffPoint
    after: TradeOffPoint
    changes: tuple[Change, ...] = ()
    stops: tuple[Stop, ...] = ()

    @property
    def worst(self) -> int:
        """Index of the attribute with the largest gap without a limit."""
        return max(range(len(self.attributes)), key=lambda i: self.points[0].gaps[i].value)

    @property
    def limited(self) -> bool:
        """Whether any attribute has a limit."""
        return any(limit is not None for limit in (*self.limits, *self.shares))


@dataclass(frozen=True)
class Report(Document):
    """Content of one page. `before` is the audit without the limit, to compare with `audit` number
    by number.

    `earlier` is the audit of other rows with which `audit.drift` compares. `changes` says how the
    limit changed gaps: both models are measured on the same rows.
    """

    audit: Audit
    before: Audit | None = None
    earlier: Audit | None = None
    tradeoff: TradeOff | None = None
    changes: tuple[Change, ...] = ()
    format: int = REPORT_FORMAT

    def change(self, key: str, attribute: str) -> Change | None:
        """Return how the limit changed a number along an attribute, or None."""
        for one in self.changes:
            if (one.key, one.attribute) == (key, attribute):
                return one
        return None


def trained_report(
    model: ParityClassifier | ParityRegressor,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    favourable: object = None,
    groups: Any = None,
    limit: LimitLike = None,
    threshold: float | None = None,
    settings: Settings | None = None,
    context: Context | None = None,
) -> Report:
    r"""Report on a model of two classes or of numbers that was fitted under a limit.

    The trade-offs are those of ``model.frontier_``, by the measure that belongs to the aim. The
    audits are of other rows: those of ``model.at(None)`` and of the model. Scores are audited, and
    decisions for the aim "decision".

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
        A share is one of the gap of ``model.at(None)`` on these rows.

    Examples
    --------
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> s = rng.uniform(size=400)
    >>> X = np.column_stack([s + 0.1 * rng.normal(size=400), rng.normal(size=400)])
    >>> y = X.sum(axis=1)
    >>> model = ParityRegressor(random_state=0, n_jobs=1).fit(
    ...     X[:300], y[:300], sensitive_features=s[:300]
    ... )
    >>> report = trained_report(
    ...     model, X[300:], y[300:], sensitive_features=s[300:], settings=Settings(resamples=20)
    ... )
    >>> bool(
    ...     np.isclose(
    ...         report.tradeoff.after.gaps[0].value,
    ...         report.audit.attributes[0].all_rows["gdp"].value,
    ...     )
    ... )
    True
    """
    if model.frontier_ is None or model.choice_ is None:
        raise ValueError(
            "the model was fitted without sensitive_features, so there is no trade-off to report."
        )
    _arrays.require_same_rows(
        (X, "X"), (y, "y"), (sensitive_features, "sensitive_features"), (groups, "groups")
    )
    settings, context = settings or Settings(), context or Context()
    missing = np.isnan(_arrays.matrix(sensitive_features, "sensitive_features", allow_missing=True))
    known, target = (
        np.flatnonzero(~missing.any(axis=1)),
        pd.Series(np.asarray(y), name=_arrays.array_name(y, "y")),
    )
    if len(known) < len(missing):
        X, sensitive_features = rows_of(X, known), rows_of(sensitive_features, known)
        target, groups = target.iloc[known], None if groups is None else np.asarray(groups)[known]
        given, lost = context.given or len(missing) + context.dropped, len(missing) - len(known)
        context = replace(context, given=given, dropped=context.dropped + lost)
    rows = _HeldOut.of(model, X, target, sensitive_features, groups)
    free = model.at(None)
    was, now = rows.outputs(free), rows.outputs(model)
    positive = None if rows.labels is None or rows.labels.tolist() == [0, 1] else rows.labels[1]
    context = replace(context, name=context.name or rows.score_name(target.name))

    def audited(f: np.ndarray, about: str) -> Audit:
        return audit(
            f,
            (
                sensitive_features.reset_index(drop=True)
                if hasattr(sensitive_features, "iloc")
                else sensitive_features
            ),
            target.reset_index(drop=True),
            positive=positive,
            favourable=favourable,
            settings=settings.about(f"audit {about}"),
            groups=groups,
            threshold=None if model.aim == "decision" else threshold,
            context=context,
        )

    after = audited(now, "of the model")
    moved = model.choice_.position > 0 and any(model.frontier_.limits(model.choice_.limit).values())
    stated_limits = parse_limits(limit, LIMITABLE)
    before = None
    paired: tuple[Change, ...] = ()
    if moved:
        before = audited(was, "without the limit")
        favoured = outcome(target, positive, favourable)[1]
        paired = tuple(rows.changes(was, now, before, after, favoured, settings))
        before = replace(before, limits=checked(before, stated_limits, before))
    after = replace(after, limits=checked(after, stated_limits, before or after, paired))
    old = rows.measured(was, settings)
    place = float(model.choice_.position)
    new = rows.measured(now, settings) if place else old
    return Report(
        after,
        before=before,
        tradeoff=_tradeoff(
            rows,
            before=old.point(),
            after=new.point(),
            changes=tuple(rows.gap_changes(old, new, after.subject.level)) if moved else (),
            stops=tuple(rows.stops({0.0: (was, old), place: (now, new)}, settings, after)),
        ),
        changes=paired,
    )


@dataclass(frozen=True, eq=False)
class _Measured:
    """Performance of outputs, and for each attribute the gap and what each row adds to it."""

    performance: float
    gaps: list[tuple[Number, np.ndarray]]

    def point(self) -> TradeOffPoint:
        """Return the same as a trade-off."""
        gaps = []
        for number, _ in self.gaps:
            assert number.interval is not None
            gaps.append(Gap(number.value, *number.interval))
        return TradeOffPoint(self.performance, tuple(gaps))


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows that had no part in the fit of a model; `labels` are its two classes, or None for a
    regression.
    """

    model: Any
    X: Any
    y: np.ndarray
    s: np.ndarray
    groups: np.ndarray | None
    labels: np.ndarray | None

    @classmethod
    def of(cls, model: Any, X: Any, y: pd.Series[Any], s: Any, groups: Any) -> _HeldOut:
        labels = getattr(model, "classes_", None)
        if labels is not None and len(labels) != 2:
            raise ValueError(
                f"the model predicts {len(labels)} classes; a report takes one score. Train one"
                " class against the rest."
            )
        values = (y if labels is None else y == labels[1]).to_numpy(dtype=np.float64)
        attributes = _arrays.matrix(s, "sensitive_features").astype(np.float64)
        return cls(
            model, X, values, attributes, None if groups is None else np.asarray(groups), labels
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(map(str, self.model.sensitive_names_in_))

    @property
    def measure(self) -> str:
        """Key of the performance that belongs to the aim of the model."""
        if self.labels is None:
            return "squared_error"
        rare = self.model.threshold_ != 0.5
        decided = "balanced_accuracy" if rare else "accuracy"
        return {"score": "log_loss", "rank": "auc", "decision": decided}[self.model.aim]

    def score_name(self, target: Any) -> str:
        """Return what the outputs of the model are called."""
        classes = [] if self.labels is None else [str(label) for label in self.labels]
        itself = classes in (
            [],
            ["0", "1"],
            ["False", "True"],
        )  # such a target names its positive class
        score = (
            "predicted" if self.labels is None or self.model.aim == "decision" else "probability of"
        )
        return f"{score} {target}" if itself else f"{score} {target}: {classes[1]}"

    def outputs(self, model: Any) -> np.ndarray:
        """Return what is audited: scores, or decisions as 0 and 1 if they are what the model
        limits.
        """
        if model.aim != "decision":
            return scores_of(model, self.X, self.s)
        more = {"sensitive_features": self.s} if model.uses_sensitive else {}
        return np.asarray(model.predict(self.X, **more) == model.classes_[1], dtype=np.float64)

    @property
    def codes(self) -> np.ndarray | None:
        """Number of the group of each row, or None."""
        return None if self.groups is None else np.unique(self.groups, return_inverse=True)[1]

    def measured(self, f: np.ndarray, settings: Settings) -> _Measured:
        """Return performance and gaps of outputs on these rows, as the model measures them: the
        largest gap over the conditions of an attribute, with the p-value of them all.
        """
        key = limited_measure(self.model.aim, self.model.condition)
        blocks = self.model.solution_.constraints
        gaps: dict[int, list[tuple[Number, np.ndarray]]] = {}
        for block in blocks:
            kept = block.rows(self.s, self.y)
            s = self.s[kept, block.attribute]
            groups = None if self.groups is None else self.groups[kept]
            gap = aimed_gap(
                self.model.aim,
                f[kept],
                s,
                None,
                groups,
                confidence=settings.confidence,
                resamples=settings.resamples,
                random_state=settings.seed,
            )
            terms = np.zeros(len(f))
            terms[kept] = gap_terms(f[kept], s, groups, ranks=self.model.aim == "rank")
            gaps.setdefault(block.attribute, []).append((gap_number(key, gap), terms))
        return _Measured(self.performance(f), [_largest(each) for each in gaps.values()])

    def gap_changes(self, old: _Measured, new: _Measured, level: float) -> Iterator[Change]:
        """Yield how the limit changed the gap along each attribute."""
        for name, (was, a), (now, b) in zip(self.names, old.gaps, new.gaps):
            yield difference(now.key, name, was, now, level, covariance(a, b, self.codes))

    def stops(
        self, known: dict[float, tuple[np.ndarray, _Measured]], settings: Settings, after: Audit
    ) -> Iterator[Stop]:
        """Yield the chosen trade-off and others at some distance from it and from each other, which
        limit the attribute with the largest gap; `known` has the outputs of some positions, 0
        without a limit, and what was measured of them.
        """
        model, level = self.model, after.subject.level
        threshold = 0.5 if after.subject.threshold is None else after.subject.threshold
        gaps = model.frontier_.gaps
        widest = max(gaps, key=lambda name: gaps[name][0].value)
        models = {"": model}
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            for limit in OTHER_LIMITS:
                other = model.at(None if limit is None else {widest: limit})
                place = other.choice_.position
                if all(abs(place - one.choice_.position) >= APART for one in models.values()):
                    models[str(limit)] = other
        for limit, one in sorted(models.items(), key=lambda item: item[1].choice_.position):
            place = one.choice_.position
            if place not in known:
                f = self.outputs(one)
                known[place] = f, self.measured(f, settings)
            f, measured = known[place]
            curves = {
                name: shown_curve(
                    gdp_curve(f, s, groups=self.groups, confidence=settings.confidence),
                    f.min(),
                    f.max(),
                )
                for name, s in zip(self.names, self.s.T)
            }
            yield Stop(
                limit if place else "none",
                replace(measured.point(), chosen=one is model),
                tuple(changes(known[0.0][0], f, self.y, threshold, level, self.codes)),
                curves,
            )

    def changes(
        self,
        was: np.ndarray,
        now: np.ndarray,
        before: Audit,
        after: Audit,
        favoured: np.ndarray | None,
        settings: Settings,
    ) -> Iterator[Change]:
        """Yield how the limit changed every gap of the audits."""
        level, threshold = after.subject.level, after.subject.threshold
        everyone = np.arange(len(self.y))
        for i, name in enumerate(attribute.name for attribute in after.attributes):
            parts = [("all", everyone, before[name].all_rows, after[name].all_rows)]
            old, new = before[name].positives, after[name].positives
            if favoured is not None and old is not None and new is not None:
                parts.append(("favourable", np.flatnonzero(favoured), old, new))
            for among, rows, population, other in parts:
                for number in other.numbers:
                    known = population.get(number.key)
                    if known is None or number.key not in (*GAPS, "rank_gap"):
                        continue
                    ranks = number.key == "rank_gap"
                    if ranks and len(rows) > RANK_ROWS:
                        rows = rows[subsample(len(rows), RANK_ROWS, settings.generator(9))]
                    groups = None if self.codes is None else self.codes[rows]
                    a, b = (
                        gap_terms(
                            f[rows]
                            if ranks
                            else gap_column(number.key, f[rows], self.y[rows], threshold),
                            self.s[rows, i],
                            groups,
                            ranks=ranks,
                        )
                        for f in (was, now)
                    )
                    key = measure_name(number.key, among)
                    yield difference(key, name, known, number, level, covariance(a, b, groups))

    def performance(self, f: np.ndarray) -> float:
        """Return the performance of outputs."""
        if self.measure == "squared_error":
            return float(np.mean((f - self.y) ** 2))
        quality = {key: one.value for key, one in performance(f, self.y, 0.5).items()}
        if self.measure in quality:
            return quality[self.measure]
        if "true_positive_rate" not in quality:  # rows of one outcome
            return 0.5
        return (1 + quality["true_positive_rate"] - quality["false_positive_rate"]) / 2


def _largest(gaps: Sequence[tuple[Number, np.ndarray]]) -> tuple[Number, np.ndarray]:
    """Return the gap with the largest upper end; its p-value is for all of them (Bonferroni)."""
    number, terms = max(gaps, key=lambda one: one[0].interval.high if one[0].interval else 0.0)
    pvalue = min(len(gaps) * min(one.pvalue or 0.0 for one, _ in gaps), 1.0)
    assert number.interval is not None
    interval = number.interval.agreeing(number.value, pvalue)
    return replace(number, pvalue=pvalue, interval=interval), terms


def _tradeoff(rows: _HeldOut, **measured: Any) -> TradeOff:
    """Return the trade-offs of a fit, with the chosen one at its place between two of them."""
    model, names = rows.model, rows.names
    frontier, choice = model.frontier_, model.choice_
    performance = frontier.performance[rows.measure]
    points = [
        TradeOffPoint(float(value), tuple(frontier.gaps[name][i] for name in names))
        for i, value in enumerate(performance)
    ]
    place = math.ceil(choice.position)
    between = float(np.interp(choice.position, np.arange(len(points)), performance))
    chosen = TradeOffPoint(between, tuple(choice.gaps[name] for name in names), chosen=True)
    if place == choice.position:
        points[place] = chosen
    else:
        points.insert(place, chosen)
    gaps = []
    for name, gap in zip(names, points[0].gaps):
        interval = Interval(gap.low, gap.high, frontier.confidence, "")
        gaps.append(Gap(gap.value, *interval.agreeing(gap.value, frontier.pvalues[name])))
    points[0] = replace(points[0], gaps=tuple(gaps))
    stated = frontier.limits(choice.limit)
    limits = []
    shares = []
    for name in names:
        gap = frontier.gaps[name][0].value
        bounds = [one.bound(gap, frontier.base_rate) for one in stated[name] if one.base != "gap"]
        limits.append(min(bounds, default=None))
        shares.append(min((one.value for one in stated[name] if one.base == "gap"), default=None))
    return TradeOff(
        aim=model.aim,
        condition=model.condition,
        measure=rows.measure,
        attributes=names,
        limits=tuple(limits),
        shares=tuple(shares),
        met=choice.met,
        points=tuple(points),
        **measured,
    )
