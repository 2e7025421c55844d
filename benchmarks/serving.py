"""Latency of served models: one row and 100,000 rows, by training size and number of columns.

    python benchmarks/serving.py [--rows 100000] [--sizes 1000 8000 30000] [--columns 5 40 300]

writes results/serving.json. Each model is fitted on made-up numbers that follow an attribute:

- default: ParityClassifier; frozen: the same around a LightGBM that was fitted on other rows;
- distilled: `distill` of the default; onnx: the same in onnxruntime, if it is installed;
- lightgbm: LGBMClassifier at its defaults, on the same rows;
- network: FRHSICClassifier, at 1,000 rows only, if torch is installed.

Times are processor time on one thread: of one row, an array, the median of many calls; of many rows
the least of a few. Memory is that of the process after loading, less that of one that has imported
the same modules. The last entry is `frhsic predict` of a CSV file.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.frozen import FrozenEstimator

from frhsic import ParityClassifier, distill, load, save
from frhsic._lazy import has_torch

OUT = Path(__file__).parent / "results" / "serving.json"
MEMORY = (
    "import resource, sys, lightgbm, sklearn.pipeline, pandas, frhsic; from frhsic import load,"
    " ParityClassifier\nsize = lambda: int(open('/proc/self/statm').read().split()[1])\n"
    "before = size(); model = load(sys.argv[1]); print((size() - before) * 4096)"
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 8_000, 30_000])
    parser.add_argument("--columns", type=int, nargs="+", default=[5, 40, 300])
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    record: dict[str, Any] = {"machine": processor(), "rows": arguments.rows, "models": []}
    with tempfile.TemporaryDirectory() as folder:
        for columns in arguments.columns:
            for size in arguments.sizes:
                for name, times in measured(size, columns, arguments.rows, Path(folder)):
                    entry = {"model": name, "trained on": size, "columns": columns, **times}
                    record["models"].append(entry)
                    print(entry, flush=True)
                    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
        record["predict of a CSV"] = command_times(arguments.rows, Path(folder))
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def processor() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((x.partition(": ")[2] for x in lines if x.startswith("model name")), "unknown")


def made_up(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return numbers of which a tenth follow an attribute, a target of two classes, and the
    attribute.
    """
    rng = np.random.default_rng(seed)
    s = rng.normal(size=rows)
    X = rng.normal(size=(rows, columns))
    some = max(columns // 10, 1)
    X[:, :some] += s[:, None]
    margin = X[:, :some].mean(axis=1) + X[:, -1] * (X[:, 1] > 0) + rng.logistic(size=rows)
    return X, margin > 0, s


def measured(
    size: int, columns: int, rows: int, folder: Path
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what each model of one size takes, by its name."""
    X, y, s = made_up(size, columns, 0)
    many = made_up(rows, columns, 2)[0]
    default = ParityClassifier(random_state=0, n_jobs=1).fit(X, y, sensitive_features=s)
    yield "default", times_of(default, many, folder)
    other = made_up(size, columns, 1)
    production = LGBMClassifier(n_jobs=1, verbose=-1).fit(*other[:2])
    frozen = ParityClassifier(FrozenEstimator(production), random_state=0, n_jobs=1)
    yield "frozen", times_of(frozen.fit(X, y, sensitive_features=s), many, None)
    plain = LGBMClassifier(n_jobs=1, verbose=-1).fit(X, y)
    served = distill(default, None, X, y, sensitive_features=s)
    yield (
        "distilled",
        times_of(served, many, folder)
        | {
            "trees": served.model.num_trees(),
            "loss": served.costs[0].after - served.costs[0].before,
            "gap": served.costs[-1].after - served.costs[-1].before,
        },
    )
    yield "lightgbm", times_of(plain, many, None)
    try:
        import onnxruntime
    except ModuleNotFoundError:
        return
    path = folder / "model.onnx"
    served.to_onnx(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    times = call_times(lambda table: session.run(None, {"X": table}), many)
    yield "onnx", times | {"kibibytes": path.stat().st_size / 1024}
    if size == 1_000 and has_torch():
        from frhsic import FRHSICClassifier
        from frhsic.training import Training

        network = FRHSICClassifier(training=Training(epochs=2), device="cpu", random_state=0)
        yield "network", times_of(network.fit(X, y, sensitive_features=s), many, folder)


def times_of(model: Any, many: np.ndarray, folder: Path | None) -> dict[str, float]:
    """Return the times of a model, and if there is a folder, those of its file and its memory."""
    times = call_times(model.predict_proba, many)
    if folder is None:
        return times
    path = folder / "model.frhsic"
    save(model, path)
    memory = subprocess.check_output([sys.executable, "-c", MEMORY, str(path)], text=True)
    return times | {
        "kibibytes": path.stat().st_size / 1024,
        "load": least(lambda: load(path), 3),
        "megabytes": int(memory) / 1e6,
    }


def call_times(call: Callable[[np.ndarray], Any], many: np.ndarray) -> dict[str, float]:
    """Return the seconds of one row and of many rows."""
    one = many[:1]
    call(one)
    seconds = [timed(lambda: call(one)) for _ in range(200)]
    return {"one row": median(seconds), "all rows": least(lambda: call(many), 3)}


def least(call: Callable[[], Any], repeats: int) -> float:
    """Return the least time of some calls."""
    return min(timed(call) for _ in range(repeats))


def timed(call: Callable[[], Any]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def command_times(rows: int, folder: Path) -> dict[str, float]:
    """Return processor time and peak memory of `frhsic predict`, of models of 8,000 rows of eight
    columns of numbers and four of text.
    """
    rng = np.random.default_rng(0)
    X, y, s = made_up(rows, 8, 0)
    frame = pd.DataFrame(X).add_prefix("x")
    frame = frame.assign(**{f"t{i}": rng.choice([*"abcde"], rows) for i in range(4)})
    table = folder / "new.csv"
    frame.to_csv(table, index=False)
    some = slice(0, 8_000)
    model = ParityClassifier(random_state=0, n_jobs=1)
    model.fit(frame[some], y[some], sensitive_features=s[some])
    served = distill(model, None, frame[some], y[some], sensitive_features=s[some])
    code = (
        "import json, resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True,"
        " stdout=subprocess.DEVNULL); print(list(resource.getrusage(resource.RUSAGE_CHILDREN)[:3]))"
    )
    result = {}
    for name, one in (("default", model), ("distilled", served)):
        path = folder / "model.frhsic"
        save(one, path)
        command = [sys.executable, "-m", "frhsic", "predict", str(path), str(table)]
        command += ["--out", str(folder / "scores.csv")]
        line = subprocess.check_output([sys.executable, "-c", code, *command], text=True)
        user, system, peak = json.loads(line)
        result |= {f"{name}, seconds": user + system, f"{name}, gigabytes": peak / 1e6}
    return result


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
