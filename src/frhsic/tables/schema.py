"""The schema of a table: what each column holds, learned once over all rows and applied to every later table.

A cell is read by the schema alone, never by its neighbours: the level "007" stays "007" in a file whose other codes
are all digits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from frhsic.tables.columns import (
    DURATIONS,
    MARKS,
    examples,
    identifies_rows,
    is_missing,
    is_text,
    kind_of,
    label,
    numbers,
    plain_level,
)

Kind = Literal["number", "boolean", "date", "duration", "text", "category", "identifier", "empty"]
"""What a column holds. The levels of "text" are known but not fixed; a "category" has the type of pandas."""

NUMBER_MARKS = (*MARKS, "na", "None", "none", "-", ".")
"""Cells of a column of numbers or dates that stand for a missing value; in text, "none" may be a level."""
TRUTH = {"true": 1.0, "false": 0.0}
CODE = r"[-+]?0\d.*|[-+]?\d{16,}"
"""Digits that would be lost in a number: a column that has such a cell holds codes."""
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_DATES = "%d.%m.%Y|%m/%d/%Y|%d/%m/%Y|%Y/%m/%d|%d-%m-%Y|%d.%m.%y|%m/%d/%y|%d/%m/%y|%d-%b-%Y|%Y.%m.%d"
_NAMED_MONTHS = "%d %b %Y|%d %B %Y|%b %d, %Y|%B %d, %Y|%d. %B %Y"
DATE_FORMS = (
    "ISO8601",
    *(date + time for date in f"{_DATES}|{_NAMED_MONTHS}".split("|") for time in ("", " %H:%M", " %H:%M:%S")),
)
"""How dates may be written, those with a month first before those with a day first."""


@dataclass(frozen=True)
class ColumnType:
    """One column: its kind, its levels as far as it has some, and how its dates are written in text."""

    name: str
    kind: Kind
    levels: tuple[Any, ...] = ()
    form: str = ""
    ordered: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or self.form not in ("", *DATE_FORMS):
            raise ValueError(f"column {self.name!r} is of the kind {self.kind!r} {self.form!r}, which is not known.")

    def __call__(self, column: pd.Series[Any], decimal: str = ".") -> pd.Series[Any]:
        """Return the values with the type of the kind, NaN where they are missing."""
        if self.kind in ("text", "category", "identifier"):
            codes, levels = self._matched(column)
            values = np.array([*levels, None], dtype=object)[codes]
            if self.kind == "category":
                values = pd.Categorical(values, categories=list(self.levels), ordered=self.ordered)
            return pd.Series(values, column.index, name=self.name)
        if self.kind == "empty":
            return pd.Series(np.nan, column.index, name=self.name)
        if not is_text(column):
            if self.kind in ("number", "boolean") and kind_of(column) != "boolean":
                return pd.Series(numbers(column, f"column {self.name!r}"), column.index, name=self.name)
            return column
        missing = column.isna() | column.str.strip().isin(NUMBER_MARKS)
        values = self._parsed(column.str.strip().mask(missing), decimal)
        wrong = values.isna() & ~missing
        if wrong.any():
            held = {"number": "numbers", "boolean": "true and false"}.get(self.kind, f"{self.kind}s")
            raise ValueError(f"column {self.name!r} held {held} in training; {examples(column[wrong])}.")
        return values.astype(bool) if self.kind == "boolean" and not missing.any() else values

    def unseen(self, column: pd.Series[Any]) -> Counter[str]:
        """Count the values that are no level of training."""
        if self.kind not in ("text", "category"):
            return Counter()
        codes, levels = self._matched(column)
        known = set(self.levels)
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        return Counter({level: int(n) for level, n in zip(levels, counts) if level is not None and level not in known})

    def _matched(self, column: pd.Series[Any]) -> tuple[np.ndarray, list[Any]]:
        """Return the position of each value among the distinct ones, and the level of each of these."""
        codes, values = pd.factorize(column)
        known = {label(level): level for level in self.levels}
        levels = []
        for text in map(label, values):
            bare = text.strip()
            unknown = None if bare in MARKS and self.kind != "identifier" else bare
            levels.append(known[text] if text in known else known.get(bare, unknown))
        return codes, levels

    def _parsed(self, text: pd.Series[Any], decimal: str) -> pd.Series[Any]:
        """Return text without marks as values, NaN where it cannot be read."""
        if self.kind == "number":
            return _numeric(text, decimal)
        if self.kind == "boolean":
            return text.str.lower().map(TRUTH).astype(np.float64)
        if self.kind == "duration":
            return pd.to_timedelta(text, errors="coerce")
        dates = pd.to_datetime(text, format=self.form or "ISO8601", errors="coerce", utc=True)
        return dates.dt.tz_localize(None)


@dataclass(frozen=True)
class Schema:
    """What each column of a table holds, and how a text file of it is written.

    Attributes
    ----------
    columns : tuple of ColumnType
    decimal : str
        Decimal sign of text.
    separator : str
        Character between the fields of the file that it was learned from; empty if it was no text file.

    Examples
    --------
    >>> schema = Schema.learn(pd.DataFrame({"code": ["007", "A12"], "age": ["31", "?"]}), decimal=".")
    >>> [column.kind for column in schema.columns]
    ['text', 'number']
    >>> schema(pd.DataFrame({"code": ["007"], "age": ["40"]})).to_dict("list")
    {'code': ['007'], 'age': [40.0]}
    """

    columns: tuple[ColumnType, ...]
    decimal: str = "."
    separator: str = ""

    @classmethod
    def learn(cls, table: pd.DataFrame, *, decimal: str | None = None, separator: str = "") -> Schema:
        """Learn what the columns of a table hold, from all of its rows.

        Parameters
        ----------
        table
            Columns of text or of any type.
        decimal
            Decimal sign of a text file, whose columns of digits are numbers. None for a table whose columns have types:
            there text stays text, unless all of it is dates.
        separator
            Character between the fields of a text file.
        """
        columns = tuple(_learned(str(name), table[name], decimal) for name in table)
        return cls(columns, decimal or ".", separator)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column."""
        return {column.name: column.kind for column in self.columns}

    def select(self, names: Sequence[str]) -> Schema:
        """Return the schema of some of the columns."""
        known = {column.name: column for column in self.columns}
        return replace(self, columns=tuple(known[name] for name in names))

    def __call__(self, table: pd.DataFrame, decimal: str | None = None) -> pd.DataFrame:
        """Return the columns of the schema, each with the type of its kind; `decimal` is that of another text file."""
        sign = decimal or self.decimal
        return pd.DataFrame({one.name: one(table[one.name], sign) for one in self.columns}, table.index)

    def unseen(self, table: pd.DataFrame) -> dict[str, Counter[str]]:
        """Count the values of each column that are no level of training."""
        return {one.name: one.unseen(table[one.name]) for one in self.columns}


