"""One column of a table: its kind, its numbers, its levels, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

Kind = Literal["number", "boolean", "category", "date", "identifier"]
Level = str | int | float | bool

MOST_LEVELS = 255
"""Columns of text with more levels than this are taken for identifiers."""

MISSING_MARKS = ("?", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", ".")
"""Text that marks a missing value in a column of numbers. In a column of text, "none" may be a level."""

NUMBERS = ("integer", "floating", "mixed-integer-float")
DATES = ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period")


@dataclass(frozen=True)
class Advice:
    """How to tell a user what to do, in the terms of the caller: arguments in Python, flags on the command line."""

    drop: Callable[[Sequence[str]], str] = lambda names: f"Pass drop={list(names)!r}"
    positive: str = "Pass positive=VALUE"


PYTHON = Advice()


def to_pandas(table: Any) -> pd.DataFrame:
    """Return a pandas or polars frame, a pyarrow table or a mapping of columns as a DataFrame with names of text.

    Examples
    --------
    >>> to_pandas({"age": [31, 52]}).shape
    (2, 1)
    """
    if hasattr(table, "collect") and hasattr(table, "lazy"):  # a polars LazyFrame
        table = table.collect()
    if hasattr(table, "to_pandas"):
        table = table.to_pandas()
    elif isinstance(table, Mapping):
        table = pd.DataFrame(dict(table))
    if not isinstance(table, pd.DataFrame):
        raise TypeError(
            f"frame is {type(table).__name__}; pass a pandas or polars DataFrame, a pyarrow Table or a mapping of "
            "columns."
        )
    return table.reset_index(drop=True).rename(columns=str)


def kind_of(column: pd.Series[Any]) -> Kind:
    """Return the kind of a column by the type of its values: number, boolean, category or date.

    Examples
    --------
    >>> kind_of(pd.Series([True, False])), kind_of(pd.Series([1, 2.5], dtype=object)), kind_of(pd.Series(["a", "b"]))
    ('boolean', 'number', 'category')
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    values = pd.api.types.infer_dtype(column, skipna=True)
    return "number" if values in NUMBERS else "date" if values in DATES else "category"


def find_kinds(
    table: pd.DataFrame, name: str, *, advice: Advice = PYTHON, categorical: Collection[str] = ()
) -> dict[str, Kind]:
    """Return the kind of each column of a table of features; raise on dates, identifiers and infinite values.

    A message names all columns that share a problem. Columns in `categorical` hold codes: they are categories whatever
    their type, with any number of levels.
    """
    kinds: dict[str, Kind] = {}
    for column in table:
        kind = "category" if column in categorical else kind_of(table[column])
        many = kind == "category" and column not in categorical and table[column].nunique() > MOST_LEVELS
        kinds[str(column)] = "identifier" if many else kind
    dates = [column for column, kind in kinds.items() if kind == "date"]
    if dates:
        raise TypeError(
            f"{_quoted(dates)} of {name} holds dates or times; turn them into numbers, such as days since a reference, "
            f"or leave them out. {advice.drop(dates)}."
        )
    identifiers = [column for column, kind in kinds.items() if kind == "identifier"]
    if identifiers:
        levels = max(table[column].nunique() for column in identifiers)
        raise ValueError(
            f"{_quoted(identifiers)} of {name} holds text with {levels} different values, which would be as many "
            f"columns; {MOST_LEVELS} are the most. {advice.drop(identifiers)} if it identifies rows."
        )
    for column in [column for column, kind in kinds.items() if kind == "number"]:
        numbers(table[column], column)
    return kinds


def numbers(column: pd.Series[Any], name: str, *, remedy: str = "", offset: int = 0) -> np.ndarray:
    """Return a column as float64, with NaN for missing values; dates, infinite values and other text raise.

    Parameters
    ----------
    column
        Values, or a piece of them that begins at row `offset` of the table.
    name
        How messages call the column.
    remedy
        What to do about text, where there is something better than to write it as numbers.

    Examples
    --------
    >>> numbers(pd.Series(["1", None, "2.5"]), "age").tolist()
    [1.0, nan, 2.5]
    """
    if pd.api.types.is_complex_dtype(column):
        raise ValueError(f"{name} is complex; Complex data not supported: pass real and imaginary parts as columns.")
    if not pd.api.types.is_numeric_dtype(column):
        if kind_of(column) == "date":
            raise TypeError(f"{name} holds dates or times; turn it into a number, such as days since a reference.")
        values = pd.to_numeric(column.astype(object), errors="coerce")
        text = (values.isna() & column.notna()).to_numpy()
        if text.any():
            examples = ", ".join(repr(str(value)[:30]) for value in pd.unique(column[text])[:3])
            raise TypeError(
                f"{name} is not numeric: it holds {examples}, first in row {offset + int(text.argmax()) + 1}. "
                + (remedy or "Write its values as numbers, or choose a numeric column.")
            )
        column = values
    result = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(result).any():
        raise ValueError(f"infinite values came in {name}; replace them or drop those rows.")
    return result


def typed(table: pd.DataFrame, marks: Sequence[str] = MISSING_MARKS) -> pd.DataFrame:
    """Turn columns of text that hold only numbers and marks of missing values into numbers; other text stays.

    Examples
    --------
    >>> typed(pd.DataFrame({"age": ["31", "?"], "job": ["none", "cook"]})).to_dict("list")
    {'age': [31.0, nan], 'job': ['none', 'cook']}
    """
    return pd.DataFrame({str(name): _typed(table[name], marks) for name in table})


def _typed(column: pd.Series[Any], marks: Sequence[str]) -> pd.Series[Any]:
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return column
    missing = column.isna() | column.isin(marks)
    values = pd.to_numeric(column.mask(missing), errors="coerce")
    if not missing.all() and bool((values.notna() | missing).all()):
        return values.astype(np.float64)
    if column.map(type).nunique() > 1:  # pieces of a long file may have been read as different types
        return column.map(str, na_action="ignore")
    return column


def level_values(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return a column of categories as an array of Python objects; missing values and other objects raise."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"{name} holds {int(missing.sum())} missing values (NaN or None), the first in row "
            f"{int(missing.argmax())}. Drop those rows, or make them a level of their own with fillna('missing')."
        )
    values = [value.item() if isinstance(value, np.generic) else value for value in column.tolist()]
    for value in values:
        if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
            raise TypeError(
                f"{name} holds {value!r} of type {type(value).__name__}; categories may be text, numbers or booleans. "
                "(argument must be a string or a real number.)"
            )
    return np.array(values, dtype=object)


def distinct(column: pd.Series[Any]) -> list[Any]:
    """Return the values that a column holds: categories in their own order, others sorted.

    Examples
    --------
    >>> distinct(pd.Series(["b", None, "a", "b"]))
    ['a', 'b']
    """
    present = column.dropna().unique()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [level for level in column.cat.categories if level in set(present)]
    return sorted(present.tolist(), key=lambda value: (type(value).__name__, value))


def label(value: object) -> str:
    """Return a value as text; a float that is an integer is written as one.

    Examples
    --------
    >>> label(3.0), label("cook")
    ('3', 'cook')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
