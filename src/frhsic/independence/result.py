"""What a test of independence returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["IndependenceResult"]


@dataclass(frozen=True)
class IndependenceResult:
    r"""Outcome of a test of :math:`H_0`: Z and S are independent.

    The statistic, the threshold, the null mean and `epsilon` are all in one unit, that of the biased
    :func:`frhsic.dependence.hsic`; nothing is multiplied by n.

    Attributes
    ----------
    statistic
        Biased HSIC of the rows that were tested. ``float(result)`` gives it.
    pvalue
        Probability, under independence, of a statistic at least as large.
    threshold
        Value that the statistic must exceed to be rejected at `level`. Infinite where a permutation test has
        too few resamples to reject at all.
    level
        The level that `threshold` and :attr:`rejected` refer to.
    method
        Name of the test and of its null distribution.
    n
        Rows that were tested, after `where`.
    kernels, bandwidths
        The kernels on Z and on S as text, and their bandwidths: one tuple for each, empty where there is none.
    effect_size
        Normalised HSIC, :math:`\mathrm{HSIC}(z, s) / \sqrt{\mathrm{HSIC}(z, z)\,\mathrm{HSIC}(s, s)}`, in [0, 1].
        It does not grow with n, but its floor under independence is above zero: see `effect_size_null`.
    effect_size_null
        The effect size that independent data with these marginals have on average (over permutations).
    null_mean, null_standard_deviation
        Mean and standard deviation of the statistic under the null that was used.
    resamples, seed
        Permutations drawn and the seed that repeats them; None where the test draws none.
    epsilon
        HSIC below which dependence counts as negligible, if one was given.
    pvalue_epsilon
        p-value of :math:`H_0'`: population HSIC :math:`\le \epsilon`; None without `epsilon`. It is the larger of
        `pvalue` and of a one-sided normal test on the unbiased HSIC, whose standard error is `standard_error`.
    standard_error
        Standard error of HSIC under dependence; None without `epsilon`.
    """

    statistic: float
    pvalue: float
    threshold: float
    level: float
    method: str
    n: int
    kernels: tuple[str, str]
    bandwidths: tuple[tuple[float, ...], tuple[float, ...]]
    effect_size: float
    effect_size_null: float
    null_mean: float
    null_standard_deviation: float
    resamples: int | None = None
    seed: int | None = None
    epsilon: float | None = None
    pvalue_epsilon: float | None = None
    standard_error: float | None = None

    @property
    def rejected(self) -> bool:
        """Whether independence is rejected at `level`."""
        return self.pvalue <= self.level

    @property
    def negligible(self) -> bool:
        """Whether the statistic lies below `epsilon`; False where none was given."""
        return self.epsilon is not None and self.statistic < self.epsilon

    @property
    def decision(self) -> Literal["not rejected", "negligible", "dependent"]:
        r"""The paper's practical-significance rule (its section on the choice of :math:`\lambda`).

        "not rejected" where the test does not reject; "negligible" where it does but the statistic is below
        `epsilon`; else "dependent". The first two are what the paper accepts. The comparison with `epsilon` is
        one of numbers, not a test: where the population value equals `epsilon` it falls either way about
        equally often. To *claim* that dependence exceeds `epsilon`, use `pvalue_epsilon`.
        """
        if not self.rejected:
            return "not rejected"
        return "negligible" if self.negligible else "dependent"

    def __float__(self) -> float:
        return self.statistic


def require_level(level: float, epsilon: float | None) -> None:
    """Raise unless level lies in (0, 1) and epsilon is positive or None."""
    if not (math.isfinite(level) and 0 < level < 1):
        raise ValueError(f"level is {level}; pass a probability between 0 and 1, such as 0.05.")
    if epsilon is not None and not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon is {epsilon}; pass a positive HSIC below which dependence is negligible, or None.")
