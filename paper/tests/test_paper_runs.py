"""Runs of the studies: resumption, stored models, both protocols from end to end on small
stand-ins.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from joblib import parallel_config
from pytest import approx
from typer.testing import CliRunner

from frhsic.cli import app
from frhsic_paper import grid as grids
from frhsic_paper import models, records
from frhsic_paper.grid import Grid, Splits, methods_by_name, run
from frhsic_paper.models import Key, Model, chosen_on_validation, store_all
from frhsic_paper.options import Options
from frhsic_paper.page import due_records
from frhsic_paper.protocol import CORRECTED, PROTOCOLS, PUBLISHED
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation, Training
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import Study, select_studies, tasks, train_side_by_side
from frhsic_paper.study import run as run_study
from frhsic_paper.sweep import measure_information
from frhsic_paper.synthetic import synthetic_task
from paper_samples import stand_in
from workers_that_die import dying_worker


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    stand_in(monkeypatch)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small(name, protocol):
    return synthetic_task(200, random_state=0).dataset()


GRID = Grid(
    "small",
    ("a", "b"),
    methods_by_name("frhsic", "reg-gdp"),
    (0.1, 1.0),
    2,
    Splits(),
    epochs=1,
    source=small,
)

ALL_KEPT = (measure_information, store_all)
COMMAND = ["reproduce", "bound", "--dataset", "crime", "--epochs", "1", "--device", "cpu"]


def on_cpu(folder, **others):
    return Options(folder, "cpu", **others)


def records_of(options, study="small", protocol=PUBLISHED):
    return records.read(options.file(study, protocol))


def without_times(found):
    return [{key: value for key, value in record.items() if key != "seconds"} for record in found]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The grid, run from end to end with its models; tests copy what they change."""
    options = on_cpu(tmp_path_factory.mktemp("whole"))
    run(GRID, PUBLISHED, options, ALL_KEPT)
    return options


@pytest.fixture
def copied(whole, tmp_path):
    return replace(whole, out=Path(shutil.copytree(whole.out, tmp_path / "copy")))


class KilledError(Exception):
    pass


def killer(after):
    left = iter(range(after - 1))

    def watch(text):
        if next(left, None) is None:
            raise KilledError

    return watch


@pytest.mark.parametrize("after", [1, 4])
def test_a_run_that_was_killed_and_started_again_gives_the_same_records(tmp_path, whole, after):
    cut = on_cpu(tmp_path)
    with pytest.raises(KilledError):
        run(GRID, PUBLISHED, replace(cut, watch=killer(after)), ALL_KEPT)
    (cut.out / f".{'0' * 32}.part").write_bytes(b"PAR1 half of a file")  # a write that was cut off
    assert without_times(run(GRID, PUBLISHED, cut, ALL_KEPT)) == without_times(records_of(whole))
    assert without_times(records_of(cut)) == without_times(records_of(whole))
    assert records_of(cut, "mutual-information") == records_of(whole, "mutual-information")
    both = [models.load(options.model_file("small", PUBLISHED)) for options in (whole, cut)]
    assert both[0].keys() == both[1].keys()
    for key, state in both[0].items():
        assert all(torch.equal(value, both[1][key][name]) for name, value in state.items())


@pytest.mark.slow
def test_processes_give_the_records_of_one(tmp_path, whole):
    found = run(GRID, PUBLISHED, on_cpu(tmp_path, workers=2))
    assert without_times(found) == without_times(records_of(whole))


def test_records_say_how_they_were_trained_and_those_of_other_terms_are_trained_again(tmp_path):
    grid = replace(
        GRID, datasets=("a",), methods=methods_by_name("frhsic", "hsic"), weights=(0.1,), repeats=1
    )
    options = on_cpu(tmp_path)
    found = run(grid, CORRECTED, options)
    assert {r["method"]: r.get("weight_decay") for r in found} == {
        "none": None,
        "frhsic": None,
        "hsic": 0.001,
    }
    assert {r["method"]: r.get("variance_floor") for r in found} == {
        "none": None,
        "frhsic": None,
        "hsic": 0.01,
    }
    told = []
    first, own = grid.methods
    changed = replace(grid, methods=(replace(first, weight_decay=0.001), own))
    run(changed, CORRECTED, replace(options, watch=told.append))
    again = records_of(options, protocol=CORRECTED)
    assert len(told) == 1
    assert {r["method"] for r in found if r not in again} == {"frhsic"}
    assert next(r["weight_decay"] for r in again if r["method"] == "frhsic") == 0.001


