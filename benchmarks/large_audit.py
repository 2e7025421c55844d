"""An audit of many scores on few cores: seconds and peak memory, in Python and on the command line.

    python benchmarks/large_audit.py --rows 1_000_000 --cores 2

Writes a table (income, a score that follows it, a 0/1 target) as Parquet and CSV, and audits it in
a fresh process each: by `frhsic.audit` on arrays, and by `frhsic audit` on either file, with a
report. Seconds are those of the whole process, imports and reading included; processor seconds are
less disturbed by other programs. Memory is the peak of the process. Writes
benchmarks/results/large_audit.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from frhsic_paper.records import hardware

OUT = Path(__file__).parent / "results" / "large_audit.json"
IN_PYTHON = """
import sys
import numpy as np
from frhsic import audit
table = np.load(sys.argv[1])
audit(table["score"], table["income"], table["repaid"])
"""


def write(folder: Path, rows: int) -> None:
    """Write the table in three formats: skewed incomes with 5 % zeros, scores between 0 and 1."""
    random = np.random.default_rng(0)
    income = np.where(random.random(rows) < 0.05, 0.0, random.lognormal(10, 0.8, rows).round(2))
    score = 1 / (1 + np.exp(-(0.2 * np.log1p(income) - 2 + random.standard_normal(rows))))
    repaid = (random.random(rows) < score).astype(np.float64)
    table = pd.DataFrame({"income": income, "score": score, "repaid": repaid})
    table.to_parquet(folder / "scores.parquet", index=False)
    table.to_csv(folder / "scores.csv", index=False)
    np.savez(folder / "scores.npz", income=income, score=score, repaid=repaid)


def ways(folder: Path) -> dict[str, list[str]]:
    """Return the commands, by name."""
    options = [
        "--sensitive",
        "income",
        "--score",
        "score",
        "--target",
        "repaid",
        "--out",
        str(folder / "report.html"),
    ]
    command = [sys.executable, "-m", "frhsic", "audit"]
    return {
        "frhsic.audit, arrays": [sys.executable, "-c", IN_PYTHON, str(folder / "scores.npz")],
        "frhsic audit, Parquet": [*command, str(folder / "scores.parquet"), *options],
        "frhsic audit, CSV": [*command, str(folder / "scores.csv"), *options],
    }


def run(command: list[str], cores: int) -> dict[str, float]:
    """Run a command on some cores; return its seconds, processor seconds and peak memory in MB."""
    threads = {
        name: str(cores) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    }
    start = time.perf_counter()
    process = subprocess.Popen(command, env=os.environ | threads, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "megabytes": round(used.ru_maxrss * 1024 / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    os.sched_setaffinity(
        0, sorted(os.sched_getaffinity(0))[: options.cores]
    )  # the processes inherit them
    machine = hardware(torch.device("cpu"))
    results: dict[str, Any] = {"machine": machine, "rows": options.rows, "cores": options.cores}
    results["ways"] = {}
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), options.rows)
        for way, command in ways(Path(name)).items():
            results["ways"][way] = used = run(command, options.cores)
            print(way, used, flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
