"""How figures look: one style, one color and one marker for each method, intervals at every mean that has repeats.

Colors are those of Okabe and Ito, with a brown and a gray beside them; markers tell the methods apart without color.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic._files import write_whole
from frhsic.frontier import Frontier, Point, band_limit
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import BAND, PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = {
    "none": "#000000",
    "frhsic": "#0072B2",
    "frem": "#E69F00",
    "reg-gdp": "#009E73",
    "adv": "#CC79A7",
    "mmd": "#56B4E9",
    "laftr": "#8C6D31",
    "dcor": "#999999",
    "hsic": "#D55E00",
}
"""Distinct for readers with any color vision."""

MARKERS = {
    "none": "*",
    "frhsic": "o",
    "frem": "s",
    "reg-gdp": "^",
    "adv": "v",
    "mmd": "D",
    "laftr": "P",
    "dcor": "X",
    "hsic": "p",
}

SPARE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31", "#999999")

SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p")
"""Markers of variants, in the order of :data:`SPARE`."""

GRAY = "#777777"
"""Of guides: reference lines, bands, thresholds."""

PARAMETERS: Any = {  # matplotlib types the keys as a closed list of literals
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#ebebeb",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "errorbar.capsize": 0,
    "savefig.bbox": "tight",
    "svg.hashsalt": "frhsic",
}

GDP_NAMES = {
    "gdp_logit_uniform": "GDP of raw outputs, uniform grid",
    "gdp_probability": "GDP of probabilities",
    "gdp_standardized": "GDP ÷ sd of the scores",
}

BETTER = {True: "higher is better", False: "lower is better"}
"""Direction of an axis, in words."""

WINDOW = 0.06
"""Share of the unpenalized performance that a panel shows below it; models that collapsed lie outside."""


@dataclass(frozen=True)
class Drawn:
    """A figure, the name of its file and its caption."""

    name: str
    caption: str
    figure: Figure


def figures_of(
    name: str, file: str, caption: str, make: Callable[[Sequence[Record], Protocol], Figure]
) -> Callable[[Results], list[Drawn]]:
    """Return the figures of a study that has one for each protocol under which its records were made."""

    def figures(results: Results) -> list[Drawn]:
        return [
            Drawn(f"{file}-{protocol.name}", f"{caption}, {protocol.name} protocol", make(records, protocol))
            for protocol in PROTOCOLS.values()
            if (records := results.of(name, protocol.name))
        ]

    return figures


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the style of the page; use as a context or as a decorator."""
    import matplotlib as mpl

    with mpl.rc_context(PARAMETERS):
        yield


def panels(count: int, columns: int, width: float = 3.5, height: float = 2.7) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes, `columns` in a row; a panel is as wide as a journal's column."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(width * min(columns, count), height * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, min(columns, count), squeeze=False)).ravel()
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, list(axes[:count])


def half_width(deviation: float | None, repeats: int) -> float:
    """Return half of the 95 % t interval of a mean; 0 where one repeat gives none.

    Examples
    --------
    >>> round(half_width(1.0, 5), 3), half_width(None, 1)
    (1.242, 0.0)
    """
    from scipy.stats import t

    if deviation is None or repeats < 2 or not np.isfinite(deviation):
        return 0.0
    return float(t.ppf(0.975, repeats - 1) * deviation / repeats**0.5)


def curve(ax: Axes, x: Sequence[float], groups: Sequence[Sequence[float]], **look: Any) -> None:
    """Draw the means of some groups of repeats as a line, with 95 % intervals."""
    means = [float(np.mean(group)) if len(group) else np.nan for group in groups]
    bars = [half_width(float(np.std(group, ddof=1)) if len(group) > 1 else None, len(group)) for group in groups]
    if ax.get_yscale() == "log":  # an interval that reaches zero ends at a tenth of the mean
        low = [min(bar, 0.9 * abs(mean)) for bar, mean in zip(bars, means)]
        ax.errorbar(x, means, yerr=[low, bars], elinewidth=0.8, **look)
    else:
        ax.errorbar(x, means, yerr=bars, elinewidth=0.8, **look)


def dots_in_rows(ax: Axes, groups: Sequence[Sequence[float]], offset: float = 0.0, **look: Any) -> None:
    """Draw one mean with its 95 % interval in each row, the first row on top; a group without numbers leaves a gap."""
    places = [place + offset for place, group in enumerate(groups) if len(group)]
    some = [group for group in groups if len(group)]
    bars = [half_width(float(np.std(group, ddof=1)) if len(group) > 1 else None, len(group)) for group in some]
    ax.errorbar([np.mean(group) for group in some], places, xerr=bars, elinewidth=0.8, linestyle="none", **look)


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a panel, the first on top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="y", visible=False)


