"""Compute every measured number of the pages again, by code of its own, and compare.

Uses pandas, NumPy and PyArrow alone: nothing of frhsic, frhsic_paper or benchmarks/ is imported.

    python paper/recompute.py            # prints what differs; exit code 1 if anything does
    python paper/recompute.py --write    # puts the numbers of the records into the pages

A rule is a phrase of a page as the records give it, and claims the numbers in it. A phrase that
does not stand on its page and a number that no phrase claims are printed. A number is written in
digits, as a word before "tables", "cells", "comparisons", "times" or a unit of time, or as [[N]]
where it is to be filled in. Not read are code, link targets, comments, numbers of tables and
figures, years in brackets, and digits that follow a letter (AIF360). Settings, formulas and
quotations are in `GIVEN`: no measurement gives them.

The rules that decide claims are not repeated here: counts of verdicts come from the pages under
docs/reproduction/.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "paper" / "src" / "frhsic_paper" / "published.json"

# Reading a page

WORDS = re.findall(r"\w+", "zero one two three four five six seven eight nine ten eleven twelve")
NUMBER = (
    r"(?<![\w.])−?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
    r"|\b(?i:half an?|(?<=in )an?)(?=\s(?:second|minute|hour)\b)"
    rf"|\b(?i:a few|{'|'.join(WORDS[2:])})"
    r"(?=\s(?:\w+\s)?(?:tables|cells|comparisons|times|seconds|minutes|hours)\b)"
    r"|\[\[\w\]\]"
)
UNREAD = re.compile(
    r"^```.*?^```|^<!--.*?-->|`(?:[^`\n]|\n(?!\n))*`|<[a-z][^>]*>|\]\([^)]*\)"
    r"|\b(?:Table|Figure|Python) \d[\d.]*|\(\d{4}\)",
    re.DOTALL | re.MULTILINE,
)


def read(text: str) -> str:
    """Return a text of the same length without the digits that are not read."""
    return UNREAD.sub(lambda found: re.sub(r"\d", "#", found[0]), text)


@cache
def pattern(phrase: str, exact: bool = True) -> str:
    """Return what finds a phrase on a page that was read, with any numbers if it need not be
    exact.
    """
    parts = re.split(f"({NUMBER})", read(phrase))
    for place, part in enumerate(parts):
        literal = re.sub(r"(?:\\?\s)+", r"\\**\\s+\\**", re.escape(part))
        parts[place] = literal if exact or place % 2 == 0 else f"({NUMBER})"
    return rf"(?<!\d){''.join(parts)}(?!\d|[.,]\d)"


def compare(text: str, phrases: Iterable[str]) -> tuple[list[str], str]:
    """Return what differs between a page and the phrases of its rules, and the page with the
    numbers of the phrases.
    """
    page = read(text)
    unclaimed = {found.start(): found for found in re.finditer(NUMBER, page)}
    missing = []
    for phrase in dict.fromkeys(phrases):
        places = list(re.finditer(pattern(phrase), page))
        for place in places:
            for start in range(*place.span()):
                unclaimed.pop(start, None)
        if not places:
            missing.append(phrase)
    wrong = []
    changes: list[tuple[int, int, str]] = []
    for phrase in missing:
        numbers = re.findall(NUMBER, read(phrase))
        places = [
            place
            for place in re.finditer(pattern(phrase, exact=False), page)
            if any(place.start(k + 1) in unclaimed for k in range(len(numbers)))
        ]
        if not places:
            wrong.append(f"no place for: {phrase}")
            continue
        nearest = max(places, key=lambda p: sum(a == b for a, b in zip(p.groups(), numbers)))
        wrong.append(f"{_line(nearest[0])}\n    the records give: {phrase}")
        for k, number in enumerate(numbers):
            changes.append((*nearest.span(k + 1), number))
            unclaimed.pop(nearest.start(k + 1), None)
    for found in unclaimed.values():
        around = page[max(found.start() - 40, 0) : found.end() + 30]
        wrong.append(f"no rule for {found[0]}: …{_line(around)}…")
    for start, end, number in sorted(changes, reverse=True):
        text = text[:start] + number + text[end:]
    return wrong, text


def _line(text: str) -> str:
    return " ".join(text.split())


# Writing numbers


def short(value: float, digits: int) -> str:
    """Return a share without the zero before its point."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def span(values: Iterable[float], digits: int) -> str:
    """Return the least and the largest of some shares."""
    some = list(values)
    return f"{short(min(some), digits)} to {short(max(some), digits)}"


def percents(shares: Iterable[float]) -> str:
    """Return the least and the largest of some shares in %."""
    some = [round(100 * share) for share in shares]
    return f"{min(some)} to {max(some)} %"


def two(value: float) -> str:
    """Return a number with two digits that count, or with all before its point."""
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}"


def seconds(value: float) -> str:
    """Return a time in seconds or milliseconds."""
    return f"{two(value)} s" if value > 0.5 else f"{two(1000 * value)} ms"


# Records


@cache
def study(root: Path, name: str) -> pd.DataFrame:
    """Return the records of a study under a protocol; none if it was not run."""
    path = root / "results" / f"{name}.parquet"
    return pd.read_parquet(path) if path.exists() else pd.DataFrame()


