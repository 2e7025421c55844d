"""Coverage of intervals, and errors of verdicts, on random laws whose truth is known.

    python benchmarks/laws.py --laws 600                 # of the commit that is checked out
    python benchmarks/laws.py --laws 4000 --jobs 16      # goes on where its file ends
    python benchmarks/laws.py --of drift --laws 2000     # another claim than that of `gdp`
    python benchmarks/laws.py --of drift --page          # only the tables of the last count
    python benchmarks/laws.py --laws 600 --trial word    # for development: any source, not kept

Every draw is a new law, so no interval can be tuned to a list of them. The seed of a count is the
hash of the tested commit, so it cannot be chosen after looking; the sources must be those of the
commit. A count is one JSON line a law, with the commit, in `benchmarks/results/laws/CLAIM.jsonl`.
Every count is kept, failures included; finished ones are appended to `CLAIM.jsonl.gz`, which is
read, too. If the measure raises or returns NaN on a law, that law counts as an error of every kind.
The exit status is 1 if the criterion is missed.

An interval of a gap says two things. The gap E|E[f | S] - E f| is at least its lower end. The gap
at the resolution that the result states (the same with E[f | S] averaged over the people within so
large a share of all along S; the share is 0 if the values of S are compared themselves) is at most
its upper end. "Covers" below means both. The share of intervals that hold the gap itself, whatever
the resolution, is in the column beside it. `CLAIMS` has all that is counted.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv, ndtr, ndtri, stdtr, stdtrit

from frhsic.auditing import Audit, Settings, audit, drift
from frhsic.auditing.comparing import check_limits, difference
from frhsic.auditing.gaps import gap_number, gap_terms, gaps_and_curves
from frhsic.auditing.performance import changes, covariance, performance
from frhsic.auditing.results import (
    LIMITABLE,
    WINDOWS_KEY,
    AttributeAudit,
    Histogram,
    RowCounts,
    Subject,
)
from frhsic.auditing.rows import Rows
from frhsic.auditing.running import finish_audit
from frhsic.estimators.frontier import Gap
from frhsic.independence import hsic_interval
from frhsic.kernels import Gaussian
from frhsic.parity import correlation_ratio, gdp, gdp_curve, rank_gap, standardized_gdp
from frhsic.parity.column import column_gap
from frhsic.parity.limits import parse_limits
from frhsic.parity.strata import Strata
from frhsic.report.costs import GAINS, costs
from frhsic.report.first_page import Headline, decision_gaps, shrinkage, verdict
from frhsic.report.model import Report, Stop, TradeOff, TradeOffPoint
from frhsic.report.people import sort_groups, worst_sentence

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "laws"
GRID = 100_000
# The log of the standard deviation of an outcome, along the ranks of S.
SPREADS = (
    ("even", np.zeros_like),
    ("growing 55-fold", lambda u: 4 * u),
    ("small at both ends", lambda u: np.where((u < 0.1) | (u > 0.85), -2.3, 0.0)),
)
WINDOW = re.compile(r"mean \w+ at .*? is significantly too (low|high)")
RESAMPLES = 199
LEVEL = 0.05
SLACK = 1e-9
SHORT = 12  # digits of a commit in records
FLAT = 1e-12
ATTRIBUTES_AT_ONCE = 20
COST_GRID = 20_000
COSTS = {
    "true_positive_rate": "recall",
    "false_positive_rate": "false alarms",
    "auc": "AUC",
    "log_loss": "log loss",
}
"""Costs that the first screen shows, by their names in tables."""
STEADY_SPREAD = 0.18
"""Standard deviation of probabilities whose gap of .0147 at 5,000 rows has an interval of .012."""

Array = np.ndarray
Random = np.random.Generator
Record = dict[str, Any]
Sample = tuple[Array, Array, dict[str, Array]]
"""Scores, S, and the weights or clusters."""


def up_to(value: float, *bounds: float) -> str:
    """Return the first bound that a value is within, in words."""
    return f"up to {next(most for most in bounds if value <= most):,}"


def log_uniform(rng: Random, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass(frozen=True)
class Attribute:
    """S as a function of u, uniform on [0, 1]. `atoms` are the u at which single values of S begin
    and end.
    """

    kind: str
    value: Callable[[Array], Array]
    atoms: tuple[tuple[float, float], ...] = ()

    def rank(self, u: Array) -> Array:
        """Return the rank of S, the middle of those that share its value."""
        result = np.array(u, dtype=np.float64)
        for start, end in self.atoms:
            result[(u >= start) & (u < end)] = (start + end) / 2
        return result


def uniform_attribute(rng: Random) -> Attribute:
    return Attribute("uniform", lambda u: u)


def skewed_attribute(rng: Random) -> Attribute:
    sigma = rng.uniform(0.5, 2)
    return Attribute("skewed", lambda u: np.exp(sigma * ndtri(np.clip(u, 1e-12, 1 - 1e-12))))


def zero_inflated_attribute(rng: Random) -> Attribute:
    zeros = rng.uniform(0.2, 0.95)

    def value(u: Array) -> Array:
        rest = np.clip((u - zeros) / (1 - zeros), 1e-12, 1 - 1e-12)
        return np.where(u < zeros, 0.0, np.exp(ndtri(rest)))

    return Attribute("zero-inflated", value, ((0.0, zeros),))


def levelled_attribute(rng: Random) -> Attribute:
    count = round(log_uniform(rng, 2, 60))
    ends = np.append(np.cumsum(rng.dirichlet(np.ones(count)))[:-1], 1.0)
    starts = np.append(0.0, ends[:-1])

    def value(u: Array) -> Array:
        return np.searchsorted(ends[:-1], u, side="right").astype(np.float64)

    return Attribute("levels", value, tuple(zip(starts.tolist(), ends.tolist())))


def gapped_attribute(rng: Random) -> Attribute:
    border = rng.uniform(0.1, 0.9)
    width = rng.uniform(0.2, 2)
    return Attribute("gap in support", lambda u: u + width * (u > border))


ATTRIBUTES = (
    uniform_attribute,
    skewed_attribute,
    zero_inflated_attribute,
    levelled_attribute,
    gapped_attribute,
)

Curve = Callable[[Array], Array]


def waves(rng: Random) -> tuple[str, Curve]:
    count = rng.uniform(0, 12)
    phase = rng.random()
    return f"{up_to(count, 2, 6, 12)} waves", lambda x: np.sin(2 * np.pi * (count * x + phase))


def jumps(rng: Random) -> tuple[str, Curve]:
    cuts = np.sort(rng.random(rng.integers(1, 6)))
    heights = rng.standard_normal(len(cuts) + 1)
    return "jumps", lambda x: heights[np.searchsorted(cuts, x)]


def bump(rng: Random) -> tuple[str, Curve]:
    share = log_uniform(rng, 0.01, 0.2)
    start = rng.uniform(0, 1 - share)
    return "bump", lambda x: ((x >= start) & (x < start + share)) * 1.0


def random_levels(rng: Random) -> tuple[str, Curve]:
    heights = rng.standard_normal(round(log_uniform(rng, 2, 60)))

    def curve(x: Array) -> Array:
        return heights[np.minimum((x * len(heights)).astype(int), len(heights) - 1)]

    return "random levels", curve


def flat(rng: Random) -> tuple[str, Curve]:
    return "flat", np.zeros_like


CURVES = (waves, jumps, bump, random_levels, flat)


@dataclass(frozen=True)
class Scores:
    """Scores of one kind: the most that their mean may move from `mean`, their variance at a mean,
    the score with a given mean and a given rank among the scores with that mean, and the share of
    the scores with a given mean at or below a value.
    """

    kind: str
    mean: float
    room: float
    variance: Callable[[Any], Any]
    score: Callable[[Array, Array], Array]
    below: Callable[[Array, float], Array]

    @property
    def spread(self) -> float:
        """Standard deviation at the mean."""
        return math.sqrt(self.variance(self.mean))


def unit_variance(mean: Any) -> Any:
    return 1.0 + 0 * mean


def normal_scores(rng: Random) -> Scores:
    return Scores(
        "normal",
        0.0,
        math.inf,
        unit_variance,
        lambda mean, v: mean + ndtri(v),
        lambda mean, q: ndtr(q - mean),
    )


def decisions(rng: Random) -> Scores:
    rate = log_uniform(rng, 0.01, 0.5)
    return Scores(
        "0/1, rate below .1" if rate < 0.1 else "0/1, rate from .1",
        rate,
        rate,
        lambda mean: mean * (1 - mean),
        lambda mean, v: (v > 1 - mean) * 1.0,
        lambda mean, q: np.where(q < 0, 0.0, np.where(q < 1, 1 - mean, 1.0)),
    )


def beta_scores(rng: Random) -> Scores:
    mean = rng.uniform(0.05, 0.5)
    return beta_scores_of(mean, log_uniform(rng, 0.5, 20))


def beta_scores_of(mean: float, size: float) -> Scores:
    def below(mean: Array, q: float) -> Array:
        if q < 0:
            return np.zeros_like(mean)
        # scores that are smaller than any number are 0
        return betainc(size * mean, size * (1 - mean), min(max(q, 1e-308), 1.0))

    return Scores(
        "beta",
        mean,
        0.9 * mean,
        lambda mean: mean * (1 - mean) / (1 + size),
        lambda mean, v: betaincinv(size * mean, size * (1 - mean), v),
        below,
    )


def heavy_scores(rng: Random) -> Scores:
    if rng.random() < 0.5:
        freedom = rng.uniform(2.5, 5)
        unit = math.sqrt(freedom / (freedom - 2))
        return Scores(
            "heavy tails",
            0.0,
            math.inf,
            unit_variance,
            lambda mean, v: mean + stdtrit(freedom, v) / unit,
            lambda mean, q: stdtr(freedom, (q - mean) * unit),
        )
    sigma = rng.uniform(0.7, 1.5)
    side = rng.choice([-1.0, 1.0])
    middle = math.exp(sigma**2 / 2)
    scale = side * middle * math.sqrt(math.expm1(sigma**2))

    def below(mean: Array, q: float) -> Array:
        rank = ndtr(np.log(np.maximum(middle + scale * (q - mean), 1e-300)) / sigma)
        return rank if side > 0 else 1 - rank

    return Scores(
        "heavy tails",
        0.0,
        math.inf,
        unit_variance,
        lambda mean, v: mean + (np.exp(sigma * ndtri(v)) - middle) / scale,
        below,
    )


def zero_inflated_scores(rng: Random) -> Scores:
    share = rng.uniform(0.05, 0.5)

    def score(mean: Array, v: Array) -> Array:
        rest = np.clip((v - 1 + mean) / mean, 1e-12, 1 - 1e-12)
        return np.where(v < 1 - mean, 0.0, np.exp(ndtri(rest) - 0.5))

    def below(mean: Array, q: float) -> Array:
        if q < 0:
            return np.zeros_like(mean)
        return 1 - mean + mean * ndtr(math.log(max(q, 1e-300)) + 0.5)

    return Scores(
        "zero-inflated",
        share,
        0.95 * share,
        lambda mean: mean * math.e - mean**2,
        score,
        below,
    )


SCORES = (normal_scores, decisions, beta_scores, heavy_scores, zero_inflated_scores)


def no_design(rng: Random, n: int) -> tuple[str, Array | None]:
    return "none", None


def log_normal_weights(rng: Random, n: int) -> tuple[str, Array | None]:
    sigma = rng.uniform(0.1, 1.5)
    kind = "log-normal, sigma " + ("up to .75" if sigma < 0.75 else "from .75")
    return kind, np.exp(sigma * rng.standard_normal(n))


def one_heavy_row(rng: Random, n: int) -> tuple[str, Array | None]:
    share = rng.uniform(0.02, 0.3)
    weights = np.ones(n)
    weights[rng.integers(n)] = share / (1 - share) * (n - 1)
    return "one heavy row", weights


WEIGHTS = (no_design, no_design, log_normal_weights, one_heavy_row)


def pairs(rng: Random, n: int) -> tuple[str, Array | None]:
    return "pairs", np.arange(n) // 2


def pareto_clusters(rng: Random, n: int) -> tuple[str, Array | None]:
    tail = rng.uniform(1.2, 3)
    sizes = np.minimum(np.floor(rng.pareto(tail, n) + 1), n // 5).astype(int)
    return "Pareto sizes", np.repeat(np.arange(n), sizes)[:n]


CLUSTERS = (no_design, no_design, pairs, pareto_clusters)


@dataclass(frozen=True)
class Law:
    """A law of S and of the score f, and a design: weights and clusters of n rows.

    Rows of a cluster share what their scores have beside the mean, to the extent of `within`, and
    where `together` their S too. Weights and sizes of clusters are independent of S and f, so that
    the law of a row is the same in every design.
    """

    attribute: Attribute
    curve: str
    shape: Callable[[Array], Array]
    strength: float
    scores: Scores
    weights: str
    clusters: str
    n: int
    within: float
    together: bool
    design: tuple[Array | None, Array | None] = field(repr=False)

    @classmethod
    def random(cls, rng: Random) -> Law:
        """Draw a law."""
        n = round(log_uniform(rng, 60, 20_000))
        attribute = ATTRIBUTES[rng.integers(len(ATTRIBUTES))](rng)
        curve, shape = CURVES[rng.integers(len(CURVES))](rng)
        strength = 3 * rng.random() ** 2
        scores = SCORES[rng.integers(len(SCORES))](rng)
        weights, row_weights = WEIGHTS[rng.integers(len(WEIGHTS))](rng, n)
        clusters, labels = CLUSTERS[rng.integers(len(CLUSTERS))](rng, n)
        shape = cls._scaled(cls._along(attribute, shape, by_rank=rng.random() < 0.5))
        return cls(
            attribute=attribute,
            curve=curve,
            shape=shape,
            strength=strength,
            scores=scores,
            weights=weights,
            clusters=clusters,
            n=n,
            within=rng.random(),
            together=clusters == "pairs" or rng.random() < 0.5,
            design=(row_weights, labels),
        )

    @staticmethod
    def _along(attribute: Attribute, shape: Curve, *, by_rank: bool) -> Curve:
        """Return a curve of u that follows the ranks of S, or its values up to outer ones."""
        if by_rank:
            return lambda u: shape(attribute.rank(u))
        low, high = attribute.value(np.array([0.005, 0.995]))
        if low == high:
            return lambda u: shape(attribute.rank(u))
        return lambda u: shape(np.clip((attribute.value(u) - low) / (high - low), 0, 1))

    @staticmethod
    def _scaled(shape: Curve) -> Curve:
        """Return the curve with the range -1 to 1."""
        values = shape(middles(GRID))
        low, high = float(values.min()), float(values.max())
        if high - low < FLAT:
            return np.zeros_like
        return lambda u: np.clip((2 * shape(u) - low - high) / (high - low), -1, 1)

    def mean(self, u: Array) -> Array:
        """Return the mean score at u."""
        height = min(self.strength * self.scores.spread, self.scores.room)
        return self.scores.mean + height * self.shape(u)

    @cached_property
    def means(self) -> Array:
        """The mean score, on a grid of u."""
        return self.mean(middles(GRID))

    @property
    def variance(self) -> float:
        """Variance of the scores."""
        return float(self.scores.variance(self.means).mean() + self.means.var())

    def gap(self, resolution: float = 0.0) -> float:
        """Return the gap, of means over the people within a share of all, half on either side."""
        return gap_of(self.means, resolution)

    def rank_gap(self, resolution: float = 0.0) -> float:
        """Return the mean gap of the decisions at the deciles of the score."""
        f = self.scores.score(self.means, golden_ranks(GRID))
        deciles = np.quantile(f, np.arange(1, 10) / 10, method="inverted_cdf")
        return float(
            np.mean([gap_of(self.scores.below(self.means, q), resolution) for q in deciles])
        )

    def rows(self, rng: Random) -> tuple[Array, Array, dict[str, Array]]:
        """Draw u, normal noise, and the weights or clusters; again where S has one value in all
        rows.
        """
        n = self.n
        weights, labels = self.design
        u = rng.random(n)
        noise = rng.standard_normal(n)
        options = {}
        if weights is not None:
            options["sample_weight"] = weights
        if labels is not None:
            options["groups"] = labels
            shared = rng.standard_normal(n)[labels]
            noise = math.sqrt(self.within) * shared + math.sqrt(1 - self.within) * noise
            if self.together:
                u = u[labels]
        if np.ptp(self.attribute.value(u)) == 0:
            return self.rows(rng)
        return u, noise, options

    def scored(self, u: Array, noise: Array) -> Array:
        """Return the scores of rows."""
        v = np.clip(ndtr(noise), 1e-12, 1 - 1e-12)
        return self.scores.score(self.mean(u), v)

    def sample(self, rng: Random) -> Sample:
        """Draw scores, S, and the weights or clusters."""
        u, noise, options = self.rows(rng)
        return self.scored(u, noise), self.attribute.value(u), options

    def without(self, *, weights: bool = False, clusters: bool = False) -> Law:
        """Return the law without weights, or without clusters."""
        law = self
        if weights:
            law = replace(law, weights="none", design=(None, law.design[1]))
        if clusters:
            law = replace(law, clusters="none", design=(law.design[0], None))
        return law

    @property
    def ingredients(self) -> Record:
        """What the law is made of, in words."""
        is_flat = self.gap() < FLAT
        return {
            "attribute": self.attribute.kind,
            "curve": "flat" if is_flat else self.curve,
            "strength": 0.0 if is_flat else rounded(self.strength),
            "scores": self.scores.kind,
            "weights": self.weights,
            "clusters": self.clusters,
            "rows": self.n,
        }


def gap_of(means: Array, resolution: float) -> float:
    """Return the gap of means on a grid of u, averaged over a share of the people."""
    gaps = means - means.mean()
    if resolution > 0:
        reach = max(round(resolution * GRID / 2), 1)
        sums = np.append(0.0, np.cumsum(gaps))
        first = np.maximum(np.arange(GRID) - reach, 0)
        last = np.minimum(np.arange(GRID) + reach + 1, GRID)
        gaps = (sums[last] - sums[first]) / (last - first)
    return float(np.abs(gaps).mean())


def middles(count: int) -> Array:
    return (np.arange(count) + 0.5) / count


def golden_ranks(count: int) -> Array:
    """Return ranks that fill the unit interval evenly, whatever part of them is looked at."""
    return np.clip(np.arange(count) * (math.sqrt(5) - 1) / 2 % 1, 1e-12, 1 - 1e-12)


def rounded(number: float) -> float:
    return float(f"{number:.5g}")


def generator_of(word: str, number: int) -> Random:
    """Return the random numbers of a law of a count."""
    digest = hashlib.sha256(f"{word} {number}".encode()).digest()
    return np.random.default_rng(list(digest))


@dataclass(frozen=True)
class StratifiedLaw:
    """A law of S and of the score in each stratum of a control. `warps` give the u of a row from
    its rank in its stratum; the curves of `parts` are of this rank. Rows of a cluster are in the
    same stratum if `alike`.
    """

    whole: Law
    shares: Array
    parts: tuple[Law, ...]
    warps: tuple[Callable[[Array], Array], ...]
    alike: bool

    @classmethod
    def random(cls, rng: Random) -> StratifiedLaw:
        """Draw a law of up to twelve strata, each of 60 rows or more in expectation."""
        whole = Law.random(rng)
        most = min(whole.n // 60, 12)
        count = int(rng.integers(1, most + 1))
        shares = 60 / whole.n + (1 - 60 * count / whole.n) * rng.dirichlet(np.ones(count))
        apart = rng.uniform(0, 0.8)  # what strata differ in, of what scores can differ
        flat_law = rng.random() < 0.3
        parts = []
        warps = []
        for _ in range(count):
            warp = partial(betaincinv, log_uniform(rng, 0.5, 2), log_uniform(rng, 0.5, 2))
            _, curve = flat(rng) if flat_law else CURVES[rng.integers(len(CURVES))](rng)
            shape = Law._scaled(Law._along(whole.attribute, curve, by_rank=rng.random() < 0.5))
            shift = apart * rng.uniform(-1, 1)
            mixed = partial(mixed_curve, shape, warp, 1 - apart, shift)
            parts.append(replace(whole, shape=mixed))
            warps.append(warp)
        return cls(whole, shares, tuple(parts), tuple(warps), bool(rng.random() < 0.5))

    def sample(self, rng: Random) -> tuple[Sample, Array]:
        """Draw scores, S, the weights or clusters, and the stratum of each row."""
        v, noise, options = self.whole.rows(rng)
        strata = rng.choice(len(self.shares), len(v), p=self.shares)
        if self.alike and "groups" in options:
            strata = strata[options["groups"]]
        f = np.empty(len(v))
        u = np.empty(len(v))
        for number, (part, warp) in enumerate(zip(self.parts, self.warps)):
            rows = strata == number
            f[rows] = part.scored(v[rows], noise[rows])
            u[rows] = warp(v[rows])
        s = self.whole.attribute.value(u)
        if np.ptp(s) == 0:
            return self.sample(rng)
        return (f, s, options), strata

    def gap(self, resolutions: Any = 0.0) -> float:
        """Return the gap within strata, at a resolution of each."""
        each = np.broadcast_to(resolutions, len(self.parts))
        gaps = [part.gap(resolution) for part, resolution in zip(self.parts, each)]
        return float(self.shares @ gaps)

    def whole_gap(self, resolution: float) -> float:
        """Return the gap of all people: means over 4,000 ranges of S of equal mass."""
        v = middles(20_000)
        values = np.concatenate([self.whole.attribute.value(warp(v)) for warp in self.warps])
        means = np.concatenate([part.mean(v) for part in self.parts])
        mass = np.repeat(self.shares / len(v), len(v))
        _, level = np.unique(values, return_inverse=True)
        total = np.bincount(level, mass)
        mean = np.bincount(level, mass * means) / total
        places = np.searchsorted(np.cumsum(total), middles(GRID) * total.sum())
        grid = mean[np.minimum(places, len(mean) - 1)]
        if len(total) > 1_000:  # neighbouring values belong to single strata
            grid = np.repeat(grid.reshape(4_000, -1).mean(axis=1), GRID // 4_000)
        return gap_of(grid, resolution)

    @property
    def ingredients(self) -> Record:
        """What the law is made of, in words."""
        return {
            **self.whole.ingredients,
            "curve": "flat" if self.gap() < FLAT else "not flat",
            "strata": up_to(len(self.parts), 1, 4, 12),
        }


def mixed_curve(shape: Curve, warp: Curve, share: float, shift: float, v: Array) -> Array:
    """Return a curve along S, as a function of the rank in a stratum, with the stratum's shift."""
    return share * shape(warp(v)) + shift


