"""What the comparison shows: where the closed form is behind, what parity costs, and the bases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.reading import CONSTANT, LEVELS, YARDSTICKS, Cost, Frame, costs
from frhsic_paper.crossed.rows import FRESH, SEEN
from frhsic_paper.crossed.ways import (
    AVERAGED,
    CLOSED_FORM,
    DECISIONS,
    DECISIONS_WITH_S,
    NONE,
    NONE_AVERAGED,
    USES_S,
    WITH_S,
)
from frhsic_paper.plot import (
    ACCENT,
    FAINT,
    GRAY,
    Drawn,
    finish,
    name_rows,
    page_style,
    stacked_panels,
    variant,
)
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.results import Results
from frhsic_paper.table import Cell, Column, Listed, Spread, Table

FAMILIES = {
    "loss at equal GDP of scores": (CLOSED_FORM, WITH_S),
    "errors at equal GDP of decisions": (DECISIONS, DECISIONS_WITH_S),
}
"""The closed form that each yardstick asks for, without and with S."""

BESIDE = (NONE, NONE_AVERAGED, AVERAGED)
"""Ways that are shown apart: the base, and what a mean of five models adds."""

GROUPS = {"Fresh tables": FRESH, "Tables seen before": SEEN}

GAPS = dict(zip(YARDSTICKS, ("scores", "decisions")))
"""What the gap of a yardstick is of."""

SHOWN = (-40.0, 100.0)
"""Costs in % that a figure shows; those beyond are arrows at its edge."""

MARKS: dict[str, dict[str, Any]] = {
    "one fresh table": {"marker": "o", "markersize": 2.5, "alpha": FAINT},
    "median of fresh tables": {"marker": "o", "markersize": 5.5},
    "median of tables seen before": {"marker": "o", "markersize": 5, "markerfacecolor": "none"},
}
"""Marks of the figures of costs."""

Tables = dict[str, dict[str, Cost]]
"""Costs of all ways by table."""

Cells = dict[tuple[str, str, str], dict[str, Cost]]
"""Costs of all ways by yardstick, base and table."""


def all_costs(results: Results, tables: Sequence[str]) -> Cells:
    """Return the costs of all ways on some tables; a cost without a fold is NaN where the base
    gains nothing over a constant there.
    """
    final: Frame = pd.DataFrame(results.records("crossed/final", "corrected"))
    cells = {}
    for name, base in [(name, base) for name in tables for base in BASES]:
        if not len(final):
            break
        own = final[(final.dataset == name) & (final.base == base)]
        for title, yardstick in YARDSTICKS.items():
            with np.errstate(divide="ignore", invalid="ignore"):
                each = costs(own, yardstick)
            if each:
                cells[title, base, name] = {
                    way: cost._replace(
                        without=np.where(np.isfinite(cost.without), cost.without, np.nan)
                    )
                    for way, cost in each.items()
                }
    return cells


def gaining_cells(results: Results, cells: Cells) -> Cells:
    """Return the cells in which the base has less loss than a constant: elsewhere it gains nothing
    that a cost could be a share of.
    """
    final: Frame = pd.DataFrame(results.records("crossed/final", "corrected"))
    kept = {}
    for (title, base, name), one in cells.items():
        column = YARDSTICKS[title].loss
        own = final[(final.dataset == name) & (final.base == base) & (final.left_out == -1)]
        losses = own.dropna(subset=[column]).groupby("way")[column].min()
        if losses[NONE] < losses[CONSTANT]:
            kept[title, base, name] = one
    return kept


def rivals(title: str, ways: Sequence[str], with_s: bool) -> list[str]:
    """Return the closed form of a yardstick and its rivals, of those that need S or of the others;
    nothing where the closed form was not run.
    """
    first = FAMILIES[title][with_s]
    if first not in ways:
        return []
    variants = {*BESIDE, CLOSED_FORM, DECISIONS, WITH_S, DECISIONS_WITH_S}
    others = [way for way in ways if way not in variants and (way in USES_S) == with_s]
    return [first, *others]


def is_within_error(own: dict[str, Cost], ways: Sequence[str]) -> bool:
    """Return whether the first of some ways is the best, or within one standard error of the
    difference.
    """
    first = own[ways[0]]
    return all(first.value - own[way].value <= first.difference_error(own[way]) for way in ways[1:])


def costs_by_table(cells: Cells, title: str, base: str) -> Tables:
    """Return the costs of all ways by a yardstick on a base, by table."""
    return {name: one for (t, b, name), one in cells.items() if (t, b) == (title, base)}


def over_tables(some: Sequence[Cost], others: Sequence[Cost] | None = None) -> float:
    """Return the median over tables in % of the gain, of costs or of their differences to others.

    A mean would be that of one table whose base gains next to nothing.
    """
    values = np.array([one.value for one in some])
    if others is not None:
        values = values - [one.value for one in others]
    return 100 * float(np.median(values))


def rank_ways(own: Tables, title: str, with_s: bool) -> dict[str, float]:
    """Return the ways that are compared on some tables, with their median costs, the least
    first.
    """
    ways = rivals(title, list(dict.fromkeys(way for one in own.values() for way in one)), with_s)
    medians = {way: over_tables([one[way] for one in own.values() if way in one]) for way in ways}
    return dict(sorted(medians.items(), key=lambda item: item[1]))


def cheapest_ways(own: Tables, title: str, with_s: bool) -> list[str]:
    """Return the way with the least cost on each table on which the closed form has a rival."""
    judged = [(one, rivals(title, list(one), with_s)) for one in own.values()]
    return [min(ways, key=lambda way: one[way].value) for one, ways in judged if len(ways) > 1]


def cost_table(cells: Cells, title: str, with_s: bool) -> Table:
    """Bases and ways by tables: the cost in % of the base's gain with its error, the least in bold,
    and the median over tables.
    """
    names = list(dict.fromkeys(name for t, _, name in cells if t == title))
    rows: list[list[Cell]] = []
    for base in BASES:
        own = costs_by_table(cells, title, base)
        medians = rank_ways(own, title, with_s)
        least = {
            name: min((one[way].value for way in medians if way in one), default=None)
            for name, one in own.items()
        }
        for way, median in medians.items():
            row: list[Cell] = [base, method_name(way), median]
            for name in names:
                cost = own.get(name, {}).get(way)
                if cost is None:
                    row.append(None)
                    continue
                bold = cost.value == least[name]
                row.append(Spread(100 * cost.value, 100 * cost.difference_error(), bold))
            rows.append(row)
    heads = [Column("median", 1), *(Column(dataset_name(name), 1) for name in names)]
    return Table.from_rows(["base", "way", *heads], rows)


def best_rivals(cells: Cells, with_s: bool) -> Table:
    """Yardsticks and bases: how often the closed form is best or within one standard error, how
    much more its best rival costs on the tables of both, and how many rivals are over two standard
    errors behind and ahead of it.
    """
    rows: list[list[Cell]] = []
    for title in YARDSTICKS:
        for base in BASES:
            own = costs_by_table(cells, title, base)
            first, *others = rivals(title, list(rank_ways(own, title, with_s)), with_s) or [""]
            if not others:
                continue
            pairs = {
                way: [(one[way], one[first]) for one in own.values() if {first, way} <= one.keys()]
                for way in others
            }
            more = {way: over_tables(*zip(*both)) for way, both in pairs.items() if both}
            best = min(more, key=lambda way: more[way])
            least = cheapest_ways(own, title, with_s).count(first)
            near, total = counts(cells, with_s, base)[title]
            rows.append([GAPS[title], base, f"{least} of {total}", f"{near} of {total}"])
            rows[-1] += [method_name(best), more[best], *count_beyond_errors(pairs)]
    heads = ("gap of", "base", "best", "or within one standard error", "best rival")
    return Table.from_rows(
        (*heads, Column("costs more, %", 1), "rivals behind", "ahead", "of"), rows
    )


def count_beyond_errors(pairs: dict[str, list[tuple[Cost, Cost]]]) -> tuple[int, int, int]:
    """Return in how many comparisons the first costs more than the second by over two standard
    errors, in how many less, and of how many.
    """
    every = [
        (one.value - other.value, 2 * one.difference_error(other))
        for both in pairs.values()
        for one, other in both
    ]
    more = sum(difference > error for difference, error in every)
    less = sum(difference < -error for difference, error in every)
    return more, less, len(every)


def base_losses(
    results: Results, names: Sequence[str]
) -> dict[tuple[str, str], list[float | None]]:
    """Return the loss without constraint over that of a constant, by base and way (one model, mean
    of five), for each table.
    """
    final: Frame = pd.DataFrame(results.records("crossed/final", "corrected"))
    final = final[final.left_out == -1]
    losses: dict[tuple[str, str], list[float | None]] = {}
    for base in BASES:
        for way in (NONE, NONE_AVERAGED):
            values = losses[base, way] = []
            for name in names:
                own = final[(final.dataset == name) & (final.base == base)].set_index("way").loss
                values.append(float(own[way] / own[CONSTANT]) if way in own else None)
    return losses


def base_table(results: Results, names: Sequence[str]) -> Table:
    """Bases by tables: loss without constraint, as a share of the constant's; below 1 is better."""
    rows = [
        [base if way == NONE else f"{base}, mean of five", *values]
        for (base, way), values in base_losses(results, names).items()
    ]
    return Table.from_rows(["base", *map(dataset_name, names)], rows)


