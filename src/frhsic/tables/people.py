"""Rows of the same people, and rows that repeat or contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from frhsic.formatting import percent
from frhsic.tables.codes import NAMED_AGE, plain_number
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    column_kind,
    fold_text,
    is_text,
    level_text,
    list_names,
    repeated_rows,
)
from frhsic.tables.identifiers import (
    ALIKE,
    LEAST_COLUMNS,
    identifier_problem,
    panel_problem,
    repeated_phrase,
    repeated_problem,
    unit_keys,
)
from frhsic.tables.leaks import LEAST_IN_CLASS, explained_share
from frhsic.tables.problems import (
    LEAST_SUSPECTED_ROWS,
    UNREAD_NUMBERS,
    Problem,
    drop_option,
)
from frhsic.tables.view import Answers, View

# A column may identify people with several rows, whatever its name, by these criteria: share of
# rows that repeat a value, rows of a value on average, share of the values with equally many rows,
# and by how much rows of a value agree more than rows of neighboring values, in the median column
# (0.23 to 0.99 for the identifiers of twelve tables, at most 0.06 for their other columns).
LEAST_REPEATED = 0.05
MOST_REPEATED = 50
EQUALLY_MANY = 0.99
MORE_ALIKE = 0.15
# Text of numbers with decimals, and the share of such text above which a column contains no keys.
DECIMALS = r"\s*[-+]?[0-9]+[.,][0-9]+\s*%?\s*"
MOST_DECIMALS = 0.5
# A column has values only for some classes if the target removes at least this share of the errors
# in predicting which rows have a value.
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


def identifier_problems(view: View) -> Iterator[Problem]:
    """Yield a problem for each identifier: a leak if it has values only for some classes; or groups
    to use if people have several rows, unless groups are given, another identifier has larger ones,
    or the column may contain numbers.
    """
    unread = {name for p in view.problems if p.kind in UNREAD_NUMBERS for name in p.columns}
    people = []
    for name in view.left_out_as("identifier"):
        column = view.table[name]
        if is_decimal_text(column):
            continue
        leak = [*filled_by_class(column, view.answers)]
        problem = identifier_problem(column[~view.repeats], left_out=True)
        if leak or problem.kind == "identifier":
            yield from leak or [problem]
        else:
            people.append(((name in unread, unit_keys(column).nunique()), problem))
    people.sort(key=lambda each: each[0])
    if view.roles.groups is None and people and people[0][1].columns[0] not in unread:
        yield people.pop(0)[1]
    for _, problem in people:
        text = f"{problem.columns[0]!r} seems to identify people or other units and is left out."
        yield Problem("identifier", text, problem.columns, certainty="certain")


def repeated_row_problems(view: View) -> Iterator[Problem]:
    """Yield the rows that repeat an earlier one in all columns, if some columns are identifiers."""
    groups = view.roles.groups
    keys = view.left_out_as("identifier", "number")
    if groups is not None and view.check.cells[groups].nunique() > MOST_ENCODED_LEVELS:
        keys.append(groups)
    repeated = int(view.repeats.sum())
    if keys and repeated:
        harm = "they count several times"
        if groups is None:
            harm = "the model is evaluated on rows that it was trained on"
        yield Problem(
            "repeated rows",
            f"{repeated_phrase(repeated, len(view.table))} in every column, even"
            f" {list_names(keys)}. Leave out repeated rows, since otherwise {harm}.",
            tuple(keys),
            repeated,
            option="--drop-repeated",
        )


def repeated_people_problems(view: View) -> Iterator[Problem]:
    """Yield the rows that repeat an earlier one of the file in all columns except the
    identifiers.
    """
    ids = [
        problem.columns[0]
        for problem in view.problems
        if problem.kind in ("identifier", "repeated identifier")
        and problem.columns[0] in view.check.cells
    ]
    repeated = int(view.check.repeats(ids).sum())
    if repeated >= max(LEAST_IN_CLASS, (1 - ALIKE) * len(view.table)):
        yield repeated_problem(repeated, len(view.table), ids)


def filled_by_class(column: pd.Series[Any], answers: Answers | None) -> Iterator[Problem]:
    """Yield a leak if the target determines which rows have a value, as only the dead have a death
    certificate.
    """
    if answers is None:
        return
    rows, codes, classes = answers
    if classes is None:
        return
    filled = unit_keys(column.iloc[rows]).notna().to_numpy()
    if explained_share(codes, filled, 2) < FILLED_BY_CLASS:
        return
    sizes = np.bincount(codes.astype(int), minlength=len(classes))
    shares = np.bincount(codes.astype(int), filled, minlength=len(classes)) / np.maximum(sizes, 1)
    frequent = np.flatnonzero(sizes >= LEAST_IN_CLASS)
    most = frequent[np.argmax(shares[frequent])]
    least = frequent[np.argmin(shares[frequent])]
    parts = [
        f"{percent(round(float(shares[place]), 3))} of the rows with {level_text(classes[place])!r}"
        for place in (most, least)
    ]
    name = str(column.name)
    yield Problem(
        "leak",
        f"{name!r} has a value in {parts[0]} and in {parts[1]}, so it seems to be known only after"
        " the target. Drop it.",
        (name,),
        int(filled.sum()),
        option=drop_option(name),
    )


def lost_classes(column: pd.Series[Any], labels: pd.Series[Any]) -> Iterator[Problem]:
    """Yield an error for labels of the target whose rows nearly all lack a group."""
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
            f"Nearly all rows with {str(labels.name)!r} {list_names([*lost])} ({rows:,}) have no"
            f" value for {name!r}. Rows without a group are left out, so don't use {name!r} as"
            " groups.",
            (name,),
            rows,
            "error",
        )


def panel_problems(view: View) -> Iterator[Problem]:
    """Yield a column whose values seem to stand for people with several rows each, whatever its
    name: whole numbers or text with equally many rows for each value, or with rows that agree on
    the other columns more than rows of neighboring values do.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> person = np.repeat(np.arange(70), 3)
    >>> wage = np.random.default_rng(0).normal(size=210)
    >>> panel = pd.DataFrame({"man": person, "born": person % 40, "wage": wage})
    >>> [problem.option for problem in check(panel) if problem.kind == "repeated identifier"]
    ['--groups man']
    """
    if view.roles.groups is not None or view.people:
        return
    table = view.table[[*(name for name in view.kept if name not in view.named), *view.attributes]]
    table = table[~repeated_rows(table)]
    person = ""
    most = MOST_ENCODED_LEVELS
    for name in map(str, table):
        keys = unit_keys(table[name])
        levels = keys.nunique()
        rows = keys.count()
        if (
            name in view.attributes
            or levels <= most
            or column_kind(keys) not in ("number", "category")
        ):
            continue
        if rows - levels < LEAST_REPEATED * rows or rows > MOST_REPEATED * levels:
            continue
        if pd.api.types.is_float_dtype(keys) and (keys.dropna() % 1 != 0).any():
            continue
        if is_decimal_text(table[name]):
            continue
        counts = keys.value_counts()
        equal = counts.iloc[0] > 1 and (counts == counts.iloc[0]).mean() >= EQUALLY_MANY
        others = [other for other in table.columns[:COMPARED_COLUMNS] if other != name]
        if equal or _agreement(table[others], keys) >= MORE_ALIKE:
            person = name
            most = levels
    if person:
        yield panel_problem(table[person])


def _agreement(table: pd.DataFrame, keys: pd.Series[Any]) -> float:
    """Return how much more often adjacent rows agree if they have the same key than if they have
    neighboring keys, as a share of the possible increase, in the median column.
    """
    present = keys.notna().to_numpy()
    codes = pd.factorize(keys[present], sort=True)[0]
    order = np.argsort(codes, kind="stable")[:COMPARED_ROWS]
    same = np.diff(codes[order]) == 0
    gains = []
    for name in table:
        column = table[name][present]
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


def contradicted_targets(view: View) -> Iterator[Problem]:
    """Yield a question about rows that are equal in everything but the target, unless the columns
    are so coarse that different people may have equal rows: if more rows are equal when the finest
    column is ignored, or if a row occurs more than three times.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> wage = np.random.default_rng(0).normal(size=200).repeat(2)
    >>> table = pd.DataFrame({"wage": wage, "age": wage**2, "tall": wage > 0, "old": wage > 1})
    >>> table["paid"] = np.where(np.arange(400) == 7, 1, 0)
    >>> table.loc[:3, "paid"] = [0, 1, 1, 0]
    >>> [problem.rows for problem in check(table, "paid") if problem.kind == "contradiction"]
    [6]
    """
    if view.known is None or view.features.shape[1] + view.s.shape[1] < LEAST_COLUMNS:
        return
    rows, codes, _ = view.known
    table = view.features.join(view.s).iloc[rows]
    keys = pd.util.hash_pandas_object(table, index=False)
    finest = table.nunique().idxmax()
    copies = keys.value_counts()
    coarser = pd.util.hash_pandas_object(table.drop(columns=finest), index=False)
    alike = keys.duplicated(keep=False).sum()
    if copies.max() > MOST_COPIES or alike < ALIKE * coarser.duplicated(keep=False).sum():
        return
    several = pd.Series(codes, keys.index).groupby(keys).transform("nunique") > 1
    number = int(several.sum())
    if number >= LEAST_CONTRADICTING:
        yield Problem(
            "contradiction",
            f"{number:,} rows equal another row in every column but the target {view.target!r}. If"
            " these are the same people, keep only the rows with the right target.",
            (view.target,),
            number,
        )


def contradicted_people(view: View) -> Iterator[Problem]:
    """Yield columns such as sex that differ between the rows of a few people, and columns of ages
    in which the rows of a person are too far apart.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> person = np.arange(60) // 2
    >>> table = pd.DataFrame({"sex": np.where(person % 2, "f", "m"), "age": person + 20})
    >>> table.loc[5, "sex"] = "f"
    >>> table.loc[7, "age"] = 71
    >>> problems = check(table.assign(person=person), groups="person")
    >>> [(each.columns[0], each.rows) for each in problems if each.kind == "contradiction"]
    [('sex', 2), ('age', 2)]
    """
    for person in sorted({*view.people, str(view.roles.groups)} & {*view.table}):
        keys = unit_keys(view.table[person])
        several = keys.notna() & keys.duplicated(keep=False)
        table = view.table[view.kept].join(view.s)[several]
        keys = keys[several]
        for name in map(str, table):
            wrong, much = _contradicting_keys(table[name], keys)
            people = keys.nunique()
            if 0 < len(wrong) <= MOST_CONTRADICTED * people:
                first = view.table[person][keys[keys == wrong[0]].index[0]]
                yield Problem(
                    "contradiction",
                    f"{name!r} differs{much} between rows with the same {person!r}, for"
                    f" {len(wrong):,} of its {people:,} values that have several rows, such as"
                    f" {level_text(first)!r}."
                    " Correct the file, unless these rows belong to different people.",
                    (name,),
                    int(keys.isin(wrong).sum()),
                )


def _contradicting_keys(values: pd.Series[Any], keys: pd.Series[Any]) -> tuple[Any, str]:
    """Return the keys of people whose rows differ although they should not, and a phrase on how
    much.
    """
    name = str(values.name)
    if NAMED_AGE.fullmatch(name) and pd.api.types.is_numeric_dtype(values):
        ages = values.groupby(keys)
        spans = ages.max() - ages.min()
        longest = LONGER_SPAN * max(1.0, float(spans.quantile(1 - MOST_CONTRADICTED)))
        return spans[spans > longest].index, f" by more than {plain_number(longest)}"
    counts = values.groupby(keys).nunique() if NAMED_FIXED.fullmatch(name) else pd.Series(dtype=int)
    return counts[counts > 1].index, ""


def is_decimal_text(column: pd.Series[Any]) -> bool:
    """Return whether most cells of a column of text are numbers or percentages with decimals, which
    can't be keys.

    Examples
    --------
    >>> is_decimal_text(pd.Series(["108,34", "97,5"])), is_decimal_text(pd.Series(["108", "97"]))
    (True, False)
    """
    if not is_text(column):
        return False
    return bool(column.dropna().str.fullmatch(DECIMALS).mean() > MOST_DECIMALS)
