"""Intervals for statistics, and the value of a statistic when the attribute is shuffled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["Interval", "Statistic", "holm", "shuffled_mean", "subsample"]

Statistic = Callable[[Tensor, Tensor], float]


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a number: its ends, its confidence, and how it was computed."""

    low: float
    high: float
    confidence: float
    method: str


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm, 1979), in the order in which they came.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    adjusted, least = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        least = adjusted[i] = max(least, min(1.0, (len(pvalues) - rank) * pvalues[i]))
    return adjusted


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
