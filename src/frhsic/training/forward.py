"""Forward pass of one model and of all: task loss and penalty of a batch (lines 4 to 6 of the algorithm)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from frhsic.penalties.base import Penalty
from frhsic.training.recipe import Task, row_losses
from frhsic.training.state import State

Stacked = dict[str, Tensor]
Losses = tuple[Tensor, Tensor, Tensor]
"""Loss, task loss and penalty."""


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

    def forward(
        self, rows: Tensor, weight: Tensor, adapt_epoch: int | None, guarded: bool, labelled: int | None = None
    ) -> Losses:
        """Return loss, task loss and penalty of one batch; `adapt_epoch` is the epoch if the penalty adapts in it.

        `guarded` keeps a penalty of weight 0 out of the gradient, since 0 · NaN is NaN. The penalty sees the first
        `labelled` rows, or all.
        """
        x, s, *targets = torch.split(rows, self.widths, dim=1)
        y, sample_weight = (part[:, 0] if part.shape[1] else None for part in targets)
        if self.task == "reconstruction" and y is not None:
            y = targets[0]  # (m, c)
        z = self.encoder(x)  # line 4, (m, dz)
        scores = self.head(z)  # (m, c)
        of_rows = row_losses(self.task, scores, y, x)
        task = of_rows.mean() if sample_weight is None else (of_rows * sample_weight).mean()
        if labelled == 0:
            return task, task, torch.zeros_like(task)
        if labelled is not None:
            z, s, scores, y = z[:labelled], s[:labelled], scores[:labelled], None if y is None else y[:labelled]
        if adapt_epoch is not None:
            self.penalty.adapt(z.detach(), s, adapt_epoch)  # line 5
        if not guarded:
            penalty = self.penalty(z, s, scores=scores, y=y)
            return task + weight * penalty, task, penalty  # line 6
        active = weight != 0
        z = torch.where(active, z, z.detach())
        scores = torch.where(active, scores, scores.detach())
        penalty = self.penalty(z, s, scores=scores, y=y)
        return task + torch.where(active, weight * penalty, 0), task, penalty  # line 6


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
    loss, task, penalty = result
    return loss.flatten(), task.flatten(), penalty.flatten()


def _viewed(stacked: Stacked, *lead: int) -> Stacked:
    """Return state (M, ...) with other leading sizes; with none, that of the only model."""
    return {name: values.view((*lead, *values.shape[1:])) for name, values in stacked.items()}
