"""Tables of the trade-off: matched points, areas under the envelope, every convention of GDP side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from frhsic.frontier import Frontier, Run
from frhsic_paper.band import BAND, best_in_band
from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, PRINTED_SIX, method_name, printed
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record
from frhsic_paper.tables.table import Cell, Column, Spread, Table

__all__ = [
    "BAND",
    "CONVENTIONS",
    "Matched",
    "chosen",
    "datasets_of",
    "finite",
    "frontier",
    "in_print",
    "matched",
    "matched_beside_printed",
    "matched_table",
    "methods_of",
    "metrics_table",
    "nearly",
    "pareto_summary",
    "printed_name",
    "rounded",
    "shared_repeats",
    "swept",
]

REGRESSION = ("crime",)

CONVENTIONS = {
    "gdp_probability": "probabilities, population",
    "gdp_standardized": "scale-free, population",
    "gdp_decision": "decisions, population",
    "gdp_logit": "raw output, population",
    "gdp_probability_uniform": "probabilities, uniform grid",
    "gdp_logit_uniform": "raw output, uniform grid (published)",
}
"""Columns of a record that are GDP under some convention, and their names."""


@dataclass(frozen=True)
class Matched:
    """The point of one method with the least GDP inside the performance band, and the method's area.

    `weight` is the chosen one, or the most frequent where each repeat chose its own; `inside` the share of repeats in
    which some weight stayed inside the band. All is None where nothing did and the protocol then prints nothing.
    """

    dataset: str
    method: str
    weight: float | None
    performance: Spread | None
    gdp: Spread | None
    naup: float | None
    inside: float


def datasets_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets of some records, in the order of the paper."""
    present = {r["dataset"] for r in records}
    return tuple(name for name in DATASET_NAMES if name in present)


