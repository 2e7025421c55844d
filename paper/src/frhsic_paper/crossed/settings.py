"""Settings that are searched: each has a default and a range, and all ways get the same number of
trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TRIALS = 8
"""Trials of everything that has settings; the first has the defaults, the others are
quasi-random.
"""

POINTS = 8
"""Points of every path, from no constraint to the strictest."""


class Setting(NamedTuple):
    """The default of a setting and its range, from which values are drawn log-uniformly."""

    name: str
    default: float
    low: float
    high: float
    whole: bool = False

    def value_at_share(self, share: float) -> float:
        """Return the value at a share of the range."""
        value = self.low * (self.high / self.low) ** share
        return float(round(value)) if self.whole else float(f"{value:.4g}")


def quasi_random(number: int, dimensions: int) -> list[float]:
    """Return a point of a Kronecker sequence, which fills the unit cube more evenly than random
    draws do.

    Coordinate j is the fractional part of 1/2 + number · g^-(j + 1), where g solves g^(d + 1) = g +
    1.

    Examples
    --------
    >>> [round(quasi_random(number, 1)[0], 3) for number in (1, 2, 3)]
    [0.118, 0.736, 0.354]
    """
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [(0.5 + number * root ** -(j + 1)) % 1 for j in range(dimensions)]


def setting_values(settings: Sequence[Setting], trial: int) -> tuple[float, ...]:
    """Return the settings of a trial."""
    shares = quasi_random(trial, len(settings))
    return tuple(
        one.value_at_share(share) if trial else one.default for one, share in zip(settings, shares)
    )
