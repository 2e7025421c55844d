"""Tables of what needs no sweep: convergence, eigenvalues, bounds, seconds, tests of independence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frhsic_paper.convergence import slopes
from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, cached, method_name, printed
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.tables.table import Cell, Column, Spread, Table

__all__ = [
    "RUNTIME_NAMES",
    "STATISTICS",
    "bound_table",
    "convergence_table",
    "dimension_error_table",
    "dimension_time_table",
    "information_table",
    "median_seconds",
    "runtime_table",
    "selection",
    "selection_table",
    "spectrum_table",
]

STATISTICS = {
    "hsic": "HSIC",
    "hsic-unbiased": "HSIC, unbiased",
    "eipm": "EIPM, γ = 1",
    "eipm-shrinking": "EIPM, γ = n^(−1/5)",
}

RUNTIME_NAMES = METHOD_NAMES | {
    "frem-loop": "FREM, loop in Python",
    "frem-32": "FREM, 32 anchors at once",
    "frem-all": "FREM, all anchors at once",
}


def convergence_table(records: Sequence[Record]) -> Table:
    """Slopes of the mean absolute error over n, with bootstrap intervals, beside the printed ones."""
    paper = {"hsic": "HSIC", "eipm": "EIPM"}
    printed_slopes = {r["estimator"]: r["slope"] for r in printed("convergence_slopes")}
    truths = {r["statistic"]: r["truth"] for r in records}
    rows: list[tuple[Cell, ...]] = [
        (
            STATISTICS[name],
            printed_slopes.get(paper.get(name, "")),
            slope.value,
            f"[{slope.low:.2f}, {slope.high:.2f}]",
            truths[name],
        )
        for name, slope in slopes(records).items()
    ]
    columns = ("estimator", "printed slope", "slope", "95 % interval", "value it is held against")
    decimals: tuple[int | None, ...] = (3, 2, 3, 3, 5)
    return Table(tuple(Column(n, d) for n, d in zip(columns, decimals)), tuple(rows))


def spectrum_table(records: Sequence[Record]) -> Table:
    """The smallest eigenvalue kept, and the cut-off that it may be nothing but."""
    paper = {(r["dataset"], float(r["sigma"])): r["hat_lambda_S"] for r in cached("lambda2_vs_sigma")}
    rows: list[tuple[Cell, ...]] = [
        (
            DATASET_NAMES.get(r["dataset"], f"{r['n']} distinct values"),
            f"{r['sigma']:g}",
            paper.get((r["dataset"], float(r["sigma"]))),
            r["smallest"],
            r["floor"],
            r["kept"],
            r["last"],
        )
        for r in sorted(records, key=lambda r: (r["dataset"], r["sigma"]))
    ]
    return Table(
        (
            Column("S of"),
            Column("σ"),
            Column("λ̂_S of the paper's files", None),
            Column("λ̂_S", None),
            Column("1e-6 of the largest", None),
            Column("eigenvalues above the cut"),
            Column("smallest that is not zero by construction", None),
        ),
        tuple(rows),
    )


def bound_table(records: Sequence[Record]) -> Table:
    """Both sides of the finite-sample bound; `trivial` is what holds for every head of norm 1 whatever the data."""
    corrected = any("rule" in r for r in records)
    rows: list[tuple[Cell, ...]] = []
    for r in records:
        cells: tuple[Cell, ...] = (
            DATASET_NAMES[r["dataset"]],
            METHOD_NAMES[r["method"]],
            f"{r['weight']:g}",
            r["directions"] if corrected else r["kept"],
            r["lhs_mean"],
            r["lhs_max"],
            r["rhs"],
        )
        rows.append((*cells, r["tight"], r["trivial"]) if corrected else cells)
    names = ["dataset", "method", "λ", "directions", "left side, mean", "left side, largest", "right side, HSIC / λ̂"]
    names += ["tight form", "trivial"] if corrected else []
    return Table(tuple(Column(n, None) for n in names), tuple(rows))


def median_seconds(records: Sequence[Record], device: str, method: str, n: int) -> float | None:
    """Return the median seconds of an epoch, or None where it was not timed."""
    values = [r["seconds"] for r in records if r["device"] == device and r["method"] == method and r["n"] == n]
    return float(np.median(values)) if values else None


def runtime_table(records: Sequence[Record]) -> Table:
    """Median seconds of an epoch at the largest n, each device."""
    paper = {r["method"]: r["seconds"] for r in printed("runtime_n20000_batch256_seconds_per_epoch")}
    paper["frem-loop"] = paper["frem"]
    devices = sorted({r["device"] for r in records})
    n = max((r["n"] for r in records), default=0)
    methods = list(dict.fromkeys(r["method"] for r in records))
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        cells: list[Cell] = [RUNTIME_NAMES[method], paper.get(method)]
        for device in devices:
            seconds = median_seconds(records, device, method, n)
            base = median_seconds(records, device, "frhsic", n)
            cells += [seconds, None if seconds is None or not base else seconds / base]
        rows.append(tuple(cells))
    headings = [Column(f"{text} {d}", None) for d in devices for text in ("seconds,", "× FRHSIC,")]
    return Table((Column(f"epoch of {n:,} rows"), Column("printed seconds", 2), *headings), tuple(rows))


def dimension_time_table(records: Sequence[Record]) -> Table:
    """Seconds of an epoch against the number of sensitive columns."""
    of = [r for r in records if r["part"] == "time"]
    devices = sorted({r["device"] for r in of})
    methods = list(dict.fromkeys(r["method"] for r in of))
    rows: list[tuple[Cell, ...]] = []
    for dimension in sorted({r["dim_s"] for r in of}):
        here = [r for r in of if r["dim_s"] == dimension]
        columns = here[0]["columns"]
        cells: list[Cell] = [dimension, ", ".join(columns) if not isinstance(columns, str) else columns]
        for device in devices:
            for method in methods:
                values = [r["seconds"] for r in here if r["device"] == device and r["method"] == method]
                cells.append(float(np.median(values)) if values else None)
        rows.append(tuple(cells))
    headings = [Column(f"{RUNTIME_NAMES[m]}, {d}", None) for d in devices for m in methods]
    return Table((Column("sensitive columns"), Column("which"), *headings), tuple(rows))


def dimension_error_table(records: Sequence[Record]) -> Table:
    """Relative error of the estimates against the number of sensitive columns, at one n."""
    of = [r for r in records if r["part"] == "error"]
    statistics = list(dict.fromkeys(r["statistic"] for r in of))
    sizes = sorted({r["n"] for r in of})
    rows: list[tuple[Cell, ...]] = []
    for n in sizes:
        for dimension in sorted({r["dim_s"] for r in of if r["n"] == n}):
            cells: list[Cell] = [n, dimension]
            for statistic in statistics:
                values = np.array(
                    [
                        r["relative_error"]
                        for r in of
                        if (r["n"], r["dim_s"], r["statistic"]) == (n, dimension, statistic)
                    ]
                )
                cells.append(Spread(float(values.mean()), _standard_error(values)) if len(values) else None)
            rows.append(tuple(cells))
    headings = [Column(f"relative error of {STATISTICS.get(s, s)} ± SE") for s in statistics]
    return Table((Column("n"), Column("sensitive columns"), *headings), tuple(rows))


def selection(records: Sequence[Record], test: str) -> dict[tuple[str, int], Record | None]:
    """Return, for each dataset and repeat, the model of the smallest λ whose independence is not rejected.

    `test` is ``"published"``, ``"exact"`` or ``"gretton"``. None where every λ is rejected.
    """
    column = {"published": "published_rejected", "exact": "rejected", "gretton": "gretton_rejected"}[test]
    found: dict[tuple[str, int], Record | None] = {}
    for r in sorted(records, key=lambda r: float(r["weight"])):
        key = (r["dataset"], r["repeat"])
        if found.setdefault(key, None) is None and r["method"] == "frhsic" and not r[column]:
            found[key] = r
    return found


def selection_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """The selected λ of each split under each test, with performance and GDP there."""
    paper = {(r["dataset"], r["repeat"]): r["selected_lambda"] for r in cached("lambda_selection")}
    tests = {"published": "the published test", "exact": "permutation moments"}
    found = {test: selection(records, test) for test in tests}
    base = {
        (r["dataset"], r["repeat"]): r
        for r in sorted(records, key=lambda r: -float(r["weight"]))
        if r["method"] in ("none", "frhsic")
    }
    rows: list[tuple[Cell, ...]] = []
    for key in sorted(found["published"], key=lambda k: (list(DATASET_NAMES).index(k[0]), k[1])):
        cells: list[Cell] = [DATASET_NAMES[key[0]], key[1], _weight(paper.get(key)), base[key]["performance"]]
        for test in tests:
            record = found[test][key]
            cells += (
                [None, None, None]
                if record is None
                else [f"{record['weight']:g}", record["performance"], record["gdp"]]
            )
        rows.append(tuple(cells))
    headings = [Column(f"{what} by {name}") for name in tests.values() for what in ("λ", "performance", "GDP")]
    return Table(
        (
            Column("dataset"),
            Column("split"),
            Column("λ in the paper's files"),
            Column("performance, least λ"),
            *headings,
        ),
        tuple(rows),
    )


def information_table(records: Sequence[Record], column: str) -> Table:
    """Mutual information of each method at the largest λ within 1 % of the best performance, by dataset."""
    from frhsic_paper.tables.frontiers import REGRESSION, methods_of, swept

    rows: list[tuple[Cell, ...]] = []
    datasets = swept(records)
    for method in ("none", *methods_of(records)):
        cells: list[Cell] = [method_name(method)]
        for dataset in datasets:
            of = [r for r in records if r["dataset"] == dataset and r.get(column) is not None]
            base = np.mean([r["performance"] for r in of if r["method"] == "none"])
            points = []
            for weight in sorted({float(r["weight"]) for r in of if r["method"] == method}):
                here = [r for r in of if r["method"] == method and float(r["weight"]) == weight]
                performance = float(np.mean([r["performance"] for r in here]))
                inside = performance <= 1.01 * base if dataset in REGRESSION else performance >= 0.99 * base
                if inside:
                    points.append(float(np.mean([r[column] for r in here])))
            cells.append(min(points) if points else None)
        rows.append(tuple(cells))
    return Table((Column("least MI within 1 %, nats"), *(Column(DATASET_NAMES[d]) for d in datasets)), tuple(rows))


def _weight(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _standard_error(values: np.ndarray) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
