"""Audits of many rows and training on them on one machine: rows per second, peak memory, two
workers against one.

Writes Parquet files of 50 columns (a representation of 48, a score, an attribute) and a 0/1 target
part by part, then audits the 50 columns with `frhsic.distributed.audit` on clusters of one and two
processes, alternately. Memory is the peak of the largest worker, which imports the library first;
seconds are those of the two passes, since the audit of the sample does not grow with the rows.
Other programs disturb the clock more than processor time, so both are given: with cores of their
own, two workers need the processor seconds of the busier one.

Training is one epoch of `partial_fit` over the partitions of the fewest rows; the sample and the
first call on it, which do not grow with the rows, are timed by themselves.

Writes benchmarks/results/scale.json, and removes the files. 20 million rows take 4.1 GB of disk and
about 15 minutes on two cores.

    python benchmarks/scale.py --rows 2_000_000 20_000_000 --folder /tmp/frhsic-scale
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pyarrow import parquet

from frhsic import FRHSICClassifier, distributed
from frhsic.auditing import Settings
from frhsic.distributed.frames import read_files, table_files
from frhsic_paper.records import hardware

OUT = Path(__file__).parent / "results" / "scale.json"
SAMPLE_ROWS = 100_000
EMBEDDING = [f"z_{i}" for i in range(48)]
IMPORTS = ("frhsic.distributed", "dask.dataframe", "pyarrow.parquet")
QUICK = Settings(max_rows=200, probe_rows=500, resamples=199)  # the sample's part is not measured


def write(folder: Path, rows: int, part: int) -> list[str]:
    """Write the first `rows` rows, `part` in a file; files that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(rows // part):
        path = folder / f"part-{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        age = rng.gamma(4, 10, part).astype(np.float32)
        z = rng.standard_normal((part, len(EMBEDDING)), dtype=np.float32)
        z[:, 0] += age / 40
        score = 1 / (1 + np.exp(-(z[:, 0] - 1 + 0.5 * z[:, 1])))
        repaid = (rng.random(part, dtype=np.float32) < score).astype(np.uint8)
        values = {"age": age, "score": score, "repaid": repaid} | dict(zip(EMBEDDING, z.T))
        partial = path.with_suffix(".partial")
        parquet.write_table(pa.table(values), partial, compression=None, use_dictionary=False)
        partial.rename(path)
    return table_files(str(folder / "part-*.parquet"))[: rows // part]


def used() -> tuple[float, float]:
    """Return processor seconds and peak memory in bytes of this process."""
    lines = (
        Path("/proc/self/status").read_text().splitlines()
    )  # ru_maxrss would count what the parent held, too
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return time.process_time(), peak * 1024.0


def measured(paths: list[str], rows: int, embedding: list[str], workers: int) -> dict[str, float]:
    times: dict[str, float] = {}

    def watch(step: str) -> None:
        times[step] = time.perf_counter()

    with distributed.cluster(f"local:{workers}") as client:
        client.run(lambda: [importlib.import_module(name) for name in IMPORTS] and None)
        before = client.run(used)
        start = time.perf_counter()
        result = distributed.audit(
            read_files(paths, ["age", "score", *embedding]),
            sensitive="age",
            score="score",
            embedding=embedding,
            settings=replace(QUICK, watch=watch),
        )
        end = time.perf_counter()
        after = client.run(used)
    first = next(at for step, at in times.items() if step.startswith("sample")) - start
    second = end - next(at for step, at in times.items() if step.startswith("second"))
    processor = [after[worker][0] - before[worker][0] for worker in after]
    assert result.rows.used == rows, (result.rows.used, rows)
    return {
        "rows": rows,
        "columns": 2 + len(embedding),
        "workers": workers,
        "seconds_first_pass": first,
        "seconds_second_pass": second,
        "rows_per_second": rows / (first + second),
        "processor_seconds": sum(processor),
        "processor_seconds_of_the_busier_worker": max(processor),
        "processor_microseconds_per_row": sum(processor) / rows * 1e6,
        "peak_memory_mb": max(memory for _, memory in after.values()) / 1e6,
    }


def trained(paths: list[str], rows: int) -> dict[str, float]:
    """Train one epoch over the partitions; return seconds of the sample, of the first call on it
    and of the epoch.
    """
    before = used()
    model = FRHSICClassifier(penalty_weight=10, random_state=0)

    def learn(frame: pd.DataFrame) -> None:
        model.partial_fit(
            frame[EMBEDDING], frame["repaid"], sensitive_features=frame["age"], classes=[0, 1]
        )

    with distributed.cluster("local:1"):
        frame = read_files(paths, ["age", "repaid", *EMBEDDING])
        start = time.perf_counter()
        sample = frame.sample(frac=min(1.0, SAMPLE_ROWS / rows), random_state=0).compute()
        sampled = time.perf_counter()
        learn(sample)
        epoch = time.perf_counter()
        for part in frame.partitions:
            learn(part.compute())
    end = time.perf_counter()
    after = used()
    return {
        "rows": rows,
        "columns": len(EMBEDDING),
        "partitions": frame.npartitions,
        "seconds_sample": sampled - start,
        "seconds_first_call": epoch - sampled,
        "seconds_epoch": end - epoch,
        "rows_per_second": rows / (end - epoch),
        "processor_seconds": after[0] - before[0],
        "peak_memory_mb": after[1] / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument(
        "--part", type=int, default=250_000, help="rows of a file; the others are multiples of it"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "frhsic-scale"))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    sizes = sorted(options.rows)
    jobs: list[tuple[int, list[str], int]] = [(sizes[0], [], 1)]  # the score alone, for its cost
    jobs += [
        (rows, EMBEDDING, workers) for rows in [*sizes, sizes[0]] for workers in (2, 1)
    ]  # the fewest rows twice
    machine = hardware(torch.device("cpu"))
    results: dict[str, Any] = {"machine": machine, "cores": os.cpu_count(), "runs": []}
    for rows, z, workers in jobs:
        results["runs"].append(
            measured(write(options.folder, rows, options.part), rows, z, workers)
        )
        print(results["runs"][-1], flush=True)
    results["training"] = trained(write(options.folder, sizes[0], options.part), sizes[0])
    print(results["training"])
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    shutil.rmtree(options.folder)


if __name__ == "__main__":
    main()
