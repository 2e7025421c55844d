"""Numbers of docs/index.md, the first page: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import FRESH, YARDSTICKS, counts, on_tables
from rules.writing import WORDS

GIVEN = ("at the limit 0", "Earnings in 1978 of 15,992 people")


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    cells = on_tables(FRESH)
    if not cells:
        return
    by_scores, by_decisions = (counts(cells, title, False) for title in YARDSTICKS)
    yield f"On {WORDS[len(FRESH)]} fresh tables and the same base models,"
    yield (
        f"standard error of the best method in {by_scores[0]} of {by_scores[1]} cells, its"
        f" decisions in {by_decisions[0]} of {by_decisions[1]}"
    )
