"""What embeddings tell of S after `ParityEncoder` and `ParityCoupling`, beside raw columns and
LEACE, and what wide tables cost beside one LightGBM model.

    python benchmarks/embeddings.py leak cost bins show --out FOLDER
    python benchmarks/embeddings.py leak --embedding adult --seeds 0 1 2 --out FOLDER

Set OMP_NUM_THREADS=1; `leak` needs `pip install concept-erasure`. Each study has its file in the
folder, with one JSON line for each job; jobs that it has are skipped.

leak
    Three embeddings: random features of Adult (S is age), the hidden layer of a network that
    predicts the target of ACS Income (S is age) and was trained on other rows, and columns made of
    20 hidden numbers (`made up`), where the R² of S given these numbers is 0.857. Of each seed,
    some rows fit the eraser, as many others probes and heads, and as many again measure these once.
    Probes are ridge regression, boosted trees and a network with one hidden layer, for the rank of
    S. Linear heads predict the target, which the encoder is told, and a later task, which nothing
    is told: hours of work, or one of the hidden numbers.
cost
    Processor seconds of fits and of an audit on the made-up embedding, and of one `LGBMClassifier`
    at its defaults for the target.
bins
    R² on fresh rows and seconds of boosted trees for S, by bins, by the share of the columns that a
    tree sees, and on principal components and on the columns with the largest correlation ratio, on
    the made-up embedding and on a table of which five columns tell S.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from coupling import matrix, typed
from encoder import records_of
from scipy.stats import rankdata
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from frhsic import ParityClassifier, ParityCoupling, ParityEncoder, audit
from frhsic_paper.records import grouped, matching

EMBEDDINGS = ("adult", "acs_income", "made up")
LATER = {"adult": "hours-per-week", "acs_income": "WKHP"}
WAYS = ("raw", "LEACE", "encoder", "coupling")
PROBES = ("ridge", "trees", "network")
# rows and columns whose cost is measured
COSTS = ((2_000, 768), (800, 3_000))


class Rows(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    s: np.ndarray
    later: np.ndarray

    def take(self, rows: Any) -> Rows:
        return Rows(*(part[rows] for part in self))


def made_up(n: int, d: int, seed: int) -> Rows:
    """Return d columns made of 20 hidden numbers, of which S and the target are made, too."""
    rng = np.random.default_rng([seed, d])
    hidden = rng.normal(size=(n, 20))
    s = hidden[:, 0] + 0.5 * hidden[:, 1] ** 2 - 0.5 + 0.5 * rng.normal(size=n)
    odds = hidden[:, 2] + hidden[:, 3] * hidden[:, 4] + 0.7 * s
    y = (odds + rng.logistic(size=n) > 0).astype(int)
    first, second = np.random.default_rng(99).normal(size=(2, 20, d)) / np.sqrt(20)
    X = np.tanh(hidden @ first) + 0.5 * np.cos(hidden @ second) + 0.3 * rng.normal(size=(n, d))
    return Rows(X, y, s, hidden[:, 2])


def embedding(name: str, seed: int, rows: int, width: int) -> tuple[Rows, Rows, Rows]:
    """Return rows that fit, rows that probe, and rows that measure."""
    if name == "made up":
        whole = made_up(3 * rows, width, seed)
    else:
        table = typed(name)
        order = np.random.default_rng(seed).permutation(len(table.s))[: 5 * rows]
        columns = matrix(table.X.iloc[order])
        columns = StandardScaler().fit_transform(columns[:, columns.std(axis=0) > 0])
        y = table.targets["target"].to_numpy()[order].astype(int)
        rng = np.random.default_rng([seed, 1])
        if name == "adult":
            weights = rng.normal(size=(columns.shape[1], width)) * 1.5 / np.sqrt(columns.shape[1])
            X = np.tanh(columns @ weights + rng.normal(size=width))
        else:
            others = slice(3 * rows, None)
            network = MLPClassifier(hidden_layer_sizes=(width,), max_iter=10, random_state=seed)
            network.fit(columns[others], y[others])
            X = np.maximum(columns @ network.coefs_[0] + network.intercepts_[0], 0)
        later = table.targets[LATER[name]].to_numpy(np.float64)[order]
        whole = Rows(X, y, table.s[order], later)
    parts = [whole.take(slice(i * rows, (i + 1) * rows)) for i in range(3)]
    return parts[0], parts[1], parts[2]


def eraser(way: str, fit: Rows, seed: int) -> Callable[[Rows], np.ndarray]:
    """Return what gives Z of other rows."""
    if way == "raw":
        return lambda rows: rows.X
    if way == "LEACE":
        import torch
        from concept_erasure import LeaceEraser

        concept = np.column_stack([fit.s, rankdata(fit.s)])
        leace = LeaceEraser.fit(torch.tensor(fit.X), torch.tensor(concept / concept.std(axis=0)))
        return lambda rows: leace(torch.tensor(rows.X)).numpy()
    if way == "encoder":
        encoder = ParityEncoder(random_state=seed, n_jobs=1)
        encoder.fit(fit.X, fit.y, sensitive_features=fit.s)
        return lambda rows: encoder.transform(rows.X)
    coupling = ParityCoupling(random_state=seed, n_jobs=1).fit(fit.X, sensitive_features=fit.s)
    return lambda rows: coupling.transform(rows.X, sensitive_features=rows.s)


def probe(kind: str) -> Any:
    if kind == "ridge":
        return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 5, 13)))
    if kind == "trees":
        return lightgbm.LGBMRegressor(
            n_estimators=80, num_leaves=15, random_state=0, n_jobs=1, max_bin=63, verbose=-1
        )
    network = MLPRegressor(
        hidden_layer_sizes=(64,),
        alpha=1e-2,
        learning_rate_init=0.01,
        early_stopping=True,
        random_state=0,
    )
    return make_pipeline(StandardScaler(), network)


def explained(t: np.ndarray, fitted: np.ndarray) -> tuple[float, float]:
    """Return R² and its standard error."""
    squares = (t - t.mean()) ** 2
    errors = (t - fitted) ** 2
    r2 = 1 - errors.mean() / squares.mean()
    terms = ((1 - r2) * squares - errors) / squares.mean()
    return float(r2), float(terms.std() / np.sqrt(len(t)))


def leak_job(name: str, seed: int, rows: int, width: int) -> Iterator[dict[str, Any]]:
    """Yield the record of each way."""
    fit, between, measure = embedding(name, seed, rows, width)
    rank = [np.sqrt(12) * (rankdata(own.s) / rows - 0.5) for own in (between, measure)]
    for way in WAYS:
        started = time.process_time()
        erased = eraser(way, fit, seed)
        seconds = time.process_time() - started
        Z, Z_new = erased(between), erased(measure)
        record: dict[str, Any] = {"embedding": name, "seed": seed, "rows": rows, "columns": width}
        record |= {"way": way, "seconds": round(seconds, 2)}
        record["leak"] = {
            kind: explained(rank[1], probe(kind).fit(Z, rank[0]).predict(Z_new)) for kind in PROBES
        }
        head = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
        scores = head.fit(Z, between.y).predict_proba(Z_new)[:, 1]
        record["auc"] = float(roc_auc_score(measure.y, scores))
        later = probe("ridge").fit(Z, between.later).predict(Z_new)
        record["later"] = explained(measure.later, later)
        yield record


def cost_job(n: int, d: int) -> Iterator[dict[str, Any]]:
    """Yield the seconds of each operation on one table."""
    X, y, s, _ = made_up(n, d, 0)
    own = {"random_state": 0, "n_jobs": 1}
    actions: dict[str, Callable[[], Any]] = {
        "LightGBM": lambda: lightgbm.LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y),
        "train": lambda: ParityClassifier(**own).fit(X, y, sensitive_features=s),
        "encoder": lambda: ParityEncoder(**own).fit(X, y, sensitive_features=s),
        "coupling": lambda: ParityCoupling(**own).fit(X, sensitive_features=s),
        "audit": lambda: audit(X, s),
    }
    for name, action in actions.items():
        started = time.process_time()
        action()
        seconds = time.process_time() - started
        yield {"rows": n, "columns": d, "operation": name, "seconds": round(seconds, 2)}


def bins_job(law: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield R² and seconds of trees by their settings."""
    n, d = 1_500, 768
    X, _, s, _ = made_up(3 * n, d, seed)
    if law == "sparse":
        rng = np.random.default_rng([seed, 2])
        X = rng.normal(size=X.shape)
        s = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 + 0.5 * np.abs(X[:, 4])
        s = s + 0.7 * rng.normal(size=len(s))
    train = slice(0, n)
    components = PCA(128, svd_solver="randomized", random_state=0).fit(X[train]).transform(X)
    groups = np.argsort(np.argsort(X[train], axis=0), axis=0) * 8 // n
    centered = s[train] - s[train].mean()
    between = sum((centered @ (groups == g)) ** 2 for g in range(8))
    strong = X[:, np.argsort(-between)[:128]]
    tables = {"columns": X, "components": components, "strong columns": strong}
    cases = [("columns", share, 255) for share in (1.0, 0.5)]
    cases += [("columns", share, 63) for share in (0.5, 0.25, 0.12)]
    cases += [("columns", 0.5, 31), ("components", 0.5, 63), ("strong columns", 0.5, 63)]
    for table, share, bins in cases:
        settings = {"num_leaves": 8, "feature_fraction": share, "max_bin": bins, "seed": 0}
        settings |= {"num_threads": 1, "verbose": -1, "force_col_wise": True}
        started = time.process_time()
        data = lightgbm.Dataset(tables[table][train], s[train], params=settings)
        fitted = lightgbm.train(settings, data, 120).predict(tables[table][n:])
        seconds = time.process_time() - started
        r2, error = explained(s[n:], np.asarray(fitted))
        record = {"law": law, "seed": seed, "table": table, "share": share, "bins": bins}
        yield record | {"r2": r2, "error": error, "seconds": round(seconds, 2)}


