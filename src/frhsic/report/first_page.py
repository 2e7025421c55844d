"""The first page of a report: what a committee asks, answered in plain sentences without symbols and acronyms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frhsic.auditing import AttributeAudit, Audit, Curve, LimitCheck
from frhsic.formatting import capitalized, counted, figure, percent, stated
from frhsic.report.driving import group_phrase
from frhsic.report.model import Report
from frhsic.report.quality import QualityRow, cost, of_1000, outcome_of, people_of, quality_rows, worded
from frhsic.sentences import score_phrase

LIMITED = {
    "gdp": "the average gap of the score along {s}",
    "standardized_gdp": "the average gap along {s}, in standard deviations of the score,",
    "correlation_ratio": "the share of the differences between scores that {s} explains",
    "hsic": "the distance of score and {s} from independence",
    "hsic_effect": "the dependence of the score on {s}, on a scale from 0 to 1,",
    "distance_correlation": "the dependence of the score on {s}, by distances, on a scale from 0 to 1,",
    "rank": "the average rank gap along {s}",
    "decision": "the average gap of decisions along {s}",
}
"""Names of the numbers that a limit can be stated for."""


@dataclass(frozen=True)
class Question:
    """A question of a reader and the sentences that answer it; `verdict` is that of a limit, or empty."""

    title: str
    lines: tuple[str, ...]
    verdict: str = ""
    quality: tuple[QualityRow, ...] = ()


@dataclass(frozen=True)
class FirstPage:
    """Content of the first page."""

    facts: tuple[tuple[str, str], ...]
    questions: tuple[Question, ...]
    origin: tuple[tuple[str, str], ...]
    signed: str


def first_page(report: Report) -> FirstPage:
    """Return the first page of a report."""
    audit = report.audit
    costs = "What did it cost?" if report.before else "How good is the score?"
    return FirstPage(
        _facts(audit),
        (
            *_limits(report),
            *_drift(audit),
            Question("How large is the worst gap?", tuple(_worst(audit))),
            Question(f"What does it mean for 1,000 {people_of(audit)}?", tuple(_thousand(audit))),
            Question(costs, tuple(cost(report)), quality=tuple(quality_rows(report))),
            Question("Can this be trusted?", tuple(_trust(report))),
            Question("What was not looked at?", tuple(_blind(audit))),
        ),
        _origin(audit),
        _signed(audit),
    )


def worst_group(curve: Curve) -> int:
    """Return the group whose mean is farthest from the overall mean, among those with enough rows."""
    return _farthest(curve, _trusted(curve))


def _trusted(curve: Curve) -> list[int]:
    every = list(range(len(curve.grid)))
    return [i for i in every if not (curve.sparse and curve.sparse[i])] or every


def _farthest(curve: Curve, groups: Iterable[int]) -> int:
    return max(groups, key=lambda i: abs(curve.mean[i] - curve.overall))


def _by_chance(curve: Curve, i: int) -> bool:
    return bool(curve.low) and curve.low[i] <= curve.overall <= curve.high[i]


def _facts(audit: Audit) -> tuple[tuple[str, str], ...]:
    context, subject, rows = audit.context, audit.subject, audit.rows
    used = f"{audit.source or 'a table'}, {counted(rows.used, 'row')}"
    if rows.used < rows.given:
        used = f"{audit.source or 'a table'}, {rows.used:,} of {counted(rows.given, 'row')}"
    what = score_phrase(subject) if subject.score_name else f"the representation “{subject.name}”"
    facts = [
        ("What is decided", context.decision or "not stated"),
        ("About whom", context.people or "not stated; each row of the data is one case"),
        ("What is looked at", worded(f"{what}, along {_list(a.name for a in audit.attributes)}")),
        ("Data", used),
        ("Period", context.period or "not stated"),
    ]
    if subject.score_name:
        facts.insert(3, ("A high score is", _side(audit)))
    return tuple(facts)


def _side(audit: Audit) -> str:
    subject = audit.subject
    if subject.favourable is None or subject.favours_high is None:
        return "good or bad for a person: not stated"
    return (
        f"{'good' if subject.favours_high else 'bad'} for a person; the good outcome is “{worded(subject.favourable)}”"
    )


def _checks(report: Report) -> tuple[LimitCheck, ...]:
    """Return the limits of the audit or, if there is none, that of the fit on the rows of the report."""
    tradeoff = report.tradeoff
    if report.audit.limits or tradeoff is None:
        return report.audit.limits
    key, among = {"score": "gdp"}.get(tradeoff.aim, tradeoff.aim), tradeoff.condition or "all"
    return tuple(
        LimitCheck(
            name, key, float(f"{limit:.3g}"), gap.value, gap.low, gap.high, report.audit.subject.confidence, among=among
        )
        for name, limit, gap in zip(tradeoff.attributes, tradeoff.limits, tradeoff.after.gaps)
        if limit
    )


def _limits(report: Report) -> list[Question]:
    audit = report.audit
    explained: set[str] = set()
    questions = []
    for check in _checks(report):
        lines = [_kept(check, audit)]
        if check.key == "gdp":
            lines[0] += _on_1000(audit, check)
            if check.attribute not in explained:
                lines.append(_average_gap(audit, check.attribute))
            explained.add(check.attribute)
        if not audit.limits and report.tradeoff is not None and "%" in report.tradeoff.asked:
            lines.append(f"The limit was stated as {report.tradeoff.asked} of the gap without a limit.")
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
        for number in attribute.all_rows.numbers:
            if number.key == "gdp" and number.interval is not None:
                lines.append(
                    f"The average gap of the score along {attribute.name} is {figure(number.value)}; with "
                    f"{percent(number.interval.confidence)} confidence it lies between {figure(number.interval.low)} "
                    f"and {figure(number.interval.high)}."
                )
                lines.append(_average_gap(audit, attribute.name))
    return [Question("Is the limit kept?", tuple(lines))]


def _average_gap(audit: Audit, s: str) -> str:
    return (
        f"The average gap: how far the mean score of {people_of(audit)} with the same {s} lies from the mean score of "
        "all, on average."
    )


def _kept(check: LimitCheck, audit: Audit) -> str:
    limit = f"the limit of {stated(check.limit)}"
    if check.share is not None and check.reference is not None:
        whole = "the mean score"
        if audit.subject.target_name is not None:
            whole = f"the share of {people_of(audit)} with {outcome_of(audit)}"
        share = f"{percent(check.share)} of {whole} ({figure(check.reference)})"
        limit = f"the limit of {figure(check.limit)}, which is {share}"
    whom = {
        "all": "",
        "favourable": f"Among {_favoured(audit)} alone: ",
        "positive": f"Among those with {outcome_of(audit)} alone: ",
        "both": "Among people with the same outcome: ",
    }[check.among]
    what = LIMITED[check.key].format(s=check.attribute)
    measured = (
        f"{whom or ''}{what if whom else capitalized(what)} is {figure(check.value)}; with "
        f"{percent(check.confidence)} confidence it lies between {figure(check.low)} and {figure(check.high)}"
    )
    return {
        "kept": f"Yes. {measured}. Even the upper of these two is within {limit}.",
        "not kept": f"No. {measured}. Even the lower of these two is above {limit}.",
        "unclear": f"It cannot be told. {measured}. Between these two lies {limit}. More rows would narrow the range.",
    }[check.verdict]


def _on_1000(audit: Audit, check: LimitCheck) -> str:
    """Return the gap of a chance, its upper end and its limit as numbers of 1,000 people."""
    if not audit.subject.chances:
        return ""
    gap, high, limit = (figure(1000 * value) for value in (check.value, check.high, check.limit))
    return f" Counted on 1,000 {people_of(audit)}: the gap is {gap}, at most {high}; the limit allows {limit}."


def _favoured(audit: Audit) -> str:
    """Return the people that Equal Opportunity is about."""
    good = audit.subject.favourable
    return f"those with {outcome_of(audit)}" if good is None else f"those with the good outcome “{worded(good)}”"


def _drift(audit: Audit) -> list[Question]:
    if not audit.drift:
        return []
    lines = []
    for change in audit.drift:
        sizes = f"It was {figure(change.before)} and is {figure(change.after)}"
        lines.append(
            {
                "grown": f"Yes. The average gap along {change.attribute} has grown. {sizes}.",
                "shrunk": f"Yes. The average gap along {change.attribute} has become smaller. {sizes}.",
                "no change seen": f"No change of the average gap along {change.attribute} is seen. {sizes}, which "
                "chance alone could explain.",
            }[change.verdict]
        )
    return [Question("Has it changed since the last audit?", tuple(lines))]


def _worst(audit: Audit) -> list[str]:
    lines = []
    for attribute in audit.attributes:
        curve, s = attribute.all_rows.curve, attribute.name
        if curve is None:
            lines.append(f"There is no score whose mean could be followed along {s}.")
            continue
        i = worst_group(curve)
        lines.append(capitalized(f"{_group(curve, i, s)} {_band(curve, i, s)}".strip()))
        if _by_chance(curve, i):
            sure = [k for k in _trusted(curve) if not _by_chance(curve, k)]
            lines.append(
                f"The largest gap that chance does not explain: {_group(curve, _farthest(curve, sure), s)}"
                if sure
                else f"At no value of {s} is there a gap that chance could not explain."
            )
        lines += _among_favoured(audit, attribute)
    return lines


def _group(curve: Curve, i: int, s: str) -> str:
    rows = f" ({counted(curve.rows[i], 'row')})" if curve.rows else ""
    return (
        f"{group_phrase(curve, i, s)}{rows} the mean score is {figure(curve.mean[i])}, "
        f"{_side_of(curve, curve.mean[i])} the average of {figure(curve.overall)}."
    )


def _side_of(curve: Curve, value: float) -> str:
    """Return how far a value lies above or below the overall mean, in percent of it where that has a meaning."""
    mean = curve.overall
    relative = mean > 0 and min(curve.mean) >= 0
    size = percent(abs(value - mean) / mean) if relative else figure(abs(value - mean))
    return f"{size} {'above' if value >= mean else 'below'}"


def _band(curve: Curve, i: int, s: str) -> str:
    if not curve.low:
        return ""
    low, high = _side_of(curve, curve.low[i]), _side_of(curve, curve.high[i])
    sure = f"with {percent(curve.confidence)} confidence, for all values of {s} at once"
    if _by_chance(curve, i):
        return f"That may be chance: the true mean can lie anywhere from {low} to {high} the average ({sure})."
    return f"That is more than chance: the true mean lies from {low} to {high} the average ({sure})."


def _among_favoured(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the average gap among the rows with the favourable outcome, unless a limit has told it."""
    told = any(c.attribute == attribute.name and c.key == "gdp" and c.among == "favourable" for c in audit.limits)
    numbers = [] if attribute.positives is None or told else attribute.positives.numbers
    return [
        f"Among {_favoured(audit)} alone, the average gap along {attribute.name} is "
        f"{figure(number.value)}; with {percent(number.interval.confidence)} confidence it lies between "
        f"{figure(number.interval.low)} and {figure(number.interval.high)}."
        for number in numbers
        if number.key == "gdp" and number.interval is not None
    ]


