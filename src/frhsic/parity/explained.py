"""The share of the variance of scores that s explains, which also detects oscillations that GDP
averages out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from frhsic import _arrays
from frhsic.parity.rows import (
    Array,
    Integers,
    ScoreRows,
    check_rows,
    levels,
    one_column,
    weighted_mean,
)
from frhsic.parity.sums import TINY

LEAST_RATIO_ROWS = 8
TRUSTED_ROWS = 250
"""With fewer rows, an oscillation of the mean between neighboring rows may go unnoticed."""


@dataclass(frozen=True)
class CorrelationRatio:
    """Share of the variance of the scores that s explains; ``float(result)`` is the value.

    Attributes
    ----------
    value
        The estimate; a negative estimate is set to zero.
    interval
        Confidence interval for the share in the population.
    standard_error
        Standard error of the value.
    trusted
        False if most values of s occur once and there are fewer than 250 rows: the interval would
        miss a mean that oscillates between neighboring rows.
    n
        Number of rows.
    confidence
        Confidence of the interval.
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    trusted: bool
    n: int
    confidence: float

    def __float__(self) -> float:
        return self.value


def correlation_ratio(
    scores: Any, s: Any, *, where: Any = None, sample_weight: Any = None, confidence: float = 0.95
) -> CorrelationRatio:
    r"""Share of the variance of the scores that s explains, :math:`\mathrm{Var}(E[f | S]) /
    \mathrm{Var} f`.

    Zero exactly when the mean score does not depend on s, one when the score is a function of s.
    The share is the square of the largest correlation of the score with any function of s. It needs
    no bandwidth and detects a mean that oscillates with s too fast for the resolution of
    :func:`gdp`. Its standard error is larger, about :math:`1 / \sqrt n`.

    Parameters
    ----------
    scores
        One column.
    s, where, sample_weight, confidence
        As in :func:`gdp`. Increasing maps of s do not change the value.

    Returns
    -------
    CorrelationRatio
        The share as `value` and ``float(...)``, its `standard_error` and `interval`. `trusted` is
        False if most values of s occur once and there are fewer than 250 rows: the interval would
        miss a mean that oscillates between neighboring rows.

    Notes
    -----
    The variance within a value of s is the variance of its rows. For a value with one row, the
    variance is estimated from the differences to the neighboring rows, :math:`(f_{(i)} -
    f_{(i+1)})^2 / 2` (von Neumann). The interval assumes a normal distribution; the standard error
    takes into account that neighboring differences are correlated. A mean that changes between
    neighbors lowers the estimate. To allow for that, the upper end is raised by half the difference
    between the estimates from rows two apart and from neighbors. An oscillation with a period of
    fewer than about ten rows is not covered. If most values of s are repeated, the variance of the
    estimate falls with the share, which the interval takes into account.

    References
    ----------
    von Neumann (1941), *Distribution of the ratio of the mean square successive difference to the
    variance*. Rice (1984), *Bandwidth choice for nonparametric regression*.

    Examples
    --------
    A score that oscillates forty times over the range of s is a function of s.

    >>> s = np.linspace(0, 1, 2000)
    >>> round(float(correlation_ratio(np.cos(80 * np.pi * s), s)), 2)
    0.99
    """
    _arrays.require_fraction(confidence, "confidence")
    return ratio_from_rows(one_column(check_rows(scores, s, where, sample_weight)), confidence)


