r"""Kernels, their algebra, and the median bandwidth.

A kernel is an immutable callable :math:`(x, y) \mapsto k(x, y)` on the rows of two matrices; its
docstring states the formula. Each variable has its own kernel and its own bandwidth. Kernels can be
added, and multiplied by numbers, as in ``10 * Linear() + Gaussian(1.0)``. Each kernel has the
properties that the theorems need: an upper bound on :math:`k(x, x)`, and whether the kernel is
invariant to a common shift of x and y.

References
----------
Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive
Attributes*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from frhsic import _arrays
from frhsic._lazy import missing_module

try:
    import torch
    from torch import Tensor

    from frhsic import _tensors
except ModuleNotFoundError as error:
    raise missing_module("frhsic.kernels", error) from error

__all__ = [
    "Gaussian",
    "HalfDistance",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "median_bandwidth",
    "per_column_gaussians",
]


class Kernel(ABC):
    """A positive semi-definite kernel: a callable with the properties that theorems and numerical
    methods need.

    Kernels can be added, and multiplied by non-negative numbers: ``10 * Linear() + Gaussian(1.0)``.
    A custom kernel implements ``__call__`` and :meth:`diagonal`; the default properties assume
    nothing about the kernel.

    Examples
    --------
    >>> class Cubic(Kernel):
    ...     def __call__(self, x, y):
    ...         return (1 + x @ y.mT) ** 3
    ...
    ...     def diagonal(self, x):
    ...         return (1 + x.square().sum(-1)) ** 3
    >>> x = torch.tensor([[0.0], [1.0]])
    >>> Cubic()(x, x)
    tensor([[1., 1.],
            [1., 8.]])
    """

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of k(x_i, y_j), of shape (..., n, m)."""

    @abstractmethod
    def diagonal(self, x: Tensor) -> Tensor:
        """Return k(x_i, x_i), of shape (..., n)."""

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        """Return k(x_i, y_j) minus :attr:`offset`, computed without losing digits where k is nearly
        constant.

        HSIC does not change when a constant is added to a kernel. Its three terms nearly cancel,
        and summing k − 1 instead of k preserves their digits.
        """
        return self(x, y)

    @property
    def offset(self) -> float:
        """The constant that :meth:`shifted` subtracts: 1 for a radial kernel, 0 for the linear one.

        The offset of a sum is the sum of the offsets, and the offset of a product over columns is
        their product.
        """
        return 0.0

    @property
    def bound(self) -> float:
        """The supremum of k(x, x): 1 for unit-diagonal kernels, infinity for unbounded ones."""
        return math.inf

    @property
    def shift_invariant(self) -> bool:
        """Whether k(x + c, y + c) = k(x, y)."""
        return False

    @property
    def centering_safe(self) -> bool:
        """Whether HSIC stays the same when a constant is added to every row.

        True for shift-invariant kernels, for the linear kernel, whose shift is removed by
        centering, and for sums of such kernels.
        """
        return self.shift_invariant

    @property
    def unit_diagonal(self) -> bool:
        """Whether k(x, x) = 1 for every x."""
        return self.shift_invariant and self.bound == 1

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, factor: float) -> Multiple:
        return NotImplemented if isinstance(factor, Kernel) else Multiple(factor, self)

    __rmul__ = __mul__


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of two kernels on the same variable, k(x, y) = a(x, y) + b(x, y); characteristic if a or
    b is.
    """

    a: Kernel
    b: Kernel

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a(x, y) + self.b(x, y)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.a.diagonal(x) + self.b.diagonal(x)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a.shifted(x, y) + self.b.shifted(x, y)

    @property
    def offset(self) -> float:
        return self.a.offset + self.b.offset

    @property
    def bound(self) -> float:
        return self.a.bound + self.b.bound

    @property
    def shift_invariant(self) -> bool:
        return self.a.shift_invariant and self.b.shift_invariant

    @property
    def centering_safe(self) -> bool:
        return self.a.centering_safe and self.b.centering_safe


@dataclass(frozen=True)
class PerColumn(Kernel):
    r"""Product over columns, one kernel each: :math:`k(x, y) = \prod_c k_c(x_c, y_c)`.

    A joint kernel for several sensitive attributes, each with its own unit and bandwidth.
    Characteristic if all factors are characteristic and shift-invariant (Szabo and Sriperumbudur,
    2018, Theorem 4).

    Examples
    --------
    >>> both = PerColumn((Gaussian(1.0), Gaussian(10.0)))
    >>> both(torch.zeros(1, 2), torch.tensor([[1.0, 10.0]]))
    tensor([[0.3679]])
    """

    kernels: tuple[Kernel, ...]

    def _columns(self, x: Tensor) -> tuple[Tensor, ...]:
        if x.shape[-1] != len(self.kernels):
            raise ValueError(
                f"got {len(self.kernels)} kernels for {x.shape[-1]} columns; pass one kernel per"
                " column."
            )
        return torch.split(x, 1, dim=-1)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        columns = zip(self.kernels, self._columns(x), self._columns(y))
        return _product_of_values(kernel(a, b) for kernel, a, b in columns)

    def diagonal(self, x: Tensor) -> Tensor:
        return _product_of_values(
            kernel.diagonal(a) for kernel, a in zip(self.kernels, self._columns(x))
        )

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        # ab - αβ = (a-α)(b-β) + β(a-α) + α(b-β), with α and β the offsets
        total, *others = (
            kernel.shifted(a, b)
            for kernel, a, b in zip(self.kernels, self._columns(x), self._columns(y))
        )
        offset = self.kernels[0].offset
        for kernel, other in zip(self.kernels[1:], others):
            total = total * other + kernel.offset * total + offset * other
            offset *= kernel.offset
        return total

    @property
    def offset(self) -> float:
        return math.prod(kernel.offset for kernel in self.kernels)

    @property
    def bound(self) -> float:
        return math.prod(kernel.bound for kernel in self.kernels)

    @property
    def shift_invariant(self) -> bool:
        return all(kernel.shift_invariant for kernel in self.kernels)


def _product_of_values(values: Iterable[Tensor]) -> Tensor:
    return reduce(torch.mul, values)


@dataclass(frozen=True)
class Multiple(Kernel):
    r"""Kernel multiplied by a non-negative number, :math:`k(x, y) = c\, \kappa(x, y)`.

    Written as ``c * kernel`` or ``kernel * c``. In a sum of kernels, the factors are the weights.

    Examples
    --------
    >>> 10 * Linear() + Gaussian(1.0)
    Sum(a=Multiple(factor=10.0, kernel=Linear()), b=Gaussian(bandwidth=1.0))
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        factor = _number(self.factor, "the factor of a kernel")
        if factor != 0:
            _arrays.require_scale(factor, "the factor of a kernel")
        object.__setattr__(self, "factor", factor)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factor * self.kernel(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factor * self.kernel.shifted(x, y)

    @property
    def offset(self) -> float:
        return self.factor * self.kernel.offset

    def diagonal(self, x: Tensor) -> Tensor:
        return self.factor * self.kernel.diagonal(x)

    @property
    def bound(self) -> float:
        if self.factor == 0:  # also of an unbounded kernel, where the product is NaN
            return 0.0
        return self.factor * self.kernel.bound

    @property
    def shift_invariant(self) -> bool:
        return self.factor == 0 or self.kernel.shift_invariant

    @property
    def centering_safe(self) -> bool:
        return self.factor == 0 or self.kernel.centering_safe


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    r"""Squared Euclidean distances, :math:`\|x_i - y_j\|^2`, of shape (..., n, m).

    A single column is subtracted directly. For several columns, one matrix product of :math:`(x,
    \|x\|^2, 1)` and :math:`(-2y, 1, \|y\|^2)` is computed after the center of `y` is subtracted
    from `x` and `y`, because :math:`\|x\|^2 + \|y\|^2 - 2 x^\top y` loses digits when `x` and `y`
    are far from zero. In float64, the center is the median of some rows, so that an outlier doesn't
    reduce the precision for other rows; in float32, it is the mean.
    """
    if x.shape[-1] == 1:
        return (x - y.mT) ** 2
    if y.dtype == torch.float64:
        some = y.detach()[..., :: 1 + y.shape[-2] // 16, :]
        center = some.median(dim=-2, keepdim=True).values
    else:  # training: the mean is faster
        center = y.detach().mean(dim=-2, keepdim=True)
    x = x - center
    y = y - center
    left = torch.cat([x, (x * x).sum(-1, keepdim=True), torch.ones_like(x[..., :1])], dim=-1)
    right = torch.cat([-2 * y, torch.ones_like(y[..., :1]), (y * y).sum(-1, keepdim=True)], dim=-1)
    # relu rather than clamp_min: saves a pass in every backward step
    return torch.relu(left @ right.mT)


@dataclass(frozen=True)
class _Radial(Kernel):
    """Kernel that depends only on the distance, with k(x, x) = 1; bounded and characteristic."""

    offset = bound = 1.0
    shift_invariant = True
    bandwidth: float | Tensor

    def __post_init__(self) -> None:
        value = self.bandwidth
        if isinstance(value, Tensor):
            if value.ndim != 0:
                raise ValueError(
                    f"bandwidth has shape {tuple(value.shape)}; pass a number or a 0-d tensor."
                )
            return  # the value is not checked: it may be batched by vmap, or on a GPU
        _arrays.require_scale(_number(value, "bandwidth"), "bandwidth")

    @abstractmethod
    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of k(x_i, y_j)."""

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.exp(self._log(x, y))

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.expm1(self._log(x, y))

    def diagonal(self, x: Tensor) -> Tensor:
        return torch.ones(x.shape[:-1], dtype=x.dtype, device=x.device)


class Gaussian(_Radial):
    r"""Gaussian kernel, :math:`k(x, y) = \exp(-\|x - y\|^2 / 2\sigma^2)`.

    Examples
    --------
    >>> Gaussian(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.6065]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distances(x, y) * (-0.5 / self.bandwidth**2)


class Laplacian(_Radial):
    r"""Laplacian kernel, :math:`k(x, y) = \exp(-\|x - y\|_1 / \sigma)`.

    Examples
    --------
    >>> Laplacian(1.0)(torch.zeros(1, 2), torch.ones(1, 2))
    tensor([[0.1353]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return -_absolute_distances(x, y) / self.bandwidth


class InverseMultiquadric(_Radial):
    r"""Inverse multiquadric kernel, :math:`k(x, y) = (1 + \|x - y\|^2 / \sigma^2)^{-1/2}`.

    Examples
    --------
    >>> InverseMultiquadric(1.0)(torch.zeros(1, 1), torch.ones(1, 1))
    tensor([[0.7071]])
    """

    def _log(self, x: Tensor, y: Tensor) -> Tensor:
        return -torch.log1p(squared_distances(x, y) / self.bandwidth**2) / 2

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.rsqrt(1 + squared_distances(x, y) / self.bandwidth**2)


@dataclass(frozen=True)
class Linear(Kernel):
    r"""Linear kernel, :math:`k(x, y) = x^\top y`. Unbounded; detects only differences in means.

    Examples
    --------
    >>> Linear()(torch.tensor([[2.0, 1.0]]), torch.tensor([[3.0, 5.0]]))
    tensor([[11.]])
    """

    centering_safe = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.mT

    def diagonal(self, x: Tensor) -> Tensor:
        return (x * x).sum(-1)


@dataclass(frozen=True)
class HalfDistance(Kernel):
    r"""Half-distance kernel, :math:`k(x, y) = (\|x\| + \|y\| - \|x - y\|) / 2`.

    HSIC with this kernel is a quarter of the squared distance covariance. Unbounded; characteristic
    for distributions with a mean.

    Examples
    --------
    >>> HalfDistance()(torch.tensor([[3.0]]), torch.tensor([[2.0], [-2.0]]))
    tensor([[2., 0.]])
    """

    centering_safe = True

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        half = self.diagonal(x)[..., :, None] / 2 + self.diagonal(y)[..., None, :] / 2
        return torch.sub(half, _distances(x, y), alpha=0.5)

    def diagonal(self, x: Tensor) -> Tensor:
        norms: Tensor = torch.linalg.vector_norm(x, dim=-1)
        return norms


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances, computed from differences, so that identical rows are at distance 0."""
    if x.shape[-1] == 1:
        return (x - y.mT).abs()
    distances: Tensor = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    return distances


def _absolute_distances(x: Tensor, y: Tensor) -> Tensor:
    """Sum of |x_i − y_j| over columns, one column at a time to avoid an (n, m, d) tensor."""
    total = (x[..., :, None, 0] - y[..., None, :, 0]).abs()
    for column in range(1, x.shape[-1]):
        total = total + (x[..., :, None, column] - y[..., None, :, column]).abs()
    return total


# Number of rows above which :func:`median_bandwidth` uses a subsample of this size.
MEDIAN_ROWS = 2048


def _number(value: Any, name: str) -> float:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {type(value).__name__}; pass a number.")
    return float(value)


def median_bandwidth(x: Any, *, name: str = "x") -> float:
    r"""Lower median of the off-diagonal Euclidean distances between rows, :math:`\mathrm{med}_{i<j}
    \|x_i - x_j\|`.

    For an even number of distances, this is the smaller of the two middle ones. The median is exact
    for up to 2,048 rows. Larger samples are represented by 2,048 rows, drawn without replacement
    with a fixed seed, so that the same data always give the same number.

    Raises
    ------
    ValueError
        If the median is zero because at least half of the pairs coincide.

    Examples
    --------
    >>> median_bandwidth([0.0, 1.0, 3.0])
    2.0
    """
    return _median_distance(_tensors.matrix(x, name), name)


def _median_distance(rows: Tensor, name: str) -> float:
    value = _lower_median(_pair_distances(rows, name))
    if value == 0:
        raise _zero_median(rows, name)
    return value


def _zero_median(rows: Tensor, name: str) -> ValueError:
    return ValueError(
        f"median distance of {name}, of shape {tuple(rows.shape)}, is 0: half or more of its pairs"
        " coincide. Pass a kernel with a bandwidth, such as Gaussian(bandwidth=...), for"
        f" {name}."
    )


def _pair_distances(rows: Tensor, name: str) -> np.ndarray:
    """Return the distances between pairs of rows, which are computed from differences and thus
    exactly 0 for identical rows.
    """
    rows = rows.detach().to(torch.float64).reshape(len(rows), -1)
    _arrays.require_rows(rows.shape[0], 2, f"the median distance of {name}")
    if rows.shape[0] > MEDIAN_ROWS:
        order = torch.randperm(
            rows.shape[0], generator=torch.Generator().manual_seed(0), device="cpu"
        )
        rows = rows[order[:MEDIAN_ROWS].to(rows.device)]
    return np.asarray(pdist(_arrays.to_numpy(rows)))


def _lower_median(values: np.ndarray) -> float:
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def default_gaussian(rows: Tensor, *, name: str = "x") -> tuple[Gaussian, str]:
    """Return the Gaussian kernel that tests and audits use if the kernel is None, and a phrase that
    describes its bandwidth.

    The bandwidth is the median distance or, if that is 0 because at least half of the pairs
    coincide, the lower median of the nonzero distances. The bandwidth is therefore positive even
    for binary and zero-inflated variables.

    Examples
    --------
    >>> default_gaussian(torch.tensor([[0.0], [0.0], [0.0], [0.0], [3.0]]))
    (Gaussian(bandwidth=3.0), 'median of the non-zero distances')
    """
    distances = _pair_distances(rows, name)
    apart = distances[distances > 0]
    if len(apart) == 0:  # all rows are equal
        raise _zero_median(rows, name)
    median = _lower_median(distances)
    if median > 0:
        return Gaussian(median), "median distance"
    return Gaussian(_lower_median(apart)), "median of the non-zero distances"


def gaussian_at_median(rows: Tensor, *, name: str = "x") -> Gaussian:
    """Return the default kernel: a Gaussian whose bandwidth is the median distance between the
    checked rows.
    """
    return Gaussian(_median_distance(rows, name))


def per_column_gaussians(x: Any, *, name: str = "x") -> PerColumn:
    """Return the product of one Gaussian per column, each with the median distance in its column as
    its bandwidth.

    Examples
    --------
    >>> per_column_gaussians([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
    PerColumn(kernels=(Gaussian(bandwidth=1.0), Gaussian(bandwidth=10.0)))
    """
    rows = _tensors.matrix(x, name)
    names = _arrays.column_names(x, name, rows.shape[1])
    columns = torch.split(rows, 1, dim=1)
    return PerColumn(
        tuple(gaussian_at_median(column, name=label) for column, label in zip(columns, names))
    )
