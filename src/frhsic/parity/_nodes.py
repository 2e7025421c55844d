r"""A sample of s reduced to few values, so that every resample is a product of small matrices.

Few distinct values are kept as they are and the reduction is exact. Many are replaced by equispaced nodes, and each
row is shared out between the two around it in proportion (linear binning), so that a Gaussian weight
:math:`\exp(-u^2/2h^2)` becomes its linear interpolation: with nodes :math:`\delta` apart the weight is off by at
most :math:`(\delta/h)^2/8`, which is :math:`3 \cdot 10^{-5}` at 64 nodes to the bandwidth and 0.8 % at four, the
fewest that are admitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

EXACT_VALUES = 1024
"""Up to so many distinct values of s are kept as they are."""

NODES_PER_BANDWIDTH = 64
MAX_NODES = 4096
COARSEST = 4
"""Where more than the most nodes would be needed they are spread out, to this many in a bandwidth and no fewer."""

CHUNK_ENTRIES = 1 << 22
"""Entries of the matrix of resampled rows that are held at once."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Values that stand for s, and the (nodes × rows) matrix that shares the rows out among them."""

    values: Array
    shares: sparse.csr_matrix

    @property
    def rows(self) -> int:
        return int(self.shares.shape[1])

    @property
    def counts(self) -> Array:
        """Rows at each node."""
        return np.asarray(self.shares.sum(axis=1)).ravel()

    def totals(self, values: Array) -> Array:
        """Return sums over the rows of each node: of shape (nodes, ...) from (rows, ...)."""
        return np.asarray(self.shares @ values)

    def smoother(self, at: Array, bandwidth: float) -> Array:
        """Return the Gaussian weights of the nodes at some values, of shape (values, nodes).

        Each row is scaled to a largest weight of one, so that none underflows far from the data.
        """
        squares = ((at[:, None] - self.values) / bandwidth) ** 2
        return np.asarray(np.exp((squares.min(axis=1, keepdims=True) - squares) / 2))


def reduced(s: Array, bandwidth: float) -> Nodes:
    """Return the nodes of a sample: its distinct values, or equispaced ones where these are many."""
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
    rows = np.concatenate([np.arange(n), np.arange(n)])
    shares = sparse.csr_matrix((entries, (nodes, rows)), shape=(len(used), n))
    return Nodes(values[0] + spacing * used, shares)


def bootstrap_counts(rng: np.random.Generator, n: int, resamples: int) -> Iterator[Array]:
    """Yield how often each row is drawn, in blocks of shape (rows, some resamples)."""
    for size in _blocks(n, resamples):
        drawn = rng.integers(n, size=(size, n))
        yield np.stack([np.bincount(row, minlength=n) for row in drawn], axis=1).astype(np.float64)


def permutations_of(rng: np.random.Generator, n: int, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Yield permutations of the rows, in blocks of shape (rows, some resamples)."""
    for size in _blocks(n, resamples):
        yield np.stack([rng.permutation(n) for _ in range(size)], axis=1)


def _blocks(n: int, resamples: int) -> Iterator[int]:
    step = max(1, CHUNK_ENTRIES // n)
    for start in range(0, resamples, step):
        yield min(step, resamples - start)
