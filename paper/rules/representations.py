"""Numbers of docs/representations.md: what is left of S after ParityCoupling and ParityEncoder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pandas as pd

from rules.records import benchmark
from rules.writing import WORDS, percents, short, span

GIVEN = (
    "min(1, 1/r)",
    "values in [0, 1]",
    "95 % interval",
    "a limit of 0,",
    "well above 0 even under independence. The default limit 0",
    "at least 200 rows",
    "or 100 rows if there are fewer than 2,000",
)


def phrases() -> Iterator[str]:
    """Yield what the page says."""
    yield from coupling()
    yield from encoder()


def coupling() -> Iterator[str]:
    """Yield what is said of ParityCoupling."""
    records = benchmark("coupling/leak.jsonl")
    probes = probes_of_s(records)
    plain, named = (probes.xs(method, level="method") for method in ("coupling", "named"))
    largest = plain.loc[plain["leak"].idxmax()]
    yield (
        f"the best probe has an R² of at most {short(plain['leak'].max(), 4)}"
        f" ({short(named['leak'].max(), 4)} if you pass y to `fit`)"
    )
    more = plain["leak"] > plain["shuffled"] + 2 * plain["error"]
    yield (
        f"R² of at most {short(largest['leak'], 4)} (standard error {short(largest['error'], 4)})."
        " But a trace of S remains: by two standard errors,"
        f" {more.sum()} of {len(plain)} probes do better than on shuffled rows"
    )
    yield f"rows of {WORDS[records['table'].nunique()]} tables"
    means = records["recovery"].map(lambda columns: np.mean([*columns.values()]))
    kept = records.assign(kept=means).pivot(
        index=["table", "split"], columns="method", values="kept"
    )
    shares = kept.div(kept["raw"], axis=0).groupby("table").mean()
    yield f"{percents(shares['coupling'])} of X's R² in predicting other columns"
    yield f"with {percents(shares['named'])} of the R² obtained from X"
    stay = records[records["method"] == "coupling"].groupby("table")["untouched"].mean()
    yield f"{percents(stay)} of the rows stay unchanged, fewest where X nearly determines S"


def probes_of_s(records: pd.DataFrame) -> pd.DataFrame:
    """Return what every probe reads of S from coupled tables, means over splits."""
    lines = []
    for record in records.to_dict("records"):
        for probe, (leak, error) in record["leak"].items():
            line = {key: record[key] for key in ("table", "method")}
            line |= {"probe": probe, "leak": leak, "error": error}
            if isinstance(record["shuffled"], dict):
                line["shuffled"] = record["shuffled"][probe][0]
            lines.append(line)
    groups = pd.DataFrame(lines).groupby(["method", "table", "probe"])
    probes = groups.mean()
    probes["error"] /= np.sqrt(groups.size())
    return probes


def encoder() -> Iterator[str]:
    """Yield what is said of ParityEncoder."""
    leak = benchmark("encoder/leak.jsonl")
    best = [max(told[0] for told in probes.values()) for probes in leak["probes"]]
    leak = leak.assign(best=best, **{"from raw": leak["raw"].str[0]})
    many = leak["rows"] >= 3000
    means = leak.groupby("table")[["rows", "from raw", "chi2 0", "head None", "head 0"]].mean()
    fewest, most = (f"{round(rows, -3):,}" for rows in (leak["rows"].min(), leak["rows"].max()))
    yield f"new rows of {WORDS[len(means)]} tables"
    yield f"fitted on {fewest} to {most} rows"
    yield (
        "with at least 3,000 rows, the best of five probes predicts S with an R² of at most"
        f" {short(leak[many]['best'].max(), 3)} (raw columns {span(means['from raw'], 2)})"
    )
    large = means["rows"] >= 3000
    yield (
        f"at most {short(means[large]['chi2 0'].max(), 3)} with at least 3,000 rows, and"
        f" {short(means[~large]['chi2 0'].max(), 3)} with {fewest} rows."
    )
    yield from waves()
    free = means["head None"]
    solved = means["head 0"]
    yield (
        f"AUC falls from {short(free['adult'], 2)} to {short(solved['adult'], 2)} on Adult, and"
        f" from {short(free['credit'], 3)} to {short(solved['credit'], 3)} on Credit"
    )
    yield f"Heads trained on Z lose {excess():.1f} % of the gain over a constant"
    found = heads()
    own = found[[name.startswith("encoder") for name in found.index.get_level_values("method")]]
    yield (
        f"On {WORDS[found.index.get_level_values('table').nunique()]} tables,"
        f" {percents(own['beyond'])} of the heads have a significant gap"
        f" ({percents(found.loc['coupling', 'beyond'])} with `ParityCoupling`); the median gap"
        f" is {span(own['gap'], 3)} standard deviations"
        f" (raw columns {span(found.loc['raw', 'gap'], 2)})"
    )
    less, more, total, level = beside_rivals()
    yield (
        f"in {less} of {total} comparisons (by over two standard errors), and"
        f" {f'worse in {more}' if more else 'never worse'}. The `hsic` penalty does"
        f" as well as the encoder on {WORDS[level]} tables"
    )
    releases = benchmark("encoder/releases.jsonl")
    adult = releases[releases["table"] == "adult"]
    alone, refit, looser = (
        np.mean([told["chi2"] for told in adult[name]])
        for name in ("first", "first and refit, 5 % other rows", "first and limit 50%")
    )
    yield (
        f"on Adult, χ² is {short(alone, 3)} for one release, {short(refit, 2)} for a release and a"
        f" refit, and {short(looser, 2)} for a release and another with a limit of 50 %"
    )


def waves() -> Iterator[str]:
    """Yield what is said of laws where X follows waves of S."""
    fits = benchmark("encoder/bound.jsonl").query("law == 'waves'")
    covered = int((fits["upper end"] >= fits["bound"]).sum())
    few = fits[fits["rows"] == 1000][["upper end", "finer head"]].median()
    yield (
        f"where X oscillates {fits['periods'].min()} to {fits['periods'].max()} times over the"
        f" range of S, the upper end was at or above the true bound in {covered} of {len(fits)}"
        f" fits; with 1,000 rows, its median was {short(few['upper end'], 2)}, and in windows a"
        f" tenth as wide, the worst head's median gap was {short(few['finer head'], 2)}."
    )


def docstring() -> Iterator[str]:
    """Yield what the docstring of ParityEncoder says of one of these laws."""
    fits = benchmark("encoder/bound.jsonl").query("law == 'waves' and rows == 1000")
    own = fits[fits["periods"] == 20][["upper end", "finer head"]].median()
    yield (
        f"oscillates 20 times along S, the bound was {own['upper end']:.2f}, but a head that"
        f" followed the column had a gap of {own['finer head']:.2f}."
    )


def excess() -> float:
    """Return the median, over trade-offs, of the loss of a fresh head on Z beyond the closed form's
    at the same GDP, in % of the gain.

    The closed form's loss is made a decreasing function of GDP by pooling neighbours that are not.
    """
    each: list[float] = []
    for record in benchmark("encoder/losses.jsonl").to_dict("records"):
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


def heads() -> pd.DataFrame:
    """Return by Z and table the share of heads that follow S, and their median gap.

    A head is its kind, its column, the standardized gap and its p-value, and more.
    """
    records = benchmark("coupling/heads.jsonl")
    each = [np.array([head[2:4] for head in some], dtype=float) for some in records["heads"]]
    found = records[["method", "table"]].assign(
        gap=[np.median(one[:, 0]) for one in each],
        beyond=[np.mean(one[:, 1] < 0.05) for one in each],
    )
    return found.groupby(["method", "table"]).mean()


def beside_rivals() -> tuple[int, int, int, int]:
    """Return in how many comparisons (table, network) trees read less of S from the encoder at
    equal performance, beyond two errors; in how many more; in how many there is an error; and on
    how many tables the penalty `hsic` is within two errors.

    Performances are five that both reach; leaks between two trade-offs are interpolated.
    """
    paths = {
        (r["table"], r["split"], r["method"]): np.array(sorted(r["points"]))[:, [0, 3]]
        for r in benchmark("encoder/rivals.jsonl").to_dict("records")
    }
    differences: dict[tuple[str, str], list[float]] = {}
    for (table, split, method), other in paths.items():
        own = paths[table, split, "prototypes"]
        low = max(own[0, 0], other[0, 0])
        high = min(own[-1, 0], other[-1, 0])
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
