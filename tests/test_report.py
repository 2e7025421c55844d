"""The report: every number on its pages is one of the audit, and what it claims follows from
them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

import report_samples as samples
from frhsic._pictures import Frame, Line
from frhsic.auditing import Audit, Context, Settings, audit
from frhsic.auditing.gaps import decision_ratio
from frhsic.auditing.results import WINDOWS_KEY, Change, Curve, LimitCheck, Number, Quality
from frhsic.auditing.rows import Rows
from frhsic.estimators import ParityClassifier
from frhsic.estimators.frontier import Gap, IndistinctGapWarning
from frhsic.formatting import (
    figure,
    format_estimate,
    format_exact,
    format_interval,
    format_setting,
    percent,
)
from frhsic.intervals import Interval
from frhsic.report import Report, render, text, trained_report, words, write
from frhsic.report.costs import costs, decision_sentence, stop_gap, stop_name
from frhsic.report.first_page import (
    alarms,
    attribute_lines,
    checks,
    closing_lines,
    decision_gaps,
    gap_size,
    limit_sentence,
    meaning,
    other_changes,
    shortfalls,
    surety,
    verdict,
)
from frhsic.report.page import keep_together
from frhsic.report.people import (
    attribute_picture,
    axis_name,
    group_judgement,
    groups,
    groups_note,
    listed_groups,
    picture,
    sort_groups,
    trend_sentence,
    unnoticed_error,
    worst_sentence,
)
from frhsic.report.trained import _HeldOut
from frhsic.report.words import (
    gap_phrase_with_interval,
    group_phrase,
    outcome_phrase,
    tradeoff_rows,
    warnings,
)

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=40, max_rows=200, probe_rows=200)
FAST = replace(QUICK, fast=True)
CONTEXT = Context(
    source="loans.csv",
    decision="whether a loan is granted",
    people="applicants",
    period="May 2025",
    author="Ann Lee",
    dropped=1,
    origin={"made": "2025-06-01 10:00 UTC", "software": "frhsic"},
)


@pytest.fixture(scope="module")
def audited() -> Audit:
    random = np.random.default_rng(3)
    age = np.round(random.gamma(6, 7, 900) + 18)
    chance = 1 / (1 + np.exp(2.8 - (age - 60) / 25 - random.standard_normal(900)))
    return audit(
        pd.Series(chance, name="score"),
        pd.Series(age, name="age"),
        pd.Series((random.random(900) < chance).astype(int), name="default"),
        threshold=0.2,
        favourable=0,
        limit=["gdp <= 0.2", "gdp <= 10% of base rate", "eo <= 0.3"],
        context=CONTEXT,
        settings=QUICK,
    )


DEFINITION = (
    "The gap is how far the mean score of people with the same age is from the overall mean, on"
    " average."
)


def text_of(html_page: str, part: str = "verdict") -> str:
    section = re.search(rf'<section id="{part}".*?</section>', html_page, re.DOTALL).group(0)
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]+>", " ", section))).strip()


def with_curve(result: Audit, curve: Curve) -> Audit:
    (attribute,) = result.attributes
    curves = attribute.all_rows.curves | {"gdp": curve}
    population = replace(attribute.all_rows, curves=curves)
    return replace(result, attributes=(replace(attribute, all_rows=population),))


# the first screen
# -------------------------------------------------------------------------------------------------


def unfolded(shown: str) -> str:
    """Return the text of a page whose folded parts are closed, without what a pointer shows."""
    body = shown[shown.index("<body") :]
    body = re.sub(r"<(script|style|title)\b.*?</\1>", " ", body, flags=re.DOTALL)
    closed = r'(<details(?: id="[^"]*")?>.*?</summary>).*?</details>'
    body = re.sub(closed, r"\1", body, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_page_has_at_most_1000_words_unfolded(audited: Audit):
    counts = []
    for names in (("age",), ("age", "hours"), ("age", "hours", "distance")):
        before, after = samples.audit(*names), samples.audit(*names, strength=0.2)
        tradeoff = samples.tradeoff(*names)
        report = Report(after, before=before, tradeoff=tradeoff)
        counts.append(len(unfolded(render(report)).split()))
    assert 400 < counts[0] <= 1000
    for fewer, more in pairwise(counts):  # each further attribute
        assert 50 < more - fewer <= 200
    opened = render(report).replace("<details", "<details open")
    assert len(unfolded(opened).split()) > 1200  # the count notices what is not folded
    for result in (audited, replace(audited, limits=(), quality=())):
        shown = unfolded(render(Report(result)))
        assert "Glossary" in shown  # a heading of what is folded
        assert "Hilbert" not in shown  # what is folded
        assert 200 < len(shown.split()) <= 1000


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_control_and_two_attributes_need_at_most_1000_words():
    random = np.random.default_rng(3)
    n = 1_500
    age, hours = random.integers(18, 80, n), np.round(random.normal(38, 10, n))
    job = random.choice(["clerk", "cook", "nurse", "smith"], n)
    skill = random.standard_normal(n) + 0.02 * (age - 45)
    s = pd.DataFrame({"age": age, "hours": hours})
    X = pd.DataFrame({"skill": skill, "job": job})
    y = pd.Series(random.random(n) < 1 / (1 + np.exp(-skill)), name="approved").astype(int)
    model = ParityClassifier(limit="50%", random_state=0, n_jobs=1)
    model.fit(X[:900], y[:900], sensitive_features=s[:900], control_features=X[["job"]][:900])
    remarks = tuple(f"Note {i} on how the cells of the table were read." for i in range(20))
    context = replace(CONTEXT, remarks=remarks)
    report = trained_report(
        model, X[900:], y[900:], sensitive_features=s[900:], settings=QUICK, context=context
    )
    place = next(i for i, stop in enumerate(report.tradeoff.stops) if stop.point.chosen)
    hidden = rf'<dl class="costs stop stop-[^{place}]">.*?</dl>'
    page = re.sub(hidden, "", render(report), flags=re.S)
    page = re.sub(r'<div class="multiples".*?</section>', "", page, flags=re.S)  # printed only
    shown = unfolded(page)
    assert "Among applicants with the same job" in shown
    assert "Note 2 on" in shown
    assert "Note 19 on" not in shown
    assert len(shown.split()) <= 1000


def test_the_first_screen_needs_no_script_and_shows_nothing_that_was_not_stated(audited: Audit):
    shown = render(Report(audited))
    screen = shown[shown.index('<section id="verdict"') : shown.index('<section id="decision"')]
    assert screen.count('<path class="line"') == 1
    assert '<circle class="actual"' in screen
    assert '<circle class="mark"' in screen
    assert "Ann Lee" in shown
    bare = render(Report(replace(audited, context=Context(source="loans.csv"))))
    assert "<dt>Author</dt>" in shown
    assert "<dt>Author</dt>" not in bare
    assert "not stated" not in bare
    assert "<title>loans.csv</title>" in bare
    named = replace(audited, context=Context(title="Loans and age", source="loans.csv"))
    assert "<title>Loans and age</title>" in render(named)


def numbers_in(shown: str) -> set[str]:
    return set(re.findall(r"\d(?:[\d,]*\d)?(?:\.\d+)?", shown))


def known_numbers(report: Report) -> set[str]:
    """Every number that the first screen may show, from the audits alone."""
    result = report.audit
    values = [result.subject.threshold, result.rows.used, 100 * result.subject.confidence]
    shares = []
    states = Counter(check.verdict for check in checks(report))
    values += [*states.values(), states.total()]
    for check in checks(report):
        values += [check.value, *check.interval, check.limit, 100 * (check.share or 0)]
        values += [100 * check.value, 100 * check.limit]
        if check.reference is not None:
            values.append(100 * check.reference.value)
        if check.reduction is not None:
            reduced = 1 - check.value / check.reference.value, *check.reduction
            values += [round(100 * x) for x in reduced] + [100 - 100 * check.share]
    for attribute in result.attributes:
        gap, curve = attribute.all_rows["gdp"], attribute.all_rows.curves["gdp"]
        i = sort_groups(attribute, result)[0]
        values += [100 * gap.value, 100 * gap.settings.get("resolution", 0.0), *gap.interval]
        values += [curve.mean[i], curve.start[i], curve.end[i], curve.rows[i], curve.overall]
        values += [gap.value, abs(curve.mean[i] - curve.overall)]
        decided = attribute.all_rows["decision_gdp"]
        values += [100 * decided.value, *(100 * end for end in decided.interval)]
        values.append(sum(curve.sparse))
        values.append(sum(rows for rows, few in zip(curve.rows, curve.sparse) if few))
        means = [curve.mean[i] for i in curve.trusted_groups]  # the first sentence of the plot
        for mean in (min(means), max(means)):
            i = curve.mean.index(mean)
            values += [mean, curve.start[i], curve.end[i]]
        if report.before is not None:
            values.append(report.before[attribute.name].all_rows.curves["gdp"].mean[i])
        if "calibration_gdp" in attribute.all_rows.curves:
            errors = attribute.all_rows.curves["calibration_gdp"]
            widths = [(errors.high[j] - errors.low[j]) / 2 for j in errors.trusted_groups]
            values.append(float(np.quantile(widths, 0.5, method="higher")))
            rest = errors.mean[i]
            values.append(abs(rest))
            shares.append(curve.mean[i] + rest)
    changes = [*result.drift]
    for stop in () if report.tradeoff is None else report.tradeoff.stops:
        values += [gap.value for gap in stop.point.gaps]
        changes += stop.costs
    for one in changes:
        ends = one.interval or ()
        values += [one.before, one.after, *ends]
        shares += [one.before, one.after, one.after - one.before, *ends]
    count = round(result.subject.base_rate.value * result.rows.used)
    values += [count, result.rows.used - count]
    rows = {"true_positive_rate": count, "false_positive_rate": result.rows.used - count}
    for one in result.quality:
        if one.key in rows or one.key == "accuracy":  # Clopper and Pearson
            of = rows.get(one.key, result.rows.used)
            exact = stats.binomtest(round(one.value * of), of)
            shares += exact.proportion_ci(method="exact")
        reach = 1.959963984540054 * (one.standard_error or 0.0)
        values += [one.value, one.value - reach, one.value + reach]
        shares += values[-3:]
    written = {
        form(x) for x in values for form in (figure, format_setting, format_estimate, format_exact)
    }
    written |= {f"{x:.3f}" for x in values} | {f"{x:,.0f}" for x in values}
    written |= {f"{float(f'{x:.2g}'):,}" for x in shares} | {f"{100 * x:.1f}" for x in shares}
    written |= {"0.5", "20", "50", "100", "0"}  # chance, limits of the sample, points of 100
    return {number for text in written for number in numbers_in(text)}


@pytest.mark.parametrize("kind", ["audit", "trained", "drift"])
def test_every_number_of_the_first_screen_is_one_of_the_audit(audited: Audit, kind: str):
    report = Report(audited)
    if kind == "trained":
        after = replace(audited, limits=())
        report = Report(after, before=audited, tradeoff=samples.tradeoff())
    elif kind == "drift":
        change = Change("gdp", "age", 0.02, 0.09, Interval(0.05, 0.09, 0.95, ""), 1e-9, 0.05)
        report = Report(replace(audited, drift=(change,), limits=()), earlier=audited)

    def shown(report: Report) -> set[str]:
        return numbers_in(text_of(re.sub(r"<svg.*?</svg>", "", render(report), flags=re.DOTALL)))

    own = known_numbers(report)
    if kind == "drift":  # both audits have the same numbers, so the differences are around 0
        errors = [one.standard_error or 0.0 for one in audited.quality]
        reach = [1.959963984540054 * 2**0.5 * error for error in errors]
        own |= {f"{100 * x:.1f}" for x in reach} | {f"{float(f'{x:.2g}'):,}" for x in reach}
    assert len(shown(report)) > 15
    assert shown(report) - own == set()
    curve = audited["age"].all_rows.curves["gdp"]
    other = replace(curve, mean=tuple(0.97 * m for m in curve.mean), overall=0.97 * curve.overall)
    false = with_curve(report.audit, other)
    assert shown(replace(report, audit=false)) - own != set()  # a false number would be noticed


def test_the_worst_group_is_scored_most_wrongly_beyond_chance_or_else_furthest():
    """Five groups, whose errors and bands are chosen by hand."""
    curve = replace(
        samples.curve(points=5),
        mean=(0.3, 0.3, 0.35, 0.1, 0.9),
        sparse=(False, False, False, False, True),
    )
    rest = replace(
        curve,
        mean=(0.3, -0.1, 0.2, -0.4, -0.9),
        low=(0.1, -0.2, 0.1, -0.9, -1.0),
        high=(0.5, -0.05, 0.3, 0.1, -0.8),
    )

    def order(
        rest: Curve | None,
        favours_high: bool | None = None,
        pvalue: float = 0.01,
        quality: tuple[Quality, ...] = (),
    ) -> list[int]:
        result = with_curve(replace(samples.audit(), quality=quality), curve)
        if rest is not None:
            everyone = result["age"].all_rows
            everyone.curves["calibration_gdp"] = rest
            gap = samples.number("calibration_gdp", 0.2, pvalue=pvalue)
            wrong = replace(everyone, numbers=(*everyone.numbers, gap))
            result = replace(result, attributes=(replace(result["age"], all_rows=wrong),))
        target = replace(samples.SUBJECT.target, favours_high=favours_high)
        result = replace(result, subject=replace(samples.SUBJECT, target=target))
        return sort_groups(result["age"], result)

    # the band of the fourth holds 0, and the fifth has few rows
    assert order(rest) == [0, 2, 1, 3]
    assert order(rest, favours_high=True) == [0, 2, 1, 3]  # the first two are scored too low
    assert order(rest, favours_high=False) == [0, 2, 1, 3]  # the second is scored too high
    assert order(None)[:2] == [3, 2]
    assert order(replace(rest, low=(-1.0,) * 5, high=(1.0,) * 5))[:2] == [3, 2]
    assert order(rest, pvalue=0.2) == [0, 2, 1, 3]  # the band needs no second test
    numeric = (Quality("root_squared_error", 1.0, 1.1, 0.1),)
    assert order(rest, pvalue=0.2, quality=numeric) == [0, 2, 1, 3]  # so is that of numbers


def test_the_furthest_group_may_be_chance():
    wide = replace(samples.curve(), low=(0.0,) * 81, high=(1.0,) * 81)
    assert ", which is not significantly different from the overall average, 0." in worst_sentence(
        Report(with_curve(samples.audit(), wide)), "age"
    )
    strict = replace(
        samples.audit(), subject=replace(samples.SUBJECT, confidence=0.999)
    )  # the gap has p = 0.0033
    for result in (
        samples.audit(),
        strict,
    ):  # the band covers all groups, so it needs no other test
        assert "not significantly different" not in worst_sentence(Report(result), "age")


@pytest.mark.parametrize(
    ("low", "high", "start", "kind", "bound"),
    [
        (0.01, 0.02, "is met", "kept", "at most 0.020"),
        (0.04, 0.058, "is probably met, but not certainly", "unclear", "between 0.040 and 0.058"),
        (
            0.0499,
            0.0504,
            "is probably exceeded, but not certainly",
            "unclear",
            "between 0.0499 and",
        ),
        (0.06, 0.07, "is exceeded", "not kept", "at least 0.060"),
    ],
)
def test_the_verdict_goes_by_the_interval(low, high, start, kind, bound):
    check = LimitCheck("age", "gdp", "all", 0.05, (low + high) / 2, Interval(low, high, 0.9, ""))
    easy = replace(check, attribute="hours", limit=0.3)
    result = replace(samples.audit("age", "hours"), limits=(easy, check))
    shown = verdict(Report(result))
    gap = format_estimate((low + high) / 2, 0.05)
    told = limit_sentence(check, result)
    assert shown.sentence.endswith(told)
    assert told.startswith(f"The limit of 0.05 {start}: the gap by age is {gap}, {bound}")
    assert (shown.kind, shown.attribute) == (kind, "age")
    points = format_estimate(50 * (low + high), 5)  # in the unit of the verdict, then in points
    assert meaning(shown, result) == (
        "The gap is how far the mean score of people with the same age is from the overall mean,"
        f" on average: {gap} ({points} percentage points; allowed: 5)."
    )
    assert alarms(result) == ([] if kind == "kept" else [told])
    ratio = limit_sentence(replace(check, key="decision_ratio", limit=0.5), result)
    assert ratio.startswith("The limit of 0.5 is missed: the ratio of lowest to highest")
    assert f"is {format_estimate((low + high) / 2)}, at most {format_estimate(high)}." in ratio
    least = replace(check, key="decision_ratio", limit=0.005)
    told = limit_sentence(least, result)
    assert "is met: the ratio of lowest to highest positive rate by age is " in told
    assert f" {format_estimate((low + high) / 2)}, at least {format_estimate(low)}." in told


def test_a_gap_of_nothing_and_a_limit_that_does_not_bind_are_said():
    check = LimitCheck("age", "gdp", "all", 0.05, 0.0, Interval(0.0, 0.018, 0.95, ""))
    result = replace(samples.audit("age"), limits=(check,))
    shown = verdict(Report(result))
    assert "is not distinguishable from 0, at most 0.018." in shown.sentence
    assert gap_size(shown, result) == ""
    assert meaning(shown, result) == DEFINITION
    bound = samples.tradeoff()
    first, *others = bound.points
    others = [replace(point, chosen=False) for point in others]
    free = replace(bound, points=(replace(first, chosen=True), *others))
    same = "The limit changed nothing: the model without a limit is the same."
    assert same in verdict(Report(result, tradeoff=free)).remarks
    assert same not in verdict(Report(result, tradeoff=bound)).remarks


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_without_a_limit_of_the_audit_that_of_the_fit_is_judged(aim: str):
    result, limit = samples.audit("age"), 0.02
    tradeoff = replace(samples.tradeoff(), aim=aim, limits=(limit,), shares=(None,))
    kinds = {0.5: "kept", 0.95: "unclear", 1.05: "unclear", 2.0: "not kept"}
    for share, kind in kinds.items():
        gap = Gap(share * limit, 0.8 * share * limit, 1.2 * share * limit)
        after = replace(tradeoff.after, gaps=(gap,))
        report = Report(result, tradeoff=replace(tradeoff, after=after))
        assert verdict(report).kind == kind
        assert shortfalls(report) == ([] if share < 1 else [verdict(report).sentence])
        unmet = replace(report, tradeoff=replace(report.tradeoff, met=False))
        more = set(verdict(unmet).remarks) - set(verdict(report).remarks)
        assert [line.startswith("In the fit, no trade-off was certain") for line in more] == [True]
    least = replace(tradeoff, limits=(0.0,))
    asked = "The limit of 0 asks for the smallest possible gap."
    unchanged = "In the fit, no trade-off had a smaller gap, so the model was left unchanged."
    assert verdict(Report(result, tradeoff=least)).remarks[0] == asked
    assert unchanged not in verdict(Report(result, tradeoff=least)).remarks
    first, *others = (replace(point, chosen=False) for point in least.points)
    points = (replace(first, chosen=True), *others)
    same = Report(result, tradeoff=replace(least, points=points, changes=()))
    assert verdict(same).remarks == (asked, unchanged)
    assert unchanged in closing_lines(same)["rows"]
    assert unchanged in text_of(render(same))
    free = Report(result, tradeoff=replace(tradeoff, limits=(None,), changes=()))
    assert verdict(free).remarks[0] == "No limit was set."


@pytest.mark.parametrize(
    ("low", "high", "start"),
    [
        (
            0.5,
            0.6,
            "Target reached: the gap by age is 50 % smaller (50 % to 60 %); the target was 50 %.",
        ),
        (
            0.42,
            0.6,
            "Target reached: the gap by age is 51 % smaller (42 % to 60 %); the target was 50 %.",
        ),
        (
            0.01,
            1.0,
            "Target reached: the gap by age is 51 % smaller (1 % to 100 %); the target was 50 %.",
        ),
        (
            -0.1,
            0.6,
            "Uncertain: the gap by age is 50 % smaller (10 % larger to 60 % smaller); the target"
            " was 50 %.",
        ),
        (
            0.2,
            0.6,
            "Target perhaps reached: the gap by age is 40 % smaller (20 % to 60 %); the target was"
            " 50 %.",
        ),
        (0.3, 0.49, "Target missed: the gap by age is 40 % smaller (30 % to 49 %);"),
        (None, None, "Not judged: the gap by age goes from 0.0880 to 0.0440; the original gap"),
    ],
)
def test_a_share_is_an_aim_that_the_estimate_reaches_and_an_interval_misses(low, high, start):
    reduction = None if low is None else Interval(low, high, 0.95, "")
    ends = Interval(-0.06, -0.03, 0.95, "")
    value = 0.044
    if "51 %" in start:
        value = 0.0431
    elif "40 %" in start:
        value = 0.0528
    change = Change("gdp", "age", 0.088, value, ends, 0.001, 0.05, reduction=reduction)
    gap = replace(samples.tradeoff().after, gaps=(Gap(value, 0.03, 0.06),))
    tradeoff = replace(samples.tradeoff(), shares=(0.5,), changes=(change,), after=gap)
    report = Report(samples.audit("age"), tradeoff=tradeoff)
    line = verdict(report).sentence
    assert line.startswith(start)
    assert closing_lines(report)["verdict"] == line
    kind = "unclear"
    if start.startswith("Target reached"):
        kind = "kept"
    elif start.startswith("Target missed"):
        kind = "not kept"
    assert verdict(report).kind == kind
    remarks = {
        0.42: "The true reduction may be as small as 42 %.",
        0.01: "The true reduction may be as small as 1 %.",
        0.2: "The true reduction may be more or less than 50 %.",
    }
    told = [line for line in verdict(report).remarks if line in remarks.values()]
    assert told == ([remarks[low]] if low in remarks else [])
    hint = "A larger --test-share narrows the interval; decide on it before you look"
    assert (hint in closing_lines(report)["rows"]) == (kind == "unclear")
    assert "--test-share" not in text_of(render(report))
    assert bool(shortfalls(report)) == (kind == "not kept")  # an aim is missed only for certain
    (check,) = checks(report)
    assert check.reference == Number("gdp", 0.088, report.audit.rows.used)
    assert (check.rows, check.limit) == (report.audit.rows.used, 0.044)


# what a limit leaves
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spread", "ends", "says"),
    [
        (0.6, (0.5, 0.63), True),  # 1 - 0.63 is above 0.6 squared, and 1 - 0.65 is not
        (0.6, (0.5, 0.65), False),
        (0.6, (-0.01, 0.63), False),  # perhaps no reduction
        (1.0, (0.5, 0.63), False),
    ],
)
def test_most_of_a_reduction_is_shrinkage_if_the_spread_fell_more_than_the_gap_relative_to_it(
    spread, ends, says
):
    before, after = samples.audit("age"), samples.audit("age", strength=0.42)
    sizes = {"standardized_gdp": 0.42 * 0.31 / spread}
    numbers = after["age"].all_rows.numbers
    numbers = tuple(replace(one, value=sizes.get(one.key, one.value)) for one in numbers)
    population = replace(after["age"].all_rows, numbers=numbers)
    attribute = replace(after["age"], all_rows=population)
    change = samples.change("gdp", "age", 0.0912, 0.42 * 0.0912)
    change = replace(change, reduction=Interval(*ends, 0.95, ""))
    limit = LimitCheck("age", "gdp", "all", 0.1, 0.04, Interval(0.03, 0.05, 0.95, ""))
    after = replace(after, attributes=(attribute,), limits=(limit,))
    tradeoff = replace(samples.tradeoff(), changes=(change,))
    report = Report(after, before=before, tradeoff=tradeoff)
    head = verdict(report)
    told = (
        "Most of the reduction comes from a smaller spread of all scores: relative to that spread,"
        f" the gap by age went from 0.310 to {figure(0.42 * 0.31 / spread)}."
    )
    assert (told in head.others) == (told in text_of(render(report))) == says
    assert head.kind == "kept"  # a gap below a number is one, whatever the spread
    gap = replace(tradeoff.after, gaps=(Gap(0.042, 0.03, 0.05),))
    aim = replace(report, audit=replace(after, limits=()))
    aim = replace(aim, tradeoff=replace(tradeoff, shares=(0.5,), after=gap))
    assert verdict(aim).kind == ("unclear" if says or ends[0] < 0 else "kept")
    ranked = replace(tradeoff, changes=(replace(change, key="rank_gap"),))
    assert verdict(replace(report, tradeoff=ranked)).kind == "kept"  # no unit, so no spread
    since_may = replace(report, before=None, tradeoff=None, earlier=before)
    since_may = replace(since_may, audit=replace(after, drift=(change,)))
    assert (told in verdict(since_may).others) == says


def test_groups_of_few_people_are_counted_and_the_others_named_as_such():
    random = np.random.default_rng(5)
    age = np.repeat([20.0, 30.0, 40.0, 50.0, 70.0, 80.0], [300, 300, 300, 300, 20, 9])
    score = np.clip(0.2 + 0.3 * (age >= 70) + 0.1 * random.random(len(age)), 0, 1)
    y = (random.random(len(age)) < score).astype(int)
    few, many = (
        Report(audit(score[kept], pd.Series(age[kept], name="age"), y[kept], settings=FAST))
        for kept in (age > 0, age < 60)
    )
    told = worst_sentence(few, "age")
    assert told.startswith("No group of at least 30 people is scored significantly too high or")
    assert "(gray ring), among groups of at least 30 people: age" in told
    left_out = "Left out as too small: 29 people in 2 of 6 groups by age."
    assert left_out in text_of(render(few))
    shown = text_of(render(few), "groups")
    assert "4 of 4 groups by age of at least 30 people: those with significant" in shown
    assert "at least 30" not in worst_sentence(many, "age") + text_of(render(many), "groups")
    assert "Left out" not in text_of(render(many))


def test_the_gap_in_bands_stands_beside_ours_with_what_chance_gives_there():
    """Ten ages of 150 people each: the bands are the ages, and their means are known."""
    random = np.random.default_rng(4)
    age = pd.Series(np.repeat(np.arange(20.0, 70.0, 5.0), 150), name="age")
    score = random.uniform(0, 1, 1_500)
    shown = np.abs(score.reshape(10, 150).mean(axis=1) - score.mean()).mean()
    shuffled = np.array([random.permutation(score) for _ in range(4_000)]).reshape(-1, 10, 150)
    mixed = np.abs(shuffled.mean(axis=2) - score.mean()).mean()
    result = audit(score, age, settings=FAST)
    line = text_of(render(result), "method")
    start = (
        "If age is split at its quantiles into 10 bins, as in a pivot table, the mean"
        f" scores in these bins differ from the overall mean by {figure(shown)} on"
    )
    assert start in line
    assert "The bins begin at 20, 25, 30, 35, 40, 45, 50, 55, 60 and 65." in line
    [chance] = re.findall(r"by chance alone: ([\d.]+)\.", line)
    assert float(chance) == pytest.approx(mixed, rel=0.02)
    assert f"The gap of {figure(result['age'].all_rows['gdp'].value)} is computed without" in line
    uneven = pd.Series(np.round(random.gamma(6, 7, 1_500), 1), name="age")
    other = text_of(render(audit(score, uneven, settings=FAST)), "method")
    count, listed = re.search(r"into (\d+) bins, .* bins begin at (.*?)\. The", other).groups()
    starts = [float(number) for number in re.findall(r"[\d.]+\d", listed)]
    bins = np.digitize(uneven, starts)
    sizes = np.bincount(bins)[1:]
    assert len(sizes) == len(starts) == int(count)
    assert sizes.sum() == 1_500
    means = np.bincount(bins, score)[1:] / sizes
    shown = float(sizes @ np.abs(means - score.mean())) / 1_500
    assert f"differ from the overall mean by {figure(shown)} on" in other
    for more in ({"groups": np.arange(1_500) // 2}, {"sample_weight": 1 + age.to_numpy()}):
        assert "pivot table" not in text_of(render(audit(score, age, settings=FAST, **more)))


def test_the_gap_in_decisions_is_beside_that_of_the_scores():
    random = np.random.default_rng(6)
    age = pd.Series(random.integers(20, 60, 3_000).astype(float), name="age")
    score = np.clip((age - 20) / 80 + 0.4 * random.random(3_000), 0, 1)
    free = np.clip((age - 20) / 40 + 0.2 * random.random(3_000), 0, 1)
    after, before = (audit(f, age, threshold=0.4, settings=FAST) for f in (score, free))
    gap, was = (one["age"].all_rows["decision_gdp"] for one in (after, before))
    size, low, high = (format_estimate(100 * x) for x in (gap.value, *gap.interval))
    told = (
        "The gap in decisions (the share of people with a score above 0.4) is"
        f" {size} percentage points by age ({low} to {high}"
    )
    assert decision_gaps(Report(after)) == f"{told})."
    limited = Report(after, before=before)
    told += f"; {format_estimate(100 * was.value)} without the limit)."
    assert decision_gaps(limited) == told
    assert told in text_of(render(limited))
    assert closing_lines(limited)["meaning"].endswith(told)
    mixed = random.permutation(score)
    chance = decision_gaps(Report(audit(mixed, age, threshold=0.4, settings=FAST)))
    assert chance.endswith("percentage points by age (not significant).")
    judged = audit(free, age, threshold=0.4, limit="decision_gdp <= 0.1", settings=FAST)
    decided = audit((free > 0.4) * 1.0, age, settings=FAST)
    number = audit(100 * free, age, settings=FAST)
    assert [decision_gaps(Report(one)) for one in (judged, decided, number)] == ["", "", ""]


@pytest.mark.parametrize(
    ("most", "sentence"),
    [
        (0.37, "The gap in decisions (the share of people with a score above 0.5) is at most 37"),
        (0.38, "There are too few people to say how much the share with a score above 0.5 varies"),
    ],
)
def test_a_gap_in_decisions_that_may_be_as_large_as_possible_is_not_known(most, sentence):
    """A quarter of the scores is above 0.5, so the largest gap is 2 · 0.25 · 0.75 = 0.375."""
    base = samples.audit()
    (attribute,) = base.attributes
    *others, decided = attribute.all_rows.numbers
    decided = replace(decided, interval=Interval(0.0, most, 0.95, ""), pvalue=0.4)
    population = replace(attribute.all_rows, numbers=(*others, decided))
    changed = replace(base, attributes=(replace(attribute, all_rows=population),))
    assert decision_gaps(Report(changed)).startswith(sentence)


@pytest.mark.parametrize(
    ("ends", "summary"),
    [
        ([(0.01, 0.02)], ""),
        ([(0.01, 0.02), (0.02, 0.03)], "Both limits are met. "),
        ([(0.06, 0.08)] * 3, "All 3 limits are missed. "),
        ([(0.01, 0.02), (0.06, 0.08), (0.02, 0.03)], "3 limits: 1 missed and 2 met. "),
        (
            [(0.02, 0.06), (0.04, 0.08), (0.02, 0.03)],
            "3 limits: 1 probably missed, 1 probably met and 1 met. ",
        ),
    ],
)
def test_the_headline_is_about_all_limits(ends, summary):
    names = ("age", "hours", "distance")
    checks = tuple(
        LimitCheck(name, "gdp", "all", 0.05, (low + high) / 2, Interval(low, high, 0.95, ""))
        for name, (low, high) in zip(names, ends)
    )
    sentence = verdict(Report(replace(samples.audit(*names), limits=checks))).sentence
    assert sentence.startswith(f"{summary}The limit of 0.05 is ")


def test_targets_are_not_counted_as_met():
    """By estimates, both are; one interval reaches from a reduction of 1 %."""
    ends = [Interval(low, 0.7, 0.95, "") for low in (0.45, 0.01)]
    number = Number("gdp", 0.09, 4000)
    one, other = (
        LimitCheck(
            name, "gdp", "all", 0.045, 0.04, Interval(0.03, 0.05, 0.95, ""), 0.5, "gap", number, end
        )
        for name, end in zip(("age", "hours"), ends)
    )
    head = verdict(Report(replace(samples.audit("age", "hours"), limits=(one, other))))
    told = [head.sentence, *head.others]
    assert [line.split(";")[0] for line in told] == [
        "Target reached: the gap by age is 56 % smaller (45 % to 70 %)",
        "Target reached: the gap by hours is 56 % smaller (1 % to 70 %)",
    ]
    assert head.kind == "kept"
    assert not re.search(r"\bmet\b", " ".join(told))


@pytest.mark.parametrize(
    ("late", "named"),
    [(("a", "b"), "a and b"), (("a", "b", "c", "d", "e"), "a, b, c and 2 more"), ((), None)],
)
def test_columns_that_may_be_known_late_are_named_before_the_signature(late, named):
    full = samples.full()
    context = replace(full.audit.context, late=late)
    report = replace(full, audit=replace(full.audit, context=context))
    told = " may be known only after the outcome. If so, the model cannot be used."
    page = unfolded(render(report))
    before, signed = page.split("A signature confirms")
    assert (told in before) == (told in closing_lines(report).get("also", "")) == bool(late)
    assert f"Values in {named}, or their absence,{told}" in before or not late
    assert told not in signed


def test_the_page_names_no_option_of_the_command():
    random = np.random.default_rng(3)
    age = pd.Series(random.integers(20, 70, 2_000).astype(float), name="age")
    remarks = ("'id' is left out; to use it, name it with --features.", "Pass it with --positive.")
    pages = {}
    for high in (0.3, 0.45):  # less than 20 % have the outcome; no score exceeds 0.5
        chance = random.uniform(0.0 if high == 0.3 else 0.1, high, 2_000)
        y = pd.Series((random.random(2_000) < chance).astype(int), name="default")
        context = Context(remarks=remarks)
        result = audit(pd.Series(chance, name="score"), age, y, settings=FAST, context=context)
        assert "--threshold" in closing_lines(Report(result))["rows"]
        pages[high] = render(result)
    assert "Less than 20\xa0% of people" in pages[0.3]
    assert "exceed the threshold 0.5" in pages[0.45]
    full = samples.full()
    first, *rest = full.tradeoff.points
    points = (replace(first, chosen=True), *(replace(one, chosen=False) for one in rest))
    free = replace(full, before=None, tradeoff=replace(full.tradeoff, points=points, changes=()))
    for page in (*pages.values(), render(free)):
        assert re.findall(r"(?<![\w-])--[a-z]\w+|frhsic [a-z]+", unfolded(page)) == []
        assert "A percentage target cannot be judged" not in page
    assert "&#39;id&#39; is left out." in pages[0.3]
    folded = text_of(pages[0.3], "evidence")  # for the analyst
    assert "Notes for the analyst 'id' is left out; to use it, name it with --features." in folded


def test_without_scores_the_dependence_is_the_verdict():
    result = samples.audit()
    (age,) = result.attributes
    for numbers, told in (
        (age.all_rows.numbers[2:], False),
        ((), True),
    ):
        rows = replace(age.all_rows, numbers=numbers, curves={})
        shown = verdict(Report(replace(result, attributes=(replace(age, all_rows=rows),))))
        assert (shown.kind, shown.attribute, shown.gap) == ("none", "age", None)
        assert (shown.sentence == words.say("no_gap", s="age")) == told
        assert bool(shown.others) != told


def test_the_last_lines_of_a_command_speak_of_every_attribute():
    result = replace(
        samples.audit(), attributes=tuple(map(samples.attribute, ("age", "hours", "income")))
    )
    lines = closing_lines(Report(result))
    for name in ("age", "hours", "income"):
        assert name in lines["verdict"] + lines["also"]


def test_groups_are_compared_with_the_score_without_a_limit_and_not_with_an_earlier_audit():
    result = samples.audit(strength=0.2)
    curve = samples.audit()["age"].all_rows.curves["gdp"]
    for report, compared in (
        (Report(result, before=samples.audit()), True),
        (Report(result, earlier=samples.audit()), False),
        (Report(result), False),
    ):
        order = sort_groups(result["age"], result)
        expected = [curve.mean[i] if compared else None for i in order[:5]]
        assert [group.was for group in groups(report, "age")] == expected


def test_drift_is_the_verdict_where_there_is_no_limit():
    ends = Interval(0.05, 0.09, 0.95, "")
    change = Change("gdp", "age", 0.02, 0.09, ends, 0.001, 0.05, adjusted=0.002)
    result = replace(samples.audit(), drift=(change,))
    shown = verdict(Report(result, earlier=samples.audit()))
    assert shown.sentence == (
        "No limit was set; the gap by age has grown from 0.020 to 0.090 since adult.csv"
        " (by 0.050 to 0.090)."
    )
    assert shown.kind == "none"
    less = replace(change, before=0.09, after=0.02, interval=Interval(-0.09, -0.05, 0.95, ""))
    assert (
        "has fallen from 0.090 to 0.020" in verdict(Report(replace(result, drift=(less,)))).sentence
    )
    same = replace(change, pvalue=0.5, adjusted=1.0, interval=Interval(-0.01, 0.15, 0.95, ""))
    shown = verdict(Report(replace(result, drift=(same,))))
    assert "; the gap by age shows no significant change since the last audit" in shown.sentence
    assert shown.kind == "none"


def test_the_worst_group_stands_beside_its_own_outcome():
    """The oracle is the mean of the outcome among the rows of the group."""
    random = np.random.default_rng(0)
    age = 10.0 * random.integers(2, 9, 4000)
    chance = 0.2 + 0.004 * (age - 50) + 0.05 * random.random(4000)
    for scale, told in ((1.0, "No group is"), (2.5, "too low"), (0.3, "too high")):
        y = (random.random(4000) < scale * chance).astype(int)
        named = pd.Series(age, name="age"), pd.Series(y, name="default")
        result = audit(chance, *named, settings=FAST)
        curve = result["age"].all_rows.curves["gdp"]
        i = sort_groups(result["age"], result)[0]
        group = (age >= curve.start[i]) & (age <= curve.end[i])
        line = worst_sentence(Report(result), "age")
        error = chance[group].mean() - y[group].mean()
        size = f"{group_phrase(curve, i, 'age')} ({group.sum()} people)"
        if scale != 1:
            size += f", scored significantly {told}, by {format_estimate(abs(error))}"
        assert f"{size}. Their mean score is {figure(chance[group].mean())}" in line
        mark = f">{group_phrase(curve, i, 'age')}{f': {told}' if scale != 1 else ''}</text>"
        assert mark in picture(Report(result), "age")
        assert f"; {percent(y[group].mean())} of them actually had “default”" in line
        assert told in line
        assert (f"; the overall average is {figure(chance.mean())}" in line) == (scale == 1)
        errors = [abs(chance[age == a].mean() - y[age == a].mean()) for a in range(20, 90, 10)]
        assert scale == 1 or abs(error) == pytest.approx(max(errors))
        before = replace(result, limits=())
        limited = worst_sentence(Report(result, before=before), "age")
        assert f" ({figure(chance[group].mean())} without the limit)" in limited
        number = audit(chance - 3, named[0], pd.Series(y - 3.5, name="cost"), settings=FAST)
        line = worst_sentence(Report(number), "age")
        number_group = sort_groups(number["age"], number)[0]
        own = (age >= curve.start[number_group]) & (age <= curve.end[number_group])
        assert f"the actual mean of “cost” is {figure((y - 3.5)[own].mean())}" in line
        for good in (1, 0):
            decided = Context(decision="whether a loan is granted")
            options = {"favourable": good, "context": decided, "settings": FAST}
            stated_good = Report(audit(chance, *named, **options))
            # an understated risk need not be a favor: the outcome may be a death
            line = worst_sentence(stated_good, "age")
            assert line == worst_sentence(Report(result), "age")
            assert line.startswith("The mean score of all people is signif") == (scale != 1)
            assert not re.search("favor|disadvantage", unfolded(render(stated_good)))
    alone = audit(chance, age, settings=FAST)
    assert "actual" not in worst_sentence(Report(alone), "s")


def test_the_axis_says_what_a_high_score_means():
    result = samples.audit()
    named = replace(result, subject=replace(result.subject, score_name="p"))
    target = outcome_phrase(result.subject)
    assert axis_name(named) == f"mean score; a higher score means {target} is more likely"
    number = replace(named, quality=(Quality("root_squared_error", 2.0, 4.0, 0.1),))
    assert axis_name(number) == "mean prediction"
    own = replace(named, subject=replace(named.subject, score_name="probability of default"))
    assert axis_name(own) == "mean probability of default"
    for good, tail in ((True, "good"), (False, "bad")):
        stated_good = replace(own.subject.target, favours_high=good)
        told = replace(own, subject=replace(own.subject, target=stated_good))
        assert (
            axis_name(told) == f"mean probability of default; high values are {tail} for a person"
        )


def test_the_name_of_a_mark_covers_no_other_point():
    """Around the mark there is room on one side only, and there its name stands."""
    frame = Frame((0.0, 1.0), (0.0, 1.0), ("x", "y", "x, y"))
    for free in (-1, 1):
        dots = [(0.3 + 0.01 * i, 0.5 - free * 0.02 * j) for i in range(-25, 50) for j in range(20)]
        text = frame.svg([], dots=dots, marks=[("after", 0.3, 0.5, "ages 20 to 24")])
        ring = float(re.search(r'class="mark".*? cy="([\d.]+)"', text).group(1))
        name = float(re.search(r'class="halo marked" x="[\d.]+" y="([\d.]+)"', text).group(1))
        assert (name < ring) == (free == 1)


def test_costs_are_told_with_the_paired_interval_and_may_be_chance():
    report = samples.full()
    found, ranked = costs(report)
    assert (found.name, found.was, found.now) == ("Found (recall)", "70.0 %", "65.5 %")
    assert found.change == "−6.5 to −2.5 points (worse)"
    assert (ranked.was, ranked.now) == ("0.800", "0.782")
    assert ranked.change == "−0.028 to −0.0080 (worse)"
    known = replace(report.audit, quality=(Quality("auc", 0.782, 0.5, 0.01),))
    _, measured = costs(replace(report, audit=known))
    assert (measured.was, measured.now) == ("0.800", "0.782")
    assert (measured.change, measured.reach) == (ranked.change, "0.762 to 0.802")  # 1.96 errors
    stated = "Ranking (AUC) 0.800 → 0.782 (0.762 to 0.802)"
    assert stated in closing_lines(replace(report, audit=known))["cost"]
    assert stated in text_of(render(replace(report, audit=known)))
    assert (found.reach, ranked.reach) == ("", "")
    gain = replace(report.tradeoff.stops[2].costs[1], before=0.7, after=0.8)
    gained = costs(report, replace(report.tradeoff.stops[2], costs=(gain,)))
    assert gained[0].change.endswith(" (better)")
    weak = replace(report.tradeoff.stops[2].costs[1], pvalue=0.3)
    stop = replace(report.tradeoff.stops[2], costs=(weak,))
    assert costs(report, stop)[0].change.endswith(" (may be chance)")
    rate = report.tradeoff.stops[2].costs[0]
    changes = []
    for width in (0.0, 1.3e-9, 0.0003, 0.02):
        ends = Interval(-width, width, 0.95, "")
        same = replace(rate, after=rate.before, interval=ends, pvalue=1.0)
        stop = replace(report.tradeoff.stops[2], costs=(same,))
        changes.append(costs(report, stop)[0].change)
    assert changes == [
        "unchanged",
        "unchanged",
        "−0.030 to +0.030 points (may be chance)",
        "−2.0 to +2.0 points (may be chance)",
    ]
    stops = report.tradeoff.stops
    named = [stop_name(report.tradeoff, one) for one in stops]
    assert named == [
        "no limit",
        "requested: cut by 50 %",
        "this model (requested: cut by 80 %)",
        "strictest limit",
    ]
    both = replace(report.tradeoff, limits=(0.03, 0.02), shares=(None, None))
    named_limits = "this model (limit 0.03 for age, 0.02 for hours per week)"
    assert stop_name(both, stops[2]) == named_limits
    assert stop_name(replace(both, limits=(0.03, 0.03)), stops[2]) == "this model (limit 0.03)"
    one = replace(both, limits=(None, None), shares=(0.2, None))
    assert stop_name(one, stops[2]) == "this model (requested: cut by 80 % for age)"
    free = costs(report, stops[0])
    assert [cost.was for cost in free] == ["", ""]
    quality = (Quality("auc", 0.51, 0.5, 0.01),)
    poor = Report(replace(samples.audit(), quality=quality))
    assert [cost.now for cost in costs(poor)] == ["0.510"]
    assert costs(poor)[0].change == "0.490 to 0.530"
    assert "better than a constant" in verdict(poor).sentence


def test_of_numbers_the_root_of_the_squared_error_is_told():
    values = {"root_squared_error": (2.0, 4.0, 0.1), "explained": (0.75, 0.0, 0.02)}
    values["mean_error"] = 0.1, 0.0, 0.05
    quality = tuple(Quality(key, *value) for key, value in values.items())
    root, explained, mean = costs(Report(replace(samples.audit(), quality=quality)))
    assert (root.now, root.change) == ("2.00", "1.80 to 2.20")
    assert explained.now == "75.0 %"
    assert mean.now == "0.100"


def test_every_limit_has_its_layer_its_costs_and_its_place_in_the_choice():
    report = replace(samples.full(), audit=replace(samples.full().audit, quality=()))
    shown = render(report)
    screen = shown[shown.index('<section id="verdict"') : shown.index('<section id="decision"')]
    stops = report.tradeoff.stops
    assert re.findall(r'id="stop-(\d)"( checked)?', screen) == [
        (str(i), " checked" if stop.point.chosen else "") for i, stop in enumerate(stops)
    ]
    for i, stop in enumerate(stops):
        assert f'<dl class="costs stop stop-{i}">' in screen
        assert f'<g class="after stop stop-{i}">' in screen
        assert f"<span>{format_estimate(stop.point.gaps[0].value)}</span>" in screen
    assert screen.count('viewBox="0 0 300 200"') == 3  # small pictures of the others, for print


def drawn(svg: str, kind: str) -> np.ndarray:
    path = re.search(rf'<g class="{kind}">.*?<path class="line"[^>]* d="M([^"]*)"', svg).group(1)
    return np.array([pair.split() for pair in path.split("L")], dtype=float)


def test_a_curve_is_drawn_where_its_people_are():
    """Pixels are an affine image of ages and means, and a long tail is not drawn."""
    curve = samples.curve(0.4)
    pixels = drawn(picture(Report(samples.audit(strength=0.4)), "age"), "after")[1:-1]
    for values, column, sign in ((curve.grid, 0, 1), (curve.mean, 1, -1)):
        slope, offset = np.polyfit(values, pixels[:, column], 1)
        assert slope * sign > 0
        np.testing.assert_allclose(offset + slope * np.array(values), pixels[:, column], atol=0.11)
    random = np.random.default_rng(0)
    income = random.lognormal(4, 1, 400)
    income[:3] *= 20
    score = 1 / (1 + np.exp(4 - np.log(income) + random.standard_normal(400)))
    result = audit(score, pd.Series(income, name="income"), settings=FAST)
    svg = picture(Report(result), "income")
    assert "5 % of people not shown" in svg
    places = drawn(svg, "after")[:, 0]
    assert places[-2] > 62 + (708 - 62) / 3  # else the last group alone would fill the frame
    assert places.max() <= 708.1
    (attribute,) = result.attributes
    for key in ("gdp", "decision_gdp"):
        rest = attribute_picture(attribute, key, "Share")
        assert "5 % of people not shown" in rest
        ends = [float(x.replace(",", "")) for x in re.findall(r">([\d,]+)</text>", rest)]
        assert max(ends) < income.max() / 2
    assert places.min() >= 61.9


def test_every_limit_rings_the_worst_group_of_the_report_and_the_last_group_has_no_end():
    """The score is too high by 0.3 from 70 on and right elsewhere; the last 1 % takes 0.3 of the
    range of ages.
    """
    random = np.random.default_rng(0)
    age = np.where(
        np.arange(4000) < 30, random.uniform(85, 110, 4000), random.uniform(20, 82, 4000)
    )
    chance = random.uniform(0.2, 0.4, 4000)
    y = (random.random(4000) < chance).astype(int)
    score = chance + 0.3 * (age >= 70)
    result = audit(score, pd.Series(age, name="age"), pd.Series(y, name="late"), settings=FAST)
    curve = result["age"].all_rows.curves["gdp"]
    worst = sort_groups(result["age"], result)[0]
    assert curve.start[worst] >= 65
    last = len(curve.grid) - 1
    assert group_phrase(curve, last, "age") == f"ages {format_setting(curve.start[last])} and over"
    stops = [replace(stop, curves={"age": curve}) for stop in samples.tradeoff().stops]
    stops[0] = replace(stops[0], curves={"age": replace(curve, mean=curve.mean[::-1])})
    svg = picture(Report(result), "age", stops)
    rings = re.findall(r'<circle class="mark"[^>]* cx="([\d.]+)" cy="([\d.]+)"', svg)
    assert len(rings) == len(stops)
    assert len({x for x, _ in rings}) == 1
    assert len({y for _, y in rings}) == 2  # of the reversed curve, and of the others
    assert svg.count(group_phrase(curve, worst, "age")) >= len(stops)
    assert "outer 1 % of people not shown" in svg


def test_the_ratio_of_decisions_is_bounded_by_the_band():
    """For every choice of shares inside the band, the lowest over the highest lies in the range
    that is told.
    """
    random = np.random.default_rng(0)
    curve = replace(samples.curve(points=5), sparse=(False,) * 5)
    (ratio,) = decision_ratio({"decision_gdp": curve})
    low, high = ratio.interval.low, ratio.interval.high
    for _ in range(200):
        shares = random.uniform(curve.low, curve.high)
        assert low <= shares.min() / shares.max() <= high


# sentences
# --------------------------------------------------------------------------------------------------


def test_every_number_has_a_label_and_a_sentence_and_words_follow_the_confidence(audited: Audit):
    """A p-value of 0.03 is significant at 5 % and not at 1 %, in every sentence that speaks of
    chance.
    """
    assert set(words.SENTENCES) == set(words.LABELS)
    usual = samples.audit()
    numbers = tuple(
        replace(n, pvalue=0.03) if n.pvalue is not None else n
        for n in usual["age"].all_rows.numbers
    )
    attribute = replace(usual["age"], all_rows=replace(usual["age"].all_rows, numbers=numbers))
    usual = replace(usual, attributes=(attribute,))
    strict = replace(usual, subject=replace(usual.subject, confidence=0.99))
    assert "varies with age" in text(usual)
    assert "are dependent" in text(usual)
    assert "The mean score does not vary significantly with age" in text(strict)
    assert "finds no dependence" in text(strict)
    for key in ("gdp", "hsic"):
        said = words.sentence(attribute.all_rows[key], usual.subject, "age")
        assert "The result is significant" in said
        assert "not significant" in words.sentence(attribute.all_rows[key], strict.subject, "age")
    for key in ("hsic", "hsic_effect", "squared_distance_correlation"):
        number = replace(attribute.all_rows[key], value=0.0123, under_independence=0.0045)
        said = words.sentence(number, usual.subject, "age")
        assert "is 0.0123" in said
        assert " Expected if they were independent: 0.00450." in said
        said = words.sentence(replace(number, value=-0.0123), usual.subject, "age")
        assert said == f"{words.LABELS[key]}: not distinguishable from 0."
    fine = replace(attribute.all_rows["gdp"], settings={"resolution": 0.05})
    said = words.resolution_sentence([fine, fine], "age")
    assert said.count("the 5 % of people nearest") == 1


@pytest.mark.parametrize(
    ("names", "sentence"),
    [(("age",), "Only age was examined."), (("age", "hours"), "Only age and hours were examined.")],
)
def test_the_first_screen_names_what_was_examined(names, sentence):
    assert sentence in text_of(render(Report(samples.audit(*names))))


def test_an_improvement_is_no_alarm():
    def change(key: str, before: float, after: float, pvalue: float = 0.001) -> Change:
        return Change(key, "age", before, after, None, pvalue, 0.05, adjusted=2 * pvalue)

    changes = ("gdp", 0.1, 0.2), ("auc", 0.7, 0.5), ("attribute", 45, 58), ("base_rate", 0.2, 0.1)
    worse = [change(*one) for one in changes]
    fine = [change("gdp", 0.2, 0.1), change("auc", 0.5, 0.7), change("gdp", 0.1, 0.2, 0.5)]
    result = replace(samples.audit(), drift=(*worse, *fine))
    assert alarms(result) == [words.drift_line(one) for one in worse]
    assert [words.drift_verdict(one) for one in result.drift[-2:]] == [
        "changed",
        "no significant change",
    ]
    perhaps = replace(result, drift=(change("gdp", 0.1, 0.2, 0.03), *fine))
    assert alarms(perhaps) == []
    assert words.drift_verdict(perhaps.drift[0]).startswith("may have changed")
    line = words.drift_line(worse[2])
    assert line == "Mean age: 45.0 → 58.0, p = 0.001; distribution changed."


# what a limit changed
# -------------------------------------------------------------------------------------------


def test_the_closing_lines_are_verdict_meaning_other_attributes_gap_cost_and_rows():
    report = samples.full()
    lines = closing_lines(report)
    assert [*lines] == ["verdict", "meaning", "also", "gap", "cost", "rows"]
    assert lines["verdict"] == verdict(report).sentence
    assert lines["meaning"].startswith(meaning(verdict(report), report.audit))
    assert lines["meaning"].endswith(decision_gaps(report))
    change, gap = report.tradeoff.changes[0], report.tradeoff.after.gaps[0]
    was = figure(change.before)
    assert lines["gap"] == f"age: {was} → {format_interval(gap.value, gap.low, gap.high)}"
    assert lines["cost"] == "Found (recall) 70.0 % → 65.5 %, Ranking (AUC) 0.800 → 0.782"
    assert "30,162" in lines["rows"]
    alone = Report(report.audit)
    assert [*closing_lines(alone)] == ["verdict", "meaning", "also", "gap", "score", "rows"]
    gdp = report.audit["age"].all_rows["gdp"]
    assert closing_lines(alone)["gap"] == f"age: {format_interval(gdp.value, *gdp.interval)}"


def test_the_gap_that_is_shown_is_the_one_that_is_judged():
    """A limit of ranks is about 0.05 → 0.02 here, and the mean scores have another gap."""
    report = samples.full()
    ends = Gap(0.02, 0.01, 0.03)
    change = samples.change("rank_gap", "age", 0.05, 0.02)
    tradeoff = replace(
        samples.tradeoff("age"),
        aim="rank",
        limits=(0.04,),
        shares=(None,),
        changes=(change,),
        after=replace(report.tradeoff.after, gaps=(ends,)),
    )
    ranks = Report(samples.audit("age"), before=samples.audit("age"), tradeoff=tradeoff)
    assert closing_lines(ranks)["gap"] == "age, rank gap: 0.0500 → 0.0200 (0.0100 to 0.0300)"
    screen = text_of(render(ranks))
    assert (
        "The gap is how far the selection rate of people with the same age is from the overall"
        " rate, on average, if the highest scores are selected: 0.020 (2.0 percentage points;"
        " allowed: 4)." in screen
    )
    assert "Limit Rank gap " in screen
    assert "Gap by age" not in screen


def test_a_page_of_one_attribute_says_nothing_of_several_and_how_many_groups_it_lists():
    one, two = (render(Report(samples.audit(*names))) for names in (["age"], ["age", "hours"]))
    assert "one by one and all together" not in one
    assert "one by one and all together" in two
    count = len(samples.audit()["age"].all_rows.curves["gdp"].trusted_groups)
    told = (
        f"5 of {count} groups by age of at least 30 people: those farthest from the average first"
    )
    assert told in one


def test_rows_that_would_settle_a_limit_of_a_fit_are_held_out():
    ends = Interval(0.02, 0.06, 0.95, "")
    check = LimitCheck("age", "gdp", "all", 0.05, 0.04, ends, rows=1000)
    result = replace(samples.audit(), limits=(check,))
    fitted = Report(result, before=samples.audit(), tradeoff=samples.tradeoff())
    assert "held-out people in total would settle it." in " ".join(verdict(fitted).remarks)
    assert "held-out" not in " ".join(verdict(Report(result)).remarks)


def test_the_rounding_error_of_no_decision_is_no_ratio():
    curve = samples.audit()["age"].all_rows.curves["gdp"]
    count = len(curve.mean)
    means = (5e-17, *[0.3] * (count - 1))
    curve = replace(curve, mean=means, low=(0.0,) * count, high=(0.4,) * count)
    (ratio,) = decision_ratio({"decision_gdp": replace(curve, sparse=(False,) * count)})
    assert ratio.value == 0
    subject = samples.audit().subject
    assert words.sentence(ratio, subject, "age").endswith("is 0 % of the highest.")


def test_what_has_not_changed_is_one_sentence():
    def change(key: str, pvalue: float, adjusted: float) -> Change:
        ends = Interval(0.01, 0.02, 0.95, "")
        return Change(key, "", 0.7, 0.72, ends, pvalue, 0.05, adjusted=adjusted)

    gap = replace(change("gdp", 0.5, 1.0), attribute="age")
    law = replace(change("attribute", 0.6, 1.0), attribute="age")
    drift = (gap, law, change("base_rate", 0.001, 0.004), change("auc", 0.03, 0.1))
    quality = (Quality("auc", 0.72, 0.5, 0.01),)
    result = replace(samples.audit(), drift=drift, quality=quality)
    report = Report(result, earlier=replace(result, drift=()))
    assert other_changes(report, verdict(report)) == ([drift[2]], ["mean age"])
    (ranking,) = costs(report)  # not significant among all comparisons
    assert ranking.change == "+0.010 to +0.020 (may be chance)"
    screen = text_of(render(report))
    assert "No significant change: mean age." in screen


def test_every_trade_off_stands_in_the_table_with_all_its_digits():
    shown, tradeoff = render(samples.full()), samples.full().tradeoff
    rows = tradeoff_rows(tradeoff)
    assert [point for point, _ in rows] == [*tradeoff.points, tradeoff.before, tradeoff.after]
    assert [kind for _, kind in rows][:2] == ["no limit", "65 % of the gap"]
    assert rows[5][1].endswith("% of the gap (chosen)")
    section = shown[shown.index('<details id="tradeoff"') : shown.index('<details id="compared"')]
    for point, kind in rows:
        assert f">{keep_together(kind)}</th>" in section
        for value in (point.performance, point.gaps[0].value, point.gaps[1].low):
            assert f'data-value="{value}"' in section


def test_before_and_after_pairs_measures_by_name_and_not_by_place():
    after, before = samples.audit("age", strength=0.5), samples.audit("age", "hours")
    turned = replace(
        before.attributes[0].all_rows, numbers=before.attributes[0].all_rows.numbers[::-1]
    )
    before = replace(
        before, attributes=(replace(before.attributes[0], all_rows=turned), before.attributes[1])
    )
    shown = render(Report(after, before=before))
    section = shown[
        shown.index('<details id="compared"') : shown.index('<details id="attribute-1"')
    ]
    old, new = (
        re.findall(f'data-label="{side}" data-value="(.*?)"', section)
        for side in ("Before", "After")
    )
    assert [float(value) for value in old] == [
        one.value for one in before["age"].all_rows.numbers[::-1]
    ]
    assert [float(value) for value in new] == [one.value for one in after["age"].all_rows.numbers]


# the page
# --------------------------------------------------------------------------------------------------


def embedded(shown: str) -> dict:
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', shown, re.DOTALL
        ).group(1)
    )


def test_the_page_holds_the_report_and_gives_it_back_exactly():
    report = samples.full()
    shown = render(report)
    assert embedded(shown) == report.to_dict()
    assert Report.from_dict(embedded(shown)) == Report.from_json(report.to_json()) == report
    assert Report.from_dict(embedded(render(samples.audit()))).tradeoff is None
    for number in report.audit.attributes[0].all_rows.numbers:
        assert f'data-value="{number.value}"' in shown
        said = keep_together(words.sentence(number, report.audit.subject, "age"))
        assert str(escape(said)) in shown
    with pytest.raises(TypeError, match="pass the result of"):
        render({})


def test_the_page_names_no_other_host_and_its_policy_admits_its_own_script():
    shown = render(samples.full())
    addresses = set(re.findall(r"(?:https?:)?//[A-Za-z0-9.-]+\.[a-z]{2,}[^\s\"'`]*", shown))
    assert addresses == set()
    assert not re.search(
        r"<(?:link|img|iframe|object|embed|base)\b|\bsrc=|@import|url\(['\"]?[a-z]", shown
    )
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', shown).group(1))
    assert policy.startswith("default-src 'none'")
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        body = re.search(rf"<{element}>(.*?)</{element}>", shown, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert len(shown.encode()) < 400_000  # light enough to mail


def test_hostile_names_never_become_markup():
    shown = render(samples.hostile())
    body = re.sub(r"<(script|style)\b.*?</\1>", "", shown, flags=re.DOTALL)
    assert "window.hacked=1" in body  # shown, as text
    assert not re.search(r"<script>window|<img", shown)
    assert "7*7" in body
    assert "{{ 49" not in body
    assert shown.count("<script") == 2
    assert "<" not in re.search(r'id="data">(.*?)</script>', shown, re.DOTALL).group(1)


def test_a_page_is_written_whole_and_a_path_is_refused_before_the_report_is_looked_at(tmp_path):
    target = tmp_path / "report.html"
    assert write(samples.audit(), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ValueError, match=r"the folder '.*none' of the report does not exist"):
        write(None, tmp_path / "none" / "report.html")


def test_a_page_from_python_states_its_date_and_the_versions():
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", render(samples.full())))
    assert today <= facts["Date"][:10] <= datetime.now(UTC).strftime("%Y-%m-%d")
    assert f"numpy {np.__version__}" in facts["Software"]
    dated = replace(samples.audit(), context=Context(origin={"made": "then"}))
    assert "<dt>Date</dt><dd>then</dd>" in render(dated)


def scored(bias: float = 0.0, n: int = 3_000, **arguments: Any) -> Audit:
    """Return an audit of chances that are too low by a bias for everybody."""
    random = np.random.default_rng(8)
    age = random.integers(20, 70, n).astype(float)
    chance = np.clip(0.35 + 0.15 * random.standard_normal(n), 0.1, 0.9)
    outcome = pd.Series((random.random(n) < chance).astype(int), name="died")
    score = pd.Series(arguments.pop("score", chance - bias), name="score")
    settings = Settings(fast=True, resamples=50)
    return audit(score, pd.Series(age, name="age"), outcome, settings=settings, **arguments)


def test_a_score_no_better_than_a_constant_is_said_so_first():
    noise = np.random.default_rng(9).uniform(0.3, 0.4, 3_000)
    poor = Report(scored(score=noise, limit="gdp <= 0.3"))
    assert checks(poor)[0].verdict == "kept"
    head = verdict(poor)
    assert head.sentence.startswith("The score is not significantly better than a constant.")
    assert "is met" in head.sentence
    assert head.kind == "unclear"
    assert text(poor).count("better than a constant") == 1
    assert text_of(render(poor)).count("better than a constant") == 1
    assert verdict(Report(scored(limit="gdp <= 0.3"))).kind == "kept"


@pytest.mark.parametrize(("errors", "says"), [(2.5, True), (3.9, True), (4.1, False)])
def test_a_score_that_just_beats_a_constant_is_said_to_be_perhaps_only_slightly_better(
    errors, says
):
    quality = (Quality("auc", 0.5 + 0.04 * errors, 0.5, 0.04),)
    report = Report(replace(samples.audit("age"), quality=quality))
    barely = "The score is better than a constant, but perhaps only slightly."
    assert (barely in verdict(report).remarks) == says
    assert (barely in closing_lines(report)["rows"]) == says
    assert text(report).count("better than a constant") == says


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.4, 0.0, 0.2), (1, 0.25, 0.75), (2, 0.9, 1)]
)
def test_an_error_of_the_stated_size_goes_unnoticed_half_of_the_time(share, least, most):
    """Rare outcomes of groups of 250, whose scores are right except for one group."""

    def audited_error(seed: int, size: float) -> Audit:
        random = np.random.default_rng(seed)
        age = np.repeat(np.arange(20.0, 32.0), 250)
        score = np.where(random.random(len(age)) < 0.5, 0.15, 0.25)
        happened = score + size * (age == 25)
        outcome = pd.Series((random.random(len(age)) < happened).astype(int), name="late")
        settings = Settings(fast=True, resamples=20)
        return audit(score, pd.Series(age, name="age"), outcome, settings=settings)

    right = audited_error(0, 0.0)
    band = right["age"].all_rows.curves["calibration_gdp"]
    size = unnoticed_error(band)
    found = []
    for seed in range(1, 41):
        rest = audited_error(seed, share * size)["age"].all_rows.curves["calibration_gdp"]
        place = next(i for i in range(len(rest.grid)) if rest.start[i] <= 25 <= rest.end[i])
        assert rest.start[place] == rest.end[place] == 25
        found.append(rest.low[place] > 0)
    assert least <= np.mean(found) <= most
    said = worst_sentence(Report(right), "age")
    assert said.startswith(
        "No group is scored significantly too high or too low; half of these groups are too small"
        f" to show an error below about {format_estimate(size)}."
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_of_rare_outcomes_no_error_above_their_mean_is_stated(weighted):
    random = np.random.default_rng(11)
    age = pd.Series(np.repeat(np.arange(20.0, 32.0), 40), name="age")
    score = 0.01 + 0.02 * random.random(len(age))
    outcome = pd.Series((random.random(len(age)) < 0.02).astype(int), name="late")
    weights = 1 + random.random(len(age)) if weighted else None
    report = Report(audit(score, age, outcome, sample_weight=weights, settings=FAST))
    curves = report.audit["age"].all_rows.curves
    assert unnoticed_error(curves["calibration_gdp"]) > curves["gdp"].overall
    told = "groups are too small to show even an error as large as the overall mean score."
    assert told in worst_sentence(report, "age")
    less = (
        "Less than 20 % of people (weighted) have" if weighted else "Less than 20 % of people have"
    )
    assert decision_sentence(report).startswith(less)


def three_parties(along: float, required: Any = None) -> Report:
    """Report on a vote among three parties, of which the smallest depends on age."""
    random = np.random.default_rng(0)
    age = random.uniform(20, 80, 1_500)
    noise = random.standard_normal((1_500, 3))
    X = noise + along * np.column_stack([0 * age, 0 * age, (age - 50) / 17])
    chances = np.exp([1, 0, -1] + X * [1, 1, 0.5])
    chances /= chances.sum(axis=1, keepdims=True)
    places = (random.random((1_500, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    vote = pd.Series(np.array(["red", "blue", "green"])[places], name="vote")
    age = pd.Series(age, name="age")
    model = ParityClassifier(
        LogisticRegression(),
        attribute_estimator=LinearRegression(),
        limit="50%",
        random_state=0,
        n_jobs=1,
    ).fit(X[:1_000], vote[:1_000], sensitive_features=age[:1_000])
    settings = Settings(fast=True, resamples=60)
    rows = X[1_000:], vote[1_000:].reset_index(drop=True)
    return trained_report(
        model,
        *rows,
        sensitive_features=age[1_000:].to_numpy(),
        limit=required,
        settings=settings,
    )


def test_of_several_classes_the_first_screen_names_every_significant_one():
    report = three_parties(1.0)
    assert Report.from_json(report.to_json()) == report
    *_, gaps, shown = verdict(report).remarks
    assert shown == (
        "The plot and all costs except the share of correct classes are for “vote: red”, the most"
        " frequent of 3 classes."
    )
    assert re.fullmatch(r"The gap by age is significant for “green”, 0\.0\S+ \(.*\)\.", gaps)
    for line in (gaps, shown):
        assert line in closing_lines(report)["rows"]
        assert line in text_of(render(report))
    assert "Each gap is the largest over all 3 classes." in text_of(render(report), "evidence")
    right, ranking, _, error = costs(report)
    assert (right.name, ranking.name, error.key) == ("Correct class", "Ranking (AUC)", "mean_error")
    measured = report.audit.quality[0]
    assert (right.now, right.meaning) == (
        f"{100 * measured.value:.1f} %",
        "share of people whose most probable class is correct; the most common class:"
        f" {100 * measured.constant:.1f} %",
    )
    assert "Found (recall)" not in text_of(render(report))
    classes = report.tradeoff.classes
    assert list(classes) == ["blue", "green", "red"]
    blue, green, red = (gap.adjusted for (gap,) in classes.values())
    assert green < 0.05 < min(blue, red)
    alone = replace(classes["green"][0], pvalue=0.04, adjusted=0.08)
    none = replace(alone, pvalue=0.4, adjusted=0.8)
    for number, told in (
        (
            alone,
            "No class has a significant gap by age after adjusting for all classes; without"
            f" adjustment, there is one for “green”, {gap_phrase_with_interval(alone)}.",
        ),
        (none, "No class has a significant gap by age."),
    ):
        tradeoff = replace(report.tradeoff, classes={**classes, "green": (number,)})
        *_, said, _ = verdict(replace(report, tradeoff=tradeoff)).remarks
        assert said == told
    both = replace(report.tradeoff, classes={**classes, "red": (alone,)})
    *_, said, _ = verdict(replace(report, tradeoff=both)).remarks
    assert said.startswith(gaps.removesuffix(".") + "; without adjustment for all classes, it is")


def test_gaps_means_and_decisions_of_all_classes_are_in_a_folded_table():
    chances = np.array([[0.5, 0.3, 0.2], [0.4, 0.5, 0.1]])[np.arange(400) % 2]
    s = np.where(np.arange(400) % 2, 0.5, -0.5)[:, None]
    codes = np.arange(400) % 4 % 3  # half of the first class, a quarter of each of the others
    rows = Rows(chances[:, :1], s, chances[:, 0])
    model = SimpleNamespace(sensitive_names_in_=["age"])
    rates = _HeldOut(model, None, None, rows, 0, codes).class_rates(chances, list("abc"), QUICK)
    means = {label: (each.mean, each.actual) for label, each in rates.items()}
    assert means == {
        "a": (pytest.approx(0.45), 0.5),
        "b": (pytest.approx(0.4), 0.25),
        "c": (pytest.approx(0.15), 0.25),
    }
    # half of the rows are given a, those of one age, and the others b
    gaps = [each.decision_gaps[0].value for each in rates.values()]
    assert gaps == pytest.approx([0.5, 0.5, 0.0], abs=0.01)
    report = three_parties(1.0)
    page = render(report).replace("\xa0", " ")
    assert re.search(r"\d+ bins, [\w ,]+ the mean scores for “vote: red” in these bins", page)
    table = page[page.index('<details id="classes">') : page.index('<details id="compared">')]
    for label, each in report.tradeoff.class_rates.items():
        row = table[table.index(f">{label}</th>") :].split("</tr>")[0]
        numbers = (report.tradeoff.classes[label][0], each.decision_gaps[0])
        for value in (each.mean, each.actual, *(number.value for number in numbers)):
            assert f'data-value="{value}"' in row
        for number in numbers:
            assert f'data-value="{number.interval.low}"' in row


def test_of_several_classes_the_verdict_is_about_the_largest_gap():
    """A class that is not shown has the largest gap, with the limit and without it."""
    report = three_parties(1.0, required=["gdp <= 0.2", "50%"])
    tradeoff = report.tradeoff
    label, gap = tradeoff.largest_class("age")
    assert label == "green"
    shown = report.audit["age"].all_rows["gdp"].value
    assert shown < gap.value == max(number.value for (number,) in tradeoff.classes.values())
    assert tradeoff.after.gaps[0].value == pytest.approx(gap.value, abs=1e-9)
    outputs = [replace(stop.point, chosen=False) for stop in tradeoff.stops if stop.point.chosen]
    assert outputs == [tradeoff.after]
    required = report.audit.limits
    own = checks(replace(report, audit=replace(report.audit, limits=())))
    for check in (*required, *own):
        assert check.among == "classes"
        assert check.value == pytest.approx(gap.value, abs=1e-9)
    assert own[0].reference.value == pytest.approx(tradeoff.before.gaps[0].value)
    assert required[1].reduction == own[0].reduction
    assert required[1].limit == pytest.approx(own[0].limit)
    head = verdict(report)
    assert "the gap by age, the largest of any class, is " in head.sentence.lower()
    told = "The gap is how far the mean score for “green” of people with"
    assert meaning(head, report.audit).startswith(told)
    empty = replace(head, gap=None)  # no sentence says what the gap means
    (line,) = attribute_lines(replace(report, audit=replace(report.audit, limits=())), empty)
    assert line.startswith("Gap by age for “green”, the largest of any class: 0.")
    line = closing_lines(report)["gap"]
    assert line.startswith(
        f"age, the largest of any class: {figure(tradeoff.before.gaps[0].value)} → "
        f"{figure(gap.value)} ("
    )


def test_without_a_limit_the_class_with_the_largest_gap_is_named():
    report = three_parties(1.0)
    tradeoff = replace(report.tradeoff, shares=(None,), changes=())
    free = replace(report, before=None, tradeoff=tradeoff)
    label, gap = tradeoff.largest_class("age")
    head = verdict(free)
    assert head.sentence.startswith("The mean score for “green” varies with age: the gap is ")
    assert (head.gap, head.label) == (gap, label)


def test_a_gap_of_the_fit_that_is_not_significant_has_an_interval_from_0_everywhere():
    with pytest.warns(IndistinctGapWarning) as caught:
        report = three_parties(0.0)
    assert " (0 to 0.0" in str(caught[0].message)
    points = report.tradeoff.points
    assert points[0].gaps[0].value > 0
    assert {point.gaps[0].low for point in points} == {0.0}
    assert "50 % of the largest gap of any class in the fit" in verdict(report).sentence


def test_hsic_is_explained_only_where_it_was_computed():
    full = samples.audit("age")
    (age,) = full.attributes
    kept = [one for one in age.all_rows.numbers if not one.key.startswith("hsic")]
    population = replace(age.all_rows, numbers=tuple(kept))
    without = replace(full, attributes=(replace(age, all_rows=population, positives=None),))
    assert "HSIC = 0 is necessary" in text_of(render(full), "evidence")
    assert "HSIC" not in text_of(render(without), "evidence")


def test_an_error_that_is_only_significant_alone_is_not_significant_among_all_groups():
    """46 of 200 in the last of seven groups, where 60 are expected: p = .03."""
    assert stats.binomtest(46, 200, 0.3).pvalue < 0.05
    group = np.repeat(np.arange(7.0), 200)
    place = np.tile(np.arange(200), 7)
    y = (place < np.where(group == 6, 46, 60)).astype(float)
    score = pd.Series(0.3 + 1e-6 * (group == 6), name="score")
    report = Report(audit(score, pd.Series(group, name="school"), y, settings=FAST))
    last = next(one for one in groups(report, "school") if one.where == "school 6")
    # the band covers seven groups and four wide windows
    assert group_judgement(last, report.audit) == "not significant"
    note = groups_note(report, "school")
    assert "significant errors (corrected for 11 comparisons) first" in note


def test_equal_scores_of_few_groups_are_no_proof_of_a_gap_of_0():
    """Of 38 groups, at most 9.25 % may have another score, at most 0.7 away."""
    age, groups = np.repeat(np.arange(38.0), 8), np.repeat(np.arange(38), 8)
    rate = 1 - 0.025 ** (1 / 38)
    most = format_estimate(0.7 * 2 * rate * (1 - rate))
    settings = Settings(fast=True, resamples=50)
    options = {"groups": groups, "settings": settings}
    y = np.arange(len(age)) % 3 == 0
    chance = Report(audit(np.full(len(age), 0.3), pd.Series(age, name="age"), y, **options))
    sentence = verdict(chance).sentence
    assert f"the gap is not distinguishable from 0, and at most {most}." in sentence
    wage = Report(audit(np.full(len(age), 40.0), pd.Series(age, name="age"), **options))
    assert "the score is the same in all 304 rows, so" in verdict(wage).sentence
    shown = text_of(render(wage)) + text_of(render(chance))
    assert not re.search(r"at most 0[ .,;](?![0-9])", shown)


@pytest.mark.parametrize("groups", [18, 28, 40])
def test_a_gap_is_not_measured_if_each_mean_covers_most_people(groups):
    """The means of 18 villages are averages over all of them, so a gap of 0.25 appears as 0."""
    random = np.random.default_rng(groups)
    village = np.repeat(np.arange(groups), 30)
    distance = pd.Series(random.uniform(0, 5, groups)[village], name="distance")
    chance = 0.5 + 0.25 * np.sign(np.sin(2 * np.pi * distance))
    scores = pd.Series(chance * random.uniform(0.9, 1.1, len(village)), name="score")
    context = Context(people="villages")
    options = {"groups": village, "context": context, "settings": FAST}
    limited = Report(audit(scores, distance, limit="gdp <= 0.2", **options))
    free = Report(audit(scores, distance, **options))
    shown = text_of(render(limited)) + text_of(render(free)) + text(limited) + text(free)
    told = f"{groups} villages are too few to measure the gap by distance."
    assert (told in shown) == (groups < 32)
    if groups > 32:
        return
    (check,) = limited.audit.limits
    assert (check.verdict, check.rows_needed) == ("unclear", None)
    assert alarms(limited.audit) == [told]
    assert verdict(free).sentence == verdict(limited).sentence == told
    assert "at most" not in shown
    assert "gap" not in closing_lines(limited)
    assert "There are too few rows to say how much the share with a score above 0.5 varies" in shown


def test_a_limit_that_a_coarse_gap_certainly_exceeds_is_exceeded():
    check = LimitCheck("age", "gdp", "all", 0.05, 0.1, Interval(0.06, 0.14, 0.95, ""))
    coarse = replace(check, resolution=0.6)
    assert (coarse.verdict, coarse.unmeasured) == ("not kept", False)
    low = replace(coarse, limit=0.2)
    assert (low.verdict, low.unmeasured) == ("unclear", True)
    assert replace(low, resolution=0.5).verdict == "kept"


def test_a_score_that_is_too_good_is_asked_about():
    rng = np.random.default_rng(3)
    y = rng.normal(size=600)
    age = pd.Series(rng.uniform(20, 70, 600), name="age")
    settings = Settings(fast=True, resamples=20)
    for noise, asked in ((0.05, True), (0.5, False)):
        found = audit(y + noise * rng.normal(size=600), age, y, settings=settings)
        assert any("almost perfectly" in line for line in warnings(found)) == asked


def test_weights_that_leave_few_rows_are_said_on_the_first_screen():
    weights = np.where(np.arange(3_000) < 30, 1e4, 1.0)
    effective = weights.sum() ** 2 / (weights @ weights)
    report = Report(scored(sample_weight=weights))
    assert f"3,000 rows (as precise as {effective:,.0f} of equal weight)" in surety(report)
    assert any("Check the largest weights" in line for line in warnings(report.audit))
    even = scored(sample_weight=np.linspace(1, 2, 3_000))
    assert not any("Check the largest weights" in line for line in warnings(even))
    village = np.minimum(np.arange(3_000) // 50, 27)  # 27 of 50 rows, and one of the others
    grouped = scored(sample_weight=np.ones(3_000), groups=village)
    effective = f"{3_000**2 / (27 * 50**2 + 1_650**2):.0f}"
    assert f"(as precise as {effective} units of equal weight)" in surety(Report(grouped))
    lines = warnings(grouped)
    assert not any("Check the largest weights" in line for line in lines)
    told = f"The 28 units count as only {effective} units of equal size, so intervals are wide."
    assert told in lines


def test_a_score_that_is_too_low_for_all_is_said_where_no_group_stands_out():
    honest, low = (worst_sentence(Report(scored(bias)), "age") for bias in (0.0, 0.032))
    assert honest.startswith("No group is scored significantly too high or too low")
    error = scored(0.032).quality
    size = next(one.value for one in error if one.key == "mean_error")
    assert low.startswith(
        f"The mean score of all people is significantly too low, by {format_estimate(size)}:"
    )
    assert ", and the actual mean in these rows is 0." in low


@pytest.mark.parametrize(
    ("errors", "start"),
    [
        (2.3, "No group is scored"),
        (2.5, "The mean score of all people is significantly too low, by 0.025: it is 0.3"),
        (-2.5, "The mean score of all people is significantly too high, by 0.025: it is 0.3"),
    ],
)
def test_a_mean_error_is_one_of_three_tests(errors, start):
    """Two-sided p = 0.05 / 3 is 2.39 standard errors."""
    quality = (Quality("mean_error", 0.01 * errors, 0.0, 0.01),)
    said = worst_sentence(Report(replace(scored(), quality=quality)), "age")
    assert said.startswith(start)


def test_errors_that_no_single_group_shows_are_said_to_change_along_the_attribute():
    """Scores of the old are too low by so little that only a wide window shows it."""
    random = np.random.default_rng(8)
    age = random.integers(20, 60, 4_000).astype(float)
    chance = np.where(age > 50, 0.87, 0.8)
    outcome = pd.Series((random.random(4_000) < chance).astype(int), name="insured")
    settings = Settings(fast=True, resamples=50)

    def report(score: Any, weights: Any = None) -> Report:
        scores, ages = pd.Series(score, name="score"), pd.Series(age, name="age")
        return Report(audit(scores, ages, outcome, settings=settings, sample_weight=weights))

    def said(score: Any) -> str:
        return worst_sentence(report(score), "age")

    noise = 0.01 * random.standard_normal(4_000)
    flat = said(0.82 + noise)
    assert flat.startswith("Errors vary with age: the mean score at ages 53 and over (649 people)")
    assert "significantly too low, by 0.0" in flat
    assert "No group" not in flat
    told, old = report(0.82 + noise), age >= 53
    listed, *others = listed_groups(told, "age")
    assert (listed.where, listed.rows) == ("ages 53 and over", 649)
    assert group_judgement(listed, told.audit) in flat
    assert listed.mean == pytest.approx(0.82 + noise[old].mean())
    assert listed.actual == pytest.approx(outcome[old].mean())
    assert others == groups(told, "age")
    assert groups_note(told, "age").endswith(" The first row combines several groups.")
    assert "ages 53 and over 649 0.82" in text_of(render(told), "groups")
    weighted, *_ = listed_groups(report(0.82 + noise, np.linspace(1, 2, 4_000)), "age")
    assert (weighted.where, weighted.mean) == ("ages 53 and over", None)
    right = report(chance + noise)
    assert listed_groups(right, "age") == groups(right, "age")
    assert said(chance + noise).startswith("No group is scored significantly too high or too low;")
    low = said(0.76 + noise)  # all are scored too low, the old more so
    assert low.startswith(("The mean score of all people is significantly too low", "Largest"))


def numeric_audit(
    bias: float, seed: int, *, each: int = 1, grouped: bool = False, rows: int = 1_500
) -> Audit:
    """Audit predictions of an income whose spread grows 55-fold up to age 69 and is as small after
    it as at 20; its errors are skewed, and shared by the rows of groups of `each`.
    """
    random = np.random.default_rng(seed)
    groups = np.arange(rows) // each
    age = random.uniform(20, 80, rows)[groups]
    spread = np.where(age < 69, np.exp(4 * (age - 20) / 49), 1.0)
    income = 50 + spread * (random.exponential(size=rows)[groups] - 1)
    return audit(
        pd.Series(50 + bias * (age >= 69), name="predicted income"),
        pd.Series(age, name="age"),
        pd.Series(income, name="income"),
        groups=groups if grouped else None,
        settings=Settings(fast=True, resamples=20),
    )


def test_a_group_is_tested_with_its_own_spread():
    """The oracle is Student's test of the group by itself, at a hundredth of the level."""
    result = numeric_audit(1.0, 3)
    curves = result["age"].all_rows.curves
    group = sort_groups(result["age"], result)[0]
    start = curves["gdp"].start[group]
    line = worst_sentence(Report(result), "age")
    assert line.startswith("Largest significant error (ringed): ages 7")
    assert "significantly too high, by 1." in line
    random = np.random.default_rng(3)
    age = random.uniform(20, 80, 1_500)
    own = age >= start
    errors = 1 - (random.exponential(size=1_500) - 1)[own]
    assert stats.ttest_1samp(errors, 0).pvalue < 0.0005
    # errors as a whole are dominated by other ages
    assert result["age"].all_rows["calibration_gdp"].pvalue > 0.05 / 3


