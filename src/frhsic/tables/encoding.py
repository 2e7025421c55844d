"""Encode a table as a matrix: numbers and dates by a scale, categories as one 0/1 column for each
level.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.tables.columns import (
    LARGEST_FEATURE,
    MOST_ENCODED_LEVELS,
    Unit,
    check_distinct,
    feature,
    identifies_rows,
    is_frame,
    to_pandas,
)

# Number of evenly spaced quantiles that a quantile scale stores; the tails add a few.
MOST_KNOTS = 64

Scaling = Literal["quantile", "range"]
Unknown = Literal["error", "ignore"]


@dataclass(frozen=True)
class Scale:
    """What the scales of numbers share.

    `middle` is the median, which replaces missing values. `missing` says whether training rows had
    missing values; if so, a second column is 1 where a value is missing.
    """

    name: str
    unit: Unit
    missing: bool
    middle: float

    @classmethod
    def fit(cls, name: str, values: np.ndarray, unit: Unit = "number") -> Self:
        """Fit the scale to a column; NaN is missing."""
        absent = np.isnan(values)
        present = np.zeros(1)
        if not absent.all():
            present = np.clip(values[~absent], -LARGEST_FEATURE, LARGEST_FEATURE)
        middle = float(np.quantile(present, 0.5, method="inverted_cdf"))
        return cls(name, unit, bool(absent.any()), middle, *cls._fit_fields(present))

    @staticmethod
    def _fit_fields(present: np.ndarray) -> tuple[Any, ...]:
        """Return the further fields."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name}=missing") if self.missing else (self.name,)

    def scale_values(self, values: np.ndarray) -> np.ndarray:
        """Return the scaled values, which must not be missing."""
        raise NotImplementedError

    def __call__(self, values: np.ndarray, unknown: Unknown = "ignore") -> np.ndarray:
        """Return one column, or two with the indicator of missing values."""
        absent = np.isnan(values)
        with np.errstate(over="ignore"):
            column = self.scale_values(
                np.clip(np.where(absent, self.middle, values), -LARGEST_FEATURE, LARGEST_FEATURE)
            )
        return np.column_stack([column, absent]) if self.missing else column[:, None]


@dataclass(frozen=True)
class Quantiles(Scale):
    r"""Piecewise linear map from the training values to their mid-ranks, scaled to [0, 1].

    Heavy tails are compressed, order and ties are kept, and values beyond the training range are
    clipped to it. Each knot :math:`k_j` is a value that stands for :math:`n_j` training rows, and

    .. math:: k_j \mapsto \frac{r_j - r_1}{r_m - r_1}, \qquad r_j = w_1 + \dots + w_{j-1} + \tfrac12
        w_j,

    with :math:`w_j = n_j`, but at most a third of the rows that do not have the most frequent
    value. That bound keeps room for the other values where most rows are zero. Up to
    :data:`MOST_KNOTS` distinct values, each is a knot. A constant column becomes 0.

    Examples
    --------
    >>> scale = Quantiles.fit("income", np.array([10.0, 20.0, 30.0, 1e6]))
    >>> [
    ...     round(float(place), 3)
    ...     for place in scale.scale_values(np.array([10.0, 15.0, 30.0, 1e6, 2e6]))
    ... ]
    [0.0, 0.167, 0.667, 1.0, 1.0]
    """

    knots: tuple[float, ...]
    places: tuple[float, ...]

    @staticmethod
    def _fit_fields(present: np.ndarray) -> tuple[Any, ...]:
        values, counts = np.unique(present, return_counts=True)
        if len(values) > MOST_KNOTS:
            # values at even distances of rank and, before the first and the last distance, those 1,
            # 2, 4, ... rows from each end, each with the number of rows nearest to it: one far-off
            # row takes no order from the others
            places = _places(counts)
            row = 1 / len(present)
            tail = row * 2.0 ** np.arange(max(0, math.ceil(-math.log2(MOST_KNOTS * row))))
            levels = np.concatenate([np.linspace(0.0, 1.0, MOST_KNOTS), tail, 1 - tail])
            at = np.unique(np.searchsorted(places, levels - row / 2))
            nearest = np.searchsorted((places[at[1:]] + places[at[:-1]]) / 2, places)
            values = values[at]
            counts = np.bincount(nearest, weights=counts, minlength=len(at))
        return tuple(values.tolist()), tuple(_places(counts).tolist())

    def scale_values(self, values: np.ndarray) -> np.ndarray:
        if len(self.knots) < 2:
            return np.zeros(len(values))
        knots = np.array(self.knots)
        places = np.array(self.places)
        inside = np.clip(values, knots[0], knots[-1])
        right = np.clip(np.searchsorted(knots, inside, side="right"), 1, len(knots) - 1)
        low = places[right - 1]
        high = places[right]
        share = (inside - knots[right - 1]) / (knots[right] - knots[right - 1])
        # rounding must not pass the next knot
        return np.asarray(np.minimum(low + share * (high - low), high))


