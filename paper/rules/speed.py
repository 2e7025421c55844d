"""Numbers of docs/speed.md: time and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from rules.records import benchmark, machine, study
from rules.writing import power, seconds, short, two

GIVEN = ()
SERVED = ((1_000, 5), (8_000, 40), (30_000, 300))
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
    for run in benchmark("scale_fit.jsonl").to_dict("records"):
        yield (
            f"`distributed.fit` of {run['rows']:,} rows of 20 columns took {run['seconds']:.0f} s"
            f" on {run['workers']} workers with a core each; a worker held"
            f" {max(run['peak_memory_mb']):.0f} MB at most, the client"
            f" {run['client_peak_memory_mb']:.0f} MB"
        )
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
        "an epoch of a network, 20,000 rows: no penalty, FRHSIC, HSIC including the head |"
        f" {two(least['none'])}, {two(least['frhsic'])}, {two(least['hsic'])} s"
        f" ([runtime](evidence/runtime.md)) | {machine(epochs.iloc[0].to_dict())} |"
    )
    yield from beside_peers(peers)
    yield from on_gpu()
    yield from serving()


def beside_peers(peers: dict[str, Any]) -> Iterator[str]:
    """Yield the table of other libraries."""
    names = {
        "HSIC divided by its norms": "HSIC, normalised",
        "pykeops": "KeOps",
        "numpy": "NumPy, dense",
    }
    apart = max(r["difference"] for r in peers["records"] if r["task"] == "gamma test")
    yield f"(`benchmarks/cpu_peers.py`, {machine(peers)})"
    yield f"p-values of the gamma test differ by up to {short(apart, 3)}"
    for record in peers["records"]:
        times = record["seconds"]
        yield (
            f"| {names.get(record['task'], record['task'])} | {record['n']:,} |"
            f" {record['columns']} | {names.get(record['peer'], record['peer'])} |"
            f" {two(times['ours'])} | {two(times['peer'])} | {two(record['ratio'])} |"
        )
    hyppo = max(r["megabytes"]["peer"] for r in peers["records"] if r["peer"] == "hyppo")
    yield f"{hyppo / 1000:.1f} GB for hyppo at 5,000 rows"
    dense = [record for record in peers["records"] if record["peer"] == "numpy"]
    if dense:
        ratios = [record["ratio"] for record in dense]
        yield (
            f"dense matrices in NumPy take {two(min(ratios))} to {two(max(ratios))} times as long"
            f" (on {machine(dense[0])})"
        )


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
        f"45 networks (nine weights, five splits) of 200 epochs on 26,048 rows and 107 columns take"
        f" {two(training['45 models, none'])} s without a penalty and"
        f" {two(training['45 models, published'])} s with FRHSIC"
    )
    first = max(time for name, time in training.items() if name.startswith("first epoch"))
    yield f"The first epoch takes up to {two(first)} s"
    exact = {r["n"]: r["seconds"] for r in gpu["hsic"]}
    faster = min(n for n, r in features.items() if r["seconds"] < exact[n])
    yield f"`hsic_features` with {faster:,} rows or more"


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
