"""The first screen of a report, as data: the verdict and its basis.

The words are in ``assets/words.toml``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from frhsic.auditing.gaps import NO_SHARE
from frhsic.auditing.results import (
    RATIOS,
    ROUNDING,
    Audit,
    Change,
    LimitCheck,
    Number,
    Population,
)
from frhsic.estimators.frontier import AIM_MEASURES
from frhsic.formatting import (
    amount,
    capitalize,
    format_count,
    format_estimate,
    format_exact,
    format_interval,
    percent,
    rows_needed_phrase,
)
from frhsic.intervals import Interval
from frhsic.parity.limits import measure_name
from frhsic.report.costs import (
    LEAST_DECIDED,
    costs,
    decision_phrase,
    decision_sentence,
    hidden_rates,
)
from frhsic.report.equals import equal_sentence, worst_stratum_sentence
from frhsic.report.model import Report
from frhsic.report.people import (
    are_decisions,
    largest_error_sentence,
    n_people,
    people_phrase,
    rows_phrase,
    score_noun,
    trend_sentence,
)
from frhsic.report.words import (
    WORDS,
    aim_sentence,
    compares_noise,
    condition_phrase,
    control_phrase,
    dependence_lines,
    drift_line,
    drift_name,
    fill,
    gap_name,
    gap_phrase,
    gap_phrase_with_interval,
    group_phrase,
    has_groups,
    is_significant,
    is_unmeasured,
    join_names,
    measure_label,
    outcome_phrase,
    reduced_phrase,
    say,
    verdict_phrase,
    warnings,
)

# Verdicts on a limit, from worst to best.
SEVERITY = ("not kept", "probably not kept", "unclear", "probably kept", "kept")
GAP_MEANINGS: dict[str, str] = WORDS["meanings"]
DECIDED = ("decision_gdp", "decision_ratio", "error_gdp")  # measures of decisions
SCORE_GAPS = ("gdp", "within", "eo", "equalized_odds")  # in the unit of the score
# Changes that the verdict states for its attribute: parts of the change in the gap, and the gap
# among people with the same controls.
FIRST_PARTS = ("people", "curve", "shape", "within")
# The report mentions values of the attribute that didn't occur earlier if this share of the people
# have them.
MENTIONED = 0.01
# If a score is better than a constant by no more than this many standard errors, the interval of
# its advantage begins below half of the estimate.
BARELY = 4
# Columns that may be known only after the outcome and are named; the others are counted.
MOST_LATE = 3
# The number of rows that would settle a limit is stated if it is below this multiple of the audit's
# rows.
FAR = 100


@dataclass(frozen=True)
class Headline:
    """The first sentence of a report; `kind` is the verdict of a :class:`LimitCheck`, or "none"
    without a limit.

    `attribute` is the attribute in the plot, and `gap` the number compared with `limit`, if the
    limit is a number; with several classes, it is the gap of the class `label`. `others` contains
    the verdicts on other limits or attributes and sentences about decisions; `remarks` contains
    short sentences that apply to all verdicts.
    """

    kind: str
    sentence: str
    attribute: str
    gap: Number | None = None
    others: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    limit: float | None = None
    label: str = ""


def checks(report: Report) -> tuple[LimitCheck, ...]:
    """Return the audit's limits or, if there are none, the fit's limits, checked on the report's
    rows.

    A number is compared with the gap. A share refers to the gap on the same rows without a limit.
    """
    tradeoff, confidence = report.tradeoff, report.audit.subject.confidence
    if report.audit.limits or tradeoff is None:
        return report.audit.limits
    key = AIM_MEASURES[tradeoff.aim]
    among = tradeoff.condition or ("equal" if tradeoff.controls else "all")
    if tradeoff.classes:
        among = "classes"
    rows = report.audit.rows.used
    limit_checks = []
    for i, name in enumerate(tradeoff.attributes):
        gap, share, limit = tradeoff.after.gaps[i], tradeoff.shares[i], tradeoff.limits[i]
        measured = report.audit[name].all_rows.get("gdp")
        resolution = 0.0 if measured is None else measured.resolution
        interval = Interval(gap.low, gap.high, confidence, "")
        check = LimitCheck(
            name, key, among, 0.0, gap.value, interval, rows=rows, resolution=resolution
        )
        if limit:
            numeric = replace(check, limit=float(f"{limit:.3g}"))
            if tradeoff.base_shares and tradeoff.base_shares[i] is not None:
                assert tradeoff.base_rate is not None
                rate = Number("base_rate", tradeoff.base_rate, 0)
                part = tradeoff.base_shares[i]
                numeric = replace(numeric, share=part, base="base rate", reference=rate)
            limit_checks.append(numeric)
        if share is not None and tradeoff.changes:
            change = tradeoff.changes[i]
            old = Number(key, change.before, rows)
            aim = replace(check, limit=share * old.value, share=share, base="gap")
            limit_checks.append(replace(aim, reference=old, reduction=change.reduction))
    return tuple(limit_checks)


def verdict(report: Report) -> Headline:
    """Return the verdict: whether the score is no better than a constant, and then the limit that
    is exceeded most, the gap that has changed most, or the largest gap.
    """
    head = _gap_verdict(report)
    sentence = head.sentence
    noun = score_noun(report.audit)
    others = [*_constant_decisions(report), *head.others]
    remarks = [*head.remarks, *_class_lines(report)]
    shrunk = shrinkage(report)
    poor = not _beats_constant(report.audit, by=2)
    if shrunk:
        others.insert(0, shrunk)
    if late := report.audit.context.late:
        more = [f"{len(late) - MOST_LATE} more"] if len(late) > MOST_LATE else []
        others.append(say("late", names=join_names([*late[:MOST_LATE], *more])))
    if poor:
        sentence = f"{say('poor', noun=noun)} {sentence}"
    elif not _beats_constant(report.audit, by=BARELY):
        remarks.append(say("barely", noun=noun))
    # how the gap was reduced doesn't matter for an absolute limit; a relative reduction may come
    # from shrinking all scores
    only_shrunk = bool(shrunk) and any(check.base == "gap" for check in checks(report))
    kind = "unclear" if head.kind == "kept" and (only_shrunk or poor) else head.kind
    return replace(head, kind=kind, sentence=sentence, others=tuple(others), remarks=tuple(remarks))


def shrinkage(report: Report) -> str:
    r"""Return a sentence that names the attributes for which most of the reduction in the gap comes
    from a smaller spread of all scores; empty if there are none.

    A gap g is the product of g / σ and the standard deviation σ of all scores. In proportion, σ has
    fallen more than g / σ if the ratio of the gaps, after to before, exceeds the squared ratio of
    the standard deviations. This must hold for the whole interval of the ratio of the gaps.
    """
    other = report.before or report.earlier
    if other is None:
        return ""
    noun = f"{score_noun(report.audit)}s"
    changes = report.audit.drift if report.tradeoff is None else report.tradeoff.changes
    if report.tradeoff is not None and report.tradeoff.classes:
        changes = tuple(change for change in report.changes if change.key == "gdp")
        noun += f" for {outcome_phrase(report.audit.subject)}"
    parts = []
    for change in changes:
        s, ends = change.attribute, change.reduction
        if change.key not in SCORE_GAPS or ends is None or ends.low <= 0:
            continue
        was, now = (_standard_deviation(each[s].all_rows) for each in (other, report.audit))
        if was and now and (now / was) ** 2 < 1 - ends.high:
            values = {"before": change.before / was, "after": change.after / now}
            parts.append(say("shrunk_by", s=s, **values))
    return say("shrunk", noun=noun, gaps=join_names(parts)) if parts else ""


def _standard_deviation(numbers: Population) -> float | None:
    """Return the standard deviation of all scores; None if the gap is 0."""
    gap, standardized = numbers.get("gdp"), numbers.get("standardized_gdp")
    if gap is None or standardized is None or not standardized.value > 0:
        return None
    return gap.value / standardized.value


def decision_gaps(report: Report) -> str:
    """Return a sentence with the gap in decisions by each attribute, unless the verdict is about
    decisions, the gap in scores is the same, or a numeric target has no stated threshold.
    """
    audit, tradeoff = report.audit, report.tradeoff
    if score_noun(audit) == "prediction" and not audit.subject.threshold_stated:
        return ""
    if are_decisions(audit) or hidden_rates(report) or (tradeoff and tradeoff.classes):
        return ""
    judged = {check.attribute for check in checks(report) if check.key == "decision_gdp"}
    gaps = []
    unknown = []
    for attribute in audit.attributes:
        s, gap = attribute.name, attribute.all_rows.get("decision_gdp")
        if s in judged or gap is None or gap.interval is None:
            continue
        share = attribute.all_rows.curves["decision_gdp"].overall
        # the largest possible mean absolute deviation of shares from their mean
        most = 2 * share * (1 - share)
        wide = gap.interval.low <= 0 and gap.interval.high >= most
        if wide or is_unmeasured(gap, audit.subject):
            unknown.append(s)
            continue
        key = "decided_by" if is_significant(gap, audit.subject) else "hardly_decided_by"
        size, low, high = (format_estimate(100 * x) for x in (gap.value, *gap.interval))
        known = None if report.before is None else report.before[s].all_rows.get("decision_gdp")
        was = "" if known is None else say("decided_before", was=100 * known.value)
        gaps.append(say(key, s=s, size=size, low=low, high=high, was=was))
    selected = decision_phrase(audit, "selected", "scored_above")
    values = {"people": rows_phrase(audit), "selected": selected}
    lines = []
    if gaps:
        lines.append(say("decided", gaps=join_names(gaps), **values))
    if unknown:
        lines.append(say("undecided", names=join_names(unknown), **values))
    return " ".join(lines)


def _constant_decisions(report: Report) -> Iterator[str]:
    """If the verdict is about decisions, yield a sentence if they are the same for everybody, or
    for all people in a group whose band excludes the average.
    """
    audit, tradeoff = report.audit, report.tradeoff
    limits_decisions = tradeoff is not None and tradeoff.aim == "decision"
    judged = any(check.key in DECIDED for check in audit.limits)
    if not (limits_decisions or judged or audit.subject.threshold_stated):
        return
    who = say("model_selects" if limits_decisions else "threshold_selects", subject=audit.subject)
    for attribute in audit.attributes:
        curve = attribute.all_rows.curves.get("decision_gdp")
        if curve is None:
            continue
        values = {"who": who, "people": rows_phrase(audit), "rows": audit.rows.used}
        share = curve.overall
        if min(share, 1 - share) < LEAST_DECIDED:
            key = "selects_few"
            if min(share, 1 - share) < NO_SHARE:
                key = "selects_all" if share > 0.5 else "selects_none"
            # the largest mean absolute deviation of numbers between 0 and 1 with mean p
            yield say(key, **values, share=share, most=2 * share * (1 - share))
            return
        for end, key in ((1.0, "selects_group"), (0.0, "selects_no_group")):
            groups = [
                i
                for i, sparse in enumerate(curve.sparse)
                if not sparse
                and abs(curve.mean[i] - end) < NO_SHARE
                and not curve.low[i] <= share <= curve.high[i]
            ]
            if groups:
                most = max(groups, key=lambda i: curve.rows[i])
                where = group_phrase(curve, most, attribute.name)
                values |= {"where": where, "rows": curve.rows[most]}
                yield say(key, **values)


def _class_lines(report: Report) -> list[str]:
    """Return sentences on the classes with significant gaps, from the largest to the smallest, and
    on the class in the plot.
    """
    tradeoff, subject = report.tradeoff, report.audit.subject
    if tradeoff is None or not tradeoff.classes:
        return []
    lines = []
    for i, s in enumerate(tradeoff.attributes):
        gaps: dict[bool, list[str]] = {False: [], True: []}
        for label, numbers in sorted(tradeoff.classes.items(), key=lambda item: -item[1][i].value):
            number = numbers[i]
            if is_significant(number, subject):
                alone = (number.adjusted or 0.0) > subject.level
                gap = gap_phrase_with_interval(number)
                gaps[alone].append(say("class_gap", label=label, gap=gap))
        alone_text = ""
        if gaps[True]:
            key = "also_class_alone" if gaps[False] else "class_alone"
            alone_text = say(key, gaps=join_names(gaps[True]))
        key = "class_gaps" if gaps[False] else "no_class_gap"
        lines.append(say(key, s=s, gaps="; ".join(gaps[False]), alone=alone_text))
    count = len(tradeoff.classes)
    return [*lines, say("one_class", outcome=outcome_phrase(subject), count=count)]


def _beats_constant(audit: Audit, by: float) -> bool:
    """Whether the score is better than a constant by more than a number of standard errors."""
    return all(
        quality.value - quality.constant > by * (quality.standard_error or 0.0)
        for quality in audit.quality
        if quality.key in ("auc", "explained")
    )


def _gap_verdict(report: Report) -> Headline:
    audit = report.audit
    judged = sorted(checks(report), key=_urgency)
    if judged:
        first, *others = judged
        summary = limits_sentence(judged)
        remarks = [*_fit_lines(report)]
        if first.base == "gap":
            remarks += _aim_remarks(first)
        elif first.rows_needed is not None:
            noun = rows_phrase(audit)
            if report.tradeoff is not None:
                noun = say("held_out", people=noun)
            settled = capitalize(rows_needed_phrase(first.rows_needed, noun))
            far = first.rows_needed >= FAR * first.rows
            remarks.append(say("hardly_settled") if far else f"{settled}.")
        remarks += split_lines(audit, first.attribute)
        if report.tradeoff is not None and not report.tradeoff.met:
            remarks.append(say("not_met"))
        elif report.tradeoff is not None and report.tradeoff.points[0].chosen:
            remarks.append(say("not_binding"))
        label = ""
        among = first.among
        if among == "classes" and report.tradeoff is not None:
            label, _ = report.tradeoff.largest_class(first.attribute)
            among = "all"
        number = Number(measure_name(first.key, among), first.value, first.rows, first.interval)
        return Headline(
            first.verdict,
            f"{summary} {limit_sentence(first, audit)}".strip(),
            first.attribute,
            None if first.unmeasured else number,
            tuple(limit_sentence(check, audit) for check in others),
            tuple(remarks),
            None if first.base == "gap" else first.limit,
            label,
        )
    gaps = {a.name: a.all_rows["gdp"] for a in audit.attributes if a.all_rows.get("gdp")}
    if not gaps:
        only = audit.attributes[0]
        told, *more = dependence_lines(only, audit.subject) or [say("no_gap", s=only.name)]
        return Headline("none", told, only.name, others=tuple(more))
    labels: dict[str, str] = {}
    if report.tradeoff is not None and report.tradeoff.classes:
        for name in gaps:
            labels[name], gaps[name] = report.tradeoff.largest_class(name)
    changes = [change for change in audit.drift if change.key == "gdp"]
    if changes:
        change = min(changes, key=lambda change: change.pvalue)
        key = "grown" if change.after > change.before else "fallen"
        since = report.earlier.context.source if report.earlier else ""
        key = key if change.changed else "no_change"
        told = say(key, c=change, ends=change.interval, since=since or say("the_last"))
        name = change.attribute
        return Headline("none", told, name, gaps[name], tuple(split_lines(audit, name)))
    ordered = sorted(
        gaps, key=lambda name: (not is_significant(gaps[name], audit.subject), -gaps[name].value)
    )
    sentences = [gap_sentence(gaps[name], name, audit, labels.get(name, "")) for name in ordered]
    if report.tradeoff is not None and any(report.tradeoff.shares):
        shares = [percent(share) for share in report.tradeoff.shares if share is not None]
        asked = join_names([*dict.fromkeys(shares)])
        gap = say("class_largest" if report.tradeoff.classes else "the_gap")
        sentences.insert(0, say("share_not_applied", asked=asked, gap=gap))
    largest = gaps[ordered[0]]
    return Headline(
        "none",
        sentences[0],
        ordered[0],
        None if is_unmeasured(largest, audit.subject) else largest,
        tuple(sentences[1:]),
        tuple(_unlimited_reasons(report)),
        label=labels.get(ordered[0], ""),
    )


def _urgency(check: LimitCheck) -> tuple[bool, int, float]:
    """Return a key that sorts checks by verdict, worst first, and then by the ratio of the number
    to its limit, largest first. Checks that compare noise with noise come last.
    """
    return compares_noise(check), SEVERITY.index(verdict_phrase(check)), -_share_of_limit(check)


def _share_of_limit(check: LimitCheck) -> float:
    """Return a number as a multiple of its limit or, for a lower limit, the limit as a multiple of
    the number.
    """
    number, limit = check.value, check.limit
    if check.key in RATIOS:
        number, limit = limit, number
    return number / limit if limit > 0 else math.inf


def split_lines(audit: Audit, s: str) -> list[str]:
    """Return sentences about the significant parts of a gap's change, and the share of people for
    whom they are unknown; empty if no change is significant.
    """
    parts = {change.key: change for change in audit.drift if change.attribute == s}
    if "shape" not in parts:
        return []
    gap, people, curve, shape = (parts[key] for key in ("gdp", "people", "curve", "shape"))
    scored = curve.changed or shape.changed
    if gap.changed:
        key = "no_part"
        if people.changed:
            key = "both_parts" if scored else "only_people"
        elif scored:
            key = "only_curve"
    elif scored:
        key = "hidden_shape"
    elif people.changed:
        key = "hidden_people"
    else:
        return []
    sizes = {
        part.key: say("part", size=part.after - part.before, ends=part.interval)
        for part in (people, curve)
    }
    noun = score_noun(audit)
    lines = [say(key, noun=noun, s=s, shape=shape, **sizes)]
    if shape.unknown > MENTIONED:
        lines.append(say("unknown", noun=noun, s=s, change=shape))
    return lines


def _aim_remarks(check: LimitCheck) -> Iterator[str]:
    """Yield sentences about the uncertainty of a target."""
    ends, share = check.reduction, check.share
    if ends is None or share is None:
        return
    if check.verdict == "kept" and ends.low < 1 - share - ROUNDING:
        yield say("aim_reached", ends=ends)
    elif check.verdict == "unclear" and ends.low > 0:
        yield say("aim_unsure", share=share)


def _fit_lines(report: Report) -> Iterator[str]:
    """Yield a sentence about the effect of the limit in the fit, for each attribute whose gap is
    significant in the fit, but not on the report's rows, either without the limit or with it.
    """
    tradeoff = report.tradeoff
    for i, change in enumerate(() if tradeoff is None else tradeoff.changes):
        assert tradeoff is not None
        free = tradeoff.points[0].gaps[i]
        if tradeoff.is_noise(i) and free.low > 0:
            chosen = next(point.gaps[i] for point in tradeoff.points if point.chosen)
            people = rows_phrase(report.audit)
            gaps = {"free": free, "chosen": chosen}
            yield say("fit_moved", s=change.attribute, people=people, **gaps)


def _unlimited_reasons(report: Report) -> Iterator[str]:
    """Yield reasons why there is no verdict on a limit."""
    tradeoff = report.tradeoff
    if tradeoff is not None and any(tradeoff.shares):  # the verdict says so
        return
    if tradeoff is not None and tradeoff.limited:
        yield say("least_gap")
        if tradeoff.points[0].chosen:
            yield say("left_unchanged")
        yield from _fit_lines(report)
        for i, change in enumerate(tradeoff.changes):
            among = "equal" if tradeoff.controls else tradeoff.condition
            among = "classes" if tradeoff.classes else among
            what = gap_phrase(AIM_MEASURES[tradeoff.aim], change.attribute)
            what += condition_phrase(among, report.audit)
            if tradeoff.is_noise(i):
                what = people_sentence("in_these", what, report.audit)
            what = capitalize(what)
            numbers = change.before, change.after, change.reduction
            yield f"{what} {reduced_phrase(*numbers, noise=tradeoff.is_noise(i))}."
        return
    yield say("no_limit")


def people_sentence(key: str, what: str, audit: Audit) -> str:
    """Return words about a gap and the number of people on which it is measured."""
    return say(key, count=n_people(audit), people=people_phrase(audit), what=what)


def gap_sentence(gap: Number, s: str, audit: Audit, label: str = "") -> str:
    """Return a sentence with the size of a gap and whether it is significant; with several classes,
    it is the largest gap, of the class `label`.
    """
    if is_unmeasured(gap, audit.subject):
        return people_sentence("too_few_people", gap_phrase("gdp", s), audit)
    key = "gap_seen" if is_significant(gap, audit.subject) else "gap_not_seen"
    if gap.value == 0:
        key = "gap_zero" if gap.interval and gap.interval.high > 0 else "gap_unbounded"
    if key == "gap_seen" and (gap.adjusted or 0.0) > audit.subject.level:
        key = "gap_alone"
    family = f"{len(audit.attributes)} attributes"
    if label:
        family = "classes"
    return say(key, noun=_class_noun(audit, label), s=s, gap=gap, family=family, rows=audit.rows)


def _class_noun(audit: Audit, label: str) -> str:
    """Return the name of the audited numbers, with the class if there are several."""
    noun = score_noun(audit)
    return say("class_score", noun=noun, label=label) if label else noun


def limits_sentence(judged: Sequence[LimitCheck]) -> str:
    """Return a sentence on how many limits are met and missed, if several limits are numbers;
    targets, which apply to estimates, are not counted, since they have sentences of their own.
    """
    counts = Counter(WORDS["states"][verdict_phrase(check)] for check in judged)
    count = len(judged)
    if count == 1 or any(check.base == "gap" for check in judged):
        return ""
    if len(counts) == 1:
        return say("all_limits", all="Both" if count == 2 else f"All {count}", state=min(counts))
    states = [f"{n} {state}" for state, n in counts.items()]
    return say("some_limits", count=count, states=join_names(states))


def limit_sentence(check: LimitCheck, audit: Audit) -> str:
    """Return a sentence with the verdict on a limit, its number, and the bounds on that number."""
    what = gap_phrase(check.key, check.attribute) + condition_phrase(check.among, audit)
    if check.unmeasured:
        return people_sentence("too_few_people", what, audit)
    kind = verdict_phrase(check)
    if check.base == "gap":
        if compares_noise(check):
            what = people_sentence("in_these", what, audit)
        return aim_sentence(check, what)
    least = check.key in RATIOS
    value, low, high = (format_estimate(x, check.limit) for x in (check.value, *check.interval))
    if check.value == 0:
        value = say("not_above_chance")
    bound = f"between {low} and {high}"
    if check.verdict != "unclear":
        bound = f"at least {low}" if (kind == "kept") == least else f"at most {high}"
    limit = format_exact(check.limit)
    if check.share is not None and check.reference is not None:
        whose = "of_earlier_rows" if audit.drift else "of_these_rows"
        if check.reference.interval is None:
            whose = "of_training_rows"
        limit = say("limit_as_share", check=check, whose=say(whose))
    passed = say("under" if least else "over")
    return say(kind, limit=limit, what=what, value=value, bound=bound, passed=passed)


def attribute_lines(report: Report, head: Headline) -> list[str]:
    """Return lines for each attribute: its gap, if the verdict and its meaning give only the share
    by which the gap was reduced, and its largest significant error, unless the plot shows this
    error.
    """
    audit = report.audit
    lines = []
    for attribute in audit.attributes:
        s = attribute.name
        drawn = s == head.attribute
        parts = []
        for check in checks(report):
            if drawn and gap_size(head, audit):
                continue
            if (check.attribute, check.base) == (s, "gap") and not check.unmeasured:
                number = Number(check.key, check.value, check.rows, check.interval)
                what = capitalize(gap_name(check.key, s)) + condition_phrase(check.among, audit)
                if check.among == "classes" and report.tradeoff is not None:
                    label, _ = report.tradeoff.largest_class(s)
                    named = say("largest_class", s=s, label=label)
                    what = capitalize(gap_name(check.key, named))
                parts.append(f"{what}: {gap_phrase_with_interval(number)}.")
        if not drawn:
            parts.append(largest_error_sentence(report, s))
        lines.append(" ".join(filter(None, parts)))
    return [*filter(None, lines)]


def gap_size(head: Headline, audit: Audit) -> str:
    """Return the gap and the largest allowed gap (in percentage points for probabilities or
    shares), to append to its meaning; empty if there is no limit and the gap is not significant.
    """
    subject, gap = audit.subject, head.gap
    if gap is None or gap.value == 0 or gap.key not in GAP_MEANINGS:
        return ""
    if head.limit is None and gap.interval is not None and gap.interval.low <= 0:
        return ""  # not significant
    shares = subject.chances or gap.key not in ("gdp", "within")
    scale = 100 if shares else 1
    limit = None if head.limit is None else scale * head.limit
    size = format_estimate(gap.value, head.limit)
    spread = audit[head.attribute].all_rows.get("standardized_gdp")
    allowed = "" if limit is None else say("allowed", limit=limit)
    if shares:
        allowed = say("points", size=format_estimate(scale * gap.value, limit), allowed=allowed)
    elif spread:
        size += say("deviations", spread=spread, noun=score_noun(audit))
    return f": {size}{allowed}"


def meaning(head: Headline, audit: Audit) -> str:
    """Return a sentence that says what the gap is and how large, or "" if it is unknown."""
    if head.gap is None or head.gap.key not in GAP_MEANINGS:
        return ""
    return fill(
        GAP_MEANINGS[head.gap.key],
        s=head.attribute,
        size=gap_size(head, audit),
        noun=_class_noun(audit, head.label),
        people=people_phrase(audit),
        control=control_phrase(audit),
        selected=decision_phrase(audit, "selected", "scored_above"),
    )


def surety(report: Report) -> str:
    """Return a sentence that says how certain the verdict is and how many people it is based on."""
    audit = report.audit
    key = "sure" if report.tradeoff is None else "sure_held_out"
    counted = format_count(audit.rows.used, "row")
    if audit.context.people:
        counted = f"{audit.rows.used:,} {audit.context.people}"
    if has_groups(audit):
        counted = f"{audit.rows.used:,} rows of {audit.rows.groups:,}"
        counted += f" {people_phrase(audit)}"
    if audit.rows.effective is not None:
        units = f" {people_phrase(audit)}" if has_groups(audit) else ""
        counted += say("sure_weighted", rows=audit.rows, units=units)
    text = say(key, confidence=audit.subject.confidence, counted=counted)
    if report.earlier is not None:
        text += say("sure_earlier", rows=report.earlier.rows.used)
    names = [attribute.name for attribute in audit.attributes]
    only = say("only" if len(names) == 1 else "only_several", names=join_names(names))
    return f"{text}. {only}"


def unanswered_questions(report: Report) -> list[str]:
    """Return questions that these data can't answer."""
    lines = []
    names = " or ".join(attribute.name for attribute in report.audit.attributes)
    lines.append(say("no_cause", noun=score_noun(report.audit), names=names))
    control = control_phrase(report.audit)
    if control:
        lines.append(say("no_right", control=control))
    return lines


