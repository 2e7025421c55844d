"""A penalty that goes on where it was: training in several calls prepares it only once."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic.penalties import Penalty
from frhsic.penalties.base import Batch

__all__ = ["Continued"]


class Continued(Penalty):
    """The penalty `inner` with its state as it is: :meth:`prepare` leaves scales, bins and adversaries alone.

    Examples
    --------
    >>> from frhsic.penalties import BinnedMMD
    >>> inner = BinnedMMD(bins=2)
    >>> inner.prepare(torch.tensor([0.0, 4.0]), torch.Generator())
    >>> Continued(inner).prepare(torch.tensor([100.0, 200.0]), torch.Generator())
    >>> inner.edges
    tensor([[2.]])
    """

    def __init__(self, inner: Penalty) -> None:
        super().__init__(condition=inner.condition, fewest=inner.fewest)
        self.inner = inner
        self.needs_scores = inner.needs_scores

    def prepare(self, s_train: Tensor, generator: torch.Generator) -> None:
        """Do nothing: what the first call fixed stays."""

    def adapts(self, epoch: int) -> bool:
        return self.inner.adapts(epoch)

    def adapt(self, z: Tensor, s: Tensor, epoch: int) -> None:
        self.inner.adapt(z, s, epoch)

    def forward(self, z: Tensor, s: Tensor, *, scores: Tensor | None = None, y: Tensor | None = None) -> Tensor:
        value: Tensor = self.inner(z, s, scores=scores, y=y)
        return value

    def _value(self, batch: Batch) -> Tensor:
        return self.inner._value(batch)
