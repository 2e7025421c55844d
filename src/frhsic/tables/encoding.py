"""Encode a table as a matrix: numbers and dates by a scale, categories as one 0/1 column for each level."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.tables.columns import MOST_LEVELS, Level, feature, identifies_rows, is_frame, to_pandas
from frhsic.tables.names import check_distinct
from frhsic.tables.scales import SCALES, Number, Quantiles, Robust, Scale, Scaling, Unit

Unknown = Literal["error", "ignore"]


@dataclass(frozen=True)
class Category:
    """Encoder of a categorical column: the 0/1 indicator of each level that the training rows have.

    `other` adds a column for all other levels, unseen ones among them; without it they are all zeros. `missing` adds a
    column for rows without a value; without it they count as an unseen level.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"))(np.array(["cook", "clerk"], dtype=object)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Level, ...]
    other: bool = False
    missing: bool = False

    @classmethod
    def fit(cls, name: str, values: np.ndarray) -> Category:
        """Fit the levels to a column; None is missing. Above 64 levels, the 63 with the most rows keep a column."""
        counts = Counter(value for value in values.tolist() if value is not None)
        missing, levels = bool(pd.isna(values).any()), _sorted(set(counts))
        if len(levels) <= MOST_LEVELS:
            return cls(name, levels, missing=missing)
        common = sorted(levels, key=lambda level: -counts[level])[: MOST_LEVELS - 1]
        return cls(name, _sorted(set(common)), other=True, missing=missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        further = [f"{self.name}=other"] * self.other + [f"{self.name}=missing"] * self.missing
        return (*(f"{self.name}={level}" for level in self.levels), *further)

    def __call__(self, values: np.ndarray, unknown: Unknown = "ignore") -> np.ndarray:
        """Return one column for each name."""
        absent = np.asarray(pd.isna(values))
        position = pd.Index(np.array(self.levels, dtype=object)).get_indexer(pd.Index(values, dtype=object))
        position[absent] = -1
        unseen = (position < 0) & ~(absent & self.missing)
        if unseen.any() and unknown == "error" and (not self.other or absent[unseen].any()):
            row = int((unseen & absent if self.other else unseen).argmax())
            came = "a missing value" if absent[row] else repr(values[row])
            raise ValueError(
                f"column {self.name!r} has {came} (row {row}), which no training row has; its levels are "
                f"{_shown(self.levels)}. Map it to one of them, or pass handle_unknown='ignore' to give such rows no "
                "level."
            )
        indicators = np.zeros((len(values), len(self.names)))
        if self.other:
            position[unseen] = len(self.levels)
        if self.missing:
            position[absent] = len(self.levels) + self.other
        known = np.flatnonzero(position >= 0)
        indicators[known, position[known]] = 1.0
        return indicators

    def __or__(self, other: Category) -> Category:
        """Join the levels of two parts; a level that one of them groups and the other keeps is kept."""
        levels = _sorted({*self.levels, *other.levels})
        return Category(self.name, levels, self.other or other.other, self.missing or other.missing)


Encoder = Scale | Category
ENCODERS: dict[str, type[Encoder]] = {cls.__name__: cls for cls in (Quantiles, Robust, Number, Category)}


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes a matrix: one encoder for each column, fitted on the training rows.

    Numbers, booleans and dates are scaled (see `scaling` of :meth:`fit`); text and categories of a DataFrame become one
    0/1 column for each level. ``|`` joins the encodings of two parts of a table into that of the whole, for a first
    pass over a table that does not fit into memory. It is exact for ranges and levels, and an approximation for
    quantiles and robust scales.

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
    def fit(cls, table: Any, name: str = "X", *, scaling: Scaling = "quantile") -> TableEncoding:
        """Fit one encoder to each column of a DataFrame or of an array of numbers.

        Parameters
        ----------
        table
            Training rows. Missing values are taken: a number at the place of the median, with an indicator column; a
            category as a level of its own.
        name
            How messages call the table.
        scaling : "quantile", "robust" or "range"
            How numbers and dates are scaled: :class:`Quantiles` to [0, 1], :class:`Robust` to (-3, 3), or
            :class:`Number` by minimum and maximum, as in the paper.
        """
        encoders: list[Encoder] = []
        for label, values, unit in _columns(table, name):
            if unit == "category":
                if identifies_rows(pd.Series(values, dtype=object)):
                    raise ValueError(
                        f"column {label!r} of {name} holds text with {len(set(values.tolist())):,} different values in "
                        f"{len(values):,} rows, so it identifies rows. Drop it, or encode it first."
                    )
                encoders.append(Category.fit(label, values))
            else:
                encoders.append(SCALES[scaling].fit(label, values, unit))
        return cls(tuple(encoders))

    @classmethod
    def from_plain(cls, columns: Sequence[Mapping[str, Any]]) -> TableEncoding:
        """Return the encoding that :meth:`to_plain` has written."""
        return cls(tuple(_from_plain(column) for column in columns))

    def to_plain(self) -> list[dict[str, Any]]:
        """Return the encoders as dictionaries of plain values, for JSON."""
        return [
            {"encoder": type(column).__name__}
            | {key: list(item) if isinstance(item, tuple) else item for key, item in asdict(column).items()}
            for column in self.columns
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    def __call__(self, table: Any, unknown: Unknown = "ignore", name: str = "X") -> np.ndarray:
        """Return the matrix, float64, of a table with the columns that the encoding was fitted on, in their order.

        A missing number in a column that had none in training takes the place of the median.
        """
        columns = _columns(table, name)
        if len(columns) != len(self.columns):
            raise ValueError(f"{name} has {len(columns)} columns; the training rows had {len(self.columns)}.")
        blocks = []
        for encoder, (label, values, unit) in zip(self.columns, columns):
            trained = "category" if isinstance(encoder, Category) else encoder.unit
            if unit != trained and trained != "category":
                if not pd.isna(values).all():
                    raise ValueError(
                        f"column {label!r} of {name} holds {HELD[unit]}; in the training rows it was {HELD[trained]}."
                    )
                values = np.full(len(values), np.nan)
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
            if isinstance(a, Category) != isinstance(b, Category):
                raise ValueError(f"column {a.name!r} is numeric in one part and categorical in the other.")
            if type(a) is not type(b) or getattr(a, "unit", None) != getattr(b, "unit", None):
                raise ValueError(f"column {a.name!r} is scaled in two ways; fit both parts with the same scaling.")
        return TableEncoding(tuple(a | b for a, b in zip(self.columns, other.columns)))  # type: ignore[operator]  # same type, checked above


HELD = {"number": "numeric", "date": "a date", "duration": "a duration", "category": "text or categories"}


def _columns(table: Any, name: str) -> list[tuple[str, np.ndarray, Unit | Literal["category"]]]:
    """Return name, values and unit of each column: float64 for numbers and dates, objects for categories."""
    if not is_frame(table):
        array = _arrays.to_numpy(_arrays.matrix(table, name, allow_missing=True)).astype(np.float64)
        return [(f"x{j}", array[:, j], "number") for j in range(array.shape[1])]
    table = to_pandas(table, name)
    if len(table) == 0:
        raise ValueError(f"{name} has no rows.")
    check_distinct(table.columns, name)
    return [(label, *feature(table[label], f"column {label!r} of {name}")) for label in table.columns]


def _from_plain(column: Mapping[str, Any]) -> Encoder:
    """Return an encoder from a dictionary that may come from anyone; raise ValueError unless every field is right."""
    given: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in column.items()}
    kind = ENCODERS.get(str(given.pop("encoder", None)))
    if kind is None:
        raise ValueError(f"the encoder {column.get('encoder')!r} is not known to this version of frhsic.")
    types: dict[str, Any] = {
        "name": str,
        "missing": bool,
        "other": bool,
        "rows": int,
        "knots": tuple,
        "counts": tuple,
        "levels": tuple,
        "unit": str,
    }
    items = {"knots": (int, float), "counts": (int,), "levels": (str, int, float, bool)}
    for key, value in given.items():
        allowed = (int, float, type(None)) if key == "median" else types.get(key, (int, float))
        fits = isinstance(value, allowed) and (allowed is bool or key == "levels" or not isinstance(value, bool))
        if not fits or any(type(item) not in items[key] for item in (value if key in items else ())):
            raise ValueError(f"{key} of the encoder {kind.__name__} is {str(value)[:50]!r}, which it cannot be.")
    if given.get("unit", "number") not in HELD or given.get("unit") == "category":
        raise ValueError(f"the unit {given['unit']!r} is not known to this version of frhsic.")
    try:
        return kind(**given)
    except TypeError as error:  # a field is missing or unknown
        raise ValueError(f"a column of the encoding cannot be read as {kind.__name__}: {error}.") from error


def _sorted(levels: set[Level]) -> tuple[Level, ...]:
    return tuple(sorted(levels, key=lambda level: (type(level).__name__, level)))


def _shown(levels: tuple[Level, ...]) -> str:
    first = ", ".join(map(repr, levels[:8]))
    return first if len(levels) <= 8 else f"{first}, ... ({len(levels)} in all)"
