r"""Intervals for HSIC.

The unbiased HSIC of a sample, :math:`\hat\theta`, estimates the population value :math:`\theta`.
For weak dependence it is close to a weighted sum of noncentral chi-squares, whose cumulants are
linear in :math:`\theta` along one direction:

.. math:: \kappa_1 = \theta, \qquad \kappa_2 = \kappa_2^0 + k\,\theta, \qquad
    \kappa_3 = \kappa_3^0 + \tfrac32 k^2\,\theta.

At :math:`\theta = 0` they are the exact moments over permutations. For weak dependence the slope is
:math:`k = 4 \lambda_Z \lambda_S / n`, where :math:`\lambda_Z` is :math:`\operatorname{tr} \tilde
K^3` divided by :math:`n \operatorname{tr} \tilde K^2`, a typical eigenvalue; for strong dependence
it comes from the influence of each row. A shifted gamma has these cumulants, and an interval holds
each :math:`\theta` under which the observed value lies in neither tail. `benchmarks/laws.py
--of hsic` counts the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc
from torch import Tensor

from frhsic import _arrays
from frhsic.dependence.cubes import OwnSums
from frhsic.dependence.sums import GramSums, PairSums, product_rows
from frhsic.dependence.tiles import Gram
from frhsic.independence.moments import pearson_parameters
from frhsic.independence.pairs import GramPair, gram_pair
from frhsic.intervals import Interval
from frhsic.kernels import Kernel

METHOD = "three-moment law of HSIC"


@dataclass(frozen=True)
class Effect:
    """Unbiased estimate of a measure of dependence, with its interval.

    Attributes
    ----------
    value
        The estimate; under independence it is zero on average and often negative.
    interval
        Interval of the population value under these kernels, whose bandwidths count as fixed.
    n
        Number of rows.
    kernels
        As in :class:`~frhsic.independence.IndependenceResult`.
    bandwidth_rules
        Likewise.
    """

    value: float
    interval: Interval
    n: int
    kernels: tuple[str, str]
    bandwidth_rules: tuple[str, str]

    def __float__(self) -> float:
        return self.value


def hsic_interval(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    confidence: float = 0.95,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Effect:
    r"""Unbiased HSIC with an interval, from its approximate law at each population value.

    The interval holds each :math:`\theta \ge 0` with :math:`P_\theta(\hat\theta \ge v)` and
    :math:`P_\theta(\hat\theta \le v)` at least :math:`\alpha/2`, where v is the observed value. It
    is widened to hold v, which is negative about half the time under independence; the upper end is
    never below that of v = 0.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, where, device
        As for :func:`~frhsic.independence.gamma_test`.
    confidence
        Confidence of the interval.

    Returns
    -------
    Effect
        The estimate as `value` and ``float(...)``, and the `interval` of the population value under
        these kernels, whose bandwidths count as fixed.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)
    >>> effect = hsic_interval(x, x)
    >>> 0 < effect.interval.low < effect.value < effect.interval.high
    True
    """
    _arrays.require_fraction(confidence, "confidence")
    return hsic_effect(
        gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, third=True), confidence
    )


def normalized_hsic_interval(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    confidence: float = 0.95,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Effect:
    r"""Bias-corrected normalized HSIC with an interval.

    .. math:: \hat r = \widehat{\mathrm{HSIC}}(z, s) \Big/
        \sqrt{\widehat{\mathrm{HSIC}}(z, z)\, \widehat{\mathrm{HSIC}}(s, s)}

    with the unbiased estimates. Zero in the population exactly when Z and S are independent, if the
    kernels are characteristic, and at most one. It is one when the two kernels see the same
    distances; a bijection of s that changes distances gives less. Under
    :class:`~frhsic.kernels.HalfDistance` kernels it is the squared distance correlation without
    bias. If z or s differs in too few rows to estimate its variance under its kernel, such as one
    positive decision, the value is 0 and the interval 0 to 1.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, confidence, where, device
        As for :func:`hsic_interval`.

    References
    ----------
    Székely and Rizzo (2014), *Partial distance correlation with methods for dissimilarities*.

    Examples
    --------
    >>> x = torch.linspace(0, 1, 50, dtype=torch.float64)
    >>> round(normalized_hsic_interval(x, 2 * x + 1).value, 6)
    1.0
    """
    _arrays.require_fraction(confidence, "confidence")
    return normalized_effect(
        gram_pair(z, s, kernel_z, kernel_s, where=where, device=device, third=True), confidence
    )


@dataclass(frozen=True)
class _Law:
    """Law of the estimate at each population value: its variance and third cumulant at zero, and
    their slope.
    """

    variance: float
    third: float
    slope: float

    def parameters(self, at: float) -> tuple[float, float, float]:
        """Return shape, scale and start of the law if the population value is `at`."""
        deviation = math.sqrt(self.variance + self.slope * at)
        return pearson_parameters(
            at, deviation, (self.third + 1.5 * self.slope**2 * at) / deviation**3
        )

    def below(self, value: float, at: float) -> float:
        """Return the probability of an estimate at most `value` if the population value is `at`."""
        shape, scale, start = self.parameters(at)
        return float(gammainc(shape, max(value - start, 0.0) / scale))

    def above(self, value: float, at: float) -> float:
        """Return the probability of an estimate of `value` or more if the population value is
        `at`.
        """
        shape, scale, start = self.parameters(at)
        return float(gammaincc(shape, max(value - start, 0.0) / scale))

    def smallest(self, value: float, level: float) -> float:
        """Return the population value from 0 to `value` above which `value` is not in the upper
        tail.
        """
        if value <= 0 or self.above(value, 0.0) >= level:
            return 0.0
        if self.above(value, value) <= level:
            return value
        return float(
            brentq(lambda at: self.above(value, at) - level, 0.0, value, xtol=1e-12 * value)
        )

    def largest(self, value: float, level: float) -> float:
        """Return the population value below which `value`, or 0 if that is larger, is not in the
        lower tail.
        """
        value = max(value, 0.0)
        if self.below(value, 0.0) <= level:
            return 0.0
        high = value + math.sqrt(self.variance)
        while self.below(value, high) > level:
            high *= 2
        return float(brentq(lambda at: self.below(value, at) - level, 0.0, high, xtol=1e-12 * high))


def hsic_effect(pair: GramPair, confidence: float) -> Effect:
    """:func:`hsic_interval` of Gram matrices that other statistics use as well."""
    _require_variation(pair)
    value = float(pair.sums.unbiased_hsic)
    law = _law(pair, value, pair.influence, 1.0)
    return _effect(pair, value, law, confidence, math.inf)


def normalized_effect(pair: GramPair, confidence: float) -> Effect:
    """:func:`normalized_hsic_interval` of Gram matrices that other statistics use as well."""
    _require_variation(pair)
    law = _normalized_law(pair)
    if law is None:
        return Effect(0.0, Interval(0.0, 1.0, confidence, METHOD), **pair.facts)
    return _effect(pair, *law, confidence, 1.0)


def _normalized_law(pair: GramPair) -> tuple[float, _Law] | None:
    """Return the ratio of unbiased estimates and its law; None if a variance under a kernel is
    estimated as zero.
    """
    zz, influence_z = _with_itself(pair.k, pair.sums.k, pair.own_sums[0])
    ss, influence_s = _with_itself(pair.l, pair.sums.l, pair.own_sums[1])
    # the estimate of one positive decision is zero up to rounding
    least_zz = 1e-6 * float(pair.sums.k.centered_gram.squares) / pair.n**2
    least_ss = 1e-6 * float(pair.sums.l.centered_gram.squares) / pair.n**2
    if zz <= least_zz or ss <= least_ss:
        return None
    scale = math.sqrt(zz) * math.sqrt(ss)
    value = float(pair.sums.unbiased_hsic) / scale
    influence = pair.influence / scale - value / 2 * (influence_z / zz + influence_s / ss)
    return value, _law(pair, value, influence, scale)


def _with_itself(gram: Gram, sums: GramSums, own_sums: OwnSums) -> tuple[float, Tensor]:
    """Return the unbiased HSIC of one variable with itself, and the influence of its rows."""
    twice = PairSums(sums.squares, sums, sums)
    rows = product_rows(gram, gram, twice) if own_sums.square_rows is None else own_sums.square_rows
    return float(twice.unbiased_hsic), 2 * rows / len(rows)


def _require_variation(pair: GramPair) -> None:
    _, variance = pair.permutation_mean_variance()
    if variance <= 0:
        raise ValueError(
            "every permutation of s gives the same HSIC: z or s is constant under its kernel."
        )


def _law(pair: GramPair, value: float, influence: Tensor, scale: float) -> _Law:
    """Return the law of HSIC divided by `scale`, of which `value` is the estimate."""
    n = pair.n
    _, variance = pair.permutation_mean_variance()
    variance = variance / scale**2
    third = pair.permutation_third_cumulant() / scale**3
    of_z, of_s = pair.own_sums
    typical_z = float(of_z.cubes.trace / pair.sums.k.centered_gram.squares) / n
    typical_s = float(of_s.cubes.trace / pair.sums.l.centered_gram.squares) / n
    weak = 4 * typical_z * typical_s / n / scale
    # the variance by influence contains twice the null variance; the slope of weak dependence holds
    # up to 2 deviations
    excess = max(float(influence.var()) / n - 2 * variance, 0.0)
    near = 2 * math.sqrt(variance)
    return _Law(variance, third, max(weak, (weak * near + excess) / (near + max(value, 0.0))))


def _effect(pair: GramPair, value: float, law: _Law, confidence: float, most: float) -> Effect:
    tail = (1 - confidence) / 2
    low = min(law.smallest(value, tail), value)
    high = min(law.largest(value, tail), most)
    return Effect(value, Interval(low, max(high, value), confidence, METHOD), **pair.facts)
