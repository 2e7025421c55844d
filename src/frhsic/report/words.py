"""All sentences about an audit and a trade-off: what the numbers say, in plain words."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from importlib import resources

from scipy.stats import norm

from frhsic.auditing.measures import SPARSE
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    CertificateRow,
    Curve,
    Drift,
    GroupAudit,
    LimitCheck,
    Number,
    Subject,
    limit_name,
)
from frhsic.formatting import capitalized, chance, counted, figure, percent, plain, ranged, stated, upper_figure
from frhsic.report.model import Drivers, Report, TradeOff, TradeOffPoint

WORDS = tomllib.loads(resources.files("frhsic.report").joinpath("assets", "words.toml").read_text(encoding="utf-8"))
"""Words that are the same for every audit, by the key of what they are about."""
LABELS: dict[str, str] = WORDS["labels"]
SENTENCES: dict[str, str] = WORDS["sentences"]

HEADLINES = ("gdp", "rank_gap", "hsic_effect", "probe_linear", "probe_trees")
"""Numbers that a reader sees first, in a report and on a terminal."""

UNIT_SCALE = ("rank_gap", "correlation_ratio", "hsic_effect", "distance_correlation", "probe_linear", "probe_trees")
"""Numbers from 0 (nothing) to 1 (everything), which can be drawn beside each other."""

UNTRUSTED = " The mean may change faster along {s} than these rows can show; the upper end is then a bound."
MEASURES: dict[str, str] = WORDS["measures"]
GAPS: dict[str, str] = WORDS["gaps"]
LOSSES = frozenset({"log_loss", "squared_error"})


def subject_phrase(subject: Subject) -> str:
    """Return a phrase for Z, such as “the score “risk”” or “the representation of the model”."""
    return _phrase("representation" if subject.dimensions > 1 else "score", subject.name)


def score_phrase(subject: Subject) -> str:
    """Return a phrase for the scores f."""
    return _phrase("score", subject.score_name or "score")


def _phrase(kind: str, name: str) -> str:
    """Return a name with its kind, unless the name says it already."""
    if name.lower() == kind:
        return f"the {kind}"
    own = name.startswith((f"{kind} of ", "probability of ", "predicted ", "linear head for "))
    return f"the {name}" if own else f"the {kind} “{name}”"


def outcome_phrase(subject: Subject) -> str:
    """Return the outcome that a score foretells, such as “default”, or “outcome: late”."""
    target = subject.target
    if target is None:
        return "the outcome"
    return f"“{target.name}{'' if target.positive is None else f': {target.positive}'}”"


def favoured_phrase(subject: Subject) -> str:
    """Return the outcome of the rows that Equal Opportunity is about."""
    if subject.target is None or subject.target.favourable is None:
        return outcome_phrase(subject)
    return f"the good outcome “{subject.target.name}: {subject.target.favourable}”"


def label(key: str) -> str:
    """Return the name of a number; of an unknown one, its key."""
    return LABELS.get(key, key)


def along_phrase(key: str, s: str) -> str:
    """Return a number along an attribute as the subject of a sentence, such as “the rank gap along age”."""
    name = LABELS[key]
    return f"the {name[0].lower() if name[1].islower() else name[0]}{name[1:]} along {s}"


def sentence(number: Number, subject: Subject, s: str) -> str:
    """Return the sentence of a number about `subject` and the attribute named `s`.

    A p-value counts as chance when it is above the subject's level, one minus the confidence of the audit.
    """
    null, pvalue, test = number.under_independence, number.pvalue, ""
    if pvalue is not None:
        verdict = "does not explain" if pvalue <= subject.level else "could explain"
        test = f" Chance alone {verdict} it (p {chance(pvalue)})."
    text = SENTENCES.get(number.key, "{key}: {value}.").format(
        key=number.key,
        f=score_phrase(subject),
        z=subject_phrase(subject),
        s=s,
        value=figure(number.value),
        share="nothing" if number.value <= 0 else percent(number.value),
        shuffled="" if null is None else f" With {s} shuffled it is {figure(null)}.",
        steady="" if null is None else f" If its mean did not move with {s}, chance would show {figure(null)}.",
        test=test,
        trust="" if number.trusted else UNTRUSTED.format(s=s),
        unseen="" if number.trusted else f" Changes between neighbouring values of {s} need more rows to show.",
        threshold=stated(0.5 if subject.threshold is None else subject.threshold),
        y="target" if subject.target is None else subject.target.name,
        null=figure(null),
    )
    return capitalized(text)


def contrast_sentence(contrast: Number, curve: Curve, subject: Subject, s: str) -> str:
    """Return the sentence of a contrast at one value of the attribute; `curve` has the overall mean."""
    at, start, end = (plain(float(contrast.settings[key])) for key in ("at", "start", "end"))
    side = "above" if contrast.value > 0 else "below"
    return (
        f"Near {s} = {at} the mean of {score_phrase(subject)} is {figure(abs(contrast.value))} {side} its overall mean "
        f"of {figure(curve.overall)}: the mean of all rows with {s} from {start} to {end}."
        + ("" if contrast.interval else " Too few rows are near to trust this.")
    )


def certificate_label(row: CertificateRow, subject: Subject) -> str:
    """Return the name of a certificate; of an unknown one, its key."""
    template: str = WORDS["certificate_labels"].get(row.key, row.key)
    return template.format(f=score_phrase(subject), z=subject_phrase(subject))


def certificate_sentence(row: CertificateRow, subject: Subject, s: str) -> str:
    """Return the sentence of a certificate, and why it says nothing where it is vacuous."""
    numbers = {name: value for name, value in row.settings.items() if isinstance(value, (int, float))}
    shown = {name: f"{value:,}" if name.endswith("directions") else figure(value) for name, value in numbers.items()}
    share, outside = math.floor(100 * numbers.get("share", 0) + 1e-6), numbers.get("unresolved", 1.0)
    shown |= {
        "f": score_phrase(subject),
        "z": subject_phrase(subject),
        "s": s,
        "rows": f"{row.rows:,}",
        "value": upper_figure(row.value),
        "confidence": "" if row.confidence is None else f"{100 * row.confidence:.10g} %",  # 99.97 % is not 100 %
        "share": "all" if share >= 100 else f"at least {share} %",
        "unresolved": f"about {percent(outside)}" if outside >= 0.001 else "less than 0.1 %",
        "spread": " (each column divided by its spread)" if subject.dimensions > 1 else "",
    }
    text: str = WORDS["certificate_sentences"].get(row.key, "The bound is {value}.").format_map(shown)
    if row.vacuous:
        always = upper_figure(row.trivial or 0.0)
        text += f" This says nothing: it is always at most {always}, because {row.trivial_because}."
    return text


def findings(audit: Audit, attribute: AttributeAudit) -> list[str]:
    """Return the finding about an attribute in one sentence, and the sentences that it rests on."""
    subject, s, population = audit.subject, attribute.name, attribute.all_rows
    z, gap, test = subject_phrase(subject), population.get("gdp"), population.get("hsic")
    lines = [] if gap is None else list(_gap(gap, population.curves["gdp"].overall, subject, s))
    if test is not None and test.pvalue is not None:
        by = chance(test.pvalue)
        lines.append(
            f"{capitalized(z)} and {s} are dependent (HSIC test, p {by})."
            if test.pvalue <= subject.level
            else f"The HSIC test finds no dependence between {z} and {s} in {counted(test.rows, 'row')} (p {by})."
        )
    given = population.get("separation")
    if given is not None and given.pvalue is not None and subject.target is not None:
        depends = "depends" if given.pvalue <= subject.level else "is not seen to depend"
        lines.append(
            f"Among rows with an equal {subject.target.name}, {score_phrase(subject)} {depends} on {s} "
            f"(p {chance(given.pvalue)})." + (f" {given.settings['caution']}" if given.settings else "")
        )
    probes = [number for number in population.numbers if number.key.startswith("probe_")]
    if probes:
        best = max(probes, key=lambda number: number.value)
        model = "a linear model" if best.key == "probe_linear" else "boosted trees"
        lines.append(
            f"Neither a linear model nor boosted trees recover {s} from {z}."
            if best.value < 0.01
            else f"From {z} alone, {model} can recover {percent(best.value)} of the variance of {s} or its ranks."
        )
    return lines


def _gap(number: Number, overall: float, subject: Subject, s: str) -> Iterator[str]:
    interval, f = number.interval, capitalized(score_phrase(subject))
    moves = number.pvalue is not None and number.pvalue <= subject.level
    gap, mean = figure(number.value), figure(overall)
    if moves:
        yield f"{f} moves with {s}: on average over the rows it is {gap} away from its overall mean of {mean}."
    elif number.value == 0:
        yield f"{f} is not seen to move with {s}: no gap around {mean} is left once chance is allowed for."
    else:
        yield f"{f} is not seen to move with {s}: chance alone could show the average gap of {gap} around {mean}."
    if interval is not None:
        yield (
            f"The {percent(interval.confidence)} interval for this gap (GDP) is {figure(interval.low)} to "
            f"{figure(interval.high)}; if {s} made no difference, chance alone would show about "
            f"{figure(number.under_independence)}." + ("" if number.trusted else UNTRUSTED.format(s=s))
        )


def levels_sentence(group: GroupAudit) -> str:
    """Return the mean score of each group, and which of them chance does not explain."""
    curve, parts = group.between, []
    for code, mean, low, high in zip(curve.grid, curve.mean, curve.low, curve.high):
        chance = "" if low <= curve.overall <= high else ", more than chance"
        parts.append(f"{group.levels[int(code)]} {figure(mean)} ({figure(low)} to {figure(high)}{chance})")
    return (
        f"Mean scores by {group.name}: {', '.join(parts)}; {figure(curve.overall)} in all. With "
        f"{percent(curve.confidence)} confidence the ranges hold the means of all groups at once."
    )


def moves_sentence(number: Number, subject: Subject, s: str) -> str:
    """Return whether the mean score moves along an attribute within a group, and by which p-value."""
    pvalue = number.pvalue
    moves = "moves" if pvalue is not None and pvalue <= subject.level else "is not seen to move"
    return f"The mean score {moves} with {s}" + ("." if pvalue is None else f" (p {chance(pvalue)}).")


def text(audit: Audit) -> str:
    """Return an audit as plain text: the findings about each attribute, limits and changes.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> print(text(audit(age / 100, age)).splitlines()[0])
    The score moves with s: on average over the rows it is 0.1... away from its overall mean of 0.395.
    """
    lines = [line for attribute in audit.attributes for line in findings(audit, attribute)]
    lines += [levels_sentence(group) for group in audit.groups]
    lines += [limit_line(check) for check in audit.limits] + [drift_line(change) for change in audit.drift]
    return "\n".join([*lines, *warnings(audit)])


def limit_line(check: LimitCheck) -> str:
    """Return whether a limit is kept, in one line."""
    verdict = {"kept": "kept", "not kept": "not kept", "unclear": "not shown to be kept"}[check.verdict]
    value = ranged(check.value, check.interval.low, check.interval.high)
    share = "" if check.share is None else f", {percent(check.share)} of {check.base}, itself an estimate"
    name = f"{limit_name(check.key, check.among)} of {check.attribute}"
    return f"limit {verdict}: {name} is {value}, limit {figure(check.limit)}{share}."


def drift_phrase(change: Drift) -> str:
    """Return what a change is of; of one that is not seen, without how it is measured."""
    phrase: str = WORDS["changes"][change.key].format(s=change.attribute)
    return phrase if change.changed else phrase.partition(", by")[0]


def drift_line(change: Drift) -> str:
    """Return what has changed, and by how much, in one line."""
    interval, start = change.interval, "changed" if change.changed else "no change seen"
    reach = "" if interval is None else f", a difference of {figure(interval.low)} to {figure(interval.high)}"
    sizes = f"from {figure(change.before)} to {figure(change.after)}{reach}"
    return f"{start}: {drift_phrase(change)} {sizes} (p {chance(change.pvalue)})."


def alarms(audit: Audit) -> list[str]:
    """Return a line for each limit that is not shown to be kept and each change that is not an improvement."""
    return [
        *(limit_line(check) for check in audit.limits if check.verdict != "kept"),
        *(drift_line(change) for change in audit.drift if change.changed and not change.improved),
    ]


def warnings(audit: Audit) -> list[str]:
    """Return what a careful reader should know about the data: the remarks of the caller, then those of the audit."""
    rows = audit.rows
    lines, n = list(audit.context.remarks), rows.used
    if rows.groups is not None:
        lines.append(
            f"The {n:,} rows belong to {rows.groups:,} groups. Gaps and performance count groups; HSIC, the other "
            "measures of dependence, the probes and the certificates use one row of each, drawn at random."
        )
    if rows.weighted:
        lines.append(
            "Rows are weighted. Gaps and performance use the weights; HSIC, the other measures of dependence, the "
            "probes and the certificates use rows that were kept at random in proportion to them."
        )
    if rows.sample is not None:
        lines.append(
            f"Gaps, curves, HSIC, the linear probe and the histogram use all {counted(n, 'row')}. The others use a "
            f"random sample of {rows.sample:,} of them, or fewer."
        )
    if rows.dropped:
        lines.append(
            f"{rows.dropped:,} of {counted(rows.given, 'row')} ({percent(rows.dropped / rows.given)}) were left out "
            "because a value is missing. If they differ from the others, these numbers do too."
        )
    if n < 500:
        lines.append(f"The audit has only {counted(n, 'row')}; intervals are wide and the tests have little power.")
    for attribute in audit.attributes:
        curve = attribute.all_rows.curves.get("gdp")
        hidden = 0.0 if curve is None else sum(rows for rows, sparse in zip(curve.rows, curve.sparse) if sparse)
        if hidden:
            lines.append(
                f"{counted(hidden, 'row')} ({percent(hidden / n)}) {'lies' if round(hidden) == 1 else 'lie'} where "
                f"groups along {attribute.name} have fewer than {SPARSE} rows; the curve should not be read there."
            )
        if attribute.positives is not None and attribute.positives.rows < 500:
            lines.append(f"Equal opportunity rests on {counted(attribute.positives.rows, 'row')} only.")
    return list(dict.fromkeys(lines))


def columns_phrase(point: TradeOffPoint) -> str:
    """Return the columns by which a predictor differs from the model, such as “without age and job”."""
    return f"with {listed(point.added)} as a column" if point.added else f"without {listed(point.left_out)}"


def listed(names: Sequence[str]) -> str:
    """Return names in a row, such as “age, job and town”."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def gap_name(tradeoff: TradeOff, attribute: str, audit: Audit) -> str:
    """Return the name of the gap that a model limits, such as “gap of mean scores along age”."""
    among = WORDS["among"].get(tradeoff.condition, "").format(outcome=outcome_phrase(audit.subject))
    return f"{GAPS[tradeoff.aim]} along {attribute}{among}"


