"""Encode a table as a matrix: numbers scaled to [0, 1], categories as one 0/1 column for each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.tables.columns import MOST_LEVELS, Level, kind_of, level_values, numbers, to_pandas

Unknown = Literal["error", "ignore"]


@dataclass(frozen=True)
class Number:
    r"""Encoder of a numeric column, :math:`x \mapsto (x - \text{low}) / (\text{high} - \text{low})`.

    A constant column becomes 0.

    Examples
    --------
    >>> Number("age", 20.0, 60.0)(np.array([20.0, 30.0, 70.0])).tolist()
    [[0.0], [0.25], [1.25]]
    """

    name: str
    low: float
    high: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name,)

    def __call__(self, values: np.ndarray, unknown: Unknown = "error") -> np.ndarray:
        width = self.high - self.low
        return np.asarray((values[:, None] - self.low) / (width if width > 0 else 1.0))

    def __or__(self, other: Number) -> Number:
        return Number(self.name, min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True)
class Category:
    """Encoder of a categorical column: the 0/1 indicator of each level that the training rows have.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"))(np.array(["cook", "clerk"], dtype=object)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Level, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def __call__(self, values: np.ndarray, unknown: Unknown = "error") -> np.ndarray:
        position = pd.Index(np.array(self.levels, dtype=object)).get_indexer(pd.Index(values.astype(object)))
        unseen = position < 0
        if unseen.any() and unknown == "error":
            row = int(unseen.argmax())
            raise ValueError(
                f"column {self.name!r} has {values[row]!r} (row {row}), which no training row has; its levels are "
                f"{_shown(self.levels)}. Map it to one of them, or pass handle_unknown='ignore' to give such rows no "
                "level."
            )
        indicators = np.zeros((len(values), len(self.levels)))
        known = np.flatnonzero(~unseen)
        indicators[known, position[known]] = 1.0
        return indicators

    def __or__(self, other: Category) -> Category:
        return Category(self.name, _sorted({*self.levels, *other.levels}))


Encoder = Number | Category


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes a matrix: one encoder for each column, fitted on the training rows.

    Numbers and booleans are scaled to [0, 1] by their minimum and maximum; text and categories of a DataFrame become
    one 0/1 column for each level. ``|`` joins the encodings of two parts of a table into that of the whole, for a first
    pass over a table that does not fit into memory.

    Examples
    --------
    >>> encoding = TableEncoding.fit(pd.DataFrame({"age": [20, 60], "job": ["cook", "clerk"]}))
    >>> encoding.names
    ('age', 'job=clerk', 'job=cook')
    >>> encoding(pd.DataFrame({"age": [30], "job": ["cook"]})).tolist()
    [[0.25, 0.0, 1.0]]
    """

    columns: tuple[Encoder, ...]

    @classmethod
    def fit(cls, table: Any, name: str = "X") -> TableEncoding:
        """Fit one encoder to each column of a DataFrame or of an array of numbers."""
        return cls(tuple(_fitted(label, values) for label, values in _columns(table, name)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    def __call__(self, table: Any, unknown: Unknown = "error", name: str = "X") -> np.ndarray:
        """Return the matrix, float64, of a table with the columns that the encoding was fitted on, in their order."""
        columns = _columns(table, name)
        if len(columns) != len(self.columns):
            raise ValueError(f"{name} has {len(columns)} columns; the training rows had {len(self.columns)}.")
        blocks = []
        for encoder, (label, values) in zip(self.columns, columns):
            if isinstance(encoder, Number) and values.dtype == object:
                raise ValueError(
                    f"column {label!r} of {name} holds text or categories; in the training rows it was numeric."
                )
            blocks.append(encoder(values, unknown))
        return np.concatenate(blocks, axis=1)

    def check_names(self, table: Any) -> None:
        """Raise unless a DataFrame has the columns that the encoding was fitted on, in their order."""
        names, own = [str(name) for name in table.columns], [column.name for column in self.columns]
        if names != own:
            raise ValueError(f"the encoding is of the columns {own}, the table has {names}; fit one to this table.")

    def __or__(self, other: TableEncoding) -> TableEncoding:
        if [column.name for column in self.columns] != [column.name for column in other.columns]:
            raise ValueError("the two encodings are of different columns; join encodings of parts of one table.")
        for a, b in zip(self.columns, other.columns):
            if type(a) is not type(b):
                raise ValueError(f"column {a.name!r} is numeric in one part and categorical in the other.")
        return TableEncoding(tuple(a | b for a, b in zip(self.columns, other.columns)))  # type: ignore[operator]  # same type, checked above


def _fitted(name: str, values: np.ndarray) -> Encoder:
    if values.dtype != object:
        return Number(name, float(values.min()), float(values.max()))
    levels = _sorted(set(values.tolist()))
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {name!r} holds text with {len(levels)} different values, which would be as many columns. Drop it "
            "if it identifies rows, or encode it first."
        )
    return Category(name, levels)


def _columns(table: Any, name: str) -> list[tuple[str, np.ndarray]]:
    """Return name and values of each column: float64 for numbers, objects for categories, without missing values."""
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        values = _arrays.to_numpy(_arrays.matrix(table, name)).astype(np.float64)
        return [(f"x{j}", values[:, j]) for j in range(values.shape[1])]
    table = to_pandas(table)
    if len(table) == 0:
        raise ValueError(f"{name} has no rows.")
    return [(label, _column(table.iloc[:, j], f"column {label!r} of {name}")) for j, label in enumerate(table.columns)]


def _column(column: pd.Series[Any], name: str) -> np.ndarray:
    if kind_of(column) == "category":
        return level_values(column, name)
    values = numbers(column, name)
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{name} holds {int(missing.sum())} missing values (NaN), the first in row {int(missing.argmax())}. Drop "
            "those rows or impute them."
        )
    return values


def _sorted(levels: set[Level]) -> tuple[Level, ...]:
    return tuple(sorted(levels, key=lambda level: (type(level).__name__, level)))


def _shown(levels: tuple[Level, ...]) -> str:
    first = ", ".join(map(repr, levels[:8]))
    return first if len(levels) <= 8 else f"{first}, ... ({len(levels)} in all)"
