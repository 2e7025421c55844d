"""Numbers of README.md: those of docs/index.md, and the main ones of the other pages."""

from __future__ import annotations

from collections.abc import Iterator

from rules.comparison import BASES, on_fresh_tables, standing_of, standings, tables_with_cells
from rules.records import benchmark
from rules.representations import beside_rivals
from rules.writing import WORDS, seconds

GIVEN = (
    "the positive rates of two age groups differ by 0.2 percentage points, but on average,"
    " the rate at a person's age is 34 points away from the overall rate",
    "BSD-3-Clause",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    cells = on_fresh_tables()
    scores, ranks, decisions = (WORDS[count] for count in tables_with_cells(cells))
    yield f"On {scores} of twelve tables not used in development"
    own = standing_of("closed form", cells, "scores", False)
    yield (
        f"in {own.ahead} of {sum(own)} cells (a cell is one table with one base model), level with"
        f" the best in {own.level}, and higher than another method's in {own.behind}"
    )
    if cells:
        by_base = standings(cells, "scores", False)
        trees, *networks = (by_base["closed form", base] for base in ("trees", *BASES[:2]))
        yield (
            f"It is ahead in {sum(each.ahead for each in networks)} of {sum(map(sum, networks))}"
            f" cells on networks, and in {trees.ahead} of {sum(trees)} on trees, where no rival"
            " limits the gap in scores"
        )
    for quantity, tables, start in (
        ("decisions", decisions, "to rank methods: the closed form is"),
        ("ranks", ranks, "For ranks, it is"),
    ):
        own = standing_of("closed form", cells, quantity, False)
        yield (
            f"{start} ahead in {own.ahead} of {sum(own)} cells on {tables} tables, level"
            f" in {own.level} and behind in {own.behind}"
        )
    less, more, total, _ = beside_rivals()
    yield f"In {less} of {total} comparisons with eight kinds of equally accurate networks"
    also = f"recover more in {more}" if more else "never recover more"
    yield f"(by over two standard errors); they {also}"
    gpu = benchmark("gpu.json")
    million = next(r["seconds"] for r in gpu["hsic"] if r["n"] == 2**20)
    yield f"a million rows take {seconds(million)} on one {gpu['device']}"
