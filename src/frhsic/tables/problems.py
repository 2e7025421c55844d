"""Problems of a table: columns that should not be features, codes for missing values, outliers,
repeated rows and people, and cells that cannot be read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from frhsic.formatting import capitalize, format_count, percent
from frhsic.tables.columns import (
    LARGEST_FEATURE,
    MOST_ENCODED_LEVELS,
    NAMED_ID,
    column_kind,
    examples,
    feature,
    fold_text,
    identifies_rows,
    is_text,
    level_text,
    quote_names,
    repeated_rows,
    row_number,
    unify_spelling,
)
from frhsic.tables.leaks import (
    LEAST_IN_CLASS,
    explained_share,
    is_banded,
    leaks,
    rank_correlation,
    repeating_pair,
)
from frhsic.tables.schema import NUMBER_MARKS, ColumnType, Schema, parse_numbers, plain_digits

# Fewest rows for these checks, and the number of evenly spaced rows that they inspect.
LEAST_SUSPECTED_ROWS = 50
LOOKED_AT_ROWS = 10_000
# Rows of the rarer class below which its scarcity is a problem of its own.
FEW_IN_CLASS = 50
# Rank correlation of a column that repeats S, and share of rows that come with the same others.
ALIKE = 0.99
# Share of the errors of a class, or of the variance of a number, that one column may explain before
# it seems to follow from the target, and share from which on that is asked.
MOST_EXPLAINED = 0.95
MUCH_EXPLAINED = 0.5
MOST_ASKED = 3
NAMED_WEIGHT = re.compile(
    r"(.*[^a-zA-Z])?(p|per|person|hh|household|final|fnl|samp|sample|sampling|survey)?"
    r"(weights?|wt|wgt|gewicht)([^a-zA-Z].*)?",
    re.IGNORECASE,
)
# How many times the median the largest weight of bodies is at most.
MOST_BODIES = 20
# Columns of a table from which on rows that are alike in all of them came twice.
LEAST_COLUMNS = 4
# Pairs of equal values that chance alone would make, on average, from which on a column without any
# holds keys: as many draws all differ with a probability of at most exp(-10).
EXPECTED_PAIRS = 10
# Of a column that may identify people with several rows, though it is not named so: share of rows
# that repeat its value, rows of a value on average, share of the values with equally many rows, and
# by how much rows of a value agree more than rows of neighbouring values, in the median column:
# 0.23 to 0.99 for the identifiers of twelve tables, and at most 0.06 for their other columns.
LEAST_REPEATED = 0.05
MOST_REPEATED = 50
EQUALLY_MANY = 0.99
MORE_ALIKE = 0.15
COMPARED_COLUMNS = 30
COMPARED_ROWS = 100_000
# Numbers that people write for a missing value, and words.
MISSING_NUMBERS = re.compile(r"-?(9+|8+|7+)|-1|-2|0")
MISSING_WORDS = {
    "unknown",
    "missing",
    "not known",
    "not stated",
    "not available",
    "no answer",
    "refused",
    "don't know",
    "unbekannt",
    "k.a.",
    "keine angabe",
}
# Different values of a column of numbers from which on codes and outliers are looked for; the
# nearest of the others that a code is compared with; how many times as far from them it lies as
# they from each other, and an outlier from the median as the next value.
LEAST_VALUES = 10
NEIGHBOURS = 11
FAR_CODE = 3
FAR_OUTLIER = 10
LEAST_CODED_ROWS = 3
# Codes that are no rank or count: looked for among few numbers, and among words.
CLEAR_CODE = re.compile(r"-(9+|8+|7+)|99+|88+|77+")
MOST_CODES = 3
MOST_WORDS = 50
MOST_ZEROS = 0.1
# Share of the median at which the other values begin, where 0 may be a code.
LEAST_START = 0.2
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
# Letters of a label that may be short for another one.
LEAST_LETTERS = 3

Certainty = Literal["error", "likely", "possible", "certain"]


class SuspiciousColumnWarning(UserWarning):
    """A feature is empty, identifies rows, repeats a sensitive attribute, or leaks the target."""


@dataclass(frozen=True)
class Problem:
    """One problem of a table.

    Attributes
    ----------
    kind
        Key of the kind of problem, such as ``"missing code"``.
    text
        Description of the problem, with an example.
    columns
        The affected columns.
    rows
        Number of affected rows; None if that is all of them or unknown.
    certainty
        ``"error"`` if the table cannot be used as it is, ``"certain"`` if the problem was handled
        as the text says, ``"likely"`` if the user has to decide, ``"possible"`` if the column is
        probably all right.
    option
        Command-line option that resolves it; empty if there is none.
    values
        The problematic values of the column, as text: codes or outliers.
    """

    kind: str
    text: str
    columns: tuple[str, ...] = ()
    rows: int | None = None
    certainty: Certainty = "likely"
    option: str = ""
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.option:
            return self.text
        return f"{self.text.removesuffix('.')} ({self.option})."


def identifiers(X: pd.DataFrame) -> list[str]:
    """Return the columns that seem to identify rows or persons.

    All of their values are distinct whole numbers that only increase down the table, or lie so
    close together that random draws would contain repeats; or the column contains whole numbers or
    text, has more than 64 values and a name like customer_id or CustomerNo.

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
        X = X[~X.duplicated()]  # a row that came twice has its identifier twice
    rows = _examined_rows(X)
    return [str(name) for name in X if _identifies(str(name), X[name].iloc[rows])]


