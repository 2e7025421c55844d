"""The first page of a report: what a committee asks, answered in plain sentences without symbols
and acronyms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frhsic.auditing.results import (
    RATIOS,
    AttributeAudit,
    Audit,
    Change,
    Curve,
    LimitCheck,
    Number,
    Subject,
)
from frhsic.formatting import capitalized, figure, percent, ranged, stated
from frhsic.intervals import Interval
from frhsic.report.model import Report
from frhsic.report.words import (
    FORMS,
    WORDS,
    along_phrase,
    among_phrase,
    asked_reduction,
    columns_phrase,
    drift_phrase,
    favoured_phrase,
    group_phrase,
    is_significant,
    listed,
    outcome_phrase,
    reach_phrase,
    reduced_phrase,
    say,
    settled_phrase,
    shift_sentence,
    verdict_phrase,
    warnings,
)

# The number that each aim of a model limits.
AIMS = {"score": "gdp", "rank": "rank_gap", "decision": "decision_gdp"}
QUALITY: dict[str, str] = WORDS["quality"]
# Shares, which are counted on 1,000 cases.
COUNTED = ("accuracy", "true_positive_rate", "false_positive_rate", "auc")
RIGHT = {"accuracy": "predictions are right", "auc": "pairs are in the right order"}
# Base rates at which a constant cannot shine by its share of right predictions.
BALANCED = (0.2, 0.8)


@dataclass(frozen=True)
class Question:
    """A question of a reader and the sentences that answer it; `verdict` is that of a limit, or
    empty.
    """

    title: str
    lines: tuple[str, ...]
    verdict: str = ""
    quality: tuple[tuple[str, str, str, str], ...] = ()


def questions(report: Report) -> list[Question]:
    """Return the questions of the first page with their answers."""
    audit, quality = report.audit, tuple(quality_rows(report))
    answers = {
        "Is a limit needed?": needed_lines(report),
        "Has it changed since the last audit?": _drift(audit),
        "How large is the worst gap?": _worst(audit),
        f"What does it mean for 1,000 {people_of(audit)}?": _thousand(audit),
        "What did it cost?" if report.before else "How good is the score?": _cost(report),
        "Can this be trusted?": _trust(report),
    }
    told = [Question(title, tuple(lines)) for title, lines in answers.items()]
    told[-2] = Question(told[-2].title, told[-2].lines, quality=quality)
    return [*_limits(report), *(question for question in told if question.lines)]


def people_of(audit: Audit) -> str:
    """Return who is decided about: as stated, or “cases”."""
    return audit.context.people or "cases"


def worst_group(curve: Curve, groups: Sequence[int] = ()) -> int:
    """Return the group whose mean is farthest from the overall mean, by default among those with
    enough rows.
    """
    return max(groups or curve.trusted, key=lambda i: abs(curve.mean[i] - curve.overall))


def _beyond_chance(attribute: AttributeAudit, curve: Curve, audit: Audit) -> list[int]:
    """Return the groups whose mean chance does not explain: none unless the test of the whole gap
    is significant.

    So all claims of the page that a score moves with an attribute have one error rate.
    """
    if not is_significant(attribute.all_rows.get("gdp"), audit.subject):
        return []
    return [i for i in curve.trusted if not curve.low[i] <= curve.overall <= curve.high[i]]


def _checks(report: Report) -> tuple[LimitCheck, ...]:
    """Return the limits of the audit or, if there is none, those of the fit on the rows of the
    report.

    A number is compared with the gap. A share is one of the gap of the same rows without a limit.
    """
    tradeoff, confidence = report.tradeoff, report.audit.subject.confidence
    if report.audit.limits or tradeoff is None:
        return report.audit.limits
    key, among = AIMS[tradeoff.aim], tradeoff.condition or "all"
    rows = report.audit.rows.used
    checks = []
    for i, name in enumerate(tradeoff.attributes):
        gap, share, limit = tradeoff.after.gaps[i], tradeoff.shares[i], tradeoff.limits[i]
        interval = Interval(gap.low, gap.high, confidence, "")
        if limit:
            bound = float(f"{limit:.3g}")
            checks.append(LimitCheck(name, key, among, bound, gap.value, interval, rows=rows))
        if share is not None and tradeoff.changes:
            change = tradeoff.changes[i]
            old = Number(key, change.before, rows)
            check = LimitCheck(name, key, among, share * old.value, gap.value, interval, rows=rows)
            checks.append(
                replace(check, share=share, base="gap", reference=old, reduction=change.reduction)
            )
    return tuple(checks)


def _limits(report: Report) -> list[Question]:
    audit, questions = report.audit, list[Question]()
    explained = set[str]()
    for check in _checks(report):
        lines, s = [_kept(check, audit)], check.attribute
        if check.key == "gdp" and s not in explained:
            lines.append(say("what_gap", people=people_of(audit), s=s))
            explained.add(s)
        questions.append(Question("Is the limit kept?", tuple(lines), check.verdict))
    if questions:
        return questions
    return [Question("Is the limit kept?", tuple(_unjudged(report)))]


def _unjudged(report: Report) -> Iterator[str]:
    """Yield what is known of the gaps where there is no limit to judge."""
    audit, tradeoff = report.audit, report.tradeoff
    shares = [] if tradeoff is None else [share for share in tradeoff.shares if share is not None]
    if shares:
        yield say("share_not_applied", asked=" and ".join(dict.fromkeys(map(percent, shares))))
    else:
        yield say("least_gap" if tradeoff is not None and tradeoff.limited else "no_limit")
    for attribute in audit.attributes:
        gap, s = attribute.all_rows.get("gdp"), attribute.name
        if gap is not None and gap.interval is not None:
            yield say("average_gap", s=s, gap=gap, confident=say("confident", ends=gap.interval))
            yield say("what_gap", people=people_of(audit), s=s)
    if tradeoff is None:
        return
    for change in tradeoff.changes:
        what = capitalized(along_phrase(AIMS[tradeoff.aim], change.attribute))
        yield f"{what} {reduced_phrase(change.before, change.after, change.reduction)}."


def needed_lines(report: Report) -> list[str]:
    """Return whether there is a gap without a limit, and whether other columns alone would do; none
    without a fit.
    """
    tradeoff, audit, lines = report.tradeoff, report.audit, list[str]()
    if tradeoff is None:
        return lines
    for i, name in enumerate(tradeoff.attributes):
        sizes, seen = [], []
        for point in (tradeoff.before, *tradeoff.others):
            gap, beyond = point.gaps[i], point.pvalues[i] <= audit.subject.level
            chance = "" if beyond else ", which is not significant"
            sizes.append(f"{ranged(gap.value, gap.low, gap.high)}{chance}")
            seen.append(beyond)
        gap, what = (
            tradeoff.points[0].gaps[i],
            along_phrase(AIMS[tradeoff.aim], name) + among_phrase(tradeoff, audit),
        )
        fit = ranged(gap.value, gap.low, gap.high)
        lines.append(say("without_limit", what=what, size=sizes[0], fit=fit))
        others = [*zip(tradeoff.others, sizes[1:], seen[1:])]
        lines += [
            say("with_columns", columns=columns_phrase(one), size=size) for one, size, _ in others
        ]
        if not seen[0] and tradeoff.points[0].pvalues[i] > audit.subject.level:
            added = [listed(one.added) for one, _, beyond in others if one.added and beyond]
            lines.append(
                say("left_out_enough", names=added[0]) if added else say("nothing_to_lower")
            )
        elif seen[0]:
            # where these rows show no gap anyway, that they show none without some columns says
            # nothing
            enough = [
                listed(one.left_out) for one, _, beyond in others if one.left_out and not beyond
            ]
            lines += [say("may_be_enough", names=names) for names in enough[:1]]
    return lines


def limit_lines(report: Report) -> list[str]:
    """Return what the rows of the report say of each limit: whether they keep a number, and by how
    much the gap was reduced where a share was asked.
    """
    return [
        f"{_reduced(check, report.audit)}." if check.base == "gap" else _kept(check, report.audit)
        for check in _checks(report)
    ]


def _limited(check: LimitCheck, audit: Audit) -> str:
    """Return the number that a limit is about, at the start of a sentence."""
    among = {
        "all": "",
        "favourable": f"Among those with {favoured_phrase(audit.subject)} alone: ",
        "positive": f"Among those with {outcome_phrase(audit.subject)} alone: ",
        "both": "Among people with the same outcome: ",
    }[check.among]
    return capitalized(f"{among}{along_phrase(check.key, check.attribute)}")


def _reduced(check: LimitCheck, audit: Audit) -> str:
    return f"{_limited(check, audit)} {asked_reduction(check)}"


def _kept(check: LimitCheck, audit: Audit) -> str:
    people, outcome = people_of(audit), outcome_phrase(audit.subject)
    what = _limited(check, audit)
    verdict = verdict_phrase(check)
    if check.base == "gap":
        return say(f"share {verdict}", reduced=_reduced(check, audit))
    limit = f"the limit of {stated(check.limit)}"
    if check.share is not None and check.reference is not None:
        whole = f"the share of {people} with {outcome}"
        if audit.subject.target is None:
            whole = "the mean score"
        limit = say("limit_as_share", check=check, whole=whole, r=check.reference)
    measured = say(
        "measured", what=what, check=check, confident=say("confident", ends=check.interval)
    )
    within, outside = ("at or above", "below") if check.key in RATIOS else ("within", "above")
    text = say(
        verdict,
        measured=measured,
        within=within,
        outside=outside,
        limit=limit,
        settled=settled_phrase(check),
    )
    if audit.subject.chances and check.key in ("gdp", "decision_gdp"):
        gap, high, most = (
            1000 * value for value in (check.value, check.interval.high, check.limit)
        )
        text += say("on_1000", people=people, gap=gap, high=high, limit=most)
    return text


def _drift(audit: Audit) -> Iterator[str]:
    for change in audit.drift:
        if change.significant:
            yield say(
                "changed" if change.changed else "perhaps_changed",
                what=drift_phrase(change),
                change=change,
                reach=reach_phrase(change),
                count=len(audit.drift),
            )
    same = []
    for change in audit.drift:
        if not change.significant:
            numbers = say("both_gaps", change=change, reach=reach_phrase(change))
            same.append(drift_phrase(change) + (numbers if change.key == "gdp" else ""))
    if same:
        yield say("unchanged", what="; ".join(same))


def _worst(audit: Audit) -> Iterator[str]:
    for attribute in audit.attributes:
        curve, s = attribute.all_rows.curves.get("gdp"), attribute.name
        if curve is None:
            yield say("no_score", s=s)
            continue
        i, sure = worst_group(curve), _beyond_chance(attribute, curve, audit)
        ends = {"low": _side_of(curve, curve.low[i]), "high": _side_of(curve, curve.high[i])}
        at_once = say("at_once", confidence=curve.confidence, s=s)
        band = say("not_chance" if i in sure else "may_be_chance", sure=at_once, **ends)
        yield capitalized(f"{_group(curve, i, s)} {band}")
        actual = _actual(attribute, i)
        if actual is not None and not _is_counted(audit):
            yield say("actual_mean", outcome=outcome_phrase(audit.subject), **actual)
        if i not in sure and sure:
            yield say("largest_sure", group=_group(curve, worst_group(curve, sure), s))
        elif not sure:
            yield say("none_sure", s=s)
        limited = {(check.attribute, check.key, check.among) for check in audit.limits}
        gap = None if attribute.positives is None else attribute.positives.get("gdp")
        if gap is not None and gap.interval is not None and (s, "gdp", "favourable") not in limited:
            favoured, confident = (
                favoured_phrase(audit.subject),
                say("confident", ends=gap.interval),
            )
            yield say("among_favoured", favoured=favoured, s=s, gap=gap, confident=confident)


def _group(curve: Curve, i: int, s: str) -> str:
    side, where = _side_of(curve, curve.mean[i]), group_phrase(curve, i, s)
    return say(
        "group",
        where=where,
        rows=curve.rows[i],
        mean=curve.mean[i],
        side=side,
        overall=curve.overall,
    )


def _side_of(curve: Curve, value: float) -> str:
    """Return how far a value lies above or below the overall mean, in percent of it where that has
    a meaning.
    """
    mean = curve.overall
    relative = mean > 0 and min(curve.mean) >= 0
    size = percent(abs(value - mean) / mean) if relative else figure(abs(value - mean))
    return f"{size} {'above' if value >= mean else 'below'}"


def _is_counted(audit: Audit) -> bool:
    """Whether scores are chances, or decisions, of an outcome that people have or have not."""
    return audit.subject.chances and all(one.key != "squared_error" for one in audit.quality)


def _actual(attribute: AttributeAudit, i: int) -> dict[str, Any] | None:
    """Return the mean outcome of a group, and whether its people are scored too low or too high,
    where the band of target less score lies on one side of 0; None without a target.
    """
    curve, rest = (attribute.all_rows.curves.get(key) for key in ("gdp", "calibration_gdp"))
    if curve is None or rest is None:
        return None
    judged = "as_scored"
    if rest.low[i] > 0:
        judged = "too_low"
    elif rest.high[i] < 0:
        judged = "too_high"
    return {"actual": curve.mean[i] + rest.mean[i], "judged": say(judged)}


def _is_decision(subject: Subject) -> bool:
    return subject.law is not None and set(subject.law.values) <= {0.0, 1.0}


def _thousand(audit: Audit) -> Iterator[str]:
    subject, told = audit.subject, False
    for attribute in audit.attributes:
        curve, decisions = (attribute.all_rows.curves.get(key) for key in ("gdp", "decision_gdp"))
        if curve is None:
            continue
        i = worst_group(curve)
        words = {
            "people": people_of(audit),
            "where": group_phrase(curve, i, attribute.name),
            "outcome": outcome_phrase(subject),
        }
        if decisions is not None and subject.threshold_stated:
            told, shares = True, {"own": decisions.mean[i], "overall": decisions.overall}
            yield say("decided", threshold=subject.threshold, **words, **shares)
            yield ratio_sentence(attribute)
        if not _is_counted(audit):
            continue
        told, shares = True, {"own": curve.mean[i], "overall": curve.overall}
        more = round(1000 * curve.mean[i]) - round(1000 * curve.overall)
        chance = "" if i in _beyond_chance(attribute, curve, audit) else ", which may be chance"
        key = "predicted" if _is_decision(subject) else "expected"
        yield say(key, than=_more(more), chance=chance, **words, **shares)
        actual = _actual(attribute, i)
        if actual is not None and subject.base_rate is not None:
            yield say("happened", rate=subject.base_rate.value, **words, **actual)
    if not told:
        yield say("not_counted")


def _more(difference: int) -> str:
    """Return a difference of whole numbers, such as “12 fewer”."""
    return (
        "as many"
        if not difference
        else f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"
    )


def ratio_sentence(attribute: AttributeAudit) -> str:
    """Return the lowest share of decisions along an attribute as a share of the highest."""
    ratio = attribute.all_rows.get("decision_ratio")
    return say("no_decision" if ratio is None else "ratio", s=attribute.name, ratio=ratio)


def quality_rows(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield how well the score predicts: key, without the limit if that is known, this model, a
    constant.
    """
    before = {} if report.before is None else {one.key: one for one in report.before.quality}
    rate = report.audit.subject.base_rate
    shines = rate is not None and not BALANCED[0] <= rate.value <= BALANCED[1]
    for one in report.audit.quality:
        if one.key in QUALITY and not (one.key == "accuracy" and shines):
            shown = FORMS["thousand" if one.key in COUNTED else "figure"]
            old = shown(before[one.key].value) if one.key in before else "–"
            yield one.key, old, shown(one.value), shown(one.constant)


