"""What a report holds: an audit and, where a model was trained, the trade-off and the audit without a penalty."""

from __future__ import annotations

from dataclasses import dataclass

from frhsic.auditing import Audit, Curve, Interval
from frhsic.auditing.documents import Document
from frhsic.report.driving import Drivers, Shift

FORMAT = 4
"""Version of the JSON form of a :class:`Report`."""


@dataclass(frozen=True)
class TradeOffPoint:
    """One penalty weight: performance and dependence of its model, and its curve E[f | S = s]."""

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

    `floor` is the performance that the choice had to keep, or None.
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
class Report(Document):
    """Content of one page. `before` is the audit without a penalty, to compare with `audit` number by number.

    `drivers` says which columns carry an attribute into the score, `shifts` whose scores the penalty changed.
    """

    audit: Audit
    before: Audit | None = None
    tradeoff: TradeOff | None = None
    summary: str = ""
    drivers: tuple[Drivers, ...] = ()
    shifts: tuple[Shift, ...] = ()
    format: int = FORMAT
