"""Published numbers beside ours, for README.md and docs/reproduction.md.

They are those of the authors' files and of the printed main table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from rules.records import ROOT, study

WEIGHTS = (0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)
SMALL = {  # study, and columns of the print with ours
    "equal_opportunity": (
        "equal-opportunity",
        {"accuracy": "performance", "eo_gdp": "eo_gdp_logit_uniform"},
    ),
    "multi_sensitive": (
        "multi-attribute",
        {
            "accuracy": "performance",
            "gdp_age": "gdp_logit_uniform",
            "gdp_hours": "gdp_logit_uniform_2",
        },
    ),
}
METHODS = ("none", "frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr")


@cache
def agreement() -> tuple[str, ...]:
    """Return how many cells of the published sweep are within two combined standard deviations, and
    errors, of ours; and how many areas, areas on the same rows and weights, and gaps of the printed
    main table agree.
    """
    ours = sweep("published")
    if not len(ours):
        return ()
    theirs = in_our_names(published()["repo_sweeps"])
    rows = {(r["dataset"], r["method"], r["lambda"]): r for r in theirs.to_dict("records")}
    within = near = total = 0
    for cell, own in ours.groupby(["dataset", "method", "weight"]):
        dataset = cell[0]
        if dataset == "acs_income" or cell not in rows:
            continue
        row = rows[cell]
        free = rows[dataset, "none", 0]
        for column, mean, spread, floor in (
            ("performance", "perf_mean", "perf_std", 0.002),
            ("gdp_logit_uniform", "gdp_mean", "gdp_std", 0.01 * free["gdp_mean"]),
        ):
            values = own[column].dropna().to_numpy()
            scale = math.hypot(values.std(), row[spread])
            apart = abs(values.mean() - row[mean])
            within += apart <= 2 * max(scale, floor)
            near += apart <= 2 * max(scale / math.sqrt(len(values)), 1e-9)
            total += 1
    table = in_our_names(published()["paper"]["matched_performance"])
    return f"{within} of {total}", f"{near}", *beside_print(ours, theirs, table)


def sweep(protocol: str) -> pd.DataFrame:
    """Return the models of the sweep that did not diverge."""
    ours = study(f"tradeoff-{protocol}")
    if not len(ours):
        return ours
    ours = ours[(ours["part"] == "models") & ~ours["diverged"].fillna(value=False).astype(bool)]
    return ours[ours["weight"].isin(WEIGHTS)]


def areas_of(means: pd.DataFrame, gdp: str) -> dict[str, float]:
    """Return the area of each of the paper's methods from its utility and GDP by weight."""
    free = means.loc["none"].iloc[0]
    compared = means.loc[means.index.isin(METHODS, level="method"), "utility"]
    gains = (means["utility"] - compared.min()) / (compared.max() - compared.min())
    costs = (means[gdp] / free[gdp]).clip(upper=1)
    budgets = np.linspace(0, 1, 201)
    found = {}
    for method in METHODS[1:]:
        gain = gains[method]
        cost = costs[method]
        best = [max([0.0, *gain[cost <= g]]) for g in budgets]
        found[method] = float(np.trapezoid(best, budgets))
    return found


def leading() -> tuple[str, ...]:
    """Return on how many datasets of the corrected protocol FRHSIC has the largest area, by the GDP
    of scores and of decisions.
    """
    ours = sweep("corrected")
    if not len(ours):
        return ()
    counts = []
    for gdp in ("gdp_probability", "gdp_decision"):
        first = []
        for dataset, own in ours.dropna(subset=["performance", gdp]).groupby("dataset"):
            means = own.groupby(["method", "weight"])[["performance", gdp]].mean()
            means["utility"] = (-1 if dataset == "crime" else 1) * means["performance"]
            areas = areas_of(means, gdp)
            first.append(areas["frhsic"] == max(areas.values()))
        counts.append(f"{sum(first)} of {len(first)}")
    return tuple(counts)


