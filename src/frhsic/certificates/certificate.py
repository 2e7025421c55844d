"""The result that all certificates share: a bound, the quantity it bounds, and its assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

Detail = float | int | tuple[float, ...]
"""A value of :attr:`Certificate.details`: a number or a tuple of numbers."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A bound with its assumptions.

    Attributes
    ----------
    value
        The bound, also given by ``float(certificate)``.
    bounds
        The bounded quantity, in words.
    bounded
        The measured value of that quantity, or None if it is not known.
    confidence
        Probability with which the bound holds; 1 if it holds for every data set.
    assumes
        The assumptions, one statement each.
    trivial
        A bound on the same quantity that holds without the theorem; None for identities.
    trivial_because
        The reason for `trivial`.
    details
        The numbers that the value was computed from.

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
        """The bound divided by the bounded quantity: 1 is exact, None if the quantity is not known."""
        if self.bounded is None:
            return None
        if self.bounded == 0:
            return 1.0 if self.value == 0 else math.inf
        return self.value / self.bounded

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than `trivial`, which holds anyway."""
        return self.trivial is not None and self.value >= self.trivial

    def __str__(self) -> str:
        notes = [] if self.bounded is None else [f"measured {self.bounded:.6g}"]
        if self.confidence < 1:
            notes.append(f"with probability at least {self.confidence:g}")
        if self.vacuous:
            notes.append(f"vacuous: at least {self.trivial:.6g}, which holds anyway: {self.trivial_because}")
        return f"{self.bounds} <= {self.value:.6g}" + (f" ({'; '.join(notes)})" if notes else "")