def test_groups_of_unequal_spread_are_rarely_called_wrong_without_an_error():
    def called(**design: Any) -> int:
        lines = (
            worst_sentence(Report(numeric_audit(0.0, seed, rows=900, **design)), "age")
            for seed in range(40)
        )
        return sum("Largest significant error" in line or "at ages" in line for line in lines)

    assert called() <= 5  # two are expected at the level of .05
    assert called(each=9, grouped=True) <= 5
    assert called(each=9) > 10


def test_the_largest_error_by_every_attribute_is_on_the_first_screen():
    """Chances do not depend on the school, but outcomes do; by age, neither does."""
    random = np.random.default_rng(4)
    school = random.integers(8, 16, 4_000).astype(float)
    chance = random.uniform(0.2, 0.6, 4_000)
    outcome = (random.random(4_000) < chance - 0.15 * (school == 10)).astype(int)
    attributes = pd.DataFrame({"age": random.integers(20, 40, 4_000), "school": school})
    result = audit(pd.Series(chance, name="score"), attributes, outcome, settings=FAST)
    report = Report(result)
    error = (chance - outcome)[school == 10].mean()
    line = (
        f"Largest significant error by school: school 10 ({np.sum(school == 10)} people),"
        f" scored significantly too high, by {format_estimate(error)}."
    )
    assert attribute_lines(report, replace(verdict(report), attribute="age")) == [line]
    assert attribute_lines(report, replace(verdict(report), attribute="school")) == []
    tradeoff = samples.tradeoff("age", "school")
    aimed = replace(report, tradeoff=tradeoff)
    head = replace(verdict(aimed), attribute="age")
    gap = tradeoff.after.gaps[1]
    low, high = format_estimate(gap.low), format_estimate(gap.high)
    stated = f"Gap by school: {format_estimate(gap.value)} ({low} to {high}). {line}"
    assert attribute_lines(aimed, head) == [stated]
    assert verdict(aimed).attribute == "age"
    assert stated in text_of(render(aimed))


