"""What fits and predictions cost beside one LightGBM model of the same table, by rows and columns.

    python benchmarks/growth.py --jobs 16 --out growth.jsonl [--rows 1000 3000] [--columns 40]
        [--seconds 240]

Tables are made up: numbers alone, or every other column text with 4 to 40 levels. A cell is a
table; its record has the processor seconds of each operation, the median of `--repeats`, on one
thread, and the ratio to `LGBMClassifier` at its defaults: fits of each aim and of the encoder to
its fit, predictions of all rows to its prediction. `one row` is in milliseconds, one row of an
array or of a frame through `predict_proba`. Cells that the file already has are skipped; at the
end, and with `--show`, the table is printed, with the falls of the time of a fit from one number of
rows to the next.

Each cell has `--seconds` of processor time. An operation is expected to take as many fits of
LightGBM as `EXPECTED` says; it is repeated as often as the time that is left allows, and if that is
not even once, it is skipped: the record has no number for it, and the table a dash.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from lightgbm import LGBMClassifier
from threadpoolctl import threadpool_limits

from frhsic import ParityClassifier, ParityEncoder

ROWS = [300, 1_000, 3_000, 12_000, 13_000, 30_000, 300_000]
COLUMNS = [5, 40, 300]
KINDS = ["numbers", "categories"]
AIMS = ["score", "decision", "rank"]
# Fits of LightGBM that an operation is expected to take, generously; in this order they run.
EXPECTED = {"score": 15, "predict": 15, "decision": 20, "encoder": 15, "rank": 30}


def made_up(kind: str, n: int, d: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table, its target and an attribute."""
    rng = np.random.default_rng(0)
    s = rng.uniform(20, 70, size=n)
    numbers = rng.normal(size=(n, d))
    numbers[:, :3] += (s[:, None] - 45) / 20
    y = numbers[:, :4].sum(axis=1) + numbers[:, 0] * numbers[:, 1] + rng.logistic(size=n) > 0
    frame = pd.DataFrame(numbers).add_prefix("x")
    if kind == "categories":
        for j in range(1, d, 2):
            levels = 4 + 9 * j % 37
            codes = pd.qcut(frame[f"x{j}"], levels, labels=False).to_numpy()
            names = np.array([f"level {rng.permutation(levels)[i]:02d}" for i in range(levels)])
            frame[f"x{j}"] = names[codes]
    return frame, y, s


class Clock:
    """The processor time of a cell, and its record."""

    def __init__(self, record: dict[str, Any], most: float, repeats: int) -> None:
        self.record = record
        self.end = time.process_time() + most
        self.repeats = repeats

    def measure(self, name: str, action: Callable[[], Any], expected: float) -> None:
        """Record the median time of an action that takes so long, of as many as fit in; None where
        not even one does.
        """
        times: list[float] = []
        while len(times) < self.repeats and time.process_time() + expected < self.end:
            started = time.process_time()
            action()
            times.append(time.process_time() - started)
            expected = times[-1]
        self.record[name] = float(np.median(times)) if times else None


def cell(kind: str, n: int, d: int, repeats: int, most: float) -> dict[str, Any]:
    """Return the record of one table."""
    record: dict[str, Any] = {"kind": kind, "rows": n, "columns": d, "repeats": repeats}
    clock = Clock(record, most, repeats)
    frame, y, s = made_up(kind, n, d)
    plain = frame.astype(dict.fromkeys(frame.select_dtypes(exclude="number"), "category"))
    X = frame.to_numpy() if kind == "numbers" else frame
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = LGBMClassifier(n_jobs=1, verbose=-1)
        clock.measure("LightGBM fit", lambda: reference.fit(plain, y), 0.0)
        clock.measure("LightGBM predict", lambda: reference.predict_proba(plain), 0.0)
        expected = {name: fits * record["LightGBM fit"] for name, fits in EXPECTED.items()}
        fitted: Any = None
        for name in EXPECTED:
            if name == "predict":
                if fitted is not None:
                    clock.measure(name, lambda m=fitted: m.predict_proba(X), expected[name])
                continue
            arguments: dict[str, Any] = {"limit": None, "n_jobs": 1, "random_state": 0}
            model: Any = (
                ParityClassifier(**arguments) if name in AIMS else ParityEncoder(**arguments)
            )
            if name in AIMS:
                model.set_params(aim=name)
            clock.measure(name, lambda m=model: m.fit(X, y, sensitive_features=s), expected[name])
            if name == "score" and record[name] is not None:
                fitted = model
        if fitted is not None:
            one = X[:1]
            clock.measure("one row", lambda: [fitted.predict_proba(one) for _ in range(100)], 1.0)
            if record["one row"] is not None:
                record["one row"] *= 10  # milliseconds a row
    return record


def show(records: list[dict[str, Any]]) -> None:
    """Print the ratios, and the falls of the time of a fit."""
    print("| table | rows × columns | score | decision | rank | encoder | predict | one row, ms |")
    print("|---|---|---|---|---|---|---|---|")
    order = sorted(records, key=lambda one: (one["kind"], one["columns"], one["rows"]))
    for one in order:
        units = dict.fromkeys((*AIMS, "encoder"), one["LightGBM fit"])
        units |= {"predict": one["LightGBM predict"], "one row": 1.0}
        times = [(one.get(name), unit) for name, unit in units.items()]
        cells = " | ".join("–" if taken is None else f"{taken / unit:.1f}" for taken, unit in times)
        print(f"| {one['kind']} | {one['rows']:,} × {one['columns']} | {cells} |")
    for before, after in pairwise(order):
        same = before["kind"] == after["kind"] and before["columns"] == after["columns"]
        if not same or before["score"] is None or after["score"] is None:
            continue
        fall = 1 - after["score"] / before["score"]
        if fall > 0:
            print(
                f"{after['kind']}, {after['columns']} columns: {after['rows']:,} rows take"
                f" {fall:.0%} less than {before['rows']:,}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=240.0, help="of a cell, at most")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true", help="print what the file has, run nothing")
    arguments = parser.parse_args()
    arguments.out.touch()
    lines = arguments.out.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    done = {(one["kind"], one["rows"], one["columns"]) for one in records}
    cells = [
        (kind, n, d)
        for n in sorted(arguments.rows, reverse=True)
        for d in sorted(arguments.columns, reverse=True)
        for kind in arguments.kinds
        if (kind, n, d) not in done and not arguments.show
    ]
    work = Parallel(arguments.jobs, return_as="generator_unordered")
    for record in work(delayed(cell)(*one, arguments.repeats, arguments.seconds) for one in cells):
        records.append(record)
        with arguments.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    show(records)


if __name__ == "__main__":
    main()
