r"""The training loop and the training step for every method, for one model or many.

The paper gives its training algorithm in words (the paragraph *Implementation*, and *Training
Details* in its appendix). In this docstring, the lines of the algorithm are numbered, and comments
in the code refer to these numbers.

.. code-block:: text

    Algorithm 1. Input: rows (x, y, s), weight λ, encoder h, head f, loss ℓ, penalty.
    1   draw the initial weights θ of h and f; prepare the penalty on the training
        rows of s (σ_S)
    2   for each epoch:
    3       for each mini-batch of m rows, in random order, the last partial one kept:
    4           z ← h(x)
    5           in the epochs in which the penalty adapts: refit it to (z, s) (σ_Z; an adversary's
                own step)
    6           loss ← (1/m) Σᵢ ℓ(f(zᵢ), yᵢ) + λ · penalty(z, s)
    7           g ← gradient of the loss in θ
    8           θ ← Adam(θ, g)
    9   return h and f

M models take each step together: their parameters are stacked along a leading axis
(:mod:`frhsic.training.model`).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import groupby
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from frhsic import _tensors
from frhsic.training.data import (
    Batches,
    Member,
    Purpose,
    TrainingData,
    batch_shapes,
    fork_generators,
    stream_seed,
)
from frhsic.training.model import FleetState, Model, losses, n_sharing, pieces, try_model
from frhsic.training.recipe import Recipe
from frhsic.training.result import Course, Fleet, assemble_fleet, floor_variance, warn_of_divergence

log = logging.getLogger(__name__)

ADAM: Any = {
    "fused": True,
    "amsgrad": False,
    "maximize": False,
    "weight_decay": 0.0,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
}

# Bytes of the models trained at once on a CPU: they should fit into the cache, since more models
# take longer per model.
CPU_BUDGET = 64 * 2**20

# Share of the free GPU memory that a fleet may take.
CUDA_SHARE = 0.8

# Fewest rows with S in a whole batch: with fewer, an unbiased HSIC is not defined.
LEAST_LABELLED = 4

# Number of epochs that the host launches before it waits for the GPU.
EPOCHS_AHEAD = 4


def train(
    data: TrainingData,
    members: Sequence[Member],
    recipe: Recipe,
    *,
    device: torch.device | str = "auto",
    progress: Callable[[float], object] | None = None,
) -> Fleet:
    """Train the models of a fleet in lock-step, each on its own objective; see :class:`Recipe`.

    Initial weights and batch order depend only on a member's seed and split
    (:mod:`frhsic.training.data`). The same call on the same device gives the same numbers, bit for
    bit. In a fleet of a different size, results differ by rounding errors, because sums are
    computed in a different order. If training models together fails, because they do not fit into
    memory or because `vmap` does not support their modules (such as dropout), the fleet is split in
    half repeatedly, down to single models.

    Parameters
    ----------
    data : TrainingData
        Rows of all splits, which are moved to the device once.
    members : sequence of Member
        Weight λ, seed and split of each model.
    recipe : Recipe
        What each model learns.
    device : torch.device or str
        Device to train on. ``"auto"`` uses a GPU if there is one.
    progress : callable, optional
        Called every few epochs with the completed share of the training, from 0 to 1.

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
    place = _tensors.resolve_device(device)
    _check(data, members, recipe)
    order = sorted(range(len(members)), key=lambda i: (members[i].seed, members[i].split))
    courses: list[Course] = []
    with settings(place):
        first = Model.initial(recipe, data, members[order[0]].seed, members[order[0]].split)
        trial = try_model(first, recipe, data)
        rows = data.table().to(place)
        held_out = None if data.held_out is None else data.held_out.table().to(place)
        at_once = models_at_once(place, trial.bytes)

        def trained(chunk: Sequence[Member]) -> Course:
            before = sum(len(course.state.members) for course in courses)

            def report(share: float) -> None:
                if progress is not None:
                    progress((before + len(chunk) * share) / len(members))

            trainer = Trainer(data, rows, held_out, chunk, recipe)
            # modules such as dropout draw from the global generators while they are trained
            seed = stream_seed(chunk[0].seed, chunk[0].split, Purpose.TRAINING)
            with fork_generators(seed, private=False) if trial.draws else nullcontext():
                return trainer.run(report)

        def train_in_parts(chunk: Sequence[Member]) -> None:
            try:
                courses.append(trained(chunk))
                return
            except RuntimeError as error:  # out of memory, or modules that vmap does not support
                if len(chunk) == 1:
                    raise
                log.warning("training %d models in two halves, after: %s", len(chunk), error)
            half = len(chunk) // 2
            train_in_parts(chunk[:half])
            train_in_parts(chunk[half:])

        for chunk in chunks([members[i] for i in order], at_once):
            train_in_parts(chunk)
        fleet = assemble_fleet(courses, order, first.to(place))  # line 9
        fleet = floor_variance(fleet, data, recipe.floor(first.penalty))
    warn_of_divergence(fleet)
    return replace(fleet, seconds=time.perf_counter() - started)


