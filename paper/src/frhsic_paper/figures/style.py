"""One look for all figures: a colour and a marker a method, the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic.frontier import Frontier, Point
from frhsic_paper.printed import method_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "MARKERS", "colour", "draw_frontier", "legend_below", "panels", "save", "styled"]

COLOURS = {
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
"""Told apart by readers with any colour vision."""

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


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this."""
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


def colour(name: str, index: int = 0) -> str:
    """Return the colour of a method, or of the index-th variant where the name is none."""
    return COLOURS.get(name, SPARE[index % len(SPARE)])


def draw_frontier(ax: Axes, frontier: Frontier, methods: tuple[str, ...]) -> None:
    """Draw every weight of every method, a line through its efficient ones, and a star for the unpenalised model."""
    for index, method in enumerate(methods):
        if method not in frontier.methods or method == frontier.baseline:
            continue
        hue, marker = colour(method, index), MARKERS.get(method, "o")
        _dots(ax, frontier.of(method), color=hue, marker=marker, linestyle="none", alpha=0.3, markersize=3.5)
        line = frontier.non_dominated(method)
        _dots(
            ax,
            line,
            color=hue,
            marker=marker,
            label=method_name(method),
            zorder=4 if method == "hsic" else 3,
        )
    base = frontier.of(frontier.baseline)
    _dots(ax, base, color="#000000", marker="*", linestyle="none", markersize=11, label="Unfair", zorder=5)


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with styled():
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=160)
    return path


def _dots(ax: Axes, points: tuple[Point, ...], **look: Any) -> None:
    ax.plot([p.dependence for p in points], [p.performance for p in points], **look)
