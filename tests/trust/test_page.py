"""The page of promises shows the counts of the file, and the counts are kept well."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import counting
import numpy as np


def test_the_page_shows_the_counts_of_the_file():
    text = counting.PAGE.read_text(encoding="utf-8")
    assert text == counting.page(text, counting.read()), "run `make trust-page`"


def test_an_entry_that_is_written_again_counts_once(tmp_path: Path):
    counts = counting.Counts(tmp_path / "counts.json")
    assert not counts.has("inputs", "hsic", "seed 0")
    counts.put("inputs", "hsic", "seed 0", {"number": 3, "peak MB": 5})
    counts.put("inputs", "hsic", "seed 1", {"number": 4, "peak MB": 2})
    counts.put("inputs", "hsic", "seed 0", {"number": 2, "peak MB": 7})
    assert counts.has("inputs", "hsic", "seed 0")
    entries = json.loads((tmp_path / "counts.json").read_text())
    assert counting.total(entries, "inputs", "hsic") == {"number": 6, "peak MB": 7}


def test_without_a_file_nothing_is_written(tmp_path: Path):
    counts = counting.Counts(None)
    counts.put("inputs", "hsic", "seed 0", {"number": 3})
    assert not counts.has("inputs", "hsic", "seed 0")
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_tests_is_counted_by_its_outcomes_and_versions():
    suites = [(9, 2, 1, 1), (4, 0, 0, 0)]
    report = "".join(
        f'<testsuite tests="{every}" skipped="{skipped}" failures="{failures}" errors="{errors}"/>'
        for every, skipped, failures, errors in suites
    )
    found = counting.outcomes(f"<testsuites>{report}</testsuites>")
    assert found == {"passed": 9, "skipped": 2, "failed": 2}
    environment = counting.versions()
    assert f"torch {version('torch')}, NumPy {np.__version__}" in environment
    entries = {"versions": {environment: {"tests": {**found, "on": "2026-01-01"}}}}
    assert f"| {environment} | 9 | 2 | 2 |\n" in counting.table(entries)


def test_coverage_is_summed_by_room():
    def file(*numbers: int) -> dict[str, dict[str, int]]:
        names = ("covered_lines", "missing_lines", "covered_branches", "missing_branches")
        return {"summary": dict(zip(names, numbers, strict=True))}

    report = {
        "files": {
            "src/frhsic/kernels/a.py": file(8, 1, 2, 1),
            "/x/src/frhsic/kernels/b.py": file(5, 0, 3, 0),
            "src/frhsic/probes.py": file(40, 0, 0, 0),
        }
    }
    by_room = counting.rooms(report)
    assert by_room == {
        "kernels": {"lines": 14, "lines reached": 13, "branches": 6, "branches reached": 5},
        "probes": {"lines": 40, "lines reached": 40, "branches": 0, "branches reached": 0},
    }
    entries = {"coverage": {name: {"part": {**got, "on": "2026-01-01"}} for name, got in by_room.items()}}
    text = counting.table(entries)
    assert "lines 98.1%, branches 83.3%." in text
    assert "Rooms below 95%, lines: kernels 92.9%; branches: kernels 83.3%.\n" in text
