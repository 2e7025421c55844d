"""Runs of the experiments: resumption, kept models, both protocols from end to end on small stand-ins."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from pytest import approx
from typer.testing import CliRunner

from frhsic.cli import app
from frhsic.datasets.synthetic import synthetic_task
from frhsic_paper import information, keeping, records, reproduction
from frhsic_paper.catalogue import GRIDS, grid_of
from frhsic_paper.keeping import Key
from frhsic_paper.options import Options
from frhsic_paper.protocol import CORRECTED, PROTOCOLS, PUBLISHED
from frhsic_paper.sweep import Grid, by_name, run
from paper_samples import toy_dataset


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setattr("frhsic_paper.sweep.load_dataset", toy_dataset)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(name, protocol):
    return synthetic_task(200, random_state=0).dataset()


GRID = Grid("small", ("a", "b"), by_name("frhsic", "reg-gdp"), (0.1, 1.0), 2, epochs=1, source=small)


def without_times(found):
    return [{key: value for key, value in record.items() if key != "seconds"} for record in found]


class KilledError(Exception):
    pass


def killer(after):
    told = []

    def watch(text):
        told.append(text)
        if len(told) == after:
            raise KilledError

    return watch


def with_everything_kept(folder):
    informed = information.informer(folder / "mi.jsonl")
    stored = keeping.keeper(folder / "models.safetensors", keeping.all_models)

    def keep(*unit):
        informed(*unit)
        stored(*unit)

    return keep


@pytest.mark.parametrize("after", [1, 4])
def test_a_run_that_was_killed_and_started_again_gives_the_same_records(tmp_path, after):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    expected = run(GRID, PUBLISHED, whole / "r.jsonl", device="cpu", keep=with_everything_kept(whole))
    with pytest.raises(KilledError):
        run(GRID, PUBLISHED, cut / "r.jsonl", device="cpu", keep=with_everything_kept(cut), watch=killer(after))
    with (cut / "r.jsonl").open("a") as file:
        file.write('{"experiment": "small", "dataset": "b", "meth')  # a line that was cut off
    found = run(GRID, PUBLISHED, cut / "r.jsonl", device="cpu", keep=with_everything_kept(cut))
    assert without_times(found) == without_times(expected)
    assert without_times(records.read(cut / "r.jsonl")) == without_times(records.read(whole / "r.jsonl"))
    assert records.read(cut / "mi.jsonl") == records.read(whole / "mi.jsonl")
    models = [keeping.kept(folder / "models.safetensors") for folder in (whole, cut)]
    assert models[0].keys() == models[1].keys()
    for key, state in models[0].items():
        assert all(torch.equal(value, models[1][key][name]) for name, value in state.items())


def test_a_unit_of_which_some_records_are_lost_is_trained_anew(tmp_path):
    path = tmp_path / "r.jsonl"
    expected = run(GRID, PUBLISHED, path, device="cpu")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for i, line in enumerate(lines) if i != 3))
    found = run(GRID, PUBLISHED, path, device="cpu")
    order = [(r["dataset"], r["method"], r["weight"], r["repeat"]) for r in expected]
    by_model = {(r["dataset"], r["method"], r["weight"], r["repeat"]): r for r in without_times(found)}
    assert [by_model[key] for key in order] == without_times(expected)


@pytest.mark.slow
def test_processes_give_the_records_of_one(tmp_path):
    expected = run(GRID, PUBLISHED, tmp_path / "one.jsonl", device="cpu")
    found = run(GRID, PUBLISHED, tmp_path / "two.jsonl", device="cpu", workers=2)
    assert without_times(found) == without_times(expected)


def test_records_say_how_they_were_trained_and_those_of_other_terms_are_trained_again(tmp_path):
    grid = replace(GRID, datasets=("a",), methods=by_name("frhsic", "hsic"), weights=(0.1,), repeats=1)
    path = tmp_path / "small.jsonl"
    found = run(grid, CORRECTED, path, device="cpu")
    assert {r["method"]: r.get("weight_decay") for r in found} == {"none": None, "frhsic": None, "hsic": 0.001}
    assert {r["method"]: r.get("variance_floor") for r in found} == {"none": None, "frhsic": None, "hsic": 0.01}
    told = []
    run(replace(grid, like="hsic"), CORRECTED, path, device="cpu", watch=told.append)
    again = records.read(path)
    assert len(told) == 2
    assert {(r["weight_decay"], r["variance_floor"]) for r in again} == {(0.001, 0.01)}
    changed = {r["method"]: r["gdp_logit"] for r in found if r not in again}
    assert set(changed) == {"none", "frhsic"}
    assert all(changed[r["method"]] != r["gdp_logit"] for r in again if r["method"] in changed)


def test_a_finished_file_is_left_alone_also_by_a_run_of_fewer_repeats(tmp_path):
    path = tmp_path / "r.jsonl"
    run(GRID, PUBLISHED, path, device="cpu")
    before = path.read_bytes()
    told = []
    found = run(replace(GRID, repeats=1), PUBLISHED, path, device="cpu", watch=told.append)
    assert path.read_bytes() == before
    assert told == []
    assert len(found) == 20


def test_a_broken_line_that_is_not_the_last_is_an_error(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"a": 1}\n{"a": \n{"a": 2}\n')
    with pytest.raises(ValueError, match="line 2"):
        records.read(path)


def test_kept_models_give_the_scores_of_the_fleet(tmp_path):
    seen = {}

    def keep(dataset, method, fleet, splits, found):
        keeping.keeper(tmp_path / "m.safetensors", keeping.all_models)(dataset, method, fleet, splits, found)
        for i, record in enumerate(found):
            x = splits[record["repeat"]].test.x
            seen[Key.of(record)] = (x, fleet.select([i]).scores(x)[0], fleet.select([i]).transform(x)[0])

    run(replace(GRID, datasets=("a",)), PUBLISHED, tmp_path / "r.jsonl", device="cpu", keep=keep)
    models = keeping.kept(tmp_path / "m.safetensors")
    assert models.keys() == seen.keys()
    for key, (x, scores, z) in seen.items():
        encoder, head = keeping.modules(models[key])
        torch.testing.assert_close(head(encoder(x)).detach(), scores)
        torch.testing.assert_close(keeping.encoded(models[key], x), z)


def record(weight, performance, gdp, *, regression=False, repeat=0, method="frhsic", diverged=False):
    made = {
        "dataset": "d",
        "method": method,
        "weight": weight,
        "repeat": repeat,
        "diverged": diverged,
        "validation_performance": performance,
        "validation_gdp_probability": gdp,
    }
    return made if regression else made | {"validation_gdp_decision": gdp}


def test_the_chosen_model_has_the_lowest_gdp_within_one_per_cent_of_the_baseline(tmp_path):
    sweep = tmp_path / "sweep.jsonl"
    records.append(sweep, [record(0.0, 0.80, 0.5, method="none"), record(0.0, 0.90, 0.5, method="none", repeat=1)])
    rule = keeping.chosen_on_validation(sweep, repeats=2)
    found = [
        record(0.1, 0.800, 0.40),
        record(1.0, 0.792, 0.20),  # exactly 0.99 times the baseline: allowed
        record(10.0, 0.791, 0.05),
        record(0.1, 0.88, 0.40, repeat=1),
        record(1.0, 0.87, 0.01, repeat=1),  # none is near enough: the best performance
        record(0.1, 0.90, 0.00, repeat=2),  # no repeat that is kept
    ]
    assert rule("d", "frhsic", found) == [1, 3]


def test_of_a_regression_the_performance_is_an_error(tmp_path):
    sweep = tmp_path / "sweep.jsonl"
    records.append(sweep, [record(0.0, 0.0200, 0.5, method="none", regression=True)])
    rule = keeping.chosen_on_validation(sweep, repeats=1)
    found = [
        record(w, e, g, regression=True) for w, e, g in ((0.1, 0.0195, 0.3), (1.0, 0.0202, 0.2), (9.0, 0.0203, 0.1))
    ]
    assert rule("d", "frhsic", found) == [1]
    assert rule("d", "frhsic", [found[2], record(0.5, 0.019, 0.0, regression=True, diverged=True)]) == [0]


def test_models_of_a_unit_take_the_place_of_those_it_had(tmp_path):
    path = tmp_path / "m.safetensors"
    first, second = Key("d", "m", 0.1, 0), Key("d", "m", 1.0, 0)
    other = Key("d", "other", 0.1, 0)
    keeping.store(path, "d", "m", {first: {"a": torch.zeros(2)}})
    keeping.store(path, "d", "other", {other: {"a": torch.ones(2)}})
    keeping.store(path, "d", "m", {second: {"a": torch.full((2,), 2.0)}})
    assert {key: state["a"].tolist() for key, state in keeping.kept(path).items()} == {other: [1, 1], second: [2, 2]}


def test_measuring_what_was_not_trained_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="--phase train"):
        reproduction.perform("bound", CORRECTED, Options(tmp_path), "measure")


def with_one_method(monkeypatch, name):
    """Cut the grid of an experiment down to one method and two weights."""
    of = GRIDS[name]
    monkeypatch.setitem(
        GRIDS, name, lambda protocol: replace(of(protocol), methods=by_name("frhsic"), weights=(1.0, 10.0))
    )


EXPECTED = {  # experiment: its grid, the file of its own measures, records under published and corrected
    "bound": ("bound", "bound-sides", 3, 3 * 5),
    "weight-selection": ("weight-selection", "weight-tests", 3, 3),
    "transfer": ("transfer", "transfer-heads", 3 * 4, 3 * 5),
    "leak": ("tradeoff", "leak", 0, 2),  # not of the paper
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_experiments_that_measure_kept_models_run_from_end_to_end(tmp_path, monkeypatch, name, protocol):
    monkeypatch.setattr("frhsic_paper.transfer_measure.ROWS", 150)
    monkeypatch.setattr("frhsic_paper.leak_measure.TRAIN_ROWS", 150)
    if name != "bound":  # which draws 1,500 rows
        monkeypatch.setattr("frhsic_paper.sweep.load_dataset", partial(toy_dataset, n=400))
    grid, file, *counts = EXPECTED[name]
    with_one_method(monkeypatch, grid)
    options = Options(tmp_path, "cpu", ("crime",), epochs=1, repeats=1)
    reproduction.perform(name, protocol, options)
    found = records.read(options.file(file, protocol))
    assert len(found) == counts[protocol is CORRECTED]
    before = {path: path.read_bytes() for path in tmp_path.glob("*.jsonl")}
    told = []
    reproduction.perform(name, protocol, replace(options, watch=told.append))  # nothing is left to do
    assert [text for text in told if "models" in text or "representations" in text] == []
    assert {path: path.read_bytes() for path in tmp_path.glob("*.jsonl")} == before


@pytest.mark.parametrize("name", ["synthetic", "multi-attribute"])
def test_experiments_that_only_train_run_from_end_to_end(tmp_path, name):
    options = Options(tmp_path, "cpu", None, epochs=1, repeats=1)
    reproduction.perform(name, CORRECTED, options)
    grid = options.applied(grid_of(name, CORRECTED))
    found = records.read(options.file(name, CORRECTED))
    assert len(found) == sum(len(grid.weights_of(method)) for _, _, method in grid.units())
    assert all(record["performance"] == approx(record["performance"]) for record in found)  # finite


def test_the_sweep_measures_mutual_information_of_every_model_of_its_first_repeats(tmp_path, monkeypatch):
    with_one_method(monkeypatch, "tradeoff")
    options = Options(tmp_path, "cpu", ("crime",), epochs=1, repeats=1)
    reproduction.perform("tradeoff", PUBLISHED, options)
    sweep, measured = (records.read(options.file(name, PUBLISHED)) for name in ("tradeoff", "mutual-information"))
    assert [Key.of(r) for r in measured] == [Key.of(r) for r in sweep]
    assert all(r["mi_published"] >= 0 for r in measured)
    assert not (tmp_path / "models").exists()  # the published table chooses on test rows: no model is kept


def test_every_experiment_has_a_step_and_every_grid_an_experiment():
    assert all(e.train or e.measure for e in reproduction.EXPERIMENTS.values())
    named = {step.args[0] for e in reproduction.EXPERIMENTS.values() for step in e.train if hasattr(step, "args")}
    assert named == set(GRIDS)


def test_unknown_experiments_are_named():
    with pytest.raises(ValueError, match="no experiment 'convergense'"):
        reproduction.chosen_experiments(["bound", "convergense"])
    assert reproduction.chosen_experiments(["all"]) == list(reproduction.EXPERIMENTS)


def test_the_command_runs_an_experiment_once_and_then_finds_it_done(tmp_path, monkeypatch):
    with_one_method(monkeypatch, "bound")
    command = ["reproduce", "bound", "--dataset", "crime", "--epochs", "1", "--out", str(tmp_path), "--device", "cpu"]
    command += ["--workers", "1", "--protocol", "both"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "published bound crime frhsic: 2 models" in first.output
    assert "corrected bound-sides crime" in first.output
    lines = (tmp_path / "quick-1" / "bound-corrected.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["method"] == "none"
    second = CliRunner().invoke(app, command)
    assert second.exit_code == 0
    assert "models" not in second.output


def test_the_command_lists_the_experiments():
    shown = CliRunner().invoke(app, ["reproduce"])
    assert shown.exit_code == 0
    assert all(name in shown.output for name in reproduction.EXPERIMENTS)
