r"""HSIC under many permutations of s at once, in O(n) memory above :data:`DENSE_ROWS` rows.

A permutation :math:`\pi` of the rows of s gives
:math:`T_\pi = \sum_{ij} \tilde K_{ij} \tilde L_{\pi(i) \pi(j)}`. The cheapest of three algorithms computes it:

* if both Gram matrices have thin factors, :math:`\tilde K = AA^\top` and :math:`\tilde L = BB^\top`:
  :math:`T_\pi = \|A^\top P_\pi B\|_F^2`, O(n r r') for each permutation;
* if one has: :math:`T_\pi = \sum_c (P_\pi b_c)^\top K P_\pi b_c`, O(n² r);
  K need not be centred because the columns of B are;
* if neither has: the entries of L are looked up (n up to :data:`DENSE_ROWS`) or evaluated again, O(n²).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from frhsic.dependence._gram import Gram, tiles
from frhsic.dependence.moments import GramSums
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.independence._gram_pair import GramPair

DENSE_ROWS = 2048
"""Up to this many rows a Gram matrix may be held whole (32 MiB); above it memory is O(n)."""

TOLERANCE = 1e-11
"""A factor replaces its Gram matrix if it leaves out at most twice this share of the centred trace."""

BLOCK_ENTRIES = 1 << 22
"""Numbers held for one block of permutations (32 MiB)."""

LOOKUP_COST, EVALUATION_COST = 60, 300
"""Number of multiplications that cost as much as one lookup, or one evaluation, of a kernel value (on a CPU)."""


@dataclass(frozen=True)
class Algorithm:
    r"""A way to compute :math:`T_\pi`: the function of permutations (q, n), how many at once, and its largest error."""

    statistics: Callable[[Tensor], Tensor]
    block: int
    error: float


@dataclass(frozen=True)
class PermutedStatistics:
    r"""The observed :math:`T`, the permuted :math:`T_\pi` (resamples,), and the difference up to which two are tied."""

    observed: float
    null: Tensor
    slack: float


def permuted_statistics(
    pair: GramPair, resamples: int, generator: torch.Generator, clusters: Tensor | None = None
) -> PermutedStatistics:
    r"""Return :math:`T`, and :math:`T_\pi` for `resamples` permutations; a seed draws the same ones on every device.

    With `clusters`, the label of each row, clusters of equal size are permuted as a whole.
    """
    algorithm, n, device = cheapest_algorithm(pair), pair.n, pair.k.x.device
    if clusters is None:
        blocks = permutations(n, resamples, algorithm.block, generator)
    else:
        blocks = cluster_permutations(clusters, resamples, algorithm.block, generator)
    null = torch.cat([algorithm.statistics(block.to(device)) for block in blocks])
    observed = float(algorithm.statistics(torch.arange(n, device=device)[None]))
    return PermutedStatistics(observed, null, tie_slack(pair, algorithm))


def tie_slack(pair: GramPair, algorithm: Algorithm) -> float:
    """Return the difference up to which two statistics are tied: rounding of the summed terms, and error of factors."""
    return 100 * torch.finfo(torch.float64).eps * pair.magnitude + algorithm.error


@dataclass(frozen=True)
class _Side:
    """One variable: its Gram matrix, centres, norm of the centred matrix, and its thin factor, if it has one."""

    gram: Gram
    centers: Tensor
    norm: float
    factor: Tensor | None
    left_out: float  # trace of the centred Gram matrix minus that of the factor

    @property
    def columns(self) -> float:
        return math.inf if self.factor is None else self.factor.shape[1]


def cheapest_algorithm(pair: GramPair) -> Algorithm:
    """Return the algorithm with the fewest multiplications for one permutation."""
    z, s = _side(pair.k, pair.sums.k), _side(pair.l, pair.sums.l)
    n, thinner = pair.n, min(z.columns, s.columns)
    lookup = LOOKUP_COST if n <= DENSE_ROWS else EVALUATION_COST
    by_factors, by_one, by_entries = 2 * n * z.columns * s.columns, n * n * thinner, n * n * lookup
    if z.factor is not None and s.factor is not None and by_factors <= min(by_one, by_entries):
        # a residual R is positive semi-definite, so 0 <= tr(RL) <= tr R · ‖L‖
        error = z.left_out * s.norm + s.left_out * z.norm
        return _by_factors(z.factor, s.factor, error)
    if z.factor is not None and by_one <= by_entries and z.columns < s.columns:
        return _by_one_factor(z.factor, s, z.left_out * s.norm, inverted=True)
    if s.factor is not None and by_one <= by_entries:
        return _by_one_factor(s.factor, z, s.left_out * z.norm, inverted=False)
    return _by_entries(z, s)


def permutations(n: int, count: int, block: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield `count` permutations of n rows in blocks (q, n); they do not depend on the block size."""
    for begin in range(0, count, block):
        size = min(block, count - begin)
        yield torch.stack([torch.randperm(n, generator=generator, device=generator.device) for _ in range(size)])


