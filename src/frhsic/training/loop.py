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

M models take each step at once: their parameters are stacked along a leading axis (:mod:`frhsic.training.state`).
"""

from __future__ import annotations

import copy
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.optim.adam import adam

from frhsic.training.batches import Batches
from frhsic.training.bottleneck import floored
from frhsic.training.data import Member, Purpose, TrainingData, stream_seed
from frhsic.training.execution import Execution, GraphCapture, compiled, settings
from frhsic.training.forward import Model, losses
from frhsic.training.plan import Plan
from frhsic.training.progress import EpochLog, Pace, Watch, watching
from frhsic.training.randomness import Stream
from frhsic.training.recipe import Recipe
from frhsic.training.result import Fleet, assembled, warn_of_divergence
from frhsic.training.state import Layout, State, pieces
from frhsic.training.stopping import EarlyStopping

log = logging.getLogger(__name__)


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

    Initial weights and batch order are functions of a member's seed and split alone (:mod:`frhsic.training.data`). The
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
            stopping = None
            if data.held_out is not None:
                stopping = EarlyStopping(trainer.state, recipe.patience, trainer.held_out_objective)
            history = EpochLog(recipe.epochs, trainer.state, data.rows, stopping)
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

    On a GPU a step is captured as a graph for each (shape of the batch, does the penalty adapt) and replayed.
    """

    def __init__(self, plan: Plan, members: Sequence[Member]) -> None:
        layout = Layout.of(members)
        keys = [(leader.seed, leader.split) for leader in layout.leaders]
        models = {key: plan.model(*key) for key in dict.fromkeys(keys)}
        self.state = State.stacked(layout, [models[key] for key in keys], plan.shared, plan.device)
        self.model = models[keys[0]].to(plan.device)
        self.recipe = plan.recipe
        self.guarded = any(member.weight == 0 for member in members)
        self.batches = Batches(plan.data, plan.table, layout, self.recipe.batch_size)
        self.held_out: Batches | None = None
        if plan.data.held_out is not None and plan.held_out is not None:
            held_out = plan.data.held_out, plan.held_out
            self.held_out = Batches(*held_out, layout, self.recipe.batch_size, Purpose.HELD_OUT)
            self.held_out.shuffle(0)
        self.objective = torch.zeros_like(self.state.weight)  # (M,) summed over the held-out rows so far
        self.ones = torch.ones_like(self.state.weight)
        self.captured = GraphCapture(plan.execution.capture and plan.device.type == "cuda")
        self.fast_losses = compiled(losses) if plan.execution.compile else losses
        self.step_size: float | Tensor = self.recipe.learning_rate
        if plan.device.type == "cuda" and self.recipe.schedule != "constant":
            self.step_size = torch.zeros((), device=plan.device)  # a captured step reads it anew
        self._steps: dict[tuple[object, ...], Callable[[], object]] = {}
        if len(members) > 1:
            size, labelled = self.batches.shapes[0]
            rows = min(size, 4)
            few = None if labelled is None else min(labelled, rows)
            _require_stackable(self.model, self.state, self.batches.table[:rows], few)

    def epoch(self, epoch: int) -> None:
        """Take every step of an epoch."""
        self.begin(epoch)
        adapts = self.model.penalty.adapts(epoch)
        for size, labelled in self.batches.shapes:  # line 3
            self.step(size, epoch, adapts, labelled)

    def begin(self, epoch: int) -> None:
        """Draw the epoch's order of the rows and set its step size."""
        self.batches.shuffle(epoch)
        if isinstance(self.step_size, Tensor):
            self.step_size.fill_(self.recipe.step_size(epoch))
        else:
            self.step_size = self.recipe.step_size(epoch)

    def step(self, size: int, epoch: int, adapts: bool, labelled: int | None = None) -> None:
        """Take the next step, on the next `size` rows: plainly, or by replaying its graph."""
        key = (size, labelled, adapts)
        if key not in self._steps:
            plain = partial(self._step, size, labelled, epoch if adapts else None)
            self._steps[key] = self.captured(plain, [*self.state.mutable(), self.batches.next])
        self._steps[key]()

    def _step(self, size: int, labelled: int | None, adapt_epoch: int | None) -> None:
        state, batch = self.state, self.batches.take(size)
        of_batch = self.fast_losses if adapt_epoch is None else losses
        loss, task, penalty = of_batch(self.model, state, batch, adapt_epoch, self.guarded, labelled)  # lines 4 to 6
        (gradient,) = torch.autograd.grad(loss, state.flat, self.ones)  # line 7, (M, P)
        with torch.no_grad():
            self._update(gradient)  # line 8
            state.sums.add_(torch.stack([task.detach(), penalty.detach()]), alpha=size)

    def held_out_objective(self) -> Tensor:
        """Return task loss + λ · penalty of each model on the held-out rows, (M,): the mean over batches by rows."""
        assert self.held_out is not None
        self.model.eval()
        self.held_out.rewind()
        self.objective.zero_()
        for shape in self.held_out.shapes:
            key = ("held out", *shape)
            if key not in self._steps:
                changed = [self.objective, self.held_out.next]
                self._steps[key] = self.captured(partial(self._measure, *shape), changed)
            self._steps[key]()
        self.model.train()
        return self.objective / self.held_out.rows

    @torch.no_grad()
    def _measure(self, size: int, labelled: int | None) -> None:
        assert self.held_out is not None
        loss, *_ = losses(self.model, self.state, self.held_out.take(size), None, self.guarded, labelled)
        self.objective.add_(loss, alpha=size)

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
            lr=self.step_size,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
        )


def _require_stackable(model: Model, state: State, rows: Tensor, labelled: int | None) -> None:
    """Raise, before anything is trained, if vmap does not admit the modules."""
    trial = copy.copy(state)
    trial.own = {name: values.clone() for name, values in state.own.items()}
    try:
        with torch.no_grad():
            losses(model, trial, rows.expand(state.layout.groups, -1, -1), None, False, labelled)
    except RuntimeError as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(
            "encoder, head or penalty cannot be stacked: vmap does not admit it (dropout, and Python code that looks "
            "at a tensor's value, are the usual reasons). Pass sequential=True to train the models one after "
            f"another. PyTorch said: {error}"
        ) from error
