"""Intervals for statistics that have none of their own, and what they give when the attribute is shuffled."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from frhsic.auditing.results import Interval

__all__ = ["Statistic", "jackknife", "shuffled_mean", "subsample"]

Statistic = Callable[[Tensor, Tensor], float]


def subsample(n: int, most: int, random: np.random.Generator) -> np.ndarray:
    """Return the numbers of at most `most` rows, drawn without replacement, in their order.

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
    level: float,
    random: np.random.Generator,
    least: float = -math.inf,
    most: float = math.inf,
) -> Interval:
    r"""Delete-a-group jackknife interval.

    .. math:: \hat\theta \pm t_{G-1} \sqrt{\tfrac{G-1}{G} \sum_g (\hat\theta_{(-g)} - \bar\theta)^2}

    Rows are dealt at random into G groups and each is left out once. Unlike the bootstrap it never repeats a row;
    repeated rows raise every statistic of pairs, such as HSIC. The interval rests on a normal approximation, which
    is poor where the variables are nearly independent: there, compare with the shuffled value instead.

    Parameters
    ----------
    statistic
        Function of the rows of z and s.
    z, s
        Tensors of equal length.
    value
        The statistic of all rows.
    groups
        How many groups; each holds n / groups rows.
    level
        Of the interval.
    random
        Deals the rows.
    least, most
        Range that the statistic cannot leave; the interval is cut there.

    References
    ----------
    Shao and Tu (1995), *The Jackknife and Bootstrap*, section 5.2.2.

    Examples
    --------
    For a mean and as many groups as rows it is the standard error with Student's quantile: here s/√n = √(10/4/5).

    >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    >>> mean = lambda z, s: float(z.mean())
    >>> found = jackknife(mean, x, x, 3.0, groups=5, level=0.95, random=np.random.default_rng(0))
    >>> round(float((found.high - 3) / stats.t.ppf(0.975, 4)), 6) == round(math.sqrt(0.5), 6)
    True
    """
    n = z.shape[0]
    label = torch.from_numpy(random.permutation(n) % groups)
    left = []
    for group in range(groups):
        kept = label != group
        left.append(statistic(z[kept], s[kept]))
    error = math.sqrt((groups - 1) / groups * sum((x - sum(left) / groups) ** 2 for x in left))
    reach = float(stats.t.ppf((1 + level) / 2, groups - 1)) * error
    return Interval(
        max(least, value - reach), min(most, value + reach), level, f"delete-a-group jackknife, {groups} groups"
    )


def shuffled_mean(statistic: Statistic, z: Tensor, s: Tensor, *, shuffles: int, random: np.random.Generator) -> float:
    """Return the mean of the statistic over random orders of s: what independent data with these margins give."""
    orders = (torch.from_numpy(random.permutation(s.shape[0])) for _ in range(shuffles))
    return float(np.mean([statistic(z, s[order]) for order in orders]))
