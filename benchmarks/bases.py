"""Loss at equal gap of the closed form on three bases: trees alone (the former default), splines
alone, and the default, which averages both.

    python benchmarks/bases.py tables --data DIR
    python benchmarks/bases.py run --data DIR --out bases.jsonl --jobs 16
    python benchmarks/bases.py show bases.jsonl [more.jsonl]

The first command keeps the tables in a folder, for a machine without network; without `--data` they
are loaded where they are needed. Ten tables were seen while the base was chosen: only the half of
their rows that tunes (`frhsic_paper.crossed.rows`) is used here. Sixteen were not, and nothing was
chosen on them, so that all their rows are used. At most `--most` rows of a table count, in ten
folds that train and measure each other.

A loss is read on the path of trade-offs at 75, 50 and 25 % of the gap that LightGBM has on the same
rows, and given in % of what LightGBM gains over a constant, or the default without a limit if that
gains more. The table has means over levels and folds, and differences from the default with their
standard errors over folds, positive where the default is better; "no limit" is the loss of LightGBM
itself less that of the default without a limit. Behind the best single base, and behind LightGBM,
the default may be by 1 % of the gain and two errors, and behind trees by two errors. Folds share
training rows, so that their errors are corrected (Nadeau and Bengio).

`--aim rank` reads the loss of AUC at equal gaps of ranks, `--aim decision` the share of wrong
decisions, on tables with two classes. Another version of the library is compared by a run with its
sources on the path and `--bases default --title before`, whose file is shown with the others.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier, ParityRegressor
from frhsic.estimators import conditional
from frhsic.parity import gdp, rank_gap
from frhsic_paper.crossed.rows import FRESH, SEED, Rows, load

SEEN = ["crime", "wages", "compas", "pension", "meps", "acs_income", "adult", "women"]
SEEN += ["birth_control", "affairs"]
NOT_SEEN = ["bank", "credit", "support", "diabetes", *FRESH]
LEVELS = (0.75, 0.5, 0.25)
BASES: dict[str, dict[str, Any]] = {
    "default": {},
    "trees": {"SPLINE_SHARES": np.zeros(1)},
    "splines": {"SPLINE_SHARES": np.ones(1), "MANY_ROWS": np.inf},
}
NO_LIMIT = "LightGBM, no limit"
ALLOWED = 1.0


def table_of(name: str, folder: str | None) -> Rows:
    """Return a table by name; `diabetes` is the one of scikit-learn, along age."""
    if name != "diabetes":
        return load(name, folder)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return Rows(X.drop(columns="age"), y.to_numpy(float), X["age"].to_numpy(float), False)


def used_rows(name: str, n: int, most: int) -> np.ndarray:
    """Return which of n rows are used, in random order."""
    order = np.random.default_rng([SEED, n]).permutation(n)
    return order[: min(n // 2 if name in SEEN else n, most)]


def loss_of(rows: Rows, scores: np.ndarray, aim: str) -> float:
    if aim == "rank":
        return 1 - float(roc_auc_score(rows.y, scores))
    if aim == "decision":
        return float(np.mean((scores > 0.5) != rows.y))
    if rows.binary:
        return float(log_loss(rows.y, np.clip(scores, 1e-6, 1 - 1e-6)))
    return float(mean_squared_error(rows.y, scores))


def gap_of(rows: Rows, scores: np.ndarray, aim: str) -> float:
    if aim == "rank":
        return float(rank_gap(scores, rows.s, resamples=0))
    scores = (scores > 0.5).astype(float) if aim == "decision" else scores
    return float(gdp(scores, rows.s, resamples=0))


def reference(train: Rows, test: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of LightGBM, and those of a constant."""
    if train.binary:
        model = LGBMClassifier(n_jobs=1, verbose=-1).fit(train.X, train.y)
        scores = np.asarray(model.predict_proba(test.X))[:, 1]
    else:
        numbers = LGBMRegressor(n_jobs=1, verbose=-1).fit(train.X, train.y)
        scores = np.asarray(numbers.predict(test.X))
    return scores, np.full(len(test.y), train.y.mean())


def path_of(train: Rows, test: Rows, fold: int, aim: str) -> list[np.ndarray]:
    """Return the scores of test rows along the path of trade-offs, or 0/1 decisions."""
    kind = ParityClassifier if train.binary else ParityRegressor
    model = kind(limit=None, aim=aim, n_jobs=1, random_state=fold)  # type: ignore[arg-type]
    model.fit(train.X, train.y, sensitive_features=train.s)
    path = served_path(model, test.X)
    if aim == "decision":
        return [(f > model.threshold_).astype(float) for f in path]
    return path


def served_path(model: Any, X: pd.DataFrame) -> list[np.ndarray]:
    """Return the scores of a fitted closed form along its path of trade-offs."""
    path = []
    for place in range(model.solution_.places):
        moved = copy(model)
        moved.choice_ = replace(model.choice_, position=place)
        path.append(moved._scores(X, None))
    return path


