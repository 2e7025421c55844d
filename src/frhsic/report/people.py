"""The mean score by an attribute, as a plot and for groups of people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from frhsic._pictures import Frame, Line, curve_svg, padded_range
from frhsic.auditing.results import SPARSE, WINDOWS_KEY, AttributeAudit, Audit, Curve, Law
from frhsic.formatting import format_interval
from frhsic.report.model import Report, Stop
from frhsic.report.words import (
    WORDS,
    fill,
    group_phrase,
    has_groups,
    outcome_phrase,
    say,
    score_phrase,
)

MOST_GROUPS = 5
LONGEST_MARK = 30
"""Longest name of an attribute that fits next to the range of a group in the plot."""
ERROR_TESTS = 3
"""Number of tests of errors that share the level: of their mean, of their dependence on the
attribute, and of single groups.
"""


@dataclass(frozen=True)
class Group:
    """People with similar values of an attribute: who they are, how many rows they have and what to
    call these rows (with `units`, including the number of people), their score before and now (None
    if unknown), whether its band excludes the average, their outcome, and how much too high the
    score is, if the error is significant.
    """

    where: str
    rows: float
    people: str
    units: int | None
    was: float | None
    mean: float | None
    apart: bool
    actual: float | None
    error: float | None


def rows_phrase(audit: Audit) -> str:
    """Return what to call the rows: people, unless one person may have several rows."""
    return "rows" if has_groups(audit) else people_phrase(audit)


def people_phrase(audit: Audit) -> str:
    """Return whom the scores are about: people or, if several rows may belong together, units."""
    return audit.context.people or ("units" if has_groups(audit) else "people")


def n_people(audit: Audit) -> int:
    """Return the number of people, or of the units that :func:`people_phrase` names."""
    return audit.rows.groups or audit.rows.used


def group_rows_phrase(curve: Curve, i: int, audit: Audit) -> str:
    """Return what to call the rows of a group, with the number of people if one person may have
    several rows.
    """
    if not curve.units or not has_groups(audit):
        return rows_phrase(audit)
    return f"rows of {curve.units[i]:,} {people_phrase(audit)}"


def score_noun(audit: Audit) -> str:
    """Return the noun for the audited numbers: prediction, decision or score."""
    if any(quality.key == "root_squared_error" for quality in audit.quality):
        return "prediction"
    return "decision" if are_decisions(audit) else "score"


def are_decisions(audit: Audit) -> bool:
    """Whether all scores are 0 or 1. The share of positive decisions needn't equal the share of the
    outcome, so decisions are not called too high or too low.
    """
    law = audit.subject.law
    return law is not None and set(law.values) <= {0.0, 1.0}


def sort_groups(attribute: AttributeAudit, audit: Audit) -> list[int]:
    """Return the groups with enough rows: first those with significant errors, sorted by the size
    of the error; then the rest, sorted by distance from the overall mean.
    """
    curve = attribute.all_rows.curves["gdp"]

    def weight(i: int) -> tuple[bool, float]:
        error = _error(attribute, audit, i)
        if error is None:
            return False, abs(curve.mean[i] - curve.overall)
        return True, abs(error)

    return sorted(curve.trusted_groups, key=weight, reverse=True)


def _error(attribute: AttributeAudit, audit: Audit, i: int) -> float | None:
    """Return how far the mean score of a group is above its mean outcome, if the band of errors,
    which covers all groups of all attributes, excludes 0. None for decisions, or if there are few
    rows.
    """
    rest = attribute.all_rows.curves.get("calibration_gdp")
    if rest is None or rest.sparse[i] or are_decisions(audit) or not _is_apart(rest, i):
        return None
    return -rest.mean[i]


def n_comparisons(audit: Audit) -> int:
    """Return the number of groups, including wide windows, over all attributes; the tests of their
    errors share one level.
    """
    return sum(
        len(attribute.all_rows.curves[key].grid)
        for attribute in audit.attributes
        for key in ("calibration_gdp", WINDOWS_KEY)
        if key in attribute.all_rows.curves
    )


def _errors_change(attribute: AttributeAudit, audit: Audit) -> bool:
    """Return whether errors vary significantly with the attribute."""
    gap = attribute.all_rows.get("calibration_gdp")
    if gap is None or gap.pvalue is None:
        return False
    pvalue = gap.pvalue if gap.adjusted is None else gap.adjusted
    return pvalue * ERROR_TESTS <= audit.subject.level


def _errors_sentence(attribute: AttributeAudit, audit: Audit) -> str:
    """Return a sentence about errors if no group has a significant one."""
    found = _wide_errors_sentence(attribute, audit)
    if found:
        return found
    key = "none_wrong" if overall_error(audit) is None else "none_apart"
    curve = attribute.all_rows.curves["calibration_gdp"]
    size, mean = unnoticed_error(curve), attribute.all_rows.curves["gdp"].overall
    large = audit.subject.chances and size >= mean
    values = {"size": size, "noun": score_noun(audit), "people": rows_phrase(audit)}
    unnoticed = say("unnoticed_mean" if large else "unnoticed", **values)
    return say(key, of=size_phrase(curve, audit), count=n_comparisons(audit), unnoticed=unnoticed)


def _wide_errors_sentence(attribute: AttributeAudit, audit: Audit) -> str:
    """Return a sentence that says whether errors vary with the attribute and names the wide window
    with the largest significant error; empty if neither is significant.
    """
    s = attribute.name
    curves = attribute.all_rows.curves
    wide = curves.get(WINDOWS_KEY, curves["calibration_gdp"])
    worst = _worst_window(wide)
    change = _errors_change(attribute, audit)
    of = size_phrase(curves["calibration_gdp"], audit)
    if worst is not None:
        return say(
            "errors_where",
            start=say("errors_along", s=s) if change else "The",
            where=group_phrase(wide, worst, s),
            rows=wide.rows[worst],
            people=group_rows_phrase(wide, worst, audit),
            noun=score_noun(audit),
            way="low" if wide.mean[worst] > 0 else "high",
            size=abs(wide.mean[worst]),
            of=of,
            count=n_comparisons(audit),
        )
    if change:
        values = {"people": rows_phrase(audit), "count": n_comparisons(audit)}
        return say("errors_change", s=s, of=of, **values)
    return ""


def _worst_window(wide: Curve) -> int | None:
    """Return the position of the largest significant error; None if there is none."""
    wrong = [i for i in wide.trusted_groups if _is_apart(wide, i)]
    return max(wrong, key=lambda i: abs(wide.mean[i]), default=None)


def largest_error_sentence(report: Report, s: str) -> str:
    """Return a sentence about the largest significant error by an attribute; empty if there is
    none.
    """
    audit = report.audit
    attribute = audit[s]
    if "calibration_gdp" not in attribute.all_rows.curves or are_decisions(audit):
        return ""
    if not has_outcomes(attribute):
        return say("errors_vary", s=s) if _errors_change(attribute, audit) else ""
    group = groups(report, s)[0]
    if group.error is None:
        return _wide_errors_sentence(attribute, audit)
    how = group_judgement(group, audit)
    of = size_phrase(attribute.all_rows.curves["gdp"], audit, "among_size")
    return say("wrong_by", s=s, group=group, how=how, people=group.people, of=of)


def _few_sentence(attribute: AttributeAudit, audit: Audit) -> str:
    """Return a sentence that says that all groups are too small to compare scores with outcomes;
    empty if there are no outcomes.
    """
    errors = attribute.all_rows.curves.get("calibration_gdp")
    if errors is None or are_decisions(audit):
        return ""
    line = say(
        "too_few",
        s=attribute.name,
        people=rows_phrase(audit),
        least=SPARSE,
        size=unnoticed_error(errors),
    )
    if not _errors_change(attribute, audit):
        return line
    return f"{line} {say('errors_vary', s=attribute.name)}"


def has_outcomes(attribute: AttributeAudit) -> bool:
    """Return whether the outcome of any group is shown."""
    rest = attribute.all_rows.curves.get("calibration_gdp")
    return rest is not None and not all(rest.sparse)


def size_phrase(curve: Curve, audit: Audit, key: str = "of_size") -> str:
    """Return a phrase for the size of the groups that are compared; empty if all groups are."""
    if any(curve.sparse) and not all(curve.sparse):
        return say(key, least=SPARSE, people=rows_phrase(audit))
    return ""


def left_out_sentence(audit: Audit, s: str) -> str:
    """Return a sentence that says how many groups, with how many people, are not compared, and why;
    empty if all are compared.
    """
    curve = audit[s].all_rows.curves.get("gdp")
    if curve is None or not size_phrase(curve, audit):
        return ""
    few = [rows for rows, sparse in zip(curve.rows, curve.sparse) if sparse]
    return say(
        "left_out_groups",
        s=s,
        hidden=sum(few),
        people=rows_phrase(audit),
        count=len(few),
        groups=len(curve.rows),
    )


def unnoticed_error(errors: Curve) -> float:
    """Return the median half-width of the band of errors, among groups with enough rows (or all
    groups if there are none). An error of this size is significant in about half of all samples, so
    in half of the groups, errors up to this size are missed at least half of the time.
    """
    widths = sorted((errors.high[i] - errors.low[i]) / 2 for i in errors.trusted_groups)
    return widths[len(widths) // 2]


def _is_apart(rest: Curve, i: int) -> bool:
    """Whether the band of errors excludes 0."""
    return not rest.low[i] <= 0 <= rest.high[i]


def overall_error(audit: Audit) -> float | None:
    """Return how far the mean score is above the mean outcome, or None if the difference is not
    significant.
    """
    errors = (q for q in audit.quality if q.key == "mean_error" and q.standard_error)
    error = next(errors, None)
    if error is None or are_decisions(audit):
        return None
    assert error.standard_error
    pvalue = 2 * float(ndtr(-abs(error.value) / error.standard_error))
    return -error.value if pvalue * ERROR_TESTS <= audit.subject.level else None


def _overall_sentence(report: Report, s: str) -> str:
    """Return a sentence with the mean score and the mean outcome; empty unless their difference is
    significant.
    """
    audit = report.audit
    error = overall_error(audit)
    if error is None:
        return ""
    before = earlier_curve(report, s) if report.before else None
    mean = audit[s].all_rows.curves["gdp"].overall
    return say(
        "all_wrong",
        people=rows_phrase(audit),
        noun=score_noun(audit),
        way="high" if error > 0 else "low",
        size=abs(error),
        mean=mean,
        was="" if before is None else say("was", was=before.overall),
        actual=mean - error,
    )


def picture(report: Report, s: str, stops: Sequence[Stop] = (), *, small: bool = False) -> str:
    """Return the mean score by an attribute as SVG: the earlier mean in gray, the current one with
    its band, the outcome, the distribution of people, and the report's worst group. Each trade-off
    has its own layer; a small plot shows only one.
    """
    audit = report.audit
    attribute = audit[s]
    curve = attribute.all_rows.curves.get("gdp")
    if curve is None:
        return ""
    before = earlier_curve(report, s)
    layers = {"after": curve}
    if small:
        layers = {"after": stops[0].curves[s]}
    elif stops:
        layers = {f"after stop stop-{i}": stop.curves[s] for i, stop in enumerate(stops)}
    domain, cut = drawn_domain(attribute, curve)
    every = [layer for layer in (before, *layers.values()) if layer]
    known = [(x, _actual(attribute, i)) for i, x in enumerate(curve.grid)]
    actual = [(x, mean) for x, mean in known if mean is not None]
    lines = [curve_line("before", before, domain, banded=False)] if before else []
    lines += [curve_line(kind, layer, domain) for kind, layer in layers.items()]
    marks = []
    worst = sort_groups(attribute, audit)[0]
    x = min(max(curve.grid[worst], domain[0]), domain[1])
    error = _error(attribute, audit, worst)
    name = group_phrase(curve, worst, s if len(s) <= LONGEST_MARK else "").strip()
    if error is not None:
        name += say("mark_high" if error > 0 else "mark_low")
    ringed = {} if curve.sparse[worst] else layers
    for kind, layer in ringed.items():
        _, mean = min(zip(layer.grid, layer.mean), key=lambda at: abs(at[0] - curve.grid[worst]))
        marks.append((kind, x, mean, name))
    frame = Frame(
        domain,
        drawn_extent(every, [a for _, a in actual], attribute.law),
        (s if len(s) > LONGEST_MARK else s + cut, axis_name(audit), say("drawn", s=s)),
        300 if small else 720,
        200 if small else 390,
        small,
    )
    edges = attribute.histogram.edges
    return frame.svg(
        lines,
        bars=zip(edges[:-1], edges[1:], attribute.histogram.counts),
        dots=actual,
        level=(curve.overall, say("average", mean=curve.overall)),
        marks=marks,
        neutral=error is None,
        tips=() if small else _tips(curve, s, audit),
    )


def axis_name(audit: Audit) -> str:
    """Return the label of the y-axis, with the meaning of a high score if it is known."""
    subject, noun = audit.subject, score_noun(audit)
    phrase = score_phrase(subject).removeprefix("the ")
    tail = ""
    if "“" not in phrase and phrase != "score":
        noun = phrase
    elif subject.target is not None and noun == "score":
        tail = say("higher", outcome=outcome_phrase(subject))
    if subject.target is not None and subject.target.favours_high is not None:
        tail = say("high_is_good" if subject.target.favours_high else "high_is_bad")
    return say("mean_of", noun=noun) + tail


def attribute_picture(attribute: AttributeAudit, key: str, name: str) -> str:
    """Return a curve over an attribute as SVG, in the range of the first plot."""
    curve = attribute.all_rows.curves[key]
    domain, cut = drawn_domain(attribute, curve)
    line = curve_line("after", curve, domain)
    if not line.x:
        line = curve_line("after", curve, (curve.start[0], curve.end[-1]))
        cut = ""
    return curve_svg(line, curve.overall, (attribute.name + cut, name))


def earlier_curve(report: Report, s: str) -> Curve | None:
    """Return the mean score by an attribute without the limit, or in the earlier audit."""
    earlier = report.before or report.earlier
    for attribute in () if earlier is None else earlier.attributes:
        if attribute.name == s:
            return attribute.all_rows.curves.get("gdp")
    return None


def curve_line(
    kind: str, curve: Curve, domain: tuple[float, float], *, banded: bool = True
) -> Line:
    """Return a curve, extended to the ends of its outermost groups within the plotted range."""
    inside = [i for i, x in enumerate(curve.grid) if domain[0] <= x <= domain[1]]
    if not inside:
        return Line(kind, (), ())
    places = [inside[0], *inside, inside[-1]]
    x = [curve.grid[i] for i in places]
    x[0] = max(curve.start[places[0]], domain[0])
    x[-1] = min(curve.end[places[-1]], domain[1])
    parts = (curve.mean, curve.low, curve.high) if banded else (curve.mean,)
    return Line(kind, x, *([part[i] for i in places] for part in parts))


def drawn_domain(attribute: AttributeAudit, curve: Curve) -> tuple[tuple[float, float], str]:
    """Return the plotted range of the attribute, and a note if it is trimmed. At each end, the
    outermost 1 % of people are left out if they span more than a quarter of the range, and then the
    outermost 5 % if they span more than half.
    """

    def quantile(share: float) -> float:
        return _law_quantile(attribute.law, share)

    low, high = curve.start[0], curve.end[-1]
    cut = 0
    for tail, most in ((0.01, 1 / 4), (0.05, 1 / 2)):
        width = most * (high - low)
        left = quantile(tail) if quantile(tail) - low > width else low
        right = quantile(1 - tail) if high - quantile(1 - tail) > width else high
        if (left, right) != (low, high):
            cut = round(100 * tail)
        low, high = left, right
    return (low, high), say("not_drawn", cut=cut) if cut else ""


def drawn_extent(curves: Sequence[Curve], others: Sequence[float], law: Law) -> tuple[float, float]:
    """Return the range that covers the means of the groups with enough rows, and the bands over the
    central 90 % of people.
    """
    values = [*others]
    for curve in curves:
        values += [curve.overall, *(curve.mean[i] for i in curve.trusted_groups)]
        for x, low, high in zip(curve.grid, curve.low, curve.high):
            if _law_quantile(law, 0.05) <= x <= _law_quantile(law, 0.95):
                values += [low, high]
    return padded_range(min(values), max(values))


def _law_quantile(law: Law, share: float) -> float:
    return next(v for v, below in zip(law.values, law.shares) if below >= share - 1e-12)


def _actual(attribute: AttributeAudit, i: int) -> float | None:
    """Return the mean outcome of a group, or None if there is no target or too few rows."""
    rest = attribute.all_rows.curves.get("calibration_gdp")
    if rest is None or rest.sparse[i]:
        return None
    return round(attribute.all_rows.curves["gdp"].mean[i] + rest.mean[i], 12)


def group_judgement(group: Group, audit: Audit) -> str:
    """Return a phrase that says whether people are scored too low or too high."""
    if group.error is None:
        return say("as_scored")
    return say("too_high" if group.error > 0 else "too_low", size=abs(group.error))


def _tips(curve: Curve, s: str, audit: Audit) -> Iterator[tuple[float, float, str]]:
    people = people_phrase(audit)
    for i, count in enumerate(curve.units or curve.rows):
        size = format_interval(curve.mean[i], curve.low[i], curve.high[i])
        text = say("tip", where=group_phrase(curve, i, s), size=size, count=count, people=people)
        yield curve.start[i], curve.end[i], text


def groups(report: Report, s: str) -> list[Group]:
    """Return the groups to show, starting with the worst."""
    attribute = report.audit[s]
    curve = attribute.all_rows.curves["gdp"]
    before = earlier_curve(report, s) if report.before else None
    worst_groups = []
    for i in sort_groups(attribute, report.audit)[:MOST_GROUPS]:
        was = before.mean[i] if before and before.grid == curve.grid else None
        where = group_phrase(curve, i, s)
        apart = not curve.low[i] <= curve.overall <= curve.high[i]
        outcome = _actual(attribute, i), _error(attribute, report.audit, i)
        size = curve.rows[i], group_rows_phrase(curve, i, report.audit)
        units = curve.units[i] if curve.units and has_groups(report.audit) else None
        worst_groups.append(Group(where, *size, units, was, curve.mean[i], apart, *outcome))
    return worst_groups


def listed_groups(report: Report, s: str) -> list[Group]:
    """Return the groups of the table: those of :func:`groups` or, if none of them has a significant
    error, first the wide window with the largest one. The mean score of a window is not known if
    rows are weighted.
    """
    audit = report.audit
    curves = audit[s].all_rows.curves
    listed = groups(report, s)
    wide = curves.get(WINDOWS_KEY)
    if wide is None or listed[0].actual is None or are_decisions(audit):
        return listed
    worst = _worst_window(wide)
    if worst is None or listed[0].error is not None:
        return listed
    curve = curves["gdp"]
    before = earlier_curve(report, s) if report.before else None
    mean = was = actual = None
    if audit.rows.effective is None:
        inside = [i for i, x in enumerate(curve.grid) if wide.start[worst] <= x <= wide.end[worst]]
        rows = [curve.rows[i] for i in inside]
        mean = float(np.average([curve.mean[i] for i in inside], weights=rows))
        actual = mean + wide.mean[worst]
        if before and before.grid == curve.grid:
            was = float(np.average([before.mean[i] for i in inside], weights=rows))
    window = Group(
        where=group_phrase(wide, worst, s),
        rows=wide.rows[worst],
        people=group_rows_phrase(wide, worst, audit),
        units=wide.units[worst] if wide.units and has_groups(audit) else None,
        was=was,
        mean=mean,
        apart=False,
        actual=actual,
        error=-wide.mean[worst],
    )
    return [window, *listed]


def groups_note(report: Report, s: str) -> str:
    """Return a note about which groups are shown, and in which order."""
    audit, words = report.audit, WORDS["page"]
    count = len(audit[s].all_rows.curves["gdp"].trusted_groups)
    of = size_phrase(audit[s].all_rows.curves["gdp"], audit)
    values = {"s": s, "shown": min(count, MOST_GROUPS), "count": count, "of": of}
    values["comparisons"] = n_comparisons(audit)
    compared = has_outcomes(audit[s]) and not are_decisions(audit)
    note = fill(words["groups_note" if compared else "groups_farthest"], **values)
    combined = len(listed_groups(report, s)) > min(count, MOST_GROUPS)
    return f"{note} {words['groups_combined']}" if combined else note


def worst_sentence(report: Report, s: str) -> str:
    """Return a sentence about the group with the largest significant error. If there is none, it
    describes the group farthest from the average and says whether its mean differs significantly.
    If there are outcomes but no group has enough rows, it says so.
    """
    audit = report.audit
    attribute = audit[s]
    curve = attribute.all_rows.curves["gdp"]
    level = _overall_sentence(report, s) if "calibration_gdp" in attribute.all_rows.curves else ""
    if all(curve.sparse):
        return f"{level} {_few_sentence(attribute, audit)}".strip()
    group = groups(report, s)[0]
    actual = ""
    if group.actual is not None:
        # the outcome is binary, and scores are its probabilities or decisions
        counted = all(quality.key != "root_squared_error" for quality in audit.quality)
        key = "actually" if audit.subject.chances and counted else "actual_mean"
        actual = say(key, actual=group.actual, outcome=outcome_phrase(audit.subject))
    was = "" if group.was is None else say("was", was=group.was)
    key = "furthest"
    how = ""
    beside = say("beside_average", overall=curve.overall)
    if group.error is not None:
        key = "wrong"
        how = f", scored {group_judgement(group, audit)}"
        beside = ""
    elif not group.apart:
        beside = say("near_average", overall=curve.overall)
    if group.error is None and group.actual is not None and not are_decisions(audit):
        level = f"{level} {_errors_sentence(attribute, audit)}"
    start = say(key, of=size_phrase(curve, audit, "among_size"))
    values = {"noun": score_noun(audit), "people": group.people, "was": was, "how": how}
    text = say("group", group=group, **values)
    return f"{level} {start}: {text}{beside}{actual}.".strip()


def trend_sentence(audit: Audit, s: str) -> str:
    """Return a sentence that names the two groups between which the mean score rises or falls most,
    if their bands don't overlap.
    """
    curve = audit[s].all_rows.curves.get("gdp")
    if curve is None or all(curve.sparse):
        return ""
    least, most = (pick(curve.trusted_groups, key=curve.mean.__getitem__) for pick in (min, max))
    if curve.high[least] >= curve.low[most]:
        return ""
    first, last = sorted((least, most))
    return say(
        "trend",
        noun=score_noun(audit),
        way="rises" if first == least else "falls",
        start=curve.mean[first],
        where=group_phrase(curve, first, s),
        end=curve.mean[last],
        there=group_phrase(curve, last, s),
    )
