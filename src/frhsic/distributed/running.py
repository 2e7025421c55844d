"""The function :func:`audit` for a Dask data frame: two passes over the rows, then the audit of a sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import stats

from frhsic.auditing.inputs import LEAST_ROWS, Inputs, Rows
from frhsic.auditing.limits import Limits, limits_of
from frhsic.auditing.measures import (
    Settings,
    audit_kernels,
    gap_column,
    gap_keys,
    gaps_of_sums,
    unit_columns,
)
from frhsic.auditing.quality import rate_number
from frhsic.auditing.results import AttributeAudit, Audit, Context, Histogram, Law, Number, Population, Subject, Target
from frhsic.auditing.running import audited, favoured_rows, finished, histogram_edges, with_threshold
from frhsic.dependence._inputs import column_scales
from frhsic.dependence.features import FeatureMaps, draw_feature_maps
from frhsic.distributed.passes import (
    FeaturePlan,
    First,
    GapPlan,
    Plan,
    Range,
    Sample,
    Scaling,
    Sums,
    first_pass,
    second_pass,
)
from frhsic.distributed.rows import Block, Roles, first_rows, over_partitions, require_columns
from frhsic.independence.featured import FeatureMoments, feature_test
from frhsic.intervals import Interval, subsample
from frhsic.parity._sums import ScoreSums
from frhsic.probes import linear_probe_of_sums
from frhsic.tables.columns import common_name, label

FEATURES = 128
SAMPLE_ROWS = 20_000


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
    first = First(*over_partitions(frame, roles, starts, first_pass, (sample_rows, starts[-1])))  # type: ignore[arg-type]
    everyone = _checked(first, roles)
    block = everyone.block
    about_target, favoured = None, None
    if target is not None and block.y is not None and first.target is not None:
        favoured = block.favoured if first.target.binary or favourable is not None else None
        about_target = Target(target, None if positive is None else label(positive))
        if favourable is not None and favoured is not None:
            high = bool(block.y[favoured].mean() > block.y.mean())
            about_target = replace(about_target, favourable=label(favourable), favours_high=high)
    name = common_name(columns) if embedding else columns[0]
    rows = Rows(block.z, block.s, block.f if embedding else None, block.y)
    inputs = Inputs(rows, attributes, name, score or "score", about_target, favoured)
    dropped = first.given - everyone.rows
    about = replace(context or Context(), given=first.given, dropped=dropped)
    sampled = audited(inputs, threshold, settings.about("sample"), about)
    subject = _subject(sampled.subject, first, everyone.rows, threshold)
    plan = _plan(first, everyone, subject, settings)
    settings.tell(f"second pass over {starts[-1]:,} rows")
    sums = Sums(*over_partitions(frame, roles, starts, second_pass, plan))  # type: ignore[arg-type]  # a plain tuple
    every = [
        _on_all_rows(_with_favoured(one, i, first, favoured, subject, settings), i, plan, sums, first, settings)
        for i, one in enumerate(sampled.attributes)
    ]
    counts = replace(sampled.rows, given=first.given, dropped=dropped, used=everyone.rows, sample=len(block))
    result = replace(sampled, subject=subject, rows=counts, attributes=tuple(every))
    return finished(replace(result, settings=result.settings | {"features": FEATURES}), limits)


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
        if sample is None or first.scores is None or sample.block.f is None:
            return None
        binary, columns = None if y is None else y.binary, {}
        for key in gap_keys(binary=binary, chances=subject.chances, threshold=subject.threshold):
            column = gap_column(key, sample.block.f, sample.block.y, subject.threshold)
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
    chosen = subsample(len(block), settings.max_rows, settings.generator(1))
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
    attribute: AttributeAudit, i: int, first: First, favoured: np.ndarray | None, subject: Subject, settings: Settings
) -> AttributeAudit:
    """Return the audit with measures on a sample of the favoured rows alone, where the sample of all has too few."""
    if attribute.positives is not None or first.favoured is None or favoured is None:
        return attribute
    block = first.favoured.block
    rows = Rows(block.z, block.s[:, [i]], block.f, threshold=subject.threshold)
    return replace(attribute, positives=favoured_rows(rows, np.ones(len(block), dtype=bool), settings))


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
        law=Law.of(values, counts, everyone.rows if known else len(everyone.block)),
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