def show(folder: Path) -> None:
    """Print the tables of the studies that the folder has."""
    records = {path.stem: records_of(path) for path in sorted(folder.glob("*.jsonl"))}
    if leaks := records.get("leak"):
        print("| embedding | Z | ridge | trees | network | target, AUC | later task, R² | fit, s |")
        print("|---|---|---|---|---|---|---|---|")
        for name, way in product(EMBEDDINGS, WAYS):
            own = matching(leaks, embedding=name, way=way)
            if not own:
                continue
            cells = [_mean(one["leak"][kind] for one in own) for kind in PROBES]
            cells.append(f"{np.mean([one['auc'] for one in own]):.3f}")
            cells.append(_mean(one["later"] for one in own))
            cells.append(f"{np.mean([one['seconds'] for one in own]):.1f}")
            print(f"| {name} | {way} | {' | '.join(cells)} |")
    for rows, columns in COSTS:
        own = {
            one["operation"]: one["seconds"]
            for one in matching(records.get("cost", []), rows=rows, columns=columns)
        }
        ratios = [f"{key} {own[key]:.0f} s ({own[key] / own['LightGBM']:.1f})" for key in own]
        print(f"{rows:,} × {columns:,}: {', '.join(ratios)}")
    cases = grouped(records.get("bins", []), "law", "table", "share", "bins")
    for case, own in cases.items():
        mean = _mean((one["r2"], one["error"]) for one in own)
        print(*case, mean, f"{np.mean([one['seconds'] for one in own]):.2f} s")