def feature_problems(
    X: pd.DataFrame, y: np.ndarray | None, classes: int, s: pd.DataFrame
) -> Iterator[Problem]:
    """Yield problems of features.

    - A column has no values at all.
    - A column of numbers identifies rows or people by the rules of :func:`identifiers`.
    - A column repeats a sensitive attribute if it has its name, if their rank correlation is at
      least 0.99 in absolute value, or if its values are bands of the attribute; two columns repeat
      it if it follows from them, as an age from two years.
    - Columns give the target away, by the rules of :func:`~frhsic.tables.leaks.leaks`.
    - At least 1 % of the rows, and at least ten, repeat an earlier row in all columns but
      identifiers, and hardly any row repeats one in all columns but the target: people who occur
      twice, rather than coarse columns.

    Parameters
    ----------
    X, s
        Features and sensitive attributes.
    y, classes
        Target: codes 0, 1, ... of `classes` classes, or numbers if `classes` is 0.

    Examples
    --------
    >>> age = np.arange(100.0) ** 2
    >>> X = pd.DataFrame({"x": np.sin(age), "born": 2000 - age})
    >>> [problem.text for problem in feature_problems(X, None, 0, pd.DataFrame({"age": age}))]
    ["'born' repeats the sensitive attribute 'age', which the prediction must not depend on; ..."]
    """
    rows = _examined_rows(X)
    columns = {str(name): feature(X[name].iloc[rows], str(name)) for name in X}
    if empty := [str(name) for name in X if X[name].isna().all()]:
        text = f"{quote_names(empty)} has no value in any row; drop it."
        yield Problem("empty", text, tuple(empty))
    different = ~repeated_rows(X) if X.shape[1] >= LEAST_COLUMNS else np.ones(len(X), dtype=bool)
    for name in identifiers(X):
        yield identifier_problem(X[name][different], left_out=False)
    for attribute in map(str, s):
        known = s[attribute].to_numpy()[rows]
        yield from _attribute_problems(columns, known, attribute)
    if y is None or len(X) < LEAST_SUSPECTED_ROWS:
        return
    for leak in leaks(columns, y[rows], classes):
        dates = [name for name in leak.columns if column_kind(X[name]) == "date"]
        late = dates if len(dates) > 1 else leak.columns[:1]  # of two dates, both came later
        remedy = "is known only after the target, drop it"
        if len(late) > 1:
            remedy = "are known only after the target, drop both"
        yield Problem(
            "leak",
            f"{capitalize(leak.text)}. If {' and '.join(map(repr, late))} {remedy}.",
            leak.columns,
            option=" ".join(option_text("drop", name) for name in late),
        )
    if repeated := _repeated_rows(X, y, s):
        yield repeated_problem(repeated, len(X))


