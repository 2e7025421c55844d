r"""Tables and figure of `docs/penalty.md`, from the records of `base_model.py`.

A method's performance "at 50 %" is read off its path where the GDP, averaged over splits, falls to half of that of
LightGBM without penalty, linearly between neighbouring weights. The same place is read in each split, so differences
between methods are paired: their standard error is that of the five differences.

    python benchmarks/base_model_report.py                        # the tables of the page
    python benchmarks/base_model_report.py --figure FILE.svg      # the figure
    python benchmarks/base_model_report.py --all                  # every method, on every dataset
    python benchmarks/base_model_report.py --join FOLDER          # puts a run into the shipped records
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
RECORDS = ROOT / "benchmarks" / "results" / "base_model.parquet"
TITLES = {
    "adult": "Adult",
    "acs_income": "ACS Income",
    "meps": "MEPS",
    "compas": "COMPAS",
    "crime": "Crime (MSE)",
    "credit": "Credit",
    "bank": "Bank",
}
NAMES = {
    "reg-gdp": "Reg-GDP",
    "frem": "FREM",
    "frhsic": "FRHSIC",
    "mmd": "MMD",
    "dcor": "dCor",
    "adv": "ADV",
    "laftr": "LAFTR",
}
FIVE = ("adult", "acs_income", "meps", "compas", "crime")
LEVELS = (0.75, 0.5, 0.25)
UNIT = ["dataset", "method"]
TRANSPORT = "transport (needs S)"
WITH_BASE, WITHOUT_BASE = "best rival with base", "best rival without base"


class Measured(NamedTuple):
    """A number in each split, and the method it is of."""

    method: str
    values: np.ndarray

    def error(self, other: Measured) -> float:
        """Return the standard error of the mean paired difference."""
        difference = self.values - other.values
        return float(difference.std(ddof=1) / math.sqrt(len(difference)))


def stored(path: Path) -> pd.DataFrame:
    """Return the records of a Parquet file, or of all .jsonl files of a folder."""
    if not path.is_dir():
        return pd.read_parquet(path)
    lines = [line for file in sorted(path.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return pd.DataFrame([json.loads(line) for line in lines])


def read(path: Path) -> pd.DataFrame:
    """Return the records on test rows."""
    records = stored(path)
    return records[records.part == "test"]


def joined(records: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return the records with those of a new run in place of the same methods on the same datasets."""
    replaced = pd.MultiIndex.from_frame(records[UNIT]).isin(pd.MultiIndex.from_frame(new[UNIT]))
    return pd.concat([records[~replaced], new]).sort_values([*UNIT, "weight", "part", "split"], ignore_index=True)


def read_off(runs: pd.DataFrame, level: float, column: str) -> np.ndarray | None:
    """Return a column in each split where the mean GDP first falls to `level`, or None if it never does.

    A path that begins below the level is read at its beginning.
    """
    by_weight = runs.pivot(index="weight", columns="split", values=["gdp", column]).sort_index()
    mean = by_weight["gdp"].mean(axis=1).to_numpy()
    values = by_weight[column].to_numpy()
    if mean[0] <= level:
        return np.asarray(values[0])
    below = np.flatnonzero(mean <= level)
    if not len(below):
        return None
    i = below[0]
    share = (mean[i - 1] - level) / (mean[i - 1] - mean[i])
    return np.asarray((1 - share) * values[i - 1] + share * values[i])


def titles(records: pd.DataFrame) -> dict[str, str]:
    """Return the datasets that have records, with their titles."""
    return {name: title for name, title in TITLES.items() if (records.dataset == name).any()}


class Dataset:
    """The records of one dataset, read at shares of LightGBM's GDP."""

    def __init__(self, records: pd.DataFrame, name: str) -> None:
        self.name = name
        self.runs = {str(method): runs for method, runs in records[records.dataset == name].groupby("method")}
        self.reference_gdp = float(self.runs["lightgbm"].gdp.mean())
        self.sign = -1 if name == "crime" else 1  # a squared error: less is better

    def at(self, method: str, level: float | None, column: str = "performance") -> Measured | None:
        """Return a column at a share of LightGBM's GDP, without penalty if `level` is None."""
        runs = self.runs.get(method)
        if runs is None or runs[column].isna().all():
            return None
        runs = runs.dropna(subset=[column])
        if level is None:
            values = runs[runs.weight == 0].sort_values("split")[column].to_numpy()
        else:
            values = read_off(runs, level * self.reference_gdp, column)
        return None if values is None else Measured(method, values)

    def best(self, methods: Sequence[str], level: float | None) -> Measured | None:
        """Return the method of best mean performance among those that reach the level."""
        reached = [found for method in methods if (found := self.at(method, level)) is not None]
        return max(reached, key=lambda found: self.sign * found.values.mean(), default=None)

    def column(self, name: str, level: float | None) -> Measured | None:
        """Return a method, or the best of a group of rivals."""
        groups = {WITH_BASE: [f"{rival}, base" for rival in NAMES], WITHOUT_BASE: list(NAMES)}
        return self.best(groups[name], level) if name in groups else self.at(name, level)

    def behind_best(self, level: float | None, left_out: Sequence[str] = ()) -> tuple[Measured, float, float]:
        """Return the best of all methods, by how much the default is behind it, and the paired standard error."""
        default = self.at("default", level)
        best = self.best([method for method in self.runs if method not in left_out], level)
        assert default is not None
        assert best is not None
        behind = self.sign * float(best.values.mean() - default.values.mean())
        return best, behind, best.error(default)


