"""Columns of text: words for missing values, amounts, and cells that keep a column from being
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from frhsic.tables.codes import (
    CLEAR_CODE,
    MISSING_WORDS,
    code_problem,
    number_problems,
    plain_number,
)
from frhsic.tables.columns import examples, fold_text, is_text, quote_names, unify_spelling
from frhsic.tables.problems import Problem, option_text
from frhsic.tables.schema import NUMBER_MARKS, ColumnType, Schema, parse_numbers, plain_digits

MOST_WORDS = 50
# Share of a column's cells that may be no numbers if it seems to have been meant as numbers.
FEW_WORDS = 0.1
# Cells that look like numbers, and the share of them above which a column of text is remarked on.
LIKE_NUMBER = r"[-+]?[0-9]+([.,][0-9]{3})*([.,][0-9]+)?"
MOST_ALIKE = 0.5
# What a spreadsheet makes of a range such as 10-24 or 1-9.
SPREADSHEET_DATE = (
    r"[0-9]{1,2}-(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-[0-9]{2}"
)


def text_problems(cells: pd.DataFrame, schema: Schema, decimal: str | None) -> Iterator[Problem]:
    """Yield columns of text with spellings that are merged, words for missing values, and cells
    that prevent the column from being read as numbers; `decimal` is None for a table with typed
    columns.
    """
    words: dict[str, list[str]] = {}
    for column in schema.columns:
        name = column.name
        present = cells[name].dropna()
        if not is_text(present) or present.empty:
            continue
        if column.grouped:
            yield _amounts_problem(present, column, decimal or ".")
        if column.kind not in ("text", "identifier"):
            continue
        if column.kind == "text":
            _, notes = unify_spelling(present.str.strip())
            for note in notes:
                yield Problem("spelling", note, (name,), certainty="certain")
            yield from _spreadsheet_problems(column.levels, name)
            for level in column.levels:
                if fold_text(level) in MISSING_WORDS:
                    words.setdefault(fold_text(level), []).append(name)
            codes = [level for level in column.levels if CLEAR_CODE.fullmatch(str(level))]
            if codes and not any(
                str(level)[-1:].isdigit() for level in {*column.levels} - {*codes}
            ):
                yield code_problem(name, codes, int(present.isin(codes).sum()))
        if decimal is not None:
            yield from _nearly_numbers(present, decimal)
    for word, names in words.items():
        yield Problem(
            "missing code",
            f"{word!r} is a value of {quote_names(names)}. If it means missing, treat it as"
            " missing.",
            tuple(names),
            option=" ".join(option_text("missing", f"{name}={word}") for name in names),
        )


def _spreadsheet_problems(levels: Sequence[Any], name: str) -> Iterator[Problem]:
    """Yield a note on levels that were ranges before a spreadsheet took them for dates."""
    dates = [level for level in map(str, levels) if re.fullmatch(SPREADSHEET_DATE, level)]
    if 0 < len(dates) < len(levels):
        yield Problem(
            "spreadsheet dates",
            f"{quote_names(dates[:3])} in {name!r} may be ranges such as 10-24 that a spreadsheet"
            " took for dates; each counts as a level of its own.",
            (name,),
            certainty="certain",
        )


def _amounts_problem(cells: pd.Series[Any], column: ColumnType, decimal: str) -> Problem:
    """Return a note on how amounts of money and similar text are parsed."""
    bare = cells.str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    plain = bare[plain_digits(bare, decimal)[0] != bare]
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
    cells = cells[numbers.index]
    bare = cells.str.strip()
    wrong = numbers.isna()
    alike = parse_numbers(bare, decimal).isna() & bare.str.fullmatch(LIKE_NUMBER)
    if 0 < wrong.mean() <= FEW_WORDS:
        yield Problem(
            "text in numbers",
            f"{name!r} is read as text, since some cells are not numbers:"
            f" {examples(cells[wrong])}. To read it as numbers, treat them as missing.",
            (name,),
            int(wrong.sum()),
            option=words_as_missing(name, bare[wrong]) or option_text("drop", name),
        )
        yield from number_problems(numbers)
    elif alike.mean() > MOST_ALIKE:
        yield Problem(
            "text in numbers",
            f"{name!r} is read as text, though most cells look like numbers:"
            f" {examples(cells[alike])}. To read it as numbers, write them as 1234{decimal}5.",
            (name,),
            int(alike.sum()),
            "possible",
            option_text("drop", name),
        )


def readable_numbers(cells: pd.Series[Any], decimal: str) -> pd.Series[Any]:
    """Convert text cells to numbers, ignoring marks of missing values; NaN where they cannot be
    read.
    """
    bare = cells.dropna().str.strip()
    bare = bare[~bare.isin(NUMBER_MARKS)]
    return parse_numbers(*plain_digits(bare, decimal))


def words_as_missing(name: str, cells: pd.Series[Any]) -> str:
    """Return the option that treats some cells of a column as missing."""
    words = cells.str.strip().unique().tolist()
    if len(words) > MOST_WORDS or any(sign in word for word in words for sign in ",="):
        return ""
    return option_text("missing", f"{name}={','.join(words)}")
