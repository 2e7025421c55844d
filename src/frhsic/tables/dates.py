"""Dates in text that prevent a column from being read: months without a day or a year, several
formats, and numbers that a spreadsheet converted to dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

from frhsic.formatting import format_count, inflect
from frhsic.tables.codes import reads_missing
from frhsic.tables.columns import is_text, quote_names, row_number
from frhsic.tables.problems import (
    Problem,
    drop_option,
    missing_option,
    option_text,
    replace_option,
)
from frhsic.tables.schema import (
    DATE,
    MONTHS,
    NUMBER_MARKS,
    SHORT_DATE,
    converted_numbers,
    date_formats,
)

# Months with a year, such as Feb 2018, 02/2018 and 2018-02.
_WORD = f"({'|'.join(' '.join(MONTHS).split())})[a-zä]*\\.?"
_MONTH = "(0?[1-9]|1[0-2])"
_YEAR = "(19|20)[0-9]{2}"
MONTH_OF_YEAR = (
    rf"{_WORD}[-/. ]+{_YEAR}|{_YEAR}[-/. ]+{_WORD}|{_MONTH}[-/. ]{_YEAR}|{_YEAR}[-/. ]{_MONTH}"
    rf"|[0-9]{{2}}[-. ]{_WORD}"
)
# Their formats, and those of days without a year.
MONTH_FORMATS = (
    *("%b-%y", "%b-%Y", "%b %Y", "%b. %Y", "%B %Y", "%m/%Y", "%m-%Y", "%m.%Y", "%Y-%m", "%Y/%m"),
    *("%Y-%b", "%Y %b", "%d-%b", "%d %b", "%d.%b", "%y-%b", "%b-%d", "%b %d"),
)
# The format in which the number is the day rather than the year, or the year rather than the day.
OTHER_FORMATS = {"%b-%y": ("day", "%b-%d"), "%d-%b": ("year", "%y-%b")}
# Most formats of dates that are listed, and most rows.
MOST_FORMATS = 5
MOST_ROWS = 5


def unreadable_problem(cells: pd.Series[Any], error: Exception, date_format: str) -> Problem:
    """Return a problem for a column that cannot be read, with the option that parses its dates if
    one of the usual formats fits all of them; if several do, the one with the day before the month.
    """
    name = str(cells.name)
    formats = [] if date_format else date_formats(cells)
    if formats:
        option = option_text("date-format", formats[0])
        return Problem("unreadable", str(error), (name,), None, "error", option)
    text = str(error)
    if is_text(cells):
        shapes = _date_shapes(cells.dropna().str.strip())
        if len(shapes) > 1:
            text = f"{_formats_sentence(name, shapes)} in the file, or don't use the column."
    return Problem("unreadable", text, (name,), None, "error")


def mixed_dates(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of text as dates if a format fits each group of similar cells; return any
    other column unchanged.

    Examples
    --------
    >>> mixed_dates(pd.Series(["2024-05-31", "12/24/2024"])).dt.month.tolist()
    [5, 12]
    """
    if not is_text(cells):
        return cells
    present = cells.dropna().str.strip()
    present = present[~present.isin(NUMBER_MARKS) & ~present.map(reads_missing)]
    read = pd.Series(pd.NaT, cells.index, dtype="datetime64[s]", name=cells.name)
    for like in _same_shapes(present):
        formats = ["ISO8601", *date_formats(like)]
        parsed = [pd.to_datetime(like, format=each, errors="coerce") for each in formats]
        fitting = [dates for dates in parsed if dates.notna().all()]
        if fitting:
            read[like.index] = fitting[0].dt.tz_localize(None)
    return read if len(present) and read[present.index].notna().all() else cells


def _date_shapes(cells: pd.Series[Any]) -> list[str]:
    """Return an example of each date format, with the number of cells in that format."""
    return [
        f"{like.iloc[0]!r} ({format_count(len(like), 'row')}, first in row {row_number(like, 0):,})"
        for like in _same_shapes(cells)
    ]


def _same_shapes(cells: pd.Series[Any]) -> list[pd.Series[Any]]:
    """Return the dates among cells, grouped by format, the most frequent format first."""
    dates = cells[cells.str.fullmatch(f"{DATE}|{SHORT_DATE}|{MONTH_OF_YEAR}", case=False)]
    shapes = dates.str.replace("[^\\W\\d_]+", "a", regex=True)
    shapes = shapes.str.replace(
        "[0-9]+", lambda digits: "year" if len(digits[0]) == 4 else "0", regex=True
    )
    return sorted((like for _, like in dates.groupby(shapes)), key=len, reverse=True)


