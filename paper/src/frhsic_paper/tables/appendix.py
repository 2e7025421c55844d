"""Tables of the experiments with one dataset or few: Equal Opportunity, two attributes, heads, ablations, synthetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frhsic_paper.printed import DATASET_NAMES, METHOD_NAMES, method_name, printed
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record
from frhsic_paper.tables.frontiers import datasets_of, finite
from frhsic_paper.tables.table import Cell, Column, Spread, Table

__all__ = [
    "DIMENSIONS",
    "dimension_table",
    "equal_opportunity_table",
    "head_deviation",
    "kernel_table",
    "mean_of",
    "multi_attribute_table",
    "synthetic_table",
    "transfer_table",
]

DIMENSIONS = (2, 8, 32, 64)
"""Of the representation, in the ablation."""

HEADS = ("linear", "mlp", "forest", "svm")
"""The four heads of the paper's transfer experiment."""


def mean_of(
    records: Sequence[Record], column: str, *, dataset: str, method: str, weight: float | None = None, ddof: int = 1
) -> Spread | None:
    """Return the mean over repeats of one column, with the standard deviation; None where there is no record."""
    values = [
        float(r[column])
        for r in finite(records, column)
        if r["dataset"] == dataset and r["method"] == method and (weight is None or float(r["weight"]) == weight)
    ]
    if not values:
        return None
    return Spread(float(np.mean(values)), float(np.std(values, ddof=ddof)) if len(values) > 1 else None)


def equal_opportunity_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Accuracy, GDP among the positive and GDP of all, of the two variants of FRHSIC and of the head's."""
    gdp = protocol.gdp
    eo = f"eo_{gdp}"
    paper = {(r["dataset"], float(r["weight"]), r["variant"]): r for r in printed("equal_opportunity")}
    rows: list[tuple[Cell, ...]] = []
    for dataset in datasets_of(records):
        weights = sorted({float(r["weight"]) for r in records if r["dataset"] == dataset and r["method"] != BASELINE})
        for method, weight in [(BASELINE, 0.0), *((m, w) for w in weights for m in ("DP", "EO", "head EO"))]:
            row = paper.get((dataset, weight, method), {})
            rows.append(
                (
                    DATASET_NAMES[dataset] if method == BASELINE else "",
                    f"{weight:g}",
                    method_name(method),
                    row.get("performance"),
                    row.get("eo_gdp"),
                    mean_of(records, "performance", dataset=dataset, method=method, weight=weight),
                    mean_of(records, eo, dataset=dataset, method=method, weight=weight),
                    mean_of(records, gdp, dataset=dataset, method=method, weight=weight),
                )
            )
    return Table(
        (
            Column("dataset"),
            Column("λ"),
            Column("variant"),
            Column("printed accuracy"),
            Column("printed EO-GDP"),
            Column("accuracy"),
            Column("EO-GDP"),
            Column("GDP of all"),
        ),
        tuple(rows),
    )


def multi_attribute_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Accuracy and GDP for each of two attributes."""
    columns = ("performance", protocol.gdp, f"{protocol.gdp}_2")
    paper = {(r["method"], float(r["weight"])): r for r in printed("multi_sensitive")}
    weights = sorted({float(r["weight"]) for r in records if r["method"] != BASELINE})
    rows: list[tuple[Cell, ...]] = []
    for method, weight in [(BASELINE, 0.0), *((m, w) for m in ("Joint", "Sum", "head Joint") for w in weights)]:
        row = paper.get((method, weight), {})
        rows.append(
            (
                method_name(method),
                f"{weight:g}",
                row.get("performance"),
                row.get("gdp_age"),
                row.get("gdp_hours"),
                *(mean_of(records, c, dataset="adult", method=method, weight=weight) for c in columns),
            )
        )
    return Table(
        (
            Column("variant"),
            Column("λ"),
            Column("printed accuracy"),
            Column("printed GDP, age"),
            Column("printed GDP, hours"),
            Column("accuracy"),
            Column("GDP, age"),
            Column("GDP, hours"),
        ),
        tuple(rows),
    )


def kernel_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Accuracy and GDP of every pair of kernels on the synthetic task, beside the unpenalised model."""
    paper = {f"{r['k_z']} {r['k_s']}": r for r in printed("kernel_ablation_lambda5")}
    weights = sorted({float(r["weight"]) for r in records if r["method"] != BASELINE})
    methods = [m for m in dict.fromkeys(r["method"] for r in records) if m != BASELINE]
    rows: list[tuple[Cell, ...]] = []
    for method, weight in [(BASELINE, 0.0), *((m, w) for w in weights for m in methods)]:
        row = paper.get(method, {}) if weight == 5 else {}
        name = "unpenalised" if method == BASELINE else method.replace(" ", " on Z, ") + " on S"
        rows.append(
            (name, f"{weight:g}", row.get("performance"), row.get("gdp"), *_two(records, method, weight, protocol))
        )
    return Table(
        (
            Column("kernels"),
            Column("λ"),
            Column("printed accuracy"),
            Column("printed GDP", 4),
            Column("accuracy"),
            Column("GDP", 4),
        ),
        tuple(rows),
    )


