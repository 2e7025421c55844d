"""How often the gap of a served predictor exceeds its limit on new people, how far it stays below,
and what that costs, where `confidence=0.95` keeps the limit.

    python benchmarks/promise.py --jobs 16             # 200 tables by law, aim and number of rows
    python benchmarks/promise.py --jobs 16 --minutes 7 --records new.jsonl   # as many as fit
    python benchmarks/promise.py --tables 10 --aims decision --laws coarse --rows 1000
    python benchmarks/promise.py --laws equal --aims score --rows 1000   # with the same W
    python benchmarks/promise.py --page                # the tables of the records
    PYTHONPATH=OTHER/src python benchmarks/promise.py --records before.jsonl   # other sources

Records that the file already has are skipped. Tables go by number through all laws, aims and rows,
so that a run that is stopped has about equally many of each.

X has finitely many cells and the law of X given the rank of S is
known, so the gap and the loss of a predictor in the population are sums over cells and a fine grid
of ranks: they have no error. The same trade-offs are also chosen by the estimate alone, which
promises nothing: about half of the populations should then lie beyond the limit.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import binom, norm
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier
from frhsic.estimators import UnmetLimitWarning
from frhsic_paper.records import grouped

GRID = 1_000
ROWS = (500, 1_000, 3_000)
AIMS = ("score", "rank", "decision")
MEANS = np.array([0.9, 0.1, 0.5, 0.0, 1.0])  # of the first column, on each fifth of the ranks
DECILES = np.arange(1, 10) / 10
RECORDS = Path(__file__).parent / "results" / "promise.jsonl"

RANKS = (np.arange(GRID) + 0.5) / GRID


@dataclass(frozen=True, eq=False)
class Law:
    """A law of rank u, S, X and Y: `mean` of the first column along u, which the other columns do
    not follow; `intercept` and `slope` of the log-odds of Y; `limits` by aim; values of the first
    and of the second column.
    """

    mean: Callable[[np.ndarray], np.ndarray]
    limits: dict[str, float]
    intercept: float = -1.0
    slope: float = 2.0
    levels: tuple[float, ...] = ()
    first: tuple[float, float, int] = (-1.5, 2.5, 40)
    second: tuple[float, float, int] = (-1.5, 1.5, 8)

    @cached_property
    def cells(self) -> np.ndarray:
        """Every value of X."""
        values = np.linspace(*self.first), np.linspace(*self.second)
        return np.array([*product(*values)])

    def sensitive(self, u: np.ndarray) -> np.ndarray:
        """Return S: the levels by their shares, or an increasing function of the rank."""
        return (
            np.searchsorted(np.cumsum(self.levels)[:-1], u, side="right") * 1.0
            if self.levels
            else np.exp(2 * u)
        )

    def chances(self, u: np.ndarray) -> np.ndarray:
        """Return the probability of each cell of X at each rank, (n, cells)."""
        values = np.linspace(*self.first)
        edges = np.r_[-np.inf, (values[1:] + values[:-1]) / 2, np.inf]
        first = np.diff(norm.cdf((edges - self.mean(u)[:, None]) / 0.4), axis=1)
        count = self.second[2]
        return np.repeat(first / count, count, axis=1)

    @cached_property
    def population(self) -> np.ndarray:
        """The same on the grid of ranks."""
        return self.chances(RANKS)

    @cached_property
    def eta(self) -> np.ndarray:
        """P(Y = 1) in each cell."""
        return expit(self.intercept + self.slope * self.cells[:, 0] + self.cells[:, 1])

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return X, y and S of n rows."""
        u = rng.uniform(size=n)
        cell = (self.chances(u).cumsum(axis=1) < rng.uniform(size=n)[:, None]).sum(axis=1)
        cell = np.minimum(cell, len(self.cells) - 1)
        return (
            self.cells[cell],
            (rng.uniform(size=n) < self.eta[cell]).astype(int),
            self.sensitive(u),
        )

    def mean_gap(self, scores: np.ndarray) -> float:
        """Return the gap in the population of a score of each cell."""
        curve = self.population @ scores
        _, level = np.unique(self.sensitive(RANKS), return_inverse=True)
        mean = np.bincount(level, curve) / np.bincount(level)
        return float(np.abs(mean[level] - curve.mean()).mean())

    def gap(self, aim: str, scores: np.ndarray, threshold: float) -> float:
        """Return the gap in the population that an aim names, of a score of each cell."""
        if aim == "score":
            return self.mean_gap(scores)
        if aim == "decision":
            return self.mean_gap((scores > threshold) * 1.0)
        mass = self.population.mean(axis=0)
        deciles = np.quantile(scores, DECILES, method="inverted_cdf", weights=mass)
        return float(np.mean([self.mean_gap((scores > q) * 1.0) for q in deciles]))

    def loss(self, aim: str, scores: np.ndarray, threshold: float) -> float:
        """Return the loss in the population: log loss, one less AUC, or the error rate; the
        balanced one if decisions have another threshold than one half.
        """
        mass = self.population.mean(axis=0)
        ones = mass * self.eta
        zeros = mass * (1 - self.eta)
        if aim == "score":
            f = np.clip(scores, 1e-6, 1 - 1e-6)
            return float(-(ones @ np.log(f) + zeros @ np.log(1 - f)))
        if aim == "rank":
            order = np.argsort(scores)
            _, tie = np.unique(scores[order], return_inverse=True)
            below = np.bincount(tie, zeros[order])
            rank = (np.cumsum(below) - below / 2)[tie]
            return float(1 - ones[order] @ rank / (ones.sum() * zeros.sum()))
        taken = scores > threshold
        wrong = np.array([ones @ ~taken, zeros @ taken])
        if threshold == 0.5:
            return float(wrong.sum())
        return float((wrong / [ones.sum(), zeros.sum()]).mean())


