"""Problems of a table: a description, how certain each is, and the option that resolves it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from frhsic.formatting import capitalize

# Fewest rows for these checks, and the number of evenly spaced rows that they inspect.
LEAST_SUSPECTED_ROWS = 50
# Kinds of problems in the order in which they are decided: what the target is, leaks, then wrong
# values, then others.
TARGET_LABELS = "target labels"
LEAKS = ("leak", "known late", "strong feature")
WRONG_VALUES = ("missing code", "outlier", "impossible age", "spreadsheet dates", "labels")
FIRST_DECIDED = (TARGET_LABELS, *LEAKS, *WRONG_VALUES)
# Kinds of problems of columns that are read as text, or not at all, though they have other values.
UNREAD_NUMBERS = ("text in numbers", "spreadsheet dates", "detection limit")
UNREAD = ("unreadable", "dates", *UNREAD_NUMBERS)
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
        probably fine.
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


def option_text(name: str, value: str) -> str:
    """Return an option quoted for a shell."""
    return f"--{name} {shlex.quote(value)}"


def require_none(problems: Sequence[Problem], table: str) -> None:
    """Raise one error that lists all problems that make the table unusable."""
    errors = [str(problem) for problem in problems if problem.certainty == "error"]
    if len(errors) == 1:
        raise ValueError(f"{table}: {errors[0]}")
    if errors:
        listed = " ".join(f"({i}) {capitalize(text)}" for i, text in enumerate(errors, 1))
        raise ValueError(f"{table} has {len(errors)} problems: {listed}")