def repeated_problem(repeated: int, rows: int, ids: Sequence[str] = ()) -> Problem:
    """Return a problem for rows that repeat an earlier one in all columns but these."""
    drops = [option_text("drop", name) for name in ids]
    return Problem(
        "repeated rows",
        f"{repeated:,} of {rows:,} rows repeat an earlier one in every column but identifiers. If"
        " these are the same people, leave the repeated rows out or pass the people as groups;"
        " otherwise the model is measured on rows that it was trained on.",
        rows=repeated,
        option=" ".join(["--drop-repeated", *drops]),
    )


def _attribute_problems(
    columns: dict[str, np.ndarray], s: np.ndarray, attribute: str
) -> Iterator[Problem]:
    """Yield columns that repeat a sensitive attribute, alone or in a pair."""
    rest = {}
    for name, values in columns.items():
        if name == attribute or rank_correlation(values, s, LEAST_SUSPECTED_ROWS) >= ALIKE:
            how = f"{name!r} repeats the sensitive attribute {attribute!r}"
        elif is_banded(values, s):
            how = f"{name!r} has bands of the sensitive attribute {attribute!r}"
        else:
            rest[name] = values
            continue
        yield Problem(
            "attribute repeated",
            f"{how}, which the prediction must not depend on; drop it.",
            (name, attribute),
            option=option_text("drop", name),
        )
    pair = repeating_pair(rest, s)
    if pair is not None:
        name, other, phrase = pair
        yield Problem(
            "attribute repeated",
            f"{name!r} and {other!r} together repeat the sensitive attribute {attribute!r}"
            f" ({phrase}), which the prediction must not depend on; drop one of them.",
            (name, other, attribute),
            option=option_text("drop", name),
        )


def strong_features(X: pd.DataFrame, y: np.ndarray, classes: int) -> Iterator[Problem]:
    """Yield each column that removes 95 % of the errors or variance of a constant prediction, and a
    question about the three strongest columns that remove half of it.
    """
    rows = _examined_rows(X)
    shares = {
        str(name): explained_share(feature(X[name].iloc[rows], str(name)), y[rows], classes)
        for name in X
    }
    what = "errors of always predicting one class" if classes else "variance of the target"
    strong = sorted(shares, key=lambda name: -shares[name])
    strong = [name for name in strong if shares[name] >= MUCH_EXPLAINED]
    asked = [name for name in strong if shares[name] < MOST_EXPLAINED][:MOST_ASKED]
    for name in strong:
        if shares[name] >= MOST_EXPLAINED:
            yield Problem(
                "leak",
                f"{name!r} alone explains {percent(round(shares[name], 3))} of the {what}. If it is"
                " known only after the target, drop it.",
                (name,),
                option=option_text("drop", name),
            )
    if asked:
        shown = ", ".join(f"{name!r} ({percent(round(shares[name], 2))})" for name in asked)
        one = len(asked) == 1
        yield Problem(
            "strong feature",
            f"{shown} {'explains' if one else 'each explain'} at least half of the {what}. If"
            f" {'it' if one else 'one'} is known only after the target, drop it.",
            tuple(asked),
            certainty="possible",
            option=" ".join(option_text("drop", name) for name in asked),
        )


def option_text(name: str, value: str) -> str:
    """Return an option quoted for a shell."""
    return f"--{name} {shlex.quote(value)}"


def panel_problems(table: pd.DataFrame) -> Iterator[Problem]:
    """Yield a column whose values seem to be people with several rows each, though its name does
    not say so: whole numbers or text with equally many rows each, or whose rows agree on the other
    columns more than rows of neighbouring values do.

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
    """Return by how much neighbouring rows of a value agree more than those of neighbouring values
    do, as a share of what these leave, in the median of the other columns.
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
            f"{name!r} seems to identify rows and is left out; name it with --features to use it."
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


