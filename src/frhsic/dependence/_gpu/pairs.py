"""Sums over pairs of rows under Gaussian kernels, computed by GPU kernels, for rows given in
float32.

A product of Gaussians, one for each column, is one Gaussian in scaled coordinates: an entry is 2 to
the power of minus a squared distance. Each coordinate is stored as two float16 halves, rows are
processed in chunks to bound the memory, and sums are fixed-point integers.

Sums of few distinct float32 numbers keep rounding in the same direction, and HSIC near independence
is far smaller than its sums. So if rows have few distinct values (:class:`Levels`), sums are
computed in float64, from a table of the entries and the number of rows at each level. The entries
in the table are the same float32 numbers that the kernels sum over all pairs, so both sums refer to
the same matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from frhsic.dependence._gpu import kernels
from frhsic.dependence.tiles import is_nearly_constant
from frhsic.kernels import Gaussian, Kernel, PerColumn

# Fewest columns for which distances come from matrix products; with fewer, differences are as fast
# and keep all digits.
FEWEST_FOR_PRODUCTS = 5

# Largest mean squared norm, in units in which a Gaussian is 2 to the minus squared distance, for
# matrix products. They lose about 1e-6 times the squared norms of a distance. Rows farther out are
# subtracted from each other directly.
MOST_ENERGY = 16.0

# Mean squared norm below which coordinates are enlarged: small float16 numbers have fewer digits.
LEAST_ENERGY = 2.0**-6

# Number of rows used to compute the constant that is subtracted from all entries of a kernel
# matrix.
SOME_ROWS = 1024

# Most distinct rows for which sums come from a table.
MOST_TABLED = 256

# Rows whose coordinates are stored in halves at a time.
HALVED_ROWS = 1 << 17

# Rows and columns of a tile, and tiles of a program; the fastest of those tried on an H200.
BLOCK_I = 64
BLOCK_J = 64
SEGMENT = 64
OPTIONS: dict[str, Any] = {"num_warps": 4, "num_stages": 3}

# Coordinates of one product of tiles, and columns of a thin matrix that one program multiplies.
STEP = 64

_LOG2E = 1.4426950408889634

INTERPRETED = not isinstance(kernels.halve, triton.JITFunction)


@dataclass(frozen=True)
class KernelPlan:
    """A Gaussian kernel on given rows, ready for a GPU.

    Attributes
    ----------
    numbers
        The constant that is subtracted from the entries, and the factor on squared distances.
        float32.
    shifted
        Whether the kernel minus 1 is evaluated, because the kernel is nearly constant.
    unit
        Factor on squared coordinates if distances are computed from matrix products, otherwise 0.
    bound
        Upper bound on the entries after the constant is subtracted.
    spread
        Standard deviation of the entries for a subset of the rows.
    center
        Vector that is subtracted from the rows; float64, (d,).
    scales
        Factors on the columns if distances are computed from differences; float64, (d,).
    """

    numbers: Tensor
    shifted: bool
    unit: float
    bound: float
    spread: float
    center: Tensor
    scales: Tensor

    @property
    def subtracted(self) -> float:
        """The constant that is subtracted from the kernel in total."""
        constant = float(self.numbers[0])
        return constant + 1 if self.shifted else constant

    @property
    def scaled(self) -> bool:
        """Whether squared distances have a factor other than 1."""
        return float(self.numbers[1]) != 1

    def coordinates(self, x: Tensor, rows: int) -> Tensor:
        """Return the scaled columns, of shape (columns, rows) in float32, padded with zeros."""
        placed = torch.zeros(x.shape[1], rows, dtype=torch.float32, device=x.device)
        for start in range(0, len(x), 1 << 15):
            block = x[start : start + (1 << 15)].double() - self.center
            placed[:, start : start + len(block)] = (block * self.scales).mT
        return placed


def plan(x: Tensor, kernel: Kernel, *, products: bool = True) -> KernelPlan | None:
    """Return the plan of a kernel on rows x; None if the kernel is not Gaussian.

    Rows in float64 are working copies, which are already centered. Without `products`, distances
    are never computed from matrix products.
    """
    d = x.shape[1]
    exponents = _exponents(kernel, d)
    if exponents is None:
        return None
    center = x.new_zeros(d, dtype=torch.float64)
    if x.dtype != torch.float64:
        center = sum((block.double().sum(0) for block in torch.split(x, 1 << 16)), center) / len(x)
    some = x[:: max(1, len(x) // SOME_ROWS)].double() - center
    shifted = is_nearly_constant(some, kernel)
    sample = (kernel.shifted if shifted else kernel)(some, some)
    constant = float(sample.mean())
    top = max(exponents)
    unit = 0.0
    if products and d >= FEWEST_FOR_PRODUCTS and min(exponents) == top:
        squares = ((block.double() - center).square().sum() for block in torch.split(x, 1 << 16))
        square = float(sum(squares) / len(x))
        if 0 < top * square <= MOST_ENERGY:
            unit = top if top * square >= LEAST_ENERGY else 1 / square
    factor = top / unit if unit > 0 else 1.0
    return KernelPlan(
        numbers=torch.tensor([constant, factor], dtype=torch.float32, device=x.device),
        shifted=shifted,
        unit=unit,
        bound=1 + abs(constant),
        spread=max(float(sample.std()), 1e-30),
        center=center,
        scales=torch.tensor(exponents, dtype=torch.float64, device=x.device).sqrt(),
    )


def _exponents(kernel: Kernel, d: int) -> tuple[float, ...] | None:
    """Return the factors by which the squared differences in each of d columns are multiplied, so
    that the sum of the products is minus the base-2 logarithm of the kernel; None if the kernel is
    not Gaussian.
    """
    parts = kernel.kernels if isinstance(kernel, PerColumn) else (kernel,) * d
    gaussians = [part for part in parts if type(part) is Gaussian]
    if len(gaussians) < len(parts):
        return None
    return tuple(_LOG2E / (2 * float(part.bandwidth) ** 2) for part in gaussians)


class Halves(NamedTuple):
    """Coordinates of rows as two float16 matrices (m, width), and minus half their squared norms
    (m,).
    """

    high: Tensor
    low: Tensor
    half: Tensor

    @classmethod
    def from_rows(cls, x: Tensor, rows: int, factor: float, center: Tensor | None = None) -> Halves:
        """Split (x - center) · factor into halves, padded with zeros to the given number of
        rows.
        """
        d = x.shape[1]
        width = ceil(d / STEP) * STEP
        if d <= STEP:
            width = max(16, triton.next_power_of_2(d))
        high, low = torch.empty(2, rows, width, dtype=torch.float16, device=x.device)
        half = torch.empty(rows, dtype=torch.float32, device=x.device)
        if center is None:
            center = torch.zeros(d, dtype=torch.float64, device=x.device)
        kernels.halve[(rows // BLOCK_I,)](
            x=x,
            center=center,
            high=high,
            low=low,
            half=half,
            n=len(x),
            d=d,
            stride_row=x.stride(0),
            stride_column=x.stride(1),
            factor=factor,
            WIDTH=width,
            SPAN=triton.next_power_of_2(width),
            BI=BLOCK_I,
        )
        return cls(high, low, half)


class OffDiagonal(NamedTuple):
    """Sums over i ≠ j of K and L minus their constants: the joint sum, the row sums of each matrix
    (n,), and the sums of squares.
    """

    joint: Tensor
    k_rows: Tensor
    l_rows: Tensor
    k_squares: Tensor
    l_squares: Tensor


def split_table(x: Tensor, k: KernelPlan) -> Tensor:
    """Return the kernel matrix, minus its constant, for a plan without matrix products, in
    float32.
    """
    n = len(x)
    padded = _padded(n)
    out = torch.empty(padded, padded, dtype=torch.float32, device=x.device)
    kernels.table_kernel[(padded // BLOCK_I, padded // BLOCK_J)](
        x=k.coordinates(x, padded),
        stride=padded,
        numbers=k.numbers,
        out=out,
        COLUMNS=x.shape[1],
        SHIFTED=k.shifted,
        FAST=not INTERPRETED,
        BI=BLOCK_I,
        BJ=BLOCK_J,
        num_warps=OPTIONS["num_warps"],
    )
    return out[:n, :n]


def _products(
    halves: Halves,
    b: Halves,
    k: KernelPlan,
    *,
    boost: float,
    out: Tensor,
    factor: float,
    of_y: Tensor | None = None,
    l: KernelPlan | None = None,
    shift: Tensor | None = None,
) -> Tensor:
    """Write the product to `out`, of shape (n, columns), and return `out`."""
    padded, thin = b.high.shape
    group = min(thin, STEP)
    unused = halves.half
    kernels.gram_products[(padded // BLOCK_I, thin // group)](
        high_i=halves.high,
        low_i=halves.low,
        half_i=halves.half,
        high_b=b.high,
        low_b=b.low,
        y=unused if of_y is None else of_y,
        stride_y=padded,
        numbers_k=k.numbers,
        numbers_l=k.numbers if l is None else l.numbers,
        shift=unused if shift is None else shift,
        out=out,
        n=out.shape[0],
        columns=out.shape[1],
        blocks=padded // BLOCK_J,
        boost=boost,
        factor=factor,
        K_SHIFTED=k.shifted,
        L_COLUMNS=0 if l is None else len(l.scales),
        L_SHIFTED=l is not None and l.shifted,
        GRADIENT=l is not None,
        THIN=thin,
        GROUP=group,
        **_tiling(halves),
    )
    return out


def _over_chunks(kernel: Any, rows: Tensor, k: KernelPlan, **arguments: Any) -> Tensor:
    """Return the three sums that a kernel computes over pairs of chunks of rows on and above the
    diagonal.
    """
    padded = _padded(len(rows))
    scaled = k.scaled
    size = min(HALVED_ROWS, padded) if k.unit > 0 else padded
    totals = []
    for first_i in range(0, padded, size):
        rows_i = min(size, padded - first_i)
        blocks_i = rows_i // BLOCK_I
        left = _halves(rows, k, first_i, rows_i)
        for first_j in range(first_i, padded, size):
            rows_j = min(size, padded - first_j)
            right = left  # also frees the previous one
            if first_i != first_j:
                right = _halves(rows, k, first_j, rows_j)
            grid = (rows_j // BLOCK_J, ceil(blocks_i / SEGMENT))
            partial = torch.zeros(grid[0] * grid[1], 3, dtype=torch.float64, device=rows.device)
            kernel[grid](
                high_i=left.high,
                low_i=left.low,
                half_i=left.half,
                high_j=right.high,
                low_j=right.low,
                half_j=right.half,
                partial=partial,
                first_i=first_i,
                first_j=first_j,
                n=len(rows),
                blocks_i=blocks_i,
                SCALED=scaled,
                MATRIX=k.unit > 0,
                SEGMENT=SEGMENT,
                **arguments,
                **_tiling(left),
            )
            totals.append(partial.sum(0))
    return torch.stack(totals).sum(0)


def _halves(x: Tensor, k: KernelPlan, first: int, rows: int) -> Halves:
    if k.unit == 0:
        nothing = x.new_zeros(1)
        return Halves(nothing, nothing, nothing)
    return Halves.from_rows(x[first : first + rows], rows, (2 * k.unit) ** 0.5, k.center)


def _coordinates(x: Tensor, k: KernelPlan, padded: int) -> Tensor:
    return x.new_zeros(1) if k.unit > 0 else k.coordinates(x, padded)


def _padded(n: int) -> int:
    step = max(BLOCK_I, BLOCK_J)
    return ceil(n / step) * step


def _fitted(values: Tensor, padded: int) -> Tensor:
    return torch.nn.functional.pad(values, (0, padded - len(values))).float()


def _power(value: float) -> float:
    """Return the power of two just below a positive number; multiplying by a power of two causes no
    rounding.
    """
    return 2.0 ** (torch.tensor(value).frexp().exponent.item() - 1)


def _tiling(halves: Halves) -> dict[str, Any]:
    width = halves.high.shape[-1]
    sizes = {"WIDTH": width, "STEP": min(width, STEP), "BI": BLOCK_I, "BJ": BLOCK_J}
    return {**sizes, "FAST": not INTERPRETED, **OPTIONS}


def fixed_point(bound: float, total: int) -> float:
    """Return the power of two that turns sums of `total` entries up to `bound` into 62-bit
    integers.
    """
    return 2.0 ** (61 - ceil(log2(max(bound * total, 1e-30))))


class Levels(NamedTuple):
    """The entries for each pair of levels (V, V), in float64, and the level of each row (n,)."""

    table: Tensor
    place: Tensor

    @classmethod
    def from_rows(cls, x: Tensor, scheme: KernelPlan) -> Levels | None:
        """Return the levels; None if there are too many, or if distances are computed from matrix
        products.
        """
        if scheme.unit > 0 or len(torch.unique(x[: 16 * MOST_TABLED], dim=0)) > MOST_TABLED:
            return None
        values, place = torch.unique(x, dim=0, return_inverse=True)
        if len(values) > MOST_TABLED:
            return None
        return cls(split_table(values, scheme).double(), place)

    def rows(self) -> Tensor:
        """Return the row sums without the diagonal, (n,)."""
        counts = torch.bincount(self.place, minlength=len(self.table)).double()
        return (self.table @ counts - self.table.diagonal())[self.place]

    def squares(self, counts: Tensor) -> Tensor:
        """Return the sum of squares without the diagonal, given the number of rows at each
        level.
        """
        squares = self.table.square()
        return counts @ squares @ counts - squares.diagonal() @ counts


def level_sums(k: Levels, l: Levels) -> OffDiagonal:
    """Return the sums over pairs of distinct rows if both matrices have few levels."""
    sizes = (len(k.table), len(l.table))
    both = k.place * sizes[1] + l.place
    counts = torch.bincount(both, minlength=sizes[0] * sizes[1]).double().view(sizes)
    all_pairs = (k.table * (counts @ l.table @ counts.mT)).sum()
    return OffDiagonal(
        joint=all_pairs - k.table.diagonal() @ counts @ l.table.diagonal(),
        k_rows=k.rows(),
        l_rows=l.rows(),
        k_squares=k.squares(counts.sum(1)),
        l_squares=l.squares(counts.sum(0)),
    )


@dataclass(frozen=True)
class KernelPair:
    """Rows x and y with the plans of their kernels."""

    x: Tensor
    y: Tensor
    k: KernelPlan
    l: KernelPlan

    @classmethod
    def from_rows(
        cls, x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel
    ) -> KernelPair | None:
        """Prepare both kernels; return None if a kernel has no plan."""
        x = x.detach()
        y = y.detach()
        k = plan(x, kernel_k)
        l = plan(y, kernel_l, products=False)
        return None if k is None or l is None else cls(x, y, k, l)

    def sums(self, *, skip_diagonal: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return Σ K_ij L_ij and the row sums of K and L, after subtracting the constants from K
        and L.
        """
        off = self._off_diagonal()
        if skip_diagonal:
            return off.joint, off.k_rows, off.l_rows
        k, l = self.diagonals()
        return off.joint + k @ l, off.k_rows + k, off.l_rows + l

    def sums_with_squares(
        self, offsets: tuple[float, float]
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return Σ K ∘ L, and the row sums and sums of squares of K and L, after subtracting the
        given offsets from K and L.
        """
        off = self._off_diagonal(squares=True)
        k, l = self.diagonals()
        n = len(k)
        a = self.k.subtracted - offsets[0]
        b = self.l.subtracted - offsets[1]
        joint = off.joint + k @ l
        k_squares = off.k_squares + k @ k
        l_squares = off.l_squares + l @ l
        k_rows = off.k_rows + k
        l_rows = off.l_rows + l
        k_total = k_rows.sum()
        l_total = l_rows.sum()
        return (
            joint + b * k_total + a * l_total + a * b * n * n,
            k_rows + a * n,
            l_rows + b * n,
            k_squares + 2 * a * k_total + a * a * n * n,
            l_squares + 2 * b * l_total + b * b * n * n,
        )

    def _off_diagonal(self, *, squares: bool = False) -> OffDiagonal:
        """Return the sums over pairs of distinct rows, with sums of squares if requested."""
        k = Levels.from_rows(self.x, self.k)
        l = Levels.from_rows(self.y, self.l)
        if k is not None and l is not None:
            return level_sums(k, l)
        off = self._pair_sums(squares)
        if l is not None:
            off = off._replace(l_rows=l.rows())
        return off if k is None else off._replace(k_rows=k.rows())

    def _pair_sums(self, squares: bool) -> OffDiagonal:
        n = len(self.x)
        k = self.k
        l = self.l
        padded = _padded(n)
        of_x = _coordinates(self.x, k, padded)
        of_y = l.coordinates(self.y, padded)
        rows = torch.zeros(2, padded, dtype=torch.int64, device=of_y.device)
        fixed_k = fixed_point(k.bound, n)
        fixed_l = fixed_point(l.bound, n)
        joint, k_squares, l_squares = 2 * _over_chunks(
            kernels.pair_sums_kernel,
            self.x,
            k,
            x=of_x,
            stride_x=padded,
            numbers_k=k.numbers,
            y=of_y,
            stride_y=padded,
            numbers_l=l.numbers,
            rows_k=rows[0],
            rows_l=rows[1],
            fixed_k=fixed_k,
            fixed_l=fixed_l,
            K_COLUMNS=self.x.shape[1],
            K_SHIFTED=k.shifted,
            L_COLUMNS=self.y.shape[1],
            L_SHIFTED=l.shifted,
            SQUARES=squares,
        )
        return OffDiagonal(
            joint=joint,
            k_rows=rows[0, :n].double() / fixed_k,
            l_rows=rows[1, :n].double() / fixed_l,
            k_squares=k_squares,
            l_squares=l_squares,
        )

    def diagonals(self) -> tuple[Tensor, Tensor]:
        """Return the diagonals of K and L minus their constants, in float64."""
        k, l = (
            torch.full_like(self.x[:, 0], 1 - scheme.subtracted, dtype=torch.float64)
            for scheme in (self.k, self.l)
        )
        return k, l

    @property
    def has_gradient(self) -> bool:
        """Whether :meth:`gradient` can be used; it requires distances computed by matrix
        products.
        """
        return self.k.unit > 0

    def gradient(self, l_rows: Tensor, joint: Tensor, cross: Tensor, total: Tensor) -> Tensor:
        r"""Return the gradient with respect to x, given the row sums of L and the derivatives with
        respect to the joint, cross and total sums.

        This is the gradient of :math:`\sum_{ij} G_{ij} K_{ij}` with :math:`G_{ij} = L_{ij} + g_i +
        g_j` and shifts g.
        """
        shift = (cross * l_rows + total) / (2 * joint)
        k = self.k
        l = self.l
        padded = _padded(len(self.x))
        halves = Halves.from_rows(self.x, padded, (2 * k.unit) ** 0.5, k.center)
        boost = _power(1 / (float(k.numbers[1]) * float((2 * shift.std()).clamp_min(l.spread))))
        factor = 4 * (k.unit / 2) ** 0.5 / boost * float(joint)
        return _products(
            halves,
            halves,
            k,
            boost=boost,
            out=torch.empty_like(self.x, dtype=torch.float32),
            factor=factor,
            of_y=l.coordinates(self.y, padded),
            l=l,
            shift=_fitted(shift, padded),
        )


@dataclass(frozen=True)
class One:
    """Rows x with the plan of a kernel."""

    x: Tensor
    k: KernelPlan

    @classmethod
    def from_rows(cls, x: Tensor, kernel: Kernel) -> One | None:
        """Prepare the kernel; return None if it has no plan."""
        scheme = plan(x, kernel)
        return None if scheme is None else cls(x, scheme)

    @property
    def multiplies(self) -> bool:
        """Whether :meth:`times` can be used; it requires distances computed by matrix products."""
        return self.k.unit > 0

    def times(self, b: Tensor) -> Tensor:
        """Return K b, up to a constant in each column; the columns of b must sum to zero."""
        padded = _padded(len(self.x))
        halves = Halves.from_rows(self.x, padded, (2 * self.k.unit) ** 0.5, self.k.center)
        scale = _power(1 / float(b.abs().max()))
        boost = _power(1 / self.k.spread)
        out = torch.empty(b.shape, dtype=torch.float64, device=b.device)
        thin = Halves.from_rows(b, padded, scale)
        return _products(halves, thin, self.k, boost=boost, out=out, factor=1 / (scale * boost))

    def cubes(self, means: Tensor, diagonal: Tensor) -> Tensor:
        """Return the sums over i ≠ j of A³, A² d_i and d_i A d_j, where A_ij = K_ij - m_i - m_j."""
        x = self.x
        k = self.k
        padded = _padded(len(x))
        centers = _fitted(means - k.subtracted / 2, padded)
        weights = _fitted(diagonal, padded)
        sums = _over_chunks(
            kernels.pair_cubes,
            x,
            k,
            x=_coordinates(x, k, padded),
            stride_x=padded,
            numbers=k.numbers,
            means=centers,
            diagonal=weights,
            COLUMNS=x.shape[1],
            SHIFTED=k.shifted,
        )
        return sums * torch.tensor([2.0, 1.0, 2.0], dtype=torch.float64, device=x.device)