@dataclass(frozen=True, eq=False)
class EqualLaw(Law):
    """A law with a control W of three values, which the rank shifts, and in each of which the first
    column follows the rank in another way; gaps are those among people with the same W.
    X has W, too.
    """

    turns: tuple[float, ...] = (1.0, -0.7, 0.3)

    @cached_property
    def cells(self) -> np.ndarray:
        values = np.linspace(*self.first), np.linspace(*self.second), range(len(self.turns))
        return np.array([*product(*values)])

    def shares(self, u: np.ndarray) -> np.ndarray:
        """Return the probability of each value of W at each rank, (n, strata)."""
        odds = np.exp(np.outer(u, np.arange(len(self.turns)) - 1.0))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def chances(self, u: np.ndarray) -> np.ndarray:
        values = np.linspace(*self.first)
        edges = np.r_[-np.inf, (values[1:] + values[:-1]) / 2, np.inf]
        parts = []
        for turn, share in zip(self.turns, self.shares(u).T):
            mean = 0.5 + turn * (self.mean(u) - 0.5)
            first = np.diff(norm.cdf((edges - mean[:, None]) / 0.4), axis=1)
            parts.append(first * share[:, None] / self.second[2])
        each = np.repeat(np.stack(parts, axis=2), self.second[2], axis=1)
        return np.asarray(each.reshape(len(u), -1))

    def mean_gap(self, scores: np.ndarray) -> float:
        strata = len(self.turns)
        joint = (self.population * scores).reshape(len(RANKS), -1, strata).sum(axis=1)
        _, level = np.unique(self.sensitive(RANKS), return_inverse=True)
        gap = 0.0
        for sums, share in zip(joint.T, self.shares(RANKS).T):
            mass = np.bincount(level, share) / len(RANKS)
            curve = np.bincount(level, sums) / len(RANKS) / mass
            gap += mass @ np.abs(curve - mass @ curve / mass.sum())
        return float(gap)


LAWS = {
    "equal": EqualLaw(
        lambda u: 2 * u - 0.5,
        {"score": 0.07, "rank": 0.08, "decision": 0.09},
        levels=(0.2,) * 5,
        first=(-1.5, 2.5, 20),
        second=(-1.5, 1.5, 6),
    ),
    "monotone": Law(
        lambda u: 1.5 * u - 0.25,
        {"score": 0.08, "rank": 0.09, "decision": 0.12},
        first=(-1.5, 2.5, 50),
        second=(-1.5, 1.5, 20),
    ),
    "u-shaped": Law(
        lambda u: 1.5 * np.abs(2 * u - 1) - 0.25,
        {"score": 0.08, "rank": 0.09, "decision": 0.12},
        first=(-1.5, 2.5, 50),
        second=(-1.5, 1.5, 20),
    ),
    "coarse": Law(
        lambda u: 1.5 * u - 0.25,
        {"score": 0.08, "rank": 0.09, "decision": 0.08},
        first=(-1.5, 2.5, 10),
        second=(-1.5, 1.5, 3),
    ),
    "linear": Law(lambda u: u, {"score": 0.06, "rank": 0.06, "decision": 0.08}),
    "jump": Law(lambda u: 1.0 * (u > 0.6), {"score": 0.08, "rank": 0.08, "decision": 0.1}),
    "discrete": Law(
        lambda u: MEANS[np.minimum(5 * u, 4).astype(int)],
        {"score": 0.06, "rank": 0.06, "decision": 0.08},
        levels=(0.2,) * 5,
    ),
    "rare": Law(lambda u: u, {"score": 0.02, "rank": 0.06, "decision": 0.08}, intercept=-4.0),
}
NEW = ("monotone", "u-shaped", "coarse")


