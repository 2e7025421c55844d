"""Columns that identify rows or people, and rows and people that occur more than once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import percent
from frhsic.tables.codes import NAMED_AGE, plain_number, reads_missing
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    NAMED_ID,
    column_kind,
    feature,
    fold_text,
    identifies_rows,
    is_missing,
    is_text,
    level_text,
    quote_names,
    repeated_rows,
)
from frhsic.tables.leaks import LEAST_IN_CLASS, explained_share
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
# Text that is numbers with decimals, and its share in a column above which it has no keys.
DECIMALS = r"\s*[-+]?[0-9]+[.,][0-9]+\s*"
MOST_DECIMALS = 0.5
# What may differ between two spellings of a key: blanks and signs between two letters, or between a
# letter and a digit, and a final period. Digits that are put together may be another number.
JOINTS = re.compile(r"(?<=[^\W\d_])[\s._-]+(?=[^\W_])|(?<=\d)[\s._-]+(?=[^\W\d_])|(?<=[^\W_])\.$")
# Leading zeros, which people leave out, though not of decimals.
LEADING_ZEROS = re.compile(r"(?<![0-9.,])0+(?=[0-9])")
# Least share of the errors about which rows have a value that the target removes if it is filled
# for some classes only.
FILLED_BY_CLASS = 0.8
# Names of columns that don't change with time, largest share of people whose rows may contradict
# each other, and how many times longer than usual the ages of a person may span.
NAMED_FIXED = re.compile(
    r"(.*[^a-z])?(sex|gender|geschlecht|sexo|sexe|race|ethnicity|born|dob|birth|geburt)",
    re.IGNORECASE,
)
MOST_CONTRADICTED = 0.1
LONGER_SPAN = 3
# Fewest rows that differ from others only in the target, and most copies of a row of a person.
LEAST_CONTRADICTING = 4
MOST_COPIES = 3
COMPARED_COLUMNS = 30
COMPARED_ROWS = 100_000


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
    """Return whether a column numbers the rows, by its name and whole numbers most of which are
    different or one larger than the number before, as in parts of a table that were put together.

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
    """Return the keys of people or other units, NaN where there is none: keys of text that differ
    only in case, leading zeros, or blanks or punctuation beside letters are the same, and have the
    zeros of the first of them, which keep the order of keys.

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


def is_decimal_text(column: pd.Series[Any]) -> bool:
    """Return whether most cells of a column of text are numbers with decimals, which are no keys.

    Examples
    --------
    >>> is_decimal_text(pd.Series(["108,34", "97,5"])), is_decimal_text(pd.Series(["108", "97"]))
    (True, False)
    """
    if not is_text(column):
        return False
    return bool(column.dropna().str.fullmatch(DECIMALS).mean() > MOST_DECIMALS)


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
    """Return how many spellings the keys of people have; empty if each has one."""
    number = keys.nunique()
    spellings = int(column[keys.notna()].nunique())
    if spellings == number:
        return ""
    return (
        f"{spellings:,} spellings are merged into {number:,} where they differ only in case,"
        " blanks, punctuation or leading zeros."
    )


def group_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield a note on the groups of rows if some of them are spelled in several ways."""
    if text := _spellings_sentence(column, unit_keys(column)):
        name = str(column.name)
        yield Problem("spelling", f"Groups {name!r}: {text}", (name,), certainty="certain")


def filled_by_class(
    column: pd.Series[Any], codes: np.ndarray, classes: np.ndarray
) -> Iterator[Problem]:
    """Yield a leak if the target determines which rows have a value, as only the dead have a death
    certificate.
    """
    name = str(column.name)
    filled = unit_keys(column).notna().to_numpy()
    if explained_share(codes, filled, 2) < FILLED_BY_CLASS:
        return
    rows = np.bincount(codes.astype(int), minlength=len(classes))
    shares = np.bincount(codes.astype(int), filled, minlength=len(classes)) / np.maximum(rows, 1)
    frequent = np.flatnonzero(rows >= LEAST_IN_CLASS)
    most = frequent[np.argmax(shares[frequent])]
    least = frequent[np.argmin(shares[frequent])]
    parts = [
        f"{percent(round(float(shares[place]), 3))} of the rows with {level_text(classes[place])!r}"
        for place in (most, least)
    ]
    yield Problem(
        "leak",
        f"{name!r} has a value in {parts[0]} and in {parts[1]}, so it seems to be known only after"
        " the target. Drop it.",
        (name,),
        int(filled.sum()),
        option=option_text("drop", name),
    )


