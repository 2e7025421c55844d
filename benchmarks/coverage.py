"""Coverage of the intervals, and level of the tests, on samples whose truth is known.

Each law draws ranks u of the attribute, the attribute S(u), and scores f with mean m(u). Truths are integrals over u.
The program prints a table of how often each interval contains the truth and how often each test rejects a true
hypothesis, and writes the numbers with the number of repeats to benchmarks/results/coverage.json.

    python benchmarks/coverage.py --rows 200 1000 5000 --repeats 1000 --workers 2

A measure is one entry of MEASURES: a function of the scores, the attribute, the law and the confidence that returns,
by name, whether an interval contains the truth (``"interval"``) or whether a test rejects (``"test"``).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from scipy.special import expit, ndtri

from frhsic.parity import correlation_ratio, gdp, gdp_curve, local_mean, quantile_gap, standardized_gdp

GRID = 400_000
OUT = Path(__file__).parent / "results" / "coverage.json"


@dataclass(frozen=True)
class Law:
    """A law of S and f in terms of the ranks u of S: quantiles of S, mean and noise of f (None: 0/1 decisions)."""

    name: str
    s: Callable[[np.ndarray], np.ndarray]
    mean: Callable[[np.ndarray], np.ndarray]
    noise: Callable[[np.ndarray], np.ndarray] | None

    def draw(self, n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        u = random.random(n)
        mean = self.mean(u)
        if self.noise is None:
            return (random.random(n) < mean).astype(np.float64), self.s(u)
        return mean + self.noise(u) * random.standard_normal(n), self.s(u)

    @cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray]:
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


def ages(u: np.ndarray) -> np.ndarray:
    return np.floor(18 + 60 * u**1.4)


def zeros(u: np.ndarray) -> np.ndarray:
    return np.where(u < 0.92, 0.0, np.exp(ndtri(np.clip((u - 0.92) / 0.08, 1e-9, 1 - 1e-9))))


def steady(size: float) -> Callable[[np.ndarray], np.ndarray]:
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


def parity(f: np.ndarray, s: np.ndarray, law: Law, confidence: float, resamples: int) -> dict[tuple[str, str], bool]:
    """Intervals of GDP, standardized GDP, the correlation ratio, the curve and a local mean; tests of GDP and law."""
    options = {"confidence": confidence, "resamples": resamples}
    scale = math.sqrt(law.variance)
    share = float(law.grid[1].var()) / law.variance
    gap = gdp(f, s, **options)
    standardized = standardized_gdp(f, s, **options) if np.ptp(f) > 0 else gap
    ratio = correlation_ratio(f, s, confidence=confidence) if np.ptp(f) > 0 else None
    curve = gdp_curve(f, s, confidence=confidence)
    near = local_mean(f, s, float(np.median(s)), confidence=confidence)
    truths = np.array([law.mean_between(a, b) for a, b in zip(curve.start, curve.end)])
    outcome = {
        ("gdp", "interval"): inside(gap.interval, law.gdp),
        ("standardized_gdp", "interval"): inside(standardized.interval, law.gdp / scale),
        ("gdp_curve, all groups", "interval"): bool(((curve.lower <= truths) & (truths <= curve.upper)).all()),
        ("local_mean", "interval"): inside(near.interval, law.mean_between(near.start, near.end) - law.grid[1].mean()),
    }
    if ratio is not None:
        outcome["correlation_ratio", "interval"] = inside(ratio.interval, share)
    if law.flat:
        outcome["gdp", "test"] = gap.pvalue <= 1 - confidence
    if law.independent:
        outcome["quantile_gap", "test"] = quantile_gap(f, s, permutations=99).pvalue <= 1 - confidence
    return outcome


MEASURES: dict[str, Callable[[np.ndarray, np.ndarray, Law, float, int], dict[tuple[str, str], bool]]] = {
    "parity": parity,
}


def inside(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] - 1e-9 <= truth <= interval[1] + 1e-9


def repeat(job: tuple[int, int, int, float, int, tuple[str, ...]]) -> dict[tuple[str, str], bool]:
    """Draw one sample and measure it."""
    torch.set_num_threads(1)
    index, n, number, confidence, resamples, names = job
    law = LAWS[index]
    f, s = law.draw(n, np.random.default_rng([n, number, index]))
    return {key: hit for name in names for key, hit in MEASURES[name](f, s, law, confidence, resamples).items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--confidence", type=float, nargs="+", default=[0.95, 0.99])
    parser.add_argument("--resamples", type=int, default=299)
    parser.add_argument("--measures", nargs="+", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument("--laws", type=int, nargs="+", default=list(range(len(LAWS))), help="numbers of the laws")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    records = []
    with ProcessPoolExecutor(options.workers) as pool:
        for n in options.rows:
            for confidence in options.confidence:
                for index in options.laws:
                    jobs = [
                        (index, n, number, confidence, options.resamples, tuple(options.measures))
                        for number in range(options.repeats)
                    ]
                    run = pool.map if options.workers > 1 else map
                    records += summary(index, n, confidence, list(run(repeat, jobs)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    settings = {"repeats": options.repeats, "resamples": options.resamples}
    options.out.write_text(json.dumps({**settings, "shares": records}, indent=1, ensure_ascii=False) + "\n")
    print(tables(records))


def summary(index: int, n: int, confidence: float, outcomes: list[dict[tuple[str, str], bool]]) -> list[dict]:
    return [
        {
            "measure": measure,
            "kind": kind,
            "law": LAWS[index].name,
            "rows": n,
            "confidence": confidence,
            "share": round(
                float(np.mean([outcome[measure, kind] for outcome in outcomes if (measure, kind) in outcome])), 4
            ),
            "repeats": sum((measure, kind) in outcome for outcome in outcomes),
        }
        for measure, kind in dict.fromkeys(key for outcome in outcomes for key in outcome)
    ]


def tables(records: list[dict]) -> str:
    """Return one Markdown table for each kind and measure: laws by rows and confidence."""
    lines = []
    for kind, measure in dict.fromkeys((r["kind"], r["measure"]) for r in records):
        chosen = [r for r in records if (r["kind"], r["measure"]) == (kind, measure)]
        columns = list(dict.fromkeys((r["confidence"], r["rows"]) for r in chosen))
        columns.sort()
        what = "share of intervals that contain the truth" if kind == "interval" else "share of samples rejected"
        lines += [f"**`{measure}`**: {what}", ""]
        repeats = {(r["confidence"], r["rows"]): r["repeats"] for r in chosen}
        names = [f"{c if kind == 'interval' else 1 - c:.2g}, n = {n:,}, {repeats[c, n]} repeats" for c, n in columns]
        lines += ["| law | " + " | ".join(names) + " |", "|---|" + "---|" * len(columns)]
        for law in dict.fromkeys(r["law"] for r in chosen):
            shares = {(r["confidence"], r["rows"]): r["share"] for r in chosen if r["law"] == law}
            cells = [f"{shares[c]:.3f}".lstrip("0") if c in shares else "" for c in columns]
            lines.append(f"| {law} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
