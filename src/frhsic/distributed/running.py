"""The function :func:`audit` for a Dask data frame: two passes over the rows, then the audit of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from frhsic import auditing
from frhsic.auditing import AttributeAudit, Audit, Context, Histogram, Population, Settings, Watch
from frhsic.auditing.inputs import LEAST_ROWS, Outcome
from frhsic.auditing.measures import Rows, audit_kernels, unit_columns
from frhsic.auditing.running import adjusted, favoured_rows, histogram_edges, sparse_regions
from frhsic.auditing.stated import Limits, checked, limits_of
from frhsic.dependence._inputs import column_scales
from frhsic.dependence.features import draw_feature_maps
from frhsic.distributed.numbers import hsic_number, parity_numbers, probe_number, replaced
from frhsic.distributed.reduction import first_rows, over_partitions, require_columns
from frhsic.distributed.rows import Block, Roles
from frhsic.distributed.sums import Dependence, Parity, Plan, Scaling, Sums, sums_of
from frhsic.distributed.survey import Draw, Sample, Scores, Survey, survey_of
from frhsic.formatting import counted
from frhsic.intervals import subsample
from frhsic.sentences import left_out, subject_phrase
from frhsic.tables import common_name

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
    at: Sequence[float] | Mapping[str, Sequence[float]] = (),
    settings: Settings | None = None,
    features: int = FEATURES,
    sample_rows: int = SAMPLE_ROWS,
    title: str | None = None,
    source: str = "",
    name: str | None = None,
    limit: Limits = (),
    threshold: float | None = None,
    context: Context | None = None,
    watch: Watch | None = None,
) -> Audit:
    r"""Audit columns of a Dask data frame against continuous sensitive attributes, in two passes over its rows.

    What is a sum over rows is computed on all rows: GDP with its interval and test, the curve of the mean score and of
    the decisions, HSIC by random features with its test, the linear probe, and the histogram of each attribute. The
    first pass finds the ranks. All other numbers are computed on a random sample of the rows, and a remark says so. The
    result does not depend on how the rows are divided into partitions, up to rounding. The memory of a worker holds one
    partition for each of its threads.

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
    target, positive, favourable, at, limit, threshold, context, watch, title, source, name
        As in :func:`frhsic.audit`; `target` is a column.
    settings : Settings, optional
        As in :func:`frhsic.audit`. The seed decides the random features, the folds and the sample.
    features : int
        Random features of each variable for HSIC, a multiple of 32. The time grows with its square, the standard error
        falls with its root.
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
    settings = Settings() if settings is None else settings
    limits = limits_of(limit)
    attributes = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
    _check_names(attributes, score, tuple(embedding), sample_rows)
    columns = tuple(embedding) or (str(score),)
    roles = Roles(columns, attributes, score, target, positive, favourable, settings.seed)
    require_columns(frame, roles.columns)
    tell = watch or (lambda step: None)
    tell("counting rows")
    starts = first_rows(frame, roles.columns[0])
    tell(f"first pass over {starts[-1]:,} rows")
    survey = over_partitions(frame, roles, starts, survey_of, Draw(sample_rows, starts[-1]))
    everyone = _checked_survey(survey, roles)
    threshold, stated = _threshold(threshold, survey.scores)
    kept = everyone.block
    sampled = auditing.audit(
        kept.z,
        pd.DataFrame(kept.s, columns=list(attributes)),
        kept.target,
        scores=kept.f if embedding else None,
        positive=positive,
        favourable=favourable,
        at=at,
        settings=settings,
        title=title,
        source=source,
        name=name or (common_name(columns) if embedding else score),
        score_name=score,
        target_name=target,
        threshold=threshold,
        context=context,
        watch=lambda step: tell(f"sample: {step}"),
    )
    binary = survey.target is not None and (survey.target.binary or favourable is not None)
    favoured = survey.favoured if binary else None
    rows_of = [_rows(kept, i, sampled, threshold) for i in range(len(attributes))]
    plan = _plan(survey, everyone, favoured, rows_of, settings, features, threshold)
    tell(f"second pass over {starts[-1]:,} rows")
    sums = Sums(*over_partitions(frame, roles, starts, sums_of, plan))  # type: ignore[arg-type]  # added up as a plain tuple
    rated = survey.target or survey.scores
    subject = replace(sampled.subject, base_rate=None if rated is None else rated.total / everyone.rows)
    if survey.scores is not None:
        chances = _are_probabilities(survey.scores)
        subject = replace(subject, threshold=threshold, threshold_stated=stated, chances=chances)
    finished = []
    for i, one in enumerate(sampled.attributes):
        one = _with_favoured(one, i, favoured, sampled, settings, tell)
        finished.append(replace(_on_all_rows(one, i, plan, sums, everyone, favoured, settings), subject=subject))
    finished = adjusted(finished)
    dropped = survey.given - everyone.rows
    remarks = (left_out(dropped, survey.given, roles.columns),) if dropped else ()
    return replace(
        sampled,
        subject=subject,
        rows=replace(sampled.rows, given=survey.given, dropped=dropped, used=everyone.rows),
        attributes=tuple(finished),
        remarks=(*remarks, *_sample_remark(everyone, score is not None)),
        settings=sampled.settings | {"features": features, "sample_rows": len(kept)},
        limits=tuple(checked(one, limit, subject.base_rate) for limit in limits for one in finished),
    )


