"""Numbers of docs/serve.md: latency and size of served models."""

from __future__ import annotations

from collections.abc import Iterator

from rules.records import benchmark, machine
from rules.writing import seconds

GIVEN = ("2·10⁻⁶", "(n, 1)", "100,000 rows")
KINDS = ("default", "frozen", "distilled", "onnx", "lightgbm")


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    record = benchmark("serving.json")
    yield f"{machine(record)}, one thread"
    models: dict[tuple[int, int], dict[str, dict[str, float]]] = {}
    for model in record["models"]:
        models.setdefault((model["trained on"], model["columns"]), {})[model["model"]] = model
    for (rows, columns), each in models.items():
        if not {*KINDS} <= {*each}:
            continue
        for key in ("one row", "all rows"):
            times = " | ".join(seconds(each[kind][key]) for kind in KINDS)
            yield f"| {rows:,} | {columns} | {times} |"
        sizes = (
            f"{each[kind]['kibibytes']:,.0f} KiB, {seconds(each[kind]['load'])}"
            for kind in ("default", "distilled")
        )
        yield f"| {rows:,} | {columns} | {' | '.join(sizes)} |"
