"""One column of a table: its kind, its numbers, its levels, and what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.tables.scales import Unit

Kind = Literal["number", "boolean", "category", "date", "identifier"]
Level = str | int | float | bool

MOST_LEVELS = 64
"""0/1 columns that a column of text becomes at most: levels with fewer rows are grouped as "other"."""
DISTINCT_SHARE = 0.9
"""A column of text with more levels than that identifies rows if at least this share of its values is distinct."""

MISSING_MARKS = ("?", "n/a", "na", "NaN", "nan", "NULL", "null", "None", "none", "-", ".")
"""Text that marks a missing value in a column of numbers. In a column of text, "none" may be a level."""

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
NUMBERS = ("integer", "floating", "mixed-integer-float")
DATES = ("datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period")


@dataclass(frozen=True)
class Advice:
    """How to tell a user what to do, in the terms of the caller: arguments in Python, flags on the command line."""

    drop: Callable[[Sequence[str]], str] = lambda names: f"Pass drop={list(names)!r}"
    positive: str = "Pass positive=VALUE"


PYTHON = Advice()


def is_frame(table: Any) -> bool:
    """Return whether a table has named columns: a frame of pandas or polars, or a pyarrow Table."""
    return hasattr(table, "columns") and (hasattr(table, "dtypes") or hasattr(table, "schema"))


def to_pandas(table: Any, name: str = "frame") -> pd.DataFrame:
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
            f"{name} is {type(table).__name__}; pass a pandas or polars DataFrame, a pyarrow Table or a mapping of "
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
    """Return the kind of each column of features; raise on text that identifies rows and on infinite values.

    A message names all columns that share a problem. Columns in `categorical` hold codes: they are categories whatever
    their type, with any number of levels.
    """
    kinds: dict[str, Kind] = {}
    for column in table:
        kind = "category" if column in categorical else kind_of(table[column])
        text = kind == "category" and column not in categorical
        kinds[str(column)] = "identifier" if text and identifies_rows(table[column]) else kind
    identifiers = [column for column, kind in kinds.items() if kind == "identifier"]
    if identifiers:
        levels = max(table[column].nunique() for column in identifiers)
        raise ValueError(
            f"{quoted(identifiers)} of {name} holds text with {levels:,} different values in {len(table):,} rows, so "
            f"it identifies rows. {advice.drop(identifiers)}."
        )
    for column in [column for column, kind in kinds.items() if kind == "number"]:
        numbers(table[column], column)
    return kinds


def identifies_rows(column: pd.Series[Any]) -> bool:
    """Return whether a column of text has more than 64 levels and nearly all of its values are distinct."""
    levels = column.nunique()
    return levels > MOST_LEVELS and levels >= DISTINCT_SHARE * int(column.notna().sum())


def feature(column: pd.Series[Any], name: str) -> tuple[np.ndarray, Unit | Literal["category"]]:
    """Return the values of a column of features, and what they are.

    Numbers, dates and durations become float64 with NaN for missing values, categories objects with None for them.
    Dates count days since 1970 (in UTC if they have a time zone), durations and times of day count days.

    Examples
    --------
    >>> feature(pd.Series(pd.to_datetime(["1970-01-03", None])), "since")
    (array([ 2., nan]), 'date')
    """
    kind = kind_of(column)
    if kind == "category":
        return level_values(column, name), "category"
    return days(column, name) if kind == "date" else (numbers(column, name), "number")


def days(column: pd.Series[Any], name: str) -> tuple[np.ndarray, Literal["date", "duration"]]:
    """Return dates as days since 1970, or durations and times of day as days; NaN for missing values."""
    values, day = pd.api.types.infer_dtype(column, skipna=True), pd.Timedelta(days=1)
    try:
        if values in ("timedelta", "timedelta64", "time"):
            given = column.map(str, na_action="ignore") if values == "time" else column
            return (pd.to_timedelta(given) / day).to_numpy(dtype=np.float64), "duration"
        if values == "period":
            column = pd.Series(pd.PeriodIndex(column).to_timestamp())
        dates = pd.to_datetime(column, utc=True)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{name} holds dates that cannot be read: {error}. Turn them into numbers.") from error
    return ((dates - pd.Timestamp(0, tz="UTC")) / day).to_numpy(dtype=np.float64), "date"


def numbers(column: pd.Series[Any], name: str, *, remedy: str = "") -> np.ndarray:
    """Return a column as float64, with NaN for missing values; dates, infinite values and other text raise.

    Parameters
    ----------
    column
        Values. Messages count rows by the index if it has whole numbers.
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
                f"{name} is not numeric: it holds {examples}, first in row {row_number(column, int(text.argmax()))}. "
                + (remedy or "Write its values as numbers, or choose a numeric column.")
            )
        column = values
    result = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(result).any():
        raise ValueError(f"infinite values came in {name}; replace them or drop those rows.")
    return result


def row_number(column: pd.Series[Any], position: int) -> int:
    """Return the number of a row, counted from 1, by an index that counts from 0, or by its position."""
    label = column.index[position]
    return 1 + (int(label) if isinstance(label, (int, np.integer)) else position)


def typed(table: pd.DataFrame, marks: Sequence[str] = MISSING_MARKS, decimal: str = ".") -> pd.DataFrame:
    """Turn columns of text that hold only numbers and marks of missing values into numbers; other text stays.

    Text that holds only ISO dates, such as 2024-05-31 or 2024-05-31T12:30, becomes dates.

    Examples
    --------
    >>> typed(pd.DataFrame({"age": ["31", "?"], "job": ["none", "cook"]})).to_dict("list")
    {'age': [31.0, nan], 'job': ['none', 'cook']}
    """
    return pd.DataFrame({str(name): _typed(table[name], marks, decimal) for name in table})


def _typed(column: pd.Series[Any], marks: Sequence[str], decimal: str) -> pd.Series[Any]:
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return column
    missing = column.isna() | column.isin(marks)
    given = column.mask(missing)
    if decimal == ",":
        given = given.map(lambda value: value.replace(",", ".") if isinstance(value, str) else value)
    values = pd.to_numeric(given, errors="coerce")
    if not missing.all() and bool((values.notna() | missing).all()):
        return values.astype(np.float64)
    present = column[~missing]
    if len(present) and all(isinstance(value, str) and ISO_DATE.fullmatch(value) for value in present):
        dates = pd.to_datetime(column.mask(missing), format="ISO8601", errors="coerce", utc=True)
        if bool((dates.notna() | missing).all()):
            return dates
    if column.map(type).nunique() > 1:  # pieces of a long file may have been read as different types
        return column.map(str, na_action="ignore")
    return column


def level_values(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return a column of categories as an array of Python objects, None for missing values; other objects raise."""
    values = column.astype(object).where(column.notna(), None).tolist()
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in {id(value): value for value in values}.values():
        if value is None:
            continue
        if not isinstance(value, (str, int, float, bool)) or (isinstance(value, float) and not math.isfinite(value)):
            raise TypeError(
                f"{name} holds {value!r} of type {type(value).__name__}; categories may be text, numbers or booleans. "
                "(argument must be a string or a real number.)"
            )
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


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


def quoted(names: Sequence[str]) -> str:
    """Return names in quotes, one after another."""
    return ", ".join(map(repr, names))
