"""Numbers of docs/methods.md: the comparison on fresh tables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rules.comparison import (
    FRESH,
    GOAL,
    OWN,
    QUANTITIES,
    on_fresh_tables,
    standing_of,
)
from rules.records import study

GIVEN = (
    "10 w·w′ + 10 exp(−‖w − w′‖²/2)",
    "Twelve tables were reserved",
    "the mean of nine models",
    "nine of ten cells",
    "the loss at 75, 50 and 25 % of the base's own gap",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    cells = on_fresh_tables()
    if not cells:
        return
    tables = {table for quantity, _, table in cells if quantity == "scores"}
    yield f"On {len(tables)} of the {len(FRESH)} tables, some base has a gap above three"
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
