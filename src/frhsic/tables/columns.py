"""Columns of a table: names, the kind of their values, and features as numbers."""

from __future__ import annotations

import csv
import fnmatch
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import pandas as pd

from frhsic import _arrays
from frhsic.formatting import did_you_mean

# Most columns of a table and of the output of a model's step, since each row has a number per
# column.
MOST_TABLE_COLUMNS = 2**17
# Most 0/1 columns for a column of text: levels with fewer rows are grouped as "other".
MOST_ENCODED_LEVELS = 64
# Larger features are clipped to this number so that no difference overflows: trees and ranks depend
# only on their order, and one absurd cell must not stop the prediction of a whole file.
LARGEST_FEATURE = 1e150
# Cells of a text file that mean a missing value.
MARKS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "#N/A")

# Names of columns that identify rows or people.
NAMED_ID = re.compile(
    r"((.*[^a-zA-Z])?(?i:id|uuid|guid|nr|no|number)|.*[a-z](Id|ID|Nr|No|Number))\W*"
)
# What separates the words of a label, and periods at its end.
BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])[\s._-]+(?=[^\W\d_])|(?<=[^\W\d_])\.+$")
NUMBERS = ("integer", "floating", "mixed-integer-float")
DURATIONS = ("time", "timedelta", "timedelta64")
# Numbers in text, possibly with groups of three digits; what groups digits besides points and
# commas; and numbers that are read by the decimal separator of the file.
_GROUPED = r"([-+]?[0-9]+(?:[.,'\u2019\u00a0\u202f\u2009 ][0-9]{3})*(?:[.,][0-9]+)?)"
_GAPS = re.compile(r"['\u2019\u00a0\u202f\u2009 ]")
_BY_DECIMAL = re.compile(r"[-+]?[1-9][0-9]{0,2}[.,][0-9]{3}")
# The asterisk that stands for a number; one after a backslash stands for itself.
_ASTERISK = re.compile(r"(?<!\\)\*")
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
    # names are not paths: compare letter by letter
    shared = os.path.commonprefix(list(names))  # noqa: RUF071
    if len(names) == 1:
        return names[0]
    return f"{shared}*" if shared else "z"


def check_distinct(names: Iterable[str], table: str) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(
            f"{table} has more than one column named {', '.join(repeated)}; rename them."
        )


def is_frame(table: Any) -> bool:
    """Return whether a table has named columns: a pandas or polars frame, or a pyarrow Table."""
    if isinstance(table, pd.DataFrame):
        return True
    if hasattr(table, "collect"):  # a polars LazyFrame, which warns when asked for its columns
        return True
    return hasattr(table, "columns") and (hasattr(table, "dtypes") or hasattr(table, "schema"))


def to_pandas(table: Any, name: str = "frame") -> pd.DataFrame:
    """Return a pandas or polars frame, a pyarrow table or a mapping of columns as a DataFrame whose
    column names are strings.

    Examples
    --------
    >>> to_pandas({"age": [31, 52]}).shape
    (2, 1)
    """
    if hasattr(table, "collect") and hasattr(table, "lazy"):  # a polars LazyFrame
        table = table.collect()
    _arrays.require_values(table, name)
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
            f"{name} has {table.columns.nlevels}-level column labels; join each into one name,"
            " for example with columns.map('_'.join)."
        )
    frame = table.reset_index(drop=True)
    named = all(isinstance(name, str) for name in frame.columns.tolist())
    return frame if named else frame.rename(columns=str)


def column_kind(column: pd.Series[Any]) -> Literal["number", "boolean", "category", "date"]:
    """Return the kind of a column from the type of its values: number, boolean, category or date.

    Examples
    --------
    >>> (
    ...     column_kind(pd.Series([True, False])),
    ...     column_kind(pd.Series([1, 2.5], dtype=object)),
    ...     column_kind(pd.Series(["a", "b"])),
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
    if values in NUMBERS:
        return "number"
    return "date" if values in DATES else "category"


def is_text(column: pd.Series[Any]) -> bool:
    """Return whether a column contains only text, as columns of a text file do."""
    if pd.api.types.is_object_dtype(column):
        return pd.api.types.infer_dtype(column, skipna=True) in ("string", "empty")
    return isinstance(column.dtype, pd.StringDtype)


def is_missing(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a mask of missing values; in text, markers such as "NA" are missing."""
    return column.isna() | column.str.strip().isin(MARKS) if is_text(column) else column.isna()