def record(name: str, aim: Any, rows: int, table: int) -> dict[str, Any]:
    """Return what one table promises and what its population has."""
    law = LAWS[name]
    limit = law.limits[aim]
    X, y, s = law.draw(np.random.default_rng([table, len(name), rows]), rows)
    model = ParityClassifier(limit=limit, aim=aim, n_jobs=1, random_state=table)
    controls = None
    cells: Any = law.cells
    if isinstance(law, EqualLaw):  # with fast models that know which columns W turns
        controls = "w"
        X, cells = turned(X), turned(cells)
        quick = {"estimator": LogisticRegression(max_iter=1000), "attribute_estimator": Ridge()}
        model.set_params(cv=2, **quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnmetLimitWarning)
        model.fit(X, y, sensitive_features=s, control_features=controls)
        by_estimate = model.set_params(confidence=None).at(limit)
    gap = model.choice_.gaps["sensitive"]

    def population(model: ParityClassifier) -> tuple[float, float]:
        scores = model.predict_proba(cells)[:, 1]
        return (
            law.gap(aim, scores, model.threshold_),
            law.loss(aim, scores, model.threshold_),
        )

    served = population(model)
    free = population(model.at(None))
    return {
        "law": name,
        "aim": aim,
        "rows": rows,
        "table": table,
        "limit": limit,
        "met": model.choice_.met,
        "rows_needed": model.choice_.rows_needed,
        "value": gap.value,
        "high": gap.high,
        "unconstrained": free[0],
        "gap": served[0],
        "loss": served[1],
        "unconstrained_loss": free[1],
        "by_estimate": population(by_estimate)[0],
        "spread": spread(model, law) if controls is None else None,
    }


def turned(X: np.ndarray) -> pd.DataFrame:
    """Return columns with those that a linear model needs for a slope in each stratum."""
    frame = pd.DataFrame(X, columns=["first", "second", "w"])
    for w in (1, 2):
        frame[f"is{w}"] = (frame["w"] == w) * 1.0
        frame[f"first{w}"] = frame[f"is{w}"] * frame["first"]
    return frame


def spread(model: Any, law: Law) -> float:
    """Return the largest standard deviation of scores by a fold's predictor over the smallest."""
    place = model.choice_.position
    parts = model._regressions(law.cells)
    scores = [model.solution_.scores(place, fold, *part) for fold, part in enumerate(parts)]
    deviations = np.std(scores, axis=1)
    return float(deviations.max() / max(deviations.min(), 1e-12))


def page(records: Sequence[dict[str, Any]]) -> str:
    """Return a table with a row for each aim, law and number of rows, and one for each aim."""
    lines = [
        (
            "| aim | law | rows | limit | tables | limit kept | beyond it | share |"
            " most by chance | median distance below | median loss | beyond, by the estimate |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (aim,), whole in grouped(records, "aim").items():
        for (name, rows), own in grouped(whole, "law", "rows").items():
            lines.append(line(own, aim, name, f"{rows:,}", f"{own[0]['limit']:g}"))
        lines.append(line(whole, aim, "all", "", ""))
    return "\n".join(lines)


def line(records: Sequence[dict[str, Any]], *names: str) -> str:
    """Return the row of some records."""
    kept = [each for each in records if each["met"]]
    count = sum(each["gap"] > each["limit"] for each in kept)
    share = count / len(kept) if kept else np.nan
    most = binom.ppf(0.975, len(kept), 0.05) if kept else 0
    within = [each for each in kept if each["gap"] <= each["limit"]]
    below = np.median([each["limit"] - each["gap"] for each in kept]) if kept else np.nan
    loss = np.median([each["loss"] for each in within]) if within else np.nan
    estimate = np.mean([each["by_estimate"] > each["limit"] for each in records])
    return (
        f"| {' | '.join(names)} | {len(records)} | {len(kept)} | {count} | {share:.3f} | {most:g} |"
        f" {below:.4f} | {loss:.4f} | {estimate:.2f} |"
    )


def run(cells: Sequence[tuple[Any, ...]], jobs: int, seconds: float | None, records: Path) -> None:
    """Append the records of cells as they come, and begin none after some seconds."""
    with (
        records.open("a") as file,
        ProcessPoolExecutor(jobs, initializer=threadpool_limits, initargs=(1,)) as pool,
    ):
        missing = {pool.submit(record, *cell) for cell in cells}

        def append(done: Iterable[Future[dict[str, Any]]]) -> None:
            for each in done:
                missing.discard(each)
                if not each.cancelled():
                    print(json.dumps(each.result()), file=file, flush=True)

        try:
            append(as_completed([*missing], timeout=seconds))
        except TimeoutError:
            pool.shutdown(cancel_futures=True)
            append([*missing])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first table")
    parser.add_argument("--aims", nargs="+", default=AIMS, choices=AIMS)
    parser.add_argument("--laws", nargs="+", default=NEW, choices=[*LAWS])
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args(argv)

    def known() -> list[dict[str, Any]]:
        lines = args.records.read_text().splitlines() if args.records.exists() else []
        return [json.loads(line) for line in lines]

    if not args.page:
        keys = "law", "aim", "rows", "table"
        there = {tuple(each[key] for key in keys) for each in known()}
        tables = range(args.first, args.first + args.tables)
        wanted = product(tables, args.laws, args.aims, args.rows)
        cells = [(law, aim, rows, table) for table, law, aim, rows in wanted]
        cells = [cell for cell in cells if cell not in there]
        seconds = 60 * args.minutes if np.isfinite(args.minutes) else None
        run(cells, args.jobs, seconds, args.records)
    records = known()
    places = {name: place for place, name in enumerate((*AIMS, *LAWS))}
    print(page(sorted(records, key=lambda e: (places[e["aim"]], places[e["law"]], e["rows"]))))


if __name__ == "__main__":
    main()