def test_the_errors_of_several_attributes_share_one_level():
    """The oracle is Student's interval of the first group at the level of each of all means."""
    random = np.random.default_rng(0)
    age = random.uniform(20, 80, 1_000)
    frame = pd.DataFrame({"age": age} | {f"x{i}": random.normal(size=1_000) for i in range(9)})
    y = pd.Series(random.normal(size=1_000), name="y")
    for columns in (frame[["age"]], frame):
        curves = audit(y * 0, columns, y, settings=FAST)["age"].all_rows.curves
        band = curves["calibration_gdp"]
        means = columns.shape[1] * (len(band.mean) + len(curves[WINDOWS_KEY].mean))
        tail = (1 - 0.95 ** (1 / means)) / 2
        own = y[(age >= band.start[0]) & (age <= band.end[0])]
        reach = stats.t.ppf(1 - tail, len(own) - 1) * own.std() / len(own) ** 0.5
        assert band.high[0] - band.mean[0] == pytest.approx(reach, rel=0.1)


def test_deaths_that_the_scores_do_not_expect_are_not_chance():
    """Of 190 old people 11 die, where the scores expect 1.5."""
    random = np.random.default_rng(2)
    age = np.sort(random.integers(16, 80, 5_000)).astype(float)
    died = random.random(5_000) < 0.008
    died[-190:] = np.arange(190) < 11
    score = pd.Series(0.008 + 0.001 * random.random(5_000), name="score")
    outcome = pd.Series(died.astype(int), name="died")
    result = audit(
        score, pd.Series(age, name="age"), outcome, settings=Settings(fast=True, resamples=50)
    )
    said = worst_sentence(Report(result), "age")
    assert said.startswith("Largest significant error (ringed): ages 7")
    assert "significantly too low" in said