@dataclass(frozen=True)
class RangeScale(Scale):
    r"""Scale by the range, :math:`x \mapsto (x - \text{low}) / (\text{high} - \text{low})`, the
    paper's choice.

    A constant column becomes 0.

    Examples
    --------
    >>> RangeScale.fit("age", np.array([20.0, 60.0]))(np.array([20.0, 30.0, 70.0])).tolist()
    [[0.0], [0.25], [1.25]]
    """

    low: float
    high: float

    @staticmethod
    def _fit_fields(present: np.ndarray) -> tuple[Any, ...]:
        return float(present.min()), float(present.max())

    def scale_values(self, values: np.ndarray) -> np.ndarray:
        return np.clip((values - self.low) / ((self.high - self.low) or 1.0), -1e15, 1e15)


@dataclass(frozen=True)
class Category:
    """Encoder of a categorical column: the 0/1 indicator of each level that the training rows have.

    `other` adds a column for all other levels, including unseen ones; without it they are encoded
    as zeros. `missing` adds a column for missing values; without it they count as an unseen level.

    Examples
    --------
    >>> Category("job", ("clerk", "cook"))(np.array(["cook", "clerk"], dtype=object)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    name: str
    levels: tuple[Any, ...]
    other: bool = False
    missing: bool = False
    unit = "category"

    @classmethod
    def fit(cls, name: str, values: np.ndarray) -> Category:
        """Fit the levels to a column; None is missing. Above 64 levels, the 63 with the most rows
        keep a column.
        """
        counts = Counter(value for value in values.tolist() if value is not None)
        missing = bool(pd.isna(values).any())
        levels = _sort_levels(set(counts))
        if len(levels) <= MOST_ENCODED_LEVELS:
            return cls(name, levels, missing=missing)
        common = sorted(levels, key=lambda level: -counts[level])[: MOST_ENCODED_LEVELS - 1]
        return cls(name, _sort_levels(set(common)), other=True, missing=missing)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        levels = list(self.levels)
        if self.other:
            levels.append("other")
        if self.missing:
            levels.append("missing")
        return tuple(f"{self.name}={level}" for level in levels)

    def __call__(self, values: np.ndarray, unknown: Unknown = "ignore") -> np.ndarray:
        """Return one column for each name."""
        absent = np.asarray(pd.isna(values))
        position = pd.Index(np.array(self.levels, dtype=object)).get_indexer(
            pd.Index(values, dtype=object)
        )
        position[absent] = len(self.levels) + self.other if self.missing else -1
        unseen = position < 0
        if self.other:
            position[unseen] = len(self.levels)
            unseen &= absent
        if unseen.any() and unknown == "error":
            row = int(unseen.argmax())
            value = "a missing value" if absent[row] else repr(values[row])
            shown = ", ".join(map(repr, self.levels[:8]))
            if len(self.levels) > 8:
                shown += ", ..."
            raise ValueError(
                f"column {self.name!r} has {value} (row {row}), which did not occur in training;"
                f" known levels are {shown}. Map it to one of them, or pass handle_unknown='ignore'"
                " to encode such rows as zeros."
            )
        return np.asarray(position[:, None] == np.arange(len(self.names)), dtype=np.float64)


Encoder = Scale | Category
SCALE_CLASSES: dict[str, type[Scale]] = {
    "quantile": Quantiles,
    "range": RangeScale,
}


@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes a matrix: one encoder for each column, fitted on the training rows.

    Numbers, booleans and dates are scaled (see `scaling` of :meth:`fit`); text and categories of a
    DataFrame become one 0/1 column for each level.

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
            Training rows. Missing values are allowed: numbers get the median and an indicator
            column, categories get a level of their own.
        name
            Name of the table in messages.
        scaling : "quantile" or "range"
            How numbers and dates are scaled: :class:`Quantiles` by ranks, or :class:`RangeScale` by
            minimum and maximum, as in the paper.
        """
        encoders: list[Encoder] = []
        for label, values, unit in _table_columns(table, name):
            if unit != "category":
                encoders.append(SCALE_CLASSES[scaling].fit(label, values, unit))
                continue
            if identifies_rows(
                len({*values.tolist()} - {None}), sum(value is not None for value in values)
            ):
                raise ValueError(
                    f"column {label!r} of {name} contains text with {len(set(values.tolist())):,}"
                    f" different values in {len(values):,} rows, so it identifies rows. Drop it, or"
                    " encode it first."
                )
            encoders.append(Category.fit(label, values))
        return cls(tuple(encoders))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    def __call__(self, table: Any, unknown: Unknown = "ignore", name: str = "X") -> np.ndarray:
        """Return the matrix, float64, of a table with the columns that the encoding was fitted on,
        in their order.

        A missing number in a column without missing values in training is replaced by the median.
        """
        columns = _table_columns(table, name)
        if len(columns) != len(self.columns):
            raise ValueError(
                f"{name} has {len(columns)} columns; the training rows had {len(self.columns)}."
            )
        blocks = []
        for encoder, (label, values, unit) in zip(self.columns, columns):
            if unit != encoder.unit and encoder.unit != "category":
                if not pd.isna(values).all():
                    raise ValueError(
                        f"column {label!r} of {name} contains {HELD[unit]}; in training it"
                        f" contained {HELD[encoder.unit]}."
                    )
                values = np.full(len(values), np.nan)
            blocks.append(encoder(values, unknown))
        return np.concatenate(blocks, axis=1)


