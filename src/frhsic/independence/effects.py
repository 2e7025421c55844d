r"""Intervals for HSIC.

The unbiased HSIC of a sample, :math:`\hat\theta`, estimates the population value :math:`\theta`.
For weak dependence, the distribution of :math:`\hat\theta` is close to that of a weighted sum of
noncentral chi-squares, whose cumulants are linear in :math:`\theta` along one direction:

.. math:: \kappa_1 = \theta, \qquad \kappa_2 = \kappa_2^0 + k\,\theta, \qquad
    \kappa_3 = \kappa_3^0 + \tfrac32 k^2\,\theta.

At :math:`\theta = 0`, the cumulants are exact over permutations. For weak dependence, the slope is
:math:`k = 4 \lambda_Z \lambda_S / n`, where :math:`\lambda_Z` is :math:`\operatorname{tr} \tilde
K^3` divided by :math:`n \operatorname{tr} \tilde K^2`, a typical eigenvalue; for strong dependence,
the slope comes from the influence of each row. A shifted gamma has these cumulants, and an interval
contains each :math:`\theta` for which the observed value is in neither tail. `benchmarks/laws.py
--of hsic` measures the coverage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc, gammaincc

from frhsic.independence.moments import pearson_parameters
from frhsic.independence.pairs import Pair
from frhsic.intervals import Interval

METHOD = "three-moment approximation of HSIC"


@dataclass(frozen=True)
class Effect:
    """Unbiased estimate of a measure of dependence, with its interval.

    Attributes
    ----------
    value
        The estimate; under independence, it is zero on average and often negative.
    interval
        Interval of the population value under these kernels, whose bandwidths are treated as fixed.
    n
        Number of rows.
    kernels
        As in :class:`~frhsic.independence.IndependenceResult`.
    bandwidth_rules
        As in :class:`~frhsic.independence.IndependenceResult`.
    """

    value: float
    interval: Interval
    n: int
    kernels: tuple[str, str]
    bandwidth_rules: tuple[str, str]

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class _Law:
    """Distribution of the estimate for each population value: its variance and third cumulant at
    zero, and the slope of the two.
    """

    variance: float
    third: float
    slope: float

    def parameters(self, at: float) -> tuple[float, float, float]:
        """Return the shape, scale and location of the distribution if the population value is
        `at`.
        """
        deviation = math.sqrt(self.variance + self.slope * at)
        return pearson_parameters(
            at, deviation, (self.third + 1.5 * self.slope**2 * at) / deviation**3
        )

    def below(self, value: float, at: float) -> float:
        """Return the probability of an estimate of at most `value` if the population value is
        `at`.
        """
        shape, scale, start = self.parameters(at)
        return float(gammainc(shape, max(value - start, 0.0) / scale))

    def above(self, value: float, at: float) -> float:
        """Return the probability of an estimate of at least `value` if the population value is
        `at`.
        """
        shape, scale, start = self.parameters(at)
        return float(gammaincc(shape, max(value - start, 0.0) / scale))

    def smallest(self, value: float, level: float) -> float:
        """Return the smallest population value, from 0 to `value`, for which `value` is not in the
        upper tail.
        """
        if value <= 0 or self.above(value, 0.0) >= level:
            return 0.0
        if self.above(value, value) <= level:
            return value
        return float(
            brentq(lambda at: self.above(value, at) - level, 0.0, value, xtol=1e-12 * value)
        )

    def largest(self, value: float, level: float) -> float:
        """Return the largest population value for which `max(value, 0)` is not in the lower
        tail.
        """
        value = max(value, 0.0)
        if self.below(value, 0.0) <= level:
            return 0.0
        high = value + math.sqrt(self.variance)
        while self.below(value, high) > level:
            high *= 2
        return float(brentq(lambda at: self.below(value, at) - level, 0.0, high, xtol=1e-12 * high))


def hsic_effect(pair: Pair, confidence: float) -> Effect:
    """Return the result of :func:`~frhsic.independence.hsic_interval` for Gram matrices that are
    shared with other statistics.
    """
    _require_variation(pair)
    value = pair.unbiased
    law = _law(pair, value, pair.influence, 1.0)
    return _effect(pair, value, law, confidence, math.inf)


def normalized_effect(pair: Pair, confidence: float) -> Effect:
    """Return the result of :func:`~frhsic.independence.normalized_hsic_interval` for Gram matrices
    that are shared with other statistics.
    """
    _require_variation(pair)
    law = _normalized_law(pair)
    if law is None:
        return Effect(0.0, Interval(0.0, 1.0, confidence, METHOD), **pair.facts)
    return _effect(pair, *law, confidence, 1.0)


def _normalized_law(pair: Pair) -> tuple[float, _Law] | None:
    """Return the ratio of unbiased estimates and the distribution of the ratio; None if the
    estimated variance of a variable under its kernel is zero.
    """
    (zz, influence_z), (ss, influence_s) = pair.own
    of_z, of_s = pair.invariants
    # with a single positive decision, the estimate is zero up to rounding
    if zz <= 1e-6 * of_z.squares / pair.n**2 or ss <= 1e-6 * of_s.squares / pair.n**2:
        return None
    scale = math.sqrt(zz) * math.sqrt(ss)
    value = pair.unbiased / scale
    influence = pair.influence / scale - value / 2 * (influence_z / zz + influence_s / ss)
    return value, _law(pair, value, influence, scale)


def _require_variation(pair: Pair) -> None:
    _, variance = pair.permutation_mean_variance()
    if variance <= 0:
        raise ValueError(
            "z or s is constant under its kernel, so every permutation of s gives the same HSIC."
            " Check the columns, or pass another kernel or bandwidth."
        )


def _law(pair: Pair, value: float, influence: np.ndarray, scale: float) -> _Law:
    """Return the distribution of HSIC divided by `scale`, given the estimate `value`."""
    n = pair.n
    _, variance = pair.permutation_mean_variance()
    variance = variance / scale**2
    third = pair.permutation_third_cumulant() / scale**3
    typical_z, typical_s = (
        cubes.trace / sums.squares / n for cubes, sums in zip(pair.cubes, pair.invariants)
    )
    weak = 4 * typical_z * typical_s / n / scale
    # the variance of the influences includes twice the null variance; the slope for weak dependence
    # is valid up to 2 standard deviations
    excess = max(float(influence.var(ddof=1)) / n - 2 * variance, 0.0)
    near = 2 * math.sqrt(variance)
    return _Law(variance, third, max(weak, (weak * near + excess) / (near + max(value, 0.0))))


def _effect(pair: Pair, value: float, law: _Law, confidence: float, most: float) -> Effect:
    tail = (1 - confidence) / 2
    low = min(law.smallest(value, tail), value)
    high = min(law.largest(value, tail), most)
    return Effect(value, Interval(low, max(high, value), confidence, METHOD), **pair.facts)
