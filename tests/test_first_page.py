"""The first page of a report: no symbol, no acronym, and every number that of the audit."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import report_samples as samples
from frhsic.auditing import AttributeAudit, Audit, Context, Drift, LimitCheck, Quality, Settings, Subject, audit
from frhsic.estimators import Gap
from frhsic.formatting import figure, percent, plain, stated
from frhsic.report import Report, printing, render, write_pdf
from frhsic.report.first_page import LIMITED, first_page, worst_group
from frhsic.report.page import disagreement
from frhsic.report.quality import QUALITY, quality_rows
from frhsic.sentences import findings, left_out, score_phrase, subject_phrase, warnings

pytestmark = pytest.mark.usefixtures("few_trees")

QUICK = Settings(resamples=40, shuffles=1, max_rows=200, probe_rows=200)
CONTEXT = Context("whether a loan is granted", "applicants", "May 2025", "Ann Lee", "2025-06-01 10:00, universal time")


@pytest.fixture(scope="module")
def audited() -> Audit:
    random = np.random.default_rng(3)
    age = np.round(random.gamma(6, 7, 900) + 18)
    chance = 1 / (1 + np.exp(2.8 - (age - 60) / 25 - random.standard_normal(900)))
    return audit(
        pd.Series(chance, name="score"),
        pd.Series(age, name="age"),
        (random.random(900) < chance).astype(int),
        target_name="default",
        threshold=0.2,
        favourable=0,
        limit=["gdp=0.2", "gdp=10%", "eo=0.3"],
        context=CONTEXT,
        source="loans.csv",
        dropped=1,
        settings=QUICK,
    )


def text_of(page: str, part: str = "decision") -> str:
    section = re.search(rf'<section id="{part}".*?</section>', page, re.DOTALL).group(0)
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]+>", " ", section))).strip()


def lines_of(report: Report | Audit, title: str) -> tuple[str, ...]:
    page = first_page(Report(report) if isinstance(report, Audit) else report)
    return next(question.lines for question in page.questions if question.title.startswith(title))


def test_the_first_page_has_no_symbol_and_no_acronym(audited):
    reports = [Report(audited), samples.full(), Report(replace(audited, limits=(), quality=(), context=Context()))]
    for report in reports:
        text = text_of(render(report))
        assert re.findall(r"\b[A-Z]{2,}\w*|[λ²=≤≥×|σ]|E\[|p-value|quantile|kernel", text) == []
    for words in (*LIMITED.values(), *QUALITY.values()):
        assert re.findall(r"\b[A-Z]{2,}\b", words) == []


def test_the_first_page_answers_what_a_committee_asks(audited):
    text = text_of(render(audited))
    for question in (
        "Is the limit kept? kept",
        "Is the limit kept? not kept",
        "How large is the worst gap?",
        "What does it mean for 1,000 applicants?",
        "How good is the score?",
        "Can this be trusted?",
        "What was not looked at?",
    ):
        assert question in text
    for words in (
        "whether a loan is granted",
        "May 2025",
        "Ann Lee",
        "2025-06-01 10:00",
        "loans.csv, 900 of 901 rows",
    ):
        assert words in text
    for place in ("Name", "Date", "Signature"):
        assert text.count(place) == 2


def numbers_in(text: str) -> list[str]:
    return re.findall(r"−?\d(?:[\d,]*\d)?(?:\.\d+)?(?: %)?", text)


def on_1000(share: float) -> str:
    return f"{1000 * share:,.0f}"


def numbers_of_limits(audited: Audit) -> set[str]:
    known = set()
    for check in audited.limits:
        known |= {figure(value) for value in (check.value, check.low, check.high)} | {percent(check.confidence)}
        known |= {figure(1000 * value) for value in (check.value, check.high, check.limit)}
        known |= {stated(check.limit)} if check.share is None else {figure(check.limit), percent(check.share)}
        known |= set() if check.reference is None else {figure(audited.subject.base_rate)}
    return known


def numbers_of_attribute(attribute: AttributeAudit, audited: Audit) -> set[str]:
    known, population = set(), attribute.all_rows
    for part in (population, attribute.positives):
        gap = None if part is None else part["gdp"]
        known |= set() if gap is None else {figure(x) for x in (gap.value, gap.interval.low, gap.interval.high)}
    curve, decisions = population.curve, population.decisions
    groups = {worst_group(curve)}
    sure = [
        i for i in range(len(curve.grid)) if not curve.sparse[i] and not curve.low[i] <= curve.overall <= curve.high[i]
    ]
    groups |= {max(sure, key=lambda i: abs(curve.mean[i] - curve.overall))} if sure else set()
    for i in groups:
        known |= {figure(curve.mean[i]), plain(curve.start[i]), plain(curve.end[i]), f"{curve.rows[i]:,.0f}"}
        known |= {percent(abs(x - curve.overall) / curve.overall) for x in (curve.mean[i], curve.low[i], curve.high[i])}
        known |= {on_1000(share) for share in (decisions.mean[i], decisions.overall, curve.mean[i], curve.overall)}
        known.add(f"{abs(round(1000 * curve.mean[i]) - round(1000 * curve.overall)):,}")
    known |= {figure(curve.overall), percent(curve.confidence), on_1000(audited.subject.base_rate)}
    return known | {f"{sum(region.rows for region in attribute.sparse_regions):,}"}


def numbers_of_the_first_page(report: Report) -> set[str]:
    """Every number that the first page of a report may show, from the audits alone."""
    audited, rows = report.audit, report.audit.rows
    known = numbers_of_limits(audited).union(*(numbers_of_attribute(one, audited) for one in audited.attributes))
    known |= {figure(value) for change in audited.drift for value in (change.before, change.after)}
    before = () if report.before is None else report.before.quality
    for one in (*audited.quality, *before):
        shown = figure if one.key in ("calibration_error", "squared_error") else on_1000
        known |= {shown(one.value), shown(one.constant)}
    pairs = [round(1000 * one.value) for one in (*before, *audited.quality) if one.key == "auc"]
    known |= {str(abs(pairs[0] - pairs[-1]))} if pairs else set()
    known |= {f"{rows.used:,}", f"{rows.given:,}", f"{rows.dropped:,}", percent(rows.dropped / rows.given)}
    known |= {str(len(audited.warnings)), "1,000", stated(audited.subject.threshold)}
    known |= {percent(audited.subject.confidence), str(audited.settings["seed"])}
    if report.tradeoff is not None:
        gap, limit = report.tradeoff.after.gaps[0], report.tradeoff.limits[0]
        known |= {figure(x) for x in (gap.value, gap.low, gap.high, limit)} | {"20"}  # the limit was stated as 20%
        known |= {figure(1000 * x) for x in (gap.value, gap.high, float(f"{limit:.3g}"))}
    written = [*vars(audited.context).values(), audited.source, audited.software]
    return known | set(numbers_in(" ".join(map(str, written))))


@pytest.mark.parametrize("kind", ["audit", "trained"])
def test_every_number_of_the_whole_first_page_is_one_of_the_audit(audited, kind: str):
    report = Report(audited)
    if kind == "trained":
        worse = tuple(replace(one, value=0.9 * one.value) for one in audited.quality)
        change = Drift("age", 0.02, 0.09, 0.01, 0.05, 0.09, 0.95, 1e-9, 1e-9)
        after = replace(audited, quality=worse, drift=(change,), limits=())
        report = Report(after, before=audited, tradeoff=samples.tradeoff())
    text = text_of(render(report))
    assert len(numbers_in(text)) > 40
    assert set(numbers_in(text)) - numbers_of_the_first_page(report) == set()


def test_a_false_number_on_the_first_page_would_be_found(audited):
    """The test above compares with the audit: on the page of another one, it finds numbers that are not its own."""
    curve = audited["age"].all_rows.curve
    other = replace(curve, mean=tuple(0.97 * mean for mean in curve.mean), overall=0.97 * curve.overall)
    population = replace(audited["age"].all_rows, curve=other)
    changed = replace(audited, attributes=(replace(audited["age"], all_rows=population),))
    assert set(numbers_in(text_of(render(changed)))) - numbers_of_the_first_page(Report(audited)) != set()


def test_the_worst_gap_is_the_largest_of_the_groups_that_can_be_trusted(audited):
    curve = audited["age"].all_rows.curve
    trusted = [i for i, sparse in enumerate(curve.sparse) if not sparse]
    assert worst_group(curve) == max(trusted, key=lambda i: abs(curve.mean[i] - curve.overall))
    far = replace(curve, mean=(99.0, *curve.mean[1:]), sparse=(True, *curve.sparse[1:]))
    assert worst_group(far) != 0


def test_a_worst_gap_that_chance_could_show_is_said_to_be_one():
    curve = replace(samples.curve(), low=(0.0,) * 81, high=(1.0,) * 81)
    found = samples.audit()
    population = replace(found.attributes[0].all_rows, curve=curve)
    found = replace(found, attributes=(replace(found.attributes[0], all_rows=population),))
    lines = lines_of(found, "How large")
    assert "That may be chance: the true mean can lie anywhere from" in lines[0]
    assert lines[1] == "At no value of age is there a gap that chance could not explain."
    lows = (*((0.0,) * 40), curve.mean[40] - 0.001, *((0.0,) * 40))
    one = replace(curve, low=lows, high=tuple(1.0 if k != 40 else curve.mean[40] + 0.001 for k in range(81)))
    found = replace(found, attributes=(replace(found.attributes[0], all_rows=replace(population, curve=one)),))
    assert lines_of(found, "How large")[1].startswith("The largest gap that chance does not explain: at age 53.5 ")


def test_the_page_names_the_outcome_and_whether_a_high_score_is_good(audited):
    text = text_of(render(audited))
    assert "A high score is bad for a person; the good outcome is “default: 0”" in text
    assert "the scores expect “default” for" in text
    assert "Among those with the good outcome “default: 0” alone: the average gap of the score along age is" in text
    silent = replace(audited, subject=replace(audited.subject, favourable=None, favours_high=None))
    assert "A high score is good or bad for a person: not stated" in text_of(render(silent))


def test_the_page_says_what_is_signed(audited):
    text = text_of(render(audited))
    assert "whether the score is to be used, for the decision whether a loan is granted" in text
    assert "Decision use do not use use only until, or only if:" in text


def test_without_a_limit_of_it_the_gap_among_the_favoured_is_told(audited):
    lines = lines_of(replace(audited, limits=()), "How large")
    gap = audited["age"].positives["gdp"]
    assert any(
        line.startswith("Among those with the good outcome “default: 0” alone, the average gap") for line in lines
    )
    assert any(figure(gap.value) in line for line in lines)
    assert not any("Among" in line for line in lines_of(audited, "How large"))


@pytest.mark.parametrize(
    ("low", "high", "start"), [(0.01, 0.02, "Yes. "), (0.04, 0.06, "It cannot be told. "), (0.06, 0.07, "No. ")]
)
def test_a_limit_is_said_to_be_kept_by_its_interval(low: float, high: float, start: str):
    found = replace(samples.audit(), limits=(LimitCheck("age", "gdp", 0.05, (low + high) / 2, low, high, 0.9),))
    line = lines_of(found, "Is the limit kept?")[0]
    assert line.startswith(start)
    assert f"with 90 % confidence it lies between {figure(low)} and {figure(high)}" in line


def test_what_the_limit_cost_stands_beside_the_model_without_it_and_a_constant():
    quality = (Quality("accuracy", 0.84, 0.76, True), Quality("auc", 0.9, 0.5, True))
    before = replace(samples.audit(), quality=(Quality("accuracy", 0.86, 0.76, True),))
    known = replace(before, quality=(Quality("auc", 0.93, 0.5, True),))
    report = Report(replace(samples.audit(strength=0.2), quality=quality), before=before, tradeoff=samples.tradeoff())
    assert [(row.before, row.value, row.constant) for row in quality_rows(report)] == [
        ("860", "840", "760"),
        (None, "900", "500"),
    ]
    compared = lines_of(replace(report, before=known), "What did it cost?")
    assert "With the limit 30 fewer of 1,000 pairs are in the right order." in compared
    assert lines_of(report, "What did it cost?")[0].startswith("A limit keeps the score from moving with")
    assert "that had no part in fitting" in lines_of(report, "Can this be trusted?")[0]


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_without_a_limit_of_the_audit_that_of_the_fit_is_answered(aim: str):
    tradeoff, found = replace(samples.tradeoff(), aim=aim), samples.audit("age")
    limit, title = tradeoff.limits[0], "Is the limit kept?"
    for share, start in ((0.5, "Yes. "), (1.0, "It cannot be told. "), (2.0, "No. ")):
        gap = Gap(share * limit, 0.8 * share * limit, 1.2 * share * limit)
        after = replace(tradeoff.after, gaps=(gap,))
        lines = lines_of(Report(found, tradeoff=replace(tradeoff, after=after)), title)
        assert lines[0].startswith(start)
        assert f"the limit of {figure(limit)}" in lines[0]
        assert "The limit was stated as 20% of the gap without a limit." in lines
    least = replace(tradeoff, asked="0", limits=(0.0,))
    assert lines_of(Report(found, tradeoff=least), title)[0].startswith("The limit of 0 asks for the least gap")
    free = Report(found, tradeoff=replace(tradeoff, asked="none", limits=(None,)))
    assert lines_of(free, title)[0].startswith("No limit was stated")
    assert any(line.startswith("No limit holds here") for line in lines_of(free, "Can this be trusted?"))


def test_a_score_no_better_than_a_constant_is_said_to_be_so():
    poor = replace(samples.audit(), quality=(Quality("accuracy", 0.94, 0.94, True), Quality("auc", 0.6, 0.5, True)))
    assert any("no more right predictions than the constant" in line for line in lines_of(poor, "How good"))
    worse = replace(poor, quality=(Quality("auc", 0.49, 0.5, True),))
    assert any("no better than chance" in line for line in lines_of(worse, "How good"))


def test_a_prediction_of_numbers_is_compared_by_its_squared_error():
    poor = replace(samples.audit(), quality=(Quality("squared_error", 2.0, 1.9, False),))
    lines = " ".join(lines_of(poor, "How good"))
    assert "As a prediction of the target it is no better than the constant." in lines
    assert "The mean squared error is the mean of the squared differences between score and target." in lines
    assert "A pair is a case" not in lines
    good = replace(samples.audit(), quality=(Quality("squared_error", 1.0, 1.9, False),))
    assert "no better than the constant" not in " ".join(lines_of(good, "How good"))


def without_scores(found: Audit) -> Audit:
    attributes = tuple(replace(a, all_rows=replace(a.all_rows, curve=None, decisions=None)) for a in found.attributes)
    return replace(found, subject=Subject("embedding", "z_*", dimensions=4), attributes=attributes)


def test_a_representation_without_scores_has_no_group_that_is_worst():
    page = first_page(Report(without_scores(samples.audit("age"))))
    assert "A high score is" not in [name for name, _ in page.facts]
    said = [line for question in page.questions for line in question.lines]
    assert "There is no score whose mean could be followed along age." in said
    assert not any("1,000" in line for line in said)


def test_a_curve_without_bands_has_no_confidence():
    found = samples.audit("age")
    (age,) = found.attributes
    bare = replace(age.all_rows.curve, low=(), high=())
    found = replace(found, attributes=(replace(age, all_rows=replace(age.all_rows, curve=bare)),))
    line = lines_of(found, "How large")[0]
    assert "confidence" not in line
    assert line.endswith(f"the average of {figure(bare.overall)}.")


def test_limits_of_other_numbers_and_shares_of_the_mean_score_are_worded():
    checks = (
        LimitCheck("age", "hsic_effect", 0.2, 0.1, 0.05, 0.15, 0.95),
        LimitCheck("age", "gdp", 0.05, 0.1, 0.08, 0.12, 0.95, share=0.1, reference=0.5),
    )
    found = replace(samples.audit("age"), limits=checks)
    questions = [q for q in first_page(Report(found)).questions if q.title == "Is the limit kept?"]
    assert [len(q.lines) for q in questions] == [1, 2]  # only the gap is explained
    assert "which is 10 % of the share of" in questions[1].lines[0]
    nameless = replace(found, subject=replace(found.subject, target_name=None))
    said = " ".join(lines_of(replace(nameless, limits=checks[1:]), "Is the limit kept?"))
    assert "which is 10 % of the mean score (0.500)" in said


def test_drift_stands_on_the_first_page():
    change = Drift("age", 0.02, 0.09, 0.01, 0.05, 0.09, 0.95, 1e-9, 1e-9)
    grown = replace(samples.audit(), drift=(change,))
    assert (
        lines_of(grown, "Has it changed")[0] == "Yes. The average gap along age has grown. It was 0.0200 and is 0.0900."
    )
    assert "went from 0.0200 to 0.0900: grown" in text_of(render(grown), "finding")


def test_the_evidence_follows_its_order(audited):
    page = render(Report(audited, before=audited, tradeoff=samples.tradeoff()))
    marks = [
        'id="decision"',
        'id="finding"',
        "How the mean score moves with age",
        "How the scores are spread along age",
        "Decisions at the threshold of 0.2",
        "How strongly the score depends on age",
        "What a probe recovers of age",
        "What the theorems guarantee",
        'id="method"',
        'id="glossary"',
    ]
    places = [page.index(mark) for mark in marks]
    assert places == sorted(places)


def test_quantiles_stand_in_the_table_with_all_their_digits(audited):
    page = render(audited)
    for group in audited["age"].all_rows.quantiles.values:
        for value in group:
            assert f'data-value="{value}"' in page


def test_words_do_not_repeat_a_name_and_count_one_row_as_one():
    assert score_phrase(Subject("score", "score", score_name="score")) == "the score"
    assert score_phrase(Subject("score", "risk", score_name="risk")) == "the score “risk”"
    assert score_phrase(Subject("score", "p", score_name="probability of default")) == "the probability of default"
    whole = Subject("embedding", "representation of the model", 50, "probability of default")
    assert subject_phrase(whole) == "the representation of the model"
    assert left_out(1, 100, ["age"]) == "1 of 100 rows lacks age and is left out."
    one = replace(samples.audit(), rows=replace(samples.audit().rows, used=1))
    assert not re.search(r"(?<![\d,])1 rows", " ".join([*warnings(one), text_of(render(one))]))


def test_a_gap_of_chance_is_not_said_to_be_away():
    found = samples.audit()
    gap = replace(found.attributes[0].all_rows.numbers[0], value=0.0558, pvalue=0.4)
    population = replace(found.attributes[0].all_rows, numbers=(gap,))
    said = findings(replace(found.attributes[0], all_rows=population))[0]
    assert (
        said
        == "The score is not seen to move with age: chance alone could show the average gap of 0.0558 around 0.300."
    )


def test_measures_that_move_against_the_gap_are_named_with_the_reason():
    old, new = samples.population(1.0), samples.population(0.5)
    rising = tuple(replace(n, value=0.9) if n.key == "probe_trees" else n for n in new.numbers)
    pairs = [(old[n.key], n) for n in rising]
    said = disagreement(pairs)
    assert "GDP fell, and this measure moved the other way: Recovered by boosted trees, R²." in said
    assert disagreement([(old[n.key], n) for n in new.numbers]) == ""


def test_numbers_and_their_units_do_not_break(audited):
    text = html.unescape(re.sub(r"<(script|style)\b.*?</\1>", "", render(audited), flags=re.DOTALL))
    assert re.findall(r"\d %|\d × 10", text) == []
    assert "95\u00a0%" in text


def test_a_pdf_without_a_browser_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match=r"none of chromium, .* is on the PATH"):
        write_pdf(samples.audit(), tmp_path / "a.pdf")


def test_a_browser_that_does_not_print_is_an_error_and_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setattr(printing, "find_browser", lambda: "/bin/browser")
    done = subprocess.CompletedProcess([], 1, b"", b"first\ncannot open display\n")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: done)
    with pytest.raises(ValueError, match="did not print the report: cannot open display"):
        write_pdf(samples.audit(), tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("user", [0, 1000])
def test_a_browser_that_takes_too_long_is_an_error(user, monkeypatch, tmp_path):
    seen = []

    def slow(command, **_):
        seen.extend(command)
        raise subprocess.TimeoutExpired(command, 1)

    monkeypatch.setattr(printing, "find_browser", lambda: "/bin/browser")
    monkeypatch.setattr(subprocess, "run", slow)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(ValueError, match=f"/bin/browser did not print the report within {printing.SECONDS} seconds"):
        write_pdf(samples.audit(), tmp_path / "a.pdf")
    assert ("--no-sandbox" in seen) == (user == 0)


@pytest.mark.browser
def test_the_first_page_fits_on_one_sheet_of_a4(audited, tmp_path):
    if not any(map(shutil.which, printing.BROWSERS)):
        pytest.skip("no browser that prints is on the PATH")
    printed = write_pdf(audited, tmp_path / "report.pdf")
    assert printed.read_bytes().startswith(b"%PDF")
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed")
    pages = subprocess.run(["pdftotext", str(printed), "-"], capture_output=True, check=True, text=True).stdout.split(
        "\f"
    )
    assert "Signature" in pages[0]
    assert "The evidence" in pages[1]
    size = subprocess.run(["pdfinfo", str(printed)], capture_output=True, check=True, text=True).stdout
    assert "A4" in size
    assert Path(printed).name == "report.pdf"
