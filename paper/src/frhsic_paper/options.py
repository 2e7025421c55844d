"""Options of a run: the folder of the records, the device, the datasets, and the length of
training.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from frhsic_paper.protocol import Protocol

SYNTHETIC = "synthetic"
"""Name of the generated data, which is included in any choice of datasets."""


@dataclass(frozen=True)
class Options:
    """How a step of a study is run.

    Attributes
    ----------
    out
        Directory of the records; models are stored in its `models` folder.
    device
        Device for training; "auto" uses a GPU if there is one.
    datasets
        The real datasets to use; None uses all.
    epochs, repeats
        For a quick look: a number of epochs that replaces the study's own, and a limit on the
        number of repeats.
    workers
        Number of processes for measurements.
    watch
        Called with a line of text whenever a unit is done.
    log
        File for the same lines, with their time, and the progress of long training runs; None
        writes no file.
    trainers
        Number of processes that train the fleets of a study; on a GPU, fleets are trained one after
        another. None uses the number of `workers`.
    """

    out: Path
    device: str = "auto"
    datasets: tuple[str, ...] | None = None
    epochs: int | None = None
    repeats: int | None = None
    workers: int = 1
    watch: Callable[[str], None] | None = None
    log: Path | None = None
    trainers: int | None = None

    def file(self, study: str, protocol: Protocol) -> Path:
        """Return the file of a study's records under a protocol."""
        return self.out / f"{study}-{protocol.name}.parquet"

    def model_file(self, study: str, protocol: Protocol) -> Path:
        """Return the file of a study's stored models under a protocol."""
        return self.out / "models" / f"{study}-{protocol.name}.safetensors"

    def say(self, text: str) -> None:
        """Report progress."""
        if self.watch is not None:
            self.watch(text)
        self.note(text)

    def note(self, text: str) -> None:
        """Append a line to the log."""
        if self.log is not None:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("a", encoding="utf-8") as file:
                file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())} {text}\n")

    def chosen_datasets(self, datasets: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of a study's datasets that are requested.

        Examples
        --------
        >>> Options(Path("out"), datasets=("crime",)).chosen_datasets(
        ...     ("adult", "crime", "synthetic")
        ... )
        ('crime', 'synthetic')
        """
        return tuple(
            n for n in datasets if self.datasets is None or n in self.datasets or n == SYNTHETIC
        )

    def limit_repeats(self, repeats: int) -> int:
        """Return a number of repeats, reduced to the limit."""
        return repeats if self.repeats is None else min(repeats, self.repeats)
