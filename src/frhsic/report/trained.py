"""Reports on models fitted with a limit: audits and trade-offs on held-out rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.auditing import Audit, Context, Settings
from frhsic.auditing.comparing import check_limits, difference, holm
from frhsic.auditing.gaps import gap_column, gap_number, gap_terms, shown_curve
from frhsic.auditing.measures import RANK_ROWS
from frhsic.auditing.outputs import maximum_gap, output_gaps
from frhsic.auditing.performance import (
    RATES,
    changes,
    class_accuracy,
    class_quality,
    covariance,
    performance,
    performance_change,
)
from frhsic.auditing.results import GAPS, LIMITABLE, Change, Keyed, LimitCheck, Number, Quality
from frhsic.auditing.rows import Rows
from frhsic.auditing.running import Inputs, audit_inputs, finish_audit
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.estimators.frontier import Gap
from frhsic.intervals import Interval
from frhsic.parity import gdp, gdp_curve
from frhsic.parity.limits import LimitLike, measure_name, parse_limits
from frhsic.report.model import ClassRates, Report, Stop, TradeOff, TradeOffPoint
from frhsic.scoring import model_scores
from frhsic.splits import subsample, take_rows
from frhsic.tables.attributes import read_sensitive

# Limits that a report shows in addition to the chosen one.
OTHER_LIMITS = (None, "50%", "25%", 0)


def trained_report(
    model: ParityClassifier | ParityRegressor,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    control_features: Any = None,
    favourable: object = None,
    sample_weight: Any = None,
    groups: Any = None,
    limit: LimitLike = None,
    threshold: float | None = None,
    settings: Settings | None = None,
    context: Context | None = None,
) -> Report:
    r"""Report on a classifier or regressor fitted with a limit. With several classes, the limit
    applies to each class, so the verdict is about the largest of their gaps; the audits are about
    the most frequent class, and `tradeoff` contains the gaps, means and decisions of all classes.
    The trade-offs are those of ``model.frontier_``, with the performance measure that corresponds
    to the aim. The audits of ``model.at(None)`` and of the model use the given rows. They audit
    scores, or decisions for the aim "decision".

    Parameters
    ----------
    model
        Fitted :class:`~frhsic.ParityClassifier` or :class:`~frhsic.ParityRegressor`.
    X, y, sensitive_features, control_features
        Rows that were not used in the fit; rows with a missing attribute are left out and counted.
        A model that compares people with the same controls requires the controls unless they are
        columns of X.
    favourable
        Label of y that is good for a person; by default, the second class.
    sample_weight, groups
        Weights of the rows, and groups of rows that belong together.
    limit, threshold, settings, context
        As in :func:`frhsic.audit`; `limit` is checked on these rows and may differ from the limit
        of the model. A share refers to the gap of ``model.at(None)`` on these rows.

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
            " Pass sensitive_features to fit."
        )
    labels = getattr(model, "classes_", None)
    shown = 1
    if labels is not None and len(labels) > 2:
        shown = int(np.argmax([np.sum(np.asarray(y) == label) for label in labels]))
    rest = (sample_weight, "sample_weight"), (groups, "groups")
    strata = model._strata_of(X, control_features)
    _arrays.require_same_rows((X, "X"), (y, "y"), (sensitive_features, "sensitive_features"), *rest)
    settings = settings or Settings()
    context = context or Context()
    s = read_sensitive(sensitive_features, allow_missing=True).values
    target = pd.Series(np.asarray(y), name=_arrays.array_name(y, "y"))
    known = np.flatnonzero(~np.isnan(s).any(axis=1))
    lost = len(s) - len(known)
    if lost:
        X = take_rows(X, known)
        target = target.iloc[known].reset_index(drop=True)
        groups = None if groups is None else np.asarray(groups)[known]
        sample_weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        strata = None if strata is None else strata[known]
        if control_features is not None:
            control_features = take_rows(control_features, known)
        given = context.given or len(s) + context.dropped
        context = replace(context, given=given, dropped=context.dropped + lost)
        s = s[known]
    context = replace(context, name=context.name or _score_name(model, target.name, shown))
    names = [str(name) for name in model.sensitive_names_in_]
    if model.strata_ is not None:
        controls = model._controls(X) if control_features is None else control_features
        measured = model.strata_.recounted(controls)  # the fit used other rows
        context = replace(context, remarks=(*context.remarks, *measured.notes))
    every = _outputs(model, X, s, control_features)
    now = _class_outputs(every, shown)
    inputs = Inputs.from_arrays(
        now,
        pd.DataFrame(s, columns=names),
        target,
        None,
        positive=None if labels is None or labels.tolist() == [0, 1] else labels[shown],
        favourable=favourable,
        weights=sample_weight,
        groups=groups,
    )
    inputs = replace(inputs, rows=replace(inputs.rows, strata=strata, controls=model.strata_))
    codes = None if every.ndim == 1 else pd.Index(np.asarray(labels)).get_indexer(pd.Index(target))
    rows = _HeldOut(model, X, control_features, inputs.rows, shown, codes)
    free = rows.outputs(model.at(None))
    was = _class_outputs(free, shown)
    classes: dict[str, tuple[Number, ...]] = {}
    rates: dict[str, ClassRates] = {}
    if every.ndim > 1:
        classes = rows.class_gaps(every, labels, settings)
        rates = rows.class_rates(every, labels, settings)
    threshold = None if model.aim == "decision" else threshold

    def audit_outputs(outputs: np.ndarray, about: str) -> Audit:
        f = _class_outputs(outputs, shown)
        scored = replace(inputs, rows=replace(inputs.rows, z=f[:, None]))
        audit = audit_inputs(scored, threshold, settings.about(about), context)
        audit = replace(audit, quality=rows.qualities(outputs, audit))
        return finish_audit(audit, ())

    after = audit_outputs(every, "audit of the model")
    moved = model.choice_.position > 0 and any(model.frontier_.limits(model.choice_.limit).values())
    stated_limits = parse_limits(limit, LIMITABLE)
    before = None
    paired: tuple[Change, ...] = ()
    if moved:
        before = audit_outputs(free, "audit without the limit")
        paired = tuple(rows.changes(was, now, before, after, settings))
        before = replace(before, limits=check_limits(before, stated_limits, before))
    after = replace(after, limits=check_limits(after, stated_limits, before or after, paired))
    place = model.choice_.position
    old = rows.measure_outputs(free, settings)
    new = rows.measure_outputs(every, settings) if place else old
    if classes:
        level = after.subject.level
        limits = tuple(rows.check_classes(check, old, new, level) for check in after.limits)
        after = replace(after, limits=limits)
    else:
        old = _as_audited(old, before or after)
        new = _as_audited(new, after) if place else old
    return Report(
        after,
        before=before,
        tradeoff=_tradeoff(
            rows,
            before=old.point(),
            after=new.point(),
            changes=tuple(rows.gap_changes(old, new, after.subject.level)) if moved else (),
            stops=tuple(rows.stops({0: (free, old), place: (every, new)}, settings, after)),
            classes=classes,
            class_rates=rates,
        ),
        changes=paired,
    )


