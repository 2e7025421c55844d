"""The audit itself: from arrays to an :class:`~frhsic.auditing.results.Audit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.auditing import wording
from frhsic.auditing._format import percent, plain
from frhsic.auditing.certified import certificates
from frhsic.auditing.measures import Rows, Settings, dependence, measure
from frhsic.auditing.probes import cross_fitted_scores
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Curve,
    Histogram,
    Omitted,
    Population,
    SparseRegion,
)
from frhsic.auditing.results import Rows as RowCounts

__all__ = ["audit"]

LEAST_ROWS = 20
LEAST_POSITIVES = 50
RANGE_SHARE = 0.1
BINS = 40

Watch = Callable[[str], None]


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
    watch: Watch | None = None,
) -> Audit:
    r"""Audit scores or a representation against continuous sensitive attributes.

    For each attribute: :math:`E|E[f \mid S] - E f|` (GDP) and the curve :math:`E[f \mid S = s]` with its band; HSIC,
    its normalised size and its test; kernel maximal correlation, expected conditional MMD, distance correlation and
    mutual information; how much of the attribute a linear and a tree probe recover; the same on the rows with
    y = 1; contrasts at chosen values; certificates. Each number has an interval, or the reason why it has none, and
    one plain sentence. In the population all are zero when Z and S are independent; what the estimates give on
    shuffled data stands beside them.

    Parameters
    ----------
    z
        One column is a score; several are a representation.
    s
        The sensitive attribute, or a frame or matrix with several, one per column.
    y
        Target. If 0/1 or boolean, Equal Opportunity is measured on its rows with 1. With a representation and no
        `scores`, a linear head for it is fitted out of fold and audited.
    scores
        What a head makes of the representation; by default z itself if it is one column.
    at
        Values of the attribute at which to contrast the mean score with the overall mean: a sequence, used by
        every attribute whose range holds them, or a mapping from attribute to values.
    settings
        How it is computed; see :class:`Settings`. Costly statistics use a subsample, which the result states.
    title, source, name, score_name, target_name
        For the reader. Names of pandas and polars objects are used where none is given.
    dropped
        How many rows were left out before they came here, for the record.
    watch
        Called with the name of each step as it begins.

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
    >>> found = audit(score, age, name="score", settings=Settings(resamples=50))
    >>> gap = found["s"].everyone["gdp"]
    >>> gap.interval.low < gap.value < gap.interval.high
    True
    """
    settings = Settings() if settings is None else settings
    tensors = _arrays.paired((z, "z"), (s, "s"))
    values, attributes = (_arrays.to_numpy(x).astype(np.float64) for x in tensors)
    names = _names(s, attributes.shape[1])
    n = len(values)
    _arrays.require_rows(n, LEAST_ROWS, "an audit")
    for i, attribute in enumerate(names):
        if float(np.ptp(attributes[:, i])) == 0:
            raise ValueError(f"{attribute} is constant: all {n} rows are equal, so nothing can depend on it.")
    target, target_name = _target(y, n, target_name)
    name = name or _arrays.array_name(z, "score" if values.shape[1] == 1 else "z")
    embedding = values.shape[1] > 1
    f, score_name = _scores(scores, score_name, values, target, target_name, name, settings)
    fitted = scores is None and embedding
    z_said = f"the representation “{name}”" if embedding else f"the score “{name}”"
    f_said = f"the {score_name}" if fitted else f"the score “{score_name}”"
    wanted = _wanted(at, names, attributes)

    def rows_of(columns: list[int], said: str) -> Rows:
        picked = attributes[:, columns]
        width = RANGE_SHARE * float(np.ptp(picked[:, 0]))
        return Rows(values, picked, f, width, z_said, f_said, said)

    audited = []
    for i, attribute in enumerate(names):
        tell = _teller(watch, attribute if len(names) > 1 else "")
        audited.append(_attribute(rows_of([i], attribute), attribute, wanted[i], target, target_name, settings, tell))
    joint = None
    if len(names) > 1:
        said = " and ".join([", ".join(names[:-1]), names[-1]])
        omitted: list[Omitted] = []
        rows = rows_of(list(range(len(names))), said)
        numbers = tuple(dependence(rows, settings, omitted, _teller(watch, "all together"), jointly=True))
        joint = Population(said, n, numbers, omitted=tuple(omitted))
    return Audit(
        title=title or f"{name} against {' and '.join(names)}",
        source=source,
        subject="embedding" if embedding else "score",
        subject_name=name,
        dimensions=values.shape[1],
        score_name=score_name,
        target_name=target_name,
        rows=RowCounts(given=n + dropped, dropped=dropped, used=n, subsample=min(n, settings.max_rows)),
        attributes=tuple(audited),
        joint=joint,
        notes=wording.limits(target=target is not None, embedding=embedding, several=len(names) > 1),
        warnings=tuple(_warnings(audited, attributes, names, n, dropped)),
        settings=_said(settings, n),
        software=f"frhsic {metadata.version('frhsic')}",
    )


def _attribute(
    rows: Rows,
    name: str,
    at: tuple[float, ...],
    target: np.ndarray | None,
    target_name: str | None,
    settings: Settings,
    tell: Watch,
) -> AttributeAudit:
    everyone = measure(rows, "all rows", at, settings, tell)
    finding, evidence = wording.finding(everyone, z=rows.z_said, f=None if rows.scores is None else rows.f_said, s=name)
    positives, why = _positives(rows, at, target, target_name, settings, tell)
    values = rows.s[:, 0]
    counts, edges = np.histogram(values, bins=_edges(values))
    return AttributeAudit(
        name=name,
        finding=finding,
        evidence=evidence,
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
        everyone=everyone,
        positives=positives,
        no_positives=why,
        certificates=certificates(rows, at, settings, tell),
        sparse_regions=_sparse(everyone.curve, values),
    )


def _positives(
    rows: Rows,
    at: tuple[float, ...],
    target: np.ndarray | None,
    target_name: str | None,
    settings: Settings,
    tell: Watch,
) -> tuple[Population | None, str | None]:
    """The same measures on the rows with y = 1, or why there are none."""
    if target is None:
        return None, "no target was given."
    if not set(np.unique(target)) <= {0.0, 1.0}:
        return None, (
            f"the target {target_name} has {len(np.unique(target))} values; equal opportunity asks which rows have "
            "y = 1. Pass a 0/1 target."
        )
    mask = target == 1
    count = int(mask.sum())
    if count < LEAST_POSITIVES:
        return None, f"only {count} rows have {target_name} = 1; at least {LEAST_POSITIVES} are needed."
    kept = rows.keep(mask)
    if float(np.ptp(kept.s[:, 0])) == 0:
        return None, f"{rows.s_said} is constant among the rows with {target_name} = 1."
    low, high = kept.s[:, 0].min(), kept.s[:, 0].max()
    inside = tuple(value for value in at if low <= value <= high)
    return measure(kept, f"rows with {target_name} = 1", inside, settings, lambda step: tell(f"y = 1, {step}")), None


def _scores(
    scores: Any,
    score_name: str | None,
    values: np.ndarray,
    target: np.ndarray | None,
    target_name: str | None,
    name: str,
    settings: Settings,
) -> tuple[np.ndarray | None, str | None]:
    """What f is: the scores that came, z itself if it is one column, a head fitted to the target, or nothing."""
    if scores is not None:
        given = _arrays.to_numpy(_arrays.vector(scores, "scores")).astype(np.float64)
        if len(given) != len(values):
            raise ValueError(f"lengths differ: scores has {len(given)} rows, z has {len(values)}.")
        return given, score_name or _arrays.array_name(scores, "score")
    if values.shape[1] == 1:
        return values[:, 0], score_name or name
    if target is None or float(np.ptp(target)) == 0:
        return None, None
    return cross_fitted_scores(values, target, seed=settings.seed), f"out-of-fold linear head for {target_name}"


def _target(y: Any, n: int, target_name: str | None) -> tuple[np.ndarray | None, str | None]:
    if y is None:
        return None, None
    target = _arrays.to_numpy(_arrays.vector(y, "y")).astype(np.float64)
    if len(target) != n:
        raise ValueError(f"lengths differ: y has {len(target)} rows, z has {n}.")
    return target, target_name or _arrays.array_name(y, "y")


def _names(s: Any, columns: int) -> list[str]:
    names = _arrays.column_names(s, "s", columns)
    if len(set(names)) < len(names):
        raise ValueError(f"the columns of s are named {names}; give each its own name.")
    return names


def _wanted(
    at: Sequence[float] | Mapping[str, Sequence[float]], names: list[str], attributes: np.ndarray
) -> list[tuple[float, ...]]:
    """For each attribute the values at which contrasts are asked for, checked against its range."""
    ranges = [(float(attributes[:, i].min()), float(attributes[:, i].max())) for i in range(len(names))]
    said = "; ".join(f"{name} runs from {plain(low)} to {plain(high)}" for name, (low, high) in zip(names, ranges))
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
        raise ValueError(f"at={plain(outside[0])} lies outside the data: {said}. Ask for a value inside.")
    return [tuple(sorted(set(values))) for values in asked]


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of the histogram: one bar for each whole number where these are few, else equal bars."""
    low, high = float(values.min()), float(values.max())
    if np.array_equal(values, np.round(values)):
        width = max(1, int(np.ceil((high - low + 1) / (2 * BINS))))
        return np.arange(low - 0.5, high + width + 0.5, width)
    return np.linspace(low, high, BINS + 1)


