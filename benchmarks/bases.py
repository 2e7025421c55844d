"""Loss at equal gap of the closed form on three bases: trees alone, splines alone, and the default.

    python benchmarks/bases.py run --out bases.jsonl --jobs 16 [--tables crime,compas] [--folds 10]
    python benchmarks/bases.py show bases.jsonl [more.jsonl]

Only the half of a table that tunes (`frhsic_paper.tuned.rows`) is used: its folds train and measure
each other. `--rows all` takes whole tables. An earlier version is compared by a run of this program
with its sources on the path and `--bases default --title before`, whose file is shown with the
others.

A loss is read on the path of trade-offs at 75, 50 and 25 % of the gap that LightGBM has on the same
rows, and given in % of what LightGBM gains over a constant. The table has the means over levels and
folds, and differences from the default with their standard errors over folds; positive ones are
worse than the default.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier, ParityRegressor
from frhsic.estimators import conditional
from frhsic.parity import gdp
from frhsic_paper.tuned.paths import solved
from frhsic_paper.tuned.rows import SEED, Rows, load

TABLES = "crime,wages,compas,pension,meps,acs_income,adult,women,birth_control,affairs"
LEVELS = (0.75, 0.5, 0.25)
BASES: dict[str, dict[str, Any]] = {
    "default": {},
    "trees": {"SHARES": np.zeros(1)},
    "splines": {"SHARES": np.ones(1), "MANY_ROWS": np.inf},
}


def loss_of(rows: Rows, scores: np.ndarray) -> float:
    if rows.binary:
        return float(log_loss(rows.y, np.clip(scores, 1e-6, 1 - 1e-6)))
    return float(mean_squared_error(rows.y, scores))


def reference(train: Rows, test: Rows) -> tuple[float, float, float]:
    """Return gap and loss of LightGBM, and the loss of a constant."""
    if train.binary:
        model = LGBMClassifier(n_jobs=1, verbose=-1).fit(train.X, train.y)
        scores = np.asarray(model.predict_proba(test.X))[:, 1]
    else:
        numbers = LGBMRegressor(n_jobs=1, verbose=-1).fit(train.X, train.y)
        scores = np.asarray(numbers.predict(test.X))
    constant = np.full(len(test.y), train.y.mean())
    return float(gdp(scores, test.s)), loss_of(test, scores), loss_of(test, constant)


def unit(
    name: str, fold: int, base: str, title: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return losses at the levels, in % of the gain of LightGBM over a constant."""
    table = load(name, arguments.data)
    order = np.random.default_rng([SEED, len(table.y)]).permutation(len(table.y))
    rows = order if arguments.rows == "all" else order[: len(order) // 2]
    splits = list(KFold(arguments.folds).split(rows))
    train, test = (table.at(rows[part]) for part in splits[fold])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gap, loss, constant = reference(train, test)
        for setting, value in BASES[base].items():
            setattr(conditional, setting, value)
        kind = ParityClassifier if table.binary else ParityRegressor
        started = time.process_time()
        model = kind(limit=None, n_jobs=1, random_state=fold)
        model.fit(train.X, train.y, sensitive_features=train.s)
        seconds = time.process_time() - started
        path = [scores for _, scores, _ in solved(model, test.X, None, "score")]
    gaps = np.array([float(gdp(scores, test.s)) for scores in path])
    losses = np.array([loss_of(test, scores) for scores in path])
    at = np.argsort(gaps)
    # a smaller gap than the path has is read between its end and a constant
    read = np.interp(np.array(LEVELS) * gap, np.r_[0, gaps[at]], np.r_[constant, losses[at]])
    shares = 100 * (read - loss) / (constant - loss)
    about = {"table": name, "fold": fold, "base": title, "rows": len(train.y), "seconds": seconds}
    return about | {f"{level:.0%}": share for level, share in zip(LEVELS, shares)}


def run(arguments: argparse.Namespace) -> None:
    """Write a record for each table, fold and base."""
    work = [
        (name, fold, base, arguments.title or base, arguments)
        for name in arguments.tables.split(",")
        for fold in range(arguments.folds)
        for base in arguments.bases.split(",")
    ]
    # each in a process of its own: a base changes the module's settings
    parallel = Parallel(arguments.jobs, return_as="generator_unordered", batch_size=1)
    with Path(arguments.out).open("a") as file:
        for record in parallel(delayed(isolated)(*one) for one in work):
            file.write(json.dumps(record) + "\n")
            file.flush()
    show([arguments.out])


def isolated(*one: Any) -> dict[str, Any]:
    """Return the record of a unit, and the settings as they were."""
    before = {name: getattr(conditional, name, None) for name in ("SHARES", "MANY_ROWS")}
    try:
        return unit(*one)
    finally:
        for name, value in before.items():
            setattr(conditional, name, value)


def show(files: list[str]) -> None:
    """Print the table."""
    lines = [line for file in files for line in Path(file).read_text().splitlines()]
    records = pd.DataFrame(map(json.loads, lines)).drop_duplicates(["table", "fold", "base"])
    records["loss"] = records[[f"{level:.0%}" for level in LEVELS]].mean(axis=1)
    wide = records.pivot(index=["table", "fold"], columns="base", values="loss").dropna()
    bases = [name for name in wide if name != "default"]
    print("| table | rows | default | " + " | ".join(f"{name}, less default" for name in bases))
    for name, own in wide.groupby(level="table"):
        rows = int(records.loc[records.table == name, "rows"].mean())
        cells = []
        for base in bases:
            gain = own[base] - own["default"]
            cells.append(f"{gain.mean():+.2f} ± {gain.std() / np.sqrt(len(gain)):.2f}")
        print(f"| {name} | {rows:,} | {own['default'].mean():.2f} | " + " | ".join(cells))
    print(records.groupby("base")["seconds"].mean().round(2).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", required=True)
    running.add_argument("--tables", default=TABLES)
    running.add_argument("--bases", default=",".join(BASES))
    running.add_argument("--title", help="what the file calls the base")
    running.add_argument("--folds", type=int, default=10)
    running.add_argument("--rows", choices=("half", "all"), default="half")
    running.add_argument("--data", help="folder with NAME.npz, see frhsic_paper.tuned.rows.load")
    running.add_argument("--jobs", type=int, default=1)
    showing = commands.add_parser("show")
    showing.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    if arguments.command == "run":
        run(arguments)
    else:
        show(arguments.files)


if __name__ == "__main__":
    main()
