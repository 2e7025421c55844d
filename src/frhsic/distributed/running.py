"""The function :func:`audit` for a Dask data frame: two passes over the rows, then the audit of a sample.

The first pass finds samples and ranges, the second the sums that the numbers of all rows are made from.
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

from frhsic import _arrays
from frhsic.auditing.measures import (
    LEAST_ROWS,
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
    Limits,
    Number,
    Population,
    Subject,
    Target,
    limits_of,
)
from frhsic.auditing.running import Inputs, audited, favoured_rows, finished, histogram_edges, with_threshold
from frhsic.dependence.features import Estimate, FeatureMaps, draw_feature_maps
from frhsic.dependence.grams import column_scales
from frhsic.distributed.frames import Block, Roles, added, first_rows, over_partitions, require_columns
from frhsic.independence.effects import Interval
from frhsic.independence.gamma import FeatureMoments, feature_moments, feature_test
from frhsic.kernels import Kernel
from frhsic.parity.local_means import Cells, ScoreSums
from frhsic.probes import ProbeSums, linear_probe_of_sums
from frhsic.splits import subsample
from frhsic.tables.columns import common_name, label

FEATURES = 128
SAMPLE_ROWS = 20_000
MOST_VALUES = 4096
"""Distinct values of an attribute that are counted; if there are more, their ranks come from the sample."""
LOOK = 20_000
CANDIDATES = 16
"""Rows that partitions send for each row of the sample: those whose hash is small. Others need not be sent."""
SLICE = 4096
"""Rows of Z that are float64 at once."""


def audit(
    frame: Any,
    *,
    sensitive: str | Sequence[str],
    score: str | None = None,
    embedding: Sequence[str] = (),
    target: str | None = None,
    positive: object = None,
    favourable: object = None,
    limit: Limits = (),
    threshold: float | None = None,
    settings: Settings | None = None,
    sample_rows: int = SAMPLE_ROWS,
    context: Context | None = None,
) -> Audit:
    r"""Audit columns of a Dask data frame against continuous sensitive attributes, in two passes over its rows.

    What is a sum over rows is computed on all rows: the gaps with their intervals, tests and curves, HSIC by random
    features with its test, the linear probe, and the histogram of each attribute. The first pass finds the ranks. All
    other numbers are computed on a random sample of the rows. The result does not depend on how the rows are divided
    into partitions, up to rounding. The memory of a worker holds one partition for each of its threads.

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
        As of :func:`frhsic.audit`. The number of rows that it was computed from stands beside each number.

    Notes
    -----
    Rows are numbered in the order of the frame, and a hash of this number decides on sample and folds. An attribute
    with more than 4,096 different values gets the borders of its groups from the sample; the rows in them are counted
    exactly. The interval of HSIC adds the standard error of the features to that of the rows, which is taken from the
    sample and divided by the root of the ratio of the numbers of rows.
    """
    settings, limits = settings or Settings(), limits_of(limit)
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
    starts = first_rows(frame, roles.columns[0])
    settings.tell(f"first pass over {starts[-1]:,} rows")
    # over_partitions returns plain tuples of what a pass returns
    first = First(*over_partitions(frame, roles, starts, first_pass, (sample_rows, starts[-1])))  # type: ignore[arg-type]
    everyone = _checked(first, roles)
    block, about_target = everyone.block, None
    if target is not None and block.y is not None and block.favoured is not None and first.target is not None:
        about_target = Target(target, None if positive is None else label(positive))
        if favourable is not None:
            high = bool(block.y[block.favoured].mean() > block.y.mean())
            about_target = replace(about_target, favourable=label(favourable), favours_high=high)
        elif not first.target.binary:
            block = replace(block, favoured=None)
    name = common_name(columns) if embedding else columns[0]
    inputs = Inputs(block, attributes, name, score or "score", about_target)
    dropped = first.given - everyone.rows
    about = replace(context or Context(), given=first.given, dropped=dropped)
    sampled = audited(inputs, threshold, settings.about("sample"), about)
    subject = _subject(sampled.subject, first, everyone.rows, threshold)
    plan = _plan(first, everyone, subject, settings)
    settings.tell(f"second pass over {starts[-1]:,} rows")
    sums = Sums(*over_partitions(frame, roles, starts, second_pass, plan))  # type: ignore[arg-type]  # a plain tuple
    every = [
        _on_all_rows(_with_favoured(one, i, first, block, subject, settings), i, plan, sums, first, settings)
        for i, one in enumerate(sampled.attributes)
    ]
    counts = replace(sampled.rows, given=first.given, dropped=dropped, used=everyone.rows, sample=block.count)
    result = replace(sampled, subject=subject, rows=counts, attributes=tuple(every))
    return finished(replace(result, settings=result.settings | {"features": FEATURES}), limits)


@dataclass(frozen=True, eq=False)
class Values:
    """Range of one attribute, whether all are whole numbers, and how often each value occurs: None if they are many."""

    low: float
    high: float
    whole: bool
    counts: pd.Series[int] | None = None

    @classmethod
    def of(cls, s: np.ndarray) -> Values:
        """Return the values of some rows."""
        many = len(np.unique(s[:LOOK])) > MOST_VALUES
        counts = None if many else pd.Series(s).value_counts(sort=False)
        return cls(float(s.min()), float(s.max()), bool(np.array_equal(s, np.round(s))), _few(counts))

    def __add__(self, other: Values) -> Values:
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = self.counts.add(other.counts, fill_value=0).astype(np.int64)
        low, high = min(self.low, other.low), max(self.high, other.high)
        return Values(low, high, self.whole and other.whole, _few(counts))


def _few(counts: pd.Series[int] | None) -> pd.Series[int] | None:
    return None if counts is None or len(counts) > MOST_VALUES else counts


@dataclass(frozen=True, eq=False)
class Sample:
    """Number of rows of one population, the values of each attribute, and a random sample of its rows."""

    rows: int
    values: tuple[Values, ...]
    block: Block
    most: int

    @classmethod
    def of(cls, block: Block, most: int, total: int) -> Sample | None:
        """Return at most so many of some rows of a frame with `total` rows; None if there are none."""
        if not block.count:
            return None
        share, candidates = CANDIDATES * most / max(total, 1), block
        if share < 1:  # others cannot be in a sample of the whole frame
            candidates = block.keep(block.key < np.uint64(int(share * 2**64)))
        candidates = candidates.first(most)
        candidates = replace(candidates, z=candidates.z.astype(np.float64))
        return cls(block.count, tuple(Values.of(column) for column in block.s.T), candidates, most)

    def __add__(self, other: Sample) -> Sample:
        values = tuple(a + b for a, b in zip(self.values, other.values))
        return Sample(self.rows + other.rows, values, self.block.joined(other.block).first(self.most), self.most)

    def counted(self, attribute: int) -> tuple[np.ndarray, np.ndarray]:
        """Return distinct values of an attribute and their numbers: of all rows, or of the sample if there are many."""
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


@dataclass(frozen=True, eq=False)
class Range:
    """Range of some numbers, sums of them and of their squares, and whether all of them are 0 or 1."""

    low: float
    high: float
    total: float
    squares: float
    binary: bool

    @classmethod
    def of(cls, values: np.ndarray | None) -> Range | None:
        """Return what is known of the numbers; None if there are none."""
        if values is None or not len(values):
            return None
        binary = bool(((values == 0) | (values == 1)).all())
        return cls(float(values.min()), float(values.max()), float(values.sum()), float(values @ values), binary)

    def __add__(self, other: Range) -> Range:
        sums = self.total + other.total, self.squares + other.squares
        return Range(min(self.low, other.low), max(self.high, other.high), *sums, self.binary and other.binary)


class First(NamedTuple):
    """What the first pass learns: rows given, complete rows, favoured rows, scores and target; None without rows."""

    given: int
    everyone: Sample | None
    favoured: Sample | None
    scores: Range | None
    target: Range | None


def first_pass(given: int, block: Block, size: tuple[int, int]) -> tuple[object, ...]:
    """Return what the rows of one partition tell, in the order of :class:`First`; size is that of :class:`Sample`."""
    favoured = None if block.favoured is None else Sample.of(block.keep(block.favoured), *size)
    return given, Sample.of(block, *size), favoured, Range.of(block.scores), Range.of(block.y)


@dataclass(frozen=True, eq=False)
class Scaling:
    """A shift and a scale for each column."""

    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray) -> Scaling:
        """Return mean and standard deviation of a sample; 1 for a constant column."""
        spread = rows.std(axis=0)
        return cls(rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((rows - self.center) / self.scale)


@dataclass(frozen=True, eq=False)
class GapPlan:
    """What the sums of one population need: cells along each attribute; center and extremes of each gap's column."""

    cells: tuple[Cells | None, ...]
    columns: dict[str, tuple[float, tuple[float, float]]]
    threshold: float | None

    def sums(self, block: Block) -> tuple[tuple[ScoreSums, ...] | None, ...]:
        """Return the sums of some rows: for each attribute one for each gap."""
        if not block.count or block.scores is None:
            return tuple(None for _ in self.cells)
        each = [(gap_column(key, block.scores, block.y, self.threshold), *known) for key, known in self.columns.items()]
        return tuple(
            None if cells is None else tuple(cells.sums(column, s, center, ends) for column, center, ends in each)
            for cells, s in zip(self.cells, block.s.T)
        )


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """What HSIC of one attribute needs: random features, and how both variables are scaled before."""

    maps: FeatureMaps
    z: Scaling
    s: Scaling