def ratio_from_rows(rows: ScoreRows, confidence: float) -> CorrelationRatio:
    """Return the result of :func:`correlation_ratio` for validated rows."""
    _arrays.require_rows(len(rows.s), LEAST_RATIO_ROWS, "the share of variance that s explains")
    weights = rows.weights
    f = rows.scores[:, 0] - weighted_mean(weights, rows.scores[:, 0])
    n = len(f)
    if not (f != f[0]).any():
        raise ValueError(
            "scores are constant, so they have no variance that s could explain."
            " Pass scores that differ."
        )
    within, starts = _conditional_variance(rows, f)
    factor = rows.effective / (rows.effective - 1)
    square = factor * f**2
    rest = float(weighted_mean(weights, within))
    variance = float(weighted_mean(weights, square))
    value = max(1 - rest / variance, 0.0)  # a negative estimate is set to zero
    terms = weights * (within - (rest / variance) * square) / variance
    squared = terms**2
    # the degrees of freedom of the variance of these terms (Satterthwaite), small if a few rows
    # dominate it
    carried = float(squared @ squared) / max(float(squared.sum()) ** 2, TINY) - 1 / n
    freedom = min(rows.effective / 4, 2 / max(carried, TINY))
    z = float(stdtrit(max(freedom, 1), (1 + confidence) / 2))
    alone = len(starts) > n / 2
    if alone:
        # terms share rows with their neighbors (lags 1, 2); what remains at lag 3 is a change in
        # their mean with s, not shared noise
        lags = [float(terms[lag:] @ terms[: n - lag]) for lag in range(4)]
        shared = lags[0] + 2 * (lags[1] + lags[2] - 2 * lags[3])
        error = math.sqrt(max(shared, 0.1 * lags[0])) / n
        squares = np.diff(f) ** 2 / 2
        noise = float(squares[2:] @ squares[:-2]) / (n * variance**2)  # between neighbors
        error = max(error, math.sqrt(noise / rows.effective))
        # a mean that changes between neighbors changes three times as much, squared, between rows
        # two apart
        moved = float(np.mean((f[2:] - f[:-2]) ** 2) / 2 - squares.mean()) / 2
        low = value - z * error
        high = value + z * error + max(moved, 0.0) / variance
    else:
        # the variance is about a·share + b, with a = 4/n, and b the variance when s has no effect
        b = _variance_without_effect(weights, within, starts) / variance**2
        a = (float(terms @ terms) / n**2 + (4 / n) ** 2) / (value + 4 / n)
        error = math.sqrt(a * value + b)
        middle = value + z**2 * a / 2
        root = z * math.sqrt(error**2 + z**2 * a**2 / 4)
        low = middle - root
        high = middle + root
    return CorrelationRatio(
        value=value,
        interval=(max(low, 0.0), min(high, 1.0)),
        standard_error=error,
        trusted=not alone or rows.effective >= TRUSTED_ROWS,
        n=n,
        confidence=confidence,
    )


def _variance_without_effect(weights: Array, within: Array, starts: Integers) -> float:
    r"""Return the variance of the estimated variance of the means if all means are equal and scores
    are normal.

    The variance is :math:`\frac{2}{n^2} \sum_l \frac{w_l^2}{n_l (n_l - 1)} \sigma_l^4` over values
    of s of weight :math:`w_l` with :math:`n_l \ge 2` (effective) rows. A value with one row adds at
    most :math:`w_l^2 \sigma^4 / n^2`, the contribution of a difference between neighbors.
    """
    total = np.add.reduceat(weights, starts)
    sizes = total**2 / np.add.reduceat(weights**2, starts)
    spread = np.add.reduceat(weights * within, starts) / total
    several = sizes > 1 + 1e-9
    freedom = np.where(several, sizes - 1, 1)
    fourth = spread**2 * freedom / (freedom + 2)  # unbiased for normal scores
    mean = float(weights @ within / weights.sum())
    excess = 2 * float((fourth * total**2 / (sizes * freedom))[several].sum())
    excess += mean**2 * float((total[~several] ** 2).sum())
    return excess / len(weights) ** 2


def _conditional_variance(rows: ScoreRows, f: Array) -> tuple[Array, Integers]:
    """Return an unbiased estimate of the variance of f given s for each row, and the first row of
    each value of s.
    """
    weights = rows.weights
    starts = levels(rows.s)
    sizes = np.diff(np.append(starts, len(f)))
    total = np.add.reduceat(weights, starts)
    effective = total**2 / np.add.reduceat(weights**2, starts)
    mean = np.add.reduceat(weights * f, starts) / total
    several = effective > 1 + 1e-9
    factor = np.where(several, effective / np.where(several, effective - 1, 1), 0)
    within = (f - np.repeat(mean, sizes)) ** 2 * np.repeat(factor, sizes)
    step = np.diff(mean) ** 2
    to_next = np.append(step / (1 + 1 / effective[1:]), np.nan)
    to_last = np.insert(step / (1 + 1 / effective[:-1]), 0, np.nan)
    single = ~np.repeat(several, sizes)
    within[single] = np.nanmean([to_next, to_last], axis=0)[~several]
    return within, starts
