"""The numbers of one set of rows: parity of the scores, dependence of the representation, probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing.results import Contrast, Curve, Number, Omitted, Population, Setting
from frhsic.auditing.scores import ScoreQuantiles, score_quantiles
from frhsic.dependence import eipm, kernel_hgr, mutual_information
from frhsic.dependence._inputs import column_scales
from frhsic.formatting import stated
from frhsic.independence import conditional_test, normalized_hsic_interval
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence.effects import hsic_effect, normalized_effect
from frhsic.independence.gamma import LEAST_ROWS, gamma_test_of
from frhsic.intervals import Interval, Statistic, shuffled_mean, subsample
from frhsic.kernels import HalfDistance, Kernel, PerColumn
from frhsic.kernels.bandwidth import default_gaussian
from frhsic.parity import ParityCurve, ParityResult, gdp_curve, local_mean
from frhsic.parity._rows import Rows as SortedRows
from frhsic.parity._rows import rows_of
from frhsic.parity.curve import curve_of
from frhsic.parity.gap import gap_and_standardized, gap_value
from frhsic.parity.law import PERMUTATIONS, correlation_ratio_of, quantile_gap_of
from frhsic.probes import ProbeKind, probe

Watch = Callable[[str], None]
"""Function that is called with the name of each step as it begins."""

NO_INTERVAL = "no interval with the right coverage is known for it"
LEAST_CLUSTERS = 20
"""Clusters of rows that the measures of dependence need."""
PROBES = ("probe_linear", "probe_trees")
KERNEL_STATISTICS = ("hsic", "hsic_effect", "kernel_hgr", "eipm")
CUBIC_ROWS = 1000
"""Rows of EIPM at most: with every row as an anchor its cost grows with their cube."""


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
        Resamples of GDP.
    shuffles
        Shuffles of the attribute for the value expected under independence.
    sparse_rows
        Number of rows below which a group of the curve is not to be trusted.
    seed
        Seed of every random draw.
    kernel_z, kernel_s
        Kernels of HSIC, kernel maximal correlation, EIPM and the certificates: on Z, with each of several columns
        divided by its spread, and on each attribute. None is a Gaussian at the median distance or, where that is 0, at
        the median of the non-zero distances.
    """

    confidence: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 499
    shuffles: int = 5
    sparse_rows: float = 30.0
    seed: int = 0
    kernel_z: Kernel | None = None
    kernel_s: Kernel | None = None

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; pass a share between 0 and 1, such as 0.95.")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20), ("shuffles", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}; pass a whole number, at least {least}.")

    def plain(self) -> dict[str, Setting]:
        """Return the settings as text and numbers."""
        kernels = {
            name: str(getattr(self, name) or "Gaussian at the median distance") for name in ("kernel_z", "kernel_s")
        }
        return {f.name: getattr(self, f.name) for f in fields(self)} | kernels

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a separate generator for each purpose, so that adding one number changes no other."""
        return np.random.default_rng([self.seed, *keys])


@dataclass(frozen=True, eq=False)
class Rows:
    """Data of one population in float64: z of shape (n, d), s of shape (n, q), scores of shape (n,) or None.

    `weights` and `clusters`, of shape (n,) or None, are used by the measures of parity. Others use independent rows.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    z_name: str
    s_name: str
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None
    threshold: float | None = None

    @property
    def design(self) -> dict[str, Any]:
        """Weights and clusters by the names of the parameters of :mod:`frhsic.parity`."""
        return {"sample_weight": self.weights, "clusters": self.clusters}

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    def keep(self, mask: np.ndarray) -> Rows:
        """Return the rows of a mask."""
        parts: dict[str, Any] = {key: getattr(self, key) for key in ("z", "s", "scores", "weights", "clusters")}
        kept: dict[str, Any] = {key: None if part is None else part[mask] for key, part in parts.items()}
        return replace(self, **kept)

    def independent(self, settings: Settings) -> Rows:
        """Return one row of each cluster, drawn at random; without clusters, all rows."""
        if self.clusters is None:
            return self
        order = settings.generator(8).permutation(self.count)
        first = order[np.unique(self.clusters[order], return_index=True)[1]]
        return replace(self.keep(np.sort(first)), clusters=None)