@dataclass(frozen=True, eq=False)
class Plan:
    """What the second pass needs to know; None for what is not summed."""

    everyone: GapPlan | None
    favoured: GapPlan | None
    dependence: tuple[FeaturePlan | None, ...]
    z: Scaling
    s: Scaling
    ranks: tuple[tuple[np.ndarray, np.ndarray], ...]
    edges: tuple[np.ndarray, ...]


class Sums(NamedTuple):
    """Sums over rows: gaps of all and of the favoured rows, and dependence, by attribute; probe; histograms."""

    everyone: tuple[tuple[ScoreSums, ...] | None, ...] | None
    favoured: tuple[tuple[ScoreSums, ...] | None, ...] | None
    dependence: tuple[FeatureMoments | None, ...]
    probe: ProbeSums | None
    histograms: tuple[np.ndarray, ...]


def second_pass(_: int, block: Block, plan: Plan) -> tuple[object, ...]:
    """Return the sums over the rows of one partition, in the order of :class:`Sums`."""
    everyone = favoured = probe = None
    moments: list[FeatureMoments | None] = [None] * len(plan.dependence)
    if block.count:
        everyone = None if plan.everyone is None else plan.everyone.sums(block)
        if plan.favoured is not None and block.favoured is not None:
            favoured = plan.favoured.sums(block.keep(block.favoured))
        ranks = [np.interp(column, *known) for column, known in zip(block.s.T, plan.ranks)]
        fold, targets = block.fold, np.column_stack([plan.s(block.s), *ranks, block.noise])
        for rows in (slice(start, start + SLICE) for start in range(0, block.count, SLICE)):
            for i, one in enumerate(plan.dependence):
                if one is not None:
                    z, s = one.z(block.z[rows]), one.s(block.s[rows, i : i + 1])
                    moments[i] = added(moments[i], feature_moments(one.maps, torch.from_numpy(z), torch.from_numpy(s)))
            probe = added(probe, ProbeSums.of(plan.z(block.z[rows]), targets[rows], fold[rows]))
    histograms = tuple(np.histogram(column, bins=edges)[0] for column, edges in zip(block.s.T, plan.edges))
    return everyone, favoured, tuple(moments), probe, histograms


