"""Limits on the numbers of an audit, such as gdp=0.1, and its comparison with an earlier one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frhsic.cli import _options
from frhsic.formatting import chance, did_you_mean, figure, stated
from frhsic.sentences import LABELS

if TYPE_CHECKING:
    from frhsic.auditing import Audit


def parsed(texts: Sequence[str]) -> dict[str, float]:
    """Return the limits by the names of their numbers; raise on a name that no audit has."""
    limits = {}
    for text in texts:
        key, _, limit = (part.strip() for part in text.partition("="))
        limits[key] = _options.number(limit)
        if math.isnan(limits[key]):
            raise ValueError(f"--fail-above is {text!r}; pass NAME=NUMBER, such as gdp=0.1.")
        if key not in LABELS:
            raise ValueError(f"--fail-above names {key!r}, which no audit has.{did_you_mean(key, LABELS)}")
    return limits


def exceeded(audit: Audit, limits: dict[str, float]) -> list[str]:
    """Return a sentence for each number, of any attribute, that is above its limit."""
    lines = []
    for key, limit in limits.items():
        for attribute in audit.attributes:
            try:
                number = attribute.all_rows[key]
            except KeyError as error:
                raise ValueError(
                    f"--fail-above {key}={stated(limit)} cannot be checked for {attribute.name}: {error.args[0]}"
                ) from None
            if number.value > limit:
                lines.append(
                    f"above the limit: {key} of {attribute.name} is {figure(number.value)}, more than {stated(limit)}."
                )
    return lines


def earlier(path: Path) -> Audit:
    """Read an earlier audit, as ``--json`` wrote it."""
    from frhsic.auditing import Audit

    try:
        return Audit.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"--against {str(path)!r} is not an audit that can be read: {error}") from None


def grown(audit: Audit) -> list[str]:
    """Return a sentence for each gap that has grown since the earlier audit."""
    return [
        f"gap grown: gdp of {change.attribute} went from {figure(change.before)} to {figure(change.after)} "
        f"(p {chance(change.adjusted_pvalue)})."
        for change in audit.drift
        if change.verdict == "grown"
    ]


def not_kept(audit: Audit) -> list[str]:
    """Return a sentence for each stated limit that is not shown to be kept."""
    from frhsic.auditing.stated import limit_name

    lines = []
    for check in audit.limits:
        if check.verdict != "kept":
            said = "not kept" if check.verdict == "not kept" else "cannot be told"
            name = limit_name(check.key, check.among)
            lines.append(
                f"limit {said}: {name} of {check.attribute} is {figure(check.value)} ({figure(check.low)} to "
                f"{figure(check.high)}), limit {figure(check.limit)}."
            )
    return lines