def beside_print(
    ours: pd.DataFrame, theirs: pd.DataFrame, table: pd.DataFrame
) -> tuple[str, str, str]:
    """Compare areas and matched GDP of the published protocol with the printed main table."""
    areas = []
    alike = []
    gaps = []
    columns = ["performance", "gdp_logit_uniform"]
    for dataset, own in ours.dropna(subset=columns).groupby("dataset"):
        means = own.groupby(["method", "weight"])[columns].mean().round(4)
        deviations = own.groupby(["method", "weight"])["gdp_logit_uniform"].std(ddof=0)
        sign = -1 if dataset == "crime" else 1
        means["utility"] = sign * means["performance"]
        base = means.loc["none"].iloc[0]
        limit = base["utility"] * (1 - 0.01 * sign)
        own_areas = areas_of(means, "gdp_logit_uniform")
        for row in table[table["dataset"] == dataset].to_dict("records"):
            points = means.loc[row["method"]]
            if row["method"] != "none":
                areas.append(abs(own_areas[row["method"]] - row["naup"]) <= 0.05)
                if dataset != "acs_income" and row["method"] != "frhsic":
                    alike.append(areas[-1])
            inside = points[points["utility"] >= limit]
            if len(inside) and not pd.isna(row["gdp"]):
                weight = inside["gdp_logit_uniform"].idxmin()
                file = theirs[(theirs["dataset"] == dataset) & (theirs["method"] == row["method"])]
                apart = (file["perf_mean"] - row["perf"]).abs()
                apart += (file["gdp_mean"] - row["gdp"]).abs()
                scale = math.hypot(
                    deviations[row["method"], weight], file.loc[apart.idxmin(), "gdp_std"]
                )
                mean = inside.loc[weight, "gdp_logit_uniform"]
                gaps.append(abs(mean - row["gdp"]) <= 2 * scale)
    counted = [f"{sum(some)} of {len(some)}" for some in (areas, alike, gaps)]
    return counted[0], counted[1], counted[2]


def beside_small_tables() -> list[str]:
    """Return how many numbers of the printed tables 2, 4 and 5, of one run each, are within two
    standard deviations of ours over splits, under the published protocol.
    """
    tables = [list(deviations_over_heads())]
    tables += [list(one_run(table)) for table in SMALL]
    near = [
        [abs(np.mean(own) - value) <= 2 * np.std(own, ddof=1) for own, value in cells]
        for cells in tables
    ]
    return [f"{sum(one)} of {len(one)}" for one in near]


def deviations_over_heads() -> Iterator[tuple[pd.Series[float], float]]:
    """Yield deviations of GDP over heads, by split, with the printed one."""
    heads = study("transfer-published").query("part == 'heads'")
    ours = heads.groupby(["dataset", "method", "weight", "repeat"])["gdp"].std(ddof=0)
    for row in published()["paper"]["transfer_cross_head_std"]:
        method = row["method"].lower().replace("unfair", "none")
        for dataset, weight in (("adult", 10), ("crime", 100)):
            value = row[f"{dataset}_lambda{weight}"]
            if value is not None:
                yield ours[dataset, method, 0 if method == "none" else weight], value


def one_run(table: str) -> Iterator[tuple[pd.Series[float], float]]:
    """Yield accuracies and gaps, by split, with the printed one."""
    name, columns = SMALL[table]
    records = study(f"{name}-published").query("part == 'models'")
    for row in published()["paper"][table]:
        method = row.get("variant", row.get("method")).replace("Unfair", "none")
        own = records[
            (records["dataset"] == row.get("dataset", "adult").lower())
            & (records["method"] == method.removeprefix("FRHSIC-"))
            & (records["weight"] == row["lambda"])
        ]
        yield from ((own[ours], row[theirs]) for theirs, ours in columns.items())


@cache
def published() -> Any:
    """Return the printed tables, and the numbers of the authors' files."""
    path = ROOT / "paper" / "src" / "frhsic_paper" / "published.json"
    return json.loads(path.read_text(encoding="utf-8"))


def in_our_names(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return published rows as a table with the names of methods and datasets in the records."""
    table = pd.DataFrame(rows)
    methods = {"unfair": "none", "mmd (binned)": "mmd", "laftr (binned)": "laftr"}
    table["method"] = table["method"].str.lower().replace(methods)
    datasets = {"acs income": "acs_income", "communities": "crime"}
    table["dataset"] = table["dataset"].str.lower().replace(datasets)
    return table
