"""Numbers of README.md: those of docs/index.md, and the main ones of the other pages."""

from __future__ import annotations

from collections.abc import Iterator

from rules import index
from rules.comparison import BASES, gaining, standing_of, standings
from rules.first_round import FRESH, on_tables
from rules.records import benchmark
from rules.representations import beside_rivals
from rules.writing import seconds

GIVEN = (
    "the positive rates of two age groups differ by 0.2 percentage points, but the rate at a"
    " person's age is 34 points from the overall rate on average",
    "BSD-3-Clause",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield index.fresh_tables()
    cells = gaining(on_tables(FRESH))
    own = standing_of("closed form", cells, "scores", False)
    by_base = standings(cells, "scores", False)
    trees, *networks = (by_base["closed form", base] for base in ("trees", *BASES[:2]))
    yield (
        f"in {own.ahead} of {sum(own)} cells (a cell is one table with one base model), and higher"
        f" than another method's in {own.behind}; differences below one standard error don't count."
        f" It is ahead in {trees.ahead} of {sum(trees)} cells on trees (the others"
        " with scores shrink or reweigh) and"
        f" {sum(each.ahead for each in networks)} of {sum(map(sum, networks))} on networks"
    )
    own = standing_of("closed form", cells, "decisions", False)
    yield f"level with the best in {own.level} of {sum(own)} cells and behind in {own.behind}"
    less, more, total, _ = beside_rivals()
    yield f"In {less} of {total} comparisons with eight kinds of equally accurate networks"
    yield f"(by over two standard errors), and {f'more in {more}' if more else 'never more'}"
    gpu = benchmark("gpu.json")
    million = next(r["seconds"] for r in gpu["hsic"] if r["n"] == 2**20)
    yield f"a million rows take {seconds(million)} on one {gpu['device']}"
