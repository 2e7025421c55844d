"""The numbers of one set of rows: parity of the scores, dependence of the representation, probes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from frhsic.auditing import wording
from frhsic.auditing.probes import ProbeKind, probe
from frhsic.auditing.resampling import jackknife, shuffled_mean, subsample
from frhsic.auditing.results import Contrast, Curve, Interval, Number, Omitted, Population, Setting
from frhsic.dependence import distance_correlation, eipm, hsic, kernel_hgr, mutual_information
from frhsic.independence import gamma_test
from frhsic.kernels import Kernel, gaussian_at_median, per_column_gaussians
from frhsic.parity import ParityResult, gdp_curve, nadaraya_watson_weights, standardized_gdp

__all__ = ["LABELS", "Rows", "Settings", "dependence", "measure", "score_curve"]

LABELS = {
    "gdp": "Generalised demographic parity (GDP)",
    "standardized_gdp": "GDP in standard deviations",
    "hsic": "HSIC",
    "hsic_effect": "HSIC, normalised",
    "distance_correlation": "Distance correlation",
    "kernel_hgr": "Kernel maximal correlation (HGR)",
    "eipm": "Expected conditional MMD (EIPM)",
    "mutual_information": "Mutual information, nats",
    "probe_linear": "Recovered by a linear probe, R²",
    "probe_trees": "Recovered by boosted trees, R²",
}
CURVE_POINTS = 121
CUBIC_ROWS = 1000
"""Rows of EIPM at most: with every row as an anchor its cost grows with their cube."""


@dataclass(frozen=True)
class Settings:
    """How an audit is computed.

    Attributes
    ----------
    level
        Of every interval.
    max_rows
        Rows that the costly statistics use at most.
    probe_rows
        Rows that the probes use at most.
    resamples
        Of the bootstrap and of the permutations of GDP.
    groups, shuffles
        Of the jackknife, and of the value expected under independence.
    sparse_rows
        Effective number of rows below which the curve is not to be trusted.
    seed
        Of everything that is drawn.
    """

    level: float = 0.95
    max_rows: int = 2000
    probe_rows: int = 5_000
    resamples: int = 300
    groups: int = 10
    shuffles: int = 5
    sparse_rows: float = 30.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(f"level is {self.level}; pass a share between 0 and 1, such as 0.95.")
        for name, least in (("max_rows", 100), ("probe_rows", 100), ("resamples", 20), ("groups", 2), ("shuffles", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}; pass a whole number, at least {least}.")

    def generator(self, *keys: int) -> np.random.Generator:
        """Return a generator of its own for each purpose, so that adding one number changes no other."""
        return np.random.default_rng([self.seed, *keys])


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of one population, float64: z of shape (n, d), s of shape (n, q), scores of shape (n,) or None."""

    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray | None
    bandwidth: float
    z_said: str
    f_said: str
    s_said: str

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.z)

    def keep(self, mask: np.ndarray) -> Rows:
        """Return the rows of a mask."""
        scores = None if self.scores is None else self.scores[mask]
        return Rows(self.z[mask], self.s[mask], scores, self.bandwidth, self.z_said, self.f_said, self.s_said)


def measure(
    rows: Rows, name: str, at: tuple[float, ...], settings: Settings, tell: Callable[[str], None]
) -> Population:
    """Measure one attribute on one set of rows."""
    numbers: list[Number] = []
    omitted: list[Omitted] = []
    curve: Curve | None = None
    contrasts: tuple[Contrast, ...] = ()
    if rows.scores is None:
        why = "there are no scores; pass scores, or a target to which a linear head can be fitted."
        omitted += [Omitted(key, LABELS[key], why) for key in ("gdp", "standardized_gdp")]
    else:
        tell("parity")
        curve, found = _parity(rows, settings, omitted)
        numbers += found
        contrasts = tuple(_contrast(rows, value, curve.overall, settings) for value in at)
    numbers += dependence(rows, settings, omitted, tell)
    return Population(name, rows.count, tuple(numbers), curve, contrasts, tuple(omitted))


