"""Columns that identify rows or people, and rows and people that occur more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    NAMED_ID,
    column_kind,
    feature,
    fold_text,
    identifies_rows,
    is_text,
    repeated_rows,
)
from frhsic.tables.leaks import LEAST_IN_CLASS
from frhsic.tables.problems import LEAST_SUSPECTED_ROWS, Problem, option_text

LOOKED_AT_ROWS = 10_000
# Least rank correlation of a column that repeats S, and share of rows equal in the other columns.
ALIKE = 0.99
# Fewest columns of a table whose rows count as repeated if they are equal in all columns.
LEAST_COLUMNS = 4
# If this many pairs of equal values are expected by chance and there are none, the column contains
# keys: random draws would all differ with a probability of at most exp(-10).
EXPECTED_PAIRS = 10
# A column may identify people with several rows, whatever its name, by these criteria: share of
# rows that repeat a value, rows of a value on average, share of the values with equally many rows,
# and by how much rows of a value agree more than rows of neighboring values, in the median column
# (0.23 to 0.99 for the identifiers of twelve tables, at most 0.06 for their other columns).
LEAST_REPEATED = 0.05
MOST_REPEATED = 50
EQUALLY_MANY = 0.99
MORE_ALIKE = 0.15
COMPARED_COLUMNS = 30
COMPARED_ROWS = 100_000


def identifiers(X: pd.DataFrame) -> list[str]:
    """Return the columns that seem to identify rows or persons.

    Their values are distinct whole numbers that increase down the table, or are so close together
    that random draws would contain repeats; or the column contains whole numbers or text, has more
    than 64 values and a name like customer_id or CustomerNo.

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


def _identifies(name: str, column: pd.Series[Any]) -> bool:
    named = NAMED_ID.fullmatch(name) and column.nunique() > MOST_ENCODED_LEVELS
    if not pd.api.types.is_numeric_dtype(column):
        return bool(named) and column_kind(column) == "category"
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
    if column.dropna().duplicated().any():
        return _people_problem(
            column, " and is left out. Pass it" if left_out else ". Drop it and pass it"
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
    counts = column.value_counts()
    several = int((counts > 1).sum())
    return Problem(
        "repeated identifier",
        f"{name!r} seems to identify {len(counts):,} people or other units, {several:,} of them"
        f" with several rows (up to {counts.iloc[0]:,}){remedy} as groups, so that none is in both"
        " the training and the held-out rows.",
        (name,),
        int(column.count()),
        option=option_text("groups", name),
    )


def panel_problems(table: pd.DataFrame) -> Iterator[Problem]:
    """Yield a column whose values seem to be people with several rows each, whatever its name:
    whole numbers or text with equally many rows each, or whose rows agree on the other columns more
    than rows of neighboring values do.

    Examples
    --------
    >>> person = np.repeat(np.arange(70), 3)
    >>> wage = np.random.default_rng(0).normal(size=210)
    >>> panel = pd.DataFrame({"man": person, "born": person % 40, "wage": wage})
    >>> [problem.option for problem in panel_problems(panel)]
    ['--groups man']
    """
    table = table[~repeated_rows(table)]
    most = ("", MOST_ENCODED_LEVELS)
    for name, column in table.items():
        levels = column.nunique()
        rows = column.count()
        if levels <= most[1] or column_kind(column) not in ("number", "category"):
            continue
        if rows - levels < LEAST_REPEATED * rows or rows > MOST_REPEATED * levels:
            continue
        if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 != 0).any():
            continue
        counts = column.value_counts()
        equal = counts.iloc[0] > 1 and (counts == counts.iloc[0]).mean() >= EQUALLY_MANY
        if equal or _agreement(table, str(name)) >= MORE_ALIKE:
            most = str(name), levels
    if most[0]:
        yield _people_problem(table[most[0]], ". If so, pass it")


def _agreement(table: pd.DataFrame, name: str) -> float:
    """Return by how much adjacent rows with the same value agree more than those with neighboring
    values, as a share of the possible increase, in the median of the other columns.
    """
    present = table[name].notna().to_numpy()
    codes = pd.factorize(table[name][present], sort=True)[0]
    order = np.argsort(codes, kind="stable")[:COMPARED_ROWS]
    same = np.diff(codes[order]) == 0
    gains = []
    for other in table.columns[:COMPARED_COLUMNS]:
        if other == name:
            continue
        column = table[other][present]
        if is_text(column):
            column = column.map(fold_text, na_action="ignore")
        values = pd.factorize(column)[0][order]
        known = (values[1:] >= 0) & (values[:-1] >= 0)
        equal = values[1:] == values[:-1]
        if min((known & same).sum(), (known & ~same).sum()) < LEAST_SUSPECTED_ROWS:
            continue
        chance = equal[known & ~same].mean()
        if chance < 1:
            gains.append((equal[known & same].mean() - chance) / (1 - chance))
    return float(np.median(gains)) if gains else 0.0


def repeated_problem(
    repeated: int,
    rows: int,
    ids: Sequence[str] = (),
    *,
    harm: str = "the model is evaluated on rows that it was trained on",
    grouped: bool = False,
) -> Problem:
    """Return a problem for rows that repeat an earlier row in all columns except `ids`, with what
    happens if they stay, and whether rows of the same people are already `grouped`.
    """
    drops = [option_text("drop", name) for name in ids]
    remedy = "leave the repeated rows out"
    if not grouped:
        remedy += " or pass the people as groups"
    return Problem(
        "repeated rows",
        f"{repeated:,} of {rows:,} rows repeat an earlier row in every column except identifiers."
        f" If these are the same people, {remedy}; otherwise {harm}.",
        rows=repeated,
        option=" ".join(["--drop-repeated", *drops]),
    )


def hides_people(repeated: int, alike: int, rows: int) -> bool:
    """Return whether rows that repeat an earlier one are people who occur twice rather than coarse
    columns: there are at least ten of them and 1 % of the rows, and hardly any more rows are
    `alike` if a column is ignored.
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
