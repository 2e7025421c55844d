"""The Gram matrices that all tests work on, with their sums, and the result that all tests return."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

import torch
from scipy.special import ndtr
from torch import Tensor

from frhsic.dependence._gram import Gram
from frhsic.dependence._inputs import kernel_or_median, paired_rows, working_copy
from frhsic.dependence.moments import OwnSums, PairSums, own_sums, pair_sums, product_rows
from frhsic.independence.null_moments import permutation_mean_variance, permutation_third_moment
from frhsic.independence.result import IndependenceResult
from frhsic.kernels import Kernel
from frhsic.kernels.bandwidth import default_gaussian


@dataclass(frozen=True)
class GramPair:
    """The Gram matrices of z and s on the same rows, the sums of one pass over the pairs, the rules of bandwidths."""

    k: Gram
    l: Gram
    sums: PairSums
    rules: tuple[str, str]

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

    @cached_property
    def own(self) -> tuple[OwnSums, OwnSums]:
        """Sums over either centred Gram matrix alone."""
        return own_sums(self.k, self.sums.k), own_sums(self.l, self.sums.l)

    @cached_property
    def product_rows(self) -> Tensor:
        r"""The sums :math:`\sum_j \tilde K_{ij} \tilde L_{ij}`, of shape (n,)."""
        return product_rows(self.k, self.l, self.sums)

    def permutation_third_cumulant(self) -> float:
        """Return the third central moment of HSIC over all permutations of s."""
        mean, variance = self.permutation_mean_variance()
        lists = [
            [t**3, t * t2, t * s2, *(float(value) for value in own.cubes)]
            for own, (t, t2, s2) in zip(self.own, self.invariants)
        ]
        return permutation_third_moment(lists[0], lists[1], self.n) / self.n**6 - 3 * mean * variance - mean**3

    def effect(self, value: float) -> float:
        """Return a value of HSIC divided by the geometric mean of the HSIC of each variable with itself."""
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    @property
    def bandwidths(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Bandwidths of the kernel on z and of the kernel on s."""
        return bandwidths_of(self.k.kernel), bandwidths_of(self.l.kernel)

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
            bandwidths=self.bandwidths,
            bandwidth_rules=self.rules,
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
        error = float(2 * (self.product_rows / self.n).std()) / math.sqrt(self.n)
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
    third: bool = False,
) -> GramPair:
    """Check the inputs of a test and return their Gram matrices; `third` if it will need :attr:`GramPair.own`."""
    z, s = paired_rows(z, s, where=where, device=device, least=least, what=what)
    (k, rule_z), (l, rule_s) = _gram(z, kernel_z, "z"), _gram(s, kernel_s, "s")
    return GramPair(k, l, pair_sums(k, l, third=third), (rule_z, rule_s))


def _gram(x: Tensor, kernel: Kernel | None, name: str) -> tuple[Gram, str]:
    kernel, rule = default_gaussian(x, name=name) if kernel is None else (kernel_or_median(kernel, x, name), "given")
    return Gram.of(working_copy(x, kernel), kernel, single=x.dtype == torch.float32), rule


def bandwidths_of(kernel: Kernel) -> tuple[float, ...]:
    """Return the bandwidths in a kernel and its parts, from left to right."""
    value = getattr(kernel, "bandwidth", None)
    if value is not None or not is_dataclass(kernel):
        return () if value is None else (float(value),)
    held = [getattr(kernel, field.name) for field in fields(kernel)]
    parts = [part for value in held for part in (value if isinstance(value, tuple) else (value,))]
    return tuple(b for part in parts if isinstance(part, Kernel) for b in bandwidths_of(part))