def other_changes(report: Report, head: Headline) -> tuple[list[Change], list[str]]:
    """Return sentences about other changes since the earlier audit, and the names of the numbers
    that haven't changed, except for numbers in the verdict or the costs.
    """
    shown = [(cost.key, "") for cost in costs(report)]
    shown += [(key, head.attribute) for key in ("gdp", *FIRST_PARTS)]
    rest = [change for change in report.audit.drift if (change.key, change.attribute) not in shown]
    return [change for change in rest if change.significant], [
        drift_name(change)
        for change in rest
        if not change.significant and change.key not in FIRST_PARTS
    ]


def shortfalls(report: Report) -> list[str]:
    """Return a sentence for each limit of the fit that is missed on the report's rows: a number
    that the estimate exceeds, or a target that the interval excludes.
    """
    bad = ("not kept", "probably not kept")
    return [
        limit_sentence(check, report.audit)
        for check in checks(report)
        if verdict_phrase(check) in (bad[:1] if check.base == "gap" else bad)
    ]


def alarms(audit: Audit) -> list[str]:
    """Return a line for each limit that is not certainly met and each change that is not an
    improvement.
    """
    return [
        *(limit_sentence(check, audit) for check in audit.limits if check.verdict != "kept"),
        *(drift_line(change) for change in audit.drift if change.changed and not change.improved),
    ]


