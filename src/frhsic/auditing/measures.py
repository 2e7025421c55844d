"""The numbers of one set of rows: gaps of means along the attribute, dependence of the
representation, probes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats

from frhsic import _arrays, _lazy
from frhsic._arrays import effective_number
from frhsic.auditing.comparing import difference, holm
from frhsic.auditing.results import (
    GAPS,
    WINDOWS_KEY,
    Change,
    Curve,
    Law,
    Nodes,
    Number,
    Population,
    Quality,
    Within,
    are_chances,
)
from frhsic.dependence.columns import column_scales
from frhsic.independence.effects import normalized_effect
from frhsic.independence.pairs import ColumnPair, Pair
from frhsic.intervals import Interval
from frhsic.parity import ParityCurve, ParityResult
from frhsic.parity.column import (
    GapOptions,
    column_from_sums,
    column_gap,
    strata_part,
    stratified_covariance,
)
from frhsic.parity.curve import curve_from_sums, wide_cells
from frhsic.parity.explained import ratio_from_rows
from frhsic.parity.gap import largest_gap
from frhsic.parity.ranks import RankGap
from frhsic.parity.rows import ScoreRows, score_rows
from frhsic.parity.strata import Strata
from frhsic.parity.sums import Cells, ScoreSums, max_nodes, node_levels
from frhsic.probes import ProbeKind, probe
from frhsic.scoring import auc_and_influence
from frhsic.splits import subsample

LEAST_ROWS = 20
SPARSE = 30  # rows below which a group of a curve is not to be trusted
NO_SHARE = 1e-12  # below which a mean of decisions is the rounding error of none
RANK_ROWS = 50_000  # rows of the rank gap at most, which looks at nine decisions
SHARE_METHOD = "Clopper and Pearson"  # of the intervals of shares
PROBES: tuple[ProbeKind, ...] = ("linear", "trees")


@dataclass(frozen=True, eq=False)
class Rows:
    """Data of one population in float64: z of shape (n, d), s of shape (n, q); the other fields
    have one entry per row, or are None. Code that receives this object does not validate the rows
    again. `y` is a target whose errors are measured; among rows with a single outcome it is None.
    `favoured` marks the rows with the favourable outcome; None if there is no such outcome.
    `weights` and `groups` are used by the gaps; other measures use :meth:`independent` rows.
    `strata` has the stratum of each row, as a number that `controls` defines.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    y: np.ndarray | None = None
    favoured: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    threshold: float | None = None
    strata: np.ndarray | None = None
    controls: Strata | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    @property
    def effective(self) -> float:
        """Effective number of rows, or of groups."""
        return effective_rows(self.count, self.weights, self.groups)

    def law(self, values: np.ndarray) -> Law:
        """Return the distribution of a variable of these rows."""
        distinct, place = np.unique(values, return_inverse=True)
        return Law.from_counts(distinct, np.bincount(place, self.weights), self.effective)

    def select_attribute(self, i: int) -> Self:
        """Return the rows with one of the attributes."""
        return replace(self, s=self.s[:, [i]])

    def keep(self, rows: np.ndarray) -> Self:
        """Return some of the rows, by mask or position."""
        parts: dict[str, Any] = {
            key: part[rows] for key, part in vars(self).items() if isinstance(part, np.ndarray)
        }
        return replace(self, **parts)

    def score_rows(self, columns: np.ndarray) -> ScoreRows:
        """Return columns of numbers of these rows, of shape (n, k), in the form that gaps need."""
        return score_rows(columns, self.s[:, 0], self.weights, self.groups, self.strata)

    def independent_rows(self, random: np.random.Generator) -> Self:
        """Return independent rows of the weighted population: one of each group, kept in proportion
        to its weight.
        """
        kept = np.arange(self.count)
        if self.groups is not None:
            order = random.permutation(self.count)
            kept = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        if self.weights is not None:
            weights = self.weights[kept]
            kept = kept[random.random(len(kept)) * weights.max() < weights]
        return replace(self.keep(kept), weights=None, groups=None)