def _cost(report: Report) -> Iterator[str]:
    """Yield what the table of the performance compares, and what follows from it."""
    quality = {one.key: one for one in report.audit.quality}
    if not quality:
        yield say("no_quality")
        return
    if report.before is not None:
        yield from _lost(report.before, report)
        yield from _moved(report)
    yield say(
        "compared",
        other="the same model without the limit, and with " if report.before is not None else "",
    )
    for key, sign in (
        ("auc", 1),
        ("squared_error", -1),
    ):  # better than a constant by two standard errors
        one = quality.get(key)
        if one is not None and sign * (one.value - one.constant) <= 2 * (one.standard_error or 0.0):
            yield say(f"poor_{key}")


def _lost(before: Audit, report: Report) -> Iterator[str]:
    """Yield how many more or fewer predictions and pairs are right with the limit, as in the
    table.
    """
    was, now = (
        {one.key: round(1000 * one.value) for one in audit.quality}
        for audit in (before, report.audit)
    )
    shown = {key for key, *_ in quality_rows(report)}
    parts = []
    for one in report.changes:
        if one.key in shown:
            more = now[one.key] - was[one.key]
            parts.append(f"{_more(more)} of 1,000 {RIGHT[one.key]}{_doubt(one) if more else ''}")
    if parts:
        yield f"With the limit {'; '.join(parts)}."


