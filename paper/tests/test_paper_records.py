"""The format of the records: types, parts, files that are whole or not, and those that are
shipped.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from frhsic_paper import records
from frhsic_paper.page import due_records
from frhsic_paper.records import Wanted
from frhsic_paper.results import Results
from frhsic_paper.studies import STUDIES

RESULTS = Path(__file__).parents[1] / "results"

MODEL = {
    "part": "models",
    "dataset": "d",
    "weight": 10.0,
    "repeat": 3,
    "diverged": False,
    "rule": "1e-6",
}


def test_types_survive(tmp_path):
    path = tmp_path / "a.parquet"
    nested = {
        "heads": {"linear": [0.8, 0.1]},
        "columns": ["age", "hours"],
        "p": 1e-107,
        "whole": 0.0,
    }
    records.write(path, [MODEL | nested])
    (found,) = records.read(path)
    assert found == MODEL | nested
    assert [type(value) for value in found.values()] == [
        type(value) for value in (MODEL | nested).values()
    ]
    types = {field.name: str(field.type) for field in pq.read_schema(path)}
    assert [types[name] for name in ("weight", "repeat", "diverged")] == ["double", "int64", "bool"]


def test_floats_keep_seven_digits(tmp_path):
    records.write(tmp_path / "a.parquet", [{"a": math.pi, "b": [1 / 3]}])
    assert records.read(tmp_path / "a.parquet") == [{"a": 3.141593, "b": [0.3333333]}]


def test_what_is_not_finite_is_none_and_what_is_missing_is_absent(tmp_path):
    path = tmp_path / "a.parquet"
    records.write(
        path, [{"part": "sides", "rhs": math.nan}, {"part": "sides", "rhs": math.inf, "rule": "1"}]
    )
    assert records.read(path) == [
        {"part": "sides", "rhs": None},
        {"part": "sides", "rhs": None, "rule": "1"},
    ]
    records.write(path, records.read(path))  # and again
    assert records.read(path)[0] == {"part": "sides", "rhs": None}


def test_two_parts_share_a_file_without_sharing_columns(tmp_path):
    path = tmp_path / "bound-corrected.parquet"
    sides = [
        {"part": "sides", "dataset": "d", "rhs": 0.1},
        {"part": "sides", "dataset": "d", "rhs": 0.2},
    ]
    records.put(path, ("part", "dataset"), [MODEL])
    records.put(path, ("part", "dataset"), sides)
    assert records.read(path) == [MODEL, *sides]
    assert records.read(path, "sides") == sides
    assert Results.read(tmp_path).records("bound/models", "corrected") == (MODEL,)


def test_a_unit_takes_the_place_of_what_it_was(tmp_path):
    path, by = tmp_path / "a.parquet", ("part", "n")
    records.put(path, by, [{"part": "errors", "n": 1, "repeat": r} for r in range(3)])
    records.put(path, by, [{"part": "errors", "n": 2, "repeat": 0}])
    records.put(path, by, [{"part": "errors", "n": 1, "repeat": 7}])
    assert [(r["n"], r["repeat"]) for r in records.read(path)] == [(2, 0), (1, 7)]


def test_a_unit_is_missing_if_it_is_absent_too_small_or_depends_on_something_else(tmp_path):
    path, by = tmp_path / "a.parquet", ("part", "n")

    def unit(n, count, depends_on):
        return [{"part": "errors", "n": n, "at": i, "depends_on": depends_on} for i in range(count)]

    records.write(path, [*unit(1, 2, "a"), *unit(2, 1, "a"), *unit(3, 2, "b"), *unit(4, 3, "a")])
    wanted = {("errors", n): Wanted(2, "a") for n in range(1, 6)}
    assert records.missing_units(path, by, wanted) == [("errors", 2), ("errors", 3), ("errors", 5)]
    assert records.missing_units(tmp_path / "none.parquet", by, wanted) == list(wanted)


@pytest.mark.parametrize("size", [0, 10, 500])
def test_a_file_that_was_cut_off_is_an_error_that_says_what_to_do(tmp_path, size):
    path = tmp_path / "a.parquet"
    records.write(path, [MODEL])
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match="delete it"):
        records.read(path)


# --- the shipped files


@pytest.fixture(scope="module")
def shipped():
    return Results.read(RESULTS)


def test_shipped_files_are_small_and_bear_the_names_of_studies(shipped):
    paths = [path for path in RESULTS.glob("*") if path.is_file() and path.name != "README.md"]
    assert {path.suffix for path in paths} == {".parquet"}
    assert sum(path.stat().st_size for path in paths) < 10e6
    assert {study for study, _ in shipped.files} <= {study.name for study in STUDIES}


def test_shipped_records_say_what_they_know_and_nothing_that_they_do_not(shipped):
    for (_, protocol), found in shipped.files.items():
        assert all(r["protocol"] == protocol and r["part"] for r in found)
        assert all({"device", "frhsic", "torch", "depends_on"} <= r.keys() for r in found)
        # only classifiers decide
        assert all(
            r["task"] == ("binary" if "gdp_decision" in r else "regression")
            for r in found
            if "gdp_logit" in r
        )


def test_no_shipped_model_is_half_trained_or_half_of_its_grid(shipped):
    for (study, protocol), found in shipped.files.items():
        units = {}
        for r in (r for r in found if "gdp_logit" in r):
            units.setdefault((r["part"], r["dataset"], r["method"]), []).append(r)
        for unit, models in units.items():
            trained = [(r["weight"], r["repeat"]) for r in models]
            weights, repeats = ({pair[i] for pair in trained} for i in (0, 1))
            assert sorted(trained) == sorted(product(weights, repeats)), (study, protocol, unit)
            epochs = {r["epochs"] for r in models if "epochs" in r and not r["diverged"]}
            assert len(epochs) <= 1, (study, protocol, unit)


def test_shipped_records_are_as_many_as_the_commands_make(shipped):
    fewer = {d.file for d in due_records(shipped, STUDIES) if d.present < d.expected}
    assert not fewer
