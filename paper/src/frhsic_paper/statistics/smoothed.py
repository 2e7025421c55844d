r"""The gap of the kernel-smoothed mean score at a given bandwidth, with an interval and its value
under independence.

A sample of s is reduced to nodes: up to 1,024 distinct values are kept as they are. More are
replaced by equispaced nodes, and each row is divided between the two nodes around it (linear
binning), which interpolates the Gaussian weight :math:`\exp(-u^2/2h^2)` linearly. With nodes
:math:`\delta` apart the weight changes by at most :math:`(\delta/h)^2/8`: :math:`3 \cdot 10^{-5}`
at 64 nodes to the bandwidth, and 0.8 % at four, the fewest allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.parity.rows import Array, check_rows
from frhsic.penalties.rivals import equispaced_points

Weighting = Literal["population", "uniform"]

GRID_POINTS = 50
"""Equispaced points of the uniform weighting, as in the published numbers."""

EXACT_VALUES = 1024
"""Up to this many distinct values of s are kept as they are."""

NODES_PER_BANDWIDTH = np.array([64, 32, 16, 8, 4])
"""As many as give at most :data:`MAX_NODES` nodes."""

MAX_NODES = 4096


def evaluation_points(
    s: Any, bandwidth: float, weighting: Weighting = "population"
) -> tuple[Tensor, Tensor]:
    r"""Points at which :func:`smoothed_gdp` takes the gap, and their weights: two tensors of shape
    (g,).

    ``"population"``: the distinct values of s and their frequencies. More than 1,024 distinct
    values are replaced by points a 64th of the bandwidth apart. ``"uniform"``: 50 equispaced points
    on the range of s, equally weighted.

    Examples
    --------
    >>> evaluation_points([1.0, 1.0, 3.0, 1.0], 0.2)
    (tensor([1., 3.], dtype=torch.float64), tensor([0.7500, 0.2500], dtype=torch.float64))
    """
    if weighting not in get_args(Weighting):
        raise ValueError(f"weighting is {weighting!r}; pass 'population' or 'uniform'.")
    values = _tensors.vector(s, "s").detach()
    if weighting == "uniform":
        grid = equispaced_points(values, GRID_POINTS)
        return grid, torch.full_like(grid, 1 / GRID_POINTS)
    nodes = sample_nodes(_arrays.to_numpy(values.to(torch.float64)), bandwidth)
    return torch.from_numpy(nodes.values).to(values), torch.from_numpy(
        nodes.counts / len(values)
    ).to(values)


@dataclass(frozen=True)
class SmoothedGap:
    """A gap in smoothed mean scores, with its uncertainty and settings. ``float(result)`` is its
    value.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population *at this bandwidth*; NaN without
        bootstrap.
    expected_under_independence
        Mean of the value over permutations of s; NaN without them. Compare the value with this
        number, not with zero: it is a mean of absolute values, so it is positive even if scores and
        s are independent.
    pvalue
        Share of permutations with a value at least as large, the sample itself included; NaN
        without permutations.
    per_column
        The gap of each column of scores.
    n, bandwidth, weighting, confidence, seed
        Settings of the computation; the seed reproduces it.
    """

    value: float
    interval: tuple[float, float]
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    n: int
    bandwidth: float
    weighting: Weighting
    confidence: float
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

    Zero in the population when the mean score does not depend on s. It differs from
    :func:`frhsic.gdp` by the bias of smoothing, which is large where s is skewed or has outliers
    and the bandwidth is a share of its range. The penalty :class:`frhsic.penalties.GDP` minimizes
    it, and the published numbers report it with uniform weighting. On a sample it is positive:
    compare it with `expected_under_independence` of the result.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or
        predictions. With several columns (classes) the value is the largest gap.
    s
        One sensitive attribute.
    bandwidth
        The h of the smoother, in units of s. The published numbers use a tenth of the range of the
        training rows.
    weighting
        ``"population"``: average over the values of s in the sample. ``"uniform"``, as in the
        published numbers: average over 50 equispaced points of its range, so that sparse regions
        count as much as dense ones.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    confidence
        Confidence of the interval.
    bootstrap
        Number of random weightings of the rows for the interval; 0 for none.
    permutations
        Number of permutations of s for the value expected under independence and the p-value; 0 for
        none.
    random_state
        Seed of the resamples.

    Notes
    -----
    More than 1,024 distinct values of s are binned linearly onto nodes a 64th of the bandwidth
    apart, which changes each kernel weight by at most 3e-5; memory, and the time of each resample,
    are O(n). If that needs more than 4,096 nodes, because the bandwidth is below a 64th of the
    range, the nodes lie farther apart, up to a quarter of the bandwidth (0.8 % of a weight); a
    still smaller bandwidth raises an error.

    The gap is not differentiable where the conditional mean equals the mean, so percentiles of the
    bootstrap do not cover. The interval uses the directional derivative: where the gap at a point
    is within :math:`\sqrt{\log n}` standard errors of zero, the absolute value of its noise enters
    on both sides (Fang and Santos, 2019). It is conservative near independence. The noise is that
    of rows with random normal weights. With several columns the error probability is divided among
    them (Bonferroni). The interval is for the smoothed gap and does not include the bias of
    smoothing, :math:`O(h^2)`.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its
    equation of GDP. Fang and Santos (2019), *Inference on directionally differentiable functions*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = smoothed_gdp([0.1, 0.2, 0.3, 0.6], [0.0, 0.0, 0.0, 1.0], bandwidth=0.1)
    >>> round(float(result), 4)
    0.15
    """
    _arrays.require_fraction(confidence, "confidence")
    _arrays.require_integer(bootstrap, "bootstrap", 0)
    _arrays.require_integer(permutations, "permutations", 0)
    _arrays.require_scale(bandwidth, "bandwidth")
    rows = check_rows(scores, s, where)
    seed = _arrays.integer_seed(random_state)
    gaps = _Gaps(rows.scores - rows.scores.mean(axis=0), rows.s, bandwidth, weighting)
    expected, pvalue = gaps.under_permutation(np.random.default_rng([seed, 0]), permutations)
    return SmoothedGap(
        value=float(gaps.values.max()),
        interval=gaps.interval(np.random.default_rng([seed, 1]), bootstrap, confidence),
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(gaps.values.tolist()),
        n=len(rows.s),
        bandwidth=bandwidth,
        weighting=weighting,
        confidence=confidence,
        seed=seed,
    )


