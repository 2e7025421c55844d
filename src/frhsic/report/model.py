"""What a report holds: an audit and, of a model under a limit, the trade-offs and the audit without the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frhsic.auditing import Audit
from frhsic.auditing.results import Curve, Document
from frhsic.estimators.tradeoffs import Gap
from frhsic.formatting import counted, figure
from frhsic.report.driving import Drivers
from frhsic.report.words import WORDS, outcome_phrase

FORMAT = 7
"""Version of the JSON form of a :class:`Report`."""
MEASURES: dict[str, str] = WORDS["measures"]
GAPS: dict[str, str] = WORDS["gaps"]
LOSSES = frozenset({"log_loss", "squared_error"})


@dataclass(frozen=True)
class TradeOffPoint:
    """Performance of one predictor, and its gap along each attribute.

    On the rows of the report, `pvalues` are those of no gap, adjusted for the number of attributes (Holm). `added` and
    `left_out` are the columns by which a predictor differs from the model of the report.
    """

    performance: float
    gaps: tuple[Gap, ...]
    chosen: bool = False
    pvalues: tuple[float, ...] = ()
    added: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class TradeOff:
    """The trade-offs of one fit and the one that its limit chose.

    Attributes
    ----------
    aim, condition
        The gap that is limited, as in :class:`~frhsic.ParityClassifier`.
    measure
        Key of the performance, which a constant cannot win: the loss for the aim "score", "auc" for "rank", "accuracy",
        or of rare outcomes "balanced_accuracy", for "decision".
    attributes
        Names of the attributes.
    asked, limits, met
        The limit as it was given, the largest gap that it allows along each attribute (None: any), and whether the
        estimate of the fit meets it.
    points
        From no limit to almost no gap, measured on training rows that neither fitted nor chose the point.
    before, after, constant
        Without the limit and with it, on the rows of the report, and the performance of a constant there.
    others
        Models without a limit on other columns, on the rows of the report: with the attributes as columns, without
        them, and without the columns that tell most of them.
    """

    aim: str
    condition: str | None
    measure: str
    attributes: tuple[str, ...]
    asked: str
    limits: tuple[float | None, ...]
    met: bool
    points: tuple[TradeOffPoint, ...]
    before: TradeOffPoint
    after: TradeOffPoint
    constant: float
    others: tuple[TradeOffPoint, ...] = ()

    @property
    def worst(self) -> int:
        """Index of the attribute with the largest gap without a limit."""
        return max(range(len(self.attributes)), key=lambda i: self.points[0].gaps[i].value)

    @property
    def limited(self) -> bool:
        """Whether any attribute has a limit."""
        return any(limit is not None for limit in self.limits)


@dataclass(frozen=True)
class Report(Document):
    """Content of one page. `before` is the audit without the limit, to compare with `audit` number by number.

    `drivers` says which columns carry an attribute into the score, `shifts` how the limit changed the mean score along
    each attribute.
    """

    audit: Audit
    before: Audit | None = None
    tradeoff: TradeOff | None = None
    drivers: tuple[Drivers, ...] = ()
    shifts: dict[str, Curve] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def summary(self) -> str:
        """What a limit changed on rows that had no part in the fit, and what it costs; empty without trade-offs."""
        return "" if self.tradeoff is None else _summary(self.audit, self.before, self.tradeoff)


def columns_phrase(point: TradeOffPoint) -> str:
    """Return the columns by which a predictor differs from the model, such as “without age and job”."""
    return f"with {listed(point.added)} as a column" if point.added else f"without {listed(point.left_out)}"


def listed(names: Sequence[str]) -> str:
    """Return names in a row, such as “age, job and town”."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def gap_name(tradeoff: TradeOff, attribute: str, audit: Audit) -> str:
    """Return the name of the gap that a model limits, such as “gap of mean scores along age”."""
    among = WORDS["among"].get(tradeoff.condition, "").format(outcome=outcome_phrase(audit.subject))
    return f"{GAPS[tradeoff.aim]} along {attribute}{among}"


def _summary(after: Audit, before: Audit | None, tradeoff: TradeOff) -> str:
    start, old, new = f"On {counted(after.rows.used, 'row')} not used in the fit", tradeoff.before, tradeoff.after
    measure, base = MEASURES[tradeoff.measure], f"{figure(tradeoff.constant)} for a constant"
    if before is None:
        gaps = " and ".join(
            f"a {gap_name(tradeoff, name, after)} of {figure(gap.value)} ({figure(gap.low)} to {figure(gap.high)})"
            for name, gap in zip(tradeoff.attributes, new.gaps)
        )
        return f"{start}, the model has {gaps}; {measure} is {figure(new.performance)} ({base})."
    changes = []
    for name, was, now in zip(tradeoff.attributes, old.gaps, new.gaps):
        sizes = f"{figure(was.value)} ({figure(was.low)} to {figure(was.high)}) without it, {figure(now.value)} with it"
        doubt = ", which may be chance" if was.low <= now.high else ""
        verb = "lowers" if now.value < was.value else "does not lower"
        changes.append(f"{verb} the {gap_name(tradeoff, name, after)} ({sizes}){doubt}")
    text = (
        f"{start}, the limit {', and '.join(changes)}; {measure} goes from {figure(old.performance)} to "
        f"{figure(new.performance)} ({base})."
    )
    rates = [{one.key: one.value for one in each.quality}.get("true_positive_rate") for each in (before, after)]
    if rates[0] is None or rates[1] is None:
        return text
    people, outcome = after.context.people or "cases", outcome_phrase(after.subject)
    counts = f"{1000 * rates[1]:,.0f} are foreseen instead of {1000 * rates[0]:,.0f}"
    return f"{text} Of 1,000 {people} with {outcome}, {counts}."


def tradeoff_sentence(tradeoff: TradeOff, audit: Audit) -> str:
    """Return where on the trade-offs the model is, and what the rows of the report show of it."""
    chosen = next(point for point in tradeoff.points if point.chosen)
    name, measure = tradeoff.attributes[tradeoff.worst], MEASURES[tradeoff.measure]
    gap, seen = chosen.gaps[tradeoff.worst], tradeoff.after.gaps[tradeoff.worst]
    text = "No limit was stated." if not tradeoff.limited else f"The limit is {tradeoff.asked}."
    text += (
        f" In the fit, the {gap_name(tradeoff, name, audit)} is {figure(gap.value)} ({figure(gap.low)} to "
        f"{figure(gap.high)}) and {measure} {figure(chosen.performance)}; on the rows of this report they are "
        f"{figure(seen.value)} ({figure(seen.low)} to {figure(seen.high)}) and {figure(tradeoff.after.performance)}."
    )
    return text if tradeoff.met else f"{text} The limit is not met: this is the trade-off that comes closest."


def tradeoff_rows(tradeoff: TradeOff) -> list[tuple[TradeOffPoint, str]]:
    """Return the trade-offs with what they are, for a table; the last ones are of the rows of the report."""
    first = tradeoff.points[0].gaps[tradeoff.worst].value
    rows = []
    for i, point in enumerate(tradeoff.points):
        share = f"{100 * point.gaps[tradeoff.worst].value / first:.0f} % of the gap" if first else ""
        rows.append((point, ("no limit" if i == 0 else share) + (" (chosen)" if point.chosen else "")))
    others = [(point, f"this report, no limit, {columns_phrase(point)}") for point in tradeoff.others]
    return [*rows, *others, (tradeoff.before, "this report, no limit"), (tradeoff.after, "this report, chosen")]
