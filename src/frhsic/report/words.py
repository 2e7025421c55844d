"""Sentences about an audit and a trade-off, which say in plain words what the numbers mean. The
words are in ``assets/words.toml``; this module selects the sentences that apply.
"""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

import numpy as np

from frhsic import formatting
from frhsic._arrays import has_few_effective
from frhsic.auditing.measures import LEAST_ROWS
from frhsic.auditing.results import (
    COARSE,
    GAPS,
    RATIOS,
    SPARSE,
    AttributeAudit,
    Audit,
    Change,
    Curve,
    LimitCheck,
    Number,
    Subject,
)
from frhsic.formatting import capitalize, format_value, percent
from frhsic.intervals import Interval
from frhsic.parity.limits import PREFIXES
from frhsic.report.model import TradeOff, TradeOffPoint

WORDS = tomllib.loads(
    resources.files("frhsic.report").joinpath("assets", "words.toml").read_text(encoding="utf-8")
)
LABELS: dict[str, str] = WORDS["labels"]
# Numbers that are 0 in the population if nothing depends on the attribute, and otherwise above 0.
NONNEGATIVE = (
    *GAPS,
    "rank_gap",
    "standardized_gdp",
    "hsic",
    "hsic_effect",
    "squared_distance_correlation",
)
SENTENCES: dict[str, str] = WORDS["sentences"]
MEASURES: dict[str, str] = WORDS["measures"]
FORMS: dict[str, Callable[[Any], str]] = {
    "chance": formatting.chance,
    "figure": formatting.amount,
    "percent": percent,
    "rest": lambda share: percent(1 - share),
    "plain": format_value,
    "short": formatting.format_estimate,
    "signed": lambda value: signed_figure(value),
    "stated": formatting.format_exact,
    "capital": capitalize,
    "count": lambda n: f"{n:,.0f}",
    "mean": lambda noun: "share of positive decisions" if noun == "decision" else f"mean {noun}",
    "rows": lambda n: formatting.format_count(n, "row"),
    "whole": lambda share: f"{100 * share:,.0f}".replace("-", "−"),
}


# If performance is above this, the report asks whether all columns are known before the outcome.
TOO_GOOD = {"explained": 0.98, "auc": 0.995}
MOST_CAUTIONS = 6  # cautions that the page shows unfolded
# Number of bins of an attribute, as one might choose in a pivot table.
BANDS = 10


def signed_figure(value: float) -> str:
    """Format a difference with its sign, or as a power of ten if it is very small."""
    if 0 < abs(value) < 1e-4:
        return f"{'+' if value > 0 else ''}{formatting.figure(value, 2)}"
    return formatting.format_difference(value)