def _doubt(change: Change) -> str:
    """Return that a change on the same rows may be chance, where its interval holds 0."""
    return "" if change.significant else ", which may be chance"


def _moved(report: Report) -> Iterator[str]:
    """Yield whose scores the limit moved, and along which attributes the gap of wrong decisions
    grew.
    """
    for name, curve in report.shifts.items():
        text = shift_sentence(name, curve)
        errors = report.change("error_gdp", name)
        if errors is not None and errors.after > errors.before:
            what = along_phrase("error_gdp", name)
            text += say("errors_grew", what=what, c=errors, doubt=_doubt(errors))
        yield text


def _trust(report: Report) -> Iterator[str]:
    audit, tradeoff = report.audit, report.tradeoff
    yield say("any_rows" if tradeoff is None else "held_out", rows=audit.rows.used)
    if tradeoff is not None and report.before is None:
        limits = [stated(float(f"{limit:.3g}")) for limit in tradeoff.limits if limit is not None]
        names = " and ".join(attribute.name for attribute in audit.attributes)
        if limits:
            yield say("idle_limit", limits=" and ".join(limits))
        elif not tradeoff.limited:
            yield say("unlimited", names=names)
    for attribute in audit.attributes:
        s, gap = attribute.name, attribute.all_rows.get("gdp")
        if gap is not None:
            key = "is_gap" if is_significant(gap, audit.subject) else "no_gap"
            if key == "is_gap" and (gap.adjusted or 0.0) > audit.subject.level:
                key = "alone_gap"
            yield say(key, s=s, count=len(audit.attributes))
            share = gap.settings.get("resolution", 0.0)
            if share:
                yield say("averaged_over", s=s, share=share)
    count = len(warnings(audit))
    if count:
        yield say("remarks", count=count)
