"""What training a fleet gives: stacked parameters, their history, and predictions of all models at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from frhsic.fleet.data import Member
from frhsic.penalties.base import Penalty

__all__ = ["Fleet", "History"]

CHUNK_BYTES = 256 * 2**20
"""Predictions are computed in pieces whose widest layer stays below about this many bytes."""


@dataclass(frozen=True)
class History:
    """Means over the rows of each epoch, per model: (M, epochs). NaN where a model no longer ran."""

    task_loss: Tensor
    penalty: Tensor


@dataclass(frozen=True)
class Fleet:
    """M trained models.

    Attributes
    ----------
    members : tuple of Member
        One for each model, in the order that was asked for.
    parameters, buffers : dict of str to Tensor
        Stacked along the first axis, named as in the modules: ``encoder.0.weight`` is (M, ...). Those of a floor under
        the variance of Z are ``bottleneck.mean`` and so on.
    penalty_state : dict of str to Tensor
        The penalty's own tensors at the end, stacked likewise.
    history : History
        Task loss and penalty of every model in every epoch.
    epochs_done : Tensor
        Whole epochs that each model was trained for, (M,); its parameters are those at their end.
    diverged : Tensor
        Epoch in which a model's loss or parameters ceased to be finite, −1 where they never did, (M,). Such a
        model keeps the parameters it had before that epoch.
    seconds : float
        Wall-clock time of training.
    interrupted : bool
        Whether training was stopped from the keyboard.
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
            Rows for every model, (n, d), or one set of rows for each split, (D, n, d), of which a model gets
            its own split's.
        """
        return self._evaluate(lambda model, rows: model.represented(rows), x)

    def scores(self, x: Tensor) -> Tensor:
        """Return the heads' raw outputs of all models, (M, n, c); `x` as in :meth:`transform`."""
        return self._evaluate(lambda model, rows: model.head(model.represented(rows)), x)

    def module(self, index: int) -> tuple[nn.Module, nn.Module]:
        """Return one model as plain modules (encoder, head), in evaluation mode, sharing no memory with the fleet.

        Where directions of Z were cut (:meth:`cuts`) the encoder is two modules in a row: what was trained, and the
        :class:`~frhsic.fleet.bottleneck.Bottleneck`.
        """
        pair = copy.deepcopy(_Pair(self.encoder, self.head, self.bottleneck))
        own = {name: values[index].detach().clone() for name, values in (self.parameters | self.buffers).items()}
        pair.load_state_dict(own)
        pair = pair.to(self.device).eval()
        if pair.bottleneck is None or not self.cuts(index):
            return pair.encoder, pair.head
        return nn.Sequential(pair.encoder, pair.bottleneck), pair.head

    def cuts(self, index: int) -> bool:
        """Return whether a floor was put under the variance of a model's Z: it was penalised, and had rows enough."""
        return self.bottleneck is not None and self.members[index].weight > 0

    def select(self, indices: Sequence[int]) -> Fleet:
        """Return the fleet of some of the models, in the order given."""
        at = list(indices)
        if not at:
            raise ValueError("no indices came; a fleet has at least one model.")
        where = torch.tensor(at)

        def of(stacked: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: values[where.to(values.device)] for name, values in stacked.items()}

        return replace(
            self,
            members=tuple(self.members[i] for i in at),
            parameters=of(self.parameters),
            buffers=of(self.buffers),
            penalty_state=of(self.penalty_state),
            history=History(self.history.task_loss[where], self.history.penalty[where]),
            epochs_done=self.epochs_done[where],
            diverged=self.diverged[where],
        )

    def _evaluate(self, of: Callable[[_Pair, Tensor], Tensor], x: Tensor) -> Tensor:
        x = self._checked(x)
        pair = _Pair(self.encoder, self.head, self.bottleneck).eval()
        stacked = self.parameters | self.buffers
        splits = torch.tensor([m.split for m in self.members], device=self.device)
        width = max([x.shape[-1], *(values.shape[1] for values in self.parameters.values() if values.ndim > 1)])
        row_bytes = 4 * width * x.element_size()
        models = max(1, min(len(self), CHUNK_BYTES // (row_bytes * 1024)))
        rows = max(1, CHUNK_BYTES // (row_bytes * models))

        def one(state: dict[str, Tensor], part: Tensor) -> Tensor:
            made: Tensor = functional_call(_Applied(pair, of), {f"pair.{n}": v for n, v in state.items()}, (part,))
            return made

        pieces_of_all = []
        with torch.no_grad():
            for i in range(0, len(self), models if self.stackable else 1):
                j = i + (models if self.stackable else 1)
                state = {name: values[i:j] for name, values in stacked.items()}
                pieces = []
                for a in range(0, x.shape[-2], rows):
                    part = x[..., a : a + rows, :]
                    own = part[splits[i:j]] if x.ndim == 3 else part
                    if self.stackable:
                        pieces.append(vmap(one, in_dims=(0, 0 if x.ndim == 3 else None))(state, own))
                    else:
                        only = {name: values[0] for name, values in state.items()}
                        pieces.append(one(only, own[0] if x.ndim == 3 else own)[None])
                pieces_of_all.append(torch.cat(pieces, dim=1))
        return torch.cat(pieces_of_all)

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


class _Pair(nn.Module):
    """Encoder, bottleneck and head under the names their parameters carry in a fleet."""

    def __init__(self, encoder: nn.Module, head: nn.Module, bottleneck: nn.Module | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.bottleneck = bottleneck

    def represented(self, rows: Tensor) -> Tensor:
        """Return Z."""
        z: Tensor = self.encoder(rows)
        return z if self.bottleneck is None else self.bottleneck(z)


class _Applied(nn.Module):
    """A function of a pair as a module, which is what functional_call takes."""

    def __init__(self, pair: _Pair, of: Callable[[_Pair, Tensor], Tensor]) -> None:
        super().__init__()
        self.pair = pair
        self.of = of

    def forward(self, rows: Tensor) -> Tensor:
        return self.of(self.pair, rows)