def dimension_table(by_dimension: dict[int, Sequence[Record]], protocol: Protocol) -> Table:
    """Accuracy and GDP against the dimension of the representation."""
    paper = {r["d_z"]: r for r in printed("dim_ablation_lambda5")}
    rows: list[tuple[Cell, ...]] = []
    for dimension, records in by_dimension.items():
        for weight in sorted({float(r["weight"]) for r in records if r["method"] != BASELINE}):
            row = paper.get(dimension, {}) if weight == 5 else {}
            cells = _two(records, "frhsic", weight, protocol)
            rows.append((dimension, f"{weight:g}", row.get("performance"), row.get("gdp"), *cells))
    return Table(
        (
            Column("dimension of Z"),
            Column("λ"),
            Column("printed accuracy"),
            Column("printed GDP", 4),
            Column("accuracy"),
            Column("GDP", 4),
        ),
        tuple(sorted(rows, key=lambda row: (float(str(row[1])), row[0]))),
    )


def synthetic_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Accuracy, GDP and what is left in Z against λ."""
    rows: list[tuple[Cell, ...]] = []
    for method in ("frhsic", "hsic"):
        weights = sorted({float(r["weight"]) for r in records if r["method"] == method})
        for name, weight in [(BASELINE, 0.0), *((method, w) for w in weights)]:
            cells = [
                mean_of(records, c, dataset="synthetic", method=name, weight=weight)
                for c in ("performance", protocol.gdp, "probe_r2_cosines")
            ]
            rows.append((METHOD_NAMES[method], f"{weight:g}", *cells))
    return Table(
        (Column("method"), Column("λ"), Column("accuracy"), Column("GDP", 4), Column("R² of a probe for S")),
        tuple(rows),
    )


def head_deviation(records: Sequence[Record], dataset: str, method: str, weight: float) -> Spread | None:
    """Return the standard deviation (ddof 0) of GDP over the paper's four heads, averaged over repeats."""
    by_repeat: dict[int, list[float]] = {}
    for r in records:
        same = r["dataset"] == dataset and r["method"] == method and float(r["weight"]) == weight
        if same and r["head"] in HEADS and r.get("gdp") is not None:
            by_repeat.setdefault(r["repeat"], []).append(float(r["gdp"]))
    values = [float(np.std(v)) for v in by_repeat.values() if len(v) == len(HEADS)]
    if not values:
        return None
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def transfer_table(records: Sequence[Record]) -> Table:
    """GDP of every fresh head on frozen representations, the spread over the heads, and their accuracy."""
    heads = list(dict.fromkeys(r["head"] for r in records))
    rows: list[tuple[Cell, ...]] = []
    for dataset in datasets_of(records):
        of = [r for r in records if r["dataset"] == dataset]
        models = sorted(
            {(r["method"], float(r["weight"])) for r in of}, key=lambda m: (m[1], list(METHOD_NAMES).index(m[0]))
        )
        for number, (method, weight) in enumerate(models):
            mine = [r for r in of if r["method"] == method and float(r["weight"]) == weight]
            values = {h: [r["gdp"] for r in mine if r["head"] == h and r.get("gdp") is not None] for h in heads}
            performance = [r["performance"] for r in mine if r.get("performance") is not None]
            rows.append(
                (
                    DATASET_NAMES[dataset] if number == 0 else "",
                    METHOD_NAMES[method],
                    f"{weight:g}",
                    *(float(np.mean(v)) if v else None for v in values.values()),
                    head_deviation(of, dataset, method, weight),
                    f"{min(performance):.3f}–{max(performance):.3f}" if performance else None,
                )
            )
    return Table(
        (
            Column("dataset"),
            Column("method"),
            Column("λ"),
            *(Column(f"GDP, {head}") for head in heads),
            Column("deviation over heads", 4),
            Column("performance over heads"),
        ),
        tuple(rows),
    )


def _two(
    records: Sequence[Record], method: str, weight: float, protocol: Protocol
) -> tuple[Spread | None, Spread | None]:
    of = {"dataset": "synthetic", "method": method}
    return (
        mean_of(records, "performance", dataset=of["dataset"], method=method, weight=weight),
        mean_of(records, protocol.gdp, dataset=of["dataset"], method=method, weight=weight),
    )
