"""One step of M models: gather, loss, gradient, Adam; on a GPU captured once and replayed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from frhsic.fleet.state import State
from frhsic.fleet.streams import batch_order

__all__ = ["Stepper", "losses"]

log = logging.getLogger(__name__)

PIECES = 32
"""Pieces of the parameters that the optimiser's one kernel on a GPU is given; it takes 36 at once."""

RECOMPILE_LIMIT = 256
"""Kinds of step (batch size, penalty, number of models) that one process compiles before it gives up."""

Stacked = dict[str, Tensor]
Losses = tuple[Tensor, Tensor, Tensor]


def losses(state: State, rows: Tensor, epoch: int | None, guarded: bool) -> Losses:
    """Return loss, task loss and penalty of every model, each (M,), of batches `rows` (G, m, columns).

    Models are independent, so the gradient of the sum of their losses holds the gradient of each. That leaves
    one transform, the forward `vmap`; the backward pass runs on stacked tensors as if they had been written so.
    """

    def one(trained: Stacked, own: Stacked, shared: Stacked, batch: Tensor, weight: Tensor) -> Losses:
        made: Losses = functional_call(state.model, {**trained, **own, **shared}, (batch, weight, epoch, guarded))
        return made

    own, shared, weight = state.own, state.shared, state.weight
    g, k = state.layout.groups, state.layout.together
    if g * k == 1:  # a fleet of one is the model itself
        return _flat(one(state.parameters(), _viewed(own), _viewed(shared), rows[0], weight.view(())))
    if g == 1:
        return _flat(vmap(one, (0, 0, None, None, 0))(state.parameters(k), own, _viewed(shared), rows[0], weight))
    if k == 1:
        return _flat(vmap(one)(state.parameters(g), own, shared, rows, weight))
    nested = vmap(vmap(one, (0, 0, None, None, 0)))
    return _flat(nested(state.parameters(g, k), _viewed(own, g, k), shared, rows, weight.view(g, k)))


def _viewed(stacked: Stacked, *lead: int) -> Stacked:
    """Return state (M, ...) with other leading sizes; with none, that of the only model."""
    return {name: values.view((*lead, *values.shape[1:])) for name, values in stacked.items()}


def _flat(found: Losses) -> Losses:
    total, task, penalty = found
    return total.flatten(), task.flatten(), penalty.flatten()


@dataclass
class Adam:
    r"""Adam (Kingma and Ba 2015), one step of all models at once.

    `weight_decay` w adds :math:`\tfrac w2 \|W\|^2` to what is minimised, over the weight matrices of the
    encoder: not over its biases, nor over the head, whose scale the loss alone decides.
    """

    learning_rate: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def step(self, state: State, gradient: Tensor) -> None:
        """Step every model in place, in one pass over the stacked parameters."""
        if self.weight_decay > 0:
            gradient.addcmul_(state.flat.detach(), state.decayed, value=self.weight_decay)
        flat = _pieces(state.flat.detach())
        state.steps.add_(1)
        torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls, without its bookkeeping in Python
            flat,
            _pieces(gradient),
            _pieces(state.first),
            _pieces(state.second),
            [],
            [state.steps] * len(flat),
            lr=self.learning_rate,
            beta1=self.beta1,
            beta2=self.beta2,
            weight_decay=0.0,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
        )


