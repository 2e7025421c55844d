"""The Gram matrices that all tests work on, with their sums, and the result that all tests return."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import ndtr

from frhsic.dependence._inputs import kernel_or_median, paired_rows, working_copy
from frhsic.dependence.moments import Gram, PairSums, centered_products, pair_sums
from frhsic.independence.null_moments import permutation_mean_variance
from frhsic.independence.result import IndependenceResult
from frhsic.kernels import Kernel, Multiple, PerColumn, Product, Sum


@dataclass(frozen=True)
class GramPair:
    """The Gram matrices of z and s on the same rows, and the sums of one pass over the pairs."""

    k: Gram
    l: Gram
    sums: PairSums

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.k.n

    @property
    def statistic(self) -> float:
        """Biased HSIC."""
        return float(self.sums.centered_joint) / self.n**2

    @property
    def norms(self) -> tuple[float, float]:
        r"""The norms :math:`\|\tilde K\|, \|\tilde L\|` of the centred Gram matrices."""
        return math.sqrt(float(self.sums.k.centered.squares)), math.sqrt(float(self.sums.l.centered.squares))

    @property
    def magnitude(self) -> float:
        r"""The bound :math:`\|\tilde K\| \|\tilde L\|` of :math:`|\operatorname{tr}(\tilde K P \tilde L P^\top)|`."""
        k, l = self.norms
        return k * l

    @property
    def invariants(self) -> list[tuple[float, float, float]]:
        """Trace, sum of squares and sum of squared diagonal entries of either centred Gram matrix."""
        both = (self.sums.k.centered, self.sums.l.centered)
        return [(float(g.trace), float(g.squares), float(g.diagonal.square().sum())) for g in both]

    def permutation_mean_variance(self) -> tuple[float, float]:
        """Return the exact mean and variance of HSIC over all permutations of s."""
        k, l = self.invariants
        mean, variance = permutation_mean_variance(k, l, self.n)
        return mean / self.n**2, variance / self.n**4

    def effect(self, value: float) -> float:
        """Return a value of HSIC divided by the geometric mean of the HSIC of each variable with itself."""
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    def result(
        self,
        pvalue: float,
        threshold: float,
        level: float,
        method: str,
        *,
        null: tuple[float, float] | None = None,
        epsilon: float | None = None,
        resamples: int | None = None,
        seed: int | None = None,
    ) -> IndependenceResult:
        """Return the result of a test; `null` is the mean and variance of HSIC, by default over all permutations."""
        permuted = self.permutation_mean_variance()
        mean, variance = permuted if null is None else null
        pvalue_epsilon, error = self._epsilon_test(epsilon, pvalue)
        return IndependenceResult(
            statistic=self.statistic,
            pvalue=pvalue,
            threshold=threshold,
            level=level,
            method=method,
            n=self.n,
            kernels=(repr(self.k.kernel), repr(self.l.kernel)),
            bandwidths=(_bandwidths(self.k.kernel), _bandwidths(self.l.kernel)),
            effect_size=self.effect(self.statistic),
            effect_size_null=self.effect(permuted[0]),
            null_mean=mean,
            null_standard_deviation=math.sqrt(variance),
            resamples=resamples,
            seed=seed,
            epsilon=epsilon,
            pvalue_epsilon=pvalue_epsilon,
            standard_error=error,
        )

    def _epsilon_test(self, epsilon: float | None, pvalue: float) -> tuple[float | None, float | None]:
        r"""Return the p-value of HSIC :math:`\le \epsilon` and the standard error of HSIC; None without epsilon.

        The influence of row i on HSIC is :math:`2 (\frac1n \sum_j \tilde K_{ij} \tilde L_{ij} - \mathrm{HSIC})`; the
        standard error is its standard deviation divided by :math:`\sqrt n`. HSIC is asymptotically normal if it is
        positive and degenerate if it is zero, so the test of independence must reject as well.
        """
        if epsilon is None:
            return None, None
        rows, _ = centered_products(self.k, self.l, self.sums)
        error = float(2 * (rows / self.n).std()) / math.sqrt(self.n)
        excess = float(self.sums.unbiased) - epsilon
        if error == 0:
            return (pvalue if excess > 0 else 1.0), error
        return max(pvalue, float(ndtr(-excess / error))), error


def gram_pair(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
    least: int,
    what: str,
) -> GramPair:
    """Check the inputs of a test and return their Gram matrices."""
    z, s = paired_rows(z, s, where=where, device=device, least=least, what=what)
    kernel_z, kernel_s = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    k, l = Gram.of(working_copy(z, kernel_z), kernel_z), Gram.of(working_copy(s, kernel_s), kernel_s)
    return GramPair(k, l, pair_sums(k, l))


def _bandwidths(kernel: Kernel) -> tuple[float, ...]:
    """Return the bandwidths in a kernel, from left to right."""
    if isinstance(kernel, PerColumn):
        return tuple(b for part in kernel.kernels for b in _bandwidths(part))
    if isinstance(kernel, Multiple):
        return _bandwidths(kernel.kernel)
    if isinstance(kernel, (Sum, Product)):
        return _bandwidths(kernel.a) + _bandwidths(kernel.b)
    value = getattr(kernel, "bandwidth", None)
    return () if value is None else (float(value),)
