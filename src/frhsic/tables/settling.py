"""A table as if the options that its problems suggest had been passed, and which problems are left
then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic.tables.codes import is_code, missing_option
from frhsic.tables.columns import MARKS, is_text, mask_codes, quote_names
from frhsic.tables.problems import FIRST_DECIDED, Problem, option_text
from frhsic.tables.targets import rarest_label, read_target


class Answers(NamedTuple):
    """Rows that have a target, with its codes and classes in these rows."""

    known: np.ndarray
    codes: np.ndarray
    classes: np.ndarray | None


def sort_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems, errors first and those that were handled last; those that are only
    possible in the order in which they are decided.
    """
    order = ("error", "likely", "possible", "certain")
    kinds = [problem.kind for problem in problems if problem.kind not in FIRST_DECIDED]
    ranks = [*FIRST_DECIDED, *kinds]

    def rank(problem: Problem) -> tuple[int, int]:
        decided = ranks.index(problem.kind) if problem.certainty == "possible" else 0
        return order.index(problem.certainty), decided

    return sorted(problems, key=rank)


def settled_attributes(s: pd.DataFrame, problems: Iterable[Problem]) -> pd.DataFrame:
    """Return attributes with missing values in place of codes and outliers."""
    s = s.copy()
    for problem in problems:
        if problem.values:
            name = problem.columns[0]
            s[name] = mask_codes(s[name], problem.values)
    return s


def settled_answers(
    column: pd.Series[Any], problems: Iterable[Problem], positive: object = None
) -> Answers | None:
    """Return which rows have a target, and the codes and classes of these rows, without codes for
    missing values and with the rarest label as 1 if one has to be named.
    """
    for problem in problems:
        if problem.values and problem.columns == (column.name,):
            column = mask_codes(column, problem.values)
    present = column.notna()
    if positive is None and is_text(column) and is_unclear(column[present]):
        positive = rarest_label(column[present]) or str(column[present].mode().iloc[0])
    with contextlib.suppress(ValueError, TypeError):
        codes, classes, _ = read_target(column[present], positive)
        return Answers(present.to_numpy(), codes, classes)
    return None


def is_unclear(labels: pd.Series[Any]) -> bool:
    """Return whether a target can be read only if the label that counts as 1 is known."""
    try:
        read_target(labels)
    except ValueError:
        return True
    return False


def settled_features(features: pd.DataFrame, problems: Iterable[Problem]) -> pd.DataFrame:
    """Return features with missing values in place of likely codes, and of words for missing
    values in text.
    """
    table = {str(name): column for name, column in features.items()}
    for problem in problems:
        if problem.kind == "missing code" and problem.certainty == "likely":
            for name in table.keys() & {*problem.columns}:
                table[name] = mask_codes(table[name], problem.values)
    for name, column in table.items():
        if is_text(column):
            levels = column.dropna().unique()
            codes = [text for text in levels if is_code(text) or text.strip() in MARKS]
            table[name] = column.mask(column.isin(codes))
    return pd.DataFrame(table, features.index)


def not_dropped(names: Iterable[str], problems: Iterable[Problem]) -> list[str]:
    """Return the columns that no likely problem suggests to drop."""
    dropped = {
        name
        for problem in problems
        for name in problem.columns
        if problem.certainty == "likely" and option_text("drop", name) in problem.option
    }
    return [name for name in names if name not in dropped]


def settle_dropped(problems: Iterable[Problem], dropped: set[str]) -> list[Problem]:
    """Return the problems, with columns that are likely to be dropped taken out of the options of
    others.
    """
    return [_settle_problem(problem, dropped) for problem in problems]


def _settle_problem(problem: Problem, dropped: set[str]) -> Problem:
    own = [name for name in problem.columns if name in dropped]
    if not own or "--drop" in problem.option or "--groups" in problem.option:
        return problem  # people have several rows, whatever the features
    if problem.kind == "unreadable":
        return replace(problem, option=option_text("drop", own[0]))
    if problem.certainty != "likely" or not problem.option:
        return problem
    rest = [name for name in problem.columns if name not in own]
    options = [missing_option(name, problem.values) for name in rest]
    return replace(
        problem,
        text=f"{problem.text} This is not needed if {quote_names(own)} is dropped.",
        certainty="likely" if rest else "possible",
        option=" ".join(options) if rest else problem.option,
    )