class _Gaps:
    """Signed gaps of centred scores at the evaluation points, and their law under random weights
    and permutations.
    """

    def __init__(self, f: Array, s: Array, bandwidth: float, weighting: Weighting) -> None:
        self.f, self.nodes, self.population = (
            f,
            sample_nodes(s, bandwidth),
            weighting == "population",
        )
        points, self.weights = (x.numpy() for x in evaluation_points(s, bandwidth, weighting))
        squares = ((points[:, None] - self.nodes.values) / bandwidth) ** 2
        kernel = np.exp((squares.min(axis=1, keepdims=True) - squares) / 2)
        self.average = (
            kernel / (kernel @ self.nodes.counts)[:, None]
        )  # of sums over nodes, (points, nodes)
        self.signed = self.average @ (self.nodes.shares @ f)  # (points, columns)
        self.values = self.weights @ np.abs(self.signed)
        self.slack = 100 * float(np.finfo(np.float64).eps * np.abs(f).max())

    def under_permutation(self, rng: np.random.Generator, permutations: int) -> tuple[float, float]:
        """Return the mean of the largest value over permutations, and the p-value."""
        if permutations == 0:
            return math.nan, math.nan
        shares, f = self.nodes.shares, self.f
        totals = np.stack([shares @ rng.permutation(f) for _ in range(permutations)], axis=1)
        values = np.max(
            [self.weights @ np.abs(self.average @ column) for column in np.moveaxis(totals, 2, 0)],
            axis=0,
        )
        count = int((values >= self.values.max() - self.slack).sum())
        return float(values.mean()), (1 + count) / (1 + permutations)

    def interval(
        self, rng: np.random.Generator, bootstrap: int, confidence: float
    ) -> tuple[float, float]:
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
        near = (
            np.abs(gap)
            <= math.sqrt(math.log(len(f))) * noise.std(axis=1, keepdims=True) + self.slack
        )
        linear, size = np.sign(gap) * noise, np.abs(noise)
        # |gap + noise| - |gap| lies within the size of the noise where the gap may be zero
        most, least = (
            self.weights @ np.where(near, side * size, linear) + moved for side in (1, -1)
        )
        value = float(self.values[column])
        return max(0.0, value - float(np.quantile(most, 1 - tail))), value - float(
            np.quantile(least, tail)
        )


class Nodes(NamedTuple):
    """Values that replace s, and the (nodes × rows) matrix that divides the rows among them."""

    values: Array
    shares: sparse.csr_matrix

    @property
    def counts(self) -> Array:
        """Number of rows at each node."""
        return np.asarray(self.shares.sum(axis=1)).ravel()


def sample_nodes(s: Array, bandwidth: float) -> Nodes:
    """Return the nodes of a sample: its distinct values, or equispaced values if there are many."""
    values, place = np.unique(s, return_inverse=True)
    n = len(s)
    if len(values) <= EXACT_VALUES:
        shares = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(len(values), n))
        return Nodes(values, shares)
    for spacing in bandwidth / NODES_PER_BANDWIDTH:
        left = np.floor((s - values[0]) / spacing)
        used = np.unique(np.concatenate([left, left + 1]))
        if len(used) <= MAX_NODES:
            break
    else:
        raise ValueError(
            f"bandwidth={bandwidth:.3g} is too small for {len(values)} distinct values of s between"
            f" {values[0]:.3g} and {values[-1]:.3g}: {MAX_NODES} nodes do not resolve it. Pass a"
            " larger bandwidth."
        )
    right_share = (s - values[0]) / spacing - left
    entries = np.concatenate([1 - right_share, right_share])
    nodes = np.searchsorted(used, np.concatenate([left, left + 1]))
    rows = np.tile(np.arange(n), 2)
    shares = sparse.csr_matrix((entries, (nodes, rows)), shape=(len(used), n))
    return Nodes(values[0] + spacing * used, shares)
