"""Tables become numbers: columns scaled to [0, 1], categories one 0/1 column per level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from frhsic import _arrays

__all__ = ["Category", "Number", "TableEncoding", "Unknown"]

Unknown = Literal["error", "ignore"]
Level = str | int | float | bool

MOST_LEVELS = 255
"""More levels than this in one column are taken for identifiers."""


@dataclass(frozen=True)
class Number:
    r"""A numeric column, :math:`x \mapsto (x - \text{low}) / (\text{high} - \text{low})`; a constant one becomes 0.

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
        """Name of the column it becomes."""
        return (self.name,)

    def __call__(self, values: np.ndarray, unknown: Unknown = "error") -> np.ndarray:
        width = self.high - self.low
        return np.asarray((values[:, None] - self.low) / (width if width > 0 else 1.0))


@dataclass(frozen=True)
class Category:
    """A categorical column: the indicator of each level that the training rows have.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"))(np.array(["cook", "clerk"], dtype=object)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Level, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def __call__(self, values: np.ndarray, unknown: Unknown = "error") -> np.ndarray:
        import pandas as pd

        at = pd.Index(np.array(self.levels, dtype=object)).get_indexer(pd.Index(values.astype(object)))
        unseen = at < 0
        if unseen.any() and unknown == "error":
            row = int(unseen.argmax())
            raise ValueError(
                f"column {self.name!r} has {values[row]!r} (row {row}), which no training row has; its levels are "
                f"{_shown(self.levels)}. Map it to one of them, or pass handle_unknown='ignore' to give such rows no "
                "level."
            )
        indicators = np.zeros((len(values), len(self.levels)))
        known = np.flatnonzero(~unseen)
        indicators[known, at[known]] = 1.0
        return indicators


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes a matrix, fixed by the rows it was fitted on.

    Numbers and booleans are scaled to [0, 1] by their minimum and maximum; text and categories of a DataFrame become
    one 0/1 column for each level. Encodings of parts of a table are joined by ``|``, which gives that of the whole: a
    first pass over a table that does not fit into memory.

    Examples
    --------
    >>> import pandas as pd
    >>> encoding = TableEncoding.fit(pd.DataFrame({"age": [20, 60], "job": ["cook", "clerk"]}))
    >>> encoding.names
    ('age', 'job=clerk', 'job=cook')
    >>> encoding(pd.DataFrame({"age": [30], "job": ["cook"]})).tolist()
    [[0.25, 0.0, 1.0]]
    """

    columns: tuple[Number | Category, ...]

    @classmethod
    def fit(cls, table: Any, name: str = "X") -> TableEncoding:
        """Read the columns of a DataFrame, or of an array of numbers."""
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
        """Return the matrix, float64, of rows with the columns it was fitted on, in their order."""
        found = _columns(table, name)
        if len(found) != len(self.columns):
            raise ValueError(f"{name} has {len(found)} columns; the training rows had {len(self.columns)}.")
        parts = []
        for column, (label, values) in zip(self.columns, found):
            if isinstance(column, Number) and values.dtype == object:
                raise ValueError(
                    f"column {label!r} of {name} holds text or categories; in the training rows it was numeric."
                )
            parts.append(column(values, unknown))
        return np.concatenate(parts, axis=1)

    def check_names(self, table: Any) -> None:
        """Raise unless a DataFrame has the columns that this encoding is of, in their order."""
        names, own = [str(name) for name in table.columns], [column.name for column in self.columns]
        if names != own:
            raise ValueError(f"the encoding is of the columns {own}, the table has {names}; fit one to this table.")

    def __or__(self, other: TableEncoding) -> TableEncoding:
        if [column.name for column in self.columns] != [column.name for column in other.columns]:
            raise ValueError("the two encodings are of different columns; join encodings of parts of one table.")
        return TableEncoding(tuple(_joined(a, b) for a, b in zip(self.columns, other.columns)))


def _fitted(name: str, values: np.ndarray) -> Number | Category:
    if values.dtype != object:
        return Number(name, float(values.min()), float(values.max()))
    levels = _sorted(set(values.tolist()))
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"column {name!r} holds text with {len(levels)} different values, which would be as many columns. Drop it "
            "if it identifies rows, or encode it first."
        )
    return Category(name, levels)


def _joined(a: Number | Category, b: Number | Category) -> Number | Category:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number(a.name, min(a.low, b.low), max(a.high, b.high))
    if isinstance(a, Category) and isinstance(b, Category):
        return Category(a.name, _sorted({*a.levels, *b.levels}))
    raise ValueError(f"column {a.name!r} is numeric in one part and categorical in the other.")


def _sorted(levels: set[Level]) -> tuple[Level, ...]:
    return tuple(sorted(levels, key=lambda level: (type(level).__name__, level)))


def _shown(levels: tuple[Level, ...]) -> str:
    first = ", ".join(map(repr, levels[:8]))
    return first if len(levels) <= 8 else f"{first}, ... ({len(levels)} in all)"


def _columns(table: Any, name: str) -> list[tuple[str, np.ndarray]]:
    """Name and values of each column: float64 for numbers, objects for categories; nothing missing."""
    if not (hasattr(table, "columns") and hasattr(table, "dtypes")):
        values = _arrays.to_numpy(_arrays.matrix(table, name)).astype(np.float64)
        return [(f"x{j}", values[:, j]) for j in range(values.shape[1])]
    if hasattr(table, "to_pandas"):  # polars; its own frames are read column by column below
        table = table.to_pandas()
    if len(table) == 0:
        raise ValueError(f"{name} has no rows.")
    return [(str(label), _column(table.iloc[:, j], str(label), name)) for j, label in enumerate(table.columns)]


def _column(values: Any, label: str, name: str) -> np.ndarray:
    import pandas as pd

    kind = values.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        raise TypeError(
            f"column {label!r} of {name} holds dates or times; turn it into a number, such as days since a reference."
        )
    if pd.api.types.is_numeric_dtype(kind):  # booleans among them
        if pd.api.types.is_complex_dtype(kind):
            raise ValueError(f"column {label!r} of {name} is complex; Complex data not supported: pass real columns.")
        numbers = np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        bad = ~np.isfinite(numbers)
        if bad.any():
            raise ValueError(
                f"column {label!r} of {name} holds {int(bad.sum())} values that are NaN or infinite, the first in row "
                f"{int(bad.argmax())}. Drop those rows or impute them."
            )
        return numbers
    missing = values.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"column {label!r} of {name} holds {int(missing.sum())} missing values (NaN or None), the first in row "
            f"{int(missing.argmax())}. Drop those rows, or make them a level of their own with fillna('missing')."
        )
    objects = np.array([_level(value, label, name) for value in values.tolist()], dtype=object)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in objects):
        numbers = objects.astype(np.float64)
        if not isinstance(kind, pd.CategoricalDtype) and np.isfinite(numbers).all():
            return np.asarray(numbers)  # numbers that came in a column of objects
    return objects


def _level(value: Any, label: str, name: str) -> Level:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
        raise TypeError(
            f"column {label!r} of {name} holds {value!r} of type {type(value).__name__}; categories may be text, "
            "numbers or booleans. (argument must be a string or a real number.)"
        )
    return value
