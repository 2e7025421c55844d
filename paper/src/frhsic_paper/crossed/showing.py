"""The benchmark's results: how often each method is ahead, level and behind, and all costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from frhsic.formatting import capitalize
from frhsic.report.words import join_names
from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import CONSTANT, LEVELS, YARDSTICKS, Cost, costs
from frhsic_paper.crossed.rows import FRESH, NUMBERS
from frhsic_paper.crossed.settings import CLOSED_FORM, NONE, USES_S, WITH_S, Quantity
from frhsic_paper.plot import ACCENT, GRAY, WIDTH, Drawn, finish, name_rows, page_style
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.records import Record, grouped
from frhsic_paper.results import Results
from frhsic_paper.table import Cell, Column, Listed, Spread, Table

Frame = Any
"""A pandas table. Its columns are known only by name, which types can't express."""

WHO = {False: "without S", True: "with S"}

OWN = {False: CLOSED_FORM, True: WITH_S}

STANDINGS = ("ahead", "level", "behind")

GOAL = 0.9
"""Share of the cells in which the closed form should be ahead or level; fixed before the run."""

Cells = dict[tuple[Quantity, str, str], dict[str, Cost]]
"""Costs of all methods by quantity, base and table."""


def final_paths(results: Results) -> list[Record]:
    """Return the paths on the fresh tables, sorted by table, base and method: records are in the
    order in which they were run.
    """
    found = [p for p in results.records("crossed/final", "corrected") if p["dataset"] in FRESH]
    return sorted(found, key=lambda p: (FRESH.index(p["dataset"]), p["base"], p["way"]))


def all_costs(results: Results) -> Cells:
    """Return the costs of all methods on the fresh tables."""
    cells = grouped(final_paths(results), "quantity", "base", "dataset")
    return {key: each for key, own in cells.items() if (each := costs(own))}


def compared(ways: Sequence[str], with_s: bool) -> list[str]:
    """Return the methods to compare: those that need S to predict, or the others; none if the
    closed form or a rival is missing.
    """
    found = [way for way in ways if way != NONE and (way in USES_S) == with_s]
    own = OWN[with_s]
    return sorted(found, key=lambda way: way != own) if own in found and len(found) > 1 else []


def standing(own: dict[str, Cost], way: str, others: Sequence[str], errors: float) -> str:
    """Return the standing of a method: ahead of all others by more than a number of standard errors
    of the difference, behind another one, or level. A method is also behind if an error is
    undefined.
    """
    signs = []
    for other in others:
        less = own[other].value - own[way].value
        most = errors * own[way].difference_error(own[other])
        signs.append(1 if less > most else 0 if less >= -most else -1)
    return STANDINGS[1 - min(signs)]


def standings(cells: Cells, quantity: Quantity, with_s: bool, errors: float) -> Frame:
    """Return a frame with the standing of every method in every cell of a quantity; its other
    columns are way, base and table.
    """
    rows = []
    for (q, base, name), own in cells.items():
        ways = compared(list(own), with_s) if q == quantity else []
        for way in ways:
            others = [other for other in ways if other != way]
            rows.append((way, base, name, standing(own, way, others, errors)))
    return pd.DataFrame(rows, columns=["way", "base", "table", "standing"])


def counted(standing: Frame) -> str | None:
    """Return the numbers of cells that are ahead, level and behind, if there are any cells."""
    if not len(standing):
        return None
    return "/".join(str(int((standing == one).sum())) for one in STANDINGS)


def best_first(every: Frame) -> list[str]:
    """Return the methods, starting with the one that is least often behind."""
    behind = every.standing.eq("behind").groupby(every.way, sort=False).mean()
    return list(behind.sort_values(kind="stable").index)


def standing_table(cells: Cells, quantity: Quantity, with_s: bool) -> Table:
    """Table of methods by bases: the number of cells ahead/level/behind by one standard error (by
    two), and the median cost; then, on the cells of that method, the closed form's median cost and
    its standing against that method alone. The method that is least often behind comes first.
    """
    every, by_two = (standings(cells, quantity, with_s, errors) for errors in (1.0, 2.0))
    closed = OWN[with_s]
    rows: list[list[Cell]] = []
    for way in best_first(every):
        own = every.way == way
        row: list[Cell] = [method_name(way)]
        for some in (*(own & (every.base == base) for base in BASES), own):
            one, two = counted(every.standing[some]), counted(by_two.standing[some])
            row.append(one and f"{one} ({two})")
        shared = [
            one for (q, *_), one in cells.items() if q == quantity and {way, closed} <= set(one)
        ]
        row.append(median_cost(shared, way))
        if way != closed:
            against = pd.Series([standing(one, closed, [way], 1.0) for one in shared])
            row += [median_cost(shared, closed), counted(against)]
        else:
            row += [None, None]
        rows.append(row)
    costs_of = [Column(name, 1) for name in ("median cost, %", "closed form's, same cells")]
    return Table.from_rows(
        ["method", *BASES, "all bases", *costs_of, "closed form against it"], rows
    )