# --- what is measured on a law


def within_strata(law: StratifiedLaw, rng: Random, number: int) -> Record:
    """Return the interval of the gap within strata, and that of its difference from the gap of all
    people.
    """
    (f, s, options), strata = law.sample(rng)
    start = time.process_time()
    rows = Rows(
        f[:, None],
        s[:, None],
        f,
        weights=options.get("sample_weight"),
        groups=options.get("groups"),
        strata=strata,
        controls=Strata.fit(strata.astype(str), least=1),
    )
    settings = Settings(resamples=RESAMPLES, seed=number)
    population = gaps_and_curves(rows, settings)
    seconds = time.process_time() - start
    within = population.within["gdp"]
    change = population.within.differences[0]
    checked = rows.score_rows(f[:, None])
    column = column_gap(checked, checked.scores[:, 0])
    shares = np.zeros(len(law.parts))
    shares[np.unique(strata)] = column.windows.shares
    truth = law.gap(shares)
    other = law.whole_gap(float(population["gdp"].settings["resolution"]))
    return {
        "gap": law.gap(),
        "gap_at": truth,
        "resolution": float(within.settings["resolution"]),
        "value": within.value,
        "low": within.interval.low,
        "high": within.interval.high,
        "error": within.standard_error,
        "pvalue": within.pvalue,
        "difference": truth - other,
        "difference_low": change.interval.low,
        "difference_high": change.interval.high,
        "seconds": seconds,
    }