@cache
def benchmark(root: Path, name: str) -> Any:
    """Return what a program in benchmarks/ wrote; the lines of a file as a table."""
    text = (root / "benchmarks" / "results" / name).read_text(encoding="utf-8")
    if name.endswith(".jsonl"):
        return pd.DataFrame([json.loads(line) for line in text.splitlines()])
    return json.loads(text)


def machine(record: dict[str, Any]) -> str:
    """Return the name of the processor that a record was made on."""
    return str(record.get("machine") or record["hardware"]).replace("(R)", "")


# Representations


def probes_that_count(root: Path) -> pd.DataFrame:
    """Return what probes read of S from coupled tables, means over splits.

    A probe counts if it reads at least 80 % of the best probe's R² from the raw columns, and finds
    a planted column.
    """
    lines = []
    for record in benchmark(root, "coupling/leak.jsonl").to_dict("records"):
        for probe, (leak, error) in record["leak"].items():
            line = {"leak": leak, "error": error, "splits": 1}
            for name in ("shuffled", "planted"):
                if isinstance(record[name], dict):
                    line[name] = record[name][probe][0]
            lines.append(
                {key: record[key] for key in ("table", "method")} | {"probe": probe} | line
            )
    groups = pd.DataFrame(lines).groupby(["method", "table", "probe"])
    probes = groups.mean()
    probes["error"] /= np.sqrt(groups.size())
    raw = probes.loc["raw", "leak"]
    readable = raw >= 0.8 * raw.groupby("table").transform("max")
    least = np.maximum(probes["leak"].clip(lower=0), probes["shuffled"] + 2 * probes["error"])
    found = probes[probes["planted"] > least].reset_index("method")
    return found[readable.reindex(found.index)].set_index("method", append=True)


def coupling(root: Path) -> Iterator[str]:
    """Yield what is said of ParityCoupling."""
    probes = probes_that_count(root)
    plain, named = (probes.xs(method, level="method") for method in ("coupling", "named"))
    tables = plain.index.get_level_values("table").nunique()
    yield (
        f"the best probe has an R² of at most {short(plain['leak'].max(), 4)}"
        f" ({short(named['leak'].max(), 4)} if `fit` names targets)"
    )
    ridge = plain.xs("ridge", level="probe")
    seen = ridge[ridge["leak"] > 2 * ridge["error"]]
    yield (
        f"R² of at most {short(seen['leak'].max(), 4)} where significant, on {WORDS[len(seen)]}"
        " tables"
    )
    records = benchmark(root, "coupling/leak.jsonl")
    yield f"rows of {WORDS[records['table'].nunique()]} tables (probes on {WORDS[tables]}:"
    means = records["recovery"].map(lambda columns: np.mean([*columns.values()]))
    kept = records.assign(kept=means).pivot(
        index=["table", "split"], columns="method", values="kept"
    )
    shares = kept.div(kept["raw"], axis=0).groupby("table").mean()
    yield f"{percents(shares['coupling'])} of the R² with which X predicts other columns"
    yield f"with {percents(shares['named'])} of the R² from X"
    stay = records[records["method"] == "coupling"].groupby("table")["untouched"].mean()
    yield f"{percents(stay)}, fewest where X nearly determines S"


def heads(root: Path) -> pd.DataFrame:
    """Return by Z and table the share of heads that follow S, and their median gap.

    A head is its kind, its column, the standardized gap and its p-value, and more.
    """
    records = benchmark(root, "encoder/heads.jsonl")
    each = [np.array([head[2:4] for head in some], dtype=float) for some in records["heads"]]
    found = records[["method", "table"]].assign(
        gap=[np.median(one[:, 0]) for one in each],
        beyond=[np.mean(one[:, 1] < 0.05) for one in each],
    )
    return found.groupby(["method", "table"]).mean()


def encoder(root: Path) -> Iterator[str]:
    """Yield what is said of ParityEncoder."""
    leak = benchmark(root, "encoder/leak.jsonl")
    best = [max(told[0] for told in probes.values()) for probes in leak["probes"]]
    leak = leak.assign(best=best, **{"from raw": leak["raw"].str[0]})
    many = leak["rows"] >= 3000
    means = leak.groupby("table")[["rows", "from raw", "chi2 0", "head None", "head 0"]].mean()
    fewest, most = (f"{round(rows, -3):,}" for rows in (leak["rows"].min(), leak["rows"].max()))
    yield f"new rows of {WORDS[len(means)]} tables"
    yield f"with {fewest} to {most} rows to fit"
    yield (
        f"from 3,000 rows on, R² of at most {short(leak[many]['best'].max(), 3)} (raw columns"
        f" {span(means['from raw'], 2)})"
    )
    large = means["rows"] >= 3000
    bound = benchmark(root, "encoder/bound.jsonl")
    over = int((bound["upper end"] < bound[["bound", "worst head"]].max(axis=1)).sum())
    yield (
        f"at most {short(means[large]['chi2 0'].max(), 3)} from 3,000 rows on,"
        f" {short(means[~large]['chi2 0'].max(), 3)} on {fewest} rows; its upper end was"
        f" {f'exceeded in {over} of' if over else 'never exceeded in'} {len(bound)} fits on"
        f" {WORDS[bound['law'].nunique()]} known distributions"
    )
    free, solved = means["head None"], means["head 0"]
    yield (
        f"AUC falls from {short(free['adult'], 2)} to {short(solved['adult'], 2)} on Adult, and"
        f" from {short(free['credit'], 3)} to {short(solved['credit'], 3)} on Credit"
    )
    lost = excess(benchmark(root, "encoder/losses.jsonl"))
    yield f"heads of Z cost {lost:.1f} % of the gain over a constant"
    found = heads(root)
    own = found[[name.startswith("encoder") for name in found.index.get_level_values("method")]]
    yield (
        f"{percents(own['beyond'])} on {WORDS[found.index.get_level_values('table').nunique()]}"
        f" tables (after `ParityCoupling` {percents(found.loc['coupling', 'beyond'])}); the median"
        " gap is"
        f" {span(own['gap'], 3)} standard deviations (raw columns"
        f" {span(found.loc['raw', 'gap'], 2)})"
    )
    less, more, total, level = compared(benchmark(root, "encoder/rivals.jsonl"))
    yield (
        f"in {less} of {total} comparisons, and better in"
        f" {more or 'none'}; our own penalty `hsic` does as well on {WORDS[level]} tables"
    )
    releases = benchmark(root, "encoder/releases.jsonl")
    adult = releases[releases["table"] == "adult"]
    alone, refit, looser = (
        np.mean([told["chi2"] for told in adult[name]])
        for name in ("first", "first and refit, 5 % other rows", "first and limit 50%")
    )
    yield (
        f"on Adult χ² is {short(alone, 3)} for one release, {short(refit, 2)} together with"
        f" a refit, and {short(looser, 2)} together with one at the limit 50 %"
    )


