"""Directions of S along which gaps are bounded: eigenvectors of its centered Gram matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.grams import pivoted_cholesky
from frhsic.kernels import Kernel

DENSE_VALUES = 1500
"""With up to this many distinct values of S, the eigendecomposition is complete."""

FACTOR_RANK = 600
"""With more than :data:`DENSE_VALUES` values, a pivoted Cholesky factor with at most this many
columns is used.
"""


@dataclass(frozen=True)
class NumericalRank:
    r"""Use every direction with :math:`\hat\lambda_j > \texttt{tolerance} \cdot \hat\lambda_1`."""

    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if not 1e-12 <= self.tolerance < 1:
            raise ValueError(
                f"tolerance is {self.tolerance}; pass a number from 1e-12 to 1, as a share of the"
                " largest eigenvalue."
            )


@dataclass(frozen=True)
class VarianceShare:
    r"""Use the fewest directions with :math:`\sum_{j \le m} \hat\lambda_j \ge \texttt{share} \cdot
    \operatorname{tr}(\tilde L)/n`.

    The trace is the variance of S in its own feature space.
    """

    share: float = 0.95

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.share, "share")


DirectionRule = NumericalRank | VarianceShare | int
"""A rule, or a fixed number of directions."""


@dataclass(frozen=True)
class SensitiveDirections:
    r"""The m leading eigenvectors of :math:`\tilde L / n`, orthonormal and orthogonal to constants.

    Attributes
    ----------
    vectors
        One column for each direction, (n, m).
    eigenvalues
        The eigenvalues in decreasing order, (m,).
    total
        :math:`\operatorname{tr}(\tilde L)/n`.
    error
        Largest difference between an exact eigenvalue and its lower estimate. Zero, up to rounding,
        if S has at most 1,500 distinct values.
    """

    vectors: Tensor
    eigenvalues: Tensor
    total: float
    error: float

    @property
    def count(self) -> int:
        """The number m of directions."""
        return int(self.eigenvalues.shape[0])

    def gaps(self, scores: Tensor) -> tuple[float, float]:
        r"""Return the gaps in scores along the directions, :math:`\|P_m \delta\|^2 / n`,
        :math:`\|P_m \delta\|_1 / n`.
        """
        coordinates = self.vectors.T @ (scores - scores.mean())
        return float((coordinates**2).sum()) / len(scores), float(
            (self.vectors @ coordinates).abs().mean()
        )


def leading_directions(kernel: Kernel, s: Tensor, rule: DirectionRule) -> SensitiveDirections:
    r"""Return the leading eigenvectors of the centered Gram matrix of the rows of `s`; `rule`
    determines how many.

    Equal rows share a coordinate, so the size of the problem is the number of distinct values. With
    up to 1,500 distinct values, it is solved completely. With more, a pivoted Cholesky factor gives
    :math:`L = GG^\top + R` with :math:`R \succeq 0`, and the directions are those of
    :math:`HGG^\top H / n`. Since :math:`\tilde L` dominates that matrix, every form of the gap
    bound holds for these directions; only their eigenvalues are below the exact ones, by at most
    `error`.
    """
    _arrays.require_varying(s, "s")
    values, group, counts = torch.unique(s, dim=0, return_inverse=True, return_counts=True)
    n = s.shape[0]
    share = counts.to(torch.float64) / n
    root = share.sqrt()
    if values.shape[0] <= DENSE_VALUES:
        gram = kernel.shifted(values, values)  # centring removes the constant
        means = gram @ share
        gram = root[:, None] * (gram - means[:, None] - means + share @ means) * root
        eigenvalues, vectors = descending_eigenpairs(gram)
        total, error = float(gram.trace()), 0.0
    else:
        factor, _ = pivoted_cholesky(kernel, values, max_rank=FACTOR_RANK)
        left = (kernel.diagonal(values) - (factor * factor).sum(1)).clamp_min(0)
        error = float(share @ left)
        factor = root[:, None] * (factor - share @ factor)
        vectors, singular, _ = torch.linalg.svd(factor, full_matrices=False)
        eigenvalues = singular**2
        total = float(eigenvalues.sum()) + error
    m = count_directions(eigenvalues, total, rule, error=error, what="s")
    # copy the coordinate of each distinct value to its rows; center again because of rounding
    rows = (vectors[:, :m] / root[:, None])[group] / math.sqrt(n)
    rows, _ = torch.linalg.qr(rows - rows.mean(0))
    return SensitiveDirections(rows, eigenvalues[:m].clone(), total, error)


def descending_eigenpairs(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues of a symmetric matrix, largest first, and its eigenvectors as
    columns.
    """
    eigenvalues, vectors = torch.linalg.eigh(symmetrize(a))
    return eigenvalues.flip(0), vectors.flip(1)


def symmetrize(a: Tensor) -> Tensor:
    """Return a matrix without asymmetry due to rounding."""
    return (a + a.T) / 2


def count_directions(
    eigenvalues: Tensor, total: float, rule: DirectionRule, *, error: float, what: str
) -> int:
    """Return how many of the descending `eigenvalues` the rule selects; `total` is the sum of all
    eigenvalues.
    """
    largest = float(eigenvalues[0])
    if largest <= 0:
        raise ValueError(
            f"the centered Gram matrix of {what} is zero: its kernel does not distinguish the rows."
            " Choose another kernel or bandwidth."
        )
    usable = int((eigenvalues > 1e-14 * eigenvalues.shape[0] * largest).sum())
    if isinstance(rule, bool) or not isinstance(rule, (int, NumericalRank, VarianceShare)):
        raise TypeError(
            f"directions is {type(rule).__name__}; pass NumericalRank, VarianceShare or a number."
        )
    if isinstance(rule, int):
        if not 1 <= rule <= usable:
            raise ValueError(
                f"directions is {rule}; {what} has {usable} above rounding error. Pass a number"
                f" from 1 to {usable}."
            )
        return rule
    if isinstance(rule, NumericalRank):
        if error > rule.tolerance * largest:
            raise ValueError(
                f"eigenvalues of {what} have an error of {error:.2g}, larger than the tolerance"
                f" ({rule.tolerance:g} times the largest eigenvalue, which is {largest:.2g}). Pass"
                " VarianceShare(...), a larger tolerance or a number."
            )
        return int((eigenvalues > rule.tolerance * largest).sum())
    short = int((torch.cumsum(eigenvalues, 0) < rule.share * total * (1 - 1e-12)).sum())
    if short == len(eigenvalues):
        raise ValueError(
            f"{short} directions explain less than {rule.share:g} of the variance of {what}; pass"
            " a smaller share."
        )
    return min(short + 1, usable)
