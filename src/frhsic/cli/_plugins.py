"""Commands of other packages, by the entry point ``frhsic.commands``."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

import typer

GROUP = "frhsic.commands"
"""Entry point group: the name of the command, and the function that it calls."""

ELSEWHERE = {"reproduce": ("frhsic-paper", "Reproduce the experiments of the paper.")}
"""Commands that a package of this repository adds: the package, and what the command does."""


def add_commands(app: typer.Typer) -> None:
    """Add the commands of installed packages; a known one that is missing prints how to install it."""
    points = entry_points(group=GROUP)
    for point in points:
        app.command(point.name)(point.load())
    for name, (package, about) in ELSEWHERE.items():
        if name not in points.names:
            anything = {"allow_extra_args": True, "ignore_unknown_options": True}
            app.command(name, help=f"{about} Needs the package {package}.", context_settings=anything)(
                _missing(name, package)
            )


def _missing(name: str, package: str) -> Callable[[], None]:
    def command() -> None:
        raise ValueError(
            f"{name} is a command of the package {package}, which is not installed. Install it with "
            f"`pip install {package}`, or from a clone of the repository with `pip install -e paper`."
        )

    return command
