"""Resamples of a gap: its interval from the bootstrap, its law under independence from permutations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.parity._nodes import Array, Nodes, bootstrap_counts, permutations_of, reduced
from frhsic.parity.smoothing import GRID_POINTS, Weighting, equispaced

RANGE_SHARE = 0.1
"""The bandwidth that is not given, as a share of the range of s."""

Scale = Callable[[Array, Array], Array]
"""What gaps are divided by, from the first two moments of scores that are centred on the whole sample."""


def unscaled(mean: Array, mean_square: Array) -> Array:
    """Return ones: the gap is in units of the score."""
    return np.ones_like(mean)


def spread(mean: Array, mean_square: Array) -> Array:
    """Return the standard deviation, or 1 where there is none: without spread there is no gap to divide."""
    variance = np.maximum(mean_square - mean * mean, 0)
    return np.asarray(np.sqrt(np.where(variance > 0, variance, 1)))


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked inputs, reduced: scores centred, of shape (rows, columns), and the nodes of s."""

    scores: Array
    means: Array
    s: Array
    nodes: Nodes
    bandwidth: float


def sample(scores: Any, s: Any, bandwidth: float | None, where: Any) -> Sample:
    """Check the inputs, keep the rows that count, and reduce s to nodes."""
    f, values = (x.detach().cpu().to(torch.float64) for x in _arrays.paired((scores, "scores"), (s, "s")))
    if values.shape[1] > 1:
        raise ValueError(
            f"s has {values.shape[1]} columns; a gap is along one attribute. Call gdp_by_attribute, or pass one column."
        )
    if bandwidth is None:
        bandwidth = RANGE_SHARE * float(values.max() - values.min())
    elif not (math.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"bandwidth is {bandwidth}; pass a positive number, in units of s.")
    if where is not None:
        kept = _arrays.subset_mask(where, len(f)).cpu()
        f, values = f[kept], values[kept]
    _arrays.require_rows(len(f), 2, "a gap in mean scores")
    if bool((values == values[0]).all()):
        raise ValueError(
            f"s is constant: all {len(values)} rows are equal, so no gap along it can be measured. "
            "Check the column, or the rows that `where` keeps."
        )
    means = f.mean(dim=0)
    flat = _arrays.to_numpy(values[:, 0])
    return Sample(_arrays.to_numpy(f - means), _arrays.to_numpy(means), flat, reduced(flat, bandwidth), bandwidth)


class Gaps:
    """The signed gaps of a sample at its evaluation points, and of resamples of it."""

    def __init__(self, data: Sample, weighting: Weighting, scale: Scale) -> None:
        self.data, self.scale = data, scale
        nodes = data.nodes
        self.population = weighting == "population"
        at = nodes.values if self.population else _arrays.to_numpy(equispaced(torch.from_numpy(data.s), GRID_POINTS))
        self.smoother = nodes.smoother(at, data.bandwidth)
        self.columns = range(data.scores.shape[1])
        self.squares = data.scores**2
        whole = np.ones((len(data.s), 1))
        self.weights = self._weights(nodes.totals(whole))[:, 0]  # (points,)
        self.signed = np.stack([self._signed(whole, c)[:, 0] for c in self.columns])  # (columns, points)
        self.values = np.abs(self.signed) @ self.weights

    def _weights(self, counts: Array) -> Array:
        """Return the weight of each point, of shape (points, resamples), from the rows at each node."""
        if self.population:
            return np.asarray(counts / counts.sum(axis=0))
        points = len(self.smoother)
        return np.full((points, counts.shape[1]), 1 / points)

    def _signed(self, drawn: Array, column: int) -> Array:
        """Return the gaps of resamples, (points, resamples), from how often each row is drawn."""
        f = self.data.scores[:, column]
        n = len(f)
        mean, mean_square = f @ drawn / n, self.squares[:, column] @ drawn / n
        below = self.smoother @ self.data.nodes.totals(drawn)
        above = self.smoother @ self.data.nodes.totals(drawn * f[:, None])
        # a point whose every neighbour was left out of the resample has no gap there
        away = np.divide(above, below, out=np.broadcast_to(mean, above.shape).copy(), where=below > 0) - mean
        return np.asarray(away / self.scale(mean, mean_square))

    def under_permutation(self, rng: np.random.Generator, permutations: int) -> tuple[float, float]:
        """Return the mean of the largest value over permutations, and the p-value."""
        if permutations == 0:
            return math.nan, math.nan
        nodes, f, n = self.data.nodes, self.data.scores, len(self.data.s)
        below = self.smoother @ nodes.counts
        scale = self.scale(f.mean(axis=0), self.squares.mean(axis=0))
        null = []
        for order in permutations_of(rng, n, permutations):
            each = [
                self.weights @ np.abs(self.smoother @ nodes.totals(f[:, c][order]) / below[:, None]) / scale[c]
                for c in self.columns
            ]
            null.append(np.max(each, axis=0))
        drawn = np.concatenate(null)
        observed = self.values.max()
        slack = 100 * np.finfo(np.float64).eps * (np.abs(f).max(axis=0) / scale).max()
        return float(drawn.mean()), float((1 + (drawn >= observed - slack).sum()) / (1 + permutations))

    def interval(self, rng: np.random.Generator, bootstrap: int, confidence: float) -> tuple[float, float]:
        """Return the interval for the largest value, by the directional bootstrap."""
        if bootstrap == 0:
            return math.nan, math.nan
        n = len(self.data.s)
        signed: list[list[Array]] = [[] for _ in self.columns]
        weights = []
        for drawn in bootstrap_counts(rng, n, bootstrap):
            weights.append(self._weights(self.data.nodes.totals(drawn)))
            for c in self.columns:
                signed[c].append(self._signed(drawn, c))
        shifts = np.concatenate(weights, axis=1) - self.weights[:, None]
        tail = (1 - confidence) / 2 / len(self.columns)
        ends = [self._ends(c, np.concatenate(signed[c], axis=1), shifts, tail) for c in self.columns]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def _ends(self, column: int, resampled: Array, shifts: Array, tail: float) -> tuple[float, float]:
        gap = self.signed[column]
        noise = resampled - gap[:, None]
        near = np.abs(gap) <= math.sqrt(math.log(len(self.data.s))) * noise.std(axis=1)
        linear = np.sign(gap)[:, None] * noise
        moved = np.abs(gap) @ shifts
        # |gap + noise| - |gap| lies between its linear part and, where the gap may be zero, the size of the noise
        least = self.weights @ linear + moved
        most = self.weights @ np.where(near[:, None], np.abs(noise), linear) + moved
        value = float(self.values[column])
        return max(0.0, value - float(np.quantile(most, 1 - tail))), value - float(np.quantile(least, tail))


def check_resampling(confidence: float, bootstrap: int, permutations: int) -> None:
    """Raise unless the settings of the resampling make sense."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; pass a share between 0 and 1, such as 0.95.")
    for value, name in ((bootstrap, "bootstrap"), (permutations, "permutations")):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {type(value).__name__}; pass a whole number of resamples, 0 for none.")
        if value < 0:
            raise ValueError(f"{name} is {value}; pass a whole number of resamples, 0 for none.")