def without_resolution(truth: float, interval: Any) -> Record:
    """Return an interval of a quantity that is the same at every resolution."""
    low, high = interval
    return {"gap": truth, "gap_at": truth, "low": low, "high": high}


def quantity(one: Record, name: str, truth: str = "") -> Record:
    """Return the interval of another quantity in place of that of the gap."""
    ends = one[f"{name}_low"], one[f"{name}_high"]
    return without_resolution(one[truth or name], ends)


def interval_of(
    measure: Callable[..., Any],
    truth: Callable[[Law, float], float],
    law: Law,
    rng: Random,
    number: int,
) -> Record:
    """Return the interval of a gap beside the gap and the gap at its resolution."""
    f, s, options = law.sample(rng) if measure is gdp else varied_sample(law, rng)
    start = time.process_time()
    result = measure(f, s, resamples=RESAMPLES, random_state=number, **options)
    seconds = time.process_time() - start
    return {
        "gap": truth(law, 0.0),
        "resolution": result.resolution,
        "gap_at": truth(law, result.resolution),
        "value": result.value,
        "low": result.interval[0],
        "high": result.interval[1],
        "error": result.standard_error,
        "pvalue": result.pvalue,
        "seconds": seconds,
    }


def varied_sample(law: Law, rng: Random) -> Sample:
    """Draw a sample whose scores are not all equal: a measure in their standard deviations has no
    value there, and says so.
    """
    while True:
        f, s, options = law.sample(rng)
        if np.ptp(f) > 0:
            return f, s, options


