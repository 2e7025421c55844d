"""Gaps among people with the same controls, compared with the gap among all people, and by
stratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frhsic._pictures import Frame, Line
from frhsic.auditing.results import SPARSE, Audit, Curve, LimitCheck, Population, Within
from frhsic.report.people import (
    axis_name,
    curve_line,
    drawn_domain,
    drawn_extent,
    rows_phrase,
)
from frhsic.report.words import drift_verdict, gap_phrase_with_interval, say

MOST_PICTURES = 8
"""Number of strata whose curves are shown at first; others are collapsed."""


def equal_gaps(audit: Audit, s: str) -> Within | None:
    """Return an attribute's gaps among people with the same controls."""
    return audit[s].all_rows.within


def equal_sentence(audit: Audit, s: str) -> str:
    """Return a sentence with the gap among people with the same controls, the gap among all people,
    and their difference; empty if there are no controls.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    change = within.differences[0]
    size = change.after - change.before
    assert change.interval is not None
    text = say(
        "equal",
        people=rows_phrase(audit),
        control=within.label,
        gap=gap_phrase_with_interval(within["gdp"]),
        whole=gap_phrase_with_interval(audit[s].all_rows["gdp"]),
    )
    if not change.significant:
        return text + say("equal_alike", size=size, ends=change.interval)
    low, high = sorted(abs(end) for end in change.interval)
    key = "equal_larger" if size < 0 else "equal_smaller"
    return text + say(key, size=abs(size), low=low, high=high)


def first_equal_sentence(audit: Audit, s: str, limits: Sequence[LimitCheck]) -> str:
    """Return a short statement for the first screen: the gap among people with the same controls,
    compared with the earlier gap or the gap among all people, and the worst stratum.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    for change in audit.drift:
        if (change.key, change.attribute) == ("within", s):
            return say(
                "equal_since",
                people=rows_phrase(audit),
                control=within.label,
                gap=gap_phrase_with_interval(within["gdp"]),
                change=change,
                verdict=drift_verdict(change),
            )
    return f"{equal_sentence(audit, s)} {worst_stratum_sentence(audit, s, limits)}"


def worst_stratum_sentence(audit: Audit, s: str, limits: Sequence[LimitCheck] = ()) -> str:
    """Return a sentence with the largest significant gap in any stratum, and whether it is
    certainly above a limit on the average over strata; or a sentence that says that no gap is
    significant.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    name = within.worst
    if name is None:
        return say(
            "no_worst_stratum", control=within.label, least=SPARSE, people=rows_phrase(audit)
        )
    worst = within.strata[name]
    gap = worst["gdp"]
    assert gap.interval is not None
    rest = (
        group["gdp"] for other, group in within.strata.items() if other != name and group.numbers
    )
    overlap = any(one.interval and one.interval.high >= gap.interval.low for one in rest)
    text = say(
        "worst_stratum",
        control=within.label,
        name=name,
        gap=gap,
        rows=worst.rows,
        people=rows_phrase(audit),
        least=SPARSE,
        others=say("overlaps") if overlap else "",
    )
    for check in limits:
        limited = check.attribute, check.key, check.among, check.base
        numeric = limited in ((s, "gdp", "equal", ""), (s, "gdp", "equal", "base rate"))
        if numeric and gap.interval.low > check.limit:
            text += say("worst_above", name=name, limit=check.limit)
    return text


def parts_sentence(audit: Audit, s: str) -> str:
    """Return a sentence that splits the gap among all people into a part within strata and a part
    between them.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    whole = audit[s].all_rows["gdp"].value
    return say(
        "equal_parts",
        people=rows_phrase(audit),
        control=within.label,
        whole=whole,
        inside=whole - within.between,
        between=within.between,
        gap=within["gdp"].value,
    )


def picture_note(audit: Audit, s: str) -> str:
    """Return a note about which people the first screen's plot shows, if there are controls."""
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    return say("drawn_all", people=rows_phrase(audit), control=within.label)


def sorted_strata(within: Within) -> list[tuple[str, Population]]:
    """Return the strata: first those with significant gaps, sorted by gap, then the others, sorted
    by number of people.
    """

    def weight(named: tuple[str, Population]) -> tuple[float, int]:
        gap = named[1].get("gdp")
        return (0.0 if gap is None or not gap.significant else -gap.value), -named[1].rows

    return sorted(within.strata.items(), key=weight)


def stratum_caption(audit: Audit, s: str, name: str) -> str:
    """Return the name, gap and number of people of a stratum."""
    within = equal_gaps(audit, s)
    assert within is not None
    group = within.strata[name]
    gap = group.get("gdp")
    values = {"name": name, "s": s, "rows": group.rows, "people": rows_phrase(audit)}
    if gap is None:
        return say("constant_stratum", **values)
    return say("stratum", **values, gap=gap)


def stratum_pictures(audit: Audit, s: str) -> list[tuple[str, str]]:
    """Return the name and curve of each stratum: the mean score minus the mean of the stratum. All
    plots have the same scale, which covers the largest stratum and all means over enough people;
    values outside are clipped.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return []
    attribute = audit[s]
    curves = {name: center_curve(group.curves["gdp"]) for name, group in sorted_strata(within)}
    domain, cut = drawn_domain(attribute, attribute.all_rows.curves["gdp"])
    means = [
        mean
        for curve in curves.values()
        for mean, sparse in zip(curve.mean, curve.sparse)
        if not sparse
    ]
    largest = max(within.strata, key=lambda name: within.strata[name].rows)
    extent = drawn_extent([curves[largest]], means, attribute.law)
    pictures = []
    for name, curve in curves.items():
        names = s + cut, axis_name(audit), say("drawn_stratum", s=s, name=name)
        frame = Frame(domain, extent, names, 300, 200, small=True)
        line = cut_line(curve_line("after", curve, domain), extent)
        pictures.append((name, frame.svg([line] if line.x else [], level=(0.0, ""))))
    return pictures


def cut_line(line: Line, extent: tuple[float, float]) -> Line:
    """Return a line and its band, clipped to a plot's range."""

    def cut(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(min(max(value, extent[0]), extent[1]) for value in values)

    return replace(line, y=cut(line.y), low=cut(line.low), high=cut(line.high))


def center_curve(curve: Curve) -> Curve:
    """Return a curve minus its overall mean."""

    def shifted(values: Sequence[float]) -> tuple[float, ...]:
        return tuple(value - curve.overall for value in values)

    return replace(
        curve,
        overall=0.0,
        mean=shifted(curve.mean),
        low=shifted(curve.low),
        high=shifted(curve.high),
    )
