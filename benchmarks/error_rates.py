"""Coverage of intervals and level of tests on laws whose truth is known.

    OMP_NUM_THREADS=1 python benchmarks/error_rates.py --rows 100 1000 --jobs 14 --seconds 540 --out
    FOLDER
    python benchmarks/error_rates.py --jobs 16 --draws-of-most 50   # every cell, to
                                                                    benchmarks/results
    python benchmarks/error_rates.py --draws 50 --law jump          # some laws, with fewer draws
    python benchmarks/error_rates.py --page                         # the tables of the results

Records go to `coverage.json` in the folder `--out`. A run goes on where that file ends, in rounds
of 25 draws for each cell. After `--seconds` it stops and keeps what is counted.
`error_rates.main(["--rows", "100", ...])` does the same. The last lines name the cells that miss
the criterion: an interval below its level by more than .02 and two Monte Carlo errors, a test above
its level by more than .01 and two. An interval is excused where the result says, in nine of ten
samples, that it is not to be trusted.

A cell is a law at a number of rows, with independent rows, with clusters (people with one value of
S and two rows, whose scores are equal with probability one half and otherwise drawn apart), or with
survey weights (rows are drawn with a density that the weights undo). A law is a mean score along
the ranks u of S and a kind of noise; `OTHERS` are laws for the measures and tests of dependence,
and for whole audits of scores that are independent of S.

The twelve laws of `ASIDE` were written down before the statistics were changed and were not used to
choose anything:

1. steps: a continuous S, five steps of the mean, normal noise
2. seven unequal levels of S with means in no order, 0/1 decisions
3. valley: the mean is |2u - 1|, Laplace noise whose spread grows with u
4. beta scores with mean expit(2u - 2)
5. counts: Poisson with mean exp(u)
6. flat mean, log-normal noise whose scale grows with u
7. flat mean, exponential noise whose scale falls with u
8. income heaped at two significant digits, the mean follows the rank
9. three rows in ten at one value of S, whose mean differs; a continuous rest
10. flat 0/1 decisions at a rate of 0.05
11. twenty equal levels of S, the last one higher
12. weak slope, Student's t noise with three degrees of freedom
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import expit, ndtri

from frhsic import audit
from frhsic.independence import (
    SequentialTest,
    gamma_test,
    hsic_interval,
    permutation_test,
)
from frhsic.kernels import Gaussian
from frhsic.parity import correlation_ratio, gdp_curve, rank_gap
from frhsic.parity.curve import local_mean
from frhsic.parity.gap import GapOptions, columns_of, largest_gap
from frhsic.parity.local_means import rows_of

OUT = Path(__file__).parent / "results"
ROWS = (100, 1_000, 10_000)
DESIGNS = ("rows", "clusters", "weights")
RESAMPLES = 99
LEVEL = 0.05
BLOCK = 25
"""Draws of a cell between two saves."""
DOUBT = "gdp, not trusted"
RATIO_DOUBT = "correlation_ratio, not trusted"
DOUBT_OF = {
    "gdp": DOUBT,
    "standardized_gdp": DOUBT,
    "bound of gdp": DOUBT,
    "correlation_ratio": RATIO_DOUBT,
}

Array = np.ndarray
Noise = Callable[[Array, Array, np.random.Generator], Array]
"""Scores with a given mean at given ranks of S."""
GRID = 400_000


def normal(size: float | Callable[[Array], Array]) -> Noise:
    return lambda mean, u, rng: (
        mean + (size(u) if callable(size) else size) * rng.standard_normal(len(u))
    )


def decisions(mean: Array, u: Array, rng: np.random.Generator) -> Array:
    return (rng.random(len(u)) < mean) * 1.0


def added(noise: Callable[[Array, np.random.Generator], Array]) -> Noise:
    return lambda mean, u, rng: mean + noise(u, rng)


def log_normal(sigma: float, scale: Callable[[Array], Array]) -> Noise:
    return added(
        lambda u, rng: (
            scale(u) * (np.exp(sigma * rng.standard_normal(len(u))) - np.exp(sigma**2 / 2))
        )
    )


def levels(
    shares: list[float], values: list[float]
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return the quantiles of an S with some levels, and a mean that has a value at each."""
    ends = np.cumsum(shares)[:-1] / np.sum(shares)

    def level(u: Array) -> Array:
        return np.searchsorted(ends, u, side="right").astype(np.float64)

    return level, lambda u: np.asarray(values)[level(u).astype(int)]


