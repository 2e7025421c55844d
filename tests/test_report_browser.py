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
import pytest

import report_samples as samples
from frhsic.auditing import Context, Settings, audit
from frhsic.auditing.results import Change, Quality
from frhsic.estimators.frontier import Gap
from frhsic.report import Report, write
from frhsic.report.words import measure_label

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
SIZES = {"phone": (390, 844), "tablet": (820, 1180), "desktop": (1280, 900)}


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


COSTS = "true_positive_rate", "false_positive_rate", "auc", "log_loss"
QUALITY = tuple(Quality(key, 0.7, 0.5, 0.01) for key in COSTS)
QUICK = Settings(resamples=60, max_rows=500, probe_rows=500)


@functools.cache
def synthetic():
    random = np.random.default_rng(0)
    s = random.uniform(0, 1, 600)
    z = np.column_stack([s + 0.3 * random.standard_normal(600), random.standard_normal((600, 3))])
    y = (random.random(600) < 1 / (1 + np.exp(-z[:, 0]))).astype(float)
    context = Context(people="applicants").stamped(data=Path(__file__))
    limits = ["gdp <= 0.4", "gdp <= 1% of base rate"]
    return Report(audit(z, s, y, limit=limits, context=context, settings=QUICK))


def test_a_report_of_data_opens_without_error_request_or_violation(visit):
    report = synthetic()
    page = visit(report, reduced_motion="reduce").page
    attribute = report.audit.attributes[0]
    unfold(page)
    rows = download(page, table(page, f"Every measure of {attribute.name}"))
    numbers = [number.value for number in attribute.all_rows.numbers]
    assert sorted(float(row[1]) for row in rows[1:]) == sorted(numbers)
    assert axe_violations(page) == []


def unfold(page):
    page.get_by_role("button", name="Expand all").click()
    assert page.locator("details:not([open])").count() == 0


def bottom(page, part):
    shown = [one for one in page.locator(part).all() if one.is_visible()]
    return shown[-1].evaluate("(one) => one.getBoundingClientRect().bottom")


def check_first_screen(page, parts):
    for size in ("desktop", "phone"):
        width, height = SIZES[size]
        page.set_viewport_size({"width": width, "height": height})
        for part in parts:
            assert 0 < bottom(page, part) <= height, (size, part)


def test_verdict_picture_costs_and_other_limits_are_on_the_first_screen(visit):
    page = visit(one_attribute()).page
    parts = (".verdict h2", ".sure", "#verdict figcaption", ".costs", ".stops label")
    check_first_screen(page, parts)


@pytest.mark.parametrize("kind", ["two attributes", "drift", "no limit"])
def test_verdict_picture_and_costs_of_other_reports_are_on_the_first_screen(visit, kind):
    reports = {"two attributes": trained("age", "distance"), "drift": drift(), "no limit": alone()}
    page = visit(reports[kind]).page
    check_first_screen(page, (".verdict", "#verdict .board > figure", ".costs"))
    assert len(page.inner_text("body").split()) <= 1_000  # of the costs, one limit's are visible


def one_attribute():
    return trained("age")


def trained(*names):
    """A report as `train` writes it, with four costs and five limits."""
    tradeoff = samples.tradeoff(*names)
    costs = tuple(samples.change(key, "", 0.7, 0.68) for key in COSTS)
    stops = [replace(stop, costs=costs) for stop in tradeoff.stops]
    tradeoff = replace(tradeoff, stops=(*stops[:2], *stops[1:]))
    after = replace(samples.audit(*names, strength=0.2), quality=QUALITY)
    return Report(after, before=samples.audit(*names), tradeoff=tradeoff)


def alone():
    return Report(replace(samples.audit("age"), quality=QUALITY))


def drift():
    """Everything that can change has changed."""
    now = alone().audit
    keys = {"gdp": "age", "attribute": "age", "score": "", "base_rate": "", "auc": ""}
    moved = [samples.change(key, name, 0.7, 0.6) for key, name in keys.items()]
    return Report(replace(now, drift=tuple(moved)), earlier=now)


def test_another_limit_changes_picture_and_costs_without_a_script(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write(samples.full(), tmp_path / "page.html").as_uri())
    stops = samples.full().tradeoff.stops
    places = [i for i, stop in enumerate(stops) if stop.point.chosen]
    for chosen in (*places, 0, 3):
        page.locator(f"#stop-{chosen}").check()
        for i in range(len(stops)):
            for part in ("g.after", "dl"):
                assert page.locator(f"{part}.stop-{i}").first.is_visible() == (i == chosen)
    assert not page.locator(".multiples").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".multiples svg").count() == len(stops) - 1
    assert page.locator(".multiples").is_visible()
    assert not page.locator("#evidence").is_visible()  # all of it is folded
    context.close()


def test_the_first_page_is_printed_on_one_sheet_of_a4(visit):
    page = visit(samples.full()).page
    page.emulate_media(media="print")
    width, height = (int(96 / 25.4 * millimetres) for millimetres in (210 - 2 * 14, 297 - 2 * 11))
    page.set_viewport_size({"width": width, "height": height})
    last = "document.querySelector('#decision')"
    assert page.evaluate(f"getComputedStyle({last}).breakAfter") == "page"
    assert page.evaluate(f"{last}.getBoundingClientRect().bottom") <= height


