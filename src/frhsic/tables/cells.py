"""Columns of text: words for missing values, amounts, and cells that prevent a column from being
read as numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pandas as pd

from frhsic.formatting import format_count
from frhsic.tables.attributes import band
from frhsic.tables.codes import (
    CLEAR_CODE,
    code_problem,
    missing_option,
    number_problems,
    plain_number,
    reads_missing,
)
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    examples,
    fold_text,
    is_text,
    quote_names,
    row_number,
    unify_spelling,
)
from frhsic.tables.problems import Problem, option_text
from frhsic.tables.schema import (
    MONTHS,
    NUMBER_MARKS,
    SHORT_DATE,
    ColumnType,
    Schema,
    common_measure,
    converted_numbers,
    parse_numbers,
    plain_digits,
    remove_measure,
)
from frhsic.tables.targets import NO, YES

# Largest share of non-numeric cells in a column that seems to be meant as numbers.
FEW_WORDS = 0.1
# Cells that look like numbers, and their share above which a column of text is reported.
LIKE_NUMBER = r"[-+]?[0-9]+([.,][0-9]{3})*([.,][0-9]+)?"
MOST_ALIKE = 0.5
# Numbers below or above what can be measured.
DETECTION_LIMIT = "[<>\u2264\u2265]=?\\s*[0-9]+([.,][0-9]+)?"
# Most rows that are listed.
MOST_ROWS = 5
# Fewest levels that are numbers or ranges, and largest share of others, in a column of text that is
# reported.
LEAST_RANGES = 2
MOST_OTHER = 0.75


def text_problems(cells: pd.DataFrame, schema: Schema, decimal: str | None) -> Iterator[Problem]:
    """Yield columns of text with spellings that are merged, words for missing values, and cells
    that prevent the column from being read as numbers; `decimal` is None for a table with typed
    columns.
    """
    words: dict[str, Counter[str]] = {}
    for column in schema.columns:
        name = column.name
        present = cells[name].dropna()
        if not is_text(present) or present.empty:
            continue
        if column.grouped:
            yield _amounts_problem(present, column, decimal or ".")
        if column.kind not in ("text", "identifier"):
            continue
        dates: list[Problem] = []
        if column.kind == "text":
            bare = present.str.strip()
            _, notes = unify_spelling(bare)
            for note in notes:
                yield Problem("spelling", note, (name,), certainty="certain")
            dates = [*spreadsheet_problems(bare, decimal or ".")]
            yield from dates
        read = _stored_as_text(present) if decimal is None else _nearly_numbers(present, decimal)
        nearly = [*read]
        yield from nearly if nearly or dates else _range_problems(column)
        if column.kind == "text" and not nearly:
            for level, rows in bare.value_counts().items():
                if reads_missing(level):
                    words.setdefault(fold_text(level), Counter())[name] += rows
            codes = [level for level in column.levels if CLEAR_CODE.fullmatch(str(level))]
            if codes and not any(
                str(level)[-1:].isdigit() for level in {*column.levels} - {*codes}
            ):
                yield code_problem(name, codes, int(present.isin(codes).sum()))
    for word, counts in words.items():
        yield Problem(
            "missing code",
            f"{word!r} is a value of {quote_names([*counts])}. If it means missing, treat it as"
            " missing.",
            tuple(counts),
            counts.total(),
            option=" ".join(missing_option(name, [word]) for name in counts),
            values=(word,),
        )


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
            f"{name!r} contains numbers, but {format_count(len(dates), 'cell')} are dates, such as"
            f" {quote_names(shown[:3])} (row {', '.join(rows)}{more}): a spreadsheet seems to have"
            " converted these numbers to dates. Correct them in the file, or treat them as"
            " missing, to read the column as numbers.",
            (name,),
            len(dates),
            option=missing_option(name, shown) or option_text("drop", name),
        )
        return
    dates = cells[cells.str.fullmatch(SHORT_DATE, case=False)]
    if not 0 < len(dates) < len(cells):
        return
    shown = dates.unique().tolist()
    parts = re.findall(r"[^\W_]+", shown[0].casefold())
    numbers = [_month(part) if part.isalpha() else int(part) for part in parts]
    yield Problem(
        "spreadsheet dates",
        f"{quote_names(shown[:3])} in {name!r}, first in row {row_number(dates, 0):,}, may"
        f" be ranges such as {min(numbers)}-{max(numbers)} that a spreadsheet converted to dates."
        " Correct the file, or treat them as missing; otherwise they count as separate values.",
        (name,),
        len(dates),
        "possible",
        missing_option(name, shown),
    )


def _month(word: str) -> int:
    return next(i for i, names in enumerate(MONTHS, 1) if word in names.split())


def _range_problems(column: ColumnType) -> Iterator[Problem]:
    """Yield a note about text with levels that are numbers or ranges, since their order is lost."""
    ranges = [level for level in column.levels if band(level)]
    others = [level for level in column.levels if level not in ranges]
    if len(ranges) < LEAST_RANGES or len(others) > MOST_OTHER * len(column.levels):
        return
    mixed = f", others are not ({quote_names(others[:2])})" if others else ""
    yield Problem(
        "ranges",
        f"{column.name!r} is read as text, so its values have no order, though some are numbers,"
        f" codes or ranges ({quote_names(ranges[:3])}){mixed}. To use their order, write them as"
        " numbers.",
        (column.name,),
        certainty="possible",
    )


def _stored_as_text(cells: pd.Series[Any]) -> Iterator[Problem]:
    """Yield a question about text of a table with typed columns, most of which is numbers."""
    numbers = readable_numbers(cells, ".")
    if numbers.nunique() <= MOST_ENCODED_LEVELS or numbers.count() < MOST_ALIKE * len(cells):
        return
    name = str(cells.name)
    yield Problem(
        "text in numbers",
        f"{name!r} contains numbers stored as text, such as {cells[numbers.first_valid_index()]!r}."
        " If they are amounts rather than codes, convert them to numbers in the file; otherwise"
        " rare ones are merged.",
        (name,),
        certainty="possible",
    )


def _amounts_problem(cells: pd.Series[Any], column: ColumnType, decimal: str) -> Problem:
    """Return a note about how amounts of money and numbers with a unit are parsed."""
    bare = cells.str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    plain = bare[plain_digits(remove_measure(bare, column.unit), decimal)[0] != bare]
    commas = plain.str.contains(r",[0-9]{1,2}(?![0-9])")
    shown = pd.concat([plain[commas].iloc[:1], plain[~commas].iloc[:1]])
    listed = " and ".join(
        f"{cell!r} as {plain_number(float(number))}"
        for cell, number in zip(shown, column(shown, decimal))
    )
    return Problem(
        "amounts",
        f"{column.name!r} is read as numbers: {listed}.",
        (column.name,),
        len(plain),
        "certain",
    )


def _nearly_numbers(cells: pd.Series[Any], decimal: str) -> Iterator[Problem]:
    """Yield a problem if a few cells, or their format, prevent a column from being read as
    numbers.
    """
    name = str(cells.name)
    numbers = readable_numbers(cells, decimal)
    bare = cells[numbers.index].str.strip()
    numbers = numbers.drop(converted_numbers(bare, decimal).index)
    cells = cells[numbers.index]
    bare = bare[numbers.index]
    wrong = numbers.isna()
    alike = parse_numbers(bare, decimal).isna() & bare.str.fullmatch(LIKE_NUMBER)
    limits = wrong & bare.str.fullmatch(DETECTION_LIMIT)
    odd = wrong & ~limits & ~bare.map(reads_missing)
    answers = odd.any() and set(bare[odd].map(fold_text)) <= YES | NO
    if answers and numbers.dropna().isin([0, 1]).all():
        return  # they are asked about as labels
    if limits.any() and not wrong.all() and odd.mean() <= FEW_WORDS:
        yield _limits_problem(bare[limits])
        wrong &= ~limits
        if not wrong.any():
            yield from number_problems(numbers)
    if 0 < wrong.mean() <= FEW_WORDS or (wrong.any() and not odd.any() and not wrong.all()):
        option = missing_option(name, bare[wrong].unique().tolist())
        remedy = "treat these cells as missing"
        if not option:
            option = option_text("drop", name)
            remedy = "correct these cells in the file; otherwise drop the column"
        yield Problem(
            "text in numbers",
            f"{name!r} is read as text, since some cells are not numbers:"
            f" {examples(cells[wrong])}. To read it as numbers, {remedy}.",
            (name,),
            int(wrong.sum()),
            option=option,
        )
        yield from number_problems(numbers)
    elif alike.mean() > MOST_ALIKE:
        yield Problem(
            "text in numbers",
            f"{name!r} is read as text, though most cells look like numbers:"
            f" {examples(cells[alike])}. To read it as numbers, write its cells as 1234{decimal}5.",
            (name,),
            int(alike.sum()),
            "possible",
            option_text("drop", name),
        )


def _limits_problem(limits: pd.Series[Any]) -> Problem:
    """Return a question about cells such as <0.7 in a column of numbers."""
    name = str(limits.name)
    shown = limits.unique().tolist()
    return Problem(
        "detection limit",
        f"{name!r} is read as text, since {format_count(len(limits), 'cell')} such as"
        f" {quote_names(shown[:3])}, first in row {row_number(limits, 0):,}, may be beyond a"
        " detection limit. To read it as numbers, write them as numbers, such as the limit itself"
        " or half of it, or treat them as missing.",
        (name,),
        len(limits),
        option=missing_option(name, [cell.replace(",", ".") for cell in shown])
        or option_text("drop", name),
    )


def readable_numbers(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Convert text cells to numbers, without markers of missing values; NaN where they cannot be
    read.
    """
    bare = cells.dropna().str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    values = pd.Series(bare.unique(), dtype=str)
    plain = remove_measure(values, common_measure(values))
    numbers = parse_numbers(*plain_digits(plain, decimal))
    return bare.map(dict(zip(values, numbers))).astype(float)
