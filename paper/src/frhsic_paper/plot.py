"""The look of figures: one width and style, a color and a marker for each method, and an interval
for each mean over repeats.

Every figure is 390 points wide, so that its text is legible on a phone, and has at most two panels
side by side. Its background is white, even on dark pages.

Colors are those of Okabe and Ito, plus a brown and a gray; markers distinguish the methods without
color. This library's closed forms have the color used in its reports.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from scipy.stats import t as student

from frhsic._files import write_whole
from frhsic._pictures import COLOURS
from frhsic_paper.frontier import Frontier, Point, band_limit
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import BAND, CONTRACTED, PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results

LOOKS: dict[str, dict[str, Any]] = {
    "none": {"color": "#000000", "marker": "*"},
    "frhsic": {"color": "#0072B2", "marker": "o"},
    "frem": {"color": "#E69F00", "marker": "s"},
    "reg-gdp": {"color": "#009E73", "marker": "^"},
    "adv": {"color": "#CC79A7", "marker": "v"},
    "mmd": {"color": "#56B4E9", "marker": "D"},
    "laftr": {"color": "#8C6D31", "marker": "P"},
    "dcor": {"color": "#999999", "marker": "X"},
    "hsic": {"color": "#D55E00", "marker": "p"},
}
"""Colors and markers of the methods, distinct for readers with any color vision."""

SPARE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31", "#999999")

SHAPES = ("o", "s", "^", "D", "v", "P", "X", "p")
"""Markers of variants, in the order of :data:`SPARE`."""

GRAY = "#777777"
"""Color of reference lines, bands and thresholds."""

ACCENT = COLOURS["after"]
"""Color of this library's closed forms."""

WIDTH = 390 / 72
"""Width of every figure in inches."""

PARAMETERS: Any = {  # matplotlib types the keys as a closed list of literals
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    # a fixed position: placing titles automatically takes a quarter of the drawing time
    "axes.titley": 1.0,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "grid.color": "#ebebeb",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 1.6,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "errorbar.capsize": 0,
    "svg.hashsalt": "frhsic",
}

GDP_NAMES = {
    "gdp_logit_uniform": "GDP of raw outputs, uniform grid",
    "gdp_probability": "GDP of probabilities",
    "gdp_standardized": "GDP ÷ sd of the scores",
}

BETTER = {True: "higher is better", False: "lower is better"}
"""The direction of an axis, in words."""

LABEL = 26
"""Characters per line of text that fit below a panel."""

UPRIGHT = 22
"""Characters that fit along the height of a panel."""

FAINT = 0.45
"""Opacity of intervals, so that overlapping intervals don't hide the means."""

WINDOW = 0.06
"""A panel extends below the unpenalized performance by this share of it; collapsed models are
outside.
"""


@dataclass(frozen=True)
class Drawn:
    """A figure, its file name and its caption."""

    name: str
    caption: str
    figure: Figure


def protocol_figures(
    name: str,
    caption: str,
    make: Callable[[Sequence[Record], Protocol], Figure],
    bars: str | None = "Bars are 95 % intervals",
    file: str = "",
) -> Callable[[Results], list[Drawn]]:
    """Return the figures of a study, one for each protocol for which it has records.

    The end of the caption explains the error bars, if there are any. By default, a file has the
    name of the study.
    """
    file = file or name.partition("/")[0]

    def figures(results: Results) -> list[Drawn]:
        return [
            Drawn(
                f"{file}-{protocol.name}",
                f"{caption}, {protocol.name} protocol{intervals(records, bars)}",
                make(records, protocol),
            )
            for protocol in PROTOCOLS.values()
            if (records := results.records(name, protocol.name))
        ]

    return figures


AT_THE_STAR = "Only the star has bars, which are 95 % intervals over splits"