def _sparse(curve: Curve | None, values: np.ndarray) -> tuple[SparseRegion, ...]:
    """Stretches of the grid that are marked as sparse, with how many rows lie in them."""
    if curve is None:
        return ()
    regions, grid = [], np.asarray(curve.grid)
    flags = np.concatenate([[False], curve.sparse, [False]]).astype(int)
    steps = np.diff(flags)
    for first, last in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1):
        low, high = float(grid[first]), float(grid[last])
        rows = int(((values >= low) & (values <= high)).sum())
        regions.append(SparseRegion(low, high, rows, rows / len(values)))
    return tuple(regions)


def _warnings(
    audited: list[AttributeAudit], attributes: np.ndarray, names: list[str], n: int, dropped: int
) -> list[str]:
    found = []
    if dropped and dropped / (n + dropped) > 0.05:
        found.append(
            f"{percent(dropped / (n + dropped))} of the rows were dropped because a value is missing. If they differ "
            "from the others, these numbers do too."
        )
    if n < 500:
        found.append(f"There are only {n} rows; intervals are wide and the tests have little power.")
    for i, one in enumerate(audited):
        distinct = len(np.unique(attributes[:, i]))
        if distinct < 10:
            found.append(f"{names[i]} takes only {distinct} values; between them the curve is interpolation.")
        hidden = sum(region.rows for region in one.sparse_regions)
        if one.sparse_regions:
            found.append(
                f"{hidden:,} rows ({percent(hidden / n)}) lie where {names[i]} is sparse; the curve is hatched there "
                "and should not be read."
            )
        if one.positives is not None and one.positives.rows < 500:
            found.append(f"Equal opportunity rests on {one.positives.rows} rows only.")
    return list(dict.fromkeys(found))


def _said(settings: Settings, n: int) -> dict[str, str | int | float | bool]:
    return {
        "Level of the intervals": settings.level,
        "Rows of the costly statistics": min(n, settings.max_rows),
        "Rows of the probes": min(n, settings.probe_rows),
        "Bootstrap and permutations of GDP": settings.resamples,
        "Jackknife groups": settings.groups,
        "Shuffles for the value if independent": settings.shuffles,
        "Sparse below (effective rows)": settings.sparse_rows,
        "Seed": settings.seed,
    }


def _teller(watch: Watch | None, about: str) -> Watch:
    def tell(step: str) -> None:
        if watch is not None:
            watch(f"{about}: {step}" if about else step)

    return tell
