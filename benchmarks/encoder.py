"""What heads read of S from `ParityEncoder`: bounds on laws whose worst head is known, and leaks on
tables, measured on rows that the encoder has never seen.

    python benchmarks/encoder.py bound --fits 200 --jobs 16 --out bound.jsonl
    python benchmarks/encoder.py leak --splits 5 --jobs 16 --out leak.jsonl
    python benchmarks/encoder.py rivals --splits 3 --jobs 8 --out rivals.jsonl
    python benchmarks/encoder.py show bound.jsonl leak.jsonl rivals.jsonl
"""

from __future__ import annotations

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic import FRHSICClassifier, FRHSICRegressor, ParityEncoder, load_dataset
from frhsic.datasets import Dataset
from frhsic.estimators.conditional import SensitiveBasis
from frhsic.estimators.network import fit_path
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


TABLES = (
    "adult",
    "acs_income",
    "meps",
    "crime",
    "compas",
    "bank",
    "credit",
    "support",
    "pension",
    "wages",
)

# Rows that fit the encoder, and rows that it never sees, at most. Half of the latter fit the probes
# and the other half score them.
TRAIN, FRESH = 10_000, 20_000

PROBES = {
    "boosted trees": MultiOutputRegressor(
        LGBMRegressor(n_estimators=60, learning_rate=0.1, num_leaves=15, n_jobs=1, verbose=-1)
    ),
    "extra trees": ExtraTreesRegressor(60, min_samples_leaf=20, random_state=0),
    "ridge": make_pipeline(StandardScaler(), Ridge(1.0)),
    "network": make_pipeline(
        StandardScaler(),
        MLPRegressor(hidden_layer_sizes=(64,), max_iter=40, early_stopping=True, random_state=0),
    ),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(50)),
}


def recovered(z: np.ndarray, s: np.ndarray, probes: dict[str, Any]) -> dict[str, list[float]]:
    """Return what probes explain of rows that they have not seen: R² of the rank of S, the sum over
    its orthonormal functions, and the sum of those that are positive.
    """
    rank = s.argsort(kind="stable").argsort() / len(s)
    targets = np.column_stack([rank, SensitiveBasis.fit(s)(s)])
    half = np.arange(len(s)) < len(s) // 2
    explained = {}
    for name, probe in probes.items():
        predicted = clone(probe).fit(z[half], targets[half]).predict(z[~half])
        each = r2_score(targets[~half], predicted, multioutput="raw_values")
        positive = np.maximum(each[1:], 0.0)
        explained[name] = [float(each[0]), float(each[1:].sum()), float(positive.sum())]
    return explained


