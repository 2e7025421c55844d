"""How an audit is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from frhsic import _arrays
from frhsic.parity.column import GapOptions


@dataclass(frozen=True)
class Settings:
    """Settings of an audit.

    Attributes
    ----------
    confidence
        Confidence of all intervals; the level of all tests is one minus this.
    max_rows
        Largest number of rows used for expensive statistics.
    probe_rows
        Largest number of rows used for the probes.
    resamples
        Number of resamples used for the gaps.
    seed
        Seed for all random draws.
    watch
        Function that is called with the name of each step when the step begins.
    fast
        Whether to skip the measures that the first screen of a report doesn't show: rank gaps,
        dependence, probes and equal opportunity.

    Examples
    --------
    A quick audit for a first look:

    >>> from frhsic import audit
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> result = audit(age / 50, age, settings=Settings(fast=True, resamples=99))
    >>> [number.key for number in result["s"].all_rows.numbers]
    ['gdp', 'standardized_gdp']
    """

    confidence: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 499
    seed: int = 0
    watch: Callable[[str], None] | None = None
    fast: bool = False

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20)):
            _arrays.require_integer(getattr(self, name), name, least)

    @property
    def options(self) -> GapOptions:
        """The options for computing gaps."""
        return GapOptions(self.confidence, self.resamples, self.seed)

    def tell(self, step: str) -> None:
        """Call `watch` with the name of a step."""
        if self.watch is not None:
            self.watch(step)

    def about(self, part: str) -> Settings:
        """Return settings that add `part` to the name of each step."""
        return replace(self, watch=lambda step: self.tell(f"{part}: {step}"))

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a separate random generator for each purpose, so that adding one measure doesn't
        change the other measures.
        """
        return np.random.default_rng([self.seed, *keys])