def unit(
    name: str, fold: int, base: str, title: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return losses at the levels, in % of the gain of LightGBM over a constant."""
    table = table_of(name, arguments.data)
    aim = arguments.aim
    rows = used_rows(name, len(table.y), arguments.most)
    splits = list(KFold(arguments.folds).split(rows))
    train, test = (table.at(rows[part]) for part in splits[fold])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, constant = reference(train, test)
        for setting, value in BASES[base].items():
            setattr(conditional, setting, value)
        started = time.process_time()
        path = path_of(train, test, fold, aim)
        seconds = time.process_time() - started
    gap, loss, without = (
        gap_of(test, plain, aim),
        loss_of(test, plain, aim),
        loss_of(test, constant, aim),
    )
    gaps = np.array([gap_of(test, scores, aim) for scores in path])
    losses = np.array([loss_of(test, scores, aim) for scores in path])
    at = np.argsort(gaps)
    # a smaller gap than the path has is read between its end and a constant
    read = np.interp(np.array(LEVELS) * gap, np.r_[0, gaps[at]], np.r_[without, losses[at]])
    about = {"table": name, "fold": fold, "base": title, "rows": len(train.y), "seconds": seconds}
    about |= {"gain": without - loss, "loss": loss, "free": losses[0]}
    return about | {f"{level:.0%}": each for level, each in zip(LEVELS, read)}


def isolated(*one: Any) -> dict[str, Any]:
    """Return the record of a unit, and the settings as they were."""
    before = {name: getattr(conditional, name, None) for name in ("SPLINE_SHARES", "MANY_ROWS")}
    try:
        return unit(*one)
    finally:
        for name, value in before.items():
            setattr(conditional, name, value)


def run(arguments: argparse.Namespace) -> None:
    """Write a record for each table, fold and base, those of many rows first."""
    tables = {name: table_of(name, arguments.data) for name in arguments.tables.split(",")}
    if arguments.aim != "score":
        tables = {name: table for name, table in tables.items() if table.binary}
    size = {
        name: len(used_rows(name, len(table.y), arguments.most)) * table.X.shape[1]
        for name, table in tables.items()
    }
    work = [
        (name, fold, base, arguments.title or base, arguments)
        for name in sorted(size, key=size.__getitem__, reverse=True)
        for fold in range(arguments.folds)
        for base in arguments.bases.split(",")
    ]
    parallel = Parallel(arguments.jobs, return_as="generator_unordered", batch_size=1)
    with Path(arguments.out).open("a") as file:
        for record in parallel(delayed(isolated)(*one) for one in work):
            file.write(json.dumps(record) + "\n")
            file.flush()
    show([arguments.out])


def show(files: list[str]) -> None:
    """Print the table, and where the default is behind by more than it may be."""
    lines = [line for file in files for line in Path(file).read_text().splitlines()]
    records = pd.DataFrame(map(json.loads, lines)).drop_duplicates(["table", "fold", "base"])
    # means over folds, of the better of both: LightGBM gains nothing on some small tables
    alone = records[records.base == "default"].set_index(["table", "fold"])
    gains = pd.concat([alone["gain"], alone["gain"] + alone["loss"] - alone["free"]], axis=1)
    gain = records["table"].map(gains.groupby("table").mean().max(axis=1))
    excess = records[[f"{level:.0%}" for level in LEVELS]].mean(axis=1) - records["loss"]
    records["excess"] = 100 * excess / gain
    wide = records.pivot(index=["table", "fold"], columns="base", values="excess").dropna()
    ahead_by = wide.drop(columns="default").sub(wide["default"], axis=0)
    records["ahead"] = 100 * (records["loss"] - records["free"]) / gain
    ahead_by[NO_LIMIT] = records[records.base == "default"].set_index(["table", "fold"])["ahead"]
    others = list(map(str, ahead_by))
    print("| table | rows | default | " + " | ".join(f"{name}, less default" for name in others))
    print("|---|---|---|" + "---|" * len(others))
    behind = []
    better: dict[str, list[float]] = {name: [] for name in others}
    for name in [*SEEN, *NOT_SEEN]:
        if name not in wide.index:
            continue
        own = wide.loc[name]
        rows = int(records.loc[records.table == name, "rows"].mean())
        cells = []
        for base in others:
            difference = ahead_by.loc[name, base]
            folds = len(difference)
            # variance over folds that share most training rows: 1 / J and test over training rows
            error = difference.std() * np.sqrt(1 / folds + 1 / (folds - 1))
            cells.append(f"{difference.mean():+.2f} ± {error:.2f}")
            better[base].append(difference.mean())
            allowed = 2 * error + (0 if base in ("trees", "before") else ALLOWED)
            if difference.mean() < -allowed:
                behind.append(f"{name} behind {base}")
        seen = "" if name in SEEN else " (not seen)"
        print(f"| {name}{seen} | {rows:,} | {own['default'].mean():.2f} | " + " | ".join(cells))
    for base, differences in better.items():
        ahead = sum(each > 0 for each in differences)
        print(
            f"default less loss than {base} on {ahead} of {len(differences)} tables, median"
            f" {np.median(differences):+.2f} % of the gain"
        )
    print("default too far behind:", ", ".join(behind) or "nowhere")
    print(records.groupby("base")["seconds"].agg(["mean", "sum"]).round(1).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("tables")
    running = commands.add_parser("run")
    running.add_argument("--out", required=True)
    running.add_argument("--bases", default=",".join(BASES))
    running.add_argument("--title", help="what the file calls the base")
    running.add_argument("--aim", choices=("score", "rank", "decision"), default="score")
    running.add_argument("--folds", type=int, default=10)
    running.add_argument("--most", type=int, default=6_000, help="rows of a table, at most")
    running.add_argument("--jobs", type=int, default=1)
    for each in (keeping, running):
        each.add_argument("--tables", default=",".join([*SEEN, *NOT_SEEN]))
        each.add_argument("--data", help="folder with NAME.npz, written by `tables`")
    showing = commands.add_parser("show")
    showing.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "tables":
        Path(arguments.data).mkdir(parents=True, exist_ok=True)
        for name in arguments.tables.split(","):
            table_of(name, arguments.data)
    elif arguments.command == "run":
        run(arguments)
    else:
        show(arguments.files)


if __name__ == "__main__":
    main()
