r"""Split the change in a gap since an earlier audit into a part due to the distribution of S and a
part due to the scores. If the curve r is the mean score at each value of S, and p is the
distribution of S, the gap is :math:`\Gamma(r, p) = E_p |r - E_p r|`, and its change is

.. math:: \Gamma(r_1, p_1) - \Gamma(r_0, p_0) = [\Gamma(r_0, p_1) - \Gamma(r_0, p_0)]
    + [\Gamma(r_1, p_1) - \Gamma(r_0, p_1)].

The first part is due to the distribution of S, the second to the curve. A curve and its reverse
have the same gap, so :math:`E_{p_1} |g_1 - g_0|`, with :math:`g_i = r_i - E_{p_1} r_i`, is also
tested. All of these are gaps in means over the same windows of values of S, estimated like any
other gap; :math:`\Gamma(r_0, p_1)` is estimated from the earlier rows, weighted to the distribution
of S in the new rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from frhsic.auditing.comparing import difference
from frhsic.auditing.gaps import gap_number
from frhsic.auditing.results import Change, Nodes, Number
from frhsic.parity.column import ColumnGap, GapOptions
from frhsic.parity.gap import largest_gap
from frhsic.parity.local_means import FEW_VALUES, Windows
from frhsic.parity.rows import Array
from frhsic.parity.sums import ScoreSums, node_levels, summed_effective_rows, window_share

FEWEST = 5.0
"""Smallest number of earlier rows in a window; a window with fewer rows is merged with the next
window.
"""

PART_DRAWS = 499


@dataclass(frozen=True, eq=False)
class _Sample:
    """Sums of weighted powers of the scores of independent rows, of shape (4, 5, windows) as in
    :class:`~frhsic.parity.sums.ScoreSums`, and bounds on the scores.
    """

    powers: Array
    ends: tuple[float, float]

    @classmethod
    def from_nodes(cls, nodes: Nodes, edges: Array, center: float) -> _Sample:
        """Return the sums for the windows between the edges, of scores minus a constant; the rows
        of a node are assumed to be spread evenly between its ends.
        """
        low = np.array(nodes.low)
        width = np.array(nodes.high) - low
        inner = edges[1:, None]
        below = np.where(
            width > 0, (inner - low) / np.where(width > 0, width, 1), np.sign(inner - low)
        )
        ends = np.zeros((1, len(low)))
        below = np.concatenate([ends, np.clip(below, 0, 1), ends + 1])
        rows = np.array(nodes.rows)
        weight = np.array(nodes.share) * rows.sum() / rows
        mean = np.array(nodes.mean)
        central = np.array([np.ones(len(rows)), np.zeros(len(rows)), *nodes.moments])
        raw = shift_powers(central[None], mean - center)[0]
        powers = rows * weight ** np.arange(1, 5)[:, None, None] * raw
        spread = np.sqrt(central[2])
        reach = float((np.abs(mean - center) + 3 * spread).max())
        return cls(powers @ np.diff(below, axis=0).T, (-reach, reach))

    @property
    def counts(self) -> Array:
        return np.asarray(self.powers[0, 0])

    @property
    def rows(self) -> Array:
        """Effective number of rows in each window."""
        return np.asarray(self.counts**2 / np.maximum(self.powers[1, 0], 1e-300))

    @property
    def shares(self) -> Array:
        return np.asarray(self.counts / self.counts.sum())

    @property
    def means(self) -> Array:
        return np.asarray(self.powers[0, 1] / self.counts)

    def merge(self, starts: np.ndarray) -> _Sample:
        """Merge windows, given the first window of each union."""
        return replace(self, powers=np.add.reduceat(self.powers, starts, axis=2))

    def keep(self, windows: np.ndarray) -> _Sample:
        return replace(self, powers=self.powers[:, :, windows])

    def weighted(self, shares: Array) -> _Sample:
        """Reweight the rows so that the windows have the given shares."""
        factor = shares / self.shares
        return replace(self, powers=self.powers * factor ** np.arange(1, 5)[:, None, None])

    def centered(self, scale: float, mean: Array) -> Array:
        """Return the sums for scores that are multiplied by a constant and shifted so that the
        windows have the given means.
        """
        return shift_powers(shift_powers(self.powers, -self.means), mean, scale)

    def gap(self) -> ColumnGap:
        """Return the gap between the means of the windows."""
        windows = self.powers.shape[2]
        sums = ScoreSums(
            powers=self.powers,
            rows=np.ones(windows, dtype=np.int64),
            low=np.arange(float(windows)),
            high=np.arange(float(windows)),
            center=0.0,
            ends=self.ends,
            at_ends=np.zeros(windows),
            effective=summed_effective_rows(self.powers, None),
        ).group_sums(np.arange(windows))
        return ColumnGap(sums, Windows(sums))


def shift_powers(powers: Array, shift: Array, scale: float = 1.0) -> Array:
    """Convert sums of powers of f, of shape (…, 5, windows), to sums of powers of scale · f +
    shift.
    """
    return np.stack(
        [
            sum(math.comb(j, k) * scale**k * shift ** (j - k) * powers[:, k] for k in range(j + 1))
            for j in range(powers.shape[1])
        ],
        axis=1,
    )


def split_change(before: Nodes, after: Nodes, attribute: str, level: float) -> Iterator[Change]:
    """Yield the two parts of the change in a gap between two audits of independent rows, and the
    distance between the two curves.
    """
    edges = np.union1d(before.low, after.low)
    center = float(np.array(before.share) @ before.mean)
    old = _Sample.from_nodes(before, edges, center)
    new = _Sample.from_nodes(after, edges, center)
    few = min(sum(before.rows), sum(after.rows))
    most = max(int(1 / window_share(few)), FEW_VALUES if len(edges) <= FEW_VALUES else 1)
    starts = node_levels((old.shares + new.shares) / 2, most)
    old = old.merge(starts)
    new = new.merge(starts)
    unknown = float(new.shares[old.rows < FEWEST].sum())
    starts = _known_windows(old.rows)
    old = old.merge(starts)
    new = new.merge(starts)
    came = np.flatnonzero(new.rows >= 1)
    new = new.keep(came)
    options = GapOptions(1 - level, PART_DRAWS, 0)
    first = old.gap()
    last = new.gap()
    middle = old.keep(came).weighted(new.shares).gap()
    middle.more_variance = float(
        (_squared_shares(last) - _squared_shares(middle)) @ _heights(middle) ** 2
    )
    gaps = (first, middle, last)
    numbers = [gap_number("gdp", largest_gap(gap, options)) for gap in gaps]
    freedom = [float(gap.means.freedom) for gap in gaps]
    people, curve = part_variances(first, middle, last, came, options)
    parts = [
        _part("people", attribute, numbers[:2], level, people, min(freedom[:2])),
        _part("curve", attribute, numbers[1:], level, curve, min(freedom[1:])),
    ]
    apart = gap_number("shape", largest_gap(_curves_apart(old.keep(came), new), options))
    assert apart.pvalue is not None
    parts.append(Change("shape", attribute, 0.0, apart.value, None, apart.pvalue, level))
    for part in parts:
        yield replace(part, reduction=None, unknown=unknown)


def _part(
    key: str,
    attribute: str,
    numbers: Sequence[Number],
    level: float,
    variance: _Variance,
    freedom: float,
) -> Change:
    """Return the difference between two gaps, with Student's t-test based on the standard error
    only. If neither the curve nor the people changed, uncertain signs hide the same part of both
    gaps, so only the interval takes uncertain signs into account. The estimated variances and
    covariance of the two gaps may be inconsistent if a few rows dominate, so the variance of the
    difference is at least its direct estimate. If the test rejects, the end of the interval nearer
    to 0 is that of the test.
    """
    old, new = numbers
    alone = sum((each.standard_error or 0.0) ** 2 for each in numbers)
    covariance = min(variance.covariance, (alone - variance.whole) / 2)
    part = difference(key, attribute, old, new, level, covariance)
    assert part.interval is not None
    error = math.sqrt(max(alone - 2 * covariance, 1e-300))
    size = part.after - part.before
    pvalue = 2 * float(stdtr(freedom, -abs(size) / error))
    low, high = part.interval
    if pvalue <= level:
        reach = float(stdtrit(freedom, 1 - level / 2)) * error
        if size > 0:
            low = max(low, size - reach)
        else:
            high = min(high, size + reach)
    interval = replace(part.interval, low=low, high=high)
    return replace(part, interval=interval, pvalue=pvalue)


def _known_windows(rows: Array) -> np.ndarray:
    """Merge windows until each union has enough earlier rows, and return the first window of each
    union.
    """
    starts = [0]
    total = 0.0
    for place, count in enumerate(rows.tolist()):
        if total >= FEWEST:
            starts.append(place)
            total = 0.0
        total += count
    if total < FEWEST and len(starts) > 1:
        starts.pop()
    return np.array(starts)


class _Variance(NamedTuple):
    """The covariance of the two gaps whose difference is one part of the change, and the variance
    of this difference.
    """

    covariance: float
    whole: float


def part_variances(
    first: ColumnGap, middle: ColumnGap, last: ColumnGap, came: np.ndarray, options: GapOptions
) -> tuple[_Variance, _Variance]:
    """Return the variance of each part, which depends on the means and the shares of the windows.

    The derivative of a gap with respect to a window's mean is the window's share times its slope;
    the derivative with respect to the share is the window's height.
    """
    loads = [gap.shares * gap.signs.slope for gap in (first, middle, last)]
    old, new = (gap.means.rows.variance / gap.sums.counts**2 for gap in (first, last))
    before, heights, after = (_heights(gap) for gap in (first, middle, last))
    squares = _squared_shares(last)
    moved = -loads[0]
    moved[came] += loads[1]
    people = moved**2 @ old + _squared_shares(first) @ before**2 + squares @ heights**2
    curve = loads[1] ** 2 @ old[came] + loads[2] ** 2 @ new + squares @ (after - heights) ** 2
    uncertain = [gap.uncertain_variance(gap.signs, options) for gap in (first, middle, last)]
    return (
        _Variance(
            float((loads[0][came] * loads[1]) @ old[came]), float(people + sum(uncertain[:2]))
        ),
        _Variance(float(squares @ (heights * after)), float(curve + sum(uncertain[1:]))),
    )


def _squared_shares(gap: ColumnGap) -> Array:
    """Return the sum of the squared shares of the rows in each window."""
    return np.asarray(gap.sums.powers[1, 0] / gap.sums.n**2)


def _heights(gap: ColumnGap) -> Array:
    """Return the derivative of the gap with respect to the share of each window."""
    heights = gap.signs.slope * gap.sums.powers[0, 1] / gap.sums.counts
    return np.asarray(heights - gap.shares @ heights)


def _curves_apart(old: _Sample, new: _Sample) -> ColumnGap:
    """Return the gap in the difference between the two curves among the new people. In each window,
    the rows of each sample have half the total weight, and their scores are doubled (with the
    opposite sign for the earlier sample) and centered at the difference between the two means.
    """
    apart = new.means - old.means
    powers = np.zeros_like(new.powers)
    for sample, scale in ((new, 2.0), (old, -2.0)):
        half = sample.weighted(new.shares)
        weight = new.counts.sum() / 2 / half.counts.sum()
        halves = half.powers * weight ** np.arange(1, 5)[:, None, None]
        powers += replace(half, powers=halves).centered(scale, apart)
    size = 2 * (new.ends[1] - new.ends[0] + old.ends[1] - old.ends[0])
    return replace(new, powers=powers, ends=(-size, size)).gap()