@dataclass(frozen=True)
class Settings:
    """How an audit is computed.

    Attributes
    ----------
    confidence
        Confidence of every interval. One minus it is the level at which the findings call a test
        significant.
    max_rows
        Largest number of rows for the costly statistics.
    probe_rows
        Largest number of rows for the probes.
    resamples
        Resamples of the gaps.
    seed
        Seed of every random draw.
    watch
        Function that is called with the name of each step as it begins.
    fast
        Skip what the first screen of a report does not show: ranks, dependence, probes and equal
        opportunity.

    Examples
    --------
    A quick audit, for a first look:

    >>> from frhsic import audit
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> result = audit(age / 50, age, settings=Settings(fast=True, resamples=99))
    >>> [number.key for number in result["s"].all_rows.numbers]
    ['gdp', 'standardized_gdp']
    """

    confidence: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 499
    seed: int = 0
    watch: Callable[[str], None] | None = None
    fast: bool = False

    def __post_init__(self) -> None:
        _arrays.require_fraction(self.confidence, "confidence")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20)):
            _arrays.require_integer(getattr(self, name), name, least)

    @property
    def options(self) -> GapOptions:
        """Options for computing the gaps."""
        return GapOptions(self.confidence, self.resamples, self.seed)

    def tell(self, step: str) -> None:
        """Call `watch` with the name of a step."""
        if self.watch is not None:
            self.watch(step)

    def about(self, part: str) -> Settings:
        """Return settings that report their steps as part of a larger audit."""
        return replace(self, watch=lambda step: self.tell(f"{part}: {step}"))

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a separate generator for each purpose, so that adding a number does not change
        others.
        """
        return np.random.default_rng([self.seed, *keys])


def gap_keys(*, binary: bool | None, chances: bool, threshold: float | None) -> tuple[str, ...]:
    """Return the keys of the gaps; `binary` says whether the target is 0/1; None means there is no
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
    """Return the column that a gap is measured on: the score, decisions at the threshold, wrong
    decisions, or target minus score.
    """
    if key == "calibration_gdp" and y is not None:
        return np.asarray(y - f)
    decided = f if threshold is None or key == "gdp" else (f > threshold).astype(np.float64)
    return np.asarray(decided != y, dtype=np.float64) if key == "error_gdp" else decided


def gaps_and_curves(rows: Rows, settings: Settings) -> Population:
    """Return the gaps of rows in memory, and their curves; rows are sorted once."""
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
    return gaps_from_sums(sums, cells, settings, rows.controls, names, binary=binary)


def gaps_from_sums(
    sums: dict[str, ScoreSums],
    cells: Cells,
    settings: Settings,
    controls: Strata | None = None,
    names: Sequence[str] = (),
    *,
    binary: bool | None = None,
) -> Population:
    """Return the gaps, and their curves, from sums over rows; `names` are those of the strata, and
    `binary` says whether the target is 0/1.
    """
    numbers: list[Number] = []
    curves: dict[str, Curve] = {}
    equal: list[Number] = []
    differences: list[Change] = []
    for key, score_sums in sums.items():
        column = column_from_sums(score_sums.pooled(), cells)
        gaps = {key: column}
        if key == "gdp" and score_sums.ends[0] < score_sums.ends[1]:
            gaps["standardized_gdp"] = column.standardized_gap()
        for name, gap in gaps.items():
            numbers.append(gap_number(name, largest_gap(gap, settings.options)))
        if key == "calibration_gdp":
            chances = sums["gdp"].pooled() if binary else None
            curves |= _error_curves(score_sums.pooled(), cells, settings.confidence, chances)
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
            differences.append(replace(change, reduction=None))  # no gap was lowered
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
    sums: ScoreSums, cells: Cells, confidence: float, chances: ScoreSums | None
) -> dict[str, Curve]:
    """Return the mean errors of groups and, if there are many, of wide windows; one band covers
    all of them.
    """
    wide = wide_cells(sums, cells)
    parts = {"calibration_gdp": cells}
    if wide is not None:
        parts[WINDOWS_KEY] = wide
    total = sum(len(part.bins) for part in parts.values())
    curves = {}
    for key, part in parts.items():
        beside = total - len(part.bins)
        curve = curve_from_sums(sums, part, confidence, chances=chances, beside=beside)
        curves[key] = shown_curve(curve, *sums.ends)
    return curves


def score_nodes(sums: ScoreSums, cells: Cells) -> Nodes:
    """Return the moments of the score at nodes along S, four in a window.

    Weighted or clustered rows count as the number of independent rows that would give the mean of a
    node its variance.
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
    """Return the gap and the curve of the score in each stratum."""
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
    """Return populations with p-values also adjusted for their number (Holm), separately for each
    key.
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
    """Return a gap with its interval."""
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
    """Return a curve as plain data; infinite ends of its band become the smallest and largest
    value. Means of numbers between 0 and 1 are clipped to this range.
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


def measure(rows: Rows, settings: Settings, *, probed: bool = True) -> Population:
    """Measure one attribute on one set of rows; skip measures that need more rows or a variable
    that isn't constant.
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


