"""Every program of the gallery runs, draws a picture and prints what its text says.

Two long ones run with fewer repeats by default, and as they stand among the slow tests.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("few_trees")  # no program shows a number of the tree probe

SIZES = ["small", "as it stands"]
FOLDER = Path(__file__).resolve().parents[1] / "examples" / "gallery"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    mpl.use("Agg")
    pictures: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: pictures.append(plt.gcf()))

    def program(name: str, smaller: dict[str, str] | None = None) -> dict[str, Any]:
        """Run a program, as it stands or with other values of some of its names."""
        text = (FOLDER / f"plot_{name}.py").read_text(encoding="utf-8")
        for assigned, value in (smaller or {}).items():
            text, count = re.subn(rf"^{assigned} = .*$", f"{assigned} = {value}", text, flags=re.MULTILINE)
            assert count == 1, f"{name} does not assign {assigned}"
        names: dict[str, Any] = {"__name__": f"plot_{name}"}
        exec(compile(text, f"plot_{name}.py", "exec"), names)
        assert pictures, "no picture was shown"
        for picture in pictures:
            axes = picture.get_axes()
            assert axes[-1].get_xlabel()
            assert axes[0].get_ylabel()
        return names

    yield program
    plt.close("all")


def test_no_program_is_left_out():
    assert {path.stem.removeprefix("plot_") for path in FOLDER.glob("*.py")} == {
        "audit_of_scores",
        "certificate",
        "embeddings_without_s",
        "fleet_and_frontier",
        "monitoring",
        "own_method",
        "scale_fools_hsic",
        "table_handed_on",
        "two_routes",
        "what_binning_hides",
    }


def test_what_binning_hides(run):
    names = run("what_binning_hides")
    score, older = names["score"], names["older"]
    assert abs(score[older].mean() - score[~older].mean()) < 0.01
    assert names["gap"].interval[0] > 0.05


def test_scale_fools_hsic_and_not_what_stands_beside_it(run):
    names = run("scale_fools_hsic")
    kept = {}
    for name, values in (*names["shrunk"].items(), *names["hidden"].items()):
        kept[name] = values[-1] / values[0]
    assert kept["HSIC, bandwidth 3"] < 0.01
    assert kept["HSIC, median bandwidth"] < 0.01
    assert kept["GDP of the score"] == pytest.approx(0.01, rel=1e-6)
    for name in ("standardised GDP", "R² of a linear probe", "HSIC of whitened Z"):
        assert kept[name] == pytest.approx(1, abs=0.01), name


@pytest.mark.parametrize(
    "smaller", [{"sizes, repeats": "[50, 200, 400], 12"}, pytest.param(None, marks=pytest.mark.slow)], ids=SIZES
)
def test_the_two_routes(run, smaller):
    names = run("two_routes", smaller)
    means = {name: values.mean(axis=1) for name, values in names["found"].items()}  # (sizes, worlds)
    narrow, wide, eipm, hsic = (means[name] for name in names["measures"])
    assert (narrow[:, 1] > 0.05).all()
    assert (wide[:, 0] < 0.25).all()  # the definition gives 0.38
    assert (eipm[:, 1] > 0.02).all()
    spread = names["found"]["HSIC, unbiased"][:, :, 1].std(axis=1) / np.sqrt(names["repeats"])
    assert (np.abs(hsic[:, 1]) < 4 * spread).all()


def test_a_certificate_holds_for_every_head_and_the_worst_one_meets_it(run):
    names = run("certificate")
    bound = names["bound"]
    assert max(names["gaps"]) < bound.value
    assert bound.gap(bound.worst_scores) == pytest.approx(bound.value, rel=1e-6)
    assert names["forms"]["published"][4] > bound.trivial > names["forms"]["tight"][-1]


@pytest.mark.parametrize(
    "smaller", [{"weights, seeds": "[0, 1, 30], [0, 1]"}, pytest.param(None, marks=pytest.mark.slow)], ids=SIZES
)
def test_a_method_of_one_s_own(run, smaller):
    names = run("own_method", smaller)
    assert len(names["fleet"]) == (6 if smaller else 21)
    assert names["gaps"].mean(0)[-1] < 0.1 * names["gaps"].mean(0)[0]  # of the default, which comes last
    value = names["Waves"]()
    value.prepare(names["torch"].linspace(0, 1, 50), names["torch"].Generator())
    flat, along = names["torch"].ones(50, 1), names["torch"].linspace(0, 1, 50)[:, None]
    assert float(value(flat, along, scores=flat)) == pytest.approx(0, abs=1e-8)
    assert float(value(along, along, scores=along)) > 0.01


def test_an_audit_of_somebody_else_s_scores(run):
    names = run("audit_of_scores")
    assert names["check"].verdict == "not kept"
    assert names["found"].all_rows.contrasts[0].interval.high < 0


@pytest.mark.slow
def test_a_table_that_is_handed_on(run):
    names = run("table_handed_on")
    assert names["before"] > 0.7
    assert names["after"] < 0.02
    rows = [names[table].sort_values(list(names["X"]), ignore_index=True) for table in ("X", "Z")]
    assert rows[0].equals(rows[1])


@pytest.mark.slow
def test_embeddings_of_many_columns(run):
    names = run("embeddings_without_s")
    leaks, kept = names["leaks"], names["kept"]
    assert leaks["columns"] > 0.4
    assert leaks["linear residuals"] > 0.1
    assert leaks["coupling"] < 0.02
    assert kept["coupling"] > 0.75


@pytest.mark.slow
def test_a_fleet_and_its_frontier(run):
    frontier = run("fleet_and_frontier")["frontier"]
    assert set(frontier.methods) == {"no penalty", "HSIC", "smoothed GDP (Reg-GDP)"}
    hsic = frontier.of("HSIC")
    assert hsic[-1].dependence < 0.05 * frontier.of("no penalty")[0].dependence
    assert all(point.repeats == 3 for point in frontier.points)


@pytest.mark.slow
def test_monitoring(run):
    names = run("monitoring")
    assert names["CHANGE"] < names["alarm"] <= 30
    assert names["alarms"] <= 4 < 25 < names["any_week"]  # of 40 streams
    assert names["change"].verdict == "grown"
