"""What is settled before training: checked members and rows, memory of a model, and its initial state (line 1)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.training.batches import batch_shapes, check_labelled
from frhsic.training.data import Member, Purpose, TrainingData, stream, stream_seed
from frhsic.training.execution import Execution, chunks, saved_bytes
from frhsic.training.forward import Model
from frhsic.training.randomness import may_draw, seeded
from frhsic.training.recipe import Recipe, require_rows
from frhsic.training.state import is_trained, unadapted


@dataclass(frozen=True)
class Plan:
    """A training that is checked and ready to start."""

    data: TrainingData
    recipe: Recipe
    execution: Execution
    device: torch.device
    table: Tensor  # (D·n, columns), on the device
    held_out: Tensor | None  # the same of the held-out rows
    members: tuple[Member, ...]  # sorted by (seed, split)
    order: tuple[int, ...]  # place of each of them in the caller's order
    outputs: int
    built: dict[tuple[int, int], Model]  # the first model, until it is used
    draws: bool  # whether a step may draw from torch's global generators
    shared: frozenset[str]  # state of the penalty that stays as `prepare` left it
    bytes_per_model: int  # memory of one model in a step

    @classmethod
    def of(
        cls, data: TrainingData, members: Sequence[Member], recipe: Recipe, place: str | torch.device, how: Execution
    ) -> Plan:
        """Check members and data, run the first model on one batch, and move the data to the device."""
        if not members:
            raise ValueError("no members came; pass at least one Member(weight, seed, split).")
        most = max(m.split for m in members)
        if most >= data.splits:
            raise ValueError(f"a member asks for split {most}, but the data hold {data.splits} (counted from 0).")
        if recipe.patience is not None and data.held_out is None:
            raise ValueError(f"patience is {recipe.patience}, but the data have no held-out rows; pass held_out.")
        if recipe.penalty is not None:
            check_labelled(data, recipe.batch_size)
        device = _arrays.resolve_device(place)
        order = tuple(sorted(range(len(members)), key=lambda i: (members[i].seed, members[i].split)))
        first, outputs, table = members[order[0]], recipe.outputs(data), data.table()
        model = build_model(recipe, data, outputs, first.seed, first.split)
        with seeded():
            before = torch.get_rng_state()
            size, labelled = batch_shapes(data, recipe.batch_size)[0]
            tried = _tried(model, table[:size].cpu(), outputs, recipe.epochs, labelled)
            draws = may_draw(model, before)
        ready = {(first.seed, first.split): model}
        in_order = tuple(members[i] for i in order)
        held_out = None if data.held_out is None else data.held_out.table().to(device)
        tables = table.to(device), held_out
        return cls(data, recipe, how, device, *tables, in_order, order, outputs, ready, draws, *tried)

    def chunks(self) -> list[list[Member]]:
        """Return the members that are trained at once: all that fit into memory, or one after another."""
        if self.execution.sequential:
            return [[member] for member in self.members]
        return chunks(self.members, max(1, self.execution.bytes_at_once(self.device) // self.bytes_per_model))

    def model(self, seed: int, split: int) -> Model:
        """Return the model of a (seed, split) at its start; the first one is built already."""
        return self.built.pop((seed, split), None) or build_model(self.recipe, self.data, self.outputs, seed, split)


def build_model(recipe: Recipe, data: TrainingData, outputs: int, seed: int, split: int) -> Model:
    """Build a model on the CPU: initial weights from its stream, penalty fitted to its training rows (line 1)."""
    with seeded(stream_seed(seed, split, Purpose.WEIGHTS)):
        encoder, head, penalty = recipe.modules(data, outputs)
    if not penalty.prepared:
        penalty.prepare(data.s[split, : data.labelled].cpu(), stream(seed, split, Purpose.PENALTY))
    return Model(encoder, head, penalty, recipe.task, data.widths).to(data.x.dtype).train()


def _tried(model: Model, rows: Tensor, outputs: int, epochs: int, labelled: int | None) -> tuple[frozenset[str], int]:
    """Run a copy of a model on one batch; return the state that `adapt` leaves alone and the bytes of a model.

    A model takes twice what its backward pass keeps, plus parameters, gradient and Adam's means.
    """
    model = copy.deepcopy(model)
    x, s, *_ = torch.split(rows, model.widths, dim=1)
    with torch.no_grad():
        z = model.encoder(x)
        scores = model.head(z)
    require_rows("head", scores, len(x))
    wider = model.task == "multiclass" and scores.shape[1] > outputs  # these rows may lack the last classes
    if scores.shape[1] != outputs and not wider:
        raise ValueError(f"the head gives {scores.shape[1]} outputs; task={model.task!r} needs {outputs}.")
    shared = frozenset(f"penalty.{name}" for name in unadapted(model.penalty, z[:labelled], s[:labelled], epochs))
    saved = saved_bytes(
        lambda: model(rows, torch.ones((), dtype=rows.dtype, device=rows.device), None, False, labelled)
    )
    trained = sum(p.numel() for name, p in model.named_parameters() if is_trained(name, p))
    return shared, 2 * saved + 8 * trained * rows.element_size()
