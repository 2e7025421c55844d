"""Tables as trees take them: numbers as they are, categories as codes, missing values as NaN or at the median."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables import is_frame, kind_of, numbers, to_pandas
from frhsic.tables.columns import Level, days, distinct, level_values


@dataclass(frozen=True)
class TreeColumns:
    """Names of the columns of X, for each its levels or None for a number, and which of them hold dates.

    Numbers and booleans stay as they are. Dates count days since 1970, durations count days. A category becomes the
    number of its level; a level that the training rows do not have is a missing value.

    Missing values stay where the training rows had some, too: the trees have learned what to do with them. A number
    that no training row lacks is put at its median, kept in `medians`, since LightGBM would take it as 0.

    Examples
    --------
    >>> columns = TreeColumns.fit(pd.DataFrame({"age": [31.0, None], "job": ["cook", "clerk"]}))
    >>> columns.categorical
    [1]
    >>> columns(pd.DataFrame({"age": [40.0], "job": ["pilot"]})).tolist()
    [[40.0, nan]]
    >>> TreeColumns.fit(np.array([[1.0], [2.0], [9.0]]))(np.array([[np.nan]])).tolist()
    [[2.0]]
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Level, ...] | None, ...]
    dates: tuple[str, ...] = ()
    medians: tuple[float | None, ...] = ()  # files of earlier versions have none

    @classmethod
    def fit(cls, table: Any) -> TreeColumns:
        """Learn the levels of the categorical columns of a DataFrame, and the medians of complete numeric columns."""
        columns = cls._of(table)
        x = columns(table)
        medians = (None if j in columns.categorical else _median(x[:, j]) for j in range(x.shape[1]))
        return replace(columns, medians=tuple(medians))

    @classmethod
    def _of(cls, table: Any) -> TreeColumns:
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
            return self._filled(np.asarray(table, dtype=np.float64))
        frame = to_pandas(table)
        columns = [self._column(frame.iloc[:, j], j) for j in range(frame.shape[1])]
        return self._filled(np.column_stack(columns))

    def _filled(self, x: np.ndarray) -> np.ndarray:
        if not self.medians:
            return x
        return np.where(np.isnan(x), np.array(self.medians, dtype=np.float64), x)  # None becomes NaN

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


def _median(values: np.ndarray) -> float | None:
    if not len(values) or np.isnan(values).any():
        return None
    return float(np.quantile(values, 0.5, method="inverted_cdf"))


def _levels(column: pd.Series[Any]) -> tuple[Level, ...]:
    return tuple(level_values(pd.Series(distinct(column), dtype=object), f"column {column.name!r} of X").tolist())