def summary(report: Report) -> str:
    """Return what a limit changed on rows that had no part in the fit, and what it costs; empty without trade-offs."""
    after, before, tradeoff = report.audit, report.before, report.tradeoff
    if tradeoff is None:
        return ""
    start, old, new = f"On {counted(after.rows.used, 'row')} not used in the fit", tradeoff.before, tradeoff.after
    measure, base = MEASURES[tradeoff.measure], f"{figure(tradeoff.constant)} for a constant"
    if before is None:
        gaps = " and ".join(
            f"a {gap_name(tradeoff, name, after)} of {ranged(gap.value, gap.low, gap.high)}"
            for name, gap in zip(tradeoff.attributes, new.gaps)
        )
        return f"{start}, the model has {gaps}; {measure} is {figure(new.performance)} ({base})."
    changes = []
    for name, was, now in zip(tradeoff.attributes, old.gaps, new.gaps):
        sizes = f"{ranged(was.value, was.low, was.high)} without it, {figure(now.value)} with it"
        doubt = ", which may be chance" if was.low <= now.high else ""
        verb = "lowers" if now.value < was.value else "does not lower"
        changes.append(f"{verb} the {gap_name(tradeoff, name, after)} ({sizes}){doubt}")
    text = (
        f"{start}, the limit {', and '.join(changes)}; {measure} goes from {figure(old.performance)} to "
        f"{figure(new.performance)} ({base})."
    )
    return text + _foreseen(before, after)


