r"""Gram matrices: HSIC of two that are held, products with and factors of those that are not, and
their tiles.

The first functions are pure, batched over leading dimensions and safe under ``vmap``. Use them
where Gram matrices :math:`K, L` of shape (..., n, n) fit in memory: mini-batches, permutation
tests, eigenvalue bounds. For larger samples use :func:`frhsic.dependence.hsic`. Adding a constant
to a kernel does not change HSIC, so `kernel.shifted` may be used in place of the kernel; it keeps
more digits where the kernel is nearly constant.

Sums over all pairs of rows take each tile of a symmetric matrix once, in O(n) memory. All
arithmetic is in float64: the terms of HSIC nearly cancel, and float32 sums of a million of them
would keep fewer than five digits.

At the end stands what all statistics of two samples do with their inputs: pair rows, keep a subset,
choose kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.kernels import Gaussian, HalfDistance, Kernel, gaussian_at_median


def centered(k: Tensor) -> Tensor:
    r"""Doubly centred Gram matrix, :math:`HKH` with :math:`H = I - 11^\top / n`.

    Rows and columns of the result sum to zero. The result is zero exactly when :math:`K_{ij} = a_i
    + a_j`.

    Parameters
    ----------
    k
        Symmetric matrices of shape (..., n, n).

    Examples
    --------
    >>> centered(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([[-1.,  1.],
            [ 1., -1.]])
    """
    rows = k.mean(-1, keepdim=True)
    return k - rows - rows.mT + rows.mean(-2, keepdim=True)


def hsic_biased(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a V-statistic, :math:`\operatorname{tr}(KHLH) / n^2`.

    Zero in the population exactly when the two variables are independent, if both kernels are
    characteristic. Never negative, and biased upwards by O(1/n). As a penalty on mini-batches
    prefer it for its stability; to compare values at different n use :func:`hsic_unbiased`.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n).

    References
    ----------
    Gretton, Bousquet, Smola and Schölkopf (2005), *Measuring statistical dependence with
    Hilbert-Schmidt norms*, Definition 2, with n in place of n - 1.

    Examples
    --------
    With linear kernels HSIC is the squared covariance, here 1.25 ** 2.

    >>> x = torch.arange(4.0)[:, None]
    >>> hsic_biased(x @ x.T, x @ x.T)
    tensor(1.5625)
    """
    return (centered(k) * l).mean(dim=(-2, -1)).clamp_min(0)  # below 0 by rounding alone


def hsic_unbiased(k: Tensor, l: Tensor) -> Tensor:
    r"""HSIC as a U-statistic, the mean of its kernel of degree four over distinct quadruples of
    rows.

    .. math:: \frac{1}{n(n-3)} \Big[ \operatorname{tr}(\tilde K \tilde L)
        + \frac{1^\top \tilde K 1 \; 1^\top \tilde L 1}{(n-1)(n-2)}
        - \frac{2}{n-2} 1^\top \tilde K \tilde L 1 \Big],

    where :math:`\tilde K, \tilde L` are the Gram matrices with their diagonals set to zero. Its
    expectation is the population value, so under independence it is zero on average and often
    negative.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n), with n at least 4.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence
    maximization*, Theorem 2.

    Examples
    --------
    Rows in two pairs that see only the other pair: 8/4 - 2 * 16/8 + 64/24.

    >>> k = torch.tensor([[1.0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 1]])
    >>> hsic_unbiased(k, k)
    tensor(0.6667)
    """
    n = k.shape[-1]
    _arrays.require_rows(n, 4, "unbiased HSIC")
    diagonal = torch.eye(n, dtype=torch.bool, device=k.device)
    k, l = k.masked_fill(diagonal, 0), l.masked_fill(diagonal, 0)
    k_rows, l_rows = k.sum(-1), l.sum(-1)
    cross = (k_rows * l_rows).sum(-1)
    return unbiased_from_sums((k * l).sum(dim=(-2, -1)), cross, k_rows.sum(-1), l_rows.sum(-1), n)


def unbiased_from_sums(
    joint: Tensor, cross: Tensor, k_total: Tensor, l_total: Tensor, n: int
) -> Tensor:
    r"""HSIC as a U-statistic, from sums over the off-diagonal entries of two Gram matrices.

    .. math:: \frac{\sum_{ij} \tilde K_{ij} \tilde L_{ij}}{n(n-3)} - \frac{2 \sum_i a_i
        b_i}{n(n-2)(n-3)}
        + \frac{\sum_i a_i \sum_i b_i}{n(n-1)(n-2)(n-3)},

    where :math:`a, b` are the row sums of :math:`\tilde K, \tilde L`, whose diagonals are zero.
    This is the formula of :func:`hsic_unbiased`; use it where the sums come from tiles.

    Parameters
    ----------
    joint, cross
        :math:`\sum_{ij} \tilde K_{ij} \tilde L_{ij}` and :math:`\sum_i a_i b_i`.
    k_total, l_total
        :math:`\sum_i a_i` and :math:`\sum_i b_i`.
    n
        Number of rows, at least 4.

    References
    ----------
    Song, Smola, Gretton, Bedo and Borgwardt (2012), *Feature selection via dependence
    maximization*, Theorem 2.

    Examples
    --------
    The sums of the example of :func:`hsic_unbiased`.

    >>> unbiased_from_sums(*torch.tensor([8.0, 16.0, 8.0, 8.0]), n=4)
    tensor(0.6667)
    """
    # Each total is divided by itself: their product stays in range, and Python's integers do not
    # overflow.
    product = (k_total / (n * (n - 1))) * (l_total / ((n - 2) * (n - 3)))
    return joint / (n * (n - 3)) - 2 * (cross / (n * (n - 2) * (n - 3))) + product


def hsic_weighted(k: Tensor, l: Tensor, w: Tensor) -> Tensor:
    r"""HSIC of the weighted empirical law :math:`\sum_i w_i \delta_{(z_i, s_i)}`.

    .. math:: \sum_{ij} w_i w_j K_{ij} L_{ij} - 2 \sum_i w_i (Kw)_i (Lw)_i + (w^\top K w)(w^\top L
        w).

    The weights enter both the joint law and the product of its marginals, so the value is zero when
    the weighted law is a product. With :math:`w_i = 1/n` it is :func:`hsic_biased`. Rows of weight
    zero are left out.

    Parameters
    ----------
    k, l
        Symmetric Gram matrices of shape (..., n, n).
    w
        Weights of shape (..., n), not negative and summing to one; not checked.

    Examples
    --------
    Two rows at weights 1/4 and 3/4: the squared variance of a coin of that bias, (3/16) ** 2.

    >>> x = torch.tensor([[0.0], [1.0]])
    >>> hsic_weighted(x @ x.T, x @ x.T, torch.tensor([0.25, 0.75]))
    tensor(0.0352)
    """
    rows = k @ w[..., :, None]
    total = w[..., None, :] @ rows
    return (w[..., :, None] * w[..., None, :] * (k - rows - rows.mT + total) * l).sum(dim=(-2, -1))


def paired_rows(
    z: Any, s: Any, *, where: Any, device: torch.device | str | None, least: int, what: str
) -> tuple[Tensor, Tensor]:
    """Return z and s as matrices of equal length, restricted to `where`, with at least `least` rows
    left.
    """
    z, s = _tensors.paired((z, "z"), (s, "s"), device=device)
    if where is not None:
        kept = _tensors.subset_mask(where, z.shape[0]).to(z.device)
        z, s = z[kept], s[kept]
        what = f"{what}, on the rows that `where` keeps,"
    _arrays.require_rows(z.shape[0], least, what)
    return z, s


def kernel_or_median(kernel: Kernel | None, x: Tensor, name: str) -> Kernel:
    """Return the given kernel, or for None the Gaussian at the median distance of x."""
    if kernel is None:
        return gaussian_at_median(x, name=name)
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"kernel_{name} is {type(kernel).__name__}; pass a kernel such as Gaussian(1.0), or"
            " None."
        )
    return kernel


