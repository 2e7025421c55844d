"""Numbers of docs/speed.md: time and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rules.records import benchmark, machine, study
from rules.writing import percents, power, seconds, two

GIVEN = ()
SERVED = ((1_000, 5), (30_000, 300))
# Of the machine that clusters were measured on, and rows and machines of an extrapolation.
CORES = 16
FAR = 10**9
# Rows on which a cluster is compared with one machine, and the shares of the gap.
SMALL = 200_000
SHARES = (0.25, 0.5, 0.75, 0.9)
MACHINES = 10
KINDS = ("default", "frozen", "distilled", "onnx", "lightgbm")


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    audits = benchmark("scale.json")
    on = f" of {machine(audits)}" if "machine" in audits else ""
    yield f"(`benchmarks/scale.py`, {audits['cores']} cores{on}, float32 Parquet)"
    shown = ((2_000_000, 2, 1), (20_000_000, 50, 2))
    for run in audits["runs"]:
        if (run["rows"], run["columns"], run["workers"]) in shown:
            speed = round(run["rows_per_second"], -3)
            yield (
                f"| {run['rows']:,} | {run['columns']} | {run['workers']} | {speed:,.0f} |"
                f" {run['peak_memory_mb']:.0f} |"
            )
    yield from training()
    peers = benchmark("cpu_peers.json")
    large = benchmark("large_audit.json")
    ways = pd.DataFrame(large["ways"]).max(axis=1)
    yield (
        f"report included | {ways['processor_seconds']:.0f} s, {ways['megabytes'] / 1000:.1f} GB"
        f" (`benchmarks/large_audit.py`) | {machine(large)} |"
    )
    gamma = {r["columns"]: r for r in peers["records"] if r["task"] == "gamma test"}
    yield (
        f"| `gamma_test`, {gamma[1]['n']:,} rows, 1 and 50 columns of Z |"
        f" {two(gamma[1]['seconds']['ours'])} and {two(gamma[50]['seconds']['ours'])} s, at most"
        f" {max(r['megabytes']['ours'] for r in gamma.values()):.0f} MB | {machine(peers)} |"
    )
    epochs = study("runtime-corrected")
    epochs = epochs[(epochs["device"] == "cpu") & (epochs["n"] == 20_000)]
    least = epochs.groupby("method")["seconds"].min()
    yield (
        "an epoch of a network, 20,000 rows: no penalty, `frhsic`, `hsic` |"
        f" {two(least['none'])}, {two(least['frhsic'])}, {two(least['hsic'])} s"
        f" ([runtime](evidence/runtime.md)) | {machine(epochs.iloc[0].to_dict())} |"
    )
    yield from beside_peers(peers)
    yield from on_gpu()
    yield from serving()


def training() -> Iterator[str]:
    """Yield time and memory of `distributed.fit`: of runs on 16 cores, and of a billion rows by the
    lines through the runs of a million and ten million rows on 16 workers.
    """
    runs = benchmark("scale_fit.jsonl")
    runs = runs[runs["cores"] == CORES].sort_values(["rows", "workers"])
    runs["peak"] = runs["peak_memory_mb"].map(max)
    yield from agreement(runs[runs["rows"] == SMALL])
    runs = runs[runs["rows"] > SMALL]
    columns = runs["columns"].iloc[0]
    on = machine(runs.iloc[0].to_dict())
    yield f"{columns} columns on a machine with {CORES} cores ({on})"
    for rows, own in runs.groupby("rows"):
        for run in own.to_dict("records"):
            faster = two(own["seconds"].iloc[0] / run["seconds"]) if len(own) > 1 else "–"
            yield (
                f"| {rows:,} | {run['workers']} | {run['seconds']:.0f} | {faster} |"
                f" {run['peak']:,.0f} | {run['client_peak_memory_mb']:.0f} |"
            )
    largest = runs[runs["workers"] == CORES].set_index("rows")[["seconds", "peak"]]
    step = largest.diff().iloc[-1] / np.diff(largest.index)[-1] * CORES
    measured = largest.iloc[-1]
    fixed = measured - step * largest.index[-1] / CORES
    far = fixed + step * FAR / (MACHINES * CORES)
    yield (
        f"{FAR:,} rows would take {far['seconds'] / 60:.0f} minutes on {MACHINES * CORES} workers"
        f" on {MACHINES} such machines: {MACHINES * far['seconds'] / 3600:.1f} machine hours and"
        f" {far['peak'] / 1000:.1f} GB per worker"
    )
    yield (
        f"from both runs on {CORES} workers: {fixed['seconds']:.0f} s +"
        f" {step['seconds'] * 1e6:.0f} µs × rows / workers and"
        f" {fixed['peak'] / 1000:.1f} GB + {step['peak'] * 1000:.2f} kB × rows / workers."
    )
    fewer = runs[(runs["rows"] == largest.index[-1]) & (runs["workers"] < CORES)].iloc[0]
    line = (fixed + step * fewer["rows"] / fewer["workers"])["seconds"]
    yield (
        f"For {fewer['rows']:,} rows on {fewer['workers']} workers, this gives {line:.0f} s;"
        f" {fewer['seconds']:.0f} were measured"
    )


def agreement(runs: pd.DataFrame) -> Iterator[str]:
    """Yield how `fit` and `distributed.fit` differ on the same rows, over the seeds."""
    alone, spread = (own.set_index("seed") for _, own in runs.groupby(runs["workers"] > 0))
    cpu = np.mean([times[0] for times in alone["processor_seconds"]])
    yield (
        f"{SMALL:,} rows take {cpu:.0f} s of CPU time on one thread and"
        f" {alone['peak'].max() / 1000:.1f} GB"
    )
    by_seed = (spread["log_loss"] - alone["log_loss"]).to_numpy()
    error = by_seed.std(ddof=1) / math.sqrt(len(by_seed))
    worse = {share: loss_at(spread, share) - loss_at(alone, share) for share in SHARES}
    units = [abs(own.mean()) / own.std(ddof=1) * math.sqrt(len(own)) for own in worse.values()]
    gaps = (spread["gap"] - alone["gap"]).abs().max()
    yield (
        f"over {len(by_seed)} seeds, log loss differs by"
        f" {by_seed.mean():.5f} ± {error:.5f}".replace("-", "−")
        + " without a limit and by"
        f" at most {two(max(units))} standard errors at {percents(SHARES)} of the gap; the gap"
        f" differs by at most {gaps:.4f}"
    )


def loss_at(runs: pd.DataFrame, share: float) -> NDArray[np.float64]:
    """Return the log loss of each run where its gap is a share of the first."""
    return np.array(
        [
            np.interp(share * gaps[0], gaps[::-1], losses[::-1])
            for gaps, losses in zip(runs["path_gap"], runs["path_log_loss"], strict=True)
        ]
    )


def beside_peers(peers: dict[str, Any]) -> Iterator[str]:
    """Yield the table of other libraries."""
    names = {
        "HSIC divided by its norms": "HSIC, normalized",
        "HSIC, bandwidth of .01": "HSIC, bandwidth of 0.01",
        "pykeops": "KeOps",
        "numpy": "NumPy, dense",
    }
    apart = max(r["difference"] for r in peers["records"] if r["task"] == "gamma test")
    dense = next(record for record in peers["records"] if record["peer"] == "numpy")
    yield (
        f"(`benchmarks/cpu_peers.py`, {machine(peers)}; NumPy on another machine, {machine(dense)})"
    )
    yield f"p-values of the gamma test differ by up to {apart:.3f}"
    for record in peers["records"]:
        if record["task"] == "HSIC" and record["columns"] == 1:
            continue  # the ratios of 50 columns are smaller
        times = record["seconds"]
        yield (
            f"| {names.get(record['task'], record['task'])} | {record['n']:,} |"
            f" {record['columns']} | {names.get(record['peer'], record['peer'])} |"
            f" {two(times['ours'])} | {two(times['peer'])} | {two(record['ratio'])} |"
        )
    hyppo = max(r["megabytes"]["peer"] for r in peers["records"] if r["peer"] == "hyppo")
    yield f"{hyppo / 1000:.1f} GB for hyppo at 5,000 rows"


def on_gpu() -> Iterator[str]:
    """Yield what was measured on a GPU."""
    gpu = benchmark("gpu.json")
    yield f"one {gpu['device']}, float32, {gpu['columns']} columns"
    features = {r["n"]: r for r in gpu["features"]}
    for exact in gpu["hsic"]:
        if random := features.get(exact["n"]):
            most = exact["n"] == max(features)
            plain = seconds(exact["plain"]) if "plain" in exact else "–"
            cells = [
                seconds(r["seconds"]) + (f", {r['megabytes']:.0f} MB" if most else "")
                for r in (exact, random)
            ]
            yield f"| {exact['n']:,} | {cells[0]} | {plain} | {cells[1]} |"
    without = max(r.get("error", 0) for r in gpu["hsic"])
    plain = max(r.get("plain_error", 0) for r in gpu["hsic"])
    yield (
        f"relative error is at most {power(without, 0)} (plain PyTorch: up to {power(plain, 0)}),"
        f" or {power(max(gpu['ties'].values()), 1)} if Z and S are independent"
    )
    test = gpu["gamma"][-1]
    yield f"The gamma test takes {seconds(test['seconds'])} at {test['n']:,} rows"
    training = gpu["training"]
    yield (
        "45 networks (nine weights, five splits) for 200 epochs on 26,048 rows and 107 columns"
        f" takes {two(training['45 models, none'])} s without a penalty and"
        f" {two(training['45 models, published'])} s with FRHSIC"
    )
    first = max(time for name, time in training.items() if name.startswith("first epoch"))
    yield f"The first epoch takes up to {two(first)} s"
    exact = {r["n"]: r["seconds"] for r in gpu["hsic"]}
    faster = min(n for n, r in features.items() if r["seconds"] < exact[n])
    yield f"on a GPU, for {faster:,} rows or more, `hsic_features`"


def serving() -> Iterator[str]:
    """Yield latency and size of served models."""
    record = benchmark("serving.json")
    yield f"{machine(record)}, one thread"
    models: dict[tuple[int, int], dict[str, dict[str, float]]] = {}
    for model in record["models"]:
        models.setdefault((model["trained on"], model["columns"]), {})[model["model"]] = model
    for rows, columns in SERVED:
        each = models[rows, columns]
        for key, name in (("one row", "one row"), ("all rows", "100,000 rows")):
            times = " | ".join(seconds(each[kind][key]) for kind in KINDS)
            yield f"| {rows:,} × {columns} | {name} | {times} |"
        sizes = (
            f"{each[kind]['kibibytes']:,.0f} KiB, {seconds(each[kind]['load'])}"
            for kind in ("default", "distilled")
        )
        yield f"| {rows:,} × {columns} | file, loading | {' | – | '.join(sizes)} | – | – |"
