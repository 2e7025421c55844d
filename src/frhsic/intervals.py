"""The one class for confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a number: its ends, its confidence, and how it was computed.

    Examples
    --------
    >>> low, high = Interval(0.1, 0.2, 0.95, "normal approximation")
    >>> low, high
    (0.1, 0.2)
    """

    low: float
    high: float
    confidence: float
    method: str

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    def __getitem__(self, end: int) -> float:
        return (self.low, self.high)[end]