def median_cost(cells: Sequence[dict[str, Cost]], way: str) -> float:
    """Return the median cost of a method in %."""
    return 100 * float(np.median([cell[way].value for cell in cells]))


def cost_table(cells: Cells, quantity: Quantity, with_s: bool) -> Table:
    """Table of bases and methods by tables: the cost in % of the base's gain, the smallest in
    bold.
    """
    own = {key[1:]: one for key, one in cells.items() if key[0] == quantity}
    names = list(dict.fromkeys(name for _, name in own))
    rows: list[list[Cell]] = []
    for base in BASES:
        here = [own.get((base, name), {}) for name in names]
        ways = compared(list(dict.fromkeys(way for one in here for way in one)), with_s)
        least = [min((one[way].value for way in ways if way in one), default=None) for one in here]
        for way in ways:
            row: list[Cell] = [base, method_name(way)]
            for one, lowest in zip(here, least):
                cost = one.get(way)
                row.append(cost and Spread(100 * cost.value, None, cost.value == lowest))
            rows.append(row)
    return Table.from_rows(
        ["base", "method", *(Column(dataset_name(name), 1) for name in names)], rows
    )


def reach_table(results: Results, cells: Cells) -> Table:
    """Table of methods by quantities: the number of cells in which a path itself reaches the
    smallest level.
    """
    least: dict[tuple[Quantity, str, str], dict[str, float]] = {}
    for path in final_paths(results):
        key = (path["quantity"], path["base"], path["dataset"])
        if key in cells:
            least.setdefault(key, {})[path["way"]] = np.nanmin([gaps[0] for gaps in path["gaps"]])
    rows: list[list[Cell]] = []
    for way in dict.fromkeys(way for one in cells.values() for way in one if way != NONE):
        row: list[Cell] = [method_name(way)]
        for quantity in YARDSTICKS:
            found = [
                own[way] <= LEVELS[-1] * own[NONE]
                for key, own in least.items()
                if key[0] == quantity and way in own
            ]
            row.append(f"{sum(found)} of {len(found)}" if found else None)
        rows.append(row)
    return Table.from_rows(["method", *YARDSTICKS], rows)


def base_table(results: Results) -> Table:
    """Table of bases by tables: the unconstrained loss as a share of the constant's; below 1 is
    better.
    """
    losses = {
        (path["base"], path["dataset"], path["way"]): path["losses"][0][0]
        for path in results.records("crossed/final", "corrected")
        if path["quantity"] == "scores" and path["way"] in (NONE, CONSTANT)
    }
    names = [name for name in FRESH if name in {name for _, name, _ in losses}]
    rows: list[list[Cell]] = [
        [
            base,
            *(
                losses[base, name, NONE] / losses[base, name, CONSTANT]
                if (base, name, NONE) in losses
                else None
                for name in names
            ),
        ]
        for base in BASES
    ]
    return Table.from_rows(["base", *map(dataset_name, names)], rows if names else [])


def seconds_table(results: Results) -> Table:
    """Table of methods by bases: median seconds of a unit, with all its trade-offs and folds."""
    paths = [p for p in results.records("crossed/final", "corrected") if "seconds" in p]
    frame: Frame = pd.DataFrame(paths, columns=["unit", "base", "seconds"])
    medians = frame.pivot_table("seconds", "unit", "base", "median").reindex(columns=list(BASES))
    rows = (
        [method_name(way).replace("plain", "closed form, with contraction"), *own]
        for way, *own in medians.itertuples()
    )
    return Table.from_rows(["method", *(Column(base, 1) for base in BASES)], rows)


def own_standings(cells: Cells) -> dict[str, tuple[Frame, Frame]]:
    """Return the standings of the closed form in all cells of a quantity, by one and two standard
    errors.
    """
    found = {}
    for with_s, who in WHO.items():
        for quantity in YARDSTICKS:
            every = (standings(cells, quantity, with_s, errors) for errors in (1.0, 2.0))
            one, two = (some.standing[some.way == OWN[with_s]] for some in every)
            if len(one):
                found[f"{quantity} {who}"] = one, two
    return found


def tables_with_cells(cells: Cells) -> str:
    """Return how many tables the cells are from."""
    scores, ranks, decisions = (
        len({name for own, _, name in cells if own == quantity}) for quantity in YARDSTICKS
    )
    return (
        f"The cells are from {scores} of the {len(FRESH)} tables for scores and, of the"
        f" {len(set(FRESH) - set(NUMBERS))} with two classes, {ranks} for ranks and {decisions} for"
        " decisions."
    )


