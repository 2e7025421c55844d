r"""Kernels, their algebra, and the median bandwidth.

A kernel is an immutable callable :math:`(x, y) \mapsto k(x, y)` on the rows of two matrices, whose
docstring is its formula. Each variable has its own kernel and its own bandwidth. Kernels add and
multiply, and each knows what the theorems ask of it: an upper bound of :math:`k(x, x)`, whether it is
invariant to a common shift, and whether it is characteristic.

References
----------
Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays

__all__ = [
    "Column",
    "Gaussian",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "PerColumn",
    "Product",
    "Sum",
    "gaussian_at_median",
    "median_bandwidth",
    "per_column_gaussians",
    "squared_distances",
]

MEDIAN_ROWS = 2048
"""Above this many rows :func:`median_bandwidth` takes the median over a subsample of so many."""


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    r"""Squared Euclidean distances, :math:`\|x_i - y_j\|^2`, of shape (..., n, m).

    One column is subtracted directly. More go through one matrix product, of :math:`(x, \|x\|^2, 1)` with
    :math:`(-2y, 1, \|y\|^2)`, after both sides are moved by the mean of `y`, because
    :math:`\|x\|^2 + \|y\|^2 - 2 x^\top y` loses digits when both are far from zero.
    """
    if x.shape[-1] == 1:
        return (x - y.mT) ** 2
    centre = y.detach().mean(dim=-2, keepdim=True)
    x, y = x - centre, y - centre
    left = torch.cat([x, (x * x).sum(-1, keepdim=True), torch.ones_like(x[..., :1])], dim=-1)
    right = torch.cat([-2 * y, torch.ones_like(y[..., :1]), (y * y).sum(-1, keepdim=True)], dim=-1)
    return torch.relu(left @ right.mT)  # relu rather than clamp_min: one pass less in the backward of every step


class Kernel(ABC):
    """What every kernel can do: be called, be added and multiplied, and say what it is."""

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of k(x_i, y_j), of shape (..., n, m)."""

    @abstractmethod
    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        """Return k(x_i, y_j) minus :attr:`offset`, without losing digits where k is nearly flat.

        HSIC does not notice a constant added to a kernel; summing k − 1 instead of k keeps its three
        nearly cancelling terms apart.
        """

    @property
    @abstractmethod
    def offset(self) -> float:
        """The constant that :meth:`shifted` takes off: 1 for a radial kernel, 0 for the linear one.

        Offsets add and multiply as the kernels do.
        """

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """Return k(x_i, x_i), of shape (..., n)."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """The supremum of k(x, x): 1 for unit-diagonal kernels, infinity for unbounded ones."""

    @property
    def bounded(self) -> bool:
        """Whether k(x, x) is bounded."""
        return math.isfinite(self.bound)

    @property
    @abstractmethod
    def unit_diagonal(self) -> bool:
        """Whether k(x, x) = 1 for every x."""

    @property
    @abstractmethod
    def shift_invariant(self) -> bool:
        """Whether k(x + c, y + c) = k(x, y)."""

    @property
    @abstractmethod
    def centring_safe(self) -> bool:
        """Whether HSIC is unchanged when a constant is added to every row.

        True for shift-invariant kernels, for the linear one (HKH removes its shift) and for their sums.
        """

    @property
    @abstractmethod
    def characteristic(self) -> bool:
        """Whether the mean embedding separates probability laws on R^d."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, _as_kernel(other))

    def __mul__(self, other: Kernel) -> Product:
        return Product(self, _as_kernel(other))