def measure(rows: Rows, name: str, at: tuple[float, ...], settings: Settings, watch: Watch) -> Population:
    """Measure one attribute on one set of rows."""
    numbers: list[Number] = []
    omitted: list[Omitted] = []
    curve: Curve | None = None
    decisions: Curve | None = None
    quantiles: ScoreQuantiles | None = None
    contrasts: tuple[Contrast, ...] = ()
    if rows.scores is None:
        reason = "there are no scores; pass scores, or a target to which a linear head can be fitted."
        omitted += [Omitted(key, reason) for key in ("gdp", "standardized_gdp", "correlation_ratio", "quantile_gap")]
    else:
        watch("parity")
        together = rows_of(rows.scores, rows.s, **rows.design)  # sorted once for all measures of parity
        curve = _shown(together, settings)
        numbers += _parity(rows, together, settings, omitted)
        contrasts = tuple(_contrast(rows, value, settings) for value in at)
        quantiles = score_quantiles(rows.scores, rows.s)
        if rows.threshold is not None:
            decided = (together.scores >= rows.threshold).astype(np.float64)
            decisions = _shown(replace(together, scores=decided), settings)
    numbers += dependence(rows, settings, omitted, watch)
    return Population(name, rows.count, tuple(numbers), curve, contrasts, tuple(omitted), quantiles, decisions)


def dependence(
    rows: Rows, settings: Settings, omitted: list[Omitted], watch: Watch, *, jointly: bool = False
) -> Iterator[Number]:
    """Yield HSIC with its test, the other measures of dependence, and the probes, on independent rows."""
    rows = rows.independent(settings)
    if rows.count < LEAST_CLUSTERS:
        keys = (*KERNEL_STATISTICS, "distance_correlation", "mutual_information", *(() if jointly else PROBES))
        reason = f"only {rows.count} clusters of rows are here; at least {LEAST_CLUSTERS} are needed."
        omitted += [Omitted(key, reason) for key in keys]
        return
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(unit_columns(rows.z[chosen])), torch.from_numpy(rows.s[chosen])
    try:
        kernels = audit_kernels(z, s, rows, settings)
    except ValueError as error:
        omitted += [Omitted(key, str(error)) for key in KERNEL_STATISTICS]
    else:
        yield from _kernel_statistics(z, s, kernels, settings, omitted, watch)
    if float(np.ptp(rows.s[chosen], axis=0).max()) == 0:
        reason = f"{rows.s_name} is constant in the {len(s):,} rows that were drawn; raise max_rows."
        omitted += [Omitted(key, reason) for key in ("distance_correlation", "mutual_information")]
    else:
        watch("distance correlation")
        yield _distance_correlation(z, s, settings)
        watch("mutual information")
        information = partial(mutual_information, random_state=settings.seed)
        yield _shuffled("mutual_information", lambda a, b: float(information(a, b)), z, s, settings)
    if not jointly:
        yield from _probes(rows, settings, omitted, watch)


