"""Two Gram matrices on the same rows, of which a GPU sums the entries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic.dependence._gpu import launch, levels
from frhsic.dependence._gpu.levels import Levels
from frhsic.dependence._gpu.plan import LINEAR, Plan, plan
from frhsic.kernels import Kernel

Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Pair:
    """Rows x and y with the plans of their kernels, and weights u of mean 1 (None if all are equal) times a scale."""

    x: Tensor
    y: Tensor
    kernels: tuple[Kernel, Kernel]
    k: Plan
    l: Plan
    u: Tensor | None
    scale: float

    @classmethod
    def of(cls, x: Tensor, y: Tensor, kernel_k: Kernel, kernel_l: Kernel, w: Tensor) -> Pair | None:
        """Return the pair, or None if a kernel has no plan."""
        x, y = x.detach(), y.detach()
        k, l = plan(x, kernel_k, w), plan(y, kernel_l, w, products=False)
        if k is None or l is None:
            return None
        scale = float(w.mean())
        equal = bool((w == w[0]).all())
        return cls(x, y, (kernel_k, kernel_l), k, l, None if equal else w / scale, scale)

    def sums(self, *, skip_diagonal: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Return Σ w_i w_j K_ij L_ij, Kw and Lw, where K and L are the matrices minus constants."""
        off = self._off_diagonal()
        joint, k_rows, l_rows = off.joint, off.k_rows, off.l_rows
        if not skip_diagonal:
            k, l = self.diagonals()
            u = torch.ones_like(k) if self.u is None else self.u
            joint, k_rows, l_rows = joint + (u * k) @ (u * l), k_rows + u * k, l_rows + u * l
        return joint * self.scale**2, k_rows * self.scale, l_rows * self.scale

    def sums_with_squares(self, offsets: tuple[float, float]) -> Five:
        """Return Σ K ∘ L, the row sums of K and L and their sums of squares, both minus the given offsets.

        All weights must be 1.
        """
        off = self._off_diagonal(squares=True)
        k, l = self.diagonals()
        plans = zip((self.k, self.l), self.kernels, offsets)
        n, (a, b) = len(k), (subtracted(scheme, kernel) - offset for scheme, kernel, offset in plans)
        joint, k_squares, l_squares = off.joint + k @ l, off.k_squares + k @ k, off.l_squares + l @ l
        k_rows, l_rows = off.k_rows + k, off.l_rows + l
        k_total, l_total = k_rows.sum(), l_rows.sum()
        return (
            joint + b * k_total + a * l_total + a * b * n * n,
            k_rows + a * n,
            l_rows + b * n,
            k_squares + 2 * a * k_total + a * a * n * n,
            l_squares + 2 * b * l_total + b * b * n * n,
        )

    def _off_diagonal(self, *, squares: bool = False) -> launch.OffDiagonal:
        """Return the sums over pairs of distinct rows; squares are of all weights 1."""
        k, l = Levels.of(self.x, self.k), Levels.of(self.y, self.l)
        if k is not None and l is not None:
            return levels.pair_sums(k, l, self.u)
        off = launch.pair_sums(self.x, self.y, self.k, self.l, self.u, squares=squares)
        if l is not None:
            off = off._replace(l_rows=l.rows(self.u))
        return off if k is None else off._replace(k_rows=k.rows(self.u))

    def diagonals(self) -> tuple[Tensor, Tensor]:
        """Return the diagonals of K and L minus their constants, in float64."""
        return diagonal(self.x, self.k, self.kernels[0]), diagonal(self.y, self.l, self.kernels[1])

    def has_gradient(self, *, skip_diagonal: bool) -> bool:
        """Return whether :meth:`gradient` applies: to distances from matrix products."""
        linear = any(code & 3 == LINEAR for code in self.k.codes)
        return self.k.unit > 0 and not (linear and skip_diagonal)

    def gradient(self, l_rows: Tensor, joint: Tensor, cross: Tensor, total: Tensor) -> Tensor:
        """Return the gradient with respect to x, given Lw and the derivatives by the joint, cross and total sum."""
        shift = (cross * l_rows + total) / (2 * joint)
        scale = float(joint) * self.scale**2
        slope = launch.gradient(self.x, self.y, self.k, self.l, shift, self.u, scale)
        return slope if self.u is None else slope.mul_(self.u[:, None])


@dataclass(frozen=True)
class One:
    """Rows x with the plan of a kernel."""

    x: Tensor
    kernel: Kernel
    k: Plan

    @classmethod
    def of(cls, x: Tensor, kernel: Kernel) -> One | None:
        """Return the matrix, or None if the kernel has no plan."""
        scheme = plan(x, kernel, torch.ones_like(x[:, 0]))
        return None if scheme is None else cls(x, kernel, scheme)

    @property
    def multiplies(self) -> bool:
        """Whether :meth:`times` applies: to distances from matrix products."""
        return self.k.unit > 0

    def times(self, b: Tensor) -> Tensor:
        """Return K b, up to the same number in each column, if the columns of b sum to zero."""
        return launch.times(self.x, self.k, b)

    def cubes(self, means: Tensor, diagonal: Tensor) -> Tensor:
        """Return the sums over i ≠ j of A³, A² d_i and d_i A d_j, where A_ij = K_ij - m_i - m_j."""
        return launch.pair_cubes(self.x, self.k, means - subtracted(self.k, self.kernel) / 2, diagonal)


def subtracted(scheme: Plan, kernel: Kernel) -> float:
    """Return what is subtracted from a kernel: its constant, and its offset where the plan is shifted."""
    return scheme.constant + (kernel.offset if scheme.shifted else 0.0)


def diagonal(x: Tensor, scheme: Plan, kernel: Kernel) -> Tensor:
    """Return the diagonal of a Gram matrix minus its constant, in float64."""
    constant = subtracted(scheme, kernel)
    if kernel.unit_diagonal:
        return torch.full((len(x),), 1 - constant, dtype=torch.float64, device=x.device)
    blocks = torch.split(x, 1 << 16)
    return torch.cat([kernel.diagonal(block.double() - scheme.center) for block in blocks]) - constant