def lost_cells(cells: Cells, with_s: bool) -> list[list[Cell]]:
    """Return the cells in which the closed form is more than one standard error behind the best:
    the yardstick, base and table, the best way, and by how much in % of the gain.
    """
    lost: list[list[Cell]] = []
    for (title, base, name), one in cells.items():
        ways = rivals(title, list(one), with_s)
        if len(ways) > 1 and not is_within_error(one, ways):
            first = one[ways[0]]
            best = min(ways, key=lambda way: one[way].value)
            error = 100 * first.difference_error(one[best])
            behind = Spread(100 * (first.value - one[best].value), error)
            lost.append([GAPS[title], base, dataset_name(name), method_name(best), behind])
    return lost


def counts(cells: Cells, with_s: bool, only: str | None = None) -> dict[str, tuple[int, int]]:
    """Return in how many cells (yardstick, base, table) with a rival the closed form is best or
    within one standard error of the best, by yardstick; of one base, or of all.
    """
    found = {}
    for title in YARDSTICKS:
        judged = []
        for (t, base, _), one in cells.items():
            ways = rivals(title, list(one), with_s) if t == title and only in (None, base) else []
            if len(ways) > 1:
                judged.append(is_within_error(one, ways))
        found[title] = (sum(judged), len(judged))
    return found


