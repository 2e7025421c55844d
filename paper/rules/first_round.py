"""The first round of the comparison: its records, read in the words of the second round."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from rules.comparison import BASES, OWN, Cells, costs_in_folds, jackknife, standing_of
from rules.records import study

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
SEEN = ("compas", "crime", "happiness", "college", "men")
COLUMNS = {"scores": ("gdp", "loss"), "decisions": ("gdp_decisions", "errors")}
"""Columns of the gap and the loss of a quantity."""

FAMILIES = {
    "scores": {},
    "decisions": {
        "closed form": "closed form, thresholds on scores",
        "closed form, with S": "closed form, with S, thresholds on scores",
        "closed form, decisions": "closed form",
        "closed form, with S, decisions": "closed form, with S",
    },
}
"""Names of the closed forms of a quantity, where they differ."""


def cells_of(records: pd.DataFrame, tables: tuple[str, ...]) -> Cells:
    """Return the costs on some tables, where the gap of the base is at least three errors."""
    final = records[records["part"] == "final"]
    cells: Cells = {}
    for quantity, base, table in product(COLUMNS, BASES, tables):
        columns = COLUMNS[quantity]
        own = final[(final["dataset"] == table) & (final["base"] == base)].dropna(
            subset=list(columns)
        )
        own = own.assign(way=own["way"].replace(FAMILIES[quantity])).sort_values("left_out")
        points = {
            way: np.array([part[[*columns]].to_numpy() for _, part in path.groupby("left_out")])
            for way, path in own.groupby("way", sort=False)
        }
        if not len(own) or points["none"][0, 0, 0] < 3 * jackknife(points["none"][1:, 0, 0]):
            continue
        rows = own.iloc[0]
        cells[quantity, base, table] = costs_in_folds(
            points, rows["test_rows"] / rows["training_rows"]
        )
    return cells


@cache
def on_tables(tables: tuple[str, ...]) -> Cells:
    """Return the costs on some tables, from the records."""
    return cells_of(study("crossed-first"), tables)


def counts(cells: Cells, quantity: str, with_s: bool) -> tuple[int, int]:
    """Return in how many cells with a rival the closed form is best or within one error, and of how
    many.
    """
    own = standing_of(OWN[with_s], cells, quantity, with_s)
    return own.ahead + own.level, sum(own)