def _check(data: TrainingData, members: Sequence[Member], recipe: Recipe) -> None:
    if not members:
        raise ValueError("got no members; pass at least one Member(penalty_weight, seed, split).")
    most = max(m.split for m in members)
    if most >= data.splits:
        raise ValueError(
            f"a member uses split {most}, but the data have only {data.splits} splits; splits"
            " are counted from 0."
        )
    size, labelled = batch_shapes(data, recipe.batch_size)[0]
    if recipe.penalty is not None and labelled < min(size, LEAST_LABELLED):
        raise ValueError(
            f"a batch of {size} rows has S for only {labelled} rows, but at least"
            f" {LEAST_LABELLED} are needed; raise batch_size."
        )


class Trainer:
    """Runs the training steps of models that are trained together.

    On a GPU, steps are captured as graphs and replayed: one graph for each batch shape, with and
    without adapting the penalty.
    """

    def __init__(
        self,
        data: TrainingData,
        rows: Tensor,  # tables of training and held-out rows on the device
        held_out: Tensor | None,
        members: Sequence[Member],
        recipe: Recipe,
    ) -> None:
        keys = [(leader.seed, leader.split) for leader in members[:: n_sharing(members)]]
        models = {key: Model.initial(recipe, data, *key) for key in dict.fromkeys(keys)}  # line 1
        self.state = FleetState(members, [models[key] for key in keys], rows.device)
        self.model = models[keys[0]].to(rows.device)
        self.model.guarded = any(member.penalty_weight == 0 for member in members)
        self.recipe = recipe
        self.decay = recipe.decay(self.model.penalty)
        self.epochs = recipe.epochs_on(data.rows)
        self.batches = Batches(data, rows, keys, recipe.batch_size)
        self.held_out: Batches | None = None
        if data.held_out is not None and held_out is not None:
            self.held_out = Batches(
                data.held_out, held_out, keys, recipe.batch_size, Purpose.HELD_OUT
            )
            self.held_out.shuffle(0)
        # (M,) summed over the held-out rows so far
        self.objective = torch.zeros_like(self.state.weight)
        self.ones = torch.ones_like(self.state.weight)
        self.captured = GraphCapture(rows.is_cuda)
        self.step_size: float | Tensor = recipe.learning_rate
        if rows.is_cuda and recipe.schedule != "constant":
            self.step_size = torch.zeros((), device=rows.device)  # captured steps read it
        self._steps: dict[tuple[object, ...], Callable[[], object]] = {}

    def run(self, report: Callable[[float], None]) -> Course:
        """Train for all epochs, or until every model has stopped; return the models with their
        history.

        `report` is called with the completed share of epochs.
        """
        objective = None if self.held_out is None else self.held_out_objective
        course = Course(self.state, self.epochs, self.recipe.patience, objective)
        every = EPOCHS_AHEAD if self.state.flat.is_cuda else 1
        for epoch in range(self.epochs):  # line 2
            self.epoch(epoch)
            course.note(epoch, self.batches.rows)
            if (epoch + 1) % every == 0:
                if not bool(course.running.any()):  # waits for a GPU
                    break
                report((epoch + 1) / self.epochs)
        if course.best:
            self.state.restore(course.best)
        report(1.0)
        return course

    def epoch(self, epoch: int) -> None:
        """Take all steps of an epoch."""
        self.batches.shuffle(epoch)
        size = self.recipe.step_size(epoch, self.epochs)
        if isinstance(self.step_size, Tensor):
            self.step_size.fill_(size)
        else:
            self.step_size = size
        adapts = self.model.penalty.adapts(epoch)
        for shape in self.batches.shapes:  # line 3
            changed = [*self.state.mutable(), self.batches.next]
            self._taken(
                (*shape, adapts), partial(self._step, *shape, epoch if adapts else None), changed
            )

    def _taken(
        self, key: tuple[object, ...], step: Callable[[], None], changed: Sequence[Tensor]
    ) -> None:
        """Take a step directly, or by replaying its graph, which is captured when the step is first
        taken.
        """
        if key not in self._steps:
            self._steps[key] = self.captured(step, changed)
        self._steps[key]()

    def _step(self, size: int, labelled: int, adapt_epoch: int | None) -> None:
        state = self.state
        batch = self.batches.take(size)
        result = losses(self.model, state, batch, adapt_epoch, labelled)  # lines 4 to 6
        (gradient,) = torch.autograd.grad(result.loss, state.flat, self.ones)  # line 7, (M, P)
        with torch.no_grad():
            self._update(gradient)  # line 8
            state.sums.add_(torch.stack([result.task, result.penalty]), alpha=size)

    def held_out_objective(self) -> Tensor:
        """Return task loss + λ · penalty of each model on the held-out rows, (M,), as a mean over
        batches that is weighted by their numbers of rows.
        """
        assert self.held_out is not None
        self.model.eval()
        self.held_out.rewind()
        self.objective.zero_()
        for shape in self.held_out.shapes:
            self._taken(
                ("held out", *shape),
                partial(self._measure, *shape),
                [self.objective, self.held_out.next],
            )
        self.model.train()
        return self.objective / self.held_out.rows

    @torch.no_grad()
    def _measure(self, size: int, labelled: int) -> None:
        assert self.held_out is not None
        result = losses(self.model, self.state, self.held_out.take(size), None, labelled)
        self.objective.add_(result.loss, alpha=size)

    def _update(self, gradient: Tensor) -> None:
        """Take one step of Adam (Kingma and Ba 2015) for all models at once, in place."""
        state = self.state
        if self.decay > 0:
            gradient.addcmul_(state.flat.detach(), state.decayed, value=self.decay)
        adam(
            pieces(state.flat.detach()),
            pieces(gradient),
            exp_avgs=pieces(state.first),
            exp_avg_sqs=pieces(state.second),
            max_exp_avg_sqs=[],
            state_steps=list(state.steps),
            lr=self.step_size,
            **ADAM,
        )