def _as_audited(measured: _Measured, audit: Audit) -> _Measured:
    """Return the measurements, with the audit's intervals for the gaps that are also in the audit,
    since two computations can differ in the last digit.
    """
    gaps = []
    for attribute, (number, terms) in zip(audit.attributes, measured.gaps):
        among: Keyed | None = attribute.all_rows
        key = number.key
        if key == "within":
            among, key = attribute.all_rows.within, "gdp"
        known = None if among is None else among.get(key)
        if known is not None and math.isclose(known.value, number.value, abs_tol=1e-9):
            number = replace(number, interval=known.interval)
        gaps.append((number, terms))
    return replace(measured, gaps=gaps)


def _outputs(model: Any, X: Any, s: np.ndarray, controls: Any) -> np.ndarray:
    """Return the audited outputs: scores, or decisions as 0 and 1 if the model limits decisions."""
    if model.aim != "decision":
        return np.asarray(model_scores(model, X, s, controls), dtype=np.float64)
    more = {"sensitive_features": s} if model.uses_sensitive else {}
    if controls is not None:
        more["control_features"] = controls
    return np.asarray(model.predict(X, **more) == model.classes_[1], dtype=np.float64)


def _class_outputs(outputs: np.ndarray, shown: int) -> np.ndarray:
    """Return the outputs for one class, if there are several."""
    return outputs if outputs.ndim == 1 else outputs[:, shown]


