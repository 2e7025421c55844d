"""Limits on the numbers of an audit: how people write them, and whether they are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from frhsic.auditing.results import RATIOS, Audit, LimitCheck, Population, Subject
from frhsic.formatting import did_you_mean, figure, stated

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
                f"the limit is {text!r}. A share of gdp or eo names its base: {stated(value)}% of base rate, or "
                f"{stated(value)}% of gap (of an earlier audit). As a number, {stated(value)} % is "
                f"{stated(value / 100)}."
            )
        if base and not percent:
            raise ValueError(f"the limit is {text!r}; only a share such as 10% is of something.")
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
