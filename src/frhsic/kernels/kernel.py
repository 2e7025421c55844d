"""The interface of kernels, and how to combine them: sums, products, multiples, one kernel per column."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import torch
from torch import Tensor

from frhsic._arrays import require_scale


class Kernel(ABC):
    """A positive semi-definite kernel: callable, with properties that the theorems and the numerics need.

    Kernels add and multiply, with each other and with non-negative numbers: ``10 * Linear() + Gaussian(1.0)``.
    """

    @abstractmethod
    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the matrix of k(x_i, y_j), of shape (..., n, m)."""

    @abstractmethod
    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        """Return k(x_i, y_j) minus :attr:`offset`, computed without losing digits where k is nearly constant.

        HSIC does not change when a constant is added to a kernel. Summing k − 1 in place of k keeps the digits of its
        three terms, which nearly cancel.
        """

    @property
    @abstractmethod
    def offset(self) -> float:
        """The constant that :meth:`shifted` subtracts: 1 for a radial kernel, 0 for the linear one.

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
    def unit_diagonal(self) -> bool:
        """Whether k(x, x) = 1 for every x."""
        return self.shift_invariant and self.bound == 1

    @property
    @abstractmethod
    def shift_invariant(self) -> bool:
        """Whether k(x + c, y + c) = k(x, y)."""

    @property
    @abstractmethod
    def centering_safe(self) -> bool:
        """Whether HSIC stays the same when a constant is added to every row.

        True for shift-invariant kernels, for the linear one (HKH removes its shift) and for their sums.
        """

    @property
    @abstractmethod
    def characteristic(self) -> bool:
        """Whether the mean embedding separates probability laws on R^d."""

    def __add__(self, other: Kernel) -> Sum:
        if not isinstance(other, Kernel):
            raise _not_a_kernel(other)
        return Sum(self, other)

    def __mul__(self, other: Kernel | float) -> Product | Multiple:
        return Product(self, other) if isinstance(other, Kernel) else Multiple(other, self)

    def __rmul__(self, factor: float) -> Multiple:
        return Multiple(factor, self)


@dataclass(frozen=True)
class Sum(Kernel):
    """Sum of two kernels on the same variable, k(x, y) = a(x, y) + b(x, y); characteristic if either is."""

    a: Kernel
    b: Kernel

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a(x, y) + self.b(x, y)

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        return self.a.shifted(x, y) + self.b.shifted(x, y)

    def diagonal(self, x: Tensor) -> Tensor:
        return self.a.diagonal(x) + self.b.diagonal(x)

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

    @property
    def characteristic(self) -> bool:
        return self.a.characteristic or self.b.characteristic


class _Factors(Kernel):
    """A product of kernels, each on all columns or on one."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Kernel, ...]:
        """The kernels."""

    @abstractmethod
    def _each(self, *rows: Tensor) -> Iterator[tuple[Any, ...]]:
        """Yield each kernel with its columns of each of the matrices."""

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        product: Tensor = reduce(mul, (kernel(a, b) for kernel, a, b in self._each(x, y)))
        return product

    def shifted(self, x: Tensor, y: Tensor) -> Tensor:
        # ab - αβ = (a-α)(b-β) + β(a-α) + α(b-β), with α and β the offsets
        (first, *rest), offset = self._each(x, y), self.factors[0].offset
        total: Tensor = first[0].shifted(*first[1:])
        for kernel, a, b in rest:
            other = kernel.shifted(a, b)
            total = total * other + kernel.offset * total + offset * other
            offset *= kernel.offset
        return total

    def diagonal(self, x: Tensor) -> Tensor:
        product: Tensor = reduce(mul, (kernel.diagonal(columns) for kernel, columns in self._each(x)))
        return product

    @property
    def offset(self) -> float:
        return math.prod(kernel.offset for kernel in self.factors)

    @property
    def bound(self) -> float:
        return reduce(_times, (kernel.bound for kernel in self.factors))

    @property
    def shift_invariant(self) -> bool:
        return all(kernel.shift_invariant for kernel in self.factors)

    centering_safe = shift_invariant

    @property
    def characteristic(self) -> bool:
        return all(kernel.characteristic and kernel.shift_invariant for kernel in self.factors)