def parts_of(data: Dataset, split: int) -> tuple[pd.DataFrame, Any, Any, Any, Any]:
    """Return columns, target, attribute, the rows to fit on and the fresh ones."""
    y = np.asarray(data.y).ravel()
    y = y if data.task == "regression" else y.astype(int)
    s = np.asarray(data.s, dtype=np.float64).reshape(len(y))
    order = np.random.default_rng([split, len(y)]).permutation(len(y))
    train = order[: min(len(y) // 2, TRAIN)]
    fresh = order[len(train) : len(train) + FRESH]
    return data.X.reset_index(drop=True), y, s, train, fresh


def head_of(data: Dataset, y: np.ndarray, score: np.ndarray) -> float:
    """Return AUC, or R² of numbers."""
    return float((r2_score if data.task == "regression" else roc_auc_score)(y, score))


def leak(table: str, split: int) -> dict[str, Any]:
    """Fit an encoder on one part of a table, and probe its Z of the rest."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    start = process_time()
    encoder = ParityEncoder(random_state=split)
    encoder.fit(X.iloc[train], y[train], sensitive_features=s[train])
    seconds = process_time() - start
    new = X.iloc[fresh]
    record: dict[str, Any] = {"table": table, "split": split, "rows": len(train)}
    record |= {"distinct": len(X.iloc[train].drop_duplicates()), "fresh": len(fresh)}
    for limit in (None, "50%", 0):
        moved = encoder.at(limit)
        z = np.asarray(moved.transform(new))
        cell = np.unique(z, axis=0, return_inverse=True)[1].ravel()
        test = HeadsTest.of(cell, SensitiveBasis.fit(s[fresh])(s[fresh]), np.ones(len(fresh)))
        name = str(limit)
        gap = moved.choice_.gaps["sensitive"]
        record[f"estimate {name}"] = 4 * gap.value**2
        record[f"upper end {name}"] = 4 * gap.high**2
        record[f"chi2 {name}"] = (test.statistic - test.degrees) / test.rows
        record[f"pvalue {name}"] = test.pvalue
        record[f"prototypes {name}"] = int(cell.max()) + 1
        record[f"head {name}"] = head_of(data, y[fresh], z[:, 0])
    record["probes"] = recovered(z, s[fresh], PROBES)
    trees = {"boosted trees": PROBES["boosted trees"]}
    record["raw"] = recovered(new.to_numpy(dtype=np.float64), s[fresh], trees)["boosted trees"]
    return record | {"seconds": seconds}


def _leak(job: tuple[str, int]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return leak(*job)


# Networks and the weights of their penalties, of which each table and method has its best.
METHODS = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor", "hsic")
WEIGHTS = np.geomspace(0.1, 1000, 9)


def rival(table: str, split: int, method: str) -> dict[str, Any]:
    """Return the head's performance and what boosted trees read of S, along the trade-offs."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    new = X.iloc[fresh]
    start = process_time()
    points = []
    probe = {"boosted trees": PROBES["boosted trees"]}
    if method == "prototypes":
        encoder = ParityEncoder(limit=None, random_state=split)
        encoder.fit(X.iloc[train], y[train], sensitive_features=s[train])
        for position in range(len(encoder.solution_.path)):
            encoder.choice_ = replace(encoder.choice_, position=position)
            z = np.asarray(encoder.transform(new))
            read = recovered(z, s[fresh], probe)["boosted trees"]
            points.append([head_of(data, y[fresh], z[:, 0]), *read])
    else:
        network = FRHSICRegressor if data.task == "regression" else FRHSICClassifier
        start_model = network(penalty=method, random_state=split)
        columns = X.iloc[train].reset_index(drop=True)
        for model in fit_path(
            start_model, columns, y[train], penalty_weights=WEIGHTS, sensitive_features=s[train]
        ):
            numbers = data.task == "regression"
            score = model.predict(new) if numbers else model.predict_proba(new)[:, 1]
            read = recovered(model.transform(new), s[fresh], probe)["boosted trees"]
            points.append([head_of(data, y[fresh], score), *read])
    record = {"table": table, "split": split, "method": method, "points": points}
    return record | {"seconds": process_time() - start}


def _rival(job: tuple[str, int, str]) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rival(*job)


def least_leak(points: list[list[float]], head: float, column: int) -> float:
    """Return the least leak among points, and mixtures of two, whose head reaches a performance."""
    best = np.inf
    for a, b in product(points, repeat=2):
        if a[0] >= head:
            best = min(best, a[column])
        elif b[0] >= head:
            share = (head - a[0]) / (b[0] - a[0])
            best = min(best, a[column] + share * (b[column] - a[column]))
    return best


def show_rivals(records: list[dict[str, Any]]) -> str:
    """Return by how much each rival leaks more than prototypes at equal performance of the head:
    the mean over five performances that both reach, and over the splits, with its error.
    """
    paths = {(r["table"], r["split"], r["method"]): r["points"] for r in records}
    lines = []
    for table, method in dict.fromkeys((r["table"], r["method"]) for r in records):
        if method == "prototypes":
            continue
        differences = []
        for split in dict.fromkeys(r["split"] for r in records):
            own = paths.get((table, split, "prototypes"))
            other = paths.get((table, split, method))
            if own is None or other is None:
                continue
            low = max(min(point[0] for point in path) for path in (own, other))
            high = min(max(point[0] for point in path) for path in (own, other))
            if high > low:
                levels = np.linspace(low, high, 5)
                each = [[least_leak(path, level, 3) for path in (own, other)] for level in levels]
                differences.append(np.diff(each, axis=1).mean())
        if differences:
            error = np.std(differences, ddof=1) / np.sqrt(len(differences))
            lines.append([table, method, np.mean(differences), error, len(differences)])
    columns = ["table", "rival", "sum R2, rival less prototypes", "error", "splits"]
    return pd.DataFrame(lines, columns=columns).round(4).to_string(index=False)


def show_leak(records: list[dict[str, Any]]) -> str:
    """Return the leak of each table at limit 0, the best of five probes, and the largest split."""
    lines = []
    for record in records:
        best = np.max([*record["probes"].values()], axis=0)
        lines.append(
            {
                "table": record["table"],
                "rows": record["rows"],
                "distinct": record["distinct"],
                "L": record["prototypes 0"],
                "head free": record["head None"],
                "head 0": record["head 0"],
                "R2 rank": best[0],
                "sum R2": best[1],
                "chi2": record["chi2 0"],
                "estimated": record["estimate 0"],
                "upper end": record["upper end 0"],
                "raw rank": record["raw"][0],
                "raw sum": record["raw"][1],
                "seconds": record["seconds"],
            }
        )
    frame = pd.DataFrame(lines).groupby("table", sort=False)
    means = frame.mean().round(4)
    worst = frame[["R2 rank", "sum R2", "chi2"]].max().round(4).add_prefix("worst ")
    return means.join(worst).to_string()


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
    for name in ("leak", "rivals"):
        probed = commands.add_parser(name)
        probed.add_argument("--tables", nargs="+", default=TABLES)
        probed.add_argument("--splits", type=int, default=5)
        probed.add_argument("--jobs", type=int, default=2)
        probed.add_argument("--out", type=Path, required=True)
    probed.add_argument("--methods", nargs="+", default=["prototypes", *METHODS])
    shown = commands.add_parser("show")
    shown.add_argument("records", type=Path, nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "show":
        for file in arguments.records:
            records = [json.loads(line) for line in file.read_text().splitlines()]
            if "law" in records[0]:
                print(show(records))
            elif "method" in records[0]:
                print(show_rivals(records))
            else:
                print(show_leak(records))
        return
    if arguments.command == "leak":
        jobs = [(table, split) for split in range(arguments.splits) for table in arguments.tables]
        _run(_leak, jobs, arguments)
        return
    if arguments.command == "rivals":
        splits = range(arguments.splits)
        _run(_rival, list(product(arguments.tables, splits, arguments.methods)), arguments)
        return
    limits = [text if text.endswith("%") else float(text) for text in arguments.limits]
    seeds = range(arguments.seed, arguments.seed + arguments.fits)
    _run(_bound, list(product(arguments.laws, arguments.rows, seeds, limits)), arguments)


def _run(one: Any, jobs: list[Any], arguments: argparse.Namespace) -> None:
    """Run jobs in processes; write each record as it comes."""
    with ProcessPoolExecutor(arguments.jobs) as pool, arguments.out.open("a") as out:
        for done in as_completed([pool.submit(one, job) for job in jobs]):
            out.write(json.dumps(done.result()) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