class _Radial(Kernel):
    """A kernel of the distance alone, with unit diagonal, bounded by one and characteristic."""

    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        value = self.bandwidth
        if isinstance(value, Tensor):
            if value.ndim != 0:
                raise ValueError(f"bandwidth has shape {tuple(value.shape)}; pass a number or a 0-d tensor.")
            return  # its value is not looked at: it may be batched under vmap or live on a GPU
        if isinstance(value, bool) or (not isinstance(value, (int, float)) and not hasattr(value, "__float__")):
            raise TypeError(f"bandwidth is {type(value).__name__}; pass a positive number or a 0-d tensor.")
        if not (math.isfinite(float(value)) and float(value) > 0):
            raise ValueError(f"bandwidth is {float(value)}; pass a positive, finite number.")

    @property
    def offset(self) -> float:
        return 1.0

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[:-1], dtype=x.dtype, device=x.device)

    @property
    def bound(self) -> float:
        return 1.0

    @property
    def unit_diagonal(self) -> bool:
        return True

    @property
    def shift_invariant(self) -> bool:
        return True

    @property
    def centring_safe(self) -> bool:
        return True

    @property
    def characteristic(self) -> bool:
        return True


@dataclass(frozen=True)
class Gaussian(_Radial):
    r"""Gaussian kernel, :math:`k(x, y) = \exp(-\|x - y\|^2 / 2\sigma^2)`.

    Examples
    --------
    >>> Gaussian(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.6065]])
    """

    bandwidth: float | Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(squared_distances(x, y) * (-0.5 / self.bandwidth**2))

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.expm1(squared_distances(x, y) * (-0.5 / self.bandwidth**2))


@dataclass(frozen=True)
class Laplacian(_Radial):
    r"""Laplacian kernel, :math:`k(x, y) = \exp(-\|x - y\|_1 / \sigma)`.

    Examples
    --------
    >>> Laplacian(1.0)(torch.zeros(1, 2), torch.ones(1, 2))
    tensor([[0.1353]])
    """

    bandwidth: float | Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(-_absolute_distances(x, y) / self.bandwidth)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.expm1(-_absolute_distances(x, y) / self.bandwidth)


@dataclass(frozen=True)
class InverseMultiquadric(_Radial):
    r"""Inverse multiquadric kernel, :math:`k(x, y) = (1 + \|x - y\|^2 / \sigma^2)^{-1/2}`.

    Examples
    --------
    >>> InverseMultiquadric(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.7071]])
    """

    bandwidth: float | Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.rsqrt(1 + squared_distances(x, y) / self.bandwidth**2)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.expm1(-torch.log1p(squared_distances(x, y) / self.bandwidth**2) / 2)


