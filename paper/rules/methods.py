"""Numbers of docs/methods.md: the comparison on fresh tables, a row for each method."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rules.comparison import (
    FRESH,
    OWN,
    QUANTITIES,
    Cells,
    on_fresh_tables,
    rivals,
    standing_of,
)
from rules.records import study

GIVEN = (
    "10 w·w′ + 10 exp(−‖w − w′‖²/2)",
    "The twelve tables had never been used",
    "nine of ten cells",
    "the loss at 75, 50 and 25 % of the base's own gap",
)
METHODS = {
    "closed form": "**closed form**",
    "closed form, with S": "**closed form**",
    "fairlearn ExponentiatedGradient": "ExponentiatedGradient (on bands)",
    "fairlearn ThresholdOptimizer": "ThresholdOptimizer (on bands)",
    "fairlearn CorrelationRemover": "CorrelationRemover",
    "Wasserstein barycentre": "Wasserstein barycentre (on bands)",
    "error-parity": "error-parity (on bands)",
    "LinearPost": "LinearPost (on bands)",
    "FairGBM": "FairGBM (on bands)",
    "Reweighing": "reweighing (on bands)",
    "fairret": "fairret (on bands)",
    "hgr-kde": "HGR, kernel densities",
    "hgr-networks": "HGR, two networks",
    "gedi": "GeDI",
    "frhsic": "FRHSIC",
    "frem": "FREM",
    "reg-gdp": "Reg-GDP",
    "adv": "ADV",
    "mmd": "MMD (binned)",
    "laftr": "LAFTR (binned)",
    "dcor": "dCor",
    "hsic": "HSIC with the head",
    "cosines": "cosines of S (a penalty)",
    "contraction": "contraction (shrinking)",
}


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    cells = on_fresh_tables()
    if not cells:
        return
    tables = {table for quantity, _, table in cells if quantity == "scores"}
    yield f"On {len(tables)} of the {len(FRESH)} tables some base has a gap above three"
    for with_s, way in enumerate(OWN):
        for quantity in QUANTITIES:
            one, two = (standing_of(way, cells, quantity, bool(with_s), k) for k in (1.0, 2.0))
            yield (
                f"| {quantity}, {'with' if with_s else 'without'} S | {' / '.join(map(str, one))} |"
                f" {one.ahead + one.level} of {sum(one)} | {two.behind} |"
            )
        yield from cost_rows(cells, bool(with_s))
    yield from without_the_column_of_s()


def cost_rows(cells: Cells, with_s: bool) -> Iterator[str]:
    """Yield a row for each way: its median cost of parity for each quantity."""
    for way in dict.fromkeys(way for cell in cells.values() for way in rivals(cell, with_s)):
        medians = []
        for quantity in QUANTITIES:
            costs = [
                cell[way].value
                for (title, *_), cell in cells.items()
                if title == quantity and way in rivals(cell, with_s)
            ]
            medians.append(f"{100 * np.median(costs):.1f}".replace("-", "−") if costs else "–")
        yield f"| {METHODS.get(way, way)} | {' | '.join(medians)} |"


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
