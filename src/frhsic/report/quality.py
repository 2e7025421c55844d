"""How well a score predicts, for the first page of a report: a table beside a constant, and what its lines mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frhsic.auditing import Audit, Quality
from frhsic.formatting import figure, stated
from frhsic.report.model import Report

QUALITY = {
    "accuracy": "Right predictions, of 1,000 {people} (more is better)",
    "true_positive_rate": "Foreseen, of 1,000 with {outcome} (more is better)",
    "false_positive_rate": "False alarms, of 1,000 without {outcome} (fewer is better)",
    "auc": "Pairs in the right order, of 1,000 (more is better)",
    "calibration_error": "Error of the score as a chance (less is better)",
    "squared_error": "Mean squared error (less is better)",
}
"""Names of how well a score predicts."""
COUNTED = frozenset({"accuracy", "true_positive_rate", "false_positive_rate", "auc"})
"""Qualities that are counted on 1,000."""


@dataclass(frozen=True)
class QualityRow:
    """How well the score predicts by one measure: without the penalty if that is known, of the model, of a constant."""

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
            f"In training, a penalty kept the score from moving with {names}. The table compares this model with the "
            "one without the penalty, and with a constant, which gives everybody the same score."
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
        return ["With the penalty as many pairs are in the right order as without."]
    return [f"With the penalty {abs(fewer)} {'fewer' if fewer > 0 else 'more'} of 1,000 pairs are in the right order."]


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
