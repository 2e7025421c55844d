"""What a user may say about a run: where records go, on what device, which datasets, how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from frhsic_paper.protocol import Protocol
from frhsic_paper.sweep import Grid

__all__ = ["Options"]

MADE = "synthetic"
"""Name of the data that are made for an experiment."""


@dataclass(frozen=True)
class Options:
    """How a step of an experiment is run.

    Attributes
    ----------
    out
        Directory of the records; models lie in its folder `models`.
    device
        Of trainings, "auto" takes a GPU where there is one.
    datasets
        Only these of the real ones; None is all. Made data are always in.
    epochs, repeats
        Of trainings, in place of an experiment's own: fewer for a quick look.
    workers
        Processes on a CPU; a GPU trains one fleet after another.
    watch
        Called with a line of text when a unit is done.
    """

    out: Path
    device: str = "auto"
    datasets: tuple[str, ...] | None = None
    epochs: int | None = None
    repeats: int | None = None
    workers: int = 1
    watch: Callable[[str], None] | None = None

    def file(self, experiment: str, protocol: Protocol) -> Path:
        """Return the file of an experiment's records under a protocol."""
        return self.out / f"{experiment}-{protocol.name}.jsonl"

    def say(self, text: str) -> None:
        """Tell what was done."""
        if self.watch is not None:
            self.watch(text)

    def chosen(self, datasets: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of an experiment's datasets that are wanted.

        Examples
        --------
        >>> Options(Path("out"), datasets=("crime",)).chosen(("adult", "crime", "synthetic"))
        ('crime', 'synthetic')
        """
        return tuple(n for n in datasets if self.datasets is None or n in self.datasets or n == MADE)

    def applied(self, grid: Grid) -> Grid:
        """Return a grid with what the user said in place of its own."""
        return replace(
            grid,
            datasets=self.chosen(grid.datasets),
            epochs=grid.epochs if self.epochs is None else self.epochs,
            repeats=grid.repeats if self.repeats is None else min(self.repeats, grid.repeats),
        )
