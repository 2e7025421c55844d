"""Coverage of the intervals of `frhsic.parity`, and level of its tests, on laws whose truth is known.

    python benchmarks/coverage.py --jobs 16                # every cell, 400 draws, to results/coverage.json
    python benchmarks/coverage.py --draws 40 --laws jump   # some laws, with fewer draws
    python benchmarks/coverage.py --page                   # the tables of the results

A cell is a law at a number of rows, with independent rows, with clusters of rows (each row has a copy of itself with
probability one half, otherwise a second row of its own), or with survey weights (rows are drawn with a density that the
weights undo). A law is a mean score along the ranks u of S and a kind of noise.

The fourteen laws of `ASIDE` were written down before the statistics were changed and were not looked at until the end:

1. steps: a continuous S, five steps of the mean, normal noise
2. seven unequal levels of S with means in no order, 0/1 decisions
3. sawtooth: the mean is 3u mod 1, normal noise
4. valley: the mean is |2u - 1|, Laplace noise whose spread grows with u
5. beta scores with mean expit(2u - 2)
6. counts: Poisson with mean exp(u)
7. flat mean, log-normal noise whose scale grows with u
8. flat mean, exponential noise whose scale falls with u
9. income heaped at two significant digits, the mean follows the rank
10. three rows in ten at one value of S, whose mean differs; a continuous rest
11. flat 0/1 decisions at a rate of 0.05
12. twenty equal levels of S, the last one higher
13. weak slope, Student's t noise with three degrees of freedom
14. two waves: sin(4πu), normal noise
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, ndtri

Array = np.ndarray
Noise = Callable[[Array, Array, np.random.Generator], Array]
"""Scores with a given mean at given ranks of S."""
GRID = 400_000


def normal(size: float | Callable[[Array], Array]) -> Noise:
    return lambda mean, u, rng: mean + (size(u) if callable(size) else size) * rng.standard_normal(len(u))


def decisions(mean: Array, u: Array, rng: np.random.Generator) -> Array:
    return (rng.random(len(u)) < mean) * 1.0


def added(noise: Callable[[Array, np.random.Generator], Array]) -> Noise:
    return lambda mean, u, rng: mean + noise(u, rng)


def log_normal(sigma: float, scale: Callable[[Array], Array]) -> Noise:
    return added(lambda u, rng: scale(u) * (np.exp(sigma * rng.standard_normal(len(u))) - np.exp(sigma**2 / 2)))


def levels(shares: list[float], values: list[float]) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return the quantiles of an S with some levels, and a mean that has a value at each."""
    ends = np.cumsum(shares)[:-1] / np.sum(shares)

    def level(u: Array) -> Array:
        return np.searchsorted(ends, u, side="right").astype(np.float64)

    return level, lambda u: np.asarray(values)[level(u).astype(int)]


@dataclass(frozen=True)
class Law:
    """A law of S and of the score in terms of the ranks u of S."""

    name: str
    s: Callable[[Array], Array]
    mean: Callable[[Array], Array]
    noise: Noise
    independent: bool = False

    def draw(self, u: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        return self.noise(self.mean(u), u, rng), self.s(u)

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        u = (np.arange(GRID) + 0.5) / GRID
        return self.s(u), self.mean(u)

    @cached_property
    def gdp(self) -> float:
        mean = self.grid[1]
        return float(np.abs(mean - mean.mean()).mean())

    @cached_property
    def variance(self) -> float:
        u = (np.arange(GRID) + 0.5) / GRID
        return float(np.mean([self.draw(u, np.random.default_rng(i))[0].var() for i in range(10)]))


def same(u: Array) -> Array:
    return u


def flat(value: float) -> Callable[[Array], Array]:
    return lambda u: np.full_like(u, value)


def ages(u: Array) -> Array:
    return np.floor(18 + 60 * u**1.4)


def income(u: Array) -> Array:
    s = np.exp(10 + ndtri(u))
    unit = 10 ** (np.floor(np.log10(s)) - 1)
    return np.round(s / unit) * unit


def zeros_in(share: float, scale: float) -> Noise:
    """Scores that are 0 with some probability and otherwise log-normal, less their mean."""

    def noise(u: Array, rng: np.random.Generator) -> Array:
        values = scale * np.exp(rng.standard_normal(len(u)))
        return (rng.random(len(u)) >= share) * values - (1 - share) * scale * np.exp(0.5)

    return added(noise)


def gamma(shape: Callable[[Array], Array]) -> Noise:
    return added(lambda u, rng: (rng.standard_gamma(shape(u)) - shape(u)) / np.sqrt(shape(u)))


def beta(mean: Array, u: Array, rng: np.random.Generator) -> Array:
    return rng.beta(5 * mean, 5 * (1 - mean))


laplace = added(lambda u, rng: (0.2 + u) * rng.laplace(size=len(u)))
exponential = added(lambda u, rng: (1.2 - u) * (rng.exponential(size=len(u)) - 1))
SEVEN = levels([0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02], [0.1, 0.5, 0.2, 0.4, 0.3, 0.6, 0.05])
TWENTY = levels([1.0] * 20, [0.0] * 19 + [0.5])

ASIDE = (
    Law("steps", same, lambda u: np.floor(5 * u) / 5, normal(0.3)),
    Law("seven unequal levels, decisions", *SEVEN, decisions),
    Law("sawtooth", same, lambda u: 3 * u % 1, normal(0.5)),
    Law("valley, Laplace", same, lambda u: np.abs(2 * u - 1), laplace),
    Law("beta scores", same, lambda u: expit(2 * u - 2), beta),
    Law("counts", same, np.exp, lambda mean, u, rng: rng.poisson(mean).astype(np.float64)),
    Law("flat, log-normal, scale grows", same, flat(0.0), log_normal(0.8, lambda u: 0.2 + u)),
    Law("flat, exponential, scale falls", same, flat(0.0), exponential),
    Law("heaped income", income, lambda u: 0.3 * u, normal(0.2)),
    Law("thirty percent at one value", lambda u: np.maximum(u - 0.3, 0), lambda u: 0.3 * (u < 0.3), normal(0.5)),
    Law("flat decisions, rate .05", same, flat(0.05), decisions, independent=True),
    Law("twenty levels, the last higher", *TWENTY, normal(0.4)),
    Law("weak slope, Student's t", same, lambda u: 0.2 * u, added(lambda u, rng: rng.standard_t(3, len(u)))),
    Law("two waves", same, lambda u: 0.3 * np.sin(4 * np.pi * u), normal(0.5)),
)  # fmt: skip