def lost_classes(column: pd.Series[Any], labels: pd.Series[Any]) -> Iterator[Problem]:
    """Yield an error for labels of the target that nearly no row with a group has."""
    lacking = unit_keys(column).isna()
    lost = {
        level_text(label): int(own.sum())
        for label, own in lacking.groupby(labels)
        if len(own) >= LEAST_SUSPECTED_ROWS and own.mean() >= ALIKE > lacking.mean()
    }
    if lost:
        name = str(column.name)
        rows = sum(lost.values())
        yield Problem(
            "groups",
            f"{rows:,} rows with {str(labels.name)!r} {quote_names([*lost])}, which are nearly all"
            f" of them, have no value of {name!r}. Rows without a group are left out, so don't use"
            f" {name!r} as groups.",
            (name,),
            rows,
            "error",
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
    for name in table:
        column = unit_keys(table[name])
        levels = column.nunique()
        rows = column.count()
        if levels <= most[1] or column_kind(column) not in ("number", "category"):
            continue
        if rows - levels < LEAST_REPEATED * rows or rows > MOST_REPEATED * levels:
            continue
        if pd.api.types.is_float_dtype(column) and (column.dropna() % 1 != 0).any():
            continue
        if is_decimal_text(table[name]):
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
    keys = unit_keys(table[name])
    present = keys.notna().to_numpy()
    codes = pd.factorize(keys[present], sort=True)[0]
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


def contradicted_targets(table: pd.DataFrame, codes: np.ndarray, target: str) -> Iterator[Problem]:
    """Yield a question about rows that are equal in everything but the target, unless the columns
    are so coarse that rows of different people are equal: more of them are if the finest column is
    ignored, or several share all values.

    Examples
    --------
    >>> wage = np.random.default_rng(0).normal(size=200).repeat(2)
    >>> table = pd.DataFrame({"wage": wage, "age": wage**2, "town": "Bern", "hours": 40})
    >>> codes = np.where(np.arange(400) == 7, 1.0, 0.0)
    >>> codes[:4] = [0, 1, 1, 0]
    >>> [problem.rows for problem in contradicted_targets(table, codes, "paid")]
    [6]
    """
    if table.shape[1] < LEAST_COLUMNS:
        return
    keys = pd.util.hash_pandas_object(table, index=False)
    finest = table.nunique().idxmax()
    copies = keys.value_counts()
    coarser = pd.util.hash_pandas_object(table.drop(columns=finest), index=False)
    alike = keys.duplicated(keep=False).sum()
    if copies.max() > MOST_COPIES or alike < ALIKE * coarser.duplicated(keep=False).sum():
        return
    several = pd.Series(codes, keys.index).groupby(keys).transform("nunique") > 1
    rows = int(several.sum())
    if rows >= LEAST_CONTRADICTING:
        yield Problem(
            "contradiction",
            f"{rows:,} rows equal another row in every column but the target {target!r}. If these"
            " are the same people, keep only the rows with the right target.",
            (target,),
            rows,
        )


def contradicted_people(table: pd.DataFrame, column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield columns such as sex that differ between rows of a person, and ages that are too far
    apart, for a few people.

    Examples
    --------
    >>> person = pd.Series(np.arange(60) // 2, name="person")
    >>> table = pd.DataFrame({"sex": np.where(person % 2, "f", "m"), "age": person + 20})
    >>> table.loc[5, "sex"] = "f"
    >>> table.loc[7, "age"] = 71
    >>> [(problem.columns[0], problem.rows) for problem in contradicted_people(table, person)]
    [('sex', 2), ('age', 2)]
    """
    keys = unit_keys(column)
    several = keys.notna() & keys.duplicated(keep=False)
    keys = keys[several]
    people = keys.nunique()
    for name in map(str, table):
        values = table[name][several]
        if NAMED_AGE.fullmatch(name) and pd.api.types.is_numeric_dtype(values):
            spans = values.groupby(keys).agg(lambda ages: ages.max() - ages.min())
            usual = float(spans.quantile(1 - MOST_CONTRADICTED))
            longest = LONGER_SPAN * max(1.0, usual)
            wrong = spans[spans > longest].index
            much = f" by more than {plain_number(longest)}"
        elif NAMED_FIXED.fullmatch(name):
            counts = values.groupby(keys).nunique()
            wrong = counts[counts > 1].index
            much = ""
        else:
            continue
        if 0 < len(wrong) <= MOST_CONTRADICTED * people:
            first = keys[keys == wrong[0]].index[0]
            yield Problem(
                "contradiction",
                f"{name!r} differs{much} between the rows of {len(wrong):,} of the {people:,}"
                f" values of {str(column.name)!r} with several rows, such as"
                f" {level_text(column[first])!r}. Correct the file, unless they are several"
                " people.",
                (name,),
                int(keys.isin(wrong).sum()),
            )


def examined_rows(X: pd.DataFrame) -> np.ndarray:
    return np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT_ROWS)).astype(int)
