r"""Early stopping: each model keeps the weights of its best epoch on held-out rows.

The criterion is the whole objective, task loss + λ · penalty. The task loss alone would favour early epochs, in which
the penalty has not yet worked, or a model that overfits S. It is measured at the end of each epoch, in batches of the
training size, since a penalty depends on it, with the penalty's state of that epoch: it does not adapt to held-out
rows. An adversary that learns during training is weak at first, so its early epochs look better than they are; stop
such models by hand. Weight decay is not in the criterion.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from frhsic.training.state import State


class EarlyStopping:
    """Best epoch of each model of a fleet, and the state that the model had at its end.

    A model stops after `patience` epochs without improvement. It is trained on while others still improve, but that
    changes nothing for it: what a model becomes does not depend on the fleet that it is in.

    Parameters
    ----------
    state : State
        State of the models.
    patience : int or None
        Epochs without improvement after which a model stops. None never stops.
    objective : callable
        Returns task loss + λ · penalty of each model on the held-out rows, (M,).
    """

    def __init__(self, state: State, patience: int | None, objective: Callable[[], Tensor]) -> None:
        self.state = state
        self.patience = patience
        self.objective = objective
        flat = state.flat.detach()
        self.least = flat.new_full((len(flat),), torch.inf)  # (M,)
        self.best_epoch = torch.full((len(flat),), -1, device=flat.device)  # (M,)
        self.waited = torch.zeros_like(self.best_epoch)  # (M,) epochs since the best one
        self.best = [tensor.detach().clone() for tensor in state.kept()]

    @property
    def stopped(self) -> Tensor:
        """Whether each model has stopped, (M,)."""
        return torch.zeros_like(self.state.alive) if self.patience is None else self.waited >= self.patience

    @torch.no_grad()
    def note(self, epoch: int) -> Tensor:
        """Measure the models at the end of an epoch and keep those that improved; return the objective, (M,).

        A model whose objective has never been finite counts as improved, so that it ends as without held-out rows.
        """
        objective = self.objective()
        better = (objective < self.least) | ~torch.isfinite(self.least)
        improved = better & self.state.alive & ~self.stopped
        self.least.copy_(torch.where(improved, objective, self.least))
        self.best_epoch.copy_(torch.where(improved, epoch, self.best_epoch))
        self.waited.copy_(torch.where(improved, 0, self.waited + ~self.stopped))
        for tensor, best in zip(self.state.kept(), self.best):
            best.copy_(torch.where(improved.view(-1, *[1] * (tensor.ndim - 1)), tensor, best))
        return objective

    @torch.no_grad()
    def finish(self) -> None:
        """Give every model the state of its best epoch."""
        for tensor, best in zip(self.state.kept(), self.best):
            tensor.copy_(best)
