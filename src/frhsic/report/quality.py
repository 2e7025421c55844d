"""How well a score predicts, for the first page of a report: a table beside a constant, and what its lines mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from frhsic.auditing import Audit, Quality
from frhsic.formatting import counted, figure, stated
from frhsic.report.model import Report, TradeOff, TradeOffPoint

QUALITY = {
    "accuracy": "Right predictions, of 1,000 {people} (more is better)",
    "true_positive_rate": "Foreseen, of 1,000 with {outcome} (more is better)",
    "false_positive_rate": "False alarms, of 1,000 without {outcome} (fewer is better)",
    "auc": "Pairs in the right order, of 1,000 (more is better)",
    "calibration_error": "Error of the score as a chance (less is better)",
    "squared_error": "Mean squared error (less is better)",
}
"""Names of how well a score predicts."""
MEASURES = {
    "log_loss": "log loss",
    "squared_error": "mean squared error",
    "auc": "AUC",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
}
"""Names of the measures of a trade-off."""
LOSSES = frozenset({"log_loss", "squared_error"})
GAPS = {"score": "gap of mean scores", "rank": "rank gap", "decision": "gap of decisions"}
"""Names of the gap that each aim limits."""
AMONG = {None: "", "positive": " among rows with {outcome}", "both": " among rows of the same outcome"}
COUNTED = frozenset({"accuracy", "true_positive_rate", "false_positive_rate", "auc"})
"""Qualities that are counted on 1,000."""


@dataclass(frozen=True)
class QualityRow:
    """How well the score predicts by one measure: without the limit if that is known, of the model, of a constant."""

    label: str
    before: str | None
    value: str
    constant: str


def people_of(audit: Audit) -> str:
    """Return who is decided about: as stated, or “cases”."""
    return audit.context.people or "cases"


def outcome_of(audit: Audit) -> str:
    """Return the outcome that a score foretells, in quotes and without symbols; “the outcome” if it has no name."""
    name = audit.subject.target_name
    if name is None:
        return "the outcome"
    return f"“{worded(name.removeprefix('[').removesuffix(']').removesuffix(' = 1').removesuffix(' = True'))}”"


def worded(condition: str) -> str:
    """Return a condition such as ``default = 0`` without symbols: ``default: 0``."""
    return condition.replace(" = ", ": ")


def of_1000(share: float) -> str:
    """Return a share as a whole number of 1,000."""
    return f"{1000 * share:,.0f}"


def quality_rows(report: Report) -> list[QualityRow]:
    """Return the table of how well the score predicts."""
    before = {} if report.before is None else {one.key: one for one in report.before.quality}
    names = {"people": people_of(report.audit), "outcome": outcome_of(report.audit)}
    return [
        QualityRow(
            QUALITY[one.key].format(**names),
            _shown(one.key, before[one.key].value) if one.key in before else None,
            _shown(one.key, one.value),
            _shown(one.key, one.constant),
        )
        for one in report.audit.quality
    ]


def _shown(key: str, value: float) -> str:
    return of_1000(value) if key in COUNTED else figure(value)


def cost(report: Report) -> list[str]:
    """Return what the table compares, and what its words mean."""
    audit, quality = report.audit, {one.key: one for one in report.audit.quality}
    if not quality:
        return ["The data hold no outcome, or no score. So this page cannot say how well the score predicts."]
    names = " and ".join(attribute.name for attribute in audit.attributes)
    if report.before is not None:
        lines = [
            f"A limit keeps the score from moving with {names}. The table compares this model with the same model "
            "without the limit, and with a constant, which gives everybody the same score."
        ]
    else:
        lines = ["The table compares the score with a constant, which gives everybody the same score."]
    judged = _pairs_lost(report) + _no_better(quality)
    return [*lines, *([" ".join(judged)] if judged else []), " ".join(_meanings(audit, quality))]


def _meanings(audit: Audit, quality: dict[str, Quality]) -> Iterator[str]:
    """Yield what the words of the table mean."""
    outcome, subject = outcome_of(audit), audit.subject
    if "accuracy" in quality:
        level = stated(0.5 if subject.threshold is None else subject.threshold)
        missing = "" if subject.threshold_stated else "No threshold was stated. "
        yield f"{missing}A score of {level} or more counts as a prediction of {outcome}."
    if "auc" in quality:
        yield f"A pair is a case with {outcome} and one without; its order is right if the first has the higher score."
    if "calibration_error" in quality:
        yield (
            f"The error of a score as a chance is how far it lies from how often {outcome} came among cases with "
            "similar scores; a constant has none, and tells nobody apart."
        )
    if "squared_error" in quality:
        yield "The mean squared error is the mean of the squared differences between score and target."


def _pairs_lost(report: Report) -> list[str]:
    before = [] if report.before is None else [one.value for one in report.before.quality if one.key == "auc"]
    after = [one.value for one in report.audit.quality if one.key == "auc"]
    if not before or not after:
        return []
    fewer = round(1000 * before[0]) - round(1000 * after[0])
    if not fewer:
        return ["With the limit as many pairs are in the right order as without."]
    return [f"With the limit {abs(fewer)} {'fewer' if fewer > 0 else 'more'} of 1,000 pairs are in the right order."]


def _no_better(quality: dict[str, Quality]) -> list[str]:
    if "auc" in quality and quality["auc"].value <= 0.5:
        return ["The score orders people no better than chance."]
    if "accuracy" in quality and quality["accuracy"].value <= quality["accuracy"].constant:
        return [
            "It makes no more right predictions than the constant; where an outcome is rare that is common, and the "
            "order of pairs tells more."
        ]
    if "squared_error" in quality and quality["squared_error"].value >= quality["squared_error"].constant:
        return ["As a prediction of the target it is no better than the constant."]
    return []


def gap_name(tradeoff: TradeOff, attribute: str, audit: Audit) -> str:
    """Return the name of the gap that a model limits, such as “gap of mean scores along age (GDP)”."""
    among = AMONG[tradeoff.condition].format(outcome=outcome_of(audit))
    return f"{GAPS[tradeoff.aim]} along {attribute}{among}{' (GDP)' if tradeoff.aim == 'score' else ''}"


def summary(after: Audit, before: Audit | None, tradeoff: TradeOff, unclear: Sequence[str] = ()) -> str:
    """Return what a limit changed on rows that had no part in the fit, and what that costs by the measure of its aim.

    Of two classes it adds how many of those with the outcome are foreseen. `unclear` names the attributes whose change
    of the gap a test does not tell from chance.
    """
    start, old, new = (
        f"On {counted(after.rows.used, 'row')} that had no part in the fit",
        tradeoff.before,
        tradeoff.after,
    )
    measure, base = MEASURES[tradeoff.measure], f"{figure(tradeoff.constant)} for a constant"
    if before is None:
        gaps = " and ".join(
            f"a {gap_name(tradeoff, name, after)} of {figure(gap.value)}"
            for name, gap in zip(tradeoff.attributes, new.gaps)
        )
        return f"{start}, the model has {gaps}; {measure} is {figure(new.performance)} ({base})."
    changes = []
    for name, was, now in zip(tradeoff.attributes, old.gaps, new.gaps):
        gap = f"the {gap_name(tradeoff, name, after)}"
        if now.value < was.value:
            doubt = ", a change that chance alone could explain" if name in unclear else ""
            changes.append(f"lowers {gap} from {figure(was.value)} to {figure(now.value)}{doubt}")
        else:
            changes.append(f"does not lower {gap}: {figure(was.value)} without it, {figure(now.value)} with it")
    text = (
        f"{start}, the limit {', and '.join(changes)}; {measure} goes from {figure(old.performance)} to "
        f"{figure(new.performance)} ({base})."
    )
    return " ".join([text, *_foreseen(after, before)])


def _foreseen(after: Audit, before: Audit) -> list[str]:
    """Return how many of those with the outcome the score foresees, with the limit and without."""
    now, was = ({one.key: one.value for one in each.quality}.get("true_positive_rate") for each in (after, before))
    if now is None or was is None:
        return []
    return [
        f"Of 1,000 {people_of(after)} with {outcome_of(after)}, {of_1000(now)} are foreseen instead of {of_1000(was)}."
    ]


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
    """Return the trade-offs with what they are, for a table; the last two are of the rows of the report."""
    first = tradeoff.points[0].gaps[tradeoff.worst].value
    rows = []
    for i, point in enumerate(tradeoff.points):
        name = (
            "no limit"
            if i == 0
            else f"{100 * point.gaps[tradeoff.worst].value / first:.0f} % of the gap"
            if first
            else ""
        )
        rows.append((point, f"{name} (chosen)" if point.chosen else name))
    return [*rows, (tradeoff.before, "this report, no limit"), (tradeoff.after, "this report, chosen")]