def standardized_gap(law: Law, resolution: float) -> float:
    return law.gap(resolution) / math.sqrt(law.variance)


def explained_share(law: Law, rng: Random, number: int) -> Record:
    """Return the interval of the share of variance that S explains, of independent rows."""
    f, s, options = varied_sample(law, rng)
    result = correlation_ratio(f, s, **options)
    share = float(law.means.var()) / law.variance
    return {**without_resolution(share, result.interval), "stated": result.trusted}


def band(law: Law, rng: Random, number: int) -> Record:
    """Return by how much the band lies above and below the means of all groups, at the closest."""
    f, s, options = law.sample(rng)
    curve = gdp_curve(f, s, **options)
    values = law.attribute.value(middles(GRID))
    first = np.searchsorted(values, curve.start)
    last = np.searchsorted(values, curve.end, side="right")
    truths = [law.means[a : max(b, a + 1)].mean() for a, b in zip(first, last)]
    low = float((curve.lower - truths).max())
    high = float((curve.upper - truths).min())
    return without_resolution(0.0, (low, high))


@dataclass(frozen=True)
class NormalPair:
    """Two normals of a correlation, and the bandwidths of the kernels of their HSIC."""

    correlation: float
    bandwidths: tuple[float, float]
    n: int

    @classmethod
    def random(cls, rng: Random) -> NormalPair:
        n = round(log_uniform(rng, 60, 2_000))
        correlation = rng.choice([0.0, 1.0], p=[0.25, 0.75]) * rng.uniform(0, 0.9)
        return cls(correlation, (log_uniform(rng, 0.3, 3), log_uniform(rng, 0.3, 3)), n)

    @property
    def hsic(self) -> float:
        """HSIC. For a pair of differences with covariance C, E exp(-δ'Dδ / 2) is the inverse root
        of the determinant of I + CD; D has the inverse squares of the bandwidths.
        """
        a, b = (1 / width**2 for width in self.bandwidths)
        shared = (2 * self.correlation, self.correlation, 0.0)
        terms = [((1 + 2 * a) * (1 + 2 * b) - c**2 * a * b) ** -0.5 for c in shared]
        return terms[0] - 2 * terms[1] + terms[2]

    @property
    def ingredients(self) -> Record:
        within = f"correlation {up_to(self.correlation, 0.3, 0.6, 0.9)}"
        return {
            "curve": "flat" if self.correlation == 0 else within,
            "weights": "none",
            "narrower kernel": "below 1" if min(self.bandwidths) < 1 else "from 1",
            "rows": self.n,
        }


def hsic_of(law: NormalPair, rng: Random, number: int) -> Record:
    """Return the interval of HSIC."""
    z, noise = rng.standard_normal((2, law.n))
    s = law.correlation * z + math.sqrt(1 - law.correlation**2) * noise
    result = hsic_interval(z, s, *map(Gaussian, law.bandwidths))
    return without_resolution(law.hsic, result.interval)


def audit_of_gaps(f: Array, s: Array, options: dict[str, Array]) -> Audit:
    """Return an audit with the gap along each column of S; other numbers take longer and are not
    counted here.
    """
    rows = Rows(
        f[:, None], s, f, weights=options.get("sample_weight"), groups=options.get("groups")
    )
    attributes = []
    for i in range(s.shape[1]):
        population = gaps_and_curves(rows.select_attribute(i), Settings())
        law = rows.law(s[:, i])
        attributes.append(AttributeAudit(f"s{i}", Histogram((), ()), law, population))
    span = float(f.min()), float(f.max())
    subject = Subject("score", score_name="score", span=span, law=rows.law(f))
    counts = RowCounts(rows.count, 0, rows.count, rows.count, rows.count)
    return finish_audit(Audit(subject, counts, tuple(attributes)), ())


def change_between(before: Sample, after: Sample) -> Record:
    """Return what an audit says of the change of the gap since an earlier one."""
    old, new = (audit_of_gaps(f, s[:, None], options) for f, s, options in (before, after))
    change = next(one for one in drift(new, old) if one.key == "gdp")
    return {
        "before": change.before,
        "after": change.after,
        "low": change.interval.low,
        "high": change.interval.high,
        "pvalue": change.pvalue,
        "called": change.significant,
    }


def no_drift(law: Law, rng: Random, number: int) -> Record:
    """Compare two samples of one law, of as many rows or of fewer."""
    later = law
    kept = law.n
    if rng.random() < 0.5:
        kept = max(round(law.n * rng.uniform(1 / 3, 1)), 60)
        design = tuple(None if part is None else part[:kept] for part in law.design)
        later = replace(law, n=kept, design=design)
    more = {"later rows": "as many" if kept == law.n else "fewer"}
    return {**more, **change_between(law.sample(rng), later.sample(rng))}


def split_of(law: Law, rng: Random, number: int) -> Record:
    """Return the parts of a change of the gap: nothing changed, or who came, or the curve, which
    is flatter, steeper, reversed or another one.
    """
    changed = str(rng.choice(["nothing", "people", "curve"]))
    warp: Curve = np.asarray
    later = law
    if changed == "people":
        warp = partial(betaincinv, log_uniform(rng, 0.4, 2.5), log_uniform(rng, 0.4, 2.5))
    if changed == "curve":
        factor = rng.choice([0.0, 0.5, 2.0, -1.0])
        shape = law.shape
        later = replace(law, shape=lambda u: np.clip(factor * shape(u), -1, 1))
    return {"changed": changed, **parts_between(law, later, warp, rng)}


