"""Problems in a table: what is wrong, how certain it is, and the option that resolves it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from frhsic.formatting import capitalize
from frhsic.tables.columns import list_names

# Fewest rows for these checks, and the number of evenly spaced rows that they inspect.
LEAST_SUSPECTED_ROWS = 50
# Kinds of problems in the order in which to decide them: what the target is, leaks, then wrong
# values, then others.
TARGET_LABELS = "target labels"
LEAKS = ("leak", "known late", "strong feature")
WRONG_VALUES = ("missing code", "outlier", "impossible age", "spreadsheet dates", "labels")
FIRST_DECIDED = (TARGET_LABELS, *LEAKS, *WRONG_VALUES)
# Kinds of problems with columns of numbers or dates that are read as text, or not at all.
UNREAD_NUMBERS = ("text in numbers", "spreadsheet dates", "detection limit")
UNREAD = ("unreadable", "dates", *UNREAD_NUMBERS)
# Most cells that an option lists.
MOST_LISTED = 100
Certainty = Literal["error", "likely", "possible", "certain"]


class SuspiciousColumnWarning(UserWarning):
    """A feature is empty, identifies rows, repeats a sensitive attribute, or leaks the target."""


@dataclass(frozen=True)
class Problem:
    """One problem in a table.

    Attributes
    ----------
    kind
        Key of the kind of problem, such as ``"missing code"``.
    text
        Description of the problem, with an example.
    columns
        The affected columns.
    rows
        Number of affected rows; None if all rows are affected or the number is unknown.
    certainty
        ``"error"`` if the table cannot be used as it is, ``"certain"`` if the problem was handled
        as the text says, ``"likely"`` if the user has to decide, ``"possible"`` if the column is
        probably fine.
    option
        Command-line option that resolves the problem; empty if there is none.
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


def drop_option(*names: str) -> str:
    """Return the options that drop some columns."""
    return " ".join(option_text("drop", name) for name in names)


def missing_option(name: str, words: Sequence[str]) -> str:
    """Return the option that treats some cells of a column as missing; empty if there are too many
    of them, or if they contain a comma or an equals sign.
    """
    if len(words) > MOST_LISTED or any(sign in word for word in words for sign in ",="):
        return ""
    return option_text("missing", f"{name}={','.join(words)}")


def replace_option(name: str, replacements: Mapping[str, str]) -> str:
    """Return the option that replaces some cells of a column; empty if it can't be written.

    Examples
    --------
    >>> print(replace_option("weeks", {"<28": "28", "39,5": "39.5"}))
    --replace 'weeks=<28:28,"39,5:39.5"'
    """
    if len(replacements) > MOST_LISTED or "=" in name or ":" in "".join(replacements.values()):
        return ""
    pairs = [f"{old}:{new}".replace('"', '""') for old, new in replacements.items()]
    listed = ",".join(f'"{pair}"' if {*pair} & {*'",'} else pair for pair in pairs)
    return option_text("replace", f"{name}={listed}")


def sort_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems, errors first and those already handled last; possible problems are in
    the order in which to decide them.
    """
    order = ("error", "likely", "possible", "certain")
    kinds = [problem.kind for problem in problems if problem.kind not in FIRST_DECIDED]
    ranks = [*FIRST_DECIDED, *kinds]

    def rank(problem: Problem) -> tuple[int, int]:
        decided = ranks.index(problem.kind) if problem.certainty == "possible" else 0
        return order.index(problem.certainty), decided

    return sorted(problems, key=rank)


def not_dropped(names: Iterable[str], problems: Iterable[Problem]) -> list[str]:
    """Return the columns that no likely problem suggests dropping."""
    dropped = {
        name
        for problem in problems
        for name in problem.columns
        if problem.certainty == "likely" and drop_option(name) in problem.option
    }
    return [name for name in names if name not in dropped]


def settle_dropped(problems: Sequence[Problem], names: Sequence[str]) -> list[Problem]:
    """Return each problem once, without options for columns among `names` that are likely to be
    dropped, and with the option to drop columns that can't be read.
    """
    dropped = {*names} - {*not_dropped(names, problems)}
    return [_settle_problem(problem, dropped, names) for problem in dict.fromkeys(problems)]


def _settle_problem(problem: Problem, dropped: set[str], names: Sequence[str]) -> Problem:
    if "--drop" in problem.option or "--groups" in problem.option:
        return problem  # people have several rows, whatever the features
    own = [name for name in problem.columns if name in dropped]
    if problem.kind == "unreadable":
        name = problem.columns[0]
        unread = own or (name in names and not problem.option)
        return replace(problem, option=drop_option(name)) if unread else problem
    if not own or problem.certainty != "likely" or not problem.option:
        return problem
    rest = [name for name in problem.columns if name not in own]
    options = [missing_option(name, problem.values) for name in rest]
    return replace(
        problem,
        text=f"{problem.text} This is not needed if you drop {list_names(own)}.",
        certainty="likely" if rest else "possible",
        option=" ".join(options) if rest else problem.option,
    )
