"""Numbers of docs/index.md, the first page: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import BASES, on_fresh_tables, standing_of, standings

GIVEN = (
    "The positive rates of two age groups differ by 0.2 percentage points, so a method for two"
    " groups has nothing to correct; yet the rate at a person's age is 34 points from the overall"
    " rate on average",
    "the food expenditure of 5,999 households",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield from shown()
    by_base = standings(on_fresh_tables(), "scores", False)
    one, other, trees = (by_base["closed form", base] for base in BASES[:3])
    assert one.ahead + other.ahead == 1
    yield (
        f"the only one of {sum(one) + sum(other)} on networks where it is ahead of every other"
        " method; on trees, where no rival limits the gap in scores, it is ahead in"
        f" {trees.ahead} of {sum(trees)}"
    )


def shown() -> Iterator[str]:
    """Yield the counts of scores that this page and README.md state."""
    yield "On twelve tables not used in development, with the same base models,"
    own = standing_of("closed form", on_fresh_tables(), "scores", False)
    yield (
        f"in {own.ahead} of {sum(own)} cells (a cell is one table with one base model), level with"
        f" the best in {own.level}, and higher than another method's in {own.behind}"
    )