def axe_violations(page):
    runner = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    found = runner.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(v["id"], v["impact"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found]


@pytest.mark.parametrize(("size", "scheme"), [("phone", "light"), ("tablet", "dark")])
def test_no_accessibility_violation_and_no_sideways_scroll(visit, size, scheme):
    page = visit(samples.full(), size, scheme, reduced_motion="reduce").page
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert axe_violations(page) == []


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_very_small_numbers_stay_in_their_columns(visit, size):
    report = samples.full()

    def shrunk(gaps):
        return tuple(Gap(*(gap / 1e4 for gap in (one.value, one.low, one.high))) for one in gaps)

    stops = []
    for stop in report.tradeoff.stops:
        point = replace(stop.point, gaps=shrunk(stop.point.gaps))
        costs = (Change("root_squared_error", "", 9.9e-5, 1.23e-5, None, 0.5, 0.05),)
        stops.append(replace(stop, point=point, costs=costs))
    tradeoff = replace(report.tradeoff, stops=tuple(stops))
    page = visit(replace(report, tradeoff=tradeoff), size).page
    wide = "spans => spans.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent)"
    assert page.locator(".stops label span").evaluate_all(wide) == []
    assert "10⁻⁶" in page.locator(".stops").inner_text()


@pytest.mark.parametrize("size", ["phone", "desktop"])
@pytest.mark.parametrize("count", [1, 2])
def test_a_name_of_60_letters_fits_into_heads_and_pictures(visit, size, count):
    names = ["share_of_population_below_the_federal_poverty_line_2019_pct_", "_" * 60][:count]
    page = visit(trained(*names), size).page
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    lines = "heads => heads.map(e => e.clientHeight / parseFloat(getComputedStyle(e).lineHeight))"
    assert max(page.locator(".heads span").evaluate_all(lines)) <= 3.1
    heads = page.locator("#tradeoff thead button").all_inner_texts()
    assert heads[2:4] == (["Gap", "Interval, Gap"] if count == 1 else ["Gap 1", "Interval, Gap 1"])
    assert (f"Gap 1: {names[0]}." in page.locator(".stops").inner_text()) == (count == 2)


def test_a_curve_of_few_people_does_not_leave_the_picture(visit):
    result = samples.audit("age")
    attribute = result["age"]
    curve = attribute.all_rows.curves["gdp"]
    assert curve.sparse[-1]
    high = replace(curve, mean=(*curve.mean[:-1], 5.0), high=(*curve.high[:-1], 9.0))
    attribute.all_rows.curves["gdp"] = high
    law = replace(attribute.law, values=(17.0, 36.0, 70.0, 90.0), shares=(0.1, 0.5, 0.96, 1.0))
    page = visit(Report(replace(result, attributes=(replace(attribute, law=law),)))).page
    box = page.locator("#verdict .board > figure svg").bounding_box()
    above = (box["x"] + box["width"] * (1 - 15 / 720), box["y"] - 20)  # the last group
    hit = page.evaluate("([x, y]) => document.elementFromPoint(x, y).closest('svg')", above)
    assert hit is None


def test_a_column_sorts(visit):
    page = visit(samples.full()).page
    unfold(page)
    holder = table(page, "Every measure of age")
    holder.get_by_role("columnheader", name="Value").get_by_role("button").click()
    cells = holder.locator("tbody tr td:nth-of-type(1)").all()
    values = [float(cell.get_attribute("data-value")) for cell in cells]
    assert values == sorted(values)


def table(page, name):
    return page.locator(f".table[data-name='{name}']")


def download(page, holder):
    with page.expect_download() as caught:
        holder.get_by_role("button", name=re.compile("Download CSV")).click()
    text = Path(caught.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text)))


def test_the_csv_holds_every_digit_of_the_python_numbers(visit):
    page = visit(samples.full()).page
    unfold(page)
    rows = download(page, table(page, "Every measure of age"))
    numbers = samples.full().audit["age"].all_rows.numbers
    assert rows[0][:2] == ["Measure", "Value"]
    assert [(row[0], float(row[1])) for row in rows[1:]] == [
        (measure_label(n.key), n.value) for n in numbers
    ]
    assert rows[1][2] == f"{numbers[0].interval.low} to {numbers[0].interval.high}"


def test_hostile_text_is_shown_and_never_run(visit):
    opened = visit(samples.hostile())
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script, header img").count() == 0
    assert samples.HOSTILE[1] in page.locator("h1").inner_text()
    assert samples.HOSTILE[0] in page.locator("#verdict").inner_text()
    assert samples.HOSTILE[0] in page.locator("#verdict figure svg").text_content()
    unfold(page)
    assert page.evaluate("window.hacked") is None


def test_formulae_leave_as_text_and_numbers_as_numbers(visit):
    page = visit(samples.hostile()).page
    unfold(page)
    holder = page.locator(".table[data-name^='Every measure of <script>']").first
    rows = download(page, holder)
    assert rows[1][0] == "'" + samples.HOSTILE[3]
    assert rows[2][0] == "'-2+3"
    assert rows[2][5].startswith("'-2+3: ")
    for text in ("=1", "\tx", "+x"):
        assert page.evaluate("t => Tables.guarded(t)", text) == f"'{text}"
    for text in ("-0.5", "-1e-05", "a=1"):
        assert page.evaluate("t => Tables.guarded(t)", text) == text
    contrast = page.locator(".table[data-name^='Every measure, before and after']").first
    changes = [row[4] for row in download(page, contrast)[1:]]
    assert all(not value.startswith("'") for value in changes)
