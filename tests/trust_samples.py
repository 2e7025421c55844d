"""A small table, and commands on it that have to fail."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from frhsic.cli import app

ASKED = ["-s", "age", "--score", "score", "--json", "--max-rows", "100"]
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def table(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, rows)
    return pd.DataFrame({"age": age, "score": age / 70 + 0.1 * rng.normal(size=rows), "y": (age > 40).astype(int)})


def one_line_and_2(arguments: list[str]) -> str:
    """Run a command that has to fail, and return its message."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2, (result.exit_code, result.output, result.exception)
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert len(result.stderr) < 2500
    assert not ESCAPES.search(result.output)
    return result.stderr
