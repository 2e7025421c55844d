r"""GDP and its curve from sums over rows, for data that come in parts.

The rows are divided into cells along s, and the sums of :math:`(f - c)^k`, k = 0 to 4, over each cell add up over parts
of the data. They give the same numbers as all rows together, except that if s has many values, the borders of the cells
come from a sample, so that nodes and groups are of about equal size only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from frhsic import _arrays
from frhsic.parity._groups import group_levels
from frhsic.parity._rows import Array, Integers
from frhsic.parity._signs import Smoother
from frhsic.parity._sums import NODES, Sums, ends_of, node_levels
from frhsic.parity.curve import ParityCurve, banded, groups_for
from frhsic.parity.gap import RESAMPLES, ColumnGap, GapOptions, ParityResult, largest_gap


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

    def over(self, starts: Integers) -> Sums:
        """Return the sums of centred scores over unions of cells."""
        shift = self.center - self.mean
        powers = np.add.reduceat(self.powers, starts, axis=1)
        centred = [sum(math.comb(k, j) * shift ** (k - j) * powers[j] for j in range(k + 1)) for k in range(5)]
        ends, n = ends_of(*self.ends, self.mean), float(powers[0].sum())
        return Sums(np.stack([np.asarray(centred)] * 3), n, None, ends, self.at_ends == int(n) and ends[0] < ends[1])


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
    nodes = sums.over(cells.nodes)
    column = ColumnGap(nodes, Smoother(nodes, resolution))
    options = GapOptions(confidence, resamples, _arrays.seed_of(random_state), standardize)
    return largest_gap([column.standardized() if standardize else column], int(nodes.n), options)


def curve_of_sums(sums: ScoreSums, cells: Cells, *, confidence: float = 0.95) -> ParityCurve:
    """:func:`frhsic.parity.gdp_curve` of rows that are known by their sums."""
    groups, nodes = sums.over(cells.groups), sums.over(cells.nodes)
    ends = np.cumsum(groups.counts)
    middle = np.searchsorted(np.cumsum(nodes.counts), (ends - groups.counts + ends - 1) // 2, side="right")
    return banded(
        groups,
        nodes,
        middle,
        sums.mean,
        confidence,
        at=cells.medians,
        start=np.minimum.reduceat(sums.low, cells.groups),
        end=np.maximum.reduceat(sums.high, cells.groups),
        rows=groups.counts,
        n=int(groups.n),
    )


def _median(values: Array, counts: Integers) -> float:
    """Return the median of values that occur several times each."""
    ends = np.cumsum(counts)
    middle = np.searchsorted(ends, [(ends[-1] - 1) // 2, ends[-1] // 2], side="right")
    return float(values[middle].mean())