def parts_between(law: Law, later: Law, warp: Curve, rng: Random) -> Record:
    """Return what an audit says of the parts of a change since an earlier one."""
    audits = []
    for one, moved in ((law, np.asarray), (later, warp)):
        s = np.zeros(1)
        while np.ptp(s) == 0:
            v, noise, options = one.rows(rng)
            u = moved(v)
            s = law.attribute.value(u)
        audits.append(audit_of_gaps(one.scored(u, noise), s[:, None], options))
    u = warp(middles(GRID))
    gaps = [law.gap(), gap_of(law.mean(u), 0.0), gap_of(later.mean(u), 0.0)]
    truths = {"people": gaps[1] - gaps[0], "curve": gaps[2] - gaps[1]}
    record: Record = {}
    for change in drift(audits[1], audits[0]):
        if change.key in ("people", "curve", "shape"):
            record[f"{change.key}_called"] = change.significant
        if change.key in truths:
            record[f"{change.key}_part"] = truths[change.key]
            record[f"{change.key}_low"], record[f"{change.key}_high"] = change.interval
    return record


def split_steady(law: Law, rng: Random, number: int) -> Record:
    """Return the parts of a change where the curve is doubled, or the middle half of the people
    come.
    """
    if rng.random() < 0.5:
        later = replace(law, strength=2 * law.strength)
        return {"changed": "curve", **parts_between(law, later, np.asarray, rng)}
    record = parts_between(law, law, lambda u: 0.25 + u / 2, rng)
    return {"changed": "people", **record}


def steady_law(rng: Random) -> Law:
    """Draw a law of 5,000 independent rows whose scores are probabilities and whose gap is .0147,
    along a curve of up to two waves or with jumps.
    """
    while True:
        law = Law.random(rng).without(weights=True, clusters=True)
        mean = rng.uniform(0.15, 0.5)
        scores = beta_scores_of(mean, mean * (1 - mean) / STEADY_SPREAD**2 - 1)
        law = replace(law, scores=scores, n=5_000, strength=1e-3)
        if law.curve in ("up to 2 waves", "jumps") and law.gap() > FLAT:
            law = replace(law, strength=1e-3 * 0.0147 / law.gap())
            if 2 * law.strength * scores.spread <= scores.room:
                return law


def probability_law(rng: Random) -> Law:
    """Draw a law of probabilities, without weights, of up to 5,000 rows."""
    while True:
        law = Law.random(rng).without(weights=True)
        if law.n <= 5_000:
            return replace(law, scores=beta_scores(rng))


def doubled(law: Law, rng: Random, number: int) -> Record:
    """Compare a sample with one of a law whose gap is twice as large."""
    later = replace(law, strength=2 * law.strength)
    return change_between(law.sample(rng), later.sample(rng))


def gap_change(gaps: Any, scores: Any, s: Array, labels: Array | None) -> Any:
    """Return the change of the gap from one score to another of the same rows."""
    terms = [gap_terms(f, s, labels) for f in scores]
    return difference("gdp", "s", *gaps, level=LEVEL, covariance=covariance(*terms, labels))


def paired(law: Law, rng: Random, number: int) -> Record:
    """Compare two scores of the same rows, the second with a smaller gap, the same or none."""
    kind = str(rng.choice(["smaller", "smaller", "same", "none"]))
    share = {"smaller": rng.random(), "same": 1.0, "none": 0.0}[kind]
    second = replace(law, strength=share * law.strength)
    u, noise, options = law.rows(rng)
    s = law.attribute.value(u)
    common = rng.random()
    other = math.sqrt(common) * noise + math.sqrt(1 - common) * rng.standard_normal(law.n)
    scores = law.scored(u, noise), second.scored(u, other)
    results = [gdp(f, s, resamples=RESAMPLES, random_state=number, **options) for f in scores]
    gaps = [gap_number("gdp", result) for result in results]
    change = gap_change(gaps, scores, s, options.get("groups"))
    resolution = results[0].resolution
    before, after = law.gap(resolution), second.gap(resolution)
    numbers = {"second gap": kind, **without_resolution(after - before, change.interval)}
    if change.reduction is not None and before > FLAT:
        numbers["reduction"] = 1 - after / before
        numbers["reduction_low"], numbers["reduction_high"] = change.reduction
    return numbers


def limit_at_truth(law: Law, rng: Random, number: int) -> Record:
    """Return the verdicts on limits that are the gap at the resolution, and the gap itself."""
    f, s, options = law.sample(rng)
    audit = audit_of_gaps(f, s[:, None], options)
    resolution = float(audit["s0"].all_rows["gdp"].settings["resolution"])
    numbers: Record = {"gap": law.gap(), "resolution": resolution, "gap_at": law.gap(resolution)}
    for name, limit in (("verdict", numbers["gap_at"]), ("verdict_itself", numbers["gap"])):
        # a limit of 0 is an aim
        numbers[name] = "none"
        if limit > FLAT:
            numbers[name] = check_limits(audit, parse_limits(limit, LIMITABLE))[0].verdict
    return numbers


def first_screen(law: Law, rng: Random, number: int) -> Record:
    """Return what the first screen says of a score with a smaller gap than an earlier one of the
    same rows, and whether each sentence is true; None where it is not said. The outcome follows the
    earlier score.
    """
    share = float(rng.choice([1.0, 0.5, 0.0, rng.random()]))
    second = replace(law, strength=share * law.strength)
    u, noise, options = law.rows(rng)
    s = law.attribute.value(u)
    f = law.scored(u, noise)
    y = (rng.random(law.n) < f) * 1.0
    if np.ptp(y) == 0:
        return {"says": {}}
    g = second.scored(u, noise)
    settings = Settings(fast=True, resamples=RESAMPLES, seed=number)
    before, after = (audit(scores, s, y, settings=settings, **options) for scores in (f, g))
    labels = options.get("groups")
    old, gap = (one["s"].all_rows["gdp"] for one in (before, after))
    change = gap_change((old, gap), (f, g), s, labels)
    resolution = float(gap.settings["resolution"])
    truth = second.gap(resolution)
    limit = truth * float(np.exp(rng.uniform(-0.5, 0.5)))
    limited = after
    if limit > FLAT:
        limited = replace(after, limits=check_limits(after, parse_limits(limit, LIMITABLE)))
    point = TradeOffPoint(0.0, (Gap(gap.value, *gap.interval),), chosen=True)
    threshold = after.subject.threshold
    moved = tuple(changes(f, g, y, threshold, LEVEL, labels))
    tradeoff = TradeOff(
        aim="score",
        condition=None,
        measure="log_loss",
        attributes=("s",),
        limits=(None,),
        shares=(0.5,),
        met=True,
        points=(replace(point, chosen=False), point),
        before=point,
        after=point,
        changes=(change,),
        stops=(Stop("", point, moved, {}),),
    )
    limited_report = Report(after, before=before, tradeoff=tradeoff)
    decided = second.scores.below(second.means, threshold)
    told = decision_gaps(limited_report)
    sentence = worst_sentence(Report(after), "s")
    reduction = 1 - truth / law.gap(resolution) if law.gap(resolution) > FLAT else 0.0
    return {
        "says": {
            "gap": {"says": gap.pvalue <= LEVEL, "true": law.gap() * share > FLAT},
            "limit": limit_claim(verdict(Report(limited)), truth, limit) if limit > FLAT else {},
            "aim": aim_claim(verdict(limited_report), reduction),
            "group": group_claim(sentence, after, law, second),
            "errors": errors_claim(sentence, after, law, second),
            "numbers": numbers_claim(law, rng, (u, noise, options)),
            "shrunk": shrunk_claim(rng, law, second, limited_report, (f, g, s, y, options)),
            "decisions": {
                "says": "points" in told and "not significant" not in told,
                "true": bool(np.ptp(decided) > FLAT),
            },
            **cost_claims(limited_report, law, second, threshold),
        }
    }