def decision_ratio(curves: dict[str, Curve]) -> list[Number]:
    r"""Return the lowest share of decisions along S as a share of the highest (the four-fifths rule
    requires 0.8). The band covers the shares of all groups at once, so the smallest and the largest
    ratio that it allows are an interval for :math:`\min_s p(s) / \max_s p(s)` over the groups that
    have enough rows. There is no ratio if no decision is positive.
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


def _rank_gap(rows: Rows, settings: Settings) -> Number:
    rows = replace(rows.keep(subsample(rows.count, RANK_ROWS, settings.generator(9))), strata=None)
    assert rows.scores is not None
    gap = RankGap(rows.score_rows(rows.scores[:, None]))
    return gap_number("rank_gap", largest_gap(gap, settings.options))


def _explained_variance(rows: Rows, settings: Settings) -> Iterator[Number]:
    if rows.count < LEAST_ROWS or rows.scores is None:
        return
    with contextlib.suppress(ValueError):  # constant or few among the independent rows
        share = ratio_from_rows(rows.score_rows(rows.scores[:, None]), settings.confidence)
        if share.trusted:
            interval = Interval(*share.interval, share.confidence, "normal approximation")
            yield Number("correlation_ratio", share.value, share.n, interval, 0.0)


def dependence(rows: Rows, settings: Settings, *, probed: bool) -> Iterator[Number]:
    """Yield HSIC with its test, distance correlation and, if requested, the probes, on independent
    rows. Without torch, HSIC and distances between several columns are left out.
    """
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    if rows.count < LEAST_ROWS or float(np.ptp(rows.s[chosen], axis=0).max()) == 0:
        return
    z = unit_columns(rows.z[chosen])
    s = rows.s[chosen]
    settings.tell("HSIC and its test")
    with contextlib.suppress(ValueError):  # z or s is constant, under its kernel or by itself
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
    """Return z, with each column divided by its spread if there are several, so that units do not
    matter.
    """
    return z if z.shape[1] == 1 else z / column_scales(z)


def _probes(rows: Rows, settings: Settings) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    for kind in PROBES:
        settings.tell(f"{kind} probe")
        result = probe(rows.z[chosen], rows.s[chosen, 0], kind, seed=settings.seed)
        yield Number(f"probe_{kind}", result.r2, result.rows, None, result.shuffled_r2)


def effective_rows(count: int, weights: np.ndarray | None, groups: np.ndarray | None) -> float:
    """Return the effective number of rows with weights, or of groups of rows."""
    shares = np.ones(count) if weights is None else weights
    if groups is not None:
        shares = np.bincount(groups, shares)
    return effective_number(shares)


def base_rate(
    x: np.ndarray,
    confidence: float,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Number:
    """Return the mean of a target or of scores; its interval is Student's, or Clopper and Pearson's
    for 0/1.
    """
    shares = np.ones(len(x)) if weights is None else weights
    shares = shares / shares.sum()
    mean = float(shares @ x)
    terms = shares * (x - mean)
    error = math.sqrt(covariance(terms, terms, groups, weights))
    effective = effective_rows(len(x), weights, groups)
    binary = bool(((x == 0) | (x == 1)).all())
    return rate_number(mean, error, effective, len(x), binary=binary, confidence=confidence)


def rate_number(
    mean: float, error: float, effective: float, rows: int, *, binary: bool, confidence: float
) -> Number:
    """Return a mean with its interval."""
    tail = (1 - confidence) / 2
    reach = float(stats.t.ppf(1 - tail, max(effective - 1, 1))) * error
    low, high, method = mean - reach, mean + reach, "Student's t"
    if binary:
        if 0 < mean < 1 and error > 0:  # rows of a group that are alike count as fewer
            effective = min(effective, mean * (1 - mean) / error**2)
        count, method = mean * effective, SHARE_METHOD
        low = float(stats.beta.ppf(tail, count, effective - count + 1)) if mean > 0 else 0.0
        high = float(stats.beta.ppf(1 - tail, count + 1, effective - count)) if mean < 1 else 1.0
    return Number(
        "base_rate", mean, rows, Interval(low, high, confidence, method), standard_error=error
    )


def qualities(
    scores: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    weights: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Iterator[Quality]:
    """Yield how well scores predict y, each with its standard error."""
    for key, result in performance(scores, y, threshold, weights).items():
        error = math.sqrt(covariance(result.terms, result.terms, groups, weights))
        yield Quality(key, result.value, result.constant, error)


def covariance(
    a: np.ndarray,
    b: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> float:
    """Return the covariance of two estimates, given the contribution of each row; rows of a group
    are added up first.
    """
    effective = effective_rows(len(a), weights, groups)
    if groups is not None:
        a, b = np.bincount(groups, a), np.bincount(groups, b)
    return float(a @ b) * effective / max(effective - 1, 1)


def gap_terms(
    f: np.ndarray,
    s: np.ndarray,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    *,
    strata: np.ndarray | None = None,
    ranks: bool = False,
) -> np.ndarray:
    r"""Return the contribution of each row to the gap of a column, :math:`(g(s) - \bar g) (f - \bar
    f) / n` minus its mean, with g the estimated sign of the mean of f at s.

    For the rank gap it is averaged over its decisions; :math:`\bar g` is then the mean over rows
    near the decile, because the decile moves with them. Within strata, the means are those of the
    stratum.
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


