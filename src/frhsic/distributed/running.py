"""The function :func:`audit` for a Dask data frame, which makes two passes over the rows and audits
a sample.

The first pass collects samples and ranges; the second pass collects the sums from which the numbers
on all rows are computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic import _lazy
from frhsic.auditing.comparing import parse_audit_limits
from frhsic.auditing.gaps import gap_column, gap_keys, gaps_from_sums
from frhsic.auditing.performance import rate_number
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Context,
    Histogram,
    Number,
    Population,
    Subject,
)
from frhsic.auditing.rows import Rows
from frhsic.auditing.running import (
    Inputs,
    audit_inputs,
    favoured_rows,
    finish_audit,
    histogram_edges,
    named_target,
    require_enough_rows,
    with_threshold,
)
from frhsic.auditing.settings import Settings
from frhsic.distributed.frames import require_frame_columns
from frhsic.distributed.parts import ColumnEnds, Parts, Sample, SampledCells, add_results
from frhsic.parity.limits import LimitLike
from frhsic.parity.strata import Strata
from frhsic.parity.sums import ScoreSums
from frhsic.splits import subsample
from frhsic.tables.columns import common_name, level_text, numbers
from frhsic.tables.targets import is_positive, positive_labels

if TYPE_CHECKING:  # these need torch
    from frhsic.distributed.features import FeaturePlan
    from frhsic.independence.features import FeatureMoments

FEATURES = 128
SAMPLE_ROWS = 20_000
SLICE = 4096  # rows whose random features are in memory at once

# The sums of each attribute for each gap; None for an attribute that is constant.
GapSums = tuple[tuple[ScoreSums, ...] | None, ...]


def audit(
    frame: Any,
    *,
    sensitive: str | Sequence[str],
    score: str | None = None,
    embedding: Sequence[str] = (),
    target: str | None = None,
    positive: object = None,
    favourable: object = None,
    control_features: str | Sequence[str] = (),
    limit: LimitLike = None,
    threshold: float | None = None,
    settings: Settings | None = None,
    sample_rows: int = SAMPLE_ROWS,
    context: Context | None = None,
) -> Audit:
    r"""Audit columns of a Dask data frame for dependence on continuous sensitive attributes, in two
    passes over its rows.

    Numbers that can be computed from sums over rows use all rows: the gaps with their intervals,
    tests and curves, HSIC from random features with its test, and the histogram of each attribute.
    All other numbers are computed on a random sample of the rows. The result does not depend on how
    the rows are divided into partitions, up to rounding. A worker needs memory for one partition
    per thread.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Frame to audit. Rows with a missing value in a named column are dropped, and their number is
        reported.
    sensitive : str or list of str
        Columns of the sensitive attributes, as numbers.
    score : str, optional
        Column of scores.
    embedding : list of str
        Columns of a representation; without a representation, the score itself is audited.
    target, positive, favourable, limit, threshold, context
        As in :func:`frhsic.audit`; `target` is the name of a column.
    control_features : str or list of str
        Columns of the controls, as in :func:`frhsic.audit`. The sample determines the strata, each
        with at least 50 sampled rows; the gaps within strata use all rows.
    settings : Settings, optional
        As in :func:`frhsic.audit`. The seed determines the random features and the sample.
    sample_rows : int
        Number of rows in the sample, at least 1,000.

    Returns
    -------
    Audit
        As returned by :func:`frhsic.audit`. Each number states how many rows it was computed from.

    Notes
    -----
    Rows are numbered in the order of the frame, and a hash of this number determines the sample.
    The edges of groups along an attribute come from the sample; the rows in each group are counted
    exactly. The interval of HSIC combines the standard error due to the features with the standard
    error due to the rows, which is the standard error in the sample divided by the square root of
    the ratio of all rows to sampled rows.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> age = np.tile(np.arange(20.0, 60.0), 50)
    >>> frame = dd.from_pandas(pd.DataFrame({"age": age, "score": age / 100}), npartitions=2)
    >>> quick = Settings(fast=True, resamples=20)
    >>> audit(frame, sensitive="age", score="score", settings=quick, sample_rows=1000)
    <Audit of 'score' on 2,000 rows, age: gdp=0.0999>
    """
    settings = settings or Settings()
    limits = parse_audit_limits(limit)
    attributes = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if score is None and not embedding:
        raise ValueError("nothing to audit; pass score=COLUMN or embedding=[COLUMN, ...].")
    if not attributes:
        raise ValueError("sensitive is empty; name at least one column.")
    if sample_rows < 1000:
        raise ValueError(f"sample_rows={sample_rows}; pass at least 1000.")
    columns = tuple(embedding) or (str(score),)
    named = (control_features,) if isinstance(control_features, str) else tuple(control_features)
    roles = Roles(columns, attributes, score, target, positive, favourable, named)
    require_frame_columns(frame, roles.columns)
    settings.tell("counting rows")
    parts = Parts.of(frame, roles.columns, seed=settings.seed)
    settings.tell(f"first pass over {parts.rows:,} rows")
    first: AuditSketch | None = parts.sum(partial(roles.sketch, most=sample_rows, total=parts.rows))
    if first is None:
        require_enough_rows(0, parts.rows, {}, roles.columns)
    assert first is not None
    if named:
        roles = replace(roles, strata=Strata.fit(first.everyone.sample.table[list(named)]))
    _, block = roles.complete(first.everyone.sample.table)
    _check_rows(first, block, parts.rows, roles)
    about_target = None
    if target is not None and block.y is not None and block.favoured is not None:
        labels = positive_labels(positive, [positive])
        label = labels[0] if len(labels) == 1 else " or ".join(map(level_text, labels))
        about_target = named_target(target, label, favourable, block.y, block.favoured)
        if favourable is None and not (first.target and first.target.binary):
            block = replace(block, favoured=None)
            first = first._replace(favoured=None)
    name = common_name(columns) if embedding else columns[0]
    notes = () if roles.strata is None else roles.strata.notes
    if block.count < first.everyone.rows:
        notes = tuple(f"In the random sample: {note}" for note in notes)
    inputs = Inputs(block, attributes, name, score or "score", about_target, notes=notes)
    dropped = parts.rows - first.everyone.rows
    about = replace(context or Context(), given=parts.rows, dropped=dropped)
    sampled = audit_inputs(inputs, threshold, settings.about("sample"), about)
    subject = _subject(sampled.subject, first, threshold)
    plan = AuditPass.of(roles, first, block, subject, settings)
    settings.tell(f"second pass over {parts.rows:,} rows")
    sums: AuditSums = parts.sum(plan.sums)
    every = [
        _on_all_rows(attribute, i, plan, sums, settings)
        for i, attribute in enumerate(sampled.attributes)
    ]
    counts = replace(sampled.rows, used=first.everyone.rows, sample=block.count)
    how = sampled.settings | {"features": FEATURES}
    return finish_audit(
        replace(sampled, subject=subject, rows=counts, attributes=tuple(every), settings=how),
        limits,
    )


@dataclass(frozen=True)
class Roles:
    """The columns of a frame, by role: Z (or only the score), attributes, score, target and
    controls. The strata are added when they are known.
    """

    z: tuple[str, ...]
    s: tuple[str, ...]
    score: str | None
    target: str | None
    positive: object
    favourable: object
    controls: tuple[str, ...]
    strata: Strata | None = None

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        named = (*self.z, *self.s, self.score, self.target, *self.controls)
        return list(dict.fromkeys(name for name in named if name is not None))

    def complete(self, table: pd.DataFrame) -> tuple[pd.DataFrame, Rows]:
        """Return the rows without missing values (except in controls), as a table and as
        numbers.
        """

        def columns(*names: str) -> np.ndarray:
            return np.column_stack([numbers(table[name], f"column {name!r}") for name in names])

        z = columns(*self.z)
        s = columns(*self.s)
        f = None if self.score is None else columns(self.score)[:, 0]
        known = ~(np.isnan(s).any(axis=1) | np.isnan(z).any(axis=1))
        if f is not None:
            known &= ~np.isnan(f)
        y = None
        favoured = None
        if self.target is not None:
            target = table[self.target]
            if self.positive is None:
                y = columns(self.target)[:, 0]
            else:
                labels = positive_labels(self.positive, [self.positive])
                y = np.max([is_positive(target, label, self.target) for label in labels], axis=0)
            known &= target.notna().to_numpy() & ~np.isnan(y)
            favoured = y == 1
            if self.favourable is not None:
                favoured = is_positive(target, self.favourable, self.target) == 1
        strata = None if self.strata is None else self.strata.codes(table[list(self.controls)])
        rows = Rows(z, s, f, y, favoured, strata=strata, controls=self.strata)
        return (table, rows) if known.all() else (table[known], rows.keep(known))

    def sketch(self, table: pd.DataFrame, most: int, total: int) -> AuditSketch | None:
        """Return the result of the first pass over a partition, with its part of the samples, given
        the maximum size of a sample and the total number of rows; None if no row is complete.
        """
        table, rows = self.complete(table)
        if not rows.count:
            return None
        favoured = None
        if rows.favoured is not None:
            own = Sample.of(table[rows.favoured], most, total)
            favoured = PopulationSketch(int(rows.favoured.sum()), own)
        return AuditSketch(
            PopulationSketch(rows.count, Sample.of(table, most, total)),
            favoured,
            tuple(map(ColumnSummary.of, rows.s.T)),
            None if rows.scores is None else ColumnSummary.of(rows.scores),
            None if rows.y is None else ColumnSummary.of(rows.y),
        )


@dataclass(frozen=True)
class ColumnSummary:
    """Range of a column, sums of its values and of their squares, and whether all values are whole
    numbers, or all are 0 or 1.
    """

    low: float
    high: float
    total: float
    squares: float
    whole: bool
    binary: bool

    @classmethod
    def of(cls, x: np.ndarray) -> ColumnSummary:
        """Summarize a column."""
        return cls(
            low=float(x.min()),
            high=float(x.max()),
            total=float(x.sum()),
            squares=float(x @ x),
            whole=bool(np.array_equal(x, np.round(x))),
            binary=bool(((x == 0) | (x == 1)).all()),
        )

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        return ColumnSummary(
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            total=self.total + other.total,
            squares=self.squares + other.squares,
            whole=self.whole and other.whole,
            binary=self.binary and other.binary,
        )


class PopulationSketch(NamedTuple):
    """Number of rows of a population, with a sample of them."""

    rows: int
    sample: Sample


class AuditSketch(NamedTuple):
    """Results of the first pass: sketches of all complete rows and of the rows with the favorable
    outcome, and summaries of attributes, scores and target.
    """

    everyone: PopulationSketch
    favoured: PopulationSketch | None
    attributes: tuple[ColumnSummary, ...]
    scores: ColumnSummary | None
    target: ColumnSummary | None


@dataclass(frozen=True, eq=False)
class PopulationPlan:
    """Plan for computing the gaps in one population from sums: the cells along each attribute,
    learned from a sample of the rows (None for a constant attribute), and statistics of the column
    of each gap.
    """

    rows: int
    sample: Rows
    cells: tuple[SampledCells | None, ...]
    columns: dict[str, ColumnEnds]

    @classmethod
    def of(cls, rows: int, sample: Rows, *, binary: bool | None, chances: bool) -> PopulationPlan:
        """Create the plan from a sample; `binary` and `chances` are as in :func:`gap_keys`."""
        n_strata = 1 if sample.controls is None else sample.controls.other + 1
        columns = {}
        if sample.scores is not None:
            keys = gap_keys(binary=binary, chances=chances, threshold=sample.threshold)
            columns = {key: ColumnEnds.of(_gap_column(key, sample)) for key in keys}
        cells = tuple(
            None if np.ptp(s) == 0 else SampledCells.of(s, rows, None, sample.strata, n_strata)
            for s in sample.s.T
        )
        return cls(rows, sample, cells, columns)

    def sums(self, rows: Rows) -> GapSums | None:
        """Return the sums over the given rows: for each attribute, the sums for each gap."""
        if not rows.count:
            return None
        rows = replace(rows, threshold=self.sample.threshold)
        columns = [_gap_column(key, rows) for key in self.columns]
        known = [*self.columns.values()]
        return tuple(
            None if cells is None else cells.sums(columns, known, s, None, rows.strata)
            for cells, s in zip(self.cells, rows.s.T)
        )

    def replaced(
        self,
        population: Population,
        i: int,
        sums: GapSums | None,
        numbers: Sequence[Number],
        settings: Settings,
    ) -> Population:
        """Return the population of the sample, with its numbers, curves and count replaced with
        those of all rows.
        """
        cells = self.cells[i]
        own = None if sums is None else sums[i]
        if own and cells is not None:
            controls = self.sample.controls
            strata = () if self.sample.strata is None else np.unique(self.sample.strata)
            names = [] if controls is None else [controls.names[code] for code in strata]
            keyed = dict(zip(self.columns, own))
            y = self.sample.y
            binary = y is not None and bool(((y == 0) | (y == 1)).all())
            summed = gaps_from_sums(
                keyed,
                cells.cells,
                settings,
                controls,
                names,
                binary=binary,
                attributes=len(self.cells),
            )
            numbers = [*numbers, *summed.numbers]
            population = replace(summed, numbers=population.numbers)
        new = {number.key: number for number in numbers}
        kept = tuple(new.pop(number.key, number) for number in population.numbers)
        return replace(population, rows=self.rows, numbers=(*kept, *new.values()))


def _gap_column(key: str, rows: Rows) -> np.ndarray:
    assert rows.scores is not None
    return gap_column(key, rows.scores, rows.y, rows.threshold)


class AuditSums(NamedTuple):
    """Sums of the second pass over rows: gaps among all rows and among the rows with the favorable
    outcome, dependence by attribute, and histograms.
    """

    everyone: GapSums | None
    favoured: GapSums | None
    dependence: tuple[FeatureMoments | None, ...]
    histograms: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class AuditPass:
    """Plan of the second pass; `features` and `edges` are keyed by attribute."""

    roles: Roles
    everyone: PopulationPlan
    favoured: PopulationPlan | None
    features: tuple[FeaturePlan | None, ...]
    edges: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls, roles: Roles, first: AuditSketch, sample: Rows, subject: Subject, settings: Settings
    ) -> AuditPass:
        """Create the plan from the results of the first pass and the audit of the sample."""
        sample = replace(sample, threshold=subject.threshold)
        binary = None if first.target is None else first.target.binary
        chances = subject.chances
        favoured = None
        if first.favoured is not None and first.favoured.rows:
            _, own = roles.complete(first.favoured.sample.table)
            own = replace(own, threshold=subject.threshold)
            count = first.favoured.rows
            favoured = PopulationPlan.of(count, own, binary=None, chances=chances)
        features: tuple[FeaturePlan | None, ...] = (None,) * sample.s.shape[1]
        if _lazy.has_torch():
            from frhsic.distributed.features import feature_plan

            chosen = subsample(sample.count, settings.max_rows, settings.generator(1))
            features = tuple(
                feature_plan(sample.z[chosen], column[chosen, None], FEATURES, settings.seed)
                for column in sample.s.T
            )
        return cls(
            roles=roles,
            everyone=PopulationPlan.of(first.everyone.rows, sample, binary=binary, chances=chances),
            favoured=favoured,
            features=features,
            edges=tuple(histogram_edges(s.low, s.high, s.whole) for s in first.attributes),
        )

    def sums(self, table: pd.DataFrame) -> AuditSums:
        """Return the sums over the rows of one partition."""
        _, rows = self.roles.complete(table)
        favoured = None
        if self.favoured is not None and rows.favoured is not None:
            favoured = self.favoured.sums(rows.keep(rows.favoured))
        moments: list[FeatureMoments | None] = [None] * len(self.features)
        # a shift keeps more digits and doesn't change HSIC under a Gaussian
        z = rows.z - self.everyone.sample.z.mean(axis=0)
        s = rows.s - self.everyone.sample.s.mean(axis=0)
        for start in range(0, rows.count, SLICE):
            some = slice(start, start + SLICE)
            for i, features in enumerate(self.features):
                if features is not None:
                    own = features.moments(z[some], s[some, i : i + 1])
                    moments[i] = add_results(moments[i], own)
        return AuditSums(
            self.everyone.sums(rows),
            favoured,
            tuple(moments),
            tuple(np.histogram(x, bins=edges)[0] for x, edges in zip(rows.s.T, self.edges)),
        )


def _check_rows(first: AuditSketch, block: Rows, given: int, roles: Roles) -> None:
    """Raise an error if there are too few complete rows, if an attribute is constant, or if a class
    does not occur.
    """
    ranges = {name: (column.low, column.high) for name, column in zip(roles.s, first.attributes)}
    require_enough_rows(first.everyone.rows, given, ranges, roles.columns)
    named = roles.positive if roles.favourable is None else roles.favourable
    if named is not None and (block.favoured is None or not block.favoured.any()):
        count = 0 if first.favoured is None else first.favoured.rows
        raise ValueError(
            f"{count:,} of {first.everyone.rows:,} rows have {named!r} as {roles.target}, but no"
            " row of the sample does; check the spelling of this value, or raise sample_rows."
        )


def _subject(sampled: Subject, first: AuditSketch, threshold: float | None) -> Subject:
    """Return the subject of the sample's audit, with the ranges, base rate and threshold of all
    rows.
    """
    rated = first.target or first.scores
    rate = None
    rows = first.everyone.rows
    if rated is not None:
        mean = rated.total / rows
        error = math.sqrt(max(rated.squares / rows - mean**2, 0.0) / max(rows - 1, 1))
        rate = rate_number(
            mean, error, rows, rows, binary=rated.binary, confidence=sampled.confidence
        )
    subject = replace(sampled, base_rate=rate)
    if first.scores is None:  # then the scores are those of a head on the sample, if any
        return subject
    return with_threshold(replace(subject, span=(first.scores.low, first.scores.high)), threshold)


def _on_all_rows(
    attribute: AttributeAudit, i: int, plan: AuditPass, sums: AuditSums, settings: Settings
) -> AttributeAudit:
    """Return the audit of an attribute, with the numbers of the sample replaced with those of all
    rows.
    """
    features = plan.features[i]
    moments = sums.dependence[i]
    sampled = attribute.all_rows.get("hsic")
    dependence = []
    if features is not None and moments is not None and sampled is not None:
        dependence.append(features.number(sampled, moments, settings.confidence))
    all_rows = plan.everyone.replaced(attribute.all_rows, i, sums.everyone, dependence, settings)
    positives = attribute.positives
    if plan.favoured is not None:
        if positives is None:  # too few sampled rows have the favorable outcome
            positives = favoured_rows(plan.favoured.sample.select_attribute(i), settings)
        if positives is not None:
            positives = plan.favoured.replaced(positives, i, sums.favoured, (), settings)
    return replace(
        attribute,
        histogram=Histogram(tuple(plan.edges[i].tolist()), tuple(sums.histograms[i].tolist())),
        all_rows=all_rows,
        positives=positives,
    )
