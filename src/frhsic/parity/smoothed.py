"""The gap of the kernel-smoothed mean score at a given bandwidth, with an interval and its value under independence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.parity._rows import Array, rows_of
from frhsic.parity.smoothing import GRID_POINTS, Weighting, check_weighting, equispaced, nodes_of


@dataclass(frozen=True)
class SmoothedGap:
    """A gap in smoothed mean scores, with its uncertainty and settings. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population *at this bandwidth*; NaN without bootstrap.
    expected_under_independence
        Mean of the value over permutations of s; NaN without them. Compare the value with this number, not with zero:
        it is a mean of absolute values, so it is positive even if scores and s are independent.
    pvalue
        Share of permutations with a value at least as large, the sample itself included; NaN without permutations.
    per_column
        The gap of each column of scores.
    column
        Number of the column with the largest gap.
    n, bandwidth, weighting, confidence, bootstrap, permutations, seed
        Settings of the computation; the seed reproduces it.
    """

    value: float
    interval: tuple[float, float]
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    column: int
    n: int
    bandwidth: float
    weighting: Weighting
    confidence: float
    bootstrap: int
    permutations: int
    seed: int

    def __float__(self) -> float:
        return self.value


def smoothed_gdp(
    scores: Any,
    s: Any,
    *,
    bandwidth: float,
    weighting: Weighting = "population",
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> SmoothedGap:
    r"""Mean distance of the kernel-smoothed mean score from the mean score.

    .. math:: \widehat\Delta = \sum_g v_g \bigl| \hat m(s_g) - \bar f \bigr|, \qquad
        \hat m(s) = \frac{\sum_j f_j \exp(-(s - s_j)^2 / 2h^2)}{\sum_j \exp(-(s - s_j)^2 / 2h^2)},

    Zero in the population when the mean score does not depend on s. It differs from :func:`gdp` by the bias of
    smoothing, which is large where s is skewed or has outliers and the bandwidth is a share of its range. The penalty
    Reg-GDP minimizes it, and the published numbers report it with uniform weighting. On a sample it is positive:
    compare it with `expected_under_independence` of the result.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or predictions. With several
        columns (classes) the value is the largest gap.
    s
        One sensitive attribute.
    bandwidth
        The h of the smoother, in units of s. The published numbers use a tenth of the range of the training rows.
    weighting
        ``"population"``: average over the values of s in the sample. ``"uniform"``, as in the published
        numbers: average over 50 equispaced points of its range, so that sparse regions count as much as dense ones.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    confidence
        Confidence of the interval.
    bootstrap
        Number of random weightings of the rows for the interval; 0 for none.
    permutations
        Number of permutations of s for the value expected under independence and the p-value; 0 for none.
    random_state
        Seed of the resamples.

    Notes
    -----
    More than 1,024 distinct values of s are binned linearly onto nodes a 64th of the bandwidth apart, which changes
    each kernel weight by at most 3e-5; memory, and the time of each resample, are O(n). If that needs more than 4,096
    nodes, because the bandwidth is below a 64th of the range, the nodes lie farther apart, up to a quarter of the
    bandwidth (0.8 % of a weight); a still smaller bandwidth raises an error.

    The gap is not differentiable where the conditional mean equals the mean, so percentiles of the bootstrap do not
    cover. The interval uses the directional derivative: where the gap at a point is within :math:`\sqrt{\log n}`
    standard errors of zero, the absolute value of its noise enters on both sides (Fang and Santos, 2019). It is
    conservative near independence. The noise is that of rows with random normal weights. With several columns the error
    probability is divided among them (Bonferroni). The interval is for the smoothed gap and does not include the bias
    of smoothing, :math:`O(h^2)`.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its equation of GDP. Fang and
    Santos (2019), *Inference on directionally differentiable functions*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = smoothed_gdp([0.1, 0.2, 0.3, 0.6], [0.0, 0.0, 0.0, 1.0], bandwidth=0.1)
    >>> round(float(result), 4)
    0.15
    """
    check_weighting(weighting)
    _arrays.require_fraction(confidence, "confidence")
    _arrays.require_integer(bootstrap, "bootstrap", 0)
    _arrays.require_integer(permutations, "permutations", 0)
    _arrays.require_scale(bandwidth, "bandwidth")
    rows = rows_of(scores, s, where)
    seed = _arrays.seed_of(random_state)
    gaps = _Gaps(rows.scores - rows.scores.mean(axis=0), rows.s, bandwidth, weighting)
    column = int(gaps.values.argmax())
    expected, pvalue = gaps.under_permutation(np.random.default_rng([seed, 0]), permutations)
    return SmoothedGap(
        value=float(gaps.values[column]),
        interval=gaps.interval(np.random.default_rng([seed, 1]), bootstrap, confidence),
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(float(v) for v in gaps.values),
        column=column,
        n=len(rows.s),
        bandwidth=bandwidth,
        weighting=weighting,
        confidence=confidence,
        bootstrap=bootstrap,
        permutations=permutations,
        seed=seed,
    )


class _Gaps:
    """Signed gaps of centred scores at the evaluation points, and their law under random weights and permutations."""

    def __init__(self, f: Array, s: Array, bandwidth: float, weighting: Weighting) -> None:
        self.f, self.nodes, self.population = f, nodes_of(s, bandwidth), weighting == "population"
        points = self.nodes.values if self.population else equispaced(torch.from_numpy(s), GRID_POINTS).numpy()
        squares = ((points[:, None] - self.nodes.values) / bandwidth) ** 2
        kernel = np.exp((squares.min(axis=1, keepdims=True) - squares) / 2)
        self.average = kernel / (kernel @ self.nodes.counts)[:, None]  # of sums over nodes, (points, nodes)
        self.weights = self.nodes.counts / len(s) if self.population else np.full(len(points), 1 / len(points))
        self.signed = self.average @ (self.nodes.shares @ f)  # (points, columns)
        self.values = self.weights @ np.abs(self.signed)
        self.slack = 100 * float(np.finfo(np.float64).eps * np.abs(f).max())

    def under_permutation(self, rng: np.random.Generator, permutations: int) -> tuple[float, float]:
        """Return the mean of the largest value over permutations, and the p-value."""
        if permutations == 0:
            return math.nan, math.nan
        shares, f = self.nodes.shares, self.f
        totals = np.stack([shares @ rng.permutation(f) for _ in range(permutations)], axis=1)
        values = np.max([self.weights @ np.abs(self.average @ column) for column in np.moveaxis(totals, 2, 0)], axis=0)
        count = int((values >= self.values.max() - self.slack).sum())
        return float(values.mean()), (1 + count) / (1 + permutations)

    def interval(self, rng: np.random.Generator, bootstrap: int, confidence: float) -> tuple[float, float]:
        """Return the interval for the largest value, by the directional bootstrap."""
        if bootstrap == 0:
            return math.nan, math.nan
        tail = (1 - confidence) / 2 / self.f.shape[1]
        drawn = rng.standard_normal((2, len(self.nodes.values), bootstrap))
        ends = [self._ends(column, drawn, tail) for column in range(self.f.shape[1])]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def _ends(self, column: int, drawn: Array, tail: float) -> tuple[float, float]:
        counts, f, gap = self.nodes.counts[:, None], self.f[:, column], self.signed[:, column, None]
        total, square = (np.asarray(self.nodes.shares @ f**k)[:, None] for k in (1, 2))
        mean = total / counts
        # sums over the rows of a node of normal weights, and of their products with f
        added = np.sqrt(counts) * drawn[0]
        scored = mean * added + np.sqrt(np.maximum(square - total * mean, 0)) * drawn[1]
        noise = self.average @ scored - gap * (self.average @ added) - scored.sum(axis=0) / len(f)
        moved = 0.0
        if self.population:
            moved = np.abs(gap[:, 0]) @ (added - self.weights[:, None] * added.sum(axis=0)) / len(f)
        near = np.abs(gap) <= math.sqrt(math.log(len(f))) * noise.std(axis=1, keepdims=True) + self.slack
        linear, size = np.sign(gap) * noise, np.abs(noise)
        # |gap + noise| - |gap| lies within the size of the noise where the gap may be zero
        most, least = (self.weights @ np.where(near, side * size, linear) + moved for side in (1, -1))
        value = float(self.values[column])
        return max(0.0, value - float(np.quantile(most, 1 - tail))), value - float(np.quantile(least, tail))
