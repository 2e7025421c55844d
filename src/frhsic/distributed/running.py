"""The function :func:`audit` for a Dask data frame: two passes over the rows, then the audit of a
sample.

The first pass finds samples and ranges, the second the sums that the numbers of all rows are made
from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic import _lazy
from frhsic.auditing.comparing import parse_audit_limits
from frhsic.auditing.measures import (
    Settings,
    gap_column,
    gap_keys,
    gaps_from_sums,
    rate_number,
)
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Context,
    Histogram,
    Law,
    Number,
    Population,
    Subject,
)
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
from frhsic.distributed.frames import (
    KeyedRows,
    Roles,
    add_results,
    first_rows,
    require_frame_columns,
    sum_over_partitions,
)
from frhsic.parity.limits import LimitLike
from frhsic.parity.strata import Strata
from frhsic.parity.sums import Cells, ScoreSums
from frhsic.splits import subsample
from frhsic.tables.columns import common_name

if TYPE_CHECKING:  # which need torch
    from frhsic.distributed.features import FeaturePlan
    from frhsic.independence.features import FeatureMoments

FEATURES = 128
SAMPLE_ROWS = 20_000
# Most distinct values of an attribute that are counted; beyond that, ranks come from the sample.
MOST_VALUES = 4096
LOOK = 20_000
# Rows that partitions send for each row of the sample: those with the smallest hashes.
CANDIDATES = 16
SLICE = 4096  # rows whose random features are in memory at once


# The sums of each attribute for each gap; None without scores.
GapSums = tuple[tuple[ScoreSums, ...] | None, ...] | None


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
    r"""Audit columns of a Dask data frame against continuous sensitive attributes, in two passes
    over its rows.

    Sums over rows are computed on all rows: the gaps with their intervals, tests and curves, HSIC
    by random features with its test, and the histogram of each attribute. All other numbers are
    computed on a random sample of the rows. Up to rounding, the result does not depend on the
    partitions. A worker holds one partition per thread in memory.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        Rows with a missing value in one of the columns that are named are left out and counted.
    sensitive : str or list of str
        Columns of the sensitive attributes, as numbers.
    score : str, optional
        Column of scores.
    embedding : list of str
        Columns of a representation; without them the score itself is audited.
    target, positive, favourable, limit, threshold, context
        As in :func:`frhsic.audit`; `target` is a column.
    control_features : str or list of str
        Columns of the controls, as in :func:`frhsic.audit`. The sample decides on the strata, each
        of which has at least 50 of its rows; their gaps count all rows.
    settings : Settings, optional
        As in :func:`frhsic.audit`. The seed decides the random features and the sample.
    sample_rows : int
        Rows of the sample, at least 1,000.

    Returns
    -------
    Audit
        As of :func:`frhsic.audit`. The number of rows that it was computed from stands beside each
        number.

    Notes
    -----
    Rows are numbered in the order of the frame, and a hash of this number decides on the sample. An
    attribute with more than 4,096 different values gets the borders of its groups from
    the sample; the rows in them are counted exactly. The interval of HSIC adds the standard error
    of the features to that of the rows, which is taken from the sample and divided by the root of
    the ratio of the numbers of rows.

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
    roles = Roles(columns, attributes, score, target, positive, favourable, settings.seed, named)
    require_frame_columns(frame, roles.columns)
    settings.tell("counting rows")
    parts = frame[roles.columns].to_delayed()
    starts = first_rows(parts)
    settings.tell(f"first pass over {starts[-1]:,} rows")
    first = sum_over_partitions(parts, roles, starts, first_pass, (sample_rows, starts[-1]))
    everyone = _check_sample(first, roles)
    block = everyone.block
    about_target = None
    if (
        target is not None
        and block.y is not None
        and block.favoured is not None
        and first.target is not None
    ):
        about_target = named_target(target, positive, favourable, block.y, block.favoured)
        if favourable is None and not first.target.binary:
            block = replace(block, favoured=None)
            first = first._replace(favoured=None)
    name = common_name(columns) if embedding else columns[0]
    notes: tuple[str, ...] = ()
    if named:
        block = with_strata(block, control_strata(block, named))
        assert block.controls is not None
        notes = block.controls.notes
        if block.count < everyone.rows:
            notes = tuple(f"In the random sample: {note}" for note in notes)
    inputs = Inputs(block, attributes, name, score or "score", about_target, notes=notes)
    dropped = first.given - everyone.rows
    about = replace(context or Context(), given=first.given, dropped=dropped)
    sampled = audit_inputs(inputs, threshold, settings.about("sample"), about)
    subject = _subject(sampled.subject, first, everyone.rows, threshold)
    plan = _plan(first, everyone, subject, settings, block.controls)
    settings.tell(f"second pass over {starts[-1]:,} rows")
    sums = sum_over_partitions(parts, roles, starts, second_pass, plan)
    every = [
        _on_all_rows(attribute, i, plan, sums, first, settings)
        for i, attribute in enumerate(sampled.attributes)
    ]
    counts = replace(sampled.rows, used=everyone.rows, sample=block.count)
    how = sampled.settings | {"features": FEATURES}
    return finish_audit(
        replace(sampled, subject=subject, rows=counts, attributes=tuple(every), settings=how),
        limits,
    )