def _pieces(tensor: Tensor) -> list[Tensor]:
    """Cut a tensor for the optimiser's kernel, which on a GPU gives each piece to a few threads only."""
    if not tensor.is_cuda:
        return [tensor]
    length = 1024 * -(-tensor.numel() // (1024 * PIECES))  # whole multiples, so that pieces stay aligned
    return list(torch.split(tensor.reshape(-1), length))


class Stepper:
    """Takes the steps of a part of a fleet.

    The order of an epoch lies on the device and a pointer there says which rows come next, so that a step is
    the same work every time: on a GPU it is captured as a graph for each (batch size, does the penalty adapt)
    and replayed, and the host does nothing but launch.
    """

    def __init__(
        self,
        state: State,
        table: Tensor,
        rows: int,
        batch_size: int,
        adam: Adam,
        *,
        capture: bool = False,
        compile: bool = False,
    ) -> None:
        self.state = state
        self.table = table  # (D·n, columns)
        self.rows = rows
        self.adam = adam
        self.capture = capture
        self.compile = compile
        device = table.device
        self.guarded = any(member.weight == 0 for member in state.layout.members)
        full, rest = divmod(rows, batch_size)
        self.sizes = [batch_size] * full + [rest] * (rest > 0)
        self.order = torch.zeros(state.layout.groups, rows, dtype=torch.int64, device=device)
        self.first = torch.arange(self.sizes[0], device=device)
        self.coming = self.first.clone()  # where the next batch stands in the order
        self.ones = torch.ones_like(state.weight)
        self._steps: dict[tuple[int, bool], Callable[[], object]] = {}
        self._pool = torch.cuda.graph_pool_handle() if capture else None  # graphs replay in turn: one memory for all
        self._compiled: Callable[..., Losses] | None = None

    def begin(self, epoch: int) -> None:
        """Lay out the epoch's order, each group its own."""
        found: dict[tuple[int, int], Tensor] = {}
        for m in self.state.layout.leaders:
            if (m.seed, m.split) not in found:
                found[m.seed, m.split] = batch_order(m.seed, m.split, epoch, self.rows) + m.split * self.rows
        drawn = torch.stack([found[m.seed, m.split] for m in self.state.layout.leaders])
        if self.order.is_cuda:
            drawn = drawn.pin_memory()  # the copy below then waits for nothing
        self.order.copy_(drawn, non_blocking=True)
        self.coming.copy_(self.first)

    def epoch(self, epoch: int) -> None:
        """Take every step of an epoch."""
        self.begin(epoch)
        adapts = self.state.model.penalty.adapts(epoch)
        for size in self.sizes:
            self.step(size, epoch, adapts)

    def step(self, size: int, epoch: int, adapts: bool) -> None:
        """Take the next step, on the next `size` rows."""
        key = (size, adapts)
        if key not in self._steps:
            self._steps[key] = self._prepare(size, epoch if adapts else None)
        self._steps[key]()

    def _take(self, size: int, epoch: int | None, find: Callable[..., Losses]) -> None:
        state = self.state
        with torch.no_grad():
            at = self.order.index_select(1, self.coming[:size])  # (G, m)
            batch = self.table.index_select(0, at.flatten()).view(*at.shape, -1)  # (G, m, columns)
            self.coming.add_(size)
        total, task, penalty = find(state, batch, epoch, self.guarded)
        (gradient,) = torch.autograd.grad(total, state.flat, self.ones)  # (M, P)
        with torch.no_grad():
            self.adam.step(state, gradient)
            state.sums.add_(torch.stack([task.detach(), penalty.detach()]), alpha=size)

    def _prepare(self, size: int, epoch: int | None) -> Callable[[], object]:
        find = self._compiled_losses() if self.compile and epoch is None else losses

        def plain() -> None:
            self._take(size, epoch, find)

        if not self.capture:
            return plain
        try:
            return self._captured(plain)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning("the step could not be captured as a CUDA graph and runs uncaptured: %s", error)
            self.capture = False
            return plain

    def _captured(self, step: Callable[[], None]) -> Callable[[], object]:
        """Capture a step as a CUDA graph; the steps that this takes to warm up are undone."""
        changed = [*self.state.mutable(), self.coming]
        kept = [tensor.detach().clone() for tensor in changed]

        def restore() -> None:
            with torch.no_grad():
                for tensor, value in zip(changed, kept):
                    tensor.copy_(value)

        try:
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch left it untyped
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    step()
                    self.coming.copy_(self.first)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                step()
        finally:
            restore()
        return graph.replay

    def _compiled_losses(self) -> Callable[..., Losses]:
        if self._compiled is None:
            compiled = torch.compile(losses, dynamic=False)

            def or_plain(state: State, batch: Tensor, epoch: int | None, guarded: bool) -> Losses:
                try:
                    with torch._dynamo.config.patch(recompile_limit=RECOMPILE_LIMIT):
                        found: Losses = compiled(state, batch, epoch, guarded)
                    return found
                except torch._dynamo.exc.TorchDynamoException as error:
                    log.warning("the step could not be compiled and runs uncompiled: %s", error)
                    self._compiled = losses
                    return losses(state, batch, epoch, guarded)

            self._compiled = or_plain
        return self._compiled