def number_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield values of a column of numbers that lie far from all others: codes for missing values if
    they repeat, else outliers.

    A code is at an end, occurs in at least three rows, and is three times as far from the next
    value as the values there are from each other; it also looks like a code (-9, 99, -1, 0), or is
    further away than the whole range of the others. An outlier is ten times as far from the median
    as the next value.
    """
    name = str(column.name)
    present = column.dropna()
    values, counts = np.unique(present.to_numpy(dtype=np.float64), return_counts=True)
    if len(values) <= LEAST_VALUES:
        yield from _codes_among_few(name, values, counts)
        return
    middle = float(np.median(present))
    for sign in (1, -1):
        ends, rows = (values, counts) if sign == 1 else (-values[::-1], counts[::-1])
        number = _far_values(ends, rows, sign * middle, sign)
        if not number:
            continue
        far = sign * ends[:number]
        shown = ", ".join(map(_plain_number, far))
        total = int(rows[:number].sum())
        times = "once" if total == 1 else f"{total:,} times"
        occurs = f"{shown} {'occurs' if number == 1 else 'occur'} {times} in {name!r}"
        next_value = _plain_number(sign * ends[number])
        kind = "missing code"
        text = f"{occurs} (next value: {next_value}). If it means missing, treat it as missing."
        if (rows[:number] < LEAST_CODED_ROWS).any():
            kind = "outlier"
            first = row_number(present[present.isin(far)], 0)
            text = (
                f"{occurs}, first in row {first:,}, far from the next value, {next_value}. If it is"
                " a mistake, correct it or treat it as missing."
            )
        codes = tuple(level_text(float(value)) for value in far)
        option = option_text("missing", f"{name}={','.join(codes)}")
        yield Problem(kind, text, (name,), total, option=option, values=codes)


def _codes_among_few(name: str, values: np.ndarray, counts: np.ndarray) -> Iterator[Problem]:
    """Yield codes for missing values in columns with few distinct numbers, such as 99 next to 1 to
    5.
    """
    texts = list(map(level_text, values.tolist()))
    codes = [text for text in texts if CLEAR_CODE.fullmatch(text)]
    rest = [value for value, text in zip(values, texts) if text not in codes]
    far = [
        code
        for code in codes
        if rest and (float(code) < 0 <= rest[0] or float(code) > 5 * rest[-1])
    ]
    if far and len(rest) > 1:
        yield _code_problem(name, far, int(counts[[text in far for text in texts]].sum()))


def _code_problem(name: str, codes: Sequence[str], rows: int) -> Problem:
    """Return a problem for codes without a neighbouring value to name."""
    shown = ", ".join(code.replace("-", "−") for code in codes)
    return Problem(
        "missing code",
        f"{shown} {'occurs' if len(codes) == 1 else 'occur'} {rows:,} times in {name!r}. If it"
        " means missing, treat it as missing.",
        (name,),
        rows,
        option=option_text("missing", f"{name}={','.join(codes)}"),
        values=tuple(codes),
    )


def _plain_number(value: float) -> str:
    return f"{value:,.10g}".replace("-", "−")


def _far_values(values: np.ndarray, rows: np.ndarray, middle: float, sign: int) -> int:
    """Return how many of the smallest values are codes or outliers; `sign` is -1 if the values were
    negated.
    """
    for number in range(1, MOST_CODES + 1):
        head = values[:number]
        rest = values[number:]
        share = rows[:number].sum() / rows.sum()
        gap = rest[0] - head[-1]
        named = all(MISSING_NUMBERS.fullmatch(level_text(sign * value)) for value in head.tolist())
        nearby = np.diff(rest[:NEIGHBOURS]).max()
        apart = gap >= FAR_CODE * nearby and (named or gap >= np.ptp(rest))
        negative = named and sign == 1 and head[-1] < 0 <= rest[0]
        if (rows[:number] >= LEAST_CODED_ROWS).all():
            # many columns are zero in most rows, and amounts begin near zero
            usual = 0 in head and (share > MOST_ZEROS or abs(rest[0]) < LEAST_START * abs(middle))
            if (apart or negative) and not usual:
                return number
        elif middle > rest[0] and middle - head[-1] >= FAR_OUTLIER * (middle - rest[0]):
            return number
    return 0


def _repeated_rows(X: pd.DataFrame, y: np.ndarray, s: pd.DataFrame) -> int:
    """Return how many rows repeat an earlier one in X, y and s, ignoring identifiers; 0 if there
    are few, or if rows often have the same X and s anyway.
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
    least = max(LEAST_IN_CLASS, (1 - ALIKE) * len(X))
    clear = repeated >= ALIKE * alike and len(X) - alike > MOST_ENCODED_LEVELS
    return repeated if repeated >= least and clear else 0


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
                yield _code_problem(name, codes, int(present.isin(codes).sum()))
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
        f"{cell!r} as {_plain_number(float(number))}"
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


