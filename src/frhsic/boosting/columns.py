"""Tables as trees take them: numbers as they are, categories as codes, missing values as NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables import is_frame, kind_of, numbers, to_pandas
from frhsic.tables.columns import Level, distinct, level_values


@dataclass(frozen=True)
class TreeColumns:
    """Names of the columns of X, and for each its levels, or None for a number.

    Numbers, booleans and missing values stay as they are. A category becomes the number of its level; a level that the
    training rows do not have is a missing value.

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

    @classmethod
    def fit(cls, table: Any) -> TreeColumns:
        """Learn the levels of the categorical columns of a DataFrame; an array has none."""
        if not is_frame(table):
            width = table.shape[1]
            return cls(tuple(f"x{j}" for j in range(width)), (None,) * width)
        frame = to_pandas(table)
        columns = [frame.iloc[:, j] for j in range(frame.shape[1])]
        return cls(tuple(frame.columns), tuple(_levels(c) if kind_of(c) == "category" else None for c in columns))

    @property
    def categorical(self) -> list[int]:
        """Positions of the categorical columns."""
        return [j for j, levels in enumerate(self.levels) if levels is not None]

    def __call__(self, table: Any) -> np.ndarray:
        """Return the columns as one float64 matrix."""
        if not is_frame(table):
            if self.categorical:
                raise TypeError(
                    f"X is an array; the training rows were a table with text or categories in "
                    f"{self.names[self.categorical[0]]!r}. Pass a table with the same columns."
                )
            return np.asarray(table, dtype=np.float64)
        frame = to_pandas(table)
        columns = [self._column(frame.iloc[:, j], j) for j in range(frame.shape[1])]
        return np.column_stack(columns)

    def _column(self, column: pd.Series[Any], j: int) -> np.ndarray:
        levels, name = self.levels[j], f"column {self.names[j]!r} of X"
        if levels is None:
            if kind_of(column) == "category" and column.notna().any():
                raise ValueError(f"{name} holds text or categories; in the training rows it was numeric.")
            return numbers(column, name)
        codes = pd.Index(np.array(levels, dtype=object)).get_indexer(pd.Index(column.to_numpy(dtype=object)))
        return np.where(codes < 0, np.nan, codes)


def _levels(column: pd.Series[Any]) -> tuple[Level, ...]:
    return tuple(level_values(pd.Series(distinct(column), dtype=object), f"column {column.name!r} of X").tolist())
