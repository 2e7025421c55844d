"""Columns of a table: names, the kind of their values, and features, sensitive attributes and
targets as numbers.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.formatting import did_you_mean

Unit = Literal["number", "date", "duration"]

# Columns of a table, and of what a step of a model makes of it: a row takes a number for each.
MOST_COLUMNS = 2**17
# 0/1 columns that a column of text becomes at most: levels with fewer rows are grouped as "other".
MOST_LEVELS = 64
# Features beyond are taken as this number, so that no difference overflows: trees and ranks see
# their order alone, and one absurd cell must not stop the prediction of a whole file.
LARGEST_FEATURE = 1e150
# Cells of a text file that stand for a missing value.
MARKS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A")

NUMBERS = ("integer", "floating", "mixed-integer-float")
DURATIONS = ("time", "timedelta", "timedelta64")
DATES = ("datetime", "datetime64", "date", "period", *DURATIONS)


def expand(pattern: str, names: Sequence[str], table: str) -> list[str]:
    """Return the columns that a name or a pattern such as ``z_*`` matches, in the order of the
    table.

    Examples
    --------
    >>> expand("z_*", ["age", "z_1", "z_2"], "t.csv")
    ['z_1', 'z_2']
    """
    if pattern in names:
        return [pattern]
    matches = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not matches:
        raise ValueError(f"{table} has no column {pattern!r}.{did_you_mean(pattern, names)}")
    return matches


def common_name(names: Sequence[str]) -> str:
    """Return a name for the columns of a representation: their common prefix, such as z_*, or the
    only name.

    Examples
    --------
    >>> common_name(["z_1", "z_2"]), common_name(["a", "b"])
    ('z_*', 'z')
    """
    # names are no paths: letter by letter
    shared = os.path.commonprefix(list(names))  # noqa: RUF071
    return names[0] if len(names) == 1 else f"{shared}*" if shared else "z"


def check_distinct(names: Iterable[str], table: str) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(
            f"{table} has more than one column named {', '.join(repeated)}; rename them."
        )


def is_frame(table: Any) -> bool:
    """Return whether a table has named columns: a frame of pandas or polars, or a pyarrow Table."""
    if hasattr(table, "collect"):  # a polars LazyFrame, which warns if it is asked for its columns
        return True
    return hasattr(table, "columns") and (hasattr(table, "dtypes") or hasattr(table, "schema"))


def to_pandas(table: Any, name: str = "frame") -> pd.DataFrame:
    """Return a pandas or polars frame, a pyarrow table or a mapping of columns as a DataFrame with
    names of text.

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
            f"{name} is {type(table).__name__}; pass a pandas or polars DataFrame, a pyarrow Table"
            " or a mapping of columns."
        )
    if table.columns.nlevels > 1:
        raise ValueError(
            f"{name} has columns of {table.columns.nlevels} levels; join them into one name each,"
            " such as by columns.map('_'.join)."
        )
    return table.reset_index(drop=True).rename(columns=str)


def kind_of(column: pd.Series[Any]) -> Literal["number", "boolean", "category", "date"]:
    """Return the kind of a column by the type of its values: number, boolean, category or date.

    Examples
    --------
    >>> (
    ...     kind_of(pd.Series([True, False])),
    ...     kind_of(pd.Series([1, 2.5], dtype=object)),
    ...     kind_of(pd.Series(["a", "b"])),
    ... )
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


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether a column holds text only, as those of a text file do."""
    if pd.api.types.is_object_dtype(column):
        return pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty")
    return isinstance(column.dtype, pd.StringDtype)