def sentences(results: Results) -> list[str]:
    """Return where the goal was missed, and how many tables the cells are from."""
    cells = all_costs(results)
    found = own_standings(cells)
    missed = [
        name
        for name, (one, two) in found.items()
        if (one != "behind").sum() < GOAL * len(one) or (two == "behind").any()
    ]
    verdict = f"missed for {join_names(missed)}" if missed else "met"
    goal = (
        "The goal was to be ahead or level in nine of ten cells and behind by two standard errors"
        f" in none. It was {verdict}."
    )
    return [goal, tables_with_cells(cells)] if found else []


def tables(results: Results) -> list[Listed]:
    """Return the standings of the closed form and of all methods; then, collapsed, all costs and
    the bases.
    """
    cells = all_costs(results)
    counts = "number of cells ahead/level/behind"
    own = [
        [name, len(one), counted(one), counted(two)]
        for name, (one, two) in own_standings(cells).items()
    ]
    table = Table.from_rows(["", "cells", "by one standard error", "by two"], own)
    found = [Listed(f"The closed form compared with all other methods: {counts}", table)]
    made: dict[str, Callable[[Cells, Quantity, bool], Table]] = {
        f"{counts}, by one standard error (by two)": standing_table,
        "cost of parity in % of the base's gain": cost_table,
    }
    found += [
        Listed(
            f"{capitalize(title)}, {who}: {words}",
            make(cells, quantity, with_s),
            make is cost_table,
        )
        for words, make in made.items()
        for with_s, who in WHO.items()
        for quantity, title in YARDSTICKS.items()
    ]
    reached = f"{100 * LEVELS[-1]:.0f} % of the base's gap on test rows"
    seconds = (
        "for all folds and trade-offs, with other processes on the same machine; contraction takes"
        " milliseconds more than the closed form"
    )
    bases = {
        f"Cells in which a method reaches {reached}": reach_table(results, cells),
        f"Median seconds of a method on a table: {seconds}": seconds_table(results),
        "Loss of the unconstrained bases, divided by that of a constant": base_table(results),
    }
    found += [Listed(heading, table, True) for heading, table in bases.items()]
    return [one for one in found if one.table.rows]


def figures(results: Results) -> list[Drawn]:
    """Return figures of the share of cells in which each method is not behind."""
    cells = all_costs(results)
    if not cells:
        return []
    return [
        Drawn(
            f"crossed{'-with-s' if with_s else ''}",
            f"Share of cells (table and base model) in which a method is best or within one"
            f" standard error of the best, {who}; dark: ahead of all others; the numbers count"
            " cells, and rows are in the order of the first panel",
            figure,
        )
        for with_s, who in WHO.items()
        if (figure := draw_standings(cells, with_s)) is not None
    ]


@page_style()
def draw_standings(cells: Cells, with_s: bool) -> Figure | None:
    """Draw a row for each method and a column for each quantity: the share of cells in which the
    method is not behind, in the order of the first quantity that a method has.
    """
    found = {quantity: standings(cells, quantity, with_s, 1.0) for quantity in YARDSTICKS}
    found = {quantity: some for quantity, some in found.items() if len(some)}
    if not found:
        return None
    ways = list(dict.fromkeys(way for some in found.values() for way in best_first(some)))
    figure = Figure(figsize=(WIDTH, 0.19 * len(ways) + 0.75), layout="constrained")
    axes = list(figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False).ravel())
    for ax, (quantity, some) in zip(axes, found.items()):
        counts: Frame = pd.crosstab(some.way, some.standing).reindex(
            columns=STANDINGS, fill_value=0
        )
        for place, way in enumerate(ways):
            if way not in counts.index:
                ax.annotate("–", (2, place), va="center")  # a method without cells
                continue
            color = ACCENT if way in (CLOSED_FORM, WITH_S) else GRAY
            ahead, best, every = counts.loc[way].cumsum()
            ax.barh(place, 100 * best / every, height=0.7, color=color, alpha=0.45)
            ax.barh(place, 100 * ahead / every, height=0.7, color=color)
            end = (100 * best / every + 4, place)
            ax.annotate(f"{best} of {every}", end, va="center", fontsize=7)
        ax.set_title(quantity)
        ax.set_xlim(0, 150)
        ax.grid(axis="y", visible=False)
    name_rows(axes[0], [method_name(way) for way in ways])
    axes[0].set_xticks([0, 50, 100])
    axes[len(axes) // 2].set_xlabel("best or level, % of cells")
    finish(figure, axes)
    return figure
