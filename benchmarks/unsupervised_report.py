"""Table of `docs/representations.md`, from the records of `unsupervised.py` on test rows.

python benchmarks/unsupervised_report.py
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

RECORDS = Path(__file__).parent / "results" / "unsupervised.json"
TITLES = {"adult": "Adult", "acs_income": "ACS Income", "meps": "MEPS", "crime": "Crime", "compas": "COMPAS"}


def read() -> list[dict[str, Any]]:
    """Return the shipped records on test rows."""
    records: list[dict[str, Any]] = json.loads(RECORDS.read_text(encoding="utf-8"))["final"]["records"]
    return records


def numbers(record: dict[str, Any]) -> np.ndarray:
    """Return leak by the worst probe, leak by the linear probe, and partial recovery; none is below 0."""
    leaks, recovered = record["leaks"], [max(0.0, value) for value in record["partial"].values()]
    return np.array([max(0.0, *leaks.values()), max(0.0, leaks["linear"]), np.mean(recovered)])


def shares(records: Sequence[dict[str, Any]]) -> dict[tuple[str, float | None], dict[str, np.ndarray]]:
    """Return `numbers` in % of those of the raw columns in the same split, by method and weight, then by dataset."""
    raw = {
        (r["dataset"], r["seed"]): np.maximum(numbers(r)[[0, 0, 2]], 1e-3)
        for r in records
        if r["method"] == "raw columns"
    }
    found: dict[tuple[str, float | None], dict[str, np.ndarray]] = {}
    for method, weight in dict.fromkeys((r["method"], r["weight"]) for r in records):
        own = [r for r in records if (r["method"], r["weight"]) == (method, weight)]
        found[method, weight] = {
            name: np.mean([100 * numbers(r) / raw[name, r["seed"]] for r in own if r["dataset"] == name], axis=0)
            for name in TITLES
            if any(r["dataset"] == name for r in own)
        }
    return found


def table(records: Sequence[dict[str, Any]]) -> str:
    """Return Markdown: leak (of the linear probe) → partial recovery, in % of the raw columns', and means."""
    titles = {name: title for name, title in TITLES.items() if any(r["dataset"] == name for r in records)}
    lines = ["| leak (linear) → partial recovery | " + " | ".join([*titles.values(), "mean"]) + " |"]
    lines.append("|" + "---|" * (len(titles) + 2))
    for (method, weight), of_method in shares(records).items():
        cells = [of_method.get(name) for name in titles] + [np.mean(list(of_method.values()), axis=0)]
        shown = ["–" if cell is None else "{:.0f} ({:.0f}) → {:.0f}".format(*cell) for cell in cells]
        lines.append(f"| {method if weight is None else f'{method}, {weight:g}'} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(read()))
