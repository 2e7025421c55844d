"""The function :func:`audit` for a Dask data frame: two passes over the rows, then the audit of a
sample.

The first pass finds samples and ranges, the second the sums that the numbers of all rows are made
from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy import stats

from frhsic import _arrays, _tensors
from frhsic.auditing.comparing import limits_of_audit
from frhsic.auditing.measures import (
    Settings,
    audit_kernels,
    gap_column,
    gap_keys,
    gaps_of_sums,
    rate_number,
    unit_columns,
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
    audited,
    favoured_rows,
    finished,
    histogram_edges,
    named_target,
    require_enough,
    with_threshold,
)
from frhsic.dependence.features import Estimate, FeatureMaps, draw_feature_maps
from frhsic.dependence.grams import column_scales
from frhsic.distributed.frames import (
    Block,
    Roles,
    added,
    first_rows,
    over_partitions,
    require_columns,
)
from frhsic.independence.gamma import FeatureMoments, feature_moments, feature_test
from frhsic.intervals import Interval
from frhsic.kernels import Kernel
from frhsic.parity.limits import LimitLike
from frhsic.parity.sums import Cells, ScoreSums
from frhsic.probes import linear_probe_of_sums, probe_sums
from frhsic.splits import subsample
from frhsic.tables.columns import common_name

FEATURES = 128
SAMPLE_ROWS = 20_000
# Distinct values of an attribute that are counted; if there are more, their ranks come from the
# sample.
MOST_VALUES = 4096
LOOK = 20_000
# Rows that partitions send for each row of the sample: those whose hash is small. Others need not
# be sent.
CANDIDATES = 16
SLICE = 4096  # rows of Z that are float64 at once


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
    limit: LimitLike = None,
    threshold: float | None = None,
    settings: Settings | None = None,
    sample_rows: int = SAMPLE_ROWS,
    context: Context | None = None,
) -> Audit:
    r"""Audit columns of a Dask data frame against continuous sensitive attributes, in two passes
    over its rows.

    What is a sum over rows is computed on all rows: the gaps with their intervals, tests and
    curves, HSIC by random features with its test, the linear probe, and the histogram of each
    attribute. The first pass finds the ranks. All other numbers are computed on a random sample of
    the rows. The result does not depend on how the rows are divided into partitions, up to
    rounding. The memory of a worker holds one partition for each of its threads.

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
    settings : Settings, optional
        As in :func:`frhsic.audit`. The seed decides the random features, the folds and the sample.
    sample_rows : int
        Rows of the sample, at least 1,000.

    Returns
    -------
    Audit
        As of :func:`frhsic.audit`. The number of rows that it was computed from stands beside each
        number.

    Notes
    -----
    Rows are numbered in the order of the frame, and a hash of this number decides on sample and
    folds. An attribute with more than 4,096 different values gets the borders of its groups from
    the sample; the rows in them are counted exactly. The interval of HSIC adds the standard error
    of the features to that of the rows, which is taken from the sample and divided by the root of
    the ratio of the numbers of rows.
    """
    settings = settings or Settings()
    limits = limits_of_audit(limit)
    attributes = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    if score is None and not embedding:
        raise ValueError("say what to audit: score=COLUMN or embedding=[COLUMN, ...].")
    if not attributes:
        raise ValueError("sensitive is empty; name at least one column.")
    if sample_rows < 1000:
        raise ValueError(f"sample_rows={sample_rows}; pass at least 1000.")
    columns = tuple(embedding) or (str(score),)
    roles = Roles(columns, attributes, score, target, positive, favourable, settings.seed)
    require_columns(frame, roles.columns)
    settings.tell("counting rows")
    parts = frame[roles.columns].to_delayed()
    starts = first_rows(parts)
    settings.tell(f"first pass over {starts[-1]:,} rows")
    first = over_partitions(parts, roles, starts, first_pass, (sample_rows, starts[-1]))
    everyone = _checked(first, roles)
    block, about_target = everyone.block, None
    if (
        target is not None
        and block.y is not None
        and block.favoured is not None
        and first.target is not None
    ):
        about_target = named_target(target, positive, favourable, block.y, block.favoured)
        if favourable is None and not first.target.binary:
            block, first = replace(block, favoured=None), first._replace(favoured=None)
    name = common_name(columns) if embedding else columns[0]
    inputs = Inputs(block, attributes, name, score or "score", about_target)
    dropped = first.given - everyone.rows
    about = replace(context or Context(), given=first.given, dropped=dropped)
    sampled = audited(inputs, threshold, settings.about("sample"), about)
    subject = _subject(sampled.subject, first, everyone.rows, threshold)
    plan = _plan(first, everyone, subject, settings)
    settings.tell(f"second pass over {starts[-1]:,} rows")
    sums = over_partitions(parts, roles, starts, second_pass, plan)
    every = [
        _on_all_rows(one, i, plan, sums, first, settings)
        for i, one in enumerate(sampled.attributes)
    ]
    counts = replace(sampled.rows, used=everyone.rows, sample=block.count)
    how = sampled.settings | {"features": FEATURES}
    return finished(
        replace(sampled, subject=subject, rows=counts, attributes=tuple(every), settings=how),
        limits,
    )


@dataclass(frozen=True, eq=False)
class Column:
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
    def of(cls, x: np.ndarray | None, *, counted: bool = False) -> Column | None:
        """Return what is known of some rows; None if there are none."""
        if x is None or not len(x):
            return None
        whole, binary = bool(np.array_equal(x, np.round(x))), bool(((x == 0) | (x == 1)).all())
        few = counted and len(np.unique(x[:LOOK])) <= MOST_VALUES
        counts = pd.Series(x).value_counts(sort=False) if few else None
        return cls(
            float(x.min()),
            float(x.max()),
            float(x.sum()),
            float(x @ x),
            whole,
            binary,
            _few(counts),
        )

    def __add__(self, other: Column) -> Column:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = self.counts.add(other.counts, fill_value=0).astype(np.int64)
        low, high = min(self.low, other.low), max(self.high, other.high)
        total, squares = self.total + other.total, self.squares + other.squares
        return Column(
            low,
            high,
            total,
            squares,
            self.whole and other.whole,
            self.binary and other.binary,
            _few(counts),
        )


def _few(counts: pd.Series[int] | None) -> pd.Series[int] | None:
    return None if counts is None or len(counts) > MOST_VALUES else counts


@dataclass(frozen=True, eq=False)
class Sample:
    """Number of rows of one population, the values of each attribute, and a random sample of its
    rows.
    """

    rows: int
    values: tuple[Column, ...]
    block: Block
    most: int

    @classmethod
    def of(cls, block: Block, most: int, total: int) -> Sample | None:
        """Return at most so many of some rows of a frame with `total` rows; None if there are
        none.
        """
        if not block.count:
            return None
        share, candidates = CANDIDATES * most / max(total, 1), block
        if share < 1:  # others cannot be in a sample of the whole frame
            candidates = block.keep(block.key < np.uint64(int(share * 2**64)))
        candidates = candidates.first(most)
        candidates = replace(candidates, z=candidates.z.astype(np.float64))
        values = (Column.of(column, counted=True) for column in block.s.T)
        return cls(block.count, tuple(filter(None, values)), candidates, most)

    def __add__(self, other: Sample) -> Sample:
        values = tuple(a + b for a, b in zip(self.values, other.values))
        return Sample(
            self.rows + other.rows,
            values,
            self.block.joined(other.block).first(self.most),
            self.most,
        )

    def counted(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their numbers: of all rows, or of the sample
        if there are many.
        """
        counts = self.values[attribute].counts
        if counts is None:
            counts = pd.Series(self.block.s[:, attribute]).value_counts(sort=False)
        counts = counts.sort_index()
        return counts.index.to_numpy(), counts.to_numpy()

    def ranks(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their mid-ranks, as shares less one half."""
        values, counts = self.counted(attribute)
        return values, (np.cumsum(counts) - counts / 2) / counts.sum() - 0.5

    def cells(self, attribute: int) -> Cells | None:
        """Return the cells along an attribute; None if it is constant."""
        values, counts = self.counted(attribute)
        return Cells.of(values, counts, self.rows) if len(values) > 1 else None


class First(NamedTuple):
    """What the first pass learns: rows given, complete rows, favoured rows, scores and target; None
    without rows.
    """

    given: int
    everyone: Sample | None
    favoured: Sample | None
    scores: Column | None
    target: Column | None


def first_pass(given: int, block: Block, size: tuple[int, int]) -> First:
    """Return what the rows of one partition tell; size is that of :class:`Sample`."""
    favoured = None if block.favoured is None else Sample.of(block.keep(block.favoured), *size)
    return First(
        given, Sample.of(block, *size), favoured, Column.of(block.scores), Column.of(block.y)
    )


@dataclass(frozen=True, eq=False)
class GapPlan:
    """What the sums of one population need: cells along each attribute; center and extremes of each
    gap's column.
    """

    cells: tuple[Cells | None, ...]
    columns: dict[str, tuple[float, tuple[float, float]]]
    threshold: float | None

    def sums(self, block: Block) -> GapSums:
        """Return the sums of some rows: for each attribute one for each gap."""
        if not block.count or block.scores is None:
            return tuple(None for _ in self.cells)
        each = [
            (gap_column(key, block.scores, block.y, self.threshold), *known)
            for key, known in self.columns.items()
        ]
        return tuple(
            (
                None
                if cells is None
                else tuple(cells.sums(column, s, center, ends) for column, center, ends in each)
            )
            for cells, s in zip(self.cells, block.s.T)
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """What the second pass needs to know; None for what is not summed.

    `dependence` has for each attribute the random features of HSIC and the scales of Z under its
    kernel; `z` and `s` have the means and standard deviations of the sample.
    """

    everyone: GapPlan | None
    favoured: GapPlan | None
    dependence: tuple[tuple[FeatureMaps, np.ndarray] | None, ...]
    z: tuple[np.ndarray, np.ndarray]
    s: tuple[np.ndarray, np.ndarray]
    ranks: tuple[tuple[np.ndarray, np.ndarray], ...]
    edges: tuple[np.ndarray, ...]


class Sums(NamedTuple):
    """Sums over rows: gaps of all and of the favoured rows, and dependence, by attribute; probe;
    histograms.
    """

    everyone: GapSums
    favoured: GapSums
    dependence: tuple[FeatureMoments | None, ...]
    probe: np.ndarray | None
    histograms: tuple[np.ndarray, ...]


def second_pass(_: int, block: Block, plan: Plan) -> Sums:
    """Return the sums over the rows of one partition."""
    everyone = favoured = probe = None
    moments: list[FeatureMoments | None] = [None] * len(plan.dependence)
    if block.count:
        everyone = None if plan.everyone is None else plan.everyone.sums(block)
        if plan.favoured is not None and block.favoured is not None:
            favoured = plan.favoured.sums(block.keep(block.favoured))
        ranks = [np.interp(column, *known) for column, known in zip(block.s.T, plan.ranks)]
        centred = block.s - plan.s[0]
        fold, targets = block.fold, np.column_stack([centred / plan.s[1], *ranks, block.noise])
        for rows in (slice(start, start + SLICE) for start in range(0, block.count, SLICE)):
            z = (
                block.z[rows] - plan.z[0]
            )  # a shift keeps more digits, and HSIC under a Gaussian does not notice it
            for i, one in enumerate(plan.dependence):
                if one is not None:
                    pair = torch.from_numpy(z / one[1]), torch.from_numpy(centred[rows, i : i + 1])
                    moments[i] = added(moments[i], feature_moments(one[0], *pair))
            probe = added(probe, probe_sums(z / plan.z[1], targets[rows], fold[rows]))
    histograms = tuple(
        np.histogram(column, bins=edges)[0] for column, edges in zip(block.s.T, plan.edges)
    )
    return Sums(everyone, favoured, tuple(moments), probe, histograms)


def _checked(first: First, roles: Roles) -> Sample:
    """Return the sample of all complete rows; raise if there are too few, or an attribute is
    constant.
    """
    everyone, favoured = first.everyone, first.favoured
    spans = (
        {}
        if everyone is None
        else {name: one.high - one.low for name, one in zip(roles.s, everyone.values)}
    )
    require_enough(0 if everyone is None else everyone.rows, first.given, spans, roles.columns)
    assert everyone is not None
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


def _plan(first: First, everyone: Sample, subject: Subject, settings: Settings) -> Plan:
    block, target = everyone.block, first.target

    def gaps(sample: Sample | None, y: Column | None) -> GapPlan | None:
        if sample is None or first.scores is None or sample.block.scores is None:
            return None
        binary, columns = None if y is None else y.binary, {}
        for key in gap_keys(binary=binary, chances=subject.chances, threshold=subject.threshold):
            column = gap_column(key, sample.block.scores, sample.block.y, subject.threshold)
            ends = (
                (0.0, 1.0)
                if key in ("decision_gdp", "error_gdp")
                else (first.scores.low, first.scores.high)
            )
            if key == "calibration_gdp" and y is not None:
                ends = (y.low - first.scores.high, y.high - first.scores.low)
            columns[key] = (float(column.mean()), ends)
        cells = tuple(sample.cells(i) for i in range(block.s.shape[1]))
        return GapPlan(cells, columns, subject.threshold)

    return Plan(
        everyone=gaps(everyone, target),
        favoured=gaps(first.favoured, None),
        dependence=tuple(_features(block, i, settings) for i in range(block.s.shape[1])),
        z=_center_and_scale(block.z),
        s=_center_and_scale(block.s),
        ranks=tuple(everyone.ranks(i) for i in range(block.s.shape[1])),
        edges=tuple(histogram_edges(one.low, one.high, one.whole) for one in everyone.values),
    )


def _center_and_scale(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column; 1 for a constant one."""
    spread = rows.std(axis=0)
    return rows.mean(axis=0), np.where(spread > 0, spread, 1.0)


def _features(block: Block, i: int, settings: Settings) -> tuple[FeatureMaps, np.ndarray] | None:
    """Return the features of HSIC, with the kernels that the audit of the sample uses; None where
    it has none.
    """
    chosen = subsample(block.count, settings.max_rows, settings.generator(1))
    z, s = unit_columns(block.z[chosen]), block.s[chosen, i : i + 1]
    try:
        kernel_z, kernel_s, *_ = audit_kernels(torch.from_numpy(z), torch.from_numpy(s))
    except ValueError:
        return None
    maps = draw_feature_maps(
        kernel_z, kernel_s, z.shape[1], 1, features=FEATURES, random_state=settings.seed
    )
    return maps, np.ones(1) if block.z.shape[1] == 1 else column_scales(block.z[chosen])


def _on_all_rows(
    attribute: AttributeAudit, i: int, plan: Plan, sums: Sums, first: First, settings: Settings
) -> AttributeAudit:
    """Return the audit of an attribute with the numbers of all rows in place of those of the
    sample.
    """
    everyone, favoured, positives = first.everyone, first.favoured, attribute.positives
    assert everyone is not None
    assert sums.probe is not None  # there are rows
    features, moments, own = plan.dependence[i], sums.dependence[i], attribute.all_rows.get("hsic")
    width = everyone.block.s.shape[1]  # targets are the attributes, their ranks, and noise
    result = linear_probe_of_sums(sums.probe, everyone.block.z.shape[1], [i, width + i], 2 * width)
    numbers = [Number("probe_linear", result.r2, result.rows, None, result.shuffled_r2)]
    if features is not None and moments is not None and own is not None:
        numbers.append(hsic_number(own, features[0], moments, settings))
    if positives is None and favoured is not None:  # the sample of all rows has too few of them
        rows = replace(
            favoured.block.along(i),
            threshold=None if plan.favoured is None else plan.favoured.threshold,
        )
        positives = favoured_rows(rows, settings)
    if positives is not None and favoured is not None:
        positives = _replaced(
            positives, favoured.rows, [], plan.favoured, sums.favoured, i, settings
        )
    values, counts = everyone.counted(i)
    known = everyone.values[i].counts is not None
    return replace(
        attribute,
        histogram=Histogram(tuple(plan.edges[i].tolist()), tuple(sums.histograms[i].tolist())),
        law=Law.of(values, counts, everyone.rows if known else everyone.block.count),
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
    own, cells, curves = (
        None if sums is None else sums[i],
        None if plan is None else plan.cells[i],
        population.curves,
    )
    if plan is not None and own is not None and cells is not None:
        summed, curves = gaps_of_sums(dict(zip(plan.columns, own)), cells, settings)
        numbers = [*numbers, *summed]
    new = {number.key: number for number in numbers}
    kept = tuple(new.pop(number.key, number) for number in population.numbers)
    return replace(population, rows=rows, numbers=(*kept, *new.values()), curves=curves)


def hsic_number(
    own: Number, maps: FeatureMaps, moments: FeatureMoments, settings: Settings
) -> Number:
    """Return HSIC by features of all rows with its test, in place of the sample's number."""
    test, estimate = feature_test(maps, moments), maps.estimate(moments.cross)
    if test.null_standard_deviation == 0:
        return own
    quantile = float(stats.norm.ppf((1 + settings.confidence) / 2))
    assert own.interval is not None
    # the lower half is cut off at 0 where the sample shows little dependence
    rows = (own.interval.high - own.value) / quantile * math.sqrt(own.rows / test.n)
    error = math.hypot(estimate.standard_error, rows)
    value = estimate.value - test.null_mean
    low, high = min(value, max(value - quantile * error, 0.0)), max(value + quantile * error, 0.0)
    interval = Interval(
        low, high, settings.confidence, "normal approximation, of random features and of rows"
    )
    details = own.settings | {
        "test": "gamma, limit of random features",
        "biased": estimate.value,
        "features": estimate.features,
        "standard error of the features": estimate.standard_error,
    }
    interval = interval.agreeing(value, test.pvalue)
    return Number("hsic", value, test.n, interval, 0.0, test.pvalue, details, standard_error=error)


def hsic_of_parts(
    parts: Iterable[tuple[Any, Any]],
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    features: int = 512,
    random_state: _arrays.RandomState = 0,
) -> Estimate:
    r"""HSIC by random features of data in parts, from sums of features over the parts.

    It equals :func:`frhsic.dependence.hsic_features` on all rows together, for the same kernels and
    random state, up to rounding. Use it for data that do not fit into memory. Pass kernels with
    fixed bandwidths, since a median distance cannot be added up over parts.

    Parameters
    ----------
    parts
        Pairs (z, s) of arrays with one row per observation. Each is read once.
    kernel_z, kernel_s
        Kernels with fixed bandwidths.
    features, random_state
        As in :func:`frhsic.dependence.hsic_features`.

    Examples
    --------
    >>> import torch
    >>> from frhsic.kernels import Gaussian
    >>> z = torch.linspace(0, 1, 40, dtype=torch.float64)[:, None]
    >>> halves = [(z[:20], z[:20]), (z[20:], z[20:])]
    >>> apart = hsic_of_parts(halves, Gaussian(1.0), Gaussian(1.0), random_state=0)
    >>> whole = hsic_of_parts([(z, z)], Gaussian(1.0), Gaussian(1.0), random_state=0)
    >>> abs(float(apart) - float(whole)) < 1e-12
    True
    """
    numbered = enumerate(parts)
    pairs = (
        _tensors.paired((z, f"z of part {i}"), (s, f"s of part {i}")) for i, (z, s) in numbered
    )
    first = next(pairs, None)
    if first is None:
        raise ValueError("no parts came; pass at least one pair (z, s).")
    columns = (rows.shape[1] for rows in first)
    maps = draw_feature_maps(
        kernel_z, kernel_s, *columns, features=features, random_state=random_state
    )
    return maps.estimate(sum((maps.sums(z, s) for z, s in pairs), start=maps.sums(*first)))
