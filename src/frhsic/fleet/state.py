"""The stacked state of a fleet: what M models own, along a leading axis.

Members are laid out as (G, K): G groups of K members that share (seed, split), hence initial weights, batches
and what the penalty fixed before training. A batch is gathered once per group, and what depends on the batch
alone (the Gram matrix of S, for one) is computed once per group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from frhsic.fleet.data import Member, TrainingData
from frhsic.fleet.losses import Task, row_losses
from frhsic.fleet.streams import Purpose, stream, stream_seed
from frhsic.penalties.base import Penalty

__all__ = ["Columns", "Layout", "Model", "State", "build_state", "is_trained", "template_of"]


@dataclass(frozen=True)
class Columns:
    """Where x, s, y and the sample weight stand in a row of the one table that batches are gathered from."""

    x: int
    s: int
    y: bool
    weight: bool

    @classmethod
    def of(cls, data: TrainingData) -> Columns:
        """Read the columns off the data."""
        return cls(data.columns, data.s.shape[-1], data.y is not None, data.sample_weight is not None)

    def table(self, data: TrainingData) -> Tensor:
        """Return all training rows of all splits as one matrix, (D·n, d + q + ...): one gather serves a batch."""
        parts = [data.x, data.s]
        parts += [values[..., None] for values in (data.y, data.sample_weight) if values is not None]
        return torch.cat(parts, dim=-1).flatten(0, 1).contiguous()

    def parts(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return x (m, d), s (m, q), y (m,) and sample weight (m,) of rows (m, columns)."""
        after = self.x + self.s
        y = rows[:, after] if self.y else None
        weight = rows[:, after + self.y] if self.weight else None
        return rows[:, : self.x], rows[:, self.x : after], y, weight