def excess(records: pd.DataFrame) -> float:
    """Return the median, over trade-offs, of the loss of a fresh head on Z beyond the closed form's
    at the same GDP, in % of the gain.

    The closed form's loss is made a decreasing function of GDP by pooling neighbours that are not.
    """
    each: list[float] = []
    for record in records.to_dict("records"):
        points = sorted(record["closed"])
        pools: list[list[float]] = []  # loss and size
        for _, loss in points:
            pools.append([loss, 1])
            while len(pools) > 1 and pools[-1][0] >= pools[-2][0]:
                last, size = pools.pop()
                before = pools[-1]
                before[0] = (before[0] * before[1] + last * size) / (before[1] + size)
                before[1] += size
        smooth = [loss for loss, size in pools for _ in range(int(size))]
        gaps, losses = np.transpose(record["fresh head"])
        beside = np.interp(gaps, [gap for gap, _ in points], smooth)
        each += list(100 * (losses - beside) / (record["constant"] - record["free"]))
    return float(np.median(each))


def compared(records: pd.DataFrame) -> tuple[int, int, int, int]:
    """Return in how many comparisons (table, network) trees read less of S from the encoder at
    equal performance, beyond two errors; in how many more; in how many there is an error; and on
    how many tables the penalty `hsic` is within two errors.

    Performances are five that both reach; leaks between two trade-offs are interpolated.
    """
    paths = {
        (r["table"], r["split"], r["method"]): np.array(sorted(r["points"]))[:, [0, 3]]
        for r in records.to_dict("records")
    }
    differences: dict[tuple[str, str], list[float]] = {}
    for (table, split, method), other in paths.items():
        own = paths[table, split, "prototypes"]
        low, high = max(own[0, 0], other[0, 0]), min(own[-1, 0], other[-1, 0])
        if method == "prototypes" or low >= high:
            continue
        at = np.linspace(low, high, 5)
        more = np.interp(at, *other.T).mean() - np.interp(at, *own.T).mean()
        differences.setdefault((table, method), []).append(more)
    signs = {
        key: np.sign(np.mean(d)) * (abs(np.mean(d)) > 2 * np.std(d, ddof=1) / math.sqrt(len(d)))
        for key, d in differences.items()
        if len(d) > 1
    }
    counts = Counter(signs.values())
    level = sum(sign == 0 for (_, method), sign in signs.items() if method == "hsic")
    return counts[1], counts[-1], len(signs), level


# Scale


def scale(root: Path) -> Iterator[str]:
    """Yield what is said of speed and size."""
    audits = benchmark(root, "scale.json")
    on = f" of {machine(audits)}" if "machine" in audits else ""
    yield f"(`benchmarks/scale.py`, {audits['cores']} cores{on}, float32 Parquet)"
    shown = ((2_000_000, 2, 1), (20_000_000, 50, 2))
    for run in audits["runs"]:
        if (run["rows"], run["columns"], run["workers"]) in shown:
            speed = round(run["rows_per_second"], -3)
            yield (
                f"| {run['rows']:,} | {run['columns']} | {run['workers']} | {speed:,.0f} |"
                f" {run['peak_memory_mb']:.0f} |"
            )
    serving = benchmark(root, "serving.json")
    yield f"{machine(serving)}, {serving['columns']} columns, four of them text"
    for name in ("ParityClassifier", "FRHSICClassifier"):
        own = serving[name]
        yield (
            f"| `{name}` | {own['kibibytes']:,.0f} KiB | {seconds(own['load'])} |"
            f" {seconds(own['one row'])} | {seconds(own['all rows'])} |"
            f" {seconds(own['predict of the CSV'])}, {own['gigabytes']:.1f} GB |"
        )
    peers = benchmark(root, "cpu_peers.json")
    large = benchmark(root, "large_audit.json")
    ways = pd.DataFrame(large["ways"]).max(axis=1)
    yield (
        f"report included | {ways['processor_seconds']:.0f} s, {ways['megabytes'] / 1000:.1f} GB"
        f" (`benchmarks/large_audit.py`) | {machine(large)} |"
    )
    gamma = {r["columns"]: r for r in peers["records"] if r["task"] == "gamma test"}
    yield (
        f"| `gamma_test`, {gamma[1]['n']:,} rows, 1 and 50 columns of Z |"
        f" {two(gamma[1]['seconds']['ours'])} and {two(gamma[50]['seconds']['ours'])} s, at most"
        f" {max(r['megabytes']['ours'] for r in gamma.values()):.0f} MB | {machine(peers)} |"
    )
    epochs = study(root, "runtime-corrected")
    epochs = epochs[(epochs["device"] == "cpu") & (epochs["n"] == 20_000)]
    least = epochs.groupby("method")["seconds"].min()
    yield (
        "an epoch of a network, 20,000 rows: no penalty, FRHSIC, HSIC with the head |"
        f" {two(least['none'])}, {two(least['frhsic'])}, {two(least['hsic'])} s"
        f" ([runtime](reproduction/runtime.md)) | {machine(epochs.iloc[0].to_dict())} |"
    )
    yield from beside_peers(peers)
    yield from on_gpu(benchmark(root, "gpu.json"))


