"""The numbers of one set of rows: parity of the scores, dependence of the representation, probes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing.results import Contrast, Curve, Number, Omitted, Population, Setting
from frhsic.dependence import eipm, kernel_hgr, mutual_information
from frhsic.dependence._inputs import column_scales
from frhsic.independence import gamma_test, hsic_interval, normalized_hsic_interval
from frhsic.intervals import Interval, Statistic, shuffled_mean, subsample
from frhsic.kernels import HalfDistance, Kernel, PerColumn, default_gaussian
from frhsic.parity import ParityResult, gdp_curve, nadaraya_watson_weights, standardized_gdp
from frhsic.probes import ProbeKind, probe

Watch = Callable[[str], None]
"""Function that is called with the name of each step as it begins."""

NO_INTERVAL = "no interval with the right coverage is known for it"
CURVE_POINTS = 121
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
        Bootstrap resamples and permutations of GDP.
    shuffles
        Shuffles of the attribute for the value expected under independence.
    sparse_rows
        Effective number of rows below which the curve is not to be trusted.
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
    resamples: int = 300
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

    `bandwidth` is that of the curve, in units of s; None is a tenth of the range of s.
    """

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    z_name: str
    s_name: str
    bandwidth: float | None = None

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.z)

    def keep(self, mask: np.ndarray) -> Rows:
        """Return the rows of a mask."""
        return replace(self, z=self.z[mask], s=self.s[mask], scores=None if self.scores is None else self.scores[mask])


def measure(rows: Rows, name: str, at: tuple[float, ...], settings: Settings, watch: Watch) -> Population:
    """Measure one attribute on one set of rows."""
    numbers: list[Number] = []
    omitted: list[Omitted] = []
    curve: Curve | None = None
    contrasts: tuple[Contrast, ...] = ()
    if rows.scores is None:
        reason = "there are no scores; pass scores, or a target to which a linear head can be fitted."
        omitted += [Omitted(key, reason) for key in ("gdp", "standardized_gdp")]
    else:
        watch("parity")
        curve, numbers = _parity(rows, settings, omitted)
        contrasts = tuple(_contrast(rows, value, curve.overall, curve.bandwidth, settings) for value in at)
    numbers += dependence(rows, settings, omitted, watch)
    return Population(name, rows.count, tuple(numbers), curve, contrasts, tuple(omitted))


def dependence(
    rows: Rows, settings: Settings, omitted: list[Omitted], watch: Watch, *, jointly: bool = False
) -> Iterator[Number]:
    """Yield HSIC with its test, the other measures of dependence, and the probes."""
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(unit_columns(rows.z[chosen])), torch.from_numpy(rows.s[chosen])
    try:
        kernels = audit_kernels(z, s, rows, settings)
    except ValueError as error:
        omitted += [Omitted(key, str(error)) for key in ("hsic", "hsic_effect", "kernel_hgr", "eipm")]
    else:
        yield from _kernel_statistics(z, s, kernels, settings, watch)
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
        yield from _probes(rows, settings, watch)


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


def _kernel_statistics(z: Tensor, s: Tensor, kernels: Kernels, settings: Settings, watch: Watch) -> Iterator[Number]:
    pair = kernels.z, kernels.s
    watch("HSIC and its test")
    test = gamma_test(z, s, *pair, level=1 - settings.confidence)
    details: dict[str, Setting] = {
        "test": test.method,
        "kernel on z": test.kernels[0],
        "kernel on s": test.kernels[1],
        "bandwidth on z": kernels.rules[0],
        "bandwidth on s": kernels.rules[1],
        "biased": test.statistic,
    }
    if test.null_standard_deviation == 0:  # z is constant under its kernel
        return
    effect = hsic_interval(z, s, *pair, confidence=settings.confidence)
    yield Number("hsic", effect.value, test.n, effect.interval, None, 0.0, test.pvalue, details)
    effect = normalized_hsic_interval(z, s, *pair, confidence=settings.confidence)
    details = details | {"biased": test.effect_size}
    yield Number("hsic_effect", effect.value, test.n, effect.interval, None, 0.0, None, details)
    watch("kernel maximal correlation")
    yield _shuffled("kernel_hgr", lambda a, b: float(kernel_hgr(a, b, *pair)), z, s, settings)
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


