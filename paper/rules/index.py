"""Numbers of docs/index.md, the first page: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import on_fresh_tables, standing_of

GIVEN = (
    "Two age groups differ by .002, so a method for two groups has nothing to correct; yet the"
    " share of positive decisions at a person's age differs from the overall share by 34 percentage"
    " points on average",
    "Food expenditure of 5,999 households",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield from shown()


def shown() -> Iterator[str]:
    """Yield the counts of scores that this page and README.md state."""
    cells = on_fresh_tables()
    yield "On twelve fresh tables and the same base models,"
    own = standing_of("closed form", cells, "scores", False)
    yield (
        f"less than that of every other method, by more than one standard error, in {own.ahead} of"
        f" {sum(own)} cells (cell: table and base model), level with the best in {own.level}, and"
        f" more than the best in {own.behind}"
    )
