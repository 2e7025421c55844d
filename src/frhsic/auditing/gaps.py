"""Gaps in means by an attribute, and curves of these means, computed from rows or from sums over
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frhsic.auditing.comparing import difference, holm
from frhsic.auditing.results import (
    GAPS,
    SPARSE,
    WINDOWS_KEY,
    Change,
    Curve,
    Nodes,
    Number,
    Population,
    Within,
    are_chances,
)
from frhsic.auditing.rows import Rows
from frhsic.auditing.settings import Settings
from frhsic.intervals import Interval
from frhsic.parity import ParityCurve, ParityResult
from frhsic.parity.column import (
    column_from_sums,
    column_gap,
    strata_part,
    stratified_covariance,
)
from frhsic.parity.curve import curve_from_sums, value_cells, wide_cells
from frhsic.parity.gap import largest_gap
from frhsic.parity.ranks import RankGap
from frhsic.parity.rows import score_rows
from frhsic.parity.strata import Strata
from frhsic.parity.sums import Cells, ScoreSums, max_nodes, node_levels

NO_SHARE = 1e-12  # smaller means of decisions are 0 up to rounding


def gap_keys(*, binary: bool | None, chances: bool, threshold: float | None) -> tuple[str, ...]:
    """Return the keys of the gaps; `binary` is whether the target is 0/1, or None if there is no
    target.
    """
    present = {
        "gdp": True,
        "decision_gdp": threshold is not None,
        "error_gdp": threshold is not None and bool(binary),
        "calibration_gdp": binary is not None and (chances or not binary),
    }
    return tuple(key for key in GAPS if present[key])


def gap_column(
    key: str, f: np.ndarray, y: np.ndarray | None, threshold: float | None
) -> np.ndarray:
    """Return the column whose gap is measured: the score, the decision at the threshold, whether
    this decision is wrong, or the target minus the score.
    """
    if key == "calibration_gdp" and y is not None:
        return np.asarray(y - f)
    decided = f if threshold is None or key == "gdp" else (f > threshold).astype(np.float64)
    return np.asarray(decided != y, dtype=np.float64) if key == "error_gdp" else decided


def gaps_and_curves(rows: Rows, settings: Settings) -> Population:
    """Return the gaps and curves for rows in memory; sort the rows only once."""
    assert rows.scores is not None
    f, y = rows.scores, rows.y
    binary = None if y is None else bool(((y == 0) | (y == 1)).all())
    keys = gap_keys(binary=binary, chances=are_chances(f.min(), f.max()), threshold=rows.threshold)
    columns = {key: gap_column(key, f, y, rows.threshold) for key in keys}
    together = rows.score_rows(np.column_stack(list(columns.values())))
    cells = Cells.from_rows(together)
    sums = {key: cells.score_sums(together, own) for key, own in zip(keys, together.scores.T)}
    names: tuple[str, ...] = ()
    if rows.controls is not None and rows.strata is not None:
        weighted = rows.strata if rows.weights is None else rows.strata[rows.weights > 0]
        names = tuple(rows.controls.names[code] for code in np.unique(weighted))
    population = gaps_from_sums(
        sums, cells, settings, rows.controls, names, binary=binary, attributes=rows.attributes
    )
    curves = {key: _with_units(curve, rows) for key, curve in population.curves.items()}
    return replace(population, curves=curves)


def _with_units(curve: Curve, rows: Rows) -> Curve:
    """Return a curve with the number of units in each group of rows, such as the number of
    people.
    """
    if rows.groups is None:
        return curve
    s = rows.s[:, 0]
    units = tuple(
        len(np.unique(rows.groups[(s >= start) & (s <= end)]))
        for start, end in zip(curve.start, curve.end)
    )
    return replace(curve, units=units)


def gaps_from_sums(
    sums: dict[str, ScoreSums],
    cells: Cells,
    settings: Settings,
    controls: Strata | None = None,
    names: Sequence[str] = (),
    *,
    binary: bool | None = None,
    attributes: int = 1,
) -> Population:
    """Return the gaps and their curves, given sums over rows. `names` contains the names of the
    strata, `binary` is whether the target is 0/1, and `attributes` is the number of attributes
    whose error bands share one level.
    """
    numbers: list[Number] = []
    curves: dict[str, Curve] = {}
    equal: list[Number] = []
    differences: list[Change] = []
    cells = value_cells(cells, sums["gdp"].pooled().rows)
    for key, score_sums in sums.items():
        column = column_from_sums(score_sums.pooled(), cells)
        gaps = {key: column}
        if key == "gdp" and score_sums.ends[0] < score_sums.ends[1]:
            gaps["standardized_gdp"] = column.standardized_gap()
        for name, gap in gaps.items():
            numbers.append(gap_number(name, largest_gap(gap, settings.options)))
        if key == "calibration_gdp":
            chances = sums["gdp"].pooled() if binary else None
            pooled = score_sums.pooled()
            curves |= _error_curves(pooled, cells, settings.confidence, chances, attributes)
        else:
            curve = curve_from_sums(score_sums.pooled(), cells, settings.confidence)
            curves[key] = shown_curve(curve, *score_sums.ends)
        if controls is not None:
            within = column_from_sums(score_sums, cells)
            equal.append(gap_number(key, largest_gap(within, settings.options)))
            (number,) = (number for number in numbers if number.key == key)
            shared = stratified_covariance(score_sums, cells, column, within)
            level = round(1 - settings.confidence, 12)
            change = difference(key, "", number, equal[-1], level, shared)
            differences.append(replace(change, reduction=None))  # no limit has reduced these gaps
    numbers += decision_ratio(curves)
    nodes = score_nodes(sums["gdp"].pooled(), cells)
    population = Population(numbers[0].rows, tuple(numbers), curves, nodes=nodes)
    if controls is None:
        return population
    among_equals = Within(
        label=controls.label,
        numbers=tuple(equal),
        differences=tuple(differences),
        strata=_stratum_populations(sums["gdp"], cells, names, settings),
        between=strata_part(sums["gdp"], cells, column_from_sums(sums["gdp"].pooled(), cells)),
    )
    return replace(population, within=among_equals)


def _error_curves(
    sums: ScoreSums, cells: Cells, confidence: float, chances: ScoreSums | None, attributes: int
) -> dict[str, Curve]:
    """Return the mean errors in groups and, if there are many groups, in wide windows. One band
    covers the means of groups and windows, and all attributes share its level.
    """
    wide = wide_cells(sums, cells)
    parts = {"calibration_gdp": cells}
    if wide is not None:
        parts[WINDOWS_KEY] = wide
    total = attributes * sum(len(part.bins) for part in parts.values())
    curves = {}
    for key, part in parts.items():
        beside = total - len(part.bins)
        curve = curve_from_sums(sums, part, confidence, chances=chances, beside=beside)
        curves[key] = shown_curve(curve, *sums.ends)
    return curves


def score_nodes(sums: ScoreSums, cells: Cells) -> Nodes:
    """Return the moments of the score at nodes along S, four per window.

    Weighted or grouped rows are counted as the number of independent rows that would give the
    node's mean the same variance.
    """
    fine = sums.group_sums(cells.nodes)
    starts = cells.nodes[node_levels(fine.counts, max_nodes(round(sums.effective), 2))]
    nodes = sums.group_sums(starts)
    weight = nodes.counts
    mean = nodes.powers[0, 1] / weight
    rows = weight**2 / nodes.squared_weights
    moments = [
        power * rows ** (j - 1) / weight**j for j, power in enumerate(nodes.residuals(mean), 2)
    ]
    return Nodes(
        low=tuple(np.minimum.reduceat(sums.low, starts).tolist()),
        high=tuple(np.maximum.reduceat(sums.high, starts).tolist()),
        share=tuple((weight / weight.sum()).tolist()),
        rows=tuple(rows.tolist()),
        mean=tuple((sums.mean + mean).tolist()),
        moments=tuple(tuple(each.tolist()) for each in moments),
    )


def _stratum_populations(
    sums: ScoreSums, cells: Cells, names: Sequence[str], settings: Settings
) -> dict[str, Population]:
    strata = {}
    for i, (name, own) in enumerate(zip(names, cells.strata)):
        part = sums.take([i])
        numbers = []
        if len(own.nodes) > 1:
            gap = largest_gap(column_from_sums(part, own), settings.options)
            numbers.append(gap_number("gdp", gap))
        curve = shown_curve(curve_from_sums(part, own, settings.confidence), *part.ends)
        strata[name] = Population(round(sum(curve.rows)), tuple(numbers), {"gdp": curve})
    return dict(zip(strata, adjust_pvalues([*strata.values()])))


def adjust_pvalues(populations: Sequence[Population | None]) -> list[Any]:
    """Adjust the p-values with each key for the number of populations (Holm), and return the
    populations with the adjusted p-values.
    """
    tested: dict[str, dict[int, float]] = {}
    for i, population in enumerate(populations):
        for number in () if population is None else population.numbers:
            if number.pvalue is not None:
                tested.setdefault(number.key, {})[i] = number.pvalue
    several = {key: each for key, each in tested.items() if len(each) > 1}
    adjusted = {key: dict(zip(each, holm([*each.values()]))) for key, each in several.items()}
    return [
        population
        and replace(
            population,
            numbers=tuple(
                replace(n, adjusted=adjusted.get(n.key, {}).get(i)) for n in population.numbers
            ),
        )
        for i, population in enumerate(populations)
    ]


def gap_number(key: str, gap: ParityResult) -> Number:
    """Convert a gap and its interval to a :class:`Number`."""
    return Number(
        key,
        gap.value,
        gap.n,
        Interval(*gap.interval, gap.confidence, "influence function"),
        gap.expected_under_independence,
        gap.pvalue,
        {"resolution": gap.resolution, "seed": gap.seed},
        gap.standard_error,
    )


def shown_curve(curve: ParityCurve, least: float, most: float) -> Curve:
    """Convert a curve to plain data. Infinite ends of its band are replaced with `least` or `most`,
    and means of numbers between 0 and 1 are clipped to this range.
    """
    bounds = (0.0, 1.0) if are_chances(least, most) else (-np.inf, np.inf)
    low, high = np.nan_to_num(curve.lower, neginf=least), np.nan_to_num(curve.upper, posinf=most)
    return Curve(
        grid=tuple(curve.at.tolist()),
        mean=tuple(np.clip(curve.mean, *bounds).tolist()),
        overall=curve.overall,
        start=tuple(curve.start.tolist()),
        end=tuple(curve.end.tolist()),
        low=tuple(np.clip(low, *bounds).tolist()),
        high=tuple(np.clip(high, *bounds).tolist()),
        rows=tuple(curve.rows.tolist()),
        sparse=tuple((curve.rows < SPARSE).tolist()),
        confidence=curve.confidence,
    )


def decision_ratio(curves: dict[str, Curve]) -> list[Number]:
    r"""Return the lowest positive rate at any value of S, divided by the highest (the four-fifths
    rule requires 0.8). The band covers the rates of all groups at once, so the smallest and largest
    ratios within the band are the ends of an interval for :math:`\min_s p(s) / \max_s p(s)` over
    the groups that have enough rows. If no decision is positive, there is no ratio.
    """
    curve = curves.get("decision_gdp")
    if curve is None or max(curve.mean[i] for i in curve.trusted_groups) < NO_SHARE:
        return []
    means, low, high = (
        np.array(values)[curve.trusted_groups] for values in (curve.mean, curve.low, curve.high)
    )
    means[means < NO_SHARE] = 0.0
    ends = max(low.min(), 0.0) / high.max(), min(high.min() / max(low.max(), 1e-12), 1.0)
    interval = Interval(float(ends[0]), float(ends[1]), curve.confidence, "band")
    return [
        Number("decision_ratio", float(means.min() / means.max()), round(sum(curve.rows)), interval)
    ]


def gap_terms(
    f: np.ndarray,
    s: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    *,
    strata: np.ndarray | None = None,
    ranks: bool = False,
) -> np.ndarray:
    r"""Return the contribution of each row to the gap in a column, :math:`(g(s) - \bar g) (f - \bar
    f) / n` minus its mean, where g is the estimated sign of the gap curve of f at s.

    For the rank gap, contributions are averaged over its nine decisions, and :math:`\bar g` is the
    mean over rows near the decile, because these rows move the decile. With strata, each row is
    compared with the means of its stratum.
    """
    if strata is not None:
        strata = np.unique(strata, return_inverse=True)[1]
    rows = score_rows(f[:, None], s, weights, groups, strata)
    shares = np.ones(len(f)) if weights is None else weights
    shares = shares / shares.sum()
    if ranks:
        gap = RankGap(rows)
        order = np.lexsort((shares, f, s))
        order = order[shares[order] > 0]
        terms = np.zeros(len(f))
        terms[order] = gap.terms(gap.columns.signs)
    else:
        cells = Cells.from_rows(rows)
        code = np.zeros(len(f), dtype=np.int64) if strata is None else strata
        means = np.bincount(code, shares * f) / np.bincount(code, shares)
        slope = column_gap(rows, rows.scores[:, 0]).signs.slope[cells.node(s, strata)]
        terms = slope * (f - means[code]) * shares
    return np.asarray(terms - terms.sum() * shares)