def _score_name(model: Any, target: Any, shown: int) -> str:
    """Return the name of a model's outputs."""
    classes = [str(label) for label in getattr(model, "classes_", ())]
    score = "probability of" if classes and model.aim != "decision" else "predicted"
    named = [] if not classes else [classes[shown].casefold()]
    # the target's name includes its positive class
    if classes in ([], ["0", "1"], ["False", "True"]) or named == [str(target).casefold()]:
        return f"{score} {target}"
    return f"{score} {target}: {classes[shown]}"


@dataclass(frozen=True, eq=False)
class _Measured:
    """Performance of outputs, and for each attribute the gap and each row's contribution to it."""

    performance: float
    gaps: list[tuple[Number, np.ndarray]]

    def point(self) -> TradeOffPoint:
        """Convert to a trade-off."""
        gaps = []
        for number, _ in self.gaps:
            assert number.interval is not None
            gaps.append(Gap(number.value, *number.interval))
        return TradeOffPoint(self.performance, tuple(gaps))


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows that were not used to fit a model. With several classes, the report is about the class
    `shown`, and `codes` has the class of each row.
    """

    model: Any
    X: Any
    controls: Any
    rows: Rows
    shown: int = 1
    codes: np.ndarray | None = None

    def outputs(self, model: Any) -> np.ndarray:
        """Return the audited outputs of a model."""
        return _outputs(model, self.X, self.rows.s, self.controls)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(map(str, self.model.sensitive_names_in_))

    @property
    def y(self) -> np.ndarray:
        """The target as numbers."""
        assert self.rows.y is not None
        return self.rows.y

    @property
    def measure(self) -> str:
        """Key of the performance measure for the model's aim."""
        if not hasattr(self.model, "classes_"):
            return "squared_error"
        rare = self.model.threshold_ != 0.5
        decided = "balanced_accuracy" if rare else "accuracy"
        return {"score": "log_loss", "rank": "auc", "decision": decided}[self.model.aim]

    def measure_outputs(self, outputs: np.ndarray, settings: Settings) -> _Measured:
        """Return the performance and gaps of outputs on these rows, measured as in the fit: one gap
        for all conditions of an attribute and all classes.
        """
        rows = self.rows
        by_class = [
            output_gaps(
                self.model,
                f,
                self.y,
                rows.s,
                rows.weights,
                rows.groups,
                settings,
                rows.strata,
            )
            for f in (outputs.T if outputs.ndim > 1 else [outputs])
        ]
        gaps = [maximum_gap(each) for each in zip(*by_class)]
        return _Measured(self.performance(outputs), gaps)

    def gap_changes(self, old: _Measured, new: _Measured, level: float) -> Iterator[Change]:
        """Yield the effect of the limit on the gap by each attribute."""
        for name, (was, a), (now, b) in zip(self.names, old.gaps, new.gaps):
            shared = covariance(a, b, self.rows.groups, self.rows.weights)
            yield difference(now.key, name, was, now, level, shared)

    def class_gaps(
        self, outputs: np.ndarray, labels: Any, settings: Settings
    ) -> dict[str, tuple[Number, ...]]:
        """Return the gap of each class by each attribute, with p-values adjusted for the number of
        these gaps.
        """
        rows = self.rows
        numbers = []
        for f in outputs.T:
            for column in rows.s.T:
                gap = gdp(
                    f,
                    column,
                    confidence=settings.confidence,
                    resamples=settings.resamples,
                    random_state=settings.seed,
                    sample_weight=rows.weights,
                    groups=rows.groups,
                )
                numbers.append((gap_number("gdp", gap), gap.pvalue))
        adjusted = holm([pvalue for _, pvalue in numbers])
        gaps = [replace(number, adjusted=p) for (number, _), p in zip(numbers, adjusted)]
        width = len(self.names)
        return {str(label): tuple(gaps[i * width :][:width]) for i, label in enumerate(labels)}

    def class_rates(
        self, outputs: np.ndarray, labels: Any, settings: Settings
    ) -> dict[str, ClassRates]:
        """Return, for each class, its mean probability, its share, and the gaps in the share of
        rows for which it is the most probable class.
        """
        weights = self.rows.weights
        decisions = np.eye(len(labels))[outputs.argmax(axis=1)]
        gaps = self.class_gaps(decisions, labels, settings)
        means = np.average(outputs, axis=0, weights=weights)
        rates = {}
        for place, (label, by_attribute) in enumerate(gaps.items()):
            actual = float(np.average(self.codes == place, weights=weights))
            rates[label] = ClassRates(float(means[place]), actual, by_attribute)
        return rates

    def check_classes(
        self, check: LimitCheck, old: _Measured, new: _Measured, level: float
    ) -> LimitCheck:
        """Check a limit on the gap in scores for all classes."""
        if (check.key, check.among) != ("gdp", "all") or check.base == "base rate":
            return check
        at = self.names.index(check.attribute)
        number = new.gaps[at][0]
        assert number.interval is not None
        check = replace(check, among="classes", value=number.value, interval=number.interval)
        if check.share is None:
            return check
        before = old.gaps[at][0]
        change = [*self.gap_changes(old, new, level)][at]
        limit = check.share * before.value
        return replace(check, limit=limit, reference=before, reduction=change.reduction)

    def qualities(self, outputs: np.ndarray, audit: Audit) -> tuple[Quality, ...]:
        """Return the performance of an audit. With several classes, a model predicts the most
        probable one, so rates of decisions at a threshold are replaced with the accuracy of that
        prediction.
        """
        if self.codes is None:
            return audit.quality
        rows, confidence = self.rows, audit.subject.confidence
        right = class_quality(outputs, self.codes, confidence, rows.weights, rows.groups)
        return right, *(quality for quality in audit.quality if quality.key not in RATES)

    def costs(self, was: np.ndarray, now: np.ndarray, audit: Audit) -> Iterator[Change]:
        """Yield the change in each performance measure from one set of outputs to another."""
        threshold = 0.5 if audit.subject.threshold is None else audit.subject.threshold
        level = audit.subject.level
        design = self.rows.groups, self.rows.weights
        if self.codes is not None:
            before, after = (
                class_accuracy(outputs, self.codes, self.rows.weights) for outputs in (was, now)
            )
            yield performance_change("class_accuracy", before, after, level, *design)
        old, new = (_class_outputs(outputs, self.shown) for outputs in (was, now))
        for change in changes(old, new, self.y, threshold, level, *design):
            if self.codes is None or change.key not in RATES:
                yield change

    def stops(
        self, known: dict[int, tuple[np.ndarray, _Measured]], settings: Settings, after: Audit
    ) -> Iterator[Stop]:
        """Yield the chosen trade-off and others that are well spaced in the gap by the attribute
        with the largest gap; `known` has outputs and their measurements by position (0 is no
        limit).
        """
        model = self.model
        gaps = model.frontier_.gaps
        widest = max(gaps, key=lambda name: gaps[name][0].value)
        models = {model.choice_.position: ("", model)}
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            for limit in OTHER_LIMITS:
                other = model.at(None if limit is None else {widest: limit})
                models.setdefault(other.choice_.position, (str(limit), other))
        for place, (limit, candidate) in sorted(models.items()):
            if place not in known:
                outputs = self.outputs(candidate)
                known[place] = outputs, self.measure_outputs(outputs, settings)
            outputs, measured = known[place]
            f = _class_outputs(outputs, self.shown)
            curves = {
                name: shown_curve(
                    gdp_curve(
                        f,
                        s,
                        sample_weight=self.rows.weights,
                        groups=self.rows.groups,
                        confidence=settings.confidence,
                    ),
                    f.min(),
                    f.max(),
                )
                for name, s in zip(self.names, self.rows.s.T)
            }
            yield Stop(
                limit if place else "none",
                replace(measured.point(), chosen=candidate is model),
                tuple(self.costs(known[0][0], outputs, after)),
                curves,
            )

    def changes(
        self,
        was: np.ndarray,
        now: np.ndarray,
        before: Audit,
        after: Audit,
        settings: Settings,
    ) -> Iterator[Change]:
        """Yield the effect of the limit on every gap in the audits."""
        level, threshold = after.subject.level, after.subject.threshold
        everyone = np.arange(len(self.y))
        for i, name in enumerate(attribute.name for attribute in after.attributes):
            parts: list[tuple[str, np.ndarray, Keyed, Keyed]] = [
                ("all", everyone, before[name].all_rows, after[name].all_rows)
            ]
            old, new = before[name].positives, after[name].positives
            if self.rows.favoured is not None and old is not None and new is not None:
                parts.append(("favourable", np.flatnonzero(self.rows.favoured), old, new))
            was_equal = before[name].all_rows.within
            now_equal = after[name].all_rows.within
            if was_equal is not None and now_equal is not None:
                parts.append(("equal", everyone, was_equal, now_equal))
            for among, rows, population, other in parts:
                for number in other.numbers:
                    known = population.get(number.key)
                    if known is None or number.key not in (*GAPS, "rank_gap"):
                        continue
                    ranks = number.key == "rank_gap"
                    if ranks and len(rows) > RANK_ROWS:
                        rows = rows[subsample(len(rows), RANK_ROWS, settings.generator(9))]
                    groups = None if self.rows.groups is None else self.rows.groups[rows]
                    weights = None if self.rows.weights is None else self.rows.weights[rows]
                    strata = self.rows.strata if among == "equal" else None
                    a, b = (
                        gap_terms(
                            f[rows]
                            if ranks
                            else gap_column(number.key, f[rows], self.y[rows], threshold),
                            self.rows.s[rows, i],
                            groups,
                            weights,
                            strata=strata,
                            ranks=ranks,
                        )
                        for f in (was, now)
                    )
                    key = measure_name(number.key, among)
                    shared = covariance(a, b, groups, weights)
                    yield difference(key, name, known, number, level, shared)

    def performance(self, f: np.ndarray) -> float:
        """Return the performance of outputs over all classes."""
        if self.codes is not None:
            chances = np.clip(f[np.arange(len(f)), self.codes], 1e-12, 1.0)
            return float(np.average(-np.log(chances), weights=self.rows.weights))
        if self.measure == "squared_error":
            return float(np.average((f - self.y) ** 2, weights=self.rows.weights))
        results = performance(f, self.y, 0.5, self.rows.weights)
        quality = {key: result.value for key, result in results.items()}
        if self.measure in quality:
            return quality[self.measure]
        if "true_positive_rate" not in quality:  # the rows have only one outcome
            return 0.5
        return (1 + quality["true_positive_rate"] - quality["false_positive_rate"]) / 2


