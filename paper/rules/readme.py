"""Numbers of README.md: those of docs/index.md, and the main ones of the other pages."""

from __future__ import annotations

from collections.abc import Iterator

from rules import index
from rules.claims import counted
from rules.published import agreement
from rules.records import benchmark, machine
from rules.representations import beside_rivals
from rules.writing import seconds

GIVEN = ("With 400 distinct ages", "make 400 groups", "BSD-3-Clause")


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield from index.phrases()
    if found := agreement():
        within, near, areas, *_ = found
        yield (
            f"In the authors' result files (without ACS Income), {within} cells are within two"
            f" standard deviations of ours, {near} within two standard errors. In the printed main"
            f" table, {areas} areas under trade-off curves agree within .05"
        )
    yield f"{counted('results').capitalize()}; {counted('theory')}"
    less, more, total, _ = beside_rivals()
    yield f"in {less} of {total} comparisons, and more in {more or 'none'}"
    gpu = benchmark("gpu.json")
    million = next(r["seconds"] for r in gpu["hsic"] if r["n"] == 2**20)
    yield f"Exact HSIC of a million rows takes {seconds(million)} on one {gpu['device']}"
    peers = benchmark("cpu_peers.json")
    ratios = [r["ratio"] for r in peers["records"] if r["section"] == "hsic"]
    yield (
        f"At 5,000 rows, on one thread of an {machine(peers)}, it is {min(ratios):.0f} to"
        f" {max(ratios):.0f} times faster than hyppo, causal-learn and KeOps"
    )
