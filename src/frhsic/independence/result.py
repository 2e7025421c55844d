"""The result of a test of independence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from frhsic import _arrays


@dataclass(frozen=True)
class IndependenceResult:
    r"""Result of a test of :math:`H_0`: Z and S are independent.

    The statistic, the threshold, the null mean and `epsilon` all have the unit of the biased
    :func:`frhsic.dependence.hsic`; none is multiplied by n.

    Attributes
    ----------
    statistic
        Biased HSIC of the tested rows, also given by ``float(result)``.
    pvalue
        Probability, under independence, of a statistic at least as large.
    threshold
        Independence is rejected at `level` if the statistic exceeds this value. Infinite if a permutation test has
        too few resamples to reject at all.
    level
        Level of the test, for `threshold` and :attr:`rejected`.
    method
        Name of the test and of its null distribution.
    n
        Number of tested rows, after `where`.
    kernels, bandwidths
        The kernels on Z and on S as text, and a tuple of bandwidths for each.
    bandwidth_rules
        For Z and S: ``"given"``, or for kernels left out ``"median distance"``, or ``"median of the non-zero
        distances"`` where half or more of the pairs coincide.
    effect_size
        Normalized HSIC, :math:`\mathrm{HSIC}(z, s) / \sqrt{\mathrm{HSIC}(z, z)\,\mathrm{HSIC}(s, s)}`, in [0, 1].
        It does not grow with n. Under independence it is positive; compare it with `effect_size_null`.
    effect_size_null
        Mean effect size of independent data with the same marginals (over permutations).
    null_mean, null_standard_deviation
        Mean and standard deviation of the statistic under the null distribution of the test.
    resamples, seed
        Number of permutations and the seed that repeats them; None for tests without permutations.
    epsilon
        HSIC below which dependence counts as negligible, or None.
    pvalue_epsilon
        p-value of :math:`H_0'`: population HSIC :math:`\le \epsilon`; None without `epsilon`. It is the larger of
        `pvalue` and the p-value of a one-sided normal test on the unbiased HSIC with this `standard_error`.
    standard_error
        Standard error of HSIC under dependence; None without `epsilon`.
    caution
        What makes the p-value doubtful, or None. Only the conditional test has a reason for it.
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
    bandwidth_rules: tuple[str, str] = ("given", "given")
    caution: str | None = None

    @property
    def rejected(self) -> bool:
        """Whether independence is rejected at `level`."""
        return self.pvalue <= self.level

    @property
    def negligible(self) -> bool:
        """Whether the statistic lies below `epsilon`; False without `epsilon`."""
        return self.epsilon is not None and self.statistic < self.epsilon

    @property
    def decision(self) -> Literal["not rejected", "negligible", "dependent"]:
        r"""The paper's practical-significance rule (its section on the choice of :math:`\lambda`).

        "not rejected" if the test does not reject, "negligible" if it rejects but the statistic is below `epsilon`,
        otherwise "dependent". The paper accepts the first two. The comparison with `epsilon` is not a test: where the
        population value equals `epsilon`, either result is about equally likely. To *claim* that dependence exceeds
        `epsilon`, use `pvalue_epsilon`.
        """
        if not self.rejected:
            return "not rejected"
        return "negligible" if self.negligible else "dependent"

    def __float__(self) -> float:
        return self.statistic


def require_level(level: float, epsilon: float | None) -> None:
    """Raise unless level lies in (0, 1) and epsilon is positive or None."""
    _arrays.require_fraction(level, "level")
    if epsilon is not None:
        _arrays.require_positive(epsilon, "epsilon")