def _thousand(audit: Audit) -> list[str]:
    lines, people, subject, outcome = [], people_of(audit), audit.subject, outcome_of(audit)
    for attribute in audit.attributes:
        curve, decisions = attribute.all_rows.curve, attribute.all_rows.decisions
        if curve is None:
            continue
        i = worst_group(curve)
        where = group_phrase(curve, i, attribute.name)
        if decisions is not None and subject.threshold_stated and subject.threshold is not None:
            lines.append(
                f"Of 1,000 {people} {where}, {of_1000(decisions.mean[i])} have a score of {stated(subject.threshold)} "
                f"or more, the stated threshold; of 1,000 {people} in all, {of_1000(decisions.overall)}."
            )
        if subject.threshold is not None and min(curve.mean) >= 0 and max(curve.mean) <= 1:
            difference = round(1000 * curve.mean[i]) - round(1000 * curve.overall)
            chance = ", which may be chance" if _by_chance(curve, i) else ""
            than = "as many" if not difference else f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"
            lines.append(
                f"Read as chances, the scores expect {outcome} for {of_1000(curve.mean[i])} of 1,000 {people} {where}, "
                f"and for {of_1000(curve.overall)} of 1,000 in all: {than}{chance}."
            )
    if lines and subject.base_rate is not None and any(one.key == "calibration_error" for one in audit.quality):
        lines.append(f"In fact, {outcome} came for {of_1000(subject.base_rate)} of 1,000.")
    return lines or ["The score is no chance between 0 and 1 and no threshold was stated, so it cannot be counted."]


