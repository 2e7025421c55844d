"""Commands of other packages: found by their entry point, or with a hint where to get them."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
import typer
from typer.testing import CliRunner

from frhsic import cli


def greet(name: str) -> None:
    """Say hello."""
    typer.echo(f"hello {name}")


def app_with(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> typer.Typer:
    monkeypatch.setattr(cli, "entry_points", lambda group: EntryPoints(points).select(group=group))
    app = typer.Typer()
    app.command("other")(lambda: None)  # an app of one command would have no names
    cli.add_plugins(app)
    return app


def test_a_command_of_another_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch):
    app = app_with(monkeypatch, EntryPoint("greet", "test_cli_plugins:greet", cli.PLUGINS))
    assert CliRunner().invoke(app, ["greet", "Ada"]).output == "hello Ada\n"


def test_a_known_command_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    result = CliRunner().invoke(app_with(monkeypatch), ["reproduce", "bound", "--docs"])
    assert isinstance(result.exception, ValueError)  # `frhsic` turns it into one line and exit code 2
    assert "pip install frhsic-paper" in str(result.exception)
