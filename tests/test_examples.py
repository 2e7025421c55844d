"""Every example runs on small data and shows what it says."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

pytestmark = pytest.mark.usefixtures("few_trees")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
SMALL = {"n": 400, "epochs": 25}


@pytest.fixture(autouse=True)
def _beside(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    mpl.use("Agg")
    yield
    sys.modules.pop("applicants", None)


def main_of(name: str) -> Callable[..., Any]:
    return runpy.run_path(str(FOLDER / f"{name}.py"), run_name="example")["main"]


def test_no_example_is_left_out():
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == {
        "applicants",
        "credit",
        "custom_encoder",
        "equal_opportunity",
        "fairlearn_comparison",
        "own_loop",
        "pipeline_grid_search",
        "two_attributes",
    }


@pytest.mark.slow
def test_a_pipeline_in_a_grid_search():
    gaps = main_of("pipeline_grid_search")(n=300)["mean_test_gap"]
    assert gaps.iloc[0] < gaps.iloc[1] < gaps.iloc[2]


def test_a_comparison_in_fairlearn(tmp_path: Path):
    picture = tmp_path / "comparison.png"
    compared = main_of("fairlearn_comparison")(n=600, picture=str(picture))
    assert compared["gdp"].iloc[-1] < 0.7 * compared["gdp"].iloc[0]
    assert picture.stat().st_size > 1000


def test_an_encoder_of_one_s_own():
    result = main_of("custom_encoder")(**SMALL)
    assert result["columns of Z"] == 16
    assert result["gdp"] < 0.15


def test_a_loop_of_one_s_own():
    found = main_of("own_loop")(n=600, epochs=25)
    assert found["penalised"] < 0.3 * found["unpenalised"]


def test_equal_opportunity():
    gaps = main_of("equal_opportunity")(n=800)["gdp given y = 1"]
    assert gaps["rows with y = 1", "25%"] < 0.6 * gaps["rows with y = 1", "None"]


def test_two_attributes():
    gaps = main_of("two_attributes")(n=1000)
    assert (gaps.loc["limit"] < 0.8 * gaps.loc["no limit"]).all()


def test_the_gap_of_a_model_in_production_is_halved(tmp_path: Path):
    pytest.importorskip("lightgbm")
    report = main_of("credit")(n=1500, folder=tmp_path)
    assert 0.04 < report.audit.subject.base_rate.value < 0.08
    assert report.tradeoff.after.gaps[0].value < 0.75 * report.tradeoff.before.gaps[0].value
    assert {one.key: one.value for one in report.audit.quality}["auc"] > 0.7  # no constant
    assert report.drivers[0].columns
    assert "whether a loan is granted" in (tmp_path / "credit.html").read_text(encoding="utf-8")
