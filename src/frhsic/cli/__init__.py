"""The command `frhsic`. Each subcommand is a module that imports heavy packages only when it
runs.
"""

from __future__ import annotations

from importlib.metadata import entry_points

import typer

from frhsic import __version__
from frhsic.cli import _terminal, audit, check, datasets, demo, predict, train

__all__ = ["app", "main"]

PLUGINS = "frhsic.commands"
"""Entry point group for commands from other packages: each entry has the command's name and its
function.
"""

app = typer.Typer(
    name="frhsic",
    cls=_terminal.Commands,
    help=(
        "Train, audit and predict with models that barely depend on a continuous attribute such as"
        " age."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
app.add_typer(datasets.datasets_app, name="datasets")
app.command()(demo.demo)
app.command()(check.check)
app.command()(audit.audit)
app.command()(train.train)
app.command()(predict.predict)


def add_plugins(app: typer.Typer) -> None:
    """Add the commands of installed packages. If the paper's package is not installed, its command
    explains how to install it.
    """
    points = entry_points(group=PLUGINS)
    for point in points:
        app.command(point.name)(point.load())
    if "reproduce" not in points.names:
        anything = {"allow_extra_args": True, "ignore_unknown_options": True}
        app.command("reproduce", context_settings=anything)(reproduce)


def reproduce() -> None:
    """Reproduce the experiments of the paper. Requires the package frhsic-paper."""
    raise ValueError(
        "reproduce requires the package frhsic-paper, which is neither installed nor on the"
        " package index. Run `pip install ./paper` in a clone of the frhsic repository."
    )


add_plugins(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"frhsic {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Train, audit and predict with models that barely depend on a continuous attribute such as
    age.
    """


def main() -> None:
    """Run the command line."""
    _terminal.handle_signals()
    app()
