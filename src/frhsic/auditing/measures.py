"""The numbers of one set of rows: parity of the scores, dependence of the representation, probes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing.results import Contrast, Curve, Number, Omitted, Population, Setting
from frhsic.dependence import distance_correlation, eipm, hsic, kernel_hgr, mutual_information
from frhsic.independence import gamma_test
from frhsic.intervals import Interval, Statistic, jackknife, shuffled_mean, subsample
from frhsic.kernels import gaussian_at_median, per_column_gaussians
from frhsic.parity import (
    ParityResult,
    correlation_ratio,
    gdp,
    gdp_curve,
    local_mean,
    quantile_gap,
    standardized_gdp,
)
from frhsic.probes import ProbeKind, probe

Watch = Callable[[str], None]
"""Function that is called with the name of each step as it begins."""

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
        Resamples of the wild bootstrap of GDP.
    groups, shuffles
        Groups of the jackknife; shuffles for the value expected under independence.
    sparse_rows
        Number of rows below which a group of the curve is not to be trusted.
    seed
        Seed of every random draw.
    """

    confidence: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 499
    groups: int = 10
    shuffles: int = 5
    sparse_rows: float = 30.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}; pass a share between 0 and 1, such as 0.95.")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20), ("groups", 2), ("shuffles", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}; pass a whole number, at least {least}.")

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a separate generator for each purpose, so that adding one number changes no other."""
        return np.random.default_rng([self.seed, *keys])


@dataclass(frozen=True, eq=False)
class Rows:
    """Data of one population in float64: z of shape (n, d), s of shape (n, q), scores of shape (n,) or None.

    `weights` and `clusters`, of shape (n,) or None, are used by the measures of parity alone.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    z_name: str
    s_name: str
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None

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


def measure(rows: Rows, name: str, at: tuple[float, ...], settings: Settings, watch: Watch) -> Population:
    """Measure one attribute on one set of rows."""
    numbers: list[Number] = []
    omitted: list[Omitted] = []
    curve: Curve | None = None
    contrasts: tuple[Contrast, ...] = ()
    if rows.scores is None:
        reason = "there are no scores; pass scores, or a target to which a linear head can be fitted."
        omitted += [Omitted(key, reason) for key in ("gdp", "standardized_gdp", "correlation_ratio", "quantile_gap")]
    else:
        watch("parity")
        curve = score_curve(rows.scores, rows.s, settings, **rows.design)
        numbers += _parity(rows, settings, omitted)
        contrasts = tuple(_contrast(rows, value, settings) for value in at)
    numbers += dependence(rows, settings, omitted, watch)
    return Population(name, rows.count, tuple(numbers), curve, contrasts, tuple(omitted))


def dependence(
    rows: Rows, settings: Settings, omitted: list[Omitted], watch: Watch, *, jointly: bool = False
) -> Iterator[Number]:
    """Yield HSIC with its test, the other measures of dependence, and the probes."""
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(rows.z[chosen]), torch.from_numpy(rows.s[chosen])
    scale_s = gaussian_at_median if s.shape[1] == 1 else per_column_gaussians
    try:
        kernel_z, kernel_s = gaussian_at_median(z, name=rows.z_name), scale_s(s, name=rows.s_name)
    except ValueError as error:
        omitted += [Omitted(key, str(error)) for key in ("hsic", "hsic_effect", "eipm", "kernel_hgr")]
    else:
        watch("HSIC and its test")
        test = gamma_test(z, s, kernel_z, kernel_s, level=1 - settings.confidence)
        details: dict[str, Setting] = {
            "test": test.method,
            "kernel on z": test.kernels[0],
            "kernel on s": test.kernels[1],
        }

        def plain(a: Tensor, b: Tensor) -> float:
            return float(hsic(a, b, kernel_z, kernel_s))

        def effect(a: Tensor, b: Tensor) -> float:
            both = float(hsic(a, a, kernel_z, kernel_z)) * float(hsic(b, b, kernel_s, kernel_s))
            return plain(a, b) / math.sqrt(both) if both > 0 else 0.0

        interval = _jackknife(plain, z, s, test.statistic, settings, 0.0, math.inf)
        yield Number("hsic", test.statistic, test.n, interval, None, test.null_mean, test.pvalue, details)
        interval = _jackknife(effect, z, s, test.effect_size, settings, 0.0, 1.0)
        yield Number("hsic_effect", test.effect_size, test.n, interval, None, test.effect_size_null, None, details)
        watch("kernel maximal correlation")
        yield _resampled(
            "kernel_hgr", lambda a, b: float(kernel_hgr(a, b, kernel_z, kernel_s)), z, s, settings, 0.0, 1.0
        )
        watch("expected conditional MMD")
        fewer = torch.from_numpy(subsample(len(z), CUBIC_ROWS, settings.generator(5)))
        yield _resampled("eipm", lambda a, b: float(eipm(a, b, kernel_z)), z[fewer], s[fewer], settings, 0.0, math.inf)
    watch("distance correlation")
    yield _resampled("distance_correlation", lambda a, b: float(distance_correlation(a, b)), z, s, settings, 0.0, 1.0)

    def information(a: Tensor, b: Tensor) -> float:
        return float(mutual_information(a, b, random_state=settings.seed))

    watch("mutual information")
    yield _resampled("mutual_information", information, z, s, settings, -math.inf, math.inf)
    if not jointly:
        yield from _probes(rows, settings, watch)


