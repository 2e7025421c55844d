"""Numbers of docs/index.md, the first page: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import gaining, standing_of, standings
from rules.first_round import FRESH, on_tables
from rules.writing import WORDS

GIVEN = (
    "The positive rates of two age groups differ by 0.2 percentage points, so a method for two"
    " groups has nothing to correct; yet the rate at a person's age is 34 points from the overall"
    " rate on average",
    "the 1978 earnings of 15,992 people",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield fresh_tables()
    cells = gaining(on_tables(FRESH))
    own = standing_of("closed form", cells, "scores", False)
    on_trees = standings(cells, "scores", False)["closed form", "trees"]
    yield (
        f"in {own.ahead} of {sum(own)} cells (a cell is one table with one base model),"
        f" {on_trees.ahead} of them on trees. In {own.behind}, another method does better."
    )


def fresh_tables() -> str:
    """Return on how many tables the comparison could be made."""
    tables = {table for _, _, table in gaining(on_tables(FRESH))}
    return f"On {WORDS[len(tables)]} tables not used in development, with the same base models,"
