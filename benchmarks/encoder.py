"""What heads read of S from `ParityEncoder`: bounds on laws whose worst head is known, and leaks on
tables, measured on rows that the encoder has never seen.

    python benchmarks/encoder.py bound --fits 200 --jobs 16 --out bound.jsonl
    python benchmarks/encoder.py show bound.jsonl
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from frhsic import ParityEncoder
from frhsic.estimators.conditional import SensitiveBasis
from frhsic.estimators.prototypes import HeadsTest

# Fresh rows that stand for the population of a law.
POPULATION = 100_000

# Levels of S in which the worst head of a continuous law is computed.
LEVELS = 20


def smooth(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Six columns, three of which follow S along a line, a wave and a step."""
    s = rng.uniform(size=n)
    x = rng.normal(size=(n, 6))
    x[:, 0] += 2 * s
    x[:, 1] += np.sin(6 * s)
    x[:, 2] += 2 * (s > 0.7)
    odds = x[:, 0] + x[:, 3] + 0.5 * x[:, 1] * x[:, 4] - 1
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def levels(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """S has five levels of different size; two columns of counts and two numbers follow it."""
    s = rng.choice(5, size=n, p=[0.4, 0.25, 0.2, 0.1, 0.05]).astype(float)
    x = np.column_stack(
        [
            rng.poisson(1 + s),
            rng.poisson(2 + (s == 2), size=n),
            s + 2 * rng.normal(size=n),
            rng.normal(size=n),
        ]
    )
    odds = 0.4 * x[:, 0] - x[:, 3] - 0.5 * x[:, 1]
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def repeated(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Some hundred different rows, as in a table of categories."""
    s = rng.normal(size=n)
    x = np.column_stack(
        [
            rng.poisson(np.exp(0.4 * s)).clip(0, 4),
            rng.poisson(1, size=n).clip(0, 4),
            rng.uniform(size=n) < 1 / (1 + np.exp(-s)),
            rng.integers(3, size=n),
        ]
    ).astype(float)
    odds = 0.6 * x[:, 0] + 0.5 * x[:, 1] - x[:, 2] + 0.3 * x[:, 3] - 1
    return x, rng.uniform(size=n) < 1 / (1 + np.exp(-odds)), s


def independent(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nothing follows S."""
    x = rng.normal(size=(n, 5))
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-x[:, 0] - x[:, 1] * x[:, 2]))
    return x, y, rng.uniform(size=n)


LAWS = {law.__name__: law for law in (smooth, levels, repeated, independent)}


def worst_head(z: np.ndarray, s: np.ndarray) -> float:
    """Return the largest gap of a head of z with values in [0, 1], along levels of s.

    The gap is convex in the head, so that one with values 0 and 1 is the worst.
    """
    table = pd.crosstab(z, s, normalize=True).to_numpy()
    difference = table / table.sum(axis=0) - table.sum(axis=1, keepdims=True)
    mass = table.sum(axis=0)
    heads = np.array(list(product((0.0, 1.0), repeat=len(table) - 1)))
    return float((np.abs(heads @ difference[1:]) @ mass).max())


def bound(law: str, rows: int, seed: int, limit: Any) -> dict[str, Any]:
    """Fit an encoder, and compare its bound with what heads reach on the population."""
    rng = np.random.default_rng([seed, rows])
    x, y, s = LAWS[law](rows, rng)
    fresh_x, fresh_y, fresh_s = LAWS[law](POPULATION, rng)
    start = process_time()
    encoder = ParityEncoder(limit=limit, random_state=seed).fit(x, y, sensitive_features=s)
    seconds = process_time() - start
    gap = encoder.choice_.gaps["sensitive"]
    z = encoder.transform(fresh_x)[:, 0]
    cell = np.unique(z, return_inverse=True)[1]
    group = fresh_s
    if len(np.unique(fresh_s)) > LEVELS:
        group = (fresh_s.argsort().argsort() * LEVELS) // len(fresh_s)
    test = HeadsTest.of(cell, SensitiveBasis.fit(fresh_s)(fresh_s), np.ones(len(cell)))
    return {
        "law": law,
        "rows": rows,
        "seed": seed,
        "limit": limit,
        "estimate": gap.value,
        "upper end": gap.high,
        "bound": test.gap().value,
        "worst head": worst_head(cell, group),
        "prototypes": int(cell.max()) + 1,
        "auc": float(roc_auc_score(fresh_y, z)),
        "seconds": seconds,
    }


def _bound(job: tuple[str, int, int, Any]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bound(*job)


def show(records: list[dict[str, Any]]) -> str:
    """Return how often the upper end is above the worst head and above the bound."""
    frame = pd.DataFrame(records)
    frame["limit"] = frame["limit"].astype(str)
    frame["covers worst head"] = frame["upper end"] >= frame["worst head"]
    frame["covers bound"] = frame["upper end"] >= frame["bound"]
    frame["fits"] = 1
    means = frame.groupby(["law", "rows", "limit"]).agg(
        {
            "fits": "sum",
            "covers worst head": "mean",
            "covers bound": "mean",
            "estimate": "median",
            "upper end": "median",
            "bound": "median",
            "worst head": "median",
            "prototypes": "median",
            "auc": "mean",
            "seconds": "median",
        }
    )
    return means.round(4).to_string()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("bound")
    run.add_argument("--fits", type=int, default=200)
    run.add_argument("--rows", type=int, nargs="+", default=[1000, 5000])
    run.add_argument("--laws", nargs="+", default=[*LAWS])
    run.add_argument("--limits", nargs="+", default=["0"])
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--jobs", type=int, default=2)
    run.add_argument("--out", type=Path, required=True)
    shown = commands.add_parser("show")
    shown.add_argument("records", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "show":
        lines = arguments.records.read_text().splitlines()
        print(show([json.loads(line) for line in lines]))
        return
    limits = [text if text.endswith("%") else float(text) for text in arguments.limits]
    seeds = range(arguments.seed, arguments.seed + arguments.fits)
    jobs = list(product(arguments.laws, arguments.rows, seeds, limits))
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as out:
        for record in pool.map(_bound, jobs):
            out.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
