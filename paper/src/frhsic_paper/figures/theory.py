"""Figures of what needs no sweep: convergence, seconds, bounds, eigenvalues, dimensions, tests of independence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from frhsic_paper.convergence import slopes
from frhsic_paper.figures.style import colour, legend_below, panels, styled
from frhsic_paper.printed import DATASET_NAMES, cached
from frhsic_paper.records import Record
from frhsic_paper.tables.frontiers import datasets_of
from frhsic_paper.tables.theory import RUNTIME_NAMES, STATISTICS, median_seconds, selection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bandwidth_scaling", "bound", "convergence", "high_dimensional", "runtime", "weight_selection"]

RUNTIME_COLOURS = {
    "frhsic": "#0072B2",
    "hsic": "#D55E00",
    "reg-gdp": "#009E73",
    "none": "#000000",
    "frem-loop": "#E69F00",
    "frem-32": "#B8860B",
    "frem-all": "#7A5C00",
}


def convergence(records: Sequence[Record]) -> Figure:
    """Mean absolute error against n, with fitted slopes and lines of slope −1/2 and −2/5 for the eye."""
    fitted = slopes(records)
    guide, top = np.array([1.0]), 1.0
    with styled():
        figure, (ax,) = panels(1, 1, 5.0, 3.4)
        for index, name in enumerate(fitted):
            of = [r for r in records if r["statistic"] == name]
            sizes = np.array(sorted({r["n"] for r in of}))
            errors = np.array([np.mean([r["error"] for r in of if r["n"] == n]) for n in sizes])
            slope = fitted[name]
            label = f"{STATISTICS[name]}: {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
            ax.loglog(sizes, errors, marker="os^"[index % 3], color=colour("", index), label=label.replace("-", "−"))
            if index == 0:
                guide, top = sizes, errors[0] * 1.6
        for power, style, name in ((-0.5, "--", "slope −1/2"), (-0.4, ":", "slope −2/5")):
            ax.loglog(guide, top * (guide / guide[0]) ** power, style, color="#888888", linewidth=1, label=name)
        ax.set_xlabel("n")
        ax.set_ylabel("mean absolute error")
        ax.legend(fontsize=7)
    return figure


def runtime(records: Sequence[Record]) -> Figure:
    """Seconds of an epoch against n, a panel for each device."""
    devices = sorted({r["device"] for r in records})
    with styled():
        figure, axes = panels(len(devices), 2, 3.9, 3.0)
        for ax, device in zip(axes, devices):
            of = [r for r in records if r["device"] == device]
            for method in dict.fromkeys(r["method"] for r in of):
                sizes = sorted({r["n"] for r in of if r["method"] == method})
                seconds = [median_seconds(of, device, method, n) for n in sizes]
                ax.loglog(sizes, seconds, marker="o", color=RUNTIME_COLOURS[method], label=RUNTIME_NAMES[method])
            ax.set_title("GPU" if device == "cuda" else "CPU")
            ax.set_xlabel("rows")
            ax.set_ylabel("seconds of an epoch (median)")
        legend_below(figure, axes, 3)
    return figure


def bound(records: Sequence[Record]) -> Figure:
    """Both sides of the finite-sample bound against λ; under the corrected protocol for several resolutions."""
    of = [r for r in records if r["method"] == "frhsic"]
    datasets = datasets_of(of)
    with styled():
        figure, axes = panels(len(datasets), 2, 3.9, 3.2)
        for ax, dataset in zip(axes, datasets):
            here = [r for r in of if r["dataset"] == dataset and float(r["weight"]) > 0]
            rules = list(dict.fromkeys(r.get("rule", "") for r in here))
            for index, rule in enumerate(rules):
                rows = sorted((r for r in here if r.get("rule", "") == rule), key=lambda r: float(r["weight"]))
                weights = [float(r["weight"]) for r in rows]
                name = f", {_resolution(rule)}" if rule else ""
                ax.loglog(
                    weights,
                    [r["rhs"] for r in rows],
                    "--",
                    marker="s",
                    color=colour("", index),
                    label=f"HSIC / λ̂{name}",
                )
                ax.loglog(
                    weights,
                    [r["lhs_max"] for r in rows],
                    "-",
                    marker="o",
                    color=colour("", index),
                    label=f"largest gap{name}",
                )
            ax.axhline(
                0.25, color="#888888", linewidth=1, linestyle=":", label="0.25: holds for every k(z₀, ·) in [0, 1]"
            )
            ax.set_title(DATASET_NAMES[dataset])
            ax.set_xlabel("λ")
            ax.set_ylabel("mean-square gap, norm 1")
        legend_below(figure, axes, 3)
    return figure


def _resolution(rule: str) -> str:
    return f"eigenvalues above {rule}" if "e" in rule else f"m = {rule}"


def bandwidth_scaling(by_protocol: dict[str, Sequence[Record]]) -> Figure:
    """λ̂_S against the bandwidth by the published rule and in double precision, with the cut-off that stops it."""
    published, corrected = by_protocol.get("published", ()), by_protocol.get("corrected", ())
    datasets = datasets_of([*published, *corrected])
    cached_values = cached("lambda2_vs_sigma")
    with styled():
        figure, axes = panels(len(datasets) + 1, 3, 3.4, 3.1)
        for ax, dataset in zip(axes, datasets):
            theirs = [r for r in cached_values if r["dataset"] == dataset]
            ax.loglog(
                [r["sigma"] for r in theirs],
                [r["hat_lambda_S"] for r in theirs],
                "kx",
                label="the paper's files",
                zorder=5,
            )
            for rows, name, hue in (
                (published, "published rule (float32)", "#0072B2"),
                (corrected, "float64", "#D55E00"),
            ):
                of = sorted((r for r in rows if r["dataset"] == dataset), key=lambda r: r["sigma"])
                ax.loglog([r["sigma"] for r in of], [r["smallest"] for r in of], marker="o", color=hue, label=name)
                if name.startswith("published"):
                    ax.loglog(
                        [r["sigma"] for r in of],
                        [r["floor"] for r in of],
                        ":",
                        color="#888888",
                        label="10⁻⁶ of the largest eigenvalue",
                    )
            ax.set_title(DATASET_NAMES[dataset])
        distinct = sorted((r for r in corrected if r["dataset"] == "distinct"), key=lambda r: r["sigma"])
        if distinct:
            ax = axes[-1]
            ax.loglog(
                [r["sigma"] for r in distinct], [max(r["last"], 1e-18) for r in distinct], marker="o", color="#D55E00"
            )
            ax.axhline(1 / distinct[0]["n"], color="#888888", linestyle="--", linewidth=1, label="1/n")
            ax.set_title(f"{distinct[0]['n']} distinct values (0 drawn at 1e-18)")
            ax.legend()
        for ax in axes:
            ax.set_xlabel("σ of the kernel on S")
            ax.set_ylabel(r"$\hat\lambda_S$")
        legend_below(figure, axes[:-1], 4)
    return figure


def high_dimensional(records: Sequence[Record]) -> Figure:
    """Seconds of an epoch, and relative errors of the estimates, against the number of sensitive columns."""
    from matplotlib.ticker import MaxNLocator

    times = [r for r in records if r["part"] == "time"]
    errors = [r for r in records if r["part"] == "error"]
    with styled():
        figure, axes = panels(2 if errors else 1, 2, 3.9, 3.0)
        for method in dict.fromkeys(r["method"] for r in times):
            for device in sorted({r["device"] for r in times}):
                of = [r for r in times if r["method"] == method and r["device"] == device]
                dimensions = sorted({r["dim_s"] for r in of})
                seconds = [np.median([r["seconds"] for r in of if r["dim_s"] == d]) for d in dimensions]
                style = "-" if device == "cpu" else "--"
                label = f"{RUNTIME_NAMES[method]}, {'CPU' if device == 'cpu' else 'GPU'}"
                axes[0].semilogy(dimensions, seconds, style, marker="o", color=RUNTIME_COLOURS[method], label=label)
        axes[0].set_ylabel("seconds of an epoch")
        if errors:
            n = _largest_whole(errors)
            for index, statistic in enumerate(dict.fromkeys(r["statistic"] for r in errors)):
                of = [r for r in errors if r["statistic"] == statistic and r["n"] == n]
                dimensions = sorted({r["dim_s"] for r in of})
                mean = [np.mean([r["relative_error"] for r in of if r["dim_s"] == d]) for d in dimensions]
                name = STATISTICS.get(statistic, statistic).replace("EIPM, γ = 1", "EIPM")
                axes[1].semilogy(dimensions, mean, marker="o", color=colour("", index), label=name)
            axes[1].set_ylabel(f"relative error at n = {n:,}")
        for ax in axes:
            ax.set_xlabel("number of sensitive columns")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.legend(fontsize=7)
    return figure


def _largest_whole(errors: Sequence[Record]) -> int:
    """Return the largest n that has every number of columns, or the least n where none has."""
    every = {r["dim_s"] for r in errors}
    sizes = sorted({r["n"] for r in errors})
    whole = [n for n in sizes if {r["dim_s"] for r in errors if r["n"] == n} == every]
    return int(whole[-1] if whole else sizes[0])


def weight_selection(records: Sequence[Record]) -> Figure:
    """n·HSIC of the first split against λ, with the published threshold and that of the exact null moments."""
    of = [r for r in records if r["repeat"] == 0 and r["method"] == "frhsic"]
    datasets = datasets_of(of)
    with styled():
        figure, axes = panels(len(datasets), 3, 3.4, 3.0)
        for ax, dataset in zip(axes, datasets):
            here = sorted((r for r in of if r["dataset"] == dataset), key=lambda r: float(r["weight"]))
            weights = [float(r["weight"]) for r in here]
            ax.loglog(
                weights, [r["n_hsic"] for r in here], marker="o", color="#D55E00", label="n · HSIC on validation rows"
            )
            ax.loglog(
                weights, [r["published_threshold"] for r in here], "--", color="#0072B2", label="published threshold"
            )
            ax.loglog(
                weights, [r["threshold"] for r in here], "-", color="#009E73", label="threshold, exact null moments"
            )
            for test, hue in (("published", "#0072B2"), ("exact", "#009E73")):
                found = selection(here, test).get((dataset, 0))
                if found is not None:
                    ax.axvline(float(found["weight"]), color=hue, linestyle=":", linewidth=1.2)
            ax.set_title(f"{DATASET_NAMES[dataset]}, first split")
            ax.set_xlabel("λ")
        legend_below(figure, axes, 3)
    return figure
