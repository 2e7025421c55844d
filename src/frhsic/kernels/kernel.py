"""What a kernel is, and how kernels are put together: sums, products, one per column."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

__all__ = ["Column", "Kernel", "PerColumn", "Product", "Sum"]


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


def _as_kernel(other: object) -> Kernel:
    if not isinstance(other, Kernel):
        raise TypeError(f"{type(other).__name__} is not a kernel; add or multiply kernels, such as Gaussian(1.0).")
    return other