def _formats_sentence(name: str, shapes: list[str]) -> str:
    more = ", ..." if len(shapes) > MOST_FORMATS else ""
    return (
        f"{name!r} contains dates in {len(shapes)} formats:"
        f" {', '.join(shapes[:MOST_FORMATS])}{more}. Write all of them in one format, such as"
        " 2024-05-31,"
    )


def month_problems(cells: pd.Series[Any]) -> Iterator[Problem]:
    """Yield a question about text with months and years, or with days and months but no year,
    perhaps among complete dates.

    Examples
    --------
    >>> since = pd.Series(["Feb-18", "Mar-18", "Feb-19"], name="since")
    >>> [problem.option for problem in month_problems(since)]
    ['--date-format %b-%y']
    """
    values = [value for value in cells.unique() if value not in NUMBER_MARKS]
    levels = pd.Series([value for value in values if not reads_missing(value)], dtype=str)
    months = levels.str.fullmatch(f"{SHORT_DATE}|{MONTH_OF_YEAR}", case=False)
    if not months.any() or not levels[~months].str.fullmatch(DATE, case=False).all():
        return
    name = str(cells.name)
    shapes = _date_shapes(cells)
    fitting = [
        text
        for text in MONTH_FORMATS
        if pd.to_datetime(levels, format=text, errors="coerce").notna().all()
    ]
    text = f"{name!r} is read as text, so its dates, such as {levels[0]!r}, have no order."
    option = drop_option(name)
    if fitting:
        text += f" To read them as dates, pass their format, {fitting[0]}."
        option = option_text("date-format", fitting[0])
        part, other = OTHER_FORMATS.get(fitting[0], ("", ""))
        if other in fitting:
            text += f" If the number is the {part}, the format is {other}."
    elif len(shapes) > 1:
        text = f"{_formats_sentence(name, shapes)} in the file, or drop the column."
    else:
        text += " Write them as dates such as 2024-05-31 in the file, or drop the column."
    yield Problem("dates", text, (name,), int(cells.isin(levels).sum()), option=option)


def spreadsheet_problems(cells: pd.Series[Any], decimal: str) -> Iterator[Problem]:
    """Yield cells that a spreadsheet seems to have converted to dates: dates among numbers, or
    dates without a year among ranges.
    """
    name = str(cells.name)
    if len(dates := converted_numbers(cells, decimal)):
        rows = [f"{row_number(dates, place):,}" for place in range(min(len(dates), MOST_ROWS))]
        more = f" and {len(dates) - MOST_ROWS:,} more" if len(dates) > MOST_ROWS else ""
        shown = dates.unique().tolist()
        yield Problem(
            "spreadsheet dates",
            f"{name!r} contains numbers, but {format_count(len(dates), 'cell')}"
            f" {inflect('[is a date|are dates]', len(dates))}, such as {quote_names(shown[:3])}"
            f" ({inflect('[row|rows]', len(dates))} {', '.join(rows)}{more}): a spreadsheet"
            " seems to have converted numbers to dates. Correct these cells in the file, or treat"
            " them as missing, to read the column as numbers.",
            (name,),
            len(dates),
            option=missing_option(name, shown) or drop_option(name),
        )
        return
    dates = cells[cells.str.fullmatch(SHORT_DATE, case=False)]
    if not 0 < len(dates) < len(cells):
        return
    ranges = {date: _range_of_date(date) for date in dates.unique()}
    shown = [*ranges]
    yield Problem(
        "spreadsheet dates",
        f"{quote_names(shown[:3])} in {name!r}, first in row {row_number(dates, 0):,}, may"
        f" be ranges such as {ranges[shown[0]]} that a spreadsheet converted to dates."
        " If so, replace them, because dates and ranges count as separate values.",
        (name,),
        len(dates),
        "possible",
        replace_option(name, ranges),
    )


def _range_of_date(date: str) -> str:
    """Return the range that a spreadsheet may have converted to a date.

    Examples
    --------
    >>> _range_of_date("2-Jan"), _range_of_date("24-Oct")
    ('1-2', '10-24')
    """
    parts = re.findall(r"[^\W_]+", date.casefold())
    low, high = sorted(_month(part) if part.isalpha() else int(part) for part in parts)
    return f"{low}-{high}"


def _month(word: str) -> int:
    return next(i for i, names in enumerate(MONTHS, 1) if word in names.split())
