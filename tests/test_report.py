"""The page without a browser: what stands in its source."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

import report_samples as samples
from frhsic.auditing import Quality
from frhsic.formatting import figure
from frhsic.report import Report, render, write
from frhsic.report.page import _compared, unbroken
from frhsic.report.quality import summary, tradeoff_rows
from frhsic.sentences import findings, sentence

pytestmark = pytest.mark.usefixtures("few_trees")


def embedded(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_the_page_holds_the_report_and_gives_it_back_exactly():
    report = samples.full()
    assert embedded(render(report)) == report.to_dict()
    assert Report.from_dict(embedded(render(report))) == report


def test_an_audit_alone_makes_a_page():
    assert Report.from_dict(embedded(render(samples.audit()))).tradeoff is None


def test_a_report_survives_json():
    report = samples.full()
    assert Report.from_json(report.to_json()) == report


def test_a_report_of_another_format_is_refused():
    plain = samples.full().to_dict() | {"format": 99}
    with pytest.raises(ValueError, match="format is 99"):
        Report.from_dict(plain)


def test_every_number_stands_in_the_tables_with_all_its_digits():
    page = render(samples.full())
    for attribute in samples.full().audit.attributes:
        for number in attribute.all_rows.numbers:
            assert f'data-value="{number.value}"' in page
            said = sentence(number, attribute.subject, attribute.name)
            assert html.escape(unbroken(said), quote=False) in page


def test_the_notes_say_that_hsic_zero_is_not_sufficient():
    assert "<h3>HSIC = 0 is necessary, not sufficient, for counterfactual fairness</h3>" in render(samples.audit())


def test_the_page_names_no_other_host():
    page = render(samples.full())
    addresses = set(re.findall(r"(?:https?:)?//[A-Za-z0-9.-]+\.[a-z]{2,}[^\s\"'`]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a namespace, never fetched
    assert not re.search(r"<(?:link|img|iframe|object|embed|base)\b|\bsrc=|@import|url\(['\"]?[a-z]", page)


def test_the_policy_admits_exactly_the_script_and_style_of_the_page():
    page = render(samples.full())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        body = re.search(rf"<{element}>(.*?)</{element}>", page, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_hostile_names_never_become_markup():
    page = render(samples.hostile())
    body = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "window.hacked=1" in body  # shown, as text
    assert not re.search(r"<script>window|<img", page)
    assert "7*7" in body
    assert "{{ 49" not in body
    assert page.count("<script") == 2
    assert "<" not in re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)


def test_the_page_is_light_enough_to_mail():
    assert len(render(samples.full()).encode()) < 400_000


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report.html"
    assert write(samples.audit(), target) == target
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ValueError, match="is not there"):
        write(samples.audit(), tmp_path / "none" / "report.html")


def test_before_and_after_pairs_measures_by_name_and_not_by_place():
    after, before = samples.audit("age", strength=0.5), samples.audit("age")
    turned = replace(before.attributes[0].all_rows, numbers=tuple(reversed(before.attributes[0].all_rows.numbers)))
    before = replace(before, attributes=(replace(before.attributes[0], all_rows=turned),))
    page = render(Report(after, before=before))
    section = page[page.index('id="compared"') : page.index('id="attribute-1"')]
    assert "Mutual information is left out" in section
    for number in after.attributes[0].all_rows.numbers:
        if number.key == "mutual_information":
            assert number.label not in section
            continue
        old = before["age"].all_rows[number.key].value
        row = re.search(
            rf"<tr role=\"row\">\s*<th[^>]*>{re.escape(html.escape(number.label))}</th>(.*?)</tr>", section, re.DOTALL
        ).group(1)
        assert f'data-value="{old}"' in row
        assert f'data-value="{number.value}"' in row
        assert f'data-value="{number.value - old}"' in row


def test_an_attribute_that_was_not_audited_before_is_not_compared():
    report = replace(samples.full(), before=samples.audit("age"))
    assert [name for name, _, _ in _compared(report)] == ["age"]


def test_every_trade_off_stands_in_the_table_with_all_its_digits():
    page, tradeoff = render(samples.full()), samples.full().tradeoff
    rows = tradeoff_rows(tradeoff)
    assert [point for point, _ in rows] == [*tradeoff.points, tradeoff.before, tradeoff.after]
    assert [kind for _, kind in rows if "chosen" in kind] == ["17 % of the gap (chosen)", "this report, chosen"]
    section = page[page.index('id="tradeoff"') : page.index('id="compared"')]
    for point, kind in rows:
        assert f">{unbroken(kind)}</th>" in section
        for value in (point.performance, point.gaps[0].value, point.gaps[1].low):
            assert f'data-value="{value}"' in section


@pytest.mark.parametrize(("aim", "measure"), [("score", "log_loss"), ("rank", "auc"), ("decision", "accuracy")])
def test_the_axes_are_those_of_the_aim(aim: str, measure: str):
    tradeoff = replace(samples.tradeoff(), aim=aim, measure=measure)
    page = html.unescape(render(Report(samples.audit("age"), tradeoff=tradeoff)))
    names = {"score": "Gap of mean scores", "rank": "Rank gap", "decision": "Gap of decisions"}
    shown = json.loads(re.search(r"data-axes='(.*?)'", page).group(1))
    assert shown == [names[aim], {"log_loss": "Log loss", "auc": "AUC"}.get(measure, "Accuracy"), aim == "score"]


def test_the_summary_tells_gap_loss_and_those_who_are_foreseen():
    foreseen = [Quality("true_positive_rate", share, 0.0, True) for share in (0.62, 0.42)]
    before, after = (replace(samples.audit("age"), quality=(one,)) for one in foreseen)
    tradeoff = samples.tradeoff()
    said = summary(after, before, tradeoff)
    for value in (tradeoff.before.gaps[0].value, tradeoff.after.gaps[0].value, tradeoff.after.performance, 0.55):
        assert figure(value) in said
    assert "Of 1,000 cases with “income”, 420 are foreseen instead of 620." in said
    assert "could explain" not in said
    assert "a change that chance alone could explain" in summary(after, before, tradeoff, ["age"])
    turned = replace(tradeoff, before=tradeoff.after, after=tradeoff.before)
    assert "does not lower the gap of mean scores along age" in summary(after, before, turned)
    assert "goes from" not in summary(after, None, tradeoff)


def test_a_gap_without_an_interval_has_none_in_its_sentence():
    (age,) = samples.audit("age").attributes
    gap = replace(age.all_rows["gdp"], interval=None, no_interval="too few rows")
    bare = replace(age, all_rows=replace(age.all_rows, numbers=(gap,)))
    assert any("interval for this gap" in line for line in findings(age))
    assert not any("interval for this gap" in line for line in findings(bare))