def unit_columns(z: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
    """Return z with each of several columns divided by its spread (in `like`), so that units do not matter."""
    return z if z.shape[1] == 1 else z / column_scales(z if like is None else like)


@dataclass(frozen=True)
class Kernels:
    """The kernels on z and on s, and the rules of their bandwidths in words."""

    z: Kernel
    s: Kernel
    rules: tuple[str, str]


def audit_kernels(z: Tensor, s: Tensor, rows: Rows, settings: Settings) -> Kernels:
    """Return the kernels of the settings; by default Gaussians at the median distance, for several S one for each."""
    kernel_z, rule_z = (settings.kernel_z, "given") if settings.kernel_z else default_gaussian(z, name=rows.z_name)
    columns = [
        (settings.kernel_s, "given") if settings.kernel_s else default_gaussian(c, name=rows.s_name) for c in s.T
    ]
    kernel_s = columns[0][0] if len(columns) == 1 else PerColumn(tuple(part for part, _ in columns))
    return Kernels(kernel_z, kernel_s, (rule_z, "; ".join(dict.fromkeys(rule for _, rule in columns))))


def _kernel_statistics(
    z: Tensor, s: Tensor, kernels: Kernels, settings: Settings, omitted: list[Omitted], watch: Watch
) -> Iterator[Number]:
    watch("HSIC and its test")
    pair = gram_pair(z, s, kernels.z, kernels.s, least=LEAST_ROWS, what="the gamma test", third=True)
    test = gamma_test_of(pair, 1 - settings.confidence)
    details: dict[str, Setting] = {
        "test": test.method,
        "kernel on z": test.kernels[0],
        "kernel on s": test.kernels[1],
        "bandwidth on z": kernels.rules[0],
        "bandwidth on s": kernels.rules[1],
        "biased": test.statistic,
    }
    if test.null_standard_deviation == 0:
        reason = f"z or s is constant under its kernel, {' or '.join(test.kernels)}."
        omitted += [Omitted(key, reason) for key in KERNEL_STATISTICS]
        return
    effect = hsic_effect(pair, settings.confidence)
    yield Number("hsic", effect.value, test.n, effect.interval, None, 0.0, test.pvalue, details)
    effect = normalized_effect(pair, settings.confidence)
    del pair  # and the matrices that it holds
    details = details | {"biased": test.effect_size}
    yield Number("hsic_effect", effect.value, test.n, effect.interval, None, 0.0, None, details)
    watch("kernel maximal correlation")
    yield _shuffled("kernel_hgr", lambda a, b: float(kernel_hgr(a, b, kernels.z, kernels.s)), z, s, settings)
    watch("expected conditional MMD")
    fewer = torch.from_numpy(subsample(len(z), CUBIC_ROWS, settings.generator(5)))
    yield _shuffled("eipm", lambda a, b: float(eipm(a, b, kernels.z)), z[fewer], s[fewer], settings)


def _distance_correlation(z: Tensor, s: Tensor, settings: Settings) -> Number:
    """Return the squared distance correlation without bias, and its interval; 0 if z is constant."""
    key, n = "distance_correlation", len(z)
    if bool((z == z[:1]).all()):
        return Number(key, 0.0, n, None, "the representation is constant", 0.0)
    half = HalfDistance()
    effect = normalized_hsic_interval(z, s, half, half, confidence=settings.confidence)
    return Number(key, effect.value, n, effect.interval, under_independence=0.0)


def score_curve(f: np.ndarray, s: np.ndarray, settings: Settings, **rows: Any) -> Curve:
    """Return the mean scores of groups of rows along one attribute, with their simultaneous band."""
    curve = gdp_curve(f, s, confidence=settings.confidence, **rows)
    return shown_curve(curve, float(f.min()), float(f.max()), settings)


def _shown(rows: SortedRows, settings: Settings) -> Curve:
    curve = curve_of(rows, settings.confidence)
    return shown_curve(curve, float(rows.scores.min()), float(rows.scores.max()), settings)


def shown_curve(curve: ParityCurve, least: float, most: float, settings: Settings) -> Curve:
    """Return a curve as plain data; ends of its band that are infinite become the smallest and largest score."""
    return Curve(
        grid=tuple(curve.at.tolist()),
        mean=tuple(curve.mean.tolist()),
        overall=curve.overall,
        start=tuple(curve.start.tolist()),
        end=tuple(curve.end.tolist()),
        low=tuple(np.nan_to_num(curve.lower, neginf=least).tolist()),
        high=tuple(np.nan_to_num(curve.upper, posinf=most).tolist()),
        rows=tuple(curve.rows.tolist()),
        sparse=tuple((curve.rows < settings.sparse_rows).tolist()),
        confidence=settings.confidence,
    )


def gap_interval(gap: ParityResult) -> Interval:
    """Return the interval of a gap."""
    return Interval(*gap.interval, gap.confidence, f"influence function, {gap.resamples} resamples")


def _parity(rows: Rows, together: SortedRows, settings: Settings, omitted: list[Omitted]) -> Iterator[Number]:
    """Yield GDP, in units of the score and in standard deviations, and what GDP cannot see."""
    options = settings.confidence, settings.resamples, settings.seed
    gap, standardized = gap_and_standardized(together, *options)
    values = [gap_value(together, gap.resolution * k) for k in (0.5, 2)]
    details: dict[str, Setting] = {
        "resolution": gap.resolution,
        "value at half the resolution": values[0],
        "value at twice the resolution": values[1],
        "seed": gap.seed,
    }
    yield gap_number("gdp", gap, details)
    if standardized is None:
        keys = ("standardized_gdp", "correlation_ratio", "quantile_gap")
        omitted += [Omitted(key, "the scores are constant.") for key in keys]
        return
    details = {"resolution": gap.resolution, "seed": gap.seed}
    yield gap_number("standardized_gdp", standardized, details)
    share = correlation_ratio_of(replace(together, clusters=None), settings.confidence)
    if rows.clusters is None:
        interval = Interval(*share.interval, share.confidence, "normal approximation")
        reason = None
    else:
        interval, reason = None, "rows are clustered, which the interval of this estimate does not allow for"
    yield Number("correlation_ratio", share.value, share.n, interval, reason, 0.0)
    plain = together if rows.weights is None else rows_of(rows.scores, rows.s)
    spread = quantile_gap_of(plain, PERMUTATIONS, settings.seed)
    yield Number(
        "quantile_gap",
        spread.value,
        spread.n,
        no_interval="the estimate is biased upwards; compare it with its value on shuffled data",
        under_independence=spread.expected_under_independence,
        settings={"quantile": spread.quantile, "groups": spread.groups, "permutations": spread.permutations},
    )


def gap_number(key: str, gap: ParityResult, details: dict[str, Setting]) -> Number:
    return Number(
        key,
        gap.value,
        gap.n,
        gap_interval(gap),
        under_independence=gap.expected_under_independence,
        pvalue=gap.pvalue,
        settings=details,
        standard_error=gap.standard_error if np.isfinite(gap.standard_error) else None,
    )


def separation(rows: Rows, target: np.ndarray, settings: Settings) -> Number:
    """Return the association of the scores with the attribute among rows with an equal target, and its test."""
    chosen = subsample(rows.count, settings.max_rows, settings.generator(6))
    assert rows.scores is not None
    test = conditional_test(
        rows.scores[chosen],
        rows.s[chosen],
        target[chosen],
        resamples=settings.resamples,
        random_state=settings.seed,
        level=1 - settings.confidence,
    )
    details: dict[str, Setting] = {"test": test.method, "kernel on f": test.kernels[0], "kernel on s": test.kernels[1]}
    if test.caution is not None:
        details["caution"] = test.caution
    null = test.effect_size_null
    return Number("separation", test.effect_size, test.n, None, NO_INTERVAL, null, test.pvalue, details)


def _contrast(rows: Rows, at: float, settings: Settings) -> Contrast:
    """Return the mean score of the rows nearest to a value less the overall mean, and which rows these are."""
    near = local_mean(rows.scores, rows.s, at, confidence=settings.confidence, **rows.design)
    place: dict[str, Any] = {"start": near.start, "end": near.end}
    if near.rows < settings.sparse_rows:
        reason = f"fewer than {stated(settings.sparse_rows)} rows are near"
        return Contrast(at, near.value, near.rows, sparse=True, no_interval=reason, **place)
    interval = Interval(*near.interval, near.confidence, "Student's t, or Clopper and Pearson for 0/1 decisions")
    return Contrast(at, near.value, near.rows, sparse=False, interval=interval, **place)


def _shuffled(key: str, statistic: Statistic, z: Tensor, s: Tensor, settings: Settings) -> Number:
    """Return a statistic without interval, and its mean over shuffles of s."""
    null = shuffled_mean(statistic, z, s, shuffles=settings.shuffles, random=settings.generator(3))
    return Number(key, statistic(z, s), len(z), None, NO_INTERVAL, under_independence=null)


def _probes(rows: Rows, settings: Settings, omitted: list[Omitted], watch: Watch) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    z, s = rows.z[chosen], rows.s[chosen, 0]
    kinds: tuple[ProbeKind, ...] = ("linear", "trees")
    if float(np.ptp(s)) == 0:
        reason = f"{rows.s_name} is constant in the {len(s):,} rows that were drawn; raise probe_rows."
        omitted += [Omitted(key, reason) for key in PROBES]
        return
    for kind in kinds:
        watch(f"{kind} probe")
        result = probe(z, s, kind, seed=settings.seed)
        details: dict[str, Setting] = {"folds": result.folds}
        key, null = f"probe_{kind}", result.shuffled_r2
        yield Number(key, result.r2, result.rows, None, NO_INTERVAL, null, settings=details)
