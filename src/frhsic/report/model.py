"""What a report is made of: an audit, and where a model was trained, the trade-off and the audit before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from frhsic.auditing import _codec
from frhsic.auditing.results import Audit, Curve, Interval

__all__ = ["FORMAT", "Report", "TradeOff", "TradeOffPoint"]

FORMAT = 1
"""Version of the JSON form of a :class:`Report`."""


@dataclass(frozen=True)
class TradeOffPoint:
    """One penalty weight: what the model achieves, what dependence is left, and its curve E[f | S = s]."""

    weight: float
    performance: float
    gdp: float
    hsic: float | None = None
    chosen: bool = False
    label: str = ""
    performance_interval: Interval | None = None
    gdp_interval: Interval | None = None
    curve: Curve | None = None


@dataclass(frozen=True)
class TradeOff:
    """A sweep over penalty weights for one attribute, and why one of its points was chosen.

    `floor` is the performance that the choice had to keep, where there was one.
    """

    attribute: str
    performance_name: str
    higher_is_better: bool
    points: tuple[TradeOffPoint, ...]
    reason: str = ""
    floor: float | None = None

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a trade-off needs at least one point.")
        chosen = sum(point.chosen for point in self.points)
        if chosen > 1:
            raise ValueError(f"{chosen} points of the trade-off are marked as chosen; mark one at most.")


@dataclass(frozen=True)
class Report:
    """What one page shows. `before` is the audit without a penalty, compared with `audit` line by line."""

    audit: Audit
    before: Audit | None = None
    tradeoff: TradeOff | None = None
    summary: str = ""
    format: int = FORMAT

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts, lists and numbers."""
        plain: dict[str, Any] = _codec.to_plain(self)
        return plain

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the report as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=indent)

    @classmethod
    def from_dict(cls, plain: Any) -> Report:
        """Return the report that :meth:`to_dict` wrote; raise if its format is another."""
        written = plain.get("format") if isinstance(plain, dict) else None
        if written != FORMAT:
            raise ValueError(f"the document's format is {written!r}; this version reads {FORMAT}.")
        return _codec.from_plain(cls, plain)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Return the report that :meth:`to_json` wrote."""
        return cls.from_dict(json.loads(text))
