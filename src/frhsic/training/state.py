"""Stacked state of a fleet, the tensors of M models along a leading axis; its course; and the batches of its rows.

Members are laid out as (G, K): G groups of K members that share (seed, split), and therefore initial weights, batches
and what the penalty fixed before training. A batch is gathered once per group, and what depends on the batch alone (the
Gram matrix of S, for example) is computed once per group.

The order of the rows of an epoch lies on the device, and a pointer there says which come next, so that every batch of
one shape is the same work and can be captured as a CUDA graph.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from frhsic.training.data import Member, Purpose, TrainingData, stream

# Fewest rows with S in a whole batch: with fewer, an unbiased HSIC is not defined.
LEAST_LABELLED = 4

# Rows of a batch, and how many of them have S; None for all.
BatchShape = tuple[int, int | None]

# Pieces of the parameters that Adam's one kernel on a GPU gets; it takes 36 at once.
PIECES = 32


@dataclass(frozen=True)
class Layout:
    """Members in an order in which K neighbours share (seed, split), G times."""

    members: tuple[Member, ...]
    groups: int

    @classmethod
    def of(cls, members: Sequence[Member]) -> Layout:
        """Lay out members that are sorted by (seed, split)."""
        sizes = Counter((member.seed, member.split) for member in members)
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
    """Every tensor that a step reads or changes. Sizes: M models, G groups, P trained parameters of a model."""

    layout: Layout
    names: tuple[str, ...]  # trained parameters, in the order of `flat`
    shapes: tuple[torch.Size, ...]
    flat: Tensor  # (M, P) trained parameters, side by side
    decayed: Tensor  # (P,) 1 for weight matrices of the encoder, which decay, 0 for biases and the head
    own: dict[str, Tensor]  # (M, ...) other state of a model: buffers, penalty state that adapts
    shared: dict[str, Tensor]  # (G, ...) state that a group shares: what the penalty fixed before training
    weight: Tensor  # (M,) λ
    first: Tensor = field(init=False)  # (M, P) Adam's running mean of the gradient
    second: Tensor = field(init=False)  # (M, P) and of its square
    steps: Tensor = field(init=False)  # (pieces,) steps taken, a count for each piece of `flat`
    alive: Tensor = field(init=False)  # (M,) False once an epoch ended with a loss or parameters that are not finite
    sums: Tensor = field(init=False)  # (2, M) task loss and penalty, summed over the rows of the epoch so far
    sizes: list[int] = field(init=False)
    settled: list[Tensor] = field(init=False)  # `flat` and `own` at the end of the last whole epoch

    def __post_init__(self) -> None:
        flat = self.flat.detach()
        self.first, self.second = torch.zeros_like(flat), torch.zeros_like(flat)
        self.steps = torch.zeros(len(pieces(flat)), dtype=torch.float32, device=flat.device)
        self.alive = torch.ones(len(flat), dtype=torch.bool, device=flat.device)
        self.sums = flat.new_zeros(2, len(flat))
        self.sizes = [shape.numel() for shape in self.shapes]
        self.settled = [tensor.detach().clone() for tensor in self.kept()]

    @classmethod
    def stacked(
        cls, layout: Layout, models: Sequence[nn.Module], shared: frozenset[str], device: torch.device
    ) -> State:
        """Stack the state of all members from the models of the groups' leaders.

        `shared` names the state that :meth:`Penalty.adapt` does not change, which a group needs once.
        """
        trained = {name: p for name, p in models[0].named_parameters() if is_trained(name, p)}
        if not trained:
            raise ValueError("neither encoder nor head has a parameter to train.")
        states = [dict([*model.named_parameters(), *model.named_buffers()]) for model in models]
        rest = [name for name in states[0] if name not in trained]

        def per_group(name: str) -> Tensor:
            return torch.stack([state[name].detach() for state in states])

        def per_model(values: Tensor) -> Tensor:
            return values.repeat_interleave(layout.together, dim=0).to(device).contiguous()

        flat = per_model(torch.cat([per_group(name).flatten(1) for name in trained], dim=1))
        decays = [
            torch.full((p.numel(),), float(name.startswith("encoder.") and p.ndim > 1)) for name, p in trained.items()
        ]
        return cls(
            layout=layout,
            names=tuple(trained),
            shapes=tuple(p.shape for p in trained.values()),
            flat=flat.requires_grad_(),
            decayed=torch.cat(decays).to(flat.detach()),
            own={name: per_model(per_group(name)) for name in rest if name not in shared},
            shared={name: per_group(name).to(device) for name in rest if name in shared},
            weight=torch.tensor([m.weight for m in layout.members], dtype=flat.dtype, device=device),
        )

    def parameters(self, *lead: int) -> dict[str, Tensor]:
        """Return the trained parameters as views of `flat`, each (*lead, *shape); lead is (M,), (G, K), or nothing."""
        columns = torch.split(self.flat.view(*lead, -1), self.sizes, dim=-1)
        return {name: part.view((*lead, *shape)) for name, part, shape in zip(self.names, columns, self.shapes)}

    def kept(self) -> list[Tensor]:
        """Return the tensors that make up the models, each (M, ...)."""
        return [self.flat, *self.own.values()]

    def mutable(self) -> list[Tensor]:
        """Return every tensor that a step changes."""
        return [self.flat, self.first, self.second, self.steps, *self.own.values(), self.sums]

    @torch.no_grad()
    def settle(self) -> None:
        """End an epoch: keep the new state of every model that is still finite.

        A gradient that is not finite spoils Adam's means and with them the parameters for good, so a check at the end
        of an epoch misses nothing and costs the steps nothing. A penalty of weight 0 does not count.
        """
        task, penalty = self.sums
        finite = torch.isfinite(self.flat.sum(1) + task + torch.where(self.weight != 0, penalty, 0))
        self.alive.logical_and_(finite)
        self.keep(self.settled, self.alive)
        self.restore(self.settled)
        self.sums.zero_()

    @torch.no_grad()
    def keep(self, copies: Sequence[Tensor], where: Tensor) -> None:
        """Copy the tensors of some models, given as booleans of shape (M,)."""
        for tensor, copied in zip(self.kept(), copies):
            copied.copy_(torch.where(where.view(-1, *[1] * (tensor.ndim - 1)), tensor, copied))

    @torch.no_grad()
    def restore(self, copies: Sequence[Tensor]) -> None:
        """Give every model the tensors that were copied."""
        for tensor, copied in zip(self.kept(), copies):
            tensor.copy_(copied)


def is_trained(name: str, parameter: nn.Parameter) -> bool:
    """Return whether the training loop steps this parameter; the penalty steps its own."""
    return parameter.requires_grad and not name.startswith("penalty.")


def pieces(tensor: Tensor) -> list[Tensor]:
    """Cut a tensor for Adam's kernel, which on a GPU gives each piece to a few threads only."""
    if not tensor.is_cuda:
        return [tensor]
    length = 1024 * -(-tensor.numel() // (1024 * PIECES))  # whole multiples, so that pieces stay aligned
    return list(torch.split(tensor.reshape(-1), length))


class Course:
    """The course of a training of models at once: what was measured, how far each model came, and its best state.

    With held-out rows a model ends with the state of its best epoch on them. The criterion is the whole objective, task
    loss + λ · penalty. It is measured at the end of each epoch, in batches of the training size, since a penalty
    depends on it, with the penalty's state of that epoch: it does not adapt to held-out rows. An adversary that learns
    during training is weak at first, so its early epochs look better than they are; stop such models by hand. Weight
    decay is not in the criterion.

    A model stops after `patience` epochs without improvement. It is trained on while others still improve, but that
    changes nothing for it: what a model becomes does not depend on the fleet that it is in.

    Parameters
    ----------
    state : State
        State of the models.
    epochs : int
        Number of epochs.
    patience : int
        Epochs without improvement after which a model stops.
    objective : callable or None
        Returns task loss + λ · penalty of each model on the held-out rows, (M,); None without such rows.
    """

    def __init__(self, state: State, epochs: int, patience: int, objective: Callable[[], Tensor] | None) -> None:
        self.state, self.patience, self.objective = state, patience, objective
        flat = state.flat.detach()
        self.curves = flat.new_full((epochs, 3, len(flat)), torch.nan)  # task loss, penalty, held-out objective
        self.done = torch.zeros(len(flat), dtype=torch.int64, device=flat.device)  # (M,) whole epochs
        self.diverged, self.best_epoch = torch.full_like(self.done, -1), torch.full_like(self.done, -1)
        self.waited = torch.zeros_like(self.done)  # epochs since the best one
        self.least = flat.new_full((len(flat),), torch.inf)
        self.best = [] if objective is None else [tensor.detach().clone() for tensor in state.kept()]

    @property
    def running(self) -> Tensor:
        """Whether each model is still trained, (M,)."""
        return self.state.alive & (self.waited < self.patience)

    @torch.no_grad()
    def note(self, epoch: int, rows: int) -> None:
        """End an epoch whose steps have been launched: write down its means, and keep the models that improved.

        A model whose objective has never been finite counts as improved, so that it ends as without held-out rows.
        """
        before, means = self.running, self.state.sums / rows
        self.state.settle()
        finished = before & self.state.alive
        self.diverged = torch.where(before & ~finished, epoch, self.diverged)
        self.done += finished
        self.curves[epoch, :2] = torch.where(finished, means, torch.nan)
        if self.objective is None:
            return
        objective = self.objective()
        self.curves[epoch, 2] = torch.where(finished, objective, torch.nan)
        improved = finished & ((objective < self.least) | ~torch.isfinite(self.least))
        self.least = torch.where(improved, objective, self.least)
        self.best_epoch = torch.where(improved, epoch, self.best_epoch)
        self.waited = torch.where(improved, 0, self.waited + 1)
        self.state.keep(self.best, improved)


def batch_shapes(data: TrainingData, batch_size: int) -> list[BatchShape]:
    """Return the shapes of the batches of one pass; the last holds the rest.

    If S is known for some rows only, they are spread evenly: batches of one size differ by at most one in their number.

    Examples
    --------
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], None, [0, 1, 2, 3, 4]), 2)
    [(2, None), (2, None), (1, None)]
    >>> nan = float("nan")
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], None, [0, nan, 2, nan, 4]), 2)
    [(2, 1), (2, 1), (1, 1)]
    """
    full, rest = divmod(data.rows, batch_size)
    sizes = [batch_size] * full + [rest] * (rest > 0)
    if data.labelled is None or data.labelled == data.rows:
        return [(size, None) for size in sizes]
    with_s = [data.labelled * end // data.rows for end in accumulate(sizes, initial=0)]
    return [(size, after - before) for size, (before, after) in zip(sizes, pairwise(with_s))]


def check_labelled(data: TrainingData, batch_size: int) -> None:
    """Raise if a whole batch would have too few rows with S for a penalty."""
    size, labelled = batch_shapes(data, batch_size)[0]
    if labelled is not None and labelled < LEAST_LABELLED:
        raise ValueError(f"a batch of {size} has S for {labelled} rows; {LEAST_LABELLED} are needed: raise batch_size.")


def batch_order(seed: int, split: int, epoch: int, n: int, purpose: Purpose = Purpose.ORDER) -> Tensor:
    """Return the order of the n rows in an epoch, a permutation that does not depend on earlier epochs.

    Examples
    --------
    >>> sorted(batch_order(42, 0, 7, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(n, generator=stream(seed, split, purpose, epoch))


class Batches:
    """Batches of the rows of every group of a fleet.

    Parameters
    ----------
    data : TrainingData
        The rows.
    table : Tensor
        The same rows on the device, as ``data.table()`` gives them.
    layout : Layout
        Members; each group has the rows of its split.
    batch_size : int
        Rows of a batch.
    purpose : Purpose
        Random stream of the order.
    """

    def __init__(
        self, data: TrainingData, table: Tensor, layout: Layout, batch_size: int, purpose: Purpose = Purpose.ORDER
    ) -> None:
        self.table = table  # (D·n, columns)
        self.rows = data.rows
        self.labelled = data.labelled
        self.keys = [(leader.seed, leader.split) for leader in layout.leaders]
        self.purpose = purpose
        self.shapes = batch_shapes(data, batch_size)
        self.places = _places(self.shapes, data.labelled)
        self.order = torch.zeros(layout.groups, self.rows, dtype=torch.int64, device=table.device)
        self.start = torch.arange(self.shapes[0][0], device=table.device)
        self.next = self.start.clone()  # places of the next batch in the order

    def shuffle(self, epoch: int) -> None:
        """Draw an epoch's order of the rows, one for each group, and go to its beginning."""
        orders = {key: self._order(*key, epoch) + key[1] * self.rows for key in dict.fromkeys(self.keys)}
        order = torch.stack([orders[key] for key in self.keys])
        if self.order.is_cuda:
            order = order.pin_memory()  # the copy below then waits for nothing
        self.order.copy_(order, non_blocking=True)
        self.rewind()

    def rewind(self) -> None:
        """Go to the beginning of the order."""
        self.next.copy_(self.start)

    @torch.no_grad()
    def take(self, size: int) -> Tensor:
        """Return the next `size` rows of every group, (G, size, columns); those with S come first."""
        at = self.order.index_select(1, self.next[:size])  # (G, m)
        batch = self.table.index_select(0, at.flatten()).view(*at.shape, -1)  # (G, m, columns)
        self.next.add_(size)
        return batch

    def _order(self, seed: int, split: int, epoch: int) -> Tensor:
        order = batch_order(seed, split, epoch, self.rows, self.purpose)
        if self.places is None or self.labelled is None:
            return order
        has_s = order < self.labelled
        return torch.cat([order[has_s], order[~has_s]])[self.places]


def _places(shapes: list[BatchShape], labelled: int | None) -> Tensor | None:
    """Return the order of a pass, as places in a list of the rows with S followed by those without; None for all."""
    parts, with_s, without = [], 0, labelled or 0
    for size, share in shapes:
        if share is None:
            return None
        parts += [torch.arange(with_s, with_s + share), torch.arange(without, without + size - share)]
        with_s, without = with_s + share, without + size - share
    return torch.cat(parts)