def test_a_rare_outcome_says_by_which_threshold_the_model_labels():
    random = np.random.default_rng(3)
    chance = np.clip(random.beta(2, 12, 3_000), 0.001, 0.6)  # no outcome is rare here
    outcome = pd.Series((random.random(3_000) < chance).astype(int), name="died")
    age = pd.Series(random.integers(20, 70, 3_000).astype(float), name="age")
    rare = audit(pd.Series(chance, name="score"), age, outcome, settings=QUICK)
    rate = rare.subject.threshold
    line = decision_sentence(Report(rare))
    assert line == (
        f"Less than 20 % of people have “died”, so scores above {rate:g}, about the base rate,"
        " count as positive, instead of scores above 0.5."
    )
    trained = replace(samples.full(), audit=rare)
    assert 0 < np.mean(chance > 0.5) < 0.01
    own = " count as positive here. The model itself uses 0.5, and"
    assert decision_sentence(trained) == (
        f"Less than 20 % of people have “died”, so scores above {rate:g}, about the base rate,"
        f"{own} less than 1 % of people have a score above it."
    )
    survived = pd.Series(1 - outcome, name="survived")
    common = audit(pd.Series(1 - chance, name="score"), age, survived, settings=QUICK)
    assert decision_sentence(replace(samples.full(), audit=common)) == (
        f"More than 80 % of people have “survived”, so scores above {1 - rate:g}, about the base"
        f" rate,{own} more than 99 % of people have a score above it."
    )
    high = audit(pd.Series((1 - chance).clip(0.51), name="score"), age, survived, settings=QUICK)
    assert decision_sentence(replace(samples.full(), audit=high)).endswith(
        " uses 0.5, and all 3,000 people have a score above it, so all decisions are the same."
    )
    low = audit(pd.Series(chance.clip(0, 0.5), name="score"), age, outcome, settings=QUICK)
    assert decision_sentence(replace(samples.full(), audit=low)).endswith(
        " uses 0.5, and none of the 3,000 people has a score above it, so all decisions are the"
        " same."
    )
    assert text(Report(rare)).count("Less than 20 %") == 1
    assert text_of(render(rare)).count("Less than 20 %") == 1
    assert decision_sentence(Report(scored())) == ""