def shrunk_claim(rng: Random, law: Law, second: Law, report: Report, sample: Any) -> Record:
    """Return whether most of the reduction is said to come from a smaller spread of all scores,
    where the second scores are also moved towards their mean by a random share.
    """
    assert report.tradeoff is not None
    f, g, s, y, options = sample
    share = log_uniform(rng, 0.2, 1.0)
    moved = g.mean() + share * (g - g.mean())
    after = audit(moved, s, y, settings=Settings(fast=True, resamples=RESAMPLES), **options)
    old, gap = (one["s"].all_rows["gdp"] for one in (report.before, after))
    change = gap_change((old, gap), (f, moved), s, options.get("groups"))
    tradeoff = replace(report.tradeoff, changes=(change,))
    resolution = float(gap.settings["resolution"])
    gaps = share * second.gap(resolution) / max(law.gap(resolution), FLAT)
    spreads = share**2 * second.variance / law.variance
    said = shrinkage(replace(report, audit=after, tradeoff=tradeoff))
    return {"says": said != "", "true": spreads < gaps}


def limit_claim(head: Headline, truth: float, limit: float) -> Record:
    true = truth <= limit if head.kind == "kept" else truth > limit
    return {"says": head.kind in ("kept", "not kept"), "true": true}


def aim_claim(head: Headline, reduction: float) -> Record:
    """Return whether a target is said to be reached, so the gap is reduced, or to be missed."""
    starts = "Target reached", "Target missed"
    reduced, missed = (head.sentence.startswith(start) for start in starts)
    return {"says": reduced or missed, "true": reduction < 0.5 if missed else reduction > SLACK}


def numbers_claim(law: Law, rng: Random, sample: tuple[Array, Array, dict[str, Array]]) -> Record:
    """Return whether a group or a wide window is said to be scored wrongly where the outcome is a
    number whose spread depends on S and whose errors may be skewed; half of the time, the scores of
    a tenth of the people are wrong by ten standard errors of independent rows.
    """
    u, noise, options = sample
    spread, log_spread = SPREADS[rng.integers(len(SPREADS))]
    skewed = rng.random() < 0.5
    deviation = np.exp(log_spread(u))
    v = np.clip(ndtr(noise), 1e-12, 1 - 1e-12)
    errors = -np.log1p(-v) - 1 if skewed else ndtri(v)
    s = law.attribute.value(u)
    values = law.attribute.value(middles(GRID))
    first = rng.uniform(0, 0.9)
    low, high = (np.quantile(values, place) for place in (first, first + 0.1))
    size = 0.0
    if rng.random() < 0.5:
        inside = (s >= low) & (s <= high)
        error = math.sqrt(float((deviation**2 * inside).sum())) / max(inside.sum(), 1)
        size = float(rng.choice([-10.0, 10.0])) * error
    f = law.mean(u)
    score = f + size * ((s >= low) & (s <= high))
    settings = Settings(fast=True, resamples=20)  # bands need none
    found = audit(score, s, f + deviation * errors, settings=settings, **options)
    bias = size * ((values >= low) & (values <= high))
    sentence = worst_sentence(Report(found), "s")
    claims = (claim(sentence, found, law, bias) for claim in (named_group, named_window))
    said = [one for one in claims if one["says"]]
    return {
        "says": bool(said),
        "true": all(one["true"] for one in said),
        "wrong": size != 0 and law.clusters == "none",
        "spread": spread,
    }


def mean_between(law: Law, values: Array, start: float, end: float) -> float:
    """Return the mean of values on the grid over the people whose S lies in a range."""
    s = law.attribute.value(middles(GRID))
    first = np.searchsorted(s, start)
    last = max(np.searchsorted(s, end, side="right"), first + 1)
    return float(values[first:last].mean())


def named_group(sentence: str, after: Audit, law: Law, bias: Array) -> Record:
    """Return whether a group is said to be scored wrongly."""
    if "Largest significant error" not in sentence:
        return {"says": False, "true": True}
    curve = after["s"].all_rows.curves["gdp"]
    worst = sort_groups(after["s"], after)[0]
    error = mean_between(law, bias, curve.start[worst], curve.end[worst])
    low = "too low" in sentence[sentence.index("Largest significant error") :]
    return {"says": True, "true": error < -FLAT if low else error > FLAT}


def named_window(sentence: str, after: Audit, law: Law, bias: Array) -> Record:
    """Return whether errors are said to be of one sign in a wide window."""
    said = WINDOW.search(sentence)
    if said is None:
        return {"says": False, "true": True}
    curves = after["s"].all_rows.curves
    wide = curves.get(WINDOWS_KEY, curves["calibration_gdp"])
    apart = [i for i in wide.trusted_groups if not wide.low[i] <= 0 <= wide.high[i]]
    worst = max(apart, key=lambda i: abs(wide.mean[i]))
    error = mean_between(law, bias, wide.start[worst], wide.end[worst])
    return {"says": True, "true": error < -FLAT if said[1] == "low" else error > FLAT}


def group_claim(sentence: str, after: Audit, law: Law, second: Law) -> Record:
    """Return whether a group is said to be scored wrongly, or to be far from the average, beyond
    chance.
    """
    named = named_group(sentence, after, law, second.means - law.means)
    if named["says"]:
        return {**named, "wrong": True}
    curve = after["s"].all_rows.curves["gdp"]
    worst = sort_groups(after["s"], after)[0]
    distance = mean_between(law, second.means, curve.start[worst], curve.end[worst])
    distance -= float(second.means.mean())
    true = distance > FLAT if curve.mean[worst] > curve.overall else distance < -FLAT
    far = "Farthest" in sentence and "not significantly different" not in sentence
    return {"says": far, "wrong": False, "true": true}


def errors_claim(sentence: str, after: Audit, law: Law, second: Law) -> Record:
    """Return whether errors are said to vary with the attribute, and to be of one sign in a wide
    window.
    """
    bias = second.means - law.means
    window = named_window(sentence, after, law, bias)
    varies = "Errors vary" in sentence
    true = window["true"] and (not varies or bool(np.ptp(bias) > FLAT))
    return {"says": varies or window["says"], "true": true}


def cost_claims(report: Report, law: Law, second: Law, threshold: float) -> Record:
    """Return whether each cost is said to be better or worse, and whether it is: the performance of
    both scores on a grid of people and of their scores, each with and without the outcome.
    """
    u = middles(COST_GRID)
    v = golden_ranks(COST_GRID)
    f, g = (one.scores.score(one.mean(u), v) for one in (law, second))
    y = np.repeat([1.0, 0.0], COST_GRID)
    shares = np.append(f, 1 - f)
    was, now = (performance(np.tile(scores, 2), y, threshold, shares) for scores in (f, g))
    claims = {}
    for line in costs(report):
        if line.key in COSTS:
            gain = (now[line.key].value - was[line.key].value) * (1 if line.key in GAINS else -1)
            better = "(better)" in line.change
            said = better or "(worse)" in line.change
            claims[line.key] = {"says": said, "true": gain > 0 if better else gain < 0}
    return claims


def attributes_at_once(law: Law, rng: Random, number: int) -> Record:
    """Audit scores along 20 attributes, more or less correlated, none of which they follow."""
    f, _, options = law.sample(rng)
    labels = options.get("groups")
    common = rng.random()
    shared = rng.standard_normal(law.n)
    columns = []
    while len(columns) < ATTRIBUTES_AT_ONCE:
        own = rng.standard_normal(law.n)
        u = ndtr(math.sqrt(common) * shared + math.sqrt(1 - common) * own)
        if labels is not None and law.together:
            u = u[labels]
        column = ATTRIBUTES[rng.integers(len(ATTRIBUTES))](rng).value(u)
        if np.ptp(column) > 0:
            columns.append(column)
    audit = audit_of_gaps(f, np.column_stack(columns), options)
    gaps = [one.all_rows["gdp"] for one in audit.attributes]
    return {
        "pvalue": min(gap.pvalue for gap in gaps),
        "adjusted": min(gap.adjusted for gap in gaps),
    }


