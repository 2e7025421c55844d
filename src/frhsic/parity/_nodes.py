r"""Reduction of a sample of s to few values (nodes), which turns every resample into a product of small matrices.

Up to 1,024 distinct values are kept as they are, and the reduction is exact. More are replaced by equispaced nodes:
each row is divided between the two nodes around it (linear binning), which interpolates the Gaussian weight
:math:`\exp(-u^2/2h^2)` linearly. With nodes :math:`\delta` apart the weight changes by at most
:math:`(\delta/h)^2/8`: :math:`3 \cdot 10^{-5}` at 64 nodes to the bandwidth, and 0.8 % at four, the fewest allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

EXACT_VALUES = 1024
"""Up to this many distinct values of s are kept as they are."""

NODES_PER_BANDWIDTH = 64
MAX_NODES = 4096
COARSEST = 4
"""Nodes to the bandwidth, at least, where :data:`MAX_NODES` forces a coarser spacing."""

CHUNK_ENTRIES = 1 << 22
"""Entries of the matrix of resampled rows held at once."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Values that replace s, and the (nodes × rows) matrix that divides the rows among them."""

    values: Array
    shares: sparse.csr_matrix

    @property
    def counts(self) -> Array:
        """Number of rows at each node."""
        return np.asarray(self.shares.sum(axis=1)).ravel()

    def totals(self, values: Array) -> Array:
        """Return sums over the rows of each node: of shape (nodes, ...) from (rows, ...)."""
        return np.asarray(self.shares @ values)

    def smoother(self, at: Array, bandwidth: float) -> Array:
        """Return the Gaussian weights of the nodes at some values, of shape (values, nodes).

        The largest weight of each row is one, so that none underflows far from the data.
        """
        squares = ((at[:, None] - self.values) / bandwidth) ** 2
        return np.asarray(np.exp((squares.min(axis=1, keepdims=True) - squares) / 2))

    def smoothed_means(self, smoother: Array, counts: Array, f: Array, default: Array) -> Array:
        """Return the smoothed means of f in resamples, of shape (values, resamples), from how often each row occurs.

        A value without any row of the resample nearby gets `default`, which broadcasts to the result.
        """
        weights, totals = smoother @ self.totals(counts), smoother @ self.totals(counts * f[:, None])
        means = np.broadcast_to(default, totals.shape).copy()
        return np.asarray(np.divide(totals, weights, out=means, where=weights > 0))


def nodes_of(s: Array, bandwidth: float) -> Nodes:
    """Return the nodes of a sample: its distinct values, or equispaced values if there are many."""
    values, place = np.unique(s, return_inverse=True)
    n = len(s)
    if len(values) <= EXACT_VALUES:
        shares = sparse.csr_matrix((np.ones(n), (place, np.arange(n))), shape=(len(values), n))
        return Nodes(values, shares)
    spacing = bandwidth / NODES_PER_BANDWIDTH
    while True:
        left = np.floor((s - values[0]) / spacing)
        used = np.unique(np.concatenate([left, left + 1]))
        if len(used) <= MAX_NODES:
            break
        spacing *= 2
        if spacing * COARSEST > bandwidth:
            raise ValueError(
                f"bandwidth={bandwidth:.3g} is too small for {len(values)} distinct values of s between "
                f"{values[0]:.3g} and {values[-1]:.3g}: {MAX_NODES} nodes do not resolve it. Pass a larger bandwidth."
            )
    right_share = (s - values[0]) / spacing - left
    entries = np.concatenate([1 - right_share, right_share])
    nodes = np.searchsorted(used, np.concatenate([left, left + 1]))
    rows = np.tile(np.arange(n), 2)
    shares = sparse.csr_matrix((entries, (nodes, rows)), shape=(len(used), n))
    return Nodes(values[0] + spacing * used, shares)


def bootstrap_counts(rng: np.random.Generator, n: int, resamples: int) -> Iterator[Array]:
    """Yield how often each row occurs in each resample, in blocks of shape (rows, some resamples)."""
    for size in _blocks(n, resamples):
        rows = rng.integers(n, size=(size, n))
        yield np.stack([np.bincount(row, minlength=n) for row in rows], axis=1).astype(np.float64)


def permutations_of(rng: np.random.Generator, n: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Yield permutations of the rows, in blocks of shape (rows, some resamples)."""
    for size in _blocks(n, resamples):
        yield np.stack([rng.permutation(n) for _ in range(size)], axis=1)


def _blocks(n: int, resamples: int) -> Iterator[int]:
    step = max(1, CHUNK_ENTRIES // n)
    for start in range(0, resamples, step):
        yield min(step, resamples - start)
