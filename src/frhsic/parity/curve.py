"""The conditional mean score as a curve in s, with its band and with how many rows stand behind each point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.parity._nodes import Array, bootstrap_counts
from frhsic.parity._resampling import sample
from frhsic.parity.gap import ParityResult, gdp
from frhsic.parity.smoothing import GRID_POINTS, Weighting, equispaced

__all__ = ["ParityCurve", "gdp_curve"]


@dataclass(frozen=True, eq=False)
class ParityCurve:
    r"""The smoothed mean score on a grid of s. ``float(curve)`` is the gap that it sums up to.

    Attributes
    ----------
    at
        Equispaced values of s, in its units.
    mean
        The smoothed mean score at each.
    lower, upper
        Its band. *Pointwise*: each point has the stated confidence by itself, the whole curve has less.
    overall
        The mean score, about which the gap is taken.
    density
        Kernel estimate of the density of s, with the same bandwidth.
    effective_rows
        :math:`(\sum_j w_j)^2 / \sum_j w_j^2`, how many rows stand behind each point; where they are few the curve
        says little.
    parity
        The value, interval and value expected under independence of :func:`gdp`, with n, bandwidth, confidence and
        seed.
    """

    at: Array
    mean: Array
    lower: Array
    upper: Array
    overall: float
    density: Array
    effective_rows: Array
    parity: ParityResult

    def __float__(self) -> float:
        return self.parity.value


def gdp_curve(
    scores: Any,
    s: Any,
    *,
    bandwidth: float | None = None,
    weighting: Weighting = "population",
    points: int = GRID_POINTS,
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> ParityCurve:
    r"""Smoothed mean score along s, :math:`\hat m(s) = \sum_j w_j(s) f_j` with Gaussian weights, and its band.

    The curve is flat, up to noise, when the mean score does not depend on s. Its distance from the overall mean,
    averaged over the sample, is :func:`gdp`.

    Parameters
    ----------
    scores
        One column; pass the classes of several one by one.
    points
        Of the grid, from the least to the largest s among the rows that count.
    s, bandwidth, weighting, where, confidence, bootstrap, permutations, random_state
        As in :func:`gdp`. Without bootstrap the band is NaN.

    Notes
    -----
    The band is made of percentiles over resamples of the rows, point by point.

    Examples
    --------
    >>> curve = gdp_curve([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 9.0, 9.0], points=3, bandwidth=1.0)
    >>> curve.at, curve.mean, curve.effective_rows
    (array([0. , 4.5, 9. ]), array([0. , 0.5, 1. ]), array([2., 4., 2.]))
    """
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise ValueError(f"points is {points!r}; pass a whole number, at least 2.")
    parity = gdp(
        scores,
        s,
        bandwidth=bandwidth,
        weighting=weighting,
        where=where,
        confidence=confidence,
        bootstrap=bootstrap,
        permutations=permutations,
        random_state=random_state,
    )
    if len(parity.per_column) > 1:
        raise ValueError(f"scores has {len(parity.per_column)} columns; a curve is of one. Pass one class at a time.")
    data = sample(scores, s, bandwidth, where)
    f, nodes, n = data.scores[:, 0], data.nodes, len(data.s)
    at = _arrays.to_numpy(equispaced(torch.from_numpy(data.s), points))
    smoother = nodes.smoother(at, data.bandwidth)
    below = smoother @ nodes.counts
    mean = smoother @ nodes.totals(f) / below
    lower, upper = np.full(points, math.nan), np.full(points, math.nan)
    if bootstrap:
        blocks = []
        for drawn in bootstrap_counts(np.random.default_rng([parity.seed, 1]), n, bootstrap):
            weight = smoother @ nodes.totals(drawn)
            total = smoother @ nodes.totals(drawn * f[:, None])
            # a point whose every neighbour was left out of the resample falls back on the curve
            blocks.append(np.divide(total, weight, out=np.repeat(mean[:, None], total.shape[1], 1), where=weight > 0))
        tail = (1 - confidence) / 2
        lower, upper = np.quantile(np.concatenate(blocks, axis=1), [tail, 1 - tail], axis=1)
    overall = float(data.means[0])
    heights = np.exp(-(((at[:, None] - nodes.values) / data.bandwidth) ** 2) / 2)
    return ParityCurve(
        at=at,
        mean=mean + overall,
        lower=lower + overall,
        upper=upper + overall,
        overall=overall,
        density=heights @ nodes.counts / (n * data.bandwidth * math.sqrt(2 * math.pi)),
        effective_rows=below**2 / (smoother**2 @ nodes.counts),
        parity=parity,
    )
