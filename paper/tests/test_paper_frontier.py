"""The frontier: its table is re-derived from the published sweeps, which give the oracle."""

import json
from importlib.resources import files

import numpy as np
import pytest
from pytest import approx

from frhsic_paper.frontier import Frontier, Run, band_limit, is_within_band
from frhsic_paper.frontiers import Scale, _area, naup, naup_by_repeat
from frhsic_paper.models import best_in_band

PUBLISHED = json.loads((files("frhsic_paper") / "published.json").read_text())
DATASETS = ("adult", "acs_income", "meps", "communities", "compas")
SIX = ("FRHSIC", "FREM", "Reg-GDP", "ADV", "MMD (binned)", "LAFTR (binned)")
NINE = (0.01, 0.1, 0.5, 1, 5, 10, 50, 100, 500)
GRIDS = {
    "published: FRHSIC 18 values, baselines 9": None,
    "equal 9 values": NINE,
    "text grid 0.1,1,10,100,500": (0.1, 1, 10, 100, 500),
}


def published_frontier(dataset, weights):
    runs = [
        Run(r["method"], r["lambda"], 0, r["perf_mean"], r["gdp_mean"])
        for r in PUBLISHED["repo_sweeps"]
        if r["dataset"] == dataset
        and r["method"] in (*SIX, "Unfair")
        and (weights is None or r["method"] == "Unfair" or r["lambda"] in weights)
    ]
    return Frontier(tuple(runs), higher_is_better=dataset != "communities", baseline="Unfair")


def small():
    return Frontier(
        (
            Run("none", 0, 0, 0.90, 1.0),
            Run("a", 1, 0, 0.90, 0.5),
            Run("a", 10, 0, 0.80, 0.25),
            Run("a", 100, 0, 0.70, 0.30),
        )
    )


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("dataset", DATASETS)
def test_area_and_matched_point_of_the_published_sweeps_are_the_printed_ones(dataset, grid):
    rows = [
        r
        for r in PUBLISHED["derived"]["matched_and_naup_by_grid"]
        if r["grid"] == grid and r["dataset"] == dataset
    ]
    assert len(rows) == 6
    frontier = published_frontier(dataset, GRIDS[grid])
    areas, matched = naup(frontier), frontier.matched_points(0.01)
    for row in rows:
        assert areas[row["method"]] == approx(row["naup"], abs=5.1e-5)
        point = matched[row["method"]]
        assert (None if point is None else point.weight) == row["matched_lambda"]


def test_area_by_hand():
    # scale: worst .7, best .9; budgets .25 -> utility .5, .5 -> utility 1; on 201 points the steps
    # fall on the grid
    budgets = np.linspace(0, 1, 201)
    curve = np.where(budgets >= 0.5, 1.0, np.where(budgets >= 0.25, 0.5, 0.0))
    assert naup(small())["a"] == approx(np.trapezoid(curve, budgets), rel=1e-12)


def test_an_error_is_better_when_lower():
    runs = (Run("none", 0, 0, 1.0, 1.0), Run("a", 1, 0, 1.005, 0.4), Run("a", 2, 0, 1.2, 0.1))
    frontier = Frontier(runs, higher_is_better=False)
    assert frontier.matched_points(0.01)["a"].weight == 1
    assert [p.weight for p in frontier.non_dominated_points("a")] == [2, 1]


def test_a_negative_baseline_has_a_matched_point():
    runs = (Run("none", 0, 0, -0.20, 1.0), Run("a", 1, 0, -0.201, 0.4), Run("a", 2, 0, -0.3, 0.1))
    matched = Frontier(runs).matched_points(0.01)
    assert (matched["a"].weight, matched["none"].weight) == (1, 0)
    assert band_limit(-0.20, 0.01, True) == approx(-0.202)
    assert Frontier((runs[0], runs[2])).matched_points(0.01)["a"] is None


def repeated(repeats, advantage):
    rng = np.random.default_rng(0)
    runs = []
    for r in range(repeats):
        noise = rng.normal(scale=0.01)
        runs.append(Run("none", 0, r, 0.9 + noise, 1.0))
        for weight, performance, dependence in ((1, 0.9, 0.6), (10, 0.85, 0.3)):
            runs.append(Run("a", weight, r, performance + noise, dependence - advantage))
            runs.append(
                Run("b", weight, r, performance + noise, dependence + rng.normal(scale=0.001))
            )
    return Frontier(tuple(runs))


def test_the_area_of_each_repeat_is_on_one_scale():
    frontier = repeated(12, 0.1)
    areas = naup_by_repeat(frontier)
    alone = Frontier(tuple(run for run in frontier.runs if run.repeat == 3))
    scale = Scale.from_frontier(frontier)
    assert {m: v[3] for m, v in areas.items()} == {
        m: _area(alone, alone.method_points(m), scale) for m in areas
    }
    assert (areas["a"] > areas["b"]).all()


@pytest.mark.parametrize("higher", [True, False])
def test_the_limit_of_the_band_is_inside_and_what_lies_beyond_is_not(higher):
    limit = band_limit(0.8, 0.01, higher)
    beyond = np.nextafter(limit, -np.inf if higher else np.inf)
    assert limit == approx(0.792 if higher else 0.808)
    assert is_within_band(limit, 0.8, 0.01, higher)
    assert not is_within_band(beyond, 0.8, 0.01, higher)
    best = {"baseline": 0.8, "band": 0.01, "higher_is_better": higher}
    assert best_in_band([0.8, limit, beyond], [0.3, 0.2, 0.1], **best) == (1, True)
    assert best_in_band([beyond, beyond], [0.3, 0.2], **best) == (0, False)


def test_points_average_repeats():
    point = repeated(6, 0.0).method_points("b")[0]
    values = [r.performance for r in repeated(6, 0.0).runs if r.method == "b" and r.weight == 1]
    assert point.performance == approx(np.mean(values))
    assert point.performance_sd == approx(np.std(values, ddof=1))
    assert point.repeats == 6


def test_a_point_with_less_performance_and_more_dependence_is_dominated():
    assert [p.weight for p in small().non_dominated_points("a")] == [10, 1]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Frontier(()), "at least one run"),
        (lambda: Frontier((Run("a", 1, 0, 0.9, 0.1),)), "baseline 'none'"),
        (lambda: Frontier((Run("none", 0, 0, float("nan"), 0.1),)), "diverged"),
        (lambda: small().method_points("z"), "method 'z'"),
        (lambda: Scale(0, 1, 0.0), "positive"),
    ],
)
def test_bad_input_says_what_to_do(made, message):
    with pytest.raises(ValueError, match=message):
        made()


def test_a_scale_whose_ends_agree_gives_everything():
    assert Scale(0.5, 0.5, 0.1).utility(np.array([0.2, 0.5, 0.9])).tolist() == [1, 1, 1]
