"""The contents of a report: an audit and, for a model with a limit, the trade-offs and the audit
without the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from frhsic.auditing.documents import Document
from frhsic.auditing.results import Audit, Change, Curve, Number
from frhsic.estimators.frontier import AIM_MEASURES, Gap
from frhsic.parity.limits import measure_name

REPORT_FORMAT = 14  # version of the JSON form of a :class:`Report`


@dataclass(frozen=True)
class TradeOffPoint:
    """The performance of one predictor and its gap by each attribute.

    On the report's rows, and in the fit without a limit, the interval of a gap excludes 0 if and
    only if the gap is significant. If the gap is not significant in the fit without a limit, the
    intervals of all the fit's trade-offs begin at 0.
    """

    performance: float
    gaps: tuple[Gap, ...]
    chosen: bool = False


@dataclass(frozen=True)
class Stop:
    """One trade-off on the report's rows: the limit that selects it (empty for the model's own
    limit), its performance and gaps, its cost compared with no limit, and the mean score by each
    attribute.
    """

    limit: str
    point: TradeOffPoint
    costs: tuple[Change, ...]
    curves: dict[str, Curve]


@dataclass(frozen=True)
class ClassRates:
    """The mean probability of one of several classes, its actual share, and the gap by each
    attribute in the share of rows for which this class is the most probable.
    """

    mean: float
    actual: float
    decision_gaps: tuple[Number, ...]


@dataclass(frozen=True)
class TradeOff:
    """The trade-offs of one fit, and the one chosen for its limit.

    Attributes
    ----------
    aim
        The limited gap, as in :class:`~frhsic.ParityClassifier`.
    condition
        The rows whose gap is limited, as in :class:`~frhsic.ParityClassifier`.
    measure
        Key of the performance measure, chosen so that a constant is never best. For the aim "score"
        it is the loss ("all_log_loss" for more than two classes), for "rank" "auc", and for
        "decision" "accuracy", or "balanced_accuracy" if the outcome is rare.
    attributes
        Names of the attributes.
    limits
        For each attribute, the largest allowed gap as a number, or None.
    shares
        For each attribute, the largest allowed gap as a share of the gap without a limit, or None.
    base_shares
        Each of `limits` as a share of the base rate of the training rows; None if it was not
        specified as such.
    base_rate
        The mean of the target in the training rows; None with several classes.
    met
        Whether the fit meets the limits.
    points
        All trade-offs, from no limit to almost no gap, measured out of fold on the training rows.
    before
        The predictor without the limit, on the rows of the report.
    after
        The predictor with the limit, on the same rows.
    changes
        For each attribute, the change in the gap due to the limit, with both predictors measured on
        the report's rows. Empty if the limit changes nothing.
    stops
        The trade-offs for the chosen limit and others, from no limit to the strictest one.
    controls
        Names of the controls, if gaps are measured among people with the same controls; else None.
    classes
        With several classes, the gap of each class by each attribute on the report's rows. All
        other gaps of this object are then the largest over all classes.
    class_rates
        With several classes, the mean probability, share and decisions of each class on the same
        rows.
    """

    aim: str
    condition: str | None
    measure: str
    attributes: tuple[str, ...]
    limits: tuple[float | None, ...]
    shares: tuple[float | None, ...]
    met: bool
    points: tuple[TradeOffPoint, ...]
    before: TradeOffPoint
    after: TradeOffPoint
    changes: tuple[Change, ...] = ()
    stops: tuple[Stop, ...] = ()
    base_shares: tuple[float | None, ...] = ()
    base_rate: float | None = None
    controls: str | None = None
    classes: dict[str, tuple[Number, ...]] = field(default_factory=dict)
    class_rates: dict[str, ClassRates] = field(default_factory=dict)

    @property
    def measure_name(self) -> str:
        """The name of the limited gap, as used in limits."""
        return measure_name(AIM_MEASURES[self.aim], "equal" if self.controls else "all")

    @property
    def worst(self) -> int:
        """Index of the attribute with the largest gap without a limit."""
        return max(range(len(self.attributes)), key=lambda i: self.points[0].gaps[i].value)

    def largest_class(self, s: str) -> tuple[str, Number]:
        """Return the class with the largest gap by an attribute, and that gap."""
        i = self.attributes.index(s)
        label = max(self.classes, key=lambda label: self.classes[label][i].value)
        return label, self.classes[label][i]

    def is_noise(self, i: int) -> bool:
        """Whether the gap by an attribute is not significant on the report's rows, both without the
        limit and with it.
        """
        return self.changes[i].reduction is None and self.after.gaps[i].low <= 0

    @property
    def limited(self) -> bool:
        """Whether any attribute has a limit."""
        return any(limit is not None for limit in (*self.limits, *self.shares))


@dataclass(frozen=True)
class Report(Document):
    """The contents of one page. `before` is the audit without the limit; each of its numbers can be
    compared with the same number in `audit`.

    `earlier` is the audit of other rows with which `audit.drift` compares `audit`. `changes` has
    the effect of the limit on gaps, with both models measured on the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> report = Report(audit(age / 50, age, settings=Settings(fast=True)))
    >>> Report.from_json(report.to_json()) == report
    True
    """

    audit: Audit
    before: Audit | None = None
    earlier: Audit | None = None
    tradeoff: TradeOff | None = None
    changes: tuple[Change, ...] = ()
    format: int = REPORT_FORMAT

    def change(self, key: str, attribute: str) -> Change | None:
        """Return the effect of the limit on one of an attribute's numbers, or None."""
        for change in self.changes:
            if (change.key, change.attribute) == (key, attribute):
                return change
        return None
