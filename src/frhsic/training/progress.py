"""Progress of a training: the history of every epoch, ticks for a watcher, and a bar on a terminal."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from frhsic.training.state import State
from frhsic.training.stopping import EarlyStopping

EVERY = 0.5
"""Least number of seconds between two ticks."""

AHEAD = 2
"""Epochs that the host may launch before it waits for a GPU."""


@dataclass(frozen=True)
class Tick:
    """State of a training; losses are means over the models that still run."""

    models: int
    epoch: int  # counted evenly over the chunks of a fleet, so that it runs from 0 to `epochs`
    epochs: int
    task_loss: float
    penalty: float
    diverged: int
    seconds: float
    seconds_left: float


Watch = Callable[[Tick], None]


class Pace:
    """Sends ticks to a watcher: at most one in half a second, and always the last."""

    def __init__(self, watch: Watch | None, models: int, epochs: int) -> None:
        self.watch = watch
        self.models = models
        self.epochs = epochs
        self.started = time.perf_counter()
        self.sent = -float("inf")
        self.finished = 0  # models of finished chunks

    def send(self, seen: int, models: int, means: Callable[[], tuple[float, float, int]]) -> None:
        """Send a tick if one is due, after `seen` epochs of a chunk of `models`.

        `means` returns task loss, penalty and the number of diverged models.
        """
        last = seen == self.epochs and self.finished + models == self.models
        if self.watch is None or not (last or time.perf_counter() - self.sent >= EVERY):
            return
        task_loss, penalty, diverged = means()
        done = (self.finished + models * seen / self.epochs) / self.models
        self.sent = time.perf_counter()
        seconds = self.sent - self.started
        left = seconds * (1 - done) / done if done > 0 else float("inf")
        epoch = round(done * self.epochs)
        self.watch(Tick(self.models, epoch, self.epochs, task_loss, penalty, diverged, seconds, left))


class EpochLog:
    """History of the models trained at once, copied from the device to the host without waiting for the device."""

    def __init__(self, epochs: int, state: State, rows: int, stopping: EarlyStopping | None = None) -> None:
        models = len(state.layout.members)
        pinned = state.flat.is_cuda
        self.state = state
        self.rows = rows
        self.stopping = stopping
        self.history = torch.full((epochs, 2, models), torch.nan, dtype=state.flat.dtype, pin_memory=pinned)
        self.alive = torch.ones(epochs, models, dtype=torch.bool, pin_memory=pinned)
        self.held_out = torch.full((epochs, models), torch.nan, dtype=state.flat.dtype, pin_memory=pinned)
        self.stopped = torch.zeros(epochs, models, dtype=torch.bool, pin_memory=pinned)
        self.closed = 0  # epochs launched
        self.seen = 0  # epochs whose numbers have arrived
        self.events: deque[torch.cuda.Event] = deque()

    def close(self, epoch: int) -> None:
        """Write down an epoch whose steps have been launched, and settle the state."""
        self.history[epoch].copy_(self.state.sums / self.rows, non_blocking=True)
        self.state.settle()
        self.alive[epoch].copy_(self.state.alive, non_blocking=True)
        if self.stopping is not None:
            self.held_out[epoch].copy_(self.stopping.note(epoch), non_blocking=True)
            self.stopped[epoch].copy_(self.stopping.stopped, non_blocking=True)
        self.closed = epoch + 1
        if not self.state.flat.is_cuda:
            self.seen = self.closed
            return
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
        event.record()
        self.events.append(event)
        while len(self.events) > AHEAD:
            self.events.popleft().synchronize()
            self.seen += 1

    def report(self, pace: Pace) -> bool:
        """Send a tick if one is due; return False when no model is left running."""
        if self.seen == 0:
            return True
        alive = self.alive[self.seen - 1]
        pace.send(self.seen, len(alive), self._means)
        return bool((alive & ~self.stopped[self.seen - 1]).any())

    def _means(self) -> tuple[float, float, int]:
        alive = self.alive[self.seen - 1]
        task, penalty = self.history[self.seen - 1][:, alive].mean(1).tolist()
        return task, penalty, int((~alive).sum())

    def finish(self, pace: Pace) -> None:
        """Wait for the device, take the best weights where models stop early, and count these models as finished."""
        if self.state.flat.is_cuda:
            torch.cuda.synchronize(self.state.flat.device)
            self.seen = self.closed
            self.report(pace)
        if self.stopping is not None:
            self.stopping.finish()
            if self.seen and bool(self.stopped[self.seen - 1].all()):
                pace.send(pace.epochs, len(self.alive[0]), self._means)
        pace.finished += len(self.state.layout.members)


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

    description = TextColumn("[progress.description]{task.description}")
    columns = (description, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        line = bar.add_task("training", total=None)

        def watch(tick: Tick) -> None:
            stopped = f", {tick.diverged} stopped" if tick.diverged else ""
            text = f"{tick.models} models{stopped}: loss {tick.task_loss:.4f}, penalty {tick.penalty:.2e}"
            bar.update(line, total=tick.epochs, completed=tick.epoch, description=text)

        yield watch
