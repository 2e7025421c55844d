"""Resampling of a smoothed gap: an interval by the bootstrap, and its law under independence by permutations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from frhsic import _arrays
from frhsic.parity._nodes import Array, Nodes, bootstrap_counts, nodes_of, permutations_of
from frhsic.parity.smoothing import GRID_POINTS, Weighting, equispaced


@dataclass(frozen=True)
class Resampling:
    """Settings of the resampling: confidence of the interval, numbers of resamples, and the random state."""

    confidence: float
    bootstrap: int
    permutations: int
    random_state: _arrays.RandomState

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        _arrays.require_integer(self.bootstrap, "bootstrap", 0)
        _arrays.require_integer(self.permutations, "permutations", 0)


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Checked inputs: centred scores of shape (rows, columns), s, its nodes and the bandwidth."""

    scores: Array
    s: Array
    nodes: Nodes
    bandwidth: float


def scored_rows(scores: Any, s: Any, bandwidth: float, where: Any) -> ScoredRows:
    """Check the inputs, keep the rows of `where`, and reduce s to nodes."""
    f, values = (x.detach().cpu().to(torch.float64) for x in _arrays.paired((scores, "scores"), (s, "s")))
    if values.shape[1] > 1:
        raise ValueError(f"s has {values.shape[1]} columns; a gap is along one attribute. Pass one column.")
    _arrays.require_scale(bandwidth, "bandwidth")
    if where is not None:
        kept = _arrays.subset_mask(where, len(f)).cpu()
        f, values = f[kept], values[kept]
    _arrays.require_rows(len(f), 2, "a gap in mean scores")
    _arrays.require_varying(values, "s")
    flat = _arrays.to_numpy(values[:, 0])
    nodes = nodes_of(flat, bandwidth)
    return ScoredRows(_arrays.to_numpy(f - f.mean(dim=0)), flat, nodes, bandwidth)


class Gaps:
    """Signed gaps of a sample at its evaluation points, and of resamples of it."""

    def __init__(self, data: ScoredRows, weighting: Weighting) -> None:
        self.data = data
        nodes = data.nodes
        self.population = weighting == "population"
        at = nodes.values if self.population else _arrays.to_numpy(equispaced(torch.from_numpy(data.s), GRID_POINTS))
        self.smoother = nodes.smoother(at, data.bandwidth)
        self.columns = range(data.scores.shape[1])
        whole = np.ones((len(data.s), 1))
        self.weights = self._weights(nodes.totals(whole))[:, 0]  # (points,)
        self.signed = np.stack([self._signed(whole, c)[:, 0] for c in self.columns])  # (columns, points)
        self.values = np.abs(self.signed) @ self.weights

    def _weights(self, counts: Array) -> Array:
        """Return the weight of each point, of shape (points, resamples), from the number of rows at each node."""
        if self.population:
            return np.asarray(counts / counts.sum(axis=0))
        points = len(self.smoother)
        return np.full((points, counts.shape[1]), 1 / points)

    def _signed(self, counts: Array, column: int) -> Array:
        """Return the gaps of resamples, (points, resamples), from how often each row is in each."""
        f = self.data.scores[:, column]
        mean = f @ counts / len(f)
        return self.data.nodes.smoothed_means(self.smoother, counts, f, default=mean) - mean

    def under_permutation(self, rng: np.random.Generator, permutations: int) -> tuple[float, float]:
        """Return the mean of the largest value over permutations, and the p-value."""
        if permutations == 0:
            return math.nan, math.nan
        nodes, f, n = self.data.nodes, self.data.scores, len(self.data.s)
        below = self.smoother @ nodes.counts
        null = []
        for order in permutations_of(rng, n, permutations):
            each = [
                self.weights @ np.abs(self.smoother @ nodes.totals(f[:, c][order]) / below[:, None])
                for c in self.columns
            ]
            null.append(np.max(each, axis=0))
        values = np.concatenate(null)
        slack = 100 * np.finfo(np.float64).eps * np.abs(f).max()
        return float(values.mean()), float((1 + (values >= self.values.max() - slack).sum()) / (1 + permutations))

    def interval(self, rng: np.random.Generator, bootstrap: int, confidence: float) -> tuple[float, float]:
        """Return the interval for the largest value, by the directional bootstrap."""
        if bootstrap == 0:
            return math.nan, math.nan
        n = len(self.data.s)
        signed: list[list[Array]] = [[] for _ in self.columns]
        weights = []
        for counts in bootstrap_counts(rng, n, bootstrap):
            weights.append(self._weights(self.data.nodes.totals(counts)))
            for c in self.columns:
                signed[c].append(self._signed(counts, c))
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