def is_missing(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return which values are missing; in text, marks such as "NA" are."""
    return column.isna() | column.str.strip().isin(MARKS) if is_text(column) else column.isna()


def identifies_rows(levels: int, rows: int) -> bool:
    """Return whether text has more than 64 levels and at least nine tenths of its values are
    distinct.
    """
    return levels > MOST_LEVELS and levels >= 0.9 * rows


def feature(column: pd.Series[Any], name: str) -> tuple[np.ndarray, Unit | Literal["category"]]:
    """Return the values of a column of features, and what they are.

    Numbers, dates and durations become float64 with NaN for missing values, categories objects with
    None for them. Dates count days since 1970 (in UTC if they have a time zone), durations and
    times of day count days.

    Examples
    --------
    >>> feature(pd.Series(pd.to_datetime(["1970-01-03", None])), "since")
    (array([ 2., nan]), 'date')
    """
    kind = kind_of(column)
    if kind == "category":
        codes, levels = pd.factorize(column)
        return np.array([*map(plain_level, levels), None], dtype=object)[codes], "category"
    return days(column, name) if kind == "date" else (numbers(column, name), "number")


def days(column: pd.Series[Any], name: str) -> tuple[np.ndarray, Literal["date", "duration"]]:
    """Return dates as days since 1970, or durations and times of day as days; NaN for missing
    values.
    """
    values, day = pd.api.types.infer_dtype(column, skipna=True), pd.Timedelta(days=1)
    try:
        if values in DURATIONS:
            column = column.map(str, na_action="ignore") if values == "time" else column
            return (pd.to_timedelta(column) / day).to_numpy(dtype=np.float64), "duration"
        if values == "period":
            column = pd.Series(pd.PeriodIndex(column).to_timestamp())
        dates = pd.to_datetime(column, utc=True)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} holds dates that cannot be read: {error}. Turn them into numbers."
        ) from error
    return ((dates - pd.Timestamp(0, tz="UTC")) / day).to_numpy(dtype=np.float64), "date"


def numbers(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return a column as float64, with NaN for missing values; dates, infinite values and other
    text raise.

    Parameters
    ----------
    column
        Values. Messages count rows by the index if it has whole numbers.
    name
        How messages call the column.

    Examples
    --------
    >>> numbers(pd.Series(["1", None, "2.5"]), "age").tolist()
    [1.0, nan, 2.5]
    """
    if pd.api.types.is_complex_dtype(column):
        raise ValueError(
            f"{name} is complex; Complex data not supported: pass real and imaginary parts as"
            " columns."
        )
    if not pd.api.types.is_numeric_dtype(column):
        if kind_of(column) == "date":
            raise TypeError(
                f"{name} holds dates or times; turn it into a number, such as days since a"
                " reference."
            )
        values = pd.to_numeric(column.astype(object), errors="coerce")
        text = values.isna() & column.notna()
        if text.any():
            raise TypeError(
                f"{name} is not numeric: {examples(column[text])}. Write its values as numbers (two"
                " groups as 0 and 1, ordered levels as their rank, bands as 30-39). An audit also"
                " takes groups such as sex beside an attribute of numbers."
            )
        column = values
    result = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(result).any():
        found = examples(column[np.isinf(result)])
        raise ValueError(
            f"infinite values came in {name}: {found}; replace them or drop those rows."
        )
    return result


def require_moderate(column: pd.Series[Any], values: np.ndarray, name: str) -> None:
    """Raise if some values of a column, as numbers, are so large that statistics refuse them."""
    large = np.abs(values) > _arrays.LARGEST
    if large.any():
        raise ValueError(
            f"{name} has numbers that are too large to compute with: {examples(column[large])}; the"
            f" limit is {_arrays.LARGEST:g}. Correct or empty these cells, or rescale the column."
        )


def examples(column: pd.Series[Any]) -> str:
    """Return some of the values that should not be in a column, and the row of the first."""
    shown = ", ".join(repr(str(value)[:30]) for value in column.map(str).unique()[:3])
    return f"it holds {shown}, first in row {row_number(column, 0)}"


def row_number(column: pd.Series[Any], position: int) -> int:
    """Return the number of a row, counted from 1, by an index that counts from 0, or by its
    position.
    """
    index = column.index[position]
    return 1 + (int(index) if isinstance(index, (int, np.integer)) else position)


def plain_level(value: Any) -> Any:
    """Return a level as text, a number or a boolean of Python; anything else as text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


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


# Sensitive attributes

_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)"
_CLOSED = re.compile(
    rf"{_NUMBER}\s*(?:-|\u2013|\u2014|to|\.\.)\s*{_NUMBER}"
    rf"|[\[(]\s*{_NUMBER}\s*[,;]\s*{_NUMBER}\s*[\])]",
    re.IGNORECASE,
)
_BELOW = re.compile(rf"(?:<=?|\u2264|under|below|less than|up to)\s*{_NUMBER}", re.IGNORECASE)
_ABOVE = re.compile(
    rf"(?:>=?|\u2265|over|above|more than|from)\s*{_NUMBER}|{_NUMBER}\s*(?:\+|and over|and above|or"
    r" more|or older)",
    re.IGNORECASE,
)
_SINGLE = re.compile(_NUMBER)


class BandedAttributeWarning(UserWarning):
    """A sensitive attribute came in bands or ordered levels, and was turned into numbers."""


@dataclass(frozen=True, eq=False)
class Sensitive:
    """Attributes as float64 (n, q) with their names, and a sentence for each that was not
    numeric.
    """

    values: np.ndarray
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_sensitive(
    values: Any,
    name: str = "sensitive_features",
    *,
    default: str = "sensitive",
    allow_missing: bool = False,
) -> Sensitive:
    """Return sensitive attributes as numbers.

    Parameters
    ----------
    values : array, Series or frame of shape (n,) or (n, q)
        Numbers, or bands written as text; in a Series or a frame also ordered categories. See
        :func:`attribute`.
    name
        How messages call the argument.
    default
        Name of an attribute that has none.
    allow_missing
        Whether NaN stays as it is; else it raises.

    Examples
    --------
    >>> read_sensitive(pd.Series(["20-29", "30-39", "40+"], name="age")).values.ravel().tolist()
    [24.5, 34.5, 44.5]
    """
    values = (
        to_pandas(values, name)
        if is_frame(values) and not isinstance(values, pd.DataFrame)
        else values
    )
    table = _banded(values, name, default)
    if table is None:
        array = _arrays.matrix(values, name, allow_missing=allow_missing).astype(np.float64)
        return Sensitive(array, tuple(_arrays.column_names(values, default, array.shape[1])))
    parts = [attribute(table[column], f"{name} {column!r}") for column in table]
    array = np.column_stack([part for part, _ in parts])
    notes = tuple(note for _, note in parts if note)
    _arrays.matrix(array, name, allow_missing=allow_missing)
    return Sensitive(array, tuple(map(str, table.columns)), notes)


def attribute(column: pd.Series[Any], name: str) -> tuple[np.ndarray, str | None]:
    """Return one attribute as numbers, with NaN for missing values, and a sentence if it was not
    numeric.

    A band such as "30-39", "30 to 39" or a pandas Interval becomes its mid-point. An open band such
    as "<25", "under 25", "65+" or "65 and over" is taken to be as wide as the nearest closed one;
    without one it becomes its bound. Other ordered categories become 0, 1, ... in their order.

    Examples
    --------
    >>> attribute(pd.Series(["<20", "20-29", "30-39"]), "age")[0].tolist()
    [15.5, 24.5, 34.5]
    """
    if pd.api.types.is_numeric_dtype(column) or kind_of(column) != "category":
        return numbers(column, name), None
    categorical = isinstance(column.dtype, pd.CategoricalDtype)
    levels = list(column.cat.categories if categorical else column.dropna().unique())
    bands = {level: _band(level) for level in levels}
    if levels and all(bands.values()):
        points = _points({level: band for level, band in bands.items() if band})
        if not all(band[0] == band[1] for band in bands.values() if band):
            text = column.map(points).to_numpy(dtype=np.float64)
            written = [
                f"{level} as {point:g}"
                for level, point in sorted(points.items(), key=lambda pair: pair[1])
            ]
            return (
                text,
                f"{name} holds bands, which are taken at their mid-points: {_shortened(written)}.",
            )
    if categorical and column.cat.ordered:
        codes = np.asarray(column.cat.codes, dtype=np.float64)
        ranks = _shortened([f"{level} as {i}" for i, level in enumerate(column.cat.categories)])
        return (
            np.where(codes < 0, np.nan, codes),
            f"{name} holds ordered levels, which are taken as ranks: {ranks}.",
        )
    return numbers(column.astype(object), name), None


def _shortened(levels: list[str]) -> str:
    """Return levels in a row; of many, the first and the last ones."""
    most = 10
    return ", ".join(
        levels if len(levels) <= most else [*levels[: most // 2], "...", *levels[-most // 2 :]]
    )


def _banded(values: Any, name: str, default: str) -> pd.DataFrame | None:
    """Return a Series or a frame that is not all numeric, or an array of bands, as a frame; or
    None.
    """
    if isinstance(values, (list, np.ndarray)):
        array = np.asarray(values, dtype=object) if isinstance(values, list) else values
        if (
            array.ndim != 1
            or array.dtype.kind not in "UO"
            or pd.api.types.infer_dtype(array, skipna=True) != "string"
        ):
            return None
        text = pd.Series(array, name=default)
        return text.to_frame() if all(map(_band, text.dropna().unique())) else None
    if type(values).__module__.partition(".")[0] not in ("pandas", "polars", "pyarrow"):
        return None
    if is_frame(values):
        table = to_pandas(values, name)
        check_distinct(table.columns, name)
    elif hasattr(values, "to_numpy"):
        column = pd.Series(values.to_pandas() if hasattr(values, "to_pandas") else values)
        table = pd.DataFrame({_arrays.array_name(values, default): column.reset_index(drop=True)})
    else:
        return None
    plain = all(
        pd.api.types.is_numeric_dtype(table[column]) or kind_of(table[column]) == "date"
        for column in table
    )
    return None if plain else table


def _band(level: Any) -> tuple[float, float] | None:
    """Return both ends of a band, infinite where it is open, or None if it is none."""
    if isinstance(level, pd.Interval):
        return float(level.left), float(level.right)
    text = str(level).strip()
    if closed := _CLOSED.fullmatch(text):
        low, high = (float(end) for end in closed.groups() if end is not None)
        return (low, high) if low <= high else None
    if below := _BELOW.fullmatch(text):
        return -np.inf, float(below[1])
    if above := _ABOVE.fullmatch(text):
        return float(above[1] or above[2]), np.inf
    single = _SINGLE.fullmatch(text)
    return (float(single[0]), float(single[0])) if single else None


def _points(bands: dict[Any, tuple[float, float]]) -> dict[Any, float]:
    """Return the number that stands for each band."""
    closed = [band for band in bands.values() if np.isfinite(band).all()]
    points = {}
    for level, (low, high) in bands.items():
        if np.isfinite([low, high]).all():
            points[level] = low / 2 + high / 2
            continue
        bound = high if np.isinf(low) else low
        nearest = min(
            closed,
            key=lambda band: min(abs(band[0] - bound), abs(band[1] - bound)),
            default=(0.0, 0.0),
        )
        half = (nearest[1] - nearest[0]) / 2
        points[level] = bound - half if np.isinf(low) else bound + half
    return points


# Targets

# Affirmative answers, and the negative one that goes with each.
YES = {
    "ja": "nein",
    "yes": "no",
    "y": "n",
    "true": "false",
    "oui": "non",
    "sí": "no",
    "si": "no",
    "1": "0",
}
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}


def read_target(
    column: pd.Series[Any], positive: object = None
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Read a target without missing values: two different values are classes, other numbers a
    regression.

    Labels that differ only in case or in blanks around them are one.

    Parameters
    ----------
    column
        Values of the target.
    positive
        Value that counts as 1 against all others; left out, the affirmative of two answers such as
        yes and no, or the larger of two numbers.

    Returns
    -------
    codes
        0 or 1 for each row, or its number for a regression.
    classes
        What 0 and 1 stand for, as text, booleans or numbers; None for a regression. Where a value
        stands against several others, the first class is "not" and this value.
    notes
        Sentences on labels that were taken as one, and on the rows of each class.

    Examples
    --------
    >>> codes, classes, notes = read_target(pd.Series(["no", "yes", "yes"], name="paid"))
    >>> classes.tolist(), codes.tolist()
    (['no', 'yes'], [0.0, 1.0, 1.0])
    >>> notes
    ["Target 'paid': 1 is 'yes' (2 rows); 0 is 'no' (1 row)."]
    """
    column, notes = one_spelling(column)
    name, values = str(column.name), distinct(column)
    amounts = numbers(column, f"target {name!r}") if pd.api.types.is_numeric_dtype(column) else None
    shown = ", ".join(repr(str(value)[:30]) for value in values[:5]) + ", ..." * (len(values) > 5)
    if len(values) < 2:
        raise ValueError(
            f"target {name!r} is {values[0]!r} in every row; there is nothing to predict."
        )
    if positive is None and amounts is None:
        answers = {_folded(value): value for value in values}
        positive = next(
            (answers[yes] for yes, no in YES.items() if answers.keys() == {yes, no}), None
        )
    if positive is not None:
        codes = is_positive(column, positive, name)
        if not codes.any():
            hint = did_you_mean(str(positive), map(str, values[:500]))
            raise ValueError(f"{positive!r} is not a value of {name!r}: {shown}.{hint}")
        value, others = column[codes == 1].iloc[0], column[codes == 0].unique()
        classes = _classes(others[0] if len(others) == 1 else f"not {label(value)}", value)
        return codes, classes, [*notes, *_counted(column, codes)]
    if amounts is None:
        raise ValueError(
            f"the target {name!r} is text with {len(values)} different values: {shown}. Say which"
            " of them counts as 1 (--positive VALUE), against the others."
        )
    if len(values) == 2:
        codes = (column == values[1]).to_numpy(dtype=np.float64)
        return codes, _classes(*values), _counted(column, codes)
    return amounts, None, []


def one_spelling(column: pd.Series[Any]) -> tuple[pd.Series[Any], list[str]]:
    """Return labels of text, each in the most frequent of the spellings that differ only in case or
    blanks, and a sentence if some do.
    """
    if kind_of(column) != "category":
        return column, []
    counts = column.dropna().astype(str).value_counts()
    spellings: dict[str, list[str]] = {}
    for text in sorted(counts.index, key=lambda text: (-counts[text], text)):
        spellings.setdefault(_folded(text), []).append(text)
    several = [texts for texts in spellings.values() if len(texts) > 1]
    if not several:
        return column, []
    shown = "; ".join(f"{quoted(texts[1:6])} as {texts[0].strip()!r}" for texts in several[:3])
    more = "; ..." if len(several) > 3 else ""
    note = (
        f"Labels of {str(column.name)!r} that differ only in case or blanks are one: {shown}{more}."
    )
    merged = column.astype(object).map(
        lambda value: spellings[_folded(value)][0].strip(), na_action="ignore"
    )
    return merged, [note]


def _folded(text: object) -> str:
    return str(text).strip().casefold()


def _counted(column: pd.Series[Any], codes: np.ndarray) -> list[str]:
    """Return a sentence on the rows of each class, and one if the negative class has another word
    for yes.
    """
    labels = column.astype(object).map(label)
    ones, zeros = Counter(labels[codes == 1]), Counter(labels[codes == 0])
    shown = [
        ", ".join(f"{text!r} ({n:,} {'row' if n == 1 else 'rows'})" for text, n in part)
        for part in (ones.items(), zeros.most_common(5))
    ]
    more = f" and {len(zeros) - 5:,} other values" if len(zeros) > 5 else ""
    notes = [f"Target {str(column.name)!r}: 1 is {shown[0]}; 0 is {shown[1]}{more}."]
    affirmative = [text for text in zeros if _folded(text) in YES]
    if affirmative and any(_folded(text) in YES for text in ones):
        notes.append(
            f"{quoted(affirmative)} of {str(column.name)!r} counts as 0; if it means the same as"
            f" {quoted([*ones])}, write it so."
        )
    return notes


def _classes(*pair: Any) -> np.ndarray:
    """Return two classes in one type: text, booleans, or numbers, which are integers where both
    are.
    """
    if any(isinstance(value, str) for value in pair):
        return np.array([label(value) for value in pair], dtype=object)
    if all(isinstance(value, (bool, np.bool_)) for value in pair):
        return np.array(pair, dtype=bool)
    values = np.array(pair, dtype=np.float64)
    return values.astype(np.int64) if np.array_equal(values, np.round(values)) else values


def is_positive(column: pd.Series[Any], positive: object, name: str) -> np.ndarray:
    """Return 1 where a column has the value `positive`, NaN where it is missing, and 0 elsewhere.

    Text is compared without regard to case and to blanks around it.

    Examples
    --------
    >>> is_positive(pd.Series([" >50K", "<=50K", None]), ">50K", "income").tolist()
    [1.0, 0.0, nan]
    """
    if pd.api.types.is_bool_dtype(column):
        if (word := _folded(positive)) not in _TRUTH:
            raise ValueError(
                f"{positive!r} is not a value of {name!r}, which holds True and False; pass one of"
                " them."
            )
        values = column.eq(_TRUTH[word]).to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.is_numeric_dtype(column):
        try:
            # what is no number raises, and is caught
            equal = column.eq(float(positive))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ValueError(
                f"{positive!r} is to count as 1, but the target {name!r} holds numbers; pass one of"
                " them."
            ) from None
        values = equal.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        text = column.astype(str).str.strip().str.casefold()
        values = (text == _folded(positive)).to_numpy(dtype=np.float64)
    return np.where(column.isna().to_numpy(), np.nan, values)
