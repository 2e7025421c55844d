"""Latency of a saved model: one row, a million rows, and the command `frhsic predict`.

    python benchmarks/serving.py [--rows 1000000]     # writes results/serving.json

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
from frhsic_paper.records import hardware

OUT = Path(__file__).parent / "results" / "serving.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = made_up(arguments.rows)
    network = FRHSICClassifier(training=Training(epochs=2), device="cpu", random_state=0)
    record = {"machine": hardware(torch.device("cpu")), "rows": len(rows), "columns": rows.shape[1]}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "new.csv"
        rows.to_csv(table, index=False)
        for model, fitted in ((ParityClassifier(random_state=0), 20_000), (network, 500)):
            name = type(model).__name__
            record[name] = measured(model, made_up(fitted), rows, table)
            print(name, record[name], flush=True)
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def measured(model: Any, train: pd.DataFrame, rows: pd.DataFrame, table: Path) -> dict[str, float]:
    """Return the seconds of one model, and its sizes; rows are those of the table."""
    s = np.random.default_rng(1).normal(size=len(train))
    train = train.assign(x0=train["x0"] + s)
    y = train.select_dtypes("number").sum(axis=1) > 0
    model.fit(train, y, sensitive_features=s)
    path = table.with_name("model.frhsic")
    save(model, path)
    loaded = typical(lambda: load(path), 5)
    model = load(path)
    command = [sys.executable, "-m", "frhsic.cli", "predict", str(path), str(table)]
    code = (  # of a process of its own, whose peak of memory is the command's
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True,"
        " stdout=subprocess.DEVNULL); print(list(resource.getrusage(resource.RUSAGE_CHILDREN)[:3]))"
    )
    out = ["--out", str(path.with_suffix(".csv"))]
    line = subprocess.check_output([sys.executable, "-c", code, *command, *out], text=True)
    user, system, peak = json.loads(line)
    return {
        "kibibytes": path.stat().st_size / 1024,
        "load": loaded,
        "one row": typical(lambda: model.predict_proba(rows[:1]), 50),
        "all rows": typical(lambda: model.predict_proba(rows), 1),
        "predict of the CSV": user + system,
        "gigabytes": peak / 1e6,
    }


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


if __name__ == "__main__":
    main()
