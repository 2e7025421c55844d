"""The default regressions of two versions of the library on the same rows: loss of η, what m
explains of the functions of S, loss at half of the gap, and time; and η beside LightGBM.

    python benchmarks/bases.py tables --data DIR
    PYTHONPATH=OLD/src python benchmarks/bases.py run --data DIR --out before.jsonl --jobs 16
    python benchmarks/bases.py run --data DIR --out after.jsonl --jobs 16
    python benchmarks/bases.py show before.jsonl after.jsonl
    python benchmarks/bases.py run --whole --tables adult,bank --out large.jsonl
    python benchmarks/bases.py show large.jsonl
    PYTHONPATH=OLD/src python benchmarks/bases.py decisions --data DIR --out was.jsonl --jobs 16
    python benchmarks/bases.py decisions --data DIR --out is.jsonl --jobs 16
    python benchmarks/bases.py costs was.jsonl is.jsonl

The first command keeps the tables in a folder, for a machine without network; without `--data` they
are loaded where they are needed. Ten tables were seen while the default was chosen: only the half
of their rows that tunes (`frhsic_paper.crossed.rows`) is used here, at most `--most` of them. A
fixed third of these rows tests the models of the others. Five seeds move folds and models alone, so
that their spread is that of the fit.

η and m are what is served, the means over folds. A loss is the log loss, or the squared error over
the variance of y. m is compared on all functions of S, whether a version models them or predicts
zero: the share of their variance on test rows that is not explained, 1 where nothing is. The loss
at half of the gap is read on the path of trade-offs, where the scores have half of the gap that
LightGBM at its defaults has on the same rows.

`show` prints for each table and measure the second less the first, so that negative differences are
better, with its standard error: from test rows and, added, from seeds. Pooled differences are means
over tables. The spread is the standard deviation over seeds, its root mean square over tables.
With one file, it prints the loss of η less that of LightGBM at its defaults. `--whole` takes all
rows of a table, for sizes that the halves don't reach; it is meant for comparisons that choose
nothing.

`decisions` takes the tables with two classes, each third of whose rows tests in turn (five random
ones), and two bases: the default, and splines. Served decisions of `aim="decision"`, and those of
`aim="score"` at the same threshold, are compared on test rows where their gap is 70, 50, 30 and
15 % of that of the decisions of LightGBM, or of the splines themselves. The cost is the loss above
theirs, in % of what they gain over a constant; the loss is the error rate, or the balanced one
where a class has less than 20 % of the rows. `costs` prints costs of both files by table and base,
with the error of their difference.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier, ParityRegressor
from frhsic.estimators.basis import SensitiveBasis
from frhsic.parity import gdp
from frhsic_paper.crossed.rows import SEED, Rows, load

TABLES = ["crime", "wages", "compas", "pension", "meps", "acs_income", "adult", "women"]
TABLES += ["birth_control", "affairs"]
SEEDS = 5
MEASURES = {"loss": "η", "unexplained": "m", "half": "at half of the gap"}


def split_rows(
    name: str, folder: str | None, most: int | None, split: int | None = None
) -> tuple[Rows, Rows]:
    """Return the training and the test rows of a table, of the half that tunes or, where `most` is
    None, of all rows; a number splits the same rows otherwise.
    """
    table = load(name, folder)
    n = len(table.y)
    kept = n if most is None else min(n // 2, most)
    rows = np.random.default_rng([SEED, n]).permutation(n)[:kept]
    if split is not None:
        rows = np.random.default_rng([SEED, n, split]).permutation(rows)
    test = len(rows) // 3
    return table.take(rows[test:]), table.take(rows[:test])


def row_losses(rows: Rows, scores: np.ndarray) -> np.ndarray:
    """Return the loss of each row: log loss, or squared error over the variance of y."""
    if not rows.binary:
        return np.asarray((rows.y - scores) ** 2 / rows.y.var())
    scores = np.clip(scores, 1e-6, 1 - 1e-6)
    return np.asarray(-np.log(np.where(rows.y == 1, scores, 1 - scores)))


def gap_of(rows: Rows, scores: np.ndarray) -> float:
    return float(gdp(scores, rows.s, resamples=0))


def lightgbm_scores(train: Rows, test: Rows) -> np.ndarray:
    """Return the scores of LightGBM at its defaults."""
    if not train.binary:
        numbers = LGBMRegressor(n_jobs=1, verbose=-1).fit(train.X, train.y)
        return np.asarray(numbers.predict(test.X))
    model = LGBMClassifier(n_jobs=1, verbose=-1).fit(train.X, train.y)
    return np.asarray(model.predict_proba(test.X))[:, 1]


def unexplained(model: Any, train: Rows, test: Rows, means: np.ndarray) -> np.ndarray:
    """Return for each test row and function of S the squared error of m over the variance of the
    function, (n, K).
    """
    whole = SensitiveBasis.fit(train.s)
    (constraint,) = model.solution_.constraints
    directions = (whole.values * whole.mass[:, None]).T @ constraint.basis.values
    functions = whole(test.s)
    return np.asarray((functions - means @ directions.T) ** 2 / functions.var(axis=0))


def served_path(solution: Any, parts: Sequence[Any]) -> list[np.ndarray]:
    """Return the scores of rows along the trade-offs, from η and m by the models of each fold."""
    return [
        np.mean([solution.scores(at, fold, *part) for fold, part in enumerate(parts)], axis=0)
        for at in range(len(solution.parameters))
    ]


def unit(name: str, seed: int, folder: str | None, most: int | None) -> dict[str, Any]:
    """Return the record of one table and seed."""
    train, test = split_rows(name, folder, most)
    kind = ParityClassifier if train.binary else ParityRegressor
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        model = kind(limit=None, n_jobs=1, random_state=seed)
        model.fit(train.X, train.y, sensitive_features=train.s)
        fitted = time.process_time()
        parts = model._regressions(test.X)
        predicted = time.process_time()
        plain = lightgbm_scores(train, test)
    solution = model.solution_
    assert solution is not None
    eta = np.mean([own for own, _ in parts], axis=0)
    means = np.mean([own for _, own in parts], axis=0)
    path = served_path(solution, parts)
    path.append(np.full(len(test.y), train.y.mean()))  # a smaller gap is read towards a constant
    gaps = np.array([gap_of(test, scores) for scores in path])
    order = np.argsort(gaps)
    losses = np.array([row_losses(test, path[at]) for at in order])
    gap = np.clip(gap_of(test, plain) / 2, gaps.min(), gaps.max())
    place = np.interp(gap, gaps[order], np.arange(len(order)))
    below = min(int(place), len(order) - 2)
    half = losses[below] + (place - below) * (losses[below + 1] - losses[below])
    errors = unexplained(model, train, test, means)
    return {
        "table": name,
        "seed": seed,
        "rows": len(train.y),
        "fit": fitted - started,
        "predict": predicted - fitted,
        "directions": means.shape[1],
        "rows of lightgbm": row_losses(test, plain).round(5).tolist(),
        "each m": errors.mean(axis=0).round(5).tolist(),
        "rows of half": half.round(5).tolist(),
        "rows of loss": row_losses(test, eta).round(5).tolist(),
        "rows of unexplained": errors.mean(axis=1).round(5).tolist(),
    }


SHARES = (0.7, 0.5, 0.3, 0.15)
RARE = 0.2
LIMITS = [None, *(f"{percent}%" for percent in range(95, 0, -5)), "2%", 0]


def decision_unit(name: str, seed: int, folder: str | None, most: int | None) -> dict[str, Any]:
    """Return what decisions of two bases cost at equal served gaps, on one split of a table."""
    train, test = split_rows(name, folder, most, seed)
    rate = train.y.mean()
    threshold = 0.5 if RARE <= rate <= 1 - RARE else rate

    def point(taken: np.ndarray) -> tuple[float, float]:
        wrong = taken != test.y
        if threshold != 0.5:
            return gap_of(test, taken * 1.0), np.mean([wrong[test.y == k].mean() for k in (0, 1)])
        return gap_of(test, taken * 1.0), wrong.mean()

    costs: dict[str, list[float]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        splines = make_pipeline(
            SimpleImputer(),
            StandardScaler(),
            SplineTransformer(),
            LogisticRegression(C=0.1),
        )
        boosted = LGBMClassifier(n_jobs=1, verbose=-1)
        for base, wrapped, own in (("default", None, boosted), ("splines", splines, splines)):
            plain = clone(own).fit(train.X, train.y).predict_proba(test.X)[:, 1]
            whole, least = point(plain > threshold)
            constant = (0.0, 0.5 if threshold != 0.5 else min(test.y.mean(), 1 - test.y.mean()))
            for aim in ("decision", "score"):
                model = ParityClassifier(
                    wrapped, aim=aim, limit=None, confidence=None, n_jobs=1, random_state=seed
                ).fit(train.X, train.y, sensitive_features=train.s)
                path = [constant]
                for limit in LIMITS:
                    scores = model.at(limit).predict_proba(test.X)[:, 1]
                    path.append(point(scores > threshold))
                gaps, losses = np.transpose(path)
                line = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(gaps, losses)
                excess = line.predict(whole * np.array(SHARES)) - least
                costs[f"{base}, {aim}"] = (100 * excess / (constant[1] - least)).tolist()
    return {"table": name, "seed": seed, "rows": len(train.y), "costs": costs}


def show_costs(files: list[str]) -> None:
    """Print the costs of both files: decisions of each, and scores of the second."""
    before, after = (pd.read_json(name, lines=True).sort_values("seed") for name in files)
    print("| table | base | share | before | after | after less before | less scores |")
    print("|---|---|---|---|---|---|---|")
    differences = []
    for base in ("default", "splines"):
        for name in dict.fromkeys(after.table):
            was, now = (part[part.table == name].costs for part in (before, after))
            old, new, scores = (
                np.array([each[f"{base}, {aim}"] for each in part])
                for part, aim in ((was, "decision"), (now, "decision"), (now, "score"))
            )
            for k, share in enumerate(SHARES):
                cells = []
                for other in (old, scores):
                    each = (new - other)[:, k]
                    error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
                    cells.append((each.mean(), error))
                differences.append(cells)
                texts = [f"{mean:+.1f} ± {error:.1f}" for mean, error in cells]
                print(
                    f"| {name} | {base} | {share:.0%} | {old[:, k].mean():.1f} |"
                    f" {new[:, k].mean():.1f} | {' | '.join(texts)} |"
                )
    pooled = np.array(differences)  # (cells, before or scores, mean and error)
    means = pooled[:, :, 0].mean(axis=0)
    errors = np.sqrt((pooled[:, :, 1] ** 2).sum(axis=0)) / len(pooled)
    above = (pooled[:, 0, 0] > pooled[:, 0, 1]).mean()
    print(
        f"pooled: {means[0]:+.2f} ± {errors[0]:.2f} than before, {means[1]:+.2f} ± {errors[1]:.2f}"
        f" than scores; above before by more than one error in {above:.0%} of the cells"
    )


def run(arguments: argparse.Namespace) -> None:
    """Write a record for each table and seed, those of many rows first."""
    names = arguments.tables.split(",")
    measure = unit
    if arguments.command == "decisions":
        measure = decision_unit
        names = [name for name in names if load(name, arguments.data).binary]
    most = None if arguments.whole else arguments.most
    size = {name: split_rows(name, arguments.data, most)[0].X.size for name in names}
    work = [
        (name, seed, arguments.data, most)
        for name in sorted(names, key=size.__getitem__, reverse=True)
        for seed in range(arguments.seeds)
    ]
    parallel = Parallel(arguments.jobs, return_as="generator_unordered", batch_size=1)
    with Path(arguments.out).open("a") as file:
        for record in parallel(delayed(measure)(*one) for one in work):
            file.write(json.dumps(record) + "\n")
            file.flush()


def cell_of(records: pd.DataFrame, measure: str) -> np.ndarray:
    """Return the values of a measure on one table, (seeds, rows)."""
    return np.array(records.sort_values("seed")[f"rows of {measure}"].tolist(), dtype=np.float64)


def difference(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return the mean difference and its error: from rows by their means over seeds, and from
    seeds.
    """
    differences = after - before
    by_seed = differences.mean(axis=1)
    variance = by_seed.var(ddof=1) / len(by_seed) if len(by_seed) > 1 else 0.0
    by_row = differences.mean(axis=0)
    variance += by_row.var(ddof=1) / len(by_row)
    return float(by_seed.mean()), float(np.sqrt(variance))


