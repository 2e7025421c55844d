"""What all tests share: the result, and the Gram matrices of two samples with their sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from frhsic.dependence.cubes import OwnSums, own_sums, random_signs
from frhsic.dependence.inputs import paired_rows, require_kernel, working_copy
from frhsic.dependence.sums import PairSums, pair_sums, product_rows
from frhsic.dependence.tiles import Gram
from frhsic.independence.moments import permutation_mean_variance, permutation_third_moment
from frhsic.kernels import Kernel, default_gaussian


@dataclass(frozen=True)
class IndependenceResult:
    r"""Result of a test of :math:`H_0`: Z and S are independent.

    The statistic, the threshold and the null mean all have the unit of the biased
    :func:`frhsic.dependence.hsic`; none is multiplied by n.

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
        Name of the test and of its null distribution.
    n
        Number of tested rows, after `where`.
    kernels
        The kernels on Z and on S as text, with their bandwidths.
    bandwidth_rules
        For Z and S: ``"given"``, or for kernels left out ``"median distance"``, or ``"median of the
        non-zero distances"`` where half or more of the pairs coincide.
    effect_size
        Normalized HSIC, :math:`\mathrm{HSIC}(z, s) / \sqrt{\mathrm{HSIC}(z, z)\,\mathrm{HSIC}(s,
        s)}`, in [0, 1]. It does not grow with n. Under independence it is positive; compare it with
        `effect_size_null`.
    effect_size_null
        Mean effect size of independent data with the same marginals (over permutations).
    null_mean
        Mean of the statistic under the null distribution of the test.
    null_standard_deviation
        Its standard deviation there.
    seed
        The seed that repeats the permutations; None for tests without permutations.

    Examples
    --------
    >>> from frhsic.independence import gamma_test
    >>> x = torch.arange(50.0)
    >>> result = gamma_test(x, x.square())
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


@dataclass(frozen=True)
class GramPair:
    """The Gram matrices of z and s on the same rows, the sums of one pass over the pairs, the rules
    of bandwidths.
    """

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
        return float(self.sums.biased_hsic)

    @property
    def magnitude(self) -> float:
        r"""The bound :math:`\|\tilde K\| \|\tilde L\|` of :math:`|\operatorname{tr}(\tilde K P
        \tilde L P^\top)|`.
        """
        return math.prod(
            math.sqrt(float(sums.centered_gram.squares)) for sums in (self.sums.k, self.sums.l)
        )

    @property
    def invariants(self) -> list[tuple[float, float, float]]:
        """Trace, sum of squares and sum of squared diagonal entries of either centred Gram
        matrix.
        """
        both = (self.sums.k.centered_gram, self.sums.l.centered_gram)
        return [(float(g.trace), float(g.squares), float(g.diagonal.square().sum())) for g in both]

    def permutation_mean_variance(self) -> tuple[float, float]:
        """Return the exact mean and variance of HSIC over all permutations of s."""
        k, l = self.invariants
        mean, variance = permutation_mean_variance(k, l, self.n)
        return mean / self.n**2, variance / self.n**4

    @cached_property
    def own_sums(self) -> tuple[OwnSums, OwnSums]:
        """Sums over either centred Gram matrix alone."""
        return own_sums(self.k, self.sums.k), own_sums(self.l, self.sums.l)

    @cached_property
    def influence(self) -> Tensor:
        r"""Influence of each row on HSIC up to a constant, :math:`\frac2n \sum_j \tilde K_{ij}
        \tilde L_{ij}`.
        """
        return 2 * product_rows(self.k, self.l, self.sums) / self.n

    def permutation_third_cumulant(self) -> float:
        """Return the third central moment of HSIC over all permutations of s."""
        mean, variance = self.permutation_mean_variance()
        a, b = (
            [t**3, t * t2, t * s2, *(float(value) for value in sums.cubes)]
            for sums, (t, t2, s2) in zip(self.own_sums, self.invariants)
        )
        return permutation_third_moment(a, b, self.n) / self.n**6 - 3 * mean * variance - mean**3

    def effect(self, value: float) -> float:
        """Return a value of HSIC divided by the geometric mean of the HSIC of each variable with
        itself.
        """
        return min(value * self.n**2 / self.magnitude, 1.0) if self.magnitude > 0 else 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """What every result says of the data: number of rows, kernels and rules of bandwidths."""
        kernels = repr(self.k.kernel), repr(self.l.kernel)
        return {"n": self.n, "kernels": kernels, "bandwidth_rules": self.rules}

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
        """Return the result of a test; `null` is the mean and variance of HSIC, by default over all
        permutations.
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


def gram_pair(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
    least: int = 6,
    third: bool = False,
) -> GramPair:
    """Check the inputs of a test and return their Gram matrices; `third` if it will need
    :attr:`GramPair.own_sums`.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=least, what="a test of independence")
    return gram_pair_from_rows(z, s, kernel_z, kernel_s, third=third)


def gram_pair_from_rows(
    z: Tensor, s: Tensor, kernel_z: Kernel | None, kernel_s: Kernel | None, *, third: bool = False
) -> GramPair:
    """:func:`gram_pair` of rows that were checked."""
    k, rule_z = _gram_and_rule(z, kernel_z, "z")
    l, rule_s = _gram_and_rule(s, kernel_s, "s")
    sums = pair_sums(k, l, signs=random_signs(k) if third else None)
    return GramPair(k, l, sums, (rule_z, rule_s))


def _gram_and_rule(x: Tensor, kernel: Kernel | None, name: str) -> tuple[Gram, str]:
    """Return the Gram matrix of a variable and the rule of its bandwidth; None is a Gaussian at the
    median distance.
    """
    require_kernel(kernel, f"kernel_{name}")
    rule = "given"
    if kernel is None:
        kernel, rule = default_gaussian(x, name=name)
    single = x.dtype == torch.float32
    return Gram.from_rows(working_copy(x, kernel), kernel, single=single), rule
