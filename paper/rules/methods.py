"""Numbers of docs/methods.md: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rules.comparison import (
    BASES,
    FRESH,
    GOAL,
    OWN,
    QUANTITIES,
    Cells,
    Standing,
    error_between,
    most_rivals,
    on_fresh_tables,
    rivals,
    standing_of,
    standings,
)
from rules.records import study

GIVEN = (
    "10 w·w′ + 10 exp(−‖w − w′‖²/2)",
    "the twelve tables",
    "the mean of nine models",
    "nine of ten cells",
    "the loss at 75, 50 and 25 % of the base's own gap",
    "in eight trials, and a path has eight trade-offs (fairlearn's ExponentiatedGradient: four",
    "up to eight, and models of four fifths of the rows, up to 54 in all",
    "one that changes nothing costs 50 %",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    cells = on_fresh_tables()
    if not cells:
        return
    yield from left_out(cells)
    yield from uncertain(cells)
    yield from by_base(cells)
    met = []
    for with_s, way in enumerate(OWN):
        for quantity in QUANTITIES:
            one, two = (standing_of(way, cells, quantity, bool(with_s), k) for k in (1.0, 2.0))
            good = one.ahead + one.level
            met.append(good >= GOAL * sum(one) and not two.behind)
            own = [cell for (of, *_), cell in cells.items() if of == quantity and way in cell]
            costs = [cell[way].value for cell in own]
            median = f"{100 * np.median(costs):.1f}".replace("-", "−")
            yield (
                f"| {quantity}, {'with' if with_s else 'without'} S | {' / '.join(map(str, one))} |"
                f" {good} of {sum(one)} | {' / '.join(map(str, two))} | {median} |"
            )
    yield f"It was met in {sum(met)} of {len(met)} rows"
    yield from without_the_column_of_s()


def left_out(cells: Cells) -> Iterator[str]:
    """Yield how many cells don't count."""
    records = study("crossed-corrected")
    final = records[(records["part"] == "final") & records["dataset"].isin(FRESH)]
    possible = final.groupby("quantity").apply(
        lambda own: len(own[["base", "dataset"]].drop_duplicates())
    )
    out = {
        quantity: f"{possible[quantity] - sum(of == quantity for of, *_ in cells)} of"
        f" {possible[quantity]} for {quantity}"
        for quantity in QUANTITIES
    }
    yield f"{out['scores']}, {out['ranks']} and {out['decisions']}"


def uncertain(cells: Cells) -> Iterator[str]:
    """Yield the typical error of a difference to the closed form, and what it hides."""
    own = OWN[0]
    errors = {
        quantity: 100
        * np.nanmedian(
            [
                error_between(cell[way], cell[own])
                for (of, *_), cell in cells.items()
                if of == quantity
                for way in rivals(cell, False)
                if way != own
            ]
        )
        for quantity in QUANTITIES
    }
    yield (
        f"{errors['scores']:.1f} points for scores, {errors['ranks']:.1f} for ranks and"
        f" {errors['decisions']:.1f} for decisions without S"
    )
    shrunk = standing_of("contraction", cells, "decisions", False, 2.0)
    yield (
        "shrinking the scores is also ahead or level in"
        f" {shrunk.ahead + shrunk.level} of {sum(shrunk)} cells of decisions"
    )


def by_base(cells: Cells) -> Iterator[str]:
    """Yield the standing of the closed form's scores on networks, splines and trees."""
    one, two = (standings(cells, "scores", False, errors) for errors in (1.0, 2.0))

    def counts(found: dict[tuple[str, str], Standing], *bases: str) -> str:
        return " / ".join(str(sum(own)) for own in zip(*(found[OWN[0], base] for base in bases)))

    yield (
        f"On networks, with up to {most_rivals(cells)} rivals, the closed form's scores are ahead /"
        f" level / behind in {counts(one, *BASES[:2])} cells, by two standard errors in"
        f" {counts(two, *BASES[:2])}. On splines it is {counts(one, 'splines')}"
    )
    yield f"On trees it is {counts(one, 'trees')}"


def without_the_column_of_s() -> Iterator[str]:
    """Yield how much of the gap is left without the column of S, with trees."""
    records = study("crossed-corrected")
    final = records[(records["part"] == "final") & (records["base"] == "trees")]
    final = final[(final["quantity"] == "scores") & final["dataset"].isin(FRESH)]
    first = final.assign(gap=[gaps[0][0] for gaps in final["gaps"]])
    gaps = first.pivot_table("gap", "dataset", "way")
    left = gaps["none"] / gaps["closed form, with S"]
    yield (
        f"the gap falls on only {(left < 1).sum()} of the {len(left)} tables, and more than half of"
        f" it remains on {(left > 0.5).sum()}"
    )