def beside_peers(peers: dict[str, Any]) -> Iterator[str]:
    """Yield the table of other libraries."""
    names = {"HSIC divided by its norms": "HSIC, normalised", "pykeops": "KeOps"}
    apart = max(r["difference"] for r in peers["records"] if r["task"] == "gamma test")
    yield f"(`benchmarks/cpu_peers.py`, {machine(peers)})"
    yield f"p-values of the gamma test differ by up to {short(apart, 3)}"
    for record in peers["records"]:
        times = record["seconds"]
        yield (
            f"| {names.get(record['task'], record['task'])} | {record['n']:,} |"
            f" {record['columns']} | {names.get(record['peer'], record['peer'])} |"
            f" {two(times['ours'])} | {two(times['peer'])} | {two(record['ratio'])} |"
        )
    hyppo = max(r["megabytes"]["peer"] for r in peers["records"] if r["peer"] == "hyppo")
    yield f"{hyppo / 1000:.1f} GB for hyppo at 5,000 rows"


def on_gpu(gpu: dict[str, Any]) -> Iterator[str]:
    """Yield what was measured on a GPU."""
    yield f"one {gpu['device']}, float32, {gpu['columns']} columns"
    features = {r["n"]: r for r in gpu["features"]}
    for exact in gpu["hsic"]:
        if random := features.get(exact["n"]):
            most = exact["n"] == max(features)
            plain = seconds(exact["plain"]) if "plain" in exact else "–"
            cells = [
                seconds(r["seconds"]) + (f", {r['megabytes']:.0f} MB" if most else "")
                for r in (exact, random)
            ]
            yield f"| {exact['n']:,} | {cells[0]} | {plain} | {cells[1]} |"
    without = max(r.get("error", 0) for r in gpu["hsic"])
    plain = max(r.get("plain_error", 0) for r in gpu["hsic"])
    yield (
        f"relative error is at most {power(without, 0)} (plain PyTorch: up to {power(plain, 0)}),"
        f" or {power(max(gpu['ties'].values()), 1)} if Z and S are independent"
    )
    test = gpu["gamma"][-1]
    yield f"The gamma test takes {seconds(test['seconds'])} at {test['n']:,} rows"
    training = gpu["training"]
    yield (
        f"45 networks (nine weights, five splits) of 200 epochs on 26,048 rows and 107 columns take"
        f" {two(training['45 models, none'])} s without a penalty and"
        f" {two(training['45 models, published'])} s with FRHSIC"
    )
    first = max(time for name, time in training.items() if name.startswith("first epoch"))
    yield f"A first epoch takes up to {two(first)} s"
    exact = {r["n"]: r["seconds"] for r in gpu["hsic"]}
    faster = min(n for n, r in features.items() if r["seconds"] < exact[n])
    yield f"`hsic_features` from {faster:,} rows on"


def power(value: float, digits: int) -> str:
    """Return a small number times a power of ten."""
    mantissa, exponent = f"{value:.{digits}e}".split("e-")
    return (
        f"{mantissa}·10⁻{str(int(exponent)).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
    )


