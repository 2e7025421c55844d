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


def test_a_pipeline_in_a_grid_search():
    results = main_of("pipeline_grid_search")(n=300, epochs=15)
    assert results["mean_test_gap"].iloc[2] > results["mean_test_gap"].iloc[0]


def test_a_comparison_in_fairlearn(tmp_path: Path):
    picture = tmp_path / "comparison.png"
    compared = main_of("fairlearn_comparison")(**SMALL, picture=str(picture))
    assert compared["gdp"].iloc[-1] < compared["gdp"].iloc[0]
    assert picture.stat().st_size > 1000


def test_an_encoder_of_one_s_own():
    result = main_of("custom_encoder")(**SMALL)
    assert result["columns of Z"] == 16
    assert result["gdp"] < 0.15


def test_a_loop_of_one_s_own():
    found = main_of("own_loop")(n=600, epochs=25)
    assert found["penalised"] < 0.3 * found["unpenalised"]


def test_equal_opportunity():
    found = main_of("equal_opportunity")(**SMALL).set_index(["penalty on", "weight"])["gdp given y = 1"]
    assert found["rows with y = 1", 10.0] < 0.7 * found["rows with y = 1", 0.0]


def test_two_attributes():
    found = main_of("two_attributes")(**SMALL)
    assert (found.iloc[1] < 0.8 * found.iloc[0]).all()


def test_the_credit_story_from_start_to_finish(tmp_path: Path):
    pytest.importorskip("lightgbm")
    story = main_of("credit")(n=1500, epochs=10, folder=tmp_path)
    before, chosen, report = story["before"], story["chosen"], story["report"]
    assert (before.limits[0].verdict, report.audit.limits[0].verdict) == ("not kept", "kept")
    assert 0.04 < before.subject.base_rate < 0.08
    assert chosen.satisfied
    assert {one.key: one.value for one in report.audit.quality}["auc"] > 0.7  # no constant
    assert report.drivers[0].columns
    for name in ("credit-before.html", "credit-after.html"):
        assert "whether a loan is granted" in (tmp_path / name).read_text(encoding="utf-8")