# --- what a count says


def above(one: Record) -> bool:
    """Whether the gap at the stated resolution is above the upper end."""
    return not one["gap_at"] <= one["high"] + 1e-4 * abs(one["high"]) + SLACK


def below(one: Record) -> bool:
    """Whether the gap is below the lower end."""
    return not one["gap"] >= one["low"] - 1e-4 * abs(one["low"]) - SLACK


def covers(one: Record) -> bool:
    return not above(one) and not below(one)


def holds_itself(one: Record) -> bool:
    """Whether the gap itself is in the interval."""
    return covers({**one, "gap_at": one["gap"]})


def contradicts(one: Record) -> bool:
    """Whether the interval excludes 0 and the test does not, or the other way round."""
    return (one["low"] > 0) != (one["pvalue"] <= LEVEL)


def says(one: Record, kind: str) -> bool:
    """Whether the first screen says something definite of a kind."""
    return bool(one["says"].get(kind, {}).get("says", False))


def says_falsely(one: Record, kind: str) -> bool:
    """Whether it says so, and it is not true."""
    return says(one, kind) and not one["says"][kind]["true"]


def group_is_called(one: Record) -> bool:
    """Whether a group is said to be scored wrongly."""
    return says(one, "group") and one["says"]["group"]["wrong"]


def everything(one: Record) -> bool:
    return True


def is_flat(one: Record) -> bool:
    return one["curve"] == "flat"


def is_stated(one: Record) -> bool:
    return one.get("stated", True)


def has_reduction(one: Record) -> bool:
    """Whether a reduction is stated, of a gap that is not 0."""
    return "reduction" in one


def is_smooth(one: Record) -> bool:
    """Whether the curve is smooth and there are no weights: the laws on which widths are compared
    between counts.
    """
    return one["curve"] in ("flat", "up to 2 waves") and one["weights"] == "none"


@dataclass(frozen=True)
class Rate:
    """How often something happens on some of the laws, with what is allowed: at least a share of
    all, or at most a share and two Monte Carlo errors, also in each ingredient.

    A law on which the measure raised has whatever is an error.
    """

    name: str
    event: Callable[[Record], bool]
    among: Callable[[Record], bool] = everything
    least: float | None = None
    most: float | None = None

    def chosen(self, records: list[Record]) -> list[Record]:
        return [one for one in records if "failed" in one or self.among(one)]

    def share(self, records: list[Record]) -> float:
        """Return the share of the chosen laws on which it happens."""
        chosen = self.chosen(records)
        wrong = self.most is not None
        events = [wrong if "failed" in one else self.event(one) for one in chosen]
        return sum(events) / len(events) if events else math.nan

    def misses(self, records: list[Record], enough: int) -> Iterator[str]:
        """Yield where more errors happen than are allowed, or less than is required."""
        if self.least is not None and not self.share(records) >= self.least:
            yield f"{self.name} {shown(self.share(records))}, less than {shown(self.least)}"
        if self.most is None:
            return
        for name, some in parts(records):
            draws = len(self.chosen(some))
            allowed = self.most + 2 * math.sqrt(self.most * (1 - self.most) / max(draws, 1))
            if (draws >= enough or name == "all") and self.share(some) > allowed:
                share = shown(self.share(some))
                yield f"{name}: {self.name} in {share} of {draws}, more than {shown(allowed)}"


@dataclass(frozen=True)
class Claim:
    """A claim about random laws: what is measured on each, and what is counted."""

    measured: Callable[[Any, Random, int], Record]
    rates: tuple[Rate, ...]
    law: Callable[[Random], Any] = Law.random


INTERVAL = (
    Rate("covers", covers, is_stated, least=0.94),
    Rate("holds the gap itself", holds_itself, is_stated),
    Rate("truth above", above, is_stated, most=LEVEL),
    Rate("truth below", below, is_stated),
    Rate("flat laws excluded", below, lambda one: is_stated(one) and is_flat(one), most=LEVEL),
)
TESTED = (Rate("contradicts its p-value", contradicts, most=0.0), *INTERVAL)
DIFFERENCE = (
    Rate("difference covered", lambda one: covers(quantity(one, "difference")), least=0.94),
    Rate("difference above", lambda one: above(quantity(one, "difference")), most=LEVEL),
    Rate("difference below", lambda one: below(quantity(one, "difference")), most=LEVEL),
)


def part_covered(part: str, one: Record) -> bool:
    """Whether the interval of a part of a change holds it."""
    return covers(quantity(one, part, f"{part}_part"))


def has_changed(*parts: str) -> Callable[[Record], bool]:
    return lambda one: one["changed"] in parts


SPLIT = (
    Rate("part by who came covered", partial(part_covered, "people"), least=0.94),
    Rate("part by the curve covered", partial(part_covered, "curve"), least=0.94),
    Rate(
        "who came called, unchanged",
        itemgetter("people_called"),
        has_changed("nothing", "curve"),
        most=LEVEL,
    ),
    Rate(
        "part by the curve called, unchanged",
        itemgetter("curve_called"),
        has_changed("nothing", "people"),
        most=LEVEL,
    ),
    Rate(
        "curve called, unchanged",
        itemgetter("shape_called"),
        has_changed("nothing", "people"),
        most=LEVEL,
    ),
    Rate("who came called, changed", itemgetter("people_called"), has_changed("people")),
    Rate("part by the curve called, changed", itemgetter("curve_called"), has_changed("curve")),
    Rate("curve called, changed", itemgetter("shape_called"), has_changed("curve")),
)


def said_rates(kind: str, name: str, falsely: str = " falsely") -> tuple[Rate, Rate]:
    """Return how often something is said, and how often falsely."""
    return (
        Rate(name, partial(says, kind=kind)),
        Rate(name + falsely, partial(says_falsely, kind=kind), most=LEVEL),
    )


