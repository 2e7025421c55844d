"""Rules as people write them: 0.02, "gdp<=0.02", "gain>=90%"."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from frhsic.formatting import did_you_mean
from frhsic.selection.rules import IndependenceRule, PerformanceRule, Rule, TargetRule

EXAMPLES = "0.02, 'gdp <= 0.02', 'hsic <= 0.001', 'gain >= 90%', 'p > 0.05'"

_WRITTEN = re.compile(r"\s*([^\W\d]\w*)\s*(<=|>=|≤|≥|<|>|=)\s*([-+.\w]+)\s*(%?)\s*")
_RULES: dict[str, tuple[str, Callable[[float], Rule]]] = {
    "gdp": ("at most", TargetRule),
    "hsic": ("at most", lambda number: TargetRule(number, measure="hsic")),
    "gain": ("at least", lambda number: PerformanceRule(1 - number)),
    "p": ("at least", lambda number: IndependenceRule(number)),
}


def rule_of(written: Any) -> Rule:
    """Return a rule as it is, or the one that a number or a text means; None is ``PerformanceRule()``.

    Examples
    --------
    >>> rule_of(0.02) == rule_of("gdp <= 0.02") == rule_of("GDP ≤ 2%") == rule_of("gdp=0.02")
    True
    >>> rule_of("gain>=0.75")
    PerformanceRule(loss=0.25, of='representation', confidence=0.95, epsilon=None)
    """
    if written is None:
        return PerformanceRule()
    if isinstance(written, str):
        return _parsed(written)
    if isinstance(written, (int, float)) and not isinstance(written, bool):
        return TargetRule(float(written))
    if isinstance(written, type) or not callable(getattr(written, "choose", None)):
        raise TypeError(f"rule={written!r}; pass a rule such as TargetRule(0.02), or one of {EXAMPLES}.")
    rule: Rule = written
    return rule


def _parsed(text: str) -> Rule:
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise ValueError(f"rule={text!r} is not understood; write for example {EXAMPLES}.")
    name, sign, digits, per_cent = found.groups()
    key = name.lower()
    if key not in _RULES:
        raise ValueError(f"rule={text!r} limits {name!r}, which is not known.{did_you_mean(key, _RULES)}")
    direction, rule = _RULES[key]
    if (sign in "<=≤") != (direction == "at most"):
        raise ValueError(f"rule={text!r}: a limit on {key} is {direction} a number; write for example {EXAMPLES}.")
    try:
        number = float(digits) / (100 if per_cent else 1)
    except ValueError:
        raise ValueError(f"rule={text!r}: {digits!r} is no number; write for example {EXAMPLES}.") from None
    if key in ("gain", "p") and not 0 < number <= 1:
        raise ValueError(f"rule={text!r}: {key} lies between 0 and 1; write for example {EXAMPLES}.")
    return rule(number)
