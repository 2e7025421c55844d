"""Numbers of docs/index.md, the first page: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import BASES, on_fresh_tables, standings

GIVEN = (
    "Split at 45, both groups have nearly the same positive rate (0.2 percentage points apart), so"
    " a method for two groups corrects nothing. But on average, the rate at a person's age is 34"
    " points away from the overall rate",
    "largest regression table (5,999 households)",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    by_base = standings(on_fresh_tables(), "scores", False)
    one, other, trees = (by_base["closed form", base] for base in BASES[:3])
    assert one.ahead + other.ahead == 1
    yield (
        f"the only one of {sum(one) + sum(other)} comparisons on networks where the closed form is"
        " ahead of every other method; on trees, where no rival limits the gap in scores, it is"
        f" ahead in {trees.ahead} of {sum(trees)}"
    )