HELD = {
    "number": "numbers",
    "date": "dates",
    "duration": "durations",
    "category": "text or categories",
}


def _table_columns(table: Any, name: str) -> list[tuple[str, np.ndarray, Any]]:
    """Return name, values and unit of each column: float64 for numbers and dates, objects for
    categories.
    """
    if not is_frame(table):
        array = _arrays.matrix(table, name, allow_missing=True).astype(np.float64)
        return [(f"x{j}", array[:, j], "number") for j in range(array.shape[1])]
    table = to_pandas(table, name)
    if len(table) == 0:
        raise ValueError(f"{name} has no rows.")
    check_distinct(table.columns, name)
    return [
        (label, *feature(table[label], f"column {label!r} of {name}")) for label in table.columns
    ]


def _sort_levels(levels: set[Any]) -> tuple[Any, ...]:
    return tuple(sorted(levels, key=lambda level: (type(level).__name__, level)))


def _places(counts: np.ndarray) -> np.ndarray:
    """Return the mid-ranks of values from 0 to 1, by the number of rows that have each."""
    if len(counts) < 2:
        return np.zeros(len(counts))
    weights = np.minimum(counts, max(1.0, (counts.sum() - counts.max()) / 3))
    ranks = np.cumsum(weights) - weights / 2
    return np.asarray((ranks - ranks[0]) / (ranks[-1] - ranks[0]))
