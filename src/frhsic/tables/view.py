"""The input of searches for problems: a table as it was read, and as it would be read with the
options that its problems suggest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from frhsic._arrays import LARGEST_NUMBER
from frhsic.tables.cells import are_percentages
from frhsic.tables.codes import is_code
from frhsic.tables.columns import (
    MARKS,
    feature,
    is_text,
    mask_codes,
    repeated_rows,
    unify_spelling,
)
from frhsic.tables.dates import mixed_dates, unreadable_problem
from frhsic.tables.identifiers import examined_rows, identifiers, is_index
from frhsic.tables.problems import LEAST_SUSPECTED_ROWS, Problem, not_dropped, sort_problems
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.schema import ColumnType, Schema
from frhsic.tables.targets import rarest_label, read_target


@dataclass(eq=False)
class TableCheck:
    """The columns of a table with their types, and the problems found so far.

    Columns that cannot be read are reported as errors, and left out of `table` and `schema`.

    Attributes
    ----------
    cells
        Values as they were read.
    decimal
        Decimal separator of a text file, None for a table whose columns have types.
    repeats
        Function that returns which rows repeat an earlier row of the file in all columns except
        those that are passed.
    """

    cells: pd.DataFrame
    decimal: str | None
    table: pd.DataFrame
    schema: Schema
    repeats: Callable[[Sequence[str]], np.ndarray]
    problems: list[Problem] = field(default_factory=list)

    @classmethod
    def from_cells(
        cls,
        cells: pd.DataFrame,
        *,
        decimal: str | None = None,
        separator: str = "",
        date_format: str = "",
        missing: dict[str, tuple[str, ...]] | None = None,
        repeats: Callable[[Sequence[str]], np.ndarray] | None = None,
    ) -> TableCheck:
        """Learn the schema of a table and read its columns with it."""
        whole = Schema((), decimal or ".", separator, missing=missing or {})
        repeats = repeats or (lambda names: repeated_rows(cells.drop(columns=list(names))))
        check = cls(cells, decimal, pd.DataFrame(index=cells.index), whole, repeats)
        columns = {}
        types: list[ColumnType] = []
        for name in cells.columns.astype(str):
            column = cells[[name]]
            try:
                sign = decimal
                if decimal is None and is_text(cells[name]):
                    column = unify_spelling(cells[name])[0].to_frame()
                    sign = "." if are_percentages(cells[name]) else None
                learned = Schema.learn(column, decimal=sign, date_format=date_format)
                columns[name] = replace(whole, columns=learned.columns)(column)[name]
                types += learned.columns
            except (ValueError, TypeError) as error:
                check.problems.append(unreadable_problem(cells[name], error, date_format))
        check.table = pd.DataFrame(columns, cells.index)
        check.schema = replace(whole, columns=tuple(types))
        return check

    @contextmanager
    def errors(self, kind: str, name: str, option: str = "") -> Iterator[None]:
        """Add an error about a column to the problems, and continue."""
        try:
            yield
        except (ValueError, TypeError) as error:
            self.problems.append(Problem(kind, str(error), (name,), None, "error", option))

    @property
    def sorted_problems(self) -> list[Problem]:
        """The problems, errors first and those already handled last."""
        return sort_problems(self.problems)

    @property
    def sign(self) -> str:
        """Decimal separator of numbers in text."""
        return self.decimal or "."


class Answers(NamedTuple):
    """Positions of the rows that have a target, with its codes and classes in these rows."""

    rows: np.ndarray
    codes: np.ndarray
    classes: np.ndarray | None


@dataclass(frozen=True, eq=False)
class View:
    """A table with the roles of its columns, as examined by the searches for problems: its cells as
    they were read, and its attributes, target and features as they would be read with the suggested
    options.

    Properties that depend on problems are computed once, when a search first needs them; only the
    columns that are still in question depend on all problems found so far.

    Attributes
    ----------
    check
        The columns, and the problems found so far.
    roles
        The roles of the columns.
    names
        The columns to predict from.
    attributes
        Sensitive attributes as numbers.
    """

    check: TableCheck
    roles: ColumnRoles
    names: Sequence[str]
    attributes: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """The columns that can be read, in their types."""
        return self.check.table

    @property
    def problems(self) -> list[Problem]:
        """The problems found so far."""
        return self.check.problems

    @property
    def named(self) -> Sequence[str]:
        """The columns that the user named as features."""
        return self.roles.features or ()

    @property
    def target(self) -> str:
        """Name of the target; empty if there is none."""
        return self.roles.target or ""

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Why columns are not used as features: they are empty, the same in all rows, number the
        rows, or identify rows or people; the user can still name any of them as features unless
        they are empty.
        """
        kinds = self.check.schema.kinds
        table = self.table[[name for name in self.names if name in kinds]]
        counting = identifiers(table)
        reasons = {}
        for name in map(str, table):
            column = table[name]
            identifies = name in counting
            if kinds[name] == "empty":
                reasons[name] = "empty"
            elif name in self.named:
                continue
            # an identifier with repeated values identifies people
            elif is_index(column) and not (identifies and column.is_unique):
                reasons[name] = "number"
            elif kinds[name] == "identifier" or identifies:
                reasons[name] = "identifier"
            elif column.notna().all() and column.nunique() == 1:
                reasons[name] = "constant"
        return reasons

    def left_out_as(self, *reasons: str) -> list[str]:
        """Return the columns that are left out for the given reasons, in the order of these
        reasons.
        """
        return [name for why in reasons for name, own in self.left_out.items() if own == why]

    @cached_property
    def kept(self) -> list[str]:
        """The features to train on."""
        names = [name for name in self.names if name in self.table]
        return [name for name in names if name not in self.left_out]

    @cached_property
    def repeats(self) -> np.ndarray:
        """Which rows repeat an earlier one of the file."""
        return self.check.repeats(())

    @cached_property
    def s(self) -> pd.DataFrame:
        """Attributes with missing values in place of codes and outliers."""
        return pd.DataFrame(
            {name: _mask_values(column, self.problems) for name, column in self.attributes.items()},
            self.attributes.index,
        )

    @cached_property
    def answers(self) -> Answers | None:
        """The target without codes for missing values, with the rarest label as 1 if one has to be
        named. It is None if there is no target or the target can't be read.
        """
        if self.target not in self.table:
            return None
        column = self.table[self.target]
        answers = settled_answers(column, self.problems, self.roles.positive)
        return answers or settled_answers(column, self.problems)

    @property
    def classes(self) -> np.ndarray | None:
        """The classes of the target; None if it is a number, or there is none."""
        return None if self.answers is None else self.answers.classes

    @property
    def count(self) -> int:
        """Number of classes of the target; 0 if it is a number."""
        return 0 if self.classes is None else len(self.classes)

    @property
    def people(self) -> list[str]:
        """The columns that identify people with several rows."""
        return [p.columns[0] for p in self.problems if p.kind == "repeated identifier"]

    @cached_property
    def features(self) -> pd.DataFrame:
        """Features, and columns that can't be read, with missing values in place of likely codes
        and years with two digits, and of words for missing values in text.
        """
        cells = self.check.cells
        unread = {name: mixed_dates(cells[name]) for name in self.names if name not in self.table}
        columns = {name: self.table[name] for name in self.kept} | unread
        kinds = ("missing code", "short years")
        codes = [p for p in self.problems if p.kind in kinds and p.certainty == "likely"]
        features = {}
        for name, column in columns.items():
            if name not in self.people:
                column = _mask_values(column, codes)
                features[name] = _mask_words(column) if is_text(column) else column
        return pd.DataFrame(features, self.table.index)

    @property
    def facts(self) -> pd.DataFrame:
        """The features that are still in question: no likely problem suggests dropping them."""
        return self.features[not_dropped(self.features.columns, self.problems)]

    @cached_property
    def known(self) -> Answers | None:
        """The target in the rows that have one and also, if there are identifiers of people, values
        for these; None if the target is too large for comparisons with columns.
        """
        if self.answers is None or np.abs(self.answers.codes).max(initial=0.0) > LARGEST_NUMBER:
            return None
        rows, codes, classes = self.answers
        present = self.table[self.people].iloc[rows].notna().all(axis=1).to_numpy()
        return Answers(rows[present], codes[present], classes)

    @cached_property
    def examined(self) -> Answers | None:
        """The target in evenly spaced rows; None if too few rows have one."""
        if self.known is None or len(self.known.rows) < LEAST_SUSPECTED_ROWS:
            return None
        rows, codes, classes = self.known
        some = examined_rows(pd.DataFrame(index=rows))
        return Answers(rows[some], codes[some], classes)

    @cached_property
    def _numbers(self) -> dict[str, np.ndarray]:
        """All features as numbers, in the examined rows."""
        if self.examined is None:
            return {}
        table = self.features.iloc[self.examined.rows]
        return {str(name): feature(column, str(name)) for name, column in table.items()}

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """The features that are still in question as numbers, in the examined rows."""
        return {name: self._numbers[name] for name in not_dropped(self._numbers, self.problems)}