def swept(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the datasets on which the unpenalised model is there to be compared with."""
    return datasets_of(r for r in records if r["method"] == BASELINE)


def methods_of(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the penalised methods of some records, the paper's first and in its order."""
    present = list(dict.fromkeys(r["method"] for r in records))
    known = [name for name in METHOD_NAMES if name in present and name != BASELINE]
    return (*known, *(name for name in present if name not in METHOD_NAMES))


def finite(records: Iterable[Record], *columns: str) -> list[Record]:
    """Return the records of models that did not diverge and have all these columns."""
    return [r for r in records if not r.get("diverged") and all(r.get(column) is not None for column in columns)]


def shared_repeats(records: Sequence[Record]) -> list[Record]:
    """Return the records of repeats that all methods of a dataset have: means over others are not comparable."""
    had: dict[str, dict[str, set[int]]] = {}
    for r in records:
        had.setdefault(r["dataset"], {}).setdefault(r["method"], set()).add(r["repeat"])
    common = {dataset: set.intersection(*methods.values()) for dataset, methods in had.items()}
    return [r for r in records if r["repeat"] in common[r["dataset"]]]


def frontier(records: Iterable[Record], dataset: str, gdp: str) -> Frontier:
    """Return the frontier of one dataset under one convention of GDP, without models that diverged."""
    of = [r for r in finite(records, "performance", gdp) if r["dataset"] == dataset]
    return Frontier.from_records(of, dependence=gdp, higher_is_better=dataset not in REGRESSION)


def rounded(full: Frontier, decimals: int) -> Frontier:
    """Return a frontier of the means alone, rounded as the published files were before anything was read off them."""
    runs = tuple(
        Run(p.method, p.weight, 0, round(p.performance, decimals), round(p.dependence, decimals)) for p in full.points
    )
    return replace(full, runs=runs)


def chosen(
    records: Iterable[Record], dataset: str, gdp: str, band: float = BAND
) -> dict[str, list[tuple[Record, bool]]]:
    """Return, for each method and repeat, the model that validation rows choose, and whether it is inside the band.

    Inside the band of the same repeat's unpenalised model, the least GDP; where no weight is, the best performance.
    """
    performance, dependence = "validation_performance", f"validation_{gdp}"
    of = [r for r in finite(records, performance, dependence, gdp) if r["dataset"] == dataset]
    base = {r["repeat"]: r for r in of if r["method"] == BASELINE}
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in of:
        if record["repeat"] in base:
            groups.setdefault((record["method"], record["repeat"]), []).append(record)
    found: dict[str, list[tuple[Record, bool]]] = {}
    for (method, repeat), group in sorted(groups.items()):
        place, inside = best_in_band(
            [r[performance] for r in group],
            [r[dependence] for r in group],
            baseline=base[repeat][performance],
            band=band,
            higher_is_better=dataset not in REGRESSION,
        )
        found.setdefault(method, []).append((group[place], inside))
    return found


def matched(records: Sequence[Record], dataset: str, protocol: Protocol, gdp: str | None = None) -> list[Matched]:
    """Return the matched point of every method, as the protocol chooses it, the unpenalised model first.

    Published: on means over the repeats of the test rows, rounded. Corrected: in each repeat on its validation rows,
    and the test rows of what was chosen are averaged. Areas are normalised over the paper's six methods and Unfair.
    """
    column = protocol.gdp if gdp is None else gdp
    full = frontier(records, dataset, column)
    scale = (full if protocol.decimals is None else rounded(full, protocol.decimals)).only(PRINTED_SIX).scale
    areas = (full if protocol.decimals is None else rounded(full, protocol.decimals)).naup(scale)
    names = (BASELINE, *methods_of(r for r in records if r["dataset"] == dataset))
    if protocol.validation == 0:
        return [_on_test_means(full, dataset, name, protocol, areas) for name in names]
    picks = chosen(records, dataset, column)
    return [_on_validation(picks[name], dataset, name, column, protocol, areas) for name in names if name in picks]


def matched_table(records: Sequence[Record], protocol: Protocol, gdp: str | None = None) -> Table:
    """Table of matched performance, all datasets one below the other; the best method of a column in bold."""
    rows: list[tuple[Cell, ...]] = []
    for dataset in swept(records):
        points = matched(records, dataset, protocol, gdp)
        penalised = [p for p in points if p.method != BASELINE]
        least = min((p.gdp.mean for p in penalised if p.gdp is not None), default=None)
        largest = max((p.naup for p in penalised if p.naup is not None), default=None)
        for p in points:
            gdp_cell = None if p.gdp is None else replace(p.gdp, bold=p.gdp.mean == least and p.method != BASELINE)
            area = None if p.naup is None else Spread(p.naup, None, p.naup == largest)
            rows.append(
                (
                    printed_name(dataset) if p is points[0] else "",
                    method_name(p.method),
                    p.weight if p.weight is None else f"{p.weight:g}",
                    in_print(p.performance, dataset),
                    gdp_cell,
                    area,
                    p.inside if protocol.validation else None,
                )
            )
    columns = (
        Column("dataset"),
        Column("method"),
        Column("λ"),
        Column("performance"),
        Column("GDP", 4),
        Column("nAUP"),
    )
    if protocol.validation:
        return Table((*columns, Column("splits inside the band", 2)), tuple(rows))
    return Table(columns, tuple(row[:-1] for row in rows))


def matched_beside_printed(records: Sequence[Record], protocol: Protocol) -> Table:
    """Matched points of the published protocol beside those of the paper's main table (dCor: of its summary)."""
    ours = {(p.dataset, p.method): p for d in swept(records) for p in matched(records, d, protocol)}
    theirs = {(r["dataset"], r["method"]): r for r in (*printed("pareto_summary"), *printed("matched_performance"))}
    rows: list[tuple[Cell, ...]] = []
    for (dataset, method), p in ours.items():
        row = theirs.get((dataset, method), {})
        performance = None if row.get("performance") is None else in_print(Spread(row["performance"]), dataset)
        rows.append(
            (
                printed_name(dataset) if method == BASELINE else "",
                method_name(method),
                performance,
                row.get("gdp"),
                row.get("naup"),
                None if p.weight is None else f"{p.weight:g}",
                in_print(p.performance, dataset),
                p.gdp,
                p.naup,
            )
        )
    names = (
        "dataset",
        "method",
        "printed performance",
        "printed GDP",
        "printed nAUP",
        "λ",
        "performance",
        "GDP",
        "nAUP",
    )
    return Table(tuple(Column(name) for name in names), tuple(rows))


def pareto_summary(records: Sequence[Record], protocol: Protocol) -> Table:
    """Pairs of performance and GDP at the matched point, methods by datasets."""
    datasets = swept(records)
    points = {(p.dataset, p.method): p for d in datasets for p in matched(records, d, protocol)}
    rows: list[tuple[Cell, ...]] = []
    for method in (BASELINE, *methods_of(records)):
        cells: list[Cell] = [method_name(method)]
        for dataset in datasets:
            p = points.get((dataset, method))
            performance = None if p is None else in_print(p.performance, dataset)
            cells.append(
                None
                if p is None or performance is None or p.gdp is None
                else f"({performance.mean:.3f}, {p.gdp.mean:.3f})"
            )
        rows.append(tuple(cells))
    return Table((Column("method"), *(Column(printed_name(d)) for d in datasets)), tuple(rows))


def metrics_table(records: Sequence[Record], dataset: str) -> Table:
    """Areas under every convention of GDP, side by side; the best of each column in bold."""
    present = {
        c: n for c, n in CONVENTIONS.items() if any(r["dataset"] == dataset and r.get(c) is not None for r in records)
    }
    areas: dict[str, dict[str, float]] = {c: frontier(records, dataset, c).naup() for c in present}
    methods = methods_of(r for r in records if r["dataset"] == dataset)
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        cells: list[Cell] = [method_name(method)]
        for column in present:
            value = areas[column].get(method)
            cells.append(None if value is None else Spread(value, None, value == max(areas[column].values())))
        rows.append(tuple(cells))
    return Table((Column("nAUP under GDP on"), *(Column(n) for n in present.values())), tuple(rows))


def nearly(values: dict[str, float], name: str) -> tuple[int, float]:
    """Return the rank of a method, 1 for the largest, and how far it is behind the largest.

    Examples
    --------
    >>> nearly({"a": 0.5, "b": 0.75}, "a")
    (2, 0.25)
    """
    return 1 + sum(v > values[name] for v in values.values()), max(values.values()) - values[name]


def printed_name(dataset: str) -> str:
    """Return the name of a dataset, with the unit of its performance where that is not accuracy."""
    return f"{DATASET_NAMES[dataset]}{' (MSE × 100)' if dataset in REGRESSION else ''}"


def in_print(performance: Spread | None, dataset: str) -> Spread | None:
    """Return a performance in the unit that tables print: an error times 100, as the paper has it."""
    if performance is None or dataset not in REGRESSION:
        return performance
    deviation = None if performance.deviation is None else 100 * performance.deviation
    return Spread(100 * performance.mean, deviation, performance.bold)


def _on_test_means(full: Frontier, dataset: str, method: str, protocol: Protocol, areas: dict[str, float]) -> Matched:
    means = full if protocol.decimals is None else rounded(full, protocol.decimals)
    if method not in means.methods:
        return Matched(dataset, method, None, None, None, None, 0.0)
    point = means.of(method)[0] if method == BASELINE else means.matched(BAND)[method].point
    if point is None:
        return Matched(dataset, method, None, None, None, areas.get(method), 0.0)
    runs = [run for run in full.runs if run.method == method and run.weight == point.weight]
    performance, dependence = np.array([r.performance for r in runs]), np.array([r.dependence for r in runs])
    return Matched(
        dataset,
        method,
        point.weight,
        Spread(point.performance, _deviation(performance, protocol.ddof)),
        Spread(point.dependence, _deviation(dependence, protocol.ddof)),
        areas.get(method),
        1.0,
    )


def _on_validation(
    picks: Sequence[tuple[Record, bool]],
    dataset: str,
    method: str,
    gdp: str,
    protocol: Protocol,
    areas: dict[str, float],
) -> Matched:
    weights = [float(r["weight"]) for r, _ in picks]
    performance, dependence = np.array([r["performance"] for r, _ in picks]), np.array([r[gdp] for r, _ in picks])
    return Matched(
        dataset,
        method,
        max(sorted(set(weights)), key=weights.count),
        Spread(float(performance.mean()), _deviation(performance, protocol.ddof)),
        Spread(float(dependence.mean()), _deviation(dependence, protocol.ddof)),
        areas.get(method),
        float(np.mean([inside for _, inside in picks])),
    )


def _deviation(values: np.ndarray, ddof: int) -> float | None:
    return float(values.std(ddof=ddof)) if len(values) > max(ddof, 1) else None