@dataclass(frozen=True)
class Linear(Kernel):
    r"""Linear kernel, :math:`k(x, y) = x^\top y`. Unbounded, and blind to all but means.

    Examples
    --------
    >>> Linear()(torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, 5.0]]))
    tensor([[11.]])
    """

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.mT

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.mT

    @property
    def offset(self) -> float:
        return 0.0

    def diagonal(self, x: Tensor) -> Tensor:
        return (x * x).sum(-1)

    @property
    def bound(self) -> float:
        return math.inf

    @property
    def unit_diagonal(self) -> bool:
        return False

    @property
    def shift_invariant(self) -> bool:
        return False

    @property
    def centring_safe(self) -> bool:
        return True

    @property
    def characteristic(self) -> bool:
        return False


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of two kernels, k(x, y) = a(x, y) + b(x, y); characteristic if either is."""

    a: Kernel
    b: Kernel

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a(x, y) + self.b(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a.shifted(x, y) + self.b.shifted(x, y)

    @property
    def offset(self) -> float:
        return self.a.offset + self.b.offset

    def diagonal(self, x: Tensor) -> Tensor:
        return self.a.diagonal(x) + self.b.diagonal(x)

    @property
    def bound(self) -> float:
        return self.a.bound + self.b.bound

    @property
    def unit_diagonal(self) -> bool:
        return False

    @property
    def shift_invariant(self) -> bool:
        return self.a.shift_invariant and self.b.shift_invariant

    @property
    def centring_safe(self) -> bool:
        return self.a.centring_safe and self.b.centring_safe

    @property
    def characteristic(self) -> bool:
        return self.a.characteristic or self.b.characteristic


@dataclass(frozen=True)
class Product(Kernel):
    """Product of two kernels on the same variable, k(x, y) = a(x, y) b(x, y).

    Characteristic if both factors are radial here (their product's spectral density is positive
    everywhere); a product with the linear kernel is not claimed to be.
    """

    a: Kernel
    b: Kernel

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a(x, y) * self.b(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        # ab - αβ = (a-α)(b-β) + β(a-α) + α(b-β), with α and β the offsets
        a, b = self.a.shifted(x, y), self.b.shifted(x, y)
        return a * b + self.b.offset * a + self.a.offset * b

    @property
    def offset(self) -> float:
        return self.a.offset * self.b.offset

    def diagonal(self, x: Tensor) -> Tensor:
        return self.a.diagonal(x) * self.b.diagonal(x)

    @property
    def bound(self) -> float:
        return self.a.bound * self.b.bound

    @property
    def unit_diagonal(self) -> bool:
        return self.a.unit_diagonal and self.b.unit_diagonal

    @property
    def shift_invariant(self) -> bool:
        return self.a.shift_invariant and self.b.shift_invariant

    @property
    def centring_safe(self) -> bool:
        return self.shift_invariant

    @property
    def characteristic(self) -> bool:
        return all(k.characteristic and k.shift_invariant for k in (self.a, self.b))


@dataclass(frozen=True)
class PerColumn(Kernel):
    r"""Product over columns, one kernel each: :math:`k(x, y) = \prod_c k_c(x_c, y_c)`.

    The joint kernel on several sensitive attributes, each in its own unit and with its own bandwidth.

    Examples
    --------
    >>> both = PerColumn((Gaussian(1.0), Gaussian(10.0)))
    >>> both(torch.zeros(1, 2), torch.tensor([[1.0, 10.0]]))
    tensor([[0.3679]])
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        if not self.kernels:
            raise ValueError("PerColumn needs at least one kernel.")

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self._fold(x, y)(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self._fold(x, y).shifted(x, y)

    def _fold(self, x: Tensor, y: Tensor) -> Kernel:
        for side in (x, y):
            if side.shape[-1] != len(self.kernels):
                raise ValueError(f"{len(self.kernels)} kernels for {side.shape[-1]} columns; pass one for each.")
        columns: list[Kernel] = [Column(kernel, index) for index, kernel in enumerate(self.kernels)]
        folded = columns[0]
        for column in columns[1:]:
            folded = Product(folded, column)
        return folded

    @property
    def offset(self) -> float:
        return math.prod(k.offset for k in self.kernels)

    def diagonal(self, x: Tensor) -> Tensor:
        return self._fold(x, x).diagonal(x)

    @property
    def bound(self) -> float:
        return math.prod(k.bound for k in self.kernels)

    @property
    def unit_diagonal(self) -> bool:
        return all(k.unit_diagonal for k in self.kernels)

    @property
    def shift_invariant(self) -> bool:
        return all(k.shift_invariant for k in self.kernels)

    @property
    def centring_safe(self) -> bool:
        return self.shift_invariant or (len(self.kernels) == 1 and self.kernels[0].centring_safe)

    @property
    def characteristic(self) -> bool:
        # Szabo and Sriperumbudur (2018), Theorem 4: translation-invariant characteristic factors.
        if len(self.kernels) == 1:
            return self.kernels[0].characteristic
        return all(k.characteristic and k.shift_invariant for k in self.kernels)


@dataclass(frozen=True)
class Column(Kernel):
    """A kernel on one column of a matrix, k(x, y) = kernel(x_index, y_index)."""

    kernel: Kernel
    index: int

    def _of(self, x: Tensor) -> Tensor:
        if not 0 <= self.index < x.shape[-1]:  # a slice would be empty, and every distance 0
            raise ValueError(f"there is no column {self.index} among {x.shape[-1]}; columns are counted from 0.")
        return x[..., self.index : self.index + 1]

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.kernel(self._of(x), self._of(y))

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self.kernel.shifted(self._of(x), self._of(y))

    @property
    def offset(self) -> float:
        return self.kernel.offset

    def diagonal(self, x: Tensor) -> Tensor:
        return self.kernel.diagonal(self._of(x))

    @property
    def bound(self) -> float:
        return self.kernel.bound

    @property
    def unit_diagonal(self) -> bool:
        return self.kernel.unit_diagonal

    @property
    def shift_invariant(self) -> bool:
        return self.kernel.shift_invariant

    @property
    def centring_safe(self) -> bool:
        return self.kernel.centring_safe

    @property
    def characteristic(self) -> bool:
        return False  # it sees one column only


def median_bandwidth(x: Any, *, name: str = "x") -> float:
    r"""Lower median of the off-diagonal Euclidean distances between rows, :math:`\mathrm{med}_{i<j} \|x_i - x_j\|`.

    Of an even count the smaller of the two middle values. Exact up to 2,048 rows; above that, over 2,048
    rows drawn without replacement by a generator of fixed seed, so that the same data give the same number.

    Raises
    ------
    ValueError
        If the median is zero: half or more of the pairs coincide, and no kernel can be scaled by it.

    Examples
    --------
    >>> median_bandwidth([0.0, 1.0, 3.0])
    2.0
    """
    rows = _arrays.matrix(x, name).detach().to(torch.float64)
    _arrays.require_rows(rows.shape[0], 2, f"the median distance of {name}")
    if rows.shape[0] > MEDIAN_ROWS:
        chosen = torch.randperm(rows.shape[0], generator=torch.Generator().manual_seed(0))[:MEDIAN_ROWS]
        rows = rows[chosen.to(rows.device)]
    value = _lower_median_distance(rows)
    if value == 0:
        raise ValueError(
            f"median distance of {name}, of shape {tuple(x.shape) if hasattr(x, 'shape') else (len(x),)}, is 0: "
            f"half or more of its pairs coincide. Pass a kernel with a bandwidth, such as Gaussian(bandwidth=...), "
            f"for {name}."
        )
    return value


def _lower_median_distance(rows: Tensor) -> float:
    """Lower median of the distances between rows of float64, to twelve digits, and 0 where it is 0 exactly."""
    n, columns = rows.shape
    count = n * (n - 1) // 2
    middle = (count - 1) // 2
    if columns > 1:
        centred = rows - rows.mean(dim=0)
        parts = []
        for start in range(0, n, 512):  # a block of rows against itself and all rows after it
            block = squared_distances(centred[start : start + 512], centred[start:])
            size = len(block)
            i, j = torch.triu_indices(size, size, 1, device=rows.device)
            parts += [block[i, j], block[:, size:].flatten()]
        squares = _arrays.to_numpy(torch.cat(parts))
        squares.partition(middle)
        # Products lose the digits of distances far below the rows' own size; those are taken from differences.
        if squares[middle] > 1e-3 * float(centred.square().sum(1).max()):
            return math.sqrt(squares[middle])
    # pdist subtracts before it squares: coinciding rows are at distance 0 exactly
    distances = _arrays.to_numpy(torch.nn.functional.pdist(rows))
    distances.partition(middle)
    return float(distances[middle])


def gaussian_at_median(x: Any, *, name: str = "x") -> Gaussian:
    """Return the Gaussian kernel at the median distance of x, which is what `None` means everywhere."""
    return Gaussian(median_bandwidth(x, name=name))


def per_column_gaussians(x: Any, *, name: str = "x") -> PerColumn:
    """Return the product of Gaussians, one per column, each at that column's own median distance."""
    rows = _arrays.matrix(x, name)
    names = _arrays.column_names(x, name, rows.shape[1])
    return PerColumn(tuple(gaussian_at_median(rows[:, i], name=names[i]) for i in range(rows.shape[1])))


def _absolute_distances(x: Tensor, y: Tensor) -> Tensor:
    """Sum over columns of |x_i − y_j|, one column at a time: no (n, m, d) block is ever held."""
    total = (x[..., :, None, 0] - y[..., None, :, 0]).abs()
    for column in range(1, x.shape[-1]):
        total = total + (x[..., :, None, column] - y[..., None, :, column]).abs()
    return total


def _as_kernel(other: object) -> Kernel:
    if not isinstance(other, Kernel):
        raise TypeError(f"{type(other).__name__} is not a kernel; add or multiply kernels, such as Gaussian(1.0).")
    return other
