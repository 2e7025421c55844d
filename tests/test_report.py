"""The page without a browser: what stands in its source."""

import base64
import hashlib
import html
import json
import re
from dataclasses import replace

import pytest

import report_samples as samples
from frhsic.report import Report, TradeOff, TradeOffPoint, render, write
from frhsic.report.page import _compared, unbroken
from frhsic.sentences import findings, sentence, summary

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


def test_a_tradeoff_has_points_and_at_most_one_choice():
    point = TradeOffPoint(1.0, 0.8, 0.1, chosen=True)
    with pytest.raises(ValueError, match="at least one point"):
        TradeOff("age", "Accuracy", True, ())
    with pytest.raises(ValueError, match="2 points"):
        TradeOff("age", "Accuracy", True, (point, point))


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


def test_a_summary_without_probes_tells_the_gap_and_the_performance():
    def bare(found):
        attributes = tuple(
            replace(a, all_rows=replace(a.all_rows, numbers=a.all_rows.numbers[:2])) for a in found.attributes
        )
        return replace(found, attributes=attributes)

    after, before = samples.audit("age", strength=0.2), samples.audit("age")
    whole, short = (summary(f(after), f(before), samples.tradeoff()) for f in (lambda found: found, bare))
    assert whole.startswith(short)
    assert len(whole) > len(short)


def test_a_gap_without_an_interval_has_none_in_its_sentence():
    (age,) = samples.audit("age").attributes
    gap = replace(age.all_rows["gdp"], interval=None, no_interval="too few rows")
    bare = replace(age, all_rows=replace(age.all_rows, numbers=(gap,)))
    assert any("interval for this gap" in line for line in findings(age))
    assert not any("interval for this gap" in line for line in findings(bare))
