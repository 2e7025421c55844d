r"""Training: loop, step and forward pass of every method, for one model or many.

The paper gives its training algorithm in words (the paragraph *Implementation*, and *Training Details* in its
appendix). Here it is numbered, and the code below names its lines.

.. code-block:: text

    Algorithm 1. Input: rows (x, y, s), weight λ, encoder h, head f, loss ℓ, penalty.
    1   draw the initial weights θ of h and f; fit to the training rows of s what the penalty fixes (σ_S)
    2   for each epoch:
    3       for each mini-batch of m rows, in random order, the last partial one kept:
    4           z ← h(x)
    5           in the epochs in which the penalty adapts: refit it to (z, s) (σ_Z; an adversary's own step)
    6           loss ← (1/m) Σᵢ ℓ(f(zᵢ), yᵢ) + λ · penalty(z, s)
    7           g ← gradient of the loss in θ
    8           θ ← Adam(θ, g)
    9   return h and f

M models take each step at once: their parameters are stacked along a leading axis (:mod:`frhsic.fleet.state`).
"""

from __future__ import annotations

import copy
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.optim.adam import adam

from frhsic import _arrays
from frhsic.fleet.bottleneck import floored
from frhsic.fleet.data import Member, Purpose, TrainingData, batch_order, stream, stream_seed
from frhsic.fleet.execution import Execution, GraphCapture, chunks, compiled, saved_bytes, settings
from frhsic.fleet.progress import EpochLog, Pace, Watch, watching
from frhsic.fleet.randomness import Stream, may_draw, seeded
from frhsic.fleet.recipe import Recipe, Task, require_rows, row_losses
from frhsic.fleet.result import Fleet, assembled, warn_of_divergence
from frhsic.fleet.state import Layout, State, is_trained, pieces, unadapted
from frhsic.penalties.base import Penalty

log = logging.getLogger(__name__)

Stacked = dict[str, Tensor]
Losses = tuple[Tensor, Tensor, Tensor]
"""Loss, task loss and penalty."""


