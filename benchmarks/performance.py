"""Figures of docs/performance.md from records: `gpu.py`, HSIC on a GPU; `cpu_peers.py`, other libraries on a CPU.

python benchmarks/performance.py --out docs/figures/hsic-gpu.svg
python benchmarks/performance.py --records benchmarks/results/cpu_peers.json --out docs/figures/cpu-peers.svg
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

RECORDS = Path(__file__).parent / "results" / "gpu.json"
LINES = (
    ("hsic", "plain", "exact, plain PyTorch in float32", "#9a9388", "s"),
    ("hsic", "tiles", "exact, tiles in float64", "#7a2e6e", "^"),
    ("hsic", "seconds", "exact, the library's kernels", "#0b5d66", "o"),
    ("features", "seconds", "random features", "#c2571a", "D"),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(argv)
    with mpl.rc_context({"font.size": 9, "svg.hashsalt": "frhsic"}):
        records = json.loads(options.records.read_text())
        figure = ratios(records) if "records" in records else drawn(records)
        figure.savefig(options.out, metadata={"Date": None} if options.out.suffix == ".svg" else None)


def drawn(records: dict[str, Any]) -> Figure:
    """Return the figure: a line for each way to compute HSIC, over the numbers of rows at which it was timed."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for section, key, label, color, marker in LINES:
        points = [(record["n"], record[key]) for record in records[section] if key in record]
        axes.loglog(*zip(*points, strict=True), marker=marker, ms=4, lw=1.5, color=color, label=label)
    axes.set(xlabel="rows n", ylabel="seconds for one HSIC")
    axes.set_title(f"{records['device']}, Z of {records['columns']} columns", fontsize=9, loc="left")
    axes.grid(which="major", lw=0.4, color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def ratios(content: dict[str, Any]) -> Figure:
    """Return the figure: a bar for each comparison on a CPU, its length how many times as long the peer takes."""
    records = sorted(content["records"], key=lambda record: record["ratio"])
    figure = Figure(figsize=(6, 0.8 + 0.3 * len(records)), layout="constrained")
    axes = figure.subplots()
    names = [f"{r['task']}, n = {r['n']:,}, d = {r['columns']}: {r['peer']}" for r in records]
    bars = axes.barh(names, [record["ratio"] for record in records], color="#0b5d66", height=0.6)
    axes.bar_label(bars, fmt="%.3g ×", padding=3)
    axes.axvline(1, color="#9a9388", lw=1)
    axes.set(xscale="log", xlabel="CPU time ÷ that of frhsic")
    axes.margins(x=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
