"""What a limit costs, how good a score is, and what other limits would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from frhsic._pictures import tradeoff_svg
from frhsic.auditing.comparing import difference
from frhsic.auditing.performance import RATES
from frhsic.auditing.results import Audit, Change, Number, Quality
from frhsic.auditing.running import RARE
from frhsic.estimators.frontier import Gap
from frhsic.formatting import amount, format_estimate, format_value, percent, points
from frhsic.intervals import Interval
from frhsic.report.model import Report, Stop, TradeOff
from frhsic.report.people import are_decisions, rows_phrase, score_noun
from frhsic.report.words import WORDS, fill, gap_name, outcome_phrase, say, signed_figure

# Costs of a limit, in the page's order, and those that are shares.
COSTS: dict[str, dict[str, str]] = WORDS["costs"]
SHARES = (*RATES, "class_accuracy", "explained")
# Measures for which larger is better; for a mean error, neither direction is better.
GAINS = ("accuracy", "class_accuracy", "true_positive_rate", "auc", "explained")
# Measures whose own interval is shown next to the interval of their change.
OVERALL = ("class_accuracy", "auc", "explained")
MOST_COSTS = 4
# Rates of decisions are shown only if at least this share of the scores is on either side of the
# threshold.
LEAST_DECIDED = 0.01
# An interval of a difference between shares is 0, up to rounding, if it is within this distance of
# 0.
UNCHANGED = 1e-7
# Costs shown for each other limit.
STOP_COSTS = (
    "class_accuracy",
    "true_positive_rate",
    "false_positive_rate",
    "auc",
    "root_squared_error",
    "explained",
)


@dataclass(frozen=True)
class Cost:
    """One line of the table of costs, as displayed; `was` and `change` are empty if there is
    nothing to compare the score with. `reach` is the interval of `now`; it is given only if
    `change` includes an interval.
    """

    key: str
    name: str
    meaning: str
    was: str
    now: str
    change: str
    reach: str = ""


def costs(report: Report, stop: Stop | None = None) -> list[Cost]:
    """Return the costs of the report's limit, or of another one; for an audit, the score's
    performance or the change in it.
    """
    audit = report.audit
    known: dict[str, tuple[Number, Change | None]] = {}
    if stop is None and report.tradeoff is not None:
        stop = next(
            (candidate for candidate in report.tradeoff.stops if candidate.point.chosen), None
        )
    if stop is not None:
        own = audit if stop.point.chosen else report.before if stop.limit == "none" else None
        measured = {} if own is None else {q.key: _with_interval(q) for q in own.quality}
        for cost in stop.costs:
            number = measured.get(cost.key, Number(cost.key, cost.after, 0))
            known[cost.key] = number, None if stop.limit == "none" else cost
    else:
        earlier = () if report.earlier is None else report.earlier.quality
        before = {quality.key: quality.number for quality in earlier}
        drift = {change.key: change for change in audit.drift}
        for quality in audit.quality:
            key = quality.key
            change = drift.get(key)
            if change is None and key in before:
                change = difference(key, "", before[key], quality.number, audit.subject.level)
            known[key] = _with_interval(quality), change
    hidden = RATES if hidden_rates(report) else ()
    shown = [key for key in COSTS if key in known and key not in hidden]
    return [_cost(*known[key], audit) for key in shown][:MOST_COSTS]


def hidden_rates(report: Report) -> str:
    """Return a phrase if rates of decisions are not shown because nearly all scores are on one side
    of a default threshold; empty if they are shown.
    """
    audit = report.audit
    subject = audit.subject
    if subject.threshold is None or subject.threshold_stated:
        return ""
    tradeoff = report.tradeoff
    if tradeoff is not None and (tradeoff.aim == "decision" or tradeoff.classes):
        return ""
    shares = []
    for one in (audit, report.before):
        curve = None if one is None else one.attributes[0].all_rows.curves.get("decision_gdp")
        if curve is not None:
            shares.append(curve.overall)
    if not shares or any(LEAST_DECIDED <= share <= 1 - LEAST_DECIDED for share in shares):
        return ""
    return say("one_sided", share=shares[0], threshold=subject.threshold)


def _with_interval(quality: Quality) -> Number:
    return replace(quality.number, interval=quality.interval)


def _interval(number: Number, audit: Audit) -> Interval | None:
    """Return the interval of a measure of performance."""
    key, error, subject = number.key, number.standard_error, audit.subject
    if number.interval is not None or not error:
        return number.interval
    reach = -float(ndtri(subject.level / 2)) * error
    low, high = number.value - reach, number.value + reach
    if key == "auc":
        low, high = max(low, 0.0), min(high, 1.0)
    return Interval(low, high, subject.confidence, "normal approximation")


def _cost(number: Number, change: Change | None, audit: Audit) -> Cost:
    """Return a measure with its interval, or with its change and the interval of the change."""
    key, form = number.key, _form(number.key)
    was = text = reach = ""
    ends = _interval(number, audit)
    if change is not None:
        was = form(change.before)
        if change.interval is not None:
            low, high = (points(x) if key in SHARES else signed_figure(x) for x in change.interval)
            unit = say("point_unit") if key in SHARES else ""
            text = say("change", low=low, high=high, unit=unit) + _judgement(change)
            noise = UNCHANGED if key in SHARES else 0.0
            if max(map(abs, change.interval)) <= noise:
                text = say("unchanged")
        if ends is not None and key in OVERALL:
            reach = f"{form(ends.low)} to {form(ends.high)}"
    elif ends is not None:
        text = f"{form(ends.low)} to {form(ends.high)}"
    rate = audit.subject.base_rate
    positives = "those"
    negatives = "others"
    if rate is not None and audit.rows.effective is None:
        count = round(rate.value * audit.rows.used)
        positives = f"{count:,}"
        negatives = f"{audit.rows.used - count:,} others"
    constant = {q.key: q.constant for q in audit.quality}.get(key)
    values = {
        "people": rows_phrase(audit),
        "constant": None if constant is None else form(constant),
        "positives": positives,
        "negatives": negatives,
        "noun": score_noun(audit),
        "outcome": outcome_phrase(audit.subject),
        "selected": decision_phrase(audit, "selected", "above"),
        "right": decision_phrase(audit, "right", "right_side"),
    }
    name, meaning = (fill(COSTS[key][part], **values) for part in ("name", "meaning"))
    return Cost(key, name, meaning, was, form(number.value), text, reach)


def decision_phrase(audit: Audit, key: str, threshold_key: str) -> str:
    """Return a phrase for the decisions, with their threshold if they are based on scores."""
    if are_decisions(audit) or audit.subject.threshold is None:
        return say(key)
    return say(threshold_key, threshold=audit.subject.threshold)


def decision_sentence(report: Report) -> str:
    """Return a sentence that says why no rates of decisions are shown, or which unusual threshold
    the decisions use and whether the model's own threshold is different.
    """
    subject = report.audit.subject
    if score_noun(report.audit) == "prediction":
        return ""
    if hidden := hidden_rates(report):
        return hidden
    if are_decisions(report.audit) or subject.threshold in (None, 0.5) or subject.threshold_stated:
        return ""
    if report.tradeoff is not None and report.tradeoff.classes:
        return ""
    values = {"people": rows_phrase(report.audit), "outcome": outcome_phrase(subject)}
    values["weighted"] = "" if report.audit.rows.weighted is None else " (weighted)"
    share = say("rare" if subject.threshold < 0.5 else "common", share=RARE, **values)
    key = "base_rate_decides" if report.tradeoff is None else "base_rate_decides_here"
    above = _own_threshold_phrase(report.audit)
    return say(key, threshold=subject.threshold, share=share, above=above)


def _own_threshold_phrase(audit: Audit) -> str:
    """Return a phrase if nearly all scores are on one side of 0.5, the threshold of the model's
    own decisions.
    """
    subject = audit.subject
    assert subject.span is not None
    assert subject.law is not None
    values = {"rows": audit.rows.used, "people": rows_phrase(audit), "share": LEAST_DECIDED}
    below, most = subject.law.bounds(np.array([0.5]))
    if subject.span[1] <= 0.5:
        return say("all_below", **values)
    if subject.span[0] > 0.5:
        return say("all_above", **values)
    if 1 - below[0] < LEAST_DECIDED:
        return say("few_above", **values)
    return say("few_below", **values) if most[0] < LEAST_DECIDED else ""


def _judgement(change: Change) -> str:
    """Return a phrase that says whether a change is significant, and an improvement."""
    if not change.changed:
        return say("may_be_chance")
    if change.key == "mean_error":
        return ""
    gained = (change.after > change.before) == (change.key in GAINS)
    return say("better" if gained else "worse")


def _form(key: str) -> Callable[[float], str]:
    return (lambda share: f"{100 * share:.1f} %") if key in SHARES else amount


def frontier_picture(tradeoff: TradeOff) -> str:
    """Plot performance against the gap as SVG: the trade-offs of the fit, and points for the
    report's rows with and without the limit.
    """
    i = tradeoff.worst
    every = [*tradeoff.points, tradeoff.before, tradeoff.after]
    pairs = [(point.gaps[i].value, point.performance) for point in every]
    (chosen,) = [pair for pair, point in zip(pairs, tradeoff.points) if point.chosen]
    gap = gap_name(tradeoff.measure_name, tradeoff.attributes[i], tradeoff.controls or "")
    names = gap, WORDS["measures"][tradeoff.measure]
    return tradeoff_svg(pairs[:-2], names, dots=pairs[-2:], chosen=chosen)


def stop_name(tradeoff: TradeOff, stop: Stop) -> str:
    """Return the limit that selects a trade-off."""
    if stop.point.chosen:
        numbers = [limit and format_value(limit) for limit in tradeoff.limits]
        limits = _requests_phrase(tradeoff, numbers)
        shares = [None if share is None else percent(1 - share) for share in tradeoff.shares]
        cuts = _requests_phrase(tradeoff, shares)
        asked = say("fitted_for", limits=limits) if limits else ""
        if cuts:
            asked += say("fitted_none" if tradeoff.points[0].chosen else "fitted_cut", cuts=cuts)
        return say("this_model", asked=asked)
    if stop.limit in ("none", "0"):
        return say("stop_none" if stop.limit == "none" else "stop_least")
    return say("stop_share", cut=1 - float(stop.limit.removesuffix("%")) / 100)


def _requests_phrase(tradeoff: TradeOff, texts: Sequence[str | float | None]) -> str:
    """Return the text for each attribute with the attribute's name, or a single text if all are the
    same.
    """
    if len({*texts}) == 1:
        return str(texts[0] or "")
    named = [f"{text} for {s}" for s, text in zip(tradeoff.attributes, texts) if text]
    return ", ".join(named)


def stop_gap(gap: Gap) -> str:
    """Return a gap for a narrow column, or only the upper end of an interval that includes 0."""
    if gap.low <= 0 < gap.high:
        return say("bound", high=gap.high)
    return format_estimate(gap.value)


def stop_costs(report: Report, stop: Stop) -> list[tuple[str, str]]:
    """Return the names and values of the costs shown for a limit."""
    hidden = RATES if hidden_rates(report) else ()
    return [
        (COSTS[change.key]["name"], _form(change.key)(change.after))
        for change in stop.costs
        if change.key in STOP_COSTS and change.key not in hidden
    ]
