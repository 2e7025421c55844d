"""What is made of audits: whether limits are kept, and what has changed since an earlier audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import kolmogorov, ndtr, ndtri

from frhsic.auditing.results import (
    GAPS,
    LIMITABLE,
    Audit,
    Change,
    Law,
    LimitCheck,
    Number,
    Population,
    Subject,
    Within,
)
from frhsic.formatting import figure, format_exact
from frhsic.intervals import Interval
from frhsic.parity.limits import Limit, LimitLike, limits_by_attribute, parse_limits

# Measures of performance and calibration that are compared, where both audits hold them.
WATCHED = ("auc", "root_squared_error", "mean_error")


def largest_value(key: str, subject: Subject) -> float:
    """Return the largest value that a number can have: a mean absolute deviation is at most half of
    the range.
    """
    low, high = subject.span or (-math.inf, math.inf)
    if key == "gdp":
        return 0.5 if subject.chances else (high - low) / 2
    if key == "calibration_gdp":
        return 1.0 if subject.chances else math.inf
    return 0.5 if key in (*GAPS, "rank_gap") else 1.0


def parse_audit_limits(limit: LimitLike) -> tuple[Limit, ...]:
    """Return the limits of an audit that has no earlier one to compare with; raise for an aim."""
    limits = parse_limits(limit, LIMITABLE)
    for parsed in limits:
        if parsed.is_aim:
            raise ValueError(
                f"the limit {parsed} is an aim for a fit. An audit needs an earlier one to compare"
                " with (--against; since in Python), a number such as 0.05, or 'gdp <= 10% of base"
                " rate'."
            )
    return limits


def check_limits(
    audit: Audit,
    limits: Sequence[Limit],
    earlier: Audit | None = None,
    changes: Sequence[Change] = (),
) -> tuple[LimitCheck, ...]:
    """Return whether each attribute keeps each limit; shares are of the numbers of an earlier audit
    if there is one.

    `changes` has what is known of an audit of the same rows; without it the rows are others.
    """
    names = [attribute.name for attribute in audit.attributes]
    limits_by_attribute(limits, names)  # raises if a limit names another attribute
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
        raise ValueError(
            f"the limit of {limit.name} cannot be checked for {attribute}: it was not computed, or"
            " too few rows have the favourable outcome; a limit of within needs control_features."
        )
    most = largest_value(limit.measure, audit.subject)
    if not base and limit.value >= most:
        low, high = audit.subject.span or (0.0, 1.0)
        raise ValueError(
            f"the limit {limit.name}={format_exact(limit.value)} limits nothing: {limit.name} is at"
            f" most {figure(most)} for scores from {figure(low)} to {figure(high)}. As a number,"
            f" {format_exact(limit.value)} % is {format_exact(limit.value / 100)}."
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
    """Return p-values adjusted for their number (Holm, 1979), in the order in which they came.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    adjusted, least = [0.0] * len(pvalues), 0.0
    for rank, i in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        least = adjusted[i] = max(least, min(1.0, (len(pvalues) - rank) * pvalues[i]))
    return adjusted


def drift(audit: Audit, earlier: Audit) -> tuple[Change, ...]:
    r"""Compare two audits of independent rows.

    For each attribute that both hold: its distribution, and the gap. For both together: the
    distribution of the score, the base rate, the performance (AUC, or the squared error) and the
    mean error of the score. The numbers are those that the two audits hold.

    Parameters
    ----------
    audit, earlier
        Audits of different rows; the same rows are refused.

    Returns
    -------
    tuple of Change
        For each comparison its `key` and `attribute`, the number `before` and `after`, the
        `interval` of the difference and its `pvalue`; the p-value `adjusted` for the number of
        comparisons (Holm), and whether by this one the number has `changed` and `improved` at the
        `level`.

    Notes
    -----
    The interval of a difference joins those of the two numbers (Zou and Donner, 2008). Its lower
    end is

    .. math:: b - a - \sqrt{(b - b_-)^2 + (a_+ - a)^2}

    for numbers a and b with ends :math:`a_\pm` and :math:`b_\pm`, and its upper end likewise. A
    sum of squared standard errors would not do for a gap: wrong signs hide more of a small gap than
    of a large one, and more in few rows than in many, which the upper end allows for. The p-value
    is the level at which the interval reaches 0; the part of an end beyond its standard error does
    not grow with the confidence. Distributions are compared by the largest difference of shares
    below a value (Kolmogorov and Smirnov) that is certain from the values that the audits keep, so
    that the test is conservative.

    References
    ----------
    Zou and Donner (2008), *Construction of confidence limits about effect measures: a general
    approach*.

    Examples
    --------
    >>> from frhsic import audit
    >>> random = np.random.default_rng(0)
    >>> s = random.uniform(size=(2, 200))
    >>> old, new = (audit(k * a + random.standard_normal(200), a) for k, a in zip((0, 3), s))
    >>> [change.key for change in drift(new, old) if change.changed]
    ['gdp', 'score']
    """
    shared = [a.name for a in audit.attributes if a.name in {b.name for b in earlier.attributes}]
    if not shared:
        names = ", ".join(a.name for a in earlier.attributes)
        raise ValueError(f"the earlier audit is of {names}, and none of these is audited now.")
    same = audit.subject.law == earlier.subject.law and all(
        audit[name].law == earlier[name].law for name in shared
    )
    files = [document.context.origin.get("data") for document in (audit, earlier)]
    if same or (files[0] is not None and files[0] == files[1]):
        raise ValueError(
            "both audits are of the same rows; an earlier audit is of other rows, such as last"
            " month's."
        )
    changes = list(_changes(audit, earlier, shared))
    adjusted = holm([change.pvalue for change in changes])
    return tuple(replace(change, adjusted=pvalue) for change, pvalue in zip(changes, adjusted))