def control_strata(block: KeyedRows, names: Sequence[str]) -> Strata:
    """Return the strata of a sample of the rows."""
    return Strata.fit(_control_table(block, names))


def with_strata(block: KeyedRows, strata: Strata) -> KeyedRows:
    """Return rows with the number of the stratum of each."""
    names = [column.name for column in strata.columns]
    return replace(block, strata=strata.codes(_control_table(block, names)), controls=strata)


def _control_table(block: KeyedRows, names: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(block.values, columns=pd.Index(names)).infer_objects()


@dataclass(frozen=True, eq=False)
class ColumnSummary:
    """Range of a column, sums of its numbers and of their squares, and whether all are whole, and
    all 0 or 1.

    `counts` says how often each value occurs; None if they are many, or not counted.
    """

    low: float
    high: float
    total: float
    squares: float
    whole: bool
    binary: bool
    counts: pd.Series[int] | None = None

    @classmethod
    def from_values(cls, x: np.ndarray | None, *, counted: bool = False) -> ColumnSummary | None:
        """Return what is known of some rows; None if there are none."""
        if x is None or not len(x):
            return None
        few = counted and len(np.unique(x[:LOOK])) <= MOST_VALUES
        return cls(
            low=float(x.min()),
            high=float(x.max()),
            total=float(x.sum()),
            squares=float(x @ x),
            whole=bool(np.array_equal(x, np.round(x))),
            binary=bool(((x == 0) | (x == 1)).all()),
            counts=_few(pd.Series(x).value_counts(sort=False)) if few else None,
        )

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = _few(self.counts.add(other.counts, fill_value=0).astype(np.int64))
        return ColumnSummary(
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            total=self.total + other.total,
            squares=self.squares + other.squares,
            whole=self.whole and other.whole,
            binary=self.binary and other.binary,
            counts=counts,
        )


def _few(counts: pd.Series[int]) -> pd.Series[int] | None:
    return counts if len(counts) <= MOST_VALUES else None


@dataclass(frozen=True, eq=False)
class RowSample:
    """Number of rows of one population, the values of each attribute, and a random sample of its
    rows.
    """

    rows: int
    values: tuple[ColumnSummary, ...]
    block: KeyedRows
    most: int

    @classmethod
    def from_block(cls, block: KeyedRows, most: int, total: int) -> RowSample | None:
        """Return at most so many of some rows of a frame with `total` rows; None if there are
        none.
        """
        if not block.count:
            return None
        candidates = block
        share = CANDIDATES * most / max(total, 1)
        if share < 1:  # other rows cannot be in the sample of the whole frame
            candidates = block.keep(block.key < np.uint64(int(share * 2**64)))
        values = (ColumnSummary.from_values(column, counted=True) for column in block.s.T)
        return cls(block.count, tuple(filter(None, values)), candidates.first(most), most)

    def __add__(self, other: RowSample) -> RowSample:
        values = tuple(a + b for a, b in zip(self.values, other.values))
        return RowSample(
            self.rows + other.rows,
            values,
            self.block.join(other.block).first(self.most),
            self.most,
        )

    def value_counts(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their numbers: of all rows, or of the sample
        if there are many.
        """
        counts = self.values[attribute].counts
        if counts is None:
            counts = pd.Series(self.block.s[:, attribute]).value_counts(sort=False)
        counts = counts.sort_index()
        return counts.index.to_numpy(), counts.to_numpy()

    def cells(self, attribute: int, controls: Strata | None) -> Cells | None:
        """Return the cells along an attribute, and in each stratum those of the sample; None if the
        attribute is constant.
        """
        values, counts = self.value_counts(attribute)
        if len(values) < 2:
            return None
        whole = Cells.from_values(values, counts, self.rows)
        if controls is None:
            return whole
        strata = with_strata(self.block, controls).strata
        parts = []
        for code in range(controls.other + 1):
            own = self.block.s[strata == code, attribute]
            if not len(own):  # others, which may have rows that are not in the sample
                own = self.block.s[:, attribute]
            distinct, times = np.unique(own, return_counts=True)
            rows = round(self.rows * len(own) / self.block.count)
            parts.append(Cells.from_values(distinct, times, rows, strata=controls.other + 1))
        return whole.with_strata(parts)


class First(NamedTuple):
    """What the first pass learns: rows given, complete rows, favoured rows, scores and target; None
    without rows.
    """

    given: int
    everyone: RowSample | None
    favoured: RowSample | None
    scores: ColumnSummary | None
    target: ColumnSummary | None


def first_pass(given: int, block: KeyedRows, size: tuple[int, int]) -> First:
    """Return what the rows of one partition tell; size is that of :class:`RowSample`."""
    favoured = (
        None if block.favoured is None else RowSample.from_block(block.keep(block.favoured), *size)
    )
    return First(
        given,
        RowSample.from_block(block, *size),
        favoured,
        ColumnSummary.from_values(block.scores),
        ColumnSummary.from_values(block.y),
    )


@dataclass(frozen=True, eq=False)
class GapPlan:
    """What the sums of one population need: cells along each attribute; center and extremes of each
    gap's column.
    """

    cells: tuple[Cells | None, ...]
    columns: dict[str, tuple[float, tuple[float, float]]]
    threshold: float | None
    controls: Strata | None

    def sums(self, block: KeyedRows) -> GapSums:
        """Return the sums of some rows: for each attribute one for each gap."""
        if not block.count or block.scores is None:
            return tuple(None for _ in self.cells)
        each = [
            (gap_column(key, block.scores, block.y, self.threshold), *known)
            for key, known in self.columns.items()
        ]
        strata = None if self.controls is None else with_strata(block, self.controls).strata
        return tuple(
            (
                None
                if cells is None
                else tuple(
                    cells.sums(column, s, center, ends, strata=strata)
                    for column, center, ends in each
                )
            )
            for cells, s in zip(self.cells, block.s.T)
        )


@dataclass(frozen=True, eq=False)
class SecondPlan:
    """What the second pass needs to know; None for what is not summed.

    `features` and `edges` are by attribute; `z_center` and `s_center` are means of the sample.
    """

    everyone: GapPlan | None
    favoured: GapPlan | None
    features: tuple[FeaturePlan | None, ...]
    z_center: np.ndarray
    s_center: np.ndarray
    edges: tuple[np.ndarray, ...]


class Second(NamedTuple):
    """What the second pass sums over rows: gaps of all and of the favoured rows, dependence by
    attribute, and histograms.
    """

    everyone: GapSums
    favoured: GapSums
    dependence: tuple[FeatureMoments | None, ...]
    histograms: tuple[np.ndarray, ...]


def second_pass(_: int, block: KeyedRows, plan: SecondPlan) -> Second:
    """Return the sums over the rows of one partition."""
    everyone = None
    favoured = None
    moments: list[FeatureMoments | None] = [None] * len(plan.features)
    if block.count:
        everyone = None if plan.everyone is None else plan.everyone.sums(block)
        if plan.favoured is not None and block.favoured is not None:
            favoured = plan.favoured.sums(block.keep(block.favoured))
        # a shift keeps more digits and does not change HSIC under a Gaussian
        s = block.s - plan.s_center
        for start in range(0, block.count, SLICE):
            rows = slice(start, start + SLICE)
            z = block.z[rows] - plan.z_center
            for i, features in enumerate(plan.features):
                if features is not None:
                    some = features.moments(z, s[rows, i : i + 1])
                    moments[i] = add_results(moments[i], some)
    histograms = tuple(
        np.histogram(column, bins=edges)[0] for column, edges in zip(block.s.T, plan.edges)
    )
    return Second(everyone, favoured, tuple(moments), histograms)


def _check_sample(first: First, roles: Roles) -> RowSample:
    """Return the sample of all complete rows; raise if there are too few, or an attribute is
    constant.
    """
    everyone = first.everyone
    favoured = first.favoured
    if everyone is None:
        require_enough_rows(0, first.given, {}, roles.columns)
    assert everyone is not None
    ranges = {name: (summary.low, summary.high) for name, summary in zip(roles.s, everyone.values)}
    require_enough_rows(everyone.rows, first.given, ranges, roles.columns)
    named = roles.positive if roles.favourable is None else roles.favourable
    if named is not None and (everyone.block.favoured is None or not everyone.block.favoured.any()):
        raise ValueError(
            f"{named!r} is the {roles.target} of {0 if favoured is None else favoured.rows} of"
            f" {everyone.rows:,} rows and of none in the sample; check its spelling, or raise"
            " sample_rows."
        )
    return everyone


def _subject(sampled: Subject, first: First, rows: int, threshold: float | None) -> Subject:
    """Return the subject of the sample with ranges, base rate and threshold of all rows."""
    rated = first.target or first.scores
    rate = None
    if rated is not None:
        mean = rated.total / rows
        error = math.sqrt(max(rated.squares / rows - mean**2, 0.0) / max(rows - 1, 1))
        rate = rate_number(
            mean, error, rows, rows, binary=rated.binary, confidence=sampled.confidence
        )
    subject = replace(sampled, base_rate=rate)
    if first.scores is None:  # those of a head on the sample, if any
        return subject
    return with_threshold(replace(subject, span=(first.scores.low, first.scores.high)), threshold)


def _plan(
    first: First,
    everyone: RowSample,
    subject: Subject,
    settings: Settings,
    controls: Strata | None,
) -> SecondPlan:
    block = everyone.block

    def gaps(sample: RowSample | None, y: ColumnSummary | None) -> GapPlan | None:
        if sample is None or first.scores is None or sample.block.scores is None:
            return None
        binary = None if y is None else y.binary
        columns = {}
        for key in gap_keys(binary=binary, chances=subject.chances, threshold=subject.threshold):
            column = gap_column(key, sample.block.scores, sample.block.y, subject.threshold)
            ends = (first.scores.low, first.scores.high)
            if key in ("decision_gdp", "error_gdp"):
                ends = (0.0, 1.0)
            elif key == "calibration_gdp" and y is not None:
                ends = (y.low - first.scores.high, y.high - first.scores.low)
            columns[key] = (float(column.mean()), ends)
        cells = tuple(sample.cells(i, controls) for i in range(block.s.shape[1]))
        return GapPlan(cells, columns, subject.threshold, controls)

    features: tuple[FeaturePlan | None, ...] = (None,) * block.s.shape[1]
    if _lazy.has_torch():
        from frhsic.distributed.features import feature_plan

        chosen = subsample(block.count, settings.max_rows, settings.generator(1))
        features = tuple(
            feature_plan(block.z[chosen], column[chosen, None], FEATURES, settings.seed)
            for column in block.s.T
        )
    return SecondPlan(
        everyone=gaps(everyone, first.target),
        favoured=gaps(first.favoured, None),
        features=features,
        z_center=block.z.mean(axis=0),
        s_center=block.s.mean(axis=0),
        edges=tuple(
            histogram_edges(summary.low, summary.high, summary.whole) for summary in everyone.values
        ),
    )


def _on_all_rows(
    attribute: AttributeAudit,
    i: int,
    plan: SecondPlan,
    sums: Second,
    first: First,
    settings: Settings,
) -> AttributeAudit:
    """Return the audit of an attribute with the numbers of all rows in place of those of the
    sample.
    """
    everyone = first.everyone
    favoured = first.favoured
    positives = attribute.positives
    assert everyone is not None
    features = plan.features[i]
    moments = sums.dependence[i]
    sampled = attribute.all_rows.get("hsic")
    numbers = []
    if features is not None and moments is not None and sampled is not None:
        numbers.append(features.number(sampled, moments, settings.confidence))
    if positives is None and favoured is not None:  # the sample of all rows has too few of them
        rows = replace(
            favoured.block.select_attribute(i),
            threshold=None if plan.favoured is None else plan.favoured.threshold,
        )
        if plan.favoured is not None and plan.favoured.controls is not None:
            rows = with_strata(rows, plan.favoured.controls)
        positives = favoured_rows(rows, settings)
    if positives is not None and favoured is not None:
        positives = _replaced(
            positives, favoured.rows, [], plan.favoured, sums.favoured, i, settings
        )
    values, counts = everyone.value_counts(i)
    known = everyone.values[i].counts is not None
    return replace(
        attribute,
        histogram=Histogram(tuple(plan.edges[i].tolist()), tuple(sums.histograms[i].tolist())),
        law=Law.from_counts(values, counts, everyone.rows if known else everyone.block.count),
        all_rows=_replaced(
            attribute.all_rows, everyone.rows, numbers, plan.everyone, sums.everyone, i, settings
        ),
        positives=positives,
    )


def _replaced(
    population: Population,
    rows: int,
    numbers: list[Number],
    plan: GapPlan | None,
    sums: GapSums,
    i: int,
    settings: Settings,
) -> Population:
    """Return a population of the sample with numbers, curves and count of all rows."""
    column_sums = None if sums is None else sums[i]
    cells = None if plan is None else plan.cells[i]
    if plan is not None and column_sums is not None and cells is not None:
        summed = _summed_gaps(dict(zip(plan.columns, column_sums)), cells, plan.controls, settings)
        numbers = [*numbers, *summed.numbers]
        population = replace(summed, numbers=population.numbers)
    new = {number.key: number for number in numbers}
    kept = tuple(new.pop(number.key, number) for number in population.numbers)
    return replace(population, rows=rows, numbers=(*kept, *new.values()))


def _summed_gaps(
    sums: dict[str, ScoreSums], cells: Cells, controls: Strata | None, settings: Settings
) -> Population:
    """Return the gaps of sums over all rows, within the strata that have any."""
    if controls is None:
        return gaps_from_sums(sums, cells, settings)
    counts = sums["gdp"].rows.reshape(controls.other + 1, -1).sum(axis=1)
    present = np.flatnonzero(counts).tolist()
    return gaps_from_sums(
        {key: each.take(present) for key, each in sums.items()},
        replace(cells, strata=tuple(cells.strata[code] for code in present)),
        settings,
        controls,
        [controls.names[code] for code in present],
    )
