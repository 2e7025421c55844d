"""The conditional mean score as a curve in s, with its band and the effective number of rows at each point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.parity._nodes import Array, bootstrap_counts
from frhsic.parity._resampling import Resampling, one, scored_rows
from frhsic.parity.gap import ParityResult, measured
from frhsic.parity.smoothing import GRID_POINTS, Weighting, check_weighting, equispaced


@dataclass(frozen=True, eq=False)
class ParityCurve:
    r"""The smoothed mean score on a grid of s. ``float(curve)`` gives the value of :func:`gdp`.

    Attributes
    ----------
    at
        Equispaced values of s, in its units.
    mean
        The smoothed mean score at each of them.
    lower, upper
        *Pointwise* confidence band: each point has the stated confidence by itself, the whole curve has less.
    overall
        The overall mean score.
    density
        Kernel estimate of the density of s, with the same bandwidth.
    effective_rows
        Effective number of rows at each point, :math:`(\sum_j w_j)^2 / \sum_j w_j^2`. Where it is small the curve is
        uncertain.
    parity
        The result of :func:`gdp`.
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

    The curve is flat, up to noise, when the mean score does not depend on s. Use it to see at which values of s scores
    are too high or too low; :func:`gdp` summarizes it in one number.

    Parameters
    ----------
    scores
        One column. Call it once for each class if there are several.
    points
        Number of points of the grid, from the smallest to the largest s among the kept rows.
    s, bandwidth, weighting, where, confidence, bootstrap, permutations, random_state
        As in :func:`gdp`. Without bootstrap the band is NaN.

    Notes
    -----
    The band consists of percentiles over resamples of the rows, point by point.

    Examples
    --------
    >>> curve = gdp_curve([0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 9.0, 9.0], points=3, bandwidth=1.0)
    >>> curve.at, curve.mean, curve.effective_rows
    (array([0. , 4.5, 9. ]), array([0. , 0.5, 1. ]), array([2., 4., 2.]))
    """
    _arrays.require_integer(points, "points", 2)
    check_weighting(weighting)
    resampling = Resampling(confidence, bootstrap, permutations, random_state)
    data = scored_rows(scores, s, bandwidth, where)
    if data.scores.shape[1] > 1:
        raise ValueError(f"scores has {data.scores.shape[1]} columns; a curve is of one. Pass one class at a time.")
    parity = measured(data, weighting, resampling, one, "score")
    f, nodes, n = data.scores[:, 0], data.nodes, len(data.s)
    at = _arrays.to_numpy(equispaced(torch.from_numpy(data.s), points))
    smoother = nodes.smoother(at, data.bandwidth)
    below = smoother @ nodes.counts
    mean = smoother @ nodes.totals(f) / below
    lower, upper = np.full(points, math.nan), np.full(points, math.nan)
    if bootstrap:
        resamples = bootstrap_counts(np.random.default_rng([parity.seed, 1]), n, bootstrap)
        blocks = [nodes.smoothed_means(smoother, counts, f, default=mean[:, None]) for counts in resamples]
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
