"""The numbers of one set of rows: gaps of means along the attribute, dependence of the representation, probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing.limits import GAPS
from frhsic.auditing.results import Contrast, Curve, Number, Population, Setting
from frhsic.dependence._inputs import column_scales
from frhsic.independence import conditional_test, normalized_hsic_interval
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence.effects import hsic_effect, normalized_effect
from frhsic.independence.gamma import LEAST_ROWS, gamma_test_of
from frhsic.intervals import Interval, subsample
from frhsic.kernels import HalfDistance, Kernel
from frhsic.kernels.bandwidth import default_gaussian
from frhsic.kernels.kernel import PerColumn
from frhsic.parity import ParityCurve, ParityResult, correlation_ratio, gdp_curve, local_mean, rank_gap
from frhsic.parity._rows import rows_of
from frhsic.parity.curve import curve_of
from frhsic.parity.gap import GapOptions, columns_of, gap_and_standardized, largest_gap
from frhsic.probes import ProbeKind, probe

FEWEST = 20
"""Independent rows that the measures of dependence need."""
SPARSE = 30
"""Rows below which a group of a curve is not to be trusted."""
RANK_ROWS = 50_000
"""Rows of the rank gap at most, which looks at nine decisions."""
COMMON = 0.1
"""Resolution of the gap that is compared between audits, whatever their numbers of rows."""
KERNEL_STATISTICS = ("hsic", "hsic_effect", "distance_correlation")
PROBES: tuple[ProbeKind, ...] = ("linear", "trees")
KEYS = (
    *GAPS, "decision_ratio", "gdp_common", "standardized_gdp", "rank_gap", "correlation_ratio", "separation",
    *KERNEL_STATISTICS, "probe_linear", "probe_trees",
)  # fmt: skip
"""All numbers that an audit can hold."""


@dataclass(frozen=True)
class Settings:
    """How an audit is computed.

    Attributes
    ----------
    confidence
        Confidence of every interval. One minus it is the level at which the findings call a test significant.
    max_rows
        Largest number of rows for the costly statistics.
    probe_rows
        Largest number of rows for the probes.
    resamples
        Resamples of the gaps.
    seed
        Seed of every random draw.
    at
        Values of the attribute at which to contrast the mean score with the overall mean: a sequence, used by every
        attribute whose range holds them, or a mapping from attribute to values.
    kernel_z, kernel_s
        Kernels of HSIC and the certificates: on Z, with each of several columns divided by its spread, and on each
        attribute. None is a Gaussian at the median distance or, where that is 0, at the median of the non-zero
        distances.
    watch
        Function that is called with the name of each step as it begins.
    """

    confidence: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 499
    seed: int = 0
    at: Sequence[float] | Mapping[str, Sequence[float]] = ()
    kernel_z: Kernel | None = None
    kernel_s: Kernel | None = None
    watch: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; pass a share between 0 and 1, such as 0.95.")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}; pass a whole number, at least {least}.")

    def plain(self) -> dict[str, Setting]:
        """Return the settings as text and numbers."""
        kernels = {
            name: str(getattr(self, name) or "Gaussian at the median distance") for name in ("kernel_z", "kernel_s")
        }
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("at", "watch")} | kernels

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the gaps."""
        return {"confidence": self.confidence, "resamples": self.resamples, "random_state": self.seed}

    def tell(self, step: str) -> None:
        """Call `watch` with the name of a step."""
        if self.watch is not None:
            self.watch(step)

    def about(self, part: str) -> Settings:
        """Return settings whose steps are told as those of a part of the audit."""
        return replace(self, watch=lambda step: self.tell(f"{part}: {step}"))

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a separate generator for each purpose, so that adding one number changes no other."""
        return np.random.default_rng([self.seed, *keys])


@dataclass(frozen=True, eq=False)
class Rows:
    """Data of one population in float64: z of shape (n, d), s of shape (n, q), and per row or None the others.

    `y` is a target whose errors are looked at; among rows with one outcome it is None. `weights` and `groups` are used
    by the gaps; other measures use :meth:`independent` rows.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    y: np.ndarray | None = None
    weights: np.ndarray | None = None
    groups: np.ndarray | None = None
    threshold: float | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    def along(self, i: int) -> Rows:
        """Return the rows with one of the attributes."""
        return replace(self, s=self.s[:, [i]])

    def keep(self, rows: np.ndarray) -> Rows:
        """Return some of the rows, by mask or position."""
        parts: dict[str, Any] = {key: getattr(self, key) for key in ("z", "s", "scores", "y", "weights", "groups")}
        kept: dict[str, Any] = {key: None if part is None else part[rows] for key, part in parts.items()}
        return replace(self, **kept)

    def independent(self, settings: Settings) -> Rows:
        """Return independent rows of the weighted population: one of each group, kept in proportion to its weight."""
        kept, random = np.arange(self.count), settings.generator(8)
        if self.groups is not None:
            order = random.permutation(self.count)
            kept = np.sort(order[np.unique(self.groups[order], return_index=True)[1]])
        if self.weights is not None:
            weights = self.weights[kept]
            kept = kept[random.random(len(kept)) * weights.max() < weights]
        return replace(self.keep(kept), weights=None, groups=None)


