"""Tables as trees take them: numbers as they are, categories as codes, missing values as NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables import is_frame, kind_of, numbers, to_pandas
from frhsic.tables.columns import Level, days, distinct, level_values


@dataclass(frozen=True)
class TreeColumns:
    """Names of the columns of X, for each its levels or None for a number, and which of them hold dates.

    Numbers, booleans and missing values stay as they are. Dates count days since 1970, durations count days. A category
    becomes the number of its level; a level that the training rows do not have is a missing value.

    Examples
    --------
    >>> columns = TreeColumns.fit(pd.DataFrame({"age": [31.0, None], "job": ["cook", "clerk"]}))
    >>> columns.categorical
    [1]
    >>> columns(pd.DataFrame({"age": [40.0], "job": ["pilot"]})).tolist()
    [[40.0, nan]]
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Level, ...] | None, ...]
    dates: tuple[str, ...] = ()

    @classmethod
    def fit(cls, table: Any) -> TreeColumns:
        """Learn the levels of the categorical columns of a DataFrame; an array has none."""
        if not is_frame(table):
            width = table.shape[1]
            return cls(tuple(f"x{j}" for j in range(width)), (None,) * width)
        frame = to_pandas(table)
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
        kinds = [kind_of(column) for column in columns]
        levels = tuple(_levels(c) if kind == "category" else None for c, kind in zip(columns, kinds))
        dates = tuple(name for name, kind in zip(frame.columns, kinds) if kind == "date")
        return cls(tuple(frame.columns), levels, dates)

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns."""
        return [j for j, levels in enumerate(self.levels) if levels is not None]

    def __call__(self, table: Any) -> np.ndarray:
        """Return the columns as one float64 matrix."""
        if not is_frame(table):
            if special := [*self.dates, *(self.names[j] for j in self.categorical)]:
                raise TypeError(
                    f"X is an array; the training rows were a table with text, categories or dates in {special[0]!r}. "
                    "Pass a table with the same columns."
                )
            return np.asarray(table, dtype=np.float64)
        frame = to_pandas(table)
        columns = [self._column(frame.iloc[:, j], j) for j in range(frame.shape[1])]
        return np.column_stack(columns)

    def _column(self, column: pd.Series[Any], j: int) -> np.ndarray:
        levels, name = self.levels[j], f"column {self.names[j]!r} of X"
        if levels is None:
            was_date, kind = self.names[j] in self.dates, kind_of(column)
            if column.isna().all():
                return np.full(len(column), np.nan)
            if kind == "category" or (kind == "date") != was_date:
                held = "text or categories" if kind == "category" else f"{kind}s"
                was = "a date" if was_date else "numeric"
                raise ValueError(f"{name} holds {held}; in the training rows it was {was}.")
            return days(column, name)[0] if kind == "date" else numbers(column, name)
        codes = pd.Index(np.array(levels, dtype=object)).get_indexer(pd.Index(column.to_numpy(dtype=object)))
        return np.where(codes < 0, np.nan, codes)


def _levels(column: pd.Series[Any]) -> tuple[Level, ...]:
    return tuple(level_values(pd.Series(distinct(column), dtype=object), f"column {column.name!r} of X").tolist())
