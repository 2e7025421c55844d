"""A trained fleet: stacked parameters, their history, and predictions of all models at once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from frhsic.penalties.base import Penalty
from frhsic.training.data import Member
from frhsic.training.progress import EpochLog
from frhsic.training.state import State

CHUNK_BYTES = 256 * 2**20
"""Bytes, about, of the widest layer in one piece of the predictions."""


class DivergenceWarning(RuntimeWarning):
    """Some models of a fleet met a loss or gradient that is not finite, and were stopped."""


@dataclass(frozen=True)
class History:
    """What was measured in each epoch, per model: (M, epochs). NaN in epochs that a model did not finish.

    Attributes
    ----------
    task_loss, penalty : Tensor
        Means over the training rows, in the course of the epoch.
    held_out_objective : Tensor or None
        Task loss + λ · penalty on the held-out rows at the end of the epoch, if there are such rows.
    best_epoch : Tensor or None
        Epoch with the least `held_out_objective`, whose weights the model has, counted from 0, (M,). −1 if a model
        diverged in its first.
    """

    task_loss: Tensor
    penalty: Tensor
    held_out_objective: Tensor | None = None
    best_epoch: Tensor | None = None

    def select(self, places: list[int]) -> History:
        """Return the history of some of the models."""
        held_out, best = (None if v is None else v[places] for v in (self.held_out_objective, self.best_epoch))
        return History(self.task_loss[places], self.penalty[places], held_out, best)


@dataclass(frozen=True)
class Fleet:
    """M trained models.

    Attributes
    ----------
    members : tuple of Member
        One for each model, in the order that was asked for.
    parameters, buffers : dict of str to Tensor
        Stacked along the first axis and named as in the modules: ``encoder.0.weight`` is (M, ...). The buffers of a
        floor under the variance of Z are ``bottleneck.mean``, ``bottleneck.inward`` and ``bottleneck.outward``.
    penalty_state : dict of str to Tensor
        The penalty's own tensors at the end, stacked likewise.
    history : History
        Task loss and penalty of every model in every epoch.
    epochs_done : Tensor
        Whole epochs that each model was trained for, (M,). Its parameters are those at the end of the last one, or of
        its `history.best_epoch` if there were held-out rows.
    diverged : Tensor
        Epoch in which a model's loss or parameters became infinite or NaN, −1 if they never did, (M,). Such a model
        keeps the parameters that it had before that epoch.
    seconds : float
        Wall-clock time of training.
    interrupted : bool
        Whether Ctrl-C ended training early; `epochs_done` then says how far each model came.
    """

    members: tuple[Member, ...]
    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    penalty_state: dict[str, Tensor]
    history: History
    epochs_done: Tensor
    diverged: Tensor
    seconds: float
    interrupted: bool
    encoder: nn.Module
    head: nn.Module
    penalty: Penalty
    stackable: bool = True
    bottleneck: nn.Module | None = None

    def __len__(self) -> int:
        return len(self.members)

    @property
    def device(self) -> torch.device:
        """Where the parameters lie."""
        return next(iter(self.parameters.values())).device

    def transform(self, x: Tensor) -> Tensor:
        """Return the representations of all models, (M, n, dz).

        Parameters
        ----------
        x : Tensor
            Rows for every model, (n, d), or one set of rows for each split, (D, n, d). A model then gets the rows
            of its own split.
        """
        return self._evaluate(_Encoded(self.encoder, self.head, self.bottleneck), x)

    def scores(self, x: Tensor) -> Tensor:
        """Return the heads' raw outputs of all models, (M, n, c); `x` as in :meth:`transform`."""
        return self._evaluate(_Scored(self.encoder, self.head, self.bottleneck), x)

    def module(self, index: int) -> tuple[nn.Module, nn.Module]:
        """Return one model as plain modules (encoder, head), in evaluation mode, sharing no memory with the fleet.

        If directions of Z were cut (:meth:`cuts`), the encoder is a sequence of two modules: the one that was trained,
        and the :class:`~frhsic.training.bottleneck.Bottleneck`.
        """
        pair = copy.deepcopy(_Encoded(self.encoder, self.head, self.bottleneck))
        own = {name: values[index].detach().clone() for name, values in (self.parameters | self.buffers).items()}
        pair.load_state_dict(own)
        pair = pair.to(self.device).eval()
        if pair.bottleneck is None or not self.cuts(index):
            return pair.encoder, pair.head
        return nn.Sequential(pair.encoder, pair.bottleneck), pair.head

    def cuts(self, index: int) -> bool:
        """Return whether directions of a model's Z were cut: it was penalized, and there were enough rows."""
        return self.bottleneck is not None and self.members[index].weight > 0

    def select(self, indices: Sequence[int]) -> Fleet:
        """Return the fleet of some of the models, in the order given."""
        places = list(indices)
        if not places:
            raise ValueError("no indices came; a fleet has at least one model.")

        def selected(stacked: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: values[places] for name, values in stacked.items()}

        return replace(
            self,
            members=tuple(self.members[i] for i in places),
            parameters=selected(self.parameters),
            buffers=selected(self.buffers),
            penalty_state=selected(self.penalty_state),
            history=self.history.select(places),
            epochs_done=self.epochs_done[places],
            diverged=self.diverged[places],
        )

    def _evaluate(self, model: nn.Module, x: Tensor) -> Tensor:
        x = self._checked(x)
        model = model.eval()
        stacked = self.parameters | self.buffers
        splits = torch.tensor([m.split for m in self.members], device=self.device)
        width = max([x.shape[-1], *(values.shape[1] for values in self.parameters.values() if values.ndim > 1)])
        row_bytes = 4 * width * x.element_size()
        models = max(1, min(len(self), CHUNK_BYTES // (row_bytes * 1024)))
        rows = max(1, CHUNK_BYTES // (row_bytes * models))
        at_once = models if self.stackable else 1

        def one(state: dict[str, Tensor], part: Tensor) -> Tensor:
            values: Tensor = functional_call(model, state, (part,))
            return values

        def only(state: dict[str, Tensor], part: Tensor) -> Tensor:
            return one({name: values[0] for name, values in state.items()}, part[0] if x.ndim == 3 else part)[None]

        every = vmap(one, in_dims=(0, 0 if x.ndim == 3 else None)) if self.stackable else only
        of_models = []
        with torch.no_grad():
            for i in range(0, len(self), at_once):
                state = {name: values[i : i + at_once] for name, values in stacked.items()}
                of_rows = []
                for a in range(0, x.shape[-2], rows):
                    part = x[..., a : a + rows, :]
                    of_rows.append(every(state, part[splits[i : i + at_once]] if x.ndim == 3 else part))
                of_models.append(torch.cat(of_rows, dim=1))
        return torch.cat(of_models)

    def _checked(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor) or x.ndim not in (2, 3):
            shape = f"shape {tuple(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise ValueError(
                f"x is {shape}; pass a tensor of shape (n, d), or (D, n, d) with one set of rows per split."
            )
        most = max(m.split for m in self.members)
        if x.ndim == 3 and x.shape[0] <= most:
            raise ValueError(f"x holds {x.shape[0]} splits, but a model was trained on split {most} (counted from 0).")
        like = next(iter(self.parameters.values()))
        return x.to(device=like.device, dtype=like.dtype)


class _Encoded(nn.Module):
    """Representation of rows by encoder and bottleneck, under the names that parameters have in a fleet."""

    def __init__(self, encoder: nn.Module, head: nn.Module, bottleneck: nn.Module | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.bottleneck = bottleneck

    def forward(self, rows: Tensor) -> Tensor:
        z: Tensor = self.encoder(rows)
        return z if self.bottleneck is None else self.bottleneck(z)


class _Scored(_Encoded):
    """Raw output of the head for rows."""

    def forward(self, rows: Tensor) -> Tensor:
        scores: Tensor = self.head(super().forward(rows))
        return scores


def assembled(
    chunks: Sequence[EpochLog],
    order: Sequence[int],
    *,
    encoder: nn.Module,
    head: nn.Module,
    penalty: Penalty,
    seconds: float,
    interrupted: bool,
    stackable: bool,
) -> Fleet:
    """Join the models that were trained at once, in the caller's order; `order` has the place of each in it."""
    back = torch.tensor(order).argsort()
    states = [chunk.state for chunk in chunks]
    at = back.to(states[0].flat.device)

    def joined(stacked_of: Callable[[State], dict[str, Tensor]]) -> dict[str, Tensor]:
        stacked = [stacked_of(state) for state in states]
        return {name: torch.cat([tensors[name].detach() for tensors in stacked])[at] for name in stacked[0]}

    def rest(state: State) -> dict[str, Tensor]:
        together = state.layout.together
        return state.own | {name: values.repeat_interleave(together, dim=0) for name, values in state.shared.items()}

    others = joined(rest)
    history = torch.cat([chunk.history for chunk in chunks], dim=2).permute(2, 1, 0)[back]  # (M, 2, epochs)
    held_out = torch.cat([chunk.held_out for chunk in chunks], dim=1).T[back]  # (M, epochs)
    stopped = torch.cat([chunk.stopped for chunk in chunks], dim=1).T[back].cumsum(1) > 0
    before = stopped.roll(1, dims=1)  # epochs after a model's last
    before[:, 0] = False
    alive = torch.cat([chunk.alive for chunk in chunks], dim=1).T[back] | before
    diverged = torch.where(alive.all(1), -1, (~alive).int().argmax(1))
    closed = torch.cat([torch.full((len(chunk.state.layout.members),), chunk.closed) for chunk in chunks])[back]
    trained = alive & ~before
    best = [chunk.stopping.best_epoch.cpu() for chunk in chunks if chunk.stopping is not None]
    members = [member for state in states for member in state.layout.members]
    return Fleet(
        members=tuple(members[i] for i in back.tolist()),
        parameters=joined(lambda state: state.parameters(len(state.layout.members))),
        buffers={name: values for name, values in others.items() if not name.startswith("penalty.")},
        penalty_state={n.removeprefix("penalty."): v for n, v in others.items() if n.startswith("penalty.")},
        history=History(
            history[:, 0].masked_fill(~trained, torch.nan),
            history[:, 1].masked_fill(~trained, torch.nan),
            held_out.masked_fill(~trained, torch.nan) if best else None,
            torch.cat(best)[back] if best else None,
        ),
        epochs_done=torch.where(diverged >= 0, diverged, torch.minimum(closed, (~before).sum(1))),
        diverged=diverged,
        seconds=seconds,
        interrupted=interrupted,
        encoder=encoder,
        head=head,
        penalty=penalty,
        stackable=stackable,
    )


def warn_of_divergence(fleet: Fleet) -> None:
    """Warn once of the models that were stopped."""
    stopped = [i for i, epoch in enumerate(fleet.diverged.tolist()) if epoch >= 0]
    if not stopped:
        return
    listed = "; ".join(f"{fleet.members[i]} in epoch {int(fleet.diverged[i])}" for i in stopped[:5])
    more = f" and {len(stopped) - 5} more" if len(stopped) > 5 else ""
    warnings.warn(
        f"{len(stopped)} of {len(fleet)} models were stopped because their loss or gradient was not finite: "
        f"{listed}{more}. "
        "Their parameters are those before that epoch; a lower weight or learning rate may help.",
        DivergenceWarning,
        stacklevel=3,
    )