@dataclass(frozen=True)
class Product(_Factors):
    """Product of two kernels on the same variable, k(x, y) = a(x, y) b(x, y).

    Characteristic if both factors are radial (the spectral density of their product is then positive everywhere); a
    product with the linear kernel is not claimed to be.
    """

    a: Kernel
    b: Kernel

    @property
    def factors(self) -> tuple[Kernel, ...]:
        return self.a, self.b

    def _each(self, *rows: Tensor) -> Iterator[tuple[Any, ...]]:
        return ((kernel, *rows) for kernel in self.factors)


@dataclass(frozen=True)
class Multiple(Kernel):
    r"""Kernel times a non-negative number, :math:`k(x, y) = c\, \kappa(x, y)`.

    Written ``c * kernel`` or ``kernel * c``. In a sum, the factors say how much each part counts.

    Examples
    --------
    >>> from frhsic.kernels import Gaussian, Linear
    >>> 10 * Linear() + Gaussian(1.0)
    Sum(a=Multiple(factor=10.0, kernel=Linear()), b=Gaussian(bandwidth=1.0))
    """

    factor: float
    kernel: Kernel

    def __post_init__(self) -> None:
        if isinstance(self.factor, (bool, str)) or not hasattr(self.factor, "__float__"):
            raise _not_a_kernel(self.factor)
        if not 0 <= float(self.factor) < math.inf:
            raise ValueError(f"a kernel was multiplied by {float(self.factor)}; pass a finite number, zero or more.")
        if self.factor:
            require_scale(float(self.factor), "the factor of a kernel")
        object.__setattr__(self, "factor", float(self.factor))

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
        return _times(self.factor, self.kernel.bound)

    @property
    def shift_invariant(self) -> bool:
        return self.factor == 0 or self.kernel.shift_invariant

    @property
    def centering_safe(self) -> bool:
        return self.factor == 0 or self.kernel.centering_safe

    @property
    def characteristic(self) -> bool:
        return self.factor > 0 and self.kernel.characteristic


@dataclass(frozen=True)
class PerColumn(_Factors):
    r"""Product over columns, one kernel each: :math:`k(x, y) = \prod_c k_c(x_c, y_c)`.

    The joint kernel on several sensitive attributes, each in its own unit and with its own bandwidth. Characteristic if
    all factors are and are invariant to shifts (Szabo and Sriperumbudur, 2018, Theorem 4).

    Examples
    --------
    >>> import torch
    >>> from frhsic.kernels import Gaussian
    >>> both = PerColumn((Gaussian(1.0), Gaussian(10.0)))
    >>> both(torch.zeros(1, 2), torch.tensor([[1.0, 10.0]]))
    tensor([[0.3679]])
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        if not self.kernels:
            raise ValueError("PerColumn needs at least one kernel.")

    @property
    def factors(self) -> tuple[Kernel, ...]:
        return self.kernels

    def _each(self, *rows: Tensor) -> Iterator[tuple[Any, ...]]:
        for x in rows:
            if x.shape[-1] != len(self.kernels):
                raise ValueError(f"{len(self.kernels)} kernels for {x.shape[-1]} columns; pass one for each.")
        return zip(self.kernels, *(torch.split(x, 1, dim=-1) for x in rows))


def _times(a: float, b: float) -> float:
    return 0.0 if 0 in (a, b) else a * b  # 0 times an unbounded kernel is 0, not NaN


def _not_a_kernel(other: object) -> TypeError:
    return TypeError(
        f"{type(other).__name__} is not a kernel; add or multiply kernels, such as Gaussian(1.0), or multiply one by a "
        "number."
    )