def _trust(report: Report) -> list[str]:
    audit, rows = report.audit, report.audit.rows
    names = _list(attribute.name for attribute in audit.attributes)
    if report.tradeoff is not None:
        lines = [
            f"All numbers are from {counted(rows.used, 'row')} that had no part in fitting or choosing the model. The "
            "evidence shows every trade-off of the fit."
        ]
        if report.before is None:
            lines.append(f"No limit holds here: nothing kept the score from moving with {names}.")
    else:
        lines = [
            f"All numbers are from {counted(rows.used, 'row')}. They hold for new cases only if the model was not "
            "trained on these."
        ]
    if rows.dropped:
        lines.append(
            f"{rows.dropped:,} of {counted(rows.given, 'row')} ({percent(rows.dropped / rows.given)}) "
            f"{'was' if rows.dropped == 1 else 'were'} left out because a value is missing."
        )
    for attribute in audit.attributes:
        hidden, s = sum(region.rows for region in attribute.sparse_regions), attribute.name
        if hidden:
            lines.append(
                f"At some values of {s}, with {counted(hidden, 'row')}, there are too few rows to say anything."
            )
        for number in attribute.all_rows.numbers:
            if number.key == "gdp" and number.deciding_pvalue is not None:
                lines.append(
                    f"There is a gap along {s}, large or small: chance alone does not explain it."
                    if number.deciding_pvalue <= audit.subject.level
                    else f"Chance alone could explain the average gap along {s}. That does not show that there is none."
                )
    if audit.warnings:
        remarks = "One remark" if len(audit.warnings) == 1 else f"{len(audit.warnings)} remarks"
        lines.append(f"{remarks} on the data and the model: read them under “Read with care” before you sign.")
    return lines


