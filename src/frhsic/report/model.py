"""What a report holds: an audit and, of a model under a limit, the trade-offs and the audit without the limit."""

from __future__ import annotations

from dataclasses import dataclass

from frhsic.auditing import Audit
from frhsic.auditing.documents import Document
from frhsic.estimators.tradeoffs import Gap
from frhsic.report.driving import Drivers, Shift

FORMAT = 5
"""Version of the JSON form of a :class:`Report`."""


@dataclass(frozen=True)
class TradeOffPoint:
    """Performance of one predictor, and its gap along each attribute."""

    performance: float
    gaps: tuple[Gap, ...]
    chosen: bool = False


@dataclass(frozen=True)
class TradeOff:
    """The trade-offs of one fit and the one that its limit chose.

    Attributes
    ----------
    aim, condition
        The gap that is limited, as in :class:`~frhsic.ParityClassifier`.
    measure
        Key of the performance: the loss for the aim "score", "auc" for "rank", "accuracy" or "balanced_accuracy" for
        "decision".
    attributes, worst
        Names of the attributes, and the index of the one with the largest gap without a limit.
    asked, limits, met
        The limit as it was given, the largest gap that it allows along each attribute (None: any), and whether the
        estimate of the fit meets it.
    points
        From no limit to almost no gap, measured on training rows that neither fitted nor chose the point.
    before, after
        Without the limit and with it, on the rows of the report.
    constant
        Performance of a constant on the rows of the report.
    """

    aim: str
    condition: str | None
    measure: str
    attributes: tuple[str, ...]
    worst: int
    asked: str
    limits: tuple[float | None, ...]
    met: bool
    points: tuple[TradeOffPoint, ...]
    before: TradeOffPoint
    after: TradeOffPoint
    constant: float

    @property
    def limited(self) -> bool:
        """Whether any attribute has a limit."""
        return any(limit is not None for limit in self.limits)


@dataclass(frozen=True)
class Report(Document):
    """Content of one page. `before` is the audit without the limit, to compare with `audit` number by number.

    `drivers` says which columns carry an attribute into the score, `shifts` whose scores the limit changed.
    """

    audit: Audit
    before: Audit | None = None
    tradeoff: TradeOff | None = None
    summary: str = ""
    drivers: tuple[Drivers, ...] = ()
    shifts: tuple[Shift, ...] = ()
    format: int = FORMAT
