"""An audit of many rows on one machine: rows per second, peak memory of a worker, two workers against one.

Writes Parquet files of 50 columns (a representation of 48, a score, an attribute) part by part, then audits them with
`frhsic.distributed.audit` on clusters of one and two processes. Memory is the peak of the largest worker, which
imports the library first; seconds are those of the two passes, since the audit of the sample does not grow with the
rows. Processor seconds per row are less disturbed by other programs than the clock. Writes
benchmarks/results/scale.json.

    python benchmarks/scale.py --rows 2_000_000 20_000_000 --folder /tmp/frhsic-scale
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from frhsic import distributed
from frhsic.auditing import Settings
from frhsic.distributed.files import read_files, table_files

OUT = Path(__file__).parent / "results" / "scale.json"
PART = 250_000  # rows of a file
QUICK = Settings(max_rows=200, probe_rows=500, resamples=199, shuffles=1)  # the sample's part is not measured


def write(folder: Path, rows: int, columns: int) -> list[str]:
    """Write the first `rows` rows; files that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = -(-rows // PART)
    needed = rows * columns * 4 * 1.2
    free = shutil.disk_usage(folder).free
    if needed > 0.8 * free:
        raise SystemExit(f"{needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free in {folder}.")
    for number in range(parts):
        path = folder / f"part-{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        age = rng.gamma(4, 10, PART).astype(np.float32)
        z = rng.standard_normal((PART, columns - 2), dtype=np.float32)
        z[:, 0] += age / 40
        score = 1 / (1 + np.exp(-(z[:, 0] - 1 + 0.5 * z[:, 1])))
        values = {"age": age, "score": score} | {f"z_{i}": z[:, i] for i in range(columns - 2)}
        partial = path.with_suffix(".partial")
        parquet.write_table(pa.table(values), partial, compression=None, row_group_size=PART)
        partial.rename(path)
    return table_files(str(folder / "part-*.parquet"))[:parts]


def used() -> tuple[float, float]:
    """Return processor seconds and peak memory in bytes of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime, own.ru_maxrss * 1024.0


def measured(paths: list[str], rows: int, columns: int, workers: int, features: int) -> dict[str, float]:
    times: dict[str, float] = {}

    def watch(step: str) -> None:
        times[step] = time.perf_counter()

    names = ["age", "score", *(f"z_{i}" for i in range(columns - 2))]
    with distributed.cluster(f"local:{workers}") as client:
        client.run(lambda: __import__("frhsic.distributed"))
        before = client.run(used)
        start = time.perf_counter()
        result = distributed.audit(
            read_files(paths, names),
            sensitive="age",
            score="score",
            embedding=names[2:],
            settings=QUICK,
            features=features,
            watch=watch,
        )
        end = time.perf_counter()
        after = client.run(used)
    first = next(at for step, at in times.items() if step.startswith("sample")) - start
    second = end - next(at for step, at in times.items() if step.startswith("second"))
    seconds = first + second
    cpu = sum(after[worker][0] - before[worker][0] for worker in after)
    assert result.rows.used == rows
    return {
        "rows": rows,
        "columns": columns,
        "workers": workers,
        "features": features,
        "seconds_first_pass": first,
        "seconds_second_pass": second,
        "rows_per_second": rows / seconds,
        "processor_microseconds_per_row": cpu / rows * 1e6,
        "peak_memory_mb": max(memory for _, memory in after.values()) / 1e6,
        "memory_before_mb": max(memory for _, memory in before.values()) / 1e6,
        "gdp": result["age"].all_rows["gdp"].value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/frhsic-scale"))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    runs = []
    for rows in sorted(options.rows):
        paths = write(options.folder, rows, options.columns)
        for workers in (1, 2):
            run = measured(paths, rows, options.columns, workers, options.features)
            runs.append(run)
            print({key: round(value, 4) for key, value in run.items()}, flush=True)
    by = {(run["rows"], run["workers"]): run for run in runs}
    least, most = min(options.rows), max(options.rows)
    ratios = {
        "two_workers_against_one": by[most, 2]["rows_per_second"] / by[most, 1]["rows_per_second"],
        "memory_of_most_rows_against_least": by[most, 2]["peak_memory_mb"] / by[least, 2]["peak_memory_mb"],
        "rows": most / least,
    }
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f}")
    machine = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
    options.out.write_text(json.dumps({"machine": machine, "runs": runs, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()
