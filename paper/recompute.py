"""Compute the numbers of docs/reproduction.md again, by code of its own, and compare.

Uses pandas, NumPy and PyArrow alone: nothing of frhsic or frhsic_paper is imported. The rules that
decide claims are not repeated here; the page is compared with the verdicts that the pages under
docs/reproduction/ give for each claim.

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
VERDICTS = {  # by its sign: of one claim, of several
    "✓": ("holds", "hold"),
    "◐": ("holds in part", "hold in part"),
    "✗": ("does not hold", "do not hold"),
    "?": ("cannot be judged", "cannot be judged"),
}
KINDS = {
    "results": "claims about results",
    "reporting": "about reporting (what the paper says of its own set-up and tables)",
    "theory": "theorems",
}
LEVELS = (0.75, 0.5, 0.25)
NAMES = {
    "support": "SUPPORT",
    "pension": "Pension",
    "wages": "Wages",
    "crime": "Crime",
    "compas": "COMPAS",
    "adult": "Adult",
    "acs_income": "ACS Income",
    "meps": "MEPS",
}


def in_words(signs: list[str]) -> str:
    """Return how many verdicts there are of each kind."""
    counts = Counter(signs)
    return ", ".join(
        f"{counts[sign]} {names[counts[sign] > 1]}"
        for sign, names in VERDICTS.items()
        if counts[sign]
    )


def overall(signs: list[str]) -> str:
    """Return the verdict of a table or figure, from those of its claims."""
    judged = set(signs) - {"?"}
    if len(set(signs)) == 1:
        return VERDICTS[signs[0]][0]
    if not signs:
        return "no claim"
    one = VERDICTS[judged.pop() if len(judged) == 1 else "◐"][0]
    return f"{one}: {in_words(signs)}"


def claims(page: str, details: str) -> list[str]:
    """Compare counts, verdicts and the index with what stands beside each claim on the pages of
    the studies.
    """
    found: dict[str, tuple[str, str]] = {}
    items: dict[tuple[str, str], list[str]] = {}
    for name, text in re.findall(
        r'<a id="([^"]+)"></a>\n(.*?)(?=<a id=|\n## |\Z)', details, flags=re.DOTALL
    ):
        sign = re.search(r"^\*\*([✓◐✗?]) ", text, flags=re.MULTILINE)
        if sign:
            first = text.split("\n")[0]
            kind = "reporting" if first.endswith("; about reporting)") else "results"
            found[name] = sign[1], "theory" if name.startswith("theorem-") else kind
            standing = re.search(r"; for ((?:(?:Table|Figure) \d+(?:, )?)+)", first)
            for number in standing[1].split(", ") if standing else ():
                items.setdefault((number, kind), []).append(sign[1])
    parts = []
    for kind, words in KINDS.items():
        signs = [sign for sign, own in found.values() if own == kind]
        parts.append(f"of {len(signs)} {words}, {in_words(signs)}")
    said = "; ".join(parts).capitalize() + "."
    wrong = [] if said in page else [f"claims: {said}"]
    for name, verdict in re.findall(r"\(reproduction/[\w-]+\.md#([^)]+)\) \| ([^|]+?) \|", page):
        if name in found and VERDICTS[found[name][0]][0] != verdict:
            wrong.append(f"claim {name}: {found[name][0]}, the page has {verdict}")
    rows = re.findall(
        r"^\| \[((?:Table|Figure) \d+)\]\([^)]+\) \| [^|]+ \| (.*?) \| (.*?) \|$",
        page,
        re.MULTILINE,
    )
    for number, *verdicts in rows:
        own = [overall(items.get((number, kind), [])) for kind in ("results", "reporting")]
        if own != verdicts:
            wrong.append(f"index, {number}: {' | '.join(own)}")
    if len(rows) != 19:
        wrong.append(f"index: {len(rows)} rows, the paper has 7 tables and 12 figures of results")
    return wrong


def agreement(page: str, results: Path) -> list[str]:
    """Count the cells of the published sweep that are within two combined standard deviations, and
    errors, of ours.
    """
    path = results / "tradeoff-published.parquet"
    if not path.exists():
        return [] if "sweep was not run yet" in page else ["agreement: there are no records"]
    columns = [
        "part",
        "dataset",
        "method",
        "weight",
        "diverged",
        "performance",
        "gdp_logit_uniform",
    ]
    ours = pd.read_parquet(path, columns=columns)
    ours = ours[(ours["part"] == "models") & ~ours["diverged"].fillna(value=False).astype(bool)]
    theirs = pd.DataFrame(_published()["repo_sweeps"])
    theirs["method"], theirs["dataset"] = _keys(theirs["method"]), _datasets(theirs["dataset"])
    weights = {0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0}
    printed = {
        (r["dataset"], r["method"], float(r["lambda"])): r for r in theirs.to_dict("records")
    }
    within = near = total = 0
    for (dataset, which, weight), own in ours.groupby(["dataset", "method", "weight"]):
        row = printed.get((dataset, which, float(weight)))
        if dataset == "acs_income" or row is None or float(weight) not in weights:
            continue
        for column, mean, spread, floor in (
            ("performance", "perf_mean", "perf_std", 0.002),
            (
                "gdp_logit_uniform",
                "gdp_mean",
                "gdp_std",
                0.01 * printed[dataset, "none", 0.0]["gdp_mean"],
            ),
        ):
            values = own[column].dropna().to_numpy()
            scale, apart = math.hypot(values.std(), row[spread]), abs(values.mean() - row[mean])
            within += apart <= 2 * max(scale, floor)
            near += apart <= 2 * max(scale / math.sqrt(len(values)), floor)
            total += 1
    areas, gaps = beside_print(ours, theirs, weights)
    said = (
        f"{within} of {total} cells of the authors' files are within two combined standard"
        f" deviations of ours, {near} within two standard errors. Against the printed Table 1, nAUP"
        f" is within .05 of ours in {areas} cells and GDP within two combined standard deviations"
        f" in {gaps}."
    )
    return [] if said in page else [f"agreement: {said}"]


def beside_print(ours: pd.DataFrame, theirs: pd.DataFrame, weights: set[float]) -> tuple[str, str]:
    """Compare areas and matched GDP of the published protocol with the printed main table."""
    table = pd.DataFrame(_published()["paper"]["matched_performance"])
    table["method"], table["dataset"] = _keys(table["method"]), _datasets(table["dataset"])
    areas, gaps = [], []
    six = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr")
    columns = ["performance", "gdp_logit_uniform"]
    for dataset, own in ours.dropna(subset=columns).groupby("dataset"):
        own = own[own["weight"].isin(weights)]
        means = own.groupby(["method", "weight"])[columns].mean().round(4)
        deviations = own.groupby(["method", "weight"])["gdp_logit_uniform"].std(ddof=0)
        sign = -1 if dataset == "crime" else 1
        means["utility"] = sign * means["performance"]
        base = means.loc["none"].iloc[0]
        limit = base["utility"] * (1 - 0.01 * sign)
        compared = means.loc[[m for m in ("none", *six) if m in means.index.levels[0]], "utility"]
        low, high = compared.min(), compared.max()
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


@cache
def _published() -> dict[str, dict[str, list[dict[str, object]]]]:
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))


def _keys(names: pd.Series) -> list[str]:
    """Return the names of methods in the records."""
    other = {"Unfair": "none", "MMD (binned)": "mmd", "LAFTR (binned)": "laftr"}
    return [other.get(name, name.lower()) for name in names]


def _datasets(names: pd.Series) -> list[str]:
    """Return the names of datasets in the records."""
    keys = {name: key for key, name in NAMES.items()} | dict.fromkeys(
        ("communities", "Communities"), "crime"
    )
    return [keys.get(name, name) for name in names]


@cache
def _read(path: Path) -> pd.DataFrame:
    present = pq.read_schema(path).names
    columns = ("part", "dataset", "method", "weight", "repeat", "seconds")
    return pd.read_parquet(path, columns=[c for c in columns if c in present])


def costs(details: str, results: Path) -> list[str]:
    """Count the records and models of each file that a study's page names, and add up the seconds
    of their fleets.
    """
    wrong = []
    for name, *cells in sorted(
        set(re.findall(r"\| `results/([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|", details))
    ):
        table = _read(results / name)
        own = [f"{len(table):,}", "—", "—"]
        if {"dataset", "method", "weight", "repeat", "seconds"} <= set(table.columns):
            models = table.dropna()
            seconds = models.groupby(["part", "dataset", "method"])["seconds"].last().sum()
            own[1:] = [f"{len(models):,}", f"{seconds:.0f} s"] if len(models) else own[1:]
        if cells != own:
            wrong.append(f"{name}: {', '.join(own)}")
    return wrong


def student(t: float, freedom: int) -> float:
    """Return the two-sided p-value of Student's t with a whole number of degrees of freedom, in
    closed form.
    """
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


def half_width(values: list[float]) -> float:
    """Return half of the 95 % t interval of a mean."""
    low, high = 0.0, 1e4
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if student(middle, len(values) - 1) > 0.05 else (low, middle)
    return low * float(np.std(values, ddof=1)) / math.sqrt(len(values))


YARDSTICKS = (
    ("Log loss or squared error at equal GDP", "gdp", "loss", 1, "score"),
    ("AUC at equal rank gap", "rank_gap", "auc", -1, "rank"),
    ("Accuracy at equal GDP of decisions", "gdp_decisions", "hits", -1, "decision"),
)
FIRST, CONTRACTED = "closed form", "contracted, no penalty"
LIBRARIES = (
    "AIF360 Reweighing, 10 bands",
    "fairlearn GridSearch, 4 bands",
    "fairlearn EG, 10 bands",
)
PENALTIES = {
    "frhsic": "FRHSIC",
    "frem": "FREM",
    "reg-gdp": "Reg-GDP",
    "adv": "ADV",
    "mmd": "MMD (binned)",
    "laftr": "LAFTR (binned)",
    "dcor": "dCor",
}
FRESH = ("mothers", "happiness", "chains", "reading", "college", "men")


def read_off(
    gap: np.ndarray, loss: np.ndarray, level: float, constant: float, widest: float
) -> float:
    """Return the least loss at a level: of a single point, or of a mean of two points on either
    side of the level.
    """
    last = min(range(len(gap)), key=lambda k: (gap[k], loss[k]), default=None)
    if (
        last is None or gap[last] > level
    ):  # the last point and the constant, mixed where mixing is allowed
        share = level / gap[last] if last is not None and math.isinf(widest) else 0.0
        return constant + share * (loss[last] - constant) if share else constant
    best = constant
    front = [
        k
        for k in range(len(gap))
        if not any((gap <= gap[k]) & (loss <= loss[k]) & ((gap < gap[k]) | (loss < loss[k])))
    ]
    front.sort(key=lambda k: gap[k])
    for place, k in enumerate(front):
        if gap[k] > level:
            continue
        best = loss[k]
        if place + 1 < len(front) and gap[front[place + 1]] > level:
            after = front[place + 1]
            if gap[after] - gap[k] <= widest:
                share = (level - gap[k]) / (gap[after] - gap[k])
                best = (1 - share) * loss[k] + share * loss[after]
    return float(best)


def yardsticks(page: str, results: Path) -> list[str]:
    """Compute the sentences about the closed form at its defaults and its rivals in other
    libraries.
    """
    path = results / "yardsticks-corrected.parquet"
    if not path.exists():
        return (
            [] if "no records of the comparison" in page else ["yardsticks: there are no records"]
        )
    return [text for text in _of_libraries(path) if text not in page]


@cache
def _of_libraries(path: Path) -> list[str]:
    records = pd.read_parquet(path)
    return _sentences(records[records["part"] == "test"], LIBRARIES, 0.2 / 0.6)


def tuned(page: str, results: Path) -> list[str]:
    """Compute the sentences about the closed form and the paper's penalties, tuned by the same
    search.
    """
    path = results / "tuned-corrected.parquet"
    if not path.exists():
        return (
            []
            if "was not run yet: `frhsic reproduce tuned`" in page
            else ["tuned: there are no records"]
        )
    return [text for text in _of_penalties(path) if text not in page]


@cache
def _of_penalties(path: Path) -> list[str]:
    records = pd.read_parquet(path)
    records = records[(records["part"] == "final") & records["dataset"].isin(FRESH)]
    records = records.assign(method=records["variant"])
    return _sentences(
        records, tuple(PENALTIES), float((records["test_rows"] / records["training_rows"]).mean())
    )


def _sentences(records: pd.DataFrame, rivals: tuple[str, ...], ratio: float) -> list[str]:
    """Return the sentences of a comparison."""
    found = {
        name: _compared(records, (CONTRACTED, *rivals), ratio, *yardstick)
        for name, *yardstick in YARDSTICKS
    }
    tests = sorted((p, name, mean) for name, (_, _, own) in found.items() for mean, p in own)
    running, verdicts = 0.0, Counter()
    for place, (p, name, mean) in enumerate(tests):
        running = max(running, min(1.0, (len(tests) - place) * p))
        verdicts[name, "not" if running >= 0.05 else "better" if mean < 0 else "worse"] += 1

    def counted(names: list[str]) -> str:
        better, worse, neither = (
            sum(verdicts[n, v] for n in names) for v in ("better", "worse", "not")
        )
        return f"better in {better}, worse in {worse}, not significant in {neither}"

    least = sum(
        np.mean(regrets[FIRST]) <= min(map(np.mean, regrets.values()))
        for _, regrets, _ in found.values()
    )
    lead = f"The {FIRST} has the least mean regret by {least} of {len(found)} yardsticks"
    texts = [f"{lead}; of {len(tests)} comparisons after Holm it is {counted(list(found))}."]
    for name, (ranks, regrets, _) in found.items():
        mean = {m: 100 * float(np.mean(values)) for m, values in regrets.items()}
        second = min((m for m in mean if m != FIRST), key=lambda m: mean[m])
        texts.append(
            f"{name}: mean rank {np.mean(ranks[FIRST]):.1f} ± {half_width(ranks[FIRST]):.1f} of"
            f" {len(ranks)} over {len(ranks[FIRST])} tables, mean regret {mean[FIRST]:.1f} ±"
            f" {100 * half_width(regrets[FIRST]):.1f} % ({PENALTIES.get(second, second)}:"
            f" {mean[second]:.1f} %); {counted([name])}."
        )
    return texts


Compared = tuple[dict[str, list[float]], dict[str, list[float]], list[tuple[float, float]]]


def _compared(
    records: pd.DataFrame,
    rivals: tuple[str, ...],
    ratio: float,
    gap: str,
    performance: str,
    sign: int,
    aim: str,
) -> Compared:
    """Return ranks and regrets of each method by table, and differences and p-values of the closed
    form.
    """
    ranks: dict[str, list[float]] = {}
    regrets: dict[str, list[float]] = {}
    tests = []
    for _, own in records.dropna(subset=[gap, performance]).groupby("dataset"):
        paths = {
            m: own[own["method"] == (f"{m} ({aim})" if m == FIRST else m)] for m in (FIRST, *rivals)
        }
        paths = {m: p for m, p in paths.items() if len(p)}
        reference, constant = (
            own[own["method"] == m].set_index("split") for m in ("reference", "constant")
        )
        if not len(reference) or reference[gap].mean() < 3 * reference[gap].std():
            continue
        loss = {(m, level): {} for m in paths for level in LEVELS}
        for m, whole in paths.items():
            for split, points in whole.groupby("split"):
                if aim == "rank":
                    points = points[points["spread"] > 1e-6]
                full = float(reference[gap][split])
                for level in LEVELS:
                    at = (
                        points[gap].to_numpy(float),
                        sign * points[performance].to_numpy(float),
                        level * full,
                    )
                    base = sign * float(constant[performance][split])
                    loss[m, level][split] = read_off(
                        *at, base, 0.25 * full if aim == "rank" else math.inf
                    )
        cells: dict[str, list[tuple[float, float]]] = {m: [] for m in paths}
        for level in LEVELS:
            mean = {m: np.mean(list(loss[m, level].values())) for m in paths}
            for m in paths:
                common = list(loss[m, level])
                gain = sign * float((constant[performance] - reference[performance])[common].mean())
                rank = (
                    1
                    + sum(v < mean[m] for v in mean.values())
                    + 0.5 * (sum(v == mean[m] for v in mean.values()) - 1)
                )
                cells[m].append((rank, (mean[m] - min(mean.values())) / gain))
        for m in paths:
            ranks.setdefault(m, []).append(float(np.mean([c[0] for c in cells[m]])))
            regrets.setdefault(m, []).append(float(np.mean([c[1] for c in cells[m]])))
        for m in paths:
            common = [s for s in loss[FIRST, LEVELS[0]] if s in loss[m, LEVELS[0]]]
            if m != FIRST and len(common) > 1:
                d = np.array(
                    [
                        np.mean([loss[FIRST, lv][s] - loss[m, lv][s] for lv in LEVELS])
                        for s in common
                    ]
                )
                error = math.sqrt((1 / len(d) + ratio) * d.var(ddof=1))
                tests.append((d.mean(), student(d.mean() / error, len(d) - 1)))
    return ranks, regrets, tests


def differences(results: Path, page: Path, details: Path) -> list[str]:
    """Return what differs between the page and the records, in words; `details` is the folder of
    the other pages.
    """
    text = page.read_text(encoding="utf-8")
    pages = "\n".join(path.read_text(encoding="utf-8") for path in sorted(details.glob("*.md")))
    return [
        *claims(text, pages),
        *agreement(text, results),
        *costs(pages, results),
        *yardsticks(text, results),
        *tuned(text, results),
    ]


def main() -> int:
    """Print what differs."""
    docs = ROOT / "docs"
    wrong = differences(ROOT / "results", docs / "reproduction.md", docs / "reproduction")
    print("\n".join(wrong) or "every number of docs/reproduction.md follows from the records")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
