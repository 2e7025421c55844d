"""How often the gap of a served predictor exceeds its limit on new people, and how far it stays
below, where `confidence=0.95` keeps the limit.

    python benchmarks/promise.py --jobs 16       # 200 tables of 1,000 and of 3,000 rows by law
    python benchmarks/promise.py --tables 10     # fewer; what is there is not run again
    python benchmarks/promise.py --page          # the table of the records

X has finitely many cells and the law of X given the rank of S is known, so the gap of a predictor
in the population is a sum over cells and a fine grid of ranks: it has no error. The same trade-offs
are also chosen by the estimate alone, which promises nothing: about half of the populations should
then lie beyond the limit.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom, norm

from frhsic import ParityClassifier
from frhsic.estimators import UnmetLimitWarning

GRID = 1_000
ROWS = (1_000, 3_000)
MEANS = np.array([0.9, 0.1, 0.5, 0.0, 1.0])  # of the first column, on each fifth of the ranks
RECORDS = Path(__file__).parent / "results" / "promise.jsonl"

FIRST, SECOND = np.linspace(-1.5, 2.5, 40), np.linspace(-1.5, 1.5, 8)
CELLS = np.array([(a, b) for a in FIRST for b in SECOND])
"""Every value of X: the first column follows S, the second does not."""


@dataclass(frozen=True)
class Law:
    """A law of rank u, S, X and Y: `mean` of the first column along u, `intercept` and `slope` of
    the log-odds of Y.
    """

    mean: Callable[[np.ndarray], np.ndarray]
    limit: float
    intercept: float = -1.0
    slope: float = 2.0
    levels: tuple[float, ...] = ()

    def sensitive(self, u: np.ndarray) -> np.ndarray:
        """Return S: the levels by their shares, or an increasing function of the rank."""
        return (
            np.searchsorted(np.cumsum(self.levels)[:-1], u, side="right") * 1.0
            if self.levels
            else np.exp(2 * u)
        )

    def cells(self, u: np.ndarray) -> np.ndarray:
        """Return the probability of each cell of X at each rank, (n, cells)."""
        edges = np.r_[-np.inf, (FIRST[1:] + FIRST[:-1]) / 2, np.inf]
        first = np.diff(norm.cdf((edges - self.mean(u)[:, None]) / 0.4), axis=1)
        return np.repeat(first / len(SECOND), len(SECOND), axis=1)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y and S of n rows."""
        u = rng.uniform(size=n)
        cell = (self.cells(u).cumsum(axis=1) < rng.uniform(size=n)[:, None]).sum(axis=1)
        X = CELLS[np.minimum(cell, len(CELLS) - 1)]
        odds = self.intercept + self.slope * X[:, 0] + X[:, 1]
        return X, (rng.uniform(size=n) < expit(odds)).astype(int), self.sensitive(u)

    def gap(self, scores: np.ndarray) -> float:
        """Return the gap in the population of a score of each cell."""
        u = (np.arange(GRID) + 0.5) / GRID
        curve = self.cells(u) @ scores
        _, level = np.unique(self.sensitive(u), return_inverse=True)
        mean = np.bincount(level, curve) / np.bincount(level)
        return float(np.abs(mean[level] - curve.mean()).mean())


LAWS = {
    "linear": Law(lambda u: u, limit=0.06),
    "jump": Law(lambda u: 1.0 * (u > 0.6), limit=0.08),
    "discrete": Law(
        lambda u: MEANS[np.minimum(5 * u, 4).astype(int)], limit=0.06, levels=(0.2,) * 5
    ),
    "rare": Law(lambda u: u, limit=0.02, intercept=-4.0),
}


def record(name: str, rows: int, table: int) -> dict[str, Any]:
    """Return what one table promises and what its population has."""
    law = LAWS[name]
    X, y, s = law.draw(np.random.default_rng([table, len(name), rows]), rows)
    model = ParityClassifier(limit=law.limit, n_jobs=1, random_state=table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmetLimitWarning)
        model.fit(X, y, sensitive_features=s)
        by_estimate = model.set_params(confidence=None).at(law.limit)
    gap = model.choice_.gaps["sensitive"]
    return {
        "law": name,
        "rows": rows,
        "table": table,
        "limit": law.limit,
        "met": model.choice_.met,
        "rows_needed": model.choice_.rows_needed,
        "value": gap.value,
        "high": gap.high,
        "unconstrained": population_gap(law, model.at(None)),
        "gap": population_gap(law, model),
        "by_estimate": population_gap(law, by_estimate),
    }


def population_gap(law: Law, model: ParityClassifier) -> float:
    """Return the gap of a fitted model's scores in the population."""
    return law.gap(model.predict_proba(CELLS)[:, 1])


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return a table with a row for each law and number of rows."""
    lines = [
        (
            "| law | rows | limit | tables | limit kept | beyond it | most by chance | median gap |"
            " median distance below | probably kept | beyond it | by the estimate, beyond |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in dict.fromkeys((each["law"], each["rows"]) for each in records):
        own = [each for each in records if (each["law"], each["rows"]) == (name, rows)]
        kept = [each for each in own if each["met"]]
        probably = [each for each in own if each["rows_needed"] is not None]
        gap = np.median([each["gap"] for each in kept]) if kept else np.nan
        most = binom.ppf(0.975, len(kept), 0.05) if kept else 0
        estimate = np.mean([each["by_estimate"] > each["limit"] for each in own])
        lines.append(
            f"| {name} | {rows:,} | {own[0]['limit']:g} | {len(own)} | {len(kept)} |"
            f" {beyond(kept)} |"
            f" {most:g} | {gap:.4f} | {own[0]['limit'] - gap:.4f} | {len(probably)} |"
            f" {beyond(probably)} | {estimate:.2f} |"
        )
    return "\n".join(lines)


def beyond(records: Sequence[dict[str, Any]]) -> int:
    """Return how many predictors have a gap above their limit in the population."""
    return sum(each["gap"] > each["limit"] for each in records)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args(argv)
    records = (
        [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    )
    if not args.page:
        known = {(each["law"], each["rows"], each["table"]) for each in records}
        cells = [cell for cell in product(LAWS, ROWS, range(args.tables)) if cell not in known]
        with RECORDS.open("a") as file, ProcessPoolExecutor(args.jobs) as pool:
            for each in pool.map(record, *zip(*cells)):
                records.append(each)
                print(json.dumps(each), file=file, flush=True)
    print(page(sorted(records, key=lambda each: (list(LAWS).index(each["law"]), each["rows"]))))


if __name__ == "__main__":
    main()
