"""The function :func:`audit`: from arrays to an :class:`~frhsic.auditing.results.Audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.auditing.certificates import certificates
from frhsic.auditing.inputs import Inputs, Outcome
from frhsic.auditing.measures import Rows, Settings, Watch, dependence, measure, separation
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Curve,
    Histogram,
    Omitted,
    Population,
    RowCounts,
    SparseRegion,
    Subject,
)
from frhsic.auditing.scores import are_probabilities, qualities
from frhsic.auditing.stated import Context, Limits, checked, limits_of
from frhsic.formatting import capitalized, plain
from frhsic.intervals import holm
from frhsic.probes import cross_fitted_scores
from frhsic.sentences import subject_phrase

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
    at: Sequence[float] | Mapping[str, Sequence[float]] = (),
    settings: Settings | None = None,
    title: str | None = None,
    source: str = "",
    name: str | None = None,
    score_name: str | None = None,
    target_name: str | None = None,
    dropped: int = 0,
    given: int | None = None,
    sample_weight: Any = None,
    clusters: Any = None,
    limit: Limits = (),
    threshold: float | None = None,
    context: Context | None = None,
    watch: Watch | None = None,
) -> Audit:
    r"""Audit scores or a representation against continuous sensitive attributes.

    For each attribute it measures :math:`E|E[f \mid S] - E f|` (GDP), the mean score in groups along S with a
    simultaneous band, the share of the variance of f that S explains, and the largest gap of its quantiles;
    HSIC, its normalised size and its test; kernel maximal correlation, expected conditional MMD, distance
    correlation and mutual information; how much of the attribute a linear and a tree probe recover; the same on the
    rows with the favourable outcome; contrasts at chosen values; and certificates. Each number has an interval, or the
    reason why it has none. In the population all are zero when Z and S are independent; the value of each estimate on
    shuffled data is given beside it.

    Parameters
    ----------
    z
        One column is a score; several are a representation. Two columns between 0 and 1 whose rows sum to 1 are the
        output of ``predict_proba``: the second is the score.
    s
        The sensitive attribute, or a frame or matrix with several, one per column. In a Series or a frame, bands such
        as "30-39" and ordered categories become numbers, and a remark says so. Rows without a value are left out and
        counted.
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
    at
        Values of the attribute at which to contrast the mean score with the overall mean: a sequence, used by
        every attribute whose range holds them, or a mapping from attribute to values.
    settings
        How the audit is computed; see :class:`Settings`. Costly statistics use a subsample of `max_rows` rows.
    title, source, name, score_name, target_name
        Names for the report. By default those of pandas and polars objects.
    dropped
        Number of rows that were left out before because a value is missing, for the record.
    given
        Number of rows of the whole table, if rows were left out for other reasons too, such as those that trained a
        model; by default the rows that are here and those that were dropped.
    sample_weight
        Weights of the rows for GDP, the curve, the correlation ratio and the contrasts. The other measures do not use
        them.
    clusters
        Labels of rows that belong together, such as several rows of one person. GDP, the curve and the contrasts count
        clusters. Dependence, probes and certificates use one row of each, drawn at random. The correlation ratio and
        the gap of quantiles take the rows as independent.
    limit
        Limits on numbers that have an interval: ``"gdp=0.05"``, or ``"gdp=10%"`` of the base rate (the mean of y or,
        without y, of the scores); a list or a mapping for several. ``eo`` is GDP among the rows with the favourable
        outcome (Equal Opportunity), ``eo.hsic`` HSIC among them. The interval decides whether a limit is kept.
    threshold
        Score from which on the decision is yes. By default 0.5 for scores between 0 and 1; other scores have none.
    context
        Who decides what about whom, for the first page of the report; see :class:`Context`.
    watch
        Function that is called with the name of each step as it begins.

    Returns
    -------
    Audit
        Plain data; ``audit.to_json()`` writes it, :func:`frhsic.report.write` shows it.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> age = random.uniform(20, 60, 400)
    >>> score = 0.01 * age + 0.1 * random.standard_normal(400)
    >>> result = audit(score, age, name="score", settings=Settings(resamples=50))
    >>> gap = result["s"].all_rows["gdp"]
    >>> gap.interval.low < gap.value < gap.interval.high
    True
    """
    settings = Settings() if settings is None else settings
    limits = limits_of(limit)
    inputs = Inputs.of(
        z,
        s,
        y,
        scores,
        name=name,
        target_name=target_name,
        positive=positive,
        favourable=favourable,
        sample_weight=sample_weight,
        clusters=clusters,
    )
    if inputs.outcome is None and any(one.among == "favourable" for one in limits):
        raise ValueError("a limit of eo is about the rows with the favourable outcome; pass the target y as well.")
    values, attributes, names, name = inputs.values, inputs.attributes, inputs.names, inputs.name
    n, outcome = len(values), inputs.outcome
    embedding = values.shape[1] > 1
    if inputs.scores is not None:
        score_name = score_name or _arrays.array_name(scores, "score")
    f, score_name = _scores(inputs, score_name, settings)
    stated, chances = threshold is not None, f is not None and are_probabilities(f)
    if threshold is None and chances:
        threshold = 0.5
    rated = f if outcome is None else outcome.codes
    subject = Subject(
        "embedding" if embedding else "score",
        name,
        values.shape[1],
        score_name,
        scores is None and embedding and f is not None,
        None if outcome is None else outcome.name,
        settings.confidence,
        None if threshold is None else float(threshold),
        stated,
        None if rated is None else float(np.average(rated, weights=inputs.weights)),
        chances,
        None if outcome is None else outcome.favourable,
        None if outcome is None else outcome.favours_high,
    )
    requested = _requested(at, names, attributes)
    independent = n if inputs.clusters is None else len(np.unique(inputs.clusters))

    def rows_of(columns: list[int], s_name: str) -> Rows:
        words = subject_phrase(subject)
        return Rows(values, attributes[:, columns], f, words, s_name, inputs.weights, inputs.clusters, threshold)

    audited = []
    for i, attribute in enumerate(names):
        step = prefixed(watch, attribute if len(names) > 1 else "")
        audited.append(_attribute(rows_of([i], attribute), subject, requested[i], outcome, settings, step))
    audited = adjusted(audited)
    joint = None
    if len(names) > 1:
        together = " and ".join([", ".join(names[:-1]), names[-1]])
        omitted: list[Omitted] = []
        step = prefixed(watch, "all together")
        numbers = tuple(dependence(rows_of(list(range(len(names))), together), settings, omitted, step, jointly=True))
        joint = Population(together, n, numbers, omitted=tuple(omitted))
    return Audit(
        title=title or f"{capitalized(name)} against {' and '.join(names)}",
        source=source,
        subject=subject,
        rows=RowCounts(
            given=n + inputs.lost + dropped if given is None else given,
            dropped=inputs.lost + dropped,
            used=n,
            subsample=min(independent, settings.max_rows),
        ),
        attributes=tuple(audited),
        joint=joint,
        remarks=inputs.remarks,
        settings=settings.plain()
        | {key: min(independent, getattr(settings, key)) for key in ("max_rows", "probe_rows")},
        software=f"frhsic {metadata.version('frhsic')}",
        limits=tuple(checked(attribute, one, subject.base_rate) for one in limits for attribute in audited),
        quality=() if f is None or outcome is None else tuple(qualities(f, outcome.codes, threshold)),
        context=context or Context(),
    )


def prefixed(watch: Watch | None, about: str) -> Watch:
    """Return a watch that puts `about` before the name of each step; without `watch` it does nothing."""

    def step(name: str) -> None:
        if watch is not None:
            watch(f"{about}: {name}" if about else name)

    return step


def _attribute(
    rows: Rows,
    subject: Subject,
    at: tuple[float, ...],
    outcome: Outcome | None,
    settings: Settings,
    watch: Watch,
) -> AttributeAudit:
    all_rows = measure(rows, "all rows", at, settings, watch)
    if outcome is not None and outcome.favoured is None:
        watch("separation")
        all_rows = _with_separation(all_rows, rows, outcome.codes, settings)
    positives = favoured_rows(rows, at, outcome, settings, watch)
    values = rows.s[:, 0]
    whole = np.array_equal(values, np.round(values))
    counts, edges = np.histogram(values, bins=histogram_edges(float(values.min()), float(values.max()), whole))
    return AttributeAudit(
        name=rows.s_name,
        subject=subject,
        distinct=len(np.unique(values)),
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
        all_rows=all_rows,
        positives=None if isinstance(positives, str) else positives,
        no_positives=positives if isinstance(positives, str) else None,
        certificates=tuple(certificates(rows, at, settings, watch)),
        sparse_regions=sparse_regions(all_rows.curve),
    )


def _with_separation(population: Population, rows: Rows, target: np.ndarray, settings: Settings) -> Population:
    """Return the population with the test of scores and attribute given the target, or with why there is none."""
    if rows.clusters is not None:
        reason = "rows are clustered, which this test does not allow for."
    else:
        try:
            return replace(population, numbers=(*population.numbers, separation(rows, target, settings)))
        except ValueError as error:  # constant scores, target or attribute among the rows that were drawn
            reason = str(error)
    return replace(population, omitted=(*population.omitted, Omitted("separation", reason)))


def favoured_rows(
    rows: Rows,
    at: tuple[float, ...],
    outcome: Outcome | None,
    settings: Settings,
    watch: Watch,
) -> Population | str:
    """Return the same measures on the rows with the favourable outcome, or why there are none."""
    if outcome is None:
        return "no target was given."
    if outcome.favoured is None:
        distinct = len(np.unique(outcome.codes))
        return (
            f"the target {outcome.name} has {distinct} values; equal opportunity asks which rows have the favourable "
            "one. Pass a 0/1 target, or see separation, which compares rows with an equal target."
        )
    kept, which = rows.keep(outcome.favoured), outcome.favoured_name.removeprefix("rows with ")
    if kept.count < LEAST_POSITIVES:
        return f"only {kept.count} rows have {which}; at least {LEAST_POSITIVES} are needed."
    low, high = kept.s[:, 0].min(), kept.s[:, 0].max()
    if low == high:
        return f"{rows.s_name} is constant among the rows with {which}."
    inside = tuple(value for value in at if low <= value <= high)
    return measure(kept, outcome.favoured_name, inside, settings, prefixed(watch, "favourable outcome"))


def adjusted(audited: list[AttributeAudit]) -> list[AttributeAudit]:
    """Return the audits with p-values adjusted over the attributes (Holm), of all rows and of the favoured ones."""
    if len(audited) == 1:
        return audited
    for part in ("all_rows", "positives"):
        populations = [getattr(attribute, part) for attribute in audited]
        for key in ("gdp", "hsic", "separation"):
            numbers = [(i, n) for i, p in enumerate(populations) if p is not None for n in p.numbers if n.key == key]
            tested = [(i, n) for i, n in numbers if n.pvalue is not None]
            for (i, number), pvalue in zip(tested, holm([number.pvalue for _, number in tested])):
                changed = replace(number, adjusted_pvalue=pvalue)
                kept = tuple(changed if n is number else n for n in populations[i].numbers)
                populations[i] = replace(populations[i], numbers=kept)
        audited = [replace(attribute, **{part: p}) for attribute, p in zip(audited, populations)]
    return audited


def _scores(inputs: Inputs, score_name: str | None, settings: Settings) -> tuple[np.ndarray | None, str | None]:
    """Return f and its name: the given scores, z itself if it has one column, a head fitted to the target, or None."""
    if inputs.scores is not None:
        return inputs.scores, score_name
    if inputs.values.shape[1] == 1:
        return inputs.values[:, 0], score_name or inputs.name
    outcome = inputs.outcome
    if outcome is None or float(np.ptp(outcome.codes)) == 0:
        return None, None
    scores = cross_fitted_scores(inputs.values, outcome.codes, groups=inputs.clusters, seed=settings.seed)
    return scores, f"out-of-fold linear head for {outcome.name}"


def _requested(
    at: Sequence[float] | Mapping[str, Sequence[float]], names: Sequence[str], attributes: np.ndarray
) -> list[tuple[float, ...]]:
    """Return the values of each attribute at which contrasts are requested, checked against its range."""
    ranges = [(float(attributes[:, i].min()), float(attributes[:, i].max())) for i in range(len(names))]
    spans = "; ".join(f"{name} runs from {plain(low)} to {plain(high)}" for name, (low, high) in zip(names, ranges))
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
        raise ValueError(f"at={plain(outside[0])} lies outside the data: {spans}. Pass a value inside.")
    return [tuple(sorted(set(values))) for values in asked]


def histogram_edges(low: float, high: float, whole: bool) -> np.ndarray:
    """Return the edges of the histogram: whole numbers get bars of their own if they are few, else bars are equal."""
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / (2 * BINS))))
        return np.arange(low - 0.5, high + width + 0.5, width)
    return np.linspace(low, high, BINS + 1)


def sparse_regions(curve: Curve | None) -> tuple[SparseRegion, ...]:
    """Return the ranges of S that are marked as sparse, with the number of rows in them."""
    if curve is None:
        return ()
    regions = []
    flags = np.concatenate([[False], curve.sparse, [False]]).astype(int)
    steps = np.diff(flags)
    for first, last in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1):
        rows = int(sum(curve.rows[first : last + 1]))
        regions.append(SparseRegion(curve.start[first], curve.end[last], rows, rows / sum(curve.rows)))
    return tuple(regions)