def color(name: str, index: int = 0) -> str:
    """Return the color of a method, or that of the variant with this index if the name is not a method's."""
    return COLORS.get(name, SPARE[index % len(SPARE)])


def variant(index: int) -> dict[str, str]:
    """Return color and marker of the variant with this index."""
    return {"color": SPARE[index % len(SPARE)], "marker": SHAPES[index % len(SHAPES)]}


def draw_frontier(ax: Axes, frontier: Frontier, methods: tuple[str, ...], *, title: str, dependence: str) -> None:
    """Draw the efficient weights of every method with 95 % intervals, the 1 % band, and a star for Unfair.

    Dominated weights are faint dots. Up is better in every panel: an error is drawn upside down. A model that performs
    far worse than Unfair lies below the panel, and an arrow at its lower edge marks where.
    """
    base, higher = frontier.of(frontier.baseline)[0], frontier.higher_is_better
    limit = base.performance * (1 - WINDOW if higher else 1 + 20 * WINDOW)
    shown = [p for p in frontier.points if (p.performance >= limit if higher else p.performance <= limit)]
    worst, best = (min, max) if higher else (max, min)
    low, high = worst(p.performance for p in shown), best(p.performance for p in shown)
    margin = 0.08 * (high - low) or 1e-6
    low, high = low - margin, high + margin
    ax.axhspan(
        base.performance, band_limit(base.performance, BAND, higher), color="#f1f1f1", label="1 % band", zorder=0
    )
    for index, method in enumerate(m for m in methods if m in frontier.methods and m != frontier.baseline):
        look: dict[str, Any] = {
            "color": COLORS.get(method, SPARE[index % len(SPARE)]),
            "marker": MARKERS.get(method, SHAPES[index % 8]),
        }
        line, top = frontier.non_dominated(method), 4 if method == "hsic" else 3
        rest = [p for p in frontier.of(method) if p not in line]
        inside = [p for p in line if p in shown]
        _dots(ax, tuple(p for p in rest if p in shown), **look, linestyle="none", alpha=0.25, markersize=2.5)
        ax.errorbar(
            [p.dependence for p in inside],
            [p.performance for p in inside],
            xerr=[half_width(p.dependence_sd, p.repeats) for p in inside],
            yerr=[half_width(p.performance_sd, p.repeats) for p in inside],
            **look,
            elinewidth=0.6,
            label=method_name(method),
            zorder=top,
        )
        below = [p.dependence for p in frontier.of(method) if p not in shown]
        ax.plot(
            below, [low + margin / 4] * len(below), marker="v", color=look["color"], linestyle="none", markersize=3.5
        )
    ax.plot([], [], marker="v", color=GRAY, linestyle="none", markersize=4, label="below the panel")
    bars = half_width(base.dependence_sd, base.repeats), half_width(base.performance_sd, base.repeats)
    star: dict[str, Any] = {"color": "#000000", "marker": "*", "markersize": 9, "linestyle": "none"}
    ax.errorbar(base.dependence, base.performance, xerr=bars[0], yerr=bars[1], **star, label="Unfair", zorder=5)
    ax.set_ylim(low, high)
    reach = [p.dependence + half_width(p.dependence_sd, p.repeats) for p in shown]
    ax.set_xlim(min(0.0, *(p.dependence for p in shown)), 1.04 * max(reach))
    ax.set_title(title)
    ax.set_xlabel(f"{dependence} ({BETTER[False]})")
    ax.set_ylabel(f"{'accuracy' if higher else 'mean squared error'} ({BETTER[higher]})")


def legend_below(figure: Figure, axes: list[Axes], columns: int = 5) -> None:
    """Put one legend for all axes below them."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if entries:
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure without the date, so that the same records give the same bytes."""
    content, kind = io.BytesIO(), path.suffix.removeprefix(".")
    with styled():
        figure.savefig(content, format=kind, metadata={"Date": None} if kind == "svg" else None, dpi=160)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())
    return path


def _dots(ax: Axes, points: tuple[Point, ...], **look: Any) -> None:
    ax.plot([p.dependence for p in points], [p.performance for p in points], **look)