def clipped_problems(features: pd.DataFrame) -> Iterator[Problem]:
    """Yield columns of numbers that are too large to be used unchanged."""
    for name, column in features.select_dtypes("number").items():
        large = column.abs() > LARGEST_FEATURE
        if large.any():
            yield Problem(
                "too large",
                f"{str(name)!r} has numbers beyond {LARGEST_FEATURE:g}, which are replaced by"
                f" it: {examples(column[large])}.",
                (str(name),),
                int(large.sum()),
                "certain",
            )


def many_levels_problems(features: pd.DataFrame) -> Iterator[Problem]:
    """Yield a question about the columns of text with more levels than are told apart."""
    counts = {
        str(name): features[name].nunique()
        for name in features
        if column_kind(features[name]) == "category"
    }
    many = [name for name, levels in counts.items() if levels > MOST_ENCODED_LEVELS]
    if many:
        shown = ", ".join(f"{name!r} ({counts[name]:,})" for name in many)
        yield Problem(
            "many levels",
            f"{shown} {'has' if len(many) == 1 else 'have'} more than {MOST_ENCODED_LEVELS}"
            " different texts, of which the rare ones are merged. Drop names of people.",
            tuple(many),
            certainty="possible",
            option=" ".join(option_text("drop", name) for name in many),
        )


def weight_problems(features: pd.DataFrame) -> Iterator[Problem]:
    """Yield columns of numbers with names like those of row weights."""
    for name, column in features.select_dtypes("number").items():
        text = str(name)
        if NAMED_WEIGHT.fullmatch(text) and column.min() >= 0 and column.nunique() > LEAST_VALUES:
            option = option_text("row-weights", text)
            # it may be body weight
            body = text.casefold() == "weight" and column.min() > 0
            body = body and column.max() <= MOST_BODIES * column.median()
            yield Problem(
                "weights",
                f"{text!r} may contain row weights. If so, pass it with {option}; otherwise it is"
                " used as a feature.",
                (text,),
                certainty="possible" if body else "likely",
                option=option,
            )


def class_problems(codes: np.ndarray, classes: np.ndarray, name: str) -> Iterator[Problem]:
    """Yield classes with few rows."""
    for label, rows in zip(classes, np.bincount(codes.astype(int), minlength=len(classes))):
        if rows < FEW_IN_CLASS:
            yield Problem(
                "few rows",
                f"Only {format_count(rows, 'row')} of {name!r} {'has' if rows == 1 else 'have'}"
                f" {level_text(label)!r}, so intervals will be wide.",
                (name,),
                int(rows),
            )


def label_problems(column: pd.Series[Any]) -> Iterator[Problem]:
    """Yield labels that may be abbreviations of another one.

    Examples
    --------
    >>> labels = pd.Series(["Approved", "Denied", "Appr."], name="loan")
    >>> [problem.text for problem in label_problems(labels)]
    ["'Appr.' may be an abbreviation of 'Approved' in 'loan', but counts as a separate label. ..."]
    """
    labels = column.astype(str).unique().tolist()
    if len(labels) > MOST_ENCODED_LEVELS:
        return
    name = str(column.name)
    for label in labels:
        start = fold_text(label).removesuffix(".")
        longer = [
            other
            for other in labels
            if other != label and " " not in other and fold_text(other).startswith(start)
        ]
        if longer and len(start) >= LEAST_LETTERS:
            yield Problem(
                "labels",
                f"{label!r} may be an abbreviation of {longer[0]!r} in {name!r}, but counts as a"
                " separate label. If it is, spell both alike.",
                (name,),
                int((column.astype(str) == label).sum()),
            )


def require_none(problems: Sequence[Problem], table: str) -> None:
    """Raise one error that lists all problems that make the table unusable."""
    errors = [str(problem) for problem in problems if problem.certainty == "error"]
    if len(errors) == 1:
        raise ValueError(f"{table}: {errors[0]}")
    if errors:
        listed = " ".join(f"({i}) {capitalize(text)}" for i, text in enumerate(errors, 1))
        raise ValueError(f"{table} has {len(errors)} problems: {listed}")


def _examined_rows(X: pd.DataFrame) -> np.ndarray:
    return np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT_ROWS)).astype(int)


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