def dependence(
    rows: Rows, settings: Settings, omitted: list[Omitted], tell: Callable[[str], None], *, jointly: bool = False
) -> Iterator[Number]:
    """Yield HSIC with its test, the other measures of dependence, and the probes beside them."""
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(rows.z[chosen]), torch.from_numpy(rows.s[chosen])
    try:
        kernel_z, kernel_s = gaussian_at_median(z, name=rows.z_said), _kernel_s(s, rows.s_said)
    except ValueError as error:
        for key in ("hsic", "hsic_effect", "eipm", "kernel_hgr"):
            omitted.append(Omitted(key, LABELS[key], str(error)))
    else:
        yield from _hsic(rows, z, s, kernel_z, kernel_s, settings, tell)
        tell("kernel maximal correlation")
        yield _resampled(
            rows, "kernel_hgr", lambda a, b: float(kernel_hgr(a, b, kernel_z, kernel_s)), z, s, settings, 0.0, 1.0
        )
        tell("expected conditional MMD")
        fewer = torch.from_numpy(subsample(len(z), CUBIC_ROWS, settings.generator(5)))
        yield _resampled(
            rows, "eipm", lambda a, b: float(eipm(a, b, kernel_z)), z[fewer], s[fewer], settings, 0.0, math.inf
        )
    tell("distance correlation")
    yield _resampled(
        rows, "distance_correlation", lambda a, b: float(distance_correlation(a, b)), z, s, settings, 0.0, 1.0
    )
    tell("mutual information")
    yield _resampled(
        rows,
        "mutual_information",
        lambda a, b: float(mutual_information(a, b, random_state=settings.seed)),
        z,
        s,
        settings,
        -math.inf,
        math.inf,
    )
    if not jointly:
        yield from _probes(rows, settings, tell)


def _kernel_s(s: Tensor, said: str) -> Kernel:
    return gaussian_at_median(s, name=said) if s.shape[1] == 1 else per_column_gaussians(s, name=said)


def score_curve(
    f: np.ndarray, s: np.ndarray, bandwidth: float, settings: Settings, *, permutations: int = 0
) -> tuple[Curve, ParityResult]:
    """Return the curve of the mean score along one attribute, with its band, and the gap that it sums up to."""
    found = gdp_curve(
        f,
        s,
        points=CURVE_POINTS,
        bandwidth=bandwidth,
        confidence=settings.level,
        bootstrap=settings.resamples,
        permutations=permutations,
        random_state=settings.seed,
    )
    curve = Curve(
        grid=tuple(found.at.tolist()),
        mean=tuple(found.mean.tolist()),
        overall=found.overall,
        bandwidth=found.parity.bandwidth,
        low=tuple(found.lower.tolist()),
        high=tuple(found.upper.tolist()),
        rows=tuple(found.effective_rows.tolist()),
        sparse=tuple((found.effective_rows < settings.sparse_rows).tolist()),
        level=settings.level,
        resamples=settings.resamples,
    )
    return curve, found.parity


def _parity(rows: Rows, settings: Settings, omitted: list[Omitted]) -> tuple[Curve, list[Number]]:
    assert rows.scores is not None
    f, s = rows.scores, rows.s
    curve, gap = score_curve(f, s, rows.bandwidth, settings, permutations=settings.resamples)
    numbers = [_gap("gdp", gap, rows)]
    if float(np.ptp(f)) == 0:
        omitted.append(Omitted("standardized_gdp", LABELS["standardized_gdp"], "the scores are constant."))
        return curve, numbers
    scaled = standardized_gdp(
        f,
        s,
        bandwidth=rows.bandwidth,
        confidence=settings.level,
        bootstrap=settings.resamples,
        permutations=settings.resamples,
        random_state=settings.seed,
    )
    return curve, [*numbers, _gap("standardized_gdp", scaled, rows)]


def _gap(key: str, found: ParityResult, rows: Rows) -> Number:
    null, pvalue = found.expected_under_independence, found.pvalue
    return Number(
        key=key,
        label=LABELS[key],
        value=found.value,
        sentence=wording.sentence(key, found.value, z=rows.f_said, s=rows.s_said, null=null, pvalue=pvalue),
        rows=found.n,
        group="parity",
        interval=Interval(*found.interval, found.confidence, f"bootstrap, {found.bootstrap} resamples"),
        under_independence=null,
        pvalue=pvalue,
        settings={"bandwidth": found.bandwidth, "weighting": found.weighting, "seed": found.seed},
    )