def _foreseen(before: Audit, after: Audit) -> str:
    """Return how many of 1,000 are foreseen, and how many false alarms that takes; nothing if neither changes."""
    was, now = ({one.key: round(1000 * one.value) for one in audit.quality} for audit in (before, after))
    keys = ("true_positive_rate", "false_positive_rate")
    if all(was.get(key) == now.get(key) for key in keys):
        return ""
    than = [", as many as before" if now[key] == was[key] else f" instead of {was[key]:,}" for key in keys]
    return (
        f" Of 1,000 {after.context.people or 'cases'} with {outcome_phrase(after.subject)}, {now[keys[0]]:,} are "
        f"foreseen{than[0]}; of 1,000 without it, {now[keys[1]]:,} are false alarms{than[1]}."
    )


def tradeoff_sentence(tradeoff: TradeOff, audit: Audit) -> str:
    """Return where on the trade-offs the model is."""
    chosen, name = next(point for point in tradeoff.points if point.chosen), tradeoff.attributes[tradeoff.worst]
    gap, asked = chosen.gaps[tradeoff.worst], f"The limit is {' and '.join(dict.fromkeys(tradeoff.asked))}."
    text = (
        f"{asked if tradeoff.limited else 'No limit was stated.'} In the fit, the {gap_name(tradeoff, name, audit)} is "
        f"{ranged(gap.value, gap.low, gap.high)} and {MEASURES[tradeoff.measure]} {figure(chosen.performance)}."
    )
    return text if tradeoff.met else f"{text} The limit is not met: this is the trade-off that comes closest."


