"""One model with its penalty, and the forward pass of many: task loss and penalty of a batch (lines 4 to 6)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, vmap

from frhsic.penalties.base import Penalty
from frhsic.training.data import Purpose, TrainingData, seeded, stream, stream_seed
from frhsic.training.recipe import Recipe, Task, require_rows, row_losses
from frhsic.training.state import State, batch_shapes, is_trained

Stacked = dict[str, Tensor]


class Losses(NamedTuple):
    """Loss, task loss and penalty."""

    loss: Tensor
    task: Tensor
    penalty: Tensor


class Model(nn.Module):
    """One model with its penalty: everything that one member of a fleet owns."""

    def __init__(
        self, encoder: nn.Module, head: nn.Module, penalty: Penalty, task: Task, widths: Sequence[int]
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.penalty = penalty
        self.task: Task = task
        self.widths = list(widths)  # columns of x, s, y and the sample weight in a row

    @classmethod
    def initial(cls, recipe: Recipe, data: TrainingData, seed: int, split: int) -> Model:
        """Build a model on the CPU: initial weights from its stream, penalty fitted to its training rows (line 1)."""
        with seeded(stream_seed(seed, split, Purpose.WEIGHTS)):
            encoder, head, penalty = recipe.modules(data, recipe.outputs(data))
        if not penalty.prepared:
            penalty.prepare(data.s[split, : data.labelled].cpu(), stream(seed, split, Purpose.PENALTY))
        return cls(encoder, head, penalty, recipe.task, data.widths).to(data.x.dtype).train()

    def forward(
        self, rows: Tensor, weight: Tensor, adapt_epoch: int | None, guarded: bool, labelled: int | None = None
    ) -> Losses:
        """Return loss, task loss and penalty of one batch; `adapt_epoch` is the epoch if the penalty adapts in it.

        `guarded` keeps a penalty of weight 0 out of the gradient, since 0 · NaN is NaN. The penalty sees the first
        `labelled` rows, or all.
        """
        x, s, y, weights = torch.split(rows, self.widths, dim=1)
        y = y if self.task == "reconstruction" else y[:, 0]
        z = self.encoder(x)  # line 4, (m, dz)
        scores = self.head(z)  # (m, c)
        of_rows = row_losses(self.task, scores, y)
        task = (of_rows * weights[:, 0]).mean() if weights.shape[1] else of_rows.mean()
        if labelled == 0:
            return Losses(task, task, torch.zeros_like(task))
        if labelled is not None:
            z, s, scores, y = z[:labelled], s[:labelled], scores[:labelled], y[:labelled]
        if adapt_epoch is not None:
            self.penalty.adapt(z.detach(), s, adapt_epoch)  # line 5
        if not guarded:
            penalty = self.penalty(z, s, scores=scores, y=y)
            return Losses(task + weight * penalty, task, penalty)  # line 6
        active = weight != 0
        z, scores = torch.where(active, z, z.detach()), torch.where(active, scores, scores.detach())
        penalty = self.penalty(z, s, scores=scores, y=y)
        return Losses(task + torch.where(active, weight * penalty, 0), task, penalty)  # line 6


def losses(
    model: Model, state: State, rows: Tensor, adapt_epoch: int | None, guarded: bool, labelled: int | None = None
) -> Losses:
    """Run the forward pass of every model on batches `rows` (G, m, columns); each result is (M,).

    Models are independent, so the gradient of the sum of their losses holds the gradient of each. That leaves one
    transform, the forward `vmap`; the backward pass runs on stacked tensors.
    """

    def one(trained: Stacked, own: Stacked, shared: Stacked, batch: Tensor, weight: Tensor) -> Losses:
        arguments = (batch, weight, adapt_epoch, guarded, labelled)
        result: Losses = functional_call(model, {**trained, **own, **shared}, arguments)
        return result

    own, shared, weight = state.own, state.shared, state.weight
    g, k = state.layout.groups, state.layout.together
    if g * k == 1:  # a fleet of one is the model itself
        result = one(state.parameters(), _viewed(own), _viewed(shared), rows[0], weight.view(()))
    elif g == 1:
        result = vmap(one, (0, 0, None, None, 0))(state.parameters(k), own, _viewed(shared), rows[0], weight)
    elif k == 1:
        result = vmap(one)(state.parameters(g), own, shared, rows, weight)
    else:
        nested = vmap(vmap(one, (0, 0, None, None, 0)))
        result = nested(state.parameters(g, k), _viewed(own, g, k), shared, rows, weight.view(g, k))
    return Losses(*(values.flatten() for values in result))


def _viewed(stacked: Stacked, *lead: int) -> Stacked:
    """Return state (M, ...) with other leading sizes; with none, that of the only model."""
    return {name: values.view((*lead, *values.shape[1:])) for name, values in stacked.items()}


class Trial(NamedTuple):
    """What one batch tells of a model."""

    draws: bool  # whether a step draws from torch's global generators
    shared: frozenset[str]  # state of the penalty that stays as `prepare` left it
    bytes: int  # memory of one model in a step


def tried(model: Model, recipe: Recipe, data: TrainingData, epochs: int) -> Trial:
    """Run a copy of a model on one batch.

    A model takes twice what its backward pass keeps, plus parameters, gradient and Adam's means.
    """
    copied, outputs = copy.deepcopy(model), recipe.outputs(data)
    size, labelled = batch_shapes(data, recipe.batch_size)[0]
    rows = data.table()[:size].cpu()
    with seeded():
        before = torch.get_rng_state()
        x, s, *_ = torch.split(rows, copied.widths, dim=1)
        with torch.no_grad():
            z = copied.encoder(x)
            scores = copied.head(z)
        require_rows("head", scores, len(x))
        wider = copied.task == "multiclass" and scores.shape[1] > outputs  # these rows may lack the last classes
        if scores.shape[1] != outputs and not wider:
            raise ValueError(f"the head gives {scores.shape[1]} outputs; task={copied.task!r} needs {outputs}.")
        shared = frozenset(f"penalty.{name}" for name in _unadapted(copied.penalty, z[:labelled], s[:labelled], epochs))
        saved = _saved_bytes(lambda: copied(rows, torch.ones((), dtype=rows.dtype), None, False, labelled))
        trained = sum(p.numel() for name, p in copied.named_parameters() if is_trained(name, p))
        draws = not torch.equal(before, torch.get_rng_state())
        return Trial(draws, shared, 2 * saved + 8 * trained * rows.element_size())


def _unadapted(penalty: Penalty, z: Tensor, s: Tensor, epochs: int) -> frozenset[str]:
    """Return the names of the penalty's tensors that `adapt` leaves alone, after one call on a batch."""

    def places_and_writes() -> dict[str, tuple[int, int]]:
        # the counter of writes in place has no public name; values do not show it, as a write may leave them equal
        return {name: (value.data_ptr(), value._version) for name, value in penalty.state_dict(keep_vars=True).items()}

    before = places_and_writes()
    epoch = next((e for e in range(epochs) if penalty.adapts(e)), None)
    if epoch is not None:
        penalty.adapt(z.detach(), s, epoch)
    after = places_and_writes()
    if any(after[name][0] != before[name][0] for name in before) or len(after) != len(before):
        raise TypeError(f"{type(penalty).__name__}.adapt replaced a buffer; it must write in place (copy_).")
    return frozenset(name for name in after if after[name] == before[name])


def _saved_bytes(forward: Callable[[], object]) -> int:
    """Return the bytes that a forward pass keeps for its backward pass."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        forward()
    return sum(sizes.values())
