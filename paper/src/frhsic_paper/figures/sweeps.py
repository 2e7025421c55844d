"""Figures of the trade-off: frontiers, two attributes, mutual information, heads, the synthetic task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_paper.figures.style import MARKERS, colour, draw_frontier, legend_below, panels, styled
from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, method_name
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record
from frhsic_paper.tables.appendix import mean_of
from frhsic_paper.tables.frontiers import REGRESSION, datasets_of, finite, frontier, methods_of, swept

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["information", "leak", "multi_attribute", "pareto", "synthetic", "transfer"]

GDP_NAMES = {
    "gdp_logit_uniform": "GDP of the raw output, uniform grid",
    "gdp_probability": "GDP of probabilities",
    "gdp_standardized": "GDP ÷ standard deviation of scores",
}

WINDOW = 0.12
"""Share of the unpenalised performance that a panel shows below it: a model that collapsed is left outside."""


def pareto(
    records: Sequence[Record], protocol: Protocol, *, regression: bool = False, gdp: str | None = None
) -> Figure:
    """Frontiers of all methods: classification datasets, or the regression one alone.

    Performance that has fallen by more than a tenth or so lies below the panel.
    """
    column = protocol.gdp if gdp is None else gdp
    datasets = [d for d in swept(records) if (d in REGRESSION) == regression]
    with styled():
        figure, axes = panels(len(datasets), 2 if len(datasets) > 1 else 1, 3.7, 2.9)
        for ax, dataset in zip(axes, datasets):
            full = frontier(records, dataset, column)
            draw_frontier(ax, full, methods_of(records))
            _window(ax, full.of(BASELINE)[0].performance, [p.performance for p in full.points], dataset)
            ax.set_xlim(left=0)
            ax.set_title(DATASET_NAMES[dataset])
            ax.set_xlabel(GDP_NAMES.get(column, column))
            ax.set_ylabel("mean squared error" if dataset in REGRESSION else "accuracy")
        legend_below(figure, axes, 5 if len(datasets) > 1 else 3)
    return figure


def multi_attribute(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Frontiers for each of two attributes."""
    with styled():
        figure, axes = panels(2, 2, 3.7, 2.9)
        for ax, column, name in zip(axes, (protocol.gdp, f"{protocol.gdp}_2"), ("age", "hours per week")):
            full = frontier(records, "adult", column)
            draw_frontier(ax, full, methods_of(records))
            _window(ax, full.of(BASELINE)[0].performance, [p.performance for p in full.points], "adult")
            ax.set_xlim(left=0)
            ax.set_title(f"Adult, {name}")
            ax.set_xlabel(GDP_NAMES.get(protocol.gdp, protocol.gdp))
            ax.set_ylabel("accuracy")
        legend_below(figure, axes)
    return figure


def information(records: Sequence[Record], column: str) -> Figure:
    """Mutual information of Z and S against performance, over the weights of each method."""
    datasets = swept(records)
    with styled():
        figure, axes = panels(len(datasets), 2, 3.7, 2.9)
        for ax, dataset in zip(axes, datasets):
            of = [r for r in finite(records, column, "performance") if r["dataset"] == dataset]
            full = frontier(of, dataset, column)
            draw_frontier(ax, full, methods_of(records))
            _window(ax, full.of(BASELINE)[0].performance, [p.performance for p in full.points], dataset)
            ax.axvline(0, color="#888888", linewidth=0.8)
            ax.set_title(DATASET_NAMES[dataset])
            ax.set_xlabel("mutual information of Z and S, nats")
            ax.set_ylabel("mean squared error" if dataset in REGRESSION else "accuracy")
        legend_below(figure, axes)
    return figure


def transfer(records: Sequence[Record]) -> Figure:
    """GDP of every fresh head on frozen representations, a group of bars for each method."""
    cases = [
        (d, w)
        for d in datasets_of(records)
        for w in sorted({float(r["weight"]) for r in records if r["dataset"] == d and r["method"] != BASELINE})
    ]
    heads = list(dict.fromkeys(r["head"] for r in records))
    with styled():
        figure, axes = panels(len(cases), 2, 4.6, 2.5)
        for ax, (dataset, weight) in zip(axes, cases):
            of = [
                r
                for r in records
                if r["dataset"] == dataset and (float(r["weight"]) == weight or r["method"] == BASELINE)
            ]
            methods = (BASELINE, *methods_of(of))
            for number, head in enumerate(heads):
                heights = [
                    np.mean(
                        [r["gdp"] for r in of if r["method"] == m and r["head"] == head and r.get("gdp") is not None]
                        or [np.nan]
                    )
                    for m in methods
                ]
                places = np.arange(len(methods)) + (number - (len(heads) - 1) / 2) * 0.8 / len(heads)
                ax.bar(places, heights, width=0.8 / len(heads), color=colour("", number), label=head)
            ax.set_xticks(
                np.arange(len(methods)),
                [method_name(m).replace(" with the", "\nwith") for m in methods],
                fontsize=7,
            )
            ax.grid(axis="x", visible=False)
            ax.set_title(f"{DATASET_NAMES[dataset]}, λ = {weight:g}")
            ax.set_ylabel("GDP of the fresh head")
        legend_below(figure, axes)
    return figure