# As text


def closing_lines(report: Report) -> dict[str, str]:
    """Return the final lines that a command prints: the verdict and its meaning, the lines for
    other attributes, the gap, the costs and the rows.
    """
    head = verdict(report)
    lines = {"verdict": head.sentence}
    if explained := f"{meaning(head, report.audit)} {decision_gaps(report)}".strip():
        lines["meaning"] = explained
    if head.others:
        lines["also"] = " ".join(head.others)
    gap = head.gap
    if gap is not None and gap.interval is not None:
        was = ""
        paired = () if report.tradeoff is None else report.tradeoff.changes
        known = (*paired, *report.changes, *report.audit.drift)
        of_gap = (c for c in known if (c.key, c.attribute) == (gap.key, head.attribute))
        change = next(of_gap, None)
        # two numbers that aren't significant don't show a change
        noise = change in paired and change.reduction is None and gap.interval.low <= 0
        if change is not None and not noise:
            was = f"{amount(change.before)} → "
        label = measure_label(gap.key, control_phrase(report.audit))
        name = "" if gap.key == "gdp" else f", {label[:1].lower()}{label[1:]}"
        if head.label:
            name = say("among_classes")
        lines["gap"] = f"{head.attribute}{name}: {was}{format_interval(gap.value, *gap.interval)}"
    shown = []
    for cost in costs(report)[:3]:
        value = f"{cost.was} → {cost.now}" if cost.was else cost.now
        reach = cost.reach if cost.was else cost.change
        ends = f" ({reach})" if reach else ""
        shown.append(f"{cost.name} {value}{ends}")
    lines["cost" if report.before else "score"] = ", ".join(shown) or say("no_outcome")
    hints = [*head.remarks]  # and advice to the analyst, which the page omits
    if any(check.base == "gap" and check.reduction is None for check in checks(report)):
        hints.append(say("ask_number"))
    if decided := decision_sentence(report):
        lines["decided"] = decided
        hints.append(say("other_threshold"))
    equal = equal_sentence(report.audit, head.attribute)
    if equal:
        worst = worst_stratum_sentence(report.audit, head.attribute, checks(report))
        lines["equal"] = f"{equal} {worst}"
    unclear = any(check.verdict == "unclear" for check in checks(report))
    if unclear and report.tradeoff is not None:
        hints.append(say("hold_out_more"))
    if report.tradeoff is not None and any(report.tradeoff.shares) and not checks(report):
        hints.append(say("limit_anyway"))
    return lines | {"rows": " ".join([surety(report), *hints])}


def text(report: Report | Audit) -> str:
    """Return a report or an audit as plain text: verdict, gap, costs and rows, followed by the
    findings for each attribute, limits and changes.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> print(text(audit(age / 50, age)).splitlines()[0])
    The mean score varies with s: the gap is 0.20 (0.19 to 0.21).
    """
    report = Report(report) if isinstance(report, Audit) else report
    audit = report.audit
    head = verdict(report)
    lines = [head.sentence, *head.remarks]
    closing = closing_lines(report) | {"rows": surety(report)}
    lines += [f"{name}: {shown}" for name, shown in closing.items()][1:]
    for attribute in audit.attributes:
        lines += filter(None, [trend_sentence(audit, attribute.name)])
        lines += dependence_lines(attribute, audit.subject)
    return "\n".join(dict.fromkeys([*lines, *warnings(audit)]))
