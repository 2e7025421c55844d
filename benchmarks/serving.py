"""Latency of a saved model: one row, a million rows, and the command `frhsic predict`.

    python benchmarks/serving.py [--rows 1000000]

The model is an FRHSICClassifier of the default size, fitted on made-up rows; four of its 20 columns
are text. Times are on one thread of the CPU, in processor time, so that other work on the machine
does not count. For one row they are the median of many calls, for many rows the time of one call.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from frhsic import FRHSICClassifier, load, save
from frhsic.cli._terminal import Reading
from frhsic.cli.predict import predict
from frhsic.training import Training


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, rows = made_up(500), made_up(arguments.rows)
    numbers = train.select_dtypes("number").to_numpy()
    y, s = numbers[:, 0] > 0, np.random.default_rng(1).normal(size=500)
    network = FRHSICClassifier(training=Training(epochs=2), device="cpu", random_state=0)
    model, plain = (clone(network).fit(X, y, sensitive_features=s) for X in (train, numbers))
    print("| what | time |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "model.frhsic", Path(folder) / "new.csv"
        save(model, path)
        rows.to_csv(table, index=False)
        size = path.stat().st_size / 1024
        show("load the model", typical(lambda: load(path), 5), f"; the file has {size:,.0f} KiB")
        model = load(path)
        show("one row, DataFrame", typical(lambda: model.predict_proba(rows[:1]), 200))
        show("one row, array", typical(lambda: plain.predict_proba(numbers[:1]), 200))
        show(f"{arguments.rows:,} rows, DataFrame", typical(lambda: model.predict_proba(rows), 1))
        asked = {
            "model": path,
            "table": table,
            "out": Path(folder) / "scores.csv",
            "keep": None,
            **vars(Reading()),
        }
        show(
            f"`frhsic predict`, {arguments.rows:,} rows of CSV",
            typical(lambda: predict(**asked), 1),
        )


def made_up(n: int) -> pd.DataFrame:
    """Return n rows of sixteen columns of normal numbers, and of four of text with five levels."""
    rng = np.random.default_rng(0)
    numbers = {f"x{i}": rng.normal(size=n) for i in range(16)}
    return pd.DataFrame(
        numbers | {f"t{i}": rng.choice(["a", "b", "c", "d", "e"], n) for i in range(4)}
    )


def typical(call: Callable[[], Any], repeats: int) -> float:
    """Return the median seconds of a call; several calls are preceded by one that is not
    counted.
    """
    if repeats > 1:
        call()
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return median(seconds)


def show(what: str, seconds: float, note: str = "") -> None:
    shown = f"{1000 * seconds:.2g} ms" if seconds < 1 else f"{seconds:.2g} s"
    print(f"| {what} | {shown}{note} |", flush=True)


if __name__ == "__main__":
    main()
