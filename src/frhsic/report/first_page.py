"""The first page of a report: what a committee asks, answered in plain sentences without symbols and acronyms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from frhsic.auditing import Audit, Curve, LimitCheck, Quality
from frhsic.formatting import capitalized, counted, figure, percent, plain
from frhsic.report.driving import group_phrase
from frhsic.report.model import Report
from frhsic.sentences import score_phrase

LIMITED = {
    "gdp": "the average gap of the mean score along {s}",
    "standardized_gdp": "the average gap along {s}, in standard deviations of the score,",
    "correlation_ratio": "the share of the differences between scores that {s} explains",
    "hsic": "the distance of score and {s} from independence",
    "hsic_effect": "the dependence of the score on {s}, on a scale from 0 to 1,",
    "distance_correlation": "the dependence of the score on {s}, by distances, on a scale from 0 to 1,",
}
"""Names of the numbers that a limit can be stated for."""

AVERAGE_GAP = (
    "The average gap is how far the mean score of those with the same value lies from the mean score of all, on "
    "average."
)

QUALITY = {
    "accuracy": "Right predictions, of 1,000",
    "auc": "Pairs in the right order, of 1,000",
    "calibration_error": "Distance of the scores from the shares that happened",
    "squared_error": "Mean squared error",
}
"""Names of how well a score predicts; a pair is one row with the outcome and one without."""

GLOSSARY = (
    ("Accuracy", "Share of rows that are predicted right: at the threshold, on the same side as what happened."),
    ("Area under the curve (AUC)", "Share of pairs, one row with the outcome and one without, whose scores are in the "
     "right order. A constant has one half."),
    ("Attribute", "What the score is not to depend on, such as age."),
    ("Average gap (generalised demographic parity, GDP)", "How far the mean score at a row's value of the attribute "
     "lies from the mean score of all rows, on average over the rows."),
    ("Base rate", "Mean of the target: the share of rows with the outcome."),
    ("Calibration error", "How far the score lies from the share of rows with the outcome, in ten groups of rows with "
     "similar scores (root mean square)."),
    ("Certificate", "A bound that follows from a theorem, with its assumptions; not an estimate."),
    ("Confidence of 95 %", "An interval made in this way holds the true number in 95 of 100 samples of rows."),
    ("Constant", "The model that gives everybody the same score: the base rate, or the mean of the target."),
    ("Equal opportunity", "The same question among the rows with the favourable outcome alone."),
    ("Fingerprint (SHA-256)", "A number computed from every byte of a file. Another file has another fingerprint."),
    ("HSIC", "Hilbert–Schmidt independence criterion: distance of score and attribute from independence; zero only if "
     "they are independent."),
    ("Kernel", "A measure of how similar two rows are; its bandwidth says how near counts as similar."),
    ("Penalty weight λ", "How much independence counts in training beside performance; 0 is no penalty."),
    ("p-value", "Share of samples in which chance alone shows as much or more."),
    ("Probe", "A model that tries to recover the attribute from the score or the representation."),
    ("Quantile", "Score below which a given share of the rows lies; half of them lie below the quantile 0.5."),
    ("Representation", "The numbers that a model computes from the columns before it makes a score of them."),
)  # fmt: skip
"""What the words of the evidence mean."""


@dataclass(frozen=True)
class Question:
    """A question of a reader and the sentences that answer it; `verdict` is that of a limit, or empty."""

    title: str
    lines: tuple[str, ...]
    verdict: str = ""


@dataclass(frozen=True)
class QualityRow:
    """How well the score predicts by one measure: without the penalty if that is known, of the model, of a constant."""

    label: str
    before: str | None
    value: str
    constant: str


@dataclass(frozen=True)
class FirstPage:
    """Content of the first page."""

    facts: tuple[tuple[str, str], ...]
    questions: tuple[Question, ...]
    quality: tuple[QualityRow, ...]
    origin: tuple[tuple[str, str], ...]


def first_page(report: Report) -> FirstPage:
    """Return the first page of a report."""
    audit = report.audit
    return FirstPage(
        _facts(audit),
        (
            *_limits(audit),
            *_drift(audit),
            Question("How large is the worst gap?", tuple(_worst(audit))),
            Question(f"What does it mean for 1,000 {_people(audit)}?", tuple(_thousand(audit))),
            Question("What did it cost?" if report.before else "How good is the score?", tuple(_cost(report))),
            Question("Can this be trusted?", tuple(_trust(report))),
            Question("What was not looked at?", tuple(_blind(audit))),
        ),
        tuple(_quality(report)),
        _origin(audit),
    )


def worst_group(curve: Curve) -> int:
    """Return the group whose mean is farthest from the overall mean, among those with enough rows."""
    trusted = [i for i in range(len(curve.grid)) if not (curve.sparse and curve.sparse[i])] or range(len(curve.grid))
    return max(trusted, key=lambda i: abs(curve.mean[i] - curve.overall))


def _people(audit: Audit) -> str:
    return audit.context.people or "cases"


def _facts(audit: Audit) -> tuple[tuple[str, str], ...]:
    context, subject, rows = audit.context, audit.subject, audit.rows
    used = f"{audit.source or 'a table'}, {counted(rows.used, 'row')}"
    if rows.used < rows.given:
        used = f"{audit.source or 'a table'}, {rows.used:,} of {counted(rows.given, 'row')}"
    what = score_phrase(subject) if subject.score_name else f"the representation “{subject.name}”"
    return (
        ("What is decided", context.decision or "not stated"),
        ("About whom", context.people or "not stated; each row of the data is one case"),
        ("What is looked at", f"{what}, along {_list(a.name for a in audit.attributes)}"),
        ("Data", used),
        ("Period", context.period or "not stated"),
    )


def _limits(audit: Audit) -> list[Question]:
    if audit.limits:
        questions = [Question("Is the limit kept?", (_kept(check),), check.verdict) for check in audit.limits]
        if any(check.key == "gdp" for check in audit.limits):
            questions[0] = replace(questions[0], lines=(*questions[0].lines, AVERAGE_GAP))
        return questions
    lines = ["No limit was stated, so this page cannot say whether one is kept."]
    for attribute in audit.attributes:
        for number in attribute.all_rows.numbers:
            if number.key == "gdp" and number.interval is not None:
                lines.append(
                    f"The average gap along {attribute.name} is {figure(number.value)}; with "
                    f"{percent(number.interval.confidence)} confidence it lies between {figure(number.interval.low)} "
                    f"and {figure(number.interval.high)}."
                )
    return [Question("Is the limit kept?", (*lines, AVERAGE_GAP))]


def _kept(check: LimitCheck) -> str:
    limit = f"the limit of {plain(check.limit)}"
    if check.share is not None and check.reference is not None:
        limit = (
            f"the limit of {figure(check.limit)}, which is {percent(check.share)} of the base rate of "
            f"{figure(check.reference)}"
        )
    measured = (
        f"{capitalized(LIMITED[check.key].format(s=check.attribute))} is {figure(check.value)}; with "
        f"{percent(check.confidence)} confidence it lies between {figure(check.low)} and {figure(check.high)}"
    )
    return {
        "kept": f"Yes. {measured}. All of this is within {limit}.",
        "not kept": f"No. {measured}. All of this is above {limit}.",
        "unclear": f"It cannot be told. {measured}. Between these two lies {limit}. More rows would narrow the range.",
    }[check.verdict]


def _drift(audit: Audit) -> list[Question]:
    if not audit.drift:
        return []
    lines = []
    for change in audit.drift:
        sizes = f"It was {figure(change.before)} and is {figure(change.after)}"
        lines.append(
            {
                "grown": f"Yes. The average gap along {change.attribute} has grown. {sizes}.",
                "shrunk": f"Yes. The average gap along {change.attribute} has become smaller. {sizes}.",
                "no change seen": f"No change of the average gap along {change.attribute} is seen. {sizes}, which "
                "chance alone could explain.",
            }[change.verdict]
        )
    return [Question("Has it changed since the last audit?", tuple(lines))]


def _worst(audit: Audit) -> list[str]:
    lines = []
    for attribute in audit.attributes:
        curve = attribute.all_rows.curve
        if curve is None:
            lines.append(f"There is no score whose mean could be followed along {attribute.name}.")
            continue
        i = worst_group(curve)
        relative = curve.overall > 0 and min(curve.mean) >= 0
        where, mean = group_phrase(curve, i, attribute.name), curve.overall

        def side(value: float, relative: bool = relative, mean: float = mean) -> str:
            size = percent(abs(value - mean) / mean) if relative else figure(abs(value - mean))
            return f"{size} {'above' if value >= mean else 'below'}"

        rows = f" ({counted(curve.rows[i], 'row')})" if curve.rows else ""
        text = (
            f"{capitalized(where)}{rows} the mean score is {figure(curve.mean[i])}, {side(curve.mean[i])} the average "
            f"of {figure(mean)}."
        )
        if curve.low:
            text += (
                f" With {percent(curve.confidence)} confidence, for all values of {attribute.name} at once, it lies "
                f"between {side(curve.low[i])} and {side(curve.high[i])} the average"
            )
            text += ", so chance alone could explain it." if curve.low[i] <= mean <= curve.high[i] else "."
        lines.append(text)
    return lines


def _thousand(audit: Audit) -> list[str]:
    lines, people, subject = [], _people(audit), audit.subject
    for attribute in audit.attributes:
        curve, decisions = attribute.all_rows.curve, attribute.all_rows.decisions
        if curve is None:
            continue
        i = worst_group(curve)
        where = group_phrase(curve, i, attribute.name)
        if decisions is not None and subject.threshold_stated and subject.threshold is not None:
            lines.append(
                f"Of 1,000 {people} {where}, {_of_1000(decisions.mean[i])} have a score of {plain(subject.threshold)} "
                f"or more, the stated threshold; of 1,000 {people} in all, {_of_1000(decisions.overall)}."
            )
        if subject.threshold is not None and min(curve.mean) >= 0 and max(curve.mean) <= 1:
            here, usual = 1000 * curve.mean[i], 1000 * curve.overall
            difference = round(here) - round(usual)
            chance = ""
            if curve.low and curve.low[i] <= curve.overall <= curve.high[i]:
                chance = ", which chance alone could explain"
            than = "as many" if not difference else f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"
            lines.append(
                f"Read as chances, the scores expect the outcome for {here:,.0f} of 1,000 {people} {where}, and for "
                f"{usual:,.0f} of 1,000 in all: {than}{chance}."
            )
    return lines or ["The score is no chance between 0 and 1 and no threshold was stated, so it cannot be counted."]


def _of_1000(share: float) -> str:
    return f"{1000 * share:,.0f}"


def _quality(report: Report) -> list[QualityRow]:
    before = {} if report.before is None else {one.key: one for one in report.before.quality}
    return [
        QualityRow(
            QUALITY[one.key],
            _shown(one.key, before[one.key].value) if one.key in before else None,
            _shown(one.key, one.value),
            _shown(one.key, one.constant),
        )
        for one in report.audit.quality
    ]


def _shown(key: str, value: float) -> str:
    return _of_1000(value) if key in ("accuracy", "auc") else figure(value)


def _cost(report: Report) -> list[str]:
    quality = {one.key: one for one in report.audit.quality}
    if not quality:
        return ["What happened is not in the data, or there is no score, so how well it predicts cannot be told."]
    lines = []
    if report.before is not None:
        lines.append(
            "The table compares the model that was chosen with the one without a penalty and with a constant, which "
            "gives everybody the same score."
        )
    else:
        lines.append("The table compares the score with a constant, which gives everybody the same score.")
    lines += _pairs_lost(report) + _no_better(quality)
    subject = report.audit.subject
    if "accuracy" in quality and not subject.threshold_stated:
        lines.append(f"No threshold was stated; a prediction counts as yes from {plain(subject.threshold or 0.5)} on.")
    return lines


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


def _trust(report: Report) -> list[str]:
    audit, rows = report.audit, report.audit.rows
    if report.tradeoff is not None:
        lines = [
            f"All numbers are from {counted(rows.used, 'row')} that had no part in training or choosing the model."
        ]
    else:
        lines = [
            f"All numbers are from {counted(rows.used, 'row')}. They hold for new rows only if the model was not "
            "trained on these."
        ]
    if rows.dropped:
        lines.append(
            f"{rows.dropped:,} of {counted(rows.given, 'row')} ({percent(rows.dropped / rows.given)}) "
            f"{'was' if rows.dropped == 1 else 'were'} left out because a value is missing."
        )
    for attribute in audit.attributes:
        hidden = sum(region.rows for region in attribute.sparse_regions)
        if hidden:
            lines.append(
                f"At some values of {attribute.name}, with {counted(hidden, 'row')}, there are too few rows to say "
                "anything."
            )
        for number in attribute.all_rows.numbers:
            if number.key == "gdp" and number.deciding_pvalue is not None:
                does = "does not explain" if number.deciding_pvalue <= audit.subject.level else "could explain"
                lines.append(f"Chance alone {does} the average gap along {attribute.name}.")
    if audit.warnings:
        remarks = "One remark" if len(audit.warnings) == 1 else f"{len(audit.warnings)} remarks"
        lines.append(f"{remarks} on the data and the model stand at the beginning of the evidence.")
    return lines


def _blind(audit: Audit) -> list[str]:
    names = _list(attribute.name for attribute in audit.attributes)
    favoured = any(attribute.positives is not None for attribute in audit.attributes)
    errors = (
        "Among those with the favourable outcome, see the evidence; other errors were not compared."
        if favoured
        else "Whether wrong decisions fall on some more than on others was not looked at."
    )
    return [
        f"Only {names} {'was' if len(audit.attributes) == 1 else 'were'} looked at, and nothing else about the people.",
        errors,
        "Whether one person would have been decided on otherwise at another value is a question about causes, which "
        "these data do not answer.",
    ]


def _origin(audit: Audit) -> tuple[tuple[str, str], ...]:
    context = audit.context
    versions = ", ".join(f"{name} {version}" for name, version in context.versions.items())
    settings = "".join(f", seed {audit.settings[key]}" for key in ("seed",) if key in audit.settings)
    facts = [
        ("Made by", context.author or "not stated"),
        ("Made on", context.made or "not stated"),
        ("Software", versions or audit.software or "not stated"),
        ("Settings", f"confidence {percent(audit.subject.confidence)}{settings}; all others at the end"),
    ]
    if context.data_sha256:
        facts.append(("Fingerprint of the data", context.data_sha256))
    if context.model_sha256:
        facts.append(("Fingerprint of the model", context.model_sha256))
    return tuple(facts)


def _list(names: Iterable[str]) -> str:
    return " and ".join(names)
