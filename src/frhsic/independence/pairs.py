"""The parts that all tests share: the result, and the sums over two centered Gram matrices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frhsic.dependence.columns import CubicSums, SortedColumn, distance_product_rows
from frhsic.dependence.formulas import unbiased_from_sums
from frhsic.independence.moments import permutation_mean_variance, permutation_third_moment


@dataclass(frozen=True)
class IndependenceResult:
    r"""Result of a test of :math:`H_0`: Z and S are independent.

    The statistic, the threshold and the null mean all have the unit of the biased
    :func:`frhsic.dependence.hsic`, not multiplied by n.

    Attributes
    ----------
    statistic
        Biased HSIC of the tested rows, also given by ``float(result)``.
    pvalue
        Probability, under independence, of a statistic at least as large.
    threshold
        Independence is rejected at `level` if the statistic exceeds this value. Infinite if a
        permutation test has too few resamples to reject at all.
    level
        Level of the test, for `threshold` and :attr:`rejected`.
    method
        Name of the test and of the null distribution.
    n
        Number of tested rows, after `where`.
    kernels
        The kernels on Z and S as text, with their bandwidths.
    bandwidth_rules
        For Z and S: ``"given"`` or, for a default kernel, ``"median distance"``, or ``"median of
        the non-zero distances"`` if half or more of the pairs coincide.
    effect_size
        Normalized HSIC, :math:`\mathrm{HSIC}(z, s) / \sqrt{\mathrm{HSIC}(z, z)\,\mathrm{HSIC}(s,
        s)}`, in [0, 1]. It does not grow with n. Since it is positive even under independence,
        compare it with `effect_size_null`.
    effect_size_null
        Mean effect size for independent data with the same marginals (over permutations).
    null_mean
        Mean of the statistic under the null distribution of the test.
    null_standard_deviation
        Standard deviation of the statistic under the null distribution of the test.
    seed
        The seed that reproduces the permutations; None for tests without permutations.

    Examples
    --------
    >>> from frhsic.independence import gamma_test
    >>> x = np.arange(50.0)
    >>> result = gamma_test(x, x**2)
    >>> result.rejected, result.n
    (True, 50)
    >>> result.effect_size > result.effect_size_null
    True
    """

    statistic: float
    pvalue: float
    threshold: float
    level: float
    method: str
    n: int
    kernels: tuple[str, str]
    bandwidth_rules: tuple[str, str]
    effect_size: float
    effect_size_null: float
    null_mean: float
    null_standard_deviation: float
    seed: int | None = None

    @property
    def rejected(self) -> bool:
        """Whether independence is rejected at `level`."""
        return self.pvalue <= self.level

    def __float__(self) -> float:
        return self.statistic


class Invariants(NamedTuple):
    """Trace, sum of squares and sum of squared diagonal entries of a centered Gram matrix."""

    trace: float
    squares: float
    diagonal_squares: float


class OwnDependence(NamedTuple):
    """Unbiased HSIC of a variable with itself, and the influence of each row, of shape (n,)."""

    value: float
    influence: np.ndarray


class Pair(ABC):
    """Two centered Gram matrices on the same rows, with the sums that tests and intervals need."""

    rules: tuple[str, str]

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, str]:
        """The kernels as text."""

    @property
    @abstractmethod
    def statistic(self) -> float:
        """Biased HSIC."""

    @property
    @abstractmethod
    def unbiased(self) -> float:
        """Unbiased HSIC."""

    @property
    @abstractmethod
    def influence(self) -> np.ndarray:
        r"""Influence of each row on HSIC, up to a constant, :math:`\frac2n \sum_j \tilde K_{ij}
        \tilde L_{ij}`.
        """

    @property
    @abstractmethod
    def invariants(self) -> tuple[Invariants, Invariants]:
        """Sums of degree one and two over each matrix."""

    @property
    @abstractmethod
    def cubes(self) -> tuple[CubicSums, CubicSums]:
        """Sums of degree three over each centered matrix."""

    @property
    @abstractmethod
    def own(self) -> tuple[OwnDependence, OwnDependence]:
        """Dependence of each variable on itself."""

    @property
    def magnitude(self) -> float:
        r"""The bound :math:`\|\tilde K\| \|\tilde L\|` of :math:`|\operatorname{tr}(\tilde K P
        \tilde L P^\top)|`.
        """
        return math.prod(math.sqrt(sums.squares) for sums in self.invariants)

    def permutation_mean_variance(self) -> tuple[float, float]:
        """Return the exact mean and variance of HSIC over all permutations of s."""
        mean, variance = permutation_mean_variance(*self.invariants, self.n)
        return mean / self.n**2, variance / self.n**4

    def permutation_third_cumulant(self) -> float:
        """Return the third central moment of HSIC over all permutations of s."""
        mean, variance = self.permutation_mean_variance()
        a, b = (
            [t**3, t * t2, t * s2, *cubes]
            for (t, t2, s2), cubes in zip(self.invariants, self.cubes)
        )
        return permutation_third_moment(a, b, self.n) / self.n**6 - 3 * mean * variance - mean**3

    def effect(self, value: float) -> float:
        """Divide a value of HSIC by the geometric mean of the HSIC of each variable with itself."""
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """Fields that every result includes: the number of rows, the kernels and the bandwidth
        rules.
        """
        return {"n": self.n, "kernels": self.kernels, "bandwidth_rules": self.rules}

    def result(
        self,
        pvalue: float,
        threshold: float,
        level: float,
        method: str,
        *,
        null: tuple[float, float] | None = None,
        seed: int | None = None,
    ) -> IndependenceResult:
        """Return the result of a test; `null` is the mean and variance of HSIC under the null
        distribution, by default over all permutations.
        """
        mean, variance = self.permutation_mean_variance() if null is None else null
        return IndependenceResult(
            statistic=self.statistic,
            pvalue=pvalue,
            threshold=threshold,
            level=level,
            method=method,
            **self.facts,
            effect_size=self.effect(self.statistic),
            effect_size_null=self.effect(mean),
            null_mean=mean,
            null_standard_deviation=math.sqrt(variance),
            seed=seed,
        )


@dataclass(frozen=True, eq=False)
class ColumnPair(Pair):
    """The half-distance Gram matrices of two single columns, whose sums are computed by sorting.

    HSIC is then a quarter of the squared distance covariance, and normalized HSIC is the squared
    distance correlation.

    Examples
    --------
    >>> pair = ColumnPair.from_values(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> pair.statistic  # a quarter of the square of 1/2
    0.0625
    """

    z: SortedColumn
    s: SortedColumn
    kernels = ("HalfDistance()", "HalfDistance()")
    rules = ("given", "given")

    @classmethod
    def from_values(cls, z: np.ndarray, s: np.ndarray) -> ColumnPair:
        """Compute the sums for two columns of shape (n,), in float64."""
        return cls(SortedColumn.from_values(z), SortedColumn.from_values(s))

    @property
    def n(self) -> int:
        return len(self.z.values)

    @cached_property
    def _product_rows(self) -> np.ndarray:
        return distance_product_rows(self.z, self.s)

    @property
    def statistic(self) -> float:
        return max(float(self._product_rows.sum()), 0.0) / self.n**2

    @property
    def unbiased(self) -> float:
        return _unbiased(float(self._product_rows.sum()), self.z.diagonal, self.s.diagonal)

    @property
    def influence(self) -> np.ndarray:
        return 2 * self._product_rows / self.n

    @property
    def invariants(self) -> tuple[Invariants, Invariants]:
        z, s = (
            Invariants(float(d.diagonal.sum()), d.squares, float(d.diagonal @ d.diagonal))
            for d in (self.z, self.s)
        )
        return z, s

    @property
    def cubes(self) -> tuple[CubicSums, CubicSums]:
        return self.z.cubes, self.s.cubes

    @property
    def own(self) -> tuple[OwnDependence, OwnDependence]:
        z, s = (
            OwnDependence(_unbiased(d.squares, d.diagonal, d.diagonal), 2 * d.square_rows / self.n)
            for d in (self.z, self.s)
        )
        return z, s


def _unbiased(joint: float, z: np.ndarray, s: np.ndarray) -> float:
    """Return unbiased HSIC, given the diagonals of two centered matrices and the sum of the
    products of their entries. Without its diagonal entry, a row of a centered matrix sums to minus
    this entry.
    """
    cross = float(z @ s)
    return unbiased_from_sums(joint - cross, cross, -float(z.sum()), -float(s.sum()), len(z))
