"""Names of columns: find them, match patterns, suggest the closest one."""

from __future__ import annotations

import difflib
import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["check_distinct", "closest", "expand", "find", "nearest"]

SHOWN = 30


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, whatever the case of its letters, or None.

    Examples
    --------
    >>> closest("Agee", ["age", "job"])
    'age'
    """
    lowered = {option.strip().lower(): option for option in reversed(list(known))}
    matches = difflib.get_close_matches(name.strip().lower(), lowered, n=1)
    return lowered[matches[0]] if matches else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" for a name that is close to a known one, else the list of known names.

    Examples
    --------
    >>> nearest("aduld", ["adult", "meps"])
    " Did you mean 'adult'?"
    """
    options = list(known)
    match = closest(name, options)
    if match is not None:
        return f" Did you mean {match!r}?"
    return f" There are: {', '.join(options[:SHOWN])}{', ...' if len(options) > SHOWN else ''}."


def find(name: str, names: Sequence[str], table: str) -> str:
    """Return `name` if it is among `names`; else raise and suggest the nearest one."""
    if name not in names:
        raise ValueError(f"{table} has no column {name!r}.{nearest(name, names)}")
    return name


def expand(pattern: str, names: Sequence[str], table: str) -> list[str]:
    """Return the columns that a name or a pattern such as ``z_*`` matches, in the order of the table.

    Examples
    --------
    >>> expand("z_*", ["age", "z_1", "z_2"], "t.csv")
    ['z_1', 'z_2']
    """
    if pattern in names or not any(character in pattern for character in "*?["):
        return [find(pattern, names, table)]
    matches = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
    if not matches:
        raise ValueError(f"no column of {table} matches {pattern!r}.{nearest(pattern, names)}")
    return matches


def check_distinct(names: Iterable[str], table: str) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"{table} has more than one column named {', '.join(repeated)}; rename them.")
