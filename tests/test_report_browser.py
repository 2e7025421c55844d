"""The page in a real browser. Skipped, with the reason, where there is none."""

from __future__ import annotations

import csv
import functools
import io
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import report_samples as samples
from frhsic.auditing import Context, Settings, audit
from frhsic.report import Report, write
from frhsic.report.words import label

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("few_trees")]

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
]
FLAGS += ["--disable-background-networking", "--disable-component-update"]
SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desktop": (1360, 900)}


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(
        (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
    )
    if found is None:
        pytest.skip("no chromium found; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@dataclass
class Opened:
    page: object
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check(self):
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "blob:"))] == []


@pytest.fixture
def visit(browser, tmp_path):
    contexts, opened = [], []

    def open_(report, size="desktop", scheme="light", **options):
        target = write(report, tmp_path / f"report{len(contexts)}.html")
        context = browser.new_context(
            viewport=dict(zip(("width", "height"), SIZES[size])),
            color_scheme=scheme,
            accept_downloads=True,
            **options,
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        visit = Opened(context.new_page())
        opened.append(visit)
        visit.page.on(
            "console",
            lambda m: visit.problems.append(m.text) if m.type in ("error", "warning") else None,
        )
        visit.page.on("pageerror", lambda error: visit.problems.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(target.as_uri())
        visit.page.wait_for_selector("html[data-ready=yes]")
        return visit

    yield open_
    for one in opened:
        one.check()
    for context in contexts:
        context.close()


QUICK = Settings(resamples=60, max_rows=500, probe_rows=500)


@functools.cache
def synthetic():
    random = np.random.default_rng(0)
    s = random.uniform(0, 1, 600)
    z = np.column_stack([s + 0.3 * random.standard_normal(600), random.standard_normal((600, 3))])
    y = (random.random(600) < 1 / (1 + np.exp(-z[:, 0]))).astype(float)
    context = Context(people="applicants").stamped(data=Path(__file__))
    limits = ["gdp <= 0.4", "gdp <= 1% of base rate"]
    return Report(audit(z, s, y, limit=limits, context=context, settings=replace(QUICK, at=[0.5])))


def test_a_report_of_data_opens_without_error_request_or_violation(visit):
    report = synthetic()
    page = visit(report, reduced_motion="reduce").page
    attribute = report.audit.attributes[0]
    assert page.locator("[data-figure=first] .line").count() >= 1
    assert page.locator("[data-figure=curve] .histogram rect").count() == len(
        attribute.histogram.counts
    )
    assert page.locator("[data-figure=along] .line").count() >= 3
    rows = download(page, table(page, f"Measures for {attribute.name}"))
    rows += download(page, table(page, f"Probes for {attribute.name}"))[1:]
    numbers = [number.value for number in attribute.all_rows.numbers]
    assert sorted(float(row[1]) for row in rows[1:]) == sorted(numbers)
    assert axe_violations(page) == []


def test_the_curve_of_a_skewed_attribute_fills_the_frame_and_its_band_is_inside(visit):
    random = np.random.default_rng(0)
    income = random.lognormal(4, 1, 400)
    income[:3] *= 20
    score = 1 / (1 + np.exp(4 - np.log(income) + random.standard_normal(400)))
    result = audit(score, pd.Series(income, name="income"), settings=QUICK)
    figure = visit(Report(result)).page.locator("[data-figure=first]")

    def drawn(shape: str) -> np.ndarray:
        text = figure.locator(shape).first.get_attribute("d")
        return np.array([pair.split() for pair in re.split("[MLZ]", text) if pair], dtype=float)

    left, right = (
        float(figure.locator("line.axis").first.get_attribute(name)) for name in ("x1", "x2")
    )
    line = drawn(".line")[:, 0]
    assert (
        len(line) == len(result["income"].all_rows.curves["gdp"].grid) + 2
    )  # outer groups go on to their ends
    assert (line[0], line[-1]) == pytest.approx((left, right), abs=1)
    assert line[-2] > left + (right - left) / 3  # else the last group alone would fill the frame
    assert drawn(".band")[:, 1].min() >= 22  # where the frame begins
    assert "5 % not drawn" in figure.text_content()


LINES = """(cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set(Array.from(range.getClientRects(), (box) => Math.round(box.top))).size;
}"""
"""Number of lines that the text of a cell takes."""


def test_the_first_page_fits_every_width_and_breaks_no_number(visit):
    page = visit(synthetic(), reduced_motion="reduce").page
    assert page.locator("#decision .verdict").all_inner_texts() == ["kept", "not kept"]
    for width in (380, 900, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        for cell in page.locator("table.quality td").all():
            assert cell.evaluate(LINES) == 1
        for cell in page.locator("table.quality th").all():  # no word is cut
            assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
            assert cell.evaluate("(cell) => getComputedStyle(cell).overflowWrap") == "normal"


def axe_violations(page, **options):
    runner = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = (
        runner.Axe()
        .run(page, options={"resultTypes": ["violations"], **options})
        .response["violations"]
    )
    return [(v["id"], v["impact"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found]


@pytest.mark.parametrize(
    ("size", "scheme"), [("phone", "light"), ("tablet", "dark"), ("desktop", "light")]
)
def test_no_accessibility_violation_and_no_sideways_scroll(visit, size, scheme):
    page = visit(samples.full(), size, scheme, reduced_motion="reduce").page
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    # contrast takes most of the time; on a wide light page the reports of data are tested for it
    rules = {"color-contrast": {"enabled": False}} if size == "desktop" else {}
    assert axe_violations(page, rules=rules) == []


def test_the_trade_offs_are_drawn_where_they_lie_and_read_by_the_keyboard(visit):
    page, tradeoff = visit(samples.full(), reduced_motion="reduce").page, samples.full().tradeoff
    bodies = page.locator("[data-figure=tradeoff] .point .body").all()
    pixels = np.array(
        [[float(body.get_attribute(name)) for name in ("cx", "cy")] for body in bodies]
    )
    values = np.array([[point.gaps[0].value, point.performance] for point in tradeoff.points])
    for k, sign in ((0, 1), (1, -1)):  # pixels are an affine image of the values
        slope, offset = np.polyfit(values[:, k], pixels[:, k], 1)
        assert slope * sign > 0
        np.testing.assert_allclose(offset + slope * values[:, k], pixels[:, k], atol=0.1)
    assert page.locator("[data-figure=tradeoff] .point.selected").count() == 1
    assert page.locator("[data-figure=tradeoff] .own").count() == 2
    page.locator("[data-figure=tradeoff] .plot").focus()
    page.keyboard.press("End")
    assert (
        page.locator("[data-figure=tradeoff] .sr")
        .inner_text()
        .startswith("no limit. Log loss 0.310.")
    )


def test_the_keyboard_zooms_and_a_column_sorts(visit):
    page = visit(samples.full()).page

    def ticks():
        texts = (
            page.locator("[data-figure=curve] svg")
            .first.locator("text[text-anchor=middle]")
            .all_text_contents()
        )
        return [float(text) for text in texts]

    whole = ticks()
    page.locator("[data-figure=curve] .plot").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    assert max(ticks()) < max(whole)
    page.keyboard.press("0")
    assert ticks() == whole
    holder = table(page, "Measures for age")
    holder.get_by_role("columnheader", name="Value").get_by_role("button").click()
    cells = holder.locator("tbody tr td:nth-of-type(1)").all()
    values = [float(cell.get_attribute("data-value")) for cell in cells]
    assert values == sorted(values)


def table(page, name):
    return page.locator(f".table[data-name='{name}']")


def download(page, holder):
    with page.expect_download() as caught:
        holder.get_by_role("button", name=re.compile("as CSV")).click()
    text = Path(caught.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def test_the_csv_holds_every_digit_of_the_python_numbers(visit):
    page = visit(samples.full()).page
    rows = download(page, table(page, "Measures for age"))
    numbers = [
        n for n in samples.full().audit["age"].all_rows.numbers if not n.key.startswith("probe_")
    ]
    assert rows[0][:2] == ["Measure", "Value"]
    assert [(row[0], float(row[1])) for row in rows[1:]] == [
        (label(n.key), n.value) for n in numbers
    ]
    assert rows[1][2] == f"{numbers[0].interval.low} to {numbers[0].interval.high}"


def test_hostile_text_is_shown_and_never_run(visit):
    opened = visit(samples.hostile())
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, header img").count() == 0
    assert page.locator("h1").inner_text() == samples.HOSTILE[1]
    assert page.locator("h2", has_text=samples.HOSTILE[0]).count() == 1
    plot = page.locator("[data-figure=curve] .plot").first
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert samples.HOSTILE[0][:20] in plot.locator(".tip").inner_text()
    assert page.evaluate("window.hacked") is None


def test_formulae_leave_as_text_and_numbers_as_numbers(visit):
    page = visit(samples.hostile()).page
    holder = page.locator(".table[data-name^='Measures for <script>']").first
    rows = download(page, holder)
    assert rows[1][0] == "'" + samples.HOSTILE[3]
    assert rows[2][0] == "'-2+3"
    assert rows[2][5].startswith("'-2+3: ")
    for text in ("=1", "\tx", "+x"):
        assert page.evaluate("t => Tables.guarded(t)", text) == f"'{text}"
    for text in ("-0.5", "-1e-05", "a=1"):
        assert page.evaluate("t => Tables.guarded(t)", text) == text
    contrast = page.locator(".table[data-name^='Before and after']").first
    changes = [row[4] for row in download(page, contrast)[1:]]
    assert all(not value.startswith("'") for value in changes)
