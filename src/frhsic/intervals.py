"""Intervals for statistics, and the value of a statistic when the attribute is shuffled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Interval", "Statistic", "shuffled_mean", "subsample"]

Statistic = Callable[[Tensor, Tensor], float]


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a number: its ends, its confidence, and how it was computed."""

    low: float
    high: float
    confidence: float
    method: str


def subsample(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return the indices of at most `most` of n rows, drawn without replacement, in increasing order.

    Examples
    --------
    >>> subsample(3, 10, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))


def shuffled_mean(statistic: Statistic, z: Tensor, s: Tensor, *, shuffles: int, random: np.random.Generator) -> float:
    """Return the mean of the statistic over random orders of s: its value on independent data with these margins."""
    orders = (torch.from_numpy(random.permutation(s.shape[0])) for _ in range(shuffles))
    return float(np.mean([statistic(z, s[order]) for order in orders]))