def _contrast(rows: Rows, at: float, overall: float, settings: Settings) -> Contrast:
    r"""Difference of the smoothed mean at one value from the overall mean, with its delta-method interval.

    The estimate is :math:`\sum_j (w_j - 1/n) f_j`; row j contributes
    :math:`w_j (f_j - \hat m) - (f_j - \bar f)/n` to its error.
    """
    assert rows.scores is not None
    f, s = torch.from_numpy(rows.scores), torch.from_numpy(rows.s[:, 0])
    weights = nadaraya_watson_weights(torch.tensor([at], dtype=s.dtype), s, rows.bandwidth)[0]
    mean = float(weights @ f)
    effective = 1 / float(weights @ weights)
    sparse = effective < settings.sparse_rows
    influence = weights * (f - mean) - (f - overall) / len(f)
    reach = float(
        torch.special.ndtri(torch.tensor((1 + settings.level) / 2, dtype=f.dtype)) * influence.square().sum().sqrt()
    )
    value = mean - overall
    return Contrast(
        at=at,
        value=value,
        sentence=wording.contrast_sentence(at, value, overall, rows.f_said, rows.s_said, sparse),
        rows=effective,
        sparse=sparse,
        interval=None if sparse else Interval(value - reach, value + reach, settings.level, "delta method"),
        no_interval=f"fewer than {settings.sparse_rows:g} rows are near" if sparse else None,
    )


def _hsic(
    rows: Rows,
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel,
    kernel_s: Kernel,
    settings: Settings,
    tell: Callable[[str], None],
) -> Iterator[Number]:
    tell("HSIC and its test")
    test = gamma_test(z, s, kernel_z, kernel_s, level=1 - settings.level)
    said: dict[str, Setting] = {"test": test.method, "kernel on z": test.kernels[0], "kernel on s": test.kernels[1]}

    def plain(a: Tensor, b: Tensor) -> float:
        return float(hsic(a, b, kernel_z, kernel_s))

    def effect(a: Tensor, b: Tensor) -> float:
        both = float(hsic(a, a, kernel_z, kernel_z)) * float(hsic(b, b, kernel_s, kernel_s))
        return plain(a, b) / math.sqrt(both) if both > 0 else 0.0

    for key, statistic, value, null, pvalue, most in (
        ("hsic", plain, test.statistic, test.null_mean, test.pvalue, math.inf),
        ("hsic_effect", effect, test.effect_size, test.effect_size_null, None, 1.0),
    ):
        yield Number(
            key=key,
            label=LABELS[key],
            value=value,
            sentence=wording.sentence(key, value, z=rows.z_said, s=rows.s_said, null=null, pvalue=pvalue),
            rows=test.n,
            group="dependence",
            interval=_jackknife(statistic, z, s, value, settings, 0.0, most),
            under_independence=null,
            pvalue=pvalue,
            unit_scale=key == "hsic_effect",
            settings=said,
        )


def _jackknife(
    statistic: Callable[[Tensor, Tensor], float],
    z: Tensor,
    s: Tensor,
    value: float,
    settings: Settings,
    least: float,
    most: float,
) -> Interval:
    return jackknife(
        statistic,
        z,
        s,
        value,
        groups=settings.groups,
        level=settings.level,
        random=settings.generator(2),
        least=least,
        most=most,
    )


def _resampled(
    rows: Rows,
    key: str,
    statistic: Callable[[Tensor, Tensor], float],
    z: Tensor,
    s: Tensor,
    settings: Settings,
    least: float,
    most: float,
) -> Number:
    value = statistic(z, s)
    null = shuffled_mean(statistic, z, s, shuffles=settings.shuffles, random=settings.generator(3))
    return Number(
        key=key,
        label=LABELS[key],
        value=value,
        sentence=wording.sentence(key, value, z=rows.z_said, s=rows.s_said, null=null),
        rows=len(z),
        group="dependence",
        interval=_jackknife(statistic, z, s, value, settings, least, most),
        under_independence=null,
        unit_scale=most == 1.0,
    )


def _probes(rows: Rows, settings: Settings, tell: Callable[[str], None]) -> Iterator[Number]:
    chosen = subsample(rows.count, settings.probe_rows, settings.generator(4))
    z, s = rows.z[chosen], rows.s[chosen, 0]
    kinds: dict[str, ProbeKind] = {"probe_linear": "linear", "probe_trees": "trees"}
    for key, kind in kinds.items():
        tell(f"{kind} probe")
        found = probe(z, s, kind, level=settings.level, seed=settings.seed)
        yield Number(
            key=key,
            label=LABELS[key],
            value=found.r2,
            sentence=wording.sentence(key, found.r2, z=rows.z_said, s=rows.s_said),
            rows=found.rows,
            group="probe",
            interval=Interval(found.low, found.high, settings.level, "bootstrap over held-out rows, fits held fixed"),
            under_independence=0.0,
            unit_scale=True,
            settings={"folds": found.folds},
        )
