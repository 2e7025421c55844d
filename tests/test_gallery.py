"""Every program of the gallery runs, draws a picture and shows what its text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

pytestmark = [
    pytest.mark.usefixtures("few_trees"),  # no program shows a number of the tree probe
    pytest.mark.filterwarnings(
        "ignore::UserWarning"
    ),  # of the small tables that replace those of the programs
]

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "gallery"


@pytest.fixture
def run():
    mpl.use("Agg")
    plt.close("all")  # figures of earlier tests in this process

    def program(name: str, **smaller: int) -> dict[str, Any]:
        """Run a program, with smaller values of some of its names."""
        text = (FOLDER / f"plot_{name}.py").read_text(encoding="utf-8")
        for assigned, value in smaller.items():
            text, count = re.subn(
                rf"^{assigned} = .*$", f"{assigned} = {value}", text, flags=re.MULTILINE
            )
            assert count == 1, f"{name} does not assign {assigned}"
        names: dict[str, Any] = {"__name__": f"plot_{name}"}
        exec(compile(text, f"plot_{name}.py", "exec"), names)
        assert len(plt.get_fignums()) == 1
        axes = plt.gcf().get_axes()
        assert axes[-1].get_xlabel()
        assert axes[0].get_ylabel()
        return names

    yield program
    plt.close("all")


def test_an_audit_of_somebody_else_s_scores(run):
    names = run("audit_of_scores")
    assert names["check"].verdict == "not kept"
    curve = names["attribute"].all_rows.curves["gdp"]
    assert curve.high[0] < curve.overall


def test_the_gap_of_a_model_in_production_is_halved(run):
    report = run("production", n=1000)["report"]
    assert report.tradeoff.after.gaps[0].value < 0.75 * report.tradeoff.before.gaps[0].value
    assert {one.key: one.value for one in report.audit.quality}["auc"] > 0.7  # no constant


def test_what_a_notebook_shows(run):
    names = run("notebook", n=1000)
    assert "<svg" in names["model"].frontier_._repr_html_()
    assert "The gap by age" in names["model"].choice_._repr_html_()
    assert names["tradeoffs"]["gap_age"].iloc[-1] < 0.5 * names["tradeoffs"]["gap_age"].iloc[0]


@pytest.mark.slow
def test_a_pipeline_in_a_grid_search(run):
    results = run("grid_search", n=300)["results"]
    for _, part in results.groupby("param_estimator__logisticregression__C"):
        assert part[
            "mean_test_gap"
        ].is_monotonic_increasing  # minus the gap: no limit, half, the least


def test_gaps_among_people_of_equal_education(run):
    names = run("among_equals", ROWS=2_000)
    change = names["within"].differences[0]
    assert change.changed
    assert change.after < change.before
    assert names["within"].worst == "degree"


def test_equal_opportunity(run):
    gaps = run("equal_opportunity", n=1000)["results"]["gap among y = 1"]
    assert gaps["equal opportunity"] < 0.6 * gaps["no limit"]


@pytest.mark.slow
def test_a_shared_table(run):
    names = run("shared_table")
    assert names["before"] > 0.7
    assert names["after"] < 0.02
    rows = [names[table].sort_values(list(names["X"]), ignore_index=True) for table in ("X", "Z")]
    assert rows[0].equals(rows[1])


@pytest.mark.slow
def test_monitoring(run):
    names = run("monitoring")
    gap = {month: audit.drift[0] for month, audit in names["months"].items()}
    assert {change.key for change in gap.values()} == {"gdp"}
    assert [month for month, change in gap.items() if change.changed] == ["May", "June"]
    assert all(gap[month].after > gap[month].before for month in ("May", "June"))


def test_more_rows_than_memory(run):
    names = run("more_rows_than_memory", FILES=2)
    assert names["gap"].rows == 20_000
    assert (
        names["gap"].interval.low < 0.0318 < names["gap"].interval.high
    )  # 0.05 E|sin - E sin| over the ages
