"""How figures look: one color and one marker for each method, the same everywhere."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic._files import write_whole
from frhsic.frontier import Frontier, Point
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import PROTOCOLS, Protocol
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
    "hsic": "o",
}

SPARE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C6D31", "#999999")

PARAMETERS: Any = {  # matplotlib types the keys as a closed list of literals
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "savefig.bbox": "tight",
    "svg.hashsalt": "frhsic",
}


GDP_NAMES = {
    "gdp_logit_uniform": "GDP of the raw output, uniform grid",
    "gdp_probability": "GDP of probabilities",
    "gdp_standardized": "GDP ÷ standard deviation of scores",
}

WINDOW = 0.12
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


def panels(count: int, columns: int, width: float = 3.4, height: float = 2.7) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` axes, `columns` in a row."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(width * min(columns, count), height * rows), layout="constrained")
    axes = np.atleast_1d(figure.subplots(rows, min(columns, count), squeeze=False)).ravel()
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, list(axes[:count])


def color(name: str, index: int = 0) -> str:
    """Return the color of a method, or that of the variant with this index if the name is not a method's."""
    return COLORS.get(name, SPARE[index % len(SPARE)])


def draw_frontier(ax: Axes, frontier: Frontier, methods: tuple[str, ...], *, title: str, dependence: str) -> None:
    """Draw every weight of every method, a line through its efficient ones, and a star for the unpenalized model.

    Up is better in every panel: an error is drawn upside down. Performance far below the unpenalized model's lies
    outside the panel.
    """
    for index, method in enumerate(methods):
        if method not in frontier.methods or method == frontier.baseline:
            continue
        hue, marker = color(method, index), MARKERS.get(method, "o")
        _dots(ax, frontier.of(method), color=hue, marker=marker, linestyle="none", alpha=0.3, markersize=3.5)
        line, top = frontier.non_dominated(method), 4 if method == "hsic" else 3
        _dots(ax, line, color=hue, marker=marker, label=method_name(method), zorder=top)
    base = frontier.of(frontier.baseline)
    _dots(ax, base, color="#000000", marker="*", linestyle="none", markersize=11, label="Unfair", zorder=5)
    performances = [p.performance for p in frontier.points]
    if frontier.higher_is_better:
        inside = [p for p in performances if p >= base[0].performance * (1 - WINDOW)]
    else:
        inside = [p for p in performances if p <= base[0].performance * (1 + 10 * WINDOW)]
    margin = 0.06 * (max(inside) - min(inside)) + 1e-6
    low, high = min(inside) - margin, max(inside) + margin
    ax.set_ylim(*((low, high) if frontier.higher_is_better else (high, low)))
    ax.set_title(title)
    ax.set_xlabel(dependence)
    ax.set_ylabel("accuracy" if frontier.higher_is_better else "mean squared error")


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