CLAIMS = {
    "gdp": Claim(partial(interval_of, gdp, Law.gap), TESTED),
    "standardized_gdp": Claim(partial(interval_of, standardized_gdp, standardized_gap), TESTED),
    "rank_gap": Claim(partial(interval_of, rank_gap, Law.rank_gap), TESTED),
    "correlation_ratio": Claim(
        explained_share, INTERVAL, lambda rng: Law.random(rng).without(clusters=True)
    ),
    "band": Claim(band, INTERVAL),
    "within": Claim(within_strata, (*TESTED, *DIFFERENCE), StratifiedLaw.random),
    "hsic": Claim(hsic_of, INTERVAL, NormalPair.random),
    "drift": Claim(no_drift, (Rate("change called", lambda one: one["called"], most=LEVEL),)),
    "doubled": Claim(
        doubled, (Rate("change called", lambda one: one["called"], least=0.8),), steady_law
    ),
    "split": Claim(split_of, SPLIT),
    "split_steady": Claim(split_steady, SPLIT, steady_law),
    "paired": Claim(
        paired,
        (
            Rate("difference covered", covers, least=0.94),
            Rate("difference above", above, most=LEVEL),
            Rate("difference below", below, most=LEVEL),
            Rate(
                "reduction covered",
                lambda one: covers(quantity(one, "reduction")),
                has_reduction,
                least=0.94,
            ),
            Rate(
                "reduction overstated",
                lambda one: below(quantity(one, "reduction")),
                has_reduction,
                most=LEVEL,
            ),
        ),
        lambda rng: Law.random(rng).without(weights=True),
    ),
    "kept": Claim(
        limit_at_truth,
        (
            Rate(
                "kept, wrongly",
                lambda one: one["verdict"] == "kept",
                lambda one: one["verdict"] != "none",
                most=LEVEL,
            ),
            Rate(
                "kept, limit is the gap itself",
                lambda one: one["verdict_itself"] == "kept",
                lambda one: one["verdict_itself"] != "none",
            ),
        ),
    ),
    "sentences": Claim(
        first_screen,
        (
            *said_rates("gap", "moves", ", falsely"),
            *said_rates("limit", "limit judged"),
            *said_rates("aim", "aim judged"),
            Rate("group scored wrongly", group_is_called),
            Rate(
                "group scored wrongly, falsely",
                lambda one: group_is_called(one) and says_falsely(one, "group"),
                most=LEVEL,
            ),
            *said_rates("errors", "errors change", ", falsely"),
            *said_rates("shrunk", "shrinkage said", ", falsely"),
            *said_rates("decisions", "decisions move", ", falsely"),
            Rate("group far", lambda one: says(one, "group") and not group_is_called(one)),
            Rate(
                "group far, falsely",
                lambda one: says_falsely(one, "group") and not group_is_called(one),
                most=LEVEL,
            ),
            *said_rates("numbers", "numbers: group scored wrongly", ", falsely"),
            Rate(
                "numbers: wrong group named",
                partial(says, kind="numbers"),
                lambda one: one["says"].get("numbers", {}).get("wrong", False),
            ),
            *chain(*(said_rates(key, f"{name} judged") for key, name in COSTS.items())),
        ),
        probability_law,
    ),
    "attributes": Claim(
        attributes_at_once,
        (
            Rate("any of 20 significant", lambda one: one["adjusted"] <= LEVEL, most=LEVEL),
            Rate("before adjustment", lambda one: one["pvalue"] <= LEVEL),
        ),
        lambda rng: replace(Law.random(rng), strength=0.0),
    ),
}


def record(word: str, claim: str, number: int) -> Record:
    """Draw a law and a sample of it, and return what is said beside the truth."""
    rng = generator_of(word, number)
    law = CLAIMS[claim].law(rng)
    result: Record = {"commit": word[:SHORT], "law": number, **law.ingredients}
    try:
        numbers = CLAIMS[claim].measured(law, rng, number)
    except Exception as error:
        return {**result, "failed": repr(error)}
    if any(isinstance(value, float) and math.isnan(value) for value in numbers.values()):
        return {**result, "failed": f"not a number: {numbers}"}
    for name, value in numbers.items():
        result[name] = rounded(value) if isinstance(value, float) else value
    return result


def strength_of(one: Record) -> str:
    if is_flat(one):
        return "flat"
    return f"{up_to(one['strength'], 0.3, 1, 3)} standard deviations"


def rows_of(one: Record) -> str:
    return up_to(one["rows"], 250, 1_000, 5_000, 20_000)


def parts(records: list[Record]) -> Iterator[tuple[str, list[Record]]]:
    """Yield the name and the laws of all, and of each ingredient."""
    yield "all", records
    ingredients: dict[str, Callable[[Record], str]] = {}
    for name, value in max(records, key=len).items():
        named = name in ("commit", "failed") or name.startswith("verdict")
        if isinstance(value, str) and not named:
            ingredients[name] = partial(lambda one, key: one.get(key, "not known"), key=name)
    if "strength" in records[0]:
        ingredients["strength"] = strength_of
    ingredients["rows"] = rows_of
    for name, of in ingredients.items():
        for kind in sorted({of(one) for one in records}):
            yield f"{name}: {kind}", [one for one in records if of(one) == kind]


def shown(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.3f}".removeprefix("0")


def table(claim: Claim, records: list[Record]) -> str:
    """Return a Markdown table of how often things happen. The number of laws stands before rates
    that are of others than the rates before.
    """
    head = ["laws", "draws"]
    counted = {}
    draws = len(records)
    for rate in claim.rates:
        counted[rate.name] = len(rate.chosen(records)) != draws
        draws = len(rate.chosen(records))
        head += ["of", rate.name] if counted[rate.name] else [rate.name]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, some in parts(records):
        cells = [name, str(len(some))]
        for rate in claim.rates:
            if counted[rate.name]:
                cells.append(str(len(rate.chosen(some))))
            cells.append(shown(rate.share(some)))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def misses(claim: Claim, records: list[Record], enough: int = 200) -> list[str]:
    """Return what misses the criterion: rates in each ingredient with enough draws, and laws on
    which the measure raised.
    """
    lines = [line for rate in claim.rates for line in rate.misses(records, enough)]
    failed = [one for one in records if "failed" in one]
    return lines + [f"law {one['law']} raised {one['failed']}" for one in failed]


def page(claim: Claim, records: list[Record]) -> str:
    """Return the tables and the criterion of a count."""
    lines = [table(claim, records), ""]
    smooth = [one for one in records if is_smooth(one) and "high" in one]
    if smooth:
        widths = np.array([one["high"] - one["low"] for one in smooth])
        scaled = widths * np.sqrt([one["rows"] for one in smooth])
        lines.append(
            f"Smooth laws without weights: {len(widths)}, median width {np.median(widths):.4g},"
            f" times the root of rows {np.median(scaled):.4g}."
        )
    seconds = [one["seconds"] for one in records if "seconds" in one]
    if seconds:
        lines.append(
            f"Seconds of a call: median {np.median(seconds):.3f}, largest {max(seconds):.2f}."
        )
    return "\n".join(
        [*lines, "", "Misses:", *(f"- {one}" for one in misses(claim, records) or ["none"])]
    )


def read(path: Path) -> list[Record]:
    """Return the records of all counts of a claim, the last count last."""
    records: list[Record] = []
    finished_counts = path.with_name(f"{path.name}.gz")
    if finished_counts.exists():
        with gzip.open(finished_counts, "rt") as file:
            records += [json.loads(line) for line in file]
    if path.exists():
        records += [json.loads(line) for line in path.read_text().splitlines()]
    return records


def count_of(path: Path, commit: str | None = None) -> list[Record]:
    """Return the records of the count of a commit, or of the last one."""
    records = read(path)
    if commit is None and records:
        commit = records[-1]["commit"]
    chosen = [one for one in records if one["commit"] == (commit or "")[:SHORT]]
    return sorted(chosen, key=lambda one: one["law"])


def tested_commit() -> str:
    """Return the hash of the commit; raise if the sources are not those of the commit."""
    changed = subprocess.check_output(
        ["git", "status", "--porcelain", "--", "src", "benchmarks/laws.py"], cwd=ROOT, text=True
    )
    if changed:
        raise SystemExit(f"Commit first; these files differ from the commit:\n{changed}")
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()


def count(path: Path, word: str, claim: str, laws: int, jobs: int) -> None:
    """Append the records of laws that the file does not have."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {one["law"] for one in count_of(path, word)}
    rest = [number for number in range(laws) if number not in done]
    with path.open("a") as file, ProcessPoolExecutor(jobs) as pool:
        calls = map if jobs == 1 else pool.map
        for one in calls(partial(record, word, claim), rest):
            file.write(json.dumps(one) + "\n")
            file.flush()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", choices=list(CLAIMS), default="gdp", help="what is counted")
    parser.add_argument("--laws", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--commit", help="hash of the sources, where there is no repository")
    parser.add_argument("--trial", help="a word in place of the hash")
    parser.add_argument("--folder", type=Path, default=Path("."), help="of the file of a trial")
    parser.add_argument("--page", action="store_true", help="only print the tables of a count")
    options = parser.parse_args(arguments)
    path = (options.folder if options.trial else RESULTS) / f"{options.of}.jsonl"
    word = options.trial or options.commit
    if not options.page:
        word = word or tested_commit()
        count(path, word, options.of, options.laws, options.jobs)
    records = count_of(path, word)
    print(page(CLAIMS[options.of], records))
    if misses(CLAIMS[options.of], records):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
