"""How well our sweep under the published protocol agrees with the published sweep, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from frhsic_paper.claim import Cases
from frhsic_paper.frontiers import (
    column_values,
    finite_records,
    head_deviations,
    matched_points,
    swept_datasets,
)
from frhsic_paper.printed import (
    DATASET_NAMES,
    METHOD_NAMES,
    dataset_name,
    printed_records,
    printed_sweeps,
)
from frhsic_paper.protocol import BASELINE, PAPER_WEIGHTS, PUBLISHED
from frhsic_paper.records import Record, grouped, matching, record_unit
from frhsic_paper.results import Results
from frhsic_paper.table import Column, Listed, Table

KEY = ("dataset", "method", "weight")
"""Columns that identify a cell."""

PERFORMANCE_FLOOR = 0.002
"""Smallest standard deviation of a performance; published performances are rounded to four
digits.
"""

GDP_FLOOR = 0.01
"""Smallest standard deviation of a GDP, as a share of the unpenalized model's GDP."""

SMALLEST_ERROR = 1e-9
"""Standard deviation of a cell whose repeats are all equal."""

LISTED = ("acs_income",)
"""Datasets whose rows are a different sample from the published ones: listed, but not counted."""


@dataclass(frozen=True)
class Agreement:
    """One cell: our mean and that of the published sweep, and their distance in combined standard
    deviations and in combined standard errors.
    """

    dataset: str
    method: str
    weight: float
    quantity: str
    ours: float
    published: float
    deviations: float
    errors: float

    @property
    def within(self) -> bool:
        """Whether the two means are at most two combined standard deviations apart."""
        return self.deviations <= 2.0

    @property
    def near(self) -> bool:
        """Whether the two means are at most two combined standard errors apart."""
        return self.errors <= 2.0


def agreement(records: Sequence[Record]) -> list[Agreement]:
    r"""Return all cells that both sweeps have, for the nine shared weights.

    The distance is :math:`|m_1 - m_2| / \max(\sqrt{s_1^2 + s_2^2}, \text{floor})` with standard
    deviations over each sweep's repeats. The floor is .002 for performance, and 1 % of the
    published unpenalized GDP for GDP. Distances in standard errors have no floor.
    """
    ours = grouped(finite_records(records, "performance", PUBLISHED.gdp), *KEY)
    theirs = {record_unit(r, KEY): r for r in printed_sweeps()}
    cells: list[Agreement] = []
    for key, row in theirs.items():
        dataset, method, weight = key
        if key not in ours or (method != BASELINE and weight not in PAPER_WEIGHTS):
            continue
        gdp_floor = GDP_FLOOR * theirs[dataset, BASELINE, 0.0]["gdp"]
        for quantity, deviation, floor in (
            ("performance", "perf_std", PERFORMANCE_FLOOR),
            ("gdp", "gdp_std", gdp_floor),
        ):
            column = PUBLISHED.gdp if quantity == "gdp" else quantity
            values = np.array(column_values(ours[key], column))
            mean, published = float(values.mean()), row[quantity]
            spread, apart = float(np.hypot(values.std(), row[deviation])), abs(mean - published)
            distance, errors = (
                apart / max(spread, floor),
                apart / max(spread / len(values) ** 0.5, SMALLEST_ERROR),
            )
            cells.append(
                Agreement(dataset, method, weight, quantity, mean, published, distance, errors)
            )
    return cells


def counts(cells: Sequence[Agreement]) -> tuple[int, int, int]:
    """Return how many counted cells are within two standard deviations, how many are within two
    standard errors, and how many there are.
    """
    counted = [cell for cell in cells if cell.dataset not in LISTED]
    return sum(c.within for c in counted), sum(c.near for c in counted), len(counted)


AREA_MARGIN = 0.05
"""Largest difference between two values of nAUP that are treated as equal."""


