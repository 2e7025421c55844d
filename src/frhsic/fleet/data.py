"""Training rows, the members of a fleet, and the random streams of a member.

Every random stream is ``numpy.random.SeedSequence([seed, split, purpose, *more])`` with a fixed number for each
purpose. The weight λ and the method do not enter. Adding one therefore changes no other model, and two methods trained
on the same (seed, split) start from the same weights and see the same batches, so that their results are paired. Draws
are made on the CPU, so that a GPU gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic import _arrays


@dataclass(frozen=True, order=True)
class Member:
    """One model of a fleet: weight λ of its penalty, seed, and split it is trained on.

    Initial weights, batch order and the penalty's own randomness are functions of (seed, split) alone.

    Examples
    --------
    >>> Member(weight=10.0, seed=42)
    Member(weight=10.0, seed=42, split=0)
    """

    weight: float
    seed: int = 0
    split: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise ValueError(f"weight is {self.weight}; pass a finite number, zero or more.")
        if not (0 <= self.seed < 2**32 and 0 <= self.split < 2**32):
            raise ValueError(f"seed={self.seed} and split={self.split} must be from 0 to 2**32 - 1.")


def grid(weights: Iterable[float], seeds: Iterable[int] = (0,), splits: Iterable[int] | None = None) -> list[Member]:
    """Return one member for each weight and each (seed, split) pair.

    `splits` has one entry for each seed. By default every seed trains on split 0.

    Examples
    --------
    >>> [(m.weight, m.seed, m.split) for m in grid([0.0, 1.0], seeds=[42, 43], splits=[0, 1])]
    [(0.0, 42, 0), (1.0, 42, 0), (0.0, 43, 1), (1.0, 43, 1)]
    """
    seeds = list(seeds)
    splits = [0] * len(seeds) if splits is None else list(splits)
    if len(splits) != len(seeds):
        raise ValueError(f"{len(seeds)} seeds and {len(splits)} splits; pass one split for each seed.")
    weights = list(weights)
    return [Member(float(w), int(seed), int(split)) for seed, split in zip(seeds, splits) for w in weights]


@dataclass(frozen=True)
class TrainingData:
    """Training rows of D splits, n rows each.

    Attributes
    ----------
    x : Tensor
        Features, (D, n, d).
    y : Tensor or None
        Targets, (D, n): 0/1, class numbers, or real values. For a reconstruction None, which is x itself, or the values
        to reconstruct, (D, n, c).
    s : Tensor
        Sensitive attributes, (D, n, q).
    sample_weight : Tensor or None
        Weights of the rows in the task loss, (D, n), with mean 1 in each split. The penalty does not use them.
    """

    x: Tensor
    y: Tensor | None
    s: Tensor
    sample_weight: Tensor | None = None

    @classmethod
    def of(
        cls, x: Any, y: Any, s: Any, *, sample_weight: Any = None, dtype: torch.dtype = torch.float32
    ) -> TrainingData:
        """Convert the arrays of one split: NumPy, pandas, polars, torch or lists.

        Examples
        --------
        >>> data = TrainingData.of([[1, 2], [3, 4]], [0, 1], [0.5, 0.1])
        >>> data.splits, data.rows, data.columns
        (1, 2, 2)
        """
        arrays = [(x, "x"), (s, "s"), (y, "y"), (sample_weight, "sample_weight")]
        _arrays.paired(*((values, name) for values, name in arrays if values is not None))
        target = None
        if y is not None:
            several = getattr(y, "ndim", 1) == 2 and y.shape[1] > 1
            target = (_arrays.matrix if several else _arrays.vector)(y, "y").to(dtype)[None]
        if sample_weight is not None:
            sample_weight = _normalized(_arrays.vector(sample_weight, "sample_weight").to(dtype))[None]
        return cls(
            _arrays.matrix(x, "x").to(dtype)[None], target, _arrays.matrix(s, "s").to(dtype)[None], sample_weight
        )

    @classmethod
    def stacked(cls, parts: Sequence[TrainingData]) -> TrainingData:
        """Join several splits, which must have equal numbers of rows and columns."""
        if not parts:
            raise ValueError("no splits came; pass at least one.")
        shapes = {(p.rows, *p.widths) for p in parts}
        if len(shapes) > 1:
            listed = "; ".join(f"n={p.rows}, d={p.columns}, q={p.s.shape[-1]}" for p in parts)
            raise ValueError(f"splits differ in shape ({listed}). Train each shape as a fleet of its own.")
        y = [p.y for p in parts if p.y is not None]
        weights = [p.sample_weight for p in parts if p.sample_weight is not None]
        return cls(
            torch.cat([p.x for p in parts]),
            torch.cat(y) if y else None,
            torch.cat([p.s for p in parts]),
            torch.cat(weights) if weights else None,
        )

    def __post_init__(self) -> None:
        if self.x.ndim != 3 or self.s.ndim != 3 or self.x.shape[:2] != self.s.shape[:2]:
            raise ValueError(
                f"x has shape {tuple(self.x.shape)} and s {tuple(self.s.shape)}; pass (D, n, d) and (D, n, q), "
                "or use TrainingData.of for one split."
            )
        for name, values in (("y", self.y), ("sample_weight", self.sample_weight)):
            several = name == "y" and values is not None and values.ndim == 3
            if values is not None and values.shape[: 2 if several else None] != self.x.shape[:2]:
                raise ValueError(f"{name} has shape {tuple(values.shape)}; x asks for {tuple(self.x.shape[:2])}.")
        if 0 in self.x.shape:
            raise ValueError(f"x is empty: its shape is {tuple(self.x.shape)}.")

    def table(self) -> Tensor:
        """Return the rows of all splits as one matrix, (D·n, d + q + ...), so that one gather serves a batch."""
        parts = [self.x, self.s]
        if self.y is not None:
            parts.append(self.y.reshape(*self.x.shape[:2], -1))
        if self.sample_weight is not None:
            parts.append(self.sample_weight[..., None])
        return torch.cat(parts, dim=-1).flatten(0, 1).contiguous()

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """Columns of x, s, y and the sample weight in :meth:`table`; 0 for what is not there."""
        targets = 0 if self.y is None else 1 if self.y.ndim == 2 else self.y.shape[2]
        return self.columns, self.s.shape[-1], targets, int(self.sample_weight is not None)

    @property
    def splits(self) -> int:
        """Number D of splits."""
        return self.x.shape[0]

    @property
    def rows(self) -> int:
        """Number n of training rows of each split."""
        return self.x.shape[1]

    @property
    def columns(self) -> int:
        """Number d of features."""
        return self.x.shape[2]


class Purpose(IntEnum):
    """Purpose of a random stream. The numbers are part of the derivation and never change."""

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
    """Return the order of the n rows in an epoch, a permutation that does not depend on earlier epochs.

    Examples
    --------
    >>> sorted(batch_order(42, 0, 7, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(n, generator=stream(seed, split, Purpose.ORDER, epoch))


def _normalized(weights: Tensor) -> Tensor:
    if bool((weights < 0).any()) or not bool(weights.sum() > 0):
        raise ValueError("sample_weight must be zero or more, and not zero everywhere.")
    return weights / weights.mean()