def synthetic(records: Sequence[Record], protocol: Protocol) -> Figure:
    """GDP and accuracy against λ, GDP against HSIC, and what a probe still reads of S."""
    with styled():
        figure, axes = panels(4, 2, 3.7, 2.6)
        for method in ("frhsic", "hsic"):
            weights = sorted({float(r["weight"]) for r in records if r["method"] == method})
            if not weights:
                continue
            look: dict[str, Any] = {"color": colour(method), "marker": MARKERS[method], "label": METHOD_NAMES[method]}
            places = [weights[0] / 5, *weights]  # the unpenalised model stands one step to the left of the least weight
            values = {
                column: [
                    mean_of(records, column, dataset="synthetic", method=BASELINE if w is None else method, weight=w)
                    for w in (None, *weights)
                ]
                for column in (protocol.gdp, "performance", "hsic_unit", "probe_r2_cosines")
            }
            for ax, column in zip((axes[0], axes[1], axes[3]), (protocol.gdp, "performance", "probe_r2_cosines")):
                ax.errorbar(
                    places,
                    [np.nan if v is None else v.mean for v in values[column]],
                    yerr=[0.0 if v is None or v.deviation is None else v.deviation for v in values[column]],
                    capsize=2,
                    **look,
                )
                ax.set_xscale("log")
                ax.set_xlabel("λ (leftmost: unpenalised)")
            axes[2].plot(
                [np.nan if v is None else v.mean for v in values["hsic_unit"]],
                [np.nan if v is None else v.mean for v in values[protocol.gdp]],
                **look,
            )
        axes[0].set_ylabel(GDP_NAMES[protocol.gdp], fontsize=8)
        axes[1].set_ylabel("accuracy")
        axes[1].set_ylim(0.5, 0.7)  # the best classifier there is reaches .63: no finer scale tells anything
        if any(r.get("hsic_unit") is not None for r in records):
            axes[2].set(xlabel="HSIC, bandwidths 1", ylabel="GDP", xscale="log", yscale="log")
        else:
            axes[2].set_visible(False)
        axes[3].set_ylabel("R² of a probe for S")
        legend_below(figure, axes)
    return figure


def leak(records: Sequence[Record]) -> Figure:
    """GDP of the deployed head and of the worst fresh head, against what a probe reads of S, at matched performance."""
    datasets = datasets_of(records)
    with styled():
        figure, axes = panels(len(datasets), 3, 3.1, 2.7)
        for ax, dataset in zip(axes, datasets):
            of = [r for r in records if r["dataset"] == dataset]
            for index, method in enumerate((BASELINE, *methods_of(of))):
                mine = [r for r in of if r["method"] == method]
                x, low, high = (float(np.mean([r[c] for r in mine])) for c in ("best_probe_r2", "gdp", "worst_gdp"))
                hue, marker = colour(method, index), MARKERS.get(method, "o")
                ax.plot([x, x], [low, high], color=hue, linewidth=1)
                ax.plot([x], [low], color=hue, marker=marker, markerfacecolor="white", linestyle="none")
                ax.plot([x], [high], color=hue, marker=marker, linestyle="none", label=method_name(method))
            ax.set_title(DATASET_NAMES[dataset])
            ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
            ax.set_xlim(0, 1.05 * ax.get_xlim()[1])
            ax.set_xlabel("R² of the best probe for S")
            ax.set_ylabel("GDP: deployed (open) to\nworst fresh head (full)")
        legend_below(figure, axes)
    return figure


def _window(ax: Axes, base: float, performances: Sequence[float], dataset: str) -> None:
    if dataset in REGRESSION:
        inside = [p for p in performances if p <= base * (1 + 10 * WINDOW)]
        low, high = min(inside), max(inside)
        margin = 0.06 * (high - low) + 1e-6
        ax.set_ylim(high + margin, low - margin)  # turned round: up is better in every panel
    else:
        inside = [p for p in performances if p >= base * (1 - WINDOW)]
        low, high = min(inside), max(inside)
        margin = 0.06 * (high - low) + 1e-6
        ax.set_ylim(low - margin, high + margin)