def cluster_permutations(clusters: Tensor, count: int, block: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield `count` permutations that exchange clusters (numbered from 0) of equal size, in blocks (q, n)."""
    sizes = torch.bincount(clusters)
    ends, by_cluster = sizes.cumsum(0).tolist(), clusters.argsort(stable=True)
    rows = [by_cluster[end - size : end] for end, size in zip(ends, sizes.tolist())]
    tables = [torch.stack([r for r in rows if len(r) == size]) for size in sorted({len(r) for r in rows})]

    def order() -> Tensor:
        moved = torch.empty_like(clusters)
        for table in tables:
            moved[table] = table[torch.randperm(len(table), generator=generator, device=generator.device)]
        return moved

    for begin in range(0, count, block):
        yield torch.stack([order() for _ in range(min(block, count - begin))])


def _side(gram: Gram, sums: GramSums) -> _Side:
    x, kernel, n, centered = gram.x, gram.kernel, gram.n, sums.centered
    norm, trace = math.sqrt(float(centered.squares)), float(centered.trace)
    whole = float(kernel.diagonal(x).sum())
    if trace <= 0 or whole <= 0:  # constant: the centred matrix is zero
        return _Side(gram, sums.centers, norm, x.new_zeros((n, 0)), 0.0)
    factor, left_out = gram.factor, 0.0
    if factor is None:
        most = min(max(n // 8, 64), 512)
        factor, share = pivoted_cholesky(kernel, x, tolerance=TOLERANCE * trace / whole, max_rank=most)
        left_out = share * whole
        if left_out > 2 * TOLERANCE * trace:
            return _Side(gram, sums.centers, norm, None, 0.0)
    factor = factor - factor.mean(dim=0)
    # the same matrix in fewer columns: rotate to principal axes, and drop the last ones up to the tolerance
    values, axes = torch.linalg.eigh(factor.mT @ factor)
    dropped = values.clamp_min(0).cumsum(0)
    kept = dropped > TOLERANCE * trace
    left_out += float(torch.where(kept, 0, dropped).max())
    return _Side(gram, sums.centers, norm, factor @ axes[:, kept], left_out)


def _by_factors(a: Tensor, b: Tensor, error: float) -> Algorithm:
    thin, wide, inverted = (b, a, False) if b.shape[1] <= a.shape[1] else (a, b, True)

    def statistics(order: Tensor) -> Tensor:
        moved = thin[order.argsort(1) if inverted else order]  # (q, n, r)
        return (wide.mT @ moved).square().sum(dim=(1, 2))

    size = max(thin.numel() + thin.shape[1] * wide.shape[1], 1)
    return Algorithm(statistics, max(1, BLOCK_ENTRIES // size), error)


def _by_one_factor(factor: Tensor, other: _Side, error: float, *, inverted: bool) -> Algorithm:
    n, r = factor.shape
    tiles = _Tiles(other)

    def statistics(order: Tensor) -> Tensor:
        q = len(order)
        moved = factor[(order.argsort(1) if inverted else order).mT].reshape(n, q * r)  # (n, q, r) as a thin matrix
        total = factor.new_zeros(q)
        for rows, columns, tile in tiles:
            product = (moved[rows] * (tile @ moved[columns])).sum(0).reshape(q, r).sum(1)
            total += product if rows == columns else 2 * product
        return total

    return Algorithm(statistics, max(1, BLOCK_ENTRIES // max(n * r, 1)), error)


def _by_entries(z: _Side, s: _Side) -> Algorithm:
    gram = s.gram
    dense = gram.tile(slice(None), slice(None)) if gram.n <= DENSE_ROWS else None
    tiles = _Tiles(z, centered=True)

    def statistics(order: Tensor) -> Tensor:
        total = gram.x.new_zeros(len(order))
        moved = [gram if dense is not None else replace(gram, x=gram.x[p]) for p in order]
        for rows, columns, tile in tiles:
            for b, p in enumerate(order):
                entries = moved[b].tile(rows, columns) if dense is None else dense[p[rows]][:, p[columns]]
                total[b] += (1 if rows == columns else 2) * torch.dot(tile.reshape(-1), entries.reshape(-1))
        return total

    return Algorithm(statistics, 64, 0.0)


class _Tiles:
    """The tiles of a Gram matrix on and above its diagonal: kept up to :data:`DENSE_ROWS` rows, else computed again."""

    def __init__(self, side: _Side, *, centered: bool = False) -> None:
        self.side, self.centered = side, centered
        self.kept = list(self._computed()) if side.gram.n <= DENSE_ROWS else None

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor]]:
        return iter(self.kept) if self.kept is not None else self._computed()

    def _computed(self) -> Iterator[tuple[slice, slice, Tensor]]:
        gram = self.side.gram
        for rows, columns in tiles(gram.n, gram.x.device, torch.get_num_threads()):
            if self.centered:
                yield rows, columns, gram.centered_tile(self.side.centers, rows, columns)
            else:
                yield rows, columns, gram.tile(rows, columns)
