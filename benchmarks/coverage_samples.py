"""Samples whose truth is known, and the intervals and p-values that the library computes from them.

Each function draws one sample and returns an outcome for each measure; `coverage_cells.py` says how often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from types import SimpleNamespace

import numpy as np
from scipy import stats
from scipy.special import expit, ndtr, ndtri

from frhsic.auditing.changes import drift
from frhsic.independence import (
    SequentialTest,
    aggregated_test,
    conditional_test,
    equivalence_test,
    gamma_test,
    permutation_test,
)
from frhsic.independence._gram_pair import gram_pair
from frhsic.independence.effects import LEAST_ROWS, Effect, hsic_effect, normalized_effect
from frhsic.intervals import holm
from frhsic.kernels import Gaussian, HalfDistance, default_gaussian
from frhsic.parity import (
    ParityResult,
    correlation_ratio,
    gdp,
    gdp_curve,
    local_mean,
    quantile_gap,
)
from frhsic.parity._rows import rows_of
from frhsic.parity.gap import gap_and_standardized
from frhsic.probes import probe

Array = np.ndarray
Outcome = float | list[bool] | list[float]
"""A p-value; whether the interval at each confidence holds the truth; or the estimate and the ends of its intervals."""
CONFIDENCES = (0.95, 0.99)
GRID = 400_000
RESAMPLES = 99


@dataclass(frozen=True)
class Law:
    """A law of S and f in terms of the ranks u of S: quantiles of S, mean and noise of f (None: 0/1 decisions)."""

    name: str
    s: Callable[[Array], Array]
    mean: Callable[[Array], Array]
    noise: Callable[[Array], Array] | None

    def draw(self, n: int, random: np.random.Generator) -> tuple[Array, Array]:
        u = random.random(n)
        mean = self.mean(u)
        if self.noise is None:
            return (random.random(n) < mean).astype(np.float64), self.s(u)
        return mean + self.noise(u) * random.standard_normal(n), self.s(u)

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        u = (np.arange(GRID) + 0.5) / GRID
        return self.s(u), self.mean(u)

    @cached_property
    def variance(self) -> float:
        mean = self.grid[1]
        if self.noise is None:
            return float(mean.mean() * (1 - mean.mean()))
        u = (np.arange(GRID) + 0.5) / GRID
        return float(mean.var() + np.mean(self.noise(u) ** 2))

    @cached_property
    def gdp(self) -> float:
        mean = self.grid[1]
        return float(np.abs(mean - mean.mean()).mean())

    @property
    def flat(self) -> bool:
        return self.gdp < 1e-12

    @property
    def independent(self) -> bool:
        return self.flat and self.name != "flat mean, spread follows S"

    def mean_between(self, start: float, end: float) -> float:
        s, mean = self.grid
        low, high = np.searchsorted(s, start), np.searchsorted(s, end, side="right")
        return float(mean[low : max(high, low + 1)].mean())


def ages(u: Array) -> Array:
    return np.floor(18 + 60 * u**1.4)


def zeros(u: Array) -> Array:
    return np.where(u < 0.92, 0.0, np.exp(ndtri(np.clip((u - 0.92) / 0.08, 1e-9, 1 - 1e-9))))


def steady(size: float) -> Callable[[Array], Array]:
    return lambda u: np.full_like(u, size)


LAWS = (
    Law("normal S, f = S + noise", ndtri, ndtri, steady(0.5)),
    Law("log-normal S (σ = 1), f = rank/2 + noise", lambda u: np.exp(ndtri(u)), lambda u: u / 2, steady(0.1)),
    Law("log-normal S (σ = 2), f = rank + noise", lambda u: np.exp(2 * ndtri(u)), lambda u: u, steady(0.2)),
    Law("uniform S, f = S² + noise", lambda u: 2 * u - 1, lambda u: (2 * u - 1) ** 2, steady(0.3)),
    Law("92 % zeros", zeros, lambda u: np.where(u < 0.92, 0.1, 0.5 + 4 * (u - 0.92)), steady(0.2)),
    Law("ages (ties)", ages, lambda u: ages(u) / 100, steady(0.2)),
    Law("three values", lambda u: np.floor(3 * u), lambda u: np.floor(3 * u) * 0.1, steady(0.3)),
    Law("binary S, decisions", lambda u: (u > 0.8) * 1.0, lambda u: 0.3 + 0.2 * (u > 0.8), None),
    Law("rare decisions", lambda u: np.exp(ndtri(u)), lambda u: expit(2 * u - 4), None),
    Law("weak dependence", lambda u: u, lambda u: 0.1 * u, steady(0.5)),
    Law("independent", lambda u: np.exp(ndtri(u)), lambda u: 0 * u, steady(1.0)),
    Law("independent, ties", ages, lambda u: 0 * u, steady(1.0)),
    Law("independent, decisions", lambda u: u, lambda u: 0 * u + 0.1, None),
    Law("flat mean, spread follows S", lambda u: u, lambda u: 0 * u, lambda u: 0.05 + u**2),
)


def inside(interval: tuple[float, float], truth: float) -> bool:
    return bool(interval[0] - 1e-9 <= truth <= interval[1] + 1e-9)


def at_confidence(gap: ParityResult, confidence: float) -> tuple[float, float]:
    """Return the interval that `gdp` gives at another confidence: its ends move by the quantile of Student's t."""
    old, new = (stats.t.ppf((1 + c) / 2, gap.n - 1) * gap.standard_error for c in (gap.confidence, confidence))
    return max(0.0, gap.value - new), gap.interval[1] - old + new