def test_rates_of_decisions_that_no_score_reaches_are_not_shown():
    """A quarter has the outcome, and the largest score is below the usual threshold of 0.5."""
    random = np.random.default_rng(3)
    chance = random.uniform(0.1, 0.4, 2_000)
    outcome = pd.Series((random.random(2_000) < chance).astype(int), name="default")
    age = pd.Series(random.integers(20, 70, 2_000).astype(float), name="age")

    def shown(score: Any, **options: Any) -> tuple[list[str], str]:
        result = audit(pd.Series(score, name="score"), age, outcome, settings=FAST, **options)
        return [cost.key for cost in costs(Report(result))], decision_sentence(Report(result))

    assert shown(chance) == (
        ["auc", "log_loss", "mean_error"],
        "0 % of the scores exceed the threshold 0.5, so rates of decisions are not shown here.",
    )
    rates = ["true_positive_rate", "false_positive_rate", "auc", "log_loss"]
    assert shown(chance, threshold=0.5) == (rates, "")  # as was asked
    assert shown(chance + 0.2 * (chance > 0.35)) == (rates, "")


@pytest.mark.parametrize("most", [0.3, 0.9])
def test_a_numeric_target_has_no_decisions_unless_a_threshold_is_stated(most):
    random = np.random.default_rng(3)
    age = pd.Series(random.integers(20, 70, 2_000).astype(float), name="age")
    rate = pd.Series(most * random.random(2_000) * (age / 70), name="rate")
    score = pd.Series(rate * 0.9, name="predicted rate")
    for threshold, decided in ((None, False), (0.2, True)):
        report = Report(audit(score, age, rate, threshold=threshold, settings=FAST))
        shown = unfolded(render(report)) + text(report)
        assert ("0.2" in decision_gaps(report)) == decided
        assert decided or not re.search("threshold|above 0.5", shown)