class Model(nn.Module):
    r"""One model with its penalty: everything that one member of a fleet owns.

    .. math:: \text{loss} = \frac1m \sum_i \ell(f(z_i), y_i) + \lambda \cdot \text{penalty}(z, s), \qquad z = h(x).
    """

    def __init__(self, encoder: nn.Module, head: nn.Module, penalty: Penalty, task: Task, columns: Columns) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.penalty = penalty
        self.task: Task = task
        self.columns = columns

    def forward(self, rows: Tensor, weight: Tensor, epoch: int | None, guarded: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return loss, task loss and penalty of one batch; `epoch` is given when the penalty adapts in it.

        `guarded` keeps a penalty of weight 0 out of the gradient altogether, since 0 · NaN is NaN.
        """
        x, s, y, sample_weight = self.columns.parts(rows)
        z = self.encoder(x)  # (m, dz)
        if epoch is not None:
            self.penalty.adapt(z.detach(), s, epoch)
        scores = self.head(z)  # (m, c)
        losses = row_losses(self.task, scores, rows[:, 0] if y is None else y, x)
        task = losses.mean() if sample_weight is None else (losses * sample_weight).mean()
        if guarded:
            active = weight != 0
            z = torch.where(active, z, z.detach())
            scores = torch.where(active, scores, scores.detach())
            penalty = self.penalty(z, s, scores=scores, y=y)
            return task + torch.where(active, weight * penalty, 0), task, penalty
        penalty = self.penalty(z, s, scores=scores, y=y)
        return task + weight * penalty, task, penalty


@dataclass(frozen=True)
class Layout:
    """Members in an order in which K neighbours share (seed, split), G times."""

    members: tuple[Member, ...]
    groups: int

    @classmethod
    def of(cls, members: Sequence[Member]) -> Layout:
        """Lay out members that are sorted by (seed, split)."""
        sizes: dict[tuple[int, int], int] = {}
        for member in members:
            sizes[member.seed, member.split] = sizes.get((member.seed, member.split), 0) + 1
        together = math.gcd(*sizes.values())  # the largest K that cuts every set of sharing members evenly
        return cls(tuple(members), len(members) // together)

    @property
    def together(self) -> int:
        """The number K of members in a group."""
        return len(self.members) // self.groups

    @property
    def leaders(self) -> tuple[Member, ...]:
        """The first member of each group, whose seed and split are those of all."""
        return self.members[:: self.together]


@dataclass
class State:
    """Everything that a step reads or changes, each tensor with a leading axis of M or G unless all models share it."""

    layout: Layout
    model: Model
    names: tuple[str, ...]  # trained parameters, in the order of `flat`
    shapes: tuple[torch.Size, ...]
    flat: Tensor  # (M, P) trained parameters, side by side
    decayed: Tensor  # (P,) 1 for weights of the encoder, which decay, 0 for biases and the head
    first: Tensor  # (M, P) Adam's running mean of the gradient
    second: Tensor  # (M, P) and of its square
    steps: Tensor  # () steps taken
    own: dict[str, Tensor]  # (M, ...) what else a model owns: buffers, penalty state that adapts
    shared: dict[str, Tensor]  # (G, ...) what its group shares: penalty state fixed before training
    weight: Tensor  # (M,) λ
    alive: Tensor  # (M,) False once an epoch ended with a loss or parameters that are not finite
    sums: Tensor  # (2, M) task loss and penalty, summed over the rows of the epoch so far
    sizes: list[int] = field(init=False)
    kept: list[Tensor] = field(init=False)  # parameters and `own` after the last whole epoch

    def __post_init__(self) -> None:
        self.sizes = [shape.numel() for shape in self.shapes]
        self.kept = [tensor.detach().clone() for tensor in (self.flat, *self.own.values())]

    def parameters(self, *lead: int) -> dict[str, Tensor]:
        """Return the trained parameters as views of `flat`, each (*lead, *shape); lead is (M,), (G, K), or nothing."""
        parts = torch.split(self.flat.view(*lead, -1), self.sizes, dim=-1)
        return {name: part.view((*lead, *shape)) for name, part, shape in zip(self.names, parts, self.shapes)}

    def mutable(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        return [self.flat, self.first, self.second, self.steps, *self.own.values(), self.sums]

    @torch.no_grad()
    def settle(self) -> None:
        """End an epoch: keep what every model has become, except those that went astray in it, or before.

        A gradient that is not finite spoils Adam's means and with them the parameters for good, so that a look at
        the end of an epoch misses nothing, and costs the steps nothing. A penalty of weight 0 has no say.
        """
        task, penalty = self.sums
        found = self.flat.sum(1) + task + torch.where(self.weight != 0, penalty, 0)
        self.alive.logical_and_(torch.isfinite(found))
        for tensor, kept in zip((self.flat, *self.own.values()), self.kept):
            running = self.alive.view(-1, *[1] * (tensor.ndim - 1))
            kept.copy_(torch.where(running, tensor, kept))
        self.restore()
        self.sums.zero_()

    @torch.no_grad()
    def restore(self) -> None:
        """Go back to the end of the last whole epoch."""
        for tensor, kept in zip((self.flat, *self.own.values()), self.kept):
            tensor.copy_(kept)


def template_of(
    member: Member,
    data: TrainingData,
    task: Task,
    encoder: Callable[[], nn.Module],
    head: Callable[[], nn.Module],
    penalty: Callable[[], Penalty],
    columns: Columns,
) -> Model:
    """Build a member's model on the CPU with its initial weights, and prepare its penalty on its training rows."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(member.seed, member.split, Purpose.WEIGHTS))
        built = encoder(), head()
        made = penalty()
    if not made.prepared:
        made.prepare(data.s[member.split].cpu(), stream(member.seed, member.split, Purpose.PENALTY))
    return Model(*built, made, task, columns).to(data.x.dtype).train()


def build_state(
    layout: Layout, build: Callable[[Member], Model], shared: frozenset[str], device: torch.device
) -> State:
    """Stack the state of all members; `build` gives a member's model at its start.

    `shared` names the state that stays as the penalty's `prepare` left it, so that a group needs it once.
    """
    models = [build(leader) for leader in layout.leaders]
    template = models[0]
    trained = [name for name, p in template.named_parameters() if is_trained(name, p)]
    if not trained:
        raise ValueError("neither encoder nor head has a parameter to train.")
    states = [dict([*m.named_parameters(), *m.named_buffers()]) for m in models]
    k = layout.together

    def repeated(tensors: list[Tensor]) -> Tensor:
        return torch.stack([t.detach() for t in tensors]).repeat_interleave(k, dim=0).to(device).contiguous()

    rest = [name for name in states[0] if name not in trained]
    flat = torch.stack([torch.cat([s[name].detach().reshape(-1) for name in trained]) for s in states])
    flat = flat.repeat_interleave(k, dim=0).to(device).contiguous()
    count = len(layout.members)
    decays = [torch.full((states[0][name].numel(),), float(_decays(name, states[0][name]))) for name in trained]
    return State(
        layout=layout,
        model=template.to(device),
        names=tuple(trained),
        shapes=tuple(states[0][name].shape for name in trained),
        flat=flat.requires_grad_(),
        decayed=torch.cat(decays).to(flat.detach()),
        first=torch.zeros_like(flat, requires_grad=False),
        second=torch.zeros_like(flat, requires_grad=False),
        steps=torch.zeros((), dtype=torch.float32, device=device),
        own={name: repeated([s[name] for s in states]) for name in rest if name not in shared},
        shared={name: torch.stack([s[name].detach() for s in states]).to(device) for name in rest if name in shared},
        weight=torch.tensor([m.weight for m in layout.members], dtype=flat.dtype, device=device),
        alive=torch.ones(count, dtype=torch.bool, device=device),
        sums=torch.zeros(2, count, dtype=flat.dtype, device=device),
    )


def _decays(name: str, parameter: Tensor) -> bool:
    return name.startswith("encoder.") and parameter.ndim > 1


def is_trained(name: str, parameter: nn.Parameter) -> bool:
    """Return whether the training loop, and not the penalty itself, steps this parameter."""
    return parameter.requires_grad and not name.startswith("penalty.")
