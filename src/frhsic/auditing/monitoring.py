"""What has changed since an earlier audit: gap, attribute, score, base rate, performance and calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.stats import kstwobign, norm

from frhsic.auditing.limits import Limits, checked, limits_of
from frhsic.auditing.results import Audit, Drift, Law, Number
from frhsic.intervals import Interval, holm

WATCHED = ("auc", "squared_error", "mean_error")
"""Measures of performance and calibration that are compared, where both audits hold them."""


def drift(audit: Audit, earlier: Audit) -> tuple[Drift, ...]:
    r"""Compare two audits of independent rows, at one family-wise level.

    For each attribute that both hold: its distribution, and the gap at one resolution for both. For both together: the
    distribution of the score, the base rate, the performance (AUC, or the squared error) and the mean error of the
    score. p-values are adjusted for their number (Holm).

    Parameters
    ----------
    audit, earlier
        Audits of different rows; the same rows are refused.

    Notes
    -----
    The interval of a difference joins those of the two numbers. Its lower end is

    .. math:: b - a - \sqrt{(b - b_-)^2 + (a_+ - a)^2}

    for numbers a and b with ends :math:`a_\pm` and :math:`b_\pm`, and its upper end likewise. A sum of squared
    standard errors would not do for a gap: a small gap has a small one, and of two equal gaps the test would find too
    many different. Distributions are compared by the largest difference of shares below a value (Kolmogorov and
    Smirnov) that is certain from the values that the audits keep, so that the test is conservative.

    References
    ----------
    Zou and Donner (2008), *Construction of confidence limits about effect measures: a general approach*.

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
    same = audit.subject.law == earlier.subject.law and all(audit[name].law == earlier[name].law for name in shared)
    files = [one.context.origin.get("data") for one in (audit, earlier)]
    if same or (files[0] is not None and files[0] == files[1]):
        raise ValueError("both audits are of the same rows; an earlier audit is of other rows, such as last month's.")
    changes = list(_changes(audit, earlier, shared))
    adjusted = holm([change.pvalue for change in changes])
    return tuple(replace(change, pvalue=pvalue) for change, pvalue in zip(changes, adjusted))


def since(audit: Audit, earlier: Audit, limit: Limits = ()) -> Audit:
    """Return an audit with what changed since an earlier one, and with limits that are shares of its numbers."""
    return replace(audit, drift=drift(audit, earlier), limits=checked(audit, limits_of(limit), earlier))


def _changes(audit: Audit, earlier: Audit, shared: list[str]) -> Iterator[Drift]:
    level = audit.subject.level
    for name in shared:
        gaps = [one[name].all_rows.get("gdp_common") for one in (earlier, audit)]
        if gaps[0] is not None and gaps[1] is not None:
            yield _difference("gdp", name, gaps[0], gaps[1], level)
        yield _laws("attribute", name, earlier[name].law, audit[name].law, level)
    if earlier.subject.law is not None and audit.subject.law is not None:
        yield _laws("score", "", earlier.subject.law, audit.subject.law, level)
    rates = earlier.subject.base_rate, audit.subject.base_rate
    if rates[0] is not None and rates[1] is not None and audit.subject.target is not None:
        yield _difference("base_rate", "", rates[0], rates[1], level)
    before = {one.key: one for one in earlier.quality}
    for now in audit.quality:
        if now.key in WATCHED and now.key in before:
            pair = [Number(x.key, x.value, 0, standard_error=x.standard_error) for x in (before[now.key], now)]
            yield _difference(now.key, "", pair[0], pair[1], level)


def _difference(key: str, attribute: str, old: Number, new: Number, level: float) -> Drift:
    z, difference = float(norm.ppf(1 - level / 2)), new.value - old.value
    (new_down, new_up), (old_down, old_up) = _reaches(new), _reaches(old)
    down, up = math.hypot(new_down, old_up), math.hypot(new_up, old_down)
    reach = down if difference > 0 else up
    pvalue = 2 * float(norm.sf(abs(difference) / reach)) if reach > 0 else float(difference == 0)
    interval = Interval(difference - z * down, difference + z * up, 1 - level, "joined intervals")
    return Drift(key, attribute, old.value, new.value, interval, pvalue, level)


def _reaches(number: Number) -> tuple[float, float]:
    """Return how far the ends of an interval are from its number, as standard errors of a normal law.

    An end that was cut off at 0 counts as far away as the standard error says.
    """
    error = number.standard_error or 0.0
    if number.interval is None:
        return error, error
    z = float(norm.ppf((1 + number.interval.confidence) / 2))
    below, above = (number.value - number.interval.low) / z, (number.interval.high - number.value) / z
    return max(error, below), max(error, above)


def _laws(key: str, attribute: str, old: Law, new: Law, level: float) -> Drift:
    at = np.union1d(old.values, new.values)
    (old_low, old_high), (new_low, new_high) = old.bounds(at), new.bounds(at)
    distance = max(float((old_low - new_high).max()), float((new_low - old_high).max()), 0.0)
    pvalue = float(kstwobign.sf(distance * math.sqrt(old.rows * new.rows / (old.rows + new.rows))))
    return Drift(key, attribute, old.mean, new.mean, None, pvalue, level)
