"""Latency of a saved model: one row, a million rows, and the command `frhsic predict`.

    python benchmarks/serving.py [--rows 1000000]

The models are the default ParityClassifier, fitted on 20,000 made-up rows, and an FRHSICClassifier
of the default size, on 500; four of the twelve columns are text. Times are on one thread of the
CPU, in processor time. For one row they are the median of many calls, for many rows the time of one
call.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch

from frhsic import FRHSICClassifier, ParityClassifier, load, save
from frhsic.training import Training


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = made_up(arguments.rows)
    network = FRHSICClassifier(training=Training(epochs=2), device="cpu", random_state=0)
    print("| model | what | time |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "new.csv"
        rows.to_csv(table, index=False)
        show("–", f"read {arguments.rows:,} rows of CSV", typical(lambda: pd.read_csv(table), 1))
        for model, fitted in ((ParityClassifier(random_state=0), 20_000), (network, 500)):
            measure(model, made_up(fitted), rows, table)


def measure(model: Any, train: pd.DataFrame, rows: pd.DataFrame, table: Path) -> None:
    """Print the times of one model; rows are those of the table."""
    s = np.random.default_rng(1).normal(size=len(train))
    train = train.assign(x0=train["x0"] + s)
    y = train.select_dtypes("number").sum(axis=1) > 0
    model.fit(train, y, sensitive_features=s)
    name = type(model).__name__
    path = table.with_name(f"{name}.frhsic")
    save(model, path)
    size = path.stat().st_size / 1024
    show(name, "load", typical(lambda: load(path), 5), f"; the file has {size:,.0f} KiB")
    model = load(path)
    show(name, "one row", typical(lambda: model.predict_proba(rows[:1]), 50))
    show(name, f"{len(rows):,} rows", typical(lambda: model.predict_proba(rows), 1))
    command = [sys.executable, "-m", "frhsic.cli", "predict", str(path), str(table)]
    code = (  # of a process of its own, whose peak of memory is the command's
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True,"
        " stdout=subprocess.DEVNULL); print(list(resource.getrusage(resource.RUSAGE_CHILDREN)[:3]))"
    )
    out = ["--out", str(path.with_suffix(".csv"))]
    line = subprocess.check_output([sys.executable, "-c", code, *command, *out], text=True)
    user, system, peak = json.loads(line)
    show(name, "`frhsic predict` of the CSV", user + system, f"; peak {peak / 1e6:.2f} GB")


def made_up(n: int) -> pd.DataFrame:
    """Return n rows of eight columns of normal numbers, and of four of text with five levels."""
    rng = np.random.default_rng(0)
    numbers = {f"x{i}": rng.normal(size=n) for i in range(8)}
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


def show(model: str, what: str, seconds: float, note: str = "") -> None:
    shown = f"{1000 * seconds:.2g} ms" if seconds < 1 else f"{seconds:.2g} s"
    print(f"| {model} | {what} | {shown}{note} |", flush=True)


if __name__ == "__main__":
    main()
