"""Reports made by hand, for the tests of the page: every field is set here, nothing is computed
from data.
"""

from __future__ import annotations

import math
from dataclasses import replace

from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Change,
    Context,
    Curve,
    Histogram,
    Law,
    Number,
    Population,
    RowCounts,
    Subject,
    Target,
)
from frhsic.estimators.frontier import Gap
from frhsic.intervals import Interval
from frhsic.report.model import Report, Stop, TradeOff, TradeOffPoint

SUBJECT = Subject(
    "score",
    score_name="score",
    target=Target("income"),
    threshold=0.5,
    span=(0.0, 1.0),
    law=Law((0.0, 0.4, 1.0), (0.2, 0.6, 1.0), 0.3, 30162, False),
)


def curve(strength: float = 1.0, points: int = 81, overall: float = 0.3) -> Curve:
    grid = tuple(17 + 73 * i / (points - 1) for i in range(points))
    rows = tuple(2400 * math.exp(-(((s - 36) / 17) ** 2)) + 4 for s in grid)
    mean = tuple(
        overall + strength * 0.17 * math.sin((s - 22) / 17) * math.exp(-(((s - 48) / 26) ** 2))
        for s in grid
    )
    wide = [0.4 / math.sqrt(r) for r in rows]
    return Curve(
        grid=grid,
        mean=mean,
        overall=overall,
        start=tuple(s - 0.4 for s in grid),
        end=tuple(s + 0.4 for s in grid),
        low=tuple(m - w for m, w in zip(mean, wide)),
        high=tuple(m + w for m, w in zip(mean, wide)),
        rows=rows,
        sparse=tuple(r < 30 for r in rows),
        confidence=0.95,
    )


def number(key: str, value: float, *, width: float = 0.02, pvalue: float | None = None) -> Number:
    interval = Interval(value - width, value + width, 0.95, "delete-group jackknife, 20 groups")
    return Number(key, value, 4000, interval, 0.004, pvalue)


def population(strength: float = 1.0) -> Population:
    return Population(
        rows=30162,
        numbers=(
            number("gdp", 0.0912 * strength, width=0.004, pvalue=0.0033),
            number("standardized_gdp", 0.31 * strength),
            number("hsic", 0.00412 * strength, width=0.0004, pvalue=1e-9),
            number("hsic_effect", 0.143 * strength),
            number("squared_distance_correlation", 0.33 * strength),
            number("rank_gap", 0.12 * strength),
            Number("probe_linear", 0.162 * strength, 4000, under_independence=-0.01),
            Number("probe_trees", 0.291 * strength, 4000, under_independence=-0.02),
            number("decision_gdp", 0.112 * strength, pvalue=0.0033),
        ),
        curves={"gdp": curve(strength), "decision_gdp": curve(strength, overall=0.25)},
    )


def attribute(name: str = "age", strength: float = 1.0) -> AttributeAudit:
    edges = tuple(17 + 73 * i / 40 for i in range(41))
    return AttributeAudit(
        name=name,
        histogram=Histogram(
            edges, tuple(int(2000 * math.exp(-((((a + 0.9) - 36) / 17) ** 2))) for a in edges[:-1])
        ),
        law=Law((17.0, 36.0, 90.0), (0.1, 0.5, 1.0), 38.0, 30162, False),
        all_rows=population(strength),
        positives=replace(population(0.6 * strength), rows=7508),
    )


def audit(
    *names: str, strength: float = 1.0, title: str = "Adult: income score against age"
) -> Audit:
    return Audit(
        subject=SUBJECT,
        rows=RowCounts(given=32561, dropped=2399, used=30162, independent=30162),
        attributes=tuple(attribute(name, strength) for name in names or ("age",)),
        settings={"confidence": 0.95, "resamples": 200, "seed": 0},
        context=Context(title=title, source="adult.csv", remarks=("The file has no header.",)),
    )


def change(key: str, name: str, before: float, after: float, width: float = 0.004) -> Change:
    size = after - before
    shares = ((after + side * width) / before for side in (1, -1))
    reduction = Interval(*(1 - share for share in shares), 0.95, "")
    pvalue = 0.001 if abs(size) > width else 0.4
    ends = Interval(size - width, size + width, 0.95, "")
    return Change(key, name, before, after, ends, pvalue, 0.05, reduction=reduction)


def tradeoff(*names: str) -> TradeOff:
    """Ten trade-offs; the sixth is chosen by a limit of a fifth of the gap."""
    names = names or ("age",)

    def point(i: float, chosen: bool = False) -> TradeOffPoint:
        gap = 0.0912 / (1 + 0.55 * i**1.35)
        gaps = (Gap(gap, 0.8 * gap, 1.3 * gap),) * len(names)
        return TradeOffPoint(0.31 + 0.002 * i**1.5, gaps, chosen)

    def stop(limit: str, i: float, chosen: bool = False) -> Stop:
        share = point(i).gaps[0].value / point(0.2).gaps[0].value
        costs = (
            change("true_positive_rate", "", 0.7, 0.7 - 0.01 * i, width=0.02),
            change("auc", "", 0.8, 0.8 - 0.004 * i, width=0.01),
        )
        return Stop(limit, point(i, chosen), costs, {name: curve(share, 41) for name in names})

    stops = stop("none", 0.2), stop("50%", 1.5), stop("20%", 4.5, chosen=True), stop("0", 9)
    points = tuple(point(i, i == 5) for i in range(10))
    return TradeOff(
        aim="score",
        condition=None,
        measure="log_loss",
        attributes=names,
        limits=(None,) * len(names),
        shares=(0.2,) * len(names),
        met=True,
        points=points,
        before=point(0.2),
        after=point(4.5),
        changes=tuple(
            change("gdp", name, point(0.2).gaps[0].value, point(4.5).gaps[0].value)
            for name in names
        ),
        stops=stops,
    )


def full() -> Report:
    return Report(
        audit("age", "hours per week", strength=0.2),
        before=audit("age", "hours per week"),
        tradeoff=tradeoff("age", "hours per week"),
    )


HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    '=HYPERLINK("http://example.invalid","x")',
    "{{ 7*7 }}<!--",
)


def hostile() -> Report:
    """Every text that can come from a user's file is a piece of markup or a formula."""
    first, second, third, formula, template = HOSTILE
    base = audit(first, formula, title=second)
    population_ = base.attributes[0].all_rows
    subject = replace(base.subject, name=second, score_name=third)
    gap, standardized, *others = population_.numbers
    numbers = (replace(gap, key=formula), replace(standardized, key="-2+3"), *others)
    attributes = (
        replace(base.attributes[0], all_rows=replace(population_, numbers=numbers)),
        base.attributes[1],
    )
    context = replace(base.context, source=template, remarks=(first,))
    return Report(
        replace(
            base, subject=subject, context=context, attributes=attributes, settings={first: second}
        ),
        before=base,
        tradeoff=tradeoff(first),
    )