def _checked(first: First, roles: Roles) -> Sample:
    """Return the sample of all complete rows; raise if there are too few, or an attribute is constant."""
    everyone = first.everyone
    if everyone is None or everyone.rows < LEAST_ROWS:
        complete = 0 if everyone is None else everyone.rows
        raise ValueError(
            f"an audit needs at least {LEAST_ROWS} rows; {complete} of {first.given} have a value in each of "
            f"{', '.join(roles.columns)}."
        )
    for name, values in zip(roles.s, everyone.values):
        if values.low == values.high:
            raise ValueError(f"{name} is constant: all {everyone.rows} rows are equal, so nothing can depend on it.")
    named = roles.positive if roles.favourable is None else roles.favourable
    if named is not None and (everyone.block.favoured is None or not everyone.block.favoured.any()):
        count = 0 if first.favoured is None else first.favoured.rows
        raise ValueError(
            f"{named!r} is the {roles.target} of {count} of {everyone.rows:,} rows and of none in the sample; check "
            "its spelling, or raise sample_rows."
        )
    return everyone


def _subject(sampled: Subject, first: First, rows: int, threshold: float | None) -> Subject:
    """Return the subject of the sample with ranges, base rate and threshold of all rows."""
    rated = first.target or first.scores
    rate = None
    if rated is not None:
        mean = rated.total / rows
        error = math.sqrt(max(rated.squares / rows - mean**2, 0.0) / max(rows - 1, 1))
        rate = rate_number(mean, error, rows, rows, binary=rated.binary, confidence=sampled.confidence)
    subject = replace(sampled, base_rate=rate)
    if first.scores is None:  # those of a head on the sample, if any
        return subject
    return with_threshold(replace(subject, span=(first.scores.low, first.scores.high)), threshold)