class _Filler(string.Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return FORMS[format_spec](value) if format_spec else str(value)


def fill(template: str, **values: object) -> str:
    """Fill in the braces of a template; a name after a colon is one of :data:`FORMS`."""
    return _Filler().vformat(template, (), values)


def say(key: str, /, **values: object) -> str:
    """Return a sentence or phrase by its key."""
    return fill(WORDS["said"][key], **values)


def subject_phrase(subject: Subject) -> str:
    """Return a phrase for Z, such as “the score “risk”” or “the representation of the model”."""
    return _phrase("representation" if subject.dimensions > 1 else "score", subject.name)


def score_phrase(subject: Subject) -> str:
    """Return a phrase for the scores f."""
    return _phrase("score", subject.score_name or "score")


def _phrase(kind: str, name: str) -> str:
    """Return a name preceded by its kind, unless the name already contains it."""
    if name.lower() == kind:
        return f"the {kind}"
    says_kind = name.startswith(
        (f"{kind} of ", "probability of ", "predicted ", "linear head for ")
    )
    return f"the {name}" if says_kind else f"the {kind} “{name}”"


def outcome_phrase(subject: Subject) -> str:
    """Return the outcome that a score predicts, such as “default”, or “outcome: late”."""
    target = subject.target
    if target is None:
        return "the outcome"
    named = str(target.positive).casefold() == target.name.casefold()
    return f"“{target.name}{'' if target.positive is None or named else f': {target.positive}'}”"


def favoured_phrase(subject: Subject) -> str:
    """Return the outcome that defines the rows of equal opportunity."""
    if subject.target is None or subject.target.favourable is None:
        return outcome_phrase(subject)
    return f"“{subject.target.name}: {subject.target.favourable}”"


def measure_label(key: str, control: str = "controls") -> str:
    """Return the name of a number, or its key if it is unknown."""
    plain = plain_measure(key)
    name = LABELS.get(plain, plain)
    return name if plain == key else say("among_equals", name=name, control=control)


def plain_measure(key: str) -> str:
    """Return the measure for all people that corresponds to a measure among people with the same
    controls.
    """
    prefix = PREFIXES["equal"]
    return "gdp" if key == prefix else key.removeprefix(f"{prefix}.")


def gap_name(key: str, s: str, control: str = "") -> str:
    """Return the name of the limited number, such as “rank gap by age”; for the score, “gap by
    age”; with a control, “gap by age, same education”.
    """
    plain = plain_measure(key)
    name = "gap" if plain == "gdp" else LABELS[plain]
    name = f"{name[0].lower() if name[1].islower() else name[0]}{name[1:]} by {s}"
    return name if plain == key else say("among_equals", name=name, control=control)


def gap_phrase(key: str, s: str) -> str:
    """Return the limited number as the subject of a sentence."""
    return f"the {gap_name(key, s)}"


def group_phrase(curve: Curve, i: int, name: str) -> str:
    """Return the range of a curve's group, such as “ages 58 to 63” or “ages 64 and over”."""
    if curve.start[i] == curve.end[i]:
        return f"{name} {format_value(curve.grid[i])}"
    several = f"{name}s" if name in ("age", "Age") else name
    end = "and over" if i == len(curve.grid) - 1 else f"to {format_value(curve.end[i])}"
    return f"{several} {format_value(curve.start[i])} {end}"


def is_significant(number: Number | None, subject: Subject) -> bool:
    """Return whether a number is significant by its own p-value, at a level of one minus the
    audit's confidence; this agrees with the number's interval.
    """
    return number is not None and number.pvalue is not None and number.pvalue <= subject.level


def is_unmeasured(gap: Number, subject: Subject) -> bool:
    """Return whether there are too few people to measure a gap, unless it is significant."""
    return gap.resolution > COARSE and not is_significant(gap, subject)


def adjusted_phrase(number: Number) -> str:
    """Return the p-value adjusted for several attributes, to append to the unadjusted p-value."""
    return "" if number.adjusted is None else say("adjusted", p=number.adjusted)


def resolution_sentence(numbers: Sequence[Number], s: str) -> str:
    """Return a sentence that says how many people each local mean covers; empty if every value of
    the attribute has its own mean.
    """
    shares = {number.resolution for number in numbers}
    texts = [say("averaged", s=s, share=share) for share in sorted(shares) if share]
    return " ".join(dict.fromkeys(texts))


def sentence(number: Number, subject: Subject, s: str) -> str:
    """Return a sentence that states a number for `subject` and the attribute named `s`."""
    if number.value <= 0 and number.key in NONNEGATIVE:
        return say("is_zero", name=measure_label(number.key))
    null, pvalue = number.under_independence, number.pvalue
    tails = {
        "shuffled": null is not None and say("shuffled", s=s, null=null),
        "steady": null is not None and say("steady", s=s, null=null),
        "test": (
            pvalue is not None
            and say(
                "beyond" if is_significant(number, subject) else "chance",
                p=pvalue,
                adjusted=adjusted_phrase(number),
            )
        ),
    }
    text = fill(
        SENTENCES.get(number.key, "{key}: {value:figure}."),
        key=number.key,
        f=score_phrase(subject),
        z=subject_phrase(subject),
        s=s,
        y="target" if subject.target is None else subject.target.name,
        value=number.value,
        share=_share_phrase(number),
        threshold=0.5 if subject.threshold is None else subject.threshold,
        **{name: tail or "" for name, tail in tails.items()},
    )
    return capitalize(text)


def _share_phrase(number: Number) -> str:
    """Return a share in percent. If it isn't positive, a probe recovers nothing; shares of other
    kinds are merely too small to be estimated.
    """
    if number.value > 0 or number.key in RATIOS:
        return percent(number.value)
    return "nothing" if number.key.startswith("probe_") else say("not_above_chance")


def gap_phrase_with_interval(gap: Number) -> str:
    """Return a gap with its interval, or with an upper bound only if it is 0."""
    assert gap.interval is not None
    if gap.value == 0:
        return say("at_most", high=gap.interval.high)
    low, high = map(formatting.format_estimate, gap.interval)
    return f"{formatting.format_estimate(gap.value)} ({low} to {high})"


def dependence_lines(attribute: AttributeAudit, subject: Subject) -> list[str]:
    """Return lines with the results of the dependence test and the probes for an attribute."""
    numbers, s, z = attribute.all_rows, attribute.name, subject_phrase(subject)
    lines = []
    test = numbers.get("hsic")
    if test is not None:
        key = "dependent" if is_significant(test, subject) else "not_dependent"
        lines.append(say(key, z=z, s=s, test=test, adjusted=adjusted_phrase(test)))
    probes = [number for number in numbers.numbers if number.key.startswith("probe_")]
    if probes:
        best = max(probes, key=lambda number: number.value)
        model = "a linear model" if best.key == "probe_linear" else "boosted trees"
        key = "not_recovered" if best.value < 0.01 else "recovered"
        lines.append(say(key, z=z, s=s, model=model, best=best))
    return lines


def verdict_phrase(check: LimitCheck) -> str:
    """Return the verdict on a limit or, if it is uncertain, the more probable one."""
    if check.verdict != "unclear" or (check.base == "gap" and check.reduction is None):
        return check.verdict
    keeps = check.value >= check.limit if check.key in RATIOS else check.value <= check.limit
    return "probably kept" if keeps else "probably not kept"


def compares_noise(check: LimitCheck) -> bool:
    """Return whether a share refers to a gap that is not significant, and the present gap is not
    significant either.
    """
    return check.base == "gap" and check.reduction is None and check.interval.low <= 0


def reduced_phrase(
    was: float, now: float, reduction: Interval | None, *, noise: bool = False
) -> str:
    """Return a phrase with the share by which a gap was reduced and its interval; `noise` is
    whether neither gap is significant.
    """
    if noise or was == now == 0:
        return say("not_significant")
    if reduction is None:
        return say("unknown_share", was=was, now=now)
    share = 1 - now / was
    if min(share, reduction.low) >= 0:
        return say("reduced", share=share, ends=reduction)
    size, low, high = map(_reduction_phrase, (share, *reduction))
    return say("moved_by", size=size, low=low, high=high)


def _reduction_phrase(share: float) -> str:
    return say("larger" if share < 0 else "smaller", share=abs(share))


def aim_sentence(check: LimitCheck, what: str) -> str:
    """Return a sentence with the share by which a gap was reduced, and whether that reaches the
    requested share.
    """
    assert check.reference is not None
    assert check.share is not None
    was, now = check.reference.value, check.value
    reduced = reduced_phrase(was, now, check.reduction, noise=compares_noise(check))
    values = {"what": what, "reduced": reduced}
    if check.reduction is None:
        return say("not_judged", **values)
    keys = {"kept": "reached", "not kept": "missed", "probably not kept": "perhaps_reached"}
    key = keys.get(verdict_phrase(check), "unsettled")
    asked = say("asked_most" if check.share > 1 else "asked_share", share=check.share)
    return say(key, **values, asked=asked)


def drift_verdict(change: Change) -> str:
    """Return whether a number has changed: significantly after adjustment for all comparisons,
    significantly only without adjustment, or not significantly.
    """
    if change.changed:
        return say("law_changed" if change.key in ("attribute", "score") else "changed")
    return say("perhaps_changed" if change.significant else "no_change_seen")


def drift_name(change: Change) -> str:
    """Return the name of the compared number."""
    text: str = WORDS["changes"][change.key].format(s=change.attribute)
    return text


def drift_cells(change: Change) -> tuple[str, str, str, str]:
    """Return the name of a number, its values before and after, the interval of the difference (or
    a p-value if there is none), and whether it has changed.
    """
    reach = say("drift_p", p=change.pvalue)
    if change.interval is not None:
        reach = say("drift_reach", ends=change.interval)
    moved = say("moved_apart" if change.key == "shape" else "moved", change=change)
    return drift_name(change), moved, reach, drift_verdict(change)


def drift_line(change: Change) -> str:
    """Return the contents of :func:`drift_cells` as one line."""
    name, moved, reach, verdict = drift_cells(change)
    return f"{capitalize(name)}: {moved}, {reach}; {verdict}."


def has_groups(audit: Audit) -> bool:
    """Return whether rows are grouped."""
    return audit.rows.groups is not None and audit.rows.groups < audit.rows.used


def remove_options(remark: str) -> str:
    """Return a remark without the clauses that name an option of the command, since readers of a
    report don't run the command; of a remark that is one clause, only an option in parentheses is
    left out.

    Examples
    --------
    >>> remove_options("'id' seems to identify rows; to use it, name it with --features.")
    "'id' seems to identify rows."
    >>> remove_options("9 occurs 52 times in 'age'. If it means missing, say so (--missing 9).")
    "9 occurs 52 times in 'age'."
    """
    for text in (remark, re.sub(r" \([^()]*--[a-z][^()]*\)", "", remark)):
        clauses = re.split(r"(?<=[.;]) ", text)
        kept = " ".join(clause for clause in clauses if not re.search(r"(^|\W)--[a-z]", clause))
        if kept:
            return f"{kept[:-1]}." if kept.endswith(";") else kept
    return ""


def warnings(audit: Audit) -> list[str]:
    """Return cautions about the data: the audit's, then the caller's remarks."""
    rows, subject = audit.rows, audit.subject
    remarks = {
        "grouped": has_groups(audit) and rows.effective is None,
        "weighted": rows.effective is not None and not has_groups(audit),
        "grouped_weighted": rows.effective is not None and has_groups(audit),
        "few_by_weight": rows.weighted is not None and has_few_effective(rows.used, rows.weighted),
        "few_by_group": rows.effective is not None
        and rows.weighted is not None
        and not has_few_effective(rows.used, rows.weighted)
        and has_few_effective(rows.used, rows.effective),
        "left_out": rows.independent < LEAST_ROWS,
        "sampled": rows.sample is not None,
        "dropped": rows.dropped > 0,
        "few_rows": rows.used < 500,
        "too_good": any(one.value >= TOO_GOOD.get(one.key, math.inf) for one in audit.quality),
    }
    values = {
        "rows": rows,
        "share": rows.dropped / max(rows.given, 1),
        "subject": subject,
        "units": audit.context.people or "units",
    }
    lines = [say(key, **values) for key, true in remarks.items() if true]
    for attribute in audit.attributes:
        curve, positives = attribute.all_rows.curves.get("gdp"), attribute.positives
        if curve is not None and all(curve.sparse):
            lines.append(say("sparse", s=attribute.name, least=SPARSE))
        if positives is not None and positives.rows < 500:
            lines.append(say("few_favoured", positives=positives))
    return list(dict.fromkeys([*lines, *audit.context.remarks]))


def banded_sentence(
    attribute: AttributeAudit, audit: Audit, noun: str, *, one_class: bool = False
) -> str:
    r"""Return a sentence with the gap between bins of an attribute, computed as in a pivot table,
    and the gap expected by chance, :math:`\sqrt{2 / \pi} \, \sigma \sum_b \frac{n_b}{n} \sqrt{1 /
    n_b - 1 / n}` for scores with standard deviation :math:`\sigma`; empty for weighted or grouped
    rows. If the target has several classes, `one_class` adds the name of the class.
    """
    curve, law = attribute.all_rows.curves.get("gdp"), audit.subject.law
    gap = attribute.all_rows.get("gdp")
    if curve is None or gap is None or law is None or audit.rows.effective or has_groups(audit):
        return ""
    rows = np.array(curve.rows)
    total = rows.sum()
    band = np.minimum(BANDS * (np.cumsum(rows) - rows / 2) / total, BANDS - 1).astype(int)
    sizes = np.bincount(band, rows)
    sums = np.bincount(band, rows * np.array(curve.mean))[sizes > 0]
    sizes = sizes[sizes > 0]
    shown = float((np.abs(sums - sizes * curve.overall)).sum() / total)
    shares = np.diff(law.shares, prepend=0.0)
    spread = math.sqrt(shares @ (np.array(law.values) - law.mean) ** 2)
    errors = np.sqrt(np.maximum(1 / sizes - 1 / total, 0.0))
    chance = math.sqrt(2 / math.pi) * spread * float(sizes @ errors) / total
    starts = [format_value(curve.start[i]) for i in np.unique(band, return_index=True)[1]]
    values = {"shown": shown, "chance": chance, "gap": gap, "noun": noun}
    values |= {"bands": len(sizes), "starts": join_names(starts)}
    of = say("of_class", outcome=outcome_phrase(audit.subject)) if one_class else ""
    return say("banded", s=attribute.name, of=of, **values)


def join_names(names: Sequence[str]) -> str:
    """Return names as a list in prose, such as “age, job and town”."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def condition_phrase(among: str | None, audit: Audit) -> str:
    """Return a phrase for the rows to which a conditional gap refers; empty for all rows."""
    words: str = WORDS["among"].get(among, "")
    return words.format(
        outcome=outcome_phrase(audit.subject),
        favoured=favoured_phrase(audit.subject),
        control=control_phrase(audit),
    )


def control_phrase(audit: Audit) -> str:
    """Return the names of the controls, such as “education and sex”."""
    equal = [attribute.all_rows.within for attribute in audit.attributes]
    return next((within.label for within in equal if within), "")


def tradeoff_rows(tradeoff: TradeOff) -> list[tuple[TradeOffPoint, str]]:
    """Return the trade-offs with labels, for a table; the last two are measured on the report's
    rows.
    """
    first = tradeoff.points[0]
    gap = first.gaps[tradeoff.worst].value
    rows = []
    for point in tradeoff.points:
        part = point.gaps[tradeoff.worst].value
        name = f"{100 * part / gap:.0f} % of the gap" if gap else ""
        if point is first:
            name = "no limit"
        rows.append((point, name + (" (chosen)" if point.chosen else "")))
    return [
        *rows,
        (tradeoff.before, "this report, no limit"),
        (tradeoff.after, "this report, chosen"),
    ]