def _plan(
    survey: Survey,
    everyone: Sample,
    favoured: Sample | None,
    rows_of: Sequence[Rows],
    settings: Settings,
    features: int,
    threshold: float | None,
) -> Plan:
    block = everyone.block

    def parity(sample: Sample | None) -> Parity | None:
        if sample is None or survey.scores is None or sample.block.f is None:
            return None
        cells = tuple(sample.cells(i) for i in range(len(rows_of)))
        return Parity(cells, float(sample.block.f.mean()), (survey.scores.low, survey.scores.high), threshold)

    return Plan(
        everyone=parity(everyone),
        favoured=parity(favoured),
        dependence=tuple(_dependence(rows, settings, features) for rows in rows_of),
        z=Scaling.of(block.z),
        s=Scaling.of(block.s),
        edges=tuple(histogram_edges(one.low, one.high, one.whole) for one in everyone.values),
    )


def _dependence(rows: Rows, settings: Settings, features: int) -> Dependence | None:
    """Return the features of HSIC, with the kernels that the audit of the sample uses; None where it has none."""
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = unit_columns(rows.z[chosen]), rows.s[chosen]
    try:
        kernels = audit_kernels(torch.from_numpy(z), torch.from_numpy(s), rows, settings)
    except ValueError:
        return None
    maps = draw_feature_maps(
        kernels.z, kernels.s, z.shape[1], s.shape[1], features=features, random_state=settings.seed
    )
    scale = np.ones(1) if rows.z.shape[1] == 1 else column_scales(rows.z[chosen])
    scaled = rows.z / scale
    # a shift keeps more digits, and HSIC under such a kernel does not notice it
    centers = [
        x.mean(axis=0) if kernel.centering_safe else np.zeros(x.shape[1])
        for x, kernel in ((scaled, kernels.z), (rows.s, kernels.s))
    ]
    return Dependence(maps, Scaling(centers[0] * scale, scale), Scaling(centers[1], np.ones(rows.s.shape[1])))


def _on_all_rows(
    attribute: AttributeAudit,
    i: int,
    plan: Plan,
    sums: Sums,
    everyone: Sample,
    favoured: Sample | None,
    settings: Settings,
) -> AttributeAudit:
    """Return the audit of an attribute with the numbers of all rows in place of those of the sample."""
    numbers = []
    dependence, moments = plan.dependence[i], sums.dependence[i]
    if dependence is not None and moments is not None:
        numbers += hsic_number(attribute.all_rows, dependence.maps, moments, settings)
    assert sums.probe is not None  # there are rows
    numbers.append(probe_number(sums.probe, everyone.block.z.shape[1], i, everyone.block.s.shape[1]))
    parity = parity_numbers(plan.everyone, sums.everyone, i, settings)
    all_rows = replaced(attribute.all_rows, everyone.rows, numbers, parity)
    positives = attribute.positives
    if positives is not None and favoured is not None:
        positives = replaced(positives, favoured.rows, [], parity_numbers(plan.favoured, sums.favoured, i, settings))
    counts = sums.histograms[i]
    return replace(
        attribute,
        distinct=len(everyone.counted(i)[0]),
        histogram=Histogram(tuple(plan.edges[i].tolist()), tuple(int(count) for count in counts)),
        all_rows=all_rows,
        positives=positives,
        sparse_regions=sparse_regions(all_rows.curve),
    )


