"""Watching a fleet train: what is told while it runs, and a bar that shows it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["DivergenceWarning", "Tick", "Watch", "watching"]

EVERY = 0.5
"""Seconds between two ticks, at least."""


class DivergenceWarning(RuntimeWarning):
    """Some models of a fleet met a loss or gradient that is not finite, and were stopped."""


@dataclass(frozen=True)
class Tick:
    """Where training stands: means over the models that still run."""

    models: int
    epoch: int  # model-epochs are counted evenly over the parts of a fleet, so this runs from 0 to epochs
    epochs: int
    task_loss: float
    penalty: float
    diverged: int
    seconds: float
    seconds_left: float


Watch = Callable[[Tick], None]


class Pace:
    """Passes ticks on, at most one in half a second and always the last."""

    def __init__(self, watch: Watch | None, models: int, epochs: int) -> None:
        self.watch = watch
        self.models = models
        self.epochs = epochs
        self.started = time.perf_counter()
        self.told = -float("inf")
        self.before = 0  # models of parts that are over

    def passed(self, models: int) -> None:
        """Take note that a part of so many models is over."""
        self.before += models

    def tell(self, seen: int, models: int, means: Callable[[], tuple[float, float, int]]) -> None:
        """Pass a tick on if one is due: `models` of this part have `seen` epochs behind them.

        `means` gives task loss, penalty and the number of models that were stopped.
        """
        last = seen == self.epochs and self.before + models == self.models
        if self.watch is None or not (last or time.perf_counter() - self.told >= EVERY):
            return
        task_loss, penalty, diverged = means()
        done = (self.before + models * seen / self.epochs) / self.models
        self.told = time.perf_counter()
        seconds = self.told - self.started
        left = seconds * (1 - done) / done if done > 0 else float("inf")
        epoch = round(done * self.epochs)
        self.watch(Tick(self.models, epoch, self.epochs, task_loss, penalty, diverged, seconds, left))


@contextmanager
def watching(progress: bool | Watch | None) -> Iterator[Watch | None]:
    """Give the function that ticks go to: the caller's own, a bar on a terminal, or none."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with _bar() as watch:
            yield watch
    else:
        yield None


@contextmanager
def _bar() -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    told = "[progress.description]{task.description}"
    bar = Progress(
        TextColumn(told), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=Console(stderr=True)
    )
    with bar:
        line = bar.add_task("training", total=None)

        def watch(tick: Tick) -> None:
            stopped = f", {tick.diverged} stopped" if tick.diverged else ""
            text = f"{tick.models} models{stopped}: loss {tick.task_loss:.4f}, penalty {tick.penalty:.2e}"
            bar.update(line, total=tick.epochs, completed=tick.epoch, description=text)

        yield watch
