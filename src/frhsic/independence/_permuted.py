r"""HSIC under many permutations of s at once, never n × n above a stated size.

A permutation :math:`\pi` of the rows of s gives
:math:`T_\pi = \sum_{ij} \tilde K_{ij} \tilde L_{\pi(i) \pi(j)}`. Three ways, chosen by their cost:

* both Gram matrices have thin factors, :math:`\tilde K = AA^\top` and :math:`\tilde L = BB^\top`:
  :math:`T_\pi = \|A^\top P_\pi B\|_F^2`, O(n r r') for each permutation;
* one has: :math:`T_\pi = \sum_c (P_\pi b_c)^\top K P_\pi b_c`, O(n² r);
  K need not be centred because the columns of B are;
* neither has: the entries of L are looked up (n up to :data:`DENSE_ROWS`) or evaluated again, O(n²).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from frhsic.dependence._tiles import pairs
from frhsic.dependence.moments import CenteredGram, Gram, GramSums
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.independence._sample import Sample

DENSE_ROWS = 2048
"""Up to this many rows a Gram matrix may be held whole (32 MiB); above it memory is O(n)."""

TOLERANCE = 1e-11
"""A factor stands for its Gram matrix if it leaves out at most twice this share of the centred trace."""

BLOCK_ENTRIES = 1 << 22
"""Numbers held for one block of permutations (32 MiB)."""

LOOKUP_COST, EVALUATION_COST = 60, 300
"""Multiplications that take as long as looking up, or evaluating, one entry of a Gram matrix (measured on a CPU)."""


@dataclass(frozen=True)
class Permuted:
    r"""How :math:`T_\pi` is computed: a function of permutations (q, n), how many at once, and its error at most."""

    statistics: Callable[[Tensor], Tensor]
    block: int
    error: float


@dataclass(frozen=True)
class _Side:
    """One variable: its Gram matrix, row sums, norm of the centred matrix, and a thin factor of it if there is one."""

    gram: Gram
    row_sums: Tensor
    norm: float
    factor: Tensor | None
    left_out: float  # trace of the centred Gram matrix less that of the factor

    @property
    def columns(self) -> float:
        return math.inf if self.factor is None else self.factor.shape[1]


def permuted(data: Sample) -> Permuted:
    """Return the cheapest of the three ways, by multiplications for one permutation."""
    z = _side(data.k, data.sums.k, data.sums.centered_k)
    s = _side(data.l, data.sums.l, data.sums.centered_l)
    n, thinner = data.n, min(z.columns, s.columns)
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
    """Yield `count` permutations of n rows in blocks (q, n); the same ones whatever the block and the device."""
    for begin in range(0, count, block):
        size = min(block, count - begin)
        yield torch.stack([torch.randperm(n, generator=generator, device=generator.device) for _ in range(size)])


def _side(gram: Gram, sums: GramSums, centered: CenteredGram) -> _Side:
    x, kernel, n = gram.x, gram.kernel, gram.n
    norm, trace = math.sqrt(float(centered.squares)), float(centered.trace)
    whole = float(kernel.diagonal(x).sum())
    if trace <= 0 or whole <= 0:  # a constant: nothing is left after centring
        return _Side(gram, sums.rows, norm, x.new_zeros((n, 0)), 0.0)
    factor, left_out = gram.factor, 0.0
    if factor is None:
        most = min(max(n // 8, 64), 512)
        factor, share = pivoted_cholesky(kernel, x, tolerance=TOLERANCE * trace / whole, max_rank=most)
        left_out = share * whole
        if left_out > 2 * TOLERANCE * trace:
            return _Side(gram, sums.rows, norm, None, 0.0)
    factor = factor - factor.mean(dim=0)
    # the same matrix in fewer columns: turn to principal axes, and drop the last ones up to the tolerance
    values, axes = torch.linalg.eigh(factor.mT @ factor)
    dropped = values.clamp_min(0).cumsum(0)
    kept = dropped > TOLERANCE * trace
    left_out += float(torch.where(kept, 0, dropped).max())
    return _Side(gram, sums.rows, norm, factor @ axes[:, kept], left_out)


def _by_factors(a: Tensor, b: Tensor, error: float) -> Permuted:
    thin, wide, inverted = (b, a, False) if b.shape[1] <= a.shape[1] else (a, b, True)

    def statistics(order: Tensor) -> Tensor:
        moved = thin[order.argsort(1) if inverted else order]  # (q, n, r)
        return (wide.mT @ moved).square().sum(dim=(1, 2))

    size = max(thin.numel() + thin.shape[1] * wide.shape[1], 1)
    return Permuted(statistics, max(1, BLOCK_ENTRIES // size), error)


def _by_one_factor(factor: Tensor, other: _Side, error: float, *, inverted: bool) -> Permuted:
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

    return Permuted(statistics, max(1, BLOCK_ENTRIES // max(n * r, 1)), error)


def _by_entries(z: _Side, s: _Side) -> Permuted:
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

    return Permuted(statistics, 64, 0.0)


class _Tiles:
    """The tiles of a Gram matrix on and above its diagonal: kept up to :data:`DENSE_ROWS` rows, else made anew."""

    def __init__(self, side: _Side, *, centered: bool = False) -> None:
        self.side, self.centered = side, centered
        self.kept = list(self._made()) if side.gram.n <= DENSE_ROWS else None

    def __iter__(self) -> Iterator[tuple[slice, slice, Tensor]]:
        return iter(self.kept) if self.kept is not None else self._made()

    def _made(self) -> Iterator[tuple[slice, slice, Tensor]]:
        gram = self.side.gram
        for rows, columns in pairs(gram.n, gram.x.device):
            if self.centered:
                yield rows, columns, gram.centered_tile(self.side.row_sums, rows, columns)
            else:
                yield rows, columns, gram.tile(rows, columns)