def since(audit: Audit, earlier: Audit, limit: LimitLike = None) -> Audit:
    """Return an audit with what changed since an earlier one, and with limits that are shares of
    its numbers.

    Examples
    --------
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=(2, 500))
    >>> quick = Settings(fast=True)
    >>> may = audit(0.5 + 0.1 * rng.normal(size=500), age[0], settings=quick)
    >>> june = audit(age[1] / 100 + 0.1 * rng.normal(size=500), age[1], settings=quick)
    >>> [change.key for change in since(june, may).drift if change.changed]
    ['gdp', 'score']
    """
    limits = parse_limits(limit, LIMITABLE)
    return replace(audit, drift=drift(audit, earlier), limits=check_limits(audit, limits, earlier))


def _changes(audit: Audit, earlier: Audit, shared: list[str]) -> Iterator[Change]:
    level = audit.subject.level
    for name in shared:
        before = earlier[name].all_rows.get("gdp")
        after = audit[name].all_rows.get("gdp")
        if before is not None and after is not None:
            yield difference("gdp", name, before, after, level)
        yield _laws("attribute", name, earlier[name].law, audit[name].law, level)
    if earlier.subject.law is not None and audit.subject.law is not None:
        yield _laws("score", "", earlier.subject.law, audit.subject.law, level)
    rates = earlier.subject.base_rate, audit.subject.base_rate
    if rates[0] is not None and rates[1] is not None and audit.subject.target is not None:
        yield difference("base_rate", "", rates[0], rates[1], level)
    known = {quality.key: quality for quality in earlier.quality}
    for now in audit.quality:
        if now.key in WATCHED and now.key in known:
            yield difference(now.key, "", known[now.key].number, now.number, level)


class Reach(NamedTuple):
    """Standard error of a number, and how far the ends of its interval lie beyond what that says,
    by the difference of squares.

    An end that was cut off at 0 counts as far away as the standard error says.
    """

    error: float
    below: float
    above: float

    @classmethod
    def from_number(cls, number: Number) -> Reach:
        """Return the reach of a number."""
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
    r"""Return how a number differs from an earlier one, by the intervals of both.

    The lower end of the difference b − a lies

    .. math:: \sqrt{(b - b_-)^2 + (a_+ - a)^2 - 2 z^2 c}

    below it, where c is the covariance of the two numbers and z the normal quantile; its upper end
    likewise (Zou and Donner, 2008). On the same rows, what is hidden of one gap is hidden of the
    other, too: of the part of :math:`a_+` beyond the standard error, the same part of :math:`b_+`
    times the correlation is subtracted. The p-value is that of the z at which the interval reaches
    0. The interval of the reduction 1 − b / a holds 1 − r where the interval of b − r a holds 0
    (Donner and Zou, 2012).

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
        """Return what the ends of b − share · a have beyond its standard error, squared."""
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
    """Return where a function crosses 0, which is at most 0 at `below` and above it at `above`."""
    for _ in range(60):
        middle = (below + above) / 2
        if function(middle) > 0:
            above = middle
        else:
            below = middle
    return below


def _laws(key: str, attribute: str, old: Law, new: Law, level: float) -> Change:
    at = np.union1d(old.values, new.values)
    (old_low, old_high), (new_low, new_high) = old.bounds(at), new.bounds(at)
    distance = max(float((old_low - new_high).max()), float((new_low - old_high).max()), 0.0)
    pvalue = float(kolmogorov(distance * math.sqrt(old.rows * new.rows / (old.rows + new.rows))))
    return Change(key, attribute, old.mean, new.mean, None, pvalue, level)