def date_forms(column: pd.Series[Any]) -> list[str]:
    """Return every form in which all dates of a column of text may be written.

    Examples
    --------
    >>> date_forms(pd.Series(["31.05.2024", "01.06.2024"])), date_forms(pd.Series(["03/04/2024"]))
    (['%d.%m.%Y'], ['%m/%d/%Y', '%d/%m/%Y'])
    """
    values = column.dropna().drop_duplicates().str.strip()
    values = values[~values.isin(NUMBER_MARKS)]
    first = "" if values.empty else str(values.iloc[0])
    if sum(map(str.isdigit, first)) < 3 or len(first) > 40:
        return []
    if ISO_DATE.fullmatch(first):
        return ["ISO8601"] if values.str.fullmatch(ISO_DATE.pattern).all() and _parse(values, "ISO8601") else []
    return [form for form in DATE_FORMS[1:] if _parse(values.head(20), form) and _parse(values, form)]


def _parse(values: pd.Series[Any], form: str) -> bool:
    return bool(pd.to_datetime(values, format=form, errors="coerce", utc=True).notna().all())


def _learned(name: str, column: pd.Series[Any], decimal: str | None) -> ColumnType:
    missing = column.isna() if decimal is None else is_missing(column)
    if missing.all():
        return ColumnType(name, "empty")
    if isinstance(column.dtype, pd.CategoricalDtype):
        return ColumnType(
            name, "category", tuple(map(plain_level, column.cat.categories)), ordered=bool(column.cat.ordered)
        )
    kind = kind_of(column)
    if kind == "date":
        return ColumnType(name, "duration" if pd.api.types.infer_dtype(column, skipna=True) in DURATIONS else "date")
    if kind != "category":
        return ColumnType(name, kind)
    if is_text(column):
        text = column.str.strip() if decimal is not None else column
        present = text[~missing & ~text.isin(NUMBER_MARKS)]
        if decimal is not None and len(present):
            if present.str.lower().isin(TRUTH).all():
                return ColumnType(name, "boolean")
            if not present.str.fullmatch(CODE).any() and _numeric(present, decimal).notna().all():
                return ColumnType(name, "number")
        forms = date_forms(column)
        if forms:
            return ColumnType(name, "date", form=forms[0])
        column = text
    levels = tuple(sorted({label(plain_level(value)) for value in column[~missing].unique()}))
    identifier = identifies_rows(len(levels), int((~missing).sum()))
    return ColumnType(name, "identifier") if identifier else ColumnType(name, "text", levels)


def _numeric(text: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    if decimal == ",":
        text = text.mask(text.str.contains(".", regex=False).fillna(False)).str.replace(",", ".", regex=False)
    return pd.to_numeric(text, errors="coerce").astype(np.float64)
