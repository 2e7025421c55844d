"""Published numbers beside ours, for README.md and docs/reproduction.md.

They are those of the authors' files and of the printed main table.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from rules.records import ROOT, study

WEIGHTS = (0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0)


@cache
def agreement() -> tuple[str, ...]:
    """Return how many cells of the published sweep are within two combined standard deviations, and
    errors, of ours; and how many areas and gaps of the printed main table agree.
    """
    ours = study("tradeoff-published")
    if not len(ours):
        return ()
    ours = ours[(ours["part"] == "models") & ~ours["diverged"].fillna(value=False).astype(bool)]
    ours = ours[ours["weight"].isin(WEIGHTS)]
    path = ROOT / "paper" / "src" / "frhsic_paper" / "published.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    theirs = in_our_names(published["repo_sweeps"])
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
            near += apart <= 2 * max(scale / math.sqrt(len(values)), floor)
            total += 1
    table = in_our_names(published["paper"]["matched_performance"])
    return f"{within} of {total}", f"{near}", *beside_print(ours, theirs, table)


def beside_print(ours: pd.DataFrame, theirs: pd.DataFrame, table: pd.DataFrame) -> tuple[str, str]:
    """Compare areas and matched GDP of the published protocol with the printed main table."""
    areas = []
    gaps = []
    methods = ("none", "frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr")
    columns = ["performance", "gdp_logit_uniform"]
    for dataset, own in ours.dropna(subset=columns).groupby("dataset"):
        means = own.groupby(["method", "weight"])[columns].mean().round(4)
        deviations = own.groupby(["method", "weight"])["gdp_logit_uniform"].std(ddof=0)
        sign = -1 if dataset == "crime" else 1
        means["utility"] = sign * means["performance"]
        base = means.loc["none"].iloc[0]
        limit = base["utility"] * (1 - 0.01 * sign)
        compared = means.loc[means.index.isin(methods, level="method"), "utility"]
        low = compared.min()
        high = compared.max()
        for row in table[table["dataset"] == dataset].to_dict("records"):
            points = means.loc[row["method"]]
            if row["method"] != "none":
                cost = (points["gdp_logit_uniform"] / base["gdp_logit_uniform"]).clip(upper=1)
                gain = (points["utility"] - low) / (high - low)
                budgets = np.linspace(0, 1, 201)
                best = [max([0.0, *gain[cost <= g]]) for g in budgets]
                area = float(np.trapezoid(best, budgets))
                areas.append(abs(area - row["naup"]) <= 0.05)
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
    return f"{sum(areas)} of {len(areas)}", f"{sum(gaps)} of {len(gaps)}"


def in_our_names(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return published rows as a table with the names of methods and datasets in the records."""
    table = pd.DataFrame(rows)
    methods = {"unfair": "none", "mmd (binned)": "mmd", "laftr (binned)": "laftr"}
    table["method"] = table["method"].str.lower().replace(methods)
    datasets = {"acs income": "acs_income", "communities": "crime"}
    table["dataset"] = table["dataset"].str.lower().replace(datasets)
    return table