def recentered(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x at mean zero if HSIC and MMD under the kernel do not change by it: products then
    keep more digits.
    """
    return x - x.detach().mean(dim=0) if kernel.centering_safe else x


def working_copy(x: Tensor, kernel: Kernel) -> Tensor:
    """Return x in float64 and detached; at median zero if HSIC under the kernel does not change by
    it.
    """
    x = x.detach().to(torch.float64)
    return x - x.median(dim=0).values if kernel.centering_safe else x


def column_scales(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of each column, with far-off values drawn in; 1 for a constant
    column.

    Far off is more than ten interquartile ranges from the median, where that range is not 0.
    """
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    reach = np.where(high > low, 10 * (high - low), np.inf)
    return np.where(
        (x == x[:1]).all(axis=0), 1.0, x.clip(middle - reach, middle + reach).std(axis=0)
    )


def safe_sqrt(x: Tensor) -> Tensor:
    """Square root of x; 0 with gradient 0 where x is 0 or slightly negative by rounding. NaN stays
    NaN.
    """
    vanishes = x <= 0
    return torch.where(vanishes, 0, torch.where(vanishes, 1, x).sqrt())


# Entries of the Gram matrix held at once.
TILE_ENTRIES = 1 << 21


def gram_times(
    kernel: Kernel | Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    b: Tensor,
    *,
    y: Tensor | None = None,
) -> Tensor:
    r"""Product of a Gram matrix with a thin one, :math:`(K b)_{ic} = \sum_j k(x_i, y_j)\, b_{jc}`,
    by tiles of rows.

    If the columns of `b` sum to zero or the result is centred afterwards, pass `kernel.shifted` in
    place of the kernel: the product differs by a constant per column, and nearly constant kernels
    keep more digits.

    Parameters
    ----------
    kernel
        A kernel, or any function of two matrices of rows.
    x
        Rows, of shape (n, d).
    b
        Of shape (m,) or (m, c), one row for each row of `y`.
    y
        Rows, of shape (m, d); `x` itself if not given.

    Examples
    --------
    >>> from frhsic.kernels import Linear
    >>> x = torch.tensor([[1.0], [2.0]])
    >>> gram_times(Linear(), x, torch.ones(2))
    tensor([3., 6.])
    """
    other = x if y is None else y
    step = max(1, TILE_ENTRIES // other.shape[0])
    # in place: small results allocated between large tiles would fragment the heap
    product = b.new_empty((x.shape[0], *b.shape[1:]))
    for i in range(0, x.shape[0], step):
        product[i : i + step] = kernel(x[i : i + step], other) @ b
    return product


def pivoted_cholesky(
    kernel: Kernel, x: Tensor, *, tolerance: float = 1e-12, max_rank: int | None = None
) -> tuple[Tensor, float]:
    r"""Incomplete Cholesky factor with diagonal pivots, :math:`K = GG^\top + R` with :math:`R
    \succeq 0`.

    Each step adds the row with the largest remaining diagonal. The algorithm stops when
    :math:`\operatorname{tr} R \le` `tolerance` :math:`\cdot \operatorname{tr} K`, at `max_rank`
    columns, or when the largest remaining diagonal is rounding error. Every eigenvalue of
    :math:`GG^\top` lies below that of :math:`K` by at most :math:`\operatorname{tr} R`. O(n r)
    memory, O(n r²) time.

    Returns
    -------
    tuple of Tensor and float
        The factor :math:`G`, of shape (n, r), and :math:`\operatorname{tr} R / \operatorname{tr}
        K`.

    References
    ----------
    Fine and Scheinberg (2001), *Efficient SVM training using low-rank kernel representations*.

    Examples
    --------
    Two of these three rows coincide, so two columns give the whole matrix.

    >>> from frhsic.kernels import Gaussian
    >>> x = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> factor, left = pivoted_cholesky(Gaussian(1.0), x)
    >>> factor.shape, left
    (torch.Size([3, 2]), 0.0)
    """
    n = x.shape[0]
    limit = n if max_rank is None else min(max_rank, n)
    remaining = kernel.diagonal(x).clone()
    total = float(remaining.sum())
    if total == 0:
        return x.new_zeros((n, 0)), 0.0
    noise = float(remaining.max()) * torch.finfo(x.dtype).eps * 4
    rank = 0
    factor = x.new_empty((n, min(limit, 32)))
    while rank < limit:
        pivot = int(remaining.argmax())
        largest = float(remaining[pivot])
        if largest <= noise or float(remaining.sum()) <= tolerance * total:
            break
        if rank == factor.shape[1]:
            factor = torch.cat([factor, x.new_empty((n, min(rank, limit - rank)))], dim=1)
        column = kernel(x, x[pivot : pivot + 1])[:, 0]
        if rank:
            column = column - factor[:, :rank] @ factor[pivot, :rank]
        column = column / math.sqrt(largest)
        factor[:, rank] = column
        rank += 1
        remaining = (remaining - column * column).clamp_min(0)
        remaining[pivot] = 0
    return factor[:, :rank], float(remaining.sum()) / total


# Rows of a tile for one thread. A tile of 256 and its temporaries fit a core's cache; 512 was
# slower.
CPU_TILE = 256
CUDA_TILE = 4096

# Largest number of columns of a factor that replaces its Gram matrix.
THIN = 64

# Up to this many rows a pass over the pairs is quicker than a search for a factor.
FEW_ROWS = 512

# Up to this :math:`\|x\|^2 / 2\sigma^2` one matrix product gives the exponents of a Gaussian to 12
# digits or more.
FAR = 500.0


# Part of the squared lengths below which a matrix product gives fewer than eleven digits of a
# squared distance.
CLOSE = 1e-4


@dataclass(frozen=True)
class Gram:
    r"""A Gram matrix of which only tiles are computed.

    Attributes
    ----------
    x
        Rows in float64, detached, of shape (n, d).
    kernel
        The kernel.
    shifted
        Whether k − 1 is summed in place of k; centring removes the constant. This keeps digits
        where the kernel is nearly constant, and only takes longer elsewhere (``expm1``, not
        ``exp``).
    factor
        A matrix G of at most :data:`THIN` columns with :math:`K = GG^\top` up to rounding, or None.
        It exists in one dimension, for linear kernels and for few distinct values; sums then take
        O(n) time.
    single
        Whether the rows were given in float32, so that a GPU may sum entries of that precision.
    """

    x: Tensor
    kernel: Kernel
    shifted: bool
    factor: Tensor | None
    single: bool = False

    @classmethod
    def of(cls, x: Tensor, kernel: Kernel, *, single: bool = False) -> Gram:
        """Return the Gram matrix of the rows of x, which are in float64 and detached."""
        gram = cls.without_factor(x, kernel, single=single)
        return (
            gram
            if gram.shifted or len(x) <= FEW_ROWS
            else replace(gram, factor=_thin_factor(x, kernel))
        )

    @classmethod
    def without_factor(cls, x: Tensor, kernel: Kernel, *, single: bool = False) -> Gram:
        """Return the Gram matrix with tiles alone."""
        return cls(x, kernel, nearly_constant(x, kernel), None, single)

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
        """The two factors of the exponents of a Gaussian of several columns (:func:`exponents_of`),
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
            return (self.kernel.shifted if self.shifted else self.kernel)(
                self.x[rows], self.x[columns]
            )
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

    Of several columns, one matrix product gives the squared distances, twelve times as fast as
    subtraction. Where little is left of the squared lengths, which costs digits, rows are
    subtracted after all.
    """
    x_squares, y_squares = x.square().sum(1)[:, None], y.square().sum(1)
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

    They save what every tile would prepare anew. None if a row is :data:`FAR` from the mean of the
    rows: a product would then lose too many digits.
    """
    scaled = (x - x.mean(dim=0)) / scale
    halves, ones = scaled.square().sum(1, keepdim=True) / 2, torch.ones_like(scaled[:, :1])
    if not bool(halves.max() <= FAR):
        return None
    return torch.cat([scaled, -halves, ones], dim=1), torch.cat([scaled, ones, -halves], dim=1)


def _thin_factor(x: Tensor, kernel: Kernel) -> Tensor | None:
    """Return a factor of the Gram matrix of more than :data:`FEW_ROWS` rows, up to rounding, if it
    has few columns.
    """
    some = x[:: len(x) // FEW_ROWS]
    _, left = pivoted_cholesky(kernel, some, tolerance=1e-15, max_rank=16)
    if left > 1e-3:  # many columns are missing
        return None
    factor, _ = pivoted_cholesky(kernel, x, tolerance=1e-15, max_rank=THIN)
    return factor if factor.shape[1] < THIN else None


def nearly_constant(x: Tensor, kernel: Kernel) -> bool:
    """Return whether to sum the kernel minus its offset, by ``expm1``, on the rows x.

    ``expm1`` costs more than ``exp``. It keeps more digits only where the values differ by less
    than a thousandth of the offset.
    """
    some = x[:: max(1, len(x) // 128)]
    return kernel.offset > 0 and bool(kernel.shifted(some, some).std() < 1e-3 * kernel.offset)


def tiles(n: int, device: torch.device, threads: int = 1) -> Iterator[tuple[slice, slice]]:
    """Yield the tiles on and above the diagonal as (rows, columns), for some threads to work on one
    tile at a time.

    Threads that share a tile wait for each other at every step, so each gets twice the entries of a
    thread alone.
    """
    size = CPU_TILE if threads == 1 else int(CPU_TILE * (2 * threads) ** 0.5)
    size = CUDA_TILE if device.type == "cuda" else size
    for i in range(0, n, size):
        for j in range(i, n, size):
            yield slice(i, min(i + size, n)), slice(j, min(j + size, n))


def over_tiles(
    n: int, device: torch.device, start: Callable[[], tuple[Tensor, ...]], add: Callable[..., None]
) -> tuple[Tensor, ...]:
    """Return the totals that `add(rows, columns, *totals)` adds to in place, over all tiles on and
    above the diagonal.

    On a CPU each thread takes a fixed share of the tiles and has its own totals, which are added up
    at the end, so threads wait for each other once instead of at every step.
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