def sentences(results: Results) -> list[str]:
    """Return what is said of fresh tables, where the closed form is behind first, and then of those
    seen before.
    """
    cells = all_costs(results, FRESH)
    judged = [one for with_s in (False, True) for one in counts(cells, with_s).values()]
    good, total = (sum(each) for each in zip(*judged))
    if not total:
        return []
    said = [
        f"The closed form is more than one standard error behind the best method in {total - good}"
        f" of {total} cells (one cell per measure, base and table).",
        f"It is best, or within one standard error of the best, {_counted(cells, named=True)}.",
    ]
    gain = gaining_cells(results, cells)
    if len(gain) < len(cells):
        said.append(
            "Where the base is worse than a constant, the cost is undefined; excluding these cells,"
            f" this holds {_counted(gain)}."
        )
    if before := all_costs(results, SEEN):
        names = ", ".join(dict.fromkeys(dataset_name(name) for _, _, name in before))
        said.append(
            f"On tables used before ({names}), which don't count towards the result, this holds"
            f" {_counted(before)}."
        )
    return said


def _counted(cells: Cells, *, named: bool = False) -> str:
    """Return in how many cells the closed form is best or within one standard error, in words; the
    first sentence names the yardsticks.
    """
    parts: list[str] = []
    for with_s, who in ((False, "without S"), (True, "with S")):
        judged = {title: one for title, one in counts(cells, with_s).items() if one[1]}
        counted = [
            f"{good} of {total}" + (f" cells by {title}" if named and not parts else "")
            for title, (good, total) in judged.items()
        ]
        if counted:
            parts.append(f"{who} in {' and '.join(counted)}")
    return "; ".join(parts)


def tables(results: Results) -> list[Listed]:
    """Return where the closed form is behind and where it is best, then all costs and bases,
    folded.
    """
    behind = []
    shown = []
    folded = []
    for words, names in GROUPS.items():
        cells = all_costs(results, names)
        gain = gaining_cells(results, cells)
        present = [name for name in names if any(key[2] == name for key in cells)]
        if not cells:
            continue
        for with_s, who in ((False, "without S"), (True, "with S")):
            heads = ("gap of", "base", "table", "best way", Column("costs less, %", 1))
            heading = (
                f"{words}, {who}: where the closed form is more than one standard error behind"
            )
            behind.append(Listed(heading, Table.from_rows(heads, lost_cells(gain, with_s))))
            if names is FRESH:
                heading = (
                    f"{words}, {who}: in how many cells the closed form is best, or within one"
                    " standard error of the best; what its best rival costs more in % of the base's"
                    " gain (median); and how many rivals are more than two standard errors behind"
                    " and ahead"
                )
                shown.append(Listed(heading, best_rivals(gain, with_s)))
            for title in YARDSTICKS:
                table = cost_table(gain, title, with_s)
                heading = f"{words}, {who}: {title}, cost of parity in % of the gain"
                folded.append(Listed(heading, table, folded=True))
        heading = f"{words}: loss of the bases without constraint, over that of a constant"
        folded.append(Listed(heading, base_table(results, present), folded=True))
    return [one for one in (*behind, *shown, *folded) if one.table.rows]


