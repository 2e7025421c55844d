"""Other libraries do what the page on them says, as far as they are installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "neighbours.py"


def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("neighbours", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["neighbours"] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


NEIGHBOURS = program()
TRIALS = [trial for trials in NEIGHBOURS.sections().values() for trial in trials]


def test_a_cell_that_does_otherwise_than_it_says_is_told():
    def told(code: str) -> str:
        return NEIGHBOURS.attempt(NEIGHBOURS._trial(f"name | sys | use\n# a note\n{code}"))

    assert told("1 / 0\n# refused: by zero\nassert model") == ""
    assert told("1 / 0").startswith("ZeroDivisionError")
    assert told("1 / 0\n# refused: by one\n").startswith("ZeroDivisionError")
    assert told("1 / 0\n# refused: by zero\n1 / 0").startswith("ZeroDivisionError")
    assert told("1\n# refused: by zero\n").startswith("AssertionError")


def test_the_page_is_made_of_the_records():
    records = json.loads(NEIGHBOURS.RECORDS.read_text("utf-8"))
    assert NEIGHBOURS.PAGE.read_text("utf-8") == NEIGHBOURS.page(records)
    assert [trial.key for trial in TRIALS] == list(records)
    assert not any(record["failed"] for record in records.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.key)
def test_a_library_does_what_the_page_says(trial, monkeypatch, tmp_path):
    if trial.missing:
        pytest.skip(f"{' and '.join(trial.missing)} not installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    assert NEIGHBOURS.attempt(trial) == ""
