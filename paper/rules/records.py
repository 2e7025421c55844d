"""Read the records of studies in paper/results/, and of the programs in benchmarks/."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]


@cache
def study(name: str) -> pd.DataFrame:
    """Return the records of a study under a protocol; none if it was not run."""
    path = ROOT / "paper" / "results" / f"{name}.parquet"
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


@cache
def benchmark(name: str) -> Any:
    """Return what a program in benchmarks/ wrote; the lines of a file as a table."""
    text = (ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return pd.DataFrame([json.loads(line) for line in text.splitlines()])
    return json.loads(text)


def machine(record: dict[str, Any]) -> str:
    """Return the name of the processor that a record was made on."""
    return str(record.get("machine") or record["hardware"]).replace("(R)", "")