def number(value: float, digits: int = 4) -> str:
    """Return a decimal without the zero before the point, and with a true minus sign."""
    text = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 and float(text) else "") + text.removeprefix("0")


COLUMNS = ("default", "default before", WITH_BASE, WITHOUT_BASE, "boosting", TRANSPORT)


def performance_table(records: pd.DataFrame) -> str:
    """Return Markdown: performance without penalty and at each level; ± is the paired standard error to the default."""
    header = ("dataset", "GDP", *COLUMNS)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name, title in titles(records).items():
        dataset = Dataset(records, name)
        for level in (None, *LEVELS):
            measured = [dataset.column(column, level) for column in COLUMNS]
            default = measured[0]
            assert default is not None
            best = max(dataset.sign * round(m.values.mean(), 4) for m in measured[:-1] if m is not None)
            cells = []
            for column, found in zip(COLUMNS, measured):
                if found is None:
                    cells.append("–")
                    continue
                mean = number(found.values.mean())
                bold = (
                    f"**{mean}**"
                    if column != TRANSPORT and dataset.sign * round(found.values.mean(), 4) == best
                    else mean
                )
                named = level is not None and column in (
                    WITH_BASE,
                    WITHOUT_BASE,
                )  # without penalty rivals are one model
                who = f"{NAMES[found.method.removesuffix(', base')]} " if named else ""
                cells.append(who + bold + ("" if column == "default" else f" ± {number(found.error(default))}"))
            label = "no penalty" if level is None else f"{level:.0%}".replace("%", " %")
            lines.append(f"| {title if level is None else ''} | {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def left_table(records: pd.DataFrame) -> str:
    """Return Markdown: what depends on S at a quarter of LightGBM's GDP, in decisions and in Z."""
    header = ["dataset", "decisions: default", "before", "boosting", "transport", "cosines: default", "less before"]
    header += ["boosted: default", "less before"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name, title in titles(records).items():
        dataset = Dataset(records, name)
        cells = []
        for method in ("default", "default before", "boosting", TRANSPORT):
            found = dataset.at(method, 0.25, "gdp_decisions")
            cells.append("–" if found is None else number(found.values.mean(), 3))
        for probe in ("cosines", "boosted"):
            default, before = (dataset.at(method, 0.25, probe) for method in ("default", "default before"))
            assert default is not None
            assert before is not None
            difference = default.values.mean() - before.values.mean()
            cells.append(number(default.values.mean(), 3))
            sign = "+" if difference > 0 else ""
            cells.append(f"{sign}{number(difference, 3)} ± {number(default.error(before), 3)}")
        lines.append(f"| {title.removesuffix(' (MSE)')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def all_methods(records: pd.DataFrame) -> str:
    """Return every method on every dataset, and the probes, as text."""
    lines = []
    for name, title in titles(records).items():
        dataset = Dataset(records, name)
        lines.append(
            f"\n{title}: GDP of LightGBM {dataset.reference_gdp:.4f}; performance without penalty, and at 75, 50, 25 %"
        )
        lines.append("(standard error of the difference to the default)")
        for method in dataset.runs:
            cells = []
            for level in (None, *LEVELS):
                found, default = dataset.at(method, level), dataset.at("default", level)
                shown = found is not None and default is not None
                cells.append(f"{found.values.mean():.4f} ({found.error(default):.4f})" if shown else "–".center(15))
            lines.append(f"  {method:24s} " + "  ".join(cells))
        for probe in ("linear", "cosines", "boosted"):
            for method in ("default before", "default"):
                read_at = [dataset.at(method, level, probe) for level in LEVELS[1:]]
                shown = [
                    f"{r.values.mean():.3f} ± {r.values.std(ddof=1) / len(r.values) ** 0.5:.3f}" for r in read_at if r
                ]
                lines.append(f"  R² of S from Z, {probe:8s} {method:24s} at 50, 25 %: {'  '.join(shown)}")
    return "\n".join(lines)


STYLES: dict[str, dict[str, Any]] = {
    "default": {"color": "#0072b2", "marker": "o", "linestyle": "-", "label": "default"},
    "default before": {"color": "#7f7f7f", "marker": "D", "linestyle": "-", "label": "default before"},
    WITH_BASE: {"color": "#009e73", "marker": "s", "linestyle": (0, (6, 1)), "label": "best rival, same base"},
    "boosting": {"color": "#d55e00", "marker": "^", "linestyle": (0, (3, 1.5)), "label": "penalised boosting"},
    TRANSPORT: {"color": "#cc79a7", "marker": "v", "linestyle": (0, (1, 1.2)), "label": "transport (needs S)"},
}


def gains(dataset: Dataset, column: str) -> np.ndarray:
    """Return place of the level, mean gain over LightGBM in the same split, and its standard error, a row per level."""
    reference = dataset.at("lightgbm", None)
    assert reference is not None
    rows = []
    for place, level in enumerate((None, *LEVELS)):
        found = dataset.column(column, level)
        if found is not None:
            gain = dataset.sign * float(found.values.mean() - reference.values.mean())
            rows.append((place, gain, found.error(reference)))
    return np.array(rows)


@mpl.rc_context({"backend": "agg", "svg.hashsalt": "base_model", "font.size": 9, "axes.titlesize": 10})
def figure(records: pd.DataFrame, path: Path) -> None:
    """Draw the gain over LightGBM without penalty and at each level of GDP, a panel for each dataset."""
    canvas, axes = plt.subplots(2, 4, figsize=(9.2, 5.4), layout="constrained")
    for axis, (name, title) in zip(axes.flat, titles(records).items()):
        dataset = Dataset(records, name)
        unit = 1000 if name == "crime" else 100
        for position, (method, style) in enumerate(STYLES.items()):
            place, gain, error = gains(dataset, method).T
            axis.errorbar(
                place + 0.15 * (position - 2),  # side by side, so that intervals do not cover each other
                unit * gain,
                unit * error,
                **{key: style[key] for key in ("color", "marker", "linestyle")},
                markersize=4,
                linewidth=1.6 if method == "default" else 0.9,
                elinewidth=1.1,
                zorder=4 if method == "default" else 3,
            )
        for place in (1, 3):
            axis.axvspan(place - 0.5, place + 0.5, color="0.94", zorder=-1)
        axis.axhline(0, color="black", linewidth=0.7, zorder=0)
        axis.set(title=title.removesuffix(" (MSE)"), xlim=(-0.5, 3.5))
        axis.set_xticks(range(4), ["none", *(f"{100 * level:.0f} %" for level in LEVELS)])
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(axis="x", length=0)
        if name in ("adult", "credit"):
            axis.set_ylabel("accuracy − LightGBM's (points)")
        if name == "crime":
            axis.set_ylabel("1000 × (LightGBM's squared\nerror − own)")
    canvas.supxlabel("penalty: none, or as much as leaves this share of LightGBM's GDP", fontsize=10)
    handles = [
        plt.Line2D([], [], **{key: style[key] for key in ("color", "marker", "linestyle", "label")}, markersize=5)
        for style in STYLES.values()
    ]
    handles.append(plt.Line2D([], [], color="black", linewidth=0.7, label="LightGBM, no penalty"))
    corner = axes.flat[-1]
    corner.axis("off")
    corner.legend(
        handles=handles,
        loc="center",
        frameon=False,
        title="Up is better. Bars: ± one standard\nerror of the difference, five splits",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(canvas)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, or draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=RECORDS, help="a Parquet file, or a folder of .jsonl files")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw the figure into this file, .svg or .png")
    parser.add_argument("--all", action="store_true", help="print every method in place of the page's tables")
    parser.add_argument("--join", type=Path, metavar="FOLDER", help="put the run of this folder into --records")
    given = parser.parse_args(argv)
    if given.join:
        joined(stored(given.records), stored(given.join)).to_parquet(given.records, index=False)
        return
    records = read(given.records)
    if given.figure:
        figure(records, given.figure)
    elif given.all:
        print(all_methods(records))
    else:
        print(performance_table(records), left_table(records), sep="\n\n")


if __name__ == "__main__":
    main()
