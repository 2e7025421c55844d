"""What both tests do first: rows paired, kernels chosen, sums taken, effect size and epsilon answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import ndtr

from frhsic.dependence._sample import kernel_or_median, paired_rows
from frhsic.dependence._tiles import working_copy
from frhsic.dependence.moments import Gram, PairSums, centered_products, pair_sums
from frhsic.independence.null_moments import permutation_mean_variance
from frhsic.kernels import Kernel, Multiple, PerColumn, Product, Sum


@dataclass(frozen=True)
class Sample:
    """The Gram matrices of z and s, and the sums of one pass over the pairs."""

    k: Gram
    l: Gram
    sums: PairSums

    @property
    def n(self) -> int:
        """Rows that are tested."""
        return self.k.n

    @property
    def statistic(self) -> float:
        """Biased HSIC."""
        return float(self.sums.centered_joint) / self.n**2

    @property
    def kernels(self) -> tuple[Kernel, Kernel]:
        """The kernels on z and on s."""
        return self.k.kernel, self.l.kernel

    @property
    def magnitude(self) -> float:
        r"""The bound :math:`\|\tilde K\| \|\tilde L\|` of :math:`|\operatorname{tr}(\tilde K P \tilde L P^\top)|`."""
        return math.sqrt(float(self.sums.centered_k.squares)) * math.sqrt(float(self.sums.centered_l.squares))

    @property
    def invariants(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Trace, sum of squares and sum of squared diagonal entries of either centred Gram matrix."""
        k, l = self.sums.centered_k, self.sums.centered_l
        return (
            (float(k.trace), float(k.squares), float(k.diagonal_squares)),
            (float(l.trace), float(l.squares), float(l.diagonal_squares)),
        )

    def permutation_mean_variance(self) -> tuple[float, float]:
        """Return the exact mean and variance of HSIC over all permutations of s."""
        mean, variance = permutation_mean_variance(*self.invariants, self.n)
        return mean / self.n**2, variance / self.n**4

    def effect(self, value: float) -> float:
        """Return a value of HSIC over the geometric mean of the HSIC of each variable with itself."""
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    def against(self, epsilon: float | None, pvalue: float) -> tuple[float | None, float | None]:
        r"""Return the p-value of HSIC :math:`\le \epsilon` and the standard error of HSIC, None without epsilon.

        The influence of row i on HSIC is :math:`2 (\frac1n \sum_j \tilde K_{ij} \tilde L_{ij} - \mathrm{HSIC})`; the
        standard error is its standard deviation over :math:`\sqrt n`. Normal where HSIC is positive, degenerate
        where it is zero, which is why the test of independence must reject as well.
        """
        if epsilon is None:
            return None, None
        rows, _ = centered_products(self.k, self.l, self.sums)
        error = float(2 * (rows / self.n).std()) / math.sqrt(self.n)
        excess = float(self.sums.unbiased) - epsilon
        if error == 0:
            return (pvalue if excess > 0 else 1.0), error
        return max(pvalue, float(ndtr(-excess / error))), error


def sample(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any,
    device: torch.device | str | None,
    least: int,
    what: str,
) -> Sample:
    """Return the sample that a test works on."""
    z, s = paired_rows(z, s, where=where, device=device, least=least, what=what)
    kernel_z, kernel_s = kernel_or_median(kernel_z, z, "z"), kernel_or_median(kernel_s, s, "s")
    k, l = Gram.of(working_copy(z, kernel_z), kernel_z), Gram.of(working_copy(s, kernel_s), kernel_s)
    return Sample(k, l, pair_sums(k, l))


def bandwidths(kernel: Kernel) -> tuple[float, ...]:
    """Return the bandwidths in a kernel, in order of reading."""
    if isinstance(kernel, PerColumn):
        return tuple(b for part in kernel.kernels for b in bandwidths(part))
    if isinstance(kernel, Multiple):
        return bandwidths(kernel.kernel)
    if isinstance(kernel, (Sum, Product)):
        return bandwidths(kernel.a) + bandwidths(kernel.b)
    value = getattr(kernel, "bandwidth", None)
    return () if value is None else (float(value),)