def test_a_rate_has_its_number_of_rows_and_an_exact_interval():
    """Clopper and Pearson's interval of 10 of 16 is 35.4 to 84.8 %."""
    died = pd.Series(np.arange(2_000) < 16, name="died").astype(int)
    score = pd.Series(np.where(np.arange(2_000) < 10, 0.6, 0.1), name="score")
    age = pd.Series(np.arange(2_000) % 50 + 20.0, name="age")
    found, alarms_, ranking, _ = costs(
        Report(audit(score, age, died, threshold=0.5, settings=FAST))
    )
    assert (found.meaning, found.now) == ("of 16 with “died”: above 0.5", "62.5 %")
    assert found.change == "35.4 % to 84.8 %"
    assert alarms_.meaning == "of 1,984 others: above 0.5"
    assert alarms_.change == "0.0 % to 0.2 %"
    assert re.fullmatch(r"0\.6\d\d to 0\.9\d\d", ranking.change)  # around 0.8125


def test_the_interval_of_a_rate_depends_on_its_own_groups():
    """Nobody who died shares a vehicle, so 24 of 26 have the exact interval, whatever the size of
    other vehicles.
    """
    died = pd.Series(np.arange(2_000) < 26, name="died").astype(int)
    score = pd.Series(np.where((np.arange(2_000) + 2) % 26 < 24, 0.6, 0.1), name="score")
    age = pd.Series(np.arange(2_000) % 50 + 20.0, name="age")
    vehicle = np.minimum(np.arange(2_000), 1_000)
    result = audit(score, age, died, groups=vehicle, threshold=0.5, settings=FAST)
    low, high = stats.binomtest(int((score[:26] > 0.5).sum()), 26).proportion_ci(0.95, "exact")
    found = costs(Report(result))[0]
    assert found.change == f"{100 * low:.1f} % to {100 * high:.1f} %"


