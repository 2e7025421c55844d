"""Audits of messy tables whose scores are independent of the attribute, by the command line.

    python benchmarks/false_alarms.py --tables 100

Each table is drawn by its own seed: income, heaped income, ages with ties, a few levels, bands as
text, or many zeros as the attribute; chances, rounded chances, rare decisions or skewed points as
the score; outcomes of 3 to 50 %; sometimes several rows of a person, weights that follow the
attribute, missing values, two attributes; semicolons and decimal commas. An alarm is a claim on the
first page of the report that the score moves with an attribute. At level .05, a share of .05 of the
tables may have one.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from typer.testing import CliRunner

from frhsic.cli import app

ALARMS = ("more than chance", "chance alone does not explain", "that chance does not explain")
LEVEL = 0.05


def attribute(rng: np.random.Generator, n: int) -> np.ndarray:
    income = rng.lognormal(10, 1, n)
    tens = 10 * rng.integers(2, 8, n)
    return [
        income.round(2),
        np.round(income, -3),
        np.round(18 + rng.gamma(4, 6, n)),
        rng.choice([0.0, 1.0, 2.0, 5.0], n, p=[0.6, 0.2, 0.15, 0.05]),
        np.array([f"{low}-{low + 9}" for low in tens], dtype=object),
        np.where(rng.random(n) < 0.7, 0.0, income.round()),
    ][rng.integers(6)]


def table(rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """Return a table, and the options of an audit of it."""
    n, times = int(rng.integers(300, 2000)), int(rng.choice([1, 1, 3]))
    person = np.repeat(np.arange(n), times)[
        :n
    ]  # a person has one value of S and scores that are alike
    rate = float(rng.choice([0.03, 0.1, 0.5]))
    chance = rng.beta(2, 2 * (1 - rate) / rate, n)[person]
    chance = np.clip(chance + 0.1 * rng.random(n) * (times > 1), 0, 1)
    late = rng.random(n) < chance
    score = [
        chance,
        np.round(chance, 1),
        (chance > np.quantile(chance, 0.97)) * 1.0,
        rng.lognormal(0, 1, n)[person],
    ]
    frame = pd.DataFrame(
        {"person": person, "s": attribute(rng, n)[person], "p": score[rng.integers(4)]}
    )
    frame["late"], options = (
        np.where(late, "ja", "nein"),
        ["-s", "s", "--score", "p", "-t", "late", "--positive", "ja"],
    )
    if rng.random() < 0.5:
        options += ["--favourable", "nein"]
    if times > 1:
        options += ["--groups", "person"]
    if rng.random() < 0.3:
        frame["w"] = (0.5 + frame["s"].rank(pct=True)).round(2)
        options += ["--row-weights", "w"]
    if rng.random() < 0.3:
        frame["age"] = np.round(rng.uniform(18, 80, n))[person]
        options += ["-s", "age"]
    frame.loc[rng.random(n) < 0.05, "s"] = None
    return frame, options


def alarms(seed: int, folder: Path) -> list[str]:
    """Return the claims on the first page of the audit of one table that the score moves."""
    frame, options = table(np.random.default_rng(seed))
    path, out = folder / "table.csv", folder / "report.html"
    messy = seed % 2
    frame.to_csv(path, index=False, sep=";" if messy else ",", decimal="," if messy else ".")
    result = CliRunner().invoke(
        app, ["audit", str(path), *options, "--max-rows", "200", "-o", str(out)]
    )
    if result.exit_code:
        raise RuntimeError(f"table {seed}: {result.stderr}")
    first = re.search(
        r'<section id="decision".*?</section>', out.read_text(encoding="utf-8"), re.DOTALL
    )
    lines = re.findall(r"<p>(.*?)</p>", first.group(0) if first else "", re.DOTALL)
    return [line for line in lines if any(words in line for words in ALARMS)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=100)
    tables, count = parser.parse_args().tables, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(tables):
            claims = alarms(seed, Path(folder))
            count += bool(claims)
            for claim in claims:
                print(f"table {seed}: {claim}", flush=True)
    low, high = stats.binomtest(count, tables).proportion_ci(0.95)
    print(
        f"{count} of {tables} tables with an alarm ({low:.3f} to {high:.3f}); the level is {LEVEL}."
    )


if __name__ == "__main__":
    main()
