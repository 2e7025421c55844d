"""The plain training loop whose epochs are timed, and FREM as a loop over rows, with which the
published times were measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from frhsic._tensors import resolve_device
from frhsic.kernels import Gaussian
from frhsic.penalties import Penalty
from frhsic.penalties.base import Batch
from frhsic_paper.records import Record, hardware

BATCH = 256


class LoopedEIPM(Penalty):
    r"""FREM's penalty, computed one anchor at a time, with the term of the marginal recomputed for
    each anchor.

    .. math:: \frac1a \sum_{i=1}^{a} \sqrt{\max(w_i^\top K w_i - 2 w_i^\top K u + u^\top K u,\
        10^{-10})}

    It has the same value as :class:`~frhsic.penalties.EIPM`; the published times were measured with
    this loop.

    Examples
    --------
    >>> from frhsic.penalties import EIPM
    >>> z, s = torch.randn(8, 2), torch.rand(8)
    >>> looped = LoopedEIPM(scale_z=1.0, gamma=0.5)(z, s)
    >>> bool(torch.isclose(looped, EIPM(gamma=0.5, anchors=None)(z, s), atol=1e-5))
    True
    """

    def __init__(self, *, scale_z: float, gamma: float, anchors: int | None = None) -> None:
        super().__init__()
        self.kernel, self.gamma, self.anchors = Gaussian(scale_z), gamma, anchors

    def _value(self, batch: Batch) -> Tensor:
        k, m = self.kernel(batch.z, batch.z), batch.rows
        u = batch.z.new_full((m,), 1 / m)
        terms = []
        for i in range(m if self.anchors is None else min(self.anchors, m)):
            w = torch.exp(-(batch.s - batch.s[i]).square().sum(-1) / (2 * self.gamma**2))
            w = torch.cat([w[:i], w.new_zeros(1), w[i + 1 :]])
            w = w / w.sum()
            terms.append((w @ k @ w - 2 * (w @ k @ u) + u @ k @ u).clamp_min(1e-10).sqrt())
        return torch.stack(terms).mean()


@dataclass(frozen=True)
class Loop:
    """One model with its optimizer, trained on batches of 256 rows in the model's own random order.

    Attributes
    ----------
    encoder, head, penalty
        The model, on the device of the rows; the penalty is prepared.
    weight
        λ of the penalty.
    x, y, s
        Rows of a binary task.
    """

    encoder: nn.Module
    head: nn.Module
    penalty: Penalty
    weight: float
    x: Tensor
    y: Tensor
    s: Tensor

    @classmethod
    def start(
        cls,
        encoder: nn.Module,
        head: nn.Module,
        penalty: Penalty,
        weight: float,
        rows: tuple[Tensor, Tensor, Tensor],
    ) -> Loop:
        """Move a model to the device of the rows, and prepare its penalty."""
        x, y, s = rows
        s = s.reshape(len(s), -1)
        penalty.prepare(s, torch.Generator(device=s.device).manual_seed(0))
        return cls(encoder.to(x.device), head.to(x.device), penalty.to(x.device), weight, x, y, s)

    def epochs(self, count: int, clock: Callable[[], float]) -> list[float]:
        """Return the seconds that each epoch takes, measured with the given clock."""
        parameters = [*self.encoder.parameters(), *self.head.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=1e-3)
        seconds = []
        for epoch in range(count):
            started = clock()
            self._epoch(epoch, optimiser)
            seconds.append(clock() - started)
        return seconds

    def _epoch(self, epoch: int, optimiser: torch.optim.Optimizer) -> None:
        for rows in torch.split(torch.randperm(len(self.x), device=self.x.device), BATCH):
            x, y, s = self.x[rows], self.y[rows], self.s[rows]
            z = self.encoder(x)
            if self.penalty.adapts(epoch):
                self.penalty.adapt(z.detach(), s, epoch)
            scores = self.head(z)
            loss = functional.binary_cross_entropy_with_logits(scores[:, 0], y)
            loss = loss + self.weight * self.penalty(z, s, scores=scores, y=y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def plain_clock(device: torch.device) -> Callable[[], float]:
    """Return a clock that does not wait for the device; on a CPU it is the process time, which
    isn't affected by other processes.
    """
    return time.perf_counter if device.type == "cuda" else time.process_time


def synchronized_clock(device: torch.device) -> Callable[[], float]:
    """Return a clock that waits for the device."""
    if device.type != "cuda":
        return time.process_time

    def clock() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return clock


@dataclass(frozen=True)
class Timing:
    """How epochs are timed.

    Attributes
    ----------
    methods
        Penalties to time.
    clock
        Function that returns a clock for a device.
    models, epochs
        Number of fresh models, and of timed epochs of each.
    warm_up
        Number of untimed epochs of each model before the timed ones.
    averaged
        Number of epochs that are averaged into one number.
    """

    methods: tuple[str, ...]
    clock: Callable[[torch.device], Callable[[], float]]
    models: int = 1
    epochs: int = 1
    warm_up: int = 0
    averaged: int = 1

    @property
    def count(self) -> int:
        """Number of results for each method."""
        return self.models * self.epochs // self.averaged

    def records(self, start: Callable[[], Loop], device: torch.device) -> list[Record]:
        """Time the epochs of models that `start` returns; yield one record for each result."""
        seconds: list[float] = []
        with one_thread(device):
            for _ in range(self.models):
                seconds += start().epochs(self.warm_up + self.epochs, self.clock(device))[
                    self.warm_up :
                ]
        means = np.reshape(seconds, (-1, self.averaged)).mean(1).tolist()
        shared = {
            "task": "binary",
            "epochs": self.warm_up + self.epochs,
            "hardware": hardware(device),
        }
        return [
            {**shared, "repeat": repeat, "seconds": value} for repeat, value in enumerate(means)
        ]


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Compute on one thread of a CPU, which is fastest for small batches."""
    before = torch.get_num_threads()
    try:
        if device.type == "cpu":
            torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)


def devices(asked: str) -> list[str]:
    """Return the devices to time: the CPU and, if there is one and it isn't excluded, the GPU."""
    return ["cpu", "cuda"] if resolve_device(asked).type == "cuda" else ["cpu"]
