r"""Gram matrices that are computed tile by tile, and sums over the tiles.

Sums over all pairs of rows use each tile of a symmetric matrix once, in O(n) memory. All arithmetic
is in float64, because the terms of HSIC nearly cancel, and float32 sums of a million terms would
keep fewer than five digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from frhsic.dependence.grams import pivoted_cholesky
from frhsic.kernels import Gaussian, HalfDistance, Kernel

# Rows of a tile for one thread. A tile of 256 and its temporaries fit into a core's cache; 512 was
# slower.
CPU_TILE = 256
CUDA_TILE = 4096

# Largest number of columns of a factor that replaces its Gram matrix.
THIN = 64

# Up to this many rows a pass over the pairs is faster than a search for a factor.
FEWEST_FOR_FACTOR = 512

# Up to this :math:`\|x\|^2 / 2\sigma^2` one matrix product gives the exponents of a Gaussian to 12
# digits or more.
LARGEST_EXPONENT = 500.0

# Share of the squared lengths below which a matrix product gives fewer than eleven digits of a
# squared distance.
CLOSE = 1e-4


@dataclass(frozen=True)
class Gram:
    r"""A Gram matrix that is computed tile by tile.

    Attributes
    ----------
    x
        Rows in float64, detached, of shape (n, d).
    kernel
        The kernel.
    shifted
        Whether k − 1 is summed in place of k; centering removes the constant. Subtracting 1 keeps
        digits if the kernel is nearly constant, and otherwise only takes longer (``expm1`` instead
        of ``exp``).
    factor
        A matrix G of at most :data:`THIN` columns with :math:`K = GG^\top` up to rounding, or None.
        There is such a factor in one dimension, for linear kernels and for few distinct values;
        sums then take O(n) time.
    single
        Whether the rows were given in float32, so that a GPU may sum float32 entries.
    """

    x: Tensor
    kernel: Kernel
    shifted: bool
    factor: Tensor | None
    single: bool = False

    @classmethod
    def from_rows(cls, x: Tensor, kernel: Kernel, *, single: bool = False) -> Gram:
        """Prepare the Gram matrix of the rows of x, which are in float64 and detached."""
        gram = cls.without_factor(x, kernel, single=single)
        if gram.shifted or len(x) <= FEWEST_FOR_FACTOR:
            return gram
        return replace(gram, factor=_thin_factor(x, kernel))

    @classmethod
    def without_factor(cls, x: Tensor, kernel: Kernel, *, single: bool = False) -> Gram:
        """Prepare the Gram matrix without looking for a factor."""
        return cls(x, kernel, is_nearly_constant(x, kernel), None, single)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.x)

    @property
    def offset(self) -> float:
        """The constant that :meth:`tile` and :meth:`diagonal` subtract."""
        return self.kernel.offset if self.shifted else 0.0

    @cached_property
    def exponents(self) -> tuple[Tensor, Tensor] | None:
        """The two factors of the exponents of a Gaussian on several columns (:func:`exponents_of`),
        or None.
        """
        if not isinstance(self.kernel, Gaussian) or self.x.shape[1] == 1:
            return None
        return exponents_of(self.x, self.kernel.bandwidth)

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """Return a block of the matrix minus the offset."""
        if isinstance(self.kernel, HalfDistance):
            return half_distances(self.x[rows], self.x[columns])
        if self.exponents is None:
            entries = self.kernel.shifted if self.shifted else self.kernel
            return entries(self.x[rows], self.x[columns])
        left, right = self.exponents
        exponents = left[rows] @ right[columns].mT
        return exponents.expm1_() if self.shifted else exponents.exp_()

    def centered_tile(self, centers: Tensor, rows: slice, columns: slice) -> Tensor:
        r"""Return a block of :math:`HKH`, given :attr:`GramSums.centers`."""
        return self.tile(rows, columns).sub_(centers[rows, None]).sub_(centers[columns])

    def diagonal(self) -> Tensor:
        """Return the diagonal minus the offset."""
        return self.kernel.diagonal(self.x) - self.offset


def half_distances(x: Tensor, y: Tensor) -> Tensor:
    """Return the half-distance kernel of rows in float64, without a gradient.

    With several columns, the squared distances are computed with one matrix product, which is
    twelve times as fast as subtraction. If most of the squared lengths cancel, which loses digits,
    rows are subtracted directly.
    """
    x_squares = x.square().sum(1)[:, None]
    y_squares = y.square().sum(1)
    if x.shape[1] == 1:
        distances = (x - y.mT).abs_()
    else:
        squares = (x_squares + y_squares).addmm_(x, y.mT, alpha=-2)
        if bool(squares.amin() < CLOSE * (x_squares.amax() + y_squares.amax())):
            i, j = (squares < CLOSE * (x_squares + y_squares)).nonzero(as_tuple=True)
            if len(i) > squares.numel() // 8:  # ties
                return HalfDistance()(x, y)
            squares[i, j] = (x[i] - y[j]).square().sum(1)
        distances = squares.sqrt_()
    return distances.mul_(-0.5).add_(x_squares.sqrt() / 2).add_(y_squares.sqrt() / 2)


def exponents_of(x: Tensor, scale: float | Tensor) -> tuple[Tensor, Tensor] | None:
    r"""Return A and B with :math:`(AB^\top)_{ij} = -\|x_i - x_j\|^2 / 2\sigma^2` for the scale
    :math:`\sigma`.

    All tiles share A and B. Return None if the exponent between some row and the mean exceeds
    :data:`LARGEST_EXPONENT`, because a product would then lose too many digits.
    """
    scaled = (x - x.mean(dim=0)) / scale
    halves = scaled.square().sum(1, keepdim=True) / 2
    ones = torch.ones_like(scaled[:, :1])
    if not bool(halves.max() <= LARGEST_EXPONENT):
        return None
    return torch.cat([scaled, -halves, ones], dim=1), torch.cat([scaled, ones, -halves], dim=1)


def _thin_factor(x: Tensor, kernel: Kernel) -> Tensor | None:
    """Return a factor of the Gram matrix, up to rounding, if it has few columns."""
    some = x[:: len(x) // FEWEST_FOR_FACTOR]
    _, left = pivoted_cholesky(kernel, some, tolerance=1e-15, max_rank=16)
    if left > 1e-3:  # many columns are missing
        return None
    factor, _ = pivoted_cholesky(kernel, x, tolerance=1e-15, max_rank=THIN)
    return factor if factor.shape[1] < THIN else None


def is_nearly_constant(x: Tensor, kernel: Kernel) -> bool:
    """Return whether to sum the kernel minus its offset, computed with ``expm1``, for the rows x.

    ``expm1`` takes longer than ``exp`` and keeps more digits only if the values differ by less than
    a thousandth of the offset.
    """
    some = x[:: max(1, len(x) // 128)]
    return kernel.offset > 0 and bool(kernel.shifted(some, some).std() < 1e-3 * kernel.offset)


def tiles(n: int, device: torch.device, threads: int = 1) -> Iterator[tuple[slice, slice]]:
    """Yield the tiles on and above the diagonal as (rows, columns); `threads` threads work on each
    tile together.

    Threads that share a tile wait for each other at every step, so each thread gets twice as many
    entries as a single thread would.
    """
    size = CPU_TILE if threads == 1 else int(CPU_TILE * (2 * threads) ** 0.5)
    size = CUDA_TILE if device.type == "cuda" else size
    for i in range(0, n, size):
        for j in range(i, n, size):
            yield slice(i, min(i + size, n)), slice(j, min(j + size, n))


def sum_over_tiles(
    n: int, device: torch.device, start: Callable[[], tuple[Tensor, ...]], add: Callable[..., None]
) -> tuple[Tensor, ...]:
    """Return the totals after calling `add(rows, columns, *totals)`, which adds to them in place,
    for all tiles on and above the diagonal.

    On a CPU, each thread computes separate totals over a fixed share of the tiles, which are added
    up at the end. So threads wait for each other once instead of at every step.
    """
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    pairs = list(tiles(n, device))

    def share(first: int, step: int) -> tuple[Tensor, ...]:
        totals = start()
        for rows, columns in pairs[first::step]:
            add(rows, columns, *totals)
        return totals

    if threads == 1 or len(pairs) < 4 * threads:
        return share(0, 1)
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            parts = list(pool.map(share, range(threads), [threads] * threads))
    finally:
        torch.set_num_threads(threads)  # the pool's threads set it to one, also for new threads
    return tuple(torch.stack(total).sum(0) for total in zip(*parts))