def test_the_mean_score_is_said_to_rise_or_to_fall_where_bands_set_its_ends_apart():
    curve = replace(
        samples.curve(points=4),
        mean=(0.2, 0.5, 0.4, 0.9),
        low=(0.1, 0.4, 0.3, 0.0),
        high=(0.3, 0.6, 0.5, 1.0),
        sparse=(False, False, False, True),
    )
    result = with_curve(samples.audit(), curve)
    rise, start, end = (
        trend_sentence(result, "age"),
        *(group_phrase(curve, i, "age") for i in (0, 1)),
    )
    assert rise == f"The mean score rises from 0.200 ({start}) to 0.500 ({end})."
    assert rise in text(result)
    assert rise in text_of(render(result))
    down = replace(
        curve, mean=(0.5, 0.4, 0.2, 0.9), low=(0.4, 0.3, 0.1, 0.0), high=(0.6, 0.5, 0.3, 1.0)
    )
    fall = with_curve(result, down)
    assert trend_sentence(fall, "age").startswith("The mean score falls from 0.500 (")
    alike = with_curve(result, replace(curve, high=(0.41, 0.6, 0.5, 1.0)))
    assert trend_sentence(alike, "age") == ""


def test_a_share_that_is_too_small_to_be_seen_is_not_called_nothing():
    number = Number("correlation_ratio", 0.0, 500, Interval(0.0, 0.01, 0.95, ""), 0.002)
    said = words.sentence(number, samples.SUBJECT, "age")
    assert said.endswith("its mean at a given age explains: not distinguishable from 0.")
    assert "recovers nothing" in words.sentence(
        Number("probe_linear", -0.01, 500), samples.SUBJECT, "age"
    )


def test_a_gap_may_grow_and_both_ends_say_in_which_direction():
    grown = words.reduced_phrase(0.04, 0.042, Interval(-0.2, 0.03, 0.95, ""))
    assert grown == "is 5 % larger (20 % larger to 3 % smaller)"
    certain = words.reduced_phrase(0.04, 0.05, Interval(-0.4, -0.1, 0.95, ""))
    assert certain == "is 25 % larger (40 % larger to 10 % larger)"


def test_a_gap_of_0_before_and_after_is_said_once():
    assert words.reduced_phrase(0.0, 0.0, None) == (
        "is not significant, with the limit or without it"
    )
    gap = Number("gdp", 0.0, 500, Interval(0.0, 0.0034, 0.95, ""))
    said = words.gap_phrase_with_interval(gap)
    assert said == "not distinguishable from 0 (at most 0.0034)"


def test_no_outcome_is_called_good_unless_it_is_said_to_be(audited: Audit):
    """Here `favourable` names no default; where nothing is named, the outcome may be a death."""
    subject = audited.subject
    silent = replace(subject, target=replace(subject.target, favourable=None))
    for result in (audited, replace(audited, subject=silent)):
        shown = " ".join(
            [render(result), *(limit_sentence(check, result) for check in result.limits)]
        )
        assert not re.search("good outcome|favou?rable (outcome|value)", shown)
    check = next(check for check in audited.limits if check.among == "favourable")
    assert "among rows with “default: 0”" in limit_sentence(check, audited)


def test_rows_in_groups_are_not_called_people():
    groups = np.arange(3_000) // 3
    result = scored(groups=groups, context=CONTEXT)
    assert "3,000 rows of 1,000 applicants" in surety(Report(result))
    assert "The 3,000 rows belong to 1,000 applicants. Gaps" in " ".join(warnings(result))
    unnamed = replace(result, context=Context())
    assert "3,000 rows of 1,000 units" in surety(Report(unnamed))
    assert "The 3,000 rows belong to 1,000 units. Gaps" in " ".join(warnings(unnamed))
    assert "the mean score of units with the same age" in text_of(render(unnamed))
    age = np.random.default_rng(8).integers(20, 70, 3_000)  # as in scored()
    start, end, rows, applicants = re.search(
        r"ages (\d+) to (\d+) \((\d+) rows of (\d+) applicants\)\. Their mean score",
        worst_sentence(Report(result), "age"),
    ).groups()
    inside = (age >= int(start)) & (age <= int(end))
    assert (int(rows), int(applicants)) == (np.sum(inside), len(np.unique(groups[inside])))
    assert "applicants). Their mean score" in worst_sentence(Report(scored(context=CONTEXT)), "age")
    grouped = scored(groups=groups, limit="gdp <= 0.3", context=CONTEXT)
    shown = text_of(render(grouped))
    assert "The gap is how far the mean score of applicants with the same age" in shown
    assert "group applicants" in shown  # the legend
    points = re.findall(r"ages (\d+) to (\d+): [\d.]+ \([^()]*\), (\d+) applicants", shown)
    assert len(points) > 5
    for start, end, people in points:
        inside = (age >= int(start)) & (age <= int(end))
        assert int(people) == len(np.unique(groups[inside]))
    assert not re.search(r"\), \d+ rows", shown)
    bars = grouped["age"].histogram
    for low, high, people in zip(bars.edges, bars.edges[1:], bars.counts):
        assert people == len(np.unique(groups[(age >= low) & (age < high)]))
    assert "person" not in shown
    weighted = scored(groups=groups, sample_weight=np.linspace(0.5, 2, 3_000))
    lines = [line for line in warnings(weighted) if "measures of dependence" in line]
    assert len(lines) == 1
    assert "at most one from each" in lines[0]


@pytest.mark.parametrize(
    ("score", "told"),
    [
        (lambda age, noise: 0.5 * noise, "none of the 3,000 people, so in these rows the gap in"),
        (lambda age, noise: 0.7 + 0.2 * noise, "all 3,000 people, so in these rows the gap in"),
        (lambda age, noise: np.where(age < 60, noise, 0.7), "all people at ages 6"),
        (lambda age, noise: np.where(age < 60, noise, 0.2), "none of the people at ages 6"),
        (lambda age, noise: noise, ""),
    ],
)
def test_a_threshold_that_selects_all_or_none_is_said_first(score, told: str):
    random = np.random.default_rng(0)
    age = random.integers(20, 70, 3_000).astype(float)
    scores = pd.Series(score(age, random.uniform(size=3_000)), name="score")
    age = pd.Series(age, name="age")
    result = audit(scores, age, threshold=0.6, limit="decision_gdp <= 0.3", settings=FAST)
    lines = [line for line in verdict(Report(result)).others if "selects" in line]
    if not told:
        assert lines == []
        return
    assert lines[0].startswith(f"The threshold 0.6 selects {told}")
    for shown in (closing_lines(Report(result))["also"], text_of(render(result)), text(result)):
        assert lines[0] in shown
    default = audit(scores, age, settings=FAST)  # no decisions are judged
    assert "selects" not in text_of(render(default))


def test_decisions_for_few_bound_their_gap():
    """With a share p, the mean absolute deviation of shares is at most 2 p (1 − p)."""
    score = np.where(np.arange(3_000) % 300 == 0, 0.9, 0.1)  # 10 of 3,000
    age = np.where(score > 0.5, 30.0, 40.0 + np.arange(3_000) % 20)
    result = audit(score, age, threshold=0.6, settings=FAST)
    (line,) = (line for line in verdict(Report(result)).others if "selects" in line)
    most = 2 * (1 / 300) * (299 / 300)
    assert line == (
        "The threshold 0.6 selects 0.333 % of the 3,000 people, so in these rows the gap in"
        f" decisions cannot exceed {format_estimate(most)}."
    )
    rates = score > 0.5
    assert np.abs(rates - rates.mean()).mean() == pytest.approx(most)  # reached here


