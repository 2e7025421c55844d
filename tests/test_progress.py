"""On a terminal, commands show how much is left and for how long; elsewhere they are silent."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import report_samples
from cli_samples import FEATURES, done, people
from frhsic._progress import has_listener
from frhsic.auditing.results import LimitCheck
from frhsic.cli import _terminal
from frhsic.report import Report
from frhsic.tables.files import TableFile

pytestmark = pytest.mark.usefixtures("few_trees")


@pytest.fixture
def said(monkeypatch) -> list[str]:
    """What the line on a terminal says, one after the other."""
    lines: list[str] = []
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("rich.status.Status.update", lambda self, line: lines.append(line))
    return lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people(400).to_csv("t.csv", index=False)
    return tmp_path


QUICK = ["--max-rows", "100"]
TRAIN = ["train", "t.csv", "-t", "repaid", "-s", "age", *FEATURES, "--limit", "none", *QUICK]
AUDIT = ["audit", "t.csv", "-s", "age", "--score", "score", *QUICK]


def counts(said: list[str], what: str) -> list[int]:
    """Return what was counted in lines such as 'reading: 3 of 5 rows, about 2 s left'."""
    line = what.replace("#", r"(\d+)") + r", about \d+ s left"
    return [int(match[1]) for match in map(re.compile(line).fullmatch, said) if match]


def test_commands_count_what_is_done_and_what_is_left(folder, said, reading):
    reading(400)  # so that there are several pieces
    done(TRAIN)
    # all columns are read, to find repeated rows
    size = 400 // people(1).shape[1]
    assert counts(said, "reading t.csv: # of 400 rows") == [*range(size, 400, size), 400]
    fitted = [line for line in said if "regressions" in line]
    assert fitted[0].startswith("fitting on 320 rows: 1 of")  # y, and directions of age
    assert len(fitted) > 1
    done(["predict", "frhsic-model.frhsic", "t.csv"])
    assert counts(said, "predicting t.csv: # of 400 rows") == [100, 200, 300, 400]
    said.clear()
    done(AUDIT)
    assert counts(said, "reading t.csv: # of 400 rows") == [200, 400]


def test_without_a_terminal_nothing_is_said_of_progress(folder, capsys):
    with _terminal.progress() as watch:
        watch("a step")
        assert not has_listener()  # so that rows are not counted
    assert capsys.readouterr().err == ""
    assert done([*AUDIT, "--json"]).stderr == ""


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ((0, 10, "models", 5.0), "0 models"),
        ((1, 4, "models", 5.0), "1 of 4 models, about 15 s left"),
        ((4, 4, "models", 5.0), "4 of 4 models, about 0 s left"),
        ((1000, 31_000, "rows", 60.0), "1,000 of 31,000 rows, about 30 min left"),
        ((5, 4, "rows", 5.0), "5 rows"),  # a cell with line breaks was counted as rows
    ],
)
def test_the_time_left_is_that_of_the_rest_at_the_same_pace(told, said):
    assert _terminal.progress_text(*told) == said


def test_rows_of_a_file_are_counted_before_they_are_read(tmp_path):
    frame = pd.DataFrame({"a": range(37), "b": "x"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    counts = {
        name: TableFile.open(tmp_path / name).row_count()
        for name in ("t.csv", "t.parquet", "t.csv.gz")
    }
    assert counts == {"t.csv": 37, "t.parquet": 37, "t.csv.gz": None}


@pytest.mark.parametrize(
    ("limit", "style"), [(0.2, "1;32"), (0.0912, "1;33"), (0.05, "1;31"), (None, "1")]
)
def test_the_verdict_has_the_colour_of_its_kind_on_a_terminal(limit, style, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    result = report_samples.audit()
    gap = result["age"].all_rows["gdp"]
    if limit is not None:
        check = LimitCheck("age", "gdp", "all", limit, gap.value, gap.interval)
        result = replace(result, limits=(check,))
    _terminal.show(["a note"], {"report": Path("r.html")}, Report(result), [["gap", "0.1"]])
    out = capsys.readouterr().out
    assert f"verdict  \x1b[{style}m" in out
    assert "\x1b[2mnote: a note\x1b[0m" in out
    assert "gap  0.1" in out
    assert "report   r.html" in out