CHANGES = {
    "epochs": {"epochs": 2},
    "weights": {"weights": (0.1, 2.0)},
    "splits": {"splits": Splits(scaling="all")},
    "penalty": {
        "methods": (replace(methods_by_name("frhsic")[0], make=methods_by_name("hsic")[0].make),)
    },
    "encoder": {"encoder": lambda d: torch.nn.Linear(d, 50)},
    "source": {"source": lambda name, protocol: synthetic_task(100, random_state=0).dataset()},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_unit_is_stale_once_what_it_depends_on_differs(change):
    before, after = (
        grid.units(PUBLISHED)["models", "a", "frhsic"] for grid in (GRID, replace(GRID, **change))
    )
    assert before.depends_on != after.depends_on
    assert GRID.units(PUBLISHED) == replace(
        GRID, methods=methods_by_name("frhsic", "reg-gdp")
    ).units(PUBLISHED)
    assert GRID.units(CORRECTED)["models", "a", "frhsic"] != before
    assert replace(GRID, repeats=1).depends_on("a", "frhsic", PUBLISHED) == before.depends_on


def test_records_that_were_just_made_bear_the_stamp_of_the_present_code(whole, tmp_path):
    study = Study("small", "", train=(Training(lambda protocol: GRID, ALL_KEPT),))
    results = Results.read(whole.out)
    assert {d.outdated for d in due_records(results, [study]) if d.protocol == "published"} <= {()}
    key = "mutual-information", "published"
    changed = [
        r if r["method"] == "none" else r | {"depends_on": "other"} for r in results.files[key]
    ]
    (late,) = [
        d for d in due_records(Results({**results.files, key: changed}), [study]) if d.outdated
    ]
    assert (late.part, late.outdated) == ("information", ("frhsic", "reg-gdp"))


def test_a_computation_of_other_code_is_due(tmp_path):
    def units(protocol, options):
        return {(4,): 1}

    def errors(missing, protocol, options):
        yield from ([{"error": 0.25}] for _ in missing)

    step = Computation("coins", "errors", ("n",), units, errors, {"corrected": 1})
    step(CORRECTED, on_cpu(tmp_path))
    study = Study("coins", "", measure=(step,), published=False)
    assert due_records(Results.read(tmp_path), [study]) == []
    path = tmp_path / "coins-corrected.parquet"
    records.write(path, [r | {"depends_on": "other"} for r in records.read(path)])
    (late,) = due_records(Results.read(tmp_path), [study])
    assert (late.present, late.expected, late.outdated) == (1, 1, ("all",))


def test_units_may_come_in_any_order_and_those_done_before_an_interruption_are_kept(tmp_path):
    def units(protocol, options):
        return {(n,): 1 for n in (1, 2, 3)}

    def backwards(missing, protocol, options):
        for (n,) in missing[:0:-1]:
            yield [{"n": n, "error": 1 / n}]
        if len(missing) > 1:
            raise KeyboardInterrupt
        yield [{"n": 1, "error": 1.0}]

    step = Computation("coins", "errors", ("n",), units, backwards, {"corrected": 1})
    with pytest.raises(KeyboardInterrupt):
        step(CORRECTED, on_cpu(tmp_path))
    path = tmp_path / "coins-corrected.parquet"
    assert [(r["n"], r["error"]) for r in records.read(path)] == [(3, 0.3333333), (2, 0.5)]
    assert sorted(r["n"] for r in step(CORRECTED, on_cpu(tmp_path))) == [1, 2, 3]


def test_a_finished_file_is_left_alone_also_by_a_run_of_fewer_repeats(copied):
    before, told = copied.file("small", PUBLISHED).read_bytes(), []
    assert len(run(GRID, PUBLISHED, replace(copied, repeats=1, watch=told.append))) == 20
    assert copied.file("small", PUBLISHED).read_bytes() == before
    assert told == []


def interrupting(after, monkeypatch):
    """Let the training of a fleet be interrupted once some fleets are trained."""
    original, left = grids.train, iter(range(after))

    def train(*arguments, **named):
        fleet = original(*arguments, **named)
        if next(left, None) is None:
            raise KeyboardInterrupt
        return fleet

    monkeypatch.setattr("frhsic_paper.grid.train", train)


def test_an_interrupted_fleet_leaves_no_record(tmp_path, monkeypatch):
    interrupting(2, monkeypatch)
    options = on_cpu(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(GRID, PUBLISHED, options, ALL_KEPT)
    assert {r["method"] for r in records_of(options)} == {"none", "frhsic"}
    assert {r["method"] for r in records_of(options, "mutual-information")} == {"none", "frhsic"}
    assert {key.method for key in models.load(options.model_file("small", PUBLISHED))} == {
        "none",
        "frhsic",
    }


def test_stored_models_give_the_scores_of_the_fleet(tmp_path):
    seen = {}

    def keep(trained, options):
        for i, record in enumerate(trained.records):
            x, own = trained.splits[record["repeat"]].test.x, trained.fleet.select([i])
            seen[Key.from_record(record)] = (x, own.scores(x)[0], own.transform(x)[0])

    options = on_cpu(tmp_path)
    run(replace(GRID, datasets=("a",)), PUBLISHED, options, (store_all, keep))
    stored = models.load(options.model_file("small", PUBLISHED))
    assert stored.keys() == seen.keys()
    for key, (x, scores, z) in seen.items():
        model = Model({}, stored[key])
        torch.testing.assert_close(model.score(model.encode(x)), scores)
        torch.testing.assert_close(model.encode(x), z)


def record(
    weight, performance, gdp, *, regression=False, repeat=0, method="frhsic", diverged=False
):
    return {
        "dataset": "d",
        "method": method,
        "weight": weight,
        "repeat": repeat,
        "diverged": diverged,
        "task": "regression" if regression else "binary",
        "validation_performance": performance,
        "validation_gdp_probability": gdp,
    }


def test_the_chosen_model_has_the_lowest_gdp_within_one_per_cent_of_the_baseline(tmp_path):
    sweep = tmp_path / "sweep.parquet"
    records.write(
        sweep,
        [record(0.0, 0.80, 0.5, method="none"), record(0.0, 0.90, 0.5, method="none", repeat=1)],
    )
    found = [
        record(0.1, 0.800, 0.40),
        record(1.0, 0.792, 0.20),  # exactly 0.99 times the baseline: allowed
        record(10.0, 0.791, 0.05),
        record(0.1, 0.88, 0.40, repeat=1),
        record(1.0, 0.87, 0.01, repeat=1),  # none is near enough: the best performance
        record(0.1, 0.90, 0.00, repeat=2),  # no repeat that is kept
    ]
    assert chosen_on_validation(found, sweep, repeats=2) == [1, 3]


def test_of_a_regression_the_performance_is_an_error(tmp_path):
    sweep, error = tmp_path / "sweep.parquet", partial(record, regression=True)
    records.write(sweep, [error(0.0, 0.0200, 0.5, method="none")])
    found = [error(0.1, 0.0195, 0.3), error(1.0, 0.0202, 0.2), error(9.0, 0.0203, 0.1)]
    assert chosen_on_validation(found, sweep, repeats=1) == [1]
    diverged = error(0.5, 0.019, 0.0, diverged=True)
    assert chosen_on_validation([found[2], diverged], sweep, repeats=1) == [0]


def study(name):
    return select_studies(STUDIES, [name])[0]


def with_one_method(name):
    """Cut the grid of a study down to one method and two weights."""

    def small(step):
        def grid(protocol):
            return replace(
                step.grid(protocol), methods=methods_by_name("frhsic"), weights=(1.0, 10.0)
            )

        return replace(step, grid=grid)

    whole = study(name)
    return replace(
        whole, train=tuple(map(small, whole.train)), measure=tuple(map(small, whole.measure))
    )


def test_measuring_what_was_not_trained_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="--phase train"):
        run_study(study("bound"), CORRECTED, Options(tmp_path), "measure")


EXPECTED = {  # study: the part of its measurement, records under published and corrected
    "bound": ("sides", 3, 3 * 5),
    "weight-selection": ("tests", 3, 3),
    "transfer": ("heads", 3 * 4, 3 * 5),
    "leak": ("leaks", 0, 2),  # not of the paper
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_studies_that_measure_stored_models_run_from_end_to_end(
    tmp_path, monkeypatch, name, protocol
):
    monkeypatch.setattr("frhsic_paper.studies.transfer.ROWS", 150)
    monkeypatch.setattr("frhsic_paper.studies.leak.TRAIN_ROWS", 150)
    if name != "bound":  # which draws 1,500 rows
        stand_in(monkeypatch, n=400)
    part, *counts = EXPECTED[name]
    options = Options(tmp_path, "cpu", ("crime",), epochs=1, repeats=1)
    run_study(with_one_method(name), protocol, options)
    found = records.read(options.file(name, protocol), part)
    assert len(found) == counts[protocol is CORRECTED]
    assert all((r["task"], r["epochs"], r["device"]) == ("regression", 1, "cpu") for r in found)
    before = {path: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    told = []
    run_study(
        with_one_method(name), protocol, replace(options, watch=told.append)
    )  # nothing is left to do
    assert [text for text in told if "models" in text] == []
    assert {path: path.read_bytes() for path in tmp_path.glob("*.parquet")} == before


def test_a_measurement_is_stale_once_its_models_or_its_settings_are(tmp_path):
    options = Options(tmp_path, "cpu", ("crime",), epochs=1, repeats=1)
    bound, told = with_one_method("bound"), []
    run_study(bound, PUBLISHED, options)
    measure = replace(bound, measure=(replace(bound.measure[0], settings="others"),))
    run_study(measure, PUBLISHED, replace(options, watch=told.append))
    assert told == ["published bound sides crime: 3 models"]
    longer = replace(options, epochs=2, watch=told.append)
    run_study(measure, PUBLISHED, longer)
    assert told[-1] == "published bound sides crime: 3 models"
    assert len(told) == 4  # two fleets were trained again before
    kinds = [(r["part"], r["epochs"]) for r in records_of(options, "bound")]
    assert kinds == [("models", 2)] * 3 + [("sides", 2)] * 3


def test_a_study_that_only_trains_runs_from_end_to_end(tmp_path):
    name = "multi-attribute"
    options = Options(tmp_path, "cpu", None, epochs=1, repeats=1)
    run_study(study(name), CORRECTED, options)
    (step,) = study(name).train
    units = step.grid(CORRECTED).restrict(options).units(CORRECTED)
    found = records_of(options, name, CORRECTED)
    assert len(found) == sum(wanted.records for wanted in units.values())
    assert all(record["performance"] == approx(record["performance"]) for record in found)  # finite


def test_the_command_runs_a_study_once_and_then_finds_it_done(tmp_path, monkeypatch):
    monkeypatch.setattr("frhsic_paper.studies.STUDIES", (with_one_method("bound"),))
    command = [*COMMAND, "--out", str(tmp_path), "--workers", "1"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "corrected bound sides crime" in first.output
    assert records.read(tmp_path / "quick" / "bound-corrected.parquet")[0]["method"] == "none"
    second = CliRunner().invoke(app, command)
    assert second.exit_code == 0
    assert "models" not in second.output


@pytest.mark.slow
def test_the_command_gives_the_same_records_on_a_cluster_that_loses_a_worker(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("frhsic_paper.studies.STUDIES", (with_one_method("bound"),))
    found = {}
    with dying_worker() as address:
        for name, more in (("here", ["--workers", "1"]), ("there", ["--scheduler", address])):
            shown = CliRunner().invoke(
                app, [*COMMAND, "--epochs", "2", *more, "--out", str(tmp_path / name)]
            )
            assert shown.exit_code == 0, shown.output
            files = sorted((tmp_path / name / "quick").glob("*.parquet"))
            found[name] = {file.name: records.read(file) for file in files}
    assert found["here"].keys() == found["there"].keys()
    for name, own in found["here"].items():
        for one, other in zip(own, found["there"][name], strict=True):
            assert all(
                one[key]
                == (approx(other[key], rel=1e-4) if isinstance(one[key], float) else other[key])
                for key in one
                if "seconds" not in key
            ), name


# --- studies that are trained at the same time


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_every_grid_is_a_part_of_one_task_and_running_times_of_none(protocol):
    runs = [
        study
        for study in select_studies(STUDIES, ["all"])
        if study.published or not protocol.printed
    ]
    wanted = {id(step) for study in runs for step in study.train if isinstance(step, Training)}
    given = Counter(id(step) for _, study in tasks(runs, [protocol]) for step in study.train)
    assert given == Counter(wanted)
    assert "runtime" not in {study.name for _, study in tasks(STUDIES, [protocol])}


def test_studies_trained_at_a_time_have_the_records_of_those_trained_in_turn(tmp_path, monkeypatch):
    stand_in(monkeypatch, n=1500)
    studies = select_studies(STUDIES, ["weight-selection", "bound"])
    together, in_turn = (
        Options(tmp_path / name, "cpu", ("crime",), epochs=1, repeats=1) for name in ("a", "b")
    )
    with parallel_config("threading"):  # processes take seconds to start
        train_side_by_side(studies, [CORRECTED], together, processes=2)
    for one in studies:
        run_study(one, CORRECTED, in_turn, "train")
        a, b = (
            [*map(records.content, records_of(options, one.name, CORRECTED))]
            for options in (together, in_turn)
        )
        assert a == b
        assert a
