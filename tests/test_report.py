"""The report: every number on its pages is one of the audit, and what it claims follows from
them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import report_samples as samples
from frhsic.auditing import Audit, Context, Settings, audit
from frhsic.auditing.measures import decision_ratio
from frhsic.auditing.results import Change, Curve, LimitCheck, Number, Quality, Subject
from frhsic.estimators.frontier import Gap
from frhsic.formatting import figure, percent, plain, ranged, stated
from frhsic.intervals import Interval
from frhsic.report import Report, page, render, text, words, write
from frhsic.report.first_page import QUALITY, needed_lines, quality_rows, questions, worst_group
from frhsic.report.model import Driver, Drivers, drivers, shifts
from frhsic.report.page import unbroken
from frhsic.report.words import driver_sentence, shift_sentence, summary, tradeoff_rows

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=40, max_rows=200, probe_rows=200)
CONTEXT = Context(
    source="loans.csv",
    decision="whether a loan is granted",
    people="applicants",
    period="May 2025",
    author="Ann Lee",
    dropped=1,
    origin={"made": "2025-06-01 10:00, universal time", "software": "frhsic"},
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


def text_of(html_page: str, part: str = "decision") -> str:
    section = re.search(rf'<section id="{part}".*?</section>', html_page, re.DOTALL).group(0)
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]+>", " ", section))).strip()


def lines_of(report: Report | Audit, title: str) -> tuple[str, ...]:
    asked = questions(Report(report) if isinstance(report, Audit) else report)
    return next(question.lines for question in asked if question.title.startswith(title))


def with_curve(result: Audit, curve: Curve) -> Audit:
    (attribute,) = result.attributes
    population = replace(attribute.all_rows, curves={"gdp": curve})
    return replace(result, attributes=(replace(attribute, all_rows=population),))


# the first page
# -------------------------------------------------------------------------------------------------


def test_the_first_page_has_no_symbol_no_acronym_and_a_picture(audited: Audit):
    for report in (
        Report(audited),
        samples.full(),
        Report(replace(audited, limits=(), quality=(), context=Context())),
    ):
        shown = text_of(render(report))
        assert re.findall(r"\b[A-Z]{2,}\w*|[λ²=≤≥×|σ]|E\[|p-value|quantile|kernel", shown) == []
        assert 'data-figure="first"' in render(report).partition('id="finding"')[0]
    assert re.findall(r"\b[A-Z]{2,}\b", " ".join(QUALITY.values())) == []


def numbers_in(shown: str) -> list[str]:
    return re.findall(r"−?\d(?:[\d,]*\d)?(?:\.\d+)?(?: %)?", shown)


def known_numbers(report: Report) -> set[str]:
    """Every number that the first page of a report may show, from the audits alone."""
    result, rows = report.audit, report.audit.rows
    values, shares, whole = (
        [],
        [],
        [rows.used, rows.given, rows.dropped, 1000, len(words.warnings(result))],
    )
    for check in result.limits:
        values += [check.value, check.interval.low, check.interval.high, check.limit]
        values += [1000 * value for value in values[-4:]]
        shares += [check.share or 0]
        if check.reference is not None:
            values += [
                check.reference.value,
                check.reference.interval.low,
                check.reference.interval.high,
            ]
    for attribute in result.attributes:
        for population in (attribute.all_rows, attribute.positives):
            gap = population["gdp"]
            values += [gap.value, gap.interval.low, gap.interval.high]
            shares += [gap.settings.get("resolution", 0.0)]
        curve, decisions = (attribute.all_rows.curves[key] for key in ("gdp", "decision_gdp"))
        trusted = [i for i in range(len(curve.grid)) if not curve.sparse[i]]
        sure = [i for i in trusted if not curve.low[i] <= curve.overall <= curve.high[i]]
        for i in {
            worst_group(curve),
            *([max(sure, key=lambda i: abs(curve.mean[i] - curve.overall))] if sure else []),
        }:
            values += [curve.mean[i], curve.start[i], curve.end[i], curve.overall]
            shares += [
                abs(x - curve.overall) / curve.overall
                for x in (curve.mean[i], curve.low[i], curve.high[i])
            ]
            whole += [
                curve.rows[i],
                *(1000 * x for x in (curve.mean[i], curve.overall, decisions.mean[i])),
            ]
            whole += [abs(round(1000 * curve.mean[i]) - round(1000 * curve.overall))]
            rest = attribute.all_rows.curves["calibration_gdp"]
            whole += [1000 * (curve.mean[i] + rest.mean[i])]
        low, mean, high = (
            [each[i] for i in trusted] for each in (decisions.low, decisions.mean, decisions.high)
        )
        shares += [
            min(mean) / max(mean),
            max(min(low), 0) / max(high),
            min(min(high) / max(low), 1),
        ]
        whole += [
            1000 * decisions.overall,
            sum(rows for rows, sparse in zip(curve.rows, curve.sparse) if sparse),
        ]
    for change in result.drift:
        values += [change.before, change.after, change.interval.low, change.interval.high]
    before = () if report.before is None else report.before.quality
    for one in (*result.quality, *before):
        values += [one.value, one.constant]
        whole += [1000 * one.value, 1000 * one.constant]
    right = [round(1000 * one.value) for one in (*before, *result.quality) if one.key == "accuracy"]
    whole += [abs(right[0] - right[-1]), 1000 * result.subject.base_rate.value, 0]
    shares += [result.subject.confidence, 0.2]  # the limit of the sample
    if report.tradeoff is not None:
        gap, (change,) = report.tradeoff.after.gaps[0], report.tradeoff.changes
        free = report.tradeoff.before.gaps[0], report.tradeoff.points[0].gaps[0]
        values += [
            gap.value,
            gap.low,
            gap.high,
            *(x for one in free for x in (one.value, one.low, one.high)),
        ]
        reduced = 1 - change.after / change.before, *change.reduction
        whole += [100 * x for x in reduced]
        shares += [round(x, 2) for x in reduced] + [0.8]
    written = [*vars(result.context).values(), stated(result.subject.threshold)]
    known = {form(x) for x in values for form in (figure, plain, stated)} | {
        percent(x) for x in shares
    }
    return known | {f"{x:,.0f}" for x in whole} | set(numbers_in(" ".join(map(str, written))))


@pytest.mark.parametrize("kind", ["audit", "trained"])
def test_every_number_of_the_whole_first_page_is_one_of_the_audit(audited: Audit, kind: str):
    report = Report(audited)
    if kind == "trained":
        worse = tuple(replace(one, value=0.9 * one.value) for one in audited.quality)
        change = Change("gdp", "age", 0.02, 0.09, Interval(0.05, 0.09, 0.95, ""), 1e-9, 0.05)
        after = replace(audited, quality=worse, drift=(change,), limits=())
        changes = (samples.change("accuracy", "", 0.8, 0.7563),)
        report = Report(after, before=audited, tradeoff=samples.tradeoff(), changes=changes)
    shown = text_of(render(report))
    assert len(numbers_in(shown)) > 40
    assert set(numbers_in(shown)) - known_numbers(report) == set()
    curve = audited["age"].all_rows.curves["gdp"]
    false = replace(
        curve, mean=tuple(0.97 * mean for mean in curve.mean), overall=0.97 * curve.overall
    )
    other = text_of(render(with_curve(audited, false)))
    assert (
        set(numbers_in(other)) - known_numbers(Report(audited)) != set()
    )  # a false number would be noticed


def test_the_worst_gap_is_the_largest_that_can_be_trusted_and_may_be_chance(audited: Audit):
    curve = audited["age"].all_rows.curves["gdp"]
    trusted = [i for i, sparse in enumerate(curve.sparse) if not sparse]
    assert worst_group(curve) == max(trusted, key=lambda i: abs(curve.mean[i] - curve.overall))
    far = replace(curve, mean=(99.0, *curve.mean[1:]), sparse=(True, *curve.sparse[1:]))
    assert worst_group(far) != 0
    wide = replace(samples.curve(), low=(0.0,) * 81, high=(1.0,) * 81)
    lines = lines_of(with_curve(samples.audit(), wide), "How large")
    assert "That may be chance" in lines[0]
    assert lines[1] == "At no value of age is there a gap that chance could not explain."
    strict = replace(
        samples.audit(), subject=replace(samples.SUBJECT, confidence=0.999)
    )  # the gap has p = 0.0033
    assert "more than chance" in lines_of(samples.audit(), "How large")[0]
    assert "That may be chance" in lines_of(strict, "How large")[0]


@pytest.mark.parametrize(
    ("low", "high", "start"),
    [(0.01, 0.02, "Yes. "), (0.04, 0.06, "Probably kept, not certain. "), (0.06, 0.07, "No. ")],
)
def test_a_limit_is_said_to_be_kept_by_its_interval(low: float, high: float, start: str):
    check = LimitCheck("age", "gdp", "all", 0.05, (low + high) / 2, Interval(low, high, 0.9, ""))
    result = replace(samples.audit(), limits=(check,))
    line = lines_of(result, "Is the limit kept?")[0]
    assert line.startswith(start)
    assert f"with 90 % confidence it lies between {figure(low)} and {figure(high)}" in line
    alarm = words.alarms(result)
    assert alarm == ([] if start == "Yes. " else [words.limit_line(check)])


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_without_a_limit_of_the_audit_that_of_the_fit_is_answered(aim: str):
    result, title, limit = samples.audit("age"), "Is the limit kept?", 0.02
    tradeoff = replace(
        samples.tradeoff(), aim=aim, asked=("0.02",), limits=(limit,), shares=(None,)
    )
    starts = {0.5: "Yes. ", 0.95: "Probably kept, ", 1.05: "Probably not kept, ", 2.0: "No. "}
    for share, start in starts.items():
        gap = Gap(share * limit, 0.8 * share * limit, 1.2 * share * limit)
        after = replace(tradeoff.after, gaps=(gap,))
        assert lines_of(Report(result, tradeoff=replace(tradeoff, after=after)), title)[
            0
        ].startswith(start)
    trust = " ".join(lines_of(Report(result, tradeoff=tradeoff), "Can this be trusted?"))
    assert "The limit of 0.02 did not have to change the model." in trust
    least = replace(tradeoff, asked=("0",), limits=(0.0,))
    assert lines_of(Report(result, tradeoff=least), title)[0].startswith(
        "The limit of 0 asks for the least gap"
    )
    free = Report(result, tradeoff=replace(tradeoff, asked=("none",), limits=(None,), changes=()))
    assert lines_of(free, title)[0].startswith("No limit was stated")


@pytest.mark.parametrize(
    ("low", "high", "start"),
    [
        (0.5, 0.6, "Yes. "),
        (0.42, 0.6, "Probably kept, not certain. "),
        (0.3, 0.49, "No. "),
        (None, None, "Not certain. "),
    ],
)
def test_a_share_is_answered_by_the_paired_reduction(
    low: float | None, high: float | None, start: str
):
    reduction = None if low is None else Interval(low, high, 0.95, "")
    ends = Interval(-0.06, -0.03, 0.95, "")
    change = Change("gdp", "age", 0.088, 0.0431, ends, 0.001, 0.05, reduction=reduction)
    gap = replace(samples.tradeoff().after, gaps=(Gap(0.0431, 0.03, 0.06),))
    tradeoff = replace(samples.tradeoff(), shares=(0.5,), changes=(change,), after=gap)
    line = lines_of(Report(samples.audit("age"), tradeoff=tradeoff), "Is the limit kept?")[0]
    assert line.startswith(
        f"{start}The average gap of the score along age goes from 0.0880 to 0.0431"
    )
    if low is not None:
        shown = f"reduced by 51 % ({100 * low:.0f} to {100 * high:.0f} % with 95 % confidence)"
        assert f"{shown}; asked: 50 %." in line
    assert "itself an estimate" not in line


def test_the_worst_group_stands_beside_its_own_outcome():
    """The oracle is the mean of the outcome among the rows of the group."""
    random = np.random.default_rng(0)
    age = 10.0 * random.integers(2, 9, 4000)
    chance = 0.2 + 0.004 * (age - 50) + 0.05 * random.random(4000)
    for scale, verdict in (
        (1.0, "may be chance"),
        (2.5, "scored too low"),
        (0.3, "scored too high"),
    ):
        y = (random.random(4000) < scale * chance).astype(int)
        named = pd.Series(age, name="age"), pd.Series(y, name="default")
        result = audit(chance, *named, settings=QUICK)
        curve = result["age"].all_rows.curves["gdp"]
        i = worst_group(curve)
        group = (age >= curve.start[i]) & (age <= curve.end[i])
        line = lines_of(result, "What does it mean")[-1]
        assert f", {1000 * y[group].mean():.0f} actually had “default”" in line
        assert verdict in line
        number = audit(chance - 3, named[0], pd.Series(y - 3.5, name="cost"), settings=QUICK)
        line = lines_of(number, "How large")[1]
        assert f"“cost” there is actually {figure((y - 3.5)[group].mean())}" in line
    alone = audit(chance, age, settings=QUICK)
    assert not any("actually" in line for line in lines_of(alone, "What does it mean"))


def test_accuracy_is_shown_only_where_a_constant_cannot_shine():
    quality = (
        Quality("accuracy", 0.94, 0.97),
        Quality("auc", 0.6, 0.5, 0.01),
        Quality("log_loss", 0.1, 0.12),
    )
    for rate, count in ((0.03, 1), (0.4, 2)):
        subject = replace(samples.SUBJECT, base_rate=Number("base_rate", rate, 100))
        report = Report(replace(samples.audit(), quality=quality, subject=subject))
        assert len(list(quality_rows(report))) == count
    poor = replace(samples.audit(), quality=(Quality("auc", 0.51, 0.5, 0.01),))
    assert any(
        "not shown to order people better than chance" in line
        for line in lines_of(poor, "How good")
    )
    good = replace(samples.audit(), quality=(Quality("auc", 0.6, 0.5, 0.01),))
    assert not any("not shown" in line for line in lines_of(good, "How good"))


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


def test_a_representation_without_scores_has_no_worst_group():
    age = samples.attribute()
    population = replace(age.all_rows, numbers=age.all_rows.numbers[2:], curves={}, contrasts=())
    attributes = (replace(age, all_rows=population, positives=None),)
    bare = replace(samples.audit(), subject=Subject("z_*", dimensions=4), attributes=attributes)
    assert lines_of(bare, "How large") == (
        "There is no score whose mean could be followed along age.",
    )
    assert "first" not in re.findall(r'data-figure="(\w+)"', render(bare))


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
    assert "moves with age" in text(usual)
    assert "are dependent" in text(usual)
    assert "is not seen to move with age" in text(strict)
    assert "finds no dependence" in text(strict)
    for key in ("gdp", "hsic"):
        assert "does not explain" in words.sentence(attribute.all_rows[key], usual.subject, "age")
        assert "not significant" in words.sentence(attribute.all_rows[key], strict.subject, "age")
    fine = replace(attribute.all_rows["gdp"], settings={"resolution": 0.05})
    assert "the nearest 5 % of the people" in words.sentence(fine, usual.subject, "age")


def test_the_first_page_says_which_numbers_are_not_of_its_rows():
    report = samples.full()
    lines = [*lines_of(report, "Is a limit needed"), *lines_of(report, "Can this be trusted")]
    said = [line for line in lines if "in the fit" in line]
    assert said[-1].startswith("All numbers but those “in the fit” are from ")
    assert len(said) > 1


@pytest.mark.parametrize(
    ("names", "phrase"),
    [(("age",), "with age as a column"), (("age", "hours"), "with age and hours as columns")],
)
def test_attributes_that_are_added_are_a_column_or_columns(names, phrase):
    point = replace(samples.full().tradeoff.before, added=names)
    assert words.columns_phrase(point) == phrase


@pytest.mark.parametrize(
    ("names", "sentence"),
    [(("age",), "Only age was examined."), (("age", "hours"), "Only age and hours were examined.")],
)
def test_the_first_page_names_what_was_examined(names, sentence):
    assert sentence in text_of(render(Report(samples.audit(*names))))


def test_an_improvement_is_no_alarm():
    def change(key: str, before: float, after: float, pvalue: float = 0.001) -> Change:
        return Change(key, "age", before, after, None, pvalue, 0.05, adjusted=2 * pvalue)

    changes = ("gdp", 0.1, 0.2), ("auc", 0.7, 0.5), ("attribute", 45, 58), ("base_rate", 0.2, 0.1)
    worse = [change(*one) for one in changes]
    fine = [change("gdp", 0.2, 0.1), change("auc", 0.5, 0.7), change("gdp", 0.1, 0.2, 0.5)]
    result = replace(samples.audit(), drift=(*worse, *fine))
    assert words.alarms(result) == [words.drift_line(one) for one in worse]
    shown = " ".join(lines_of(result, "Has it changed"))
    assert shown.count("Yes: ") == 6
    assert "No change is seen of the average gap along age (from 0.100 to 0.200)." in shown
    perhaps = replace(result, drift=(change("gdp", 0.1, 0.2, 0.03), *fine))
    assert words.alarms(perhaps) == []
    assert words.drift_line(perhaps.drift[0]).startswith("perhaps changed: ")
    shown = lines_of(perhaps, "Has it changed")[0]
    assert shown.startswith("Perhaps: the average gap along age went from 0.100 to 0.200.")
    assert "not among all 4 comparisons" in shown


# what drives the score
# ------------------------------------------------------------------------------------------


def people(n: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(seed)
    age = np.round(random.gamma(5, 6, n) + 18)
    job, debt = age / 10 + random.standard_normal(n), random.standard_normal(n)
    home = pd.Categorical(np.where(random.random(n) < 0.05, "own", "rent"))
    return pd.DataFrame({"job": job, "debt": debt, "home": home}, index=np.arange(n) + 7), age


def test_the_column_that_knows_the_attribute_carries_it():
    frame, age = people()

    def score(rows: pd.DataFrame, _: np.ndarray) -> np.ndarray:
        return (0.1 * rows["job"] + 0.1 * rows["debt"]).to_numpy()

    (one,) = drivers(score, frame, age[:, None], ["age"], QUICK)
    carried = {driver.column: driver.carried for driver in one.columns}
    assert carried["job"] == pytest.approx(one.gap, abs=3 * one.columns[0].standard_error)
    assert carried["home"] == pytest.approx(0, abs=1e-12)
    assert abs(carried["debt"]) < 0.3 * one.gap
    assert driver_sentence(one).startswith(
        "Most of the gap along age reaches the score through job"
    )
    assert (
        drivers(lambda rows, _: rows[:, 0], np.zeros((50, 41)), age[:50, None], ["age"], QUICK)
        == ()
    )


def test_most_is_said_of_more_than_half_and_more_than_chance():
    """Two columns that carry half each, and independent data: “most” is said in no more than the
    level.
    """
    said = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        s = random.standard_normal(300)
        X = np.column_stack(
            [s * (seed % 2), s * (seed % 2), random.standard_normal((300, 2))[:, 0]]
        )
        X += random.standard_normal(X.shape)
        (one,) = drivers(lambda rows, _: rows.sum(axis=1), X, s[:, None], ["s"], QUICK)
        said += driver_sentence(one).startswith("Most")
    assert said <= 6  # 40 draws at level .05: more in 1 of 100
    flat = Drivers("age", 0.1, 0.3, 500, (Driver("job", 0.09, 0.01, 9.0),))
    assert "not significant" in driver_sentence(flat)


def test_a_shift_is_the_mean_change_of_each_group():
    _, age = people()
    curve = shifts(0.01 * (age - age.mean()), age[:, None], ["age"], 0.95)["age"]
    inside = (age >= curve.start[0]) & (age <= curve.end[0])
    assert curve.mean[0] == pytest.approx(0.01 * (age[inside].mean() - age.mean()))
    assert shift_sentence("age", curve).startswith(
        f"The limit raised scores most at age from {plain(curve.start[-1])}"
    )
    still = shifts(np.zeros(600), age[:, None], ["age"], 0.95)["age"]
    assert shift_sentence("age", still).startswith("The limit is not seen to change")


# what a limit changed
# -------------------------------------------------------------------------------------------


def test_the_summary_tells_gap_loss_and_those_who_are_foreseen():
    rates = [
        tuple(
            Quality(f"{kind}_positive_rate", share, 0.0)
            for kind, share in zip(("true", "false"), shares)
        )
        for shares in ((0.62, 0.1), (0.42, 0.3))
    ]
    before, after = (replace(samples.audit("age"), quality=quality) for quality in rates)
    tradeoff = samples.tradeoff()
    report = Report(after, before=before, tradeoff=tradeoff)
    for value in (
        tradeoff.before.gaps[0].value,
        tradeoff.after.gaps[0].value,
        tradeoff.after.performance,
        0.55,
    ):
        assert figure(value) in summary(report)
    assert re.search(
        r"of 1,000.*“income”, 420 .*\(620 .*, 300 .*\(100 ", summary(report), re.IGNORECASE
    )
    assert "foreseen" not in summary(replace(report, before=after))  # nothing changed
    (change,) = tradeoff.changes
    assert "the limit lowers the gap of mean scores along age from" in summary(report)
    size = change.before - change.after
    assert f"by {ranged(size, size - 0.004, size + 0.004)}. Log loss goes" in summary(report)
    for before, after, said in ((0.02, 0.05, "raises the gap"), (0.0, 0.0, "not seen to change")):
        other = samples.change("gdp", "age", before or 1.0, after or 1.0)
        other = replace(other, before=before, after=after)
        told = summary(replace(report, tradeoff=replace(tradeoff, changes=(other,))))
        assert said in told
        assert "may be chance" not in told
    small = (Gap(0.0065, 0.0, 0.022),)
    here = replace(tradeoff, before=replace(tradeoff.before, gaps=small, pvalues=(0.4,)))
    assert not any(
        "no gap" in line for line in needed_lines(replace(report, tradeoff=here))
    )  # the fit shows one
    nothing = replace(
        here, points=(replace(tradeoff.points[0], pvalues=(0.3,)), *tradeoff.points[1:])
    )
    assert "no gap is seen" in needed_lines(replace(report, tradeoff=nothing))[-1]
    assert not any("no gap" in line for line in needed_lines(report))


def test_the_cost_is_said_of_right_predictions_and_pairs_and_may_be_chance():
    def judged(errors: float, lost: float = 0.0) -> Audit:
        quality = (
            Quality("accuracy", 0.8 - lost, 0.6, 0.01),
            Quality("auc", 0.8 + 0.12 * lost, 0.5, 0.01),
        )
        result = samples.audit("age")
        rows = result["age"].all_rows
        rows = replace(
            rows, numbers=(*rows.numbers, samples.number("error_gdp", errors, width=0.01))
        )
        return replace(result, quality=quality, attributes=(replace(result["age"], all_rows=rows),))

    def cost(before: float, after: float) -> tuple[str, ...]:
        changes = (
            samples.change("accuracy", "", 0.8, 0.75),
            samples.change("auc", "", 0.8, 0.806, width=0.008),
            samples.change("error_gdp", "age", before, after, width=0.02),
        )
        more = {
            "tradeoff": samples.tradeoff(),
            "shifts": {"age": samples.curve()},
            "changes": changes,
        }
        return lines_of(
            Report(judged(after, 0.05), before=judged(before), **more), "What did it cost"
        )

    lines = cost(0.078, 0.11)
    assert (
        lines[0]
        == "With the limit 50 fewer of 1,000 predictions are right; 6 more of 1,000 pairs are in"
        " the right order, which may be chance."
    )
    assert lines[1].startswith(shift_sentence("age", samples.curve()))
    assert lines[1].endswith(
        "The average gap of wrong decisions along age goes from 0.0780 to 0.110."
    )
    assert cost(0.1, 0.11)[1].endswith(" to 0.110, which may be chance.")  # by the paired interval
    assert "wrong decisions" not in cost(0.1, 0.09)[1]


def test_every_trade_off_stands_in_the_table_with_all_its_digits():
    shown, tradeoff = render(samples.full()), samples.full().tradeoff
    rows = tradeoff_rows(tradeoff)
    assert [point for point, _ in rows] == [*tradeoff.points, tradeoff.before, tradeoff.after]
    section = shown[shown.index('id="tradeoff"') : shown.index('id="compared"')]
    for point, kind in rows:
        assert f">{unbroken(kind)}</th>" in section
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
        shown.index('<section id="compared"') : shown.index('<section id="attribute-1"')
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
    driver = Drivers("age", 0.1, 0.01, 500, (Driver("job<b>", 0.08, 0.01, 4.0),))
    report = replace(samples.full(), drivers=(driver,), shifts={"age": samples.curve()})
    shown = render(report)
    assert embedded(shown) == report.to_dict()
    assert Report.from_dict(embedded(shown)) == Report.from_json(report.to_json()) == report
    assert Report.from_dict(embedded(render(samples.audit()))).tradeoff is None
    for number in report.audit.attributes[0].all_rows.numbers:
        assert f'data-value="{number.value}"' in shown
        said = unbroken(words.sentence(number, report.audit.subject, "age"))
        assert str(escape(said)) in shown
    with pytest.raises(TypeError, match="pass what"):
        render({})


def test_the_page_names_no_other_host_and_its_policy_admits_its_own_script():
    shown = render(samples.full())
    addresses = set(re.findall(r"(?:https?:)?//[A-Za-z0-9.-]+\.[a-z]{2,}[^\s\"'`]*", shown))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, never fetched
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


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report.html"
    assert write(samples.audit(), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises((ValueError, OSError)):
        write(samples.audit(), tmp_path / "none" / "report.html")


def test_a_pdf_that_cannot_be_printed_is_an_error_and_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"none of chromium, .* is on the PATH"):
        write(samples.audit(), tmp_path / "a.pdf")
    monkeypatch.setattr(page, "find_browser", lambda: "/bin/browser")
    done = subprocess.CompletedProcess([], 1, b"", b"first\ncannot open display\n")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: done)
    with pytest.raises(ValueError, match="did not print the report: cannot open display"):
        write(samples.audit(), tmp_path / "a.pdf")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.browser
def test_the_first_page_fits_on_one_sheet_of_a4(audited: Audit, tmp_path):
    if not any(map(shutil.which, page.BROWSERS)) or shutil.which("pdftotext") is None:
        pytest.skip("no browser that prints, or no pdftotext, is on the PATH")
    printed = write(audited, tmp_path / "report.pdf")
    pages = subprocess.run(
        ["pdftotext", str(printed), "-"], capture_output=True, check=True, text=True
    ).stdout
    first, second, *_ = pages.split("\f")
    assert "Signature" in first
    assert "The evidence" in second


def test_a_page_from_python_states_its_date_and_the_versions():
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", render(samples.full())))
    assert today <= facts["Made on"][:10] <= datetime.now(UTC).strftime("%Y-%m-%d")
    assert f"numpy {np.__version__}" in facts["Software"]
    dated = replace(samples.audit(), context=Context(origin={"made": "then"}))
    assert "<dt>Made on</dt><dd>then</dd>" in render(dated)
