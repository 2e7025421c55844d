"""Limits on the numbers of an audit, and what has changed since an earlier one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import kstwobign, norm

from frhsic.auditing.results import RATIOS, Audit, Drift, Law, LimitCheck, Number, Population, Subject
from frhsic.formatting import did_you_mean, figure, stated
from frhsic.independence.effects import Interval

GAPS = ("gdp", "decision_gdp", "error_gdp", "calibration_gdp")
"""Gaps of means along an attribute: of the score, of decisions, of errors, and of the target less the score."""
LIMITED = (
    *GAPS,
    *RATIOS,
    "rank_gap",
    "standardized_gdp",
    "correlation_ratio",
    "hsic",
    "hsic_effect",
    "distance_correlation",
)
"""Numbers with an interval, which decides whether a limit is kept."""
FAVOURABLE = "eo"
"""Names a number among the rows with the favourable outcome (Equal Opportunity): ``eo`` is GDP, ``eo.hsic`` HSIC."""
BASES = ("base rate", "gap")
WATCHED = ("auc", "squared_error", "mean_error")
"""Measures of performance and calibration that are compared, where both audits hold them."""

Limits = str | Sequence[str] | Mapping[str, float | str]
"""Limits as people write them: ``"gdp=0.05"``, ``["gdp=10% of base rate", "eo=0.05"]`` or ``{"gdp": 0.05}``."""


@dataclass(frozen=True)
class Limit:
    """A limit on one number of an audit: in its own unit, or a share of the base rate or of an earlier gap.

    Examples
    --------
    >>> Limit.parse("gdp=0.05")
    Limit(key='gdp', value=0.05, among='all', base='')
    >>> Limit.parse("eo <= 10% of base rate")
    Limit(key='gdp', value=0.1, among='favourable', base='base rate')
    """

    key: str
    value: float
    among: Literal["all", "favourable"] = "all"
    base: str = ""

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Return the limit that a text states; raise if no audit could check it."""
        parts = re.fullmatch(r"\s*([\w.]+)\s*(?:<=|>=|=)\s*([-+.\deE]+)\s*(%?)\s*(?:of (.+?))?\s*", text)
        try:
            name, number, percent, base = parts.groups() if parts else ("", "", "", "")
            value = float(number)
        except ValueError:
            raise ValueError(
                f"the limit is {text!r}; pass NAME=NUMBER or a share, such as gdp=0.05 or gdp=10% of base rate."
            ) from None
        first, _, rest = name.partition(".")
        favoured = first == FAVOURABLE
        key = (rest or "gdp") if favoured else name
        if key not in LIMITED:
            names = [*LIMITED, FAVOURABLE, *(limit_name(each, "favourable") for each in LIMITED[1:])]
            raise ValueError(f"a limit names {name!r}, which has no interval to decide.{did_you_mean(name, names)}")
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"the limit of {name} is {stated(value)}; pass a number above 0, such as 0.05.")
        if percent and (base not in BASES or key != "gdp"):
            raise ValueError(
                f"the limit is {text!r}. Only gdp and eo can be a percentage, and it has to say of what: "
                f"{stated(value)}% of base rate, or {stated(value)}% of gap (of an earlier audit). As a number, "
                f"{stated(value)} % is {stated(value / 100)}."
            )
        if base and not percent:
            raise ValueError(f"the limit is {text!r}; only a percentage, such as 10%, is a share of something.")
        return cls(key, round(value / 100, 15) if percent else value, "favourable" if favoured else "all", base or "")


def limit_name(key: str, among: str) -> str:
    """Return the name of a limit as people write it, such as ``gdp``, ``eo`` or ``eo.hsic``."""
    if among == "all":
        return key
    return FAVOURABLE if key == "gdp" else f"{FAVOURABLE}.{key}"


def limits_of(limits: Limits) -> tuple[Limit, ...]:
    """Return limits from what people write.

    Examples
    --------
    >>> limits_of({"gdp": 0.1}) == limits_of("gdp=0.1") == limits_of(["gdp = 0.1"])
    True
    """
    if isinstance(limits, str):
        limits = [limits]
    if isinstance(limits, Mapping):
        limits = [f"{key}={value}" for key, value in limits.items()]
    return tuple(Limit.parse(text) for text in limits)


def largest_value(key: str, subject: Subject) -> float:
    """Return the largest value that a number can have: a mean absolute deviation is at most half of the range."""
    low, high = subject.span or (-math.inf, math.inf)
    if key == "gdp":
        return 0.5 if subject.chances else (high - low) / 2
    if key == "calibration_gdp":
        return 1.0 if subject.chances else math.inf
    return 0.5 if key in (*GAPS, "rank_gap") else 1.0


def checked(audit: Audit, limits: Sequence[Limit], earlier: Audit | None = None) -> tuple[LimitCheck, ...]:
    """Return whether each attribute keeps each limit; shares are of the numbers of an earlier audit if there is one."""
    return tuple(_checked(audit, limit, name.name, earlier) for limit in limits for name in audit.attributes)


def _checked(audit: Audit, limit: Limit, attribute: str, earlier: Audit | None) -> LimitCheck:
    name = limit_name(limit.key, limit.among)
    unchecked = f"the limit of {name} cannot be checked for {attribute}"

    def numbers(one: Audit) -> Population | None:
        return one[attribute].all_rows if limit.among == "all" else one[attribute].positives

    population = numbers(audit)
    number = None if population is None else population.get(limit.key)
    if number is None or number.interval is None:
        reason = "no rows with the favourable outcome" if population is None else "it was not computed"
        raise ValueError(f"{unchecked}: {reason}.")
    most = largest_value(limit.key, audit.subject)
    if not limit.base and limit.value >= most:
        low, high = audit.subject.span or (0.0, 1.0)
        raise ValueError(
            f"the limit {name}={stated(limit.value)} limits nothing: {name} is at most {figure(most)} for scores from "
            f"{figure(low)} to {figure(high)}. As a number, {stated(limit.value)} % is {stated(limit.value / 100)}."
        )
    reference = None
    if limit.base == "base rate":
        reference = (earlier or audit).subject.base_rate
        if reference is None or reference.value <= 0:
            raise ValueError(f"{unchecked}: it is a share of the base rate, which is not above 0 here; pass a number.")
    elif limit.base == "gap":
        known = None if earlier is None else numbers(earlier)
        reference = None if known is None else known.get(limit.key)
        if reference is None:
            raise ValueError(f"{unchecked}: it is a share of the gap of an earlier audit, and there is none.")
    value = limit.value if reference is None else limit.value * reference.value
    share = limit.value if limit.base else None
    interval = number.interval
    return LimitCheck(attribute, limit.key, limit.among, value, number.value, interval, share, limit.base, reference)


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