def intervals(records: Sequence[Record], bars: str | None = "Bars are 95 % intervals") -> str:
    """Return the end of a caption, which explains the error bars; empty if the records have no
    repeats.

    Examples
    --------
    >>> intervals([{"repeat": 0}, {"repeat": 1}]), intervals([{"repeat": 0}]), intervals([{"n": 5}])
    ('. Bars are 95 % intervals', '. One repeat, so there are no bars', '')
    """
    repeats = {r["repeat"] for r in records if "repeat" in r}
    if not repeats or bars is None:
        return ""
    return f". {bars}" if len(repeats) > 1 else ". One repeat, so there are no bars"


def directed_label(label: str, *, higher: bool) -> str:
    """Return the label of an axis with its direction.

    Examples
    --------
    >>> directed_label("accuracy", higher=True)
    'accuracy (higher is better)'
    """
    return f"{label} ({BETTER[higher]})"


@contextmanager
def page_style() -> Iterator[None]:
    """Draw in the style of the pages; a context manager or decorator."""
    with mpl.rc_context(PARAMETERS):
        yield


def panels(count: int, height: float = 2.1) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes of the given height in inches, two per row; a legend adds
    to the height.
    """
    rows = -(-count // 2)
    columns = min(count, 2)
    figure = Figure(figsize=(WIDTH, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, list(axes[:count])


def half_width(deviation: float | None, repeats: int) -> float:
    """Return half the width of the 95 % t interval of a mean; 0 for a single repeat, which has
    none.

    Examples
    --------
    >>> round(half_width(1.0, 5), 3), half_width(None, 1)
    (1.242, 0.0)
    """
    if deviation is None or repeats < 2 or not np.isfinite(deviation):
        return 0.0
    return float(student.ppf(0.975, repeats - 1) * deviation / repeats**0.5)


def curve(ax: Axes, x: Sequence[float], groups: Sequence[Sequence[float]], **look: Any) -> None:
    """Draw the means of groups of repeats as a line, with 95 % intervals.

    On a logarithmic axis, an interval that reaches zero ends at a tenth of the mean, with an arrow.
    """
    means = [float(np.mean(group)) if len(group) else np.nan for group in groups]
    bars = [_half_width_of(group) for group in groups]
    if ax.get_yscale() == "log":
        low = [min(bar, 0.9 * abs(mean)) for bar, mean in zip(bars, means)]
        with_bars(ax, x, means, yerr=[low, bars], **look)
        cut = [
            (place, mean / 10) for place, mean, bar in zip(x, means, bars) if bar > 0.9 * abs(mean)
        ]
        if cut:
            arrow: dict[str, Any] = {
                "marker": "v",
                "linestyle": "none",
                "markersize": 3,
                "alpha": FAINT,
            }
            ax.plot(*zip(*cut), **arrow, color=look["color"])
            ax.plot([], [], **arrow, color=GRAY, label="interval reaches zero")
    else:
        with_bars(ax, x, means, yerr=bars, **look)


def with_bars(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    *,
    xerr: Any = None,
    yerr: Any = None,
    **look: Any,
) -> None:
    """Draw means with faint intervals."""
    _, _, bars = ax.errorbar(x, y, xerr=xerr, yerr=yerr, elinewidth=0.8, **look)
    for bar in bars:
        bar.set_alpha(FAINT)


def dots_in_rows(
    ax: Axes, groups: Sequence[Sequence[float]], offset: float = 0.0, **look: Any
) -> None:
    """Draw one mean with its 95 % interval in each row, from top to bottom; a group without numbers
    leaves a gap.
    """
    places = [place + offset for place, group in enumerate(groups) if len(group)]
    some = [group for group in groups if len(group)]
    means = [float(np.mean(group)) for group in some]
    with_bars(
        ax, means, places, xerr=[_half_width_of(group) for group in some], linestyle="none", **look
    )


def _half_width_of(group: Sequence[float]) -> float:
    return half_width(float(np.std(group, ddof=1)) if len(group) > 1 else None, len(group))


def from_zero(ax: Axes) -> None:
    """Start the horizontal axis slightly below zero, so that a marker at zero isn't clipped."""
    ax.set_xlim(left=min(-0.02 * ax.get_xlim()[1], ax.get_xlim()[0] if ax.dataLim.x0 < 0 else 0.0))


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows of a panel, from top to bottom."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=4)
    ax.grid(axis="y", visible=False)


