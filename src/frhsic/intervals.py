"""Intervals for statistics, and the value of a statistic when the attribute is shuffled."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

__all__ = ["Interval", "Statistic", "jackknife", "shuffled_mean", "subsample"]

Statistic = Callable[[Tensor, Tensor], float]


@dataclass(frozen=True)
class Interval:
    """Confidence interval of a number: its ends, its confidence, and how it was computed."""

    low: float
    high: float
    confidence: float
    method: str


def subsample(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return the indices of at most `most` of n rows, drawn without replacement, in increasing order.

    Examples
    --------
    >>> subsample(3, 10, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))


def jackknife(
    statistic: Statistic,
    z: Tensor,
    s: Tensor,
    value: float,
    *,
    groups: int,
    confidence: float,
    random: np.random.Generator,
    least: float = -math.inf,
    most: float = math.inf,
) -> Interval:
    r"""Delete-a-group jackknife interval.

    .. math:: \hat\theta \pm t_{G-1} \sqrt{\tfrac{G-1}{G} \sum_g (\hat\theta_{(-g)} - \bar\theta)^2}

    Rows are dealt at random into G groups and each group is left out once. Unlike the bootstrap, the jackknife never
    repeats a row; repeated rows raise every statistic of pairs, such as HSIC. The interval rests on a normal
    approximation, which is poor where the variables are nearly independent: compare with the shuffled value there.

    Parameters
    ----------
    statistic
        Function of the rows of z and s.
    z, s
        Tensors of equal length.
    value
        The statistic of all rows.
    groups
        Number of groups; each holds n / groups rows.
    confidence
        Confidence of the interval.
    random
        Generator that deals the rows into groups.
    least, most
        Range of the statistic; the interval is cut there.

    References
    ----------
    Shao and Tu (1995), *The Jackknife and Bootstrap*, section 5.2.2.

    Examples
    --------
    For a mean and as many groups as rows it is the standard error with Student's quantile: here s/√n = √(10/4/5).

    >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    >>> mean = lambda z, s: float(z.mean())
    >>> interval = jackknife(mean, x, x, 3.0, groups=5, confidence=0.95, random=np.random.default_rng(0))
    >>> round(float((interval.high - 3) / stats.t.ppf(0.975, 4)), 6) == round(math.sqrt(0.5), 6)
    True
    """
    group = torch.from_numpy(random.permutation(z.shape[0]) % groups)
    values = [statistic(z[group != left_out], s[group != left_out]) for left_out in range(groups)]
    error = math.sqrt((groups - 1) / groups * sum((x - sum(values) / groups) ** 2 for x in values))
    reach = float(stats.t.ppf((1 + confidence) / 2, groups - 1)) * error
    method = f"delete-a-group jackknife, {groups} groups"
    return Interval(max(least, value - reach), min(most, value + reach), confidence, method)


def shuffled_mean(statistic: Statistic, z: Tensor, s: Tensor, *, shuffles: int, random: np.random.Generator) -> float:
    """Return the mean of the statistic over random orders of s: its value on independent data with these margins."""
    orders = (torch.from_numpy(random.permutation(s.shape[0])) for _ in range(shuffles))
    return float(np.mean([statistic(z, s[order]) for order in orders]))