def _plan(first: First, everyone: Sample, subject: Subject, settings: Settings) -> Plan:
    block, target = everyone.block, first.target

    def gaps(sample: Sample | None, y: Range | None) -> GapPlan | None:
        if sample is None or first.scores is None or sample.block.scores is None:
            return None
        binary, columns = None if y is None else y.binary, {}
        for key in gap_keys(binary=binary, chances=subject.chances, threshold=subject.threshold):
            column = gap_column(key, sample.block.scores, sample.block.y, subject.threshold)
            ends = (0.0, 1.0) if key in ("decision_gdp", "error_gdp") else (first.scores.low, first.scores.high)
            if key == "calibration_gdp" and y is not None:
                ends = (y.low - first.scores.high, y.high - first.scores.low)
            columns[key] = (float(column.mean()), ends)
        cells = tuple(sample.cells(i) for i in range(block.s.shape[1]))
        return GapPlan(cells, columns, subject.threshold)

    return Plan(
        everyone=gaps(everyone, target),
        favoured=gaps(first.favoured, None),
        dependence=tuple(_features(block, i, settings) for i in range(block.s.shape[1])),
        z=Scaling.of(block.z),
        s=Scaling.of(block.s),
        ranks=tuple(everyone.ranks(i) for i in range(block.s.shape[1])),
        edges=tuple(histogram_edges(one.low, one.high, one.whole) for one in everyone.values),
    )


def _features(block: Block, i: int, settings: Settings) -> FeaturePlan | None:
    """Return the features of HSIC, with the kernels that the audit of the sample uses; None where it has none."""
    chosen = subsample(block.count, settings.max_rows, settings.generator(1))
    z, s = unit_columns(block.z[chosen]), block.s[chosen, i : i + 1]
    try:
        kernel_z, kernel_s, *_ = audit_kernels(torch.from_numpy(z), torch.from_numpy(s))
    except ValueError:
        return None
    maps = draw_feature_maps(kernel_z, kernel_s, z.shape[1], 1, features=FEATURES, random_state=settings.seed)
    scale = np.ones(1) if block.z.shape[1] == 1 else column_scales(block.z[chosen])
    # a shift keeps more digits, and HSIC under a Gaussian does not notice it
    return FeaturePlan(
        maps, Scaling(block.z.mean(axis=0), scale), Scaling(block.s[:, i : i + 1].mean(axis=0), np.ones(1))
    )


def _with_favoured(
    attribute: AttributeAudit, i: int, first: First, block: Block, subject: Subject, settings: Settings
) -> AttributeAudit:
    """Return the audit with measures on a sample of the favoured rows alone, where the sample of all has too few."""
    if attribute.positives is not None or first.favoured is None or block.favoured is None:
        return attribute
    rows = replace(first.favoured.block.along(i), threshold=subject.threshold)
    return replace(attribute, positives=favoured_rows(rows, settings))