def figures(results: Results) -> list[Drawn]:
    """Return the costs by yardstick, without and with S, and the bases."""
    fresh = gaining_cells(results, all_costs(results, FRESH))
    seen = gaining_cells(results, all_costs(results, SEEN))
    if not fresh and not seen:
        return []
    drawn = []
    for title, gap in GAPS.items():
        for with_s, who in ((False, "without S"), (True, "with S")):
            figure = draw_costs(fresh, seen, title, with_s)
            if figure is None:
                continue
            drawn.append(
                Drawn(
                    f"crossed-{gap}{'-with-s' if with_s else ''}",
                    f"Cost of parity {who}, {title}, in % of the gain of the base. Arrows lie"
                    f" beyond −{-SHOWN[0]:.0f} or {SHOWN[1]:.0f} %",
                    figure,
                )
            )
    caption = "Loss of the bases without constraint, over that of a constant"
    return [*drawn, Drawn("crossed-bases", caption, draw_bases(results))]


@page_style()
def draw_costs(fresh: Cells, seen: Cells, title: str, with_s: bool) -> Figure | None:
    """Draw a panel for each base and a row for each way, the cheapest on top."""
    both = {
        base: (costs_by_table(fresh, title, base), costs_by_table(seen, title, base))
        for base in BASES
    }
    ways = {
        base: list(rank_ways(of_fresh, title, with_s) | rank_ways(of_seen, title, with_s))
        for base, (of_fresh, of_seen) in both.items()
    }
    shown = [base for base in BASES if ways[base]]
    if not shown:
        return None
    figure, axes = stacked_panels([len(ways[base]) for base in shown])
    for ax, base in zip(axes, shown):
        _panel(ax, *both[base], ways[base], FAMILIES[title])
        ax.set_title(base)
    ends = [end for ax in axes for end in (ax.dataLim.x0, ax.dataLim.x1)]
    last = axes[-1]
    last.set_xlim(max(min(ends) - 4, SHOWN[0]), min(max(ends) + 4, SHOWN[1]))
    last.locator_params(axis="x", nbins=7)
    last.set_xlabel("cost of parity, % of the base's gain (lower is better)")
    for label, look in MARKS.items():
        last.plot([], [], label=label, color=GRAY, linestyle="none", **look)
    finish(figure, axes)
    return figure


def _panel(ax: Axes, fresh: Tables, seen: Tables, ways: Sequence[str], own: Sequence[str]) -> None:
    """Draw the costs of some ways on one base; `own` are closed forms."""
    single, of_fresh, of_seen = MARKS.values()
    tables = {way: [one[way] for one in fresh.values() if way in one] for way in ways}
    most = max(map(len, tables.values()))
    mixed = 100 * (1 - float(np.mean(LEVELS)))
    ax.axvline(mixed, color=GRAY, linestyle=":", label="base mixed with a constant")
    names = []
    for place, way in enumerate(ways):
        look: dict[str, Any] = {"color": ACCENT if way in own else GRAY, "linestyle": "none"}
        within(ax, [100 * cost.value for cost in tables[way]], place, **look | single)
        before = [one[way] for one in seen.values() if way in one]
        if before:
            within(ax, [over_tables(before)], place, **look | of_seen)
        if tables[way]:
            within(ax, [over_tables(tables[way])], place, **look | of_fresh)
        names.append(CLOSED_FORM if way in own else method_name(way))
        if len(tables[way]) < most:
            names[-1] += " *"
            ax.plot([], [], marker=(5, 2), color=GRAY, linestyle="none", label="on fewer tables")
    name_rows(ax, names)
    for label, way in zip(ax.get_yticklabels(), ways):
        if way in own:
            label.set(color=ACCENT, fontweight="bold")


def within(ax: Axes, values: Sequence[float], place: float, **look: Any) -> None:
    """Draw dots in a row, and arrows at the ends of what a figure shows for those beyond."""
    inside = [value for value in values if SHOWN[0] <= value <= SHOWN[1]]
    ax.plot(inside, [place] * len(inside), **look)
    for value in set(values) - set(inside):
        end, marker = (SHOWN[0], "<") if value < SHOWN[0] else (SHOWN[1], ">")
        ax.plot([end], [place], **look | {"marker": marker, "markersize": 4, "clip_on": False})


@page_style()
def draw_bases(results: Results) -> Figure:
    """Draw the loss of every base over that of a constant, a row for each table."""
    cells = {words: all_costs(results, names) for words, names in GROUPS.items()}
    names = {words: list(dict.fromkeys(key[2] for key in own)) for words, own in cells.items()}
    names = {words: some for words, some in names.items() if some}
    figure, axes = stacked_panels([len(some) for some in names.values()])
    for ax, (words, some) in zip(axes, names.items()):
        losses = base_losses(results, some)
        for index, base in enumerate(BASES):
            values = [np.nan if value is None else value for value in losses[base, NONE]]
            places = np.arange(len(some)) + 0.16 * (index - 1.5)
            ax.plot(values, places, **variant(index), linestyle="none", label=base)
        name_rows(ax, [dataset_name(name) for name in some])
        ax.set_title(words)
    axes[-1].set_xlabel("loss over that of a constant (lower is better)")
    finish(figure, axes)
    return figure