def _from_zero(point: TradeOffPoint, i: int) -> TradeOffPoint:
    """Return a trade-off with the interval of one gap extended to 0."""
    gaps = [*point.gaps]
    gaps[i] = replace(gaps[i], low=0.0)
    return replace(point, gaps=tuple(gaps))


def _tradeoff(rows: _HeldOut, **measured: Any) -> TradeOff:
    """Return the trade-offs of a fit and the chosen one."""
    model, names = rows.model, rows.names
    frontier, choice = model.frontier_, model.choice_
    performance = frontier.performance[rows.measure]
    points = [
        TradeOffPoint(float(value), tuple(frontier.gaps[name][i] for name in names))
        for i, value in enumerate(performance)
    ]
    points[choice.position] = replace(points[choice.position], chosen=True)
    level = round(1 - frontier.confidence, 12)
    gaps = []
    for i, name in enumerate(names):
        gap, pvalue = points[0].gaps[i], frontier.pvalues[name]
        interval = Interval(gap.low, gap.high, frontier.confidence, "")
        gaps.append(Gap(gap.value, *interval.agree_with(gap.value, pvalue)))
        if pvalue > level:  # smaller gaps aren't significant, either
            points = [_from_zero(point, i) for point in points]
    points[0] = replace(points[0], gaps=tuple(gaps))
    parsed = frontier.limits(choice.limit)
    limits: list[float | None] = []
    shares = []
    base_shares: list[float | None] = []
    for name in names:
        gap = frontier.gaps[name][0].value
        bounds = {
            limit.bound(gap, frontier.base_rate): limit
            for limit in parsed[name]
            if limit.base != "gap"
        }
        least = min(bounds, default=None)
        limits.append(least)
        of_rate = least is not None and bounds[least].base == "base rate"
        base_shares.append(bounds[least].value if least is not None and of_rate else None)
        shares.append(
            min((limit.value for limit in parsed[name] if limit.base == "gap"), default=None)
        )
    return TradeOff(
        aim=model.aim,
        condition=model.condition,
        measure=rows.measure if rows.codes is None else f"all_{rows.measure}",
        attributes=names,
        limits=tuple(limits),
        shares=tuple(shares),
        met=choice.met,
        points=tuple(points),
        base_shares=tuple(base_shares),
        base_rate=frontier.base_rate,
        controls=frontier.controls,
        **measured,
    )