def beside_lightgbm(file: str) -> None:
    """Print the loss of η less that of LightGBM at its defaults."""
    records = pd.read_json(file, lines=True)
    print("| table | rows | LightGBM | less LightGBM |")
    print("|---|---|---|---|")
    for name, own in records.groupby("table", sort=False):
        plain = cell_of(own, "lightgbm")
        mean, error = difference(plain, cell_of(own, "loss"))
        print(
            f"| {name} | {own['rows'].iloc[0]:,} | {plain.mean():.4f} | {mean:+.4f} ± {error:.4f} |"
        )


def show(files: list[str]) -> None:
    """Print the second file less the first."""
    before, after = (pd.read_json(name, lines=True) for name in files)
    pairs = before[["table", "seed"]].merge(after[["table", "seed"]])
    before, after = pairs.merge(before), pairs.merge(after)
    tables = list(dict.fromkeys(pairs.table))
    print(f"| table | rows | {' | '.join(MEASURES.values())} | each m, worst z | fit, s |")
    print("|---|---|" + "---|" * (len(MEASURES) + 2))
    found: dict[str, list[tuple[float, float]]] = {measure: [] for measure in MEASURES}
    spreads: dict[str, list[tuple[float, float]]] = {measure: [] for measure in MEASURES}
    for name in tables:
        own = [part[part.table == name] for part in (before, after)]
        texts = []
        for measure in MEASURES:
            one, other = (cell_of(part, measure) for part in own)
            found[measure].append(difference(one, other))
            mean, error = found[measure][-1]
            spreads[measure].append((one.mean(axis=1).std(ddof=1), other.mean(axis=1).std(ddof=1)))
            z = mean / error if error else 0.0
            texts.append(f"{one.mean():.4f} {mean:+.4f} ± {error:.4f} (z {z:+.1f})")
        each = [np.array(part["each m"].tolist()) for part in own]
        change = (each[1] - each[0]).mean(axis=0)
        error = (each[1] - each[0]).std(axis=0, ddof=1) / np.sqrt(len(each[0]))
        worst = int(np.argmax(change / np.maximum(error, 1e-9)))
        texts.append(f"{change[worst]:+.4f} ({change[worst] / max(error[worst], 1e-9):+.1f})")
        texts.append(f"{own[0]['fit'].mean():.1f} {own[1]['fit'].mean():.1f}")
        rows = int(own[0]["rows"].iloc[0])
        print(f"| {name} | {rows:,} | " + " | ".join(texts) + " |")
    for measure, title in MEASURES.items():
        means = np.array([mean for mean, _ in found[measure]])
        errors = np.array([error for _, error in found[measure]])
        pooled = np.sqrt((errors**2).sum()) / len(errors)
        spread = np.sqrt((np.array(spreads[measure]) ** 2).mean(axis=0))
        print(
            f"{title}: {means.mean():+.5f} ± {pooled:.5f} over {len(means)} tables; spread over"
            f" seeds {spread[0]:.5f} and {spread[1]:.5f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("tables")
    running = [commands.add_parser(name) for name in ("run", "decisions")]
    for each in running:
        each.add_argument("--out", required=True)
        each.add_argument("--seeds", type=int, default=SEEDS)
        each.add_argument("--most", type=int, default=6_000, help="rows of a table, at most")
        each.add_argument("--whole", action="store_true", help="all rows of a table")
        each.add_argument("--jobs", type=int, default=1)
    for each in (keeping, *running):
        each.add_argument("--tables", default=",".join(TABLES))
        each.add_argument("--data", help="folder with NAME.npz, written by `tables`")
    for name in ("show", "costs"):
        commands.add_parser(name).add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "tables":
        Path(arguments.data).mkdir(parents=True, exist_ok=True)
        for name in arguments.tables.split(","):
            load(name, arguments.data)
    elif arguments.command in ("run", "decisions"):
        run(arguments)
    elif len(arguments.files) == 1:
        beside_lightgbm(*arguments.files)
    else:
        {"show": show, "costs": show_costs}[arguments.command](arguments.files)


if __name__ == "__main__":
    main()
