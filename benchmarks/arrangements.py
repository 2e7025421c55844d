"""Shuffle, split and join the rows of messy tables: each row must get the same score, bit for bit,
in every file.

    python benchmarks/arrangements.py --files 10000 --out benchmarks/results/arrangements.json

Three tables (codes with leading zeros, missing cells, dates in two forms, decimal commas, booleans,
long identifiers) each train a closed form and a network, which are saved and loaded. A file then
holds some rows of its table: shuffled, one run of them, two runs that are joined, only rows whose
codes are digits, or one row alone, as text or as Parquet, at times with rows beside them whose
cells no training row has. The line that `frhsic predict --keep id` would write for a row is
compared with the line of the whole table.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from frhsic import FRHSICClassifier, ParityClassifier, save
from frhsic.cli._terminal import Reading
from frhsic.cli.predict import Served
from frhsic.tables.files import TableFile
from frhsic.tables.training import ColumnRoles, read_training_table
from frhsic.training import MLP, Training

ROWS = 400
STYLES = ((",", ".", "%Y-%m-%d"), (";", ",", "%d.%m.%Y"), ("\t", ".", "%m/%d/%Y %H:%M"))
"""Separator, decimal sign and dates of each table."""
KINDS = ("shuffled", "run", "joined", "digits", "alone", "strangers")


def messy(seed: int, decimal: str, dates: str) -> pd.DataFrame:
    """Return a table of cells as a text file holds them."""
    rng = np.random.default_rng(seed)
    age, x = rng.integers(18, 80, ROWS), rng.normal(size=ROWS) * 10.0 ** rng.integers(-3, 6, ROWS)
    code = rng.choice(["007", "012", "7", "A12", "000"], ROWS, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    days = pd.Timestamp("2023-01-31") + pd.to_timedelta(rng.integers(0, 900, ROWS), "D")
    table = pd.DataFrame(
        {
            "id": [
                f"{number:022d}" if number % 3 else f"NA-{number}"
                for number in rng.permutation(ROWS)
            ],
            "age": age.astype(str),
            "code": code,
            "amount": [f"{value:.6g}".replace(".", decimal) for value in x],
            "since": days.strftime(dates),
            "member": rng.choice(["True", "FALSE", "true"], ROWS),
            "job": rng.choice(["cook", "Cook", "clerk, chief", "none", "1", "01"], ROWS),
            "paid": np.where(
                rng.random(ROWS) < 1 / (1 + np.exp(-(age - 50) / 10 - (code == "007"))),
                "ja",
                "nein",
            ),
        }
    )
    for name in ("code", "amount", "since", "member", "job"):
        table[name] = table[name].mask(rng.random(ROWS) < 0.1, rng.choice(["", "NA", "?"], ROWS))
    return table


def models(path: Path, folder: Path, separator: str) -> list[Served]:
    """Return a closed form and a network of a table, saved and loaded."""
    data = read_training_table(TableFile.open(path, separator), ColumnRoles("paid", ("age",), "ja"))
    small = {"encoder": MLP((16,), 4), "training": Training(epochs=3)}
    served = []
    for model in (
        ParityClassifier(cv=2, n_jobs=1, random_state=0),
        FRHSICClassifier(**small, random_state=0),
    ):
        with warnings.catch_warnings(action="ignore"):
            model.fit(data.X, data.y, sensitive_features=data.s)
        model.schema_ = data.schema  # as `frhsic train` does
        save(model, folder / "model")
        served.append(Served.load(folder / "model"))
    return served


def written(served: Served, path: Path, separator: str) -> list[str]:
    """Return the lines of `frhsic predict --keep id` for the rows of a file."""
    reading = Reading(separator if path.suffix == ".csv" else None)
    file = served.reopened(TableFile.open(path, **vars(reading)), reading)
    out = io.StringIO()
    for frame in file.pieces(["id", *served.columns]):
        frame[["id"]].join(served.outputs(frame, file)).to_csv(out, index=False, header=False)
    return out.getvalue().splitlines()


def arranged(kind: str, table: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of the rows of a file."""
    every, size = np.arange(ROWS), int(rng.integers(2, 30))
    if kind == "alone":
        return rng.choice(every, 1)
    if kind == "digits":
        every = every[table["code"].str.isdigit() & table["job"].str.isdigit()]
    if kind in ("run", "joined"):
        starts = rng.integers(0, ROWS - size, 1 if kind == "run" else 2)
        return np.concatenate([np.arange(start, start + size) for start in starts])
    return rng.choice(every, min(size, len(every)), replace=False)


def main() -> None:
    """Compare the lines of many files, and write how many were the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng, counts, rows, different = np.random.default_rng(0), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as place:
        folder, cases = Path(place), []
        for seed, (separator, decimal, dates) in enumerate(STYLES):
            table = messy(seed, decimal, dates)
            table.to_csv(folder / "all.csv", sep=separator, index=False)
            for served in models(folder / "all.csv", folder, separator):
                cases.append(
                    (
                        table,
                        separator,
                        served,
                        np.array(written(served, folder / "all.csv", separator)),
                    )
                )
        for number in range(options.files):
            table, separator, served, expected = cases[number % len(cases)]
            kind = KINDS[number // len(cases) % len(KINDS)]
            at = arranged(kind, table, rng)
            part = table.drop(columns=["paid", "age"]).iloc[at]
            if kind == "strangers":
                unknown = part.head(3).assign(
                    code="ZZ9", job="astronaut", amount="", since="", member=""
                )
                part = pd.concat([part, unknown])
            path = folder / ("part.parquet" if rng.random() < 0.2 else "part.csv")
            if path.suffix == ".parquet":
                part.to_parquet(path, index=False)
            else:
                part.to_csv(path, sep=separator, index=False)
            lines = np.array(written(served, path, separator))[: len(at)]
            counts[kind] += 1
            rows += len(at)
            different += int((lines != expected[at]).sum())
    result = {"files": dict(counts), "rows": rows, "different": different}
    print(json.dumps(result))
    if options.out is not None:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    assert different == 0


if __name__ == "__main__":
    main()
