"""Coverage of the intervals, and level of the tests, on samples whose truth is known.

    python benchmarks/interval_coverage.py --jobs 16 --seconds 280 --records records.json    # again to continue
    python benchmarks/interval_coverage.py --page    # the tables of docs/coverage.md

Cells (laws at a number of rows, `coverage_cells.py`) get draws in rounds, until the time is over or all have enough.
The draws so far stand in `--records`, and a later run continues there. Shares of intervals that hold the truth and of
tests that reject are written to benchmarks/results/coverage.json with the number of draws. Where a truth has no closed
form (HSIC and distance correlation of dependent samples) it is the mean of the unbiased estimates over all draws.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import coverage_cells
from coverage_cells import CONFIDENCES, Cell, Outcome

OUT = Path(__file__).parent / "results" / "coverage.json"
Records = dict[str, dict[str, Any]]
"""For each cell, the draws so far, and by measure either counts [draws, hits at each confidence] or rows of ends."""


def draw(options: tuple[list[int], int, str], index: int, numbers: range) -> list[dict[str, Outcome]]:
    """Measure some samples of a cell, in a worker."""
    torch.set_num_threads(1)
    rows, repeats, coverage_cells.DEVICE[0] = options
    cell = list(coverage_cells.cells(rows, repeats))[index]
    outcomes = []
    for number in numbers:
        try:
            outcomes.append(cell.measure(number))
        except Exception as error:  # counted; the other cells go on
            print(f"{cell.key}, draw {number}: {error!r}", file=sys.stderr)
            outcomes.append({})
    return outcomes


def add(record: dict[str, Any], outcomes: Iterable[dict[str, Outcome]]) -> None:
    """Count the outcomes of some draws in the record of their cell."""
    for outcome in outcomes:
        record["draws"] += 1
        for name, value in outcome.items():
            if isinstance(value, list) and not isinstance(value[0], bool):
                record["ends"].setdefault(name, []).append([float(f"{x:.5g}") for x in value])
                continue
            kind = "interval" if isinstance(value, list) else "test"
            hits = value if isinstance(value, list) else [value <= 1 - c + 1e-12 for c in CONFIDENCES]
            counts = record["counts"].setdefault(f"{kind}: {name}", [0] * (1 + len(hits)))
            record["counts"][f"{kind}: {name}"] = [a + b for a, b in zip(counts, [1, *map(int, hits)])]


def measure(every: list[Cell], records: Records, options: argparse.Namespace) -> None:
    """Give every cell draws in rounds until the time is over."""
    start, given = time.monotonic(), (options.rows, options.repeats, options.device)
    for cell in every:
        records.setdefault(cell.key, {"draws": 0, "counts": {}, "ends": {}})

    def jobs() -> Iterator[tuple[int, range]]:
        begun = [records[cell.key]["draws"] for cell in every]
        while any(done < cell.enough for done, cell in zip(begun, every)):
            for index, cell in enumerate(every):
                numbers = range(begun[index], min(begun[index] + cell.each, cell.enough))
                begun[index] += len(numbers)
                if numbers and time.monotonic() - start < options.seconds:
                    yield index, numbers
            if time.monotonic() - start >= options.seconds:
                return

    if options.jobs == 1:
        for index, numbers in jobs():
            add(records[every[index].key], draw(given, index, numbers))
        return
    queue, running, saved = jobs(), dict[Future, int](), start
    with ProcessPoolExecutor(options.jobs) as pool:
        while True:
            while len(running) < options.jobs and (job := next(queue, None)) is not None:
                running[pool.submit(draw, given, *job)] = job[0]
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                add(records[every[running.pop(future)].key], future.result())
            if time.monotonic() - saved > 20:  # a run that is cut off loses little
                save(records, options)
                saved = time.monotonic()


def save(records: Records, options: argparse.Namespace) -> None:
    if options.records is not None:
        whole = options.records.with_suffix(".new")
        whole.write_text(json.dumps(records, ensure_ascii=False))
        whole.replace(options.records)


def shares(every: list[Cell], records: Records) -> Iterator[dict[str, Any]]:
    """Yield the share of intervals that hold the truth, or of samples rejected, for each measure and confidence."""
    for cell in every:
        record = records[cell.key]
        tallies = {tuple(key.split(": ", 1)): tally for key, tally in record["counts"].items()}
        for name, ends in record["ends"].items():
            values = np.asarray(ends)
            truth = values[:, 0].mean()
            held = [((low <= truth) & (truth <= high)).sum() for low, high in (values[:, 1:3].T, values[:, 3:5].T)]
            tallies["interval", name] = [len(values), *map(int, held)]
        for (kind, name), (repeats, *hits) in tallies.items():
            found = {str(c): round(hit / repeats, 4) for c, hit in zip(CONFIDENCES, hits)}
            yield {"measure": name, "kind": kind, "law": cell.law, "rows": cell.rows, "repeats": repeats, **found}


def tables(records: list[dict[str, Any]]) -> str:
    """Return one Markdown table for each kind and measure: laws by rows and confidence."""
    lines = []
    for kind, measure in dict.fromkeys((r["kind"], r["measure"]) for r in records):
        chosen = [r for r in records if (r["kind"], r["measure"]) == (kind, measure)]
        columns = [(c, n) for c in CONFIDENCES for n in sorted({r["rows"] for r in chosen})]
        what = "share of intervals that contain the truth" if kind == "interval" else "share of samples rejected"
        lines += [f"**`{measure}`**: {what} (draws)", ""]
        names = [f"{c if kind == 'interval' else 1 - c:.2g}, n = {n:,}" for c, n in columns]
        lines += ["| law | " + " | ".join(names) + " |", "|---|" + "---|" * len(columns)]
        for law in dict.fromkeys(r["law"] for r in chosen):
            by_rows = {r["rows"]: r for r in chosen if r["law"] == law}
            lines.append(f"| {law} | " + " | ".join(cell_text(by_rows.get(n), c) for c, n in columns) + " |")
        lines.append("")
    return "\n".join(lines)


def cell_text(record: dict[str, Any] | None, confidence: float) -> str:
    if record is None or record[str(confidence)] is None:
        return ""
    share = f"{record[str(confidence)]:.3f}".removeprefix("0")
    return share + (f" ({record['repeats']:,})" if confidence == CONFIDENCES[0] else "")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000])
    parser.add_argument("--repeats", type=int, default=1000, help="draws of a cell that are enough")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--device", default="cpu", help="for HSIC of 1,000 rows and more")
    parser.add_argument("--records", type=Path, help="file to continue and to write the draws to")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true", help="only print the tables of the shares in --out")
    options = parser.parse_args(arguments)
    if not options.page:
        every = list(coverage_cells.cells(options.rows, options.repeats))
        resumed = options.records is not None and options.records.exists()
        records: Records = json.loads(options.records.read_text()) if resumed else {}
        measure(every, records, options)
        save(records, options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        found = list(shares([cell for cell in every if records[cell.key]["draws"]], records))
        lines = ",\n ".join(json.dumps(share, ensure_ascii=False) for share in found)
        options.out.write_text(f'{{"resamples": {coverage_cells.RESAMPLES}, "shares": [\n {lines}\n]}}\n')
    print(tables(json.loads(options.out.read_text())["shares"]))


if __name__ == "__main__":
    main()