class Performance(NamedTuple):
    """One measure of performance: its value, the contribution of each row, and the value for a
    constant.
    """

    value: float
    terms: np.ndarray
    constant: float


def performance(
    scores: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    weights: np.ndarray | None = None,
) -> dict[str, Performance]:
    """Return how well scores predict y by several measures, compared with a constant: the base
    rate, or the mean.

    For a 0/1 target, the measures that apply to the kind of score. For numbers, the root mean
    squared error, the share of variance explained, and the mean of y minus the score.
    """
    w = np.ones(len(y)) if weights is None else weights
    w = w / w.sum()

    def mean(x: np.ndarray, constant: float, rows: np.ndarray | float = 1.0) -> Performance:
        shares = w * rows / float((w * rows).sum())
        value = float(shares @ x)
        count = 1 / float((shares**2).sum())
        few = math.sqrt(count / max(count - 1, 1))
        return Performance(value, few * shares * (x - value), constant)

    rate = float(w @ y)
    measures = {"mean_error": mean(y - scores, 0.0)}
    if not ((y == 0) | (y == 1)).all():
        square = mean(np.square(y - scores), 0.0)
        spread = mean(np.square(y - rate), 0.0)
        root = math.sqrt(square.value)
        measures["root_squared_error"] = Performance(
            root, square.terms / (2 * max(root, 1e-300)), math.sqrt(spread.value)
        )
        if spread.value > 0:
            ratio = square.value / spread.value
            terms = (ratio * spread.terms - square.terms) / spread.value
            measures["explained"] = Performance(1 - ratio, terms, 0.0)
        return measures
    both = 0 < rate < 1
    rare = _error_factor(y)
    if threshold is not None:
        yes = (scores > threshold).astype(np.float64)
        measures["accuracy"] = mean((yes == y).astype(np.float64), max(rate, 1 - rate))
        if both:
            usual = float(rate > 0.5)  # the more frequent outcome
            measures["true_positive_rate"] = mean(yes, usual, y == 1)
            measures["false_positive_rate"] = mean(yes, usual, y == 0)
    if both:
        auc, influence = auc_and_influence(scores, y, weights)
        measures["auc"] = Performance(auc, rare * w * influence, 0.5)
    if not are_chances(scores.min(), scores.max()):
        del measures["mean_error"]
        return measures
    error = measures["mean_error"]
    measures["mean_error"] = error._replace(terms=rare * error.terms)
    if not ((scores == 0) | (scores == 1)).all():  # no decisions
        p = np.clip(scores, 1e-12, 1 - 1e-12)
        chance = float(stats.entropy([rate, 1 - rate]))
        measures["log_loss"] = mean(-np.log(np.where(y == 1, p, 1 - p)), chance)
    return measures


def changes(
    was: np.ndarray,
    now: np.ndarray,
    y: np.ndarray,
    threshold: float | None,
    level: float,
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Iterator[Change]:
    """Yield the difference in performance of other scores on the same rows."""
    old, new = (performance(scores, y, threshold, weights) for scores in (was, now))
    for key in [key for key in old if key in new]:
        numbers = []
        for result in (old[key], new[key]):
            error = math.sqrt(covariance(result.terms, result.terms, groups, weights))
            numbers.append(Number(key, result.value, len(y), standard_error=error))
        shared = covariance(old[key].terms, new[key].terms, groups, weights)
        yield difference(key, "", numbers[0], numbers[1], level, shared)


def _error_factor(y: np.ndarray) -> float:
    """Return the factor by which a standard error is widened with few rows of one outcome.

    The standard error is itself uncertain then, and several comparisons are made with it.
    """
    rare = int(min(y.sum(), len(y) - y.sum()))
    return float(stats.t.ppf(0.998, max(rare - 1, 1)) / stats.norm.ppf(0.998)) * math.sqrt(
        1 + 1 / max(rare, 1)
    )
