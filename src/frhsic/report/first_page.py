"""The first page of a report: what a committee asks, answered in plain sentences without symbols and acronyms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.stats import norm

from frhsic.auditing.results import RATIOS, AttributeAudit, Audit, Curve, LimitCheck, Quality
from frhsic.formatting import capitalized, counted, figure, percent, ranged, stated
from frhsic.independence.effects import Interval
from frhsic.report.model import Report, TradeOff
from frhsic.report.words import (
    WORDS,
    along_phrase,
    columns_phrase,
    drift_phrase,
    favoured_phrase,
    group_phrase,
    listed,
    outcome_phrase,
    shift_sentence,
    warnings,
)

AIMS = {"score": "gdp", "rank": "rank_gap", "decision": "decision_gdp"}
"""The number that each aim of a model limits."""
QUALITY: dict[str, str] = WORDS["quality"]
COUNTED = ("accuracy", "true_positive_rate", "false_positive_rate", "auc")
"""Shares, which are counted on 1,000 cases."""
RIGHT = {"accuracy": "predictions are right", "auc": "pairs are in the right order"}
BALANCED = (0.2, 0.8)
"""Base rates at which a constant cannot shine by its share of right predictions."""


@dataclass(frozen=True)
class Question:
    """A question of a reader and the sentences that answer it; `verdict` is that of a limit, or empty."""

    title: str
    lines: tuple[str, ...]
    verdict: str = ""
    quality: tuple[tuple[str, str, str, str], ...] = ()


def questions(report: Report) -> list[Question]:
    """Return the questions of the first page with their answers."""
    audit = report.audit
    needed = needed_lines(report)
    return [
        *_limits(report),
        *([Question("Is a limit needed?", tuple(needed))] if needed else []),
        *([Question("Has it changed since the last audit?", tuple(_drift(audit)))] if audit.drift else []),
        Question("How large is the worst gap?", tuple(_worst(audit))),
        Question(f"What does it mean for 1,000 {people_of(audit)}?", tuple(_thousand(audit))),
        Question(
            "What did it cost?" if report.before else "How good is the score?",
            tuple(_cost(report)),
            quality=tuple(quality_rows(report)),
        ),
        Question("Can this be trusted?", tuple(_trust(report))),
    ]


def people_of(audit: Audit) -> str:
    """Return who is decided about: as stated, or “cases”."""
    return audit.context.people or "cases"


def of_1000(share: float) -> str:
    """Return a share as a whole number of 1,000."""
    return f"{1000 * share:,.0f}"


def worst_group(curve: Curve, groups: Sequence[int] = ()) -> int:
    """Return the group whose mean is farthest from the overall mean, by default among those with enough rows."""
    return max(groups or curve.trusted, key=lambda i: abs(curve.mean[i] - curve.overall))


def _beyond_chance(attribute: AttributeAudit, curve: Curve, level: float) -> list[int]:
    """Return the groups whose mean chance does not explain: none unless the test of the whole gap is significant.

    So all claims of the page that a score moves with an attribute have one error rate.
    """
    gap = attribute.all_rows.get("gdp")
    if gap is None or gap.pvalue is None or gap.pvalue > level:
        return []
    return [i for i in curve.trusted if not curve.low[i] <= curve.overall <= curve.high[i]]


def _between(interval: Interval) -> str:
    return (
        f"with {percent(interval.confidence)} confidence it lies between {figure(interval.low)} and "
        f"{figure(interval.high)}"
    )


def _checks(report: Report) -> tuple[LimitCheck, ...]:
    """Return the limits of the audit or, if there is none, that of the fit on the rows of the report."""
    tradeoff, confidence = report.tradeoff, report.audit.subject.confidence
    if report.audit.limits or tradeoff is None:
        return report.audit.limits
    return tuple(
        LimitCheck(
            name,
            AIMS[tradeoff.aim],
            tradeoff.condition or "all",
            float(f"{limit:.3g}"),
            gap.value,
            Interval(gap.low, gap.high, confidence, ""),
        )
        for name, limit, gap in zip(tradeoff.attributes, tradeoff.limits, tradeoff.after.gaps)
        if limit
    )


def _limits(report: Report) -> list[Question]:
    audit, explained, questions = report.audit, set(), []
    for check in _checks(report):
        lines = [_kept(check, audit)]
        if check.key == "gdp" and check.attribute not in explained:
            lines.append(_average_gap(audit, check.attribute))
            explained.add(check.attribute)
        if not audit.limits and report.tradeoff is not None:
            lines += _share_of_gap(report.tradeoff, check)
        questions.append(Question("Is the limit kept?", tuple(lines), check.verdict))
    if questions:
        return questions
    least = report.tradeoff is not None and report.tradeoff.limited
    lines = [
        "The limit of 0 asks for the least gap that can be reached."
        if least
        else "No limit was stated, so this page cannot say whether one is kept."
    ]
    for attribute in audit.attributes:
        gap = attribute.all_rows.get("gdp")
        if gap is not None and gap.interval is not None:
            lines.append(
                f"The average gap of the score along {attribute.name} is {figure(gap.value)}; {_between(gap.interval)}."
            )
            lines.append(_average_gap(audit, attribute.name))
    return [Question("Is the limit kept?", tuple(lines))]


def _share_of_gap(tradeoff: TradeOff, check: LimitCheck) -> Iterator[str]:
    """Yield of which gap a limit of the fit is a share, if it is one: not of that on the rows of the report."""
    i = tradeoff.attributes.index(check.attribute)
    if "%" in tradeoff.asked[i]:
        fit, here = (figure(point.gaps[i].value) for point in (tradeoff.points[0], tradeoff.before))
        share = tradeoff.asked[i].replace("%", " %")
        yield f"The limit is {share} of {fit}, the gap in the fit; on these rows the gap without a limit is {here}."


def needed_lines(report: Report) -> list[str]:
    """Return whether there is a gap without a limit, and whether other columns alone would do; none without a fit."""
    tradeoff, audit, lines = report.tradeoff, report.audit, list[str]()
    if tradeoff is None:
        return lines
    among = WORDS["among"].get(tradeoff.condition, "").format(outcome=outcome_phrase(audit.subject))
    for i, name in enumerate(tradeoff.attributes):
        sizes, seen = [], []
        for point in (tradeoff.before, *tradeoff.others):
            gap, beyond = point.gaps[i], point.pvalues[i] <= audit.subject.level
            chance = "more than chance" if beyond else "which chance alone could explain"
            sizes.append(f"{ranged(gap.value, gap.low, gap.high)}, {chance}")
            seen.append(beyond)
        fit = tradeoff.points[0].gaps[i]
        lines.append(
            f"Without a limit, {along_phrase(AIMS[tradeoff.aim], name)}{among} is {sizes[0]}; in the fit it is "
            f"{ranged(fit.value, fit.low, fit.high)}."
        )
        others = [*zip(tradeoff.others, sizes[1:], seen[1:])]
        lines += [f"{capitalized(columns_phrase(one))} it is {size}." for one, size, _ in others]
        if not seen[0] and tradeoff.points[0].pvalues[i] > audit.subject.level:
            left = "no gap is seen that a limit could lower."
            added = [listed(one.added) for one, _, beyond in others if one.added and beyond]
            lines.append(f"Leaving out {added[0]} was enough: {left}" if added else f"So {left}")
        elif seen[0]:  # where these rows show no gap anyway, that they show none without some columns says nothing
            enough = [listed(one.left_out) for one, _, beyond in others if one.left_out and not beyond]
            lines += [f"Leaving out {names} may be enough: no gap is seen then." for names in enough[:1]]
    return lines


def _average_gap(audit: Audit, s: str) -> str:
    return (
        f"The average gap: how far the mean score of {people_of(audit)} with the same {s} lies from the mean score of "
        "all, on average."
    )


def _kept(check: LimitCheck, audit: Audit) -> str:
    limit = f"the limit of {stated(check.limit)}"
    if check.share is not None and check.reference is not None:
        whole = "the earlier gap" if check.base == "gap" else "the mean score"
        if check.base != "gap" and audit.subject.target is not None:
            whole = f"the share of {people_of(audit)} with {outcome_phrase(audit.subject)}"
        ends = check.reference.interval
        reach = "" if ends is None else f", {figure(ends.low)} to {figure(ends.high)}"
        share = f"{percent(check.share)} of {whole} (itself an estimate: {figure(check.reference.value)}{reach})"
        limit = f"the limit of {figure(check.limit)}, which is {share}"
    among = {
        "all": "",
        "favourable": f"Among those with {favoured_phrase(audit.subject)} alone: ",
        "positive": f"Among those with {outcome_phrase(audit.subject)} alone: ",
        "both": "Among people with the same outcome: ",
    }[check.among]
    what = capitalized(f"{among}{along_phrase(check.key, check.attribute)}")
    measured = f"{what} is {figure(check.value)}; {_between(check.interval)}"
    text = {
        "kept": f"Yes. {measured}. All of that is {'at or above' if check.key in RATIOS else 'within'} {limit}.",
        "not kept": f"No. {measured}. All of that is {'below' if check.key in RATIOS else 'above'} {limit}.",
        "unclear": f"That is not shown. {measured}, which does not settle {limit}. More rows would narrow the range.",
    }[check.verdict]
    if not (audit.subject.chances and check.key in ("gdp", "decision_gdp")):
        return text
    gap, high, most = (figure(1000 * value) for value in (check.value, check.interval.high, check.limit))
    return f"{text} Counted on 1,000 {people_of(audit)}: the gap is {gap}, at most {high}; the limit allows {most}."


def _drift(audit: Audit) -> Iterator[str]:
    for change in audit.drift:
        if change.changed:
            yield f"Yes: {drift_phrase(change)} went from {figure(change.before)} to {figure(change.after)}."
    same = [drift_phrase(change) for change in audit.drift if not change.changed]
    if same:
        yield f"No change is seen of {'; '.join(same)}. That does not show that there is none."


def _worst(audit: Audit) -> Iterator[str]:
    for attribute in audit.attributes:
        curve, s = attribute.all_rows.curves.get("gdp"), attribute.name
        if curve is None:
            yield f"There is no score whose mean could be followed along {s}."
            continue
        i, sure = worst_group(curve), _beyond_chance(attribute, curve, audit.subject.level)
        yield capitalized(f"{_group(curve, i, s)} {_band(curve, i, s, by_chance=i not in sure)}")
        if i not in sure:
            yield (
                f"The largest gap that chance does not explain: {_group(curve, worst_group(curve, sure), s)}"
                if sure
                else f"At no value of {s} is there a gap that chance could not explain."
            )
        yield from _among_favoured(audit, attribute)


def _group(curve: Curve, i: int, s: str) -> str:
    return (
        f"{group_phrase(curve, i, s)} ({counted(curve.rows[i], 'row')}) the mean score is {figure(curve.mean[i])}, "
        f"{_side_of(curve, curve.mean[i])} the average of {figure(curve.overall)}."
    )


def _side_of(curve: Curve, value: float) -> str:
    """Return how far a value lies above or below the overall mean, in percent of it where that has a meaning."""
    mean = curve.overall
    relative = mean > 0 and min(curve.mean) >= 0
    size = percent(abs(value - mean) / mean) if relative else figure(abs(value - mean))
    return f"{size} {'above' if value >= mean else 'below'}"


def _band(curve: Curve, i: int, s: str, *, by_chance: bool) -> str:
    low, high = _side_of(curve, curve.low[i]), _side_of(curve, curve.high[i])
    sure = f"with {percent(curve.confidence)} confidence, for all values of {s} at once"
    if by_chance:
        return f"That may be chance: the true mean can lie anywhere from {low} to {high} the average ({sure})."
    return f"That is more than chance: the true mean lies from {low} to {high} the average ({sure})."


def _among_favoured(audit: Audit, attribute: AttributeAudit) -> Iterator[str]:
    """Yield the average gap among the rows with the favourable outcome, unless a limit has told it."""
    told = any(c.attribute == attribute.name and c.key == "gdp" and c.among == "favourable" for c in audit.limits)
    gap = None if attribute.positives is None or told else attribute.positives.get("gdp")
    if gap is not None and gap.interval is not None:
        yield (
            f"Among those with {favoured_phrase(audit.subject)} alone, the average gap along {attribute.name} is "
            f"{figure(gap.value)}; {_between(gap.interval)}."
        )


def _thousand(audit: Audit) -> Iterator[str]:
    people, subject, outcome, told = people_of(audit), audit.subject, outcome_phrase(audit.subject), False
    for attribute in audit.attributes:
        curve, decisions = (attribute.all_rows.curves.get(key) for key in ("gdp", "decision_gdp"))
        if curve is None:
            continue
        i = worst_group(curve)
        where = group_phrase(curve, i, attribute.name)
        if decisions is not None and subject.threshold_stated and subject.threshold is not None:
            told = True
            yield (
                f"Of 1,000 {people} {where}, {of_1000(decisions.mean[i])} have a score of {stated(subject.threshold)} "
                f"or more, the stated threshold; of 1,000 {people} in all, {of_1000(decisions.overall)}."
            )
            yield ratio_sentence(attribute)
        if subject.chances:
            difference = round(1000 * curve.mean[i]) - round(1000 * curve.overall)
            chance = "" if i in _beyond_chance(attribute, curve, subject.level) else ", which may be chance"
            than = "as many" if not difference else f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"
            told = True
            yield (
                f"Read as chances, the scores expect {outcome} for {of_1000(curve.mean[i])} of 1,000 {people} {where}, "
                f"and for {of_1000(curve.overall)} of 1,000 in all: {than}{chance}."
            )
    if told and subject.base_rate is not None and any(one.key == "calibration_error" for one in audit.quality):
        yield f"In fact, {outcome} came for {of_1000(subject.base_rate.value)} of 1,000."
    if not told:
        yield "The score is no chance between 0 and 1 and no threshold was stated, so it cannot be counted."


def ratio_sentence(attribute: AttributeAudit) -> str:
    """Return the lowest share of decisions along an attribute as a share of the highest."""
    ratio, s = attribute.all_rows.get("decision_ratio"), attribute.name
    if ratio is None or ratio.interval is None:
        return f"No score along {s} reaches the threshold."
    ends = ratio.interval
    return (
        f"The lowest share along {s} is {percent(ratio.value)} of the highest; with {percent(ends.confidence)} "
        f"confidence between {percent(ends.low)} and {percent(ends.high)}."
    )


def quality_rows(report: Report) -> Iterator[tuple[str, str, str, str]]:
    """Yield how well the score predicts: key, without the limit if that is known, this model, a constant."""
    before = {} if report.before is None else {one.key: one for one in report.before.quality}
    rate = report.audit.subject.base_rate
    shines = rate is not None and not BALANCED[0] <= rate.value <= BALANCED[1]
    for one in report.audit.quality:
        if one.key in QUALITY and not (one.key == "accuracy" and shines):
            shown = of_1000 if one.key in COUNTED else figure
            old = shown(before[one.key].value) if one.key in before else "–"
            yield one.key, old, shown(one.value), shown(one.constant)


def _cost(report: Report) -> Iterator[str]:
    """Yield what the table of the performance compares, and what follows from it."""
    if not report.audit.quality:
        yield "The data hold no outcome, or no score. So this page cannot say how well the score predicts."
        return
    if report.before is not None:
        yield from _lost(report.before, report)
        yield from _moved(report.before, report)
    other = "the same model without the limit, and with " if report.before is not None else ""
    yield f"The table compares the score with {other}a constant, which gives everybody the same score."
    yield from _no_better({one.key: one for one in report.audit.quality})


def _lost(before: Audit, report: Report) -> Iterator[str]:
    """Yield how many more or fewer predictions and pairs are right with the limit, as in the table."""
    was, now = ({one.key: round(1000 * one.value) for one in audit.quality} for audit in (before, report.audit))
    reach, shown = float(norm.ppf(1 - report.audit.subject.level / 2)), {key for key, *_ in quality_rows(report)}
    parts = []
    for one in report.changes:
        if one.key in shown:
            fewer = was[one.key] - now[one.key]
            count = f"{abs(fewer)} {'fewer' if fewer > 0 else 'more'}" if fewer else "as many"
            doubt = ", which may be chance" if fewer and abs(one.value) <= reach * (one.standard_error or 0.0) else ""
            parts.append(f"{count} of 1,000 {RIGHT[one.key]}{doubt}")
    if parts:
        yield f"With the limit {'; '.join(parts)}."


def _moved(before: Audit, report: Report) -> Iterator[str]:
    """Yield whose scores the limit moved, and along which attributes the gap of wrong decisions grew."""
    for name, curve in report.shifts.items():
        text = shift_sentence(name, curve)
        was, now = (audit[name].all_rows.get("error_gdp") for audit in (before, report.audit))
        if was is not None and now is not None and now.value > was.value and was.interval and now.interval:
            doubt = "" if now.interval.low > was.interval.high else ", which may be chance"
            text += f" {capitalized(along_phrase('error_gdp', name))} goes from {figure(was.value)} to "
            text += f"{figure(now.value)}{doubt}."
        yield text


def _no_better(quality: dict[str, Quality]) -> Iterator[str]:
    """Yield that a score is not shown to be better than a constant, by two standard errors."""
    for key, sign, text in (
        ("auc", 1, "The score is not shown to order people better than chance."),
        ("squared_error", -1, "As a prediction of the target it is not shown to be better than the constant."),
    ):
        if key in quality:
            one = quality[key]
            if sign * (one.value - one.constant) <= 2 * (one.standard_error or 0.0):
                yield text


def _trust(report: Report) -> Iterator[str]:
    audit, rows = report.audit, report.audit.rows
    if report.tradeoff is not None:
        yield f"All numbers are from {counted(rows.used, 'row')} that had no part in fitting or choosing the model."
        if report.before is None:
            names = " and ".join(attribute.name for attribute in audit.attributes)
            limits = " and ".join(
                stated(float(f"{limit:.3g}")) for limit in report.tradeoff.limits if limit is not None
            )
            yield (
                f"The limit of {limits} did not have to change the model."
                if limits
                else f"No limit holds here: nothing kept the score from moving with {names}."
            )
    else:
        yield (
            f"All numbers are from {counted(rows.used, 'row')}. They hold for new cases only if the model was not "
            "trained on these."
        )
    for attribute in audit.attributes:
        s, gap = attribute.name, attribute.all_rows.get("gdp")
        if gap is not None and gap.pvalue is not None:
            yield (
                f"There is a gap along {s}, large or small: chance alone does not explain it."
                if gap.pvalue <= audit.subject.level
                else f"Chance alone could explain the average gap along {s}. That does not show that there is none."
            )
        if gap is not None and not gap.trusted:
            yield f"The score may change faster along {s} than these rows can show, so the range of the gap is wide."
    count = len(warnings(audit))
    if count:
        remarks = "One remark" if count == 1 else f"{count} remarks"
        yield f"{remarks} on the data and the model: read them under “Read with care” before you sign."