def variant(index: int) -> dict[str, Any]:
    """Return the color and marker of the variant with this index."""
    return {"color": SPARE[index % len(SPARE)], "marker": SHAPES[index % len(SHAPES)]}


def draw_frontier(
    ax: Axes, frontier: Frontier, methods: tuple[str, ...], *, title: str, dependence: str
) -> None:
    """Draw the non-dominated weights of every method, the 1 % band, and a star for Unfair with its
    95 % intervals.

    Dominated weights are faint dots, contraction is a dashed line. Up is better in every panel, so
    axes of errors are inverted. Models that perform far worse than Unfair are below the panel, and
    dominated ones with large dependence are to its right; arrows at the edge mark their positions.
    """
    base, higher = frontier.method_points(frontier.baseline)[0], frontier.higher_is_better
    limit = base.performance * (1 - WINDOW if higher else 1 + 20 * WINDOW)
    shown = [
        p for p in frontier.points if (p.performance >= limit if higher else p.performance <= limit)
    ]
    present = [
        m for m in methods if m in frontier.methods and m not in (frontier.baseline, CONTRACTED)
    ]
    efficient = {m: [p for p in frontier.non_dominated_points(m) if p in shown] for m in present}
    right = max(p.dependence for p in (base, *(p for line in efficient.values() for p in line)))
    right = 1.04 * (
        max(right, base.dependence + _bars(base)[0]) or max(p.dependence for p in shown) or 1e-3
    )
    sign, bar = (1 if higher else -1), _bars(base)[1]
    low, high = (pick(sign * p.performance for p in shown) for pick in (min, max))
    low, high = min(low, sign * base.performance - bar), max(high, sign * base.performance + bar)
    margin = 0.08 * (high - low) or 1e-6
    low, high = sign * (low - margin), sign * (high + margin)
    ax.axhspan(
        base.performance,
        band_limit(base.performance, BAND, higher),
        color="#f1f1f1",
        label="1 % band",
        zorder=0,
    )
    outside: dict[str, Any] = {"linestyle": "none", "markersize": 3.5}
    for index, method in enumerate(present):
        look = LOOKS.get(method, variant(index))
        line = efficient[method]
        rest = [p for p in frontier.method_points(method) if p in shown and p not in line]
        inside = [p for p in rest if p.dependence <= right]
        _dots(ax, inside, **look, linestyle="none", alpha=0.25, markersize=2.5)
        _dots(ax, line, **look, label=method_name(method), zorder=4 if method == "hsic" else 3)
        below = [min(p.dependence, right) for p in frontier.method_points(method) if p not in shown]
        ax.plot(
            below,
            [low + sign * margin / 4] * len(below),
            marker="v",
            color=look["color"],
            **outside,
        )
        beyond = [p.performance for p in rest if p not in inside]
        ax.plot(
            [0.985 * right] * len(beyond),
            beyond,
            marker=">",
            color=look["color"],
            alpha=FAINT,
            **outside,
        )
    if CONTRACTED in frontier.methods:
        line = [
            p
            for p in sorted(frontier.method_points(CONTRACTED), key=lambda p: p.dependence)
            if p in shown
        ]
        if any(p.dependence < 0.99 * base.dependence for p in line):  # else it is at Unfair
            _dots(ax, [*line, base], color=GRAY, linestyle="--", label=method_name(CONTRACTED))
    for hidden, marker, side in (
        (len(shown) < len(frontier.points), "v", "below"),
        (any(p.dependence > right for p in shown), ">", "right of"),
    ):
        if hidden:
            look = {"marker": marker, "color": GRAY, "linestyle": "none", "markersize": 4}
            ax.plot([], [], **look, label=f"{side} the panel")
    star: dict[str, Any] = LOOKS["none"] | {"markersize": 9, "linestyle": "none"}
    across, up = _bars(base)
    ax.errorbar(
        base.dependence, base.performance, xerr=across, yerr=up, **star, label="Unfair", zorder=5
    )
    ax.set_ylim(low, high)
    ax.set_xlim(min(-0.015 * right, *(p.dependence for p in shown)), right)
    ax.locator_params(axis="x", nbins=4)
    ax.set_title(title)
    ax.set_xlabel(directed_label(dependence, higher=False))
    ax.set_ylabel(directed_label("accuracy" if higher else "mean squared error", higher=higher))


