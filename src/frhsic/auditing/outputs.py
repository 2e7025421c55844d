"""The gaps in a fitted predictor's outputs, measured as in its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frhsic.auditing.gaps import gap_number, gap_terms
from frhsic.auditing.results import Number
from frhsic.auditing.settings import Settings
from frhsic.estimators.frontier import aimed_gap, limited_measure
from frhsic.parity.limits import measure_name


def output_gaps(
    predictor: Any,
    outputs: np.ndarray,
    y: np.ndarray,
    s: np.ndarray,
    weights: np.ndarray | None,
    groups: np.ndarray | None,
    settings: Settings,
    strata: np.ndarray | None = None,
) -> list[tuple[Number, np.ndarray]]:
    """For each attribute with a limit in the fit of a predictor, return the largest gap in the
    outputs over all conditions (within strata, if any) and each row's contribution to this gap.
    """
    key = limited_measure(predictor.aim, predictor.condition)
    if strata is not None and predictor.condition is None:
        key = measure_name(key, "equal")
    gaps: dict[int, list[tuple[Number, np.ndarray]]] = {}
    for block in predictor.solution_.constraints:
        kept = block.rows(s, y)
        own = s[kept, block.attribute]
        more = [None if values is None else values[kept] for values in (weights, groups)]
        codes = None if strata is None else strata[kept]
        gap = aimed_gap(
            predictor.aim,
            outputs[kept],
            own,
            *more,
            strata=codes,
            confidence=settings.confidence,
            resamples=settings.resamples,
            random_state=settings.seed,
        )
        terms = np.zeros(len(outputs))
        terms[kept] = gap_terms(
            outputs[kept], own, *more[::-1], strata=codes, ranks=predictor.aim == "rank"
        )
        gaps.setdefault(block.attribute, []).append((gap_number(key, gap), terms))
    return [maximum_gap(each) for each in gaps.values()]


def maximum_gap(gaps: Sequence[tuple[Number, np.ndarray]]) -> tuple[Number, np.ndarray]:
    """Return the largest of several gaps, one for each condition or class, with each row's
    contribution to it. As in the frontier, the ends of the interval are the largest lower end and
    the largest upper end of all the intervals; the p-value is adjusted for the number of gaps
    (Bonferroni).
    """
    number, terms = max(gaps, key=lambda pair: pair[0].value)
    intervals = [gap.interval for gap, _ in gaps if gap.interval is not None]
    pvalue = min(len(gaps) * min(gap.pvalue or 0.0 for gap, _ in gaps), 1.0)
    low = max(ends.low for ends in intervals)
    high = max(ends.high for ends in intervals)
    interval = replace(intervals[0], low=low, high=high).agree_with(number.value, pvalue)
    return replace(number, pvalue=pvalue, interval=interval), terms
