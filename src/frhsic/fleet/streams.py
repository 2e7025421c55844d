"""Random streams: initial weights, batch order and penalties, each a function of (seed, split) alone.

Every stream is ``numpy.random.SeedSequence([seed, split, purpose, *more])`` with a fixed number for each
purpose; entries are below 2**32, so that no two streams run together. λ and the method do not enter: adding one
changes no other model, and two methods trained on the same (seed, split) start from the same weights and see the
same batches, so that their results are paired. Draws are made on the CPU, so that a GPU gets the same ones.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

__all__ = ["Purpose", "batch_order", "stream", "stream_seed"]


class Purpose(IntEnum):
    """What a stream is for; the numbers are part of the derivation and never change."""

    WEIGHTS = 0
    ORDER = 1
    PENALTY = 2
    TRAINING = 3  # randomness inside a module, such as dropout


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


def batch_order(seed: int, split: int, epoch: int, n: int) -> Tensor:
    """Return the order of the n rows in an epoch, a permutation; an epoch's order does not depend on earlier ones.

    Examples
    --------
    >>> sorted(batch_order(42, 0, 7, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(n, generator=stream(seed, split, Purpose.ORDER, epoch))