def tradeoff_rows(tradeoff: TradeOff) -> list[tuple[TradeOffPoint, str]]:
    """Return the trade-offs with what they are, for a table; the last ones are of the rows of the report."""
    first = tradeoff.points[0].gaps[tradeoff.worst].value
    rows = []
    for i, point in enumerate(tradeoff.points):
        share = f"{100 * point.gaps[tradeoff.worst].value / first:.0f} % of the gap" if first else ""
        rows.append((point, ("no limit" if i == 0 else share) + (" (chosen)" if point.chosen else "")))
    others = [(point, f"this report, no limit, {columns_phrase(point)}") for point in tradeoff.others]
    return [*rows, *others, (tradeoff.before, "this report, no limit"), (tradeoff.after, "this report, chosen")]


def group_phrase(curve: Curve, i: int, name: str) -> str:
    """Return where a group of a curve lies, such as “at age from 58 to 63”."""
    if curve.start[i] == curve.end[i]:
        return f"at {name} {plain(curve.grid[i])}"
    return f"at {name} from {plain(curve.start[i])} to {plain(curve.end[i])}"


def driver_sentence(drivers: Drivers, level: float = 0.05) -> str:
    """Return which column carries most of an attribute into the score, if that is more than half and than chance.

    Examples
    --------
    >>> from frhsic.report.model import Driver
    >>> job = Driver("job", carried=0.08, standard_error=0.01, more_than_half=4.0)
    >>> driver_sentence(Drivers("age", 0.1, 0.001, 500, (job,)))
    'Most of the gap along age reaches the score through job: without what job tells, 80 % of it would go.'
    """
    if not drivers.columns or drivers.pvalue > level:
        text = f"the gap along {drivers.attribute} is not significant, so no column is named that carries it."
    else:
        first = max(drivers.columns, key=lambda driver: driver.more_than_half)
        if first.more_than_half > norm.ppf(1 - level / len(drivers.columns)):
            text = (
                f"most of the gap along {drivers.attribute} reaches the score through {first.column}: without what "
                f"{first.column} tells, {percent(min(first.carried / drivers.gap, 1))} of it would go."
            )
        else:
            first = drivers.columns[0]
            text = (
                f"no single column is seen to carry more than half of the gap along {drivers.attribute}; the largest "
                f"part, {figure(first.carried)} of {figure(drivers.gap)}, is that of {first.column}."
            )
    return f"Without the limit, {text}" if drivers.unlimited else capitalized(text)


def shift_sentence(attribute: str, curve: Curve) -> str:
    """Return whose scores the limit raised and lowered most, where the band of all groups is on one side of 0."""
    parts = []
    for word, sign, band in (("raised", 1, curve.low), ("lowered", -1, curve.high)):
        sure = [i for i, sparse in enumerate(curve.sparse) if not sparse and sign * band[i] > 0]
        if sure:
            i = max(sure, key=lambda i: sign * curve.mean[i])
            size = figure(abs(curve.mean[i]))
            parts.append(f"{word} scores most {group_phrase(curve, i, attribute)}, by {size} on average")
    if not parts:
        return "The limit is not seen to change the mean score of any group."
    return f"The limit {', and '.join(parts)}."
