"""Random streams of a member, and torch's global generators, lent to one thread at a time and given back as they were.

Every stream is ``numpy.random.SeedSequence([seed, split, purpose, *more])`` with a fixed number for each purpose. The
weight λ and the method do not enter. Adding one therefore changes no other model, and two methods trained on the same
(seed, split) start from the same weights and see the same batches, so that their results are paired. Draws are made on
the CPU, so that a GPU gets the same numbers.

Layers draw their initial weights from torch's global generators, and dropout draws from them while it trains; neither
takes a generator of its own. Whatever draws from them runs here, under one lock, on a stream of its own. Draws of
initial weights are sent to a generator that nothing else knows, so that other code cannot change them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_LOCK = threading.RLock()

# Functions that draw initial weights and take a generator.
INITIALIZERS = frozenset(
    function
    for name, function in vars(nn.init).items()
    if name.endswith("_") and not name.startswith("_") and "generator" in inspect.signature(function).parameters
)

# Functions that draw on the CPU unless told otherwise.
DRAWS = frozenset(
    {torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli, torch.multinomial}
    | {Tensor.uniform_, Tensor.normal_, Tensor.random_, Tensor.bernoulli_, Tensor.exponential_, Tensor.log_normal_}
)


class _Local(TorchFunctionMode):
    """Sends draws on the CPU to a generator of this block; the mode is that of the thread that entered it alone."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in INITIALIZERS or func in DRAWS:  # the mode is off inside of an initializer
            tensors = [x.device for x in args if isinstance(x, Tensor)]
            place = torch.device(kwargs.get("device") or (tensors or [torch.get_default_device()])[0])
            if kwargs.get("generator") is None and place.type == "cpu":
                kwargs["generator"] = self.generator
        return func(*args, **kwargs)


class Purpose(IntEnum):
    """Purpose of a random stream. The numbers are part of the derivation and never change."""

    WEIGHTS = 0
    ORDER = 1
    PENALTY = 2
    TRAINING = 3  # randomness inside a module, such as dropout
    HELD_OUT = 4  # batches of the held-out rows


def stream_seed(seed: int, split: int, purpose: Purpose, *more: int) -> int:
    """Return the 63-bit seed of a stream.

    Examples
    --------
    >>> stream_seed(42, 0, Purpose.ORDER) == stream_seed(42, 0, Purpose.ORDER)
    True
    >>> stream_seed(42, 0, Purpose.ORDER) == stream_seed(42, 1, Purpose.ORDER)
    False
    """
    entropy = np.random.SeedSequence([seed, split, int(purpose), *more])
    return int(entropy.generate_state(1, np.uint64)[0] >> 1)


def stream(seed: int, split: int, purpose: Purpose, *more: int) -> torch.Generator:
    """Return a CPU generator at the start of a stream."""
    return torch.Generator().manual_seed(stream_seed(seed, split, purpose, *more))


@contextmanager
def seeded(seed: int | None = None, *, private: bool = True) -> Iterator[None]:
    """Let code make modules and draw from the global generators, from a seed on if one is given.

    Generators and the default dtype, which is float32 in here, are restored at the end. Draws on the CPU from a seed
    are `private`, so that other threads cannot change them; that slows down every function of torch.
    """
    ready = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]  # torch left it untyped
    devices = [torch.cuda.current_device()] if ready else []
    with _LOCK, torch.random.fork_rng(devices):
        dtype = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            if seed is not None:
                torch.default_generator.manual_seed(seed)
                if devices:
                    torch.cuda.manual_seed(seed)
            with nullcontext() if seed is None or not private else _Local(seed):
                yield
        finally:
            torch.set_default_dtype(dtype)
