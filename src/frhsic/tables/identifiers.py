"""Columns that identify rows or people, and rows and people that occur more than once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables.codes import reads_missing
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    NAMED_ID,
    column_kind,
    feature,
    fold_text,
    identifies_rows,
    is_missing,
    level_text,
)
from frhsic.tables.leaks import LEAST_IN_CLASS
from frhsic.tables.problems import LEAST_SUSPECTED_ROWS, Problem, option_text

LOOKED_AT_ROWS = 10_000
# Least rank correlation of a column that repeats S, and least share of rows in comparisons.
ALIKE = 0.99
# Fewest columns of a table whose rows count as repeated if they are equal in all columns.
LEAST_COLUMNS = 4
# If this many pairs of equal values are expected by chance and there are none, the column contains
# keys: random draws would all differ with a probability of at most exp(-10).
EXPECTED_PAIRS = 10
# Names of columns with keys of people or other units, and the least share of keys with a digit.
# Names of the columns into which programs write the numbers of the rows.
NAMED_INDEX = re.compile(
    r"unnamed: \d+|__index_level_\d+__|index|(obs|row)[ _.]?(index|names?|num(ber)?|nr|no)",
    re.IGNORECASE,
)
NAMED_UNIT = re.compile(
    r"(.*[^a-z])?(person|patient|customer|client|household|member|respondent|participant|student"
    r"|pupil|borrower|applicant|employee|user|account|kunde|haushalt)",
    re.IGNORECASE,
)
MOST_KEYS = 0.9
# What may differ between two spellings of a key: whitespace and punctuation between two letters, or
# between a letter and a digit, and a final period. Joining two digits could give another number.
JOINTS = re.compile(r"(?<=[^\W\d_])[\s._-]+(?=[^\W_])|(?<=\d)[\s._-]+(?=[^\W\d_])|(?<=[^\W_])\.$")
# Leading zeros, which people leave out, except in decimals.
LEADING_ZEROS = re.compile(r"(?<![0-9.,])0+(?=[0-9])")


def identifiers(X: pd.DataFrame) -> list[str]:
    """Return the columns that seem to identify rows or persons.

    Their values are distinct whole numbers that increase down the table, or are so close together
    that random draws would contain repeats; or the column contains whole numbers or text, has more
    than 64 values and a name like customer_id, CustomerNo or person.

    Examples
    --------
    >>> identifiers(
    ...     pd.DataFrame({"row": range(100), "customer_id": [i // 1.25 // 1 for i in range(100)]})
    ... )
    ['row', 'customer_id']
    """
    if len(X) < LEAST_SUSPECTED_ROWS:
        return []
    if X.shape[1] >= LEAST_COLUMNS:
        X = X[~X.duplicated()]  # a repeated row repeats its identifier
    rows = examined_rows(X)
    return [str(name) for name in X if _identifies(str(name), X[name].iloc[rows])]


def is_index(column: pd.Series[Any]) -> bool:
    """Return whether a column numbers the rows: its name says so, and it contains whole numbers,
    most of which are distinct or one larger than the previous one, as in a table assembled from
    parts.

    Examples
    --------
    >>> is_index(pd.Series([*range(90), *range(60)], name="Unnamed: 0"))
    True
    """
    if not NAMED_INDEX.fullmatch(str(column.name)) or column_kind(column) != "number":
        return False
    values = column.dropna().astype(float)
    if len(values) < LEAST_SUSPECTED_ROWS or (values % 1 != 0).any():
        return False
    return bool(
        values.nunique() >= MOST_KEYS * len(values) or (values.diff() == 1).mean() > MOST_KEYS
    )


def unit_keys(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the keys of people or other units, or NaN where there is none. Text keys that differ
    only in case, leading zeros, or whitespace or punctuation next to letters are the same key; it
    keeps the zeros of its first spelling, so that sorting keeps the order.

    Examples
    --------
    >>> unit_keys(pd.Series(["P-0269", "p269 ", "", "1-12", "unknown"])).tolist()
    ['p0269', 'p0269', nan, '1-12', nan]
    """
    if column_kind(column) != "category":
        return column
    lacking = is_missing(column)
    keys: dict[Any, Any] = {}
    first: dict[str, str] = {}
    for value in column[~lacking].unique():
        text = level_text(value)
        key = JOINTS.sub("", fold_text(text))
        key = first.setdefault(LEADING_ZEROS.sub("", key), key)
        keys[value] = np.nan if reads_missing(text) else key
    return column.astype(object).mask(lacking, np.nan).map(keys, na_action="ignore")


def _identifies(name: str, column: pd.Series[Any]) -> bool:
    many = column.nunique() > MOST_ENCODED_LEVELS
    named = many and bool(NAMED_ID.fullmatch(name) or NAMED_UNIT.fullmatch(name))
    if not pd.api.types.is_numeric_dtype(column):
        if not named or column_kind(column) != "category":
            return False
        digits = unit_keys(column).dropna().astype(str).str.contains("[0-9]")
        return bool(NAMED_ID.fullmatch(name) or digits.mean() >= MOST_KEYS)
    values = feature(column, name)
    values = values[~np.isnan(values)]
    if not np.array_equal(values, np.round(values)):
        return False
    if named:
        return True
    different = len(np.unique(values))
    if different < len(values) or different < LEAST_SUSPECTED_ROWS:
        return False
    pairs = different * (different - 1) / 2
    # of all distributions on a range, the uniform one has the fewest ties
    return bool(pairs >= EXPECTED_PAIRS * (np.ptp(values) + 1) or (np.diff(values) > 0).all())


def identifier_problem(column: pd.Series[Any], *, left_out: bool) -> Problem:
    """Return a problem for an identifier of rows, or of people with several rows each."""
    name = str(column.name)
    if unit_keys(column).dropna().duplicated().any():
        return _people_problem(
            column, ", and is left out. Pass it" if left_out else ". Drop it and pass it"
        )
    text = f"{name!r} seems to identify rows; drop it."
    if left_out:
        text = (
            f"{name!r} seems to identify rows and is left out; to use it, name it with --features."
        )
    return Problem("identifier", text, (name,), certainty="certain" if left_out else "likely")


def _people_problem(column: pd.Series[Any], remedy: str) -> Problem:
    """Return a problem for an identifier of people or other units with several rows."""
    name = str(column.name)
    keys = unit_keys(column)
    counts = keys.value_counts()
    several = int((counts > 1).sum())
    return Problem(
        "repeated identifier",
        f"{name!r} seems to identify {len(counts):,} people or other units, {several:,} of them"
        f" with several rows (up to {counts.iloc[0]:,}){remedy} as groups, so that none is in both"
        f" the training and the held-out rows. {_spellings_sentence(column, keys)}".strip(),
        (name,),
        int(keys.count()),
        option=option_text("groups", name),
    )


def _spellings_sentence(column: pd.Series[Any], keys: pd.Series[Any]) -> str:
    """Return a sentence on how many spellings keys have; empty if each key has one."""
    number = keys.nunique()
    spellings = int(column[keys.notna()].nunique())
    if spellings == number:
        return ""
    return (
        f"{spellings:,} spellings are merged into {number:,} where they differ only in case,"
        " blanks, punctuation or leading zeros."
    )


def panel_problem(column: pd.Series[Any]) -> Problem:
    """Return a problem for a column whose values seem to stand for people, whatever its name."""
    return _people_problem(column, ". If so, pass it")


def group_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield a note on the groups of rows if some of them are spelled in several ways."""
    if text := _spellings_sentence(column, unit_keys(column)):
        name = str(column.name)
        yield Problem("spelling", f"Groups {name!r}: {text}", (name,), certainty="certain")


def repeated_problem(
    repeated: int,
    rows: int,
    ids: Sequence[str] = (),
    *,
    harm: str = "the model is evaluated on rows that it was trained on",
    grouped: bool = False,
) -> Problem:
    """Return a problem for rows that repeat an earlier row in all columns except `ids`; `harm` says
    what happens if they stay, and `grouped` whether people are already groups.
    """
    drops = [option_text("drop", name) for name in ids]
    remedy = "leave the repeated rows out"
    if not grouped:
        remedy += " or pass the people as groups"
    return Problem(
        "repeated rows",
        f"{repeated_phrase(repeated, rows)} in every column except identifiers."
        f" If these are the same people, {remedy}; otherwise {harm}.",
        rows=repeated,
        option=" ".join(["--drop-repeated", *drops]),
    )


def repeated_phrase(repeated: int, rows: int) -> str:
    """Return the beginning of a sentence about repeated rows."""
    verb = "repeats" if repeated == 1 else "repeat"
    return f"{repeated:,} of {rows:,} rows {verb} an earlier row"


def hides_people(repeated: int, alike: int, rows: int) -> bool:
    """Return whether `repeated` rows are due to people who occur twice rather than to coarse
    columns: they are at least ten rows and 1 % of all rows, and hardly more rows are `alike` if a
    column is ignored.
    """
    least = max(LEAST_IN_CLASS, (1 - ALIKE) * rows)
    return repeated >= max(least, ALIKE * alike) and rows - alike > MOST_ENCODED_LEVELS


def count_repeated(X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame) -> int:
    """Return how many rows repeat an earlier row in X, y and s, ignoring identifiers; 0 if there
    are few, or if rows often share X and s but not y.
    """
    ids = identifiers(X)
    ids += [
        str(name)
        for name in X
        if column_kind(X[name]) == "category" and identifies_rows(X[name].nunique(), len(X))
    ]
    known = pd.concat([X.drop(columns=ids), s.set_axis(X.index)], axis=1)
    if known.shape[1] == 0:
        return 0
    keys = pd.util.hash_pandas_object(known, index=False)
    alike = int(keys.duplicated().sum())
    repeated = int(pd.DataFrame({"known": keys, "y": y}).duplicated().sum())
    return repeated if hides_people(repeated, alike, len(X)) else 0


def examined_rows(X: pd.DataFrame) -> np.ndarray:
    return np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT_ROWS)).astype(int)
