"""Intervals for statistics, p-values adjusted for their number, and subsamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Interval", "holm", "subsample"]


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
