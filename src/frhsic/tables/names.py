"""Names of columns: find them, match patterns, refuse duplicates."""

from __future__ import annotations

import fnmatch
import os
from collections import Counter
from collections.abc import Iterable, Sequence

from frhsic.formatting import did_you_mean


def find(name: str, names: Sequence[str], table: str) -> str:
    """Return `name` if it is among `names`; else raise and suggest the nearest one."""
    if name not in names:
        raise ValueError(f"{table} has no column {name!r}.{did_you_mean(name, names)}")
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
        raise ValueError(f"no column of {table} matches {pattern!r}.{did_you_mean(pattern, names)}")
    return matches


def common_name(names: Sequence[str]) -> str:
    """Return a name for the columns of a representation: their common prefix, such as z_*, or the only name.

    Examples
    --------
    >>> common_name(["z_1", "z_2"]), common_name(["a", "b"])
    ('z_*', 'z')
    """
    shared = os.path.commonprefix(list(names))  # noqa: RUF071  # names are no paths: letter by letter
    return names[0] if len(names) == 1 else f"{shared}*" if shared else "z"


def check_distinct(names: Iterable[str], table: str) -> None:
    """Raise if two columns have the same name."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"{table} has more than one column named {', '.join(repeated)}; rename them.")
