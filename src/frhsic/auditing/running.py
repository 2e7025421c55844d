"""The function :func:`audit`: from arrays to an :class:`~frhsic.auditing.results.Audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frhsic.auditing.certificates import certificates
from frhsic.auditing.inputs import Inputs, Outcome
from frhsic.auditing.limits import Limits, checked, limits_of
from frhsic.auditing.measures import SPARSE, Rows, Settings, between_levels, dependence, gap_alone, measure
from frhsic.auditing.quality import base_rate, qualities
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Context,
    GroupAudit,
    Histogram,
    Law,
    Population,
    RowCounts,
    Subject,
)
from frhsic.formatting import capitalized, plain
from frhsic.intervals import holm
from frhsic.probes import cross_fitted_scores

LEAST_POSITIVES = 50
BINS = 40


def audit(
    z: Any,
    s: Any,
    y: Any = None,
    *,
    scores: Any = None,
    positive: object = None,
    favourable: object = None,
    sample_weight: Any = None,
    groups: Any = None,
    limit: Limits = (),
    threshold: float | None = None,
    settings: Settings | None = None,
    context: Context | None = None,
) -> Audit:
    r"""Audit scores or a representation against continuous sensitive attributes.

    For each attribute it measures :math:`E|E[f \mid S] - E f|` (GDP) and the mean score in groups along S with a
    simultaneous band; the same of decisions at the threshold, of wrong decisions and of the target less the score; the
    rank gap, and the share of the variance of f that S explains; HSIC, its normalised size and its test, and distance
    correlation; how much of the attribute a linear and a tree probe recover; the same on the rows with the favourable
    outcome; contrasts at chosen values; and certificates. In the population all are zero when Z and S are independent,
    except that errors may depend on S anyway; the value of each estimate on independent data is given beside it.

    Parameters
    ----------
    z
        One column is a score; several are a representation. Two columns between 0 and 1 whose rows sum to 1 are the
        output of ``predict_proba``: the second is the score.
    s
        The sensitive attribute, or a frame or matrix with several, one per column. In a Series or a frame, bands such
        as "30-39" and ordered categories become numbers, and a remark says so. Rows without a value are left out and
        counted. A column of a frame with up to 12 other texts, such as sex, holds groups: their mean scores are
        compared, and the gap along each attribute is measured within each of them.
    y
        Target: numbers, or with `positive` anything. If it has two values, Equal Opportunity is measured on the rows
        with the favourable one. Of other targets, a test asks whether the scores depend on the attribute among rows
        with an equal target (separation). With a representation and no `scores`, a linear head for the target is fitted
        out of fold and audited.
    scores
        Scores of a head on the representation; by default z itself if it has one column.
    positive
        Value of y that counts as 1; any other is 0.
    favourable
        Value of y that is good for a person, such as "repaid" where the score is a probability of default. Equal
        Opportunity is measured on its rows. By default the positive value.
    sample_weight
        Weights of the rows. Gaps and performance use them as weights; measures of dependence, probes and certificates
        keep rows at random in proportion to them.
    groups
        Labels of rows that belong together, such as several rows of one person. Gaps and performance count groups;
        measures of dependence, probes and certificates use one row of each, drawn at random.
    limit
        Limits on numbers that have an interval: ``"gdp=0.05"``, or ``"gdp=10% of base rate"`` (the mean of y or,
        without y, of the scores); a list or a mapping for several. ``eo`` is GDP among the rows with the favourable
        outcome (Equal Opportunity), ``eo.hsic`` HSIC among them. ``decision_ratio=0.8`` is a least value: the lowest
        share of decisions along the attribute over the highest (four-fifths rule); ``error_gdp`` limits wrong
        decisions. The interval decides whether a limit is kept.
    threshold
        Score from which on the decision is yes. By default 0.5 for scores between 0 and 1; other scores have none.
    settings
        How the audit is computed; see :class:`Settings`. Costly statistics use a subsample of `max_rows` rows.
    context
        Names for the report, and who decides what about whom; see :class:`Context`.

    Returns
    -------
    Audit
        Plain data; ``audit.to_json()`` writes it, :func:`frhsic.report.text` and :func:`frhsic.report.write` show it.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> age = random.uniform(20, 60, 400)
    >>> score = 0.01 * age + 0.1 * random.standard_normal(400)
    >>> result = audit(score, age, settings=Settings(resamples=50))
    >>> gap = result["s"].all_rows["gdp"]
    >>> gap.interval.low < gap.value < gap.interval.high
    True
    """
    settings, limits = settings or Settings(), limits_of(limit)
    inputs = Inputs.of(
        z, s, y, scores, positive=positive, favourable=favourable, sample_weight=sample_weight, groups=groups
    )
    if y is None and any(one.among == "favourable" for one in limits):
        raise ValueError("a limit of eo is about the rows with the favourable outcome; pass the target y as well.")
    return finished(audited(inputs, threshold, settings, context or Context()), limits)


def audited(inputs: Inputs, threshold: float | None, settings: Settings, context: Context) -> Audit:
    """Return the audit of checked arrays, before its limits are checked."""
    outcome, n = inputs.outcome, len(inputs.values)
    name, f, score_name = context.name or inputs.name, inputs.scores, inputs.score_name
    fitted = False
    if inputs.values.shape[1] == 1 and f is None:
        f, score_name = inputs.values[:, 0], name
    elif f is None and outcome is not None and float(np.ptp(outcome.codes)) > 0:
        f = cross_fitted_scores(inputs.values, outcome.codes, groups=inputs.groups, seed=settings.seed)
        score_name, fitted = f"linear head for {outcome.name}", True
    span = None if f is None else (float(f.min()), float(f.max()))
    rated = f if outcome is None else outcome.codes
    subject = with_threshold(
        Subject(
            name=name,
            dimensions=inputs.values.shape[1],
            score_name=None if f is None else score_name,
            score_fitted=fitted,
            target_name=None if outcome is None else outcome.name,
            positive=None if outcome is None else outcome.positive,
            favourable=None if outcome is None else outcome.favourable,
            favours_high=None if outcome is None else outcome.favours_high,
            confidence=settings.confidence,
            base_rate=None if rated is None else base_rate(rated, settings.confidence, inputs.weights, inputs.groups),
            span=span,
        ),
        threshold,
    )
    y_codes = None if outcome is None else outcome.codes
    rows = Rows(inputs.values, inputs.attributes, f, y_codes, inputs.weights, inputs.groups, subject.threshold)
    asked, several = _requested(settings.at, inputs.names, inputs.attributes), len(inputs.names) > 1
    attributes = [
        _attribute(rows.along(i), name, asked[i], outcome, settings.about(name) if several else settings)
        for i, name in enumerate(inputs.names)
    ]
    joint = None
    if several:
        omitted: dict[str, str] = {}
        together = settings.about("all together")
        numbers = tuple(dependence(rows.independent(settings), together, omitted, probed=False))
        joint = Population(n, numbers, omitted=omitted)
    effective = _effective(rows)
    dropped = inputs.lost + context.dropped
    counts = RowCounts(
        context.given or n + dropped,
        dropped,
        n,
        min(rows.independent(settings).count, settings.max_rows),
        None if inputs.groups is None else len(np.unique(inputs.groups)),
        inputs.weights is not None,
    )
    quality = (
        () if f is None or y_codes is None else qualities(f, y_codes, subject.threshold, rows.weights, rows.groups)
    )
    title = context.title or f"{capitalized(name)} against {' and '.join(inputs.names)}"
    return Audit(
        subject=subject,
        rows=counts,
        attributes=tuple(attributes),
        score=None if f is None else law_of(f, rows.weights, effective),
        joint=joint,
        groups=tuple(
            GroupAudit(name, *_groups(rows, labels, inputs.names, settings))
            for name, labels in inputs.unordered.items()
            if f is not None
        ),
        quality=tuple(quality),
        settings=settings.plain(),
        context=replace(context, title=title, name=name, remarks=(*context.remarks, *inputs.notes)),
    )


def finished(audit: Audit, limits: Sequence[Any]) -> Audit:
    """Return an audit with p-values adjusted for the number of attributes, and with its limits checked."""
    audit = replace(audit, attributes=tuple(_adjusted(list(audit.attributes))))
    return replace(audit, limits=checked(audit, limits))


def with_threshold(subject: Subject, threshold: float | None) -> Subject:
    """Return the subject with a threshold of decisions, by default 0.5 for scores between 0 and 1."""
    if threshold is None:
        return replace(subject, threshold=0.5 if subject.chances else None)
    low, high = subject.span or (threshold, threshold)
    if not low <= threshold <= high:
        raise ValueError(
            f"threshold={plain(threshold)} is outside the scores, which run from {plain(low)} to {plain(high)}: all "
            "decisions would be the same."
        )
    return replace(subject, threshold=float(threshold), threshold_stated=True)


def _groups(
    rows: Rows, labels: np.ndarray, names: Sequence[str], settings: Settings
) -> tuple[tuple[str, ...], Population, dict[str, tuple[Population, ...]]]:
    """Return the levels of unordered groups, their mean scores, and the gap along each attribute within each."""
    distinct, counts = np.unique(labels, return_counts=True)
    labels = np.where(np.isin(labels, distinct[counts >= SPARSE]), labels, "others")
    levels, codes = np.unique(labels, return_inverse=True)
    bare = replace(rows, y=None, threshold=None)
    settings.tell("groups")
    between = between_levels(replace(bare, s=codes[:, None].astype(np.float64)), len(levels), settings)
    parts = [bare.keep(codes == i) for i in range(len(levels))]
    within = [[gap_alone(part.along(i), settings) for part in parts] for i in range(len(names))]
    tested = [one.numbers[0] for row in within for one in row if one.numbers]
    adjusted = dict(zip(map(id, tested), holm([number.pvalue or 0.0 for number in tested])))
    final = [
        tuple(
            replace(one, numbers=tuple(replace(n, adjusted_pvalue=adjusted[id(n)]) for n in one.numbers)) for one in row
        )
        for row in within
    ]
    return tuple(levels.tolist()), between, dict(zip(names, final))


def _attribute(
    rows: Rows, name: str, at: tuple[float, ...], outcome: Outcome | None, settings: Settings
) -> AttributeAudit:
    values = rows.s[:, 0]
    whole = np.array_equal(values, np.round(values))
    counts, edges = np.histogram(values, bins=histogram_edges(float(values.min()), float(values.max()), whole))
    favoured = favoured_rows(rows, at, outcome, settings)
    return AttributeAudit(
        name=name,
        distinct=len(np.unique(values)),
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
        law=law_of(values, rows.weights, _effective(rows)),
        all_rows=measure(rows, at, settings),
        positives=None if isinstance(favoured, str) else favoured,
        no_positives=favoured if isinstance(favoured, str) else None,
        certificates=tuple(certificates(rows, settings)),
    )


def favoured_rows(rows: Rows, at: tuple[float, ...], outcome: Outcome | None, settings: Settings) -> Population | str:
    """Return the same measures on the rows with the favourable outcome, or why there are none."""
    if outcome is None or outcome.favoured is None:
        return "no_target" if outcome is None else "not_binary"
    kept = replace(rows.keep(outcome.favoured), y=None)
    if kept.count < LEAST_POSITIVES:
        return "few_rows"
    low, high = kept.s[:, 0].min(), kept.s[:, 0].max()
    if low == high:
        return "constant"
    inside = tuple(value for value in at if low <= value <= high)
    return measure(kept, inside, settings.about("favourable outcome"), probed=False)


def _adjusted(audited: list[AttributeAudit]) -> list[AttributeAudit]:
    """Return the audits with p-values adjusted over the attributes (Holm), of all rows and of the favoured ones."""
    if len(audited) == 1:
        return audited
    for part in ("all_rows", "positives"):
        populations = [getattr(attribute, part) for attribute in audited]
        numbers = [
            (i, n) for i, p in enumerate(populations) if p is not None for n in p.numbers if n.pvalue is not None
        ]
        for key in {number.key for _, number in numbers}:
            tested = [(i, number) for i, number in numbers if number.key == key]
            for (i, number), pvalue in zip(tested, holm([number.pvalue for _, number in tested])):
                changed = replace(number, adjusted_pvalue=pvalue)
                kept = tuple(changed if n is number else n for n in populations[i].numbers)
                populations[i] = replace(populations[i], numbers=kept)
        audited = [replace(attribute, **{part: p}) for attribute, p in zip(audited, populations)]
    return audited


def _effective(rows: Rows) -> float:
    """Return the effective number of rows, or of groups."""
    weights = np.ones(rows.count) if rows.weights is None else rows.weights
    sums = weights if rows.groups is None else np.bincount(rows.groups, weights)
    return float(sums.sum() ** 2 / (sums**2).sum())


def law_of(values: np.ndarray, weights: np.ndarray | None, effective: float) -> Law:
    """Return the distribution of a variable."""
    distinct, place = np.unique(values, return_inverse=True)
    return Law.of(distinct, np.bincount(place, weights), effective)


def _requested(
    at: Sequence[float] | Mapping[str, Sequence[float]], names: Sequence[str], attributes: np.ndarray
) -> list[tuple[float, ...]]:
    """Return the values of each attribute at which contrasts are requested, checked against its range."""
    ranges = [(float(column.min()), float(column.max())) for column in attributes.T]
    if isinstance(at, Mapping):
        unknown = [name for name in at if name not in names]
        if unknown:
            raise ValueError(f"at names {unknown[0]!r}, which is not audited; the attributes are {', '.join(names)}.")
        asked = [tuple(float(value) for value in at.get(name, ())) for name in names]
        outside = [v for values, (low, high) in zip(asked, ranges) for v in values if not low <= v <= high]
    else:
        listed = [float(value) for value in at]
        asked = [tuple(v for v in listed if low <= v <= high) for low, high in ranges]
        outside = [v for v in listed if not any(low <= v <= high for low, high in ranges)]
    if outside:
        spans = "; ".join(f"{name} runs from {plain(low)} to {plain(high)}" for name, (low, high) in zip(names, ranges))
        raise ValueError(f"at={plain(outside[0])} lies outside the data: {spans}. Pass a value inside.")
    return [tuple(sorted(set(values))) for values in asked]


def histogram_edges(low: float, high: float, whole: bool) -> np.ndarray:
    """Return the edges of the histogram: whole numbers get bars of their own if they are few, else bars are equal."""
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / (2 * BINS))))
        return np.arange(low - 0.5, high + width + 0.5, width)
    return np.linspace(low, high, BINS + 1)
