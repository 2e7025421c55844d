"""How time and memory of train, predict and audit grow with rows, columns, levels and attributes.

    python benchmarks/growth.py --jobs 16 [--cap 300] [--out growth.json]

Every point runs in a process of its own, on one thread, for at most `--cap` seconds; what takes
longer is a dash. Tables are made up, with three numeric columns in four and text in the others:

- rows from 10,000 to a million, of twelve columns;
- columns from 10 to 3,000, of 20,000 rows;
- levels of one of twelve columns from 10 to 100,000, in 200,000 rows;
- attributes from 1 to 20, with 10,000 rows of twelve columns.

Train is `fit` of the default ParityClassifier, predict its `predict_proba` for the same rows, and
audit `frhsic.audit` of a score with the target, or of a representation with so many columns; audits
see no levels. Seconds are processor time, and memory is the peak above that of 500 rows, the table
included. The exponent is the slope of their logarithms from the second largest size that ended to
the largest, where constant parts matter least.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Sizes of each dimension
SIZES = {
    "rows": [10_000, 30_000, 100_000, 300_000, 1_000_000],
    "columns": [10, 100, 1_000, 3_000],
    "levels": [10, 1_000, 10_000, 100_000],
    "attributes": [1, 2, 5, 10, 20],
}
# Rows and columns of the other dimensions
SHAPES = {"rows": (0, 12), "columns": (20_000, 0), "levels": (200_000, 12)}
SHAPES["attributes"] = (10_000, 12)
OPERATIONS = ("train", "predict", "audit")
# Rows that an operation sees first, so that imports do not count
FEW = 500


def made_up(dimension: str, size: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return a table, its target and its attributes."""
    n, d = SHAPES[dimension]
    n = size if dimension == "rows" else n
    d = size if dimension == "columns" else d
    rng = np.random.default_rng(0)
    s = rng.uniform(20, 70, size=(n, size if dimension == "attributes" else 1))
    numbers = rng.normal(size=(n, d - d // 4))
    numbers[:, :3] += (s[:, :1] - 45) / 20
    columns: dict[str, Any] = {f"x{j}": column for j, column in enumerate(numbers.T)}
    for j in range(d // 4):
        levels = size if dimension == "levels" and j == 0 else 5
        names = np.array([f"level {i}" for i in range(levels)])
        columns[f"t{j}"] = names[rng.integers(levels, size=n)]
    y = numbers[:, :4].sum(axis=1) + rng.normal(size=n) > 0
    return pd.DataFrame(columns), y, s


def measured(dimension: str, size: int, operation: str, folder: Path) -> dict[str, float]:
    """Return seconds and memory of one operation; train leaves its model in the folder."""
    import frhsic

    path = folder / f"{dimension}-{size}.frhsic"
    model = None
    if operation == "train":
        trained(*made_up("rows", FEW))
    elif operation == "predict":
        model = frhsic.load(path)
    else:
        audited(*made_up("rows", FEW), represented=False)
    before = peak()
    X, y, s = made_up(dimension, size)
    started = time.process_time()
    if operation == "train":
        model = trained(X, y, s)
    elif model is not None:
        model.predict_proba(X)
    else:
        audited(X, y, s, represented=dimension == "columns")
    record = {"seconds": time.process_time() - started, "gigabytes": peak() - before}
    if operation == "train":
        frhsic.save(model, path)
    return record


def trained(X: pd.DataFrame, y: np.ndarray, s: np.ndarray) -> Any:
    """Return the default model of a table."""
    import frhsic

    model = frhsic.ParityClassifier(random_state=0, n_jobs=1)
    return model.fit(X, y, sensitive_features=s)


def audited(X: pd.DataFrame, y: np.ndarray, s: np.ndarray, *, represented: bool) -> None:
    """Audit a score, or a representation by all numbers of the table."""
    import frhsic

    z = X.select_dtypes("number").to_numpy()
    f = 1 / (1 + np.exp(-z[:, :4].sum(axis=1)))
    frhsic.audit(z if represented else f, s, y, scores=f)


def peak() -> float:
    """Return the largest memory of this process so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def in_process(
    dimension: str, size: int, operation: str, folder: Path, cap: float
) -> dict[str, Any]:
    """Return the record of a point that runs in a process of its own."""
    command = [sys.executable, __file__, "--point", dimension, str(size), operation, str(folder)]
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    record: dict[str, Any] = {"dimension": dimension, "size": size, "operation": operation}
    try:
        done = subprocess.run(
            command, env=environment, timeout=cap, capture_output=True, text=True, check=True
        )
        record |= json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        record["failed"] = f"more than {cap:g} s"
    except subprocess.CalledProcessError as error:
        record["failed"] = error.stderr.strip().splitlines()[-1]
    print(record, flush=True)
    return record


def run(dimensions: dict[str, list[int]], cap: float, jobs: int) -> list[dict[str, Any]]:
    """Return a record of each point, the largest first; a model is used as soon as it is there."""

    def served(dimension: str, size: int) -> list[dict[str, Any]]:
        started = time.perf_counter()
        records = [in_process(dimension, size, "train", folder, cap)]
        left = cap - (time.perf_counter() - started)
        if "seconds" in records[0] and left > 0:
            records.append(in_process(dimension, size, "predict", folder, left))
        return records

    def measured_alone(dimension: str, size: int) -> list[dict[str, Any]]:
        return [in_process(dimension, size, "audit", folder, cap)]

    cells = {
        (dimension, size): (
            (size if dimension == "rows" else SHAPES[dimension][0])
            * (size if dimension == "columns" else SHAPES[dimension][1])
            * (size if dimension == "attributes" else 1)
        )
        for dimension, sizes in dimensions.items()
        for size in sizes
    }
    points = sorted(cells, key=cells.__getitem__, reverse=True)
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        futures = []
        for point in points:
            futures.append(pool.submit(served, *point))
            if point[0] != "levels":
                futures.append(pool.submit(measured_alone, *point))
        return [record for future in futures for record in future.result()]


def show(records: list[dict[str, Any]], dimensions: dict[str, list[int]]) -> None:
    """Print the table, with the exponents."""
    known = {(one["dimension"], one["size"], one["operation"]): one for one in records}
    for dimension, sizes in dimensions.items():
        heads = " | ".join(f"{size:,}" for size in sizes)
        print(f"\n| {dimension} | {heads} | exponent of time | of memory |")
        print("|---|" + "---|" * (len(sizes) + 2))
        for operation in OPERATIONS:
            points = [known.get((dimension, size, operation), {}) for size in sizes]
            cells = [
                f"{one['seconds']:.3g} s, {one['gigabytes']:.2f} GB" if "seconds" in one else "–"
                for one in points
            ]
            ended = [(size, one) for size, one in zip(sizes, points) if "seconds" in one][-2:]
            for measure in ("seconds", "gigabytes"):
                cells.append("–")
                if len(ended) == 2 and min(one[measure] for _, one in ended) > 0:
                    (small, first), (large, last) = ended
                    slope = math.log(last[measure] / first[measure]) / math.log(large / small)
                    cells[-1] = f"{slope:.2f}"
            print(f"| {operation} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cap", type=float, default=300.0, help="seconds of a point, at most")
    parser.add_argument("--dimensions", default=",".join(SIZES))
    parser.add_argument("--points", type=int, help="only so many sizes, the smallest; for a trial")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--point", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        dimension, size, operation, folder = arguments.point
        print(json.dumps(measured(dimension, int(size), operation, Path(folder))))
        return
    dimensions = {name: SIZES[name][: arguments.points] for name in arguments.dimensions.split(",")}
    records = run(dimensions, arguments.cap, arguments.jobs)
    show(records, dimensions)
    if arguments.out:
        arguments.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