def _mean(pairs: Any) -> str:
    """Return the mean of estimates with standard errors, and its own."""
    values, errors = np.array(list(pairs)).T
    return f"{values.mean():.3f} ± {np.sqrt((errors**2).sum()) / len(errors):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("studies", nargs="+", choices=["leak", "cost", "bins", "show"])
    parser.add_argument("--embedding", nargs="+", choices=EMBEDDINGS, default=EMBEDDINGS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=700, help="that fit, probe and measure")
    parser.add_argument("--columns", type=int, default=128, help="of the embeddings")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    jobs: dict[str, list[tuple[Any, ...]]] = {
        "leak": [
            *product(arguments.embedding, arguments.seeds, [arguments.rows], [arguments.columns])
        ],
        "cost": [*COSTS],
        "bins": [*product(("embedding", "sparse"), arguments.seeds)],
    }
    keys = {
        "leak": ("embedding", "seed", "rows", "columns"),
        "cost": ("rows", "columns"),
        "bins": ("law", "seed"),
    }
    run = {"leak": leak_job, "cost": cost_job, "bins": bins_job}
    arguments.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for study in arguments.studies:
        if study == "show":
            show(arguments.out)
            continue
        path = arguments.out / f"{study}.jsonl"
        done = {tuple(one[key] for key in keys[study]) for one in records_of(path)}
        for job in jobs[study]:
            if job in done:
                continue
            records = list(run[study](*job))
            with path.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)


if __name__ == "__main__":
    main()
