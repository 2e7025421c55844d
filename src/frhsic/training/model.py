"""One model with its penalty, the stacked state of many models, and their forward pass (lines 4 to
6 of the paper's algorithm).

The tensors of M models are stacked along a leading axis. Members are laid out as (G, K): G groups
of K members that share (seed, split), and therefore initial weights, batches and the penalty's
prepared state. A batch is gathered once per group, and anything that depends only on the batch,
such as the Gram matrix of S, is computed once per group.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call, vmap

from frhsic.datasets.dataset import Task
from frhsic.penalties.base import Penalty
from frhsic.training.data import (
    Member,
    Purpose,
    TrainingData,
    batch_shapes,
    fork_generators,
    stream,
    stream_seed,
)
from frhsic.training.recipe import Recipe, require_output_rows, row_losses

# Number of pieces of the parameters for Adam's single kernel on a GPU, which accepts 36 at once.
PIECES = 32

Stacked = dict[str, Tensor]


class Losses(NamedTuple):
    """Loss, task loss and penalty."""

    loss: Tensor
    task: Tensor
    penalty: Tensor


class Model(nn.Module):
    """One model with its penalty: all modules of one of the models that are trained together."""

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        penalty: Penalty,
        task: Task,
        widths: Sequence[int],
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.penalty = penalty
        self.task: Task = task
        self.widths = list(widths)  # columns of x, s, y and the sample weight in a row
        # whether to keep a penalty of weight 0 out of the gradient, since 0 · NaN is NaN
        self.guarded = False

    @classmethod
    def initial(cls, recipe: Recipe, data: TrainingData, seed: int, split: int) -> Model:
        """Build a model on the CPU: draw the initial weights from its random stream, and fit the
        penalty to its training rows (line 1).
        """
        with fork_generators(stream_seed(seed, split, Purpose.WEIGHTS)):
            encoder, head, penalty = recipe.modules(data, recipe.outputs(data))
        if not penalty.prepared:
            penalty.prepare(
                data.s[split, : data.labelled].cpu(), stream(seed, split, Purpose.PENALTY)
            )
        return cls(encoder, head, penalty, recipe.task, data.widths).to(data.x.dtype).train()

    def forward(
        self, rows: Tensor, weight: Tensor, adapt_epoch: int | None, labelled: int
    ) -> Losses:
        """Return the loss, the task loss and the penalty on one batch; `adapt_epoch` is the epoch
        if the penalty adapts in this epoch.

        The penalty sees the first `labelled` rows.
        """
        x, s, y, weights = torch.split(rows, self.widths, dim=1)
        y = y[:, 0]
        z = self.encoder(x)  # line 4, (m, dz)
        scores = self.head(z)  # (m, c)
        of_rows = row_losses(self.task, scores, y)
        task = (of_rows * weights[:, 0]).mean() if weights.shape[1] else of_rows.mean()
        if labelled == 0:
            return Losses(task, task, torch.zeros_like(task))
        if labelled < len(x):
            z = z[:labelled]
            s = s[:labelled]
            scores = scores[:labelled]
            y = y[:labelled]
        if adapt_epoch is not None:
            self.penalty.adapt(z.detach(), s, adapt_epoch)  # line 5
        if not self.guarded:
            penalty = self.penalty(z, s, scores=scores, y=y)
            return Losses(task + weight * penalty, task, penalty)  # line 6
        active = weight != 0
        z = torch.where(active, z, z.detach())
        scores = torch.where(active, scores, scores.detach())
        penalty = self.penalty(z, s, scores=scores, y=y)
        return Losses(task + torch.where(active, weight * penalty, 0), task, penalty)  # line 6


def n_sharing(members: Sequence[Member]) -> int:
    """Return the largest K for which the members, sorted by (seed, split), can be divided into
    groups of K members that share the seed and the split.

    Examples
    --------
    >>> n_sharing([Member(0.0, 1), Member(1.0, 1), Member(0.0, 2), Member(1.0, 2)])
    2
    """
    return math.gcd(*Counter((member.seed, member.split) for member in members).values())


class FleetState:
    """All tensors that a step reads or changes, for M models in G groups with P trained parameters
    each.

    Parameters
    ----------
    members : sequence of Member
        The M members, sorted by (seed, split).
    models : sequence of Model
        The initial model of each group.
    device : torch.device
        Device of the tensors.
    """

    def __init__(
        self,
        members: Sequence[Member],
        models: Sequence[Model],
        device: torch.device,
    ) -> None:
        self.members = tuple(members)
        self.groups = len(models)
        self.together = len(members) // len(models)
        trained = {name: p for name, p in models[0].named_parameters() if is_trained(name, p)}
        if not trained:
            raise ValueError(
                "neither the encoder nor the head has trainable parameters; pass"
                " modules with parameters that require gradients."
            )
        states = [dict([*model.named_parameters(), *model.named_buffers()]) for model in models]
        rest = [name for name in states[0] if name not in trained]
        adapted = {f"penalty.{name}" for name in models[0].penalty.adapted}
        shared = {name for name in rest if name.startswith("penalty.") and name not in adapted}

        def per_group(name: str) -> Tensor:
            return torch.stack([state[name].detach() for state in states])

        def per_model(values: Tensor) -> Tensor:
            return values.repeat_interleave(self.together, dim=0).to(device).contiguous()

        self.shapes = {name: p.shape for name, p in trained.items()}
        # (M, P) trained parameters, concatenated; Adam's running means of the gradient and of its
        # square
        flat = per_model(torch.cat([per_group(name).flatten(1) for name in trained], dim=1))
        self.first = torch.zeros_like(flat)
        self.second = torch.zeros_like(flat)
        self.flat = flat.requires_grad_()
        flat = flat.detach()
        # (P,) 1 for weight matrices of the encoder, which decay, 0 for biases and the head
        self.decayed = torch.cat(
            [
                torch.full((p.numel(),), float(name.startswith("encoder.") and p.ndim > 1))
                for name, p in trained.items()
            ]
        ).to(flat)
        # (M, ...) other state of a model: buffers, penalty state that adapts
        self.own = {name: per_model(per_group(name)) for name in rest if name not in shared}
        # (G, ...) state that a group shares: what the penalty learned before training
        self.shared = {name: per_group(name).to(device) for name in rest if name in shared}
        self.weight = flat.new_tensor([m.penalty_weight for m in members])  # (M,) λ
        # (pieces,) steps taken, a count for each piece of `flat`
        self.steps = torch.zeros(len(pieces(flat)), dtype=torch.float32, device=device)
        # (M,) False once an epoch has ended with a loss or parameters that are not finite
        self.alive = torch.ones(len(flat), dtype=torch.bool, device=device)
        # task loss and penalty, summed over the rows of the epoch so far
        self.sums = flat.new_zeros(2, len(flat))
        # at the end of the last whole epoch
        self.settled = [tensor.detach().clone() for tensor in self.model_tensors()]

    def parameters(self, *lead: int) -> dict[str, Tensor]:
        """Return the trained parameters as views of `flat`, each (*lead, *shape), where lead is
        (M,), (G, K), or empty.
        """
        columns = torch.split(
            self.flat.view(*lead, -1), [shape.numel() for shape in self.shapes.values()], dim=-1
        )
        return {
            name: part.view((*lead, *shape))
            for (name, shape), part in zip(self.shapes.items(), columns)
        }

    def model_tensors(self) -> list[Tensor]:
        """Return the tensors that make up the models, each (M, ...)."""
        return [self.flat, *self.own.values()]

    def mutable(self) -> list[Tensor]:
        """Return all tensors that a step changes."""
        return [self.flat, self.first, self.second, self.steps, *self.own.values(), self.sums]

    @torch.no_grad()
    def settle(self) -> None:
        """End an epoch: keep the new state of every model that is still finite.

        A gradient that is not finite permanently corrupts Adam's means, and therefore the
        parameters. So a check at the end of each epoch is enough, and steps are not slowed down. A
        penalty with weight 0 is ignored.
        """
        task, penalty = self.sums
        finite = torch.isfinite(self.flat.sum(1) + task + torch.where(self.weight != 0, penalty, 0))
        self.alive.logical_and_(finite)
        self.keep(self.settled, self.alive)
        self.restore(self.settled)
        self.sums.zero_()

    @torch.no_grad()
    def keep(self, copies: Sequence[Tensor], where: Tensor) -> None:
        """Copy the tensors of the models for which `where`, of shape (M,), is True into
        `copies`.
        """
        for tensor, copied in zip(self.model_tensors(), copies):
            copied.copy_(torch.where(where.view(-1, *[1] * (tensor.ndim - 1)), tensor, copied))

    @torch.no_grad()
    def restore(self, copies: Sequence[Tensor]) -> None:
        """Copy the tensors in `copies` back to every model."""
        for tensor, copied in zip(self.model_tensors(), copies):
            tensor.copy_(copied)


def is_trained(name: str, parameter: nn.Parameter) -> bool:
    """Return whether the training loop updates this parameter; the penalty updates its own
    parameters.
    """
    return parameter.requires_grad and not name.startswith("penalty.")


def pieces(tensor: Tensor) -> list[Tensor]:
    """Split a tensor into pieces for Adam's kernel, because on a GPU the kernel uses only a few
    threads for each tensor.
    """
    if not tensor.is_cuda:
        return [tensor]
    length = 1024 * math.ceil(tensor.numel() / (1024 * PIECES))  # so that pieces stay aligned
    return list(torch.split(tensor.reshape(-1), length))


def losses(
    model: Model, state: FleetState, rows: Tensor, adapt_epoch: int | None, labelled: int
) -> Losses:
    """Run the forward pass of every model on the batches `rows` (G, m, columns); each result has
    shape (M,).

    Models are independent, so the gradient of the sum of their losses contains the gradient of each
    loss. Only the forward pass uses `vmap`; the backward pass runs on stacked tensors.
    """

    def member_losses(
        trained: Stacked, member_state: Stacked, shared: Stacked, batch: Tensor, weight: Tensor
    ) -> Losses:
        result: Losses = functional_call(
            model, {**trained, **member_state, **shared}, (batch, weight, adapt_epoch, labelled)
        )
        return result

    member_states = state.own
    shared = state.shared
    weight = state.weight
    g = state.groups
    k = state.together
    if g * k == 1:  # a fleet of one is the model itself
        result = member_losses(
            state.parameters(), _viewed(member_states), _viewed(shared), rows[0], weight.view(())
        )
    elif g == 1:
        result = vmap(member_losses, (0, 0, None, None, 0))(
            state.parameters(k), member_states, _viewed(shared), rows[0], weight
        )
    elif k == 1:
        result = vmap(member_losses)(state.parameters(g), member_states, shared, rows, weight)
    else:
        nested = vmap(vmap(member_losses, (0, 0, None, None, 0)))
        result = nested(
            state.parameters(g, k), _viewed(member_states, g, k), shared, rows, weight.view(g, k)
        )
    return Losses(*(values.flatten() for values in result))


def _viewed(stacked: Stacked, *lead: int) -> Stacked:
    """Return stacked state (M, ...) with other leading dimensions; without leading dimensions, the
    state of the only model.
    """
    return {name: values.view((*lead, *values.shape[1:])) for name, values in stacked.items()}


class Trial(NamedTuple):
    """Facts about a model that are measured by running one batch."""

    draws: bool  # whether a step draws from torch's global generators
    bytes: int  # memory of one model in a step


def try_model(model: Model, recipe: Recipe, data: TrainingData) -> Trial:
    """Run a copy of a model on one batch.

    A model needs twice the memory that is retained for its backward pass, plus memory for
    parameters, gradients and Adam's means.
    """
    copied = copy.deepcopy(model)
    outputs = recipe.outputs(data)
    size, labelled = batch_shapes(data, recipe.batch_size)[0]
    rows = data.table()[:size].cpu()
    with fork_generators():
        before = torch.get_rng_state()
        x, *_ = torch.split(rows, copied.widths, dim=1)
        with torch.no_grad():
            scores = copied.head(copied.encoder(x))
        require_output_rows("head", scores, len(x))
        # the last classes may be missing in these rows
        wider = copied.task == "multiclass" and scores.shape[1] > outputs
        if scores.shape[1] != outputs and not wider:
            raise ValueError(
                f"the head returns {scores.shape[1]} outputs, but task={copied.task!r} needs"
                f" {outputs}; pass a head with {outputs} outputs."
            )
        saved = _saved_bytes(lambda: copied(rows, torch.ones((), dtype=rows.dtype), None, labelled))
        trained = sum(p.numel() for name, p in copied.named_parameters() if is_trained(name, p))
        draws = not torch.equal(before, torch.get_rng_state())
        return Trial(draws, 2 * saved + 8 * trained * rows.element_size())


def _saved_bytes(forward: Callable[[], object]) -> int:
    """Return the bytes that a forward pass retains for its backward pass."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        forward()
    return sum(sizes.values())
