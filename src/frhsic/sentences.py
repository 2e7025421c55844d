"""The sentences of the library: what the numbers of an audit say, in plain words.

Audits hold numbers and keys. Their words stand here alone and are made where they are shown: in a report, on a
terminal, or in the ``finding`` of an audit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from frhsic.formatting import capitalized, chance, counted, figure, percent, plain, upper_figure

if TYPE_CHECKING:
    from frhsic.auditing import AttributeAudit, Audit, CertificateRow, Contrast, Curve, Number, Subject
    from frhsic.intervals import Interval

__all__ = [
    "HEADLINES",
    "LABELS",
    "SETTINGS",
    "UNIT_SCALE",
    "certificate_label",
    "certificate_sentence",
    "contrast_sentence",
    "findings",
    "label",
    "left_out",
    "score_phrase",
    "sentence",
    "subject_phrase",
    "warnings",
]

LABELS = {
    "gdp": "Generalised demographic parity (GDP)",
    "standardized_gdp": "GDP in standard deviations",
    "correlation_ratio": "Variance of the score explained, share",
    "quantile_gap": "Largest gap of a quantile of the score",
    "separation": "Association with the score given the target",
    "hsic": "HSIC",
    "hsic_effect": "HSIC, normalised",
    "distance_correlation": "Distance correlation, squared",
    "kernel_hgr": "Kernel maximal correlation (HGR)",
    "eipm": "Expected conditional MMD (EIPM)",
    "mutual_information": "Mutual information, nats",
    "probe_linear": "Recovered by a linear probe, R²",
    "probe_trees": "Recovered by boosted trees, R²",
}
"""Names of the numbers of an audit, by key."""

HEADLINES = ("gdp", "standardized_gdp", "hsic_effect", "probe_linear", "probe_trees")
"""Numbers that a reader sees first, in a report and on a terminal."""

UNIT_SCALE = frozenset(
    {"correlation_ratio", "hsic_effect", "distance_correlation", "kernel_hgr", "probe_linear", "probe_trees"}
)
"""Numbers from 0 (nothing) to 1 (everything), which can be drawn beside each other."""

SENTENCES = {
    "gdp": "The mean of {f} at a value of {s} is {value} away from its overall mean, on average over the rows."
    "{steady}{test}{sensitivity}",
    "standardized_gdp": "The same in standard deviations of {f}, so that scores which merely shrink do not look "
    "better: {value}.{steady}",
    "correlation_ratio": "{s} explains {share} of the variance of {f} through its mean, however fast that changes "
    "with {s}.",
    "quantile_gap": "Between groups along {s}, the {quantile} quantile of {f} differs by up to {value}.{shuffled}",
    "hsic": "The joint law of {z} and {s} lies {value} from independence, in squared kernel distance.{shuffled}{test}",
    "hsic_effect": "HSIC on a scale from 0 (independent) to 1 (the same distances between rows in both): {value}."
    "{shuffled}",
    "eipm": "At a typical value of {s} the law of {z} lies {value} from its overall law, in kernel distance.{shuffled}",
    "distance_correlation": "The squared correlation of distances in {z} with distances in {s} is {value}; 0 means "
    "independent."
    "{shuffled}",
    "kernel_hgr": "The best smooth function of {z} correlates at {value} with the best smooth function of {s}."
    "{shuffled}",
    "mutual_information": "Knowing {z} tells {value} nats ({bits} bits) about {s}.{low}{shuffled}",
    "separation": "Among rows with an equal {y}, the association of {f} with {s} is {value}, on a scale from 0 (none) "
    "to 1. Chance alone would show {null}.{test}",
    "probe_linear": "A linear model recovers {share} of the variance of {s} from {z}, on rows it has not seen.",
    "probe_trees": "Boosted trees recover {share} of the variance of {s} from {z}, on rows they have not seen.",
}
"""Sentences of the numbers of an audit, by key."""

FEW_DIMENSIONS = 2
LOW_INFORMATION = " In several columns, nearest neighbours find too little: the truth may be far higher."
"""What is added to the mutual information of more columns than :data:`FEW_DIMENSIONS`."""

CERTIFICATES = {
    "gap_of_these_scores": (
        "Gap of {f}, along leading directions",
        "On {rows} rows, the part of {f} along {directions} has a root mean square of at most {value}. What {f} does "
        "outside these directions ({unresolved} of its variance) is not bounded, even where it depends on {s}.",
    ),
    "gap_of_every_head": (
        "Gap of every head of norm 1, along leading directions",
        "On {rows} rows, the part along {directions} has a root mean square of at most {value} for every {head}. "
        "Functions of larger norm, and what a function does outside these directions, are not bounded.",
    ),
    "population_hsic": (
        "HSIC in the population",
        "If the {rows} rows are independent draws and played no part in fitting {z}: with probability at least "
        "{confidence}, HSIC of {z} and {s} in the population that they come from is at most {value} (Gaussian kernels "
        "with bandwidths of about {bandwidth_z} and {bandwidth_s}, fixed on other rows).",
    ),
    "contrast": (
        "Law of {z} near {at}",
        "On {rows} rows, each weighted by the Gaussian kernel of bandwidth about {bandwidth_s} between its {s} and "
        "{at}: the weighted mean differs from the mean over all of these rows by at most {value} for every {head}.",
    ),
}
"""Names and sentences of certificates, by key; a contrast has its value in the key, such as ``contrast_at_30``."""

SETTINGS = {
    "confidence": "Level of the intervals",
    "max_rows": "Rows of the costly statistics",
    "probe_rows": "Rows of the probes",
    "resamples": "Resamples of GDP",
    "shuffles": "Shuffles for the value if independent",
    "sparse_rows": "Sparse below (rows)",
    "seed": "Seed",
    "kernel_z": "Kernel on Z",
    "kernel_s": "Kernel on S",
    "features": "Random features of HSIC",
    "sample_rows": "Rows of the random sample",
}
"""Names of the settings of an audit, by key."""


def subject_phrase(subject: Subject) -> str:
    """Return a phrase for Z, such as “the score “risk”” or “the representation of the model”."""
    return _phrase("representation" if subject.kind == "embedding" else "score", subject.name)


def score_phrase(subject: Subject) -> str:
    """Return a phrase for the scores f."""
    return f"the {subject.score_name}" if subject.score_fitted else _phrase("score", subject.score_name or "score")


def _phrase(kind: str, name: str) -> str:
    """Return a name with its kind, unless the name says it already."""
    if name.lower() == kind:
        return f"the {kind}"
    own = name.startswith((f"{kind} of ", "probability of ", "predicted "))
    return f"the {name}" if own else f"the {kind} “{name}”"


def label(key: str) -> str:
    """Return the name of a number; of an unknown one, its key."""
    return LABELS.get(key, key)


def sentence(number: Number, subject: Subject, s: str) -> str:
    """Return the sentence of a number about `subject` and the attribute named `s`.

    A p-value counts as chance when it is above the subject's level, one minus the confidence of the audit.
    """
    null, pvalue, test = number.under_independence, number.deciding_pvalue, ""
    fine, coarse = (number.settings.get(f"value at {share} the resolution") for share in ("half", "twice"))
    if pvalue is not None:
        verdict = "does not explain" if pvalue <= subject.level else "could explain"
        test = f" Chance alone {verdict} it (p {chance(pvalue)})."
    text = SENTENCES.get(number.key, "{key}: {value}.").format(
        key=number.key,
        f=score_phrase(subject),
        z=subject_phrase(subject),
        s=s,
        value=figure(number.value),
        bits=figure(number.value / math.log(2)),
        share="nothing" if number.value <= 0 else percent(number.value),
        shuffled="" if null is None else f" With {s} shuffled it is {figure(null)}.",
        steady="" if null is None else f" If its mean did not move with {s}, chance would show {figure(null)}.",
        test=test,
        sensitivity=(
            f" At half the resolution it is {figure(fine)}, at twice {figure(coarse)}."
            if isinstance(fine, float) and isinstance(coarse, float)
            else ""
        ),
        y=subject.target_name or "target",
        null=figure(null),
        low=LOW_INFORMATION if subject.dimensions > FEW_DIMENSIONS else "",
        quantile=plain(float(number.settings.get("quantile", 0.5))),
    )
    return capitalized(text)


def contrast_sentence(contrast: Contrast, curve: Curve, subject: Subject, s: str) -> str:
    """Return the sentence of a contrast at one value of the attribute; `curve` has the overall mean."""
    side = "above" if contrast.value > 0 else "below"
    text = (
        f"Near {s} = {plain(contrast.at)} the mean of {score_phrase(subject)} is {figure(abs(contrast.value))} {side} "
        f"its overall mean of {figure(curve.overall)}"
    )
    if contrast.start is not None and contrast.end is not None:
        text += f": the mean of all rows with {s} from {plain(contrast.start)} to {plain(contrast.end)}"
    text += "."
    return text + (" Too few rows are near to trust this." if contrast.sparse else "")


def certificate_label(row: CertificateRow, subject: Subject) -> str:
    """Return the name of a certificate; of an unknown one, its key."""
    kind, _, at = row.key.partition("_at_")
    template = CERTIFICATES.get(kind, (row.key, ""))[0]
    return template.format(f=score_phrase(subject), z=subject_phrase(subject), at=at)


def certificate_sentence(row: CertificateRow, subject: Subject, s: str) -> str:
    """Return the sentence of a certificate, and why it says nothing where it is vacuous."""
    kind, _, at = row.key.partition("_at_")
    settings = {name: value for name, value in row.settings.items() if isinstance(value, (int, float))}
    width_z, width_s = (figure(settings.get(name)) for name in ("bandwidth_z", "bandwidth_s"))
    z, share = subject_phrase(subject), math.floor(100 * settings.get("share", 0) + 1e-6)
    outside = settings.get("unresolved", 1.0)
    if subject.kind == "embedding":
        width_z += " (each column divided by its spread)"
    text = CERTIFICATES.get(kind, ("", "The bound is {value}."))[1].format(
        f=score_phrase(subject),
        z=z,
        s=s,
        at=f"{settings['at']:.15g}" if "at" in settings else at,
        rows=f"{row.rows:,}",
        value=upper_figure(row.value),
        confidence="" if row.confidence is None else f"{100 * row.confidence:.10g} %",  # 99.97 % is not 100 %
        head=f"function of {z} with norm at most 1 in the space of its Gaussian kernel of bandwidth about {width_z}",
        directions=f"{settings.get('directions', 0):,} of up to {settings.get('all_directions', 0):,} principal "
        f"directions of {s} ({'all' if share >= 100 else f'at least {share} %'} of its variance in the space of its "
        f"Gaussian kernel of bandwidth about {width_s})",
        unresolved=f"about {percent(outside)}" if outside >= 0.001 else "less than 0.1 %",
        bandwidth_z=width_z,
        bandwidth_s=width_s,
    )
    if row.vacuous:
        text += f" This says nothing: {upper_figure(row.trivial or 0.0)} holds anyway, because {row.trivial_because}."
    return text


def findings(attribute: AttributeAudit) -> list[str]:
    """Return the finding about an attribute in one sentence, and the sentences that it rests on."""
    subject, s, population = attribute.subject, attribute.name, attribute.all_rows
    z, numbers = subject_phrase(subject), {number.key: number for number in population.numbers}
    lines = []
    if population.curve is not None and "gdp" in numbers:
        lines += _gap(numbers["gdp"], population.curve.overall, subject, s)
    test = numbers.get("hsic")
    decisive = None if test is None else test.deciding_pvalue
    if test is not None and decisive is not None:
        by = chance(decisive)
        if decisive <= subject.level:
            lines.append(f"{capitalized(z)} and {s} are dependent (HSIC test, p {by}).")
        else:
            rows = counted(test.rows, "row")
            lines.append(f"The HSIC test finds no dependence between {z} and {s} in {rows} (p {by}).")
    given = numbers.get("separation")
    conditional = None if given is None else given.deciding_pvalue
    if given is not None and conditional is not None:
        depends = "depends" if conditional <= subject.level else "is not seen to depend"
        lines.append(
            f"Among rows with an equal {subject.target_name}, {score_phrase(subject)} {depends} on {s} "
            f"(p {chance(conditional)})." + (f" {given.settings['caution']}" if "caution" in given.settings else "")
        )
    probes = [numbers[key] for key in ("probe_linear", "probe_trees") if key in numbers]
    if probes:
        best = max(probes, key=lambda number: number.value)
        model = "a linear model" if best.key == "probe_linear" else "boosted trees"
        if best.value < 0.01:
            lines.append(f"Neither a linear model nor boosted trees recover {s} from {z}.")
        else:
            lines.append(f"From {z} alone, {model} can recover {percent(best.value)} of the variance of {s}.")
    return lines


def _gap(number: Number, overall: float, subject: Subject, s: str) -> list[str]:
    interval, null, f = number.interval, number.under_independence, capitalized(score_phrase(subject))
    moves = number.deciding_pvalue is not None and number.deciding_pvalue <= subject.level
    gap, mean = figure(number.value), figure(overall)
    if moves:
        lines = [f"{f} moves with {s}: on average over the rows it is {gap} away from its overall mean of {mean}."]
    elif number.value == 0:
        lines = [f"{f} is not seen to move with {s}: no gap around {mean} is left once chance is allowed for."]
    else:
        lines = [f"{f} is not seen to move with {s}: chance alone could show the average gap of {gap} around {mean}."]
    if interval is not None and null is not None:
        lines.append(
            f"The {percent(interval.confidence)} interval for this gap (GDP) is {figure(interval.low)} to "
            f"{figure(interval.high)}; if {s} made no difference, chance alone would show about {figure(null)}."
        )
    return lines


def warnings(audit: Audit) -> list[str]:
    """Return what a careful reader of an audit should know about its data."""
    lines, n, dropped, given = [], audit.rows.used, audit.rows.dropped, audit.rows.given
    if dropped and dropped / given > 0.05:
        lines.append(
            f"{percent(dropped / given)} of the rows were dropped because a value is missing. If they differ "
            "from the others, these numbers do too."
        )
    if n < 500:
        lines.append(f"The audit has only {counted(n, 'row')}; intervals are wide and the tests have little power.")
    for attribute in audit.attributes:
        if attribute.distinct < 10:
            lines.append(
                f"{attribute.name} takes only {counted(attribute.distinct, 'value')}; between them the curve is "
                "interpolation."
            )
        hidden = sum(region.rows for region in attribute.sparse_regions)
        if attribute.sparse_regions:
            lines.append(
                f"{counted(hidden, 'row')} ({percent(hidden / n)}) {'lies' if hidden == 1 else 'lie'} where "
                f"{attribute.name} is sparse; the curve is hatched there and should not be read."
            )
        if attribute.positives is not None and attribute.positives.rows < 500:
            lines.append(f"Equal opportunity rests on {counted(attribute.positives.rows, 'row')} only.")
    return list(dict.fromkeys(lines))


def left_out(lost: int, rows: int, names: Sequence[str], interval: Interval | None = None) -> str:
    """Return the sentences about rows that lack an attribute, and how the scores of the others differ from theirs.

    `interval` is that of the mean score of the rows with the attributes, less the mean score of those without.

    Examples
    --------
    >>> left_out(20, 100, ["age"])
    '20 of 100 rows lack age and are left out.'
    """
    lack = "lacks {} and is" if lost == 1 else "lack {} and are"
    text = f"{lost:,} of {counted(rows, 'row')} {lack.format(' or '.join(names))} left out."
    if interval is None:
        return text
    middle = (interval.low + interval.high) / 2
    text += (
        f" The mean score of the other rows is {figure(abs(middle))} {'above' if middle > 0 else 'below'} theirs "
        f"({percent(interval.confidence)} interval {figure(interval.low)} to {figure(interval.high)})"
    )
    if interval.low <= 0 <= interval.high:
        return f"{text}, which chance alone could explain."
    return f"{text}: these numbers need not hold for the rows that are left out."
