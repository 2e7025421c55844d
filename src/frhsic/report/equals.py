"""Gaps among people with the same controls: next to the gap among all people, and stratum by
stratum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frhsic._pictures import Frame
from frhsic.auditing.results import Audit, Curve, Population, Within
from frhsic.report.people import axis_name, curve_line, drawn_domain, drawn_extent, people_phrase
from frhsic.report.words import drift_verdict, say

MOST_PICTURES = 8
"""Number of strata whose curves are shown at first; others are collapsed."""


def equal_gaps(audit: Audit, s: str) -> Within | None:
    """Return the gaps along an attribute among people with the same controls."""
    return audit[s].all_rows.within


def equal_sentence(audit: Audit, s: str) -> str:
    """Return the gap among people with the same controls next to the gap among all people, and
    their difference; empty without controls.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    change = within.differences[0]
    key = "equal_differs" if change.significant else "equal_alike"
    text = say(
        "equal",
        people=people_phrase(audit),
        control=within.label,
        gap=within["gdp"],
        whole=audit[s].all_rows["gdp"],
    )
    return text + say(key, size=change.after - change.before, ends=change.interval)


def first_equal_sentence(audit: Audit, s: str) -> str:
    """Return a short statement, for the first screen, of the gap among people with the same
    controls, next to the gap among all people or, if known, the earlier one.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    values = {"people": people_phrase(audit), "control": within.label, "gap": within["gdp"]}
    for change in audit.drift:
        if (change.key, change.attribute) == ("within", s):
            return say("equal_since", **values, change=change, verdict=drift_verdict(change))
    worst = ""
    if within.worst is not None:
        worst = say("equal_worst", name=within.worst, gap=within.strata[within.worst]["gdp"])
    return say("equal_first", **values, whole=audit[s].all_rows["gdp"], worst=worst)


def worst_stratum_sentence(audit: Audit, s: str) -> str:
    """Return the stratum with the largest gap, or say that none is significant by itself."""
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    if within.worst is None:
        return say("no_worst_stratum", control=within.label)
    worst = within.strata[within.worst]
    return say(
        "worst_stratum",
        control=within.label,
        name=within.worst,
        gap=worst["gdp"],
        rows=worst.rows,
        people=people_phrase(audit),
    )


def parts_sentence(audit: Audit, s: str) -> str:
    """Return the gap of all people as the sum of a part within strata and one between them."""
    within = equal_gaps(audit, s)
    if within is None:
        return ""
    whole = audit[s].all_rows["gdp"].value
    parts = {"inside": whole - within.between, "between": within.between}
    return say("equal_parts", whole=whole, control=within.label, **parts)


def sorted_strata(within: Within) -> list[tuple[str, Population]]:
    """Return the strata: first those with a significant gap, the largest first, then the others,
    the most people first.
    """

    def weight(named: tuple[str, Population]) -> tuple[float, int]:
        gap = named[1].get("gdp")
        return (0.0 if gap is None or not gap.significant else -gap.value), -named[1].rows

    return sorted(within.strata.items(), key=weight)


def stratum_caption(audit: Audit, s: str, name: str) -> str:
    """Return name, gap and people of a stratum."""
    within = equal_gaps(audit, s)
    assert within is not None
    group = within.strata[name]
    gap = group.get("gdp")
    values = {"name": name, "s": s, "rows": group.rows, "people": people_phrase(audit)}
    if gap is None:
        return say("constant_stratum", **values)
    return say("stratum", **values, gap=gap)


def stratum_pictures(audit: Audit, s: str) -> list[tuple[str, str]]:
    """Return name and curve of each stratum: the mean score minus that of the stratum. All curves
    have the same scale.
    """
    within = equal_gaps(audit, s)
    if within is None:
        return []
    attribute = audit[s]
    curves = {name: center_curve(group.curves["gdp"]) for name, group in sorted_strata(within)}
    domain, cut = drawn_domain(attribute, attribute.all_rows.curves["gdp"])
    extent = drawn_extent([*curves.values()], [], attribute.law)
    pictures = []
    for name, curve in curves.items():
        names = s + cut, axis_name(audit), say("drawn_stratum", s=s, name=name)
        frame = Frame(domain, extent, names, 300, 200, small=True)
        line = curve_line("after", curve, domain)
        pictures.append((name, frame.svg([line] if line.x else [], level=(0.0, ""))))
    return pictures


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
