"""Audits of many rows and training on them on one machine: rows per second, peak memory, two workers against one.

Writes Parquet files of 50 columns (a representation of 48, a score, an attribute) and a 0/1 target part by part, then
audits the 50 columns with `frhsic.distributed.audit` on clusters of one and two processes, alternately. Memory is the
peak of the largest worker, which imports the library first; seconds are those of the two passes, since the audit of the
sample does not grow with the rows. Other programs disturb the clock more than processor time, so both are given: with
cores of their own, two workers need the processor seconds of the busier one.

Training is one epoch of `frhsic.distributed.fit` over the partitions of the fewest rows; the first call on the sample
on it, which do not grow with the rows, are timed by themselves.

Writes benchmarks/results/scale.json after each run. The same command continues where it stopped; the files are removed
after the last run. 20 million rows take 4.1 GB of disk and about 15 minutes on two cores.

    python benchmarks/scale.py --rows 2_000_000 20_000_000 --folder /tmp/frhsic-scale
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from frhsic import FRHSICClassifier, distributed
from frhsic.auditing import Settings
from frhsic.distributed.frames import read_files, table_files

OUT = Path(__file__).parent / "results" / "scale.json"
IMPORTS = ("frhsic.distributed", "dask.dataframe", "pyarrow.parquet")
QUICK = Settings(max_rows=200, probe_rows=500, resamples=199)  # the sample's part is not measured


def write(folder: Path, rows: int, columns: int, part: int) -> list[str]:
    """Write the first `rows` rows, `part` in a file; files that are there already are kept."""
    if rows % part:
        raise SystemExit(f"{rows:,} rows are not a multiple of the {part:,} rows of a file.")
    folder.mkdir(parents=True, exist_ok=True)
    parts = rows // part
    needed = rows * columns * 4 * 1.2
    free = shutil.disk_usage(folder).free
    if needed > 0.8 * free:
        raise SystemExit(f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free in {folder}.")
    for number in range(parts):
        path = folder / f"part-{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        age = rng.gamma(4, 10, part).astype(np.float32)
        z = rng.standard_normal((part, columns - 2), dtype=np.float32)
        z[:, 0] += age / 40
        score = 1 / (1 + np.exp(-(z[:, 0] - 1 + 0.5 * z[:, 1])))
        repaid = (rng.random(part, dtype=np.float32) < score).astype(np.uint8)
        z_columns = {f"z_{i}": z[:, i] for i in range(columns - 2)}
        values = {"age": age, "score": score, "repaid": repaid} | z_columns
        partial = path.with_suffix(".partial")
        parquet.write_table(pa.table(values), partial, compression=None, use_dictionary=False)
        partial.rename(path)
    return table_files(str(folder / "part-*.parquet"))[:parts]


def used() -> tuple[float, float]:
    """Return processor seconds and peak memory in bytes of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    status = Path("/proc/self/status")  # ru_maxrss would count what the parent held when it started this process
    lines = status.read_text().splitlines() if status.exists() else []
    peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), own.ru_maxrss)
    return own.ru_utime + own.ru_stime, peak * 1024.0


def measured(paths: list[str], rows: int, embedding: list[str], workers: int) -> dict[str, float]:
    times: dict[str, float] = {}

    def watch(step: str) -> None:
        times[step] = time.perf_counter()

    load = os.getloadavg()[0]
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
        "features": result.settings["features"],
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "seconds_first_pass": first,
        "seconds_second_pass": second,
        "rows_per_second": rows / (first + second),
        "processor_seconds": sum(processor),
        "processor_seconds_of_the_busier_worker": max(processor),
        "processor_microseconds_per_row": sum(processor) / rows * 1e6,
        "peak_memory_mb": max(memory for _, memory in after.values()) / 1e6,
        "memory_before_mb": max(memory for _, memory in before.values()) / 1e6,
        "gdp": result["age"].all_rows["gdp"].value,
        "hsic": result["age"].all_rows["hsic"].value,
    }


def trained(paths: list[str], rows: int, features: list[str]) -> dict[str, float]:
    """Train one epoch over the partitions; return seconds of the sample, of the first call on it and of the epoch."""
    times: list[tuple[str, float]] = []

    def watch(step: str) -> None:
        times.append((step, time.perf_counter()))

    load, before = os.getloadavg()[0], used()
    with distributed.cluster("local:1"):
        frame = read_files(paths, ["age", "repaid", *features])
        distributed.fit(
            FRHSICClassifier(penalty_weight=10, random_state=0), frame, target="repaid", sensitive="age", watch=watch
        )
    end, after = time.perf_counter(), used()
    (_, start), (_, sampled), (_, epoch) = times[:3]
    return {
        "rows": rows,
        "columns": len(features),
        "partitions": len(times) - 2,
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "seconds_sample": sampled - start,
        "seconds_first_call": epoch - sampled,
        "seconds_epoch": end - epoch,
        "rows_per_second": rows / (end - epoch),
        "processor_seconds": after[0] - before[0],
        "peak_memory_mb": after[1] / 1e6,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--part", type=int, default=250_000, help="Rows of a file.")
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=2, help="Runs of the fewest rows; more rows are run once.")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/frhsic-scale"))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(arguments)
    embedding = [f"z_{i}" for i in range(options.columns - 2)]
    sizes = sorted(options.rows)
    jobs = [(sizes[0], [], 1)]  # the score alone, for its cost
    jobs += [(rows, embedding, workers) for rows in sizes for workers in (2, 1)]
    jobs += [(sizes[0], embedding, workers) for _ in range(options.repeats - 1) for workers in (2, 1)]
    results: dict[str, Any] = {"cores": os.cpu_count(), "runs": [], "training": None}
    if options.out.exists():
        results |= json.loads(options.out.read_text())

    def keep(run: dict[str, float]) -> None:
        print({key: round(value, 4) for key, value in run.items()}, flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")

    done = Counter((run["rows"], run["columns"], run["workers"]) for run in results["runs"])
    for rows, z, workers in jobs:
        if done[rows, 2 + len(z), workers]:
            done[rows, 2 + len(z), workers] -= 1
            continue
        paths = write(options.folder, rows, options.columns, options.part)
        results["runs"].append(measured(paths, rows, z, workers))
        keep(results["runs"][-1])
    if results["training"] is None:
        paths = write(options.folder, sizes[0], options.columns, options.part)
        results["training"] = trained(paths, sizes[0], embedding)
        keep(results["training"])
    for path in options.folder.glob("part-*"):
        path.unlink()


if __name__ == "__main__":
    main()