def test_decisions_are_not_said_to_be_too_high_or_too_low():
    """A third is selected, half has the outcome."""
    random = np.random.default_rng(0)
    age = random.integers(20, 70, 3_000).astype(float)
    outcome = pd.Series((random.random(3_000) < 0.5).astype(int), name="late")
    decision = (random.random(3_000) < 1 / 3).astype(float)
    options = {"settings": FAST, "favourable": 0}
    result = audit(decision, pd.Series(age, name="age"), outcome, **options)
    shown = unfolded(render(result))
    assert "too low" not in shown
    assert "Assessment" not in shown
    assert "Their share of positive decisions is 0." in shown
    assert "The share of positive decisions does not vary significantly with age:" in shown
    assert "mean decision" not in shown
    assert "of them actually had “late”" in shown
    found = costs(Report(result))[0]
    assert found.meaning.endswith("with “late”: selected")
    scores = audit(0.9 * decision, pd.Series(age, name="age"), outcome, **options)
    assert "too low" in unfolded(render(scores))


def test_two_gaps_that_are_not_significant_are_no_movement():
    """The gap of the fit is clear; on the rows of the report, it is noise before and after."""
    tradeoff = samples.tradeoff()
    noise = Change("gdp", "age", 0.002, 0.0003, Interval(-0.01, 0.01, 0.95, ""), 0.6, 0.05)
    after = replace(tradeoff.after, gaps=(Gap(0.0003, 0.0, 0.004),))
    tradeoff = replace(tradeoff, changes=(noise,), after=after)
    report = Report(samples.audit(strength=0.003), before=samples.audit(), tradeoff=tradeoff)
    head = verdict(report)
    assert head.sentence == (
        "Not judged: in these 30,162 people, the gap by age is not significant, with the limit or"
        " without it."
    )
    sample = report.audit
    men = replace(sample.context, people="men")
    of_men = replace(sample, rows=replace(sample.rows, groups=109), context=men)
    named = verdict(replace(report, audit=of_men)).sentence
    assert named == head.sentence.replace("30,162 people", "109 men")
    fit = (
        "Among the people used to build the model, measured out of fold, the gap by age is"
        " significant without the limit: 0.091 (0.073 to 0.12); with it, it is 0.016 (0.013 to"
        " 0.020)."
    )
    assert fit in head.remarks
    lines = closing_lines(report)
    assert lines["gap"] == "age: 0.000300 (0 to 0.00400)"
    assert attribute_lines(report, head) == ["Gap by age: 0.00030 (0 to 0.0040)."]
    assert fit in lines["rows"]
    least = replace(tradeoff, shares=(None,), limits=(0.0,))
    smallest = verdict(replace(report, tradeoff=least)).remarks
    assert fit in smallest
    assert smallest[-1] == (
        "In these 30,162 people, the gap by age is not significant, with the limit or without it."
    )
    unclear = replace(tradeoff.points[0], gaps=(Gap(0.01, 0.0, 0.03),))
    nothing = replace(tradeoff, points=(unclear, *tradeoff.points[1:]))
    assert "out of fold" not in " ".join(verdict(replace(report, tradeoff=nothing)).remarks)
    significant = replace(tradeoff, after=replace(after, gaps=(Gap(0.03, 0.01, 0.05),)))
    assert "goes from 0.00200 to" in verdict(replace(report, tradeoff=significant)).sentence


def test_a_share_of_noise_comes_after_other_verdicts():
    """By age the target is met; by hours, there was no significant gap, and is none."""
    noise = Change("gdp", "hours", 0.002, 0.0003, Interval(-0.01, 0.01, 0.95, ""), 0.6, 0.05)
    tradeoff = samples.tradeoff("age", "hours")
    gaps = tradeoff.after.gaps[0], Gap(0.0003, 0.0, 0.004)
    tradeoff = replace(
        tradeoff,
        shares=(0.5, 0.5),
        changes=(tradeoff.changes[0], noise),
        after=replace(tradeoff.after, gaps=gaps),
    )
    head = verdict(Report(samples.audit("age", "hours"), tradeoff=tradeoff))
    assert (head.attribute, head.kind) == ("age", "kept")
    assert head.others == (
        "Not judged: in these 30,162 people, the gap by hours is not significant, with the limit or"
        " without it.",
    )
    clear = replace(tradeoff, after=replace(tradeoff.after, gaps=(gaps[0], Gap(0.03, 0.01, 0.05))))
    assert verdict(Report(samples.audit("age", "hours"), tradeoff=clear)).attribute == "hours"


def test_the_size_of_a_gap_that_is_not_significant_is_not_explained():
    interval = Interval(0.0, 0.05, 0.95, "")
    gap = Number("gdp", 0.02, 4000, interval, pvalue=0.3)
    result = samples.audit("age")
    (age,) = result.attributes
    rows = replace(age.all_rows, numbers=(gap, *age.all_rows.numbers[1:]))
    result = replace(result, attributes=(replace(age, all_rows=rows),))
    head = verdict(Report(result))
    assert "does not vary significantly" in head.sentence
    assert meaning(head, result) == DEFINITION
    check = LimitCheck("age", "gdp", "all", 0.1, 0.02, interval)
    limited = replace(result, limits=(check,))
    assert "on average: 0.020" in meaning(verdict(Report(limited)), limited)


def test_no_sentence_names_a_group_of_few_rows():
    age = pd.Series(np.arange(20.0, 45.0), name="age")
    score = pd.Series(np.arange(25) / 50, name="score")
    few = audit(score, age, (np.arange(25) % 2), settings=FAST)
    assert all(few["age"].all_rows.curves["gdp"].sparse)
    errors = few["age"].all_rows.curves["calibration_gdp"]
    widths = [(high - low) / 2 for low, high in zip(errors.low, errors.high)]
    size = format_estimate(float(np.median(widths)))
    assert len(widths) % 2
    assert worst_sentence(Report(few), "age") == (
        "Every group by age has fewer than 30 people, too few to compare scores with outcomes: half"
        f" of the groups are too small to show even an error of {size}."
    )
    assert worst_sentence(Report(audit(score, age, settings=FAST)), "age") == ""
    assert trend_sentence(few, "age") == ""
    assert 'class="mark"' not in picture(Report(few), "age")
    shown = unfolded(render(few))
    assert "(ringed)" not in shown
    assert "actual outcome" not in shown.casefold()
    assert "groups by age: those farthest from the average first" in shown


def test_errors_that_vary_are_said_where_every_group_is_small():
    """The old have the outcome and the young do not, which the score does not expect."""
    random = np.random.default_rng(1)
    age = pd.Series(random.permutation(np.arange(100.0)), name="age")
    score = pd.Series(random.uniform(0.4, 0.6, 100), name="score")
    settings = replace(FAST, resamples=100)
    said = [
        worst_sentence(Report(audit(score, age, outcome, settings=settings)), "age")
        for outcome in ((age > 50).astype(int), random.integers(0, 2, 100))
    ]
    assert all(line.startswith("Every group by age has fewer than 30 people") for line in said)
    vary = "Overall, errors vary significantly with age."
    assert [line.endswith(vary) for line in said] == [True, False]


def test_an_axis_of_very_small_numbers_has_short_labels_and_names_their_unit():
    names = ("age", "mean score", "")
    units = {3e-6: (", in 10⁻⁶", 1e-6), 0.3: ("", 1), 4e7: (", in millions", 1e6)}
    units[4e9] = (", in 10⁹", 1e9)
    for size, (unit, scale) in units.items():
        svg = Frame((20, 60), (-size, size), names).svg([])
        assert f">mean score{unit}</text>" in svg
        labels = re.findall(r'text-anchor="end">(−?[\d.]+)</text>', svg)
        assert len(labels) >= 4
        assert max(map(len, labels)) <= 4
        assert max(float(label.replace("−", "-")) for label in labels) <= size / scale
    small = Frame((20, 60), (0, 3e-6), names, small=True).svg([])
    assert ">in 10⁻⁶</text>" in small


def test_the_name_of_the_average_is_placed_where_no_line_is():
    """Lines end just above or below the average, or at both sides of it."""

    def place(*ends: tuple[float, float]) -> tuple[bool, str]:
        lines = [Line("after", (0.0, 0.7, 1.0), (start, 0.9, end)) for start, end in ends]
        frame = Frame((0.0, 1.0), (0.0, 1.0), ("s", "mean", ""))
        svg = frame.svg(lines, level=(0.5, "average 0.500"))
        (at,) = re.findall(r'class="level"[^>]* d="M\d+ ([\d.]+)H', svg)
        ((b, side),) = re.findall(r'y="([\d.]+)" text-anchor="(\w+)">average', svg)
        return float(b) < float(at), side

    assert place((0.9, 0.9)) == (True, "end")
    assert place((0.9, 0.52)) == (True, "start")
    assert place((0.52, 0.52)) == (False, "end")
    assert place((0.52, 0.52), (0.9, 0.47)) == (False, "start")


def test_a_long_label_moves_the_axis_to_the_right():
    wide, narrow = (
        float(
            re.search(
                r'class="axis"[^>]* d="M([\d.]+) ', Frame((0, 1), ends, ("", "", "")).svg([])
            )[1]
        )
        for ends in ((100_000, 900_000), (0, 1))
    )
    assert (wide, narrow) == (6 + 11 * len("800,000"), 62)


def test_amounts_of_millions_are_written_in_full():
    income = np.repeat(np.linspace(1e6, 3e6, 40), 10)
    scores = pd.Series(1.05 * income, name="value")
    y = pd.Series(income + np.tile([-5e5, 5e5], 200), name="value")
    result = audit(scores, pd.Series(income, name="income"), y, settings=QUICK)
    shown = render(Report(result))
    screen = text_of(shown)
    assert "10⁶" not in shown
    assert "2,100,000" in screen  # the mean score
    assert "in millions" in screen
    rmse = float(np.sqrt(np.mean((scores - y) ** 2)))
    assert f"{rmse:,.0f}" in screen  # numbers below a million have all their digits


def test_small_differences_are_powers_of_ten_like_the_numbers_beside_them():
    values = {0.0634: "+0.063", -2.3e-5: "−2.3 × 10⁻⁵", 7e-7: "+7 × 10⁻⁷", 0.0: "+0"}
    assert {value: words.signed_figure(value) for value in values} == values


def test_groups_of_one_row_are_not_mentioned():
    result = scored(groups=np.arange(3_000), context=CONTEXT)
    alone = scored(context=CONTEXT)
    assert result.to_dict() == alone.to_dict()  # independent rows, so the same intervals
    assert surety(Report(result)) == surety(Report(alone))
    assert warnings(result) == warnings(alone)
    assert "applicants). Their mean score" in worst_sentence(Report(result), "age")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("age", "ages 70 and over"),
        ("Age", "Ages 70 and over"),
        ("AGE", "AGE 70 and over"),
        ("alter", "alter 70 and over"),
        ("Age (years)", "Age (years) 70 and over"),
        ("% black", "% black 70 and over"),
    ],
)
def test_only_the_word_age_has_a_plural(name: str, group: str):
    curve = replace(samples.curve(points=2), start=(17.0, 70.0), end=(69.0, 90.0))
    assert group_phrase(curve, 1, name) == group
    assert group_phrase(curve, 0, name) == group.replace("70 and over", "17 to 69")


def test_the_headline_is_about_the_gap_farthest_from_its_limit_in_proportion():
    """By age, 0.09 of an allowed 0.1; by hours, 0.019 of 0.02: less below it, but in proportion
    closer.
    """
    age = LimitCheck("age", "gdp", "all", 0.1, 0.09, Interval(0.085, 0.095, 0.95, ""))
    hours = LimitCheck("hours", "gdp", "all", 0.02, 0.019, Interval(0.0185, 0.0195, 0.95, ""))
    result = samples.audit("age", "hours")
    over = [replace(age, value=0.11, interval=Interval(0.105, 0.12, 0.95, ""))]
    over += [replace(hours, value=0.028, interval=Interval(0.025, 0.03, 0.95, ""))]
    near = [replace(age, value=0.099, interval=Interval(0.098, 0.0995, 0.95, "")), hours]
    for limits, first, other in (
        ((hours, age), "hours", "age"),
        (over, "hours", "age"),
        (near, "age", "hours"),
    ):
        head = verdict(Report(replace(result, limits=tuple(limits))))
        assert head.attribute == first
        assert f"by {first} is" in head.sentence
        assert len(head.others) == 1
        assert f"by {other} is" in head.others[0]
    ratio = replace(age, key="decision_ratio", limit=0.8, interval=Interval(0.81, 0.99, 0.95, ""))
    ratios = replace(ratio, value=0.9), replace(ratio, attribute="hours", value=0.85)
    assert verdict(Report(replace(result, limits=ratios))).attribute == "hours"


def test_without_a_limit_the_headline_is_about_the_largest_significant_gap():
    result = samples.audit("age", "hours")
    first, second = result.attributes
    chance = samples.number("gdp", 0.2, width=0.3, pvalue=0.4)
    rows = replace(first.all_rows, numbers=(chance, *first.all_rows.numbers[1:]))
    mixed = replace(result, attributes=(replace(first, all_rows=rows), second))
    assert [verdict(Report(one)).attribute for one in (result, mixed)] == ["age", "hours"]


@pytest.mark.parametrize("estimate", [0.0, 0.0051])
def test_a_gap_among_other_limits_that_may_be_0_has_its_upper_bound(estimate):
    tradeoff = samples.tradeoff()
    *stops, last = tradeoff.stops
    point = replace(last.point, gaps=(Gap(estimate, 0.0, 0.0123),))
    stops = (*stops, replace(last, point=point))
    report = Report(samples.audit(), tradeoff=replace(tradeoff, stops=stops))
    shown = render(report)
    assert "<span>≤ 0.012</span>" in shown
    assert "strictest limit; gap: ≤ 0.012" in text_of(shown)
    assert "≤: not significant; upper end of the interval." in text_of(shown)
    assert "≤" not in text_of(render(replace(report, tradeoff=tradeoff)))
    assert stop_gap(Gap(0.0, 0.0, 0.0)) == "0"  # the scores are all the same


def test_a_share_that_was_not_applied_is_said_first():
    report = samples.full()
    first, *rest = report.tradeoff.points
    points = (replace(first, chosen=True), *(replace(one, chosen=False) for one in rest))
    tradeoff = replace(report.tradeoff, points=points, changes=())
    free = replace(report, before=None, tradeoff=tradeoff)
    head = verdict(free)
    assert head.sentence.startswith("No limit was applied: the requested limit is 20 %")
    assert "train with --limit 0" in closing_lines(free)["rows"]
    assert head.others[0].startswith("The mean score varies with")
    [chosen] = [stop for stop in tradeoff.stops if stop.point.chosen]
    assert stop_name(tradeoff, chosen) == "this model (no limit applied)"


def test_the_features_are_listed_where_it_is_said_how_it_was_computed():
    result = scored(context=replace(CONTEXT, features=("hours", "town")))
    assert "Features (2) hours, town" in text_of(render(result), "method")
