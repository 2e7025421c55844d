"""The fair comparison: roles of rows, settings that differ within a fleet, the search, and what the records say."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx

from frhsic.fleet import Member, Recipe, TrainingData, train
from frhsic.fleet.data import Purpose, stream_seed
from frhsic.kernels import Gaussian
from frhsic.penalties import EIPM, GDP, HSIC, BinnedMMD, DistanceCovariance
from frhsic_paper import records
from frhsic_paper.options import Options
from frhsic_paper.protocol import CORRECTED
from frhsic_paper.results import Results
from frhsic_paper.studies import tuned
from frhsic_paper.tuned import penalties, reading, rows, trees
from frhsic_paper.tuned.methods import AMOUNTS, LEVELS, METHODS, RIVALS, SETTINGS, TRIALS


@pytest.mark.parametrize("n", [61, 997, 20_001])
def test_no_test_row_was_used_to_tune_and_none_is_tested_twice(n):
    tuned_on = np.concatenate([part for k in range(3) for part in rows.divided(n, "tune", k)])
    tested = [rows.divided(n, "test", k) for k in range(5)]
    others = np.concatenate([test for _, test in tested])
    assert len(np.unique(others)) == len(others)
    assert not np.isin(others, tuned_on).any()
    for train_rows, test_rows in tested:
        assert not np.isin(test_rows, train_rows).any()
    assert len({(len(a), len(b)) for a, b in tested}) == 1  # so that folds stack


def test_every_method_gets_the_same_budget_and_begins_with_its_defaults():
    assert {f"{name}{base}" for name in RIVALS for base in ("", ", base")} < set(METHODS)
    for method in METHODS.values():
        assert method.values(0) == approx(tuple(s.default for s in method.settings), nan_ok=True)
        drawn = {method.values(trial) for trial in range(1, TRIALS)}
        numbers = any(not setting.whole for setting in method.settings)
        assert len(drawn) >= (TRIALS - 1 if numbers else 8 if method.settings else 1)  # bins may come twice
        for values in drawn:
            assert all(s.low <= v <= s.high for s, v in zip(method.settings, values))
        if method.inputs is not None:
            assert [method.terms.index(method.terms_of(t)) for t in range(TRIALS)] == [0] * 6 + [1] * 6


def prepared(penalty, s):
    penalty.prepare(s, torch.Generator().manual_seed(5))
    return penalty


CASES = {
    "reg-gdp": ((0.07,), lambda: GDP(bandwidth=0.07)),
    "frem": ((2.5, 0.1), lambda: EIPM(scale_z=2.5, gamma=0.1)),
    "mmd": ((3.0,), lambda: BinnedMMD("mean-difference", scale_z=1.0, bins=3, edges="quantile")),
    "dcor": ((), DistanceCovariance),
    "hsic": ((1.0, 1.0), HSIC),
    "hsic before": ((1.0, 1.0), lambda: HSIC(penalties.KERNEL_BEFORE)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_penalty_with_a_setting_is_the_librarys_with_that_argument(name):
    values, make = CASES[name]
    generator = torch.Generator().manual_seed(0)
    z, s, f = torch.randn(40, 6, generator=generator), torch.rand(40, generator=generator), torch.randn(40, 1)
    varied, plain = prepared(penalties.PENALTIES[name]({5: values}), s), prepared(make(), s)
    assert varied(z, s, scores=f).item() == approx(plain(z, s, scores=f).item(), rel=1e-6)


def test_the_defaults_of_the_papers_methods_are_the_published_ones():
    s, z = torch.rand(50, generator=torch.Generator().manual_seed(1)), torch.randn(50, 4)
    defaults = {name: tuple(setting.default for setting in settings) for name, settings in SETTINGS.items()}
    own = prepared(penalties.PENALTIES["frhsic"]({5: defaults["frhsic"]}), s)
    published = prepared(HSIC.published(), s)
    for penalty in (own, published):
        penalty.adapt(z, s, 0)
    assert own(z, s).item() == approx(published(z, s).item(), rel=1e-6)
    assert defaults["reg-gdp"] == (GDP().bandwidth,)
    assert defaults["mmd"] == (BinnedMMD.published().bins,)
    assert isinstance(HSIC.published().kernel_z, Gaussian)


def test_bins_that_are_not_used_get_no_mass():
    s = torch.linspace(0, 1, 60)
    penalty = prepared(penalties.PENALTIES["laftr"]({5: (1e-3, 3.0)}), s)
    member = (s[:, None] >= penalty.edges[0]).sum(1)
    assert torch.bincount(member).tolist() == [20, 20, 20]
    outputs = torch.zeros(60, 12)
    assert penalty._loss(outputs, s[:, None]).item() == approx(math.log(3))


@pytest.mark.parametrize("name", ["reg-gdp", "laftr", "frhsic"])
def test_two_trials_in_one_fleet_are_the_two_fleets(name):
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(120, 3, generator=generator)
    data = TrainingData.of(x, (x[:, 0] > 0).float(), torch.rand(120, generator=generator))
    members = [Member(weight, 100 + trial, 0) for trial in (0, 1) for weight in (0.0, 5.0)]
    method = METHODS[name]
    table = {stream_seed(m.seed, 0, Purpose.PENALTY): method.values(m.seed - 100) for m in members}
    recipe = Recipe("binary", partial(method.penalty, table), epochs=2, batch_size=32)
    together = train(data, members, recipe, device="cpu").scores(x)
    for trial in (0, 1):
        own = train(data, members[2 * trial : 2 * trial + 2], recipe, device="cpu").scores(x)
        torch.testing.assert_close(together[2 * trial : 2 * trial + 2], own, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(together[1], together[3])


def test_a_level_that_is_not_reached_counts_as_a_constant():
    performance, gdp = np.array([[0.9], [0.8]]), np.array([[1.0], [0.6]])
    assert reading.read_off(performance, gdp, 0.5) is None
    at_first = 0.9 - 0.1 * (1 - LEVELS[0]) / 0.4
    assert reading.score(performance, gdp, 1.0, 0.55) == approx((at_first + 2 * 0.55) / 3)
    spoiled = np.array([[1.0], [np.nan]])  # a model that diverged is no point of the path
    assert reading.read_off(performance, spoiled, 0.9) is None


def final_record(dataset, method, split, performance, gdp):
    return {
        "dataset": dataset, "method": method, "split": split, "trial": 0, "weights": [0.0, 1.0], "test_rows": 10,
        "training_rows": 80, "path_performance": performance, "path_gdp": gdp,
    }  # fmt: skip


def made(advantage: float, noise: float = 0.002) -> list[dict]:
    generator, made = np.random.default_rng(3), []
    for split in range(5):
        made.append({"dataset": "wages", "method": "reference", "split": split, "gdp": 1.0, "constant": 0.5})
        for method in ("default", "frem"):
            level = 0.8 + (advantage if method == "default" else 0) + noise * generator.normal()
            made.append(final_record("wages", method, split, [level, level], [1.0, 0.0]))
    return made


def test_the_default_is_compared_by_its_folds():
    ((comparison),) = reading.comparisons(reading.tested(made(0.05)))
    assert (comparison.dataset, comparison.method, comparison.verdict) == ("wages", "frem", "better")
    assert comparison.test.mean == approx(0.05, abs=0.005)
    assert reading.comparisons(reading.tested(made(-0.05)))[0].verdict == "worse"
    assert reading.comparisons(reading.tested(made(0.0)))[0].verdict == "="


@pytest.fixture
def small(monkeypatch):
    """Two methods on a made table."""
    generator = np.random.default_rng(0)
    s = generator.lognormal(size=900)
    X = pd.DataFrame(
        {"a": s + generator.normal(size=900), "b": generator.normal(size=900), "c": generator.integers(3, size=900)}
    )
    y = (X["a"] + X["b"] + generator.normal(size=900) > 1).to_numpy(float)
    monkeypatch.setattr(rows.Source, "load", classmethod(lambda cls, name: cls(name, X, y, s, "binary")))
    monkeypatch.setattr(tuned, "METHODS", {name: METHODS[name] for name in ("default", "reg-gdp")})


def test_a_run_that_is_out_of_time_goes_on_where_it_stopped(small, tmp_path):
    said: list[str] = []
    options = Options(tmp_path, "cpu", ("wages",), epochs=1, repeats=2, watch=said.append)
    late = replace(options, until=time.perf_counter() - 1)
    tuned.RUN(CORRECTED, late)
    assert said == ["the time is over; the same command goes on from here"]
    assert not options.file("tuned", CORRECTED).exists()
    tuned.TRIAL(CORRECTED, options)
    trials = records.read(options.file("tuned", CORRECTED), "trials")
    assert sorted((r["method"], r.get("trial")) for r in trials if r["method"] != "reference") == [
        ("default", 0), ("default", 1), ("reg-gdp", 0), ("reg-gdp", 1),
    ]  # fmt: skip
    assert {len(r["path_gdp"]) for r in trials if "path_gdp" in r} == {6 * 2}
    tuned.RUN(CORRECTED, options)
    count = len(said)
    tuned.RUN(CORRECTED, options)
    assert len(said) == count  # nothing is left to do
    final = records.read(options.file("tuned", CORRECTED), "final")
    assert {r["method"] for r in final} == {"reference", "default", "default, untuned", "reg-gdp"}
    assert {r["looks"] for r in final} == {1}
    scores, differences, _ = tuned.tables(Results.read(tmp_path))
    (line,) = differences.table.rows
    mean, low, high = map(float, re.findall(r"[-+][.\d]+", line[1]))
    by_method = {name: tested.scores for name, tested in reading.tested(final)["wages"].items()}
    assert (line[0], mean) == ("reg-gdp", approx((by_method["default"] - by_method["reg-gdp"]).mean(), abs=6e-5))
    assert low <= mean <= high
    assert scores.table.rows[0][0] == "default"
    assert "look 1" in scores.table.columns[1].name


def test_another_choice_makes_a_test_stale_and_another_method_nothing(tmp_path, monkeypatch):
    options, weights = Options(tmp_path, "cpu", ("wages",)), [0.0, 1.0]
    shared = {"part": "trials", "dataset": "wages"}

    def written(best: int) -> None:
        paths = [
            shared
            | {"method": "default", "trial": trial, "weights": weights, "path_gdp": [0.3, 0.05]}
            | {"path_performance": [0.9, 0.9 if trial == best else 0.7]}
            for trial in (0, 1)
        ]
        reference = shared | {"method": "reference", "gdp": 0.3, "constant": 0.5}
        records.write(options.file("tuned", CORRECTED), [reference, *paths])

    def hashes() -> tuple[str, str]:
        trial, final = (step._depends_on(("wages", "default"), CORRECTED, options) for step in tuned.RUN.steps)
        return trial, final

    written(best=0)
    before = hashes()
    monkeypatch.setattr(tuned, "METHODS", {name: METHODS[name] for name in ("default", "frem")})
    assert hashes() == before
    written(best=1)
    assert (hashes()[0] == before[0], hashes()[1] == before[1]) == (True, False)


@pytest.mark.parametrize("name", ["boosting", "transport (needs S)"])
def test_trees_lose_their_gap(small, name):
    pytest.importorskip("lightgbm")
    weights = {0: (0.0, 100.0)} if name == "boosting" else {0: AMOUNTS}
    path = trees.fitted(METHODS[name], rows.Source.load("wages"), "tune", 1, weights, jobs=1)[0]
    assert path.gdp.shape == path.performance.shape == (len(weights[0]), 1)
    assert path.gdp[-1, 0] < 0.7 * path.gdp[0, 0]