# Held by the thread that trains on a GPU: two threads cannot capture graphs at once.
_GPU = Lock()


@contextmanager
def settings(device: torch.device) -> Iterator[None]:
    """Context that sets threads, precision and gradients for training, and restores them
    afterwards; on a GPU, it waits until other threads have finished training.

    One thread is fastest, because batches are small.
    """
    threads = torch.get_num_threads()
    precision = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        with torch.inference_mode(False), torch.enable_grad():
            if device.type == "cuda":
                with _GPU, torch.cuda.device(device):
                    yield
            else:
                torch.set_num_threads(1)
                yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


def models_at_once(device: torch.device, bytes_per_model: int) -> int:
    """Return how many models to train together: as many as fit into memory or, on a CPU, into the
    cache.
    """
    budget = CPU_BUDGET
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        budget = int(CUDA_SHARE * (torch.cuda.mem_get_info(device)[0] + unused))
    return max(1, budget // bytes_per_model)


def chunks(members: Sequence[Member], at_once: int) -> list[list[Member]]:
    """Split members, sorted by (seed, split), into chunks of at most `at_once`; keep members with
    the same (seed, split) together.
    """
    cut: list[list[Member]] = [[]]
    for _, neighbours in groupby(members, lambda member: (member.seed, member.split)):
        group = list(neighbours)
        count = math.ceil(len(group) / at_once)
        size = math.ceil(len(group) / count)
        for start in range(0, len(group), size):
            piece = group[start : start + size]
            if len(cut[-1]) + len(piece) > at_once:
                cut.append([])
            cut[-1].extend(piece)
    return [chunk for chunk in cut if chunk]


class GraphCapture:
    """Captures steps as CUDA graphs with one memory pool; steps that cannot be captured run
    normally.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        if enabled:  # graphs are replayed in turn and share memory and stream
            self.pool = torch.cuda.graph_pool_handle()
            self.side = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def __call__(self, step: Callable[[], None], changed: Sequence[Tensor]) -> Callable[[], object]:
        """Return the step as a graph to replay; `changed` contains all tensors that the step
        changes.
        """
        if not self.enabled:
            return step
        try:
            return self._captured(step, changed)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning(
                "the step could not be captured as a CUDA graph and runs uncaptured: %s", error
            )
            self.enabled = False
            return step

    def _captured(
        self, step: Callable[[], None], changed: Sequence[Tensor]
    ) -> Callable[[], object]:
        before = [tensor.detach().clone() for tensor in changed]

        @torch.no_grad()
        def undo() -> None:
            for tensor, value in zip(changed, before):
                tensor.copy_(value)

        try:
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                for _ in range(3):  # warm-up steps, which a capture needs
                    step()
                    undo()
            torch.cuda.current_stream().wait_stream(self.side)
            graph = torch.cuda.CUDAGraph()
            # per thread: other threads may use the GPU in the meantime, for example to predict
            with torch.cuda.graph(
                graph, pool=self.pool, stream=self.side, capture_error_mode="thread_local"
            ):
                step()
        finally:
            undo()
        return graph.replay
