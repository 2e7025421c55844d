"""Coverage of the intervals, and level of the tests, on samples whose truth is known.

    python benchmarks/interval_coverage.py --jobs 16 --seconds 280 --records a.jsonl    # again to continue
    python benchmarks/interval_coverage.py --seconds 0 --records a.jsonl b.jsonl        # join two runs
    python benchmarks/interval_coverage.py --page    # the tables of docs/coverage.md

Cells (laws at a number of rows, `coverage_cells.py`) get draws in blocks, those that have the smallest share of what
is enough first, until the time is over. Each block is a line that is appended to the first file of `--records`. The
lines of all files are counted, none twice. Runs that are to be joined need different seeds.

Shares of intervals that hold the truth and of tests that reject are written to benchmarks/results/coverage.json with
the number of draws. Where a truth has no closed form (HSIC and distance correlation of dependent samples) it is the
mean of the unbiased estimates over all draws.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
import coverage_cells
from coverage_cells import Cell
from coverage_samples import CONFIDENCES, RESAMPLES, Outcome

OUT = Path(__file__).parent / "results" / "coverage.json"
FEWEST = 25
"""Draws below which a share does not go into the tables."""
Block = dict[str, Any]
"""A line of records: cell, seed and first number, draws, and by measure counts [draws, hits] or rows of ends."""


def block(options: tuple[list[int], int, int], index: int, first: int, draws: int) -> Block:
    """Measure some samples of a cell, in a worker."""
    torch.set_num_threads(1)
    rows, repeats, seed = options
    cell = list(coverage_cells.cells(rows, repeats))[index]
    line: Block = {"cell": cell.key, "seed": seed, "first": first, "draws": draws, "counts": {}, "ends": {}}
    start = time.process_time()
    for number in range(first, first + draws):
        try:
            add(line, cell.measure(seed, number))
        except Exception as error:  # counted; the other cells go on
            print(f"{cell.key}, draw {number}: {error!r}", file=sys.stderr)
    return line | {"cpu_seconds": round(time.process_time() - start, 3)}


def add(line: Block, outcomes: dict[str, Outcome]) -> None:
    """Count the outcomes of one draw."""
    for name, value in outcomes.items():
        if isinstance(value, list) and not isinstance(value[0], bool):
            line["ends"].setdefault(name, []).append([float(f"{x:.5g}") for x in value])
            continue
        kind = "interval" if isinstance(value, list) else "test"
        hits = value if isinstance(value, list) else [value <= 1 - c + 1e-12 for c in CONFIDENCES]
        count(line, f"{kind}: {name}", [1, *map(int, hits)])


def count(line: Block, name: str, numbers: list[int]) -> None:
    """Add draws and hits; hits that an earlier run did not count are None."""
    counts = line["counts"].setdefault(name, [0] * len(numbers))
    line["counts"][name] = [None if a is None or b is None else a + b for a, b in zip(counts, numbers)]


def lines_of(path: Path) -> Iterator[Block]:
    """Yield the lines of a file of records, which may be compressed and need not exist."""
    if path.exists():
        with opened(path, "rt") as file:
            yield from map(json.loads, file)


def opened(path: Path, mode: str) -> IO[str]:
    return gzip.open(path, mode) if path.suffix == ".gz" else path.open(mode)  # type: ignore[return-value]  # text modes


def joined(files: list[Path]) -> dict[str, Block]:
    """Return the draws of all files by cell; a block that stands in several files counts once."""
    seen: set[tuple[str, int, int]] = set()
    records: dict[str, Block] = {}
    for path in files:
        for line in lines_of(path):
            if (which := (line["cell"], line["seed"], line["first"])) in seen:
                continue
            seen.add(which)
            record = records.setdefault(line["cell"], {"draws": 0, "counts": {}, "ends": {}, "next": {}})
            record["draws"] += line["draws"]
            record["next"][line["seed"]] = max(record["next"].get(line["seed"], 0), line["first"] + line["draws"])
            for name, numbers in line["counts"].items():
                count(record, name, numbers)
            for name, ends in line["ends"].items():
                record["ends"].setdefault(name, []).extend(ends)
    return records


def measure(every: list[Cell], options: argparse.Namespace) -> None:
    """Append blocks of draws to the first file of records until the time is over or all cells have enough."""
    start, given = time.monotonic(), (options.rows, options.repeats, options.seed)
    records = joined(options.records)
    done = [records.get(cell.key, {"draws": 0, "next": {}}) for cell in every]
    begun, following = [one["draws"] for one in done], [one["next"].get(options.seed, 0) for one in done]
    waiting = [(begun[i] / cell.enough, -cell.rows, i) for i, cell in enumerate(every) if begun[i] < cell.enough]
    heapq.heapify(waiting)

    def jobs() -> Iterator[tuple[int, int, int]]:
        while waiting and time.monotonic() - start < options.seconds:
            _, rows, i = heapq.heappop(waiting)
            draws = min(every[i].block, every[i].enough - begun[i])
            begun[i] += draws
            if begun[i] < every[i].enough:
                heapq.heappush(waiting, (begun[i] / every[i].enough, rows, i))
            yield i, following[i], draws
            following[i] += draws

    def write(file: IO[str], line: Block) -> None:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()  # a run that is cut off loses what is under way

    with opened(options.records[0], "at") as file:
        if options.jobs == 1:
            for job in jobs():
                write(file, block(given, *job))
            return
        queue, running = jobs(), set[Future[Block]]()
        with ProcessPoolExecutor(options.jobs) as pool:
            while True:
                while len(running) < options.jobs and (job := next(queue, None)) is not None:
                    running.add(pool.submit(block, given, *job))
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    write(file, future.result())


def shares(every: list[Cell], records: dict[str, Block]) -> Iterator[dict[str, Any]]:
    """Yield the share of intervals that hold the truth, or of samples rejected, for each measure and confidence."""
    for cell in every:
        record = records[cell.key]
        tallies = {tuple(key.split(": ", 1)): tally for key, tally in record["counts"].items()}
        for name, ends in record["ends"].items():
            values = np.asarray(ends)
            truth = values[:, 0].mean()
            held = [((low <= truth) & (truth <= high)).sum() for low, high in (values[:, 1:3].T, values[:, 3:5].T)]
            known = tallies.get(("interval", name), [0, 0, 0])  # draws of which only the counts were kept
            tallies["interval", name] = [a + b for a, b in zip(known, (len(values), *map(int, held)))]
        for (kind, name), (repeats, *hits) in tallies.items():
            found = {str(c): None if hit is None else round(hit / repeats, 4) for c, hit in zip(CONFIDENCES, hits)}
            yield {"measure": name, "kind": kind, "law": cell.law, "rows": cell.rows, "repeats": repeats, **found}


def tables(records: list[dict[str, Any]]) -> str:
    """Return one Markdown table for each kind and measure: laws by rows and confidence."""
    lines = []
    records = [record for record in records if record["repeats"] >= FEWEST]
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
    parser.add_argument("--repeats", type=int, default=1000, help="draws that are enough, fewer where they take long")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--records", type=Path, nargs="+", default=[Path("coverage.jsonl")], help="files of draws")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--page", action="store_true", help="only print the tables of the shares in --out")
    options = parser.parse_args(arguments)
    if not options.page:
        every = list(coverage_cells.cells(options.rows, options.repeats))
        measure(every, options)
        records = joined(options.records)
        found = shares([cell for cell in every if cell.key in records], records)
        lines = ",\n ".join(json.dumps(share, ensure_ascii=False) for share in found)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(f'{{"resamples": {RESAMPLES}, "shares": [\n {lines}\n]}}\n')
    print(tables(json.loads(options.out.read_text())["shares"]))


if __name__ == "__main__":
    main()
