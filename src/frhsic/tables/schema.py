"""The schema of a table: the type of each column, learned once from all rows and applied to every
later table.

Cells are converted by the schema, never by inspecting their neighbors: the level "007" stays "007"
in a file whose other codes are all digits.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.tables.columns import (
    DURATIONS,
    LARGEST_FEATURE,
    MARKS,
    column_kind,
    days,
    examples,
    fold_text,
    identifies_rows,
    is_text,
    level_text,
    mask_codes,
    numbers,
    plain_level,
    replace_values,
)

# Kinds of columns. The levels of "text" are known but not fixed; a "category" is pandas' type.
ColumnKind = Literal[
    "number", "boolean", "date", "duration", "text", "category", "identifier", "empty"
]
# Cells of a column of numbers or dates that mean a missing value; in text, "none" may be a level.
NUMBER_MARKS = (*MARKS, "na", "None", "none", "-", ".")
TRUTH = {"true": 1.0, "false": 0.0}
NUMBER = r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
# Units before or after a number: money and percent.
_UNIT = (
    r"(?:(?:US|CA|AU|NZ|HK|[ACRS])?\$|[£¥%\u20a0-\u20cf]|z\u0142|K\u010d|Ft|Rs\.?|Fr\.?"
    r"|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|TRY)\b|kr\.?)"
)
UNITS = rf"^([-+]?)\s*{_UNIT}\s*|\s*{_UNIT}$"
# A number with a unit of time, mass or length, which must be the same in a whole column.
MEASURED = (
    r"(?i)^([-+]?[0-9]+(?:[.,][0-9]+)?)\s*(years?|yrs?|y\.?o|y|jahre?|months?|monate?|weeks?"
    r"|wochen?|days?|tage?|hours?|hrs?|h|min|kg|mg|g|lbs?|cm|mm|km|ml)\.?$"
)
# Thousands separators that are never decimal separators.
GROUP_SIGNS = r"(?<=[0-9])['\u2019\u00a0\u202f\u2009 ](?=[0-9]{3}(?![0-9]))"
# Fewest distinct numbers such as 1,234, all with three digits after the comma, that show that the
# comma is not a decimal comma in a file with decimal points.
CLEARLY_GROUPED = 20
# Decimal separators of a column of numbers with decimal points, a few of which have decimal commas,
# and a number whose comma cannot separate thousands.
BOTH_SIGNS = ".,"
DECIMAL_COMMA = "[-+]?([0-9]+,([0-9]{1,2}|[0-9]{4,})|0?,[0-9]+)"
# Suffixes for thousands and millions.
MAGNITUDES = {"k": "e3", "m": "e6"}
# Leading zeros would be lost in a number: a column with such a cell contains codes.
CODE = r"^[-+]?(?:0[0-9]|[0-9]{16,}$)"
# A column contains dates if at least this share of its distinct values look like dates.
MOST_DATES = 0.5
LEVELLED = ("text", "category", "identifier")
# Most characters of a date format.
LONGEST_FORMAT = 100
# A table with at most this many rows is encoded cell by cell, which is faster than column by
# column.
FEW_ROWS = 8
_DAY = "(0?[1-9]|[12][0-9]|3[01])"
_MONTH = "(jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-zä]*"
# Text that looks like a date: a day, a month and a year, perhaps with a weekday and a time.
DATE = (
    f"([a-z]+[,. ]+)?({_DAY}[-/. ]{_DAY}[-/. ]([0-9]{{2}}){{1,2}}"
    f"|[0-9]{{4}}[-/. ]{_DAY}[-/. ]{_DAY}"
    f"|({_DAY}[-. ]+{_MONTH}|{_MONTH}[-. ]+{_DAY})[-., ]+[0-9]{{2,4}})([T ,].*)?"
)
# Dates without a year into which a spreadsheet converts numbers and ranges, such as 3-Jan, 01.Mär
# and Oct 24, by the usual abbreviations of each month.
MONTHS = (
    "jan janv ene",
    "feb févr",
    "mar mär mrz mars",
    "apr avr abr",
    "may mai",
    "jun juin",
    "jul juil",
    "aug août ago",
    "sep sept",
    "oct okt",
    "nov",
    "dec dez déc dic",
)
_ABBREVIATED = f"({'|'.join(' '.join(MONTHS).split())})"
SHORT_DATE = rf"{_DAY}[-. ]+{_ABBREVIATED}\.?|{_ABBREVIATED}[-. ]+[0-9]{{2}}"
# Share of numbers among the other cells above which dates are taken for converted numbers; complete
# dates are not searched for among numbers that may be years.
MOST_NUMBERS = 0.9
LEAST_YEAR = 1000
# Formats to try if the usual ones do not fit, day-first formats before others.
DATE_FORMATS = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d.%m.%y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b %d, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
DOTTED_DATE = r"^([0-9]+)\.([0-9]+)\.([0-9]{4})$"


@dataclass(frozen=True)
class ColumnType:
    """The type of a column: its kind, its levels, if any, and the format of its values in text.
    Dates have a strptime format or, if that is empty, are written as 2024-05-31 or 31.05.2024. If
    `grouped`, numbers may be written as 1,234.5 (with decimal commas, 1.234,5) and with a unit:
    $1,234.5 or, if `unit` is "kg", 1,234.5 kg. `decimal` is the decimal separator of the column if
    it differs from that of the file; :data:`BOTH_SIGNS` means points and commas.
    """

    name: str
    kind: ColumnKind
    levels: tuple[Any, ...] = ()
    date_format: str = ""
    ordered: bool = False
    grouped: bool = False
    decimal: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        if self.date_format:
            _dates(pd.Series(["x"]), self.date_format)  # raises for an invalid format

    def __call__(self, column: pd.Series[Any], decimal: str = ".") -> pd.Series[Any]:
        """Return the values in the column's type, with NaN for missing ones."""
        if self.kind == "empty":
            values: Any = np.nan
        elif self.kind in LEVELLED:
            values = self._to_levels(column)
        elif is_text(column):
            values = self._from_text(column, self.decimal or decimal)
        elif self.kind in ("number", "boolean") and column_kind(column) != "boolean":
            values = numbers(column, f"column {self.name!r}")
        else:
            return column
        return pd.Series(values, column.index, name=self.name)

    def _to_levels(self, column: pd.Series[Any]) -> Any:
        codes, levels = self._match_levels(column)
        values = np.array([*levels, None], dtype=object)[codes]
        if self.kind != "category":
            return values
        return pd.Categorical(values, categories=list(self.levels), ordered=self.ordered)

    def _from_text(self, column: pd.Series[Any], decimal: str) -> Any:
        """Return cells of text as values; raise if one can neither be parsed nor is a marker for
        missing values.
        """
        codes, values = pd.factorize(column)
        cells = pd.Series(values, dtype=str).str.strip()
        missing = cells.isin(NUMBER_MARKS)
        parsed = self._parse(cells.mask(missing), decimal)
        wrong = np.flatnonzero(parsed.isna() & ~missing)
        if len(wrong):
            raise self._unreadable(column[np.isin(codes, wrong)])
        whole = self.kind == "boolean" and not missing.any() and codes.min(initial=0) == 0
        read = parsed.array.take(codes, allow_fill=True)
        return read.astype(bool) if whole else read

    def _unreadable(self, cells: pd.Series[Any]) -> ValueError:
        shown = examples(cells)
        if self.kind == "date":
            date_format = self.date_format or "2024-05-31 or 31.05.2024"
            return ValueError(
                f"column {self.name!r} is a date column, but {shown}, which does not match"
                f" {date_format}. Pass the format with --date-format, such as %d/%m/%Y (in Python,"
                " use pd.to_datetime)."
            )
        held = {"number": "numbers", "boolean": "true and false", "duration": "durations"}
        return ValueError(
            f"column {self.name!r} contained {held[self.kind]} in training, but {shown}."
        )

    @cached_property
    def _positions(self) -> dict[str, int]:
        """The position of each level, by its text."""
        return {level_text(level): position for position, level in enumerate(self.levels)}

    @cached_property
    def _spellings(self) -> dict[str, int]:
        """The position of each level, by its casefolded text if that is unique."""
        folds = [fold_text(text) for text in self._positions]
        counts = Counter(folds)
        return {fold: place for place, fold in enumerate(folds) if counts[fold] == 1}

    def _position(self, text: str) -> int | None:
        """Return the position of the level that a text denotes."""
        for key in (text, text.strip()):
            if key in self._positions:
                return self._positions[key]
        return self._spellings.get(fold_text(text))

    def code(self, cell: Any) -> float | None:
        """Return one value as a number, like :meth:`codes`, or None if only that method can convert
        it.
        """
        if not pd.api.types.is_scalar(cell):
            return None
        if pd.isna(cell):
            return math.nan
        if self.kind in LEVELLED:
            place = self._position(level_text(cell))
            return math.nan if place is None else place
        plain = cell.item() if isinstance(cell, np.generic) else cell
        number = self.kind in ("number", "boolean") and isinstance(plain, (int, float))
        return float(plain) if number and abs(plain) <= LARGEST_FEATURE else None

    def codes(self, column: pd.Series[Any]) -> np.ndarray:
        """Return the values as float64: levels by their positions, dates and durations in days, NaN
        for values that are missing or did not occur in training.
        """
        name = f"column {self.name!r}"
        if self.kind in LEVELLED:
            rows, values = _factorize(column)
            places = [self._position(level_text(value)) for value in values]
            return np.asarray(np.array([*places, None], dtype=np.float64)[rows])
        if self.kind in ("date", "duration"):
            return days(self(column), name)
        if self.kind == "empty" or is_text(column):
            column = self(column)
        return numbers(column, name)

    def count_unseen(self, column: pd.Series[Any]) -> Counter[str]:
        """Count the values that did not occur in training."""
        if self.kind not in ("text", "category"):
            return Counter()
        codes, levels = self._match_levels(column)
        counts = np.bincount(codes[codes >= 0])  # each distinct value occurs
        known = {None, *self.levels}
        return Counter({level: int(n) for level, n in zip(levels, counts) if level not in known})

    def _match_levels(self, column: pd.Series[Any]) -> tuple[np.ndarray, list[Any]]:
        """Return the position of each value among the distinct ones, and the level of each distinct
        value.
        """
        codes, values = _factorize(column)
        levels: list[Any] = []
        for text in map(level_text, values):
            place = self._position(text)
            bare = text.strip()
            if place is not None:
                levels.append(self.levels[place])
            else:
                levels.append(None if bare in MARKS and self.kind != "identifier" else bare)
        return codes, levels

    def _parse(self, cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
        """Parse text that contains no markers for missing values; text that cannot be read becomes
        NaN.
        """
        if self.kind == "number":
            if self.grouped:
                cells = remove_units(remove_measure(cells, self.unit))
                if decimal == BOTH_SIGNS:
                    cells = commas_to_points(cells)
                else:
                    cells = remove_grouping(cells, decimal)
            return parse_numbers(cells, decimal)
        if self.kind == "boolean":
            return cells.str.lower().map(TRUTH).astype(np.float64)
        if self.kind == "duration":
            return pd.to_timedelta(cells, errors="coerce")
        return pd.Series(_dates(cells, self.date_format).dt.tz_localize(None))


@dataclass(frozen=True)
class Schema:
    """The type of each column of a table, and the format of its text file.

    Attributes
    ----------
    columns : tuple of ColumnType
    decimal : str
        Decimal separator of text.
    separator : str
        Character between the fields of the file that the schema was learned from; empty unless that
        was a text file.
    fingerprint : str
        SHA-256 of that file; empty if unknown.
    missing : dict
        Codes for missing values, also for columns that are not in the schema.

    Examples
    --------
    >>> schema = Schema.learn(
    ...     pd.DataFrame({"code": ["007", "A12"], "age": ["31", "?"]}), decimal="."
    ... )
    >>> [column.kind for column in schema.columns]
    ['text', 'number']
    >>> schema(pd.DataFrame({"code": ["007"], "age": ["40"]})).to_dict("list")
    {'code': ['007'], 'age': [40.0]}
    """

    columns: tuple[ColumnType, ...]
    decimal: str = "."
    separator: str = ""
    fingerprint: str = ""
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def learn(
        cls,
        table: pd.DataFrame,
        *,
        decimal: str | None = None,
        separator: str = "",
        date_format: str = "",
    ) -> Schema:
        """Learn the types of the columns of a table from all of its rows.

        Parameters
        ----------
        table
            Columns of text or of any type.
        decimal
            Decimal separator of a text file, whose columns of digits are numbers. None for a table
            with typed columns: there, text stays text unless it looks like dates.
        separator
            Character between the fields of a text file.
        date_format
            A strptime format, used for columns of text in which it fits most values.
        """
        columns = tuple(
            _learn_column(str(name), table[name], decimal, date_format) for name in table
        )
        return cls(columns, decimal or ".", separator)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """The kind of each column."""
        return {column.name: column.kind for column in self.columns}

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some of the columns."""
        known = {column.name: column for column in self.columns}
        return replace(self, columns=tuple(known[name] for name in names))

    def __call__(
        self, table: pd.DataFrame, decimal: str | None = None, date_format: str = ""
    ) -> pd.DataFrame:
        """Return the columns of the schema, each converted to its type.

        `decimal` and `date_format` describe the new file. The date format replaces the learned one,
        if any, for all dates in text.
        """
        sign = decimal or self.decimal
        learned = any(column.date_format for column in self.columns)
        values = {}
        for column in self.columns:
            if date_format and (column.date_format or not learned):
                column = replace(column, date_format=date_format)
            read = column(self._cells(table, column.name), sign)
            if column.grouped:  # before this, codes among amounts of money were text
                read = mask_codes(read, self.missing.get(column.name, ()))
            values[column.name] = read
        return pd.DataFrame(values, table.index)

    def codes(self, table: pd.DataFrame) -> np.ndarray:
        """Return a table that has the schema's columns, in order, as numbers for trees, (n, d)."""
        codes = np.empty((len(table), len(self.columns)))
        few = len(table) <= FEW_ROWS
        rows = [table.iloc[i].tolist() for i in range(len(table))] if few else []
        for j, (column, name) in enumerate(zip(self.columns, table.columns)):
            missing = self.missing.get(str(name), ())
            if few and not missing:
                plain = [column.code(row[j]) for row in rows]
                if None not in plain:
                    codes[:, j] = plain
                    continue
            codes[:, j] = column.codes(mask_codes(table.iloc[:, j], missing))
        return np.clip(codes, -LARGEST_FEATURE, LARGEST_FEATURE)

    def row_codes(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return the numbers that :meth:`codes` returns, for rows given as dictionaries keyed by
        column; convert them cell by cell.
        """
        for row in rows:
            self.require_names(row)
        codes = np.empty((len(rows), len(self.columns)))
        for j, column in enumerate(self.columns):
            missing = self.missing.get(column.name, ())
            for i, row in enumerate(rows):
                cell = row.get(column.name)
                code = None if missing else column.code(cell)
                if code is None:
                    code = column.codes(mask_codes(pd.Series([cell]), missing))[0]
                codes[i, j] = code
        return np.clip(codes, -LARGEST_FEATURE, LARGEST_FEATURE)

    def require_names(self, names: Iterable[Any]) -> None:
        """Raise if a table lacks columns of the schema."""
        given = set(names)
        if lacking := [name for name in self.names if name not in given]:
            raise ValueError(f"X has no column {lacking[0]!r}; this model needs {self.names}.")

    @property
    def categorical(self) -> list[int]:
        """Positions of the columns with levels."""
        return [j for j, column in enumerate(self.columns) if column.levels]

    def _cells(self, table: pd.DataFrame, name: str) -> pd.Series[Any]:
        return mask_codes(table[name], self.missing.get(name, ()))

    def require_levels(self, table: pd.DataFrame) -> None:
        """Raise if a column has values that are not levels of the training data."""
        for name, counts in self.count_unseen(table).items():
            if counts:
                shown = ", ".join(map(repr, [*counts][:3]))
                raise ValueError(
                    f"column {name!r} has {shown}, which did not occur in training. Map such"
                    " values to known levels, or pass handle_unknown='ignore' to treat them as"
                    " missing."
                )

    def count_unseen(self, table: pd.DataFrame) -> dict[str, Counter[str]]:
        """Count, for each column, the values that did not occur in training."""
        return {
            column.name: column.count_unseen(self._cells(table, column.name))
            for column in self.columns
        }


@dataclass(frozen=True)
class ReplacingSchema(Schema):
    """A schema that replaces values of columns before it converts them.

    Attributes
    ----------
    replacements : dict
        The values to replace in each column, with the new ones, also for columns that are not in
        the schema.
    """

    replacements: dict[str, dict[str, str]] = field(default_factory=dict)

    def codes(self, table: pd.DataFrame) -> np.ndarray:
        """Return a table that has the schema's columns, in order, as numbers for trees, (n, d)."""
        cells = {name: self._cells(table, name, ".") for name in self.names}
        return super().codes(pd.DataFrame(cells))

    def row_codes(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return the numbers that :meth:`codes` returns, for rows given as dictionaries keyed by
        column.
        """
        for row in rows:
            self.require_names(row)
        return np.vstack([self.codes(pd.DataFrame([row])) for row in rows])

    def _cells(self, table: pd.DataFrame, name: str, decimal: str = "") -> pd.Series[Any]:
        new = self.replacements.get(name, {})
        replaced = replace_values(table[name], new, decimal or self.decimal)
        return mask_codes(replaced, self.missing.get(name, ()))


def date_formats(cells: pd.Series[Any]) -> list[str]:
    """Return which of the usual formats fit all cells of a column of text.

    Examples
    --------
    >>> date_formats(pd.Series(["5/31/24", "12/1/24"]))
    ['%m/%d/%y']
    """
    present = cells.dropna()
    if present.empty or not is_text(present):
        return []
    present = present.str.strip()
    present = present[~present.isin(NUMBER_MARKS)]
    return [text for text in DATE_FORMATS if len(present) and _dates(present, text).notna().all()]


def _learn_column(
    name: str, column: pd.Series[Any], decimal: str | None, date_format: str
) -> ColumnType:
    """Learn the kind of one column; markers such as "NA" are missing values only in a text file."""
    filled = bool(column.notna().any())
    if isinstance(column.dtype, pd.CategoricalDtype) and filled:
        levels = tuple(map(plain_level, column.cat.categories))
        return ColumnType(name, "category", levels, ordered=bool(column.cat.ordered))
    kind = column_kind(column)
    if kind == "date" and pd.api.types.infer_dtype(column, skipna=True) in DURATIONS:
        return ColumnType(name, "duration")
    if kind == "date":
        return ColumnType(name, "date")
    if kind != "category" and filled:
        return ColumnType(name, kind)
    codes, values = _factorize(column)
    missing = np.zeros(len(values), dtype=bool)
    if len(values) and is_text(column):
        text = pd.Series(values, dtype=str)
        cells = text.str.strip()
        learned = _learn_from_text(name, cells[~cells.isin(NUMBER_MARKS)], decimal, date_format)
        if learned is not None:
            return learned
        values = text
        if decimal is not None:
            values = cells
            missing = cells.isin(MARKS).to_numpy()
    if missing.all():
        return ColumnType(name, "empty")
    counts = Counter[str]()
    for value, rows in zip(values[~missing], np.bincount(codes[codes >= 0])[~missing]):
        counts[level_text(plain_level(value))] += int(rows)
    if decimal is not None:
        counts = _merge_spellings(counts)
    levels = tuple(sorted(counts))
    identifier = identifies_rows(len(levels), int((~missing)[codes[codes >= 0]].sum()))
    return ColumnType(name, "identifier") if identifier else ColumnType(name, "text", levels)


def _learn_from_text(
    name: str, cells: pd.Series[Any], decimal: str | None, date_format: str
) -> ColumnType | None:
    """Return the type of text that contains dates or, in a text file, numbers or booleans."""
    if date_format and _dates(cells, date_format).notna().mean() >= MOST_DATES:
        damaged = decimal is not None and len(converted_numbers(cells, decimal)) > 0
        return None if damaged else ColumnType(name, "date", date_format=date_format)
    if decimal is not None and len(cells):
        if cells.str.lower().isin(TRUTH).all():
            return ColumnType(name, "boolean")
        unit = common_measure(cells)
        digits, sign = plain_digits(remove_measure(cells, unit), decimal)
        if parse_numbers(digits, sign).notna().all() and not digits.str.contains(CODE).any():
            own = sign if sign != decimal else ""
            grouped = bool((digits != cells).any())
            return ColumnType(name, "number", grouped=grouped, decimal=own, unit=unit)
    if cells.str.fullmatch(DATE, case=False).mean() >= MOST_DATES:
        damaged = decimal is not None and len(converted_numbers(cells, decimal)) > 0
        return None if damaged else ColumnType(name, "date")
    return None


def _merge_spellings(counts: Counter[str]) -> Counter[str]:
    """Merge levels that differ only in case, keeping the most frequent spelling of each."""
    merged: dict[str, Counter[str]] = {}
    for level, rows in counts.items():
        merged.setdefault(fold_text(level), Counter())[level] = rows
    return Counter(
        {max(sorted(each), key=each.__getitem__): each.total() for each in merged.values()}
    )


def _factorize(column: pd.Series[Any]) -> tuple[Any, Any]:
    """Return the position of each value among the distinct ones, and the distinct values."""
    try:
        codes, values = pd.factorize(column)
    except TypeError as error:
        raise TypeError(
            f"column {str(column.name)!r} contains lists or records ({error}); split it into"
            " columns or drop it."
        ) from error
    return codes, np.asarray(values, dtype=object)


def _dates(cells: pd.Series[Any], date_format: str) -> pd.Series[Any]:
    """Return text as dates in UTC, with NaT for cells that are not written in this format or, if it
    is empty, as 2024-05-31 or 31.05.2024.
    """
    if not date_format:
        # pandas would read 2024 as its first day
        whole = cells.where(cells.str.fullmatch(DATE, case=False, na=False))
        iso = whole.str.replace(DOTTED_DATE, r"\3-\2-\1", regex=True)
        return pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
    try:
        if "%" not in date_format:
            raise ValueError("it contains no %")
        if len(date_format) > LONGEST_FORMAT:  # pandas would compile it for minutes
            date_format = f"{date_format[:LONGEST_FORMAT]}..."
            raise ValueError(f"it has more than {LONGEST_FORMAT} characters")
        return pd.to_datetime(cells, format=date_format, errors="coerce", utc=True)
    except (ValueError, re.error) as error:
        raise ValueError(
            f"the date format {date_format!r} cannot be used: {error}. Pass one such as %d/%m/%Y."
        ) from error


def plain_digits(cells: pd.Series[Any], decimal: str) -> tuple[pd.Series[Any], str]:
    """Return numbers in text without units and thousands separators, and their decimal separator.

    Examples
    --------
    >>> cells, sign = plain_digits(pd.Series(["$1.250,00", "$80,50"]), ".")
    >>> cells.tolist(), sign
    (['1250,00', '80,50'], ',')
    >>> cells, sign = plain_digits(pd.Series(["3.25", "4,5"]), ".")
    >>> cells.tolist(), sign
    (['3.25', '4.5'], '.,')
    """
    grouping = "," if decimal == "." else "."
    has_groups = cells.str.contains(grouping, regex=False).any()
    if not has_groups and parse_numbers(cells, decimal).notna().all():
        return cells, decimal
    bare = remove_units(cells)
    has_units = bool((bare != cells).any())
    sign = _money_sign(bare, decimal) if has_units else decimal
    plain = remove_grouping(bare, sign)
    grouped = cells[plain != cells]
    # 1.234 alone may be a decimal number; 12.345, 1.234,5 and 1.234.567 are not, and among many
    # decimal numbers, some would have fewer than three decimals
    clear = grouped.str.contains(r"[0-9]{2}[.,]|[.,].*[.,]")
    known = has_units or clear.any() or (sign == "." and grouped.nunique() >= CLEARLY_GROUPED)
    if not known and decimal == "." and has_groups:
        points = commas_to_points(cells)
        rest = cells[points == cells]
        # without a decimal number, 1,2 may be two answers
        decimals = rest.str.fullmatch(r"[-+]?[0-9]*\.[0-9]+").any()
        if decimals and not rest.str.fullmatch(r"[-+]?[0-9]+(,[0-9]+)+(\.[0-9]+)?").any():
            return points, BOTH_SIGNS
    return (plain if known else cells), sign


def commas_to_points(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Replace a decimal comma with a point in numbers such as 3,5, unless it may group digits."""
    commas = cells.str.fullmatch(DECIMAL_COMMA, na=False)
    return cells.mask(commas, cells.str.replace(",", ".", regex=False))


def _money_sign(cells: pd.Series[Any], decimal: str) -> str:
    """Return the decimal separator of amounts of money, which precedes one or two final digits, not
    three.
    """
    cents = cells.str.extract(r"([.,])[0-9]{1,2}(?:e[36])?$")[0].dropna()
    if len(cents):
        return str(cents.iloc[0])
    thousands = cells.str.extract(r"([.,])[0-9]{3}$")[0].dropna()
    if len(thousands):
        return "." if thousands.iloc[0] == "," else ","
    return decimal


def converted_numbers(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Return the dates among numbers; a spreadsheet may have converted them from numbers.

    Examples
    --------
    >>> converted_numbers(pd.Series(["7", "3-Jan", "12", "01.Mär", "-", "5"]), ".").tolist()
    ['3-Jan', '01.Mär']
    """
    values = pd.Series(cells.unique())
    values = values[~values.isin(NUMBER_MARKS)]
    short = values.str.fullmatch(SHORT_DATE, case=False)
    whole = values.str.fullmatch(DATE, case=False)
    others = values[~(short | whole)]
    numbers = parse_numbers(*plain_digits(others, decimal))
    if not (short | whole).any() or not numbers.notna().mean() >= MOST_NUMBERS:
        return cells.iloc[:0]
    years = numbers.median() >= LEAST_YEAR
    return cells[cells.isin(values[short if years else short | whole])]


def remove_units(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return text without currency and percent signs, without spaces and apostrophes between groups
    of digits, and with thousands, millions and amounts in parentheses written as numbers.

    Examples
    --------
    >>> remove_units(pd.Series(["$40,000.00", "310.000,00 €", "-$5", "a$"])).tolist()
    ['40,000.00', '310.000,00', '-5', 'a$']
    >>> remove_units(pd.Series(["CHF 13'160", "1 250 kr", "$13.2k", "(5,200)"])).tolist()
    ['13160', '1250', '13.2e3', '-5,200']
    """
    bare = cells.str.replace(r"^\((.*)\)$", r"-\1", regex=True)
    bare = bare.str.replace(UNITS, r"\1", regex=True).str.replace(GROUP_SIGNS, "", regex=True)
    bare = bare.str.replace(
        r"(?<=[0-9])[kKM]$", lambda found: MAGNITUDES[found[0].lower()], regex=True
    )
    return bare.where(bare.str.fullmatch(r"[-+]?[0-9.,]*[0-9](e[36])?", na=False), cells)


def common_measure(cells: pd.Series[Any]) -> str:
    """Return the unit of time, mass or length of all numbers that have one; empty if they have
    several.

    Examples
    --------
    >>> common_measure(pd.Series(["89y", "41", "50 Y"]))
    'y'
    >>> common_measure(pd.Series(["18 months", "2 years"]))
    ''
    """
    units = cells.str.extract(MEASURED)[1].dropna().str.casefold().unique()
    return str(units[0]) if len(units) == 1 else ""


def remove_measure(cells: pd.Series[Any], unit: str) -> pd.Series[Any]:
    """Return text with this unit of time, mass or length removed after numbers."""
    if not unit:
        return cells
    parts = cells.str.extract(MEASURED)
    return cells.mask(parts[1].str.casefold() == unit, parts[0])


def remove_grouping(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Remove the separators of groups of three digits from numbers in text: 1,234.5 becomes 1234.5.
    A number that clearly uses the other decimal separator, such as 1.234,5, gets `decimal` instead.

    Examples
    --------
    >>> remove_grouping(pd.Series(["1.234,5", "12,5", "1.23"]), ",").tolist()
    ['1234,5', '12,5', '1.23']
    >>> remove_grouping(pd.Series(["1,234.5", "1.234,5", "1.234"]), ".").tolist()
    ['1234.5', '1234.5', '1.234']
    """
    sign = "." if decimal == "," else ","
    groups = rf"[-+]?[1-9][0-9]{{0,2}}([{sign}][0-9]{{3}})+([{decimal}][0-9]+)?"
    other = rf"[-+]?[1-9][0-9]{{0,2}}([{decimal}][0-9]{{3}})+[{sign}][0-9]+"
    swapped = cells.str.replace(decimal, "", regex=False).str.replace(sign, decimal, regex=False)
    return cells.mask(
        cells.str.fullmatch(groups, na=False), cells.str.replace(sign, "", regex=False)
    ).mask(cells.str.fullmatch(other, na=False), swapped)


def parse_numbers(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Return text as the nearest float64, or NaN if it is not a number."""
    import pyarrow as pa

    if decimal == ",":
        cells = cells.mask(cells.str.contains(".", regex=False, na=False)).str.replace(
            ",", ".", regex=False
        )
    cells = cells.str.removeprefix("+")
    try:
        values = pa.array(cells, pa.string()).cast(pa.float64())
    except pa.ArrowInvalid:
        values = pa.array(cells.where(cells.str.fullmatch(NUMBER)), pa.string()).cast(pa.float64())
    return pd.Series(values.to_numpy(zero_copy_only=False), cells.index)