def _blind(audit: Audit) -> list[str]:
    names = _list(attribute.name for attribute in audit.attributes)
    lines = [f"All but {names}: nothing else about the people was looked at."]
    if all(attribute.positives is None for attribute in audit.attributes):
        lines.append("Whether wrong decisions fall on some more than on others was not looked at.")
    else:
        good = "the good outcome" if audit.subject.favourable else outcome_of(audit)
        lines.append(f"Those without {good} were not looked at by themselves.")
    lines.append(
        f"Whether the same person would have another score with another {names.replace(' and ', ' or ')} is a question "
        "about causes, which these data do not answer."
    )
    return lines


def _signed(audit: Audit) -> str:
    decision = f", for the decision {audit.context.decision}" if audit.context.decision else ""
    return (
        f"A signature says that this page was read, and whether the score is to be used{decision}. It does not say "
        "that the score is fair or lawful in every respect."
    )


def _origin(audit: Audit) -> tuple[tuple[str, str], ...]:
    context = audit.context
    versions = ", ".join(f"{name} {version}" for name, version in context.versions.items())
    settings = "".join(f", seed {audit.settings[key]}" for key in ("seed",) if key in audit.settings)
    facts = [
        ("Made by", context.author or "not stated"),
        ("Made on", context.made or "not stated"),
        ("Software", versions or audit.software or "not stated"),
        ("Settings", f"confidence {percent(audit.subject.confidence)}{settings}; all others at the end"),
    ]
    if context.data_sha256:
        facts.append(("Fingerprint of the data", context.data_sha256))
    if context.model_sha256:
        facts.append(("Fingerprint of the model", context.model_sha256))
    return tuple(facts)


def _list(names: Iterable[str]) -> str:
    return " and ".join(names)
