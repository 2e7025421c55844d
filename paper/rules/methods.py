"""Numbers of docs/methods.md: the comparison on fresh tables, and why the closed form is behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from rules.comparison import (
    BASES,
    FRESH,
    SEEN,
    YARDSTICKS,
    Cells,
    counts,
    error_between,
    gaining,
    on_tables,
    rivals,
)
from rules.records import benchmark, study
from rules.writing import WORDS

GIVEN = (
    "replaced one at a time, 2026-11",
    "10 w·w′ + 10 exp(−‖w − w′‖²/2)",
    "the loss at 75, 50 and 25 % of the base's own gap",
)
METHODS = {
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
    cells = on_tables(FRESH)
    if not cells:
        return
    scores, decisions = YARDSTICKS
    gain = gaining(cells)
    yield f"{WORDS[len(FRESH)].capitalize()} tables had never been used"
    for way, medians in median_costs(gain, scores).items():
        yield f"| {METHODS.get(way, way)} | {' | '.join(medians)} |"
    good, total = counts(cells, scores, False)
    among, known = counts(gain, scores, False)
    ahead, behind, pairs = beyond_two_errors(gain, scores)
    yield (
        f"within one standard error of the best in {good} of {total} cells ({among} of {known}"
        " where the base beats a constant). It is ahead of a rival by more than two standard errors"
        f" in {ahead} of {pairs} comparisons, and behind by as much in {behind or 'none'}"
    )
    yield f"behind by more than one standard error in {total - good} of {total} cells"
    yield "it is the best method in {} of {} cells by loss".format(*strictly_best(gain, scores))
    yield "and in {} of {} by decisions".format(*strictly_best(gain, decisions))
    yield "the counts are {} of {} cells by loss".format(*counts(cells, scores, True))
    yield "{} of {} by decisions.".format(*counts(cells, decisions, True))
    before = on_tables(SEEN)
    yield f"On {WORDS[len(SEEN)]} tables that had been used before"
    yield "they are {} of {} cells by loss".format(*counts(before, scores, False))
    yield "{} of {} by decisions; these tables decide nothing".format(
        *counts(before, decisions, False)
    )
    by_base = median_costs(gain, decisions)
    gradient, own = (
        by_base[way][BASES.index("splines")]
        for way in ("fairlearn ExponentiatedGradient", "closed form, decisions")
    )
    yield f"On splines, the median cost of ExponentiatedGradient is {gradient} %, of ours {own} %"
    good, total = counts(cells, decisions, False)
    _, known = counts(gain, decisions, False)
    yield (
        f"in only {good} of {total} cells. In {total - known} of the {total - good} others the"
        " network"
    )
    read = [cell for (title, *_), cell in gain.items() if title == decisions]
    fewer = sum(c["closed form"].value < c["closed form, decisions"].value for c in read)
    yield f"In {fewer} of the {len(read)} cells with a defined cost"
    yield from why_behind(scores)
    yield from without_the_column_of_s()


def strictly_best(cells: Cells, title: str) -> tuple[int, int]:
    """Return in how many cells without S the closed form costs least, and of how many."""
    best = []
    for (yardstick, *_), cell in cells.items():
        ways = rivals(title, cell, False)
        if yardstick == title and len(ways) > 1:
            best.append(min(ways, key=lambda way: cell[way].value) == ways[0])
    return sum(best), len(best)


def median_costs(cells: Cells, title: str) -> dict[str, list[str]]:
    """Return the median cost over tables in % of the gain, by way and base, without S."""
    values: dict[tuple[str, str], list[float]] = {}
    for (yardstick, base, _), cell in cells.items():
        if yardstick == title:
            for way in rivals(title, cell, False):
                values.setdefault((way, base), []).append(100 * cell[way].value)
    return {
        way: [
            f"{np.median(values[way, base]):.1f}".replace("-", "−")
            if (way, base) in values
            else "–"
            for base in BASES
        ]
        for way in dict.fromkeys(way for way, _ in values)
    }


def beyond_two_errors(cells: Cells, title: str) -> tuple[int, int, int]:
    """Return in how many comparisons without S the closed form costs less by more than two errors,
    in how many more, and of how many.
    """
    apart = []
    for (yardstick, *_), cell in cells.items():
        first, *others = rivals(title, cell, False) or [""]
        for way in others if yardstick == title else ():
            error = error_between(cell[first], cell[way])
            apart.append((cell[way].value - cell[first].value, 2 * error))
    return sum(d > e for d, e in apart), sum(d < -e for d, e in apart), len(apart)


def why_behind(scores: str) -> Iterator[str]:
    """Yield why the closed form is behind."""
    reasons = pd.DataFrame(benchmark("crossed/reasons.json"))
    by_scores = reasons["yardstick"] == scores
    decisions = reasons[~by_scores]
    matched = decisions[decisions["coefficients"] <= decisions["rival"] + decisions["error"]]
    final = study("crossed-corrected").query("part == 'final'").groupby("dataset")
    rows = final["training_rows"].first()[matched["table"]]
    yield (
        f"In {len(matched)} more, the closed form would match the best rival within one standard"
        " error if its coefficients were fitted on the test rows;"
        f" {rows.min():,.0f} to {rows.max():,.0f} training rows"
    )
    wide = reasons[by_scores & (reasons["shrinking"] < 0)]
    yield f"In {len(wide)} of them shrinking alone lowers the loss"
    ((_, other),) = reasons[by_scores & (reasons["shrinking"] >= 0)].iterrows()
    less = other["closed form"] - other["rival"]
    yield (
        f"({other['table']}, {other['base']}) the closed form costs {other['closed form']:.0f} %,"
        f" and the best penalty costs {less:.0f} ± {other['error']:.0f} points less"
    )


def without_the_column_of_s() -> Iterator[str]:
    """Yield how much of the gap is left without the column of S, with trees."""
    records = study("crossed-corrected")
    final = records[(records["part"] == "final") & (records["base"] == "trees")]
    final = final[(final["left_out"] == -1) & (final["dial"] == 0)]
    gaps = final[final["dataset"].isin(FRESH)].pivot_table("gdp", "dataset", "way")
    left = gaps["none"] / gaps["closed form, with S"]
    yield (
        f"the gap falls on only {(left < 1).sum()} of the {len(left)} tables, and more than half of"
        f" it remains on {(left > 0.5).sum()}"
    )
