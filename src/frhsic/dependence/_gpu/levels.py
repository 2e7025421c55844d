"""Sums over pairs of rows that have few distinct values.

Sums of few distinct float32 numbers round in the same direction again and again, and HSIC near independence is far
smaller than its sums. So they are computed in float64, from a table of the entries and the number of rows at each
level. The table has the float32 entries of the kernels that sum over all pairs: a sum that comes from those and one
that comes from here then belong to the same matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from frhsic.dependence._gpu import launch
from frhsic.dependence._gpu.plan import Plan, fixed_point

MOST_LEVELS = 256


class Levels(NamedTuple):
    """Entries between levels (V, V), in float64, and the level of each row (n,)."""

    table: Tensor
    place: Tensor

    @classmethod
    def of(cls, x: Tensor, scheme: Plan) -> Levels | None:
        """Return the levels; None if there are many, or if distances come from matrix products."""
        if scheme.unit or len(torch.unique(x[: 16 * MOST_LEVELS], dim=0)) > MOST_LEVELS:
            return None
        values, place = torch.unique(x, dim=0, return_inverse=True)
        if len(values) > MOST_LEVELS:
            return None
        return cls(launch.table(values, scheme).double(), place)

    def rows(self, u: Tensor | None) -> Tensor:
        """Return the weighted row sums without the diagonal, (n,)."""
        sums = (self.table @ _totals(self.place, len(self.table), u))[self.place]
        own = self.table.diagonal()[self.place]
        return sums - (own if u is None else u * own)


def pair_sums(k: Levels, l: Levels, u: Tensor | None) -> launch.OffDiagonal:
    """Return the sums over pairs of distinct rows, where both matrices have few levels."""
    sizes = len(k.table), len(l.table)
    both = k.place * sizes[1] + l.place
    squared = None if u is None else u * u
    counts, own = (_totals(both, sizes[0] * sizes[1], weights).view(sizes) for weights in (u, squared))
    joint = (k.table * (counts @ l.table @ counts.mT)).sum() - k.table.diagonal() @ own @ l.table.diagonal()
    squares = [
        total @ of.table.square() @ total - of.table.diagonal().square() @ total
        for of, total in ((k, counts.sum(1)), (l, counts.sum(0)))
    ]
    return launch.OffDiagonal(joint, k.rows(u), l.rows(u), *squares)


def _totals(place: Tensor, size: int, weights: Tensor | None) -> Tensor:
    """Return the weight at each place, in float64; as integers of fixed point, whose sum is the same in every order."""
    if weights is None:
        return torch.bincount(place, minlength=size).double()
    fixed = fixed_point(float(weights.max()), len(weights))
    totals = torch.zeros(size, dtype=torch.int64, device=place.device)
    return totals.index_add_(0, place, (weights.double() * fixed).round().long()).double() / fixed
