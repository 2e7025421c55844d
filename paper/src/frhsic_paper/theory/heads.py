r"""Prediction heads on a representation, as functions with a norm in an RKHS."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Kernel, Linear
from frhsic.kernels.kernel import Sum


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    r"""A function given by coefficients, :math:`f = \sum_i a_i\, k(c_i, \cdot)` with
    :math:`\|f\|^2 = a^\top K_{cc}\, a`.

    Kernel ridge regression, support vector machines and Gaussian processes give such heads. Functions of S are given
    in the same form.

    Parameters
    ----------
    coefficients
        :math:`a`, of shape (c,).
    centers
        Rows :math:`c_i`, of shape (c, d). If not given, the rows of the sample.

    Examples
    --------
    >>> f = KernelExpansion([2.0], centers=[[3.0]])
    >>> f.norm(Linear(), torch.zeros(1, 1)), f.values(Linear(), torch.tensor([[1.0], [5.0]]))
    (6.0, tensor([ 6., 30.], dtype=torch.float64))
    """

    coefficients: Any
    centers: Any = None

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        a = _arrays.vector(self.coefficients, "coefficients").to(rows.device, torch.float64)
        given = rows if self.centers is None else _arrays.matrix(self.centers, "centers")
        centers = given.to(rows.device, torch.float64)
        if a.shape[0] != centers.shape[0]:
            raise ValueError(f"{a.shape[0]} coefficients came for {centers.shape[0]} centers; pass one for each.")
        if centers.shape[1] != rows.shape[1]:
            raise ValueError(f"centers have {centers.shape[1]} columns, the sample has {rows.shape[1]}.")
        return a, centers

    def norm(self, kernel: Kernel, rows: Tensor) -> float:
        """Return the norm in the RKHS of `kernel`; `rows` are the centers if none were given."""
        a, centers = self._parts(rows)
        return math.sqrt(max(float(a @ gram_times(kernel, centers, a)), 0.0))

    def values(self, kernel: Kernel, rows: Tensor) -> Tensor:
        """Return the values at `rows`, of shape (n,)."""
        a, centers = self._parts(rows)
        return gram_times(kernel, rows.to(torch.float64), a, y=centers)


@dataclass(frozen=True, eq=False)
class AffineHead:
    r"""An affine head, :math:`f(z) = w^\top z + b`, for kernels with a linear part.

    In the RKHS of :math:`z^\top z' + k(z, z')` the function :math:`w^\top z` has norm at most :math:`\|w\|`, and
    exactly that in the RKHS of the linear kernel alone; the constant b has no gap. The RKHS of a Gaussian contains no
    affine head.

    Examples
    --------
    >>> AffineHead([3.0, 4.0], 1.0).values(torch.tensor([[1.0, 1.0]]))
    tensor([8.], dtype=torch.float64)
    """

    weight: Any
    bias: float = 0.0

    def norm(self) -> float:
        r"""Return :math:`\|w\|`."""
        return float(torch.linalg.vector_norm(_arrays.vector(self.weight, "weight").to(torch.float64)))

    def values(self, rows: Tensor) -> Tensor:
        """Return the scores at `rows`, of shape (n,)."""
        w = _arrays.vector(self.weight, "weight").to(rows.device, torch.float64)
        if w.shape[0] != rows.shape[1]:
            raise ValueError(f"the head has {w.shape[0]} weights for {rows.shape[1]} columns of z.")
        return rows.to(torch.float64) @ w + self.bias


@dataclass(frozen=True, eq=False)
class DeployedHead:
    r"""Any deployed head, added to the kernel: :math:`k(z, z') = f(z) f(z') + k_Z(z, z')`.

    Any :math:`f` has norm at most 1 in the RKHS of this kernel, and every sum of a multiple of :math:`f` and a function
    of the RKHS of :math:`k_Z` is bounded too. Only the scores at the rows of the sample are needed. Use it for neural
    networks and other heads that have no known norm.

    Parameters
    ----------
    scores
        :math:`f(z_i)`, of shape (n,).
    """

    scores: Any


Head = KernelExpansion | AffineHead | DeployedHead


def has_linear_part(kernel: Kernel) -> bool:
    """Whether the kernel is the linear one, or a sum with it."""
    if isinstance(kernel, Sum):
        return has_linear_part(kernel.a) or has_linear_part(kernel.b)
    return isinstance(kernel, Linear)


def evaluate(head: Head, kernel: Kernel, z: Tensor) -> tuple[float, Tensor]:
    """Return the norm of a head and its scores at the rows of z."""
    if isinstance(head, KernelExpansion):
        return head.norm(kernel, z), head.values(kernel, z)
    if isinstance(head, AffineHead):
        if not has_linear_part(kernel):
            raise ValueError(
                f"an affine head does not lie in the RKHS of {kernel}. Pass a kernel with a linear part, such as "
                "Linear() + Gaussian(...), or put the head into the kernel: DeployedHead(scores)."
            )
        return head.norm(), head.values(z)
    if isinstance(head, DeployedHead):
        scores = _arrays.vector(head.scores, "scores").detach().to(z)
        if scores.shape[0] != z.shape[0]:
            raise ValueError(f"lengths differ: {scores.shape[0]} scores came for {z.shape[0]} rows of z.")
        return 1.0, scores
    raise TypeError(f"head is {type(head).__name__}; pass KernelExpansion, AffineHead or DeployedHead.")
