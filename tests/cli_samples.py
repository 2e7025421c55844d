"""Small tables, and commands on them that have to succeed or to fail."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
from click.testing import Result
from typer.testing import CliRunner

from frhsic.cli import app

ASKED = ["-s", "age", "--score", "score", "--json", "--max-rows", "100"]
FEATURES = ["--features", "skill", "--features", "rank", "--features", "job"]
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

run = partial(CliRunner().invoke, app)


def table(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, rows)
    return pd.DataFrame(
        {"age": age, "score": age / 70 + 0.1 * rng.normal(size=rows), "y": (age > 40).astype(int)}
    )


def people(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Columns of every kind: scores, features, targets, groups, weights, dates, and some that are
    useless.
    """
    rng = np.random.default_rng(seed)
    age = np.round(rng.uniform(20, 70, rows))
    skill, rank, noise = rng.standard_normal((3, rows))
    paid = skill + 0.04 * (age - 45) + 0.3 * rank
    score = np.clip(0.3 + 0.006 * (age - 45) + 0.1 * noise, 0, 1)
    numbers = {
        "age": age,
        "hours": rng.normal(40, 5, rows),
        "score": score,
        "skill": skill + 0.02 * (age - 45),
    }
    return pd.DataFrame(numbers | {"rank": rank, "wage": 2000 + 300 * paid}).assign(
        repaid=(paid > 0.2).astype(int),
        approved=np.where(paid > 0, "yes", "no"),
        income=np.where(rng.random(rows) < score, ">50K", "<=50K"),
        job=rng.choice(["cook", "clerk", "nurse"], rows),
        person=[f"{i // 2:03d}" for i in range(rows)],
        w=rng.integers(0, 4, rows),
        empty=np.nan,
        same=1.0,
        when=pd.date_range("2020-01-01", periods=rows),
    )


def done(arguments: list[str], code: int = 0) -> Result:
    result = run(arguments)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def one_line_and_2(arguments: list[str]) -> str:
    """Run a command that has to fail, and return its message."""
    result = done(arguments, 2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"frhsic {arguments[0]}: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert len(result.stderr) < 2500
    assert not ESCAPES.search(result.output)
    return result.stderr