def _with_favoured(
    attribute: AttributeAudit, i: int, favoured: Sample | None, sampled: Audit, settings: Settings, tell: Watch
) -> AttributeAudit:
    """Return the audit with measures on a sample of the favoured rows alone, where the sample of all has too few."""
    if attribute.positives is not None or favoured is None or favoured.block.y is None:
        return attribute
    block, at = favoured.block, tuple(contrast.at for contrast in attribute.all_rows.contrasts)
    every = np.ones(len(block), dtype=bool)
    outcome = Outcome(favoured.block.y, str(sampled.subject.target_name), every, "rows with the favourable outcome")
    positives = favoured_rows(_rows(block, i, sampled, sampled.subject.threshold), at, outcome, settings, tell)
    if isinstance(positives, Population):
        return replace(attribute, positives=positives, no_positives=None)
    return replace(attribute, no_positives=positives)


def _rows(block: Block, i: int, sampled: Audit, threshold: float | None) -> Rows:
    words, name = subject_phrase(sampled.subject), sampled.attributes[i].name
    return Rows(block.z, block.s[:, [i]], block.f, words, name, threshold=threshold)


def _check_names(attributes: tuple[str, ...], score: str | None, embedding: tuple[str, ...], sample_rows: int) -> None:
    if score is None and not embedding:
        raise ValueError("say what to audit: score=COLUMN or embedding=[COLUMN, ...].")
    if not attributes:
        raise ValueError("sensitive is empty; name at least one column.")
    if sample_rows < 1000:
        raise ValueError(f"sample_rows={sample_rows}; pass at least 1000.")


def _checked_survey(survey: Survey, roles: Roles) -> Sample:
    """Return the sample of all complete rows; raise if there are too few, or an attribute is constant."""
    everyone = survey.everyone
    if everyone is None or everyone.rows < LEAST_ROWS:
        complete = 0 if everyone is None else everyone.rows
        raise ValueError(
            f"an audit needs at least {LEAST_ROWS} rows; {complete} of {survey.given} have a value in each of "
            f"{', '.join(roles.columns)}."
        )
    for name, values in zip(roles.s, everyone.values):
        if values.low == values.high:
            raise ValueError(f"{name} is constant: all {everyone.rows} rows are equal, so nothing can depend on it.")
    named = roles.positive if roles.favourable is None else roles.favourable
    if named is not None and (everyone.block.favoured is None or not everyone.block.favoured.any()):
        count = 0 if survey.favoured is None else survey.favoured.rows
        raise ValueError(
            f"{named!r} is the {roles.target} of {count} of {everyone.rows:,} rows and of none in the sample; check "
            "its spelling, or raise sample_rows."
        )
    return everyone


def _threshold(threshold: float | None, scores: Scores | None) -> tuple[float | None, bool]:
    """Return the threshold, by default 0.5 for scores between 0 and 1, and whether it was stated."""
    if threshold is not None:
        return float(threshold), True
    return (0.5 if scores is not None and _are_probabilities(scores) else None), False


def _are_probabilities(scores: Scores) -> bool:
    return scores.low >= 0 and scores.high <= 1


def _sample_remark(everyone: Sample, scored: bool) -> tuple[str, ...]:
    parity = "GDP, the curves, " if scored else ""
    drawn = len(everyone.block)
    return (
        f"{parity}HSIC, the linear probe and the histogram use all {counted(everyone.rows, 'row')}. The other "
        f"numbers use a random sample of {drawn:,} of them, or fewer; the column “Rows” says how many.",
    )
