"""The command `frhsic`. Each subcommand is a module that imports heavy packages only when it runs."""

from __future__ import annotations

import typer

from frhsic import __version__
from frhsic.cli import _plugins, _terminal, audit, datasets, demo, predict, train

__all__ = ["app", "main"]

app = typer.Typer(
    name="frhsic",
    cls=_terminal.Commands,
    help="Representations independent of a continuous sensitive attribute: learn, measure, certify.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.add_typer(datasets.app, name="datasets")
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=audit.EPILOG)(audit.audit)
app.command(epilog=train.EPILOG)(train.train)
app.command(epilog=predict.EPILOG)(predict.predict)
_plugins.add_commands(app)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"frhsic {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Representations independent of a continuous sensitive attribute: learn, measure, certify."""


def main() -> None:
    """Run the command line."""
    _terminal.on_signals()
    app()
