"""The training loop, for every method and any number of models."""

from __future__ import annotations

import copy
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from frhsic import _arrays
from frhsic.fleet.data import Member, TrainingData
from frhsic.fleet.losses import Task, check_target, outputs_of
from frhsic.fleet.networks import affine_head, mlp_encoder
from frhsic.fleet.probe import Probe, probe
from frhsic.fleet.progress import DivergenceWarning, Pace, Watch, watching
from frhsic.fleet.result import Fleet, History
from frhsic.fleet.state import Columns, Layout, Model, State, build_state, template_of
from frhsic.fleet.step import Adam, Stepper, losses
from frhsic.fleet.streams import Purpose, stream_seed
from frhsic.penalties.base import NoPenalty, Penalty

__all__ = ["CPU_BUDGET", "train"]

CPU_BUDGET = 16 * 2**20
"""Bytes that the models trained at once on a CPU take: what stays in cache, since more is slower per model."""

CUDA_SHARE = 0.8
"""Share of the free GPU memory that a fleet may take."""


def train(
    data: TrainingData,
    members: Sequence[Member],
    *,
    task: Task,
    penalty: Penalty | Callable[[], Penalty] | None = None,
    encoder: Callable[[], nn.Module] | None = None,
    head: Callable[[], nn.Module] | None = None,
    epochs: int = 200,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    device: torch.device | str = "auto",
    progress: bool | Watch | None = None,
    sequential: bool = False,
    capture: bool = True,
    compile: bool = False,
    precision: Literal["float32", "tf32"] = "float32",
    memory_budget: int | None = None,
    threads: int | None = 1,
) -> Fleet:
    r"""Train M models in lock-step, each minimising its own

    .. math:: \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)

    by Adam on mini-batches, the penalty being that of the batch. The defaults are the paper's: 200 epochs,
    batches of 256 with the last partial one kept, learning rate 1e-3, no decay, no early stopping.

    Initial weights and batch order are functions of a member's seed and split alone
    (:mod:`frhsic.fleet.streams`). The same call on the same device gives the same numbers, bit for bit; a model
    in fleets of other sizes agrees up to the rounding of sums in another order.

    Parameters
    ----------
    data : TrainingData
        Rows of all splits; moved to the device once.
    members : sequence of Member
        Weight λ, seed and split of each model.
    task : {"binary", "multiclass", "regression", "reconstruction"}
        The loss ℓ, see :mod:`frhsic.fleet.losses`.
    penalty : Penalty, callable or None
        A penalty, copied for every (seed, split), or a function that makes one. None trains without.
    encoder, head : callable, optional
        Functions that make a module; by default the paper's, :func:`mlp_encoder` and :func:`affine_head`.
    progress : bool or callable
        True shows a bar on a terminal; a function is called with a :class:`Tick` about twice a second.
    sequential : bool
        Train one model after another, for modules that `vmap` does not admit (batch normalisation, dropout).
    capture : bool
        On a GPU, capture a step once and replay it.
    compile : bool
        Fuse the step with ``torch.compile``; takes a while to start.
    precision : {"float32", "tf32"}
        Matrix products on a GPU in full float32, or in TF32.
    memory_budget : int, optional
        Bytes that the models trained at once may take; a larger fleet is cut into parts, with the same results.
        By default 80 % of the free GPU memory, or on a CPU what stays in cache.
    threads : int, optional
        CPU threads during training; None leaves the number as it is. Batches are small, and one is fastest.

    Returns
    -------
    Fleet
        Also after an interrupt from the keyboard, with `interrupted` set.

    Examples
    --------
    >>> data = TrainingData.of(torch.randn(64, 3), torch.ones(64), torch.rand(64))
    >>> fleet = train(data, [Member(0.0), Member(1.0)], task="binary", epochs=2, device="cpu")
    >>> fleet.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5, 1])
    """
    started = time.perf_counter()
    members = _checked_members(members, data)
    check_target(task, data)
    for name, value in (("epochs", epochs), ("batch_size", batch_size)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} is {value!r}; pass an integer of at least 1.")
    if not learning_rate > 0:
        raise ValueError(f"learning_rate is {learning_rate}; pass a positive number.")
    place = _arrays.resolve_device(device)
    columns = Columns.of(data)
    outputs = outputs_of(task, data)
    encoder = encoder or partial(mlp_encoder, data.columns)
    head = head or partial(affine_head, _width(encoder, data), outputs)
    make_penalty = (
        NoPenalty if penalty is None else partial(copy.deepcopy, penalty) if isinstance(penalty, Penalty) else penalty
    )
    build = partial(
        template_of, data=data, task=task, encoder=encoder, head=head, penalty=make_penalty, columns=columns
    )
    table = columns.table(data)
    with _rng_kept(place):
        found = probe(build(members[0]), table[: min(batch_size, data.rows)], outputs, epochs)
    run = _Run(
        data=data,
        table=table.to(place),
        build=build,
        found=found,
        epochs=epochs,
        batch_size=batch_size,
        adam=Adam(learning_rate),
        capture=capture and place.type == "cuda",
        compile=compile,
        device=place,
    )
    order = sorted(range(len(members)), key=lambda i: (members[i].seed, members[i].split))
    at_once = 1 if sequential else max(1, _budget(memory_budget, place) // found.bytes_per_model)
    parts = _parts([members[i] for i in order], at_once)
    done: list[_Part] = []
    with watching(progress) as watch, _settings(place, threads, precision), _rng_kept(place):
        pace = Pace(watch, len(members), epochs)
        for part in parts:
            stopped = bool(done) and done[-1].interrupted
            done.append(run.part(part, pace, len(members), sum(len(p.members) for p in done), skip=stopped))
    fleet = _assembled(done, order, time.perf_counter() - started, stackable=not sequential)
    _warn_of_divergence(fleet)
    return fleet


@dataclass
class _Part:
    """Models that were trained together, in the order of their layout."""

    members: tuple[Member, ...]
    state: State
    history: Tensor  # (epochs, 2, M)
    alive: Tensor  # (epochs, M)
    epochs_done: int
    interrupted: bool


@dataclass
class _Run:
    """What the parts of one call to :func:`train` have in common."""

    data: TrainingData
    table: Tensor
    build: Callable[[Member], Model]
    found: Probe
    epochs: int
    batch_size: int
    adam: Adam
    capture: bool
    compile: bool
    device: torch.device

    def part(self, members: Sequence[Member], pace: Pace, of: int, before: int, *, skip: bool) -> _Part:
        """Train some members together: the loop itself."""
        layout = Layout.of(members)
        torch.manual_seed(stream_seed(members[0].seed, members[0].split, Purpose.TRAINING))
        state = build_state(layout, self.build, self.found.shared, self.device)
        stepper = Stepper(
            state, self.table, self.data.rows, self.batch_size, self.adam, capture=self.capture, compile=self.compile
        )
        _require_stackable(state, self.table, self.batch_size)
        record = _Record(self.epochs, len(members), state, self.data.rows)
        interrupted = False
        try:
            for epoch in range(0 if skip else self.epochs):
                stepper.begin(epoch)
                adapts = state.model.penalty.adapts(epoch)
                for size in stepper.sizes:
                    stepper.step(size, epoch, adapts)
                record.close(epoch)
                if not record.watch(pace, of, before):
                    break
        except KeyboardInterrupt:
            interrupted = True
        record.finish()
        return _Part(layout.members, state, record.history, record.alive, record.closed, interrupted or skip)


class _Record:
    """History of a part, kept on the device and mirrored on the host without waiting for the device.

    The host runs at most two epochs ahead.
    """

    AHEAD = 2

    def __init__(self, epochs: int, models: int, state: State, rows: int) -> None:
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
        self.alive[epoch].copy_(self.state.alive, non_blocking=True)
        self.state.sums.zero_()
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

    def watch(self, pace: Pace, of: int, before: int) -> bool:
        """Tell how far it is; return False when no model of the part is left running."""
        if self.seen == 0:
            return True
        alive = self.alive[self.seen - 1]
        if not bool(alive.any()):
            return False
        models = len(alive)
        share = (before + models * self.seen / self.epochs) / of
        if pace.due(last=self.closed == self.epochs and before + models == of):
            task, penalty = self.history[self.seen - 1][:, alive].mean(1).tolist()
            pace.tell(share, task, penalty, int((~alive).sum()))
        return True

    def finish(self) -> None:
        """Wait for the device."""
        if self.state.flat.is_cuda:
            torch.cuda.synchronize(self.state.flat.device)
        self.seen = self.closed


def _assembled(parts: list[_Part], order: list[int], seconds: float, *, stackable: bool) -> Fleet:
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
    epochs_done = torch.cat([torch.full((len(p.members),), p.epochs_done) for p in parts])[back]
    epochs_done = torch.where(stopped >= 0, stopped, epochs_done)
    history = history.masked_fill(~alive[:, None, :], torch.nan)
    members = [member for part in parts for member in part.members]
    model = states[0].model
    return Fleet(
        members=tuple(members[i] for i in back.tolist()),
        parameters=joined(lambda state: state.parameters),
        buffers={name: values for name, values in others.items() if not name.startswith("penalty.")},
        penalty_state={n.removeprefix("penalty."): v for n, v in others.items() if n.startswith("penalty.")},
        history=History(history[:, 0].contiguous(), history[:, 1].contiguous()),
        epochs_done=epochs_done,
        diverged=stopped,
        seconds=seconds,
        interrupted=parts[-1].interrupted,
        encoder=model.encoder,
        head=model.head,
        penalty=model.penalty,
        stackable=stackable,
    )


def _parts(members: Sequence[Member], at_once: int) -> list[list[Member]]:
    """Cut members, sorted by (seed, split), into parts of at most `at_once`, keeping sharers together if possible."""
    groups: dict[tuple[int, int], list[Member]] = {}
    for member in members:
        groups.setdefault((member.seed, member.split), []).append(member)
    parts: list[list[Member]] = [[]]
    for group in groups.values():
        pieces = -(-len(group) // at_once)
        size = -(-len(group) // pieces)
        for start in range(0, len(group), size):
            piece = group[start : start + size]
            if len(parts[-1]) + len(piece) > at_once:
                parts.append([])
            parts[-1].extend(piece)
    return [part for part in parts if part]


def _require_stackable(state: State, table: Tensor, batch_size: int) -> None:
    """Raise, before anything is trained, if vmap does not admit the modules."""
    if len(state.layout.members) == 1:
        return
    batch = table[: min(batch_size, len(table), 4)].expand(state.layout.groups, -1, -1)
    try:
        with torch.no_grad():
            losses(state, batch, None, False)
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            "encoder, head or penalty cannot be stacked: vmap does not admit it (batch normalisation with running "
            "statistics and dropout are the usual reasons). Pass sequential=True to train the models one after "
            f"another. PyTorch said: {error}"
        ) from error


def _checked_members(members: Sequence[Member], data: TrainingData) -> list[Member]:
    made = list(members)
    if not made:
        raise ValueError("no members came; pass at least one Member(weight, seed, split).")
    most = max(m.split for m in made)
    if most >= data.splits:
        raise ValueError(f"a member asks for split {most}, but the data hold {data.splits} (counted from 0).")
    return made


def _width(encoder: Callable[[], nn.Module], data: TrainingData) -> int:
    """Return how wide the encoder's output is."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        z = encoder().to(data.x.dtype).eval()(data.x[0, :2].cpu())
    if z.ndim != 2:
        raise ValueError(
            f"the encoder turned (2, {data.columns}) into shape {tuple(z.shape)}; it must give (2, width)."
        )
    return int(z.shape[1])


def _budget(asked: int | None, device: torch.device) -> int:
    if asked is not None:
        if asked < 1:
            raise ValueError(f"memory_budget is {asked}; pass a positive number of bytes.")
        return asked
    if device.type != "cuda":
        return CPU_BUDGET
    free = torch.cuda.mem_get_info(device)[0]
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(CUDA_SHARE * (free + unused))


@contextmanager
def _settings(device: torch.device, threads: int | None, precision: str) -> Iterator[None]:
    """Set threads and matrix precision for the training alone."""
    if precision not in ("float32", "tf32"):
        raise ValueError(f"precision is {precision!r}; choose 'float32' or 'tf32'.")
    before, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        if device.type == "cpu" and threads is not None:
            torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_float32_matmul_precision(matmul)


@contextmanager
def _rng_kept(device: torch.device) -> Iterator[None]:
    """Leave the global generators as they were."""
    devices = [device.index or torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def _warn_of_divergence(fleet: Fleet) -> None:
    stopped = [i for i, epoch in enumerate(fleet.diverged.tolist()) if epoch >= 0]
    if not stopped:
        return
    said = "; ".join(f"{fleet.members[i]} in epoch {int(fleet.diverged[i])}" for i in stopped[:5])
    more = f" and {len(stopped) - 5} more" if len(stopped) > 5 else ""
    warnings.warn(
        f"{len(stopped)} of {len(fleet)} models were stopped because their loss or gradient was not finite: "
        f"{said}{more}. "
        "Their parameters are those before that step; a lower weight or learning rate may help.",
        DivergenceWarning,
        stacklevel=3,
    )
