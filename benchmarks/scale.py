"""Audits of many rows and training on them: rows per second, peak memory, and workers against
fewer of them.

Writes Parquet files of 50 columns (a representation of 48, a score, an attribute) and a 0/1 target
part by part, then audits the 50 columns with `frhsic.distributed.audit` on clusters of one and two
processes, alternately. Memory is the peak of the largest worker, which imports the library first;
seconds are those of the two passes, since the audit of the sample does not grow with the rows.
Other programs disturb the clock more than processor time, so both are given: with cores of their
own, two workers need the processor seconds of the busier one.

`--fit` measures `frhsic.distributed.fit` instead, for each number of rows and of `--workers`: a
ParityClassifier of 20 columns (12 numbers, three with missing values and five categories), whose
labels are drawn from known probabilities. So the log loss of the model without a limit has a least
value, which stands beside it; the gap of the probabilities themselves stands beside that of the
model. It writes results/scale_fit.jsonl, a line for each run: seconds of each share of the work,
processor seconds and peak memory of each worker and of the client, and the trade-offs; 0 workers
are `fit` on one machine. The files stay in the folder, for other runs. `--seeds` are those of the
estimator.

    python benchmarks/scale.py --fit --rows 100_000 1_000_000 --workers 0 1 2

Training of networks is one epoch of `partial_fit` over the partitions of the fewest rows; the
sample and the first call on it, which do not grow with the rows, are timed by themselves.

Writes benchmarks/results/scale.json, and removes the files. 20 million rows take 4.1 GB of disk and
about 15 minutes on two cores.

    python benchmarks/scale.py --rows 2_000_000 20_000_000 --folder /tmp/frhsic-scale
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from concurrent import futures
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from pyarrow import parquet

from frhsic import FRHSICClassifier, ParityClassifier, _progress, distributed, gdp
from frhsic.auditing import Settings
from frhsic.distributed.frames import read_files, table_files
from frhsic_paper.records import hardware

OUT = Path(__file__).parent / "results" / "scale.json"
SAMPLE_ROWS = 100_000
FIT_OUT = OUT.with_name("scale_fit.jsonl")
NUMBERS = [f"x_{i}" for i in range(12)]
LACKING = [f"m_{i}" for i in range(3)]
CATEGORIES = [f"c_{i}" for i in range(5)]
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
        unfinished = path.with_suffix(".partial")
        parquet.write_table(pa.table(values), unfinished, compression=None, use_dictionary=False)
        unfinished.rename(path)
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


def write_people(folder: Path, rows: int, part: int) -> list[str]:
    """Write rows with labels of known probabilities, `part` in a file, on all cores; files that are
    there already are kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    count = -(-rows // part)
    paths = [folder / f"people-{part}-{number:05d}.parquet" for number in range(count)]
    lacking = [number for number, path in enumerate(paths) if not path.exists()]
    context = multiprocessing.get_context("spawn")
    with futures.ProcessPoolExecutor(min(len(lacking), os.cpu_count() or 1) or 1, context) as pool:
        sizes = [min(part, rows - number * part) for number in lacking]
        files = [paths[number] for number in lacking]
        list(pool.map(write_part, files, lacking, [number * part for number in lacking], sizes))
    return [str(path) for path in paths]


def write_part(path: Path, number: int, first_row: int, n: int) -> None:
    """Write one file of rows."""
    rng = np.random.default_rng([1, number])
    age = rng.gamma(4, 10, n)
    x = rng.normal(size=(n, len(NUMBERS)))
    x[:, 0] += age / 40
    x[:, 1] -= age / 60
    m = rng.normal(size=(n, len(LACKING))) + x[:, :3] / 2
    levels = [rng.integers(0, 3 + 8 * i, n) for i in range(len(CATEGORIES))]
    levels[0] = (levels[0] + (age > 45)) % 3
    odds = x[:, 0] - 1 + 0.5 * np.sin(2 * x[:, 1]) + 0.6 * x[:, 2] * (x[:, 3] > 0)
    odds += 0.5 * (levels[0] == 1) - 0.4 * (levels[1] < 4) + 0.3 * np.maximum(m[:, 0], 0)
    chance = 1 / (1 + np.exp(-odds))
    columns: dict[str, Any] = dict(zip(NUMBERS, x.T))
    for name, column in zip(LACKING, m.T):
        # it is missing at random, so that what is known of the label is known without it
        columns[name] = pa.array(column, mask=rng.random(n) < 0.1)
    for i, (name, codes) in enumerate(zip(CATEGORIES, levels)):
        texts = [f"level {level}" for level in range(3 + 8 * i)]
        columns[name] = pa.DictionaryArray.from_arrays(codes, texts)
    columns |= {
        "age": age,
        "chance": chance,
        "repaid": (rng.random(n) < chance).astype(np.int8),
        "row": np.arange(n) + first_row,
    }
    unfinished = path.with_suffix(".partial")
    parquet.write_table(pa.table(columns), unfinished)
    unfinished.rename(path)


FITTED = [*NUMBERS, *LACKING, *CATEGORIES, "age", "repaid"]


def least_loss(paths: list[str]) -> tuple[float, float]:
    """Return the log loss of the probabilities that labels were drawn from where nothing is
    missing, hence a bound for all models, and their gap by age on the first file.
    """
    total = 0.0
    rows = 0
    for path in paths:
        table = pd.read_parquet(path, columns=["chance", "repaid"])
        right = np.where(table["repaid"] == 1, table["chance"], 1 - table["chance"])
        total -= float(np.log(right).sum())
        rows += len(table)
    first = pd.read_parquet(paths[0], columns=["chance", "age"])
    return total / rows, float(gdp(first["chance"], first["age"], resamples=0))


def described(model: ParityClassifier) -> dict[str, Any]:
    """Return what a fitted model says of itself."""
    frontier = model.frontier_
    gap = frontier.gaps["age"][0]
    return {
        "log_loss": float(frontier.performance["log_loss"][0]),
        "log_loss_error": float(frontier.performance["log_loss_error"][0]),
        "gap": gap.value,
        "gap_low": gap.low,
        "gap_high": gap.high,
        "chosen_gap": model.choice_.gaps["age"].value,
        "chosen_log_loss": float(frontier.performance["log_loss"][model.choice_.position]),
        "path_log_loss": frontier.performance["log_loss"].tolist(),
        "path_gap": [each.value for each in frontier.gaps["age"]],
        "path_gap_error": [(each.high - each.low) / 3.92 for each in frontier.gaps["age"]],
    }


def fitted(paths: list[str], seed: int, workers: int) -> dict[str, Any]:
    """Fit on a cluster of processes of this machine."""
    shares: dict[int, float] = {}
    start = time.perf_counter()

    def listen(done: int, total: int | None, unit: str) -> None:
        shares.setdefault(done, time.perf_counter() - start)

    with distributed.cluster(f"local:{workers}") as client:
        client.run(lambda: [importlib.import_module(name) for name in IMPORTS] and None)
        before = client.run(used)
        own = used()
        start = time.perf_counter()
        with _progress.listen(listen):
            model = distributed.fit(
                ParityClassifier(random_state=seed),
                read_files(paths, [*FITTED, "row"]),
                target="repaid",
                sensitive_features="age",
                key="row",
            )
        seconds = time.perf_counter() - start
        after = client.run(used)
    here = used()
    return {
        "seconds": seconds,
        "seconds_at_percent": shares,
        "processor_seconds": [after[worker][0] - before[worker][0] for worker in after],
        "peak_memory_mb": [memory / 1e6 for _, memory in after.values()],
        "client_processor_seconds": here[0] - own[0],
        "client_peak_memory_mb": here[1] / 1e6,
        **described(model),
    }


def fitted_here(paths: list[str], seed: int) -> dict[str, Any]:
    """Fit in the memory of one machine, in a process of its own."""
    before = used()
    start = time.perf_counter()
    table = pd.concat([pd.read_parquet(path, columns=FITTED) for path in paths])
    X = table.drop(columns=["age", "repaid"])
    model = ParityClassifier(random_state=seed, n_jobs=-1)
    model.fit(X, table["repaid"], sensitive_features=table["age"])
    after = used()
    return {
        "seconds": time.perf_counter() - start,
        "processor_seconds": [after[0] - before[0]],
        "peak_memory_mb": [after[1] / 1e6],
        **described(model),
    }


def measure_fits(options: argparse.Namespace) -> None:
    """Fit with all numbers of rows and of workers; each run in a process of its own, whose memory
    is its own.
    """
    machine = hardware(torch.device("cpu"))
    context = multiprocessing.get_context("spawn")
    for rows in sorted(options.rows):
        paths = write_people(options.folder, rows, min(options.part, max(rows // 64, 1)))
        optimum, gap = least_loss(paths)
        for seed, workers in product(options.seeds, options.workers):
            with futures.ProcessPoolExecutor(1, mp_context=context) as pool:
                call = partial(fitted, workers=workers) if workers else fitted_here
                result = pool.submit(call, paths, seed).result()
            record = {
                "machine": machine,
                "cores": os.cpu_count(),
                "rows": rows,
                "columns": len(FITTED) - 2,
                "workers": workers,
                "seed": seed,
                **result,
                "least_log_loss": optimum,
                "gap_of_probabilities": gap,
            }
            print(record, flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(record) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[2_000_000, 20_000_000])
    parser.add_argument(
        "--part", type=int, default=250_000, help="rows of a file; the others are multiples of it"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "frhsic-scale"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fit", action="store_true", help="measure distributed.fit instead")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="of --fit")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of --fit")
    options = parser.parse_args()
    options.out = options.out or (FIT_OUT if options.fit else OUT)
    if options.fit:
        measure_fits(options)
        return
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