def score_curve(
    f: np.ndarray, s: np.ndarray, bandwidth: float | None, settings: Settings, *, permutations: int = 0
) -> tuple[Curve, ParityResult]:
    """Return the curve of the mean score along one attribute with its band, and GDP, the mean distance from flat."""
    smoothed = gdp_curve(
        f,
        s,
        points=CURVE_POINTS,
        bandwidth=bandwidth,
        confidence=settings.confidence,
        bootstrap=settings.resamples,
        permutations=permutations,
        random_state=settings.seed,
    )
    curve = Curve(
        grid=tuple(smoothed.at.tolist()),
        mean=tuple(smoothed.mean.tolist()),
        overall=smoothed.overall,
        bandwidth=smoothed.parity.bandwidth,
        low=tuple(smoothed.lower.tolist()),
        high=tuple(smoothed.upper.tolist()),
        rows=tuple(smoothed.effective_rows.tolist()),
        sparse=tuple((smoothed.effective_rows < settings.sparse_rows).tolist()),
        confidence=settings.confidence,
        resamples=settings.resamples,
    )
    return curve, smoothed.parity


def gap_interval(gap: ParityResult) -> Interval:
    """Return the bootstrap interval of a gap."""
    return Interval(*gap.interval, gap.confidence, f"bootstrap, {gap.bootstrap} resamples")


def _parity(rows: Rows, settings: Settings, omitted: list[Omitted]) -> tuple[Curve, list[Number]]:
    assert rows.scores is not None
    curve, gap = score_curve(rows.scores, rows.s, rows.bandwidth, settings, permutations=settings.resamples)
    gaps = {"gdp": gap}
    if float(np.ptp(rows.scores)) == 0:
        omitted.append(Omitted("standardized_gdp", "the scores are constant."))
    else:
        gaps["standardized_gdp"] = standardized_gdp(
            rows.scores,
            rows.s,
            bandwidth=rows.bandwidth,
            confidence=settings.confidence,
            bootstrap=settings.resamples,
            permutations=settings.resamples,
            random_state=settings.seed,
        )
    return curve, [
        Number(
            key,
            gap.value,
            gap.n,
            gap_interval(gap),
            under_independence=gap.expected_under_independence,
            pvalue=gap.pvalue,
            settings={"bandwidth": gap.bandwidth, "weighting": gap.weighting, "seed": gap.seed},
        )
        for key, gap in gaps.items()
    ]


def _contrast(rows: Rows, at: float, overall: float, bandwidth: float, settings: Settings) -> Contrast:
    r"""Difference of the smoothed mean at one value from the overall mean, with its delta-method interval.

    The estimate is :math:`\sum_j (w_j - 1/n) f_j`; row j contributes
    :math:`w_j (f_j - \hat m) - (f_j - \bar f)/n` to its error.
    """
    assert rows.scores is not None
    f, s = torch.from_numpy(rows.scores), torch.from_numpy(rows.s[:, 0])
    weights = nadaraya_watson_weights(torch.tensor([at], dtype=s.dtype), s, bandwidth)[0]
    mean = float(weights @ f)
    effective = 1 / float(weights @ weights)
    value = mean - overall
    if effective < settings.sparse_rows:
        reason = f"fewer than {settings.sparse_rows:g} rows are near"
        return Contrast(at, value, effective, sparse=True, no_interval=reason)
    influence = weights * (f - mean) - (f - overall) / len(f)
    quantile = torch.special.ndtri(torch.tensor((1 + settings.confidence) / 2, dtype=f.dtype))
    reach = float(quantile * influence.square().sum().sqrt())
    interval = Interval(value - reach, value + reach, settings.confidence, "delta method")
    return Contrast(at, value, effective, sparse=False, interval=interval)


def _shuffled(key: str, statistic: Statistic, z: Tensor, s: Tensor, settings: Settings) -> Number:
    """Return a statistic without interval, and its mean over shuffles of s."""
    null = shuffled_mean(statistic, z, s, shuffles=settings.shuffles, random=settings.generator(3))
    return Number(key, statistic(z, s), len(z), None, NO_INTERVAL, under_independence=null)


def _probes(rows: Rows, settings: Settings, watch: Watch) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    z, s = rows.z[chosen], rows.s[chosen, 0]
    kinds: tuple[ProbeKind, ...] = ("linear", "trees")
    for kind in kinds:
        watch(f"{kind} probe")
        result = probe(z, s, kind, seed=settings.seed)
        details: dict[str, Setting] = {"folds": result.folds}
        key, null = f"probe_{kind}", result.shuffled_r2
        yield Number(key, result.r2, result.rows, None, NO_INTERVAL, null, settings=details)