def settled_answers(
    column: pd.Series[Any], problems: Iterable[Problem], positive: object = None
) -> Answers | None:
    """Return which rows have a target other than a code for a missing value, and the codes and
    classes of these rows, with the rarest label as 1 if one has to be named.
    """
    column = _mask_values(column, problems)
    present = column[column.notna()]
    if positive is None and is_text(column) and is_unclear(present):
        positive = rarest_label(present) or str(present.mode().iloc[0])
    with contextlib.suppress(ValueError, TypeError):
        codes, classes, _ = read_target(present, positive)
        return Answers(np.flatnonzero(column.notna()), codes, classes)
    return None


def is_unclear(labels: pd.Series[Any]) -> bool:
    """Return whether a target can be read only if the label that counts as 1 is known."""
    try:
        read_target(labels)
    except ValueError:
        return True
    return False


def _mask_values(column: pd.Series[Any], problems: Iterable[Problem]) -> pd.Series[Any]:
    """Return a column with missing values in place of those that problems name."""
    named = (problem.values for problem in problems if column.name in problem.columns)
    return mask_codes(column, [value for values in named for value in values])


def _mask_words(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return text with missing values in place of words and codes for them."""
    levels = column.dropna().unique()
    return column.mask(
        column.isin([text for text in levels if is_code(text) or text.strip() in MARKS])
    )