def gap_keys(*, binary: bool | None, chances: bool, threshold: float | None) -> tuple[str, ...]:
    """Return which gaps there are; `binary` says whether the target is 0/1, None that there is none."""
    present = {
        "gdp": True,
        "decision_gdp": threshold is not None,
        "error_gdp": threshold is not None and bool(binary),
        "calibration_gdp": binary is not None and (chances or not binary),
    }
    return tuple(key for key in GAPS if present[key])


def gap_column(key: str, f: np.ndarray, y: np.ndarray | None, threshold: float | None) -> np.ndarray:
    """Return what a gap is of: the score, decisions at the threshold, wrong decisions, or target less score."""
    if key == "calibration_gdp" and y is not None:
        return np.asarray(y - f)
    decided = f if threshold is None or key == "gdp" else (f >= threshold).astype(np.float64)
    return np.asarray(decided != y, dtype=np.float64) if key == "error_gdp" else decided


@dataclass(frozen=True, eq=False)
class Gap:
    """The gap of one column along an attribute, in standard deviations and at the common resolution too, and curve."""

    gap: ParityResult
    curve: ParityCurve
    ends: tuple[float, float]
    standardized: ParityResult | None = None
    common: ParityResult | None = None


def gaps_of(rows: Rows, settings: Settings) -> dict[str, Gap]:
    """Return the gaps of rows in memory, which are sorted once."""
    assert rows.scores is not None
    f, y = rows.scores, rows.y
    binary = None if y is None else bool(((y == 0) | (y == 1)).all())
    keys = gap_keys(binary=binary, chances=bool(f.min() >= 0 and f.max() <= 1), threshold=rows.threshold)
    columns = {key: gap_column(key, f, y, rows.threshold) for key in keys}
    together = rows_of(np.column_stack(list(columns.values())), rows.s, None, rows.weights, rows.groups)
    gaps = {}
    for i, (key, column) in enumerate(columns.items()):
        one = replace(together, scores=together.scores[:, [i]])
        gap, standardized = gap_and_standardized(one, settings.confidence, settings.resamples, settings.seed)
        ends, common = (float(column.min()), float(column.max())), None
        if key == "gdp":
            options = GapOptions(settings.confidence, settings.resamples, settings.seed)
            common = largest_gap(columns_of(one, COMMON), rows.count, options)
        first = key == "gdp"
        gaps[key] = Gap(gap, curve_of(one, settings.confidence), ends, standardized if first else None, common)
    return gaps


def gap_numbers(gaps: dict[str, Gap], settings: Settings) -> tuple[list[Number], dict[str, Curve]]:
    """Return numbers and curves of gaps, whichever way they were computed."""
    numbers = []
    for key, one in gaps.items():
        results = {key: one.gap, "gdp_common": one.common, "standardized_gdp": one.standardized}
        numbers += [gap_number(name, result) for name, result in results.items() if result is not None]
    return numbers, {key: shown_curve(one.curve, *one.ends, settings) for key, one in gaps.items()}


def gap_alone(rows: Rows, settings: Settings) -> Population:
    """Return the gap of the mean score along an attribute, and its curve."""
    if rows.count < FEWEST or np.ptp(rows.s) == 0:
        return Population(rows.count, (), omitted={"gdp": "few_rows" if rows.count < FEWEST else "constant"})
    numbers, curves = gap_numbers(gaps_of(rows, settings), settings)
    return Population(rows.count, tuple(number for number in numbers if number.key == "gdp"), curves)


def between_levels(rows: Rows, levels: int, settings: Settings) -> Population:
    """Return the mean score of unordered groups, numbered from 0, with a band for all of them at once."""
    assert rows.scores is not None
    curve = gdp_curve(
        rows.scores,
        rows.s[:, 0],
        bins=max(levels, 2),
        sample_weight=rows.weights,
        groups=rows.groups,
        confidence=settings.confidence,
    )
    ends = float(rows.scores.min()), float(rows.scores.max())
    return Population(rows.count, (), {"gdp": shown_curve(curve, *ends, settings)})