def score_curve(f: np.ndarray, s: np.ndarray, settings: Settings, **rows: Any) -> Curve:
    """Return the mean scores of groups of rows along one attribute, with their simultaneous band."""
    curve = gdp_curve(f, s, confidence=settings.confidence, **rows)
    least, most = float(f.min()), float(f.max())
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
    return Interval(*gap.interval, gap.confidence, f"influence function and wild bootstrap, {gap.resamples} resamples")


def _parity(rows: Rows, settings: Settings, omitted: list[Omitted]) -> Iterator[Number]:
    """Yield GDP, in units of the score and in standard deviations, and what GDP cannot see."""
    f, s = rows.scores, rows.s
    assert f is not None
    options: dict[str, Any] = {
        "confidence": settings.confidence,
        "resamples": settings.resamples,
        "random_state": settings.seed,
    }
    gap = gdp(f, s, **rows.design, **options)
    values = [float(gdp(f, s, **rows.design, resolution=gap.resolution * k, resamples=0)) for k in (0.5, 2)]
    details: dict[str, Setting] = {
        "resolution": gap.resolution,
        "value at half the resolution": values[0],
        "value at twice the resolution": values[1],
        "seed": gap.seed,
    }
    yield _gap_number("gdp", gap, details)
    if float(np.ptp(f)) == 0:
        keys = ("standardized_gdp", "correlation_ratio", "quantile_gap")
        omitted += [Omitted(key, "the scores are constant.") for key in keys]
        return
    details = {"resolution": gap.resolution, "seed": gap.seed}
    yield _gap_number("standardized_gdp", standardized_gdp(f, s, **rows.design, **options), details)
    share = correlation_ratio(f, s, sample_weight=rows.weights, confidence=settings.confidence)
    if rows.clusters is None:
        interval = Interval(*share.interval, share.confidence, "normal approximation")
        reason = None
    else:
        interval, reason = None, "rows are clustered, which the interval of this estimate does not allow for"
    yield Number("correlation_ratio", share.value, share.n, interval, reason, 0.0)
    spread = quantile_gap(f, s, random_state=settings.seed)
    yield Number(
        "quantile_gap",
        spread.value,
        spread.n,
        no_interval="the estimate is biased upwards; compare it with its value on shuffled data",
        under_independence=spread.expected_under_independence,
        settings={"quantile": spread.quantile, "groups": spread.groups, "permutations": spread.permutations},
    )


def _gap_number(key: str, gap: ParityResult, details: dict[str, Setting]) -> Number:
    return Number(
        key,
        gap.value,
        gap.n,
        gap_interval(gap),
        under_independence=gap.expected_under_independence,
        pvalue=gap.pvalue,
        settings=details,
    )


def _contrast(rows: Rows, at: float, settings: Settings) -> Contrast:
    """Return the mean score of the rows nearest to a value less the overall mean, and which rows these are."""
    near = local_mean(rows.scores, rows.s, at, confidence=settings.confidence, **rows.design)
    place: dict[str, Any] = {"start": near.start, "end": near.end}
    if near.rows < settings.sparse_rows:
        reason = f"fewer than {settings.sparse_rows:g} rows are near"
        return Contrast(at, near.value, near.rows, sparse=True, no_interval=reason, **place)
    interval = Interval(*near.interval, near.confidence, "Student's t, or Clopper and Pearson for 0/1 decisions")
    return Contrast(at, near.value, near.rows, sparse=False, interval=interval, **place)


def _jackknife(
    statistic: Statistic, z: Tensor, s: Tensor, value: float, settings: Settings, least: float, most: float
) -> Interval:
    return jackknife(
        statistic,
        z,
        s,
        value,
        groups=settings.groups,
        confidence=settings.confidence,
        random=settings.generator(2),
        least=least,
        most=most,
    )


def _resampled(
    key: str, statistic: Statistic, z: Tensor, s: Tensor, settings: Settings, least: float, most: float
) -> Number:
    """Return a statistic in [least, most] with its jackknife interval and its mean over shuffles of s."""
    value = statistic(z, s)
    null = shuffled_mean(statistic, z, s, shuffles=settings.shuffles, random=settings.generator(3))
    interval = _jackknife(statistic, z, s, value, settings, least, most)
    return Number(key, value, len(z), interval, under_independence=null)


def _probes(rows: Rows, settings: Settings, watch: Watch) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    z, s = rows.z[chosen], rows.s[chosen, 0]
    kinds: tuple[ProbeKind, ...] = ("linear", "trees")
    for kind in kinds:
        watch(f"{kind} probe")
        result = probe(z, s, kind, confidence=settings.confidence, seed=settings.seed)
        yield Number(
            f"probe_{kind}",
            result.r2,
            result.rows,
            result.interval,
            under_independence=0.0,
            settings={"folds": result.folds},
        )
