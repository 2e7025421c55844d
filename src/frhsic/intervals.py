"""The class for all confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from scipy.special import ndtri


@dataclass(frozen=True)
class Interval:
    """Confidence interval for a number: its ends, its confidence, and how it was computed.

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

    def agree_with(self, value: float, pvalue: float) -> Interval:
        """Return the interval with a lower end that agrees with a test; see :func:`agreed_low`."""
        return replace(self, low=agreed_low(self.low, value, pvalue, self.confidence))

    def __getitem__(self, end: int) -> float:
        return (self.low, self.high)[end]


def agreed_low(low: float, value: float, pvalue: float, confidence: float) -> float:
    """Return the lower end of an interval, adjusted so that it is above 0 exactly if a test of the
    value 0 rejects at the same level.

    Near 0, the error of a nonnegative number is one-sided, so the lower end may use the whole
    level. If the test rejects but `low` is 0, the lower end is the one that the test implies
    (Miettinen, 1976). The standard error is then the value divided by the normal quantile
    :math:`z_p` of its p-value, so the lower end at the level α is value · (1 - z_α / z_p).

    Examples
    --------
    >>> [
    ...     round(agreed_low(low, 0.2, pvalue, 0.95), 3)
    ...     for low, pvalue in ((0.01, 0.06), (0.01, 0.04), (0.0, 0.04))
    ... ]
    [0.0, 0.01, 0.012]
    """
    level = round(1 - confidence, 12)
    if pvalue > level:
        return min(low, 0.0)
    if low > 0:
        return low
    share = 1 - max(-float(ndtri(level)), 0.0) / max(-float(ndtri(pvalue)), 1e-9)
    return max(share, 1e-9) * value