def gap_number(key: str, gap: ParityResult) -> Number:
    """Return a gap with its interval, up to its bound where the interval is not to be trusted."""
    low, high = gap.interval
    interval = Interval(low, high if gap.trusted else max(high, gap.bound), gap.confidence, "influence function")
    details: dict[str, Setting] = {"resolution": gap.resolution, "bound": gap.bound, "seed": gap.seed}
    null, error = gap.expected_under_independence, gap.standard_error
    return Number(key, gap.value, gap.n, interval, null, gap.pvalue, details, None, error, gap.trusted)


def shown_curve(curve: ParityCurve, least: float, most: float, settings: Settings) -> Curve:
    """Return a curve as plain data; ends of its band that are infinite become the smallest and largest value."""
    return Curve(
        grid=tuple(curve.at.tolist()),
        mean=tuple(curve.mean.tolist()),
        overall=curve.overall,
        start=tuple(curve.start.tolist()),
        end=tuple(curve.end.tolist()),
        low=tuple(np.nan_to_num(curve.lower, neginf=least).tolist()),
        high=tuple(np.nan_to_num(curve.upper, posinf=most).tolist()),
        rows=tuple(curve.rows.tolist()),
        sparse=tuple((curve.rows < SPARSE).tolist()),
        confidence=settings.confidence,
    )


def measure(rows: Rows, at: tuple[float, ...], settings: Settings, *, probed: bool = True) -> Population:
    """Measure one attribute on one set of rows."""
    numbers: list[Number] = []
    omitted: dict[str, str] = {}
    curves: dict[str, Curve] = {}
    contrasts: tuple[Contrast, ...] = ()
    own = rows.independent(settings)
    if rows.scores is None:
        omitted |= dict.fromkeys(("gdp", "rank_gap", "correlation_ratio"), "no_scores")
    else:
        settings.tell("gaps")
        numbers, curves = gap_numbers(gaps_of(rows, settings), settings)
        contrasts = tuple(_contrast(rows, value, settings) for value in at)
        if np.ptp(rows.scores) == 0:
            omitted |= dict.fromkeys(("rank_gap", "standardized_gdp", "correlation_ratio"), "constant")
        else:
            numbers.append(_rank_gap(rows, settings))
            numbers += _explained(own, settings, omitted)
    if "decision_gdp" in curves:
        numbers += decision_ratio(curves["decision_gdp"], rows.count)
    numbers += dependence(own, settings, omitted, probed=probed)
    if rows.y is not None and not ((rows.y == 0) | (rows.y == 1)).all():
        settings.tell("separation")
        numbers += _separation(own, settings, omitted)
    return Population(rows.count, tuple(numbers), curves, contrasts, omitted)


def decision_ratio(decisions: Curve, rows: int) -> list[Number]:
    r"""Return the lowest share of decisions along S as a share of the highest (the four-fifths rule asks for 0.8).

    The band holds the shares of all groups at once, so the least and the most that it allows are an interval for
    :math:`\min_s p(s) / \max_s p(s)` over the groups that have enough rows. There is no ratio without decisions.
    """
    groups = decisions.trusted
    means, low, high = ([values[i] for i in groups] for values in (decisions.mean, decisions.low, decisions.high))
    if max(means) == 0:
        return []
    ends = max(min(low), 0.0) / max(high), min(min(high) / max(max(low), 1e-12), 1.0)
    return [Number("decision_ratio", min(means) / max(means), rows, Interval(*ends, decisions.confidence, "band"))]


def _rank_gap(rows: Rows, settings: Settings) -> Number:
    if rows.count > RANK_ROWS:
        rows = rows.keep(subsample(rows.count, RANK_ROWS, settings.generator(9)))
    gap = rank_gap(rows.scores, rows.s, sample_weight=rows.weights, groups=rows.groups, **settings.options)
    return gap_number("rank_gap", gap)


def _explained(own: Rows, settings: Settings, omitted: dict[str, str]) -> Iterator[Number]:
    try:
        share = correlation_ratio(own.scores, own.s, confidence=settings.confidence)
    except ValueError:  # constant or few among the independent rows
        omitted["correlation_ratio"] = "few_rows"
        return
    interval = Interval(*share.interval, share.confidence, "normal approximation")
    yield Number("correlation_ratio", share.value, share.n, interval, 0.0, trusted=share.trusted)