# Claims

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
PRINTED = [f"Table {k}" for k in range(1, 8)] + [f"Figure {k}" for k in range(2, 14)]
NAMES = {
    "adult": "Adult",
    "acs_income": "ACS Income",
    "meps": "MEPS",
    "crime": "Crime",
    "compas": "COMPAS",
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
    if not signs:
        return "no claim"
    if len(set(signs)) == 1:
        many = {1: "", 2: ": both claims"}.get(len(signs), f": all {len(signs)} claims")
        return VERDICTS[signs[0]][0] + many
    one = VERDICTS[judged.pop() if len(judged) == 1 else "◐"][0]
    return f"{one}: {in_words(signs)}"


class Claim(NamedTuple):
    """A claim as its page has it: signs of the verdict and of that by decisions (or ""), what it is
    about, and the tables and figures that it stands for.
    """

    statement: str
    page: str
    sign: str
    second: str
    kind: str
    items: tuple[str, ...]


@cache
def claims(root: Path) -> dict[str, Claim]:
    """Return the claims on the pages of the studies, by name."""
    found = {}
    for path in sorted((root / "docs" / "reproduction").glob("*.md")):
        for name, text in re.findall(
            r'<a id="([^"]+)"></a>\n(.*?)(?=<a id=|\n## |\Z)', path.read_text("utf-8"), re.DOTALL
        ):
            sign = re.search(r"^\*\*([✓◐✗?]) ", text, re.MULTILINE)
            if sign:
                first = text.split("\n")[0]
                kind = "reporting" if first.endswith("; about reporting)") else "results"
                second = re.search(r"GDP of the decisions, .*?([✓◐✗?]) ", text)
                items = re.search(r"; for ((?:(?:Table|Figure) \d+(?:, )?)+)", first)
                found[name] = Claim(
                    first.split("**")[1],
                    path.name,
                    sign[1],
                    second[1] if second else "",
                    "theory" if name.startswith("theorem-") else kind,
                    tuple(items[1].split(", ")) if items else (),
                )
    return found


def counted(root: Path, kind: str) -> str:
    """Return how many claims of a kind there are, and their verdicts."""
    signs = [claim.sign for claim in claims(root).values() if claim.kind == kind]
    return f"of {len(signs)} {KINDS[kind]}, {in_words(signs)}"


def of_claims(root: Path) -> Iterator[str]:
    """Yield counts, verdicts and the index."""
    page = (root / "docs" / "reproduction.md").read_text("utf-8")
    found = claims(root)
    yield "; ".join(counted(root, kind) for kind in KINDS).capitalize()
    twice = {name: claim for name, claim in found.items() if claim.second}
    other = [name for name, claim in twice.items() if claim.second != claim.sign]
    links = [f"[{name}](reproduction/{found[name].page}#{name})" for name in other]
    names = ", ".join(sorted(links, key=page.find)) or "none"
    yield f"{len(twice)} claims; the verdict differs for {names}"
    for name in re.findall(r"^\| \[[^|]*\]\(reproduction/[\w-]+\.md#([^)]+)\)", page, re.MULTILINE):
        if name in found:
            own = found[name]
            second = VERDICTS[own.second][0] if own.second else ""
            link = f"[{own.statement}](reproduction/{own.page}#{name})"
            yield f"| {link} | {VERDICTS[own.sign][0]} | {second} |"
    shown = dict(re.findall(r"^\| \[(\w+ \d+)\](\([^)]+\) \| [^|]+)", page, re.MULTILINE))
    for number in PRINTED:
        verdicts = (
            overall([c.sign for c in found.values() if number in c.items and c.kind == kind])
            for kind in ("results", "reporting")
        )
        yield f"| [{number}]{shown.get(number, '')}| {' | '.join(verdicts)} |"


# The published sweep


@cache
def agreement(root: Path) -> tuple[str, ...]:
    """Return how many cells of the published sweep are within two combined standard deviations, and
    errors, of ours; and how many areas and gaps of the printed main table agree.
    """
    ours = study(root, "tradeoff-published")
    if not len(ours):
        return ()
    ours = ours[(ours["part"] == "models") & ~ours["diverged"].fillna(value=False).astype(bool)]
    theirs = pd.DataFrame(_published()["repo_sweeps"])
    theirs["method"] = _keys(theirs["method"])
    theirs["dataset"] = _datasets(theirs["dataset"])
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
            scale = math.hypot(values.std(), row[spread])
            apart = abs(values.mean() - row[mean])
            within += apart <= 2 * max(scale, floor)
            near += apart <= 2 * max(scale / math.sqrt(len(values)), floor)
            total += 1
    return f"{within} of {total}", f"{near}", *beside_print(ours, theirs, weights)


def beside_print(ours: pd.DataFrame, theirs: pd.DataFrame, weights: set[float]) -> tuple[str, str]:
    """Compare areas and matched GDP of the published protocol with the printed main table."""
    table = pd.DataFrame(_published()["paper"]["matched_performance"])
    table["method"] = _keys(table["method"])
    table["dataset"] = _datasets(table["dataset"])
    areas = []
    gaps = []
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


def of_the_sweep(root: Path) -> Iterator[str]:
    """Yield how well the numbers agree."""
    if found := agreement(root):
        within, near, areas, gaps = found
        yield (
            f"{within} cells of the authors' files are within two combined standard deviations of"
            f" ours, {near} within two standard errors. Against the printed Table 1, nAUP is within"
            f" .05 of ours in {areas} cells and GDP within two combined standard deviations in"
            f" {gaps}."
        )


# The same base, the same rows

LEVELS = (0.75, 0.5, 0.25)
BASES = ("paper's network", "tuned network", "trees", "splines")
FRESH = (
    "passengers",
    "health",
    "legislators",
    "stops",
    "arrests",
    "loans",
    "smokers",
    "pay",
    "drugs",
    "schools",
    "earnings",
    "births",
)
YARDSTICKS = {  # columns of gap and loss, and the closed forms without and with S
    "loss at equal GDP of scores": ("gdp", "loss", ("closed form", "closed form, with S")),
    "errors at equal GDP of decisions": (
        "gdp_decisions",
        "errors",
        ("closed form, decisions", "closed form, with S, decisions"),
    ),
}
NEED_S = ("fairlearn ThresholdOptimizer", "fairlearn CorrelationRemover")
METHODS = {
    "frhsic": "FRHSIC",
    "frem": "FREM",
    "reg-gdp": "Reg-GDP",
    "adv": "ADV",
    "mmd": "MMD (binned)",
    "laftr": "LAFTR (binned)",
    "dcor": "dCor",
    "hsic": "HSIC with the head",
    "cosines": "cosines of S (a penalty)",
    "contraction": "contraction (shrinking)",
}


class Cost(NamedTuple):
    """The cost of parity on all rows, without each fold, the factor on its error, and what the base
    gains over a constant.
    """

    value: float
    without: np.ndarray
    factor: float
    gain: float


Cells = dict[tuple[str, str, str], dict[str, Cost]]
"""By yardstick, base and table: the costs of all ways."""


def costs_of(paths: dict[str, list[tuple[float, float]]]) -> dict[str, float]:
    """Return from the points of each way, gaps and losses, what it loses at shares of the base's
    gap, in units of the base's gain.

    The loss at a gap lies on the line through the points that no other one beats, which begins at a
    constant, whose gap is zero.
    """
    ((base_gap, base_loss),) = paths["none"]
    ((_, constant),) = paths["constant"]
    found = {}
    gain = constant - base_loss
    for way, path in paths.items():
        if way == "constant":
            continue
        line = [(0.0, constant)]
        least = math.inf
        for gap, loss in sorted(path):
            if loss < least:
                line.append((gap, loss))
                least = loss
        at = np.interp([level * base_gap for level in LEVELS], *np.transpose(line))
        found[way] = float(at.mean() - base_loss) / gain if gain else math.nan
    return found


def jackknife(values: np.ndarray) -> float:
    """Return the standard error from values without each fold."""
    return math.sqrt((len(values) - 1) * np.var(values))


def cells_of(records: pd.DataFrame, tables: Iterable[str]) -> Cells:
    """Return the costs on some tables, where the gap of the base is at least three errors."""
    if not len(records):
        return {}
    final = records[records["part"] == "final"]
    cells: Cells = {}
    for table, base, title in product(tables, BASES, YARDSTICKS):
        gap, loss, _ = YARDSTICKS[title]
        own = final[(final["dataset"] == table) & (final["base"] == base)]
        own = own.dropna(subset=[gap, loss])
        alone = own[own["way"] == "none"].set_index("left_out").sort_index()
        if -1 not in alone.index or alone[gap][-1] < 3 * jackknife(alone[gap].drop(-1).to_numpy()):
            continue
        points: dict[float, dict[str, list[tuple[float, float]]]] = {}
        for fold, way, *point in zip(own["left_out"], own["way"], own[gap], own[loss]):
            points.setdefault(fold, {}).setdefault(way, []).append(tuple(point))
        each = {fold: costs_of(paths) for fold, paths in points.items()}
        folds = [fold for fold in sorted(each) if fold >= 0]
        rows = alone.iloc[0]
        factor = math.sqrt(1 + len(folds) * rows["test_rows"] / rows["training_rows"])
        ((_, constant),) = points[-1]["constant"]
        gain = constant - alone[loss][-1]
        cells[title, base, table] = {
            way: Cost(value, np.array([each[fold][way] for fold in folds]), factor, gain)
            for way, value in each[-1].items()
        }
    return cells


@cache
def on_fresh_tables(root: Path) -> Cells:
    """Return the costs on the tables that decide."""
    return cells_of(study(root, "crossed-corrected"), FRESH)


def rivals(title: str, ways: Iterable[str], with_s: bool) -> list[str]:
    """Return the closed form and the ways beside it, of those that need S or of the others."""
    first = YARDSTICKS[title][2][with_s]
    others = [
        way
        for way in ways
        if not way.startswith(("none", "closed form")) and (way in NEED_S) == with_s
    ]
    return [first, *others] if first in ways else []


def error_between(one: Cost, other: Cost) -> float:
    """Return the error of the difference of two costs on the same rows."""
    return jackknife(one.without - other.without) * one.factor


def leads(cell: dict[str, Cost], ways: list[str]) -> bool:
    """Return whether no way is better than the first by more than one error of the difference."""
    first = cell[ways[0]]
    return all(first.value - cell[way].value <= error_between(first, cell[way]) for way in ways[1:])


def gaining(cells: Cells) -> Cells:
    """Return the cells in which the base gains something over a constant."""
    return {place: cell for place, cell in cells.items() if cell["none"].gain > 0}


def counts(cells: Cells, title: str, with_s: bool) -> tuple[int, int]:
    """Return in how many cells with a rival the closed form leads, and of how many."""
    judged = []
    for (yardstick, *_), cell in cells.items():
        ways = rivals(title, cell, with_s)
        if yardstick == title and len(ways) > 1:
            judged.append(leads(cell, ways))
    return sum(judged), len(judged)


def beyond_two_errors(cells: Cells, title: str) -> tuple[int, int, int]:
    """Return in how many comparisons without S the closed form costs less by more than two errors,
    in how many more, and of how many.
    """
    apart = []
    for (yardstick, *_), cell in cells.items():
        first, *others = rivals(title, cell, False) or [""]
        for way in others if yardstick == title else ():
            error = error_between(cell[first], cell[way])
            apart.append((cell[way].value - cell[first].value, 2 * error))
    return sum(d > e for d, e in apart), sum(d < -e for d, e in apart), len(apart)


def median_costs(cells: Cells, title: str) -> dict[str, list[str]]:
    """Return the median cost over tables in % of the gain, by way and base, without S."""
    values: dict[tuple[str, str], list[float]] = {}
    for (yardstick, base, _), cell in cells.items():
        if yardstick == title:
            for way in rivals(title, cell, False):
                values.setdefault((way, base), []).append(100 * cell[way].value)
    return {
        way: [
            f"{np.median(values[way, base]):.1f}".replace("-", "−")
            if (way, base) in values
            else "–"
            for base in BASES
        ]
        for way in dict.fromkeys(way for way, _ in values)
    }


def led(cells: Cells) -> str:
    """Return in how many cells the closed form leads, in words."""
    parts = []
    for with_s in (False, True):
        found = {title: counts(cells, title, with_s) for title in YARDSTICKS}
        said = [
            f"{good} of {total} cells by {title}" for title, (good, total) in found.items() if total
        ]
        if said:
            parts.append(f"{'with' if with_s else 'without'} S in {' and '.join(said)}")
    return "; ".join(parts)


def sentences(cells: Cells) -> Iterator[str]:
    """Yield in how many cells the closed form leads, where it does not first."""
    every = [counts(cells, title, with_s) for with_s in (False, True) for title in YARDSTICKS]
    good, total = (sum(each) for each in zip(*every))
    if not total:
        return
    yield (
        f"The closed form is more than one error behind the best method in {total - good} of"
        f" {total} cells (a measure, base and table)."
    )
    yield f"It is best, or within one error of the best, {led(cells)}."
    if len(gaining(cells)) < len(cells):
        yield f"the cost is undefined; without these cells it leads {led(gaining(cells))}."


def of_ways(root: Path) -> Iterator[str]:
    """Yield what is said of the comparison on fresh tables."""
    cells = on_fresh_tables(root)
    yield f"On {WORDS[len(FRESH)]} new tables" if cells else "The comparison was not run yet"
    yield from sentences(cells)


def reproduction(root: Path) -> Iterator[str]:
    """Yield what is said of the reproduction."""
    yield from of_claims(root)
    yield from of_the_sweep(root)
    yield from of_ways(root)


def representations(root: Path) -> Iterator[str]:
    """Yield what is said of representations."""
    yield from coupling(root)
    yield from encoder(root)


def methods(root: Path) -> Iterator[str]:
    """Yield what is said of the comparison on fresh tables, and the medians of ways by bases."""
    cells = on_fresh_tables(root)
    if not cells:
        return
    scores, decisions = YARDSTICKS
    gain = gaining(cells)
    yield f"{WORDS[len(FRESH)].capitalize()} tables had never been used"
    for way, medians in median_costs(gain, scores).items():
        yield f"| {METHODS.get(way, way)} | {' | '.join(medians)} |"
    good, total = counts(cells, scores, False)
    among, known = counts(gain, scores, False)
    ahead, behind, pairs = beyond_two_errors(gain, scores)
    yield (
        f"within one standard error of the best in {good} of {total} cells ({among} of {known}"
        " where the base beats a constant). It is ahead of a rival by more than two standard errors"
        f" in {ahead} of {pairs} comparisons, and behind by as much in {behind or 'none'}"
    )
    yield f"behind by more than one standard error in {total - good} of {total} cells"
    yield "it leads in {} of {} cells by loss".format(*counts(cells, scores, True))
    yield "in {} of {} by decisions".format(*counts(cells, decisions, True))
    good, total = counts(cells, decisions, False)
    _, known = counts(gain, decisions, False)
    yield (
        f"in only {good} of {total} cells. In {total - known} of the {total - good} others the"
        " network"
    )
    read = [cell for (title, *_), cell in gain.items() if title == decisions]
    fewer = sum(c["closed form"].value < c["closed form, decisions"].value for c in read)
    yield f"In {fewer} of the {len(read)} cells with a defined cost"
    yield from of_reasons(root, scores)
    yield from of_dropping(study(root, "crossed-corrected"))
    yield from of_bases(benchmark(root, "bases.jsonl"))


def of_reasons(root: Path, scores: str) -> Iterator[str]:
    """Yield why the closed form is behind."""
    reasons = pd.DataFrame(benchmark(root, "crossed/reasons.json"))
    by_scores = reasons["yardstick"] == scores
    decisions = reasons[~by_scores]
    matched = decisions[decisions["coefficients"] <= decisions["rival"] + decisions["error"]]
    final = study(root, "crossed-corrected").query("part == 'final'").groupby("dataset")
    rows = final["training_rows"].first()[matched["table"]]
    yield (
        f"In {len(matched)} more, the closed form would match the best rival within one standard"
        " error if its coefficients were fitted on the test rows;"
        f" {rows.min():,.0f} to {rows.max():,.0f} training rows"
    )
    wide = reasons[by_scores & (reasons["shrinking"] < 0)]
    yield f"In {len(wide)} of them shrinking alone lowers the loss"
    ((_, other),) = reasons[by_scores & (reasons["shrinking"] >= 0)].iterrows()
    less = other["closed form"] - other["rival"]
    yield (
        f"({other['table']}, {other['base']}) the closed form costs {other['closed form']:.0f} %,"
        f" and the best penalty costs {less:.0f} ± {other['error']:.0f} points less"
    )


def of_dropping(records: pd.DataFrame) -> Iterator[str]:
    """Yield how much of the gap is left without the column of S, with trees."""
    final = records[(records["part"] == "final") & (records["base"] == "trees")]
    final = final[(final["left_out"] == -1) & (final["dial"] == 0)]
    gaps = final[final["dataset"].isin(FRESH)].pivot_table("gdp", "dataset", "way")
    left = gaps["none"] / gaps["closed form, with S"]
    yield (
        f"the gap falls on only {(left < 1).sum()} of the {len(left)} tables, and more than half of"
        f" it remains on {(left > 0.5).sum()}"
    )


def of_bases(records: pd.DataFrame) -> Iterator[str]:
    """Yield on how many tables the default has less loss than LightGBM."""
    own = records[records["base"] == "default"]
    ahead = (own["loss"] - own["free"]).groupby(own["table"]).mean() > 0
    yield f"at its defaults on {ahead.sum()} of {len(ahead)} tables"


def first_pages(root: Path) -> Iterator[str]:
    """Yield what README and first page say of the comparison on fresh tables."""
    cells = on_fresh_tables(root)
    if not cells:
        return
    by_scores, by_decisions = (counts(cells, title, False) for title in YARDSTICKS)
    yield f"On {WORDS[len(FRESH)]} fresh tables and the same base models,"
    yield (
        f"standard error of the best method in {by_scores[0]} of {by_scores[1]} cells, its"
        f" decisions in {by_decisions[0]} of {by_decisions[1]}"
    )


def readme(root: Path) -> Iterator[str]:
    """Yield what is said on the front page."""
    yield from first_pages(root)
    if found := agreement(root):
        yield (
            f"In the authors' result files (without ACS Income), {found[0]} cells are within two"
            f" standard deviations of ours. In the printed main table, {found[2]} areas under"
            " trade-off curves agree within .05"
        )
    yield f"{counted(root, 'results').capitalize()}; {counted(root, 'theory')}"
    less, more, total, _ = compared(benchmark(root, "encoder/rivals.jsonl"))
    yield f"in {less} of {total} comparisons, and more in {more or 'none'}"
    gpu = benchmark(root, "gpu.json")
    million = next(r["seconds"] for r in gpu["hsic"] if r["n"] == 2**20)
    yield f"Exact HSIC of a million rows takes {seconds(million)} on one {gpu['device']}"
    peers = benchmark(root, "cpu_peers.json")
    ratios = [r["ratio"] for r in peers["records"] if r["section"] == "hsic"]
    yield (
        f"At 5,000 rows, on one thread of an {machine(peers)}, it is {min(ratios):.0f} to"
        f" {max(ratios):.0f} times faster than hyppo, causal-learn and KeOps"
    )


# All pages

RULES: dict[str, Callable[[Path], Iterator[str]]] = {
    "README.md": readme,
    "docs/index.md": first_pages,
    "docs/methods.md": methods,
    "docs/representations.md": representations,
    "docs/scale.md": scale,
    "docs/reproduction.md": reproduction,
}

GIVEN = {  # numbers that no measurement gives: settings, formulas and quotations
    "README.md": ("With 400 distinct ages", "make 400 groups", "BSD-3-Clause"),
    "docs/index.md": ("at the limit 0", "Earnings in 1978 of 15,992 people"),
    "docs/methods.md": (
        "10 w·w′ + 10 exp(−‖w − w′‖²/2)",
        "the loss at 75, 50 and 25 % of the base's own gap",
        "by more than 1 % of the gain plus two standard errors",
    ),
    "docs/representations.md": (
        "min(1, 1/r)",
        "values in [0, 1]",
        "heads beyond [0, 1]",
        "95 % interval",
        "the limit 0,",
        "well above 0 even at independence. The default limit 0",
        "at least 200 rows",
    ),
    "docs/scale.md": (
        "`sample_rows`, 20,000",
        "128 random features",
    ),
    "docs/reproduction.md": ("p → 1/2 + t(p − 1/2)", "the 1 % band", "75, 50 and 25 % of the base"),
}


def differences(root: Path, page: str, write: bool = False) -> list[str]:
    """Return what differs between a page and the records of a checkout."""
    text = (root / page).read_text(encoding="utf-8")
    wrong, corrected = compare(text, [*RULES[page](root), *GIVEN[page]])
    if write and page != "docs/reproduction.md":  # which `frhsic reproduce --docs` writes
        (root / page).write_text(corrected, encoding="utf-8")
    return [f"{page}: {line}" for line in wrong]


def file_counts(root: Path) -> list[str]:
    """Count the records and models of each file that a study's page names, and add up the seconds
    of their fleets.
    """
    wrong = []
    pages = sorted((root / "docs" / "reproduction").glob("*.md"))
    details = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    for name, *cells in sorted(
        set(re.findall(r"\| `results/([^`]+)\.parquet` \| (.*?) \| (.*?) \| (.*?) \|", details))
    ):
        table = study(root, name)
        own = [f"{len(table):,}", "—", "—"]
        columns = ["part", "dataset", "method", "weight", "repeat", "seconds"]
        if set(columns) <= set(table.columns):
            models = table[columns].dropna()
            total = models.groupby(["part", "dataset", "method"])["seconds"].last().sum()
            own[1:] = [f"{len(models):,}", f"{total:.0f} s"] if len(models) else own[1:]
        if cells != own:
            wrong.append(f"{name}: {', '.join(own)}")
    return wrong


def main() -> int:
    """Print what differs."""
    write = "--write" in sys.argv[1:]
    wrong = [line for page in RULES for line in differences(ROOT, page, write)] + file_counts(ROOT)
    print("\n".join(wrong) or f"every number of {', '.join(RULES)} follows from the records")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
