r"""GDP and its curve from sums over rows, for data that come in parts.

The rows are divided into cells along s, and the sums of :math:`(f - c)^k`, k = 0 to 4, over each cell add up over parts
of the data. The mid-ranks of the cells are exact, since their rows are counted. What differs from :func:`gdp` on all
rows: a row's own share in the smoothed mean is taken out to first order, and if s has many values, the borders of the
cells come from a sample, so that groups are of about equal size only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from frhsic import _arrays
from frhsic.parity._groups import ends_of_mean, group_levels
from frhsic.parity._rows import Array, Integers
from frhsic.parity._signs import NEAR, NODES, SOFTNESS, TINY, Smoother, lost_to_wrong_signs, node_levels
from frhsic.parity.curve import ParityCurve, groups_for
from frhsic.parity.gap import RESAMPLES, GapOptions, ParityResult, largest_gap


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells along s, fine enough for the nodes of GDP and for the groups of its curve.

    Attributes
    ----------
    starts
        Smallest s of each cell, increasing; rows below the first belong to it.
    nodes, groups
        First cell of each node and of each group.
    medians
        Median of s in each group.
    """

    starts: Array
    nodes: Integers
    groups: Integers
    medians: Array

    @classmethod
    def of(cls, values: Array, counts: Integers, rows: int) -> Cells:
        """Return the cells for distinct values of s in increasing order and how often each occurs.

        `values` are those of all rows, of which there are `rows`, or of a sample of them.
        """
        nodes = node_levels(counts.astype(np.float64), NODES)
        groups = group_levels(counts, groups_for(rows))
        both = np.union1d(nodes, groups)
        medians = [
            _median(values[start:end], counts[start:end])
            for start, end in zip(groups, np.append(groups[1:], len(values)))
        ]
        return cls(values[both], np.searchsorted(both, nodes), np.searchsorted(both, groups), np.asarray(medians))

    def sums(self, f: Array, s: Array, center: float, ends: tuple[float, float]) -> ScoreSums:
        """Return the sums over some rows; `center` is near the mean of all scores, `ends` are their extremes."""
        cell = np.maximum(np.searchsorted(self.starts, s, side="right") - 1, 0)
        size, power, powers = len(self.starts), np.ones(len(f)), []
        for _ in range(5):
            powers.append(np.bincount(cell, power, minlength=size))
            power = power * (f - center)
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, cell, s)
        np.maximum.at(high, cell, s)
        return ScoreSums(np.stack(powers), low, high, center, ends, int(((f == ends[0]) | (f == ends[1])).sum()))


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Sums of scores over the cells; ``+`` joins parts of the data.

    Attributes
    ----------
    powers
        Sums of (f - center) to the powers 0 to 4, of shape (5, cells).
    low, high
        Smallest and largest s of each cell.
    center, ends
        The number near the mean score, and the smallest and largest score of all rows.
    at_ends
        Number of rows whose score is one of `ends`.
    """

    powers: Array
    low: Array
    high: Array
    center: float
    ends: tuple[float, float]
    at_ends: int

    def __add__(self, other: ScoreSums) -> ScoreSums:
        if not isinstance(other, ScoreSums):
            return NotImplemented
        return ScoreSums(
            self.powers + other.powers,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.center,
            self.ends,
            self.at_ends + other.at_ends,
        )

    @property
    def mean(self) -> float:
        """The mean score."""
        return self.center + float(self.powers[1].sum() / self.powers[0].sum())

    @property
    def decisions(self) -> tuple[float, float] | None:
        """The two values of scores that have only two, such as decisions."""
        both = self.at_ends == int(self.powers[0].sum()) and self.ends[0] < self.ends[1]
        return self.ends if both else None

    def about_mean(self, starts: Integers) -> Array:
        """Return sums of (f - mean) to the powers 0 to 4 over unions of cells, of shape (5, unions)."""
        shift = self.center - self.mean
        powers = np.add.reduceat(self.powers, starts, axis=1)
        sums = [sum(math.comb(k, j) * shift ** (k - j) * powers[j] for j in range(k + 1)) for k in range(5)]
        return np.asarray(sums)


def gdp_of_sums(
    sums: ScoreSums,
    cells: Cells,
    *,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    random_state: _arrays.RandomState = 0,
    standardize: bool = False,
) -> ParityResult:
    """:func:`frhsic.parity.gdp` (or with `standardize`, `standardized_gdp`) of rows that are known by their sums.

    Examples
    --------
    >>> s, f = np.repeat([0.0, 1.0], [150, 50]), np.repeat([0.2, 0.6], [150, 50])
    >>> cells = Cells.of(np.array([0.0, 1.0]), np.array([150, 50]), 200)
    >>> halves = [cells.sums(f[part], s[part], 0.3, (0.2, 0.6)) for part in (slice(100), slice(100, None))]
    >>> round(float(gdp_of_sums(halves[0] + halves[1], cells)), 4)
    0.15
    """
    powers = sums.about_mean(cells.nodes)
    n = int(powers[0].sum())
    resolution = 0.5 * n**-0.25 if resolution is None else resolution
    largest = max(sums.mean - sums.ends[0], sums.ends[1] - sums.mean)
    column = _Sums(Smoother(powers[0], powers[0], resolution), powers, largest, standardize)
    options = GapOptions(resolution, confidence, resamples, _arrays.seed_of(random_state), standardize)
    return largest_gap([column], n, n, options)


def curve_of_sums(sums: ScoreSums, cells: Cells, *, confidence: float = 0.95) -> ParityCurve:
    """:func:`frhsic.parity.gdp_curve` of rows that are known by their sums."""
    powers, decisions = sums.about_mean(cells.groups), sums.decisions
    counts, overall = powers[0], sums.mean
    away = powers[1] / counts
    variances = np.maximum(powers[2] - counts * away**2, 0) / counts**2
    each = confidence ** (1 / len(counts))
    lower, upper = zip(
        *(
            ends_of_mean(float(overall + a), float(v), float(c), each, decisions)
            for a, v, c in zip(away, variances, counts)
        )
    )
    nodes = sums.about_mean(cells.nodes)
    n = int(counts.sum())
    smoother = Smoother(nodes[0], nodes[0], 0.5 * n**-0.25)
    smooth = smoother.kernel @ nodes[1] / smoother.total
    ends = np.cumsum(counts)
    middle = np.searchsorted(np.cumsum(nodes[0]), (ends - counts + ends - 1) // 2, side="right")
    return ParityCurve(
        at=cells.medians,
        start=np.minimum.reduceat(sums.low, cells.groups),
        end=np.maximum.reduceat(sums.high, cells.groups),
        mean=overall + away,
        lower=np.asarray(lower),
        upper=np.asarray(upper),
        rows=counts,
        overall=overall,
        smoothed=overall + smooth[middle],
        confidence=confidence,
        resolution=smoother.resolution,
        n=n,
    )


class _Sums:
    """The gap of centred scores from their sums of powers over nodes, of shape (5, nodes)."""

    def __init__(self, smoother: Smoother, powers: Array, largest: float, standardize: bool) -> None:
        self.smoother, self.powers, self.standardize = smoother, powers, standardize
        counts, totals, squares = powers[:3]
        mean, error = smoother.at_nodes(totals[:, None], squares[:, None], totals[:, None])
        self.mean, self.error = mean[:, 0], error[:, 0]
        self.soft = 2 * ndtr(self.mean / np.maximum(SOFTNESS * self.error, TINY)) - 1
        self.n = float(counts.sum())
        self.gap = float(smoother.statistic_of_sums(totals[:, None], squares[:, None])[0])
        self.variance = float(squares.sum() / self.n)
        self.scale = math.sqrt(self.variance) if standardize else 1.0
        self.value, self.magnitude = self.gap / self.scale, largest / self.scale

    def null(self, resamples: int, rng: np.random.Generator) -> Array:
        """Return values of resamples whose mean does not depend on s."""
        counts, totals, squares = self.powers[:3]
        weights = self.smoother.precision(squares)
        spread = self._squares_about(float(weights @ totals / (weights @ counts)))
        return self.smoother.resampled_sums(np.zeros(len(counts)), spread, resamples, rng) / self.scale

    def uncertainty(self, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the standard error, and a bound on what uncertain signs take away from the value."""
        counts, totals, squares, cubes, fourths = self.powers
        slope = self.soft - counts @ self.soft / self.n
        # the influence of a row is a polynomial of its score, of the second degree if the gap is standardized
        bend = -self.gap / (2 * self.variance) if self.standardize else 0.0
        constant = -self.gap / 2 if self.standardize else -self.gap
        influence = constant**2 * counts + slope**2 * squares + bend**2 * fourths
        influence += 2 * (constant * slope * totals + constant * bend * squares + slope * bend * cubes)
        variance = self.n / max(self.n - 1, 1) * float(influence.sum()) / self.n**2
        spread = self._squares_about(self.mean) / np.maximum(1 - 1 / self.smoother.total, 0.1)
        near = np.abs(self.mean) <= NEAR * self.error
        resampled = self.smoother.resampled_sums(np.where(near, 0, self.mean), spread, resamples, rng)
        fixed = np.where(near, self.soft, np.sign(self.mean))
        linear = float((fixed - counts @ fixed / self.n) ** 2 @ spread) / self.n**2
        variance += max(float(resampled.var(ddof=1)) - linear, 0) if resamples > 1 else 0.0
        lost = lost_to_wrong_signs(counts, self.mean, self.error)
        return math.sqrt(variance) / self.scale, lost / self.scale

    def _squares_about(self, at: Array | float) -> Array:
        """Return the sums of squares of scores less a number, or less one for each node."""
        counts, totals, squares = self.powers[:3]
        return np.asarray(np.maximum(squares - 2 * at * totals + np.square(at) * counts, 0))


def _median(values: Array, counts: Integers) -> float:
    """Return the median of values that occur several times each."""
    ends = np.cumsum(counts)
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    return float(values[middle].mean())
