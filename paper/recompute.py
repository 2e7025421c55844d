"""Compute the numbers of docs/summary.md again, by code of its own, and compare.

Uses pandas, NumPy and PyArrow alone: nothing of frhsic or frhsic_paper is imported. The rules that decide claims are
not repeated here; the page is compared with the verdicts that the pages under docs/reproduction/ give for each claim.

    python paper/recompute.py                # prints what differs; exit code 1 if anything does
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "paper" / "src" / "frhsic_paper" / "published.json"
SIGNS = {"✓": "hold", "◐": "hold in part", "✗": "do not hold", "?": "cannot be judged"}
LEVELS = (0.75, 0.5, 0.25)
CONFIRMATORY = ("support", "pension", "wages")
NAMES = {
    "support": "SUPPORT", "pension": "Pension", "wages": "Wages", "crime": "Crime", "compas": "COMPAS",
    "adult": "Adult", "acs_income": "ACS Income", "meps": "MEPS",
}  # fmt: skip


def claims(page: str, details: str) -> list[str]:
    """Compare counts and signs of verdicts with those that stand beside each claim on the pages of the studies."""
    found = {}
    for name, text in re.findall(r'<a id="([^"]+)"></a>\n(.*?)(?=<a id=|\n## |\Z)', details, flags=re.DOTALL):
        sign = re.search(r"^\*\*([✓◐✗?]) ", text, flags=re.MULTILINE)
        if sign:
            found[name] = sign[1]
    counts = Counter(found.values())
    said = ", ".join(f"{counts[sign]} {words}" for sign, words in SIGNS.items() if counts[sign])
    wrong = [] if f"Of {len(found)} claims of the paper, {said}." in page else [f"claims: {len(found)}: {said}"]
    for name, sign in re.findall(r"\(reproduction/[\w-]+\.md#([^)]+)\) \| ([✓◐✗?])", page):
        if found.get(name) != sign:
            wrong.append(f"claim {name}: {found.get(name)}, the page has {sign}")
    return wrong


def agreement(page: str, results: Path) -> list[str]:
    """Count the cells of the published sweep that are within two combined standard deviations of ours."""
    path = results / "tradeoff-published.parquet"
    if not path.exists():
        return [] if "sweep was not run yet" in page else ["agreement: there are no records"]
    columns = ["part", "dataset", "method", "weight", "diverged", "performance", "gdp_logit_uniform"]
    ours = pd.read_parquet(path, columns=columns)
    ours = ours[(ours["part"] == "models") & ~ours["diverged"].fillna(value=False).astype(bool)]
    method = {"Unfair": "none", "MMD (binned)": "mmd", "LAFTR (binned)": "laftr"}
    theirs = pd.DataFrame(json.loads(PUBLISHED.read_text(encoding="utf-8"))["repo_sweeps"])
    theirs["method"] = [method.get(name, name.lower()) for name in theirs["method"]]
    names = {name: key for key, name in NAMES.items()} | {"communities": "crime", "Communities": "crime"}
    theirs["dataset"] = [names.get(name, name) for name in theirs["dataset"]]
    weights = {0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0}
    printed = {(r["dataset"], r["method"], float(r["lambda"])): r for r in theirs.to_dict("records")}
    within = total = 0
    for (dataset, which, weight), own in ours.groupby(["dataset", "method", "weight"]):
        row = printed.get((dataset, which, float(weight)))
        if dataset == "acs_income" or row is None or float(weight) not in weights:
            continue
        for column, mean, spread, floor in (
            ("performance", "perf_mean", "perf_std", 0.002),
            ("gdp_logit_uniform", "gdp_mean", "gdp_std", 0.01 * printed[dataset, "none", 0.0]["gdp_mean"]),
        ):
            values = own[column].dropna().to_numpy()
            scale = max(math.hypot(values.std(), row[spread]), floor)
            within += abs(values.mean() - row[mean]) <= 2 * scale
            total += 1
    return [] if f"{within} of {total} cells of the published sweep" in page else [f"agreement: {within} of {total}"]


@cache
def _read(path: Path) -> pd.DataFrame:
    present = pq.read_schema(path).names
    columns = ("part", "dataset", "method", "weight", "repeat", "seconds")
    return pd.read_parquet(path, columns=[c for c in columns if c in present])


def costs(page: str, results: Path) -> list[str]:
    """Count records and models of each file in the index, and add up the seconds of their fleets."""
    wrong = []
    rows = [line for line in page.splitlines() if re.match(r"\| \[?(Table|Figure) \d+(\]\([^)]+\))? \|", line)]
    if len(rows) != 20:
        wrong.append(f"index: {len(rows)} rows, the paper has 7 tables and 13 figures")
    for line in rows:
        for name in re.findall(r"`([^`]+\.parquet)`", line):
            table = _read(results / name)
            text = f"{len(table):,} records"
            if {"dataset", "method", "weight", "repeat", "seconds"} <= set(table.columns):
                models = table.dropna()
                seconds = models.groupby(["part", "dataset", "method"])["seconds"].last().sum()
                text += f", {len(models):,} models in {seconds:.0f} s" if len(models) else ""
            if text not in line:
                wrong.append(f"{name}: {text}")
    return wrong


def student(t: float, freedom: int) -> float:
    """Return the two-sided p-value of Student's t with a whole number of degrees of freedom, in closed form."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, term, total = math.cos(angle), 1.0, 1.0
    if freedom % 2:
        term = total = cosine if freedom > 1 else 0.0
        for k in range(3, freedom - 1, 2):
            term *= cosine**2 * (k - 1) / k
            total += term
        inside = 2 / math.pi * (angle + math.sin(angle) * total)
    else:
        for k in range(2, freedom, 2):
            term *= cosine**2 * (k - 1) / k
            total += term
        inside = math.sin(angle) * total
    return 1 - inside


