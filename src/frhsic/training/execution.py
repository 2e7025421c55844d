"""How a fleet is run: settings of the process, models that fit into memory, steps as CUDA graphs, and progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from threading import Lock

import torch
from torch import Tensor

from frhsic.training.data import Member

log = logging.getLogger(__name__)

# Bytes of the models trained at once on a CPU: what stays in cache, since more is slower per model.
CPU_BUDGET = 64 * 2**20

# Share of the free GPU memory that a fleet may take.
CUDA_SHARE = 0.8

# Least number of seconds between two ticks.
EVERY = 0.5


# Held by the training that a GPU is busy with: two threads cannot capture graphs at once.
_GPU = Lock()


@contextmanager
def settings(device: torch.device) -> Iterator[None]:
    """Set threads, precision and gradients for the training alone; on a GPU, wait until other threads have trained.

    Batches are small, and one thread is fastest.
    """
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
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
    """Return how many models are trained at once: as many as fit into memory, or on a CPU into its cache."""
    budget = CPU_BUDGET
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        budget = int(CUDA_SHARE * (torch.cuda.mem_get_info(device)[0] + unused))
    return max(1, budget // bytes_per_model)


def chunks(members: Sequence[Member], at_once: int) -> list[list[Member]]:
    """Cut members, sorted by (seed, split), into chunks of at most `at_once`; keep equal (seed, split) together."""
    cut: list[list[Member]] = [[]]
    for _, sharing in groupby(members, lambda member: (member.seed, member.split)):
        group = list(sharing)
        pieces = -(-len(group) // at_once)
        size = -(-len(group) // pieces)
        for start in range(0, len(group), size):
            piece = group[start : start + size]
            if len(cut[-1]) + len(piece) > at_once:
                cut.append([])
            cut[-1].extend(piece)
    return [chunk for chunk in cut if chunk]


class GraphCapture:
    """Captures steps as CUDA graphs with one memory pool; a step that cannot be captured runs as it is."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        if enabled:  # graphs replay in turn: one memory for all, and one stream
            self.pool = torch.cuda.graph_pool_handle()
            self.side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch left it untyped

    def __call__(self, step: Callable[[], None], changed: Sequence[Tensor]) -> Callable[[], object]:
        """Return the step as a graph to replay; `changed` are all tensors that it changes."""
        if not self.enabled:
            return step
        try:
            return self._captured(step, changed)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning("the step could not be captured as a CUDA graph and runs uncaptured: %s", error)
            self.enabled = False
            return step

    def _captured(self, step: Callable[[], None], changed: Sequence[Tensor]) -> Callable[[], object]:
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
            # by thread: what others do on the GPU meanwhile, such as predict, is no error
            with torch.cuda.graph(graph, pool=self.pool, stream=self.side, capture_error_mode="thread_local"):
                step()
        finally:
            undo()
        return graph.replay


@dataclass(frozen=True)
class Tick:
    """How far a training is."""

    models: int
    epoch: int  # counted evenly over the chunks of a fleet, so that it runs from 0 to `epochs`
    epochs: int
    seconds_left: float


class Pace:
    """Sends ticks to a watcher: at most one in half a second, and always the last."""

    def __init__(self, watch: Callable[[Tick], None] | None, models: int, epochs: int) -> None:
        self.watch, self.models, self.epochs = watch, models, epochs
        self.started, self.sent = time.perf_counter(), -float("inf")
        self.finished = 0  # models of finished chunks

    def send(self, epoch: int, models: int) -> None:
        """Send a tick if one is due, after some epochs of a chunk."""
        done = (self.finished + models * epoch / self.epochs) / self.models
        if self.watch is not None and (done == 1 or time.perf_counter() - self.sent >= EVERY):
            self.sent = time.perf_counter()
            left = (self.sent - self.started) * (1 - done) / done
            self.watch(Tick(self.models, round(done * self.epochs), self.epochs, left))