@page_style()
def draw_frontiers(
    frontiers: Mapping[str, Frontier],
    methods: tuple[str, ...],
    dependence: str,
) -> Figure:
    """Draw frontiers, keyed by their titles."""
    figure, axes = panels(len(frontiers), 2.4)
    for ax, (title, full) in zip(axes, frontiers.items()):
        draw_frontier(ax, full, methods, title=title, dependence=dependence)
    finish(figure, axes)
    return figure


def _bars(point: Point) -> tuple[float, float]:
    """Return half the widths of the 95 % intervals of dependence and performance."""
    return half_width(point.dependence_sd, point.repeats), half_width(
        point.performance_sd, point.repeats
    )


def finish(figure: Figure, axes: Sequence[Axes]) -> None:
    """Break long titles and labels, reduce the ticks on logarithmic axes, and add one legend below
    all axes.
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        if ax.get_xscale() == "log":
            _few_ticks(ax.xaxis, 5)
        if ax.get_yscale() == "log":
            _few_ticks(ax.yaxis, 8)
        room = LABEL if beside(ax) else 2 * LABEL
        for text, most in ((ax.title, room), (ax.xaxis.label, room), (ax.yaxis.label, UPRIGHT)):
            text.set_text(break_lines(text.get_text(), most))
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    if entries:
        columns = legend_columns(entries)
        rows = -(-len(entries) // columns)
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.19 * rows + 0.1)
        figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


def beside(ax: Axes) -> bool:
    """Return whether another panel is next to a panel."""
    place = ax.get_subplotspec()
    return place is not None and place.get_gridspec().ncols > 1


def break_lines(text: str, room: int = LABEL) -> str:
    r"""Break a text into lines of at most this many characters; text in parentheses starts a new
    line.

    Examples
    --------
    >>> break_lines("accuracy (higher is better)"), break_lines("R² (higher is better)")
    ('accuracy\n(higher is better)', 'R² (higher is better)')
    """
    if max(map(len, text.splitlines()), default=0) <= room:
        return text
    return "\n".join(fill(line, room) for line in text.replace(" (", "\n(").splitlines())


def legend_columns(labels: Iterable[str]) -> int:
    """Return how many columns of a legend fit below a figure.

    Examples
    --------
    >>> legend_columns(["FRHSIC", "LAFTR (binned)"]), legend_columns([30 * "m"])
    (3, 1)
    """
    letter = 5.2  # average width of a character of the legend's font, in points
    longest = max(map(len, labels))
    return max(1, int(72 * WIDTH // (letter * longest + 42)))


def _few_ticks(axis: Axis, most: int) -> None:
    """Label at most this many powers of ten and, on a short axis, some numbers between them."""
    low, high = axis.get_view_interval()
    between = (1, 2, 5) if high < 30 * low else (1, 3) if high < 200 * low else (1,)
    axis.set_major_locator(LogLocator(subs=between, numticks=most))
    if len(between) > 1:
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        )
    axis.set_minor_locator(NullLocator())


def save(figure: Figure, path: Path) -> Path:
    """Write a figure without the date, so that the same records produce the same bytes."""
    content, kind = io.BytesIO(), path.suffix.removeprefix(".")
    with page_style():
        figure.savefig(
            content, format=kind, metadata={"Date": None} if kind == "svg" else None, dpi=160
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())
    return path


def _dots(ax: Axes, points: Sequence[Point], **look: Any) -> None:
    ax.plot([p.dependence for p in points], [p.performance for p in points], **look)