def _on_all_rows(
    attribute: AttributeAudit, i: int, plan: Plan, sums: Sums, first: First, settings: Settings
) -> AttributeAudit:
    """Return the audit of an attribute with the numbers of all rows in place of those of the sample."""
    everyone = first.everyone
    assert everyone is not None
    assert sums.probe is not None  # there are rows
    features, moments, own = plan.dependence[i], sums.dependence[i], attribute.all_rows.get("hsic")
    numbers = []
    if features is not None and moments is not None and own is not None:
        numbers.append(hsic_number(own, features.maps, moments, settings))
    width = everyone.block.s.shape[1]  # targets are the attributes, their ranks, and noise
    result = linear_probe_of_sums(sums.probe, everyone.block.z.shape[1], [i, width + i], 2 * width)
    numbers.append(Number("probe_linear", result.r2, result.rows, None, result.shuffled_r2))
    positives = attribute.positives
    if positives is not None and first.favoured is not None:
        positives = _replaced(positives, first.favoured.rows, [], plan.favoured, sums.favoured, i, settings)
    values, counts = everyone.counted(i)
    known = everyone.values[i].counts is not None
    return replace(
        attribute,
        histogram=Histogram(tuple(plan.edges[i].tolist()), tuple(sums.histograms[i].tolist())),
        law=Law.of(values, counts, everyone.rows if known else everyone.block.count),
        all_rows=_replaced(attribute.all_rows, everyone.rows, numbers, plan.everyone, sums.everyone, i, settings),
        positives=positives,
    )


def _replaced(
    population: Population,
    rows: int,
    numbers: list[Number],
    plan: GapPlan | None,
    sums: tuple[tuple[ScoreSums, ...] | None, ...] | None,
    i: int,
    settings: Settings,
) -> Population:
    """Return a population of the sample with numbers, curves and count of all rows."""
    curves, own = population.curves, None if sums is None else sums[i]
    cells = None if plan is None else plan.cells[i]
    if plan is not None and own is not None and cells is not None:
        summed, curves = gaps_of_sums(dict(zip(plan.columns, own)), cells, settings)
        numbers = [*numbers, *summed]
    new = {number.key: number for number in numbers}
    kept = tuple(new.pop(number.key, number) for number in population.numbers)
    return replace(population, rows=rows, numbers=(*kept, *new.values()), curves=curves)


def hsic_number(own: Number, maps: FeatureMaps, moments: FeatureMoments, settings: Settings) -> Number:
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
    interval = Interval(low, high, settings.confidence, "normal approximation, of random features and of rows")
    details = own.settings | {
        "test": "gamma, limit of random features",
        "biased": estimate.value,
        "features": estimate.features,
        "standard error of the features": estimate.standard_error,
    }
    return Number("hsic", value, test.n, interval, 0.0, test.pvalue, details, standard_error=error)


def hsic_of_parts(
    parts: Iterable[tuple[Any, Any]],
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    features: int = 512,
    random_state: _arrays.RandomState = None,
) -> Estimate:
    r"""HSIC by random features of data in parts, from sums of features over the parts.

    It equals :func:`frhsic.dependence.hsic_features` on all rows together, for the same kernels and random state, up to
    rounding. Use it for data that do not fit into memory. Pass kernels with fixed bandwidths, since a median distance
    cannot be added up over parts.

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
    pairs = (_arrays.paired((z, f"z of part {i}"), (s, f"s of part {i}")) for i, (z, s) in numbered)
    first = next(pairs, None)
    if first is None:
        raise ValueError("no parts came; pass at least one pair (z, s).")
    columns = (rows.shape[1] for rows in first)
    maps = draw_feature_maps(kernel_z, kernel_s, *columns, features=features, random_state=random_state)
    return maps.estimate(sum((maps.sums(z, s) for z, s in pairs), start=maps.sums(*first)))
