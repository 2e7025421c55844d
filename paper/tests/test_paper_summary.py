"""The page on top, and the script that computes its numbers again."""

from __future__ import annotations

import importlib.util
import shutil
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
    shutil.copytree(ROOT / "docs" / "reproduction", tmp_path / "reproduction")
    study = tmp_path / "reproduction" / "rank.md"
    study.write_text(study.read_text(encoding="utf-8").replace("parquet` | 5 |", "parquet` | 6 |"), encoding="utf-8")
    wrong = recompute.differences(ROOT / "results", tmp_path / "reproduction.md", tmp_path / "reproduction")
    assert any(line.startswith("rank-corrected.parquet: 5,") for line in wrong), wrong
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
