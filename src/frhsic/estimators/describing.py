"""Descriptions of prototypes: the coordinates of each prototype, the people assigned to it, and
their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic.estimators.constraints import FitRows
from frhsic.splits import subsample
from frhsic.tables.schema import Schema

# Maximum number of rows used to find a typical row of each prototype.
TYPICAL_ROWS = 2_000


def cell_means(
    z: np.ndarray, values: np.ndarray, weights: np.ndarray, otherwise: np.ndarray
) -> np.ndarray:
    """Return the means of values (n, T) over the rows of each prototype, (L, T); a prototype
    without rows gets the values in `otherwise`.
    """
    indicators = (z == np.arange(len(otherwise))[:, None]) * weights
    mass = indicators.sum(axis=1)[:, None]
    return np.where(mass > 0, indicators @ values / np.maximum(mass, 1e-300), otherwise)


def describe_prototypes(
    rows: FitRows,
    schema: Schema | None,
    choices: Sequence[np.ndarray],
    coordinates: Sequence[dict[str, np.ndarray]],
) -> list[dict[str, Any]]:
    """Return, for each trade-off, the columns that describe its prototypes: shares, coordinates,
    means of attributes with 95 % intervals, and a typical row, which has the median of each number
    and the most frequent level of each category (None for a prototype without rows).
    """
    some = subsample(len(rows.s), TYPICAL_ROWS, np.random.default_rng(rows.seed))
    codes = rows.codes[some]
    names = schema.names if schema else [f"x{j}" for j in range(codes.shape[1])]
    levels = [column.levels for column in schema.columns] if schema else [()] * codes.shape[1]
    tables = []
    for z, centers in zip(choices, coordinates):
        count = len(next(iter(centers.values())))
        mass = np.bincount(z, rows.mass, minlength=count)
        columns = {"share": mass / mass.sum(), **centers}
        for name, s in zip(rows.names, rows.s.T):
            columns |= _attribute_means(name, z, s, rows.mass, count)
        described: dict[str, Any] = {name: values.tolist() for name, values in columns.items()}
        for name, column, known in zip(names, codes.T, levels):
            cells = pd.Series(column).groupby(z[some])
            if known:
                values = cells.agg(lambda column: float(column.mode().min())).reindex(range(count))
                values = values.map(dict(enumerate(known)))
            else:
                values = cells.median().reindex(range(count))
            described[f"typical {name}"] = [
                None if value != value else value for value in values.tolist()
            ]
        tables.append(described)
    return tables


def _attribute_means(
    name: str, z: np.ndarray, s: np.ndarray, weights: np.ndarray, count: int
) -> dict[str, np.ndarray]:
    """Return the mean of an attribute over the rows of each prototype, and the ends of its 95 %
    interval.
    """
    weights = np.where(np.isnan(s), 0.0, weights)
    s = np.where(np.isnan(s), 0.0, s)
    indicators = (z == np.arange(count)[:, None]) * weights
    mass = np.maximum(indicators.sum(axis=1), 1e-300)
    mean = indicators @ s / mass
    squares = (indicators**2 * (s - mean[:, None]) ** 2).sum(axis=1)
    reach = 1.96 * np.sqrt(squares) / mass
    return {name: mean, f"{name}_low": mean - reach, f"{name}_high": mean + reach}
