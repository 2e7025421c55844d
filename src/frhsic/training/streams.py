"""Random streams of a member, and torch's global generators, lent to one thread at a time and given back as they were.

Every stream is ``numpy.random.SeedSequence([seed, split, purpose, *more])`` with a fixed number for each purpose. The
weight λ and the method do not enter. Adding one therefore changes no other model, and two methods trained on the same
(seed, split) start from the same weights and see the same batches, so that their results are paired. Draws are made on
the CPU, so that a GPU gets the same numbers.

Layers draw their initial weights from torch's global generators, and dropout draws from them while it trains; neither
takes a generator of its own. Whatever draws from them runs here, under one lock, on a stream of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

_LOCK = threading.RLock()


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
def seeded(seed: int | None = None) -> Iterator[None]:
    """Let code make modules and draw from the global generators, from a seed on if one is given.

    Generators and the default dtype, which is float32 in here, are restored at the end.
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
            yield
        finally:
            torch.set_default_dtype(dtype)
