"""The function :func:`audit`: from arrays to an :class:`~frhsic.auditing.results.Audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.auditing.certificates import certificates
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
from frhsic.formatting import plain
from frhsic.probes import cross_fitted_scores
from frhsic.sentences import subject_phrase

LEAST_ROWS = 20
LEAST_POSITIVES = 50
BINS = 40


def audit(
    z: Any,
    s: Any,
    y: Any = None,
    *,
    scores: Any = None,
    at: Sequence[float] | Mapping[str, Sequence[float]] = (),
    settings: Settings | None = None,
    title: str | None = None,
    source: str = "",
    name: str | None = None,
    score_name: str | None = None,
    target_name: str | None = None,
    dropped: int = 0,
    sample_weight: Any = None,
    clusters: Any = None,
    watch: Watch | None = None,
) -> Audit:
    r"""Audit scores or a representation against continuous sensitive attributes.

    For each attribute it measures :math:`E|E[f \mid S] - E f|` (GDP), the mean score in groups along S with a
    simultaneous band, the share of the variance of f that S explains, and the largest gap of its quantiles;
    HSIC, its normalised size and its test; kernel maximal correlation, expected conditional MMD, distance
    correlation and mutual information; how much of the attribute a linear and a tree probe recover; the same on the
    rows with y = 1; contrasts at chosen values; and certificates. Each number has an interval, or the reason why it has
    none. In the population all are zero when Z and S are independent; the value of each estimate on shuffled data is
    given beside it.

    Parameters
    ----------
    z
        One column is a score; several are a representation.
    s
        The sensitive attribute, or a frame or matrix with several, one per column.
    y
        Target. If it is 0/1 or boolean, Equal Opportunity is measured on the rows with 1. Of other targets, a test
        asks whether the scores depend on the attribute among rows with an equal target (separation). With a
        representation and no `scores`, a linear head for the target is fitted out of fold and audited.
    scores
        Scores of a head on the representation; by default z itself if it has one column.
    at
        Values of the attribute at which to contrast the mean score with the overall mean: a sequence, used by
        every attribute whose range holds them, or a mapping from attribute to values.
    settings
        How the audit is computed; see :class:`Settings`. Costly statistics use a subsample of `max_rows` rows.
    title, source, name, score_name, target_name
        Names for the report. By default those of pandas and polars objects.
    dropped
        Number of rows that were left out before, for the record.
    sample_weight
        Weights of the rows for GDP, the curve, the correlation ratio and the contrasts. The other measures do not use
        them.
    clusters
        Labels of rows that belong together, such as several rows of one person, for GDP, the curve and the contrasts.
        The other measures take the rows as independent.
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
    tensors = _arrays.paired((z, "z"), (s, "s"))
    values, attributes = (_arrays.to_numpy(x).astype(np.float64) for x in tensors)
    names = _arrays.column_names(s, "s", attributes.shape[1])
    if len(set(names)) < len(names):
        raise ValueError(f"the columns of s are named {names}; give each its own name.")
    n = len(values)
    _arrays.require_rows(n, LEAST_ROWS, "an audit")
    for i, attribute in enumerate(names):
        if float(np.ptp(attributes[:, i])) == 0:
            raise ValueError(f"{attribute} is constant: all {n} rows are equal, so nothing can depend on it.")
    target = None if y is None else _column(y, "y", n)
    target_name = None if y is None else target_name or _arrays.array_name(y, "y")
    name = name or _arrays.array_name(z, "score" if values.shape[1] == 1 else "z")
    embedding = values.shape[1] > 1
    f, score_name = _scores(scores, score_name, values, target, target_name, name, settings)
    subject = Subject(
        "embedding" if embedding else "score",
        name,
        values.shape[1],
        score_name,
        scores is None and embedding and f is not None,
        target_name,
        settings.confidence,
    )
    requested = _requested(at, names, attributes)
    weights = None if sample_weight is None else _column(sample_weight, "sample_weight", n)
    labels = None if clusters is None else np.asarray(clusters)

    def rows_of(columns: list[int], s_name: str) -> Rows:
        return Rows(values, attributes[:, columns], f, subject_phrase(subject), s_name, weights, labels)

    audited = []
    for i, attribute in enumerate(names):
        step = prefixed(watch, attribute if len(names) > 1 else "")
        audited.append(_attribute(rows_of([i], attribute), subject, requested[i], target, settings, step))
    audited = _adjusted(audited)
    joint = None
    if len(names) > 1:
        together = " and ".join([", ".join(names[:-1]), names[-1]])
        omitted: list[Omitted] = []
        step = prefixed(watch, "all together")
        numbers = tuple(dependence(rows_of(list(range(len(names))), together), settings, omitted, step, jointly=True))
        joint = Population(together, n, numbers, omitted=tuple(omitted))
    return Audit(
        title=title or f"{name} against {' and '.join(names)}",
        source=source,
        subject=subject,
        rows=RowCounts(given=n + dropped, dropped=dropped, used=n, subsample=min(n, settings.max_rows)),
        attributes=tuple(audited),
        joint=joint,
        settings=settings.plain() | {"max_rows": min(n, settings.max_rows), "probe_rows": min(n, settings.probe_rows)},
        software=f"frhsic {metadata.version('frhsic')}",
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
    target: np.ndarray | None,
    settings: Settings,
    watch: Watch,
) -> AttributeAudit:
    all_rows = measure(rows, "all rows", at, settings, watch)
    if target is not None and not _binary(target):
        watch("separation")
        all_rows = _with_separation(all_rows, rows, target, settings)
    positives = _positives(rows, at, target, subject.target_name, settings, watch)
    values = rows.s[:, 0]
    counts, edges = np.histogram(values, bins=_edges(values))
    return AttributeAudit(
        name=rows.s_name,
        subject=subject,
        distinct=len(np.unique(values)),
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
        all_rows=all_rows,
        positives=None if isinstance(positives, str) else positives,
        no_positives=positives if isinstance(positives, str) else None,
        certificates=tuple(certificates(rows, at, settings, watch)),
        sparse_regions=_sparse(all_rows.curve, values),
    )


