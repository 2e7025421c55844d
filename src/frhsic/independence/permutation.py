r"""The permutation test of independence, whose level is exact for every n.

A permutation :math:`\pi` of the rows of s gives :math:`T_\pi = \sum_{ij} \tilde K_{ij} \tilde
L_{\pi(i) \pi(j)}`. It is computed by the cheapest of three algorithms, in O(n) memory for more than
:data:`DENSE_ROWS` rows:

* if both Gram matrices have thin factors, :math:`\tilde K = AA^\top` and :math:`\tilde L =
  BB^\top`: :math:`T_\pi = \|A^\top P_\pi B\|_F^2`, in O(n r r') for each permutation;
* if only one matrix has a thin factor: :math:`T_\pi = \sum_c (P_\pi b_c)^\top K P_\pi b_c`, O(n²
r);
  K need not be centered, because the columns of B are;
* if neither matrix has a thin factor: the entries of L are looked up (for n up to
:data:`DENSE_ROWS`) or recomputed, in O(n²).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.grams import pivoted_cholesky
from frhsic.dependence.sums import GramSums
from frhsic.dependence.tiles import Gram, tiles
from frhsic.independence.grams import GramPair, gram_pair
from frhsic.independence.pairs import IndependenceResult
from frhsic.kernels import Kernel

DENSE_ROWS = 2048
"""With up to this many rows, the whole Gram matrix may be stored (32 MiB); with more rows, memory
is O(n).
"""

FACTOR_TOLERANCE = 1e-11
"""A factor replaces its Gram matrix if it omits at most twice this share of the centered trace."""

BLOCK_ENTRIES = 1 << 22
"""Number of values stored for one block of permutations (32 MiB)."""

LOOKUP_COST = 60
"""Number of multiplications that cost as much as one lookup of a kernel value (on a CPU)."""

EVALUATION_COST = 300
"""Number of multiplications that cost as much as one evaluation of a kernel value."""


def permutation_test(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    resamples: int = 999,
    random_state: _arrays.RandomState = 0,
    level: float = 0.05,
    where: Any = None,
    groups: Any = None,
    device: torch.device | str | None = None,
) -> IndependenceResult:
    r"""Test of the independence of Z and S (:math:`H_0`), based on HSIC and permutations of s.

    .. math:: p = \frac{1 + \#\{b : T_{\pi_b} \ge T\}}{1 + B},

    where :math:`T` is HSIC and :math:`T_{\pi_b}` is HSIC with the rows of s permuted. For
    exchangeable rows, :math:`\Pr(p \le \alpha) \le \alpha` for every n and every kernel. Values
    that differ from T only by rounding count as ties. A seed gives the same permutations on every
    device. Use this test if the level must be exact. The time is O(n) for each permutation if both
    Gram matrices have thin factors (one dimension, linear kernels, few distinct values), and O(n²)
    otherwise; for many rows in many dimensions, :func:`~frhsic.independence.gamma_test` is faster.
    With more than 2,048 rows, memory is O(n).

    Parameters
    ----------
    z, s
        One row per observation; several columns of `s` are several attributes, permuted together.
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth.
    resamples
        Number B of permutations. At level .05, a test with fewer than 19 permutations never
        rejects.
    random_state
        A seed, or a NumPy or torch generator; None draws a seed, which the result stores.
    level
        Level of the test, for the threshold and for :attr:`IndependenceResult.rejected`.
    where
        Rows to test and permute: a boolean mask or a 0/1 target.
    groups
        Labels of rows that belong together, such as several rows of one person. Groups of equal
        size exchange their rows of s as a whole, without changing the order within a group; the
        level is exact if groups are independent. A group whose size no other group has keeps its
        rows.
    device
        Device to compute on; by default, the device of the data.

    Examples
    --------
    For eight ordered points, every permutation except the identity and the reversal gives less than
    the observed value, which is the squared variance.

    >>> from frhsic.kernels import Linear
    >>> x = torch.arange(8.0)
    >>> result = permutation_test(x, x, Linear(), Linear(), resamples=99, random_state=0)
    >>> round(result.statistic, 4), result.pvalue
    (27.5625, 0.01)
    """
    _arrays.require_fraction(level, "level")
    _arrays.require_integer(resamples, "resamples")
    pair = gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, least=4)
    seed = _arrays.integer_seed(random_state)
    labels = None if groups is None else _cluster_labels(groups, where, pair.n)
    generator = _tensors.generator(seed)
    observed, null, slack = permuted_statistics(pair, int(resamples), generator, labels)
    pvalue = permutation_pvalue(observed, null, slack)
    threshold = critical_value(null, level) / pair.n**2
    if labels is None:
        return pair.result(pvalue, threshold, level, "permutation", seed=seed)
    null = null / pair.n**2
    moments = float(null.mean()), float(null.var(correction=0))
    method = "permutation of clusters"
    return pair.result(pvalue, threshold, level, method, null=moments, seed=seed)


def _cluster_labels(clusters: Any, where: Any, n: int) -> Tensor:
    """Return the cluster number of each tested row."""
    labels = np.asarray(clusters)
    if where is not None and labels.ndim == 1:
        labels = labels[_arrays.subset_mask(where, len(labels))]
    if labels.shape != (n,):
        raise ValueError(
            f"groups has shape {np.shape(clusters)}; pass one label for each row of the data."
        )
    _, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    if len(np.unique(sizes)) == len(sizes):
        raise ValueError(
            "no two groups have the same number of rows, so groups cannot be exchanged. Drop"
            " rows so that some groups have equal sizes."
        )
    return torch.from_numpy(numbers.ravel().astype(np.int64))


def permutation_pvalue(observed: float, null: Tensor, slack: float) -> float:
    """Return the share of statistics that are at least as large as the observed statistic,
    including ties up to `slack` and the observed statistic itself.
    """
    return (1 + int((null >= observed - slack).sum())) / (1 + len(null))


def critical_value(null: Tensor, level: float) -> float:
    """Return the value that a statistic must exceed for p <= level: the m-th largest of B values,
    with m = ⌊level (1 + B)⌋.
    """
    m = math.floor(level * (1 + len(null)) * (1 + 1e-12))  # .05 · 200 must give 10
    return math.inf if m == 0 else float(null.topk(m).values[-1])


@dataclass(frozen=True)
class Algorithm:
    r"""An algorithm for :math:`T_\pi`: a function of permutations (q, n), the number of
    permutations that it processes at once, and its largest error.
    """

    statistics: Callable[[Tensor], Tensor]
    block: int
    error: float


def permuted_statistics(
    pair: GramPair, resamples: int, generator: torch.Generator, clusters: Tensor | None = None
) -> tuple[float, Tensor, float]:
    r"""Return :math:`T`, the values :math:`T_\pi` for `resamples` permutations, and the largest
    difference between two values that counts as a tie.

    A seed gives the same permutations on every device. With `clusters`, the label of each row,
    clusters of equal size are exchanged as a whole.
    """
    z = _side(pair.k, pair.sums.k)
    s = _side(pair.l, pair.sums.l)
    algorithm = cheapest_algorithm(z, s)
    device = pair.k.x.device
    identity = torch.arange(pair.n, device="cpu")
    alone = identity if clusters is None else clusters
    blocks = permutations(alone, resamples, algorithm.block, generator)
    null = torch.cat([algorithm.statistics(block.to(device)) for block in blocks])
    observed = float(algorithm.statistics(identity[None].to(device)))
    # rounding of the summed terms, and the error of factors
    slack = 100 * torch.finfo(torch.float64).eps * pair.magnitude + algorithm.error
    return observed, null, slack


@dataclass(frozen=True)
class _Side:
    """One variable: its Gram matrix with the centers, the norm of the centered matrix, and the thin
    factor, if there is one.
    """

    gram: Gram
    centers: Tensor
    norm: float
    factor: Tensor | None
    left_out: float  # trace of the centered Gram matrix minus that of the factor

    @property
    def columns(self) -> float:
        return math.inf if self.factor is None else self.factor.shape[1]


def cheapest_algorithm(z: _Side, s: _Side) -> Algorithm:
    """Return the algorithm with the fewest multiplications for one permutation."""
    n = z.gram.n
    by_factors = 2 * n * z.columns * s.columns
    by_one = n * n * min(z.columns, s.columns)
    by_entries = n * n * (LOOKUP_COST if n <= DENSE_ROWS else EVALUATION_COST)
    if z.factor is not None and s.factor is not None and by_factors <= min(by_one, by_entries):
        # a residual R is positive semi-definite, so 0 <= tr(RL) <= tr R · ‖L‖
        error = z.left_out * s.norm + s.left_out * z.norm
        return _by_factors(z.factor, s.factor, error)
    if z.factor is not None and by_one <= by_entries and z.columns < s.columns:
        return _by_one_factor(z.factor, s, z.left_out * s.norm, inverted=True)
    if s.factor is not None and by_one <= by_entries:
        return _by_one_factor(s.factor, z, s.left_out * z.norm, inverted=False)
    return _by_entries(z, s)


def permutations(
    clusters: Tensor, count: int, block: int, generator: torch.Generator
) -> Iterator[Tensor]:
    """Yield `count` permutations, in blocks (q, n), that exchange clusters (numbered from 0) of
    equal size.

    The permutations do not depend on the size of the blocks.
    """
    sizes = torch.bincount(clusters)
    rows = clusters.argsort(stable=True)
    size_of_row = sizes[clusters[rows]]
    tables = [rows[size_of_row == size].reshape(-1, size) for size in sorted(set(sizes.tolist()))]

    def order() -> Tensor:
        moved = torch.empty_like(clusters)
        for table in tables:
            shuffled = torch.randperm(len(table), generator=generator, device=generator.device)
            moved[table] = table[shuffled]
        return moved

    for begin in range(0, count, block):
        yield torch.stack([order() for _ in range(min(block, count - begin))])


def _side(gram: Gram, sums: GramSums) -> _Side:
    x = gram.x
    norm = math.sqrt(float(sums.centered_gram.squares))
    trace = float(sums.centered_gram.trace)
    whole = float(gram.kernel.diagonal(x).sum())
    if trace <= 0:  # constant: the centered matrix is zero
        return _Side(gram, sums.centers, norm, x.new_zeros((gram.n, 0)), 0.0)
    factor = gram.factor
    left_out = 0.0
    if factor is None:
        most = min(max(gram.n // 8, 64), 512)
        factor, share = pivoted_cholesky(
            gram.kernel, x, tolerance=FACTOR_TOLERANCE * trace / whole, max_rank=most
        )
        left_out = share * whole
        if left_out > 2 * FACTOR_TOLERANCE * trace:
            return _Side(gram, sums.centers, norm, None, 0.0)
    factor = factor - factor.mean(dim=0)
    # the same matrix in fewer columns: rotate to principal axes, and drop the last ones up to the
    # tolerance
    values, axes = torch.linalg.eigh(factor.mT @ factor)
    dropped = values.clamp_min(0).cumsum(0)
    kept = dropped > FACTOR_TOLERANCE * trace
    left_out += float(torch.where(kept, 0, dropped).max())
    return _Side(gram, sums.centers, norm, factor @ axes[:, kept], left_out)


def _by_factors(a: Tensor, b: Tensor, error: float) -> Algorithm:
    inverted = a.shape[1] < b.shape[1]
    thin, wide = (a, b) if inverted else (b, a)

    def statistics(order: Tensor) -> Tensor:
        moved = thin[order.argsort(1) if inverted else order]  # (q, n, r)
        return (wide.mT @ moved).square().sum(dim=(1, 2))

    size = max(thin.numel() + thin.shape[1] * wide.shape[1], 1)
    return Algorithm(statistics, max(1, BLOCK_ENTRIES // size), error)


def _by_one_factor(factor: Tensor, other: _Side, error: float, *, inverted: bool) -> Algorithm:
    n, r = factor.shape
    parts = _tiles(other)

    def statistics(order: Tensor) -> Tensor:
        q = len(order)
        sources = order.argsort(1) if inverted else order
        moved = factor[sources.mT].reshape(n, q * r)  # (n, q, r) as a thin matrix
        total = factor.new_zeros(q)
        for rows, columns, tile in parts():
            product = (moved[rows] * (tile @ moved[columns])).sum(0).reshape(q, r).sum(1)
            total += product if rows == columns else 2 * product
        return total

    return Algorithm(statistics, max(1, BLOCK_ENTRIES // max(n * r, 1)), error)


def _by_entries(z: _Side, s: _Side) -> Algorithm:
    gram = s.gram
    dense = gram.tile(slice(None), slice(None)) if gram.n <= DENSE_ROWS else None
    parts = _tiles(z, centered=True)

    def entries_of(p: Tensor) -> Callable[[slice, slice], Tensor]:
        if dense is None:
            return replace(gram, x=gram.x[p]).tile
        return lambda rows, columns: dense[p[rows]][:, p[columns]]

    def statistics(order: Tensor) -> Tensor:
        total = gram.x.new_zeros(len(order))
        entries = [entries_of(p) for p in order]
        for rows, columns, tile in parts():
            times = 1 if rows == columns else 2  # the tile and its mirror image
            for b, of_permuted in enumerate(entries):
                moved = of_permuted(rows, columns)
                total[b] += times * torch.dot(tile.reshape(-1), moved.reshape(-1))
        return total

    return Algorithm(statistics, 64, 0.0)


def _tiles(
    side: _Side, *, centered: bool = False
) -> Callable[[], Iterable[tuple[slice, slice, Tensor]]]:
    """Return the tiles of a Gram matrix on and above the diagonal; with up to :data:`DENSE_ROWS`
    rows, tiles are stored.
    """
    gram = side.gram

    def computed() -> Iterator[tuple[slice, slice, Tensor]]:
        for rows, columns in tiles(gram.n, gram.x.device, torch.get_num_threads()):
            if centered:
                yield rows, columns, gram.centered_tile(side.centers, rows, columns)
            else:
                yield rows, columns, gram.tile(rows, columns)

    if gram.n > DENSE_ROWS:
        return computed
    kept = list(computed())
    return lambda: kept
