"""How a fleet is run: threads and precision, models that fit into memory, and steps as CUDA graphs or compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import Literal, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from frhsic.training.data import Member

log = logging.getLogger(__name__)

CPU_BUDGET = 64 * 2**20
"""Bytes of the models trained at once on a CPU: what stays in cache, since more is slower per model."""

CUDA_SHARE = 0.8
"""Share of the free GPU memory that a fleet may take."""

RECOMPILE_LIMIT = 256
"""Kinds of step (batch size, penalty, number of models) that one process compiles before it stops compiling."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Execution:
    """How a fleet is run. Nothing here changes what is learned, beyond rounding.

    Parameters
    ----------
    sequential : bool
        Train one model after another, for modules that `vmap` does not admit, such as dropout.
    capture : bool
        On a GPU, capture a step as a CUDA graph once and replay it.
    compile : bool
        Fuse the step with ``torch.compile``, which takes a while to start.
    precision : {"float32", "tf32"}
        Precision of matrix products on a GPU.
    memory_budget : int, optional
        Bytes that the models trained at once may take. A larger fleet is cut into chunks, with the same results. By
        default 80 % of the free GPU memory, or on a CPU what stays in cache.
    threads : int, optional
        CPU threads during training. None leaves the number as it is. Batches are small, and one thread is fastest.
    """

    sequential: bool = False
    capture: bool = True
    compile: bool = False
    precision: Literal["float32", "tf32"] = "float32"
    memory_budget: int | None = None
    threads: int | None = 1

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "tf32"):
            raise ValueError(f"precision is {self.precision!r}; choose 'float32' or 'tf32'.")
        if self.memory_budget is not None and self.memory_budget < 1:
            raise ValueError(f"memory_budget is {self.memory_budget}; pass a positive number of bytes.")

    def bytes_at_once(self, device: torch.device) -> int:
        """Return the bytes that the models trained at once may take on a device."""
        if self.memory_budget is not None:
            return self.memory_budget
        if device.type != "cuda":
            return CPU_BUDGET
        free = torch.cuda.mem_get_info(device)[0]
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(CUDA_SHARE * (free + unused))


class _Shared:
    """Settings of the process before the first of the trainings that run now, in whatever thread, began.

    A thread that starts during a training sees that training's settings; they are not what it has to restore.
    """

    def __init__(self) -> None:
        self.lock, self.running, self.before = Lock(), 0, (1, "highest")

    def enter(self) -> tuple[int, str]:
        with self.lock:
            if self.running == 0:
                self.before = torch.get_num_threads(), torch.get_float32_matmul_precision()
            self.running += 1
            return self.before

    def leave(self) -> None:
        with self.lock:
            self.running -= 1
            if self.running == 0:
                torch.set_float32_matmul_precision(self.before[1])


_SHARED = _Shared()
_TURN = Lock()
"""Held by the training that a GPU is busy with: two threads cannot capture CUDA graphs at once."""


@contextmanager
def settings(execution: Execution, device: torch.device) -> Iterator[None]:
    """Set threads and matrix precision for the training alone; on a GPU, wait until other threads have trained."""
    threads, _ = _SHARED.enter()
    try:
        if device.type == "cpu" and execution.threads is not None:
            torch.set_num_threads(execution.threads)
        torch.set_float32_matmul_precision("high" if execution.precision == "tf32" else "highest")
        if device.type == "cuda":
            with _TURN, torch.cuda.device(device):
                yield
        else:
            yield
    finally:
        torch.set_num_threads(threads)
        _SHARED.leave()


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


def saved_bytes(forward: Callable[[], object]) -> int:
    """Return the bytes that a forward pass keeps for its backward pass."""
    sizes: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        forward()
    return sum(sizes.values())


class GraphCapture:
    """Captures steps as CUDA graphs with one memory pool; a step that cannot be captured runs as it is."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        if enabled:  # graphs replay in turn: one memory for all, and one stream, on which a compiled step keeps nodes
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


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function compiled by ``torch.compile``, or run as it is from the first failure to compile on."""
    current = torch.compile(function, dynamic=False)

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        nonlocal current
        try:
            with _recompile_limit():
                return current(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning("the step could not be compiled and runs uncompiled: %s", error)
            current = function
            return function(*args, **kwargs)

    return call


def _recompile_limit() -> AbstractContextManager[None]:
    """Raise the compiler's limit, which has no public name in every version of torch that pyproject.toml admits."""
    limited: AbstractContextManager[None] = torch._dynamo.config.patch(recompile_limit=RECOMPILE_LIMIT)
    return limited