@dataclass(frozen=True)
class Law:
    """A law of S and of the score in terms of the ranks u of S."""

    name: str
    s: Callable[[Array], Array]
    mean: Callable[[Array], Array]
    noise: Noise
    independent: bool = False

    def draw(self, u: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        return self.noise(self.mean(u), u, rng), self.s(u)

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        u = (np.arange(GRID) + 0.5) / GRID
        return self.s(u), self.mean(u)

    @cached_property
    def gdp(self) -> float:
        mean = self.grid[1]
        return float(np.abs(mean - mean.mean()).mean())

    @cached_property
    def variance(self) -> float:
        u = (np.arange(GRID) + 0.5) / GRID
        return float(np.mean([self.draw(u, np.random.default_rng(i))[0].var() for i in range(10)]))


def same(u: Array) -> Array:
    return u


def flat(value: float) -> Callable[[Array], Array]:
    return lambda u: np.full_like(u, value)


def ages(u: Array) -> Array:
    return np.floor(18 + 60 * u**1.4)


def income(u: Array) -> Array:
    s = np.exp(10 + ndtri(u))
    unit = 10 ** (np.floor(np.log10(s)) - 1)
    return np.round(s / unit) * unit


def zeros_in(share: float, scale: float) -> Noise:
    """Scores that are 0 with some probability and otherwise log-normal, less their mean."""

    def noise(u: Array, rng: np.random.Generator) -> Array:
        values = scale * np.exp(rng.standard_normal(len(u)))
        return (rng.random(len(u)) >= share) * values - (1 - share) * scale * np.exp(0.5)

    return added(noise)


def gamma(shape: Callable[[Array], Array]) -> Noise:
    return added(lambda u, rng: (rng.standard_gamma(shape(u)) - shape(u)) / np.sqrt(shape(u)))


def beta(mean: Array, u: Array, rng: np.random.Generator) -> Array:
    return rng.beta(5 * mean, 5 * (1 - mean))


laplace = added(lambda u, rng: (0.2 + u) * rng.laplace(size=len(u)))
exponential = added(lambda u, rng: (1.2 - u) * (rng.exponential(size=len(u)) - 1))
SEVEN = levels([0.3, 0.25, 0.2, 0.1, 0.08, 0.05, 0.02], [0.1, 0.5, 0.2, 0.4, 0.3, 0.6, 0.05])
TWENTY = levels([1.0] * 20, [0.0] * 19 + [0.5])

ASIDE = (
    Law("steps", same, lambda u: np.floor(5 * u) / 5, normal(0.3)),
    Law("seven unequal levels, decisions", *SEVEN, decisions),
    Law("valley, Laplace", same, lambda u: np.abs(2 * u - 1), laplace),
    Law("beta scores", same, lambda u: expit(2 * u - 2), beta),
    Law("counts", same, np.exp, lambda mean, u, rng: rng.poisson(mean).astype(np.float64)),
    Law("flat, log-normal, scale grows", same, flat(0.0), log_normal(0.8, lambda u: 0.2 + u)),
    Law("flat, exponential, scale falls", same, flat(0.0), exponential),
    Law("heaped income", income, lambda u: 0.3 * u, normal(0.2)),
    Law(
        "thirty percent at one value",
        lambda u: np.maximum(u - 0.3, 0),
        lambda u: 0.3 * (u < 0.3),
        normal(0.5),
    ),
    Law("flat decisions, rate .05", same, flat(0.05), decisions, independent=True),
    Law("twenty levels, the last higher", *TWENTY, normal(0.4)),
    Law(
        "weak slope, Student's t",
        same,
        lambda u: 0.2 * u,
        added(lambda u, rng: rng.standard_t(3, len(u))),
    ),
)

TWELVE = levels([1.0] * 12, [0.1, -0.1] * 6)
SCHOOL = levels([1, 1, 2, 2, 3, 4, 5, 6, 30, 12, 8, 16, 10], [0.1] * 8 + [0.2] * 4 + [0.5])
TEN = levels([0.7**k for k in range(10)], [0.5, -0.5, 0.3, -0.2, 0.6, -0.6, 0.2, 0.4, -0.3, 0.1])
HUNDRED = np.exp(np.random.default_rng(1).uniform(-1.5, 1.5, 100))


def unequal(u: Array) -> Array:
    return HUNDRED[(100 * u).astype(int)]


def logistic(mean: Array, u: Array, rng: np.random.Generator) -> Array:
    return expit(-4 + 1.5 * rng.standard_normal(len(u)))


@cache
def logistic_mean() -> float:
    return float(logistic(np.zeros(GRID), np.zeros(10 * GRID), np.random.default_rng(0)).mean())


SMOOTH = (
    Law("slope", same, ndtri, normal(0.5)),
    Law("log-normal S", lambda u: np.exp(2 * ndtri(u)), lambda u: u, normal(0.2)),
    Law("square", same, lambda u: (2 * u - 1) ** 2, normal(0.3)),
    Law("weak slope", same, lambda u: 0.1 * u, normal(0.5)),
    Law("independent", same, flat(0.0), normal(1.0), independent=True),
    Law("flat, spread follows S", same, flat(0.0), normal(lambda u: 0.05 + u**2)),
    Law("ages", ages, lambda u: ages(u) / 100, normal(0.2)),
    Law("independent, ages", ages, flat(0.0), normal(1.0), independent=True),
    Law("three levels", lambda u: np.floor(3 * u), lambda u: np.floor(3 * u) * 0.1, normal(0.3)),
)
"""Laws on which the interval before these changes was valid."""

HARD = (
    Law(
        "flat, logistic of a normal",
        same,
        lambda u: np.full_like(u, logistic_mean()),
        logistic,
        independent=True,
    ),
    Law("flat, log-normal", same, flat(0.0), log_normal(1.0, flat(1.0)), independent=True),
    Law("flat, nine in ten zeros", same, flat(0.0), zeros_in(0.9, 1.0), independent=True),
    Law("flat decisions, rate .02", same, flat(0.02), decisions, independent=True),
    Law("flat, skewness grows", same, flat(0.0), gamma(lambda u: 4.0 * 16.0**-u)),
    Law("rate 0 below the median, .02 above", same, lambda u: 0.02 * (u > 0.5), decisions),
    Law("twelve alternating levels", *TWELVE, normal(0.3)),
    Law("schooling, jumps at 12 and 16", *SCHOOL, decisions),
    Law("ten unequal levels", *TEN, normal(0.5)),
    Law("jump at the ninetieth percentile", same, lambda u: (u > 0.9) * 1.0, normal(1.0)),
    Law("three waves", same, lambda u: np.sin(6 * np.pi * u), normal(0.5)),
    Law("sawtooth", same, lambda u: 3 * u % 1, normal(0.5)),
    Law("two waves", same, lambda u: 0.3 * np.sin(4 * np.pi * u), normal(0.5)),
    Law("thirty waves", same, lambda u: np.sin(60 * np.pi * u), normal(0.5)),
    Law(
        "92 % at one value of S",
        lambda u: np.maximum(u - 0.92, 0),
        lambda u: 0.1 + (u > 0.92) * (4 * u - 3.3),
        normal(0.2),
    ),
    Law("hundred levels, unequal spreads", lambda u: np.floor(100 * u), flat(0.0), normal(unequal)),
)
"""Laws on which intervals or tests before these changes failed."""


SETS = {"smooth": SMOOTH, "hard": HARD, "aside": ASIDE}
LAWS = {law.name: law for laws in SETS.values() for law in laws}


def sample(
    law: Law, n: int, design: str, rng: np.random.Generator
) -> tuple[Array, Array, dict[str, Array]]:
    """Draw scores, S, and the weights or clusters, again where S has one value in all rows."""
    options: dict[str, Array] = {}
    if design == "weights":  # density 1 / w, up to a factor, with w from 1/2 to 3/2
        u = 0.5 * 3 ** rng.random(n) - 0.5
        options = {"sample_weight": u + 0.5}
    elif design == "clusters":
        u = np.repeat(rng.random(n // 2), 2)
        options = {"groups": np.repeat(np.arange(n // 2), 2)}
    else:
        u = rng.random(n)
    f, s = law.draw(u, rng)
    if design == "clusters":
        f[1::2] = np.where(rng.random(n // 2) < 0.5, f[::2], f[1::2])
    return (f, s, options) if np.ptp(s) > 0 else sample(law, n, design, rng)


def outcomes(
    law: Law, n: int, design: str, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    """Return, for each measure, whether it erred and the width of its interval (NaN for a test)."""
    f, s, options = sample(law, n, design, rng)
    results: dict[str, tuple[float, float]] = {}

    def interval(name: str, ends: tuple[float, float], truth: float) -> None:
        results[name] = float(not ends[0] - 1e-9 <= truth <= ends[1] + 1e-9), ends[1] - ends[0]

    (column,) = columns_of(rows_of(f, s, None, options.get("sample_weight"), options.get("groups")))
    settings = GapOptions(1 - LEVEL, RESAMPLES, int(rng.integers(2**31)))
    gap = largest_gap([column], settings)
    interval("gdp", gap.interval, law.gdp)
    results["bound of gdp"] = float(gap.bound < law.gdp - 1e-9), gap.bound
    results[DOUBT] = float(not gap.trusted), math.nan
    if np.ptp(f) > 0:
        scaled = largest_gap(
            [column.standardized()], settings
        )  # with the same resamples, as in an audit
        interval("standardized_gdp", scaled.interval, law.gdp / math.sqrt(law.variance))
        if design != "clusters":
            share = law.grid[1].var() / law.variance
            ratio = correlation_ratio(f, s, **options)
            interval("correlation_ratio", ratio.interval, float(share))
            results[RATIO_DOUBT] = float(not ratio.trusted), math.nan
    curve = gdp_curve(f, s, **options)
    places, means = law.grid
    first, last = (
        np.searchsorted(places, curve.start),
        np.searchsorted(places, curve.end, side="right"),
    )
    truths = np.array([means[a : max(b, a + 1)].mean() for a, b in zip(first, last)])
    held = ((curve.lower - 1e-9 <= truths) & (truths <= curve.upper + 1e-9)).all()
    widths = (curve.upper - curve.lower)[np.isfinite(curve.upper)]
    results["gdp_curve, all groups"] = (
        float(not held),
        float(widths.mean()) if len(widths) else math.nan,
    )
    near = local_mean(f, s, float(np.median(s)), **options)
    a, b = np.searchsorted(places, near.start), np.searchsorted(places, near.end, side="right")
    interval("local_mean", near.interval, float(means[a : max(b, a + 1)].mean() - means.mean()))
    if law.gdp < 1e-12:
        results["gdp, test"] = float(gap.pvalue <= LEVEL), math.nan
    if law.independent and law in SMOOTH:
        ranks = rank_gap(f, s, resamples=RESAMPLES, **options)
        interval("rank_gap", ranks.interval, 0.0)
        results["rank_gap, test"] = float(ranks.pvalue <= LEVEL), math.nan
    return results


def normals(rho: float, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z, s = rng.standard_normal((2, n))
    return z, rho * z + math.sqrt(1 - rho**2) * s


def normal_hsic(rho: float) -> float:
    """HSIC of two normals of correlation ρ under Gaussian kernels of bandwidth one.

    For a pair of differences with covariance C, E exp(−|δ|²/2) = det(I + C)^(−1/2).
    """
    terms = [1 / math.sqrt(9 - c**2) for c in (2 * rho, rho, 0)]
    return terms[0] - 2 * terms[1] + terms[2]


def correlated(rho: float, n: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """The interval of HSIC, and the test that HSIC is above its true value, which is false."""
    (z, s), one, truth = normals(rho, n, rng), Gaussian(1.0), normal_hsic(rho)
    ends = hsic_interval(z, s, one, one, confidence=1 - LEVEL).interval
    results = {"hsic_interval": (float(not ends.low <= truth <= ends.high), ends.high - ends.low)}
    if rho:
        above = gamma_test(z, s, one, one, epsilon=truth).pvalue_epsilon
        results["gamma_test(epsilon=), test"] = float(above <= LEVEL), math.nan
    return results


def independent(
    s_of: Callable[[Array], Array], d: int, n: int, rng: np.random.Generator
) -> dict[str, tuple[float, float]]:
    z, s, seed = rng.standard_normal((n, d)), s_of(rng.standard_normal(n)), int(rng.integers(2**31))
    tests = {"gamma_test": gamma_test(z, s)}
    if n <= 100:
        tests["permutation_test"] = permutation_test(z, s, resamples=99, random_state=seed)
    return {
        f"{name}, test": (float(test.pvalue <= LEVEL), math.nan) for name, test in tests.items()
    }


def whole_audit(law: Law, n: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Claims of an audit that scores move with an S of which they are independent."""
    f, s = law.draw(rng.random(n), rng)
    measures = audit(f, s).attributes[0].all_rows
    curve, gap = measures.curves["gdp"], measures["gdp"]
    apart = any(not low <= curve.overall <= high for low, high in zip(curve.low, curve.high))
    return {
        "audit says that the score moves, test": (float(gap.deciding_pvalue <= LEVEL), math.nan),
        "audit says that a group is more than chance, test": (float(apart), math.nan),
    }


def stream(n: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """A look after each of n/20 batches of 20 independent rows, whose law drifts."""
    test = SequentialTest(resamples=99, random_state=int(rng.integers(2**31)))
    for batch in range(n // 20):
        test.update(rng.standard_normal(20) + 0.1 * batch, rng.lognormal(size=20))
    return {"SequentialTest, ever, test": (float(test.pvalue <= LEVEL), math.nan)}


OTHERS: dict[str, Callable[[int, np.random.Generator], dict[str, tuple[float, float]]]] = {
    **{f"normal, ρ = {rho:g}": partial(correlated, rho) for rho in (0.0, 0.2, 0.5)},
    "independent, one column": partial(independent, np.exp, 1),
    "independent, fifty columns": partial(independent, np.exp, 50),
    "independent, ties": partial(independent, lambda s: np.round(2 * s), 1),
    "independent stream": stream,
    **{
        f"audit: {law.name}": partial(whole_audit, law)
        for law in (*SMOOTH, *HARD)
        if law.independent
    },
}
MOST_ROWS = 1_000
"""Rows of the laws of `OTHERS`, whose measures cost more than n log n; audits have 100."""


def block(law: str, n: int, design: str, number: int) -> dict[str, list[float]]:
    """Return draws, errors, sum of widths and number of finite widths of each measure, over one
    block of draws.
    """
    torch.set_num_threads(1)
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0])
    for draw in range(BLOCK * number, BLOCK * (number + 1)):
        rng = np.random.default_rng([draw, n, DESIGNS.index(design), *law.encode()])
        try:
            results = OTHERS[law](n, rng) if law in OTHERS else outcomes(LAWS[law], n, design, rng)
        except Exception as error:
            raise RuntimeError(f"draw {draw} of {law}, {n} rows, {design}") from error
        for name, (error, width) in results.items():
            finite = math.isfinite(width)
            sums[name] = [
                a + b for a, b in zip(sums[name], (1, error, width if finite else 0, finite))
            ]
    return dict(sums)


def timed(
    job: tuple[str, int, str, int],
) -> tuple[tuple[str, int, str, int], dict[str, list[float]], float]:
    start = time.process_time()
    try:
        sums = block(*job)
    except RuntimeError:
        traceback.print_exc()
        sums = {}
    return job, sums, time.process_time() - start


def cells(sets: list[str], part: str, rows: list[int]) -> Iterator[tuple[str, int, str]]:
    """Yield law, rows and design of each cell, the longest first."""
    for n, design in product(sorted(rows, reverse=True), reversed(DESIGNS)):
        for name in sets:
            for law in OTHERS if name == "others" else [law.name for law in SETS[name]]:
                most = 10_000 if name != "others" else 100 if law.startswith("audit") else MOST_ROWS
                if part in law and n <= most and (name != "others" or design == "rows"):
                    yield law, n, design


def missed(records: list[dict[str, Any]]) -> list[str]:
    """Return the cells that miss the criterion."""
    shares = {
        (r["law"], r["rows"], r["design"], r["measure"]): r["errors"] / r["draws"] for r in records
    }
    lines = []
    for r in records:
        test = r["measure"].endswith("test")
        if r["measure"] in (DOUBT, RATIO_DOUBT):
            continue
        most = LEVEL + (0.01 if test else 0.02) + 2 * math.sqrt(LEVEL * (1 - LEVEL) / r["draws"])
        where = r["law"], r["rows"], r["design"]
        excused = shares.get((*where, DOUBT_OF.get(r["measure"])), 0) >= 0.9
        if r["errors"] / r["draws"] > most:
            share = f"{r['errors'] / r['draws']:.3f} > {most:.3f}"
            lines.append(
                f"{r['measure']}: {where[0]}, {where[1]:,} {where[2]}:"
                f" {share}{' (excused)' * excused}"
            )
    return lines


def tables(records: list[dict[str, Any]]) -> str:
    """Return a Markdown table for each measure: laws by rows and design."""
    lines = []
    for measure in dict.fromkeys(record["measure"] for record in records):
        chosen = {(r["law"], r["design"], r["rows"]): r for r in records if r["measure"] == measure}
        columns = [one for one in product(DESIGNS, ROWS) if any(key[1:] == one for key in chosen)]
        test = measure.endswith("test") or measure in (DOUBT, RATIO_DOUBT)
        what = "share of samples" if test else "share of intervals that hold the truth (mean width)"
        lines += [f"**{measure}**: {what}", ""]
        lines += ["| law | " + " | ".join(f"{design}, {n:,}" for design, n in columns) + " |"]
        lines += ["|---|" + "---|" * len(columns)]
        for law in dict.fromkeys(law for law, _, _ in chosen):
            lines.append(
                f"| {law} | "
                + " | ".join(text(chosen.get((law, *column)), test) for column in columns)
                + " |"
            )
        lines.append("")
    return "\n".join(lines)


def text(record: dict[str, Any] | None, test: bool) -> str:
    if record is None:
        return ""
    share = record["errors"] / record["draws"]
    shown = f"{share if test else 1 - share:.3f}".removeprefix("0")
    return f"{shown} ({record['width'] / record['widths']:.3g})" if record["widths"] else shown


def count(
    jobs: list[tuple[str, int, str, int]], processes: int, seconds: float
) -> Iterator[tuple[Any, ...]]:
    """Yield the results of jobs as they come, until the time is over."""
    end = time.monotonic() + seconds
    with multiprocessing.Pool(processes) as pool:  # ended with its processes on leaving
        results = pool.imap_unordered(timed, jobs)
        for _ in jobs:
            try:
                yield results.next(
                    max(end - time.monotonic(), 0) if math.isfinite(seconds) else None
                )
            except multiprocessing.TimeoutError:
                return


def save(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n ".join(json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text(f'{{"resamples": {RESAMPLES}, "level": {LEVEL}, "cells": [\n {lines}\n]}}\n')


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", choices=[*SETS, "others"], default=[*SETS, "others"])
    parser.add_argument("--law", default="", help="part of the names of the laws")
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument(
        "--draws", type=int, default=400, help="draws of a cell; whole audits have half of them"
    )
    parser.add_argument("--draws-of-most", type=int, help="draws at 10,000 rows, if fewer")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of coverage.json")
    parser.add_argument("--page", action="store_true", help="only print the tables of the records")
    options = parser.parse_args(arguments)
    path = options.out / "coverage.json"
    saved = json.loads(path.read_text())["cells"] if path.exists() else []
    records = {(r["law"], r["rows"], r["design"], r["measure"]): r for r in saved}
    finished: dict[tuple[Any, ...], int] = defaultdict(int)
    for key, record in records.items():
        finished[key[:3]] = max(finished[key[:3]], record["blocks"])
    jobs = []
    for number in range(0 if options.page else -(-options.draws // BLOCK)):
        for one in cells(options.sets, options.law, options.rows):
            most = (
                options.draws_of_most
                if one[1] == max(ROWS) and options.draws_of_most
                else options.draws
            )
            most = most // 2 if one[0].startswith("audit") else most
            if finished[one] <= number < -(-most // BLOCK):
                jobs.append((*one, number))
    last = time.monotonic()
    for (*one, number), sums, seconds in count(jobs, options.jobs, options.seconds):
        for name, (draws, errors, width, widths) in sums.items():
            record = records.setdefault(
                (*one, name),
                {
                    "measure": name,
                    "law": one[0],
                    "rows": one[1],
                    "design": one[2],
                    "blocks": 0,
                    "draws": 0,
                    "errors": 0,
                    "width": 0.0,
                    "widths": 0,
                    "seconds": 0.0,
                },
            )
            record["blocks"] = max(record["blocks"], number + 1)
            more = zip(
                ("draws", "errors", "width", "widths", "seconds"),
                (draws, errors, width, widths, seconds),
            )
            record.update({field: float(f"{record[field] + value:.6g}") for field, value in more})
        if time.monotonic() > last + 20:
            save(path, list(records.values()))
            last = time.monotonic()
    if jobs:
        save(path, list(records.values()))
    print(tables(list(records.values())))
    print(
        "Cells that miss the criterion:", *(missed(list(records.values())) or ["none"]), sep="\n- "
    )


if __name__ == "__main__":
    main()
