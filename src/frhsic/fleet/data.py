"""What a fleet is trained on, and the members it has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays

__all__ = ["Member", "TrainingData", "grid"]


@dataclass(frozen=True, order=True)
class Member:
    """One model of a fleet: the weight λ of its penalty, its seed, and the split it is trained on.

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
    """Return the members of every weight with every (seed, split) pair.

    `splits` goes along with `seeds`, one each; left out, every seed trains on split 0.

    Examples
    --------
    >>> [(m.weight, m.seed, m.split) for m in grid([0.0, 1.0], seeds=[42, 43], splits=[0, 1])]
    [(0.0, 42, 0), (1.0, 42, 0), (0.0, 43, 1), (1.0, 43, 1)]
    """
    seeds = list(seeds)
    at = [0] * len(seeds) if splits is None else list(splits)
    if len(at) != len(seeds):
        raise ValueError(f"{len(seeds)} seeds and {len(at)} splits; pass one split for each seed.")
    weights = list(weights)
    return [Member(float(w), int(seed), int(split)) for seed, split in zip(seeds, at) for w in weights]


@dataclass(frozen=True)
class TrainingData:
    """Training rows of D splits of equal length n.

    Attributes
    ----------
    x : Tensor
        Features, (D, n, d).
    y : Tensor or None
        Targets, (D, n): 0/1, class numbers, or real values. None where the task needs none.
    s : Tensor
        Sensitive attributes, (D, n, q).
    sample_weight : Tensor or None
        Weights of the rows in the task loss alone, (D, n), of mean one in each split.
    """

    x: Tensor
    y: Tensor | None
    s: Tensor
    sample_weight: Tensor | None = None

    @classmethod
    def of(
        cls, x: Any, y: Any, s: Any, *, sample_weight: Any = None, dtype: torch.dtype = torch.float32
    ) -> TrainingData:
        """Return the data of one split, from arrays of any kind.

        Examples
        --------
        >>> data = TrainingData.of([[1, 2], [3, 4]], [0, 1], [0.5, 0.1])
        >>> data.splits, data.rows, data.columns
        (1, 2, 2)
        """
        arrays = [(x, "x"), (s, "s")]
        arrays += [(y, "y")] if y is not None else []
        arrays += [(sample_weight, "sample_weight")] if sample_weight is not None else []
        _arrays.paired(*arrays)
        return cls(
            _arrays.matrix(x, "x").to(dtype)[None],
            None if y is None else _arrays.vector(y, "y").to(dtype)[None],
            _arrays.matrix(s, "s").to(dtype)[None],
            None
            if sample_weight is None
            else _normalised(_arrays.vector(sample_weight, "sample_weight").to(dtype))[None],
        )

    @classmethod
    def stacked(cls, parts: Sequence[TrainingData]) -> TrainingData:
        """Return several splits as one; they must have equal numbers of rows and columns."""
        if not parts:
            raise ValueError("no splits came; pass at least one.")
        shapes = {(p.rows, p.columns, p.s.shape[-1], p.y is None, p.sample_weight is None) for p in parts}
        if len(shapes) > 1:
            said = "; ".join(f"n={p.rows}, d={p.columns}, q={p.s.shape[-1]}" for p in parts)
            raise ValueError(f"splits differ in shape ({said}). Train each shape as a fleet of its own.")
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
            if values is not None and values.shape != self.x.shape[:2]:
                raise ValueError(f"{name} has shape {tuple(values.shape)}; x asks for {tuple(self.x.shape[:2])}.")
        if 0 in self.x.shape:
            raise ValueError(f"x is empty: its shape is {tuple(self.x.shape)}.")

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


def _normalised(weights: Tensor) -> Tensor:
    if bool((weights < 0).any()) or not bool(weights.sum() > 0):
        raise ValueError("sample_weight must be zero or more, and not zero everywhere.")
    return weights / weights.mean()