def compare_with_print(records: Sequence[Record]) -> tuple[Cases, Cases, Cases]:
    """Return the number of cells in the printed main table in which nAUP is within .05 of ours, the
    number of these that have the same rows and weights, and the number in which GDP is within two
    combined standard deviations. The standard deviation of a printed cell is that of the nearest
    row in the published file.
    """
    areas, alike, gaps = [], [], []
    for dataset in swept_datasets(records):
        ours = {p.method: p for p in matched_points(records, dataset, PUBLISHED)}
        for row in matching(printed_records("matched_performance"), dataset=dataset):
            point = ours.get(row["method"])
            if point is None:
                continue
            if point.naup is not None and row["naup"] is not None:
                areas.append(abs(point.naup - row["naup"]) <= AREA_MARGIN)
                if dataset not in LISTED and row["method"] != "frhsic":
                    alike.append(areas[-1])
            if point.gdp is not None and row["gdp"] is not None:
                spread = np.hypot(point.gdp.deviation or 0.0, _printed_deviation(row))
                gaps.append(bool(abs(point.gdp.mean - row["gdp"]) <= 2 * spread))
    return Cases.counted(areas), Cases.counted(alike), Cases.counted(gaps)


def _printed_deviation(row: Record) -> float:
    """Return the standard deviation of GDP in the file's row that is nearest to a printed cell."""
    own = matching(printed_sweeps(), dataset=row["dataset"], method=row["method"])
    columns = ("performance", "gdp")
    nearest = min(own, key=lambda r: sum(abs(r[c] - row[c]) for c in columns))
    return float(nearest["gdp_std"])


SMALL = (
    (
        "equal-opportunity",
        "equal_opportunity",
        {"performance": "performance", "eo_gdp": "eo_gdp_logit_uniform"},
    ),
    (
        "multi-attribute",
        "multi_sensitive",
        {
            "performance": "performance",
            "gdp_age": "gdp_logit_uniform",
            "gdp_hours": "gdp_logit_uniform_2",
        },
    ),
)
"""The studies in the printed Tables 4 and 5: the study, the table's file, and our column for each
printed one.
"""


def compare_small_tables(results: Results) -> list[Cases]:
    """Return how many numbers in the printed Tables 2, 4 and 5, each from a single run, are within
    two of our standard deviations (over splits).
    """
    heads = results.records("transfer/heads", PUBLISHED.name)
    tables = [
        [
            (list(head_deviations(heads, dataset, row["method"], at).values()), value)
            for row in printed_records("transfer_cross_head_std")
            for dataset, weight in (("adult", 10.0), ("crime", 100.0))
            if (value := row[f"{dataset}_lambda{weight:g}"]) is not None
            for at in [0.0 if row["method"] == BASELINE else weight]
        ]
    ]
    for study, table, columns in SMALL:
        models = grouped(results.records(f"{study}/models", PUBLISHED.name), *KEY)
        cells = []
        for row in printed_records(table):
            method = row.get("variant") or row["method"]
            found = models.get((row.get("dataset", "adult"), method, row["weight"]), [])
            cells += [([r[ours] for r in found], row[theirs]) for theirs, ours in columns.items()]
        tables.append(cells)
    near = [
        [abs(np.mean(own) - value) <= 2 * np.std(own, ddof=1) for own, value in cells if own]
        for cells in tables
    ]
    return list(map(Cases.counted, near))


def disagreements_table(cells: Sequence[Agreement]) -> Table:
    """Cells that do not agree."""
    rows = [
        [
            DATASET_NAMES[c.dataset],
            METHOD_NAMES[c.method],
            f"{c.weight:g}",
            "GDP" if c.quantity == "gdp" else "performance",
            c.published,
            c.ours,
            c.deviations,
        ]
        for c in cells
        if not c.within
    ]
    numbers = (Column("published", 4), Column("ours", 4), Column("deviations apart", 1))
    return Table.from_rows(["dataset", "method", "λ", "of", *numbers], rows)


def agreement_tables(results: Results) -> list[Listed]:
    """How many cells agree, and the cells that do not."""
    records = results.records("tradeoff", PUBLISHED.name)
    if not records:
        return []
    cells = agreement(records)
    within, near, total = counts(cells)
    heading = (
        f"{within} of {total} counted cells of the authors' files are within two combined standard"
        f" deviations of ours, {near} within two standard errors. Further apart"
        f" ({', '.join(map(dataset_name, LISTED))} is not counted)"
    )
    return [Listed(heading, disagreements_table(cells))]