def dependence(own: Rows, settings: Settings, omitted: dict[str, str], *, probed: bool) -> Iterator[Number]:
    """Yield HSIC with its test, distance correlation and, if asked, the probes, on independent rows."""
    keys = (*KERNEL_STATISTICS, *(f"probe_{kind}" for kind in PROBES if probed))
    chosen = subsample(own.count, settings.max_rows, settings.generator(1))
    if own.count < FEWEST or float(np.ptp(own.s[chosen], axis=0).max()) == 0:
        omitted |= dict.fromkeys(keys, "few_rows" if own.count < FEWEST else "constant")
        return
    z, s = torch.from_numpy(unit_columns(own.z[chosen])), torch.from_numpy(own.s[chosen])
    settings.tell("HSIC and its test")
    try:
        yield from _kernel_statistics(z, s, settings)
    except ValueError:  # z or s is constant, under its kernel or by itself
        omitted |= dict.fromkeys(KERNEL_STATISTICS, "constant")
    if probed:
        yield from _probes(own, settings)


def unit_columns(z: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Return z with each of several columns divided by its spread (in `like`), so that units do not matter."""
    return z if z.shape[1] == 1 else z / column_scales(z if like is None else like)


@dataclass(frozen=True)
class Kernels:
    """The kernels on z and on s, and the rules of their bandwidths in words."""

    z: Kernel
    s: Kernel
    rules: tuple[str, str]


def audit_kernels(z: Tensor, s: Tensor, settings: Settings) -> Kernels:
    """Return the kernels of the settings; by default Gaussians at the median distance, for several S one for each."""
    kernel_z, rule_z = (settings.kernel_z, "given") if settings.kernel_z else default_gaussian(z, name="z")
    columns = [(settings.kernel_s, "given") if settings.kernel_s else default_gaussian(c, name="s") for c in s.T]
    kernel_s = columns[0][0] if len(columns) == 1 else PerColumn(tuple(part for part, _ in columns))
    return Kernels(kernel_z, kernel_s, (rule_z, "; ".join(dict.fromkeys(rule for _, rule in columns))))


def _kernel_statistics(z: Tensor, s: Tensor, settings: Settings) -> list[Number]:
    kernels = audit_kernels(z, s, settings)
    pair = gram_pair(z, s, kernels.z, kernels.s, least=LEAST_ROWS, what="the gamma test", third=True)
    test = gamma_test_of(pair, 1 - settings.confidence)
    if test.null_standard_deviation == 0:
        raise ValueError("z or s is constant under its kernel.")
    details: dict[str, Setting] = {
        "test": test.method,
        "kernel on z": test.kernels[0],
        "kernel on s": test.kernels[1],
        "bandwidth on z": kernels.rules[0],
        "bandwidth on s": kernels.rules[1],
        "biased": test.statistic,
    }
    effects = hsic_effect(pair, settings.confidence), normalized_effect(pair, settings.confidence)
    del pair  # and the matrices that it holds
    half = HalfDistance()
    distances = normalized_hsic_interval(z, s, half, half, confidence=settings.confidence)
    return [
        Number("hsic", effects[0].value, test.n, effects[0].interval, 0.0, test.pvalue, details),
        Number("hsic_effect", effects[1].value, test.n, effects[1].interval, 0.0),
        Number("distance_correlation", distances.value, test.n, distances.interval, 0.0),
    ]


def _probes(own: Rows, settings: Settings) -> Iterator[Number]:
    chosen = subsample(own.count, settings.probe_rows, settings.generator(4))
    for kind in PROBES:
        settings.tell(f"{kind} probe")
        result = probe(own.z[chosen], own.s[chosen, 0], kind, seed=settings.seed)
        yield Number(f"probe_{kind}", result.r2, result.rows, None, result.shuffled_r2)


def _separation(own: Rows, settings: Settings, omitted: dict[str, str]) -> Iterator[Number]:
    """Yield the association of the scores with the attribute among rows with an equal target, and its test."""
    if own.scores is None or own.y is None:
        return
    rows = own.keep(subsample(own.count, settings.max_rows, settings.generator(6)))
    level = 1 - settings.confidence
    try:
        test = conditional_test(
            rows.scores, rows.s, rows.y, resamples=settings.resamples, random_state=settings.seed, level=level
        )
    except ValueError:  # constant scores, target or attribute
        omitted["separation"] = "constant"
        return
    details: dict[str, Setting] = {} if test.caution is None else {"caution": test.caution}
    yield Number("separation", test.effect_size, test.n, None, test.effect_size_null, test.pvalue, details)


def _contrast(rows: Rows, at: float, settings: Settings) -> Contrast:
    """Return the mean score of the rows nearest to a value less the overall mean, and which rows these are."""
    design = {"sample_weight": rows.weights, "groups": rows.groups}
    near = local_mean(rows.scores, rows.s, at, confidence=settings.confidence, **design)
    sparse = near.rows < SPARSE
    interval = None if sparse else Interval(*near.interval, near.confidence, "Student's t, or Clopper and Pearson")
    return Contrast(at, near.value, near.rows, sparse, near.start, near.end, interval)
