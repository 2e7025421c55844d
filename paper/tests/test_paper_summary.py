"""The page on top, and the script that computes its numbers again."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from pytest import approx
from scipy import stats

from frhsic_paper.results import Results
from frhsic_paper.studies import STUDIES
from frhsic_paper.summary import INDEX, MAIN, summary

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def recompute() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recompute", ROOT / "paper" / "recompute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_shipped_page_follows_from_the_shipped_records(recompute):
    docs = ROOT / "docs"
    wrong = recompute.differences(ROOT / "results", docs / "reproduction.md", docs / "reproduction")
    assert not wrong, "run `frhsic reproduce all --docs`"


CHANGED = {
    "508 of 512": ("509 of 512", "agreement: 508 of 512"),
    "494 within two": ("495 within two", "agreement: 508 of 512"),
    "1,600 models in 140 s": ("1,600 models in 141 s", "tradeoff-published.parquet: 1,600 records"),
    "claims about experiments, 1": ("claims about experiments, 2", "claims: "),
    "| [Figure 13]": ("| [Figure]", "index: 19 rows"),
    "mean rank 1.0 ± 0.0 of 4 over 12": ("mean rank 1.1 ± 0.0 of 4 over 12", "Log loss or squared error"),
    "mean regret 0.7 ± 1.6 %": ("mean regret 0.7 ± 1.5 %", "Log loss or squared error"),
    "of 96 comparisons": ("of 95 comparisons", "The closed form has the least"),
}


def test_every_changed_number_is_found(recompute, tmp_path):
    text = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    present = {true: change for true, change in CHANGED.items() if true in text}
    assert "| [Figure 13]" in present
    for true, (false, _) in present.items():
        text = text.replace(true, false)
    (tmp_path / "reproduction.md").write_text(text, encoding="utf-8")
    wrong = recompute.differences(ROOT / "results", tmp_path / "reproduction.md", ROOT / "docs" / "reproduction")
    for _, found in present.values():
        assert any(line.startswith(found) for line in wrong), wrong


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10])
def test_students_law_in_closed_form(recompute, freedom):
    for t in (0.1, 1.3, -4.0):
        assert recompute.student(t, freedom) == approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9)


def test_every_table_and_figure_of_the_paper_is_listed_with_claims_and_a_study_that_exist():
    claims = {claim.name for study in STUDIES for claim in study.claims}
    names = {study.name for study in STUDIES}
    assert {name for item in INDEX for name in item.claims} | set(MAIN) <= claims
    assert {item.study for item in INDEX} - {""} <= names
    numbers = [item.number for item in INDEX]
    assert sorted(numbers) == sorted([f"Figure {k}" for k in range(1, 14)] + [f"Table {k}" for k in range(1, 8)])


def test_without_records_the_page_says_so():
    page = summary(Results({}), {}, ())
    assert "The published sweep was not run yet." in page
    assert "so nothing is claimed." in page
    assert page.count("not run yet") >= 19


def test_hardware_is_named_where_it_is_known_and_its_absence_said_once():
    model = {"part": "models", "dataset": "crime", "method": "frem", "weight": 1.0, "repeat": 0, "seconds": 2.0}
    old = {("tradeoff", "corrected"): [model], ("bound", "published"): [{"part": "sides"}]}
    new = {
        ("transfer", "corrected"): [model | {"hardware": "NVIDIA H200"}, {"part": "heads", "hardware": "Xeon"}],
        ("runtime", "corrected"): [
            {"part": "times", "device": device, "hardware": name, "method": "frem", "repeat": 0, "seconds": 1.0}
            for device, name in (("cpu", "Xeon"), ("cuda", "NVIDIA H200"))
        ],
    }
    page = summary(Results(old | new), {}, ())
    assert page.count("not recorded") == 1
    assert "Hardware is not recorded in the older records of tradeoff, bound.\n" in page
    assert "2 records, 1 models in 2 s (NVIDIA H200; Xeon) |" in page
    assert "2 records (NVIDIA H200; Xeon) |" in page
    assert "not recorded" not in summary(Results(new), {}, ())