def parity(law: Law, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Intervals of GDP, standardized GDP, correlation ratio, curve and local mean; tests of GDP and the whole law."""
    f, s = law.draw(n, random)
    varies, share, scale = np.ptp(f) > 0, float(law.grid[1].var()) / law.variance, math.sqrt(law.variance)
    gap, standardized = gap_and_standardized(rows_of(f, s), CONFIDENCES[0], RESAMPLES, 0)  # as in an audit
    outcome: dict[str, Outcome] = {"gdp": [inside(at_confidence(gap, c), law.gdp) for c in CONFIDENCES]}
    if standardized is not None:
        outcome["standardized_gdp"] = [inside(at_confidence(standardized, c), law.gdp / scale) for c in CONFIDENCES]
    curves = [gdp_curve(f, s, confidence=c) for c in CONFIDENCES]
    truths = np.array([law.mean_between(a, b) for a, b in zip(curves[0].start, curves[0].end)])
    outcome["gdp_curve, all groups"] = [bool(((c.lower <= truths) & (truths <= c.upper)).all()) for c in curves]
    near = [local_mean(f, s, float(np.median(s)), confidence=c) for c in CONFIDENCES]
    local = law.mean_between(near[0].start, near[0].end) - law.grid[1].mean()
    outcome["local_mean"] = [inside(each.interval, local) for each in near]
    if varies:
        outcome["correlation_ratio"] = [
            inside(correlation_ratio(f, s, confidence=c).interval, share) for c in CONFIDENCES
        ]
    if law.flat:
        outcome["gdp (“moves”)"] = gap.pvalue
    if law.independent:
        outcome["quantile_gap"] = quantile_gap(f, s, permutations=99).pvalue
    return outcome


ATTRIBUTES: dict[str, Callable[[Array], Array]] = {
    "normal": lambda u: u,
    "uniform": ndtr,
    "log-normal": np.exp,
    "zero-inflated": lambda u: np.exp(np.maximum(u - 1, 0)) - 1,
    "tied": lambda u: np.round(2 * u),
    "discrete": lambda u: (u > 0.5) * 1.0,
}


def correlated(kind: str, d: int, rho: float, n: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Z is normal; its first column has correlation ρ with a normal U, of which S is a function."""
    u, z = random.standard_normal(n), random.standard_normal((n, d))
    z[:, 0] = rho * u + math.sqrt(1 - rho**2) * z[:, 0]
    return z, ATTRIBUTES[kind](u)


@cache
def gaussians(kind: str, d: int) -> tuple[Gaussian, Gaussian]:
    """Kernels at the median distances of 1,500 other rows, which count as fixed."""
    z, s = correlated(kind, d, 0.0, 1500, np.random.default_rng(1))
    return default_gaussian(z)[0], default_gaussian(s)[0]


def dependence(kind: str, d: int, rho: float, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Intervals of HSIC, normalized HSIC and squared distance correlation."""
    z, s = correlated(kind, d, rho, n, random)
    outcome: dict[str, Outcome] = {}
    for kernels, measures in (
        (gaussians(kind, d), ((hsic_effect, "hsic_interval"), (normalized_effect, "normalized_hsic_interval"))),
        ((HalfDistance(),) * 2, ((normalized_effect, "normalized_hsic_interval, half-distances (dCor²)"),)),
    ):
        pair = gram_pair(z, s, *kernels, least=LEAST_ROWS, what="an interval")  # once for all that is measured
        for effect, name in measures:
            outcome[name] = interval_outcome([effect(pair, confidence) for confidence in CONFIDENCES], rho)
    return outcome


def interval_outcome(effects: list[Effect], rho: float) -> Outcome:
    intervals = [(effect.interval.low, effect.interval.high) for effect in effects]
    if rho == 0:
        return [inside(interval, 0.0) for interval in intervals]
    return [effects[0].value, *(end for interval in intervals for end in interval)]


@cache
def normal_hsic(rho: float) -> float:
    """HSIC of two normals of correlation ρ under Gaussian kernels of bandwidth one, in closed form.

    For a pair of differences with covariance C, E exp(−|δ|²/2) = det(I + C)^(−1/2).
    """
    terms = [1 / math.sqrt(9 - c**2) for c in (2 * rho, rho, 0)]
    return terms[0] - 2 * terms[1] + terms[2]


def independent(kind: str, d: int, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """The test of independence of an audit."""
    return {"gamma_test (“dependent”)": gamma_test(*correlated(kind, d, 0.0, n, random)).pvalue}


def permuted(kind: str, d: int, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Tests of independence by permutations."""
    (z, s), seed = correlated(kind, d, 0.0, n, random), int(random.integers(2**31))
    return {
        "permutation_test": permutation_test(z, s, resamples=99, random_state=seed).pvalue,
        "aggregated_test": aggregated_test(z, s, resamples=99, random_state=seed).pvalue,
    }


def clustered(n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Four rows per person, who has one S and one level of the score; persons are independent."""
    person = np.repeat(np.arange(n // 4), 4)
    s, level = random.lognormal(size=n // 4)[person], random.normal(size=n // 4)[person]
    f, seed = level + random.normal(size=len(person)), int(random.integers(2**31))
    return {
        "permutation_test(clusters=)": permutation_test(f, s, resamples=99, random_state=seed, clusters=person).pvalue,
        "gdp(clusters=)": gdp(f, s, resamples=RESAMPLES, clusters=person).pvalue,
    }


def conditional(kind: str, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Z and S independent given Y, or dependent where the name says so."""
    y, e, d = random.normal(size=(3, n))
    match kind:
        case "Y + noise":
            z, s = y + e, y + d
        case "Y² + noise/2":
            z, s = y**2 + 0.5 * e, y**2 + 0.5 * d
        case "sin 3Y + .3 noise":
            z, s = np.sin(3 * y) + 0.3 * e, np.sin(3 * y) + 0.3 * d
        case "sin 6Y + .3 noise":
            z, s = np.sin(6 * y) + 0.3 * e, np.sin(6 * y) + 0.3 * d
        case "spread follows Y":
            z, s = y + e * (0.2 + abs(y)), y + d * (0.2 + abs(y))
        case "Z, S and Y log-normal":
            z, s, y = np.exp(y + 0.5 * e), np.exp(d - y), np.exp(2 * y)
        case "discrete Y":
            y = np.floor(2 * y)
            z, s = y + e, np.sin(2 * y) + y + d
        case "dependent: S = Y + d + .3 e":
            z, s = y + e, y + d + 0.3 * e
        case "dependent: sin 3Y, S with .1 e":
            z, s = np.sin(3 * y) + 0.3 * e, np.sin(3 * y) + 0.3 * d + 0.1 * e
        case _:  # "dependent: spread of S follows e"
            z, s = y + e, y + d * (0.3 + abs(e))
    test = conditional_test(z, s, y, resamples=199, random_state=int(random.integers(2**31)))
    return {"conditional_test": test.pvalue, "conditional_test, caution": 0.0 if test.caution else 1.0}


CONDITIONAL = (
    "Y + noise",
    "Y² + noise/2",
    "sin 3Y + .3 noise",
    "sin 6Y + .3 noise",
    "spread follows Y",
    "Z, S and Y log-normal",
    "discrete Y",
    "dependent: S = Y + d + .3 e",
    "dependent: sin 3Y, S with .1 e",
    "dependent: spread of S follows e",
)


def boundary(rho: float, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Tests against ε where HSIC is ε exactly: “below ε” and “above ε” are both false."""
    z, s = correlated("normal", 1, rho, n, random)
    one, epsilon = Gaussian(1.0), normal_hsic(rho)
    above = gamma_test(z, s, one, one, epsilon=epsilon).pvalue_epsilon
    assert above is not None
    return {"equivalence_test": equivalence_test(z, s, epsilon, one, one).pvalue, "gamma_test(epsilon=)": above}


def stream(tied: bool, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """A look after each of n/20 batches of 20 independent rows, whose law drifts."""
    test = SequentialTest(resamples=99, random_state=int(random.integers(2**31)))
    for batch in range(n // 20):
        s, f = random.lognormal(size=20), random.normal(size=20) + 0.1 * batch
        test.update((f > 1) * 1.0 if tied else f, np.floor(s) if tied else s)
    return {"SequentialTest, ever": test.pvalue}


def drifts(index: int, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Two audits of independent rows of one law: the change of the gap."""
    gaps = [gdp(*LAWS[index].draw(n, random), resamples=RESAMPLES) for _ in range(2)]
    return {"drift (“grown”, “shrunk”)": drift(*(_Gap(gap) for gap in gaps))[0].pvalue}  # type: ignore[arg-type]


class _Gap:
    """As much of an audit as `drift` reads."""

    def __init__(self, gap: ParityResult) -> None:
        self.attributes, self.subject = [SimpleNamespace(name="s")], SimpleNamespace(confidence=0.95)
        low, high = gap.interval
        interval = SimpleNamespace(low=low, high=high)
        number = SimpleNamespace(value=gap.value, standard_error=gap.standard_error, interval=interval)
        self.population = SimpleNamespace(all_rows={"gdp": number})

    def __getitem__(self, name: str) -> SimpleNamespace:
        return self.population


def many(n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """Eight independent attributes in one audit: the least p-value after Holm."""
    f, s = random.normal(size=n), random.normal(size=(8, n))
    return {
        "gdp, eight attributes, Holm": min(holm([gdp(f, each, resamples=RESAMPLES).pvalue for each in s])),
        "gamma_test, eight attributes, Holm": min(holm([gamma_test(f, each).pvalue for each in s])),
    }


def recovered(d: int, n: int, random: np.random.Generator) -> dict[str, Outcome]:
    """The sentence “a model can recover x % of the variance of S” of an S that is independent of Z."""
    z, s = random.normal(size=(n, d)), random.lognormal(size=n)
    best = max(probe(z, s, kind).r2 for kind in ("linear", "trees"))
    return {"probes (“can recover”)": 0.0 if best >= 0.01 else 1.0}