def _binary(target: np.ndarray) -> bool:
    return set(np.unique(target)) <= {0.0, 1.0}


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


def _positives(
    rows: Rows,
    at: tuple[float, ...],
    target: np.ndarray | None,
    target_name: str | None,
    settings: Settings,
    watch: Watch,
) -> Population | str:
    """Return the same measures on the rows with y = 1, or why there are none."""
    if target is None:
        return "no target was given."
    distinct = np.unique(target)
    if not _binary(target):
        return (
            f"the target {target_name} has {len(distinct)} values; equal opportunity asks which rows have y = 1. Pass "
            "a 0/1 target, or see separation, which compares rows with an equal target."
        )
    kept = rows.keep(target == 1)
    if kept.count < LEAST_POSITIVES:
        return f"only {kept.count} rows have {target_name} = 1; at least {LEAST_POSITIVES} are needed."
    low, high = kept.s[:, 0].min(), kept.s[:, 0].max()
    if low == high:
        return f"{rows.s_name} is constant among the rows with {target_name} = 1."
    inside = tuple(value for value in at if low <= value <= high)
    return measure(kept, f"rows with {target_name} = 1", inside, settings, prefixed(watch, "y = 1"))


def _adjusted(audited: list[AttributeAudit]) -> list[AttributeAudit]:
    """Return the audits with the p-values of all rows, and of those with y = 1, adjusted over the attributes (Holm)."""
    if len(audited) == 1:
        return audited
    for part in ("all_rows", "positives"):
        populations = [getattr(attribute, part) for attribute in audited]
        for key in ("gdp", "hsic", "separation"):
            numbers = [(i, n) for i, p in enumerate(populations) if p is not None for n in p.numbers if n.key == key]
            tested = [(i, n) for i, n in numbers if n.pvalue is not None]
            least = 0.0
            for rank, (i, number) in enumerate(sorted(tested, key=lambda pair: pair[1].pvalue)):
                least = max(least, min(1.0, (len(tested) - rank) * number.pvalue))
                changed = replace(number, adjusted_pvalue=least)
                kept = tuple(changed if n is number else n for n in populations[i].numbers)
                populations[i] = replace(populations[i], numbers=kept)
        audited = [replace(attribute, **{part: p}) for attribute, p in zip(audited, populations)]
    return audited


def _scores(
    scores: Any,
    score_name: str | None,
    values: np.ndarray,
    target: np.ndarray | None,
    target_name: str | None,
    name: str,
    settings: Settings,
) -> tuple[np.ndarray | None, str | None]:
    """Return f and its name: the given scores, z itself if it has one column, a head fitted to the target, or None."""
    if scores is not None:
        return _column(scores, "scores", len(values)), score_name or _arrays.array_name(scores, "score")
    if values.shape[1] == 1:
        return values[:, 0], score_name or name
    if target is None or float(np.ptp(target)) == 0:
        return None, None
    return cross_fitted_scores(values, target, seed=settings.seed), f"out-of-fold linear head for {target_name}"


def _column(x: Any, name: str, n: int) -> np.ndarray:
    column = _arrays.to_numpy(_arrays.vector(x, name)).astype(np.float64)
    if len(column) != n:
        raise ValueError(f"lengths differ: {name} has {len(column)} rows, z has {n}.")
    return column


def _requested(
    at: Sequence[float] | Mapping[str, Sequence[float]], names: list[str], attributes: np.ndarray
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


def _edges(values: np.ndarray) -> np.ndarray:
    """Return the edges of the histogram: whole numbers get bars of their own if they are few, else bars are equal."""
    low, high = float(values.min()), float(values.max())
    if np.array_equal(values, np.round(values)):
        width = max(1, int(np.ceil((high - low + 1) / (2 * BINS))))
        return np.arange(low - 0.5, high + width + 0.5, width)
    return np.linspace(low, high, BINS + 1)


def _sparse(curve: Curve | None, values: np.ndarray) -> tuple[SparseRegion, ...]:
    """Return the ranges of S that are marked as sparse, with the number of rows in them."""
    if curve is None:
        return ()
    regions = []
    flags = np.concatenate([[False], curve.sparse, [False]]).astype(int)
    steps = np.diff(flags)
    for first, last in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1):
        low, high = curve.start[first], curve.end[last]
        rows = int(((values >= low) & (values <= high)).sum())
        regions.append(SparseRegion(low, high, rows, rows / len(values)))
    return tuple(regions)