def at_levels(frame: pd.DataFrame, reference: float, constants: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the mean performance over levels of each fold, and the number of levels that are not reached."""
    performance, gdp = (np.array(frame[c].tolist(), dtype=float).T for c in ("path_performance", "path_gdp"))
    whole = np.isfinite(gdp).all(axis=1)
    performance, mean = performance[whole], gdp[whole].mean(axis=1)
    read, missed = [], 0
    for level in LEVELS:
        place = next((i for i, value in enumerate(mean) if value <= level * reference), None)
        if place is None:
            missed += 1
            read.append(constants)
        elif place == 0:
            read.append(performance[0])
        else:
            share = (mean[place - 1] - level * reference) / (mean[place - 1] - mean[place])
            read.append(performance[place - 1] * (1 - share) + performance[place] * share)
    return np.mean(read, axis=0), missed


def tuned(page: str, results: Path) -> list[str]:
    """Compute the table of the fair comparison, and the sentences about it."""
    path = results / "tuned-corrected.parquet"
    records = pd.read_parquet(path) if path.exists() else pd.DataFrame({"part": []})
    records = records[records["part"] == "final"]
    if not len(records) or not (records["method"] == "default").any():
        return [] if "no records of the tuned comparison" in page else ["tuned: there are no records"]
    scores: dict[str, dict[str, np.ndarray]] = {}
    missed, tests = {}, []
    for dataset in records["dataset"].unique():
        own = records[records["dataset"] == dataset].sort_values("split")
        base = own[own["method"] == "reference"]
        of_method = {}
        for name in own["method"].unique():
            if name != "reference":
                folds = own[own["method"] == name]
                values, missed[dataset, name] = at_levels(folds, base["gdp"].mean(), base["constant"].to_numpy())
                of_method[name] = values
        scores[dataset] = of_method
        ratio = base["test_rows"].iloc[0] / base["training_rows"].iloc[0]
        for name, values in of_method.items():
            if name != "default" and not name.endswith(", untuned") and "default" in of_method:
                d = of_method["default"] - values
                error = math.sqrt((1 / len(d) + ratio) * d.var(ddof=1))
                tests.append([dataset, name, d.mean(), student(d.mean() / error, len(d) - 1)])
    tests.sort(key=lambda test: test[3])
    running = 0.0
    for rank, test in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - rank) * test[3]))
        test[3] = running
    adjusted = {(dataset, name): (mean, p) for dataset, name, mean, p in tests}
    return [*_cells(page, scores, missed, adjusted), *_sentences(page, scores, adjusted)]


def _verdict(mean: float, p: float) -> str:
    return "=" if p >= 0.05 else "better" if mean > 0 else "worse"


def _cells(page: str, scores: dict, missed: dict, adjusted: dict) -> list[str]:
    wrong = []
    lines = page.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("| method | ") and "look" in line), None)
    if start is None:
        return ["tuned: the page has no table"]
    heads = [cell.strip().split(",")[0] for cell in lines[start].split("|")[2:-1]]
    order = [next(key for key, name in NAMES.items() if name == head) for head in heads]
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in lines[start + 2 :] if line.startswith("| ")}
    for dataset in scores:
        best = max(round(float(values.mean()), 4) for values in scores[dataset].values())
        for name, values in scores[dataset].items():
            mean = round(float(values.mean()), 4)
            text = (f"**{mean:.4f}**" if mean == best else f"{mean:.4f}") + "†" * missed[dataset, name]
            if (dataset, name) in adjusted:
                difference, p = adjusted[dataset, name]
                text += f" ({p:.2g}, {_verdict(difference, p)})"
            shown = rows[name][order.index(dataset)].strip() if name in rows and dataset in order else "nothing"
            if shown != text:
                wrong.append(f"tuned, {dataset}, {name}: {text}, the page has {shown}")
    return wrong


def _sentences(page: str, scores: dict, adjusted: dict) -> list[str]:
    wrong = []
    for group in (True, False):
        present = [d for d in NAMES if d in scores and (d in CONFIRMATORY) == group and "default" in scores[d]]
        own = [_verdict(*value) for (dataset, _), value in adjusted.items() if dataset in present]
        if not own:
            continue
        first = 0
        for dataset in present:
            own_rows = [m for m in scores[dataset] if m == "default" or m.endswith(", untuned") or "needs S" in m]
            means = [values.mean() for m, values in scores[dataset].items() if m not in own_rows]
            first += scores[dataset]["default"].mean() > max(means, default=-math.inf)
        text = (
            f"{len(own)} comparisons on {len(present)} datasets: the default is better in {own.count('better')}, worse "
            f"in {own.count('worse')}, and in {own.count('=')} it cannot be told. Its mean is the highest of all "
            f"methods that do not need S to predict on {first} of {len(present)}. Better on "
        )
        of_datasets = [[_verdict(*value) for (d, _), value in adjusted.items() if d == dataset] for dataset in present]
        text += ", ".join(f"{NAMES[d]} {own.count('better')}" for d, own in zip(present, of_datasets)) + "."
        if text not in page:
            wrong.append(text)
    return wrong


def differences(results: Path, page: Path, details: Path) -> list[str]:
    """Return what differs between the page and the records, in words; `details` is the folder of the other pages."""
    text = page.read_text(encoding="utf-8")
    return [
        *claims(text, "\n".join(path.read_text(encoding="utf-8") for path in sorted(details.glob("*.md")))),
        *agreement(text, results),
        *costs(text, results),
        *tuned(text, results),
    ]


def main() -> int:
    """Print what differs."""
    docs = ROOT / "docs"
    wrong = differences(ROOT / "results", docs / "summary.md", docs / "reproduction")
    print("\n".join(wrong) or "every number of docs/summary.md follows from the records")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
