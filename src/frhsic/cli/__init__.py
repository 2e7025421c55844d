"""The command `frhsic`. Each subcommand is a module that imports heavy packages only when it runs."""

from __future__ import annotations

import typer

from frhsic import __version__
from frhsic.cli import _plugins, _terminal, audit, datasets, demo, predict, train

__all__ = ["app", "main"]

app = typer.Typer(
    name="frhsic",
    cls=_terminal.Commands,
    help="Models that barely depend on a continuous attribute such as age: train, measure, certify.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
app.add_typer(datasets.app, name="datasets")
app.command()(demo.demo)
app.command()(audit.audit)
app.command()(train.train)
app.command()(predict.predict)
_plugins.add_commands(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"frhsic {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Models that barely depend on a continuous attribute such as age: train, measure, certify."""


def main() -> None:
    """Run the command line."""
    _terminal.on_signals()
    app()
