"""What is written down while a part of a fleet trains, and the fleet that comes of its parts."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic.fleet.progress import DivergenceWarning, Pace
from frhsic.fleet.result import Fleet, History
from frhsic.fleet.state import State

__all__ = ["Part", "Record", "assembled", "warn_of_divergence"]


@dataclass(frozen=True)
class Part:
    """Models that were trained together, in the order of their layout."""

    state: State
    history: Tensor  # (epochs, 2, M)
    alive: Tensor  # (epochs, M)
    epochs_done: int


class Record:
    """History of a part, kept on the device and mirrored on the host without waiting for the device.

    The host runs at most two epochs ahead.
    """

    AHEAD = 2

    def __init__(self, epochs: int, state: State, rows: int) -> None:
        models = len(state.layout.members)
        pinned = state.flat.is_cuda
        self.state = state
        self.rows = rows
        self.epochs = epochs
        self.history = torch.full((epochs, 2, models), torch.nan, dtype=state.flat.dtype, pin_memory=pinned)
        self.alive = torch.ones(epochs, models, dtype=torch.bool, pin_memory=pinned)
        self.closed = 0
        self.seen = 0
        self.events: deque[torch.cuda.Event] = deque()

    def close(self, epoch: int) -> None:
        """Write down an epoch that has been launched."""
        self.history[epoch].copy_(self.state.sums / self.rows, non_blocking=True)
        self.state.settle()
        self.alive[epoch].copy_(self.state.alive, non_blocking=True)
        self.closed = epoch + 1
        if not self.state.flat.is_cuda:
            self.seen = self.closed
            return
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch left it untyped
        event.record()
        self.events.append(event)
        while len(self.events) > self.AHEAD:
            self.events.popleft().synchronize()
            self.seen += 1

    def watch(self, pace: Pace) -> bool:
        """Tell how far it is; return False when no model of the part is left running."""
        if self.seen == 0:
            return True
        alive = self.alive[self.seen - 1]
        pace.tell(self.seen, len(alive), self._means)
        return bool(alive.any())

    def _means(self) -> tuple[float, float, int]:
        alive = self.alive[self.seen - 1]
        task, penalty = self.history[self.seen - 1][:, alive].mean(1).tolist()
        return task, penalty, int((~alive).sum())

    def finish(self, pace: Pace) -> Part:
        """Wait for the device, and hand over."""
        if self.state.flat.is_cuda:
            torch.cuda.synchronize(self.state.flat.device)
            self.seen = self.closed
            self.watch(pace)
        return Part(self.state, self.history, self.alive, self.closed)


def assembled(parts: list[Part], order: list[int], seconds: float, *, stackable: bool, interrupted: bool) -> Fleet:
    """Put the parts together, in the caller's order."""
    back = torch.tensor(order).argsort()
    states = [part.state for part in parts]
    device = states[0].flat.device

    def joined(of: Callable[[State], dict[str, Tensor]]) -> dict[str, Tensor]:
        stacked = [of(state) for state in states]
        at = back.to(device)
        return {name: torch.cat([s[name].detach() for s in stacked])[at] for name in stacked[0]}

    def rest(state: State) -> dict[str, Tensor]:
        together = state.layout.together
        spread = {name: values.repeat_interleave(together, dim=0) for name, values in state.shared.items()}
        return state.own | spread

    others = joined(rest)
    history = torch.cat([part.history for part in parts], dim=2).permute(2, 1, 0)[back]  # (M, 2, epochs)
    alive = torch.cat([part.alive for part in parts], dim=1).T[back]  # (M, epochs)
    stopped = torch.where(alive.all(1), -1, (~alive).int().argmax(1))
    epochs_done = torch.cat([torch.full((len(p.state.layout.members),), p.epochs_done) for p in parts])[back]
    epochs_done = torch.where(stopped >= 0, stopped, epochs_done)
    history = history.masked_fill(~alive[:, None, :], torch.nan)
    members = [member for state in states for member in state.layout.members]
    model = states[0].model
    return Fleet(
        members=tuple(members[i] for i in back.tolist()),
        parameters=joined(lambda state: state.parameters(len(state.layout.members))),
        buffers={name: values for name, values in others.items() if not name.startswith("penalty.")},
        penalty_state={n.removeprefix("penalty."): v for n, v in others.items() if n.startswith("penalty.")},
        history=History(history[:, 0].contiguous(), history[:, 1].contiguous()),
        epochs_done=epochs_done,
        diverged=stopped,
        seconds=seconds,
        interrupted=interrupted,
        encoder=model.encoder,
        head=model.head,
        penalty=model.penalty,
        stackable=stackable,
    )


def warn_of_divergence(fleet: Fleet) -> None:
    """Warn, once, of the models that were stopped."""
    stopped = [i for i, epoch in enumerate(fleet.diverged.tolist()) if epoch >= 0]
    if not stopped:
        return
    said = "; ".join(f"{fleet.members[i]} in epoch {int(fleet.diverged[i])}" for i in stopped[:5])
    more = f" and {len(stopped) - 5} more" if len(stopped) > 5 else ""
    warnings.warn(
        f"{len(stopped)} of {len(fleet)} models were stopped because their loss or gradient was not finite: "
        f"{said}{more}. "
        "Their parameters are those before that epoch; a lower weight or learning rate may help.",
        DivergenceWarning,
        stacklevel=3,
    )