def mask_codes(column: pd.Series[Any], codes: Sequence[str]) -> pd.Series[Any]:
    """Return a column with codes for missing values replaced by missing values. Numbers are
    compared as numbers, and text ignoring case.

    Examples
    --------
    >>> mask_codes(pd.Series(["31", "-9.0", "Unknown"]), ["-9", "unknown"]).tolist()
    ['31', nan, nan]
    """
    if not codes:
        return column
    known = {_code_key(code) for code in codes}
    values = [value for value in column.dropna().unique() if _code_key(level_text(value)) in known]
    return column.mask(column.isin(values)) if values else column


def _code_key(text: str) -> str | float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text.replace(",", ".").strip().casefold()


def missing_codes(texts: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the codes for missing values of each column that has any.

    Each text is a list of codes for all columns, or "column=codes" for one of them.

    Examples
    --------
    >>> missing_codes(["-9", "job=unknown,none"], ["age", "job"])
    {'age': ('-9',), 'job': ('-9', 'unknown', 'none')}
    """
    codes: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, sign, listed = text.rpartition("=")
        if sign and name not in names:
            raise ValueError(
                f"--missing {text}: there is no column {name!r}.{did_you_mean(name, names)}"
            )
        parts = tuple(part.strip() for part in listed.split(",") if part.strip())
        for column in [name] if sign else names:
            codes[column] = (*codes.get(column, ()), *parts)
    return codes


def parse_replacements(texts: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the values to replace in each column, with the new ones.

    Each text is "column=old:new", with several pairs separated by commas; quotes protect a comma.

    Examples
    --------
    >>> parse_replacements(["debt=none:0", "sex=M:male, F:female"], ["debt", "sex"])
    {'debt': {'none': '0'}, 'sex': {'M': 'male', 'F': 'female'}}
    """
    replacements: dict[str, dict[str, str]] = {}
    for text in texts:
        name, sign, listed = text.partition("=")
        if sign and name not in names:
            raise ValueError(
                f"--replace {text}: there is no column {name!r}.{did_you_mean(name, names)}"
            )
        own = replacements.setdefault(name, {})
        for pair in next(csv.reader([listed], skipinitialspace=True), ()):
            old, _, new = map(str.strip, pair.rpartition(":"))
            if not old or not new:
                sign = ""
            if "*" in new and len(_ASTERISK.findall(old)) > 1:
                raise ValueError(
                    f"--replace {text}: {old!r} has several asterisks, but only one can stand for a"
                    r" number. Write \* for one that is part of the cells, as in age=*\*:*."
                )
            own[old] = new
        if not sign or not own:
            raise ValueError(
                f"--replace {text}: write COLUMN=OLD:NEW, such as sex=M:male. For values that"
                " mean missing, use --missing."
            )
        keys = {_code_key(old): _code_key(new) for old, new in own.items()}
        for old, new in own.items():  # so that replacing twice changes nothing more
            if keys.get(_code_key(new), _code_key(new)) != _code_key(new):
                raise ValueError(
                    f"--replace {text}: {new!r}, which replaces {old!r}, is itself replaced. Pass"
                    " the final value instead."
                )
    return replacements


def replace_values(
    column: pd.Series[Any], replacements: Mapping[str, str], decimal: str | None = None
) -> pd.Series[Any]:
    """Return a column with some values replaced. They are compared like the codes in
    :func:`mask_codes`; in text with decimal commas, the new numbers get decimal commas, too. An
    asterisk in both values stands for any number; a factor before the second asterisk multiplies
    it. In the old value, an asterisk after a backslash stands for itself.

    Examples
    --------
    >>> replace_values(pd.Series(["M", "m ", "male"]), {"m": "male"}).tolist()
    ['male', 'male', 'male']
    >>> replace_values(pd.Series([3, 99]), {"99": "0"}).tolist()
    [3.0, 0.0]
    >>> replace_values(pd.Series(["2 km", "850m"]), {"* km": "*", "* m": "0.001*"}).tolist()
    ['2', '0.85']
    >>> replace_values(pd.Series(["47.785 DM", "9,5"]), {"* DM": "*"}, ",").tolist()
    ['47785', '9,5']
    """
    texts = {_code_key(old): new for old, new in replacements.items()}
    values = column.dropna().unique()
    new: dict[Any, Any] = {}
    by_decimal: list[str] = []
    for value in values:
        text = texts.get(_code_key(level_text(value)))
        if text is None and (measured := _number_and_factor(value, replacements)):
            number, factor = measured
            if _BY_DECIMAL.fullmatch(number):
                by_decimal.append(str(value))
            text = f"{factor * float(_python_number(number, decimal or '.')):.10g}"
        if text is None:
            continue
        key = _code_key(text)
        new[value] = text
        if isinstance(key, float) and not isinstance(value, str):
            new[value] = key
        elif isinstance(key, float) and decimal == ",":
            new[value] = text.replace(".", ",")
    if not new:
        return column
    if by_decimal and (other := _other_decimal(values, replacements, decimal or ".")):
        raise ValueError(
            f"--replace: {by_decimal[0]!r} in column {str(column.name)!r} is ambiguous, since"
            f" {other!r} doesn't have the decimal separator of the other columns,"
            f" {decimal or '.'!r}. Write the numbers of this column alike in the file."
        )
    replaced = column.astype(object).map(lambda value: new.get(value, value), na_action="ignore")
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = dict.fromkeys(new.get(level, level) for level in column.cat.categories)
        return replaced.astype(pd.CategoricalDtype([*levels], column.cat.ordered))
    return replaced.infer_objects()


def _number_and_factor(value: object, replacements: Mapping[str, str]) -> tuple[str, float] | None:
    """Return the number in text such as "850 m", as written, and the factor that converts it to
    another unit by a replacement such as "* m" with "0.001*"; None if no replacement applies.
    """
    for old, new in replacements.items():
        factor = _code_key(new.removesuffix("*") or "1")
        parts = _ASTERISK.split(old.replace(" ", ""))
        if len(parts) == 2 and new.endswith("*") and isinstance(factor, float):
            before, after = (re.escape(part.replace(r"\*", "*")) for part in parts)
            pattern = rf"{before}\s*{_GROUPED}\s*{after}\.?"
            if found := re.fullmatch(pattern, str(value).strip(), re.IGNORECASE):
                return found[1], factor
    return None


def _python_number(text: str, decimal: str) -> str:
    """Return a number in text without separators of digits, and with a decimal point. Three digits
    after the only separator are decimals if it is the decimal separator of the file.

    Examples
    --------
    >>> _python_number("1.234,5", "."), _python_number("3,5", "."), _python_number("1,250", ".")
    ('1234.5', '3.5', '1250')
    """
    bare = _GAPS.sub("", text)
    signs = [sign for sign in bare if sign in ".,"]
    point = signs[-1] if signs else decimal
    if len(signs) > 1 and len({*signs}) == 1:
        point = ""
    elif _BY_DECIMAL.fullmatch(bare):
        point = decimal
    return "".join("." if sign == point else sign for sign in bare if sign not in {*".,"} - {point})


def _other_decimal(
    values: Iterable[Any], replacements: Mapping[str, str], decimal: str
) -> str | None:
    """Return a number among text, with or without a unit, whose decimal separator clearly isn't
    that of the file; None if there is none.
    """
    other = "," if decimal == "." else "."
    for value in filter(lambda value: isinstance(value, str), values):
        number, _ = _number_and_factor(value, replacements) or (value.strip(), 1.0)
        clear = re.fullmatch(_GROUPED, number) and not _BY_DECIMAL.fullmatch(number)
        if clear and number.count(other) == 1 and number.rfind(other) > number.rfind(decimal):
            return str(value)
    return None


def absent_values(
    column: pd.Series[Any], values: Iterable[str], decimal: str | None = None
) -> list[str]:
    """Return which of these values do not occur in a column."""
    return [value for value in values if replace_values(column, {value: "*"}, decimal) is column]


def require_present(absent: Mapping[str, Sequence[str]], table: str) -> None:
    """Raise if values to be replaced do not occur in their column."""
    for name, values in absent.items():
        if values:
            raise ValueError(f"--replace: {table} has no value {values[0]!r} in column {name!r}.")


def repeated_rows(frame: pd.DataFrame) -> np.ndarray:
    """Return which rows repeat an earlier one in all columns.

    Examples
    --------
    >>> repeated_rows(pd.DataFrame({"age": [31, 52, 31], "tags": [["a"], ["a"], ["a"]]})).tolist()
    [False, False, True]
    """
    try:
        return frame.duplicated().to_numpy()
    except TypeError:  # cells that contain lists
        return frame.astype(str).duplicated().to_numpy()


def identifies_rows(levels: int, rows: int) -> bool:
    """Return whether text has more than 64 levels and at least nine tenths of its values are
    distinct.
    """
    return levels > MOST_ENCODED_LEVELS and levels >= 0.9 * rows


def feature(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return the values of a column of features.

    Numbers, dates and durations become float64 with NaN for missing values; categories become
    objects with None.

    Examples
    --------
    >>> feature(pd.Series(pd.to_datetime(["1970-01-03", None])), "since").tolist()
    [2.0, nan]
    """
    kind = column_kind(column)
    if kind == "category":
        codes, levels = pd.factorize(column)
        return np.array([*map(plain_level, levels), None], dtype=object)[codes]
    return days(column, name) if kind == "date" else numbers(column, name)


def days(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return dates as days since 1970 (in UTC if they have a time zone), or durations and times of
    day as days; NaN for missing values.
    """
    values = pd.api.types.infer_dtype(column, skipna=True)
    day = pd.Timedelta(days=1)
    if pd.api.types.is_numeric_dtype(column) and column.notna().any():
        raise ValueError(
            f"{name} contains numbers; in the training rows, it contained dates or durations."
            " Convert it to dates or durations."
        )
    try:
        if values in DURATIONS:
            column = column.map(str, na_action="ignore") if values == "time" else column
            return np.asarray((pd.to_timedelta(column) / day).to_numpy(dtype=np.float64))
        if values == "period":
            column = pd.Series(pd.PeriodIndex(column).to_timestamp())
        dates = pd.to_datetime(column, utc=True)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{name} contains dates that cannot be converted: {error}. Convert them to numbers."
        ) from error
    since = dates - pd.Timestamp(0, tz="UTC")
    return np.asarray((since / day).to_numpy(dtype=np.float64))


def numbers(column: pd.Series[Any], name: str) -> np.ndarray:
    """Return a column as float64, with NaN for missing values; raise for dates, infinite values and
    text that is not a number.

    Parameters
    ----------
    column
        Values. Messages use the index to number rows if it contains whole numbers.
    name
        Name of the column in messages.

    Examples
    --------
    >>> numbers(pd.Series(["1", None, "2.5"]), "age").tolist()
    [1.0, nan, 2.5]
    """
    if pd.api.types.is_complex_dtype(column):
        raise ValueError(
            f"Complex data not supported: {name} is complex; pass its real and imaginary parts as"
            " separate columns."
        )
    if not pd.api.types.is_numeric_dtype(column):
        if column_kind(column) == "date":
            raise TypeError(
                f"{name} contains dates or times; convert it to a number, such as days since a"
                " reference date."
            )
        values = pd.to_numeric(column.astype(object), errors="coerce")
        text = values.isna() & column.notna()
        if text.any():
            raise TypeError(
                f"{name} is not numeric: {examples(column[text])}. Write its values as numbers (two"
                " groups as 0 and 1, ordered levels as ranks) or as bands such as 30-39."
            )
        column = values
    result = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if np.isinf(result).any():
        shown = examples(column[np.isinf(result)])
        raise ValueError(
            f"{name} contains infinite values: {shown}; replace these values, or drop their rows."
        )
    return result


def require_moderate(column: pd.Series[Any], values: np.ndarray, name: str) -> None:
    """Raise if a column contains numbers too large for statistics."""
    large = np.abs(values) > _arrays.LARGEST_NUMBER
    if large.any():
        raise ValueError(
            f"{name} contains numbers that are too large to compute with:"
            f" {examples(column[large])}. The limit is {_arrays.LARGEST_NUMBER:g}. Correct or clear"
            " these cells, or rescale the column."
        )


def examples(column: pd.Series[Any]) -> str:
    """Return a few unexpected values of a column, and the row number of the first."""
    shown = ", ".join(repr(str(value)[:30]) for value in column.map(str).unique()[:3])
    return f"it contains {shown}, first in row {row_number(column, 0)}"


def row_number(column: pd.Series[Any], position: int) -> int:
    """Return the number of a row, counted from 1, given a 0-based index label or the row's
    position.
    """
    index = column.index[position]
    return 1 + (int(index) if isinstance(index, (int, np.integer)) else position)


def plain_level(value: Any) -> Any:
    """Return a level as a Python string, number or boolean; anything else as text."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def distinct_values(column: pd.Series[Any]) -> list[Any]:
    """Return the distinct values of a column: categories in their own order, others sorted.

    Examples
    --------
    >>> distinct_values(pd.Series(["b", None, "a", "b"]))
    ['a', 'b']
    """
    present = column.dropna().unique()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [level for level in column.cat.categories if level in set(present)]
    return sorted(present.tolist(), key=lambda value: (type(value).__name__, value))


def level_text(value: object) -> str:
    """Return a value as text; a float such as 3.0 is written as an integer.

    Examples
    --------
    >>> level_text(3.0), level_text("cook")
    ('3', 'cook')
    """
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def fold_text(text: object) -> str:
    return " ".join(str(text).split()).casefold()


def fold_spelling(text: object) -> str:
    """Return text in lower case, without whitespace, hyphens and periods between letters, and
    without periods at the end.

    Examples
    --------
    >>> fold_spelling("Out of work-force"), fold_spelling("N.E."), fold_spelling("A- 1-2")
    ('outofworkforce', 'ne', 'a- 1-2')
    """
    return BETWEEN_LETTERS.sub("", fold_text(text))


def unify_spelling(
    column: pd.Series[Any], fold: Callable[[object], str] = fold_text
) -> tuple[pd.Series[Any], list[str]]:
    """Merge text labels that fold to the same text into the most frequent spelling; also return a
    message if any were merged.
    """
    if column_kind(column) != "category":
        return column, []
    counts = column.dropna().astype(str).value_counts()
    spellings: dict[str, list[str]] = {}
    for text in sorted(counts.index, key=lambda text: (-counts[text], text)):
        spellings.setdefault(fold(text), []).append(text)
    several = [texts for texts in spellings.values() if len(texts) > 1]
    if not several:
        return column, []
    shown = "; ".join(
        f"{list_names(texts[1:6])} into {texts[0].strip()!r}" for texts in several[:3]
    )
    more = "; ..." if len(several) > 3 else ""
    joined = any(len({*map(fold_text, texts)}) > 1 for texts in several)
    signs = "case, whitespace, hyphens or periods" if joined else "case or whitespace"
    note = f"Labels of {str(column.name)!r} that differ only in {signs} are merged: {shown}{more}."
    merged = column.astype(object).map(
        lambda value: spellings[fold(value)][0].strip(), na_action="ignore"
    )
    return merged, [note]


def quote_names(names: Sequence[str]) -> str:
    """Return names in quotes, separated by commas."""
    return ", ".join(map(repr, names))


def list_names(names: Sequence[str]) -> str:
    """Return names in quotes, with "and" before the last one."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} and {last}" if others else last


# Types of columns that are saved, by their names in pandas.
_SAVED_TYPE = re.compile(
    r"category|object|str|string(\[\w+\])?|bool(ean)?|([Uu]?[Ii]nt|[Ff]loat)\d\d?"
    r"|(datetime|timedelta)64\[[mun]?s(, [A-Z][\w+:/-]*)?\]"
)


def column_parts(
    column: pd.Series[Any],
) -> tuple[str, np.ndarray, np.ndarray | None, bool | None]:
    """Return the type of a column, its numbers or codes, its levels, and whether categories are
    ordered.

    Examples
    --------
    >>> column_of_parts(*column_parts(pd.Series(["b", None, "b"]))).tolist()
    ['b', nan, 'b']
    """
    values: Any = column
    levels = None
    ordered = None
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.codes
        levels = column.cat.categories
        ordered = bool(column.cat.ordered)
    elif column.dtype.kind in "mM":  # dates and durations
        values = column.astype("int64")
    elif column.dtype == object or not isinstance(column.dtype, np.dtype):
        values, levels = pd.factorize(column)
    known = None if levels is None else np.array(levels, object)
    return str(column.dtype), np.array(values), known, ordered


def column_of_parts(
    dtype: Any, values: np.ndarray, levels: np.ndarray | None, ordered: bool | None
) -> pd.Series[Any]:
    """Return the column that :func:`column_parts` split into parts."""
    if not _SAVED_TYPE.fullmatch(dtype):
        raise ValueError(f"a column cannot be of type {dtype!r}")
    if levels is None:
        return pd.Series(values).astype(dtype)
    if ordered is None:
        values = np.append(levels, np.nan)[values]  # -1 is a missing value
        return cast("pd.Series[Any]", pd.Series(values, dtype=dtype))
    return pd.Series(pd.Categorical.from_codes(values, pd.Index(levels.tolist()), ordered))