def train(
    data: TrainingData,
    members: Sequence[Member],
    recipe: Recipe,
    *,
    device: torch.device | str = "auto",
    progress: bool | Watch | None = None,
    execution: Execution = Execution(),
) -> Fleet:
    """Train the models of a fleet in lock-step, each on its own objective; see :class:`Recipe`.

    Initial weights and batch order are functions of a member's seed and split alone (:mod:`frhsic.fleet.data`). The
    same call on the same device gives the same numbers, bit for bit. In a fleet of another size a model agrees up to
    the rounding of sums in another order.

    Ctrl-C raises nothing here. It ends training and returns the fleet with ``interrupted=True``: running models go
    back to the end of their last whole epoch, and models that had not begun keep their initial weights; `epochs_done`
    says how far each came. The estimators turn this into a KeyboardInterrupt.

    Parameters
    ----------
    data : TrainingData
        Rows of all splits, moved to the device once.
    members : sequence of Member
        Weight λ, seed and split of each model.
    recipe : Recipe
        What each model learns.
    device : torch.device or str
        Device to train on. ``"auto"`` takes a GPU if there is one.
    progress : bool or callable
        True shows a bar on a terminal. A function is called with a :class:`Tick` about twice a second.
    execution : Execution
        How the fleet is run: memory, precision, threads, CUDA graphs.

    Returns
    -------
    Fleet
        The trained models, in the order of `members`.

    Examples
    --------
    >>> data = TrainingData.of(torch.randn(64, 3), torch.ones(64), torch.rand(64))
    >>> fleet = train(data, [Member(0.0), Member(1.0)], Recipe("binary", epochs=2), device="cpu")
    >>> fleet.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5, 1])
    """
    started = time.perf_counter()
    plan = Plan.of(data, members, recipe, device, execution)
    waiting, finished, interrupted = deque(plan.chunks()), [], False
    with watching(progress) as watch, settings(execution, plan.device):
        pace = Pace(watch, len(members), recipe.epochs)
        while waiting:
            chunk = waiting.popleft()
            draws = Stream(stream_seed(chunk[0].seed, chunk[0].split, Purpose.TRAINING), plan.device, plan.draws)
            trainer = Trainer(plan, chunk)  # line 1
            history = EpochLog(recipe.epochs, trainer.state, data.rows)
            try:
                for epoch in range(0 if interrupted else recipe.epochs):  # line 2
                    with draws.lent():
                        trainer.epoch(epoch)
                    history.close(epoch)
                    if not history.report(pace):
                        break
            except KeyboardInterrupt:
                interrupted = True
                trainer.state.restore()
            except torch.OutOfMemoryError:
                if len(chunk) == 1:
                    raise
                log.warning("%d models at once do not fit into memory; training them in two halves", len(chunk))
                waiting.extendleft([chunk[len(chunk) // 2 :], chunk[: len(chunk) // 2]])
                continue
            history.finish(pace)
            finished.append((trainer.model, history))
    model = finished[0][0]
    fleet = assembled(  # line 9
        [history for _, history in finished],
        plan.order,
        encoder=model.encoder,
        head=model.head,
        penalty=model.penalty,
        seconds=time.perf_counter() - started,
        interrupted=interrupted,
        stackable=not execution.sequential,
    )
    warn_of_divergence(fleet)
    return floored(fleet, data, recipe.variance_floor)


class Trainer:
    """Takes the steps of the models that are trained at once.

    The order of an epoch lies on the device, and a pointer there says which rows come next, so that a step is the same
    work every time. On a GPU a step is captured as a graph for each (batch size, does the penalty adapt) and replayed.
    """

    def __init__(self, plan: Plan, members: Sequence[Member]) -> None:
        layout = Layout.of(members)
        keys = [(leader.seed, leader.split) for leader in layout.leaders]
        models = {key: plan.model(*key) for key in dict.fromkeys(keys)}
        self.state = State.stacked(layout, [models[key] for key in keys], plan.shared, plan.device)
        self.model = models[keys[0]].to(plan.device)
        self.recipe = plan.recipe
        self.table = plan.table  # (D·n, columns)
        self.rows = plan.data.rows
        self.guarded = any(member.weight == 0 for member in members)
        full, rest = divmod(self.rows, self.recipe.batch_size)
        self.sizes = [self.recipe.batch_size] * full + [rest] * (rest > 0)
        self.order = torch.zeros(layout.groups, self.rows, dtype=torch.int64, device=plan.device)
        self.start = torch.arange(self.sizes[0], device=plan.device)
        self.next = self.start.clone()  # places of the next batch in the order
        self.ones = torch.ones_like(self.state.weight)
        self.captured = GraphCapture(plan.execution.capture and plan.device.type == "cuda")
        self.fast_losses = compiled(losses) if plan.execution.compile else losses
        self._steps: dict[tuple[int, bool], Callable[[], object]] = {}
        if len(members) > 1:
            _require_stackable(self.model, self.state, self.table[: min(self.sizes[0], 4)])

    def epoch(self, epoch: int) -> None:
        """Take every step of an epoch."""
        self.begin(epoch)
        adapts = self.model.penalty.adapts(epoch)
        for size in self.sizes:  # line 3
            self.step(size, epoch, adapts)

    def begin(self, epoch: int) -> None:
        """Draw the epoch's order of the rows, one for each group (line 3)."""
        keys = [(leader.seed, leader.split) for leader in self.state.layout.leaders]
        orders = {key: batch_order(*key, epoch, self.rows) + key[1] * self.rows for key in dict.fromkeys(keys)}
        order = torch.stack([orders[key] for key in keys])
        if self.order.is_cuda:
            order = order.pin_memory()  # the copy below then waits for nothing
        self.order.copy_(order, non_blocking=True)
        self.next.copy_(self.start)

    def step(self, size: int, epoch: int, adapts: bool) -> None:
        """Take the next step, on the next `size` rows: plainly, or by replaying its graph."""
        key = (size, adapts)
        if key not in self._steps:
            plain = partial(self._step, size, epoch if adapts else None)
            self._steps[key] = self.captured(plain, [*self.state.mutable(), self.next])
        self._steps[key]()

    def _step(self, size: int, adapt_epoch: int | None) -> None:
        state = self.state
        with torch.no_grad():
            at = self.order.index_select(1, self.next[:size])  # (G, m)
            batch = self.table.index_select(0, at.flatten()).view(*at.shape, -1)  # (G, m, columns)
            self.next.add_(size)
        of_batch = self.fast_losses if adapt_epoch is None else losses
        loss, task, penalty = of_batch(self.model, state, batch, adapt_epoch, self.guarded)  # lines 4 to 6
        (gradient,) = torch.autograd.grad(loss, state.flat, self.ones)  # line 7, (M, P)
        with torch.no_grad():
            self._update(gradient)  # line 8
            state.sums.add_(torch.stack([task.detach(), penalty.detach()]), alpha=size)

    def _update(self, gradient: Tensor) -> None:
        """Take one step of Adam (Kingma and Ba 2015) for all models at once, in place."""
        state, decay = self.state, self.recipe.weight_decay
        if decay > 0:
            gradient.addcmul_(state.flat.detach(), state.decayed, value=decay)
        adam(
            pieces(state.flat.detach()),
            pieces(gradient),
            pieces(state.first),
            pieces(state.second),
            [],
            list(state.steps),
            fused=True,
            amsgrad=False,
            maximize=False,
            lr=self.recipe.learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
        )


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

    def forward(self, rows: Tensor, weight: Tensor, adapt_epoch: int | None, guarded: bool) -> Losses:
        """Return loss, task loss and penalty of one batch; `adapt_epoch` is the epoch if the penalty adapts in it.

        `guarded` keeps a penalty of weight 0 out of the gradient, since 0 · NaN is NaN.
        """
        x, s, *targets = torch.split(rows, self.widths, dim=1)
        y, sample_weight = (part[:, 0] if part.shape[1] else None for part in targets)
        z = self.encoder(x)  # line 4, (m, dz)
        if adapt_epoch is not None:
            self.penalty.adapt(z.detach(), s, adapt_epoch)  # line 5
        scores = self.head(z)  # (m, c)
        of_rows = row_losses(self.task, scores, y, x)
        task = of_rows.mean() if sample_weight is None else (of_rows * sample_weight).mean()
        if not guarded:
            penalty = self.penalty(z, s, scores=scores, y=y)
            return task + weight * penalty, task, penalty  # line 6
        active = weight != 0
        z = torch.where(active, z, z.detach())
        scores = torch.where(active, scores, scores.detach())
        penalty = self.penalty(z, s, scores=scores, y=y)
        return task + torch.where(active, weight * penalty, 0), task, penalty  # line 6


def losses(model: Model, state: State, rows: Tensor, adapt_epoch: int | None, guarded: bool) -> Losses:
    """Run the forward pass of every model on batches `rows` (G, m, columns); each result is (M,).

    Models are independent, so the gradient of the sum of their losses holds the gradient of each. That leaves one
    transform, the forward `vmap`; the backward pass runs on stacked tensors.
    """

    def one(trained: Stacked, own: Stacked, shared: Stacked, batch: Tensor, weight: Tensor) -> Losses:
        result: Losses = functional_call(model, {**trained, **own, **shared}, (batch, weight, adapt_epoch, guarded))
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


@dataclass(frozen=True)
class Plan:
    """A training that is checked and ready to start."""

    data: TrainingData
    recipe: Recipe
    execution: Execution
    device: torch.device
    table: Tensor  # (D·n, columns), on the device
    members: tuple[Member, ...]  # sorted by (seed, split)
    order: tuple[int, ...]  # place of each of them in the caller's order
    outputs: int
    built: dict[tuple[int, int], Model]  # the first model, until it is used
    draws: bool  # whether a step may draw from torch's global generators
    shared: frozenset[str]  # state of the penalty that stays as `prepare` left it
    bytes_per_model: int  # memory of one model in a step

    @classmethod
    def of(
        cls, data: TrainingData, members: Sequence[Member], recipe: Recipe, place: str | torch.device, how: Execution
    ) -> Plan:
        """Check members and data, run the first model on one batch, and move the data to the device."""
        if not members:
            raise ValueError("no members came; pass at least one Member(weight, seed, split).")
        most = max(m.split for m in members)
        if most >= data.splits:
            raise ValueError(f"a member asks for split {most}, but the data hold {data.splits} (counted from 0).")
        device = _arrays.resolve_device(place)
        order = tuple(sorted(range(len(members)), key=lambda i: (members[i].seed, members[i].split)))
        first, outputs, table = members[order[0]], recipe.outputs(data), data.table()
        model = build_model(recipe, data, outputs, first.seed, first.split)
        with seeded():
            before = torch.get_rng_state()
            tried = _tried(model, table[: min(recipe.batch_size, data.rows)].cpu(), outputs, recipe.epochs)
            draws = may_draw(model, before)
        ready = {(first.seed, first.split): model}
        in_order = tuple(members[i] for i in order)
        return cls(data, recipe, how, device, table.to(device), in_order, order, outputs, ready, draws, *tried)

    def chunks(self) -> list[list[Member]]:
        """Return the members that are trained at once: all that fit into memory, or one after another."""
        if self.execution.sequential:
            return [[member] for member in self.members]
        return chunks(self.members, max(1, self.execution.bytes_at_once(self.device) // self.bytes_per_model))

    def model(self, seed: int, split: int) -> Model:
        """Return the model of a (seed, split) at its start; the first one is built already."""
        return self.built.pop((seed, split), None) or build_model(self.recipe, self.data, self.outputs, seed, split)


def build_model(recipe: Recipe, data: TrainingData, outputs: int, seed: int, split: int) -> Model:
    """Build a model on the CPU: initial weights from its stream, penalty fitted to its training rows (line 1)."""
    with seeded(stream_seed(seed, split, Purpose.WEIGHTS)):
        encoder, head, penalty = recipe.modules(data, outputs)
    if not penalty.prepared:
        penalty.prepare(data.s[split].cpu(), stream(seed, split, Purpose.PENALTY))
    return Model(encoder, head, penalty, recipe.task, data.widths).to(data.x.dtype).train()


def _tried(model: Model, rows: Tensor, outputs: int, epochs: int) -> tuple[frozenset[str], int]:
    """Run a copy of a model on one batch; return the state that `adapt` leaves alone and the bytes of a model.

    A model takes twice what its backward pass keeps, plus parameters, gradient and Adam's means.
    """
    model = copy.deepcopy(model)
    x, s, *_ = torch.split(rows, model.widths, dim=1)
    with torch.no_grad():
        z = model.encoder(x)
        scores = model.head(z)
    require_rows("head", scores, len(x))
    wider = model.task == "multiclass" and scores.shape[1] > outputs  # these rows may lack the last classes
    if scores.shape[1] != outputs and not wider:
        raise ValueError(f"the head gives {scores.shape[1]} outputs; task={model.task!r} needs {outputs}.")
    shared = frozenset(f"penalty.{name}" for name in unadapted(model.penalty, z, s, epochs))
    saved = saved_bytes(lambda: model(rows, torch.ones((), dtype=rows.dtype, device=rows.device), None, False))
    trained = sum(p.numel() for name, p in model.named_parameters() if is_trained(name, p))
    return shared, 2 * saved + 8 * trained * rows.element_size()


def _require_stackable(model: Model, state: State, rows: Tensor) -> None:
    """Raise, before anything is trained, if vmap does not admit the modules."""
    trial = copy.copy(state)
    trial.own = {name: values.clone() for name, values in state.own.items()}
    try:
        with torch.no_grad():
            losses(model, trial, rows.expand(state.layout.groups, -1, -1), None, False)
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            "encoder, head or penalty cannot be stacked: vmap does not admit it (dropout, and Python code that looks "
            "at a tensor's value, are the usual reasons). Pass sequential=True to train the models one after "
            f"another. PyTorch said: {error}"
        ) from error
