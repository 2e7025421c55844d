"""The cells of the coverage tables: a law at a number of rows, how it is drawn, and how many draws are enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import coverage_samples as samples
import numpy as np
from coverage_samples import LAWS, Outcome

VERSIONS: dict[Callable, int] = {samples.parity: 1, samples.clustered: 1, samples.drifts: 2, samples.many: 1}
"""Raised when a change of the library changes the numbers of a function; draws of other versions are left out."""

ROUNDS = 50
"""Blocks of draws in which a cell gets what is enough."""


@dataclass(frozen=True)
class Cell:
    """A law at one number of rows, the version of what is measured, and how many draws are enough."""

    law: str
    rows: int
    version: int
    enough: int
    sample: Callable[[np.random.Generator], dict[str, Outcome]]

    @property
    def key(self) -> str:
        """Name of the cell in records."""
        return f"{self.law} | {self.rows} | {self.version}"

    @property
    def block(self) -> int:
        """Draws that one process makes at a time."""
        return math.ceil(self.enough / ROUNDS)

    def measure(self, seed: int, number: int) -> dict[str, Outcome]:
        """Return the outcomes of one draw, which its number and the seed of the run decide."""
        return self.sample(np.random.default_rng([seed, self.rows, number, *self.law.encode()]))


def cells(rows: list[int], repeats: int) -> Iterator[Cell]:
    """Yield the cells; `repeats` draws are enough, and a share of it where a draw takes long."""

    def cell(law: str, n: int, share: float, function: Callable, *options: object) -> Cell:
        def sample(random: np.random.Generator) -> dict[str, Outcome]:
            return function(*options, n, random)  # type: ignore[no-any-return]  # every function of samples gives it

        return Cell(law, n, VERSIONS.get(function, 1), math.ceil(share * repeats), sample)

    for n in rows:
        share = 1.0 if n <= 1000 else 0.5
        for law in LAWS:
            yield cell(law.name, n, share, samples.parity, law)
        share = 1.0 if n <= 200 else 0.5 if n <= 1000 else 0.06
        for kind, d, rho in _dependent(n):
            yield cell(f"{kind} S, d = {d}, ρ = {rho:g}", n, share, samples.dependence, kind, d, rho)
        share = 1.0 if n <= 1000 else 0.2
        for d in (1, 10, 50):
            for kind in samples.ATTRIBUTES:
                yield cell(f"independent, {kind} S, d = {d}", n, share, samples.independent, kind, d)
        if n > 1000:
            continue
        share = 1.0 if n <= 200 else 0.5
        for kind in samples.CONDITIONAL:
            power = 0.5 if kind.startswith("dependent") else 1.0
            yield cell(kind, n, share * power, samples.conditional, kind)
        for rho in (0.2, 0.4):
            yield cell(f"normal, HSIC = ε at ρ = {rho:g}", n, 1.0, samples.boundary, rho)
        for tied in (False, True):
            yield cell(f"independent stream{', ties' * tied}", n, share, samples.stream, tied)
        yield cell("four rows per person, independent", n, 1.0, samples.clustered)
        for index in (0, 7, 9):
            yield cell(f"two samples: {LAWS[index].name}", n, 1.0, samples.drifts, index)
        share = 0.5 if n <= 200 else 0.1
        for kind, d in (("tied", 1), ("log-normal", 50)):
            yield cell(f"independent, {kind} S, d = {d}, permutations", n, share, samples.permuted, kind, d)
        for d in (1, 10):
            yield cell(f"independent S, probes of d = {d}", n, share * 0.6, samples.recovered, d)
        if n <= 200:
            yield cell("eight independent attributes", n, 1.0, samples.many)


def _dependent(n: int) -> Iterator[tuple[str, int, float]]:
    """Yield kinds of S, columns of Z and correlations; above 1,000 rows not every combination."""
    for d in (1, 10, 50):
        for kind in samples.ATTRIBUTES:
            strengths = (0.0, 0.1, 0.3, 0.5) if kind == "normal" else (0.0, 0.3)
            for rho in strengths:
                if n <= 1000 or kind == "normal" or (d == 10) == (rho == 0):
                    yield kind, d, rho
