"""Check whether the numbers in an audit meet limits, and compare them with those in another
audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scipy.special import ndtr, ndtri

from frhsic.auditing.results import (
    GAPS,
    LIMITABLE,
    Audit,
    Change,
    LimitCheck,
    Number,
    Population,
    Subject,
    Within,
)
from frhsic.formatting import amount, format_exact
from frhsic.intervals import Interval
from frhsic.parity.limits import Limit, LimitLike, limits_by_attribute, parse_limits


def largest_value(key: str, subject: Subject) -> float:
    """Return the largest possible value of a number. For a mean absolute deviation, this is half
    the range.
    """
    low, high = subject.span or (-math.inf, math.inf)
    if key == "gdp":
        return 0.5 if subject.chances else (high - low) / 2
    if key == "calibration_gdp":
        return 1.0 if subject.chances else math.inf
    return 0.5 if key in (*GAPS, "rank_gap") else 1.0


def parse_audit_limits(limit: LimitLike) -> tuple[Limit, ...]:
    """Parse the limits for an audit that is not compared with an earlier one; raise an error if a
    limit is a target for a fit, such as "50%".
    """
    limits = parse_limits(limit, LIMITABLE)
    for parsed in limits:
        if parsed.is_aim:
            raise ValueError(
                f"the limit {parsed} is a target for a fit, which an audit alone cannot check."
                " Pass a number such as 0.05 or 'gdp <= 10% of base rate', or compare with an"
                " earlier audit (--against, or auditing.since() in Python)."
            )
    return limits


def check_limits(
    audit: Audit,
    limits: Sequence[Limit],
    earlier: Audit | None = None,
    changes: Sequence[Change] = (),
) -> tuple[LimitCheck, ...]:
    """Return whether each attribute meets each limit; shares refer to the numbers in the earlier
    audit, if there is one. If both audits cover the same rows, `changes` contains the differences;
    otherwise, the rows are assumed to be independent.
    """
    names = [attribute.name for attribute in audit.attributes]
    limits_by_attribute(limits, names)  # raises an error if a limit names an unknown attribute
    return tuple(
        _check_limit(audit, limit, name, earlier, changes)
        for limit in limits
        for name in names
        if limit.attribute in (None, name)
    )


def _check_limit(
    audit: Audit,
    limit: Limit,
    attribute: str,
    earlier: Audit | None,
    changes: Sequence[Change],
) -> LimitCheck:
    base = "gap" if limit.is_aim else limit.base
    number = _limited_number(audit, limit, attribute)
    if number is None or number.interval is None:
        needs = {
            "favourable": " Pass more rows with the favorable outcome.",
            "equal": " Pass control_features.",
        }
        raise ValueError(
            f"the limit on {limit.name} cannot be checked, because the audit has no interval"
            f" for {limit.name} by {attribute}.{needs.get(limit.among, '')}"
        )
    most = largest_value(limit.measure, audit.subject)
    if not base and limit.value >= most:
        low, high = audit.subject.span or (0.0, 1.0)
        raise ValueError(
            f"the limit {limit.name}={format_exact(limit.value)} has no effect: {limit.name} is at"
            f" most {amount(most)} for scores from {amount(low)} to {amount(high)}. If it is"
            f" a percentage, write {format_exact(limit.value / 100)}."
        )
    reference = None
    reduction = None
    if base == "base rate":
        reference = (earlier or audit).subject.base_rate
    elif base == "gap":
        assert earlier is not None
        reference = _limited_number(earlier, limit, attribute)
        if reference is None:
            raise ValueError(
                f"the limit {limit} is a share of {limit.name}, which the earlier audit lacks for"
                f" {attribute}; pass a number."
            )
        change = difference(limit.name, attribute, reference, number, audit.subject.level)
        for paired_change in changes:
            if (paired_change.key, paired_change.attribute) == (limit.name, attribute):
                change = paired_change
        reduction = change.reduction
    whole = 0.0 if reference is None else reference.value
    return LimitCheck(
        attribute,
        limit.measure,
        limit.among,
        limit.bound(gap=whole, base_rate=whole),
        number.value,
        number.interval,
        limit.value if base else None,
        base,
        reference,
        reduction,
        number.rows,
        number.resolution,
    )


def _limited_number(audit: Audit, limit: Limit, attribute: str) -> Number | None:
    along = audit[attribute]
    population: Population | Within | None = along.all_rows
    if limit.among == "favourable":
        population = along.positives
    if limit.among == "equal":
        population = along.all_rows.within
    return None if population is None else population.get(limit.measure)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return p-values, in the original order, adjusted for the number of tests (Holm, 1979).

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    adjusted, least = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        least = adjusted[i] = max(least, min(1.0, (len(pvalues) - rank) * pvalues[i]))
    return adjusted


class Reach(NamedTuple):
    """Standard error of a number, and how far the number's interval extends beyond the ends that
    the standard error implies (as a difference of squares). An end that is truncated at 0 is
    replaced with the end that the standard error implies.
    """

    error: float
    below: float
    above: float

    @classmethod
    def from_number(cls, number: Number) -> Reach:
        if number.interval is None:
            return cls(number.standard_error or 0.0, 0.0, 0.0)
        z = float(ndtri((1 + number.interval.confidence) / 2))
        below = number.value - number.interval.low
        above = number.interval.high - number.value
        error = number.standard_error
        if error is None:
            error = min(below, above) / z
        variance = (z * error) ** 2
        beyond = (math.sqrt(max(end**2 - variance, 0.0)) for end in (below, above))
        return cls(error, *beyond)


def difference(
    key: str, attribute: str, old: Number, new: Number, level: float, covariance: float = 0.0
) -> Change:
    r"""Return the difference between a number and an earlier one, given the intervals of both.

    The lower end of the difference b − a is

    .. math:: \sqrt{(b - b_-)^2 + (a_+ - a)^2 - 2 z^2 c}

    below the difference, where c is the covariance of the two numbers and z the normal quantile;
    the upper end is analogous (Zou and Donner, 2008). On the same rows, noise hides the same part
    of both gaps, so the part of :math:`a_+ - a` beyond the standard error (see :class:`Reach`) is
    reduced by the correlation times this part of :math:`b_+ - b`. The p-value is the level at which
    the interval just reaches 0. The interval of the reduction 1 − b / a contains 1 − r if the
    interval of b − r a contains 0 (Donner and Zou, 2012).

    Parameters
    ----------
    covariance
        Covariance of the two numbers; 0 if their rows are independent.
    """
    z = float(ndtri(1 - level / 2))
    a = Reach.from_number(old)
    b = Reach.from_number(new)
    correlation = min(max(covariance, 0.0) / max(a.error * b.error, 1e-300), 1.0)

    def variance(share: float) -> float:
        return max(b.error**2 + (share * a.error) ** 2 - 2 * share * covariance, 0.0)

    def squared_excess(share: float) -> tuple[float, float]:
        """Return the squared amount by which the ends of the interval for b − share · a lie beyond
        its standard error.
        """
        low = max(share * a.above - correlation * b.above, 0.0)
        high = max(b.above - correlation * share * a.above, 0.0)
        return low**2 + b.below**2, high**2 + (share * a.below) ** 2

    def low(share: float) -> float:
        reach = math.sqrt(z**2 * variance(share) + squared_excess(share)[0])
        return new.value - share * old.value - reach

    def high(share: float) -> float:
        reach = math.sqrt(z**2 * variance(share) + squared_excess(share)[1])
        return new.value - share * old.value + reach

    size = new.value - old.value
    square = size**2 - squared_excess(1.0)[0 if size > 0 else 1]
    pvalue = 1.0
    if square > 0:
        pvalue = 2 * float(ndtr(-math.sqrt(square / max(variance(1.0), 1e-300))))
    reduction = None
    if old.value > math.hypot(z * a.error, a.below):
        ratio = max(new.value, 0.0) / old.value
        most = 2 * ratio + 1
        while high(most) > 0:
            most *= 2
        largest = _root(high, most, ratio)
        smallest = _root(low, ratio, 0.0) if low(0.0) > 0 else 0.0
        reduction = Interval(1 - largest, 1 - smallest, 1 - level, "joined ends")
    interval = Interval(low(1.0), high(1.0), 1 - level, "joined ends")
    return Change(
        key, attribute, old.value, new.value, interval, pvalue, level, reduction=reduction
    )


def _root(function: Callable[[float], float], below: float, above: float) -> float:
    """Return the zero of a function that is at most 0 at `below` and positive at `above`."""
    for _ in range(60):
        middle = (below + above) / 2
        if function(middle) > 0:
            above = middle
        else:
            below = middle
    return below
