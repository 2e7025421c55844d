"""The limits accepted by estimators, audits, the selection of weights and the command line.

================================  =============================================================
``0.05``                          a bound: the upper end of the gap's interval is at most 0.05
``"50%"``                         a target: at most half the unconstrained gap
``0``                             a target: the smallest gap
``None``                          no limit
``{"age": 0.05, "hours": None}``  limits keyed by attribute
``"rank_gap <= 0.05"``            a measure by name, if there are several
``"within <= 0.05"``              the gap among people with the same controls
``"gdp <= 10% of base rate"``     a share of the base rate in place of the gap
``"decision_ratio >= 0.8"``       a lower bound
``["50%", "eo <= 0.05"]``         several, all of which must be met
================================  =============================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal

from frhsic.formatting import did_you_mean, format_exact

# Types that users can pass.
LimitLike = float | str | Mapping[str, Any] | Sequence[Any] | None

# Measures with a lower bound instead of an upper one.
AT_LEAST = ("decision_ratio", "gain", "p")

# Gaps that can be limited to a share of the unconstrained gap or of an earlier audit's gap.
SHARED = ("gdp", "rank_gap", "decision_gdp", "equalized_odds")

# Prefixes of measures among rows with the favourable outcome (equal opportunity), or among people
# with the same controls: ``eo`` is GDP, ``eo.hsic`` HSIC.
PREFIXES = {"favourable": "eo", "equal": "within"}

_TEXT = re.compile(
    r"(?:(?P<measure>[A-Za-z_][\w.]*)\s*(?P<sign><=|>=)\s*)?"
    r"(?P<number>\d+\.?\d*(?:e-?\d+)?|\.\d+)\s*(?P<percent>%?)"
    r"(?P<base>\s+of\s+base\s+rate)?"
)


@dataclass(frozen=True)
class Limit:
    """A limit on one measure.

    Attributes
    ----------
    value
        The bound in the unit of the measure, or a share of `base`.
    measure
        Key of the number, such as ``"gdp"``.
    among
        Rows or people that the limit applies to: ``"all"`` rows, rows with the ``"favourable"``
        outcome, or people with ``"equal"`` controls.
    attribute
        The attribute that the limit applies to; None for all attributes.
    base
        What `value` is a share of: the unconstrained ``"gap"`` (in an audit, the gap of an earlier
        audit) or the ``"base rate"``; empty if the limit is a plain number.
    """

    value: float
    measure: str = "gdp"
    among: Literal["all", "favourable", "equal"] = "all"
    attribute: str | None = None
    base: Literal["", "gap", "base rate"] = ""

    @property
    def is_lower_bound(self) -> bool:
        """Whether the measure must be at least the value instead of at most."""
        return self.measure in AT_LEAST

    @property
    def is_aim(self) -> bool:
        """Whether the limit is a target for the estimate: a share of the gap, or 0 for the smallest
        gap.
        """
        return self.base == "gap" or self.value == 0

    @property
    def name(self) -> str:
        """The name of the measure in limits, such as ``gdp``, ``eo`` or ``eo.hsic``."""
        return measure_name(self.measure, self.among)

    def __str__(self) -> str:
        if not self.base:
            return f"{self.value:.10g}"
        return f"{100 * self.value:.10g}%{' of base rate' if self.base == 'base rate' else ''}"

    def bound(self, gap: float, base_rate: float | None = None) -> float:
        """Return the limit as a number, given the gap and the base rate that a share may refer
        to.
        """
        if self.base == "gap":
            return self.value * gap
        if self.base == "base rate":
            if base_rate is None or base_rate <= 0:
                raise ValueError(
                    "the limit is a share of the base rate, but the base rate is not positive;"
                    " pass a number."
                )
            return self.value * base_rate
        return self.value


def rows_to_settle(rows: int, value: float, end: float, limit: float) -> int | None:
    r"""Return the approximate number of rows that would show that an estimate meets its limit,
    :math:`n \, ((e - v) / (l - v))^2`; None if the estimate does not meet the limit.

    The distance from the estimate v to the end e of its interval shrinks as :math:`1 / \sqrt n`, so
    with that many rows the interval ends at the limit l, if the estimate stays the same.

    Examples
    --------
    >>> rows_to_settle(1000, value=0.02, end=0.04, limit=0.03)
    4000
    >>> rows_to_settle(1000, value=0.04, end=0.06, limit=0.03) is None
    True
    """
    reach = end - value
    room = limit - value
    if reach * room <= 0 or not math.isfinite(reach / room):
        return None
    return math.ceil(rows * (reach / room) ** 2 - 1e-6)


def measure_name(measure: str, among: str) -> str:
    """Return the name by which limits refer to a measure.

    Examples
    --------
    >>> measure_name("hsic", "all"), measure_name("gdp", "favourable")
    ('hsic', 'eo')
    >>> measure_name("hsic", "favourable")
    'eo.hsic'
    """
    if among == "all":
        return measure
    return PREFIXES[among] if measure == "gdp" else f"{PREFIXES[among]}.{measure}"


def parse_limits(limit: LimitLike, measures: Sequence[str]) -> tuple[Limit, ...]:
    """Parse the limits that a user passed; an empty tuple for None.

    Parameters
    ----------
    limit
        A number, a share, a string, a dictionary keyed by attribute, a list of these, or None.
    measures
        Names of the measures that can be limited. Plain numbers and shares limit the first measure.

    Examples
    --------
    >>> parse_limits(0.05, ["gdp"])
    (Limit(value=0.05, measure='gdp', among='all', attribute=None, base=''),)
    >>> parse_limits("eo <= 10% of base rate", ["gdp", "eo"])
    (Limit(value=0.1, measure='gdp', among='favourable', attribute=None, base='base rate'),)
    >>> parse_limits({"age": "50%", "hours": None}, ["rank_gap"])
    (Limit(value=0.5, measure='rank_gap', among='all', attribute='age', base='gap'),)
    """
    if limit is None:
        return ()
    if isinstance(limit, str):
        return (_parse_text(limit, measures),)
    if isinstance(limit, Mapping):
        return tuple(
            _set_attribute(parsed, name)
            for name, part in limit.items()
            for parsed in parse_limits(part, measures)
        )
    if isinstance(limit, (list, tuple)):
        return tuple(parsed for part in limit for parsed in parse_limits(part, measures))
    if isinstance(limit, bool) or not isinstance(limit, Real):
        raise TypeError(
            f"limit is {limit!r}; pass a number, a share such as '50%', a string such as"
            f" '{_example(measures[0])}', a dictionary of these keyed by attribute, or None."
        )
    return (_make_limit(measures[0], float(limit), ""),)


def _set_attribute(limit: Limit, name: str) -> Limit:
    if limit.attribute is not None:
        raise TypeError(
            f"limit contains a nested dictionary for {name!r}; pass one dictionary keyed by"
            " attribute."
        )
    return replace(limit, attribute=name)


def _parse_text(text: str, measures: Sequence[str]) -> Limit:
    parts = _TEXT.fullmatch(text.strip())
    if parts is None:
        raise ValueError(
            f"limit is {text!r}; pass a number, a share such as '50%', or a string such as"
            f" '{_example(measures[0])}'."
        )
    name = parts["measure"] or measures[0]
    if name not in measures:
        raise ValueError(
            f"limit names {name!r}; measures that can be limited here are {', '.join(measures)}."
            f"{did_you_mean(name, measures)}"
        )
    value = float(parts["number"])
    share = bool(parts["percent"])
    if share:
        value = round(value / 100, 15)
    base = "gap" if share else ""
    if parts["base"]:
        base = "base rate"
    if parts["base"] and not share:
        raise ValueError(
            f"limit is {text!r}; write a share of the base rate as a percentage, such as 'gdp <="
            " 10% of base rate'."
        )
    limit = _make_limit(name, value, base)
    if parts["sign"] and (parts["sign"] == ">=") != limit.is_lower_bound:
        raise ValueError(f"limit is {text!r}; write '{_example(name)}'.")
    return limit


def _make_limit(name: str, value: float, base: Any) -> Limit:
    """Return a limit on the measure with the given name; raise an error if the limit is invalid for
    this measure.
    """
    first, _, rest = name.partition(".")
    among: Any = next((key for key, prefix in PREFIXES.items() if first == prefix), "all")
    measure = name if among == "all" else rest or "gdp"
    if measure in AT_LEAST:
        base = ""  # a share of itself: 80 % is 0.8
        if not 0 < value <= 1:
            raise ValueError(
                f"the limit on {name} is {format_exact(value)}; pass a share of at most 1."
            )
    if base and (measure not in SHARED or (base == "base rate" and measure != "gdp")):
        raise ValueError(
            f"the limit on {name} is a share; pass a number, as in '{_example(name)}'."
        )
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"the limit on {name} is {value:g}; pass a nonnegative number.")
    return Limit(value, measure, among, None, base)


def _example(name: str) -> str:
    return f"{name} >= 80%" if name in AT_LEAST else f"{name} <= 0.05"


def limits_by_attribute(
    limits: Iterable[Limit], names: Sequence[str]
) -> dict[str, tuple[Limit, ...]]:
    """Return the limits for each attribute; raise an error if a limit names an unknown attribute.

    Examples
    --------
    >>> limits = parse_limits([{"age": 0.02}, "50%"], ["gdp"])
    >>> {name: len(each) for name, each in limits_by_attribute(limits, ["age", "hours"]).items()}
    {'age': 2, 'hours': 1}
    """
    limits = tuple(limits)
    for limit in limits:
        if limit.attribute is not None and limit.attribute not in names:
            raise ValueError(
                f"limit names {limit.attribute!r}; the attributes are {', '.join(names)}."
                f"{did_you_mean(limit.attribute, names)}"
            )
    return {
        name: tuple(limit for limit in limits if limit.attribute in (None, name)) for name in names
    }
