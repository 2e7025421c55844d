"""What every certificate is: a number, the quantity it bounds, and what has to hold for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Certificate", "Detail"]

Detail = float | int | tuple[float, ...]
"""What :attr:`Certificate.details` holds: plain numbers, and tuples of them."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A bound with its assumptions.

    Attributes
    ----------
    value
        The bound, also given by ``float(certificate)``.
    bounds
        The quantity that is bounded, in words.
    bounded
        The measured value of that quantity, where it is known; else None.
    confidence
        Probability with which the bound holds; 1 where it holds for every data set.
    assumes
        What has to hold, one statement each.
    trivial
        A bound on the same quantity that needs no such argument; None for identities.
    trivial_because
        Where `trivial` comes from.
    details
        The numbers that went into the value.

    Examples
    --------
    >>> c = Certificate(value=0.3, bounds="a gap", bounded=0.1, trivial=0.25, trivial_because="scores in [0, 1]")
    >>> float(c), round(c.tightness, 3), c.vacuous
    (0.3, 3.0, True)
    >>> print(c)
    a gap <= 0.3 (measured 0.1; vacuous: at least 0.25, which holds anyway: scores in [0, 1])
    """

    value: float
    bounds: str
    bounded: float | None = None
    confidence: float = 1.0
    assumes: tuple[str, ...] = ()
    trivial: float | None = None
    trivial_because: str = ""
    details: Mapping[str, Detail] = field(default_factory=dict)

    def __float__(self) -> float:
        return self.value

    @property
    def tightness(self) -> float | None:
        """The bound divided by what it bounds: 1 is exact, None where the latter is not known."""
        if self.bounded is None:
            return None
        if self.bounded == 0:
            return 1.0 if self.value == 0 else math.inf
        return self.value / self.bounded

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than `trivial`, which holds anyway."""
        return self.trivial is not None and self.value >= self.trivial

    def __str__(self) -> str:
        notes = [] if self.bounded is None else [f"measured {self.bounded:.6g}"]
        if self.confidence < 1:
            notes.append(f"with probability at least {self.confidence:g}")
        if self.vacuous:
            notes.append(f"vacuous: at least {self.trivial:.6g}, which holds anyway: {self.trivial_because}")
        return f"{self.bounds} <= {self.value:.6g}" + (f" ({'; '.join(notes)})" if notes else "")
