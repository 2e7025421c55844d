"""The numbers for one attribute on one set of rows: gaps, dependence and probes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from frhsic import _lazy
from frhsic.auditing.gaps import gap_number, gaps_and_curves
from frhsic.auditing.results import Number, Population
from frhsic.auditing.rows import Rows
from frhsic.auditing.settings import Settings
from frhsic.dependence.columns import column_scales
from frhsic.independence.effects import normalized_effect
from frhsic.independence.pairs import ColumnPair, Pair
from frhsic.intervals import Interval
from frhsic.parity.explained import ratio_from_rows
from frhsic.parity.gap import largest_gap
from frhsic.parity.ranks import RankGap
from frhsic.probes import ProbeKind, probe
from frhsic.splits import subsample

LEAST_ROWS = 20
RANK_ROWS = 50_000  # most rows for the rank gap, which averages the gaps of nine decisions
PROBES: tuple[ProbeKind, ...] = ("linear", "trees")


def measure(rows: Rows, settings: Settings, *, probed: bool = True) -> Population:
    """Measure the gaps and the dependence for one attribute on one set of rows; skip measures that
    need more rows or that are undefined because a variable is constant.
    """
    population = Population(rows.count, ())
    numbers: list[Number] = []
    independent = rows.independent_rows(settings.generator(8))
    if rows.scores is not None:
        settings.tell("gaps")
        population = gaps_and_curves(rows, settings)
        if np.ptp(rows.scores) > 0 and not settings.fast:
            numbers.append(_rank_gap(rows, settings))
            numbers += _explained_variance(independent, settings)
    if not settings.fast:
        numbers += dependence(independent, settings, probed=probed)
    return replace(population, rows=rows.count, numbers=(*population.numbers, *numbers))


def _rank_gap(rows: Rows, settings: Settings) -> Number:
    rows = replace(rows.keep(subsample(rows.count, RANK_ROWS, settings.generator(9))), strata=None)
    assert rows.scores is not None
    gap = RankGap(rows.score_rows(rows.scores[:, None]))
    return gap_number("rank_gap", largest_gap(gap, settings.options))


def _explained_variance(rows: Rows, settings: Settings) -> Iterator[Number]:
    if rows.count < LEAST_ROWS or rows.scores is None:
        return
    with contextlib.suppress(ValueError):  # the independent rows are constant, or few
        share = ratio_from_rows(rows.score_rows(rows.scores[:, None]), settings.confidence)
        if share.trusted:
            interval = Interval(*share.interval, share.confidence, "normal approximation")
            yield Number("correlation_ratio", share.value, share.n, interval, 0.0)


def dependence(rows: Rows, settings: Settings, *, probed: bool) -> Iterator[Number]:
    """Yield HSIC with its test, distance correlation and, if requested, the probes, all computed on
    independent rows. Without torch, HSIC is omitted, and so is distance correlation if there are
    several columns.
    """
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    if rows.count < LEAST_ROWS or float(np.ptp(rows.s[chosen], axis=0).max()) == 0:
        return
    z = unit_columns(rows.z[chosen])
    s = rows.s[chosen]
    settings.tell("HSIC and its test")
    with contextlib.suppress(ValueError):  # z or s is constant, or its kernel is
        if _lazy.has_torch():
            from frhsic.auditing.kernels import hsic_numbers

            yield from hsic_numbers(z, s, settings.confidence)
        yield from _distance_correlation(z, s, settings.confidence)
    if probed:
        yield from _probes(rows, settings)


def _distance_correlation(z: np.ndarray, s: np.ndarray, confidence: float) -> Iterator[Number]:
    pair: Pair
    if z.shape[1] == s.shape[1] == 1:
        pair = ColumnPair.from_values(z[:, 0], s[:, 0])
    elif _lazy.has_torch():
        from frhsic.auditing.kernels import distance_pair

        pair = distance_pair(z, s)
    else:
        return
    effect = normalized_effect(pair, confidence)
    yield Number("squared_distance_correlation", effect.value, effect.n, effect.interval, 0.0)


def unit_columns(z: np.ndarray) -> np.ndarray:
    """Return z; if there are several columns, each is divided by its spread, so that its unit
    doesn't matter.
    """
    return z if z.shape[1] == 1 else z / column_scales(z)


def _probes(rows: Rows, settings: Settings) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    for kind in PROBES:
        settings.tell(f"{kind} probe")
        result = probe(rows.z[chosen], rows.s[chosen, 0], kind, seed=settings.seed)
        yield Number(f"probe_{kind}", result.r2, result.rows, None, result.shuffled_r2)
