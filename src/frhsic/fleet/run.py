"""What the parts of one training have in common, and the parts it is cut into to fit in memory."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from frhsic.fleet.data import Member, TrainingData
from frhsic.fleet.losses import Task, check_target, outputs_of
from frhsic.fleet.networks import affine_head, mlp_encoder
from frhsic.fleet.probe import Probe, probe
from frhsic.fleet.state import Columns, Layout, Model, State, build_state, template_of
from frhsic.fleet.step import Adam, Stepper, losses
from frhsic.penalties.base import NoPenalty, Penalty

__all__ = ["CPU_BUDGET", "Run"]

CPU_BUDGET = 64 * 2**20
"""Bytes that the models trained at once on a CPU take: what stays in cache, since more is slower per model."""

CUDA_SHARE = 0.8
"""Share of the free GPU memory that a fleet may take."""


@dataclass(frozen=True)
class Run:
    """One training, ready to start: the table on the device, and how to build a member."""

    data: TrainingData
    table: Tensor  # (D·n, columns)
    build: Callable[[Member], Model]
    found: Probe
    batch_size: int
    adam: Adam
    capture: bool
    compile: bool
    device: torch.device

    @classmethod
    def of(
        cls,
        data: TrainingData,
        first: Member,
        *,
        task: Task,
        penalty: Penalty | Callable[[], Penalty] | None,
        encoder: Callable[[], nn.Module] | None,
        head: Callable[[], nn.Module] | None,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        weight_decay: float,
        device: torch.device,
        capture: bool,
        compile: bool,
    ) -> Run:
        """Check what came, probe the first member's model, and move the data to the device."""
        check_target(task, data)
        for name, value in (("epochs", epochs), ("batch_size", batch_size)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; pass an integer of at least 1.")
        if not learning_rate > 0:
            raise ValueError(f"learning_rate is {learning_rate}; pass a positive number.")
        if not 0 <= weight_decay < math.inf:
            raise ValueError(f"weight_decay is {weight_decay}; pass a finite number that is not negative.")
        columns = Columns.of(data)
        outputs = outputs_of(task, data)
        encoder = encoder or partial(mlp_encoder, data.columns)
        width = _width(encoder, data)
        head = head or partial(affine_head, width, outputs)
        build = partial(
            template_of,
            data=data,
            task=task,
            encoder=encoder,
            head=head,
            penalty=_maker(penalty),
            columns=columns,
        )
        table = columns.table(data)
        with torch.random.fork_rng(devices=[]):
            found = probe(build(first), table[: min(batch_size, data.rows)].cpu(), outputs, epochs)
        return cls(
            data,
            table.to(device),
            build,
            found,
            batch_size,
            Adam(learning_rate, weight_decay),
            capture and device.type == "cuda",
            compile,
            device,
        )

    def parts(self, members: Sequence[Member], budget: int | None) -> list[list[Member]]:
        """Cut members, sorted by (seed, split), into parts that fit into `budget` bytes, sharers kept together."""
        at_once = max(1, _budget(budget, self.device) // self.found.bytes_per_model)
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

    def stepper(self, members: Sequence[Member]) -> Stepper:
        """Build the stacked state of some members, and what takes their steps."""
        state = build_state(Layout.of(members), self.build, self.found.shared, self.device)
        _require_stackable(state, self.table, self.batch_size)
        return Stepper(
            state, self.table, self.data.rows, self.batch_size, self.adam, capture=self.capture, compile=self.compile
        )


def _maker(penalty: Penalty | Callable[[], Penalty] | None) -> Callable[[], Penalty]:
    if penalty is None:
        return NoPenalty
    return partial(copy.deepcopy, penalty) if isinstance(penalty, Penalty) else penalty


def _require_stackable(state: State, table: Tensor, batch_size: int) -> None:
    """Raise, before anything is trained, if vmap does not admit the modules."""
    if len(state.layout.members) == 1:
        return
    batch = table[: min(batch_size, len(table), 4)].expand(state.layout.groups, -1, -1)
    trial = replace(state, own={name: values.clone() for name, values in state.own.items()})
    try:
        with torch.no_grad():
            losses(trial, batch, None, False)
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            "encoder, head or penalty cannot be stacked: vmap does not admit it (dropout, and Python code that looks "
            "at a tensor's value, are the usual reasons). Pass sequential=True to train the models one after "
            f"another. PyTorch said: {error}"
        ) from error


def _width(encoder: Callable[[], nn.Module], data: TrainingData) -> int:
    """Return how wide the encoder's output is."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        made = encoder().to(data.x.dtype).eval()
        try:
            z = made(data.x[0, :2].cpu())
        except RuntimeError as error:
            raise ValueError(f"the encoder does not take rows of {data.columns} columns: {error}") from error
    if z.ndim != 2:
        raise ValueError(f"the encoder gives shape {tuple(z.shape)} for a batch of rows; it must give (rows, width).")
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
